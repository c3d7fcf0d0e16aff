"""Items to places: the assignment that is worth most, and of several the one in the order of mean places."""

from __future__ import annotations

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices, Mask

ROUNDING = 1e-12  # of what an item is worth at a place, against the largest


def best_places(worth: FloatArray, mean_places: FloatArray) -> Indices:
    """Return the place of each item, worth most in all; where that leaves a choice, by the items' mean places.

    Parameters
    ----------
    worth : array of shape (n_items, n_items)
        What each item is worth at each place.
    mean_places : array of shape (n_items,)
        Where each item stands on average.

    Examples
    --------
    Only the first place counts, and the last item is worth most there:

    >>> best_places(np.array([[1.0, 0, 0], [1, 0, 0], [2, 0, 0]]), np.array([1.0, 0.5, 1.5]))
    array([2, 1, 0])
    """
    from scipy.optimize import linear_sum_assignment

    places = linear_sum_assignment(worth, maximize=True)[1]
    order = np.where(equally_good(worth, places), np.outer(mean_places, places), -np.inf)
    return np.asarray(places[linear_sum_assignment(order, maximize=True)[1]])


def equally_good(worth: FloatArray, places: Indices) -> Mask:
    """Return for each two items whether the first could have the place of the second and the whole be worth as much.

    Places get prices, by the shortest ways along what items lose where others stand, at which no item would rather have
    another place. Whoever moves in an assignment that is as good moves to a place that leaves it as well off.
    """
    loss = worth[np.arange(len(worth)), places][:, None] - worth[:, places]
    rounding = ROUNDING * float(np.abs(worth).max(initial=0.0))
    prices, before = np.zeros(len(worth)), np.full(len(worth), np.inf)
    while (before - prices > rounding / len(worth)).any():
        prices, before = np.minimum(prices, (prices[:, None] + loss).min(axis=0)), prices
    return np.asarray(prices[:, None] + loss - prices <= rounding)

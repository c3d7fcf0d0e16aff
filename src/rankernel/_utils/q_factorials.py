"""Logarithms of q-factorials over factorials: what the Mallows kernel is made of."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from rankernel._utils.arrays import FloatArray


def log_q_factorials(n: int, nu: float) -> FloatArray:
    """Return ``T[m] = log([m]_q! / m!)`` for m = 0..n, with ``q = exp(-nu)``.

    ``exp(T[m])`` is the mean of ``exp(-nu * inversions)`` over all orders of m items. Every sum has terms of one sign,
    so the relative error is a few units in the last place for any ``nu >= 0``, 0 included.

    Examples
    --------
    Three items have 0, 1, 1, 2, 2, 3 inversions:

    >>> q = np.exp(-0.5)
    >>> bool(np.isclose(np.exp(log_q_factorials(3, 0.5)[3]), (1 + 2 * q + 2 * q**2 + q**3) / 6, rtol=1e-15))
    True
    """
    steps = np.arange(n, dtype=np.float64)
    number = steps + 1
    # [i]_q / i is one less the mean of 1 - q^j over j < i: the first form is exact where it is small, the second where
    # it is near one.
    shortfall = running_sum(-np.expm1(-nu * steps)) / number
    average = running_sum(np.exp(-nu * steps)) / number
    near_one = shortfall < 0.5
    logs = np.where(near_one, np.log1p(-np.where(near_one, shortfall, 0.0)), np.log(average))
    return np.concatenate([[0.0], running_sum(logs)])


def log_q_factorials_derivative(n: int, nu: float) -> FloatArray:
    """Return the derivative in nu of :func:`log_q_factorials`, for m = 0..n.

    ``-dT[m]`` is the mean number of inversions of m items where an order has weight ``exp(-nu * inversions)``.

    Examples
    --------
    >>> log_q_factorials_derivative(4, 0.0)  # half of all pairs
    array([-0. , -0. , -0.5, -1.5, -3. ])
    """
    steps = np.arange(n, dtype=np.float64)
    weights = np.exp(-nu * steps)
    inversions = running_sum(steps * weights) / running_sum(weights)
    return -np.concatenate([[0.0], running_sum(inversions)])


def running_sum(terms: FloatArray) -> FloatArray:
    """Return cumulative sums, each corrected by the rounding errors made on the way to it."""
    sums = np.cumsum(terms)
    before = np.concatenate([[0.0], sums[:-1]])
    added = sums - before
    lost = (before - (sums - added)) + (terms - added)
    corrected: FloatArray = sums + np.cumsum(lost)
    return corrected


@lru_cache(maxsize=64)
def tables(n: int, nu: float) -> tuple[FloatArray, FloatArray]:
    """Return the logarithms of the q-factorials up to n items, and their derivatives, remembered."""
    logs, slopes = log_q_factorials(n, nu), log_q_factorials_derivative(n, nu)
    logs.flags.writeable = slopes.flags.writeable = False
    return logs, slopes


def log_q_factorial(n: int, nu: float) -> float:
    """Return ``log [n]_q!``: the logarithm of the sum of ``exp(-nu inversions)`` over all orders of n items."""
    return float(tables(n, nu)[0][n]) + math.lgamma(n + 1)


def mean_inversions(n: int, nu: float) -> float:
    """Return the mean number of inversions of n items where an order has weight ``exp(-nu inversions)``."""
    return -float(tables(n, nu)[1][n])


def inversion_probabilities(n: int, nu: float) -> FloatArray:
    """Return how likely two items are inverted that stand 0..n places apart, where an order has this weight.

    By how many items there are, and where the two stand, it does not matter (Mallows 1957): they keep their order with
    probability h(d + 1) - h(d), d places apart, where ``h(d) = d / (1 - exp(-nu d))``.

    Examples
    --------
    >>> inversion_probabilities(2, np.log(2)).round(4)  # neighbours: 1 to 2
    array([0.    , 0.3333, 0.2381])
    """
    apart = np.arange(n + 1)
    if nu < 1e-6:  # where h(d) is so large that its digits are lost
        return np.where(apart > 0, 0.5, 0.0)
    h = (apart[1:] + 1) / -np.expm1(-nu * (apart[1:] + 1)) - apart[1:] / -np.expm1(-nu * apart[1:])
    return np.concatenate([[0.0], 1 - h])

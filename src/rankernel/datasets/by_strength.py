"""The Plackett-Luce model: places are filled from the best down, each by weight among the items that are left."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from rankernel._utils.checks import check_integer
from rankernel._utils.rng import Seed, as_generator
from rankernel.datasets.arguments import check_table, named, strengths
from rankernel.rankings import Rankings, row_slices


def plackett_luce(
    n_rankings: int, weights: ArrayLike, rng: Seed = 0, items: Iterable[object] | None = None
) -> Rankings:
    r"""Draw full rankings from the Plackett-Luce model, exactly.

    The order :math:`a_1 \succ a_2 \succ \dots \succ a_n` has the probability
    :math:`\prod_i w_{a_i} / (w_{a_i} + w_{a_{i+1}} + \dots + w_{a_n})`.

    Parameters
    ----------
    n_rankings : int
        How many rankings.
    weights : array of shape (n_items,)
        A positive weight for each item; only their ratios matter.
    rng : int or numpy.random.Generator
        Where the randomness comes from; the same number gives the same rankings.
    items : iterable of names, optional
        Names of the items; numbers from 0 if left out.

    Returns
    -------
    Rankings
        ``n_rankings`` full rankings.

    Examples
    --------
    The first place goes to each item with its share of the weight:

    >>> rankings = plackett_luce(100_000, [1, 3, 6], rng=0)
    >>> (rankings.ranks == 0).mean(axis=0).round(2)
    array([0.1, 0.3, 0.6])
    """
    given = strengths(weights)
    names = named(items, len(given))
    rng = as_generator(rng)
    # Items arrive after exponential times of rates w; the Gumbel variable is minus the logarithm of such a time.
    check_table(check_integer("n_rankings", n_rankings, 0), len(given))
    ranks = np.empty((n_rankings, len(given)), dtype=np.int32)
    for rows in row_slices(ranks.shape):  # so that a Ctrl-C is heard
        haste = np.log(given) + rng.gumbel(size=ranks[rows].shape)
        ranks[rows] = np.argsort(np.argsort(-haste, axis=1), axis=1)
    return Rankings._trusted(ranks, names)

"""Exact means of what linear and quadratic kernels see of a uniform completion, for rankings of any kind."""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np

from rankernel import _loops
from rankernel.arrays import FloatArray, RankArray
from rankernel.encoding import FREE
from rankernel.rankings import as_rankings


def pair_means(X: Any) -> FloatArray:
    """Return the mean of ``s_xy`` for every pair of items x < y, where s_xy is 1 if x comes before y and -1 if after.

    The marginalised Kendall kernel is ``pair_means(X) @ pair_means(Y).T / P`` with ``P = n (n - 1) / 2``.

    Examples
    --------
    Item 2 is free: it falls before, between or behind 0 > 1, so that 0 comes before it two times in three.

    >>> pair_means(np.array([[0, 1, -1]])).round(3)
    array([[ 1.   ,  0.333, -0.333]])
    """
    ranks = as_rankings(X).ranks
    leads = mean_leads(ranks)
    x, y = np.triu_indices(ranks.shape[1], 1)
    first, second = ranks[:, x], ranks[:, y]
    both = (first != FREE) & (second != FREE)
    # A free item has lead 0, so the difference is the lead of the listed item of a mixed pair.
    return np.where(both, np.sign(second - first), leads[:, x] - leads[:, y])


def pair_product_features(X: Any) -> FloatArray:
    """Return the mean of ``s_e s_f`` for every two pairs e <= f of items, times the root of 2 where they differ.

    So the mean of the squared Kendall kernel is an inner product of two rows, by ``P**2``.

    Examples
    --------
    A full ranking has Kendall kernel 1 with itself, and 1 is its square:

    >>> features = pair_product_features(np.array([[2, 0, 1]]))
    >>> bool(np.isclose((features @ features.T).item(), 3**2))
    True
    """
    ranks = as_rankings(X).ranks
    n_pairs = comb(ranks.shape[1], 2)
    out = np.empty((len(ranks), n_pairs * (n_pairs + 1) // 2))
    _loops.moment_sums.pair_product_rows(ranks, np.sqrt(2.0), out)
    return out


def rank_means(X: Any) -> FloatArray:
    """Return the mean position of each item, less ``(n - 1) / 2``.

    Examples
    --------
    >>> rank_means(np.array([[0, 1, -1], [0, 1, 1]])).round(3)
    array([[-0.667,  0.667,  0.   ],
           [-1.   ,  0.5  ,  0.5  ]])
    """
    ranks = as_rankings(X).ranks
    # Adding 0 turns -0 into 0.
    means: FloatArray = -(ranks.shape[1] + 1) / 2 * mean_leads(ranks) + 0.0
    return means


def rank_products(X: Any) -> FloatArray:
    """Return the mean of ``r(x) r(y)`` for every two items, r being positions less ``(n - 1) / 2``.

    Examples
    --------
    >>> rank_products(np.array([[0, 0, 0]])).round(3)
    array([[[ 0.667, -0.333, -0.333],
            [-0.333,  0.667, -0.333],
            [-0.333, -0.333,  0.667]]])
    """
    ranks = as_rankings(X).ranks
    out = np.zeros((*ranks.shape, ranks.shape[1]))
    _loops.moment_sums.rank_products(ranks, out)
    return out


def position_marginals(X: Any) -> FloatArray:
    """Return the probability ``D[i, x, p]`` that item x has position p in a random completion of ranking i.

    Examples
    --------
    >>> position_marginals(np.array([[0, 1, -1]])).round(3)
    array([[[0.667, 0.333, 0.   ],
            [0.   , 0.333, 0.667],
            [0.333, 0.333, 0.333]]])
    """
    ranks = as_rankings(X).ranks
    out = np.empty((*ranks.shape, ranks.shape[1]))
    _loops.moment_sums.position_marginals(ranks, out)
    return out


SEEN_MEANS: dict[str, Callable[[Any], FloatArray]] = {
    "pairs": pair_means,
    "positions": position_marginals,
    "ranks": rank_means,
}


def seen_means(X: Any, sees: str) -> FloatArray:
    """Return the mean of what a linear kernel sees: ``"pairs"``, ``"positions"`` or ``"ranks"``."""
    return SEEN_MEANS[sees](X)


def mean_leads(ranks: RankArray) -> FloatArray:
    """Return the mean of s_xy against a free item y for each listed item x, 0 for free items."""
    n_listed = np.count_nonzero(ranks != FREE, axis=1)[:, None]
    sizes = np.zeros((len(ranks), ranks.shape[1] + 1))
    # Free items, of rank -1, are counted in the last column, behind all buckets.
    np.add.at(sizes, (np.arange(len(ranks))[:, None], ranks), 1)
    mean_listed_rank = np.cumsum(sizes, axis=1) - (sizes - 1) / 2
    leads = 1 - 2 * np.take_along_axis(mean_listed_rank, ranks, axis=1) / (n_listed + 1)
    return np.where(ranks == FREE, 0.0, leads)

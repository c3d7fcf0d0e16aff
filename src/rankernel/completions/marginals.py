"""Exact marginal probabilities and moments of uniform completions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, Indices, IntArray, RankArray
from rankernel.encoding import FREE
from rankernel.rankings import Rankings, as_rankings, unique_rows


@dataclass(frozen=True, eq=False)
class PositionDistributions:
    """The laws of the places of all items of some rankings.

    Attributes
    ----------
    shape_of : array of shape (n_rankings,)
        Which shape each ranking has.
    sizes : array of shape (n_shapes, 1 + n_buckets)
        How many items of a ranking of each shape are free, and in each bucket.
    pmf_of : array of shape (n_shapes, 1 + n_buckets)
        Which law they have; -1 where there are none.
    pmfs : array of shape (n_laws, n_items)
        The probability of each place.
    """

    shape_of: Indices
    sizes: IntArray
    pmf_of: Indices
    pmfs: FloatArray

    def of_items(self, X: Rankings) -> Indices:
        """Return which law each item of each ranking has."""
        return self.pmf_of[self.shape_of[:, None], X.ranks + 1]

    def items_with(self, X: Rankings, codes: Indices) -> tuple[IntArray, IntArray, IntArray]:
        """Return the items of buckets that have a code: where those of each ranking begin, the items, their codes.

        Parameters
        ----------
        X : Rankings
            The rankings.
        codes : array of shape (n_shapes, 1 + n_buckets)
            A code for the free items and for each bucket, negative for items to leave out.
        """
        starts = np.zeros(len(X) + 1, dtype=np.int64)
        items, chosen = _loops.position_sums.chosen_items(X.ranks, self.shape_of, codes, starts)
        return starts, items, chosen


def position_distributions(X: Rankings) -> PositionDistributions:
    """Return the laws of the places of all items.

    Examples
    --------
    One item first, two behind it, one free: wherever it falls, the others make room.

    >>> found = position_distributions(Rankings([[0, 1, 1, -1]]))
    >>> found.pmfs[found.pmf_of[0]].round(3)
    array([[0.25 , 0.25 , 0.25 , 0.25 ],
           [0.75 , 0.25 , 0.   , 0.   ],
           [0.   , 0.25 , 0.375, 0.375]])
    """
    n_items = X.n_items
    all_sizes = np.zeros((len(X), int(X.ranks.max(initial=-1)) + 2), dtype=np.int32)
    _loops.position_sums.count_items(X.ranks, all_sizes)
    first, shape_of = unique_rows(all_sizes)
    sizes = all_sizes[first].astype(np.int64)
    ends = np.cumsum(sizes[:, 1:], axis=1)
    listed = np.repeat(n_items - sizes[:, :1], ends.shape[1], axis=1)
    buckets = np.stack([listed, ends - sizes[:, 1:], ends], axis=2)
    everywhere = np.broadcast_to([n_items, 0, n_items], (len(sizes), 1, 3))  # a free item
    described = np.concatenate([everywhere, buckets], axis=1)[sizes > 0]
    kinds, inverse = np.unique(described, axis=0, return_inverse=True)
    law_of = np.full(sizes.shape, -1, dtype=np.intp)
    law_of[sizes > 0] = inverse.ravel()
    laws = np.empty((len(kinds), n_items))
    _loops.position_sums.fill_laws(kinds, laws)
    return PositionDistributions(shape_of, sizes, law_of, laws)


AT_ONCE = 2**18  # numbers that are worked on at once


def pair_means(X: Any) -> FloatArray:
    """Return the mean of ``s_xy`` for every pair of items x < y, where s_xy is 1 if x comes before y and -1 if after.

    The marginalised Kendall kernel is ``pair_means(X) @ pair_means(Y).T / P`` with ``P = n (n - 1) / 2``.

    Examples
    --------
    Item 2 is free: it falls before, between or behind 0 > 1, so that 0 comes before it two times in three.

    >>> pair_means(np.array([[0, 1, -1]])).round(3)
    array([[ 1.   ,  0.333, -0.333]])
    """
    return sign_means(as_rankings(X).ranks)


def sign_means(ranks: RankArray) -> FloatArray:
    """Return the mean sign of every pair of items."""
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
    return upper_rows(as_rankings(X).ranks, np.sqrt(2.0))


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
    n = ranks.shape[1]
    out = np.empty((*ranks.shape, n))
    step = max(AT_ONCE // n**2, 1)
    for rows in (slice(start, start + step) for start in range(0, len(ranks), step)):
        fill_rank_products(ranks[rows], out[rows])
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
    rankings = as_rankings(X)
    found = position_distributions(rankings)
    return found.pmfs[found.of_items(rankings)]


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
    buckets = buckets_of(ranks)
    return np.where(ranks == FREE, 0.0, 1 - 2 * buckets.means / (buckets.n_listed[:, None] + 1))


class Buckets(NamedTuple):
    """The size of the bucket of each item, its mean rank, from 1 and among listed items, and how many are listed.

    Free items count as one bucket behind the others.
    """

    sizes: IntArray
    means: FloatArray
    n_listed: IntArray


def buckets_of(ranks: RankArray) -> Buckets:
    """Return the buckets of all items."""
    n_rankings, n_items = ranks.shape
    rows = np.arange(n_rankings)[:, None]
    # Free items, of rank -1, are counted in the last column, behind all buckets.
    flat = (rows * (n_items + 1) + np.where(ranks == FREE, n_items, ranks)).ravel()
    sizes = np.bincount(flat, minlength=n_rankings * (n_items + 1)).reshape(n_rankings, n_items + 1)
    means = np.cumsum(sizes, axis=1) - (sizes - 1) / 2
    return Buckets(sizes[rows, ranks], means[rows, ranks], n_items - sizes[:, n_items])


def order_means(ranks: RankArray, buckets: Buckets) -> tuple[FloatArray, FloatArray]:
    """Return the mean of s (t + 1) and of s, the smaller and larger of the listed ranks of every two items (or one)."""
    size, middle = buckets.sizes[:, :, None], buckets.means[:, :, None]
    other, same = buckets.means[:, None, :], ranks[:, :, None] == ranks[:, None, :]
    one = np.eye(ranks.shape[1], dtype=bool)
    small, large = np.minimum(middle, other), np.maximum(middle, other)
    inside = np.where(one, (size * size - 1) / 12, -(size + 1) / 4)
    product = np.where(same, middle * (middle + 1) + inside, small * (large + 1))
    return product, np.where(same & ~one, middle - (size + 1) / 6, small)


def fill_rank_products(ranks: RankArray, out: FloatArray) -> None:
    """Write the mean products of centred positions: those of listed items are order statistics of a subset of 1..n.

    Free items follow: centred positions sum to 0, and free items are exchangeable and uniform.
    """
    n, buckets = ranks.shape[1], buckets_of(ranks)
    product, small = order_means(ranks, buckets)
    m, n_free = buckets.n_listed[:, None, None], np.maximum(n - buckets.n_listed, 1)[:, None, None]
    stretch, middle, square = (n + 1) / (m + 1), (n + 1) / 2, (n * n - 1) / 12
    both = buckets.means[:, :, None] + buckets.means[:, None, :]
    listed = ranks != FREE
    value = product * stretch * (n + 2) / (m + 2) - small * stretch - middle * stretch * both + middle * middle
    value = np.where(listed[:, :, None] & listed[:, None, :], value, 0.0)
    row = value.sum(axis=2)
    mixed = -np.where(listed, row, 0.0)[:, :, None] / n_free
    apart = (row.sum(axis=1)[:, None, None] / n_free - square) / np.maximum(n_free - 1, 1)
    free = np.where(np.eye(n, dtype=bool), square, apart)
    out[...] = np.where(listed[:, :, None], np.where(listed[:, None, :], value, mixed), free)
    out[...] = np.where(listed[:, None, :] & ~listed[:, :, None], mixed.transpose(0, 2, 1), out)


def upper_rows(ranks: RankArray, weight: float) -> FloatArray:
    """Return the upper triangles of the pair products, entries off the diagonal times a weight."""
    n_pairs = n_pairs_of(ranks.shape[1])
    out = np.empty((len(ranks), n_pairs * (n_pairs + 1) // 2))
    e, f = np.triu_indices(n_pairs)
    factor = np.where(e == f, 1.0, weight)
    step = max(AT_ONCE // max(out.shape[1], 1), 1)
    for rows in (slice(start, start + step) for start in range(0, len(ranks), step)):
        fill_pair_products(ranks[rows], e, f, out[rows])
        out[rows] *= factor
    return out


def fill_pair_products(ranks: RankArray, e: Indices, f: Indices, out: FloatArray) -> None:
    """Write the mean of ``s_e s_f`` for pairs of pairs.

    Without a common item, and unless each has a listed and a free item, two pairs are independent. With a common item
    the order of what is tied adds a third of its sign, or of what part of it the other pair leaves to chance.
    """
    n, buckets, means = ranks.shape[1], buckets_of(ranks), sign_means(ranks)
    x, y = np.triu_indices(n, 1)
    m, listed = buckets.n_listed, ranks != FREE
    np.multiply(means[:, e], means[:, f], out=out)
    # Pairs that share an item: 1 for a pair with itself, a third with the sign of the ends at which they share one.
    same_end, other_end = (x[e] == x[f]) | (y[e] == y[f]), (x[e] == y[f]) | (y[e] == x[f])
    alike = np.where(e == f, 1.0, np.where(same_end, 1 / 3, np.where(other_end, -1 / 3, 0.0)))
    sharing = np.flatnonzero(alike)
    n_listed = listed[:, x].astype(np.int8) + listed[:, y]
    tied = ranks[:, x] == ranks[:, y]
    key_mean = buckets.means / (m[:, None] + 1)  # of the key of a listed item
    product, small = order_means(ranks, buckets)
    key_square = product / ((m + 1) * (m + 2))[:, None, None]
    own = np.arange(n)
    spread = key_mean - key_square[:, own, own]  # mean of V (1 - V) for the key V of a listed item
    spread = np.where(listed[:, x], spread[:, x], spread[:, y])
    share = (buckets.sizes[:, x] + 1) / (m[:, None] + 1)
    kind, other = n_listed[:, e[sharing]], n_listed[:, f[sharing]]
    tied_e, tied_f = tied[:, e[sharing]], tied[:, f[sharing]]
    part = np.select(
        [
            (kind + other == 4) | (kind + other == 0),
            (kind == 2) & (other == 1),
            (kind == 1) & (other == 2),
            (kind == 1) & (other == 0),
            (kind == 0) & (other == 1),
        ],
        [
            tied_e & tied_f,
            tied_e * share[:, e[sharing]],
            tied_f * share[:, f[sharing]],
            6 * spread[:, e[sharing]],
            6 * spread[:, f[sharing]],
        ],
        0.0,
    )
    out[:, sharing] += alike[sharing] * part
    # Two pairs of a listed and a free item each: what they share is the order of the listed keys.
    row, column = np.nonzero((n_listed[:, e] == 1) & (n_listed[:, f] == 1))
    first, second = e[column], f[column]
    is_first, is_second = listed[row, x[first]], listed[row, x[second]]
    one, two = np.where(is_first, x[first], y[first]), np.where(is_second, x[second], y[second])
    free_one, free_two = np.where(is_first, y[first], x[first]), np.where(is_second, y[second], x[second])
    both = key_mean[row, one] + key_mean[row, two]
    together = 1 - 2 * both + 4 * small[row, one, two] / (m[row] + 1)
    apart = 1 - 2 * both + 4 * key_square[row, one, two]
    value = np.where(first == second, 1.0, np.where(free_one == free_two, together, apart))
    out[row, column] = np.where(is_first == is_second, value, -value)


def n_pairs_of(n_items: int) -> int:
    """Return the number of pairs of items."""
    return n_items * (n_items - 1) // 2

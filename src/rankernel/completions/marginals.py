"""Exact marginal probabilities and moments of uniform completions.

In a uniform completion (see :mod:`rankernel.completions.draws`) the order inside a bucket, the order of the free
items and the positions of the free items are independent and uniform, and the key of the listed item of rank s among m
is the s-th order statistic of m uniform variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from rankernel._loops.compiled import compiled_strictly
from rankernel._utils import FloatArray, Indices, IntArray, RankArray
from rankernel._utils.resources import slices
from rankernel.rankings import FREE, Rankings, as_rankings, unique_rows

CHUNK_ENTRIES = 2**18


# ---------------------------------------------------------------------- position distributions


@dataclass(frozen=True, eq=False)
class PositionDistributions:
    """The distributions of the positions of all items of several rankings.

    Items of one bucket have the same distribution, which depends only on the number of listed items and on the first
    and last rank of the bucket among them; many rankings share a few distributions. Rankings with equal bucket sizes
    have the same *shape*.

    Columns of ``sizes`` and ``pmf_of`` are the free items, then the buckets.
    """

    shape_of: Indices  # the shape of each ranking
    sizes: IntArray  # the number of items of each shape in each column
    pmf_of: Indices  # the row of ``pmfs`` of each shape and column; -1 if empty
    buckets: IntArray  # of each distribution: the number of listed items, and the first and one past the last rank
    n_items: int

    @cached_property
    def pmfs(self) -> FloatArray:
        """Probability mass functions, one row for each distribution: the probability of each position."""
        return bucket_pmfs(self.buckets, self.n_items)

    def of_items(self, X: Rankings) -> Indices:
        """Return the row of ``pmfs`` of each item of each ranking."""
        return self.pmf_of[self.shape_of[:, None], X.ranks + 1]

    def items_with(self, X: Rankings, codes: Indices) -> tuple[IntArray, IntArray, IntArray]:
        """Return the items whose bucket has a code, ranking by ranking.

        ``codes[shape, column]`` is negative for items to leave out. The results are the index of the first entry of
        each ranking in the other two arrays, the items, and the codes of their buckets.
        """
        starts = np.zeros(len(X) + 1, dtype=np.int64)
        items, chosen = coded_items(X.ranks, self.shape_of, codes, starts)
        return starts, items, chosen


def position_distributions(X: Rankings) -> PositionDistributions:
    """Return the distributions of the positions of all items."""
    n_items = X.n_items
    all_sizes = np.zeros((len(X), int(X.ranks.max(initial=-1)) + 2), dtype=np.int32)
    count_items(X.ranks, all_sizes)
    first, shape_of = unique_rows(all_sizes)
    sizes = all_sizes[first].astype(np.int64)
    ends = np.cumsum(sizes[:, 1:], axis=1)
    listed = np.repeat(n_items - sizes[:, :1], ends.shape[1], axis=1)
    buckets = np.stack([listed, ends - sizes[:, 1:], ends], axis=2)
    free = np.broadcast_to([n_items, 0, n_items], (len(sizes), 1, 3))  # uniform on all positions
    distinct, inverse = np.unique(np.concatenate([free, buckets], axis=1)[sizes > 0], axis=0, return_inverse=True)
    pmf_of = np.full(sizes.shape, -1, dtype=np.intp)
    pmf_of[sizes > 0] = inverse.ravel()
    return PositionDistributions(shape_of, sizes, pmf_of, distinct, n_items)


@compiled_strictly
def count_items(ranks: RankArray, sizes: RankArray) -> None:
    """Add up the number of free items, and of the items in each bucket, of each ranking."""
    for i in range(ranks.shape[0]):
        for a in range(ranks.shape[1]):
            sizes[i, ranks[i, a] + 1] += 1


@compiled_strictly
def coded_items(ranks: RankArray, shape_of: Indices, codes: Indices, starts: IntArray) -> tuple[IntArray, IntArray]:
    """Return the items whose bucket has a nonnegative code, and the codes; write where each ranking starts."""
    for i in range(ranks.shape[0]):
        count = 0
        for a in range(ranks.shape[1]):
            if codes[shape_of[i], ranks[i, a] + 1] >= 0:
                count += 1
        starts[i + 1] = starts[i] + count
    items = np.empty(starts[-1], np.int64)
    chosen = np.empty(starts[-1], np.int64)
    index = 0
    for i in range(ranks.shape[0]):
        for a in range(ranks.shape[1]):
            code = codes[shape_of[i], ranks[i, a] + 1]
            if code >= 0:
                items[index] = a
                chosen[index] = code
                index += 1
    return items, chosen


@compiled_strictly
def bucket_pmfs(buckets: IntArray, n: int) -> FloatArray:
    """Return the distribution of the position of an item of each bucket, among n items.

    A bucket is given by the number m of listed items, and by the first rank and one past the last rank of the bucket.
    The listed item of rank s (from 0) has position p with probability ``C(p, s) C(n-1-p, m-1-s) / C(n, m)``, computed
    by ratios of neighbours from the mode outwards, which neither overflow nor underflow where they matter.
    """
    out = np.zeros((buckets.shape[0], n))
    pmf = np.empty(n)
    for i in range(buckets.shape[0]):
        m = buckets[i, 0]
        size = buckets[i, 2] - buckets[i, 1]
        for s in range(buckets[i, 1], buckets[i, 2]):
            if m == n:  # no free items
                out[i, s] = 1.0 / size
                continue
            last = n - m + s
            mode = min(max((s + 1) * (n + 1) // (m + 1) - 1, s), last)
            pmf[mode] = 1.0
            total = 1.0
            for p in range(mode, last):
                pmf[p + 1] = pmf[p] * (p + 1) / (p + 1 - s) * (last - p) / (n - 1 - p)
                total += pmf[p + 1]
            for p in range(mode, s, -1):
                pmf[p - 1] = pmf[p] * (p - s) / p * (n - p) / (last - p + 1)
                total += pmf[p - 1]
            for p in range(s, last + 1):
                out[i, p] += pmf[p] / (total * size)
    return out


# ---------------------------------------------------------------------- means of linear statistics


def pair_means(X: Any) -> FloatArray:
    """Return the mean of ``s_xy`` for each pair of items x < y, where s_xy is 1 if x is before y, else -1.

    The marginalised Kendall kernel is ``pair_means(X) @ pair_means(Y).T / P`` with ``P = n (n - 1) / 2``.
    """
    ranks = as_rankings(X).ranks
    return sign_means(ranks, free_sign_means(ranks), *np.triu_indices(ranks.shape[1], 1))


def sign_means(ranks: RankArray, means: FloatArray, x: Indices, y: Indices) -> FloatArray:
    """Return the mean signs of pairs of items (x, y), given those of listed items with free ones."""
    first, second = ranks[:, x], ranks[:, y]
    both_listed = (first != FREE) & (second != FREE)
    # The mean of a free item is 0, so the difference is that of the listed item of a mixed pair.
    return np.where(both_listed, np.sign(second - first), means[:, x] - means[:, y])


def rank_means(X: Any) -> FloatArray:
    """Return the mean position of each item minus ``(n - 1) / 2``."""
    ranks = as_rankings(X).ranks
    return -(ranks.shape[1] + 1) / 2 * free_sign_means(ranks) + 0.0  # adding 0 turns -0 into 0


def position_marginals(X: Any) -> FloatArray:
    """Return the probability ``D[i, x, p]`` that item x has position p in a uniform completion of ranking i."""
    rankings = as_rankings(X)
    result = position_distributions(rankings)
    return result.pmfs[result.of_items(rankings)]


STATISTIC_MEANS: dict[str, Callable[[Any], FloatArray]] = {
    "pairs": pair_means,
    "positions": position_marginals,
    "ranks": rank_means,
}


def statistic_means(X: Any, statistic: str) -> FloatArray:
    """Return the mean of a linear statistic over completions: "pairs" (signs), "positions" or "ranks" (centred)."""
    return STATISTIC_MEANS[statistic](X)


def statistic_parts(X: Rankings, statistic: str, step: int) -> Iterator[tuple[slice, FloatArray]]:
    """Yield the mean of a linear statistic in parts: ``step`` pairs or items at a time."""
    if statistic == "pairs":
        means, (x, y) = free_sign_means(X.ranks), np.triu_indices(X.n_items, 1)
        for part in slices(len(x), step):
            yield part, sign_means(X.ranks, means, x[part], y[part])
    elif statistic == "positions":
        result = position_distributions(X)
        of_items = result.of_items(X)
        for part in slices(X.n_items, step):
            yield part, result.pmfs[of_items[:, part]]
    else:
        yield slice(None), rank_means(X)


def free_sign_means(ranks: RankArray) -> FloatArray:
    """Return for each listed item x the mean of s_xy with a free item y; 0 for free items."""
    buckets = Buckets.of(ranks)
    return np.where(ranks == FREE, 0.0, 1 - 2 * buckets.means / (buckets.n_listed[:, None] + 1))


class Buckets(NamedTuple):
    """The bucket size and mean rank (from 1, among listed items) of each item; free items form one bucket."""

    sizes: IntArray
    means: FloatArray
    n_listed: IntArray

    @classmethod
    def of(cls, ranks: RankArray) -> Buckets:
        """Return the buckets of all items."""
        n_rankings, n_items = ranks.shape
        rows = np.arange(n_rankings)[:, None]
        # Free items, of rank -1, are counted in the last column, after all buckets.
        flat = (rows * (n_items + 1) + np.where(ranks == FREE, n_items, ranks)).ravel()
        sizes = np.bincount(flat, minlength=n_rankings * (n_items + 1)).reshape(n_rankings, n_items + 1)
        means = np.cumsum(sizes, axis=1) - (sizes - 1) / 2
        return cls(sizes[rows, ranks], means[rows, ranks], n_items - sizes[:, n_items])


# ---------------------------------------------------------------------- second moments


def rank_products(X: Any) -> FloatArray:
    """Return the mean of ``r(x) r(y)`` for each two items, where r is the position minus ``(n - 1) / 2``."""
    ranks = as_rankings(X).ranks
    n = ranks.shape[1]
    out = np.empty((*ranks.shape, n))
    for rows in slices(len(ranks), CHUNK_ENTRIES // n**2):
        fill_rank_products(ranks[rows], out[rows])
    return out


def pair_product_features(X: Any) -> FloatArray:
    """Return the mean of ``s_e s_f`` for each two pairs e <= f of items, times the square root of 2 if they differ.

    The mean of the squared Kendall kernel is the inner product of two rows divided by ``P**2``.
    """
    ranks = as_rankings(X).ranks
    n_pairs = ranks.shape[1] * (ranks.shape[1] - 1) // 2
    out = np.empty((len(ranks), n_pairs * (n_pairs + 1) // 2))
    e, f = np.triu_indices(n_pairs)
    factor = np.where(e == f, 1.0, np.sqrt(2.0))
    for rows in slices(len(ranks), CHUNK_ENTRIES // max(out.shape[1], 1)):
        fill_pair_products(ranks[rows], e, f, out[rows])
        out[rows] *= factor
    return out


def order_means(ranks: RankArray, buckets: Buckets) -> tuple[FloatArray, FloatArray]:
    """Return the means of s (t + 1) and of s, where s <= t are the ranks of two items, or of one, among the listed."""
    size, middle = buckets.sizes[:, :, None], buckets.means[:, :, None]
    other, same = buckets.means[:, None, :], ranks[:, :, None] == ranks[:, None, :]
    one = np.eye(ranks.shape[1], dtype=bool)
    small, large = np.minimum(middle, other), np.maximum(middle, other)
    inside = np.where(one, (size * size - 1) / 12, -(size + 1) / 4)
    product = np.where(same, middle * (middle + 1) + inside, small * (large + 1))
    return product, np.where(same & ~one, middle - (size + 1) / 6, small)


def fill_rank_products(ranks: RankArray, out: FloatArray) -> None:
    """Write the mean products of centred positions.

    Positions of listed items are order statistics of a uniform subset of 1..n. The products with free items follow,
    because centred positions sum to 0 and free items are exchangeable and uniform.
    """
    n, buckets = ranks.shape[1], Buckets.of(ranks)
    product, small = order_means(ranks, buckets)
    m, n_free = buckets.n_listed[:, None, None], np.maximum(n - buckets.n_listed, 1)[:, None, None]
    scale, middle, square = (n + 1) / (m + 1), (n + 1) / 2, (n * n - 1) / 12
    both = buckets.means[:, :, None] + buckets.means[:, None, :]
    listed = ranks != FREE
    value = product * scale * (n + 2) / (m + 2) - small * scale - middle * scale * both + middle * middle
    value = np.where(listed[:, :, None] & listed[:, None, :], value, 0.0)
    row = value.sum(axis=2)
    mixed = -np.where(listed, row, 0.0)[:, :, None] / n_free
    between = (row.sum(axis=1)[:, None, None] / n_free - square) / np.maximum(n_free - 1, 1)
    free = np.where(np.eye(n, dtype=bool), square, between)
    out[...] = np.where(listed[:, :, None], np.where(listed[:, None, :], value, mixed), free)
    out[...] = np.where(listed[:, None, :] & ~listed[:, :, None], mixed.transpose(0, 2, 1), out)


def fill_pair_products(ranks: RankArray, e: Indices, f: Indices, out: FloatArray) -> None:
    """Write the mean of ``s_e s_f`` for pairs of pairs.

    Two pairs without a common item are independent unless each consists of a listed and a free item. For two pairs with
    a common item, the random order of three items adds a covariance of plus or minus one third of its random part.
    """
    n, buckets = ranks.shape[1], Buckets.of(ranks)
    x, y = np.triu_indices(n, 1)
    means = sign_means(ranks, free_sign_means(ranks), x, y)
    m, listed = buckets.n_listed, ranks != FREE
    np.multiply(means[:, e], means[:, f], out=out)
    # Pairs that share an item: 1 for a pair with itself, else 1/3 or -1/3 by the ends at which they share it.
    same_end, other_end = (x[e] == x[f]) | (y[e] == y[f]), (x[e] == y[f]) | (y[e] == x[f])
    sign = np.where(e == f, 1.0, np.where(same_end, 1 / 3, np.where(other_end, -1 / 3, 0.0)))
    common = np.flatnonzero(sign)
    n_listed = listed[:, x].astype(np.int8) + listed[:, y]
    tied = ranks[:, x] == ranks[:, y]
    key_mean = buckets.means / (m[:, None] + 1)  # of the key of a listed item
    product, small = order_means(ranks, buckets)
    key_square = product / ((m + 1) * (m + 2))[:, None, None]
    key_variance = key_mean - np.diagonal(key_square, axis1=1, axis2=2)  # mean of V (1 - V) for the key V of an item
    key_variance = np.where(listed[:, x], key_variance[:, x], key_variance[:, y])
    tied_share = (buckets.sizes[:, x] + 1) / (m[:, None] + 1)
    kind, other = n_listed[:, e[common]], n_listed[:, f[common]]
    tied_e, tied_f = tied[:, e[common]], tied[:, f[common]]
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
            tied_e * tied_share[:, e[common]],
            tied_f * tied_share[:, f[common]],
            6 * key_variance[:, e[common]],
            6 * key_variance[:, f[common]],
        ],
        0.0,
    )
    out[:, common] += sign[common] * part
    # Two pairs of a listed and a free item each depend on the joint distribution of the listed keys.
    row, column = np.nonzero((n_listed[:, e] == 1) & (n_listed[:, f] == 1))
    first, second = e[column], f[column]
    is_first, is_second = listed[row, x[first]], listed[row, x[second]]
    one, two = np.where(is_first, x[first], y[first]), np.where(is_second, x[second], y[second])
    free_one, free_two = np.where(is_first, y[first], x[first]), np.where(is_second, y[second], x[second])
    both = key_mean[row, one] + key_mean[row, two]
    same_free = 1 - 2 * both + 4 * small[row, one, two] / (m[row] + 1)
    other_free = 1 - 2 * both + 4 * key_square[row, one, two]
    value = np.where(first == second, 1.0, np.where(free_one == free_two, same_free, other_free))
    out[row, column] = np.where(is_first == is_second, value, -value)

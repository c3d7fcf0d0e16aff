r"""The exponential Spearman kernel of rankings without free items: a moment series, or a permanent.

Inside a block of matched positions the squared distance is a constant less twice a sum of products,
:math:`d = C - 2 z`, where positions are centred so that :math:`E z = 0`. So

.. math:: E e^{-\nu d} = e^{-\nu C} \sum_s (2\nu)^s \, E z^s / s!,

and the moments of a sum of products over a random matching are sums over partitions. With :math:`|z| \le Z` and
:math:`x = 2 |\nu| Z` what is left out beyond an even degree D is at most :math:`t_D \sum_{j>0} x^j D!/(D+j)!`,
:math:`t_D` being the last term: the degree is raised until this is negligible. Where x is too large for that, or the
block small, the permanent of the block is summed over subsets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, IntArray
from rankernel._utils.partitions import PartitionIndex, all_partitions
from rankernel.errors import ExactnessError
from rankernel.gram.exact.matchings import Block, always_in_blocks, matching_of
from rankernel.gram.exact.overlap import Formula, Overlap, Shape

# A permanent of this size costs less than the series; up to the larger one it is still worth its time and memory.
SMALL_PERMANENT = 11
LARGEST_PERMANENT = 22

DEGREES = (8, 12, 16, 20, 24, 28)
TOLERANCE = 1e-13
# Moments of both signs cancel: the rounding error of the series is about exp(x) units in the last place.
LARGEST_ARGUMENT = 6.0
# Up to here x^28 / 28! is negligible whatever the moments are.
CERTAIN_ARGUMENT = 3.8


class ExponentialSpearman(Formula):
    r"""Exact :math:`E \exp(-\nu \sum_a (r_a - s_a)^2)` over the completions of two rankings.

    Covers a full ranking against any ranking without free items, and two rankings with at most one tie each (so two
    top-k lists), to a relative 1e-12. Blocks of more than 22 items need a moderate ``nu``: up to about 4 to 6 over the
    median distance :math:`(n^3 - n)/6`; beyond, :meth:`log_value` says that it cannot.

    Examples
    --------
    Three tied items: distances 0, 2, 2, 6, 6, 8 over the six permutations.

    >>> import numpy as np
    >>> tied = Overlap.of(np.zeros(3, np.int32), np.zeros(3, np.int32))
    >>> log_value, slope = ExponentialSpearman().log_value(tied, np.log(2) / 2)
    >>> print(round(float(np.exp(log_value)) * 6, 12))  # 1 + 2/2 + 2/8 + 1/16
    2.3125
    """

    name = "Spearman moment series or permanent"

    def covers(self, left: Shape, right: Shape) -> bool:
        """Say whether two rankings of these shapes have an exact value here, for a moderate nu."""
        return always_in_blocks(left, right)

    def is_accurate(self, left: Shape, right: Shape, nu: float) -> bool:
        """Say whether no block is too large for a permanent, or the series is accurate for the largest one."""
        return largest_block(left, right) <= LARGEST_PERMANENT or 2 * nu * largest_sum(left, right) <= CERTAIN_ARGUMENT

    def seconds(self, left: Shape, right: Shape, nu: float) -> float:
        """Return the time of the series, or of a permanent where that is needed."""
        size = largest_block(left, right)
        if size <= SMALL_PERMANENT or 2 * nu * largest_sum(left, right) > CERTAIN_ARGUMENT:
            return 1e-4 + 5e-9 * size * 2.0 ** min(size, LARGEST_PERMANENT)
        return 4e-3

    def log_value(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return the logarithm of the kernel and its derivative in nu.

        Raises
        ------
        ExactnessError
            If a block is too large for a permanent and nu too large for the series.
        """
        matching = matching_of(overlap)
        distance = float(((matching.left - matching.right) ** 2).sum())
        value, slope = self.log_rest(overlap, nu)
        return value - nu * distance, slope - distance

    def log_rest(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return the same for the items that are tied on some side."""
        value, slope = 0.0, 0.0
        for block in matching_of(overlap).blocks:
            block_value, block_slope = log_mean(block, float(nu))
            value += block_value
            slope += block_slope
        return value, slope


def largest_block(left: Shape, right: Shape) -> int:
    """Return how many items a block of two rankings of these shapes can have at most."""
    sizes = [max(shape.sizes, default=1) for shape in (left, right)]
    return max(sizes) if left.is_full or right.is_full else min(left.n_items, sum(sizes))


def largest_sum(left: Shape, right: Shape) -> float:
    """Return a bound on the absolute value of z in any block: all places, as far from the ties as they can be."""
    places = np.arange(left.n_items)
    away = [np.sort(np.maximum(np.abs(places), np.abs(places[::-1]))) for _ in range(2)]
    if not (left.is_full or right.is_full):
        away = [np.sort(np.abs(places - tie_mean(shape))) for shape in (left, right)]
    return float(away[0] @ away[1])


def tie_mean(shape: Shape) -> float:
    """Return the mean place of the one tie of a ranking."""
    bucket = int(np.argmax(shape.sizes))
    return sum(shape.sizes[:bucket]) + (shape.sizes[bucket] - 1) / 2


def log_mean(block: Block, nu: float) -> tuple[float, float]:
    """Return log E exp(-nu d) of one block and its derivative, by the cheapest method that is accurate."""
    if block.n_items > SMALL_PERMANENT:
        by_series = series(block, nu)
        if by_series is not None:
            return by_series
    if block.n_items > LARGEST_PERMANENT:
        raise ExactnessError(
            f"exp-Spearman at nu={nu:.3g} with {block.n_items} items in one tie (or in ties that meet) has no exact "
            f"value: the series is accurate only for smaller nu (about {suggested_nu(block):.2g} here), the permanent "
            f"feasible only up to {LARGEST_PERMANENT} items; lower nu, or use rk.MonteCarlo"
        )
    return permanent(block, nu)


# ---------------------------------------------------------------------- permanents


def permanent(block: Block, nu: float) -> tuple[float, float]:
    """Return log E exp(-nu d) and its derivative from the permanent of the block."""
    rows = np.concatenate([block.left_outer, block.left]).astype(np.float64)
    columns = np.concatenate([block.right_outer, block.right]).astype(np.float64)
    costs = (rows[:, None] - columns[None, :]) ** 2
    costs[: len(block.left_outer), : len(block.right_outer)] = np.inf
    value, slope = _loops.permanent.log_permanent(costs, nu)
    return float(value) + block.log_share, float(slope)


# ---------------------------------------------------------------------- the moment series


@dataclass(frozen=True)
class Centred:
    """A block with both sides centred at the means of their large buckets, so that d = constant - 2 z and E z = 0."""

    left: FloatArray
    right: FloatArray
    left_outer: FloatArray
    right_outer: FloatArray
    constant: float
    largest: float

    @classmethod
    def of(cls, block: Block) -> Centred:
        """Return the centred positions, the constant, and a bound on the absolute value of z."""
        left_mean, right_mean = block.left.mean(), block.right.mean()
        left, left_outer = block.left - left_mean, block.left_outer - left_mean
        right, right_outer = block.right - right_mean, block.right_outer - right_mean
        rows, columns = np.concatenate([left, left_outer]), np.concatenate([right, right_outer])
        offset = left_mean - right_mean
        constant = (rows**2).sum() + (columns**2).sum() + offset * len(rows) * offset
        constant += 2 * offset * (left_outer.sum() - right_outer.sum())
        largest = np.sort(np.abs(rows)) @ np.sort(np.abs(columns))
        return cls(left, right, left_outer, right_outer, float(constant), float(largest))


def series(block: Block, nu: float) -> tuple[float, float] | None:
    """Return log E exp(-nu d) and its derivative from the moments of z, None if no degree is accurate."""
    centred = Centred.of(block)
    if centred.largest == 0.0:
        return -nu * centred.constant, -centred.constant
    x = 2 * nu * centred.largest
    if abs(x) > LARGEST_ARGUMENT:
        return None
    for degree in DEGREES:
        moments = scaled_moments(block, centred, degree)
        if left_out(moments, abs(x)) < TOLERANCE:
            # E exp(2 nu z) >= 1 by Jensen's inequality: a small absolute error is a small relative one.
            total = float(np.polynomial.polynomial.polyval(x, moments))
            slope = float(np.polynomial.polynomial.polyval(x, moments[1:] * np.arange(1, degree + 1)))
            return math.log(total) - nu * centred.constant, 2 * centred.largest * slope / total - centred.constant
    return None


def left_out(moments: FloatArray, x: float) -> float:
    """Bound what the terms beyond the last, even, degree add to the series and to its derivative."""
    degree = len(moments) - 1
    term, value, slope = 1.0, 0.0, 0.0
    for j in range(1, 200):
        slope += term
        term *= x / (degree + j)
        value += term
        if term < 1e-3:
            break
    # The remaining terms are dominated by a geometric series of ratio below 1/2.
    return abs(float(moments[-1])) * x**degree * max(value + term, slope + 2 * term)


def scaled_moments(block: Block, centred: Centred, degree: int) -> FloatArray:
    """Return E (z/Z)^s / s! for s = 0, ..., degree, where Z is the bound on the absolute value of z."""
    table = partitions_up_to(degree)
    n_shared = block.n_shared
    left_scale, left_means = tail_means(pattern(block.left), degree)
    right_scale, right_means = tail_means(pattern(block.right), degree)
    moments = _loops.spearman_series.joint_moments(
        falling(n_shared, table.lengths) / (table.repeats * table.factorials),
        _loops.spearman_series.monomials(centred.left_outer / left_scale, table.grown, degree) / table.factorials,
        _loops.spearman_series.monomials(centred.right_outer / right_scale, table.grown, degree) / table.factorials,
        left_means,
        right_means,
        table.union,
        table.sizes,
        degree,
        len(block.left_outer) > 0,
        len(block.right_outer) > 0,
    )
    scaled: FloatArray = moments * (left_scale * right_scale / centred.largest) ** np.arange(degree + 1)
    return scaled


def pattern(positions: IntArray) -> bytes:
    """Return what the centred positions depend on, to be looked up by."""
    return bytes((positions - positions[0]).tobytes())


@lru_cache(maxsize=256)
def tail_means(shifted: bytes, degree: int) -> tuple[float, FloatArray]:
    """Return a scale, and for each partition the mean of the product of powers of distinct random positions."""
    table = partitions_up_to(degree)
    positions = np.frombuffer(shifted, dtype=np.int64)
    centred = positions - positions.mean()
    scale = float(np.abs(centred).max()) or 1.0
    sums = _loops.spearman_series.monomials(centred / scale, table.grown, degree)
    ways = falling(len(positions), table.lengths)
    return scale, sums * table.repeats / np.where(ways > 0, ways, 1.0)


def falling(n: int, lengths: IntArray) -> FloatArray:
    """Return n (n - 1) ... (n - length + 1) for each length, 0 where the length exceeds n."""
    factors = np.maximum(n - np.arange(lengths.max()), 0).astype(np.float64)
    products: FloatArray = np.concatenate([[1.0], np.cumprod(factors)])
    return products[lengths]


def suggested_nu(block: Block) -> float:
    """Return a nu for which the series is likely to be accurate."""
    return LARGEST_ARGUMENT / 3 / Centred.of(block).largest


@dataclass(frozen=True)
class Partitions:
    """All partitions of 0, 1, ..., degree, smaller totals first, and how to add parts to them."""

    sizes: IntArray
    lengths: IntArray
    factorials: FloatArray
    repeats: FloatArray
    grown: IntArray
    union: IntArray


@lru_cache(maxsize=8)
def partitions_up_to(degree: int) -> Partitions:
    """Return the partitions up to a degree with the tables that the series needs."""
    parts = np.arange(degree + 1)
    repeats = np.concatenate([all_partitions(size, degree + 1) for size in parts.tolist()])
    sizes, numbered = repeats @ parts, PartitionIndex.of(repeats)
    grown = np.full(repeats.shape, -1, dtype=np.int64)  # each partition with one more part k
    for k in parts[1:].tolist():
        fits = np.flatnonzero(sizes + k <= degree)
        grown[fits, k] = numbered.rows_of(numbered.codes[fits] + numbered.numbers[k])
    part = np.where(repeats > 0, parts, 0).max(axis=1)  # the largest
    parent = numbered.rows_of(numbered.codes - numbered.numbers[part])  # without it
    factorials = np.cumprod([1.0, *range(1, degree + 1)])
    return Partitions(
        sizes=sizes,
        lengths=repeats.sum(axis=1),
        factorials=np.prod(factorials**repeats, axis=1),
        repeats=np.prod(factorials[repeats], axis=1),
        grown=grown,
        union=_loops.spearman_series.unions(grown, parent, part, sizes, degree),
    )

r"""Exponential kernels of the Spearman distance between rankings without free items: a moment series, or a permanent.

Inside a group of matched positions (:mod:`rankernel.gram.exact.footrule`) the squared distance is a constant minus
twice a sum of products, :math:`d = C - 2 z`, where positions are centred so that :math:`E z = 0`. So

.. math:: E e^{-\nu d} = e^{-\nu C} \sum_s (2\nu)^s \, E z^s / s!,

and the moments of a sum of products over a random matching are sums over partitions. With :math:`|z| \le Z` and
:math:`x = 2 |\nu| Z` the remainder beyond an even degree D is at most :math:`t_D \sum_{j>0} x^j D!/(D+j)!`, :math:`t_D`
the last term: the degree is raised until this is negligible. If x is too large for that, or the group small, the
permanent of the group is summed over subsets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rankernel._loops.compiled import compiled
from rankernel._utils import FloatArray, IntArray
from rankernel._utils.combinatorics import PartitionIndex, all_partitions
from rankernel.errors import ExactnessError
from rankernel.gram.exact.footrule import Group, GroupsFormula
from rankernel.gram.exact.formulas import Formula, Shape
from rankernel.kernels.base import Kernel, decay_rate

SMALL_PERMANENT = 11  # items up to which a permanent is faster than the series (benchmarks/grid.py)
MAX_PERMANENT = 22  # items: 2^22 states, 0.5 s
DEGREES = range(8, 29, 4)
TOLERANCE = 1e-13
MAX_ARGUMENT = 6.0  # moments of both signs cancel: the rounding error is about exp(x) times the machine precision
CERTAIN_ARGUMENT = 3.8  # up to here x^28 / 28! is negligible for all moments


class ExponentialSpearman(GroupsFormula):
    r"""Exact :math:`E \exp(-\nu \sum_a (r_a - s_a)^2)` over the completions of two rankings.

    Covers a full ranking against any ranking without free items, and two rankings with at most one tie each (so two
    top-k lists), to a relative 1e-12. Groups of more than 22 items need a moderate ``nu``: up to about 4 to 6 over the
    median distance :math:`(n^3 - n)/6`; otherwise :meth:`group_mean` raises an error.

    Examples
    --------
    Three tied items: distances 0, 2, 2, 6, 6, 8 over the six permutations.

    >>> from rankernel.gram.exact.formulas import Overlap
    >>> tied = Overlap.of(np.zeros(3, np.int32), np.zeros(3, np.int32))
    >>> value = ExponentialSpearman().log_mean(tied, np.log(2) / 2).value
    >>> print(round(float(np.exp(value)) * 6, 12))  # 1 + 2/2 + 2/8 + 1/16
    2.3125
    """

    method = "series"
    power = 2

    def is_accurate(self, kernel: Kernel, left: Shape, right: Shape) -> bool:
        """Whether no group is too large for a permanent, or the series is accurate for the largest one."""
        if max_group(left, right) <= MAX_PERMANENT:
            return True
        return 2 * decay_rate(kernel, left.n_items) * max_product_sum(left, right) <= CERTAIN_ARGUMENT

    def seconds(self, kernel: Kernel, left: Shape, right: Shape) -> float:
        """Return the time of the series, or of a permanent where that is needed."""
        size, argument = max_group(left, right), 2 * decay_rate(kernel, left.n_items) * max_product_sum(left, right)
        if size <= SMALL_PERMANENT or argument > CERTAIN_ARGUMENT:
            return 1e-4 + 5e-9 * size * 2.0 ** min(size, MAX_PERMANENT)
        return 5e-4 if argument < 1 else 1.5e-3

    def group_mean(self, group: Group, rate: float) -> tuple[float, float]:
        """Return the logarithm of the mean of one group and its derivative, by the fastest method that is accurate."""
        if group.n_items > SMALL_PERMANENT:
            by_series = moment_series(group, rate)
            if by_series is not None:
                return by_series
        if group.n_items > MAX_PERMANENT:
            suggested = MAX_ARGUMENT / 3 / Centred.of(group).largest
            raise ExactnessError(
                f"exp-Spearman at nu={rate:.3g} with {group.n_items} items in one tie (or in ties that overlap) has no "
                f"exact value: the series is accurate only for smaller nu (about {suggested:.2g} here), the permanent "
                f"feasible only up to {MAX_PERMANENT} items; use a smaller nu, or rk.MonteCarlo"
            )
        return permanent_mean(group, rate)


FORMULAS: tuple[Formula, ...] = (ExponentialSpearman(),)


def max_group(left: Shape, right: Shape) -> int:
    """Return the largest number of items in a group of two rankings of these shapes."""
    sizes = [max(shape.sizes, default=1) for shape in (left, right)]
    return max(sizes) if left.is_full or right.is_full else min(left.n_items, sum(sizes))


def max_product_sum(left: Shape, right: Shape) -> float:
    """Return a bound on the absolute value of z in any group: all positions, as far from the ties as possible."""
    if left.is_full or right.is_full:
        positions = np.arange(left.n_items)
        away = np.sort(np.maximum(positions, positions[::-1]))
        return float(away @ away)
    return float(distances_from_tie(left) @ distances_from_tie(right))


@lru_cache(maxsize=2**12)
def distances_from_tie(shape: Shape) -> FloatArray:
    """Return the sorted distances of all positions from the mean position of the one tie of a ranking."""
    bucket = shape.sizes.index(max(shape.sizes))
    mean = sum(shape.sizes[:bucket]) + (shape.sizes[bucket] - 1) / 2
    return np.sort(np.abs(np.arange(shape.n_items) - mean))


def permanent_mean(group: Group, nu: float) -> tuple[float, float]:
    """Return log E exp(-nu d) of one group and its derivative from a permanent."""
    rows = np.concatenate([group.left_outer, group.left]).astype(np.float64)
    columns = np.concatenate([group.right_outer, group.right]).astype(np.float64)
    costs = (rows[:, None] - columns[None, :]) ** 2
    costs[: len(group.left_outer), : len(group.right_outer)] = np.inf
    value, derivative = log_permanent(costs, nu)
    return float(value) + group.log_share, float(derivative)


# ---------------------------------------------------------------------- the moment series


@dataclass(frozen=True)
class Centred:
    """A group with both sides centred at the means of their large buckets, so that d = constant - 2 z and E z = 0."""

    left: FloatArray
    right: FloatArray
    left_outer: FloatArray
    right_outer: FloatArray
    constant: float
    largest: float

    @classmethod
    def of(cls, group: Group) -> Centred:
        """Return the centred positions, the constant, and a bound on the absolute value of z."""
        left_mean, right_mean = group.left.mean(), group.right.mean()
        left, left_outer = group.left - left_mean, group.left_outer - left_mean
        right, right_outer = group.right - right_mean, group.right_outer - right_mean
        rows, columns = np.concatenate([left, left_outer]), np.concatenate([right, right_outer])
        shift = left_mean - right_mean
        constant = (rows**2).sum() + (columns**2).sum() + shift * len(rows) * shift
        constant += 2 * shift * (left_outer.sum() - right_outer.sum())
        largest = np.sort(np.abs(rows)) @ np.sort(np.abs(columns))
        return cls(left, right, left_outer, right_outer, float(constant), float(largest))


def moment_series(group: Group, nu: float) -> tuple[float, float] | None:
    """Return log E exp(-nu d) and its derivative from the moments of z, None if no degree is accurate."""
    centred = Centred.of(group)
    if centred.largest == 0.0:
        return -nu * centred.constant, -centred.constant
    x = 2 * nu * centred.largest
    if abs(x) > MAX_ARGUMENT:
        return None
    for degree in DEGREES:
        moments = scaled_moments(group, centred, degree)
        if remainder(moments, abs(x)) < TOLERANCE:
            # E exp(2 nu z) >= 1 by Jensen's inequality, so a small absolute error is a small relative one.
            total = float(np.polynomial.polynomial.polyval(x, moments))
            d_total = float(np.polynomial.polynomial.polyval(x, moments[1:] * np.arange(1, degree + 1)))
            return math.log(total) - nu * centred.constant, 2 * centred.largest * d_total / total - centred.constant
    return None


def remainder(moments: FloatArray, x: float) -> float:
    """Return a bound on the terms beyond the last, even, degree of the series and of its derivative."""
    degree = len(moments) - 1
    term, value, derivative = 1.0, 0.0, 0.0
    for j in range(1, 200):
        derivative += term
        term *= x / (degree + j)
        value += term
        if term < 1e-3:
            break
    # The remaining terms are dominated by a geometric series of ratio below 1/2.
    return abs(float(moments[-1])) * x**degree * max(value + term, derivative + 2 * term)


def scaled_moments(group: Group, centred: Centred, degree: int) -> FloatArray:
    """Return E (z/Z)^s / s! for s = 0, ..., degree, where Z is the bound on the absolute value of z."""
    table = partitions_up_to(degree)
    left_scale, left_means = position_moments(relative_positions(group.left), degree)
    right_scale, right_means = position_moments(relative_positions(group.right), degree)
    moments = joint_moments(
        falling(group.n_shared, table.lengths) / (table.repeats * table.factorials),
        monomials(centred.left_outer / left_scale, table.grown, degree) / table.factorials,
        monomials(centred.right_outer / right_scale, table.grown, degree) / table.factorials,
        left_means,
        right_means,
        table.union,
        table.sizes,
        degree,
        len(group.left_outer) > 0,
        len(group.right_outer) > 0,
    )
    scaled: FloatArray = moments * (left_scale * right_scale / centred.largest) ** np.arange(degree + 1)
    return scaled


def relative_positions(positions: IntArray) -> bytes:
    """Return positions relative to the first one as a key for a cache."""
    return bytes((positions - positions[0]).tobytes())


@lru_cache(maxsize=256)
def position_moments(relative: bytes, degree: int) -> tuple[float, FloatArray]:
    """Return a scale, and for each partition the mean of the product of powers of distinct random positions."""
    table = partitions_up_to(degree)
    positions = np.frombuffer(relative, dtype=np.int64)
    centred = positions - positions.mean()
    scale = float(np.abs(centred).max()) or 1.0
    sums = monomials(centred / scale, table.grown, degree)
    ways = falling(len(positions), table.lengths)
    return scale, sums * table.repeats / np.where(ways > 0, ways, 1.0)


def falling(n: int, lengths: IntArray) -> FloatArray:
    """Return n (n - 1) ... (n - length + 1) for each length, 0 where the length exceeds n."""
    factors = np.maximum(n - np.arange(lengths.max()), 0).astype(np.float64)
    products: FloatArray = np.concatenate([[1.0], np.cumprod(factors)])
    return products[lengths]


@dataclass(frozen=True)
class Partitions:
    """All partitions of 0, 1, ..., degree, smaller totals first, and the results of adding parts to them."""

    sizes: IntArray
    lengths: IntArray
    factorials: FloatArray
    repeats: FloatArray
    grown: IntArray
    union: IntArray


@lru_cache(maxsize=8)
def partitions_up_to(degree: int) -> Partitions:
    """Return the partitions up to a degree with the tables of the series."""
    parts = np.arange(degree + 1)
    repeats = np.concatenate([all_partitions(size, degree + 1) for size in parts.tolist()])
    sizes, index = repeats @ parts, PartitionIndex.of(repeats)
    grown = np.full(repeats.shape, -1, dtype=np.int64)  # each partition with one more part k
    for k in parts[1:].tolist():
        fits = np.flatnonzero(sizes + k <= degree)
        grown[fits, k] = index.rows_of(index.codes[fits] + index.numbers[k])
    largest = np.where(repeats > 0, parts, 0).max(axis=1)
    parent = index.rows_of(index.codes - index.numbers[largest])
    factorials = np.cumprod([1.0, *range(1, degree + 1)])
    return Partitions(
        sizes=sizes,
        lengths=repeats.sum(axis=1),
        factorials=np.prod(factorials**repeats, axis=1),
        repeats=np.prod(factorials[repeats], axis=1),
        grown=grown,
        union=unions(grown, parent, largest, sizes, degree),
    )


# ---------------------------------------------------------------------- compiled loops


@compiled
def monomials(values, grown, degree):
    """Return the monomial symmetric function of ``values`` for every partition of 0, 1, ..., degree.

    ``grown[i, k]`` is the partition i with one more part k, -1 beyond the degree; larger partitions come later.
    """
    n_partitions = grown.shape[0]
    sums, powers = np.zeros(n_partitions), np.ones(degree + 1)
    sums[0] = 1.0
    for value in values:
        for k in range(1, degree + 1):
            powers[k] = powers[k - 1] * value
        # Largest first, in place: each partition is extended before it is updated, so that no value occurs twice.
        for i in range(n_partitions - 1, -1, -1):
            if sums[i] != 0.0:
                for k in range(1, degree + 1):
                    if grown[i, k] < 0:
                        break
                    sums[grown[i, k]] += sums[i] * powers[k]
    return sums


@compiled
def unions(grown, parent, part, sizes, degree):
    """Return the index of the union of every two partitions of together at most ``degree``, row after row."""
    n_partitions = grown.shape[0]
    below = np.searchsorted(sizes, np.arange(degree + 2))
    n_unions = 0
    for i in range(n_partitions):
        n_unions += below[degree - sizes[i] + 1]
    out, start = np.empty(n_unions, dtype=np.int64), 0
    for i in range(n_partitions):
        count = below[degree - sizes[i] + 1]
        out[start] = i
        for j in range(1, count):
            out[start + j] = grown[out[start + parent[j]], part[j]]
        start += count
    return out


@compiled
def joint_moments(
    shared, left_outer, right_outer, left_means, right_means, union, sizes, degree, has_left_outer, has_right_outer
):
    """Return E z^s / s! for s = 0, ..., degree, where z is a sum of products over a random matching.

    The exponents of the shared items form a partition; given it, the two sides are independent.
    """
    out = np.zeros(degree + 1)
    below = np.searchsorted(sizes, np.arange(degree + 2))
    with_left, with_right = np.zeros(degree + 1), np.zeros(degree + 1)
    start = 0
    for i in range(len(shared)):
        rest = degree - sizes[i]
        if shared[i] != 0.0:
            left_rest, right_rest = rest if has_left_outer else 0, rest if has_right_outer else 0
            for s in range(left_rest + 1):
                with_left[s] = 0.0
                for j in range(below[s], below[s + 1]):
                    with_left[s] += left_outer[j] * right_means[union[start + j]]
            for s in range(right_rest + 1):
                with_right[s] = 0.0
                for j in range(below[s], below[s + 1]):
                    with_right[s] += right_outer[j] * left_means[union[start + j]]
            for s in range(left_rest + 1):
                for t in range(min(right_rest, rest - s) + 1):
                    out[sizes[i] + s + t] += shared[i] * with_left[s] * with_right[t]
        start += below[rest + 1]
    return out


@np.errstate(under="ignore")
def log_permanent(costs: FloatArray, nu: float) -> tuple[float, float]:
    """Return log per(exp(-nu costs)) and its derivative in nu, by dynamic programming over subsets of columns.

    ``inf`` forbids a pair. Potentials of the best matching are taken out of the rows and columns first, so that its
    term is 1 and no other is larger: nothing over- or underflows that matters. Time n 2^n, memory 2^n.
    """
    from scipy.optimize import linear_sum_assignment

    known = np.where(np.isinf(costs), 0.0, costs)
    scaled = np.where(np.isinf(costs), np.inf, nu * known)
    matched = linear_sum_assignment(scaled)[1]
    best = scaled[:, matched]  # its diagonal is the best matching
    rows = np.zeros(len(costs))
    for _ in rows:  # shortest paths: rows[i] + columns[j] <= scaled[i, j], equal along the best matching
        rows = np.minimum(rows, (rows + best - np.diag(best)).min(axis=1))
    columns = np.empty_like(rows)
    columns[matched] = np.diag(best) - rows
    weights = np.exp(rows[:, None] + columns - scaled)
    sums, derivatives = np.zeros((2, 1 << len(costs)))
    sums[0] = 1.0
    sum_over_subsets(known, weights, sums, derivatives)
    return math.log(sums[-1]) - rows.sum() - columns.sum(), derivatives[-1] / sums[-1]


@compiled
def sum_over_subsets(costs, weights, sums, derivatives):
    """Write the permanents of the first rows for every subset of as many columns, and their derivatives."""
    n = weights.shape[0]
    for subset in range((1 << n) - 1):
        value, derivative = sums[subset], derivatives[subset]
        if value == 0.0:
            continue
        row, members = 0, subset
        while members:
            members &= members - 1
            row += 1
        for j in range(n):
            if not (subset >> j) & 1 and weights[row, j] > 0.0:
                sums[subset | (1 << j)] += weights[row, j] * value
                derivatives[subset | (1 << j)] += weights[row, j] * (derivative - costs[row, j] * value)

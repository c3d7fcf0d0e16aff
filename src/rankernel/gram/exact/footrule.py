r"""Exponential kernels of the footrule between rankings without free items, by a sweep over positions.

A kernel ``E exp(-nu sum_a c(r_a, s_a))`` averages over the assignments of positions to tied items. Each is a matching
of left positions with right ones, and buckets that share no item, directly or through others, are matched separately.
If in such a group of buckets at most one on either side is not inside a bucket of the other, the average over the group
is a permanent:

.. math:: E = \frac{d!}{N!\,N'!} \operatorname{per}(W), \qquad W_{pq} = e^{-\nu c(p, q)},

with :math:`N, N'` the sizes of its two large buckets, :math:`d` the number of items they share, and :math:`W = 0` where
an item that is only in the right one would meet an item that is only in the left one.

For the footrule the total displacement of a matching is the sum, over the gaps between neighbouring positions, of the
number of matched pairs that straddle the gap. A sweep over positions whose state is the number of unmatched positions
sums over all matchings in polynomial time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankernel._loops.compiled import compiled
from rankernel._utils import FloatArray, Indices, IntArray, Mask
from rankernel.errors import ExactnessError
from rankernel.gram.evaluator import Block, slices
from rankernel.gram.exact.formulas import (
    CodeArray,
    Coder,
    Formula,
    LogMean,
    Overlap,
    Pairs,
    Shape,
    empty_codes,
    have_one_tie,
    salts,
)
from rankernel.kernels.base import Kernel, decay_rate, is_exponential
from rankernel.rankings import Rankings

MAX_STEPS = 60_000_000  # states that a sweep visits: about half a second
SAFE_EXPONENT = 400.0  # sums with smaller exponents neither overflow nor underflow
SAFE_ITEMS = 60
PAIRS_AT_ONCE = 4096  # pairs of rankings whose positions are laid out at once

NONE = np.empty(0, dtype=np.int64)


# ---------------------------------------------------------------------- groups of matched positions


@dataclass(frozen=True)
class Group:
    """One large bucket on either side, and the buckets that are inside one of them only."""

    left: IntArray  # positions of the two large buckets
    right: IntArray
    left_outer: IntArray  # left positions of the items that are only in the right bucket
    right_outer: IntArray  # right positions of the items that are only in the left bucket

    @property
    def n_shared(self) -> int:
        """Number of items that are in both large buckets."""
        return len(self.left) - len(self.right_outer)

    @property
    def n_items(self) -> int:
        """Number of items in the group."""
        return len(self.left) + len(self.left_outer)

    @property
    def log_share(self) -> float:
        """Logarithm of the weight of one matching in the average."""
        shared, left, right = (math.lgamma(m + 1) for m in (self.n_shared, len(self.left), len(self.right)))
        return shared - left - right


@dataclass(frozen=True)
class Matching:
    """Positions of the items that are tied on neither side, and the groups of the others."""

    left: IntArray
    right: IntArray
    groups: tuple[Group, ...]


def always_in_groups(left: Shape, right: Shape) -> bool:
    """Whether all rankings of these shapes split into groups: one is full, or each has at most one tie."""
    if not (left.is_exhaustive and right.is_exhaustive):
        return False
    return left.is_full or right.is_full or have_one_tie(left, right)


def matching_of(overlap: Overlap) -> Matching:
    """Return the matched positions of two rankings without free items.

    Raises
    ------
    ExactnessError
        If buckets are linked in more ways than a group allows.
    """
    shared = overlap.counts[:-1, :-1] > 0
    rows, columns = bucket_positions(overlap.left_shape), bucket_positions(overlap.right_shape)
    row_degree, column_degree = shared.sum(axis=1), shared.sum(axis=0)
    singles: list[tuple[int, int]] = []
    groups: list[Group] = []
    for i in range(len(rows)):
        inside = np.flatnonzero(shared[i])
        wide = inside[column_degree[inside] > 1]
        if row_degree[i] > 1:
            groups.append(group_around(i, inside, wide, shared, rows, columns, row_degree))
        elif not len(wide) and len(rows[i]) == 1:
            singles.append((rows[i][0], columns[inside[0]][0]))
        elif not len(wide):
            groups.append(Group(rows[i], columns[inside[0]], NONE, NONE))
    for j in np.flatnonzero(column_degree > 1):
        inside = np.flatnonzero(shared[:, j])
        if not (row_degree[inside] > 1).any():
            groups.append(Group(joined(rows, inside), columns[j], NONE, NONE))
    pairs = np.array(singles, dtype=np.int64).reshape(-1, 2)
    return Matching(pairs[:, 0], pairs[:, 1], tuple(groups))


def group_around(
    i: int,
    inside: Indices,
    wide: Indices,
    shared: Mask,
    rows: list[IntArray],
    columns: list[IntArray],
    row_degree: IntArray,
) -> Group:
    """Return the group of a left bucket that meets several right ones; those in ``wide`` meet other left ones."""
    if not len(wide):
        return Group(rows[i], joined(columns, inside), NONE, NONE)
    others = np.flatnonzero(shared[:, wide[0]])
    others = others[others != i]
    if len(wide) > 1 or (row_degree[others] > 1).any():
        raise ExactnessError(
            "two rankings with several ties each overlap in a chain of buckets, for which there is no exact formula; "
            "use method='auto' or rk.MonteCarlo"
        )
    return Group(rows[i], columns[wide[0]], joined(rows, others), joined(columns, inside[inside != wide[0]]))


def bucket_positions(shape: Shape) -> list[IntArray]:
    """Return the positions of each bucket."""
    ends = np.cumsum(shape.sizes)
    return [np.arange(end - size, end, dtype=np.int64) for end, size in zip(ends, shape.sizes, strict=True)]


def joined(parts: list[IntArray], which: Indices) -> IntArray:
    """Return the positions of several buckets together."""
    return np.concatenate([parts[i] for i in which]) if len(which) else NONE


# ---------------------------------------------------------------------- codes


def one_tie_coder(X: Rankings, Y: Rankings, power: int) -> Coder:
    """Return codes of two rankings with one tie each, for the sum of ``|difference of positions|^power``.

    They depend on the ties and on the positions that meet a tie; the cost of all other items is the offset.
    """
    n = X.n_items
    salt, of_tie = salts(2, n + 1), salts((n + 1) ** 2)
    (left, tie), (right, other_tie) = (
        (single_positions(side), of_tie[tie_bounds(side) @ np.array([n + 1, 1])]) for side in (X, Y)
    )

    def codes(block: Block) -> tuple[CodeArray, IntArray]:
        (rows, columns), (out, offsets) = block, empty_codes(X, Y, block)
        ties = tie[rows], other_tie[columns] * np.uint64(3)
        one_tie_codes(left[rows], right[columns], *ties, salt, power, out, offsets)
        return out, offsets

    return codes


def single_positions(X: Rankings) -> IntArray:
    """Return the position of each single item, -1 for tied ones."""
    sizes = X.bucket_sizes()
    positions = np.where(sizes > 1, -1, np.cumsum(sizes, axis=1) - sizes)
    return np.take_along_axis(positions, X.ranks, axis=1)


def tie_bounds(X: Rankings) -> IntArray:
    """Return the start and end of the one tie of each ranking, both 0 if it is full."""
    sizes = X.bucket_sizes()
    bucket = np.argmax(sizes, axis=1)[:, None]
    size = np.take_along_axis(sizes, bucket, axis=1)
    end = np.take_along_axis(np.cumsum(sizes, axis=1), bucket, axis=1)
    return np.hstack([np.where(size > 1, end - size, 0), np.where(size > 1, end, 0)]).astype(np.int64)


# ---------------------------------------------------------------------- the formula


class ExponentialFootrule(Formula):
    r"""Exact :math:`E \exp(-\nu \sum_a |r_a - s_a|)` over the completions of two rankings.

    Covers a full ranking against any ranking without free items, and two rankings with at most one tie each (so two
    top-k lists). All terms are positive and scaled, so that many items or a large ``nu`` lose no digits.

    Examples
    --------
    Three tied items: distances 0, 2, 2, 4, 4, 4 over the six permutations.

    >>> tied = Overlap.of(np.zeros(3, np.int32), np.zeros(3, np.int32))
    >>> print(round(float(np.exp(ExponentialFootrule().log_mean(tied, np.log(2)).value)) * 6, 12))  # 1 + 2/4 + 3/16
    1.6875
    """

    method = "dynamic program"
    by_profile = True

    def covers(self, kernel: Kernel, left: Shape, right: Shape) -> bool:
        """Whether all overlaps of these shapes split into groups, and a sweep has few steps."""
        return (
            is_exponential(kernel, left.n_items)
            and always_in_groups(left, right)
            and n_sweep_steps(left, right) <= MAX_STEPS
        )

    def seconds(self, kernel: Kernel, left: Shape, right: Shape) -> float:
        """Return the time of the sweep, which reaches a part of the states; scaled sums take longer."""
        n_items, rate = left.n_items, decay_rate(kernel, left.n_items)
        is_safe = have_one_tie(left, right) and rate * n_items**2 < SAFE_EXPONENT and n_items <= SAFE_ITEMS
        return 2e-5 + (1e-9 if is_safe else 6e-9) * n_sweep_steps(left, right)

    def coder(self, X: Rankings, Y: Rankings, pairs: Pairs) -> Coder:
        """Return codes of the positions that meet a tie, for rankings with one tie each."""
        return one_tie_coder(X, Y, 1) if all(have_one_tie(*pair) for pair in pairs) else super().coder(X, Y, pairs)

    def solve(
        self, kernel: Kernel, rate: float | None, X: Rankings, Y: Rankings, rows: Indices, columns: Indices
    ) -> Sequence[tuple[Any, ...]]:
        """Return the log means of several pairs; rankings with one tie each in one compiled loop."""
        assert rate is not None
        out: list[tuple[Any, ...]] = []
        for part in slices(len(rows), PAIRS_AT_ONCE):
            left, right = X[rows[part]], Y[columns[part]]
            if any(((side.bucket_sizes() > 1).sum(axis=1) > 1).any() for side in (left, right)):
                return super().solve(kernel, rate, X, Y, rows, columns)
            positions, others = single_positions(left), single_positions(right)
            offsets = np.abs(positions - others).sum(axis=1, where=(positions >= 0) & (others >= 0))
            result = one_tie_means(positions, others, tie_bounds(left), tie_bounds(right), rate)
            out.extend((offset, *pair) for offset, pair in zip(offsets.tolist(), result.tolist(), strict=True))
        return out

    def log_mean(self, overlap: Overlap, rate: float) -> LogMean:
        """Return the sum of the logarithms of all groups."""
        matching = matching_of(overlap)
        value = derivative = 0.0
        for group in matching.groups:
            log_permanent, d_log_permanent = sweep_group(group, rate)
            value += log_permanent + group.log_share
            derivative += d_log_permanent
        return LogMean(int(np.abs(matching.left - matching.right).sum()), value, derivative)


FORMULAS: tuple[Formula, ...] = (ExponentialFootrule(),)


def n_sweep_steps(left: Shape, right: Shape) -> int:
    """Return a bound on the number of states that the sweep visits."""
    tied, tied_too = max(left.sizes, default=0), max(right.sizes, default=0)
    n_items = left.n_items
    if left.is_full or right.is_full:
        return 2 * n_items * max(tied, tied_too)
    outer, outer_too = min(n_items - tied, tied_too), min(n_items - tied_too, tied)
    return 2 * n_items * (outer + 1) * (outer_too + 1) * min(tied, tied_too)


def sweep_group(group: Group, nu: float) -> tuple[float, float]:
    """Return the logarithm of the permanent of a group and its derivative in nu."""
    parts = (group.left_outer, group.right_outer, group.left, group.right)
    positions = np.concatenate(parts)
    kinds = np.repeat(np.arange(4), [len(part) for part in parts])
    order = np.argsort(positions, kind="stable")
    value, derivative = log_permanent(positions[order], kinds[order], float(nu))
    return float(value), float(derivative)


def one_tie_means(X: IntArray, Y: IntArray, tie: IntArray, tie_Y: IntArray, nu: float) -> FloatArray:
    """Return the logarithm of the mean over all ways to break one tie on each side, and its derivative, pair by pair.

    ``X[k, a]`` is the position of item a, -1 if it is tied; ``tie[k]`` is the start and end of the tie.
    """
    from scipy.special import gammaln

    n_pairs, n = X.shape
    present = np.zeros((n_pairs, n, 4), dtype=np.bool_)  # by position and kind
    position = np.arange(n)
    for kind, (one, other, bounds) in enumerate([(X, Y, tie), (Y, X, tie_Y)]):
        pair, item = np.nonzero((one >= 0) & (other < 0))
        present[pair, one[pair, item], kind] = True  # outer positions
        present[:, :, 2 + kind] = (bounds[:, :1] <= position) & (position < bounds[:, 1:])
    totals = present.sum(axis=1)
    starts = np.concatenate([[0], np.cumsum(totals.sum(axis=1))])
    _, positions, kinds = np.nonzero(present)
    result = np.zeros((n_pairs, 2))
    if nu * n * n < SAFE_EXPONENT and n <= SAFE_ITEMS:
        left_outer, right_outer, left, _ = totals.max(axis=0, initial=0)
        states = np.empty((4, left_outer + 2, right_outer + 2, left + 2))
        log_permanents(positions, kinds, starts, totals, nu, states, np.empty(2 * n + 1), result)
    else:
        for k in np.flatnonzero(np.diff(starts)).tolist():
            part = slice(starts[k], starts[k + 1])
            result[k] = log_permanent(positions[part], kinds[part], nu)
    _, right_outer, left, right = totals.T
    result[:, 0] += (
        gammaln(left - right_outer + 1) - gammaln(left + 1) - gammaln(right + 1)
    )  # shared items are interchangeable
    return result


# ---------------------------------------------------------------------- compiled loops

LEFT_OUTER, RIGHT_OUTER, LEFT, RIGHT = 0, 1, 2, 3
LOG_2 = math.log(2.0)


@compiled
def one_tie_codes(X, Y, tie, tie_Y, salt, power, out, offsets):
    """Write a code of the ties and of the positions that meet a tie, and the cost of items that are tied on no side.

    ``X[i, a]`` is the position of item a, -1 if it is tied. The cost is ``|difference|`` to the power 1 or 2.
    """
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            total, cost = tie[i] + tie_Y[j], 0
            for a in range(X.shape[1]):
                x, y = X[i, a], Y[j, a]
                if x >= 0 and y >= 0:
                    step = abs(x - y)
                    cost += step if power == 1 else step * step
                elif x >= 0:
                    total += salt[0, x]
                elif y >= 0:
                    total += salt[1, y]
            out[i, j] = total
            offsets[i, j] = cost


@compiled
def log_permanent(positions: IntArray, kinds: IntArray, nu: float) -> tuple[float, float]:
    """Return the log of the sum over all matchings of ``exp(-nu total displacement)``, and its derivative in nu.

    ``positions`` are in ascending order, each with its kind; outer positions are not matched with each other. A
    position that is still unmatched is open, and each step of the sweep costs as much as there are open positions. A
    state is the number of open positions of each kind: ``a`` left outer, ``b`` right outer, ``u`` left and ``v`` right,
    where ``v`` follows from the others.

    Every state has a separate power of two, as states with small values may dominate later.
    """
    total = np.bincount(kinds, minlength=4)
    shape = (total[LEFT_OUTER] + 1, total[RIGHT_OUTER] + 1, total[LEFT] + 1)
    # Value, derivative in nu and power of two of each state.
    value, derivative, power = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.int64)
    next_value, next_derivative, next_power = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.int64)
    value[0, 0, 0] = 1.0
    passed, rest = np.zeros(4, dtype=np.int64), total.copy()
    decay, decay_power, decay_gap = np.ones(len(kinds) + 1), np.zeros(len(kinds) + 1, dtype=np.int64), 0
    for step in range(len(kinds)):
        kind = kinds[step]
        passed[kind] += 1
        rest[kind] -= 1
        balance = passed[LEFT_OUTER] + passed[LEFT] - passed[RIGHT_OUTER] - passed[RIGHT]
        gap = positions[step + 1] - positions[step] if step + 1 < len(kinds) else 0
        if gap != decay_gap:
            fill_decay(nu * gap, decay, decay_power)
            decay_gap = gap
        next_value[:] = 0.0
        for a in range(min(passed[LEFT_OUTER], rest[RIGHT]) + 1):
            for b in range(min(passed[RIGHT_OUTER], rest[LEFT]) + 1):
                first, last = live_range(a, b, balance, passed, rest)
                for u in range(first, last + 1):
                    x, dx, e = arrivals(kind, a, b, u, a + u - b - balance, value, derivative, power)
                    if x > 0.0:
                        n_open = 2 * (a + u) - balance
                        dx -= gap * n_open * x
                        shift = normal_power(x)
                        factor = decay[n_open] * math.ldexp(1.0, -shift)
                        next_value[a, b, u], next_derivative[a, b, u] = factor * x, factor * dx
                        next_power[a, b, u] = e + decay_power[n_open] + shift
        value, next_value = next_value, value
        derivative, next_derivative = next_derivative, derivative
        power, next_power = next_power, power
    x = value[0, 0, 0]
    return math.log(x) + power[0, 0, 0] * LOG_2, derivative[0, 0, 0] / x


@compiled
def log_permanents(positions, kinds, starts, totals, nu, states, decay, out):
    """Write :func:`log_permanent` for each of many pairs whose sums neither overflow nor underflow.

    ``totals[k]`` are the numbers of positions of each kind, ``starts[k]`` is the index of the first position of pair k.
    Reachable states are surrounded by zeros instead of tests for their existence. Everything is one loop that allocates
    nothing large, as functions and new arrays would be compiled into it again.
    """
    value, derivative, next_value, next_derivative = states[0], states[1], states[2], states[3]
    passed, rest = np.zeros(4, np.int64), np.zeros(4, np.int64)
    decay_gap = 0
    for k in range(len(totals)):
        for kind in range(4):
            passed[kind], rest[kind] = 0, totals[k, kind]
        n_u = rest[LEFT] + 2
        for a in range(2):
            for b in range(2):
                for u in range(n_u):
                    value[a, b, u], derivative[a, b, u] = 0.0, 0.0
        value[0, 0, 0] = 1.0
        for step in range(starts[k], starts[k + 1]):
            kind = kinds[step]
            passed[kind] += 1
            rest[kind] -= 1
            balance = passed[LEFT_OUTER] + passed[LEFT] - passed[RIGHT_OUTER] - passed[RIGHT]
            gap = positions[step + 1] - positions[step] if step + 1 < starts[k + 1] else 0
            if gap > 0 and gap != decay_gap:
                for m in range(len(decay)):
                    decay[m] = math.exp(-nu * gap * m)
                decay_gap = gap
            most_a, most_b = min(passed[LEFT_OUTER], rest[RIGHT]), min(passed[RIGHT_OUTER], rest[LEFT])
            for a in range(most_a + 2):
                for b in range(most_b + 2):
                    for u in range(n_u):
                        next_value[a, b, u], next_derivative[a, b, u] = 0.0, 0.0
                    if a > most_a or b > most_b:
                        continue
                    first, last = live_range(a, b, balance, passed, rest)
                    for u in range(first, last + 1):
                        v = a + u - b - balance
                        if kind == LEFT_OUTER:
                            x, dx = (v + 1) * value[a, b, u], (v + 1) * derivative[a, b, u]
                            if a > 0:
                                x, dx = x + value[a - 1, b, u], dx + derivative[a - 1, b, u]
                        elif kind == RIGHT_OUTER:
                            x, dx = (u + 1) * value[a, b, u + 1], (u + 1) * derivative[a, b, u + 1]
                            if b > 0:
                                x, dx = x + value[a, b - 1, u], dx + derivative[a, b - 1, u]
                        elif kind == LEFT:
                            x = (v + 1) * value[a, b, u] + (b + 1) * value[a, b + 1, u]
                            dx = (v + 1) * derivative[a, b, u] + (b + 1) * derivative[a, b + 1, u]
                            if u > 0:
                                x, dx = x + value[a, b, u - 1], dx + derivative[a, b, u - 1]
                        else:
                            x = value[a, b, u] + (u + 1) * value[a, b, u + 1] + (a + 1) * value[a + 1, b, u]
                            dx = (
                                derivative[a, b, u]
                                + (u + 1) * derivative[a, b, u + 1]
                                + (a + 1) * derivative[a + 1, b, u]
                            )
                        n_open = 2 * (a + u) - balance
                        factor = decay[n_open] if gap > 0 else 1.0
                        next_value[a, b, u] = factor * x
                        next_derivative[a, b, u] = factor * (dx - gap * n_open * x)
            value, next_value = next_value, value
            derivative, next_derivative = next_derivative, derivative
        out[k, 0], out[k, 1] = math.log(value[0, 0, 0]), derivative[0, 0, 0] / value[0, 0, 0]


@compiled
def live_range(a: int, b: int, balance: int, passed: IntArray, rest: IntArray) -> tuple[int, int]:
    """Return the smallest and the largest u from which every open position can still be matched."""
    known = passed[LEFT] - passed[RIGHT_OUTER] + b
    n_shared = passed[LEFT] + rest[LEFT] - passed[RIGHT_OUTER] - rest[RIGHT_OUTER]
    first = max(0, b + balance - a, known - n_shared)
    last = min(known, rest[RIGHT] + rest[RIGHT_OUTER], rest[LEFT] + rest[LEFT_OUTER] + b + balance - a)
    return first, last


@compiled
def arrivals(
    kind: int, a: int, b: int, u: int, v: int, value: FloatArray, derivative: FloatArray, power: IntArray
) -> tuple[float, float, int]:
    """Return the sum, its derivative and power of two over the ways in which a position leads to a state.

    The position stays open, or is matched with one that is open on the other side; not two outer ones.
    """
    moves = (value, derivative, power)
    none = (0.0, 0.0, 0)
    if kind == LEFT_OUTER:
        result = add(none, v + 1, a, b, u, moves)
        return add(result, 1, a - 1, b, u, moves) if a > 0 else result
    if kind == RIGHT_OUTER:
        result = add(none, u + 1, a, b, u + 1, moves) if u + 1 < value.shape[2] else none
        return add(result, 1, a, b - 1, u, moves) if b > 0 else result
    if kind == LEFT:
        result = add(none, v + 1, a, b, u, moves)
        result = add(result, 1, a, b, u - 1, moves) if u > 0 else result
        return add(result, b + 1, a, b + 1, u, moves) if b + 1 < value.shape[1] else result
    result = add(none, 1, a, b, u, moves)
    result = add(result, u + 1, a, b, u + 1, moves) if u + 1 < value.shape[2] else result
    return add(result, a + 1, a + 1, b, u, moves) if a + 1 < value.shape[0] else result


@compiled
def add(
    result: tuple[float, float, int], ways: int, a: int, b: int, u: int, states: tuple[FloatArray, FloatArray, IntArray]
) -> tuple[float, float, int]:
    """Add a state times its number of ways to a scaled sum."""
    x, dx, e = result
    y, dy, f = ways * states[0][a, b, u], ways * states[1][a, b, u], states[2][a, b, u]
    if y == 0.0:
        return result
    if x == 0.0:
        return y, dy, f
    if f == e:
        return x + y, dx + dy, e
    if f < e:
        scale = math.ldexp(1.0, f - e)
        return x + scale * y, dx + scale * dy, e
    scale = math.ldexp(1.0, e - f)
    return scale * x + y, scale * dx + dy, f


@compiled
def normal_power(x: float) -> int:
    """Return the power of two to divide a number by: 0 while it is far from overflow and underflow."""
    if 1e-30 < x < 1e30:
        return 0
    return math.frexp(x)[1]


@compiled
def fill_decay(rate: float, decay: FloatArray, decay_power: IntArray) -> None:
    """Write exp(-rate m) for each number m of open positions, as a factor and a power of two."""
    for m in range(len(decay)):
        decay_power[m] = math.floor(-rate * m / LOG_2) if abs(rate * m) > 20.0 else 0
        decay[m] = math.exp(-rate * m - decay_power[m] * LOG_2)

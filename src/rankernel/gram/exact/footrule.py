r"""Exponential kernels of the footrule between rankings without free items, by a sweep over positions.

A kernel ``E exp(-nu sum_a c(r_a, s_a))`` averages over the assignments of positions to tied items. Each is a matching
of left positions with right ones, and buckets that share no item, directly or through others, are matched separately.
If one ranking is full, or each has at most one tie, the average over such a group of buckets is a permanent:

.. math:: E = \frac{d!}{N!\,N'!} \operatorname{per}(W), \qquad W_{pq} = e^{-\nu c(p, q)},

with :math:`N, N'` the sizes of its two large buckets, :math:`d` the number of items they share, and :math:`W = 0` where
an item that is only in the right one would meet an item that is only in the left one.

For the footrule the total displacement of a matching is the sum, over the gaps between neighbouring positions, of the
number of matched pairs that straddle the gap. A sweep over positions whose state is the number of unmatched positions
sums over all matchings in polynomial time.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankernel._loops.compiled import compiled
from rankernel._utils import FloatArray, Indices, IntArray, Mask, RankArray
from rankernel._utils.resources import slices
from rankernel.gram.exact.formulas import (
    Coder,
    Formula,
    LogMean,
    Overlap,
    Pairs,
    Shape,
    always_in_groups,
    have_one_tie,
    loop_coder,
    salts,
)
from rankernel.kernels.base import Kernel, decay_rate
from rankernel.rankings import Rankings

MAX_STEPS = 60_000_000  # states that a sweep visits: about half a second
SAFE_EXPONENT = 1000.0  # positions times (1 + nu times the largest one) up to which no sum underflows
PAIRS_AT_ONCE = 4096  # pairs of rankings whose positions are laid out at once

NONE = np.empty(0, dtype=np.int64)


# ---------------------------------------------------------------------- groups of matched positions


@dataclass(frozen=True)
class Group:
    """One tie on either side, and the other items of each tie."""

    left: IntArray  # positions of the two ties
    right: IntArray
    left_outer: IntArray  # left positions of the items that are only in the right tie
    right_outer: IntArray  # right positions of the items that are only in the left tie

    @property
    def n_shared(self) -> int:
        """Number of items that are in both ties."""
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


def matching_of(overlap: Overlap) -> Matching:
    """Return the matched positions of two rankings that :func:`always_in_groups`."""
    left, left_tied = item_positions(overlap.left, overlap.left_shape)
    right, right_tied = item_positions(overlap.right, overlap.right_shape)
    groups = []
    if (left_tied & right_tied).any():
        left_outer, right_outer = left[right_tied & ~left_tied], right[left_tied & ~right_tied]
        rows, columns = tie_positions(left[left_tied]), tie_positions(right[right_tied])
        if not len(right_outer):  # every left position may be matched with every right one
            rows, left_outer = np.concatenate([rows, left_outer]), NONE
        elif not len(left_outer):
            columns, right_outer = np.concatenate([columns, right_outer]), NONE
        groups.append(Group(rows, columns, left_outer, right_outer))
    else:  # all ties are separate
        for start in np.unique(left[left_tied]):
            items = left == start
            groups.append(Group(tie_positions(left[items]), right[items], NONE, NONE))
        for start in np.unique(right[right_tied]):
            items = right == start
            groups.append(Group(left[items], tie_positions(right[items]), NONE, NONE))
    single = ~(left_tied | right_tied)
    return Matching(left[single], right[single], tuple(groups))


def item_positions(ranks: RankArray, shape: Shape) -> tuple[IntArray, Mask]:
    """Return the position of each item, of tied items the first one of their bucket, and which items are tied."""
    sizes = np.array(shape.sizes, dtype=np.int64)
    return (np.cumsum(sizes) - sizes)[ranks], sizes[ranks] > 1


def tie_positions(starts: IntArray) -> IntArray:
    """Return the positions of a bucket, given the first one for each of its items."""
    return starts + np.arange(len(starts))


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
    return loop_coder(one_tie_codes, [left, tie], [right, other_tie * np.uint64(3)], salt, power)


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


class GroupsFormula(Formula):
    r"""The mean of :math:`\exp(-\nu \sum_a |r_a - s_a|^p)` as a product of the means of all groups."""

    only_exponential = True
    shapes = staticmethod(always_in_groups)
    power: int

    @abstractmethod
    def group_mean(self, group: Group, rate: float) -> tuple[float, float]:
        """Return the logarithm of the mean of one group, and its derivative in the rate."""

    def coder(self, X: Rankings, Y: Rankings, pairs: Pairs) -> Coder:
        """Return codes of the positions that meet a tie, for rankings with one tie each."""
        in_one_loop = all(have_one_tie(*pair) for pair in pairs)
        return one_tie_coder(X, Y, self.power) if in_one_loop else super().coder(X, Y, pairs)

    def log_mean(self, overlap: Overlap, rate: float) -> LogMean:
        """Return the sum of the logarithms of all groups."""
        matching = matching_of(overlap)
        value = derivative = 0.0
        for group in matching.groups:
            log_value, d_log_value = self.group_mean(group, float(rate))
            value += log_value
            derivative += d_log_value
        return LogMean(int((np.abs(matching.left - matching.right) ** self.power).sum()), value, derivative)


class ExponentialFootrule(GroupsFormula):
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
    power = 1

    def seconds(self, kernel: Kernel, left: Shape, right: Shape) -> float | None:
        """Return the time of the sweep, which reaches a part of the states; in logarithms it takes longer."""
        n_steps = n_sweep_steps(left, right)
        if n_steps > MAX_STEPS:
            return None
        in_logs = decay_rate(kernel, left.n_items) * left.n_items**2 >= SAFE_EXPONENT
        return 1e-3 * left.n_items + 1e-7 * n_steps if in_logs else 2e-5 + 5e-10 * n_steps

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

    def group_mean(self, group: Group, rate: float) -> tuple[float, float]:
        """Return the logarithm of the mean of one group, and its derivative in the rate."""
        value, derivative = sweep_group(group, rate)
        return value + group.log_share, derivative


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
    positions, totals = np.concatenate(parts), np.array([[len(part) for part in parts]])
    order, kinds = np.argsort(positions, kind="stable"), np.repeat(np.arange(4), totals[0])
    value, derivative = sweep(positions[order], kinds[order], np.array([0, len(order)]), totals, nu)[0].tolist()
    return value, derivative


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
    result = sweep(positions, kinds, starts, totals, nu)
    _, right_outer, left, right = totals.T
    shared = left - right_outer  # items, which are interchangeable
    result[:, 0] += gammaln(shared + 1) - gammaln(left + 1) - gammaln(right + 1)
    return result


def sweep(positions: IntArray, kinds: IntArray, starts: IntArray, totals: IntArray, nu: float) -> FloatArray:
    """Return the log of the sum over all matchings of ``exp(-nu total displacement)``, and its derivative in nu.

    Pair k of rankings has the positions from index ``starts[k]`` on, in ascending order, each with its kind, and
    ``totals[k]`` positions of each kind. Outer positions are not matched with each other. A position that is still
    unmatched is open, and each step of the sweep costs as much as there are open positions. A state is the number of
    open positions of each kind: ``a`` left outer, ``b`` right outer, ``u`` left and ``v`` right, where ``v`` follows
    from the others.
    """
    result = np.zeros((len(totals), 2))
    (left_outer, right_outer, left, _), n_positions = totals.max(axis=0, initial=0), totals.sum(axis=1).max(initial=0)
    states = np.empty((4, left_outer + 2, right_outer + 2, left + 2))
    checked = bool(n_positions * (nu * positions.max(initial=0) + 1) > SAFE_EXPONENT)
    log_permanents(positions, kinds, starts, totals, nu, checked, states, np.empty(n_positions + 1), result)
    for k in np.flatnonzero(np.isnan(result[:, 0])).tolist():
        part = slice(starts[k], starts[k + 1])
        result[k] = log_permanent(positions[part], kinds[part], nu)
    return result


@np.errstate(divide="ignore", invalid="ignore", under="ignore")
def log_permanent(positions: IntArray, kinds: IntArray, nu: float) -> tuple[float, float]:
    """Return the same for one pair, with all sums in logarithms, at any rate."""
    a, b, u = np.indices((np.bincount(kinds, minlength=4)[:3] + 1).tolist())
    inside = slice(1, -1), slice(1, -1), slice(1, -1)  # of a margin of impossible states
    logs, derivatives = np.full((2, *np.add(a.shape, 2)), -np.inf)
    logs[1, 1, 1], derivatives[:], balance, offset = 0.0, 0.0, 0, 0.0
    for kind, gap in zip(kinds.tolist(), np.append(np.diff(positions), 0).tolist(), strict=True):
        balance += 1 if kind in (LEFT_OUTER, LEFT) else -1
        v, n_open = a + u - b - balance, 2 * (a + u) - balance
        # A position stays open, or is matched with an open one: the change of a, b and u, and the number of ways.
        changes = (
            [((1, 0, 0), 1), ((0, 0, 0), v + 1)],
            [((0, 1, 0), 1), ((0, 0, -1), u + 1)],
            [((0, 0, 1), 1), ((0, 0, 0), v + 1), ((0, -1, 0), b + 1)],
            [((0, 0, 0), 1), ((0, 0, -1), u + 1), ((-1, 0, 0), a + 1)],
        )[kind]
        before = [np.roll(np.stack([logs, derivatives]), change, (1, 2, 3))[:, *inside] for change, _ in changes]
        terms = np.stack([log + np.log(ways) for (log, _), (_, ways) in zip(before, changes, strict=True)])
        terms[:, v < 0] = -np.inf
        sums = np.logaddexp.reduce(terms)
        weighted = sum(np.exp(term - sums) * derivative for term, (_, derivative) in zip(terms, before, strict=True))
        derivatives[inside] = np.where(np.isfinite(sums), weighted - gap * n_open, 0.0)
        logs[inside] = sums - nu * gap * n_open
        offset += logs.max()
        logs -= logs.max()
    return float(logs[1, 1, 1] + offset), float(derivatives[1, 1, 1])


# ---------------------------------------------------------------------- compiled loops

LEFT_OUTER, RIGHT_OUTER, LEFT, RIGHT = range(4)
LOG_2 = math.log(2.0)
TINY = 1e-250
STEPS_AT_ONCE = 64  # sums grow by less than 1e280: each step multiplies them by at most three times the items


@compiled
def one_tie_codes(X, tie, Y, tie_Y, salt, power, out, offsets):
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
def log_permanents(positions, kinds, starts, totals, nu, checked, states, decay, out):
    """Write the results of :func:`sweep`, and nan if a sum underflows, which is ``checked`` where it is possible.

    The sum of a state is multiplied by u!, and all sums by a power of two now and then, so that those of many items do
    not overflow. Reachable states are surrounded by zeros instead of tests for their existence. Everything is one loop
    that allocates nothing large, as functions and new arrays would be compiled into it again.
    """
    value, derivative, next_value, next_derivative = states[0], states[1], states[2], states[3]
    passed, rest = np.zeros(4, np.int64), np.zeros(4, np.int64)
    decay_gap = 0
    for k in range(len(totals)):
        for kind in range(4):
            passed[kind], rest[kind] = 0, totals[k, kind]
        n_u, power, underflows = rest[LEFT] + 2, 0, False
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
                    # The smallest and the largest u from which every open position can still be matched.
                    known = passed[LEFT] - passed[RIGHT_OUTER] + b
                    n_shared = passed[LEFT] + rest[LEFT] - passed[RIGHT_OUTER] - rest[RIGHT_OUTER]
                    first = max(0, b + balance - a, known - n_shared)
                    last = min(known, rest[RIGHT] + rest[RIGHT_OUTER], rest[LEFT] + rest[LEFT_OUTER] + b + balance - a)
                    for u in range(first, last + 1):
                        v = a + u - b - balance
                        if kind == LEFT_OUTER:
                            x, dx = (v + 1) * value[a, b, u], (v + 1) * derivative[a, b, u]
                            if a > 0:
                                x, dx = x + value[a - 1, b, u], dx + derivative[a - 1, b, u]
                        elif kind == RIGHT_OUTER:
                            x, dx = value[a, b, u + 1], derivative[a, b, u + 1]
                            if b > 0:
                                x, dx = x + value[a, b - 1, u], dx + derivative[a, b - 1, u]
                        elif kind == LEFT:
                            x = (v + 1) * value[a, b, u] + (b + 1) * value[a, b + 1, u]
                            dx = (v + 1) * derivative[a, b, u] + (b + 1) * derivative[a, b + 1, u]
                            if u > 0:
                                x, dx = x + u * value[a, b, u - 1], dx + u * derivative[a, b, u - 1]
                        else:
                            x = value[a, b, u] + value[a, b, u + 1] + (a + 1) * value[a + 1, b, u]
                            dx = derivative[a, b, u] + derivative[a, b, u + 1] + (a + 1) * derivative[a + 1, b, u]
                        n_open = 2 * (a + u) - balance
                        factor = decay[n_open] if gap > 0 else 1.0
                        next_value[a, b, u] = factor * x
                        next_derivative[a, b, u] = factor * (dx - gap * n_open * x)
                        if checked and factor * x < TINY and x > 0.0:
                            underflows = True
            value, next_value = next_value, value
            derivative, next_derivative = next_derivative, derivative
            if underflows:
                break
            if (step - starts[k]) % STEPS_AT_ONCE == STEPS_AT_ONCE - 1:
                largest = 0.0
                for a in range(most_a + 1):
                    for b in range(most_b + 1):
                        for u in range(n_u):
                            largest = max(largest, value[a, b, u])
                shift = math.frexp(largest)[1]
                scale = math.ldexp(1.0, -shift)
                power += shift
                for a in range(most_a + 1):
                    for b in range(most_b + 1):
                        for u in range(n_u):
                            value[a, b, u] *= scale
                            derivative[a, b, u] *= scale
        out[k, 0] = np.nan
        if not underflows:
            out[k, 0], out[k, 1] = math.log(value[0, 0, 0]) + power * LOG_2, derivative[0, 0, 0] / value[0, 0, 0]

"""Exact means of functions of the Cayley distance: n less the cycles of the map between positions.

For two rankings with ties in many buckets the value is #P-hard to compute; with at most one tied bucket on each side
it is a short sum. Write q = exp(-nu).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, Mask
from rankernel._utils.log_sums import log_mean_exp, logs
from rankernel.gram.exact.overlap import DistanceLaw, Formula, Overlap, Shape

MOST_ITEMS = 300


class Unconstrained(Formula):
    """One side says nothing (at most one bucket, whatever is free): ``K = prod_{i<n} (1 + i q) / (1 + i)``.

    >>> from rankernel.gram.exact.overlap import Overlap
    >>> log_value, slope = Unconstrained().log_value(Overlap.of(np.array([-1, -1]), np.array([0, 1])), np.log(2))
    >>> round(math.exp(log_value), 12)  # (1 + 1/2) / 2
    0.75
    """

    name = "exp-Cayley, one ranking says nothing"

    def covers(self, left: Shape, right: Shape) -> bool:
        """At most one bucket on one side: each order of the items is a completion, equally likely."""
        return min(len(left.sizes), len(right.sizes)) <= 1

    def log_value(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return the logarithm of the kernel and its derivative in nu."""
        log_means, slopes = random_cycles(overlap.n_items, nu)
        return float(log_means[-1]), float(slopes[-1])


class TopKCycles(Formula):
    """Two top-k lists: ``K = q^(m - c) prod_{i<n-m} (1 + i q) / (1 + i)``, m the length of the shorter list.

    Of its places, c cycles close among themselves; all other places are joined at random.

    >>> from rankernel.gram.exact.overlap import Overlap
    >>> log_value, slope = TopKCycles().log_value(Overlap.of(np.array([0, 1, 1]), np.array([1, 0, 1])), np.log(2))
    >>> round(math.exp(log_value), 12)  # (1/2 + 1/4) / 2
    0.375
    """

    name = "exp-Cayley, top-k lists (random cycles)"

    def covers(self, left: Shape, right: Shape) -> bool:
        """Single items and one last bucket, none free, on both sides."""
        return left.is_top_k and right.is_top_k

    def log_value(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return the logarithm of the kernel and its derivative in nu."""
        value, slope = self.log_rest(overlap, nu)
        apart = top_k_cycles(overlap)[1]
        return value - nu * apart, slope - apart

    def log_rest(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return the same for the places that are joined at random."""
        log_means, slopes = random_cycles(overlap.n_items - top_k_cycles(overlap)[0], nu)
        return float(log_means[-1]), float(slopes[-1])


def top_k_cycles(overlap: Overlap) -> tuple[int, int]:
    """Return the length of the shorter of two top-k lists, and how many of its places close no cycle."""
    lengths = (len(shape.sizes) - (not shape.is_full) for shape in (overlap.left_shape, overlap.right_shape))
    shorter = min(lengths)
    step = dict(zip(overlap.left.tolist(), overlap.right.tolist(), strict=True))
    cycles, seen = 0, set()
    for start in range(shorter):
        place = start
        while place < shorter and place not in seen:
            seen.add(place)
            place = step[place]
            cycles += place == start
    return shorter, shorter - cycles


class SingleTie(Formula):
    """No free items, and at most one tied bucket on each side, anywhere: top-k lists, and full rankings, too.

    Let the left bucket have b items and the right one N. Joining the b paths at random gives
    ``prod_{i<b} (1 + i q) / (1 + i)``. Of the right bucket, w places are left on paths that come back to it without
    meeting the left one; r of them join into cycles of their own with chance ``p_r = w!/(w-r)! (N-w) (N-r-1)! / N!``,
    so with c certain cycles
    ``K = q^(n-c-b-w) prod_{i<b} (1 + i q) / (1 + i) * sum_r p_r q^(w-r) prod_{i<r} (1 + i q) / (1 + i)``.

    >>> from rankernel.gram.exact.overlap import Overlap
    >>> log_value, slope = SingleTie().log_value(Overlap.of(np.array([0, 1, 1]), np.array([1, 0, 2])), np.log(2))
    >>> round(math.exp(log_value), 12)  # (1/2 + 1/4) / 2
    0.375
    """

    name = "exp-Cayley, at most one tied bucket each"

    def covers(self, left: Shape, right: Shape) -> bool:
        """No free items and at most one bucket of several items, on both sides."""
        return left.is_exhaustive and right.is_exhaustive and max(left.n_ties, right.n_ties) <= 1

    def log_value(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return the logarithm of the kernel and its derivative in nu."""
        joins = joins_of(overlap)
        log_means, slopes = random_cycles(max(joins.n_left, joins.n_returns), nu)
        away = np.arange(joins.n_returns, -1.0, -1.0)
        inner, inner_slope = log_mean_exp(
            log_closed_law(joins.n_right, joins.n_returns),
            log_means[: joins.n_returns + 1] - nu * away,
            slopes[: joins.n_returns + 1] - away,
        )
        log_mean = inner + float(log_means[joins.n_left]) - nu * joins.n_apart
        return log_mean, inner_slope + float(slopes[joins.n_left]) - joins.n_apart


EXP_CAYLEY: tuple[Formula, ...] = (TopKCycles(), Unconstrained(), SingleTie())


class Joins(NamedTuple):
    """What the cycles between two rankings depend on: items tied left and right, returns, and the least distance."""

    n_left: int
    n_right: int
    n_returns: int
    n_apart: int


def joins_of(overlap: Overlap) -> Joins:
    """Return what the cycles depend on, from one completion of each side and the positions of their tied buckets."""
    left_tied, right_tied = tied_positions(overlap.left_shape), tied_positions(overlap.right_shape)
    # Items are sorted by left bucket, so their own numbers are positions in a completion of the left ranking.
    target = np.empty(overlap.n_items, dtype=np.int64)
    target[np.argsort(overlap.right, kind="stable")] = np.arange(overlap.n_items)
    n_cycles, n_returns = _loops.cayley_paths.cycles_and_returns(target, left_tied, right_tied)
    n_left, n_right = int(left_tied.sum()), int(right_tied.sum())
    return Joins(n_left, n_right, n_returns, overlap.n_items - n_cycles - n_left - n_returns)


def tied_positions(shape: Shape) -> Mask:
    """Return which positions belong to a bucket of several items."""
    return np.repeat(np.array(shape.sizes) > 1, shape.sizes)


def log_closed_law(size: int, n_returns: int) -> FloatArray:
    """Return log probabilities that r = 0..n_returns of given elements fill cycles of their own, joined at random."""
    n_others = size - n_returns
    if n_others == 0:
        return logs((np.arange(n_returns + 1) == n_returns).astype(np.float64))
    out = np.full(n_returns + 1, math.log(n_others / size))
    r = np.arange(n_returns)
    out[1:] += np.cumsum(np.log((n_returns - r) / (size - 1.0 - r)))
    return out


def random_cycles(size: int, nu: float) -> tuple[FloatArray, FloatArray]:
    """Return log of ``E exp(-nu (r - cycles))`` for random permutations of r = 0..size elements, and its derivative."""
    i = np.arange(float(size))
    log_means, slopes = np.zeros(size + 1), np.zeros(size + 1)
    np.cumsum(np.log1p(math.expm1(-nu) * i / (1 + i)), out=log_means[1:])
    np.cumsum(-i * math.exp(-nu) / (1 + i * math.exp(-nu)), out=slopes[1:])
    return log_means, slopes


# ---------------------------------------------------------------------- the law


class CayleyLaw(DistanceLaw):
    """Law of n less the number of cycles, for at most one tied bucket on each side or one side that says nothing.

    A random permutation of r elements has ``r - cycles = sum_{i<r} X_i``, independent, X_i = 1 with chance i/(1+i):
    all probabilities are sums of positive terms.

    >>> from rankernel.gram.exact.overlap import Overlap
    >>> CayleyLaw().pmf(Overlap.of(np.array([0, 0, 0]), np.array([0, 1, 2]))) * 6
    array([1., 3., 2.])
    """

    name = "Cayley law, at most one tied bucket each"
    distance = "cayley"

    def covers(self, left: Shape, right: Shape) -> bool:
        """At most one tied bucket on each side and none free, or at most one bucket on one side."""
        if left.n_items > MOST_ITEMS:
            return False
        says_nothing = min(len(left.sizes), len(right.sizes)) <= 1
        return says_nothing or (left.is_exhaustive and right.is_exhaustive and max(left.n_ties, right.n_ties) <= 1)

    def pmf(self, overlap: Overlap) -> FloatArray:
        """Return the probabilities of the distances 0..n-1."""
        n_items = overlap.n_items
        if overlap.left_shape.is_top_k and overlap.right_shape.is_top_k:
            listed, apart = top_k_cycles(overlap)
            joins = Joins(n_left=n_items - listed, n_right=0, n_returns=0, n_apart=apart)
        elif min(len(overlap.left_shape.sizes), len(overlap.right_shape.sizes)) <= 1:
            joins = Joins(n_left=n_items, n_right=0, n_returns=0, n_apart=0)
        else:
            joins = joins_of(overlap)
        inner = closed_distance_law(joins.n_right, joins.n_returns)
        law = np.convolve(inner, random_distance_laws(joins.n_left)[joins.n_left])
        out = np.zeros(n_items)
        out[joins.n_apart : joins.n_apart + len(law)] = law[: n_items - joins.n_apart]
        return out


def random_distance_laws(size: int) -> FloatArray:
    """Return for each r = 0..size the law of r less the cycles of a random permutation of r elements."""
    laws = np.zeros((size + 1, size + 1))
    laws[0, 0] = 1.0
    for r in range(size):
        laws[r + 1] = laws[r] / (r + 1)
        laws[r + 1, 1:] += laws[r, :-1] * (r / (r + 1))
    return laws


def closed_distance_law(size: int, n_returns: int) -> FloatArray:
    """Return the law of n_returns less the cycles that the returning paths of a bucket form among themselves."""
    chances = np.exp(log_closed_law(size, n_returns)) if size else np.ones(1)
    laws = random_distance_laws(n_returns)
    out = np.zeros(n_returns + 1)
    for r, chance in enumerate(chances):
        out[n_returns - r :] += chance * laws[r, : r + 1]
    return out

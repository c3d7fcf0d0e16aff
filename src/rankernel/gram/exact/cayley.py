"""Functions of the Cayley distance: n minus the number of cycles of the map between the positions of two completions.

For two rankings with several tied buckets the mean is #P-hard to compute; with at most one tied bucket on each side it
is a short sum. Write q = exp(-nu).
"""

from __future__ import annotations

import math

import numpy as np

from rankernel._loops.compiled import compiled
from rankernel._utils import FloatArray, Mask
from rankernel._utils.combinatorics import log_mean_exp, logs
from rankernel.gram.exact.formulas import (
    SLOW,
    Coder,
    Formula,
    LogMean,
    Overlap,
    Pairs,
    Shape,
    are_top_k,
    have_one_tie_or_no_order,
    top_k_coder,
)
from rankernel.kernels.base import Kernel, is_exponential
from rankernel.rankings import Rankings

MAX_PMF_ITEMS = 300  # a table of n^2 probabilities


class RandomCycles(Formula):
    """At most one tied bucket on each side and no free items, or one unordered ranking.

    Let the left tied bucket have b items and the right one N. Joining the b paths at random gives
    ``prod_{i<b} (1 + i q) / (1 + i)``. In the right bucket, w positions are on paths that return to it without meeting
    the left one; r of them form cycles among themselves with probability ``p_r = w!/(w-r)! (N-w) (N-r-1)! / N!``, so
    with c certain cycles
    ``K = q^(n-c-b-w) prod_{i<b} (1 + i q) / (1 + i) * sum_r p_r q^(w-r) prod_{i<r} (1 + i q) / (1 + i)``.

    Exponentials are not computed from the distribution, which takes O(n^2) and underflows beyond 170 items.

    Examples
    --------
    >>> overlap = Overlap.of(np.array([0, 1, 1]), np.array([1, 0, 2]))
    >>> offset, value, _ = RandomCycles().log_mean(overlap, np.log(2))
    >>> round(math.exp(value - np.log(2) * offset), 12)  # (1/2 + 1/4) / 2
    0.375
    >>> RandomCycles().pmf(Overlap.of(np.array([0, 0, 0]), np.array([0, 1, 2])))[1] * 6
    array([1., 3., 2.])
    """

    by_profile = True
    shapes = staticmethod(have_one_tie_or_no_order)

    def seconds(self, kernel: Kernel, left: Shape, right: Shape) -> float | None:
        """Return the time of one value; a matrix of top-k lists has few, so that large blocks are no disadvantage."""
        if left.n_items > MAX_PMF_ITEMS and not is_exponential(kernel, left.n_items):
            return None
        return SLOW if are_top_k(left, right) else 1e-4

    def coder(self, X: Rankings, Y: Rankings, pairs: Pairs) -> Coder:
        """Return codes of the length of the shorter list; its positions minus its cycles are offsets."""
        are_lists = all(are_top_k(*pair) for pair in pairs)
        return top_k_coder(X, Y, closed_cycles) if are_lists else super().coder(X, Y, pairs)

    def log_mean(self, overlap: Overlap, rate: float) -> LogMean:
        """Return the logarithm of the kernel."""
        n_left, n_right, n_returns, offset = joins_of(overlap)
        log_means, derivatives = random_cycles(max(n_left, n_returns), rate)
        if not n_right:
            return LogMean(offset, float(log_means[n_left]), float(derivatives[n_left]))
        others = np.arange(n_returns, -1.0, -1.0)
        inner, d_inner = log_mean_exp(
            log_closed_pmf(n_right, n_returns),
            log_means[: n_returns + 1] - rate * others,
            derivatives[: n_returns + 1] - others,
        )
        return LogMean(offset, inner + float(log_means[n_left]), d_inner + float(derivatives[n_left]))

    def pmf(self, overlap: Overlap) -> tuple[int, FloatArray]:
        """Return the distribution of the distance.

        A random permutation of r elements has ``r - cycles = sum_{i<r} X_i``, independent, X_i = 1 with probability
        i/(1+i). All probabilities are sums of positive terms.
        """
        n_left, n_right, n_returns, offset = joins_of(overlap)
        pmfs = random_distance_pmfs(max(n_left, n_returns))
        inner = np.zeros(n_returns + 1)
        chances = np.exp(log_closed_pmf(n_right, n_returns)) if n_right else np.ones(1)
        for r, chance in enumerate(chances):
            inner[n_returns - r :] += chance * pmfs[r, : r + 1]
        pmf = np.convolve(inner, pmfs[n_left, : n_left + 1])
        return offset, pmf[: overlap.n_items - offset]


FORMULAS: tuple[Formula, ...] = (RandomCycles(),)


def joins_of(overlap: Overlap) -> tuple[int, int, int, int]:
    """Return the numbers that determine the distribution of the cycles, from one completion of each side.

    The items tied on the left and on the right, the paths that return to the right bucket, and the smallest distance.
    """
    left, right, n_items = overlap.left_shape, overlap.right_shape, overlap.n_items
    if are_top_k(left, right):  # the same numbers for all pairs of lists with the same code
        listed, listed_too = (np.array([len(shape.sizes) - (not shape.is_full)]) for shape in (left, right))
        shorter, offset = np.zeros((1, 1), dtype=np.uint64), np.zeros((1, 1), dtype=np.int64)
        closed_cycles(np.arange(n_items)[None], listed, overlap.right[None], listed_too, shorter, offset)
        return n_items - int(shorter[0, 0]), 0, 0, int(offset[0, 0])
    if left.is_unordered or right.is_unordered:
        return n_items, 0, 0, 0
    left_tied, right_tied = tied_positions(left), tied_positions(right)
    # Items are sorted by left bucket, so their indices are positions in a completion of the left ranking.
    target = np.empty(n_items, dtype=np.int64)
    target[np.argsort(overlap.right, kind="stable")] = np.arange(n_items)
    n_cycles, n_returns = cycles_and_returns(target, left_tied, right_tied)
    n_left, n_right = int(left_tied.sum()), int(right_tied.sum())
    return n_left, n_right, n_returns, n_items - n_cycles - n_left - n_returns


def tied_positions(shape: Shape) -> Mask:
    """Return which positions belong to a tied bucket."""
    return np.repeat(np.array(shape.sizes) > 1, shape.sizes)


def log_closed_pmf(size: int, n_returns: int) -> FloatArray:
    """Return log probabilities that r = 0..n_returns of given elements form cycles of their own, joined at random."""
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
    log_means, derivatives = np.zeros(size + 1), np.zeros(size + 1)
    np.cumsum(np.log1p(math.expm1(-nu) * i / (1 + i)), out=log_means[1:])
    np.cumsum(-i * math.exp(-nu) / (1 + i * math.exp(-nu)), out=derivatives[1:])
    return log_means, derivatives


def random_distance_pmfs(size: int) -> FloatArray:
    """Return for each r = 0..size the distribution of r minus the cycles of a random permutation of r elements."""
    pmfs = np.zeros((size + 1, size + 1))
    pmfs[0, 0] = 1.0
    for r in range(size):
        pmfs[r + 1] = pmfs[r] / (r + 1)
        pmfs[r + 1, 1:] += pmfs[r, :-1] * (r / (r + 1))
    return pmfs


# ---------------------------------------------------------------------- compiled loops


@compiled
def closed_cycles(items, listed, Y, listed_Y, out, offsets):
    """Write the length of the shorter of two top-k lists, and how many of its positions exceed its closed cycles."""
    step = np.empty(Y.shape[1], np.int64)
    for i in range(items.shape[0]):
        for j in range(Y.shape[0]):
            m = min(listed[i], listed_Y[j])
            for position in range(m):
                target = Y[j, items[i, position]]
                step[position] = target if target < m else -1
            cycles = 0
            for start in range(m):
                position = start
                while step[position] >= 0:
                    following = step[position]
                    step[position] = -1
                    if following == start:
                        cycles += 1
                        break
                    position = following
            out[i, j] = m
            offsets[i, j] = m - cycles


@compiled
def cycles_and_returns(target, loose_starts, loose_ends):
    """Return the number of certain cycles, and of loose ends from which the path leads to a loose end again.

    Position p leads to ``target[p]``; loose starts and ends are joined at random. A path ends at a loose start. A cycle
    is certain if none of its positions is loose.
    """
    visited = np.zeros(len(target), dtype=np.bool_)
    n_cycles = n_returns = 0
    for first in range(len(target)):
        is_certain = not visited[first]
        p = first
        while not visited[p]:
            visited[p] = True
            is_certain = is_certain and not loose_starts[p] and not loose_ends[p]
            p = target[p]
        n_cycles += is_certain
        if loose_ends[first]:
            p = first
            while not loose_starts[p]:
                p = target[p]
                if loose_ends[p]:
                    n_returns += 1
                    break
    return n_cycles, n_returns

"""Exact marginalised exponential Hamming kernels ``E exp(-nu d)``, d the number of items whose positions differ.

Two completions agree at an item if both give it the same position. Write q = exp(-nu). Either the law of the number
of agreements is a sum of positive terms, and the kernel is its mean; or the factorial moments are, and the kernel is
``sum_J E C(agreements, J) (1-q)^J q^(n-J)``, again without a minus sign.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, IntArray, RankArray
from rankernel._utils.log_sums import log_mean_exp, log_sum_exp, logs
from rankernel.gram.exact.overlap import Formula, Overlap, Shape

# At nu = 0 the kernel is 1; its slope is read off so close to 0 that no double can tell the difference.
NEARLY_ZERO = 1e-18

# A table of this many states takes some hundredths of a second.
MOST_STATES = 20_000_000

# In logarithms each step takes an exponential: a tenth of the number takes as long.
MOST_LOG_SUMS = 2_000_000

# Beyond this many items the rarest patterns of agreement would fall below the smallest double.
MOST_ITEMS_IN_DOUBLES = 80


class Unconstrained(Formula):
    """One side says nothing (at most one bucket, whatever is free): agreements are fixed points of any permutation.

    >>> from rankernel.gram.exact.overlap import Overlap
    >>> log_value, slope = Unconstrained().log_value(Overlap.of(np.array([-1, -1]), np.array([0, 1])), np.log(2))
    >>> round(math.exp(log_value), 12)  # (1 + 1/4) / 2
    0.625
    """

    name = "exp-Hamming, one ranking says nothing"

    def covers(self, left: Shape, right: Shape) -> bool:
        """At most one bucket on one side: each order of the items is a completion, equally likely."""
        return min(len(left.sizes), len(right.sizes)) <= 1

    def log_value(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return the logarithm of the kernel and its derivative in nu."""
        return mean_over_matches(overlap.n_items, overlap.n_items, 0, nu)

    def log_rest(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return the same: nothing is certain."""
        return self.log_value(overlap, nu)


class TopKMatching(Formula):
    """Two top-k lists: beyond the shorter list it is a matching problem with w targets, ``O(n)``.

    The last N = n - m places of one completion are random; exactly w items have their place in the other among them.
    The chance of j matches is ``C(w,j) D(N-j, w-j) / N!`` with D the permutations that avoid all targets.

    >>> from rankernel.gram.exact.overlap import Overlap
    >>> log_value, slope = TopKMatching().log_value(Overlap.of(np.array([0, 1, 1]), np.array([0, 1, 2])), np.log(2))
    >>> round(math.exp(log_value), 12)  # (1 + 1/4) / 2
    0.625
    """

    name = "exp-Hamming, top-k lists (matching)"

    def covers(self, left: Shape, right: Shape) -> bool:
        """Single items and one last bucket, none free, on both sides."""
        return left.is_top_k and right.is_top_k

    def log_value(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return the logarithm of the kernel and its derivative in nu."""
        return mean_over_matches(*top_k_matching(overlap), nu)

    def log_rest(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return the same without the differences that are certain."""
        return mean_over_matches(*top_k_matching(overlap)[:2], 0, nu)


class Staircase(Formula):
    """Any two rankings without free items.

    Expanding in pinned agreements ``M_ij`` of bucket i with bucket j, which share ``P_ij`` positions and ``C_ij``
    items, ``K = sum_M prod_ij C(C_ij, M_ij) C(P_ij, M_ij) M_ij! (1-q)^M_ij q^(P_ij - M_ij)
    prod_i (n_i - M_i.)!/n_i! prod_j (n'_j - M_.j)!/n'_j!``. Cells with ``P_ij > 0`` form a staircase.

    >>> from rankernel.gram.exact.overlap import Overlap
    >>> log_value, slope = Staircase().log_value(Overlap.of(np.array([0, 0, 1]), np.array([0, 1, 1])), np.log(2))
    >>> round(math.exp(log_value), 12)  # (1 + 2/4 + 1/8) / 4
    0.40625
    """

    name = "exp-Hamming, rankings without free items (staircase)"

    def covers(self, left: Shape, right: Shape) -> bool:
        """No free items on either side, and buckets of bearable size."""
        if not (left.is_exhaustive and right.is_exhaustive):
            return False
        return left.n_items * max(*left.sizes, *right.sizes) <= MOST_LOG_SUMS

    def log_value(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return the logarithm of the kernel and its derivative in nu."""
        loops, work = _loops.hamming_sums, np.empty((_loops.hamming_sums.STAIRCASE_ROWS, overlap.n_items + 2))
        log_mean, slope = loops.staircase(*staircase_of(overlap), max(nu, NEARLY_ZERO), work)
        return (min(log_mean, 0.0), slope) if nu else (0.0, slope)


class FullSweep(Formula):
    """A full ranking and one with free items, ties or not: a sweep over positions gives the law of the agreements.

    >>> from rankernel.gram.exact.overlap import Overlap
    >>> log_value, slope = FullSweep().log_value(Overlap.of(np.array([0, 1, 2]), np.array([0, 1, -1])), np.log(2))
    >>> round(math.exp(log_value), 12)  # (1 + 1/4 + 1/8) / 3
    0.458333333333
    """

    name = "exp-Hamming, a full ranking and one with free items (sweep)"

    def covers(self, left: Shape, right: Shape) -> bool:
        """One side full, and a table of bearable size for the other."""
        if not (left.is_full or right.is_full):
            return False
        other = right if left.is_full else left
        largest = max(other.sizes, default=0)
        n_states = (other.n_listed + 1) ** 2 * (other.free + 1) * (largest + 1)
        return other.n_items <= MOST_ITEMS_IN_DOUBLES and n_states * other.n_items <= MOST_STATES

    def log_value(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return the logarithm of the kernel and its derivative in nu."""
        law = full_agreements(overlap)
        distances = np.arange(overlap.n_items, -1.0, -1.0)
        return log_mean_exp(logs(law), -nu * distances, -distances)


class ChainSweep(Formula):
    """Two rankings without ties, with free items on either side.

    A pair of completions is an interleaving of the two chains (a lattice path), filled up with free items. Counting
    paths by diagonal steps b, agreements a and pinned items j, k of either chain, and i pinned items free in both,
    gives ``K = sum B[a, J] (1-q)^J q^(n-a-J)`` with J = i + j + k.

    >>> from rankernel.gram.exact.overlap import Overlap
    >>> log_value, slope = ChainSweep().log_value(Overlap.of(np.array([0, 1, -1]), np.array([0, 1, -1])), np.log(2))
    >>> round(math.exp(log_value), 12)  # (3 + 2/4 + 2/4 + 2/8) / 9
    0.472222222222
    """

    name = "exp-Hamming, chains with free items (lattice paths)"

    def covers(self, left: Shape, right: Shape) -> bool:
        """No ties, and a table of bearable size."""
        if not (left.is_chain and right.is_chain) or left.n_items > MOST_ITEMS_IN_DOUBLES:
            return False
        return chain_states(left, right) <= MOST_STATES

    def log_value(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return the logarithm of the kernel and its derivative in nu."""
        n_items, step = overlap.n_items, max(nu, NEARLY_ZERO)
        coefficients = chain_coefficients_of(overlap)
        agreements, pinned = np.nonzero(coefficients)
        apart = n_items - agreements - pinned
        log_pin, pin_slope = math.log(-math.expm1(-step)), math.exp(-step) / -math.expm1(-step)
        exponents = np.log(coefficients[agreements, pinned]) + pinned * log_pin - step * apart
        log_sum, slope = log_sum_exp(exponents, pinned * pin_slope - apart)
        return (min(log_sum, 0.0), slope) if nu else (0.0, slope)


EXP_HAMMING: tuple[Formula, ...] = (Unconstrained(), TopKMatching(), Staircase(), FullSweep(), ChainSweep())


# ---------------------------------------------------------------------- what the formulas read off an overlap


def top_k_matching(overlap: Overlap) -> tuple[int, int, int]:
    """Return (places left to chance, items with a target there, differences that are certain) of two top-k lists."""
    shorter = min(len(overlap.left_shape.sizes), len(overlap.right_shape.sizes)) - 1
    behind = (overlap.left >= shorter) & (overlap.right >= shorter)
    agreeing = (overlap.left == overlap.right) & (overlap.left < shorter)
    n_random, n_targets = overlap.n_items - shorter, int(behind.sum())
    return n_random, n_targets, overlap.n_items - int(agreeing.sum()) - n_targets


def mean_over_matches(n_random: int, n_targets: int, n_apart: int, nu: float) -> tuple[float, float]:
    """Return log of ``E exp(-nu (n_apart + n_targets - matches))`` and its derivative."""
    distances = np.arange(n_targets, -1.0, -1.0)
    log_mean, slope = log_mean_exp(log_match_law(n_random, n_targets), -nu * distances, -distances)
    return log_mean - nu * n_apart, slope - n_apart


@lru_cache(maxsize=256)
def log_match_law(n_random: int, n_targets: int) -> FloatArray:
    """Return log probabilities of 0..n_targets matches when n_random places are filled at random.

    In logarithms because ``1/n!`` soon is no double, while a large nu asks for just that term.
    """
    matches = np.arange(1.0, n_targets + 1)
    shares = np.zeros(n_targets + 1)
    np.cumsum(np.log((n_targets - matches + 1) / (matches * (n_random - matches + 1))), out=shares[1:])
    log_law: FloatArray = shares + logs(no_match_chances(n_random - n_targets, n_targets)[::-1])
    log_law.flags.writeable = False
    return log_law


def staircase_of(overlap: Overlap) -> tuple[IntArray, IntArray, IntArray]:
    """Return the cells (i, j, positions, items) where two rankings without free items share positions, and sizes."""
    left_sizes = np.array(overlap.left_shape.sizes, dtype=np.int64)
    right_sizes = np.array(overlap.right_shape.sizes, dtype=np.int64)
    cells = np.zeros((len(left_sizes) + len(right_sizes), 4), dtype=np.int64)
    n_cells = _loops.hamming_sums.staircase_cells(overlap.left, overlap.right, left_sizes, right_sizes, cells)
    return cells[:n_cells], left_sizes, right_sizes


def full_agreements(overlap: Overlap) -> FloatArray:
    """Return the law of the number of agreements when one side is full."""
    if overlap.left_shape.is_full:
        full, ranks, shape = overlap.left, overlap.right, overlap.right_shape
    else:
        full, ranks, shape = overlap.right, overlap.left, overlap.left_shape
    seen = np.empty_like(ranks)
    seen[full] = ranks
    sizes = np.array(shape.sizes, dtype=np.int64)
    largest, n_listed, law = int(sizes.max(initial=0)), shape.n_listed, np.zeros(shape.n_items + 1)
    laws = np.zeros((len(sizes), largest + 1, largest + 1))
    for own, size in zip(laws, shape.sizes, strict=True):
        own[: size + 1, : size + 1] = match_laws(size)
    work = np.zeros((2, n_listed + 1, shape.free + 1, largest + 1, n_listed + 1))
    bucket = np.repeat(np.arange(len(sizes)), sizes)
    _loops.hamming_sums.sweep_full(seen, bucket, sizes, laws, match_laws(shape.free), work, law)
    return law


def no_match_chances(n_others: int, n_targets: int) -> FloatArray:
    """Return for w = 0..n_targets the chance that a random permutation of w + n_others leaves none of w items fixed.

    The recurrence ``D(N, w) = (N-1) D(N-1, w-1) + (w-1) D(N-2, w-2)`` of the counts has only positive terms.
    """
    chances = [1.0]
    for w in range(1, n_targets + 1):
        size = w + n_others
        before = (w - 1) / (size * (size - 1.0)) * chances[w - 2] if w > 1 else 0.0
        chances.append((size - 1) / size * chances[w - 1] + before)
    return np.array(chances)


@lru_cache(maxsize=64)
def match_laws(size: int) -> FloatArray:
    """Return for w = 0..size the law of the number of fixed points among w given items of a random permutation."""
    laws = np.zeros((size + 1, size + 1))
    for w in range(size + 1):
        matches = np.arange(w)
        shares = np.cumprod(np.append(1.0, (w - matches) / ((matches + 1.0) * (size - matches))))
        laws[w, : w + 1] = shares * no_match_chances(size - w, w)[::-1]
    laws.flags.writeable = False
    return laws


def listed_items(ranks: RankArray) -> IntArray:
    """Return the listed items of a chain, best first."""
    items = np.argsort(ranks, kind="stable")
    return items[np.count_nonzero(ranks < 0) :]


def chain_paths_of(overlap: Overlap) -> FloatArray:
    """Return the lattice paths of two chains, counted."""
    left, right = listed_items(overlap.left), listed_items(overlap.right)
    left_lone, right_lone = overlap.right[left] < 0, overlap.left[right] < 0
    m, r, n_common = len(left), len(right), int(np.count_nonzero(~left_lone))
    work = np.zeros((2, r + 1, min(m, r) + 1, r - n_common + 1, m - n_common + 1, n_common + 1))
    half = _loops.hamming_sums.chain_paths(left, right, left_lone, right_lone, overlap.n_items, work)
    paths: FloatArray = work[half, r]
    return paths


def chain_coefficients_of(overlap: Overlap) -> FloatArray:
    """Return B with mean ``x^agreements = sum_aJ B[a, J] x^a (x-1)^J`` of two chains."""
    paths, n_items = chain_paths_of(overlap), overlap.n_items
    out = np.zeros((paths.shape[3], n_items + 1))
    listed = overlap.left_shape.n_listed, overlap.right_shape.n_listed
    _loops.hamming_sums.chain_coefficients(paths, n_items, *listed, *counting_tables(n_items), out)
    return out


@lru_cache(maxsize=16)
def counting_tables(n_items: int) -> tuple[FloatArray, FloatArray]:
    """Return binomial coefficients and ``n! / (n-k)!`` for all n and k up to the number of items."""
    numbers = range(n_items + 1)
    choose = np.array([[math.comb(n, k) for k in numbers] for n in numbers], dtype=np.float64)
    return choose, np.array([[math.perm(n, k) for k in numbers] for n in numbers], dtype=np.float64)


def chain_states(left: Shape, right: Shape) -> int:
    """Return the largest number of states that two chains of these lengths can need, whatever they share."""
    short, long = sorted((left.n_listed, right.n_listed))
    least_common = max(0, short + long - left.n_items)
    grid = (short + 1) * (long + 1) * (short - max(0, short + long - left.n_items) + 1)
    return grid * max((short - c + 1) * (long - c + 1) * (c + 1) for c in range(least_common, short + 1))

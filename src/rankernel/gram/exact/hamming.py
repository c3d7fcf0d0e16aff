"""Functions of the Hamming distance: the number of items whose positions differ in random completions.

Two completions agree on an item if both give it the same position. Write q = exp(-nu). Either the distribution of the
number of agreements is a sum of positive terms, and every function of the distance follows; or the factorial moments
are, and ``E exp(-nu d) = sum_J E C(agreements, J) (1-q)^J q^(n-J)``, again without cancellation. In that case other
functions need the distribution, which is computed in integer arithmetic.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from rankernel._loops.compiled import compiled
from rankernel._utils import FloatArray, IntArray, RankArray
from rankernel._utils.combinatorics import log_mean_exp, log_sum_exp, logs
from rankernel.gram.exact.formulas import (
    SLOW,
    Coder,
    Formula,
    LogMean,
    Overlap,
    Pairs,
    Shape,
    are_exhaustive,
    are_top_k,
    top_k_coder,
)
from rankernel.kernels.base import Kernel, is_exponential
from rankernel.rankings import Rankings

MIN_RATE = 1e-18  # stands for nu = 0, where the kernel is 1: the difference is below double precision
MAX_STATES = 20_000_000  # of a sweep: some hundredths of a second
MAX_LOG_SUMS = 2_000_000  # steps that take an exponential each
MAX_SWEEP_ITEMS = 80  # beyond, the probabilities of the rarest patterns of agreement underflow
MAX_INTEGER_ITEMS = 60  # in integer arithmetic: some milliseconds
MAX_INTEGER_STATES = 1_000_000


class HammingFormula(Formula):
    """A formula for functions of the Hamming distance."""

    by_profile = True


class TopKMatching(HammingFormula):
    """Two top-k lists, or one unordered ranking: a matching problem, O(n).

    The last N positions of one completion are random, and w items have their position in the other among these. The
    probability of j matches is ``C(w,j) D(N-j, w-j) / N!`` with D the number of permutations without a match.

    Examples
    --------
    >>> overlap = Overlap.of(np.array([0, 1, 1]), np.array([0, 1, 2]))
    >>> round(math.exp(TopKMatching().log_mean(overlap, np.log(2)).value), 12)  # (1 + 1/4) / 2
    0.625
    """

    def seconds(self, kernel: Kernel, left: Shape, right: Shape) -> float | None:
        """Return the time of one value; a matrix of top-k lists has few, so that large blocks are no disadvantage."""
        if are_top_k(left, right):
            return SLOW
        return 5e-5 if left.is_unordered or right.is_unordered else None

    def coder(self, X: Rankings, Y: Rankings, pairs: Pairs) -> Coder:
        """Return codes of positions and items that neither list has; certain differences are offsets."""
        are_lists = all(are_top_k(*pair) for pair in pairs)
        return top_k_coder(X, Y, agreements) if are_lists else super().coder(X, Y, pairs)

    def log_mean(self, overlap: Overlap, rate: float) -> LogMean:
        """Return the mean over the number of matches."""
        n_random, n_targets, offset = matching_of(overlap)
        distances = np.arange(n_targets, -1.0, -1.0)
        return LogMean(offset, *log_mean_exp(log_match_pmf(n_random, n_targets), -rate * distances, -distances))

    def pmf(self, overlap: Overlap) -> tuple[int, FloatArray]:
        """Return the distribution of the distance."""
        n_random, n_targets, offset = matching_of(overlap)
        return offset, np.exp(log_match_pmf(n_random, n_targets))[::-1]


class Staircase(HammingFormula):
    """Any two rankings without free items.

    Expanding in pinned agreements ``M_ij`` of bucket i with bucket j, which share ``P_ij`` positions and ``C_ij``
    items, ``K = sum_M prod_ij C(C_ij, M_ij) C(P_ij, M_ij) M_ij! (1-q)^M_ij q^(P_ij - M_ij)
    prod_i (n_i - M_i.)!/n_i! prod_j (n'_j - M_.j)!/n'_j!``. Cells with ``P_ij > 0`` form a staircase.

    Examples
    --------
    >>> overlap = Overlap.of(np.array([0, 0, 1]), np.array([0, 1, 1]))
    >>> round(math.exp(Staircase().log_mean(overlap, np.log(2)).value), 12)  # (1 + 2/4 + 1/8) / 4
    0.40625
    """

    method = "dynamic program"
    shapes = staticmethod(are_exhaustive)

    def seconds(self, kernel: Kernel, left: Shape, right: Shape) -> float | None:
        """Return the time of the sum along the staircase; integers grow with the number of items."""
        n_items, n_sums = left.n_items, left.n_items * max(*left.sizes, *right.sizes)
        if is_exponential(kernel, n_items):
            return 4e-5 + 2e-8 * n_sums if n_sums <= MAX_LOG_SUMS else None
        return 1e-4 + 2e-9 * n_items**3 if n_items <= MAX_INTEGER_ITEMS else None

    def log_mean(self, overlap: Overlap, rate: float) -> LogMean:
        """Return the sum along the staircase."""
        work = np.empty((2, 2, overlap.n_items + 2)), np.empty((3, overlap.n_items + 2))
        value, derivative = staircase(*staircase_of(overlap), max(rate, MIN_RATE), *work)
        return LogMean(0, min(value, 0.0) if rate else 0.0, derivative)

    def pmf(self, overlap: Overlap) -> tuple[int, FloatArray]:
        """Return the distribution, from the expansion in integers: counts are the digits of one large integer."""
        cells, left_sizes, right_sizes = (array.tolist() for array in staircase_of(overlap))
        total = math.prod(map(math.factorial, left_sizes + right_sizes))
        digit = total.bit_length()
        by_pinned, carried = {0: 1}, ""
        for cell, following in zip(cells, [*cells[1:], [None, None]], strict=True):
            carries = "row" if following[0] == cell[0] else "column" if following[1] == cell[1] else ""
            sizes, most = (left_sizes[cell[0]], right_sizes[cell[1]]), min(cell[2], cell[3])
            gain = (1 << digit) - 1
            weights = [math.comb(cell[3], u) * math.perm(cell[2], u) * gain**u for u in range(most + 1)]
            by_pinned, carried = add_cell(by_pinned, carried, carries, sizes, weights), carries
        return 0, pmf_from_digits(by_pinned[0], digit, total, overlap.n_items)


class FullSweep(HammingFormula):
    """A full ranking and one with free items, with ties or without: a sweep over positions gives the distribution.

    Examples
    --------
    >>> overlap = Overlap.of(np.array([0, 1, 2]), np.array([0, 1, -1]))
    >>> round(math.exp(FullSweep().log_mean(overlap, np.log(2)).value), 12)  # (1 + 1/4 + 1/8) / 3
    0.458333333333
    """

    method = "dynamic program"

    def seconds(self, kernel: Kernel, left: Shape, right: Shape) -> float | None:
        """Return the time of the sweep against the table of the other ranking."""
        if not (left.is_full or right.is_full) or left.n_items > MAX_SWEEP_ITEMS:
            return None
        n_states = sweep_states(left, right)
        return 1e-4 + 1e-9 * n_states if n_states <= MAX_STATES else None

    def pmf(self, overlap: Overlap) -> tuple[int, FloatArray]:
        """Return the distribution of the distance."""
        if overlap.left_shape.is_full:
            full, ranks, shape = overlap.left, overlap.right, overlap.right_shape
        else:
            full, ranks, shape = overlap.right, overlap.left, overlap.left_shape
        bucket_at = np.empty_like(ranks)
        bucket_at[full] = ranks
        sizes = np.array(shape.sizes, dtype=np.int64)
        largest, n_listed, pmf = int(sizes.max(initial=0)), shape.n_listed, np.zeros(shape.n_items + 1)
        match_tables = np.zeros((len(sizes), largest + 1, largest + 1))
        for table, size in zip(match_tables, shape.sizes, strict=True):
            table[: size + 1, : size + 1] = match_pmfs(size)
        work = np.zeros((2, n_listed + 1, shape.free + 1, largest + 1, n_listed + 1))
        bucket = np.repeat(np.arange(len(sizes)), sizes)
        sweep_positions(bucket_at, bucket, sizes, match_tables, match_pmfs(shape.free), work, pmf)
        return 0, pmf[::-1]


class ChainSweep(HammingFormula):
    """Two rankings without ties, with free items on either side.

    A pair of completions is an interleaving of the two chains (a lattice path), filled up with free items. Counting
    paths by diagonal steps b, agreements a and pinned items j, k of either chain, and i pinned items free in both,
    gives ``K = sum B[a, J] (1-q)^J q^(n-a-J)`` with J = i + j + k.

    Examples
    --------
    >>> overlap = Overlap.of(np.array([0, 1, -1]), np.array([0, 1, -1]))
    >>> round(math.exp(ChainSweep().log_mean(overlap, np.log(2)).value), 12)  # (3 + 2/4 + 2/4 + 2/8) / 9
    0.472222222222
    """

    method = "dynamic program"

    def seconds(self, kernel: Kernel, left: Shape, right: Shape) -> float | None:
        """Return the time of the sweep over both chains; in integers the states at its end take longer."""
        if not (left.is_chain and right.is_chain) or left.n_items > MAX_SWEEP_ITEMS:
            return None
        n_states = chain_states(left, right)
        if is_exponential(kernel, left.n_items):
            return 2e-4 + 6e-10 * n_states if n_states <= MAX_STATES else None
        if n_states > MAX_INTEGER_STATES or n_pinned_paths(left, right) >= 2**53:  # paths are counted in doubles
            return None
        return 1e-3 + 1e-7 * n_states

    def log_mean(self, overlap: Overlap, rate: float) -> LogMean:
        """Return the sum over agreements and pinned items."""
        paths, n_items, nu = chain_paths_of(overlap), overlap.n_items, max(rate, MIN_RATE)
        coefficients = np.zeros((paths.shape[3], n_items + 1))
        listed = overlap.left_shape.n_listed, overlap.right_shape.n_listed
        chain_coefficients(paths, n_items, *listed, *counting_tables(n_items), coefficients)
        agreements, pinned = np.nonzero(coefficients)
        differing = n_items - agreements - pinned
        log_pin, d_log_pin = math.log(-math.expm1(-nu)), math.exp(-nu) / -math.expm1(-nu)
        exponents = np.log(coefficients[agreements, pinned]) + pinned * log_pin - nu * differing
        value, derivative = log_sum_exp(exponents, pinned * d_log_pin - differing)
        return LogMean(0, min(value, 0.0) if rate else 0.0, derivative)

    def pmf(self, overlap: Overlap) -> tuple[int, FloatArray]:
        """Return the distribution, from the lattice paths filled up with free items in integers."""
        n = overlap.n_items
        free_left, free_right = overlap.left_shape.free, overlap.right_shape.free
        paths = chain_paths_of(overlap)
        n_both_free = free_left + free_right - n + paths.shape[3] - 1
        total = math.perm(n, free_left) * math.perm(n, free_right)
        digit = total.bit_length()
        gain, value = (1 << digit) - 1, 0
        for b, j, k, a in np.argwhere(paths).tolist():
            gaps = free_left + free_right - n + b
            for i in range(min(gaps, n_both_free, free_left - j, free_right - k) + 1):
                pinned = math.comb(n, gaps) * math.comb(gaps, i) * math.perm(n_both_free, i)
                others = math.factorial(free_left - i - j) * math.factorial(free_right - i - k)
                value += (int(paths[b, j, k, a]) * pinned * others * gain ** (i + j + k)) << (digit * a)
        return 0, pmf_from_digits(value, digit, total, n)


FORMULAS: tuple[Formula, ...] = (TopKMatching(), Staircase(), FullSweep(), ChainSweep())


# ---------------------------------------------------------------------- matches


def matching_of(overlap: Overlap) -> tuple[int, int, int]:
    """Return the number of random positions, of items with a target among these, and of certain differences."""
    left, right = overlap.left_shape, overlap.right_shape
    if not are_top_k(left, right):
        return overlap.n_items, overlap.n_items, 0
    shorter = min(len(left.sizes), len(right.sizes)) - 1
    unlisted = (overlap.left >= shorter) & (overlap.right >= shorter)
    agreeing = (overlap.left == overlap.right) & (overlap.left < shorter)
    n_targets = int(unlisted.sum())
    return overlap.n_items - shorter, n_targets, overlap.n_items - int(agreeing.sum()) - n_targets


@lru_cache(maxsize=256)
def log_match_pmf(n_random: int, n_targets: int) -> FloatArray:
    """Return log probabilities of 0..n_targets matches when n_random positions are filled at random.

    In logarithms because ``1/n!`` soon underflows, while a large nu selects just that term.
    """
    matches = np.arange(1.0, n_targets + 1)
    shares = np.zeros(n_targets + 1)
    np.cumsum(np.log((n_targets - matches + 1) / (matches * (n_random - matches + 1))), out=shares[1:])
    log_pmf: FloatArray = shares + logs(no_match_probabilities(n_random - n_targets, n_targets)[::-1])
    log_pmf.flags.writeable = False
    return log_pmf


def no_match_probabilities(n_others: int, n_targets: int) -> FloatArray:
    """Return for w = 0..n_targets the probability that a random permutation of w + n_others fixes none of w items.

    The recurrence ``D(N, w) = (N-1) D(N-1, w-1) + (w-1) D(N-2, w-2)`` of the counts has only positive terms.
    """
    result = [1.0]
    for w in range(1, n_targets + 1):
        size = w + n_others
        before = (w - 1) / (size * (size - 1.0)) * result[w - 2] if w > 1 else 0.0
        result.append((size - 1) / size * result[w - 1] + before)
    return np.array(result)


@lru_cache(maxsize=64)
def match_pmfs(size: int) -> FloatArray:
    """Return for w = 0..size the distribution of the fixed points among w given items of a random permutation."""
    pmfs = np.zeros((size + 1, size + 1))
    for w in range(size + 1):
        matches = np.arange(w)
        shares = np.cumprod(np.append(1.0, (w - matches) / ((matches + 1.0) * (size - matches))))
        pmfs[w, : w + 1] = shares * no_match_probabilities(size - w, w)[::-1]
    pmfs.flags.writeable = False
    return pmfs


# ---------------------------------------------------------------------- staircases and chains


def staircase_of(overlap: Overlap) -> tuple[IntArray, IntArray, IntArray]:
    """Return the cells (i, j, positions, items) where two rankings without free items share positions, and sizes."""
    left_sizes = np.array(overlap.left_shape.sizes, dtype=np.int64)
    right_sizes = np.array(overlap.right_shape.sizes, dtype=np.int64)
    cells = np.zeros((len(left_sizes) + len(right_sizes), 4), dtype=np.int64)
    n_cells = staircase_cells(overlap.left, overlap.right, left_sizes, right_sizes, cells)
    return cells[:n_cells], left_sizes, right_sizes


def add_cell(
    by_pinned: dict[int, int], carried: str, carries: str, sizes: tuple[int, int], weights: list[int]
) -> dict[int, int]:
    """Return the sums after one more cell, by the number of pinned items in the bucket that continues."""
    out: dict[int, int] = {}
    for before, value in by_pinned.items():
        for u, weight in enumerate(weights):
            in_row, in_column = (u + before if carried == side else u for side in ("row", "column"))
            term = value * weight
            if carries != "row":
                term *= math.factorial(sizes[0] - in_row)
            if carries != "column":
                term *= math.factorial(sizes[1] - in_column)
            to = in_row if carries == "row" else in_column if carries == "column" else 0
            out[to] = out.get(to, 0) + term
    return out


def pmf_from_digits(value: int, digit: int, total: int, n_items: int) -> FloatArray:
    """Return the distribution of the distance; digit a of ``value`` in base ``2^digit`` counts a agreements."""
    mask = (1 << digit) - 1
    return np.array([(value >> (digit * (n_items - d)) & mask) / total for d in range(n_items + 1)])


def chain_paths_of(overlap: Overlap) -> FloatArray:
    """Return the numbers of lattice paths of two chains: see :func:`chain_paths`."""
    left, right = chain_items(overlap.left), chain_items(overlap.right)
    left_lone, right_lone = overlap.right[left] < 0, overlap.left[right] < 0
    m, r, n_common = len(left), len(right), int(np.count_nonzero(~left_lone))
    work = np.zeros((2, r + 1, min(m, r) + 1, r - n_common + 1, m - n_common + 1, n_common + 1))
    paths: FloatArray = work[chain_paths(left, right, left_lone, right_lone, overlap.n_items, work), r]
    return paths


def chain_items(ranks: RankArray) -> IntArray:
    """Return the listed items of a chain, best first."""
    return np.argsort(ranks, kind="stable")[np.count_nonzero(ranks < 0) :]


@lru_cache(maxsize=16)
def counting_tables(n_items: int) -> tuple[FloatArray, FloatArray]:
    """Return binomial coefficients and ``n! / (n-k)!`` for all n and k up to the number of items."""
    numbers = range(n_items + 1)
    choose = np.array([[math.comb(n, k) for k in numbers] for n in numbers], dtype=np.float64)
    return choose, np.array([[math.perm(n, k) for k in numbers] for n in numbers], dtype=np.float64)


def sweep_states(left: Shape, right: Shape) -> int:
    """Return the number of states that the sweep of a full ranking against another one visits."""
    other = right if left.is_full else left
    largest = max(other.sizes, default=0)
    return (other.n_listed + 1) ** 2 * (other.free + 1) * (largest + 1) * other.n_items


def chain_states(left: Shape, right: Shape) -> int:
    """Return the largest number of states that two chains of these lengths can need, whatever they share."""
    short, long = sorted((left.n_listed, right.n_listed))
    least_common = max(0, short + long - left.n_items)
    grid = (short + 1) * (long + 1) * (short - least_common + 1)
    return grid * max((short - c + 1) * (long - c + 1) * (c + 1) for c in range(least_common, short + 1))


def n_pinned_paths(left: Shape, right: Shape) -> int:
    """Return the number of lattice paths of two chains, each step against a free item pinned or not."""
    m, r = left.n_listed, right.n_listed
    return sum(
        math.comb(m + r - b, b) * math.comb(m + r - 2 * b, m - b) << (m + r - 2 * b) for b in range(min(m, r) + 1)
    )


# ---------------------------------------------------------------------- compiled loops

# The loops are flat and allocate nothing, as both would be compiled into each of them; ``work`` arrays are for
# intermediate results.

NOTHING, ROW, COLUMN = range(3)
LOG, DERIVATIVE = range(2)  # of a state of a staircase
CELL, ROW_CLOSE, COLUMN_CLOSE = range(3)  # rows of the work of a staircase


@compiled
def agreements(items, listed, Y, listed_Y, out, offsets):
    """Write what the Hamming distance of two top-k lists depends on; ``items[i]`` are those of ranking i, best first.

    Only the first m positions of both matter, m the length of the shorter list.
    """
    n = Y.shape[1]
    for i in range(items.shape[0]):
        for j in range(Y.shape[0]):
            m = min(listed[i], listed_Y[j])
            agreeing, inside = 0, 0
            for position in range(m):
                other = Y[j, items[i, position]]
                agreeing += other == position
                inside += other < m
            outside = n - 2 * m + inside
            out[i, j] = m * (n + 1) + outside
            offsets[i, j] = n - agreeing - outside


@compiled
def staircase_cells(left, right, left_sizes, right_sizes, cells):
    """Write the cells (i, j, positions, items): bucket i and bucket j share positions, and that many items.

    Items are sorted by (left, right), and so are the cells. Returns the number of cells.
    """
    n_items = len(left)
    n_cells = i = j = position = item = 0
    left_end, right_end = left_sizes[0], right_sizes[0]
    while position < n_items:
        end = min(left_end, right_end)
        while item < n_items and (left[item] < i or (left[item] == i and right[item] < j)):
            item += 1
        first = item
        while item < n_items and left[item] == i and right[item] == j:
            item += 1
        cells[n_cells, 0], cells[n_cells, 1] = i, j
        cells[n_cells, 2], cells[n_cells, 3] = end - position, item - first
        n_cells += 1
        position = end
        if left_end == end and end < n_items:
            i += 1
            left_end += left_sizes[i]
        if right_end == end and end < n_items:
            j += 1
            right_end += right_sizes[j]
    return n_cells


@compiled
def staircase(cells, left_sizes, right_sizes, nu, states, work):
    """Return the log of the mean of ``exp(-nu d)`` along a staircase of cells, and its derivative; nu > 0.

    Neighbouring cells share at most one bucket, so what is carried from cell to cell is one number: how many items
    of that bucket are pinned so far. A cell of P positions and C items adds u pinned ones with the weight
    ``C(C,u) C(P,u) u! (1-q)^u q^(P-u)``, q = exp(-nu); a bucket of n items that ends with r of them pinned divides by
    ``n! / (n-r)!``.
    """
    pinned = math.log(-math.expm1(-nu))
    d_pinned = math.exp(-nu) / -math.expm1(-nu)
    now, n_states, carried, n_differing = 0, 1, NOTHING, 0
    states[LOG, 0, 0] = 0.0
    states[DERIVATIVE, 0, 0] = 0.0
    for c in range(len(cells)):
        i, j, n_positions, n_shared = cells[c, 0], cells[c, 1], cells[c, 2], cells[c, 3]
        if left_sizes[i] == 1 and right_sizes[j] == 1:
            # Nothing is random here: counted as an integer, so that it is not rounded.
            n_differing += 1 - n_shared
            continue
        row_open = c + 1 < len(cells) and cells[c + 1, 0] == i
        column_open = c + 1 < len(cells) and cells[c + 1, 1] == j
        carries = ROW if row_open else COLUMN if column_open else NOTHING
        most, ways = min(n_positions, n_shared), 0.0
        for u in range(most + 1):
            if u:
                ways += math.log((n_shared - u + 1) * (n_positions - u + 1) / u)
            work[CELL, u] = ways + u * pinned - nu * (n_positions - u)
        work[ROW_CLOSE, 0] = 0.0
        work[COLUMN_CLOSE, 0] = 0.0
        for r in range(1, n_states + most):
            row_step = 0.0 if row_open else math.log(left_sizes[i] - r + 1)
            column_step = 0.0 if column_open else math.log(right_sizes[j] - r + 1)
            work[ROW_CLOSE, r] = work[ROW_CLOSE, r - 1] + row_step
            work[COLUMN_CLOSE, r] = work[COLUMN_CLOSE, r - 1] + column_step
        new = 1 - now
        n_new = 1 if carries == NOTHING else most + 1 + (n_states - 1 if carries == carried else 0)
        for k in range(n_new):
            states[LOG, new, k] = -math.inf
        for k in range(n_states):
            for u in range(most + 1):
                in_row = u + k if carried == ROW else u
                in_column = u + k if carried == COLUMN else u
                value = states[LOG, now, k] + work[CELL, u] - work[ROW_CLOSE, in_row] - work[COLUMN_CLOSE, in_column]
                derivative = states[DERIVATIVE, now, k] + u * d_pinned - (n_positions - u)
                to = in_row if carries == ROW else in_column if carries == COLUMN else 0
                other, other_derivative = states[LOG, new, to], states[DERIVATIVE, new, to]
                if other > -math.inf:
                    if value < other:
                        value, derivative, other, other_derivative = other, other_derivative, value, derivative
                    ratio = math.exp(other - value)
                    value += math.log1p(ratio)
                    derivative = (derivative + ratio * other_derivative) / (1.0 + ratio)
                states[LOG, new, to], states[DERIVATIVE, new, to] = value, derivative
        now, n_states, carried = new, n_new, carries
    return states[LOG, now, 0] - nu * n_differing, states[DERIVATIVE, now, 0] - n_differing


@compiled
def sweep_positions(bucket_at, bucket, sizes, matches, free_matches, work, pmf):
    """Write the distribution of the agreements of a full ranking with a ranking that has ties and free items.

    ``bucket_at[p]`` is the bucket, in the other ranking, of the item at position p, and ``bucket[s]`` that of its s-th
    listed item. ``matches[i, w]`` is the distribution of the fixed points among w given items of a random permutation
    of bucket i, and ``free_matches`` that of the free items. Each position gets a listed or a free item; the state is
    (listed items used, positions where a free item could agree, positions where an item of the current bucket could,
    agreements in finished buckets).
    """
    n_listed, n_free = len(bucket), len(free_matches) - 1
    now, n_here = 0, work.shape[3]
    work[0, 0, 0, 0, 0] = 1.0
    for p in range(len(bucket_at)):
        new = 1 - now
        for s in range(n_listed + 1):
            for e in range(n_free + 1):
                for u in range(n_here):
                    for a in range(n_listed + 1):
                        work[new, s, e, u, a] = 0.0
        for s in range(max(0, p - n_free), min(p, n_listed) + 1):
            if p - s < n_free:
                hit = 1 if bucket_at[p] == -1 else 0
                for e in range(p - s + 1):
                    for u in range(n_here):
                        for a in range(s + 1):
                            work[new, s, e + hit, u, a] += work[now, s, e, u, a]
            if s < n_listed:
                i = bucket[s]
                hit = 1 if bucket_at[p] == i else 0
                is_last = s + 1 == n_listed or bucket[s + 1] != i
                for e in range(p - s + 1):
                    for u in range(sizes[i]):
                        for a in range(s + 1):
                            value = work[now, s, e, u, a]
                            if value == 0.0:
                                continue
                            if not is_last:
                                work[new, s + 1, e, u + hit, a] += value
                                continue
                            for b in range(u + hit + 1):
                                work[new, s + 1, e, 0, a + b] += value * matches[i, u + hit, b]
        now = new
    total = 0.0
    for e in range(n_free + 1):  # agreements of free items
        for a in range(n_listed + 1):
            for b in range(e + 1):
                chance = work[now, n_listed, e, 0, a] * free_matches[e, b]
                pmf[a + b] += chance
                total += chance
    for a in range(len(pmf)):
        pmf[a] /= total


@compiled
def chain_paths(left, right, left_lone, right_lone, n_items, work):
    """Count the interleavings of two chains by their agreements; return the half of ``work`` with the result.

    ``left`` and ``right`` name the listed items, best first; a lone one is free in the other ranking. An interleaving
    is a lattice path: a diagonal step puts the next listed item of both at the same position, the others put one
    against a free item. Entry (r, b, j, k, a) of the result, r the length of the right chain, counts paths with b
    diagonal steps, a of them agreements, with j right and k left items chosen among the lone ones that are opposite
    free items. Positions free in both may be anywhere.
    """
    m, r = len(left), len(right)
    n_b, n_j, n_k, n_a = work.shape[2], work.shape[3], work.shape[4], work.shape[5]
    now = 0
    for s in range(m + 1):
        above, now = now, 1 - now
        for t in range(r + 1):
            agree = 1 if s > 0 and t > 0 and left[s - 1] == right[t - 1] else 0
            left_pins, right_pins = s > 0 and left_lone[s - 1], t > 0 and right_lone[t - 1]
            for b in range(n_b):
                for j in range(n_j):
                    for k in range(n_k):
                        for a in range(n_a):
                            work[now, t, b, j, k, a] = 0.0
            # There cannot be more steps against free items than free items.
            for b in range(max(0, s + r - n_items, t + m - n_items), min(s, t) + 1):
                for j in range(min(n_j, t - b + 1)):
                    for k in range(min(n_k, s - b + 1)):
                        # One loop for each kind of step: conditions inside would be compiled in all combinations.
                        if b:
                            for a in range(agree, min(n_a, b + 1)):
                                work[now, t, b, j, k, a] = work[above, t - 1, b - 1, j, k, a - agree]
                        elif s + t == 0:
                            work[now, t, b, j, k, 0] = 1.0
                        for pin in range(2):
                            if s > b and (pin == 0 or (left_pins and k)):
                                for a in range(min(n_a, b + 1)):
                                    work[now, t, b, j, k, a] += work[above, t, b, j, k - pin, a]
                            if t > b and (pin == 0 or (right_pins and j)):
                                for a in range(min(n_a, b + 1)):
                                    work[now, t, b, j, k, a] += work[now, t - 1, b, j - pin, k, a]
    return now


@compiled
def chain_coefficients(paths, n_items, n_left, n_right, choose, falling, out):
    """Write B with mean ``x^agreements = sum_aJ B[a, J] x^a (x-1)^J`` from the counts of :func:`chain_paths`.

    ``choose[n, k]`` are binomial coefficients, ``falling[n, k]`` is ``n! / (n-k)!``.
    """
    n_both, n_pins_right, n_pins_left, n_agree = paths.shape
    n_both_free = n_items - n_left - n_right + n_agree - 1
    free_left, free_right = n_items - n_left, n_items - n_right
    for b in range(n_both):
        gaps = n_items - n_left - n_right + b
        if gaps < 0:
            continue
        share = choose[n_items, gaps] / (choose[n_items, n_left] * choose[n_items, n_right])
        for i in range(min(gaps, n_both_free) + 1):
            weight = share * choose[gaps, i] * falling[n_both_free, i]
            for j in range(n_pins_right):  # at most the lone items, so that i + j are at most the free ones
                for k in range(n_pins_left):
                    ways = weight / (falling[free_left, i + j] * falling[free_right, i + k])
                    for a in range(n_agree):
                        out[a, i + j + k] += ways * paths[b, j, k, a]

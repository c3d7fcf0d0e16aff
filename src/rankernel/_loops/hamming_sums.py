"""Sums over the ways in which two random completions can agree at a position, all of positive terms."""

from __future__ import annotations

import math

import numpy as np

from rankernel._loops.compiled import compiled
from rankernel.arrays import FloatArray, IntArray, Mask, RankArray

NOTHING, ROW, COLUMN = 0, 1, 2


@compiled
def no_match_chances(n_others: int, n_targets: int) -> FloatArray:
    """Return for w = 0..n_targets the chance that a random permutation of w + n_others leaves none of w items fixed.

    The recurrence ``D(N, w) = (N-1) D(N-1, w-1) + (w-1) D(N-2, w-2)`` of the counts has only positive terms.
    """
    chances = np.ones(n_targets + 1)
    for w in range(1, n_targets + 1):
        size = w + n_others
        chances[w] = (size - 1) / size * chances[w - 1]
        if w > 1:
            chances[w] += (w - 1) / (size * (size - 1.0)) * chances[w - 2]
    return chances


@compiled
def match_laws(size: int) -> FloatArray:
    """Return for w = 0..size the law of the number of fixed points among w given items of a random permutation."""
    laws = np.zeros((size + 1, size + 1))
    for w in range(size + 1):
        chances = no_match_chances(size - w, w)
        share = 1.0
        for j in range(w + 1):
            laws[w, j] = share * chances[w - j]
            if j < w:
                share *= (w - j) / ((j + 1.0) * (size - j))
    return laws


# ---------------------------------------------------------------------- two rankings without free items


@compiled
def staircase_cells(left: RankArray, right: RankArray, left_sizes: IntArray, right_sizes: IntArray) -> IntArray:
    """Return the cells (i, j, positions, items): bucket i and bucket j share positions, and that many items.

    Items come sorted by (left, right), and so do the cells: one walk finds both numbers.
    """
    n_items = len(left)
    cells = np.zeros((len(left_sizes) + len(right_sizes), 4), dtype=np.int64)
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
    return cells[:n_cells]


@compiled
def log_falling(top: int, length: int, is_open: bool) -> FloatArray:
    """Return ``log top! / (top-r)!`` for r < length, or zeros while the bucket is still open."""
    out = np.zeros(length)
    if not is_open:
        for r in range(1, length):
            out[r] = out[r - 1] + math.log(top - r + 1)
    return out


@compiled
def cell_weights(n_positions: int, n_shared: int, nu: float) -> tuple[FloatArray, FloatArray]:
    """Return log of ``C(C,u) C(P,u) u! (1-q)^u q^(P-u)`` for each u, and its derivative in nu (q = exp(-nu))."""
    most = min(n_positions, n_shared)
    logs, slopes = np.empty(most + 1), np.empty(most + 1)
    pinned = math.log(-math.expm1(-nu))
    pinned_slope = math.exp(-nu) / -math.expm1(-nu)
    ways = 0.0
    for u in range(most + 1):
        if u:
            ways += math.log((n_shared - u + 1) * (n_positions - u + 1) / u)
        logs[u] = ways + u * pinned - nu * (n_positions - u)
        slopes[u] = u * pinned_slope - (n_positions - u)
    return logs, slopes


@compiled
def merge(log_a: float, slope_a: float, log_b: float, slope_b: float) -> tuple[float, float]:
    """Return the logarithm of a sum of two terms and its derivative."""
    if log_a < log_b:
        log_a, slope_a, log_b, slope_b = log_b, slope_b, log_a, slope_a
    ratio = math.exp(log_b - log_a)
    return log_a + math.log1p(ratio), (slope_a + ratio * slope_b) / (1.0 + ratio)


@compiled
def absorb_cell(
    logs: FloatArray,
    slopes: FloatArray,
    carried: int,
    carries: int,
    weights: tuple[FloatArray, FloatArray],
    row_close: FloatArray,
    column_close: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the state behind one cell: by number of pinned items carried on, the log of the sum and its slope."""
    cell_logs, cell_slopes = weights
    n_states = 1 if carries == NOTHING else len(cell_logs) + (len(logs) - 1 if carries == carried else 0)
    new_logs, new_slopes = np.full(n_states, -np.inf), np.zeros(n_states)
    for k in range(len(logs)):
        for u in range(len(cell_logs)):
            in_row = u + k if carried == ROW else u
            in_column = u + k if carried == COLUMN else u
            value = logs[k] + cell_logs[u] - row_close[in_row] - column_close[in_column]
            slope = slopes[k] + cell_slopes[u]
            to = in_row if carries == ROW else in_column if carries == COLUMN else 0
            if new_logs[to] == -np.inf:
                new_logs[to], new_slopes[to] = value, slope
            else:
                new_logs[to], new_slopes[to] = merge(new_logs[to], new_slopes[to], value, slope)
    return new_logs, new_slopes


@compiled
def staircase(cells: IntArray, left_sizes: IntArray, right_sizes: IntArray, nu: float) -> tuple[float, float]:
    """Return the log of the mean of ``exp(-nu d)`` along a staircase of cells, and its derivative; nu > 0.

    Neighbouring cells share at most one bucket, so what is carried from cell to cell is one number: how many items
    of that bucket are pinned so far.
    """
    logs, slopes = np.zeros(1), np.zeros(1)
    carried = NOTHING
    n_apart = 0
    for c in range(len(cells)):
        i, j, n_positions, n_shared = cells[c]
        if left_sizes[i] == 1 and right_sizes[j] == 1:
            # Nothing is random here: count it apart, so that no rounding touches it.
            n_apart += 1 - n_shared
            continue
        row_open = c + 1 < len(cells) and cells[c + 1, 0] == i
        column_open = c + 1 < len(cells) and cells[c + 1, 1] == j
        carries = ROW if row_open else COLUMN if column_open else NOTHING
        weights = cell_weights(n_positions, n_shared, nu)
        reach = len(logs) + len(weights[0]) - 1
        row_close = log_falling(left_sizes[i], reach, row_open)
        column_close = log_falling(right_sizes[j], reach, column_open)
        logs, slopes = absorb_cell(logs, slopes, carried, carries, weights, row_close, column_close)
        carried = carries
    return logs[0] - nu * n_apart, slopes[0] - n_apart


# ---------------------------------------------------------------------- a full ranking and one with free items


@compiled
def sweep_full(seen: RankArray, bucket: IntArray, sizes: IntArray, n_free: int) -> FloatArray:
    """Return the law of the number of agreements of a full ranking with a ranking that has ties and free items.

    ``seen[p]`` is the bucket, in the other ranking, of the item at position p, and ``bucket[s]`` that of its s-th
    listed item. The sweep over positions puts there a listed or a free item; its state is (listed items used,
    positions where a free item could agree, positions where an item of the current bucket could, agreements in
    finished buckets).
    """
    n_listed, largest = len(bucket), 0
    for size in sizes:
        largest = max(largest, size)
    shape = (n_listed + 1, n_free + 1, largest + 1, n_listed + 1)
    ways = np.zeros(shape)
    ways[0, 0, 0, 0] = 1.0
    for p in range(len(seen)):
        new = np.zeros(shape)
        for s in range(max(0, p - n_free), min(p, n_listed) + 1):
            if p - s < n_free:
                put_free(ways, new, s, p - s, 1 if seen[p] == -1 else 0)
            if s < n_listed:
                i = bucket[s]
                is_last = s + 1 == n_listed or bucket[s + 1] != i
                put_listed(ways, new, s, p - s, 1 if seen[p] == i else 0, sizes[i], is_last)
        ways = new
    return law_of_sweep(ways, n_listed, n_free)


@compiled
def put_free(ways: FloatArray, new: FloatArray, s: int, n_placed: int, hit: int) -> None:
    """Put a free item at the next position."""
    for e in range(n_placed + 1):
        for u in range(ways.shape[2]):
            for a in range(s + 1):
                new[s, e + hit, u, a] += ways[s, e, u, a]


@compiled
def put_listed(ways: FloatArray, new: FloatArray, s: int, n_placed: int, hit: int, size: int, is_last: bool) -> None:
    """Put a listed item at the next position; the last of a bucket decides how many of the bucket agree."""
    laws = match_laws(size if is_last else 0)
    for e in range(n_placed + 1):
        for u in range(size):
            for a in range(s + 1):
                value = ways[s, e, u, a]
                if value == 0.0:
                    continue
                if is_last:
                    for b in range(u + hit + 1):
                        new[s + 1, e, 0, a + b] += value * laws[u + hit, b]
                else:
                    new[s + 1, e, u + hit, a] += value


@compiled
def law_of_sweep(ways: FloatArray, n_listed: int, n_free: int) -> FloatArray:
    """Return the law of all agreements once every position is filled: now the free items count, too."""
    law = np.zeros(n_listed + n_free + 1)
    laws = match_laws(n_free)
    for e in range(n_free + 1):
        for a in range(n_listed + 1):
            for b in range(e + 1):
                law[a + b] += ways[n_listed, e, 0, a] * laws[e, b]
    total = 0.0
    for chance in law:
        total += chance
    for a in range(len(law)):
        law[a] /= total
    return law


# ---------------------------------------------------------------------- two chains with free items


@compiled
def chain_paths(left: IntArray, right: IntArray, left_lone: Mask, right_lone: Mask, n_items: int) -> FloatArray:
    """Count the interleavings of two chains by what they let agree.

    ``left`` and ``right`` name the listed items, best first; a lone one is free in the other ranking. An interleaving
    is a lattice path: a diagonal step puts the next listed item of both at the same position, the others put one
    against a free item. Entry (b, j, k, a) of the result counts paths with b diagonal steps, a of them agreements,
    with j right and k left items chosen among the lone ones that stand against free items. Positions free in both may
    be put in anywhere.
    """
    m, r = len(left), len(right)
    n_common = m
    for s in range(m):
        n_common -= left_lone[s]
    shape = (r + 1, min(m, r) + 1, r - n_common + 1, m - n_common + 1, n_common + 1)
    above = paths = np.zeros(shape)
    for s in range(m + 1):
        above, paths = paths, np.zeros(shape)
        for t in range(r + 1):
            agree = 1 if s > 0 and t > 0 and left[s - 1] == right[t - 1] else 0
            left_pins, right_pins = s > 0 and left_lone[s - 1], t > 0 and right_lone[t - 1]
            # More steps against free items than there are free items lead nowhere.
            for b in range(max(0, s + r - n_items, t + m - n_items), min(s, t) + 1):
                add_paths(above, paths, s, t, b, agree, left_pins, right_pins)
    counts: FloatArray = paths[r]
    return counts


@compiled
def add_paths(
    above: FloatArray, paths: FloatArray, s: int, t: int, b: int, agree: int, left_pins: bool, right_pins: bool
) -> None:
    """Count the paths to (s, t) with b diagonal steps from those one step shorter."""
    if s == 0 and t == 0:
        paths[0, 0, 0, 0, 0] = 1.0
        return
    _, _, n_j, n_k, n_a = paths.shape
    for j in range(min(n_j, t - b + 1)):
        for k in range(min(n_k, s - b + 1)):
            for a in range(min(n_a, b + 1)):
                count = above[t - 1, b - 1, j, k, a - agree] if b and a >= agree else 0.0
                if s > b:
                    count += above[t, b, j, k, a]
                    if left_pins and k:
                        count += above[t, b, j, k - 1, a]
                if t > b:
                    count += paths[t - 1, b, j, k, a]
                    if right_pins and j:
                        count += paths[t - 1, b, j - 1, k, a]
                paths[t, b, j, k, a] = count


@compiled
def chain_coefficients(paths: FloatArray, n_items: int, n_left: int, n_right: int) -> FloatArray:
    """Return B with mean ``x^agreements = sum_aJ B[a, J] x^a (x-1)^J`` from the counts of :func:`chain_paths`."""
    n_both, n_pins_right, n_pins_left, n_agree = paths.shape
    n_both_free = n_items - n_left - n_right + n_agree - 1
    free_left, free_right = n_items - n_left, n_items - n_right
    out = np.zeros((n_agree, n_items + 1))
    for b in range(n_both):
        gaps = n_items - n_left - n_right + b
        if gaps < 0:
            continue
        share = choose(n_items, gaps) / (choose(n_items, n_left) * choose(n_items, n_right))
        for i in range(min(gaps, n_both_free) + 1):
            weight = share * choose(gaps, i) * falling(n_both_free, i)
            for j in range(min(n_pins_right, free_left - i + 1)):
                for k in range(min(n_pins_left, free_right - i + 1)):
                    ways = weight / (falling(free_left, i + j) * falling(free_right, i + k))
                    for a in range(n_agree):
                        out[a, i + j + k] += ways * paths[b, j, k, a]
    return out


@compiled
def choose(n: int, k: int) -> float:
    """Binomial coefficient."""
    out = 1.0
    for i in range(min(k, n - k)):
        out = out * (n - i) / (i + 1)
    return out


@compiled
def falling(n: int, k: int) -> float:
    """Return ``n! / (n-k)!``."""
    out = 1.0
    for i in range(k):
        out *= n - i
    return out

"""Sums over the ways in which two random completions can agree at a position, all of positive terms.

The loops are flat and allocate nothing: both would be compiled anew into each of them. Arrays called ``work`` are
theirs to write in.
"""

from __future__ import annotations

import math

from rankernel._loops.compiled import compiled

NOTHING, ROW, COLUMN = 0, 1, 2
LOG, SLOPE, CELL, ROW_CLOSE, COLUMN_CLOSE = 0, 2, 4, 5, 6  # rows of the work of a staircase; the first two are double
STAIRCASE_ROWS = 7

# ---------------------------------------------------------------------- two rankings without free items


@compiled
def staircase_cells(left, right, left_sizes, right_sizes, cells):
    """Write the cells (i, j, positions, items): bucket i and bucket j share positions, and that many items.

    Items come sorted by (left, right), and so do the cells: one walk finds both numbers. Returns how many cells there
    are.
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
def staircase(cells, left_sizes, right_sizes, nu, work):
    """Return the log of the mean of ``exp(-nu d)`` along a staircase of cells, and its derivative; nu > 0.

    Neighbouring cells share at most one bucket, so what is carried from cell to cell is one number: how many items
    of that bucket are pinned so far. A cell of P positions and C items adds u pinned ones with the weight
    ``C(C,u) C(P,u) u! (1-q)^u q^(P-u)``, q = exp(-nu); a bucket of n items that ends with r of them pinned divides by
    ``n! / (n-r)!``.
    """
    pinned = math.log(-math.expm1(-nu))
    pinned_slope = math.exp(-nu) / -math.expm1(-nu)
    now, n_states, carried, n_apart = 0, 1, NOTHING, 0
    work[LOG, 0] = 0.0
    work[SLOPE, 0] = 0.0
    for c in range(len(cells)):
        i, j, n_positions, n_shared = cells[c, 0], cells[c, 1], cells[c, 2], cells[c, 3]
        if left_sizes[i] == 1 and right_sizes[j] == 1:
            # Nothing is random here: count it apart, so that no rounding touches it.
            n_apart += 1 - n_shared
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
            work[LOG + new, k] = -math.inf
        for k in range(n_states):
            for u in range(most + 1):
                in_row = u + k if carried == ROW else u
                in_column = u + k if carried == COLUMN else u
                value = work[LOG + now, k] + work[CELL, u] - work[ROW_CLOSE, in_row] - work[COLUMN_CLOSE, in_column]
                slope = work[SLOPE + now, k] + u * pinned_slope - (n_positions - u)
                to = in_row if carries == ROW else in_column if carries == COLUMN else 0
                other, other_slope = work[LOG + new, to], work[SLOPE + new, to]
                if other > -math.inf:
                    if value < other:
                        value, slope, other, other_slope = other, other_slope, value, slope
                    ratio = math.exp(other - value)
                    value += math.log1p(ratio)
                    slope = (slope + ratio * other_slope) / (1.0 + ratio)
                work[LOG + new, to], work[SLOPE + new, to] = value, slope
        now, n_states, carried = new, n_new, carries
    return work[LOG + now, 0] - nu * n_apart, work[SLOPE + now, 0] - n_apart


# ---------------------------------------------------------------------- a full ranking and one with free items


@compiled
def sweep_full(seen, bucket, sizes, laws, free_laws, work, law):
    """Write the law of the number of agreements of a full ranking with a ranking that has ties and free items.

    ``seen[p]`` is the bucket, in the other ranking, of the item at position p, and ``bucket[s]`` that of its s-th
    listed item. ``laws[i, w]`` is the law of the fixed points among w given items of a random permutation of bucket
    i, and ``free_laws`` that of the free items. The sweep over positions puts there a listed or a free item; its
    state is (listed items used, positions where a free item could agree, positions where an item of the current bucket
    could, agreements in finished buckets).
    """
    n_listed, n_free = len(bucket), len(free_laws) - 1
    now, n_here = 0, work.shape[3]
    work[0, 0, 0, 0, 0] = 1.0
    for p in range(len(seen)):
        new = 1 - now
        for s in range(n_listed + 1):
            for e in range(n_free + 1):
                for u in range(n_here):
                    for a in range(n_listed + 1):
                        work[new, s, e, u, a] = 0.0
        for s in range(max(0, p - n_free), min(p, n_listed) + 1):
            if p - s < n_free:
                hit = 1 if seen[p] == -1 else 0
                for e in range(p - s + 1):
                    for u in range(n_here):
                        for a in range(s + 1):
                            work[new, s, e + hit, u, a] += work[now, s, e, u, a]
            if s < n_listed:
                i = bucket[s]
                hit = 1 if seen[p] == i else 0
                is_last = s + 1 == n_listed or bucket[s + 1] != i  # which decides how many of the bucket agree
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
                                work[new, s + 1, e, 0, a + b] += value * laws[i, u + hit, b]
        now = new
    total = 0.0
    for e in range(n_free + 1):  # now the free items count, too
        for a in range(n_listed + 1):
            for b in range(e + 1):
                chance = work[now, n_listed, e, 0, a] * free_laws[e, b]
                law[a + b] += chance
                total += chance
    for a in range(len(law)):
        law[a] /= total


# ---------------------------------------------------------------------- two chains with free items


@compiled
def chain_paths(left, right, left_lone, right_lone, n_items, work):
    """Count the interleavings of two chains by what they let agree; return in which half of ``work`` they are.

    ``left`` and ``right`` name the listed items, best first; a lone one is free in the other ranking. An interleaving
    is a lattice path: a diagonal step puts the next listed item of both at the same position, the others put one
    against a free item. Entry (r, b, j, k, a) of the result, r the length of the right chain, counts paths with b
    diagonal steps, a of them agreements, with j right and k left items chosen among the lone ones that stand against
    free items. Positions free in both may be put in anywhere.
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
            # More steps against free items than there are free items lead nowhere.
            for b in range(max(0, s + r - n_items, t + m - n_items), min(s, t) + 1):
                for j in range(min(n_j, t - b + 1)):
                    for k in range(min(n_k, s - b + 1)):
                        # One simple loop for each kind of step: tests inside would be compiled in all combinations.
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

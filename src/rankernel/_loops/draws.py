"""Distances between the draws of two rankings, and sums of functions of these distances.

``draws[i]`` holds the draws of ranking i: as ``(word, draw)`` the order of every pair of items as bits, or as
``(item, draw)`` the position of every item. ``d[p, a, b]`` is the distance between draw ``first + a`` of the left
ranking of pair p and draw b of the right one.

Sums are taken in a fixed order: an entry has the same bits in any block and on any number of threads.
"""

import numpy as np

from rankernel._loops.compiled import compiled, compiled_strictly
from rankernel._loops.pairs import FOOTRULE, HAMMING, SPEARMAN, cycle_code, popcount

# ---------------------------------------------------------------------- distances


@compiled
def of_bits(draws, left, right, first, d):
    """Write Kendall distances: the number of bits that differ."""
    for p in range(len(left)):
        i, j = left[p], right[p]
        for a in range(d.shape[1]):
            for b in range(d.shape[2]):
                d[p, a, b] = popcount(draws[i, 0, first + a] ^ draws[j, 0, b])
            for w in range(1, draws.shape[1]):
                for b in range(d.shape[2]):
                    d[p, a, b] += popcount(draws[i, w, first + a] ^ draws[j, w, b])


@compiled
def of_positions(draws, left, right, first, d, kind):
    """Write distances that compare positions item by item: FOOTRULE, SPEARMAN, HAMMING or LINF."""
    for p in range(len(left)):
        i, j = left[p], right[p]
        for a in range(d.shape[1]):
            for b in range(d.shape[2]):
                d[p, a, b] = 0
            for item in range(draws.shape[1]):
                own = draws[i, item, first + a]
                x = np.int32(own)
                if kind == FOOTRULE:
                    for b in range(d.shape[2]):
                        d[p, a, b] += abs(x - np.int32(draws[j, item, b]))
                elif kind == SPEARMAN:
                    for b in range(d.shape[2]):
                        step = x - np.int32(draws[j, item, b])
                        d[p, a, b] += step * step
                elif kind == HAMMING:
                    for b in range(d.shape[2]):
                        d[p, a, b] += own != draws[j, item, b]
                else:
                    for b in range(d.shape[2]):
                        d[p, a, b] = max(d[p, a, b], abs(x - np.int32(draws[j, item, b])))


@compiled
def of_cycles(draws, left, right, first, d, numbers):
    """Write sums over the cycles of the permutations between draws: see :func:`cycle_code`."""
    n = draws.shape[1]
    item_at, step, seen = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for p in range(len(left)):
        i, j = left[p], right[p]
        for a in range(d.shape[1]):
            for item in range(n):
                item_at[draws[i, item, first + a]] = item
            for b in range(d.shape[2]):
                for position in range(n):
                    step[position] = draws[j, item_at[position], b]
                d[p, a, b] = cycle_code(step, numbers, seen)


# ---------------------------------------------------------------------- sums


@compiled_strictly
def word_means(draws, left, right, tables, out):
    """Write the means of tables of the Kendall distance, for draws that are one word of bits each.

    Four sums are accumulated side by side: consecutive additions to a single sum would wait for each other.
    """
    m = draws.shape[2]
    for p in range(len(left)):
        i, j = left[p], right[p]
        for g in range(len(tables)):
            total = 0.0
            for a in range(0, m - 3, 4):
                s, t, u, v = 0.0, 0.0, 0.0, 0.0
                first, second = draws[i, 0, a], draws[i, 0, a + 1]
                third, fourth = draws[i, 0, a + 2], draws[i, 0, a + 3]
                for b in range(m):
                    word = draws[j, 0, b]
                    s += tables[g, popcount(first ^ word)]
                    t += tables[g, popcount(second ^ word)]
                    u += tables[g, popcount(third ^ word)]
                    v += tables[g, popcount(fourth ^ word)]
                total += (s + t) + (u + v)
            for a in range(m - m % 4, m):
                s = 0.0
                for b in range(m):
                    s += tables[g, popcount(draws[i, 0, a] ^ draws[j, 0, b])]
                total += s
            out[g, p] = total / (m * m)


@compiled_strictly
def add_sums(d, tables, out):
    """Add the sum of each table over the distances between draws."""
    m = d.shape[1]
    for p in range(len(d)):
        for g in range(len(tables)):
            total = 0.0
            for a in range(0, m - 3, 4):
                s, t, u, v = 0.0, 0.0, 0.0, 0.0
                for b in range(d.shape[2]):
                    s += tables[g, d[p, a, b]]
                    t += tables[g, d[p, a + 1, b]]
                    u += tables[g, d[p, a + 2, b]]
                    v += tables[g, d[p, a + 3, b]]
                total += (s + t) + (u + v)
            for a in range(m - m % 4, m):
                s = 0.0
                for b in range(d.shape[2]):
                    s += tables[g, d[p, a, b]]
                total += s
            out[g, p] += total


@compiled_strictly
def add_margins(d, first, table, weights, left, right, rows, columns):
    """Add the weighted sums of a table for each draw of the left and of the right ranking.

    ``weights`` has no columns where all draws weigh 1.
    """
    weighted = weights.shape[1] > 0
    for p in range(len(d)):
        i, j = left[p], right[p]
        for a in range(d.shape[1]):
            total = 0.0
            if weighted:
                for b in range(d.shape[2]):
                    value = table[d[p, a, b]]
                    total += weights[j, b] * value
                    columns[p, b] += weights[i, first + a] * value
            else:
                for b in range(d.shape[2]):
                    value = table[d[p, a, b]]
                    total += value
                    columns[p, b] += value
            rows[p, first + a] += total


@compiled_strictly
def add_within_blocks(d, first, table, weights, left, starts, ends, out):
    """Add the weighted sums of a table over the pairs of draws in each block, for rankings with themselves."""
    weighted = weights.shape[1] > 0
    for p in range(len(d)):
        i, g = left[p], 0
        for a in range(d.shape[1]):
            while first + a >= ends[g]:
                g += 1
            total = 0.0
            for b in range(starts[g], ends[g]):
                total += (weights[i, b] if weighted else 1.0) * table[d[p, a, b]]
            out[p, g] += (weights[i, first + a] if weighted else 1.0) * total

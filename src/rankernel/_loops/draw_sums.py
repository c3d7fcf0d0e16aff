"""Means of functions of a distance over all pairs of draws of two rankings, and how the draws spread around them.

Sums are taken in one order, whatever else is computed beside them, so that an entry is the same to the bit wherever it
is computed, and on every machine.
"""

import numpy as np

from rankernel._loops.bits import popcount
from rankernel._loops.compiled import compiled_strictly


@compiled_strictly
def word_means(draws, left, right, tables, out):
    """Write the means of each table for pairs of rankings whose draws are one word each: the bits that differ.

    Four sums are taken side by side: adding to one sum twice in a row would have to wait.
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
    """Add the sum of each table over distances between draws."""
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
def add_block_sums(d, first, table, whole, weights, left, right, ends, blocks, sizes):
    """Add the sum of a table over distances between draws, for each pair of blocks of draws; and how large values are.

    Draws may have weights, or none. ``d`` begins with draw ``first`` on the left. ``sizes`` are the sums of the
    absolute values of the table ``whole``, and of their squares; of a ranking with itself, between different blocks.
    """
    weighted = weights.shape[1] > 0
    for p in range(len(d)):
        i, j, g = left[p], right[p], 0
        for a in range(d.shape[1]):
            while first + a >= ends[g]:
                g += 1
            by = weights[i, first + a] if weighted else 1.0
            b = 0
            for h in range(len(ends)):
                s, size, square = 0.0, 0.0, 0.0
                while b < ends[h]:
                    w = by * weights[j, b] if weighted else 1.0
                    s += w * table[d[p, a, b]]
                    value = abs(w * whole[d[p, a, b]])
                    size += value
                    square += value * value
                    b += 1
                blocks[p, g, h] += s
                if i != j or g != h:
                    sizes[0, p] += size
                    sizes[1, p] += square


@compiled_strictly
def add_value_sums(values, whole, first, weights, pairs, left, right, ends, blocks, sizes):
    """Add the same of values that are written down: ``values[a, q, b]`` of draws a and b of pair ``pairs[q]``.

    All these pairs have the same ranking on the left. Sizes are those of ``whole``. Sharing the inner loop with the sum
    above would make that a tenth slower.
    """
    weighted = weights.shape[1] > 0
    for q in range(len(pairs)):
        p = pairs[q]
        i, j, g = left[p], right[p], 0
        for a in range(len(values)):
            while first + a >= ends[g]:
                g += 1
            by = weights[i, first + a] if weighted else 1.0
            b = 0
            for h in range(len(ends)):
                s, size, square = 0.0, 0.0, 0.0
                while b < ends[h]:
                    w = by * weights[j, b] if weighted else 1.0
                    s += w * values[a, q, b]
                    value = abs(w * whole[a, q, b])
                    size += value
                    square += value * value
                    b += 1
                blocks[p, g, h] += s
                if i != j or g != h:
                    sizes[0, p] += size
                    sizes[1, p] += square


TINY = 1e-200  # what is divided by where one block has all the weight: the deviations are 0 then


@compiled_strictly
def spreads(blocks, shares, n_alike, left, right, out):
    """Write the mean over pairs of blocks of draws, its variance, and who carries it.

    ``blocks[p, g, h]`` is what blocks g and h add to mean p, and ``shares[i]`` are the shares of the blocks of ranking
    i in its draws. Rows of a table of blocks share draws, and so do columns: the variance is that of the rows and that
    of the columns, less that of what is left (the random effects of a two-way table), each deviation divided by what it
    lacks of a whole for being measured from the mean of all. Such a difference may come out negative: the third number
    is what the variance is at least, that of the mean of so many pairs if all were independent. Last come the sums of
    the second and the fourth powers of the deviations of single pairs of blocks, which say who carries it; behind the
    first ``n_alike`` may be a smaller block, which varies more.
    """
    n = blocks.shape[1]
    row, column = np.empty(n), np.empty(n)
    for p in range(len(blocks)):
        i, j = left[p], right[p]
        for g in range(n):
            row[g] = 0.0
            column[g] = 0.0
        total = 0.0
        for g in range(n):
            for h in range(n):
                row[g] += blocks[p, g, h]
                column[h] += blocks[p, g, h]
            total += row[g]
        variance, least, squares, fourths = 0.0, 0.0, 0.0, 0.0
        for g in range(n if n > 1 else 0):
            away, alone = row[g] - shares[i, g] * total, max(1.0 - shares[i, g], TINY)
            variance += away * away / alone
            away = column[g] - shares[j, g] * total
            variance += away * away / max(1.0 - shares[j, g], TINY)
            for h in range(n):
                part = shares[i, g] * shares[j, h]
                away = blocks[p, g, h] - shares[j, h] * row[g] - shares[i, g] * column[h] + part * total
                variance -= away * away / (alone * max(1.0 - shares[j, h], TINY))
                away = blocks[p, g, h] - part * total
                least += away * away
                away = away / part if part > 0.0 and g < n_alike and h < n_alike else 0.0
                squares += away * away
                fourths += away * away * away * away
        out[0, p], out[1, p], out[2, p], out[3, p], out[4, p] = total, variance, least, squares, fourths

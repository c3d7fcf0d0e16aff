"""Means of functions of a distance over all pairs of draws of two rankings.

Distances are counted, not summed: a histogram of whole numbers is the same whatever the order of the draws, so an entry
is the same to the bit wherever and in whatever block it is computed, and one pass serves any number of functions.
"""

import numpy as np

from rankernel._loops.bits import popcount
from rankernel._loops.compiled import compiled, compiled_strictly

HAMMING, CAYLEY, FOOTRULE, SPEARMAN, LINF, KENDALL = range(6)


@compiled
def by_bits(left, right, tables, out):
    """Kendall distances of few items: ``left[i, a]`` are the bits of the pairs of items that a draw orders one way.

    Two draws at a time, each with counts of its own: adding to one count twice in a row would have to wait.
    """
    counts, others = np.zeros(tables.shape[1], np.int64), np.zeros(tables.shape[1], np.int64)
    n_left, n_right, words = left.shape[1], right.shape[1], left.shape[2]
    for i in range(left.shape[0]):
        for j in range(right.shape[0]):
            for a in range(0, n_left - 1, 2):
                if words == 1:
                    first, second = left[i, a, 0], left[i, a + 1, 0]
                    for b in range(n_right):
                        word = right[j, b, 0]
                        counts[popcount(first ^ word)] += 1
                        others[popcount(second ^ word)] += 1
                else:
                    for b in range(n_right):
                        counts[apart(left[i, a], right[j, b])] += 1
                        others[apart(left[i, a + 1], right[j, b])] += 1
            if n_left % 2:
                for b in range(n_right):
                    counts[apart(left[i, n_left - 1], right[j, b])] += 1
            for d in range(len(counts)):
                counts[d] += others[d]
                others[d] = 0
            finish(counts, n_left * n_right, tables, out[:, i, j])


@compiled
def apart(x, y):
    """Count the bits in which two rows of words differ."""
    d = np.uint64(0)
    for w in range(len(x)):
        d += popcount(x[w] ^ y[w])
    return d


@compiled_strictly
def finish(counts, total, tables, out):
    """Turn counts of distances into means of each table, in a fixed order of additions, and clear them."""
    whole = len(counts) // 4 * 4
    for g in range(tables.shape[0]):
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for p in range(0, whole, 4):
            a += counts[p] * tables[g, p]
            b += counts[p + 1] * tables[g, p + 1]
            c += counts[p + 2] * tables[g, p + 2]
            d += counts[p + 3] * tables[g, p + 3]
        for p in range(whole, len(counts)):
            a += counts[p] * tables[g, p]
        out[g] = ((a + b) + (c + d)) / total
    counts[:] = 0


@compiled
def by_ranks(left, right, kind, tables, out):
    """Distances of any kind between rank vectors: ``left[i, a]`` is draw a of ranking i."""
    n = left.shape[2]
    counts = np.zeros(tables.shape[1], np.int64)
    step = np.empty(n, np.int64)
    seen = np.empty(n, np.bool_)
    for i in range(left.shape[0]):
        for j in range(right.shape[0]):
            for a in range(left.shape[1]):
                for b in range(right.shape[1]):
                    x, y = left[i, a], right[j, b]
                    if kind == CAYLEY:
                        d = cayley(x, y, step, seen)
                    elif kind == KENDALL:
                        d = kendall(x, y)
                    else:
                        d = rankwise(x, y, kind)
                    counts[d] += 1
            finish(counts, left.shape[1] * right.shape[1], tables, out[:, i, j])


@compiled
def rankwise(x, y, kind):
    """Distances that compare the two ranks of each item."""
    d = 0
    if kind == HAMMING:
        for a in range(x.shape[0]):
            d += x[a] != y[a]
    elif kind == FOOTRULE:
        for a in range(x.shape[0]):
            d += abs(np.int64(x[a]) - y[a])
    elif kind == SPEARMAN:
        for a in range(x.shape[0]):
            d += (np.int64(x[a]) - y[a]) ** 2
    else:
        for a in range(x.shape[0]):
            d = max(d, abs(np.int64(x[a]) - y[a]))
    return d


@compiled
def kendall(x, y):
    """Discordant pairs, one by one."""
    d = 0
    for a in range(x.shape[0]):
        for b in range(a):
            d += (x[a] < x[b]) != (y[a] < y[b])
    return d


@compiled
def cayley(x, y, step, seen):
    """Items less cycles."""
    n = x.shape[0]
    for a in range(n):
        step[x[a]] = y[a]
        seen[a] = False
    cycles = 0
    for start in range(n):
        if not seen[start]:
            cycles += 1
            place = start
            while not seen[place]:
                seen[place] = True
                place = step[place]
    return n - cycles

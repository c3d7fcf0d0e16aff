"""Means of functions of a distance over all pairs of draws of two rankings.

An entry is the same to the bit wherever and in whatever block it is computed, and whichever ranking is on the left:
sums are taken in an order that depends on the draws alone, and counts of distances have no order.
"""

import numpy as np

from rankernel._loops.bits import popcount
from rankernel._loops.compiled import compiled, compiled_strictly

HAMMING, CAYLEY, FOOTRULE, SPEARMAN, LINF, KENDALL = range(6)
COUNT = 2.5  # to count a distance takes about as long as so many additions


@compiled_strictly
def by_bits(draws, rows, columns, symmetric, tables, out):
    """Kendall distances of few items: ``draws[i, a]`` are the bits of the pairs of items that a draw orders one way.

    A tile has the rankings ``rows`` against ``columns``. With ``symmetric`` both are the same, and one half of the tile
    is the mirror of the other.
    """
    total = draws.shape[1] ** 2
    fours = draws.shape[1] // 4 * 4 if draws.shape[2] == 1 else 0
    counts = np.zeros((2, tables.shape[1]), np.int64)
    # Counts serve any number of functions, but few of them are sooner summed; so are few pairs of draws.
    counted = len(tables) * (total - tables.shape[1]) > COUNT * total
    for r in range(len(rows)):
        for c in range(r if symmetric else 0, len(columns)):
            if counted:
                count(draws, rows[r], columns[c], counts)
                finish(counts[0], total, tables, out[:, r, c])
            else:
                i, j = in_order(draws, rows[r], columns[c])
                for g in range(len(tables)):
                    out[g, r, c] = sum_of_fours(draws, i, j, tables, g, fours) / total
                if fours < draws.shape[1]:
                    for g in range(len(tables)):
                        out[g, r, c] += sum_of_rest(draws, i, j, tables, g, fours) / total
            if symmetric:
                for g in range(len(tables)):
                    out[g, c, r] = out[g, r, c]


# These take whole arrays and the numbers of their rows: making a view of a row would take as long as ten distances.


@compiled_strictly
def in_order(draws, i, j):
    """Return the two rankings in an order that depends on the bits of their draws alone."""
    for a in range(draws.shape[1]):
        for w in range(draws.shape[2]):
            if draws[i, a, w] != draws[j, a, w]:
                after = draws[i, a, w] > draws[j, a, w]
                return (j if after else i), (i if after else j)
    return i, j


@compiled_strictly
def sum_of_fours(draws, i, j, tables, g, end):
    """Return the sum of a table over the distances of the first draws to all draws, whose bits fit one word.

    Four draws at a time, each with a sum of its own: adding to one sum twice in a row would have to wait.
    """
    s, t, u, v = 0.0, 0.0, 0.0, 0.0
    for a in range(0, end, 4):
        first, second, third, fourth = draws[i, a, 0], draws[i, a + 1, 0], draws[i, a + 2, 0], draws[i, a + 3, 0]
        for b in range(draws.shape[1]):
            word = draws[j, b, 0]
            s += tables[g, popcount(first ^ word)]
            t += tables[g, popcount(second ^ word)]
            u += tables[g, popcount(third ^ word)]
            v += tables[g, popcount(fourth ^ word)]
    return (s + t) + (u + v)


@compiled_strictly
def sum_of_rest(draws, i, j, tables, g, start):
    """Return the sum of a table over the distances of the last draws to all draws."""
    s = 0.0
    for a in range(start, draws.shape[1]):
        for b in range(draws.shape[1]):
            s += tables[g, apart(draws, i, a, j, b)]
    return s


@compiled_strictly
def count(draws, i, j, counts):
    """Count the distances of all pairs of draws in the first row of counts; the second, for every other draw, is 0."""
    n_draws = draws.shape[1]
    whole = n_draws // 2 * 2 if draws.shape[2] == 1 else 0
    for a in range(0, whole, 2):
        first, second = draws[i, a, 0], draws[i, a + 1, 0]
        for b in range(n_draws):
            counts[0, popcount(first ^ draws[j, b, 0])] += 1
            counts[1, popcount(second ^ draws[j, b, 0])] += 1
    for a in range(whole, n_draws):
        for b in range(n_draws):
            counts[a % 2, apart(draws, i, a, j, b)] += 1
    for d in range(counts.shape[1]):
        counts[0, d] += counts[1, d]
        counts[1, d] = 0


@compiled_strictly
def apart(draws, i, a, j, b):
    """Count the bits in which two draws differ."""
    d = np.uint64(0)
    for w in range(draws.shape[2]):
        d += popcount(draws[i, a, w] ^ draws[j, b, w])
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


@compiled_strictly
def by_ranks(draws, rows, columns, symmetric, kind, tables, out):
    """Distances of any kind between rank vectors: ``draws[i, a]`` is draw a of ranking i."""
    n_draws, n = draws.shape[1], draws.shape[2]
    counts = np.zeros(tables.shape[1], np.int64)
    step = np.empty(n, np.int64)
    seen = np.empty(n, np.bool_)
    for r in range(len(rows)):
        for c in range(r if symmetric else 0, len(columns)):
            for a in range(n_draws):
                for b in range(n_draws):
                    x, y = draws[rows[r], a], draws[columns[c], b]
                    if kind == CAYLEY:
                        d = cayley(x, y, step, seen)
                    elif kind == KENDALL:
                        d = kendall(x, y)
                    else:
                        d = rankwise(x, y, kind)
                    counts[d] += 1
            finish(counts, n_draws**2, tables, out[:, r, c])
            if symmetric:
                for g in range(len(tables)):
                    out[g, c, r] = out[g, r, c]


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

"""What the Mallows kernel needs of two rankings without free items: discordant pairs and shared buckets."""

import numpy as np

from rankernel._loops.bits import popcount
from rankernel._loops.compiled import compiled
from rankernel._loops.distances import inversions


@compiled
def fill_packed(before, after, ties, Before, After, Ties, powers, inverse, row, column, out):
    """Mallows kernel of few items, from bits.

    ``before[i]`` and ``after[i]`` are the bits of the pairs (a, b) that ranking i orders a before b, b before a;
    ``ties[i]`` the bit sets of its buckets with more than one item. ``powers[c] = q^c``, ``inverse[m]`` is one over
    the factor of m items that share a bucket on both sides, ``row`` and ``column`` the factors of each ranking.
    """
    words = before.shape[1]
    for i in range(before.shape[0]):
        for j in range(Before.shape[0]):
            discordant = np.uint64(0)
            for w in range(words):
                discordant += popcount(before[i, w] & After[j, w]) + popcount(after[i, w] & Before[j, w])
            value = powers[discordant] * row[i] * column[j]
            for s in range(ties.shape[1]):
                if ties[i, s] == 0:
                    break
                for t in range(Ties.shape[1]):
                    if Ties[j, t] == 0:
                        break
                    value *= inverse[popcount(ties[i, s] & Ties[j, t])]
            out[i, j] = value


@compiled
def pair_sums(X, order, n_buckets, Y, n_buckets_Y, tables, discordant, sums):
    """Count strictly discordant pairs and sum each table over the sizes of the shared buckets.

    ``order[i]`` lists the items of ranking i, best first. ``sums[g, i, j]`` is the sum of ``tables[g, m]`` over all
    pairs of buckets that share m >= 2 items.
    """
    n = X.shape[1]
    walk = np.empty(n, np.int64)
    spare = np.empty(n, np.int64)
    widest = np.int64(4) * n + 64
    cells = np.zeros(widest, np.int64)
    column = np.zeros(n + 1, np.int64)
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            for g in range(tables.shape[0]):
                sums[g, i, j] = 0.0
            if n_buckets[i] * n_buckets_Y[j] <= widest:
                discordant[i, j] = from_cells(
                    X[i], n_buckets[i], Y[j], n_buckets_Y[j], tables, cells, column, sums[:, i, j]
                )
            else:
                discordant[i, j] = from_walk(X[i], order[i], Y[j], tables, walk, spare, sums[:, i, j])


@compiled
def from_cells(x, rows, y, columns, tables, cells, column, sums):
    """Few buckets: count the items of each pair of buckets, then pairs of cells that disagree, by running sums."""
    for c in range(rows * columns):
        cells[c] = 0
    for c in range(columns):
        column[c] = 0
    for a in range(x.shape[0]):
        cells[x[a] * columns + y[a]] += 1
    discordant = 0
    for r in range(rows):
        later = 0  # items in earlier rows and in columns behind the current one
        for c in range(columns - 1, -1, -1):
            size = cells[r * columns + c]
            discordant += size * later
            later += column[c]
            if size > 1:
                for g in range(tables.shape[0]):
                    sums[g] += tables[g, size]
        for c in range(columns):
            column[c] += cells[r * columns + c]
    return discordant


@compiled
def from_walk(x, order, y, tables, walk, spare, sums):
    """Many buckets: walk through one ranking and count the inversions of the other, ties sorted so as not to count."""
    n = x.shape[0]
    start = 0
    while start < n:
        end = start
        while end < n and x[order[end]] == x[order[start]]:
            walk[end] = y[order[end]]
            end += 1
        if end - start > 1:
            walk[start:end].sort()
            run = 1
            for p in range(start + 1, end + 1):
                if p < end and walk[p] == walk[p - 1]:
                    run += 1
                else:
                    if run > 1:
                        for g in range(tables.shape[0]):
                            sums[g] += tables[g, run]
                    run = 1
        start = end
    return inversions(walk, spare)

"""All-pairs distances between full rankings, as rows of ranks (item -> position)."""

import numpy as np

from rankernel._loops.bits import popcount
from rankernel._loops.compiled import compiled


@compiled
def differing_bits(X, Y, out):
    """Bits in which the words of X differ from those of Y, which come transposed: one row for each word."""
    for i in range(X.shape[0]):
        out[i] = 0
        for w in range(X.shape[1]):
            word = X[i, w]
            for j in range(Y.shape[1]):
                out[i, j] += popcount(word ^ Y[w, j])


@compiled
def kendall(X, Y, out):
    """Pairs that two rankings order differently, of so many items that bits of their pairs would take much memory."""
    n = X.shape[1]
    order = np.empty(n, np.int64)
    seen, blocks = np.zeros(n, np.int32), np.zeros(n // BLOCK + 1, np.int32)
    for i in range(X.shape[0]):
        for a in range(n):
            order[X[i, a]] = a
        for j in range(Y.shape[0]):
            out[i, j] = discordant_pairs(X[i], order, Y[j], seen, blocks)


BLOCK = 64


@compiled
def discordant_pairs(x, order, y, seen, blocks):
    """Count the pairs of items that two rankings order in opposite ways, walking through one of them, best first.

    ``seen`` and ``blocks`` are room to work in, all zero: how many items of earlier buckets stand at each place of the
    other ranking, and in each block of places.
    """
    n, count, start = len(x), 0, 0
    while start < n:
        end = start
        while end < n and x[order[end]] == x[order[start]]:
            place = y[order[end]]
            block = place // BLOCK
            for later in range(block + 1, len(blocks)):
                count += blocks[later]
            for later in range(place + 1, min((block + 1) * BLOCK, n)):
                count += seen[later]
            end += 1
        for p in range(start, end):
            seen[y[order[p]]] += 1
            blocks[y[order[p]] // BLOCK] += 1
        start = end
    seen[:] = 0
    blocks[:] = 0
    return count


FOOTRULE, SPEARMAN, HAMMING, LINF = range(4)


@compiled
def rankwise(X, Y, kind, out):
    """Sums of absolute or squared differences of ranks, items whose ranks differ, or the largest difference."""
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            total = np.int64(0)
            if kind == FOOTRULE:
                for a in range(X.shape[1]):
                    total += abs(X[i, a] - Y[j, a])
            elif kind == SPEARMAN:
                for a in range(X.shape[1]):
                    total += (np.int64(X[i, a]) - Y[j, a]) ** 2
            elif kind == HAMMING:
                for a in range(X.shape[1]):
                    total += X[i, a] != Y[j, a]
            else:
                for a in range(X.shape[1]):
                    total = max(total, abs(np.int64(X[i, a]) - Y[j, a]))
            out[i, j] = total


@compiled
def power_sum(X, Y, powers, out):
    """Sum of ``powers[|difference of ranks|]``, a table of the p-th powers of 0, 1, 2, ..."""
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            total = 0.0
            for a in range(X.shape[1]):
                total += powers[abs(X[i, a] - Y[j, a])]
            out[i, j] = total

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
    """Pairs that two rankings order differently: the inversions of one, walked through in the order of the other."""
    n = X.shape[1]
    order = np.empty(n, np.int64)
    walk = np.empty(n, np.int64)
    seen, blocks = np.zeros(n, np.int32), np.zeros(n // BLOCK + 1, np.int32)
    for i in range(X.shape[0]):
        for a in range(n):
            order[X[i, a]] = a
        for j in range(Y.shape[0]):
            for p in range(n):
                walk[p] = Y[j, order[p]]
            out[i, j] = inversions(walk, seen, blocks)


BLOCK = 64
FEW = 48


@compiled
def inversions(walk, seen, blocks):
    """Count the pairs of a sequence of numbers below its length that fall; equal ones do not.

    ``seen`` and ``blocks`` are room to work in, all zero: how often each number has come, and each block of numbers.
    """
    count = 0
    if len(walk) <= FEW:
        for p in range(len(walk)):
            for q in range(p):
                count += walk[q] > walk[p]
        return count
    for p in range(len(walk)):
        value = walk[p]
        block = value // BLOCK
        for later in range(block + 1, len(blocks)):
            count += blocks[later]
        for larger in range(value + 1, min((block + 1) * BLOCK, len(seen))):
            count += seen[larger]
        seen[value] += 1
        blocks[block] += 1
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

"""Distances between all pairs of full rankings, given as rows of ranks (item -> position)."""

import numpy as np

from rankernel._loops.bits import WORD, popcount, trailing_zeros
from rankernel._loops.compiled import compiled


@compiled
def differing_bits(X, Y, out):
    """Count the bits in which the words of X differ from those of Y, which is transposed: one row for each word."""
    for i in range(X.shape[0]):
        out[i] = 0
        for w in range(X.shape[1]):
            word = X[i, w]
            for j in range(Y.shape[1]):
                out[i, j] += popcount(word ^ Y[w, j])


@compiled
def kendall(X, Y, out):
    """Count the pairs of items in opposite order, without bits for all pairs."""
    n = X.shape[1]
    order, words = np.empty(n, np.int64), np.zeros((n >> 6) + 1, np.uint64)
    for i in range(X.shape[0]):
        for a in range(n):
            order[X[i, a]] = a
        for j in range(Y.shape[0]):
            out[i, j] = count_inversions(X[i], order, Y[j], Y[j], words)


ONE, SIX, LOW_BITS = np.uint64(1), np.uint64(6), np.uint64(63)


@compiled
def count_inversions(x, order, position, end, words):
    """Count the pairs of items in opposite strict order in two rankings.

    ``order`` lists the items by x, best first. ``position[a]`` is the position of item a in the other ranking, ties
    broken in any way, and ``end[a]`` that of the first item of later buckets. The positions of earlier items are
    bits of ``words``, a work array of n // 64 + 1 words.
    """
    n, count, start = len(order), 0, 0
    for w in range(len(words)):
        words[w] = 0
    while start < n:
        stop = start
        while stop < n and x[order[stop]] == x[order[start]]:
            later = np.uint64(end[order[stop]])
            first = later >> SIX
            count += popcount(words[first] >> (later & LOW_BITS))
            for w in range(first + ONE, len(words)):
                count += popcount(words[w])
            stop += 1
        for p in range(start, stop):
            bit = np.uint64(position[order[p]])
            words[bit >> SIX] |= ONE << (bit & LOW_BITS)
        start = stop
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


# ---------------------------------------------------------------------- cycles


@compiled
def cycle_code(step, weights, visited):
    """Return ``weights[0]`` plus ``weights[length]`` for each cycle of a permutation, modulo ``weights[-1] + 1``.

    Positions are visited cycle by cycle; after the end of a cycle the first unvisited position is next. The loop has no
    branches, which a processor would mispredict.
    """
    n = len(step)
    code = weights[0]
    if n > WORD:
        return long_cycle_code(step, weights, visited)
    unvisited = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(WORD - n)
    position, length = 0, 1
    for _ in range(n):
        unvisited ^= ONE << np.uint64(position)
        following = step[position]
        is_open = (unvisited >> np.uint64(following)) & ONE
        code += 0 if is_open else weights[length]
        position = (following if is_open else trailing_zeros(unvisited)) & (WORD - 1)
        length = length + 1 if is_open else 1
    return code & weights[n + 1]


@compiled
def long_cycle_code(step, weights, visited):
    """Return :func:`cycle_code` for more than 64 positions; ``visited`` is a work array."""
    n = len(step)
    code = weights[0]
    for position in range(n):
        visited[position] = 0
    for start in range(n):
        position, length = start, 0
        while visited[position] == 0:
            visited[position] = 1
            position = step[position]
            length += 1
        if length:
            code += weights[length]
    return code & weights[n + 1]


@compiled
def cycle_codes(X, Y, weights, out):
    """Write :func:`cycle_code` of the map from positions in X to positions in Y, for all pairs of full rankings."""
    n = X.shape[1]
    item_at, step, visited = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(X.shape[0]):
        for a in range(n):
            item_at[X[i, a]] = a
        for j in range(Y.shape[0]):
            for position in range(n):
                step[position] = Y[j, item_at[position]]
            out[i, j] = cycle_code(step, weights, visited)

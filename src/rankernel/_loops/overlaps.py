"""Telling apart the overlaps of pairs of rankings."""

import numpy as np

from rankernel._loops.compiled import compiled


@compiled
def codes(X, Y, salt, out):
    """Sum a random 64-bit number for each item's two buckets: equal overlaps, equal sums.

    ``salt[b + 1, c + 1]`` belongs to bucket b on the left and c on the right; free items have bucket -1.
    """
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            total = np.uint64(0)
            for a in range(X.shape[1]):
                total += salt[X[i, a] + 1, Y[j, a] + 1]
            out[i, j] = total


@compiled
def agreement_codes(X, Y, listed_X, listed_Y, out):
    """For two top-k lists what the Hamming distance sees: places, agreements, and items that neither list has.

    Only the first m places of both matter, m the length of the shorter list.
    """
    n = X.shape[1]
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            m = min(listed_X[i], listed_Y[j])
            agreements = 0
            outside = 0
            for a in range(n):
                agreements += X[i, a] == Y[j, a] and X[i, a] < m
                outside += X[i, a] >= m and Y[j, a] >= m
            out[i, j] = (m * (n + 1) + agreements) * (n + 1) + outside


@compiled
def cycle_codes(X, Y, listed_X, listed_Y, out):
    """For two top-k lists what the Cayley distance sees: places, and cycles that they close among themselves."""
    n = X.shape[1]
    item = np.empty(n + 1, np.int64)
    step = np.empty(n, np.int64)
    for i in range(X.shape[0]):
        for a in range(n):
            if X[i, a] < listed_X[i]:
                item[X[i, a]] = a
        for j in range(Y.shape[0]):
            m = min(listed_X[i], listed_Y[j])
            for place in range(m):
                target = Y[j, item[place]]
                step[place] = target if target < m else -1
            cycles = 0
            for start in range(m):
                place = start
                while step[place] >= 0:
                    following = step[place]
                    step[place] = -1
                    if following == start:
                        cycles += 1
                        break
                    place = following
            out[i, j] = m * (n + 1) + cycles

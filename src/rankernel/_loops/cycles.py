"""Cycles of permutations of places."""

import numpy as np

from rankernel._loops.compiled import compiled

WORD = 64


@compiled
def cycle_code(step, numbers):
    """Return ``numbers[0]`` plus ``numbers[length]`` for each cycle of a permutation, within ``numbers[-1]`` bits."""
    n = len(step)
    code = numbers[0]
    if n <= WORD:
        left = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(WORD - n)
        for start in range(n):
            if left & (np.uint64(1) << np.uint64(start)):
                place, length = start, 0
                while True:
                    left ^= np.uint64(1) << np.uint64(place)
                    place = step[place]
                    length += 1
                    if place == start:
                        break
                code += numbers[length]
        return code & numbers[n + 1]
    seen = np.zeros(n, np.bool_)
    for start in range(n):
        if not seen[start]:
            place, length = start, 0
            while not seen[place]:
                seen[place] = True
                place = step[place]
                length += 1
            code += numbers[length]
    return code & numbers[n + 1]


@compiled
def pair_codes(X, Y, numbers, out):
    """Write :func:`cycle_code` of the map from places in X to places in Y, for all pairs of full rankings."""
    n = X.shape[1]
    item_at, step = np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(X.shape[0]):
        for a in range(n):
            item_at[X[i, a]] = a
        for j in range(Y.shape[0]):
            for place in range(n):
                step[place] = Y[j, item_at[place]]
            out[i, j] = cycle_code(step, numbers)

"""Cycles of permutations of positions."""

import numpy as np

from rankernel._loops.bits import trailing_zeros
from rankernel._loops.compiled import compiled

WORD = 64
ONE = np.uint64(1)


@compiled
def cycle_code(step, numbers, seen):
    """Return ``numbers[0]`` plus ``numbers[length]`` for each cycle of a permutation, within ``numbers[-1]`` bits.

    Positions are visited in the order of the cycles; after the end of a cycle follows the first position not visited.
    There is nothing for the processor to guess, so that it goes on with the next permutation meanwhile.
    """
    n = len(step)
    code = numbers[0]
    if n > WORD:
        return long_cycle_code(step, numbers, seen)
    left = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(WORD - n)
    position, length = 0, 1
    for _ in range(n):
        left ^= ONE << np.uint64(position)
        following = step[position]
        is_open = (left >> np.uint64(following)) & ONE
        code += 0 if is_open else numbers[length]
        position = (following if is_open else trailing_zeros(left)) & (WORD - 1)
        length = length + 1 if is_open else 1
    return code & numbers[n + 1]


@compiled
def long_cycle_code(step, numbers, seen):
    """Return :func:`cycle_code` for more positions than a word has bits; ``seen`` is a work array."""
    n = len(step)
    code = numbers[0]
    for position in range(n):
        seen[position] = 0
    for start in range(n):
        position, length = start, 0
        while seen[position] == 0:
            seen[position] = 1
            position = step[position]
            length += 1
        if length:
            code += numbers[length]
    return code & numbers[n + 1]


@compiled
def pair_codes(X, Y, numbers, out):
    """Write :func:`cycle_code` of the map from positions in X to positions in Y, for all pairs of full rankings."""
    n = X.shape[1]
    item_at, step, seen = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(X.shape[0]):
        for a in range(n):
            item_at[X[i, a]] = a
        for j in range(Y.shape[0]):
            for position in range(n):
                step[position] = Y[j, item_at[position]]
            out[i, j] = cycle_code(step, numbers, seen)

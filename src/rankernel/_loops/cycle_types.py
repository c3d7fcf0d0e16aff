"""Cycle types of permutations of positions, as indices into the list of all partitions of the number of items."""

import numpy as np

from rankernel._loops.compiled import compiled
from rankernel._loops.partitions import bounded_counts, index_of
from rankernel.arrays import FloatArray, IntArray, RankArray


@compiled
def pair_types(X: RankArray, Y: RankArray) -> IntArray:
    """Return the index of the cycle type of the map from left to right positions, for each pair of full rankings."""
    n = X.shape[1]
    counts = bounded_counts(n)
    out = np.empty((X.shape[0], Y.shape[0]), dtype=np.int64)
    item_at, repeats, seen = np.empty(n, dtype=np.int64), np.zeros(n + 1, dtype=np.int64), np.empty(n, dtype=np.bool_)
    for i in range(X.shape[0]):
        for a in range(n):
            item_at[X[i, a]] = a
        for j in range(Y.shape[0]):
            repeats[:], seen[:] = 0, False
            for start in range(n):
                length, position = 0, start
                while not seen[position]:
                    seen[position] = True
                    position = Y[j, item_at[position]]
                    length += 1
                if length:
                    repeats[length] += 1
            out[i, j] = index_of(repeats, counts)
    return out


@compiled
def transpositions(types: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return how many transpositions lead from each cycle type to each other: sources, targets, numbers.

    Cycles of lengths a and b merge by ab transpositions; a cycle of length a splits into b and a - b by a of them,
    or by a/2 if the halves are equal.
    """
    n = types.shape[1] - 1
    counts = bounded_counts(n)
    sources, targets, numbers = [0 for _ in range(0)], [0 for _ in range(0)], [0.0 for _ in range(0)]
    for row in range(types.shape[0]):
        now = types[row].copy()
        for a in range(1, n + 1):
            if now[a] == 0:
                continue
            for b in range(1, a + 1):
                pairs = now[a] * (now[a] - 1) // 2 if a == b else now[a] * now[b]
                if pairs > 0:
                    sources.append(row)
                    targets.append(moved(now, a, b, 1, counts))
                    numbers.append(float(pairs * a * b))
            for b in range(1, a // 2 + 1):
                sources.append(row)
                targets.append(moved(now, b, a - b, -1, counts))
                numbers.append(float(now[a] * (a // 2 if 2 * b == a else a)))
    return np.array(sources), np.array(targets), np.array(numbers)


@compiled
def moved(repeats: IntArray, a: int, b: int, direction: int, counts: IntArray) -> int:
    """Return the index of the type after merging cycles a and b (direction 1) or splitting a + b into them (-1)."""
    repeats[a] -= direction
    repeats[b] -= direction
    repeats[a + b] += direction
    index = index_of(repeats, counts)
    repeats[a] += direction
    repeats[b] += direction
    repeats[a + b] -= direction
    return index


@compiled
def add_random_cycles(
    known: IntArray, weights: FloatArray, others: IntArray, shares: FloatArray, out: FloatArray
) -> None:
    """Spread the weight of each row of known cycles over all it can be completed with, by index of the cycle type."""
    n = known.shape[1] - 1
    counts = bounded_counts(n)
    repeats = np.empty(n + 1, dtype=np.int64)
    for i in range(known.shape[0]):
        for j in range(others.shape[0]):
            for k in range(n + 1):
                repeats[k] = known[i, k] + others[j, k]
            out[index_of(repeats, counts)] += weights[i] * shares[j]

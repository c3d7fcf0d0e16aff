"""Partitions of whole numbers, stored as rows of multiplicities, and their place among all of the same total."""

import numpy as np

from rankernel._loops.compiled import compiled
from rankernel.arrays import IntArray


@compiled
def bounded_counts(n: int) -> IntArray:
    """Return a table of the number of partitions of r into parts of at most m, for r and m up to n."""
    counts = np.zeros((n + 1, n + 1), dtype=np.int64)
    counts[0, :] = 1
    for m in range(1, n + 1):
        for r in range(1, n + 1):
            counts[r, m] = counts[r, m - 1] + (counts[r - m, m] if r >= m else 0)
    return counts


@compiled
def index_of(repeats: IntArray, counts: IntArray) -> int:
    """Return the place of a partition with ``repeats[k]`` parts k among all of its total, largest parts first."""
    rest = 0
    for k in range(1, len(repeats)):
        rest += k * repeats[k]
    index, largest = 0, rest
    for k in range(len(repeats) - 1, 0, -1):
        for _ in range(repeats[k]):
            index += counts[rest, min(largest, rest)] - counts[rest, k]
            rest -= k
            largest = k
    return index


@compiled
def all_partitions(total: int, width: int) -> IntArray:
    """Return all partitions of ``total`` as rows of multiplicities of 0, ..., width - 1, by index."""
    counts = bounded_counts(total)
    out = np.zeros((counts[total, total], width), dtype=np.int64)
    for index in range(len(out)):
        skip, rest, largest = index, total, total
        while rest > 0:
            largest = min(largest, rest)
            # Partitions whose largest part exceeds k come before those with k.
            k = largest
            while counts[rest, largest] - counts[rest, k - 1] <= skip:
                k -= 1
            skip -= counts[rest, largest] - counts[rest, k]
            out[index, k] += 1
            rest -= k
            largest = k
    return out

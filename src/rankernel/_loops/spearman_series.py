"""Monomial symmetric functions, and the moments of a sum of products over random matchings that they give."""

import numpy as np

from rankernel._loops.compiled import compiled
from rankernel._utils.arrays import FloatArray, IntArray


@compiled
def monomials(values: FloatArray, grown: IntArray, degree: int) -> FloatArray:
    """Return the monomial symmetric function of ``values`` for every partition of 0, 1, ..., degree.

    ``grown[i, k]`` is the partition i with one more part k, -1 beyond the degree; larger partitions come later.
    """
    n_partitions = grown.shape[0]
    sums, powers = np.zeros(n_partitions), np.ones(degree + 1)
    sums[0] = 1.0
    for value in values:
        for k in range(1, degree + 1):
            powers[k] = powers[k - 1] * value
        # Largest first, in place: each partition is grown before it receives, so no monomial takes the value twice.
        for i in range(n_partitions - 1, -1, -1):
            if sums[i] != 0.0:
                for k in range(1, degree + 1):
                    if grown[i, k] < 0:
                        break
                    sums[grown[i, k]] += sums[i] * powers[k]
    return sums


@compiled
def unions(grown: IntArray, parent: IntArray, part: IntArray, sizes: IntArray, degree: int) -> IntArray:
    """Return the index of the union of every two partitions of together at most ``degree``, row after row."""
    n_partitions = grown.shape[0]
    below = np.searchsorted(sizes, np.arange(degree + 2))
    n_unions = 0
    for i in range(n_partitions):
        n_unions += below[degree - sizes[i] + 1]
    out, start = np.empty(n_unions, dtype=np.int64), 0
    for i in range(n_partitions):
        count = below[degree - sizes[i] + 1]
        out[start] = i
        for j in range(1, count):
            out[start + j] = grown[out[start + parent[j]], part[j]]
        start += count
    return out


@compiled
def joint_moments(
    shared: FloatArray,
    left_outer: FloatArray,
    right_outer: FloatArray,
    left_means: FloatArray,
    right_means: FloatArray,
    union: IntArray,
    sizes: IntArray,
    degree: int,
    has_left_outer: bool,
    has_right_outer: bool,
) -> FloatArray:
    """Return E z^s / s! for s = 0, ..., degree, where z is a sum of products over a random matching.

    The exponents of the shared items form a partition; given it, the two sides are independent.
    """
    out = np.zeros(degree + 1)
    below = np.searchsorted(sizes, np.arange(degree + 2))
    with_left, with_right = np.zeros(degree + 1), np.zeros(degree + 1)
    start = 0
    for i in range(len(shared)):
        room = degree - sizes[i]
        if shared[i] != 0.0:
            left_room, right_room = room if has_left_outer else 0, room if has_right_outer else 0
            for s in range(left_room + 1):
                with_left[s] = 0.0
                for j in range(below[s], below[s + 1]):
                    with_left[s] += left_outer[j] * right_means[union[start + j]]
            for s in range(right_room + 1):
                with_right[s] = 0.0
                for j in range(below[s], below[s + 1]):
                    with_right[s] += right_outer[j] * left_means[union[start + j]]
            for s in range(left_room + 1):
                for t in range(min(right_room, room - s) + 1):
                    out[sizes[i] + s + t] += shared[i] * with_left[s] * with_right[t]
        start += below[room + 1]
    return out

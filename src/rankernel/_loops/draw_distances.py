"""Distances between draws of two rankings, for many pairs of rankings: ``d[p, a, b]`` for draws a and b of pair p.

Of the ranking on the left the draws from ``first`` on are compared, as many as there is room for, with all draws of
the one on the right. ``draws[i]`` holds the draws of ranking i, as ``(word, draw)`` the bits of the pairs of items that
each orders one way, or as ``(item, draw)`` the place of each item. Each function by itself is small: only what is
needed is compiled.
"""

import numpy as np

from rankernel._loops.bits import popcount
from rankernel._loops.compiled import compiled
from rankernel._loops.cycles import cycle_code


@compiled
def of_bits(draws, left, right, first, numbers, d):
    """Count the bits in which draws differ."""
    for p in range(len(left)):
        i, j = left[p], right[p]
        for a in range(d.shape[1]):
            for b in range(d.shape[2]):
                d[p, a, b] = popcount(draws[i, 0, first + a] ^ draws[j, 0, b])
            for w in range(1, draws.shape[1]):
                for b in range(d.shape[2]):
                    d[p, a, b] += popcount(draws[i, w, first + a] ^ draws[j, w, b])


@compiled
def footrule(draws, left, right, first, numbers, d):
    """Add up how far items are moved."""
    for p in range(len(left)):
        i, j = left[p], right[p]
        for a in range(d.shape[1]):
            for b in range(d.shape[2]):
                d[p, a, b] = 0
            for item in range(draws.shape[1]):
                x = np.int32(draws[i, item, first + a])
                for b in range(d.shape[2]):
                    d[p, a, b] += abs(x - np.int32(draws[j, item, b]))


@compiled
def spearman(draws, left, right, first, numbers, d):
    """Add up the squares of how far items are moved."""
    for p in range(len(left)):
        i, j = left[p], right[p]
        for a in range(d.shape[1]):
            for b in range(d.shape[2]):
                d[p, a, b] = 0
            for item in range(draws.shape[1]):
                x = np.int32(draws[i, item, first + a])
                for b in range(d.shape[2]):
                    step = x - np.int32(draws[j, item, b])
                    d[p, a, b] += step * step


@compiled
def hamming(draws, left, right, first, numbers, d):
    """Count the items that are moved."""
    for p in range(len(left)):
        i, j = left[p], right[p]
        for a in range(d.shape[1]):
            for b in range(d.shape[2]):
                d[p, a, b] = 0
            for item in range(draws.shape[1]):
                x = draws[i, item, first + a]
                for b in range(d.shape[2]):
                    d[p, a, b] += x != draws[j, item, b]


@compiled
def linf(draws, left, right, first, numbers, d):
    """Find how far the item is moved that is moved farthest."""
    for p in range(len(left)):
        i, j = left[p], right[p]
        for a in range(d.shape[1]):
            for b in range(d.shape[2]):
                d[p, a, b] = 0
            for item in range(draws.shape[1]):
                x = np.int32(draws[i, item, first + a])
                for b in range(d.shape[2]):
                    d[p, a, b] = max(d[p, a, b], abs(x - np.int32(draws[j, item, b])))


@compiled
def kendall(draws, left, right, first, numbers, d):
    """Count discordant pairs of so many items that they do not go into some hundred words."""
    for p in range(len(left)):
        i, j = left[p], right[p]
        for a in range(d.shape[1]):
            for b in range(d.shape[2]):
                d[p, a, b] = 0
            for item in range(draws.shape[1]):
                for other in range(item):
                    before = draws[i, item, first + a] < draws[i, other, first + a]
                    for b in range(d.shape[2]):
                        d[p, a, b] += before != (draws[j, item, b] < draws[j, other, b])


@compiled
def cycles(draws, left, right, first, numbers, d):
    """Add up numbers for the cycles of the maps from places to places: see :func:`cycle_code`."""
    n = draws.shape[1]
    item_at, step, seen = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for p in range(len(left)):
        i, j = left[p], right[p]
        for a in range(d.shape[1]):
            for item in range(n):
                item_at[draws[i, item, first + a]] = item
            for b in range(d.shape[2]):
                for place in range(n):
                    step[place] = draws[j, item_at[place], b]
                d[p, a, b] = cycle_code(step, numbers, seen)

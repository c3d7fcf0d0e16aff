"""Streams of rows cut into segments: the scatter within segments, from sums over a Gram matrix."""

import numpy as np

from rankernel._loops.compiled import compiled


@compiled
def best_splits(gram, weights, orders, least, found):
    """Write for each order of the rows the largest dispersion between two sides of one change."""
    n = len(weights)
    total, whole = 0.0, 0.0
    for i in range(n):
        whole += weights[i]
        for j in range(n):
            total += weights[i] * weights[j] * gram[i, j]
    reach = gram @ weights
    for p in range(len(orders)):
        order = orders[p]
        inside, across, size, best = 0.0, 0.0, 0.0, -np.inf
        for t in range(n - least):
            row = order[t]
            toward, values = 0.0, gram[row]
            for s in range(t):
                toward += weights[order[s]] * values[order[s]]
            w = weights[row]
            inside += w * (2 * toward + w * values[row])
            across += w * reach[row]
            size += w
            if t + 1 >= least:
                other = whole - size
                outside = total - 2 * across + inside
                gain = inside / size + outside / other - total / whole
                best = max(best, gain)
        found[p] = best


@compiled
def best_segments(gram, weights, most, least):
    """Return the least scatter within segments for 0 to ``most`` changes, and where the last segment begins.

    The cost of the rows from s to t is the sum of the diagonal less the sum of all entries over the number of voters.
    """
    n = len(weights)
    cost = np.full((most + 1, n + 1), np.inf)
    starts = np.zeros((most + 1, n + 1), dtype=np.int64)
    # sums[s]: over all pairs of rows from s to the end that has been reached
    sums, own, size = np.zeros(n), np.zeros(n), np.zeros(n)
    for t in range(n):
        w, values, toward = weights[t], gram[t], 0.0
        for s in range(t, -1, -1):
            if s < t:
                toward += weights[s] * values[s]
            sums[s] += w * (2 * toward + w * values[t])
            own[s] += w * values[t]
            size[s] += w
        end = t + 1
        if end < least:
            continue
        cost[0, end] = own[0] - sums[0] / size[0]
        for changes in range(1, most + 1):
            for s in range(changes * least, end - least + 1):
                value = cost[changes - 1, s] + own[s] - sums[s] / size[s]
                if value < cost[changes, end]:
                    cost[changes, end] = value
                    starts[changes, end] = s
    return cost[:, n].copy(), starts

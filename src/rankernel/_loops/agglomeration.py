"""Agglomerative clustering of weighted points by chains of nearest neighbours.

A chain goes from each cluster to its nearest one until two are nearest to each other; these merge. For average and
Ward linkage a merger never brings clusters nearer to others, so what is left of the chain stays a chain: O(n^2) in all.
"""

import numpy as np

from rankernel._loops.compiled import compiled_strictly

AVERAGE, WARD = 0, 1


@compiled_strictly
def nearest(distances, alive, x, favourite):
    """Return the cluster nearest to x; the favourite wins ties, so that a chain cannot run in circles."""
    best = favourite
    shortest = distances[x, favourite] if favourite >= 0 else np.inf
    for i in range(len(distances)):
        if alive[i] and i != x and distances[x, i] < shortest:
            shortest = distances[x, i]
            best = i
    return best


@compiled_strictly
def from_union(linkage, to_x, to_y, between, x_weight, y_weight, weight):
    """Return the distance of a cluster from the union of x and y (Lance and Williams)."""
    if linkage == AVERAGE:
        return (x_weight * to_x + y_weight * to_y) / (x_weight + y_weight)
    share = 1.0 / (x_weight + y_weight + weight)
    square = (weight + x_weight) * share * to_x * to_x + (weight + y_weight) * share * to_y * to_y
    return np.sqrt(max(square - weight * share * between * between, 0.0))


@compiled_strictly
def merge(linkage, distances, weights, alive, x, y):
    """Put the union of x and y in the place of y."""
    for i in range(len(distances)):
        if alive[i] and i != x and i != y:
            distance = from_union(
                linkage, distances[i, x], distances[i, y], distances[x, y], weights[x], weights[y], weights[i]
            )
            distances[i, y] = distance
            distances[y, i] = distance
    weights[y] += weights[x]
    alive[x] = False


@compiled_strictly
def mergers(linkage, distances, weights, merged):
    """Fill in rows (x, y, height), in the order in which they are found; distances and weights are used up."""
    n = len(distances)
    alive = np.ones(n, dtype=np.bool_)
    chain = np.empty(n + 1, dtype=np.int64)
    length, first = 0, 0
    for step in range(n - 1):
        if length == 0:
            while not alive[first]:
                first += 1
            chain[0] = first
            length = 1
        while True:
            x = chain[length - 1]
            previous = chain[length - 2] if length > 1 else -1
            y = nearest(distances, alive, x, previous)
            if y == previous:
                break
            chain[length] = y
            length += 1
        length -= 2
        x, y = min(x, y), max(x, y)
        merged[step, 0], merged[step, 1], merged[step, 2] = x, y, distances[x, y]
        merge(linkage, distances, weights, alive, x, y)


@compiled_strictly
def find(parent, x):
    """Return the root above x; the way there is shortened."""
    root = x
    while parent[root] != root:
        root = parent[root]
    while parent[x] != root:
        parent[x], x = root, parent[x]
    return root


@compiled_strictly
def name_clusters(merged, Z):
    """Fill in a linkage matrix from sorted rows (x, y, height), where x and y stand for the clusters they are in."""
    n = len(merged) + 1
    parent = np.arange(2 * n - 1)
    size = np.ones(2 * n - 1)
    for step in range(n - 1):
        x, y = find(parent, int(merged[step, 0])), find(parent, int(merged[step, 1]))
        new = n + step
        parent[x], parent[y] = new, new
        size[new] = size[x] + size[y]
        Z[step, 0], Z[step, 1] = min(x, y), max(x, y)
        Z[step, 2], Z[step, 3] = merged[step, 2], size[new]

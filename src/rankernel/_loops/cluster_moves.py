"""Moves of single points between clusters, each taken at once if it lowers the sum of squares (Hartigan).

``sums[i, c]`` is the sum of weighted kernel values of point i with cluster c, ``squares[c]`` that over all members of
c. So the squared distance from i to the mean of c is ``K[i, i] - 2 sums[i, c] / W[c] + squares[c] / W[c]**2``.
"""

from rankernel._loops.compiled import compiled_strictly


@compiled_strictly
def square_to_mean(own, total, square, weight):
    """Return the squared distance between a point and a mean."""
    return own - 2 * total / weight + square / (weight * weight)


@compiled_strictly
def move(gram, weights, i, origin, target, sums, squares, cluster_weights):
    """Take a point out of one cluster and into another."""
    weight = weights[i]
    own = weight * weight * gram[i, i]
    squares[origin] += own - 2 * weight * sums[i, origin]
    squares[target] += own + 2 * weight * sums[i, target]
    cluster_weights[origin] -= weight
    cluster_weights[target] += weight
    for j in range(len(gram)):
        sums[j, origin] -= weight * gram[i, j]
        sums[j, target] += weight * gram[i, j]


@compiled_strictly
def move_points(gram, weights, labels, sizes, sums, squares, cluster_weights, least_gain):
    """Go once over all points, and return how many have moved; the last point of a cluster stays."""
    n_moved = 0
    for i in range(len(gram)):
        origin, weight = labels[i], weights[i]
        if sizes[origin] == 1:
            continue
        here = square_to_mean(gram[i, i], sums[i, origin], squares[origin], cluster_weights[origin])
        # Without the point its old mean is elsewhere; with it, so is its new one.
        best = weight * cluster_weights[origin] / (cluster_weights[origin] - weight) * here - least_gain
        target = origin
        for c in range(len(sizes)):
            if c != origin:
                there = square_to_mean(gram[i, i], sums[i, c], squares[c], cluster_weights[c])
                cost = weight * cluster_weights[c] / (cluster_weights[c] + weight) * there
                if cost < best:
                    best, target = cost, c
        if target != origin:
            move(gram, weights, i, origin, target, sums, squares, cluster_weights)
            sizes[origin] -= 1
            sizes[target] += 1
            labels[i] = target
            n_moved += 1
    return n_moved

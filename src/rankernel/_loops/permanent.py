"""Permanents of non-negative matrices: a sum over all matchings without cancellation."""

import math

import numpy as np

from rankernel._loops.compiled import compiled
from rankernel.arrays import FloatArray


@compiled
def log_permanent(costs: FloatArray, nu: float) -> tuple[float, float]:
    """Return log per(exp(-nu costs)) and its derivative in nu, by dynamic programming over subsets of columns.

    ``inf`` forbids a pair. Potentials of the best matching are taken out of the rows and columns first, so that its
    term is 1 and no other is larger: nothing over- or underflows that matters. Time n 2^n, memory 2^n.
    """
    n = costs.shape[0]
    rows, columns = potentials(costs, nu)
    weights = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            weights[i, j] = math.exp(-nu * costs[i, j] + rows[i] + columns[j]) if costs[i, j] < np.inf else 0.0
    sums, slopes = np.zeros(1 << n), np.zeros(1 << n)
    sums[0] = 1.0
    for subset in range((1 << n) - 1):
        value, slope = sums[subset], slopes[subset]
        if value == 0.0:
            continue
        row, members = 0, subset
        while members:
            members &= members - 1
            row += 1
        for j in range(n):
            if not (subset >> j) & 1 and weights[row, j] > 0.0:
                sums[subset | (1 << j)] += weights[row, j] * value
                slopes[subset | (1 << j)] += weights[row, j] * (slope - costs[row, j] * value)
    everything = (1 << n) - 1
    return math.log(sums[everything]) - rows.sum() - columns.sum(), slopes[everything] / sums[everything]


@compiled
def potentials(costs: FloatArray, nu: float) -> tuple[FloatArray, FloatArray]:
    """Return row and column potentials with rows[i] + columns[j] <= nu costs[i, j], equal along the best matching.

    The Hungarian method, one augmenting path for each row; row and column 0 are sentinels.
    """
    n = costs.shape[0]
    rows, columns = np.zeros(n + 1), np.zeros(n + 1)
    matched, previous = np.zeros(n + 1, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
    for i in range(1, n + 1):
        matched[0], column = i, 0
        slack, used = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=np.bool_)
        while matched[column] != 0:
            used[column] = True
            row, step, nearest = matched[column], np.inf, 0
            for j in range(1, n + 1):
                if used[j]:
                    continue
                if costs[row - 1, j - 1] < np.inf:
                    reduced = nu * costs[row - 1, j - 1] - rows[row] - columns[j]
                    if reduced < slack[j]:
                        slack[j], previous[j] = reduced, column
                if slack[j] < step:
                    step, nearest = slack[j], j
            for j in range(n + 1):
                if used[j]:
                    rows[matched[j]] += step
                    columns[j] -= step
                else:
                    slack[j] -= step
            column = nearest
        while column != 0:
            matched[column] = matched[previous[column]]
            column = previous[column]
    return rows[1:], columns[1:]

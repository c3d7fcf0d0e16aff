"""Permanents of non-negative matrices: a sum over all matchings without cancellation."""

import math

import numpy as np

from rankernel._loops.compiled import compiled
from rankernel._utils.arrays import FloatArray


def log_permanent(costs: FloatArray, nu: float) -> tuple[float, float]:
    """Return log per(exp(-nu costs)) and its derivative in nu, by dynamic programming over subsets of columns.

    ``inf`` forbids a pair. Potentials of the best matching are taken out of the rows and columns first, so that its
    term is 1 and no other is larger: nothing over- or underflows that matters. Time n 2^n, memory 2^n.
    """
    n = len(costs)
    rows, columns, slack = np.zeros((3, n + 1))
    matched, previous, used = np.zeros((3, n + 1), dtype=np.int64)
    find_potentials(costs, nu, rows, columns, slack, matched, previous, used)
    forbidden = np.isinf(costs)
    known = np.where(forbidden, 0.0, costs)
    weights = np.exp(np.where(forbidden, -np.inf, rows[1:, None] + columns[1:] - nu * known))
    sums, slopes = np.zeros((2, 1 << n))
    sums[0] = 1.0
    sum_over_subsets(known, weights, sums, slopes)
    return math.log(sums[-1]) - rows[1:].sum() - columns[1:].sum(), slopes[-1] / sums[-1]


@compiled
def sum_over_subsets(costs, weights, sums, slopes):
    """Write the permanents of the first rows for every subset of as many columns, and their derivatives."""
    n = weights.shape[0]
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


@compiled
def find_potentials(costs, nu, rows, columns, slack, matched, previous, used):
    """Write row and column potentials with rows[i] + columns[j] <= nu costs[i, j], equal along the best matching.

    The Hungarian method, one augmenting path for each row; row and column 0 are sentinels. All but the costs are zeros
    to work in: new arrays would have to be compiled, too.
    """
    n = costs.shape[0]
    for i in range(1, n + 1):
        matched[0], column = i, 0
        for j in range(n + 1):
            slack[j], used[j] = np.inf, 0
        while matched[column] != 0:
            used[column] = 1
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

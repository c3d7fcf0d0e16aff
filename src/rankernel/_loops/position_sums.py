"""Distributions of the positions of items, and sums over items of functions of their positions in two rankings.

Sums are made in one order whatever the block, so that blocks computed apart fit together exactly.
"""

import numpy as np

from rankernel._loops.compiled import compiled_strictly


@compiled_strictly
def of_full(X, Y, matrix, out):
    """``out[i, j]`` = the sum over items a of ``matrix[X[i, a], Y[j, a]]``."""
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            total = 0.0
            for a in range(X.shape[1]):
                total += matrix[X[i, a], Y[j, a]]
            out[i, j] = total


# ---------------------------------------------------------------------- distributions


@compiled_strictly
def sparse_rows(starts, items, codes, numbers, last, n_items, ends):
    """Numbers that are not 0 of the listed items, row by row, each row with one more behind them: values, columns."""
    n_numbers = numbers.shape[1]
    sizes = np.zeros(len(numbers), np.int64)
    for c in range(len(numbers)):
        for d in range(n_numbers):
            if numbers[c, d] != 0:
                sizes[c] += 1
    for i in range(len(starts) - 1):
        ends[i + 1] = ends[i] + 1
        for e in range(starts[i], starts[i + 1]):
            ends[i + 1] += sizes[codes[e]]
    values = np.empty(ends[-1])
    columns = np.empty(ends[-1], np.int64)
    index = 0
    for i in range(len(starts) - 1):
        for e in range(starts[i], starts[i + 1]):
            for d in range(n_numbers):
                if numbers[codes[e], d] != 0:
                    values[index] = numbers[codes[e], d]
                    columns[index] = items[e] * n_numbers + d
                    index += 1
        values[index] = last
        columns[index] = n_items * n_numbers
        index += 1
    return values, columns

"""Laws of the places of items, and sums over items of what their places in two rankings have in common.

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


# ---------------------------------------------------------------------- laws


@compiled_strictly
def sparse_rows(starts, items, codes, numbers, last, n_items, ends):
    """Numbers that are not 0 of the listed items, row by row, each row with one more behind them: values, columns."""
    width = numbers.shape[1]
    sizes = np.zeros(len(numbers), np.int64)
    for c in range(len(numbers)):
        for d in range(width):
            if numbers[c, d] != 0:
                sizes[c] += 1
    for i in range(len(starts) - 1):
        ends[i + 1] = ends[i] + 1
        for e in range(starts[i], starts[i + 1]):
            ends[i + 1] += sizes[codes[e]]
    values = np.empty(ends[-1])
    columns = np.empty(ends[-1], np.int64)
    place = 0
    for i in range(len(starts) - 1):
        for e in range(starts[i], starts[i + 1]):
            for d in range(width):
                if numbers[codes[e], d] != 0:
                    values[place] = numbers[codes[e], d]
                    columns[place] = items[e] * width + d
                    place += 1
        values[place] = last
        columns[place] = n_items * width
        place += 1
    return values, columns

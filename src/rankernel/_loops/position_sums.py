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


@compiled_strictly
def of_listed(
    base, starts, items, codes, other_base, other_starts, other_items, other_codes, n_items, bases, table, out
):
    """``out[i, j]`` = ``bases[base, other base]``, and ``table[code, other code]`` for every item that both list.

    Row i lists ``items[starts[i]:starts[i + 1]]``, in ascending order, each with a code; columns likewise.
    """
    first = np.zeros(n_items + 2, np.int64)  # of the columns that list an item
    for e in range(len(other_items)):
        first[other_items[e] + 2] += 1
    for a in range(n_items):
        first[a + 2] += first[a + 1]
    columns = np.empty(len(other_items), np.int64)
    their_codes = np.empty(len(other_items), np.int64)
    for j in range(len(other_starts) - 1):
        for e in range(other_starts[j], other_starts[j + 1]):
            place = first[other_items[e] + 1]
            columns[place] = j
            their_codes[place] = other_codes[e]
            first[other_items[e] + 1] += 1
    for i in range(len(starts) - 1):
        for j in range(len(other_base)):
            out[i, j] = bases[base[i], other_base[j]]
        for e in range(starts[i], starts[i + 1]):
            for f in range(first[items[e]], first[items[e] + 1]):
                out[i, columns[f]] += table[codes[e], their_codes[f]]


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

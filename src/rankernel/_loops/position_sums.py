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
def fill_laws(buckets, out):
    """Probability of each place of an item of a bucket; rows are how many are listed, before it, and up to its end.

    Listed item s of m (both from 0) has place p with probability ``C(p, s) C(n-1-p, m-1-s) / C(n, m)``. Ratios of
    neighbours, from the middle outwards, neither overflow nor underflow where it matters.
    """
    n = out.shape[1]
    law = np.empty(n)
    for i in range(buckets.shape[0]):
        m = buckets[i, 0]
        size = buckets[i, 2] - buckets[i, 1]
        for p in range(n):
            out[i, p] = 0.0
        for s in range(buckets[i, 1], buckets[i, 2]):
            if m == n:  # nothing is free to come between
                out[i, s] = 1.0 / size
                continue
            last = n - m + s
            middle = min(max((s + 1) * (n + 1) // (m + 1) - 1, s), last)
            law[middle] = 1.0
            total = 1.0
            for p in range(middle, last):
                law[p + 1] = law[p] * (p + 1) / (p + 1 - s) * (last - p) / (n - 1 - p)
                total += law[p + 1]
            for p in range(middle, s, -1):
                law[p - 1] = law[p] * (p - s) / p * (n - p) / (last - p + 1)
                total += law[p - 1]
            for p in range(s, last + 1):
                out[i, p] += law[p] / (total * size)


# ---------------------------------------------------------------------- items by their buckets


@compiled_strictly
def count_items(ranks, out):
    """How many items of each ranking are free, and in each bucket."""
    for i in range(ranks.shape[0]):
        for a in range(ranks.shape[1]):
            out[i, ranks[i, a] + 1] += 1


@compiled_strictly
def chosen_items(ranks, shape_of, codes, starts):
    """The items whose bucket has a code that is not negative, ranking by ranking, and their codes."""
    for i in range(ranks.shape[0]):
        count = 0
        for a in range(ranks.shape[1]):
            if codes[shape_of[i], ranks[i, a] + 1] >= 0:
                count += 1
        starts[i + 1] = starts[i] + count
    items = np.empty(starts[-1], np.int64)
    chosen = np.empty(starts[-1], np.int64)
    place = 0
    for i in range(ranks.shape[0]):
        for a in range(ranks.shape[1]):
            code = codes[shape_of[i], ranks[i, a] + 1]
            if code >= 0:
                items[place] = a
                chosen[place] = code
                place += 1
    return items, chosen


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

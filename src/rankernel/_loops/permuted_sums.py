"""Random divisions of voters, and sums over pairs of voters whose partners have been permuted."""

import numpy as np

from rankernel._loops.compiled import compiled, compiled_strictly
from rankernel._loops.row_hashes import uniform


@compiled_strictly
def choose_voters(rows, size, state, counts):
    """Choose ``size`` of the voters anew for each row of ``counts``, and add one where the row of each stands.

    The first steps of a shuffle (Fisher and Yates). It starts from whatever order the last one left, which makes the
    choice no less uniform; ``rows`` and ``state`` are moved on.
    """
    n_voters = len(rows)
    for p in range(len(counts)):
        for i in range(size):
            j = i + np.int64(uniform(state) * (n_voters - i))
            rows[i], rows[j] = rows[j], rows[i]
            counts[p, rows[i]] += 1.0


@compiled
def paired_sums(gram, rows, other, columns):
    """Return for each p the sum over voters i != j of gram[rows[i], rows[j]] * other[columns[p, i], columns[p, j]]."""
    n_permutations, n_voters = columns.shape
    sums = np.zeros(n_permutations)
    for p in range(n_permutations):
        for i in range(n_voters):
            left, right = gram[rows[i]], other[columns[p, i]]
            part = 0.0
            for j in range(i):
                part += left[rows[j]] * right[columns[p, j]]
            sums[p] += 2 * part
    return sums

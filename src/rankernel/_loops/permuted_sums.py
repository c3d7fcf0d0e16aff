"""Random divisions of voters, and sums over pairs of voters whose partners have been permuted."""

import numpy as np

from rankernel._loops.compiled import compiled, compiled_strictly
from rankernel._loops.random_streams import uniform


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


@compiled_strictly
def shuffle_within(rows, order, edges, state):
    """Shuffle the rows of voters within strata; stratum s is the voters order[edges[s]:edges[s + 1]]."""
    for s in range(len(edges) - 1):
        for i in range(edges[s], edges[s + 1] - 1):
            j = i + np.int64(uniform(state) * (edges[s + 1] - i))
            rows[order[i]], rows[order[j]] = rows[order[j]], rows[order[i]]


@compiled_strictly
def grouped_counts(rows, strata, group_of, state, counts):
    """Shuffle anew for each table of ``counts``, and count the voters of each group by row."""
    for p in range(len(counts)):
        shuffle_within(rows, strata[0], strata[1], state)
        for voter in range(len(rows)):
            counts[p, group_of[voter], rows[voter]] += 1.0


@compiled
def grouped_sums(gram, rows, strata, groups, own_pairs, state, sums):
    """Shuffle anew for each row of ``sums``, and add up the kernel over pairs of different voters of each group.

    Group g is the voters ``groups[0][groups[1][g]:groups[1][g + 1]]``; the pair of each voter with itself is added
    ``own_pairs`` times.
    """
    members, edges = groups
    own = np.empty(len(members), dtype=np.int64)
    for p in range(len(sums)):
        shuffle_within(rows, strata[0], strata[1], state)
        for k in range(len(members)):
            own[k] = rows[members[k]]
        for g in range(len(edges) - 1):
            total = 0.0
            for i in range(edges[g], edges[g + 1]):
                left, part = gram[own[i]], 0.0
                for j in range(edges[g], i):
                    part += left[own[j]]
                total += 2 * part + own_pairs * left[own[i]]
            sums[p, g] = total

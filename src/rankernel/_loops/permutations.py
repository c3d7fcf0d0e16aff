"""Random permutations, sums over pairs of voters for many permutations, and segments of a sequence."""

import numpy as np

from rankernel._loops.compiled import compiled, compiled_strictly
from rankernel._loops.random_streams import uniform


@compiled_strictly
def choose_voters(rows, size, state, counts):
    """Choose ``size`` voters at random for each row of ``counts``, and count the rows of the chosen voters.

    The first steps of a Fisher-Yates shuffle, which starts from the order that the last shuffle left: the choice is
    uniform from every order. ``rows`` and ``state`` are changed.
    """
    n_voters = len(rows)
    for p in range(len(counts)):
        for i in range(size):
            j = i + np.int64(uniform(state) * (n_voters - i))
            rows[i], rows[j] = rows[j], rows[i]
            counts[p, rows[i]] += 1.0


@compiled_strictly
def shuffle_within(values, order, starts, state, shuffled):
    """Write random permutations of ``values`` within strata into the rows of ``shuffled``.

    Stratum s has the voters order[starts[s]:starts[s + 1]]; ``values`` and ``state`` are changed.
    """
    for p in range(len(shuffled)):
        for s in range(len(starts) - 1):
            for i in range(starts[s], starts[s + 1] - 1):
                j = i + np.int64(uniform(state) * (starts[s + 1] - i))
                values[order[i]], values[order[j]] = values[order[j]], values[order[i]]
        shuffled[p] = values


@compiled_strictly
def count_by_group(rows, groups, counts):
    """Count the voters of each group by row, for each permutation of the rows of voters."""
    for p in range(len(counts)):
        for voter in range(len(groups)):
            counts[p, groups[voter], rows[p, voter]] += 1.0


@compiled
def sum_by_group(gram, rows, members, starts, self_pairs, sums):
    """Sum the kernel over pairs of voters of each group, for each permutation of the rows of voters.

    Group g has the voters members[starts[g]:starts[g + 1]]; the pair of a voter with itself has weight ``self_pairs``.
    """
    ordered = np.empty(len(members), dtype=np.int64)
    for p in range(len(sums)):
        for k in range(len(members)):
            ordered[k] = rows[p, members[k]]
        for g in range(len(starts) - 1):
            total = 0.0
            for i in range(starts[g], starts[g + 1]):
                values, part = gram[ordered[i]], 0.0
                for j in range(starts[g], i):
                    part += values[ordered[j]]
                total += 2 * part + self_pairs * values[ordered[i]]
            sums[p, g] = total


@compiled
def sum_products(gram, rows, other, columns):
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


@compiled
def best_splits(gram, weights, orders, min_rows, values):
    """Write for each order of the rows the largest dispersion between the rows before and after a single change."""
    n = len(weights)
    total, n_voters = 0.0, 0.0
    for i in range(n):
        n_voters += weights[i]
        for j in range(n):
            total += weights[i] * weights[j] * gram[i, j]
    row_sums = gram @ weights
    for p in range(len(orders)):
        order = orders[p]
        before, across, size, best = 0.0, 0.0, 0.0, -np.inf
        for t in range(n - min_rows):
            row = order[t]
            earlier, kernel = 0.0, gram[row]
            for s in range(t):
                earlier += weights[order[s]] * kernel[order[s]]
            w = weights[row]
            before += w * (2 * earlier + w * kernel[row])
            across += w * row_sums[row]
            size += w
            if t + 1 >= min_rows:
                after = total - 2 * across + before
                best = max(best, before / size + after / (n_voters - size) - total / n_voters)
        values[p] = best


@compiled
def best_segments(gram, weights, max_changes, min_rows):
    """Return the smallest scatter within segments for 0 to ``max_changes`` changes, and where the last segment starts.

    The cost of rows s to t is the sum of the diagonal minus the sum of all entries over the number of voters.
    """
    n = len(weights)
    cost = np.full((max_changes + 1, n + 1), np.inf)
    starts = np.zeros((max_changes + 1, n + 1), dtype=np.int64)
    # sums[s], traces[s], sizes[s]: over the rows from s to the current end
    sums, traces, sizes = np.zeros(n), np.zeros(n), np.zeros(n)
    for t in range(n):
        w, kernel, earlier = weights[t], gram[t], 0.0
        for s in range(t, -1, -1):
            if s < t:
                earlier += weights[s] * kernel[s]
            sums[s] += w * (2 * earlier + w * kernel[t])
            traces[s] += w * kernel[t]
            sizes[s] += w
        end = t + 1
        if end < min_rows:
            continue
        cost[0, end] = traces[0] - sums[0] / sizes[0]
        for changes in range(1, max_changes + 1):
            for s in range(changes * min_rows, end - min_rows + 1):
                value = cost[changes - 1, s] + traces[s] - sums[s] / sizes[s]
                if value < cost[changes, end]:
                    cost[changes, end] = value
                    starts[changes, end] = s
    return cost[:, n].copy(), starts

"""All-pairs distances between full rankings, as rows of ranks (item -> position)."""

import numpy as np

from rankernel._loops.compiled import compiled


@compiled
def kendall(X, Y, out):
    """Pairs of items that two rankings order differently: merge sort counts the inversions in O(n log n)."""
    n = X.shape[1]
    order = np.empty(n, np.int64)
    walk = np.empty(n, np.int64)
    spare = np.empty(n, np.int64)
    for i in range(X.shape[0]):
        for a in range(n):
            order[X[i, a]] = a
        for j in range(Y.shape[0]):
            for p in range(n):
                walk[p] = Y[j, order[p]]
            out[i, j] = inversions(walk, spare)


@compiled
def inversions(walk, spare):
    """Inversions of a sequence, which is sorted on the way: insertion sort on short runs, then merging."""
    n = walk.shape[0]
    run = 12
    count = 0
    for low in range(0, n, run):
        high = min(low + run, n)
        for p in range(low + 1, high):
            value = walk[p]
            q = p
            while q > low and walk[q - 1] > value:
                walk[q] = walk[q - 1]
                q -= 1
            walk[q] = value
            count += p - q
    while run < n:
        for low in range(0, n, 2 * run):
            middle = min(low + run, n)
            high = min(low + 2 * run, n)
            p, q = low, middle
            for t in range(low, high):
                if q >= high or (p < middle and walk[p] <= walk[q]):
                    spare[t] = walk[p]
                    p += 1
                else:
                    spare[t] = walk[q]
                    q += 1
                    count += middle - p
        for t in range(n):
            walk[t] = spare[t]
        run *= 2
    return count


@compiled
def footrule(X, Y, out):
    """Sum of absolute differences of ranks."""
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            total = 0
            for a in range(X.shape[1]):
                total += abs(X[i, a] - Y[j, a])
            out[i, j] = total


@compiled
def spearman(X, Y, out):
    """Sum of squared differences of ranks."""
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            total = np.int64(0)
            for a in range(X.shape[1]):
                step = np.int64(X[i, a]) - np.int64(Y[j, a])
                total += step * step
            out[i, j] = total


@compiled
def hamming(X, Y, out):
    """Items whose ranks differ."""
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            total = 0
            for a in range(X.shape[1]):
                total += X[i, a] != Y[j, a]
            out[i, j] = total


@compiled
def cayley(X, Y, out):
    """Items less cycles of the map from ranks in X to ranks in Y."""
    n = X.shape[1]
    step = np.empty(n, np.int64)
    seen = np.empty(n, np.bool_)
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            for a in range(n):
                step[X[i, a]] = Y[j, a]
                seen[a] = False
            cycles = 0
            for start in range(n):
                if not seen[start]:
                    cycles += 1
                    p = start
                    while not seen[p]:
                        seen[p] = True
                        p = step[p]
            out[i, j] = n - cycles


@compiled
def linf(X, Y, out):
    """Largest absolute difference of ranks."""
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            largest = 0
            for a in range(X.shape[1]):
                largest = max(largest, abs(X[i, a] - Y[j, a]))
            out[i, j] = largest


@compiled
def power_sum(X, Y, powers, out):
    """Sum of ``powers[|difference of ranks|]``, a table of the p-th powers of 0, 1, 2, ..."""
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            total = 0.0
            for a in range(X.shape[1]):
                total += powers[abs(X[i, a] - Y[j, a])]
            out[i, j] = total

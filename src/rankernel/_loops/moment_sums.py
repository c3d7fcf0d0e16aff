"""First and second moments of what linear kernels see of a random completion.

A completion gives every item a uniform key, hands the sorted keys of the listed items to the buckets in order, and
sorts all keys. So the order inside a bucket, the order of the free items, and which places the free items take are
independent and uniform; the key of listed rank s (from 1) among m is the s-th order statistic of m uniform variables.
"""

import numpy as np

from rankernel._loops.compiled import compiled


@compiled
def bucket_sizes(ranks):
    """Sizes of the buckets of a ranking, best first."""
    sizes = np.zeros(ranks.max() + 1, dtype=np.int64)
    for rank in ranks:
        if rank >= 0:
            sizes[rank] += 1
    return sizes


@compiled
def mean_listed_ranks(sizes):
    """Mean rank, from 1 and among the listed items, in each bucket."""
    means = np.zeros(len(sizes))
    before = 0
    for i in range(len(sizes)):
        means[i] = before + (sizes[i] + 1) / 2
        before += sizes[i]
    return means


@compiled
def order_means(i, j, same, sizes, means):
    """Mean of s (t + 1) and of s, the smaller and larger of the listed ranks of two items (or one) of buckets i, j."""
    if i != j:
        small, large = min(means[i], means[j]), max(means[i], means[j])
        return small * (large + 1), small
    middle, size = means[i], sizes[i]
    if same:
        return middle * (middle + 1) + (size * size - 1) / 12, middle
    return middle * (middle + 1) - (size + 1) / 4, middle - (size + 1) / 6


# ---------------------------------------------------------------------- pairs of pairs


@compiled
def pair_product_rows(ranks, weight, out):
    """Mean of s_e s_f for all pairs e <= f, in rows of the upper triangle, times ``weight`` where e < f."""
    for r in range(ranks.shape[0]):
        sizes = bucket_sizes(ranks[r])
        means = mean_listed_ranks(sizes)
        column = 0
        n = ranks.shape[1]
        for x in range(n):
            for y in range(x + 1, n):
                for z in range(x, n):
                    for w in range(y if z == x else z + 1, n):
                        factor = 1.0 if z == x and w == y else weight
                        out[r, column] = factor * pair_product(x, y, z, w, ranks[r], sizes, means)
                        column += 1


@compiled
def pair_product(x, y, z, w, ranks, sizes, means):
    """Mean of s_xy s_zw, where s_xy is 1 if x comes before y and -1 if after."""
    sign = 1.0
    # A pair of a listed and a free item is written with the listed one first, and the pair with more listed items
    # comes first.
    if ranks[x] < 0 <= ranks[y]:
        x, y, sign = y, x, -sign
    if ranks[z] < 0 <= ranks[w]:
        z, w, sign = w, z, -sign
    first, second = n_listed(x, y, ranks), n_listed(z, w, ranks)
    if first < second:
        x, y, z, w, first, second = z, w, x, y, second, first
    if first == 2:
        return sign * listed_pair_product(x, y, z, w, second, ranks, sizes, means)
    if first == 1 and second == 1:
        return sign * mixed_pair_product(x, y, z, w, ranks, sizes, means)
    if first == 1:
        return sign * 2.0 * shared_end(y, z, w) * mean_spread(ranks[x], sizes, means)
    return sign * same_law(x, y, z, w)


@compiled
def n_listed(x, y, ranks):
    """Return how many items of a pair are listed."""
    return (1 if ranks[x] >= 0 else 0) + (1 if ranks[y] >= 0 else 0)


@compiled
def same_law(x, y, z, w):
    """Mean for four exchangeable items: 1, a third if they share an item at the same end, minus that, or 0."""
    if x == z and y == w:
        return 1.0
    if x == z or y == w:
        return 1.0 / 3.0
    return -1.0 / 3.0 if x == w or y == z else 0.0


@compiled
def shared_end(y, z, w):
    """1 if y is the second of a pair, -1 if it is the first."""
    return 1.0 if y == w else -1.0 if y == z else 0.0


@compiled
def mean_spread(i, sizes, means):
    """Mean of V (1 - V) for the key V of an item of bucket i."""
    m = sizes.sum()
    product, small = order_means(i, i, True, sizes, means)
    return small / (m + 1) - product / ((m + 1) * (m + 2))


@compiled
def lead(i, sizes, means):
    """Mean of s_xy for x in bucket i and y free."""
    return 1.0 - 2.0 * means[i] / (sizes.sum() + 1)


@compiled
def listed_pair_product(x, y, z, w, second, ranks, sizes, means):
    """Both x and y are listed; ``second`` of z and w are."""
    if second == 0:
        return 0.0
    if ranks[x] != ranks[y]:
        order = 1.0 if ranks[x] < ranks[y] else -1.0
        if second == 1:
            return order * lead(ranks[z], sizes, means)
        return order * np.sign(ranks[w] - ranks[z])
    if second == 1:
        share = (sizes[ranks[x]] + 1) / (3.0 * (sizes.sum() + 1))
        return share if z == x else -share if z == y else 0.0
    if ranks[z] != ranks[w]:
        return 0.0
    return same_law(x, y, z, w)


@compiled
def mixed_pair_product(x, y, z, w, ranks, sizes, means):
    """Both x and z are listed, y and w free."""
    m = sizes.sum()
    i, j = ranks[x], ranks[z]
    product, small = order_means(i, j, x == z, sizes, means)
    if y == w:
        return 1.0 if x == z else 1.0 - 2.0 * (means[i] + means[j] - 2.0 * small) / (m + 1)
    return 1.0 - 2.0 * (means[i] + means[j]) / (m + 1) + 4.0 * product / ((m + 1) * (m + 2))


# ---------------------------------------------------------------------- positions


@compiled
def rank_products(ranks, out):
    """Mean of the product of the centred positions of every two items."""
    n = ranks.shape[1]
    for r in range(ranks.shape[0]):
        sizes = bucket_sizes(ranks[r])
        means = mean_listed_ranks(sizes)
        for x in range(n):
            for y in range(n):
                if ranks[r, x] >= 0 and ranks[r, y] >= 0:
                    out[r, x, y] = listed_rank_product(ranks[r, x], ranks[r, y], x == y, n, sizes, means)
        fill_free(ranks[r], out[r])


@compiled
def listed_rank_product(i, j, same, n, sizes, means):
    """Mean product for listed items: their positions are order statistics of a random subset of 1..n."""
    m = sizes.sum()
    product, small = order_means(i, j, same, sizes, means)
    stretch = (n + 1) / (m + 1)
    middle = (n + 1) / 2
    raw = product * stretch * (n + 2) / (m + 2) - small * stretch
    return raw - middle * stretch * (means[i] + means[j]) + middle * middle


@compiled
def fill_free(ranks, out):
    """Add the free items: centred positions sum to 0, and free items are exchangeable and uniform."""
    n = len(ranks)
    n_free = (ranks < 0).sum()
    total = 0.0
    for x in range(n):
        if ranks[x] < 0:
            continue
        row = 0.0
        for y in range(n):
            if ranks[y] >= 0:
                row += out[x, y]
        total += row
        for y in range(n):
            if ranks[y] < 0:
                out[x, y] = out[y, x] = -row / n_free
    square = (n * n - 1) / 12
    for x in range(n):
        for y in range(n):
            if ranks[x] < 0 and ranks[y] < 0:
                out[x, y] = square if x == y else (total / n_free - square) / (n_free - 1)


@compiled
def position_marginals(ranks, out):
    """Probability of each position of each item."""
    n = ranks.shape[1]
    for r in range(ranks.shape[0]):
        sizes = bucket_sizes(ranks[r])
        m = sizes.sum()
        laws = np.zeros((len(sizes), n))
        law = np.zeros(n)
        s = 0
        for i in range(len(sizes)):
            for _ in range(sizes[i]):
                fill_law(s, m, law)
                laws[i] += law / sizes[i]
                s += 1
        for x in range(n):
            out[r, x] = laws[ranks[r, x]] if ranks[r, x] >= 0 else np.full(n, 1 / n)


@compiled
def fill_law(s, m, law):
    """Law of the position of listed item s of m (both from 0): ``C(p, s) C(n-1-p, m-1-s) / C(n, m)``.

    Ratios of neighbours, from the middle outwards, neither overflow nor underflow where it matters.
    """
    n = len(law)
    last = n - m + s
    start = min(max((s + 1) * (n + 1) // (m + 1) - 1, s), last)
    law[:] = 0.0
    law[start] = 1.0
    for p in range(start, last):
        law[p + 1] = law[p] * (p + 1) / (p + 1 - s) * (last - p) / (n - 1 - p)
    for p in range(start, s, -1):
        law[p - 1] = law[p] * (p - s) / p * (n - p) / (last - p + 1)
    law /= law.sum()

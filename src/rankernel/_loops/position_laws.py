"""The law of the position of each item of a random completion."""

from rankernel._loops.compiled import compiled


@compiled
def position_marginals(ranks, first, sizes, n_listed, laws, leader, out):
    """Probability of each position of each item: the mean of the laws of the listed ranks of its bucket.

    ``first[r, x]`` is the first listed rank, from 0, of the bucket of x. Listed item s of m is at position p with
    probability ``C(p, s) C(n-1-p, m-1-s) / C(n, m)``: ratios of neighbours, from the middle outwards, neither overflow
    nor underflow where it matters. ``laws`` and ``leader`` are to work with.
    """
    n, m = ranks.shape[1], -1
    for r in range(ranks.shape[0]):
        if n_listed[r] != m:
            m = n_listed[r]
            for s in range(m):
                last = n - m + s
                start = min(max((s + 1) * (n + 1) // (m + 1) - 1, s), last)
                for p in range(n):
                    laws[s, p] = 0.0
                laws[s, start] = 1.0
                total = 1.0
                for p in range(start, last):
                    laws[s, p + 1] = laws[s, p] * (p + 1) / (p + 1 - s) * (last - p) / (n - 1 - p)
                    total += laws[s, p + 1]
                for p in range(start, s, -1):
                    laws[s, p - 1] = laws[s, p] * (p - s) / p * (n - p) / (last - p + 1)
                    total += laws[s, p - 1]
                for p in range(n):
                    laws[s, p] /= total
        for b in range(n):
            leader[b] = -1
        for x in range(n):
            b = ranks[r, x]
            if b < 0:
                for p in range(n):
                    out[r, x, p] = 1.0 / n
            elif leader[b] < 0:
                leader[b] = x
                for p in range(n):
                    out[r, x, p] = 0.0
                for s in range(first[r, x], first[r, x] + sizes[r, x]):
                    for p in range(n):
                        out[r, x, p] += laws[s, p] / sizes[r, x]
            else:
                for p in range(n):
                    out[r, x, p] = out[r, leader[b], p]

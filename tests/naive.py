"""Oracles in pure Python: slow, obvious, and sharing no code with the package.

A ranking is a tuple of ranks: the bucket of each item, 0 the best, -1 free. A full ranking is a permutation of
0..n-1. Nothing here imports rankernel or NumPy.
"""

import itertools
import math
from functools import cache, lru_cache


def completions(ranks):
    """All full rankings (as rank tuples) that agree with a partial one, by trying every permutation."""
    return list(found_completions(tuple(ranks)))


@lru_cache(maxsize=1000)
def found_completions(ranks):
    n = len(ranks)
    in_order = [(a, b) for a in range(n) for b in range(n) if 0 <= ranks[a] < ranks[b]]
    return [full for full in itertools.permutations(range(n)) if all(full[a] < full[b] for a, b in in_order)]


@cache
def every_ranking(n):
    """All rankings of n items: with ties, with free items, with both, or full."""
    return [ranks for ranks in itertools.product(range(-1, n), repeat=n) if has_no_gaps(ranks)]


def has_no_gaps(ranks):
    listed = set(ranks) - {-1}
    return listed == set(range(len(listed)))


# ---------------------------------------------------------------------- distances between full rankings


def kendall(x, y):
    return sum((x[a] - x[b]) * (y[a] - y[b]) < 0 for a, b in itertools.combinations(range(len(x)), 2))


def footrule(x, y):
    return sum(abs(a - b) for a, b in zip(x, y, strict=True))


def spearman(x, y):
    return sum((a - b) ** 2 for a, b in zip(x, y, strict=True))


def hamming(x, y):
    return sum(a != b for a, b in zip(x, y, strict=True))


def cayley(x, y):
    """Fewest transpositions from x to y: n less the number of cycles of the map x[a] -> y[a]."""
    step = dict(zip(x, y, strict=True))
    cycles = 0
    while step:
        cycles += 1
        position = next(iter(step))
        while position in step:
            position = step.pop(position)
    return len(x) - cycles


def lp(p):
    return lambda x, y: sum(abs(a - b) ** p for a, b in zip(x, y, strict=True)) ** (1 / p)


def linf(x, y):
    return max((abs(a - b) for a, b in zip(x, y, strict=True)), default=0)


# ---------------------------------------------------------------------- kernels on full rankings


def kendall_kernel(x, y):
    pairs = len(x) * (len(x) - 1) // 2
    return 1 - 2 * kendall(x, y) / pairs if pairs else 1.0


def mallows(nu):
    return lambda x, y: math.exp(-nu * kendall(x, y))


def polynomial(degree):
    return lambda x, y: (1 + kendall_kernel(x, y)) ** degree


def hamming_kernel(x, y):
    return sum(a == b for a, b in zip(x, y, strict=True))


def exponential(distance, nu):
    return lambda x, y: math.exp(-nu * distance(x, y))


def distance_induced(distance, center):
    return lambda x, y: (distance(x, center) + distance(y, center) - distance(x, y)) / 2


def spearman_kernel(x, y):
    """Inner product of the centred rank vectors."""
    middle = (len(x) - 1) / 2
    return sum((a - middle) * (b - middle) for a, b in zip(x, y, strict=True))


def positional(common):
    return lambda x, y: sum(common(a, b) for a, b in zip(x, y, strict=True))


def sign(number):
    return (number > 0) - (number < 0)


def similar_kendall(S):
    """trace(S M(x) S M(y)^T) over its mean for x = y, by sums over all items and over all full rankings."""
    n = len(S)
    items = range(n)

    def product(x, y):
        return math.fsum(
            S[a][c] * sign(x[d] - x[c]) * S[d][b] * sign(y[b] - y[a])
            for a in items
            for b in items
            for c in items
            for d in items
        )

    every = list(itertools.permutations(items))
    norm = math.fsum(product(x, x) for x in every) / len(every)
    return lambda x, y: product(x, y) / norm


def similar_positional(S, common):
    items = range(len(S))
    return lambda x, y: math.fsum(S[a][b] * common(x[a], y[b]) for a in items for b in items)


def agreement(x, y, depth):
    """The share of items that two full rankings have in common among their first, all of them behind the last."""
    if depth >= len(x):
        return 1.0
    return sum(a < depth and b < depth for a, b in zip(x, y, strict=True)) / depth


def rank_biased_overlap(p, depth=150):
    """By its definition: a sum over depths, cut where nothing is left of it."""
    return lambda x, y: math.fsum((1 - p) * p ** (d - 1) * agreement(x, y, d) for d in range(1, depth + 1))


def average_overlap(depth):
    def value(x, y):
        depths = range(1, min(depth, len(x)) + 1)
        return sum(agreement(x, y, d) for d in depths) / len(depths)

    return value


def ulam(x, y):
    """n minus the length of the longest common subsequence, by its recursion."""
    first = sorted(range(len(x)), key=x.__getitem__)
    second = sorted(range(len(y)), key=y.__getitem__)
    longest = [[0] * (len(y) + 1) for _ in range(len(x) + 1)]
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            longest[i + 1][j + 1] = longest[i][j] + 1 if a == b else max(longest[i][j + 1], longest[i + 1][j])
    return len(x) - longest[-1][-1]


# ---------------------------------------------------------------------- heat kernels


def swaps(n, graph):
    """The pairs of positions that a random walk may swap."""
    pairs = itertools.combinations(range(n), 2)
    return [(p, q) for p, q in pairs if graph == "transpositions" or q == p + 1]


@cache
def heat_from(start, beta, graph):
    """The heat kernel from one full ranking to all, and its derivative in beta, from their power series."""
    edges = swaps(len(start), graph)
    values = dict.fromkeys(itertools.permutations(range(len(start))), 0.0)
    slopes = dict(values)
    term = {start: 1.0}
    for m in range(1, 121):
        following = {}
        for ranks, t in term.items():
            values[ranks] += t
            for p, q in edges:
                other = tuple(q if r == p else p if r == q else r for r in ranks)
                following[other] = following.get(other, 0.0) + t
        for ranks, t in following.items():
            slopes[ranks] += t
        term = {ranks: t * beta / m for ranks, t in following.items()}
    damping = math.exp(-beta * len(edges))
    values = {ranks: v * damping for ranks, v in values.items()}
    return values, {ranks: s * damping - len(edges) * values[ranks] for ranks, s in slopes.items()}


def heat(beta, graph="transpositions"):
    """Only the map from the positions of y to those of x matters."""

    def value(x, y):
        image = tuple(before for _, before in sorted(zip(y, x, strict=True)))
        return heat_from(tuple(range(len(x))), beta, graph)[0][image]

    return value


# ---------------------------------------------------------------------- averages over completions


def marginal(kernel, r, s):
    """The marginalised kernel: the mean of the kernel over all pairs of completions."""
    values = [kernel(x, y) for x, y in itertools.product(completions(r), completions(s))]
    return math.fsum(values) / len(values)


def gram(kernel, rows, columns):
    kernel = cache(kernel)  # the same full rankings complete many rows
    value = cache(lambda r, s: marginal(kernel, r, s))  # of equal rows
    return [[value(tuple(r), tuple(s)) for s in columns] for r in rows]


def marginal_derivative(distance, nu, r, s):
    """d/dnu of the marginalised exponential kernel: the mean of -d exp(-nu d)."""
    distances = [distance(x, y) for x, y in itertools.product(completions(r), completions(s))]
    return math.fsum(-d * math.exp(-nu * d) for d in distances) / len(distances)


def log_wealth(embeddings, n_free=0):
    """The logarithm of the wealth after each observation, given the inner products of all embeddings.

    Nothing is bet on the first ``n_free`` observations.
    """
    total, bet, curvature, found = 0.0, 0.0, 1.0, [0.0] * n_free
    for t in range(n_free, len(embeddings)):
        norm = math.sqrt(max(sum(embeddings[r][s] for r in range(t) for s in range(t)), 0.0))
        largest = math.sqrt(max(embeddings[s][s] for s in range(t + 1)))
        payoff = sum(embeddings[s][t] for s in range(t)) / (norm * largest) if norm > 1e-9 else 0.0
        total += math.log(1 + bet * payoff)
        gradient = -payoff / (1 + bet * payoff)
        curvature += gradient**2
        bet = min(max(bet - 2 / (2 - math.log(3)) * gradient / curvature, 0.0), 0.9)
        found.append(total)
    return found


def n_linear_extensions(n, pairs):
    """How many permutations put a before b for every (a, b) in pairs."""
    return sum(all(full[a] < full[b] for a, b in pairs) for full in itertools.permutations(range(n)))

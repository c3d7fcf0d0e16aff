"""The list of kernels that every contract is tested on, each with an oracle that shares no code with it."""

import math

import naive

import rankernel as rk


def weighted_kendall(weight):
    def value(x, y):
        pairs = [(a, b) for a in range(len(x)) for b in range(len(x)) if x[a] < x[b] and y[a] < y[b]]
        return sum(weight(x[a], x[b]) * weight(y[a], y[b]) for a, b in pairs)

    return value


def harmonic(p, q):
    """A Hilbert matrix on positions, positive definite."""
    return 2.0 / (1 + p + q)


def spearman_rho(x, y):
    n = len(x)
    return 1 - 6 * naive.spearman(x, y) / (n * (n * n - 1)) if n > 1 else 1.0


def center(n):
    return tuple(reversed(range(n)))


def on(n):
    """Every kernel for n items, with its oracle."""
    mallows, tau, agree = naive.mallows(0.3), naive.kendall_kernel, naive.hamming_kernel
    overlap = naive.rank_biased_overlap(0.4)
    return [
        (rk.Kendall(), tau),
        (rk.Mallows(0.3), mallows),
        (rk.Polynomial(1), naive.polynomial(1)),
        (rk.Polynomial(2), naive.polynomial(2)),
        (rk.Polynomial(5), naive.polynomial(5)),
        (rk.Hamming(), agree),
        (rk.Spearman(), spearman_rho),
        (rk.Positional([[2.0 / (1 + p + q) for q in range(n)] for p in range(n)]), naive.positional(harmonic)),
        (rk.RankBiasedOverlap(0.7), naive.rank_biased_overlap(0.7)),
        (rk.RankBiasedOverlap(0.8, depth=3), naive.rank_biased_overlap(0.8, 3)),
        (rk.AverageOverlap(3), naive.average_overlap(3)),
        (rk.DCG(), naive.positional(lambda p, q: 1 / math.log2(p + 2) / math.log2(q + 2))),
        (rk.DCG("hyperbolic", 2), naive.positional(lambda p, q: (p < 2) * (q < 2) / (p + 1) / (q + 1))),
        (2 * rk.RankBiasedOverlap(0.4) + rk.Hamming(), lambda x, y: 2 * overlap(x, y) + agree(x, y)),
        (rk.Exponential("kendall", 0.2), naive.exponential(naive.kendall, 0.2)),
        (rk.Exponential("hamming", 0.4), naive.exponential(naive.hamming, 0.4)),
        (rk.Exponential("cayley", math.log(2)), naive.exponential(naive.cayley, math.log(2))),
        (rk.Exponential("footrule", 0.1), naive.exponential(naive.footrule, 0.1)),
        (rk.Exponential("spearman", 0.05), naive.exponential(naive.spearman, 0.05)),
        (rk.Exponential("lp(1.5)", 0.3), naive.exponential(naive.lp(1.5), 0.3)),
        (rk.Diffusion(0.15), naive.heat(0.15)),
        (rk.Diffusion(0.3, "adjacent"), naive.heat(0.3, "adjacent")),
        *(
            (rk.DistanceInduced(name, center(n)), naive.distance_induced(getattr(naive, name), center(n)))
            for name in ("kendall", "hamming", "spearman", "footrule")
        ),
        (rk.WeightedKendall.top_k(2), weighted_kendall(lambda p, q: float(p < 2 and q < 2))),
        (rk.WeightedKendall.additive(), weighted_kendall(lambda p, q: 1 / (p + 1) + 1 / (q + 1))),
        (
            rk.WeightedKendall.multiplicative("logarithmic"),
            weighted_kendall(lambda p, q: 1 / math.log2(p + 2) / math.log2(q + 2)),
        ),
        (0.5 * rk.Kendall() + rk.Mallows(0.3), lambda x, y: 0.5 * tau(x, y) + mallows(x, y)),
        (rk.Mallows(0.3) * rk.Kendall() + 2, lambda x, y: mallows(x, y) * tau(x, y) + 2),
        (rk.Mallows(0.3) * rk.Hamming(), lambda x, y: mallows(x, y) * agree(x, y)),
        ((1 + rk.Kendall()) ** 3, lambda x, y: (1 + tau(x, y)) ** 3),
        ((0.3 * rk.Hamming()).exp(), lambda x, y: math.exp(0.3 * agree(x, y))),
    ]


NAMES = [str(kernel) for kernel, _ in on(4)]

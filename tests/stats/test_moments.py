"""Exact moments of permutation distributions, the Pearson type III approximation, and adaptive stopping."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankernel as rk
from rankernel.stats._groups import SquaredMMD
from rankernel.stats._moments import CentredKernel, Moments, permutation_moments
from rankernel.stats.k_sample import adapt_to_pairs, min_pvalue

NU = 0.3


def all_sums(A, B):
    n = len(A)
    return np.array(
        [sum(A[i, j] * B[p[i], p[j]] for i in range(n) for j in range(n)) for p in itertools.permutations(range(n))]
    )


def centred(A, biased):
    """Rows add up to 0; without bias, with a zero diagonal."""
    n = len(A)
    if biased:
        H = np.eye(n) - 1 / n
        return H @ A @ H
    A = A - np.diag(np.diag(A))
    sums = A.sum(axis=1)
    out = A - (sums[:, None] + sums) / (n - 2) + sums.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(out, 0.0)
    return out


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(5, 6), st.booleans(), st.booleans())
def test_moments_match_all_permutations(seed, n, biased, ties):
    rng = np.random.default_rng(seed)
    counts = [rng.multinomial(n - 3, [1 / 3] * 3) + 1 if ties else np.ones(n, dtype=int) for _ in range(2)]
    matrices = []
    for part in counts:
        values = rng.normal(size=(len(part), len(part)))
        matrices.append(values + values.T)
    left, right = (CentredKernel.from_gram(M, c.astype(float), biased) for M, c in zip(matrices, counts, strict=True))
    full = [np.repeat(np.repeat(M, c, axis=0), c, axis=1) for M, c in zip(matrices, counts, strict=True)]
    exact = all_sums(centred(full[0], biased), centred(full[1], biased))
    result = permutation_moments(left, right)
    deviations = exact - exact.mean()
    assert result.mean == pytest.approx(exact.mean(), rel=1e-9, abs=1e-9)
    assert result.variance == pytest.approx((deviations**2).mean(), rel=1e-8, abs=1e-9)
    if result.variance > 1e-6:
        assert result.skewness == pytest.approx(
            (deviations**3).mean() / (deviations**2).mean() ** 1.5, rel=1e-6, abs=1e-6
        )


# ---------------------------------------------------------------------- published formulas


def published_sums(W):
    """The sums of degree three of a centred matrix, by their names in Kazi-Aoual et al. 1995."""
    d, squared = np.diag(W), W @ W
    T, T2, S2 = d.sum(), np.trace(squared), (d**2).sum()
    third = {"S3": (d**3).sum(), "U": (W**3).sum(), "B": d @ W @ d, "R": d @ np.diag(squared), "TS2": T * S2}
    return (T, T2, S2), third | {"TTT": T**3, "TT2": T * T2, "T3": np.trace(squared @ W)}


def published_coefficients(n):
    """The coefficient of each product of two sums in the third moment, times n (n - 1) ... (n - 5)."""
    with_S3, with_R = -3 * n * (n - 1) ** 2 * (n + 4), -6 * (n - 2) * (2 * n**2 - 10 * n + 24)
    return {
        ("S3", "S3"): n**2 * (n + 1) * (n**2 + 15 * n - 4),
        ("S3", "U"): -4 * n * (n - 1) * (n**2 - n + 4),
        ("S3", "B"): -6 * n * (n - 1) * (n**2 - n + 4),
        ("S3", "R"): 4 * with_S3,
        ("S3", "TS2"): with_S3,
        ("S3", "TTT"): 2 * n * (n - 1) * (n - 2),
        ("S3", "TT2"): 12 * n * (n - 1) * (n - 2),
        ("S3", "T3"): 16 * n * (n - 1) * (n - 2),
        ("U", "U"): 4 * (n**4 - 8 * n**3 + 19 * n**2 - 4 * n - 16),
        ("U", "B"): 24 * (n**2 - n - 4),
        ("U", "R"): 24 * (n**3 - 3 * n**2 - 2 * n + 8),
        ("U", "TS2"): 12 * (n**2 - n + 4),
        ("U", "TTT"): -16,
        ("U", "TT2"): -6 * (2 * n**2 - 10 * n + 16),
        ("U", "T3"): -8 * (3 * n**2 - 15 * n + 16),
        ("B", "B"): 6 * (n**4 - 8 * n**3 + 21 * n**2 - 6 * n - 24),
        ("B", "R"): 24 * (n**3 - 2 * n**2 - 3 * n + 12),
        ("B", "TS2"): 6 * (2 * n**3 - 7 * n**2 - 3 * n + 12),
        ("B", "TTT"): -(6 * n**2 - 30 * n + 24),
        ("B", "TT2"): -6 * (4 * n**2 - 20 * n + 24),
        ("B", "T3"): -8 * (3 * n**2 - 15 * n + 24),
        ("R", "R"): 12 * (n**4 - n**3 - 8 * n**2 + 36 * n - 48),
        ("R", "TS2"): 12 * (n**3 - 2 * n**2 + 9 * n - 12),
        ("R", "TTT"): -24 * (n - 2),
        ("R", "TT2"): with_R,
        ("R", "T3"): -8 * (n - 2) * (3 * n**2 - 15 * n + 24),
        ("TS2", "TS2"): 3 * (n**4 - 4 * n**3 - 2 * n**2 + 9 * n - 12),
        ("TS2", "TTT"): -(n - 2) * (3 * n**2 - 15 * n + 6),
        ("TS2", "TT2"): -6 * (n - 2) * (n**2 - 5 * n + 6),
        ("TS2", "T3"): -48 * (n - 2),
        ("TTT", "TTT"): n**3 - 9 * n**2 + 23 * n - 14,
        ("TTT", "TT2"): 6 * (n - 4),
        ("TTT", "T3"): 8,
        ("TT2", "TT2"): 6 * (n**3 - 9 * n**2 + 24 * n - 14),
        ("TT2", "T3"): 24 * (n - 3),
        ("T3", "T3"): 8 * (n**3 - 9 * n**2 + 26 * n - 22),
    }


def published_moments(K, L):
    """Mean, variance and skewness of tr(K L) by Kazi-Aoual et al. 1995, as the KRV test of MiRKAT has them."""
    n = len(K)
    ((T, T2, S2), k), ((Ts, T2s, S2s), l) = published_sums(K), published_sums(L)  # noqa: E741
    mean = T * Ts / (n - 1)
    first = 2 * ((n - 1) * T2 - T**2) * ((n - 1) * T2s - Ts**2) / ((n - 1) ** 2 * (n + 1) * (n - 2))
    second = (n * (n + 1) * S2 - (n - 1) * (T**2 + 2 * T2)) * (n * (n + 1) * S2s - (n - 1) * (Ts**2 + 2 * T2s))
    variance = first + second / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))
    third = sum(
        factor * (k[a] * l[b] + (k[b] * l[a] if a != b else 0)) for (a, b), factor in published_coefficients(n).items()
    ) / math.perm(n, 6)
    return mean, variance, (third - 3 * mean * variance - mean**3) / variance**1.5


@pytest.mark.parametrize("n", [6, 7, 12, 40])
def test_moments_match_mirkat(n):
    """The published formula and, for few voters, all permutations."""
    rng = np.random.default_rng(n)
    rankings = rk.datasets.mallows(n, 5, 0.3, rng=n)
    numbers = rng.normal(size=n)
    K, L = rk.Mallows(0.3).gram(rankings), np.exp(-(np.subtract.outer(numbers, numbers) ** 2))
    mean, variance, skewness = published_moments(centred(K, True), centred(L, True))
    one = np.ones(n)
    result = permutation_moments(CentredKernel.from_gram(K, one, True), CentredKernel.from_gram(L, one, True))
    assert result.mean == pytest.approx(mean, rel=1e-10)
    assert result.variance == pytest.approx(variance, rel=1e-8)
    assert result.skewness == pytest.approx(skewness, rel=1e-6)
    if n == 6:
        exact = all_sums(centred(K, True), centred(L, True))
        assert exact.mean() == pytest.approx(mean, rel=1e-10)
        assert exact.var() == pytest.approx(variance, rel=1e-8)
        assert ((exact - mean) ** 3).mean() / exact.std() ** 3 == pytest.approx(skewness, rel=1e-6)


def within_and_their_moments(K, m):
    """The mean kernel values within both samples, their means, and their covariances (Song and Chen 2024)."""
    N, n = len(K), len(K) - m
    K = K - np.diag(np.diag(K))
    total, squares, rows = K.sum(), (K**2).sum(), (K.sum(axis=1) ** 2).sum()
    B = rows - squares
    C = total**2 - 2 * squares - 4 * B
    mean = total / math.perm(N, 2)

    def variance(size):
        sums = 2 * squares / math.perm(N, 2) * math.perm(size, 2)
        sums += 4 * B / math.perm(N, 3) * math.perm(size, 3) + C / math.perm(N, 4) * math.perm(size, 4)
        return sums / math.perm(size, 2) ** 2 - mean**2

    covariance = C / math.perm(N, 4) - mean**2
    alpha, beta = K[:m, :m].sum() / math.perm(m, 2), K[m:, m:].sum() / math.perm(n, 2)
    return (alpha, beta), mean, np.array([[variance(m), covariance], [covariance, variance(n)]])


@pytest.mark.parametrize(("m", "n", "top"), [(3, 4, None), (10, 15, None), (12, 12, 2), (4, 30, 1)])
def test_variance_matches_ker_tests(m, n, top):
    """The unbiased statistic is (N - 1)(alpha / n + beta / m) plus a constant."""
    X, Y = (rk.datasets.mallows(size, 5, theta, rng=size) for size, theta in ((m, 0.2), (n, 0.6)))
    if top:
        X, Y = X.top(top), Y.top(top)
    N, K = m + n, rk.Mallows(0.3).gram(rk.concat([X, Y]))
    (alpha, beta), mean, covariances = within_and_their_moments(K, m)
    weights = (N - 1) * np.array([1 / n, 1 / m])
    constant = (K.sum() - np.trace(K)) / (m * n)
    result = rk.mmd_test(X, Y, rk.Mallows(0.3), n_permutations=20)
    assert result.statistic == pytest.approx(weights @ [alpha, beta] - constant, abs=1e-12)
    ours = SquaredMMD(result._voters, False, 0).moments()
    assert ours.mean == pytest.approx(weights.sum() * mean - constant, abs=1e-12)
    assert ours.variance == pytest.approx(weights @ covariances @ weights, rel=1e-9)
    if N == 7:
        exact = []
        for first in itertools.combinations(range(N), m):
            order = [*first, *(set(range(N)) - set(first))]
            exact.append(within_and_their_moments(K[np.ix_(order, order)], m)[0])
        assert np.mean(exact, axis=0) == pytest.approx([mean, mean], rel=1e-10)
        assert np.cov(exact, rowvar=False, ddof=0) == pytest.approx(covariances, rel=1e-9)


def test_pearson_type_iii_matches_scipy():
    import scipy.stats

    for skewness in (-1.2, -0.3, 0.0, 0.4, 2.5):
        moments = Moments(1.0, 4.0, skewness)
        for value in (-2.0, 0.5, 1.0, 3.0, 9.0, 30.0):
            expected = scipy.stats.pearson3.sf(value, skewness, loc=1.0, scale=2.0)
            assert moments.sf(value) == pytest.approx(expected, rel=1e-6, abs=1e-300)
    assert Moments(1.0, 0.0, 0.0).sf(1.0) == 1.0


@pytest.mark.parametrize(
    ("sizes", "theta", "top"),
    [((20, 20), 0.3, None), ((8, 40), 0.3, None), ((20, 20), 0.3, 1), ((6, 6), 0.0, None)],
    ids=["balanced", "unbalanced", "heavy ties", "few ballots"],
)
def test_moment_pvalue_approximates_long_runs(sizes, theta, top):
    """Within a factor of 1.5 at the quantiles of a long run."""
    X, Y = (rk.datasets.mallows(size, 5, theta, rng=7 + k) for k, size in enumerate(sizes))
    if top:
        X, Y = X.top(top), Y.top(top)
    result = rk.mmd_test(X, Y, rk.Mallows(0.2), n_permutations=20_000)
    both = rk.concat([X, Y])
    K = rk.Mallows(0.2).gram(both)
    one = np.ones(len(both))
    labels = np.repeat([0, 1], sizes)
    weights = np.diag([(sum(sizes) - 1) / (sum(sizes) * (n - 1)) for n in sizes])
    left = CentredKernel.from_gram(K[np.ix_(np.argsort(labels), np.argsort(labels))], one, False)
    right = CentredKernel.from_gram(weights, np.array(sizes, dtype=float), False)
    moments = permutation_moments(left, right).scaled(sum(sizes) / math.prod(sizes))
    null = result.null_distribution
    assert abs(null.mean() - moments.mean) < 5 * null.std() / math.sqrt(len(null))
    assert null.var() == pytest.approx(moments.variance, rel=0.1)
    for level in (0.05, 0.01):
        cut = np.quantile(null, 1 - level)
        true = (null >= cut).mean()
        assert (
            true / 1.5 - 3 * math.sqrt(true / len(null))
            < moments.sf(cut)
            < 1.5 * true + 3 * math.sqrt(true / len(null))
        )


# ---------------------------------------------------------------------- adaptive stopping


def stopping_probabilities(rule):
    """The probability of every stopping point, by counting paths of Polya's urn step by step."""
    looks = list(rule.looks)
    probabilities, alive = {}, {0: 1.0}
    drawn = 0
    for look, n in enumerate(looks):
        while drawn < n:
            following = {}
            for s, p in alive.items():
                up = (s + 1) / (drawn + 2)
                following[s + 1] = following.get(s + 1, 0.0) + p * up
                following[s] = following.get(s, 0.0) + p * (1 - up)
            alive, drawn = following, drawn + 1
        for s in list(alive):
            if rule.stops(look, s):
                probabilities[look, s] = alive.pop(s)
    return probabilities


@pytest.mark.parametrize(
    "adaptive", [rk.Adaptive(0.05, 400), rk.Adaptive(0.2, 150), rk.Adaptive(0.01, 300), rk.Adaptive(0.05, 50)]
)
def test_adaptive_pvalues_are_valid(adaptive):
    """P(p <= a) = a at each possible p-value."""
    rule = adaptive.stopping_rule()
    probabilities = stopping_probabilities(rule)
    assert math.fsum(probabilities.values()) == pytest.approx(1.0, abs=1e-9)
    pvalues = {point: rule.pvalue(*point) for point in probabilities}
    for value in pvalues.values():
        assert math.fsum(probabilities[point] for point in pvalues if pvalues[point] <= value + 1e-12) == pytest.approx(
            value, abs=1e-8
        )
    assert min(pvalues.values()) == pytest.approx(min_pvalue(adaptive), abs=1e-12)


def test_adaptive_decisions():
    same = rk.mmd_test(rk.datasets.uniform(30, 4, rng=1), rk.datasets.uniform(30, 4, rng=2), n_permutations="adaptive")
    assert len(same.null_distribution) < 1000
    other = rk.mmd_test(
        rk.datasets.uniform(30, 4, rng=1),
        rk.datasets.mallows(30, 4, 2.0, rng=2),
        n_permutations=rk.Adaptive(0.01, 5000),
    )
    assert other.pvalue < 0.01
    assert len(other.null_distribution) <= 5000
    assert "permutations" in other.method


def test_adaptive_rule_for_many_tests():
    rule = adapt_to_pairs(rk.Adaptive(), 0.05, 1770)
    assert min_pvalue(rule) * 1770 <= 0.05
    assert adapt_to_pairs(1000, 0.05, 1770) == 1000
    assert adapt_to_pairs(rk.Adaptive(), 0.05, 1) == rk.Adaptive()
    with pytest.raises(ValueError, match="alpha"):
        rk.Adaptive(alpha=2.0)
    with pytest.raises((TypeError, ValueError), match="n_permutations"):
        rk.mmd_test(rk.datasets.uniform(5, 3, rng=1), rk.datasets.uniform(5, 3, rng=2), n_permutations="many")


def test_moment_pvalue_is_bounded_by_the_probability_of_the_data():
    X, Y = rk.Rankings([[0, 1, 2]], counts=[3]), rk.Rankings([[2, 1, 0]], counts=[3])
    result = rk.mmd_test(X, Y, rk.Mallows(0.5), n_permutations=2000)
    assert result.moment_pvalue == pytest.approx(2 / math.comb(6, 3))  # the samples may change sides
    assert result.pvalue == pytest.approx(0.1, abs=5 * math.sqrt(0.09 / 2000))
    uneven = rk.mmd_test(X, rk.Rankings([[2, 1, 0]], counts=[4]), rk.Mallows(0.5), n_permutations=20)
    assert uneven.moment_pvalue == pytest.approx(1 / math.comb(7, 3))
    three = rk.Rankings([[0, 1, 2], [2, 1, 0], [1, 0, 2]], counts=[2, 2, 2])
    assert rk.k_sample_test(three, [0, 1, 2], rk.Mallows(0.5), n_permutations=20).moment_pvalue >= 6 / 90 - 1e-12


def test_skewness_of_many_rankings_is_estimated():
    X, Y = rk.datasets.uniform(1400, 8, rng=1), rk.datasets.uniform(700, 8, rng=2)
    result = rk.mmd_test(X, Y, rk.Mallows(NU), n_permutations=1200)
    assert result.n_moment_draws == 1200
    exact = SquaredMMD(result._voters, False, 0).moments()
    assert math.isnan(exact.skewness)
    null = result.null_distribution
    skewness = ((null - null.mean()) ** 3).mean() / null.std() ** 3
    expected = Moments(exact.mean, exact.variance, skewness).sf(result.statistic)
    assert result.moment_pvalue == pytest.approx(expected, rel=1e-6)

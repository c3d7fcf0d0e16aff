"""P-values from exact moments of permutation distributions, by the Pearson type III approximation."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import rankernel as rk

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


def pearson_pvalue(mean, variance, skewness, value):
    return scipy.stats.pearson3.sf(value, skewness, loc=mean, scale=math.sqrt(variance))


def moments_of(values):
    deviations = values - values.mean()
    return values.mean(), (deviations**2).mean(), (deviations**3).mean() / (deviations**2).mean() ** 1.5


def gaussian(numbers):
    """The Gaussian kernel with the median distance between two different voters as bandwidth."""
    distances = np.abs(np.subtract.outer(numbers, numbers))
    bandwidth = np.median(distances[~np.eye(len(numbers), dtype=bool)])
    return np.exp(-(distances**2) / (2 * bandwidth**2))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(5, 6), st.booleans(), st.booleans())
def test_moment_pvalue_matches_all_permutations(seed, n, biased, ties):
    rng = np.random.default_rng(seed)
    X = rk.datasets.uniform(3 if ties else n, 5, rng=seed)
    X = X[np.sort(rng.integers(0, 3, n))] if ties else X
    numbers = rng.normal(size=n)
    exact = all_sums(centred(rk.Mallows(NU).gram(X), biased), centred(gaussian(numbers), biased))
    divisor = n**2 if biased else n * (n - 3)
    result = rk.hsic_test(X, numbers, rk.Mallows(NU), n_permutations=1, biased=biased)
    assert result.statistic == pytest.approx(exact[0] / divisor, abs=1e-12)
    if exact.var() > 1e-6:  # otherwise all rankings are equal, and there is no skewness
        mean, variance, skewness = moments_of(exact)
        expected = pearson_pvalue(mean, variance, skewness, exact[0])
        bound = np.isclose(exact, exact[0], atol=1e-12).mean()  # the probability of the observed arrangement, at least
        is_bound = expected < result.moment_pvalue <= bound + 1e-12
        assert is_bound or result.moment_pvalue == pytest.approx(expected, rel=1e-5)


def test_small_pvalue_of_unbalanced_groups():
    """20 and 180 voters who agree: the Pearson type III approximation alone is less than half of it."""
    X = rk.concat([rk.datasets.mallows(15, 6, 3.0, rng=7), rk.datasets.mallows(5, 6, 1.2, rng=107)])
    Y = rk.datasets.mallows(180, 6, 3.0, rng=8)
    result = rk.mmd_test(X, Y, rk.Mallows(0.2), n_permutations=400_000)
    assert 3e-5 < result.pvalue < 0.01
    assert result.pvalue / 2 < result.moment_pvalue < 2.5 * result.pvalue


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
    K, L = rk.Mallows(0.3).gram(rankings), gaussian(numbers)
    mean, variance, skewness = published_moments(centred(K, True), centred(L, True))
    result = rk.hsic_test(rankings, numbers, rk.Mallows(0.3), n_permutations=1, biased=True)
    expected = pearson_pvalue(mean, variance, skewness, n**2 * result.statistic)
    assert result.moment_pvalue == pytest.approx(max(expected, 1 / math.factorial(n)), rel=1e-5)
    if n == 6:
        exact = moments_of(all_sums(centred(K, True), centred(L, True)))
        assert exact == pytest.approx((mean, variance, skewness), rel=1e-6)


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
    result = rk.mmd_test(X, Y, rk.Mallows(0.3), n_permutations=20_000)
    assert result.statistic == pytest.approx(weights @ [alpha, beta] - constant, abs=1e-12)
    null = result.null_distribution
    assert weights.sum() * mean - constant == pytest.approx(0.0, abs=1e-12)
    assert abs(null.mean()) < 5 * null.std() / math.sqrt(len(null))
    assert null.var() == pytest.approx(weights @ covariances @ weights, rel=0.1)
    if N == 7:
        exact = []
        for first in itertools.combinations(range(N), m):
            order = [*first, *(set(range(N)) - set(first))]
            exact.append(within_and_their_moments(K[np.ix_(order, order)], m)[0])
        assert np.mean(exact, axis=0) == pytest.approx([mean, mean], rel=1e-10)
        assert np.cov(exact, rowvar=False, ddof=0) == pytest.approx(covariances, rel=1e-9)


@pytest.mark.parametrize(
    ("sizes", "theta", "top"),
    [((20, 20), 0.3, None), ((8, 40), 0.3, None), ((20, 20), 0.3, 1), ((6, 6), 0.0, None)],
    ids=["balanced", "unbalanced", "heavy ties", "few ballots"],
)
def test_moment_pvalue_approximates_long_runs(sizes, theta, top):
    """Within a factor of 1.5 for p-values between 0.005 and 0.2; of 2.5 for few ballots."""
    factor = 2.5 if sum(sizes) < 20 else 1.5
    n_compared = 0
    for run in range(12):
        X, Y = (
            rk.datasets.mallows(size, 5, value, rng=20 * run + k)
            for k, (size, value) in enumerate(zip(sizes, (theta, theta + 0.1 * run), strict=True))
        )
        if top:
            X, Y = X.top(top), Y.top(top)
        result = rk.mmd_test(X, Y, rk.Mallows(0.2), n_permutations=20_000)
        if 0.005 < result.pvalue < 0.2:
            error = 3 * math.sqrt(result.pvalue / 20_000)
            assert result.pvalue / factor - error < result.moment_pvalue < factor * result.pvalue + error
            n_compared += 1
    assert n_compared > 1


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
    null, K = result.null_distribution, rk.Mallows(NU).gram(rk.concat([X, Y]))
    skewness = moments_of(null)[2]
    weights = 2099 * np.array([1 / 700, 1 / 1400])
    variance = weights @ within_and_their_moments(K, 1400)[2] @ weights
    assert result.moment_pvalue == pytest.approx(pearson_pvalue(0.0, variance, skewness, result.statistic), rel=1e-4)

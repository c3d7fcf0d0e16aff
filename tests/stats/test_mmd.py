import itertools
import math
import os
import re
from collections import Counter

import naive
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import any_ranking

import rankernel as rk
from rankernel import mmd_aggregated_test, mmd_test
from rankernel.stats.mmd import adjusted_pvalues
from reproduction.sushi import load_sushi

NU = 0.3
# Few draws on purpose; another test is about the warning.
pytestmark = pytest.mark.filterwarnings("ignore:kernel values are estimated")


def expanded(rows, counts):
    return [row for row, count in zip(rows, counts, strict=True) for _ in range(count)]


def mmd_squared(K, first, second, biased):
    """The squared discrepancy between voters ``first`` and ``second`` of a Gram matrix, term by term."""
    m, n = len(first), len(second)
    XX = math.fsum(K[i][j] for i in first for j in first if biased or i != j)
    YY = math.fsum(K[i][j] for i in second for j in second if biased or i != j)
    XY = math.fsum(K[i][j] for i in first for j in second)
    less = 0 if biased else 1
    return XX / (m * (m - less)) + YY / (n * (n - less)) - 2 * XY / (m * n)


def all_divisions(n_first, strata):
    """All ways to choose the first sample anew, equally likely: within strata, of the same sizes."""
    names = sorted(set(strata))
    members = [[i for i in range(len(strata)) if strata[i] == name] for name in names]
    chosen = [itertools.combinations(group, sum(i < n_first for i in group)) for group in members]
    return [sorted(itertools.chain(*parts)) for parts in itertools.product(*chosen)]


def exact_null(K, n_first, strata, biased=False):
    """The exact null distribution: each value and its probability."""
    everyone = range(len(K))
    divisions = all_divisions(n_first, strata)
    values = [mmd_squared(K, d, [i for i in everyone if i not in d], biased) for d in divisions]
    return {value: count / len(values) for value, count in Counter(round(v, 12) for v in values).items()}


def assert_drawn_from(sample, distribution):
    """Every value is possible, and has its frequency within five standard errors."""
    frequencies = Counter(round(float(v), 12) + 0.0 for v in sample)
    possible = sorted(distribution)
    nearest = Counter()
    for value, count in frequencies.items():
        match = min(possible, key=lambda p, value=value: abs(p - value))
        assert abs(match - value) < 3e-12
        nearest[match] += count
    for value, p in distribution.items():
        assert abs(nearest[value] / len(sample) - p) <= 5 * math.sqrt(p * (1 - p) / len(sample)), (value, p)


@st.composite
def two_samples(draw):
    n = draw(st.integers(2, 4))
    sides = []
    for _ in range(2):
        rows = draw(st.lists(any_ranking(n), min_size=1, max_size=4))
        counts = draw(st.lists(st.integers(1, 3), min_size=len(rows), max_size=len(rows)))
        counts[0] += 1
        sides.append((rows, counts))
    return sides


# ---------------------------------------------------------------------- the statistic


@settings(max_examples=25, deadline=None)
@given(two_samples(), st.booleans())
def test_statistic_and_witness_match_brute_force(sides, biased):
    (x, cx), (y, cy) = sides
    result = mmd_test(
        rk.Rankings(x, counts=cx),
        rk.Rankings(y, counts=cy),
        rk.Mallows(NU),
        n_permutations=5,
        rng=0,
        biased=biased,
        method="enumeration",
    )
    everyone = expanded(x, cx) + expanded(y, cy)
    K = naive.gram(naive.mallows(NU), everyone, everyone)
    m = sum(cx)
    first, second = range(m), range(m, len(everyone))
    assert result.statistic == pytest.approx(mmd_squared(K, first, second, biased), rel=1e-12, abs=1e-13)
    assert result.rankings.n_voters == len(everyone)
    for ballot, value in zip(result.rankings.ranks.tolist(), result.witness, strict=True):
        near = K[everyone.index(tuple(ballot))]
        expected = math.fsum(near[:m]) / m - math.fsum(near[m:]) / len(second)
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-13)


def test_large_diagonal_causes_no_rounding_error():
    x, y = [(0, 1, 2, 3), (1, 0, 2, 3)], [(3, 2, 1, 0), (3, 1, 2, 0), (2, 3, 1, 0)]
    K = naive.gram(naive.mallows(40.0), x + y, x + y)
    result = mmd_test(x, y, rk.Mallows(40.0), n_permutations=200)
    expected = mmd_squared(K, range(2), range(2, 5), biased=False)
    assert abs(expected) < 1e-16
    assert result.statistic == pytest.approx(expected, rel=1e-10, abs=0)
    assert 0.05 < result.pvalue < 1


def test_statistic_of_many_distinct_rankings():
    """More rows than a block of the matrix products has."""
    X, Y = rk.datasets.uniform(300, 7, rng=1), rk.datasets.uniform(250, 7, rng=2)
    K = rk.Mallows(NU).gram(rk.concat([X, Y]))
    XX, YY, XY = K[:300, :300], K[300:, 300:], K[:300, 300:]
    within = (XX.sum() - np.trace(XX)) / (300 * 299) + (YY.sum() - np.trace(YY)) / (250 * 249)
    result = mmd_test(X, Y, rk.Mallows(NU), n_permutations=400)
    assert result.statistic == pytest.approx(within - 2 * XY.mean(), abs=1e-13)
    assert abs(result.null_distribution.mean()) < 5 * result.null_distribution.std() / 20


# ---------------------------------------------------------------------- the null distribution


TINY = ([(0, 1, 2), (1, 0, 2), (2, 1, 0)], [2, 1, 1]), ([(0, 1, 2), (0, 1, 1)], [1, 3])


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("strata", [None, ([0, 1, 0], [1, 0]), (["a", "b", "c"], ["a", "b"])])
def test_null_distribution_matches_all_permutations(biased, strata):
    (x, cx), (y, cy) = TINY
    everyone = expanded(x, cx) + expanded(y, cy)
    labels = [0] * 8 if strata is None else expanded(strata[0], cx) + expanded(strata[1], cy)
    exact = exact_null(naive.gram(naive.mallows(NU), everyone, everyone), 4, labels, biased)
    X, Y = rk.Rankings(x, counts=cx), rk.Rankings(y, counts=cy)
    result = mmd_test(X, Y, rk.Mallows(NU), n_permutations=4000, rng=3, biased=biased, strata=strata)
    assert_drawn_from(result.null_distribution, exact)
    pvalue = sum(p for value, p in exact.items() if value >= result.statistic - 1e-12)
    assert abs(result.pvalue - pvalue) < 5 * math.sqrt(pvalue * (1 - pvalue) / 4000) + 1 / 4001


@pytest.mark.parametrize("strata", [None, ([0, 1], [0, 1])])
def test_null_distribution_of_many_voters_per_ranking(strata):
    """Divisions are hypergeometric: two rankings, so the statistic is a function of one number."""
    counts, kernel = np.array([[40, 30], [25, 45]]), rk.Mallows(NU)
    X, Y = (rk.Rankings([[0, 1, 2], [2, 1, 0]], counts=side) for side in counts)
    result = mmd_test(X, Y, kernel, n_permutations=3000, strata=strata, biased=True)
    apart = 2 - 2 * math.exp(-3 * NU)  # the squared distance of the two embeddings
    assert result.statistic == pytest.approx((40 / 70 - 25 / 70) ** 2 * apart, rel=1e-10)
    if strata is not None:  # a stratum has one ranking only, so nothing changes
        np.testing.assert_allclose(result.null_distribution, result.statistic)
        return
    first = np.arange(66)
    probabilities = scipy.stats.hypergeom.pmf(first, 140, 65, 70)
    values = (first / 70 - (65 - first) / 70) ** 2 * apart
    variance = probabilities @ values**2 - (probabilities @ values) ** 2
    assert abs(result.null_distribution.mean() - probabilities @ values) < 5 * math.sqrt(variance / 3000)
    tail = probabilities[values >= result.statistic - 1e-12].sum()
    assert abs(result.pvalue - tail) < 5 * math.sqrt(tail * (1 - tail) / 3000) + 1 / 3001


def test_pvalue_matches_scipy():
    (x, cx), (y, cy) = TINY
    everyone = expanded(x, cx) + expanded(y, cy)
    K = naive.gram(naive.mallows(NU), everyone, everyone)

    def statistic(first, second):
        return mmd_squared(K, first.astype(int).tolist(), second.astype(int).tolist(), False)

    exact = scipy.stats.permutation_test(
        (np.arange(4), np.arange(4, 8)), statistic, vectorized=False, n_resamples=np.inf, alternative="greater"
    )
    ours = mmd_test(rk.Rankings(x, counts=cx), rk.Rankings(y, counts=cy), rk.Mallows(NU), n_permutations=4000)
    assert ours.statistic == pytest.approx(exact.statistic, rel=1e-12)
    assert ours.pvalue == pytest.approx(exact.pvalue, abs=5 * math.sqrt(exact.pvalue / 4000))


def test_counts_match_repeated_rows():
    (x, cx), (y, cy) = TINY
    counted = mmd_test(rk.Rankings(x, counts=cx), rk.Rankings(y, counts=cy), rk.Mallows(NU), n_permutations=2000)
    written = mmd_test(expanded(x, cx), expanded(y, cy), rk.Mallows(NU), n_permutations=2000)
    assert counted.statistic == pytest.approx(written.statistic, rel=1e-12)
    np.testing.assert_array_equal(counted.witness, written.witness)
    assert scipy.stats.ks_2samp(counted.null_distribution.round(10), written.null_distribution.round(10)).pvalue > 1e-4


def test_ties_count_as_exceedances():
    same = rk.Rankings([[0, 1, 2]], counts=[7])
    assert mmd_test(same, same, rk.Mallows(0.7), n_permutations=100).pvalue == 1.0


def test_stratum_with_one_sample_is_not_permuted():
    (x, cx), (y, cy) = TINY
    strata = (["both", "both", "x only"], ["both", "both"])
    result = mmd_test(
        rk.Rankings(x, counts=cx), rk.Rankings(y, counts=cy), rk.Mallows(NU), n_permutations=2000, strata=strata
    )
    everyone = expanded(x, cx) + expanded(y, cy)
    labels = expanded(strata[0], cx) + expanded(strata[1], cy)
    assert_drawn_from(
        result.null_distribution, exact_null(naive.gram(naive.mallows(NU), everyone, everyone), 4, labels)
    )
    with pytest.raises(rk.RankingError, match="strata"):
        mmd_test(x, x, rk.Mallows(NU), strata=([0, 0, 0], [1, 1, 1]))
    with pytest.raises(ValueError, match="strata"):
        mmd_test(x, y, rk.Mallows(NU), strata=([0, 0, 0], [1, 1, 1]))


def test_more_permutations_extend_the_same_stream():
    X, Y = rk.datasets.uniform(8, 4, rng=1), rk.datasets.uniform(9, 4, rng=2)
    short = mmd_test(X, Y, rk.Mallows(NU), n_permutations=40, rng=5).null_distribution
    long = mmd_test(X, Y, rk.Mallows(NU), n_permutations=90, rng=5).null_distribution
    np.testing.assert_allclose(long[:40], short, rtol=0, atol=1e-15)
    assert not np.array_equal(mmd_test(X, Y, rk.Mallows(NU), n_permutations=40, rng=6).null_distribution, short)
    again = mmd_test(X, Y, rk.Mallows(NU), n_permutations=40, rng=np.random.default_rng(1))
    assert len(again.null_distribution) == 40


# ---------------------------------------------------------------------- kernel values


def test_precomputed_matches_kernel():
    X, Y = rk.datasets.uniform(8, 6, rng=1), rk.datasets.uniform(9, 6, rng=2)
    K = rk.Mallows(NU).gram(rk.concat([X, Y]))
    before = K.copy()
    given_gram, computed = mmd_test(X, Y, precomputed=K), mmd_test(X, Y, rk.Mallows(NU))
    np.testing.assert_array_equal(given_gram.null_distribution, computed.null_distribution)
    np.testing.assert_array_equal(K, before)
    assert given_gram.kernel is None
    assert computed.kernel == rk.Mallows(NU)
    with pytest.raises(ValueError, match="precomputed"):
        mmd_test(X, Y, precomputed=K[:8, :8])


def test_precomputed_with_counts():
    (x, cx), (y, cy) = TINY
    X, Y = rk.Rankings(x, counts=cx), rk.Rankings(y, counts=cy)
    result = mmd_test(X, Y, precomputed=rk.Mallows(NU).gram(rk.concat([X, Y])))
    assert result.statistic == pytest.approx(mmd_test(X, Y, rk.Mallows(NU)).statistic, rel=1e-12)


def test_draws_depend_on_the_ranking_only():
    """One fixed symmetric function of two ballots; two voters with the same ballot are compared by different draws."""
    x = rk.Rankings([[0, 1, 1, 1, 1], [0, 1, 2, 3, 4], [1, 1, 0, 0, 2]], counts=[3, 1, 1])
    y = rk.Rankings([[0, 1, 1, 1, 1], [2, 0, 1, 1, 1]], counts=[3, 1])
    options = {"n_draws": 4, "coupling": "iid", "control_variates": 0, "rng": 2}
    everyone = np.concatenate([np.repeat(part.ranks, part.counts, axis=0) for part in (x, y)])
    K = rk.Mallows(NU).gram(everyone, method=rk.MonteCarlo(diagonal="unbiased", **options))
    assert K[0][1] == K[0][0] == K[0][5] != rk.Mallows(NU).gram(everyone, method=rk.MonteCarlo(**options))[0][0]
    for biased in (False, True):
        result = mmd_test(x, y, rk.Mallows(NU), n_permutations=600, biased=biased, method=rk.MonteCarlo(**options))
        expected = mmd_squared(K.tolist(), range(5), range(5, 9), biased)
        assert result.statistic == pytest.approx(expected, rel=1e-12, abs=1e-14)
        assert_drawn_from(result.null_distribution, exact_null(K.tolist(), 5, [0] * 9, biased))
        assert len(result.rankings) == len(result.witness) == 4
        np.testing.assert_allclose(result.witness[0], K[0, :5].mean() - K[0, 5:].mean(), rtol=1e-12)
        assert "Monte Carlo, 4 draws" in str(result.method)


def test_estimated_statistics_are_unbiased():
    """Most voters of a sample have the same ranking: the bias of its kernel with itself would be many errors."""
    x = rk.Rankings([[0, 1, 1, 1], [0, 1, -1, -1]], counts=[6, 2])
    y = rk.Rankings([[0, 1, 1, 1], [1, 0, 1, 1]], counts=[2, 6])
    exact = mmd_test(x, y, rk.Mallows(NU), n_permutations=1).statistic
    methods = [rk.MonteCarlo(2, "iid", 0, rng=seed) for seed in range(40)]  # two draws: a bias would be largest
    runs = [mmd_test(x, y, rk.Mallows(NU), n_permutations=1, method=method).statistic for method in methods]
    assert abs(np.mean(runs) - exact) < 5 * np.std(runs, ddof=1) / math.sqrt(40)


@pytest.mark.parametrize(
    ("kernel", "method"),
    [
        (rk.Mallows(NU), rk.MonteCarlo(2, "antithetic")),
        (rk.Exponential("hamming", NU), rk.MonteCarlo(4)),  # fewer than items: one Latin block
        (rk.Mallows(NU), rk.MonteCarlo(1, "iid")),
    ],
    ids=str,
)
def test_distinct_rankings_need_no_diagonal_draws(kernel, method):
    X, Y = (rk.datasets.uniform(12, 7, rng=seed).top(3, unlisted="free") for seed in (1, 2))
    both = rk.concat([X, Y])
    assert len(both.unique()) == 24
    K = kernel.gram(both, method=method).tolist()
    result = mmd_test(X, Y, kernel, n_permutations=20, method=method)
    assert result.statistic == pytest.approx(mmd_squared(K, range(12), range(12, 24), False), rel=1e-12)


def test_auto_with_many_items():
    """Default draws may be coupled in blocks as large as the number of items."""
    rng = np.random.default_rng(0)
    X, Y = (rk.Rankings(rng.integers(-1, 4, (3, 70))) for _ in range(2))
    assert "Monte Carlo" in mmd_test(X, Y, rk.Exponential("hamming", 0.05), n_permutations=20).method


def test_estimation_is_the_fallback():
    ties = rk.Rankings([np.repeat(range(5), 3), np.tile(range(5), 3)], counts=[3, 2])
    kernel = rk.Exponential("footrule", nu=0.1)
    with pytest.raises(rk.ExactnessError):
        mmd_test(ties, ties, kernel, method="exact")
    assert "Monte Carlo" in mmd_test(ties, ties, kernel, n_permutations=20).method
    many = rk.Rankings(ties.ranks, counts=[30_000, 20_000])
    assert "Monte Carlo" in mmd_test(many, many, kernel, n_permutations=20).method


def test_median_heuristic_uses_both_samples():
    X, Y = rk.Rankings([[0, 1, 2], [0, 2, 1]]), rk.Rankings([[2, 1, 0], [2, 0, 1]])
    assert mmd_test(X, Y, rk.Mallows("median"), n_permutations=10).kernel == rk.Mallows("median").resolve(
        rk.concat([X, Y])
    )
    assert mmd_test(X, Y, rk.Mallows("median"), n_permutations=10).kernel.nu == 1 / 2


# ---------------------------------------------------------------------- kernels that are not characteristic


@pytest.mark.parametrize(
    "kernel",
    [
        rk.Kendall(),
        rk.Hamming(),
        rk.Spearman(),
        rk.Kendall() + rk.Hamming(),
        0.5 * rk.Kendall() + rk.Spearman() + 1.0,
        rk.WeightedKendall.additive(),
        rk.Polynomial(1),
        rk.Polynomial(2),
        rk.Kendall() ** 2,
        rk.Spearman() * rk.Kendall(),
        rk.DistanceInduced("footrule", [0, 1, 2, 3]),
        rk.DistanceInduced("kendall", [0, 1, 2, 3]),
        rk.Mallows(0.0),
    ],
)
def test_dimension_bound(kernel):
    all_rankings = np.array(list(itertools.permutations(range(4))), dtype=np.int32)
    K = kernel.matrix(all_rankings, all_rankings)
    with_constants = K / np.abs(K).max() + 1.0
    assert np.linalg.matrix_rank(with_constants, tol=1e-9) <= kernel.facts(4).max_dimension


@pytest.mark.parametrize("kernel", [rk.Kendall(), rk.Hamming(), rk.Spearman()])
def test_dimension_bound_is_attained_by_linear_kernels(kernel):
    for n in (2, 3, 4):
        all_rankings = np.array(list(itertools.permutations(range(n))), dtype=np.int32)
        rank = np.linalg.matrix_rank(kernel.matrix(all_rankings, all_rankings) + 1.0, tol=1e-9)
        assert rank == kernel.facts(n).max_dimension


@pytest.mark.parametrize("kernel", [rk.Kendall(), rk.Hamming(), rk.Spearman(), 2 * rk.Kendall() + rk.Hamming()])
def test_kernels_that_are_not_characteristic_warn(kernel):
    X, Y = rk.datasets.uniform(5, 4, rng=1), rk.datasets.uniform(5, 4, rng=2)
    with pytest.warns(rk.NotCharacteristicWarning, match="not characteristic on 4 items"):
        mmd_test(X, Y, kernel, n_permutations=5)


def test_characteristic_kernels_do_not_warn():
    X, Y = rk.datasets.uniform(5, 4, rng=1), rk.datasets.uniform(5, 4, rng=2)
    mmd_test(X, Y, rk.Mallows(0.1) + rk.Kendall(), n_permutations=5)
    mmd_test([[0, 1], [1, 0]], [[0, 1], [0, 1]], rk.Kendall(), n_permutations=5)  # two items: characteristic
    assert (rk.Kendall() + rk.Hamming()).facts(3).max_dimension >= math.factorial(3)


# ---------------------------------------------------------------------- several kernels


def rejects(ranks, best, n_first, level):
    """The rule of the paper for one level: lower the level u of each kernel until few of the B2 permutations reject.

    A kernel rejects at level u if its rank is at most u times the number of statistics.
    """
    n_all = n_first + 1
    fine = [k for k in range(n_all + 1) if (1 + sum(rank <= k for rank in best)) / (1 + len(best)) <= level]
    return [bool(fine) and rank <= max(fine) for rank in ranks]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=4),
    st.lists(st.integers(1, 20), min_size=1, max_size=40),
    st.sampled_from([0.01, 0.05, 0.1, 0.3, 0.9]),
)
def test_adjusted_pvalues_match_the_rule_of_the_paper(ranks, best, level):
    adjusted = adjusted_pvalues(np.array(ranks), np.array(best))
    assert (adjusted <= level).tolist() == rejects(ranks, best, 19, level)


def test_aggregated_result():
    X = rk.datasets.mallows(30, 5, 0.0, rng=1)
    Y = rk.datasets.mallows(30, 5, 1.0, rng=2)
    result = mmd_aggregated_test(X, Y, [0.1, 0.5, rk.Mallows("median")], n_permutations=200, rng=4)
    assert [k.nu for k in result.kernels][:2] == [0.1, 0.5]
    single = [mmd_test(X, Y, k, n_permutations=400, rng=4) for k in result.kernels]
    np.testing.assert_array_equal(result.statistics, [one.statistic for one in single])
    ranks = [1 + sum(one.null_distribution[:200] >= one.statistic) for one in single]
    best = [
        min(1 + sum(one.null_distribution[:200] >= one.null_distribution[200 + b]) for one in single)
        for b in range(200)
    ]
    assert result.statistic == pytest.approx(-math.log10(min(ranks) / 201), abs=1e-12)
    np.testing.assert_allclose(result.null_distribution, -np.log10(np.array(best) / 201), atol=1e-12)
    assert result.pvalue == (1 + sum(b <= min(ranks) for b in best)) / 201 == result.pvalues.min()
    assert result.pvalue == (1 + sum(result.null_distribution >= result.statistic)) / 201
    winner = int(np.argmin(ranks))
    assert result.kernel == result.kernels[winner]
    np.testing.assert_array_equal(result.witness, single[winner].witness)
    np.testing.assert_array_equal(result.rejected, result.pvalues <= 0.05)
    assert result.rejected.any()


def test_auto_kernels():
    X, Y = rk.datasets.uniform(6, 4, rng=1), rk.datasets.uniform(6, 4, rng=2)
    median = rk.Mallows("median").resolve(rk.concat([X, Y])).nu
    assert [k.nu / median for k in mmd_aggregated_test(X, Y, n_permutations=20).kernels] == [0.25, 0.5, 1, 2, 4]


def test_default_kernel():
    X, Y = rk.datasets.uniform(6, 4, rng=1), rk.datasets.uniform(6, 4, rng=2)
    assert mmd_test(X, Y, n_permutations=20).kernel == rk.Mallows("median").resolve(rk.concat([X, Y]))


@pytest.mark.parametrize("kernel", ["median", "auto", 0.1, [], ["a"], [rk.Kendall()]])
def test_invalid_kernel(kernel):
    with pytest.raises((TypeError, ValueError), match="kernel"):
        mmd_test([[0, 1], [1, 0]], [[0, 1], [1, 0]], kernel)


def test_model_as_sample():
    with pytest.raises((TypeError, ValueError), match="goodness_of_fit_test"):
        mmd_test([[0, 1], [1, 0]], rk.Uniform(), rk.Mallows(NU))


@pytest.mark.parametrize("kernels", ["median", 0.1, [], ["a"], None, rk.Kendall()])
def test_invalid_kernels(kernels):
    with pytest.raises((TypeError, ValueError), match="kernel"):
        mmd_aggregated_test([[0, 1], [1, 0]], [[0, 1], [1, 0]], kernels)


def test_repr_shows_no_arrays():
    """Nor rankings: only what fits into a line."""
    X, Y = rk.datasets.uniform(20, 4, rng=0), rk.datasets.uniform(20, 4, rng=1)
    result = rk.mmd_test(X, Y, rk.Mallows(0.3), n_permutations=9)
    shown = repr(result)
    assert re.search(
        rf"^MMDResult\(statistic={re.escape(repr(result.statistic))}, .*kernel=Mallows\(nu=0\.3\)\)$", shown
    )
    assert "array" not in shown
    assert "Rankings" not in shown


def test_small_samples_are_refused():
    one, two = [[0, 1, 2]], [[0, 1, 2], [1, 0, 2]]
    with pytest.raises(rk.RankingError, match="Y has 1 voter"):
        mmd_test(two, one, rk.Mallows(NU))
    assert mmd_test(one, two, rk.Mallows(NU), biased=True, n_permutations=5).statistic > 0
    with pytest.raises(ValueError, match="n_permutations"):
        mmd_test(two, two, rk.Mallows(NU), n_permutations=0)


# ---------------------------------------------------------------------- level and power


def rejection_rate(make, n_runs, level, kernel, **options):
    test = mmd_test if isinstance(kernel, rk.Kernel) else mmd_aggregated_test
    result = [test(*make(run), kernel, rng=run, **options).pvalue <= level for run in range(n_runs)]
    return sum(result) / n_runs


@pytest.mark.parametrize("method", ["auto", rk.MonteCarlo(4, "iid", 0)], ids=["exact", "draws"])
@pytest.mark.parametrize("kernel", [rk.Mallows("median"), [0.1, 2.0]], ids=str)
def test_level_and_power_in_a_few_runs(kernel, method):
    """19 permutations: the level 0.2 is attained exactly but for ties."""

    def null(run):
        return cut(rk.datasets.mallows(8, 4, 0.5, rng=2 * run), rk.datasets.mallows(12, 4, 0.5, rng=2 * run + 1))

    def other(run):
        return cut(rk.datasets.mallows(15, 4, 0.0, rng=2 * run), rk.datasets.mallows(15, 4, 2.0, rng=2 * run + 1))

    def cut(*samples):
        return samples if method == "auto" else [sample.top(2) for sample in samples]

    options = {"kernel": kernel, "method": method}
    assert rejection_rate(null, 60, 0.2, n_permutations=19, **options) <= 0.2 + 4 * math.sqrt(0.2 * 0.8 / 60)
    assert rejection_rate(other, 12, 0.05, n_permutations=99, **options) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [rk.Mallows("median"), "auto"])
@pytest.mark.parametrize("top", [None, 2])
def test_level_by_simulation(kernel, top):
    def make(run):
        pair = [rk.datasets.mallows(20, 6, 0.3, rng=2 * run + side) for side in (0, 1)]
        return pair if top is None else [sample.top(top) for sample in pair]

    n_runs = 1000
    rate = rejection_rate(make, n_runs, 0.05, kernel=kernel, n_permutations=199)
    assert abs(rate - 0.05) <= 4 * math.sqrt(0.05 * 0.95 / n_runs)


@pytest.mark.slow
def test_permutations_depend_on_the_data():
    """With few permutations that are the same for all data sets, the level would be that of these permutations."""
    Z, labels = rk.datasets.uniform(24, 3, rng=1), np.repeat([0, 1], 12)
    nulls = [
        rk.k_sample_test(Z, each, rk.Mallows(NU), n_permutations=20).null_distribution
        for each in (labels, labels, labels[np.random.default_rng(1).permutation(24)])
    ]
    np.testing.assert_array_equal(nulls[0], nulls[1])
    assert not np.array_equal(nulls[0], nulls[2])


@pytest.mark.parametrize(("n_voters", "n_draws"), [(20, 2), (200, 8)])
def test_level_of_estimated_kernels_by_simulation(n_voters, n_draws):
    """Draws belong to the ballot, and equal ballots are many: 12 different ones."""
    n_runs, options = 400, {"n_permutations": 199, "method": rk.MonteCarlo(n_draws, "iid", 0)}
    pvalues = []
    for run in range(n_runs):
        X, Y = (rk.datasets.mallows(n_voters, 4, 0.3, rng=2 * run + side).top(2) for side in (0, 1))
        pvalues.append(mmd_test(X, Y, rk.Mallows(0.5), rng=run, **options).pvalue)
    for level in (0.05, 0.25, 0.5):  # the larger ones make up for fewer runs
        rate = np.mean(np.array(pvalues) <= level)
        assert abs(rate - level) <= 4 * math.sqrt(level * (1 - level) / n_runs), level


@pytest.mark.slow
def test_power_increases_with_sample_size():
    def make(size):
        return lambda run: (
            rk.datasets.mallows(size, 8, 0.0, rng=2 * run).top(3),
            rk.datasets.mallows(size, 8, 0.25, rng=2 * run + 1).top(3),
        )

    powers = [rejection_rate(make(size), 100, 0.05, kernel=rk.Mallows("median")) for size in (10, 30, 90)]
    assert powers[0] < powers[1] < powers[2]
    assert powers[2] > 0.9
    assert rejection_rate(make(90), 100, 0.05, kernel="auto", n_permutations=500) > 0.9


# ---------------------------------------------------------------------- real data


@pytest.fixture(scope="module")
def sushi():
    root = os.environ.get("RANKERNEL_DATA")
    if not root:
        pytest.skip("RANKERNEL_DATA is not set: it is the folder of the real data")
    return load_sushi(root)


@pytest.mark.parametrize("column", ["gender", "east_west", "age"])
def test_sushi_groups_differ(sushi, column):
    users = slice(2000 if column == "east_west" else 500)  # a small difference takes more of them
    groups, rankings = sushi.users[column][users], sushi.rankings[users]
    low, high = (groups == 0, groups == 1) if column != "age" else (groups <= 1, groups >= 3)
    X, Y = rankings[low], rankings[high]
    assert mmd_test(X, Y, rk.Mallows("median"), n_permutations=99).pvalue == 1 / 100


@pytest.mark.slow
def test_random_sushi_groups_do_not_differ(sushi):
    rng = np.random.default_rng(0)
    result = []
    for run in range(300):
        chosen = rng.permutation(len(sushi.rankings))[:120]
        X, Y = sushi.rankings[chosen[:60]], sushi.rankings[chosen[60:]]
        result.append(mmd_test(X, Y, rk.Mallows("median"), n_permutations=199, rng=run).pvalue)
    assert scipy.stats.kstest(result, "uniform").pvalue > 1e-3


@pytest.mark.filterwarnings("ignore::rankernel.SamplingWarning")
def test_monte_carlo_error_of_aggregated_tests():
    """The error is that of the p-value between the statistic plus and minus its error, which does not understate it."""
    X, Y = (rk.datasets.mallows(40, center, 0.25, rng=1).top(3) for center in ([0, 1, 2, 3, 4, 5], [1, 0, 2, 3, 4, 5]))
    kernels = [rk.Exponential("hamming", 0.5)]
    methods = [rk.MonteCarlo(16, rng=seed, control_variates=0) for seed in range(10)]
    results = [rk.mmd_aggregated_test(X, Y, kernels, n_permutations=499, method=method) for method in methods]
    errors = np.array([result.statistic_mcse for result in results])
    assert np.std([result.statistic for result in results]) < 1.5 * errors.mean()
    assert errors.max() < 0.3  # of a common logarithm
    assert rk.mmd_aggregated_test(X, Y, kernels, n_permutations=99, method="exact").statistic_mcse == 0

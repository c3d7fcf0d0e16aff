import itertools
import math
import os
from collections import Counter

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hyppo_hsic import hyppo_hsic
from strategies import any_ranking

import rankernel as rk
from rankernel import hsic_test, mmd_test
from reproduction.sushi import load_sushi

NU = 0.3
# Few draws on purpose; another test is about the warning.
pytestmark = pytest.mark.filterwarnings("ignore:kernel values are estimated")


def expanded(rows, counts):
    return [row for row, count in zip(rows, counts, strict=True) for _ in range(count)]


def centre(K):
    n = len(K)
    rows = [math.fsum(row) / n for row in K]
    mean = math.fsum(rows) / n
    return [[K[i][j] - rows[i] - rows[j] + mean for j in range(n)] for i in range(n)]


def biased_hsic(K, L):
    n = len(K)
    A, B = centre(K), centre(L)
    return math.fsum(A[i][j] * B[i][j] for i in range(n) for j in range(n)) / n**2


def unbiased_hsic(K, L):
    """Song et al. 2012, equation 5, with the diagonals set to 0."""
    n = len(K)
    everyone = range(n)
    K = [[0.0 if i == j else K[i][j] for j in everyone] for i in everyone]
    L = [[0.0 if i == j else L[i][j] for j in everyone] for i in everyone]
    trace = math.fsum(K[i][j] * L[j][i] for i in everyone for j in everyone)
    sums = math.fsum(map(math.fsum, K)) * math.fsum(map(math.fsum, L))
    mixed = math.fsum(math.fsum(K[j]) * math.fsum(L[j]) for j in everyone)  # both are symmetric
    return (trace + sums / ((n - 1) * (n - 2)) - 2 * mixed / (n - 2)) / (n * (n - 3))


def delta(values):
    return [[float(a == b) for b in values] for a in values]


def gaussian(values):
    """The bandwidth is the median distance between two different voters."""
    d = sorted(abs(values[i] - values[j]) for i in range(len(values)) for j in range(len(values)) if i != j)
    middle = (d[len(d) // 2] + d[(len(d) - 1) // 2]) / 2 or math.fsum(d) / len(d) or 1.0
    return [[math.exp(-((a - b) ** 2) / (2 * middle**2)) for b in values] for a in values]


@st.composite
def data(draw):
    n = draw(st.integers(2, 4))
    rows = draw(st.lists(any_ranking(n), min_size=2, max_size=4))
    counts = draw(st.lists(st.integers(1, 3), min_size=len(rows), max_size=len(rows)))
    counts[0] += 2
    codes = draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    return rows, counts, codes


# ---------------------------------------------------------------------- the statistic


@pytest.mark.parametrize("kind", ["labels", "numbers"])
@settings(max_examples=40, deadline=None)
@given(data(), st.booleans(), st.sampled_from([1, 5]))
def test_statistic_matches_brute_force(kind, drawn, biased, multiple):
    """With few voters the sums are over pairs of voters, with many over tables of counts."""
    rows, counts, codes = drawn
    counts = [multiple * count for count in counts]
    values = [f"label {c}" for c in codes] if kind == "labels" else [0.5 * c * c for c in codes]
    X = rk.Rankings(rows, counts=counts)
    result = hsic_test(X, values, rk.Mallows(NU), n_permutations=5, biased=biased, method="enumeration")
    everyone, theirs = expanded(rows, counts), expanded(values, counts)
    K = naive.gram(naive.mallows(NU), everyone, everyone)
    L = delta(theirs) if kind == "labels" else gaussian(theirs)
    expected = biased_hsic(K, L) if biased else unbiased_hsic(K, L)
    assert result.statistic == pytest.approx(expected, rel=1e-11, abs=1e-13)


ROWS, COUNTS, LABELS = [(0, 1, 2), (1, 0, 2), (2, 1, 1), (0, 1, 2)], [2, 1, 1, 1], ["a", "b", "b", "b"]


def test_rankings_as_covariate():
    others, everyone = [(0, 1), (1, 0), (0, 0), (1, 0)], expanded(ROWS, COUNTS)
    theirs = expanded(others, COUNTS)
    K, L = naive.gram(naive.mallows(NU), everyone, everyone), naive.gram(naive.mallows(0.7), theirs, theirs)
    X = rk.Rankings(ROWS, counts=COUNTS)
    result = hsic_test(X, rk.Rankings(others), rk.Mallows(NU), n_permutations=5, covariate_kernel=rk.Mallows(0.7))
    assert result.statistic == pytest.approx(unbiased_hsic(K, L), rel=1e-12)
    with pytest.raises(rk.RankingError, match="covariate"):
        hsic_test(X, rk.Rankings(others, counts=[1, 2, 1, 1]), rk.Mallows(NU))


def test_two_labels_match_mmd_test():
    """The biased criterion with a delta kernel is 2 (mn / N²)² times the biased squared discrepancy."""
    X, Y = rk.datasets.uniform(7, 5, rng=1), rk.datasets.uniform(11, 5, rng=2)
    dependence = hsic_test(rk.concat([X, Y]), [0] * 7 + [1] * 11, rk.Mallows(NU), biased=True).statistic
    discrepancy = mmd_test(X, Y, rk.Mallows(NU), biased=True).statistic
    assert dependence == pytest.approx(2 * (7 * 11 / 18**2) ** 2 * discrepancy, rel=1e-12)


def test_witness_matches_brute_force():
    everyone, theirs = expanded(ROWS, COUNTS), expanded(LABELS, COUNTS)
    K, L = centre(naive.gram(naive.mallows(NU), everyone, everyone)), centre(delta(theirs))
    at_voters = [math.fsum(K[i][j] * L[i][j] for j in range(5)) / 5 for i in range(5)]
    result = hsic_test(rk.Rankings(ROWS, counts=COUNTS), LABELS, rk.Mallows(NU), biased=True)
    np.testing.assert_allclose(result.witness, [at_voters[i] for i in (0, 2, 3, 4)], rtol=1e-12)
    assert result.statistic == pytest.approx(np.average(result.witness, weights=COUNTS), rel=1e-12)


def test_draws_depend_on_the_ranking_only():
    """Two voters with the same ballot are compared by different draws."""
    X = rk.Rankings([[0, 1, 1, 1, 1], [1, 0, 2, 3, 3]], counts=[4, 2])
    options = {"n_draws": 4, "coupling": "iid", "control_variates": 0, "rng": 2}
    K = rk.Mallows(NU).gram(np.repeat(X.ranks, X.counts, axis=0), method=rk.MonteCarlo(diagonal="unbiased", **options))
    for biased, statistic in ((False, unbiased_hsic), (True, biased_hsic)):
        result = hsic_test(
            X, ["a", "b"], rk.Mallows(NU), n_permutations=10, biased=biased, method=rk.MonteCarlo(**options)
        )
        assert result.statistic == pytest.approx(statistic(K.tolist(), delta("aaaabb")), rel=1e-12)
        assert "Monte Carlo" in result.method


def test_estimated_statistics_are_unbiased():
    X, labels = rk.Rankings([[0, 1, 1, 1], [1, 0, 2, 2], [0, 0, 1, 1]], counts=[3, 2, 1]), ["a", "b", "b"]
    exact = hsic_test(X, labels, rk.Mallows(NU), n_permutations=1).statistic
    methods = [rk.MonteCarlo(2, "iid", 0, rng=seed) for seed in range(40)]  # two draws: a bias would be largest
    runs = [hsic_test(X, labels, rk.Mallows(NU), n_permutations=1, method=method).statistic for method in methods]
    assert abs(np.mean(runs) - exact) < 5 * np.std(runs, ddof=1) / math.sqrt(40)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("estimated", ["both", "covariate"])
def test_mcse_of_both_kernels(biased, estimated):
    """Compared with the standard deviation over seeds: not too small, and at most 1.4 times too large."""
    X = rk.datasets.mallows(12, 5, 0.5, rng=1)
    covariate = rk.datasets.mallows(12, 5, 0.5, rng=2).top(1)
    X = X.top(1) if estimated == "both" else X
    options = {"n_permutations": 1, "biased": biased, "covariate_kernel": rk.Mallows(0.4)}

    def runs(seeds):
        draws = [rk.MonteCarlo(4, "iid", 0, rng=seed) for seed in seeds]
        return [hsic_test(X, covariate, rk.Mallows(0.2), method=method, **options) for method in draws]

    results = runs(range(30))
    error = np.median([run.statistic_mcse for run in results])
    deviation = np.std([run.statistic for run in results], ddof=1)
    assert 0.7 * deviation < error < 1.4 * 1.4 * deviation
    assert hsic_test(X, covariate, rk.Mallows(0.2), method="exact", **options).statistic_mcse == 0.0


@pytest.mark.parametrize("values", [["old", "young"] * 3, [["a", "b"]] * 6, [object()] * 6])
def test_gaussian_kernel_needs_numbers(values):
    X = rk.datasets.uniform(6, 4, rng=1)
    with pytest.raises(rk.RankingError, match="covariate"):
        hsic_test(X, values, rk.Mallows(NU), n_permutations=5, covariate_kernel="gaussian")


# ---------------------------------------------------------------------- the null distribution


REPEATED = ROWS, COUNTS, LABELS, delta, ["u", "u", "v", "v"]  # tables of counts
DISTINCT = (
    [(0, 1, 2), (1, 0, 2), (2, 1, 0), (0, 2, 1), (2, 0, 1)],
    [1] * 5,
    [0.0, 0.3, 1.0, 1.1, 2.5],
    gaussian,
    list("uuvvu"),
)  # sums over pairs of voters


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("stratified", [False, True])
@pytest.mark.parametrize("data", [REPEATED, DISTINCT], ids=["repeated", "distinct"])
def test_null_distribution_matches_all_permutations(data, biased, stratified):
    rows, counts, values, covariate_kernel, strata = data
    everyone, theirs = expanded(rows, counts), expanded(values, counts)
    groups = expanded(strata, counts) if stratified else [0] * 5
    K = naive.gram(naive.mallows(NU), everyone, everyone)
    statistic = biased_hsic if biased else unbiased_hsic
    allowed = [p for p in itertools.permutations(range(5)) if all(groups[i] == groups[p[i]] for i in range(5))]
    exact = Counter(round(statistic(K, covariate_kernel([theirs[i] for i in p])), 11) for p in allowed)
    X, options = rk.Rankings(rows, counts=counts), {"strata": strata if stratified else None, "biased": biased}
    result = hsic_test(X, values, rk.Mallows(NU), n_permutations=3000, rng=1, **options)
    distances = np.abs(np.subtract.outer(result.null_distribution, list(exact)))
    assert distances.min(axis=1).max() < 2e-11
    frequencies = np.bincount(distances.argmin(axis=1), minlength=len(exact))
    for frequency, n_ways in zip(frequencies, exact.values(), strict=True):
        p = n_ways / len(allowed)
        assert abs(frequency / 3000 - p) <= 5 * math.sqrt(p * (1 - p) / 3000)
    pvalue = sum(n_ways for value, n_ways in exact.items() if value >= result.statistic - 2e-11) / len(allowed)
    assert abs(result.pvalue - pvalue) <= 5 * math.sqrt(pvalue * (1 - pvalue) / 3000) + 1 / 3001


def test_constant_covariate_has_pvalue_one():
    X = rk.datasets.uniform(6, 4, rng=1)
    assert hsic_test(X, ["same"] * 6, rk.Mallows(NU), n_permutations=50).pvalue == 1.0


# ---------------------------------------------------------------------- what comes in


def test_covariate_kernels():
    X = rk.datasets.uniform(6, 4, rng=1)
    assert (
        "labels (3 different, delta kernel)"
        in hsic_test(X, [1, 2, 3, 1, 2, 3], rk.Mallows(NU), n_permutations=5).method
    )
    assert "labels (2 different" in hsic_test(X, [True, False] * 3, rk.Mallows(NU), n_permutations=5).method
    assert "numbers (Gaussian" in hsic_test(X, [1.0, 2.0, 3.0] * 2, rk.Mallows(NU), n_permutations=5).method
    as_numbers = hsic_test(X, [1, 2, 3] * 2, rk.Mallows(NU), n_permutations=5, covariate_kernel="gaussian")
    assert as_numbers.statistic == hsic_test(X, [1.0, 2.0, 3.0] * 2, rk.Mallows(NU), n_permutations=5).statistic
    table = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]] * 2)
    assert hsic_test(X, table, rk.Mallows(NU), n_permutations=5).statistic == pytest.approx(
        as_numbers.statistic, rel=1e-12
    )
    assert hsic_test(X, [1, 2] * 3, n_permutations=5).kernel == rk.Mallows("median").resolve(X)


def test_invalid_covariates():
    X = rk.datasets.uniform(4, 4, rng=1)
    with pytest.raises(rk.RankingError, match=r"shape \(3,\), but there are 4 rankings"):
        hsic_test(X, [1, 2, 3], rk.Mallows(NU))
    with pytest.raises(rk.RankingError, match="covariate of row 2"):
        hsic_test(X, [1.0, 2.0, np.nan, 4.0], rk.Mallows(NU))
    with pytest.raises(rk.RankingError, match="covariate of row 1"):
        hsic_test(X, ["a", None, "b", "c"], rk.Mallows(NU))
    with pytest.raises(rk.RankingError, match="needs at least 4"):
        hsic_test(X[:3], [1, 2, 3], rk.Mallows(NU))
    with pytest.raises(ValueError, match="covariate_kernel"):
        hsic_test(X, [1, 2, 3, 4], rk.Mallows(NU), covariate_kernel=rk.Mallows(NU))
    with pytest.raises(ValueError, match="covariate_kernel"):
        hsic_test(X, X, rk.Mallows(NU), covariate_kernel="delta")
    with pytest.raises(ValueError, match="strata"):
        hsic_test(X, [1, 2, 3, 4], rk.Mallows(NU), strata=[1, 2])
    with pytest.warns(rk.NotCharacteristicWarning):
        hsic_test(X, [1, 2, 1, 2], rk.Kendall(), n_permutations=5)


# ---------------------------------------------------------------------- level and power


def dependent(run, strength):
    rng = np.random.default_rng(run)
    labels = rng.integers(0, 3, size=24)
    centers = [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]]
    rows = np.array([rk.datasets.mallows(24, center, strength, rng=rng).ranks for center in centers])
    return rows[labels, np.arange(24)], labels


def test_level_and_power_in_a_few_runs():
    null = [
        hsic_test(*dependent(run, 0.0), rk.Mallows("median"), n_permutations=19, rng=run).pvalue <= 0.2
        for run in range(60)
    ]
    assert sum(null) / 60 <= 0.2 + 4 * math.sqrt(0.2 * 0.8 / 60)
    other = [
        hsic_test(*dependent(run, 1.5), rk.Mallows("median"), n_permutations=99, rng=run).pvalue <= 0.05
        for run in range(10)
    ]
    assert sum(other) >= 9


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [False, True])
def test_level_by_simulation(numbers):
    n_runs = 1000
    result = 0
    for run in range(n_runs):
        rows, labels = dependent(run, 0.0)
        values = np.random.default_rng(run).normal(size=len(rows)) if numbers else labels
        result += hsic_test(rows, values, rk.Mallows("median"), n_permutations=199, rng=run).pvalue <= 0.05
    assert abs(result / n_runs - 0.05) <= 4 * math.sqrt(0.05 * 0.95 / n_runs)


def test_taste_in_sushi_depends_on_age():
    root = os.environ.get("RANKERNEL_DATA")
    if not root:
        pytest.skip("RANKERNEL_DATA is not set: it is the folder of the real data")
    sushi = load_sushi(root)
    X, age = sushi.rankings[:500], sushi.users["age"][:500]
    assert hsic_test(X, age, rk.Mallows("median"), n_permutations=199).pvalue == 1 / 200
    shuffled = np.random.default_rng(0).permutation(age)
    assert hsic_test(X, shuffled, rk.Mallows("median"), n_permutations=199).pvalue > 0.01


def test_statistic_matches_hyppo(monkeypatch):
    """hyppo's biased Hsic is the square root of ours, normalised: HSIC(K, L) / sqrt(HSIC(K, K) HSIC(L, L))."""
    X = rk.concat([rk.datasets.uniform(25, 6, rng=0), rk.datasets.mallows(15, 6, 0.3, rng=1)])
    labels = np.repeat([0, 1], [25, 15])
    kernel = rk.Mallows(0.1)
    theirs = hyppo_hsic(monkeypatch).statistic(kernel.gram(X), np.equal.outer(labels, labels).astype(float))
    crossed, squared = (
        rk.hsic_test(X, covariate, kernel, biased=True, n_permutations=1, covariate_kernel=other).statistic
        for covariate, other in ((labels, "auto"), (X, kernel))
    )
    share = 25 * 15 / 40**2  # HSIC of the labels with themselves: the delta kernel of two groups, centred
    assert theirs**2 == pytest.approx(crossed / np.sqrt(squared * (2 * share) ** 2), rel=1e-10)


def test_moments_within_strata_are_estimated():
    X, labels = rk.datasets.uniform(16, 4, rng=1), ["a", "b"] * 8
    assert hsic_test(X, labels, rk.Mallows(NU), n_permutations=20).n_moment_draws == 0
    assert hsic_test(X, labels, rk.Mallows(NU), n_permutations=20, strata=[0] * 8 + [1] * 8).n_moment_draws == 1000


@pytest.mark.filterwarnings("ignore:kernel values are estimated")
@pytest.mark.parametrize("biased", [False, True])
def test_mcse_of_two_estimated_kernels(biased):
    X, other = (rk.datasets.uniform(40, 6, rng=seed).top(2, unlisted="free") for seed in (1, 2))
    results = [
        hsic_test(
            X,
            other,
            rk.Mallows(NU),
            covariate_kernel=rk.Mallows(NU),
            n_permutations=1,
            biased=biased,
            method=rk.MonteCarlo(16, "iid", 0, rng=seed),
        )
        for seed in range(16)
    ]
    deviation = np.std([result.statistic for result in results], ddof=1)
    error = np.median([result.statistic_mcse for result in results])
    assert deviation / 1.8 < error < 2.8 * deviation


# ---------------------------------------------------------------------- conditional independence


def test_given_labels_are_strata():
    X, labels = rk.datasets.uniform(40, 4, rng=1), np.repeat(["a", "b", "c", "d"], 10)
    covariate = np.random.default_rng(1).normal(size=40)
    options = {"kernel": rk.Mallows(0.2), "n_permutations": 30}
    given, strata = (rk.hsic_test(X, covariate, **options, **{name: labels}) for name in ("given", "strata"))
    assert given.statistic == strata.statistic
    np.testing.assert_array_equal(given.null_distribution, strata.null_distribution)
    with pytest.raises(ValueError, match="given and strata"):
        rk.hsic_test(X, covariate, **options, given=labels, strata=labels)
    with pytest.raises(rk.RankingError, match="row 3"):
        rk.hsic_test(X, covariate, **options, given=[0.5, 1, 2, np.nan, *range(36)])


def test_level_given_a_number():
    """Rankings and covariate depend on a third variable only, so they are dependent but conditionally independent."""
    kernel, n_runs, level = rk.Mallows(0.2), 60, 0.2
    alone, conditional, dependent = [], [], []
    for run in range(n_runs):
        rng = np.random.default_rng(run)
        given, noise, scores = rng.normal(size=100), rng.normal(size=100), rng.normal(size=(100, 4))
        scores[:, 0] += 1.5 * given
        X, covariate = rk.Rankings.from_scores(scores), 1.5 * given + noise
        options = {"kernel": kernel, "n_permutations": 19, "rng": run}
        conditional.append(rk.hsic_test(X, covariate, **options, given=given).pvalue)
        if run < 10:
            alone.append(rk.hsic_test(X, covariate, **options).pvalue)
            scores[:, 0] += noise
            dependent.append(rk.hsic_test(rk.Rankings.from_scores(scores), covariate, **options, given=given).pvalue)
    assert np.mean(np.array(conditional) <= level) <= level + 4 * np.sqrt(level * (1 - level) / n_runs)
    assert np.mean(np.array(alone) <= level) == 1.0
    assert np.mean(np.array(dependent) <= level) > 0.8

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
from rankernel.errors import NotCharacteristicWarning
from rankernel.stats import hsic
from rankernel.stats.hsic import hsic_test
from rankernel.stats.mmd import mmd_test

NU = 0.3
# Few draws on purpose: that their errors are large is told elsewhere.
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
    """Width: the median distance between two different voters."""
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


@pytest.fixture(params=[0, 10**9], ids=["pairs", "tables"])
def way(request, monkeypatch):
    """Both ways to compute the same sums."""
    monkeypatch.setattr(hsic, "TERM", request.param)


# ---------------------------------------------------------------------- the statistic


@pytest.mark.parametrize("term", [0, 10**9])
@pytest.mark.parametrize("kind", ["labels", "numbers"])
@settings(max_examples=25, deadline=None)
@given(data(), st.booleans())
def test_statistic_is_that_of_all_voters(term, kind, drawn, biased):
    rows, counts, codes = drawn
    values = [f"label {c}" for c in codes] if kind == "labels" else [0.5 * c * c for c in codes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hsic, "TERM", term)
        result = hsic_test(rk.Rankings(rows, counts=counts), values, rk.Mallows(NU), 5, 0, biased, "enumeration")
    everyone, theirs = expanded(rows, counts), expanded(values, counts)
    K = naive.gram(naive.mallows(NU), everyone, everyone)
    L = delta(theirs) if kind == "labels" else gaussian(theirs)
    expected = biased_hsic(K, L) if biased else unbiased_hsic(K, L)
    assert result.statistic == pytest.approx(expected, rel=1e-11, abs=1e-13)


ROWS, COUNTS, LABELS = [(0, 1, 2), (1, 0, 2), (2, 1, 1), (0, 1, 2)], [2, 1, 1, 1], ["a", "b", "b", "b"]


def test_other_rankings_as_covariate(way):
    others, everyone = [(0, 1), (1, 0), (0, 0), (1, 0)], expanded(ROWS, COUNTS)
    theirs = expanded(others, COUNTS)
    K, L = naive.gram(naive.mallows(NU), everyone, everyone), naive.gram(naive.mallows(0.7), theirs, theirs)
    X = rk.Rankings(ROWS, counts=COUNTS)
    result = hsic_test(X, rk.Rankings(others), rk.Mallows(NU), 5, covariate_kernel=rk.Mallows(0.7))
    assert result.statistic == pytest.approx(unbiased_hsic(K, L), rel=1e-12)
    with pytest.raises(rk.RankingError, match="other counts than X"):
        hsic_test(X, rk.Rankings(others, counts=[1, 2, 1, 1]), rk.Mallows(NU))


def test_two_labels_are_two_samples():
    """The biased criterion with a delta kernel is 2 (mn / N²)² times the biased squared discrepancy."""
    X, Y = rk.datasets.uniform(7, 5, rng=1), rk.datasets.uniform(11, 5, rng=2)
    dependence = hsic_test(rk.concat([X, Y]), [0] * 7 + [1] * 11, rk.Mallows(NU), biased=True).statistic
    discrepancy = mmd_test(X, Y, rk.Mallows(NU), biased=True).statistic
    assert dependence == pytest.approx(2 * (7 * 11 / 18**2) ** 2 * discrepancy, rel=1e-12)


def test_witness_is_the_mean_of_both_centred_kernels(way):
    everyone, theirs = expanded(ROWS, COUNTS), expanded(LABELS, COUNTS)
    K, L = centre(naive.gram(naive.mallows(NU), everyone, everyone)), centre(delta(theirs))
    at_voters = [math.fsum(K[i][j] * L[i][j] for j in range(5)) / 5 for i in range(5)]
    result = hsic_test(rk.Rankings(ROWS, counts=COUNTS), LABELS, rk.Mallows(NU), biased=True)
    np.testing.assert_allclose(result.witness, [at_voters[i] for i in (0, 2, 3, 4)], rtol=1e-12)
    assert result.statistic == pytest.approx(np.average(result.witness, weights=COUNTS), rel=1e-12)


def test_estimated_values_belong_to_the_ballots(way):
    """Two voters with the same ballot are compared by different draws."""
    X = rk.Rankings([[0, 1, 1, 1, 1], [1, 0, 2, 3, 3]], counts=[4, 2])
    options = {"n_draws": 4, "coupling": "iid", "control_variates": 0, "rng": 2}
    K = rk.Mallows(NU).gram(np.repeat(X.ranks, X.counts, axis=0), method=rk.MonteCarlo(diagonal="unbiased", **options))
    for biased, statistic in ((False, unbiased_hsic), (True, biased_hsic)):
        result = hsic_test(X, ["a", "b"], rk.Mallows(NU), 10, biased=biased, method=rk.MonteCarlo(**options))
        assert result.statistic == pytest.approx(statistic(K.tolist(), delta("aaaabb")), rel=1e-12)
        assert "Monte Carlo" in result.method


@pytest.mark.usefixtures("errors_in_a_moment")
def test_estimated_statistics_are_unbiased():
    X, labels = rk.Rankings([[0, 1, 1, 1], [1, 0, 2, 2], [0, 0, 1, 1]], counts=[3, 2, 1]), ["a", "b", "b"]
    exact = hsic_test(X, labels, rk.Mallows(NU), 1).statistic
    methods = [rk.MonteCarlo(2, "iid", 0, rng=seed) for seed in range(60)]  # two draws: a bias would be largest
    runs = [hsic_test(X, labels, rk.Mallows(NU), 1, method=method).statistic for method in methods]
    assert abs(np.mean(runs) - exact) < 5 * np.std(runs, ddof=1) / math.sqrt(60)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("estimated", ["both", "covariate"])
def test_the_error_of_both_kernels_is_told(biased, estimated, monkeypatch):
    """Beside the spread of the statistic over seeds: not too small, and at most 1.4 times too large."""
    X = rk.datasets.mallows(12, 5, 0.5, rng=1)
    covariate = rk.datasets.mallows(12, 5, 0.5, rng=2).top(1)
    X = X.top(1) if estimated == "both" else X
    options = {"n_permutations": 1, "biased": biased, "covariate_kernel": rk.Mallows(0.4)}

    def runs(seeds):
        draws = [rk.MonteCarlo(4, "iid", 0, rng=seed) for seed in seeds]
        return [hsic_test(X, covariate, rk.Mallows(0.2), method=method, **options) for method in draws]

    claimed = np.median([run.statistic_error for run in runs(range(6))])
    monkeypatch.setattr("rankernel.stats._voters.REDRAWN", 1)  # the errors of the others are not looked at
    spread = np.std([run.statistic for run in runs(range(40))], ddof=1)
    assert 0.7 * spread < claimed < 1.4 * 1.4 * spread
    assert hsic_test(X, covariate, rk.Mallows(0.2), method="exact", **options).statistic_error == 0.0


@pytest.mark.parametrize("values", [["old", "young"] * 3, [["a", "b"]] * 6, [object()] * 6])
def test_numbers_that_are_none_are_refused_in_words(values):
    X = rk.datasets.uniform(6, 4, rng=1)
    with pytest.raises(rk.RankingError, match="the Gaussian kernel takes numbers; give numbers, or covariate_kernel="):
        hsic_test(X, values, rk.Mallows(NU), 5, covariate_kernel="gaussian")


# ---------------------------------------------------------------------- the null distribution


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("strata", [None, ["u", "u", "v", "v"]])
def test_null_distribution_is_that_of_all_permutations_of_voters(way, biased, strata):
    everyone, theirs = expanded(ROWS, COUNTS), expanded(LABELS, COUNTS)
    groups = [0] * 5 if strata is None else expanded(strata, COUNTS)
    K = naive.gram(naive.mallows(NU), everyone, everyone)
    statistic = biased_hsic if biased else unbiased_hsic
    allowed = [p for p in itertools.permutations(range(5)) if all(groups[i] == groups[p[i]] for i in range(5))]
    law = Counter(round(statistic(K, delta([theirs[i] for i in p])), 11) for p in allowed)
    X = rk.Rankings(ROWS, counts=COUNTS)
    result = hsic_test(X, LABELS, rk.Mallows(NU), 3000, 1, biased, strata=strata)
    away = np.abs(np.subtract.outer(result.null_distribution, list(law)))
    assert away.min(axis=1).max() < 2e-11
    seen = np.bincount(away.argmin(axis=1), minlength=len(law))
    for n_seen, ways in zip(seen, law.values(), strict=True):
        p = ways / len(allowed)
        assert abs(n_seen / 3000 - p) <= 5 * math.sqrt(p * (1 - p) / 3000)
    tail = sum(ways for value, ways in law.items() if value >= result.statistic - 2e-11) / len(allowed)
    assert abs(result.pvalue - tail) <= 5 * math.sqrt(tail * (1 - tail) / 3000) + 1 / 3001


def test_parts_of_permutations_make_no_difference(way, monkeypatch):
    X, labels = rk.datasets.uniform(20, 5, rng=1), np.arange(20) % 3
    whole = hsic_test(X, labels, rk.Mallows(NU), 50).null_distribution
    monkeypatch.setattr(hsic, "ENTRIES", 700)
    np.testing.assert_allclose(hsic_test(X, labels, rk.Mallows(NU), 50).null_distribution, whole, rtol=0, atol=1e-14)


def test_nothing_to_tell_apart_has_pvalue_one(way):
    X = rk.datasets.uniform(6, 4, rng=1)
    assert hsic_test(X, ["same"] * 6, rk.Mallows(NU), 50).pvalue == 1.0


# ---------------------------------------------------------------------- what comes in


def test_kinds_of_covariates():
    X = rk.datasets.uniform(6, 4, rng=1)
    assert "labels (3 different, delta kernel)" in hsic_test(X, [1, 2, 3, 1, 2, 3], rk.Mallows(NU), 5).method
    assert "labels (2 different" in hsic_test(X, [True, False] * 3, rk.Mallows(NU), 5).method
    assert "numbers (Gaussian" in hsic_test(X, [1.0, 2.0, 3.0] * 2, rk.Mallows(NU), 5).method
    as_numbers = hsic_test(X, [1, 2, 3] * 2, rk.Mallows(NU), 5, covariate_kernel="gaussian")
    assert as_numbers.statistic == hsic_test(X, [1.0, 2.0, 3.0] * 2, rk.Mallows(NU), 5).statistic
    table = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]] * 2)
    assert hsic_test(X, table, rk.Mallows(NU), 5).statistic == pytest.approx(as_numbers.statistic, rel=1e-12)
    assert hsic_test(X, [1, 2] * 3, n_permutations=5).kernel == rk.Mallows("median").resolve(X)


def test_what_is_refused():
    X = rk.datasets.uniform(4, 4, rng=1)
    with pytest.raises(rk.RankingError, match=r"shape \(3,\), but there are 4 rankings"):
        hsic_test(X, [1, 2, 3], rk.Mallows(NU))
    with pytest.raises(rk.RankingError, match="row 2 is nan"):
        hsic_test(X, [1.0, 2.0, np.nan, 4.0], rk.Mallows(NU))
    with pytest.raises(rk.RankingError, match="row 1 is missing"):
        hsic_test(X, ["a", None, "b", "c"], rk.Mallows(NU))
    with pytest.raises(rk.RankingError, match="needs at least 4"):
        hsic_test(X[:3], [1, 2, 3], rk.Mallows(NU))
    with pytest.raises(ValueError, match="is for rankings"):
        hsic_test(X, [1, 2, 3, 4], rk.Mallows(NU), covariate_kernel=rk.Mallows(NU))
    with pytest.raises(ValueError, match="not for rankings"):
        hsic_test(X, X, rk.Mallows(NU), covariate_kernel="delta")
    with pytest.raises(ValueError, match="strata has shape"):
        hsic_test(X, [1, 2, 3, 4], rk.Mallows(NU), strata=[1, 2])
    with pytest.warns(NotCharacteristicWarning):
        hsic_test(X, [1, 2, 1, 2], rk.Kendall(), 5)


# ---------------------------------------------------------------------- level and power


def dependent(run, strength):
    rng = np.random.default_rng(run)
    labels = rng.integers(0, 3, size=24)
    centers = [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]]
    rows = np.array([rk.datasets.mallows(24, center, strength, rng=rng).ranks for center in centers])
    return rows[labels, np.arange(24)], labels


def test_level_and_power_in_a_few_runs():
    null = [hsic_test(*dependent(run, 0.0), rk.Mallows("median"), 19, run).pvalue <= 0.2 for run in range(60)]
    assert sum(null) / 60 <= 0.2 + 4 * math.sqrt(0.2 * 0.8 / 60)
    other = [hsic_test(*dependent(run, 1.5), rk.Mallows("median"), 99, run).pvalue <= 0.05 for run in range(10)]
    assert sum(other) >= 9


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [False, True])
def test_level_by_simulation(numbers):
    n_runs = 1000
    found = 0
    for run in range(n_runs):
        rows, labels = dependent(run, 0.0)
        values = np.random.default_rng(run).normal(size=len(rows)) if numbers else labels
        found += hsic_test(rows, values, rk.Mallows("median"), 199, run).pvalue <= 0.05
    assert abs(found / n_runs - 0.05) <= 4 * math.sqrt(0.05 * 0.95 / n_runs)


def test_taste_in_sushi_depends_on_age():
    root = os.environ.get("RANKERNEL_DATA")
    if not root:
        pytest.skip("RANKERNEL_DATA is not set: it is the folder of the real data")
    sushi = rk.load_sushi(root)
    X, age = sushi.rankings[:500], sushi.users["age"][:500]
    assert hsic_test(X, age, rk.Mallows("median"), 199).pvalue == 1 / 200
    shuffled = np.random.default_rng(0).permutation(age)
    assert hsic_test(X, shuffled, rk.Mallows("median"), 199).pvalue > 0.01


def test_agrees_with_hyppo(monkeypatch):
    """hyppo's biased Hsic is the square root of ours, normalised: HSIC(K, L) / sqrt(HSIC(K, K) HSIC(L, L))."""
    X = rk.concat([rk.datasets.uniform(25, 6, rng=0), rk.datasets.mallows(15, 6, 0.3, rng=1)])
    labels = np.repeat([0, 1], [25, 15])
    kernel = rk.Mallows(0.1)
    theirs = hyppo_hsic(monkeypatch).statistic(kernel.gram(X), np.equal.outer(labels, labels).astype(float))
    crossed, own = (
        rk.hsic_test(X, covariate, kernel, biased=True, n_permutations=1, covariate_kernel=other).statistic
        for covariate, other in ((labels, "auto"), (X, kernel))
    )
    share = 25 * 15 / 40**2  # HSIC of the labels with themselves: the delta kernel of two groups, centred
    assert theirs**2 == pytest.approx(crossed / np.sqrt(own * (2 * share) ** 2), rel=1e-10)


def test_tails_within_two_strata_come_from_permutations():
    X, labels = rk.datasets.uniform(16, 4, rng=1), ["a", "b"] * 8
    assert hsic_test(X, labels, rk.Mallows(NU), 20).tail_draws == 0
    assert hsic_test(X, labels, rk.Mallows(NU), 20, strata=[0] * 8 + [1] * 8).tail_draws == 1000


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("covariate", [False, True])
def test_slopes_are_how_much_a_change_of_a_kernel_changes(biased, covariate):
    grams = [rk.Mallows(NU).gram(rk.datasets.uniform(4, 4, rng=seed)) for seed in (1, 2)]
    rows, values = np.array([0, 1, 1, 2, 3, 3, 0]), np.array([0, 0, 1, 2, 3, 3, 3])

    def form(gram, other):
        return hsic.Dependence(gram, rows, hsic.Covariate(values, other, "some values"), biased)

    slopes = form(*grams).slopes(covariate)(np.arange(4))
    for i, j in itertools.combinations_with_replacement(range(4), 2):
        step = np.zeros((4, 4))
        step[i, j] = step[j, i] = 1e-3
        ends = []
        for sign in (1, -1):
            moved = [gram + sign * step * (side == covariate) for side, gram in enumerate(grams)]
            ends.append(float(form(*moved).sums(values[None])[0]))
        assert (ends[0] - ends[1]) / 2 == pytest.approx((slopes * step).sum(), abs=1e-12)


def test_witnesses_are_the_same_a_few_rows_at_a_time(monkeypatch):
    X, numbers = rk.datasets.uniform(11, 4, rng=1), np.arange(11.0)
    whole = hsic_test(X, numbers, rk.Mallows(NU), 1).witness
    monkeypatch.setattr(hsic, "WITNESS_ROWS", 3)
    np.testing.assert_allclose(hsic_test(X, numbers, rk.Mallows(NU), 1).witness, whole, rtol=1e-12)

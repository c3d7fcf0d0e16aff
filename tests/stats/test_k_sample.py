import collections
import itertools
import math

import naive
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hyppo_hsic import hyppo_hsic, hyppo_ksample
from strategies import any_ranking

import rankernel as rk

NU = 0.3
ROWS = [(0, 1, 2), (1, 0, 2), (2, 1, 0), (0, 1, 1), (0, 2, 1)]


def voters(rows, counts):
    return [row for row, count in zip(rows, counts, strict=True) for _ in range(count)]


def holm(pvalues):
    """Holm's step-down method by its definition."""
    order = np.argsort(pvalues)
    adjusted = np.empty(len(pvalues))
    for rank, index in enumerate(order):
        adjusted[index] = min(max((len(order) - k) * pvalues[order[k]] for k in range(rank + 1)), 1.0)
    return adjusted


def dispersion(K, labels, biased):
    """Between groups: sum of n_g |mu_g - mu|^2; without bias, over pairs of different voters."""
    n, total = len(K), 0.0
    for group in set(labels):
        members = [i for i in range(n) if labels[i] == group]
        pairs = math.fsum(K[i][j] for i in members for j in members if biased or i != j)
        total += pairs / len(members) if biased else pairs * (n - 1) / (n * (len(members) - 1))
    return total - math.fsum(K[i][j] for i in range(n) for j in range(n) if biased or i != j) / n


@st.composite
def grouped(draw):
    n = draw(st.integers(2, 4))
    rows = draw(st.lists(any_ranking(n), min_size=3, max_size=6))
    counts = draw(st.lists(st.integers(2, 3), min_size=len(rows), max_size=len(rows)))
    return rows, counts, [f"g{i % draw(st.integers(2, 3))}" if i > 2 else f"g{i}" for i in range(len(rows))]


@settings(max_examples=25, deadline=None)
@given(grouped(), st.booleans())
def test_statistic_matches_brute_force(data, biased):
    rows, counts, labels = data
    result = rk.k_sample_test(
        rk.Rankings(rows, counts=counts), labels, rk.Mallows(NU), n_permutations=5, biased=biased, method="enumeration"
    )
    K = naive.gram(naive.mallows(NU), voters(rows, counts), voters(rows, counts))
    expected = dispersion(K, voters(labels, counts), biased)
    assert result.statistic == pytest.approx(expected, rel=1e-10, abs=1e-12)
    assert result.groups == tuple(sorted(set(labels)))


DISTINCT = [*ROWS, ROWS[0]], [1] * 6, ["a", "b", "a", "b", "c", "c"], [0, 0, 1, 1, 1, 0]  # by pairs of voters
REPEATED = [*ROWS[:2], ROWS[0]] * 2, [2, 1, 1, 1, 1, 1], ["a", "b", "c"] * 2, [0, 0, 0, 1, 1, 1]  # by counts


@pytest.mark.parametrize("data", [DISTINCT, REPEATED], ids=["distinct", "repeated"])
@pytest.mark.parametrize("stratified", [False, True], ids=["free", "strata"])
@pytest.mark.parametrize("biased", [False, True])
def test_null_distribution_matches_all_permutations(data, stratified, biased):
    rows, counts, labels, strata = data
    strata = strata if stratified else [0] * len(rows)
    X = rk.Rankings(rows, counts=counts)
    result = rk.k_sample_test(X, labels, rk.Mallows(NU), n_permutations=3000, rng=1, biased=biased, strata=strata)
    everyone, marks, stratum = (voters(each, counts) for each in (rows, labels, strata))
    K = naive.gram(naive.mallows(NU), everyone, everyone)
    orders = itertools.permutations(range(len(everyone)))
    allowed = [order for order in orders if all(stratum[i] == stratum[j] for i, j in enumerate(order))]
    arrangements = collections.Counter(tuple(marks[i] for i in order) for order in allowed)
    values = np.array([dispersion(K, arrangement, biased) for arrangement in arrangements])
    weights = np.array(list(arrangements.values())) / len(allowed)
    pvalue = float(weights[values >= result.statistic - 1e-12].sum())
    assert abs(result.pvalue - pvalue) < 5 * math.sqrt(pvalue * (1 - pvalue) / 3000) + 1 / 3001
    for moment in (1, 2):
        mean = weights @ values**moment
        error = 5 * math.sqrt(max(weights @ values ** (2 * moment) - mean**2, 0) / 3000) + 1e-12
        assert abs((result.null_distribution**moment).mean() - mean) < error


def test_two_groups_match_mmd_test():
    X, Y = rk.datasets.uniform(9, 5, rng=1), rk.datasets.mallows(13, 5, 0.5, rng=2)
    both, labels = rk.concat([X, Y]), [0] * 9 + [1] * 13
    many, two = rk.k_sample_test(both, labels, rk.Mallows(NU)), rk.mmd_test(X, Y, rk.Mallows(NU))
    assert many.statistic == pytest.approx(two.statistic * 9 * 13 / 22, rel=1e-12)
    np.testing.assert_allclose(many.null_distribution, two.null_distribution * 9 * 13 / 22, atol=1e-12)
    assert many.pvalue == two.pvalue
    assert many.moment_pvalue == pytest.approx(two.moment_pvalue, rel=1e-9)
    assert many.effect == pytest.approx(two.effect, rel=1e-9)


def test_pairwise_matches_mmd_test():
    data = rk.datasets.uniform(30, 5, rng=3)
    labels = np.repeat(["x", "y", "z"], 10)
    kernel = rk.Mallows(NU)
    result = rk.k_sample_test(data, labels, kernel).pairwise()
    assert list(zip(result.first, result.second, strict=True)) == [("x", "y"), ("x", "z"), ("y", "z")]
    for number, (a, b) in enumerate(zip(result.first, result.second, strict=True)):
        alone = rk.mmd_test(data[labels == a], data[labels == b], kernel)
        assert result.statistics[number] == pytest.approx(alone.statistic, rel=1e-10)
        assert result.effects[number] == pytest.approx(alone.effect, rel=1e-9)
        assert result.moment_pvalues[number] == pytest.approx(alone.moment_pvalue, rel=1e-6)
        assert abs(result.pvalues[number] - alone.pvalue) < 0.1
        again = result.pair(a, b)
        assert again.statistic == result.statistics[number]
        assert again.pvalue == result.pvalues[number]
        assert again.groups == (a, b)
    np.testing.assert_allclose(result.adjusted_pvalues, holm(result.pvalues), rtol=1e-12)
    assert result.adjusted_from == "permutations"


def test_many_pairs_use_moments():
    """276 pairs: no p-value of 50 permutations survives the correction."""
    rng = np.random.default_rng(0)
    X = rk.concat([rk.datasets.uniform(8, 4, rng=g) for g in range(23)] + [rk.datasets.mallows(8, 4, 4.0, rng=99)])
    labels = np.repeat(rng.permutation(24), 8)
    result = rk.k_sample_test(X, labels, rk.Mallows(NU), n_permutations=50)
    actual = result.pairwise()
    assert len(actual) == 276
    assert actual.adjusted_from == "moments"
    assert actual.pvalues.min() * 276 > 1
    odd = str(labels[-1])
    named = {frozenset((a, b)) for a, b in zip(actual.first, actual.second, strict=True)}
    assert len(named) == 276
    smallest = actual.order()[:12]
    assert all(odd in (actual.first[i], actual.second[i]) for i in smallest)
    np.testing.assert_allclose(actual.adjusted_pvalues, holm(actual.moment_pvalues), rtol=1e-12)
    assert "moments" in str(actual)


def test_pairs_that_share_no_stratum_are_not_tested():
    X = rk.concat([rk.datasets.mallows(20, 4, theta, rng=g) for g, theta in enumerate((0, 3, 0))])
    groups, strata = np.repeat(list("abc"), 20), np.array([0] * 20 + [1] * 20 + [0, 1] * 10)
    result = rk.k_sample_test(X, groups, rk.Mallows(NU), n_permutations=200, strata=strata)
    actual = result.pairwise()
    assert list(zip(actual.first, actual.second, strict=True)) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert actual.tested.tolist() == [False, True, True]
    assert np.isnan(actual.adjusted_pvalues).tolist() == [True, False, False]
    np.testing.assert_allclose(actual.adjusted_pvalues[1:], holm(actual.pvalues[1:]), rtol=1e-12)
    assert actual.rejected.tolist() == [False, False, True]
    assert "1 of 2 pairs of groups differ" in str(actual)
    assert "1 more share no stratum and are not tested" in str(actual)
    assert actual.order()[-1] == 0
    assert np.isnan(actual.effect_intervals[0]).all()


def test_moments_within_strata_are_estimated():
    X = rk.datasets.uniform(24, 4, rng=1)
    groups, strata = np.arange(24) % 3, np.repeat([0, 1], 12)
    result = rk.k_sample_test(X, groups, rk.Mallows(NU), n_permutations=30, strata=strata)
    assert len(result.null_distribution) == 30
    assert result.n_moment_draws == 1000
    assert "(moments of 1,000 permutations)" in str(result)
    more = rk.k_sample_test(X, groups, rk.Mallows(NU), n_permutations=1000, strata=strata)
    assert result.moment_pvalue == more.moment_pvalue  # the same permutations
    free = rk.k_sample_test(X, groups, rk.Mallows(NU), n_permutations=30)
    assert free.n_moment_draws == 0
    assert "(moments)" in str(free)


def test_moments_are_used_if_permutation_pvalues_are_coarse():
    """Four groups, 199 permutations: 6 x 1/200 is below 0.05, but one exceedance would be above."""
    X = rk.concat([rk.datasets.mallows(15, 4, theta, rng=g) for g, theta in enumerate((0, 0, 0, 3))])
    result = rk.k_sample_test(X, np.repeat(range(4), 15), rk.Mallows(NU), n_permutations=199)
    assert result.pairwise().adjusted_from == "moments"
    assert result.pairwise(n_permutations=999).adjusted_from == "permutations"
    assert result.pairwise(alpha=0.2).adjusted_from == "permutations"


def test_pairwise_intervals_and_plot():
    X = rk.concat([rk.datasets.mallows(15, 4, theta, rng=g) for g, theta in enumerate((0, 0, 3))])
    result = rk.k_sample_test(X, np.repeat(list("abc"), 15), rk.Mallows(NU), n_permutations=50).pairwise()
    for place, (a, b) in enumerate(zip(result.first, result.second, strict=True)):
        assert result.effect_intervals[place].tolist() == pytest.approx(list(result.pair(a, b).effect_interval))
    ax = result.plot(limit=2)
    first = result.order()[0]
    assert ax.get_yticklabels()[0].get_text() == f"{result.first[first]} and {result.second[first]}"
    assert len(ax.get_yticklabels()) == 2
    with pytest.raises(TypeError, match="result=3"):
        rk.plots.pairwise_effects(3)


def test_n_voters():
    X = rk.Rankings([[0, 1], [1, 0], [0, 1]], counts=[3, 4, 5])
    assert rk.k_sample_test(X, ["a", "b", "b"], n_permutations=5).n_voters == (3, 9)
    assert rk.mmd_test(X[:1], X[1:], n_permutations=5).n_voters == (3, 9)


def test_pairwise_corrections():
    X = rk.concat([rk.datasets.mallows(15, 4, theta, rng=g) for g, theta in enumerate((0, 0, 3, 3, 0))])
    result = rk.k_sample_test(X, np.repeat(range(5), 15), rk.Mallows(NU)).pairwise(n_permutations=1999)
    assert result.adjusted_from == "permutations"
    assert {(a, b) for a, b, r in zip(result.first, result.second, result.rejected, strict=True) if r} == {
        ("0", "2"), ("0", "3"), ("1", "2"), ("1", "3"), ("2", "4"), ("3", "4")
    }  # fmt: skip
    rates = rk.k_sample_test(X, np.repeat(range(5), 15), rk.Mallows(NU)).pairwise(correction="benjamini-hochberg")
    expected = scipy.stats.false_discovery_control(rates.pvalues)
    np.testing.assert_allclose(rates.adjusted_pvalues, expected, rtol=1e-12)


def test_equal_groups_match_hyppo(monkeypatch):
    """hyppo's k-sample test is Hsic on labels; with groups of equal size, so is the dispersion, but for a factor."""
    X = rk.concat([rk.datasets.mallows(12, 6, theta, rng=g) for g, theta in enumerate((0.0, 0.3, 0.6))])
    labels = np.repeat(range(3), 12)
    K, L = rk.Mallows(0.1).gram(X), np.equal.outer(labels, labels).astype(float)
    test = hyppo_hsic(monkeypatch)
    ours = rk.k_sample_test(X, labels, precomputed=K, biased=True)

    def hsic(A, B):
        H = np.eye(36) - 1 / 36
        return np.trace(H @ A @ H @ B) / 36**2

    assert test.statistic(K, L) ** 2 == pytest.approx(hsic(K, L) / math.sqrt(hsic(K, K) * hsic(L, L)), rel=1e-9)
    assert ours.statistic == pytest.approx(hsic(K, L) * 36**2 / 12, rel=1e-10)
    theirs = test.test(K, L, reps=1000, auto=False, random_state=1)[1]
    assert abs(theirs - ours.pvalue) < 5 * math.sqrt(2 * max(ours.pvalue, 0.002) * (1 - ours.pvalue) / 1000)


def kernel_of_rows(rows, **_):
    """What hyppo asks for: the kernel between rankings, or between the labels that it makes of groups."""
    if rows.shape[1] == 5:
        return rk.Mallows(0.2).gram(rows.astype(int))
    return (rows[:, None, :] == rows[None, :, :]).all(axis=-1).astype(float)


@pytest.mark.filterwarnings("ignore:The number of replications is low")
@pytest.mark.parametrize("sizes", [(12, 12), (8, 20)], ids=str)
def test_two_groups_match_hyppo(monkeypatch, sizes):
    """The same statistic but for a factor that permutations do not change, of unequal sizes, too."""
    ksample = hyppo_ksample(monkeypatch)
    X, Y = (rk.datasets.mallows(n, 5, theta, rng=n) for n, theta in zip(sizes, (0.0, 0.7), strict=True))
    sides = [side.ranks.astype(float) for side in (X, Y)]
    test = ksample.MMD(compute_kernel=kernel_of_rows, bias=True)
    ours = rk.mmd_test(X, Y, rk.Mallows(0.2), n_permutations=400, biased=True)
    theirs = test.test(*sides, reps=400, auto=False, random_state=1)[1]
    assert abs(theirs - ours.pvalue) < 5 * math.sqrt(2 * max(ours.pvalue, 0.005) / 400)
    rng, both = np.random.default_rng(2), rk.concat([X, Y])
    orders = [np.arange(sum(sizes)), *(rng.permutation(sum(sizes)) for _ in range(3))]
    ratios = []
    for order in orders:
        first, second = both[order[: sizes[0]]], both[order[sizes[0] :]]
        statistic = rk.mmd_test(first, second, rk.Mallows(0.2), n_permutations=1, biased=True).statistic
        ratios.append(test.statistic(first.ranks.astype(float), second.ranks.astype(float)) ** 2 / statistic)
    assert ratios == pytest.approx([ratios[0]] * 4, rel=1e-9)


@pytest.mark.filterwarnings("ignore:The number of replications is low")
@pytest.mark.parametrize("sizes", [(10, 10, 10), (5, 15, 20)], ids=str)
def test_several_groups_match_hyppo(monkeypatch, sizes):
    """Their statistic is HSIC with labels; with equal sizes the p-values agree, with others they are near."""
    ksample = hyppo_ksample(monkeypatch)
    parts = [
        rk.datasets.mallows(n, 5, theta, rng=k) for k, (n, theta) in enumerate(zip(sizes, (0.0, 0.4, 0.7), strict=True))
    ]
    test = ksample.KSample("Hsic", compute_distkern=kernel_of_rows, bias=True)
    theirs = test.test(*[part.ranks.astype(float) for part in parts], reps=400, auto=False, random_state=1)[1]
    labels = np.repeat(range(3), sizes)
    both = rk.concat(parts)
    if len(set(sizes)) == 1:
        ours = rk.k_sample_test(both, labels, rk.Mallows(0.2), n_permutations=400, biased=True).pvalue
    else:  # groups weighted by the squares of their sizes: HSIC with the equality kernel
        ours = rk.hsic_test(both, labels, rk.Mallows(0.2), n_permutations=400, biased=True).pvalue
    assert abs(theirs - ours) < 5 * math.sqrt(2 * max(ours, 0.005) / 400)


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["ward 10", "ward 2", "ward 9"], ("ward 2", "ward 9", "ward 10")),
        ([10, 2, -9], ("-9", "2", "10")),
        (np.array(["x", 10, 2], dtype=object), ("2", "10", "x")),
    ],
)
def test_groups_are_in_natural_order(labels, names):
    X = rk.datasets.uniform(12, 3, rng=0)
    of_row = np.repeat(labels, 4)
    result = rk.k_sample_test(X, of_row, rk.Mallows(0.5), n_permutations=9)
    assert result.groups == names
    pairs = result.pairwise()
    assert pairs.first == (names[0], names[0], names[1])
    for first, second, statistic in zip(pairs.first, pairs.second, pairs.statistics, strict=True):
        sides = (X[of_row.astype(str) == name] for name in (first, second))
        assert statistic == pytest.approx(rk.mmd_test(*sides, rk.Mallows(0.5), n_permutations=9).statistic, abs=1e-12)


def test_invalid_groups():
    X = rk.datasets.uniform(6, 3, rng=1)
    with pytest.raises(ValueError, match=r"groups has shape \(2,\); it must be an array of 6 labels"):
        rk.k_sample_test(X, [1, 2])
    with pytest.raises(rk.RankingError, match="group of row 1"):
        rk.k_sample_test(X, ["a", None, "b", "b", "a", "a"])
    with pytest.raises(rk.RankingError, match="groups"):
        rk.k_sample_test(X, [7] * 6)
    with pytest.raises(rk.RankingError, match="group 'b' has 1 voter"):
        rk.k_sample_test(X, list("aaaaab"))
    with pytest.raises(rk.RankingError, match="strata"):
        rk.k_sample_test(X, list("aaabbb"), strata=[0, 0, 0, 1, 1, 1])
    result = rk.k_sample_test(X, list("aaabbb"), n_permutations=20).pairwise()
    with pytest.raises(rk.RankingError, match="second='q'"):
        result.pair("a", "q")
    with pytest.raises(ValueError, match="correction='none'"):
        rk.k_sample_test(X, list("aaabbb"), n_permutations=20).pairwise(correction="none")


def test_group_names_are_escaped():
    X = rk.datasets.uniform(8, 3, rng=1)
    result = rk.k_sample_test(X, ["<b>"] * 4 + ["x\x1b[31m"] * 4, n_permutations=20)
    assert "<b>" not in result.pairwise()._repr_html_()
    assert "\x1b" not in str(result.pairwise())
    assert "<b>" not in result.differences()._repr_html_()
    assert "<table" in result._repr_html_()


def test_groups_of_one_voter():
    """The biased statistic needs one voter of each group, the unbiased one two."""
    ballots = rk.datasets.uniform(5, 4, rng=0)
    assert 0 < rk.k_sample_test(ballots, list("aabbc"), biased=True, n_permutations=19).pvalue <= 1
    with pytest.raises(rk.RankingError, match="group 'c' has 1 voter"):
        rk.k_sample_test(ballots, list("aabbc"), n_permutations=19)


def test_effect_with_a_group_of_one_voter_is_undefined():
    """Of three groups too, as the dispersion within the group is unknown."""
    X = rk.datasets.mallows(9, 4, 0.2, rng=1)
    result = rk.k_sample_test(X, list("aaaabbbbc"), rk.Mallows(NU), n_permutations=9, biased=True)
    assert math.isnan(result.effect)
    assert np.isnan(result.effect_interval).all()

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
from rankernel.stats import _groups as groups_module
from rankernel.stats.corrections import benjamini_hochberg, holm

NU = 0.3
ROWS = [(0, 1, 2), (1, 0, 2), (2, 1, 0), (0, 1, 1), (0, 2, 1)]


def voters(rows, counts):
    return [row for row, count in zip(rows, counts, strict=True) for _ in range(count)]


def dispersion(K, labels, biased):
    """Between groups: sum of n_g |mu_g - mu|^2; without bias, over pairs of different voters."""
    n, total = len(K), 0.0
    for group in set(labels):
        own = [i for i in range(n) if labels[i] == group]
        pairs = math.fsum(K[i][j] for i in own for j in own if biased or i != j)
        total += pairs / len(own) if biased else pairs * (n - 1) / (n * (len(own) - 1))
    return total - math.fsum(K[i][j] for i in range(n) for j in range(n) if biased or i != j) / n


@st.composite
def grouped(draw):
    n = draw(st.integers(2, 4))
    rows = draw(st.lists(any_ranking(n), min_size=3, max_size=6))
    counts = draw(st.lists(st.integers(2, 3), min_size=len(rows), max_size=len(rows)))
    return rows, counts, [f"g{i % draw(st.integers(2, 3))}" if i > 2 else f"g{i}" for i in range(len(rows))]


@settings(max_examples=25, deadline=None)
@given(grouped(), st.booleans())
def test_statistic_is_the_dispersion_between_groups(data, biased):
    rows, counts, labels = data
    result = rk.k_sample_test(
        rk.Rankings(rows, counts=counts), labels, rk.Mallows(NU), 5, biased=biased, method="enumeration"
    )
    K = naive.gram(naive.mallows(NU), voters(rows, counts), voters(rows, counts))
    expected = dispersion(K, voters(labels, counts), biased)
    assert result.statistic == pytest.approx(expected, rel=1e-10, abs=1e-12)
    assert result.groups == tuple(sorted(set(labels)))


@pytest.mark.parametrize("few_rows", [True, False], ids=["counts", "pairs"])
@pytest.mark.parametrize("strata", [None, [0, 0, 1, 1, 1, 0]], ids=["free", "strata"])
@pytest.mark.parametrize("biased", [False, True])
def test_null_distribution_is_that_of_all_permutations(monkeypatch, few_rows, strata, biased):
    monkeypatch.setattr(groups_module, "TERM", 10**9 if few_rows else 0)
    rows, counts, labels = [*ROWS, ROWS[0]], [1, 1, 1, 1, 1, 1], ["a", "b", "a", "b", "c", "c"]
    X = rk.Rankings(rows, counts=counts)
    result = rk.k_sample_test(X, labels, rk.Mallows(NU), 3000, 1, biased, strata=strata)
    everyone, marks = voters(rows, counts), voters(labels, counts)
    K = naive.gram(naive.mallows(NU), everyone, everyone)
    place = voters(strata or [0] * 6, counts)
    orders = itertools.permutations(range(len(everyone)))
    allowed = [order for order in orders if all(place[i] == place[j] for i, j in enumerate(order))]
    law = np.array([dispersion(K, [marks[i] for i in order], biased) for order in allowed])
    tail = float((law >= result.statistic - 1e-12).mean())
    assert abs(result.pvalue - tail) < 5 * math.sqrt(tail * (1 - tail) / 3000) + 1 / 3001
    for moment in (1, 2):
        error = 5 * (law**moment).std() / math.sqrt(3000) + 1e-12
        assert abs((result.null_distribution**moment).mean() - (law**moment).mean()) < error


def test_two_groups_are_the_two_sample_test():
    X, Y = rk.datasets.uniform(9, 5, rng=1), rk.datasets.mallows(13, 5, 0.5, rng=2)
    both, labels = rk.concat([X, Y]), [0] * 9 + [1] * 13
    many, two = rk.k_sample_test(both, labels, rk.Mallows(NU)), rk.mmd_test(X, Y, rk.Mallows(NU))
    assert many.statistic == pytest.approx(two.statistic * 9 * 13 / 22, rel=1e-12)
    np.testing.assert_allclose(many.null_distribution, two.null_distribution * 9 * 13 / 22, atol=1e-12)
    assert many.pvalue == two.pvalue
    assert many.tail_pvalue == pytest.approx(two.tail_pvalue, rel=1e-9)
    assert many.effect == pytest.approx(two.effect, rel=1e-9)


def test_pairs_of_groups_are_two_sample_tests_on_the_same_values():
    data = rk.datasets.uniform(30, 5, rng=3)
    labels = np.repeat(["x", "y", "z"], 10)
    kernel = rk.Mallows(NU)
    found = rk.k_sample_test(data, labels, kernel).pairwise()
    assert list(zip(found.first, found.second, strict=True)) == [("x", "y"), ("x", "z"), ("y", "z")]
    for number, (a, b) in enumerate(zip(found.first, found.second, strict=True)):
        alone = rk.mmd_test(data[labels == a], data[labels == b], kernel)
        assert found.statistics[number] == pytest.approx(alone.statistic, rel=1e-10)
        assert found.effects[number] == pytest.approx(alone.effect, rel=1e-9)
        assert found.tail_pvalues[number] == pytest.approx(alone.tail_pvalue, rel=1e-6)
        assert abs(found.pvalues[number] - alone.pvalue) < 0.1
        again = found.pair(a, b)
        assert again.statistic == found.statistics[number]
        assert again.pvalue == found.pvalues[number]
        assert again.groups == (a, b)
    np.testing.assert_array_equal(found.corrected, holm(found.pvalues))
    assert found.corrected_from == "permutations"


def test_many_pairs_can_find_something():
    """276 pairs: one over 51 permutations is no small p-value; the tails say what there is."""
    rng = np.random.default_rng(0)
    X = rk.concat([rk.datasets.uniform(8, 4, rng=g) for g in range(23)] + [rk.datasets.mallows(8, 4, 4.0, rng=99)])
    labels = np.repeat(rng.permutation(24), 8)
    result = rk.k_sample_test(X, labels, rk.Mallows(NU), n_permutations=50)
    found = result.pairwise()
    assert len(found) == 276
    assert found.corrected_from == "tail"
    assert found.pvalues.min() * 276 > 1
    odd = str(labels[-1])
    named = {frozenset((a, b)) for a, b in zip(found.first, found.second, strict=True)}
    assert len(named) == 276
    smallest = found.order()[:12]
    assert all(odd in (found.first[i], found.second[i]) for i in smallest)
    np.testing.assert_array_equal(found.corrected, holm(found.tail_pvalues))
    assert "tail" in str(found)


def test_pairs_that_share_no_stratum_are_left_out_and_said_to_be():
    X = rk.concat([rk.datasets.mallows(20, 4, theta, rng=g) for g, theta in enumerate((0, 3, 0))])
    groups, strata = np.repeat(list("abc"), 20), np.array([0] * 20 + [1] * 20 + [0, 1] * 10)
    result = rk.k_sample_test(X, groups, rk.Mallows(NU), 200, strata=strata)
    found = result.pairwise()
    assert list(zip(found.first, found.second, strict=True)) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert found.tested.tolist() == [False, True, True]
    assert np.isnan(found.corrected).tolist() == [True, False, False]
    np.testing.assert_array_equal(found.corrected[1:], holm(found.pvalues[1:]))  # two tests, not three
    assert found.rejected.tolist() == [False, False, True]
    assert "1 of 2 pairs of groups differ" in str(found)
    assert "1 more share no stratum, and are not tested" in str(found)
    assert found.order()[-1] == 0
    assert np.isnan(found.effect_intervals[0]).all()


def test_tails_within_strata_have_enough_permutations_behind_them():
    X = rk.datasets.uniform(24, 4, rng=1)
    groups, strata = np.arange(24) % 3, np.repeat([0, 1], 12)
    result = rk.k_sample_test(X, groups, rk.Mallows(NU), 30, strata=strata)
    assert len(result.null_distribution) == 30
    assert result.tail_draws == 1000
    assert "(tail, moments of 1,000 permutations)" in str(result)
    more = rk.k_sample_test(X, groups, rk.Mallows(NU), 1000, strata=strata)
    assert result.tail_pvalue == more.tail_pvalue  # the same permutations, most of them for the moments alone
    free = rk.k_sample_test(X, groups, rk.Mallows(NU), 30)
    assert free.tail_draws == 0
    assert "(tail)" in str(free)


def test_the_floor_of_permutations_does_not_cost_power():
    """Four groups, 199 permutations: 6 x 1/200 is below 0.05, but one exceedance would be above."""
    X = rk.concat([rk.datasets.mallows(15, 4, theta, rng=g) for g, theta in enumerate((0, 0, 0, 3))])
    result = rk.k_sample_test(X, np.repeat(range(4), 15), rk.Mallows(NU), 199)
    assert result.pairwise().corrected_from == "tail"
    assert result.pairwise(n_permutations=999).corrected_from == "permutations"
    assert result.pairwise(level=0.2).corrected_from == "permutations"


def test_effects_of_pairs_have_intervals_and_a_picture():
    X = rk.concat([rk.datasets.mallows(15, 4, theta, rng=g) for g, theta in enumerate((0, 0, 3))])
    found = rk.k_sample_test(X, np.repeat(list("abc"), 15), rk.Mallows(NU), 50).pairwise()
    for place, (a, b) in enumerate(zip(found.first, found.second, strict=True)):
        assert found.effect_intervals[place].tolist() == pytest.approx(list(found.pair(a, b).effect_interval))
    ax = found.plot(most=2)
    first = found.order()[0]
    assert ax.get_yticklabels()[0].get_text() == f"{found.first[first]} and {found.second[first]}"
    assert len(ax.get_yticklabels()) == 2
    with pytest.raises(TypeError, match="result=3"):
        rk.plots.pairwise_effects(3)


def test_results_know_their_voters():
    X = rk.Rankings([[0, 1], [1, 0], [0, 1]], counts=[3, 4, 5])
    assert rk.k_sample_test(X, ["a", "b", "b"], n_permutations=5).n_voters == (3, 9)
    assert rk.mmd_test(X[:1], X[1:], n_permutations=5).n_voters == (3, 9)


def test_adaptive_pairs_go_below_the_corrected_level():
    X = rk.concat([rk.datasets.mallows(15, 4, theta, rng=g) for g, theta in enumerate((0, 0, 3, 3, 0))])
    found = rk.k_sample_test(X, np.repeat(range(5), 15), rk.Mallows(NU)).pairwise(n_permutations="adaptive")
    assert found.corrected_from == "permutations"
    assert {(a, b) for a, b, r in zip(found.first, found.second, found.rejected, strict=True) if r} == {
        ("0", "2"), ("0", "3"), ("1", "2"), ("1", "3"), ("2", "4"), ("3", "4")
    }  # fmt: skip
    rates = rk.k_sample_test(X, np.repeat(range(5), 15), rk.Mallows(NU)).pairwise("benjamini-hochberg")
    np.testing.assert_array_equal(rates.corrected, benjamini_hochberg(rates.pvalues))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_benjamini_and_hochberg_are_those_of_scipy(pvalues):
    np.testing.assert_allclose(
        benjamini_hochberg(np.array(pvalues)), scipy.stats.false_discovery_control(pvalues), rtol=1e-12, atol=1e-15
    )


def test_no_corrected_p_value_is_above_one():
    assert holm(np.array([0.9, 0.02, 0.8])).tolist() == pytest.approx([1, 0.06, 1])


def test_groups_of_equal_size_agree_with_hyppo(monkeypatch):
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
def test_two_groups_agree_with_the_mmd_of_hyppo(monkeypatch, sizes):
    """The same statistic but for a factor that permutations do not change, of unequal sizes, too."""
    ksample = hyppo_ksample(monkeypatch)
    X, Y = (rk.datasets.mallows(n, 5, theta, rng=n) for n, theta in zip(sizes, (0.0, 0.7), strict=True))
    sides = [side.ranks.astype(float) for side in (X, Y)]
    test = ksample.MMD(compute_kernel=kernel_of_rows, bias=True)
    ours = rk.mmd_test(X, Y, rk.Mallows(0.2), 400, biased=True)
    theirs = test.test(*sides, reps=400, auto=False, random_state=1)[1]
    assert abs(theirs - ours.pvalue) < 5 * math.sqrt(2 * max(ours.pvalue, 0.005) / 400)
    rng, both = np.random.default_rng(2), rk.concat([X, Y])
    orders = [np.arange(sum(sizes)), *(rng.permutation(sum(sizes)) for _ in range(3))]
    ratios = []
    for order in orders:
        first, second = both[order[: sizes[0]]], both[order[sizes[0] :]]
        own = rk.mmd_test(first, second, rk.Mallows(0.2), 1, biased=True).statistic
        ratios.append(test.statistic(first.ranks.astype(float), second.ranks.astype(float)) ** 2 / own)
    assert ratios == pytest.approx([ratios[0]] * 4, rel=1e-9)


@pytest.mark.filterwarnings("ignore:The number of replications is low")
@pytest.mark.parametrize("sizes", [(10, 10, 10), (5, 15, 20)], ids=str)
def test_several_groups_agree_with_those_of_hyppo(monkeypatch, sizes):
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
        ours = rk.k_sample_test(both, labels, rk.Mallows(0.2), 400, biased=True).pvalue
    else:  # groups weighed by the squares of their sizes: HSIC with the equality kernel
        ours = rk.hsic_test(both, labels, rk.Mallows(0.2), 400, biased=True).pvalue
    assert abs(theirs - ours) < 5 * math.sqrt(2 * max(ours, 0.005) / 400)


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["ward 10", "ward 2", "ward 9"], ("ward 2", "ward 9", "ward 10")),
        ([10, 2, -9], ("-9", "2", "10")),
        (np.array(["x", 10, 2], dtype=object), ("2", "10", "x")),
    ],
)
def test_groups_stand_in_natural_order(labels, names):
    X = rk.datasets.uniform(12, 3, rng=0)
    of_row = np.repeat(labels, 4)
    result = rk.k_sample_test(X, of_row, rk.Mallows(0.5), 9)
    assert result.groups == names
    pairs = result.pairwise()
    assert pairs.first == (names[0], names[0], names[1])
    for first, second, statistic in zip(pairs.first, pairs.second, pairs.statistics, strict=True):
        sides = (X[of_row.astype(str) == name] for name in (first, second))
        assert statistic == pytest.approx(rk.mmd_test(*sides, rk.Mallows(0.5), 9).statistic, abs=1e-12)


def test_what_is_wrong_with_groups():
    X = rk.datasets.uniform(6, 3, rng=1)
    with pytest.raises(ValueError, match=r"groups has shape \(2,\); it must be an array of 6 labels"):
        rk.k_sample_test(X, [1, 2])
    with pytest.raises(rk.RankingError, match="the group of row 1 is missing"):
        rk.k_sample_test(X, ["a", None, "b", "b", "a", "a"])
    with pytest.raises(rk.RankingError, match="all rows are of the group '7'"):
        rk.k_sample_test(X, [7] * 6)
    with pytest.raises(rk.RankingError, match=r"of the groups 'b' has 1 voter\(s\).*leave the group out"):
        rk.k_sample_test(X, list("aaaaab"))
    with pytest.raises(rk.RankingError, match="nothing to permute"):
        rk.k_sample_test(X, list("aaabbb"), strata=[0, 0, 0, 1, 1, 1])
    found = rk.k_sample_test(X, list("aaabbb"), n_permutations=20).pairwise()
    with pytest.raises(rk.RankingError, match="second='q' is no group; the groups are a, b"):
        found.pair("a", "q")
    with pytest.raises(ValueError, match="correction='none'"):
        rk.k_sample_test(X, list("aaabbb"), n_permutations=20).pairwise("none")


def test_hostile_names_are_escaped():
    X = rk.datasets.uniform(8, 3, rng=1)
    result = rk.k_sample_test(X, ["<b>"] * 4 + ["x\x1b[31m"] * 4, n_permutations=20)
    assert "<b>" not in result.pairwise()._repr_html_()
    assert "\x1b" not in str(result.pairwise())
    assert "<b>" not in result.differences()._repr_html_()
    assert "<table" in result._repr_html_()

import itertools
import math

import naive
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hyppo_hsic import hyppo_hsic
from strategies import any_ranking

import rankernel as rk
from rankernel.tasks.tests import _groups as groups_module
from rankernel.tasks.tests.corrections import benjamini_hochberg, holm

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
    X, Y = rk.datasets.uniform(9, 5, seed=1), rk.datasets.mallows(13, 5, 0.5, seed=2)
    both, labels = rk.concat([X, Y]), [0] * 9 + [1] * 13
    many, two = rk.k_sample_test(both, labels, rk.Mallows(NU)), rk.mmd_test(X, Y, rk.Mallows(NU))
    assert many.statistic == pytest.approx(two.statistic * 9 * 13 / 22, rel=1e-12)
    np.testing.assert_allclose(many.null_distribution, two.null_distribution * 9 * 13 / 22, atol=1e-12)
    assert many.pvalue == two.pvalue
    assert many.tail_pvalue == pytest.approx(two.tail_pvalue, rel=1e-9)
    assert many.effect == pytest.approx(two.effect, rel=1e-9)


def test_pairs_of_groups_are_two_sample_tests_on_the_same_values():
    data = rk.datasets.uniform(30, 5, seed=3)
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
    """1,770 pairs: one over 1,001 permutations is no small p-value; the tails say what there is."""
    rng = np.random.default_rng(0)
    X = rk.concat([rk.datasets.uniform(8, 4, seed=g) for g in range(59)] + [rk.datasets.mallows(8, 4, 4.0, seed=99)])
    labels = np.repeat(rng.permutation(60), 8)
    result = rk.k_sample_test(X, labels, rk.Mallows(NU), n_permutations=50)
    found = result.pairwise()
    assert len(found) == 1770
    assert found.corrected_from == "tail"
    assert found.pvalues.min() * 1770 > 1
    odd = str(labels[-1])
    named = {frozenset((a, b)) for a, b in zip(found.first, found.second, strict=True)}
    assert len(named) == 1770
    smallest = found.order()[:30]
    assert all(odd in (found.first[i], found.second[i]) for i in smallest)
    np.testing.assert_array_equal(found.corrected, holm(found.tail_pvalues))
    assert "tail" in str(found)


def test_adaptive_pairs_go_below_the_corrected_level():
    X = rk.concat([rk.datasets.mallows(15, 4, theta, seed=g) for g, theta in enumerate((0, 0, 3, 3, 0))])
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
    X = rk.concat([rk.datasets.mallows(12, 6, theta, seed=g) for g, theta in enumerate((0.0, 0.3, 0.6))])
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


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["ward 10", "ward 2", "ward 9"], ("ward 2", "ward 9", "ward 10")),
        ([10, 2, -9], ("-9", "2", "10")),
        (np.array(["x", 10, 2], dtype=object), ("2", "10", "x")),
    ],
)
def test_groups_stand_in_natural_order(labels, names):
    X = rk.datasets.uniform(12, 3, seed=0)
    of_row = np.repeat(labels, 4)
    result = rk.k_sample_test(X, of_row, rk.Mallows(0.5), 9)
    assert result.groups == names
    pairs = result.pairwise()
    assert pairs.first == (names[0], names[0], names[1])
    for first, second, statistic in zip(pairs.first, pairs.second, pairs.statistics, strict=True):
        sides = (X[of_row.astype(str) == name] for name in (first, second))
        assert statistic == pytest.approx(rk.mmd_test(*sides, rk.Mallows(0.5), 9).statistic, abs=1e-12)


def test_what_is_wrong_with_groups():
    X = rk.datasets.uniform(6, 3, seed=1)
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
    with pytest.raises(ValueError, match="correction='none' is not known"):
        rk.k_sample_test(X, list("aaabbb"), n_permutations=20).pairwise("none")


def test_hostile_names_are_escaped():
    X = rk.datasets.uniform(8, 3, seed=1)
    result = rk.k_sample_test(X, ["<b>"] * 4 + ["x\x1b[31m"] * 4, n_permutations=20)
    assert "<b>" not in result.pairwise()._repr_html_()
    assert "\x1b" not in str(result.pairwise())
    assert "<b>" not in result.differences()._repr_html_()
    assert "<table" in result._repr_html_()

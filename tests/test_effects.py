"""Effects, their intervals, and in what groups differ."""

import itertools
import math

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import any_ranking

import rankernel as rk
from rankernel.data import without_item
from rankernel.tasks.tests._correlations import PairedVoters
from rankernel.tasks.tests._effects import plug_in_effect

NU = 0.3


def effect_by_hand(K, labels):
    """Unbiased: B = sum over g < h of |mu_g - mu_h|^2 / k^2, W the mean of the variances of groups; B / (B + W)."""
    names = sorted(set(labels))
    own = {name: [i for i, label in enumerate(labels) if label == name] for name in names}
    alike = {g: np.mean([K[i][j] for i in own[g] for j in own[g] if i != j]) for g in names}
    spread = [np.mean([K[i][i] for i in own[g]]) - alike[g] for g in names]
    apart = [
        alike[g] + alike[h] - 2 * np.mean([K[i][j] for i in own[g] for j in own[h]])
        for g, h in itertools.combinations(names, 2)
    ]
    between = sum(apart) / len(names) ** 2
    return between / (between + np.mean(spread))


@pytest.mark.parametrize("n_groups", [2, 3, 4])
def test_effect_is_the_share_between_groups(n_groups):
    X = rk.datasets.mallows(24, 4, 0.2, seed=n_groups)
    labels = [f"g{i % n_groups}" for i in range(24)]
    result = rk.k_sample_test(X, labels, rk.Mallows(NU), 10)
    rows = [tuple(row) for row in X.ranks.tolist()]
    expected = effect_by_hand(naive.gram(naive.mallows(NU), rows, rows), labels)
    assert result.effect == pytest.approx(expected, rel=1e-9)


def test_effect_depends_neither_on_scale_nor_on_sizes():
    X, Y = (
        rk.Rankings([[0, 1, 2], [1, 0, 2]], counts=[300, 100]),
        rk.Rankings([[2, 1, 0], [1, 0, 2]], counts=[300, 100]),
    )
    small = rk.Rankings([[2, 1, 0], [1, 0, 2]], counts=[30, 10])
    full, part = rk.mmd_test(X, Y, rk.Mallows(NU), 5), rk.mmd_test(X, small, rk.Mallows(NU), 5)
    assert part.effect == pytest.approx(full.effect, abs=0.01)
    assert rk.mmd_test(X, Y, 7 * rk.Mallows(NU), 5).effect == pytest.approx(full.effect, rel=1e-9)
    one, other = rk.Rankings([[0, 1, 2]], counts=[9]), rk.Rankings([[2, 1, 0]], counts=[9])
    assert rk.mmd_test(one, other, rk.Mallows(NU), 5).effect == pytest.approx(1.0)
    assert rk.mmd_test(one, one, rk.Mallows(NU), 5).effect == 0.0


def test_effects_are_estimated_without_much_bias():
    """B and W have no bias; their ratio has little, far less than the standard deviation of one estimate."""
    runs = [
        rk.mmd_test(
            rk.datasets.mallows(12, 4, 0.0, seed=2 * run),
            rk.datasets.mallows(12, 4, 1.0, seed=2 * run + 1),
            rk.Mallows(NU),
            1,
        ).effect
        for run in range(200)
    ]
    everything = [tuple(p) for p in itertools.permutations(range(4))]
    K = np.array(naive.gram(naive.mallows(NU), everything, everything))
    inversions = [sum(p[i] > p[j] for i in range(4) for j in range(i + 1, 4)) for p in everything]
    peaked = np.exp(-np.array(inversions, dtype=float))
    truth = plug_in_effect(K, np.stack([np.full(24, 1 / 24), peaked / peaked.sum()]))
    assert abs(np.mean(runs) - truth) < 5 * np.std(runs) / math.sqrt(200) + 0.1 * truth


def test_intervals_cover_and_are_kept():
    result = rk.mmd_test(
        rk.datasets.mallows(40, 4, 0.0, seed=1), rk.datasets.mallows(40, 4, 1.5, seed=2), rk.Mallows(NU), 20
    )
    low, high = result.effect_interval
    assert low < result.effect < high
    assert low > 0
    assert result.effect_interval is result.effect_interval


def test_a_single_voter_has_no_effect():
    result = rk.mmd_test([[0, 1, 2]], [[0, 1, 2], [1, 0, 2]], rk.Mallows(NU), 5, biased=True)
    assert math.isnan(result.effect)
    assert all(map(math.isnan, result.effect_interval))


def test_correlation_of_kernels_by_hand():
    rng = np.random.default_rng(0)
    K, L = (np.exp(-np.square(np.subtract.outer(x, x))) for x in rng.normal(size=(2, 9)))

    def hsic(A, B):
        n = len(A)
        A, B = A - np.diag(np.diag(A)), B - np.diag(np.diag(B))
        total = (A * B).sum() + A.sum() * B.sum() / ((n - 1) * (n - 2)) - 2 * (A.sum(0) @ B.sum(0)) / (n - 2)
        return total / (n * (n - 3))

    expected = hsic(K, L) / math.sqrt(hsic(K, K) * hsic(L, L))
    place = np.arange(9)
    assert PairedVoters.of(K, place, L, place).correlation() == pytest.approx(expected, rel=1e-10)
    assert PairedVoters.of(K, place, K, place).correlation() == pytest.approx(1.0)
    low, high = PairedVoters.of(K, place, L, place).interval(0)
    assert low < high


# ---------------------------------------------------------------------- differences


@settings(max_examples=25, deadline=None)
@given(st.lists(any_ranking(4), min_size=4, max_size=8), st.booleans())
@pytest.mark.filterwarnings("ignore::rankernel.errors.NotCharacteristicWarning")
def test_the_kendall_statistic_splits_into_pairs(rows, biased):
    X, Y = rk.Rankings(rows[:2], counts=[2, 1]), rk.Rankings(rows[2:])
    result = rk.mmd_test(X, Y, rk.Kendall(), 5, biased=biased)
    found = result.differences()
    assert found.total == pytest.approx(result.statistic, abs=1e-12)
    assert sum(pair.part for pair in found.pairs) == pytest.approx(result.statistic, abs=1e-12)
    assert sum(item.part for item in found.items) == pytest.approx(result.statistic, abs=1e-12)
    parts = [pair.part for pair in found.pairs]
    assert parts == sorted(parts, reverse=True)
    for pair in found.pairs:
        a, b = int(pair.first), int(pair.second)
        for side, share in zip((X, Y), pair.shares, strict=True):
            assert share == pytest.approx(rk.pairwise_preferences(side)[a, b], abs=1e-12)
        assert pair.shares[0] >= pair.shares[1] - 1e-12
        for share, (low, high) in zip(pair.shares, pair.intervals, strict=True):
            assert low - 1e-9 <= share <= high + 1e-9
        assert pair.turns == (min(pair.shares) < 0.5 < max(pair.shares))


@pytest.mark.filterwarnings("ignore::rankernel.errors.NotCharacteristicWarning")
def test_three_groups_split_too():
    X = rk.datasets.mallows(30, 5, 0.3, seed=1).top(2)
    result = rk.k_sample_test(X, np.arange(30) % 3, rk.Kendall(), 5)
    assert result.differences().total == pytest.approx(result.statistic, abs=1e-12)
    assert len(result.differences().pairs[0].shares) == 3


def test_items_of_other_kernels_are_what_is_lost_without_them():
    X, Y = rk.datasets.mallows(12, 4, 0.2, seed=1).top(2), rk.datasets.mallows(15, 4, 1.0, seed=2)
    result = rk.mmd_test(X, Y, rk.Mallows(NU), 5)
    for each in result.differences().items:
        item = X.items.index(each.item)
        without = rk.mmd_test(without_item(X, item), without_item(Y, item), rk.Mallows(NU), 5)
        assert each.part == pytest.approx(result.statistic - without.statistic, abs=1e-12)
        places = [np.average(expected_places(side)[:, item], weights=side.counts) for side in (X, Y)]
        assert each.places == pytest.approx(places, abs=1e-12)
        assert each.moves == pytest.approx(abs(places[0] - places[1]), abs=1e-12)
    quick = result.differences(by="pairs")
    assert sum(each.part for each in quick.items) == pytest.approx(quick.total, abs=1e-12)
    with pytest.raises(ValueError, match="by='drop' is not known"):
        result.differences(by="drop")


def expected_places(X):
    """The mean place of each item over all completions, from 1."""
    found = []
    for row in X.ranks.tolist():
        orders = naive.completions(row)
        found.append(np.mean([[order[item] + 1 for item in range(len(row))] for order in orders], axis=0))
    return np.array(found)


def test_preferences_and_their_items():
    users = [[("a", "b"), ("c", "d")], [("a", "b"), ("b", "c")], [("d", "a"), ("c", "b")], [("d", "a")]]
    prefs = rk.Preferences.from_pairs(users, items=list("abcd"))
    result = rk.k_sample_test(prefs, ["x", "x", "y", "y"], rk.Mallows(NU), 20)
    found = result.differences()
    assert {each.item for each in found.items} == set("abcd")
    rest = without_item(prefs, 1)
    assert rest.items == ("a", "c", "d")
    assert ("a", "c") in rest.to_pairs()[1]  # a > b > c, without b


def test_intervals_of_shares_cover():
    """Wilson's intervals, half of the voters with ties: they cover at least about as often as they say."""
    rng, covered = np.random.default_rng(0), 0
    for _ in range(300):
        signs = rng.choice([0, 1, 2], p=[0.5, 0.2, 0.3], size=40)
        rows = np.array([[0, 0], [0, 1], [1, 0]])[signs]
        pair = rk.mmd_test(rows, rows, rk.Mallows(NU), 1).differences(by="pairs").pairs[0]
        low, high = pair.intervals[0] if pair.first == "0" else tuple(1 - end for end in reversed(pair.intervals[0]))
        covered += low <= 0.45 <= high
    assert covered / 300 > 0.95 - 4 * math.sqrt(0.05 * 0.95 / 300)


def test_pictures():
    result = rk.mmd_test(
        rk.datasets.mallows(20, 4, 0.0, seed=1), rk.datasets.mallows(20, 4, 1.5, seed=2), rk.Mallows(NU), 50
    )
    ax = result.differences().plot(most=3)
    assert len(ax.get_yticklabels()) == 3
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["X", "Y"]
    assert "found" in result.plot().texts[0].get_text()
    assert "mean place, X" in str(result.differences())


# ---------------------------------------------------------------------- estimated kernel values


def test_the_error_of_estimated_values_is_that_of_other_draws():
    X, Y = (rk.datasets.uniform(25, 6, seed=seed).top(2, unlisted="free") for seed in (1, 2))
    results = [
        rk.mmd_test(X, Y, rk.Mallows(NU), 1, method=rk.MonteCarlo(16, "iid", 0, seed=seed)) for seed in range(40)
    ]
    truth = np.std([result.statistic for result in results], ddof=1)
    claimed = np.median([result.statistic_error for result in results])
    assert truth / 1.3 < claimed < 2.2 * truth
    assert rk.mmd_test(X, Y, rk.Mallows(NU), 1, method="exact").statistic_error == 0.0
    with pytest.warns(rk.SamplingWarning, match="the level holds, but power is lost"):
        rk.mmd_test(X, Y, rk.Mallows(2.0), 50, method=rk.MonteCarlo(2, "iid", 0))

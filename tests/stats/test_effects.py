"""Effects, their intervals, and in what groups differ."""

import itertools
import math
import warnings
from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import any_ranking

import rankernel as rk
from benchmarks import intervals
from rankernel.data import drop_item
from rankernel.stats._correlations import Correlation
from rankernel.stats._effects import dispersions, plug_in_effect, strata_that_count
from rankernel.stats._groups import table_of
from rankernel.stats._moments import Moments
from rankernel.stats._voters import Ballots

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
    X = rk.datasets.mallows(24, 4, 0.2, rng=n_groups)
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
            rk.datasets.mallows(12, 4, 0.0, rng=2 * run),
            rk.datasets.mallows(12, 4, 1.0, rng=2 * run + 1),
            rk.Mallows(NU),
            1,
        ).effect
        for run in range(100)
    ]
    everything = [tuple(p) for p in itertools.permutations(range(4))]
    K = np.array(naive.gram(naive.mallows(NU), everything, everything))
    inversions = [sum(p[i] > p[j] for i in range(4) for j in range(i + 1, 4)) for p in everything]
    peaked = np.exp(-np.array(inversions, dtype=float))
    truth = plug_in_effect(K, np.stack([np.full(24, 1 / 24), peaked / peaked.sum()]))
    assert abs(np.mean(runs) - truth) < 5 * np.std(runs) / math.sqrt(100) + 0.1 * truth


# ---------------------------------------------------------------------- intervals


@pytest.mark.parametrize("sizes", [(15, 15), (6, 30), (12, 12, 12), (5, 15, 40)], ids=str)
def test_an_interval_begins_above_zero_where_the_test_is_sure(sizes):
    """At 0 the law of the estimate is that of all permutations, so that both ask the same."""
    labels = np.repeat(range(len(sizes)), sizes)
    above, sure = [], []
    for run in range(25):
        thetas = (0.0, *([0.6] * (len(sizes) - 1)))
        drawn = [
            rk.datasets.mallows(n, 4, t, rng=9 * run + k) for k, (n, t) in enumerate(zip(sizes, thetas, strict=True))
        ]
        result = rk.k_sample_test(rk.concat(drawn), labels, rk.Mallows(NU), 1, run)
        above.append(result.effect_interval[0] > 0)
        sure.append(result.tail_pvalue < 0.025)
    assert 0 < sum(sure) < 25
    assert np.mean(np.array(above) == np.array(sure)) >= (1.0 if len(set(sizes)) == 1 or len(sizes) == 2 else 0.9)


def test_intervals_are_of_possible_effects_and_kept():
    result = rk.mmd_test(
        rk.datasets.mallows(40, 4, 0.0, rng=1), rk.datasets.mallows(40, 4, 1.5, rng=2), rk.Mallows(NU), 20
    )
    low, high = result.effect_interval
    assert 0 < low < result.effect < high < 1
    assert result.effect_interval is result.effect_interval
    one, other = rk.Rankings([[0, 1, 2]], counts=[9]), rk.Rankings([[2, 1, 0]], counts=[9])
    low, high = rk.mmd_test(one, other, rk.Mallows(NU), 5).effect_interval
    assert 0.3 < low < 0.95  # nine voters who agree do not say that all do
    assert high == 1.0
    assert rk.mmd_test(one, one, rk.Mallows(NU), 5).effect_interval == (0.0, 1.0)  # of nothing, any share
    negative = rk.mmd_test(rk.datasets.uniform(9, 3, rng=1), rk.datasets.uniform(9, 3, rng=5), rk.Mallows(NU), 5)
    assert negative.effect < 0
    assert negative.effect_interval[0] == 0.0


def test_intervals_cover_in_a_few_runs():
    some = ["groups: near, sharp, 8 and 8", "groups: opposite, sharp, 10 and 10", "paired: 30 judges, no change"]
    for row in intervals.coverage(40, some):
        assert row["covered"] > 0.95 - 4 * math.sqrt(0.05 * 0.95 / 40), row["effect of"]


def test_more_voters_make_shorter_intervals():
    lengths = []
    for times in (1, 4, 16):
        X, Y = (
            rk.Rankings([[0, 1, 2], [1, 0, 2], [2, 1, 0]], counts=[times * c for c in own])
            for own in ((9, 5, 2), (5, 6, 5))
        )
        lengths.append(np.ptp(rk.mmd_test(X, Y, rk.Mallows(NU), 1).effect_interval))
    assert 1.6 < lengths[0] / lengths[1] < 2.5
    assert 1.6 < lengths[1] / lengths[2] < 2.5


def test_a_single_voter_has_no_effect():
    result = rk.mmd_test([[0, 1, 2]], [[0, 1, 2], [1, 0, 2]], rk.Mallows(NU), 5, biased=True)
    assert math.isnan(result.effect)
    assert all(map(math.isnan, result.effect_interval))


def test_correlation_of_kernels_by_hand():
    rng = np.random.default_rng(0)
    K, L = (np.exp(-np.square(np.subtract.outer(x, x))) for x in rng.normal(size=(2, 18)))

    def hsic(A, B):
        n = len(A)
        A, B = A - np.diag(np.diag(A)), B - np.diag(np.diag(B))
        total = (A * B).sum() + A.sum() * B.sum() / ((n - 1) * (n - 2)) - 2 * (A.sum(0) @ B.sum(0)) / (n - 2)
        return total / (n * (n - 3))

    place = np.arange(18)
    whole = Correlation.within(K, place, L, place, 0 * place)
    assert whole.value() == pytest.approx(hsic(K, L) / math.sqrt(hsic(K, K) * hsic(L, L)), rel=1e-10)
    assert Correlation.within(K, place, K, place, 0 * place).value() == pytest.approx(1.0)
    low, high = whole.interval(0.0, 0.0)
    assert 0 <= low < high <= 1
    strata = np.repeat([0, 1], [11, 7])  # sums over strata, each weighed by its voters
    sums = [
        sum(n * hsic(A[own, own], B[own, own]) for n, own in ((11, slice(11)), (7, slice(11, 18))))
        for A, B in ((K, L), (K, K), (L, L))
    ]
    within = Correlation.within(K, place, L, place, strata)
    assert within.value() == pytest.approx(sums[0] / math.sqrt(sums[1] * sums[2]), rel=1e-10)


# ---------------------------------------------------------------------- strata


def confounded():
    """Two samples that differ only in how many voters of either stratum they have."""
    sides, labels = [], []
    for seed, (n, m) in enumerate(((60, 20), (20, 60))):
        parts = [
            rk.datasets.mallows(n, [0, 1, 2, 3], 1.5, rng=seed),
            rk.datasets.mallows(m, [3, 2, 1, 0], 1.5, rng=seed + 9),
        ]
        sides.append(rk.concat(parts))
        labels.append(np.repeat(["a", "b"], [n, m]))
    return sides, labels


def test_within_strata_the_effect_is_that_of_the_strata():
    (X, Y), (x, y) = confounded()
    result = rk.mmd_test(X, Y, rk.Mallows(NU), 99, strata=(x, y))
    between, whole = 0.0, 0.0
    for stratum, weight in (("a", 80), ("b", 80)):
        first, second = X[x == stratum], Y[y == stratum]
        rows = [tuple(row) for row in np.concatenate([first.ranks, second.ranks]).tolist()]
        K = naive.gram(naive.mallows(NU), rows, rows)
        share = effect_by_hand(K, ["X"] * len(first) + ["Y"] * len(second))
        apart = rk.mmd_test(first, second, rk.Mallows(NU), 1).statistic / 4
        between, whole = between + weight * apart, whole + weight * apart / share
    assert result.effect == pytest.approx(between / whole, rel=1e-9)
    free = rk.mmd_test(X, Y, rk.Mallows(NU), 99)
    assert result.pvalue > 0.05
    assert free.effect > 0.05 > abs(result.effect)
    assert result.effect_interval[0] == 0.0
    assert result.effect_interval[1] < free.effect_interval[0]


def test_within_strata_the_law_at_zero_is_that_of_permutations():
    """The moments behind an interval are exact: strata are permuted independently, and their cumulants add up."""
    X = rk.datasets.mallows(30, 4, 0.3, rng=4)
    groups, strata = np.arange(30) % 3, np.repeat([0, 1], [18, 12])
    voters = rk.k_sample_test(X, groups, rk.Mallows(NU), 1, strata=strata)._voters
    exact = sum((each.null(0.0) for each in strata_that_count(voters).values()), Moments(0.0, 0.0, 0.0))
    rng, drawn = np.random.default_rng(1), []
    for _ in range(800):
        labels = groups.copy()
        for own in (slice(18), slice(18, 30)):
            labels[own] = rng.permutation(labels[own])
        other = replace(voters, table=table_of(Ballots.of(X, voters.plan), labels, strata, 3))
        drawn.append(dispersions(strata_that_count(other).values())[0])
    spread = np.array(drawn) - np.mean(drawn)
    assert abs(np.mean(drawn)) < 5 * np.std(drawn) / math.sqrt(800)
    assert exact.variance == pytest.approx((spread**2).mean(), rel=0.2)
    assert exact.skewness == pytest.approx((spread**3).mean() / (spread**2).mean() ** 1.5, abs=0.35)


def test_strata_of_single_voters_say_nothing():
    X = rk.datasets.uniform(4, 3, rng=1)
    result = rk.mmd_test(X[:2], X[2:], rk.Mallows(NU), 5, strata=([0, 1], [0, 1]))
    assert math.isnan(result.effect)
    assert all(map(math.isnan, result.effect_interval))


@pytest.mark.filterwarnings("ignore::rankernel.errors.NotCharacteristicWarning")
def test_differences_within_strata_are_those_of_equal_strata():
    (X, Y), (x, y) = confounded()
    found = rk.mmd_test(X, Y, rk.Kendall(), 5, strata=(x, y)).differences()
    within = [rk.mmd_test(X[x == s], Y[y == s], rk.Kendall(), 5).statistic for s in "ab"]
    assert found.total == pytest.approx(np.mean(within), abs=1e-12)  # both strata have 80 voters
    assert sum(pair.part for pair in found.pairs) == pytest.approx(found.total, abs=1e-12)
    for pair in found.pairs:
        a, b = int(pair.first), int(pair.second)
        for sample, labels, share, (low, high) in zip((X, Y), (x, y), pair.shares, pair.intervals, strict=True):
            expected = np.mean([rk.pairwise_preferences(sample[labels == s])[a, b] for s in "ab"])
            assert share == pytest.approx(expected, abs=1e-12)
            assert low < share < high
    free = rk.mmd_test(X, Y, rk.Kendall(), 5).differences()
    assert free.pairs[0].turns_surely
    assert not any(pair.turns_surely for pair in found.pairs)
    places = rk.mmd_test(X, Y, rk.Mallows(NU), 5, strata=(x, y)).differences()
    assert places.items_by == "what the statistic loses without it"
    with pytest.raises(rk.RankingError, match="no stratum has voters of all groups"):
        rk.k_sample_test(
            X, ["p"] * 40 + ["q"] * 20 + ["r"] * 20, rk.Kendall(), 5, strata=[0] * 20 + [1] * 20 + [0] * 20 + [1] * 20
        ).differences()


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
    X = rk.datasets.mallows(30, 5, 0.3, rng=1).top(2)
    result = rk.k_sample_test(X, np.arange(30) % 3, rk.Kendall(), 5)
    assert result.differences().total == pytest.approx(result.statistic, abs=1e-12)
    found = result.differences().pairs[0]
    assert len(found.shares) == 3
    assert found.change is None
    assert found.change_interval is None


def test_items_of_other_kernels_are_what_is_lost_without_them():
    X, Y = rk.datasets.mallows(12, 4, 0.2, rng=1).top(2), rk.datasets.mallows(15, 4, 1.0, rng=2)
    result = rk.mmd_test(X, Y, rk.Mallows(NU), 5)
    for each in result.differences().items:
        item = X.items.index(each.item)
        without = rk.mmd_test(drop_item(X, item), drop_item(Y, item), rk.Mallows(NU), 5)
        assert each.part == pytest.approx(result.statistic - without.statistic, abs=1e-12)
        places = [np.average(expected_places(side)[:, item], weights=side.counts) for side in (X, Y)]
        assert each.places == pytest.approx(places, abs=1e-12)
        assert each.moves == pytest.approx(abs(places[0] - places[1]), abs=1e-12)
    quick = result.differences(by="pairs")
    assert sum(each.part for each in quick.items) == pytest.approx(quick.total, abs=1e-12)
    with pytest.raises(ValueError, match="by='drop'"):
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
    rest = drop_item(prefs, 1)
    assert rest.items == ("a", "c", "d")
    assert ("a", "c") in rest.to_pairs()[1]  # a > b > c, without b


def test_intervals_of_shares_cover():
    """Wilson's intervals, half of the voters with ties: they cover at least about as often as they say."""
    rng, covered = np.random.default_rng(0), 0
    for _ in range(150):
        signs = rng.choice([0, 1, 2], p=[0.5, 0.2, 0.3], size=40)
        rows = np.array([[0, 0], [0, 1], [1, 0]])[signs]
        pair = rk.mmd_test(rows, rows, rk.Mallows(NU), 1).differences(by="pairs").pairs[0]
        low, high = pair.intervals[0] if pair.first == "0" else tuple(1 - end for end in reversed(pair.intervals[0]))
        covered += low <= 0.45 <= high
    assert covered / 150 > 0.95 - 4 * math.sqrt(0.05 * 0.95 / 150)


def test_pictures():
    result = rk.mmd_test(
        rk.datasets.mallows(20, 4, 0.0, rng=1), rk.datasets.mallows(20, 4, 1.5, rng=2), rk.Mallows(NU), 50
    )
    ax = result.differences().plot(most=3)
    assert len(ax.get_yticklabels()) == 3
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["X", "Y"]
    assert "observed" in result.plot().texts[0].get_text()
    assert "mean place, X" in str(result.differences())


def test_changes_of_shares_have_intervals():
    """Newcombe's interval of a difference of shares, by his own example: 56 of 70 less 48 of 80."""
    X, Y = (rk.Rankings([[0, 1], [1, 0]], counts=[yes, n - yes]) for yes, n in ((48, 80), (56, 70)))
    pair = rk.mmd_test(X, Y, rk.Mallows(NU), 5).differences(by="pairs").pairs[0]
    low, high = pair.change_interval if pair.first == "0" else tuple(-end for end in reversed(pair.change_interval))
    assert (round(low, 4), round(high, 4)) == (0.0524, 0.3339)


def test_parts_are_told_in_percent_and_many_groups_by_their_ends():
    X, Y = rk.datasets.mallows(40, 4, 0.0, rng=1), rk.datasets.mallows(40, 4, 1.5, rng=2)
    found = rk.mmd_test(X, Y, rk.Mallows(NU), 5).differences(by="pairs")
    items, pairs = found.tables()
    assert "part of the Kendall statistic" in pairs[0][-1]
    assert pairs[1][-1].startswith(f"{found.pairs[0].part / found.total:.0%}")
    assert items[0][-1] == "half of the parts of its pairs"
    unsure = [row for row, pair in zip(pairs[1:], found.pairs, strict=True) if pair.turns and not pair.turns_surely]
    assert not any("turns" in row[-1] for row in unsure)
    many = rk.k_sample_test(rk.concat([X, Y]), np.arange(80) % 20, rk.Mallows(NU), 5).differences(by="pairs")
    assert max(map(len, str(many).splitlines())) < 120
    first = many.items[0]
    assert f"{many.groups[int(np.argmin(first.places))]}: {min(first.places):.2f}" in str(many)


# ---------------------------------------------------------------------- estimated kernel values


def test_the_error_of_estimated_values_is_that_of_other_draws():
    X, Y = (rk.datasets.uniform(25, 6, rng=seed).top(2, unlisted="free") for seed in (1, 2))
    results = [rk.mmd_test(X, Y, rk.Mallows(NU), 1, method=rk.MonteCarlo(16, "iid", 0, rng=seed)) for seed in range(40)]
    truth = np.std([result.statistic for result in results], ddof=1)
    claimed = np.median([result.statistic_error for result in results])
    assert truth / 1.3 < claimed < 2.2 * truth
    assert rk.mmd_test(X, Y, rk.Mallows(NU), 1, method="exact").statistic_error == 0.0
    with pytest.warns(rk.SamplingWarning, match="the level holds, but power is lost"):
        rk.mmd_test(X, Y, rk.Mallows(2.0), 50, method=rk.MonteCarlo(2, "iid", 0))


FREE = [rk.datasets.uniform(25, 6, rng=seed).top(2, unlisted="free") for seed in (1, 2)]
GROUPS = np.repeat([0, 1, 2], [17, 17, 16])
WAYS = {
    "mmd_test": lambda m: rk.mmd_test(*FREE, rk.Mallows(NU), 1, method=m),
    "k_sample_test": lambda m: rk.k_sample_test(rk.concat(FREE), GROUPS, rk.Mallows(NU), 1, method=m),
    "paired_test": lambda m: rk.paired_test(*FREE, rk.Mallows(NU), 1, method=m),
    "hsic_test": lambda m: rk.hsic_test(rk.concat(FREE), GROUPS, rk.Mallows(NU), 1, method=m),
}


@pytest.mark.filterwarnings("ignore:kernel values are estimated")
@pytest.mark.parametrize("way", WAYS)
def test_the_error_of_an_effect_is_that_of_other_draws(way):
    results = [WAYS[way](rk.MonteCarlo(16, "iid", 0, rng=seed)) for seed in range(16)]
    truth = np.std([result.effect for result in results], ddof=1)
    claimed = np.median([result.effect_error for result in results])
    assert truth / 1.8 < claimed < 2.8 * truth
    exact = WAYS[way]("exact")
    assert exact.effect_error == 0.0
    widths = [np.ptp(result.effect_interval) for result in results]
    assert np.mean(widths) > np.ptp(exact.effect_interval)
    assert "(estimated kernel values)" in str(results[0])


@pytest.mark.filterwarnings("ignore:kernel values are estimated")
def test_noise_is_not_told_as_certainty():
    """With two draws of a narrow kernel nothing can be said of the effect, and nothing is."""
    results = [rk.mmd_test(*FREE, rk.Mallows(2.0), 1, method=rk.MonteCarlo(2, "iid", 0, rng=seed)) for seed in range(8)]
    exact = rk.mmd_test(*FREE, rk.Mallows(2.0), 1, method="exact").effect_interval
    assert 2 < sum(math.isnan(result.effect) for result in results) < len(results)
    for result in results:
        low, high = result.effect_interval
        assert math.isnan(result.effect) == math.isnan(low)
        assert math.isnan(low) or low <= exact[0] < exact[1] < high


def test_every_test_warns_of_noisy_values():
    noisy, kernel, both = rk.MonteCarlo(2, "iid", 0), rk.Mallows(2.0), rk.concat(FREE)
    with pytest.warns(rk.SamplingWarning, match="power is lost"):
        found = rk.mmd_aggregated_test(*FREE, [kernel, rk.Mallows(1.0)], 50, method=noisy)
    assert found.statistic_error > 0
    with pytest.warns(rk.SamplingWarning, match="power is lost"):
        rk.change_point_test(both, kernel, n_permutations=50, method=noisy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        groups = rk.k_sample_test(both, GROUPS, kernel, 50, method=noisy)
    with pytest.warns(rk.SamplingWarning, match="power is lost"):
        pairs = groups.pairwise()
    assert (pairs.statistic_errors > 0).all()
    assert "estimated kernel values" in str(pairs) or np.isnan(pairs.effects).all()

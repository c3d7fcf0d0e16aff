"""Effects, their intervals, and in what groups differ."""

import itertools
import math
import warnings

import naive
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import any_ranking

import rankernel as rk
from benchmarks import intervals
from rankernel.stats.groups import GroupEffect

NU = 0.3


def effect_by_hand(K, labels):
    """Unbiased: B = sum over g < h of |mu_g - mu_h|^2 / k^2, W the mean of the variances of groups; B / (B + W)."""
    names = sorted(set(labels))
    members = {name: [i for i, label in enumerate(labels) if label == name] for name in names}
    similarity = {g: np.mean([K[i][j] for i in members[g] for j in members[g] if i != j]) for g in names}
    dispersion = [np.mean([K[i][i] for i in members[g]]) - similarity[g] for g in names]
    between_pairs = [
        similarity[g] + similarity[h] - 2 * np.mean([K[i][j] for i in members[g] for j in members[h]])
        for g, h in itertools.combinations(names, 2)
    ]
    between = sum(between_pairs) / len(names) ** 2
    return between / (between + np.mean(dispersion))


@pytest.mark.parametrize("n_groups", [2, 3, 4])
def test_effect_matches_brute_force(n_groups):
    X = rk.datasets.mallows(24, 4, 0.2, rng=n_groups)
    labels = [f"g{i % n_groups}" for i in range(24)]
    result = rk.k_sample_test(X, labels, rk.Mallows(NU), n_permutations=10)
    rows = [tuple(row) for row in X.ranks.tolist()]
    expected = effect_by_hand(naive.gram(naive.mallows(NU), rows, rows), labels)
    assert result.effect == pytest.approx(expected, rel=1e-9)


def test_effect_weighted_by_size_matches_brute_force():
    """B is the sum of n_g |mu_g - mu|^2, as in the test statistic, with the same weight in all as for equal groups."""
    X, labels = rk.datasets.mallows(24, 4, 0.2, rng=5), ["a"] * 12 + ["b"] * 8 + ["c"] * 4
    K, sizes = rk.Mallows(NU).gram(X), {"a": 12, "b": 8, "c": 4}
    members = {name: [i for i, label in enumerate(labels) if label == name] for name in sizes}
    products = {
        (g, h): np.mean([K[i, j] for i in members[g] for j in members[h] if i != j]) for g in sizes for h in sizes
    }
    between = sum(n * products[g, g] for g, n in sizes.items())
    between -= sum(sizes[g] * sizes[h] * products[g, h] for g, h in products) / 24
    weight = sum(n - n**2 / 24 for n in sizes.values())
    within = np.mean([np.mean([K[i, i] for i in members[g]]) - products[g, g] for g in sizes])
    voters = rk.k_sample_test(X, labels, rk.Mallows(NU), n_permutations=9)._voters
    expected = between / weight * (1 - 1 / 3), within
    assert GroupEffect(voters, by_size=True).parts() == pytest.approx(expected, rel=1e-11)


def test_effect_of_groups_of_two():
    X = rk.datasets.mallows(4, 5, 0.2, rng=3)
    rows = [tuple(row) for row in X.ranks.tolist()]
    expected = effect_by_hand(naive.gram(naive.mallows(NU), rows, rows), list("aabb"))
    for strata in (None, [0] * 4):
        result = rk.k_sample_test(X, list("aabb"), rk.Mallows(NU), n_permutations=9, strata=strata)
        assert result.effect == pytest.approx(expected, rel=1e-9)


def test_effect_is_independent_of_scale_and_sizes():
    X, Y = (
        rk.Rankings([[0, 1, 2], [1, 0, 2]], counts=[300, 100]),
        rk.Rankings([[2, 1, 0], [1, 0, 2]], counts=[300, 100]),
    )
    small = rk.Rankings([[2, 1, 0], [1, 0, 2]], counts=[30, 10])
    full, part = (
        rk.mmd_test(X, Y, rk.Mallows(NU), n_permutations=5),
        rk.mmd_test(X, small, rk.Mallows(NU), n_permutations=5),
    )
    assert part.effect == pytest.approx(full.effect, abs=0.01)
    assert rk.mmd_test(X, Y, 7 * rk.Mallows(NU), n_permutations=5).effect == pytest.approx(full.effect, rel=1e-9)
    one, other = rk.Rankings([[0, 1, 2]], counts=[9]), rk.Rankings([[2, 1, 0]], counts=[9])
    assert rk.mmd_test(one, other, rk.Mallows(NU), n_permutations=5).effect == pytest.approx(1.0)
    assert rk.mmd_test(one, one, rk.Mallows(NU), n_permutations=5).effect == 0.0


def test_effect_has_little_bias():
    """B and W have no bias; their ratio has little, far less than the standard deviation of one estimate."""
    runs = [
        rk.mmd_test(
            rk.datasets.mallows(12, 4, 0.0, rng=2 * run),
            rk.datasets.mallows(12, 4, 1.0, rng=2 * run + 1),
            rk.Mallows(NU),
            n_permutations=1,
        ).effect
        for run in range(100)
    ]
    all_rankings = [tuple(p) for p in itertools.permutations(range(4))]
    K = np.array(naive.gram(naive.mallows(NU), all_rankings, all_rankings))
    inversions = [sum(p[i] > p[j] for i in range(4) for j in range(i + 1, 4)) for p in all_rankings]
    peaked = np.exp(-np.array(inversions, dtype=float))
    shares = np.stack([np.full(24, 1 / 24), peaked / peaked.sum()])
    squared_mmd = np.array([1, -1]) @ shares @ K @ shares.T @ np.array([1, -1])
    within = np.mean([1 - p @ K @ p for p in shares])
    expected = squared_mmd / 4 / (squared_mmd / 4 + within)
    assert abs(np.mean(runs) - expected) < 5 * np.std(runs) / math.sqrt(100) + 0.1 * expected


# ---------------------------------------------------------------------- intervals


@pytest.mark.parametrize("sizes", [(15, 15), (6, 30), (12, 12, 12), (5, 15, 40)], ids=str)
def test_interval_excludes_zero_if_the_test_rejects(sizes):
    """At 0 the distribution of the estimate is the null distribution of the test."""
    labels = np.repeat(range(len(sizes)), sizes)
    above, rejected = [], []
    for run in range(25):
        thetas = (0.0, *([0.6] * (len(sizes) - 1)))
        drawn = [
            rk.datasets.mallows(n, 4, t, rng=9 * run + k) for k, (n, t) in enumerate(zip(sizes, thetas, strict=True))
        ]
        result = rk.k_sample_test(rk.concat(drawn), labels, rk.Mallows(NU), n_permutations=1, rng=run)
        above.append(result.effect_interval[0] > 0)
        rejected.append(result.moment_pvalue < 0.025)
    assert 0 < sum(rejected) < 25
    assert np.mean(np.array(above) == np.array(rejected)) >= (1.0 if len(set(sizes)) == 1 or len(sizes) == 2 else 0.9)


def test_interval_agrees_with_the_test_of_tiny_samples():
    """Three voters against three have no p-value below 0.1."""
    X, Y = rk.datasets.mallows(3, 5, 3.0, rng=1), rk.datasets.mallows(3, [4, 3, 2, 1, 0], 3.0, rng=2)
    result = rk.mmd_test(X, Y, rk.Mallows(NU), n_permutations=99)
    assert result.effect > 0.5
    assert result.moment_pvalue >= 0.1 - 1e-12
    assert result.effect_interval[0] == 0.0


def test_interval_limits():
    result = rk.mmd_test(
        rk.datasets.mallows(40, 4, 0.0, rng=1),
        rk.datasets.mallows(40, 4, 1.5, rng=2),
        rk.Mallows(NU),
        n_permutations=20,
    )
    low, high = result.effect_interval
    assert 0 < low < result.effect < high < 1
    assert result.effect_interval is result.effect_interval
    one, other = rk.Rankings([[0, 1, 2]], counts=[9]), rk.Rankings([[2, 1, 0]], counts=[9])
    low, high = rk.mmd_test(one, other, rk.Mallows(NU), n_permutations=5).effect_interval
    assert 0.3 < low < 0.95  # nine voters who agree are no proof that all do
    assert high == 1.0
    assert rk.mmd_test(one, one, rk.Mallows(NU), n_permutations=5).effect_interval == (
        0.0,
        1.0,
    )  # no dispersion: any share
    negative = rk.mmd_test(
        rk.datasets.uniform(9, 3, rng=1), rk.datasets.uniform(9, 3, rng=5), rk.Mallows(NU), n_permutations=5
    )
    assert negative.effect < 0
    assert negative.effect_interval[0] == 0.0


def test_interval_coverage_in_a_few_runs():
    cases = ["groups: near, sharp, 8 and 8", "groups: opposite, sharp, 10 and 10", "paired: 30 judges, no change"]
    for row in intervals.coverage(40, cases):
        assert row["covered"] > 0.95 - 4 * math.sqrt(0.05 * 0.95 / 40), row["effect of"]


def test_more_voters_give_shorter_intervals():
    lengths = []
    for times in (1, 4, 16):
        X, Y = (
            rk.Rankings([[0, 1, 2], [1, 0, 2], [2, 1, 0]], counts=[times * c for c in shares])
            for shares in ((9, 5, 2), (5, 6, 5))
        )
        lengths.append(np.ptp(rk.mmd_test(X, Y, rk.Mallows(NU), n_permutations=1).effect_interval))
    assert 1.6 < lengths[0] / lengths[1] < 2.5
    assert 1.6 < lengths[1] / lengths[2] < 2.5


def test_effect_of_a_single_voter_is_undefined():
    result = rk.mmd_test([[0, 1, 2]], [[0, 1, 2], [1, 0, 2]], rk.Mallows(NU), n_permutations=5, biased=True)
    assert math.isnan(result.effect)
    assert all(map(math.isnan, result.effect_interval))


def test_kernel_correlation_matches_brute_force():
    X, numbers = rk.datasets.uniform(18, 5, rng=0), np.random.default_rng(0).normal(size=18)
    distances = np.abs(np.subtract.outer(numbers, numbers))
    bandwidth = np.median(distances[~np.eye(18, dtype=bool)])
    K, L = rk.Mallows(NU).gram(X), np.exp(-(distances**2) / (2 * bandwidth**2))

    def hsic(A, B):
        n = len(A)
        A, B = A - np.diag(np.diag(A)), B - np.diag(np.diag(B))
        total = (A * B).sum() + A.sum() * B.sum() / ((n - 1) * (n - 2)) - 2 * (A.sum(0) @ B.sum(0)) / (n - 2)
        return total / (n * (n - 3))

    result = rk.hsic_test(X, numbers, rk.Mallows(NU), n_permutations=1)
    assert result.effect == pytest.approx(hsic(K, L) / math.sqrt(hsic(K, K) * hsic(L, L)), rel=1e-10)
    low, high = result.effect_interval
    assert 0 <= low < high <= 1
    same = rk.hsic_test(X, X, rk.Mallows(NU), covariate_kernel=rk.Mallows(NU), n_permutations=1)
    assert same.effect == pytest.approx(1.0)
    strata = np.repeat([0, 1], [11, 7])  # sums over strata, weighted by their voters
    sums = [
        sum(n * hsic(A[rows, rows], B[rows, rows]) for n, rows in ((11, slice(11)), (7, slice(11, 18))))
        for A, B in ((K, L), (K, K), (L, L))
    ]
    within = rk.hsic_test(X, numbers, rk.Mallows(NU), n_permutations=1, strata=strata)
    assert within.effect == pytest.approx(sums[0] / math.sqrt(sums[1] * sums[2]), rel=1e-10)


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


def test_effect_within_strata():
    (X, Y), (x, y) = confounded()
    result = rk.mmd_test(X, Y, rk.Mallows(NU), n_permutations=99, strata=(x, y))
    between, total = 0.0, 0.0
    for stratum, weight in (("a", 80), ("b", 80)):
        first, second = X[x == stratum], Y[y == stratum]
        rows = [tuple(row) for row in np.concatenate([first.ranks, second.ranks]).tolist()]
        K = naive.gram(naive.mallows(NU), rows, rows)
        share = effect_by_hand(K, ["X"] * len(first) + ["Y"] * len(second))
        part = rk.mmd_test(first, second, rk.Mallows(NU), n_permutations=1).statistic / 4
        between, total = between + weight * part, total + weight * part / share
    assert result.effect == pytest.approx(between / total, rel=1e-9)
    free = rk.mmd_test(X, Y, rk.Mallows(NU), n_permutations=99)
    assert result.pvalue > 0.05
    assert free.effect > 0.05 > abs(result.effect)
    assert result.effect_interval[0] == 0.0
    assert result.effect_interval[1] < free.effect_interval[0]


def test_interval_within_strata_contains_no_effect():
    """Strata are permuted independently, so the cumulants behind an interval add."""
    groups, strata = np.arange(40) % 2, np.repeat([0, 1], [24, 16])
    above = 0
    for run in range(80):
        X = rk.concat([rk.datasets.mallows(n, 4, theta, rng=2 * run + n) for n, theta in ((24, 0.0), (16, 0.7))])
        result = rk.k_sample_test(X, groups, rk.Mallows(NU), n_permutations=1, strata=strata, rng=run)
        above += result.effect_interval[0] > 0
    assert above <= 80 * 0.025 + 4 * math.sqrt(80 * 0.025 * 0.975)


def test_strata_of_single_voters():
    X = rk.datasets.uniform(4, 3, rng=1)
    result = rk.mmd_test(X[:2], X[2:], rk.Mallows(NU), n_permutations=5, strata=([0, 1], [0, 1]))
    assert math.isnan(result.effect)
    assert all(map(math.isnan, result.effect_interval))


@pytest.mark.filterwarnings("ignore::rankernel.errors.NotCharacteristicWarning")
def test_differences_within_strata():
    (X, Y), (x, y) = confounded()
    result = rk.mmd_test(X, Y, rk.Kendall(), n_permutations=5, strata=(x, y)).differences()
    within = [rk.mmd_test(X[x == s], Y[y == s], rk.Kendall(), n_permutations=5).statistic for s in "ab"]
    assert result.total == pytest.approx(np.mean(within), abs=1e-12)  # both strata have 80 voters
    assert sum(pair.contribution for pair in result.pairs) == pytest.approx(result.total, abs=1e-12)
    for pair in result.pairs:
        a, b = int(pair.first), int(pair.second)
        for sample, labels, share, (low, high) in zip((X, Y), (x, y), pair.shares, pair.intervals, strict=True):
            expected = np.mean([rk.pairwise_preferences(sample[labels == s])[a, b] for s in "ab"])
            assert share == pytest.approx(expected, abs=1e-12)
            assert low < share < high
    free = rk.mmd_test(X, Y, rk.Kendall(), n_permutations=5).differences()
    assert free.pairs[0].reverses
    assert not any(pair.reverses for pair in result.pairs)
    with pytest.raises(rk.RankingError, match="stratum"):
        rk.k_sample_test(
            X,
            ["p"] * 40 + ["q"] * 20 + ["r"] * 20,
            rk.Kendall(),
            n_permutations=5,
            strata=[0] * 20 + [1] * 20 + [0] * 20 + [1] * 20,
        ).differences()


# ---------------------------------------------------------------------- differences


@settings(max_examples=25, deadline=None)
@given(st.lists(any_ranking(4), min_size=4, max_size=8), st.booleans())
@pytest.mark.filterwarnings("ignore::rankernel.errors.NotCharacteristicWarning")
def test_kendall_statistic_is_the_sum_of_contributions(rows, biased):
    X, Y = rk.Rankings(rows[:2], counts=[2, 1]), rk.Rankings(rows[2:])
    result = rk.mmd_test(X, Y, rk.Kendall(), n_permutations=5, biased=biased)
    actual = result.differences()
    assert actual.total == pytest.approx(result.statistic, abs=1e-12)
    assert sum(pair.contribution for pair in actual.pairs) == pytest.approx(result.statistic, abs=1e-12)
    assert sum(item.contribution for item in actual.items) == pytest.approx(result.statistic, abs=1e-12)
    parts = [pair.contribution for pair in actual.pairs]
    assert parts == sorted(parts, reverse=True)
    for pair in actual.pairs:
        a, b = int(pair.first), int(pair.second)
        for number, side in enumerate((X, Y)):
            expected = [strict_share(side, *each) for each in ((a, b), (b, a))]
            assert (pair.shares[number], pair.against[number]) == pytest.approx(expected, abs=1e-12)
            assert pair.undecided[number] == pytest.approx(1 - sum(expected), abs=1e-12)
            for share, (low, high) in zip(
                expected, (pair.intervals[number], pair.against_intervals[number]), strict=True
            ):
                assert low - 1e-9 <= share <= high + 1e-9
        margins = [strict_share(side, a, b) - strict_share(side, b, a) for side in (X, Y)]
        assert margins[0] >= margins[1] - 1e-12
        assert pair.majorities_differ == (min(margins) < 0 < max(margins))


def strict_share(X, a, b):
    """The share of voters who rank a above b; free items (rank -1) are not related to any other."""
    ranks, counts = X.ranks.tolist(), X.counts.tolist()
    above = [n for row, n in zip(ranks, counts, strict=True) if 0 <= row[a] < row[b]]
    return sum(above) / sum(counts)


def test_ties_are_undecided():
    """Half-counted ties would give 65% and 40%; the intervals are those of binomial shares."""
    orders = [["a"], ["b"], ["c"]]  # the third says nothing about a and b
    X, Y = (rk.Rankings.from_orders(orders, items=list("abc"), counts=n) for n in ([50, 20, 30], [28, 48, 24]))
    found = rk.mmd_test(X, Y, rk.Mallows(NU), n_permutations=5).differences()
    pair = next(each for each in found.pairs if (each.first, each.second) == ("a", "b"))
    assert (pair.shares, pair.against, pair.undecided) == ((0.5, 0.28), (0.2, 0.48), pytest.approx((0.3, 0.24)))
    assert pair.majorities_differ
    assert not pair.reverses
    row = next(row for row in found.tables()[1] if row[0] == "a to b")
    assert row[1].startswith("50% (")
    assert row[1].endswith(", 30% neither")
    low, high = pair.intervals[1]
    ratios = [abs(end - 0.28) / math.sqrt(end * (1 - end) / 100) for end in (low, high)]
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-9)
    assert scipy.stats.norm.ppf(0.975) < ratios[0] < scipy.stats.norm.ppf(1 - 0.025 / 12)  # 2 groups, 6 directions
    ax = found.plot(limit=2)
    assert "undecided" in ax.get_xlabel()


def test_reversed_pairs_with_ties():
    X, Y = (rk.Rankings([[0, 1], [1, 0], [0, 0]], counts=n) for n in ([500, 200, 300], [200, 500, 300]))
    assert rk.mmd_test(X, Y, rk.Mallows(NU), n_permutations=5).differences().pairs[0].reverses


@pytest.mark.filterwarnings("ignore::rankernel.errors.NotCharacteristicWarning")
def test_contributions_of_three_groups():
    X = rk.datasets.mallows(30, 5, 0.3, rng=1).top(2)
    result = rk.k_sample_test(X, np.arange(30) % 3, rk.Kendall(), n_permutations=5)
    assert result.differences().total == pytest.approx(result.statistic, abs=1e-12)
    actual = result.differences().pairs[0]
    assert len(actual.shares) == 3
    assert actual.change is None
    assert actual.change_interval is None


@pytest.mark.filterwarnings("ignore::rankernel.errors.NotCharacteristicWarning")
def test_mean_ranks_and_contributions_of_items():
    X, Y = rk.datasets.mallows(12, 4, 0.2, rng=1).top(2), rk.datasets.mallows(15, 4, 1.0, rng=2)
    result = rk.mmd_test(X, Y, rk.Mallows(NU), n_permutations=5).differences()
    kendall = rk.mmd_test(X, Y, rk.Kendall(), n_permutations=5)
    assert result.total == pytest.approx(kendall.statistic, abs=1e-12)
    for each in result.items:
        item = X.items.index(each.item)
        ranks = [np.average(expected_ranks(side)[:, item], weights=side.counts) for side in (X, Y)]
        assert each.mean_ranks == pytest.approx(ranks, abs=1e-12)
        assert each.rank_range == pytest.approx(abs(ranks[0] - ranks[1]), abs=1e-12)
        of_pairs = sum(pair.contribution for pair in result.pairs if each.item in (pair.first, pair.second))
        assert each.contribution == pytest.approx(of_pairs / 2, abs=1e-12)


def expected_ranks(X):
    """The mean rank of each item over all completions, from 1."""
    result = []
    for row in X.ranks.tolist():
        orders = naive.completions(row)
        result.append(np.mean([[order[item] + 1 for item in range(len(row))] for order in orders], axis=0))
    return np.array(result)


def test_differences_of_preferences():
    users = [[("a", "b"), ("c", "d")], [("a", "b"), ("b", "c")], [("d", "a"), ("c", "b")], [("d", "a")]]
    prefs = rk.Preferences.from_pairs(users, items=list("abcd"))
    result = rk.k_sample_test(prefs, ["x", "x", "y", "y"], rk.Mallows(NU), n_permutations=20)
    assert {each.item for each in result.differences().items} == set("abcd")


def test_share_interval_coverage():
    """Wilson's intervals, half of the voters with ties."""
    rng, covered = np.random.default_rng(0), 0
    for _ in range(150):
        signs = rng.choice([0, 1, 2], p=[0.5, 0.2, 0.3], size=40)
        rows = np.array([[0, 0], [0, 1], [1, 0]])[signs]
        pair = rk.mmd_test(rows, rows, rk.Mallows(NU), n_permutations=1).differences().pairs[0]
        low, high = pair.intervals[0]
        covered += low <= (0.2 if pair.first == "0" else 0.3) <= high
    assert covered / 150 > 0.95 - 4 * math.sqrt(0.05 * 0.95 / 150)


def test_plots():
    result = rk.mmd_test(
        rk.datasets.mallows(20, 4, 0.0, rng=1),
        rk.datasets.mallows(20, 4, 1.5, rng=2),
        rk.Mallows(NU),
        n_permutations=50,
    )
    ax = result.differences().plot(limit=3)
    assert len(ax.get_yticklabels()) == 3
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["X", "Y"]
    assert "observed" in result.plot().texts[0].get_text()
    assert "mean rank, X" in str(result.differences())


def test_change_interval():
    """Newcombe's interval of a difference of shares, by his example: 56 of 70 less 48 of 80."""
    X, Y = (rk.Rankings([[0, 1], [1, 0]], counts=[yes, n - yes]) for yes, n in ((48, 80), (56, 70)))
    pair = rk.mmd_test(X, Y, rk.Mallows(NU), n_permutations=5).differences().pairs[0]
    low, high = pair.change_interval if pair.first == "0" else tuple(-end for end in reversed(pair.change_interval))
    assert (round(low, 4), round(high, 4)) == (0.0524, 0.3339)


def test_printed_tables():
    X, Y = rk.datasets.mallows(40, 4, 0.0, rng=1), rk.datasets.mallows(40, 4, 1.5, rng=2)
    result = rk.mmd_test(X, Y, rk.Mallows(NU), n_permutations=5).differences()
    items, pairs = result.tables()
    assert items[0][-1] == pairs[0][-1] == "share of the difference (Kendall kernel)"
    assert pairs[1][-1].startswith(f"{result.pairs[0].contribution / result.total:.0%}")
    for row, pair in zip(pairs[1:], result.pairs, strict=True):
        assert ("reverses" in row[-1]) == pair.reverses
    many = rk.k_sample_test(rk.concat([X, Y]), np.arange(80) % 20, rk.Mallows(NU), n_permutations=5).differences()
    assert max(map(len, str(many).splitlines())) < 120
    first = many.items[0]
    assert f"{many.groups[int(np.argmin(first.mean_ranks))]}: {min(first.mean_ranks):.2f}" in str(many)


# ---------------------------------------------------------------------- estimated kernel values


def test_statistic_mcse():
    X, Y = (rk.datasets.uniform(25, 6, rng=seed).top(2, unlisted="free") for seed in (1, 2))
    results = [
        rk.mmd_test(X, Y, rk.Mallows(NU), n_permutations=1, method=rk.MonteCarlo(16, "iid", 0, rng=seed))
        for seed in range(40)
    ]
    deviation = np.std([result.statistic for result in results], ddof=1)
    error = np.median([result.statistic_mcse for result in results])
    assert deviation / 1.3 < error < 2.2 * deviation
    assert rk.mmd_test(X, Y, rk.Mallows(NU), n_permutations=1, method="exact").statistic_mcse == 0.0
    with pytest.warns(rk.SamplingWarning, match="power"):
        rk.mmd_test(X, Y, rk.Mallows(2.0), n_permutations=50, method=rk.MonteCarlo(2, "iid", 0))


FREE = [rk.datasets.uniform(25, 6, rng=seed).top(2, unlisted="free") for seed in (1, 2)]
GROUPS = np.repeat([0, 1, 2], [17, 17, 16])
WAYS = {
    "mmd_test": lambda m: rk.mmd_test(*FREE, rk.Mallows(NU), n_permutations=1, method=m),
    "k_sample_test": lambda m: rk.k_sample_test(rk.concat(FREE), GROUPS, rk.Mallows(NU), n_permutations=1, method=m),
    "paired_test": lambda m: rk.paired_test(*FREE, rk.Mallows(NU), n_permutations=1, method=m),
    "hsic_test": lambda m: rk.hsic_test(rk.concat(FREE), GROUPS, rk.Mallows(NU), n_permutations=1, method=m),
}


@pytest.mark.filterwarnings("ignore:kernel values are estimated")
@pytest.mark.parametrize("way", WAYS)
def test_effect_mcse(way):
    results = [WAYS[way](rk.MonteCarlo(16, "iid", 0, rng=seed)) for seed in range(16)]
    for name in ("effect", "statistic"):
        deviation = np.std([getattr(result, name) for result in results], ddof=1)
        error = np.median([getattr(result, f"{name}_mcse") for result in results])
        assert deviation / 1.8 < error < 2.8 * deviation
    exact = WAYS[way]("exact")
    assert exact.effect_mcse == 0.0
    widths = [np.ptp(result.effect_interval) for result in results]
    assert np.mean(widths) > np.ptp(exact.effect_interval)
    assert "(estimated kernel values)" in str(results[0])


@pytest.mark.filterwarnings("ignore:kernel values are estimated")
def test_effect_is_undefined_if_noise_dominates():
    """Two draws of a narrow kernel do not determine the effect."""
    results = [
        rk.mmd_test(*FREE, rk.Mallows(2.0), n_permutations=1, method=rk.MonteCarlo(2, "iid", 0, rng=seed))
        for seed in range(8)
    ]
    exact = rk.mmd_test(*FREE, rk.Mallows(2.0), n_permutations=1, method="exact").effect_interval
    assert 2 < sum(math.isnan(result.effect) for result in results) < len(results)
    for result in results:
        low, high = result.effect_interval
        assert math.isnan(result.effect) == math.isnan(low)
        assert math.isnan(low) or low <= exact[0] < exact[1] < high


def test_all_tests_warn_of_noise():
    noisy, kernel, both = rk.MonteCarlo(2, "iid", 0), rk.Mallows(2.0), rk.concat(FREE)
    with pytest.warns(rk.SamplingWarning, match="power"):
        result = rk.mmd_aggregated_test(*FREE, [kernel, rk.Mallows(1.0)], n_permutations=50, method=noisy)
    assert result.statistic_mcse > 0
    with pytest.warns(rk.SamplingWarning, match="power"):
        rk.change_point_test(both, kernel, n_permutations=50, method=noisy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        groups = rk.k_sample_test(both, GROUPS, kernel, n_permutations=50, method=noisy)
    with pytest.warns(rk.SamplingWarning, match="power"):
        pairs = groups.pairwise()
    assert (pairs.statistic_mcse > 0).all()
    assert "estimated kernel values" in str(pairs) or np.isnan(pairs.effects).all()

"""Leaderboards: scores, intervals, and simultaneous ranks."""

import csv

import numpy as np
import pandas as pd
import pytest
from real_data import arena, needs_data

import rankernel as rk
from rankernel import Comparisons, Preferences, Rankings
from rankernel.models.leaderboard import bradley_terry_strengths


def simulated_battles(seed, strengths, n_battles, n_judges=0, spread=0.0, tie_rate=0.0):
    rng = np.random.default_rng(seed)
    n = len(strengths)
    first = rng.integers(0, n, n_battles)
    second = (first + rng.integers(1, n, n_battles)) % n
    judge = rng.integers(0, max(n_judges, 1), n_battles)
    opinions = np.asarray(strengths) + spread * rng.normal(size=(max(n_judges, 1), n))
    chance = 1 / (1 + np.exp(opinions[judge, second] - opinions[judge, first]))
    outcome = np.where(rng.random(n_battles) < chance, 1, -1)
    outcome[rng.random(n_battles) < tie_rate] = 0
    return Comparisons.from_arrays(first, second, outcome, judge=judge if n_judges else None, items=range(n))


def by_item(result, values):
    """Values of the items in the order of their numbers."""
    return np.asarray(values)[np.argsort([int(item) for item in result.items])]


@pytest.mark.parametrize("score", ["borda", "copeland", "mean_rank", "bradley_terry"])
def test_scores_of_rankings(score):
    rng = np.random.default_rng(1)
    data = Rankings.from_scores(rng.normal([0.5, 0, 0.2, 1], 1, (30, 4)).round(0))
    result = rk.leaderboard(data, score=score)
    n = 4
    wins = np.zeros((n, n))
    ranks = np.zeros(n)
    for row in data.ranks.tolist():
        for a in range(n):
            ranks[a] += 1 + sum(x < row[a] for x in row) + (row.count(row[a]) - 1) / 2
            for b in range(n):
                wins[a, b] += (row[a] < row[b]) + 0.5 * (row[a] == row[b] and a != b)
    expected = {
        "borda": wins.sum(axis=1) / 30,
        "copeland": [sum((w > 15) + 0.5 * (w == 15) for b, w in enumerate(wins[a]) if b != a) for a in range(n)],
        "mean_rank": ranks / 30,
        "bradley_terry": rk.bradley_terry(data).strengths,
    }[score]
    np.testing.assert_allclose(by_item(result, result.scores), expected, atol=1e-6)
    assert result.scores.tolist() == sorted(result.scores.tolist(), reverse=score != "mean_rank")


def test_missing_results_stay_missing():
    table = pd.DataFrame({"a": [0.9, 0.8, np.nan], "b": [0.1, np.nan, 0.7], "c": [0.5, 0.6, 0.2]})
    result = rk.leaderboard(table, score="mean_rank")
    found = dict(zip(result.items, result.scores.tolist(), strict=True))
    assert found == {"a": 1.0, "b": 2.0, "c": 2.0}
    assert result.units == "3 voters"
    borda = rk.leaderboard(Rankings.from_scores(table, unlisted="free"))
    expected = rk.pairwise_preferences(Rankings.from_scores(table, unlisted="free")).sum(axis=1) - 0.5
    np.testing.assert_allclose([borda.scores[borda.items.index(item)] for item in "abc"], expected)


def test_standard_errors_of_means():
    """The standard error of a mean score is that of independent voters."""
    rng = np.random.default_rng(2)
    data = Rankings.from_scores(rng.normal([0, 0.3, 0.5, 1], 1, (150, 4)))
    result = rk.leaderboard(data, n_resamples=4000)
    points = 3 - data.ranks
    np.testing.assert_allclose(
        by_item(result, result.standard_errors), points.std(axis=0, ddof=1) / np.sqrt(150), rtol=0.06
    )


def test_standard_errors_of_strengths():
    """Bootstrap and sandwich standard errors agree."""
    battles = simulated_battles(3, [0, 0.3, 0.6, 1.0], 3000, n_judges=150, spread=0.5)
    fit = rk.bradley_terry(battles)
    result = rk.leaderboard(battles, n_resamples=2000)
    np.testing.assert_allclose(by_item(result, result.standard_errors), fit.standard_errors, rtol=0.12)
    independent = rk.leaderboard(battles, resample="comparisons", n_resamples=2000)
    expected = rk.bradley_terry(battles, cluster=False).standard_errors
    np.testing.assert_allclose(by_item(independent, independent.standard_errors), expected, rtol=0.12)
    assert result.units == "150 judges"
    assert independent.units == "3,000 comparisons"


def test_strengths_of_resamples_that_are_almost_separated():
    """Newton's method also converges for resamples in which an item hardly loses or wins."""
    rng = np.random.default_rng(12)
    wins = rng.standard_gamma(np.array([[0, 60, 50, 40], [1, 0, 30, 45], [1, 20, 0, 30], [0, 1, 20, 0]]), (300, 4, 4))
    wins[:, 1, 0] *= 10.0 ** rng.uniform(-8, 0, 300)
    strengths = bradley_terry_strengths(wins, tuple("abcd"))
    chance = 1 / (1 + np.exp(strengths[:, None, :] - strengths[:, :, None]))
    expected = ((wins + wins.transpose(0, 2, 1)) * chance).sum(axis=2)
    np.testing.assert_allclose(expected, wins.sum(axis=2), rtol=1e-6)
    assert np.ptp(strengths, axis=1).max() > 8


def test_ranks_follow_from_separated_pairs():
    result = rk.leaderboard(simulated_battles(4, np.linspace(0, 3, 8), 1500))
    above = result.above.before[0]
    for item in range(8):
        assert result.rank_intervals[item].tolist() == [1 + above[:, item].sum(), 8 - above[item].sum()]
    assert isinstance(result.above, Preferences)
    assert above.any()
    assert not (above & above.T).any()
    low, high = result.rank_intervals.T
    assert (low <= result.ranks).all()
    assert (result.ranks <= high).all()


def test_far_apart_items_have_one_rank_and_equal_ones_all():
    apart = Rankings.from_scores(np.random.default_rng(5).normal(np.arange(5) * 3, 1, (60, 5)))
    assert rk.leaderboard(apart).rank_intervals.tolist() == [[rank, rank] for rank in range(1, 6)]
    equal = Rankings.from_scores(np.random.default_rng(6).normal(0, 1, (40, 5)))
    assert rk.leaderboard(equal).rank_intervals.tolist() == [[1, 5]] * 5


def test_simultaneous_coverage_of_equal_items():
    """With equal items no pair may be separated in more than 5 % of data sets."""
    rng = np.random.default_rng(7)
    n_runs = 300
    wrong = sum(
        bool(
            rk.leaderboard(Rankings.from_scores(rng.normal(size=(40, 6))), n_resamples=200, rng=run).above.before.any()
        )
        for run in range(n_runs)
    )
    assert wrong <= 0.05 * n_runs + 3 * np.sqrt(0.05 * 0.95 * n_runs)
    assert wrong >= 2


def test_few_judges_give_wide_intervals():
    """Battles of one judge are dependent: resampling them as independent separates too many pairs."""
    battles = simulated_battles(8, np.zeros(6), 4000, n_judges=8, spread=1.0)
    judges, single = rk.leaderboard(battles), rk.leaderboard(battles, resample="comparisons")
    assert judges.above.before.sum() < single.above.before.sum()
    assert (judges.standard_errors > 2 * single.standard_errors.mean()).all()


def test_groups():
    rng = np.random.default_rng(9)
    data = Rankings.from_scores(rng.normal([0, 1, 2], 1, (60, 3)))
    group = np.repeat(["x", "y"], 30)
    result = rk.leaderboard(data, by=group)
    assert list(result) == ["x", "y"]
    np.testing.assert_allclose(result["y"].scores, rk.leaderboard(data[30:]).scores)


def test_same_call_same_result():
    battles = simulated_battles(10, [0, 1, 2], 300)
    first, again = rk.leaderboard(battles), rk.leaderboard(battles)
    assert repr(first) == repr(again)
    assert (first.standard_errors != rk.leaderboard(battles, rng=1).standard_errors).any()


def test_counts_are_voters():
    orders = [["a", "b", "c"], ["b", "a", "c"], ["c", "b", "a"]]
    once = rk.leaderboard(Rankings.from_orders(orders, counts=[20, 15, 5]), n_resamples=4000)
    rows = [order for order, count in zip(orders, [20, 15, 5], strict=True) for _ in range(count)]
    separate = rk.leaderboard(Rankings.from_orders(rows), n_resamples=4000)
    assert once.units == separate.units == "40 voters"
    np.testing.assert_allclose(once.scores, separate.scores)
    np.testing.assert_allclose(once.standard_errors, separate.standard_errors, rtol=0.08)


def test_table():
    result = rk.leaderboard(Rankings.from_orders([["a\n", "b"], ["b", "a\n"], ["a\n", "b"]]))
    assert "a\\n" in repr(result)
    frame = result.to_frame()
    assert frame["item"].tolist() == list(result.items)
    assert frame.columns.tolist() == [
        "item", "rank", "rank_low", "rank_high", "borda", "standard_error", "low", "high",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"score": "elo"}, "score"),
        ({"score": "mean_rank"}, "score"),
        ({"resample": "judges"}, "resample"),
        ({"confidence_level": 2}, "confidence_level"),
        ({"n_resamples": 3}, "n_resamples"),
        ({"by": "language"}, "by"),
    ],
)
def test_invalid_arguments(options, name):
    with pytest.raises((ValueError, TypeError), match=name):
        rk.leaderboard(simulated_battles(11, [0, 1], 50), **options)


@needs_data
def test_win_rates_of_evalica():
    with (arena() / "llmfao-golden.csv").open(encoding="utf-8") as file:
        golden = {
            row["item"]: float(row["score"]) for row in csv.DictReader(file) if row["algorithm"] == "average_win_rate"
        }
    with (arena() / "llmfao.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    outcome = [{"left": 1, "right": -1, "tie": 0}[row["winner"]] for row in rows]
    battles = Comparisons.from_arrays(*([row[side] for row in rows] for side in ("left", "right")), outcome)
    result = rk.leaderboard(battles, score="borda", n_resamples=20)
    np.testing.assert_allclose(result.scores, [golden[item] for item in result.items], atol=1e-9)


@pytest.mark.parametrize("score", ["borda", "copeland"])
@pytest.mark.parametrize(("n_battles", "n_judges"), [(1, 0), (2, 0), (5, 0), (5, 60)])
def test_coverage_with_few_battles_of_each_pair(score, n_battles, n_judges):
    """Rates of few battles are not certain: equal items may be separated in at most 5 % of data sets."""
    rng, n_runs, wrong = np.random.default_rng(n_battles), 100, 0
    first, second = (np.repeat(side, n_battles) for side in np.triu_indices(8, 1))
    for run in range(n_runs):
        outcome = rng.choice([-1, 1], len(first))
        judge = rng.integers(0, n_judges, len(first)) if n_judges else None
        battles = Comparisons.from_arrays(first, second, outcome, judge=judge, items=range(8))
        wrong += rk.leaderboard(battles, score=score, n_resamples=100, rng=run).above.before.any()
    assert wrong <= 0.05 * n_runs + 3 * np.sqrt(0.05 * 0.95 * n_runs)


def test_standard_errors_of_win_rates():
    """With many battles they are those of means of independent rates, and with judges those of clustered rates."""
    battles = simulated_battles(13, [0, 0.5, 1.0], 3000)
    rates = battles.wins / (battles.wins + battles.wins.T + np.eye(3))
    variances = rates * (1 - rates) / (battles.wins + battles.wins.T + np.eye(3))
    result = rk.leaderboard(battles, score="borda", n_resamples=4000)
    expected = np.sqrt(variances.sum(axis=1)) / 2
    np.testing.assert_allclose(by_item(result, result.standard_errors), expected, rtol=0.05)
    repeated = Comparisons.from_arrays(
        *(np.repeat(part, 4) for part in (battles.first, battles.second, battles.outcome)),
        judge=np.repeat(np.arange(3000), 4), items=range(3),
    )  # fmt: skip
    clustered = rk.leaderboard(repeated, score="borda", n_resamples=4000)
    np.testing.assert_allclose(by_item(clustered, clustered.standard_errors), expected, rtol=0.05)


def test_one_win_of_a_new_item_separates_nothing():
    """The number of comparisons of an item counts, not that of all comparisons."""
    battles = simulated_battles(14, [0, 0, 0], 900)
    first, second, outcome = (
        np.append(part, value) for part, value in ((battles.first, 3), (battles.second, 0), (battles.outcome, 1))
    )
    more = Comparisons.from_arrays(first, second, outcome, items=range(4))
    for score in ("borda", "copeland"):
        result = rk.leaderboard(more, score=score)
        assert result.rank_intervals[result.items.index("3")].tolist() == [1, 4]


def test_items_of_a_single_judge_have_no_standard_error():
    battles = simulated_battles(15, [0, 0.2, 0.4], 600, n_judges=30)
    added = [(3, 0, 1)] * 8 + [(3, 0, -1)] * 2
    first, second, outcome = (
        np.concatenate([part, values])
        for part, values in zip((battles.first, battles.second, battles.outcome), zip(*added, strict=True), strict=True)
    )
    judge = np.append(battles.judge, [0] * 10)
    result = rk.leaderboard(Comparisons.from_arrays(first, second, outcome, judge=judge, items=range(4)))
    row = result.items.index("3")
    assert np.isnan(result.standard_errors[row])
    assert result.rank_intervals[row].tolist() == [1, 4]
    assert np.isfinite(np.delete(result.standard_errors, row)).all()


def test_prior_for_items_that_always_win():
    battles = Comparisons.from_arrays(list("aabbc"), list("bcacb"), [1, 1, -1, 1, 1])
    with pytest.raises(rk.RankingError, match=r"a never lose against the others; give prior=0\.1"):
        rk.leaderboard(battles)
    result = rk.leaderboard(battles, prior=0.1)
    expected = rk.bradley_terry(battles, prior=0.1)
    np.testing.assert_allclose(result.scores, np.sort(expected.strengths)[::-1], atol=1e-6)
    assert result.items[0] == "a"


@pytest.mark.parametrize("score", ["bradley_terry", "copeland"])
def test_rankings_that_order_nothing_do_not_count(score):
    orders = [["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]] * 10
    data = Rankings.from_orders([*orders, ["a"]], unlisted="free", items=list("abc"))
    result = rk.leaderboard(data, score=score)
    np.testing.assert_allclose(result.scores, rk.leaderboard(data[:30], score=score).scores)


@pytest.mark.parametrize("score", ["bradley_terry", "borda", "copeland"])
def test_groups_without_some_items(score):
    """An item that a group never compared has no score there, instead of the lowest one."""
    battles = simulated_battles(16, [0, 0.5, 1.0, 1.5], 400)
    with_last = (battles.first == 3) | (battles.second == 3)
    group = np.where(with_last | (np.arange(400) % 2 == 0), "en", "de")
    with pytest.warns(rk.ReadingWarning, match="never compared are left out: 3"):
        boards = rk.leaderboard(battles, by=group, score=score)
    assert sorted(boards["de"].items) == ["0", "1", "2"]
    assert len(boards["en"].items) == 4
    few = Comparisons.from_arrays(["0", "1", "2"], ["1", "2", "0"], [1, 1, -1], items=range(3))
    own = Comparisons.from_arrays(
        *(part[group == "de"] for part in (battles.first, battles.second, battles.outcome)), items=range(3)
    )
    np.testing.assert_array_equal(rk.leaderboard(own, score=score).intervals, boards["de"].intervals)
    if score == "bradley_terry":
        with pytest.raises(rk.RankingError, match="group 'y': the likelihood has no maximum"):
            rk.leaderboard(few, by=["y"] * 3)

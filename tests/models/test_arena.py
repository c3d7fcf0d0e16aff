"""The questions of somebody who keeps an arena of models, each with a planted answer."""

import warnings

import numpy as np
import pytest

import rankernel as rk
from rankernel import Comparisons

STRENGTHS = np.array([1.5, 1.45, 0.8, 0.0, -0.8, -1.6])


def arena(seed=0, n_battles=6000, n_judges=40, tie_rate=0.3, reverse=(), change=None, languages=None):
    """Battles with judges, days and languages; ``change`` holds the strengths of the second half."""
    rng = np.random.default_rng(seed)
    n = len(STRENGTHS)
    first = rng.integers(0, n, n_battles)
    second = (first + rng.integers(1, n, n_battles)) % n
    judge = rng.integers(0, n_judges, n_battles)
    day = np.arange(n_battles) * 60 // n_battles
    language = rng.choice(["de", "en"], n_battles)
    truth = np.tile(STRENGTHS, (n_battles, 1))
    if change is not None:
        truth[day >= 30] = change
    if languages is not None:
        truth[language == "de"] = languages
    rows = np.arange(n_battles)
    difference = truth[rows, first] - truth[rows, second]
    difference = np.where(np.isin(judge, reverse), -difference, difference)
    outcome = np.where(rng.random(n_battles) < 1 / (1 + np.exp(-difference)), 1, -1)
    outcome[rng.random(n_battles) < tie_rate] = 0
    return Comparisons.from_arrays(
        first,
        second,
        outcome,
        judge=[f"judge {number:02}" for number in judge],
        time=np.datetime64("2026-01-01") + day,
        labels={"language": language},
        items=range(n),
    )


def test_which_ranks_are_real():
    """The two best models are too similar to be ordered; all others have one rank."""
    board = rk.leaderboard(arena())
    assert {*board.items[:2]} == {"0", "1"}
    assert board.rank_intervals.tolist() == [[1, 2], [1, 2], [3, 3], [4, 4], [5, 5], [6, 6]]


def test_do_languages_disagree():
    kernel = rk.Mallows(0.5)
    assert rk.k_sample_test(arena(1), "language", kernel).pvalue > 0.01
    changed = arena(1, languages=STRENGTHS[[3, 1, 2, 0, 4, 5]])
    assert rk.k_sample_test(changed, "language", kernel).pvalue < 0.01
    boards = rk.leaderboard(changed, by="language")
    assert boards["de"].items[0] != "0"
    assert boards["de"].items.index("3") < boards["en"].items.index("3")


def test_has_it_changed_over_time():
    kernel = rk.Mallows(0.2)
    steady = arena(2).rankings(by="day")
    assert rk.trend_test(steady, np.arange(len(steady)), kernel).pvalue > 0.01
    moved = arena(2, change=STRENGTHS[[4, 1, 2, 3, 0, 5]]).rankings(by="day")
    assert len(moved) == 60
    assert rk.trend_test(moved, np.arange(60), kernel).pvalue < 0.01
    found = rk.change_point_test(moved, kernel)
    assert found.pvalue < 0.01


def test_which_judges_are_outliers():
    judges = arena(3, n_battles=8000, reverse=(7,)).rankings(by="judge")
    found = rk.outlier_test(judges, rk.Mallows(0.2))
    assert judges.labels["group"][found.adjusted_pvalues <= found.alpha].tolist() == ["judge 07"]


def test_a_judge_with_many_battles_has_an_order():
    """Contradicting battles leave no partial order, but a ranking."""
    one = arena(4, n_judges=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rk.ReadingWarning)
        assert len(one.preferences().to_pairs()[0]) > 0
    ranking = one.rankings()
    assert ranking.to_orders()[0][2:] == ["2", "3", "4", "5"]


def test_ties_are_no_contradictions():
    battles = arena(5, n_battles=300, n_judges=60, tie_rate=0.6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rk.ReadingWarning)
        preferences = battles.preferences()
    decided = battles[~battles.tied]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rk.ReadingWarning)
        without = decided.preferences()
    assert preferences.n_contradicting == without.n_contradicting
    rows = [preferences.users.index(user) for user in without.users]
    assert np.array_equal(preferences.before[rows].sum(axis=(1, 2)), without.before.sum(axis=(1, 2)))


def test_how_sure_is_a_win():
    """The interval of a win probability covers the truth in about 95 % of arenas."""
    truth = 1 / (1 + np.exp(STRENGTHS[3] - STRENGTHS[2]))
    bounds = np.array(
        [
            rk.bradley_terry(arena(seed, n_battles=1500), ties="ignore").probability_intervals()[2, 3]
            for seed in range(100)
        ]
    )
    covered = ((bounds[:, 0] <= truth) & (truth <= bounds[:, 1])).sum()
    assert covered >= 95 - 3 * np.sqrt(100 * 0.05 * 0.95)
    assert covered < 100 or (bounds[:, 1] - bounds[:, 0]).mean() < 0.1


@pytest.mark.parametrize("ties", ["half", "davidson", "rao-kupper", "ignore"])
def test_order_of_strengths(ties):
    fit = rk.bradley_terry(arena(6), ties=ties)
    assert [int(item) for item in np.argsort(-fit.strengths)][2:] == [2, 3, 4, 5]

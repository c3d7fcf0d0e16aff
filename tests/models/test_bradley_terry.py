"""The Bradley-Terry model against a general optimiser."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

import rankernel as rk
from rankernel import Preferences, RankingError, Rankings


def naive_strengths(wins, n_items):
    """Maximise the likelihood of wins (winner, loser, number) by BFGS."""

    def cost(s):
        return sum(n * math.log1p(math.exp(s[b] - s[a])) for a, b, n in wins) + sum(s) ** 2

    found = minimize(cost, np.zeros(n_items), method="BFGS", options={"gtol": 1e-9})
    return found.x - found.x.mean()


def naive_wins(ranks, counts, ties):
    wins = []
    for row, count in zip(ranks, counts, strict=True):
        for a, x in enumerate(row):
            for b, y in enumerate(row):
                if a != b and x >= 0 and y >= 0 and x <= y:
                    share = 1 if x < y else 0.5 * (ties == "half")
                    wins.append((a, b, share * count))
    return wins


@pytest.mark.parametrize("ties", ["half", "skip"])
@pytest.mark.parametrize("seed", range(3))
def test_rankings(seed, ties):
    rng = np.random.default_rng(seed)
    ranks = rng.integers(-1, 4, size=(12, 5))
    data = Rankings.from_ranks(ranks, unlisted="free", counts=rng.integers(1, 5, size=12))
    fit = rk.bradley_terry(data, ties=ties)
    wins = naive_wins(data.ranks.tolist(), data.counts.tolist(), ties)
    np.testing.assert_allclose(fit.strengths, naive_strengths(wins, 5), atol=1e-5)
    order = np.argsort(-fit.strengths)
    assert np.argsort(fit.ranking.ranks[0]).tolist() == order.tolist()
    likelihood = sum(n * math.log(fit.probabilities()[a, b]) for a, b, n in wins)
    assert fit.log_likelihood == pytest.approx(likelihood)


def test_preferences_are_transitive():
    prefs = Preferences.from_pairs([[("a", "b"), ("b", "c")], [("c", "a")], [("b", "a")]], counts=[3, 2, 1])
    wins = [(0, 1, 3), (1, 2, 3), (0, 2, 3), (2, 0, 2), (1, 0, 1)]
    np.testing.assert_allclose(rk.bradley_terry(prefs).strengths, naive_strengths(wins, 3), atol=1e-5)


def test_battles():
    battles = [("x", "y")] * 6 + [("y", "x")] * 2 + [("y", "z")] * 5 + [("z", "y")] * 3 + [("z", "x")]
    prefs = Preferences.from_pairs([[battle] for battle in battles])
    wins = [("xyz".index(a), "xyz".index(b), 1) for a, b in battles]
    fit = rk.bradley_terry(prefs)
    np.testing.assert_allclose(fit.strengths, naive_strengths(wins, 3), atol=1e-5)
    assert fit.ranking.to_orders() == [["x", "y", "z"]]


def test_counts_are_multiplicities():
    orders, counts = [["a", "b", "c"], ["c", "b", "a"], ["b", "a", "c"]], [4, 2, 3]
    once = rk.bradley_terry(Rankings.from_orders(orders, counts=counts))
    written_out = [order for order, n in zip(orders, counts, strict=True) for _ in range(n)]
    np.testing.assert_allclose(once.strengths, rk.bradley_terry(Rankings.from_orders(written_out)).strengths, atol=1e-9)


def test_equal_items_are_tied():
    fit = rk.bradley_terry(Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"], ["c", "b", "a"]]))
    assert fit.ranking.ranks.tolist() == [[0, 0, 0]]


def test_no_maximum():
    votes = Rankings.from_orders([["a", "b", "c", "d"], ["b", "a", "d", "c"]])
    with pytest.raises(RankingError, match=r"preferred to a, b; give prior=0\.1"):
        rk.bradley_terry(votes)
    never_compared = Preferences.from_pairs([[("a", "b")], [("b", "a")], [("c", "d")], [("d", "c")]])
    with pytest.raises(RankingError, match="prior"):
        rk.bradley_terry(never_compared)
    fit = rk.bradley_terry(votes, prior=0.1)
    assert fit.ranking.ranks.tolist() == [[0, 0, 1, 1]]
    wins = naive_wins(votes.ranks.tolist(), [1, 1], "half") + [
        (a, b, 0.1) for a in range(4) for b in range(4) if a != b
    ]
    np.testing.assert_allclose(fit.strengths, naive_strengths(wins, 4), atol=1e-5)


def test_one_item():
    assert rk.bradley_terry(Rankings([[0]])).strengths.tolist() == [0.0]


def test_extreme_counts():
    counts = [10**9, 1, 1]
    fit = rk.bradley_terry(Rankings.from_orders([["a", "b", "c"], ["c", "a", "b"], ["b", "c", "a"]], counts=counts))
    expected = (10**9 + 2) * fit.probabilities()[0, 1:].sum()
    assert expected == pytest.approx(2 * 10**9 + 1, rel=1e-12)

"""The Bradley-Terry model against a general optimiser."""

import csv
import math

import numpy as np
import pytest
from real_data import arena, needs_data
from scipy.optimize import minimize

import rankernel as rk
from rankernel import Comparisons, Preferences, RankingError, Rankings


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


@pytest.mark.parametrize("ties", ["half", "ignore"])
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
    with pytest.raises(RankingError, match=r"a, b never lose .* prior=0\.1"):
        rk.bradley_terry(votes)
    never_compared = Preferences.from_pairs([[("a", "b")], [("b", "a")], [("c", "d")], [("d", "c")]])
    with pytest.raises(RankingError, match=r"a, b are never compared .* prior=0\.1"):
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


# ---------------------------------------------------------------------- comparisons, ties and standard errors


def random_battles(seed, n_items=5, n_battles=400, n_judges=20, tie_rate=0.3):
    """Battles whose judges differ in their strengths of the items, some of them tied."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n_items, n_battles)
    second = (first + rng.integers(1, n_items, n_battles)) % n_items
    judge = rng.integers(0, n_judges, n_battles)
    strengths = rng.normal(size=n_items) + 0.5 * rng.normal(size=(n_judges, n_items))
    length = rng.normal(size=n_battles)
    difference = strengths[judge, first] - strengths[judge, second] + 0.4 * length
    outcome = np.where(rng.random(n_battles) < 1 / (1 + np.exp(-difference)), 1, -1)
    outcome[rng.random(n_battles) < tie_rate] = 0
    return Comparisons.from_arrays(first, second, outcome, judge=judge, labels={"length": length}, items=range(n_items))


def naive_log_probability(difference, outcome, ties, parameter):
    """The log-probability of an outcome: 1, 0 or -1."""
    a, b = math.exp(difference / 2), math.exp(-difference / 2)
    if ties == "davidson":
        return math.log({1: a, -1: b, 0: parameter}[outcome] / (a + b + parameter))
    win, loss = a / (a + parameter * b), b / (b + parameter * a)
    return math.log({1: win, -1: loss, 0: 1 - win - loss}[outcome])


@pytest.mark.parametrize("ties", ["davidson", "rao-kupper"])
def test_ties_with_a_parameter(ties):
    battles = random_battles(1)
    rows = list(zip(battles.first.tolist(), battles.second.tolist(), battles.outcome.tolist(), strict=True))

    def cost(x):
        parameter = math.exp(x[-1]) if ties == "davidson" else 1 + math.exp(x[-1])
        total = sum(naive_log_probability(x[a] - x[b], outcome, ties, parameter) for a, b, outcome in rows)
        return sum(x[:-1]) ** 2 - total

    found = minimize(cost, np.zeros(6), method="BFGS", options={"gtol": 1e-6})
    fit = rk.bradley_terry(battles, ties=ties)
    np.testing.assert_allclose(fit.strengths, found.x[:-1] - found.x[:-1].mean(), atol=1e-4)
    expected = math.exp(found.x[-1]) + (ties == "rao-kupper")
    assert fit.tie_parameter == pytest.approx(expected, rel=1e-4)
    assert fit.log_likelihood == pytest.approx(-found.fun, abs=1e-6)
    parameter = fit.tie_parameter
    for a, b in ((0, 1), (3, 2)):
        logs = naive_log_probability(fit.strengths[a] - fit.strengths[b], 1, ties, parameter)
        assert fit.probabilities()[a, b] == pytest.approx(math.exp(logs))


def test_without_ties_all_models_agree():
    battles = random_battles(2, tie_rate=0)
    fits = [rk.bradley_terry(battles, ties=ties) for ties in ("half", "davidson", "rao-kupper", "ignore")]
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.strengths, fits[0].strengths, atol=1e-9)
        np.testing.assert_allclose(fit.standard_errors, fits[0].standard_errors, atol=1e-9)
        assert math.isnan(fit.tie_parameter)


def logistic(battles, cluster, with_length=False):
    """Coefficients and standard errors of logistic regression by Newton's method, with item 0 as the reference."""
    decided = battles[~battles.tied]
    n = decided.n_items
    design = (np.eye(n)[decided.first] - np.eye(n)[decided.second])[:, 1:]
    if with_length:
        design = np.column_stack([design, decided.labels["length"].astype(float)])
    won, coefficients = decided.outcome > 0, np.zeros(design.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-design @ coefficients))
        inverse = np.linalg.inv((design.T * (p * (1 - p))) @ design)
        coefficients = coefficients + inverse @ design.T @ (won - p)
    if not cluster:
        return coefficients, np.sqrt(np.diag(inverse))
    scores = np.array([((won - p)[:, None] * design)[decided.judge == j].sum(axis=0) for j in range(decided.n_judges)])
    return coefficients, np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse))


@pytest.mark.parametrize("with_length", [False, True])
@pytest.mark.parametrize("cluster", [False, True])
def test_standard_errors_are_those_of_logistic_regression(cluster, with_length):
    battles = random_battles(3)
    expected, errors = logistic(battles, cluster, with_length)
    options = {"covariates": "length"} if with_length else {}
    fit = rk.bradley_terry(battles, ties="ignore", anchor="0", cluster=cluster, **options)
    assert fit.n_clusters == (20 if cluster else 0)
    correction = math.sqrt(20 / 19) if cluster else 1
    np.testing.assert_allclose(fit.strengths[1:], expected[:4], atol=1e-6)
    np.testing.assert_allclose(fit.standard_errors[1:], errors[:4] * correction, rtol=1e-5)
    assert fit.strengths[0] == fit.standard_errors[0] == 0
    np.testing.assert_allclose(fit.coefficients, expected[4:], atol=1e-6)
    np.testing.assert_allclose(fit.coefficient_errors, errors[4:] * correction, rtol=1e-5)


def test_rankings_are_clustered_by_voter():
    rng = np.random.default_rng(4)
    data = Rankings.from_scores(rng.normal([1, 0.5, 0], 1, (80, 3)).round(0))
    users, winners, losers, outcomes = [], [], [], []
    for row, ranks in enumerate(data.ranks.tolist()):
        for a in range(3):
            for b in range(a):
                users.append(row), winners.append(a), losers.append(b)
                outcomes.append(np.sign(ranks[b] - ranks[a]))
    battles = Comparisons.from_arrays(winners, losers, outcomes, judge=users, items=range(3))
    for ties in ("half", "davidson", "rao-kupper", "ignore"):
        a, b = rk.bradley_terry(data, ties=ties), rk.bradley_terry(battles, ties=ties)
        np.testing.assert_allclose(a.strengths, b.strengths, atol=1e-9)
        np.testing.assert_allclose(a.covariance, b.covariance, atol=1e-9)
        assert a.n_clusters == b.n_clusters == 80


def test_intervals():
    fit = rk.bradley_terry(random_battles(5))
    low, high = fit.intervals(confidence_level=0.9).T
    np.testing.assert_allclose(high - low, 2 * 1.6448536 * fit.standard_errors, rtol=1e-6)
    bounds = fit.probability_intervals()
    assert (bounds[..., 0] <= fit.probabilities()).all()
    assert (fit.probabilities() <= bounds[..., 1]).all()
    variance = fit.covariance[0, 0] + fit.covariance[1, 1] - 2 * fit.covariance[0, 1]
    edge = fit.strengths[0] - fit.strengths[1] - 1.959964 * math.sqrt(variance)
    assert bounds[0, 1, 0] == pytest.approx(1 / (1 + math.exp(-edge)), rel=1e-6)


def test_invalid_arguments():
    battles = random_battles(6)
    for options, name in (
        ({"ties": "skip"}, "ties"),
        ({"anchor": "z"}, "anchor"),
        ({"covariates": "height"}, "covariates"),
        ({"covariates": np.zeros((3, 1))}, "covariates"),
        ({"cluster": 2}, "cluster"),
    ):
        with pytest.raises((ValueError, TypeError), match=name):
            rk.bradley_terry(battles, **options)
    with pytest.raises(RankingError, match="covariates"):
        rk.bradley_terry(Rankings([[0, 1], [1, 0]]), covariates=[[1], [2]])


def battles_of_llmfao():
    with (arena() / "llmfao.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    outcome = [{"left": 1, "right": -1, "tie": 0}[row["winner"]] for row in rows]
    sides = ([row[side] for row in rows] for side in ("left", "right"))
    return Comparisons.from_arrays(*sides, outcome, judge=[row["worker"] for row in rows])


@needs_data
def test_strengths_of_evalica():
    """The strengths of evalica (ties as half wins) on the battles of LLMFAO."""
    with (arena() / "llmfao-golden.csv").open(encoding="utf-8") as file:
        golden = {
            row["item"]: float(row["score"]) for row in csv.DictReader(file) if row["algorithm"] == "bradley_terry"
        }
    fit = rk.bradley_terry(battles_of_llmfao())
    expected = np.log([golden[item] for item in fit.ranking.items])
    np.testing.assert_allclose(fit.strengths, expected - expected.mean(), atol=1e-6)
    assert fit.n_clusters == 124


@needs_data
def test_strengths_of_choix():
    choix = pytest.importorskip("choix")
    battles = battles_of_llmfao()
    winner, loser = battles[~battles.tied]._winner_and_loser()
    expected = choix.ilsr_pairwise(battles.n_items, list(zip(winner, loser, strict=True)), max_iter=10_000, tol=1e-12)
    fit = rk.bradley_terry(battles, ties="ignore")
    np.testing.assert_allclose(fit.strengths, expected - expected.mean(), atol=1e-6)


@needs_data
@pytest.mark.parametrize("cluster", [False, True])
def test_standard_errors_of_statsmodels(cluster):
    api = pytest.importorskip("statsmodels.api")
    battles = battles_of_llmfao()
    decided, n = battles[~battles.tied], battles.n_items
    design = (np.eye(n)[decided.first] - np.eye(n)[decided.second])[:, 1:]
    by_judge = {"cov_type": "cluster", "cov_kwds": {"groups": decided.judge, "use_correction": False}}
    model = api.GLM(decided.outcome > 0, design, family=api.families.Binomial())
    expected = model.fit(tol=1e-14, **(by_judge if cluster else {}))
    fit = rk.bradley_terry(battles, ties="ignore", anchor=battles.items[0], cluster=cluster)
    correction = math.sqrt(124 / 123) if cluster else 1
    np.testing.assert_allclose(fit.strengths[1:], expected.params, atol=1e-6)
    np.testing.assert_allclose(fit.standard_errors[1:], expected.bse * correction, atol=1e-6)


def test_items_of_a_single_judge_have_no_clustered_standard_error():
    """At the maximum the gradient of a judge who is alone with an item is 0, which is no certainty."""
    battles = random_battles(7)
    n = battles.n_items
    outcome = [1, -1, 1, 1, -1, 1]
    more = Comparisons.from_arrays(
        np.append(battles.first, [n] * 6), np.append(battles.second, [0] * 6), np.append(battles.outcome, outcome),
        judge=np.append(battles.judge, [0] * 6), items=range(n + 1),
    )  # fmt: skip
    with pytest.warns(rk.MisfitWarning, match=f"single judge or voter compared are nan: {n};"):
        fit = rk.bradley_terry(more)
    assert np.isnan(fit.standard_errors).tolist() == [False] * n + [True]
    assert np.isnan(fit.probability_intervals()[n, :n]).all()
    assert np.isfinite(rk.bradley_terry(more, cluster=False).standard_errors).all()
    voters = Rankings.from_orders([["a", "b"], ["b", "a"]] * 5 + [["a", "c"]], unlisted="free")
    with pytest.warns(rk.MisfitWarning, match="nan: c;"):
        rk.bradley_terry(voters, prior=0.1)

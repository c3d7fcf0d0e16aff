import itertools
import math
from collections import Counter
from dataclasses import replace
from functools import cache

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import bucket_orders

import rankernel as rk
from rankernel.stats import goodness_of_fit
from rankernel.stats.goodness_of_fit import buckets_of_places, cut, goodness_of_fit_test, sampler_of

NU = 0.3
# Few draws on purpose: that their errors are large is told elsewhere.
pytestmark = pytest.mark.filterwarnings("ignore:kernel values are estimated")


def expanded(rows, counts):
    return [row for row, count in zip(rows, counts, strict=True) for _ in range(count)]


def cut_like(full, shape):
    """A full ranking with its items put into the buckets of another ranking, place by place."""
    return tuple(sorted(shape)[place] for place in full)


@cache
def marginal(r, s):
    return naive.marginal(naive.mallows(NU), r, s)


def squared_discrepancy(rows, model, biased):
    """Between voters and a model, given as full rankings with probabilities, each draw cut like a random voter."""
    n = len(rows)
    drawn = Counter()
    for full, p in model.items():
        for shape in rows:
            drawn[cut_like(full, shape)] += p / n
    within = math.fsum(marginal(rows[i], rows[j]) for i in range(n) for j in range(n) if biased or i != j)
    across = math.fsum(p * marginal(r, s) for r in rows for s, p in drawn.items())
    model_alone = math.fsum(p * q * marginal(r, s) for r, p in drawn.items() for s, q in drawn.items())
    return within / (n * (n - (not biased))) - 2 * across / n + model_alone


def uniform_model(n):
    return {full: 1 / math.factorial(n) for full in itertools.permutations(range(n))}


@st.composite
def samples(draw):
    n = draw(st.integers(2, 4))
    rows = draw(st.lists(bucket_orders(n), min_size=1, max_size=3))
    counts = draw(st.lists(st.integers(1, 3), min_size=len(rows), max_size=len(rows)))
    counts[0] += 1
    return rows, counts


# ---------------------------------------------------------------------- the statistic


@settings(max_examples=25, deadline=None)
@given(samples(), st.booleans())
def test_statistic_against_the_uniform_model(sample, biased):
    rows, counts = sample
    result = goodness_of_fit_test(rk.Rankings(rows, counts=counts), rk.Uniform(), rk.Mallows(NU), 3, biased=biased)
    voters = expanded(rows, counts)
    expected = squared_discrepancy(voters, uniform_model(len(rows[0])), biased)
    assert result.statistic == pytest.approx(expected, rel=1e-11, abs=1e-13)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.permutations(range(4)).map(tuple), min_size=1, max_size=3), st.booleans())
def test_statistic_against_a_model_that_draws_one_ranking(rows, biased):
    """Its embedding from draws is exact, if all voters have the same buckets."""
    rows = [tuple(min(rank, 2) for rank in row) for row in rows]
    result = goodness_of_fit_test(
        rk.Rankings(rows, counts=[2] * len(rows)),
        lambda n, seed: np.tile([1, 0, 3, 2], (n, 1)),
        rk.Mallows(NU),
        n_simulations=3,
        biased=biased,
    )
    expected = squared_discrepancy(expanded(rows, [2] * len(rows)), {(1, 0, 3, 2): 1.0}, biased)
    assert result.statistic == pytest.approx(expected, rel=1e-11, abs=1e-13)
    near = [marginal((1, 0, 2, 2), row) for row in rows]
    place = [tuple(row) for row in result.rankings.ranks.tolist()].index(rows[0])
    among = math.fsum(marginal(rows[0], row) for row in rows) / len(rows)
    assert result.witness[place] == pytest.approx(among - near[0], rel=1e-11, abs=1e-13)


def test_the_embedding_from_draws_comes_near_the_exact_one():
    X = rk.Rankings([[0, 1, 2, 2], [1, 0, 2, 2]], counts=[3, 2])
    exact = goodness_of_fit_test(X, rk.Uniform(), rk.Mallows(NU), 3).statistic

    def flat(n, seed):
        return rk.datasets.uniform(n, 4, rng=seed)

    found = [goodness_of_fit_test(X, flat, rk.Mallows(NU), 1, seed, n_reference=200).statistic for seed in range(40)]
    assert abs(np.mean(found) - exact) < 5 * np.std(found) / math.sqrt(40)


@pytest.mark.parametrize("biased", [False, True])
def test_estimated_values_belong_to_the_ballots(biased):
    """Different draws compare two voters with the same ballot, and a voter with the ranking that says nothing."""
    X = rk.Rankings([[0, 1, 2, 2], [0, 0, 0, 0], [1, 0, 2, 2]], counts=[3, 1, 2])
    method = rk.MonteCarlo(6, "iid", 0, rng=3)
    result = goodness_of_fit_test(X, rk.Uniform(), rk.Mallows(NU), 5, biased=biased, method=method)
    rows = np.concatenate([np.repeat(X.ranks, X.counts, axis=0), np.zeros((1, 4), dtype=int)])
    K = rk.Mallows(NU).gram(rows, method=replace(method, diagonal="unbiased"))
    within = K[:6, :6].sum() - (0 if biased else np.trace(K[:6, :6]))
    expected = within / (6 * (6 - (not biased))) - 2 * K[:6, 6].mean() + K[6, 6]
    assert result.statistic == pytest.approx(expected, rel=1e-12, abs=1e-14)
    assert "Monte Carlo, 6 draws" in result.method


@pytest.mark.parametrize("model", [rk.Uniform(), rk.PlackettLuce([4, 3, 2, 1])], ids=["uniform", "Plackett-Luce"])
@pytest.mark.usefixtures("errors_in_a_moment")
def test_estimated_statistics_are_unbiased(model):
    """With the bias of a ballot with itself both are off by more than six standard errors."""
    X = rk.Rankings([[0, 1, 1, 1], [0, 0, 1, 1]], counts=[9, 6])
    exact = goodness_of_fit_test(X, model, rk.Mallows(NU), 1, n_reference=50).statistic
    methods = [rk.MonteCarlo(2, "iid", 0, rng=seed) for seed in range(50)]  # two draws: a bias would be largest
    found = [
        goodness_of_fit_test(X, model, rk.Mallows(NU), 1, n_reference=50, method=method).statistic for method in methods
    ]
    assert abs(np.mean(found) - exact) < 5 * np.std(found, ddof=1) / math.sqrt(50)


def test_auto_estimates_where_the_model_has_no_exact_value():
    """Full rankings have the kernel itself, but the ranking that says nothing has 12! completions."""
    X = rk.datasets.uniform(3, 12, rng=0)
    assert "Monte Carlo" in goodness_of_fit_test(X, rk.Uniform(), rk.Mallows(NU) * rk.Hamming(), 1).method


# ---------------------------------------------------------------------- the null distribution


def test_simulations_are_the_same_together_and_apart(monkeypatch):
    X = rk.datasets.uniform(9, 5, rng=1).top(2)
    together = goodness_of_fit_test(X, rk.Uniform(), rk.Mallows(NU), 70).null_distribution
    monkeypatch.setattr(goodness_of_fit, "FEW", 0)
    monkeypatch.setattr(goodness_of_fit, "AT_ONCE", 13)
    apart = goodness_of_fit_test(X, rk.Uniform(), rk.Mallows(NU), 70).null_distribution
    np.testing.assert_allclose(together, apart, rtol=0, atol=1e-14)


def test_null_distribution_is_that_of_all_draws_cut_like_the_data():
    shapes = [(0, 1, 2), (0, 1, 1)]
    X = rk.Rankings(shapes)
    result = goodness_of_fit_test(X, rk.Uniform(), rk.Mallows(NU), n_simulations=3000, rng=1)
    model = uniform_model(3)
    law = Counter()
    for draws in itertools.product(model, repeat=2):
        sample = [cut_like(full, shape) for full, shape in zip(draws, shapes, strict=True)]
        law[round(squared_discrepancy(sample, model, False), 11)] += 1 / 36
    away = np.abs(np.subtract.outer(result.null_distribution, list(law)))
    assert away.min(axis=1).max() < 2e-11
    seen = np.bincount(away.argmin(axis=1), minlength=len(law))
    for n_seen, p in zip(seen, law.values(), strict=True):
        assert abs(n_seen / 3000 - p) <= 5 * math.sqrt(p * (1 - p) / 3000)
    tail = sum(p for value, p in law.items() if value >= result.statistic - 2e-11)
    assert abs(result.pvalue - tail) <= 5 * math.sqrt(tail * (1 - tail) / 3000) + 1 / 3001


@given(st.lists(bucket_orders(4), min_size=1, max_size=5))
def test_draws_are_cut_place_by_place(shapes):
    X = rk.Rankings(shapes)
    full = rk.datasets.uniform(len(shapes), 4, rng=3).ranks
    got = cut(lambda n, rng: full, buckets_of_places(X), X.items, np.random.default_rng(0))
    expected = Counter(cut_like(row, shape) for row, shape in zip(full.tolist(), shapes, strict=True))
    assert Counter(dict(zip(map(tuple, got.ranks.tolist()), got.counts.tolist(), strict=True))) == expected


MODELS = {
    "uniform": (rk.Uniform(), lambda n, seed: rk.datasets.uniform(n, 4, rng=seed)),
    "Mallows": (
        rk.MallowsModel([1, 0, 3, 2], 0.6),
        lambda n, seed: rk.datasets.mallows(n, [1, 0, 3, 2], 0.6, rng=seed),
    ),
    "Plackett-Luce": (
        rk.PlackettLuce([4, 3, 2, 1]),
        lambda n, seed: rk.datasets.plackett_luce(n, [4, 3, 2, 1], rng=seed),
    ),
}


@pytest.mark.parametrize(
    ("model", "method"),
    [*((model, "auto") for model in MODELS), ("Mallows", rk.MonteCarlo(4, "iid", 0))],
    ids=[*MODELS, "Mallows, draws"],
)
@pytest.mark.usefixtures("errors_in_a_moment")
def test_level_and_power_in_a_few_runs(model, method):
    """Top-1, top-2 and full rankings of the model are not rejected too often; those of another one are."""
    given_model, draw = MODELS[model]
    lengths = [1, 2, 3, 3] * 3

    def rate(source, n_runs, level, n_simulations):
        found = [
            goodness_of_fit_test(
                rk.datasets.truncate(source(12, run), lengths),
                given_model,
                rk.Mallows(NU),
                n_simulations,
                run,
                method=method,
                n_reference=100,
            ).pvalue
            for run in range(n_runs)
        ]
        return np.mean(np.array(found) <= level)

    assert rate(draw, 30, 0.2, 9) <= 0.2 + 4 * math.sqrt(0.2 * 0.8 / 30)
    assert rate(lambda n, seed: rk.datasets.mallows(n, [3, 2, 0, 1], 2.5, rng=seed), 5, 0.05, 39) == 1.0


def test_models_draw_what_they_are():
    """The completions of the ranking that says nothing follow the model itself."""
    X = rk.Rankings([[0, 1, 2, 3]])
    drawn = sampler_of(MODELS["Mallows"][0], X)(20_000, np.random.default_rng(0))
    seen = Counter(map(tuple, drawn.tolist()))
    weights = {full: math.exp(-0.6 * naive.kendall(full, (1, 0, 3, 2))) for full in itertools.permutations(range(4))}
    for full, weight in weights.items():
        p = weight / math.fsum(weights.values())
        assert abs(seen[full] / 20_000 - p) <= 5 * math.sqrt(p * (1 - p) / 20_000)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", ["auto", rk.MonteCarlo(4, "iid", 0)], ids=["exact", "draws"])
@pytest.mark.usefixtures("errors_in_a_moment")
def test_level_by_simulation(model, method):
    given_model, draw = MODELS[model]
    n_runs, options = 400, {"method": method, "n_reference": 100}
    found = [
        goodness_of_fit_test(draw(10, run).top(2), given_model, rk.Mallows("median"), 39, run, **options).pvalue <= 0.1
        for run in range(n_runs)
    ]
    assert abs(sum(found) / n_runs - 0.1) <= 4 * math.sqrt(0.1 * 0.9 / n_runs)


# ---------------------------------------------------------------------- what comes in and out


def test_widths_do_not_come_from_the_data():
    """A kernel that depended on the data would be another one for each simulation."""
    alike, apart = rk.Rankings([[0, 1, 2, 3]] * 6), rk.datasets.uniform(6, 4, rng=1)
    results = [goodness_of_fit_test(X, rk.Uniform(), rk.Mallows("median"), 3) for X in (alike, apart)]
    assert results[0].kernel == results[1].kernel


def test_what_is_refused():
    X = rk.Rankings([[0, 1, 2], [1, 0, 2]])
    with pytest.raises(rk.RankingError, match="row 1 has free items"):
        goodness_of_fit_test([[0, 1, 2], [0, 1, -1]], rk.Uniform(), rk.Mallows(NU))
    with pytest.raises(TypeError, match="kernel"):
        goodness_of_fit_test(X, rk.Uniform(), [0.2, 1.0])
    with pytest.raises(ValueError, match="n_simulations=0"):
        goodness_of_fit_test(X, rk.Uniform(), rk.Mallows(NU), n_simulations=0)
    with pytest.raises(ValueError, match="one estimator for all pairs"):
        goodness_of_fit_test(X, rk.Uniform(), rk.Mallows(NU), method="mixed")
    with pytest.raises(rk.RankingError, match=r"X has 1 voter\(s\)"):
        goodness_of_fit_test(X[:1], rk.Uniform(), rk.Mallows(NU))
    with pytest.raises(rk.RankingError, match="full rankings of the items of X and gave"):
        goodness_of_fit_test(X, lambda n, seed: rk.datasets.uniform(n, 4, rng=seed), rk.Mallows(NU))
    with pytest.raises(rk.RankingError, match="cannot be drawn from without weights"):
        goodness_of_fit_test(X, rk.LogDensity(lambda ranks: np.zeros(len(ranks))), rk.Mallows(NU))


def test_items_of_a_function_are_matched_by_name():
    X = rk.Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"]], counts=[3, 3])

    def always(n, seed):
        return rk.Rankings.from_orders([["c", "b", "a"]], items=["c", "a", "b"], counts=[n])

    witness = goodness_of_fit_test(X, always, rk.Mallows(1.0), 3).witness
    np.testing.assert_allclose(witness, [(1 + math.exp(-1)) / 2 - math.exp(-3), (1 + math.exp(-1)) / 2 - math.exp(-2)])

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
from rankernel import goodness_of_fit_test
from rankernel.completions import LogDensity

NU = 0.3
# Few draws on purpose; another test is about the warning.
pytestmark = pytest.mark.filterwarnings("ignore:kernel values are estimated")


def expanded(rows, counts):
    return [row for row, count in zip(rows, counts, strict=True) for _ in range(count)]


def coarsen(full, pattern):
    """A full ranking with its items put into the buckets of another ranking, position by position."""
    return tuple(sorted(pattern)[position] for position in full)


@cache
def marginal(r, s):
    return naive.marginal(naive.mallows(NU), r, s)


def squared_discrepancy(rows, model, biased):
    """Between voters and a model (probabilities of full rankings), with draws coarsened like a random voter."""
    n = len(rows)
    drawn = Counter()
    for full, p in model.items():
        for pattern in rows:
            drawn[coarsen(full, pattern)] += p / n
    within = math.fsum(marginal(rows[i], rows[j]) for i in range(n) for j in range(n) if biased or i != j)
    across = math.fsum(p * marginal(r, s) for r in rows for s, p in drawn.items())
    model_norm = math.fsum(p * q * marginal(r, s) for r, p in drawn.items() for s, q in drawn.items())
    return within / (n * (n - (not biased))) - 2 * across / n + model_norm


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
def test_statistic_with_the_uniform_model(sample, biased):
    rows, counts = sample
    result = goodness_of_fit_test(
        rk.Rankings(rows, counts=counts), rk.Uniform(), rk.Mallows(NU), n_simulations=3, biased=biased
    )
    voters = expanded(rows, counts)
    expected = squared_discrepancy(voters, uniform_model(len(rows[0])), biased)
    assert result.statistic == pytest.approx(expected, rel=1e-11, abs=1e-13)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.permutations(range(4)).map(tuple), min_size=1, max_size=3), st.booleans())
def test_statistic_with_a_point_mass(rows, biased):
    """The embedding from draws is exact if all voters have the same buckets."""
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


def test_embedding_from_draws_is_unbiased():
    X = rk.Rankings([[0, 1, 2, 2], [1, 0, 2, 2]], counts=[3, 2])
    exact = goodness_of_fit_test(X, rk.Uniform(), rk.Mallows(NU), n_simulations=3).statistic

    def flat(n, seed):
        return rk.datasets.uniform(n, 4, rng=seed)

    result = [
        goodness_of_fit_test(X, flat, rk.Mallows(NU), n_simulations=1, rng=seed, n_reference=200).statistic
        for seed in range(40)
    ]
    assert abs(np.mean(result) - exact) < 5 * np.std(result) / math.sqrt(40)


@pytest.mark.parametrize("biased", [False, True])
def test_draws_depend_on_the_ranking_only(biased):
    """Different draws compare two voters with the same ranking, and a voter with the tied ranking."""
    X = rk.Rankings([[0, 1, 2, 2], [0, 0, 0, 0], [1, 0, 2, 2]], counts=[3, 1, 2])
    method = rk.MonteCarlo(6, "iid", 0, rng=3)
    result = goodness_of_fit_test(X, rk.Uniform(), rk.Mallows(NU), n_simulations=5, biased=biased, method=method)
    rows = np.concatenate([np.repeat(X.ranks, X.counts, axis=0), np.zeros((1, 4), dtype=int)])
    K = rk.Mallows(NU).gram(rows, method=replace(method, diagonal="unbiased"))
    within = K[:6, :6].sum() - (0 if biased else np.trace(K[:6, :6]))
    expected = within / (6 * (6 - (not biased))) - 2 * K[:6, 6].mean() + K[6, 6]
    assert result.statistic == pytest.approx(expected, rel=1e-12, abs=1e-14)
    assert "Monte Carlo, 6 draws" in result.method


@pytest.mark.parametrize("model", [rk.Uniform(), rk.PlackettLuce([4, 3, 2, 1])], ids=["uniform", "Plackett-Luce"])
def test_estimated_statistics_are_unbiased(model):
    """The bias of a ranking with itself would be more than six standard errors."""
    X = rk.Rankings([[0, 1, 1, 1], [0, 0, 1, 1]], counts=[9, 6])
    exact = goodness_of_fit_test(X, model, rk.Mallows(NU), n_simulations=1, n_reference=50).statistic
    methods = [rk.MonteCarlo(2, "iid", 0, rng=seed) for seed in range(50)]  # two draws: a bias would be largest
    result = [
        goodness_of_fit_test(X, model, rk.Mallows(NU), n_simulations=1, n_reference=50, method=method).statistic
        for method in methods
    ]
    assert abs(np.mean(result) - exact) < 5 * np.std(result, ddof=1) / math.sqrt(50)


def test_auto_estimates_if_the_model_has_no_exact_value():
    """Full rankings have the kernel itself, but the tied ranking has 12! completions."""
    X = rk.datasets.uniform(3, 12, rng=0)
    assert "Monte Carlo" in goodness_of_fit_test(X, rk.Uniform(), rk.Mallows(NU) * rk.Hamming(), n_simulations=1).method


# ---------------------------------------------------------------------- the null distribution


def test_many_distinct_rankings_match_the_simulated_samples():
    """Simulated samples of 7! rankings have a Gram matrix each; the statistic of each is known from its draws."""
    X, samples = rk.datasets.uniform(40, 7, rng=1), []

    def model(n, rng):
        samples.append(rk.datasets.uniform(n, 7, rng=rng))
        return samples[-1]

    result = goodness_of_fit_test(X, model, rk.Mallows(NU), n_simulations=70, n_reference=80)
    reference, *simulated = samples
    for sample, value in zip(simulated[:5], result.null_distribution, strict=False):
        K = rk.Mallows(NU).gram(rk.concat([sample, reference]))
        within, model_norm = (
            (part.sum() - np.trace(part)) / (n * (n - 1)) for part, n in ((K[:40, :40], 40), (K[40:, 40:], 80))
        )
        assert value == pytest.approx(within - 2 * K[:40, 40:].mean() + model_norm, abs=1e-12)


def test_null_distribution_matches_all_draws():
    patterns = [(0, 1, 2), (0, 1, 1)]
    X = rk.Rankings(patterns)
    result = goodness_of_fit_test(X, rk.Uniform(), rk.Mallows(NU), n_simulations=3000, rng=1)
    model = uniform_model(3)
    exact = Counter()
    for draws in itertools.product(model, repeat=2):
        sample = [coarsen(full, pattern) for full, pattern in zip(draws, patterns, strict=True)]
        exact[round(squared_discrepancy(sample, model, False), 11)] += 1 / 36
    distances = np.abs(np.subtract.outer(result.null_distribution, list(exact)))
    assert distances.min(axis=1).max() < 2e-11
    frequencies = np.bincount(distances.argmin(axis=1), minlength=len(exact))
    for frequency, p in zip(frequencies, exact.values(), strict=True):
        assert abs(frequency / 3000 - p) <= 5 * math.sqrt(p * (1 - p) / 3000)
    pvalue = sum(p for value, p in exact.items() if value >= result.statistic - 2e-11)
    assert abs(result.pvalue - pvalue) <= 5 * math.sqrt(pvalue * (1 - pvalue) / 3000) + 1 / 3001


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
def test_level_and_power_in_a_few_runs(model, method):
    """Top-1, top-2 and full rankings of the model are not rejected too often; those of another one are."""
    given_model, draw = MODELS[model]
    lengths = [1, 2, 3, 3] * 3

    def rate(source, n_runs, level, n_simulations):
        result = [
            goodness_of_fit_test(
                rk.datasets.truncate(source(12, run), lengths),
                given_model,
                rk.Mallows(NU),
                n_simulations=n_simulations,
                rng=run,
                method=method,
                n_reference=100,
            ).pvalue
            for run in range(n_runs)
        ]
        return np.mean(np.array(result) <= level)

    assert rate(draw, 30, 0.2, 9) <= 0.2 + 4 * math.sqrt(0.2 * 0.8 / 30)
    assert rate(lambda n, seed: rk.datasets.mallows(n, [3, 2, 0, 1], 2.5, rng=seed), 5, 0.05, 39) == 1.0


def test_witness_of_a_model():
    """The mean kernel with the draws of a model approaches that with its probabilities."""
    X, model = rk.Rankings([[0, 1, 2, 3], [1, 0, 3, 2]]), MODELS["Mallows"][0]
    result = goodness_of_fit_test(X, model, rk.Mallows(NU), n_simulations=2, n_reference=20_000)
    weights = {full: math.exp(-0.6 * naive.kendall(full, (1, 0, 3, 2))) for full in itertools.permutations(range(4))}
    total = math.fsum(weights.values())
    for row, value in zip(result.rankings.ranks.tolist(), result.witness, strict=True):
        among = np.mean([marginal(tuple(row), tuple(other)) for other in X.ranks.tolist()])
        expected = math.fsum(w / total * marginal(tuple(row), full) for full, w in weights.items())
        assert value == pytest.approx(among - expected, abs=5 * 0.3 / math.sqrt(20_000))


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", ["auto", rk.MonteCarlo(4, "iid", 0)], ids=["exact", "draws"])
def test_level_by_simulation(model, method):
    given_model, draw = MODELS[model]
    n_runs, options = 400, {"method": method, "n_reference": 100}
    result = [
        goodness_of_fit_test(
            draw(10, run).top(2), given_model, rk.Mallows("median"), n_simulations=39, rng=run, **options
        ).pvalue
        <= 0.1
        for run in range(n_runs)
    ]
    assert abs(sum(result) / n_runs - 0.1) <= 4 * math.sqrt(0.1 * 0.9 / n_runs)


# ---------------------------------------------------------------------- what comes in and out


def test_median_heuristic_does_not_use_the_data():
    """A kernel that depends on the data would be another one for each simulation."""
    identical, different = rk.Rankings([[0, 1, 2, 3]] * 6), rk.datasets.uniform(6, 4, rng=1)
    results = [
        goodness_of_fit_test(X, rk.Uniform(), rk.Mallows("median"), n_simulations=3) for X in (identical, different)
    ]
    assert results[0].kernel == results[1].kernel


def test_level_of_a_fitted_model():
    """P-values are uniform if the model is fitted again to each simulation; otherwise they are far too large."""
    pvalues = {True: [], False: []}
    for run in range(16):
        X = rk.datasets.plackett_luce(40, [3, 2, 1], rng=run)
        model = rk.PlackettLuce.fit(X)
        for fitted, values in pvalues.items():
            options = {"n_simulations": 19, "rng": run, "fitted": fitted}
            values.append(goodness_of_fit_test(X, model, rk.Mallows(NU), **options).pvalue)
    assert 0.25 < np.mean(pvalues[True]) < 0.75
    assert np.mean(pvalues[False]) > 0.75
    known = goodness_of_fit_test(X, model, rk.Mallows(NU), n_simulations=19, rng=15)
    assert known.pvalue == pvalues[True][-1]  # the fit is recognised
    assert "fitted again" in known.method
    with pytest.raises(ValueError, match="fitted"):
        goodness_of_fit_test(X, rk.Uniform(), fitted=True)


def test_invalid_arguments():
    X = rk.Rankings([[0, 1, 2], [1, 0, 2]])
    with pytest.raises(rk.RankingError, match="row 1 of X"):
        goodness_of_fit_test([[0, 1, 2], [0, 1, -1]], rk.Uniform(), rk.Mallows(NU))
    with pytest.raises(TypeError, match="kernel"):
        goodness_of_fit_test(X, rk.Uniform(), [0.2, 1.0])
    with pytest.raises(ValueError, match="n_simulations"):
        goodness_of_fit_test(X, rk.Uniform(), rk.Mallows(NU), n_simulations=0)
    with pytest.raises(rk.RankingError, match=r"X has 1 voter\(s\)"):
        goodness_of_fit_test(X[:1], rk.Uniform(), rk.Mallows(NU))
    with pytest.raises(rk.RankingError, match="model"):
        goodness_of_fit_test(X, lambda n, seed: rk.datasets.uniform(n, 4, rng=seed), rk.Mallows(NU))
    with pytest.raises(rk.RankingError, match="model"):
        goodness_of_fit_test(X, LogDensity(lambda ranks: np.zeros(len(ranks))), rk.Mallows(NU))


def test_items_of_draws_are_matched_by_name():
    X = rk.Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"]], counts=[3, 3])

    def always(n, seed):
        return rk.Rankings.from_orders([["c", "b", "a"]], items=["c", "a", "b"], counts=[n])

    witness = goodness_of_fit_test(X, always, rk.Mallows(1.0), n_simulations=3).witness
    np.testing.assert_allclose(witness, [(1 + math.exp(-1)) / 2 - math.exp(-3), (1 + math.exp(-1)) / 2 - math.exp(-2)])

"""The Mallows model against enumeration of all completions."""

import itertools
import math

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from strategies import any_ranking, bucket_orders, closed_relation, incomplete, linear_extensions, permutations, posets

from rankernel._utils.combinatorics import log_q_factorial, mean_inversions
from rankernel.completions.draws import coupling_named, row_streams, self_normalized_weights
from rankernel.completions.linear_extensions import enumerate_extensions
from rankernel.errors import ExactnessError, RankingError
from rankernel.models.mallows import (
    MAX_THETA,
    MallowsExtensions,
    MallowsModel,
    MallowsRows,
    n_down_sets,
)
from rankernel.preferences import Preferences
from rankernel.rankings import Rankings

# ---------------------------------------------------------------------- oracles


def probabilities(ranks, center, theta):
    """The Mallows model on the completions of a ranking."""
    weights = {full: math.exp(-theta * naive.kendall(full, center)) for full in naive.completions(ranks)}
    total = math.fsum(weights.values())
    return {full: weight / total for full, weight in weights.items()}


def log_likelihood(rows, counts, center, theta):
    """The log-probability of the sets of completions of the rows."""
    everything = probabilities((-1,) * len(center), center, theta)
    return math.fsum(
        count * math.log(math.fsum(everything[full] for full in naive.completions(row)))
        for row, count in zip(rows, counts, strict=True)
    )


def disagreements(rows, counts, center):
    return sum(
        count * ((row[a] - row[b]) * (center[a] - center[b]) < 0)
        for row, count in zip(rows, counts, strict=True)
        for a, b in itertools.combinations(range(len(center)), 2)
        if row[a] >= 0 and row[b] >= 0
    )


def goodness(draws, expected):
    """The p-value of draws against the expected probabilities; all draws must be among them."""
    index = {full: number for number, full in enumerate(expected)}
    seen = np.bincount([index[tuple(row)] for row in draws.tolist()], minlength=len(expected))
    return chisquare(seen, len(draws) * np.array(list(expected.values()))).pvalue if len(expected) > 1 else 1.0


def iid(model, rows, n_draws, seed=0):
    ranks = np.array(rows, dtype=np.int32)
    draws, logs = model.draw(ranks, n_draws, row_streams(ranks, seed, "test"), coupling_named("iid"))
    return draws, None if logs is None else self_normalized_weights(logs)


# ---------------------------------------------------------------------- draws

CROWN = (6, [(0, 4), (0, 5), (1, 3), (1, 5), (2, 3), (2, 4)])
CENTER = (2, 0, 3, 1, 4)
ROWS = [
    (0, 1, 2, 3, 4),
    (0, 1, 1, 1, 0),
    (1, 0, 1, 1, 1),
    (0, 0, 0, 0, 0),
    (-1, -1, -1, -1, -1),
    (0, 1, -1, -1, 2),
    (0, 0, -1, 1, 1),
    (1, -1, 0, -1, -1),
]


@pytest.mark.parametrize("theta", [0.0, 0.3, 1.2])
def test_draws_follow_the_model(theta):
    full, weights = iid(MallowsModel(CENTER, theta), ROWS, 8000)
    assert weights is None
    assert full.shape == (len(ROWS), 8000, 5)
    assert full.dtype == np.int16
    for row, draws in zip(ROWS, full, strict=True):
        assert goodness(draws, probabilities(row, CENTER, theta)) > 1e-3


@pytest.mark.parametrize("row", [(0, 1, -1, -1, 2), (1, -1, 0, -1, -1), (1, 1, -1, 0, 0), (0, 1, 1, 1, 0)])
@pytest.mark.parametrize("theta", [0.0, 0.7])
def test_weights_of_insertion(row, theta):
    """The weights give the probabilities of the draws, which sum to one."""
    ranks = np.array(row)
    before = (ranks[:, None] < ranks) & (ranks >= 0)[:, None]
    draws, logs = MallowsModel(CENTER, theta).insert(before, 8_000, np.random.default_rng(1))
    proposal = {}
    for full, log in zip(map(tuple, draws.tolist()), logs.tolist(), strict=True):
        probability = math.exp(-theta * naive.kendall(full, CENTER) - log)
        assert proposal.setdefault(full, probability) == probability
    assert set(proposal) == set(naive.completions(row))
    assert math.fsum(proposal.values()) == pytest.approx(1, rel=1e-12)
    assert goodness(draws, proposal) > 1e-3


@settings(max_examples=25, deadline=None)
@given(bucket_orders(5), permutations(5), st.floats(0, 3))
def test_insertion_without_free_items_is_exact(row, center, theta):
    """All weights equal the sum over the completions."""
    ranks = np.array(row)
    _, logs = MallowsModel(center, theta).insert(ranks[:, None] < ranks, 20, np.random.default_rng(0))
    total = math.fsum(math.exp(-theta * naive.kendall(full, center)) for full in naive.completions(row))
    np.testing.assert_allclose(logs, math.log(total), rtol=1e-12, atol=1e-12)


def test_weighted_draws_are_consistent():
    """Self-normalised means of the distance, by their standard error."""
    row, theta = (3, 2, 1, 0, -1), 0.5
    expected = probabilities(row, CENTER, theta)
    mean = sum(p * naive.kendall(full, CENTER) for full, p in expected.items())
    model = MallowsModel(CENTER, theta, max_down_sets=1)
    estimates = []
    for seed in range(60):
        full, weights = iid(model, [row], 400, seed)
        assert weights.mean() == pytest.approx(1, rel=1e-12)
        estimates.append(np.mean(weights[0] * [naive.kendall(f, CENTER) for f in full[0].tolist()]))
    assert np.std(estimates) > 0
    assert abs(np.mean(estimates) - mean) < 5 * np.std(estimates) / np.sqrt(60)


def test_exact_and_weighted_rows():
    model = MallowsModel(CENTER, 0.5, max_down_sets=8)
    full, weights = iid(model, [(0, 1, 2, 3, 4), (0, 1, -1, -1, 2)], 50)
    assert (weights[0] == 1).all()
    assert np.unique(weights[1]).size > 1
    assert (full[1, :, 0] < full[1, :, 1]).all()


def test_draws_depend_on_ranking_and_stream():
    model = MallowsModel(CENTER, 0.5)
    together, _ = iid(model, ROWS, 10)
    for number, row in enumerate(ROWS):
        assert np.array_equal(iid(model, [row], 10)[0][0], together[number])
    assert not np.array_equal(iid(model, ROWS, 10, seed=1)[0], together)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6).flatmap(any_ranking))
def test_number_of_down_sets(row):
    def is_down_set(subset):
        return all(
            row[a] >= row[b] for b in subset if row[b] >= 0 for a in range(len(row)) if a not in subset and row[a] >= 0
        )

    n = len(row)
    subsets = [set(s) for size in range(n + 1) for s in itertools.combinations(range(n), size)]
    assert n_down_sets(np.array(row)) == sum(map(is_down_set, subsets))


def test_draws_of_a_partial_order():
    """Two chains of two: exactly on the lattice, and by weighted insertion if the lattice is too large."""
    before = np.zeros((4, 4), dtype=bool)
    before[[0, 2], [1, 3]] = True
    center, theta = (3, 1, 0, 2), 0.6
    allowed = [f for f in naive.completions((-1,) * 4) if f[0] < f[1] and f[2] < f[3]]
    weights = {full: math.exp(-theta * naive.kendall(full, center)) for full in allowed}
    total = math.fsum(weights.values())
    model = MallowsModel(center, theta)
    draws, logs = model.draw_relation(before, 10_000, np.random.default_rng(4))
    assert logs is None
    assert goodness(draws, {full: weight / total for full, weight in weights.items()}) > 1e-3
    draws, logs = MallowsModel(center, theta, max_down_sets=1).draw_relation(before, 2000, np.random.default_rng(4))
    proposal = {
        tuple(f): weights[tuple(f)] / math.exp(log) for f, log in zip(draws.tolist(), logs.tolist(), strict=True)
    }
    assert len(proposal) == len(allowed)
    assert math.fsum(proposal.values()) == pytest.approx(1, rel=1e-12)


# ---------------------------------------------------------------------- fitting


def data_sets(make):
    def of_size(n):
        return st.lists(st.tuples(make(n), st.integers(1, 5)), min_size=1, max_size=5)

    return st.integers(2, 5).flatmap(of_size)


@settings(max_examples=20, deadline=None)
@given(data_sets(any_ranking), st.one_of(st.just(0.0), st.floats(1e-3, 3)))
def test_likelihood(data, theta):
    rows, counts = zip(*data, strict=True)
    center = tuple(reversed(range(len(rows[0]))))
    likelihood, weights = MallowsRows(Rankings(np.array(rows)), 10_000), np.array(counts, dtype=float)
    value = weights @ likelihood.log_prob(np.array(center), theta)
    assert value == pytest.approx(log_likelihood(rows, counts, center, theta), rel=1e-11, abs=1e-11)
    everything = probabilities((-1,) * len(center), center, theta)
    derivative = 0.0
    for row, count in data:
        for sign, part in ((1, everything), (-1, probabilities(row, center, theta))):
            derivative += sign * count * math.fsum(p * naive.kendall(full, center) for full, p in part.items())
    assert likelihood.derivative(weights, np.array(center))(theta) == pytest.approx(derivative, rel=1e-11, abs=1e-11)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5).flatmap(lambda n: st.tuples(st.permutations(range(n)), any_ranking(n))), st.floats(0, 3))
def test_log_prob(both, theta):
    center, row = both
    everything = [0] * len(row)
    found = MallowsModel(center, theta).log_prob(Rankings([row, everything]))
    expected = [log_likelihood([row], [1], tuple(center), theta), 0.0]
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(data_sets(lambda n: st.one_of(bucket_orders(n), incomplete(n))))
def test_fitted_theta_has_maximum_likelihood(data):
    rows, counts = zip(*data, strict=True)
    model = MallowsModel.fit(Rankings(np.array(rows), counts=counts))
    best = log_likelihood(rows, counts, model.center, model.theta)
    for theta in [0, *np.geomspace(1e-3, 25, 25)]:
        assert log_likelihood(rows, counts, model.center, theta) <= best + 1e-9 * abs(best) + 1e-12


@settings(max_examples=20, deadline=None)
@given(data_sets(any_ranking))
def test_center_has_the_fewest_disagreements(data):
    rows, counts = zip(*data, strict=True)
    found = MallowsRows(Rankings(np.array(rows))).best_center(np.array(counts, dtype=float))[0].tolist()
    fewest = min(disagreements(rows, counts, full) for full in itertools.permutations(range(len(found))))
    assert disagreements(rows, counts, found) == fewest


def test_center_of_many_items_is_a_local_optimum():
    rng = np.random.default_rng(0)
    rows = [np.argsort(np.argsort(np.arange(20) + 8 * rng.standard_normal(20))).tolist() for _ in range(9)]
    found = MallowsRows(Rankings(np.array(rows))).best_center(np.ones(len(rows)))[0].tolist()
    counts = [1] * len(rows)
    fewest = disagreements(rows, counts, found)
    assert fewest <= min(disagreements(rows, counts, full) for full in [*rows, list(range(20))])
    order = sorted(range(20), key=found.__getitem__)
    for item, place in itertools.product(range(20), range(20)):
        moved = [x for x in order if x != item]
        moved.insert(place, item)
        assert disagreements(rows, counts, [moved.index(x) for x in range(20)]) >= fewest


@pytest.mark.parametrize(
    "ranks", [[[0, 1, 2, 3], [1, 0, 2, 3], [0, 2, 1, 1], [0, 0, 1, 1]], [[0, 1, -1, 2], [2, 0, 1, 3]]]
)
def test_summary_of_a_fit(ranks):
    """The log-likelihood by enumeration, and the standard error by its second difference."""
    data = Rankings(ranks, items=["w", "x", "y", "z"], counts=range(2, 2 + len(ranks)))
    model = MallowsModel.fit(data)
    every = list(itertools.permutations(range(4)))

    def value(theta):
        weights = {full: np.exp(-theta * naive.kendall(full, model.center)) for full in every}
        inside = [sum(weights[tuple(full)] for full in naive.completions(row)) for row in ranks]
        return data.counts @ np.log(np.array(inside) / sum(weights.values()))

    summary, step = model.summary, 1e-3
    assert summary.items == data.items
    assert summary.log_likelihood == pytest.approx(value(model.theta), rel=1e-9)
    second = (value(model.theta + step) - 2 * value(model.theta) + value(model.theta - step)) / step**2
    assert summary.standard_errors[0] == pytest.approx((-second) ** -0.5, rel=1e-4)
    assert summary.aic == pytest.approx(4 - 2 * summary.log_likelihood)
    assert summary.bic == pytest.approx(2 * np.log(data.n_voters) - 2 * summary.log_likelihood)
    assert model.sample(3).items == data.items
    assert model == MallowsModel(model.center, model.theta)
    by_equation = MallowsModel.fit(Rankings([[0, 1, -1]]), max_down_sets=0).summary
    assert np.isnan([by_equation.log_likelihood, *by_equation.standard_errors]).all()


def test_counts_are_multiplicities():
    rows = np.array([[0, 1, 2, 3], [1, 0, 1, 1], [0, -1, 1, -1]])
    counted = MallowsModel.fit(Rankings(rows, counts=[3, 1, 2]))
    repeated = MallowsModel.fit(Rankings(rows[[0, 0, 1, 0, 2, 2]]))
    assert counted.center == repeated.center
    assert counted.theta == pytest.approx(repeated.theta, rel=1e-12)


@pytest.mark.parametrize("kept", ["all", "first four", "random four"])
def test_fit_recovers_the_model(kept):
    """Within five standard errors, from the observed information."""
    center, theta = (3, 0, 5, 1, 4, 2), 0.6
    full, _ = iid(MallowsModel(center, theta), [(0,) * 6], 3000)
    ranks = full[0].astype(np.int32)
    if kept == "first four":
        ranks = np.minimum(ranks, 4)
    elif kept == "random four":
        hidden = np.argsort(np.random.default_rng(0).random(ranks.shape), axis=1)[:, :2]
        np.put_along_axis(ranks, hidden, -1, axis=1)
    data = Rankings(ranks)
    model = MallowsModel.fit(data)
    assert model.center == center
    derivative = MallowsRows(data).derivative(np.ones(len(data)), np.array(center))
    information = (derivative(theta - 1e-4) - derivative(theta + 1e-4)) / 2e-4
    assert abs(model.theta - theta) < 5 / math.sqrt(information)
    if kept == "random four":  # the estimating equation is less efficient
        by_pairs = MallowsModel.fit(data, max_down_sets=0)
        assert by_pairs.theta != model.theta
        assert abs(by_pairs.theta - theta) < 10 / math.sqrt(information)


def test_extreme_data():
    assert MallowsModel.fit(Rankings([[0, 1, 2]])).theta == MAX_THETA
    assert MallowsModel.fit(Rankings([[0, 0, 0]])).theta == 0
    assert MallowsModel.fit(Rankings([[0, 1], [1, 0]])).theta == 0


@pytest.mark.parametrize("theta", [0.2, 0.7, 1.5])
def test_estimating_equation_is_unbiased(theta):
    """Incomplete rows that state random pairs: expected equals observed discordances at the true theta."""
    center = (2, 0, 3, 1)
    everything = probabilities((-1,) * 4, center, theta)
    rng = np.random.default_rng(0)
    total = 0.0
    for _ in range(5):
        listed = rng.choice(4, 2, replace=False)
        for full, p in everything.items():
            row = [-1] * 4
            row[listed[0]], row[listed[1]] = (0, 1) if full[listed[0]] < full[listed[1]] else (1, 0)
            total += p * MallowsRows(Rankings([row]), 0).derivative(np.ones(1), np.array(center))(theta)
    assert total == pytest.approx(0, abs=1e-12)


def test_limit_of_down_sets():
    rows = np.array([[0, 1, 2, 3], [0, 2, 1, 3], [0, -1, -1, 1], [1, -1, -1, 0]])
    data = Rankings(rows, counts=[1, 2, 5, 1])
    exact, by_pairs = MallowsModel.fit(data), MallowsModel.fit(data, max_down_sets=15)
    assert exact.theta != by_pairs.theta
    assert MallowsModel.fit(data, max_down_sets=24) == exact  # two lattices of twelve
    assert MallowsModel.fit(data, max_down_sets=0) == by_pairs


def test_fit_with_a_given_center():
    rows, counts = [(0, 1, 2), (0, 2, 1), (1, 0, 2)], [4, 2, 2]
    model = MallowsModel.fit(Rankings(rows, counts=counts), center=[0, 2, 1])
    assert model.center == (0, 2, 1)
    best = log_likelihood(rows, counts, model.center, model.theta)
    assert all(log_likelihood(rows, counts, model.center, t) <= best for t in np.linspace(0, 3, 30))
    with pytest.raises(RankingError, match="center"):
        MallowsModel.fit(Rankings(rows), center=[0, 1])


def test_preferences():
    """Partial orders that are not rankings, against the sum over their linear extensions."""
    items, pairs = "abcd", [[(0, 1), (2, 3)], [(1, 0), (2, 3)], [(0, 1), (0, 2)], [(3, 1), (0, 2)]]
    named = [[(items[x], items[y]) for x, y in own] for own in pairs]
    prefs, counts = Preferences.from_pairs(named, items=list(items), counts=[5, 1, 2, 1]), [5, 1, 2, 1]
    everything = {theta: probabilities((-1,) * 4, (0, 1, 2, 3), theta) for theta in (0.3, 1.0)}
    for theta, distribution in everything.items():
        expected = [math.log(sum(distribution[full] for full in linear_extensions(4, own))) for own in pairs]
        np.testing.assert_allclose(MallowsModel((0, 1, 2, 3), theta).log_prob(prefs), expected, rtol=1e-12)
    model = MallowsModel.fit(prefs)
    best = model.log_prob(prefs) @ counts
    for theta in np.geomspace(1e-3, 25, 25):
        assert MallowsModel(model.center, theta).log_prob(prefs) @ counts <= best + 1e-9
    assert MallowsModel.fit(prefs, max_down_sets=0).center == model.center


# ---------------------------------------------------------------------- weighted linear extensions


@settings(max_examples=60, deadline=None)
@given(posets(), st.one_of(st.just(0.0), st.floats(1e-6, 5)), st.randoms(use_true_random=False))
def test_extension_sums(poset, theta, random):
    n, pairs = poset
    center = random.sample(range(n), n)
    distances = [naive.kendall(full, center) for full in linear_extensions(n, pairs)]
    weights = [math.exp(-theta * d) for d in distances]
    model = MallowsExtensions(closed_relation(n, pairs), center)
    total = math.fsum(weights)
    mean = math.fsum(w * d for w, d in zip(weights, distances, strict=True)) / total
    assert model.log_sum(theta) == pytest.approx(math.log(total), rel=1e-12, abs=1e-12)
    assert model.mean_distance(theta) == pytest.approx(mean, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("theta", [0.0, 1e-9, 0.001, 0.04999, 0.05, 1.0, 40.0])
def test_mean_inversions(theta):
    n = 30
    numbers = [1]
    for size in range(1, n + 1):
        numbers = [sum(numbers[max(0, k - size + 1) : k + 1]) for k in range(len(numbers) + size - 1)]
    weights = [number * math.exp(-theta * k) for k, number in enumerate(numbers)]
    mean = math.fsum(k * w for k, w in enumerate(weights)) / math.fsum(weights)
    assert mean_inversions(n, theta) == pytest.approx(mean, rel=1e-12)
    assert log_q_factorial(n, theta) == pytest.approx(math.log(math.fsum(weights)), rel=1e-12)


@pytest.mark.parametrize(
    "poset",
    [
        (6, [(0, 4), (0, 5), (1, 3), (1, 5), (2, 3), (2, 4)]),
        (5, [(3, 1), (0, 2)]),
        (5, [(4, 0), (4, 1), (0, 2), (1, 2), (0, 3), (1, 3)]),
        (4, []),
    ],
)
@pytest.mark.parametrize("theta", [0.0, 0.4])
def test_extension_draws(poset, theta):
    n, pairs = poset
    center = np.random.default_rng(n).permutation(n).tolist()
    expected = linear_extensions(n, pairs)
    weights = np.array([math.exp(-theta * naive.kendall(full, center)) for full in expected])
    draws = MallowsExtensions(closed_relation(n, pairs), center).draw(theta, 20_000, np.random.default_rng(3))
    index = {full: number for number, full in enumerate(expected)}
    seen = np.bincount([index[tuple(row)] for row in draws.tolist()], minlength=len(expected))
    assert chisquare(seen, 20_000 * weights / weights.sum()).pvalue > 1e-3


def test_large_theta():
    """Weights as small as exp(-300 * 100), whose sums are computed as logarithms."""
    before = closed_relation(12, [(x, x + 2) for x in range(10)])
    center = np.arange(12)[::-1]
    model = MallowsExtensions(before, center)
    nearest = min(naive.kendall(full, center.tolist()) for full in enumerate_extensions(before).tolist())
    assert model.mean_distance(300.0) == pytest.approx(nearest, rel=1e-12)
    assert model.log_sum(300.0) == pytest.approx(-300.0 * nearest, rel=1e-12)
    draws = model.draw(300.0, 5, np.random.default_rng(0))
    assert [naive.kendall(row, center.tolist()) for row in draws.tolist()] == [nearest] * 5


# ---------------------------------------------------------------------- values and errors


def test_model_is_a_value():
    assert MallowsModel(np.array([1, 0]), 1) == MallowsModel([1, 0], 1.0) == MallowsModel(Rankings([[1, 0]]), 1.0)
    assert hash(MallowsModel([1, 0], 1)) == hash(MallowsModel((1, 0), 1.0))


def test_invalid_arguments():
    with pytest.raises(RankingError, match="center"):
        MallowsModel([0, 0, 1], 1)
    with pytest.raises(ValueError, match="theta"):
        MallowsModel([0, 1], -1)
    with pytest.raises(ValueError, match="theta"):
        MallowsModel([0, 1], math.nan)
    with pytest.raises(RankingError, match="center ranks 2 items"):
        iid(MallowsModel([0, 1], 1), [(0, 1, 2)], 1)
    with pytest.raises(RankingError, match="X"):
        MallowsModel.fit(Rankings(np.empty((0, 3))))
    with pytest.raises(RankingError, match="center"):
        MallowsExtensions([[0, 1], [0, 0]], [1, 2])
    with pytest.raises(ExactnessError, match="more than 10 down-sets"):
        MallowsExtensions(closed_relation(6, [(0, 4), (1, 3), (1, 5), (2, 3)]), range(6), limit=10)
    ranks = np.array([[0, 0]], dtype=np.int32)
    with pytest.raises(RankingError, match="coupling"):
        MallowsModel([0, 1], 1).draw(ranks, 2, row_streams(ranks, 0, "test"), coupling_named("antithetic"))

import itertools
import math

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from strategies import any_ranking, bucket_orders, incomplete, permutations

from rankernel._utils.rng import row_streams
from rankernel.completions.couplings import coupling_named
from rankernel.errors import ExactnessError, RankingError, SamplingWarning
from rankernel.models import mallows as mm
from rankernel.models.mallows import MallowsModel, mallows_center
from rankernel.rankings import Rankings

# ---------------------------------------------------------------------- oracles


def probabilities(ranks, center, theta):
    """The Mallows model on the completions of a ranking."""
    weights = {full: math.exp(-theta * naive.kendall(full, center)) for full in naive.completions(ranks)}
    total = math.fsum(weights.values())
    return {full: weight / total for full, weight in weights.items()}


def log_likelihood(rows, counts, center, theta):
    """The log of the probability, under the model on all full rankings, that they complete each row."""
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
    return model.draw(ranks, n_draws, row_streams(ranks, seed, "test"), coupling_named("iid"))


# ---------------------------------------------------------------------- draws

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
def test_exact_draws_follow_the_model(theta):
    full, weights = iid(MallowsModel(CENTER, theta), ROWS, 8000)
    assert weights is None
    assert full.shape == (len(ROWS), 8000, 5)
    assert full.dtype == np.int16
    for row, draws in zip(ROWS, full, strict=True):
        assert goodness(draws, probabilities(row, CENTER, theta)) > 1e-3


@pytest.mark.parametrize("row", [(0, 1, -1, -1, 2), (1, -1, 0, -1, -1), (1, 1, -1, 0, 0), (0, 1, 1, 1, 0)])
@pytest.mark.parametrize("theta", [0.0, 0.7])
def test_every_insertion_has_its_weight(row, theta):
    """A weight is the target over the probability of the draw: so these probabilities are known, and sum to one."""
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
def test_insertion_is_exact_without_free_items(row, center, theta):
    """All weights are the sum over the completions: the draws need none."""
    ranks = np.array(row)
    _, logs = MallowsModel(center, theta).insert(ranks[:, None] < ranks, 20, np.random.default_rng(0))
    total = math.fsum(math.exp(-theta * naive.kendall(full, center)) for full in naive.completions(row))
    np.testing.assert_allclose(logs, math.log(total), rtol=1e-12, atol=1e-12)


def test_weighted_draws_estimate_the_model():
    """Self-normalised means of the distance, by their own standard error."""
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


def test_rows_with_and_without_weights_together():
    model = MallowsModel(CENTER, 0.5, max_down_sets=8)
    full, weights = iid(model, [(0, 1, 2, 3, 4), (0, 1, -1, -1, 2)], 50)
    assert (weights[0] == 1).all()
    assert np.unique(weights[1]).size > 1
    assert (full[1, :, 0] < full[1, :, 1]).all()


def test_draws_depend_on_the_ranking_and_its_stream_alone():
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
    assert mm.n_down_sets(np.array(row)) == sum(map(is_down_set, subsets))


def test_draws_of_a_partial_order():
    """Two chains of two: exactly on the lattice, and by weighted insertion where the lattice may not be built."""
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
def test_likelihood_against_all_permutations(data, theta):
    rows, counts = zip(*data, strict=True)
    center = tuple(reversed(range(len(rows[0]))))
    likelihood = mm.Likelihood(Rankings(np.array(rows), counts=counts), np.array(center))
    assert likelihood.value(theta) == pytest.approx(log_likelihood(rows, counts, center, theta), rel=1e-11, abs=1e-11)
    everything = probabilities((-1,) * len(center), center, theta)
    slope = 0.0
    for row, count in data:
        for sign, part in ((1, everything), (-1, probabilities(row, center, theta))):
            slope += sign * count * math.fsum(p * naive.kendall(full, center) for full, p in part.items())
    assert likelihood.slope(theta) == pytest.approx(slope, rel=1e-11, abs=1e-11)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5).flatmap(lambda n: st.tuples(st.permutations(range(n)), any_ranking(n))), st.floats(0, 3))
def test_log_probability_of_a_ranking(both, theta):
    center, row = both
    everything = [0] * len(row)
    found = MallowsModel(center, theta).log_prob(Rankings([row, everything]))
    expected = [log_likelihood([row], [1], tuple(center), theta), 0.0]
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(data_sets(lambda n: st.one_of(bucket_orders(n), incomplete(n))))
def test_fitted_theta_beats_all_others(data):
    rows, counts = zip(*data, strict=True)
    model = MallowsModel.fit(Rankings(np.array(rows), counts=counts))
    best = log_likelihood(rows, counts, model.center, model.theta)
    for theta in [0, *np.geomspace(1e-3, 25, 25)]:
        assert log_likelihood(rows, counts, model.center, theta) <= best + 1e-9 * abs(best) + 1e-12


@settings(max_examples=20, deadline=None)
@given(data_sets(any_ranking))
def test_consensus_has_the_fewest_disagreements(data):
    rows, counts = zip(*data, strict=True)
    found = mallows_center(Rankings(np.array(rows), counts=counts)).tolist()
    fewest = min(disagreements(rows, counts, full) for full in itertools.permutations(range(len(found))))
    assert disagreements(rows, counts, found) == fewest


def test_consensus_of_many_items_is_a_local_optimum():
    rng = np.random.default_rng(0)
    rows = [np.argsort(np.argsort(np.arange(20) + 8 * rng.standard_normal(20))).tolist() for _ in range(9)]
    found = mallows_center(Rankings(np.array(rows))).tolist()
    counts = [1] * len(rows)
    fewest = disagreements(rows, counts, found)
    assert fewest <= min(disagreements(rows, counts, full) for full in [*rows, list(range(20))])
    order = sorted(range(20), key=found.__getitem__)
    for item, place in itertools.product(range(20), range(20)):
        moved = [x for x in order if x != item]
        moved.insert(place, item)
        assert disagreements(rows, counts, [moved.index(x) for x in range(20)]) >= fewest


def test_local_search_finds_the_consensus_of_few_items(monkeypatch):
    rng = np.random.default_rng(3)
    data = Rankings(np.array([rng.permutation(6) for _ in range(7)]))
    exact = disagreements(data.ranks.tolist(), [1] * 7, mallows_center(data).tolist())
    monkeypatch.setattr(mm, "MAX_EXACT_ITEMS", 0)
    assert disagreements(data.ranks.tolist(), [1] * 7, mallows_center(data).tolist()) == exact


def test_counts_are_repetitions():
    rows = np.array([[0, 1, 2, 3], [1, 0, 1, 1], [0, -1, 1, -1]])
    counted = MallowsModel.fit(Rankings(rows, counts=[3, 1, 2]))
    repeated = MallowsModel.fit(Rankings(rows[[0, 0, 1, 0, 2, 2]]))
    assert counted.center == repeated.center
    assert counted.theta == pytest.approx(repeated.theta, rel=1e-12)


@pytest.mark.parametrize("kept", ["all", "first four", "random four"])
def test_fit_recovers_the_model(kept):
    """Within five standard errors, from the information in the data: minus the slope of the slope."""
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
    likelihood = mm.Likelihood(data.unique(), np.array(center))
    information = (likelihood.slope(theta - 1e-4) - likelihood.slope(theta + 1e-4)) / 2e-4
    assert abs(model.theta - theta) < 5 / math.sqrt(information)


def test_extreme_data():
    assert MallowsModel.fit(Rankings([[0, 1, 2]])).theta == mm.MAX_THETA
    assert MallowsModel.fit(Rankings([[0, 0, 0]])).theta == 0
    assert MallowsModel.fit(Rankings([[0, 1], [1, 0]])).theta == 0


def test_rankings_with_too_many_free_items_do_not_count(monkeypatch):
    monkeypatch.setattr(mm, "FEW_DOWN_SETS", 8)
    rows = np.array([[0, 1, 2, 3], [0, 2, 1, 3], [0, -1, -1, 1]])
    with pytest.warns(SamplingWarning, match="2 rankings with many free items"):
        model = MallowsModel.fit(Rankings(rows, counts=[1, 1, 2]))
    assert model.theta == pytest.approx(MallowsModel.fit(Rankings(rows[:2])).theta, rel=1e-12)
    with pytest.raises(ExactnessError, match="choose theta yourself"):
        MallowsModel.fit(Rankings(rows[2:]))


# ---------------------------------------------------------------------- refusals


def test_model_is_a_value():
    assert MallowsModel(np.array([1, 0]), 1) == MallowsModel([1, 0], 1.0) == MallowsModel(Rankings([[1, 0]]), 1.0)
    assert hash(MallowsModel([1, 0], 1)) == hash(MallowsModel((1, 0), 1.0))


def test_refusals():
    with pytest.raises(RankingError, match="full ranking"):
        MallowsModel([0, 0, 1], 1)
    with pytest.raises(ValueError, match="theta=-1"):
        MallowsModel([0, 1], -1)
    with pytest.raises(ValueError, match="theta=nan"):
        MallowsModel([0, 1], math.nan)
    with pytest.raises(RankingError, match="ranks 2 items, the rankings have 3"):
        iid(MallowsModel([0, 1], 1), [(0, 1, 2)], 1)
    with pytest.raises(RankingError, match="no rankings"):
        MallowsModel.fit(Rankings(np.empty((0, 3))))
    ranks = np.array([[0, 0]], dtype=np.int32)
    with pytest.raises(RankingError, match="iid"):
        MallowsModel([0, 1], 1).draw(ranks, 2, row_streams(ranks, 0, "test"), coupling_named("antithetic"))

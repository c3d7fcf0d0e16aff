"""The Plackett-Luce model against sums over all completions."""

import itertools
import math
from collections import Counter

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import any_ranking, sized

from rankernel import PlackettLuce
from rankernel.completions import draw
from rankernel.errors import RankingError
from rankernel.models.plackett_luce import first_later_arrival, integrate, log_density, loss, mode
from rankernel.rankings import Rankings

WEIGHTS = [0.3, 2.0, 1.0, 5.0, 0.7, 1.5]


def full_probability(full, weights):
    """Choose items one after another with probability proportional to their weights."""
    remaining, probability = sum(weights), 1.0
    for item in sorted(range(len(full)), key=full.__getitem__):
        probability *= weights[item] / remaining
        remaining -= weights[item]
    return probability


def probability(ranks, weights):
    return math.fsum(full_probability(full, weights) for full in naive.completions(ranks))


def gradient_of_log_prob(ranks, weights):
    """The mean over completions of the gradient of a full ranking in the log-weights."""
    n, total, gradient = len(ranks), 0.0, [0.0] * len(ranks)
    for full in naive.completions(ranks):
        p = full_probability(full, weights)
        total += p
        for position in range(n):
            remaining = [a for a in range(n) if full[a] >= position]
            for a in remaining:
                gradient[a] += p * ((full[a] == position) - weights[a] / sum(weights[b] for b in remaining))
    return [g / total for g in gradient]


weight_lists = st.lists(st.floats(0.05, 20), min_size=6, max_size=6)


# ---------------------------------------------------------------------- likelihood


@settings(max_examples=40, deadline=None)
@given(sized(any_ranking), weight_lists)
def test_log_prob(rankings, weights):
    (ranks,) = rankings
    weights = weights[: len(ranks)]
    found = PlackettLuce(weights).log_prob([ranks])
    assert found == pytest.approx([math.log(probability(ranks, weights))], rel=1e-12, abs=1e-12)


@settings(max_examples=20, deadline=None)
@given(sized(any_ranking, low=2, high=5, length=3), weight_lists, st.lists(st.integers(1, 9), min_size=3, max_size=3))
def test_loss_and_gradient(rankings, weights, counts):
    weights = weights[: len(rankings[0])]
    logs = np.log(weights)
    value, gradient = loss(logs, Rankings(rankings, counts=counts), penalty=0.3)
    exact = [0.3 * x for x in logs]
    likelihood = 0.0
    for ranks, count in zip(rankings, counts, strict=True):
        likelihood += count * math.log(probability(ranks, weights))
        for a, g in enumerate(gradient_of_log_prob(ranks, weights)):
            exact[a] -= count * g
    assert value == pytest.approx(0.15 * float(logs @ logs) - likelihood, rel=1e-12, abs=1e-12)
    assert gradient == pytest.approx(exact, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("weight", [1e-6, 1.0, 1e6])
def test_bucket_of_very_different_weights(weight):
    """Inclusion-exclusion: the sum over subsets S of the bucket of (-1)^|S| W / (W + w(S))."""
    bucket, later = [1.0, weight, 2.0], 0.5
    terms = [
        (-1) ** size * later / (later + sum(chosen))
        for size in range(4)
        for chosen in itertools.combinations(bucket, size)
    ]
    found = PlackettLuce([*bucket, later]).log_prob([[0, 0, 0, 1]])[0]
    # The terms of the oracle cancel, so its rounding error is about 1e-15.
    assert math.exp(found) == pytest.approx(math.fsum(terms), abs=1e-14)


def test_large_bucket_of_equal_weights():
    """The probability that m of n equal items come first is 1 / C(n, m)."""
    for n_items, size in ((30, 12), (200, 100), (1000, 3)):
        ranks = [0] * size + [1] * (n_items - size)
        found = PlackettLuce(np.full(n_items, 7.0)).log_prob([ranks])[0]
        assert found == pytest.approx(-math.log(math.comb(n_items, size)), rel=1e-12)


# ---------------------------------------------------------------------- draws

CASES = [
    (0, 1, 2, 3),
    (0, 1, 1, 1),
    (0, 0, 1, 1),
    (0, 0, 0, 1),
    (0, 0, 1, 2),
    (1, 0, 0, 2),
    (0, 1, -1, -1),
    (0, 0, 1, -1),
    (-1, 0, 1, 1),
    (1, 0, 0, -1),
    (-1, -1, -1, -1),
    (-1, 0, -1, -1),
]


@pytest.mark.parametrize("ranks", CASES)
def test_draws_follow_the_model(ranks):
    weights = WEIGHTS[:4]
    drawn = Counter(map(tuple, draw([ranks], 15_000, completions=PlackettLuce(weights)).ranks[0].tolist()))
    total = probability(ranks, weights)
    completions = naive.completions(ranks)
    assert set(drawn) <= set(completions)
    expected = {x: 15_000 * full_probability(x, weights) / total for x in completions}
    statistic = sum((drawn[x] - e) ** 2 / e for x, e in expected.items())
    freedom = len(completions) - 1
    assert statistic <= freedom + 5 * math.sqrt(2 * freedom)


@pytest.mark.parametrize("ranks", [(0, 0, 1, 1, 2, 2), (0, 0, 1, 1, -1, -1), (2, 1, 1, 0, -1, 0)])
def test_mean_positions_of_several_buckets(ranks):
    model = PlackettLuce(WEIGHTS)
    means = draw([ranks] * 300, 200, completions=model, rows=range(300)).ranks.mean(axis=1)
    total = probability(ranks, WEIGHTS)
    for item in range(6):
        exact = sum(full_probability(x, WEIGHTS) * x[item] for x in naive.completions(ranks)) / total
        assert abs(means[:, item].mean() - exact) < 5 * means[:, item].std() / math.sqrt(300)


def arrival_probability(y, rates, later):
    """The probability that the first later arrival is before y and after the bucket, by inclusion-exclusion."""
    subsets = [chosen for size in range(len(rates) + 1) for chosen in itertools.combinations(rates, size)]
    totals = [((-1) ** len(chosen), later + sum(chosen)) for chosen in subsets]
    return math.fsum(sign * later / total * -math.expm1(-total * y) for sign, total in totals)


@pytest.mark.parametrize("rates", [(0.5, 3.0, 1.0), (1.0, 1.0), (0.02, 8.0)])
def test_rejection_sampler(rates):
    """A chi-square test of 200,000 first later arrivals."""
    later, n_numbers, array = 2.0, 200_000, np.array(rates)
    parts, state = np.empty(len(rates) + 1), np.arange(1, 5, dtype=np.uint64)
    log_total = integrate(array, later, parts)
    peak = mode(array, later)
    height = math.exp(log_density(peak, array, later) - log_total)
    drawn = [first_later_arrival(array, later, peak, height, state) for _ in range(n_numbers)]
    edges = [0.1 * i for i in range(26)] + [math.inf]
    below = [arrival_probability(edge, rates, later) for edge in edges]
    expected = n_numbers * np.diff(below) / below[-1]
    statistic = ((np.histogram(drawn, edges)[0] - expected) ** 2 / expected).sum()
    assert abs(statistic - 25) < 5 * math.sqrt(2 * 25)
    mean = np.mean(drawn)
    assert abs(mean - (1 - parts[-1]) / later) < 5 * np.std(drawn) / math.sqrt(n_numbers)


def test_draws_are_reproducible_and_scale_invariant():
    ranks = [(0, 0, 1, -1), (0, 1, 1, 1)]
    drawn = draw(ranks, 20, completions=PlackettLuce([1, 2, 3, 4])).ranks
    assert np.array_equal(drawn[1:], draw(ranks[1:], 20, completions=PlackettLuce([1, 2, 3, 4])).ranks)
    assert np.array_equal(drawn[:, :7], draw(ranks, 7, completions=PlackettLuce([1, 2, 3, 4])).ranks)
    assert np.array_equal(drawn, draw(ranks, 20, completions=PlackettLuce([256, 512, 768, 1024])).ranks)


# ---------------------------------------------------------------------- fit


def test_gradient_vanishes_at_the_fit():
    rankings = [(0, 1, 2, 3), (0, 1, 1, 1), (1, 0, 0, 2), (0, 1, -1, -1), (0, 0, 1, -1)]
    counts = [3, 2, 4, 1, 5]
    logs = np.log(PlackettLuce.fit(Rankings(rankings, counts=counts), penalty=0.2).weights)
    gradient = [-0.2 * x for x in logs]
    for ranks, count in zip(rankings, counts, strict=True):
        for a, g in enumerate(gradient_of_log_prob(ranks, np.exp(logs).tolist())):
            gradient[a] += count * g
    assert gradient == pytest.approx([0] * 4, abs=1e-6)
    assert logs.sum() == pytest.approx(0, abs=1e-12)


def test_summary_of_a_fit():
    """The log-likelihood by its definition, and the standard errors by a numerical Hessian of it."""
    data = Rankings([[0, 1, 2], [1, 0, 2], [2, 0, 1]], items=["x", "y", "z"], counts=[5, 3, 2])
    model = PlackettLuce.fit(data, penalty=1e-8)

    def value(logs):
        total = 0.0
        for row, count in zip(data.ranks, data.counts, strict=True):
            weights = np.exp(logs)[np.argsort(row)]
            total += count * sum(np.log(weights[i] / weights[i:].sum()) for i in range(3))
        return total

    logs, step, eye = np.log(model.weights), 1e-3, np.eye(3)
    steps = [(a, b) for a in (-step, step) for b in (-step, step)]
    second = [
        [sum(np.sign(a * b) * value(logs + a * eye[i] + b * eye[j]) for a, b in steps) for j in range(3)]
        for i in range(3)
    ]
    summary = model.summary
    assert summary.items == data.items
    assert summary.log_likelihood == pytest.approx(value(logs), rel=1e-9)
    expected = np.linalg.pinv(-np.array(second) / (4 * step**2), rcond=1e-5)
    np.testing.assert_allclose(summary.covariance, expected, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(summary.standard_errors**2, np.diag(summary.covariance))
    assert summary.aic == pytest.approx(4 - 2 * summary.log_likelihood)
    assert summary.bic == pytest.approx(2 * np.log(10) - 2 * summary.log_likelihood)
    assert model.sample(2).items == data.items
    assert PlackettLuce(model.weights).summary is None


def test_fit_that_stops_early_warns():
    with pytest.warns(RuntimeWarning, match="max_iter"):
        PlackettLuce.fit(Rankings([(0, 1, 2, 3), (2, 0, 1, 3)], counts=[50, 9]), max_iter=1)


def test_counts_are_multiplicities():
    counted = Rankings([(0, 1, 1), (1, 0, 2)], counts=[3, 2])
    repeated = Rankings([(0, 1, 1)] * 3 + [(1, 0, 2)] * 2)
    assert PlackettLuce.fit(counted).weights == pytest.approx(PlackettLuce.fit(repeated).weights, rel=1e-12)


def test_fit_recovers_the_weights():
    weights = np.array(WEIGHTS)
    full = draw([[-1] * 6], 6000, completions=PlackettLuce(weights)).ranks[0]
    logs = np.log(weights) - np.log(weights).mean()
    for ballots in (Rankings(full), Rankings(full).top(2), Rankings(np.where(full >= 3, -1, full))):
        found = PlackettLuce.fit(ballots, penalty=1e-6)
        assert (
            found.log_prob(ballots) @ ballots.counts >= PlackettLuce(weights).log_prob(ballots) @ ballots.counts - 1e-6
        )
    found = PlackettLuce.fit(Rankings(full), penalty=1e-6)
    # Six thousand rankings: the standard error of a log-weight is near 1 / sqrt(6000 * 5 / 6) = 0.014.
    assert np.log(found.weights) == pytest.approx(logs, abs=0.07)


def test_weights_of_an_item_that_always_wins():
    weights = PlackettLuce.fit([[0, 1, 2, -1]]).weights
    assert np.isfinite(weights).all()
    assert weights[0] > weights[1] > weights[2]
    assert weights[3] == pytest.approx(1, abs=1e-6)


# ---------------------------------------------------------------------- values and errors


def test_models_are_values():
    assert PlackettLuce([1, 2]) == PlackettLuce(np.array([1.0, 2.0]))
    assert PlackettLuce([1, 2]) != PlackettLuce([2, 1])
    assert len({PlackettLuce([1, 2]), PlackettLuce([1, 2])}) == 1


@pytest.mark.parametrize("weights", [[1, 0], [1, -1], [1, math.inf], [1, math.nan], [], [[1, 2]]])
def test_invalid_weights(weights):
    with pytest.raises(ValueError, match="weights"):
        PlackettLuce(weights)


def test_invalid_arguments():
    with pytest.raises(RankingError, match="weights"):
        PlackettLuce([1e-200, 1e200])
    with pytest.raises(RankingError, match="2 weights for 3 items"):
        draw([[0, 1, 2]], 3, completions=PlackettLuce([1, 2]))
    with pytest.raises(ValueError, match="penalty"):
        PlackettLuce.fit([[0, 1]], penalty=0)
    with pytest.raises(RankingError, match="X"):
        PlackettLuce.fit(np.empty((0, 2), dtype=int))

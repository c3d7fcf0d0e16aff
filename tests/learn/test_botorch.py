import itertools
import math
import warnings

import numpy as np
import pytest

import rankernel as rk

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what other libraries warn of while they are imported
    pytest.importorskip("botorch", reason="BoTorch is not installed: pip install 'rankernel[gpytorch]'")

from rankernel.learn.botorch import (
    fit_improvement,
    log_improvement,
    maximize,
    optimize_permutations,
    ranking_process,
    swaps,
)

TARGET = np.array([3, 0, 2, 1, 4])


def to_target(ranks):
    return float(np.abs(ranks - TARGET[: len(ranks)]).sum())


def tour_length(n_cities, seed):
    """The length of the round trip that visits cities in the order of their ranks."""
    cities = np.random.default_rng(seed).random((n_cities, 2))

    def length(ranks):
        tour = cities[np.argsort(ranks)]
        return float(np.linalg.norm(tour - np.roll(tour, 1, axis=0), axis=1).sum())

    return length


def linear_ordering(n_items, seed):
    """The total weight of pairwise preferences that a ranking contradicts."""
    weights = np.random.default_rng(seed).random((n_items, n_items))

    def total(ranks):
        return float(weights[ranks[:, None] > ranks].sum())

    return total


def expected_smallest(values, n_draws):
    """The mean of the smallest of n draws without replacement: that of random search."""
    ordered, n = sorted(values), len(values)
    chances = [math.comb(n - 1 - i, n_draws - 1) / math.comb(n, n_draws) for i in range(n)]
    return sum(value * chance for value, chance in zip(ordered, chances, strict=True))


def test_swaps():
    assert swaps(np.array([2, 0, 1])).tolist() == [[0, 2, 1], [1, 0, 2], [2, 1, 0]]


def test_local_search_finds_the_maximum():
    start = np.array([[0, 1, 2, 3, 4]])
    rng = np.random.default_rng(0)
    found = maximize(lambda X: -np.abs(X - TARGET).sum(axis=1), start, np.zeros(1), 1, rng)
    np.testing.assert_array_equal(found, TARGET)


def test_local_search_skips_evaluated_permutations():
    all_permutations = np.array(list(itertools.permutations(range(4))))
    for row in (0, 11, 23):
        known = np.delete(all_permutations, row, axis=0)
        found = maximize(lambda X: X[:, 0], known, np.zeros(23), 4, np.random.default_rng(row))
        np.testing.assert_array_equal(found, all_permutations[row])


def test_improvement_is_high_near_good_permutations():
    ranks = np.array([row for row in itertools.permutations(range(5)) if row != tuple(TARGET)])[::2]
    score, kernel = fit_improvement(ranks, np.array([to_target(row) for row in ranks]), rk.Mallows(0.2))
    assert score(np.array([TARGET, TARGET[::-1]])).argmax() == 0
    assert kernel != rk.Mallows(0.2)


@pytest.mark.parametrize("kernel", [rk.Mallows(0.2), rk.Exponential("hamming", 0.4)], ids=str)
def test_improvement_matches_botorch(kernel):
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from gpytorch.mlls import ExactMarginalLogLikelihood

    rng = np.random.default_rng(0)
    ranks, new = (np.array([rng.permutation(6) for _ in range(n)]) for n in (12, 7))
    values = np.array([tour_length(6, 1)(row) for row in ranks])
    score, _ = fit_improvement(ranks, values, kernel)
    model, _ = ranking_process(ranks, values, kernel)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    acquisition = LogExpectedImprovement(model, best_f=-values.min())
    with torch.no_grad():
        expected = acquisition(torch.as_tensor(new, dtype=torch.float64)[:, None, :]).numpy()
    np.testing.assert_allclose(score(new) + np.log(values.std(ddof=1)), expected, rtol=1e-6)


def test_log_improvement():
    from scipy.integrate import quad
    from scipy.stats import norm

    for z in (-9.0, -3.0, -1.0, 0.5, 4.0):
        mean = quad(lambda t, z=z: (t + z) * norm.pdf(t), -z, 40 - z, epsabs=0, epsrel=1e-10)[0]
        assert log_improvement(np.array([z]))[0] == pytest.approx(np.log(mean), rel=1e-6)
    far = log_improvement(np.array([-999.9, -1000.1]))
    assert far[0] - far[1] == pytest.approx(0.2 * 1000, rel=1e-4)


def test_threads_are_restored():
    import torch

    before = torch.get_num_threads()
    optimize_permutations(to_target, 3, 4, n_initial=3)
    assert torch.get_num_threads() == before


def test_result_of_a_search():
    calls = []

    def objective(ranks):
        calls.append(tuple(ranks))
        return to_target(ranks)

    found = optimize_permutations(objective, 4, 7, n_initial=5, rng=3)
    assert [tuple(row) for row in found.ranks] == calls
    assert len(set(calls)) == 7
    assert found.values.tolist() == [to_target(row) for row in found.ranks]
    assert found.value == found.values.min() == to_target(found.best)
    again = optimize_permutations(to_target, 4, 7, n_initial=5, rng=3)
    np.testing.assert_array_equal(again.ranks, found.ranks)


def test_all_permutations_can_be_evaluated():
    found = optimize_permutations(to_target, 3, 6, kernel=rk.Exponential("hamming", 0.5))
    assert {tuple(row) for row in found.ranks} == set(itertools.permutations(range(3)))


@pytest.mark.parametrize(("n_items", "n_evaluations"), [(1, 1), (3, 7), (3, 0)])
def test_wrong_numbers(n_items, n_evaluations):
    with pytest.raises(ValueError, match=r"n_items=1|n_evaluations="):
        optimize_permutations(to_target, n_items, n_evaluations)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_objective_must_be_finite(value):
    with pytest.raises(ValueError, match="objective"):
        optimize_permutations(lambda ranks: value, n_items=3, n_evaluations=2)


def test_search_beats_random_search_on_a_tour():
    length = tour_length(6, 0)
    all_values = [length(np.array(row)) for row in itertools.permutations(range(6))]
    found = optimize_permutations(length, 6, 16, kernel=rk.Exponential("hamming", "median"), rng=0)
    assert found.value < expected_smallest(all_values, 16)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "kernel"),
    [(tour_length, rk.Exponential("hamming")), (linear_ordering, rk.Mallows())],
    ids=["travelling salesman", "linear ordering"],
)
def test_search_beats_random_search_on_average(problem, kernel):
    n_evaluations, regrets, by_chance = 40, [], []
    for seed in range(5):
        objective = problem(7, seed)
        all_values = [objective(np.array(row)) for row in itertools.permutations(range(7))]
        found = optimize_permutations(objective, 7, n_evaluations, kernel=kernel, rng=seed)
        regrets.append(found.value - min(all_values))
        by_chance.append(expected_smallest(all_values, n_evaluations) - min(all_values))
    assert np.mean(regrets) < 0.5 * np.mean(by_chance)

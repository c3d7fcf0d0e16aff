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
    fitted_improvement,
    most_promising,
    optimize_permutations,
    swapped,
)

TARGET = np.array([3, 0, 2, 1, 4])


def to_target(ranks):
    return float(np.abs(ranks - TARGET[: len(ranks)]).sum())


def tour_length(n_cities, seed):
    """The length of the round trip that visits cities in the order of their ranks."""
    places = np.random.default_rng(seed).random((n_cities, 2))

    def length(ranks):
        tour = places[np.argsort(ranks)]
        return float(np.linalg.norm(tour - np.roll(tour, 1, axis=0), axis=1).sum())

    return length


def overruled(n_items, seed):
    """The weight of preferences between two items that a ranking goes against."""
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
    assert swapped(np.array([2, 0, 1])).tolist() == [[0, 2, 1], [1, 0, 2], [2, 1, 0]]


def test_local_search_climbs_to_the_top():
    start = np.array([[0, 1, 2, 3, 4]])
    rng = np.random.default_rng(0)
    found = most_promising(lambda X: -np.abs(X - TARGET).sum(axis=1), start, np.zeros(1), 1, rng)
    np.testing.assert_array_equal(found, TARGET)


def test_local_search_leaves_out_what_is_known():
    everything = np.array(list(itertools.permutations(range(4))))
    for row in (0, 11, 23):
        known = np.delete(everything, row, axis=0)
        found = most_promising(lambda X: X[:, 0], known, np.zeros(23), 4, np.random.default_rng(row))
        np.testing.assert_array_equal(found, everything[row])


def test_improvement_is_expected_near_good_permutations():
    ranks = np.array([row for row in itertools.permutations(range(5)) if row != tuple(TARGET)])[::2]
    score, kernel = fitted_improvement(ranks, np.array([to_target(row) for row in ranks]), rk.Mallows(0.2))
    assert score(np.array([TARGET, TARGET[::-1]])).argmax() == 0
    assert kernel != rk.Mallows(0.2)


def test_search_is_what_it_says():
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


def test_everything_is_found_in_the_end():
    found = optimize_permutations(to_target, 3, 6, kernel=rk.Exponential("hamming", 0.5))
    assert {tuple(row) for row in found.ranks} == set(itertools.permutations(range(3)))


@pytest.mark.parametrize(("n_items", "n_evaluations"), [(1, 1), (3, 7), (3, 0)])
def test_impossible_searches_are_refused(n_items, n_evaluations):
    with pytest.raises(ValueError, match=r"n_items=1 is|n_evaluations=\d is not possible"):
        optimize_permutations(to_target, n_items, n_evaluations)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_values_that_cannot_be_compared(value):
    with pytest.raises(ValueError, match=f"objective is {value} at"):
        optimize_permutations(lambda ranks: value, n_items=3, n_evaluations=2)


def test_a_short_tour_is_found_sooner_than_by_chance():
    length = tour_length(6, 0)
    everything = [length(np.array(row)) for row in itertools.permutations(range(6))]
    found = optimize_permutations(length, 6, 16, kernel=rk.Exponential("hamming", "median"), rng=0)
    assert found.value < expected_smallest(everything, 16)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "kernel"),
    [(tour_length, rk.Exponential("hamming")), (overruled, rk.Mallows())],
    ids=["travelling salesman", "linear ordering"],
)
def test_search_beats_random_search_on_average(problem, kernel):
    n_evaluations, regrets, by_chance = 40, [], []
    for seed in range(5):
        objective = problem(7, seed)
        everything = [objective(np.array(row)) for row in itertools.permutations(range(7))]
        found = optimize_permutations(objective, 7, n_evaluations, kernel=kernel, rng=seed)
        regrets.append(found.value - min(everything))
        by_chance.append(expected_smallest(everything, n_evaluations) - min(everything))
    assert np.mean(regrets) < 0.5 * np.mean(by_chance)

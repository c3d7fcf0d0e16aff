import math

import numpy as np
import pytest

import rankernel as rk
from rankernel.tasks.tests._effects import plug_in_effect
from rankernel.tasks.tests.power import Population, PowerResult, interpolated

NU = 0.3


@pytest.fixture(scope="module")
def pilot():
    return rk.mmd_test(
        rk.datasets.mallows(200, 4, 0.0, seed=1), rk.datasets.mallows(100, 4, 0.5, seed=2), rk.Mallows(NU), 50
    )


def test_the_population_has_the_effect_that_was_estimated(pilot):
    population = Population.of(pilot, None)
    assert plug_in_effect(pilot._voters.gram, population.shares) == pytest.approx(pilot.effect, rel=1e-6)
    assert population.effect == pilot.effect
    np.testing.assert_allclose(population.shares.sum(axis=1), 1.0)
    assert population.sizes(90).tolist() == [60, 30]
    assert population.sizes([7, 9]).tolist() == [7, 9]
    small = Population.of(pilot, 0.005)
    assert plug_in_effect(pilot._voters.gram, small.shares) == pytest.approx(0.005, rel=1e-6)


def test_power_is_that_of_tests_of_new_data(pilot):
    found = rk.power(pilot, [30, 30], n_simulations=200, seed=3)
    real = [
        rk.mmd_test(
            rk.datasets.mallows(30, 4, 0.0, seed=2 * run + 10),
            rk.datasets.mallows(30, 4, 0.5, seed=2 * run + 11),
            rk.Mallows(NU),
            199,
        ).pvalue
        <= 0.05
        for run in range(120)
    ]
    error = math.sqrt(0.25 / 200 + 0.25 / 120)
    assert abs(found.power - np.mean(real)) < 4 * error + 0.1  # the pilot is itself a sample
    assert found.power_interval[0] < found.power < found.power_interval[1]
    assert found.n_voters == (30, 30)


def test_power_without_an_effect_is_the_level(pilot):
    found = rk.power(pilot, 40, effect=0.0, level=0.1, n_simulations=200)
    assert abs(found.power - 0.1) < 4 * math.sqrt(0.09 / 200)


def test_the_number_that_is_needed_has_the_power(pilot):
    steps = []
    found = rk.ballots_needed(pilot, 0.8, n_simulations=60, progress=lambda done, of: steps.append((done, of)))
    assert steps[0] == (1, 60)
    again = rk.power(pilot, sum(found.n_voters), n_simulations=150, seed=99)
    assert abs(again.power - 0.8) < 0.2
    assert "power" in str(found)
    assert found.n_voters == rk.ballots_needed(pilot, 0.8, n_simulations=60).n_voters


def test_a_curve_through_what_was_tried():
    from scipy.stats import norm

    tried = [
        PowerResult(float(norm.cdf(-1.6 + 0.3 * math.sqrt(n))), (0, 1), (n,), 0.05, 0.1, 10**6)
        for n in (10, 40, 80, 160)
    ]
    expected = ((norm.ppf(0.8) + 1.6) / 0.3) ** 2
    assert interpolated(tried, 0.8) == pytest.approx(expected, abs=1.5)


def test_what_cannot_be(pilot):
    with pytest.raises(rk.RankingError, match="larger than the"):
        rk.power(pilot, 50, effect=0.9)
    with pytest.raises(TypeError, match="give the result of mmd_test or k_sample_test"):
        rk.power([[0, 1]], 50)
    with pytest.raises(ValueError, match="n has 3 numbers, and there are 2 groups"):
        rk.power(pilot, [5, 5, 5])
    same = rk.mmd_test(rk.datasets.uniform(10, 3, seed=1), rk.datasets.uniform(10, 3, seed=1), rk.Mallows(NU), 5)
    with pytest.raises(rk.RankingError, match="no difference beyond chance"):
        rk.ballots_needed(same)
    with pytest.raises(rk.RankingError, match="most=100 ballots do not reach a power of 99%"):
        rk.ballots_needed(pilot, 0.99, effect=0.002, n_simulations=10, most=100)

import math

import numpy as np
import pytest

import rankernel as rk

NU = 0.3


@pytest.fixture(scope="module")
def pilot():
    return rk.mmd_test(
        rk.datasets.mallows(200, 4, 0.0, rng=1),
        rk.datasets.mallows(100, 4, 0.5, rng=2),
        rk.Mallows(NU),
        n_permutations=50,
    )


def test_population_has_the_estimated_effect(pilot):
    result = rk.power(pilot, 90, n_simulations=1)
    assert result.effect == pilot.effect
    assert result.n_voters == (60, 30)  # in the proportions of the pilot
    assert rk.power(pilot, [7, 9], effect=0.005, n_simulations=1).n_voters == (7, 9)


def test_power_matches_new_data(pilot):
    result = rk.power(pilot, [30, 30], n_simulations=100, rng=3)
    real = [
        rk.mmd_test(
            rk.datasets.mallows(30, 4, 0.0, rng=2 * run + 10),
            rk.datasets.mallows(30, 4, 0.5, rng=2 * run + 11),
            rk.Mallows(NU),
            n_permutations=199,
        ).pvalue
        <= 0.05
        for run in range(60)
    ]
    error = math.sqrt(0.25 / 100 + 0.25 / 60)
    assert abs(result.power - np.mean(real)) < 4 * error + 0.1  # the pilot is itself a sample
    assert result.power_interval[0] < result.power < result.power_interval[1]
    assert result.n_voters == (30, 30)


def test_power_without_effect_is_alpha(pilot):
    result = rk.power(pilot, 40, effect=0.0, alpha=0.1, n_simulations=200)
    assert abs(result.power - 0.1) < 4 * math.sqrt(0.09 / 200)


def judges(run, n):
    """Judges with different preferences, who move one item up a little."""
    rng = np.random.default_rng(run)
    taste = rng.normal(0, 2, (n, 5))
    first, second = (taste + rng.normal(0, 0.5, (n, 5)) for _ in range(2))
    second[:, 0] += 0.7
    return rk.Rankings.from_scores(first), rk.Rankings.from_scores(second)


def test_power_of_paired_test():
    kernel = rk.Mallows(0.2)
    pilot = rk.paired_test(*judges(0, 400), kernel, n_permutations=1)
    result = rk.power(pilot, 40, n_simulations=100)
    assert result.n_voters == (40,)
    real = np.mean(
        [rk.paired_test(*judges(run, 40), kernel, n_permutations=99, rng=run).pvalue <= 0.05 for run in range(1, 61)]
    )
    unpaired = np.mean(
        [rk.mmd_test(*judges(run, 40), kernel, n_permutations=99, rng=run).pvalue <= 0.05 for run in range(1, 31)]
    )
    error = math.sqrt(real * (1 - real) * 2 / 60)
    assert abs(result.power - real) < 3 * error + 0.08  # the pilot is itself a sample
    assert unpaired < real - 2 * error  # it is not the power of a test of two groups
    none = rk.power(pilot, 30, effect=0.0, alpha=0.1, n_simulations=200)
    assert abs(none.power - 0.1) < 4 * math.sqrt(0.09 / 200)
    needed = rk.sample_size(pilot, power=0.5, n_simulations=20)
    assert 10 < needed.n_voters[0] < 400
    with pytest.raises(ValueError, match="n is the number"):
        rk.power(pilot, [40, 40])


def test_power_within_strata():
    """The test within strata is simulated: a difference between strata has no power."""
    c, kernel = [0, 1, 2, 3], rk.Mallows(NU)
    strata = ([0] * 60 + [1] * 20, [0] * 20 + [1] * 60)
    X = rk.concat([rk.datasets.mallows(60, c, 1.5, rng=1), rk.datasets.mallows(20, c[::-1], 1.5, rng=2)])
    Y = rk.concat([rk.datasets.mallows(20, c, 1.5, rng=3), rk.datasets.mallows(60, c[::-1], 1.5, rng=4)])
    confounded = rk.mmd_test(X, Y, kernel, n_permutations=99, strata=strata)
    assert rk.power(confounded, 160, effect=0.0, n_simulations=60).power < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 60)
    assert rk.power(rk.mmd_test(X, Y, kernel, n_permutations=99), 160, n_simulations=20).power == 1.0
    reversed_stratum = rk.concat([rk.datasets.mallows(20, [3, 1, 2, 0], 1.5, rng=3), Y[20:]])
    within = rk.mmd_test(X, reversed_stratum, kernel, n_permutations=99, strata=strata)
    result = rk.power(within, 160, n_simulations=40)
    assert result.effect == within.effect > 0
    assert result.power > 0.5


def test_power_from_data_matches_power_from_result(pilot):
    X, Y = rk.datasets.mallows(200, 4, 0.0, rng=1), rk.datasets.mallows(100, 4, 0.5, rng=2)
    labels = ["x"] * 200 + ["y"] * 100
    ways = [pilot, (X, Y), [X.ranks, Y.ranks], (rk.concat([X, Y]), labels)]
    kernels = [None, *[rk.Mallows(NU)] * 3]
    result = [rk.power(way, 60, n_simulations=30, kernel=kernel) for way, kernel in zip(ways, kernels, strict=True)]
    assert len({each.power for each in result}) == 1
    assert all(each.effect == pytest.approx(pilot.effect) for each in result)


def test_power_of_samples_of_models():
    samples = [rk.MallowsModel(center, 0.6).sample(1000, rng=1) for center in ([0, 1, 2, 3], [1, 0, 3, 2])]
    result = rk.power(samples, [40, 40], rk.Mallows(NU), effect=0.03, n_simulations=80)
    assert result.effect == 0.03
    assert 0.2 < result.power < 0.95
    assert rk.power(samples, 60, effect=0.0, n_simulations=80).power < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 80)
    with pytest.raises(TypeError, match="pilot"):
        rk.power(0.05, 100)
    with pytest.raises(rk.RankingError, match="effect="):
        rk.power(samples, 100, effect=0.9)


def test_progress(pilot):
    steps = []
    rk.power(pilot, 20, n_simulations=3, progress=lambda *step: steps.append(step))
    assert steps == [(1, 3), (2, 3), (3, 3)]
    with pytest.raises(TypeError, match="progress"):
        rk.power(pilot, 20, progress="yes")


def test_sample_size_has_the_power(pilot):
    steps = []
    result = rk.sample_size(pilot, power=0.8, n_simulations=60, progress=lambda done, of: steps.append((done, of)))
    assert steps[0] == (1, 60)
    again = rk.power(pilot, sum(result.n_voters), n_simulations=150, rng=99)
    assert abs(again.power - 0.8) < 0.2
    assert "power" in str(result)
    assert result.n_voters == rk.sample_size(pilot, power=0.8, n_simulations=60).n_voters


def test_invalid_pilots(pilot):
    with pytest.raises(rk.RankingError, match="effect="):
        rk.power(pilot, 50, effect=0.9)
    with pytest.raises(TypeError, match="pilot"):
        rk.power([[0, 1]], 50)
    X, Y = rk.datasets.uniform(20, 4, rng=1), rk.datasets.uniform(20, 4, rng=2)
    others = [
        rk.mmd_aggregated_test(X, Y, n_permutations=9),
        rk.change_point_test(X, n_permutations=9),
        rk.hsic_test(X, np.arange(20.0), n_permutations=9),
    ]
    for result in others:
        with pytest.raises(TypeError, match=f"pilot is {type(result).__name__}"):
            rk.power(result, 50)
    with pytest.raises(ValueError, match="kernel"):
        rk.power(pilot, 50, kernel=rk.Kendall())
    with pytest.raises(ValueError, match="n has 3"):
        rk.power(pilot, [5, 5, 5])
    same = rk.mmd_test(
        rk.datasets.uniform(10, 3, rng=1), rk.datasets.uniform(10, 3, rng=1), rk.Mallows(NU), n_permutations=5
    )
    with pytest.raises(rk.RankingError, match="effect"):
        rk.sample_size(same)
    with pytest.raises(rk.RankingError, match="max_size"):
        rk.sample_size(pilot, power=0.99, effect=0.002, n_simulations=10, max_size=100)

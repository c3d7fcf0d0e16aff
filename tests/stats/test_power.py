import math

import numpy as np
import pytest

import rankernel as rk
from rankernel.stats._effects import plug_in_effect
from rankernel.stats._pilots import population_of
from rankernel.stats._populations import apportioned
from rankernel.stats.power import PowerResult, interpolated

NU = 0.3


@pytest.fixture(scope="module")
def pilot():
    return rk.mmd_test(
        rk.datasets.mallows(200, 4, 0.0, rng=1), rk.datasets.mallows(100, 4, 0.5, rng=2), rk.Mallows(NU), 50
    )


def test_the_population_has_the_effect_that_was_estimated(pilot):
    population = population_of(pilot, None, None, None, 0)
    assert plug_in_effect(pilot._voters.gram, population.shares[0]) == pytest.approx(pilot.effect, rel=1e-6)
    assert population.effect == pilot.effect
    np.testing.assert_allclose(population.shares.sum(axis=2), 1.0)
    assert population.sizes(90).tolist() == [60, 30]
    assert population.sizes([7, 9]).tolist() == [7, 9]
    small = population_of(pilot, 0.005, None, None, 0)
    assert plug_in_effect(pilot._voters.gram, small.shares[0]) == pytest.approx(0.005, rel=1e-6)


def test_power_is_that_of_tests_of_new_data(pilot):
    found = rk.power(pilot, [30, 30], n_simulations=100, rng=3)
    real = [
        rk.mmd_test(
            rk.datasets.mallows(30, 4, 0.0, rng=2 * run + 10),
            rk.datasets.mallows(30, 4, 0.5, rng=2 * run + 11),
            rk.Mallows(NU),
            199,
        ).pvalue
        <= 0.05
        for run in range(60)
    ]
    error = math.sqrt(0.25 / 100 + 0.25 / 60)
    assert abs(found.power - np.mean(real)) < 4 * error + 0.1  # the pilot is itself a sample
    assert found.power_interval[0] < found.power < found.power_interval[1]
    assert found.n_voters == (30, 30)


def test_power_without_an_effect_is_the_level(pilot):
    found = rk.power(pilot, 40, effect=0.0, level=0.1, n_simulations=200)
    assert abs(found.power - 0.1) < 4 * math.sqrt(0.09 / 200)


def judges(run, n):
    """Judges with tastes of their own, who move one item up a little."""
    rng = np.random.default_rng(run)
    taste = rng.normal(0, 2, (n, 5))
    first, second = (taste + rng.normal(0, 0.5, (n, 5)) for _ in range(2))
    second[:, 0] += 0.4
    return rk.Rankings.from_scores(first), rk.Rankings.from_scores(second)


def test_power_of_judges_is_that_of_the_paired_test():
    kernel = rk.Mallows(0.2)
    pilot = rk.paired_test(*judges(0, 400), kernel, 1)
    found = rk.power(pilot, 40, n_simulations=100)
    assert found.n_voters == (40,)
    real = np.mean([rk.paired_test(*judges(run, 40), kernel, 99, run).pvalue <= 0.05 for run in range(1, 61)])
    apart = np.mean([rk.mmd_test(*judges(run, 40), kernel, 99, run).pvalue <= 0.05 for run in range(1, 31)])
    error = math.sqrt(real * (1 - real) * 2 / 60)
    assert abs(found.power - real) < 3 * error + 0.08  # the pilot is itself a sample
    assert apart < real - 2 * error  # and it is not the power of a test of two groups
    none = rk.power(pilot, 30, effect=0.0, level=0.1, n_simulations=200)
    assert abs(none.power - 0.1) < 4 * math.sqrt(0.09 / 200)
    needed = rk.ballots_needed(pilot, 0.5, n_simulations=20)
    assert 30 < needed.n_voters[0] < 400
    with pytest.raises(ValueError, match="n is the number of judges"):
        rk.power(pilot, [40, 40])


def test_power_within_strata_is_that_of_the_test_within_strata():
    """Where strata explain all, more voters find nothing more; where they do not, the test within them is simulated."""
    c, kernel = [0, 1, 2, 3], rk.Mallows(NU)
    strata = ([0] * 60 + [1] * 20, [0] * 20 + [1] * 60)
    X = rk.concat([rk.datasets.mallows(60, c, 1.5, rng=1), rk.datasets.mallows(20, c[::-1], 1.5, rng=2)])
    Y = rk.concat([rk.datasets.mallows(20, c, 1.5, rng=3), rk.datasets.mallows(60, c[::-1], 1.5, rng=4)])
    confounded = rk.mmd_test(X, Y, kernel, 99, strata=strata)
    assert rk.power(confounded, 160, effect=0.0, n_simulations=60).power < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 60)
    assert rk.power(rk.mmd_test(X, Y, kernel, 99), 160, n_simulations=20).power == 1.0
    turned = rk.concat([rk.datasets.mallows(20, [3, 1, 2, 0], 1.5, rng=3), Y[20:]])
    within = rk.mmd_test(X, turned, kernel, 99, strata=strata)
    found = rk.power(within, 160, n_simulations=40)
    assert found.effect == within.effect > 0
    assert found.power > 0.5
    assert apportioned(np.array([0.75, 0.25]), 7).tolist() == [5, 2]


def test_power_from_data_is_that_from_their_test(pilot):
    X, Y = rk.datasets.mallows(200, 4, 0.0, rng=1), rk.datasets.mallows(100, 4, 0.5, rng=2)
    labels = ["x"] * 200 + ["y"] * 100
    ways = [pilot, (X, Y), [X.ranks, Y.ranks], (rk.concat([X, Y]), labels)]
    kernels = [None, *[rk.Mallows(NU)] * 3]
    found = [rk.power(way, 60, n_simulations=30, kernel=kernel) for way, kernel in zip(ways, kernels, strict=True)]
    assert len({each.power for each in found}) == 1
    assert all(each.effect == pytest.approx(pilot.effect) for each in found)


def test_power_of_an_effect_between_models():
    models = [rk.MallowsModel([0, 1, 2, 3], 0.6), rk.MallowsModel([1, 0, 3, 2], 0.6)]
    found = rk.power(0.03, [40, 40], models=models, kernel=rk.Mallows(NU), n_simulations=80)
    assert found.effect == 0.03
    assert 0.2 < found.power < 0.95
    assert rk.power(0.0, 60, models=models, n_simulations=80).power < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 80)
    by_function = [lambda n, seed: rk.datasets.mallows(n, 4, 0.0, rng=seed), models[0]]
    assert len(rk.power(0.01, 30, models=by_function, n_simulations=5).n_voters) == 2
    with pytest.raises(ValueError, match="an effect alone does not say what voters are like; give models"):
        rk.power(0.05, 100)
    with pytest.raises(rk.RankingError, match="larger than the"):
        rk.power(0.9, 100, models=models)
    with pytest.raises(rk.RankingError, match="the models rank 4, 3 items"):
        rk.power(0.01, 100, models=[models[0], rk.MallowsModel([0, 1, 2], 1.0)])
    with pytest.raises(TypeError, match="models holds 3; give models such as"):
        rk.power(0.01, 100, models=[models[0], 3])


def test_progress_is_a_bar_on_standard_error(pilot, capsys):
    rk.power(pilot, 20, n_simulations=3, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("\r[")
    assert shown.err.endswith(f"[{'#' * 30}] 3 of 3 simulations\n")
    with pytest.raises(TypeError, match="progress='yes' is not possible; give True for a bar, or a function"):
        rk.power(pilot, 20, progress="yes")


def test_the_number_that_is_needed_has_the_power(pilot):
    steps = []
    found = rk.ballots_needed(pilot, 0.8, n_simulations=60, progress=lambda done, of: steps.append((done, of)))
    assert steps[0] == (1, 60)
    again = rk.power(pilot, sum(found.n_voters), n_simulations=150, rng=99)
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
    with pytest.raises(TypeError, match="give a result such as that of mmd_test"):
        rk.power([[0, 1]], 50)
    X, Y = rk.datasets.uniform(20, 4, rng=1), rk.datasets.uniform(20, 4, rng=2)
    others = {
        "AggregatedMMDResult is not possible, as the kernel was chosen": rk.mmd_aggregated_test(X, Y, n_permutations=9),
        "ChangePointResult is not possible, as the groups were chosen": rk.change_point_test(X, n_permutations=9),
        "HSICResult is not possible, as it compares no groups": rk.hsic_test(X, np.arange(20.0), n_permutations=9),
    }
    for words, result in others.items():
        with pytest.raises(TypeError, match=words):
            rk.power(result, 50)
    with pytest.raises(ValueError, match="leave out kernel"):
        rk.power(pilot, 50, kernel=rk.Kendall())
    with pytest.raises(ValueError, match="n has 3 numbers, and there are 2 groups"):
        rk.power(pilot, [5, 5, 5])
    same = rk.mmd_test(rk.datasets.uniform(10, 3, rng=1), rk.datasets.uniform(10, 3, rng=1), rk.Mallows(NU), 5)
    with pytest.raises(rk.RankingError, match="no difference beyond chance"):
        rk.ballots_needed(same)
    with pytest.raises(rk.RankingError, match="most=100 ballots do not reach a power of 99%"):
        rk.ballots_needed(pilot, 0.99, effect=0.002, n_simulations=10, most=100)

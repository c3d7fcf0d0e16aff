import math

import naive
import numpy as np
import pytest
import scipy.stats

import rankernel as rk
from benchmarks import outliers

NU = 0.2
CENTER = list(range(8))


def test_distances_match_brute_force():
    X = rk.Rankings([[0, 1, 2], [0, 2, 1], [2, 1, 0], [0, 1, 1]], counts=[9, 8, 1, 4])
    result = rk.outlier_test(X, kernel=rk.Mallows(NU))
    rows = [tuple(row) for row in X.ranks.tolist()]
    K = np.array(naive.gram(naive.mallows(NU), rows, rows))
    for row in range(4):
        others = X.counts.astype(float)
        others[row] -= 1
        others /= others.sum()
        expected = K[row, row] - 2 * K[row] @ others + others @ K @ others
        assert result.distances[row] == pytest.approx(expected, abs=1e-12)
    assert result.order()[0] == 2


# ---------------------------------------------------------------------- with a reference


def contaminated(run, n_odd):
    inliers = rk.datasets.mallows(150, CENTER, 1.2, rng=run)
    odd = rk.datasets.mallows(n_odd, CENTER[::-1], 1.2, rng=run + 500) if n_odd else None
    return rk.concat([inliers, odd]) if n_odd else inliers


@pytest.mark.filterwarnings("ignore::rankernel.SamplingWarning")
def test_false_discovery_rate_with_a_reference():
    rates, result = [], []
    for run in range(40):
        reference = rk.datasets.mallows(600, CENTER, 1.2, rng=run + 9000)
        named = rk.outlier_test(
            contaminated(run, 10), reference=reference, kernel=rk.Mallows(NU), alpha=0.1, rng=run
        ).is_outlier
        rates.append(named[:150].sum() / max(named.sum(), 1))
        result.append(named[150:].mean())
    assert np.mean(rates) <= 0.1 + 4 * np.std(rates) / math.sqrt(40)
    assert np.mean(result) > 0.8


@pytest.mark.filterwarnings("ignore::rankernel.SamplingWarning")
def test_no_outliers_with_a_reference():
    wrong = [
        rk.outlier_test(
            contaminated(run, 0), reference=rk.datasets.mallows(300, CENTER, 1.2, rng=run + 9000), kernel=rk.Mallows(NU)
        ).is_outlier.any()
        for run in range(60)
    ]
    assert np.mean(wrong) <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 60)


# ---------------------------------------------------------------------- with null models


def test_pvalues_are_probabilities_of_an_inlier():
    """Of voters of equal concentration the p-values are those of the Mallows model, or larger."""
    X = rk.datasets.mallows(400, [0, 1, 2, 3], 1.0, rng=3)
    result = rk.outlier_test(X, kernel=rk.Mallows(NU))
    every, K, mean = rk.Rankings(naive.completions([0, 0, 0, 0])), rk.Mallows(NU), X.counts / X.n_voters
    all_distances = K.plan(every).diagonal() - 2 * K.gram(every, X) @ mean + mean @ K.gram(X) @ mean
    distances = K.plan(X).diagonal() - 2 * K.gram(X) @ mean + mean @ K.gram(X) @ mean
    model = rk.MallowsModel([0, 1, 2, 3], 1.0)
    exact = np.exp(model.log_prob(every)) @ (all_distances[:, None] >= distances - 1e-10)
    assert (result.pvalues > 0.7 * exact - 0.02).all()
    assert (result.pvalues < 1.5 * exact + 0.05).all()


@pytest.mark.parametrize(
    ("kind", "n_items", "n", "theta", "power"),
    [
        ("Mallows", 7, 200, 2.0, 0.4),
        ("Plackett-Luce", 5, 60, 1.0, 0.4),
        ("Mallows, gamma (shape 2)", 7, 200, 1.0, 0.5),  # the rate would be 0.5 if all voters were alike
        ("Mallows, 80% at 2 and 20% at 0.3", 7, 200, 1.0, 0.0),  # and 0.4 with a gamma distribution only
    ],
)
def test_false_discovery_rate_with_null_models(kind, n_items, n, theta, power):
    """A few runs; the long study is in the benchmarks."""
    source, odd, n_runs = outliers.SOURCES[kind], n // 12, 4
    some = np.array([outliers.count_detected(source, n, n_items, theta, None, run, odd) for run in range(n_runs)])
    rates = some[:, 0] / np.maximum(some[:, :2].sum(axis=1), 1)
    assert rates.mean() <= 0.1 + 3 * 0.1 / math.sqrt(n_runs)
    assert some[:, 1].mean() / odd >= power
    assert not some[:, 2].all()  # of warnings


def test_small_reference_warns():
    """The smallest p-value of 50 ballots is 1/51, and 100 tests at a rate of 0.1 need 0.001 for a single outlier."""
    X, reference = rk.datasets.mallows(100, CENTER, 1.2, rng=1), rk.datasets.mallows(100, CENTER, 1.2, rng=2)
    with pytest.warns(rk.SamplingWarning, match="reference"):
        rk.outlier_test(X, reference=reference, alpha=0.1)


def test_ballots_are_compared_with_their_shape():
    """Full ballots are farther from any mean than short ones, which does not make them outliers."""
    long = rk.datasets.mallows(12, [0, 1, 2, 3, 4, 5], 0.5, rng=1)
    short = rk.datasets.mallows(200, [0, 1, 2, 3, 4, 5], 0.5, rng=2).top(1)
    result = rk.outlier_test(rk.concat([long, short]), kernel=rk.Mallows(NU), alpha=0.1)
    assert result.distances[:12].min() > np.median(result.distances[12:])
    assert result.is_outlier.sum() == 0
    assert np.median(result.pvalues[:12]) > 0.15


def test_misfit_warning():
    parts = [rk.datasets.mallows(n, center, 1.0, rng=n) for n, center in ((100, CENTER[:7]), (40, CENTER[6::-1]))]
    with pytest.warns(rk.MisfitWarning, match="another group of voters"):
        rk.outlier_test(rk.concat(parts), alpha=0.1)


@pytest.mark.filterwarnings("error::rankernel.CostWarning")
def test_all_simulated_ballots_are_announced():
    """Thirty surveys of many shapes are compared with at least 800 ballots of each shape and model."""
    X = rk.Rankings.from_scores(np.random.default_rng(0).integers(0, 5, (30, 20)))
    with pytest.raises(rk.CostWarning, match="33,066 simulated"):
        rk.outlier_test(X, rk.Exponential("footrule", 0.01), method=rk.MonteCarlo(512))


def test_free_items_have_one_null_model():
    X = rk.datasets.mallows(60, [0, 1, 2, 3, 4], 1.0, rng=1).top(3, unlisted="free")
    result = rk.outlier_test(X, kernel=rk.Mallows(NU))
    assert [type(model).__name__ for model in result.models] == ["PlackettLuce"]
    assert "simulated from PlackettLuce," in str(result)


@pytest.mark.filterwarnings("ignore:kernel values are estimated")
def test_distance_mcse():
    X = rk.datasets.uniform(40, 6, rng=1).top(2, unlisted="free")
    results = [rk.outlier_test(X, kernel=rk.Mallows(NU), method=rk.MonteCarlo(8, "iid", 0, rng=s)) for s in range(6)]
    distances = np.array([result.distances for result in results])
    centred = distances - distances.mean(axis=1, keepdims=True)  # common errors do not change the order
    deviation = math.sqrt(centred.var(axis=0, ddof=1).mean())
    assert deviation / 1.6 < np.median([result.distance_mcse for result in results]) < 1.8 * deviation
    assert "(estimated kernel values)" in str(results[0])
    assert rk.outlier_test(X, kernel=rk.Mallows(NU), method="exact").distance_mcse == 0.0


def test_noisy_distances_warn():
    X = rk.datasets.uniform(40, 6, rng=1).top(2, unlisted="free")
    with pytest.warns(rk.SamplingWarning, match="standard error of distances"):
        rk.outlier_test(X, kernel=rk.Mallows(3.0), method=rk.MonteCarlo(2, "iid", 0))


# ---------------------------------------------------------------------- the result


def test_plot_and_table():
    inliers = rk.datasets.mallows(80, [0, 1, 2, 3, 4], 2.0, rng=1)
    X = rk.concat([inliers, rk.Rankings([[4, 3, 2, 1, 0]], inliers.items, counts=[3])])
    result = rk.outlier_test(X, kernel=rk.Mallows(NU), alpha=0.1)
    table = result.to_frame()
    assert table.index[0] == result.order()[0]
    assert table["voters"].sum() == 83
    assert (np.diff(table["distance"]) <= 0).all()
    assert len(result.plot().collections[0].get_offsets()) == len(X)
    with pytest.raises(TypeError, match="result=3"):
        rk.plots.outliers(3)


def test_counts_match_repeated_rows():
    X = rk.Rankings([CENTER, [1, 0, *range(2, 8)], CENTER[::-1]], counts=[60, 30, 2])
    one_each = rk.Rankings(np.repeat(X.ranks, X.counts, axis=0))
    a, b = rk.outlier_test(X, kernel=rk.Mallows(NU)), rk.outlier_test(one_each, kernel=rk.Mallows(NU))
    np.testing.assert_allclose(np.repeat(a.distances, X.counts), b.distances, rtol=1e-12)
    np.testing.assert_allclose(np.repeat(a.pvalues, X.counts), b.pvalues, rtol=0.1, atol=0.01)  # other simulations
    np.testing.assert_array_equal(np.repeat(a.is_outlier, X.counts), b.is_outlier)
    assert "outliers" in str(a)
    with pytest.raises(rk.RankingError, match="X has 3 ballots"):
        rk.outlier_test(rk.datasets.uniform(3, 3, rng=0))


def test_adjustment_matches_scipy():
    X = contaminated(1, 8).unique()
    result = rk.outlier_test(X, kernel=rk.Mallows(NU))
    expected = scipy.stats.false_discovery_control(np.repeat(result.pvalues, X.counts))
    np.testing.assert_allclose(np.repeat(result.adjusted_pvalues, X.counts), expected, rtol=1e-12)


def test_largest_counts():
    many = rk.Rankings([[0, 1, 2], [1, 0, 2], [2, 1, 0]], counts=[2**40, 2**39, 1])  # a row for each would not fit
    result = rk.outlier_test(many, kernel=rk.Mallows(NU))
    assert result.order()[0] == 2

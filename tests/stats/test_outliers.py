import math

import naive
import numpy as np
import pytest
import scipy.stats

import rankernel as rk
from benchmarks import outliers
from rankernel.models import null_models
from rankernel.models.null_models import InlierModel, inlier_models, robust_fit, sample_inliers
from rankernel.stats.outliers import adjust_weighted_pvalues

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


def test_no_outliers_with_a_reference():
    wrong = [
        rk.outlier_test(
            contaminated(run, 0), reference=rk.datasets.mallows(300, CENTER, 1.2, rng=run + 9000), kernel=rk.Mallows(NU)
        ).is_outlier.any()
        for run in range(60)
    ]
    assert np.mean(wrong) <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 60)


# ---------------------------------------------------------------------- with null models


@pytest.mark.parametrize("setting", [("Mallows", 7, 200, 2.0, None), ("Plackett-Luce", 5, 60, 1.0, None)], ids=str)
def test_false_discovery_rate_with_null_models(setting):
    """A few runs; the long study is in the benchmarks."""
    (row,) = outliers.with_null_models(5, [setting])
    assert row["rate, no outliers"] <= 0.1 + 3 * math.sqrt(0.09 / 5)
    assert row["rate, with outliers"] <= 0.1 + 3 * math.sqrt(0.09 / 5)
    assert row["power"] > 0.4


def test_pvalues_match_exact_probabilities():
    """All rankings of four items: the larger of the exact probabilities of both models, up to simulation error."""
    X = rk.datasets.mallows(60, [0, 1, 2, 3], 1.0, rng=3)
    result = rk.outlier_test(X, kernel=rk.Mallows(NU))
    every = rk.Rankings(naive.completions([0, 0, 0, 0]))
    K = rk.Mallows(NU)
    mean = X.counts / X.n_voters
    all_distances = K.plan(every).diagonal() - 2 * K.gram(every, X) @ mean + mean @ K.gram(X) @ mean
    distances = K.plan(X).diagonal() - 2 * K.gram(X) @ mean + mean @ K.gram(X) @ mean
    exceedances = [
        np.exp(model.log_prob(every)) @ (all_distances[:, None] >= distances - 1e-10) for model in inlier_models(X)
    ]
    np.testing.assert_allclose(result.pvalues, np.minimum(np.max(exceedances, axis=0), 1.0), rtol=0.2, atol=0.02)


@pytest.mark.parametrize(
    "fit", [rk.MallowsModel.fit, lambda X: rk.PlackettLuce.fit(X, penalty=100.0)], ids=["Mallows", "PL"]
)
def test_robust_fit_ignores_outliers(fit):
    inliers = rk.datasets.mallows(150, [0, 1, 2, 3, 4], 1.5, rng=1)
    both = rk.concat([inliers, rk.datasets.mallows(12, [4, 3, 2, 1, 0], 1.5, rng=2)])
    concentration = {
        name: concentration_of(model)
        for name, model in {
            "inliers": robust_fit(inliers.unique(), fit),
            "both": robust_fit(both.unique(), fit),
            "plain": fit(thousandfold(both)),
        }.items()
    }
    assert concentration["both"] == pytest.approx(concentration["inliers"], rel=0.1)
    assert concentration["plain"] < 0.85 * concentration["inliers"]


def thousandfold(X):
    return rk.Rankings(X.ranks, counts=1000 * X.counts)


def concentration_of(model):
    return model.theta if isinstance(model, rk.MallowsModel) else float(np.ptp(np.log(model.weights)))


def test_mixture_of_concentrations():
    same = rk.datasets.mallows(400, [0, 1, 2, 3, 4], 1.0, rng=1)
    uneven = outliers.uneven(400, 5, 1.0, 2, False)
    shares = [InlierModel.of(robust_fit(X.unique(), rk.MallowsModel.fit), X.unique()).shares for X in (same, uneven)]
    for share in shares:
        assert share.sum() == pytest.approx(1.0)
    assert shares[1][0] + shares[1][-1] > shares[0][0] + shares[0][-1]  # larger shares of the extreme concentrations


@pytest.mark.parametrize("model", [rk.MallowsModel([0, 1, 2, 3], 1.3), rk.PlackettLuce([8.0, 4.0, 2.0, 1.0])], ids=str)
def test_importance_weights(model):
    """Probabilities of all rankings from weighted draws, within five standard errors."""
    inlier_model = InlierModel(model, np.array([0.1, 0.2, 0.5, 0.1, 0.1]))
    like = rk.Rankings([[0, 1, 2, 3]])
    drawn = sample_inliers(inlier_model, like, np.zeros(20_000, dtype=np.intp), np.random.default_rng(1))
    assert drawn.weights.mean() == pytest.approx(1.0, abs=0.05)
    for row in naive.completions([0, 0, 0, 0]):
        hit = (drawn.ballots.ranks == row).all(axis=1)
        expected = math.exp(inlier_model.log_prob(rk.Rankings([row]))[0])
        error = (hit * drawn.weights).std() / math.sqrt(20_000)
        assert abs((hit * drawn.weights).mean() - expected) < 5 * error + 1e-12
    lists = rk.Rankings([[0, 1, 1, 1], [-1, 0, 1, -1]])
    drawn_ranks = sample_inliers(inlier_model, lists, np.array([0, 1] * 50), np.random.default_rng(2)).ballots.ranks
    assert (np.sort(drawn_ranks[::2], axis=1) == [0, 1, 1, 1]).all()
    assert (drawn_ranks[1::2, [0, 3]] == -1).all()


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
    with pytest.warns(rk.SamplingWarning, match="few outliers"):
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


@pytest.mark.parametrize("seed", range(5))
def test_weighted_adjustment_matches_scipy(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 6, 12)
    pvalues = rng.choice([0.01, 0.02, 0.2, 0.5, 0.7], 12)
    expected = scipy.stats.false_discovery_control(np.repeat(pvalues, counts))
    np.testing.assert_allclose(np.repeat(adjust_weighted_pvalues(pvalues, counts), counts), expected, rtol=1e-12)


def test_largest_counts():
    many = rk.Rankings([[0, 1, 2], [1, 0, 2], [2, 1, 0]], counts=[2**40, 2**39, 1])  # a row for each would not fit
    result = rk.outlier_test(many, kernel=rk.Mallows(NU))
    assert result.order()[0] == 2
    assert null_models.COUNT_UNIT * 2**41 < 2**63

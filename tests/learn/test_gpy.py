import pickle
import warnings

import naive
import numpy as np
import pytest

import rankernel as rk
from rankernel.completions import draw

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # GPy warns of missing plotting libraries
    GPy = pytest.importorskip("GPy", reason="GPy is not installed: pip install 'rankernel[gpy]'", exc_type=ImportError)

from rankernel.learn import gpy

N_ITEMS = 5
NU, VARIANCE = 0.3, 2.5


def permutations(n_rankings, n_items, seed):
    return np.argsort(np.random.default_rng(seed).random((n_rankings, n_items)), axis=1)


def as_tuples(X):
    return [tuple(row) for row in X.astype(int).tolist()]


FULL = permutations(30, N_ITEMS, 0).astype(float)
TOP = rk.Rankings(FULL).top(2).ranks.astype(float)
FREE = rk.Rankings(FULL).top(3, unlisted="free").ranks.astype(float)
LABELS = (FULL[:, :1] < FULL[:, 1:2]).astype(float)
TARGET = FULL[:, :1] - 0.5 * FULL[:, 3:4] + np.random.default_rng(1).normal(scale=0.1, size=(30, 1))

KERNELS = {
    "mallows": (rk.Mallows(NU), naive.mallows(NU)),
    "gaussian": (rk.Exponential("spearman", NU / 4), naive.exponential(naive.spearman, NU / 4)),
    "kendall": (rk.Kendall(), naive.kendall_kernel),
}
IID, ANTITHETIC = (rk.MonteCarlo(8, coupling=coupling, control_variates=0, rng=7) for coupling in ("iid", "antithetic"))
KERNS = pytest.mark.parametrize("name", KERNELS)
METHODS = pytest.mark.parametrize("method", ["exact", "auto", IID, ANTITHETIC], ids=str)


def make(name="mallows", **options):
    return gpy.RankingKern(N_ITEMS, KERNELS[name][0], variance=VARIANCE, **options)


# ---------------------------------------------------------------------- values


@KERNS
@pytest.mark.parametrize("X", [FULL, TOP, FREE], ids=["full", "top-k", "free"])
def test_exact_values_match_brute_force(name, X):
    kern, rows, columns = make(name, method="exact"), X[:4], X[3:7]
    expected = VARIANCE * np.array(naive.gram(KERNELS[name][1], as_tuples(rows), as_tuples(columns)))
    np.testing.assert_allclose(kern.K(rows, columns), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kern.Kdiag(rows), np.diagonal(kern.K(rows)), rtol=1e-12)


@KERNS
@pytest.mark.parametrize("method", [IID, ANTITHETIC], ids=str)
def test_estimates_are_means_over_the_draws(name, method):
    kern, oracle = make(name, method=method), KERNELS[name][1]
    options = {"coupling": method.coupling, "rng": method.rng, "kernel": kern.kernel}
    rows, columns = (draw(X.astype(int), 8, **options).ranks for X in (TOP[:3], FREE[:3]))
    assert rows.shape == (3, 8, N_ITEMS)
    for ranking, completions in zip(as_tuples(TOP[:3]), rows.tolist(), strict=True):
        assert {tuple(full) for full in completions} <= set(naive.completions(ranking))
    expected = [
        [sum(oracle(x, y) for x in left for y in right) / 64 for right in columns.tolist()] for left in rows.tolist()
    ]
    np.testing.assert_allclose(kern.K(TOP[:3], FREE[:3]), VARIANCE * np.array(expected), rtol=1e-12, atol=1e-14)


def test_rankings_without_exact_values_are_estimated():
    kern = gpy.RankingKern(N_ITEMS, rk.Mallows(NU) * rk.Hamming())
    np.testing.assert_allclose(kern.K(TOP[:3]), kern.kernel.gram(TOP[:3], method="enumeration"), rtol=1e-12)
    kern = gpy.RankingKern(12, rk.Mallows(NU) * rk.Hamming())
    train = np.argsort(np.random.default_rng(5).random((3, 12)), axis=1).astype(float)
    new = np.minimum(train, 1)  # 11! completions, too many to list
    exact = kern.K(train)
    with pytest.warns(rk.SamplingWarning, match="3 of 3"):
        across = kern.K(new, train)
    draws = draw(new.astype(int), 64, kernel=kern.kernel).ranks
    drawn = [[kern.kernel.matrix(rows, one[None].astype(np.int32)).mean() for one in train] for rows in draws]
    np.testing.assert_allclose(across, drawn, rtol=1e-12)
    np.testing.assert_array_equal(kern.K(train), exact)  # unchanged


def test_median_is_resolved_by_data():
    assert gpy.RankingKern(N_ITEMS, "mallows", data=FULL).nu.item() == rk.Mallows("median").resolve(FULL).nu
    with pytest.raises(ValueError, match="data="):
        gpy.RankingKern(N_ITEMS, "mallows")


def test_active_dims():
    X = np.hstack([np.full((30, 1), 0.5), FULL])
    np.testing.assert_array_equal(make(active_dims=range(1, 6)).K(X), make().K(FULL))


def test_copy_and_pickle():
    kern = make(method=ANTITHETIC)
    value = kern.K(TOP)
    np.testing.assert_array_equal(kern.copy().K(TOP), value)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kern)).K(TOP), value)


# ---------------------------------------------------------------------- derivatives


def test_gradients_match_brute_force():
    kern, rows, columns = make(method="exact"), TOP[:3], FREE[:4]
    outer = np.random.default_rng(2).normal(size=(3, 4))
    kern.update_gradients_full(outer, rows, columns)
    pairs = [[(r, s) for s in as_tuples(columns)] for r in as_tuples(rows)]
    gradient = np.array([[naive.marginal_derivative(naive.kendall, NU, r, s) for r, s in row] for row in pairs])
    np.testing.assert_allclose(kern.nu.gradient, VARIANCE * np.sum(outer * gradient), rtol=1e-12)
    np.testing.assert_allclose(kern.variance.gradient, np.sum(outer * kern.K(rows, columns)) / VARIANCE, rtol=1e-12)


@METHODS
def test_gradients_of_the_diagonal(method):
    kern = make(method=method)
    outer = np.random.default_rng(3).normal(size=30)
    kern.update_gradients_full(np.diag(outer), FREE)
    expected = kern.gradient.copy()
    kern.update_gradients_diag(outer, FREE)
    np.testing.assert_allclose(kern.gradient, expected, rtol=1e-12)


@KERNS
@METHODS
def test_regression_gradients(name, method):
    kern = make(name, method=method) + GPy.kern.White(N_ITEMS, 0.1)
    assert GPy.models.GPRegression(TOP, TARGET, kern).checkgrad(tolerance=1e-5)


def test_gradients_of_trees():
    kern = gpy.RankingKern(N_ITEMS, 0.5 * rk.Kendall() + rk.Exponential("hamming", 0.2))
    assert set(kern.parameter_names()) == {"variance", "left__scale", "right__nu"}
    assert GPy.models.GPRegression(TOP, TARGET, kern).checkgrad(tolerance=1e-5)


def test_parameters_stay_within_their_bounds():
    kern = gpy.RankingKern(N_ITEMS, rk.RankBiasedOverlap(0.9))
    model = GPy.models.GPRegression(TOP, TARGET, kern)
    assert model.checkgrad(tolerance=1e-5)
    before = model.log_likelihood()
    model.optimize(max_iters=20)
    assert 0 <= kern.p <= 1
    assert model.log_likelihood() > before


# ---------------------------------------------------------------------- models


@pytest.mark.parametrize("method", ["exact", ANTITHETIC], ids=str)
def test_regression_finds_a_better_nu(method):
    model = GPy.models.GPRegression(FULL, TARGET, gpy.RankingKern(N_ITEMS, rk.Mallows(3.0), method=method))
    before = model.log_likelihood()
    model.optimize()
    assert model.log_likelihood() > before + 1
    assert model.kern.nu < 1
    mean, variance = model.predict(FULL)
    assert np.corrcoef(mean[:, 0], TARGET[:, 0])[0, 1] > 0.95
    assert (variance > 0).all()


@KERNS
@pytest.mark.parametrize("inference", ["EP", "Laplace"])
@pytest.mark.parametrize("method", [IID, "exact"], ids=str)
def test_classification(name, inference, method):
    kern = make(name, method=method)
    if inference == "EP":
        model = GPy.models.GPClassification(TOP, LABELS, kern)
    else:
        laplace = GPy.inference.latent_function_inference.Laplace()
        model = GPy.core.GP(TOP, LABELS, kern, GPy.likelihoods.Bernoulli(), inference_method=laplace)
    before = model.log_likelihood()
    model.optimize(max_iters=10)
    assert model.log_likelihood() > before
    # The classes differ in the order of items 0 and 1, which many top-2 lists determine.
    ordered = TOP[:, 0] != TOP[:, 1]
    assert np.mean((model.predict(TOP)[0] > 0.5)[ordered] == (LABELS > 0.5)[ordered]) > 0.9

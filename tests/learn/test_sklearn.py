import pickle

import naive
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.svm import SVC

import rankernel as rk
from rankernel import SklearnKernel


def signs(X):
    """The signs of all pairs: between two of these vectors the squared distance is four times the Kendall distance."""
    a, b = np.triu_indices(X.shape[1], 1)
    return np.sign(X[:, b] - X[:, a]).astype(float)


def permutations(n_rankings, n_items, seed):
    return np.argsort(np.random.default_rng(seed).random((n_rankings, n_items)), axis=1)


def gradient_by_differences(kernel, X, step=1e-5):
    theta, gradients = kernel.theta, []
    for direction in np.eye(len(theta)) * step:
        up, down = (kernel.clone_with_theta(theta + sign * direction)(X) for sign in (1, -1))
        gradients.append((up - down) / (2 * step))
    return np.stack(gradients, axis=2)


X, X_NEW = permutations(40, 5, 0), permutations(15, 5, 1)
Y = X[:, 0] + X[:, 1] < X[:, 2] + X[:, 3]
TARGET = X[:, 0] - 0.5 * X[:, 3] + np.random.default_rng(2).normal(scale=0.1, size=40)
PARTIAL = rk.Rankings(X).top(2)
FREE = rk.Rankings(X).top(3, unlisted="free")

# exp(-nu d) = exp(-gamma 4 d), and the length scale l of scikit-learn's RBF is that of exp(-r^2 / 2 l^2)
NU = 0.3
GAMMA, LENGTH = NU / 4, np.sqrt(2 / NU)


# ---------------------------------------------------------------------- against RBF on the signs of pairs


@pytest.mark.parametrize("cast", [np.int64, float])
def test_values_are_the_kernel(cast):
    kernel = SklearnKernel(rk.Mallows(NU))
    expected = naive.gram(naive.mallows(NU), [tuple(x) for x in X[:6].tolist()], [tuple(x) for x in X_NEW.tolist()])
    np.testing.assert_allclose(kernel(X[:6].astype(cast), X_NEW.astype(cast)), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel(X.astype(cast)), RBF(LENGTH)(signs(X)), rtol=1e-12)
    np.testing.assert_allclose(kernel.diag(X), 1, rtol=1e-12)


def test_support_vector_machine():
    ours = SVC(kernel=SklearnKernel(rk.Mallows(NU))).fit(X, Y)
    theirs = SVC(gamma=GAMMA).fit(signs(X), Y)
    np.testing.assert_allclose(ours.decision_function(X_NEW), theirs.decision_function(signs(X_NEW)), rtol=1e-6)


def test_kernel_ridge():
    ours = KernelRidge(kernel=SklearnKernel(rk.Mallows(NU))).fit(X, TARGET)
    theirs = KernelRidge(kernel="rbf", gamma=GAMMA).fit(signs(X), TARGET)
    np.testing.assert_allclose(ours.predict(X_NEW), theirs.predict(signs(X_NEW)), rtol=1e-10)


def test_kernel_pca():
    ours = KernelPCA(3, kernel=SklearnKernel(rk.Mallows(NU))).fit(X)
    theirs = KernelPCA(3, kernel="rbf", gamma=GAMMA).fit(signs(X))
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(np.abs(ours.transform(X_NEW)), np.abs(theirs.transform(signs(X_NEW))), atol=1e-9)


def test_gaussian_process_classifier_with_fitted_nu():
    ours = GaussianProcessClassifier(1.0 * SklearnKernel(rk.Mallows(NU))).fit(X, Y)
    theirs = GaussianProcessClassifier(1.0 * RBF(LENGTH)).fit(signs(X), Y)
    likelihood = theirs.log_marginal_likelihood_value_
    assert ours.log_marginal_likelihood_value_ == pytest.approx(likelihood, rel=1e-6)
    scale, nu = np.exp(ours.kernel_.theta)
    assert 2 / np.exp(theirs.kernel_.theta[1]) ** 2 == pytest.approx(nu, rel=1e-2)
    fixed = theirs.set_params(kernel=scale * RBF(np.sqrt(2 / nu)), optimizer=None).fit(signs(X), Y)
    np.testing.assert_allclose(ours.predict_proba(X_NEW), fixed.predict_proba(signs(X_NEW)), rtol=1e-9)


def test_gaussian_process_regressor_inside_a_composite():
    ours = ConstantKernel(1.0) * SklearnKernel(rk.Mallows(NU)) + WhiteKernel(0.1)
    theirs = ConstantKernel(1.0) * RBF(LENGTH) + WhiteKernel(0.1)
    mine = GaussianProcessRegressor(ours, optimizer=None).fit(X, TARGET)
    other = GaussianProcessRegressor(theirs, optimizer=None).fit(signs(X), TARGET)
    for a, b in zip(mine.predict(X_NEW, return_std=True), other.predict(signs(X_NEW), return_std=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    value, gradient = mine.log_marginal_likelihood(mine.kernel_.theta, eval_gradient=True)
    value_rbf, gradient_rbf = other.log_marginal_likelihood(other.kernel_.theta, eval_gradient=True)
    assert value == pytest.approx(value_rbf, rel=1e-10)
    # nu = 2 / l^2, so a derivative in log l is -2 times that in log nu
    np.testing.assert_allclose(gradient * [1, -2, 1], gradient_rbf, rtol=1e-8)
    fitted = GaussianProcessRegressor(ours).fit(X, TARGET)
    assert fitted.log_marginal_likelihood_value_ > value
    assert np.abs(fitted.predict(X) - TARGET).mean() < 0.5


# ---------------------------------------------------------------------- gradients


TREES = [
    rk.Mallows(0.3),
    2.0 * rk.Mallows(0.3) + 0.5 * rk.Kendall(),
    rk.Exponential("hamming", 0.2),
    0.7 * (rk.Mallows(0.2) * rk.Exponential("hamming", 0.3)),
    rk.Diffusion(0.1),
]


@pytest.mark.parametrize("kernel", TREES, ids=str)
@pytest.mark.parametrize("data", [rk.Rankings(X[:8]), PARTIAL[:8], FREE[:8]], ids=["full", "top-k", "free"])
@pytest.mark.parametrize("method", ["auto", rk.MonteCarlo(4)], ids=str)
def test_gradient_in_the_logarithms(kernel, data, method):
    ours = SklearnKernel(kernel, method=method)
    value, gradients = ours(data.ranks, eval_gradient=True)
    np.testing.assert_array_equal(value, ours(data.ranks))
    assert gradients.shape == (8, 8, len(kernel.params))
    np.testing.assert_allclose(gradients, gradient_by_differences(ours, data.ranks), rtol=1e-6, atol=1e-8)


def test_gradient_matches_brute_force():
    rows = [tuple(row) for row in PARTIAL.ranks[:4].tolist()]
    _, gradients = SklearnKernel(rk.Mallows(0.4))(np.array(rows), eval_gradient=True)
    expected = [[0.4 * naive.marginal_derivative(naive.kendall, 0.4, r, s) for s in rows] for r in rows]
    np.testing.assert_allclose(gradients[:, :, 0], expected, rtol=1e-11)


def test_fixed_parameters_and_bounds():
    tree = 2.0 * rk.Mallows(0.3)
    kernel = SklearnKernel(tree, parameter_bounds={"scale": "fixed", "kernel__nu": (0.1, 1.0)})
    np.testing.assert_allclose(np.exp(kernel.theta), [0.3])
    np.testing.assert_allclose(np.exp(kernel.bounds), [[0.1, 1.0]])
    assert kernel(X, eval_gradient=True)[1].shape == (40, 40, 1)
    assert kernel.clone_with_theta(np.log([0.5])).kernel == tree.replace(kernel__nu=np.exp(np.log(0.5)))
    fixed = SklearnKernel(tree, parameter_bounds="fixed")
    assert (fixed.n_dims, fixed(X, eval_gradient=True)[1].shape) == (0, (40, 40, 0))
    process = GaussianProcessRegressor(fixed, alpha=0.1).fit(X, TARGET)
    assert process.kernel_.kernel == tree
    with pytest.raises(ValueError, match="parameter_bounds has 'mu'"):
        SklearnKernel(tree, parameter_bounds={"mu": "fixed"}).theta  # noqa: B018


def test_gradient_needs_a_square_matrix():
    with pytest.raises(ValueError, match="Y must be None"):
        SklearnKernel(rk.Mallows(0.1))(X, X_NEW, eval_gradient=True)


# ---------------------------------------------------------------------- partial rankings


@pytest.mark.parametrize("kernel", [rk.Mallows(0.2), rk.Exponential("footrule", 0.1)], ids=str)
@pytest.mark.parametrize("data", [PARTIAL, FREE], ids=["top-k", "free"])
@pytest.mark.parametrize("method", ["auto", rk.MonteCarlo(6, rng=3)], ids=str)
def test_blocks_match_the_full_matrix(kernel, data, method):
    ours, ranks = SklearnKernel(kernel, method=method), data.ranks.astype(float)
    full = ours(ranks)
    np.testing.assert_allclose(ours(ranks[:30]), full[:30, :30], rtol=1e-12)
    np.testing.assert_allclose(ours(ranks[30:], ranks[:30]), full[30:, :30], rtol=1e-12)
    np.testing.assert_allclose(ours.diag(ranks), full.diagonal(), rtol=1e-12)
    assert np.linalg.eigvalsh(full).min() > -1e-12


def test_auto_is_exact_with_a_closed_form():
    np.testing.assert_allclose(
        SklearnKernel(rk.Mallows(0.2))(PARTIAL.ranks), rk.Mallows(0.2).gram(PARTIAL, method="exact"), rtol=1e-12
    )


@pytest.mark.parametrize("method", ["auto", rk.MonteCarlo(8)], ids=str)
def test_gaussian_process_on_incomplete_rankings(method):
    process = GaussianProcessClassifier(1.0 * SklearnKernel(rk.Mallows(NU), method=method)).fit(FREE.ranks, Y)
    assert process.score(FREE.ranks, Y) > 0.8
    regressor = GaussianProcessRegressor(SklearnKernel(rk.Mallows(NU), method=method), alpha=0.1).fit(
        FREE.ranks[:30], TARGET[:30]
    )
    _, covariance = regressor.predict(FREE.ranks[30:], return_cov=True)
    _, deviation = regressor.predict(FREE.ranks[30:], return_std=True)
    np.testing.assert_allclose(deviation**2, covariance.diagonal(), rtol=1e-9)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9


# ---------------------------------------------------------------------- parameters


def test_grid_search_over_nu():
    search = GridSearchCV(SVC(kernel=SklearnKernel(rk.Mallows(1.0))), {"kernel__nu": [0.1, 20.0]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"kernel__nu": 0.1}
    tree = SVC(kernel=SklearnKernel(rk.Kendall() + 2.0 * rk.Mallows(1.0)))
    assert tree.set_params(kernel__right__kernel__nu=0.5).kernel.kernel == rk.Kendall() + 2.0 * rk.Mallows(0.5)
    composite = GaussianProcessRegressor(1.0 * SklearnKernel(rk.Mallows(1.0)))
    assert composite.set_params(kernel__k2__nu=0.2).kernel.k2 == SklearnKernel(rk.Mallows(0.2))


@pytest.mark.parametrize("kernel", TREES, ids=str)
def test_clone_and_equality(kernel):
    ours = SklearnKernel(kernel, method=rk.MonteCarlo(4, rng=1), parameter_bounds=(1e-3, 1e3))
    for copy in (clone(ours), ours.clone_with_theta(ours.theta)):
        np.testing.assert_allclose(copy(X[:5]), ours(X[:5]), rtol=1e-12)
    assert clone(ours) == ours
    assert clone(ours) is not ours
    moved = ours.clone_with_theta(ours.theta + 1)
    assert moved != ours
    np.testing.assert_allclose(moved.theta, ours.theta + 1)
    assert [h.name for h in ours.hyperparameters] == list(kernel.params)


class CountedPlans(rk.Kernel):
    """A kernel that counts the plans made for it, over all copies."""

    n_plans = 0

    def __init__(self, nu=0.3):
        self.nu = nu

    def matrix(self, X, Y):
        return rk.Mallows(self.nu).matrix(X, Y)

    def plan(self, *arguments, **options):
        CountedPlans.n_plans += 1
        return super().plan(*arguments, **options)


@pytest.mark.filterwarnings("ignore::rankernel.IndefiniteKernelWarning")
def test_clones_share_the_plan():
    GaussianProcessRegressor(1.0 * SklearnKernel(CountedPlans()), alpha=0.1).fit(X, TARGET)
    assert CountedPlans.n_plans == 1


def test_pickle():
    ours = SklearnKernel(2.0 * rk.Mallows(0.3) + rk.Diffusion(0.1), method=rk.MonteCarlo(4, rng=1))
    assert pickle.loads(pickle.dumps(ours)) == ours
    process = GaussianProcessRegressor(SklearnKernel(rk.Mallows(0.3)), alpha=0.1).fit(X, TARGET)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(process)).predict(X_NEW), process.predict(X_NEW))


def test_clone_does_not_change_the_original():
    ours = SklearnKernel(rk.Mallows(0.3))
    clone(ours).set_params(nu=0.9)
    assert ours.kernel == rk.Mallows(0.3)
    assert repr(ours.clone_with_theta(np.log([0.5]))) == "SklearnKernel(Mallows(nu=0.5))"
    with pytest.raises(ValueError, match="mu"):
        ours.set_params(mu=1)


def test_parameters_are_resolved_first():
    unresolved = SklearnKernel(rk.Mallows())
    assert clone(unresolved) == unresolved
    for use in (lambda: unresolved(X), lambda: unresolved.diag(X), lambda: unresolved.theta):
        with pytest.raises(ValueError, match=r"kernel\.resolve"):
            use()


def test_callable_kernel_needs_numeric_parameters():
    with pytest.raises(ValueError, match=r"kernel\.resolve"):
        SVC(kernel=rk.Mallows("median")).fit(X, Y)
    with pytest.raises(ValueError, match="median"):
        rk.Mallows("median").gram(X, X_NEW)
    resolved = rk.Mallows("median").resolve(X)
    np.testing.assert_array_equal(resolved(X_NEW, X), rk.Mallows("median").plan(X).against(X_NEW).gram())
    np.testing.assert_array_equal(resolved(X), rk.Mallows("median").gram(X))


# ---------------------------------------------------------------------- bandwidth selection


@pytest.mark.parametrize("method", ["auto", rk.MonteCarlo(4, rng=2)], ids=str)
def test_grid_search_matches_precomputed_matrices(method):
    values, folds = [0.05, 0.3, 5.0], KFold(4, shuffle=True, random_state=1)
    svc = SVC(kernel=SklearnKernel(rk.Mallows(1.0), method=method))
    search = GridSearchCV(svc, {"kernel__nu": values}, cv=folds).fit(FREE.ranks, Y)
    grams = [rk.Mallows(nu).gram(FREE, method=method) for nu in values]
    expected = [cross_val_score(SVC(kernel="precomputed"), K, Y, cv=folds).mean() for K in grams]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, rtol=1e-12)
    assert search.best_estimator_.kernel.kernel == rk.Mallows(search.best_params_["kernel__nu"])


@pytest.mark.parametrize("y", [Y, X[:, 0] // 2], ids=["binary", "multiclass"])
def test_gaussian_process_maximizes_the_marginal_likelihood(y):
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * SklearnKernel(rk.Mallows("median").resolve(X))
    process = GaussianProcessClassifier(kernel).fit(X, y)
    for one in getattr(process.base_estimator_, "estimators_", [process.base_estimator_]):
        top = one.log_marginal_likelihood(one.kernel_.theta)
        for step in (-0.1, 0.1):
            assert one.log_marginal_likelihood(one.kernel_.theta + np.array([0, step])) <= top + 1e-3

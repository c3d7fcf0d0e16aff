"""The adapters to other libraries: shared code, missing packages, equal values and gradients, argument errors."""

import copy
import importlib
import pickle
import re
import sys
import warnings

import naive
import numpy as np
import pytest
from nonsense import faults

import rankernel as rk
from rankernel.errors import MissingExtraError
from rankernel.learn.plan_cache import GramBlocks

X = rk.Rankings(np.argsort(np.random.default_rng(0).random((12, 5)), axis=1))
TOP, FREE = X.top(2), X.top(3, unlisted="free")


def as_tuples(rankings):
    return [tuple(row) for row in rankings.ranks.tolist()]


@pytest.mark.parametrize("method", ["auto", "exact", "enumeration", rk.MonteCarlo(8)])
def test_blocks_match_the_estimate(method):
    start, now = rk.Mallows(0.9), rk.Mallows(0.3)
    blocks = GramBlocks(start, method)
    for rows, columns in [(TOP[:5], None), (TOP[:5], FREE[:4]), (TOP[:5], None)]:
        value, gradients = blocks.gram(now, rows, columns, gradient=True)
        expected = now.estimate(rows, columns, method=method, gradient=True)
        np.testing.assert_allclose(value, expected.value, rtol=1e-13)
        np.testing.assert_allclose(gradients["nu"], expected.gradient["nu"], rtol=1e-13)


@pytest.mark.parametrize("rankings", [X[:3], TOP[:3], FREE[:3]])
def test_diagonal_matches_brute_force(rankings):
    twice = rk.concat([rankings, rankings])
    value, gradients = GramBlocks(rk.Mallows(0.9)).diagonal(rk.Mallows(0.3), twice, gradient=True)
    expected = [naive.marginal(naive.mallows(0.3), r, r) for r in as_tuples(twice)]
    derivative = [naive.marginal_derivative(naive.kendall, 0.3, r, r) for r in as_tuples(twice)]
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(gradients["nu"], derivative, rtol=1e-12, atol=1e-15)


def test_blocks_fit_together():
    kernel = rk.Mallows(0.3)
    blocks = GramBlocks(kernel, rk.MonteCarlo(6))
    method = blocks.plan(kernel, TOP, None).method
    assert blocks.plan(kernel, FREE, TOP).method == method
    whole = kernel.gram(rk.concat([TOP, FREE]), method=method)
    np.testing.assert_allclose(blocks.gram(kernel, TOP)[0], whole[:12, :12], rtol=1e-13)
    np.testing.assert_allclose(blocks.gram(kernel, FREE, TOP)[0], whole[12:, :12], rtol=1e-13)
    np.testing.assert_allclose(blocks.diagonal(kernel, FREE)[0], np.diagonal(whole)[12:], rtol=1e-13)


def test_herded_draws_are_those_of_the_kernel_as_given():
    start, now = rk.Mallows(0.9), rk.Mallows(0.3)
    blocks = GramBlocks(start, rk.MonteCarlo(4, coupling="herding", control_variates=0))
    step = 1e-6
    up, down = (blocks.gram(rk.Mallows(0.3 + sign * step), TOP)[0] for sign in (1, -1))
    slope = blocks.gram(now, TOP, gradient=True)[1]["nu"]
    np.testing.assert_allclose(slope, (up - down) / (2 * step), rtol=1e-6, atol=1e-9)


def test_data_resolves_median_and_auto():
    blocks = GramBlocks(rk.Mallows(), data=TOP)
    assert blocks.kernel == rk.Mallows().resolve(TOP)
    wide = rk.Rankings(np.minimum(np.argsort(np.random.default_rng(1).random((6, 12)), axis=1), 2))
    kernel = rk.Mallows(0.3) * rk.Hamming()
    assert GramBlocks(kernel, data=TOP).plan(kernel, X).method == rk.Exact()  # few completions, listed
    assert GramBlocks(kernel, data=wide).plan(kernel, wide).method.n_draws == 64
    with pytest.raises(ValueError, match="data=X_train"):
        GramBlocks(rk.Mallows())


def test_requested_method_is_used():
    kernel = rk.Mallows(0.3) * rk.Hamming()
    blocks = GramBlocks(kernel, rk.Exact(limit=10))
    blocks.gram(kernel, X)
    with pytest.raises(rk.ExactnessError, match="limit"):
        blocks.gram(kernel, TOP)


@pytest.mark.parametrize("data", [TOP, X.top(2).with_items([*X.items, *map(str, range(5, 12))])], ids=["few", "many"])
def test_copies_use_the_resolved_method(data):
    kernel = rk.Mallows(0.3) * rk.Hamming()
    blocks = GramBlocks(kernel, data=data)
    for other in (copy.deepcopy(blocks), pickle.loads(pickle.dumps(blocks))):
        assert other.plan(kernel, data).method == blocks.plan(kernel, data).method
        np.testing.assert_array_equal(other.gram(kernel, data)[0], blocks.gram(kernel, data)[0])


@pytest.mark.parametrize(
    ("module", "missing", "package", "extra"),
    [
        ("gpy", "GPy", "GPy", "gpy"),
        ("gpytorch", "torch", "GPyTorch", "gpytorch"),
        ("gpytorch", "gpytorch", "GPyTorch", "gpytorch"),
        ("botorch", "botorch", "BoTorch", "gpytorch"),
    ],
)
def test_missing_package(module, missing, package, extra, monkeypatch):
    if module == "botorch":
        pytest.importorskip("gpytorch", reason="GPyTorch is not installed: pip install 'rankernel[gpytorch]'")
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, f"rankernel.learn.{module}", raising=False)
    words = f"this needs {package}, which is not installed; do: pip install 'rankernel[{extra}]'"
    with pytest.raises(MissingExtraError, match=re.escape(words)):
        importlib.import_module(f"rankernel.learn.{module}")


# ---------------------------------------------------------------------- one contract for all


def by_sklearn(rows, kernel, method, weights):
    wrapped = rk.SklearnKernel(kernel.resolve(rows), method=method)
    value, gradients = wrapped(rows.ranks, eval_gradient=True)
    # in the logarithm of the parameter
    return value, np.tensordot(weights, gradients[:, :, 0], 2) / kernel.params["nu"]


def by_gpy(rows, kernel, method, weights):
    pytest.importorskip("GPy", reason="GPy is not installed")
    from rankernel.learn import gpy

    kern, ranks = gpy.RankingKern(rows.n_items, kernel, method=method, data=rows), rows.ranks.astype(float)
    kern.update_gradients_full(weights, ranks)
    return kern.K(ranks), kern.nu.gradient.item()


def by_gpytorch(rows, kernel, method, weights):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("gpytorch", reason="GPyTorch is not installed")
    from rankernel.learn.gpytorch import RankingKernel

    module, ranks = RankingKernel(kernel, method=method, data=rows).double(), torch.as_tensor(rows.ranks * 1.0)
    module.nu = kernel.nu  # made in single precision, as torch does
    value = module(ranks).to_dense()
    (value * torch.as_tensor(weights)).sum().backward()
    gradient = module.raw_nu.grad.item() / torch.sigmoid(module.raw_nu).item()  # of the softplus transform
    return value.detach().numpy(), gradient


def by_dask(rows, kernel, method, weights):
    pytest.importorskip("dask", reason="dask is not installed")
    from rankernel.learn import dask

    return dask.gram(kernel.plan(rows, method=method)).compute(scheduler="synchronous"), None


def by_bayesian_optimization(rows, kernel, method, weights):
    """Full rankings only, for which there is one method."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what other libraries warn of while they are imported
        pytest.importorskip("botorch", reason="BoTorch is not installed")
        from rankernel.learn.botorch import ranking_process

    model, module = ranking_process(rows.ranks.copy(), np.arange(float(len(rows))), kernel)
    module.nu = kernel.nu
    value = model.covar_module(torch.as_tensor(rows.ranks * 1.0)).to_dense() / model.covar_module.outputscale.detach()
    (value * torch.as_tensor(weights)).sum().backward()
    return value.detach().numpy(), module.raw_nu.grad.item()  # the constraint has no transform


WAYS = [(by_sklearn, FREE), (by_gpy, FREE), (by_gpytorch, FREE), (by_dask, FREE), (by_bayesian_optimization, X)]


@pytest.mark.parametrize(("way", "rows"), WAYS, ids=[way.__name__ for way, _ in WAYS])
@pytest.mark.parametrize("method", ["auto", "enumeration", rk.MonteCarlo(64, rng=5)], ids=str)
@pytest.mark.parametrize("kernel", [rk.Mallows(0.3), rk.Exponential("footrule", 0.1)], ids=str)
def test_adapters_agree_with_the_estimate(way, rows, method, kernel):
    weights = np.random.default_rng(0).standard_normal((len(rows), len(rows)))
    weights += weights.T
    wanted = kernel.estimate(rows, method=method, gradient=True)
    value, gradient = way(rows, kernel, method, weights)
    np.testing.assert_allclose(value, wanted.value, rtol=1e-9)
    if gradient is not None:
        assert gradient == pytest.approx((weights * wanted.gradient["nu"]).sum(), rel=1e-6)


# ---------------------------------------------------------------------- user-written kernels


class LargestDifference(rk.Kernel):
    """A plain class, with parameters whose names other libraries use, too."""

    def __init__(self, variance=2.0, lengthscale=3.0):
        self.variance = variance
        self.lengthscale = lengthscale

    def matrix(self, X, Y):
        return self.variance * np.exp(-np.abs(X[:, None] - Y[None]).max(axis=2) / self.lengthscale)


@pytest.mark.filterwarnings("ignore::rankernel.IndefiniteKernelWarning")
class TestUserKernel:
    kernel = LargestDifference()
    ranks = X.ranks.astype(float)
    gram = LargestDifference().matrix(X.ranks, X.ranks)
    target = X.ranks[:, 0] - 2.0

    def test_sklearn(self):
        from sklearn.gaussian_process import GaussianProcessRegressor

        kernel = rk.SklearnKernel(LargestDifference(0.1, 0.1))
        process, fixed = (
            GaussianProcessRegressor(kernel, alpha=0.5, optimizer=optimizer).fit(self.ranks, self.target)
            for optimizer in ("fmin_l_bfgs_b", None)
        )
        assert process.log_marginal_likelihood_value_ > fixed.log_marginal_likelihood_value_ + 0.1
        assert set(process.kernel_.get_params()) >= {"variance", "lengthscale"}

    def test_gpy(self):
        GPy = pytest.importorskip("GPy", reason="GPy is not installed")
        from rankernel.learn.gpy import RankingKern

        kern = RankingKern(5, self.kernel, variance=0.5)
        np.testing.assert_allclose(kern.K(self.ranks), 0.5 * self.gram, rtol=1e-12)
        assert set(kern.parameter_names()) == {"variance", "kernel_variance", "lengthscale"}
        assert GPy.models.GPRegression(self.ranks, self.target[:, None], kern).checkgrad(tolerance=1e-4)

    def test_gpytorch(self):
        torch = pytest.importorskip("torch", reason="torch is not installed")
        pytest.importorskip("gpytorch", reason="GPyTorch is not installed")
        from rankernel.learn.gpytorch import RankingKernel

        module = RankingKernel(self.kernel).double()
        module.initialize(variance=2.0)
        value = module(torch.as_tensor(self.ranks)).to_dense()
        np.testing.assert_allclose(value.detach(), self.gram, rtol=1e-6)
        value.sum().backward()
        gradient = module.raw_variance.grad.item() / torch.sigmoid(module.raw_variance).item()
        assert gradient == pytest.approx(self.gram.sum() / 2, rel=1e-6)

    def test_botorch(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about imports of other libraries
            pytest.importorskip("botorch", reason="BoTorch is not installed")
            from rankernel.learn.botorch import optimize_permutations

        result = optimize_permutations(lambda ranks: abs(ranks - [2, 0, 1]).sum(), 3, 5, kernel=self.kernel)
        assert len(np.unique(result.ranks, axis=0)) == 5
        assert result.kernel.params.keys() == {"variance", "lengthscale"}

    def test_dask(self):
        pytest.importorskip("dask", reason="dask is not installed")
        from rankernel.learn import dask

        np.testing.assert_array_equal(dask.gram(self.kernel.plan(X)).compute(scheduler="synchronous"), self.gram)

    def test_estimators(self):
        distances = rk.kernel_distances(X, self.kernel, squared=True)
        np.testing.assert_allclose(distances, np.maximum(4 - 2 * self.gram, 0), atol=1e-12)
        for estimator in (rk.KernelKMeans(3), rk.KernelKMedoids(3), rk.KernelMap(2), rk.NystromFeatures(3)):
            estimator.set_params(kernel=self.kernel, kernel__lengthscale=5.0)
            assert estimator.fit(X).transform(X).shape[0] == len(X)
            assert estimator.kernel_ == LargestDifference(2.0, 5.0)


# ---------------------------------------------------------------------- argument errors

BALLOTS = rk.Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"], ["c", "b"], ["a", {"b", "c"}]])
RANKS = BALLOTS.ranks
KERNEL = rk.Mallows(0.5)


def dask_calls():
    from rankernel.learn import dask

    features = rk.NystromFeatures(2, kernel=KERNEL).fit(BALLOTS)
    return {
        "gram": (dask.gram, {"plan": KERNEL.plan(BALLOTS), "chunks": 2}),
        "transform": (dask.transform, {"X": BALLOTS, "features": features, "chunks": 2}),
        "mmd2": (dask.mmd2, {"X": BALLOTS, "Y": BALLOTS, "kernel": KERNEL, "method": "auto", "chunks": 2}),
    }


def gpy_calls():
    from rankernel.learn import gpy

    options = {"variance": 1.0, "method": "auto", "data": RANKS, "active_dims": [0, 1, 2], "name": "votes"}
    # GPy itself slices the arguments of K and Kdiag.
    return {"RankingKern": (gpy.RankingKern, {"input_dim": 3, "kernel": KERNEL, **options})}


def gpytorch_calls():
    import gpytorch

    from rankernel.learn.gpytorch import RankingKernel

    constraints = {"nu": gpytorch.constraints.Positive()}
    return {
        "RankingKernel": (
            RankingKernel,
            {"kernel": KERNEL, "method": "auto", "data": RANKS, "constraints": constraints},
        ),
    }


def botorch_calls():
    from rankernel.learn.botorch import optimize_permutations

    return {
        "optimize_permutations": (
            optimize_permutations,
            {
                "objective": lambda ranks: float(ranks[0]),
                "n_items": 3,
                "n_evaluations": 2,
                "kernel": KERNEL,
                "n_initial": 2,
                "n_starts": 1,
                "rng": 0,
            },
        ),
    }


ADAPTERS = {"dask": dask_calls, "GPy": gpy_calls, "gpytorch": gpytorch_calls, "botorch": botorch_calls}


@pytest.mark.parametrize("library", ADAPTERS)
def test_wrong_arguments_are_named(library):
    pytest.importorskip(library)
    found = [
        f"{name}: {fault}"
        for name, (function, good) in ADAPTERS[library]().items()
        for argument in good
        if (fault := faults(function, good, argument, any_function=argument == "objective"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("library", ADAPTERS)
def test_valid_arguments_are_accepted(library):
    pytest.importorskip(library)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a process fitted to three values
        for function, good in ADAPTERS[library]().values():
            function(**good)

"""What the frontends share, and what they say where their library is not installed."""

import copy
import importlib
import pickle
import re
import sys
import warnings

import naive
import numpy as np
import pytest

import rankernel as rk
from rankernel.errors import MissingExtraError
from rankernel.learn._training_plans import GramBlocks

X = rk.Rankings(np.argsort(np.random.default_rng(0).random((12, 5)), axis=1))
TOP, FREE = X.top(2), X.top(3, unlisted="free")


def as_tuples(rankings):
    return [tuple(row) for row in rankings.ranks.tolist()]


@pytest.mark.parametrize("method", ["auto", "exact", "enumeration", rk.MonteCarlo(8)])
def test_blocks_are_those_of_the_estimate(method):
    start, now = rk.Mallows(0.9), rk.Mallows(0.3)
    blocks = GramBlocks(start, method)
    for rows, columns in [(TOP[:5], None), (TOP[:5], FREE[:4]), (TOP[:5], None)]:
        value, slopes = blocks.gram(now, rows, columns, gradient=True)
        expected = now.estimate(rows, columns, method=method, gradient=True)
        np.testing.assert_allclose(value, expected.value, rtol=1e-13)
        np.testing.assert_allclose(slopes["nu"], expected.gradient["nu"], rtol=1e-13)


@pytest.mark.parametrize("rankings", [X[:3], TOP[:3], FREE[:3]])
def test_diagonal_is_the_marginalised_kernel(rankings):
    twice = rk.concat([rankings, rankings])
    value, slopes = GramBlocks(rk.Mallows(0.9)).diagonal(rk.Mallows(0.3), twice, gradient=True)
    expected = [naive.marginal(naive.mallows(0.3), r, r) for r in as_tuples(twice)]
    derivative = [naive.marginal_derivative(naive.kendall, 0.3, r, r) for r in as_tuples(twice)]
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(slopes["nu"], derivative, rtol=1e-12, atol=1e-15)


def test_blocks_fit_together():
    kernel = rk.Mallows(0.3)
    blocks = GramBlocks(kernel, rk.MonteCarlo(6))
    method = blocks.block_plan(kernel, TOP, None).method
    assert blocks.block_plan(kernel, FREE, TOP).method == method
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


def test_data_settles_what_is_open():
    blocks = GramBlocks(rk.Mallows(), data=TOP)
    assert blocks.kernel == rk.Mallows().resolve(TOP)
    wide = rk.Rankings(np.minimum(np.argsort(np.random.default_rng(1).random((6, 12)), axis=1), 2))
    kernel = rk.Mallows(0.3) * rk.Hamming()
    assert GramBlocks(kernel, data=TOP).block_plan(kernel, X, None).method == rk.Exact()  # few completions, listed
    assert GramBlocks(kernel, data=wide).block_plan(kernel, wide, None).method.n_draws == 64
    with pytest.raises(ValueError, match="give the training rankings: data=X"):
        GramBlocks(rk.Mallows())


def test_a_method_that_was_asked_for_is_kept():
    kernel = rk.Mallows(0.3) * rk.Hamming()
    blocks = GramBlocks(kernel, rk.Exact(limit=10))
    blocks.gram(kernel, X)
    with pytest.raises(rk.ExactnessError, match="no closed form"):
        blocks.gram(kernel, TOP)


@pytest.mark.parametrize("data", [TOP, X.top(2).with_items([*X.items, *map(str, range(5, 12))])], ids=["few", "many"])
def test_copies_keep_the_method_that_was_settled(data):
    kernel = rk.Mallows(0.3) * rk.Hamming()
    blocks = GramBlocks(kernel, data=data)
    for other in (copy.deepcopy(blocks), pickle.loads(pickle.dumps(blocks))):
        assert other.block_plan(kernel, data, None).method == blocks.block_plan(kernel, data, None).method
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
def test_says_what_to_install(module, missing, package, extra, monkeypatch):
    if module == "botorch":
        pytest.importorskip("gpytorch", reason="GPyTorch is not installed: pip install 'rankernel[gpytorch]'")
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, f"rankernel.learn.{module}", raising=False)
    words = f"this needs {package}, which is not installed; do: pip install 'rankernel[{extra}]'"
    with pytest.raises(MissingExtraError, match=re.escape(words)):
        importlib.import_module(f"rankernel.learn.{module}")


# ---------------------------------------------------------------------- one contract for all


def by_sklearn(rows, kernel, method, weights):
    wrapped = rk.SklearnKernel.from_data(kernel, rows, method=method)
    value, slopes = wrapped(rows.ranks, eval_gradient=True)
    # in the logarithm of the parameter
    return value, np.tensordot(weights, slopes[:, :, 0], 2) / kernel.params["nu"]


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

    module, ranks = RankingKernel(kernel, method, data=rows).double(), torch.as_tensor(rows.ranks * 1.0)
    module.nu = kernel.nu  # made in single precision, as torch does
    value = module(ranks).to_dense()
    (value * torch.as_tensor(weights)).sum().backward()
    slope = module.raw_nu.grad.item() / torch.sigmoid(module.raw_nu).item()  # of the softplus that keeps it positive
    return value.detach().numpy(), slope


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
    return value.detach().numpy(), module.raw_nu.grad.item()  # kept between limits, and not transformed


WAYS = [(by_sklearn, FREE), (by_gpy, FREE), (by_gpytorch, FREE), (by_dask, FREE), (by_bayesian_optimization, X)]


@pytest.mark.parametrize(("way", "rows"), WAYS, ids=[way.__name__ for way, _ in WAYS])
@pytest.mark.parametrize("method", ["auto", "enumeration", rk.MonteCarlo(64, rng=5)], ids=str)
@pytest.mark.parametrize("kernel", [rk.Mallows(0.3), rk.Exponential("footrule", 0.1)], ids=str)
def test_every_front_end_has_the_same_numbers_and_gradients(way, rows, method, kernel):
    weights = np.random.default_rng(0).standard_normal((len(rows), len(rows)))
    weights += weights.T
    wanted = kernel.estimate(rows, method=method, gradient=True)
    value, slope = way(rows, kernel, method, weights)
    np.testing.assert_allclose(value, wanted.value, rtol=1e-9)
    if slope is not None:
        assert slope == pytest.approx((weights * wanted.gradient["nu"]).sum(), rel=1e-6)

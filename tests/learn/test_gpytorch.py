import copy
import warnings

import naive
import numpy as np
import pytest

import rankernel as rk

REASON = "GPyTorch is not installed: pip install 'rankernel[gpytorch]'"
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what other libraries warn of while they are imported
    torch = pytest.importorskip("torch", reason=REASON)
    gpytorch = pytest.importorskip("gpytorch", reason=REASON)

from rankernel.learn.gpytorch import RankingKernel  # noqa: E402

NU = 0.3


def permutations(shape, seed):
    return np.argsort(np.random.default_rng(seed).random(shape), axis=-1)


def as_tuples(X):
    return [tuple(row) for row in X.int().tolist()]


def tensor(X):
    return torch.as_tensor(np.array(X, dtype=np.float64))


def module_of(kernel, **options):
    return RankingKernel(kernel, **options).double()


FULL = tensor(permutations((30, 5), 0))
TOP = tensor(rk.Rankings(permutations((30, 5), 0)).top(2))
FREE = tensor(rk.Rankings(permutations((30, 5), 0)).top(3, unlisted="free"))
NOISE = torch.as_tensor(np.random.default_rng(1).normal(scale=0.1, size=30))
TARGET = FULL[:, 0] - 0.5 * FULL[:, 3] + NOISE
TREE = 0.5 * rk.Kendall() + rk.Exponential("hamming", 0.2)
DRAWS = rk.MonteCarlo(8)


# ---------------------------------------------------------------------- values


@pytest.mark.parametrize("X", [FULL, TOP, FREE], ids=["full", "top-k", "free"])
def test_values_match_brute_force(X):
    module, rows, columns = module_of(rk.Mallows(NU)), X[:4], X[3:7]
    module.initialize(nu=NU)  # in double precision
    expected = naive.gram(naive.mallows(NU), as_tuples(rows), as_tuples(columns))
    np.testing.assert_allclose(module(rows, columns).to_dense().detach(), expected, rtol=1e-12)
    own = [naive.marginal(naive.mallows(NU), r, r) for r in as_tuples(rows)]
    np.testing.assert_allclose(module(rows, diag=True).detach(), own, rtol=1e-12)
    across = module(rows, columns, diag=True).detach()
    np.testing.assert_allclose(across, np.diagonal(expected), rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_precision_follows_the_data(dtype):
    module = RankingKernel(rk.Mallows(NU)).to(dtype)
    value = module(FULL.to(dtype)).to_dense()
    assert value.dtype == dtype
    np.testing.assert_allclose(value.detach(), rk.Mallows(NU).gram(FULL.numpy()), rtol=1e-5)
    value.sum().backward()
    assert module.raw_nu.grad.dtype == dtype


@pytest.mark.parametrize("method", ["auto", DRAWS], ids=["auto", "draws"])
@pytest.mark.parametrize("batch_shape", [(), (2,), (3, 1)])
def test_batches_match_their_elements(method, batch_shape):
    module = module_of(rk.Mallows(NU), method=method, batch_shape=torch.Size(batch_shape))
    if batch_shape:
        module.initialize(nu=tensor(np.linspace(0.1, 0.5, np.prod(batch_shape))).reshape(batch_shape))
    ranks = permutations((3, 2, 4, 5), 2)
    x1 = tensor(rk.Rankings(ranks.reshape(-1, 5)).top(2).ranks.reshape(3, 2, 4, 5))
    x2 = TOP[:6]
    value, diagonal = module(x1, x2).to_dense(), module(x1, diag=True)
    assert value.shape == (3, 2, 4, 6)
    assert diagonal.shape == (3, 2, 4)
    rates = module.nu.detach().expand(3, 2)
    drawn = module.blocks.plan(rk.Mallows(NU), rk.Rankings(x2.numpy().astype(int))).method
    assert isinstance(drawn, rk.MonteCarlo if method is DRAWS else rk.Exact)
    for i, j in np.ndindex(3, 2):
        kernel = rk.Mallows(rates[i, j].item())
        expected = kernel.gram(x1[i, j].numpy(), x2.numpy(), method=drawn)
        np.testing.assert_allclose(value[i, j].detach(), expected, rtol=1e-12)
        own = np.diagonal(kernel.gram(x1[i, j].numpy(), method=drawn))
        np.testing.assert_allclose(diagonal[i, j].detach(), own, rtol=1e-12)


@pytest.mark.parametrize("n_rankings", [1, 3])
def test_batches_of_many_different_rankings(n_rankings):
    module, X = module_of(rk.Mallows(NU)), tensor(permutations((7, n_rankings, 5), 3))
    value = module(X).to_dense()
    assert value.shape == (7, n_rankings, n_rankings)
    for x, v in zip(X, value, strict=True):
        np.testing.assert_allclose(v.detach(), module.current().gram(x.numpy()), rtol=1e-12)


def test_training_and_test_data_share_draws():
    module = module_of(rk.Mallows(NU), method=DRAWS)
    X = torch.cat([TOP, FREE])
    full = module(X).to_dense()
    np.testing.assert_allclose(module(FREE, TOP).to_dense().detach(), full[30:, :30].detach(), rtol=1e-12)
    np.testing.assert_allclose(module(FREE, diag=True).detach(), full.diagonal()[30:].detach(), rtol=1e-12)
    assert torch.linalg.eigvalsh(full).min() > -1e-12


def test_last_dim_is_batch():
    with pytest.raises(ValueError, match="last_dim_is_batch"):
        module_of(rk.Mallows(NU)).forward(FULL, FULL, last_dim_is_batch=True)


def test_kernel_without_parameters():
    module = module_of(rk.Kendall())
    assert list(module.parameters()) == []
    np.testing.assert_allclose(module(TOP).to_dense(), rk.Kendall().gram(TOP.numpy()), rtol=1e-12)


# ---------------------------------------------------------------------- parameters


def test_parameters_by_name():
    module = module_of(TREE)
    assert dict(module.named_parameters()).keys() == {"raw_left__scale", "raw_right__nu"}
    np.testing.assert_allclose([module.left__scale.item(), module.right__nu.item()], [0.5, 0.2], rtol=1e-6)
    module.initialize(right__nu=0.7)
    module.left__scale = 2.0
    np.testing.assert_allclose(list(module.current().params.values()), [2.0, 0.7], rtol=1e-12)
    module.register_prior("nu_prior", gpytorch.priors.GammaPrior(2.0, 3.0), "right__nu")
    with pytest.raises(AttributeError):
        _ = module.nu


def test_constraints():
    interval = gpytorch.constraints.Interval(0.01, 1.0)
    module = module_of(rk.Mallows(NU), constraints={"nu": interval})
    module.raw_nu.data.fill_(100.0)
    assert module.nu.item() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="constraints has 'mu'"):
        RankingKernel(rk.Mallows(NU), constraints={"mu": interval})


def test_parameters_stay_within_their_bounds():
    module = module_of(2 * rk.RankBiasedOverlap(0.9))
    assert module.kernel__p.item() == pytest.approx(0.9, rel=1e-6)
    for raw, p in ((100.0, 1.0), (-100.0, 0.0)):
        module.raw_kernel__p.data.fill_(raw)
        assert module.kernel__p.item() == pytest.approx(p)
        assert torch.isfinite(module(TOP[:3]).to_dense()).all()


def test_median_is_resolved_by_data():
    module = module_of(rk.Mallows(), data=FULL.numpy())
    assert module.nu.item() == pytest.approx(rk.Mallows().resolve(FULL.numpy()).nu, rel=1e-6)


# ---------------------------------------------------------------------- derivatives


@pytest.mark.parametrize(
    "kernel", [rk.Mallows(NU), rk.Exponential("spearman", 0.1), TREE, rk.RankBiasedOverlap()], ids=str
)
@pytest.mark.parametrize("method", ["auto", DRAWS], ids=["auto", "draws"])
@pytest.mark.parametrize("diag", [False, True])
def test_derivatives_match_finite_differences(kernel, method, diag):
    module = module_of(kernel, method=method, batch_shape=torch.Size([2]))
    names = list(dict(module.named_parameters()))

    def value(*raw):
        outputs = torch.func.functional_call(module, dict(zip(names, raw, strict=True)), (TOP[:4],), {"diag": diag})
        return outputs if diag else outputs.to_dense()

    raw = [torch.linspace(-1, 1, 2, dtype=torch.float64, requires_grad=True) for _ in names]
    assert torch.autograd.gradcheck(value, raw, rtol=1e-5, atol=1e-8)


def test_derivative_matches_brute_force():
    module = module_of(rk.Mallows(NU))
    module.initialize(nu=NU)
    (gradient,) = torch.autograd.grad(module(TOP[:1], FREE[1:2]).to_dense().sum(), module.raw_nu)
    (r,), (s,) = as_tuples(TOP[:1]), as_tuples(FREE[1:2])
    expected = naive.marginal_derivative(naive.kendall, NU, r, s)
    np.testing.assert_allclose(gradient.item() / torch.sigmoid(module.raw_nu).item(), expected, rtol=1e-12)


# ---------------------------------------------------------------------- models


class Regression(gpytorch.models.ExactGP):
    def __init__(self, X, y, kernel, likelihood):
        super().__init__(X, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(kernel)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def trained(X, y, module, n_steps):
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Regression(X, y, module, likelihood).to(X.dtype)
    likelihood.to(X.dtype)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    history = []
    for _ in range(n_steps):
        optimizer.zero_grad()
        loss = -objective(model(X), y)
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    model.eval()
    likelihood.eval()
    return model, likelihood, history


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("method", ["auto", DRAWS], ids=["auto", "draws"])
def test_training_finds_a_better_nu(method, dtype):
    X, y = FULL.to(dtype), TARGET.to(dtype)
    model, likelihood, history = trained(X, y, RankingKernel(rk.Mallows(3.0), method=method), 60)
    assert history[-1] < history[0] - 0.2
    assert model.covar_module.base_kernel.nu.item() < 1
    new = tensor(permutations((20, 5), 9)).to(dtype)
    with torch.no_grad():
        predicted = likelihood(model(new))
    assert (predicted.variance > 0).all()
    assert np.corrcoef(predicted.mean, new[:, 0] - 0.5 * new[:, 3])[0, 1] > 0.95


def test_prediction_matches_the_formula():
    module = module_of(rk.Mallows(NU))
    model, likelihood, _ = trained(TOP, TARGET, module, 1)
    with torch.no_grad():
        scale, noise = model.covar_module.outputscale.item(), likelihood.noise.item()
        mean = model.mean_module.constant.item()
        K = scale * module.current().gram(TOP.numpy()) + noise * np.eye(30)
        across = scale * module.current().gram(FREE.numpy(), TOP.numpy())
        expected = mean + across @ np.linalg.solve(K, TARGET.numpy() - mean)
        np.testing.assert_allclose(model(FREE).mean, expected, rtol=1e-8)


def test_copy_of_a_model():
    model, _, _ = trained(TOP, TARGET, module_of(rk.Mallows(NU), method=DRAWS), 1)
    with torch.no_grad():
        np.testing.assert_allclose(copy.deepcopy(model)(FREE).mean, model(FREE).mean, rtol=1e-12)

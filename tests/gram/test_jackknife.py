"""Standard errors by the jackknife: against the definition, and against the spread of many runs."""

import math

import naive
import numpy as np
import pytest

import rankernel as rk
from rankernel import MallowsModel, MonteCarlo, Rankings
from rankernel.completions import LogDensity, draw

few_draws_allowed = pytest.mark.filterwarnings("ignore::rankernel.SamplingWarning")

ROWS = Rankings([(0, 1, 2, -1, -1), (-1, 0, 0, 1, -1), (2, 0, -1, 1, 1), (0, 1, 2, 2, 2), (1, 1, 1, 0, 1)])
OFF = ~np.eye(len(ROWS), dtype=bool)


def shifted(rows):
    """The same rankings with other item labels: other draws, equal values of kernels that ignore labels."""
    return rk.concat([Rankings(np.roll(rows.ranks, shift, axis=1)) for shift in range(rows.n_items)])


# ---------------------------------------------------------------------- the definition


def student_factor(degrees):
    from scipy.stats import t

    return t.ppf(0.977, degrees) / 2


def jackknife(values):
    """Variance from leave-one-out values."""
    values = np.asarray(values)
    return (len(values) - 1) / len(values) * ((values - values.mean()) ** 2).sum()


def u_statistic(h, blocks):
    """Mean over pairs of draws in different blocks."""
    different = blocks[:, None] != blocks
    return h[different].mean()


class Oracle:
    """Estimates from the matrix of kernel values between draws, leaving out draws one block at a time."""

    def __init__(self, kernel, rows, n_draws, coupling, size):
        draws = draw(rows, n_draws, coupling=coupling, rng=3).ranks.tolist()
        self.h = [[np.array([[kernel(x, y) for y in right] for x in left]) for right in draws] for left in draws]
        self.blocks = np.arange(n_draws) // size
        self.n_blocks = len(set(self.blocks))

    def without(self, b):
        return self.blocks != b

    def entry(self):
        h = self.h[0][1]
        left = [h[self.without(b)].mean() for b in range(self.n_blocks)]
        right = [h[:, self.without(b)].mean() for b in range(self.n_blocks)]
        return h.mean(), jackknife(left) + jackknife(right)

    def norm(self, i, keep=slice(None)):
        h = self.h[i][i][keep][:, keep]
        return u_statistic(h, self.blocks[keep])

    def diagonal(self):
        h = self.h[0][0]
        biased = [h[self.without(b)][:, self.without(b)].mean() for b in range(self.n_blocks)]
        return h.mean(), jackknife(biased) + (h.mean() - self.norm(0)) ** 2

    def unbiased_diagonal(self):
        return self.norm(0), jackknife([self.norm(0, self.without(b)) for b in range(self.n_blocks)])

    def cosine(self):
        h, norms = self.h[0][1], (self.norm(0), self.norm(1))
        keeps = [self.without(b) for b in range(self.n_blocks)]
        left = [h[keep].mean() / math.sqrt(self.norm(0, keep) * norms[1]) for keep in keeps]
        right = [h[:, keep].mean() / math.sqrt(norms[0] * self.norm(1, keep)) for keep in keeps]
        return h.mean() / math.sqrt(norms[0] * norms[1]), jackknife(left) + jackknife(right)


CASES = [("iid", 6, 1), ("antithetic", 8, 2), ("antithetic", 9, 2), ("orthogonal", 24, 8)]


@few_draws_allowed
@pytest.mark.parametrize(("coupling", "n_draws", "size"), CASES)
@pytest.mark.parametrize(
    ("kernel", "oracle"),
    [
        (rk.Mallows(0.3), naive.mallows(0.3)),
        (rk.Exponential("footrule", 0.2), naive.exponential(naive.footrule, 0.2)),
        (rk.Mallows(0.3) * rk.Hamming(), lambda x, y: naive.mallows(0.3)(x, y) * naive.hamming_kernel(x, y)),
    ],
    ids=["Mallows", "footrule", "product"],
)
def test_standard_errors_match_the_definition(kernel, oracle, coupling, n_draws, size):
    rows = ROWS[:2]
    wanted = Oracle(oracle, rows, n_draws, coupling, size)
    factor = student_factor(wanted.n_blocks - 1)
    biased, unbiased = (
        kernel.estimate(rows, method=MonteCarlo(n_draws, coupling, 0, rng=3, diagonal=diagonal))
        for diagonal in ("embedding", "unbiased")
    )
    cosine = kernel.estimate(rows, method=MonteCarlo(n_draws, coupling, 0, rng=3), normalize=True)
    for found, index, (value, square) in (
        (biased, (0, 1), wanted.entry()),
        (biased, (0, 0), wanted.diagonal()),
        (unbiased, (0, 0), wanted.unbiased_diagonal()),
        (cosine, (0, 1), wanted.cosine()),
    ):
        assert found.value[index] == pytest.approx(value, rel=1e-12)
        assert found.stderr[index] == pytest.approx(factor * math.sqrt(square), rel=1e-9)


@few_draws_allowed
def test_replicates_are_strata():
    """The variance of a mean of independent replicates is the sum of theirs over the squared number."""
    rows, kernel, n = ROWS[:2], rk.Mallows(0.3), 3
    found = kernel.estimate(rows, method=MonteCarlo(8, "iid", 0, rng=3, replicates=n))
    evaluator = kernel.plan(rows, method=MonteCarlo(8, "iid", 0, rng=3, replicates=n))._evaluator
    means = []
    variances = []
    for one in evaluator.sets:
        h = kernel.matrix(*(one.ranks[i].astype(np.int32) for i in range(2)))
        means.append(h.mean())
        rows_out = [np.delete(h, b, 0).mean() for b in range(8)]
        columns_out = [np.delete(h, b, 1).mean() for b in range(8)]
        variances.append(jackknife(rows_out) + jackknife(columns_out))
    assert found.value[0, 1] == pytest.approx(np.mean(means), rel=1e-12)
    wanted = student_factor(7 * n) * math.sqrt(np.sum(variances)) / n
    assert found.stderr[0, 1] == pytest.approx(wanted, rel=1e-9)


@few_draws_allowed
def test_single_blocks_use_replicates():
    """Herding couples all draws; independent replicates give a standard error off the diagonal."""
    rows, kernel = ROWS[3:], rk.Mallows(0.3)
    found = kernel.estimate(rows, method=MonteCarlo(4, "herding", 0, replicates=9))
    assert found.stderr[0, 1] > 0
    with pytest.warns(rk.SamplingWarning, match="no standard error"):
        alone = kernel.estimate(rows, method=MonteCarlo(4, "herding", 0))
    assert np.isnan(alone.stderr).all()
    assert np.isfinite(alone.value).all()


# ---------------------------------------------------------------------- against many runs


@few_draws_allowed
@pytest.mark.parametrize(
    ("coupling", "degree", "n_draws"),
    [
        ("iid", 0, 24),
        ("antithetic", 0, 24),
        ("antithetic", 2, 64),
        ("orthogonal", 0, 64),
        ("iid", 0, 8),
        ("antithetic", 0, 8),
    ],
)
def test_two_standard_errors_cover_the_truth(coupling, degree, n_draws):
    kernel, rows = rk.Mallows(0.3), shifted(ROWS)
    off = ~np.eye(len(rows), dtype=bool)
    exact = kernel.estimate(rows, gradient=True)
    covered, gradients_covered, own_covered = [], [], []
    for seed in range(10):  # times 25 rankings with independent draws
        found = kernel.estimate(rows, method=MonteCarlo(n_draws, coupling, degree, rng=seed), gradient=True)
        inside = np.abs(found.value - exact.value) < 2 * found.stderr
        gradient_inside = np.abs(found.gradient["nu"] - exact.gradient["nu"]) < 2 * found.gradient_stderr["nu"]
        covered.append(inside[off])
        own_covered.append(inside[~off])
        gradients_covered.append(gradient_inside[off])
    assert np.mean(covered) > 0.92
    assert np.mean(gradients_covered) > 0.92
    assert np.mean(own_covered) > 0.95  # the bias is counted


@few_draws_allowed
@pytest.mark.parametrize(("coupling", "n_draws"), [("iid", 32), ("antithetic", 16)])
def test_diagonal_standard_error_contains_the_bias(coupling, n_draws):
    kernel, rows = rk.Mallows(0.3), shifted(ROWS)
    exact = np.diag(kernel.gram(ROWS))
    runs = [kernel.estimate(rows, method=MonteCarlo(n_draws, coupling, 0, rng=seed)) for seed in range(12)]
    values, stderrs = (
        np.concatenate([np.diag(getattr(run, name)).reshape(-1, len(ROWS)) for run in runs])
        for name in ("value", "stderr")
    )
    true, claimed = np.sqrt(((values - exact) ** 2).mean(axis=0)), np.sqrt((stderrs**2).mean(axis=0))
    assert (claimed / true > 0.85).all()
    assert (claimed / true < 1.8).all()


@pytest.mark.parametrize("n_draws", [17, 64])
def test_cosines_account_for_the_covariance_with_norms(n_draws):
    """Completions near one centre make entries and norms vary together."""
    lists, kernel = rk.datasets.uniform(3, 6, rng=3).top(2), rk.Exponential("footrule", 0.1)
    model, pairs = MallowsModel(tuple(range(6)), 0.7), np.triu_indices(3, 1)
    runs = [
        kernel.estimate(lists, method=MonteCarlo(n_draws, completions=model, rng=seed), normalize=True)
        for seed in range(160)
    ]
    cosines, stderrs = (np.array([getattr(run, name)[pairs] for run in runs]) for name in ("value", "stderr"))
    assert 0.85 < np.sqrt(((stderrs**2).mean(axis=0) / cosines.var(axis=0)).mean()) < 1.3


def test_incomplete_last_block():
    """64 antithetic draws of two tied items are exact; a 65th draw is one order or the other."""
    rows, kernel = Rankings([[0, 0], [0, 1]]), rk.Mallows(1.0)
    runs = [kernel.estimate(rows, method=MonteCarlo(65, "antithetic", 0, rng=seed)) for seed in range(100)]
    true = np.sqrt(np.mean([(run.value[0, 1] - kernel.gram(rows)[0, 1]) ** 2 for run in runs]))
    assert true > 0.004
    assert 0.7 < np.sqrt(np.mean([run.stderr[0, 1] ** 2 for run in runs])) / true < 1.3


def test_self_normalised_weights():
    kernel, model = rk.Mallows(0.3), LogDensity(lambda ranks: 0.3 * ranks[:, 0])
    rows = ROWS[:3]
    exact = np.empty((3, 3))
    sets = [np.array(naive.completions(row)) for row in rows.ranks.tolist()]
    for i, X in enumerate(sets):
        for j, Y in enumerate(sets):
            weights = np.exp(0.3 * X[:, 0]), np.exp(0.3 * Y[:, 0])
            values = kernel.matrix(X.astype(np.int32), Y.astype(np.int32))
            exact[i, j] = weights[0] @ values @ weights[1] / weights[0].sum() / weights[1].sum()
    off = np.triu_indices(3, 1)
    runs = [kernel.estimate(rows, method=MonteCarlo(48, "iid", completions=model, rng=seed)) for seed in range(60)]
    covered = [(np.abs(run.value - exact) <= 2 * run.stderr)[off] for run in runs]
    assert np.mean(covered) > 0.9
    errors = np.array([(run.value - exact)[off] for run in runs])
    claimed = np.array([run.stderr[off] for run in runs])
    assert 0.85 < np.sqrt((claimed**2).mean() / (errors**2).mean()) < 1.3


@few_draws_allowed
def test_gradients_of_an_unbiased_diagonal():
    X, method = rk.datasets.uniform(4, 8, rng=0).top(3, unlisted="free"), MonteCarlo(16, diagonal="unbiased")
    kernel, step = rk.Mallows(0.3), 1e-5
    near = [rk.Mallows(0.3 + sign * step).gram(X, method=method) for sign in (1, -1)]
    found = kernel.plan(X, method=method).estimate(gradient=True).gradient["nu"]
    np.testing.assert_allclose(found, (near[0] - near[1]) / (2 * step), atol=1e-8)


# ---------------------------------------------------------------------- reliability


def test_few_effective_blocks_warn():
    """A narrow kernel between distant rankings: few pairs of draws carry the value."""
    rows = rk.datasets.uniform(4, 12, rng=0).top(3, unlisted="free")
    method = MonteCarlo(32, "iid", 0)
    with pytest.warns(rk.SamplingWarning, match="n_draws"):
        narrow = rk.Mallows(2.0).estimate(rows, method=method)
    off = ~np.eye(4, dtype=bool)
    assert narrow.unreliable[off].mean() > 0.8
    assert not rk.Mallows(0.01).estimate(rows, method=method).unreliable.any()


@few_draws_allowed
@pytest.mark.filterwarnings("ignore::rankernel.IndefiniteKernelWarning")
@pytest.mark.parametrize("degree", [0, "auto"])
@pytest.mark.parametrize("name", ["kendall", "footrule", "spearman", "hamming", "cayley"])
def test_entries_that_no_draw_reaches_are_unreliable(name, degree):
    nested = Rankings.from_orders([[0, 1, 2], [0, 1, 2, 3]], items=range(10))
    for coupling in ("auto", "iid"):
        found = rk.Exponential(name, 1000.0).estimate(nested, method=MonteCarlo(64, coupling, degree))
        assert found.unreliable[0, 1]


@few_draws_allowed
def test_tiny_values_do_not_underflow():
    rows = rk.datasets.uniform(3, 20, rng=0).top(6, unlisted="free")
    found = rk.Exponential("spearman", 0.3).estimate(rows, method=MonteCarlo(64, control_variates=0))
    off = np.triu_indices(3, 1)
    assert (found.value[off] < 1e-40).all()
    assert (found.stderr[off] > 0).all()
    assert found.unreliable[off].all()


@few_draws_allowed
def test_few_heavy_draws_are_unreliable():
    density = LogDensity(lambda ranks: 2.0 * ranks[:, 0])
    rows = Rankings([(0, 0, 0, 0), (0, 1, 2, 2)])
    runs = [rk.Mallows(0.5).estimate(rows, method=MonteCarlo(8, "iid", 0, density, seed)) for seed in range(20)]
    assert np.mean([run.unreliable[0, 1] for run in runs]) > 0.8
    assert np.mean([run.unreliable[1, 1] for run in runs]) < 0.2

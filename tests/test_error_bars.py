"""What Monte Carlo says about itself is true: single cases that once were not; test_coverage.py has the contract."""

import naive
import numpy as np
import pytest

import rankernel as rk
from rankernel import MonteCarlo, Rankings, _loops
from rankernel.gram.montecarlo.error import own_spread

few_draws_meant = pytest.mark.filterwarnings("ignore:.*rest on a few draws:rankernel.SamplingWarning")


def standard_errors_off(values, truth):
    """How many standard errors the mean of many runs is away from the truth."""
    values = np.asarray(values)
    return (values.mean(axis=0) - truth) / (values.std(axis=0, ddof=1) / np.sqrt(len(values)))


@few_draws_meant
def test_a_tolerance_bounds_the_distance_from_the_truth_on_the_diagonal_too():
    lists = Rankings.from_orders([[0, 1, 2], [3, 4, 5]], items=range(20))
    kernel = rk.Mallows(0.5)
    found = kernel.estimate(lists, method=MonteCarlo(), tol=1e-3)
    assert found.stderr.max() <= 1e-3
    assert (np.abs(found.value - kernel.gram(lists)) <= 2 * found.stderr).all()


@pytest.mark.filterwarnings("ignore::rankernel.IndefiniteKernelWarning")
def test_normalised_estimates_cover_the_truth():
    lists, kernel = rk.datasets.uniform(4, 8, seed=0).top(3), rk.Exponential("cayley", 0.7)
    truth, pairs = kernel.gram(lists, normalize=True), np.triu_indices(4, 1)
    runs = [kernel.estimate(lists, method=MonteCarlo(64, seed=seed), normalize=True) for seed in range(60)]
    covered = [(np.abs(run.value - truth) <= 2 * run.stderr)[pairs] for run in runs]
    assert np.mean(covered) > 0.93
    assert all((run.value.diagonal().round(12) >= 1).all() for run in runs)


def test_a_draw_beyond_the_last_block_counts():
    """64 antithetic draws of two tied items are exact; a 65th is one or the other way round."""
    rows, kernel = Rankings([[0, 0], [0, 1]]), rk.Mallows(1.0)
    runs = [kernel.estimate(rows, method=MonteCarlo(65, seed=seed)) for seed in range(100)]
    true = np.sqrt(np.mean([(run.value[0, 1] - kernel.gram(rows)[0, 1]) ** 2 for run in runs]))
    assert true > 0.004
    assert 0.9 < np.sqrt(np.mean([run.stderr[0, 1] ** 2 for run in runs])) / true < 1.3


# ---------------------------------------------------------------------- equal ballots

EQUAL = Rankings([(0, 1, 1, 1), (1, 0, 1, 1), (0, 1, 1, 1)])


def test_equal_ballots_share_their_draws_and_their_bias():
    kernel = rk.Mallows(0.8)
    runs = [kernel.estimate(EQUAL, method=MonteCarlo(8, "iid", 0, seed=seed)) for seed in range(40)]
    for run in runs:
        assert run.value[0, 2] == run.value[0, 0] == run.value[2, 2]
        assert run.stderr[0, 2] == run.stderr[0, 0] > 0
    values, truth = [run.value for run in runs], kernel.gram(EQUAL)
    assert standard_errors_off([value[0, 2] for value in values], truth[0, 2]) > 4
    assert abs(standard_errors_off([value[0, 1] for value in values], truth[0, 1])) < 4


@pytest.mark.parametrize("distinct_rows", [False, True])
def test_streamed_discrepancies_are_unbiased(distinct_rows):
    X, Y, kernel = EQUAL, Rankings([(1, 0, 1, 1), (1, 1, 0, 1), (1, 1, 0, 1), (0, 1, 1, 1)]), rk.Mallows(0.8)
    runs = [
        rk.mmd2_streamed(X, Y, kernel, method=MonteCarlo(8, "iid", 0, seed=seed, distinct_rows=distinct_rows))
        for seed in range(200)
    ]
    assert abs(standard_errors_off(runs, rk.mmd2_streamed(X, Y, kernel))) < 4


def test_rows_and_columns_with_draws_of_their_own_are_independent():
    one, kernel = Rankings([(0, 1, 1, 1)]), rk.Mallows(0.8)
    runs = [
        kernel.estimate(one, one[:], method=MonteCarlo(8, "iid", 0, seed=seed, distinct_rows=True))
        for seed in range(100)
    ]
    assert abs(standard_errors_off([run.value[0, 0] for run in runs], kernel.gram(one)[0, 0])) < 4
    true = np.std([run.value[0, 0] for run in runs])
    assert 0.85 < np.sqrt(np.mean([run.stderr[0, 0] ** 2 for run in runs])) / true < 1.3


# ---------------------------------------------------------------------- weights, blocks, tolerances


def test_an_unbiased_diagonal_of_weighted_draws_divides_by_the_weights_it_uses():
    """A kernel that is 1 everywhere is 1 in the mean, however the draws are weighted."""
    density = rk.LogDensity(lambda ranks: 0.5 * ranks[:, 0])
    method = MonteCarlo(8, diagonal="unbiased", completions=density, moments=0)
    rows = Rankings([(0, 0, 0, 0), (0, 0, 1, 1)])
    np.testing.assert_allclose(rk.Mallows(0.0).gram(rows, method=method), 1.0, rtol=1e-12)


@pytest.mark.parametrize("n_rows", [5, 40])
def test_an_entry_is_the_same_in_any_block(n_rows):
    X = rk.datasets.uniform(n_rows, 35, seed=0).top(5, unlisted="free")
    kernel, method = rk.Mallows(0.01), MonteCarlo(8, seed=1)
    np.testing.assert_array_equal(kernel.gram(X, method=method)[:3], kernel.gram(X[:3], X, method=method))


@few_draws_meant
def test_a_tolerance_needs_little_memory_with_kernels_that_have_no_distance(monkeypatch):
    largest = []
    matrix = rk.Hamming.matrix

    def watched(self, X, Y):
        largest.append(len(X) * len(Y))
        return matrix(self, X, Y)

    monkeypatch.setattr(rk.Hamming, "matrix", watched)
    rows = Rankings([(0, 0, 0, 1, 1), (0, 1, 1, 1, 0)])
    found = (rk.Mallows(0.5) * rk.Hamming()).estimate(rows, method=MonteCarlo(64, "iid", 0), tol=0.02)
    assert found.stderr.max() <= 0.02
    assert max(largest) <= 2**19


def test_derivatives_have_an_error_too():
    rows, kernel = rk.datasets.uniform(3, 6, seed=0).top(2), rk.Mallows(0.3)
    truth = kernel.estimate(rows, gradient=True).gradient["nu"]
    runs = [kernel.estimate(rows, method=MonteCarlo(64, seed=seed), gradient=True) for seed in range(60)]
    off = ~np.eye(3, dtype=bool)
    covered = [(np.abs(run.gradient["nu"] - truth) <= 2 * run.gradient_stderr["nu"])[off] for run in runs]
    assert np.mean(covered) > 0.93


# ---------------------------------------------------------------------- edges


@pytest.mark.filterwarnings("ignore::rankernel.IndefiniteKernelWarning")
@pytest.mark.parametrize(
    "kernel",
    [rk.Exponential("linf", 1.0), rk.WeightedKendall.additive("hyperbolic"), rk.Mallows(1.0) * rk.Hamming()],
    ids=repr,
)
def test_no_rankings_give_no_entries(kernel):
    none, some = Rankings(np.empty((0, 4), int)), rk.datasets.uniform(3, 4, seed=0)
    assert kernel.gram(none, some).shape == (0, 3)
    assert kernel.gram(some, none).shape == (3, 0)
    assert kernel.gram(none).shape == (0, 0)


def test_rankings_without_length_are_zero_when_normalised():
    rows = Rankings([[0, 0, 0], [0, 1, 2]])
    assert rk.Kendall().gram(rows, normalize=True).tolist() == [[0, 0], [0, 1]]


def test_no_diffusion_is_known_exactly():
    lists = rk.datasets.uniform(3, 8, seed=0).top(4)
    assert isinstance(rk.Diffusion(0.0).plan(lists).method, rk.Exact)
    every = [np.array(naive.completions(ranks)) for ranks in lists.ranks.tolist()]
    truth = [[(x[:, None] == y[None]).all(axis=2).mean() for y in every] for x in every]
    np.testing.assert_allclose(rk.Diffusion(0.0).gram(lists), truth, atol=1e-15)


@pytest.mark.parametrize("nu", [1e20, 1e300])
@pytest.mark.parametrize("name", ["footrule", "spearman", "hamming", "kendall"])
def test_very_sharp_kernels_see_equal_completions_only(name, nu):
    lists = rk.datasets.uniform(3, 6, seed=0).top(3)
    truth = rk.Diffusion(0.0).gram(lists)
    np.testing.assert_allclose(rk.Exponential(name, nu).gram(lists), truth, atol=1e-15)


# ---------------------------------------------------------------------- variances of means over pairs of blocks


def pair_tables(n, first, second, own, seed=0, n_tables=20000):
    """Tables of m + a_g + a_h + e_gh, symmetric, with blocks of their own on the diagonal; sds of a, e and these."""
    rng = np.random.default_rng(seed)
    a = first * rng.standard_normal((n_tables, n))
    e = second * rng.standard_normal((n_tables, n, n))
    table = 1 + a[:, :, None] + a[:, None, :] + np.triu(e, 1) + np.triu(e, 1).transpose(0, 2, 1)
    table[:, np.arange(n), np.arange(n)] = 2 + 2 * a + own * rng.standard_normal((n_tables, n))
    return table


@pytest.mark.parametrize(("first", "second", "own"), [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.3, 1.0, 0.7)])
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (2, 2, 2, 2, 2, 2, 2)])
def test_the_variance_over_own_draws_is_unbiased(sizes, first, second, own):
    shares = np.array(sizes) / np.sum(sizes)
    tables = pair_tables(len(sizes), first, second, own)
    found = own_spread(tables * np.multiply.outer(shares, shares), np.tile(shares, (len(tables), 1)), len(sizes))
    fair = found.without_bias()
    off = ~np.eye(len(sizes), dtype=bool)
    assert fair.value == pytest.approx(tables[:, off].mean(axis=1))
    for values, variances in ((fair.value, fair.variance), (found.value, found.variance)):
        noise = np.hypot(np.std((values - values.mean()) ** 2), np.std(variances)) / np.sqrt(len(values))
        assert abs(variances.mean() - values.var(ddof=1)) < 5 * noise
    assert found.least_variance.mean() <= 1.02 * min(found.value.var(), fair.value.var())


@pytest.mark.parametrize(("rows", "columns", "rest"), [(1.0, 0.5, 0.0), (0.0, 0.0, 1.0), (0.3, 0.3, 1.0)])
def test_the_variance_over_two_sets_of_draws_is_unbiased(rows, columns, rest):
    rng, n, n_tables = np.random.default_rng(1), 6, 20000
    tables = 1 + rows * rng.standard_normal((n_tables, n, 1)) + columns * rng.standard_normal((n_tables, 1, n))
    tables = tables + rest * rng.standard_normal((n_tables, n, n))
    left, right = np.zeros(n_tables, dtype=np.intp), np.ones(n_tables, dtype=np.intp)
    out = np.empty((5, n_tables))
    _loops.draw_sums.spreads(tables / n**2, np.full((2, n), 1 / n), n, left, right, out)
    value, variance, least, squares, _ = out
    assert value == pytest.approx(tables.mean(axis=(1, 2)))
    assert squares == pytest.approx(((tables - tables.mean(axis=(1, 2), keepdims=True)) ** 2).sum(axis=(1, 2)))
    noise = np.hypot(np.std((value - 1) ** 2), np.std(variance)) / np.sqrt(n_tables)
    assert abs(variance.mean() - ((value - 1) ** 2).mean()) < 5 * noise
    assert least.mean() <= 1.02 * value.var()

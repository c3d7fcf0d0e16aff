"""What Monte Carlo says about itself is true: single cases that once were not; test_coverage.py has the contract."""

import naive
import numpy as np
import pytest

import rankernel as rk
from rankernel import MallowsModel, MonteCarlo, Rankings, _loops
from rankernel.gram.montecarlo import replicate
from rankernel.gram.montecarlo.error import (
    LEAST,
    Spread,
    between_variance,
    error_bars,
    of_few_hits,
    own_spread,
    widening,
)
from rankernel.gram.normalize import common_variation, lengths
from rankernel.learn.mmd_streamed import mmd2_streamed

few_draws_meant = pytest.mark.filterwarnings("ignore:.*rest on a few draws:rankernel.SamplingWarning")


def standard_errors_off(values, truth):
    """How many standard errors the mean of many runs is away from the truth."""
    values = np.asarray(values)
    return (values.mean(axis=0) - truth) / (values.std(axis=0, ddof=1) / np.sqrt(len(values)))


@pytest.mark.filterwarnings("ignore::rankernel.IndefiniteKernelWarning")
def test_normalised_estimates_cover_the_truth():
    lists, kernel = rk.datasets.uniform(4, 8, rng=0).top(3), rk.Exponential("cayley", 0.7)
    truth, pairs = kernel.gram(lists, normalize=True), np.triu_indices(4, 1)
    runs = [kernel.estimate(lists, method=MonteCarlo(64, rng=seed), normalize=True) for seed in range(30)]
    covered = [(np.abs(run.value - truth) <= 2 * run.stderr)[pairs] for run in runs]
    assert np.mean(covered) > 0.93


@few_draws_meant
@pytest.mark.parametrize("n_draws", [17, 64])  # with repetitions for the lengths, and with the draws of the entries
def test_entries_and_lengths_vary_together_as_is_said(n_draws):
    """Of completions near one order all is large or small at once, and the bars of cosines were twice too wide."""
    lists, kernel = rk.datasets.uniform(3, 6, rng=3).top(2), rk.Exponential("footrule", 0.1)
    model, pairs = MallowsModel(tuple(range(6)), 0.7), np.triu_indices(3, 1)
    entries, logs, told, cosines, bars = [], [], [], [], []
    for seed in range(160):
        plan = kernel.plan(lists, method=MonteCarlo(n_draws, completions=model, rng=seed))
        sides, found = lengths(plan), plan.estimate(normalize=True)
        entries.append(plan.gram()[pairs])
        logs.append(np.add.outer(*(np.log(side.value) for side in sides))[pairs])
        told.append(common_variation(plan, sides, 1)[pairs])
        cosines.append(found.value[pairs])
        bars.append(found.stderr[pairs])
    entries, logs, told, cosines, bars = map(np.array, (entries, logs, told, cosines, bars))
    products = (entries - entries.mean(axis=0)) * (logs - logs.mean(axis=0))
    n_blocks = {17: 3 * 17, 64: 32}[n_draws]
    noise = np.hypot(products.std(axis=0), told.std(axis=0)) / np.sqrt(len(told))
    assert (np.abs(told.mean(axis=0) / widening(np.array(n_blocks)) ** 2 - products.mean(axis=0)) < 4 * noise).all()
    assert 0.9 < np.sqrt(((bars**2).mean(axis=0) / cosines.var(axis=0)).mean()) < 1.3


def test_a_draw_beyond_the_last_block_counts():
    """64 antithetic draws of two tied items are exact; a 65th is one or the other way round."""
    rows, kernel = Rankings([[0, 0], [0, 1]]), rk.Mallows(1.0)
    runs = [kernel.estimate(rows, method=MonteCarlo(65, rng=seed)) for seed in range(100)]
    true = np.sqrt(np.mean([(run.value[0, 1] - kernel.gram(rows)[0, 1]) ** 2 for run in runs]))
    assert true > 0.004
    assert 0.9 < np.sqrt(np.mean([run.stderr[0, 1] ** 2 for run in runs])) / true < 1.3


# ---------------------------------------------------------------------- equal ballots

EQUAL = Rankings([(0, 1, 1, 1), (1, 0, 1, 1), (0, 1, 1, 1)])


def test_equal_ballots_share_their_draws_and_their_bias():
    kernel = rk.Mallows(0.8)
    runs = [kernel.estimate(EQUAL, method=MonteCarlo(8, "iid", 0, rng=seed)) for seed in range(40)]
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
        mmd2_streamed(X, Y, kernel, method=MonteCarlo(8, "iid", 0, rng=seed, distinct_rows=distinct_rows))
        for seed in range(60)
    ]
    assert abs(standard_errors_off(runs, mmd2_streamed(X, Y, kernel))) < 4


def test_rows_and_columns_with_draws_of_their_own_are_independent():
    one, kernel = Rankings([(0, 1, 1, 1)]), rk.Mallows(0.8)
    runs = [
        kernel.estimate(one, one[:], method=MonteCarlo(8, "iid", 0, rng=seed, distinct_rows=True))
        for seed in range(100)
    ]
    assert abs(standard_errors_off([run.value[0, 0] for run in runs], kernel.gram(one)[0, 0])) < 4
    true = np.std([run.value[0, 0] for run in runs])
    assert 0.85 < np.sqrt(np.mean([run.stderr[0, 0] ** 2 for run in runs])) / true < 1.3


# ---------------------------------------------------------------------- weights, blocks, tolerances


def test_an_unbiased_diagonal_of_weighted_draws_divides_by_the_weights_it_uses():
    """A kernel that is 1 everywhere is 1 in the mean, however the draws are weighted."""
    density = rk.LogDensity(lambda ranks: 0.5 * ranks[:, 0])
    method = MonteCarlo(8, diagonal="unbiased", completions=density, control_variates=0)
    rows = Rankings([(0, 0, 0, 0), (0, 0, 1, 1)])
    np.testing.assert_allclose(rk.Mallows(0.0).gram(rows, method=method), 1.0, rtol=1e-12)


@pytest.mark.parametrize("diagonal", ["embedding", "unbiased"])
def test_what_rests_on_a_few_heavy_draws_is_doubtful(diagonal):
    """One draw of four has nearly all the weight of the first ranking; those of the second have the same."""
    density = rk.LogDensity(lambda ranks: 2.0 * ranks[:, 0])
    rows = Rankings([(0, 0, 0, 0), (0, 1, 2, 2)])
    with pytest.warns(rk.SamplingWarning):
        runs = [
            rk.Mallows(0.5).estimate(rows, method=MonteCarlo(8, "iid", 0, density, seed, diagonal=diagonal))
            for seed in range(20)
        ]
    assert all(run.unreliable.tolist() == [[True, True], [True, False]] for run in runs)


def test_few_draws_that_are_worth_hardly_any_are_told():
    density = rk.LogDensity(lambda ranks: ranks @ [20.0, 8.0, 3.0, 0.0])
    with pytest.warns(rk.SamplingWarning, match=r"worth hardly any, .* \(the worst: 2\.9 of 6\)"):
        rk.Mallows(0.5).gram(Rankings([(0, 0, 0, 0)]), method=MonteCarlo(6, "iid", 0, density))


@pytest.mark.parametrize("n_rows", [5, 40])
def test_an_entry_is_the_same_in_any_block(n_rows):
    X = rk.datasets.uniform(n_rows, 35, rng=0).top(5, unlisted="free")
    kernel, method = rk.Mallows(0.01), MonteCarlo(8, rng=1)
    np.testing.assert_array_equal(kernel.gram(X, method=method)[:3], kernel.gram(X[:3], X, method=method))


@pytest.mark.parametrize(
    "kernel", [rk.Mallows(0.1), rk.Polynomial(2), rk.Mallows(0.1) + rk.Exponential("footrule", 0.05)], ids=repr
)
def test_an_entry_with_several_exact_moments_is_the_same_in_any_block(kernel):
    X = rk.datasets.uniform(80, 9, rng=1).top(4, unlisted="free")
    plan = kernel.plan(X, method=MonteCarlo(8))
    np.testing.assert_array_equal(plan.block(slice(3, 9), slice(30, 47)), plan.gram()[3:9, 30:47])


@pytest.mark.parametrize("coupling", ["iid", "antithetic", "latin"])
def test_an_unbiased_diagonal_is_the_same_in_any_block(coupling):
    X = rk.datasets.uniform(30, 9, rng=1).top(4, unlisted="free")
    plan = rk.Mallows(0.1).plan(X, method=MonteCarlo(9, coupling, diagonal="unbiased"))
    whole = plan.gram()
    np.testing.assert_array_equal(plan.block(slice(3, 9), slice(0, 12)), whole[3:9, :12])
    np.testing.assert_array_equal(plan.block(slice(5, 6), slice(5, 6)), whole[5:6, 5:6])
    np.testing.assert_array_equal(plan.diagonal(), whole.diagonal())


def test_a_wide_order_among_preferences_changes_nothing_for_the_others():
    n, rng = 30, np.random.default_rng(5)
    narrow = [[(i, i + 1) for i in range(n - 1) if i != cut] + [(0, n - 1)] for cut in (4, 9)]
    wide = [(a, b) for a in range(15) for b in range(15, n) if rng.random() < 0.25]
    orders = rk.Preferences.from_pairs([*narrow, wide], items=range(n))
    kernel, method = rk.Mallows(0.02), MonteCarlo(8)
    np.testing.assert_array_equal(kernel.gram(orders, method=method)[:2, :2], kernel.gram(orders[:2], method=method))


@pytest.mark.parametrize("kernel", [rk.Mallows(0.3) * rk.Hamming(), rk.Exponential("footrule", 0.2)], ids=repr)
def test_draws_are_compared_some_at_a_time(kernel, monkeypatch):
    X, seen = rk.datasets.uniform(4, 6, rng=0).top(2), []
    at_once = kernel.estimate(X[:2], X[2:], method=MonteCarlo(32))
    matrix, distances = rk.Hamming.matrix, replicate.Replicate.distances
    monkeypatch.setattr(rk.Hamming, "matrix", lambda *given: seen.append(matrix(*given)) or seen[-1])
    monkeypatch.setattr(replicate.Replicate, "distances", lambda *given: seen.append(distances(*given)) or seen[-1])
    monkeypatch.setattr(replicate, "PAIRS_AT_ONCE", 128)
    by_part = kernel.estimate(X[:2], X[2:], method=MonteCarlo(32))
    assert max(part.size for part in seen) <= 128
    np.testing.assert_allclose(by_part.value, at_once.value, rtol=1e-13)
    np.testing.assert_allclose(by_part.stderr, at_once.stderr, rtol=1e-9)


@few_draws_meant
def test_slopes_leave_the_bias_out_where_values_do():
    X, method = rk.datasets.uniform(4, 8, rng=0).top(3, unlisted="free"), MonteCarlo(16, diagonal="unbiased")
    kernel, step = rk.Mallows(0.3), 1e-5
    near = [rk.Mallows(0.3 + sign * step).gram(X, method=method) for sign in (1, -1)]
    plan = kernel.plan(X, method=method)
    slope = plan.estimate(gradient=True).gradient["nu"]
    np.testing.assert_allclose(slope, (near[0] - near[1]) / (2 * step), atol=1e-8)
    np.testing.assert_allclose(plan.diagonal_gradient()["nu"], slope.diagonal(), atol=1e-14)


def test_derivatives_have_an_error_too():
    rows, kernel = rk.datasets.uniform(3, 6, rng=0).top(2), rk.Mallows(0.3)
    truth = kernel.estimate(rows, gradient=True).gradient["nu"]
    runs = [kernel.estimate(rows, method=MonteCarlo(64, rng=seed), gradient=True) for seed in range(60)]
    off = ~np.eye(3, dtype=bool)
    covered = [(np.abs(run.gradient["nu"] - truth) <= 2 * run.gradient_stderr["nu"])[off] for run in runs]
    assert np.mean(covered) > 0.93


# ---------------------------------------------------------------------- edges


@pytest.mark.filterwarnings("ignore::rankernel.IndefiniteKernelWarning")
@pytest.mark.parametrize(
    "kernel",
    [
        rk.Exponential("linf", 1.0),
        rk.WeightedKendall.additive("hyperbolic"),
        rk.Mallows(1.0) * rk.Hamming(),
        rk.Mallows(1.0),
        rk.Diffusion(0.1),
        *(rk.Exponential(name, 0.5) for name in ("cayley", "footrule", "spearman")),
    ],
    ids=repr,
)
@pytest.mark.parametrize("method", ["auto", "exact", MonteCarlo(4)], ids=str)
def test_no_rankings_give_no_entries(kernel, method):
    none = Rankings(np.empty((0, 4), int))
    full, orders = rk.datasets.uniform(3, 4, rng=0), rk.Preferences.from_pairs([[(0, 1), (2, 3)]], items=range(4))
    for some in (full, full.top(2), full.top(2, unlisted="free"), orders):
        for normalize in (False, True):
            assert kernel.gram(none, some, method=method, normalize=normalize).shape == (0, len(some))
            assert kernel.gram(some, none, method=method, normalize=normalize).shape == (len(some), 0)
        assert kernel.estimate(none, some, method=method, gradient=True).value.shape == (0, len(some))
    assert kernel.gram(none, method=method).shape == (0, 0)


def test_rankings_without_length_are_zero_when_normalised():
    rows = Rankings([[0, 0, 0], [0, 1, 2]])
    assert rk.Kendall().gram(rows, normalize=True).tolist() == [[0, 0], [0, 1]]


@pytest.mark.parametrize("graph", ["transpositions", "adjacent"])
def test_no_diffusion_is_known_exactly(graph):
    lists = rk.concat(
        [rk.datasets.uniform(3, 7, rng=0).top(3), Rankings([(0, 0, 1, 1, 2, 2, 2), (0, 0, 0, 1, 1, 1, 1)])]
    )
    kernel = rk.Diffusion(0.0, graph)
    assert isinstance(kernel.plan(lists).method, rk.Exact)
    every = [np.array(naive.completions(ranks)) for ranks in lists.ranks.tolist()]
    truth = [[(x[:, None] == y[None]).all(axis=2).mean() for y in every] for x in every]
    np.testing.assert_allclose(kernel.gram(lists), truth, atol=1e-15)


def test_a_plan_promises_no_walk_that_its_table_cannot_hold():
    free = rk.datasets.uniform(3, 12, rng=0).top(4, unlisted="free")
    with pytest.raises(rk.ExactnessError, match="at most 9 items"):
        rk.Diffusion(0.1, "adjacent").plan(free)


@pytest.mark.parametrize("nu", [1e20, 1e300])
@pytest.mark.parametrize("name", ["footrule", "spearman", "hamming", "kendall"])
def test_very_sharp_kernels_see_equal_completions_only(name, nu):
    lists = rk.datasets.uniform(3, 6, rng=0).top(3)
    truth = rk.Diffusion(0.0).gram(lists)
    np.testing.assert_allclose(rk.Exponential(name, nu).gram(lists), truth, atol=1e-15)


# ---------------------------------------------------------------------- values that no draw has

NESTED = Rankings.from_orders([[0, 1, 2], [0, 1, 2, 3]], items=range(10))


@few_draws_meant
@pytest.mark.parametrize("moments", [0, "auto"])
@pytest.mark.parametrize("name", ["kendall", "footrule", "spearman", "hamming", "cayley"])
@pytest.mark.filterwarnings("ignore::rankernel.IndefiniteKernelWarning")
def test_nothing_is_sure_where_no_draw_hits(name, moments):
    kernel = rk.Exponential(name, 1000.0)
    truth = kernel.gram(NESTED)
    for coupling in ("auto", "iid"):
        found = kernel.estimate(NESTED, method=MonteCarlo(64, coupling, moments))
        assert found.unreliable[0, 1]
        assert (np.abs(found.value - truth) <= 2 * found.stderr).all()


@few_draws_meant
def test_errors_of_very_small_values_do_not_underflow():
    rows = rk.datasets.uniform(3, 20, rng=0).top(6, unlisted="free")
    found = rk.Exponential("spearman", 1.0).estimate(rows, method=MonteCarlo(64, control_variates=0))
    assert found.value[0, 1] < 1e-200
    assert found.stderr.min() > 1e-200
    assert found.unreliable.all()


@few_draws_meant
@pytest.mark.parametrize("name", ["hamming", "cayley", "kendall"])
@pytest.mark.filterwarnings("ignore::rankernel.IndefiniteKernelWarning")
def test_short_lists_and_sharp_kernels_are_covered(name):
    lists = rk.datasets.uniform(6, 12, rng=4).top(2)
    kernel = rk.Exponential(name).resolve(rk.datasets.uniform(50, 12, rng=0))
    kernel, pairs = kernel.replace(nu=30 * kernel.nu), np.triu_indices(6, 1)
    truth = kernel.gram(lists)
    runs = [kernel.estimate(lists, method=MonteCarlo(64, rng=seed)) for seed in range(5)]
    covered = np.array([(np.abs(run.value - truth) <= 2 * run.stderr)[pairs] for run in runs])
    assert covered.mean() > 0.93
    assert np.mean([run.unreliable[pairs] for run in runs]) > 0.9


# ---------------------------------------------------------------------- variances of means over pairs of blocks


def pair_tables(n, first, second, own, seed=0, n_tables=8000):
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
    blocks, nothing = tables * np.multiply.outer(shares, shares), np.zeros((2, len(tables)))
    found = own_spread(blocks, np.tile(shares, (len(tables), 1)), len(sizes), sizes=nothing)
    fair = found.without_bias()
    off = ~np.eye(len(sizes), dtype=bool)
    assert fair.value == pytest.approx(tables[:, off].mean(axis=1))
    for values, variances in ((fair.value, fair.variance), (found.value, found.variance)):
        noise = np.hypot(np.std((values - values.mean()) ** 2), np.std(variances)) / np.sqrt(len(values))
        assert abs(variances.mean() - values.var(ddof=1)) < 5 * noise
    assert found.least_variance.mean() <= 1.02 * min(found.value.var(), fair.value.var())


@pytest.mark.parametrize(("rows", "columns", "rest"), [(1.0, 0.5, 0.0), (0.0, 0.0, 1.0), (0.3, 0.3, 1.0)])
def test_the_variance_over_two_sets_of_draws_is_unbiased(rows, columns, rest):
    rng, n, n_tables = np.random.default_rng(1), 6, 8000
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


@pytest.mark.parametrize(("alone", "rank"), [(0.0, 3), (0.0, 9), (0.05, 3), (0.1, 9), (0.5, 3)])
def test_bars_between_repetitions_hold_whatever_varies(alone, rank):
    """Pairs of repetitions may vary as each alone does, or only together: then the jackknife's variance is erratic."""
    rng, n_means, n = np.random.default_rng(0), 1000, 32
    factors, effects = rng.standard_normal((n_means, n, rank)) / np.sqrt(rank), rng.standard_normal((n_means, n))
    effects *= alone
    pairs = factors @ factors.transpose(0, 2, 1) + effects[:, :, None] + effects[:, None, :]
    shares, sizes = np.full((n_means, n), 1 / n), np.zeros((2, n_means))
    found = own_spread(pairs / n**2, shares, n, sizes).without_bias()
    bars = np.sqrt(between_variance(found, n))
    assert 0.9 < np.sqrt((bars**2).mean() / (found.value**2).mean()) < 1.3
    assert (np.abs(found.value) <= 2 * bars).mean() > 0.93


@pytest.mark.parametrize(("n_draws", "chance"), [(64, 1 / 8), (128, 1 / 8), (128, 1 / 16)])
def test_rare_values_are_covered(n_draws, chance):
    """Of 8 completions on each side one is common to both: where few draws have it, the spread is small, too."""
    rng, n_means, n = np.random.default_rng(0), 4000, 32
    left, right = rng.random((2, n_means, n, n_draws // n)) < chance
    means = left.mean(axis=2)[:, :, None] * right.mean(axis=2)[:, None, :]
    out, places = np.empty((5, n_means)), np.zeros(n_means, dtype=np.intp)
    _loops.draw_sums.spreads(means / n**2, np.full((1, n), 1 / n), n, places, places, out)
    value, variance, least, squares, fourths = out
    nothing, sizes = np.zeros(n_means), value * n_draws**2  # of values that are 0 or 1
    found = Spread(value, variance, nothing, variance, least, squares, fourths, sizes, sizes)
    once = np.ones(n_means)
    factor = widening(n * once)
    covered, ratios = [], []
    for hits in (once, of_few_hits(found, n_draws**2 * once, once, 1)):
        bars = error_bars(found, once * LEAST, factor * hits, nothing)
        covered.append((np.abs(value - chance**2) <= 2 * bars).mean())
        ratios.append(np.sqrt((bars**2).mean()) / value.std())
    assert covered[0] < covered[1] - 0.01
    assert covered[1] > 0.915
    assert 0.9 < ratios[1] < 1.3

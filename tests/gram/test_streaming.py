import tracemalloc
from dataclasses import replace

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

import rankernel as rk
from rankernel.stats.mmd import mmd2_streamed


def unbiased_mmd2(kernel, X, Y):
    """The definition, voter by voter."""
    xx = [kernel(a, b) for i, a in enumerate(X) for j, b in enumerate(X) if i != j]
    yy = [kernel(a, b) for i, a in enumerate(Y) for j, b in enumerate(Y) if i != j]
    xy = [kernel(a, b) for a in X for b in Y]
    return sum(xx) / len(xx) + sum(yy) / len(yy) - 2 * sum(xy) / len(xy)


def expanded(X):
    return X.ranks[np.repeat(np.arange(len(X)), X.counts)]


def ballots(n_rankings, n_items, seed, cut=None, unlisted="last"):
    rng = np.random.default_rng(seed)
    full = rk.Rankings(np.argsort(rng.random((n_rankings, n_items)), axis=1))
    cut = full if cut is None else full.top(cut, unlisted=unlisted)
    return rk.Rankings(cut.ranks, counts=rng.integers(1, 4, n_rankings))


METHODS = ["auto", rk.MonteCarlo(6, rng=3)]


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("kernel", [rk.Mallows(0.2), rk.Kendall() + 0.5 * rk.Hamming()], ids=str)
def test_sums_over_voters_match_the_matrix(kernel, method):
    X, Y = ballots(40, 5, 0, cut=2), ballots(23, 5, 1, cut=3)
    K, C = kernel.gram(X, method=method), kernel.gram(X, Y, method=method)
    np.testing.assert_allclose(kernel.plan(X, method=method).times(X.counts), K @ X.counts, rtol=1e-12)
    np.testing.assert_allclose(kernel.plan(X, Y, method=method).times(Y.counts), C @ Y.counts, rtol=1e-12)


def test_times_matches_the_matrix():
    X, Y = ballots(30, 5, 2, cut=2), ballots(20, 5, 3)
    W = np.random.default_rng(0).normal(size=(20, 3))
    C = rk.Mallows(0.3).gram(X, Y)
    np.testing.assert_allclose(rk.Mallows(0.3).plan(X, Y).times(W), C @ W, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(rk.Mallows(0.3).plan(X, Y).times(W[:, 0]), C @ W[:, 0], rtol=1e-12, atol=1e-12)
    K = rk.Mallows(0.3).gram(X)
    np.testing.assert_allclose(rk.Mallows(0.3).plan(X).times(K), K @ K, rtol=1e-12)


@settings(max_examples=25, deadline=None)
@given(
    strategies.sized(strategies.any_ranking, low=2, high=4, length=5),
    st.lists(st.integers(1, 3), min_size=5, max_size=5),
)
def test_mmd_matches_the_definition(rows, counts):
    X = rk.Rankings(np.array(rows[:2]), counts=[counts[0] + 1, counts[1]])
    Y = rk.Rankings(np.array(rows[2:]), counts=[counts[2] + 1, *counts[3:]])
    kernel = lambda r, s: naive.marginal(naive.mallows(0.4), r, s)  # noqa: E731
    expected = unbiased_mmd2(kernel, [tuple(r) for r in expanded(X).tolist()], [tuple(r) for r in expanded(Y).tolist()])
    assert mmd2_streamed(X, Y, rk.Mallows(0.4), method="exact") == pytest.approx(expected, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("method", ["auto", rk.MonteCarlo(4)], ids=str)
def test_mmd_matches_the_matrix(method):
    X, Y = ballots(31, 6, 4, cut=2, unlisted="free"), ballots(25, 6, 5, cut=3)
    kernel = rk.Mallows().resolve(rk.concat([X, Y]))
    # Two voters with the same ranking are compared by different draws.
    fixed = replace(method, diagonal="unbiased") if isinstance(method, rk.MonteCarlo) else method
    K = kernel.gram(rk.concat([X, Y]), method=fixed)
    a, b = np.r_[X.counts, np.zeros(25)], np.r_[np.zeros(31), Y.counts]
    d, m, n = np.diagonal(K), X.n_voters, Y.n_voters
    within = (a @ K @ a - a @ d) / (m * (m - 1)) + (b @ K @ b - b @ d) / (n * (n - 1))
    expected = within - 2 * a @ K @ b / (m * n)
    assert mmd2_streamed(X, Y, rk.Mallows(), method=method) == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_bits_do_not_depend_on_threads():
    X = ballots(50, 6, 6, cut=3)
    one, three = (rk.Mallows(0.1).plan(X).times(X.counts, n_jobs=t) for t in (1, 3))
    np.testing.assert_array_equal(one, three)


def test_products_hold_blocks_only():
    """The matrix of 4,500 rankings takes 162 MB, its blocks a fraction."""
    plan = rk.Kendall().plan(rk.datasets.uniform(4500, 7, rng=0).unique()[:3000])
    weights = np.ones(plan.shape[1])
    plan.times(weights)  # compiled
    tracemalloc.start()
    plan.times(weights)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.8 * plan.bytes


def test_inaccurate_formulas_are_estimated():
    X = ballots(6, 40, 8, cut=3)
    narrow = rk.Exponential("spearman", nu=0.5)
    with pytest.raises(rk.ExactnessError):
        narrow.plan(X, method="exact").times(X.counts)
    drawn = narrow.plan(X, method=rk.MonteCarlo())
    assert narrow.plan(X).method == drawn.method
    np.testing.assert_allclose(narrow.plan(X).times(X.counts), drawn.times(X.counts), rtol=1e-12)


def test_arrays_and_named_rankings():
    named = rk.Rankings([[0, 1, 2], [2, 1, 0]], items=["a", "b", "c"])
    plain = np.array([[0, 1, 2], [1, 0, 2]])
    expected = rk.Kendall().plan(named.ranks, plain).times([1, 1])
    np.testing.assert_array_equal(rk.Kendall().plan(named, plain).times([1, 1]), expected)
    value = mmd2_streamed(named.ranks, plain, rk.Kendall())
    assert mmd2_streamed(named, plain, rk.Kendall()) == value


def test_invalid_arguments():
    with pytest.raises(rk.RankingError, match="Y"):
        mmd2_streamed([[0, 1], [1, 0]], [[0, 1]], rk.Kendall())
    with pytest.raises(ValueError, match="weights"):
        rk.Kendall().plan([[0, 1], [1, 0]]).times([1, 2, 3])

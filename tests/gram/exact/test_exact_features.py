"""Linear, positional and weighted Kendall kernels: closed forms, many items, and parts of the features."""

import importlib
from math import comb

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings

import rankernel as rk
from rankernel.completions.marginals import pair_means
from rankernel.gram.exact.features import LinearEvaluator, WeightedKendallEvaluator
from rankernel.gram.exact.formulas import Formula, Shape

WEIGHTS = [3.0, -1.0, 2.0, 0.5, 1.0]


def short_lists(n_rankings, n_items, k, seed=0):
    ranks = np.argsort(np.random.default_rng(seed).random((n_rankings, n_items)), axis=1)
    return rk.Rankings(np.minimum(ranks, k))


def tied(n_rankings, n_items, n_levels):
    return rk.Rankings.from_scores(np.random.default_rng(0).integers(0, n_levels, (n_rankings, n_items)))


def with_free(n_rankings, n_items, n_listed):
    ranks = np.argsort(np.random.default_rng(0).random((n_rankings, n_items)), axis=1)
    return rk.Rankings(np.where(ranks < n_listed, ranks, -1))


# ---------------------------------------------------------------------- weighted Kendall


def weighted_kendall(combine, weights):
    def kernel(x, y):
        items = range(len(x))
        both = [(a, b) for a in items for b in items if x[a] < x[b] and y[a] < y[b]]
        return sum(combine(weights[x[a]], weights[x[b]]) * combine(weights[y[a]], weights[y[b]]) for a, b in both)

    return kernel


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (rk.WeightedKendall.top_k(3), weighted_kendall(lambda u, v: u * v, [1, 1, 1, 0, 0])),
        (rk.WeightedKendall.additive(WEIGHTS), weighted_kendall(lambda u, v: u + v, WEIGHTS)),
        (rk.WeightedKendall.multiplicative(WEIGHTS), weighted_kendall(lambda u, v: u * v, WEIGHTS)),
    ],
)
@settings(deadline=None, max_examples=15)
@given(rows=strategies.sized(strategies.bucket_orders, low=5, high=5, length=3))
def test_weighted_kendall_matches_brute_force(kernel, expected, rows):
    found = kernel.gram(np.array(rows), method="exact")
    np.testing.assert_allclose(found, naive.gram(expected, rows, rows), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", [rk.WeightedKendall.additive(), rk.WeightedKendall.multiplicative()])
def test_weighted_kendall_of_many_items(kernel):
    """Short lists cost what the listed items cost; full rankings are sums over pairs without features."""
    X = short_lists(4, 3000, 10)
    assert isinstance(kernel.plan(X)._evaluator, WeightedKendallEvaluator)
    shared = kernel.gram(X, method="exact")
    permuted = rk.Rankings(X.ranks[:, np.random.default_rng(1).permutation(3000)])
    np.testing.assert_allclose(kernel.gram(permuted, method="exact"), shared, rtol=1e-12)
    full = np.stack([np.arange(1500), np.arange(1500)[::-1]])
    u = 1 / (np.arange(1500) + 1)
    weights = np.triu(np.add.outer(u, u) if kernel.combine == "additive" else np.outer(u, u), 1)
    np.testing.assert_allclose(kernel.matrix(full, full), np.diag([(weights**2).sum()] * 2), rtol=1e-12)


# ---------------------------------------------------------------------- features in parts


def is_in_parts(kernel, X):
    evaluator = kernel.plan(X, method="exact")._evaluator
    return isinstance(evaluator, LinearEvaluator) and evaluator.in_parts


def test_kendall_of_many_free_items():
    X = with_free(60, 800, 300)
    assert is_in_parts(rk.Kendall(), X)
    means = pair_means(X)
    found = rk.Kendall().gram(X, method="exact")
    np.testing.assert_allclose(found, means @ means.T / comb(800, 2), rtol=1e-10, atol=1e-13)
    np.testing.assert_array_equal(rk.Kendall().gram(X[:20], X[40:], method="exact"), found[:20, 40:])


@pytest.mark.parametrize("distance", ["hamming", "footrule"])
@pytest.mark.parametrize(("n_buckets", "in_parts"), [(9, False), (40, True)])
def test_induced_kernels_of_many_items(distance, n_buckets, in_parts):
    X, center = tied(60, 600, n_buckets), np.random.default_rng(3).permutation(600)
    kernel, d = rk.DistanceInduced(distance, center), getattr(rk.distances, distance)
    assert is_in_parts(kernel, X) == in_parts
    expected = (d(X, center[None]) + d(X, center[None]).T - d(X)) / 2
    np.testing.assert_allclose(kernel.gram(X, method="exact"), expected, rtol=1e-10)


@pytest.mark.parametrize("kernel", [rk.RankBiasedOverlap(0.9), rk.AverageOverlap(20), rk.DCG(), rk.Hamming()])
@pytest.mark.parametrize("rows", [short_lists(8, 120, 10), with_free(8, 120, 10), tied(40, 120, 100)])
def test_structured_position_matrices(kernel, rows):
    """The product with the matrix of a kernel is the same as that with a dense matrix."""
    dense = rk.Positional(kernel.facts(120).form.multiply(np.eye(120)))
    np.testing.assert_allclose(kernel.gram(rows), dense.gram(rows), rtol=1e-11, atol=1e-13)


def test_overlap_among_many_documents():
    """Two lists of ten among 8,000 items: the value lies between the sums without and with all deeper positions."""
    lists = np.full((2, 8000), 10)
    lists[0, :10], lists[1, 5:15] = np.arange(10), np.arange(10)
    shared = [len({*range(d)} & {*range(5, 5 + d)}) / d for d in range(1, 11)]
    expected = 0.1 * sum(0.9 ** (d - 1) * share for d, share in enumerate(shared, 1))
    deeper = 0.9**10  # the weight of all depths beyond ten, where at most ten items and few others are shared
    assert expected <= rk.RankBiasedOverlap(0.9).gram(lists)[0, 1] <= expected + deeper


# ---------------------------------------------------------------------- time


@pytest.mark.parametrize("module", ["mallows_free", "hamming", "cayley", "footrule", "spearman", "diffusion"])
def test_formulas_have_a_cost(module):
    for formula in importlib.import_module(f"rankernel.gram.exact.{module}").FORMULAS:
        assert type(formula).seconds is not Formula.seconds
        names = {"mallows_free": "kendall"}
        kernel = rk.Diffusion(0.1) if module == "diffusion" else rk.Exponential(names.get(module, module), 0.01)
        costs = [formula.seconds(kernel, Shape((1,) * n), Shape((1,) * n)) for n in (6, 8)]
        assert 0 < costs[0] <= costs[1] < 10

"""Marginals and moments of uniform completions against enumeration."""

import itertools
import math
from fractions import Fraction

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings

from rankernel.completions.marginals import (
    pair_means,
    pair_product_features,
    position_marginals,
    rank_means,
    rank_products,
)
from rankernel.rankings import Rankings

ROWS = strategies.sized(strategies.any_ranking, high=5, length=2)
SIX = [(0, 1, 1, -1, -1, 1), (2, -1, 0, 1, -1, -1), (-1, 0, 0, 0, 0, -1), (0, 0, 1, 1, -1, 2)]


def pair_products(X):
    """The mean products of two signs as matrices, from their upper triangles."""
    features = pair_product_features(X)
    n_pairs = round((math.sqrt(8 * features.shape[1] + 1) - 1) / 2)
    e, f = np.triu_indices(n_pairs)
    products = np.empty((len(features), n_pairs, n_pairs))
    products[:, e, f] = products[:, f, e] = features / np.where(e == f, 1.0, math.sqrt(2))
    return products


def mean(values):
    values = list(values)
    return math.fsum(values) / len(values)


def signs(full):
    """s_xy of every pair x < y: 1 if x is before y."""
    return [1 if x < y else -1 for x, y in itertools.combinations(full, 2)]


def centred(full):
    return [p - (len(full) - 1) / 2 for p in full]


def mean_vector(vector, ranks):
    return [mean(column) for column in zip(*map(vector, naive.completions(ranks)), strict=True)]


def mean_outer(vector, ranks):
    vectors = [vector(full) for full in naive.completions(ranks)]
    size = range(len(vectors[0]))
    return np.array([[mean(v[a] * v[b] for v in vectors) for b in size] for a in size]).reshape(len(size), len(size))


def check_moments(rows):
    X = np.array(rows)
    close = {"rtol": 1e-13, "atol": 1e-13}
    for i, row in enumerate(rows):
        np.testing.assert_allclose(pair_means(X)[i], mean_vector(signs, row), **close)
        np.testing.assert_allclose(pair_products(X)[i], mean_outer(signs, row), **close)
        np.testing.assert_allclose(rank_means(X)[i], mean_vector(centred, row), **close)
        np.testing.assert_allclose(rank_products(X)[i], mean_outer(centred, row), **close)


@settings(deadline=None, max_examples=30)
@given(ROWS)
def test_moments(rows):
    check_moments(rows)


def test_moments_of_six_items():
    check_moments(SIX)


@settings(deadline=None, max_examples=25)
@given(ROWS)
def test_squared_kendall_kernel(rows):
    pairs = max(math.comb(len(rows[0]), 2), 1)
    features = pair_product_features(np.array(rows))
    found = features[0] @ features[1] / pairs**2 if len(rows[0]) > 1 else 1.0
    assert found == pytest.approx(naive.marginal(lambda x, y: naive.kendall_kernel(x, y) ** 2, *rows), rel=1e-12)


@settings(deadline=None, max_examples=30)
@given(ROWS)
def test_position_marginals(rows):
    found = position_marginals(np.array(rows))
    for i, row in enumerate(rows):
        full = naive.completions(row)
        expected = [[mean(x[a] == p for x in full) for p in range(len(row))] for a in range(len(row))]
        np.testing.assert_allclose(found[i], expected, rtol=1e-13, atol=0)


@pytest.mark.parametrize("n_listed", [1, 40, 1500, 2999])
def test_position_marginals_of_3000_items(n_listed):
    n = 3000
    ranks = np.full((1, n), -1)
    ranks[0, :n_listed] = np.arange(n_listed)
    found = position_marginals(ranks)[0]
    assert np.abs(found.sum(axis=1) - 1).max() < 1e-13
    s = n_listed // 2
    total = math.comb(n, n_listed)
    for p in {s, s + 1, n // 2, n - n_listed + s}:
        ways = math.comb(p, s) * math.comb(n - 1 - p, n_listed - 1 - s)
        assert found[s, p] == pytest.approx(float(Fraction(ways, total)), rel=2e-12, abs=1e-300)


def test_moments_of_twenty_items():
    """Centred ranks are sums of signs, which relates the two kinds of second moments beyond enumeration."""
    rng = np.random.default_rng(0)
    ranks = np.where(rng.random((5, 20)) < 0.3, -1, rng.integers(0, 6, (5, 20)))
    ranks = Rankings(ranks).ranks
    x, y = np.triu_indices(20, 1)
    sums = np.zeros((20, len(x)))
    sums[x, np.arange(len(x))] = -0.5
    sums[y, np.arange(len(x))] = 0.5
    np.testing.assert_allclose(rank_products(ranks), sums @ pair_products(ranks) @ sums.T, rtol=0, atol=1e-11)
    np.testing.assert_allclose(rank_means(ranks), pair_means(ranks) @ sums.T, rtol=0, atol=1e-13)


def test_no_rankings():
    none = Rankings(np.empty((0, 4)))
    assert pair_means(none).shape == (0, 6)
    assert pair_product_features(none).shape == (0, 21)
    assert rank_products(none).shape == (0, 4, 4)
    assert position_marginals(none).shape == (0, 4, 4)

"""Distribution and moments of the Kendall distance against all pairs of completions, and against each other."""

from collections import Counter
from fractions import Fraction
from math import comb

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

import rankernel as rk
from rankernel.gram.exact.kendall import MAX_DEGREE, MAX_ITEMS, DistributionEvaluator, KendallEvaluator

PAIRS = strategies.sized(strategies.bucket_orders, high=5, length=2)
EVERYTHING = slice(None), slice(None)


def evaluator_of(X, Y=None):
    X = rk.Rankings(X)
    Y = X if Y is None else rk.Rankings(Y)
    return DistributionEvaluator(rk.Kendall().exp(), X, Y)


def pmf_of(left, right):
    """Return the probability of each distance: the means of its indicators."""
    return evaluator_of([left], [right]).means(np.eye(comb(len(left), 2) + 1), EVERYTHING)[:, 0, 0]


def shares(r, s):
    """Return the exact probability of each distance."""
    counts = Counter(naive.kendall(x, y) for x in naive.completions(r) for y in naive.completions(s))
    return [Fraction(counts[d], counts.total()) for d in range(comb(len(r), 2) + 1)]


def random_buckets(rng, n_rankings, n_items, n_buckets):
    return rk.Rankings.from_scores(rng.integers(0, n_buckets, (n_rankings, n_items))).ranks


@settings(deadline=None, max_examples=40)
@given(PAIRS)
def test_distribution_matches_brute_force(pair):
    np.testing.assert_allclose(pmf_of(*pair), [float(p) for p in shares(*pair)], rtol=4e-15)


@pytest.mark.parametrize(("left", "right"), [((6, 6), (4, 4, 4)), ((6, 6, 6), (6, 6, 6)), ((8, 8), (4, 4, 4, 4))])
def test_many_shared_buckets(left, right):
    """Convolved with the distributions of the shared buckets, it is that of the inversions of all buckets."""
    cells = [(i, j, a * b // sum(left)) for i, a in enumerate(left) for j, b in enumerate(right)]
    items = [(i, j) for i, j, size in cells for _ in range(size)]
    ranks = [np.array(side) for side in zip(*items, strict=True)]
    n_discordant = sum(a * b for i, j, a in cells for k, m, b in cells if i < k and j > m)
    found, expected = pmf_of(*ranks)[n_discordant:], np.ones(1)
    for size in (size for _, _, size in cells):
        for i in range(2, size + 1):
            found = np.convolve(found, np.full(i, 1 / i))
    for size in (*left, *right):
        for i in range(2, size + 1):
            expected = np.convolve(expected, np.full(i, 1 / i))
    np.testing.assert_allclose(found[: len(expected)], expected, rtol=1e-12)


@settings(deadline=None, max_examples=40)
@given(PAIRS, st.integers(1, 7))
def test_polynomials_from_moments(pair, degree):
    pairs = max(comb(len(pair[0]), 2), 1)
    values = [2 - Fraction(2 * d, pairs) for d in range(len(shares(*pair)))]
    expected = float(sum(p * k**degree for p, k in zip(shares(*pair), values, strict=True)))
    X, Y = (rk.Rankings(side[None]) for side in map(np.asarray, pair))
    kernel = rk.Polynomial(degree)
    found = KendallEvaluator(kernel, X, Y).from_moments(kernel, EVERYTHING).item()
    assert found == pytest.approx(expected, rel=1e-14, abs=1e-15)


@pytest.mark.parametrize("degree", [1, MAX_DEGREE])
def test_moments_match_the_distribution_of_forty_items(degree):
    X = rk.Rankings(random_buckets(np.random.default_rng(3), 5, 40, 9))
    kernel = rk.Polynomial(degree)
    found = KendallEvaluator(kernel, X, X).from_moments(kernel, EVERYTHING)
    np.testing.assert_allclose(evaluator_of(X.ranks).values(kernel, EVERYTHING), found, rtol=1e-12)


def test_distribution_of_sixty_items():
    pmf = pmf_of(np.zeros(60, dtype=int), np.arange(60))
    assert pmf.sum() == pytest.approx(1, rel=1e-13)
    assert float(pmf @ np.arange(len(pmf))) == pytest.approx(comb(60, 2) / 2, rel=1e-13)
    assert pmf[0] > 0


def test_exponential_as_a_function_of_the_distance():
    """The distribution of the distance and the q-factorials give the same, however small the values."""
    X = rk.Rankings(np.vstack([random_buckets(np.random.default_rng(0), 4, 80, b) for b in (2, 9, 40)]))
    kernel = rk.Mallows(0.3)
    found = evaluator_of(X.ranks).values(kernel, EVERYTHING)
    np.testing.assert_allclose(np.log(found), kernel.log_gram(X), rtol=1e-13)


def test_blocks_have_equal_bits():
    """A block is computed overlap by overlap; the bits of an entry do not depend on the other entries."""
    X = random_buckets(np.random.default_rng(1), 30, 9, 3)
    evaluator = evaluator_of(X)
    functions = np.stack([np.exp(-0.1 * np.arange(37)), np.arange(37.0)])
    expected = evaluator.means(functions, EVERYTHING)
    for rows in (slice(0, 7), slice(3, 30)):
        for columns in (slice(10, 11), slice(7, 30)):
            above = np.arange(30)[columns][None, :] >= np.arange(30)[rows][:, None]
            found = evaluator.means(functions, (rows, columns))
            np.testing.assert_array_equal(found[:, above], expected[:, rows, columns][:, above])


def test_moments_of_a_thousand_items():
    """Two unordered rankings: the variance of the distance is n (n - 1) (2 n + 5) / 72."""
    n = 1000
    tied = np.zeros((1, n), dtype=int)
    variance = n * (n - 1) * (2 * n + 5) / 72
    assert rk.Polynomial(1).gram(tied).item() == pytest.approx(1, rel=1e-14)
    assert rk.Polynomial(2).gram(tied).item() == pytest.approx(1 + variance * (2 / comb(n, 2)) ** 2, rel=1e-14)


@pytest.mark.parametrize("degree", [3, 12, 64])
def test_one_tied_pair_of_two_hundred_items(degree):
    """The reverse of a full ranking but for one tied pair: the kernel is 0 or 2 / n_pairs with equal probability."""
    left = np.arange(200)[::-1].copy()
    left[left > 0] -= 1
    found = rk.Polynomial(degree).gram(left[None], np.arange(200)[None], method="exact").item()
    assert found == pytest.approx(0.5 * (2 / comb(200, 2)) ** degree, rel=1e-9)


def test_largest_number_of_items():
    kernel = rk.Mallows(0.001) * rk.Kendall()
    tied = np.minimum(np.arange(MAX_ITEMS)[None], 20)
    assert kernel.gram(tied, method="exact").item() == pytest.approx(0.5, abs=0.5)
    with pytest.raises(rk.ExactnessError):
        kernel.gram(np.minimum(np.arange(MAX_ITEMS + 1)[None], 20), method="exact")

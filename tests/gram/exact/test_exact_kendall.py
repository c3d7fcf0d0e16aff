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
from overlaps import full_pmf, overlap_of

import rankernel as rk
from rankernel.gram.exact.formulas import Shape
from rankernel.gram.exact.kendall import (
    FLOAT_DEGREE,
    MAX_ITEMS,
    KendallDistribution,
    KendallEvaluator,
    KendallMoments,
    tie_pmf,
)

PAIRS = strategies.sized(strategies.bucket_orders, high=5, length=2)
DISTRIBUTION = KendallDistribution()


def pmf_of(overlap):
    return full_pmf(DISTRIBUTION, overlap, comb(overlap.n_items, 2) + 1)


def polynomial_mean(overlap, degree):
    """Return the mean of (1 + k)^degree, k the Kendall kernel, from exact moments; check those in floating point."""
    X, Y = rk.Rankings(overlap.left[None]), rk.Rankings(overlap.right[None])
    kernel, block = rk.Polynomial(degree), (slice(None), slice(None))
    (value,) = KendallMoments().mean(kernel, overlap)
    if degree <= FLOAT_DEGREE:
        assert KendallEvaluator(kernel, X, Y).from_moments(kernel, block).item() == pytest.approx(value, rel=1e-13)
    return value


def shares(r, s):
    """Return the exact probability of each distance."""
    counts = Counter(naive.kendall(x, y) for x in naive.completions(r) for y in naive.completions(s))
    return [Fraction(counts[d], counts.total()) for d in range(comb(len(r), 2) + 1)]


@settings(deadline=None, max_examples=40)
@given(PAIRS)
def test_distribution_matches_brute_force(pair):
    np.testing.assert_allclose(pmf_of(overlap_of(*pair)), [float(p) for p in shares(*pair)], rtol=2e-15)


@pytest.mark.parametrize(("left", "right"), [((6, 6), (4, 4, 4)), ((6, 6, 6), (6, 6, 6)), ((8, 8), (4, 4, 4, 4))])
def test_many_shared_buckets(left, right):
    """Convolved with the distributions of the shared buckets, it is that of the inversions of all buckets."""
    cells = tuple(tuple(a * b // sum(left) for b in right) for a in left)
    found, expected = tie_pmf(cells, right), np.ones(1)
    for size in (size for row in cells for size in row):
        for i in range(2, size + 1):
            found = np.convolve(found, np.full(i, 1 / i))
    for size in (*left, *right):
        for i in range(2, size + 1):
            expected = np.convolve(expected, np.full(i, 1 / i))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@settings(deadline=None, max_examples=40)
@given(PAIRS, st.integers(1, 7))
def test_polynomials_from_moments(pair, degree):
    pairs = max(comb(len(pair[0]), 2), 1)
    kernel = [2 - Fraction(2 * d, pairs) for d in range(len(shares(*pair)))]
    expected = float(sum(p * k**degree for p, k in zip(shares(*pair), kernel, strict=True)))
    assert polynomial_mean(overlap_of(*pair), degree) == pytest.approx(expected, rel=1e-14, abs=1e-15)


@pytest.mark.parametrize("degree", [1, 10, 40])
def test_high_degrees_at_forty_items(degree):
    rng = np.random.default_rng(3)
    left, right = (np.unique(rng.integers(0, 9, 40), return_inverse=True)[1] for _ in range(2))
    overlap = overlap_of(left, right)
    pmf = pmf_of(overlap)
    kernel = 2 - 2 * np.arange(len(pmf)) / comb(40, 2)
    assert polynomial_mean(overlap, degree) == pytest.approx(float(pmf @ kernel**degree), rel=1e-12)


def test_distribution_of_sixty_items():
    overlap = overlap_of(np.zeros(60, dtype=int), np.arange(60))
    pmf = pmf_of(overlap)
    assert pmf.sum() == pytest.approx(1, rel=1e-13)
    assert float(pmf @ np.arange(len(pmf))) == pytest.approx(comb(60, 2) / 2, rel=1e-13)
    assert pmf[0] > 0


def test_moments_of_a_thousand_items():
    """Two unordered rankings: the variance of the distance is n (n - 1) (2 n + 5) / 72."""
    n = 1000
    overlap = overlap_of(np.zeros(n, dtype=int), np.zeros(n, dtype=int))
    variance = n * (n - 1) * (2 * n + 5) / 72
    assert polynomial_mean(overlap, 1) == pytest.approx(1, rel=1e-14)
    assert polynomial_mean(overlap, 2) == pytest.approx(1 + variance * (2 / comb(n, 2)) ** 2, rel=1e-14)


@pytest.mark.parametrize("degree", [3, 12, 64])
def test_one_tied_pair_of_two_hundred_items(degree):
    """The reverse of a full ranking but for one tied pair: the kernel is 0 or 2 / n_pairs with equal probability."""
    left = np.arange(200)[::-1].copy()
    left[left > 0] -= 1
    found = rk.Polynomial(degree).gram(left[None], np.arange(200)[None], method="exact").item()
    assert found == pytest.approx(0.5 * (2 / comb(200, 2)) ** degree, rel=1e-9)


def test_covered_shapes():
    kernel = rk.Kendall().exp()
    assert DISTRIBUTION.covers(kernel, Shape((2, 3)), Shape((5,)))
    assert not DISTRIBUTION.covers(kernel, Shape((2, 2), free=1), Shape((5,)))
    assert not DISTRIBUTION.covers(kernel, Shape((5,)), Shape((2, 2), free=1))
    for n_items, covered in ((MAX_ITEMS, True), (MAX_ITEMS + 1, False)):
        assert DISTRIBUTION.covers(kernel, Shape((n_items,)), Shape((n_items,))) is covered

"""The law and the moments of the Kendall distance against all pairs of completions, and against each other."""

from collections import Counter
from fractions import Fraction
from math import comb

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

from rankernel import Polynomial
from rankernel.gram.exact.kendall_law import KendallLaw, brackets_of, central_moments, mean_extra, tie_law
from rankernel.gram.exact.overlap import Overlap, Shape

PAIRS = strategies.sized(strategies.bucket_orders, high=5, length=2)


def overlap_of(r, s):
    return Overlap.of(np.array(r), np.array(s))


def brackets(overlap):
    return brackets_of((*overlap.left_shape.sizes, *overlap.right_shape.sizes), overlap.cell_sizes.tolist())


def polynomial_mean(overlap, degree):
    """The mean of (1 + k)^degree, k the Kendall kernel, from the moments of the distance."""
    return Polynomial(degree).gram(overlap.left[None], overlap.right[None], method="exact").item()


def shares(r, s):
    """Exact probability of each distance."""
    counts = Counter(naive.kendall(x, y) for x in naive.completions(r) for y in naive.completions(s))
    return [Fraction(counts[d], counts.total()) for d in range(comb(len(r), 2) + 1)]


@settings(deadline=None, max_examples=40)
@given(PAIRS)
def test_the_law(pair):
    np.testing.assert_allclose(KendallLaw().pmf(overlap_of(*pair)), [float(p) for p in shares(*pair)], rtol=1e-15)


@pytest.mark.parametrize(("left", "right"), [((6, 6), (4, 4, 4)), ((6, 6, 6), (6, 6, 6)), ((8, 8), (4, 4, 4, 4))])
def test_brackets_that_divide(left, right):
    """Many shared buckets: some brackets divide. Multiplied by these, the law is that of a sum of uniform numbers."""
    cells = [a * b // sum(left) for a in left for b in right]
    powers = brackets_of((*left, *right), cells)
    found, expected = tie_law(powers), np.ones(1)
    assert min(power for _, power in powers) < 0
    for size, power in powers:
        for _ in range(abs(power)):
            if power > 0:
                expected = np.convolve(expected, np.full(size, 1 / size))
            else:
                found = np.convolve(found, np.full(size, 1 / size))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@settings(deadline=None, max_examples=40)
@given(PAIRS, st.integers(0, 7))
def test_the_moments(pair, degree):
    law, overlap = shares(*pair), overlap_of(*pair)
    mean = sum(p * d for d, p in enumerate(law))
    assert overlap.n_discordant + mean_extra(brackets(overlap)) == float(mean)
    expected = [float(sum(p * (d - mean) ** m for d, p in enumerate(law))) for m in range(degree + 1)]
    assert central_moments(brackets(overlap), degree).tolist() == expected


@settings(deadline=None, max_examples=40)
@given(PAIRS, st.integers(1, 7))
def test_polynomials_from_their_moments(pair, degree):
    pairs = max(comb(len(pair[0]), 2), 1)
    kernel = [2 - Fraction(2 * d, pairs) for d in range(len(shares(*pair)))]
    expected = float(sum(p * k**degree for p, k in zip(shares(*pair), kernel, strict=True)))
    assert polynomial_mean(overlap_of(*pair), degree) == pytest.approx(expected, rel=1e-14, abs=1e-15)


@pytest.mark.parametrize("degree", [1, 10, 40])
def test_high_degrees_at_forty_items(degree):
    rng = np.random.default_rng(3)
    left, right = (np.unique(rng.integers(0, 9, 40), return_inverse=True)[1] for _ in range(2))
    overlap = overlap_of(left, right)
    pmf = KendallLaw().pmf(overlap)
    kernel = 2 - 2 * np.arange(len(pmf)) / comb(40, 2)
    assert polynomial_mean(overlap, degree) == pytest.approx(float(pmf @ kernel**degree), rel=1e-12)


def test_the_law_of_sixty_items_sums_to_one():
    overlap = overlap_of(np.zeros(60, dtype=int), np.arange(60))
    pmf = KendallLaw().pmf(overlap)
    assert pmf.sum() == pytest.approx(1, rel=1e-13)
    assert float(pmf @ np.arange(len(pmf))) == pytest.approx(comb(60, 2) / 2, rel=1e-13)
    assert pmf[0] > 0


def test_moments_of_a_thousand_items():
    """Two unordered rankings: the variance of the distance is n (n - 1) (2 n + 5) / 72."""
    n = 1000
    overlap = overlap_of(np.zeros(n, dtype=int), np.zeros(n, dtype=int))
    spread = n * (n - 1) * (2 * n + 5) / 72
    assert overlap.n_discordant + mean_extra(brackets(overlap)) == comb(n, 2) / 2
    assert central_moments(brackets(overlap), 3) == pytest.approx([1, 0, spread, 0], rel=1e-14)
    assert polynomial_mean(overlap, 2) == pytest.approx(1 + spread * (2 / comb(n, 2)) ** 2, rel=1e-14)


def test_what_is_covered():
    law = KendallLaw()
    assert law.covers(Shape((2, 3)), Shape((5,)))
    assert not law.covers(Shape((2, 2), free=1), Shape((5,)))
    assert not law.covers(Shape((500,)), Shape((500,)))
    assert not law.covers(Shape((5,)), Shape((2, 2), free=1))


@pytest.mark.parametrize(("ties", "most"), [(1, 200), (2, 60)])
def test_how_many_items_are_covered(ties, most):
    """Where one side has a single tie nothing is divided, and more items can be had."""
    for n_items, covered in ((most, True), (most + 1, False)):
        tied = Shape((*[2] * ties, *[1] * (n_items - 2 * ties)))
        assert KendallLaw().covers(tied, tied) is covered

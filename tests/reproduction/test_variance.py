"""The variance of a Monte Carlo estimate: by going through all tuples of draws, and what the paper's theorem says."""

import itertools
import math

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

from rankernel import Mallows
from rankernel.errors import ExactnessError, RankingError
from rankernel.gram.exact.formulas import Overlap
from reproduction.variance import mallows_variance, monte_carlo_variance, variance_from_values


def kernel_values(kernel, r, s):
    return [[kernel(x, y) for y in naive.completions(s)] for x in naive.completions(r)]


def mean(values):
    values = list(values)
    return math.fsum(values) / len(values)


def variance(values):
    values = list(values)
    centre = mean(values)
    return mean((v - centre) ** 2 for v in values)


def shared_draws(values, n_left, n_right):
    """The estimator as the paper defines it: all pairs of n_left and n_right draws, every tuple of draws tried."""
    rows, columns = range(len(values)), range(len(values[0]))
    return variance(
        mean(values[i][j] for i in left for j in right)
        for left in itertools.product(rows, repeat=n_left)
        for right in itertools.product(columns, repeat=n_right)
    )


def nested_draws(values, n_left, n_right):
    """Another estimator: for each left draw n_right fresh right ones."""
    rows, columns = range(len(values)), range(len(values[0]))
    return variance(
        mean(values[i][j] for i, right in zip(left, rights, strict=True) for j in right)
        for left in itertools.product(rows, repeat=n_left)
        for rights in itertools.product(itertools.product(columns, repeat=n_right), repeat=n_left)
    )


def theorem_4(values, n_left, n_right):
    """The paper's expression: (A - K^2) / M + (Q - A) / (M N)."""
    centre = mean(v for row in values for v in row)
    square = mean(v * v for row in values for v in row)
    of_means = mean(mean(row) ** 2 for row in values)
    return (of_means - centre**2) / n_left + (square - of_means) / (n_left * n_right)


def reversal(ranks, full):
    """The completion with every bucket and the pattern of free items turned round: it agrees with the ranking, too."""
    n = len(ranks)
    turned = [n - 1 - p for p in full]
    listed = sorted((a for a in range(n) if ranks[a] >= 0), key=lambda a: (ranks[a], turned[a]))
    out = list(turned)
    for a, place in zip(listed, sorted(turned[a] for a in listed), strict=True):
        out[a] = place
    return tuple(out)


def partners(ranks):
    all_of_them = naive.completions(ranks)
    return [all_of_them.index(reversal(ranks, full)) for full in all_of_them]


def antithetic_values(values, left, right):
    """The mean of the kernel over the four combinations of two pairs."""
    return [
        [mean(values[a][b] for a in (i, left[i]) for b in (j, right[j])) for j in range(len(values[0]))]
        for i in range(len(values))
    ]


CASES = [((0, 0, 0), (0, 0, 1)), ((0, 1, 1), (1, 0, 0)), ((0, -1, 1), (0, 1, 1)), ((-1, 0, 1), (0, 1, 2))]


@pytest.mark.parametrize(("r", "s"), CASES)
@pytest.mark.parametrize(("n_left", "n_right"), [(1, 1), (1, 3), (2, 2), (3, 1), (3, 2)])
def test_all_tuples_of_draws(r, s, n_left, n_right):
    values = kernel_values(naive.mallows(0.4), r, s)
    expected = shared_draws(values, n_left, n_right)
    assert variance_from_values(values, n_left, n_right) == pytest.approx(expected, rel=1e-12)


def test_the_papers_theorem_is_for_nested_draws():
    values = kernel_values(naive.mallows(0.4), (0, 0, 1), (0, 1, 1))
    assert theorem_4(values, 2, 2) == pytest.approx(nested_draws(values, 2, 2), rel=1e-12)
    wanted = shared_draws(values, 2, 2)
    assert variance_from_values(values, 2, 2) == pytest.approx(wanted, rel=1e-12)
    assert theorem_4(values, 2, 2) < 0.8 * wanted


@pytest.mark.parametrize(("r", "s"), CASES)
def test_all_tuples_of_antithetic_pairs(r, s):
    values = kernel_values(naive.mallows(0.4), r, s)
    left, right = partners(r), partners(s)
    expected = shared_draws(antithetic_values(values, left, right), 2, 1)
    assert variance_from_values(values, 4, 2, left, right) == pytest.approx(expected, rel=1e-12)
    one_side = [[mean((row[j], row[right[j]])) for j in range(len(row))] for row in values]
    assert variance_from_values(values, 2, 2, right_partner=right) == pytest.approx(
        shared_draws(one_side, 2, 1), rel=1e-12
    )


@settings(deadline=None, max_examples=40)
@given(
    strategies.sized(strategies.bucket_orders, high=5, length=2),
    st.sampled_from([0.05, 0.4, 2.0]),
    st.integers(1, 4),
    st.integers(1, 4),
)
def test_closed_forms_for_mallows(pair, nu, half_left, half_right):
    r, s = pair
    overlap = Overlap.of(np.array(r), np.array(s))
    values = kernel_values(naive.mallows(nu), r, s)
    scale = naive.marginal(naive.mallows(nu), r, s) ** 2
    independent = variance_from_values(values, half_left, half_right)
    assert mallows_variance(overlap, nu, half_left, half_right) == pytest.approx(
        independent, rel=1e-11, abs=1e-15 * scale
    )
    coupled = variance_from_values(values, 2 * half_left, 2 * half_right, partners(r), partners(s))
    closed = mallows_variance(overlap, nu, 2 * half_left, 2 * half_right, coupling="antithetic")
    assert closed == pytest.approx(coupled, rel=1e-11, abs=1e-15 * scale)


def test_fifty_items_match_the_distribution_of_the_distance():
    """Two unordered rankings: every left draw has the same mean, so the variance is that of the kernel over M N."""
    overlap = Overlap.of(np.zeros(50, dtype=int), np.zeros(50, dtype=int))
    pmf = np.ones(1)
    for i in range(2, 51):
        pmf = np.convolve(pmf, np.full(i, 1 / i))
    values = np.exp(-0.02 * np.arange(len(pmf)))
    of_kernel = float(pmf @ (values - pmf @ values) ** 2)
    assert mallows_variance(overlap, 0.02, 10, 7) == pytest.approx(of_kernel / 70, rel=1e-12)


def test_refusals():
    free = Overlap.of(np.array([0, 1, -1]), np.array([0, 1, 2]))
    with pytest.raises(ExactnessError, match="free items"):
        mallows_variance(free, 0.1, 2, 2)
    tied = Overlap.of(np.array([0, 0]), np.array([0, 1]))
    with pytest.raises(ValueError, match="coupling='pairs'"):
        monte_carlo_variance([[0, 0]], [[0, 1]], Mallows(0.1), n_draws=2, coupling="pairs")
    for n_draws in (-1, 0, 1.5):
        with pytest.raises(ValueError, match="n_draws="):
            monte_carlo_variance([[0, 0]], [[0, 1]], Mallows(0.1), n_draws=n_draws)
    with pytest.raises(RankingError, match="items"):
        monte_carlo_variance([[0, 0]], [[0, 1, 2]], Mallows(0.1), n_draws=4)
    with pytest.raises(ValueError, match="n_draws=3"):
        mallows_variance(tied, 0.1, 3, 2, coupling="antithetic")
    with pytest.raises(ValueError, match="n_draws=1"):
        variance_from_values([[1.0]], 1, 1, left_partner=[0])

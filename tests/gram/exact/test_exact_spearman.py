"""The exponential Spearman kernel: moment series and permanents against all completions."""

import math

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overlaps import log_mean, overlap_of, top
from test_exact_footrule import covered_pairs

import rankernel as rk
from rankernel.errors import ExactnessError
from rankernel.gram.exact.footrule import matching_of
from rankernel.gram.exact.formulas import Overlap, Shape
from rankernel.gram.exact.spearman import (
    Centred,
    ExponentialSpearman,
    max_group,
    max_product_sum,
    moment_series,
    permanent_mean,
    scaled_moments,
)

FORMULA = ExponentialSpearman()
KERNEL = rk.Exponential("spearman", 0.01)


def random_group(rng, n):
    """Return the one group of two random top-k lists, every third time of a list with itself."""
    left, right = rng.permutation(n), rng.permutation(n)
    k, m = rng.integers(0, n - 1, size=2)
    (group,) = matching_of(Overlap.of(top(left, k), top(left if rng.random() < 0.3 else right, m))).groups
    return group


@settings(deadline=None, max_examples=50)
@given(covered_pairs(), st.sampled_from([0.0, 1e-6, 0.05, 0.4, 3.0]))
def test_value_and_derivative_match_brute_force(pair, nu):
    r, s = pair
    overlap = overlap_of(r, s)
    assert FORMULA.covers(KERNEL, overlap.left_shape, overlap.right_shape)
    value = naive.marginal(naive.exponential(naive.spearman, nu), r, s)
    derivative = naive.marginal_derivative(naive.spearman, nu, r, s) / value
    log_value, log_derivative = log_mean(FORMULA, overlap, nu)
    assert math.exp(log_value) == pytest.approx(value, rel=1e-12)
    assert log_derivative == pytest.approx(derivative, rel=1e-12, abs=1e-14)


@settings(deadline=None, max_examples=40)
@given(covered_pairs(low=2), st.sampled_from([0.0, 0.001, 0.02, 0.05]))
def test_series_of_each_group_matches_brute_force(pair, nu):
    r, s = pair
    value = naive.marginal(naive.exponential(naive.spearman, nu), r, s)
    derivative = naive.marginal_derivative(naive.spearman, nu, r, s) / value
    matching = matching_of(overlap_of(r, s))
    fixed = float(((matching.left - matching.right) ** 2).sum())
    parts = [moment_series(group, nu) for group in matching.groups]
    assert None not in parts
    assert math.exp(sum(part[0] for part in parts) - nu * fixed) == pytest.approx(value, rel=1e-12)
    assert sum(part[1] for part in parts) - fixed == pytest.approx(derivative, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("times", [0.5, 1, 2, 4, 6])
def test_series_matches_the_permanent_or_returns_none(times):
    rng = np.random.default_rng(3)
    n_compared = 0
    for n in (8, 11, 13, 13, 14, 14):
        nu = times * 6 / (n**3 - n)
        group = random_group(rng, n)
        by_series = moment_series(group, nu)
        if by_series is not None:
            n_compared += 1
            assert by_series == pytest.approx(permanent_mean(group, nu), rel=1e-12)
    assert n_compared >= 3


def test_negative_nu():
    group = random_group(np.random.default_rng(4), 12)
    assert moment_series(group, -0.005) == pytest.approx(permanent_mean(group, -0.005), rel=1e-12)


@pytest.mark.parametrize("n", [3, 10, 200, 1000])
def test_moments_of_spearmans_rho(n):
    tied = np.zeros(n, dtype=np.int32)
    (group,) = matching_of(Overlap.of(tied, tied)).groups
    moments = scaled_moments(group, Centred.of(group), 8)
    fourth = 3 * (25 * n**3 - 38 * n**2 - 35 * n + 72) / (25 * n * (n + 1) * (n - 1) ** 3)  # Kendall and Stuart
    assert moments[[0, 2, 4]] == pytest.approx([1, 1 / (n - 1) / 2, fourth / 24], rel=1e-12)
    assert moments[[1, 3, 5, 7]] == pytest.approx(np.zeros(4), abs=1e-15)


def test_mean_distance_of_a_thousand_items():
    # Listed items against the 990 tied positions: the mean of (p - q)^2.
    n, k = 1000, 10
    left, right = np.arange(n), np.roll(np.arange(n), 500)
    overlap = Overlap.of(top(left, k), top(right, k))
    mean_square = sum(q * q for q in range(k, n)) / (n - k)
    mean = sum(range(k, n)) / (n - k)
    listed = 2 * sum(p * p - 2 * p * mean + mean_square for p in range(k))
    neither = (n - 2 * k) * 2 * (mean_square - mean**2)
    assert log_mean(FORMULA, overlap, 0.0) == pytest.approx((0.0, -listed - neither), rel=1e-12, abs=1e-11)


def test_large_nu_selects_the_best_matching():
    # 13 positions on either side, the best displacement of each item 1: one matching of cost 13 among 13!.
    ranks = np.array([0] * 13 + [1], dtype=np.int32)
    full = np.array([*range(1, 14), 0], dtype=np.int32)
    log_value, derivative = log_mean(FORMULA, Overlap.of(ranks, full), 200.0)
    assert log_value == pytest.approx(-200.0 * (13 + 13**2) - math.log(math.factorial(13)), rel=1e-14)
    assert derivative == pytest.approx(-(13 + 13**2), rel=1e-14)


def test_large_group_and_large_nu_raise():
    tied = Overlap.of(np.zeros(40, np.int32), np.zeros(40, np.int32))
    with pytest.raises(ExactnessError, match="40 items in one tie"):
        log_mean(FORMULA, tied, 0.1)
    suggested = 2 / Centred.of(matching_of(tied).groups[0]).largest
    assert log_mean(FORMULA, tied, suggested)[0] < 0


def test_permanent_is_used_if_the_series_is_inaccurate():
    tied = Overlap.of(np.zeros(14, np.int32), np.zeros(14, np.int32))
    (group,) = matching_of(tied).groups
    nu = 20 * 6 / (14**3 - 14)
    assert moment_series(group, nu) is None
    assert log_mean(FORMULA, tied, nu) == permanent_mean(group, nu)


@settings(deadline=None, max_examples=40)
@given(st.integers(3, 30).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 2), st.integers(0, n - 2))))
def test_bound_on_the_sum_of_products(lists):
    n, k, m = lists
    rng = np.random.default_rng(n)
    overlap = Overlap.of(top(rng.permutation(n), k), top(rng.permutation(n), m))
    bound = max_product_sum(overlap.left_shape, overlap.right_shape)
    assert all(Centred.of(group).largest <= bound * (1 + 1e-12) for group in matching_of(overlap).groups)
    if k == m == 0:  # all tied: centred positions in any order
        assert bound == pytest.approx(n * (n * n - 1) / 12, rel=1e-12)


def test_accurate_parameters():
    full, lists, tied = Shape((1,) * 40), Shape((1,) * 10 + (30,)), Shape((40,))
    assert max_group(full, tied) == 40
    assert max_group(full, lists) == max_group(lists, full) == 30
    assert max_group(lists, lists) == 40
    small = Shape((1,) * 28 + (12,))
    assert FORMULA.is_accurate(rk.Exponential("spearman", 100.0), full, small)  # a permanent of 12
    assert FORMULA.is_accurate(rk.Exponential("spearman", 1e-5), lists, lists)  # a series
    assert not FORMULA.is_accurate(rk.Exponential("spearman", 1.0), lists, lists)


def test_covered_shapes():
    assert FORMULA.covers(KERNEL, Shape((1, 1, 998)), Shape((1, 999)))
    assert FORMULA.covers(KERNEL, Shape((2, 3)), Shape((1, 1, 1, 1, 1)))
    assert not FORMULA.covers(KERNEL, Shape((2, 3)), Shape((3, 2)))
    assert not FORMULA.covers(KERNEL, Shape((1, 1), free=2), Shape((1, 3)))

import math

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_exp_footrule import covered_pairs, overlap_of, top

from rankernel.errors import ExactnessError
from rankernel.gram.exact import exp_spearman
from rankernel.gram.exact.exp_spearman import Centred, ExponentialSpearman, permanent, scaled_moments, series
from rankernel.gram.exact.matchings import matching_of
from rankernel.gram.exact.overlap import Overlap, Shape

FORMULA = ExponentialSpearman()


def random_block(rng, n):
    """The one block of two random top-k lists, every third time of a list with itself."""
    left, right = rng.permutation(n), rng.permutation(n)
    k, m = rng.integers(0, n - 1, size=2)
    (block,) = matching_of(Overlap.of(top(left, k), top(left if rng.random() < 0.3 else right, m))).blocks
    return block


@settings(deadline=None, max_examples=50)
@given(covered_pairs(), st.sampled_from([0.0, 1e-6, 0.05, 0.4, 3.0]))
def test_value_and_derivative_against_all_completions(pair, nu):
    r, s = pair
    overlap = overlap_of(r, s)
    assert FORMULA.covers(overlap.left_shape, overlap.right_shape)
    value = naive.marginal(naive.exponential(naive.spearman, nu), r, s)
    slope = naive.marginal_derivative(naive.spearman, nu, r, s) / value
    log_value, log_slope = FORMULA.log_value(overlap, nu)
    assert math.exp(log_value) == pytest.approx(value, rel=1e-12)
    assert log_slope == pytest.approx(slope, rel=1e-12, abs=1e-14)


@settings(deadline=None, max_examples=40)
@given(covered_pairs(low=2), st.sampled_from([0.0, 0.001, 0.02, 0.05]))
def test_series_of_each_block_against_its_completions(pair, nu):
    r, s = pair
    value = naive.marginal(naive.exponential(naive.spearman, nu), r, s)
    slope = naive.marginal_derivative(naive.spearman, nu, r, s) / value
    matching = matching_of(overlap_of(r, s))
    fixed = float(((matching.left - matching.right) ** 2).sum())
    blocks = [series(block, nu) for block in matching.blocks]
    assert None not in blocks
    assert math.exp(sum(b[0] for b in blocks) - nu * fixed) == pytest.approx(value, rel=1e-12)
    assert sum(b[1] for b in blocks) - fixed == pytest.approx(slope, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("times", [0.5, 1, 2, 4, 6])
def test_series_agrees_with_the_permanent_or_says_it_cannot(times):
    rng = np.random.default_rng(3)
    n_compared = 0
    for n in (8, 11, 13, 13, 14, 14):
        nu = times * 6 / (n**3 - n)
        block = random_block(rng, n)
        by_series = series(block, nu)
        if by_series is not None:
            n_compared += 1
            assert by_series == pytest.approx(permanent(block, nu), rel=1e-12)
    assert n_compared >= 3


def test_a_negative_nu_is_as_good():
    block = random_block(np.random.default_rng(4), 12)
    assert series(block, -0.005) == pytest.approx(permanent(block, -0.005), rel=1e-12)


@pytest.mark.parametrize("n", [3, 10, 200, 1000])
def test_moments_of_all_tied_items_are_those_of_spearmans_rho(n):
    tied = np.zeros(n, dtype=np.int32)
    (block,) = matching_of(Overlap.of(tied, tied)).blocks
    moments = scaled_moments(block, Centred.of(block), 8)
    fourth = 3 * (25 * n**3 - 38 * n**2 - 35 * n + 72) / (25 * n * (n + 1) * (n - 1) ** 3)  # Kendall and Stuart
    assert moments[[0, 2, 4]] == pytest.approx([1, 1 / (n - 1) / 2, fourth / 24], rel=1e-12)
    assert moments[[1, 3, 5, 7]] == pytest.approx(np.zeros(4), abs=1e-15)


def test_thousand_items_have_the_right_mean():
    # Listed items against a tail of 990 positions: the mean of (p - q)^2, in whole numbers.
    n, k = 1000, 10
    left, right = np.arange(n), np.roll(np.arange(n), 500)
    overlap = Overlap.of(top(left, k), top(right, k))
    mean_square = sum(q * q for q in range(k, n)) / (n - k)
    mean = sum(range(k, n)) / (n - k)
    listed = 2 * sum(p * p - 2 * p * mean + mean_square for p in range(k))
    neither = (n - 2 * k) * 2 * (mean_square - mean**2)
    assert FORMULA.log_value(overlap, 0.0) == pytest.approx((0.0, -listed - neither), rel=1e-12, abs=1e-11)


def test_a_large_nu_counts_only_the_best_matching():
    # 13 positions on either side, the best displacement of each item 1: one matching of cost 13 among 13!.
    ranks = np.array([0] * 13 + [1], dtype=np.int32)
    full = np.array([*range(1, 14), 0], dtype=np.int32)
    log_value, slope = FORMULA.log_value(Overlap.of(ranks, full), 200.0)
    assert log_value == pytest.approx(-200.0 * (13 + 13**2) - math.log(math.factorial(13)), rel=1e-14)
    assert slope == pytest.approx(-(13 + 13**2), rel=1e-14)


def test_blocks_too_large_for_their_nu_are_refused():
    tied = Overlap.of(np.zeros(40, np.int32), np.zeros(40, np.int32))
    with pytest.raises(ExactnessError, match="40 items in one tie"):
        FORMULA.log_value(tied, 0.1)
    suggested = exp_spearman.suggested_nu(matching_of(tied).blocks[0])
    assert FORMULA.log_value(tied, suggested)[0] < 0


def test_permanent_takes_over_where_the_series_ends():
    tied = Overlap.of(np.zeros(14, np.int32), np.zeros(14, np.int32))
    (block,) = matching_of(tied).blocks
    nu = 20 * 6 / (14**3 - 14)
    assert series(block, nu) is None
    assert FORMULA.log_value(tied, nu) == permanent(block, nu)


@settings(deadline=None, max_examples=40)
@given(st.integers(3, 30).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 2), st.integers(0, n - 2))))
def test_no_sum_is_larger_than_its_bound(lists):
    n, k, m = lists
    rng = np.random.default_rng(n)
    overlap = Overlap.of(top(rng.permutation(n), k), top(rng.permutation(n), m))
    bound = exp_spearman.largest_sum(overlap.left_shape, overlap.right_shape)
    assert all(Centred.of(block).largest <= bound * (1 + 1e-12) for block in matching_of(overlap).blocks)
    if k == m == 0:  # all tied: places around their mean, in any order
        assert bound == pytest.approx(n * (n * n - 1) / 12, rel=1e-12)


def test_where_the_value_is_certain():
    full, lists, tied = Shape((1,) * 40), Shape((1,) * 10 + (30,)), Shape((40,))
    assert exp_spearman.largest_block(full, tied) == 40
    assert exp_spearman.largest_block(full, lists) == exp_spearman.largest_block(lists, full) == 30
    assert exp_spearman.largest_block(lists, lists) == 40
    small = Shape((1,) * 28 + (12,))
    assert FORMULA.is_accurate(full, small, 100.0)  # a permanent of 12
    assert FORMULA.is_accurate(lists, lists, 1e-5)  # a series
    assert not FORMULA.is_accurate(lists, lists, 1.0)


def test_what_is_covered():
    assert FORMULA.covers(Shape((1, 1, 998)), Shape((1, 999)))
    assert FORMULA.covers(Shape((2, 3)), Shape((1, 1, 1, 1, 1)))
    assert not FORMULA.covers(Shape((2, 3)), Shape((3, 2)))
    assert not FORMULA.covers(Shape((1, 1), free=2), Shape((1, 3)))

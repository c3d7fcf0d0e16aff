"""Functions of the Cayley distance against enumeration and sums in many digits."""

import math
from decimal import MAX_EMAX, Decimal, localcontext
from fractions import Fraction

import naive
import numpy as np
import pytest
import strategies
from counted import distance_counts, from_counts
from hypothesis import given, settings
from hypothesis import strategies as st
from overlaps import full_pmf, log_mean, one_tie, overlap_of

import rankernel as rk
from rankernel.gram.exact.cayley import RandomCycles
from rankernel.gram.exact.formulas import Shape

NUS = [0.0, 1e-12, 1e-3, 0.3, 1.0, 4.0, 40.0, 1000.0]
FORMULA = RandomCycles()
EXPONENTIAL = rk.Exponential("cayley", 0.3)
OTHER = 1 + EXPONENTIAL  # a function of the distance that is not exponential


# ---------------------------------------------------------------------- oracles


def many_digits(n, certain, tied, size, returns, nu):
    """Return log K and its derivative from ``x^c prod (x+i)/(1+i) sum_r C(w,r) (N-r)!/N! (x-1)(x)...(x+r-2) / x^n``."""
    with localcontext() as context:
        context.prec, context.Emax = 100, MAX_EMAX
        x = Decimal(nu).exp()
        total, d_total, rising, d_rising = Decimal(0), Decimal(0), Decimal(1), Decimal(0)
        share = Decimal(1)
        for r in range(returns + 1):
            total += share * rising
            d_total += share * d_rising
            if r < returns:
                share *= Decimal(returns - r) / Decimal((r + 1) * (size - r))
                rising, d_rising = rising * (x - 1 + r), d_rising * (x - 1 + r) + rising
        log_value, derivative = total.ln(), x * d_total / total
        for i in range(tied):
            log_value += ((x + i) / (1 + i)).ln()
            derivative += x / (x + i)
        return float(log_value - (n - certain) * Decimal(nu)), float(derivative - (n - certain))


# ---------------------------------------------------------------------- helpers


@st.composite
def kinds(draw, left, right):
    n = draw(st.integers(1, 6))
    return draw(left(n)), draw(right(n))


def unordered(n):
    return st.lists(st.sampled_from([0, -1]), min_size=n, max_size=n).map(tuple)


def covers(kernel, left, right):
    overlap = overlap_of(left, right)
    return FORMULA.covers(kernel, overlap.left_shape, overlap.right_shape)


def check_log_mean(left, right, nu, expected, slack=0.0):
    for pair in (overlap_of(left, right), overlap_of(right, left)):
        assert log_mean(FORMULA, pair, nu) == pytest.approx(expected, rel=1e-12, abs=slack)


# ---------------------------------------------------------------------- against enumeration


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (unordered, strategies.any_ranking),
        (strategies.top_k, strategies.top_k),
        (strategies.permutations, strategies.permutations),
        (strategies.permutations, one_tie),
        (one_tie, one_tie),
    ],
)
def test_value_and_derivative_match_brute_force(left, right):
    @settings(max_examples=25, deadline=None)
    @given(kinds(left, right))
    def run(pair):
        assert covers(EXPONENTIAL, *pair)
        assert covers(EXPONENTIAL, *pair[::-1])
        counts = distance_counts(naive.cayley, *pair)
        for nu in NUS:
            check_log_mean(*pair, nu, from_counts(counts, nu))

    run()


@settings(max_examples=40, deadline=None)
@given(st.one_of(kinds(one_tie, one_tie), kinds(unordered, strategies.any_ranking)))
def test_distribution_matches_brute_force(pair):
    assert covers(OTHER, *pair)
    counts = distance_counts(naive.cayley, *pair)
    total = sum(counts.values())
    expected = [counts[d] / total for d in range(len(pair[0]))]
    np.testing.assert_allclose(full_pmf(FORMULA, overlap_of(*pair), len(expected)), expected, rtol=1e-14, atol=0)
    np.testing.assert_allclose(full_pmf(FORMULA, overlap_of(*pair[::-1]), len(expected)), expected, rtol=1e-14, atol=0)


@settings(max_examples=30, deadline=None)
@given(kinds(strategies.top_k, strategies.top_k))
def test_offset_of_two_lists_is_the_smallest_distance(pair):
    assert FORMULA.log_mean(overlap_of(*pair), 0.3).offset == min(distance_counts(naive.cayley, *pair))


@pytest.mark.parametrize(
    "kernel", [rk.Exponential("cayley", math.log(2)), (rk.Exponential("cayley", math.log(2)) + 1) ** 2]
)
def test_lists_of_the_same_items_in_another_order(kernel):
    """As a single pair, among other lists, and with a ranking of another shape."""
    lists = rk.Rankings([[0, 1, 2, 2, 2], [1, 0, 2, 2, 2], [2, 0, 1, 3, 3], [0, 1, 1, 2, 3]])
    for rows, columns in ((lists[:1], lists[1:2]), (lists[:3], lists[:3]), (lists, lists)):
        exact, enumerated = (kernel.gram(rows, columns, method=method) for method in ("exact", "enumeration"))
        np.testing.assert_allclose(exact, enumerated, rtol=1e-13)


def test_covered_shapes():
    top, tie, ties, free = Shape((1, 1, 4)), Shape((1, 3, 1, 1)), Shape((2, 2, 2)), Shape((1, 1), 4)
    for kernel in (EXPONENTIAL, OTHER):
        assert FORMULA.covers(kernel, top, tie)
        assert not FORMULA.covers(kernel, top, ties)
        assert not FORMULA.covers(kernel, top, free)
        assert FORMULA.covers(kernel, Shape((2,), 4), ties)
        assert not FORMULA.covers(kernel, ties, free)
    assert FORMULA.covers(EXPONENTIAL, Shape((1, 4999)), Shape((1, 4999)))
    assert not FORMULA.covers(OTHER, Shape((1, 4999)), Shape((1, 4999)))


# ---------------------------------------------------------------------- many items


@pytest.mark.parametrize("nu", [0.0, 1e-12, 1e-3, 1.0, 5.0, 50.0, 1000.0])
@pytest.mark.parametrize(("n", "first", "second"), [(40, 10, 25), (200, 60, 120), (2000, 0, 3)])
def test_ties_at_different_positions_of_many_items(n, first, second, nu):
    """The same order on both sides, positions from ``first`` up tied on the left, below ``second`` on the right."""
    left, right = np.minimum(np.arange(n), first), np.maximum(np.arange(n) - second, 0)
    # Positions below ``first`` return to the right bucket at once; positions from ``second`` up are in the left one.
    expected = many_digits(n, 0, n - first, second + 1, first, nu)
    # The oracle loses some of its 100 digits by cancellation.
    check_log_mean(left, right, nu, expected, slack=1e-90)


@pytest.mark.parametrize("nu", [1e-12, 0.1, 3.0, 1000.0])
def test_top_k_lists_of_many_items(nu):
    n, k, m = 300, 12, 20
    left, right = np.arange(n), np.arange(n)
    right[:5] = [1, 0, 2, 4, 3]
    right[11], right[200] = 200, 11
    # Of the first 12 positions two pairs are swapped, the last is mapped to a tied position, and the others are fixed.
    certain = 3 + 6
    expected = many_digits(n, certain, n - k, 0, 0, nu)
    check_log_mean(np.minimum(left, k), np.minimum(right, m), nu, expected)


@pytest.mark.parametrize("nu", [0.0, 0.2, 2.0, 40.0])
def test_distribution_of_many_items_matches_the_kernel(nu):
    rng = np.random.default_rng(0)
    left = np.clip(rng.permutation(60) - 10, 0, 20)
    right = np.clip(rng.permutation(60), 0, 25)
    pmf = full_pmf(FORMULA, overlap_of(left, right), 60)
    assert math.fsum(pmf) == pytest.approx(1.0, rel=1e-14)
    exact = {d: Fraction(p) for d, p in enumerate(pmf) if p}
    assert min(exact) > 0
    with localcontext() as context:
        context.prec = 60
        counts = {d: Decimal(p.numerator) / Decimal(p.denominator) for d, p in exact.items()}
    assert log_mean(FORMULA, overlap_of(left, right), nu) == pytest.approx(
        from_counts(counts, nu), rel=1e-13, abs=1e-14
    )


def test_identical_full_rankings_have_kernel_exactly_one():
    full = np.random.default_rng(0).permutation(50)
    for nu in NUS:
        assert log_mean(FORMULA, overlap_of(full, full), nu) == (0.0, 0.0)

"""The exponential Cayley kernel and the law of the Cayley distance, against enumeration and many-digit sums."""

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

import rankernel as rk
from rankernel.gram.exact.cayley import EXP_CAYLEY, CayleyLaw, SingleTie, TopKCycles, Unconstrained
from rankernel.gram.exact.overlap import Overlap, Shape, shape_of

NUS = [0.0, 1e-12, 1e-3, 0.3, 1.0, 4.0, 40.0, 1000.0]
LAW = CayleyLaw()


# ---------------------------------------------------------------------- oracles


def many_digits(n, certain, tied, size, returns, nu):
    """Log of K and its derivative from ``x^c prod (x+i)/(1+i) sum_r C(w,r) (N-r)!/N! (x-1)(x)...(x+r-2) / x^n``."""
    with localcontext() as context:
        context.prec, context.Emax = 100, MAX_EMAX
        x = Decimal(nu).exp()
        total, slope, rising, rising_slope = Decimal(0), Decimal(0), Decimal(1), Decimal(0)
        share = Decimal(1)
        for r in range(returns + 1):
            total += share * rising
            slope += share * rising_slope
            if r < returns:
                share *= Decimal(returns - r) / Decimal((r + 1) * (size - r))
                rising, rising_slope = rising * (x - 1 + r), rising_slope * (x - 1 + r) + rising
        log_value, log_slope = total.ln(), x * slope / total
        for i in range(tied):
            log_value += ((x + i) / (1 + i)).ln()
            log_slope += x / (x + i)
        return float(log_value - (n - certain) * Decimal(nu)), float(log_slope - (n - certain))


# ---------------------------------------------------------------------- helpers


@st.composite
def one_tie(draw, n):
    """A full ranking in which one interval of positions is tied."""
    full = draw(strategies.permutations(n))
    low = draw(st.integers(0, n - 1))
    high = draw(st.integers(low, n - 1))
    return tuple(r if r < low else low if r <= high else r - (high - low) for r in full)


@st.composite
def kinds(draw, left, right):
    n = draw(st.integers(1, 6))
    return draw(left(n)), draw(right(n))


def saying_nothing(n):
    return st.lists(st.sampled_from([0, -1]), min_size=n, max_size=n).map(tuple)


def overlap(left, right):
    return Overlap.of(np.array(left, dtype=np.int32), np.array(right, dtype=np.int32))


def covers(formula, left, right):
    return formula.covers(shape_of(np.array(left, dtype=np.int32)), shape_of(np.array(right, dtype=np.int32)))


def check(formula, left, right, nu, expected, slack=0.0):
    for pair in (overlap(left, right), overlap(right, left)):
        assert formula.log_value(pair, nu) == pytest.approx(expected, rel=1e-12, abs=slack)


# ---------------------------------------------------------------------- against enumeration


@pytest.mark.parametrize(
    ("formula", "left", "right"),
    [
        (Unconstrained(), saying_nothing, strategies.any_ranking),
        (TopKCycles(), strategies.top_k, strategies.top_k),
        (TopKCycles(), strategies.permutations, strategies.permutations),
        (SingleTie(), strategies.top_k, strategies.top_k),
        (SingleTie(), strategies.permutations, strategies.permutations),
        (SingleTie(), strategies.permutations, one_tie),
        (SingleTie(), one_tie, one_tie),
    ],
)
def test_every_formula_is_the_mean_over_all_completions(formula, left, right):
    @settings(max_examples=25, deadline=None)
    @given(kinds(left, right))
    def run(pair):
        assert covers(formula, *pair)
        assert covers(formula, *pair[::-1])
        counts = distance_counts(naive.cayley, *pair)
        for nu in NUS:
            check(formula, *pair, nu, from_counts(counts, nu))

    run()


@settings(max_examples=40, deadline=None)
@given(st.one_of(kinds(one_tie, one_tie), kinds(saying_nothing, strategies.any_ranking)))
def test_the_law_is_the_share_of_pairs_at_each_distance(pair):
    assert covers(LAW, *pair)
    counts = distance_counts(naive.cayley, *pair)
    total = sum(counts.values())
    expected = [counts[d] / total for d in range(len(pair[0]))]
    np.testing.assert_allclose(LAW.pmf(overlap(*pair)), expected, rtol=1e-14, atol=0)
    np.testing.assert_allclose(LAW.pmf(overlap(*pair[::-1])), expected, rtol=1e-14, atol=0)


@settings(max_examples=30, deadline=None)
@given(kinds(strategies.top_k, strategies.top_k))
def test_what_is_left_of_two_lists_does_not_depend_on_which_cycles_close(pair):
    """The part that codes leave out is the number of listed places that close no cycle."""
    formula, both = TopKCycles(), overlap(*pair)
    (value, slope), (rest, rest_slope) = formula.log_value(both, 0.3), formula.log_rest(both, 0.3)
    apart = round(rest_slope - slope)
    assert rest - value == pytest.approx(0.3 * apart, rel=1e-13, abs=1e-13)
    assert apart == min(distance_counts(naive.cayley, *pair))


@pytest.mark.parametrize(
    "kernel", [rk.Exponential("cayley", math.log(2)), (rk.Exponential("cayley", math.log(2)) + 1) ** 2]
)
def test_lists_of_the_same_items_in_another_order(kernel):
    """Alone, between other lists, and beside a ranking of another shape: a place that closed a cycle counts once."""
    lists = rk.Rankings([[0, 1, 2, 2, 2], [1, 0, 2, 2, 2], [2, 0, 1, 3, 3], [0, 1, 1, 2, 3]])
    for rows, columns in ((lists[:1], lists[1:2]), (lists[:3], lists[:3]), (lists, lists)):
        exact, listed = (kernel.gram(rows, columns, method=method) for method in ("exact", "enumeration"))
        np.testing.assert_allclose(exact, listed, rtol=1e-13)


def test_what_is_covered():
    top, tie, ties, free = Shape((1, 1, 4)), Shape((1, 3, 1, 1)), Shape((2, 2, 2)), Shape((1, 1), 4)
    for method in (SingleTie(), LAW):
        assert method.covers(top, tie)
        assert not method.covers(top, ties)
        assert not method.covers(top, free)
    assert Unconstrained().covers(Shape((2,), 4), ties)
    assert not any(formula.covers(ties, free) for formula in EXP_CAYLEY)
    assert not LAW.covers(Shape((1, 4999)), Shape((1, 4999)))


# ---------------------------------------------------------------------- many items


@pytest.mark.parametrize("nu", [0.0, 1e-12, 1e-3, 1.0, 5.0, 50.0, 1000.0])
@pytest.mark.parametrize(("n", "first", "second"), [(40, 10, 25), (200, 60, 120), (2000, 0, 3)])
def test_ties_at_different_places_of_many_items(n, first, second, nu):
    """The same order on both sides, positions from ``first`` up tied on the left, below ``second`` on the right."""
    left, right = np.minimum(np.arange(n), first), np.maximum(np.arange(n) - second, 0)
    # Positions below ``first`` return to the right bucket at once; positions from ``second`` up are in the left one.
    expected = many_digits(n, 0, n - first, second + 1, first, nu)
    # The oracle subtracts n from a number near n: of its 100 digits some are gone.
    check(SingleTie(), left, right, nu, expected, slack=1e-90)


@pytest.mark.parametrize("nu", [1e-12, 0.1, 3.0, 1000.0])
def test_top_k_lists_of_many_items(nu):
    n, k, m = 300, 12, 20
    left, right = np.arange(n), np.arange(n)
    right[:5] = [1, 0, 2, 4, 3]
    right[11], right[200] = 200, 11
    # Of the first 12 positions, one stays, two pairs change places, the rest stay but the last, which leads away.
    certain = 3 + 6
    expected = many_digits(n, certain, n - k, 0, 0, nu)
    check(SingleTie(), np.minimum(left, k), np.minimum(right, m), nu, expected)


@pytest.mark.parametrize("nu", [0.0, 0.2, 2.0, 40.0])
def test_the_law_of_many_items_gives_the_kernel(nu):
    rng = np.random.default_rng(0)
    left = np.clip(rng.permutation(60) - 10, 0, 20)
    right = np.clip(rng.permutation(60), 0, 25)
    law = LAW.pmf(overlap(left, right))
    assert math.fsum(law) == pytest.approx(1.0, rel=1e-14)
    exact = {d: Fraction(p) for d, p in enumerate(law) if p}
    assert min(exact) > 0
    with localcontext() as context:
        context.prec = 60
        counts = {d: Decimal(p.numerator) / Decimal(p.denominator) for d, p in exact.items()}
    log_value, slope = SingleTie().log_value(overlap(left, right), nu)
    assert (log_value, slope) == pytest.approx(from_counts(counts, nu), rel=1e-13, abs=1e-14)


def test_identical_full_rankings_have_kernel_one_to_the_last_bit():
    full = np.random.default_rng(0).permutation(50)
    for nu in NUS:
        assert SingleTie().log_value(overlap(full, full), nu) == (0.0, 0.0)

"""Each dynamic program for the Mallows kernel with free items against all pairs of completions, from either side."""

import math

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from overlaps import log_mean, overlap_of

import rankernel as rk
from rankernel._utils.combinatorics import log_q_factorials
from rankernel.gram.exact.formulas import Shape
from rankernel.gram.exact.mallows_free import PROGRAMS, FreeMallows

NUS = st.sampled_from([0.0, 1e-5, 0.1, 0.7, 4.0])
SIX = [((0, -1, 1, -1, 1, 2), (-1, 0, 1, -1, 0, -1)), ((1, 0, 0, -1, 1, -1), (0, 1, 1, 0, -1, 0))]
# Buckets of three and four items, some of which are free on the other side.
MIXED = [((0, 1, 1, -1, -1, 2, -1), (0, 0, 0, 1, 1, 1, -1)), ((0, 0, -1, -1, -1, 1, -1), (1, 0, 1, 1, 0, -1, 1))]


FORMULA, KERNEL = FreeMallows(), rk.Mallows(0.1)


def expected(r, s, nu):
    value = naive.marginal(naive.mallows(nu), r, s)
    return value, naive.marginal_derivative(naive.kendall, nu, r, s) / value


def check_close(found, wanted):
    assert math.exp(found[0]) == pytest.approx(wanted[0], rel=1e-12)
    assert found[1] == pytest.approx(wanted[1], rel=1e-12, abs=1e-14)


@settings(deadline=None, max_examples=40)
@given(strategies.sized(strategies.any_ranking, high=5, length=2), NUS)
def test_each_program_matches_brute_force(pair, nu):
    wanted = expected(*pair, nu)
    overlap = overlap_of(*pair)
    for side in (overlap, overlap.swapped):
        for program in PROGRAMS:
            if program.applies(side.left_shape, side.right_shape):
                check_close(program.run(side, nu), wanted)
    check_close(log_mean(FORMULA, overlap, nu), wanted)


@pytest.mark.parametrize(("r", "s"), SIX)
def test_six_items(r, s):
    check_close(log_mean(FORMULA, overlap_of(r, s), 0.3), expected(r, s, 0.3))


@pytest.mark.parametrize(("r", "s"), MIXED)
def test_insertion_is_symmetric(r, s):
    overlap, insertion = overlap_of(r, s), PROGRAMS[2]
    assert insertion.run(overlap, 0.4) == pytest.approx(insertion.run(overlap.swapped, 0.4), rel=1e-12)


@settings(deadline=None, max_examples=30)
@given(strategies.sized(strategies.any_ranking, high=5), NUS, st.booleans())
def test_unordered_rankings(rows, nu, tied):
    (r,) = rows
    s = (0, *(0 if tied else -1 for _ in r[1:]))
    overlap = overlap_of(r, s)
    assert FORMULA.covers(KERNEL, overlap.left_shape, overlap.right_shape)
    check_close(log_mean(FORMULA, overlap, nu), expected(r, s, nu))


def test_lists_that_share_no_item():
    r, s = (0, 1, 1, -1, -1), (-1, -1, -1, 1, 0)
    check_close(log_mean(FORMULA, overlap_of(r, s), 0.6), expected(r, s, 0.6))


def chain(n, *items):
    ranks = np.full(n, -1)
    ranks[list(items)] = np.arange(len(items))
    return ranks


def test_two_lists_of_two_among_a_hundred():
    """Lists of the same two items, in the same or the opposite order: q-factorial times mean inversions."""
    n, nu = 100, 0.05
    mean_inversions = math.fsum(1 / math.expm1(nu) - i / math.expm1(i * nu) for i in range(1, n + 1))
    share = mean_inversions / math.comb(n, 2)
    scale = float(log_q_factorials(n, nu)[-1])
    same, _ = log_mean(FORMULA, overlap_of(chain(n, 3, 8), chain(n, 3, 8)), nu)
    opposite, _ = log_mean(FORMULA, overlap_of(chain(n, 3, 8), chain(n, 8, 3)), nu)
    assert same == pytest.approx(scale + math.log(2 * (1 - share)), rel=1e-13)
    assert opposite == pytest.approx(scale + math.log(2 * share), rel=1e-13)


@pytest.mark.parametrize("nu", [0.02, 1.0, 30.0])
def test_programs_agree_for_twelve_items(nu):
    """Too many completions to enumerate; no value underflows."""
    left = np.array([4, 3, 3, 2, 2, 2, 2, 1, 1, 0, 0, 0])
    overlap = overlap_of(left, chain(12, 0, 7, 3, 11))
    found = [program.run(overlap, nu) for program in PROGRAMS]
    found.append(PROGRAMS[2].run(overlap.swapped, nu))
    for value in found[1:]:
        assert value == pytest.approx(found[0], rel=1e-12)


def test_rankings_without_free_items_at_twelve_items():
    left, right = np.array([2, 1, 1, 0, 0, 0, 3, 3, 3, 3, 1, 0]), np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2])
    kernel = rk.Mallows(0.2)
    result = kernel.estimate([left], [right], gradient=True)
    wanted = kernel.log_gram([left], [right]).item(), (result.gradient["nu"] / result.value).item()
    assert log_mean(FORMULA, overlap_of(left, right), 0.2) == pytest.approx(wanted, rel=1e-13)


@pytest.mark.parametrize(
    ("left", "right", "covered"),
    [
        (Shape((1,) * 6, 4), Shape((1,) * 6, 4), True),
        (Shape((1, 1), 98), Shape((1, 1), 98), True),
        (Shape((1,) * 5 + (45,)), Shape((1,) * 20, 30), True),
        (Shape((1,) * 10, 20), Shape((1,) * 10, 20), False),
        (Shape((1, 1), 998), Shape((1, 1), 998), False),
    ],
)
def test_covered_shapes(left, right, covered):
    assert FORMULA.covers(KERNEL, left, right) is covered
    assert FORMULA.covers(KERNEL, right, left) is covered


@settings(deadline=None, max_examples=40)
@given(strategies.sized(strategies.any_ranking, high=6, length=2))
def test_sizes_are_bounded_for_all_overlaps(pair):
    overlap = overlap_of(*pair)
    for program in PROGRAMS:
        shapes = overlap.left_shape, overlap.right_shape
        if program.applies(*shapes):
            bound = program.size(*shapes, None)
            exact = program.size(*shapes, overlap.counts)
            assert exact[0] <= bound[0]
            assert exact[1] <= bound[1]

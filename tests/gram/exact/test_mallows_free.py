"""Each programme for the Mallows kernel with free items against all pairs of completions, from either side."""

import math

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

from rankernel._utils.q_factorials import log_q_factorials
from rankernel.gram.exact import mallows
from rankernel.gram.exact.mallows import PROGRAMMES, ExhaustiveMallows, FreeMallows, UnorderedMallows
from rankernel.gram.exact.overlap import Overlap, Shape

BANDWIDTHS = st.sampled_from([0.0, 1e-5, 0.1, 0.7, 4.0])
SIX = [((0, -1, 1, -1, 1, 2), (-1, 0, 1, -1, 0, -1)), ((1, 0, 0, -1, 1, -1), (0, 1, 1, 0, -1, 0))]
# Buckets of three and four, of which some items are free on the other side: most counters of the insertion are in use.
MIXED = [((0, 1, 1, -1, -1, 2, -1), (0, 0, 0, 1, 1, 1, -1)), ((0, 0, -1, -1, -1, 1, -1), (1, 0, 1, 1, 0, -1, 1))]


def overlap_of(r, s):
    return Overlap.of(np.array(r), np.array(s))


def expected(r, s, nu):
    value = naive.marginal(naive.mallows(nu), r, s)
    return value, naive.marginal_derivative(naive.kendall, nu, r, s) / value


def check(found, wanted):
    assert math.exp(found[0]) == pytest.approx(wanted[0], rel=1e-12)
    assert found[1] == pytest.approx(wanted[1], rel=1e-12, abs=1e-14)


@settings(deadline=None, max_examples=40)
@given(strategies.sized(strategies.any_ranking, high=5, length=2), BANDWIDTHS)
def test_every_programme_that_applies(pair, nu):
    wanted = expected(*pair, nu)
    overlap = overlap_of(*pair)
    for side in (overlap, overlap.swapped):
        for programme in PROGRAMMES:
            if programme.applies(side.left_shape, side.right_shape):
                check(programme.log_value(side, nu), wanted)
    check(FreeMallows().log_value(overlap, nu), wanted)


@pytest.mark.parametrize(("r", "s"), SIX)
def test_six_items(r, s):
    check(FreeMallows().log_value(overlap_of(r, s), 0.3), expected(r, s, 0.3))


@pytest.mark.parametrize(("r", "s"), MIXED)
def test_insertion_is_the_same_from_either_side(r, s):
    overlap, insertion = overlap_of(r, s), PROGRAMMES[2]
    assert insertion.log_value(overlap, 0.4) == pytest.approx(insertion.log_value(overlap.swapped, 0.4), rel=1e-12)


@settings(deadline=None, max_examples=30)
@given(strategies.sized(strategies.any_ranking, high=5), BANDWIDTHS, st.booleans())
def test_unordered_rankings(rows, nu, tied):
    (r,) = rows
    s = (0, *(0 if tied else -1 for _ in r[1:]))
    overlap = overlap_of(r, s)
    assert UnorderedMallows().covers(overlap.left_shape, overlap.right_shape)
    check(UnorderedMallows().log_value(overlap, nu), expected(r, s, nu))


def test_lists_that_share_no_item():
    r, s = (0, 1, 1, -1, -1), (-1, -1, -1, 1, 0)
    check(FreeMallows().log_value(overlap_of(r, s), 0.6), expected(r, s, 0.6))


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
    same, _ = FreeMallows().log_value(overlap_of(chain(n, 3, 8), chain(n, 3, 8)), nu)
    opposite, _ = FreeMallows().log_value(overlap_of(chain(n, 3, 8), chain(n, 8, 3)), nu)
    assert same == pytest.approx(scale + math.log(2 * (1 - share)), rel=1e-13)
    assert opposite == pytest.approx(scale + math.log(2 * share), rel=1e-13)


@pytest.mark.parametrize("nu", [0.02, 1.0, 30.0])
def test_programmes_agree_where_nothing_can_be_enumerated(nu):
    """Twelve items: the three programmes see them in quite different ways, and no value is lost to underflow."""
    left = np.array([4, 3, 3, 2, 2, 2, 2, 1, 1, 0, 0, 0])
    overlap = overlap_of(left, chain(12, 0, 7, 3, 11))
    found = [programme.log_value(overlap, nu) for programme in PROGRAMMES]
    found.append(PROGRAMMES[2].log_value(overlap.swapped, nu))
    for value in found[1:]:
        assert value == pytest.approx(found[0], rel=1e-12)


def test_rankings_without_free_items_at_twelve_items():
    left, right = np.array([2, 1, 1, 0, 0, 0, 3, 3, 3, 3, 1, 0]), np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2])
    wanted = ExhaustiveMallows().log_value(overlap_of(left, right), 0.2)
    assert FreeMallows().log_value(overlap_of(left, right), 0.2) == pytest.approx(wanted, rel=1e-13)


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
def test_what_is_covered(left, right, covered):
    assert FreeMallows().covers(left, right) is covered
    assert FreeMallows().covers(right, left) is covered


def test_the_bound_can_be_set(monkeypatch):
    shapes = Shape((1, 1), 98), Shape((1, 1), 98)
    monkeypatch.setattr(mallows, "MAX_STEPS", 1000)
    assert not FreeMallows().covers(*shapes)


@settings(deadline=None, max_examples=40)
@given(strategies.sized(strategies.any_ranking, high=6, length=2))
def test_bounds_hold_for_every_overlap(pair):
    overlap = overlap_of(*pair)
    for programme in PROGRAMMES:
        shapes = overlap.left_shape, overlap.right_shape
        if programme.applies(*shapes):
            bound = programme.states_and_steps(*shapes, None)
            exact = programme.states_and_steps(*shapes, overlap.counts)
            assert exact[0] <= bound[0]
            assert exact[1] <= bound[1]

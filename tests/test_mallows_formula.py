"""The closed form of the Mallows kernel against all pairs of completions."""

import math

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

from rankernel.gram.formulas.mallows import ExhaustiveMallows, inversions
from rankernel.gram.overlap import Overlap, Shape

KINDS = {"full": strategies.permutations, "top_k": strategies.top_k, "ties": strategies.bucket_orders}


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=30)
@given(data=st.data(), n=st.integers(1, 5), nu=st.sampled_from([0.0, 1e-6, 0.1, 1.0, 7.0]))
def test_all_pairs_of_completions(kind, data, n, nu):
    r, s = data.draw(KINDS[kind](n)), data.draw(strategies.bucket_orders(n))
    value = naive.marginal(naive.mallows(nu), r, s)
    slope = naive.marginal_derivative(naive.kendall, nu, r, s) / value
    found = ExhaustiveMallows().log_value(Overlap.of(np.array(r), np.array(s)), nu)
    assert math.exp(found[0]) == pytest.approx(value, rel=1e-13)
    assert found[1] == pytest.approx(slope, rel=1e-12, abs=1e-14)


def test_six_items():
    r, s = (0, 1, 1, 2, 0, 1), (1, 0, 0, 1, 1, 0)
    found = ExhaustiveMallows().log_value(Overlap.of(np.array(r), np.array(s)), 0.3)
    assert math.exp(found[0]) == pytest.approx(naive.marginal(naive.mallows(0.3), r, s), rel=1e-13)


def test_full_rankings_of_thousands_of_items():
    x = np.random.default_rng(0).permutation(3000)
    y = np.arange(3000)[::-1]
    concordant = inversions(x.tolist())
    found = ExhaustiveMallows().log_value(Overlap.of(x, y), 0.01)
    discordant = 3000 * 2999 // 2 - concordant
    assert found == (pytest.approx(-0.01 * discordant, rel=1e-14), -discordant)


@given(st.lists(st.integers(0, 9)))
def test_inversions(values):
    assert inversions(values) == sum(a > b for i, a in enumerate(values) for b in values[i + 1 :])


def test_what_is_covered():
    assert ExhaustiveMallows().covers(Shape((1, 4)), Shape((5,)))
    assert not ExhaustiveMallows().covers(Shape((1, 3), free=1), Shape((5,)))
    assert not ExhaustiveMallows().covers(Shape((5,)), Shape((1, 3), free=1))

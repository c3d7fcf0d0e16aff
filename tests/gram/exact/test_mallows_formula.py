"""The closed form of the Mallows kernel against all pairs of completions."""

import math
from collections import Counter

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

from rankernel.gram.exact.mallows import ExhaustiveMallows
from rankernel.gram.exact.overlap import Overlap, Shape

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
    concordant = Overlap.of(np.arange(3000), x).n_discordant
    found = ExhaustiveMallows().log_value(Overlap.of(x, y), 0.01)
    discordant = 3000 * 2999 // 2 - concordant
    assert found == (pytest.approx(-0.01 * discordant, rel=1e-14), -discordant)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30))
def test_pairs_in_opposite_order(ranks):
    left, right = (np.array([pair[side] for pair in ranks], dtype=np.int32) for side in (0, 1))
    expected = sum((a - c) * (b - d) < 0 for i, (a, b) in enumerate(ranks) for c, d in ranks[i + 1 :])
    assert Overlap.of(left, right).n_discordant == expected


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_items_that_share_both_buckets(ranks):
    left, right = (np.array([pair[side] for pair in ranks], dtype=np.int32) for side in (0, 1))
    assert sorted(Overlap.of(left, right).cell_sizes.tolist()) == sorted(Counter(ranks).values())


def test_what_is_covered():
    assert ExhaustiveMallows().covers(Shape((1, 4)), Shape((5,)))
    assert not ExhaustiveMallows().covers(Shape((1, 3), free=1), Shape((5,)))
    assert not ExhaustiveMallows().covers(Shape((5,)), Shape((1, 3), free=1))

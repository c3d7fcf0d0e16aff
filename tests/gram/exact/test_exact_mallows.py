"""The closed form of the Mallows kernel against all pairs of completions."""

import math
from collections import Counter

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from overlaps import overlap_of

from rankernel.gram.exact.kendall import log_mallows

KINDS = {"full": strategies.permutations, "top_k": strategies.top_k, "ties": strategies.bucket_orders}
PAIRS_OF_RANKS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=30)
@given(data=st.data(), n=st.integers(1, 5), nu=st.sampled_from([0.0, 1e-6, 0.1, 1.0, 7.0]))
def test_value_and_derivative_match_brute_force(kind, data, n, nu):
    r, s = data.draw(KINDS[kind](n)), data.draw(strategies.bucket_orders(n))
    value = naive.marginal(naive.mallows(nu), r, s)
    derivative = naive.marginal_derivative(naive.kendall, nu, r, s) / value
    found = log_mallows(overlap_of(r, s), nu)
    assert math.exp(found[0]) == pytest.approx(value, rel=1e-13)
    assert found[1] == pytest.approx(derivative, rel=1e-12, abs=1e-14)


def test_six_items():
    r, s = (0, 1, 1, 2, 0, 1), (1, 0, 0, 1, 1, 0)
    found = log_mallows(overlap_of(r, s), 0.3)
    assert math.exp(found[0]) == pytest.approx(naive.marginal(naive.mallows(0.3), r, s), rel=1e-13)


def test_full_rankings_of_thousands_of_items():
    x, y = np.random.default_rng(0).permutation(3000), np.arange(3000)[::-1]
    discordant = math.comb(3000, 2) - overlap_of(np.arange(3000), x).n_discordant
    found = log_mallows(overlap_of(x, y), 0.01)
    assert found == (pytest.approx(-0.01 * discordant, rel=1e-14), -discordant)


@settings(max_examples=40)
@given(PAIRS_OF_RANKS)
def test_discordant_pairs(ranks):
    left, right = ([pair[side] for pair in ranks] for side in (0, 1))
    expected = sum((a - c) * (b - d) < 0 for i, (a, b) in enumerate(ranks) for c, d in ranks[i + 1 :])
    assert overlap_of(left, right).n_discordant == expected


@settings(max_examples=40)
@given(PAIRS_OF_RANKS.filter(len))
def test_sizes_of_shared_buckets(ranks):
    left, right = ([pair[side] for pair in ranks] for side in (0, 1))
    assert sorted(overlap_of(left, right).cell_sizes.tolist()) == sorted(Counter(ranks).values())

"""The closed form of the Mallows kernel against all pairs of completions."""

import math
from collections import Counter

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

import rankernel as rk

KINDS = {"full": strategies.permutations, "top_k": strategies.top_k, "ties": strategies.bucket_orders}
PAIRS_OF_RANKS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30)


def log_and_derivative(r, s, nu):
    """Return log K and its derivative in nu."""
    kernel = rk.Mallows(nu)
    result = kernel.estimate([r], [s], method="exact", gradient=True)
    return kernel.log_gram([r], [s]).item(), (result.gradient["nu"] / result.value).item()


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=30)
@given(data=st.data(), n=st.integers(1, 5), nu=st.sampled_from([0.0, 1e-6, 0.1, 1.0, 7.0]))
def test_value_and_derivative_match_brute_force(kind, data, n, nu):
    r, s = data.draw(KINDS[kind](n)), data.draw(strategies.bucket_orders(n))
    value = naive.marginal(naive.mallows(nu), r, s)
    derivative = naive.marginal_derivative(naive.kendall, nu, r, s) / value
    found = log_and_derivative(r, s, nu)
    assert math.exp(found[0]) == pytest.approx(value, rel=1e-13)
    assert found[1] == pytest.approx(derivative, rel=1e-12, abs=1e-14)


def test_six_items():
    r, s = (0, 1, 1, 2, 0, 1), (1, 0, 0, 1, 1, 0)
    found = log_and_derivative(r, s, 0.3)
    assert math.exp(found[0]) == pytest.approx(naive.marginal(naive.mallows(0.3), r, s), rel=1e-13)


def test_full_rankings_of_thousands_of_items():
    x, y = np.random.default_rng(0).permutation(3000), np.arange(3000)[::-1]
    discordant = math.comb(3000, 2) - rk.distances.kendall([np.arange(3000)], [x]).item()
    assert rk.Mallows(0.01).log_gram([x], [y]).item() == pytest.approx(-0.01 * discordant, rel=1e-14)


def log_q_factorial(m, nu):
    """Return log([m]_q! / m!), q = exp(-nu)."""
    return sum(math.log(math.expm1(-nu * i) / math.expm1(-nu) / i) for i in range(1, m + 1))


@settings(deadline=None, max_examples=40)
@given(PAIRS_OF_RANKS, st.sampled_from([0.01, 0.5]))
def test_product_of_q_factorials(ranks, nu):
    left, right = (np.unique([pair[side] for pair in ranks], return_inverse=True)[1] for side in (0, 1))
    discordant = sum((a - c) * (b - d) < 0 for i, (a, b) in enumerate(ranks) for c, d in ranks[i + 1 :])
    buckets = [size for side in zip(*ranks, strict=True) for size in Counter(side).values()]
    expected = sum(log_q_factorial(size, nu) for size in buckets) - nu * discordant
    expected -= sum(log_q_factorial(size, nu) for size in Counter(ranks).values())
    assert rk.Mallows(nu).log_gram([left], [right]).item() == pytest.approx(expected, rel=1e-12, abs=1e-12)

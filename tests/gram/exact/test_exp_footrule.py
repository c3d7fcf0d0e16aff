import functools
import math

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

from rankernel import _loops
from rankernel.errors import ExactnessError
from rankernel.gram.exact.coded import FootruleCoding
from rankernel.gram.exact.exp_footrule import ExponentialFootrule, sweep
from rankernel.gram.exact.matchings import Block, matching_of
from rankernel.gram.exact.overlap import Overlap, Shape
from rankernel.rankings import Rankings

FORMULA = ExponentialFootrule()
NUS = st.sampled_from([0.0, 1e-6, 0.1, 0.7, 3.0])
SHARP = 400.0  # where powers of two are kept, however few items there are

# ---------------------------------------------------------------------- oracles


def displacement_counts(left, right, forbidden):
    """How many matchings have each total displacement, in whole numbers; no two indices of a forbidden pair meet."""

    @functools.cache
    def from_row(i, free):
        if i == len(left):
            return {0: 1}
        counts = {}
        for j in free:
            if (i, j) not in forbidden:
                for d, c in from_row(i + 1, free - {j}).items():
                    d += abs(left[i] - right[j])
                    counts[d] = counts.get(d, 0) + c
        return counts

    return from_row(0, frozenset(range(len(right))))


def log_sum(counts, nu):
    """Logarithm of the sum of counts * exp(-nu d), and its derivative."""
    least = min(counts)
    weights = {d: c * math.exp(-nu * (d - least)) for d, c in counts.items()}
    total = math.fsum(weights.values())
    return math.log(total) - nu * least, -math.fsum(d * w for d, w in weights.items()) / total


def log_motzkin_sum(n):
    """Logarithm of the sum over all permutations of 2^-displacement, in whole numbers (Guay-Paquet, Petersen 2014)."""
    states, shift = [1] + [0] * n, 0
    for _ in range(n):
        new = [(2 * u + 1) * states[u] for u in range(n + 1)]
        for u in range(n):
            new[u + 1] += (u + 1) * states[u]
            new[u] += (u + 1) * states[u + 1]
        top = max(u for u in range(n + 1) if new[u])
        states = [new[u] << 2 * (top - u) if new[u] else 0 for u in range(n + 1)]
        shift += 2 * top
    return math.log(states[0]) - shift * math.log(2)


# ---------------------------------------------------------------------- pairs of rankings


@st.composite
def one_tie(draw, n):
    """A ranking of single items and one tie, anywhere."""
    full = draw(strategies.permutations(n))
    start = draw(st.integers(0, n - 1))
    stop = draw(st.integers(start, n - 1))
    return tuple(r if r < start else start if r <= stop else r - (stop - start) for r in full)


def covered_pairs(low=1, high=5):
    def of_size(n):
        return st.one_of(
            st.tuples(strategies.top_k(n), strategies.top_k(n)),
            st.tuples(strategies.permutations(n), strategies.bucket_orders(n)),
            st.tuples(strategies.bucket_orders(n), strategies.permutations(n)),
            st.tuples(one_tie(n), one_tie(n)),
        )

    return st.integers(low, high).flatmap(of_size)


def overlap_of(r, s):
    return Overlap.of(np.array(r, dtype=np.int32), np.array(s, dtype=np.int32))


def top(order, k):
    return np.minimum(order, k).astype(np.int32)


@settings(deadline=None, max_examples=50)
@given(covered_pairs(), NUS)
def test_value_and_derivative_against_all_completions(pair, nu):
    r, s = pair
    overlap = overlap_of(r, s)
    assert FORMULA.covers(overlap.left_shape, overlap.right_shape)
    value = naive.marginal(naive.exponential(naive.footrule, nu), r, s)
    slope = naive.marginal_derivative(naive.footrule, nu, r, s) / value
    log_value, log_slope = FORMULA.log_value(overlap, nu)
    assert math.exp(log_value) == pytest.approx(value, rel=1e-12)
    assert log_slope == pytest.approx(slope, rel=1e-12, abs=1e-14)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 14).flatmap(lambda n: st.lists(one_tie(n), min_size=2, max_size=4)), NUS | st.just(SHARP))
def test_many_pairs_at_once_are_each_pair_alone(rows, nu):
    """The loop over many small pairs keeps no powers of two; the one for any pair does."""
    X = Rankings(rows)
    first, second = np.indices((len(X), len(X))).reshape(2, -1)
    found = FootruleCoding(X, X).rests(first, second, nu)
    alone = [FORMULA.log_rest(overlap_of(rows[i], rows[j]), nu) for i, j in zip(first, second, strict=True)]
    np.testing.assert_allclose(found, alone, rtol=1e-12, atol=1e-12)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.data(), st.sampled_from([0.0, 0.3, 5.0, 60.0]))
def test_blocks_of_any_positions_against_whole_number_counts(n_left_outer, n_right_outer, n_shared, data, nu):
    n = n_left_outer + n_right_outer + n_shared
    places = st.lists(st.integers(0, 90), min_size=n, max_size=n, unique=True)
    left, right = data.draw(places), data.draw(places)
    forbidden = {(i, j) for i in range(n_left_outer) for j in range(n_right_outer)}
    block = Block(
        *(
            np.array(p, dtype=np.int64)
            for p in (left[n_left_outer:], right[n_right_outer:], left[:n_left_outer], right[:n_right_outer])
        )
    )
    log_value, log_slope = log_sum(displacement_counts(left, right, forbidden), nu)
    assert sweep(block, nu) == pytest.approx((log_value, log_slope), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("nu", [0.0, 0.02, 1.0, 40.0])
def test_sweep_agrees_with_the_permanent(nu):
    rng = np.random.default_rng(0)
    for k, m in ((0, 0), (3, 5), (6, 6), (7, 2)):
        (block,) = matching_of(Overlap.of(top(rng.permutation(14), k), top(rng.permutation(14), m))).blocks
        rows, columns = np.r_[block.left_outer, block.left], np.r_[block.right_outer, block.right]
        costs = np.abs(rows[:, None] - columns[None, :]).astype(float)
        costs[: len(block.left_outer), : len(block.right_outer)] = np.inf
        assert sweep(block, nu) == pytest.approx(_loops.permanent.log_permanent(costs, nu), rel=1e-13)


@pytest.mark.parametrize("n", [40, 300])
def test_all_tied_on_both_sides_against_whole_numbers(n):
    tied = np.zeros(n, dtype=np.int32)
    log_value, _ = FORMULA.log_value(Overlap.of(tied, tied), math.log(2))
    assert log_value == pytest.approx(log_motzkin_sum(n) - math.log(math.factorial(n)), rel=1e-13)


@pytest.mark.parametrize("n", [2, 50, 1000])
def test_slope_at_zero_is_the_mean_footrule(n):
    tied = np.zeros(n, dtype=np.int32)
    log_value, slope = FORMULA.log_value(Overlap.of(tied, tied), 0.0)
    assert log_value == pytest.approx(0.0, abs=1e-11)
    assert slope == pytest.approx(-(n**2 - 1) / 3, rel=1e-12)


def test_a_tie_against_a_full_ranking_does_not_depend_on_the_way_it_is_cut():
    # Two ties that a full ranking separates are two rankings apart.
    order = np.random.default_rng(1).permutation(60).astype(np.int32)
    low, high = np.sort(order[:25]), np.sort(order[25:])
    ranks = np.r_[np.zeros(25), np.ones(35)].astype(np.int32)
    whole = FORMULA.log_value(Overlap.of(ranks, order), 0.05)
    nothing = np.empty(0, dtype=np.int64)
    apart = [
        sweep(Block(np.arange(25), low.astype(np.int64), nothing, nothing), 0.05),
        sweep(Block(np.arange(25, 60), high.astype(np.int64), nothing, nothing), 0.05),
    ]
    log_share = math.log(math.factorial(25)) + math.log(math.factorial(35))
    assert whole[0] == pytest.approx(apart[0][0] + apart[1][0] - log_share, rel=1e-13)
    assert whole[1] == pytest.approx(apart[0][1] + apart[1][1], rel=1e-13)


def test_what_is_covered():
    assert FORMULA.covers(Shape((1, 1, 98)), Shape((1, 99)))
    assert FORMULA.covers(Shape((1, 3, 1)), Shape((4, 1)))
    assert FORMULA.covers(Shape((2, 3)), Shape((1, 1, 1, 1, 1)))
    assert not FORMULA.covers(Shape((2, 3)), Shape((3, 2)))
    assert not FORMULA.covers(Shape((1, 1), free=2), Shape((1, 3)))
    assert not FORMULA.covers(Shape((1,) * 500 + (500,)), Shape((1,) * 500 + (500,)))


def test_a_chain_of_ties_is_refused():
    with pytest.raises(ExactnessError, match="chain of buckets"):
        FORMULA.log_value(overlap_of((0, 0, 1, 1, 2, 2), (0, 1, 1, 2, 2, 0)), 0.1)

"""The exponential footrule kernel against all completions, and against sums in whole numbers."""

import functools
import math

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from overlaps import log_mean, one_tie, overlap_of, top

import rankernel as rk
from rankernel.gram.exact import footrule
from rankernel.gram.exact.footrule import ExponentialFootrule, Group, matching_of, sweep_group
from rankernel.gram.exact.formulas import Overlap, Shape
from rankernel.gram.exact.spearman import log_permanent

FORMULA = ExponentialFootrule()
KERNEL = rk.Exponential("footrule", 0.1)
NUS = st.sampled_from([0.0, 1e-6, 0.1, 0.7, 3.0])
LARGE_NU = 400.0  # sums underflow in double precision, so they are computed in logarithms

# ---------------------------------------------------------------------- oracles


def displacement_counts(left, right, forbidden):
    """Return the number of matchings with each total displacement that use no forbidden pair."""

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
    """Return the logarithm of the sum of counts * exp(-nu d), and its derivative."""
    least = min(counts)
    weights = {d: c * math.exp(-nu * (d - least)) for d, c in counts.items()}
    total = math.fsum(weights.values())
    return math.log(total) - nu * least, -math.fsum(d * w for d, w in weights.items()) / total


def log_motzkin_sum(n):
    """Return the logarithm of the sum over permutations of 2^-displacement, exactly (Guay-Paquet, Petersen 2014)."""
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


def covered_pairs(low=1, high=5):
    def of_size(n):
        return st.one_of(
            st.tuples(strategies.top_k(n), strategies.top_k(n)),
            st.tuples(strategies.permutations(n), strategies.bucket_orders(n)),
            st.tuples(strategies.bucket_orders(n), strategies.permutations(n)),
            st.tuples(one_tie(n), one_tie(n)),
        )

    return st.integers(low, high).flatmap(of_size)


@settings(deadline=None, max_examples=50)
@given(covered_pairs(), NUS)
def test_value_and_derivative_match_brute_force(pair, nu):
    r, s = pair
    overlap = overlap_of(r, s)
    assert FORMULA.covers(KERNEL, overlap.left_shape, overlap.right_shape)
    value = naive.marginal(naive.exponential(naive.footrule, nu), r, s)
    derivative = naive.marginal_derivative(naive.footrule, nu, r, s) / value
    log_value, log_derivative = log_mean(FORMULA, overlap, nu)
    assert math.exp(log_value) == pytest.approx(value, rel=1e-12)
    assert log_derivative == pytest.approx(derivative, rel=1e-12, abs=1e-14)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 14).flatmap(lambda n: st.lists(one_tie(n), min_size=2, max_size=4)), NUS | st.just(LARGE_NU))
def test_many_pairs_at_once_match_single_pairs(rows, nu):
    """One tie on each side is laid out by positions for all pairs; single pairs are split into groups of buckets."""
    X = rk.Rankings(rows)
    first, second = np.indices((len(X), len(X))).reshape(2, -1)
    found = FORMULA.solve(KERNEL, nu, X, X, first, second)
    single = [FORMULA.log_mean(overlap_of(rows[i], rows[j]), nu) for i, j in zip(first, second, strict=True)]
    np.testing.assert_allclose(found, single, rtol=1e-12, atol=1e-12)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.data(), st.sampled_from([0.0, 0.3, 5.0, 60.0]))
def test_groups_of_any_positions_match_integer_counts(n_left_outer, n_right_outer, n_shared, data, nu):
    n = n_left_outer + n_right_outer + n_shared
    positions = st.lists(st.integers(0, 90), min_size=n, max_size=n, unique=True)
    left, right = data.draw(positions), data.draw(positions)
    forbidden = {(i, j) for i in range(n_left_outer) for j in range(n_right_outer)}
    group = Group(
        *(
            np.array(p, dtype=np.int64)
            for p in (left[n_left_outer:], right[n_right_outer:], left[:n_left_outer], right[:n_right_outer])
        )
    )
    log_value, log_derivative = log_sum(displacement_counts(left, right, forbidden), nu)
    found_value, found_derivative = sweep_group(group, nu)
    assert found_value == pytest.approx(log_value, rel=1e-13, abs=1e-13)
    # The derivative is a mean with weights exp(log term - log value): a rounding of these logarithms is relative there.
    rounding = 4 * np.finfo(float).eps * abs(log_value)
    assert found_derivative == pytest.approx(log_derivative, rel=1e-13 + rounding, abs=1e-13)


@pytest.mark.parametrize("nu", [0.0, 0.02, 1.0, 40.0])
def test_sweep_matches_the_permanent(nu):
    rng = np.random.default_rng(0)
    for k, m in ((0, 0), (3, 5), (6, 6), (7, 2)):
        (group,) = matching_of(Overlap.of(top(rng.permutation(14), k), top(rng.permutation(14), m))).groups
        rows, columns = np.r_[group.left_outer, group.left], np.r_[group.right_outer, group.right]
        costs = np.abs(rows[:, None] - columns[None, :]).astype(float)
        costs[: len(group.left_outer), : len(group.right_outer)] = np.inf
        assert sweep_group(group, nu) == pytest.approx(log_permanent(costs, nu), rel=1e-13)


@pytest.mark.parametrize(("n", "k", "m"), [(12, 3, 5), (60, 8, 8), (150, 4, 7)])
def test_sums_and_their_logarithms_agree(n, k, m):
    """Compiled sums in double precision, and sums of logarithms for rates at which these underflow."""
    rng = np.random.default_rng(n)
    (group,) = matching_of(Overlap.of(top(rng.permutation(n), k), top(rng.permutation(n), m))).groups
    parts = (group.left_outer, group.right_outer, group.left, group.right)
    positions, kinds = np.concatenate(parts), np.repeat(np.arange(4), [len(part) for part in parts])
    order = np.argsort(positions, kind="stable")
    for nu in (0.0, 1 / n**2, 30 / n**2, 400 / n**2):
        in_logarithms = footrule.log_permanent(positions[order], kinds[order], nu)
        assert sweep_group(group, nu) == pytest.approx(in_logarithms, rel=2e-13)


@pytest.mark.parametrize("n", [40, 300])
def test_all_items_tied_matches_integer_sum(n):
    tied = np.zeros(n, dtype=np.int32)
    log_value, _ = log_mean(FORMULA, Overlap.of(tied, tied), math.log(2))
    assert log_value == pytest.approx(log_motzkin_sum(n) - math.log(math.factorial(n)), rel=1e-13)


@pytest.mark.parametrize("n", [2, 50, 1000])
def test_derivative_at_zero_is_the_mean_footrule(n):
    tied = np.zeros(n, dtype=np.int32)
    log_value, derivative = log_mean(FORMULA, Overlap.of(tied, tied), 0.0)
    assert log_value == pytest.approx(0.0, abs=1e-11)
    assert derivative == pytest.approx(-(n**2 - 1) / 3, rel=1e-12)


def test_ties_against_a_full_ranking_are_independent():
    order = np.random.default_rng(1).permutation(60).astype(np.int32)
    low, high = np.sort(order[:25]), np.sort(order[25:])
    ranks = np.r_[np.zeros(25), np.ones(35)].astype(np.int32)
    joint = log_mean(FORMULA, Overlap.of(ranks, order), 0.05)
    nothing = np.empty(0, dtype=np.int64)
    separate = [
        sweep_group(Group(np.arange(25), low.astype(np.int64), nothing, nothing), 0.05),
        sweep_group(Group(np.arange(25, 60), high.astype(np.int64), nothing, nothing), 0.05),
    ]
    log_share = math.log(math.factorial(25)) + math.log(math.factorial(35))
    assert joint[0] == pytest.approx(separate[0][0] + separate[1][0] - log_share, rel=1e-13)
    assert joint[1] == pytest.approx(separate[0][1] + separate[1][1], rel=1e-13)


def test_covered_shapes():
    assert FORMULA.covers(KERNEL, Shape((1, 1, 98)), Shape((1, 99)))
    assert FORMULA.covers(KERNEL, Shape((1, 3, 1)), Shape((4, 1)))
    assert FORMULA.covers(KERNEL, Shape((2, 3)), Shape((1, 1, 1, 1, 1)))
    assert not FORMULA.covers(KERNEL, Shape((2, 3)), Shape((3, 2)))
    assert not FORMULA.covers(KERNEL, Shape((1, 1), free=2), Shape((1, 3)))
    assert not FORMULA.covers(KERNEL, Shape((1,) * 500 + (500,)), Shape((1,) * 500 + (500,)))

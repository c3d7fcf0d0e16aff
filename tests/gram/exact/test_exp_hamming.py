"""The exponential Hamming kernel and the law of the Hamming distance, against enumeration and many-digit sums."""

import math
from collections import defaultdict
from decimal import MAX_EMAX, Decimal, localcontext
from fractions import Fraction

import naive
import numpy as np
import pytest
import strategies
from counted import distance_counts, from_counts
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rankernel.gram.exact.exp_hamming import (
    EXP_HAMMING,
    ChainSweep,
    FullSweep,
    Staircase,
    TopKMatching,
    Unconstrained,
)
from rankernel.gram.exact.hamming_law import HammingLaw
from rankernel.gram.exact.overlap import Overlap, Shape, shape_of

NUS = [0.0, 1e-12, 1e-3, 0.3, 1.0, 4.0, 40.0, 1000.0]
LAW = HammingLaw()


# ---------------------------------------------------------------------- oracles


def from_moments(moments, n, nu):
    """The same from ``E C(agreements, j)``: the mean of x^agreements is ``sum_j moments[j] (x-1)^j``."""
    with localcontext() as context:
        context.prec = 400
        x = Decimal(nu).exp()
        t = x - 1
        moments = [Decimal(m.numerator) / Decimal(m.denominator) for m in moments]
        value = sum(m * t**j for j, m in enumerate(moments)) if nu else moments[0]
        slope = sum(m * j * t ** (j - 1) for j, m in enumerate(moments) if j) if nu else moments[1]
        return float(value.ln() - n * Decimal(nu)), float(x * slope / value - n)


def matching_moments(n_random, n_targets, n_certain):
    """``E C(agreements, j)`` when n_random places are filled at random, and so many agreements are certain."""
    inner = [
        Fraction(math.comb(n_targets, j) * math.factorial(n_random - j), math.factorial(n_random))
        for j in range(n_targets + 1)
    ]
    out = [Fraction(0)] * (n_targets + n_certain + 2)
    for j, moment in enumerate(inner):
        for i in range(n_certain + 1):
            out[j + i] += moment * math.comb(n_certain, i)
    return out


def product(a, b):
    out = [Fraction(0)] * (len(a) + len(b) - 1)
    for i, u in enumerate(a):
        for j, v in enumerate(b):
            out[i + j] += u * v
    return out


def chain_mean(left, right, n, x):
    """Mean of x^agreements for two chains with free items: a sweep over positions, in fractions."""
    f, g = n - len(left), n - len(right)
    both_free = n - len({*left, *right})
    states = {(0, 0, 0, 0, 0): Fraction(1)}
    for p in range(n):
        new = defaultdict(Fraction)
        for (s, r, gaps, j, k), v in states.items():
            left_free, right_free = p - s < f, p - r < g
            if s < len(left) and r < len(right):
                new[s + 1, r + 1, gaps, j, k] += v * (x if left[s] == right[r] else 1)
            if s < len(left) and right_free:
                new[s + 1, r, gaps, j, k] += v
                new[s + 1, r, gaps, j, k + 1] += v * (x - 1) * (left[s] not in right)
            if left_free and r < len(right):
                new[s, r + 1, gaps, j, k] += v
                new[s, r + 1, gaps, j + 1, k] += v * (x - 1) * (right[r] not in left)
            if left_free and right_free:
                new[s, r, gaps + 1, j, k] += v
        states = new
    total = Fraction(0)
    for (_, _, gaps, j, k), v in states.items():
        for i in range(min(gaps, both_free, f - j, g - k) + 1):
            free = Fraction(
                math.factorial(f - i - j) * math.factorial(g - i - k), math.factorial(f) * math.factorial(g)
            )
            total += v * (x - 1) ** i * math.comb(gaps, i) * math.perm(both_free, i) * free
    return total / (math.comb(n, len(left)) * math.comb(n, len(right)))


# ---------------------------------------------------------------------- helpers


def overlap(left, right):
    return Overlap.of(np.array(left, dtype=np.int32), np.array(right, dtype=np.int32))


def covers(formula, left, right):
    return formula.covers(shape_of(np.array(left, dtype=np.int32)), shape_of(np.array(right, dtype=np.int32)))


def check(formula, left, right, nu, expected, rel=1e-12, slack=0.0):
    """Value and slope agree to a relative 1e-12; ``slack`` is an absolute error on top."""
    for pair in (overlap(left, right), overlap(right, left)):
        log_value, slope = formula.log_value(pair, nu)
        assert log_value == pytest.approx(expected[0], rel=rel, abs=slack)
        assert slope == pytest.approx(expected[1], rel=rel, abs=slack)


# A sum over pinned agreements knows log K and its slope to a few units in the last place of 1, not of themselves.
ROUNDING = {TopKMatching: 0.0, Unconstrained: 0.0, FullSweep: 0.0, Staircase: 1e-14, ChainSweep: 1e-14}

PAIRS = strategies.sized(strategies.any_ranking, high=6, length=2)


@st.composite
def kinds(draw, left, right):
    n = draw(st.integers(1, 6))
    return draw(left(n)), draw(right(n))


def chains(n):
    return strategies.incomplete(n, ties=False)


# ---------------------------------------------------------------------- against enumeration


@pytest.mark.parametrize(
    ("formula", "left", "right"),
    [
        (Unconstrained(), lambda n: st.sampled_from([(-1,) * n, (0,) * n]), strategies.any_ranking),
        (Unconstrained(), strategies.top_k, lambda n: st.lists(st.sampled_from([0, -1]), min_size=n, max_size=n)),
        (TopKMatching(), strategies.top_k, strategies.top_k),
        (Staircase(), strategies.bucket_orders, strategies.bucket_orders),
        (Staircase(), strategies.permutations, strategies.bucket_orders),
        (FullSweep(), strategies.permutations, strategies.incomplete),
        (FullSweep(), strategies.permutations, chains),
        (ChainSweep(), strategies.permutations, chains),
        (ChainSweep(), chains, chains),
    ],
)
def test_every_formula_is_the_mean_over_all_completions(formula, left, right):
    @settings(max_examples=25, deadline=None)
    @given(kinds(left, right))
    def run(pair):
        r, s = map(tuple, pair)
        assert covers(formula, r, s)
        assert covers(formula, s, r)
        counts = distance_counts(naive.hamming, r, s)
        for nu in NUS:
            check(formula, r, s, nu, from_counts(counts, nu), slack=ROUNDING[type(formula)])

    run()


@settings(max_examples=40, deadline=None)
@given(PAIRS)
def test_all_formulas_that_cover_a_pair_agree(pair):
    assume(any(covers(formula, *pair) for formula in EXP_HAMMING))
    counts = distance_counts(naive.hamming, *pair)
    for formula in EXP_HAMMING:
        if covers(formula, *pair):
            check(formula, *pair, 0.7, from_counts(counts, 0.7), slack=1e-14)


@settings(max_examples=40, deadline=None)
@given(PAIRS)
def test_the_law_is_the_share_of_pairs_at_each_distance(pair):
    assume(covers(LAW, *pair))
    counts = distance_counts(naive.hamming, *pair)
    total = sum(counts.values())
    expected = [counts[d] / total for d in range(len(pair[0]) + 1)]
    np.testing.assert_allclose(LAW.pmf(overlap(*pair)), expected, rtol=1e-14, atol=0)
    np.testing.assert_allclose(LAW.pmf(overlap(*pair[::-1])), expected, rtol=1e-14, atol=0)


def test_what_is_covered():
    ties, free, chain, full = Shape((2, 2, 2)), Shape((2, 1), 3), Shape((1, 1), 4), Shape((1,) * 6)
    named = {
        type(formula).__name__: [
            formula.covers(a, b) for a, b in [(ties, full), (free, full), (chain, chain), (free, chain), (ties, free)]
        ]
        for formula in EXP_HAMMING
    }
    assert named["Staircase"] == [True, False, False, False, False]
    assert named["FullSweep"] == [True, True, False, False, False]
    assert named["ChainSweep"] == [False, False, True, False, False]
    assert [LAW.covers(a, b) for a, b in [(ties, full), (free, full), (chain, chain), (free, chain)]] == [
        True,
        True,
        True,
        False,
    ]
    assert Staircase().covers(Shape((1,) * 5000), Shape((200,) * 25))
    assert not Staircase().covers(Shape((2500, 2500)), Shape((200,) * 25))
    long_chain = Shape((1,) * 30, 30)
    assert not ChainSweep().covers(long_chain, long_chain)
    assert not LAW.covers(long_chain, long_chain)
    # Few states, but more paths than a double counts.
    for n, short, longest in ((60, 2, 40), (30, 5, 28), (20, 10, 17)):
        assert LAW.covers(Shape((1,) * short, n - short), Shape((1,) * longest, n - longest))
        assert not LAW.covers(Shape((1,) * short, n - short), Shape((1,) * (longest + 1), n - longest - 1))


# ---------------------------------------------------------------------- many items


def random_top_k(n, k, seed):
    return np.minimum(np.random.default_rng(seed).permutation(n), k)


def random_buckets(n, n_buckets, seed):
    raw = np.random.default_rng(seed).integers(n_buckets, size=n)
    return np.unique(raw, return_inverse=True)[1]


def random_chain(n, m, seed):
    order = np.random.default_rng(seed).permutation(n)
    return np.where(order < m, order, -1), np.argsort(order)[:m].tolist()


@pytest.mark.parametrize("nu", [0.0, 1e-12, 1e-3, 1.0, 5.0, 50.0, 1000.0])
@pytest.mark.parametrize(("n", "k", "m"), [(40, 5, 8), (40, 0, 40), (200, 10, 30)])
def test_top_k_lists_of_many_items(n, k, m, nu):
    left, right = random_top_k(n, k, 0), random_top_k(n, m, 1)
    shorter = min(k, m)
    certain = int(((left == right) & (left < shorter)).sum())
    targets = int(((left >= shorter) & (right >= shorter)).sum())
    expected = from_moments(matching_moments(n - shorter, targets, certain), n, nu)
    check(TopKMatching(), left, right, nu, expected, rel=1e-13)
    check(Staircase(), left, right, nu, expected, rel=1e-13, slack=1e-13)


@pytest.mark.parametrize("nu", [1e-12, 0.5, 8.0, 1000.0])
def test_five_thousand_items(nu):
    """Two equal top-3 lists: j given agreements among the other N have chance (N-j)!/N!, so ``E C(A,j) = 1/j!``."""
    n_random = 4997
    ranks = np.minimum(np.arange(5000), 3)
    with localcontext() as context:
        context.prec, context.Emax = 60, MAX_EMAX
        x, term, total, slope = Decimal(nu).exp(), Decimal(1), Decimal(1), Decimal(0)
        for j in range(1, n_random + 1):
            slope += term
            term *= (x - 1) / j
            total += term
        expected = float(total.ln() - n_random * Decimal(nu)), float(x * slope / total - n_random)
    # The oracle subtracts N from a number near N: of its 60 digits some are gone.
    check(TopKMatching(), ranks, ranks, nu, expected, rel=1e-13, slack=1e-50)


@pytest.mark.parametrize("nu", [1e-12, 0.1, 3.0, 30.0, 1000.0])
def test_a_full_ranking_against_buckets_of_many_items_is_a_product(nu):
    n = 120
    left, right = np.random.default_rng(0).permutation(n), random_buckets(n, 8, 1)
    moments, start = [Fraction(1)], 0
    for bucket in range(8):
        inside = right == bucket
        size = int(inside.sum())
        targets = int((inside & (left >= start) & (left < start + size)).sum())
        moments = product(moments, matching_moments(size, targets, 0))
        start += size
    check(Staircase(), left, right, nu, from_moments(moments, n, nu), rel=1e-13, slack=1e-13)


@pytest.mark.parametrize("nu", [0.0, 1e-12, 0.1, 1.0, 4.0, 40.0, 1000.0])
@pytest.mark.parametrize(("n", "a", "b"), [(15, 4, 6), (40, 3, 3), (60, 5, 12), (60, 30, 2)])
def test_the_law_of_many_items_gives_the_kernel_of_bucket_orders(n, a, b, nu):
    left, right = random_buckets(n, a, 0), random_buckets(n, b, 1)
    law = LAW.pmf(overlap(left, right))
    assert math.fsum(law) == pytest.approx(1.0, rel=1e-14)
    counts = {d: Fraction(chance) for d, chance in enumerate(law) if chance}
    with localcontext() as context:
        context.prec = 60
        as_decimals = {d: Decimal(c.numerator) / Decimal(c.denominator) for d, c in counts.items()}
        check(Staircase(), left, right, nu, from_counts(as_decimals, nu), rel=1e-13, slack=1e-13)


def test_identical_full_rankings_have_kernel_one_to_the_last_bit():
    full = np.random.default_rng(0).permutation(50)
    for formula in (TopKMatching(), Staircase()):
        for nu in NUS:
            assert formula.log_value(overlap(full, full), nu) == (0.0, 0.0)


# ---------------------------------------------------------------------- longer chains


@pytest.mark.parametrize("x", [Fraction(1), Fraction(3, 2), Fraction(20)])
@pytest.mark.parametrize(("n", "m", "r"), [(9, 4, 4), (10, 3, 6), (8, 8, 4), (9, 0, 5), (10, 7, 8)])
def test_longer_chains(n, m, r, x):
    (left, left_items), (right, right_items) = random_chain(n, m, 0), random_chain(n, r, 1)
    expected = chain_mean(left_items, right_items, n, x)
    nu = math.log(x)
    for formula in EXP_HAMMING:
        if covers(formula, left, right):
            log_value, _ = formula.log_value(overlap(left, right), nu)
            assert math.exp(log_value) * float(x) ** n == pytest.approx(float(expected), rel=1e-13)
    law = LAW.pmf(overlap(left, right))
    assert sum(p * float(x) ** (n - d) for d, p in enumerate(law)) == pytest.approx(float(expected), rel=1e-13)


@pytest.mark.parametrize("nu", [0.0, 1e-12, 0.2, 2.0, 30.0, 1000.0])
def test_two_ways_to_sweep_a_full_ranking_and_a_long_chain_agree(nu):
    (chain, _), full = random_chain(24, 12, 0), np.random.default_rng(1).permutation(24)
    check(ChainSweep(), chain, full, nu, FullSweep().log_value(overlap(chain, full), nu), slack=1e-13)


@pytest.mark.parametrize("nu", [0.0, 0.2, 2.0, 1000.0])
def test_the_law_of_longer_chains_gives_their_kernel(nu):
    (left, _), (right, _) = random_chain(24, 7, 0), random_chain(24, 9, 1)
    law = LAW.pmf(overlap(left, right))
    assert math.fsum(law) == pytest.approx(1.0, rel=1e-14)
    with localcontext() as context:
        context.prec = 60
        check(ChainSweep(), left, right, nu, from_counts({d: Decimal(p) for d, p in enumerate(law)}, nu), slack=1e-13)


@pytest.mark.parametrize(("m", "r"), [(2, 2), (3, 5), (6, 4)])
def test_chains_are_short_while_their_paths_can_be_counted_in_doubles(monkeypatch, m, r):
    """Each step against a free item may pin it or not; steps of both chains at once are of one kind."""
    paths = np.zeros((m + 1, r + 1), dtype=int)
    paths[0] = 2 ** np.arange(r + 1)
    paths[:, 0] = 2 ** np.arange(m + 1)
    for s in range(1, m + 1):
        for t in range(1, r + 1):
            paths[s, t] = 2 * paths[s - 1, t] + 2 * paths[s, t - 1] + paths[s - 1, t - 1]
    left, right = Shape((1,) * m, free=20 - m), Shape((1,) * r, free=20 - r)
    for limit, short in ((paths[m, r] + 1, True), (paths[m, r], False)):
        monkeypatch.setattr("rankernel.gram.exact.hamming_law.LARGEST_EXACT_DOUBLE", limit)
        assert HammingLaw().covers(left, right) == short

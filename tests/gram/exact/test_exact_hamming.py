"""Functions of the Hamming distance against enumeration and sums in many digits."""

import itertools
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
from overlaps import full_pmf, log_mean, overlap_of

import rankernel as rk
from rankernel.gram.exact.formulas import Shape
from rankernel.gram.exact.hamming import FORMULAS, ChainSweep, FullSweep, Staircase, TopKMatching, n_pinned_paths

NUS = [0.0, 1e-12, 1e-3, 0.3, 1.0, 4.0, 40.0, 1000.0]
EXPONENTIAL = rk.Exponential("hamming", 0.3)
OTHER = 1 + EXPONENTIAL  # a function of the distance that is not exponential


# ---------------------------------------------------------------------- oracles


def from_moments(moments, n, nu):
    """Return log K and its derivative from ``E C(agreements, j)``, in many digits."""
    with localcontext() as context:
        context.prec = 400
        x = Decimal(nu).exp()
        t = x - 1
        moments = [Decimal(m.numerator) / Decimal(m.denominator) for m in moments]
        value = sum(m * t**j for j, m in enumerate(moments)) if nu else moments[0]
        derivative = sum(m * j * t ** (j - 1) for j, m in enumerate(moments) if j) if nu else moments[1]
        return float(value.ln() - n * Decimal(nu)), float(x * derivative / value - n)


def matching_moments(n_random, n_targets, n_certain):
    """Return ``E C(agreements, j)`` if n_random positions are filled at random and n_certain agreements are certain."""
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
    """Return the mean of x^agreements for two chains with free items, in fractions."""
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


def covers(formula, left, right, kernel=EXPONENTIAL):
    overlap = overlap_of(left, right)
    return formula.covers(kernel, overlap.left_shape, overlap.right_shape)


def pmf_of(left, right):
    """Return the distribution of the distance from the first formula that covers it."""
    formula = next(formula for formula in FORMULAS if covers(formula, left, right, OTHER))
    return full_pmf(formula, overlap_of(left, right), len(left) + 1)


def check_log_mean(formula, left, right, nu, expected, rel=1e-12, slack=0.0):
    """Check value and derivative up to a relative error and an absolute one (``slack``)."""
    for pair in (overlap_of(left, right), overlap_of(right, left)):
        value, derivative = log_mean(formula, pair, nu)
        assert value == pytest.approx(expected[0], rel=rel, abs=slack)
        assert derivative == pytest.approx(expected[1], rel=rel, abs=slack)


# Sums over pinned agreements have an absolute rounding error in log K and in its derivative.
ROUNDING = {TopKMatching: 0.0, FullSweep: 0.0, Staircase: 1e-14, ChainSweep: 1e-14}

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
        (TopKMatching(), lambda n: st.sampled_from([(-1,) * n, (0,) * n]), strategies.any_ranking),
        (TopKMatching(), strategies.top_k, lambda n: st.lists(st.sampled_from([0, -1]), min_size=n, max_size=n)),
        (TopKMatching(), strategies.top_k, strategies.top_k),
        (Staircase(), strategies.bucket_orders, strategies.bucket_orders),
        (Staircase(), strategies.permutations, strategies.bucket_orders),
        (FullSweep(), strategies.permutations, strategies.incomplete),
        (FullSweep(), strategies.permutations, chains),
        (ChainSweep(), strategies.permutations, chains),
        (ChainSweep(), chains, chains),
    ],
)
def test_each_formula_matches_brute_force(formula, left, right):
    @settings(max_examples=25, deadline=None)
    @given(kinds(left, right))
    def run(pair):
        r, s = map(tuple, pair)
        assert covers(formula, r, s)
        assert covers(formula, s, r)
        counts = distance_counts(naive.hamming, r, s)
        for nu in NUS:
            check_log_mean(formula, r, s, nu, from_counts(counts, nu), slack=ROUNDING[type(formula)])

    run()


@settings(max_examples=40, deadline=None)
@given(PAIRS)
def test_all_formulas_of_a_pair_agree(pair):
    assume(any(covers(formula, *pair) for formula in FORMULAS))
    counts = distance_counts(naive.hamming, *pair)
    for formula in FORMULAS:
        if covers(formula, *pair):
            check_log_mean(formula, *pair, 0.7, from_counts(counts, 0.7), slack=1e-14)


@settings(max_examples=40, deadline=None)
@given(PAIRS)
def test_distributions_match_brute_force(pair):
    known = [formula for formula in FORMULAS if covers(formula, *pair, OTHER)]
    assume(known)
    counts = distance_counts(naive.hamming, *pair)
    total = sum(counts.values())
    expected = [counts[d] / total for d in range(len(pair[0]) + 1)]
    for formula in known:
        for overlap in (overlap_of(*pair), overlap_of(*pair[::-1])):
            np.testing.assert_allclose(full_pmf(formula, overlap, len(expected)), expected, rtol=1e-14, atol=0)


def test_all_top_k_lists_in_one_matrix():
    """Pairs whose lists have different lengths are told apart."""
    orders = [list(order) for k in (1, 2, 3) for order in itertools.permutations("abcd", k)]
    rankings = rk.Rankings.from_orders(orders, list("abcd"))
    rows = [tuple(row) for row in rankings.ranks.tolist()]
    expected = naive.gram(naive.exponential(naive.hamming, 0.4), rows, rows)
    np.testing.assert_allclose(rk.Exponential("hamming", 0.4).gram(rankings), expected, rtol=1e-12)


def test_covered_shapes():
    ties, free, chain, full = Shape((2, 2, 2)), Shape((2, 1), 3), Shape((1, 1), 4), Shape((1,) * 6)
    named = {
        type(formula).__name__: [
            formula.covers(EXPONENTIAL, a, b)
            for a, b in [(ties, full), (free, full), (chain, chain), (free, chain), (ties, free)]
        ]
        for formula in FORMULAS
    }
    assert named["Staircase"] == [True, False, False, False, False]
    assert named["FullSweep"] == [True, True, False, False, False]
    assert named["ChainSweep"] == [False, False, True, False, False]
    known = [
        any(formula.covers(OTHER, a, b) for formula in FORMULAS)
        for a, b in [(ties, full), (free, full), (chain, chain), (free, chain)]
    ]
    assert known == [True, True, True, False]
    assert Staircase().covers(EXPONENTIAL, Shape((1,) * 5000), Shape((200,) * 25))
    assert not Staircase().covers(EXPONENTIAL, Shape((2500, 2500)), Shape((200,) * 25))
    long_chain = Shape((1,) * 30, 30)
    for kernel in (EXPONENTIAL, OTHER):
        assert not ChainSweep().covers(kernel, long_chain, long_chain)
    # Few states, but more paths than a double counts exactly.
    for n, short, longest in ((60, 2, 40), (30, 5, 28), (20, 10, 17)):
        assert ChainSweep().covers(OTHER, Shape((1,) * short, n - short), Shape((1,) * longest, n - longest))
        assert not ChainSweep().covers(
            OTHER, Shape((1,) * short, n - short), Shape((1,) * (longest + 1), n - longest - 1)
        )


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
    check_log_mean(TopKMatching(), left, right, nu, expected, rel=1e-13)
    check_log_mean(Staircase(), left, right, nu, expected, rel=1e-13, slack=1e-13)


@pytest.mark.parametrize("nu", [1e-12, 0.5, 8.0, 1000.0])
def test_five_thousand_items(nu):
    """Two equal top-3 lists: j given agreements among other N have probability (N-j)!/N!, so ``E C(A,j) = 1/j!``."""
    n_random = 4997
    ranks = np.minimum(np.arange(5000), 3)
    with localcontext() as context:
        context.prec, context.Emax = 60, MAX_EMAX
        x, term, total, d_total = Decimal(nu).exp(), Decimal(1), Decimal(1), Decimal(0)
        for j in range(1, n_random + 1):
            d_total += term
            term *= (x - 1) / j
            total += term
        expected = float(total.ln() - n_random * Decimal(nu)), float(x * d_total / total - n_random)
    # The oracle loses some of its 60 digits by cancellation.
    check_log_mean(TopKMatching(), ranks, ranks, nu, expected, rel=1e-13, slack=1e-50)


@pytest.mark.parametrize("nu", [1e-12, 0.1, 3.0, 30.0, 1000.0])
def test_full_ranking_against_buckets_is_a_product(nu):
    n = 120
    left, right = np.random.default_rng(0).permutation(n), random_buckets(n, 8, 1)
    moments, start = [Fraction(1)], 0
    for bucket in range(8):
        inside = right == bucket
        size = int(inside.sum())
        targets = int((inside & (left >= start) & (left < start + size)).sum())
        moments = product(moments, matching_moments(size, targets, 0))
        start += size
    check_log_mean(Staircase(), left, right, nu, from_moments(moments, n, nu), rel=1e-13, slack=1e-13)


@pytest.mark.parametrize("nu", [0.0, 1e-12, 0.1, 1.0, 4.0, 40.0, 1000.0])
@pytest.mark.parametrize(("n", "a", "b"), [(15, 4, 6), (40, 3, 3), (60, 5, 12), (60, 30, 2)])
def test_distribution_of_bucket_orders_matches_the_kernel(n, a, b, nu):
    left, right = random_buckets(n, a, 0), random_buckets(n, b, 1)
    pmf = pmf_of(left, right)
    assert math.fsum(pmf) == pytest.approx(1.0, rel=1e-14)
    counts = {d: Fraction(chance) for d, chance in enumerate(pmf) if chance}
    with localcontext() as context:
        context.prec = 60
        as_decimals = {d: Decimal(c.numerator) / Decimal(c.denominator) for d, c in counts.items()}
        check_log_mean(Staircase(), left, right, nu, from_counts(as_decimals, nu), rel=1e-13, slack=1e-13)


def test_identical_full_rankings_have_kernel_exactly_one():
    full = np.random.default_rng(0).permutation(50)
    for formula in (TopKMatching(), Staircase()):
        for nu in NUS:
            assert log_mean(formula, overlap_of(full, full), nu) == (0.0, 0.0)


# ---------------------------------------------------------------------- longer chains


@pytest.mark.parametrize("x", [Fraction(1), Fraction(3, 2), Fraction(20)])
@pytest.mark.parametrize(("n", "m", "r"), [(9, 4, 4), (10, 3, 6), (8, 8, 4), (9, 0, 5), (10, 7, 8)])
def test_longer_chains(n, m, r, x):
    (left, left_items), (right, right_items) = random_chain(n, m, 0), random_chain(n, r, 1)
    expected = chain_mean(left_items, right_items, n, x)
    nu = math.log(x)
    for formula in FORMULAS:
        if covers(formula, left, right):
            log_value, _ = log_mean(formula, overlap_of(left, right), nu)
            assert math.exp(log_value) * float(x) ** n == pytest.approx(float(expected), rel=1e-13)
    pmf = pmf_of(left, right)
    assert sum(p * float(x) ** (n - d) for d, p in enumerate(pmf)) == pytest.approx(float(expected), rel=1e-13)


@pytest.mark.parametrize("nu", [0.0, 1e-12, 0.2, 2.0, 30.0, 1000.0])
def test_two_sweeps_of_a_full_ranking_and_a_long_chain_agree(nu):
    (chain, _), full = random_chain(24, 12, 0), np.random.default_rng(1).permutation(24)
    check_log_mean(ChainSweep(), chain, full, nu, log_mean(FullSweep(), overlap_of(chain, full), nu), slack=1e-13)


@pytest.mark.parametrize("nu", [0.0, 0.2, 2.0, 1000.0])
def test_distribution_of_longer_chains_matches_the_kernel(nu):
    (left, _), (right, _) = random_chain(24, 7, 0), random_chain(24, 9, 1)
    pmf = pmf_of(left, right)
    assert math.fsum(pmf) == pytest.approx(1.0, rel=1e-14)
    with localcontext() as context:
        context.prec = 60
        check_log_mean(
            ChainSweep(), left, right, nu, from_counts({d: Decimal(p) for d, p in enumerate(pmf)}, nu), slack=1e-13
        )


@pytest.mark.parametrize(("m", "r"), [(2, 2), (3, 5), (6, 4)])
def test_number_of_pinned_paths(m, r):
    """Each step against a free item may pin it or not; steps of both chains at once are of one kind."""
    paths = np.zeros((m + 1, r + 1), dtype=int)
    paths[0] = 2 ** np.arange(r + 1)
    paths[:, 0] = 2 ** np.arange(m + 1)
    for s in range(1, m + 1):
        for t in range(1, r + 1):
            paths[s, t] = 2 * paths[s - 1, t] + 2 * paths[s, t - 1] + paths[s - 1, t - 1]
    left, right = Shape((1,) * m, free=20 - m), Shape((1,) * r, free=20 - r)
    assert n_pinned_paths(left, right) == paths[m, r]

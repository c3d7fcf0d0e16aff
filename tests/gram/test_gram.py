"""Exact Gram matrices of partial rankings: every kernel, every kind of ranking, against brute force."""

import itertools
import math
import random
from collections import Counter
from fractions import Fraction
from functools import cache

import all_kernels
import naive
import numpy as np
import pytest
import real_data
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

import rankernel as rk
from rankernel import ExactnessError, RankingError, Rankings

EVERY = pytest.mark.parametrize("number", range(len(all_kernels.NAMES)), ids=all_kernels.NAMES)
FEW = 10


def bucket_sizes(row):
    return [row.count(bucket) for bucket in range(max(row) + 1)]


KINDS = {
    "full": lambda row: -1 not in row and max(bucket_sizes(row)) == 1,
    "top-k": lambda row: -1 not in row and max(bucket_sizes(row)[:-1], default=1) == 1,
    "ties": lambda row: -1 not in row,
    "chain and free": lambda row: max(bucket_sizes(row), default=1) == 1,
    "any": lambda row: True,
}


@cache
def pairs_of_kinds():
    """Rows of one kind, some of them among the columns, which are of all kinds; of one or two items, all there are."""
    chosen = random.Random(0)
    found = []
    for n, kind in [(1, "any"), (2, "full"), (2, "any"), (3, "full"), (3, "any"), *((4, kind) for kind in KINDS)]:
        every = naive.every_ranking(n)
        rows = [row for row in every if KINDS[kind](row)]
        rows = chosen.sample(rows, min(len(rows), FEW))
        found.append((rows, rows[-2:] + chosen.sample(every, min(len(every), FEW))))
    return found


# ---------------------------------------------------------------------- against brute force


@EVERY
def test_gram_matches_brute_force(number):
    kernels = {n: all_kernels.on(n)[number] for n in range(1, 5)}
    oracles = {n: cache(oracle) for n, (_, oracle) in kernels.items()}
    for rows, columns in pairs_of_kinds():
        n = len(rows[0])
        value = kernels[n][0].gram(np.array(rows), np.array(columns), method="exact")
        expected = naive.gram(oracles[n], rows, columns)
        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=2e-15)


@pytest.mark.parametrize(
    ("kernel", "oracle"),
    [
        (rk.Mallows(0.3), naive.mallows(0.3)),
        (rk.Kendall(), naive.kendall_kernel),
        (rk.Exponential("hamming", 0.4), naive.exponential(naive.hamming, 0.4)),
        (rk.Exponential("footrule", 0.1), naive.exponential(naive.footrule, 0.1)),
        (rk.Polynomial(4), naive.polynomial(4)),
    ],
    ids=["Mallows", "Kendall", "exp. Hamming", "exp. footrule", "polynomial"],
)
@settings(max_examples=8)
@given(rows=st.integers(5, 7).flatmap(lambda n: st.tuples(strategies.any_ranking(n), strategies.permutations(n))))
def test_equals_brute_force_up_to_seven_items(kernel, oracle, rows):
    partial, full = rows
    values = [oracle(x, full) for x in naive.completions(partial)]
    value = kernel.gram([partial], [full], method="exact")[0, 0]
    assert value == pytest.approx(math.fsum(values) / len(values), rel=1e-12, abs=1e-15)


@EVERY
def test_gradients_match_enumeration(number):
    """Closed-form derivatives against the mean of the derivatives of the kernel over all completions."""
    kernels = {n: all_kernels.on(n)[number][0] for n in range(1, 5)}
    for X, Y in pairs_of_kinds():
        kernel = kernels[len(X[0])]
        gradient = kernel.estimate(X, Y, method="exact", gradient=True).gradient
        assert set(gradient) == set(kernel.params)
        by_enumeration = kernel.estimate(X, Y, method="enumeration", gradient=True).gradient if kernel.params else {}
        for name in kernel.params:
            np.testing.assert_allclose(gradient[name], by_enumeration[name], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("distance", ["kendall", "hamming", "cayley", "footrule", "spearman"])
def test_gradients_match_brute_force(distance):
    nu, between = math.log(2), cache(getattr(naive, distance))
    for rows, columns in pairs_of_kinds():
        estimate = rk.Exponential(distance, nu).estimate(rows, columns, method="exact", gradient=True)
        expected = [[naive.marginal_derivative(between, nu, r, s) for s in columns] for r in rows]
        np.testing.assert_allclose(estimate.gradient["nu"], expected, rtol=1e-11, atol=1e-14)


@EVERY
def test_closed_forms_match_enumeration(number):
    kernel, _ = all_kernels.on(5)[number]
    rows = Rankings.from_ranks([[0, 1, 2, 2, 2], [3, 1, 0, 2, 3], [0, 1, 2, 3, 4]])
    exact = kernel.estimate(rows, method="exact")
    enumerated = kernel.estimate(rows, method="enumeration")
    np.testing.assert_allclose(exact.value, enumerated.value, rtol=1e-12, atol=1e-14)
    assert enumerated.details == "enumeration of all completions"
    assert exact.method == rk.Exact()
    assert not exact.stderr.any()


def test_products_are_not_products_of_means():
    """The mean of a product is not the product of the means: (mean k)^2 = 0.028, but the mean of k^2 is 0.204."""
    first, second = [[0, 1, 1, 1]], [[1, 0, 1, 1]]
    mean = rk.Kendall().gram(first, second)[0, 0]
    assert mean**2 == pytest.approx(0.028, abs=5e-4)
    assert (rk.Kendall() ** 2).gram(first, second)[0, 0] == pytest.approx(0.204, abs=5e-4)
    assert (rk.Kendall() * rk.Kendall()).gram(first, second)[0, 0] == pytest.approx(0.204, abs=5e-4)


# ---------------------------------------------------------------------- shapes of the matrix


@EVERY
def test_blocks_symmetry_and_repeated_rows(number):
    kernel, _ = all_kernels.on(4)[number]
    rows = [(0, 1, 2, 2), (3, 1, 0, 2), (0, 1, 2, 2), (0, 0, 1, 1), (1, 0, 1, 1), (0, 1, 2, 3)]
    whole = kernel.gram(rows)
    assert (whole == whole.T).all()
    assert (whole[0] == whole[2]).all()
    np.testing.assert_allclose(kernel.gram(rows[:2], rows[3:]), whole[:2, 3:], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(kernel.plan(rows).diagonal(), np.diag(whole), rtol=1e-13, atol=1e-15)
    # As a callable each row decides for itself whether it has a closed form or is enumerated: rounding may differ.
    np.testing.assert_allclose(kernel(rows, rows[:2]), kernel.gram(rows, rows[:2]), rtol=1e-15)


def test_bits_do_not_depend_on_threads():
    ballots = rk.datasets.truncate(rk.datasets.uniform(1200, 7, rng=1), {2: 0.5, 5: 0.5}, rng=2)
    for kernel in (rk.Mallows(0.1), rk.Kendall(), rk.Exponential("hamming", 0.2)):
        one = kernel.gram(ballots, n_jobs=1)
        assert (kernel.gram(ballots, n_jobs=2) == one).all()
        assert (one == one.T).all()


def test_out_and_dtype():
    rows = [(0, 1, 2, 2), (3, 1, 0, 2), (0, 0, 1, 1)]
    kernel = rk.Mallows(0.3)
    expected = kernel.gram(rows)
    out = np.zeros((3, 3), dtype=np.float32)
    assert kernel.gram(rows, out=out) is out
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    assert kernel.gram(rows, dtype=np.float32).dtype == np.float32
    repeated = np.zeros((2, 2))
    assert kernel.gram([rows[0], rows[0]], out=repeated) is repeated
    np.testing.assert_allclose(repeated, expected[0, 0])
    with pytest.raises(ValueError, match="out"):
        kernel.gram(rows[:2], out=out)


def test_normalize_is_the_cosine():
    rows = [(0, 1, 2, 2), (3, 1, 0, 2), (0, 0, 1, 1), (0, 1, 2, 2)]
    kernel = rk.Mallows(0.3)
    K = kernel.gram(rows)
    expected = K / np.sqrt(np.outer(np.diag(K), np.diag(K)))
    np.testing.assert_allclose(kernel.gram(rows, normalize=True), expected, rtol=1e-14)
    np.testing.assert_allclose(kernel.gram(rows[:3], rows, normalize=True), expected[:3], rtol=1e-14)
    np.testing.assert_allclose(kernel.estimate(rows, normalize=True).value, expected, rtol=1e-14)
    assert K[0, 0] < 1  # the default is the convolution kernel of the paper


def test_different_items_are_refused():
    a, b = Rankings([[0, 1]], items=["x", "y"]), Rankings([[0, 1]], items=["y", "x"])
    with pytest.raises(RankingError, match="with_items"):
        rk.Kendall().gram(a, b)
    with pytest.raises(RankingError, match="Y"):
        rk.Kendall().gram([[0, 1]], [[0, 1, 2]])


def test_uninformative_rankings_are_equal():
    """No listed item, one listed item, or one bucket and free items: all leave every order open."""
    nothing = np.array([[-1, -1, -1], [0, -1, -1], [0, 0, -1], [0, 0, 0]])
    for kernel in (rk.Mallows(0.4), rk.Exponential("hamming", 0.3), rk.Kendall(), rk.Diffusion(0.2)):
        K = kernel.gram(nothing)
        np.testing.assert_allclose(K, K[0, 0], rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize("rows", [[[0]], [[-1]]])
def test_one_item(rows):
    for number in range(len(all_kernels.NAMES)):
        kernel, oracle = all_kernels.on(1)[number]
        assert kernel.gram(rows)[0, 0] == pytest.approx(oracle((0,), (0,)))


# ---------------------------------------------------------------------- choosing


def test_auto_prefers_exact_values():
    top = rk.datasets.uniform(5, 10, rng=0).top(3)
    free = rk.datasets.uniform(5, 10, rng=0).top(3, unlisted="free")
    assert rk.Mallows(0.1).plan(top).details.startswith("closed form")
    plan = rk.Exponential("lp(1.5)", 0.1).plan(top.top(0)[:1], top[:1])
    assert plan.method == rk.MonteCarlo(coupling="antithetic", control_variates=0)
    assert "no closed form" in plan.reason
    small = rk.datasets.uniform(5, 5, rng=0).top(3)
    assert rk.Exponential("lp(1.5)", 0.1).plan(small).details == "enumeration of all completions"
    method = rk.Exponential("cayley", math.log(2)).plan(free).method
    assert isinstance(method, rk.MonteCarlo)
    assert method.coupling == "iid"


def test_exact_is_refused_where_there_is_none():
    free = rk.datasets.uniform(5, 12, rng=0).top(3, unlisted="free")
    with pytest.raises(ExactnessError, match="MonteCarlo"):
        rk.Exponential("cayley", math.log(2)).gram(free, method="exact")
    with pytest.raises(ExactnessError, match="limit"):
        rk.Kendall().gram(free, method=rk.Exact(limit=1000, closed_form=False))
    with pytest.raises(ValueError, match="method"):
        rk.Kendall().gram(free, method="guess")
    with pytest.raises(TypeError, match="method"):
        rk.Kendall().gram(free, method=3)


def test_limit_of_enumeration():
    rows = Rankings.from_ranks([[0, 1, 1, 1, 1], [1, 0, 1, 1, 1]])
    kernel = rk.Mallows(0.3) * rk.Hamming()
    assert rk.Exact(48 * 48, closed_form=False).limit == 48 * 48
    kernel.gram(rows, method=rk.Exact(limit=48 * 48))
    with pytest.raises(ExactnessError):
        kernel.gram(rows, method=rk.Exact(limit=48 * 48 - 1))


@pytest.mark.filterwarnings("ignore::rankernel.SamplingWarning")
def test_new_rows_are_exact_where_possible():
    full = rk.datasets.uniform(8, 12, rng=3)
    new = rk.concat([full[:3].top(4), full[3:].top(4, unlisted="free")])
    kernel = rk.Exponential("cayley", math.log(2))
    plan = kernel.plan(full[:2].top(4))
    estimate = plan.against(new).estimate(gradient=True)
    exact = kernel.estimate(new[:3], full[:2].top(4), method="exact", gradient=True)
    np.testing.assert_array_equal(estimate.value[:3], exact.value)
    np.testing.assert_array_equal(estimate.gradient["nu"][:3], exact.gradient["nu"])
    assert not estimate.stderr[:3].any()
    assert (estimate.stderr[3:] > 0).all()
    assert isinstance(estimate.method, rk.MonteCarlo)
    assert "Monte Carlo" in estimate.details
    assert "closed form" in estimate.details


# ---------------------------------------------------------------------- several parameters


@pytest.mark.parametrize("distance", ["kendall", "hamming", "cayley", "footrule", "spearman"])
def test_one_plan_serves_several_decay_rates(distance):
    rows = rk.datasets.uniform(12, 6, rng=0).top(3)
    plan = rk.Exponential(distance, math.log(2)).plan(rows)
    for nu in (0.0, math.log(2), math.log(3)):
        kernel = rk.Exponential(distance, nu)
        np.testing.assert_allclose(plan._with_kernel(kernel).gram(), kernel.gram(rows), rtol=1e-13)


# ---------------------------------------------------------------------- numerically sound


def exact_mallows_of_ties(n, q):
    """E q^d of two rankings that say nothing, in exact fractions: prod [i]_q / i."""
    value = Fraction(1)
    for i in range(1, n + 1):
        value *= sum(q**j for j in range(i)) / Fraction(i)
    return value


@pytest.mark.parametrize("n", [2, 20, 30, 60])
@pytest.mark.parametrize("q", [Fraction(1, 1000), Fraction(1, 2), Fraction(99, 100), 1 - Fraction(1, 10**12)])
def test_mallows_keeps_full_precision(n, q):
    nu = -math.log1p(-float(1 - q))
    tied = [[0] * n]
    expected = exact_mallows_of_ties(n, Fraction(math.exp(-nu)) if q < Fraction(98, 100) else q)
    log_value = rk.Mallows(nu).log_gram(tied)[0, 0]
    log_expected = math.log1p(float(expected - 1)) if expected > 0.5 else math.log(expected)
    assert log_value == pytest.approx(log_expected, rel=1e-12)
    assert rk.Mallows(nu).gram(tied)[0, 0] == pytest.approx(float(expected), rel=1e-12)


def test_small_decay_rates():
    """K = 1 - nu E d + O(nu^2): the difference from 1 is right, not lost."""
    rows = rk.datasets.uniform(5, 9, rng=1).top(4)
    mean = (1 - rk.Kendall().gram(rows)) * 36 / 2
    nu = 1e-9
    np.testing.assert_allclose(-np.expm1(rk.Mallows(nu).log_gram(rows)) / nu, mean, rtol=1e-7)
    assert (rk.Mallows(0.0).gram(rows) == 1).all()


@pytest.mark.parametrize("n", [1, 2, 24, 25, 200, 2000])  # of the last, no table holds all distances
@pytest.mark.parametrize("nu", [1e-12, 1e-3, 1.0, 1e3])
def test_nothing_overflows(n, nu):
    full = np.arange(n)
    kinds = [full, full[::-1], np.minimum(full, n // 3), full % 2 if n > 1 else full, np.zeros(n, dtype=int)]
    rows = Rankings(np.array(kinds))
    for distance in ("kendall", "hamming"):
        kernel = rk.Exponential(distance, nu)
        if distance == "hamming" and n > 200:
            rows = rows[:3]  # beyond, the staircase of two large ties is too long
        logs, values = kernel.log_gram(rows), kernel.gram(rows)
        assert np.isfinite(logs).all()
        assert (logs <= 1e-12).all()
        np.testing.assert_allclose(values, np.exp(logs), rtol=1e-11)
        estimate = kernel.estimate(rows, method="exact", gradient=True)
        assert np.isfinite(estimate.gradient["nu"]).all()
        assert (estimate.gradient["nu"] <= 1e-12).all()


def test_items_ranked_last_by_all_change_nothing():
    """Bits up to 24 items, then shared buckets or inversions: items that all put last change nothing."""
    rng = np.random.default_rng(5)
    rows = np.array([rng.integers(0, 6, 10), rng.permutation(10), np.minimum(rng.permutation(10), 4)])
    padded = np.hstack([rows, np.tile(np.arange(100, 130), (3, 1))])
    np.testing.assert_allclose(rk.Mallows(0.2).gram(padded), rk.Mallows(0.2).gram(rows), rtol=1e-12)
    kendall, pairs, more = rk.Kendall(), 45, 40 * 39 // 2
    np.testing.assert_allclose(kendall.gram(padded) * more, kendall.gram(rows) * pairs + (more - pairs), rtol=1e-12)


def mallows_of_many_items(x, y, nu):
    """E exp(-nu d) by its factors, pair of items by pair of items and bucket by bucket: nothing of the package."""

    def factor(sizes):
        return math.fsum(
            math.log(math.fsum(math.exp(-nu * k) for k in range(i)) / i) for m in sizes for i in range(2, m + 1)
        )

    discordant = sum((x[a] - x[b]) * (y[a] - y[b]) < 0 for a, b in itertools.combinations(range(len(x)), 2))
    alone = factor([*Counter(x).values(), *Counter(y).values()])
    return math.exp(alone - factor(Counter(zip(x, y, strict=True)).values()) - nu * discordant)


@pytest.mark.parametrize("n", [25, 70, 257])
def test_many_items_match_the_definition(n):
    full = rk.datasets.uniform(8, n, rng=n).ranks
    parts = [full[:2], full[2:4] // 2, full[4:6] // (n // 4), np.minimum(full[6:], n // 2), np.minimum(full[:3], 4)]
    rows = np.concatenate(parts)
    wanted = [[mallows_of_many_items(x, y, 0.3 / n) for y in rows.tolist()] for x in rows.tolist()]
    np.testing.assert_allclose(rk.Mallows(0.3 / n).gram(rows), wanted, rtol=1e-11)


def test_log_gram():
    rows = rk.datasets.uniform(4, 6, rng=0).top(3)
    for distance in ("hamming", "cayley", "footrule", "spearman"):
        kernel = rk.Exponential(distance, math.log(3))
        np.testing.assert_allclose(np.exp(kernel.log_gram(rows)), kernel.gram(rows), rtol=1e-12)
    full = rk.datasets.uniform(4, 6, rng=0)
    assert rk.Exponential("footrule", 1e3).log_gram(full)[0, 1] == -1e3 * rk.distances.footrule(full)[0, 1]
    both = 2 * rk.Mallows(0.1) + 3
    np.testing.assert_allclose(both.log_gram(rows), np.log(both.gram(rows)), rtol=1e-12)
    lp = rk.Exponential("lp(1.5)", 0.3)
    np.testing.assert_allclose(np.exp(lp.log_gram(rows[:2])), lp.gram(rows[:2], method="exact"), rtol=1e-12)
    assert np.isfinite(lp.replace(nu=1e4).log_gram(rows[:2])).all()
    with pytest.raises(ExactnessError, match="can be negative"):
        rk.Kendall().log_gram(rows)


def test_inaccurate_formulas_are_not_used():
    """Spearman's series at a large width with many tied items: auto estimates, exact says so."""
    rows = Rankings.from_orders([[0, 1], [2, 1]], items=range(40))
    kernel = rk.Exponential("spearman", 0.01)
    with pytest.raises(ExactnessError, match="series"):
        kernel.gram(rows, method="exact")
    with pytest.warns(rk.SamplingWarning):
        assert isinstance(kernel.estimate(rows).method, rk.MonteCarlo)
    assert np.isfinite(kernel.gram(rows)).all()


# ---------------------------------------------------------------------- real data


@real_data.needs_data
@pytest.mark.parametrize(("unlisted", "total"), [("last", 8878.666667), ("free", 910.826667), (None, 14318.933333)])
def test_kendall_agrees_with_kernrank_on_sushi(unlisted, total):
    """Sum of all 90,000 entries for the first 300 users, as R's kernrank gives it."""
    rankings = real_data.sushi()[:300]
    rows = rankings if unlisted is None else rankings.top(4, unlisted=unlisted)
    assert rk.Kendall().gram(rows).sum() == pytest.approx(total, abs=5e-7)


@real_data.needs_data
@pytest.mark.parametrize(
    "load",
    [
        lambda: rk.read_preflib(real_data.preflib("00001-00000001.soi"))[::80],
        lambda: rk.read_preflib(real_data.preflib("00005-00000001.toi"))[::2],
        lambda: real_data.sushi("b")[:90],
        lambda: real_data.sushi("b", unlisted="last")[:260],
    ],
    ids=["Dublin North", "Burlington", "sushi b, free", "sushi b, last"],
)
def test_positive_semi_definite_on_real_data(load):
    rows = load()
    for kernel in (rk.Mallows("median"), rk.Kendall(), rk.Exponential("hamming", "median")):
        method = "auto" if rows.is_exhaustive() or kernel == rk.Kendall() else rk.MonteCarlo(8)
        K = kernel.gram(rows, method=method)
        with threadpool_limits(1, "blas"):  # threads would mostly wait for each other
            assert np.linalg.eigvalsh(K).min() > -1e-12 * len(rows)

import itertools
import math
from functools import cache

import all_kernels
import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import any_ranking

import rankernel as rk
from rankernel.completions import LogDensity
from rankernel.completions.draws import Antithetic, draw
from rankernel.errors import ExactnessError, RankingError
from rankernel.gram.rows import PartialOrders

# ---------------------------------------------------------------------- oracles


def reachable(pairs, start):
    """What a walk along the pairs can reach from an item, after at least one step."""
    found, front = set(), {start}
    while front:
        front = {b for a, b in pairs if a in front} - found
        found |= front
    return found


def extensions(n, pairs):
    """The full rankings that agree with the majorities of pairs: a walk from x to y, and none back, puts x before y."""
    pairs = [(x, y) for x, y in pairs if pairs.count((x, y)) > pairs.count((y, x))]
    reach = [reachable(pairs, x) for x in range(n)]
    before = [(x, y) for x in range(n) for y in reach[x] if x not in reach[y]]
    return [full for full in itertools.permutations(range(n)) if all(full[x] < full[y] for x, y in before)]


def mean(function, left, right):
    return math.fsum(function(x, y) for x in left for y in right) / (len(left) * len(right))


def gram(function, rows, columns):
    """The means over all pairs of completions, each row given as the list of its completions."""
    function = cache(function)  # many of them complete several rows
    return [[mean(function, left, right) for right in columns] for left in rows]


def weighted_mean(function, left, right, weight):
    total = math.fsum(weight(x) * weight(y) for x in left for y in right)
    return math.fsum(weight(x) * weight(y) * function(x, y) for x in left for y in right) / total


# ---------------------------------------------------------------------- data

# Two chains, "N", a fence, a chain beside an item of which only the end is known; then a ranking with free items, a
# cycle (contracted: 0, 1 and 3 above 2) and nothing at all.
USERS = [
    [(0, 1), (2, 3)],
    [(0, 1), (2, 3), (2, 1)],
    [(1, 0), (1, 2), (3, 2)],
    [(3, 2), (2, 0), (1, 0)],
    [(1, 3), (1, 2)],
    [(0, 1), (1, 3), (3, 0), (1, 2)],
    [],
]
ROWS = [(0, 1, 2, 3), (1, 0, -1, 0), (1, 1, 0, 1), (0, -1, -1, -1)]


def preferences(users, n, **options):
    return rk.Preferences.from_pairs(users, items=range(n), **options)


def large_order(n=14, seed=1):
    """Pairs of a random partial order with many linear extensions."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(n).tolist()
    return [(names[a], names[b]) for a, b in itertools.combinations(range(n), 2) if rng.random() < 0.12]


def wide_order(n=34, seed=5):
    """Pairs between the first and the second half of the items: at least 2^17 down-sets, too many to enumerate."""
    rng = np.random.default_rng(seed)
    return [(a, b) for a in range(n // 2) for b in range(n // 2, n) if rng.random() < 0.2]


@st.composite
def users_and_rows(draw, n=5):
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] != p[1])
    users = draw(st.lists(st.lists(pair, min_size=2, max_size=6), min_size=1, max_size=3))
    rows = draw(st.lists(any_ranking(n), min_size=1, max_size=2))
    return users, rows


# ---------------------------------------------------------------------- exact values

KERNELS = [pair for pair in all_kernels.on(4) if not isinstance(pair[0], rk.Diffusion)]


@pytest.mark.parametrize(("kernel", "oracle"), KERNELS, ids=[str(kernel) for kernel, _ in KERNELS])
def test_every_kernel_against_all_linear_extensions(kernel, oracle):
    prefs, rankings = preferences(USERS, 4), rk.Rankings(ROWS)
    users, rows = [extensions(4, pairs) for pairs in USERS], [naive.completions(row) for row in ROWS]
    oracle = cache(oracle)
    for X, Y, left, right in [
        (prefs, None, users, users),
        (prefs, rankings, users, rows),
        (rankings, prefs, rows, users),
    ]:
        expected = gram(oracle, left, right)
        found = kernel.estimate(X, Y, method="exact")
        np.testing.assert_allclose(found.value, expected, rtol=1e-12, atol=1e-14)
        assert not found.stderr.any()
        np.testing.assert_allclose(kernel.gram(X, Y), expected, rtol=1e-12, atol=1e-14)


@settings(max_examples=15, deadline=None)
@given(users_and_rows())
def test_random_users_against_all_linear_extensions(data):
    users, rows = data
    prefs, rankings = preferences(users, 5), rk.Rankings(np.array(rows), items=range(5))
    left, right = [extensions(5, pairs) for pairs in users], [naive.completions(row) for row in rows]
    for kernel, oracle in [
        (rk.Kendall(), naive.kendall_kernel),
        (rk.Hamming(), naive.hamming_kernel),
        (rk.Spearman() + 1, lambda x, y: all_kernels.spearman_rho(x, y) + 1),
        (rk.DistanceInduced("footrule", range(5)), naive.distance_induced(naive.footrule, range(5))),
    ]:
        np.testing.assert_allclose(
            kernel.gram(prefs, rankings, method="exact"), gram(oracle, left, right), rtol=1e-12, atol=1e-13
        )
        np.testing.assert_allclose(kernel.gram(prefs), gram(oracle, left, left), rtol=1e-12, atol=1e-13)


def test_details():
    prefs = preferences(USERS, 4)
    assert rk.Kendall().estimate(prefs).details == "closed form"
    assert rk.Mallows(0.3).estimate(prefs).details == "enumeration of all linear extensions"
    assert rk.Kendall().estimate(prefs, method="enumeration").details == "enumeration of all linear extensions"
    estimated = rk.Mallows(0.3).estimate(prefs, method=rk.MonteCarlo(16))
    assert estimated.method == rk.MonteCarlo(16, coupling="antithetic", control_variates=1)


def test_preferences_of_rankings_equal_rankings():
    rankings = rk.Rankings(ROWS, items=range(4))
    prefs = rk.Preferences.from_rankings(rankings)
    for method in ("auto", rk.MonteCarlo(6, rng=3)):
        assert np.array_equal(rk.Mallows(0.4).gram(prefs, method=method), rk.Mallows(0.4).gram(rankings, method=method))
        np.testing.assert_allclose(
            rk.Mallows(0.4).gram(prefs, rankings, method=method),
            rk.Mallows(0.4).gram(rankings, method=method),
            rtol=1e-13,
        )


def test_large_orders_have_exact_kendall_values():
    n = 11
    prefs = preferences([large_order(n), [(0, 1), (2, 3), (2, 1)]], n)
    pair = [pair_probabilities(before) for before in prefs.before]
    upper = np.triu_indices(n, 1)
    signs = np.array([2 * p[upper] - 1 for p in pair])
    np.testing.assert_allclose(rk.Kendall().gram(prefs, method="exact"), signs @ signs.T / math.comb(n, 2), rtol=1e-12)


def pair_probabilities(before):
    """P(x before y), from the number of linear extensions with the pair added: sums over down-sets in pure Python."""
    n = len(before)
    predecessors = [sum(1 << a for a in range(n) if before[a, x]) for x in range(n)]

    def number(needed):
        ways = {0: 1}
        for _ in range(n):
            following = {}
            for done, count in ways.items():
                for x in range(n):
                    if not done >> x & 1 and needed[x] & ~done == 0:
                        following[done | 1 << x] = following.get(done | 1 << x, 0) + count
            ways = following
        return ways[(1 << n) - 1]

    total = number(predecessors)
    out = np.zeros((n, n))
    for x, y in itertools.combinations(range(n), 2):
        if before[x, y] or before[y, x]:
            out[x, y] = before[x, y]
        else:
            # Only direct predecessors matter for the order in which items may be taken.
            out[x, y] = number([p | (1 << x if item == y else 0) for item, p in enumerate(predecessors)]) / total
        out[y, x] = 1 - out[x, y]
    return out


# ---------------------------------------------------------------------- what goes with a Gram matrix


def test_equal_users_have_equal_values():
    users = [USERS[0], USERS[1], USERS[0], USERS[4], USERS[1]]
    value = rk.Kendall().gram(preferences(users, 4, counts=[1, 5, 2, 1, 1]))
    assert np.array_equal(value, rk.Kendall().gram(preferences(users, 4)))
    assert np.array_equal(value[[0, 1]], value[[2, 4]])


def test_gradients_diagonals_and_logarithms():
    prefs = preferences(USERS, 4)
    users = [extensions(4, pairs) for pairs in USERS]
    kernel = rk.Mallows(0.3)
    expected = np.array(gram(naive.mallows(0.3), users, users))
    slope = gram(lambda x, y: -naive.kendall(x, y) * naive.mallows(0.3)(x, y), users, users)
    np.testing.assert_allclose(kernel.estimate(prefs, gradient=True).gradient["nu"], slope, rtol=1e-12)
    np.testing.assert_allclose(kernel.paired(prefs, prefs[::-1]), np.diag(expected[:, ::-1]), rtol=1e-12)
    np.testing.assert_allclose(kernel.plan(prefs).diagonal(), expected.diagonal(), rtol=1e-12)
    np.testing.assert_allclose(kernel.log_gram(prefs), np.log(expected), rtol=1e-12)
    norms = np.sqrt(expected.diagonal())
    np.testing.assert_allclose(kernel.gram(prefs, normalize=True), expected / np.outer(norms, norms), rtol=1e-12)


@pytest.mark.parametrize("name", ["kendall", "hamming", "spearman", "footrule"])
def test_median_heuristic_uses_mean_distances(name):
    users, counts = [USERS[0], USERS[1], USERS[0], USERS[4]], [1, 2, 1, 3]
    rows = [extensions(4, pairs) for pairs, count in zip(users, counts, strict=True) for _ in range(count)]
    d = [mean(getattr(naive, name), x, y) for x, y in itertools.permutations(rows, 2)]
    kernel = rk.Exponential(name).resolve(preferences(users, 4, counts=counts))
    assert kernel.nu == pytest.approx(1 / float(np.median(d)), rel=1e-12)


def test_median_heuristic_from_draws():
    """Cayley's distance has no mean features: the mean distance comes from draws."""
    users = [extensions(4, pairs) for pairs in USERS[:2]]
    exact = mean(naive.cayley, *users)
    deviation = math.sqrt(mean(lambda x, y: naive.cayley(x, y) ** 2, *users) - exact**2)
    found = rk.median_distance(preferences(USERS[:2], 4), rk.distances.cayley)
    assert abs(found - exact) < 5 * deviation / math.sqrt(16)


def test_median_heuristic_of_wide_orders():
    n = 34
    prefs = preferences([wide_order(n), wide_order(n, 6)], n)
    pairs = n * (n - 1) / 2
    assert 0.2 * pairs < rk.median_distance(prefs, rk.distances.kendall) < 0.6 * pairs


# ---------------------------------------------------------------------- draws


def test_draws_do_not_depend_on_other_rows():
    """A row that is a ranking has the draws of the ranking."""
    prefs = preferences(USERS, 4)
    orders = PartialOrders.from_preferences(prefs)
    drawn = orders.draw(5, rk.Uniform(), 7)[0]
    assert np.array_equal(orders[::-1].draw(5, rk.Uniform(), 7)[0], drawn[::-1])
    assert np.array_equal(orders[2:3].draw(5, rk.Uniform(), 7)[0], drawn[2:3])
    assert not np.array_equal(orders.draw(5, rk.Uniform(), 8)[0], drawn)
    ranked, is_ranking = prefs[prefs.is_ranking()].to_rankings(), prefs.is_ranking()
    assert np.array_equal(drawn[is_ranking], draw(ranked, 5, coupling="iid", rng=7).ranks)
    coupled = orders.draw(5, rk.Uniform(), 7, Antithetic())[0]
    assert np.array_equal(coupled[is_ranking], draw(ranked, 5, coupling="antithetic", rng=7).ranks)
    assert np.array_equal(coupled[~is_ranking], drawn[~is_ranking])
    for row, pairs in zip(drawn, USERS, strict=True):
        assert set(map(tuple, row.tolist())) <= set(extensions(4, pairs))


def test_rankings_have_the_same_estimates_beside_partial_orders():
    """A new row that is no ranking lowers the control variates of all rows, but draws belong to the row."""
    prefs = preferences(USERS, 4)
    method = rk.MonteCarlo(6, coupling="antithetic", control_variates=2)
    ranked = prefs[prefs.is_ranking()]
    assert rk.Mallows(0.3).plan(ranked, method=method).method.control_variates == 2
    beside = rk.Mallows(0.3).plan(prefs, method=method)
    assert beside.method == rk.MonteCarlo(6, coupling="antithetic", control_variates=1)
    fewer = rk.MonteCarlo(6, coupling="antithetic", control_variates=1)
    index = np.flatnonzero(prefs.is_ranking())
    np.testing.assert_array_equal(beside.block(index, index), rk.Mallows(0.3).gram(ranked, method=fewer))


@pytest.mark.parametrize("degree", [0, 1])
def test_blocks_computed_apart_agree(degree):
    n = 14
    users = [large_order(n, seed) for seed in range(4)] + [[(0, 1), (0, 2)], [(3, 4), (5, 6)]]
    prefs = preferences(users, n)
    rankings = rk.Rankings([np.arange(n) // 5, np.arange(n)[::-1]])
    method, kernel = rk.MonteCarlo(12, coupling="iid", control_variates=degree, rng=2), rk.Mallows(0.05)
    whole = kernel.gram(prefs, method=method)
    np.testing.assert_allclose(kernel.gram(prefs[:3], prefs[3:], method=method), whole[:3, 3:], rtol=1e-13)
    np.testing.assert_allclose(kernel.gram(prefs[[5, 0]], method=method), whole[np.ix_([5, 0], [5, 0])], rtol=1e-13)
    beside = kernel.gram(prefs, rankings, method=method)
    np.testing.assert_allclose(kernel.gram(rankings, prefs, method=method), beside.T, rtol=1e-13)
    together = np.block([[whole, beside], [beside.T, kernel.gram(rankings, method=method)]])
    assert np.linalg.eigvalsh(together).min() > -1e-13


@pytest.mark.filterwarnings("ignore::rankernel.SamplingWarning")
def test_standard_errors_match_the_spread_of_runs():
    prefs, rankings, kernel = preferences(USERS[:4], 4), rk.Rankings(ROWS[:3]), rk.Exponential("footrule", 0.3)
    exact = kernel.gram(prefs, rankings, method="exact")
    for degree in (0, 1):
        runs = [
            kernel.estimate(prefs, rankings, method=rk.MonteCarlo(16, control_variates=degree, rng=seed))
            for seed in range(50)
        ]
        values, stated = np.array([run.value for run in runs]), np.array([run.stderr for run in runs])
        spread = values.std(axis=0, ddof=1)
        assert (abs(values.mean(axis=0) - exact) < 5 * spread / math.sqrt(50)).all()
        ratio = np.sqrt((stated**2).mean(axis=0)) / spread
        assert (ratio > 0.75).all()
        assert (ratio < 1.6).all()


def test_control_variates_reduce_the_standard_error():
    prefs, kernel = preferences([large_order(14, seed) for seed in range(3)], 14), rk.Mallows(0.02)
    errors = [kernel.estimate(prefs, method=rk.MonteCarlo(64, control_variates=m)).stderr[0, 1:] for m in (0, 1)]
    assert (errors[1] < 0.7 * errors[0]).all()


def test_tolerance_sets_the_number_of_draws():
    prefs = preferences([large_order(14, seed) for seed in range(2)], 14)
    estimated = rk.Mallows(0.05).estimate(prefs, tol=0.01)
    assert estimated.stderr.max() <= 0.01
    assert isinstance(estimated.method, rk.MonteCarlo)


def test_unbiased_diagonal():
    kernel, all_of = rk.Mallows(0.3), extensions(4, USERS[0])
    prefs = preferences(USERS[:1], 4)
    runs = [
        kernel.gram(prefs, method=rk.MonteCarlo(8, control_variates=0, rng=s, diagonal="unbiased")) for s in range(80)
    ]
    error = np.std(runs, ddof=1) / math.sqrt(80)
    assert abs(np.mean(runs) - mean(naive.mallows(0.3), all_of, all_of)) < 5 * error


def test_equal_users_share_their_draws():
    prefs = preferences([USERS[0], USERS[0], USERS[4], USERS[4]], 4)
    together = rk.Mallows(0.3).gram(prefs, method=rk.MonteCarlo(8, control_variates=0))
    assert together[0, 1] == together[0, 0]
    assert together[2, 3] == together[2, 2]


def test_wide_orders_are_estimated():
    n = 34
    found = rk.Kendall().estimate(preferences([wide_order(n)], n), preferences([wide_order(n, 6)], n))
    assert found.method == rk.MonteCarlo(coupling=rk.Kendall().facts(n).coupling, control_variates=0)
    again = rk.Kendall().estimate(
        preferences([wide_order(n)], n), preferences([wide_order(n, 6)], n), method=rk.MonteCarlo(64, rng=1)
    )
    assert abs(found.value - again.value).item() < 5 * math.hypot(found.stderr.item(), again.stderr.item())


# ---------------------------------------------------------------------- other distributions of the completions


def test_mallows_completions():
    users, center, theta = USERS[:4], (2, 0, 3, 1), 0.7
    rows = [extensions(4, pairs) for pairs in users]

    def weight(x):
        return math.exp(-theta * naive.kendall(x, center))

    expected = [[weighted_mean(naive.kendall_kernel, x, y, weight) for y in rows] for x in rows]
    model = rk.MallowsModel(center, theta)
    density = LogDensity(lambda ranks: -theta * np.array([naive.kendall(r, center) for r in ranks.tolist()]))
    off = ~np.eye(4, dtype=bool)
    found = rk.Kendall().estimate(preferences(users, 4), method=rk.MonteCarlo(400, completions=model))
    assert (abs(found.value - expected) < 5 * found.stderr)[off].all()
    weighted = rk.Kendall().gram(preferences(users, 4), method=rk.MonteCarlo(400, completions=density))
    assert (abs(weighted - expected) < 10 * found.stderr)[off].all()


# ---------------------------------------------------------------------- refusals


def test_exact_is_refused_where_there_is_none():
    prefs = preferences([large_order()], 14)
    with pytest.raises(ExactnessError, match="14 items"):
        rk.Mallows(0.1).gram(prefs, method="exact")
    with pytest.raises(ExactnessError, match="limit"):
        rk.Mallows(0.1).gram(prefs, method="enumeration")


def test_models_for_rankings_only():
    prefs = preferences(USERS, 4)
    with pytest.raises(RankingError, match="partial order"):
        rk.Mallows(0.1).gram(prefs, method=rk.MonteCarlo(4, completions=rk.PlackettLuce([1, 2, 3, 4])))


def test_different_items_are_refused_with_advice():
    prefs = preferences(USERS, 4)
    other = rk.Preferences.from_pairs(USERS[:1], items=[3, 2, 1, 0])
    with pytest.raises(RankingError, match="with_items"):
        rk.Kendall().gram(prefs, other)
    with pytest.raises(RankingError, match=r"X.with_items\(Y.items\)"):
        rk.Kendall().gram(rk.Rankings(ROWS, items=[3, 2, 1, 0]), prefs)
    with pytest.raises(RankingError, match="items"):
        rk.Kendall().gram(prefs, preferences([[(0, 1), (2, 3)]], 5))

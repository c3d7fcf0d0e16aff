import itertools
import math

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from rankernel import _loops
from rankernel.completions import linear_extensions, partial_orders
from rankernel.completions import linear_extensions as le
from rankernel.completions.linear_extensions import draw_by_coupling_from_the_past
from rankernel.completions.partial_orders import Antichain, DownSets, Parallel, Prime, Series, decompose
from rankernel.errors import ExactnessError, RankingError
from rankernel.models.mallows import MallowsExtensions, log_q_factorial, mean_inversions

# ---------------------------------------------------------------------- oracles


def closed(n, pairs):
    """The transitive closure of pairs, by adding what follows until nothing does."""
    known = set(pairs)
    while True:
        more = {(a, d) for a, b in known for c, d in known if b == c} - known
        if not more:
            return known
        known |= more


def extensions(n, pairs):
    return [full for full in itertools.permutations(range(n)) if all(full[a] < full[b] for a, b in pairs)]


def matrix(n, pairs):
    before = np.zeros((n, n), dtype=bool)
    for a, b in closed(n, pairs):
        before[a, b] = True
    return before


def random_poset(n, density, seed):
    """Pairs of a random partial order whose items are not numbered along it."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(n).tolist()
    return [(names[a], names[b]) for a, b in itertools.combinations(range(n), 2) if rng.random() < density]


@st.composite
def posets(draw, low=1, high=6):
    n = draw(st.integers(low, high))
    names = draw(st.permutations(range(n)))
    pairs = [(names[a], names[b]) for a, b in itertools.combinations(range(n), 2)]
    return n, [pair for pair in pairs if draw(st.integers(0, 2)) == 0]


def pvalue_uniform(draws, expected):
    """The p-value of draws against the uniform law on the expected rank tuples; all draws must be among them."""
    index = {full: number for number, full in enumerate(expected)}
    seen = np.bincount([index[tuple(row)] for row in draws.tolist()], minlength=len(expected))
    return chisquare(seen).pvalue if len(expected) > 1 else 1.0


ENN = (4, [(0, 1), (2, 3), (2, 1)])
CROWN = (6, [(0, 4), (0, 5), (1, 3), (1, 5), (2, 3), (2, 4)])
FENCE = (6, [(1, 0), (1, 2), (3, 2), (3, 4), (5, 4)])
HARD = [ENN, CROWN, FENCE, (6, [*FENCE[1], (5, 0)]), (5, [(0, 1), (1, 2), (3, 4), (3, 2)])]


# ---------------------------------------------------------------------- counting, enumerating, marginals


@settings(max_examples=60, deadline=None)
@given(posets())
def test_count_and_list_against_all_permutations(poset):
    n, pairs = poset
    expected = extensions(n, pairs)
    assert le.count_extensions(matrix(n, pairs)) == len(expected) == naive.n_linear_extensions(n, pairs)
    listed = le.enumerate_extensions(matrix(n, pairs))
    assert listed.dtype == np.int16
    assert sorted(map(tuple, listed.tolist())) == expected


def test_listed_orders_are_lexicographic():
    orders = np.argsort(le.enumerate_extensions(matrix(*CROWN)), axis=1).tolist()
    assert orders == sorted(orders)


@settings(max_examples=60, deadline=None)
@given(posets())
def test_marginals_against_all_permutations(poset):
    n, pairs = poset
    expected = extensions(n, pairs)
    pair = [[sum(e[x] < e[y] for e in expected) / len(expected) for y in range(n)] for x in range(n)]
    position = [[sum(e[x] == p for e in expected) / len(expected) for p in range(n)] for x in range(n)]
    found_position, found_pair = le.extension_marginals(matrix(n, pairs))
    np.testing.assert_allclose(found_pair, pair, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found_position, position, rtol=1e-12, atol=1e-15)


def grid(rows, columns):
    """Cells of a grid, each before those right of it and below it."""
    cells = list(itertools.product(range(rows), range(columns)))
    return np.array([[a != b and a[0] <= b[0] and a[1] <= b[1] for b in cells] for a in cells])


@pytest.mark.parametrize(("rows", "columns"), [(2, 40), (3, 25), (5, 5)])
def test_count_of_a_grid_is_the_hook_length_formula(rows, columns):
    hooks = [rows - r + columns - c - 1 for r in range(rows) for c in range(columns)]
    assert le.count_extensions(grid(rows, columns)) == math.factorial(rows * columns) // math.prod(hooks)


def test_marginals_beyond_64_items():
    before = grid(2, 40)
    position, pair = le.extension_marginals(before)
    np.testing.assert_allclose(position.sum(axis=0), 1, rtol=1e-11)
    np.testing.assert_allclose(position.sum(axis=1), 1, rtol=1e-11)
    np.testing.assert_allclose(pair + pair.T, 1 - np.eye(80), rtol=1e-11)
    np.testing.assert_allclose(pair[before], 1, rtol=1e-11)
    # The mean position of an item is the mean number of items before it.
    np.testing.assert_allclose(position @ np.arange(80), pair.sum(axis=0), rtol=1e-11)
    # Second of the first row before first of the second: the ballot paths that start with two steps up.
    catalan = [math.comb(2 * k, k) // (k + 1) for k in (39, 40)]
    assert pair[1, 40] == pytest.approx(1 - catalan[0] / catalan[1], rel=1e-11)


def test_free_items_cost_nothing():
    before = np.zeros((60, 60), dtype=bool)
    before[0, 1] = True
    assert le.count_extensions(before) == math.factorial(60) // 2
    pair = le.extension_marginals(before)[1]
    assert pair[0, 2] == pytest.approx(2 / 3, rel=1e-12)
    assert pair[1, 2] == pytest.approx(1 / 3, rel=1e-12)
    assert pair[3, 2] == 0.5


# ---------------------------------------------------------------------- the lattice of down-sets


def path_probability(lattice, given_step, ranks):
    """With which probability a walk on the lattice takes the order of a full ranking."""
    state, probability = 0, 1.0
    for x in sorted(range(len(ranks)), key=ranks.__getitem__):
        steps = range(lattice.start[state], lattice.start[state + 1])
        (step,) = (e for e in steps if lattice.item[e] == x)
        probability *= given_step[step]
        state = lattice.target[step]
    return probability


@settings(max_examples=40, deadline=None)
@given(posets(), st.floats(0, 4), st.randoms(use_true_random=False))
def test_every_path_has_its_probability(poset, theta, random):
    n, pairs = poset
    center = random.sample(range(n), n)
    expected = extensions(n, pairs)
    weights = [math.exp(-theta * naive.kendall(full, center)) for full in expected]
    lattice = DownSets.of(matrix(n, pairs))
    assert lattice.n_paths() == len(expected)
    costs = lattice.costs(np.array(center))
    assert lattice.log_weights(costs, theta)[0] == pytest.approx(math.log(math.fsum(weights)), rel=1e-12, abs=1e-12)
    weighted, uniform = lattice.step_probabilities(costs, theta), lattice.step_probabilities()
    for full, weight in zip(expected, weights, strict=True):
        assert path_probability(lattice, weighted, full) == pytest.approx(weight / math.fsum(weights), rel=1e-12)
        assert path_probability(lattice, uniform, full) == pytest.approx(1 / len(expected), rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(posets())
def test_down_sets_are_all_there_and_the_limit_is_sharp(poset):
    n, pairs = poset
    partial_orders = sum(
        all(a in subset for a, b in pairs if b in subset)
        for size in range(n + 1)
        for subset in itertools.combinations(range(n), size)
    )
    before = matrix(n, pairs)
    assert len(DownSets.of(before).sets) == partial_orders
    assert len(DownSets.of(before, limit=partial_orders).sets) == partial_orders
    assert DownSets.of(before, limit=partial_orders - 1) is None


def test_lattice_grows_to_its_full_size():
    assert len(DownSets.of(np.zeros((14, 14), dtype=bool)).sets) == 2**14
    assert DownSets.of(np.zeros((14, 14), dtype=bool)).n_paths() == math.factorial(14)


# ---------------------------------------------------------------------- coupling from the past


def along(poset):
    """The matrix of a poset renumbered along one of its linear extensions."""
    before = matrix(*poset)
    order = np.argsort(before.sum(axis=0), kind="stable")
    return before[np.ix_(order, order)]


def followed(before, seed, n_steps, ranks):
    order = np.argsort(ranks)
    _loops.extension_walks.run_block(before, np.uint64(seed), n_steps, order, True)
    return order.tolist()


@pytest.mark.parametrize("poset", HARD)
def test_the_bound_holds_for_every_linear_extension(poset):
    """At any time an item of the bound stands no later in any linear extension; the full bound is all of them."""
    before = along(poset)
    n = len(before)
    starts = le.enumerate_extensions(before)
    met = 0
    for seed in range(6):
        for n_steps in (0, 1, 2, 5, 10, 20, 40, 80, 160):
            bound = np.empty(n, dtype=np.int64)
            done = _loops.extension_walks.run_block(before, np.uint64(seed), n_steps, bound, False)
            met += done
            assert done == (bound >= 0).all()
            for start in starts:
                order = followed(before, seed, n_steps, start)
                assert all(order.index(x) <= place for place, x in enumerate(bound.tolist()) if x >= 0)
                if done:
                    assert order == bound.tolist()
    assert met > 0


def test_a_followed_linear_extension_walks_by_fair_coins():
    """Three steps of the walk, from one start, against the powers of its transition matrix."""
    before = along(ENN)
    states = le.enumerate_extensions(before).tolist()
    step = np.zeros((len(states), len(states)))
    for a, ranks in enumerate(states):
        for place in range(3):
            swapped = [{place: place + 1, place + 1: place}.get(r, r) for r in ranks]
            step[a, states.index(swapped) if swapped in states else a] += 1 / 6
            step[a, a] += 1 / 6
    expected = np.linalg.matrix_power(step, 3)[0]
    seen = np.zeros(len(states))
    for seed in range(20_000):
        # Seeds that follow each other are fine: every word of a stream is mixed anew.
        order = followed(before, seed * 1_000_003, 3, np.array(states[0]))
        seen[states.index(np.argsort(order).tolist())] += 1
    reached = expected > 0
    assert seen[~reached].sum() == 0
    assert chisquare(seen[reached], 20_000 * expected[reached]).pvalue > 1e-3


@pytest.mark.parametrize("number", range(12))
def test_coupled_draws_are_uniform(number):
    poset = HARD[number] if number < len(HARD) else (5, random_poset(5, 0.3, number))
    draws = draw_by_coupling_from_the_past(matrix(*poset), 12_000, np.random.default_rng(number))
    assert pvalue_uniform(draws, extensions(*poset)) > 1e-3


def test_coupling_with_tiny_first_blocks_is_uniform():
    """Many blocks of the past, led through one after another: the bias of stopping early would show here."""
    before = along(CROWN)
    seeds = np.random.default_rng(5).integers(0, 2**64, size=10_000, dtype=np.uint64)
    draws = _loops.extension_walks.coupled_draws(before, seeds, 4)
    expected = [tuple(row) for row in le.enumerate_extensions(before).tolist()]
    assert pvalue_uniform(draws, expected) > 1e-3


def test_coupling_agrees_with_the_lattice_at_24_items():
    before = matrix(24, random_poset(24, 0.12, 3))
    exact = le.extension_marginals(before)[1]
    n_draws = 400
    for method in ("coupling", "down-sets"):
        draws = le.draw_extensions(before, n_draws, rng=8, method=method)
        first = (draws[:, :, None] < draws[:, None, :]).mean(axis=0)
        error = np.sqrt(exact * (1 - exact) / n_draws)
        assert (np.abs(first - exact) <= 5 * error + 1e-12).all()


# ---------------------------------------------------------------------- draws, whatever the parts


@pytest.mark.parametrize("method", ["auto", "down-sets", "coupling"])
@pytest.mark.parametrize(
    "poset",
    [
        ENN,
        (5, []),
        (5, [(4, 0), (4, 1), (0, 2), (1, 2)]),
        (5, [(3, 1), (0, 2)]),
        (6, [*ENN[1], (5, 4)]),
        (6, [*ENN[1], *((x, y) for x in range(4) for y in (4, 5))]),
    ],
)
def test_draws_are_uniform(poset, method):
    draws = le.draw_extensions(matrix(*poset), 6_000, rng=11, method=method)
    assert draws.dtype == np.int16
    assert pvalue_uniform(draws, extensions(*poset)) > 1e-3


def test_auto_draws_by_coupling_where_the_lattice_is_large(monkeypatch):
    before = matrix(*CROWN)
    small = le.draw_extensions(before, 5, rng=2)
    monkeypatch.setattr(linear_extensions, "FEW_DOWN_SETS", 3)
    large = le.draw_extensions(before, 5, rng=2)
    assert np.array_equal(large, le.draw_extensions(before, 5, rng=2, method="coupling"))
    assert not np.array_equal(small, large)


def test_draws_depend_on_the_seed_alone():
    before = matrix(*FENCE)
    assert np.array_equal(
        le.draw_extensions(before, 9, rng=1), le.draw_extensions(before, 9, rng=np.random.default_rng(1))
    )
    assert not np.array_equal(le.draw_extensions(before, 9, rng=1), le.draw_extensions(before, 9, rng=2))


def test_large_draws_are_linear_extensions():
    before = matrix(75, random_poset(75, 0.3, 1))
    draws = le.draw_extensions(before, 2, rng=0)
    x, y = np.nonzero(before)
    assert (draws[:, x] < draws[:, y]).all()
    assert (np.sort(draws, axis=1) == np.arange(75)).all()


def test_parts():
    part = decompose(matrix(6, [*ENN[1], (5, 4)]))
    assert isinstance(part, Parallel)
    assert [type(inner) for inner in part.parts] == [Prime, Series]
    assert isinstance(decompose(matrix(3, [(0, 1), (1, 2)])), Series)
    assert isinstance(decompose(matrix(3, [])), Antichain)


# ---------------------------------------------------------------------- Mallows weights


@settings(max_examples=60, deadline=None)
@given(posets(), st.one_of(st.just(0.0), st.floats(1e-6, 5)), st.randoms(use_true_random=False))
def test_mallows_sums_against_all_permutations(poset, theta, random):
    n, pairs = poset
    center = random.sample(range(n), n)
    distances = [naive.kendall(full, center) for full in extensions(n, pairs)]
    weights = [math.exp(-theta * d) for d in distances]
    model = MallowsExtensions(matrix(n, pairs), center)
    total = math.fsum(weights)
    mean = math.fsum(w * d for w, d in zip(weights, distances, strict=True)) / total
    assert model.log_sum(theta) == pytest.approx(math.log(total), rel=1e-12, abs=1e-12)
    assert model.mean_distance(theta) == pytest.approx(mean, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("theta", [0.0, 1e-9, 0.001, 0.04999, 0.05, 1.0, 40.0])
def test_mean_inversions_against_the_convolution(theta):
    n = 30
    numbers = [1]
    for size in range(1, n + 1):
        numbers = [sum(numbers[max(0, k - size + 1) : k + 1]) for k in range(len(numbers) + size - 1)]
    weights = [number * math.exp(-theta * k) for k, number in enumerate(numbers)]
    mean = math.fsum(k * w for k, w in enumerate(weights)) / math.fsum(weights)
    assert mean_inversions(n, theta) == pytest.approx(mean, rel=1e-12)
    assert log_q_factorial(n, theta) == pytest.approx(math.log(math.fsum(weights)), rel=1e-12)


@pytest.mark.parametrize(
    "poset", [CROWN, (5, [(3, 1), (0, 2)]), (5, [(4, 0), (4, 1), (0, 2), (1, 2), (0, 3), (1, 3)]), (4, [])]
)
@pytest.mark.parametrize("theta", [0.0, 0.4])
def test_mallows_draws_follow_their_weights(poset, theta):
    n, pairs = poset
    center = np.random.default_rng(n).permutation(n).tolist()
    expected = extensions(n, pairs)
    weights = np.array([math.exp(-theta * naive.kendall(full, center)) for full in expected])
    draws = MallowsExtensions(matrix(n, pairs), center).draw(theta, 20_000, np.random.default_rng(3))
    index = {full: number for number, full in enumerate(expected)}
    seen = np.bincount([index[tuple(row)] for row in draws.tolist()], minlength=len(expected))
    assert chisquare(seen, 20_000 * weights / weights.sum()).pvalue > 1e-3


def test_large_theta_draws_the_nearest_linear_extension():
    """Weights as small as exp(-300 * 100): sums are kept as logarithms."""
    before = matrix(12, [(x, x + 2) for x in range(10)])
    center = np.arange(12)[::-1]
    model = MallowsExtensions(before, center)
    nearest = min(naive.kendall(full, center.tolist()) for full in le.enumerate_extensions(before).tolist())
    assert model.mean_distance(300.0) == pytest.approx(nearest, rel=1e-12)
    assert model.log_sum(300.0) == pytest.approx(-300.0 * nearest, rel=1e-12)
    draws = model.draw(300.0, 5, np.random.default_rng(0))
    assert [naive.kendall(row, center.tolist()) for row in draws.tolist()] == [nearest] * 5


# ---------------------------------------------------------------------- refusals


def test_what_is_not_a_partial_order_is_refused():
    with pytest.raises(RankingError, match="square"):
        le.count_extensions(np.zeros((2, 3)))
    with pytest.raises(RankingError, match="each before the other"):
        le.count_extensions([[0, 1], [1, 0]])
    with pytest.raises(RankingError, match="each before the other"):
        le.count_extensions([[1]])
    with pytest.raises(RankingError, match=r"item 0 .* item 2"):
        le.count_extensions([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    with pytest.raises(RankingError, match="permutation"):
        MallowsExtensions([[0, 1], [0, 0]], [1, 2])
    with pytest.raises(ValueError, match="method='fast'"):
        le.draw_extensions([[0]], 1, method="fast")


def test_what_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(partial_orders, "MAX_DOWN_SETS", 10)
    before = matrix(*CROWN)
    for exact in (
        le.count_extensions,
        le.extension_marginals,
        lambda b: le.draw_extensions(b, 1, rng=0, method="down-sets"),
    ):
        with pytest.raises(ExactnessError, match="more than 10 down-sets"):
            exact(before)
    assert le.draw_extensions(before, 2, rng=0, method="coupling").shape == (2, 6)
    with pytest.raises(ExactnessError, match="Mallows"):
        MallowsExtensions(before, range(6), limit=10)


def test_too_many_to_list_is_refused():
    with pytest.raises(ExactnessError, match="24 linear extensions, more than the limit of 23"):
        le.enumerate_extensions(np.zeros((4, 4), dtype=bool), limit=23)

"""Linear extensions against enumeration of all permutations."""

import itertools
import math

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from strategies import closed_relation as matrix
from strategies import linear_extensions as extensions
from strategies import posets

from rankernel.completions import linear_extensions as le
from rankernel.completions.linear_extensions import (
    DownSets,
    decompose,
    draw_by_coupling_from_the_past,
    log_weights,
    step_probabilities,
)
from rankernel.errors import ExactnessError, RankingError

COUPLING, DOWN_SETS = 0, le.MAX_DOWN_SETS  # the limits with which draws are made in one way


# ---------------------------------------------------------------------- oracles


def random_poset(n, density, seed):
    """Pairs of a random partial order with permuted items."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(n).tolist()
    return [(names[a], names[b]) for a, b in itertools.combinations(range(n), 2) if rng.random() < density]


def pvalue_uniform(draws, expected):
    """The p-value of draws against the uniform distribution on the expected rank tuples, which contain all draws."""
    index = {full: number for number, full in enumerate(expected)}
    seen = np.bincount([index[tuple(row)] for row in draws.tolist()], minlength=len(expected))
    return chisquare(seen).pvalue if len(expected) > 1 else 1.0


N_ORDER = (4, [(0, 1), (2, 3), (2, 1)])
CROWN = (6, [(0, 4), (0, 5), (1, 3), (1, 5), (2, 3), (2, 4)])
FENCE = (6, [(1, 0), (1, 2), (3, 2), (3, 4), (5, 4)])
HARD = [N_ORDER, CROWN, FENCE, (6, [*FENCE[1], (5, 0)]), (5, [(0, 1), (1, 2), (3, 4), (3, 2)])]


# ---------------------------------------------------------------------- counting, enumeration, marginals


@settings(max_examples=60, deadline=None)
@given(posets())
def test_counting_and_enumeration(poset):
    n, pairs = poset
    expected = extensions(n, pairs)
    assert le.count_extensions(matrix(n, pairs)) == len(expected) == naive.n_linear_extensions(n, pairs)
    listed = le.enumerate_extensions(matrix(n, pairs))
    assert listed.dtype == np.int16
    assert sorted(map(tuple, listed.tolist())) == expected


def test_enumeration_is_lexicographic():
    orders = np.argsort(le.enumerate_extensions(matrix(*CROWN)), axis=1).tolist()
    assert orders == sorted(orders)


@settings(max_examples=60, deadline=None)
@given(posets())
def test_marginals(poset):
    n, pairs = poset
    expected = extensions(n, pairs)
    pair = [[sum(e[x] < e[y] for e in expected) / len(expected) for y in range(n)] for x in range(n)]
    position = [[sum(e[x] == p for e in expected) / len(expected) for p in range(n)] for x in range(n)]
    found_position, found_pair = le.extension_marginals(matrix(n, pairs))
    np.testing.assert_allclose(found_pair, pair, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found_position, position, rtol=1e-12, atol=1e-15)


def grid(rows, columns):
    """Cells of a grid, each before those to the right and below."""
    cells = list(itertools.product(range(rows), range(columns)))
    return np.array([[a != b and a[0] <= b[0] and a[1] <= b[1] for b in cells] for a in cells])


@pytest.mark.parametrize(("rows", "columns"), [(2, 40), (3, 25), (5, 5)])
def test_hook_length_formula(rows, columns):
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
    # Ballot paths that start with two steps up: cell (0, 1) before cell (1, 0).
    catalan = [math.comb(2 * k, k) // (k + 1) for k in (39, 40)]
    assert pair[1, 40] == pytest.approx(1 - catalan[0] / catalan[1], rel=1e-11)


def test_sixty_items_with_one_relation():
    before = np.zeros((60, 60), dtype=bool)
    before[0, 1] = True
    assert le.count_extensions(before) == math.factorial(60) // 2
    pair = le.extension_marginals(before)[1]
    assert pair[0, 2] == pytest.approx(2 / 3, rel=1e-12)
    assert pair[1, 2] == pytest.approx(1 / 3, rel=1e-12)
    assert pair[3, 2] == 0.5


# ---------------------------------------------------------------------- the lattice of down-sets


def path_probability(lattice, given_step, ranks):
    """The probability of the path of a full ranking."""
    state, probability = 0, 1.0
    for x in sorted(range(len(ranks)), key=ranks.__getitem__):
        steps = range(lattice.start[state], lattice.start[state + 1])
        (step,) = (e for e in steps if lattice.item[e] == x)
        probability *= given_step[step]
        state = lattice.target[step]
    return probability


@settings(max_examples=40, deadline=None)
@given(posets(), st.floats(0, 4), st.randoms(use_true_random=False))
def test_path_probabilities(poset, theta, random):
    n, pairs = poset
    center = random.sample(range(n), n)
    expected = extensions(n, pairs)
    weights = [math.exp(-theta * naive.kendall(full, center)) for full in expected]
    lattice = DownSets.of(matrix(n, pairs))
    assert lattice.n_paths() == len(expected)
    costs = lattice.discordance_costs(np.array(center))
    assert log_weights(lattice, costs, theta)[0] == pytest.approx(math.log(math.fsum(weights)), rel=1e-12, abs=1e-12)
    weighted = step_probabilities(lattice, costs, theta)
    uniform = step_probabilities(lattice, lattice.equal_costs(), 0.0)
    for full, weight in zip(expected, weights, strict=True):
        assert path_probability(lattice, weighted, full) == pytest.approx(weight / math.fsum(weights), rel=1e-12)
        assert path_probability(lattice, uniform, full) == pytest.approx(1 / len(expected), rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(posets())
def test_number_of_down_sets_and_limit(poset):
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


def test_large_lattice():
    assert len(DownSets.of(np.zeros((14, 14), dtype=bool)).sets) == 2**14
    assert DownSets.of(np.zeros((14, 14), dtype=bool)).n_paths() == math.factorial(14)


# ---------------------------------------------------------------------- coupling from the past


def along(poset):
    """The relation with items renumbered along a linear extension."""
    before = matrix(*poset)
    order = np.argsort(before.sum(axis=0), kind="stable")
    return before[np.ix_(order, order)]


def followed(before, seed, n_steps, ranks):
    order = np.argsort(ranks)
    le.run_block(before, np.uint64(seed), n_steps, order, True)
    return order.tolist()


@pytest.mark.parametrize("poset", HARD)
def test_bounding_chain(poset):
    """No item is later in a linear extension than in the bound; a full bound equals all linear extensions."""
    before = along(poset)
    n = len(before)
    starts = le.enumerate_extensions(before)
    n_coalesced = 0
    for seed in range(6):
        for n_steps in (0, 1, 2, 5, 10, 20, 40, 80, 160):
            bound = np.empty(n, dtype=np.int64)
            done = le.run_block(before, np.uint64(seed), n_steps, bound, False)
            n_coalesced += done
            assert done == (bound >= 0).all()
            for start in starts:
                order = followed(before, seed, n_steps, start)
                assert all(order.index(x) <= position for position, x in enumerate(bound.tolist()) if x >= 0)
                if done:
                    assert order == bound.tolist()
    assert n_coalesced > 0


def test_transition_probabilities():
    """Three steps of the chain from one state, against the power of its transition matrix."""
    before = along(N_ORDER)
    states = le.enumerate_extensions(before).tolist()
    step = np.zeros((len(states), len(states)))
    for a, ranks in enumerate(states):
        for p in range(3):
            swapped = [{p: p + 1, p + 1: p}.get(r, r) for r in ranks]
            step[a, states.index(swapped) if swapped in states else a] += 1 / 6
            step[a, a] += 1 / 6
    expected = np.linalg.matrix_power(step, 3)[0]
    seen = np.zeros(len(states))
    for seed in range(20_000):
        order = followed(before, seed * 1_000_003, 3, np.array(states[0]))
        seen[states.index(np.argsort(order).tolist())] += 1
    reached = expected > 0
    assert seen[~reached].sum() == 0
    assert chisquare(seen[reached], 20_000 * expected[reached]).pvalue > 1e-3


@pytest.mark.parametrize("number", range(12))
def test_coupling_from_the_past_is_uniform(number):
    poset = HARD[number] if number < len(HARD) else (5, random_poset(5, 0.3, number))
    draws = draw_by_coupling_from_the_past(matrix(*poset), 12_000, np.random.default_rng(number))
    assert pvalue_uniform(draws, extensions(*poset)) > 1e-3


def test_coupling_from_the_past_with_small_blocks():
    """Many blocks of the past: the bias of stopping early would be visible."""
    before = along(CROWN)
    seeds = np.random.default_rng(5).integers(0, 2**64, size=10_000, dtype=np.uint64)
    draws = np.array([le.coupled_draw(before, seed, 4) for seed in seeds])
    expected = [tuple(row) for row in le.enumerate_extensions(before).tolist()]
    assert pvalue_uniform(draws, expected) > 1e-3


def test_both_samplers_at_24_items():
    before = matrix(24, random_poset(24, 0.12, 3))
    exact = le.extension_marginals(before)[1]
    n_draws = 400
    for max_down_sets in (COUPLING, DOWN_SETS):
        draws = le.draw_extensions(before, n_draws, rng=8, max_down_sets=max_down_sets)
        first = (draws[:, :, None] < draws[:, None, :]).mean(axis=0)
        error = np.sqrt(exact * (1 - exact) / n_draws)
        assert (np.abs(first - exact) <= 5 * error + 1e-12).all()


# ---------------------------------------------------------------------- draws


@pytest.mark.parametrize("max_down_sets", [COUPLING, le.FEW_DOWN_SETS, DOWN_SETS])
@pytest.mark.parametrize(
    "poset",
    [
        N_ORDER,
        (5, []),
        (5, [(4, 0), (4, 1), (0, 2), (1, 2)]),
        (5, [(3, 1), (0, 2)]),
        (6, [*N_ORDER[1], (5, 4)]),
        (6, [*N_ORDER[1], *((x, y) for x in range(4) for y in (4, 5))]),
    ],
)
def test_draws_are_uniform(poset, max_down_sets):
    draws = le.draw_extensions(matrix(*poset), 6_000, rng=11, max_down_sets=max_down_sets)
    assert draws.dtype == np.int16
    assert pvalue_uniform(draws, extensions(*poset)) > 1e-3


def test_choice_of_the_sampler():
    """Coupling from the past for more than 100,000 down-sets."""
    fence = [(x + (x % 2 == 0), x + (x % 2 == 1)) for x in range(29)]
    for poset, other in ((CROWN, DOWN_SETS), ((30, fence), COUPLING)):
        draws = le.draw_extensions(matrix(*poset), 5, rng=2)
        assert np.array_equal(draws, le.draw_extensions(matrix(*poset), 5, rng=2, max_down_sets=other))


def test_draws_depend_on_the_seed():
    before = matrix(*FENCE)
    assert np.array_equal(
        le.draw_extensions(before, 9, rng=1), le.draw_extensions(before, 9, rng=np.random.default_rng(1))
    )
    assert not np.array_equal(le.draw_extensions(before, 9, rng=1), le.draw_extensions(before, 9, rng=2))


def test_draws_of_75_items():
    before = matrix(75, random_poset(75, 0.3, 1))
    draws = le.draw_extensions(before, 2, rng=0)
    x, y = np.nonzero(before)
    assert (draws[:, x] < draws[:, y]).all()
    assert (np.sort(draws, axis=1) == np.arange(75)).all()


def test_decomposition():
    part = decompose(matrix(6, [*N_ORDER[1], (5, 4)]))
    assert (part.kind, [inner.kind for inner in part.parts]) == ("parallel", ["prime", "series"])
    assert decompose(matrix(3, [(0, 1), (1, 2)])).kind == "series"
    assert decompose(matrix(3, [])).kind == "antichain"


# ---------------------------------------------------------------------- errors


def test_invalid_relations():
    with pytest.raises(RankingError, match="before has shape"):
        le.count_extensions(np.zeros((2, 3)))
    with pytest.raises(RankingError, match="before: items"):
        le.count_extensions([[0, 1], [1, 0]])
    with pytest.raises(RankingError, match="before: items"):
        le.count_extensions([[1]])
    with pytest.raises(RankingError, match=r"before: item 0 .* item 2"):
        le.count_extensions([[0, 1, 0], [0, 0, 1], [0, 0, 0]])


def test_too_many_down_sets():
    before = matrix(*CROWN)
    for exact in (le.count_extensions, le.extension_marginals, DownSets.required):
        with pytest.raises(ExactnessError, match="more than 10 down-sets"):
            exact(before, 10)


def test_enumeration_limit():
    with pytest.raises(ExactnessError, match="24 linear extensions"):
        le.enumerate_extensions(np.zeros((4, 4), dtype=bool), limit=23)

"""Consensus rankings against enumeration of completions and orders."""

import math
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from real_data import needs_data, preflib

from rankernel import Rankings, read_preflib
from rankernel.errors import RankingError
from rankernel.models.consensus import borda, cluster_consensus, kemeny, pairwise_preferences
from rankernel.models.kemeny_search import kemeny_order, local_search, majority_components, total_cost

# ---------------------------------------------------------------------- oracles


def shares(rows, counts):
    """P[a][b]: the probability of a before b, over all completions of all voters."""
    n = len(rows[0])
    table = [[Fraction(1, 2)] * n for _ in range(n)]
    for a, b in permutations(range(n), 2):
        table[a][b] = Fraction(0)
        for row, count in zip(rows, counts, strict=True):
            full = naive.completions(row)
            table[a][b] += Fraction(count * sum(x[a] < x[b] for x in full), sum(counts) * len(full))
    return table


def mean_positions(rows, counts):
    total = [Fraction(0)] * len(rows[0])
    for row, count in zip(rows, counts, strict=True):
        full = naive.completions(row)
        for item in range(len(row)):
            total[item] += Fraction(count * sum(x[item] for x in full), len(full))
    return total


def cost(candidate, rows, counts):
    """The sum over voters of the mean Kendall distance between all completions."""
    total = Fraction(0)
    mine = naive.completions(candidate)
    for row, count in zip(rows, counts, strict=True):
        theirs = naive.completions(row)
        distances = sum(naive.kendall(x, y) for x in mine for y in theirs)
        total += Fraction(count * distances, len(mine) * len(theirs))
    return total


def cost_of_order(order, table):
    return sum(table[b][a] for position, a in enumerate(order) for b in order[position + 1 :])


def least_cost(table):
    """The least cost of any order, by recursion over sets."""

    @cache
    def least(items):
        if not items:
            return 0.0
        return min(sum(table[b][a] for b in items if b != a) + least(items - {a}) for a in items)

    return least(frozenset(range(len(table))))


def preference_matrix(n, seed, levels=None):
    """Random shares; with few levels there are many ties."""
    rng = np.random.default_rng(seed)
    upper = rng.random((n, n)) if levels is None else rng.integers(0, levels + 1, (n, n)) / levels
    table = np.full((n, n), 0.5)
    a, b = np.triu_indices(n, 1)
    table[a, b], table[b, a] = upper[a, b], 1 - upper[a, b]
    return table


@st.composite
def voters(draw, high=4):
    rows = draw(strategies.sized(strategies.any_ranking, low=2, high=high, length=3))
    return rows, draw(st.lists(st.integers(1, 4), min_size=3, max_size=3))


def as_data(rows, counts):
    return Rankings(np.array(rows), counts=counts)


# ---------------------------------------------------------------------- pairwise preferences


@given(voters(high=5))
@settings(max_examples=50)
def test_pairwise_preferences(case):
    expected = np.array(shares(*case), dtype=float)
    assert pairwise_preferences(as_data(*case)) == pytest.approx(expected, rel=1e-13)


def test_many_pairwise_preferences():
    """More rows and pairs than are in memory at once."""
    rng = np.random.default_rng(0)
    X = Rankings(rng.integers(-1, 5, (4000, 40)), counts=rng.integers(1, 9, 4000))
    parts = [pairwise_preferences(part) * part.n_voters for part in (X[:1000], X[1000:])]
    assert pairwise_preferences(X) == pytest.approx(sum(parts) / X.n_voters, rel=1e-12)


# ---------------------------------------------------------------------- Borda


@given(voters(high=5))
@settings(max_examples=60)
def test_borda_sorts_mean_positions(case):
    positions = mean_positions(*case)
    levels = sorted(set(positions))
    result = borda(as_data(*case))
    assert result.ranking.ranks[0].tolist() == [levels.index(p) for p in positions]


@given(voters())
@settings(max_examples=40)
def test_borda_cost(case):
    result = borda(as_data(*case))
    assert result.cost == pytest.approx(float(cost(tuple(result.ranking.ranks[0].tolist()), *case)), rel=1e-13)


@given(voters())
@settings(max_examples=40)
def test_exact_borda_is_optimal(case):
    result = borda(as_data(*case))
    n = len(case[0][0])
    best = min(cost_of_order(order, shares(*case)) for order in permutations(range(n))) * sum(case[1])
    if result.exact:
        assert result.cost == pytest.approx(float(best), rel=1e-13)
    else:
        assert result.cost > float(best) - 1e-12


def test_borda_ties():
    X = Rankings.from_orders([["c", {"a", "d"}, "b"]], items=["a", "b", "c", "d"])
    assert borda(X).ranking.to_orders() == [["c", {"a", "d"}, "b"]]
    assert borda(X, ties="items").ranking.to_orders() == [["c", "a", "d", "b"]]


def test_borda_ties_survive_rounding():
    """Thirds and sevenths with equal sums."""
    rows = np.array([[0, 1, 2, 3, -1, -1], [1, 0, 3, 2, -1, -1], [0, 1, -1, -1, 2, 3], [1, 0, -1, -1, 3, 2]])
    assert borda(Rankings(rows, counts=[7, 7, 3, 3])).ranking.ranks[0, :2].tolist() == [0, 0]


# ---------------------------------------------------------------------- Kemeny


@given(voters())
@settings(max_examples=50)
def test_kemeny_is_optimal(case):
    n = len(case[0][0])
    result = kemeny(as_data(*case))
    best = min(cost(candidate, *case) for candidate in permutations(range(n)))
    assert result.exact
    assert result.cost == pytest.approx(float(best), rel=1e-12)
    assert float(cost(tuple(result.ranking.ranks[0].tolist()), *case)) == pytest.approx(float(best), rel=1e-12)


@pytest.mark.parametrize("levels", [None, 2, 5])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 12])
def test_exact_search(n, levels):
    for seed in range(2 if n == 12 else 8):
        table = preference_matrix(n, seed, levels)
        found = kemeny_order(table, 20, 1, np.random.default_rng(0))
        assert found.exact
        assert sorted(found.order.tolist()) == list(range(n))
        assert cost_of_order(found.order.tolist(), table.tolist()) == pytest.approx(
            least_cost(table.tolist()), rel=1e-12
        )


@given(st.integers(2, 7), st.integers(0, 10**6), st.sampled_from([None, 2, 3]))
def test_majority_components(n, seed, levels):
    table = preference_matrix(n, seed, levels)
    components = [part.tolist() for part in majority_components(table)]
    assert sorted(item for part in components for item in part) == list(range(n))
    for number, part in enumerate(components):
        later = [item for other in components[number + 1 :] for item in other]
        assert all(table[a, b] >= 0.5 for a in part for b in later)
        for cut in range(1, 2 ** len(part) - 1):  # the part cannot be split
            first = [a for bit, a in enumerate(part) if cut >> bit & 1]
            assert any(table[b, a] > 0.5 for a in first for b in part if b not in first)


def test_majority_cycle():
    X = Rankings.from_orders([["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]], counts=[3, 2, 2])
    result = kemeny(X)
    assert result.ranking.to_orders() == [["a", "b", "c"]]
    assert (result.cost, result.exact) == (8.0, True)
    assert result.details == "Kemeny: proven optimal: the longest majority cycle has 3 items"
    assert not borda(X).exact


def test_ties_are_broken_by_index():
    X = Rankings.from_orders([["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]])
    assert kemeny(X).ranking.to_orders() == [["a", "b", "c"]]
    assert kemeny(Rankings([[0, 0, 0]])).ranking.ranks.tolist() == [[0, 1, 2]]


def test_proofs_of_local_search():
    """A cycle of three attains the bound by disjoint cycles, a cycle of seven does not."""
    X = Rankings.from_orders([["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]])
    result = kemeny(X, limit=2)
    assert result.exact
    assert "proven optimal: local search on a majority cycle of 3 items" in result.details
    assert result.cost == 4
    circle = [[(place + shift) % 7 for place in range(7)] for shift in range(7)]
    longer = kemeny(Rankings(circle, counts=[9, 4, 6, 2, 7, 1, 3]), limit=3)
    assert not longer.exact
    assert "NOT proven optimal: local search on a majority cycle of 7 items (exact up to 3)" in longer.details


@pytest.mark.parametrize("levels", [None, 3])
@pytest.mark.parametrize("n", [3, 5, 8, 11])
def test_gap_is_an_upper_bound(n, levels):
    for seed in range(8):
        table = preference_matrix(n, seed, levels)
        found = kemeny_order(table, 1, 1, np.random.default_rng(0))
        loss = cost_of_order(found.order.tolist(), table.tolist()) - least_cost(table.tolist())
        assert found.gap >= loss - 1e-12
        assert found.exact == (found.gap == 0)


@pytest.mark.parametrize("seed", range(5))
def test_local_search_is_a_local_optimum(seed):
    table = preference_matrix(9, seed)
    order = local_search(table, np.random.default_rng(seed).permutation(9)).tolist()
    assert total_cost(table, np.array(order)) == pytest.approx(cost_of_order(order, table.tolist()), rel=1e-13)
    for item in order:
        rest = [other for other in order if other != item]
        for position in range(9):
            moved = [*rest[:position], item, *rest[position:]]
            assert cost_of_order(moved, table.tolist()) >= cost_of_order(order, table.tolist()) - 1e-11


def test_gap_of_many_items():
    """The bound by cycles is computed for at most 1,000 items."""
    table = preference_matrix(1001, 3)
    found = kemeny_order(table, 1, 1, np.random.default_rng(0))
    lower_bound = np.triu(np.minimum(table, table.T), 1).sum()
    assert found.gap == pytest.approx(total_cost(table, found.order) - lower_bound)


def cost_of(ranks, X):
    """The number of discordant pairs of all voters."""
    pairs = list(combinations(range(X.n_items), 2))
    rows = zip(X.ranks.tolist(), X.counts.tolist(), strict=True)
    return sum(count * sum((ranks[a] < ranks[b]) != (row[a] < row[b]) for a, b in pairs) for row, count in rows)


@pytest.mark.parametrize("times", [10**6, 2**44])
def test_rounding_prevents_proofs(times):
    rng, n_wrong = np.random.default_rng(0), 0
    for _ in range(60):
        ranks = np.argsort(rng.random((7, 4)), axis=1)
        X = Rankings(ranks, counts=times + rng.integers(0, 4, 7))
        found = kemeny(X)
        least = min(cost_of(order, X) for order in permutations(range(4)))
        wrong = cost_of(found.ranking.ranks[0].tolist(), X) > least
        n_wrong += wrong
        assert found.exact == (times == 10**6)
        assert ("NOT proven" in found.details) == (times > 10**6)
        assert not (wrong and found.exact)
    assert (n_wrong > 0) == (times > 10**6)


def test_local_search_finds_small_optima():
    for seed in range(10):
        table = preference_matrix(8, seed)
        found = kemeny_order(table, 1, 20, np.random.default_rng(0))
        assert cost_of_order(found.order.tolist(), table.tolist()) == pytest.approx(
            least_cost(table.tolist()), rel=1e-12
        )


# ---------------------------------------------------------------------- clusters, errors, real data


def test_cluster_consensus():
    X = Rankings.from_orders([["a", "b"], ["b", "a"], ["b", "a"], ["a", "b"]], counts=[1, 1, 1, 5])
    found = cluster_consensus(X, ["left", "left", "right", "right"], rule=kemeny)
    assert {label: result.ranking.to_orders() for label, result in found.items()} == {
        "left": [["a", "b"]],
        "right": [["a", "b"]],
    }
    assert found["right"].cost == 1
    with pytest.raises(ValueError, match="labels"):
        cluster_consensus(X, [0, 0, 1])


def test_invalid_arguments():
    with pytest.raises(RankingError, match="X"):
        kemeny(Rankings([[0, 1]])[:0])
    with pytest.raises(ValueError, match="limit=27"):
        kemeny([[0, 1]], limit=27)
    with pytest.raises(ValueError, match="n_starts"):
        kemeny([[0, 1]], n_starts=0)
    with pytest.raises(ValueError, match="ties='random'"):
        borda([[0, 1]], ties="random")


@needs_data
def test_election_data():
    ballots = read_preflib(preflib("00001-00000001.soi"))
    result = kemeny(ballots)
    table = pairwise_preferences(ballots)
    order = np.argsort(result.ranking.ranks[0])
    assert result.exact
    assert result.cost <= borda(ballots, ties="items").cost
    assert result.cost == pytest.approx(total_cost(table, order) * ballots.n_voters, rel=1e-12)


def test_bootstrap_of_kemeny():
    """The share of resamples with a before b is that of resampled majorities."""
    ballots = Rankings.from_orders([["a", "b"], ["b", "a"]], counts=[30, 20])
    result = kemeny(ballots, n_bootstrap=2000)
    share = float(pairwise_preferences(result.resampled)[0, 1])
    expected = sum(math.comb(50, k) * 0.6**k * 0.4 ** (50 - k) for k in range(26, 51))
    tie = math.comb(50, 25) * 0.24**25  # a comes first by its index
    assert share == pytest.approx(expected + tie, abs=4 * math.sqrt(0.1 / 2000))
    assert result.resampled.n_voters == 2000
    assert "of 2,000 resamples" in repr(result)
    assert kemeny(ballots, n_bootstrap=2000).resampled == result.resampled


def test_bootstrap_of_partial_rankings():
    ballots = Rankings.from_orders([["a", "b", "c"], ["b"], ["c", "a"]], counts=[9, 2, 4], unlisted="free")
    result = kemeny(ballots, n_bootstrap=50)
    assert result.resampled.counts.sum() == 50
    assert (np.diff(result.resampled.counts) <= 0).all()

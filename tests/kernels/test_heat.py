import functools
import itertools
import math

import naive
import numpy as np
import pytest

from rankernel.errors import ExactnessError, RankingError
from rankernel.kernels.heat import adjacent_heat, heat_matrix, heat_matrix_derivative, pair_types, transposition_heat
from rankernel.kernels.partitions import Numbered, all_partitions

GRAPHS = ["transpositions", "adjacent"]

# ---------------------------------------------------------------------- oracle: the power series on all permutations


def swapped(ranks, p, q):
    return tuple(q if r == p else p if r == q else r for r in ranks)


def edges(n, graph):
    return [(p, q) for p, q in itertools.combinations(range(n), 2) if graph == "transpositions" or q == p + 1]


@functools.cache
def heat_from(start, beta, graph):
    """The heat kernel from one full ranking to all, and its derivative in beta, from their power series."""
    swaps = edges(len(start), graph)
    values = dict.fromkeys(itertools.permutations(range(len(start))), 0.0)
    slopes = dict(values)
    term, m = {start: 1.0}, 0
    while m < 120:
        following = {}
        for ranks, t in term.items():
            values[ranks] += t
            for p, q in swaps:
                other = swapped(ranks, p, q)
                following[other] = following.get(other, 0.0) + t
        for ranks, t in following.items():
            slopes[ranks] += t
        m += 1
        term = {ranks: t * beta / m for ranks, t in following.items()}
    damping = math.exp(-beta * len(swaps))
    values = {ranks: v * damping for ranks, v in values.items()}
    return values, {ranks: s * damping - len(swaps) * values[ranks] for ranks, s in slopes.items()}


def everything(n):
    return np.array(list(itertools.permutations(range(n))), dtype=np.int32)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("beta", [0.0, 1e-3, 0.2, 1.5])
@pytest.mark.parametrize("start", [(0,), (1, 0), (1, 2, 0), (2, 0, 3, 1)])
def test_values_against_the_power_series_on_all_rankings(start, beta, graph):
    values, slopes = heat_from(start, beta, graph)
    X, Y = np.array([start]), everything(len(start))
    assert heat_matrix(X, Y, beta, graph)[0] == pytest.approx(list(values.values()), rel=1e-12)
    assert heat_matrix_derivative(X, Y, beta, graph)[0] == pytest.approx(list(slopes.values()), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("graph", GRAPHS)
def test_kernel_is_symmetric_blind_to_names_and_sums_to_one(graph):
    Y = everything(5)
    X = Y[::7]
    K = heat_matrix(X, Y, 0.3, graph)
    names = np.random.default_rng(0).permutation(5)
    assert (heat_matrix(X[:, names], Y[:, names], 0.3, graph) == K).all()
    mirrored = heat_matrix(Y, X, 0.3, graph).T
    assert mirrored == pytest.approx(K, rel=1e-13)
    assert K.sum(axis=1) == pytest.approx(np.ones(len(X)), rel=1e-13)


@pytest.mark.parametrize("graph", GRAPHS)
def test_heat_spreads_in_two_times_as_in_one(graph):
    Y = everything(4)
    first, second, both = (heat_matrix(Y, Y, beta, graph) for beta in (0.1, 0.5, 0.6))
    assert first @ second == pytest.approx(both, rel=1e-12)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("beta", [60.0, 1e9])
def test_all_is_equal_in_the_end(graph, beta):
    Y = everything(6)
    values = heat_matrix(Y[:1], Y, beta, graph)[0]
    slopes = heat_matrix_derivative(Y[:1], Y, beta, graph)[0]
    # The slowest part of the heat kernel of six places in a row: 25 exp(-beta (2 - 2 cos(pi/6))).
    left = 25 * math.exp(-beta * (2 - 2 * math.cos(math.pi / 6))) if graph == "adjacent" else 0.0
    assert abs(values * 720 - 1).max() <= left + 1e-12
    assert abs(slopes * 720).max() <= left + 1e-12


@pytest.mark.parametrize("n", [5, 12, 30])
def test_the_farthest_rankings_keep_their_precision(n):
    # A long cycle is a product of n - 1 transpositions in n^(n-2) ways (Dénes); at a small beta no more matters.
    beta = 1e-9
    value = transposition_heat(n, beta).values[0]
    logarithm = (n - 2) * math.log(n) + (n - 1) * math.log(beta) - math.lgamma(n) - beta * n * (n - 1) / 2
    assert math.log(value) == pytest.approx(logarithm, rel=1e-13)


@pytest.mark.parametrize(("n", "n_words"), [(3, 2), (4, 16), (5, 768), (6, 292864)])
def test_the_reversed_ranking_is_reached_by_its_sorting_networks(n, n_words):
    # Numbers of reduced words of the longest permutation (Stanley).
    beta, swaps = 1e-8, n * (n - 1) // 2
    value = adjacent_heat(n, beta).values[-1]
    assert value == pytest.approx(n_words * beta**swaps / math.factorial(swaps) * math.exp(-beta * (n - 1)), rel=1e-12)


def test_pairs_with_equal_cycles_share_an_index():
    Y = everything(5)
    found = pair_types(Y[3:4], Y)[0]
    partitions = {}
    for y, index in zip(Y, found, strict=True):
        partitions.setdefault(int(index), set()).add(tuple(cycle_lengths(tuple(Y[3]), tuple(y))))
    in_order = [(5,), (4, 1), (3, 2), (3, 1, 1), (2, 2, 1), (2, 1, 1, 1), (1, 1, 1, 1, 1)]
    assert partitions == {i: {lengths} for i, lengths in enumerate(in_order)}


def cycle_lengths(x, y):
    step = dict(zip(x, y, strict=True))
    lengths = []
    while step:
        position, length = next(iter(step)), 0
        while position in step:
            position, length = step.pop(position), length + 1
        lengths.append(length)
    return sorted(lengths, reverse=True)


@pytest.mark.parametrize("total", [0, 1, 7, 20])
def test_partitions_are_listed_once_and_found_again(total):
    rows = all_partitions(total, total + 2)
    assert len(set(map(tuple, rows.tolist()))) == len(rows) == {0: 1, 1: 1, 7: 15, 20: 627}[total]
    assert (rows @ np.arange(total + 2) == total).all()
    parts = [tuple(np.repeat(np.arange(total + 2), row)[::-1]) for row in rows]
    assert parts == sorted(parts, reverse=True)
    numbered = Numbered.of(rows)
    assert numbered.rows_of(rows @ numbered.numbers).tolist() == list(range(len(rows)))
    for row in np.flatnonzero((rows[:, 1] > 0) & (rows[:, 2] > 0)) if total > 2 else []:
        merged = rows[row].copy()
        merged[[1, 2, 3]] += -1, -1, 1
        assert (rows[numbered.merged(np.array([row]), 1, 2)] == merged).all()


def test_adjacent_swaps_are_at_kendall_distance_one():
    Y = everything(5)
    slopes = heat_matrix_derivative(Y[:9], Y, 0.0, "adjacent")
    distances = np.array([[naive.kendall(x, y) for y in Y] for x in Y[:9]])
    assert (slopes == np.where(distances == 1, 1.0, np.where(distances == 0, -4.0, 0.0))).all()


def test_thirty_six_items_sum_to_one_over_their_classes():
    heat = transposition_heat(36, 0.05)
    types = all_partitions(36, 37)
    log_sizes = [
        math.lgamma(37) - sum(math.log(k) * c + math.lgamma(c + 1) for k, c in enumerate(t) if c)
        for t in types.tolist()
    ]
    assert math.fsum(np.exp(log_sizes) * heat.values) == pytest.approx(1.0, rel=1e-11)


@pytest.mark.parametrize(("n", "graph"), [(37, "transpositions"), (10, "adjacent")])
def test_too_many_items_are_refused(n, graph):
    X = np.arange(n)[None]
    with pytest.raises(ExactnessError, match=f"at most {n - 1} items, here are {n}"):
        heat_matrix(X, X, 0.1, graph)


def test_wrong_arguments_are_refused():
    X = np.arange(4)[None]
    with pytest.raises(ValueError, match="graph='cayley' is not known"):
        heat_matrix(X, X, 0.1, "cayley")
    with pytest.raises(ValueError, match="beta=-1"):
        heat_matrix(X, X, -1.0)
    with pytest.raises(RankingError, match="full rankings"):
        heat_matrix(X, np.array([[0, 1, 1, 2]]), 0.1)

"""The diffusion kernel on full rankings against power series over all permutations."""

import itertools
import math

import naive
import numpy as np
import pytest

import rankernel as rk
from rankernel import Diffusion, ExactnessError, RankingError
from rankernel._utils.combinatorics import PartitionIndex, all_partitions

GRAPHS = ["transpositions", "adjacent"]


def permutations(n):
    return np.array(list(itertools.permutations(range(n))), dtype=np.int32)


def log_class_size(cycle_counts):
    """Logarithm of the number of permutations with given numbers of cycles of each length."""
    n = sum(length * count for length, count in enumerate(cycle_counts))
    return math.lgamma(n + 1) - sum(math.log(k) * c + math.lgamma(c + 1) for k, c in enumerate(cycle_counts) if c)


def permutation_of_type(cycle_counts):
    """Some permutation with given numbers of cycles of each length."""
    ranks, start = [], 0
    for length, count in enumerate(cycle_counts):
        for _ in range(count):
            ranks += [*range(start + 1, start + length), start]
            start += length
    return ranks


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("beta", [0.0, 1e-3, 0.2, 1.5])
@pytest.mark.parametrize("start", [(0,), (1, 0), (1, 2, 0), (2, 0, 3, 1)])
def test_matrix_and_gradient_match_power_series(start, beta, graph):
    values, slopes = naive.heat_from(start, beta, graph)
    kernel, X, Y = Diffusion(beta, graph), np.array([start]), permutations(len(start))
    assert kernel.matrix(X, Y)[0] == pytest.approx(list(values.values()), rel=1e-12)
    assert kernel.gradient(X, Y)["beta"][0] == pytest.approx(list(slopes.values()), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("graph", GRAPHS)
def test_symmetric_invariant_and_stochastic(graph):
    kernel, Y = Diffusion(0.3, graph), permutations(5)
    X = Y[::7]
    K = kernel.matrix(X, Y)
    items = np.random.default_rng(0).permutation(5)
    assert (kernel.matrix(X[:, items], Y[:, items]) == K).all()
    assert pytest.approx(K, rel=1e-13) == kernel.matrix(Y, X).T
    assert K.sum(axis=1) == pytest.approx(np.ones(len(X)), rel=1e-13)


@pytest.mark.parametrize("graph", GRAPHS)
def test_semigroup(graph):
    Y = permutations(4)
    first, second, both = (Diffusion(beta, graph).matrix(Y, Y) for beta in (0.1, 0.5, 0.6))
    assert first @ second == pytest.approx(both, rel=1e-12)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("beta", [60.0, 1e9])
def test_long_times_are_uniform(graph, beta):
    kernel, Y = Diffusion(beta, graph), permutations(6)
    values, slopes = kernel.matrix(Y[:1], Y)[0], kernel.gradient(Y[:1], Y)["beta"][0]
    # The slowest mode of adjacent swaps of six items: 25 exp(-beta (2 - 2 cos(pi/6))).
    slowest = 25 * math.exp(-beta * (2 - 2 * math.cos(math.pi / 6))) if graph == "adjacent" else 0.0
    assert abs(values * 720 - 1).max() <= slowest + 1e-12
    assert abs(slopes * 720).max() <= slowest + 1e-12


@pytest.mark.parametrize("n", [5, 12, 30])
def test_relative_accuracy_of_one_long_cycle(n):
    """A long cycle is a product of n - 1 transpositions in n^(n-2) ways (Dénes), and a small beta takes no more."""
    beta = 1e-9
    value = Diffusion(beta).matrix(np.arange(n)[None], np.roll(np.arange(n), 1)[None]).item()
    logarithm = (n - 2) * math.log(n) + (n - 1) * math.log(beta) - math.lgamma(n) - beta * n * (n - 1) / 2
    assert math.log(value) == pytest.approx(logarithm, rel=1e-13)


@pytest.mark.parametrize(("n", "n_words"), [(3, 2), (4, 16), (5, 768), (6, 292864)])
def test_relative_accuracy_of_reversal(n, n_words):
    """The number of reduced words of the longest permutation (Stanley)."""
    beta, swaps = 1e-8, n * (n - 1) // 2
    value = Diffusion(beta, "adjacent").matrix(np.arange(n)[None], np.arange(n)[None, ::-1]).item()
    assert value == pytest.approx(n_words * beta**swaps / math.factorial(swaps) * math.exp(-beta * (n - 1)), rel=1e-12)


def test_cycle_types_of_36_items_sum_to_one():
    types = [*all_partitions(36, 37).tolist()[::40], [0, 36] + [0] * 35]
    rows = np.array([permutation_of_type(counts) for counts in types])
    few = Diffusion(0.05).matrix(np.arange(36)[None], rows)[0]
    assert (few > 0).all()
    everywhere = Diffusion(100.0).matrix(np.arange(36)[None], rows)[0]
    assert np.log(everywhere) == pytest.approx(np.full(len(rows), -math.lgamma(37)), rel=1e-12)


@pytest.mark.parametrize("n", [6, 9])
def test_classes_sum_to_one(n):
    types = all_partitions(n, n + 1).tolist()
    rows = np.array([permutation_of_type(counts) for counts in types])
    values = Diffusion(0.1).matrix(np.arange(n)[None], rows)[0]
    sizes = np.exp([log_class_size(counts) for counts in types])
    assert math.fsum(sizes * values) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("total", [0, 1, 7, 20])
def test_partition_index(total):
    rows = all_partitions(total, total + 2)
    assert len(set(map(tuple, rows.tolist()))) == len(rows) == {0: 1, 1: 1, 7: 15, 20: 627}[total]
    parts = [tuple(np.repeat(np.arange(total + 2), row)[::-1]) for row in rows]
    assert parts == sorted(parts, reverse=True)
    index = PartitionIndex.of(rows)
    assert index.rows_of(rows @ index.numbers).tolist() == list(range(len(rows)))
    for row in np.flatnonzero((rows[:, 1] > 0) & (rows[:, 2] > 0)) if total > 2 else []:
        merged = rows[row].copy()
        merged[[1, 2, 3]] += -1, -1, 1
        assert (rows[index.merged(np.array([row]), 1, 2)] == merged).all()


def test_gradient_at_zero_is_the_laplacian():
    Y = permutations(5)
    slopes = Diffusion(0.0, "adjacent").gradient(Y[:9], Y)["beta"]
    distances = np.array([[naive.kendall(x, y) for y in Y] for x in Y[:9]])
    assert (slopes == np.where(distances == 1, 1.0, np.where(distances == 0, -4.0, 0.0))).all()


@pytest.mark.parametrize(("n", "graph"), [(37, "transpositions"), (10, "adjacent")])
def test_too_many_items(n, graph):
    X, kernel = np.arange(n)[None], Diffusion(0.1, graph)
    for call in (lambda: kernel.matrix(X, X), lambda: kernel.gram(X), lambda: (2 * kernel + rk.Hamming()).gram(X)):
        with pytest.raises(ExactnessError, match=f"at most {n - 1} items"):
            call()


def test_wrong_arguments():
    X = np.arange(4)[None]
    with pytest.raises(ValueError, match="graph='cayley'"):
        Diffusion(0.1, "cayley")
    with pytest.raises(ValueError, match="beta=-1"):
        Diffusion(-1.0)
    with pytest.raises(RankingError, match="full rankings"):
        Diffusion(0.1).matrix(X, np.array([[0, 1, 1, 2]]))

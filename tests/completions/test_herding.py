"""Kernel herding: the theorem of the paper, and the greedy choice against an oracle."""

import itertools
import math

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import any_ranking, bucket_orders

from rankernel.completions import antithetic, herd
from rankernel.errors import RankingError
from rankernel.rankings import Rankings


class Matrix:
    """A kernel given as a function of two full rankings."""

    def __init__(self, kernel):
        self.kernel = kernel

    def matrix(self, X, Y):
        return np.array([[self.kernel(x, y) for y in Y.tolist()] for x in X.tolist()], dtype=float)


def rows(rankings):
    return [tuple(row) for row in rankings.ranks.tolist()]


def objective(kernel, chosen, completions):
    """The squared distance between the mean embeddings, minus a constant."""
    own = math.fsum(kernel(x, y) for x in chosen for y in chosen) / len(chosen) ** 2
    cross = math.fsum(kernel(x, y) for x in chosen for y in completions) / (len(chosen) * len(completions))
    return own - 2 * cross


MALLOWS = naive.mallows(0.4)
KERNELS = [
    MALLOWS,
    naive.exponential(naive.footrule, 0.2),
    naive.hamming_kernel,
    lambda x, y: (1 + x[0]) * (1 + y[0]) * MALLOWS(x, y),  # not constant on the diagonal, not label-invariant
]


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 5).flatmap(bucket_orders), st.sampled_from([0.05, 0.4, 2.0]), st.integers(0, 5))
def test_two_steps_are_an_antithetic_pair(ranks, nu, seed):
    pair = herd(ranks, Matrix(naive.mallows(nu)), 2, rng=seed)
    assert pair[1] == antithetic(pair[0], [ranks])


def test_first_completion_is_random_for_invariant_kernels():
    firsts = {rows(herd((0, 1, 1, 1), Matrix(MALLOWS), 1, rng=seed))[0] for seed in range(60)}
    assert firsts == set(naive.completions((0, 1, 1, 1)))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4).flatmap(any_ranking), st.sampled_from(KERNELS))
def test_each_step_is_optimal(ranks, kernel):
    completions = naive.completions(ranks)
    chosen = rows(herd(ranks, Matrix(kernel), 4))
    assert set(chosen) <= set(completions)
    for step in range(1, 5):
        best = min(objective(kernel, [*chosen[: step - 1], x], completions) for x in completions)
        assert objective(kernel, chosen[:step], completions) == pytest.approx(best, rel=1e-11, abs=1e-11)


def test_first_choices_of_many_are_those_of_few():
    ranks, kernel = (0, 1, 1, 1), Matrix(MALLOWS)
    assert herd(ranks, kernel, 7, rng=2)[:3] == herd(ranks, kernel, 3, rng=2)


def test_random_pool():
    kernel = Matrix(naive.spearman_kernel)
    pool = herd([0] * 8, kernel, 2, candidates=50)
    assert rows(pool)[1] == tuple(7 - x for x in rows(pool)[0])
    assert pool == herd([0] * 8, kernel, 2, candidates=50)
    assert pool != herd([0] * 8, kernel, 2, candidates=50, rng=1)


def test_candidates_in_several_chunks():
    """A kernel with varying diagonal and more candidates than one chunk."""
    pool = naive.completions((0, 1, 1, 1, 1, 1, 1))
    weight = {x: 1 + 0.1 * x[3] for x in pool}
    squares = [weight[x] ** 2 for x in pool]

    class Weights:
        def matrix(self, X, Y):
            return np.outer(*([weight[tuple(row)] for row in Z.tolist()] for Z in (X, Y)))

    (first,) = rows(herd((0, 1, 1, 1, 1, 1, 1), Weights(), 1))
    mean = math.fsum(weight.values()) / len(pool)
    scores = [square - 2 * mean * weight[x] for x, square in zip(pool, squares, strict=True)]
    assert weight[first] ** 2 - 2 * mean * weight[first] == pytest.approx(min(scores), rel=1e-12)


def test_given_candidates():
    given_rows = [(0, 1, 2, 3), (0, 1, 3, 2), (0, 3, 2, 1)]
    chosen = rows(herd((0, 1, 1, 1), Matrix(MALLOWS), 5, candidates=given_rows))
    assert set(chosen) <= set(given_rows)
    with pytest.raises(RankingError, match="candidates"):
        herd((0, 1, 1, 1), Matrix(MALLOWS), 2, candidates=[(1, 0, 2, 3)])
    with pytest.raises(RankingError, match="candidates"):
        herd((0, 1, 1, 1), Matrix(MALLOWS), 2, candidates=[(0, 1, 2, 2)])


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4).flatmap(any_ranking))
def test_only_completions_are_candidates(ranks):
    everything = list(itertools.permutations(range(len(ranks))))
    for full in everything:
        if full in naive.completions(ranks):
            assert rows(herd(ranks, Matrix(MALLOWS), 1, candidates=[full])) == [full]
        else:
            with pytest.raises(RankingError):
                herd(ranks, Matrix(MALLOWS), 1, candidates=[full])


def test_items_and_invalid_arguments():
    ballots = Rankings.from_orders([["tea"], ["milk"]], items=["tea", "milk", "ale"])
    assert herd(ballots[0], Matrix(MALLOWS), 2).items == ("tea", "milk", "ale")
    with pytest.raises(RankingError, match="ranking has 2 rows"):
        herd(ballots, Matrix(MALLOWS), 2)
    with pytest.raises(ValueError, match="candidates"):
        herd(ballots[0], Matrix(MALLOWS), 2, candidates=0)
    with pytest.raises(ValueError, match="n_draws"):
        herd(ballots[0], Matrix(MALLOWS), 0)

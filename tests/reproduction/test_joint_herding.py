"""The jointly optimal choice of completions: the counter-example of the paper, and an oracle."""

import itertools
import math

import naive
import numpy as np
import pytest

from rankernel.completions import herd
from rankernel.errors import ExactnessError
from reproduction.herding import joint_herd


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


def test_three_greedy_steps_are_not_jointly_optimal():
    """Three items: greedy herding takes a reversed pair and one more, jointly optimal are three two swaps apart."""
    completions = naive.completions((0, 0, 0))
    greedy = rows(herd((0, 0, 0), Matrix(MALLOWS), 3))
    joint = rows(joint_herd((0, 0, 0), Matrix(MALLOWS), 3))
    assert sorted(naive.kendall(x, y) for x, y in itertools.combinations(greedy, 2)) == [1, 2, 3]
    assert sorted(naive.kendall(x, y) for x, y in itertools.combinations(joint, 2)) == [2, 2, 2]
    q = math.exp(-0.4)
    gap = objective(MALLOWS, greedy, completions) - objective(MALLOWS, joint, completions)
    assert gap == pytest.approx(2 / 9 * q * (1 - q) ** 2, rel=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("ranks", [(0, 1, -1), (0, 1, 1, 1), (-1, 0, 0)])
def test_joint_choice_is_optimal(ranks, kernel):
    completions = naive.completions(ranks)
    for n_draws in (1, 2, 3):
        chosen = rows(joint_herd(ranks, Matrix(kernel), n_draws))
        choices = itertools.combinations_with_replacement(completions, n_draws)
        best = min(objective(kernel, choice, completions) for choice in choices)
        assert objective(kernel, chosen, completions) == pytest.approx(best, rel=1e-11, abs=1e-11)


def test_invalid_arguments():
    with pytest.raises(ValueError, match="n_draws"):
        joint_herd([0, 0, 0], Matrix(MALLOWS), 0)
    with pytest.raises(MemoryError, match="n_draws"):
        joint_herd([0, 1, 2], Matrix(MALLOWS), 10**6)
    with pytest.raises(ExactnessError, match="choices of n_draws=4"):
        joint_herd([0] * 6, Matrix(MALLOWS), 4)

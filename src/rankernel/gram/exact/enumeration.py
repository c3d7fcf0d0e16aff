"""Gram matrices from full rankings: the kernel itself, or its mean over all completions of partial rankings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import FloatArray, IntArray, RankArray
from rankernel.distances import Distance
from rankernel.errors import ExactnessError
from rankernel.gram.evaluator import STEP, Block, Evaluator, Part
from rankernel.kernels.algebra import Tree
from rankernel.kernels.base import Kernel
from rankernel.kernels.facts import Facts

EVALUATIONS_AT_ONCE = 2**22  # kernel values in memory
MAX_TABLE = 2**20  # values of a distance that are looked up rather than computed
PYTHON_CALL = 1e-5  # seconds for one call of a function that a user gave


def kernel_matrices(kernels: Sequence[Kernel], X: RankArray, Y: RankArray) -> list[FloatArray]:
    """Return the matrices of kernels that differ in their parameters only; their distances are computed once."""
    facts = [kernel.facts(X.shape[1]) for kernel in kernels]
    distance = facts[0].distance
    if distance is None or facts[0].function is None:
        return [kernel.matrix(X, Y) for kernel in kernels]
    d = distance.between(X, Y)
    return [at_distances(each.function.value, distance, d, X.shape[1]) for each in facts if each.function is not None]


def at_distances(
    function: Callable[[NDArray[Any]], FloatArray], distance: Distance, d: NDArray[Any], n_items: int
) -> FloatArray:
    """Return a function of distances, by a table if they have few values."""
    if distance.integer and distance.maximum(n_items) < min(MAX_TABLE, d.size):
        return np.asarray(function(np.arange(int(distance.maximum(n_items)) + 1))[d])
    return np.asarray(function(d))


def log_matrix(kernel: Kernel, facts: Facts, X: RankArray, Y: RankArray) -> FloatArray:
    """Return the logarithm of a function of a distance between full rankings."""
    if facts.distance is None or facts.function is None:
        raise ExactnessError(f"the logarithm of {kernel} is not known: it is not a function of one distance; use gram")
    return facts.function.log_value(facts.distance.between(X, Y))


def seconds_of_kernel(kernel: Kernel, n_items: int) -> float:
    """Return the approximate time of a kernel value between two full rankings."""
    distance = kernel.facts(n_items).distance
    if distance is None and isinstance(kernel, Tree):
        return sum(seconds_of_kernel(part, n_items) for part in kernel.parts.values())
    if distance is not None and distance.name == "kendall":
        return STEP["differing"] * -(-comb(n_items, 2) // 64) + STEP["kernel"]
    if distance is not None and distance.function is not None:
        return PYTHON_CALL
    step = STEP["cycle"] if distance is None or distance.cycle_weights is not None else STEP["distance"]
    return step * n_items + STEP["kernel"]


class FullEvaluator(Evaluator):
    """The kernel between full rankings."""

    details = "full rankings"

    def __init__(self, kernel: Kernel, X: RankArray, Y: RankArray) -> None:
        self.kernel, self.X, self.Y = kernel, X, Y

    def values(self, kernels: Sequence[Kernel], block: Block) -> FloatArray:
        """Return the kernel."""
        return np.stack(kernel_matrices(kernels, self.X[block[0]], self.Y[block[1]]))

    def gradients(self, kernel: Kernel, block: Block) -> dict[str, FloatArray]:
        """Return the derivatives of the kernel."""
        return kernel.gradient(self.X[block[0]], self.Y[block[1]])

    def log_values(self, kernel: Kernel, block: Block) -> FloatArray:
        """Return the logarithm of a function of a distance."""
        return log_matrix(kernel, kernel.facts(self.X.shape[1]), self.X[block[0]], self.Y[block[1]])

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time of all kernel values."""
        return n_rows * n_columns * seconds_of_kernel(self.kernel, self.X.shape[1])


@dataclass(frozen=True)
class Completions:
    """Sets of full rankings: set i is ``ranks[offsets[i]:offsets[i + 1]]``."""

    ranks: RankArray
    offsets: IntArray

    @classmethod
    def of_sets(cls, sets: Sequence[NDArray[Any]], n_items: int) -> Completions:
        """Return several sets in one array."""
        ranks = np.concatenate([*sets, np.empty((0, n_items), dtype=np.int16)]).astype(np.int32)
        return cls(ranks, np.cumsum([0, *map(len, sets)], dtype=np.int64))

    def part(self, rows: Part) -> Completions:
        """Return some of the sets."""
        chosen = np.arange(len(self.offsets) - 1)[rows]
        sizes = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        entries = np.repeat(self.offsets[chosen] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return Completions(self.ranks[entries], offsets)


class EnumerationEvaluator(Evaluator):
    """The mean of the kernel over all completions of both rankings."""

    def __init__(self, kernel: Kernel, left: Completions, right: Completions, details: str) -> None:
        self.kernel, self.left, self.right, self.details = kernel, left, right, details
        largest = max(int(np.diff(side.offsets).max(initial=1)) for side in (left, right))
        self.block_side = max(int(EVALUATIONS_AT_ONCE**0.5) // largest, 1)

    def sides(self, block: Block) -> tuple[Completions, Completions]:
        """Return the completions of the rows and of the columns of a block."""
        return self.left.part(block[0]), self.right.part(block[1])

    def values(self, kernels: Sequence[Kernel], block: Block) -> FloatArray:
        """Return the means over both sets."""
        left, right = self.sides(block)
        return np.stack([set_means(m, left, right) for m in kernel_matrices(kernels, left.ranks, right.ranks)])

    def gradients(self, kernel: Kernel, block: Block) -> dict[str, FloatArray]:
        """Return the means of the derivatives."""
        left, right = self.sides(block)
        gradient = kernel.gradient(left.ranks, right.ranks)
        return {name: set_means(matrix, left, right) for name, matrix in gradient.items()}

    def log_values(self, kernel: Kernel, block: Block) -> FloatArray:
        """Return the logarithm of the means of a function of a distance."""
        left, right = self.sides(block)
        exponents = log_matrix(kernel, kernel.facts(left.ranks.shape[1]), left.ranks, right.ranks)
        largest = np.maximum.reduceat(np.maximum.reduceat(exponents, left.offsets[:-1], 0), right.offsets[:-1], 1)
        if not np.isfinite(largest).all():
            raise ExactnessError(f"{kernel} is 0 for all completions of some pair; use gram")
        by_entry = np.repeat(np.repeat(largest, np.diff(left.offsets), 0), np.diff(right.offsets), 1)
        return np.asarray(largest + np.log(set_means(np.exp(exponents - by_entry), left, right)))

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time of all kernel values between completions."""
        n_pairs = float(len(self.left.ranks)) * len(self.right.ranks)
        return n_pairs * seconds_of_kernel(self.kernel, self.left.ranks.shape[1])


def set_means(matrix: FloatArray, left: Completions, right: Completions) -> FloatArray:
    """Return the mean over each pair of sets of a matrix between all full rankings of both."""
    sizes, other_sizes = np.diff(left.offsets), np.diff(right.offsets)
    if not matrix.size:
        return np.zeros((len(sizes), len(other_sizes)))
    by_row = np.add.reduceat(matrix, left.offsets[:-1], axis=0) / sizes[:, None]
    return np.asarray(np.add.reduceat(by_row, right.offsets[:-1], axis=1) / other_sizes)

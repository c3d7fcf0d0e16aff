"""Gram matrices from full rankings: the kernel itself, or its mean over sets of them that stand for partial ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import FloatArray, IntArray, RankArray
from rankernel.distances import Distance
from rankernel.errors import ExactnessError
from rankernel.gram.cost import STEP
from rankernel.gram.evaluator import Block, Evaluator, Part
from rankernel.kernels.algebra import Tree
from rankernel.kernels.base import Kernel

TILE_ENTRIES = 2**22  # kernel evaluations at once
PYTHON_CALL = 1e-5  # seconds for one call of a function that a user gave
MOST_TABULATED = 2**20  # values of a distance that are looked up rather than computed


def kernel_matrices(kernels: Sequence[Kernel], X: RankArray, Y: RankArray) -> list[FloatArray]:
    """Return the matrices of kernels that differ in their parameters only, their distances computed once."""
    facts, n_items = kernels[0].facts(X.shape[1]), X.shape[1]
    distance = facts.distance
    if distance is None or facts.function is None:
        return [kernel.matrix(X, Y) for kernel in kernels]
    functions = [kernel.facts(n_items).function for kernel in kernels]
    d = distance.between(X, Y)
    return [of_distances(function.value, distance, d, n_items) for function in functions if function is not None]


def of_distances(function: Any, distance: Distance, d: NDArray[Any], n_items: int) -> FloatArray:
    """Return a function of distances, looked up where they have few values."""
    if distance.integer and distance.maximum(n_items) < min(MOST_TABULATED, d.size):
        table = function(np.arange(int(distance.maximum(n_items)) + 1))
        return np.asarray(table[d])
    return np.asarray(function(d))


def seconds_of_kernel(kernel: Kernel, n_items: int) -> float:
    """Return about how long a kernel takes between two full rankings."""
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
    """Full rankings: the kernel itself."""

    details = "full rankings, nothing to average"

    def __init__(self, kernel: Kernel, X: RankArray, Y: RankArray) -> None:
        self.kernel, self.X, self.Y = kernel, X, Y

    def values(self, kernels: Sequence[Kernel], tile: Block) -> FloatArray:
        """Return the kernel."""
        return np.stack(kernel_matrices(kernels, self.X[tile[0]], self.Y[tile[1]]))

    def gradients(self, kernel: Kernel, tile: Block) -> dict[str, FloatArray]:
        """Return the derivatives of the kernel."""
        return kernel.gradient(self.X[tile[0]], self.Y[tile[1]])

    def log_values(self, kernel: Kernel, tile: Block) -> FloatArray:
        """Return the logarithm of a kernel in a distance."""
        facts = kernel.facts(self.X.shape[1])
        if facts.distance is None or facts.function is None:
            return super().log_values(kernel, tile)
        return facts.function.log_value(facts.distance.between(self.X[tile[0]], self.Y[tile[1]]))

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time of all kernel values."""
        return n_rows * n_columns * seconds_of_kernel(self.kernel, self.X.shape[1])


@dataclass(frozen=True)
class Embeddings:
    """Weighted sets of full rankings: set i is ``ranks[offsets[i]:offsets[i + 1]]``, its weights sum to about one."""

    ranks: RankArray
    weights: FloatArray
    offsets: IntArray

    @classmethod
    def of_sets(cls, sets: Sequence[NDArray[Any]], n_items: int) -> Embeddings:
        """Return sets in which all full rankings weigh the same."""
        sizes = np.array([len(full) for full in sets], dtype=np.int64)
        ranks = np.concatenate([*sets, np.empty((0, n_items), dtype=np.int16)]).astype(np.int32)
        return cls(ranks, np.repeat(1 / sizes, sizes), np.concatenate([[0], np.cumsum(sizes)]))

    def part(self, rows: Part) -> Embeddings:
        """Return some of the sets."""
        chosen = np.arange(len(self.offsets) - 1)[rows]
        sizes = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        entries = np.repeat(self.offsets[chosen] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return Embeddings(self.ranks[entries], self.weights[entries], offsets)


class EnumerationEvaluator(Evaluator):
    """The inner products of the embeddings of all completions."""

    def __init__(self, kernel: Kernel, left: Embeddings, right: Embeddings, details: str) -> None:
        self.kernel, self.left, self.right, self.details = kernel, left, right, details
        largest = max(int(np.diff(side.offsets).max(initial=1)) for side in (left, right))
        self.block_side = max(int(TILE_ENTRIES**0.5) // largest, 1)

    def sides(self, tile: Block) -> tuple[Embeddings, Embeddings]:
        """Return the completions of the rows and of the columns of a tile."""
        return self.left.part(tile[0]), self.right.part(tile[1])

    def values(self, kernels: Sequence[Kernel], tile: Block) -> FloatArray:
        """Return the weighted means over both sets."""
        left, right = self.sides(tile)
        return np.stack([set_means(m, left, right) for m in kernel_matrices(kernels, left.ranks, right.ranks)])

    def gradients(self, kernel: Kernel, tile: Block) -> dict[str, FloatArray]:
        """Return the means of the derivatives."""
        left, right = self.sides(tile)
        slopes = kernel.gradient(left.ranks, right.ranks)
        return {name: set_means(matrix, left, right) for name, matrix in slopes.items()}

    def log_values(self, kernel: Kernel, tile: Block) -> FloatArray:
        """Return the logarithm of the means of a kernel in a distance."""
        facts = kernel.facts(self.left.ranks.shape[1])
        if facts.distance is None or facts.function is None:
            return super().log_values(kernel, tile)
        left, right = self.sides(tile)
        exponents = facts.function.log_value(facts.distance.between(left.ranks, right.ranks))
        largest = np.maximum.reduceat(np.maximum.reduceat(exponents, left.offsets[:-1], 0), right.offsets[:-1], 1)
        if not np.isfinite(largest).all():
            raise ExactnessError(f"{kernel} is 0 for all completions of some pair, so it has no logarithm; use gram")
        spread = np.repeat(np.repeat(largest, np.diff(left.offsets), 0), np.diff(right.offsets), 1)
        return np.asarray(largest + np.log(set_means(np.exp(exponents - spread), left, right)))

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time of all kernel values between completions."""
        n_pairs = float(len(self.left.ranks)) * len(self.right.ranks)
        return n_pairs * seconds_of_kernel(self.kernel, self.left.ranks.shape[1])


def set_means(matrix: FloatArray, left: Embeddings, right: Embeddings) -> FloatArray:
    """Return the weighted sum over each pair of sets of a matrix of all full rankings against all."""
    if not matrix.size:
        return np.zeros((len(left.offsets) - 1, len(right.offsets) - 1))
    by_row = np.add.reduceat(left.weights[:, None] * matrix, left.offsets[:-1], axis=0)
    return np.asarray(np.add.reduceat(by_row * right.weights, right.offsets[:-1], axis=1))

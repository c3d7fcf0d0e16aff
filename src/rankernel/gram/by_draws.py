"""Gram matrices from full rankings that stand for partial ones: all their completions, or draws of them.

Each ranking becomes a weighted set of full rankings, its empirical embedding; the Gram matrix is that of the
embeddings, so it is positive semi-definite whatever the sets are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankernel.encoding import RankArray
from rankernel.gram.evaluator import Evaluator, FloatArray, Part, Tile
from rankernel.kernels.base import Kernel
from rankernel.kernels.exponential import ExponentialKernel
from rankernel.rankings import Rankings

__all__ = ["DrawsEvaluator", "Embeddings", "FullEvaluator"]

TILE_ENTRIES = 2**22  # kernel evaluations at once


class FullEvaluator(Evaluator):
    """Full rankings: the kernel itself."""

    description = "full rankings, nothing to average"

    def __init__(self, X: Rankings, Y: Rankings) -> None:
        self.X, self.Y = X.ranks, Y.ranks

    def values(self, kernels: Sequence[Kernel], tile: Tile) -> FloatArray:
        """Return the kernel, its distances computed once for all widths."""
        X, Y = self.X[tile[0]], self.Y[tile[1]]
        return np.stack(kernel_matrices(kernels, X, Y))

    def gradients(self, kernel: Kernel, tile: Tile) -> dict[str, FloatArray]:
        """Return the derivatives of the kernel."""
        return kernel.gradient(self.X[tile[0]], self.Y[tile[1]])

    def logs(self, kernel: Kernel, tile: Tile) -> FloatArray:
        """Return ``-nu d`` for exponential kernels."""
        if not isinstance(kernel, ExponentialKernel):
            return super().logs(kernel, tile)
        return -kernel.width * kernel.distances(self.X[tile[0]], self.Y[tile[1]])


def kernel_matrices(kernels: Sequence[Kernel], X: RankArray, Y: RankArray) -> list[FloatArray]:
    """Return the matrices of kernels that differ in their parameters only."""
    argument = kernels[0].argument
    if argument is None or len(kernels) == 1:
        return [kernel.matrix(X, Y) for kernel in kernels]
    d = argument.between(X, Y)
    return [kernel.at_distance(d, X.shape[1]) for kernel in kernels]


@dataclass(frozen=True)
class Embeddings:
    """Weighted sets of full rankings: set i is ``ranks[offsets[i]:offsets[i + 1]]``, its weights sum to about one."""

    ranks: RankArray
    weights: FloatArray
    offsets: NDArray[np.int64]

    def part(self, rows: Part) -> Embeddings:
        """Return some of the sets."""
        chosen = np.arange(len(self.offsets) - 1)[rows]
        sizes = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        entries = np.repeat(self.offsets[chosen] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return Embeddings(self.ranks[entries], self.weights[entries], offsets)


class DrawsEvaluator(Evaluator):
    """The inner products of empirical embeddings."""

    def __init__(self, left: Embeddings, right: Embeddings, description: str) -> None:
        self.left, self.right, self.description = left, right, description
        largest = max(int(np.diff(side.offsets).max(initial=1)) for side in (left, right))
        self.tile_side = max(int(TILE_ENTRIES**0.5) // largest, 1)

    def values(self, kernels: Sequence[Kernel], tile: Tile) -> FloatArray:
        """Return the weighted means over both sets."""
        left, right = self.left.part(tile[0]), self.right.part(tile[1])
        return np.stack(
            [block_means(matrix, left, right) for matrix in kernel_matrices(kernels, left.ranks, right.ranks)]
        )

    def gradients(self, kernel: Kernel, tile: Tile) -> dict[str, FloatArray]:
        """Return the means of the derivatives."""
        left, right = self.left.part(tile[0]), self.right.part(tile[1])
        slopes = kernel.gradient(left.ranks, right.ranks)
        return {name: block_means(matrix, left, right) for name, matrix in slopes.items()}

    def logs(self, kernel: Kernel, tile: Tile) -> FloatArray:
        """Return the logarithm of the means."""
        if not isinstance(kernel, ExponentialKernel):
            return super().logs(kernel, tile)
        left, right = self.left.part(tile[0]), self.right.part(tile[1])
        exponents = -kernel.width * kernel.distances(left.ranks, right.ranks)
        largest = np.maximum.reduceat(np.maximum.reduceat(exponents, left.offsets[:-1], 0), right.offsets[:-1], 1)
        spread = np.repeat(np.repeat(largest, np.diff(left.offsets), 0), np.diff(right.offsets), 1)
        return np.asarray(largest + np.log(block_means(np.exp(exponents - spread), left, right)))


def block_means(matrix: FloatArray, left: Embeddings, right: Embeddings) -> FloatArray:
    """Return the weighted sum of each block of a matrix of all draws against all draws."""
    by_row = np.add.reduceat(left.weights[:, None] * matrix, left.offsets[:-1], axis=0)
    return np.asarray(np.add.reduceat(by_row * right.weights, right.offsets[:-1], axis=1))

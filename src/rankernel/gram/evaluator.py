"""An evaluator holds what two sets of rankings mean to a kernel, and fills any tile of their Gram matrix.

It is built once from the rankings; the parameters of the kernel come later. So a grid of widths, a derivative, a
matrix too large for memory, or a matrix on many threads are all loops over the same tiles.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankernel.errors import ExactnessError
from rankernel.gram.blocks import place
from rankernel.kernels.base import Constant, Kernel, Scaled, Sum, prefixed

__all__ = ["ConstantEvaluator", "Evaluator", "ScaledEvaluator", "SumEvaluator", "Tile"]

FloatArray = NDArray[np.float64]
Part = slice | NDArray[np.intp]
Tile = tuple[Part, Part]  # which rows, which columns


class Evaluator(ABC):
    """Fills tiles of one Gram matrix, for any parameters of one kernel tree."""

    description: str
    tile_side: int = 512

    @abstractmethod
    def values(self, kernels: Sequence[Kernel], tile: Tile) -> FloatArray:
        """Return the tile for kernels that differ in their parameters only: shape (n_kernels, rows, columns)."""

    @abstractmethod
    def gradients(self, kernel: Kernel, tile: Tile) -> dict[str, FloatArray]:
        """Return the derivative of the tile in each parameter of the kernel."""

    def write(self, kernel: Kernel, out: NDArray[Any], tile: Tile, symmetric: bool) -> None:
        """Write a tile into the matrix; of a symmetric one also its mirror."""
        place(out, self.values([kernel], tile)[0], tile, symmetric)

    def work(self, budget: float) -> float:
        """Return about how many elementary steps are needed before tiles come cheap, or some number above a budget."""
        return 0.0

    def logs(self, kernel: Kernel, tile: Tile) -> FloatArray:
        """Return the logarithm of the tile, right where the values themselves underflow."""
        raise ExactnessError(f"{kernel} can be negative, so it has no logarithm; use gram")


@dataclass
class ConstantEvaluator(Evaluator):
    """Every entry is the same."""

    shape: tuple[int, int]
    description = "constant"

    def values(self, kernels: Sequence[Kernel], tile: Tile) -> FloatArray:
        """Return the constants."""
        shape = tuple(len(np.arange(length)[part]) for length, part in zip(self.shape, tile, strict=True))
        return np.stack([np.full(shape, cast(Constant, kernel).value) for kernel in kernels])

    def gradients(self, kernel: Kernel, tile: Tile) -> dict[str, FloatArray]:
        """Return nothing: a constant is not tuned."""
        return {}

    def logs(self, kernel: Kernel, tile: Tile) -> FloatArray:
        """Return the logarithm of the constant."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.values([kernel], tile)[0]))


@dataclass
class SumEvaluator(Evaluator):
    """The mean of a sum is the sum of the means."""

    left: Evaluator
    right: Evaluator

    def __post_init__(self) -> None:
        self.description = " + ".join(dict.fromkeys((self.left.description, self.right.description)))
        self.tile_side = min(self.left.tile_side, self.right.tile_side)

    def work(self, budget: float) -> float:
        """Return the work of both parts."""
        return self.left.work(budget) + self.right.work(budget)

    def values(self, kernels: Sequence[Kernel], tile: Tile) -> FloatArray:
        """Return the sums of the two tiles."""
        pairs = [cast(Sum, kernel) for kernel in kernels]
        left = self.left.values([kernel.left for kernel in pairs], tile)
        return left + self.right.values([kernel.right for kernel in pairs], tile)

    def gradients(self, kernel: Kernel, tile: Tile) -> dict[str, FloatArray]:
        """Return the derivatives of both parts."""
        pair = cast(Sum, kernel)
        left = prefixed("left", self.left.gradients(pair.left, tile))
        return left | prefixed("right", self.right.gradients(pair.right, tile))

    def logs(self, kernel: Kernel, tile: Tile) -> FloatArray:
        """Return the logarithm of the sum."""
        pair = cast(Sum, kernel)
        return np.asarray(np.logaddexp(self.left.logs(pair.left, tile), self.right.logs(pair.right, tile)))


@dataclass
class ScaledEvaluator(Evaluator):
    """The mean of a scaled kernel is the scaled mean."""

    inner: Evaluator

    def __post_init__(self) -> None:
        self.description = self.inner.description
        self.tile_side = self.inner.tile_side

    def work(self, budget: float) -> float:
        """Return the work of the kernel inside."""
        return self.inner.work(budget)

    def values(self, kernels: Sequence[Kernel], tile: Tile) -> FloatArray:
        """Return the scaled tiles."""
        scaled = [cast(Scaled, kernel) for kernel in kernels]
        scales = np.array([kernel.scale for kernel in scaled])
        return scales[:, None, None] * self.inner.values([kernel.kernel for kernel in scaled], tile)

    def gradients(self, kernel: Kernel, tile: Tile) -> dict[str, FloatArray]:
        """Return the derivatives in the scale and in the parameters inside."""
        scaled = cast(Scaled, kernel)
        inside = {name: scaled.scale * d for name, d in self.inner.gradients(scaled.kernel, tile).items()}
        return {"scale": self.inner.values([scaled.kernel], tile)[0]} | prefixed("kernel", inside)

    def logs(self, kernel: Kernel, tile: Tile) -> FloatArray:
        """Return the logarithm of the scaled tile."""
        scaled = cast(Scaled, kernel)
        return np.asarray(self.inner.logs(scaled.kernel, tile) + np.log(scaled.scale))

"""An evaluator holds what two sets of rankings mean to a kernel, and fills any tile of their Gram matrix.

It is built once from the distinct rankings; the parameters of the kernel come later. So a grid of widths, a derivative,
a matrix too large for memory, or a matrix on many threads are all loops over the same tiles.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import FloatArray, Indices, Mask
from rankernel.errors import ExactnessError
from rankernel.kernels.algebra import Constant, Term, terms
from rankernel.kernels.base import Kernel

Part = slice | Indices
Block = tuple[Part, Part]  # which of the distinct rankings are the rows, and which the columns


@dataclass(frozen=True, eq=False)
class BlockEstimate:
    """Values, their distance from the truth to be expected, and which of them rest on a few draws."""

    value: FloatArray
    error: FloatArray
    unreliable: Mask


class Evaluator(ABC):
    """Fills tiles of one Gram matrix, for any parameters of one kernel tree."""

    details: str
    block_side: int = 512

    direct: bool = False  # whether to compute an entry takes no longer than to copy it
    quick: bool = False  # whether all of it takes no time to speak of, so that nobody needs to be heard meanwhile

    @abstractmethod
    def values(self, kernels: Sequence[Kernel], tile: Block) -> FloatArray:
        """Return the tile for kernels that differ in their parameters only: shape (n_kernels, rows, columns)."""

    @abstractmethod
    def gradients(self, kernel: Kernel, tile: Block) -> dict[str, FloatArray]:
        """Return the derivative of the tile in each parameter of the kernel."""

    @abstractmethod
    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return about how long so many rows and columns take on one core, all that is made once included."""

    def write(
        self, kernel: Kernel, tile: Block, out: NDArray[Any], mirror: NDArray[Any] | None, on_diagonal: bool
    ) -> None:
        """Write a tile straight into its place and into that of its mirror image; only where entries are direct."""
        raise NotImplementedError(f"the values of {type(self).__name__} are written by the loop over tiles")

    def estimate_block(self, kernel: Kernel, tile: Block) -> BlockEstimate:
        """Return the tile with how sure it is: here it is exact."""
        value = self.values([kernel], tile)[0]
        return BlockEstimate(value, np.zeros_like(value), np.zeros(value.shape, dtype=bool))

    def gradient_estimates(self, kernel: Kernel, tile: Block) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Return the derivatives and their errors: here there are none."""
        return {name: (slope, np.zeros_like(slope)) for name, slope in self.gradients(kernel, tile).items()}

    def unbiased_diagonal(self, kernel: Kernel) -> FloatArray | None:
        """Return estimates of all rankings with themselves without their bias; None where there is no bias, as here."""
        return None

    def is_accurate(self, kernel: Kernel) -> bool:
        """Say whether values with these parameters are accurate for all pairs."""
        return True

    def log_values(self, kernel: Kernel, tile: Block) -> FloatArray:
        """Return the logarithm of the tile, right where the values themselves underflow."""
        raise ExactnessError(f"{kernel} can be negative, so it has no logarithm; use gram")


def lengths(shape: tuple[int, int], tile: Block) -> tuple[int, int]:
    """Return how many rows and columns a tile has."""
    rows, columns = (
        len(range(*part.indices(length))) if isinstance(part, slice) else len(part)
        for length, part in zip(shape, tile, strict=True)
    )
    return rows, columns


class EmptyEvaluator(Evaluator):
    """No rows, or no columns."""

    details = "no entries"

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape

    def values(self, kernels: Sequence[Kernel], tile: Block) -> FloatArray:
        """Return no entries for each kernel."""
        return np.zeros((len(kernels), *lengths(self.shape, tile)))

    def gradients(self, kernel: Kernel, tile: Block) -> dict[str, FloatArray]:
        """Return no entries for each parameter."""
        return {name: np.zeros(lengths(self.shape, tile)) for name in kernel.params}

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return nothing."""
        return 0.0

    def log_values(self, kernel: Kernel, tile: Block) -> FloatArray:
        """Return no entries."""
        return np.zeros(lengths(self.shape, tile))


class ConstantEvaluator(Evaluator):
    """Every entry is the same."""

    details = "constant"

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape

    def values(self, kernels: Sequence[Kernel], tile: Block) -> FloatArray:
        """Return the constants."""
        shape = lengths(self.shape, tile)
        return np.stack([np.full(shape, kernel.value) for kernel in kernels if isinstance(kernel, Constant)])

    def gradients(self, kernel: Kernel, tile: Block) -> dict[str, FloatArray]:
        """Return nothing: a constant is not tuned."""
        return {}

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return next to nothing."""
        return 0.0

    def log_values(self, kernel: Kernel, tile: Block) -> FloatArray:
        """Return the logarithm of the constant."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.values([kernel], tile)[0]))


class Combination(Evaluator):
    """The mean of a weighted sum of kernels is the weighted sum of their means."""

    def __init__(self, parts: Sequence[Evaluator]) -> None:
        self.parts = parts
        self.details = " + ".join(dict.fromkeys(part.details for part in parts))
        self.block_side = min(part.block_side for part in parts)

    def pairs(self, kernel: Kernel) -> list[tuple[Term, Evaluator]]:
        """Return each term with its evaluator."""
        return list(zip(terms(kernel), self.parts, strict=True))

    def values(self, kernels: Sequence[Kernel], tile: Block) -> FloatArray:
        """Return the weighted sums of the tiles."""
        total: Any = 0.0
        for group, part in zip(zip(*map(terms, kernels), strict=True), self.parts, strict=True):
            weights = np.array([term.weight for term in group])
            total = total + weights[:, None, None] * part.values([term.kernel for term in group], tile)
        return np.asarray(total)

    def gradients(self, kernel: Kernel, tile: Block) -> dict[str, FloatArray]:
        """Return the derivatives in the weights and in the parameters of all terms."""
        found: dict[str, FloatArray] = {}
        for term, part in self.pairs(kernel):
            for name, slope in part.gradients(term.kernel, tile).items():
                found[term.prefix + name] = term.weight * slope
            if term.scales:
                value = part.values([term.kernel], tile)[0]
                for name, scale in term.scales:
                    found[name] = np.asarray(found.get(name, 0.0) + term.weight / scale * value)
        return {name: found[name] for name in kernel.params}

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time of all parts."""
        return sum(part.seconds(n_rows, n_columns) for part in self.parts)

    def is_accurate(self, kernel: Kernel) -> bool:
        """Say whether all terms are."""
        return all(part.is_accurate(term.kernel) for term, part in self.pairs(kernel))

    def log_values(self, kernel: Kernel, tile: Block) -> FloatArray:
        """Return the logarithm of the sum."""
        parts = [np.log(term.weight) + part.log_values(term.kernel, tile) for term, part in self.pairs(kernel)]
        return np.asarray(np.logaddexp.reduce(parts))

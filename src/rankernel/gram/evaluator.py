"""Evaluators compute blocks of a Gram matrix.

An evaluator is built once from the distinct rankings; parameters of the kernel come later. So a grid of decay rates,
a gradient, a matrix larger than memory and a matrix on many threads are loops over the same blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import FloatArray, Indices, Mask
from rankernel.errors import ExactnessError
from rankernel.gram.jackknife import Norms, cosines
from rankernel.kernels.algebra import Constant, Term, terms
from rankernel.kernels.base import Kernel

Part = slice | Indices
Block = tuple[Part, Part]  # indices of distinct rankings: the rows and the columns

CALL_SECONDS = 1e-4  # overhead of one call of an evaluator


@dataclass(frozen=True, eq=False)
class BlockEstimate:
    """Values of a block, their standard errors, and which of the standard errors are unreliable."""

    value: FloatArray
    stderr: FloatArray
    unreliable: Mask


class Evaluator(ABC):
    """Computes blocks of one Gram matrix, for any parameters of one kernel.

    Attributes
    ----------
    details : str
        How values are computed, in words.
    block_side : int
        Rows and columns of the blocks that the matrix is best computed in.
    direct : bool
        Whether recomputing an entry is as cheap as copying it.
    quick : bool
        Whether the whole matrix is short enough to run without checking for interrupts.
    """

    details: str
    block_side: int = 512
    direct: bool = False
    quick: bool = False

    @abstractmethod
    def values(self, kernels: Sequence[Kernel], block: Block) -> FloatArray:
        """Return a block for kernels that differ in their parameters only: shape (n_kernels, n_rows, n_columns)."""

    @abstractmethod
    def gradients(self, kernel: Kernel, block: Block) -> dict[str, FloatArray]:
        """Return the derivative of a block in each parameter of the kernel."""

    @abstractmethod
    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the approximate time of a matrix on one core, preparations included."""

    def write(
        self, kernel: Kernel, block: Block, out: NDArray[Any], mirror: NDArray[Any] | None, on_diagonal: bool
    ) -> None:
        """Write a block and its transpose into a matrix; only for evaluators with :attr:`direct` entries."""
        raise NotImplementedError(f"{type(self).__name__} returns its values")

    def is_accurate(self, kernel: Kernel) -> bool:
        """Whether values with the parameters of this kernel are accurate for all pairs."""
        return True

    def log_values(self, kernel: Kernel, block: Block) -> FloatArray:
        """Return the logarithm of a block, also where the values themselves underflow."""
        raise ExactnessError(f"{kernel} can be negative, so it has no logarithm; use gram")

    # ------------------------------------------------------------------ single entries

    def paired(self, kernel: Kernel, rows: Indices, columns: Indices, unbiased: bool = False) -> FloatArray:
        """Return single entries, one for each pair of a row and a column.

        ``unbiased`` asks for estimates of the entries on the diagonal without their bias.
        """
        return self.single_entries(rows, columns, lambda block: self.values([kernel], block)[0])

    def paired_gradients(self, kernel: Kernel, rows: Indices, columns: Indices) -> dict[str, FloatArray]:
        """Return the derivatives of single entries in each parameter of the kernel."""

        def derivative(name: str) -> Callable[[Block], FloatArray]:
            return lambda block: self.gradients(kernel, block)[name]

        return {name: self.single_entries(rows, columns, derivative(name)) for name in kernel.params}

    def single_entries(self, rows: Indices, columns: Indices, compute: Callable[[Block], FloatArray]) -> FloatArray:
        """Return the diagonals of small blocks, as large as the overhead of a call allows."""
        entry = max(self.seconds(64, 64) / 64**2, 1e-9)
        side = min(max(int((CALL_SECONDS / entry) ** 0.5), 1), 64)
        out = np.empty(len(rows))
        for start in range(0, len(rows), side):
            part = slice(start, start + side)
            out[part] = np.diagonal(compute((rows[part], columns[part])))
        return out

    # ------------------------------------------------------------------ standard errors, 0 for exact values

    def estimate_block(self, kernel: Kernel, block: Block, norms: tuple[Norms, Norms] | None = None) -> BlockEstimate:
        """Return a block with its standard errors, divided by norms of its rows and columns if these are given."""
        value = self.values([kernel], block)[0]
        none = np.zeros(value.shape, dtype=bool)
        if norms is None:
            return BlockEstimate(value, np.zeros_like(value), none)
        r, c = np.indices(value.shape).reshape(2, -1)
        entries = value.ravel()
        without = entries[:, None, None]
        sides = norms[0][r], norms[1][c]
        scaled, square = cosines(entries, (without, without), sides)
        few = sides[0].unreliable | sides[1].unreliable
        return BlockEstimate(*(each.reshape(value.shape) for each in (scaled, np.sqrt(square), few)))

    def gradient_estimates(self, kernel: Kernel, block: Block) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Return the derivatives of a block and their standard errors."""
        return {name: (matrix, np.zeros_like(matrix)) for name, matrix in self.gradients(kernel, block).items()}


def block_shape(shape: tuple[int, int], block: Block) -> tuple[int, int]:
    """Return the number of rows and columns of a block."""
    rows, columns = (
        len(range(*part.indices(length))) if isinstance(part, slice) else len(part)
        for length, part in zip(shape, block, strict=True)
    )
    return rows, columns


class ConstantEvaluator(Evaluator):
    """A matrix whose entries are all equal, or that has no entries."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.details = "constant" if all(shape) else "no entries"

    def values(self, kernels: Sequence[Kernel], block: Block) -> FloatArray:
        """Return the constants."""
        shape = block_shape(self.shape, block)
        if not all(self.shape):
            return np.zeros((len(kernels), *shape))
        return np.stack([np.full(shape, kernel.value) for kernel in kernels if isinstance(kernel, Constant)])

    def gradients(self, kernel: Kernel, block: Block) -> dict[str, FloatArray]:
        """Return empty matrices; a constant has no parameters."""
        return {name: np.zeros(block_shape(self.shape, block)) for name in kernel.params}

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return 0."""
        return 0.0

    def log_values(self, kernel: Kernel, block: Block) -> FloatArray:
        """Return the logarithm of the constant."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.values([kernel], block)[0]))


class SumEvaluator(Evaluator):
    """A weighted sum of kernels: its mean over completions is the weighted sum of their means."""

    def __init__(self, parts: Sequence[Evaluator]) -> None:
        self.parts = parts
        self.details = " + ".join(dict.fromkeys(part.details for part in parts))
        self.block_side = min(part.block_side for part in parts)

    def terms(self, kernel: Kernel) -> list[tuple[Term, Evaluator]]:
        """Return each term of a kernel with its evaluator."""
        return list(zip(terms(kernel), self.parts, strict=True))

    def values(self, kernels: Sequence[Kernel], block: Block) -> FloatArray:
        """Return the weighted sums of the terms."""
        total: Any = 0.0
        for group, part in zip(zip(*map(terms, kernels), strict=True), self.parts, strict=True):
            weights = np.array([term.weight for term in group])
            total = total + weights[:, None, None] * part.values([term.kernel for term in group], block)
        return np.asarray(total)

    def gradients(self, kernel: Kernel, block: Block) -> dict[str, FloatArray]:
        """Return the derivatives in the weights and in the parameters of all terms."""
        found: dict[str, FloatArray] = {}
        for term, part in self.terms(kernel):
            for name, matrix in part.gradients(term.kernel, block).items():
                found[term.prefix + name] = term.weight * matrix
            if term.scales:
                value = part.values([term.kernel], block)[0]
                for name, scale in term.scales:
                    found[name] = np.asarray(found.get(name, 0.0) + term.weight / scale * value)
        return {name: found[name] for name in kernel.params}

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time of all terms."""
        return sum(part.seconds(n_rows, n_columns) for part in self.parts)

    def is_accurate(self, kernel: Kernel) -> bool:
        """Whether all terms are accurate."""
        return all(part.is_accurate(term.kernel) for term, part in self.terms(kernel))

    def log_values(self, kernel: Kernel, block: Block) -> FloatArray:
        """Return the logarithm of the sum."""
        parts = [np.log(term.weight) + part.log_values(term.kernel, block) for term, part in self.terms(kernel)]
        return np.asarray(np.logaddexp.reduce(parts))


class MixedEvaluator(Evaluator):
    """Groups of rows and of columns; each pair of groups has an evaluator of its own.

    Parameters
    ----------
    shape : pair of int
        Shape of the matrix.
    rows, columns : sequences of index arrays
        The groups of rows and of columns.
    evaluators : dict from pairs of group numbers to evaluators
        The evaluator of each pair of groups.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        rows: Sequence[Indices],
        columns: Sequence[Indices],
        evaluators: dict[tuple[int, int], Evaluator],
    ) -> None:
        self.shape, self.evaluators = shape, evaluators
        self.group_of, self.index_in_group = zip(
            *(group_indices(side, n) for side, n in zip((rows, columns), shape, strict=True)), strict=True
        )
        self.sizes = {(i, j): (len(rows[i]), len(columns[j])) for i, j in evaluators}
        self.details = "; ".join(dict.fromkeys(each.details for each in evaluators.values()))
        self.block_side = min((each.block_side for each in evaluators.values()), default=1)

    def pieces(self, block: Block) -> Iterator[tuple[Evaluator, tuple[Indices, Indices], Block]]:
        """Yield the pieces of a block: the evaluator, the indices in the block, the indices in the groups."""
        groups = [group[part] for group, part in zip(self.group_of, block, strict=True)]
        members = [index[part] for index, part in zip(self.index_in_group, block, strict=True)]
        for (i, j), evaluator in self.evaluators.items():
            inside = np.flatnonzero(groups[0] == i), np.flatnonzero(groups[1] == j)
            if len(inside[0]) and len(inside[1]):
                yield evaluator, inside, (members[0][inside[0]], members[1][inside[1]])

    def assemble(self, n: int, block: Block, compute: Callable[[Evaluator, Block], Any]) -> FloatArray:
        """Return n matrices of a block, assembled from its pieces."""
        out = np.zeros((n, *block_shape(self.shape, block)))
        for evaluator, inside, piece in self.pieces(block):
            r, c = np.ix_(*inside)
            out[:, r, c] = compute(evaluator, piece)
        return out

    def values(self, kernels: Sequence[Kernel], block: Block) -> FloatArray:
        """Return a block, piece by piece."""
        return self.assemble(len(kernels), block, lambda evaluator, piece: evaluator.values(kernels, piece))

    def gradients(self, kernel: Kernel, block: Block) -> dict[str, FloatArray]:
        """Return the derivatives of a block, piece by piece."""
        names = list(kernel.params)

        def compute(evaluator: Evaluator, piece: Block) -> list[FloatArray]:
            found = evaluator.gradients(kernel, piece)
            return [found[name] for name in names]

        return dict(zip(names, self.assemble(len(names), block, compute) if names else (), strict=True))

    def estimate_block(self, kernel: Kernel, block: Block, norms: tuple[Norms, Norms] | None = None) -> BlockEstimate:
        """Return a block with its standard errors, piece by piece."""
        value, stderr, unreliable = np.zeros((3, *block_shape(self.shape, block)))
        for evaluator, inside, piece in self.pieces(block):
            sides = None if norms is None else (norms[0][inside[0]], norms[1][inside[1]])
            found = evaluator.estimate_block(kernel, piece, sides)
            index = np.ix_(*inside)
            value[index], stderr[index], unreliable[index] = found.value, found.stderr, found.unreliable
        return BlockEstimate(value, stderr, unreliable > 0)

    def gradient_estimates(self, kernel: Kernel, block: Block) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Return the derivatives of a block and their standard errors, piece by piece."""
        names = list(kernel.params)

        def compute(evaluator: Evaluator, piece: Block) -> list[FloatArray]:
            found = evaluator.gradient_estimates(kernel, piece)
            return [matrix for name in names for matrix in found[name]]

        found = self.assemble(2 * len(names), block, compute) if names else np.zeros((0, 1, 1))
        return {name: (found[2 * k], found[2 * k + 1]) for k, name in enumerate(names)}

    def is_accurate(self, kernel: Kernel) -> bool:
        """Whether all evaluators are accurate."""
        return all(each.is_accurate(kernel) for each in self.evaluators.values())

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time of all pairs of groups."""
        return sum(each.seconds(*self.sizes[groups]) for groups, each in self.evaluators.items())


def group_indices(groups: Sequence[Indices], length: int) -> tuple[Indices, Indices]:
    """Return the group of each member of several groups, and its index in the group."""
    group, index = np.empty(length, dtype=np.intp), np.empty(length, dtype=np.intp)
    for number, members in enumerate(groups):
        group[members], index[members] = number, np.arange(len(members))
    return group, index

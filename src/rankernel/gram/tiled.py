"""A Gram matrix that is not held: everything is settled, and any block of it can be computed, here or elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np

from rankernel.gram.blocks import tiles
from rankernel.gram.choose import choose
from rankernel.gram.evaluator import Evaluator, FloatArray, Tile
from rankernel.gram.memory import block_side, computed_block
from rankernel.gram.methods import Method, MethodLike
from rankernel.gram.problem import Problem, pose
from rankernel.kernels.base import check_whole

__all__ = ["TiledGram", "gram_blocks"]

BUILDING = Lock()  # two threads that ask for one evaluator at once wait for each other


@dataclass(frozen=True, eq=False)
class TiledGram:
    """A Gram matrix as a recipe: rankings, a kernel without "median", and a method without "auto".

    It can be sent to another process. What makes its tiles (the evaluator) stays behind, and is made again there from
    all rankings: so every block comes out as it would have in one piece, to the bit.
    """

    problem: Problem
    method: Method

    @classmethod
    def of(cls, kernel: Any, X: Any, Y: Any = None, method: MethodLike = "auto") -> TiledGram:
        """Settle what is open."""
        problem = pose(kernel, X, Y, method)
        chosen, evaluator = choose(problem.kernel, problem.X, problem.Y, method)
        return cls(problem, chosen).with_evaluator(evaluator)

    def with_evaluator(self, evaluator: Evaluator) -> TiledGram:
        """Return the same, which has its evaluator already."""
        object.__setattr__(self, "_evaluator", evaluator)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return TiledGram, (self.problem, self.method)

    @property
    def evaluator(self) -> Evaluator:
        """What makes the tiles, made when it is first needed."""
        with BUILDING:
            if not hasattr(self, "_evaluator"):
                problem = self.problem
                self.with_evaluator(choose(problem.kernel, problem.X, problem.Y, self.method)[1])
            found: Evaluator = self._evaluator  # type: ignore[attr-defined]
        return found

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        return self.problem.shape

    @property
    def symmetric(self) -> bool:
        """Whether rows and columns are the same rankings."""
        return self.problem.symmetric

    @property
    def distinct(self) -> TiledGram:
        """The matrix of the distinct rankings, from which the whole one is spread."""
        if self.problem.all_distinct:
            return self
        alone = replace(self.problem, rows=None, columns=None)
        return TiledGram(alone, self.method).with_evaluator(self.evaluator)

    def side(self, wanted: int | None = None) -> int:
        """Return the side of blocks: whole tiles, together at least as large as wanted."""
        if wanted is not None:
            check_whole("side", wanted)
        return block_side(self.evaluator.tile_side, None if wanted is None else (wanted,))

    def block(self, rows: slice, columns: slice, threads: int | None = None) -> FloatArray:
        """Return one block of the matrix; equal rankings in it are computed once."""
        problem, side = self.problem, self.evaluator.tile_side
        if problem.all_distinct:
            return computed_block((rows, columns), self.compute, side, self.symmetric, threads)
        own_rows, row_of = chosen(problem.rows, rows)
        own_columns, column_of = chosen(problem.columns, columns)

        def compute(tile: Tile) -> list[FloatArray]:
            return self.compute((own_rows[tile[0]], own_columns[tile[1]]))

        whole = slice(0, len(own_rows)), slice(0, len(own_columns))
        values = computed_block(whole, compute, side, self.symmetric and rows == columns, threads)
        return np.asarray(values[row_of][:, column_of])

    def compute(self, tile: Tile) -> list[FloatArray]:
        """Return one tile of the matrix of the distinct rankings."""
        return [self.evaluator.values([self.problem.kernel], tile)[0]]


def chosen(place: Any, part: slice) -> tuple[Any, Any]:
    """Return which distinct rankings stand in a part of the rows, and which of these each row is."""
    if place is None:
        return np.arange(part.start, part.stop), slice(None)
    return np.unique(place[part], return_inverse=True)


def gram_blocks(
    kernel: Any,
    X: Any,
    Y: Any = None,
    method: MethodLike = "auto",
    side: int | None = None,
    threads: int | None = None,
) -> Iterator[tuple[slice, slice, FloatArray]]:
    """Return a Gram matrix block by block, for matrices that are used up as they come.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X, Y : Rankings or integer array
        Rows and columns; ``Y`` is ``X`` if left out.
    method : as in :meth:`Kernel.gram`
        How to compute it, settled once for all blocks.
    side : int, optional
        Rows and columns of a block, rounded up to whole tiles.
    threads : int, optional
        How many tiles to compute at once.

    Yields
    ------
    rows, columns : slice
        Where the block stands. Where rows and columns are the same rankings, only the blocks on and above the diagonal
        come: the others are their transposes.
    values : array
        The block: what :meth:`Kernel.gram` has there, to the bit where all rankings are distinct, else to rounding.

    Examples
    --------
    >>> from rankernel import Kendall
    >>> [(rows, values.sum().item()) for rows, _, values in gram_blocks(Kendall(), [[0, 1], [1, 0]])]
    [(slice(0, 2, None), 0.0)]
    """
    tiled = TiledGram.of(kernel, X, Y, method)
    n_rows, n_columns = tiled.shape
    for rows, columns in tiles(n_rows, n_columns, tiled.side(side), tiled.symmetric):
        yield rows, columns, tiled.block(rows, columns, threads)

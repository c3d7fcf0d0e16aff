"""Carrying out what was chosen: the matrix of a problem, and its derivatives, tile by tile."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankernel.gram.blocks import fill, run
from rankernel.gram.evaluator import Evaluator, FloatArray, Tile
from rankernel.gram.memory import check_memory, fill_store, spread_into
from rankernel.gram.problem import Problem

__all__ = ["computed", "gradients"]


def computed(problem: Problem, evaluator: Evaluator, out: Any, dtype: DTypeLike, threads: int | None) -> NDArray[Any]:
    """Return the filled matrix, written straight into the output where every ranking is distinct."""

    def write(matrix: NDArray[Any]) -> NDArray[Any]:
        def one(tile: tuple[slice, slice]) -> None:
            evaluator.write(problem.kernel, matrix, tile, problem.symmetric)

        run(one, matrix.shape, evaluator.tile_side, problem.symmetric, threads)
        return matrix

    distinct_shape = len(problem.X), len(problem.Y)
    if out is None:
        check_memory(problem.shape, dtype, problem.entries_held)
        return problem.spread(write(np.empty(distinct_shape, dtype=dtype)))
    if out.shape != problem.shape:
        raise ValueError(f"out has shape {out.shape}; this Gram matrix has shape {problem.shape}")
    if not problem.all_distinct:
        check_memory(distinct_shape, out.dtype)
        spread_into(out, write(np.empty(distinct_shape, dtype=out.dtype)), problem.rows, problem.columns)
    elif isinstance(out, np.ndarray):
        write(out)
    else:

        def compute(tile: Tile) -> list[FloatArray]:
            return [evaluator.values([problem.kernel], tile)[0]]

        fill_store(out, compute, evaluator.tile_side, problem.symmetric, threads)
    return cast(NDArray[Any], out)


def gradients(problem: Problem, evaluator: Evaluator, threads: int | None) -> dict[str, FloatArray]:
    """Return the derivative of the matrix in each parameter."""
    names = list(problem.kernel.params)
    if not names:
        return {}
    outputs = [np.empty((len(problem.X), len(problem.Y))) for _ in names]

    def compute(tile: Tile) -> list[FloatArray]:
        slopes = evaluator.gradients(problem.kernel, tile)
        return [slopes[name] for name in names]

    fill(list(outputs), compute, evaluator.tile_side, problem.symmetric, threads)
    return {name: problem.spread(matrix) for name, matrix in zip(names, outputs, strict=True)}

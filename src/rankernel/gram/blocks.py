"""Filling matrices block by block, on several threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import FloatArray, Indices
from rankernel._utils.interrupts import n_threads, run_in_threads, run_interruptibly
from rankernel.gram.evaluator import Evaluator, Part
from rankernel.kernels.base import Kernel

Slices = tuple[slice, slice]

STRIP = 64  # rows that one thread copies at a time


def slices(length: int, step: int) -> Iterator[slice]:
    """Return consecutive slices of a length.

    Examples
    --------
    >>> list(slices(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return (slice(start, min(start + step, length)) for start in range(0, length, step))


def block_slices(n_rows: int, n_columns: int, side: int, symmetric: bool) -> Iterator[Slices]:
    """Return the blocks of a matrix; of a symmetric matrix those on and above the diagonal."""
    for rows in slices(n_rows, side):
        for columns in slices(n_columns, side):
            if not symmetric or columns.start >= rows.start:
                yield rows, columns


def run_blocks(
    compute: Callable[[Slices], object],
    shape: tuple[int, ...],
    side: int,
    symmetric: bool,
    n_jobs: int | None,
    quick: bool = False,
) -> None:
    """Call a function for every block of a matrix, on several threads if there are several blocks."""
    n_rows, n_columns = shape
    if n_jobs is not None:
        n_threads(n_jobs)  # checked also where one thread suffices
    if max(n_rows, n_columns) > side:
        run_in_threads(compute, block_slices(n_rows, n_columns, side, symmetric), n_jobs)
    elif n_rows and n_columns:
        block = slice(0, n_rows), slice(0, n_columns)
        if quick:
            compute(block)
        else:
            run_interruptibly(compute, block)


def put(out: NDArray[Any], block: Slices, value: FloatArray, symmetric: bool) -> None:
    """Write a block into a matrix, and its transpose if the matrix is symmetric.

    A block on the diagonal is made symmetric to the bit: its lower half is the transpose of its upper half.
    """
    rows, columns = block
    if not symmetric:
        out[rows, columns] = value
    elif rows == columns:
        out[rows, columns] = np.triu(value) + np.triu(value, 1).T
    else:
        out[rows, columns] = value
        out[columns, rows] = value.T


def fill(
    outputs: list[NDArray[Any]],
    compute: Callable[[Slices], list[FloatArray]],
    side: int,
    symmetric: bool,
    n_jobs: int | None = None,
    quick: bool = False,
) -> None:
    """Fill matrices of one shape block by block; of symmetric matrices one half is computed."""

    def one(block: Slices) -> None:
        for out, value in zip(outputs, compute(block), strict=True):
            put(out, block, value, symmetric)

    run_blocks(one, outputs[0].shape, side, symmetric, n_jobs, quick)


def fill_gram(
    out: NDArray[Any],
    evaluator: Evaluator,
    kernel: Kernel,
    rows: Indices | None,
    columns: Indices | None,
    symmetric: bool,
    n_jobs: int | None,
) -> None:
    """Fill the Gram matrix of all rows, given the index of the distinct ranking of each (None: all are distinct).

    Entries that are cheap to compute are computed again for equal rows. Otherwise each pair of distinct rankings is
    computed once, at its first position in the matrix, and copied from there: no second matrix is needed.
    """
    side = evaluator.block_side
    if not evaluator.direct and (rows is not None or columns is not None):
        fill_repeated(out, evaluator, kernel, rows, columns, symmetric, n_jobs)
        return

    def one(block: Slices) -> None:
        top, left = block
        chosen: tuple[Part, Part] = top if rows is None else rows[top], left if columns is None else columns[left]
        if evaluator.direct:
            mirror = out[left, top] if symmetric and top != left else None
            evaluator.write(kernel, chosen, out[top, left], mirror, symmetric and top == left)
        else:
            put(out, block, evaluator.values([kernel], chosen)[0], symmetric)

    run_blocks(one, out.shape, side, symmetric, n_jobs, evaluator.direct or evaluator.quick)


def fill_repeated(
    out: NDArray[Any],
    evaluator: Evaluator,
    kernel: Kernel,
    rows: Indices | None,
    columns: Indices | None,
    symmetric: bool,
    n_jobs: int | None,
) -> None:
    """Fill the Gram matrix of partly equal rows: compute distinct pairs, then copy columns, then rows."""
    first_row = first_indices(rows, out.shape[0])
    first_column = first_row if symmetric else first_indices(columns, out.shape[1])

    def scatter(block: Slices) -> None:
        top, left = block
        value = evaluator.values([kernel], block)[0]
        if symmetric and top == left:
            value = np.triu(value) + np.triu(value, 1).T
        out[np.ix_(first_row[top], first_column[left])] = value
        if symmetric and top != left:
            out[np.ix_(first_column[left], first_row[top])] = value.T

    run_blocks(scatter, (len(first_row), len(first_column)), evaluator.block_side, symmetric, n_jobs)
    if columns is not None:
        source = first_column[columns]

        def copy_columns(part: slice) -> None:
            for row in first_row[part]:
                out[row] = out[row].take(source)

        run_in_threads(copy_columns, slices(len(first_row), STRIP), n_jobs)
    if rows is not None:
        repeated = np.setdiff1d(np.arange(out.shape[0]), first_row)

        def copy_rows(part: slice) -> None:
            for row in repeated[part]:
                out[row] = out[first_row[rows[row]]]

        run_in_threads(copy_rows, slices(len(repeated), STRIP), n_jobs)


def first_indices(index: Indices | None, length: int) -> Indices:
    """Return the first row of each distinct ranking."""
    return np.arange(length) if index is None else np.unique(index, return_index=True)[1]

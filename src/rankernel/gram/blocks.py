"""Filling a matrix tile by tile, on plain Python threads: the compiled loops release the interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from threading import Event, Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, Indices
from rankernel._utils.checks import check_integer
from rankernel._utils.interrupts import Call, run_interruptibly
from rankernel.gram.evaluator import Evaluator, Part
from rankernel.kernels.base import Kernel

Slices = tuple[slice, slice]

STRIP = 64  # rows that one thread spreads at a time


def n_threads(n_jobs: int | None) -> int:
    """Return how many threads to use: as asked, else as the environment says, else one for each usable core."""
    if n_jobs is None:
        for name in ("RANKERNEL_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
            value = os.environ.get(name, "")
            if value.isdigit() and int(value):
                return int(value)
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return check_integer("n_jobs", n_jobs)


def slices(length: int, step: int) -> Iterator[slice]:
    """Return a length in slices of a step, the last one as it comes."""
    return (slice(start, min(start + step, length)) for start in range(0, length, step))


def tiles(n_rows: int, n_columns: int, side: int, symmetric: bool) -> Iterator[Slices]:
    """Return the tiles of a matrix; of a symmetric one those on and above the diagonal."""
    for top in range(0, n_rows, side):
        for left in range(top if symmetric else 0, n_columns, side):
            yield slice(top, min(top + side, n_rows)), slice(left, min(left + side, n_columns))


def run(work: Iterator[Any], one: Callable[[Any], object], n_jobs: int | None) -> None:
    """Do something for every piece of work, several at once."""
    lock, stopped = Lock(), Event()

    def worker() -> None:
        # Each takes the next piece when it is ready for one: a matrix of millions of tiles needs no list of them.
        while not stopped.is_set():
            with lock:
                piece = next(work, None)
            if piece is None:
                return
            one(piece)

    others = [Call(worker) for _ in range(n_threads(n_jobs) - 1)]
    try:
        run_interruptibly(worker)
        for other in others:
            other.result()
    except Exception:
        stopped.set()
        for other in others:
            other.thread.join()
        raise
    finally:
        stopped.set()  # after an interruption no further piece is begun, and nothing is waited for


def run_tiles(
    one: Callable[[Slices], object],
    shape: tuple[int, ...],
    side: int,
    symmetric: bool,
    n_jobs: int | None,
    quick: bool = False,
) -> None:
    """Do something for every tile of a matrix, several at once unless there is only one, which may be quick."""
    n_rows, n_columns = shape
    if max(n_rows, n_columns) > side:
        run(tiles(n_rows, n_columns, side, symmetric), one, n_jobs)
    elif n_rows and n_columns:
        tile = slice(0, n_rows), slice(0, n_columns)
        if quick:
            one(tile)
        else:
            run_interruptibly(one, tile)


def place(out: NDArray[Any], mirror: NDArray[Any] | None, value: FloatArray, on_diagonal: bool) -> None:
    """Write a tile into its place and, if there is one, into that of its mirror image.

    A tile on the diagonal is made symmetric to the bit: its lower half is the mirror of the upper one.
    """
    out[:] = np.triu(value) + np.triu(value, 1).T if on_diagonal else value
    if mirror is not None:
        mirror[:] = value.T


def fill(
    outputs: list[NDArray[Any]],
    compute: Callable[[Slices], list[FloatArray]],
    side: int,
    symmetric: bool,
    n_jobs: int | None = None,
    quick: bool = False,
) -> None:
    """Fill matrices of one shape, tile by tile; a symmetric one is computed half and mirrored."""

    def one(tile: Slices) -> None:
        rows, columns = tile
        for out, value in zip(outputs, compute(tile), strict=True):
            mirror = out[columns, rows] if symmetric and rows != columns else None
            place(out[rows, columns], mirror, value, symmetric and rows == columns)

    run_tiles(one, outputs[0].shape, side, symmetric, n_jobs, quick)


def fill_gram(
    out: NDArray[Any],
    evaluator: Evaluator,
    kernel: Kernel,
    rows: Indices | None,
    columns: Indices | None,
    symmetric: bool,
    n_jobs: int | None,
) -> None:
    """Fill the Gram matrix of all rows, given which distinct ranking each of them is (None: each its own).

    Where an entry takes no longer to compute than to copy, equal rows are computed again. Otherwise each pair of
    distinct rankings is computed once, at its first place in the matrix, and spread from there: no second matrix.
    """
    side = evaluator.block_side
    if evaluator.direct or (rows is None and columns is None):

        def one(tile: Slices) -> None:
            top, left = tile
            mirror = out[left, top] if symmetric and top != left else None
            chosen = taken(rows, top), taken(columns, left)
            if evaluator.direct:
                evaluator.write(kernel, chosen, out[top, left], mirror, symmetric and top == left)
            else:
                place(out[top, left], mirror, evaluator.values([kernel], chosen)[0], symmetric and top == left)

        run_tiles(one, out.shape, side, symmetric, n_jobs, evaluator.direct or evaluator.quick)
        return
    first_row = first_places(rows, out.shape[0])
    first_column = first_row if symmetric else first_places(columns, out.shape[1])

    def scattered(tile: Slices) -> None:
        top, left = tile
        value = evaluator.values([kernel], tile)[0]
        if symmetric and top == left:
            value = np.triu(value) + np.triu(value, 1).T
        out[np.ix_(first_row[top], first_column[left])] = value
        if symmetric and top != left:
            out[np.ix_(first_column[left], first_row[top])] = value.T

    run_tiles(scattered, (len(first_row), len(first_column)), side, symmetric, n_jobs)
    spread(out, first_row, first_column, rows, columns, n_jobs)


def taken(place: Indices | None, part: slice) -> Part:
    """Return which distinct rankings stand in a part of the rows."""
    return part if place is None else place[part]


def first_places(place: Indices | None, length: int) -> Indices:
    """Return where each distinct ranking first stands."""
    return np.arange(length) if place is None else np.unique(place, return_index=True)[1]


def spread(
    out: NDArray[Any],
    first_row: Indices,
    first_column: Indices,
    rows: Indices | None,
    columns: Indices | None,
    n_jobs: int | None,
) -> None:
    """Copy every entry from where it was first computed: along the rows that have values, then to all others."""
    if columns is not None:
        source = first_column[columns]

        def along(part: slice) -> None:
            _loops.spreading.along_rows(out, first_row[part], source)

        run(slices(len(first_row), STRIP), along, n_jobs)
    if rows is not None:
        later = np.ones(out.shape[0], dtype=bool)
        later[first_row] = False
        others = np.flatnonzero(later)

        def down(part: slice) -> None:
            _loops.spreading.whole_rows(out, others[part], first_row[rows[others[part]]])

        run(slices(len(others), STRIP), down, n_jobs)

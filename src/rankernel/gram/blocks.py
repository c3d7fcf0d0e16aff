"""Filling a matrix tile by tile, on plain Python threads: the compiled loops release the interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["fill", "n_threads", "place", "run", "stretches", "tiles"]

FloatArray = NDArray[np.float64]


def n_threads(threads: int | None) -> int:
    """Return how many threads to use: as asked, else as the environment says, else one for each usable core."""
    if threads is None:
        for name in ("RANKERNEL_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
            value = os.environ.get(name, "")
            if value.isdigit() and int(value):
                return int(value)
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if threads < 1:
        raise ValueError(f"threads={threads} is not possible; use at least one")
    return threads


def stretches(length: int, step: int) -> Iterator[slice]:
    """Return a length in stretches of a step, the last one as it comes."""
    return (slice(start, min(start + step, length)) for start in range(0, length, step))


def tiles(n_rows: int, n_columns: int, side: int, symmetric: bool) -> Iterator[tuple[slice, slice]]:
    """Return the tiles of a matrix; of a symmetric one those on and above the diagonal."""
    for top in range(0, n_rows, side):
        for left in range(top if symmetric else 0, n_columns, side):
            yield slice(top, min(top + side, n_rows)), slice(left, min(left + side, n_columns))


def place(out: NDArray[Any], value: NDArray[Any], tile: Any, symmetric: bool) -> None:
    """Write a tile into a matrix; of a symmetric one also its mirror, and one half of a tile on the diagonal twice."""
    rows, columns = tile
    if symmetric and rows == columns:
        value = np.triu(value) + np.triu(value, 1).T
    out[rows, columns] = value
    if symmetric and rows != columns:
        out[columns, rows] = value.T


def fill(
    outputs: list[NDArray[Any]],
    compute: Callable[[tuple[slice, slice]], list[FloatArray]],
    side: int,
    symmetric: bool,
    threads: int | None = None,
) -> None:
    """Fill matrices of one shape, tile by tile; a symmetric one is computed half and mirrored."""

    def one(tile: tuple[slice, slice]) -> None:
        for out, value in zip(outputs, compute(tile), strict=True):
            place(out, value, tile, symmetric)

    run(one, outputs[0].shape, side, symmetric, threads)


def run(
    one: Callable[[tuple[slice, slice]], None],
    shape: tuple[int, ...],
    side: int,
    symmetric: bool,
    threads: int | None = None,
) -> None:
    """Do something for every tile of a matrix, several at once."""
    n_rows, n_columns = shape
    workers = n_threads(threads)
    work = tiles(n_rows, n_columns, side, symmetric)
    if workers == 1 or max(n_rows, n_columns) <= side:
        for tile in work:
            one(tile)
        return
    lock, stopped = Lock(), Event()

    def worker() -> None:
        # Each takes the next tile when it is ready for one: a matrix of millions of tiles needs no list of them.
        while not stopped.is_set():
            with lock:
                tile = next(work, None)
            if tile is None:
                return
            one(tile)

    with ThreadPoolExecutor(workers - 1) as pool:
        try:
            others = [pool.submit(worker) for _ in range(workers - 1)]
            worker()
            for done in others:
                done.result()
        finally:
            stopped.set()  # after an error or an interruption, no further tile is begun

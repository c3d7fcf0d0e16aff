"""Array types and operations on the rows of arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
RankArray = NDArray[np.int32]  # bucket index of each item, 0 is the best; -1 marks a free item
FullRanks = NDArray[np.int16]  # position of each item in full rankings
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

CHUNK_CELLS = 2**17


def row_slices(shape: tuple[int, ...]) -> Iterator[slice]:
    """Yield slices over the rows of a table, each of at most 131,072 cells, to bound the size of temporary arrays."""
    step = max(CHUNK_CELLS // max(shape[1], 1), 1)
    return (slice(start, start + step) for start in range(0, shape[0], step))


def unique_rows(table: NDArray[Any]) -> tuple[Indices, Indices]:
    """Return the index of the first occurrence of each distinct row, and for each row the number of its distinct row.

    Distinct rows are numbered in order of first appearance.

    Examples
    --------
    >>> first, inverse = unique_rows(np.array([[1, 0], [0, 1], [1, 0]]))
    >>> first.tolist(), inverse.tolist()
    ([0, 1], [0, 1, 0])
    """
    # Rows are compared by 64-bit hashes, which sort faster than bytes; on a collision the bytes are compared instead.
    salt = np.random.default_rng(0).integers(2**64, size=table.shape[1], dtype=np.uint64) | np.uint64(1)
    hashes = np.empty(len(table), dtype=np.uint64)
    for rows in row_slices(table.shape):
        hashes[rows] = table[rows].astype(np.uint64) @ salt
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    if not all(np.array_equal(table[first[inverse[rows]]], table[rows]) for rows in row_slices(table.shape)):
        cells = np.ascontiguousarray(table)
        keys = cells.view(np.dtype((np.void, cells.dtype.itemsize * cells.shape[1]))).ravel()
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return first[order], number[inverse.ravel()]

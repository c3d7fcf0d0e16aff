"""Partitions of whole numbers, as rows of multiplicities, and which row is which."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rankernel._utils.arrays import Indices, IntArray


def descending(total: int) -> Iterator[list[int]]:
    """Yield the partitions of a number, those with the largest parts first; the list is used again.

    Examples
    --------
    >>> [tuple(parts) for parts in descending(4)]
    [(4,), (3, 1), (2, 2), (2, 1, 1), (1, 1, 1, 1)]
    """
    parts = [total] if total else []
    while True:
        yield parts
        rest = 1
        while parts and parts[-1] == 1:
            rest += parts.pop()
        if not parts:
            return
        largest = parts.pop() - 1  # one less, and what is over goes into parts of at most this
        parts += [largest] * (1 + rest // largest) + ([rest % largest] if rest % largest else [])


def all_partitions(total: int, width: int) -> IntArray:
    """Return all partitions of ``total`` as rows of multiplicities of 0, ..., width - 1.

    Examples
    --------
    >>> all_partitions(3, 4)
    array([[0, 0, 0, 1],
           [0, 1, 1, 0],
           [0, 3, 0, 0]])
    """
    cells = [row * width + part for row, parts in enumerate(descending(total)) for part in parts]
    n_rows = sum(1 for _ in descending(total))
    counts = np.bincount(np.array(cells, dtype=np.intp), minlength=n_rows * width)
    return np.asarray(counts.reshape(n_rows, width), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Numbered:
    """Partitions that are found again by the sum of a number for each part, as it is after parts come and go."""

    numbers: IntArray  # a number for each part
    codes: IntArray  # the sums, in the order of the rows
    order: Indices  # the rows in the order of their sums
    mask: int  # the bits of a sum that count

    @staticmethod
    def of(rows: IntArray, bits: int = 62) -> Numbered:
        """Return numbers of so many bits whose sums, in as many bits, tell the rows apart."""
        rng = np.random.default_rng(0)
        while True:
            numbers = rng.integers(2**bits, size=rows.shape[1])
            numbers[0] = 0
            codes = rows @ numbers & (2**bits - 1)
            order = np.argsort(codes)
            if (np.diff(codes[order]) > 0).all():
                return Numbered(numbers, codes, order, 2**bits - 1)

    def rows_of(self, sums: IntArray) -> Indices:
        """Return which rows have these sums."""
        return self.order[np.searchsorted(self.codes, sums & self.mask, sorter=self.order)]

    def merged(self, rows: Indices, a: int, b: int) -> Indices:
        """Return which rows these are with two of their parts, a and b, made one."""
        return self.rows_of(self.codes[rows] + (self.numbers[a + b] - self.numbers[a] - self.numbers[b]))

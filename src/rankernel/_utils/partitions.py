"""Integer partitions as rows of multiplicities, with an index by sums of random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rankernel._utils.arrays import Indices, IntArray


def descending(total: int) -> Iterator[list[int]]:
    """Yield the partitions of a number, those with the largest parts first; the list is reused.

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
        largest = parts.pop() - 1
        parts += [largest] * (1 + rest // largest) + ([rest % largest] if rest % largest else [])


def all_partitions(total: int, n_columns: int) -> IntArray:
    """Return all partitions of ``total`` as rows of multiplicities of the parts 0, ..., n_columns - 1.

    Examples
    --------
    >>> all_partitions(3, 4)
    array([[0, 0, 0, 1],
           [0, 1, 1, 0],
           [0, 3, 0, 0]])
    """
    cells = [row * n_columns + part for row, parts in enumerate(descending(total)) for part in parts]
    n_rows = sum(1 for _ in descending(total))
    counts = np.bincount(np.array(cells, dtype=np.intp), minlength=n_rows * n_columns)
    return np.asarray(counts.reshape(n_rows, n_columns), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class PartitionIndex:
    """Partitions identified by a code: the sum of a random number for each part, modulo a power of two."""

    numbers: IntArray  # one for each part
    codes: IntArray  # one for each row
    order: Indices  # the rows in the order of their codes
    mask: int  # selects the bits of a code

    @staticmethod
    def of(rows: IntArray, bits: int = 62) -> PartitionIndex:
        """Return an index in which all rows have different codes of that many bits."""
        rng = np.random.default_rng(0)
        while True:
            numbers = rng.integers(2**bits, size=rows.shape[1])
            numbers[0] = 0
            codes = rows @ numbers & (2**bits - 1)
            order = np.argsort(codes)
            if (np.diff(codes[order]) > 0).all():
                return PartitionIndex(numbers, codes, order, 2**bits - 1)

    def rows_of(self, sums: IntArray) -> Indices:
        """Return the rows with these sums of numbers."""
        return self.order[np.searchsorted(self.codes, sums & self.mask, sorter=self.order)]

    def merged(self, rows: Indices, a: int, b: int) -> Indices:
        """Return the rows that result from merging two parts a and b of these rows into one."""
        return self.rows_of(self.codes[rows] + (self.numbers[a + b] - self.numbers[a] - self.numbers[b]))

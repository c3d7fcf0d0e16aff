"""What a kernel can see of two rankings.

Every kernel of this package ignores the names of the items, so its value for two partial rankings depends only on how
many items each bucket of the one shares with each bucket of the other: their *overlap*. Ballots by the thousand have
few distinct overlaps (two top-4 lists: 209, whatever the number of items), so an exact formula, even a slow one, is
evaluated once for each and serves the whole Gram matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankernel.encoding import FREE, RankArray

__all__ = ["Formula", "Overlap", "Shape"]


@dataclass(frozen=True)
class Shape:
    """The sizes of the buckets of one ranking, best first, and the number of its free items."""

    sizes: tuple[int, ...]
    free: int = 0

    @property
    def n_items(self) -> int:
        """Number of items, listed and free."""
        return sum(self.sizes) + self.free

    @property
    def n_listed(self) -> int:
        """Number of items that are not free."""
        return sum(self.sizes)

    @property
    def is_exhaustive(self) -> bool:
        """No free item."""
        return self.free == 0

    @property
    def is_chain(self) -> bool:
        """No ties among the listed items."""
        return all(size == 1 for size in self.sizes)

    @property
    def is_full(self) -> bool:
        """One item a bucket, none free."""
        return self.is_exhaustive and self.is_chain

    @property
    def is_top_k(self) -> bool:
        """Single items and one last bucket (of any size), none free; full rankings count."""
        return self.is_exhaustive and all(size == 1 for size in self.sizes[:-1])

    @property
    def n_ties(self) -> int:
        """Number of buckets with more than one item."""
        return sum(size > 1 for size in self.sizes)

    @property
    def kind(self) -> str:
        """What to call it in a message."""
        if self.free:
            return "ranking with free items"
        return "full ranking" if self.is_full else "top-k list" if self.is_top_k else "ranking with ties"


@dataclass(frozen=True, eq=False)
class Overlap:
    """For each item the bucket it has in one ranking and in another, items sorted by those two numbers.

    ``left[a]`` and ``right[a]`` are bucket indices, -1 for a free item. Sorting forgets which item is which: two pairs
    of rankings have equal overlaps exactly if renaming the items takes one pair to the other.
    """

    left: RankArray
    right: RankArray

    @classmethod
    def of(cls, left: RankArray, right: RankArray) -> Overlap:
        """Return the overlap of two rankings, given as rows of ranks."""
        order = np.lexsort((right, left))
        return cls(np.asarray(left, dtype=np.int32)[order], np.asarray(right, dtype=np.int32)[order])

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.left)

    @cached_property
    def swapped(self) -> Overlap:
        """The overlap seen from the other side."""
        return Overlap.of(self.right, self.left)

    @cached_property
    def left_shape(self) -> Shape:
        """Bucket sizes of the left ranking."""
        return shape_of(self.left)

    @cached_property
    def right_shape(self) -> Shape:
        """Bucket sizes of the right ranking."""
        return shape_of(self.right)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """``counts[i, j]`` items are in bucket i on the left and j on the right; last row and column: free items."""
        counts = np.zeros((len(self.left_shape.sizes) + 1, len(self.right_shape.sizes) + 1), dtype=np.int64)
        np.add.at(counts, (self.left, self.right), 1)
        return counts


def shape_of(ranks: RankArray) -> Shape:
    """Return the shape of one ranking."""
    listed = ranks[ranks != FREE]
    return Shape(tuple(np.bincount(listed).tolist()) if len(listed) else (), int(len(ranks) - len(listed)))


class Formula(ABC):
    """An exact value of a marginalised kernel ``E exp(-nu d)``, as a function of the overlap of two rankings."""

    name: str

    @abstractmethod
    def covers(self, left: Shape, right: Shape) -> bool:
        """Say whether two rankings of these shapes have an exact value here, at a cost worth paying."""

    def work(self, left: Shape, right: Shape) -> float:
        """Return about how many elementary steps one value takes; a plain formula is mostly overhead."""
        return 1e5

    @abstractmethod
    def log_value(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return the logarithm of the kernel and its derivative in nu."""

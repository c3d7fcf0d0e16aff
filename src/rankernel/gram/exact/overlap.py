"""What a kernel can see of two rankings.

Every kernel of this package ignores the names of the items, so its value for two partial rankings depends only on how
many items each bucket of the one shares with each bucket of the other: their *overlap*. Ballots by the thousand have
few distinct overlaps (two top-4 lists: 209, whatever the number of items), so an exact formula, even a slow one, is
evaluated once for each and serves the whole Gram matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right, insort
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices, IntArray, RankArray
from rankernel.encoding import FREE
from rankernel.rankings import Rankings, unique_rows


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
    def cell_sizes(self) -> IntArray:
        """How many items share both their buckets, for each pair of buckets that has any."""
        steps = (np.diff(self.left) != 0) | (np.diff(self.right) != 0)
        ends = np.concatenate([[-1], np.flatnonzero(steps), [self.n_items - 1]])
        return np.diff(ends).astype(np.int64)

    @cached_property
    def n_discordant(self) -> int:
        """How many pairs of items are in opposite order in the two rankings; a tie in either is none."""
        seen: list[int] = []
        count = 0
        for value in self.right.tolist():  # items are sorted by their left bucket, then by their right one
            count += len(seen) - bisect_right(seen, value)
            insort(seen, value)
        return count

    @cached_property
    def counts(self) -> IntArray:
        """``counts[i, j]`` items are in bucket i on the left and j on the right; last row and column: free items."""
        counts = np.zeros((len(self.left_shape.sizes) + 1, len(self.right_shape.sizes) + 1), dtype=np.int64)
        np.add.at(counts, (self.left, self.right), 1)
        return counts


def shape_of(ranks: RankArray) -> Shape:
    """Return the shape of one ranking."""
    listed = ranks[ranks != FREE]
    return Shape(tuple(np.bincount(listed).tolist()) if len(listed) else (), int(len(ranks) - len(listed)))


def shapes(X: Rankings) -> list[Shape]:
    """Return the distinct shapes of rankings."""
    some = X[first_and_shape(X)[0]]
    rows = zip(some.bucket_sizes().tolist(), some.n_free.tolist(), strict=True)
    return [Shape(tuple(size for size in sizes if size), free) for sizes, free in rows]


def first_and_shape(X: Rankings) -> tuple[Indices, Indices]:
    """Return where each shape first occurs, and for each ranking which one it has."""
    return unique_rows(np.column_stack([X.bucket_sizes(), X.n_free]))


def shape_pairs(X: Rankings, Y: Rankings) -> list[tuple[Shape, Shape]]:
    """Return the pairs of shapes that meet."""
    left = shapes(X)
    right = left if Y is X else shapes(Y)
    return [(a, b) for a in left for b in right]


class Formula(ABC):
    """An exact value of a marginalised kernel with one width, as a function of the overlap of two rankings."""

    name: str
    logarithmic: bool = True  # whether values come as logarithms

    @abstractmethod
    def covers(self, left: Shape, right: Shape) -> bool:
        """Say whether two rankings of these shapes have an exact value here, at a cost worth paying."""

    def is_for(self, width: float) -> bool:
        """Say whether this is a formula for such a width."""
        return True

    def is_accurate(self, left: Shape, right: Shape, width: float) -> bool:
        """Say whether all overlaps of two shapes that are covered have an accurate value at this width."""
        return True

    def seconds(self, left: Shape, right: Shape, width: float) -> float:
        """Return about how long one value takes; a plain formula is mostly overhead."""
        return 5e-5

    @abstractmethod
    def log_value(self, overlap: Overlap, width: float) -> tuple[float, float]:
        """Return the logarithm of the kernel, or the kernel itself if it is not logarithmic; and its derivative."""

    def log_rest(self, overlap: Overlap, width: float) -> tuple[float, float]:
        """Return the same without the part of the distance that is certain, where codes leave it out.

        It must come out the same to the bit for all overlaps with the same code.
        """
        raise NotImplementedError(f"{type(self).__name__} has no codes of its own")


class DistanceLaw(ABC):
    """The exact distribution of an integer distance between independent uniform completions of two rankings.

    With it, the mean of any function of the distance is exact.
    """

    name: str
    distance: str

    @abstractmethod
    def covers(self, left: Shape, right: Shape) -> bool:
        """Say whether two rankings of these shapes have an exact law here, at a cost worth paying."""

    def seconds(self, left: Shape, right: Shape) -> float:
        """Return about how long one law takes."""
        return 2e-4

    @abstractmethod
    def pmf(self, overlap: Overlap) -> FloatArray:
        """Return the probability of each distance 0, 1, ..., up to the largest that n items can have."""

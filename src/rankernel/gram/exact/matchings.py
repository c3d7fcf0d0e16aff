r"""Which position on the left can meet which on the right: blocks of freely matched positions.

A kernel ``E exp(-nu sum_a c(r_a, s_a))`` averages over the ways to hand out the positions of tied items. Each way is a
matching of left positions with right ones, and buckets that share no item, directly or through others, are matched
apart. If in such a group of buckets at most one of either side is not inside a bucket of the other, the average over
the group is a permanent:

.. math:: E = \frac{d!}{N!\,N'!} \operatorname{per}(W), \qquad W_{pq} = e^{-\nu c(p, q)},

with :math:`N, N'` the sizes of its two large buckets, :math:`d` the number of items they share, and :math:`W = 0`
where an item that is only in the right one would meet an item that is only in the left one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rankernel._utils.arrays import Indices, IntArray, Mask
from rankernel.errors import ExactnessError
from rankernel.gram.exact.overlap import Overlap, Shape

NOTHING = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Block:
    """One large bucket on either side, and the buckets inside them that are not inside both."""

    left: IntArray  # positions of the two large buckets
    right: IntArray
    left_outer: IntArray  # left positions of the items that are only in the right bucket
    right_outer: IntArray  # right positions of the items that are only in the left bucket

    @property
    def n_shared(self) -> int:
        """Number of items that are in both large buckets."""
        return len(self.left) - len(self.right_outer)

    @property
    def n_items(self) -> int:
        """Number of items in the block."""
        return len(self.left) + len(self.left_outer)

    @property
    def log_share(self) -> float:
        """Logarithm of the share that one matching has in the average."""
        shared, left, right = (math.lgamma(m + 1) for m in (self.n_shared, len(self.left), len(self.right)))
        return shared - left - right


@dataclass(frozen=True)
class Matching:
    """Positions of the items that are tied on neither side, and the blocks of the others."""

    left: IntArray
    right: IntArray
    blocks: tuple[Block, ...]


def always_in_blocks(left: Shape, right: Shape) -> bool:
    """Say whether two rankings of these shapes come apart into blocks, whatever items they share."""
    if not (left.is_exhaustive and right.is_exhaustive):
        return False
    return left.is_full or right.is_full or max(left.n_ties, right.n_ties) <= 1


def matching_of(overlap: Overlap) -> Matching:
    """Return the matched positions of two rankings without free items.

    Raises
    ------
    ExactnessError
        If a group of buckets is linked in more ways than a block allows.
    """
    shared = overlap.counts[:-1, :-1] > 0
    rows, columns = positions(overlap.left_shape), positions(overlap.right_shape)
    row_degree, column_degree = shared.sum(axis=1), shared.sum(axis=0)
    singles: list[tuple[int, int]] = []
    blocks: list[Block] = []
    for i in range(len(rows)):
        inside = np.flatnonzero(shared[i])
        wide = inside[column_degree[inside] > 1]
        if row_degree[i] > 1:
            blocks.append(block_around(i, inside, wide, shared, rows, columns, row_degree))
        elif not len(wide) and len(rows[i]) == 1:
            singles.append((rows[i][0], columns[inside[0]][0]))
        elif not len(wide):
            blocks.append(Block(rows[i], columns[inside[0]], NOTHING, NOTHING))
    for j in np.flatnonzero(column_degree > 1):
        inside = np.flatnonzero(shared[:, j])
        if not (row_degree[inside] > 1).any():
            blocks.append(Block(joined(rows, inside), columns[j], NOTHING, NOTHING))
    pairs = np.array(singles, dtype=np.int64).reshape(-1, 2)
    return Matching(pairs[:, 0], pairs[:, 1], tuple(blocks))


def block_around(
    i: int,
    inside: Indices,
    wide: Indices,
    shared: Mask,
    rows: list[IntArray],
    columns: list[IntArray],
    row_degree: IntArray,
) -> Block:
    """Return the block of a left bucket that meets several right ones, of which ``wide`` meet other left ones."""
    if not len(wide):
        return Block(rows[i], joined(columns, inside), NOTHING, NOTHING)
    others = np.flatnonzero(shared[:, wide[0]])
    others = others[others != i]
    if len(wide) > 1 or (row_degree[others] > 1).any():
        raise ExactnessError(
            "two rankings with several ties each overlap in a chain of buckets, for which there is no exact formula; "
            "use method='auto' or rk.MonteCarlo"
        )
    return Block(rows[i], columns[wide[0]], joined(rows, others), joined(columns, inside[inside != wide[0]]))


def positions(shape: Shape) -> list[IntArray]:
    """Return the positions that each bucket occupies."""
    ends = np.cumsum(shape.sizes)
    return [np.arange(end - size, end, dtype=np.int64) for end, size in zip(ends, shape.sizes, strict=True)]


def joined(parts: list[IntArray], which: Indices) -> IntArray:
    """Return the positions of several buckets together."""
    return np.concatenate([parts[i] for i in which]) if len(which) else NOTHING

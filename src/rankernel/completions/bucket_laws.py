"""Where items stand in a uniform completion: all that kernels of places see of a ranking.

Items of one bucket are exchangeable and share one law of their places. It depends on where the bucket begins and ends
among the listed items and on how many are listed, so that many rankings have few laws between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, Indices, IntArray
from rankernel.rankings import Rankings, first_and_inverse


@dataclass(frozen=True, eq=False)
class BucketLaws:
    """The laws of the places of all items of some rankings.

    Attributes
    ----------
    shape_of : array of shape (n_rankings,)
        Which shape each ranking has.
    sizes : array of shape (n_shapes, 1 + n_buckets)
        How many items of a ranking of each shape are free, and in each bucket.
    law_of : array of shape (n_shapes, 1 + n_buckets)
        Which law they have; -1 where there are none.
    laws : array of shape (n_laws, n_items)
        The probability of each place.
    """

    shape_of: Indices
    sizes: IntArray
    law_of: Indices
    laws: FloatArray

    def of_items(self, X: Rankings) -> Indices:
        """Return which law each item of each ranking has."""
        return self.law_of[self.shape_of[:, None], X.ranks + 1]

    def items_with(self, X: Rankings, codes: Indices) -> tuple[IntArray, IntArray, IntArray]:
        """Return the items of buckets that have a code: where those of each ranking begin, the items, their codes.

        Parameters
        ----------
        X : Rankings
            The rankings.
        codes : array of shape (n_shapes, 1 + n_buckets)
            A code for the free items and for each bucket, negative for items to leave out.
        """
        starts = np.zeros(len(X) + 1, dtype=np.int64)
        items, chosen = _loops.position_sums.chosen_items(X.ranks, self.shape_of, codes, starts)
        return starts, items, chosen


def bucket_laws(X: Rankings) -> BucketLaws:
    """Return the laws of the places of all items.

    Examples
    --------
    One item first, two behind it, one free: wherever it falls, the others make room.

    >>> found = bucket_laws(Rankings([[0, 1, 1, -1]]))
    >>> found.laws[found.law_of[0]].round(3)
    array([[0.25 , 0.25 , 0.25 , 0.25 ],
           [0.75 , 0.25 , 0.   , 0.   ],
           [0.   , 0.25 , 0.375, 0.375]])
    """
    n_items = X.n_items
    all_sizes = np.zeros((len(X), int(X.ranks.max(initial=-1)) + 2), dtype=np.int32)
    _loops.position_sums.count_items(X.ranks, all_sizes)
    first, shape_of = first_and_inverse(all_sizes)
    sizes = all_sizes[first].astype(np.int64)
    ends = np.cumsum(sizes[:, 1:], axis=1)
    listed = np.repeat(n_items - sizes[:, :1], ends.shape[1], axis=1)
    buckets = np.stack([listed, ends - sizes[:, 1:], ends], axis=2)
    everywhere = np.broadcast_to([n_items, 0, n_items], (len(sizes), 1, 3))  # a free item
    described = np.concatenate([everywhere, buckets], axis=1)[sizes > 0]
    kinds, inverse = np.unique(described, axis=0, return_inverse=True)
    law_of = np.full(sizes.shape, -1, dtype=np.intp)
    law_of[sizes > 0] = inverse.ravel()
    laws = np.empty((len(kinds), n_items))
    _loops.position_sums.fill_laws(kinds, laws)
    return BucketLaws(shape_of, sizes, law_of, laws)

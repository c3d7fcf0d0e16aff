"""Features of kernels that add up over items by their places: short where only the first places are told apart.

Lists of k items know nothing of the places behind them: whatever comes after place k is one place to them. So the
features of an item are at most k + 1 numbers, and those of all unlisted items are the same; as the features of all
items together always add up to the same sum, taking that share from everyone changes the kernel by a constant only,
and leaves few numbers that are not 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankernel import _loops
from rankernel._utils.arrays import FloatArray
from rankernel.completions.marginals import position_distributions
from rankernel.errors import RankingError
from rankernel.gram.exact.features import means_of_seen
from rankernel.gram.poset_rows import PartialOrders, Rows
from rankernel.kernels.base import Kernel
from rankernel.linear_forms import PlaceForm
from rankernel.rankings import Rankings

TOLD_APART = 1e-12  # probabilities of two places that differ by more


@dataclass(frozen=True, eq=False)
class PlaceFeatures:
    """Features of rankings that tell apart some first places.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    n_items : int
        The number of items, and of places.
    depth : int
        How many places are told apart; those behind them are one.
    factor : array of shape (depth + 1, n_numbers)
        The features of each of these places, the one that stands for all others first: triangular.
    """

    kernel: Kernel
    n_items: int
    depth: int
    factor: FloatArray

    @classmethod
    def of(cls, kernel: Kernel, places: PlaceForm, depth: int) -> PlaceFeatures:
        """Make the features of a kernel."""
        behind, first = places.factor[depth:].mean(axis=0), places.factor[:depth]
        triangle: FloatArray = np.asarray(np.linalg.qr(np.vstack([behind, first]).T, mode="r"))
        return cls(kernel, len(places.factor), depth, np.ascontiguousarray(triangle.T))

    @property
    def n_numbers(self) -> int:
        """How many features an item has."""
        return int(self.factor.shape[1])

    def dense(self, X: Rows) -> FloatArray:
        """Return the features of all items side by side: shape (n_rankings, n_items * n_numbers)."""
        if isinstance(X, PartialOrders):
            laws = means_of_seen(X, "positions")
            found = self.of_laws(laws.reshape(-1, self.n_items)).reshape(*laws.shape[:2], -1)
        else:
            known = position_distributions(X)
            found = self.of_laws(known.pmfs)[known.of_items(X)]
        return found.reshape(len(X), -1)

    def sparse(self, X: Rankings) -> Any:
        """Return features, most of them 0, whose inner products are the kernel: one more column holds the constant."""
        from scipy.sparse import csr_array

        known, constant = position_distributions(X), self.constant
        some, left = known.pmf_of >= 0, self.of_laws(known.pmfs)
        if constant > 0:
            left -= self.factor[0]
            some &= np.asarray(known.pmfs[:, : self.depth].any(axis=1))[known.pmf_of]
        starts, items, chosen = known.items_with(X, np.where(some, known.pmf_of, -1))
        ends, last = np.zeros(len(X) + 1, dtype=np.int64), np.sqrt(max(constant, 0.0))
        values, columns = _loops.place_sums.sparse_rows(starts, items, chosen, left, last, self.n_items, ends)
        shape = len(X), self.n_items * self.n_numbers + 1
        return csr_array((values, columns, ends), shape=shape)

    @property
    def constant(self) -> float:
        """What the kernel is more than the inner product of what is left.

        Where it is less, no column can hold it: all items keep their features, and few numbers are 0. That is so for
        the Hamming kernel of lists of most items.
        """
        behind, first = self.factor[0], self.factor[1:]
        total = first.sum(axis=0) + (self.n_items - self.depth) * behind
        return float(behind @ (2 * total - self.n_items * behind))

    def of_laws(self, laws: FloatArray) -> FloatArray:
        """Return the mean features of an item whose place has a law; laws that tell more places apart are refused."""
        behind = laws[:, self.depth :]
        if np.ptp(behind, axis=1).max(initial=0) > TOLD_APART:
            raise RankingError(
                f"some ranking tells apart places behind place {self.depth}, which these features do not; fit them to "
                f"longer lists, say depth={self.n_items - 1}, or cut the lists: X.top({self.depth})"
            )
        return np.asarray(np.hstack([behind.sum(axis=1, keepdims=True), laws[:, : self.depth]]) @ self.factor)


def deepest_place(X: Rows) -> int:
    """Return behind how many places all are the same to all rankings."""
    if isinstance(X, PartialOrders):
        return X.n_items - 1
    changes = np.abs(np.diff(position_distributions(X).pmfs, axis=1)).max(axis=0, initial=0) > TOLD_APART
    return int(np.flatnonzero(changes)[-1]) + 1 if changes.any() else 0

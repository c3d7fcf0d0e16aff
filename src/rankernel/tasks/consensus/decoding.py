"""From a point in the space of a kernel back to a ranking: the full ranking whose features are nearest.

All full rankings are equally long there, so the nearest one has the largest inner product. What a kernel sees of a
ranking decides how hard that is: places make an assignment, mean ranks a sort, orders of pairs a Kemeny puzzle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankernel.arrays import FloatArray, Mask, RankArray
from rankernel.kemeny_search import kemeny_order
from rankernel.kernels.base import Kernel
from rankernel.linear_forms import SEEN, LinearForm, PlaceForm, Sight


@dataclass(frozen=True, eq=False)
class Decoded:
    """Full rankings near points in the space of a kernel.

    Attributes
    ----------
    ranks : array of shape (n_points, n_items)
        The rankings.
    values : array of shape (n_points,)
        The inner products of their features and the points.
    gaps : array of shape (n_points,)
        By how much another ranking could be better at most; 0 where it is proven that none is.
    """

    ranks: RankArray
    values: FloatArray
    gaps: FloatArray

    @property
    def exact(self) -> Mask:
        """Where it is proven that no ranking is better."""
        return np.asarray(self.gaps == 0)


@dataclass(frozen=True, eq=False)
class Decoder:
    """What finds the rankings near points in the space of a kernel, given by the mean of what it sees of rankings.

    Parameters
    ----------
    kernel : Kernel
        A multiple of Kendall, Spearman or a positional kernel; others are refused.
    n_items : int
        The number of items.
    limit : int
        The most items of a cycle of pairs to be solved exactly.
    n_starts : int
        How many local searches on longer ones.
    seed : int
        Decides where these start.
    """

    kernel: Kernel
    n_items: int
    limit: int = 12
    n_starts: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if not has_decoder(self.kernel, self.n_items):
            raise ValueError(
                f"{self.kernel} has no decoder: from its features to a ranking there is no known way; use Kendall, "
                "Spearman, Hamming, RankBiasedOverlap or another positional kernel"
            )

    @property
    def places(self) -> PlaceForm | None:
        """What two places have in common, if the kernel is the sum of that over items."""
        return self.kernel.terms()[0].kernel.places(self.n_items)

    @property
    def form(self) -> LinearForm:
        """The features of rankings, but for the scale of the kernel."""
        found = self.kernel.terms()[0].kernel.linear(self.n_items)
        assert found is not None
        return found

    @property
    def sees(self) -> Sight:
        """What the kernel sees of a ranking: pairs, ranks or positions."""
        return self.form.sees

    @property
    def how(self) -> str:
        """The way from features to a ranking, in words."""
        return {"positions": "linear assignment", "ranks": "sorted by mean rank", "pairs": "Kemeny search"}[self.sees]

    def products(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the inner products of points, row by row."""
        scale = self.kernel.terms()[0].weight
        return np.asarray(scale * np.einsum("id,id->i", self.form.features(left), self.form.features(right)))

    def decode(self, seen: FloatArray) -> Decoded:
        """Return the nearest ranking of each point.

        Parameters
        ----------
        seen : array of shape (n_points, ...)
            The points, as what the kernel sees: one number a pair or an item, or one an item and place.
        """
        ranks, gaps = np.empty((len(seen), self.n_items), dtype=np.int32), np.zeros(len(seen))
        if self.sees == "positions":
            self._assign(seen, ranks)
        elif self.sees == "ranks":
            ranks[np.arange(len(seen))[:, None], np.argsort(seen, axis=1, kind="stable")] = np.arange(self.n_items)
        else:
            self._search(seen, ranks, gaps)
        return Decoded(ranks, self.products(SEEN[self.sees](ranks), seen), gaps)

    def _assign(self, seen: FloatArray, ranks: RankArray) -> None:
        from scipy.optimize import linear_sum_assignment

        assert self.places is not None
        worth = seen @ self.places.matrix
        for row, own in zip(worth, ranks, strict=True):
            own[:] = linear_sum_assignment(row, maximize=True)[1]

    def _search(self, seen: FloatArray, ranks: RankArray, gaps: FloatArray) -> None:
        """Fill in the orders that contradict least, and how far from the best those can be that are not proven."""
        first, second = np.triu_indices(self.n_items, 1)
        leads = np.zeros((len(seen), self.n_items, self.n_items))
        leads[:, first, second], leads[:, second, first] = seen, -seen
        by_score = np.argsort(-leads.sum(axis=2), axis=1, kind="stable")
        ranks[np.arange(len(seen))[:, None], by_score] = np.arange(self.n_items)
        agreed = (SEEN["pairs"](ranks) * seen >= 0).all(axis=1)  # no pair against its majority: nothing can be better
        rng = np.random.default_rng(self.seed)
        for row in np.flatnonzero(~agreed):
            found = kemeny_order(np.maximum(leads[row], 0.0), self.limit, self.n_starts, rng)
            ranks[row, found.order] = np.arange(self.n_items)
            if not found.exact:
                own = seen[row : row + 1]
                gaps[row] = self.products(np.sign(own) - SEEN["pairs"](ranks[row : row + 1]), own)[0]


def has_decoder(kernel: Kernel, n_items: int) -> bool:
    """Say whether there is a way from the features of a kernel back to a ranking.

    It must be linear in what it sees, and all full rankings equally long: by their places, or by a distance.
    """
    terms = kernel.terms()
    only = terms[0].kernel
    invariant = only.places(n_items) is not None or only.argument is not None
    return len(terms) == 1 and only.linear(n_items) is not None and invariant

"""Pre-images of points in the feature space of a kernel: the full ranking with the nearest features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices, Mask, RankArray
from rankernel.kernels.algebra import Term, terms
from rankernel.kernels.base import Kernel
from rankernel.linear_features import STATISTICS, LinearFeatures, Statistic, centred_ranks, uniform_mean
from rankernel.models.kemeny_search import kemeny_order

ROUNDING = 1e-12  # of what an item is worth at a place, against the largest


def best_assignment(worth: FloatArray, mean_places: FloatArray) -> Indices:
    """Return the place of each item, worth most in all; where that leaves a choice, by the items' mean places.

    Parameters
    ----------
    worth : array of shape (n_items, n_items)
        What each item is worth at each place.
    mean_places : array of shape (n_items,)
        Where each item stands on average.

    Examples
    --------
    Only the first place counts, and the last item is worth most there:

    >>> best_assignment(np.array([[1.0, 0, 0], [1, 0, 0], [2, 0, 0]]), np.array([1.0, 0.5, 1.5]))
    array([2, 1, 0])
    """
    from scipy.optimize import linear_sum_assignment

    places = linear_sum_assignment(worth, maximize=True)[1]
    order = np.where(equally_good(worth, places), np.outer(mean_places, places), -np.inf)
    return np.asarray(places[linear_sum_assignment(order, maximize=True)[1]])


def equally_good(worth: FloatArray, places: Indices) -> Mask:
    """Return for each two items whether the first could have the place of the second and the whole be worth as much.

    Places get prices, by the shortest ways along what items lose where others stand, at which no item would rather have
    another place. Whoever moves in an assignment that is as good moves to a place that leaves it as well off.
    """
    loss = worth[np.arange(len(worth)), places][:, None] - worth[:, places]
    rounding = ROUNDING * float(np.abs(worth).max(initial=0.0))
    prices, before = np.zeros(len(worth)), np.full(len(worth), np.inf)
    while (before - prices > rounding / len(worth)).any():
        prices, before = np.minimum(prices, (prices[:, None] + loss).min(axis=0)), prices
    return np.asarray(prices[:, None] + loss - prices <= rounding)


LIMIT = 16  # items of a cycle that are solved exactly: three milliseconds


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
        A multiple of Kendall, Spearman or a positional kernel, or a sum of such that see the same; others are refused.
    n_items : int
        The number of items.
    limit : int
        The most items of a cycle of pairs to be solved exactly.
    n_starts : int
        How many local searches on longer ones.
    rng : int
        Decides where these start.
    """

    kernel: Kernel
    n_items: int
    limit: int = LIMIT
    n_starts: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if not has_decoder(self.kernel, self.n_items):
            raise ValueError(
                f"{self.kernel} has no decoder: no way from its features back to a ranking is built in; use Kendall, "
                "Spearman, Hamming, RankBiasedOverlap or another positional kernel, or a sum of positional ones"
            )

    @cached_property
    def sees(self) -> Statistic:
        """What the kernel sees of a ranking: pairs, ranks or positions."""
        found = sight_of(self.kernel, self.n_items)
        assert found is not None
        return found

    @property
    def how(self) -> str:
        """The way from features to a ranking, in words."""
        return {"positions": "linear assignment", "ranks": "sorted by mean rank", "pairs": "Kemeny search"}[self.sees]

    @cached_property
    def constant(self) -> float:
        """What the kernel adds for any two rankings."""
        one = np.arange(self.n_items, dtype=np.int32)[None]
        alike = [term for term in terms(self.kernel) if is_constant(term, self.n_items)]
        return float(sum(term.weight * term.kernel.matrix(one, one).item() for term in alike))

    @cached_property
    def unit(self) -> float:
        """The square of the feature of a pair, or of a rank."""
        one = np.zeros_like(uniform_mean(self.sees, self.n_items))
        one[:, :1] = 1.0
        found = varying(self.kernel, self.n_items)
        return float(
            sum(term.weight * (features_of(term.kernel, self.n_items).transform(one) ** 2).sum() for term in found)
        )

    @cached_property
    def places(self) -> FloatArray:
        """What two places have in common."""
        found = varying(self.kernel, self.n_items)
        return np.asarray(sum(term.weight * place_matrix(term.kernel, self.n_items) for term in found))

    def weighed(self, seen: FloatArray) -> FloatArray:
        """Return what is worth how much at points: their inner products with others are plain sums of these."""
        return np.asarray(seen @ self.places if self.sees == "positions" else self.unit * seen)

    def products(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the inner products of points, row by row."""
        return row_sums(self.weighed(left) * right) + self.constant

    def decode(self, seen: FloatArray) -> Decoded:
        """Return the nearest ranking of each point.

        Parameters
        ----------
        seen : array of shape (n_points, ...)
            The points, as what the kernel sees: one number a pair or an item, or one an item and place.
        """
        ranks, gaps = np.empty((len(seen), self.n_items), dtype=np.int32), np.zeros(len(seen))
        worth = self.weighed(seen)
        if self.sees == "positions":
            for own, of_places, means in zip(ranks, worth, seen @ np.arange(self.n_items), strict=True):
                own[:] = best_assignment(of_places, means)
        elif self.sees == "ranks":
            ranks[np.arange(len(seen))[:, None], np.argsort(seen, axis=1, kind="stable")] = np.arange(self.n_items)
        else:
            self._search(seen, ranks, gaps)
        return Decoded(ranks, row_sums(worth * STATISTICS[self.sees](ranks)) + self.constant, gaps)

    def _search(self, seen: FloatArray, ranks: RankArray, gaps: FloatArray) -> None:
        """Fill in the orders that contradict least, and how far from the best those can be that are not proven."""
        first, second = np.triu_indices(self.n_items, 1)
        leads = np.zeros((len(seen), self.n_items, self.n_items))
        leads[:, first, second], leads[:, second, first] = seen, -seen
        by_score = np.argsort(-leads.sum(axis=2), axis=1, kind="stable")  # the order of mean places
        ranks[np.arange(len(seen))[:, None], by_score] = np.arange(self.n_items)
        agreed = (STATISTICS["pairs"](ranks) * seen >= 0).all(
            axis=1
        )  # no pair against its majority: nothing can be better
        rng = np.random.default_rng(self.seed)
        for row in np.flatnonzero(~agreed):
            sorted_items = by_score[row]  # of equally good orders the search takes that which begins with the first
            wins = np.maximum(leads[row][np.ix_(sorted_items, sorted_items)], 0.0)
            found = kemeny_order(wins, self.limit, self.n_starts, rng)
            ranks[row, sorted_items[found.order]] = np.arange(self.n_items)
            gaps[row] = 2 * self.unit * found.gap  # a pair that is turned round counts for and no longer against


# ---------------------------------------------------------------------- what a kernel sees


def has_decoder(kernel: Kernel, n_items: int) -> bool:
    """Say whether there is a way from the features of a kernel back to a ranking."""
    return sight_of(kernel, n_items) is not None


def sight_of(kernel: Kernel, n_items: int) -> Statistic | None:
    """Return what all parts of a kernel see, if it is known and enough for a decoder.

    A part must be linear in what it sees, and all full rankings equally long: by their places, or by a distance. Mean
    ranks can be told from positions, so that these serve a sum of both.
    """
    sights = set()
    for term in varying(kernel, n_items):
        facts = term.kernel.facts(n_items)
        if facts.features is None or (facts.positions is None and facts.distance is None):
            return None
        sights.add(facts.features.statistic)
    if len(sights) < 2:
        return sights.pop() if sights else "ranks"
    return None if "pairs" in sights else "positions"


def varying(kernel: Kernel, n_items: int) -> list[Term]:
    """Return the terms of a kernel that are not the same for all rankings."""
    return [term for term in terms(kernel) if not is_constant(term, n_items)]


def is_constant(term: Term, n_items: int) -> bool:
    """Say whether a term is the same for all rankings: a constant, or anything of one item."""
    return term.kernel.facts(n_items).max_dimension == 1


def features_of(kernel: Kernel, n_items: int) -> LinearFeatures:
    """Return the features of a linear kernel."""
    features = kernel.facts(n_items).features
    assert features is not None
    return features


def place_matrix(kernel: Kernel, n_items: int) -> FloatArray:
    """Return what two places have in common, to a positional kernel or to one that sees ranks."""
    positions = kernel.facts(n_items).positions
    if positions is not None:
        return positions.matrix
    of_place = features_of(kernel, n_items).transform(centred_ranks(np.arange(n_items, dtype=np.int32)[None]))[0]
    return np.outer(of_place, of_place)


def row_sums(values: FloatArray) -> FloatArray:
    """Return the sum of each row, whatever its shape."""
    return np.asarray(values.reshape(len(values), -1).sum(axis=1))

"""Pre-images: the full ranking nearest to a point in the feature space of a kernel.

All full rankings have the same norm there, so the nearest one has the largest inner product with the point. The
statistic in which the kernel is linear determines the algorithm: linear assignment for positions, sorting for ranks, a
Kemeny search for signs of pairs. Among equally near rankings, items are ordered by their mean positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rankernel._utils import FloatArray, Indices, Mask, RankArray
from rankernel.distances import STATISTICS, LinearFeatures, Statistic, centred_ranks, uniform_mean
from rankernel.errors import ArgumentValueError
from rankernel.kernels.algebra import Term, terms
from rankernel.kernels.base import Kernel
from rankernel.models.kemeny_search import kemeny_order

LIMIT = 16  # items of a majority cycle that is solved exactly, in 3 ms
ROUNDING = 1e-12  # relative to the largest entry of a score matrix


@dataclass(frozen=True, eq=False)
class Decoded:
    """Full rankings near points in the feature space of a kernel.

    Attributes
    ----------
    ranks : array of shape (n_points, n_items)
        The positions of the items.
    values : array of shape (n_points,)
        The inner products of their features with the points.
    gaps : array of shape (n_points,)
        Upper bounds on the difference to the largest inner product; 0 if the ranking is proven optimal.
    """

    ranks: RankArray
    values: FloatArray
    gaps: FloatArray

    @property
    def exact(self) -> Mask:
        """Whether each ranking is proven optimal."""
        return np.asarray(self.gaps == 0)


@dataclass(frozen=True, eq=False)
class Decoder:
    """Finds the full rankings nearest to points, which are given by means of the kernel's statistic.

    Parameters
    ----------
    kernel : Kernel
        A multiple of Kendall, Spearman or a positional kernel, or a sum of such kernels of the same statistic; other
        kernels raise an error.
    n_items : int
        The number of items.
    limit : int
        The largest number of items of a majority cycle that is solved exactly.
    n_starts : int
        The number of local searches on larger cycles.
    seed : int
        The seed of their starts.
    """

    kernel: Kernel
    n_items: int
    limit: int = LIMIT
    n_starts: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if not has_decoder(self.kernel, self.n_items):
            raise ArgumentValueError(
                "kernel",
                self.kernel,
                "Kendall, Spearman, Hamming, RankBiasedOverlap or another positional kernel, or a sum of positional "
                "kernels, whose pre-images are known",
            )

    @cached_property
    def statistic(self) -> Statistic:
        """The statistic in which the kernel is linear: pairs, ranks or positions."""
        result = common_statistic(self.kernel, self.n_items)
        assert result is not None
        return result

    @property
    def how(self) -> str:
        """Description of the algorithm."""
        algorithms = {"positions": "linear assignment", "ranks": "sorted by mean rank", "pairs": "Kemeny search"}
        return algorithms[self.statistic]

    @cached_property
    def constant(self) -> float:
        """The sum of the constant terms of the kernel."""
        one = np.arange(self.n_items, dtype=np.int32)[None]
        constant = [term for term in terms(self.kernel) if is_constant(term, self.n_items)]
        return float(sum(term.weight * term.kernel.matrix(one, one).item() for term in constant))

    @cached_property
    def scale(self) -> float:
        """The squared feature of a pair, or of a rank."""
        one = np.zeros_like(uniform_mean(self.statistic, self.n_items))
        one[:, :1] = 1.0
        squares = (
            term.weight * (linear_features(term.kernel, self.n_items).transform(one) ** 2).sum()
            for term in varying_terms(self.kernel, self.n_items)
        )
        return float(sum(squares))

    @cached_property
    def position_matrix(self) -> FloatArray:
        """The kernel between positions of one item."""
        varying = varying_terms(self.kernel, self.n_items)
        return np.asarray(sum(term.weight * position_matrix(term.kernel, self.n_items) for term in varying))

    def scores(self, means: FloatArray) -> FloatArray:
        """Return coefficients of the statistic whose sums are inner products with the points."""
        return np.asarray(means @ self.position_matrix if self.statistic == "positions" else self.scale * means)

    def products(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the inner products of points, row by row."""
        return row_sums(self.scores(left) * right) + self.constant

    def decode(self, means: FloatArray) -> Decoded:
        """Return the nearest ranking of each point.

        Parameters
        ----------
        means : array of shape (n_points, ...)
            The points, as means of the statistic: one number per pair or item, or one per item and position.
        """
        ranks, gaps = np.empty((len(means), self.n_items), dtype=np.int32), np.zeros(len(means))
        scores = self.scores(means)
        if self.statistic == "positions":
            for row, score, positions in zip(ranks, scores, means @ np.arange(self.n_items), strict=True):
                row[:] = best_assignment(score, positions)
        elif self.statistic == "ranks":
            ranks[np.arange(len(means))[:, None], np.argsort(means, axis=1, kind="stable")] = np.arange(self.n_items)
        else:
            self._search(means, ranks, gaps)
        return Decoded(ranks, row_sums(scores * STATISTICS[self.statistic](ranks)) + self.constant, gaps)

    def _search(self, means: FloatArray, ranks: RankArray, gaps: FloatArray) -> None:
        """Write the Kemeny orders and the bounds on their distance to the optimum."""
        first, second = np.triu_indices(self.n_items, 1)
        margins = np.zeros((len(means), self.n_items, self.n_items))
        margins[:, first, second], margins[:, second, first] = means, -means
        by_position = np.argsort(-margins.sum(axis=2), axis=1, kind="stable")
        ranks[np.arange(len(means))[:, None], by_position] = np.arange(self.n_items)
        optimal = (STATISTICS["pairs"](ranks) * means >= 0).all(axis=1)  # agrees with all majorities
        rng = np.random.default_rng(self.seed)
        for row in np.flatnonzero(~optimal):
            items = by_position[row]  # the search prefers lower indices among equally good orders
            wins = np.maximum(margins[row][np.ix_(items, items)], 0.0)
            result = kemeny_order(wins, self.limit, self.n_starts, rng)
            ranks[row, items[result.order]] = np.arange(self.n_items)
            gaps[row] = 2 * self.scale * result.gap  # reversing a pair changes its sign from -1 to 1


# ---------------------------------------------------------------------- properties of kernels


def has_decoder(kernel: Kernel, n_items: int) -> bool:
    """Return whether pre-images of a kernel can be computed."""
    return common_statistic(kernel, n_items) is not None


def common_statistic(kernel: Kernel, n_items: int) -> Statistic | None:
    """Return the statistic in which all terms of a kernel are linear, if there is one with equal norms of all rankings.

    Centred ranks are a function of positions, so positions serve a sum of both.
    """
    statistics: set[Statistic] = set()
    for term in varying_terms(kernel, n_items):
        facts = term.kernel.facts(n_items)
        if facts.features is None or (facts.positions is None and facts.distance is None):
            return None
        statistics.add(facts.features.statistic)
    if len(statistics) < 2:
        return statistics.pop() if statistics else "ranks"
    return None if "pairs" in statistics else "positions"


def varying_terms(kernel: Kernel, n_items: int) -> list[Term]:
    """Return the terms of a kernel that are not constant."""
    return [term for term in terms(kernel) if not is_constant(term, n_items)]


def is_constant(term: Term, n_items: int) -> bool:
    """Return whether a term has the same value for all rankings."""
    return term.kernel.facts(n_items).max_dimension == 1


def linear_features(kernel: Kernel, n_items: int) -> LinearFeatures:
    """Return the features of a linear kernel."""
    features = kernel.facts(n_items).features
    assert features is not None
    return features


def position_matrix(kernel: Kernel, n_items: int) -> FloatArray:
    """Return the kernel between positions of one item, of a positional kernel or of one that is linear in ranks."""
    positions = kernel.facts(n_items).positions
    if positions is not None:
        return positions.matrix
    one = linear_features(kernel, n_items).transform(centred_ranks(np.arange(n_items, dtype=np.int32)[None]))[0]
    return np.outer(one, one)


def row_sums(values: FloatArray) -> FloatArray:
    """Return the sum over all axes but the first."""
    return np.asarray(values.reshape(len(values), -1).sum(axis=1))


# ---------------------------------------------------------------------- linear assignment


def best_assignment(scores: FloatArray, mean_positions: FloatArray) -> Indices:
    """Return the positions of the items with the largest total score; ties are broken by mean positions.

    Parameters
    ----------
    scores : array of shape (n_items, n_items)
        The score of each item at each position.
    mean_positions : array of shape (n_items,)
        The mean position of each item.

    Examples
    --------
    Only the first position counts, and the last item has the highest score there:

    >>> best_assignment(np.array([[1.0, 0, 0], [1, 0, 0], [2, 0, 0]]), np.array([1.0, 0.5, 1.5]))
    array([2, 1, 0])
    """
    from scipy.optimize import linear_sum_assignment

    positions = linear_sum_assignment(scores, maximize=True)[1]
    order = np.where(exchangeable(scores, positions), np.outer(mean_positions, positions), -np.inf)
    return np.asarray(positions[linear_sum_assignment(order, maximize=True)[1]])


def exchangeable(scores: FloatArray, positions: Indices) -> Mask:
    """Return whether an item has the position of another item in some optimal assignment.

    By complementary slackness these are the pairs of zero reduced cost under optimal dual prices of the positions,
    which are shortest paths in the graph of losses (Bellman-Ford).
    """
    loss = scores[np.arange(len(scores)), positions][:, None] - scores[:, positions]
    rounding = ROUNDING * float(np.abs(scores).max(initial=0.0))
    prices, before = np.zeros(len(scores)), np.full(len(scores), np.inf)
    while (before - prices > rounding / len(scores)).any():
        prices, before = np.minimum(prices, (prices[:, None] + loss).min(axis=0)), prices
    return np.asarray(prices[:, None] + loss - prices <= rounding)

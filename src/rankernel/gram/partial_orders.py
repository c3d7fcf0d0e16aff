"""Partial orders as rows and columns of a Gram matrix: pairwise preferences that are not all rankings.

A row whose order is a ranking (ordered buckets and free items) is kept as one: everything about it is quick. Any other
row is its closed relation, and what is needed of it comes from its linear extensions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel.completions.couplings import Iid
from rankernel.completions.draws import PURPOSE, Draws, effective_sizes, warn_if_low
from rankernel.completions.enumerate import count_completions, enumerate_completions
from rankernel.completions.keys import FullRanks, check_draws
from rankernel.completions.linear_extensions import count, enumerate_extensions, marginals
from rankernel.completions.models import CompletionModel
from rankernel.completions.partial_orders import draw_relations, relation_streams
from rankernel.completions.relations import Floats, Relation
from rankernel.completions.streams import row_streams
from rankernel.encoding import FREE, RankArray
from rankernel.errors import RankingError
from rankernel.gram import pair_moments
from rankernel.gram.by_draws import Embeddings
from rankernel.preferences import Preferences, bucket_ranks, disagreements
from rankernel.rankings import Rankings, as_rankings, first_and_inverse

__all__ = ["Data", "PartialOrders", "as_data", "as_partial_orders", "check_same_items"]

Moments = tuple[Floats, Floats]


@dataclass(frozen=True, eq=False)
class PartialOrders:
    """Partial orders of one set of items.

    Attributes
    ----------
    ranks : array of shape (n_orders, n_items)
        The ranks of rows that are rankings; nothing but -1 in the others.
    packed : array of shape (n_orders, n_items, n_bytes)
        The relations of rows that are not rankings, one bit a pair; zeros in the others.
    counts : array of shape (n_orders,)
        How many voters have each order.
    """

    ranks: RankArray
    packed: NDArray[np.uint8]
    counts: NDArray[np.int64]
    #: Marginal probabilities by relation, shared by all parts of one set so that each is computed once.
    known: dict[bytes, Moments] = field(default_factory=dict, repr=False)

    @classmethod
    def from_preferences(cls, preferences: Preferences) -> PartialOrders:
        """Build from preferences."""
        ranks = np.full((len(preferences), preferences.n_items), FREE, dtype=np.int32)
        packed = preferences.packed.copy()
        for row, user in enumerate(preferences):
            before = user.before[0]
            as_ranking = bucket_ranks(before)
            if not len(disagreements(before, as_ranking)):
                ranks[row], packed[row] = as_ranking, 0
        return cls(ranks, packed, preferences.counts)

    @classmethod
    def from_rankings(cls, rankings: Rankings) -> PartialOrders:
        """Build from rankings, rows that say nothing written as one bucket."""
        n_bytes = (rankings.n_items + 7) // 8
        packed = np.zeros((len(rankings), rankings.n_items, n_bytes), dtype=np.uint8)
        return cls(rankings.ranks, packed, rankings.counts)

    # ------------------------------------------------------------------ shape

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.ranks.shape[1])

    def __len__(self) -> int:
        return len(self.ranks)

    def __getitem__(self, rows: Any) -> PartialOrders:
        """Return some rows: a slice, an index array or a mask."""
        return PartialOrders(self.ranks[rows], self.packed[rows], self.counts[rows], self.known)

    @cached_property
    def is_ranking(self) -> NDArray[np.bool_]:
        """Which rows are rankings; one that says nothing is a single bucket, so a ranking lists some item."""
        return np.asarray((self.ranks != FREE).any(axis=1))

    def is_full(self) -> bool:
        """Say whether all rows are full rankings: then there would be no need of partial orders."""
        return False

    def is_exhaustive(self) -> bool:
        """Say whether all rows are rankings without free items."""
        return False

    @cached_property
    def codes(self) -> NDArray[np.void]:
        """One key a row, the same for equal orders."""
        rows = np.hstack([self.ranks.astype("<i4").view(np.uint8), self.packed.reshape(len(self), -1)])
        return np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1]))).ravel()

    def first_and_inverse(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return where each distinct order first occurs, and for each row which distinct one it is."""
        _, numbers = np.unique(self.codes, return_inverse=True)
        return first_and_inverse(numbers.reshape(-1, 1).astype(np.int32))

    def unique(self) -> PartialOrders:
        """Return the distinct orders in order of first appearance, their counts added up."""
        first, inverse = self.first_and_inverse()
        counts = np.zeros(len(first), dtype=np.int64)
        np.add.at(counts, inverse, self.counts)
        return PartialOrders(self.ranks[first], self.packed[first], counts, self.known)

    def relation(self, row: int) -> Relation:
        """Return the closed relation of a row that is not a ranking."""
        return np.unpackbits(self.packed[row], axis=1, count=self.n_items).astype(bool)

    # ------------------------------------------------------------------ exact marginals

    def prepare(self, max_down_sets: int | None = None) -> None:
        """Compute the marginals of all rows, or raise an :class:`ExactnessError` at the first that is too large."""
        for row in np.flatnonzero(~self.is_ranking).tolist():
            self.marginals(row, max_down_sets)

    def marginals(self, row: int, max_down_sets: int | None = None) -> Moments:
        """Return P(item x at position p) and P(item x before item y) of a row that is not a ranking."""
        key = self.packed[row].tobytes()
        if key not in self.known:
            self.known[key] = marginals(self.relation(row), max_down_sets)
        return self.known[key]

    def means(
        self, of_rankings: Callable[[Rankings], Floats], of_marginals: Callable[[Floats, Floats], Floats]
    ) -> Floats:
        """Return a mean for each row: all rankings at once, the other rows from their marginals."""
        names = tuple(map(str, range(self.n_items)))  # any will do
        rankings = Rankings._trusted(self.ranks[self.is_ranking], names, self.counts[self.is_ranking])
        values = of_rankings(rankings)
        out = np.empty((len(self), *values.shape[1:]))
        out[self.is_ranking] = values
        for row in np.flatnonzero(~self.is_ranking).tolist():
            out[row] = of_marginals(*self.marginals(row))
        return out

    def pair_means(self) -> Floats:
        """Return the mean sign of every pair of items: see :func:`rankernel.gram.pair_moments.pair_means`."""
        upper = np.triu_indices(self.n_items, 1)
        return self.means(pair_moments.pair_means, lambda _, pair: 2 * pair[upper] - 1)

    def position_marginals(self) -> Floats:
        """Return the probability of each item at each position."""
        return self.means(pair_moments.position_marginals, lambda position, _: position)

    def rank_means(self) -> Floats:
        """Return the mean position of each item, less ``(n - 1) / 2``."""
        places = np.arange(self.n_items) - (self.n_items - 1) / 2
        return self.means(pair_moments.rank_means, lambda position, _: position @ places)

    # ------------------------------------------------------------------ all completions

    def n_completions(self, limit: int, max_down_sets: int | None = None) -> int:
        """Return how many full rankings agree with any row, each row counted apart; stop counting above the limit."""
        total = 0
        for row, is_ranking in enumerate(self.is_ranking.tolist()):
            if total > limit:
                break
            total += count_completions(self.ranks[row]) if is_ranking else count(self.relation(row), max_down_sets)
        return total

    def all_completions(self, limit: int) -> Embeddings:
        """Return all completions of each row, equally weighted; ``limit`` is how many one row may have."""
        sets = [
            enumerate_completions(self.ranks[row], limit)
            if is_ranking
            else enumerate_extensions(self.relation(row), limit)
            for row, is_ranking in enumerate(self.is_ranking.tolist())
        ]
        sizes = np.array([len(full) for full in sets], dtype=np.int64)
        ranks = np.concatenate([*sets, np.empty((0, self.n_items), dtype=np.int16)]).astype(np.int32)
        return Embeddings(ranks, np.repeat(1 / sizes, sizes), np.concatenate([[0], np.cumsum(sizes)]))

    # ------------------------------------------------------------------ draws

    def draw(self, n_draws: int, model: CompletionModel, seed: int = 0, distinct_rows: bool = False) -> Draws:
        """Return independent draws of each row; those of a ranking are what :func:`rankernel.completions.draw` gives.

        As there, they depend on the seed and the order, and on the number of the row only with ``distinct_rows``.
        """
        check_draws(n_draws)
        ranks = np.empty((len(self), n_draws, self.n_items), dtype=np.int16)
        weights: Floats | None = None
        for mask, draw in ((self.is_ranking, draw_rankings), (~self.is_ranking, draw_others)):
            rows = np.flatnonzero(mask)
            if not len(rows):
                continue
            ranks[rows], their_weights = draw(self[rows], n_draws, model, seed, rows if distinct_rows else None)
            if their_weights is not None:
                weights = np.ones((len(self), n_draws)) if weights is None else weights
                weights[rows] = their_weights
        effective = effective_sizes(weights, ranks.shape)
        warn_if_low(effective, n_draws)
        return Draws(ranks, weights, 1, effective)


Rows = NDArray[np.intp] | None


def draw_rankings(
    X: PartialOrders, n_draws: int, model: CompletionModel, seed: int, rows: Rows
) -> tuple[FullRanks, Floats | None]:
    """Return draws and weights of orders that are all rankings."""
    return model.draw(X.ranks, n_draws, row_streams(X.ranks, seed, PURPOSE, rows), Iid())


def draw_others(
    X: PartialOrders, n_draws: int, model: CompletionModel, seed: int, rows: Rows
) -> tuple[FullRanks, Floats | None]:
    """Return draws and weights of orders of which none is a ranking."""
    relations = np.stack([X.relation(row) for row in range(len(X))])
    return draw_relations(relations, n_draws, relation_streams(X.packed, seed, PURPOSE, rows), model)


# ---------------------------------------------------------------------- the gate

Data = Rankings | PartialOrders


def as_data(data: Any) -> Data:
    """Return rankings as rankings, and preferences as rankings where every user has one, else as partial orders.

    Examples
    --------
    >>> type(as_data(Preferences.from_pairs([[("a", "b"), ("a", "c")]]))).__name__
    'Rankings'
    >>> type(as_data(Preferences.from_pairs([[("a", "b"), ("c", "d")]]))).__name__
    'PartialOrders'
    """
    if isinstance(data, PartialOrders):
        return data
    if not isinstance(data, Preferences):
        return as_rankings(data)
    orders = PartialOrders.from_preferences(data)
    if orders.is_ranking.all():
        return Rankings._trusted(orders.ranks, data.items, data.counts)
    return orders


def as_partial_orders(data: Data) -> PartialOrders:
    """Return rankings as partial orders, and partial orders as they are."""
    return data if isinstance(data, PartialOrders) else PartialOrders.from_rankings(data)


def check_same_items(X: Any, Y: Any) -> None:
    """Refuse two sets that name their items differently; sets without names are taken as they are."""
    if not (isinstance(X, Rankings | Preferences) and isinstance(Y, Rankings | Preferences)) or X.items == Y.items:
        return
    advice = (
        "Y.with_items(X.items)"
        if isinstance(Y, Rankings)
        else "X.with_items(Y.items)"
        if isinstance(X, Rankings)
        else "Preferences.from_pairs(Y.to_pairs(), X.items, Y.counts, Y.users)"
    )
    raise RankingError(f"X and Y name their items differently; align them first: {advice}")

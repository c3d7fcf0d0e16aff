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

from rankernel._utils.arrays import FloatArray, FullRanks, Indices, IntArray, Mask, RankArray
from rankernel._utils.checks import check_integer
from rankernel._utils.rng import row_streams
from rankernel.completions import marginals as of_rankings
from rankernel.completions.couplings import Iid
from rankernel.completions.draws import PURPOSE, CompletionModel, Draws, Uniform, draw_relations, relation_streams
from rankernel.completions.enumerate import enumerate_completions, n_completions
from rankernel.completions.linear_extensions import count_extensions, enumerate_extensions, extension_marginals
from rankernel.data import as_data
from rankernel.encoding import FREE
from rankernel.errors import ExactnessError
from rankernel.preferences import Preferences, bucket_ranks, disagreements
from rankernel.rankings import Rankings, unique_rows

Moments = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class PartialOrders:
    """Partial orders of one set of items."""

    ranks: RankArray  # (n_orders, n_items): the ranks of rows that are rankings; nothing but -1 in the others
    packed: NDArray[np.uint8]  # (n_orders, n_items, n_bytes): the relations of the others, one bit a pair; else zeros
    counts: IntArray  # (n_orders,): how many voters have each order
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
    def is_ranking(self) -> Mask:
        """Which rows are rankings; one that says nothing is a single bucket, so a ranking lists some item."""
        return np.asarray((self.ranks != FREE).any(axis=1))

    @property
    def n_voters(self) -> int:
        """Number of voters: the sum of the counts."""
        return int(self.counts.sum())

    @cached_property
    def codes(self) -> NDArray[np.void]:
        """One key a row, the same for equal orders."""
        rows = np.hstack([self.ranks.astype("<i4").view(np.uint8), self.packed.reshape(len(self), -1)])
        return np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1]))).ravel()

    def unique_indices(self) -> tuple[Indices, Indices]:
        """Return where each distinct order first occurs, and for each row which distinct one it is."""
        _, numbers = np.unique(self.codes, return_inverse=True)
        return unique_rows(numbers.reshape(-1, 1).astype(np.int32))

    def unique(self) -> PartialOrders:
        """Return the distinct orders in order of first appearance, their counts added up."""
        first, inverse = self.unique_indices()
        counts = np.zeros(len(first), dtype=np.int64)
        np.add.at(counts, inverse, self.counts)
        return PartialOrders(self.ranks[first], self.packed[first], counts, self.known)

    def relation(self, row: int) -> Mask:
        """Return the closed relation of a row that is not a ranking."""
        return np.unpackbits(self.packed[row], axis=1, count=self.n_items).astype(bool)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was made on the way: another process makes it again."""
        return {"ranks": self.ranks, "packed": self.packed, "counts": self.counts, "known": {}}

    # ------------------------------------------------------------------ exact marginals

    def prepare(self, max_down_sets: int | None = None) -> None:
        """Compute the marginals of all rows, or raise an :class:`ExactnessError` at the first that is too large."""
        for row in np.flatnonzero(~self.is_ranking).tolist():
            self.marginals(row, max_down_sets)

    def marginals(self, row: int, max_down_sets: int | None = None) -> Moments:
        """Return P(item x at position p) and P(item x before item y) of a row that is not a ranking."""
        key = self.packed[row].tobytes()
        if key not in self.known:
            self.known[key] = extension_marginals(self.relation(row), max_down_sets)
        return self.known[key]

    def seen_means(self, sees: str, n_draws: int = 0) -> FloatArray:
        """Return the mean of what a linear kernel sees of each row: all rankings at once, other rows one by one.

        Where that is out of reach, it is the mean over so many draws, or an :class:`ExactnessError` if they are none.
        """
        names = tuple(map(str, range(self.n_items)))  # any will do
        rankings = Rankings._trusted(self.ranks[self.is_ranking], names, self.counts[self.is_ranking])
        values = of_rankings.statistic_means(rankings, sees)
        out = np.empty((len(self), *values.shape[1:]))
        out[self.is_ranking] = values
        places = np.arange(self.n_items) - (self.n_items - 1) / 2
        seen: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
            "pairs": lambda _, pair: 2 * pair[np.triu_indices(self.n_items, 1)] - 1,
            "positions": lambda position, _: position,
            "ranks": lambda position, _: position @ places,
        }
        for row in np.flatnonzero(~self.is_ranking).tolist():
            try:
                out[row] = seen[sees](*self.marginals(row))
            except ExactnessError:
                if not n_draws:
                    raise
                drawn = self[row : row + 1].draw(n_draws, Uniform()).ranks[0].astype(np.int32)
                out[row] = of_rankings.statistic_means(Rankings._trusted(drawn, names), sees).mean(axis=0)
        return out

    def n_out_of_reach(self) -> int:
        """Return how many rows have no exact marginals."""
        return sum(not self.within_reach(row) for row in np.flatnonzero(~self.is_ranking).tolist())

    def within_reach(self, row: int) -> bool:
        """Say whether the marginals of a row that is not a ranking can be computed exactly."""
        try:
            self.marginals(row)
        except ExactnessError:
            return False
        return True

    # ------------------------------------------------------------------ all completions

    def n_completions(self, limit: int, max_down_sets: int | None = None) -> int:
        """Return how many full rankings agree with any row, each row counted apart; stop counting above the limit."""
        total = 0
        for row, is_ranking in enumerate(self.is_ranking.tolist()):
            if total > limit:
                break
            total += (
                n_completions(self.ranks[row]) if is_ranking else count_extensions(self.relation(row), max_down_sets)
            )
        return total

    def has_at_most(self, limit: int) -> bool:
        """Say whether the rows surely have no more completions than that together."""
        try:
            return self.n_completions(limit) <= limit
        except ExactnessError:
            return False

    def all_completions(self, limit: int) -> list[FullRanks]:
        """Return all completions of each row; ``limit`` is how many one row may have."""
        return [
            enumerate_completions(self.ranks[row], limit)
            if is_ranking
            else enumerate_extensions(self.relation(row), limit)
            for row, is_ranking in enumerate(self.is_ranking.tolist())
        ]

    # ------------------------------------------------------------------ draws

    def draw(self, n_draws: int, model: CompletionModel, seed: int = 0, rows: Numbers = None) -> Draws:
        """Return independent draws of each row; those of a ranking are what :func:`rankernel.completions.draw` gives.

        As there, they depend on the seed and the order, and with ``rows`` on the number of the row, too.
        """
        check_integer("n_draws", n_draws)
        ranks = np.empty((len(self), n_draws, self.n_items), dtype=np.int16)
        weights: FloatArray | None = None
        for mask, draw in ((self.is_ranking, draw_rankings), (~self.is_ranking, draw_others)):
            own = np.flatnonzero(mask)
            if not len(own):
                continue
            ranks[own], their_weights = draw(self[own], n_draws, model, seed, None if rows is None else rows[own])
            if their_weights is not None:
                weights = np.ones((len(self), n_draws)) if weights is None else weights
                weights[own] = their_weights
        draws = Draws(ranks, weights, 1)
        draws.warn_if_low()
        return draws


Numbers = IntArray | None


def draw_rankings(
    X: PartialOrders, n_draws: int, model: CompletionModel, seed: int, rows: Numbers
) -> tuple[FullRanks, FloatArray | None]:
    """Return draws and weights of orders that are all rankings."""
    return model.draw(X.ranks, n_draws, row_streams(X.ranks, seed, PURPOSE, rows), Iid())


def draw_others(
    X: PartialOrders, n_draws: int, model: CompletionModel, seed: int, rows: Numbers
) -> tuple[FullRanks, FloatArray | None]:
    """Return draws and weights of orders of which none is a ranking."""
    relations = np.stack([X.relation(row) for row in range(len(X))])
    return draw_relations(relations, n_draws, relation_streams(X.packed, seed, PURPOSE, rows), model)


# ---------------------------------------------------------------------- from data

Rows = Rankings | PartialOrders


def as_rows(data: Any, name: str = "X") -> Rows:
    """Return rankings, or partial orders where some user's preferences are no ranking.

    Rankings that say nothing (at most one bucket, whatever is free) are written in one way: all items tied.

    Examples
    --------
    >>> type(as_rows(Preferences.from_pairs([[("a", "b"), ("c", "d")]]))).__name__
    'PartialOrders'
    >>> as_rows([[0, -1, 0]]).ranks
    array([[0, 0, 0]], dtype=int32)
    """
    if isinstance(data, PartialOrders):
        return data
    given = as_data(data, name=name)
    if isinstance(given, Preferences):
        return PartialOrders.from_preferences(given)
    return given.canonical()


def as_partial_orders(data: Rows) -> PartialOrders:
    """Return rankings as partial orders, and partial orders as they are."""
    return data if isinstance(data, PartialOrders) else PartialOrders.from_rankings(data)

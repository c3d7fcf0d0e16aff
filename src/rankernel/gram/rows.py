"""Rows and columns of a Gram matrix: rankings or partial orders.

A partial order that is a ranking (ordered buckets and free items) is stored as its ranks, because everything about
rankings is fast. Any other partial order is stored as its transitively closed relation, and is handled through its
linear extensions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import FloatArray, FullRanks, Indices, IntArray, Mask, RankArray
from rankernel._utils.checks import check_integer
from rankernel._utils.rng import row_streams
from rankernel.completions import marginals as of_rankings
from rankernel.completions.draws import PURPOSE, CompletionModel, Iid, Uniform, draw_each, relation_streams
from rankernel.completions.linear_extensions import (
    FEW_DOWN_SETS,
    DownSets,
    count_extensions,
    decompose,
    enumerate_completions,
    enumerate_extensions,
    extension_marginals,
    n_completions,
)
from rankernel.data import as_data
from rankernel.errors import ExactnessError, RankingError
from rankernel.gram.evaluator import STEP
from rankernel.preferences import Preferences, bucket_ranks, disagreements
from rankernel.rankings import FREE, Rankings, sum_counts, unique_rows

MAX_PRICED = 8  # partial orders whose draws are priced
Moments = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class PartialOrders:
    """Partial orders of one set of items.

    ``ranks`` are those of rows that are rankings, -1 everywhere in other rows. ``packed`` holds the relations of the
    other rows, one bit for each pair of items. ``known`` and ``errors`` cache marginal probabilities by relation, or
    the error for a limit on the down-sets, and are shared by all parts of one set.
    """

    ranks: RankArray
    packed: NDArray[np.uint8]
    counts: IntArray
    known: dict[bytes, Moments] = field(default_factory=dict, repr=False)
    errors: dict[tuple[bytes, int | None], ExactnessError] = field(default_factory=dict, repr=False)

    @classmethod
    def from_preferences(cls, preferences: Preferences) -> PartialOrders:
        """Return the partial orders of preferences."""
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
        """Return the partial orders of canonical rankings."""
        n_bytes = (rankings.n_items + 7) // 8
        packed = np.zeros((len(rankings), rankings.n_items, n_bytes), dtype=np.uint8)
        return cls(rankings.ranks, packed, rankings.counts)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.ranks.shape[1])

    @property
    def n_voters(self) -> int:
        """Number of voters: the sum of the counts."""
        return int(self.counts.sum())

    def __len__(self) -> int:
        return len(self.ranks)

    def __getitem__(self, rows: Any) -> PartialOrders:
        """Return some rows: a slice, an index array or a mask."""
        return PartialOrders(self.ranks[rows], self.packed[rows], self.counts[rows], self.known, self.errors)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the cache."""
        return {"ranks": self.ranks, "packed": self.packed, "counts": self.counts, "known": {}, "errors": {}}

    def joined(self, other: PartialOrders) -> PartialOrders:
        """Return the rows of both."""
        return PartialOrders(
            np.concatenate([self.ranks, other.ranks]),
            np.concatenate([self.packed, other.packed]),
            np.concatenate([self.counts, other.counts]),
            self.known | other.known,
            self.errors | other.errors,
        )

    @cached_property
    def is_ranking(self) -> Mask:
        """Whether each row is a ranking."""
        return np.asarray((self.ranks != FREE).any(axis=1))

    def unique_indices(self) -> tuple[Indices, Indices]:
        """Return the first row of each distinct order, and for each row the number of its distinct order."""
        rows = np.hstack([self.ranks.astype("<i4").view(np.uint8), self.packed.reshape(len(self), -1)])
        codes = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1]))).ravel()
        _, numbers = np.unique(codes, return_inverse=True)
        return unique_rows(numbers.reshape(-1, 1).astype(np.int32))

    def unique(self) -> PartialOrders:
        """Return the distinct orders in order of first appearance, with their total counts."""
        return self._merged(*self.unique_indices())

    def _merged(self, first: Indices, inverse: Indices) -> PartialOrders:
        return replace(self[first], counts=sum_counts(self.counts, inverse, len(first)))

    def relation(self, row: int) -> Mask:
        """Return the closed relation of a row that is not a ranking."""
        return np.unpackbits(self.packed[row], axis=1, count=self.n_items).astype(bool)

    # ------------------------------------------------------------------ exact marginals

    def prepare(self, max_down_sets: int | None = None) -> None:
        """Compute the marginals of all rows, or raise an :class:`ExactnessError` at the first that is too large."""
        for row in np.flatnonzero(~self.is_ranking).tolist():
            self.marginals(row, max_down_sets)

    def marginals(self, row: int, max_down_sets: int | None = None) -> Moments:
        """Return P(item x at position p) and P(item x before item y) for a row that is not a ranking."""
        key = self.packed[row].tobytes()
        failed = key, max_down_sets
        if key not in self.known and failed not in self.errors:
            try:
                self.known[key] = extension_marginals(self.relation(row), max_down_sets)
            except ExactnessError as error:
                self.errors[failed] = error
        if key not in self.known:
            raise self.errors[failed]
        return self.known[key]

    def seen_means(self, sees: str, n_draws: int = 0) -> FloatArray:
        """Return the mean features of each row over its completions.

        Where the exact mean is out of reach, it is estimated from ``n_draws`` draws; with none, an
        :class:`ExactnessError` is raised.
        """
        names = tuple(map(str, range(self.n_items)))
        rankings = Rankings._trusted(self.ranks[self.is_ranking], names, self.counts[self.is_ranking])
        values = of_rankings.statistic_means(rankings, sees)
        out = np.empty((len(self), *values.shape[1:]))
        out[self.is_ranking] = values
        centred = np.arange(self.n_items) - (self.n_items - 1) / 2
        features: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
            "pairs": lambda _, pair: 2 * pair[np.triu_indices(self.n_items, 1)] - 1,
            "positions": lambda position, _: position,
            "ranks": lambda position, _: position @ centred,
        }
        for row in np.flatnonzero(~self.is_ranking).tolist():
            try:
                out[row] = features[sees](*self.marginals(row))
            except ExactnessError:
                if not n_draws:
                    raise
                drawn = self[row : row + 1].draw(n_draws, Uniform())[0][0].astype(np.int32)
                out[row] = of_rankings.statistic_means(Rankings._trusted(drawn, names), sees).mean(axis=0)
        return out

    def n_out_of_reach(self) -> int:
        """Return the number of voters whose marginals cannot be computed exactly."""
        n = 0
        for row in np.flatnonzero(~self.is_ranking).tolist():
            try:
                self.marginals(row)
            except ExactnessError:
                n += int(self.counts[row])
        return n

    # ------------------------------------------------------------------ completions

    def draw_seconds(self, n_draws: int) -> float:
        """Return the approximate time of the draws of one row, from the prime parts of some of the rows."""
        others = np.flatnonzero(~self.is_ranking)
        some = others[:: max(len(others) // MAX_PRICED, 1)]
        total = STEP["order"] * len(some)
        for row in some.tolist():
            stack = [decompose(self.relation(row))]
            while stack:
                part = stack.pop()
                stack += part.parts
                if part.kind == "prime":
                    lattice, size = DownSets.of(part.before, FEW_DOWN_SETS), len(part.items)
                    total += STEP["down-set"] * (FEW_DOWN_SETS if lattice is None else len(lattice.sets))
                    if lattice is None:
                        total += STEP["coupling"] * size**3 * np.log(size) * n_draws
        return total / max(len(some), 1) * len(others) / max(len(self), 1)

    def n_completions(self, limit: int, max_down_sets: int | None = None) -> int:
        """Return the total number of completions of all rows; counting stops above the limit."""
        total = 0
        for row, is_ranking in enumerate(self.is_ranking.tolist()):
            if total > limit:
                break
            total += (
                n_completions(self.ranks[row]) if is_ranking else count_extensions(self.relation(row), max_down_sets)
            )
        return total

    def has_at_most(self, limit: int) -> bool:
        """Whether all rows together are known to have at most ``limit`` completions."""
        try:
            return self.n_completions(limit) <= limit
        except ExactnessError:
            return False

    def all_completions(self, limit: int) -> list[FullRanks]:
        """Return all completions of each row; ``limit`` is the largest number for one row."""
        return [
            enumerate_completions(self.ranks[row], limit)
            if is_ranking
            else enumerate_extensions(self.relation(row), limit)
            for row, is_ranking in enumerate(self.is_ranking.tolist())
        ]

    def draw(
        self, n_draws: int, model: CompletionModel, seed: int = 0, numbers: IntArray | None = None
    ) -> tuple[FullRanks, FloatArray | None]:
        """Return independent draws of each row, and their importance weights if there are any.

        Draws depend on the seed and the order, and on the number of the row if ``numbers`` are given. Those of a row
        that is a ranking are the draws of :func:`rankernel.completions.draw`.
        """
        check_integer("n_draws", n_draws)
        ranks = np.empty((len(self), n_draws, self.n_items), dtype=np.int16)
        weights: FloatArray | None = None
        for is_ranking in (True, False):
            rows = np.flatnonzero(self.is_ranking == is_ranking)
            if not len(rows):
                continue
            some, own_numbers = self[rows], None if numbers is None else numbers[rows]
            if is_ranking:
                streams = row_streams(some.ranks, seed, PURPOSE, own_numbers)
                ranks[rows], found = model.draw(some.ranks, n_draws, streams, Iid())
            else:
                relations = np.stack([some.relation(row) for row in range(len(some))])
                streams = relation_streams(some.packed, seed, PURPOSE, own_numbers)
                ranks[rows], found = draw_each(model.draw_relation, relations, n_draws, self.n_items, streams)
            if found is not None:
                weights = np.ones((len(self), n_draws)) if weights is None else weights
                weights[rows] = found
        return ranks, weights


Rows = Rankings | PartialOrders


def as_rows(data: Any, name: str = "X") -> Rows:
    """Return data as rankings, or as partial orders if some preferences are not a ranking.

    Rankings that state no preference (at most one bucket, whatever is free) are all written as one bucket.
    """
    if isinstance(data, PartialOrders):
        return data
    given = as_data(data, name=name)
    if isinstance(given, Preferences):
        return PartialOrders.from_preferences(given)
    return given.canonical()


def as_partial_orders(data: Rows) -> PartialOrders:
    """Return rankings as partial orders."""
    return data if isinstance(data, PartialOrders) else PartialOrders.from_rankings(data)


def check_n_items(new: Rows, old: Rows, first: str = "X has", second: str = "Y") -> None:
    """Raise a RankingError if two sets of rankings have different numbers of items."""
    if new.n_items != old.n_items:
        raise RankingError(f"{first} {old.n_items} items and {second} {new.n_items}; both must rank the same items")


def rows_by_shape(X: Rows) -> list[Indices]:
    """Return groups of rows: rankings with the same bucket sizes and number of free items; partial orders one by one.

    Whether an exact value exists depends on the shapes only.
    """
    if isinstance(X, PartialOrders):
        return [np.array([row]) for row in range(len(X))]
    shapes = np.sort(X.ranks, axis=1)
    _, inverse = unique_rows(np.ascontiguousarray(shapes))
    return np.split(np.argsort(inverse, kind="stable"), np.cumsum(np.bincount(inverse))[:-1]) if len(X) else []

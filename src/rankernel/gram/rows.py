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
from rankernel.completions.draws import (
    CompletionModel,
    Coupling,
    Iid,
    Uniform,
    Weighted,
    draw_each,
    relation_streams,
    row_streams,
)
from rankernel.completions.linear_extensions import (
    FEW_DOWN_SETS,
    DownSets,
    all_completions,
    count_extensions,
    decompose,
    enumerate_extensions,
    extension_marginals,
    n_completions,
)
from rankernel.completions.marginals import statistic_means
from rankernel.data import as_data
from rankernel.errors import ExactnessError, RankingError
from rankernel.gram.evaluator import CACHED_NUMBERS, STEP
from rankernel.preferences import Preferences, bucket_ranks, disagreements
from rankernel.rankings import FREE, Rankings, sum_counts, unique_rows

MAX_PRICED = 8  # partial orders whose draws are priced
Moments = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class PartialOrders:
    """Partial orders of one set of items.

    ``ranks`` are those of rows that are rankings, -1 everywhere in other rows. ``packed`` holds the relations of the
    other rows, one bit for each pair of items. ``known`` caches marginal probabilities by relation, or the error for a
    limit on the down-sets, and is shared by all parts of one set.
    """

    ranks: RankArray
    packed: NDArray[np.uint8]
    counts: IntArray
    known: dict[Any, Moments | ExactnessError] = field(default_factory=dict, repr=False)

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
        return PartialOrders(self.ranks[rows], self.packed[rows], self.counts[rows], self.known)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the cache."""
        return {"ranks": self.ranks, "packed": self.packed, "counts": self.counts, "known": {}}

    @cached_property
    def is_ranking(self) -> Mask:
        """Whether each row is a ranking."""
        return np.asarray((self.ranks != FREE).any(axis=1))

    @property
    def others(self) -> list[int]:
        """The rows that are not rankings."""
        return np.flatnonzero(~self.is_ranking).tolist()

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
        for row in self.others:
            self.marginals(row, max_down_sets)

    def marginals(self, row: int, max_down_sets: int | None = None) -> Moments:
        """Return P(item x at position p) and P(item x before item y) for a row that is not a ranking."""
        key = self.packed[row].tobytes()
        found = self.known.get(key) or self.known.get((key, max_down_sets))
        if found is None:
            if len(self.known) * 2 * self.n_items**2 > CACHED_NUMBERS:
                self.known.clear()
            try:
                found = self.known[key] = extension_marginals(self.relation(row), max_down_sets)
            except ExactnessError as error:
                found = self.known[key, max_down_sets] = error
        if isinstance(found, ExactnessError):
            raise found
        return found

    def seen_means(self, sees: str, n_draws: int = 0) -> FloatArray:
        """Return the mean features of each row over its completions.

        Where the exact mean is out of reach, it is estimated from ``n_draws`` draws; with none, an
        :class:`ExactnessError` is raised.
        """
        names = tuple(map(str, range(self.n_items)))
        values = statistic_means(Rankings._trusted(self.ranks[self.is_ranking], names), sees)
        out = np.empty((len(self), *values.shape[1:]))
        out[self.is_ranking] = values
        centred = np.arange(self.n_items) - (self.n_items - 1) / 2
        features: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
            "pairs": lambda _, pair: 2 * pair[np.triu_indices(self.n_items, 1)] - 1,
            "positions": lambda position, _: position,
            "ranks": lambda position, _: position @ centred,
        }
        for row in self.others:
            try:
                out[row] = features[sees](*self.marginals(row))
            except ExactnessError:
                if not n_draws:
                    raise
                drawn = self[row : row + 1].draw(n_draws, Uniform())[0][0].astype(np.int32)
                out[row] = statistic_means(Rankings._trusted(drawn, names), sees).mean(axis=0)
        return out

    def n_out_of_reach(self) -> int:
        """Return the number of voters whose marginals cannot be computed exactly."""
        n = 0
        for row in self.others:
            try:
                self.marginals(row)
            except ExactnessError:
                n += int(self.counts[row])
        return n

    # ------------------------------------------------------------------ completions

    def count(self, limit: int, max_down_sets: int | None = None) -> int | None:
        """Return the number of completions of all rows; counting stops above the limit. None if it is unknown."""
        total = 0
        for row, is_ranking in enumerate(self.is_ranking.tolist()):
            if total > limit:
                break
            try:
                total += (
                    n_completions(self.ranks[row])
                    if is_ranking
                    else count_extensions(self.relation(row), max_down_sets)
                )
            except ExactnessError:
                return None
        return total

    def enumerate(self, limit: int) -> list[FullRanks]:
        """Return all completions of each row; ``limit`` is the largest number for one row."""
        return [
            all_completions(self.ranks[row], limit) if is_ranking else enumerate_extensions(self.relation(row), limit)
            for row, is_ranking in enumerate(self.is_ranking.tolist())
        ]

    def draw(self, n_draws: int, model: CompletionModel, seed: int = 0, coupling: Coupling | None = None) -> Weighted:
        """Return draws of each row, and their log-weights if there are any.

        Draws depend on the seed and the row. Those of a row that is a ranking are the draws of
        :func:`rankernel.completions.draw`; those of other partial orders are independent.
        """
        ranks, log_weights = np.empty((len(self), n_draws, self.n_items), np.int16), np.zeros((len(self), n_draws))
        weighted = False
        for rows in (np.flatnonzero(self.is_ranking), np.array(self.others, dtype=np.intp)):
            some = self[rows]
            if not len(rows):
                continue
            if self.is_ranking[rows[0]]:
                found = model.draw(some.ranks, n_draws, row_streams(some.ranks, seed), coupling or Iid())
            else:
                relations, streams = map(some.relation, range(len(some))), relation_streams(some.packed, seed)
                found = draw_each(model.draw_relation, relations, n_draws, self.n_items, streams)
            ranks[rows] = found[0]
            if found[1] is not None:
                log_weights[rows], weighted = found[1], True
        return ranks, log_weights if weighted else None

    def draw_seconds(self, n_draws: int) -> float:
        """Return the approximate time of the draws of one row, from the prime parts of some of the rows."""
        some = self.others[:: max(len(self.others) // MAX_PRICED, 1)]
        total = STEP["order"] * len(some)
        for row in some:
            stack = [decompose(self.relation(row))]
            while stack:
                part = stack.pop()
                stack += part.parts
                if part.kind == "prime":
                    lattice, size = DownSets.of(part.before, FEW_DOWN_SETS), len(part.items)
                    total += STEP["down-set"] * (FEW_DOWN_SETS if lattice is None else len(lattice.sets))
                    if lattice is None:
                        total += STEP["coupling"] * size**3 * np.log(size) * n_draws
        return total / max(len(some), 1) * len(self.others) / max(len(self), 1)


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
    """Return canonical rankings as partial orders."""
    if isinstance(data, PartialOrders):
        return data
    packed = np.zeros((len(data), data.n_items, (data.n_items + 7) // 8), dtype=np.uint8)
    return PartialOrders(data.ranks, packed, data.counts)


def concatenated(X: Rows, Y: Rows) -> Rows:
    """Return the rows of both, as partial orders if one of them is."""
    if isinstance(X, Rankings) and isinstance(Y, Rankings):
        return Rankings._trusted(np.concatenate([X.ranks, Y.ranks]), X.items, np.concatenate([X.counts, Y.counts]))
    sides = as_partial_orders(X), as_partial_orders(Y)
    ranks, packed, counts = (
        np.concatenate([getattr(side, name) for side in sides]) for name in ("ranks", "packed", "counts")
    )
    return PartialOrders(ranks, packed, counts, sides[0].known | sides[1].known)


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

"""What the generators take, checked in one place, and the two ways in which they draw."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankernel._utils.arrays import FloatArray, Indices, RankArray
from rankernel._utils.checks import check_integer, check_numbers, short_repr
from rankernel._utils.memory import check_bytes
from rankernel.encoding import check_items
from rankernel.errors import RankingError
from rankernel.rankings import as_full_ranking, row_slices

NAME_BYTES = 80  # that a name takes in memory


def strengths(weights: ArrayLike) -> FloatArray:
    """Return one positive weight for each item."""
    given = check_numbers("weights", weights, (None,))
    if not given.size or given.min() <= 0:
        raise RankingError(
            f"weights={short_repr(weights)} is not possible; give one positive finite weight for each item"
        )
    return given


def shares(weights: ArrayLike, name: str) -> FloatArray:
    """Return weights that are not negative and not all zero as probabilities."""
    given = check_numbers(name, weights, (None,), 0)
    if not given.any():
        raise RankingError(f"{name}={short_repr(weights)} is not possible; give a list of weights, not all of them 0")
    return np.asarray(given / given.sum())


def center_and_names(center: Any, items: Iterable[object] | None) -> tuple[RankArray, tuple[str, ...]]:
    """Return the ranks of a center and the names of its items; a number of items stands for 0, 1, 2, ..."""
    if isinstance(center, Integral):
        ranks = np.arange(check_integer("center", center, 1), dtype=np.int32)
        return ranks, named(items, len(ranks))
    one = as_full_ranking(center)
    return one.ranks[0], one.items if items is None else named(items, one.n_items)


def named(items: Iterable[object] | None, n_items: int) -> tuple[str, ...]:
    """Return the item names, numbers from 0 if there are none."""
    check_bytes(NAME_BYTES * n_items, f"n_items={n_items:,}", "take fewer")
    names = check_items(range(n_items) if items is None else items)
    if len(names) != n_items:
        raise RankingError(f"items: there are {len(names)} names for {n_items} items; give one name for each item")
    return names


def draw_by_weight(weights: FloatArray, n_draws: int, rng: np.random.Generator) -> Indices:
    """Return indices into ``weights``, each drawn with a probability proportional to its weight."""
    cumulative = np.cumsum(weights)
    # Nothing to compare with behind the last step: rounding cannot lead past the end.
    return np.asarray(np.searchsorted(cumulative[:-1], rng.random(n_draws) * cumulative[-1], side="right"))


def draw_permutations(n_rankings: int, n_items: int, rng: np.random.Generator) -> RankArray:
    """Return uniform permutations, one a row: the order of independent keys."""
    check_table(n_rankings, n_items)
    ranks = np.empty((n_rankings, n_items), dtype=np.int32)
    for rows in row_slices(ranks.shape):  # so that a Ctrl-C is heard
        ranks[rows] = np.argsort(rng.random(ranks[rows].shape), axis=1)
    return ranks


def check_table(n_rankings: int, n_items: int, n_tables: int = 1) -> None:
    """Refuse tables of ranks that do not fit into memory."""
    check_bytes(4 * n_tables * n_rankings * n_items, f"n_rankings={n_rankings:,} of {n_items:,} items", "take fewer")

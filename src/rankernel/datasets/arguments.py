"""What the generators take, checked in one place, and the two ways in which they draw."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankernel.arrays import FloatArray, Indices, RankArray
from rankernel.checks import whole
from rankernel.encoding import check_items
from rankernel.errors import RankingError
from rankernel.rankings import Rankings

Seed = int | np.random.Generator


def shares(weights: ArrayLike, name: str) -> FloatArray:
    """Return weights that are not negative and not all zero as probabilities."""
    given = np.asarray(weights, dtype=np.float64)
    if given.ndim != 1 or not np.isfinite(given).all() or (given < 0).any() or not given.any():
        raise RankingError(f"{name}={weights!r} is not possible; give a list of weights, 0 or more, not all of them 0")
    return np.asarray(given / given.sum())


def center_and_names(center: Any, items: Iterable[object] | None) -> tuple[RankArray, tuple[str, ...]]:
    """Return the ranks of a center and the names of its items; a number of items stands for 0, 1, 2, ..."""
    if isinstance(center, Integral):
        ranks = np.arange(whole("n_items", center), dtype=np.int32)
        return ranks, named(items, len(ranks))
    rows = center if isinstance(center, Rankings) else Rankings(np.atleast_2d(np.asarray(center)), items)
    if len(rows) != 1 or not rows.is_full():
        raise RankingError(f"center={center!r} is not one full ranking; give the rank of each item: no ties, none free")
    return rows.ranks[0], rows.items if items is None else named(items, rows.n_items)


def named(items: Iterable[object] | None, n_items: int) -> tuple[str, ...]:
    """Return the item names, numbers from 0 if there are none."""
    names = check_items(range(n_items) if items is None else items)
    if len(names) != n_items:
        raise RankingError(f"there are {n_items} items but {len(names)} names; give one name for each item")
    return names


def draw_by_weight(weights: FloatArray, n_draws: int, rng: np.random.Generator) -> Indices:
    """Return indices into ``weights``, each drawn with a probability proportional to its weight."""
    cumulative = np.cumsum(weights)
    # Nothing to compare with behind the last step: rounding cannot lead past the end.
    return np.asarray(np.searchsorted(cumulative[:-1], rng.random(n_draws) * cumulative[-1], side="right"))


def draw_permutations(n_rankings: int, n_items: int, rng: np.random.Generator) -> RankArray:
    """Return uniform permutations, one a row: the order of independent keys."""
    return np.argsort(rng.random((n_rankings, n_items)), axis=1).astype(np.int32)

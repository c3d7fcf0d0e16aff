"""A partial order as its closed relation: ``before[x, y]`` says that item x is known to stand before item y."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rankernel._utils.arrays import Mask
from rankernel.errors import RankingError


def check_relation(before: ArrayLike) -> Mask:
    """Return a relation as a boolean matrix, refusing what is not a closed partial order."""
    relation = np.asarray(before, dtype=bool)
    if relation.ndim != 2 or relation.shape[0] != relation.shape[1] or not len(relation):
        raise RankingError(f"a partial order is a square matrix, before[x, y]; got shape {relation.shape}")
    both = np.argwhere(relation & relation.T)
    if len(both):
        x, y = both[0]
        raise RankingError(f"items {x} and {y} are each before the other; Preferences.from_pairs contracts cycles")
    number = relation.astype(np.float32)
    missing = np.argwhere((number @ number > 0) & ~relation)
    if len(missing):
        x, y = missing[0]
        raise RankingError(
            f"item {x} is before another item that is before item {y}, yet not before {y}; give the transitive closure"
        )
    return relation

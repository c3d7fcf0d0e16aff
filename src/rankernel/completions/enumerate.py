"""Enumeration of the completions of a ranking."""

from __future__ import annotations

import numpy as np

from rankernel._loops.compiled import compiled
from rankernel._utils.arrays import FullRanks, RankArray
from rankernel.encoding import FREE
from rankernel.errors import ExactnessError, RankingError
from rankernel.rankings import count_completions

MAX_ITEMS = 2**15  # positions are 16-bit integers
MAX_COMPLETIONS = 5_000_000


def check_n_items(n_items: int) -> None:
    """Raise an error if positions do not fit into 16 bits."""
    if n_items > MAX_ITEMS:
        raise RankingError(f"there are {n_items:,} items; completions have at most {MAX_ITEMS:,}")


def n_completions(ranks: RankArray) -> int:
    """Return the number of completions of one ranking."""
    return count_completions(np.bincount(ranks[ranks != FREE]).tolist(), len(ranks))


def enumerate_completions(ranks: RankArray, limit: int = MAX_COMPLETIONS) -> FullRanks:
    """Return all completions of one ranking as positions of the items, in lexicographic order of their item lists.

    Examples
    --------
    >>> import numpy as np
    >>> enumerate_completions(np.array([0, 1, -1]))
    array([[0, 1, 2],
           [0, 2, 1],
           [1, 2, 0]], dtype=int16)
    """
    ranks = np.ascontiguousarray(ranks, dtype=np.int32)
    check_n_items(len(ranks))
    number = n_completions(ranks)
    if number > limit:
        raise ExactnessError(f"the ranking has {number:,} completions; at most {limit:,} are enumerated")
    return all_completions(ranks, number)


@compiled
def all_completions(ranks: RankArray, n_completions: int) -> FullRanks:
    """Return all completions, by backtracking over positions.

    An item may come next if it is free, or if it is in the first bucket that is not used up.
    """
    n_items = len(ranks)
    out = np.empty((n_completions, n_items), dtype=np.int16)
    remaining = np.zeros(n_items + 1, dtype=np.int64)  # items of each bucket without a position
    for a in range(n_items):
        if ranks[a] >= 0:
            remaining[ranks[a]] += 1
    position_of = np.full(n_items, -1, dtype=np.int64)
    item_at = np.full(n_items, -1, dtype=np.int64)
    bucket, position, row = 0, 0, 0
    while row < n_completions:
        item = item_at[position]
        if item >= 0:  # backtrack: remove the item tried last
            position_of[item] = -1
            if ranks[item] >= 0:
                bucket = ranks[item]
                remaining[bucket] += 1
        item += 1
        while item < n_items and (position_of[item] >= 0 or (ranks[item] >= 0 and ranks[item] != bucket)):
            item += 1
        if item == n_items:
            item_at[position] = -1
            position -= 1
            continue
        item_at[position], position_of[item] = item, position
        if ranks[item] >= 0:
            remaining[bucket] -= 1
            if remaining[bucket] == 0:
                bucket += 1
        if position == n_items - 1:
            for a in range(n_items):
                out[row, a] = position_of[a]
            row += 1
        else:
            position += 1
    return out

"""Enumeration of the completions of a ranking."""

from __future__ import annotations

import numpy as np

from rankernel._utils.arrays import FullRanks, RankArray
from rankernel.completions.linear_extensions import all_extensions
from rankernel.completions.partial_orders import bit_rows
from rankernel.encoding import FREE
from rankernel.errors import ExactnessError, RankingError
from rankernel.preferences import relations_of_ranks
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
    return all_extensions(bit_rows(relations_of_ranks(ranks[None])[0].T), number)

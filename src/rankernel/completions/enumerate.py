"""All completions of a ranking."""

from __future__ import annotations

import numpy as np

from rankernel import _loops
from rankernel._utils.arrays import FullRanks, RankArray
from rankernel.encoding import FREE
from rankernel.errors import ExactnessError, RankingError
from rankernel.rankings import count_completions

LIMIT = 5_000_000


MAX_ITEMS = 2**15


def check_n_items(n_items: int) -> None:
    """Refuse more items than positions of 16 bits can tell apart."""
    if n_items > MAX_ITEMS:
        raise RankingError(f"there are {n_items:,} items; completions are drawn for at most {MAX_ITEMS:,}")


def n_completions(ranks: RankArray) -> int:
    """Return how many full rankings agree with one ranking."""
    return count_completions(np.bincount(ranks[ranks != FREE]).tolist(), len(ranks))


def enumerate_completions(ranks: RankArray, limit: int = LIMIT) -> FullRanks:
    """Return every full ranking that agrees with one ranking, each once, as rank vectors.

    They come in the order of the dictionary, read as orders: best item first.

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
        raise ExactnessError(f"the ranking has {number:,} completions; at most {limit:,} are listed")
    full: FullRanks = _loops.completions.enumerate_all(ranks, number)
    return full

"""All completions of a ranking."""

from __future__ import annotations

from math import factorial, prod

import numpy as np

from rankernel import _loops
from rankernel.completions.keys import FullRanks, check_width
from rankernel.encoding import FREE, RankArray
from rankernel.errors import ExactnessError

__all__ = ["count_completions", "enumerate_completions"]

LIMIT = 5_000_000


def count_completions(ranks: RankArray) -> int:
    r"""Return how many full rankings agree with one ranking: :math:`|R| = (n! / m!) \prod_i n_i!`."""
    sizes = np.bincount(ranks[ranks != FREE]).tolist()
    return factorial(len(ranks)) // factorial(sum(sizes)) * prod(map(factorial, sizes))


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
    check_width(len(ranks))
    n_completions = count_completions(ranks)
    if n_completions > limit:
        raise ExactnessError(f"the ranking has {n_completions:,} completions; at most {limit:,} are listed")
    full: FullRanks = _loops.completions.enumerate_all(ranks, n_completions)
    return full

"""The one fact behind every draw: keys make completions.

Give each item a key, independent and uniform on (0, 1). Sort the keys of the listed items and hand them to the buckets
in order, inside a bucket by own key; leave the keys of free items alone. The order of all keys then is a uniform
completion. Couplings of draws are couplings of keys.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, RankArray
from rankernel.errors import RankingError

FullRanks = NDArray[np.int16]

MAX_ITEMS = 2**15


def check_width(n_items: int) -> None:
    """Refuse more items than positions of 16 bits can tell apart."""
    if n_items > MAX_ITEMS:
        raise RankingError(f"there are {n_items:,} items; completions are drawn for at most {MAX_ITEMS:,}")


def complete(ranks: RankArray, keys: FloatArray) -> FullRanks:
    """Return the completions that keys give: rank vectors of shape (n_rankings, n_draws, n_items).

    Examples
    --------
    Item 0 is before item 1, item 2 is free. The listed keys .9 and .2 change hands, the free .5 stays:

    >>> complete(np.array([[0, 1, -1]]), np.array([[[0.9, 0.2, 0.5]]]))
    array([[[0, 2, 1]]], dtype=int16)
    """
    ranks = np.ascontiguousarray(ranks, dtype=np.int32)
    keys = np.ascontiguousarray(keys, dtype=np.float64)
    if keys.ndim != 3 or keys.shape[::2] != ranks.shape:
        raise RankingError(
            f"keys of shape {keys.shape} do not fit rankings of shape {ranks.shape}; "
            "keys have shape (n_rankings, n_draws, n_items)"
        )
    check_width(ranks.shape[1])
    full: FullRanks = _loops.key_draws.complete(ranks, keys)
    return full

"""The antithetic operator A_R and the projection Pi_R of the paper, on rankings without free items.

For the Kendall distance, exactly one completion of R is farthest from a given completion, and exactly one is closest to
any full ranking. With free items neither need be unique, and A_R of a uniform draw need not be uniform.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankernel._utils import RankArray
from rankernel.errors import Argument, RankingError
from rankernel.rankings import Rankings, as_rankings


def antithetic(rankings: Any, within: Any) -> Rankings:
    r"""Return :math:`A_R(\sigma)`, the completion of R farthest from the completion :math:`\sigma` of R.

    The operator reverses the order inside every bucket: in a bucket that holds positions a to b, the item at position p
    moves to a + b - p. For a top-k list the distance is :math:`\binom{n-k}{2}`.

    Parameters
    ----------
    rankings : full Rankings
        The completions :math:`\sigma`.
    within : Rankings
        The rankings R without free items, row by row; a single row on either side is used for all rows of the other.

    Returns
    -------
    Rankings
        The farthest completions, one for each row.

    Examples
    --------
    >>> antithetic([[0, 1, 2, 3]], within=[[0, 1, 1, 1]]).ranks
    array([[0, 3, 2, 1]], dtype=int32)
    """
    full, _, start, size = align(rankings, within, "within", "farthest")
    offset = full.ranks - start
    outside = (offset < 0) | (offset >= size)
    if outside.any():
        row, item = (int(i) for i in np.argwhere(outside)[0])
        raise RankingError(
            f"row {row} of rankings is not a completion: item {full.items[item]!r} is at position "
            f"{full.ranks[row, item]}, but its bucket holds positions {start[row, item]} to "
            f"{start[row, item] + size[row, item] - 1}; project(rankings, onto) gives the closest completion"
        )
    return Rankings._trusted((start + size - 1 - offset).astype(np.int32), full.items, full.counts)


def project(rankings: Any, onto: Any) -> Rankings:
    r"""Return :math:`\Pi_R(\tau)`, the completion of R closest to the full ranking :math:`\tau`.

    The projection has the buckets of R, each ordered as in :math:`\tau`.

    Parameters
    ----------
    rankings : full Rankings
        The full rankings :math:`\tau`.
    onto : Rankings
        The rankings R without free items, row by row; a single row on either side is used for all rows of the other.

    Returns
    -------
    Rankings
        The closest completions, one for each row.

    Examples
    --------
    >>> project([[3, 2, 1, 0]], onto=[[0, 1, 1, 1]]).ranks
    array([[0, 3, 2, 1]], dtype=int32)
    """
    full, ranks, _, _ = align(rankings, onto, "onto", "closest")
    order = np.lexsort((full.ranks, ranks), axis=-1)
    closest = np.empty_like(full.ranks)
    np.put_along_axis(closest, order, np.broadcast_to(np.arange(full.n_items, dtype=np.int32), order.shape), axis=1)
    return Rankings._trusted(closest, full.items, full.counts)


def align(rankings: Any, within: Any, name: str, which: str) -> tuple[Rankings, RankArray, RankArray, RankArray]:
    """Return full and partial rankings with equal items and rows, and the first position and size of each bucket."""
    full, partial = as_rankings(rankings, "rankings"), as_rankings(within, name)
    if not full.is_full():
        raise RankingError(f"rankings: row {int(np.argmax(full.n_buckets != full.n_items))} is not a full ranking")
    if not partial.is_exhaustive():
        raise RankingError(
            f"{name}: row {int(np.argmax(partial.n_free))} has free items, and its {which} completion need not be "
            "unique; for coupled draws of any ranking use ",
            Argument("coupling", "antithetic"),
        )
    if full.items != partial.items:
        if set(full.items) != set(partial.items):
            raise RankingError(f"rankings and {name} do not rank the same items")
        partial = partial.with_items(full.items)
    if len(full) != len(partial) and 1 not in (len(full), len(partial)):
        raise RankingError(f"{name} has {len(partial)} rows for {len(full)} rankings; give as many rows, or one")
    sizes = partial.bucket_sizes()
    starts = np.cumsum(sizes, axis=1) - sizes
    size, start = (np.take_along_axis(table, partial.ranks, axis=1).astype(np.int32) for table in (sizes, starts))
    shape = (len(full) if len(partial) == 1 else len(partial), full.n_items)
    if len(full) != shape[0]:
        full = full[np.zeros(shape[0], dtype=np.intp)]
    ranks, start, size = (np.broadcast_to(array, shape) for array in (partial.ranks, start, size))
    return full, ranks, start, size

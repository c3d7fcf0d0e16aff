"""The antithetic operator A_R and the projection Pi_R of the paper, on rankings without free items.

For the Kendall distance, of all completions of R exactly one is farthest from a given one, and exactly one is closest
to any full ranking. With free items neither need be unique, and A_R of a uniform draw need not be uniform.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankernel._utils.arrays import RankArray
from rankernel.errors import RankingError
from rankernel.rankings import Rankings, as_rankings


def antithetic(rankings: Any, within: Any) -> Rankings:
    r"""Return :math:`A_R(\sigma)`: of the completions of R, the one farthest from :math:`\sigma \in R`.

    It reverses the order inside every bucket: an item at position p of a bucket that holds positions a to b moves to
    a + b - p. For a top-k list the distance is :math:`\binom{n-k}{2}`.

    Parameters
    ----------
    rankings : full Rankings
        The full rankings, each among the completions of ``within``.
    within : Rankings
        Rankings without free items, row by row; one row serves all on either side.

    Examples
    --------
    >>> antithetic([[0, 1, 2, 3]], within=[[0, 1, 1, 1]]).ranks
    array([[0, 3, 2, 1]], dtype=int32)
    """
    full, _, start, size = aligned(rankings, within, "antithetic")
    place = full.ranks - start
    outside = (place < 0) | (place >= size)
    if outside.any():
        row, item = (int(i) for i in np.argwhere(outside)[0])
        raise RankingError(
            f"row {row} is not among the completions of its ranking: item {full.items[item]!r} is at position "
            f"{full.ranks[row, item]}, but its bucket holds positions {start[row, item]} to "
            f"{start[row, item] + size[row, item] - 1}; project(rankings, onto) finds the closest completion"
        )
    return Rankings._trusted((start + size - 1 - place).astype(np.int32), full.items, full.counts)


def project(rankings: Any, onto: Any) -> Rankings:
    r"""Return :math:`\Pi_R(\tau)`: of the completions of R, the one closest to the full ranking :math:`\tau`.

    It keeps the buckets of R and orders each as :math:`\tau` does.

    Parameters
    ----------
    rankings : full Rankings
        The full rankings.
    onto : Rankings
        Rankings without free items, row by row; one row serves all on either side.

    Examples
    --------
    >>> project([[3, 2, 1, 0]], onto=[[0, 1, 1, 1]]).ranks
    array([[0, 3, 2, 1]], dtype=int32)
    """
    full, ranks, _, _ = aligned(rankings, onto, "project")
    order = np.lexsort((full.ranks, ranks), axis=-1)
    closest = np.empty_like(full.ranks)
    np.put_along_axis(closest, order, np.broadcast_to(np.arange(full.n_items, dtype=np.int32), order.shape), axis=1)
    return Rankings._trusted(closest, full.items, full.counts)


def aligned(rankings: Any, within: Any, what: str) -> tuple[Rankings, RankArray, RankArray, RankArray]:
    """Return both sides with the same items and rows, and for each item where its bucket starts and its size."""
    full, partial = as_rankings(rankings), as_rankings(within, "within" if what == "antithetic" else "onto")
    check_full(full, what)
    check_exhaustive(partial, what)
    if full.items != partial.items:
        if set(full.items) != set(partial.items):
            raise RankingError(f"{what}: the two sides do not rank the same items")
        partial = partial.with_items(full.items)
    if len(full) != len(partial) and 1 not in (len(full), len(partial)):
        raise RankingError(f"{what}: {len(full)} rankings do not go with {len(partial)}; give as many, or one")
    sizes = partial.bucket_sizes()
    starts = np.cumsum(sizes, axis=1) - sizes
    size, start = (np.take_along_axis(table, partial.ranks, axis=1).astype(np.int32) for table in (sizes, starts))
    shape = (len(full) if len(partial) == 1 else len(partial), full.n_items)
    if len(full) != shape[0]:
        full = full[np.zeros(shape[0], dtype=np.intp)]
    ranks, start, size = (np.broadcast_to(array, shape) for array in (partial.ranks, start, size))
    return full, ranks, start, size


def check_full(full: Rankings, what: str) -> None:
    """Refuse rankings that are not full."""
    if not full.is_full():
        row = int(np.argmax(full.n_buckets != full.n_items))
        raise RankingError(f"{what}: row {row} is not a full ranking; it acts on full rankings")


def check_exhaustive(partial: Rankings, what: str) -> None:
    """Refuse free items."""
    if not partial.is_exhaustive():
        row = int(np.argmax(partial.n_free))
        which = "farthest" if what == "antithetic" else "closest"
        raise RankingError(
            f"{what}: row {row} has {int(partial.n_free[row])} free item(s), and among its completions the "
            f"{which} one need not be unique; it is for rankings without free items (for coupled draws of any "
            "ranking use coupling='antithetic')"
        )

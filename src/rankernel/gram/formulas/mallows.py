"""The Mallows kernel between two rankings without free items: a closed form."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rankernel.gram.formulas.q_factorials import log_q_factorials, log_q_factorials_derivative
from rankernel.gram.overlap import Formula, Overlap, Shape

__all__ = ["ExhaustiveMallows", "cell_sizes", "inversions", "tables"]


class ExhaustiveMallows(Formula):
    """Mallows kernel ``E exp(-nu d)`` of any two rankings without free items, d the number of discordant pairs.

    With buckets of sizes n_i and n'_j that share C_ij items, and c pairs in opposite order in the two rankings,
    ``K = exp(-nu c) prod_i [n_i]_q!/n_i! prod_j [n'_j]_q!/n'_j! / prod_ij [C_ij]_q!/C_ij!`` with ``q = exp(-nu)``.

    Examples
    --------
    One tied pair against the same pair in order: discordant half of the time.

    >>> overlap = Overlap.of(np.array([0, 0]), np.array([0, 1]))
    >>> log_value, _ = ExhaustiveMallows().log_value(overlap, 0.5)
    >>> bool(np.isclose(np.exp(log_value), (1 + np.exp(-0.5)) / 2))
    True
    """

    name = "closed form (q-factorials)"

    def covers(self, left: Shape, right: Shape) -> bool:
        """Say whether neither ranking has a free item."""
        return left.is_exhaustive and right.is_exhaustive

    def log_value(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return log K and the derivative of log K in nu."""
        discordant = inversions(overlap.right.tolist())
        signs, sizes = factors(overlap)
        logs, slopes = tables(overlap.n_items, nu)
        return float(signs @ logs[sizes]) - nu * discordant, float(signs @ slopes[sizes]) - discordant


def factors(overlap: Overlap) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return which q-factorials multiply (+1) and divide (-1), and of how many items."""
    cells = cell_sizes(overlap)
    sizes = np.concatenate([overlap.left_shape.sizes, overlap.right_shape.sizes, cells]).astype(np.int64)
    signs = np.ones(len(sizes))
    signs[len(sizes) - len(cells) :] = -1.0
    return signs, sizes


def cell_sizes(overlap: Overlap) -> NDArray[np.int64]:
    """Return how many items share both their buckets, for each pair of buckets that has any."""
    steps = (np.diff(overlap.left) != 0) | (np.diff(overlap.right) != 0)
    ends = np.concatenate([[-1], np.flatnonzero(steps), [overlap.n_items - 1]])
    return np.diff(ends).astype(np.int64)


def inversions(values: Iterable[int]) -> int:
    """Return how many pairs of a sequence stand in descending order.

    The items of an overlap are sorted by their left bucket, then by their right one, so the inversions of the right
    buckets are the pairs in opposite order in the two rankings; a tie in either is none.

    Examples
    --------
    >>> inversions([2, 0, 0, 1])
    3
    """
    seen: list[int] = []
    count = 0
    for value in values:
        count += len(seen) - bisect_right(seen, value)
        insort(seen, value)
    return count


@lru_cache(maxsize=16)
def tables(n: int, nu: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the logarithms of the q-factorials up to n items, and their derivatives, remembered between overlaps."""
    logs, slopes = log_q_factorials(n, nu), log_q_factorials_derivative(n, nu)
    logs.flags.writeable = slopes.flags.writeable = False
    return logs, slopes

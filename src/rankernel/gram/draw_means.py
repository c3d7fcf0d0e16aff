"""Means of functions of a whole-numbered distance over all pairs of draws, without a matrix of all draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel.distances import Distance
from rankernel.gram.evaluator import FloatArray, Tile

__all__ = ["DrawMeans"]

MOST_VALUES = 8192  # of a distance: beyond, counting them is slower than summing
MOST_BITS_ITEMS = 128  # whose pairs fit into some hundred words, still far quicker than sorting


class DrawMeans:
    """Draws of two sets of rankings, packed for one distance.

    Parameters
    ----------
    distance : Distance
        A distance with few values: see :meth:`serves`.
    left, right : arrays of shape (n_rankings, n_draws, n_items)
        The draws of each ranking.
    """

    def __init__(self, distance: Distance, left: NDArray[np.int16], right: NDArray[np.int16]) -> None:
        self.kind = getattr(_loops.draw_sums, distance.name.upper())
        self.by_bits = distance.name == "kendall" and left.shape[2] <= MOST_BITS_ITEMS
        draws = left if right is left else np.concatenate([left, right])
        self.draws: NDArray[Any] = packed_signs(draws) if self.by_bits else np.ascontiguousarray(draws)
        self.left = np.arange(len(left))
        self.right = self.left if right is left else len(left) + np.arange(len(right))

    @staticmethod
    def serves(distance: Distance | None, n_items: int) -> bool:
        """Say whether a distance has whole-numbered values, and few of them."""
        return distance is not None and distance.integer and distance.maximum(n_items) < MOST_VALUES

    def means(self, tables: FloatArray, tile: Tile) -> FloatArray:
        """Return the mean of each table over the distances between all draws of two rankings.

        ``tables[g, d]`` is function g at distance d.
        """
        return self.between(self.draws, self.left[tile[0]], self.right[tile[1]], tables)

    def group_means(self, tables: FloatArray, tile: Tile, size: int) -> FloatArray:
        """Return the means over pairs of groups of consecutive draws: (tables, rows, groups, columns, groups)."""
        rows, columns = self.left[tile[0]], self.right[tile[1]]
        n_groups = self.draws.shape[1] // size
        # Each group as a ranking of its own; draws beyond the last whole group are left out.
        used, inverse = np.unique(np.concatenate([rows, columns]), return_inverse=True)
        groups = self.draws[used, : size * n_groups].reshape(len(used) * n_groups, size, -1)
        numbers = (n_groups * inverse[:, None] + np.arange(n_groups)).ravel()
        left, right = numbers[: len(rows) * n_groups], numbers[len(rows) * n_groups :]
        out = self.between(groups, left, right, tables)
        return out.reshape(len(tables), len(rows), n_groups, len(columns), n_groups)

    def between(
        self, draws: NDArray[Any], rows: NDArray[np.intp], columns: NDArray[np.intp], tables: FloatArray
    ) -> FloatArray:
        """Return the mean of each table over all pairs of draws."""
        symmetric = np.array_equal(rows, columns)
        out = np.empty((len(tables), len(rows), len(columns)))
        if self.by_bits:
            _loops.draw_sums.by_bits(draws, rows, columns, symmetric, tables, out)
        else:
            _loops.draw_sums.by_ranks(draws, rows, columns, symmetric, self.kind, tables, out)
        return out


def packed_signs(draws: NDArray[np.int16]) -> NDArray[np.uint64]:
    """Return for each draw the bits of the pairs of items that it orders one way."""
    n_rankings, n_draws, n_items = draws.shape
    words: NDArray[np.uint64] = _loops.bits.pairs_in_order(draws.reshape(-1, n_items))
    return words.reshape(n_rankings, n_draws, words.shape[1])

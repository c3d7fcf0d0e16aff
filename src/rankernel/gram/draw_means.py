"""Means of functions of a whole-numbered distance over all pairs of draws, without a matrix of all draws."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel.distances import Distance
from rankernel.gram.discordance import to_words
from rankernel.gram.evaluator import FloatArray, Tile

__all__ = ["DrawMeans"]

MOST_VALUES = 8192  # of a distance: beyond, counting them is slower than summing
MOST_BITS_ITEMS = 128  # whose pairs fit into some hundred words, still far quicker than sorting
CHUNK = 2**22  # signs of pairs at once


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
        self.n_values = int(distance.maximum(left.shape[2])) + 1
        self.kind = getattr(_loops.draw_sums, distance.name.upper())
        self.by_bits = distance.name == "kendall" and left.shape[2] <= MOST_BITS_ITEMS
        self.left = packed_signs(left) if self.by_bits else left
        self.right = self.left if right is left else packed_signs(right) if self.by_bits else right

    @staticmethod
    def serves(distance: Distance | None, n_items: int) -> bool:
        """Say whether a distance has whole-numbered values, and few of them."""
        return distance is not None and distance.integer and distance.maximum(n_items) < MOST_VALUES

    def means(self, tables: FloatArray, tile: Tile) -> FloatArray:
        """Return the mean of each table over the distances between all draws of two rankings.

        ``tables[g, d]`` is function g at distance d.
        """
        return self.between(self.left[tile[0]], self.right[tile[1]], tables)

    def group_means(self, tables: FloatArray, tile: Tile, size: int) -> FloatArray:
        """Return the means over pairs of groups of consecutive draws: (tables, rows, groups, columns, groups)."""
        left, right = self.left[tile[0]], self.right[tile[1]]
        n_groups = left.shape[1] // size
        out = self.between(grouped(left, size), grouped(right, size), tables)
        return out.reshape(len(tables), len(left), n_groups, len(right), n_groups)

    def between(self, left: NDArray[Any], right: NDArray[Any], tables: FloatArray) -> FloatArray:
        """Return the mean of each table over all pairs of draws."""
        left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
        out = np.empty((len(tables), len(left), len(right)))
        if self.by_bits:
            _loops.draw_sums.by_bits(left, right, tables, out)
        else:
            _loops.draw_sums.by_ranks(left, right, self.kind, tables, out)
        return out


def grouped(draws: NDArray[Any], size: int) -> NDArray[Any]:
    """Return each group of draws as a ranking of its own; draws beyond the last whole group are left out."""
    n_groups = draws.shape[1] // size
    return draws[:, : size * n_groups].reshape(len(draws) * n_groups, size, draws.shape[2])


def packed_signs(draws: NDArray[np.int16]) -> NDArray[np.uint64]:
    """Return for each draw the bits of the pairs of items that it orders one way."""
    n_rankings, n_draws, n_items = draws.shape
    a, b = np.triu_indices(n_items, 1)
    flat = draws.reshape(-1, n_items)
    step = max(CHUNK // max(comb(n_items, 2), 1), 1)
    words = [to_words(flat[s : s + step, a] < flat[s : s + step, b]) for s in range(0, len(flat), step)]
    return np.concatenate(words or [to_words(flat[:, a] < flat[:, b])]).reshape(n_rankings, n_draws, -1)

"""Gram matrices from formulas of the overlap: one evaluation for each distinct overlap, however many pairs share it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel.gram.blocks import tiles
from rankernel.gram.evaluator import Evaluator, FloatArray, Tile
from rankernel.gram.overlap import Overlap
from rankernel.kernels.base import Kernel
from rankernel.rankings import Rankings

__all__ = ["OverlapEvaluator", "TopKCodes"]

Value = Callable[[Kernel, Overlap], float]
Slopes = Callable[[Kernel, Overlap], tuple[float, ...]]
Work = Callable[[Overlap], float]

SMALL_CODES = 2**20


class Codes(ABC):
    """Numbers for the entries of a Gram matrix: equal numbers, equal values."""

    def __init__(self, X: Rankings, Y: Rankings) -> None:
        self.X, self.Y = X, Y

    @abstractmethod
    def of(self, tile: Tile) -> NDArray[np.uint64]:
        """Return the codes of a tile."""

    @property
    def few(self) -> bool:
        """Whether there are so few codes that counting them is not worth it."""
        return False


class OverlapCodes(Codes):
    """Codes of the overlaps themselves: a 64-bit sum of random numbers, one for each item's two buckets.

    For a million distinct overlaps the chance that any two are taken for one is below 1e-7.
    """

    @cached_property
    def salt(self) -> NDArray[np.uint64]:
        """A fixed random number for each pair of buckets."""
        shape = (int(self.X.n_buckets.max(initial=0)) + 1, int(self.Y.n_buckets.max(initial=0)) + 1)
        return np.random.default_rng(20190313).integers(2**64, size=shape, dtype=np.uint64)

    def of(self, tile: Tile) -> NDArray[np.uint64]:
        """Return the codes of a tile."""
        X, Y = self.X.ranks[tile[0]], self.Y.ranks[tile[1]]
        codes = np.empty((len(X), len(Y)), dtype=np.uint64)
        _loops.overlaps.codes(X, Y, self.salt, codes)
        return codes


class TopKCodes(Codes):
    """Codes of the few numbers that the Hamming or the Cayley distance sees of two top-k lists."""

    def __init__(self, X: Rankings, Y: Rankings, loop: Literal["agreement_codes", "cycle_codes"]) -> None:
        super().__init__(X, Y)
        self.loop = loop
        self.listed = n_listed(X), n_listed(Y)

    def of(self, tile: Tile) -> NDArray[np.uint64]:
        """Return the codes of a tile."""
        X, Y = self.X.ranks[tile[0]], self.Y.ranks[tile[1]]
        codes = np.empty((len(X), len(Y)), dtype=np.uint64)
        getattr(_loops.overlaps, self.loop)(X, Y, self.listed[0][tile[0]], self.listed[1][tile[1]], codes)
        return codes

    @property
    def few(self) -> bool:
        """Whether the numbers seen have few values: at most the cube of the number of items."""
        return self.X.n_items <= 50


def n_listed(X: Rankings) -> NDArray[np.int64]:
    """Return the lengths of top-k lists: all items for a full ranking."""
    return np.where(X.n_buckets == X.n_items, X.n_items, X.n_buckets - 1)


def unique_codes(codes: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.intp], NDArray[np.intp]]:
    """Return the distinct codes, where each first occurs, and which one each entry is; small codes by a table."""
    if not len(codes) or codes.max() >= SMALL_CODES:
        return np.unique(codes, return_index=True, return_inverse=True)
    table = np.full(int(codes.max()) + 1, -1, dtype=np.intp)
    table[codes[::-1]] = np.arange(len(codes))[::-1]  # the last one written is the first one
    distinct = np.flatnonzero(table >= 0)
    first = table[distinct]
    table[distinct] = np.arange(len(distinct))
    return distinct.astype(np.uint64), first, table[codes]


class OverlapEvaluator(Evaluator):
    """Evaluates a function of the overlap once for each distinct one.

    Parameters
    ----------
    X, Y : Rankings
        Rows and columns.
    value : function of (kernel, overlap)
        The kernel, or its logarithm.
    slopes : function of (kernel, overlap)
        The derivatives of ``value`` in the parameters of the kernel, in their order.
    logarithmic : bool
        Whether ``value`` is the logarithm of the kernel.
    codes : Codes, optional
        What tells overlaps apart; if left out, all of them are. A function that sees less of them has fewer values.
    work : function of an overlap
        About how many elementary steps one value takes.
    """

    def __init__(
        self,
        X: Rankings,
        Y: Rankings,
        value: Value,
        slopes: Slopes,
        description: str,
        logarithmic: bool,
        codes: Codes | None = None,
        work: Work = lambda _: 1e5,
    ) -> None:
        self.X, self.Y = X, Y
        self.value, self.slopes = value, slopes
        self.description = description
        self.logarithmic = logarithmic
        self.codes = codes or OverlapCodes(X, Y)
        self.one_work = work
        self.known: dict[tuple[Kernel, str, int], tuple[float, ...]] = {}

    def distinct(self, tile: Tile) -> tuple[NDArray[np.uint64], list[Callable[[], Overlap]], NDArray[np.intp]]:
        """Return the codes of the distinct overlaps of a tile, how to make them, and which one each entry has."""
        X, Y = self.X.ranks[tile[0]], self.Y.ranks[tile[1]]
        codes = self.codes.of(tile)
        distinct, first, inverse = unique_codes(codes.ravel())

        def maker(entry: int) -> Callable[[], Overlap]:
            i, j = divmod(entry, len(Y))
            return lambda: Overlap.of(X[i], Y[j])

        return distinct, [maker(entry) for entry in first.tolist()], inverse.reshape(codes.shape)

    def work(self, budget: float) -> float:
        """Return about how many elementary steps the whole matrix takes, or some number above the budget."""
        if self.codes.few:
            return 0.0
        total, seen = 0.0, set()
        for tile in tiles(len(self.X), len(self.Y), self.tile_side, symmetric=self.Y is self.X):
            codes, overlaps, _ = self.distinct(tile)
            for code, overlap in zip(codes.tolist(), overlaps, strict=True):
                if code not in seen:
                    seen.add(code)
                    total += self.one_work(overlap())
                    if total > budget:
                        return total
        return total

    def look_up(
        self, kernel: Kernel, what: str, solve: Callable[[Overlap], tuple[float, ...]], tile: Tile
    ) -> FloatArray:
        """Return a function of the overlap for each entry of a tile: shape (n_values, rows, columns)."""
        codes, overlaps, inverse = self.distinct(tile)
        table = []
        for code, overlap in zip(codes.tolist(), overlaps, strict=True):
            key = (kernel, what, code)
            if key not in self.known:
                self.known[key] = solve(overlap())
            table.append(self.known[key])
        columns = np.array(table, dtype=np.float64).T.reshape(-1, len(table))
        return np.asarray(columns[:, inverse])

    def raw(self, kernel: Kernel, tile: Tile) -> FloatArray:
        """Return the value, or its logarithm."""
        return np.asarray(self.look_up(kernel, "value", lambda overlap: (self.value(kernel, overlap),), tile)[0])

    def values(self, kernels: Sequence[Kernel], tile: Tile) -> FloatArray:
        """Return the tile for each kernel."""
        stack = np.stack([self.raw(kernel, tile) for kernel in kernels])
        return np.asarray(np.exp(stack)) if self.logarithmic else stack

    def gradients(self, kernel: Kernel, tile: Tile) -> dict[str, FloatArray]:
        """Return the derivatives."""
        if not kernel.params:
            return {}
        slopes = self.look_up(kernel, "slopes", lambda overlap: self.slopes(kernel, overlap), tile)
        outer = self.values([kernel], tile)[0] if self.logarithmic else 1.0
        return {name: outer * slope for name, slope in zip(kernel.params, slopes, strict=True)}

    def logs(self, kernel: Kernel, tile: Tile) -> FloatArray:
        """Return the logarithm of the tile."""
        return self.raw(kernel, tile) if self.logarithmic else super().logs(kernel, tile)

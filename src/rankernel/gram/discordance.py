"""Exact Mallows and Kendall kernels of rankings without free items, from discordant pairs and shared buckets.

For buckets of sizes n_i and n'_j that share C_ij items, and c strictly discordant pairs,
``log K = -nu c + sum T[n_i] + sum T[n'_j] - sum T[C_ij]`` with ``T[m] = log([m]_q! / m!)`` and q = exp(-nu).
The data-dependent integers are found once for all nu and serve the derivative, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel.gram.evaluator import Evaluator, FloatArray, Part, Tile
from rankernel.gram.formulas.q_factorials import log_q_factorials, log_q_factorials_derivative
from rankernel.kernels.base import Kernel
from rankernel.kernels.exponential import ExponentialKernel
from rankernel.rankings import Rankings

__all__ = ["KendallDiscordance", "MallowsEvaluator"]

TILE_ITEMS = 2**15
SHORT = 4  # lists are short if there are so many times more items
PACKED_ITEMS = 24  # up to here the signs of all pairs fit into five machine words, and n! into a float


class Ordered:
    """Rankings with the order of their items and the sizes of their buckets at hand, each made when it is needed."""

    def __init__(self, rankings: Rankings) -> None:
        self.ranks, self.rankings = rankings.ranks, rankings

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """The items of each ranking, best first."""
        return np.argsort(self.ranks, axis=1, kind="stable").astype(np.int64)

    @cached_property
    def n_buckets(self) -> NDArray[np.int64]:
        """The number of buckets of each ranking."""
        return self.rankings.n_buckets

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """The bucket sizes of each ranking."""
        return self.rankings.bucket_sizes()

    def sums(self, tables: FloatArray, rows: Part) -> FloatArray:
        """Return the sum of each table over the bucket sizes of some rankings: shape (n_tables, n_rows)."""
        return np.asarray(tables[:, self.sizes[rows]].sum(axis=2))


@dataclass(frozen=True)
class Packed:
    """The order of every pair of items as bits, and the buckets with ties as sets of bits."""

    before: NDArray[np.uint64]
    after: NDArray[np.uint64]
    ties: NDArray[np.uint64]

    def part(self, rows: Part) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the bits of some rankings."""
        return self.before[rows], self.after[rows], self.ties[rows]

    @classmethod
    def of(cls, side: Ordered) -> Packed:
        """Pack rankings of few items."""
        bits, ranks = _loops.bits, side.ranks
        return cls(bits.pairs_in_order(ranks), bits.pairs_in_order(-ranks), bits.tied_sets(ranks, side.sizes))


class Discordance(Evaluator):
    """What Mallows and Kendall share: discordant pairs and sums over shared buckets."""

    def __init__(self, X: Rankings, Y: Rankings) -> None:
        self.X, self.Y = X, Y
        self.n_items = X.n_items
        if self.n_items > PACKED_ITEMS:
            # Entries cost more with more items: smaller tiles keep all threads busy, and waste less on the diagonal.
            self.tile_side = min(max(TILE_ITEMS // self.n_items, 16), 256)

    @cached_property
    def left(self) -> Ordered:
        """The rows."""
        return Ordered(self.X)

    @cached_property
    def right(self) -> Ordered:
        """The columns."""
        return self.left if self.Y is self.X else Ordered(self.Y)

    @cached_property
    def short(self) -> bool:
        """Whether all rankings are top-k lists that are short against the number of items."""
        return all(
            bool(np.isin(side.kinds(), ("top-k", "full")).all())
            and SHORT * int(side.n_buckets.max(initial=0)) <= self.n_items
            for side in (self.X, self.Y)
        )

    def pair_sums(self, tables: FloatArray, tile: Tile) -> tuple[NDArray[np.int64], FloatArray]:
        """Return the discordant pairs of each entry, and each table summed over its shared buckets."""
        if self.short:
            return self.short_sums(tables, tile)
        rows, columns = tile
        X, Y = self.left.ranks[rows], self.right.ranks[columns]
        discordant = np.empty((len(X), len(Y)), dtype=np.int64)
        sums = np.empty((len(tables), len(X), len(Y)))
        _loops.discordant_pairs.pair_sums(
            X,
            self.left.order[rows],
            self.left.n_buckets[rows],
            Y,
            self.right.n_buckets[columns],
            tables,
            discordant,
            sums,
        )
        return discordant, sums

    def short_sums(self, tables: FloatArray, tile: Tile) -> tuple[NDArray[np.int64], FloatArray]:
        """Return the same from the listed items only; the one bucket that two lists can share is the last."""
        rows, columns = tile
        longest = int(self.left.n_buckets.max(initial=1)) - 1
        items, Y = np.ascontiguousarray(self.left.order[rows, :longest]), self.right.ranks[columns]
        discordant = np.empty((len(items), len(Y)), dtype=np.int64)
        shared = np.empty((len(items), len(Y)), dtype=np.int64)
        _loops.discordant_pairs.short_lists(
            items, self.left.n_buckets[rows] - 1, Y, self.right.n_buckets[columns] - 1, discordant, shared
        )
        return discordant, np.asarray(tables[:, shared])


class MallowsEvaluator(Discordance):
    """The closed form of the marginalised Mallows kernel."""

    known_factors: tuple[float, tuple[FloatArray, FloatArray]] = (-1.0, (np.empty(0), np.empty(0)))

    def __init__(self, X: Rankings, Y: Rankings) -> None:
        super().__init__(X, Y)
        path = "pairs as bits" if self.n_items <= PACKED_ITEMS else "listed items" if self.short else "inversions"
        self.description = f"closed form (q-factorials of shared buckets; {path})"

    def values(self, kernels: Sequence[Kernel], tile: Tile) -> FloatArray:
        """Return the kernel at each width."""
        if len(kernels) == 1 and self.n_items <= PACKED_ITEMS:
            return self.packed_values(width(kernels[0]), tile)[None]
        nus = np.array([width(kernel) for kernel in kernels])
        tables = np.stack([log_q_factorials(self.n_items, nu) for nu in nus])
        discordant, sums = self.pair_sums(tables, tile)
        return np.asarray(np.exp(self.assemble(tables, discordant, sums, tile, nus)))

    def logs(self, kernel: Kernel, tile: Tile) -> FloatArray:
        """Return the logarithm of the kernel."""
        nu = width(kernel)
        tables = log_q_factorials(self.n_items, nu)[None]
        discordant, sums = self.pair_sums(tables, tile)
        return np.asarray(self.assemble(tables, discordant, sums, tile, np.array([nu]))[0])

    def gradients(self, kernel: Kernel, tile: Tile) -> dict[str, FloatArray]:
        """Return the derivative in nu: the kernel times that of its logarithm."""
        nu = width(kernel)
        tables = np.stack([log_q_factorials(self.n_items, nu), log_q_factorials_derivative(self.n_items, nu)])
        discordant, sums = self.pair_sums(tables, tile)
        log_value, log_slope = self.assemble(tables, discordant, sums, tile, np.array([nu, 1.0]))
        return {"nu": np.exp(log_value) * log_slope}

    def assemble(
        self, tables: FloatArray, discordant: NDArray[np.int64], sums: FloatArray, tile: Tile, factors: FloatArray
    ) -> FloatArray:
        """Return ``-factor c + row sums + column sums - shared sums`` for each table."""
        rows, columns = tile
        left, right = self.left.sums(tables, rows), self.right.sums(tables, columns)
        return np.asarray(left[:, :, None] + right[:, None, :] - sums - factors[:, None, None] * discordant)

    @cached_property
    def packed(self) -> tuple[Packed, Packed]:
        """Both sides as bits."""
        left = Packed.of(self.left)
        return left, left if self.Y is self.X else Packed.of(self.right)

    def write(self, kernel: Kernel, out: NDArray[Any], tile: Tile, symmetric: bool) -> None:
        """Write a tile straight into the matrix, from bits, where there are few items."""
        if self.n_items > PACKED_ITEMS or not writable(out):
            return super().write(kernel, out, tile, symmetric)
        rows, columns = tile
        on_diagonal = symmetric and rows == columns
        mirror = symmetric and not on_diagonal
        mirrored = out[columns, rows] if symmetric else out[:0, :0]
        self.write_packed(width(kernel), tile, mirror, on_diagonal, out[rows, columns], mirrored)
        return None

    def packed_values(self, nu: float, tile: Tile) -> FloatArray:
        """Return the kernel at one width, from bits and small tables."""
        rows, columns = (len(np.arange(len(side))[part]) for side, part in zip((self.X, self.Y), tile, strict=True))
        out = np.empty((rows, columns))
        self.write_packed(nu, tile, False, False, out, out[:0, :0])
        return out

    def factors(self, nu: float) -> tuple[FloatArray, FloatArray]:
        """Return the factor of each row and of each column, kept for the width asked for last."""
        if self.known_factors[0] != nu:
            logs, _ = packed_tables(self.n_items, nu)
            left = np.exp(self.left.sums(logs[None], slice(None))[0])
            right = left if self.Y is self.X else np.exp(self.right.sums(logs[None], slice(None))[0])
            self.known_factors = nu, (left, right)
        return self.known_factors[1]

    def write_packed(
        self, nu: float, tile: Tile, mirror: bool, triangle: bool, out: NDArray[Any], mirrored: NDArray[Any]
    ) -> None:
        """Write the kernel at one width, from bits and small tables."""
        rows, columns = tile
        left, right = self.packed
        logs, table = packed_tables(self.n_items, nu)
        row, column = self.factors(nu)
        _loops.discordant_pairs.write_packed(
            left.part(rows),
            right.part(columns),
            table,
            np.exp(-logs),
            row[rows],
            column[columns],
            mirror,
            triangle,
            out,
            mirrored,
        )


@lru_cache(maxsize=32)
def packed_tables(n_items: int, nu: float) -> tuple[FloatArray, FloatArray]:
    """Return the log q-factorials, and ``q^c`` over the factor of m shared items at place ``32 c + m``."""
    logs = log_q_factorials(n_items, nu)
    table = np.zeros((comb(n_items, 2) + 1, 32))
    table[:, : n_items + 1] = np.exp(-nu * np.arange(len(table)))[:, None] * np.exp(-logs)
    return logs, table.ravel()


def writable(out: NDArray[Any]) -> bool:
    """Say whether compiled code can write into a matrix."""
    return type(out) is np.ndarray and out.dtype in (np.float64, np.float32)


class KendallDiscordance(Discordance):
    """The Kendall kernel without writing down the signs of all pairs: for many items."""

    description = "closed form (concordant less discordant pairs)"

    def values(self, kernels: Sequence[Kernel], tile: Tile) -> FloatArray:
        """Return the kernel, which has no parameters, once for each."""
        m = np.arange(self.n_items + 1)
        tables = (m * (m - 1) / 2)[None]
        discordant, tied_in_both = self.pair_sums(tables, tile)
        rows, columns = tile
        left, right = self.left.sums(tables, rows)[0], self.right.sums(tables, columns)[0]
        pairs = comb(self.n_items, 2)
        strict = pairs - left[:, None] - right[None, :] + tied_in_both[0]
        value = (strict - 2 * discordant) / pairs if pairs else np.ones(discordant.shape)
        return np.broadcast_to(value, (len(kernels), *value.shape))

    def gradients(self, kernel: Kernel, tile: Tile) -> dict[str, FloatArray]:
        """Return nothing: the kernel has no parameters."""
        return {}


def width(kernel: Kernel) -> float:
    """Return the nu of an exponential kernel."""
    return cast(ExponentialKernel, kernel).width

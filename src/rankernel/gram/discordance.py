"""Exact Mallows and Kendall kernels of rankings without free items, from discordant pairs and shared buckets.

For buckets of sizes n_i and n'_j that share C_ij items, and c strictly discordant pairs,
``log K = -nu c + sum T[n_i] + sum T[n'_j] - sum T[C_ij]`` with ``T[m] = log([m]_q! / m!)`` and q = exp(-nu).
The data-dependent integers are found once for all nu and serve the derivative, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import cast

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel.gate import RankArray
from rankernel.gram.evaluator import Evaluator, FloatArray, Part, Tile
from rankernel.gram.formulas.q_factorials import log_q_factorials, log_q_factorials_derivative
from rankernel.kernels.base import Kernel
from rankernel.kernels.exponential import ExponentialKernel
from rankernel.rankings import Rankings

__all__ = ["KendallDiscordance", "MallowsEvaluator"]

PACKED_ITEMS = 24  # up to here the signs of all pairs fit into five machine words, and n! into a float


@dataclass(frozen=True)
class Ordered:
    """Rankings with the order of their items and the sizes of their buckets at hand."""

    ranks: RankArray
    order: NDArray[np.int64]
    n_buckets: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, rankings: Rankings) -> Ordered:
        """Prepare rankings."""
        order = np.argsort(rankings.ranks, axis=1, kind="stable").astype(np.int64)
        return cls(rankings.ranks, order, rankings.n_buckets, rankings.bucket_sizes())

    def sums(self, tables: FloatArray, rows: Part) -> FloatArray:
        """Return the sum of each table over the bucket sizes of some rankings: shape (n_tables, n_rows)."""
        return np.asarray(tables[:, self.sizes[rows]].sum(axis=2))


@dataclass(frozen=True)
class Packed:
    """The order of every pair of items as bits, and the buckets with ties as sets of bits."""

    before: NDArray[np.uint64]
    after: NDArray[np.uint64]
    ties: NDArray[np.uint64]

    @classmethod
    def of(cls, rankings: Rankings) -> Packed:
        """Pack rankings of few items."""
        a, b = np.triu_indices(rankings.n_items, 1)
        first, second = rankings.ranks[:, a], rankings.ranks[:, b]
        sizes = rankings.bucket_sizes()
        items = np.uint64(1) << np.arange(rankings.n_items, dtype=np.uint64)
        tied = np.argsort(sizes < 2, axis=1, kind="stable")[:, : int((sizes > 1).sum(axis=1).max(initial=0))]
        members = np.where(np.take_along_axis(sizes, tied, axis=1) > 1, tied, -1)
        ties = np.zeros(members.shape, dtype=np.uint64)
        for slot in range(members.shape[1]):
            inside = rankings.ranks == members[:, slot, None]
            ties[:, slot] = (inside * items).sum(axis=1, dtype=np.uint64)
        return cls(to_words(first < second), to_words(first > second), ties)


def to_words(bits: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return rows of bits as rows of 64-bit words."""
    width = max(-(-bits.shape[1] // 64), 1) * 64
    padded = np.zeros((len(bits), width), dtype=np.bool_)
    padded[:, : bits.shape[1]] = bits
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


class Discordance(Evaluator):
    """What Mallows and Kendall share: discordant pairs and sums over shared buckets."""

    def __init__(self, X: Rankings, Y: Rankings) -> None:
        self.X, self.Y = X, Y
        self.n_items = X.n_items

    @cached_property
    def left(self) -> Ordered:
        """The rows."""
        return Ordered.of(self.X)

    @cached_property
    def right(self) -> Ordered:
        """The columns."""
        return self.left if self.Y is self.X else Ordered.of(self.Y)

    def pair_sums(self, tables: FloatArray, tile: Tile) -> tuple[NDArray[np.int64], FloatArray]:
        """Return the discordant pairs of each entry, and each table summed over its shared buckets."""
        rows, columns = tile
        X, Y = self.left.ranks[rows], self.right.ranks[columns]
        discordant = np.empty((len(X), len(Y)), dtype=np.int64)
        sums = np.empty((len(tables), len(X), len(Y)))
        _loops.mallows.pair_sums(
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


class MallowsEvaluator(Discordance):
    """The closed form of the marginalised Mallows kernel."""

    description = "closed form (q-factorials of shared buckets)"

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
        left = Packed.of(self.X)
        return left, left if self.Y is self.X else Packed.of(self.Y)

    def packed_values(self, nu: float, tile: Tile) -> FloatArray:
        """Return the kernel at one width, from bits and small tables."""
        rows, columns = tile
        left, right = self.packed
        table = log_q_factorials(self.n_items, nu)
        row = np.exp(self.left.sums(table[None], rows)[0])
        column = np.exp(self.right.sums(table[None], columns)[0])
        out = np.empty((len(row), len(column)))
        powers = np.exp(-nu * np.arange(comb(self.n_items, 2) + 1))
        _loops.mallows.fill_packed(
            left.before[rows],
            left.after[rows],
            left.ties[rows],
            right.before[columns],
            right.after[columns],
            right.ties[columns],
            powers,
            np.exp(-table),
            row,
            column,
            out,
        )
        return out


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

"""Every function of the Kendall distance, between rankings without free items.

The distance is d = c + X: c pairs in opposite order are certain, and the law of X depends only on the bucket sizes
n_i, n'_j and on the C_ij items that they share. Three ways lead from there to the mean of a function:

- exponentials: ``log K = -nu c + sum T[n_i] + sum T[n'_j] - sum T[C_ij]``, ``T[m] = log([m]_q! / m!)``, q = exp(-nu);
- linear functions: pairs that both order alike less those they order differently, as the mean sign in a tie is 0;
- any other function f: the mean of f(c + X), tabulated over c for each law of X.

Pairs are counted as bits unless items are very many; where they are few, all of it runs on bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, Indices, IntArray
from rankernel._utils.q_factorials import tables
from rankernel.gram.cost import STEP
from rankernel.gram.evaluator import Block, Evaluator, Part, block_shape
from rankernel.gram.exact.coded import number_codes
from rankernel.gram.exact.kendall_law import Brackets, KendallLaw, brackets_of, central_moments, mean_extra, tie_law
from rankernel.gram.exact.overlap import Shape, shapes
from rankernel.kernels.base import Kernel, distance_derivatives
from rankernel.kernels.facts import AffinePower
from rankernel.rankings import Rankings, unique_rows

TILE_ITEMS = 2**15
SHORT = 4  # lists are short if there are so many times more items
PACKED_ITEMS = 24  # up to here the signs of all pairs fit into five machine words, and n! into a float
BITS_ITEMS = 256  # up to here the bits of all pairs take some kilobytes a ranking, and are counted quickest
MOST_MOMENTS = 64
MOST_TABULATED = 2**21  # numbers in the tables of a function for all pairs of bucket sizes
SHARED = 32  # places in a table for the number of shared items
CODE_BITS = 2**44  # sums of some of such whole numbers are exact as floats

Bits = NDArray[np.uint64]
NO_BITS: Bits = np.zeros((0, 0), dtype=np.uint64)


def is_covered(kernel: Kernel, X: Rankings, Y: Rankings) -> bool:
    """Say whether there is a way for a function of the Kendall distance, given rankings without free items."""
    if kernel.facts(X.n_items).decay or affine_power(kernel, X.n_items) is not None:
        return True
    law = KendallLaw()
    return all(law.covers(left, right) for left in shapes(X) for right in shapes(Y))


def is_linear(kernel: Kernel, n_items: int) -> bool:
    """Say whether a kernel is a linear function of the distance."""
    power = affine_power(kernel, n_items)
    return power is not None and power.degree == 1


def affine_power(kernel: Kernel, n_items: int) -> AffinePower | None:
    """Return the power of an affine function of the distance that a kernel is, if its degree is not very large."""
    power = kernel.facts(n_items).affine_power
    return power if power is not None and power.degree <= MOST_MOMENTS and not kernel.params else None


class Packed(NamedTuple):
    """The order of every pair of items as bits, the buckets with ties as sets of bits, and which sizes they have."""

    before: Bits
    after: Bits
    ties: Bits
    kind: Indices

    def part(self, rows: Part) -> tuple[Bits, Bits, Bits, Indices]:
        """Return the bits of some rankings."""
        return self.before[rows], self.after[rows], self.ties[rows], self.kind[rows]


class Side:
    """Rankings without free items, with what is needed of them at hand, each made when it is needed."""

    def __init__(self, rankings: Rankings) -> None:
        self.rankings, self.ranks = rankings, rankings.ranks

    @cached_property
    def order(self) -> Indices:
        """The items of each ranking, best first."""
        return np.argsort(self.ranks, axis=1, kind="stable")

    @cached_property
    def n_buckets(self) -> IntArray:
        """The number of buckets of each ranking."""
        return self.rankings.n_buckets

    @cached_property
    def sizes(self) -> IntArray:
        """The bucket sizes of each ranking."""
        return self.rankings.bucket_sizes()

    @cached_property
    def kinds(self) -> tuple[list[Shape], Indices]:
        """The distinct sets of bucket sizes, ignoring their order, and which of them each ranking has."""
        sets = np.sort(self.sizes, axis=1)[:, ::-1]
        first, kind = unique_rows(sets)
        return [Shape(tuple(size for size in row if size)) for row in sets[first].tolist()], kind

    @cached_property
    def packed(self) -> Packed:
        """The rankings as bits."""
        bits, few = _loops.bits, self.ranks.shape[1] <= PACKED_ITEMS
        tied = bits.tied_sets(self.ranks, self.sizes) if few else np.zeros((len(self.ranks), 1), dtype=np.uint64)
        return Packed(bits.pairs_in_order(self.ranks), bits.pairs_in_order(-self.ranks), tied, self.kinds[1])

    def pair_bits(self, rows: Part) -> tuple[Bits, Bits]:
        """Return the bits of the pairs of some rankings, one way and the other; none if there are very many."""
        if self.ranks.shape[1] > BITS_ITEMS:
            return NO_BITS, NO_BITS
        return self.packed.before[rows], self.packed.after[rows]

    def sums(self, table: FloatArray, rows: Part = slice(None)) -> FloatArray:
        """Return the sum of a table over the bucket sizes of some rankings."""
        return np.asarray(table[self.sizes[rows]].sum(axis=1))


class KendallEvaluator(Evaluator):
    """The mean of a function of the Kendall distance between two sets of rankings without free items."""

    def __init__(self, kernel: Kernel, X: Rankings, Y: Rankings) -> None:
        self.X, self.Y, self.n_items = X, Y, X.n_items
        self.left = Side(X)
        self.right = self.left if Y is X else Side(Y)
        self.few_items = self.n_items <= PACKED_ITEMS
        self.exponential = kernel.facts(self.n_items).decay is not None
        self.linear = not self.exponential and is_linear(kernel, self.n_items)
        if self.linear:
            self.direct = self.n_items <= BITS_ITEMS and not self.short
        else:
            self.direct = self.few_items and (self.exponential or self.tabulated)
        if not self.direct:
            # Entries cost more with more items: smaller tiles keep all threads busy, and waste less on the diagonal.
            self.block_side = min(max(TILE_ITEMS // self.n_items, 16), 256)
        what = "concordant less discordant pairs" if self.linear else "law of the Kendall distance"
        path = "listed items" if self.short else "pairs as bits" if self.n_items <= BITS_ITEMS else "inversions"
        self.details = f"closed form ({'q-factorials of shared buckets' if self.exponential else what}; {path})"
        self.laws: dict[float, Brackets] = {}
        self.functions: dict[tuple[Kernel, str, float], FloatArray] = {}

    @cached_property
    def short(self) -> bool:
        """Whether all rankings are top-k lists that are short against the number of items."""
        return not self.few_items and all(
            bool(np.isin(side.kinds(), ("top-k", "full")).all())
            and SHORT * int(side.n_buckets.max(initial=0)) <= self.n_items
            for side in (self.X, self.Y)
        )

    @cached_property
    def n_ties(self) -> tuple[int, int]:
        """The most ties of a ranking on either side."""
        left, right = (int((side.sizes > 1).sum(axis=1).max(initial=0)) for side in (self.left, self.right))
        return left, right

    @cached_property
    def tabulated(self) -> bool:
        """Whether a function has one small table for all pairs of bucket sizes: at most one tie on each side."""
        kinds = [side.kinds[0] for side in (self.left, self.right)]
        return (
            max(self.n_ties) <= 1
            and len(kinds[0]) * len(kinds[1]) * SHARED * (comb(self.n_items, 2) + 1) <= MOST_TABULATED
        )

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time for the pairs of bits, listed items or sorted items of all entries."""
        if self.direct:
            step = STEP["bits"] * -(-comb(self.n_items, 2) // 64) * (2 if self.linear else 1)
            if self.exponential and max(self.n_ties) > 1:  # every two buckets are intersected
                step += STEP["shared"] * max(self.n_ties[0], 1) * max(self.n_ties[1], 1)
        elif self.short:
            step = STEP["listed"] * int(self.X.n_buckets.max(initial=0))
        elif self.n_items <= BITS_ITEMS:
            step = STEP["differing"] * -(-comb(self.n_items, 2) // 64)
            if min(self.n_ties) > 0:  # the items of tied buckets are looked up
                step += STEP["tied"] * self.n_items
        else:
            step = STEP["inversion"] * self.n_items * (3 if max(self.n_ties) > 1 else 1)  # of both, within and between
        return n_rows * n_columns * (STEP["entry"] + step + (0 if self.direct or self.exponential else STEP["code"]))

    # ------------------------------------------------------------------ values

    def values(self, kernels: Sequence[Kernel], tile: Block) -> FloatArray:
        """Return the mean of each kernel."""
        if self.direct:
            out = np.empty((len(kernels), *block_shape((len(self.X), len(self.Y)), tile)))
            for kernel, matrix in zip(kernels, out, strict=True):
                self.write_bits(kernel, tile, matrix, matrix[:0, :0], False, False)
            return out
        if self.exponential:
            logs = self.log_tables(kernels)
            discordant, sums = self.pair_sums(logs, tile)
            rates = np.array([rate_of(kernel) for kernel in kernels])
            return np.asarray(np.exp(self.assemble(logs, discordant, sums, tile, rates)))
        if self.linear:
            return self.linear_means(kernels, tile)
        return self.means(tile, [(kernel, "value", value_of(kernel, self.n_items)) for kernel in kernels])

    def gradients(self, kernel: Kernel, tile: Block) -> dict[str, FloatArray]:
        """Return the derivatives: of an exponential those of its logarithm, of other functions their means."""
        if self.exponential:
            decay = kernel.facts(self.n_items).decay
            assert decay is not None
            rate, slopes = decay.rate, decay.derivatives
            logs = np.stack(tables(self.n_items, rate))
            discordant, sums = self.pair_sums(logs, tile)
            log_value, log_slope = self.assemble(logs, discordant, sums, tile, np.array([rate, 1.0]))
            slope = np.exp(log_value) * log_slope
            return {name: factor * slope for name, factor in slopes.items()}
        at = distance_derivatives(kernel, self.n_items, np.arange(comb(self.n_items, 2) + 1))
        if not at:
            return {}
        found = self.means(tile, [(kernel, name, shifted_mean(function)) for name, function in at.items()])
        return dict(zip(at, found, strict=True))

    def log_values(self, kernel: Kernel, tile: Block) -> FloatArray:
        """Return the logarithm of the mean."""
        if not self.exponential:
            function = kernel.facts(self.n_items).function
            assert function is not None
            function.log_value(np.arange(comb(self.n_items, 2) + 1))
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(self.values([kernel], tile)[0]))
        logs = self.log_tables([kernel])
        discordant, sums = self.pair_sums(logs, tile)
        return np.asarray(self.assemble(logs, discordant, sums, tile, np.array([rate_of(kernel)]))[0])

    # ------------------------------------------------------------------ from bits

    def write(
        self, kernel: Kernel, tile: Block, out: NDArray[Any], mirror: NDArray[Any] | None, on_diagonal: bool
    ) -> None:
        """Write a tile straight into the matrix, from bits, where that is possible."""
        mirrored = out if on_diagonal else out[:0, :0] if mirror is None else mirror
        self.write_bits(kernel, tile, out, mirrored, mirror is not None, on_diagonal)

    def write_bits(
        self, kernel: Kernel, tile: Block, out: NDArray[Any], mirrored: NDArray[Any], mirror: bool, triangle: bool
    ) -> None:
        """Write the means of a tile, and those of its mirror image if there is one."""
        left, right = self.left.packed.part(tile[0]), self.right.packed.part(tile[1])
        loops = _loops.discordant_pairs
        if self.linear:
            constant, unit = linear_parts(kernel, self.n_items)
            loops.write_balance(
                left, right, constant, unit, mirror, triangle, loops.room(left[0].shape[1]), out, mirrored
            )
            return
        table, offsets, inverse, row, column = self.tables_of(kernel)
        row, column, room = row[tile[0]], column[tile[1]], loops.room(left[0].shape[1], len(offsets))
        loops.write_packed(left, right, table, offsets, inverse, row, column, mirror, triangle, room, out, mirrored)

    def tables_of(self, kernel: Kernel) -> tuple[FloatArray, Bits, FloatArray, FloatArray, FloatArray]:
        """Return the table of a function, where each pair of bucket sizes begins, and factors; the last is kept."""
        known = self.__dict__.get("last_tables")
        if known is None or known[0] != kernel:
            known = kernel, self.exponential_tables(kernel) if self.exponential else self.function_tables(kernel)
            self.last_tables = known
        found: tuple[FloatArray, Bits, FloatArray, FloatArray, FloatArray] = known[1]
        return found

    def exponential_tables(self, kernel: Kernel) -> tuple[FloatArray, Bits, FloatArray, FloatArray, FloatArray]:
        """Return a table that serves all bucket sizes, and what these themselves contribute."""
        logs, table = packed_table(self.n_items, rate_of(kernel))
        row = np.exp(self.left.sums(logs))
        column = row if self.Y is self.X else np.exp(self.right.sums(logs))
        offsets = np.zeros((len(self.left.kinds[0]), len(self.right.kinds[0])), dtype=np.uint64)
        return table, offsets, np.exp(-logs), row, column

    def function_tables(self, kernel: Kernel) -> tuple[FloatArray, Bits, FloatArray, FloatArray, FloatArray]:
        """Return one table for each pair of bucket sizes."""
        (left, _), (right, _) = self.left.kinds, self.right.kinds
        mean, size = value_of(kernel, self.n_items), comb(self.n_items, 2) + 1
        table = np.zeros((len(left), len(right), size, SHARED))
        known: dict[Brackets, FloatArray] = {}
        for i, one in enumerate(left):
            for j, other in enumerate(right):
                for shared in range(min(max(one.sizes), max(other.sizes)) + 1):
                    brackets = brackets_of((*one.sizes, *other.sizes), (shared,))
                    if brackets not in known:
                        known[brackets] = mean(brackets, size)
                    table[i, j, :, shared] = known[brackets]
        offsets = np.arange(len(left) * len(right), dtype=np.uint64).reshape(len(left), -1) * np.uint64(size * SHARED)
        return table.ravel(), offsets, np.ones(self.n_items + 1), np.ones(len(self.X)), np.ones(len(self.Y))

    # ------------------------------------------------------------------ from sums over shared buckets

    def pair_sums(self, sums_of: FloatArray, tile: Block) -> tuple[IntArray, FloatArray]:
        """Return the discordant pairs of each entry, and each table summed over its shared buckets of two or more."""
        rows, columns = tile
        X, Y = self.left.ranks[rows], self.right.ranks[columns]
        discordant, n_buckets = np.empty((len(X), len(Y)), dtype=np.int64), self.left.n_buckets[rows]
        if self.short:  # the one bucket that two lists can share is the last
            shared = np.empty_like(discordant)
            longest = int(self.left.n_buckets.max(initial=1)) - 1
            items = np.ascontiguousarray(self.left.order[rows, :longest])
            listed_Y = self.right.n_buckets[columns] - 1
            _loops.discordant_pairs.short_lists(items, n_buckets - 1, Y, listed_Y, discordant, shared)
            return discordant, np.asarray(sums_of[:, shared])
        sums = np.empty((len(sums_of), len(X), len(Y)))
        order, n_buckets_Y = self.left.order[rows], self.right.n_buckets[columns]
        bits, bits_Y = self.left.pair_bits(rows), self.right.pair_bits(columns)
        loops, widest = _loops.discordant_pairs, self.n_items  # pairs of buckets that are worth counting
        if not bits[0].shape[1]:
            widest = 4 * self.n_items + 64
            loops.count_in_blocks(X, order, n_buckets, Y, n_buckets_Y, widest, discordant)
        loops.pair_sums(X, order, n_buckets, bits, Y, n_buckets_Y, bits_Y, sums_of, widest, discordant, sums)
        return discordant, sums

    def log_tables(self, kernels: Sequence[Kernel]) -> FloatArray:
        """Return the logarithms of q-factorials for each kernel."""
        return np.stack([tables(self.n_items, rate_of(kernel))[0] for kernel in kernels])

    def assemble(
        self, sums_of: FloatArray, discordant: IntArray, sums: FloatArray, tile: Block, factors: FloatArray
    ) -> FloatArray:
        """Return ``-factor c + row sums + column sums - shared sums`` for each table."""
        left = np.stack([self.left.sums(table, tile[0]) for table in sums_of])
        right = np.stack([self.right.sums(table, tile[1]) for table in sums_of])
        return np.asarray(left[:, :, None] + right[:, None, :] - sums - factors[:, None, None] * discordant)

    def linear_means(self, kernels: Sequence[Kernel], tile: Block) -> FloatArray:
        """Return linear functions of the strictly ordered pairs."""
        m = np.arange(self.n_items + 1)
        discordant, tied_in_both = self.pair_sums((m * (m - 1) / 2)[None], tile)
        left, right = self.left.sums(m * (m - 1) / 2, tile[0]), self.right.sums(m * (m - 1) / 2, tile[1])
        balance = comb(self.n_items, 2) - left[:, None] - right[None, :] + tied_in_both[0] - 2 * discordant
        parts = [linear_parts(kernel, self.n_items) for kernel in kernels]
        return np.stack([constant + unit * balance for constant, unit in parts])

    def means(self, tile: Block, wanted: list[tuple[Kernel, str, MeanOf]]) -> FloatArray:
        """Return the means of functions, each tabulated over c for each law of what ties leave to chance."""
        rng = np.random.default_rng(0)
        salt = rng.integers(1, CODE_BITS, self.n_items + 1).astype(np.float64)
        salt[:2] = 0.0
        discordant, shared = self.pair_sums(salt[None], tile)
        (left, kind), (right, kind_Y) = self.left.kinds, self.right.kinds
        sides = rng.integers(1, CODE_BITS, (2, max(len(left), len(right)))).astype(np.float64)
        rows, columns = kind[tile[0]], kind_Y[tile[1]]
        codes = shared[0] + sides[0, rows][:, None] + sides[1, columns][None, :]
        first, ids = number_codes(codes.view(np.uint64))
        size = comb(self.n_items, 2) + 1
        table = np.empty((len(wanted), len(first), size))
        for number, (place, code) in enumerate(zip(first.tolist(), codes.ravel()[first].tolist(), strict=True)):
            if code not in self.laws:
                i, j = divmod(place, len(columns))
                self.laws[code] = self.brackets((left[rows[i]], right[columns[j]]), tile, i, j)
            for k, (kernel, name, mean) in enumerate(wanted):
                key = kernel, name, code
                if key not in self.functions:
                    self.functions[key] = mean(self.laws[code], size)
                table[k, number] = self.functions[key]
        return np.asarray(table[:, ids, discordant])

    def brackets(self, sizes: tuple[Shape, Shape], tile: Block, i: int, j: int) -> Brackets:
        """Return the law of one entry of a tile."""
        x = self.left.ranks[np.arange(len(self.X))[tile[0]][i]].astype(np.int64)
        y = self.right.ranks[np.arange(len(self.Y))[tile[1]][j]]
        _, cells = np.unique(x * self.n_items + y, return_counts=True)
        return brackets_of((*sizes[0].sizes, *sizes[1].sizes), cells.tolist())


MeanOf = Callable[[Brackets, int], FloatArray]


def value_of(kernel: Kernel, n_items: int) -> MeanOf:
    """Return what tabulates the mean of a kernel over c, for a law of what is left to chance."""
    power, function = affine_power(kernel, n_items), kernel.facts(n_items).function
    if power is None:
        assert function is not None
        return shifted_mean(function.value(np.arange(comb(n_items, 2) + 1)))

    def from_moments(brackets: Brackets, size: int) -> FloatArray:
        mean = np.arange(size, dtype=np.float64) + mean_extra(brackets)
        central, middle = central_moments(brackets, power.degree), power.intercept + power.slope * mean
        terms = (
            comb(power.degree, j) * middle ** (power.degree - j) * power.slope**j * central[j]
            for j in range(0, power.degree + 1, 2)
        )
        return np.asarray(power.factor * sum(terms))

    return from_moments


def shifted_mean(function: FloatArray) -> MeanOf:
    """Return what tabulates the mean of ``f(c + X)`` over c, for a law of X."""

    def mean(brackets: Brackets, size: int) -> FloatArray:
        law = tie_law(brackets)
        padded = np.concatenate([function, np.zeros(len(law) - 1)])  # c and X together are never so large
        return np.correlate(padded, law, "valid")[:size]

    return mean


def rate_of(kernel: Kernel) -> float:
    """Return the nu of an exponential kernel."""
    decay = kernel.facts(2).decay
    assert decay is not None
    return decay.rate


def linear_parts(kernel: Kernel, n_items: int) -> tuple[float, float]:
    """Return a linear kernel where as many pairs agree as disagree, and what each pair more that agrees adds."""
    power = affine_power(kernel, n_items)
    assert power is not None
    middle = power.intercept + power.slope * comb(n_items, 2) / 2
    return power.factor * middle, -power.factor * power.slope / 2


@lru_cache(maxsize=32)
def packed_table(n_items: int, nu: float) -> tuple[FloatArray, FloatArray]:
    """Return the log q-factorials, and ``q^c`` over the factor of m shared items at place ``32 c + m``."""
    logs, _ = tables(n_items, nu)
    table = np.zeros((comb(n_items, 2) + 1, SHARED))
    table[:, : n_items + 1] = np.exp(-nu * np.arange(len(table)))[:, None] * np.exp(-logs)
    return logs, table.ravel()

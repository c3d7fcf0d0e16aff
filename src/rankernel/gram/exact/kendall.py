"""Functions of the Kendall distance between rankings without free items.

The distance is d = c + X with c the number of pairs in opposite strict order and X the number of tied pairs that random
completions put in opposite order. With buckets of sizes n_i and n'_j that share C_ij items, the probability generating
function of X is, up to a constant, ``prod_i [n_i]_q! prod_j [n'_j]_q! / prod_ij [C_ij]_q!``. Hence

- exponentials: ``log K = -nu c + sum T[n_i] + sum T[n'_j] - sum T[C_ij]``, ``T[m] = log([m]_q! / m!)``, q = exp(-nu);
- powers of affine functions: the cumulants of X add up in the same way;
- any other function: its mean over the distribution of X.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel._loops.compiled import compiled
from rankernel._loops.pairs import popcount, stream
from rankernel._utils import FloatArray, Indices, IntArray
from rankernel._utils.combinatorics import tables
from rankernel.gram.evaluator import (
    BLOCK_NUMBERS,
    CACHED_NUMBERS,
    STEP,
    Block,
    Evaluator,
    Names,
    Part,
    block_shape,
    distinct_values,
)
from rankernel.gram.exact.formulas import (
    MIX,
    CodeArray,
    Shape,
    exponential_matrices,
    function_table,
    salts,
    unique_codes,
)
from rankernel.kernels.base import AffinePower, Kernel, decay_rate, is_exponential
from rankernel.rankings import Rankings, ranks_for_loops, unique_rows

BLOCK_ITEMS = 2**15  # items of the rows of a block: larger blocks leave threads idle (benchmarks/grid.py)
SHORT_LISTS = 4  # lists are short if there are this many times more items (benchmarks/grid.py)
PACKED_ITEMS = 24  # up to here all pairs fit into five machine words
SHARED = 32  # entries of a table for the number of shared items, at most PACKED_ITEMS
MAX_ITEMS = 200  # of a function that is neither exponential nor a small power: some milliseconds for each entry
MAX_DEGREE = 8  # of powers from moments, which lose no more than a factor 7!! = 105 of the machine precision
BERNOULLI = 6, -30, 42, -30  # one over the Bernoulli numbers of orders 2, 4, 6, 8

Bits = NDArray[np.uint64]
Tables = tuple[FloatArray, Bits, FloatArray, FloatArray, FloatArray]  # arguments of write_packed: table to column


def kendall_evaluator(kernel: Kernel, X: Rankings, Y: Rankings) -> Evaluator | None:
    """Return the evaluator of a function of the Kendall distance, None if there are too many items for it."""
    evaluator = KendallEvaluator(kernel, X, Y)
    if evaluator.exponential or evaluator.power is not None or evaluator.is_tabulated:
        return evaluator
    distribution = evaluator.distribution
    return distribution if X.n_items <= MAX_ITEMS and distribution.table_size <= CACHED_NUMBERS else None


# ---------------------------------------------------------------------- one side of a Gram matrix


class Side:
    """Rankings without free items, with derived arrays that are computed on first use."""

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
        """The distinct multisets of bucket sizes, and the index of that of each ranking."""
        multisets = np.sort(self.sizes, axis=1)[:, ::-1]
        first, kind = unique_rows(multisets)
        return [Shape(tuple(size for size in row if size)) for row in multisets[first].tolist()], kind

    @cached_property
    def max_ties(self) -> int:
        """The largest number of tied buckets of a ranking."""
        return int((self.sizes > 1).sum(axis=1).max(initial=0))

    @cached_property
    def packed(self) -> tuple[Bits, Bits, Bits, Indices]:
        """The rankings as bits: pairs in order, in reverse order, tied buckets; and the index of the bucket sizes."""
        bits, few = _loops.pairs, self.ranks.shape[1] <= PACKED_ITEMS
        ties = bits.tied_sets(self.ranks, self.sizes) if few else np.zeros((len(self.ranks), 1), dtype=np.uint64)
        return bits.pairs_in_order(self.ranks), bits.pairs_in_order(-self.ranks), ties, self.kinds[1]

    def pair_bits(self, rows: Part) -> tuple[Bits, Bits]:
        """Return the bits of the pairs of some rankings in order and in reverse order; none for many items."""
        if self.ranks.shape[1] > _loops.pairs.MAX_BIT_ITEMS:
            return np.zeros((0, 0), dtype=np.uint64), np.zeros((0, 0), dtype=np.uint64)
        return self.packed[0][rows], self.packed[1][rows]

    @cached_property
    def positions(self) -> tuple[IntArray, IntArray]:
        """The position of each item, ties broken by index, and the position where its bucket ends."""
        position = np.empty_like(self.order)
        np.put_along_axis(position, self.order, np.broadcast_to(np.arange(self.ranks.shape[1]), self.order.shape), 1)
        return position, np.take_along_axis(np.cumsum(self.sizes, axis=1), self.ranks.astype(np.int64), axis=1)

    def sums(self, table: FloatArray, rows: Part = slice(None)) -> FloatArray:
        """Return the sum of a table over the bucket sizes of some rankings."""
        return np.asarray(table[self.sizes[rows]].sum(axis=1))


# ---------------------------------------------------------------------- exponentials, powers, and tables


class KendallEvaluator(Evaluator):
    """Exponentials, powers of affine functions, and with few items and ties any function of the Kendall distance."""

    details = "closed form"

    def __init__(self, kernel: Kernel, X: Rankings, Y: Rankings) -> None:
        self.kernel, self.X, self.Y, self.n_items, self.left = kernel, X, Y, X.n_items, Side(X)
        self.right = self.left if Y is X else Side(Y)
        self.exponential = is_exponential(kernel, self.n_items)
        self.power: AffinePower | None = None  # of an affine function, if its mean is accurate from moments
        function = kernel.facts(self.n_items).function
        if isinstance(function, AffinePower) and not kernel.params and function.degree <= MAX_DEGREE:
            self.power = function
        self.linear = self.power is not None and self.power.degree == 1
        if self.linear:
            self.direct = self.n_items <= _loops.pairs.MAX_BIT_ITEMS and not self.is_short
        else:
            self.direct = self.n_items <= PACKED_ITEMS and (self.exponential or self.is_tabulated)
        if not self.direct:
            self.block_side = min(max(BLOCK_ITEMS // self.n_items, 16), 256)
        self.cached_tables: tuple[Kernel, Tables] | None = None

    @cached_property
    def is_tabulated(self) -> bool:
        """Whether one small table has the mean of a function for all pairs of bucket sizes: at most one tie each."""
        n_kinds = len(self.left.kinds[0]) * len(self.right.kinds[0])
        return (
            self.n_items <= PACKED_ITEMS
            and max(self.left.max_ties, self.right.max_ties) <= 1
            and n_kinds * SHARED * (comb(self.n_items, 2) + 1) <= BLOCK_NUMBERS
        )

    @cached_property
    def distribution(self) -> DistributionEvaluator:
        """The evaluator of any function of the distance."""
        return DistributionEvaluator(self.kernel, self.X, self.Y)

    @cached_property
    def is_short(self) -> bool:
        """Whether all rankings are top-k lists that are short in comparison with the number of items."""
        return self.n_items > PACKED_ITEMS and all(
            bool(np.isin(side.rankings.kinds(), ("top-k", "full")).all())
            and SHORT_LISTS * int(side.n_buckets.max(initial=0)) <= self.n_items
            for side in (self.left, self.right)
        )

    def count(self, sums_of: FloatArray, block: Block) -> tuple[IntArray, FloatArray]:
        """Return the discordant pairs of each entry, and each table summed over its shared buckets of two or more."""
        rows, columns = block
        X, Y = ranks_for_loops(self.left.ranks[rows]), ranks_for_loops(self.right.ranks[columns])
        discordant, n_buckets = np.empty((len(X), len(Y)), dtype=np.int64), self.left.n_buckets[rows]
        if self.is_short:  # two lists share only the last bucket
            shared = np.empty_like(discordant)
            longest = int(self.left.n_buckets.max(initial=1)) - 1
            items = np.ascontiguousarray(self.left.order[rows, :longest])
            short_lists(items, n_buckets - 1, Y, self.right.n_buckets[columns] - 1, discordant, shared)
            return discordant, np.asarray(sums_of[:, shared])
        sums, sums_of = np.empty((len(sums_of), len(X), len(Y))), np.array(sums_of)
        order, n_buckets_Y = self.left.order[rows], self.right.n_buckets[columns]
        bits, bits_Y = self.left.pair_bits(rows), self.right.pair_bits(columns)
        max_cells = self.n_items  # pairs of buckets up to which a table of all pairs of buckets is faster
        if not bits[0].shape[1]:
            max_cells = 4 * self.n_items + 64
            position, end = (array[columns] for array in self.right.positions)
            _loops.pairs.count_discordant(X, order, n_buckets, position, end, n_buckets_Y, max_cells, discordant)
        pair_sums(X, order, n_buckets, bits, Y, n_buckets_Y, bits_Y, sums_of, max_cells, discordant, sums)
        return discordant, sums

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time for the pairs of bits, listed items or sorted items of all entries."""
        n_words, ties = -(-comb(self.n_items, 2) // 64), (self.left.max_ties, self.right.max_ties)
        if self.direct:
            step = STEP["bits"] * n_words * (2 if self.linear else 1)
            if self.exponential and max(ties) > 1:  # every two buckets are intersected
                step += STEP["shared"] * max(ties[0], 1) * max(ties[1], 1)
        elif self.is_short:
            step = STEP["counted"] * int(self.X.n_buckets.max(initial=0))
        elif self.n_items <= _loops.pairs.MAX_BIT_ITEMS:
            step = STEP["differing"] * n_words + (STEP["tied"] * self.n_items if min(ties) > 0 else 0)
        else:
            step = STEP["inversion"] * self.n_items * (3 if max(ties) > 1 else 1)
        return n_rows * n_columns * (STEP["entry"] + step)

    # ------------------------------------------------------------------ values

    def matrices(self, kernel: Kernel, block: Block, names: Names) -> Sequence[FloatArray]:
        """Return the mean of the kernel, or of its derivatives."""
        if any(names):
            if not self.exponential:
                return self.distribution.matrices(kernel, block, names)
            rate = decay_rate(kernel, self.n_items)
            log_value, derivative = self.assemble(np.stack(tables(self.n_items, rate)), block, [rate, 1.0])
            value = np.exp(log_value)
            return exponential_matrices(kernel, self.n_items, value, value * derivative, names)
        if self.direct:
            out = np.empty(block_shape((len(self.X), len(self.Y)), block))
            self.write(kernel, block, out, (0, 0), False)
        elif self.exponential:
            out = np.exp(self.log_means(kernel, block))
        else:
            out = self.from_moments(kernel, block)
        return [out for _ in names]

    def log_values(self, kernel: Kernel, block: Block) -> FloatArray:
        """Return the logarithm of the mean."""
        if self.exponential:
            return self.log_means(kernel, block)
        function = kernel.facts(self.n_items).function
        assert function is not None
        function.log_value(np.arange(comb(self.n_items, 2) + 1))  # raises an error if the kernel can be negative
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.values(kernel, block)))

    def log_means(self, kernel: Kernel, block: Block) -> FloatArray:
        """Return the logarithm of an exponential kernel."""
        rate = decay_rate(kernel, self.n_items)
        return np.asarray(self.assemble(tables(self.n_items, rate)[0][None], block, [rate])[0])

    def assemble(self, sums_of: FloatArray, block: Block, factors: Sequence[float]) -> FloatArray:
        """Return ``-factor c + row sums + column sums - shared sums`` for each table."""
        discordant, shared = self.count(sums_of, block)
        left = np.stack([self.left.sums(table, block[0]) for table in sums_of])
        right = np.stack([self.right.sums(table, block[1]) for table in sums_of])
        factor = np.array(factors)[:, None, None]
        return np.asarray(left[:, :, None] + right[:, None, :] - shared - factor * discordant)

    def from_moments(self, kernel: Kernel, block: Block) -> FloatArray:
        """Return the mean of a power of an affine function u of the distance, from the moments of u around its mean.

        X is symmetric about its mean, so only even moments occur and all terms are positive.
        """
        power = self.power
        assert power is not None
        cumulants = self.assemble(
            cumulant_tables(self.n_items, power.degree), block, [-1.0] + [0.0] * (power.degree // 2)
        )
        middle = power.intercept + power.coefficient * cumulants[0]
        central = [np.ones_like(middle)]
        for k in range(1, power.degree // 2 + 1):
            terms = (
                comb(2 * k - 1, 2 * j - 1) * power.coefficient ** (2 * j) * cumulants[j] * central[k - j]
                for j in range(1, k + 1)
            )
            central.append(np.asarray(sum(terms)))
        n = power.degree
        terms = (comb(n, 2 * k) * middle ** (n - 2 * k) * moment for k, moment in enumerate(central))
        return np.asarray(power.factor * sum(terms))

    # ------------------------------------------------------------------ from bits

    def write(self, kernel: Kernel, block: Block, out: NDArray[Any], corner: tuple[int, int], symmetric: bool) -> None:
        """Write a block into a matrix at its corner, and its transpose if the matrix is symmetric."""
        left, right = (
            (bits[rows], reverse[rows], ties[rows], kind[rows])
            for (bits, reverse, ties, kind), rows in zip((self.left.packed, self.right.packed), block, strict=True)
        )
        if self.linear:
            power = kernel.facts(self.n_items).function
            assert isinstance(power, AffinePower)
            middle = power.factor * (power.intercept + power.coefficient * comb(self.n_items, 2) / 2)
            unit = -power.factor * power.coefficient / 2  # for each concordant pair minus each discordant pair
            write_balance(left, right, middle, unit, symmetric, buffers(left[0].shape[1]), out, *corner)
            return
        cached = self.cached_tables
        if cached is None or cached[0] != kernel:
            cached = kernel, self.exponential_tables(kernel) if self.exponential else self.tables(kernel)
            self.cached_tables = cached
        table, offsets, inverse, row, column = cached[1]
        row, column, work = row[block[0]], column[block[1]], buffers(left[0].shape[1], len(offsets))
        write_packed(left, right, table, offsets, inverse, row, column, symmetric, work, out, *corner)

    def exponential_tables(self, kernel: Kernel) -> Tables:
        """Return one table for all bucket sizes, and the factors of the bucket sizes of rows and columns."""
        logs, table = exponential_table(self.n_items, decay_rate(kernel, self.n_items))
        row = np.exp(self.left.sums(logs))
        column = row if self.Y is self.X else np.exp(self.right.sums(logs))
        offsets = np.zeros((len(self.left.kinds[0]), len(self.right.kinds[0])), dtype=np.uint64)
        return table, offsets, np.exp(-logs), row, column

    def tables(self, kernel: Kernel) -> Tables:
        """Return one table for each pair of bucket sizes: the mean of f(c + X) by c and the number of shared items."""
        (left, _), (right, _) = self.left.kinds, self.right.kinds
        size = comb(self.n_items, 2) + 1
        function = function_table(kernel, self.n_items)[0]
        table = np.zeros((len(left), len(right), size, SHARED))
        for i, one in enumerate(left):
            for j, other in enumerate(right):
                tie, other_tie = (max(shape.sizes) if shape.n_ties else 0 for shape in (one, other))
                for shared in range(max(tie + other_tie - self.n_items, 0), min(tie, other_tie) + 1):
                    table[i, j, :, shared] = function
                    window_means(table[i, j, :, shared], np.array([[shared, tie], [0, other_tie]]))
        offsets = np.arange(len(left) * len(right), dtype=np.uint64).reshape(len(left), -1) * np.uint64(size * SHARED)
        return table.ravel(), offsets, np.ones(self.n_items + 1), np.ones(len(self.X)), np.ones(len(self.Y))


@lru_cache(maxsize=32)
@np.errstate(under="ignore")
def exponential_table(n_items: int, nu: float) -> tuple[FloatArray, FloatArray]:
    """Return the log q-factorials, and ``q^c`` over the factor of m shared items at index ``32 c + m``."""
    logs, _ = tables(n_items, nu)
    table = np.zeros((comb(n_items, 2) + 1, SHARED))
    table[:, : n_items + 1] = np.exp(-nu * np.arange(len(table)))[:, None] * np.exp(-logs)
    return logs, table.ravel()


@lru_cache(maxsize=32)
def cumulant_tables(n_items: int, degree: int) -> FloatArray:
    """Return the cumulants of order 1, 2, 4, ... up to the degree of the inversions of m = 0..n items.

    They are ``B_r / r sum_{i<=m} (i^r - 1)``, B_r a Bernoulli number: those of independent uniform variables.
    """
    i = np.arange(n_items + 1, dtype=np.float64)
    orders = zip(range(2, degree + 1, 2), BERNOULLI, strict=False)
    sums = (1 / number / r * np.cumsum(np.where(i > 0, i**r - 1, 0.0)) for r, number in orders)
    return np.stack([i * (i - 1) / 4, *sums])


# ---------------------------------------------------------------------- distributions


class DistributionEvaluator(KendallEvaluator):
    """Any function f of the distance, as the mean of f(c + A + B).

    ``X = A + B``: A has the probability generating function ``prod_i [n_i]_q! / prod_ij [C_ij]_q!``, a product of
    q-binomial coefficients, and B that of the right bucket sizes, ``prod_j [n'_j]_q!``. The mean over B is a table for
    each right ranking, and the distribution of A is short. All terms are positive.
    """

    def __init__(self, kernel: Kernel, X: Rankings, Y: Rankings) -> None:
        super().__init__(kernel, X, Y)
        self.direct = False
        self.block_side = min(max(BLOCK_NUMBERS // (comb(self.n_items, 2) + 1), 16), 256)

    @cached_property
    def largest(self) -> tuple[int, int]:
        """The largest bucket on the left, and the largest number of items that one right bucket splits off from it."""
        tie, others = int(self.left.sizes.max(initial=1)), np.sort(self.right.sizes, axis=1)[:, :-1]
        return tie, min(tie // 2, int(others.max(initial=0)))

    @property
    def table_size(self) -> int:
        """The number of probabilities in all q-binomial coefficients."""
        tie, most = self.largest
        return sum(a * b + 1 for b in range(1, most + 1) for a in range(b, tie - b + 1))

    @cached_property
    def q_binomials(self) -> tuple[FloatArray, IntArray]:
        """All q-binomial coefficients that may occur, and where each begins."""
        tie, most = self.largest
        starts = np.zeros((tie + 1, most + 1), dtype=np.int64)
        probabilities = np.empty(self.table_size)
        fill_q_binomials(tie, most, starts, probabilities)
        return probabilities, starts

    def overlaps(self, rows: Indices, columns: Indices) -> tuple[CodeArray, IntArray]:
        """Return codes of the distribution of A, and the discordant pairs."""
        left, right = self.left, self.right
        if max(left.max_ties, right.max_ties) <= 1:
            tie = left.sizes[rows].max(axis=1, initial=0)
            discordant, shared = self.count(np.arange(self.n_items + 1.0)[None], (rows, columns))
            return (shared[0].astype(np.int64) * (self.n_items + 1) + tie[:, None]).view(np.uint64), discordant
        discordant, _ = self.count(np.empty((0, self.n_items + 1)), (rows, columns))
        codes = np.empty(discordant.shape, dtype=np.uint64)
        tie_codes(left.order[rows], left.ranks[rows], right.ranks[columns], salts(self.n_items + 1), codes)
        return codes, discordant

    def means(self, functions: FloatArray, block: Block) -> FloatArray:
        """Return the mean of each function, given as a table of its values at all distances."""
        left, right = self.left, self.right
        rows, columns = np.arange(len(self.X))[block[0]], np.arange(len(self.Y))[block[1]]
        codes, discordant = self.overlaps(rows, columns)
        first, overlap = unique_codes(codes)
        kinds, kind = np.unique(right.kinds[1][columns], return_inverse=True)
        tables = np.repeat(functions[:, None], len(kinds), axis=1)
        for k, number in enumerate(kinds.tolist()):
            sizes = [(0, size) for size in right.kinds[0][number].sizes if size > 1]
            for table in tables[:, k] if sizes else ():
                window_means(table, np.array(sizes))
        keys = (overlap * len(kinds) + kind) * functions.shape[1] + discordant
        if self.Y is self.X and np.array_equal(rows, columns):  # use each pair from one side only
            below = np.tril_indices(len(rows), -1)
            keys[below] = keys.T[below]
        entries, inverse = unique_codes(keys.view(np.uint64))
        of_entry = overlap.ravel()[entries]
        order = np.argsort(of_entry, kind="stable")
        ends = np.searchsorted(of_entry[order], np.arange(1, len(first) + 1))
        work = np.zeros((2, functions.shape[1] + 1)), np.zeros((3, self.n_items + 2), dtype=np.int64)
        out = np.empty((len(functions), len(entries)))
        distribution_means(
            *(left.order[rows], left.ranks[rows], right.ranks[columns], *self.q_binomials),
            *(discordant, kind, tables, first, entries, order, ends, *work, out),
        )
        return np.asarray(out[:, inverse])

    def matrices(self, kernel: Kernel, block: Block, names: Names) -> Sequence[FloatArray]:
        """Return the mean of the kernel, or of its derivatives."""
        rows = [["", *kernel.params].index(name) for name in names]
        return list(self.means(function_table(kernel, self.n_items)[rows], block))

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time to distinguish overlaps, for a distribution of each, and for the mean of each entry."""
        left, right = self.left, self.right
        n_pairs = left.sizes * (left.sizes - 1) / 2
        length = float(n_pairs.sum(axis=1).mean())  # of a distribution, if the ties are split
        n_codes = distinct_values(lambda *block: self.overlaps(*block)[0].view(np.int64), len(self.X), len(self.Y))
        table = STEP["product"] * len(right.kinds[0]) * self.n_items * comb(self.n_items, 2) * 4
        entry = STEP["code"] + (STEP["item"] + STEP["tied"]) * self.n_items + STEP["product"] * length
        return table + n_codes * (1e-6 + STEP["product"] * length**2 / 2) + n_rows * n_columns * entry


# ---------------------------------------------------------------------- compiled loops

SIDE = 64  # of blocks that stay in the nearest cache
SIZES = np.uint64(5)  # bits of an index for the number of shared items: SHARED is 2^5


def buffers(n_words: int, n_kinds: int = 1) -> tuple[NDArray[Any], ...]:
    """Return work arrays for :func:`write_packed` and :func:`write_balance`."""
    return (
        np.empty((SIDE, SIDE + 8)),  # with a margin, so that columns do not share cache lines
        np.empty(SIDE, np.uint64),
        np.zeros((n_words, SIDE), np.uint64),
        np.zeros((n_words, SIDE), np.uint64),
        np.zeros(SIDE, np.uint64),
        np.zeros((n_kinds, SIDE), np.uint64),
    )


@compiled
def write_packed(left, right, table, offsets, inverse, row, column, symmetric, work, out, first_row, first_column):
    """Write a function of the Kendall distance of few items from bits into a matrix, from the given row and column on.

    A side is ``(before, after, ties, kind)``: the bits of the pairs (a, b) of items that each ranking orders a before
    b, and b before a; the bit sets of its tied buckets; and the index of its bucket sizes. For c discordant pairs and m
    items in the first tied bucket of both, the value is ``table[offsets[kind, kind'] + 32 c + m] * row * column``,
    times ``inverse`` of the number of items in all other shared buckets. If the matrix is symmetric, the transposed
    block is written as well; the lower half of a block on the diagonal is the transpose of the upper one.
    """
    before, after, ties, kind = left
    Before, After, Ties, Kind = right
    triangle = symmetric and first_row == first_column
    block, index, earlier, later, tied, start_of = work
    words, several = before.shape[1], ties.shape[1] > 1 or Ties.shape[1] > 1
    for start in range(0, len(column), SIDE):
        n_block = min(SIDE, len(column) - start)
        for j in range(n_block):
            tied[j] = Ties[start + j, 0]
            for w in range(words):
                earlier[w, j], later[w, j] = Before[start + j, w], After[start + j, w]
            for k in range(offsets.shape[0]):
                start_of[k, j] = offsets[k, Kind[start + j]]
        for top in range(0, start + 1 if triangle else len(row), SIDE):
            bottom = min(top + SIDE, len(row))
            for i in range(top, bottom):
                for j in range(SIDE):
                    index[j] = start_of[kind[i], j] + popcount(ties[i, 0] & tied[j])
                for w in range(words):
                    b, a = before[i, w], after[i, w]
                    for j in range(SIDE):
                        # No pair is in both terms, so one count serves.
                        index[j] += popcount((b & later[w, j]) | (a & earlier[w, j])) << SIZES
                for j in range(n_block):
                    block[i - top, j] = table[index[j]] * (row[i] * column[start + j])
                if several:
                    for j in range(n_block):
                        factor = 1.0
                        for s in range(ties.shape[1]):
                            for t in range(Ties.shape[1]):
                                shared: int = popcount(ties[i, s] & Ties[start + j, t])
                                if s + t > 0 and shared:
                                    factor *= inverse[shared]
                        block[i - top, j] *= factor
                for j in range(n_block):
                    stream(out, first_row + i, first_column + start + j, block[i - top, j])
            if symmetric:
                for j in range(n_block):
                    for i in range(top, min(bottom, start + j) if triangle else bottom):
                        stream(out, first_column + start + j, first_row + i, block[i - top, j])


@compiled
def write_balance(left, right, constant, unit, symmetric, work, out, first_row, first_column):
    """Write ``constant + unit (concordant - discordant)`` into a matrix; arguments as in :func:`write_packed`."""
    before, after = left[0], left[1]
    Before, After = right[0], right[1]
    block, balance, earlier, later = work[0], work[1], work[2], work[3]
    words, n_rows, n_columns = before.shape[1], len(before), len(Before)
    triangle = symmetric and first_row == first_column
    for start in range(0, n_columns, SIDE):
        n_block = min(SIDE, n_columns - start)
        for j in range(n_block):
            for w in range(words):
                earlier[w, j], later[w, j] = Before[start + j, w], After[start + j, w]
        for top in range(0, start + 1 if triangle else n_rows, SIDE):
            bottom = min(top + SIDE, n_rows)
            for i in range(top, bottom):
                for j in range(SIDE):
                    balance[j] = 0
                for w in range(words):
                    b, a = before[i, w], after[i, w]
                    for j in range(SIDE):
                        balance[j] += popcount((b & earlier[w, j]) | (a & later[w, j]))
                        balance[j] -= popcount((b & later[w, j]) | (a & earlier[w, j]))
                for j in range(n_block):
                    block[i - top, j] = constant + unit * np.int64(balance[j])  # as a signed number
                    stream(out, first_row + i, first_column + start + j, block[i - top, j])
            if symmetric:
                for j in range(n_block):
                    for i in range(top, min(bottom, start + j) if triangle else bottom):
                        stream(out, first_column + start + j, first_row + i, block[i - top, j])


@compiled
def pair_sums(X, order, n_buckets, bits, Y, n_buckets_Y, bits_Y, tables, max_cells, discordant, sums):
    """Count discordant pairs, and sum ``tables[g, m]`` over all pairs of buckets that share m >= 2 items.

    ``order[i]`` lists the items of ranking i, best first. ``bits`` are those of the pairs of items that each ranking
    has in order and in reverse order; without words, ``count_discordant`` has counted the pairs of rankings with
    more than ``max_cells`` pairs of buckets.
    """
    n = X.shape[1]
    cells = np.zeros(max_cells, np.int64)
    column = np.zeros(n + 1, np.int64)
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            for g in range(tables.shape[0]):
                sums[g, i, j] = 0.0
            if n_buckets[i] * n_buckets_Y[j] <= max_cells:
                discordant[i, j] = from_cells(
                    X[i], n_buckets[i], Y[j], n_buckets_Y[j], tables, cells, column, sums[:, i, j]
                )
                continue
            if bits[0].shape[1]:
                discordant[i, j] = 0
                for w in range(bits[0].shape[1]):
                    opposite = (bits[0][i, w] & bits_Y[1][j, w]) | (bits[1][i, w] & bits_Y[0][j, w])
                    discordant[i, j] += np.int64(popcount(opposite))
            if len(tables) and n_buckets[i] < n and n_buckets_Y[j] < n:
                sum_shared(X[i], order[i], Y[j], tables, column, sums[:, i, j])


@compiled
def from_cells(x, rows, y, columns, tables, cells, column, sums):
    """Count the items of each pair of buckets, and from these the discordant pairs by running sums."""
    for c in range(rows * columns):
        cells[c] = 0
    for c in range(columns):
        column[c] = 0
    for a in range(x.shape[0]):
        cells[x[a] * columns + y[a]] += 1
    discordant = 0
    for r in range(rows):
        later = 0  # items in earlier rows and later columns
        for c in range(columns - 1, -1, -1):
            size = cells[r * columns + c]
            discordant += size * later
            later += column[c]
            if size > 1:
                for g in range(tables.shape[0]):
                    sums[g] += tables[g, size]
        for c in range(columns):
            column[c] += cells[r * columns + c]
    return discordant


@compiled
def sum_shared(x, order, y, tables, count, sums):
    """Sum tables over the sizes of shared buckets, bucket by bucket; ``count`` is a work array."""
    n = x.shape[0]
    start = 0
    while start < n:
        end = start + 1
        while end < n and x[order[end]] == x[order[start]]:
            end += 1
        if end - start > 1:
            for p in range(start, end):
                count[y[order[p]]] = 0
            for p in range(start, end):
                count[y[order[p]]] += 1
            for p in range(start, end):
                shared = count[y[order[p]]]
                count[y[order[p]]] = 0
                if shared > 1:
                    for g in range(tables.shape[0]):
                        sums[g] += tables[g, shared]
        start = end


@compiled
def short_lists(items, listed, Y, listed_Y, discordant, shared):
    """Count discordant pairs, and items that neither list has, of short top-k lists from the listed items only.

    ``items[i]`` are the listed items of ranking i, best first. A pair is strictly discordant if both lists have both
    items and disagree; if one list has both and the other only the later one; or if each list has only one of them.
    """
    n = Y.shape[1]
    positions = np.empty(items.shape[1], np.int64)
    for i in range(items.shape[0]):
        for j in range(Y.shape[0]):
            common, single, count = 0, 0, 0
            for p in range(listed[i]):
                position = Y[j, items[i, p]]
                if position >= listed_Y[j]:
                    single += 1
                    continue
                # Items of the left list only before this one, and items of the right list only before it.
                count += single + position
                q = common
                while q > 0 and positions[q - 1] > position:
                    positions[q] = positions[q - 1]
                    q -= 1
                positions[q] = position
                count += common - q
                common += 1
            count -= common * (common - 1) // 2  # common items were counted among those of the right list
            discordant[i, j] = count + single * (listed_Y[j] - common)
            shared[i, j] = n - listed[i] - listed_Y[j] + common


@compiled
def window_means(values, ranges):
    """Replace a table by its mean over windows of 2, 3, ... entries: for each range (low, high) of low + 1 to high.

    Entry k becomes the mean of the entries from k on, 0 beyond the end. A window is summed by doubling.
    """
    n = len(values)
    sums = np.empty(n)
    for r in range(len(ranges)):
        for size in range(max(ranges[r, 0] + 1, 2), ranges[r, 1] + 1):
            for k in range(n):
                sums[k] = values[k]
            length, bit = 1, 0
            while size >> (bit + 1):
                bit += 1
            for b in range(bit - 1, -1, -1):
                for k in range(n - length):
                    sums[k] += sums[k + length]
                length *= 2
                if size >> b & 1:
                    for k in range(n - length):
                        sums[k] += values[k + length]
                    length += 1
            for k in range(n):
                values[k] = sums[k] / size


@compiled
def fill_q_binomials(tie, most, starts, out):
    """Write the distributions of the q-binomial coefficients of a and b, most >= b <= a <= tie - b.

    They are the null distribution of the Mann-Whitney statistic, by the recursion over the group of the largest value:
    ``P[a, b](x) = a / (a + b) P[a - 1, b](x) + b / (a + b) P[a, b - 1](x - a)``.
    """
    end = 0
    for b in range(1, most + 1):
        for a in range(b, tie - b + 1):
            starts[a, b] = end
            for x in range(a * b + 1):
                out[end + x] = 0.0
            less, more = a / (a + b), b / (a + b)
            if a > b:
                for x in range((a - 1) * b + 1):
                    out[end + x] = less * out[starts[a - 1, b] + x]
            elif b > 1:
                for x in range((a - 1) * b + 1):
                    out[end + x] = less * out[starts[b, a - 1] + x]
            else:
                out[end] = less
            if b > 1:
                for x in range(a * (b - 1) + 1):
                    out[end + a + x] += more * out[starts[a, b - 1] + x]
            else:
                out[end + a] += more
            end += a * b + 1


HALF = np.uint64(29)


@compiled
def tie_codes(order, X, Y, salt, out):
    """Write codes of how right buckets split the left ones: the sizes of the shares of each left bucket.

    ``order[i]`` are the items of left ranking i, best first.
    """
    n = X.shape[1]
    ends, count = np.empty(n, np.int64), np.zeros(n, np.int64)
    for i in range(len(order)):
        n_ends = 0
        for p in range(n):
            if p + 1 == n or X[i, order[i, p]] != X[i, order[i, p + 1]]:
                ends[n_ends] = p + 1
                n_ends += 1
        for j in range(Y.shape[0]):
            total, start = np.uint64(0), 0
            for e in range(n_ends if n_ends < n else 0):
                if ends[e] - start > 1:
                    for p in range(start, ends[e]):
                        count[Y[j, order[i, p]]] += 1
                    code, n_shares = np.uint64(0), 0
                    for p in range(start, ends[e]):
                        size = count[Y[j, order[i, p]]]
                        if size:
                            code += salt[size]
                            n_shares += 1
                            count[Y[j, order[i, p]]] = 0
                    if n_shares > 1:
                        total += (code ^ (code >> HALF)) * MIX
                start = ends[e]
            out[i, j] = total


@compiled
def distribution_means(
    items, X, Y, q_binomials, starts, discordant, kind, tables, first, entries, order, ends, pmf, work, out
):
    """Write the means of functions at some entries of a matrix, overlap by overlap.

    ``order[ends[k - 1]:ends[k]]`` are the indices of the entries with overlap k, and ``first[k]`` is any such entry:
    factors are multiplied in an order that depends on the overlap only.
    """
    n_columns, now, begin = Y.shape[0], 0, 0
    for k in range(len(first)):
        i, j = first[k] // n_columns, first[k] % n_columns
        length = 1
        pmf[now, 0] = 1.0
        for b in range(find_factors(items[i], X[i], Y[j], work)):
            total, size = work[FACTORS, b] // len(X[i]), work[FACTORS, b] % len(X[i])
            start, n_more = starts[total, size], total * size + 1
            new = 1 - now
            for x in range(length + n_more - 1):
                pmf[new, x] = 0.0
            if length < n_more:
                for x in range(length):
                    for y in range(n_more):
                        pmf[new, x + y] += pmf[now, x] * q_binomials[start + y]
            else:
                for y in range(n_more):
                    for x in range(length):
                        pmf[new, x + y] += pmf[now, x] * q_binomials[start + y]
            now, length = new, length + n_more - 1
        for e in range(begin, ends[k]):
            row, column = entries[order[e]] // n_columns, entries[order[e]] % n_columns
            offset = discordant[row, column]
            for f in range(tables.shape[0]):
                mean = 0.0
                for x in range(length):
                    mean += pmf[now, x] * tables[f, kind[column], offset + x]
                out[f, order[e]] = mean
        begin = ends[k]


COUNT, SHARES, FACTORS = range(3)  # rows of ``work``


@compiled
def find_factors(order, x, y, work):
    """Write the q-binomial coefficients of a distribution, sorted, as ``n a + b`` for b of a + b items.

    A left bucket whose items are in several right buckets is split into its shares, the largest first. Returns the
    number of coefficients.
    """
    n, start, n_factors = len(order), 0, 0
    while start < n:
        end = start + 1
        while end < n and x[order[end]] == x[order[start]]:
            end += 1
        for p in range(start, end):
            work[COUNT, y[order[p]]] += 1
        n_shares = 0
        for p in range(start, end):
            size = work[COUNT, y[order[p]]]
            if size:
                insert(work[SHARES], n_shares, -size)
                n_shares += 1
                work[COUNT, y[order[p]]] = 0
        total = -work[SHARES, 0]
        for share in range(1, n_shares):
            insert(work[FACTORS], n_factors, n * total - work[SHARES, share])
            n_factors += 1
            total -= work[SHARES, share]
        start = end
    return n_factors


@compiled
def insert(numbers, length, number):
    """Insert a number into a sorted array of a given length."""
    while length > 0 and numbers[length - 1] > number:
        numbers[length] = numbers[length - 1]
        length -= 1
    numbers[length] = number

"""One set of draws of all rankings, and means of functions over pairs of them.

Draws are compared a few at a time, so that memory stays small however many there are. Sums are taken in one order,
whatever else is computed beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, Indices, IntArray, RankArray
from rankernel.completions.draws import Draws
from rankernel.gram.blocks import slices
from rankernel.gram.montecarlo.control_variates import combined
from rankernel.gram.montecarlo.error import FEWEST_BLOCKS, TINY, Spread, own_effects, own_spread

if TYPE_CHECKING:
    from rankernel.gram.montecarlo.sampled import SampledEvaluator

PAIRS_AT_ONCE = 2**18  # pairs of draws whose distances or kernel values are written down at once
MOST_BYTE_ITEMS = 256
ROUNDING = 1e-9  # of a value
MOST_BITS_ITEMS = 128  # whose pairs fit into some hundred words, still far quicker than comparing them


@dataclass(frozen=True)
class Function:
    """What is averaged over pairs of draws: a function of two full rankings, as a table if it is one of a distance."""

    matrix: Callable[[Any, Any], FloatArray]
    table: FloatArray | None = None


def ends_of_blocks(n_draws: int, block: int) -> IntArray:
    """Return where each block of draws ends, which are independent of each other."""
    block = min(block, n_draws)
    size = block * max(n_draws // block // FEWEST_BLOCKS, 1)  # several blocks together if there are very many
    return np.append(np.arange(size, n_draws, size), n_draws)


Compute = Callable[[Indices, Indices, FloatArray], None]  # writes numbers for pairs of rankings, one pair a column


class Replicate:
    """One set of draws of all rankings, packed for the distance that is looked up."""

    def __init__(self, estimator: SampledEvaluator, draws: Draws) -> None:
        self.estimator, self.drawn = estimator, draws
        self.controls, self.counted = estimator.controls, estimator.counted
        n_draws = self.n_draws = draws.ranks.shape[1]
        self.ends = ends_of_blocks(n_draws, draws.block)
        self.weights = np.empty((len(draws.ranks), 0)) if draws.weights is None else draws.weights

    # ------------------------------------------------------------------ the draws

    @property
    def starts(self) -> IntArray:
        """Where each block of draws begins."""
        return np.append(0, self.ends[:-1])

    @cached_property
    def shares(self) -> FloatArray:
        """The part of each block in the draws of each ranking."""
        if self.drawn.weights is None or not self.estimator.method.completions.self_normalized:
            return np.tile(np.diff(np.append(0, self.ends)) / self.n_draws, (len(self.drawn.ranks), 1))
        # A ratio of means: its error is that of the deviations from the ratio.
        return np.asarray(np.add.reduceat(self.drawn.weights, self.starts, axis=1) / self.n_draws)

    @cached_property
    def packed(self) -> NDArray[Any]:
        """The draws as the loops want them: bits of pairs of items, or places."""
        ranks = self.drawn.ranks
        n_rankings, n_draws, n_items = ranks.shape
        if self.are_bits:
            words = _loops.bits.pairs_in_order(ranks.reshape(-1, n_items)).reshape(n_rankings, n_draws, -1)
            return np.ascontiguousarray(words.transpose(0, 2, 1))
        kind = np.uint8 if n_items <= MOST_BYTE_ITEMS else np.int16
        return np.ascontiguousarray(ranks.transpose(0, 2, 1), dtype=kind)

    @property
    def are_bits(self) -> bool:
        """Whether draws are compared as bits of pairs of items."""
        few = self.drawn.ranks.shape[2] <= MOST_BITS_ITEMS
        return self.counted is not None and self.counted.name == "kendall" and few

    @cached_property
    def order(self) -> Indices:
        """An order of the rankings that depends on their draws alone: the first of two is on the left in every sum."""
        rows = np.ascontiguousarray(self.drawn.ranks).reshape(len(self.drawn.ranks), -1)
        as_bytes = rows.view(np.dtype((np.void, max(rows.dtype.itemsize * rows.shape[1], 1))))
        return np.unique(as_bytes, return_inverse=True)[1].ravel()

    @property
    def parts(self) -> list[slice]:
        """The draws of a ranking on the left in parts, each compared with all draws on the right at once."""
        return list(slices(self.n_draws, 4 * max(PAIRS_AT_ONCE // self.n_draws // 4, 1)))

    # ------------------------------------------------------------------ means

    def means(self, functions: list[Function], coefficients: FloatArray, rows: Indices, columns: Indices) -> FloatArray:
        """Return the means over all pairs of draws."""
        if self.counted is None or self.weights.shape[1]:
            computes = [self.spreading(*pair) for pair in zip(functions, coefficients, strict=True)]
            spreads = [self.by_pair(compute, len(fields(Spread)), rows, columns) for compute in computes]
            return np.array([Spread(*spread).value for spread in spreads])
        tables = np.stack([self.table(*pair) for pair in zip(functions, coefficients, strict=True)])

        def compute(left: Indices, right: Indices, out: FloatArray) -> None:
            if self.are_bits and self.packed.shape[1] == 1:
                _loops.draw_sums.word_means(self.packed, left, right, tables, out)
                return
            out[:] = 0.0
            for part in self.parts:
                _loops.draw_sums.add_sums(self.distances(left, right, part), tables, out)
            out /= self.n_draws**2

        return self.by_pair(compute, len(functions), rows, columns)

    def spread(self, function: Function, coefficients: FloatArray, rows: Indices, columns: Indices) -> Spread:
        """Return the mean of one function, and how the draws spread around it."""
        compute = self.spreading(function, coefficients)
        return Spread(*self.by_pair(compute, len(fields(Spread)), rows, columns))

    def own_spreads(self, function: Function, coefficients: FloatArray, places: Indices) -> Spread:
        """Return the same for some rankings with themselves, one number for each."""
        compute = self.spreading(function, coefficients)
        return Spread(*self.in_parts(compute, len(fields(Spread)), places, places))

    def own_effects(self, function: Function, coefficients: FloatArray, places: Indices) -> FloatArray:
        """Return by how much each block of draws moves the unbiased means of some rankings with themselves.

        A covariance with these means is the sum of effects times how far the blocks move something else.
        """

        def compute(left: Indices, right: Indices, out: FloatArray) -> None:
            blocks = self.block_sums(function, coefficients, left, right)[0] / self.n_draws**2
            shares = self.shares[left]
            out[:] = (2 * own_effects(blocks, shares)[1] / np.maximum(1 - shares, TINY)).T

        return self.in_parts(compute, len(self.ends), places, places).T

    def covariances(
        self, function: Function, coefficients: FloatArray, effects: FloatArray, rows: Indices, columns: Indices
    ) -> FloatArray:
        """Return the covariances of means over pairs of draws with what has such effects of blocks, of both sides."""

        def compute(left: Indices, right: Indices, out: FloatArray) -> None:
            blocks = self.block_sums(function, coefficients, left, right)[0] / self.n_draws**2
            value = blocks.sum(axis=(1, 2))[:, None]
            of_left = (blocks.sum(axis=2) - self.shares[left] * value) * effects[left]
            of_right = (blocks.sum(axis=1) - self.shares[right] * value) * effects[right]
            out[0] = (of_left + of_right).sum(axis=1)

        return np.asarray(self.by_pair(compute, 1, rows, columns)[0])

    def spreading(self, function: Function, coefficients: FloatArray) -> Compute:
        """Return what writes down the spread of one function for pairs of rankings."""
        n_alike = self.n_draws // int(self.ends[0])

        def compute(left: Indices, right: Indices, out: FloatArray) -> None:
            blocks, sizes = self.block_sums(function, coefficients, left, right)
            blocks /= self.n_draws**2
            of_two = np.empty((5, len(left)))
            _loops.draw_sums.spreads(blocks, self.shares, n_alike, left, right, of_two)
            value, variance, least, squares, fourths = of_two
            found = Spread(value, variance, np.zeros(len(left)), variance, least, squares, fourths, *sizes)
            out[:] = found.numbers
            same = np.flatnonzero((left == right) & (len(self.ends) > 1))
            if len(same):
                own = own_spread(blocks[same], self.shares[left[same]], n_alike, sizes[:, same])
                out[:, same] = own.numbers

        return compute

    def by_pair(self, compute: Compute, n_numbers: int, rows: Indices, columns: Indices) -> FloatArray:
        """Return numbers for each pair of rankings of a tile; of a symmetric one only one half is computed.

        Of two rankings the first by :attr:`order` is always on the left, so that sums are taken in the same order from
        both sides.
        """
        symmetric = np.array_equal(rows, columns)
        shape = (len(rows), len(columns))
        r, c = np.triu_indices(len(rows)) if symmetric else np.indices(shape).reshape(2, -1)
        one, other = rows[r], columns[c]
        turned = self.order[one] > self.order[other]
        left, right = np.where(turned, other, one), np.where(turned, one, other)
        found = self.in_parts(compute, n_numbers, left, right)
        out = np.empty((n_numbers, *shape))
        out[:, r, c] = found
        if symmetric:
            out[:, c, r] = found
        return out

    def in_parts(self, compute: Compute, n_numbers: int, left: Indices, right: Indices) -> FloatArray:
        """Return numbers for pairs of rankings, some pairs at a time."""
        found = np.empty((n_numbers, len(left)))
        for part in slices(len(left), max(PAIRS_AT_ONCE // self.n_draws**2, 1)):
            compute(left[part], right[part], found[:, part])
        return found

    def largest(self, function: Function, coefficients: FloatArray) -> FloatArray:
        """Return the largest value of a function between the draws of each ranking and those of its partner.

        Partners of the first half of the rankings are in the second. The part that has a known mean is left out; what
        is left of a function that is known is rounding.
        """
        half = len(self.drawn.ranks) // 2
        left, right = np.arange(half), np.arange(half, 2 * half)
        if self.counted is None:
            pairs = zip(*(self.drawn.ranks[side].astype(np.int32) for side in (left, right)), strict=True)
            both = np.array([self.values(function, coefficients, X, Y) for X, Y in pairs])
            whole, rest = both[:, 0], both[:, 1]
        else:
            d = self.distances(left, right, slice(0, self.n_draws))
            assert function.table is not None
            whole, rest = function.table[d], self.table(function, coefficients)[d]
        whole, rest = (np.abs(part).max(axis=(1, 2)) for part in (whole, rest))
        return np.where(rest > ROUNDING * whole, rest, 0.0)

    # ------------------------------------------------------------------ sums over pairs of blocks

    def block_sums(
        self, function: Function, coefficients: FloatArray, left: Indices, right: Indices
    ) -> tuple[FloatArray, FloatArray]:
        """Return the sum of a function for each pair of blocks of draws, less the part that has a known mean.

        And how large its values are, with that part: the sums of their absolute values and of the squares of these.
        """
        blocks, sizes = np.zeros((len(left), len(self.ends), len(self.ends))), np.zeros((2, len(left)))
        if self.counted is None:
            self.add_matrix_sums(function, coefficients, left, right, blocks, sizes)
            return blocks, sizes
        table = self.table(function, coefficients)
        for part in self.parts:
            d = self.distances(left, right, part)
            given = (table, function.table, self.weights, left, right, self.ends)
            _loops.draw_sums.add_block_sums(d, part.start, *given, blocks, sizes)
        return blocks, sizes

    def table(self, function: Function, coefficients: FloatArray) -> FloatArray:
        """Return a function of the distance without the part that has a known mean."""
        assert function.table is not None
        if not self.controls:
            return function.table
        return function.table - combined(coefficients, self.controls.at_distance(self.estimator.distances))

    def distances(self, left: Indices, right: Indices, part: slice) -> NDArray[np.int32]:
        """Return the distances of some draws on the left to all on the right: shape (n_pairs, n_left, n_draws)."""
        distance = self.counted
        assert distance is not None
        d = np.empty((len(left), part.stop - part.start, self.n_draws), dtype=np.int32)
        numbers = (
            distance.cycle_weights(self.drawn.ranks.shape[2]) if distance.cycle_weights else np.zeros(1, dtype=np.int64)
        )
        name = "of_bits" if self.are_bits else "cycles" if distance.cycle_weights else distance.name
        getattr(_loops.draw_distances, name)(self.packed, left, right, part.start, numbers, d)
        return d

    def values(
        self, function: Function, coefficients: FloatArray, X: RankArray, Y: RankArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the values of a function between full rankings, and these less the part that has a known mean."""
        whole = function.matrix(X, Y)
        return whole, self.controls.less_known(whole, coefficients, X, Y)

    def add_matrix_sums(
        self,
        function: Function,
        coefficients: FloatArray,
        left: Indices,
        right: Indices,
        blocks: FloatArray,
        sizes: FloatArray,
    ) -> None:
        """Add the sums of a function that has no table: all rankings that one on the left meets at once."""
        order = np.argsort(left, kind="stable")
        for run in np.split(order, np.flatnonzero(np.diff(left[order])) + 1):
            Y = self.drawn.ranks[right[run]].astype(np.int32).reshape(-1, self.drawn.ranks.shape[2])
            for part in self.parts:
                X = self.drawn.ranks[left[run[0]], part].astype(np.int32)
                whole, values = (
                    np.ascontiguousarray(one).reshape(len(X), len(run), self.n_draws)
                    for one in self.values(function, coefficients, X, Y)
                )
                given = (part.start, self.weights, run, left, right, self.ends)
                _loops.draw_sums.add_value_sums(values, whole, *given, blocks, sizes)

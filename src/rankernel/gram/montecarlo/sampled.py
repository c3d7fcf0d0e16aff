"""The Monte Carlo estimator of the paper, for any kernel and any rankings, with its error.

Every ranking gets draws of its completions, once; all draws of one are compared with all draws of the other. So the
matrix is that of inner products of empirical embeddings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel.arrays import FloatArray, Indices, IntArray, Mask
from rankernel.completions.couplings import coupling_named
from rankernel.completions.draws import PURPOSE, Draws
from rankernel.completions.streams import row_streams, stream_key
from rankernel.distances import Distance
from rankernel.gram.cost import STEP
from rankernel.gram.evaluator import Bars, Evaluator, Tile
from rankernel.gram.exact.full import seconds_of_kernel
from rankernel.gram.methods import MonteCarlo
from rankernel.gram.montecarlo.control_variates import Controls
from rankernel.gram.montecarlo.error import (
    FEWEST_BLOCKS,
    FEWEST_OF_ONE,
    LEAST,
    REPETITIONS,
    Spread,
    error_bars,
    n_carrying,
    own_spread,
    together,
    widened,
)
from rankernel.gram.posets.poset_rows import PartialOrders, Rows, as_partial_orders
from rankernel.gram.tiles import stretches
from rankernel.interrupts import heard
from rankernel.kernels.base import Kernel
from rankernel.memory import check_bytes
from rankernel.rankings import Rankings, first_and_inverse

SMALLEST_TILE, LARGEST_TILE = 8, 96
A_TILE = 0.05  # seconds
AT_ONCE = 0.2  # seconds
PAIRS_AT_ONCE = 2**18  # pairs of draws whose distances are written down at once
MOST_BYTE_ITEMS = 256
DRAWING_BYTES, DRAWN_BYTES = 8, 3  # for each item of a draw: while it is made, and once it is
DRAWING_ORDER_BYTES = 26  # of partial orders
MOST_VALUES = 2**18  # of a function of a distance that is looked up
MOST_BITS_ITEMS = 128  # whose pairs fit into some hundred words, still far quicker than comparing them


@lru_cache(maxsize=256)
def n_values(distance: Distance | None, n_items: int) -> int:
    """Return how many values a distance has, if they are few enough to look functions of it up; else 0."""
    if distance is None or not distance.integer or distance.maximum(n_items) >= MOST_VALUES:
        return 0
    return int(distance.maximum(n_items)) + 1


def estimate_seconds(method: MonteCarlo, kernel: Kernel, n_items: int, n_rows: int, n_columns: int) -> float:
    """Return about how long an estimate takes, whatever the rankings are; its method has no "auto" left."""
    pairs, m = n_rows * n_columns, method.n_draws
    counted = kernel.argument
    if counted is None or not n_values(counted, n_items):
        step = seconds_of_kernel(kernel, n_items) + 4 * STEP["product"]
    elif counted.name == "kendall" and n_items <= MOST_BITS_ITEMS:
        words = -(-n_items * (n_items - 1) // 128)
        step = STEP["sum"] if words == 1 else STEP["lookup"] + STEP["bits"] * words
    else:
        step = STEP["lookup"] + n_items * (STEP["cycle"] if counted.cycles is not None else STEP["product"])
    controls = Controls.of(kernel, n_items, int(method.moments))
    exact = (STEP["product"] * pairs + STEP["feature"] * (n_rows + n_columns)) * controls.n_features(n_items)
    drawn = STEP["draw"] * (n_rows + n_columns) * m * n_items
    return method.replicates * (drawn + pairs * (STEP["entry"] + m * m * step)) + exact


class SampledEvaluator(Evaluator):
    """The estimator for two sets of rankings; its method has no "auto" left."""

    def __init__(self, method: MonteCarlo, kernel: Kernel, X: Rows, Y: Rows) -> None:
        self.method, self.kernel = method, kernel
        self.n_items, self.shape = X.n_items, (len(X), len(Y))
        self.rows, self.row_of, self.column_of, self.numbers = united(X, Y, method.distinct_rows)
        self.controls = Controls.of(kernel, self.n_items, int(method.moments))
        can_count = n_values(kernel.argument, self.n_items) and self.controls.are_functions_of(kernel.argument)
        self.counted = kernel.argument if can_count else None
        self.tile_side = max(int(PAIRS_AT_ONCE**0.5) // method.n_draws, 1)
        if self.counted:  # small enough to keep all threads busy, and to be left at any time
            seconds = estimate_seconds(method, kernel, self.n_items, LARGEST_TILE, LARGEST_TILE) / LARGEST_TILE**2
            self.tile_side = min(max(int((A_TILE / seconds) ** 0.5), SMALLEST_TILE), LARGEST_TILE)
        self.made: list[Replicate] = []

    def with_replicates(self, method: MonteCarlo) -> SampledEvaluator:
        """Return the estimator with another number of replicates, which has those that are drawn already."""
        more = copy(self)
        more.method, more.made = method, self.replicates
        vars(more).pop("replicates", None)
        return more

    @property
    def details(self) -> str:  # type: ignore[override]
        """The method in words."""
        return str(self.method)

    @cached_property
    def replicates(self) -> list[Replicate]:
        """The draws of all rankings, made when they are first needed."""
        number = cast(int, self.method.seed)
        seeds = [number] + [int(stream_key(number, f"replicate {r}")) for r in range(1, self.method.replicates)]
        missing = seeds[len(self.made) :]
        self.check_draws(len(missing))
        drawn = [self.draw(seed) if self.quick else heard(self.draw, seed) for seed in missing]
        return self.made + [Replicate(self, draws) for draws in drawn]

    @cached_property
    def quick(self) -> bool:  # type: ignore[override]
        """Whether all of it takes no time to speak of."""
        return self.seconds(*self.shape) < AT_ONCE

    def check_draws(self, n_replicates: int) -> None:
        """Refuse more draws than fit into memory."""
        n_rows, n_draws = len(self.rows), self.method.n_draws
        drawing = DRAWING_ORDER_BYTES if isinstance(self.rows, PartialOrders) else DRAWING_BYTES
        needed = (drawing + DRAWN_BYTES * (n_replicates - 1)) * n_rows * n_draws * self.n_items
        check_bytes(
            needed, f"{n_draws:,} draws from each of {n_rows:,} rankings", "take fewer draws, or fewer rankings"
        )

    def draw(self, seed: int) -> Draws:
        """Return the draws of each ranking."""
        method, X = self.method, self.rows
        if isinstance(X, PartialOrders):
            return X.draw(method.n_draws, method.completions, seed, self.numbers)
        streams = row_streams(X.ranks, seed, PURPOSE, self.numbers)
        rule = coupling_named(method.coupling, self.kernel)
        full, weights = method.completions.draw(X.ranks, method.n_draws, streams, rule)
        draws = Draws(full, weights, rule.block_size(self.n_items, method.n_draws))
        if weights is not None:
            draws.warn_if_low()
        return draws

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time to draw, to compare all draws, and for the exact part."""
        return estimate_seconds(self.method, self.kernel, self.n_items, n_rows, n_columns)

    # ------------------------------------------------------------------ values

    def values(self, kernels: Sequence[Kernel], tile: Tile) -> FloatArray:
        """Return the estimate for each kernel."""
        coefficients, places = np.array([self.controls.coefficients(kernel) for kernel in kernels]), self.placed(tile)
        functions = self.functions(kernels)
        sampled = self.mean(functions, coefficients, places)
        if self.method.diagonal == "unbiased":
            for r, c in np.argwhere(np.equal.outer(*places)).tolist():
                own = places[0][r : r + 1]
                for k in range(len(kernels)):
                    sampled[k, r, c] -= self.of_own_draws(functions[k], coefficients[k], (own, own)).bias.item()
        return sampled + self.known(coefficients, places)

    def gradients(self, kernel: Kernel, tile: Tile) -> dict[str, FloatArray]:
        """Return the derivatives of the estimate, with the same draws."""
        names = list(kernel.params)
        if not names:
            return {}
        slopes = self.controls.slopes(kernel)
        coefficients = np.array([slopes[name] for name in names])
        places = self.placed(tile)
        found = self.mean(self.slope_functions(kernel), coefficients, places) + self.known(coefficients, places)
        return dict(zip(names, found, strict=True))

    def unbiased(self, kernel: Kernel, tile: Tile) -> FloatArray:
        """Return the estimate from pairs of independent draws, where both sides have the same."""
        coefficients, places = np.array(self.controls.coefficients(kernel)), self.placed(tile)
        found = self.of_own_draws(self.functions([kernel])[0], coefficients, places)
        return np.asarray(found.value - found.bias + self.known(coefficients[None], places)[0])

    # ------------------------------------------------------------------ errors

    def bars(self, kernel: Kernel, tile: Tile) -> Bars:
        """Return the estimate with its distance from the truth to be expected."""
        coefficients, places = np.array(self.controls.coefficients(kernel)), self.placed(tile)
        found = self.asked(self.spread(self.functions([kernel])[0], coefficients, places))
        return self.barred(replace(found, value=found.value + self.known(coefficients[None], places)[0]))

    def gradient_bars(self, kernel: Kernel, tile: Tile) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Return the same of the derivatives, with the same draws."""
        slopes, places, found = self.controls.slopes(kernel), self.placed(tile), {}
        for name, function in zip(kernel.params, self.slope_functions(kernel), strict=True):
            coefficients = np.array(slopes[name])
            bars = self.barred(self.asked(self.spread(function, coefficients, places)))
            found[name] = bars.value + self.known(coefficients[None], places)[0], bars.error
        return found

    def asked(self, found: Spread) -> Spread:
        """Return the spread of what is asked for on the diagonal: values with their bias, or without."""
        return found.without_bias() if self.method.diagonal == "unbiased" else found

    def barred(self, found: Spread) -> Bars:
        """Return an estimate with its error."""
        n_runs = len(self.repetitions)
        n_seen = n_independent = n_runs  # repetitions as they are, or pairs of their blocks
        if self.n_blocks >= FEWEST_OF_ONE:
            n_runs += self.method.replicates
            n_seen, n_independent = n_runs * self.n_blocks**2, n_runs * self.n_blocks
        factor = widened(n_carrying(found.squares, found.fourths), n_seen)
        return Bars(found.value, error_bars(found, factor, n_independent), factor > 1)

    def lengths(self, kernel: Kernel, side: int) -> tuple[FloatArray, FloatArray]:
        """Return the squared lengths of one side, unbiased where that leaves something positive and certain enough."""
        places = (self.row_of, self.column_of)[side]
        value, error = np.empty(len(places)), np.empty(len(places))
        function, coefficients = self.functions([kernel])[0], np.array(self.controls.coefficients(kernel))
        for k in range(len(places)):
            own = places[k : k + 1], places[k : k + 1]
            found = self.spread(function, coefficients, own)
            found = replace(found, value=found.value + self.known(coefficients[None], own)[0])
            bars = self.barred(found.without_bias())
            if not bars.value > 2 * bars.error:
                bars = self.barred(found)
            value[k], error[k] = bars.value.item(), bars.error.item()
        return value, error

    def spread(self, function: Function, coefficients: FloatArray, places: tuple[Indices, Indices]) -> Spread:
        """Return the mean of a function over all pairs of draws, with how it varies.

        Where blocks of draws are too few to tell, independent repetitions of all draws are looked at: their blocks, or
        the repetitions as they are if each is of very few blocks.
        """
        drawn = [one.spread(function, coefficients, *places) for one in self.replicates]
        found = self.with_bias(together(drawn), function, coefficients, places)
        if not self.repetitions:
            return found
        own, n = self.method.diagonal == "embedding", self.method.replicates
        runs = [one.spread(function, coefficients, *places) for one in self.repetitions]
        if self.n_blocks >= FEWEST_OF_ONE:
            runs += drawn
            all_runs = together(runs)
            more = len(runs) / n
            return replace(
                all_runs,
                value=found.value,
                variance=all_runs.variance * more,
                bias=all_runs.bias if own else found.bias,
                unbiased_variance=all_runs.unbiased_variance * more,
                least_variance=all_runs.least_variance * more,
            )
        away = np.array([run.value if own else run.value - run.bias for run in runs])
        away -= away.mean(axis=0)
        squares, fourths = (away**2).sum(axis=0), (away**4).sum(axis=0)
        variance, bias = squares / (len(runs) - 1) / n, found.bias.copy()
        for r, c in np.argwhere(np.equal.outer(*places)).tolist():
            if own:  # how far the estimate is off is seen, as surely as the mean between repetitions is known
                mean, variance[r, c] = self.between_repetitions(function, coefficients, places[0][r])
                bias[r, c] = found.value[r, c] - mean
            elif self.n_blocks == 1:
                variance[r, c] = found.variance[r, c]
        return Spread(found.value, variance, bias, variance, np.zeros_like(variance), squares, fourths)

    def of_own_draws(self, function: Function, coefficients: FloatArray, places: tuple[Indices, Indices]) -> Spread:
        """Return the mean of a function over all pairs of draws, with how the blocks of draws spread around it."""
        drawn = [one.spread(function, coefficients, *places) for one in self.replicates]
        return self.with_bias(together(drawn), function, coefficients, places)

    def with_bias(
        self, found: Spread, function: Function, coefficients: FloatArray, places: tuple[Indices, Indices]
    ) -> Spread:
        """Return what was found with the bias of a ranking with itself.

        A single block of draws is not independent of itself: there, repetitions tell the bias.
        """
        if self.n_blocks > 1:
            return found
        bias, variance = np.zeros_like(found.value), np.zeros_like(found.value)
        for r, c in np.argwhere(np.equal.outer(*places)).tolist():
            mean, variance[r, c] = self.between_repetitions(function, coefficients, places[0][r])
            bias[r, c] = found.value[r, c] - mean
        return replace(found, bias=bias, variance=variance, unbiased_variance=variance)

    @property
    def n_blocks(self) -> int:
        """Into how many independent blocks the draws fall."""
        return len(self.replicates[0].ends)

    @cached_property
    def repetitions(self) -> list[Replicate]:
        """Independent draws of the same kind, where the blocks are too few to tell how the estimate varies."""
        number = REPETITIONS if self.n_blocks < FEWEST_OF_ONE else -(-FEWEST_BLOCKS // self.n_blocks)
        if self.n_blocks >= FEWEST_OF_ONE and self.n_blocks * self.method.replicates >= FEWEST_BLOCKS:
            return []
        seeds = [int(stream_key(cast(int, self.method.seed), f"repetition {r}")) for r in range(number)]
        return [Replicate(self, self.draw(seed)) for seed in seeds]

    def between_repetitions(self, function: Function, coefficients: FloatArray, row: Any) -> tuple[float, float]:
        """Return the mean between independent draws of one ranking, which is unbiased, and its variance."""
        ranks = np.concatenate([one.drawn.ranks[row : row + 1] for one in self.repetitions])
        weights = None
        if self.repetitions[0].drawn.weights is not None:
            weights = np.concatenate([one.weights[row : row + 1] for one in self.repetitions])
        pooled = replace(self.repetitions[0].drawn, ranks=ranks, weights=weights)
        every = np.arange(len(ranks))
        table = Replicate(self, pooled).means([function], coefficients[None], every, every)[0]
        shares = np.full((1, len(every)), 1 / len(every))
        fair = own_spread(table[None] / table.size, shares, len(every)).without_bias()
        return fair.value.item(), max(fair.variance.item(), LEAST * fair.least_variance.item())

    # ------------------------------------------------------------------ steps

    def functions(self, kernels: Sequence[Kernel]) -> list[Function]:
        """Return each kernel as what is averaged: a table over a distance, or the kernel between full rankings."""
        if self.counted is None:
            return [Function(kernel.matrix) for kernel in kernels]
        return [Function(kernel.matrix, kernel.at_distance(self.distances, self.n_items)) for kernel in kernels]

    def slope_functions(self, kernel: Kernel) -> list[Function]:
        """Return the derivatives of a kernel in the same way."""
        tables = {} if self.counted is None else kernel.slopes_at_distance(self.distances, self.n_items)

        def slope(name: str) -> Callable[[Any, Any], FloatArray]:
            return lambda X, Y: kernel.gradient(X, Y)[name]

        return [Function(slope(name), tables.get(name)) for name in kernel.params]

    @cached_property
    def distances(self) -> IntArray:
        """All values that the distance can have."""
        return np.arange(n_values(self.counted, self.n_items))

    def mean(self, functions: list[Function], coefficients: FloatArray, places: tuple[Indices, Indices]) -> FloatArray:
        """Return the means of functions over all pairs of draws, less the part that has a known mean."""
        runs = [one.means(functions, coefficients, *places) for one in self.replicates]
        return runs[0] if len(runs) == 1 else np.mean(runs, axis=0)

    def known(self, coefficients: FloatArray, places: tuple[Indices, Indices]) -> FloatArray:
        """Return the known means that were taken out."""
        if not self.controls:
            return np.zeros((len(coefficients), 1, 1))
        products = self.exact_parts.products(places)
        return np.asarray(np.tensordot(coefficients, products, axes=1))

    @cached_property
    def exact_parts(self) -> Any:
        """The known means, as inner products of features."""
        return self.controls.exact_parts(self.rows)

    def placed(self, tile: Tile) -> tuple[Indices, Indices]:
        """Return which of all rankings are the rows and the columns of a tile."""
        return self.row_of[tile[0]], self.column_of[tile[1]]


def united(X: Rows, Y: Rows, distinct_rows: bool) -> tuple[Rows, Indices, Indices, IntArray | None]:
    """Return all rankings that draws are made for, which of them rows and columns are, and their numbers if they count.

    Equal rankings share their draws, in rows and columns alike, unless each row is to have draws of its own.
    """
    if isinstance(X, PartialOrders) or isinstance(Y, PartialOrders):
        X, Y = as_partial_orders(X), X if Y is X else as_partial_orders(Y)
    if Y is X:
        numbers = np.arange(len(X))
        return X, numbers, numbers, numbers if distinct_rows else None
    both: Rows
    if isinstance(X, PartialOrders):
        assert isinstance(Y, PartialOrders)
        both = PartialOrders(
            np.concatenate([X.ranks, Y.ranks]),
            np.concatenate([X.packed, Y.packed]),
            np.concatenate([X.counts, Y.counts]),
            X.known | Y.known,
        )
    else:
        assert isinstance(Y, Rankings)
        counts = np.concatenate([X.counts, Y.counts])
        both = Rankings._trusted(np.concatenate([X.ranks, Y.ranks]), X.items, counts)
    if distinct_rows:
        numbers = np.arange(len(both))
        return both, numbers[: len(X)], numbers[len(X) :], numbers
    first, inverse = both.first_and_inverse() if isinstance(both, PartialOrders) else first_and_inverse(both.ranks)
    return both[first], inverse[: len(X)], inverse[len(X) :], None


@dataclass(frozen=True)
class Function:
    """What is averaged over pairs of draws: a function of two full rankings, as a table if it is one of a distance."""

    matrix: Callable[[Any, Any], FloatArray]
    table: FloatArray | None = None


class Replicate:
    """One set of draws of all rankings, packed for the distance that is looked up."""

    def __init__(self, estimator: SampledEvaluator, draws: Draws) -> None:
        self.estimator, self.drawn = estimator, draws
        self.controls, self.counted = estimator.controls, estimator.counted
        n_draws = self.n_draws = draws.ranks.shape[1]
        block = min(draws.block, n_draws)
        size = block * max(n_draws // block // FEWEST_BLOCKS, 1)  # several blocks together if there are very many
        self.ends = np.append(np.arange(size, n_draws, size), n_draws)
        self.weights = np.empty((len(draws.ranks), 0)) if draws.weights is None else draws.weights

    @cached_property
    def shares(self) -> FloatArray:
        """The part of each block in the draws of each ranking."""
        n_draws, starts = self.n_draws, np.append(0, self.ends[:-1])
        if self.drawn.weights is None or not self.estimator.method.completions.self_normalized:
            return np.tile(np.diff(np.append(0, self.ends)) / n_draws, (len(self.drawn.ranks), 1))
        # A ratio of means: its error is that of the deviations from the ratio.
        return np.asarray(np.add.reduceat(self.drawn.weights, starts, axis=1) / n_draws)

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

    def tables(self, functions: list[Function], coefficients: FloatArray) -> FloatArray:
        """Return functions of the distance without the part that has a known mean."""
        tables = np.stack([function.table for function in functions if function.table is not None])
        if not self.controls:
            return tables
        return np.asarray(tables - coefficients @ self.controls.at_distance(self.estimator.distances))

    def means(self, functions: list[Function], coefficients: FloatArray, rows: Indices, columns: Indices) -> FloatArray:
        """Return the means over all pairs of draws."""
        if self.counted is None or self.weights.shape[1]:
            spreads = [self.spread(*pair, rows, columns) for pair in zip(functions, coefficients, strict=True)]
            return np.array([spread.value for spread in spreads])
        tables = self.tables(functions, coefficients)

        def compute(left: Indices, right: Indices, turned: Mask, out: FloatArray) -> None:
            left, right = np.where(turned, right, left), np.where(turned, left, right)
            if self.are_bits and self.packed.shape[1] == 1:
                _loops.draw_sums.word_means(self.packed, left, right, tables, out)
            else:
                _loops.draw_sums.table_means(self.distances(left, right), tables, out)

        return self.by_pair(compute, len(functions), rows, columns)

    def spread(self, function: Function, coefficients: FloatArray, rows: Indices, columns: Indices) -> Spread:
        """Return the mean of one function, and how the draws spread around it."""
        table = self.tables([function], coefficients[None])[0] if self.counted else None

        def compute(left: Indices, right: Indices, turned: Mask, out: FloatArray) -> None:
            if table is None:
                blocks = self.matrix_blocks(function, coefficients, left, right, turned)
            left, right = np.where(turned, right, left), np.where(turned, left, right)
            if table is not None:
                blocks = np.empty((len(left), len(self.ends), len(self.ends)))
                d = self.distances(left, right)
                _loops.draw_sums.block_means(d, table, self.weights, left, right, self.ends, blocks)
            n_alike, of_two = self.n_draws // int(self.ends[0]), np.empty((5, len(left)))
            _loops.draw_sums.spreads(blocks, self.shares, n_alike, left, right, of_two)
            out[[0, 1, 4, 5, 6]], out[2], out[3] = of_two, 0.0, of_two[1]
            same = np.flatnonzero((left == right) & (len(self.ends) > 1))
            if len(same):
                own = own_spread(blocks[same], self.shares[left[same]], n_alike)
                out[1:, same] = [getattr(own, field.name) for field in fields(Spread)[1:]]

        return Spread(*self.by_pair(compute, len(fields(Spread)), rows, columns))

    def by_pair(
        self,
        compute: Callable[[Indices, Indices, Mask, FloatArray], None],
        n_numbers: int,
        rows: Indices,
        columns: Indices,
    ) -> FloatArray:
        """Return numbers for each pair of rankings, some pairs at a time; of a symmetric tile only one half.

        Where the order of two rankings by their draws is the other one, they are turned, so that sums are taken in the
        same order from both sides.
        """
        symmetric = np.array_equal(rows, columns)
        shape = (len(rows), len(columns))
        r, c = np.triu_indices(len(rows)) if symmetric else np.indices(shape).reshape(2, -1)
        left, right = rows[r], columns[c]
        turned = self.order[left] > self.order[right]
        found = np.empty((n_numbers, len(left)))
        for part in stretches(len(left), max(PAIRS_AT_ONCE // self.n_draws**2, 1)):
            compute(left[part], right[part], turned[part], found[:, part])
        out = np.empty((n_numbers, *shape))
        out[:, r, c] = found
        if symmetric:
            out[:, c, r] = found
        return out

    def distances(self, left: Indices, right: Indices) -> NDArray[np.int32]:
        """Return the distances between all draws of pairs of rankings: shape (n_pairs, n_draws, n_draws)."""
        distance = self.counted
        assert distance is not None
        d = np.empty((len(left), self.n_draws, self.n_draws), dtype=np.int32)
        numbers = distance.cycles(self.drawn.ranks.shape[2]) if distance.cycles else np.zeros(1, dtype=np.int64)
        name = "of_bits" if self.are_bits else "cycles" if distance.cycles else distance.name
        getattr(_loops.draw_distances, name)(self.packed, left, right, numbers, d)
        return d

    def matrix_blocks(
        self, function: Function, coefficients: FloatArray, left: Indices, right: Indices, turned: Mask
    ) -> FloatArray:
        """Return what each pair of blocks adds to the means of a function that has no table."""
        starts, out = np.append(0, self.ends[:-1]), np.empty((len(left), len(self.ends), len(self.ends)))
        for run in np.split(np.arange(len(left)), np.flatnonzero(np.diff(left)) + 1):
            i, others = left[run[0]], right[run]
            X, Y = self.drawn.ranks[i].astype(np.int32), self.drawn.ranks[others].astype(np.int32)
            flat = Y.reshape(-1, Y.shape[2])
            matrix = self.controls.less_known(function.matrix(X, flat), coefficients, X, flat)
            values = matrix.reshape(self.n_draws, len(others), self.n_draws).transpose(1, 0, 2)
            if self.weights.shape[1]:
                values = self.weights[i][:, None] * values * self.weights[others][:, None, :]
            values = np.where(turned[run, None, None], values.transpose(0, 2, 1), values)
            by_row = np.add.reduceat(values, starts, axis=2)
            out[run] = np.add.reduceat(by_row, starts, axis=1) / self.n_draws**2
        return out

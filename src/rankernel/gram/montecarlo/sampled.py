"""The Monte Carlo estimator of the paper, for any kernel and any rankings, with its error.

Every ranking gets draws of its completions, once; all draws of one are compared with all draws of the other. So the
matrix is that of inner products of empirical embeddings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel.arrays import FloatArray, Indices, IntArray, RankArray
from rankernel.completions.couplings import coupling_named
from rankernel.completions.draws import PURPOSE, Draws
from rankernel.completions.streams import row_streams, stream_key
from rankernel.distances import Distance
from rankernel.gram.cost import STEP
from rankernel.gram.evaluator import Bars, Evaluator, Tile
from rankernel.gram.exact.full import seconds_of_kernel
from rankernel.gram.methods import MonteCarlo
from rankernel.gram.montecarlo.control_variates import Controls
from rankernel.gram.montecarlo.error import FEWEST_BLOCKS, REPLICATES, doubtful, error_bars
from rankernel.gram.posets.poset_rows import PartialOrders, Rows, as_partial_orders
from rankernel.kernels.base import Kernel
from rankernel.rankings import Rankings, first_and_inverse

COUNTED_TILE = 96
MATRIX_ENTRIES = 2**21  # kernel evaluations at once, where all of them are written down
MOST_VALUES = 2**18  # of a function of a distance that is looked up
MOST_BITS_ITEMS = 128  # whose pairs fit into some hundred words, still far quicker than comparing them
MOST_BLOCKS = 32  # enough to tell the spread between them


@dataclass(frozen=True, eq=False)
class Spread:
    """How the draws of a tile spread: the variance of each entry, its bias, and the heaviest block in the variance."""

    value: FloatArray
    variance: FloatArray
    bias: FloatArray
    heaviest: FloatArray


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
        step = STEP["lookup"] + n_items * (STEP["cycle"] if counted.left_invariant else STEP["product"])
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
        self.tile_side = COUNTED_TILE if self.counted else max(int(MATRIX_ENTRIES**0.5) // method.n_draws, 1)

    @property
    def details(self) -> str:  # type: ignore[override]
        """The method in words."""
        return str(self.method)

    @cached_property
    def replicates(self) -> list[Replicate]:
        """The draws of all rankings, made when they are first needed."""
        number = cast(int, self.method.seed)
        seeds = [number] + [int(stream_key(number, f"replicate {r}")) for r in range(1, self.method.replicates)]
        return [Replicate(self, self.draw(seed)) for seed in seeds]

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
        if self.method.diagonal == "unbiased":
            parts = [self.spread(*pair, places) for pair in zip(self.functions(kernels), coefficients, strict=True)]
            sampled = np.stack([part.value for part in parts])
        else:
            sampled = self.mean(self.functions(kernels), coefficients, places)
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

    def spreads(self, kernel: Kernel, tile: Tile) -> Spread:
        """Return the estimate with how its draws spread."""
        return self.spreads_at(kernel, self.placed(tile))

    def spreads_at(self, kernel: Kernel, places: tuple[Indices, Indices]) -> Spread:
        """Return the same for any of all rankings."""
        coefficients = np.array(self.controls.coefficients(kernel))
        found = self.spread(self.functions([kernel])[0], coefficients, places)
        return Spread(
            found.value + self.known(coefficients[None], places)[0], found.variance, found.bias, found.heaviest
        )

    def unbiased(self, kernel: Kernel, tile: Tile) -> FloatArray:
        """Return the estimate from pairs of independent draws, where both sides have the same."""
        found = self.spreads(kernel, tile)
        if self.n_blocks > 1:
            return found.value - found.bias
        rows, columns = self.placed(tile)
        function, coefficients = self.functions([kernel])[0], np.array(self.controls.coefficients(kernel))
        exact = self.known(coefficients[None], (rows, columns))[0]
        out = found.value.copy()
        for r, c in np.argwhere(np.equal.outer(rows, columns)).tolist():
            own = exact[r, c] if exact.size > 1 else exact[0, 0]
            out[r, c] = own + self.between_repetitions(function, coefficients, int(rows[r]))
        return out

    # ------------------------------------------------------------------ errors

    def bars(self, kernel: Kernel, tile: Tile) -> Bars:
        """Return the estimate with its distance from the truth to be expected."""
        coefficients = np.array(self.controls.coefficients(kernel))
        places = self.placed(tile)
        found = self.barred(self.functions([kernel])[0], coefficients, places)
        return Bars(found.value + self.known(coefficients[None], places)[0], found.error, found.doubtful)

    def gradient_bars(self, kernel: Kernel, tile: Tile) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Return the same of the derivatives, with the same draws."""
        slopes, places, found = self.controls.slopes(kernel), self.placed(tile), {}
        for name, function in zip(kernel.params, self.slope_functions(kernel), strict=True):
            coefficients = np.array(slopes[name])
            bars = self.barred(function, coefficients, places)
            found[name] = bars.value + self.known(coefficients[None], places)[0], bars.error
        return found

    def lengths(self, kernel: Kernel, side: int) -> tuple[FloatArray, FloatArray]:
        """Return the squared lengths of one side, unbiased where that leaves something positive and certain enough."""
        places = (self.row_of, self.column_of)[side]
        value, error = np.empty(len(places)), np.empty(len(places))
        for k in range(len(places)):
            tile = (places[k : k + 1], places[k : k + 1])
            found = self.spreads_at(kernel, tile)
            unbiased, deviation = found.value - found.bias, np.sqrt(found.variance)
            usable = unbiased > 2 * deviation
            value[k] = (unbiased if usable else found.value).item()
            error[k] = (deviation if usable else np.sqrt(found.variance + found.bias**2)).item()
        return value, error

    def barred(self, function: Function, coefficients: FloatArray, places: tuple[Indices, Indices]) -> Bars:
        """Return the mean of a function with its error, by independent repetitions where blocks of draws are few."""
        n_blocks = self.n_blocks * self.method.replicates
        if n_blocks >= FEWEST_BLOCKS:
            found = self.spread(function, coefficients, places)
            factor = doubtful(found.heaviest, n_blocks)
            return Bars(found.value, factor * error_bars(found.variance, found.bias, n_blocks), factor > 1)
        rows, columns = places
        value = self.mean([function], coefficients[None], places)[0]
        runs = [one.means([function], coefficients[None], rows, columns)[0] for one in self.repetitions]
        variance, bias = np.var(runs, axis=0, ddof=1), np.zeros_like(value)
        for r, c in np.argwhere(np.equal.outer(rows, columns)).tolist():
            bias[r, c] = value[r, c] - self.between_repetitions(function, coefficients, int(rows[r]))
        if self.method.diagonal == "unbiased":
            bias[:] = 0.0
        return Bars(value, error_bars(variance, bias, REPLICATES), np.zeros(value.shape, dtype=bool))

    @property
    def n_blocks(self) -> int:
        """Into how many independent blocks the draws fall."""
        return len(self.replicates[0].ends)

    @cached_property
    def repetitions(self) -> list[Replicate]:
        """Independent draws of the same kind, to see how much the estimate varies."""
        seeds = [int(stream_key(cast(int, self.method.seed), f"repetition {r}")) for r in range(REPLICATES)]
        return [Replicate(self, self.draw(seed)) for seed in seeds]

    def between_repetitions(self, function: Function, coefficients: FloatArray, row: int) -> float:
        """Return the mean between independent draws of one ranking, which is unbiased."""
        ranks = np.concatenate([one.drawn.ranks[row : row + 1] for one in self.repetitions])
        weights = None
        if self.repetitions[0].drawn.weights is not None:
            weights = np.concatenate([one.weights[row : row + 1] for one in self.repetitions])
        pooled = replace(self.repetitions[0].drawn, ranks=ranks, weights=weights)
        every = np.arange(len(ranks))
        table = Replicate(self, pooled).means([function], coefficients[None], every, every)[0]
        return float(table[np.triu_indices(len(every), 1)].mean())

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

    def spread(self, function: Function, coefficients: FloatArray, places: tuple[Indices, Indices]) -> Spread:
        """Return the same of one function, with how the draws spread around it."""
        runs = [one.spread(function, coefficients, *places) for one in self.replicates]
        n = len(runs)
        return Spread(
            np.mean([run.value for run in runs], axis=0) if n > 1 else runs[0].value,
            np.sum([run.variance for run in runs], axis=0) / n**2,
            np.mean([run.bias for run in runs], axis=0),
            np.mean([run.heaviest for run in runs], axis=0) / n,
        )

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
        size = block * -(-(n_draws // block) // MOST_BLOCKS)  # several blocks together if there are very many
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
    def packed(self) -> tuple[NDArray[Any], int, IntArray]:
        """The draws as the loops want them, the kind of distance, and numbers for cycles."""
        ranks, distance = self.drawn.ranks, self.counted
        assert distance is not None
        n_rankings, n_draws, n_items = ranks.shape
        if distance.name == "kendall" and n_items <= MOST_BITS_ITEMS:
            words = _loops.bits.pairs_in_order(ranks.reshape(-1, n_items)).reshape(n_rankings, n_draws, -1)
            return np.ascontiguousarray(words.transpose(0, 2, 1)), 0, np.zeros(1, dtype=np.int64)
        kind = _loops.draw_sums.CYCLES if distance.cycles else getattr(_loops.draw_sums, distance.name.upper())
        cycles = distance.cycles(n_items) if distance.cycles else np.zeros(1, dtype=np.int64)
        return np.ascontiguousarray(ranks.transpose(0, 2, 1)), kind, cycles

    def tables(self, functions: list[Function], coefficients: FloatArray) -> FloatArray:
        """Return functions of the distance without the part that has a known mean."""
        tables = np.stack([function.table for function in functions if function.table is not None])
        if not self.controls:
            return tables
        return np.asarray(tables - coefficients @ self.controls.at_distance(self.estimator.distances))

    def means(self, functions: list[Function], coefficients: FloatArray, rows: Indices, columns: Indices) -> FloatArray:
        """Return the means over all pairs of draws."""
        out = np.empty((len(functions), len(rows), len(columns)))
        if self.counted is None:
            for matrix, function, own in zip(out, functions, coefficients, strict=True):
                matrix[:] = self.block_means(function, own, rows, columns).sum(axis=(1, 3))
            return out
        draws, kind, cycles = self.packed
        symmetric = np.array_equal(rows, columns)
        tables = self.tables(functions, coefficients)
        _loops.draw_sums.means(draws, self.weights, rows, columns, symmetric, kind, cycles, tables, out)
        return out

    def spread(self, function: Function, coefficients: FloatArray, rows: Indices, columns: Indices) -> Spread:
        """Return the mean of one function, and how the draws spread around it."""
        out = np.empty((4, len(rows), len(columns)))
        if self.counted is None:
            blocks = self.block_means(function, coefficients, rows, columns)
            out[0] = blocks.sum(axis=(1, 3))
            same = np.equal.outer(rows, columns)
            _loops.draw_sums.spreads_of_blocks(blocks, self.shares[rows], self.shares[columns], same, out[1:])
        else:
            draws, kind, cycles = self.packed
            symmetric = np.array_equal(rows, columns)
            table = self.tables([function], coefficients[None])[0]
            _loops.draw_sums.spreads(
                draws, self.weights, self.shares, self.ends, rows, columns, symmetric, kind, cycles, table, out
            )
        value, variance, bias, heaviest = out
        if self.estimator.method.diagonal == "unbiased":
            if len(self.ends) < 2:
                method = self.estimator.method
                raise ValueError(
                    f"{method.n_draws} draws are one block of the coupling {method.coupling!r}; an unbiased "
                    "diagonal needs at least two independent blocks: use more draws"
                )
            value, bias = value - bias, np.zeros_like(bias)
        return Spread(value, variance, bias, heaviest)

    def block_means(self, function: Function, coefficients: FloatArray, rows: Indices, columns: Indices) -> FloatArray:
        """Return what each pair of blocks adds to the means, where all kernel values are written down.

        Shape (rows, blocks, columns, blocks). Some draws at a time, so that no matrix is very large.
        """
        n_draws, starts = self.n_draws, np.append(0, self.ends[:-1])
        out = np.empty((len(rows), len(self.ends), len(columns), len(self.ends)))
        right = self.side(columns)
        step = max(MATRIX_ENTRIES // (n_draws * max(len(columns), 1)), 1)
        for place, row in enumerate(rows):
            left = self.side(np.array([row]))
            by_draw = np.empty((n_draws, len(columns), len(self.ends)))
            for first in range(0, n_draws, step):
                part = slice(first, min(first + step, n_draws))
                matrix = self.controls.less_known(function.matrix(left[part], right), coefficients, left[part], right)
                matrix = matrix.reshape(-1, len(columns), n_draws)
                if self.weights.shape[1]:
                    matrix = self.weights[row, part, None, None] * matrix * self.weights[columns]
                by_draw[part] = np.add.reduceat(matrix, starts, axis=2)
            out[place] = np.add.reduceat(by_draw, starts, axis=0) / n_draws**2
        return out

    def side(self, rows: Indices) -> RankArray:
        """Return all draws of some rankings, one after the other."""
        ranks = self.drawn.ranks[rows]
        return ranks.reshape(-1, ranks.shape[2]).astype(np.int32)

"""The Monte Carlo estimator of the paper, for any kernel and any rankings, with its error.

Every ranking gets draws of its completions, once; all draws of one are compared with all draws of the other. So the
matrix is that of inner products of empirical embeddings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np

from rankernel.arrays import FloatArray, Indices, IntArray, Mask
from rankernel.completions.couplings import coupling_named
from rankernel.completions.draws import PURPOSE, Draws, effective_size
from rankernel.completions.keys import complete
from rankernel.completions.streams import row_streams, stream_key
from rankernel.distances import Distance
from rankernel.gram.cost import STEP
from rankernel.gram.evaluator import Bars, Evaluator, Tile
from rankernel.gram.exact.full import seconds_of_kernel
from rankernel.gram.methods import MonteCarlo
from rankernel.gram.montecarlo.control_variates import Controls, combined
from rankernel.gram.montecarlo.error import (
    BLOCKS_FOR_EACH,
    FEW_DRAWS,
    FEWEST_BLOCKS,
    FEWEST_OF_ONE,
    FEWEST_OWN_BLOCKS,
    LEAST,
    LEAST_OF_OWN,
    OF_FEW_DRAWS,
    OWN_REPETITIONS,
    REPETITIONS,
    Spread,
    between_variance,
    error_bars,
    few_carry,
    n_carrying,
    own_spread,
    together,
    unseen,
    widened,
    widening,
)
from rankernel.gram.montecarlo.replicate import MOST_BITS_ITEMS, PAIRS_AT_ONCE, Function, Replicate
from rankernel.gram.posets.poset_rows import PartialOrders, Rows, as_partial_orders
from rankernel.interrupts import heard
from rankernel.kernels.base import Kernel
from rankernel.memory import ALWAYS_FITS, check_bytes
from rankernel.rankings import Rankings, first_and_inverse

SMALLEST_TILE, LARGEST_TILE = 8, 96
A_TILE = 0.05  # seconds
AT_ONCE = 0.2  # seconds
DRAWING_BYTES, DRAWN_BYTES = 8, 3  # for each item of a draw: while it is made, and once it is
DRAWING_ORDER_BYTES = 26  # of partial orders
MOST_VALUES = 2**18  # of a function of a distance that is looked up
SOME, STEPS = 4, 3  # draws, near which the largest value of a function is looked for, and steps towards each other


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
        kernel.check_n_items(X.n_items)  # before it is promised
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
        self.fair = method.diagonal == "unbiased"
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
        if needed > ALWAYS_FITS:
            what = f"{n_draws:,} draws from each of {n_rows:,} rankings"
            check_bytes(needed, what, "take fewer draws, or fewer rankings")

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
        coefficients = np.array([self.controls.coefficients(kernel) for kernel in kernels])
        return self.estimates(self.functions(kernels), coefficients, self.placed(tile), self.fair)

    def gradients(self, kernel: Kernel, tile: Tile) -> dict[str, FloatArray]:
        """Return the derivatives of the estimate, with the same draws."""
        names = list(kernel.params)
        if not names:
            return {}
        slopes = self.controls.slopes(kernel)
        coefficients = np.array([slopes[name] for name in names])
        found = self.estimates(self.slope_functions(kernel), coefficients, self.placed(tile), self.fair)
        return dict(zip(names, found, strict=True))

    def estimates(
        self, functions: list[Function], coefficients: FloatArray, places: tuple[Indices, Indices], fair: bool
    ) -> FloatArray:
        """Return the mean of each function; if it is to be fair, without the bias of a ranking with itself."""
        found = self.mean(functions, coefficients, places)
        if fair:
            r, c = np.nonzero(np.equal.outer(*places))
            for k, function in enumerate(functions):
                found[k, r, c] -= self.own_spreads(function, coefficients[k], places[0][r]).bias
        return found + self.known(coefficients, places)

    def unbiased_diagonal(self, kernel: Kernel) -> FloatArray:
        """Return the estimates of all rankings with themselves from pairs of independent draws."""
        function, coefficients = self.averaged(kernel)
        found = self.own_spreads(function, coefficients, self.row_of)
        return found.value - found.bias + self.own_known(coefficients, self.row_of)

    # ------------------------------------------------------------------ errors

    def bars(self, kernel: Kernel, tile: Tile) -> Bars:
        """Return the estimate with its distance from the truth to be expected."""
        return self.barred(*self.averaged(kernel), self.placed(tile))

    def gradient_bars(self, kernel: Kernel, tile: Tile) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Return the same of the derivatives, with the same draws."""
        slopes, places, found = self.controls.slopes(kernel), self.placed(tile), {}
        for name, function in zip(kernel.params, self.slope_functions(kernel), strict=True):
            bars = self.barred(function, np.array(slopes[name]), places)
            found[name] = bars.value, bars.error
        return found

    def barred(self, function: Function, coefficients: FloatArray, places: tuple[Indices, Indices]) -> Bars:
        """Return the mean of a function with its error; of a ranking with itself, the bias is inside or taken out."""
        found = self.spread(function, coefficients, places)
        left, right = np.ix_(*places)
        fair = (left == right) & self.fair
        if fair.any():
            found = self.without_bias(found, function, coefficients, places)
        value = found.value + self.known(coefficients[None], places)[0]
        n_more = np.full(fair.shape, len(self.repetitions))
        if fair.any() and self.n_blocks >= FEWEST_OF_ONE:
            n_more[fair] = len(self.own_repetitions)
        error, doubtful = self.errors(found, function, coefficients, left, right, fair, n_more)
        return Bars(value, error, doubtful)

    def without_bias(
        self, found: Spread, function: Function, coefficients: FloatArray, places: tuple[Indices, Indices]
    ) -> Spread:
        """Return the spread of a mean without the bias of a ranking with itself.

        Of one set of draws such a mean and its variance are small together: the variance comes from several sets.
        """
        fair = found.without_bias()
        r, c = np.nonzero(np.equal.outer(*places))
        if not len(r) or self.n_blocks < FEWEST_OF_ONE:
            return fair
        own = self.own_means(function, coefficients, places[0][r], self.own_repetitions)
        more = 1 + len(self.own_repetitions) / self.method.replicates
        fair.variance[r, c], fair.least_variance[r, c] = own.variance * more, own.least_variance * more
        for name in ("squares", "fourths", "sizes", "size_squares"):
            getattr(fair, name)[r, c] = getattr(own, name)
        return fair

    def errors(
        self,
        found: Spread,
        function: Function,
        coefficients: FloatArray,
        left: Indices,
        right: Indices,
        fair: Mask,
        n_more: IntArray,
    ) -> tuple[FloatArray, Mask]:
        """Return the errors of estimates for pairs of rankings, and which of them are in doubt.

        ``fair`` are those of rankings with themselves without their bias; ``n_more`` sets of draws were looked at
        besides those of the estimate.
        """
        n_runs = (n_more + self.method.replicates).astype(np.float64)
        n_seen = n_independent = np.full(fair.shape, float(len(self.repetitions)))  # as they are
        between = np.zeros(fair.shape, dtype=bool)  # means of these have a variance that is widened already
        if self.n_blocks < FEWEST_OF_ONE:
            between = (left == right) & (~fair | (self.n_blocks == 1))
            n_seen = np.where(between, len(self.own_repetitions) ** 2 / 2, n_seen)
        else:  # or pairs of their blocks
            n_seen, n_independent = n_runs * self.n_blocks**2, n_runs * self.n_blocks
            n_seen = np.where(left == right, n_seen / 2, n_seen)
            # However well it is known how they vary, means over pairs of few blocks are far from normal.
            most = self.n_blocks * self.method.replicates * BLOCKS_FOR_EACH
            n_independent = np.where(fair, np.minimum(n_independent, most), n_independent)
        carrying = n_carrying(found.squares, found.fourths)
        worth = np.minimum(self.worth[left], self.worth[right])
        few = few_carry(carrying, n_seen) | ((worth < 0.5) & (worth * self.method.n_draws < FEWEST_OF_ONE))
        missed = unseen(found, few, *self.n_pairs(left, right, n_runs))
        missed *= self.largest(function, coefficients, left, right, missed > 0)
        least = np.where(fair, LEAST_OF_OWN, LEAST)
        factor = widened(carrying, n_seen) * np.where(between, 1.0, widening(worth * n_independent))
        error = error_bars(found, least, factor, missed)
        return error, few | (missed > 0)

    @cached_property
    def worth(self) -> FloatArray:
        """What part of the draws of each ranking would do if none had more weight than another."""
        runs = [*self.replicates, *self.repetitions]
        if runs[0].drawn.weights is None:
            return np.ones(len(runs[0].drawn.ranks))
        weights = np.concatenate([run.weights for run in runs], axis=1)
        return np.asarray(effective_size(weights) / weights.shape[1])

    def n_pairs(self, left: Indices, right: Indices, n_runs: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return how many pairs of draws were seen of each pair of rankings, how many different ones, and new chances.

        Pairs of coupled draws come together; and those of one set of draws are seen from both sides.
        """
        drawn, m, same = self.replicates[0].drawn, self.method.n_draws, left == right
        n_seen = n_runs * np.where(same, m**2 - (np.diff(np.append(0, self.replicates[0].ends)) ** 2).sum(), m**2)
        n_runs = np.where(same, n_runs / 2, n_runs)
        if self.n_blocks < FEWEST_OF_ONE:  # own pairs are those between repetitions
            n = len(self.own_repetitions) * (len(self.own_repetitions) - 1)
            n_seen, n_runs = np.where(same, n * m**2, n_seen), np.where(same, n / 2, n_runs)
        different, new = drawn.seen
        n_different = different[left] * different[right] / min(drawn.block, m)
        return n_seen, n_runs * n_different, 1 - (1 - new[left]) * (1 - new[right])

    def largest(
        self, function: Function, coefficients: FloatArray, left: Indices, right: Indices, wanted: Mask
    ) -> FloatArray:
        """Return about the largest value of a function between completions, less the part that has a known mean.

        It is looked for where it is wanted: at completions of the one that are near draws of the other, and the other
        way round. Of what is left of a function that is known nothing counts.
        """
        found = np.zeros(wanted.shape)
        rows, columns = (np.broadcast_to(side, wanted.shape)[wanted] for side in (left, right))
        if not len(rows):
            return found
        ranks = self.rows.ranks
        of_columns = self.replicates[0].drawn.ranks[columns, :SOME]
        for _ in range(STEPS):
            of_rows = complete(ranks[rows], (of_columns + 0.5) / self.n_items)
            of_columns = complete(ranks[columns], (of_rows + 0.5) / self.n_items)
        near = Replicate(self, Draws(np.concatenate([of_rows, of_columns]), None, 1))
        found[wanted] = near.largest(function, coefficients)
        return found

    def lengths(self, kernel: Kernel, places: Indices) -> tuple[FloatArray, FloatArray, Mask]:
        """Return the squared lengths of some rankings, their errors, and which of them are in doubt.

        They come from all draws that are at hand, and are unbiased where that leaves something clearly positive; else
        the biased ones of the sampled embeddings stand in.
        """
        function, coefficients = self.averaged(kernel)
        fair = self.own_means(function, coefficients, places, self.repetitions)
        of_blocks = np.full(len(places), self.n_blocks >= FEWEST_OF_ONE)
        n_more = np.full(len(places), len(self.repetitions))
        error, _ = self.errors(fair, function, coefficients, places, places, of_blocks, n_more)
        known = self.own_known(coefficients, places)
        value = fair.value + known
        doubtful = ~(value > 2 * error)
        for k in np.flatnonzero(doubtful).tolist():
            own = places[k : k + 1]
            value[k] = self.mean([function], coefficients[None], (own, own)).item() + known[k]
        return value, error, doubtful

    def length_effects(self, kernel: Kernel, factors: FloatArray) -> list[FloatArray] | None:
        """Return by how much the blocks of each replicate move the lengths of all rankings, times some factors.

        None if lengths come from other draws than entries do.
        """
        if self.n_blocks < FEWEST_OF_ONE:
            return None
        function, coefficients = self.averaged(kernel)
        places = np.flatnonzero(factors)
        found = []
        for one in self.replicates:
            effects = np.zeros((len(factors), self.n_blocks))
            effects[places] = one.own_effects(function, coefficients, places) * factors[places, None]
            found.append(effects)
        return found

    def length_covariances(self, kernel: Kernel, effects: list[FloatArray], tile: Tile) -> FloatArray:
        """Return how entries vary together with the lengths of both sides, from the effects of blocks on these."""
        function, coefficients = self.averaged(kernel)
        runs = zip(self.replicates, effects, strict=True)
        places = self.placed(tile)
        each = [one.covariances(function, coefficients, moved, *places) for one, moved in runs]
        n_runs = len(self.replicates) + len(self.repetitions)  # lengths are means over all, entries over the first
        worth = np.minimum.outer(*(self.worth[side] for side in places))
        return np.asarray(np.mean(each, axis=0) / n_runs * widening(worth * n_runs * self.n_blocks) ** 2)

    def own_means(self, function: Function, coefficients: FloatArray, places: Indices, more: list[Replicate]) -> Spread:
        """Return the unbiased means of a function for rankings with themselves, from the draws and from more."""
        if self.n_blocks < FEWEST_OF_ONE:
            rows = [self.between_repetitions(function, coefficients, row).numbers for row in places.tolist()]
            return Spread(*np.concatenate(rows, axis=1))
        runs = [one.own_spreads(function, coefficients, places) for one in (*self.replicates, *more)]
        return together(runs).without_bias()

    def own_spreads(self, function: Function, coefficients: FloatArray, places: Indices) -> Spread:
        """Return the means of a function for rankings with themselves, with their biases."""
        found = together([one.own_spreads(function, coefficients, places) for one in self.replicates])
        if self.n_blocks > 1:
            return found
        # A single block of draws is not independent of itself: there, repetitions tell the bias.
        fair = [self.between_repetitions(function, coefficients, row).value.item() for row in places.tolist()]
        return replace(found, bias=found.value - np.array(fair))

    def spread(self, function: Function, coefficients: FloatArray, places: tuple[Indices, Indices]) -> Spread:
        """Return the mean of a function over all pairs of draws, with how it varies.

        Where blocks of draws are too few to tell, independent repetitions of all draws are looked at: their blocks, or
        the repetitions as they are if each is of very few blocks.
        """
        drawn = [one.spread(function, coefficients, *places) for one in self.replicates]
        found = together(drawn)
        if not self.repetitions:
            return found
        own, n = not self.fair, self.method.replicates
        runs = [one.spread(function, coefficients, *places) for one in self.repetitions]
        all_runs = together([*runs, *drawn])
        if self.n_blocks >= FEWEST_OF_ONE:
            more = len(runs) / n + 1
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
        sizes = np.array([all_runs.sizes, all_runs.size_squares])
        for r, c in np.argwhere(np.equal.outer(*places)).tolist():
            fair = self.between_repetitions(function, coefficients, places[0][r])
            sizes[:, r, c] = fair.sizes.item(), fair.size_squares.item()
            if (
                own or self.n_blocks == 1
            ):  # how far it is off is seen, as surely as the mean between repetitions is known
                variance[r, c], bias[r, c] = fair.variance.item(), found.value[r, c] - fair.value.item()
                squares[r, c], fourths[r, c] = fair.squares.item(), fair.fourths.item()
        return Spread(found.value, variance, bias, variance, np.zeros_like(variance), squares, fourths, *sizes)

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
        return [self.repetition(r) for r in range(number)]

    @cached_property
    def own_repetitions(self) -> list[Replicate]:
        """Independent draws of the same kind, for how the mean over pairs of one set of draws varies."""
        if self.n_blocks >= FEWEST_OF_ONE:
            n = -(-FEWEST_OWN_BLOCKS // self.n_blocks) - self.method.replicates
        else:
            n = OF_FEW_DRAWS if self.method.n_draws <= FEW_DRAWS else OWN_REPETITIONS
        more = range(len(self.repetitions), max(n, len(self.repetitions)))
        return [*self.repetitions, *(self.repetition(number) for number in more)]

    def repetition(self, number: int) -> Replicate:
        """Return independent draws of the same kind."""
        seed = int(stream_key(cast(int, self.method.seed), f"repetition {number}"))
        return Replicate(self, self.draw(seed))

    def between_repetitions(self, function: Function, coefficients: FloatArray, row: Any) -> Spread:
        """Return the mean between independent draws of one ranking, which is unbiased, and how it varies."""
        ranks = np.concatenate([one.drawn.ranks[row : row + 1] for one in self.own_repetitions])
        weights = None
        if self.own_repetitions[0].drawn.weights is not None:
            weights = np.concatenate([one.weights[row : row + 1] for one in self.own_repetitions])
        pooled = Replicate(self, replace(self.own_repetitions[0].drawn, ranks=ranks, weights=weights))
        every = np.arange(len(ranks))
        each = pooled.spread(function, coefficients, every, every)
        different = ~np.eye(len(every), dtype=bool)
        sizes = np.array([[each.sizes[different].sum()], [each.size_squares[different].sum()]])
        shares = np.full((1, len(every)), 1 / len(every))
        fair = own_spread(each.value[None] / each.value.size, shares, len(every), sizes).without_bias()
        return replace(fair, variance=between_variance(fair, len(every) * self.worth[row]), least_variance=np.zeros(1))

    # ------------------------------------------------------------------ steps

    def functions(self, kernels: Sequence[Kernel]) -> list[Function]:
        """Return each kernel as what is averaged: a table over a distance, or the kernel between full rankings."""
        if self.counted is None:
            return [Function(kernel.matrix) for kernel in kernels]
        return [Function(kernel.matrix, kernel.at_distance(self.distances, self.n_items)) for kernel in kernels]

    def averaged(self, kernel: Kernel) -> tuple[Function, FloatArray]:
        """Return the same of one kernel, and by what its known parts are multiplied."""
        return self.functions([kernel])[0], np.array(self.controls.coefficients(kernel))

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
        return combined(coefficients.T[:, :, None, None], self.exact_parts.products(places)[:, None])

    def own_known(self, coefficients: FloatArray, places: Indices) -> FloatArray:
        """Return the same of rankings with themselves, one number for each."""
        if not self.controls:
            return np.zeros(len(places))
        each = (places[k : k + 1] for k in range(len(places)))
        return np.array([self.known(coefficients[None], (own, own)).item() for own in each])

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

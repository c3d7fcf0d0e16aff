"""The Monte Carlo estimator of the paper, for any kernel and any rankings, with its error.

Every ranking gets draws of its completions, once; all draws of one are compared with all draws of the other. So the
matrix is that of inner products of empirical embeddings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices, IntArray
from rankernel._utils.interrupts import run_interruptibly
from rankernel._utils.memory import ALWAYS_FITS, check_bytes
from rankernel._utils.rng import row_streams, stream_key
from rankernel.completions.couplings import coupling_named
from rankernel.completions.draws import PURPOSE, Draws
from rankernel.distances import Distance
from rankernel.gram.cost import STEP
from rankernel.gram.evaluator import Block, BlockEstimate, Evaluator
from rankernel.gram.exact.enumeration import seconds_of_kernel
from rankernel.gram.methods import MonteCarlo
from rankernel.gram.montecarlo.control_variates import Controls, combined
from rankernel.gram.montecarlo.replicate import MOST_BITS_ITEMS, PAIRS_AT_ONCE, Function, Replicate, ends_of_blocks
from rankernel.gram.montecarlo.uncertainty import Uncertainty, times_compared
from rankernel.gram.poset_rows import PartialOrders, Rows, as_partial_orders
from rankernel.kernels.base import Kernel, check_max_items, distance_derivatives
from rankernel.rankings import Rankings

SMALLEST_TILE, LARGEST_TILE = 8, 96
A_TILE = 0.05  # seconds
AT_ONCE = 0.2  # seconds
DRAWING_BYTES, DRAWN_BYTES = 8, 3  # for each item of a draw: while it is made, and once it is
DRAWING_ORDER_BYTES = 26  # of partial orders
MOST_VALUES = 2**18  # of a function of a distance that is looked up


@lru_cache(maxsize=256)
def n_values(distance: Distance | None, n_items: int) -> int:
    """Return how many values a distance has, if they are few enough to look functions of it up; else 0."""
    if distance is None or not distance.integer or distance.maximum(n_items) >= MOST_VALUES:
        return 0
    return int(distance.maximum(n_items)) + 1


def estimate_seconds(
    method: MonteCarlo, kernel: Kernel, n_items: int, n_rows: int, n_columns: int, n_own: int | None = None
) -> float:
    """Return about how long an estimate takes, whatever the rankings are; its method has no "auto" left.

    If it is told how many of the entries are of rankings with themselves, errors are measured, too.
    """
    pairs, m = n_rows * n_columns, method.n_draws
    facts = kernel.facts(n_items)
    counted = facts.distance if facts.function is not None else None
    if counted is None or not n_values(counted, n_items):
        step = seconds_of_kernel(kernel, n_items) + 4 * STEP["product"]
    elif counted.name == "kendall" and n_items <= MOST_BITS_ITEMS:
        words = -(-n_items * (n_items - 1) // 128)
        step = STEP["sum"] if words == 1 else STEP["lookup"] + STEP["bits"] * words
    else:
        step = STEP["lookup"] + n_items * (STEP["cycle"] if counted.cycle_weights is not None else STEP["product"])
    controls = Controls.of(kernel, n_items, int(method.control_variates))
    exact = (STEP["product"] * pairs + STEP["feature"] * (n_rows + n_columns)) * controls.n_features(n_items)
    drawn = STEP["draw"] * (n_rows + n_columns) * m * n_items
    times = 1.0
    if n_own is not None:
        block = coupling_named(method.coupling, kernel).block_size(n_items, m)
        times = times_compared(method, len(ends_of_blocks(m, block)), n_own, pairs)
    return method.replicates * times * (drawn + pairs * (STEP["entry"] + m * m * step)) + exact


class SampledEvaluator(Evaluator):
    """The estimator for two sets of rankings; its method has no "auto" left."""

    def __init__(self, method: MonteCarlo, kernel: Kernel, X: Rows, Y: Rows) -> None:
        check_max_items(kernel, X.n_items)
        self.method, self.kernel = method, kernel
        self.n_items, self.shape = X.n_items, (len(X), len(Y))
        self.rows, self.row_of, self.column_of, self.numbers = united(X, Y, method.distinct_rows)
        self.controls = Controls.of(kernel, self.n_items, int(method.control_variates))
        facts = kernel.facts(self.n_items)
        distance = facts.distance if facts.function is not None else None
        can_count = n_values(distance, self.n_items) and self.controls.are_functions_of(distance)
        self.counted = distance if can_count else None
        self.block_side = max(int(PAIRS_AT_ONCE**0.5) // method.n_draws, 1)
        if self.counted:  # small enough to keep all threads busy, and to be left at any time
            seconds = estimate_seconds(method, kernel, self.n_items, LARGEST_TILE, LARGEST_TILE) / LARGEST_TILE**2
            self.block_side = min(max(int((A_TILE / seconds) ** 0.5), SMALLEST_TILE), LARGEST_TILE)
        self.fair = method.diagonal == "unbiased"
        self.made: list[Replicate] = []

    def with_replicates(self, method: MonteCarlo) -> SampledEvaluator:
        """Return the estimator with another number of replicates, which has those that are drawn already."""
        more = copy(self)
        more.method, more.made = method, self.replicates
        for name in ("replicates", "uncertainty"):
            vars(more).pop(name, None)
        return more

    @property
    def details(self) -> str:  # type: ignore[override]
        """The method in words."""
        return str(self.method)

    @cached_property
    def replicates(self) -> list[Replicate]:
        """The draws of all rankings, made when they are first needed."""
        number = cast(int, self.method.rng)
        seeds = [number] + [int(stream_key(number, f"replicate {r}")) for r in range(1, self.method.replicates)]
        missing = seeds[len(self.made) :]
        self.check_draws(len(missing))
        drawn = [self.draw(seed) if self.quick else run_interruptibly(self.draw, seed) for seed in missing]
        return self.made + [Replicate(self, draws) for draws in drawn]

    @cached_property
    def quick(self) -> bool:  # type: ignore[override]
        """Whether all of it takes no time to speak of."""
        return self.seconds(*self.shape) < AT_ONCE

    def check_draws(self, n_sets: int) -> None:
        """Refuse more sets of draws than fit into memory."""
        n_rows, n_draws = len(self.rows), self.method.n_draws
        drawing = DRAWING_ORDER_BYTES if isinstance(self.rows, PartialOrders) else DRAWING_BYTES
        needed = (drawing + DRAWN_BYTES * (n_sets - 1)) * n_rows * n_draws * self.n_items
        if n_sets and needed > ALWAYS_FITS:
            what = f"{n_sets * n_draws:,} draws from each of {n_rows:,} rankings"
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

    def values(self, kernels: Sequence[Kernel], tile: Block) -> FloatArray:
        """Return the estimate for each kernel."""
        coefficients = np.array([self.controls.coefficients(kernel) for kernel in kernels])
        return self.estimates(self.functions(kernels), coefficients, self.placed(tile), self.fair)

    def gradients(self, kernel: Kernel, tile: Block) -> dict[str, FloatArray]:
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
                found[k, r, c] -= self.uncertainty.own_spreads(function, coefficients[k], places[0][r]).bias
        return found + self.known(coefficients, places)

    def unbiased_diagonal(self, kernel: Kernel) -> FloatArray:
        """Return the estimates of all rankings with themselves from pairs of independent draws."""
        function, coefficients = self.averaged(kernel)
        found = self.uncertainty.own_spreads(function, coefficients, self.row_of)
        return found.value - found.bias + self.own_known(coefficients, self.row_of)

    # ------------------------------------------------------------------ errors

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """How sure all of it is."""
        return Uncertainty(self)

    def estimate_block(self, kernel: Kernel, tile: Block) -> BlockEstimate:
        """Return the estimate with its distance from the truth to be expected."""
        return self.uncertainty.barred(*self.averaged(kernel), self.placed(tile))

    def gradient_estimates(self, kernel: Kernel, tile: Block) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Return the same of the derivatives, with the same draws."""
        slopes, places, found = self.controls.slopes(kernel), self.placed(tile), {}
        for name, function in zip(kernel.params, self.slope_functions(kernel), strict=True):
            bars = self.uncertainty.barred(function, np.array(slopes[name]), places)
            found[name] = bars.value, bars.error
        return found

    # ------------------------------------------------------------------ steps

    def functions(self, kernels: Sequence[Kernel]) -> list[Function]:
        """Return each kernel as what is averaged: a table over a distance, or the kernel between full rankings."""
        if self.counted is None:
            return [Function(kernel.matrix) for kernel in kernels]
        known = [kernel.facts(self.n_items).function for kernel in kernels]
        return [
            Function(kernel.matrix, function.value(self.distances))
            for kernel, function in zip(kernels, known, strict=True)
            if function is not None
        ]

    def averaged(self, kernel: Kernel) -> tuple[Function, FloatArray]:
        """Return the same of one kernel, and by what its known parts are multiplied."""
        return self.functions([kernel])[0], np.array(self.controls.coefficients(kernel))

    def slope_functions(self, kernel: Kernel) -> list[Function]:
        """Return the derivatives of a kernel in the same way."""
        tables = {} if self.counted is None else distance_derivatives(kernel, self.n_items, self.distances)

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

    def placed(self, tile: Block) -> tuple[Indices, Indices]:
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
    first, inverse = both.unique_indices()
    return both[first], inverse[: len(X)], inverse[len(X) :], None

"""The Monte Carlo estimator of Gram matrices, for any kernel and any rankings.

Each ranking gets draws of its completions once, and all draws of one ranking are compared with all draws of the other:
the matrix of inner products of empirical mean embeddings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from threading import RLock
from typing import Any, cast

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices, IntArray, Mask
from rankernel._utils.interrupts import run_in_threads
from rankernel._utils.memory import ALWAYS_FITS, check_bytes
from rankernel._utils.rng import row_streams, stream_key
from rankernel.completions.couplings import coupling_named
from rankernel.completions.draws import PURPOSE, Draws
from rankernel.distances import Distance
from rankernel.errors import Argument, ArgumentValueError
from rankernel.gram.blocks import slices
from rankernel.gram.cost import STEP
from rankernel.gram.evaluator import Block, BlockEstimate, Evaluator
from rankernel.gram.exact.choice import seconds_of_kernel
from rankernel.gram.jackknife import (
    FEW_BLOCKS,
    Norms,
    SquaredNorms,
    cosines,
    effective_blocks,
    leave_one_out,
    student_factor,
    variance,
)
from rankernel.gram.methods import MonteCarlo
from rankernel.gram.montecarlo.draws import (
    DRAW_PAIRS,
    MAX_ITEMS_BITS,
    ControlMeans,
    ControlVariates,
    DrawSet,
    Integrand,
    Parts,
    block_bounds,
    weighted_sum,
)
from rankernel.gram.rows import PartialOrders, Rows, as_partial_orders
from rankernel.kernels.base import Kernel, check_max_items, distance_derivatives
from rankernel.rankings import Rankings

DRAWN_CELLS = 2**21  # items of draws that are made at once: about 0.05 s
MIN_SIDE, MAX_SIDE = 8, 96  # rows and columns of a block of the matrix
BLOCK_SECONDS = 0.05  # the time that a block should take, so that all threads are busy and interrupts are handled
QUICK_SECONDS = 0.2  # work that is short enough to run without checking for interrupts
BYTES_WHILE_DRAWING, BYTES_DRAWN = 8, 3  # for each item of a draw
BYTES_WHILE_DRAWING_ORDERS = 26  # for each item of a draw of a partial order
MAX_TABLE = 2**18  # values of a distance at which functions are tabulated


def tabulated_distance(kernel: Kernel, n_items: int) -> Distance | None:
    """Return the distance that a kernel is a function of, if that has integer values that can be tabulated."""
    facts = kernel.facts(n_items)
    distance = facts.distance if facts.function is not None else None
    can_tabulate = distance is not None and distance.integer and distance.maximum(n_items) < MAX_TABLE
    return distance if can_tabulate else None


def estimate_seconds(method: MonteCarlo, kernel: Kernel, n_items: int, n_rows: int, n_columns: int) -> float:
    """Return the approximate time of an estimate on one core, for a resolved method."""
    n_pairs, m = n_rows * n_columns, method.n_draws
    distance = tabulated_distance(kernel, n_items)
    if distance is None:
        step = seconds_of_kernel(kernel, n_items) + 4 * STEP["product"]
    elif distance.name == "kendall" and n_items <= MAX_ITEMS_BITS:
        n_words = -(-n_items * (n_items - 1) // 128)
        step = STEP["sum"] if n_words == 1 else STEP["lookup"] + STEP["bits"] * n_words
    else:
        step = STEP["lookup"] + n_items * (STEP["cycle"] if distance.cycle_weights is not None else STEP["product"])
    controls = ControlVariates.of(kernel, n_items, int(method.control_variates))
    n_features = sum(power.n_features(n_items) for power in controls.powers)
    known = (STEP["product"] * n_pairs + STEP["feature"] * (n_rows + n_columns)) * n_features
    drawn = STEP["draw"] * (n_rows + n_columns) * m * n_items
    return method.replicates * (drawn + n_pairs * (STEP["entry"] + m * m * step)) + known


class MonteCarloEvaluator(Evaluator):
    """The Monte Carlo estimator of two sets of rankings, for a resolved method."""

    def __init__(self, method: MonteCarlo, kernel: Kernel, X: Rows, Y: Rows) -> None:
        check_max_items(kernel, X.n_items)
        self.method, self.kernel = method, kernel
        self.n_items, self.shape = X.n_items, (len(X), len(Y))
        self.rankings, self.row_of, self.column_of, self.numbers = pooled(X, Y, method.distinct_rows)
        self.controls = ControlVariates.of(kernel, self.n_items, int(method.control_variates))
        distance = tabulated_distance(kernel, self.n_items)
        self.distance = distance if all(power.distance == distance for power in self.controls.powers) else None
        self.possible_distances = np.arange(int(self.distance.maximum(self.n_items)) + 1 if self.distance else 0)
        self.block_side = max(int(DRAW_PAIRS**0.5) // method.n_draws, 1)
        if self.distance:
            seconds = estimate_seconds(method, kernel, self.n_items, MAX_SIDE, MAX_SIDE) / MAX_SIDE**2
            self.block_side = min(max(int((BLOCK_SECONDS / seconds) ** 0.5), MIN_SIDE), MAX_SIDE)
        self._lock = RLock()
        self._sets: list[DrawSet] = []

    def of_side(self, side: int) -> MonteCarloEvaluator:
        """Return the evaluator of the rows (side 0) or the columns (side 1) with themselves, with the same draws."""
        other = copy(self)
        other.row_of = other.column_of = (self.row_of, self.column_of)[side]
        other.shape = len(other.row_of), len(other.row_of)
        return other

    @property
    def details(self) -> str:  # type: ignore[override]
        """The method in words."""
        return str(self.method)

    @cached_property
    def quick(self) -> bool:  # type: ignore[override]
        """Whether the whole matrix is short enough to run without checking for interrupts."""
        return self.seconds(*self.shape) < QUICK_SECONDS

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the approximate time to draw, to compare all draws, and for the means of the control variates."""
        return estimate_seconds(self.method, self.kernel, self.n_items, n_rows, n_columns)

    # ------------------------------------------------------------------ draws

    @property
    def sets(self) -> list[DrawSet]:
        """The draws of all rankings, one set for each replicate; they are made on first use."""
        with self._lock:
            if not self._sets:
                seed = cast(int, self.method.rng)
                seeds = [seed, *(int(stream_key(seed, f"replicate {r}")) for r in range(1, self.method.replicates))]
                self.check_memory()
                self._sets += [self.draw_set(number) for number in seeds]  # shared with the evaluators of each side
            return self._sets

    def check_memory(self) -> None:
        """Raise a MemoryError if the draws do not fit."""
        n_rankings, method = len(self.rankings), self.method
        drawing = BYTES_WHILE_DRAWING_ORDERS if isinstance(self.rankings, PartialOrders) else BYTES_WHILE_DRAWING
        needed = (drawing + BYTES_DRAWN * (method.replicates - 1)) * n_rankings * method.n_draws * self.n_items
        if needed > ALWAYS_FITS:
            what = f"{method.replicates * method.n_draws:,} draws for each of {n_rankings:,} rankings"
            check_bytes(needed, what, "use a smaller n_draws, or fewer rankings")

    def draw_set(self, seed: int) -> DrawSet:
        """Return draws of each ranking, which depend on the ranking and the seed only."""
        method, X = self.method, self.rankings
        rule = coupling_named(method.coupling, self.kernel)
        ranks = np.empty((len(X), method.n_draws, self.n_items), dtype=np.int16)
        weights: dict[int, FloatArray] = {}

        def draw(part: slice) -> None:
            numbers, some = None if self.numbers is None else self.numbers[part], X[part]
            if isinstance(some, PartialOrders):
                ranks[part], found = some.draw(method.n_draws, method.completions, seed, numbers)
            else:
                streams = row_streams(some.ranks, seed, PURPOSE, numbers)
                ranks[part], found = method.completions.draw(some.ranks, method.n_draws, streams, rule)
            if found is not None:
                weights[part.start] = found

        if self.quick or method.coupling == "herding":  # herding shares a design between rankings
            draw(slice(0, len(X)))
        else:
            run_in_threads(draw, slices(len(X), max(DRAWN_CELLS // (method.n_draws * self.n_items), 1)))
        weighted = np.ones(ranks.shape[:2]) if weights else None
        for start, found in weights.items():
            assert weighted is not None
            weighted[start : start + len(found)] = found
        draws = Draws(ranks, weighted, rule.block_size(self.n_items, method.n_draws))
        draws.warn_if_low()
        return DrawSet(draws, method.completions.self_normalized, self.controls, self.distance, self.possible_distances)

    @property
    def n_blocks(self) -> int:
        """Number of independent blocks of draws in each replicate."""
        rule = coupling_named(self.method.coupling, self.kernel)
        return len(block_bounds(self.method.n_draws, rule.block_size(self.n_items, self.method.n_draws))[0])

    # ------------------------------------------------------------------ values

    def values(self, kernels: Sequence[Kernel], block: Block) -> FloatArray:
        """Return the estimates of a block for each kernel."""
        return self.block_means(self.integrands(kernels), block)

    def gradients(self, kernel: Kernel, block: Block) -> dict[str, FloatArray]:
        """Return the derivatives of the estimates, from the same draws."""
        names = list(kernel.params)
        found = self.block_means(self.gradient_integrands(kernel), block) if names else ()
        return dict(zip(names, found, strict=True))

    def paired(self, kernel: Kernel, rows: Indices, columns: Indices, unbiased: bool = False) -> FloatArray:
        """Return the estimates of single entries."""
        integrand, left, right = self.integrands([kernel])[0], self.row_of[rows], self.column_of[columns]
        means = self.pair_means([integrand], left, right, unbiased)[0]
        return np.asarray(means + self.known_pairs(integrand, left, right))

    def paired_gradients(self, kernel: Kernel, rows: Indices, columns: Indices) -> dict[str, FloatArray]:
        """Return the derivatives of the estimates of single entries."""
        left, right, found = self.row_of[rows], self.column_of[columns], {}
        for name, each in zip(kernel.params, self.gradient_integrands(kernel), strict=True):
            found[name] = self.pair_means([each], left, right)[0] + self.known_pairs(each, left, right)
        return found

    def block_means(self, integrands: list[Integrand], block: Block) -> FloatArray:
        """Return the means of functions for a block; of a symmetric block one half is computed."""
        rows, columns, pairs = self.block_pairs(block)
        values = self.pair_means(integrands, rows[pairs[0]], columns[pairs[1]])
        out = np.empty((len(integrands), len(rows), len(columns)))
        out[:, pairs[0], pairs[1]] = values
        if len(values[0]) < out[0].size:
            out[:, pairs[1], pairs[0]] = values
        return out + self.known_block(integrands, (rows, columns)) if self.controls else out

    def pair_means(
        self, integrands: list[Integrand], left: Indices, right: Indices, unbiased: bool = False
    ) -> FloatArray:
        """Return the means of functions over the draws of pairs of rankings, less their control variates."""
        found = [one.means(integrands, left, right) for one in self.sets]
        means = found[0] if len(found) == 1 else np.mean(found, axis=0)
        if unbiased or self.method.diagonal == "unbiased":
            own = np.flatnonzero(left == right)
            if len(own):
                self.check_blocks("an unbiased diagonal")
            for k, integrand in enumerate(integrands):
                means[k, own] = self.squared_norms(integrand, left[own])[0].unbiased
        return np.asarray(means)

    # ------------------------------------------------------------------ standard errors

    def estimate_block(self, kernel: Kernel, block: Block, norms: tuple[Norms, Norms] | None = None) -> BlockEstimate:
        """Return the estimates of a block with jackknife standard errors."""
        return self.estimates(self.integrands([kernel])[0], block, norms)

    def gradient_estimates(self, kernel: Kernel, block: Block) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Return the derivatives of the estimates with their standard errors, from the same draws."""
        found = {}
        for name, integrand in zip(kernel.params, self.gradient_integrands(kernel), strict=True):
            estimate = self.estimates(integrand, block, None)
            found[name] = estimate.value, estimate.stderr
        return found

    def estimates(self, integrand: Integrand, block: Block, norms: tuple[Norms, Norms] | None) -> BlockEstimate:
        """Return the means of a function for a block with jackknife standard errors."""
        rows, columns, pairs = self.block_pairs(block)
        known = self.known_block([integrand], (rows, columns))[0] if self.controls else np.zeros((len(rows), 1))
        known = np.broadcast_to(known, (len(rows), len(columns)))
        value, stderr, few = np.empty((3, len(rows), len(columns)))
        per_pair = len(self.sets) * self.n_blocks
        for part in slices(len(pairs[0]), max(DRAW_PAIRS // per_pair, 1)):
            r, c = pairs[0][part], pairs[1][part]
            sides = None if norms is None else (norms[0][r], norms[1][c])
            found = self.pair_estimates(integrand, rows[r], columns[c], known[r, c], sides)
            for out, numbers in zip((value, stderr, few), found, strict=True):
                out[r, c] = numbers
                if len(pairs[0]) < out.size:
                    out[c, r] = numbers
        return BlockEstimate(value, stderr, few > 0)

    def pair_estimates(
        self,
        integrand: Integrand,
        left: Indices,
        right: Indices,
        known: FloatArray,
        norms: tuple[Norms, Norms] | None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return estimates for pairs of rankings, their standard errors, and 1 where they are unreliable, else 0."""
        rows, columns = stacked([one.margins(integrand, left, right) for one in self.sets])
        value = rows.corrected.sum(axis=2).mean(axis=1) + known
        without_left, without_right = (
            leave_one_out(parts.corrected, self.shares(side)) + known[:, None, None]
            for parts, side in ((rows, left), (columns, right))
        )
        few = np.minimum(effective_blocks(rows.plain), effective_blocks(columns.plain)) < FEW_BLOCKS
        if norms is not None:
            value, square = cosines(value, (without_left, without_right), norms)
            few |= norms[0].unreliable | norms[1].unreliable
        else:
            square = variance(without_left) + variance(without_right)
            own = np.flatnonzero(left == right)
            if len(own):
                found, few[own] = self.squared_norms(integrand, left[own])
                unbiased = self.method.diagonal == "unbiased"
                value[own] = (found.unbiased if unbiased else found.biased) + known[own]
                square[own] = found.mean_squared_error(unbiased)
        return value, np.sqrt(square) * student_factor(len(self.sets), self.n_blocks), few.astype(np.float64)

    def squared_norms(self, integrand: Integrand, rankings: Indices) -> tuple[SquaredNorms, Mask]:
        """Return the means of a function of rankings with themselves, and which of them rest on few draws."""
        parts, _ = stacked([one.margins(integrand, rankings, rankings) for one in self.sets])
        (within,) = stacked([(one.within_blocks(integrand, rankings),) for one in self.sets])
        found = SquaredNorms.from_sums(parts.corrected, within.corrected, self.shares(rankings))
        return found, effective_blocks(parts.plain - within.plain) < FEW_BLOCKS

    def norms(self, kernel: Kernel, rankings: Indices) -> Norms:
        """Return unbiased squared norms of the embeddings of rankings, with leave-one-out values.

        Where the unbiased estimate is not positive, the biased one is used, and marked as unreliable.
        """
        self.check_blocks("normalize=True")
        integrand = self.integrands([kernel])[0]
        found, few = self.squared_norms(integrand, rankings)
        found = found.plus(self.known_pairs(integrand, rankings, rankings))
        positive = found.unbiased > 0
        value = np.where(positive, found.unbiased, found.biased)
        left_out = np.where(positive[:, None, None], found.unbiased_left_out, found.biased_left_out)
        return Norms(value, left_out, few | ~positive)

    def shares(self, rankings: Indices) -> FloatArray:
        """Return the share of each block in the draws of rankings: shape (n_rankings, n_replicates, n_blocks)."""
        return np.stack([one.shares[rankings] for one in self.sets], axis=1)

    def check_blocks(self, what: str) -> None:
        """Raise a ValueError if the draws of a ranking form a single block: pairs of independent draws are needed."""
        if self.n_blocks < 2:
            size = coupling_named(self.method.coupling, self.kernel).block_size(self.n_items, self.method.n_draws)
            expected = (
                f"at least {8 * size} with {self.method.coupling} coupling, because {what} needs independent draws"
            )
            hint = () if size == 1 else ("or use ", Argument("coupling", "iid"))
            raise ArgumentValueError("n_draws", self.method.n_draws, expected, hint=hint)

    # ------------------------------------------------------------------ steps

    def integrands(self, kernels: Sequence[Kernel]) -> list[Integrand]:
        """Return kernels as functions to average."""
        return [Integrand(kernel.matrix, self.table(kernel), self.controls.coefficients(kernel)) for kernel in kernels]

    def table(self, kernel: Kernel) -> FloatArray | None:
        """Return the values of a kernel at all distances, if it is a function of the tabulated distance."""
        function = kernel.facts(self.n_items).function
        return None if self.distance is None or function is None else function.value(self.possible_distances)

    def gradient_integrands(self, kernel: Kernel) -> list[Integrand]:
        """Return the derivatives of a kernel as functions to average, in the order of its parameters."""
        tables = {} if self.distance is None else distance_derivatives(kernel, self.n_items, self.possible_distances)
        coefficients = self.controls.gradient_coefficients(kernel)

        def derivative(name: str) -> Callable[[Any, Any], FloatArray]:
            return lambda X, Y: kernel.gradient(X, Y)[name]

        return [Integrand(derivative(name), tables.get(name), coefficients[name]) for name in kernel.params]

    def block_pairs(self, block: Block) -> tuple[Indices, Indices, tuple[Indices, Indices]]:
        """Return the rankings of a block, and the indices of the pairs to compute: one half of a symmetric block."""
        rows, columns = self.row_of[block[0]], self.column_of[block[1]]
        if np.array_equal(rows, columns):
            return rows, columns, np.triu_indices(len(rows))
        r, c = np.indices((len(rows), len(columns))).reshape(2, -1)
        return rows, columns, (r, c)

    @cached_property
    def control_means(self) -> ControlMeans:
        """The exact means of the control variates."""
        return ControlMeans(self.controls, self.rankings)

    def known_block(self, integrands: list[Integrand], rankings: tuple[Indices, Indices]) -> FloatArray:
        """Return the exact means of the control variates of functions, for a block."""
        products = self.control_means.products(rankings)
        return np.stack([weighted_sum(each.coefficients, products) for each in integrands])

    def known_pairs(self, integrand: Integrand, left: Indices, right: Indices) -> FloatArray:
        """Return the exact means of the control variates of a function, for pairs of rankings."""
        if not self.controls:
            return np.zeros(len(left))
        pairs = ((left[k : k + 1], right[k : k + 1]) for k in range(len(left)))
        return np.array([self.known_block([integrand], pair).item() for pair in pairs])


def stacked(found: list[tuple[Parts, ...]]) -> list[Parts]:
    """Return parts of all replicates together: shape (n_pairs, n_replicates, n_blocks)."""
    return [
        Parts(np.stack([one.corrected for one in side], axis=1), np.stack([one.plain for one in side], axis=1))
        for side in zip(*found, strict=True)
    ]


def pooled(X: Rows, Y: Rows, distinct_rows: bool) -> tuple[Rows, Indices, Indices, IntArray | None]:
    """Return all rankings to draw from, the indices of rows and columns among them, and numbers for their streams.

    Equal rankings share their draws, in rows and columns alike, unless ``distinct_rows`` numbers them.
    """
    if isinstance(X, PartialOrders) or isinstance(Y, PartialOrders):
        X, Y = as_partial_orders(X), X if Y is X else as_partial_orders(Y)
    if Y is X:
        numbers = np.arange(len(X))
        return X, numbers, numbers, numbers if distinct_rows else None
    both: Rows
    if isinstance(X, PartialOrders):
        assert isinstance(Y, PartialOrders)
        both = X.joined(Y)
    else:
        assert isinstance(Y, Rankings)
        counts = np.concatenate([X.counts, Y.counts])
        both = Rankings._trusted(np.concatenate([X.ranks, Y.ranks]), X.items, counts)
    if distinct_rows:
        numbers = np.arange(len(both))
        return both, numbers[: len(X)], numbers[len(X) :], numbers
    first, inverse = both.unique_indices()
    return both[first], inverse[: len(X)], inverse[len(X) :], None

"""The Monte Carlo estimator of Gram matrices, for any kernel and any rankings.

Each ranking gets draws of its completions once, and all draws of one ranking are compared with all draws of the other:
the matrix of inner products of empirical mean embeddings.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from threading import Event, RLock
from typing import Any, Literal, cast

import numpy as np

from rankernel._utils import FloatArray, Indices
from rankernel._utils.checks import Seed, as_seed, check_choice, check_integer, stream_key
from rankernel._utils.resources import ALWAYS_FITS, check_bytes, run_in_threads
from rankernel.completions.draws import (
    COUPLINGS,
    CompletionModel,
    Draws,
    Uniform,
    coupling_named,
    row_streams,
    self_normalized_weights,
)
from rankernel.completions.linear_extensions import FEW_DOWN_SETS
from rankernel.distances import Distance
from rankernel.errors import Argument, ArgumentTypeError, ArgumentValueError
from rankernel.gram.evaluator import STEP, Block, BlockEstimate, Evaluator, seconds_of_kernel, slices
from rankernel.gram.jackknife import (
    FEW_BLOCKS,
    Norms,
    cosines,
    effective_blocks,
    leave_one_out,
    squared_norms,
    student_factor,
    variance,
)
from rankernel.gram.montecarlo.draw_sums import (
    DRAW_PAIRS,
    ControlVariates,
    DrawSet,
    Integrand,
    block_bounds,
    highest_degree,
    weighted_sum,
)
from rankernel.gram.rows import PartialOrders, Rows, concatenated
from rankernel.kernels.base import Kernel, check_max_items, distance_derivatives

DRAWN_CELLS = 2**21  # items of draws that are made at once: about 0.05 s
MIN_BLOCKS = 8  # independent blocks of draws for a standard error; set by benchmarks/coverage.py
MIN_SIDE, MAX_SIDE = 8, 96  # rows and columns of a block of the matrix
BLOCK_SECONDS = 0.05  # the time that a block should take, so that all threads are busy and interrupts are handled
QUICK_SECONDS = 0.2  # work that is short enough to run without checking for interrupts
BYTES_WHILE_DRAWING, BYTES_DRAWN = 8, 3  # for each item of a draw
BYTES_WHILE_DRAWING_ORDERS = 26  # for each item of a draw of a partial order
MAX_TABLE = 2**18  # values of a distance at which functions are tabulated
CACHED_ITEMS = 250  # beyond, draws are read from main memory (benchmarks/cost.py)


@dataclass(frozen=True, repr=False)
class MonteCarlo:
    """Monte Carlo estimation from draws of the completions of each ranking.

    The paper's two estimators are ``MonteCarlo(m, coupling="iid", control_variates=0)`` and
    ``MonteCarlo(m, coupling="antithetic", control_variates=0)``. Draws depend on the ranking and the seed only, so that
    equal rankings share them and the Gram matrix remains positive semi-definite. Entries between different rankings are
    unbiased. The entry of a ranking with itself, or with an equal one, is the squared norm of a sampled embedding; its
    bias is the variance of the embedding ((1 - K)/m for independent draws, appendix B of the paper).

    Parameters
    ----------
    n_draws : int
        Number of draws per ranking; an antithetic pair counts two. The cost grows with its square.
    coupling : str
        Joint distribution of the draws of one ranking; those of a partial order are independent. "auto" is the coupling
        with the smallest variance for the kernel if it gives at least 8 independent blocks of draws, else "iid".

        {couplings}
    control_variates : {"auto", 0, 1, 2}
        Degree up to which coordinates of the embedding are replaced by their exact values, where the kernel has such
        coordinates; "auto" is the highest affordable degree. It is at most 1 for partial orders.
    completions : CompletionModel
        The distribution p(.|R) of the completions of a ranking.
    rng : int, Generator or None
        Seed of the draws; a generator is drawn from once, None is random.
    diagonal : {"embedding", "unbiased"}
        The entry of a ranking with itself: the squared norm of the sampled embedding, which keeps the matrix positive
        semi-definite, or the mean over pairs of independent draws, which is unbiased.
    replicates : int
        Number of independent estimates that are averaged. The cost grows linearly.

    Examples
    --------
    The mean over two antithetic draws of two tied items is exact, because the draws are the two orders.

    >>> from rankernel import Mallows, MonteCarlo, Rankings
    >>> method = MonteCarlo(n_draws=2, coupling="antithetic", control_variates=0)
    >>> Mallows(nu=1.0).gram(Rankings([[0, 0], [0, 1]]), method=method).round(4)
    array([[0.6839, 0.6839],
           [0.6839, 1.    ]])
    """

    n_draws: int = 64
    coupling: str = "auto"
    control_variates: int | Literal["auto"] = "auto"
    completions: CompletionModel = field(default_factory=Uniform)
    rng: Seed = 0
    diagonal: Literal["embedding", "unbiased"] = "embedding"
    replicates: int = 1

    def __post_init__(self) -> None:
        check_integer("n_draws", self.n_draws)
        check_integer("replicates", self.replicates)
        check_choice("coupling", self.coupling, ("auto", *COUPLINGS))
        check_choice("diagonal", self.diagonal, ("embedding", "unbiased"))
        degree = self.control_variates
        if not isinstance(degree, int | str) or degree not in ("auto", 0, 1, 2) or isinstance(degree, bool):
            raise ArgumentValueError("control_variates", degree, "0, 1, 2 or 'auto'")
        if not isinstance(self.completions, CompletionModel):
            raise ArgumentTypeError("completions", self.completions, "a completion model such as Uniform()")
        if degree not in ("auto", 0) and not isinstance(self.completions, Uniform):
            raise ArgumentValueError("control_variates", degree, "0 or 'auto', unless completions are uniform")
        object.__setattr__(self, "rng", as_seed(self.rng))

    def __repr__(self) -> str:
        changed = {one.name: getattr(self, one.name) for one in fields(self)}
        changed = {name: value for name, value in changed.items() if value != getattr(DEFAULT, name, None)}
        return f"MonteCarlo({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def __str__(self) -> str:
        text = f"Monte Carlo, {self.n_draws} draw{'s' * (self.n_draws > 1)} per ranking"
        if self.replicates > 1:
            text += f" in each of {self.replicates} replicates"
        text += f", {self.coupling} coupling" if self.coupling != "iid" else ", independent draws"
        if self.control_variates:
            text += f", control variates of degree {self.control_variates}"
        if not isinstance(self.completions, Uniform):
            text += f", completions from {self.completions}"
        return f"{text}, seed {self.rng}"


if MonteCarlo.__doc__:  # absent with python -OO
    summaries = (f'- ``"{name}"``: {(kind.__doc__ or "").splitlines()[0]}' for name, kind in COUPLINGS.items())
    MonteCarlo.__doc__ = MonteCarlo.__doc__.replace("{couplings}", ("\n" + 8 * " ").join(summaries))


DEFAULT = MonteCarlo()


def unbiased_method(method: Any) -> Any:
    """Return a method whose estimates on the diagonal are unbiased."""
    return replace(method, diagonal="unbiased") if isinstance(method, MonteCarlo) else method


def tabulated_distance(kernel: Kernel, n_items: int) -> Distance | None:
    """Return the distance that a kernel is a function of, if that has integer values that can be tabulated."""
    facts = kernel.facts(n_items)
    distance = facts.distance if facts.function is not None else None
    can_tabulate = distance is not None and distance.integer and distance.maximum(n_items) < MAX_TABLE
    return distance if can_tabulate else None


def estimate_seconds(method: MonteCarlo, kernel: Kernel, n_items: int, n_rows: int, n_columns: int) -> float:
    """Return the approximate time of an estimate without control variates on one core, for a resolved method."""
    n_pairs, m = n_rows * n_columns, method.n_draws
    distance = tabulated_distance(kernel, n_items)
    if distance is None:
        step = seconds_of_kernel(kernel, n_items) + 4 * STEP["product"]
    elif distance.name == "kendall":
        n_words = -(-n_items * (n_items - 1) // 128)
        step = STEP["sum"] if n_words == 1 else STEP["lookup"] + STEP["bits"] * n_words
    else:
        item = STEP["cycle"] if distance.cycle_weights is not None else STEP["product"] * (1 + n_items / CACHED_ITEMS)
        step = STEP["lookup"] + n_items * item
    drawn = STEP["draw"] * (n_rows + n_columns) * m * n_items
    if distance is not None and distance.name == "kendall":
        drawn += STEP["packed"] * (n_rows + n_columns) * m * n_items * n_items / 2
    return method.replicates * (drawn + n_pairs * (STEP["entry"] + m * m * step))


def resolved(method: MonteCarlo, kernel: Kernel, n_items: int, orders: bool) -> MonteCarlo:
    """Return a method with every "auto" replaced; the choice depends on the kernel and the number of items only.

    Control variates of partial orders (``orders``) are of degree 1, if their means are affordable for all of them.
    """
    coupling, degree, uniform = method.coupling, method.control_variates, isinstance(method.completions, Uniform)
    if coupling == "auto":
        coupling = kernel.facts(n_items).coupling if uniform else "iid"
        if coupling_named(coupling, kernel).block_size(n_items, method.n_draws) * MIN_BLOCKS > method.n_draws:
            coupling = "iid"
    if degree == "auto":
        degree = highest_degree(kernel, n_items) if uniform else 0
    if orders:
        degree = min(int(degree), 1 if 2**n_items <= FEW_DOWN_SETS else 0)  # there are at most 2^n down-sets
    return replace(method, coupling=coupling, control_variates=degree)


class MonteCarloEvaluator(Evaluator):
    """The Monte Carlo estimator of two sets of rankings; its method has every "auto" replaced."""

    def __init__(self, method: MonteCarlo, kernel: Kernel, X: Rows, Y: Rows) -> None:
        check_max_items(kernel, X.n_items)
        self.n_items, self.shape = X.n_items, (len(X), len(Y))
        orders = isinstance(X, PartialOrders) or isinstance(Y, PartialOrders)
        self.kernel, self.method = kernel, resolved(method, kernel, self.n_items, orders)
        self.rankings, self.row_of, self.column_of = pooled(X, Y)
        self.controls = ControlVariates.of(kernel, self.n_items, int(self.method.control_variates))
        distance = tabulated_distance(kernel, self.n_items)
        self.distance = distance if all(power.distance == distance for power in self.controls.powers) else None
        self.possible_distances = np.arange(int(self.distance.maximum(self.n_items)) + 1 if self.distance else 0)
        self.block_side = max(int(DRAW_PAIRS**0.5) // method.n_draws, 1)
        if self.distance:
            seconds = estimate_seconds(self.method, kernel, self.n_items, MAX_SIDE, MAX_SIDE) / MAX_SIDE**2
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
        return self.preparation + self.seconds(*self.shape) < QUICK_SECONDS

    @cached_property
    def preparation(self) -> float:  # type: ignore[override]
        """Approximate seconds for the draws of partial orders."""
        if not isinstance(self.rankings, PartialOrders):
            return 0.0
        return self.method.replicates * len(self.rankings) * self.rankings.draw_seconds(self.method.n_draws)

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the approximate time to draw, to compare all draws, and for the means of the control variates."""
        drawn = estimate_seconds(self.method, self.kernel, self.n_items, n_rows, n_columns)
        return drawn + sum(means.seconds(n_rows, n_columns) for means in self.control_means)

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
        log_weights, weighted = np.zeros(ranks.shape[:2]), Event()

        def draw(part: slice) -> None:
            rows = X[part]
            if isinstance(rows, PartialOrders):
                ranks[part], logs = rows.draw(method.n_draws, method.completions, seed, rule)
            else:
                streams = row_streams(rows.ranks, seed)
                ranks[part], logs = method.completions.draw(rows.ranks, method.n_draws, streams, rule)
            if logs is not None:
                log_weights[part] = logs
                weighted.set()

        if self.quick or method.coupling == "herding":  # herding shares a design between rankings
            draw(slice(0, len(X)))
        else:
            at_once = 1 if isinstance(X, PartialOrders) else DRAWN_CELLS // (method.n_draws * self.n_items)
            run_in_threads(draw, slices(len(X), max(at_once, 1)))
        weights = self_normalized_weights(log_weights) if weighted.is_set() else None
        draws = Draws(ranks, weights, rule.block_size(self.n_items, method.n_draws))
        draws.warn_if_low()
        return DrawSet(draws, self.controls, self.distance, self.possible_distances)

    @property
    def n_blocks(self) -> int:  # type: ignore[override]
        """Number of independent blocks of draws in each replicate."""
        rule = coupling_named(self.method.coupling, self.kernel)
        return len(block_bounds(self.method.n_draws, rule.block_size(self.n_items, self.method.n_draws))[0])

    # ------------------------------------------------------------------ values

    def values(self, kernel: Kernel, block: Block) -> FloatArray:
        """Return the estimates of a block."""
        return self.block_means([self.integrand(kernel)], block)[0]

    def gradients(self, kernel: Kernel, block: Block) -> dict[str, FloatArray]:
        """Return the derivatives of the estimates, from the same draws."""
        names = list(kernel.params)
        found = self.block_means([self.integrand(kernel, name) for name in names], block) if names else ()
        return dict(zip(names, found, strict=True))

    def paired(
        self, kernel: Kernel, rows: Indices, columns: Indices, unbiased: bool = False, parameter: str = ""
    ) -> FloatArray:
        """Return the estimates of single entries, or of their derivatives."""
        integrand, left, right = self.integrand(kernel, parameter), self.row_of[rows], self.column_of[columns]
        means = self.pair_means([integrand], left, right, unbiased)[0]
        return np.asarray(means + self.known_pairs(integrand, left, right))

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
                means[k, own] = self.squared_norms(integrand, left[own])[1].value
        return np.asarray(means)

    # ------------------------------------------------------------------ standard errors

    def estimate_block(
        self, kernel: Kernel, block: Block, norms: tuple[Norms, Norms] | None = None, parameter: str = ""
    ) -> BlockEstimate:
        """Return the estimates of a block, or their derivatives from the same draws, with jackknife standard errors."""
        integrand = self.integrand(kernel, parameter)
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
        rows, columns = np.stack([one.margins(integrand, left, right) for one in self.sets], axis=-2)
        value = rows[0].sum(axis=2).mean(axis=1) + known
        without_left, without_right = (
            leave_one_out(parts[0], self.shares(side)) + known[:, None, None]
            for parts, side in ((rows, left), (columns, right))
        )
        few = np.minimum(effective_blocks(rows[1]), effective_blocks(columns[1])) < FEW_BLOCKS
        if norms is not None:
            value, square = cosines(value, (without_left, without_right), norms)
            few |= norms[0].unreliable | norms[1].unreliable
        else:
            square = variance(without_left) + variance(without_right)
            own = np.flatnonzero(left == right)
            if len(own):
                biased, unbiased = self.squared_norms(integrand, left[own])
                few[own] = biased.unreliable
                if self.method.diagonal == "unbiased":
                    value[own], square[own] = unbiased.value + known[own], variance(unbiased.left_out)
                else:  # the mean squared error
                    value[own] = biased.value + known[own]
                    square[own] = variance(biased.left_out) + (biased.value - unbiased.value) ** 2
        return value, np.sqrt(square) * student_factor(len(self.sets), self.n_blocks), few.astype(np.float64)

    def squared_norms(self, integrand: Integrand, rankings: Indices) -> tuple[Norms, Norms]:
        """Return the biased and the unbiased means of a function of rankings with themselves."""
        parts = np.stack([one.margins(integrand, rankings, rankings)[0] for one in self.sets], axis=-2)
        within = np.stack([one.within_blocks(integrand, rankings) for one in self.sets], axis=-2)
        few = effective_blocks(parts[1] - within[1]) < FEW_BLOCKS
        return squared_norms(parts[0], within[0], self.shares(rankings), few)

    def norms(self, kernel: Kernel, rankings: Indices) -> Norms:
        """Return unbiased squared norms of the embeddings of rankings, with leave-one-out values.

        Where the unbiased estimate is not positive, the biased one is used, and marked as unreliable.
        """
        self.check_blocks("normalize=True")
        integrand = self.integrand(kernel)
        known = self.known_pairs(integrand, rankings, rankings)
        biased, unbiased = (
            Norms(found.value + known, found.left_out + known[:, None, None], found.unreliable)
            for found in self.squared_norms(integrand, rankings)
        )
        positive = unbiased.value > 0
        value = np.where(positive, unbiased.value, biased.value)
        left_out = np.where(positive[:, None, None], unbiased.left_out, biased.left_out)
        return Norms(value, left_out, biased.unreliable | ~positive)

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

    def integrand(self, kernel: Kernel, parameter: str = "") -> Integrand:
        """Return a kernel, or its derivative in a parameter, as a function to average."""
        if parameter:
            d = self.possible_distances
            table = None if self.distance is None else distance_derivatives(kernel, self.n_items, d)[parameter]
            coefficients = self.controls.gradient_coefficients(kernel)[parameter]
            return Integrand(lambda X, Y: kernel.gradient(X, Y)[parameter], table, coefficients)
        function = kernel.facts(self.n_items).function
        table = None if self.distance is None or function is None else function.value(self.possible_distances)
        return Integrand(kernel.matrix, table, self.controls.coefficients(kernel))

    def block_pairs(self, block: Block) -> tuple[Indices, Indices, tuple[Indices, Indices]]:
        """Return the rankings of a block, and the indices of the pairs to compute: one half of a symmetric block."""
        rows, columns = self.row_of[block[0]], self.column_of[block[1]]
        if np.array_equal(rows, columns):
            return rows, columns, np.triu_indices(len(rows))
        r, c = np.indices((len(rows), len(columns))).reshape(2, -1)
        return rows, columns, (r, c)

    @cached_property
    def control_means(self) -> list[Evaluator]:
        """The exact mean of each control variate over the completions."""
        found = [power.means(self.rankings) for power in self.controls.powers]
        for means in found:
            means.block_side = min(means.block_side, self.block_side)
        return found

    def known_block(self, integrands: list[Integrand], rankings: tuple[Indices, Indices]) -> FloatArray:
        """Return the exact means of the control variates of functions, for a block."""
        return self.known(integrands, lambda means, kernel: means.values(kernel, rankings))

    def known_pairs(self, integrand: Integrand, left: Indices, right: Indices) -> FloatArray:
        """Return the exact means of the control variates of a function, for pairs of rankings."""
        if not self.controls:
            return np.zeros(len(left))
        return self.known([integrand], lambda means, kernel: means.paired(kernel, left, right))[0]

    def known(self, integrands: list[Integrand], compute: Callable[[Evaluator, Kernel], FloatArray]) -> FloatArray:
        """Return the exact means of the control variates of functions."""
        powers = zip(self.controls.powers, self.control_means, strict=True)
        products = [compute(means, power) - power.constant(self.n_items) for power, means in powers]
        return np.stack([weighted_sum(each.coefficients, products) for each in integrands])


def pooled(X: Rows, Y: Rows) -> tuple[Rows, Indices, Indices]:
    """Return all distinct rankings to draw from, and the indices of the rows and of the columns among them."""
    if Y is X:
        return X, np.arange(len(X)), np.arange(len(X))
    both = concatenated(X, Y)
    first, inverse = both.unique_indices()
    return both[first], inverse[: len(X)], inverse[len(X) :]

"""The Monte Carlo estimator of Gram matrices, for any kernel and any rankings.

Each ranking gets draws of its completions once, and all draws of one ranking are compared with all draws of the other:
the matrix of inner products of empirical mean embeddings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import comb
from threading import Event, RLock
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel._utils import FloatArray, Indices, IntArray, RankArray
from rankernel._utils.checks import Seed, as_seed, check_choice, check_integer, stream_key
from rankernel._utils.resources import ALWAYS_FITS, check_bytes, run_in_threads, slices
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
from rankernel.gram.evaluator import (
    BLOCK_NUMBERS,
    STEP,
    Block,
    ConstantEvaluator,
    Evaluator,
    Names,
    seconds_of_kernel,
    terms,
)
from rankernel.gram.exact.features import MAX_DEGREE, LinearEvaluator, centred_products, linear_evaluator
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
from rankernel.gram.rows import PartialOrders, Rows, concatenated
from rankernel.kernels.base import Facts, Kernel, check_max_items, distance_derivatives

DRAW_PAIRS = 2**18  # pairs of draws compared at once, and values of a distance at which functions are tabulated
MAX_BLOCKS = 64  # blocks of draws in the jackknife; more coupled sets are grouped
DRAWS_BYTES = 2**28  # draws that are packed at once for all blocks, or made at once for single entries
MAX_ITEMS_SQUARED = 24  # beyond, the products of all pairs of items cost far more than the draws (benchmarks/cost.py)
MIN_BLOCKS = 8  # independent blocks of draws for a standard error; set by benchmarks/coverage.py
MAX_SIDE = 96  # rows and columns of a block of the matrix
BLOCK_SECONDS = 0.05  # the time that a block should take, so that all threads are busy and interrupts are handled
QUICK_SECONDS = 0.2  # work that is short enough to run without checking for interrupts
BYTES_WHILE_DRAWING, BYTES_DRAWN = 8, 3  # for each item of a draw
BYTES_WHILE_DRAWING_ORDERS = 26  # for each item of a draw of a partial order


# ---------------------------------------------------------------------- method


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


# ---------------------------------------------------------------------- estimator


def tabulated_distance(kernel: Kernel, n_items: int) -> Distance | None:
    """Return the distance that a kernel is a function of, if that has integer values that can be tabulated."""
    facts = kernel.facts(n_items)
    distance = facts.distance if facts.function is not None else None
    can_tabulate = distance is not None and distance.integer and distance.maximum(n_items) < DRAW_PAIRS
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
        step = STEP["lookup"] + n_items * STEP["difference" if distance.cycle_weights is None else "cycle"]
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
        most = (2 if n_items <= MAX_ITEMS_SQUARED else 1) if uniform else 0
        degree = max((power.degree for _, power in ControlVariates.of(kernel, n_items, most).powers), default=0)
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
        self.distance = distance if all(power.distance == distance for _, power in self.controls.powers) else None
        self.possible_distances = np.arange(int(self.distance.maximum(self.n_items)) + 1 if self.distance else 0)
        self.block_side = max(int(DRAW_PAIRS**0.5) // method.n_draws, 1)
        if self.distance:
            seconds = estimate_seconds(self.method, kernel, self.n_items, MAX_SIDE, MAX_SIDE) / MAX_SIDE**2
            self.block_side = min(max(int((BLOCK_SECONDS / seconds) ** 0.5), 1), MAX_SIDE)
        self.details = str(self.method)
        self.block_size = coupling_named(self.method.coupling, kernel).block_size(self.n_items, method.n_draws)
        self.n_blocks = len(block_bounds(method.n_draws, self.block_size)[0])
        of_item = BYTES_WHILE_DRAWING_ORDERS if isinstance(self.rankings, PartialOrders) else BYTES_WHILE_DRAWING
        of_item += BYTES_DRAWN * (method.replicates - 1)
        self.held_bytes = of_item * len(self.rankings) * method.n_draws * self.n_items  # while draws are made
        self._lock = RLock()
        self._sets: list[DrawSet] = []

    def of_side(self, side: int) -> MonteCarloEvaluator:
        """Return the evaluator of the rows (side 0) or the columns (side 1) with themselves, with the same draws."""
        other = copy(self)
        other.row_of = other.column_of = (self.row_of, self.column_of)[side]
        other.shape = len(other.row_of), len(other.row_of)
        return other

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
                if self.held_bytes > ALWAYS_FITS:
                    what = f"{len(seeds) * self.method.n_draws:,} draws for each of {len(self.rankings):,} rankings"
                    check_bytes(self.held_bytes, what, "use a smaller n_draws, or fewer rankings")
                self._sets += [self.draw_set(number) for number in seeds]  # shared with the evaluators of each side
            return self._sets

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
            at_once = 1 if isinstance(X, PartialOrders) else BLOCK_NUMBERS // (method.n_draws * self.n_items)
            run_in_threads(draw, slices(len(X), max(at_once, 1)))
        weights = self_normalized_weights(log_weights) if weighted.is_set() else None
        draws = Draws(ranks, weights, self.block_size)
        draws.warn_if_low()
        return DrawSet(draws, self.distance)

    # ------------------------------------------------------------------ values

    def matrices(self, kernel: Kernel, block: Block, names: Names) -> Sequence[FloatArray]:
        """Return the estimates of a block, or their derivatives from the same draws; of a symmetric block one half."""
        integrands = [self.integrand(kernel, name) for name in names]
        rows, columns, pairs = self.block_pairs(block)
        values = self.pair_means(integrands, rows[pairs[0]], columns[pairs[1]])
        out = np.empty((len(integrands), len(rows), len(columns)))
        out[:, pairs[0], pairs[1]] = values
        if len(values[0]) < out[0].size:
            out[:, pairs[1], pairs[0]] = values
        return list(out + self.known_block(integrands, (rows, columns)) if self.controls else out)

    def paired(
        self, kernel: Kernel, rows: Indices, columns: Indices, unbiased: bool = False, parameter: str = ""
    ) -> FloatArray:
        """Return the estimates of single entries, or of their derivatives."""
        integrand, left, right = self.integrand(kernel, parameter), self.row_of[rows], self.column_of[columns]
        means = self.pair_means([integrand], left, right, unbiased)[0]
        return np.asarray(means + self.known_pairs(integrand, left, right))

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
    ) -> FloatArray:
        """Return the estimates of a block, or their derivatives from the same draws, with jackknife standard errors."""
        integrand = self.integrand(kernel, parameter)
        rows, columns, pairs = self.block_pairs(block)
        known = self.known_block([integrand], (rows, columns))[0] if self.controls else np.zeros((len(rows), 1))
        known = np.broadcast_to(known, (len(rows), len(columns)))
        out = np.empty((3, len(rows), len(columns)))
        per_pair = len(self.sets) * self.n_blocks
        for part in slices(len(pairs[0]), max(DRAW_PAIRS // per_pair, 1)):
            r, c = pairs[0][part], pairs[1][part]
            sides = None if norms is None else (norms[0][r], norms[1][c])
            out[:, r, c] = self.pair_estimates(integrand, rows[r], columns[c], known[r, c], sides)
            if len(pairs[0]) < out[0].size:
                out[:, c, r] = out[:, r, c]
        return out

    def pair_estimates(
        self, integrand: Integrand, left: Indices, right: Indices, known: FloatArray, norms: tuple[Norms, Norms] | None
    ) -> FloatArray:
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
        return np.stack([value, np.sqrt(square) * student_factor(len(self.sets), self.n_blocks), few])

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
            least = f"at least {8 * self.block_size} with {self.method.coupling} coupling"
            expected = f"{least}, because {what} needs independent draws"
            hint = () if self.block_size == 1 else ("or use ", Argument("coupling", "iid"))
            raise ArgumentValueError("n_draws", self.method.n_draws, expected, hint=hint)

    # ------------------------------------------------------------------ steps

    def integrand(self, kernel: Kernel, parameter: str = "") -> Integrand:
        """Return a kernel, or its derivative in a parameter, as a function to average."""
        coefficients, d = self.controls.coefficients(kernel, parameter), self.possible_distances

        def values(X: RankArray, Y: RankArray) -> list[FloatArray]:
            plain = kernel.gradient(X, Y)[parameter] if parameter else kernel.matrix(X, Y)
            distances = {power.distance: power.distance.between(X, Y) for _, power in self.controls.powers}
            return [plain - self.controls.sums(coefficients, distances), plain] if self.controls else [plain]

        if self.distance is None:
            return Integrand(values, [], coefficients)
        function = kernel.facts(self.n_items).function
        assert function is not None
        plain = distance_derivatives(kernel, self.n_items, d)[parameter] if parameter else function.value(d)
        tables = [plain - self.controls.sums(coefficients, {self.distance: d}), plain] if self.controls else [plain]
        return Integrand(values, tables, coefficients)

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
        found = [power.means(self.rankings) for _, power in self.controls.powers]
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
        products = [compute(means, power) - power.constant(self.n_items) for (_, power), means in powers]
        return np.stack([weighted_sum(each.coefficients, products) for each in integrands])


def pooled(X: Rows, Y: Rows) -> tuple[Rows, Indices, Indices]:
    """Return all distinct rankings to draw from, and the indices of the rows and of the columns among them."""
    if Y is X:
        return X, np.arange(len(X)), np.arange(len(X))
    both = concatenated(X, Y)
    first, inverse = both.unique_indices()
    return both[first], inverse[: len(X)], inverse[len(X) :]


# ---------------------------------------------------------------------- control variates


@dataclass(frozen=True)
class Power(Kernel):
    """One control variate: a power of z, where the distance is ``d = 2 (L - z)``, plus a constant if the degree is 1.

    With the constant it is the form of the distance, whose mean over completions takes the time of the listed items.
    """

    distance: Distance
    degree: int
    half_range: float  # L

    def at_distance(self, d: NDArray[np.generic]) -> FloatArray:
        """Return ``z^degree`` at given distances."""
        return np.asarray((self.half_range - np.asarray(d, dtype=np.float64) / 2) ** self.degree)

    def constant(self, n_items: int) -> float:
        """Return the form of two rankings without any information, in which z is 0."""
        form = self.distance.form
        assert form is not None
        is_zero = self.degree > 1 or form.statistic != "positions"
        return 0.0 if is_zero else float(form.multiply(np.ones((1, n_items))).sum()) / n_items

    def matrix(self, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the control variate, with the constant, between full rankings."""
        return self.at_distance(self.distance.between(X, Y)) + self.constant(X.shape[1])

    def facts(self, n_items: int) -> Facts:
        """Return the form, if the degree is 1."""
        return Facts(form=self.distance.form if self.degree == 1 else None)

    def means(self, X: Rows) -> Evaluator:
        """Return the evaluator of the mean over the completions of both rankings, with the constant."""
        if not len(X):
            return ConstantEvaluator((0, 0))
        found = linear_evaluator(self, X, X) if self.degree == 1 else None
        return found or LinearEvaluator(X, X, lambda rows: centred_products(self.distance, rows, self.degree))


@dataclass(frozen=True)
class ControlVariates:
    """The control variates of a kernel: powers of a distance, each with the index of a term of its sum."""

    n_items: int
    powers: tuple[tuple[int, Power], ...]

    @classmethod
    def of(cls, kernel: Kernel, n_items: int, degree: int) -> ControlVariates:
        """Return the control variates of a kernel up to a degree."""
        found: list[tuple[int, Power]] = []
        for i, term in enumerate(terms(kernel)):
            facts = term.kernel.facts(n_items)
            series, distance = facts.series(n_items), facts.distance
            if series is None or distance is None or distance.form is None or distance.mean is None:
                continue
            highest, half_range = min(degree, len(series.coefficients)), distance.mean(n_items) / 2
            powers = range(1, min(highest, MAX_DEGREE[distance.form.statistic]) + 1)
            found += [(i, Power(distance, power, half_range)) for power in powers]
        return cls(n_items, tuple(found))

    def __len__(self) -> int:
        return len(self.powers)

    def coefficients(self, kernel: Kernel, parameter: str = "") -> FloatArray:
        """Return the coefficient of each control variate in a kernel, or its derivative in a parameter."""
        out, all_terms = np.zeros(len(self)), terms(kernel) if self.powers else []
        for k, (i, power) in enumerate(self.powers):
            term, scales = all_terms[i], dict(all_terms[i].scales)
            series = term.kernel.facts(self.n_items).series(self.n_items)
            assert series is not None
            derivatives = {term.prefix + name: values for name, values in series.derivatives.items()}
            if parameter in derivatives:
                out[k] = term.weight * derivatives[parameter][power.degree - 1]
            elif not parameter or parameter in scales:
                out[k] = term.weight / scales.get(parameter, 1.0) * series.coefficients[power.degree - 1]
        return out

    def sums(self, coefficients: FloatArray, distances: Mapping[Distance, NDArray[np.generic]]) -> FloatArray:
        """Return the weighted sum of the control variates at given values of their distances."""
        return weighted_sum(coefficients, [power.at_distance(distances[power.distance]) for _, power in self.powers])


def weighted_sum(coefficients: FloatArray, parts: list[FloatArray]) -> FloatArray:
    """Return the sum of arrays times their coefficients, added in a fixed order so that blocks have equal bits."""
    total = coefficients[0] * parts[0]
    for coefficient, part in zip(coefficients[1:], parts[1:], strict=True):
        total = total + coefficient * part
    return np.asarray(total)


# ---------------------------------------------------------------------- draws


@dataclass(frozen=True)
class Integrand:
    """A function of two full rankings that is averaged over pairs of draws.

    Its values, less its control variates and, if there are any, plain, come from ``tables`` at all distances if it is a
    function of a distance with few values, else from ``values`` between full rankings. ``coefficients`` are those of
    the control variates.
    """

    values: Callable[[RankArray, RankArray], list[FloatArray]]
    tables: list[FloatArray]
    coefficients: FloatArray

    @property
    def has_controls(self) -> bool:
        """Whether there are control variates."""
        return len(self.coefficients) > 0


def block_bounds(n_draws: int, size: int) -> tuple[IntArray, IntArray]:
    """Return where the independent blocks of draws start and end, given the size of a coupled set."""
    size = min(size, n_draws)
    starts = np.arange(0, n_draws, size * -(-n_draws // (size * MAX_BLOCKS)))
    return starts, np.append(starts[1:], n_draws)


class DrawSet:
    """Draws of all rankings.

    Sums over pairs of draws are taken in an order that depends on the two rankings only.
    """

    def __init__(self, draws: Draws, distance: Distance | None) -> None:
        self.distance = distance
        self.ranks, self.n_draws = draws.ranks, draws.n_draws
        self.weights = np.empty((len(draws.ranks), 0)) if draws.weights is None else draws.weights
        self.starts, self.ends = block_bounds(draws.n_draws, draws.block)
        self.pairs_at_once = max(DRAW_PAIRS // draws.n_draws**2, 1)

    @property
    def as_bits(self) -> bool:
        """Whether draws are compared as bits of pairs of items."""
        return self.distance is not None and self.distance.name == "kendall"

    def pack(self, rankings: Any) -> NDArray[Any]:
        """Return draws as the compiled loops take them: bits of pairs of items, or positions."""
        ranks = self.ranks[rankings]
        n_rankings, n_draws, n_items = ranks.shape
        if self.as_bits:
            words = _loops.pairs.pairs_in_order(ranks.reshape(-1, n_items)).reshape(n_rankings, n_draws, -1)
            return np.ascontiguousarray(words.transpose(0, 2, 1))
        kind = np.uint8 if n_items - 1 <= np.iinfo(np.uint8).max else np.int16
        return np.ascontiguousarray(ranks.transpose(0, 2, 1), dtype=kind)

    @cached_property
    def all_packed(self) -> NDArray[Any] | None:
        """The packed draws of all rankings, if they take little memory."""
        n_items = self.ranks.shape[2]
        n_bytes = n_items * n_items // 16 if self.as_bits else 2 * n_items
        return self.pack(slice(None)) if n_bytes * self.ranks[:, :, 0].size <= DRAWS_BYTES else None

    def packed(self, left: Indices, right: Indices) -> tuple[NDArray[Any], Indices, Indices]:
        """Return the packed draws of pairs of rankings, and the indices of the pairs in them."""
        if self.all_packed is not None:
            return self.all_packed, left, right
        some, index = np.unique(np.concatenate([left, right]), return_inverse=True)
        return self.pack(some), index[: len(left)], index[len(left) :]

    @property
    def is_weighted(self) -> bool:
        """Whether draws have importance weights."""
        return bool(self.weights.shape[1])

    @cached_property
    def order(self) -> Indices:
        """An order of the rankings by their draws; the first of two is on the left in every mean."""
        rows = np.ascontiguousarray(self.ranks).reshape(len(self.ranks), -1)
        as_bytes = rows.view(np.dtype((np.void, max(rows.dtype.itemsize * rows.shape[1], 1))))
        return np.unique(as_bytes, return_inverse=True)[1].ravel()

    @cached_property
    def shares(self) -> FloatArray:
        """The share of each block in the draws of each ranking, by weight."""
        if not self.is_weighted:
            return np.repeat((self.ends - self.starts)[None] / self.n_draws, len(self.ranks), axis=0)
        return np.asarray(np.add.reduceat(self.weights, self.starts, axis=1) / self.n_draws)

    # ------------------------------------------------------------------ sums over pairs of draws

    def means(self, integrands: Sequence[Integrand], one: Indices, other: Indices) -> FloatArray:
        """Return the means over all pairs of draws, for pairs of rankings: shape (n_integrands, n_pairs)."""
        swapped = self.order[one] > self.order[other]
        left, right = np.where(swapped, other, one), np.where(swapped, one, other)
        if self.distance is None or self.is_weighted:
            return np.array([self.margins(each, left, right)[0, 0].sum(axis=1) for each in integrands])
        tables, out = np.stack([each.tables[0] for each in integrands]), np.zeros((len(integrands), len(left)))
        if self.as_bits and comb(self.ranks.shape[2], 2) <= _loops.pairs.WORD:
            _loops.pairs.word_means(*self.packed(left, right), tables, out)
            return out
        for pairs, _, d in self.distances(left, right):
            _loops.pairs.add_sums(d, tables, out[:, pairs])
        return out / self.n_draws**2

    def margins(self, integrand: Integrand, left: Indices, right: Indices) -> FloatArray:
        """Return the terms that blocks of draws add to the means of pairs: shape (2, 2, n_pairs, n_blocks).

        The first index is the side, left or right; the second 0 for the function less its control variates, 1 for the
        function itself.
        """
        rows, columns = np.zeros((2, 2, len(left), self.n_draws))
        if self.distance is not None:
            for part, draws, d in self.distances(left, right):
                for k, table in enumerate(integrand.tables):
                    given = d, draws.start, table, self.weights, left[part], right[part]
                    _loops.pairs.add_margins(*given, rows[k, part], columns[k, part])
        else:
            for pairs, draws, values in self.kernel_values(integrand, left, right):
                for k, each in enumerate(values):
                    by_right = each * self.weights[right[pairs]] if self.is_weighted else each
                    rows[k, pairs, draws] = by_right.sum(axis=2).T
                    by_left = each * self.weights[left[pairs[0]], draws, None, None] if self.is_weighted else each
                    columns[k, pairs] += by_left.sum(axis=0)
        if self.is_weighted:
            rows, columns = rows * self.weights[left], columns * self.weights[right]
        sums = np.add.reduceat(np.stack([rows, columns]), self.starts, axis=3) / self.n_draws**2
        return sums if integrand.has_controls else sums[:, [0, 0]]

    def within_blocks(self, integrand: Integrand, rankings: Indices) -> FloatArray:
        """Return the terms of pairs of draws in one block in the means of rankings with themselves: see `margins`."""
        out = np.zeros((2, len(rankings), len(self.ends)))
        block = np.searchsorted(self.ends, np.arange(self.n_draws), side="right")
        for pairs, draws, values in self.kernel_values(integrand, rankings, rankings):
            weights = (block[draws, None] == block)[:, None, :].astype(np.float64)
            if self.is_weighted:
                own = self.weights[rankings[pairs]]
                weights = weights * own * own[:, draws].T[:, :, None]
            for k, each in enumerate(values):
                np.add.at(out[k], (pairs, block[draws, None]), (weights * each).sum(axis=2))
        return (out if integrand.has_controls else out[[0, 0]]) / self.n_draws**2

    # ------------------------------------------------------------------ steps

    def draw_slices(self) -> Iterator[slice]:
        """Return slices of the draws of a left ranking, each compared with all draws of the right one at once."""
        return slices(self.n_draws, 4 * max(DRAW_PAIRS // self.n_draws // 4, 1))

    def distances(self, left: Indices, right: Indices) -> Iterator[tuple[slice, slice, NDArray[np.int32]]]:
        """Yield some pairs of rankings, some draws of the left ones, and their distances to all draws on the right.

        Distances have the shape (n_pairs, n_left_draws, n_right_draws).
        """
        distance = self.distance
        assert distance is not None
        packed, left, right = self.packed(left, right)
        for pairs in slices(len(left), self.pairs_at_once):
            for draws in self.draw_slices():
                d = np.empty((pairs.stop - pairs.start, draws.stop - draws.start, self.n_draws), dtype=np.int32)
                given = packed, left[pairs], right[pairs], draws.start, d
                if self.as_bits:
                    _loops.pairs.draw_bits(*given)
                elif distance.cycle_weights is not None:
                    _loops.pairs.draw_cycles(*given, distance.cycle_weights(self.ranks.shape[2]))
                else:
                    _loops.pairs.draw_positions(*given, getattr(_loops.pairs, distance.name.upper()))
                yield pairs, draws, d

    def kernel_values(
        self, integrand: Integrand, left: Indices, right: Indices
    ) -> Iterator[tuple[Indices, slice, list[FloatArray]]]:
        """Yield some pairs of rankings, some draws of the left ones, and values of the function between draws.

        Values have the shape (n_left_draws, n_pairs, n_right_draws): less the control variates, and, if there are any,
        the plain ones.
        """
        if self.distance is not None:
            for part, draws, d in self.distances(left, right):
                values = [table[d].transpose(1, 0, 2) for table in integrand.tables]
                yield np.arange(part.start, part.stop), draws, values
            return
        order = np.argsort(left, kind="stable")  # a kernel is evaluated for pairs with the same left ranking at once
        for same_left in np.split(order, np.flatnonzero(np.diff(left[order])) + 1) if len(left) else ():
            for part in slices(len(same_left), self.pairs_at_once):
                pairs = same_left[part]
                Y = self.full_ranks(right[pairs]).reshape(-1, self.ranks.shape[2])
                for draws in self.draw_slices():
                    X = self.full_ranks(left[pairs[0]])[draws]
                    shape = len(X), len(pairs), self.n_draws
                    yield pairs, draws, [np.ascontiguousarray(each).reshape(shape) for each in integrand.values(X, Y)]

    def full_ranks(self, rankings: Any) -> RankArray:
        """Return the draws of rankings as kernels take them."""
        return np.asarray(self.ranks[rankings], dtype=np.int32)

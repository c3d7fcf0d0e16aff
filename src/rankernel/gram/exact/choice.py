"""The choice of the exact method for a kernel and two sets of rankings, and evaluation on full rankings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel import distances
from rankernel._utils import FloatArray, IntArray, RankArray
from rankernel.completions.linear_extensions import FEW_DOWN_SETS, enumerate_completions
from rankernel.distances import Distance
from rankernel.errors import ExactnessError
from rankernel.gram.evaluator import STEP, Block, ConstantEvaluator, Evaluator, Part, SumEvaluator
from rankernel.gram.exact.features import (
    FeatureEvaluator,
    FormEvaluator,
    WeightedKendallEvaluator,
    mean_features,
    positional_evaluator,
)
from rankernel.gram.exact.formulas import Formula, FormulaEvaluator, Shape, shape_pairs
from rankernel.gram.exact.kendall import kendall_evaluator
from rankernel.gram.rows import PartialOrders, Rows, as_partial_orders
from rankernel.kernels.algebra import Constant, Scaled, Sum, Tree, terms
from rankernel.kernels.base import Facts, Kernel, check_max_items
from rankernel.kernels.diffusion import Diffusion
from rankernel.kernels.kendall import WeightedKendall
from rankernel.rankings import Rankings

# The module with the formulas for functions of each distance, imported when needed: loading its loops takes time.
FORMULAS = {
    "kendall": "mallows_free",
    "hamming": "hamming",
    "cayley": "cayley",
    "footrule": "footrule",
    "spearman": "spearman",
}
EVALUATIONS_AT_ONCE = 2**22  # kernel values in memory
CACHED_WORDS = 4000  # of bits of a ranking; beyond, these are read from main memory (benchmarks/cost.py)
MAX_TABLE = 2**20  # values of a distance that are looked up rather than computed
PYTHON_CALL = 1e-5  # seconds for one call of a function that a user gave


@dataclass(frozen=True)
class NoExactValue:
    """The reason for a missing exact value: the kernel, and the rankings for which it has no formula."""

    kernel: Kernel
    what: str

    def __str__(self) -> str:
        return f"there is no closed form of {self.kernel} for {self.what}"


def exact_evaluator(kernel: Kernel, X: Rows, Y: Rows, limit: int, certain: bool = False) -> Evaluator | NoExactValue:
    """Return the evaluator of the closed form, or of an enumeration with at most ``limit`` evaluations of the kernel.

    With ``certain`` a formula whose accuracy is known only after its evaluation does not count.
    """
    closed = closed_form(kernel, X, Y, certain)
    if isinstance(closed, Evaluator):
        return closed
    listed = enumerated(kernel, X, Y, limit, FEW_DOWN_SETS if certain else None)
    return listed if isinstance(listed, Evaluator) else NoExactValue(kernel, f"{closed.what}, and {listed.what}")


# ---------------------------------------------------------------------- closed forms


def closed_form(kernel: Kernel, X: Rows, Y: Rows, certain: bool = False) -> Evaluator | NoExactValue:
    """Return the evaluator of the closed form of every pair, or the reason for its absence."""
    if not len(X) or not len(Y):
        return ConstantEvaluator((len(X), len(Y)))
    if not isinstance(kernel, Sum | Scaled):
        return term_evaluator(kernel, X, Y, certain)
    joint = None
    if not (isinstance(X, PartialOrders) or isinstance(Y, PartialOrders)) and is_kendall(kernel, X, Y):
        joint = kendall_evaluator(kernel, X, Y)
    if joint is not None and joint.direct:
        return joint
    parts: list[Evaluator] = []
    for term in terms(kernel):
        result = term_evaluator(term.kernel, X, Y, certain)
        if isinstance(result, NoExactValue):
            return joint or result
        parts.append(result)
    return SumEvaluator(parts)


def term_evaluator(kernel: Kernel, X: Rows, Y: Rows, certain: bool) -> Evaluator | NoExactValue:
    """Return the evaluator of a kernel that is neither a sum nor a multiple."""
    if isinstance(kernel, Constant):
        return ConstantEvaluator((len(X), len(Y)))
    if isinstance(X, PartialOrders) or isinstance(Y, PartialOrders):
        return order_evaluator(kernel, as_partial_orders(X), as_partial_orders(Y), certain)
    if kernel.facts(X.n_items).form is not None:
        return FormEvaluator(X, Y, kernel)
    kendall = kendall_evaluator(kernel, X, Y) if is_kendall(kernel, X, Y) else None
    if kendall is not None:
        return kendall
    if X.is_full() and Y.is_full():
        check_max_items(kernel, X.n_items)
        return FullEvaluator(kernel, X.ranks, Y.ranks)
    facts = kernel.facts(X.n_items)
    if facts.positions is not None:
        return positional_evaluator(X, Y)
    if isinstance(kernel, WeightedKendall) and X.is_exhaustive() and Y.is_exhaustive():
        return WeightedKendallEvaluator(kernel, X, Y)
    is_linear = facts.features is not None or (facts.series is not None and facts.series.constant is not None)
    features = mean_features(kernel, X.n_items, True) if is_linear else None
    return formula_evaluator(kernel, X, Y, certain) if features is None else FeatureEvaluator(X, Y, *features)


def is_kendall(kernel: Kernel, X: Rankings, Y: Rankings) -> bool:
    """Whether a kernel is a function of the Kendall distance, and no item is free."""
    facts = kernel.facts(X.n_items)
    known = facts.distance == distances.kendall and facts.function is not None
    return known and X.is_exhaustive() and Y.is_exhaustive()


def formula_evaluator(kernel: Kernel, X: Rankings, Y: Rankings, certain: bool) -> Evaluator | NoExactValue:
    """Return the evaluator of the first formula that covers each pair of shapes, or of profiles of shapes."""
    facts = kernel.facts(X.n_items)
    known: tuple[Formula, ...] = ()
    name = facts.distance.name if facts.distance is not None and facts.function is not None else ""
    module = "diffusion" if isinstance(kernel, Diffusion) else FORMULAS.get(name)
    if module is not None:
        known = import_module(f"rankernel.gram.exact.{module}").FORMULAS
    chosen: dict[tuple[Shape, Shape], Formula] = {}
    for left, right in shape_pairs(X, Y, by_profile=any(each.by_profile for each in known)):
        formula = next((each for each in known if each.covers(kernel, left, right)), None)
        if formula is None or (certain and not formula.is_accurate(kernel, left, right)):
            kinds = " and a ".join(dict.fromkeys((left.kind, right.kind)))
            return NoExactValue(kernel, f"a {kinds} of {left.n_items} items")
        chosen[left, right] = formula
    return FormulaEvaluator(kernel, X, Y, chosen)


def order_evaluator(kernel: Kernel, X: PartialOrders, Y: PartialOrders, certain: bool) -> Evaluator | NoExactValue:
    """Return the evaluator of a linear kernel of partial orders; the lattices of down-sets are limited in size."""
    is_positional = kernel.facts(X.n_items).positions is not None
    features = None if is_positional else mean_features(kernel, X.n_items, False)
    where = f"a partial order of {X.n_items} items"
    if features is None and not is_positional:
        return NoExactValue(kernel, where)
    try:
        for side in (X, Y):
            side.prepare(FEW_DOWN_SETS if certain else None)
    except ExactnessError as error:
        return NoExactValue(kernel, f"{where}, which is too large: {error}")
    if kernel.facts(X.n_items).form is not None:
        return FormEvaluator(X, Y, kernel)
    return positional_evaluator(X, Y) if features is None else FeatureEvaluator(X, Y, *features)


# ---------------------------------------------------------------------- enumeration


def enumerated(
    kernel: Kernel, X: Rows, Y: Rows, limit: int, max_down_sets: int | None = None
) -> EnumerationEvaluator | NoExactValue:
    """Return the evaluator of the mean over all completions, or a reason if these are too many."""
    check_max_items(kernel, X.n_items)
    sides: tuple[Rows, ...] = (X,) if Y is X else (X, Y)
    counts = [completion_count(side, limit, max_down_sets) for side in sides]
    n_evaluations = None if counts[0] is None or counts[-1] is None else counts[0] * counts[-1]
    if n_evaluations is None or n_evaluations > limit:
        number = "too many" if n_evaluations is None else about(n_evaluations)
        return NoExactValue(
            kernel, f"enumeration would take {number} evaluations of the kernel (the limit is {limit:,})"
        )
    sets = [
        Completions.of_sets(
            side.all_completions(limit)
            if isinstance(side, PartialOrders)
            else [enumerate_completions(row, limit) for row in side.ranks],
            X.n_items,
        )
        for side in sides
    ]
    what = "linear extensions" if isinstance(X, PartialOrders) or isinstance(Y, PartialOrders) else "completions"
    return EnumerationEvaluator(kernel, sets[0], sets[-1], f"enumeration of all {what}")


def completion_count(X: Rows, limit: int, max_down_sets: int | None) -> int | None:
    """Return the sum over rows of the number of completions; None if it is unknown."""
    if isinstance(X, Rankings):
        return sum(X.n_completions())
    try:
        return X.n_completions(limit, max_down_sets)
    except ExactnessError:
        return None


def about(number: int) -> str:
    """Return an integer of any size in few characters."""
    return f"{number:,}" if number < 10**9 else f"about 10^{math.floor(math.log10(number))}"


# ---------------------------------------------------------------------- evaluation on full rankings


def kernel_matrices(kernels: Sequence[Kernel], X: RankArray, Y: RankArray) -> list[FloatArray]:
    """Return the matrices of kernels that differ in their parameters only; their distances are computed once."""
    facts = [kernel.facts(X.shape[1]) for kernel in kernels]
    distance = facts[0].distance
    if distance is None or facts[0].function is None:
        return [kernel.matrix(X, Y) for kernel in kernels]
    d = distance.between(X, Y)
    return [at_distances(each.function.value, distance, d, X.shape[1]) for each in facts if each.function is not None]


def at_distances(
    function: Callable[[NDArray[Any]], FloatArray], distance: Distance, d: NDArray[Any], n_items: int
) -> FloatArray:
    """Return a function of distances, by a table if they have few values."""
    if distance.integer and distance.maximum(n_items) < min(MAX_TABLE, d.size):
        return np.asarray(function(np.arange(int(distance.maximum(n_items)) + 1))[d])
    return np.asarray(function(d))


def log_matrix(kernel: Kernel, facts: Facts, X: RankArray, Y: RankArray) -> FloatArray:
    """Return the logarithm of a function of a distance between full rankings."""
    if facts.distance is None or facts.function is None:
        raise ExactnessError(f"the logarithm of {kernel} is not known: it is not a function of one distance; use gram")
    return facts.function.log_value(facts.distance.between(X, Y))


def seconds_of_kernel(kernel: Kernel, n_items: int) -> float:
    """Return the approximate time of a kernel value between two full rankings."""
    distance = kernel.facts(n_items).distance
    if distance is None and isinstance(kernel, Tree):
        return sum(seconds_of_kernel(part, n_items) for part in kernel.parts.values())
    if distance is not None and distance.name == "kendall":
        n_words = -(-math.comb(n_items, 2) // 64)
        return STEP["differing"] * n_words * (1 + n_words / CACHED_WORDS) + STEP["kernel"]
    if distance is not None and distance.function is not None:
        return PYTHON_CALL
    if kernel.facts(n_items).form is not None:
        return STEP["product"] * n_items**2 / 2
    if isinstance(kernel, WeightedKendall):
        return STEP["concordance"] * n_items**2 / 2
    step = STEP["cycle"] if distance is None or distance.cycle_weights is not None else STEP["distance"]
    return step * n_items + STEP["kernel"]


class FullEvaluator(Evaluator):
    """The kernel between full rankings."""

    details = "full rankings"

    def __init__(self, kernel: Kernel, X: RankArray, Y: RankArray) -> None:
        self.kernel, self.X, self.Y = kernel, X, Y

    def values(self, kernels: Sequence[Kernel], block: Block) -> FloatArray:
        """Return the kernel."""
        return np.stack(kernel_matrices(kernels, self.X[block[0]], self.Y[block[1]]))

    def gradients(self, kernel: Kernel, block: Block) -> dict[str, FloatArray]:
        """Return the derivatives of the kernel."""
        return kernel.gradient(self.X[block[0]], self.Y[block[1]])

    def log_values(self, kernel: Kernel, block: Block) -> FloatArray:
        """Return the logarithm of a function of a distance."""
        return log_matrix(kernel, kernel.facts(self.X.shape[1]), self.X[block[0]], self.Y[block[1]])

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time of all kernel values."""
        return n_rows * n_columns * seconds_of_kernel(self.kernel, self.X.shape[1])


@dataclass(frozen=True)
class Completions:
    """Sets of full rankings: set i is ``ranks[offsets[i]:offsets[i + 1]]``."""

    ranks: RankArray
    offsets: IntArray

    @classmethod
    def of_sets(cls, sets: Sequence[NDArray[Any]], n_items: int) -> Completions:
        """Return several sets in one array."""
        ranks = np.concatenate([*sets, np.empty((0, n_items), dtype=np.int16)], dtype=np.int32)
        return cls(ranks, np.cumsum([0, *map(len, sets)], dtype=np.int64))

    def part(self, rows: Part) -> Completions:
        """Return some of the sets; consecutive ones are not copied."""
        if isinstance(rows, slice) and rows.step in (None, 1):
            start, stop, _ = rows.indices(len(self.offsets) - 1)
            offsets = self.offsets[start : max(start, stop) + 1]
            return Completions(self.ranks[offsets[0] : offsets[-1]], offsets - offsets[0])
        chosen = np.arange(len(self.offsets) - 1)[rows]
        sizes = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        entries = np.repeat(self.offsets[chosen] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return Completions(self.ranks[entries], offsets)


class EnumerationEvaluator(Evaluator):
    """The mean of the kernel over all completions of both rankings."""

    def __init__(self, kernel: Kernel, left: Completions, right: Completions, details: str) -> None:
        self.kernel, self.left, self.right, self.details = kernel, left, right, details
        largest = max(int(np.diff(side.offsets).max(initial=1)) for side in (left, right))
        self.block_side = max(int(EVALUATIONS_AT_ONCE**0.5) // largest, 1)

    def sides(self, block: Block) -> tuple[Completions, Completions]:
        """Return the completions of the rows and of the columns of a block."""
        return self.left.part(block[0]), self.right.part(block[1])

    def values(self, kernels: Sequence[Kernel], block: Block) -> FloatArray:
        """Return the means over both sets."""
        left, right = self.sides(block)
        return np.stack([set_means(m, left, right) for m in kernel_matrices(kernels, left.ranks, right.ranks)])

    def gradients(self, kernel: Kernel, block: Block) -> dict[str, FloatArray]:
        """Return the means of the derivatives."""
        left, right = self.sides(block)
        gradient = kernel.gradient(left.ranks, right.ranks)
        return {name: set_means(matrix, left, right) for name, matrix in gradient.items()}

    def log_values(self, kernel: Kernel, block: Block) -> FloatArray:
        """Return the logarithm of the means of a function of a distance."""
        left, right = self.sides(block)
        exponents = log_matrix(kernel, kernel.facts(left.ranks.shape[1]), left.ranks, right.ranks)
        largest = np.maximum.reduceat(np.maximum.reduceat(exponents, left.offsets[:-1], 0), right.offsets[:-1], 1)
        if not np.isfinite(largest).all():
            raise ExactnessError(f"{kernel} is 0 for all completions of some pair; use gram")
        by_entry = np.repeat(np.repeat(largest, np.diff(left.offsets), 0), np.diff(right.offsets), 1)
        return np.asarray(largest + np.log(set_means(np.exp(exponents - by_entry), left, right)))

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time of all kernel values between completions."""
        n_pairs = float(len(self.left.ranks)) * len(self.right.ranks)
        return n_pairs * seconds_of_kernel(self.kernel, self.left.ranks.shape[1])


def set_means(matrix: FloatArray, left: Completions, right: Completions) -> FloatArray:
    """Return the mean over each pair of sets of a matrix between all full rankings of both."""
    sizes, other_sizes = np.diff(left.offsets), np.diff(right.offsets)
    if not matrix.size:
        return np.zeros((len(sizes), len(other_sizes)))
    by_row = np.add.reduceat(matrix, left.offsets[:-1], axis=0) / sizes[:, None]
    return np.asarray(np.add.reduceat(by_row, right.offsets[:-1], axis=1) / other_sizes)

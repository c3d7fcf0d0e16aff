"""The choice of the exact method for a kernel and two sets of rankings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from rankernel import distances
from rankernel._utils import FullRanks
from rankernel.completions.linear_extensions import FEW_DOWN_SETS, enumerate_completions
from rankernel.errors import ExactnessError
from rankernel.gram.evaluator import ConstantEvaluator, Evaluator, SumEvaluator
from rankernel.gram.rows import PartialOrders, Rows, as_partial_orders
from rankernel.kernels.algebra import Constant, Scaled, Sum, terms
from rankernel.kernels.base import Kernel, check_max_items
from rankernel.kernels.diffusion import Diffusion
from rankernel.rankings import Rankings

if TYPE_CHECKING:
    from rankernel.gram.exact.enumeration import EnumerationEvaluator
    from rankernel.gram.exact.formulas import Formula, Shape

#: The module with the formulas for functions of each distance; imported when needed, because it has compiled loops.
FORMULAS = {
    "kendall": "mallows_free",
    "hamming": "hamming",
    "cayley": "cayley",
    "footrule": "footrule",
    "spearman": "spearman",
}


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


def kendall_evaluator(kernel: Kernel, X: Rows, Y: Rows) -> Evaluator | None:
    """Return the evaluator of a function of the Kendall distance between rankings without free items."""
    if isinstance(X, PartialOrders) or isinstance(Y, PartialOrders):
        return None
    facts = kernel.facts(X.n_items)
    if facts.distance != distances.kendall or facts.function is None or not (X.is_exhaustive() and Y.is_exhaustive()):
        return None
    from rankernel.gram.exact import kendall

    return kendall.kendall_evaluator(kernel, X, Y)


def term_evaluator(kernel: Kernel, X: Rows, Y: Rows, certain: bool) -> Evaluator | NoExactValue:
    """Return the evaluator of a kernel that is neither a sum nor a multiple."""
    if isinstance(kernel, Constant):
        return ConstantEvaluator((len(X), len(Y)))
    if isinstance(X, PartialOrders) or isinstance(Y, PartialOrders):
        return order_evaluator(kernel, as_partial_orders(X), as_partial_orders(Y), certain)
    kendall = kendall_evaluator(kernel, X, Y)
    if kendall is not None:
        return kendall
    if X.is_full() and Y.is_full():
        from rankernel.gram.exact.enumeration import FullEvaluator

        check_max_items(kernel, X.n_items)
        return FullEvaluator(kernel, X.ranks, Y.ranks)
    from rankernel.gram.exact.features import FeatureEvaluator, mean_features, positional_evaluator

    if kernel.facts(X.n_items).positions is not None:
        return positional_evaluator(X, Y)
    features = mean_features(kernel, X.n_items, True)
    return formula_evaluator(kernel, X, Y, certain) if features is None else FeatureEvaluator(X, Y, *features)


def formula_evaluator(kernel: Kernel, X: Rankings, Y: Rankings, certain: bool) -> Evaluator | NoExactValue:
    """Return the evaluator of the first formula that covers each pair of shapes."""
    from rankernel.gram.exact.formulas import FormulaEvaluator, shape_pairs

    chosen: dict[tuple[Shape, Shape], Formula] = {}
    known = formulas_of(kernel, X.n_items)
    for left, right in shape_pairs(X, Y):
        formula = next((each for each in known if each.covers(kernel, left, right)), None)
        if formula is None or (certain and not formula.is_accurate(kernel, left, right)):
            kinds = " and a ".join(dict.fromkeys((left.kind, right.kind)))
            return NoExactValue(kernel, f"a {kinds} of {left.n_items} items")
        chosen[left, right] = formula
    return FormulaEvaluator(kernel, X, Y, chosen)


def formulas_of(kernel: Kernel, n_items: int) -> tuple[Formula, ...]:
    """Return the formulas for diffusion kernels, or for functions of the distance of a kernel."""
    facts = kernel.facts(n_items)
    module = "diffusion" if isinstance(kernel, Diffusion) else None
    if module is None and facts.distance is not None and facts.function is not None:
        module = FORMULAS.get(facts.distance.name)
    if module is None:
        return ()
    result: tuple[Formula, ...] = import_module(f"rankernel.gram.exact.{module}").FORMULAS
    return result


def order_evaluator(kernel: Kernel, X: PartialOrders, Y: PartialOrders, certain: bool) -> Evaluator | NoExactValue:
    """Return the evaluator of a linear kernel of partial orders; the lattices of down-sets are limited in size."""
    from rankernel.gram.exact.features import FeatureEvaluator, mean_features, positional_evaluator

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
    return positional_evaluator(X, Y) if features is None else FeatureEvaluator(X, Y, *features)


# ---------------------------------------------------------------------- enumeration


def enumerated(
    kernel: Kernel, X: Rows, Y: Rows, limit: int, max_down_sets: int | None = None
) -> EnumerationEvaluator | NoExactValue:
    """Return the evaluator of the mean over all completions, or a reason if these are too many."""
    from rankernel.gram.exact.enumeration import Completions, EnumerationEvaluator

    check_max_items(kernel, X.n_items)
    left = n_completions(X, limit, max_down_sets)
    right = left if Y is X else n_completions(Y, limit, max_down_sets)
    if left is None or right is None or left * right > limit:
        number = "too many" if left is None or right is None else about(left * right)
        return NoExactValue(
            kernel, f"enumeration would take {number} evaluations of the kernel (the limit is {limit:,})"
        )
    sets = [Completions.of_sets(all_completions(side, limit), X.n_items) for side in ((X,) if Y is X else (X, Y))]
    what = "linear extensions" if isinstance(X, PartialOrders) or isinstance(Y, PartialOrders) else "completions"
    return EnumerationEvaluator(kernel, sets[0], sets[-1], f"enumeration of all {what}")


def n_completions(X: Rows, limit: int, max_down_sets: int | None) -> int | None:
    """Return the sum over rows of the number of completions; None if it is unknown."""
    if isinstance(X, Rankings):
        return sum(X.n_completions())
    try:
        return X.n_completions(limit, max_down_sets)
    except ExactnessError:
        return None


def all_completions(X: Rows, limit: int) -> list[FullRanks]:
    """Return all completions of each row."""
    if isinstance(X, PartialOrders):
        return list(X.all_completions(limit))
    return [enumerate_completions(row, limit) for row in X.ranks]


def about(number: int) -> str:
    """Return an integer of any size in few characters."""
    return f"{number:,}" if number < 10**9 else f"about 10^{math.floor(math.log10(number))}"

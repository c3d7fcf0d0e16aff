"""Which kernels have an exact value for which rankings: one pure function that says how, or what is in the way."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from rankernel import distances
from rankernel.completions.enumerate import enumerate_completions
from rankernel.completions.partial_orders import FEW_DOWN_SETS
from rankernel.errors import ExactnessError
from rankernel.gram.evaluator import ConstantEvaluator, Evaluator, SumEvaluator
from rankernel.gram.exact.cayley import EXP_CAYLEY, CayleyLaw
from rankernel.gram.exact.coded import (
    Coding,
    FootruleCoding,
    FormulaEvaluator,
    LawEvaluator,
    OneTieCoding,
    OverlapCoding,
    PathCoding,
    TopKCoding,
)
from rankernel.gram.exact.exp_footrule import ExponentialFootrule
from rankernel.gram.exact.exp_hamming import EXP_HAMMING
from rankernel.gram.exact.exp_spearman import ExponentialSpearman
from rankernel.gram.exact.features import FeatureEvaluator, mean_features
from rankernel.gram.exact.full import Embeddings, EnumerationEvaluator, FullEvaluator
from rankernel.gram.exact.hamming_law import HammingLaw
from rankernel.gram.exact.heat_means import CycleTypeDiffusion, EqualCompletions, WordDiffusion
from rankernel.gram.exact.kendall_means import KendallEvaluator, is_covered
from rankernel.gram.exact.mallows import EXP_KENDALL
from rankernel.gram.exact.overlap import DistanceLaw, Formula, Shape, shape_pairs
from rankernel.gram.exact.place_tables import place_evaluator
from rankernel.gram.rows import PartialOrders, Rows, as_partial_orders
from rankernel.kernels.algebra import Constant, Scaled, Sum, terms
from rankernel.kernels.base import Kernel, check_max_items
from rankernel.kernels.diffusion import Diffusion
from rankernel.rankings import Rankings

Pairs = list[tuple[Shape, Shape]]
CodingOf = Callable[[Rankings, Rankings], Coding]


@dataclass(frozen=True)
class Family:
    """Formulas for one family of kernels, and a code that sees less than the whole overlap where shapes allow it."""

    formulas: tuple[Formula, ...]
    coding: CodingOf = OverlapCoding
    coded: Callable[[Shape, Shape], bool] = lambda *_: False


def are_top_k(left: Shape, right: Shape) -> bool:
    """Say whether both are top-k lists."""
    return left.is_top_k and right.is_top_k


def have_one_tie(left: Shape, right: Shape) -> bool:
    """Say whether no item is free and at most one bucket of each has several items."""
    return left.is_exhaustive and right.is_exhaustive and max(left.n_ties, right.n_ties) <= 1


AGREEMENTS: CodingOf = lambda X, Y: TopKCoding(X, Y, "agreements")  # noqa: E731
CYCLES: CodingOf = lambda X, Y: TopKCoding(X, Y, "closed_cycles")  # noqa: E731
PATHS = CycleTypeDiffusion()
FAMILIES: dict[str, Family] = {
    "exp-kendall": Family(EXP_KENDALL),
    "exp-hamming": Family(EXP_HAMMING, AGREEMENTS, are_top_k),
    "exp-cayley": Family(EXP_CAYLEY, CYCLES, are_top_k),
    "exp-footrule": Family((ExponentialFootrule(),), FootruleCoding, have_one_tie),
    "exp-spearman": Family((ExponentialSpearman(),), lambda X, Y: OneTieCoding(X, Y, 2), have_one_tie),
    "diffusion-transpositions": Family(
        (PATHS, WordDiffusion("transpositions"), EqualCompletions("transpositions")), PathCoding, PATHS.covers
    ),
    "diffusion-adjacent": Family((WordDiffusion("adjacent"), EqualCompletions("adjacent"))),
}
LAWS: dict[str, tuple[DistanceLaw, CodingOf]] = {
    "hamming": (HammingLaw(), AGREEMENTS),
    "cayley": (CayleyLaw(), CYCLES),
}


@dataclass(frozen=True)
class NoExactValue:
    """Why there is no exact value: a kernel, and what it has none for."""

    kernel: Kernel
    what: str

    def __str__(self) -> str:
        return f"there is no closed form of {self.kernel} for {self.what}"


def kinds_text(left: Shape, right: Shape) -> str:
    """Return what two rankings are, in words."""
    kinds = " and a ".join(dict.fromkeys((left.kind, right.kind)))
    return f"a {kinds} of {left.n_items} items"


# ---------------------------------------------------------------------- what computes it


def exact_evaluator(kernel: Kernel, X: Rows, Y: Rows, limit: int, certain: bool = False) -> Evaluator | NoExactValue:
    """Return what computes exact values of every pair: in closed form, or by at most so many evaluations of the kernel.

    With ``certain``, a formula that may find out only midway that it is not accurate is an obstacle, too.
    """
    found = closed_form(kernel, X, Y, certain)
    if isinstance(found, Evaluator):
        return found
    listed = enumerated(kernel, X, Y, limit, FEW_DOWN_SETS if certain else None)
    return listed if isinstance(listed, Evaluator) else NoExactValue(kernel, f"{found.what}, and {listed.what}")


def closed_form(kernel: Kernel, X: Rows, Y: Rows, certain: bool = False) -> Evaluator | NoExactValue:
    """Return what computes the closed form of every pair, or what is in the way."""
    if not len(X) or not len(Y):
        return ConstantEvaluator((len(X), len(Y)))
    if not isinstance(kernel, Sum | Scaled):
        return leaf_evaluator(kernel, X, Y, certain)
    whole = kendall_evaluator(kernel, X, Y)
    if whole is not None and whole.direct:
        return whole
    parts: list[Evaluator] = []
    for term in terms(kernel):
        found = leaf_evaluator(term.kernel, X, Y, certain)
        if isinstance(found, NoExactValue):
            return whole or found
        parts.append(found)
    return SumEvaluator(parts)


def kendall_evaluator(kernel: Kernel, X: Rows, Y: Rows) -> KendallEvaluator | None:
    """Return what computes functions of the Kendall distance, between rankings without free items."""
    if isinstance(X, PartialOrders) or isinstance(Y, PartialOrders):
        return None
    facts = kernel.facts(X.n_items)
    if facts.distance != distances.kendall or facts.function is None:
        return None
    if not (X.is_exhaustive() and Y.is_exhaustive() and is_covered(kernel, X, Y)):
        return None
    return KendallEvaluator(kernel, X, Y)


def leaf_evaluator(kernel: Kernel, X: Rows, Y: Rows, certain: bool) -> Evaluator | NoExactValue:
    """Return what computes a kernel that is no sum or multiple of others."""
    if isinstance(kernel, Constant):
        return ConstantEvaluator((len(X), len(Y)))
    if isinstance(X, PartialOrders) or isinstance(Y, PartialOrders):
        return of_orders(kernel, as_partial_orders(X), as_partial_orders(Y), certain)
    whole = kendall_evaluator(kernel, X, Y)
    if whole is not None:
        return whole
    if X.is_full() and Y.is_full():
        check_max_items(kernel, X.n_items)
        return FullEvaluator(kernel, X.ranks, Y.ranks)
    if kernel.facts(X.n_items).positions is not None:
        return place_evaluator(X, Y)
    features = mean_features(kernel, X.n_items, True)
    return formula_evaluator(kernel, X, Y, certain) if features is None else FeatureEvaluator(X, Y, *features)


def formula_evaluator(kernel: Kernel, X: Rankings, Y: Rankings, certain: bool) -> Evaluator | NoExactValue:
    """Return what evaluates the formulas of a kernel's family, or averages it over the law of its distance."""
    family, pairs = FAMILIES.get(family_name(kernel, X.n_items)), shape_pairs(X, Y)
    if family is None:
        return law_evaluator(kernel, X, Y, pairs)
    chosen: dict[tuple[Shape, Shape], Formula] = {}
    width = width_of(kernel)
    for pair in pairs:
        fitting = (formula for formula in family.formulas if formula.is_for(width) and formula.covers(*pair))
        formula = next(fitting, None)
        if formula is None or (certain and not formula.is_accurate(*pair, width)):
            return NoExactValue(kernel, kinds_text(*pair))
        chosen[pair] = formula
    coding = family.coding if all(family.coded(*pair) for pair in pairs) else OverlapCoding
    return FormulaEvaluator(X, Y, coding(X, Y), chosen, width, slope_of, width_of)


def family_name(kernel: Kernel, n_items: int) -> str:
    """Return the name of the family of formulas of a kernel."""
    if isinstance(kernel, Diffusion):
        return f"diffusion-{kernel.graph}"
    facts = kernel.facts(n_items)
    return f"exp-{facts.distance.name}" if facts.decay and facts.distance else ""


def distance_name(kernel: Kernel, n_items: int) -> str:
    """Return the name of the distance that a kernel is a function of."""
    facts = kernel.facts(n_items)
    return facts.distance.name if facts.distance is not None and facts.function is not None else ""


def width_of(kernel: Kernel) -> float:
    """Return the parameter of a formula: the rate of an exponential, or the time of a diffusion."""
    if isinstance(kernel, Diffusion):
        return float(kernel.beta)
    decay = kernel.facts(2).decay
    assert decay is not None
    return decay.rate


def slope_of(kernel: Kernel) -> dict[str, float]:
    """Return the derivative of that parameter in each parameter of the kernel."""
    decay = kernel.facts(2).decay
    return dict(decay.derivatives) if decay else {"beta": 1.0}


def law_evaluator(kernel: Kernel, X: Rankings, Y: Rankings, pairs: Pairs) -> Evaluator | NoExactValue:
    """Return what averages any function of a distance over the law of the distance."""
    law, coding = LAWS.get(distance_name(kernel, X.n_items), (None, OverlapCoding))
    for pair in pairs:
        if law is None or not law.covers(*pair):
            return NoExactValue(kernel, kinds_text(*pair))
    assert law is not None
    short = all(are_top_k(*pair) for pair in pairs)
    return LawEvaluator(X, Y, (coding if short else OverlapCoding)(X, Y), law, pairs)


def of_orders(kernel: Kernel, X: PartialOrders, Y: PartialOrders, certain: bool) -> Evaluator | NoExactValue:
    """Return what computes a linear kernel of partial orders, whose lattices are walked only up to some size."""
    by_place = kernel.facts(X.n_items).positions is not None
    features = None if by_place else mean_features(kernel, X.n_items, False)
    where = f"a partial order of {X.n_items} items"
    if features is None and not by_place:
        return NoExactValue(kernel, where)
    try:
        for side in (X, Y):
            side.prepare(FEW_DOWN_SETS if certain else None)
    except ExactnessError as error:
        return NoExactValue(kernel, f"{where}, which is out of reach: {error}")
    return place_evaluator(X, Y) if features is None else FeatureEvaluator(X, Y, *features)


# ---------------------------------------------------------------------- enumeration


def enumerated(
    kernel: Kernel, X: Rows, Y: Rows, limit: int, max_down_sets: int | None = None
) -> EnumerationEvaluator | NoExactValue:
    """Return what averages over all completions, each ranking's made once, or how many there are if too many."""
    check_max_items(kernel, X.n_items)
    left = n_completions(X, limit, max_down_sets)
    right = left if Y is X else n_completions(Y, limit, max_down_sets)
    if left is None or right is None or left * right > limit:
        number = "more than can be counted" if left is None or right is None else about(left * right)
        return NoExactValue(
            kernel, f"enumeration would take {number} evaluations of the kernel (the limit is {limit:,})"
        )
    sets = [all_completions(X, limit)]
    sets.append(sets[0] if Y is X else all_completions(Y, limit))
    what = "linear extensions" if isinstance(X, PartialOrders) or isinstance(Y, PartialOrders) else "completions"
    return EnumerationEvaluator(kernel, sets[0], sets[1], f"enumeration of all {what}")


def n_completions(X: Rows, limit: int, max_down_sets: int | None) -> int | None:
    """Return how many full rankings agree with any row, each row counted apart; None if that is not known."""
    if isinstance(X, Rankings):
        return sum(X.n_completions())
    try:
        return X.n_completions(limit, max_down_sets)
    except ExactnessError:
        return None


def all_completions(X: Rows, limit: int) -> Embeddings:
    """Return all completions of each row, equally weighted."""
    if isinstance(X, PartialOrders):
        return Embeddings.of_sets(X.all_completions(limit), X.n_items)
    return Embeddings.of_sets([enumerate_completions(row, limit) for row in X.ranks], X.n_items)


def about(number: int) -> str:
    """Return a whole number of any size in few characters."""
    return f"{number:,}" if number < 10**9 else f"about 10^{math.floor(math.log10(number))}"

"""Which kernels have an exact value for which rankings: one pure function that says how, or what is in the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import comb
from typing import cast

import numpy as np

from rankernel import distances
from rankernel.gram.by_draws import FullEvaluator
from rankernel.gram.by_overlap import OverlapEvaluator, TopKCodes
from rankernel.gram.discordance import KendallDiscordance, MallowsEvaluator
from rankernel.gram.evaluator import ConstantEvaluator, Evaluator, ScaledEvaluator, SumEvaluator
from rankernel.gram.formulas.cayley_law import CayleyLaw
from rankernel.gram.formulas.diffusion import CycleTypeDiffusion, WordDiffusion
from rankernel.gram.formulas.exp_cayley import EXP_CAYLEY
from rankernel.gram.formulas.exp_footrule import ExponentialFootrule
from rankernel.gram.formulas.exp_hamming import EXP_HAMMING
from rankernel.gram.formulas.exp_spearman import ExponentialSpearman
from rankernel.gram.formulas.hamming_law import HammingLaw
from rankernel.gram.formulas.kendall_law import KendallLaw, kendall_moments
from rankernel.gram.formulas.law import DistanceLaw
from rankernel.gram.formulas.mallows import ExhaustiveMallows
from rankernel.gram.formulas.mallows_free import FreeMallows, UnorderedMallows
from rankernel.gram.mean_features import FeatureEvaluator, linear_features, polynomial_features
from rankernel.gram.overlap import Formula, Overlap, Shape
from rankernel.kernels.base import Constant, Kernel, Scaled, Sum
from rankernel.kernels.diffusion import Diffusion
from rankernel.kernels.exponential import ExponentialKernel
from rankernel.kernels.kendall import Kendall, Polynomial
from rankernel.kernels.linear import DistanceInduced, Hamming, Spearman
from rankernel.rankings import Rankings

__all__ = ["Obstacle", "exact_evaluator"]

MATRIX_ENTRIES = 2**26  # beyond this many pair signs, Kendall counts pairs instead of multiplying matrices
SQUARE_FEATURES = 2**27

LINEAR_DISTANCES = (distances.kendall, distances.hamming, distances.spearman, distances.footrule)
LAWS: dict[str, DistanceLaw] = {law.distance: law for law in (KendallLaw(), HammingLaw(), CayleyLaw())}
EXPONENTIALS: dict[str, tuple[Formula, ...]] = {
    "kendall": (ExhaustiveMallows(), UnorderedMallows(), FreeMallows()),
    "hamming": EXP_HAMMING,
    "cayley": EXP_CAYLEY,
    "footrule": (ExponentialFootrule(),),
    "spearman": (ExponentialSpearman(),),
}
DIFFUSIONS: dict[str, tuple[Formula, ...]] = {
    "transpositions": (CycleTypeDiffusion(), WordDiffusion("transpositions")),
    "adjacent": (WordDiffusion("adjacent"),),
}


@dataclass(frozen=True)
class Obstacle:
    """Why there is no exact value: a kernel, and the kinds of two rankings that it has none for."""

    kernel: Kernel
    left: Shape
    right: Shape

    def __str__(self) -> str:
        kinds = " and a ".join(dict.fromkeys((self.left.kind, self.right.kind)))
        return f"there is no closed form of {self.kernel} for a {kinds} of {self.left.n_items} items"


def exact_evaluator(kernel: Kernel, X: Rankings, Y: Rankings) -> Evaluator | Obstacle:
    """Return what computes the exact Gram matrix of every pair, or the first pair that is in the way."""
    match kernel:
        case Constant():
            return ConstantEvaluator((len(X), len(Y)))
        case Sum(left, right):
            parts = exact_evaluator(left, X, Y), exact_evaluator(right, X, Y)
            found = first_obstacle(parts)
            return found or SumEvaluator(*cast(tuple[Evaluator, Evaluator], parts))
        case Scaled(kernel=inner):
            inside = exact_evaluator(inner, X, Y)
            return inside if isinstance(inside, Obstacle) else ScaledEvaluator(inside)
    return leaf_evaluator(kernel, X, Y)


def first_obstacle(parts: Iterable[Evaluator | Obstacle]) -> Obstacle | None:
    """Return the first obstacle among parts, if there is one."""
    return next((part for part in parts if isinstance(part, Obstacle)), None)


def leaf_evaluator(kernel: Kernel, X: Rankings, Y: Rankings) -> Evaluator | Obstacle:
    """Return what computes a kernel that is no sum or multiple of others."""
    exhaustive = X.is_exhaustive() and Y.is_exhaustive()
    if isinstance(kernel, ExponentialKernel) and kernel.argument == distances.kendall and exhaustive:
        return MallowsEvaluator(X, Y)
    if X.is_full() and Y.is_full():
        return FullEvaluator(X, Y)
    linear = linear_evaluator(kernel, X, Y, exhaustive)
    if linear is not None:
        return linear
    pairs = list(shape_pairs(X, Y))
    formulas = formulas_of(kernel)
    if formulas:
        return formula_evaluator(kernel, formulas, X, Y, pairs)
    if isinstance(kernel, Polynomial) and exhaustive:
        return OverlapEvaluator(
            X, Y, polynomial_mean, no_slopes, "closed form (cumulants of the Kendall distance)", logarithmic=False
        )
    return law_evaluator(kernel, X, Y, pairs)


def linear_evaluator(kernel: Kernel, X: Rankings, Y: Rankings, exhaustive: bool) -> Evaluator | None:
    """Return what computes a kernel whose mean is the inner product of mean features, for any rankings."""
    n = X.n_items
    match kernel:
        case Kendall():
            if exhaustive and max(len(X), len(Y)) * comb(n, 2) > MATRIX_ENTRIES:
                return KendallDiscordance(X, Y)
            return FeatureEvaluator(X, Y, linear_features(kernel, distances.kendall, 4 / comb(n, 2)))
        case Hamming():
            return FeatureEvaluator(X, Y, linear_features(kernel, distances.hamming, 2))
        case Spearman():
            return FeatureEvaluator(X, Y, linear_features(kernel, distances.spearman, 12 / (n * (n * n - 1))))
        case DistanceInduced() if distances.by_name(kernel.distance) in LINEAR_DISTANCES:
            return FeatureEvaluator(X, Y, linear_features(kernel, distances.by_name(kernel.distance), 1))
        case Polynomial(degree=1):
            return FeatureEvaluator(X, Y, polynomial_features(1))
        case Polynomial(degree=2) if not exhaustive and comb(n, 2) ** 2 * max(len(X), len(Y)) <= SQUARE_FEATURES:
            return FeatureEvaluator(X, Y, polynomial_features(2))
    return None


def formulas_of(kernel: Kernel) -> Sequence[Formula]:
    """Return the formulas that an exponential or diffusion kernel has."""
    if isinstance(kernel, ExponentialKernel) and kernel.argument is not None:
        return EXPONENTIALS.get(kernel.argument.name, ())
    return DIFFUSIONS[kernel.graph] if isinstance(kernel, Diffusion) else ()


def shapes(X: Rankings) -> list[Shape]:
    """Return the distinct shapes of rankings."""
    sizes, free = X.bucket_sizes(), X.n_free
    rows = {(*row, f) for row, f in zip(map(tuple, sizes.tolist()), free.tolist(), strict=True)}
    return [Shape(tuple(size for size in row[:-1] if size), row[-1]) for row in sorted(rows)]


def shape_pairs(X: Rankings, Y: Rankings) -> Iterator[tuple[Shape, Shape]]:
    """Return the pairs of shapes that meet."""
    left = shapes(X)
    right = left if Y is X else shapes(Y)
    return ((a, b) for a in left for b in right)


def formula_evaluator(
    kernel: Kernel, formulas: Sequence[Formula], X: Rankings, Y: Rankings, pairs: list[tuple[Shape, Shape]]
) -> Evaluator | Obstacle:
    """Return what evaluates for each pair the first formula that covers it."""
    chosen: dict[tuple[Shape, Shape], Formula] = {}
    for pair in pairs:
        formula = next((formula for formula in formulas if formula.covers(*pair)), None)
        if formula is None:
            return Obstacle(kernel, *pair)
        chosen[pair] = formula

    def both(kernel: Kernel, overlap: Overlap) -> tuple[float, float]:
        formula = chosen[overlap.left_shape, overlap.right_shape]
        return formula.log_value(overlap, cast(ExponentialKernel | Diffusion, kernel).width)

    def work(overlap: Overlap) -> float:
        pair = overlap.left_shape, overlap.right_shape
        return chosen[pair].work(*pair)

    names = ", ".join(dict.fromkeys(formula.name for formula in chosen.values()))
    return OverlapEvaluator(
        X,
        Y,
        lambda kernel, overlap: both(kernel, overlap)[0],
        lambda kernel, overlap: (both(kernel, overlap)[1],),
        f"closed form ({names})",
        logarithmic=True,
        codes=short_codes(kernel, X, Y, pairs),
        work=work,
    )


def short_codes(kernel: Kernel, X: Rankings, Y: Rankings, pairs: list[tuple[Shape, Shape]]) -> TopKCodes | None:
    """Return codes for two sets of top-k lists of which the kernel sees a few numbers only, if that is so."""
    if kernel.argument not in (distances.hamming, distances.cayley):
        return None
    if not all(left.is_top_k and right.is_top_k for left, right in pairs):
        return None
    return TopKCodes(X, Y, "agreement_codes" if kernel.argument == distances.hamming else "cycle_codes")


def law_evaluator(kernel: Kernel, X: Rankings, Y: Rankings, pairs: list[tuple[Shape, Shape]]) -> Evaluator | Obstacle:
    """Return what averages any function of a distance over the law of the distance."""
    law = LAWS.get(kernel.argument.name) if kernel.argument is not None else None
    for pair in pairs:
        if law is None or not law.covers(*pair):
            return Obstacle(kernel, *pair)
    assert law is not None

    def value(kernel: Kernel, overlap: Overlap) -> float:
        pmf = law.pmf(overlap)
        return float(pmf @ kernel.at_distance(np.arange(len(pmf)), overlap.n_items))

    def slopes(kernel: Kernel, overlap: Overlap) -> tuple[float, ...]:
        pmf = law.pmf(overlap)
        return tuple(float(pmf @ s) for s in kernel.slopes_at_distance(np.arange(len(pmf)), overlap.n_items).values())

    codes = short_codes(kernel, X, Y, pairs)
    return OverlapEvaluator(X, Y, value, slopes, f"closed form ({law.name})", logarithmic=False, codes=codes)


def polynomial_mean(kernel: Kernel, overlap: Overlap) -> float:
    """Return the mean of a polynomial kernel, from the cumulants of the Kendall distance."""
    degree = cast(Polynomial, kernel).degree
    return float(kendall_moments(overlap, degree)[degree])


def no_slopes(kernel: Kernel, overlap: Overlap) -> tuple[float, ...]:  # noqa: ARG001
    """Return nothing: the kernel has no parameters."""
    return ()

"""Cosines instead of inner products: entries divided by the lengths of both embeddings.

Lengths are as near to the truth as possible: exact where that is at hand, each row by itself, else unbiased estimates.
A ranking with itself has the cosine 1, which needs no estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices, Mask
from rankernel.completions.draws import Uniform
from rankernel.errors import ExactnessError, SamplingWarning, warn
from rankernel.gram.evaluator import Block, BlockEstimate, Evaluator
from rankernel.gram.exact.choice import closed_form, enumerated
from rankernel.gram.exact.formulas import first_and_shape
from rankernel.gram.methods import Auto, Exact, Limited, MonteCarlo
from rankernel.gram.montecarlo.sampled import SampledEvaluator, united
from rankernel.gram.poset_rows import PartialOrders, Rows
from rankernel.kernels.base import Kernel

if TYPE_CHECKING:
    from rankernel.gram.plan import Plan

FEW_EVALUATIONS = 2**16  # of the kernel, to know one length exactly where entries are estimated
SOME_EVALUATIONS = 2**20  # where they are exact
COMMON = 0.95  # of what entries and lengths are found to vary by together, which is itself not quite known
LEAST_OF_COSINE = 0.15  # of a variance: what is left of it at least
UNSURE = 0.15  # relative error of a length, as a factor of what is divided by it


@dataclass(frozen=True, eq=False)
class Lengths:
    """Squared lengths of embeddings; those whose error is not 0 are estimated."""

    value: FloatArray
    error: FloatArray
    unreliable: Mask

    @classmethod
    def exact(cls, value: FloatArray) -> Lengths:
        """Return lengths that are known."""
        return cls(value, np.zeros(len(value)), np.zeros(len(value), dtype=bool))

    def at(self, place: Indices | None) -> Lengths:
        """Return the lengths of all rows from those of the distinct ones."""
        return self if place is None else Lengths(self.value[place], self.error[place], self.unreliable[place])

    @cached_property
    def inverse_roots(self) -> FloatArray:
        """What entries are multiplied by; 0 for a ranking of length 0."""
        return np.asarray(1 / np.sqrt(np.where(self.value > 0, self.value, np.inf)))

    @cached_property
    def spread(self) -> FloatArray:
        """By what part of themselves entries may be off because of the length: half of an interval of two errors.

        Infinite where the interval reaches 0: to first order the error of a root is half of that of the length, but
        not where that is large.
        """
        relative = np.divide(2 * self.error, self.value, out=np.zeros(len(self.value)), where=self.value > 0)
        sure = (relative < 1) & ~self.unreliable
        low, high = (1 / np.sqrt(1 + sign * np.where(sure, relative, 0.0)) for sign in (1, -1))
        return np.where(sure, (high - low) / 4, np.inf)


def scale_strip(strip: Any, rows: slice, sides: tuple[Lengths, Lengths], own: tuple[Indices, Indices]) -> Any:
    """Return some rows of a matrix divided by lengths; ``own`` are numbers that equal rows and columns share."""
    left, right = sides[0].inverse_roots[rows], sides[1].inverse_roots
    scaled = strip * left[:, None] * right
    same = (own[0][rows, None] == own[1]) & (left > 0)[:, None]
    return np.where(same, 1.0, scaled).astype(strip.dtype)


def cosine_bars(plan: Plan, found: BlockEstimate, sides: tuple[Lengths, Lengths], n_jobs: int | None) -> BlockEstimate:
    """Return values divided by the lengths of both embeddings, with the errors of all three.

    What of these is common, because they have the same draws, the quotient does not have. No cosine is beyond -1 and 1,
    so that no error need be larger than what reaches both.
    """
    left, right = sides
    own = own_numbers(plan)
    value = scale_strip(found.value, slice(None), sides, own)
    scale = np.multiply.outer(left.inverse_roots, right.inverse_roots)
    spread, largest = np.hypot.outer(left.spread, right.spread), (1 + np.abs(value)) / 2
    sure = np.isfinite(spread)
    square = (found.error * scale) ** 2 + (value * np.where(sure, spread, 0.0)) ** 2
    common = COMMON * value * scale * common_variation(plan, sides, n_jobs)
    error = np.minimum(np.sqrt(np.maximum(square - common, LEAST_OF_COSINE * square)), largest)
    unreliable = found.unreliable | (np.maximum.outer(left.spread, right.spread) > UNSURE)
    estimated = (scale > 0) & ~np.equal.outer(*own)
    return BlockEstimate(value, np.where(estimated, np.where(sure, error, largest), 0.0), unreliable & estimated)


def common_variation(plan: Plan, sides: tuple[Lengths, Lengths], n_jobs: int | None) -> FloatArray:
    """Return the covariance of each entry with the logarithms of both lengths, as far as they have draws in common."""
    drawn = plan.evaluator
    if not isinstance(drawn, SampledEvaluator):
        return np.zeros(1)
    factors = np.zeros(len(drawn.rows))
    for side, own in zip(sides, own_numbers(plan), strict=True):
        estimated = (side.error > 0) & np.isfinite(side.spread)
        factors[own] = np.divide(1, side.value, out=np.zeros(len(own)), where=estimated)
    effects = drawn.uncertainty.length_effects(plan.kernel, factors) if factors.any() else None
    if effects is None:
        return np.zeros(1)

    def covariances(tile: Block) -> list[FloatArray]:
        return [drawn.uncertainty.length_covariances(plan.kernel, effects, tile)]

    return plan.spread(plan.filled(covariances, 1, n_jobs)[0])


def own_numbers(plan: Plan) -> tuple[Indices, Indices]:
    """Return a number for each row and each column, the same for rankings that are equal and share their draws."""
    distinct_rows = isinstance(plan.method, MonteCarlo) and plan.method.distinct_rows
    _, rows, columns, _ = united(plan.X, plan.Y, distinct_rows)
    return rows if plan.rows is None else rows[plan.rows], columns if plan.columns is None else columns[plan.columns]


# ---------------------------------------------------------------------- lengths


def lengths(plan: Plan, diagonal: FloatArray | None = None) -> tuple[Lengths, Lengths]:
    """Return the squared lengths of rows and of columns; ``diagonal`` is that of an exact symmetric matrix."""
    if plan.symmetric and plan.estimator is None:
        one = Lengths.exact(plan.diagonal() if diagonal is None else diagonal)
        return one, one
    left = side_lengths(plan, plan.X, 0)
    right = left if plan.symmetric else side_lengths(plan, plan.Y, 1)
    return left.at(plan.rows), right.at(plan.columns)


def side_lengths(plan: Plan, side: Rows, number: int) -> Lengths:
    """Return the squared lengths of distinct rankings, each in the best way that it has by itself."""
    drawn = plan.evaluator if isinstance(plan.evaluator, SampledEvaluator) else None
    if drawn is not None and not isinstance(drawn.method.completions, Uniform):
        return Lengths(*drawn.uncertainty.lengths(plan.kernel, (drawn.row_of, drawn.column_of)[number]))
    found = Lengths.exact(np.full(len(side), np.nan))
    for group, evaluator in own_evaluators(plan, side):
        some = side[group]
        alone = plan.using(evaluator, X=some, Y=some, rows=None, columns=None, method=Exact(), requested=Exact())
        found.value[group] = alone.diagonal()
    rest = np.flatnonzero(np.isnan(found.value))
    if len(rest):
        if plan.rest_by is None:
            raise ExactnessError(
                f"{len(rest)} of {len(side)} lengths of {plan.kernel} have no exact value; use method='auto' or "
                "MonteCarlo(n_draws), or normalize=False"
            )
        places = np.arange(len(rest)) if drawn is None else (drawn.row_of, drawn.column_of)[number][rest]
        drawn = drawn or SampledEvaluator(plan.rest_by, plan.kernel, side[rest], side[rest])
        found.value[rest], found.error[rest], found.unreliable[rest] = drawn.uncertainty.lengths(plan.kernel, places)
    return found


def own_evaluators(plan: Plan, side: Rows) -> list[tuple[Indices, Evaluator]]:
    """Return which rankings have exact lengths, and what computes them; rankings of one shape have it in one way."""
    exact = plan.requested if isinstance(plan.requested, Limited) else None
    limit = exact.limit if exact else FEW_EVALUATIONS if plan.estimator is not None else SOME_EVALUATIONS
    found = []
    for group in groups_of_shapes(side):
        evaluator = exact_alone(plan.kernel, side[group], limit, certain=exact is None)
        if evaluator is not None:
            found.append((group, evaluator))
    return found


def exact_alone(kernel: Kernel, some: Rows, limit: int, certain: bool) -> Evaluator | None:
    """Return what computes exact lengths of rankings of one shape, by at most so many evaluations for each."""
    closed = closed_form(kernel, some, some, certain)
    if isinstance(closed, Evaluator):
        return closed
    listed = enumerated(kernel, some, some, limit * len(some) ** 2)
    return listed if isinstance(listed, Evaluator) else None


def groups_of_shapes(side: Rows) -> list[Indices]:
    """Return the rankings of each shape together; partial orders each by itself."""
    if isinstance(side, PartialOrders):
        return [np.array([row]) for row in range(len(side))]
    inverse = first_and_shape(side)[1]
    return np.split(np.argsort(inverse, kind="stable"), np.cumsum(np.bincount(inverse))[:-1]) if len(side) else []


def warn_if_estimated(plan: Plan, sides: tuple[Lengths, Lengths]) -> None:
    """Warn where entries are exact by the plan's own choice, but some lengths are not."""
    n_estimated = sum(int((side.error > 0).sum()) for side in sides[: 1 if plan.symmetric else 2])
    if n_estimated and isinstance(plan.requested, Auto) and isinstance(plan.method, Exact):
        warn(
            f"{n_estimated} lengths have no exact value, and are estimated: {plan.rest_by}",
            SamplingWarning,
        )

"""Gram matrices with standard errors, gradients and normalisation, and the results that a plan returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import FloatArray, Indices, Mask
from rankernel._utils.checks import check_flag, check_number
from rankernel._utils.notebook import html_card
from rankernel._utils.resources import check_memory, slices
from rankernel.errors import Argument, ArgumentValueError, ExactnessError, SamplingWarning, warn
from rankernel.gram.evaluator import SIDE, Block, range_indices, single_entries
from rankernel.gram.jackknife import Norms
from rankernel.gram.montecarlo import MonteCarlo, MonteCarloEvaluator, pooled
from rankernel.kernels.base import Kernel

if TYPE_CHECKING:
    from rankernel.gram.plan import Method, Plan

MAX_DRAWS = 4096  # of one replicate, for a requested tolerance: the cost grows with the square
MAX_REPLICATES = 1024
MAX_GROWTH = 8.0  # of the number of draws in one step: large standard errors are estimated less precisely
MARGIN = 1.2  # more draws than the standard error asks for, because it is itself an estimate


@dataclass(frozen=True, eq=False)
class Estimate:
    """A Gram matrix with standard errors.

    Attributes
    ----------
    value : array
        The Gram matrix.
    stderr : array
        The standard error of each entry, 0 for exact values. For entries with a bias (a ranking with itself) it is the
        root mean squared error. Not a number where the draws form too few independent blocks.
    unreliable : array of bool
        Which entries are carried by so few draws that their standard errors are unreliable.
    method : Exact or MonteCarlo
        The resolved method; the estimator if some entries or norms are estimated and the others exact.
    details : str
        The method in words.
    kernel : Kernel
        The kernel, its parameters numbers.
    gradient : dict of arrays, or None
        The derivative in each parameter, if requested.
    gradient_stderr : dict of arrays, or None
        The standard errors of the derivatives.

    Examples
    --------
    >>> from rankernel import Mallows, Rankings
    >>> estimate = Mallows(nu=1.0).estimate(Rankings([[0, 1], [1, 0]]), gradient=True)
    >>> estimate.value[0, 1].round(4), estimate.gradient["nu"][0, 1].round(4), estimate.stderr[0, 1]
    (np.float64(0.3679), np.float64(-0.3679), np.float64(0.0))
    """

    _repr_html_ = html_card

    value: NDArray[Any]
    stderr: FloatArray
    unreliable: Mask
    method: Method
    details: str
    kernel: Kernel
    gradient: dict[str, FloatArray] | None = None
    gradient_stderr: dict[str, FloatArray] | None = None


# ---------------------------------------------------------------------- normalisation


def normalize_rows(plan: Plan, matrix: NDArray[Any]) -> None:
    """Divide the Gram matrix of a plan by the norms of its rows and columns."""
    sides, numbers = norms_of(plan), ranking_numbers(plan)
    warn_if_norms_estimated(plan, sides)
    left, right = (side.inverse_roots.astype(matrix.dtype) for side in sides)
    for strip in slices(len(matrix), SIDE):
        matrix[strip] *= left[strip, None]
        matrix[strip] *= right
        r, c = equal_pairs(numbers[0][strip], numbers[1])
        matrix[strip][r, c] = np.where(left[strip][r] > 0, 1.0, 0.0)


def norms_of(plan: Plan) -> tuple[Norms, Norms]:
    """Return the squared norms of all rows and columns, exact where entries are exact and this is possible."""
    left = side_norms(plan, 0)
    right = left if plan._symmetric else side_norms(plan, 1)
    return left[plan._rows], right[plan._columns]


def side_norms(plan: Plan, side: int) -> Norms:
    """Return the squared norms of the distinct rows (side 0) or columns (side 1)."""
    parts = []
    for rows, evaluator in plan._own_evaluators(side):
        if isinstance(evaluator, MonteCarloEvaluator):
            parts.append((rows, evaluator.norms(plan.kernel, evaluator.row_of)))
        else:
            index = np.arange(len(rows))
            parts.append((rows, Norms.exact(single_entries(evaluator, plan.kernel, index, index, None))))
    if not parts:
        return Norms.exact(np.empty(0))
    order = np.argsort(np.concatenate([rows for rows, _ in parts]))
    return Norms.concatenate([norms for _, norms in parts])[order]


def equal_pairs(rows: Indices, columns: Indices) -> tuple[Indices, Indices]:
    """Return the indices of all rows and columns with equal numbers."""
    order = np.argsort(columns, kind="stable")
    first, last = (np.searchsorted(columns[order], rows, side=side) for side in ("left", "right"))
    sizes = last - first
    return np.repeat(np.arange(len(rows)), sizes), order[range_indices(first, sizes)]


def warn_if_norms_estimated(plan: Plan, sides: tuple[Norms, Norms]) -> None:
    """Warn where entries are exact by the plan's own choice, but some norms are estimated."""
    n_estimated = sum(int(side.estimated.sum()) for side in sides[: 1 if plan._symmetric else 2])
    if n_estimated and plan._fallback is not None and not isinstance(plan.method, MonteCarlo):
        warn(
            f"the norms of {n_estimated} rankings have no exact value and are estimated: {plan._fallback}",
            SamplingWarning,
        )


def ranking_numbers(plan: Plan) -> tuple[Indices, Indices]:
    """Return a number for each row and each column, equal for equal rankings that share their draws."""
    _, rows, columns = pooled(plan._X, plan._Y)
    return rows[plan._rows], columns[plan._columns]


# ---------------------------------------------------------------------- standard errors


@np.errstate(under="ignore")
def estimate(plan: Plan, tol: float | None, gradient: bool, normalize: bool, n_jobs: int | None) -> Estimate:
    """Return the matrix of a plan with standard errors: see :meth:`Kernel.estimate`."""
    check_flag("gradient", gradient)
    if check_flag("normalize", normalize) and gradient:
        raise ArgumentValueError("gradient", True, "False with normalize=True")
    if tol is not None:
        check_number("tol", tol, 0, above=True)
    repeated = plan._distinct is not plan
    n_matrices = (3 + 2 * len(plan.kernel.params) * gradient) * (1 + repeated)
    check_memory(plan.shape, np.float64, n_matrices=n_matrices)
    while True:
        (value, stderr, unreliable), sides = measure(plan, normalize, n_jobs)
        estimator = plan._estimator
        if sides is not None and estimator is None and any(side.estimated.any() for side in sides):
            estimator = plan._fallback
        if tol is None or estimator is None or not (stderr > tol).any():
            break
        plan = plan._with_estimator(more_draws(plan, stderr, estimator, tol, normalize))
    if sides is not None:
        warn_if_norms_estimated(plan, sides)
    warn_if_unreliable(stderr, unreliable > 0, estimator)
    details = plan.details
    if plan._estimator is None and estimator is not None:
        details += f"; norms: {estimator}"
    derivatives = gradient_estimates(plan, n_jobs) if gradient else (None, None)
    return Estimate(value, stderr, unreliable > 0, estimator or plan.method, details, plan.kernel, *derivatives)


def measure(plan: Plan, normalize: bool, n_jobs: int | None) -> tuple[list[FloatArray], tuple[Norms, Norms] | None]:
    """Return values, standard errors and which are unreliable (1, else 0), and the norms that values are divided by."""
    distinct = plan._distinct
    sides = norms_of(distinct) if normalize else None

    def compute(block: Block) -> FloatArray:
        norms = None if sides is None else (sides[0][block[0]], sides[1][block[1]])
        return distinct._evaluator.estimate_block(plan.kernel, block, norms)

    found = distinct._fill(compute, 3, n_jobs)
    if sides is not None:
        r, c = equal_pairs(*ranking_numbers(distinct))
        r, c = (index[sides[0].value[r] > 0] for index in (r, c))
        found[0, r, c], found[1:, r, c] = 1.0, 0.0
    return [plan._expand(matrix) for matrix in found], sides


def warn_if_unreliable(stderr: FloatArray, unreliable: Mask, estimator: MonteCarlo | None) -> None:
    """Warn of entries without a standard error, and of entries that are carried by few draws."""
    missing = np.isnan(stderr)
    few = unreliable & ~missing
    if missing.any():
        problem = f"{missing.sum():,} of {missing.size:,} estimates have no standard error ({estimator}): use "
        warn((problem, Argument("coupling", "iid"), ", or a larger ", Argument("n_draws")), SamplingWarning)
    if few.any():
        problem = f"{few.sum():,} of {few.size:,} estimates are carried by few draws: use a larger "
        advice = (Argument("n_draws"), ", a smaller decay rate (wider kernel), or ", Argument("method", "exact"))
        warn((problem, *advice), SamplingWarning)


def more_draws(plan: Plan, stderr: FloatArray, method: MonteCarlo, tol: float, normalize: bool) -> MonteCarlo:
    """Return a method with as many draws as a tolerance needs by the measured standard errors, or raise an error.

    The bias of a ranking with itself falls with the number of draws. The variance falls with the number of replicates
    as well, which cost less.
    """
    biased = 0.0
    if not normalize and plan._estimator is not None and method.diagonal == "embedding":
        biased = float(stderr[equal_pairs(*ranking_numbers(plan))].max(initial=0.0))
    worst = float(np.nanmax(stderr, initial=0.0))
    if biased > tol and method.n_draws < MAX_DRAWS:
        n_draws = method.n_draws * min(MARGIN * biased / tol, MAX_GROWTH)
        return replace(method, n_draws=min(2 * -(-int(n_draws) // 2), MAX_DRAWS))
    if biased > tol:
        raise ExactnessError(
            f"{method} leaves an error of {biased:.2g} where a ranking meets itself, above tol={tol:g}: use "
            "diagonal='unbiased', which has no bias there, a larger tol, or ",
            Argument("method", "exact"),
        )
    if method.replicates >= MAX_REPLICATES:
        raise ExactnessError(
            f"{method} leaves a standard error of {worst:.2g}, above tol={tol:g}; use a larger tol, or ",
            Argument("method", "exact"),
        )
    growth = min(MARGIN * (worst / tol) ** 2, MAX_GROWTH)
    return replace(method, replicates=min(max(int(np.ceil(method.replicates * growth)), 2), MAX_REPLICATES))


# ---------------------------------------------------------------------- gradients


def gradient_of(plan: Plan, n_jobs: int | None = None) -> dict[str, FloatArray]:
    """Return the derivative of the matrix of a plan in each parameter."""
    names = list(plan.kernel.params)

    def compute(block: Block) -> Sequence[FloatArray]:
        return plan._evaluator.matrices(plan.kernel, block, names)

    found: Any = plan._fill(compute, len(names), n_jobs) if names else []
    return {name: plan._expand(matrix) for name, matrix in zip(names, found, strict=True)}


def gradient_estimates(plan: Plan, n_jobs: int | None) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Return the derivative of the matrix of a plan in each parameter, and its standard errors."""
    values, stderrs = {}, {}
    for name in plan.kernel.params:

        def compute(block: Block, name: str = name) -> FloatArray:
            return plan._evaluator.estimate_block(plan.kernel, block, parameter=name)[:2]

        values[name], stderrs[name] = map(plan._expand, plan._fill(compute, 2, n_jobs))
    return values, stderrs

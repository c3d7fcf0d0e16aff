"""The Gram matrix as people ask for it: value, standard error, derivative, and what was done."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankernel.arrays import FloatArray, Mask
from rankernel.checks import flag, number, shown
from rankernel.completions.models import Uniform
from rankernel.errors import ExactnessError, SamplingWarning, warn
from rankernel.gram.evaluator import Evaluator
from rankernel.gram.exact.choice import closed_form, exact_evaluator
from rankernel.gram.methods import Exact, Method, Mixed, MonteCarlo
from rankernel.gram.montecarlo.sampled import SampledEvaluator, estimate_seconds
from rankernel.gram.posets.poset_rows import Rows
from rankernel.gram.tiles import fill_gram, stretches, tiles
from rankernel.kernels.base import Kernel
from rankernel.memory import check_memory
from rankernel.notebook import html_card

if TYPE_CHECKING:
    from rankernel.gram.plan import Plan

MOST_DRAWS = 4096  # of one replicate: their cost grows with the square of their number
MOST_REPLICATES = 4096
FEW_EVALUATIONS = 2**16  # of the kernel, to know the length of an embedding
PILOT_ROWS = 8
PILOT_TIMES = (1, 4)  # as many draws as were asked for
STRIP = 1024


@dataclass(frozen=True, eq=False)
class Estimate:
    """A Gram matrix, and how sure it is.

    Attributes
    ----------
    value : array
        The Gram matrix.
    stderr : array
        The standard error of each entry: its distance from the truth to be expected, with the bias of entries that
        have one (a ranking with itself); 0 where it is exact.
    method : Exact, Enumeration, Mixed or MonteCarlo
        What was done, nothing left open.
    details : str
        The same in words.
    kernel : Kernel
        The kernel, its width a number.
    doubtful : array of bool
        Which entries rest on a few draws, so that their errors are uncertain, too.
    gradient : dict of arrays, or None
        The derivative in each parameter, if it was asked for.
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
    doubtful: Mask
    method: Method
    details: str
    kernel: Kernel
    gradient: dict[str, FloatArray] | None = None
    gradient_stderr: dict[str, FloatArray] | None = None


# ---------------------------------------------------------------------- the matrix alone


def gram_into(plan: Plan, out: Any, dtype: DTypeLike, normalize: bool, threads: int | None) -> NDArray[Any]:
    """Return the Gram matrix of a plan: see :meth:`Kernel.gram`."""
    flag("normalize", normalize)
    if out is None:
        check_float("dtype", dtype)
        check_memory(plan.shape, dtype)
        out = np.empty(plan.shape, dtype=dtype)
    check_output(out, plan.shape)
    if isinstance(out, np.ndarray):
        matrix = out.view(np.ndarray)  # of a memory map, too
        fill_gram(matrix, plan.evaluator, plan.kernel, plan.rows, plan.columns, plan.symmetric, threads)
    else:
        fill_store(out, plan, threads)
    if normalize:
        known = np.array(np.diagonal(out), dtype=np.float64) if isinstance(out, np.ndarray) and plan.symmetric else None
        rows, columns = (1 / np.sqrt(np.where(side > 0, side, np.inf)) for side, _ in lengths(plan, known))
        for strip in stretches(out.shape[0], chunk_rows(out)):
            out[strip] = out[strip] * rows[strip, None] * columns
    return cast(NDArray[Any], out)


def check_float(name: str, dtype: DTypeLike) -> None:
    """Refuse numbers that cannot hold kernel values."""
    try:
        kind = None if dtype is None else np.dtype(dtype)
    except (TypeError, ValueError):
        kind = None
    if kind not in (np.float64, np.float32):
        raise TypeError(
            f"{name}={shown(dtype if kind is None else kind)} cannot hold kernel values; use float64 or float32"
        )


def check_output(out: Any, shape: tuple[int, int]) -> None:
    """Refuse an output of another shape or kind, or one that may not be written."""
    if not (hasattr(out, "shape") and hasattr(out, "dtype") and hasattr(out, "__setitem__")):
        raise TypeError(f"out={shown(out)} is not possible; give an array, a memory map or a zarr array to write into")
    if tuple(out.shape) != shape:
        raise ValueError(f"out has shape {out.shape}; this Gram matrix has shape {shape}")
    check_float("the dtype of out", out.dtype)
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise ValueError("out is read-only; give an array, or a memory map opened with mode 'r+' or 'w+'")


def fill_store(out: Any, plan: Plan, threads: int | None) -> None:
    """Fill a matrix that is no array in memory (zarr, h5py), from one thread, as few of its chunks apart as possible.

    Two threads that write into one chunk of such a matrix would overwrite each other's work.
    """
    chunks = getattr(out, "chunks", None)
    for rows, columns in tiles(*plan.shape, plan.side(int(max(chunks)) if chunks else None), plan.symmetric):
        value = plan.block(rows, columns, threads)
        out[rows, columns] = value.astype(out.dtype)
        if plan.symmetric and rows != columns:
            out[columns, rows] = np.ascontiguousarray(value.T).astype(out.dtype)


def chunk_rows(out: Any) -> int:
    """Return how many rows of a matrix are best read and written at once."""
    chunks = getattr(out, "chunks", None)
    return int(chunks[0]) if chunks else STRIP


def lengths(plan: Plan, diagonal: FloatArray | None = None) -> list[tuple[FloatArray, FloatArray]]:
    """Return the squared lengths of the embeddings of rows and of columns, and their errors; exact ones if known.

    As near to the truth as possible: what a matrix is divided by need not be its own diagonal to keep it positive
    semi-definite.
    """
    if isinstance(plan.evaluator, SampledEvaluator):
        sides = [plan.X] if plan.symmetric else [plan.X, plan.Y]
        left, *others = (side_lengths(plan, plan.evaluator, number, side) for number, side in enumerate(sides))
        right = others[0] if others else left
    elif plan.symmetric:
        given = diagonal if diagonal is not None else plan.distinct.diagonal()
        return [(given, np.zeros(len(given)))] * 2 if diagonal is not None else [spread_pair(plan.rows, given)] * 2
    else:
        both = [replace(plan, X=side, Y=side, rows=None, columns=None).alone() for side in (plan.X, plan.Y)]
        left, right = ((own.diagonal(), np.zeros(len(own.X))) for own in both)
    return [spread_pair(plan.rows, *left), spread_pair(plan.columns, *right)]


def side_lengths(plan: Plan, drawn: SampledEvaluator, number: int, side: Rows) -> tuple[FloatArray, FloatArray]:
    """Return the squared lengths of rows or columns whose values are estimated: exact ones where they are at hand."""
    if not isinstance(drawn.method.completions, Uniform):
        return drawn.lengths(plan.kernel, number)
    if isinstance(found := closed_form(plan.kernel, side, side, certain=True), Evaluator):
        return own_values(plan, side, found), np.zeros(len(side))
    value, error = drawn.lengths(plan.kernel, number)
    for k in range(len(side)):
        one = side[k : k + 1]
        if isinstance(found := exact_evaluator(plan.kernel, one, one, FEW_EVALUATIONS, certain=True), Evaluator):
            value[k], error[k] = own_values(plan, one, found).item(), 0.0
    return value, error


def own_values(plan: Plan, side: Rows, found: Evaluator) -> FloatArray:
    """Return the values of rankings with themselves by an evaluator of theirs."""
    return plan.using(found, X=side, Y=side, rows=None, columns=None, method=Exact(), asked=Exact()).diagonal()


def spread_pair(place: Any, value: FloatArray, error: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
    """Return values and errors of all rows from those of the distinct ones."""
    error = np.zeros(len(value)) if error is None else error
    return (value, error) if place is None else (value[place], error[place])


# ---------------------------------------------------------------------- with errors


def estimated(plan: Plan, tol: float | None, gradient: bool, normalize: bool, threads: int | None) -> Estimate:
    """Return the matrix of a plan with its standard error: see :meth:`Kernel.estimate`."""
    flag("gradient", gradient)
    if flag("normalize", normalize) and gradient:
        raise ValueError("the derivative of the normalised kernel is not available; use normalize=False")
    several = plan.rows is not None or plan.columns is not None
    n_matrices = (3 + 2 * len(plan.kernel.params) * gradient) * (1 + several)
    check_memory(plan.shape, np.float64, n_matrices=n_matrices)
    if tol is not None:
        number("tol", tol, 0, above=True)
        plan = soonest(plan, tol, normalize)
    value, error, doubtful, plan = barred(plan, tol, normalize, threads)
    if doubtful.any():
        warn(
            f"{int(doubtful.sum()):,} of {doubtful.size:,} estimates rest on a few draws, so that their errors are "
            "uncertain, too (they are widened): take more draws, a smaller width, or method='exact'",
            SamplingWarning,
        )
    found = slope_bars(plan, threads) if gradient else (None, None)
    return Estimate(value, error, doubtful, method_used(plan), plan.details, plan.kernel, *found)


def method_used(plan: Plan) -> Method:
    """Return the method of a plan; a mixed one where new rows had no exact value."""
    estimator = plan.estimator
    return plan.method if estimator is None or isinstance(plan.method, MonteCarlo) else Mixed(estimator)


def slopes(plan: Plan, threads: int | None) -> dict[str, FloatArray]:
    """Return the derivative of the matrix in each parameter."""
    names = list(plan.kernel.params)

    def compute(tile: Any) -> list[FloatArray]:
        found = plan.evaluator.gradients(plan.kernel, tile)
        return [found[name] for name in names]

    found: Any = plan.filled(compute, len(names), threads) if names else []
    return {name: plan.spread(matrix) for name, matrix in zip(names, found, strict=True)}


def slope_bars(plan: Plan, threads: int | None) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Return the derivative of the matrix in each parameter, and its errors."""
    names = list(plan.kernel.params)

    def compute(tile: Any) -> list[FloatArray]:
        found = plan.evaluator.gradient_bars(plan.kernel, tile)
        return [part for name in names for part in found[name]]

    found = [plan.spread(matrix) for matrix in plan.filled(compute, 2 * len(names), threads)] if names else []
    return dict(zip(names, found[::2], strict=True)), dict(zip(names, found[1::2], strict=True))


def barred(
    plan: Plan, tol: float | None, normalize: bool, threads: int | None
) -> tuple[FloatArray, FloatArray, Mask, Plan]:
    """Return values, errors, which of them are doubtful, and the plan: with more draws where ``tol`` asks for it."""
    while True:
        found = plan.filled(lambda tile, p=plan: bar_matrices(p, tile), 3, threads)
        value, error, doubtful = (plan.spread(matrix) for matrix in found)
        if normalize:
            value, error = normalized(plan, value, error)
        if tol is None or plan.estimator is None or error.max(initial=0.0) <= tol:
            return value, error, doubtful > 0, plan
        plan = plan.with_estimator(more_draws(plan, plan.estimator, error, tol))


def bar_matrices(plan: Plan, tile: Any) -> list[FloatArray]:
    """Return values, errors and doubts of a tile as matrices."""
    bars = plan.evaluator.bars(plan.kernel, tile)
    return [bars.value, bars.error, bars.doubtful.astype(np.float64)]


def normalized(plan: Plan, value: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return values divided by the lengths of both embeddings, and what the errors of all three add up to."""
    (left, left_error), (right, right_error) = lengths(plan, np.diagonal(value).copy() if plan.symmetric else None)
    scale = np.sqrt(np.outer(np.where(left > 0, left, np.inf), np.where(right > 0, right, np.inf)))
    relative = (left_error / np.where(left > 0, left, np.inf))[:, None] ** 2
    relative = relative + (right_error / np.where(right > 0, right, np.inf))[None, :] ** 2
    return value / scale, np.sqrt(error**2 + value**2 * relative / 4) / scale


def soonest(plan: Plan, tol: float, normalize: bool) -> Plan:
    """Return the plan with the draws, and exact moments if their degree was left open, that reach ``tol`` the soonest.

    Tried on a few of the rankings: errors are measured there, and the time that it takes to lower them is known.
    """
    if not (isinstance(plan.method, MonteCarlo) and plan.estimator is not None and all(plan.shape)):
        return plan
    open_degree = getattr(getattr(plan.asked, "estimate", plan.asked), "moments", 0) == "auto"
    some = [side[np.unique(np.linspace(0, len(side) - 1, PILOT_ROWS).astype(int))] for side in (plan.X, plan.Y)]
    few = replace(plan, X=some[0], Y=some[0] if plan.symmetric else some[1], rows=None, columns=None)
    best, least = plan, np.inf
    for degree in range(int(plan.method.moments), -1 if open_degree else int(plan.method.moments) - 1, -1):
        for times in PILOT_TIMES:
            method = replace(plan.method, moments=degree, n_draws=times * plan.method.n_draws)
            tried = replace(few, method=method)
            _, error, _, _ = barred(tried, None, normalize, None)
            if error.max(initial=0.0) > tol:
                try:
                    method = more_draws(tried, method, error, tol)
                except ExactnessError:
                    continue
            seconds = estimate_seconds(method, plan.kernel, plan.X.n_items, *plan.distinct.shape)
            if seconds < least:
                best, least = plan.with_estimator(method), seconds
    return best


def more_draws(plan: Plan, method: MonteCarlo, error: FloatArray, tol: float) -> MonteCarlo:
    """Return the method with so many draws more that no error should be above ``tol``.

    The bias of a ranking with itself falls with the number of draws, the standard error also with that of replicates,
    which cost less.
    """
    worst = float(error.max())
    own = same_rankings(plan)
    biased = float(error[own].max(initial=0.0)) if own is not None else 0.0
    if biased > tol and method.diagonal == "embedding" and method.n_draws < MOST_DRAWS:
        wanted = 1.2 * method.n_draws * min(biased / tol, 8.0)
        return replace(method, n_draws=int(min(2 * -(-wanted // 2), MOST_DRAWS)))
    if method.replicates >= MOST_REPLICATES or biased > tol:
        raise ExactnessError(
            f"{method} leaves a standard error of {worst:.2g}, above tol={tol:g}; accept a larger tol, or use "
            "method='exact'"
        )
    # The variance goes down as one over the number of replicates; the factor covers the error of the error.
    wanted = 1.2 * method.replicates * min(worst / tol, float(MOST_REPLICATES)) ** 2
    return replace(method, replicates=int(min(max(np.ceil(wanted), method.replicates + 1), MOST_REPLICATES)))


def same_rankings(plan: Plan) -> Any:
    """Return which entries are of a ranking with itself or an equal one; None if there are none."""
    if plan.symmetric:
        rows = np.arange(len(plan.X)) if plan.rows is None else plan.rows
        return np.equal.outer(rows, rows)
    return None

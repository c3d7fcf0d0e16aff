"""The Gram matrix as people ask for it: value, standard error, derivative, and what was done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankernel._utils.arrays import FloatArray, Mask
from rankernel._utils.checks import check_flag, check_number, short_repr
from rankernel._utils.memory import check_memory
from rankernel._utils.notebook import html_card
from rankernel.errors import SamplingWarning, warn
from rankernel.gram.blocks import fill_gram, slices, tiles
from rankernel.gram.methods import Method, Mixed, MonteCarlo
from rankernel.gram.normalize import lengths, own_numbers, scale_strip, warn_if_estimated
from rankernel.gram.tolerance import Measured, measured, within
from rankernel.kernels.base import Kernel

if TYPE_CHECKING:
    from rankernel.gram.plan import Plan

STRIP = 128  # rows that are divided by lengths at a time: a few copies of them are held


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
    unreliable : array of bool
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
    unreliable: Mask
    method: Method
    details: str
    kernel: Kernel
    gradient: dict[str, FloatArray] | None = None
    gradient_stderr: dict[str, FloatArray] | None = None


# ---------------------------------------------------------------------- the matrix alone


def gram_into(plan: Plan, out: Any, dtype: DTypeLike, normalize: bool, n_jobs: int | None) -> NDArray[Any]:
    """Return the Gram matrix of a plan: see :meth:`Kernel.gram`."""
    check_flag("normalize", normalize)
    if out is None:
        check_float("dtype", dtype)
        check_memory(plan.shape, dtype)
        out = np.empty(plan.shape, dtype=dtype)
    check_output(out, plan.shape)
    if isinstance(out, np.ndarray):
        matrix = out.view(np.ndarray)  # of a memory map, too
        fill_gram(matrix, plan.evaluator, plan.kernel, plan.rows, plan.columns, plan.symmetric, n_jobs)
    else:
        fill_store(out, plan, n_jobs)
    if normalize:
        known = np.array(np.diagonal(out), dtype=np.float64) if isinstance(out, np.ndarray) and plan.symmetric else None
        sides, own = lengths(plan, known), own_numbers(plan)
        warn_if_estimated(plan, sides)
        for strip in slices(out.shape[0], chunk_rows(out)):
            out[strip] = scale_strip(out[strip], strip, sides, own)
    return cast(NDArray[Any], out)


def check_float(name: str, dtype: DTypeLike) -> None:
    """Refuse numbers that cannot hold kernel values."""
    try:
        kind = None if dtype is None else np.dtype(dtype)
    except (TypeError, ValueError):
        kind = None
    if kind not in (np.float64, np.float32):
        raise TypeError(
            f"{name}={short_repr(dtype if kind is None else kind)} cannot hold kernel values; use float64 or float32"
        )


def check_output(out: Any, shape: tuple[int, int]) -> None:
    """Refuse an output of another shape or kind, or one that may not be written."""
    if not (hasattr(out, "shape") and hasattr(out, "dtype") and hasattr(out, "__setitem__")):
        raise TypeError(
            f"out={short_repr(out)} is not possible; give an array, a memory map or a zarr array to write into"
        )
    if tuple(out.shape) != shape:
        raise ValueError(f"out has shape {out.shape}; this Gram matrix has shape {shape}")
    check_float("the dtype of out", out.dtype)
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise ValueError("out is read-only; give an array, or a memory map opened with mode 'r+' or 'w+'")


def fill_store(out: Any, plan: Plan, n_jobs: int | None) -> None:
    """Fill a matrix that is no array in memory (zarr, h5py), from one thread, as few of its chunks apart as possible.

    Two threads that write into one chunk of such a matrix would overwrite each other's work.
    """
    chunks = getattr(out, "chunks", None)
    for rows, columns in tiles(*plan.shape, plan.side(int(max(chunks)) if chunks else None), plan.symmetric):
        value = plan.block(rows, columns, n_jobs)
        out[rows, columns] = value.astype(out.dtype)
        if plan.symmetric and rows != columns:
            out[columns, rows] = np.ascontiguousarray(value.T).astype(out.dtype)


def chunk_rows(out: Any) -> int:
    """Return how many rows of a matrix are best read and written at once."""
    chunks = getattr(out, "chunks", None)
    return int(chunks[0]) if chunks else STRIP


# ---------------------------------------------------------------------- with errors


def estimated(plan: Plan, tol: float | None, gradient: bool, normalize: bool, n_jobs: int | None) -> Estimate:
    """Return the matrix of a plan with its standard error: see :meth:`Kernel.estimate`."""
    check_flag("gradient", gradient)
    if check_flag("normalize", normalize) and gradient:
        raise ValueError("the derivative of the normalised kernel is not available; use normalize=False")
    several = plan.rows is not None or plan.columns is not None
    n_matrices = (3 + 2 * len(plan.kernel.params) * gradient) * (1 + several)
    check_memory(plan.shape, np.float64, n_matrices=n_matrices)
    if tol is None:
        found = measured(plan, normalize, n_jobs)
    else:
        check_number("tol", tol, 0, above=True)
        found = within(plan, tol, normalize, n_jobs)
    plan, bars = found.plan, found.bars
    if found.sides is not None:
        warn_if_estimated(plan, found.sides)
    if bars.unreliable.any():
        warn(
            f"{int(bars.unreliable.sum()):,} of {bars.unreliable.size:,} estimates rest on a few draws, so that their "
            "errors are uncertain, too (they are widened): take more draws, a smaller width, or method='exact'",
            SamplingWarning,
        )
    slope = slope_bars(plan, n_jobs) if gradient else (None, None)
    return Estimate(bars.value, bars.error, bars.unreliable, *what_was_done(found), plan.kernel, *slope)


def what_was_done(found: Measured) -> tuple[Method, str]:
    """Return the method, a mixed one where some values are exact and others not, and the same in words."""
    plan, estimator = found.plan, found.estimator
    if estimator is None or isinstance(plan.method, MonteCarlo):
        return plan.method, plan.details
    lengths_only = f"; lengths: {estimator}" if plan.estimator is None else ""
    return Mixed(estimator), plan.details + lengths_only


def slopes(plan: Plan, n_jobs: int | None) -> dict[str, FloatArray]:
    """Return the derivative of the matrix in each parameter."""
    names = list(plan.kernel.params)

    def compute(tile: Any) -> list[FloatArray]:
        found = plan.evaluator.gradients(plan.kernel, tile)
        return [found[name] for name in names]

    found: Any = plan.filled(compute, len(names), n_jobs) if names else []
    return {name: plan.spread(matrix) for name, matrix in zip(names, found, strict=True)}


def slope_bars(plan: Plan, n_jobs: int | None) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Return the derivative of the matrix in each parameter, and its errors."""
    names = list(plan.kernel.params)

    def compute(tile: Any) -> list[FloatArray]:
        found = plan.evaluator.gradient_estimates(plan.kernel, tile)
        return [part for name in names for part in found[name]]

    found = [plan.spread(matrix) for matrix in plan.filled(compute, 2 * len(names), n_jobs)] if names else []
    return dict(zip(names, found[::2], strict=True)), dict(zip(names, found[1::2], strict=True))

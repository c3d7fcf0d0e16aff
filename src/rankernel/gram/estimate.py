"""The Gram matrix as people ask for it: value, standard error, derivative, and what was done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankernel.errors import ExactnessError
from rankernel.gram.blocks import fill, stretches
from rankernel.gram.choose import Choice, choose
from rankernel.gram.compute import computed, gradients
from rankernel.gram.evaluator import Evaluator, FloatArray
from rankernel.gram.memory import check_memory, strips
from rankernel.gram.methods import Method, MethodLike
from rankernel.gram.monte_carlo import MonteCarlo
from rankernel.gram.partial_orders import Data
from rankernel.gram.problem import Problem, pose
from rankernel.gram.uncertainty import enough_draws, errors
from rankernel.kernels.base import Kernel

__all__ = ["Estimate", "diagonal", "diagonal_tiles", "estimate", "gram", "gram_path", "log_gram"]

DIAGONAL_TILE = 32


@dataclass(frozen=True, eq=False)
class Estimate:
    """A Gram matrix, and how sure it is.

    Attributes
    ----------
    value : array
        The Gram matrix.
    stderr : array
        The standard error of each entry; 0 where it is exact.
    method : Exact, Enumeration, Mixed or MonteCarlo
        What was done, nothing left open.
    details : str
        The same in words.
    kernel : Kernel
        The kernel, its width a number.
    gradient : dict of arrays, or None
        The derivative in each parameter, if it was asked for.

    Examples
    --------
    >>> from rankernel import Mallows, Rankings
    >>> estimate = Mallows(nu=1.0).estimate(Rankings([[0, 1], [1, 0]]), gradient=True)
    >>> estimate.value[0, 1].round(4), estimate.gradient["nu"][0, 1].round(4), estimate.stderr[0, 1]
    (np.float64(0.3679), np.float64(-0.3679), np.float64(0.0))
    """

    value: NDArray[Any]
    stderr: FloatArray
    method: Method
    details: str
    kernel: Kernel
    gradient: dict[str, FloatArray] | None = None


def gram(
    kernel: Kernel,
    X: Any,
    Y: Any = None,
    method: MethodLike = "auto",
    normalize: bool = False,
    out: Any = None,
    dtype: DTypeLike = np.float64,
    threads: int | None = None,
) -> NDArray[Any]:
    """Return the Gram matrix of partial rankings: see :meth:`Kernel.gram`.

    ``out`` may be anything that slices are assigned to: an array, a memory map, a zarr array.
    """
    problem = pose(kernel, X, Y, method)
    if out is None:  # before anything is drawn
        check_memory(problem.shape, dtype, problem.entries_held)
    value, (chosen, _) = attempted(problem, method, lambda choice: computed(problem, choice[1], out, dtype, threads))
    return normalized(value, problem, chosen) if normalize else value


def estimate(
    kernel: Kernel,
    X: Any,
    Y: Any = None,
    method: MethodLike = "auto",
    normalize: bool = False,
    gradient: bool = False,
    tol: float | None = None,
    threads: int | None = None,
) -> Estimate:
    """Return the Gram matrix with its standard error: see :meth:`Kernel.estimate`.

    ``gradient=True`` adds the derivative in each parameter; ``tol`` chooses the number of draws so that no standard
    error is above it (``method.n_draws`` says how many it took).
    """
    problem = pose(kernel, X, Y, method)
    if normalize and gradient:
        raise ValueError("the derivative of the normalised kernel is not available; use normalize=False")
    n_matrices = 2 + (len(problem.kernel.params) if gradient else 0)
    check_memory(problem.shape, np.float64, n_matrices * problem.entries_held, n_matrices)
    value, (chosen, evaluator) = attempted(
        problem, method, lambda choice: computed(problem, choice[1], None, np.float64, threads)
    )
    if tol is not None and isinstance(chosen, MonteCarlo):
        chosen, evaluator = enough_draws(problem, chosen, tol, threads)
        value = computed(problem, evaluator, None, np.float64, threads)
    error = problem.spread(errors(problem, (chosen, evaluator), threads))
    slopes = gradients(problem, evaluator, threads) if gradient else None
    if normalize:
        scale = normalized(np.ones(value.shape), problem, chosen)
        value, error = value * scale, error * scale
    return Estimate(value, error, chosen, evaluator.description, problem.kernel, slopes)


def log_gram(kernel: Kernel, X: Any, Y: Any = None, threads: int | None = None) -> FloatArray:
    """Return the logarithm of the exact Gram matrix: see :meth:`Kernel.log_gram`."""
    problem = pose(kernel, X, Y, "exact")
    check_memory(problem.shape, np.float64, problem.entries_held)
    _, evaluator = choose(problem.kernel, problem.X, problem.Y, "exact")
    value = np.empty((len(problem.X), len(problem.Y)))
    fill([value], lambda tile: [evaluator.logs(problem.kernel, tile)], evaluator.tile_side, problem.symmetric, threads)
    return problem.spread(value)


def gram_path(
    kernel: Kernel, X: Any, Y: Any = None, method: MethodLike = "auto", threads: int | None = None, **grid: Any
) -> FloatArray:
    """Return the Gram matrices of a kernel along a grid of one parameter, the rankings looked at only once.

    Examples
    --------
    >>> from rankernel import Mallows, Rankings
    >>> ballots = Rankings.from_orders([["a", "b"], ["b", "a"]])
    >>> gram_path(Mallows(), ballots, nu=[0.0, 1.0])[:, 0, 1]
    array([1.        , 0.36787944])
    """
    if len(grid) != 1:
        raise ValueError(f"a path goes along one parameter; give one, such as nu=[0.1, 0.2], not {len(grid)}")
    ((name, values),) = grid.items()
    kernels = [kernel.replace(**{name: float(value)}) for value in values]
    if not kernels:
        raise ValueError(f"{name} is empty; a path needs at least one value")
    problem = pose(kernels[0], X, Y, method)
    check_memory(problem.shape, np.float64, len(kernels) * problem.entries_held, len(kernels))
    _, evaluator = choose(problem.kernel, problem.X, problem.Y, method)
    out = np.empty((len(kernels), len(problem.X), len(problem.Y)))
    fill(list(out), lambda tile: list(evaluator.values(kernels, tile)), evaluator.tile_side, problem.symmetric, threads)
    return np.stack([problem.spread(matrix) for matrix in out])


# ---------------------------------------------------------------------- steps


def attempted(
    problem: Problem, method: MethodLike, compute: Callable[[Choice], NDArray[Any]]
) -> tuple[NDArray[Any], Choice]:
    """Return what is computed and how; some formulas find out only at a given width that they are not accurate."""
    choice = choose(problem.kernel, problem.X, problem.Y, method)
    try:
        return compute(choice), choice
    except ExactnessError:
        if method != "auto" or isinstance(choice[0], MonteCarlo):
            raise
    choice = choose(problem.kernel, problem.X, problem.Y, MonteCarlo())
    return compute(choice), choice


def normalized(value: NDArray[Any], problem: Problem, method: Method) -> NDArray[Any]:
    """Return the same matrix, now divided by the lengths of the embeddings of its rows and columns."""
    rows = np.sqrt(diagonal_of(problem.kernel, problem.X, method))
    columns = rows if problem.symmetric else np.sqrt(diagonal_of(problem.kernel, problem.Y, method))
    rows = rows if problem.rows is None else rows[problem.rows]
    columns = columns if problem.columns is None else columns[problem.columns]
    for strip in strips(value):
        value[strip] = value[strip] / rows[strip, None] / columns
    return value


def diagonal(kernel: Kernel, X: Any, method: MethodLike = "auto") -> FloatArray:
    """Return the kernel of each ranking with itself, without the rest of the matrix.

    Examples
    --------
    >>> from rankernel import Kendall, Rankings
    >>> diagonal(Kendall(), Rankings.from_orders([["a", "b", "c"], ["a"]]))
    array([1.        , 0.66666667])
    """
    problem = pose(kernel, X, None, method)
    chosen, _ = choose(problem.kernel, problem.X, problem.X, method)
    values = diagonal_of(problem.kernel, problem.X, chosen)
    return values if problem.rows is None else values[problem.rows]


def diagonal_of(kernel: Kernel, X: Data, method: Method) -> FloatArray:
    """Return the diagonal for distinct rankings, from small tiles along it."""
    _, evaluator = choose(kernel, X, X, method)
    out = np.empty(len(X))
    for rows in diagonal_tiles(len(X), evaluator):
        out[rows] = np.diagonal(evaluator.values([kernel], (rows, rows))[0])
    return out


def diagonal_tiles(n_rankings: int, evaluator: Evaluator) -> Iterator[slice]:
    """Return small tiles along the diagonal."""
    return stretches(n_rankings, min(evaluator.tile_side, DIAGONAL_TILE))

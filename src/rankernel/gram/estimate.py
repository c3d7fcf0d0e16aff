"""The Gram matrix as people ask for it: value, standard error, derivative, and what was done."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankernel.completions.streams import stream_key
from rankernel.errors import ExactnessError, IndefiniteKernelWarning, RankingError
from rankernel.gram.blocks import fill, run
from rankernel.gram.by_monte_carlo import MonteCarloEvaluator
from rankernel.gram.choose import Choice, choose
from rankernel.gram.evaluator import Evaluator, FloatArray, Tile
from rankernel.gram.memory import check_memory, fill_store, spread_into, strips
from rankernel.gram.methods import Exact, Method, MethodLike
from rankernel.gram.monte_carlo import MonteCarlo
from rankernel.gram.partial_orders import Data, PartialOrders, as_data, check_same_items
from rankernel.kernels.base import Kernel
from rankernel.kernels.exponential import Exponential
from rankernel.rankings import Rankings, first_and_inverse

__all__ = ["Estimate", "diagonal", "estimate", "gram", "gram_path", "log_gram"]

FEWEST_BLOCKS = 8  # below, the spread between blocks of draws says too little about the error
REPLICATES = 8
PILOT = 32
MOST_DRAWS = 2**16
DIAGONAL_TILE = 32
MOSTLY_DISTINCT = 0.8


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
    """

    value: NDArray[Any]
    stderr: FloatArray
    method: Method
    details: str
    kernel: Kernel
    gradient: dict[str, FloatArray] | None = None


@dataclass(frozen=True)
class Problem:
    """One Gram matrix to compute: distinct rankings, and where each of them stands."""

    kernel: Kernel
    X: Data
    Y: Data
    rows: NDArray[np.intp] | None
    columns: NDArray[np.intp] | None

    @property
    def symmetric(self) -> bool:
        """Whether rows and columns are the same rankings."""
        return self.Y is self.X

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix of all rankings."""
        return (
            len(self.X) if self.rows is None else len(self.rows),
            len(self.Y) if self.columns is None else len(self.columns),
        )

    @property
    def all_distinct(self) -> bool:
        """Whether the matrix of the distinct rankings is that of all rankings."""
        return self.rows is None and self.columns is None

    @property
    def entries_held(self) -> int:
        """How many numbers are held to get the matrix: those of the distinct rankings, too, where some are equal."""
        n_rows, n_columns = self.shape
        return n_rows * n_columns + (0 if self.all_distinct else len(self.X) * len(self.Y))

    def spread(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Return the matrix of all rankings from that of the distinct ones."""
        if self.all_distinct:
            return matrix
        out = np.empty(self.shape, dtype=matrix.dtype)
        spread_into(out, matrix, self.rows, self.columns)
        return out


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


def pose(kernel: Kernel, X: Any, Y: Any, method: MethodLike) -> Problem:
    """Return the problem with a resolved kernel and distinct rankings, having warned of what cannot be promised."""
    left = settled(as_data(X))
    right = left if Y is None or Y is X else settled(as_data(Y))
    if left.n_items != right.n_items:
        raise RankingError(
            f"X is about {left.n_items} items and Y about {right.n_items}; both must rank the same items"
        )
    check_same_items(X, Y)
    resolved = kernel.resolve(X)
    warn_if_indefinite(resolved, left.n_items)
    if isinstance(method, MonteCarlo) and method.distinct_rows:
        return Problem(resolved, left, right, None, None)
    X_distinct, rows = distinct(left)
    if right is left:
        return Problem(resolved, X_distinct, X_distinct, rows, rows)
    Y_distinct, columns = distinct(right)
    return Problem(resolved, X_distinct, Y_distinct, rows, columns)


def settled(X: Data) -> Data:
    """Return rankings with rows that say nothing (at most one bucket) written in one way: all items tied."""
    if isinstance(X, PartialOrders):
        return X
    nothing = (X.n_buckets <= 1) & (X.n_free > 0)
    if not nothing.any():
        return X
    return Rankings._trusted(np.where(nothing[:, None], 0, X.ranks).astype(np.int32), X.items, X.counts)


def distinct(X: Data) -> tuple[Data, NDArray[np.intp] | None]:
    """Return the distinct rankings, and which of them each row is; None if nearly all rows are distinct.

    Spreading a matrix of distinct rankings takes a second matrix: not worth it for a few rows less.
    """
    first, inverse = X.first_and_inverse() if isinstance(X, PartialOrders) else first_and_inverse(X.ranks)
    return (X, None) if len(first) > MOSTLY_DISTINCT * len(X) else (X[first], inverse)


def warn_if_indefinite(kernel: Kernel, n_items: int) -> None:
    """Warn where the kernel is not known to be positive semi-definite, with a way out where there is one."""
    if kernel.is_positive(n_items):
        return
    advice = ""
    if isinstance(kernel, Exponential) and kernel.argument.name == "cayley":
        advice = f"; nu={kernel.nearest_valid_nu(n_items):.6g} is the nearest for which it is"
    warnings.warn(
        f"{kernel} is not positive semi-definite on {n_items} items, so a Gram matrix may have negative "
        f"eigenvalues{advice}",
        IndefiniteKernelWarning,
        stacklevel=4,
    )


def computed(problem: Problem, evaluator: Evaluator, out: Any, dtype: DTypeLike, threads: int | None) -> NDArray[Any]:
    """Return the filled matrix, written straight into the output where every ranking is distinct."""

    def write(matrix: NDArray[Any]) -> NDArray[Any]:
        def one(tile: tuple[slice, slice]) -> None:
            evaluator.write(problem.kernel, matrix, tile, problem.symmetric)

        run(one, matrix.shape, evaluator.tile_side, problem.symmetric, threads)
        return matrix

    distinct_shape = len(problem.X), len(problem.Y)
    if out is None:
        check_memory(problem.shape, dtype, problem.entries_held)
        return problem.spread(write(np.empty(distinct_shape, dtype=dtype)))
    if out.shape != problem.shape:
        raise ValueError(f"out has shape {out.shape}; this Gram matrix has shape {problem.shape}")
    if not problem.all_distinct:
        check_memory(distinct_shape, out.dtype)
        spread_into(out, write(np.empty(distinct_shape, dtype=out.dtype)), problem.rows, problem.columns)
    elif isinstance(out, np.ndarray):
        write(out)
    else:

        def compute(tile: Tile) -> list[FloatArray]:
            return [evaluator.values([problem.kernel], tile)[0]]

        fill_store(out, compute, evaluator.tile_side, problem.symmetric, threads)
    return cast(NDArray[Any], out)


def gradients(problem: Problem, evaluator: Evaluator, threads: int | None) -> dict[str, FloatArray]:
    """Return the derivative of the matrix in each parameter."""
    names = list(problem.kernel.params)
    if not names:
        return {}
    outputs = [np.empty((len(problem.X), len(problem.Y))) for _ in names]

    def compute(tile: Tile) -> list[FloatArray]:
        slopes = evaluator.gradients(problem.kernel, tile)
        return [slopes[name] for name in names]

    fill(list(outputs), compute, evaluator.tile_side, problem.symmetric, threads)
    return {name: problem.spread(matrix) for name, matrix in zip(names, outputs, strict=True)}


def errors(problem: Problem, choice: Choice, threads: int | None) -> FloatArray:
    """Return the standard error of each entry of the matrix of distinct rankings."""
    method, evaluator = choice
    out = np.zeros((len(problem.X), len(problem.Y)))
    if not isinstance(evaluator, MonteCarloEvaluator):
        if not isinstance(method, Exact) and "Monte Carlo" in evaluator.description:
            out[:] = np.nan  # a mixture does not say which of its entries are estimates
        return out
    if evaluator.n_groups() >= FEWEST_BLOCKS:
        fill(
            [out],
            lambda tile: [evaluator.errors(problem.kernel, tile)],
            evaluator.tile_side,
            problem.symmetric,
            threads,
        )
        return out
    return spread_of_replicates(problem, evaluator.method, threads)


def spread_of_replicates(problem: Problem, method: MonteCarlo, threads: int | None) -> FloatArray:
    """Return the standard deviation of the estimator over independent repetitions of all draws."""
    runs = []
    for number in range(REPLICATES):
        again = replace(method, seed=int(stream_key(int(method.seed), f"replicate {number}")))  # type: ignore[arg-type]
        _, evaluator = choose(problem.kernel, problem.X, problem.Y, again)
        value = np.empty((len(problem.X), len(problem.Y)))

        def compute(tile: Tile, evaluator: Evaluator = evaluator) -> list[FloatArray]:
            return [evaluator.values([problem.kernel], tile)[0]]

        fill([value], compute, evaluator.tile_side, problem.symmetric, threads)
        runs.append(value)
    return np.asarray(np.std(runs, axis=0, ddof=1))


def enough_draws(problem: Problem, method: MonteCarlo, tol: float, threads: int | None) -> tuple[Method, Evaluator]:
    """Return the method with so many draws that no standard error is above ``tol``."""
    if not tol > 0:
        raise ValueError(f"tol={tol} is not possible; it is the largest standard error, above 0")
    n_draws = PILOT
    while True:
        trial = replace(method, n_draws=n_draws)
        choice = choose(problem.kernel, problem.X, problem.Y, trial)
        worst = float(errors(problem, choice, threads).max(initial=0.0))
        if worst <= tol:
            return choice
        if n_draws >= MOST_DRAWS:
            raise ExactnessError(
                f"{n_draws} draws of each ranking leave a standard error of {worst:.2g}, above tol={tol:g}; "
                "accept a larger tol, or give n_draws"
            )
        # The variance goes down as one over the number of draws; the factor covers the error of the error.
        wanted = 1.2 * n_draws * (worst / tol) ** 2
        n_draws = int(min(max(2 * -(-wanted // 2), 2 * n_draws), MOST_DRAWS))


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
    side = min(evaluator.tile_side, DIAGONAL_TILE)
    out = np.empty(len(X))
    for start in range(0, len(X), side):
        rows = slice(start, min(start + side, len(X)))
        out[rows] = np.diagonal(evaluator.values([kernel], (rows, rows))[0])
    return out

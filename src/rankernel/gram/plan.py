"""The plan of a Gram matrix: everything decided, once, and printable before anything is computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from threading import Lock
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankernel import distances
from rankernel._utils import FloatArray, Indices
from rankernel._utils.checks import (
    as_seed,
    check_array,
    check_flag,
    check_instance,
    check_integer,
    check_number,
    check_numbers,
    stream_key,
)
from rankernel._utils.notebook import html_card
from rankernel._utils.resources import announce_cost, check_memory, n_threads, output_matrix, size_text, slices
from rankernel.completions.linear_extensions import FEW_DOWN_SETS, all_completions
from rankernel.data import check_same_items
from rankernel.errors import (
    Argument,
    ArgumentTypeError,
    ArgumentValueError,
    ExactnessError,
    IndefiniteKernelWarning,
    SamplingWarning,
    warn,
)
from rankernel.gram.estimate import Estimate, estimate, normalize_rows
from rankernel.gram.evaluator import (
    BLOCK_NUMBERS,
    Completions,
    ConstantEvaluator,
    EnumerationEvaluator,
    Evaluator,
    NoExactValue,
    Part,
    RowsEvaluator,
    SumEvaluator,
    block_shape,
    block_slices,
    fill,
    fill_gram,
    single_entries,
    terms,
)
from rankernel.gram.exact.features import linear_evaluator
from rankernel.gram.exact.formulas import formula_evaluator
from rankernel.gram.exact.kendall import kendall_evaluator
from rankernel.gram.montecarlo import DEFAULT, DRAWS_BYTES, MonteCarlo, MonteCarloEvaluator
from rankernel.gram.rows import PartialOrders, Rows, as_rows, check_n_items, rows_by_shape
from rankernel.kernels.algebra import Constant, Scaled, Sum
from rankernel.kernels.base import MEDIAN, AffinePower, Kernel, as_kernel, check_matrix, check_max_items
from rankernel.kernels.diffusion import Diffusion
from rankernel.rankings import Rankings

BLOCK_SIDE = 2048  # rows and columns of a block, unless another size is given
BUILDING = Lock()
MAX_EVALUATIONS = 2**24
OWN_EVALUATIONS = 2**20  # affordable kernel evaluations for the exact value of one ranking with itself: about 10 ms
FEWER_DRAWS = (16, 32)  # numbers of draws that "auto" considers where the default takes long
MAX_STDERR = 1e-3  # root mean square of their standard errors, as a fraction of the largest squared norm
PILOT_ROWS = 24  # rankings on which these are measured

# The module with the formulas for functions of each distance, imported when needed: loading its loops takes time.
FORMULAS = {name: name for name in ("hamming", "cayley", "footrule", "spearman")} | {"kendall": "mallows_free"}


# ---------------------------------------------------------------------- methods


@dataclass(frozen=True)
class Exact:
    """The exact value: in closed form, or by enumeration where there are few completions.

    Enumeration takes the mean over all pairs of completions, which are listed once for each ranking.

    Parameters
    ----------
    limit : int
        The largest number of kernel evaluations that enumeration may take for the whole matrix: the number of
        completions of all rows times that of all columns.
    closed_form : bool
        Whether a closed form is used where there is one; otherwise all values are enumerated, as with
        ``method="enumeration"``.

    Examples
    --------
    >>> from rankernel import Exact, Kendall, Rankings
    >>> Kendall().gram(Rankings([[0, 1, 1], [1, 0, 1]]), method=Exact()).round(3)
    array([[ 0.667, -0.333],
           [-0.333,  0.667]])
    """

    limit: int = MAX_EVALUATIONS
    closed_form: bool = True

    def __post_init__(self) -> None:
        check_integer("limit", self.limit, 0, 2**63 - 1)
        check_flag("closed_form", self.closed_form)

    def __str__(self) -> str:
        return "exact" if self.closed_form else "enumeration of all completions"


@dataclass(frozen=True)
class Auto:
    """The method "auto": exact values if these are affordable, else a Monte Carlo estimate.

    Exact values are affordable if they take at most ``max_seconds`` on one core, or at most ``max_ratio`` times as long
    as the estimate. Both times come from a fixed cost model, so that the decision is the same on every machine.

    Parameters
    ----------
    max_seconds : float
        Affordable time of exact values, in seconds on one core.
    max_ratio : float
        Affordable time of exact values, as a multiple of the time of the estimate.
    fallback : MonteCarlo
        The estimator.

    Examples
    --------
    >>> from rankernel import Auto, Mallows, MonteCarlo, Rankings
    >>> ballots = Rankings([[0, 1, 1], [0, 1, -1]])
    >>> method = Auto(max_seconds=0, max_ratio=0, fallback=MonteCarlo(16))
    >>> print(Mallows(0.5).plan(ballots, method=method).method)
    Monte Carlo, 16 draws per ranking, antithetic coupling, control variates of degree 2, seed 0
    """

    max_seconds: float = 10.0
    max_ratio: float = 20.0
    fallback: MonteCarlo = DEFAULT

    def __post_init__(self) -> None:
        check_number("max_seconds", self.max_seconds, 0)
        check_number("max_ratio", self.max_ratio, 0)
        check_instance("fallback", self.fallback, MonteCarlo, "a MonteCarlo(...)")

    def __str__(self) -> str:
        return "auto"


Method: TypeAlias = Exact | MonteCarlo
MethodLike: TypeAlias = Literal["auto", "exact", "enumeration"] | Method | Auto

EXACT = Exact()
NAMED: dict[str, Method | Auto] = {"auto": Auto(), "exact": EXACT, "enumeration": Exact(closed_form=False)}


def as_method(method: MethodLike) -> Method | Auto:
    """Return the method object for a name or a method object."""
    if isinstance(method, str) and method in NAMED:
        return NAMED[method]
    if isinstance(method, Method | Auto):
        return method
    error = ArgumentValueError if isinstance(method, str) else ArgumentTypeError
    raise error("method", method, f"{', '.join(map(repr, NAMED))} or a method object such as MonteCarlo(n_draws)")


# ---------------------------------------------------------------------- plans


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """How a Gram matrix is computed: the kernel with numeric parameters, the rankings and the resolved method.

    Made by :meth:`Kernel.plan`. A plan computes nothing until one of its methods is called, can be sent to another
    process, and serves new rankings (:meth:`against`) with the same choices.

    Attributes
    ----------
    kernel : Kernel
        The kernel, its parameters numbers.
    method : Exact or MonteCarlo
        The resolved method.
    reason : str
        The reason for not using exact values, if "auto" decided so.

    Examples
    --------
    >>> import rankernel as rk
    >>> train, test = rk.Rankings([[0, 1, 2], [2, 1, 0], [0, 1, 1]]), rk.Rankings([[1, 0, 2]])
    >>> plan = rk.Mallows(nu="median").plan(train)
    >>> plan.gram().shape, plan.against(test).gram().shape
    ((3, 3), (1, 3))
    """

    _repr_html_ = html_card

    kernel: Kernel
    method: Method
    reason: str
    _fallback: MonteCarlo | None  # the estimator of rankings without an exact value; None if that is an error
    _X: Rows  # the distinct rows
    _Y: Rows  # the distinct columns; the same object if rows and columns are the same rankings
    _rows: Part  # the distinct ranking of each row: their indices, or a slice of all if no two rows are equal
    _columns: Part
    _named: Any = None  # data whose items new rankings must have

    # ------------------------------------------------------------------ description

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        return block_shape((len(self._X), len(self._Y)), (self._rows, self._columns))

    @property
    def _symmetric(self) -> bool:
        """Whether rows and columns are the same rankings."""
        return self._Y is self._X

    @property
    def details(self) -> str:
        """How the matrix is computed, in words."""
        return self._evaluator.details

    @property
    def seconds(self) -> float:
        """The approximate time of the matrix, on all cores."""
        evaluator = self._evaluator
        n_rows, n_columns = self.shape if evaluator.direct else (len(self._X), len(self._Y))
        total = evaluator.seconds(n_rows, n_columns) / (2 if self._symmetric else 1)
        n_blocks = -(-max(n_rows, n_columns, 1) // evaluator.block_side)
        return total / min(n_threads(None), n_blocks) + evaluator.preparation / n_threads(None)

    @property
    def bytes(self) -> int:
        """The approximate memory of the matrix in float64, and of the draws of an estimate."""
        return 8 * self.shape[0] * self.shape[1] + self._evaluator.held_bytes

    def __str__(self) -> str:
        of = f"of {count_text(self._X)}"
        if not self._symmetric:
            of = f"between {count_text(self._X)} and {count_text(self._Y)}"
        exact = "" if isinstance(self.method, MonteCarlo) else "exact: "
        seconds = f"approximately {self.seconds:.2g} s" if self.seconds >= 0.01 else "less than 0.01 s"
        lines = [f"{rounded(self.kernel)} {of}", f"{exact}{self.details}"]
        lines += [f"because {self.reason}"] if self.reason else []
        n_rows, n_columns = self.shape
        return "\n  ".join([*lines, f"{n_rows * n_columns:,} entries, {size_text(self.bytes)}, {seconds}"])

    __repr__ = __str__

    # ------------------------------------------------------------------ the matrix

    def gram(
        self, *, out: Any = None, dtype: DTypeLike = np.float64, normalize: bool = False, n_jobs: int | None = None
    ) -> NDArray[Any]:
        """Return the Gram matrix: see :meth:`Kernel.gram`."""
        if normalize is not False:
            check_flag("normalize", normalize)
        self._announce(n_jobs)
        result = output_matrix(out, self.shape, dtype)
        matrix = result.view(np.ndarray)  # also of a memory map
        with np.errstate(under="ignore"):
            fill_gram(matrix, self._evaluator, self.kernel, (self._rows, self._columns), self._symmetric, n_jobs)
            if normalize:
                normalize_rows(self, matrix)
        return result

    def estimate(
        self, *, tol: float | None = None, gradient: bool = False, normalize: bool = False, n_jobs: int | None = None
    ) -> Estimate:
        """Return the Gram matrix with standard errors: see :meth:`Kernel.estimate`."""
        self._announce(n_jobs)
        return estimate(self, tol, gradient, normalize, n_jobs)

    def _log_gram(self, *, n_jobs: int | None = None) -> FloatArray:
        """Return the logarithm of the exact matrix: see :meth:`Kernel.log_gram`."""
        check_memory(self.shape, np.float64)
        found = self._fill(lambda block: [self._evaluator.log_values(self.kernel, block)], 1, n_jobs)
        return self._expand(found[0])

    def _paired(self, *, n_jobs: int | None = None) -> FloatArray:
        """Return the kernel of row i with column i: see :meth:`Kernel.paired`."""
        n_rows, n_columns = self.shape
        if n_rows != n_columns:
            raise ValueError(f"X has {n_rows} rankings and Y has {n_columns}; row i is paired with row i of Y")
        rows, columns = np.arange(len(self._X))[self._rows], np.arange(len(self._Y))[self._columns]
        _, first, inverse = np.unique(rows * len(self._Y) + columns, return_index=True, return_inverse=True)
        rows, columns, evaluator = rows[first], columns[first], self._evaluator
        seconds = evaluator.preparation + evaluator.seconds(len(rows), len(rows)) / max(len(rows), 1)
        announce_cost(f"the kernel of {len(rows):,} pairs of rankings", seconds / n_threads(n_jobs))
        if evaluator.held_bytes <= DRAWS_BYTES:
            found = single_entries(evaluator, self.kernel, rows, columns, n_jobs)
        else:  # with the draws of some pairs at a time, which depend on the ranking only
            found, step = np.empty(len(rows)), max(len(rows) * DRAWS_BYTES // evaluator.held_bytes, 1)
            for part in slices(len(rows), step):
                left, right = self._X[rows[part]], self._Y[columns[part]]
                some = build(self.kernel, left, right, self.method, self._fallback)
                index = np.arange(len(left))
                found[part] = single_entries(some, self.kernel, index, index, n_jobs)
        return np.asarray(found[inverse.ravel()])

    @np.errstate(under="ignore")
    def diagonal(self, *, unbiased: bool = False, n_jobs: int | None = None) -> FloatArray:
        """Return the kernel of each row with itself, without the rest of the matrix.

        Parameters
        ----------
        unbiased : bool
            Whether estimates come from pairs of independent draws. By default they are those on the diagonal of
            :meth:`gram`, which have a positive bias.
        n_jobs : int, optional
            Number of threads.

        Examples
        --------
        >>> from rankernel import Kendall, Rankings
        >>> Kendall().plan(Rankings.from_orders([["a", "b", "c"], ["a"]])).diagonal()
        array([1.        , 0.66666667])
        """
        return self._diagonal_entries(n_jobs, check_flag("unbiased", unbiased))

    # ------------------------------------------------------------------ parts of the matrix

    def block(self, rows: Part, columns: Part, *, n_jobs: int | None = 1) -> FloatArray:
        """Return a block of the matrix, equal to the block of :meth:`gram` to the bit.

        Parameters
        ----------
        rows, columns : slice, array of indices or mask
            The rows and columns of the block.
        n_jobs : int, optional
            Number of threads.
        """
        r, c = as_indices("rows", rows, self.shape[0]), as_indices("columns", columns, self.shape[1])
        distinct_r, distinct_c = np.arange(len(self._X))[self._rows][r], np.arange(len(self._Y))[self._columns][c]
        if self._evaluator.direct:
            return self._oriented_block((distinct_r, distinct_c), (r, c), n_jobs)
        (r, row_of), (c, column_of) = (np.unique(side, return_inverse=True) for side in (distinct_r, distinct_c))
        return self._oriented_block((r, c), (r, c), n_jobs)[row_of.ravel()][:, column_of.ravel()]

    def blocks(
        self, *, side: int | None = None, n_jobs: int | None = None
    ) -> Iterator[tuple[slice, slice, FloatArray]]:
        """Yield the matrix block by block, for matrices that are not held as a whole.

        Yields
        ------
        rows, columns : slice
            The rows and columns of the block. Where rows and columns are the same rankings, only blocks on and above
            the diagonal are computed; the others are their transposes.
        values : array
            The block.

        Examples
        --------
        >>> from rankernel import Kendall
        >>> [(rows, values.sum().item()) for rows, _, values in Kendall().plan([[0, 1], [1, 0]]).blocks()]
        [(slice(0, 2, None), 0.0)]
        """
        for rows, columns in block_slices(*self.shape, self._side(side), self._symmetric):
            yield rows, columns, self.block(rows, columns, n_jobs=n_jobs)

    @np.errstate(under="ignore")
    def times(self, weights: Any, *, n_jobs: int | None = None) -> FloatArray:
        """Return the matrix times a vector or a matrix, ``plan.gram() @ weights``, without holding the matrix.

        The sum over all pairs of voters is ``X.counts @ kernel.plan(X).times(X.counts)``.

        Examples
        --------
        >>> from rankernel import Kendall
        >>> Kendall().plan([[0, 1], [1, 0]]).times([3, 1])
        array([ 2., -2.])
        """
        is_matrix = check_array("weights", weights, "an array of numbers").ndim == 2
        right = check_numbers("weights", weights, (self.shape[1], None) if is_matrix else (self.shape[1],))
        self._announce(n_jobs, holds_matrix=False)
        inside = sum_by_index(right.reshape(len(right), -1), self._columns, len(self._Y))
        out = np.zeros((len(self._X), inside.shape[1]))
        for top, left, block in self._distinct.blocks(n_jobs=n_jobs):
            out[top] += block @ inside[left]
            if self._symmetric and top != left:
                out[left] += block.T @ inside[top]
        return out[self._rows].reshape(self.shape[0], *right.shape[1:])

    def store(
        self,
        path: Any,
        *,
        dtype: DTypeLike = np.float64,
        resume: bool = False,
        overwrite: bool = False,
        progress: Callable[[int, int], object] | None = None,
        side: int | None = None,
        n_jobs: int | None = None,
    ) -> Any:
        """Compute the matrix to disk, whatever its size, and continue where an interrupted run stopped.

        The matrix is equal to that of :meth:`gram` to the bit. Chunks are stored with zarr, which the extra ``zarr``
        installs.

        Parameters
        ----------
        path : path
            The target. A name that ends in ``.zarr`` is a zarr array, whose attributes describe its origin. A name that
            ends in ``.npy`` is a NumPy file; it is written from the zarr chunks when all of them are done, which takes
            the disk space of the matrix twice.
        dtype : dtype
            float64 or float32.
        resume : bool
            Whether to continue an unfinished matrix, if there is one. Kernel, rankings, method, dtype, side and version
            must be the same. Chunks that fail their checksum are computed again, with a warning. A complete zarr
            array is checked in the same way and returned; a complete NumPy file has no record of its origin and is
            refused.
        overwrite : bool
            Whether to replace an existing target, as soon as the new matrix is complete.
        progress : function of (n_done, n_chunks), optional
            Called after each chunk.
        side : int, optional
            Rows and columns of a chunk.
        n_jobs : int, optional
            Number of threads; -1 or None for one thread per core.

        Returns
        -------
        zarr.Array or numpy.memmap
            The matrix, opened for reading.

        Examples
        --------
        >>> import tempfile
        >>> from rankernel import Kendall
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     K = Kendall().plan([[0, 1], [1, 0]]).store(f"{folder}/K.npy")
        ...     print(np.asarray(K))
        [[ 1. -1.]
         [-1.  1.]]
        """
        from rankernel.gram.storage import store_gram

        return store_gram(self, path, dtype, resume, overwrite, progress, side, n_jobs)

    # ------------------------------------------------------------------ other plans with the same choices

    def against(self, new: Any) -> Plan:
        """Return the plan of new rows against these rankings, with the same choices for each new row.

        Where this plan is exact because "auto" chose so, new rows without an exact value are estimated.

        Parameters
        ----------
        new : Rankings, Preferences or integer array
            The new rows, over the same items.
        """
        Z, rows = self._new_rows(new)
        return replace(self, _X=Z, _Y=self._X, _rows=rows, _columns=self._rows)

    def _between(self, new: Any, others: Any = None) -> Plan:
        """Return the plan of other rows and columns (the rows by default) with the same choices."""
        if others is not None:
            return self._between(as_rows(others, "others")).against(as_rows(new, "new"))
        Z, rows = self._new_rows(new)
        plan = replace(self, _X=Z, _Y=Z, _rows=rows, _columns=rows)
        if isinstance(self.method, MonteCarlo) or self._fallback is None:
            return plan
        found = exact_evaluator(self.kernel, Z, Z, self.method, certain=True)
        if isinstance(found, Evaluator):
            return plan._using(found)
        return plan._estimated("these rankings have no exact value")

    def _part(self, rows: Part) -> Plan:
        """Return the plan of some of the rows with themselves, with the same choices."""
        chosen = as_indices("rows", rows, self.shape[0])
        X, index = distinct_rows(self._X[np.arange(len(self._X))[self._rows][chosen]])
        return replace(self, _X=X, _Y=X, _rows=index, _columns=index)

    def _with_kernel(self, kernel: Kernel) -> Plan:
        """Return the plan for a kernel with other parameters; what was computed from the rankings is used again."""
        kernel = as_kernel(kernel)
        exact_only = isinstance(self.method, MonteCarlo) or self._fallback is None
        if exact_only or self._evaluator.is_accurate(kernel):
            return self._using(self._evaluator, kernel=kernel)
        return replace(self, kernel=kernel)._estimated(f"{rounded(kernel)} has no accurate exact value here")

    def _estimated(self, reason: str) -> Plan:
        """Return the plan that estimates all values, and warn."""
        assert self._fallback is not None
        estimator = MonteCarloEvaluator(self._fallback, self.kernel, self._X, self._Y)
        warn(f"{reason}; values are estimated: {estimator.method}", SamplingWarning)
        return self._using(estimator, method=estimator.method)

    # ------------------------------------------------------------------ inside the package

    @property
    def _evaluator(self) -> Evaluator:
        """The evaluator of the matrix, built on first use, and again in each process."""
        with BUILDING:
            if "_built" not in self.__dict__:
                built = build(self.kernel, self._X, self._Y, self.method, self._fallback)
                object.__setattr__(self, "_built", built)
            evaluator: Evaluator = self.__dict__["_built"]
        return evaluator

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_built"}

    def _using(self, evaluator: Evaluator, **changes: Any) -> Plan:
        """Return the plan with some changes and an evaluator that is built already."""
        other = replace(self, **changes)
        object.__setattr__(other, "_built", evaluator)
        return other

    def _announce(self, n_jobs: int | None, holds_matrix: bool = True) -> None:
        """Warn if the matrix takes long or much memory."""
        seconds = self.seconds * n_threads(None) / min(n_threads(n_jobs), n_threads(None))
        what = f"the matrix of {self.shape[0]:,} x {self.shape[1]:,} entries"
        announce_cost(what, seconds, self.bytes if holds_matrix else self._evaluator.held_bytes)

    @property
    def _distinct(self) -> Plan:
        """The plan of the distinct rankings."""
        if isinstance(self._rows, slice) and isinstance(self._columns, slice):
            return self
        return self._using(self._evaluator, _rows=slice(0, len(self._X)), _columns=slice(0, len(self._Y)))

    @property
    def _estimator(self) -> MonteCarlo | None:
        """The estimator of some entries at least; None if all are exact."""
        if isinstance(self.method, MonteCarlo):
            return self.method
        if isinstance(self._evaluator, RowsEvaluator):
            parts = (evaluator for _, evaluator in self._evaluator.groups)
            return next((part.method for part in parts if isinstance(part, MonteCarloEvaluator)), None)
        return None

    def _with_estimator(self, method: MonteCarlo) -> Plan:
        """Return the plan with another estimator."""
        if isinstance(self.method, MonteCarlo):
            return replace(self, method=method)
        return replace(self, _fallback=method)

    def _redrawn(self, times: int) -> Plan | None:
        """Return the plan with other, independent draws; None if nothing is drawn."""
        method = self._estimator
        if method is None:
            return None
        seed = int(stream_key(as_seed(method.rng), f"drawn again {times}") >> np.uint64(1))
        return self._with_estimator(replace(method, rng=seed))

    def _own_evaluators(self, side: int = 0) -> Iterator[tuple[Indices, Evaluator]]:
        """Yield groups of rows (side 0) or columns (side 1), and evaluators of each ranking with itself."""
        X = (self._X, self._Y)[side]
        if isinstance(self.method, MonteCarlo):
            assert isinstance(self._evaluator, MonteCarloEvaluator)
            yield np.arange(len(X)), self._evaluator.of_side(side)
        elif self._symmetric and self._estimator is None:
            yield np.arange(len(X)), self._evaluator
        else:
            yield from own_evaluators(self.kernel, X, self.method, self._fallback)

    def _diagonal_entries(self, n_jobs: int | None, unbiased: bool = False, parameter: str = "") -> FloatArray:
        """Return the kernel of each row with itself, or its derivative; of a symmetric matrix that on its diagonal."""
        out, everything = np.empty(len(self._X)), np.arange(len(self._X))
        for rows, evaluator in [(everything, self._evaluator)] if self._symmetric else self._own_evaluators():
            index = np.arange(len(rows))
            out[rows] = single_entries(evaluator, self.kernel, index, index, n_jobs, unbiased, parameter)
        return out[self._rows]

    def _new_rows(self, new: Any) -> tuple[Rows, Part]:
        """Return the distinct ones of new rankings of the same items, and the distinct ranking of each row."""
        given = as_rows(new, "new")
        check_n_items(given, self._X, "these rankings have", "the new ones")
        check_same_items(self._named, new)
        return distinct_rows(given)

    def _side(self, side: int | None) -> int:
        """Return the side of blocks: as given, else a multiple of the side that suits the evaluator."""
        if side is not None:
            return check_integer("side", side)
        suited = self._evaluator.block_side
        return suited * -(-BLOCK_SIDE // suited)

    def _fill(self, compute: Any, n_matrices: int, n_jobs: int | None) -> FloatArray:
        """Return matrices of the distinct rankings, filled block by block."""
        out, evaluator = np.empty((n_matrices, len(self._X), len(self._Y))), self._evaluator
        fill(list(out), compute, evaluator.side_for(*out.shape[1:]), self._symmetric, n_jobs, evaluator.quick)
        return out

    def _expand(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Return the matrix of all rows from that of the distinct ones."""
        return matrix[self._rows][:, self._columns]

    def _oriented_block(
        self, indices: tuple[Indices, Indices], order: tuple[Indices, Indices], n_jobs: int | None
    ) -> FloatArray:
        """Return a block of distinct rankings, each pair computed in the orientation of the whole matrix.

        In a symmetric matrix the row of a pair is the ranking that comes first by ``order``; the other orientation may
        round differently.
        """
        (rows, columns), (first, second) = indices, order
        out, evaluator = np.empty((len(rows), len(columns))), self._evaluator

        def compute(block: tuple[slice, slice]) -> list[FloatArray]:
            return [evaluator.values(self.kernel, (rows[block[0]], columns[block[1]]))]

        mirrored = self._symmetric and np.array_equal(first, second) and bool((np.diff(first) > 0).all())
        fill([out], compute, evaluator.side_for(*out.shape), mirrored, n_jobs, evaluator.quick)
        if not self._symmetric or mirrored or not len(first) or not len(second) or first.max() <= second.min():
            return out
        plain = self._using(evaluator, _Y=self._X[:])  # a plan that is not symmetric
        transposed = plain._oriented_block((columns, rows), (second, first), n_jobs).T
        return np.where(first[:, None] > second[None, :], transposed, out)


def as_indices(name: str, part: Part, length: int) -> Indices:
    """Return the indices of some rows, given as a slice, indices or a mask."""
    try:
        found = np.arange(length)[part]
    except (IndexError, TypeError, ValueError, OverflowError):
        found = np.empty((0, 0), dtype=np.intp)
    if found.ndim != 1:
        raise ArgumentValueError(name, part, f"a slice, an array of indices below {length}, or a mask")
    return found


def sum_by_index(weights: FloatArray, index: Part, length: int) -> FloatArray:
    """Return the weights of distinct rankings: those of equal rows added."""
    out = np.zeros((length, *weights.shape[1:]))
    np.add.at(out, np.arange(length)[index], weights)
    return out


def distinct_rows(X: Rows) -> tuple[Rows, Part]:
    """Return the distinct rows with their total counts, and the distinct row of each row (a slice if all are)."""
    first, inverse = X.unique_indices()
    return (X, slice(0, len(X))) if len(first) == len(X) else (X._merged(first, inverse), inverse)


# ---------------------------------------------------------------------- making a plan


def make_plan(kernel: Kernel, X: Any, Y: Any = None, method: MethodLike = "auto", paired: bool = False) -> Plan:
    """Return the plan of a Gram matrix: see :meth:`Kernel.plan`."""
    requested = as_method(method)
    left = X.canonical() if isinstance(X, Rankings) else as_rows(X)
    right = left if Y is None or Y is X else as_rows(Y, "Y")
    if right is not left:
        check_n_items(right, left)
        check_same_items(X, Y)
    if MEDIAN in kernel.params.values() and right is not left:
        raise ValueError(
            f"the decay rate of {kernel} depends on the data, and there are two sets of rankings; choose one: "
            "kernel.resolve(train).gram(X, Y), or kernel.plan(train).against(new).gram()"
        )
    kernel = kernel.resolve(X)
    check_matrix(kernel, left.n_items)
    is_psd = kernel.facts(left.n_items).is_psd
    if not is_psd:
        nearest = getattr(kernel, "nearest_valid_nu", None) if is_psd is False else None
        advice = f"; nu={nearest(left.n_items):.6g} is the nearest valid value" if nearest else ""
        known = "is not" if is_psd is False else "is not known to be"
        warn(
            f"{kernel} {known} positive semi-definite on {left.n_items} items, so a Gram matrix may have negative "
            f"eigenvalues{advice}",
            IndefiniteKernelWarning,
        )
    distinct, rows = distinct_rows(left)
    right, columns = (distinct, rows) if right is left else distinct_rows(right)
    left = distinct
    chosen, evaluator, reason = decide(kernel, left, right, requested, paired)
    fallback = requested.fallback if isinstance(requested, Auto) else None
    return Plan(kernel, chosen, reason, fallback, left, right, rows, columns, X)._using(evaluator)


def count_text(X: Rows) -> str:
    """Return the numbers of rankings, voters and items in words."""
    n = len(X)
    repeated = X.n_voters != n
    what = f"{n:,} {'distinct ' * repeated}ranking{'s' * (n != 1)}"
    return f"{what} ({f'{X.n_voters:,} voters, ' * repeated}{X.n_items} items)"


def rounded(kernel: Kernel) -> str:
    """Return a kernel with its parameters rounded to four digits."""
    changes = {name: float(f"{value:.4g}") for name, value in kernel.params.items()}
    return str(kernel.replace(**changes))


# ---------------------------------------------------------------------- decisions


def decide(
    kernel: Kernel, X: Rows, Y: Rows, requested: Method | Auto, paired: bool = False
) -> tuple[Method, Evaluator, str]:
    """Return the resolved method, its evaluator, and the reason of "auto" against exact values.

    If ``paired``, only the entries of row i with column i are needed, which are cheaper than the matrix.
    """
    if isinstance(requested, MonteCarlo):
        estimator = MonteCarloEvaluator(requested, kernel, X, Y)
        return estimator.method, estimator, ""
    if isinstance(requested, Exact):
        return requested, build(kernel, X, Y, requested, None), ""
    share = 1 / max(len(Y), 1) if paired else 0.5 if Y is X else 1.0
    found = exact_evaluator(kernel, X, Y, EXACT, certain=True)
    seconds = found.preparation + share * found.seconds(len(X), len(Y)) if isinstance(found, Evaluator) else math.inf
    if isinstance(found, Evaluator) and seconds <= requested.max_seconds:
        return EXACT, found, ""
    estimator = MonteCarloEvaluator(requested.fallback, kernel, X, Y)
    estimate = estimator.preparation + share * estimator.seconds(len(X), len(Y))
    if isinstance(found, Evaluator):
        if seconds <= requested.max_ratio * estimate:
            return EXACT, found, ""
        reason = f"exact values would take approximately {seconds:.2g} s on one core, the estimate {estimate:.2g} s"
    else:
        reason = str(found)
    if estimate > requested.max_seconds and requested.fallback == DEFAULT and len(X) > 4 * PILOT_ROWS:
        fewer = fewer_draws(kernel, X)
        if fewer is not None:
            reason += f"; {DEFAULT.n_draws} draws would take approximately {estimate:.2g} s on one core, and standard "
            reason += f"errors with {fewer.n_draws} are below {MAX_STDERR:g} of the largest norm"
            estimator = MonteCarloEvaluator(fewer, kernel, X, Y)
    return estimator.method, estimator, reason


def fewer_draws(kernel: Kernel, X: Rows) -> MonteCarlo | None:
    """Return the default method with fewer draws, if a sample of the rankings has small standard errors with it."""
    some = X[np.linspace(0, len(X) - 1, min(len(X), PILOT_ROWS)).astype(np.intp)]
    for n_draws in FEWER_DRAWS:
        method = replace(DEFAULT, n_draws=n_draws)
        evaluator = MonteCarloEvaluator(method, kernel, some, some)
        value, stderr, unreliable = evaluator.estimate_block(kernel, (slice(None), slice(None)))
        between, norm = stderr[~np.eye(len(some), dtype=bool)], np.abs(np.diagonal(value)).max(initial=0.0)
        if not unreliable.any() and np.sqrt(np.mean(between**2)) <= MAX_STDERR * norm:
            return method
    return None


# ---------------------------------------------------------------------- exact values


def exact_evaluator(kernel: Kernel, X: Rows, Y: Rows, method: Exact, certain: bool = False) -> Evaluator | NoExactValue:
    """Return the evaluator of the closed form, or of an enumeration within the limit of the method.

    With ``certain`` a formula whose accuracy is known only after its evaluation does not count.
    """
    closed = closed_form(kernel, X, Y, certain) if method.closed_form else None
    if isinstance(closed, Evaluator):
        return closed
    listed = enumerated(kernel, X, Y, method.limit, FEW_DOWN_SETS if certain else None)
    if closed is None or isinstance(listed, Evaluator):
        return listed
    return NoExactValue(kernel, f"{closed.what}, and {listed.what}")


def closed_form(kernel: Kernel, X: Rows, Y: Rows, certain: bool = False) -> Evaluator | NoExactValue:
    """Return the evaluator of the closed form of every pair, or the reason for its absence."""
    if not len(X) or not len(Y):
        return ConstantEvaluator((len(X), len(Y)))
    if not isinstance(kernel, Sum | Scaled):
        return term_evaluator(kernel, X, Y, certain)
    joint = joint_kendall_evaluator(kernel, X, Y)
    if joint is not None and joint.direct:
        return joint
    parts: list[Evaluator] = []
    for term in terms(kernel):
        result = term_evaluator(term.kernel, X, Y, certain)
        if isinstance(result, NoExactValue):
            return joint or result
        parts.append(result)
    return SumEvaluator(parts)


def joint_kendall_evaluator(kernel: Kernel, X: Rows, Y: Rows) -> Evaluator | None:
    """Return the evaluator of a function of the Kendall distance of rankings without free items; None otherwise."""
    if isinstance(X, PartialOrders) or isinstance(Y, PartialOrders):
        return None
    facts = kernel.facts(X.n_items)
    known = facts.distance == distances.kendall and facts.function is not None
    return kendall_evaluator(kernel, X, Y) if known and X.is_exhaustive() and Y.is_exhaustive() else None


def term_evaluator(kernel: Kernel, X: Rows, Y: Rows, certain: bool) -> Evaluator | NoExactValue:
    """Return the evaluator of a kernel that is neither a sum nor a multiple."""
    if isinstance(kernel, Constant):
        return ConstantEvaluator((len(X), len(Y)))
    facts = kernel.facts(X.n_items)
    mixes_items = facts.form is not None and facts.form.mixes_items
    found = None if mixes_items else joint_kendall_evaluator(kernel, X, Y)
    full = isinstance(X, Rankings) and isinstance(Y, Rankings) and X.is_full() and Y.is_full()
    if found is None and full and not mixes_items:
        check_max_items(kernel, X.n_items)
        sides = Completions.of_full(X.ranks), Completions.of_full(Y.ranks)
        return EnumerationEvaluator(kernel, *sides, "full rankings")
    try:
        has_features = facts.function is None and (facts.form is not None or facts.feature_map is not None)
        if found is None and (has_features or isinstance(facts.function, AffinePower)):
            found = linear_evaluator(kernel, X, Y, FEW_DOWN_SETS if certain else None)
    except ExactnessError as error:
        return NoExactValue(kernel, f"a partial order of {X.n_items} items, which is too large: {error}")
    if found is not None:
        return found
    if isinstance(X, PartialOrders) or isinstance(Y, PartialOrders):
        return NoExactValue(kernel, f"a partial order of {X.n_items} items")
    name = facts.distance.name if facts.distance is not None and facts.function is not None else ""
    module = "diffusion" if isinstance(kernel, Diffusion) else FORMULAS.get(name)
    if module is None:
        return NoExactValue(kernel, f"partial rankings of {X.n_items} items")
    return formula_evaluator(kernel, X, Y, import_module(f"rankernel.gram.exact.{module}").FORMULAS, certain)


def enumerated(
    kernel: Kernel, X: Rows, Y: Rows, limit: int, max_down_sets: int | None = None
) -> EnumerationEvaluator | NoExactValue:
    """Return the evaluator of the mean over all completions, or a reason if these are too many."""
    check_max_items(kernel, X.n_items)
    sides = (X,) if Y is X else (X, Y)
    counts = [
        sum(side.n_completions()) if isinstance(side, Rankings) else side.count(limit, max_down_sets) for side in sides
    ]
    n_evaluations = None if counts[0] is None or counts[-1] is None else counts[0] * counts[-1]
    if n_evaluations is None or n_evaluations > limit:
        number = "too many"
        if n_evaluations is not None:
            large = n_evaluations >= 10**10
            number = f"about 10^{math.floor(math.log10(n_evaluations))}" if large else f"{n_evaluations:,}"
        return NoExactValue(
            kernel, f"enumeration would take {number} evaluations of the kernel (the limit is {limit:,})"
        )
    rows = (
        side.enumerate(limit)
        if isinstance(side, PartialOrders)
        else [all_completions(ranks, limit) for ranks in side.ranks]
        for side in sides
    )
    sets = [Completions.of_sets(each, X.n_items) for each in rows]
    what = "linear extensions" if any(isinstance(side, PartialOrders) for side in sides) else "completions"
    return EnumerationEvaluator(kernel, sets[0], sets[-1], f"enumeration of all {what}")


# ---------------------------------------------------------------------- evaluators


@np.errstate(under="ignore")
def build(kernel: Kernel, X: Rows, Y: Rows, method: Method, fallback: MonteCarlo | None) -> Evaluator:
    """Return the evaluator of a method."""
    if isinstance(method, MonteCarlo):
        return MonteCarloEvaluator(method, kernel, X, Y)
    if fallback is not None and X is not Y:
        return row_evaluator(kernel, X, Y, method, fallback)
    found = exact_evaluator(kernel, X, Y, method, certain=fallback is not None)
    if isinstance(found, NoExactValue):
        raise ExactnessError(f"{found}; use ", Argument("method", DEFAULT), ", or rk.Exact with a higher limit")
    return found


def row_evaluator(kernel: Kernel, Z: Rows, X: Rows, method: Exact, fallback: MonteCarlo) -> Evaluator:
    """Return exact values for new rows that have them with all columns, and estimates for the other rows."""
    closed = closed_form(kernel, Z, X, certain=True)
    if isinstance(closed, Evaluator):
        return closed
    groups = list(exact_groups(kernel, Z, X, method.limit, certain=True))
    estimated = np.sort(np.concatenate([np.empty(0, np.intp), *(rows for rows, found in groups if found is None)]))
    exact = [(rows, found) for rows, found in groups if found is not None]
    if len(estimated):
        estimator = MonteCarloEvaluator(fallback, kernel, Z[estimated], X)
        problem = f"{len(estimated)} of {len(Z)} new rankings have no exact value with the old ones"
        advice = f" and are estimated: {estimator.method}; for one method throughout, use "
        warn((problem, advice, Argument("method", estimator.method)), SamplingWarning)
        exact.append((estimated, estimator))
    return RowsEvaluator((len(Z), len(X)), exact)


def exact_groups(
    kernel: Kernel, Z: Rows, X: Rows | None, limit: int, certain: bool
) -> Iterator[tuple[Indices, Evaluator | None]]:
    """Yield groups of rows with their exact evaluator against all columns, or None.

    Rows of one shape are treated alike. If ``X`` is None, rows are evaluated against themselves, and ``limit`` is the
    number of kernel evaluations for one ranking with itself.
    """
    for rows in rows_by_shape(Z):
        some, one = Z[rows], Z[rows[:1]]
        closed = closed_form(kernel, some, some if X is None else X, certain)
        if isinstance(closed, Evaluator):
            yield rows, closed
            continue
        listed = enumerated(kernel, one, one if X is None else X, limit)
        if isinstance(listed, NoExactValue):
            yield rows, None
            continue
        for part in slices(len(rows), max(BLOCK_NUMBERS // listed.left.ranks.size, 1)):
            some = Z[rows[part]]
            n = len(some) ** 2 if X is None else len(some)
            found = enumerated(kernel, some, some if X is None else X, limit * n)
            assert isinstance(found, Evaluator)
            yield rows[part], found


def own_evaluators(
    kernel: Kernel, X: Rows, method: Exact, fallback: MonteCarlo | None
) -> Iterator[tuple[Indices, Evaluator]]:
    """Yield groups of rankings, and evaluators whose diagonals are the kernel of each ranking with itself.

    Those without an exact value form the last group, which is estimated.
    """
    limit = method.limit if fallback is None else OWN_EVALUATIONS
    estimated = [np.empty(0, dtype=np.intp)]
    for rows, found in exact_groups(kernel, X, None, limit, certain=fallback is not None):
        if found is not None:
            yield rows, found
        else:
            estimated.append(rows)
    rest = np.sort(np.concatenate(estimated))
    if len(rest) and fallback is None:
        raise ExactnessError(
            f"{len(rest)} of {len(X)} rankings have no exact value of {kernel} with themselves; use ",
            Argument("method", "auto"),
            " or ",
            Argument("method", DEFAULT),
        )
    if len(rest) and fallback is not None:
        yield rest, MonteCarloEvaluator(fallback, kernel, X[rest], X[rest])

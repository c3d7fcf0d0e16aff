"""The plan of a Gram matrix: everything that is decided, decided once, and printable before anything is computed.

This is the one place that knows what "auto" means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankernel._utils.arrays import FloatArray, Indices
from rankernel._utils.checks import check_flag, check_integer, check_numbers, short_repr
from rankernel._utils.memory import ALWAYS_FITS, check_memory, size_text
from rankernel._utils.notebook import html_card
from rankernel._utils.rng import as_seed, stream_key
from rankernel.completions.draws import Uniform
from rankernel.completions.partial_orders import FEW_DOWN_SETS
from rankernel.data import check_same_items
from rankernel.errors import ExactnessError, IndefiniteKernelWarning, RankingError, SamplingWarning, warn
from rankernel.gram.blocks import fill, fill_gram, n_threads, slices, tiles
from rankernel.gram.estimate import Estimate, estimated, gram_into
from rankernel.gram.evaluator import Evaluator, Part
from rankernel.gram.exact.choice import NoExactValue, closed_form, enumerated, exact_evaluator
from rankernel.gram.hybrid import HybridEvaluator, by_row, mixed
from rankernel.gram.methods import NAMED, Auto, Enumeration, Exact, Method, MethodLike, Mixed, MonteCarlo, as_method
from rankernel.gram.montecarlo.control_variates import highest_degree
from rankernel.gram.montecarlo.sampled import SampledEvaluator, estimate_seconds
from rankernel.gram.poset_rows import PartialOrders, Rows, as_rows
from rankernel.gram.sums import GramSums, gram_sums, gram_times
from rankernel.kernels import as_kernel
from rankernel.kernels.base import MEDIAN, Kernel, check_matrix
from rankernel.rankings import Rankings

BUILDING = Lock()  # two threads that ask for one evaluator at once wait for each other
EXACT = Exact()
BLOCK = 2048  # rows and columns of a block, unless another size is asked for


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """How a Gram matrix is computed: kernel, rankings and method with nothing left open.

    Made by :meth:`Kernel.plan`; it computes nothing until it is asked. It can be sent to another process.

    Attributes
    ----------
    kernel : Kernel
        The kernel, its width a number.
    method : Exact, Enumeration, Mixed or MonteCarlo
        What will be done.
    details : str
        The same in words.
    reason : str
        Why it is not the exact value, if it could have been and is not.
    seconds : float
        About how long the whole matrix takes, on all threads that it can use.
    bytes : int
        The size of the matrix in float64.
    shape : pair of int
        Its shape.

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
    X: Rows  # the distinct rows
    Y: Rows  # the distinct columns, the same object if they are the same rankings
    rows: Indices | None  # which distinct ranking each row is; None: each its own
    columns: Indices | None
    method: Method
    requested: Method | Auto
    reason: str = ""
    named: Any = None  # data whose items new rankings must have, if it names them

    # ------------------------------------------------------------------ what it says

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        return (
            len(self.X) if self.rows is None else len(self.rows),
            len(self.Y) if self.columns is None else len(self.columns),
        )

    @property
    def symmetric(self) -> bool:
        """Whether rows and columns are the same rankings."""
        return self.Y is self.X

    @property
    def fallback(self) -> MonteCarlo | None:
        """What new rows without an exact value are estimated by, where the exact value was this plan's own choice."""
        return self.rest_by if isinstance(self.method, Exact) else None

    @property
    def rest_by(self) -> MonteCarlo | None:
        """What is estimated by where there is no exact value; None where exact values were asked for."""
        if isinstance(self.method, MonteCarlo):
            return self.method
        if isinstance(self.method, Mixed):
            return settled(self.method.estimate or MonteCarlo(), self.kernel, self.X, self.Y)
        return (
            settled(self.requested.estimate, self.kernel, self.X, self.Y) if isinstance(self.requested, Auto) else None
        )

    @property
    def estimator(self) -> MonteCarlo | None:
        """What some entries at least are estimated by; None where all are exact."""
        if isinstance(self.method, MonteCarlo):
            return self.method
        return self.evaluator.estimator if isinstance(self.evaluator, HybridEvaluator) else None

    @property
    def details(self) -> str:
        """What will be done, in words."""
        return self.evaluator.details

    @property
    def seconds(self) -> float:
        """About how long the whole matrix takes."""
        n_rows, n_columns = self.shape if self.evaluator.direct else (len(self.X), len(self.Y))
        total = self.evaluator.seconds(n_rows, n_columns) / (2 if self.symmetric else 1)
        n_jobs = min(n_threads(None), len(list(slices(max(n_rows, n_columns), self.evaluator.block_side))) or 1)
        return total / n_jobs

    @property
    def bytes(self) -> int:
        """The size of the matrix."""
        return 8 * self.shape[0] * self.shape[1]

    def __str__(self) -> str:
        of = f"of {counted(self.X)}" if self.symmetric else f"between {counted(self.X)} and {counted(self.Y)}"
        exact = "" if isinstance(self.method, MonteCarlo | Mixed) else "exact: "
        seconds = f"about {self.seconds:.2g} s" if self.seconds >= 0.01 else "less than 0.01 s"
        lines = [f"{short(self.kernel)} {of}", f"{exact}{self.details}"]
        lines += [f"because {self.reason}"] if self.reason else []
        n_rows, n_columns = self.shape
        return "\n  ".join([*lines, f"{n_rows * n_columns:,} entries, {size_text(self.bytes)}, {seconds}"])

    __repr__ = __str__

    # ------------------------------------------------------------------ what it computes

    def gram(
        self, out: Any = None, dtype: DTypeLike = np.float64, normalize: bool = False, n_jobs: int | None = None
    ) -> NDArray[Any]:
        """Return the Gram matrix: see :meth:`Kernel.gram`."""
        if out is not None or normalize or self.bytes > ALWAYS_FITS or dtype not in (np.float64, np.float32):
            return gram_into(self, out, dtype, normalize, n_jobs)
        matrix = np.empty(self.shape, dtype=dtype)
        fill_gram(matrix, self.evaluator, self.kernel, self.rows, self.columns, self.symmetric, n_jobs)
        return matrix

    def estimate(
        self, tol: float | None = None, gradient: bool = False, normalize: bool = False, n_jobs: int | None = None
    ) -> Estimate:
        """Return the Gram matrix with its standard error: see :meth:`Kernel.estimate`."""
        return estimated(self, tol, gradient, normalize, n_jobs)

    def diagonal(self, unbiased: bool = False) -> FloatArray:
        """Return the kernel of each row with itself, without the rest of the matrix.

        Parameters
        ----------
        unbiased : bool
            Whether estimates come from pairs of different draws, instead of being those on the diagonal of
            :meth:`gram`, which are too large on average.

        Examples
        --------
        >>> from rankernel import Kendall, Rankings
        >>> Kendall().plan(Rankings.from_orders([["a", "b", "c"], ["a"]])).diagonal()
        array([1.        , 0.66666667])
        """
        check_flag("unbiased", unbiased)
        if not self.symmetric:
            return self.own_values(lambda plan: plan.diagonal(unbiased))
        out = self.evaluator.unbiased_diagonal(self.kernel) if unbiased else None
        if out is None:
            out = np.empty(len(self.X))
            for part in self.diagonal_parts(len(self.X)):
                out[part] = np.diagonal(self.evaluator.values([self.kernel], (part, part))[0])
        return out if self.rows is None else out[self.rows]

    def diagonal_gradient(self) -> dict[str, FloatArray]:
        """Return the derivative of :meth:`diagonal` in each parameter."""
        if not self.symmetric:
            own = self.own_values(lambda plan: np.array(list(plan.diagonal_gradient().values())).T)
            return dict(zip(self.kernel.params, own.T, strict=True))
        found = {name: np.empty(len(self.X)) for name in self.kernel.params}
        for part in self.diagonal_parts(len(self.X)):
            for name, slope in self.evaluator.gradients(self.kernel, (part, part)).items():
                found[name][part] = np.diagonal(slope)
        return found if self.rows is None else {name: slope[self.rows] for name, slope in found.items()}

    def diagonal_parts(self, length: int) -> Iterator[slice]:
        """Return the diagonal in parts: the dearer an entry, the fewer of a tile beside the diagonal are computed."""
        return slices(length, min(self.evaluator.block_side, 64) if self.evaluator.direct else 1)

    def log_gram(self, n_jobs: int | None = None) -> FloatArray:
        """Return the logarithm of the exact matrix: see :meth:`Kernel.log_gram`."""
        check_memory(self.shape, np.float64)
        return self.spread(self.filled(lambda tile: [self.evaluator.log_values(self.kernel, tile)], 1, n_jobs)[0])

    def path(self, n_jobs: int | None = None, **grid: Any) -> FloatArray:
        """Return the matrices along a grid of one parameter, the rankings looked at only once.

        Examples
        --------
        >>> from rankernel import Mallows, Rankings
        >>> ballots = Rankings.from_orders([["a", "b"], ["b", "a"]])
        >>> Mallows(nu=1.0).plan(ballots).path(nu=[0.0, 1.0])[:, 0, 1]
        array([1.        , 0.36787944])
        """
        if len(grid) != 1:
            raise ValueError(f"a path goes along one parameter; give one, such as nu=[0.1, 0.2], not {len(grid)}")
        ((name, values),) = grid.items()
        kernels = [self.kernel.replace(**{name: value}) for value in check_numbers(name, values, (None,)).tolist()]
        if not kernels:
            raise ValueError(f"{name} is empty; a path needs at least one value")
        several = self.rows is not None or self.columns is not None
        check_memory(self.shape, np.float64, n_matrices=len(kernels) * (1 + several))
        if self.fallback is not None and not all(map(self.evaluator.is_accurate, kernels)):
            return np.stack([self.with_kernel(kernel).gram(n_jobs=n_jobs) for kernel in kernels])
        found = self.filled(lambda tile: list(self.evaluator.values(kernels, tile)), len(kernels), n_jobs)
        return np.stack([self.spread(matrix) for matrix in found]) if several else found

    def block(self, rows: Part, columns: Part, n_jobs: int | None = 1) -> FloatArray:
        """Return the block of some rows and columns: what :meth:`gram` has there, to the bit.

        Equal rankings in it are computed once.
        """
        numbers, others = chosen("rows", rows, self.shape[0]), chosen("columns", columns, self.shape[1])
        places = [n if place is None else place[n] for n, place in ((numbers, self.rows), (others, self.columns))]
        if self.evaluator.direct:
            return self.oriented(places, (numbers, others), n_jobs)
        (own, row_of), (other, column_of) = (np.unique(place, return_inverse=True) for place in places)
        return self.oriented((own, other), (own, other), n_jobs)[row_of.ravel()][:, column_of.ravel()]

    def oriented(self, places: Any, order: Any, n_jobs: int | None) -> FloatArray:
        """Return a block of distinct rankings, each pair from the side from which the whole matrix has it.

        Of a symmetric matrix that is the side that comes first by ``order``; the other side may round differently.
        """
        (rows, columns), (first, second) = places, order
        out = np.empty((len(rows), len(columns)))

        def compute(tile: tuple[slice, slice]) -> list[FloatArray]:
            return [self.evaluator.values([self.kernel], (rows[tile[0]], columns[tile[1]]))[0]]

        mirrored = self.symmetric and np.array_equal(first, second) and bool((np.diff(first) > 0).all())
        fill([out], compute, self.evaluator.block_side, mirrored, n_jobs, self.evaluator.quick)
        if not self.symmetric or mirrored or not len(first) or not len(second) or first.max() <= second.min():
            return out
        behind = first[:, None] > second[None, :]
        turned = self.using(self.evaluator, Y=self.X[:])  # a plan that is not symmetric
        return np.where(behind, turned.oriented((columns, rows), (second, first), n_jobs).T, out)

    def blocks(self, side: int | None = None, n_jobs: int | None = None) -> Iterator[tuple[slice, slice, FloatArray]]:
        """Return the matrix block by block, for matrices that are used up as they come.

        Yields
        ------
        rows, columns : slice
            Where the block stands. Where rows and columns are the same rankings, only the blocks on and above the
            diagonal come: the others are their transposes.
        values : array
            The block.

        Examples
        --------
        >>> from rankernel import Kendall
        >>> [(rows, values.sum().item()) for rows, _, values in Kendall().plan([[0, 1], [1, 0]]).blocks()]
        [(slice(0, 2, None), 0.0)]
        """
        for rows, columns in tiles(*self.shape, self.side(side), self.symmetric):
            yield rows, columns, self.block(rows, columns, n_jobs)

    def times(self, weights: Any, n_jobs: int | None = None) -> FloatArray:
        """Return the matrix times a vector or a matrix, ``plan.gram() @ weights``, without holding it.

        Examples
        --------
        >>> from rankernel import Kendall
        >>> Kendall().plan([[0, 1], [1, 0]]).times([3, 1])
        array([ 2., -2.])
        """
        return gram_times(self, weights, n_jobs)

    def sums(self, n_jobs: int | None = None) -> GramSums:
        """Return the row sums, the column sums and the total of the matrix of all voters, without holding it.

        Examples
        --------
        >>> from rankernel import Kendall, Rankings
        >>> sums = Kendall().plan(Rankings([[0, 1], [1, 0]], counts=[3, 1])).sums()
        >>> sums.rows, sums.total, sums.trace
        (array([ 2., -2.]), 4.0, 4.0)
        """
        return gram_sums(self, n_jobs)

    def store(
        self,
        path: Any,
        dtype: DTypeLike = np.float64,
        resume: bool = False,
        overwrite: bool = False,
        progress: Callable[[int, int], object] | None = None,
        side: int | None = None,
        n_jobs: int | None = None,
    ) -> Any:
        """Compute the matrix straight to disk, whatever its size: see ``rankernel.gram.disk.store.store_gram``."""
        from rankernel.gram.disk.store import store_gram

        return store_gram(self, path, dtype, resume, overwrite, progress, side, n_jobs)

    # ------------------------------------------------------------------ other plans from this one

    def against(self, new: Any) -> Plan:
        """Return the plan of new rows against these rankings, with the same decisions whatever the new rows are.

        Where this plan is exact by its own choice, new rows that have no exact value are estimated, each by itself.

        Parameters
        ----------
        new : Rankings, Preferences or integer array
            The new rows, over the same items.
        """
        Z, rows = self.checked(new)
        return replace(self, X=Z, Y=self.X, rows=rows, columns=self.rows, method=self.method_for(Z))

    def between(self, new: Any, others: Any = None) -> Plan:
        """Return the plan of other rows and columns with the same decisions; columns are the rows if left out."""
        if others is not None:
            return self.between(as_rows(others, "others")).against(as_rows(new, "new"))
        Z, rows = self.checked(new)
        method = self.method_for(Z)
        own = replace(self, X=Z, Y=Z, rows=rows, columns=rows, method=method).alone()
        if own.method != method:
            warn(f"these rankings have no exact value here, and are estimated: {own.method}", SamplingWarning)
        return own

    def method_for(self, Z: Rows) -> Method:
        """Return the method, as it is for new rows: draws of partial orders are independent, whatever was settled."""
        method, first = self.method, isinstance(Z, PartialOrders) and not isinstance(self.X, PartialOrders)
        return for_orders(method, Z) if first and isinstance(method, MonteCarlo) else method

    def checked(self, new: Any) -> tuple[Rows, Indices | None]:
        """Return new rankings of the same items, the distinct ones and which of them each row is."""
        if isinstance(self.method, MonteCarlo) and self.method.distinct_rows:
            raise ValueError(
                "new rows are seen apart from the old ones, so draws cannot depend on the row; use "
                "MonteCarlo(distinct_rows=False)"
            )
        given = as_rows(new, "new")
        check_items(given, self.X, "these rankings are", "the new ones")
        check_same_items(self.named, new)
        return distinct(given)

    def part(self, rows: Part) -> Plan:
        """Return the plan of some of the rows alone, with the same decisions."""
        chosen_rows = chosen("rows", rows, self.shape[0])
        if self.rows is not None:
            chosen_rows = self.rows[chosen_rows]
        X, places = distinct(self.X[chosen_rows])
        return replace(self, X=X, Y=X, rows=places, columns=places)

    def with_kernel(self, kernel: Kernel) -> Plan:
        """Return the same plan for a kernel with other parameters; what is known of the rankings is used again."""
        kernel, fallback = as_kernel(kernel), self.fallback
        if fallback is None or self.evaluator.is_accurate(kernel):
            return self.using(self.evaluator, kernel=kernel)
        warn(f"{short(kernel)} has no accurate exact value here, and is estimated: {fallback}", SamplingWarning)
        return replace(self, kernel=kernel, method=fallback)

    def with_estimator(self, method: MonteCarlo) -> Plan:
        """Return the same plan, its estimates by another estimator."""
        if isinstance(self.method, MonteCarlo):
            same_draws = method == replace(self.method, replicates=method.replicates)
            if same_draws and isinstance(self.evaluator, SampledEvaluator):
                return self.using(self.evaluator.with_replicates(method), method=method)
            return replace(self, method=method)
        if isinstance(self.method, Mixed):
            return replace(self, method=Mixed(method))
        assert isinstance(self.requested, Auto)  # an exact plan with rows that have no exact value
        return replace(self, requested=replace(self.requested, estimate=method))

    def redrawn(self, times: int) -> Plan | None:
        """Return the same plan with other draws, independent of these; None where nothing is drawn.

        How much values differ between the two says how sure they are, in whatever they are used for.
        """
        method = self.estimator
        if method is None:
            return None
        seed = int(stream_key(as_seed(method.rng), f"drawn again {times}") >> np.uint64(1))
        return self.with_estimator(replace(method, rng=seed))

    def alone(self) -> Plan:
        """Return the plan of the rows by themselves: exact where that is possible, if this plan was to decide."""
        own, fallback = replace(self, Y=self.X, columns=self.rows), self.fallback
        if fallback is None:
            return own
        found = exact_evaluator(self.kernel, self.X, self.X, EXACT.limit, certain=True)
        return replace(own, method=fallback) if isinstance(found, NoExactValue) else own.using(found)

    def using(self, evaluator: Evaluator, **changes: Any) -> Plan:
        """Return the same plan but for some changes, its tiles made by an evaluator that is there already."""
        other = replace(self, **changes)
        object.__setattr__(other, "_evaluator", evaluator)
        return other

    def own_values(self, of: Callable[[Plan], FloatArray]) -> FloatArray:
        """Return values of each row with itself, in the way that it has by itself: other rows change nothing."""
        rows = replace(self, Y=self.X, rows=None, columns=None)
        if self.fallback is None:
            found = of(rows)
        elif isinstance(closed := closed_form(self.kernel, self.X, self.X, certain=True), Evaluator):
            found = of(rows.using(closed))
        else:
            found = np.concatenate([of(replace(rows, X=one, Y=one).alone()) for one in singles(self.X)])
        return found if self.rows is None else found[self.rows]

    @property
    def distinct(self) -> Plan:
        """The plan of the distinct rankings alone, from which the whole matrix can be spread."""
        if self.rows is None and self.columns is None:
            return self
        return self.using(self.evaluator, rows=None, columns=None)

    # ------------------------------------------------------------------ steps

    @property
    def evaluator(self) -> Evaluator:
        """What makes the tiles, made when it is first needed, again in each process."""
        with BUILDING:
            if not hasattr(self, "_evaluator"):
                object.__setattr__(self, "_evaluator", self.built())
            found: Evaluator = self._evaluator  # type: ignore[attr-defined]
        return found

    def built(self) -> Evaluator:
        """Return the evaluator of the method."""
        if not self.symmetric and isinstance(self.requested, Auto) and isinstance(self.method, Exact):
            return by_row(self.kernel, self.X, self.Y, self.method, self.fallback)
        return evaluator_of(self.kernel, self.X, self.Y, self.method)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_evaluator"}

    def side(self, wanted: int | None = None) -> int:
        """Return the side of blocks: whole tiles, together at least as large as wanted."""
        tile = self.evaluator.block_side
        return tile * -(-(BLOCK if wanted is None else check_integer("side", wanted)) // tile)

    def filled(self, compute: Any, n_matrices: int, n_jobs: int | None) -> FloatArray:
        """Return matrices of the distinct rankings, filled tile by tile."""
        out = np.empty((n_matrices, len(self.X), len(self.Y)))
        fill(list(out), compute, self.evaluator.block_side, self.symmetric, n_jobs, self.evaluator.quick)
        return out

    def spread(self, matrix: FloatArray) -> FloatArray:
        """Return the matrix of all rows from that of the distinct ones."""
        matrix = matrix if self.rows is None else matrix[self.rows]
        return matrix if self.columns is None else matrix[:, self.columns]


def chosen(name: str, part: Part, length: int) -> Indices:
    """Return the numbers of some rows, given as a slice, numbers or a mask."""
    try:
        found = np.arange(length)[part]
    except (IndexError, TypeError, ValueError, OverflowError):
        found = np.empty((0, 0), dtype=np.intp)
    if found.ndim != 1:
        raise ValueError(
            f"{name}={short_repr(part)} is not possible; give a slice, an array of numbers below {length}, or a mask"
        )
    return found


# ---------------------------------------------------------------------- making a plan


def make_plan(kernel: Kernel, X: Any, Y: Any = None, method: MethodLike = "auto") -> Plan:
    """Return the plan of a Gram matrix: see :meth:`Kernel.plan`."""
    asked = NAMED.get(method) if isinstance(method, str) else method
    asked = asked if isinstance(asked, Method | Auto) else as_method(method)
    left = X.canonical() if isinstance(X, Rankings) else as_rows(X)
    right = left if Y is None or Y is X else as_rows(Y, "Y")
    if right is not left:
        check_items(right, left)
        check_same_items(X, Y)
    resolved = with_width(kernel, X, alone=right is left)
    check_matrix(resolved, left.n_items)
    warn_if_indefinite(resolved, left.n_items)
    if isinstance(asked, MonteCarlo) and asked.distinct_rows:
        rows = columns = None
    else:
        left_distinct, rows = distinct(left)
        right, columns = (left_distinct, rows) if right is left else distinct(right)
        left = left_distinct
    chosen_method, evaluator, why = decide(resolved, left, right, asked)
    plan = Plan(resolved, left, right, rows, columns, chosen_method, asked, why, X)
    object.__setattr__(plan, "_evaluator", evaluator)
    return plan


def with_width(kernel: Kernel, X: Any, alone: bool) -> Kernel:
    """Return a kernel whose width is a number; one that depends on the data needs one set of data."""
    if MEDIAN not in kernel.params.values():
        return kernel
    if not alone:
        raise ValueError(
            f"the width of {kernel} depends on the data, and there are two sets of rankings; say which one: "
            "kernel.resolve(train).gram(X, Y), or kernel.plan(train).against(new).gram()"
        )
    return kernel.resolve(X)


def check_items(new: Rows, old: Rows, first: str = "X is", second: str = "Y") -> None:
    """Refuse rankings of another number of items."""
    if new.n_items != old.n_items:
        raise RankingError(
            f"{first} about {old.n_items} items and {second} about {new.n_items}; both must rank the same items"
        )


def distinct(X: Rows) -> tuple[Rows, Indices | None]:
    """Return the distinct rankings, and which of them each row is; None if all rows are distinct."""
    first, inverse = X.unique_indices()
    if len(first) == len(X):
        return X, None
    counts = np.bincount(inverse, X.counts).astype(np.int64)
    some = X[first]
    if isinstance(some, PartialOrders):
        return replace(some, counts=counts), inverse
    return Rankings._trusted(some.ranks, some.items, counts), inverse


def warn_if_indefinite(kernel: Kernel, n_items: int) -> None:
    """Warn where a kernel is not known to be positive semi-definite, with a way out where there is one."""
    is_psd = kernel.facts(n_items).is_psd
    if is_psd:
        return
    nearest = getattr(kernel, "nearest_valid_nu", None)
    advice = f"; nu={nearest(n_items):.6g} is the nearest for which it is" if is_psd is False and nearest else ""
    known = "is not" if is_psd is False else "is not known to be"
    warn(
        f"{kernel} {known} positive semi-definite on {n_items} items, so a Gram matrix may have negative "
        f"eigenvalues{advice}",
        IndefiniteKernelWarning,
    )


def decide(kernel: Kernel, X: Rows, Y: Rows, asked: Method | Auto) -> tuple[Method, Evaluator, str]:
    """Return the method, nothing left open, the evaluator that carries it out, and why it is not the exact one."""
    if not isinstance(asked, Auto):
        method = settled(asked, kernel, X, Y) if isinstance(asked, MonteCarlo) else asked
        return method, evaluator_of(kernel, X, Y, method), ""
    found = exact_evaluator(kernel, X, Y, EXACT.limit, certain=True)
    exact = 0.0 if isinstance(found, NoExactValue) else found.seconds(len(X), len(Y))
    if isinstance(found, Evaluator) and exact <= asked.patience:
        return EXACT, found, ""
    estimate = settled(asked.estimate, kernel, X, Y)
    drawn = estimate_seconds(estimate, kernel, X.n_items, len(X), len(Y))
    if isinstance(found, Evaluator) and exact <= asked.ratio * drawn:
        return EXACT, found, ""
    why = f"exact values would take about {exact:.2g} s of one core, the estimate {drawn:.2g} s"
    return estimate, SampledEvaluator(estimate, kernel, X, Y), str(found) if isinstance(found, NoExactValue) else why


def settled(method: MonteCarlo, kernel: Kernel, X: Rows, Y: Rows) -> MonteCarlo:
    """Return the method with every "auto" replaced: by the kernel and the items, never by the number of rows."""
    coupling, moments = method.coupling, method.control_variates
    uniform = isinstance(method.completions, Uniform)
    orders = isinstance(X, PartialOrders) or isinstance(Y, PartialOrders)
    if orders and coupling not in ("auto", "iid"):
        raise ValueError(
            f"coupling={coupling!r} is for rankings: the linear extensions of a partial order have no reversal "
            "or rotation to couple draws by; use coupling='iid' or 'auto'"
        )
    if orders and moments == 2:
        raise ValueError(
            "control_variates=2 is for rankings: of partial orders the moments of degree 1 are known; use 1, 0 or 'auto'"
        )
    if coupling == "auto":
        coupling = kernel.facts(X.n_items).coupling if uniform and not orders else "iid"
    if moments == "auto":
        moments = highest_degree(kernel, X.n_items) if uniform else 0
        if orders:
            moments = min(moments, known_degree(X.n_items))
    done = copy(method)  # checked already: what is filled in here needs no check
    object.__setattr__(done, "coupling", coupling)
    object.__setattr__(done, "control_variates", moments)
    return done


def for_orders(method: MonteCarlo, X: Rows) -> MonteCarlo:
    """Return a method that was settled for rankings as it is for partial orders."""
    return replace(method, coupling="iid", control_variates=min(int(method.control_variates), known_degree(X.n_items)))


def known_degree(n_items: int) -> int:
    """Return up to which degree the moments of all partial orders of so many items are known at a moderate cost.

    Whatever the orders are: the rows of one matrix must not decide about each other. There are at most 2^n down-sets.
    """
    return 1 if 2**n_items <= FEW_DOWN_SETS else 0


def evaluator_of(kernel: Kernel, X: Rows, Y: Rows, method: Method) -> Evaluator:
    """Return what carries out a method with nothing left open."""
    match method:
        case Exact():
            found = exact_evaluator(kernel, X, Y, method.limit)
            if isinstance(found, NoExactValue):
                raise ExactnessError(f"{found}; use method=MonteCarlo(n_draws), or raise the limit: Exact(limit=...)")
            return found
        case Enumeration():
            listed = enumerated(kernel, X, Y, method.limit)
            if isinstance(listed, NoExactValue):
                raise ExactnessError(
                    f"{kernel}: {listed.what}; use method=MonteCarlo(n_draws), or raise the limit: "
                    "Enumeration(limit=...)"
                )
            return listed
        case MonteCarlo():
            return SampledEvaluator(method, kernel, X, Y)
    auto = Auto() if method.estimate is None else Auto(estimate=method.estimate)
    return mixed(X, Y, lambda some, others: decide(kernel, some, others, auto)[1])


def unbiased_method(method: Method) -> Method:
    """Return the method with an unbiased diagonal, where draws have a bias there."""
    return replace(method, diagonal="unbiased") if isinstance(method, MonteCarlo) else method


def singles(X: Rows) -> Iterator[Rows]:
    """Return the rankings one by one."""
    return (X[row : row + 1] for row in range(len(X)))


def counted(X: Rows) -> str:
    """Return how many rankings there are, in words."""
    n = len(X)
    several = X.n_voters != n
    what = f"{n:,} {'different ' * several}ranking{'s' * (n != 1)}"
    return f"{what} ({f'{X.n_voters:,} voters, ' * several}{X.n_items} items)"


def short(kernel: Kernel) -> str:
    """Return a kernel with the digits that people read."""
    changes = {name: float(f"{value:.4g}") for name, value in kernel.params.items()}
    return str(kernel.replace(**changes))

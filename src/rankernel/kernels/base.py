"""The base class of kernels on rankings.

This folder defines kernels on full rankings, given as integer arrays of ranks (item -> position). How a kernel is
averaged over the completions of partial rankings is decided in :mod:`rankernel.gram`, which :meth:`Kernel.plan` calls.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankernel import _loops
from rankernel._utils import FloatArray, RankArray
from rankernel._utils.checks import check_number, is_number, short_repr
from rankernel._utils.notebook import html_card
from rankernel.distances import STATISTICS, Distance, LinearForm, kendall
from rankernel.errors import ExactnessError
from rankernel.rankings import ranks_for_loops

if TYPE_CHECKING:
    from rankernel.gram.estimate import Estimate
    from rankernel.gram.plan import MethodLike, Plan

MEDIAN = "median"
POSITIVE = (0.0, math.inf)
MATRIX_HELP = (
    "def matrix(self, X, Y): return the kernel between the rows of two integer arrays of full rankings (the position "
    "of each item, from 0), an array of shape (len(X), len(Y))"
)
FACTS_HELP = "rankernel.kernels.Facts(...), such as Facts(is_psd=True)"
GRADIENT_HELP = "def gradient(self, X, Y): return a dictionary with the derivative of matrix(X, Y) in each parameter"


# ---------------------------------------------------------------------- functions of a distance

Distances = NDArray[Any]


@dataclass(frozen=True)
class PowerSeries:
    """The first coefficients of a kernel as a power series in z, and their derivatives in each parameter.

    The distance is ``d = 2 (L - z)``, L half its mean over all pairs of full rankings, and ``coefficients[j]`` belongs
    to ``z ** (j + 1)``. The kernel minus these terms is positive semi-definite. ``constant`` is set if the kernel is
    exactly the constant plus these terms.
    """

    coefficients: tuple[float, ...]
    derivatives: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    constant: float | None = None


class DistanceFunction:
    """A function of a distance."""

    def value(self, d: Distances) -> FloatArray:
        """Return the function at an array of distances."""
        raise NotImplementedError

    def derivatives(self, d: Distances) -> dict[str, FloatArray] | None:
        """Return the derivative in each parameter of the kernel; None for finite differences."""
        return None

    def log_value(self, d: Distances) -> FloatArray:
        """Return the logarithm of the function, or raise an error if it is negative somewhere."""
        values = self.value(d)
        if (values < 0).any():
            raise ExactnessError("the kernel can be negative, so its logarithm is undefined; use gram")
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(values))

    def series(self, distance: Distance, n_items: int) -> PowerSeries | None:
        """Return the first terms of the function as a power series, if they are known."""
        return None


@dataclass(frozen=True)
class AnyFunction(DistanceFunction):
    """Any function of a distance, and optionally its derivative in each parameter."""

    of_distances: Callable[[Distances], FloatArray]
    derivatives_at: Callable[[Distances], dict[str, FloatArray]] | None = None

    def value(self, d: Distances) -> FloatArray:
        """Return the function at an array of distances."""
        return self.of_distances(d)

    def derivatives(self, d: Distances) -> dict[str, FloatArray] | None:
        """Return the derivatives, if they were given."""
        return None if self.derivatives_at is None else self.derivatives_at(d)


@dataclass(frozen=True)
class Decay(DistanceFunction):
    """The function ``exp(-rate * d)``, and the derivative of the rate in each parameter of the kernel."""

    rate: float
    of_parameters: Mapping[str, float] = field(default_factory=dict)

    @np.errstate(under="ignore")
    def value(self, d: Distances) -> FloatArray:
        """Return the exponentials."""
        return np.asarray(np.exp(-self.rate * np.asarray(d)))

    def derivatives(self, d: Distances) -> dict[str, FloatArray]:
        """Return ``-d exp(-rate * d)`` times the derivatives of the rate."""
        derivative = -np.asarray(d) * self.value(d)
        return {name: factor * derivative for name, factor in self.of_parameters.items()}

    def log_value(self, d: Distances) -> FloatArray:
        """Return ``-rate * d``."""
        return np.asarray(-self.rate * np.asarray(d))

    def series(self, distance: Distance, n_items: int) -> PowerSeries | None:
        r"""Return the first coefficients of :math:`e^{-\nu d} = e^{-2 \nu L} \sum_j (2 \nu z)^j / j!`.

        For the Kendall distance products of different pairs make a more accurate series (Mania et al. 2018): :math:`q^d
        = \sum_S a^{P - |S|} b^{|S|} s_S s'_S` over sets S of the P pairs, a = (1+q)/2, b = (1-q)/2, q = exp(-nu); sets
        of one pair add up to 4z, sets of two to 8z² minus a constant.
        """
        if distance.mean is None or n_items < 3:
            return None
        if distance == kendall:
            (one, d_one), (two, d_two) = (set_coefficient(self.rate, math.comb(n_items, 2), size) for size in (1, 2))
            coefficients, derivatives = (4 * one, 8 * two), (4 * d_one, 8 * d_two)
        else:
            norm = distance.mean(n_items) / 2
            scale = math.exp(-2 * self.rate * norm)
            first = 2 * self.rate * scale
            second = self.rate * first  # not rate**2, which may overflow
            coefficients = first, second
            derivatives = 2 * scale - 2 * norm * first, 4 * self.rate * scale - 2 * norm * second
        by_name = {name: (s * derivatives[0], s * derivatives[1]) for name, s in self.of_parameters.items()}
        return PowerSeries(coefficients, by_name)


def set_coefficient(nu: float, n_pairs: int, size: int) -> tuple[float, float]:
    """Return the coefficient of sets of ``size`` pairs in the Mallows kernel, and its derivative in nu."""
    q = math.exp(-nu)
    a, b, rest = (1 + q) / 2, (1 - q) / 2, n_pairs - size
    value = a**rest * b**size
    return value, q / 2 * (size * b ** (size - 1) * a**rest - rest * a ** (rest - 1) * b**size)


@dataclass(frozen=True)
class AffinePower(DistanceFunction):
    """The function ``factor * (intercept + coefficient * d) ** degree``; linear if the degree is 1.

    ``derivatives_at`` returns the derivative in each parameter of the kernel, if that has any.
    """

    intercept: float
    coefficient: float
    degree: int = 1
    factor: float = 1.0
    derivatives_at: Callable[[Distances], dict[str, FloatArray]] | None = field(default=None, compare=False)

    def value(self, d: Distances) -> FloatArray:
        """Return the powers."""
        base = self.intercept + self.coefficient * np.asarray(d, dtype=np.float64)
        return np.asarray(self.factor * base**self.degree)

    def derivatives(self, d: Distances) -> dict[str, FloatArray]:
        """Return the derivatives; none without parameters."""
        return {} if self.derivatives_at is None else self.derivatives_at(d)

    def series(self, distance: Distance, n_items: int) -> PowerSeries | None:
        """Return the binomial series, if all its coefficients are positive."""
        if distance.mean is None or n_items < 3:
            return None
        middle, change = self.intercept + self.coefficient * distance.mean(n_items), -2 * self.coefficient
        if middle < -1e-12 * abs(self.intercept) or change <= 0:
            return None
        middle, m = max(middle, 0.0), self.degree
        terms = [self.factor * math.comb(m, j) * middle ** (m - j) * change**j for j in range(min(m, 2) + 1)]
        return PowerSeries(tuple(terms[1:]), constant=terms[0] if m <= 2 else None)


# ---------------------------------------------------------------------- facts


@dataclass(frozen=True, eq=False)
class Facts:
    """Known properties of a kernel on the full rankings of n items.

    Parameters
    ----------
    is_psd : bool, optional
        Whether the kernel is positive semi-definite; None if unknown.
    max_dimension : float
        An upper bound on the dimension spanned by the features and the constants. The kernel is characteristic only if
        that is n!, the dimension of all functions of a ranking.
    max_items : int, optional
        The largest number of items for which the kernel can be computed.
    distance : Distance, optional
        The kernel is a function of this distance.
    function : DistanceFunction, optional
        That function: ``Decay``, ``AffinePower`` or ``AnyFunction`` of ``rankernel.kernels.base``.
    form : LinearForm, optional
        The kernel is this form in a statistic of two rankings, whose mean over completions is known.
    feature_map : callable, optional
        Returns vectors of full rankings whose inner product the kernel is. Not needed if ``form`` is given.
    coupling : str, optional
        The coupling of Monte Carlo draws with the lowest variance; by default that of the distance, or "iid".
    """

    is_psd: bool | None = None
    max_dimension: float = math.inf
    max_items: int | None = None
    distance: Distance | None = None
    function: DistanceFunction | None = None
    form: LinearForm | None = None
    feature_map: Callable[[RankArray], FloatArray] | None = None
    coupling: str = ""

    def __post_init__(self) -> None:
        if not self.coupling:
            object.__setattr__(self, "coupling", "iid" if self.distance is None else self.distance.coupling)

    def series(self, n_items: int) -> PowerSeries | None:
        """Return the first terms of the kernel as a power series, which are used as control variates."""
        return None if self.distance is None or self.function is None else self.function.series(self.distance, n_items)


FactsMethod = TypeVar("FactsMethod", bound=Callable[[Any, int], Facts])
Rebuilt = TypeVar("Rebuilt", bound="Parameters")


def cached_facts(method: FactsMethod) -> FactsMethod:
    """Decorate a ``facts`` method so that equal kernels share one record for each number of items."""
    return cast(FactsMethod, lru_cache(maxsize=64)(method))


# ---------------------------------------------------------------------- kernels


class Parameters:
    """An immutable value with tunable parameters, its own and those of its parts: a kernel, or an attribute of one."""

    parameter_bounds: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Compare by value; the methods of a dataclass, which are not added to existing ones, fail for arrays."""
        super().__init_subclass__(**keywords)
        for name in ("__eq__", "__hash__"):
            if vars(cls).get(name) is None:
                type.__setattr__(cls, name, getattr(Parameters, name))

    def _parameters(self) -> Iterator[tuple[str, Any, tuple[float, float]]]:
        """Yield the name, the value and the bounds of each parameter."""
        kind: Any = type(self)
        arguments = signature(kind)
        for name in arguments:
            if not hasattr(self, name):
                raise TypeError(
                    f"{type(self).__name__}.__init__ takes the argument {name!r} but does not store it; add "
                    f"self.{name} = {name}, so that the kernel can be copied with other parameters"
                )
        for name, value in attributes(self).items():
            if isinstance(value, Parameters):
                yield from ((f"{name}__{inner}", *rest) for inner, *rest in value._parameters())
            elif (name in arguments or not arguments) and self.parameter_bounds.get(name) != "fixed":
                is_median = isinstance(value, str) and value == MEDIAN
                is_integer = isinstance(value, int) and not isinstance(value, bool)
                is_float = isinstance(value, float | np.floating) or (is_integer and takes_floats(arguments, name))
                if is_float or is_median:
                    yield name, value, self.parameter_bounds.get(name, POSITIVE)

    @property
    def params(self) -> dict[str, Any]:
        """The tunable parameters by name; those of a part are ``part__name``.

        Examples
        --------
        >>> from rankernel import Kendall, Mallows
        >>> (0.5 * Kendall() + Mallows(nu=0.1)).params
        {'left__scale': 0.5, 'right__nu': 0.1}
        """
        return {name: value for name, value, _ in self._parameters()}

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """The lower and upper bound of each parameter, by the names of :attr:`params`."""
        return {name: bounds for name, _, bounds in self._parameters()}

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other parameters, named as in :attr:`params`.

        Examples
        --------
        >>> from rankernel import Kendall, Mallows
        >>> (Kendall() + Mallows(nu=0.1)).replace(right__nu=0.2)
        Kendall() + Mallows(nu=0.2)
        """
        params = self.params
        for name in sorted(changes.keys() - params.keys()):
            value = getattr(self, name, None)
            hint = f"; {name}={value} is an integer: write {value}.0" if isinstance(value, int) else ""
            known = ", ".join(params) or "none"
            raise ValueError(f"{self} has no parameter {name!r}; its parameters are: {known}{hint}")
        direct: dict[str, Any] = {}
        inner: dict[str, dict[str, Any]] = {}
        for name, value in changes.items():
            part, separator, rest = name.partition("__")
            if separator:
                inner.setdefault(part, {})[rest] = value
            else:
                direct[name] = value
        return rebuilt(self, direct | {part: getattr(self, part).replace(**values) for part, values in inner.items()})

    def set_params(self, **_: Any) -> Any:
        """Raise an error: scikit-learn changes the parameters of a :class:`SklearnKernel`, not of a kernel."""
        raise TypeError(
            f"{self} cannot be changed in place; give scikit-learn SklearnKernel({self}), whose parameters can be set, "
            "or use kernel.replace"
        )

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, Parameters)
        return bool(comparison_key(self) == comparison_key(other))

    def __hash__(self) -> int:
        return hash(comparison_key(self))

    def __repr__(self) -> str:
        kind: Any = type(self)
        names = tuple(signature(kind)) or tuple(attributes(self))
        values = {name: getattr(self, name, None) for name in names}
        shown = ", ".join(f"{name}={value!r}" for name, value in values.items() if value is not None)
        return f"{type(self).__name__}({shown})"

    def resolve(self, X: Any) -> Self:
        """Return the kernel for the items and rankings of ``X``.

        Every ``"median"`` is replaced by one over the median distance within ``X``, and similarities given by the names
        of items are put in the order of the items of ``X``.
        """
        changes: dict[str, Any] = {}
        for name, value in attributes(self).items():
            if isinstance(value, Parameters):
                resolved = value.resolve(X)
                if resolved is not value:
                    changes[name] = resolved
            elif isinstance(value, str) and value == MEDIAN:
                from rankernel.gram.bandwidth import median_rate

                changes[name] = median_rate(cast("Kernel", self), X)
        return rebuilt(self, changes) if changes else self


class Kernel(Parameters, ABC):
    """A symmetric function of two full rankings.

    A subclass defines :meth:`matrix`. It may be a plain class or a dataclass; ``super().__init__`` need not be called.
    It stores every argument of its constructor under its own name, as scikit-learn estimators do; float arguments are
    the tunable parameters (:attr:`params`). Everything else has a default: equality and hashing by value, ``repr``,
    :meth:`replace`, a numerical :meth:`gradient`, and empty :meth:`facts`.

    Attributes
    ----------
    parameter_bounds : dict
        Class attribute: the bounds of parameters that may not take every value above 0, by name, or "fixed" for a float
        that is not a parameter.

    Examples
    --------
    >>> from rankernel import Hamming, Kendall, Mallows
    >>> 0.5 * Kendall() + Mallows(nu=0.1) * (Hamming() + 1) ** 2
    0.5 * Kendall() + Mallows(nu=0.1) * (Hamming() + 1) ** 2

    A kernel of the Ulam distance, n minus the length of the longest increasing subsequence:

    >>> from bisect import bisect_left
    >>> def ulam(x, y):
    ...     last = []  # the smallest last rank of an increasing subsequence of each length
    ...     for rank in y[np.argsort(x)]:
    ...         length = bisect_left(last, rank)
    ...         last[length : length + 1] = [rank]
    ...     return len(x) - len(last)
    >>> class Ulam(Kernel):
    ...     def __init__(self, nu=0.5):
    ...         self.nu = nu
    ...
    ...     def matrix(self, X, Y):
    ...         return np.exp(-self.nu * np.array([[ulam(x, y) for y in Y] for x in X]))
    >>> Ulam(nu=np.log(2)).matrix(np.array([[0, 1, 2]]), np.array([[0, 1, 2], [1, 2, 0], [2, 1, 0]]))
    array([[1.  , 0.5 , 0.25]])
    >>> (2.0 * Ulam()).params
    {'scale': 2.0, 'kernel__nu': 0.5}
    """

    _repr_html_ = html_card

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Check that the class defines ``matrix``."""
        if cls.matrix is Kernel.matrix:
            raise TypeError(f"{cls.__name__} defines no method matrix; add {MATRIX_HELP}")
        if vars(cls).get("__annotations__") and not dataclasses.is_dataclass(cls) and "__init__" not in vars(cls):
            names = ", ".join(vars(cls)["__annotations__"])
            raise TypeError(f"{cls.__name__} has fields ({names}) but no constructor; add @dataclass")
        return super().__new__(cls)

    @abstractmethod
    def matrix(self, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the kernel between the rows of two arrays of full rankings: shape (len(X), len(Y)).

        Parameters
        ----------
        X, Y : integer arrays of shape (n_rankings, n_items)
            Full rankings: the position of each item, from 0.
        """

    def gradient(self, X: RankArray, Y: RankArray) -> dict[str, FloatArray]:
        """Return the derivative of :meth:`matrix` in each parameter of :attr:`params`.

        By default by central differences of :meth:`matrix`, with a relative error of about 1e-10.
        """
        return finite_differences(self, lambda kernel: kernel.matrix(X, Y))

    def facts(self, n_items: int) -> Facts:
        """Return the known properties of the kernel on the rankings of n items; by default none."""
        return Facts()

    def features(self, X: RankArray) -> FloatArray:
        """Return feature vectors of full rankings whose inner product is the kernel, if it has a finite feature map.

        Parameters
        ----------
        X : integer array of shape (n_rankings, n_items)
            Full rankings.
        """
        facts = self.facts(X.shape[1])
        if facts.form is not None:
            return facts.form.features(STATISTICS[facts.form.statistic](X))
        if facts.feature_map is None:
            raise TypeError(f"{self} has no explicit feature map; use NystromFeatures")
        return facts.feature_map(X)

    # ------------------------------------------------------------------ partial rankings

    def plan(self, X: Any, Y: Any = None, *, method: MethodLike = "auto") -> Plan:
        """Return the plan of the Gram matrix of partial rankings: how it will be computed, and at what cost.

        Parameters
        ----------
        X, Y : Rankings, Preferences or integer array
            The rows and the columns; ``Y`` defaults to ``X``. A parameter "median" is resolved from ``X`` if that is
            the only data; with two sets of rankings it is an error.
        method : {"auto", "exact", "enumeration"} or a method object
            How to compute it: see :meth:`gram`.

        Examples
        --------
        >>> from rankernel import Mallows, Rankings
        >>> print(Mallows(nu=0.5).plan(Rankings.from_orders([["a", "b", "c"], ["c"]], counts=[7, 5])))
        Mallows(nu=0.5) of 2 distinct rankings (12 voters, 3 items)
          exact: closed form
          4 entries, 32 bytes, less than 0.01 s
        """
        from rankernel.gram.plan import make_plan

        return make_plan(self, X, Y, method)

    def gram(
        self,
        X: Any,
        Y: Any = None,
        *,
        method: MethodLike = "auto",
        normalize: bool = False,
        out: Any = None,
        dtype: DTypeLike = np.float64,
        n_jobs: int | None = None,
    ) -> NDArray[Any]:
        r"""Return the Gram matrix of partial rankings: the kernel averaged over the completions of both.

        The marginalised (convolution) kernel of the paper,
        :math:`K(R, R') = \frac{1}{|R||R'|} \sum_{\sigma \in R} \sum_{\sigma' \in R'} k(\sigma, \sigma')`.
        Its diagonal is below ``k(σ, σ)`` for partial rankings: their mean embeddings have a smaller norm.

        Parameters
        ----------
        X, Y : Rankings, Preferences or integer array
            The rows and the columns; ``Y`` defaults to ``X``.
        method : {"auto", "exact", "enumeration"} or a method object
            How to compute it. "auto" is the exact value, in closed form or by enumeration, unless it does not exist or
            takes both seconds and many times as long as the estimate; then it is Monte Carlo.
        normalize : bool
            Whether to divide by the norms of the embeddings (cosine similarity). A norm is exact where possible and
            otherwise an unbiased estimate; a warning is issued if a norm is estimated although the entries are exact.
            The entry of a ranking with itself, or with an equal one, is 1; entries of a ranking of norm 0 are 0.
        out : array or memory map, optional
            The array to fill.
        dtype : dtype
            float64 or float32.
        n_jobs : int, optional
            The number of threads; by default one for each core.

        Examples
        --------
        >>> from rankernel import Mallows, Rankings
        >>> ballots = Rankings.from_orders([["a", "b", "c"], ["c"]])
        >>> Mallows(nu=math.log(2)).gram(ballots)
        array([[1.    , 0.1875],
               [0.1875, 0.75  ]])
        """
        return self.plan(X, Y, method=method).gram(out=out, dtype=dtype, normalize=normalize, n_jobs=n_jobs)

    def __call__(self, X: Any, Y: Any = None) -> NDArray[Any]:
        """Return :meth:`gram`, so that a kernel can be given wherever a callable is expected."""
        if MEDIAN in self.params.values():
            raise ValueError(
                f"{self} has a parameter 'median', which depends on the data, but a callable gets training and test "
                "data separately; use kernel.resolve(X_train)"
            )
        if Y is None or Y is X:
            return self.gram(X)
        return self.plan(Y).against(X).gram()  # the plan is made for the columns, the training data

    def estimate(
        self,
        X: Any,
        Y: Any = None,
        *,
        method: MethodLike = "auto",
        normalize: bool = False,
        gradient: bool = False,
        tol: float | None = None,
        n_jobs: int | None = None,
    ) -> Estimate:
        """Return the Gram matrix with its standard errors and its method: ``value``, ``stderr``, ``method``.

        Parameters
        ----------
        X, Y, method, normalize, n_jobs
            As in :meth:`gram`.
        gradient : bool
            Whether to add the derivative in each parameter.
        tol : float, optional
            The largest standard error allowed: draws are added until no entry has a larger one. The standard error of
            the entry of a ranking with itself includes its bias; with ``MonteCarlo(diagonal="unbiased")`` far fewer
            draws are needed.
        """
        plan = self.plan(X, Y, method=method)
        return plan.estimate(tol=tol, gradient=gradient, normalize=normalize, n_jobs=n_jobs)

    def paired(self, X: Any, Y: Any, *, method: MethodLike = "auto", n_jobs: int | None = None) -> FloatArray:
        """Return the kernel of row i of ``X`` with row i of ``Y``, without the other entries of :meth:`gram`.

        Parameters
        ----------
        X, Y : Rankings, Preferences or integer array
            Two sets of equally many rankings.
        method : {"auto", "exact", "enumeration"} or a method object
            How to compute it: see :meth:`gram`.
        n_jobs : int, optional
            Number of threads; -1 or None for one thread a core.

        Examples
        --------
        >>> from rankernel import Kendall
        >>> Kendall().paired([[0, 1, 2], [2, 1, 0]], [[0, 1, 2], [2, 0, 1]])
        array([1.        , 0.33333333])
        """
        from rankernel.gram.plan import make_plan

        return make_plan(self, X, Y, method, paired=True)._paired(n_jobs=n_jobs)

    def log_gram(self, X: Any, Y: Any = None, *, n_jobs: int | None = None) -> FloatArray:
        """Return the logarithm of the exact Gram matrix, also where its values underflow."""
        return self.plan(X, Y, method="exact")._log_gram(n_jobs=n_jobs)

    # ------------------------------------------------------------------ algebra, built in rankernel.kernels.algebra

    def __add__(self, other: Any) -> Kernel:
        return combined("add", self, other)

    def __radd__(self, other: Any) -> Kernel:
        return combined("add", other, self)

    def __mul__(self, other: Any) -> Kernel:
        return combined("multiply", self, other)

    def __rmul__(self, other: Any) -> Kernel:
        return combined("multiply", other, self)

    def __pow__(self, exponent: Any) -> Kernel:
        return combined("Power", self, exponent)

    def exp(self) -> Kernel:
        """Return the exponential of the kernel, which is positive semi-definite if the kernel is."""
        return combined("Exp", self)


def combined(operation: str, *parts: Any) -> Kernel:
    """Return the result of an operation of :mod:`rankernel.kernels.algebra`, which imports this module."""
    from rankernel.kernels import algebra

    operands = (as_kernel(part) if callable(getattr(part, "matrix", None)) else part for part in parts)
    kernel: Kernel = getattr(algebra, operation)(*operands)
    return kernel


def prefixed(part: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dictionary with ``part__`` before each key."""
    return {f"{part}__{name}": value for name, value in values.items()}


# ---------------------------------------------------------------------- objects of other classes, and names


def as_kernel(kernel: Any, name: str = "kernel") -> Kernel:
    """Return a kernel unchanged, the kernel of a given name, or any object with a method ``matrix`` as a kernel.

    Parameters
    ----------
    kernel : Kernel, str or object with a method ``matrix``
        The kernel, its name ("mallows"), or an object of any class whose method ``matrix(X, Y)`` returns the kernel
        between the rows of two integer arrays of full rankings.
    name : str
        The name of the argument in error messages.

    Returns
    -------
    Kernel
        The kernel, with all methods of the base class.

    Examples
    --------
    >>> as_kernel("mallows")
    Mallows(nu='median')
    >>> as_kernel("rbo")
    RankBiasedOverlap(p=0.9)
    >>> as_kernel("malows")
    Traceback (most recent call last):
    ValueError: kernel='malows' is not known; there are mallows, kendall, hamming, spearman, polynomial, diffusion, \
rankbiasedoverlap, averageoverlap, dcg, rbo
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, type) and hasattr(kernel, "matrix"):
        raise TypeError(f"{name}={kernel.__name__} is a class; give an instance, such as {kernel.__name__}(...)")
    if callable(getattr(kernel, "matrix", None)):
        return adopted(type(kernel), vars(kernel))
    if not isinstance(kernel, str):
        advice = "; of a distance function d, give Exponential(distance=d)" if callable(kernel) else ""
        raise TypeError(
            f"{name}={short_repr(kernel)} is not a kernel; give one such as Mallows(0.1), its name 'mallows', or an "
            f"object with a method matrix(X, Y){advice}"
        )
    from rankernel.kernels import KERNELS_BY_NAME

    if kernel not in KERNELS_BY_NAME:
        raise ValueError(f"{name}={short_repr(kernel)} is not known; there are {', '.join(KERNELS_BY_NAME)}")
    return KERNELS_BY_NAME[kernel]


def adopted(kind: type, attributes: dict[str, Any]) -> Kernel:
    """Return an object of a class that has a method ``matrix`` as a kernel."""
    kernel = Kernel.__new__(kernel_class(kind))
    vars(kernel).update(attributes)
    return kernel


@lru_cache(maxsize=256)
def kernel_class(kind: type) -> type[Kernel]:
    """Return a subclass of a class that is a kernel, too; its kernels are pickled as objects of that class."""
    members = {
        "__reduce__": lambda self: (adopted, (kind, vars(self))),
        "__module__": kind.__module__,
        "__doc__": kind.__doc__,
    }
    return type(kind.__name__, (kind, Kernel), members)


# ---------------------------------------------------------------------- attributes of any class


def attributes(kernel: Parameters) -> dict[str, Any]:
    """Return the public attributes of a kernel by name, without cached properties."""
    kind: type = type(kernel)
    if dataclasses.is_dataclass(kind):
        return {field.name: getattr(kernel, field.name) for field in dataclasses.fields(kind)}
    return {
        name: value
        for name, value in vars(kernel).items()
        if not name.startswith("_") and not isinstance(getattr(kind, name, None), cached_property)
    }


@lru_cache(maxsize=256)
def signature(kind: Any) -> Mapping[str, inspect.Parameter]:
    """Return the named arguments of the constructor of a class of kernels."""
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {name: given for name, given in inspect.signature(kind).parameters.items() if given.kind in named}


def takes_floats(arguments: Mapping[str, inspect.Parameter], name: str) -> bool:
    """Whether an argument is a float by its default or its annotation."""
    if name not in arguments:
        return False
    default, annotation = arguments[name].default, arguments[name].annotation
    is_median = isinstance(default, str) and default == MEDIAN
    return isinstance(default, float) or is_median or annotation is float or str(annotation).startswith("float")


def rebuilt(kernel: Rebuilt, changes: Mapping[str, Any]) -> Rebuilt:
    """Return a kernel of the same class with other attributes, through its constructor if that has arguments."""
    kind: Any = type(kernel)
    arguments = signature(kind)
    if arguments:
        changed: Rebuilt = kind(**{name: changes.get(name, getattr(kernel, name)) for name in arguments})
    else:
        changed = copy.copy(kernel)
    for name in changes.keys() - arguments.keys():
        object.__setattr__(changed, name, changes[name])
    return changed


def comparison_key(kernel: Parameters) -> tuple[Any, ...]:
    """Return the attributes as a hashable value; that of kernels of this package, which never change, is cached."""
    found: tuple[Any, ...] | None = vars(kernel).get("_comparison_key")
    if found is None:
        found = tuple((name, hashable(kernel, name, value)) for name, value in attributes(kernel).items())
        if type(kernel).__module__.startswith("rankernel."):
            vars(kernel)["_comparison_key"] = found
    return found


def hashable(kernel: Parameters, name: str, value: Any) -> Any:
    """Return an attribute as a value that can be hashed; arrays by their content."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.shape, value.dtype.str, value.tobytes()
    if isinstance(value, list | tuple):
        return tuple(hashable(kernel, name, each) for each in value)
    if isinstance(value, dict):
        return frozenset((key, hashable(kernel, name, each)) for key, each in value.items())
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"the attribute {name!r} of {type(kernel).__name__} is a {type(value).__name__}, which cannot be hashed; "
            "store a number, a string, a tuple or an array, or begin its name with an underscore if it does not belong "
            "to the value of the kernel"
        ) from None
    return value


# ---------------------------------------------------------------------- checks


def check_rate(name: str, value: Any) -> None:
    """Raise an error unless a parameter is a finite number >= 0 or "median"."""
    if (isinstance(value, str) and value == MEDIAN) or (isinstance(value, float) and 0 <= value < math.inf):
        return
    if not is_number(value):
        raise TypeError(f"{name}={short_repr(value)} is not a number; give a number >= 0 or 'median'")
    check_number(name, value, 0)


def number(name: str, value: Any) -> float:
    """Return a parameter that must be a number by now."""
    if isinstance(value, str) and value == MEDIAN:
        raise ValueError(f"{name}='median' depends on the data; use kernel.gram(X), or kernel.resolve(X) first")
    return float(value)


def check_max_items(kernel: Kernel, n_items: int) -> None:
    """Raise an error if the kernel cannot be computed for that many items."""
    max_items = kernel.facts(n_items).max_items
    if max_items is not None and n_items > max_items:
        raise ExactnessError(
            f"{kernel} can be computed for at most {max_items} items, but the rankings have {n_items}; use another "
            "kernel, such as rk.Mallows"
        )


@lru_cache(maxsize=256)
def check_matrix(kernel: Kernel, n_items: int) -> None:
    """Raise an error that says what to change if the ``matrix`` method of a user's kernel does not work.

    It is called once with two and three full rankings, and so are ``gradient`` and ``facts``; of kernels of this
    package only a user's distance is checked.
    """
    for part in attributes(kernel).values():
        if isinstance(part, Kernel):
            check_matrix(part, n_items)
    identity = np.arange(n_items, dtype=np.int32)
    Y = np.stack([identity, identity[::-1], np.roll(identity, 1)])
    X, kind = Y[1:].copy(), type(kernel)
    name, call = f"{kind.__name__}.matrix", kernel.matrix
    note = f"{name} was called with integer arrays of shape (2, {n_items}) and (3, {n_items}): {MATRIX_HELP}"
    if kind.__module__.split(".")[0] == "rankernel":
        distance = kernel.facts(n_items).distance
        if distance is None or distance.function is None:
            return
        name, call = f"distance={distance.name}", distance.between
        note = f"{name} is called with two rank vectors of length {n_items} and returns one number >= 0"
    else:
        facts = noted(lambda: kernel.facts(n_items), f"add def facts(self, n_items): return {FACTS_HELP}")
        if not isinstance(facts, Facts):
            raise TypeError(f"{kind.__name__}.facts returned a {type(facts).__name__}; it must return {FACTS_HELP}")
        own = kind.gradient is not Kernel.gradient
        found = noted(lambda: kernel.gradient(X, Y), GRADIENT_HELP) if own else kernel.params
        if not isinstance(found, dict) or found.keys() != kernel.params.keys():
            shown = f"the keys {sorted(found)}" if isinstance(found, dict) else f"a {type(found).__name__}"
            raise TypeError(
                f"{kind.__name__}.gradient returned {shown}, and the parameters are {sorted(kernel.params)}; "
                f"{GRADIENT_HELP}"
            )
    values, mirrored = noted(lambda: (call(X, Y), call(Y, X)), note)
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        shown = f"an array of {values.dtype}" if isinstance(values, np.ndarray) else f"a {type(values).__name__}"
        raise TypeError(f"{name} returned {shown}; it must return a float array, such as np.array(values, dtype=float)")
    if values.shape != (len(X), len(Y)):
        raise ValueError(
            f"{name} returned shape {values.shape} for {len(X)} and {len(Y)} rankings; it must be {(len(X), len(Y))}: "
            f"{MATRIX_HELP}"
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{name} returned {values[~np.isfinite(values)][0]}; a kernel must be finite")
    tolerance = {"rtol": 1e-6, "atol": 1e-6 * np.abs(values).max()}
    if not np.allclose(values, mirrored.T, **tolerance):
        raise ValueError(f"{name} is not symmetric: its value changes if X and Y are exchanged")
    facts, declared = kernel.facts(n_items), values
    if facts.distance is not None and facts.function is not None:
        declared = facts.function.value(facts.distance.between(X, Y))
    elif facts.form is not None:
        declared = kernel.features(X) @ kernel.features(Y).T
    if call == kernel.matrix and not np.allclose(values, declared, **tolerance):
        raise ValueError(
            f"{name} differs from the kernel that {kind.__name__}.facts declares; change def facts(self, n_items), "
            f"which may be inherited: return {FACTS_HELP}"
        )


def noted(call: Callable[[], Any], note: str) -> Any:
    """Return the result of a call, or raise its error with a note."""
    try:
        return call()
    except Exception as error:
        error.add_note(note)
        raise


# ---------------------------------------------------------------------- derivatives


def distance_derivatives(kernel: Kernel, n_items: int, d: Distances) -> dict[str, FloatArray]:
    """Return the derivative of a function of a distance in each parameter of the kernel."""

    def function(of: Kernel) -> DistanceFunction:
        found = of.facts(n_items).function
        assert found is not None
        return found

    found = function(kernel).derivatives(d)
    return finite_differences(kernel, lambda changed: function(changed).value(d)) if found is None else found


def finite_differences(kernel: Kernel, value: Callable[[Kernel], FloatArray]) -> dict[str, FloatArray]:
    """Return the derivative of a function of a kernel in each of its parameters, by central differences.

    The step is the cube root of the machine precision times the parameter; at a bound the difference is one-sided.
    """
    result: dict[str, FloatArray] = {}
    for name, parameter in kernel.params.items():
        low, high = kernel.bounds[name]
        step = np.finfo(np.float64).eps ** (1 / 3) * max(abs(parameter), 1e-3)
        below, above = max(parameter - step, low), min(parameter + step, high)
        change = value(kernel.replace(**{name: above})) - value(kernel.replace(**{name: below}))
        result[name] = np.asarray(change / (above - below))
    return result


def is_exponential(kernel: Kernel, n_items: int) -> bool:
    """Whether a kernel is ``exp(-rate d)``."""
    return isinstance(kernel.facts(n_items).function, Decay)


def decay_rate(kernel: Kernel, n_items: int) -> float:
    """Return the rate of an exponential kernel."""
    decay = kernel.facts(n_items).function
    assert isinstance(decay, Decay)
    return decay.rate


def inner_products(left: FloatArray, right: FloatArray, total: FloatArray | None = None) -> FloatArray:
    """Return ``left @ right``, added to a total, each entry summed in an order that does not depend on other rows."""
    out = np.zeros((left.shape[0], right.shape[1])) if total is None else total
    _loops.pairs.inner_products(np.ascontiguousarray(left), np.ascontiguousarray(right), out)
    return out


def last_axis_product(rows: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return ``rows @ matrix`` for rows of any shape, each summed in a fixed order."""
    return inner_products(rows.reshape(-1, len(matrix)), matrix).reshape(*rows.shape[:-1], matrix.shape[1])


@lru_cache(maxsize=8)
def position_matrix(multiply: Callable[[FloatArray], FloatArray], n_items: int) -> FloatArray:
    """Return the matrix of a form in positions, or of its derivative."""
    return multiply(np.eye(n_items))


class KnownKernel(Kernel):
    """A kernel that its facts determine: a function of a distance, or a form in a statistic."""

    def matrix(self, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the kernel between the rows of two arrays of full rankings."""
        facts = self.facts(X.shape[1])
        if facts.distance is not None and facts.function is not None:
            return facts.function.value(facts.distance.between(X, Y))
        if facts.form is None:
            raise ValueError(f"{self} depends on the data; use kernel.gram(X), or kernel.resolve(X) first")
        if facts.form.is_positional:
            return position_sums(X, Y, position_matrix(facts.form.multiply, X.shape[1]))
        return inner_products(self.features(X), self.features(Y).T)

    def gradient(self, X: RankArray, Y: RankArray) -> dict[str, FloatArray]:
        """Return the derivative of :meth:`matrix` in each parameter."""
        facts = self.facts(X.shape[1])
        if facts.distance is not None and facts.function is not None:
            return distance_derivatives(self, X.shape[1], facts.distance.between(X, Y))
        if facts.form is None:
            return super().gradient(X, Y)
        derivatives = facts.form.derivatives.items()
        if facts.form.is_positional:
            return {name: position_sums(X, Y, position_matrix(change, X.shape[1])) for name, change in derivatives}
        left, right = (STATISTICS[facts.form.statistic](side) for side in (X, Y))
        left = left.reshape(len(X), -1)
        return {name: inner_products(left, change(right).reshape(len(Y), -1).T) for name, change in derivatives}


def position_sums(X: RankArray, Y: RankArray, matrix: FloatArray) -> FloatArray:
    """Return the sums over items of ``matrix[position, position']`` between the rows of two arrays."""
    out = np.empty((len(X), len(Y)))
    _loops.pairs.position_sums(ranks_for_loops(X), ranks_for_loops(Y), np.array(matrix, order="C"), out)
    return out

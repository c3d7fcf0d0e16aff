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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankernel import _loops
from rankernel._utils import FloatArray, RankArray
from rankernel._utils.checks import check_number, is_number, short_repr
from rankernel._utils.notebook import html_card
from rankernel.distances import Distance, LinearFeatures, Statistic
from rankernel.errors import ExactnessError

if TYPE_CHECKING:
    from rankernel.gram.estimate import Estimate
    from rankernel.gram.methods import MethodLike
    from rankernel.gram.plan import Plan

MEDIAN = "median"
POSITIVE = (0.0, math.inf)
MATRIX_HELP = (
    "def matrix(self, X, Y): return the kernel between the rows of two integer arrays of full rankings (the position "
    "of each item, from 0), an array of shape (len(X), len(Y))"
)


# ---------------------------------------------------------------------- facts

Distances = NDArray[Any]


@dataclass(frozen=True)
class DecayRate:
    """The rate of a kernel ``exp(-rate * d)``, and its derivative in each parameter."""

    rate: float
    derivatives: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class DistanceFunction:
    """A kernel as a function of one distance.

    Parameters
    ----------
    value : callable
        Returns the kernel at an array of distances.
    derivatives : callable, optional
        Returns the derivative in each parameter at an array of distances. Finite differences if not given.
    log : callable, optional
        Returns the logarithm of the kernel at an array of distances. The logarithm of ``value`` if not given.
    """

    value: Callable[[Distances], FloatArray]
    derivatives: Callable[[Distances], dict[str, FloatArray]] | None = None
    log: Callable[[Distances], FloatArray] | None = None

    def log_value(self, d: Distances) -> FloatArray:
        """Return the logarithm of the kernel, or raise an error where the kernel is negative."""
        if self.log is not None:
            return self.log(d)
        values = self.value(d)
        if (values < 0).any():
            raise ExactnessError("the kernel can be negative, so its logarithm is undefined; use gram")
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(values))


@dataclass(frozen=True)
class AffinePower:
    """A kernel ``factor * (intercept + coefficient * d) ** degree`` of its distance d; linear if the degree is 1."""

    intercept: float
    coefficient: float
    degree: int = 1
    factor: float = 1.0

    def __call__(self, d: Distances) -> FloatArray:
        """Return the kernel at an array of distances."""
        return np.asarray(
            self.factor * (self.intercept + self.coefficient * np.asarray(d, dtype=np.float64)) ** self.degree
        )


@dataclass(frozen=True)
class PowerSeries:
    """The first coefficients of a kernel as a power series in z, and their derivatives in each parameter.

    z is the inner product of the centred features of the kernel's distance (:class:`EmbeddingFeatures`), and
    ``coefficients[j]`` belongs to ``z ** (j + 1)``. The kernel minus these terms must be positive semi-definite.
    ``constant`` is set if the kernel is exactly the constant plus these terms.
    """

    coefficients: tuple[float, ...]
    derivatives: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    constant: float | None = None


@dataclass(frozen=True, eq=False)
class PositionMatrix:
    """A kernel that is the sum over items of ``matrix[p, q]``, p and q the positions of the item in both rankings.

    Parameters
    ----------
    n_items : int
        The number of positions.
    multiply : callable
        Returns the product of an array of rows with the matrix, which is symmetric and positive semi-definite.
    make_root : callable
        Returns the :attr:`root`, which is computed on first use.
    derivatives : dict of callables
        Returns the product of an array of rows with the derivative of the matrix, for each parameter.
    is_dense : bool
        Whether a product takes time proportional to the number of all entries of the matrix.
    """

    n_items: int
    multiply: Callable[[FloatArray], FloatArray]
    make_root: Callable[[], FloatArray]
    derivatives: Mapping[str, Callable[[FloatArray], FloatArray]] = field(default_factory=dict)
    is_dense: bool = False

    @cached_property
    def matrix(self) -> FloatArray:
        """The matrix, one row and column for each position."""
        return self.multiply(np.eye(self.n_items))

    @cached_property
    def root(self) -> FloatArray:
        """One row for each position, with ``root @ root.T`` the matrix."""
        return self.make_root()

    @property
    def features(self) -> LinearFeatures:
        """The rows of the root at the positions of all items, side by side."""
        return LinearFeatures("positions", lambda at: np.asarray((at @ self.root).reshape(len(at), -1)))


@dataclass(frozen=True, eq=False)
class BilinearForm:
    """A kernel that is a bilinear form in the statistics of two rankings: an inner product after multiplication.

    Parameters
    ----------
    statistic : {"pairs", "positions", "ranks"}
        The statistic, whose mean over completions is known.
    derivatives : dict of callables
        Returns the product of statistics, one row for each ranking, with the derivative of the form in each parameter.
    """

    statistic: Statistic
    derivatives: Mapping[str, Callable[[FloatArray], FloatArray]]


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known of a kernel on the full rankings of n items.

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
        That function. Not needed if ``decay`` or ``affine_power`` is given.
    decay : DecayRate, optional
        The rate of a kernel ``exp(-rate * d)``.
    affine_power : AffinePower, optional
        The polynomial of a kernel that is a power of an affine function of the distance.
    features : LinearFeatures, optional
        Features whose inner product the kernel is, with a known mean over completions.
    feature_map : callable, optional
        Returns vectors of full rankings whose inner product the kernel is. Not needed if ``features`` is given.
    positions : PositionMatrix, optional
        The matrix of a kernel that is a sum over items of a function of their two positions.
    form : BilinearForm, optional
        The derivatives of a kernel whose ``features`` depend on its parameters, or on several pairs or items each.
    series : PowerSeries, optional
        The first terms of the kernel as a power series, used as control variates.
    coupling : str
        The coupling of Monte Carlo draws with the lowest variance.
    """

    is_psd: bool | None = None
    max_dimension: float = math.inf
    max_items: int | None = None
    distance: Distance | None = None
    function: DistanceFunction | None = None
    decay: DecayRate | None = None
    affine_power: AffinePower | None = None
    features: LinearFeatures | None = None
    feature_map: Callable[[RankArray], FloatArray] | None = None
    positions: PositionMatrix | None = None
    form: BilinearForm | None = None
    series: PowerSeries | None = None
    coupling: str = "iid"

    def __post_init__(self) -> None:
        if self.function is None and self.decay is not None:
            object.__setattr__(self, "function", exponential_function(self.decay))
        elif self.function is None and self.affine_power is not None:
            object.__setattr__(self, "function", DistanceFunction(self.affine_power, lambda _: {}))


def exponential_function(decay: DecayRate) -> DistanceFunction:
    """Return ``exp(-rate * d)`` as a function of the distance."""

    @np.errstate(under="ignore")
    def value(d: Distances) -> FloatArray:
        return np.asarray(np.exp(-decay.rate * np.asarray(d)))

    def derivatives(d: Distances) -> dict[str, FloatArray]:
        derivative = -np.asarray(d) * value(d)
        return {name: factor * derivative for name, factor in decay.derivatives.items()}

    return DistanceFunction(value, derivatives, lambda d: np.asarray(-decay.rate * np.asarray(d)))


FactsMethod = TypeVar("FactsMethod", bound=Callable[[Any, int], Facts])
Rebuilt = TypeVar("Rebuilt", bound="Parameters")


def cached_facts(method: FactsMethod) -> FactsMethod:
    """Decorate a ``facts`` method so that equal kernels share one record for each number of items."""
    return cast(FactsMethod, lru_cache(maxsize=64)(method))


# ---------------------------------------------------------------------- kernels


class Parameters:
    """An immutable value with tunable parameters, its own and those of its parts: a kernel, or an attribute of one."""

    parameter_bounds: ClassVar[Mapping[str, Any]] = {}

    @property
    def params(self) -> dict[str, Any]:
        """The tunable parameters by name; those of a part are ``part__name``.

        Examples
        --------
        >>> from rankernel import Kendall, Mallows
        >>> (0.5 * Kendall() + Mallows(nu=0.1)).params
        {'left__scale': 0.5, 'right__nu': 0.1}
        """
        check_stored(self)
        result: dict[str, Any] = {}
        for name, value in attributes(self).items():
            if isinstance(value, Parameters):
                result |= prefixed(name, value.params)
            elif is_parameter(self, name, value):
                result[name] = value
        return result

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """The lower and upper bound of each parameter, by the names of :attr:`params`."""
        result: dict[str, tuple[float, float]] = {}
        for name, value in attributes(self).items():
            if isinstance(value, Parameters):
                result |= prefixed(name, value.bounds)
            elif is_parameter(self, name, value):
                result[name] = self.parameter_bounds.get(name, POSITIVE)
        return result

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other parameters, named as in :attr:`params`.

        Examples
        --------
        >>> from rankernel import Kendall, Mallows
        >>> (Kendall() + Mallows(nu=0.1)).replace(right__nu=0.2)
        Kendall() + Mallows(nu=0.2)
        """
        unknown = sorted(changes.keys() - self.params.keys())
        if unknown:
            known = ", ".join(self.params) or "none"
            raise ValueError(f"{self} has no parameter {unknown[0]!r}; its parameters are: {known}")
        direct: dict[str, Any] = {}
        inner: dict[str, dict[str, Any]] = {}
        for name, value in changes.items():
            part, separator, rest = name.partition("__")
            if separator:
                inner.setdefault(part, {})[rest] = value
            else:
                direct[name] = value
        for part, part_changes in inner.items():
            direct[part] = getattr(self, part).replace(**part_changes)
        return rebuilt(self, direct)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, Parameters)
        return bool(comparison_key(self) == comparison_key(other))

    def __hash__(self) -> int:
        return hash(comparison_key(self))

    def __repr__(self) -> str:
        names = constructor_arguments(type(self)) or tuple(attributes(self))
        values = {name: getattr(self, name) for name in names}
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
        if vars(cls).get("__hash__", True) is None:  # a dataclass that is not frozen removes the hash
            type.__setattr__(cls, "__hash__", Kernel.__hash__)
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
        if facts.features is not None:
            return facts.features.of_rankings(X)
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
        method : {"auto", "exact", "enumeration", "mixed"} or a method object
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
        method : {"auto", "exact", "enumeration", "mixed"} or a method object
            How to compute it. "auto" is the exact value, in closed form or by enumeration, unless it does not exist or
            takes both seconds and many times as long as the estimate; then it is Monte Carlo.
        normalize : bool
            Whether to divide by the norms of the embeddings (cosine similarity). A norm is exact where possible and an
            unbiased estimate elsewhere, with a warning if the entries themselves are exact. The entry of a ranking with
            itself, or with an equal one, is 1; entries of a ranking of norm 0 are 0.
        out : array, memory map or zarr array, optional
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
                "data separately; use kernel.resolve(X_train), or SklearnKernel.from_data(X_train, kernel)"
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
            The largest standard error allowed: draws are added until no entry has a larger one. For a ranking with
            itself the bias counts as well: ``MonteCarlo(diagonal="unbiased")`` needs far fewer draws.
        """
        plan = self.plan(X, Y, method=method)
        return plan.estimate(tol=tol, gradient=gradient, normalize=normalize, n_jobs=n_jobs)

    def paired(self, X: Any, Y: Any, *, method: MethodLike = "auto", n_jobs: int | None = None) -> FloatArray:
        """Return the kernel of row i of ``X`` with row i of ``Y``: the diagonal of :meth:`gram`, at its own cost.

        Parameters
        ----------
        X, Y : Rankings, Preferences or integer array
            Two sets of equally many rankings.
        method : {"auto", "exact", "enumeration", "mixed"} or a method object
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

        return make_plan(self, X, Y, method, paired=True).paired(n_jobs=n_jobs)

    def log_gram(self, X: Any, Y: Any = None, *, n_jobs: int | None = None) -> FloatArray:
        """Return the logarithm of the exact Gram matrix, also where its values underflow."""
        return self.plan(X, Y, method="exact").log_gram(n_jobs=n_jobs)

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
        """Return the exponential of the kernel, which is a kernel as well."""
        return combined("Exp", self)


def combined(operation: str, *parts: Any) -> Kernel:
    """Return the result of an operation of :mod:`rankernel.kernels.algebra`, which imports this module."""
    from rankernel.kernels import algebra, as_kernel

    operands = (as_kernel(part) if callable(getattr(part, "matrix", None)) else part for part in parts)
    kernel: Kernel = getattr(algebra, operation)(*operands)
    return kernel


def prefixed(part: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dictionary with ``part__`` before each key."""
    return {f"{part}__{name}": value for name, value in values.items()}


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


def constructor_arguments(kind: Any) -> tuple[str, ...]:
    """Return the names of the arguments of the constructor of a class of kernels."""
    return tuple(signature(kind))


def is_parameter(kernel: Parameters, name: str, value: Any) -> bool:
    """Whether an attribute is a tunable parameter.

    It is a float, or an integer or "median" where a float may be; and an argument of the constructor, if that has any.
    """
    kind: Any = type(kernel)
    arguments = signature(kind)
    if (arguments and name not in arguments) or isinstance(value, bool):
        return False
    if kernel.parameter_bounds.get(name) == "fixed":
        return False
    if isinstance(value, float | np.floating) or (isinstance(value, str) and value == MEDIAN):
        return True
    default = arguments[name].default if arguments else None
    return is_number(value) and (isinstance(default, float) or default == MEDIAN)


def check_stored(kernel: Parameters) -> None:
    """Raise an error if an argument of the constructor is not stored under its own name."""
    for name in constructor_arguments(type(kernel)):
        if not hasattr(kernel, name):
            raise TypeError(
                f"{type(kernel).__name__}.__init__ takes the argument {name!r} but does not store it; add "
                f"self.{name} = {name}, so that the kernel can be copied with other parameters"
            )


def rebuilt(kernel: Rebuilt, changes: Mapping[str, Any]) -> Rebuilt:
    """Return a kernel of the same class with other attributes, through its constructor."""
    check_stored(kernel)
    arguments = constructor_arguments(type(kernel))
    if arguments:
        changed = type(kernel)(**{name: changes.get(name, getattr(kernel, name)) for name in arguments})
    else:
        changed = copy.copy(kernel)
    for name, value in changes.items():
        if name not in arguments:
            object.__setattr__(changed, name, value)
    return changed


def comparison_key(kernel: Parameters) -> tuple[Any, ...]:
    """Return a hashable value that equal kernels share: the class and the attributes."""
    return (type(kernel), *((name, hashable(kernel, name, value)) for name, value in attributes(kernel).items()))


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

    It is called once with two and three full rankings; kernels of this package are not checked.
    """
    for part in attributes(kernel).values():
        if isinstance(part, Kernel):
            check_matrix(part, n_items)
    if type(kernel).__module__.split(".")[0] == "rankernel":
        return
    identity = np.arange(n_items, dtype=np.int32)
    Y = np.stack([identity, identity[::-1], np.roll(identity, 1)])
    X, name = Y[1:].copy(), f"{type(kernel).__name__}.matrix"
    try:
        values, mirrored = kernel.matrix(X, Y), kernel.matrix(Y, X)
    except Exception as error:
        error.add_note(f"{name} was called with integer arrays of shape {X.shape} and {Y.shape}: {MATRIX_HELP}")
        raise
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        kind = f"an array of {values.dtype}" if isinstance(values, np.ndarray) else f"a {type(values).__name__}"
        raise TypeError(f"{name} returned {kind}; it must return a float array, such as np.array(values, dtype=float)")
    if values.shape != (len(X), len(Y)):
        raise ValueError(
            f"{name} returned shape {values.shape} for {len(X)} and {len(Y)} rankings; it must be {(len(X), len(Y))}: "
            f"{MATRIX_HELP}"
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{name} returned {values[~np.isfinite(values)][0]}; a kernel must be finite")
    if not np.allclose(values, mirrored.T, rtol=1e-6, atol=1e-6 * np.abs(values).max()):
        raise ValueError(f"{name} is not symmetric: matrix(X, Y) differs from matrix(Y, X).T")


# ---------------------------------------------------------------------- derivatives


def distance_derivatives(kernel: Kernel, n_items: int, d: Distances) -> dict[str, FloatArray]:
    """Return the derivative of a function of a distance in each parameter of the kernel."""
    function = kernel.facts(n_items).function
    assert function is not None
    if function.derivatives is not None:
        return function.derivatives(d)

    def value(changed: Kernel) -> FloatArray:
        same = changed.facts(n_items).function
        assert same is not None
        return same.value(d)

    return finite_differences(kernel, value)


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
    return kernel.facts(n_items).decay is not None


def decay_rate(kernel: Kernel, n_items: int) -> float:
    """Return the rate of an exponential kernel."""
    decay = kernel.facts(n_items).decay
    assert decay is not None
    return decay.rate


def inner_products(left: FloatArray, right: FloatArray, total: FloatArray | None = None) -> FloatArray:
    """Return ``left @ right``, added to a total, each entry summed in an order that does not depend on other rows."""
    out = np.zeros((left.shape[0], right.shape[1])) if total is None else total
    _loops.pairs.inner_products(np.ascontiguousarray(left), np.ascontiguousarray(right), out)
    return out


class DistanceKernel(Kernel):
    """A kernel that is a function of one distance; its facts give both."""

    def matrix(self, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the kernel between the rows of two arrays of full rankings."""
        facts, d = self._at_distances(X, Y)
        return facts.function.value(d)  # type: ignore[union-attr]

    def gradient(self, X: RankArray, Y: RankArray) -> dict[str, FloatArray]:
        """Return the derivative of :meth:`matrix` in each parameter."""
        facts, d = self._at_distances(X, Y)
        return facts.function.derivatives(d)  # type: ignore[union-attr,misc]

    def _at_distances(self, X: RankArray, Y: RankArray) -> tuple[Facts, NDArray[Any]]:
        facts = self.facts(X.shape[1])
        if facts.function is None:
            raise ValueError(f"{self} depends on the data; use kernel.gram(X), or kernel.resolve(X) first")
        assert facts.distance is not None
        return facts, facts.distance.between(X, Y)

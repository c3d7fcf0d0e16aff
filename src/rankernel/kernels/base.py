"""A kernel is a value with one abstract method, and says what is known of it; one that says nothing promises nothing.

Everything in this folder is mathematics on FULL rankings, given as integer arrays of ranks (item -> position). How a
kernel is averaged over the completions of partial rankings is planned in :mod:`rankernel.gram`, to which
:meth:`Kernel.plan` hands over.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankernel._utils import checks
from rankernel._utils.arrays import FloatArray, RankArray
from rankernel._utils.checks import is_number, short_repr
from rankernel._utils.notebook import html_card
from rankernel.distances import Distance
from rankernel.errors import ExactnessError

if TYPE_CHECKING:
    from rankernel.gram.estimate import Estimate
    from rankernel.gram.methods import MethodLike
    from rankernel.gram.plan import Plan
    from rankernel.linear_forms import LinearForm, PlaceForm

MEDIAN = "median"
TUNABLE = {"tunable": True}  # metadata of a dataclass field that is a parameter to tune


@dataclass(frozen=True)
class Decay:
    """The rate nu of a kernel that is exp(-nu d), and its derivative in each parameter."""

    rate: float
    slopes: dict[str, float]


@dataclass(frozen=True)
class Series:
    """The first coefficients of a kernel as a power series in z, and their derivatives in each parameter.

    z is the inner product of the centred features of the kernel's distance (see ``SquareForm``): coefficient j belongs
    to the power j + 1. With them taken out the kernel must still be positive semi-definite. Where they are all there
    is but a constant, that is given, too.
    """

    coefficients: tuple[float, ...]
    slopes: dict[str, tuple[float, ...]] = dataclasses.field(default_factory=dict)
    constant: float | None = None


@dataclass(frozen=True)
class Term:
    """One summand of a kernel: a weight times a kernel that is no sum or multiple of others.

    ``prefix`` stands before the names of its parameters, and ``scales`` are the parameters in the weight.
    """

    weight: float
    kernel: Kernel
    prefix: str = ""
    scales: tuple[tuple[str, float], ...] = ()


class Kernel(ABC):
    """A symmetric function of two full rankings. Kernels are immutable values: equal parts make equal kernels.

    Examples
    --------
    >>> from rankernel import Hamming, Kendall, Mallows
    >>> 0.5 * Kendall() + Mallows(nu=0.1) * (Hamming() + 1) ** 2
    0.5 * Kendall() + Mallows(nu=0.1) * (Hamming() + 1) ** 2
    >>> Kendall() + Mallows(nu=0.1) == Kendall() + Mallows(nu=0.1)
    True
    """

    _repr_html_ = html_card

    @abstractmethod
    def matrix(self, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the kernel between the rows of two arrays of full rankings."""

    def gradient(self, X: RankArray, Y: RankArray) -> dict[str, FloatArray]:
        """Return the derivative of :meth:`matrix` in each parameter of :attr:`params`."""
        return self._no_slopes("gradient")

    def _no_slopes(self, where: str) -> dict[str, FloatArray]:
        if self.params:
            raise NotImplementedError(f"{type(self).__name__} has parameters but no derivatives; define {where}")
        return {}

    # ------------------------------------------------------------------ what is known of it

    #: Whether the kernel is positive semi-definite for every number of items; None if that is not known.
    positive: ClassVar[bool | None] = None

    def is_positive(self, n_items: int) -> bool | None:
        """Say whether the kernel is positive semi-definite on the rankings of n items; None if that is not known."""
        return self.positive

    def most_dimensions(self, n_items: int) -> float:
        """Return a bound on how many dimensions the features and the constants span together; infinite if unknown.

        A kernel is characteristic on n items only if that number is n!, the dimension of all functions of a ranking.
        """
        return math.inf

    def check_n_items(self, n_items: int) -> None:
        """Refuse so many items that the kernel cannot be computed even between full rankings: here is no limit."""
        return

    @property
    def argument(self) -> Distance | None:
        """The distance that the kernel is a function of, if there is one."""
        return None

    def at_distance(self, d: NDArray[Any], n_items: int) -> FloatArray:
        """Return the kernel as a function of its :attr:`argument`."""
        raise TypeError(f"{self} is not a function of one distance")

    def slopes_at_distance(self, d: NDArray[Any], n_items: int) -> dict[str, FloatArray]:
        """Return the derivative of :meth:`at_distance` in each parameter."""
        return self._no_slopes("slopes_at_distance")

    def log_at_distance(self, d: NDArray[Any], n_items: int) -> FloatArray:
        """Return the logarithm of :meth:`at_distance`, or an error where the kernel has none."""
        values = self.at_distance(d, n_items)
        if (values < 0).any():
            raise ExactnessError(f"{self} can be negative, so it has no logarithm; use gram")
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(values))

    def width_unit(self, d: float) -> float:
        """Return what a width is measured in at a distance, an increasing function: here the distance itself."""
        return d

    @property
    def decay(self) -> Decay | None:
        """The rate of a kernel that is exp(-nu d) for its :attr:`argument`, else None."""
        return None

    @property
    def formula(self) -> str | None:
        """The name of its family of exact formulas, if it has one."""
        return f"exp-{self.argument.name}" if self.decay and self.argument else None

    def linear(self, n_items: int) -> LinearForm | None:
        """Return the features of which the kernel is the inner product, if their mean over completions is known."""
        return None

    def places(self, n_items: int) -> PlaceForm | None:
        """Return what two places have in common, if the kernel is the sum of that over items."""
        return None

    def series(self, n_items: int) -> Series | None:
        """Return its first coefficients as a power series of which the rest is positive semi-definite, if known."""
        return None

    @property
    def n_moments(self) -> int | None:
        """How many moments of its :attr:`argument` its mean depends on, if it is a polynomial of few powers."""
        return None

    def mean_from_moments(self, mean: FloatArray, central: FloatArray, n_items: int) -> FloatArray:
        """Return the mean of the kernel, given the mean of its argument and its central moments 0, 1, ..."""
        raise TypeError(f"{self} is not a polynomial of its distance")

    def features(self, X: RankArray) -> FloatArray:
        """Return vectors of full rankings whose inner products are the kernel, where it has any that can be written."""
        form = self.linear(X.shape[1])
        if form is None:
            raise TypeError(f"{self} has no features that can be written down; use NystromFeatures")
        return form.of(X)

    @property
    def best_coupling(self) -> str:
        """The coupling of draws that serves this kernel best: independent draws where nothing is known."""
        return self.argument.best_coupling if self.argument else "iid"

    def terms(self) -> list[Term]:
        """Return the kernel as a sum of weighted kernels that are no sums or multiples themselves."""
        return [Term(1.0, self)]

    # ------------------------------------------------------------------ partial rankings

    def plan(self, X: Any, Y: Any = None, method: MethodLike = "auto") -> Plan:
        """Decide how the Gram matrix of partial rankings is computed, and return that decision: see :class:`Plan`.

        Parameters
        ----------
        X, Y : Rankings, Preferences or integer array
            The rows and the columns; ``Y`` is ``X`` if left out. A width "median" is taken from ``X`` where it is the
            only data, and refused where there are two sets.
        method : {"auto", "exact", "enumeration", "mixed"} or a method object
            How to compute it: see :meth:`gram`.

        Examples
        --------
        >>> from rankernel import Mallows, Rankings
        >>> print(Mallows(nu=0.5).plan(Rankings.from_orders([["a", "b", "c"], ["c"]], counts=[7, 5])))
        Mallows(nu=0.5) of 2 different rankings (12 voters, 3 items)
          exact: closed form (q-factorials of shared buckets; pairs as bits)
          4 entries, 32 bytes, less than 0.01 s
        """
        from rankernel.gram.plan import make_plan

        return make_plan(self, X, Y, method)

    def gram(
        self,
        X: Any,
        Y: Any = None,
        method: MethodLike = "auto",
        normalize: bool = False,
        out: Any = None,
        dtype: DTypeLike = np.float64,
        n_jobs: int | None = None,
    ) -> NDArray[Any]:
        r"""Return the Gram matrix of partial rankings: the kernel averaged over the completions of both.

        The marginalised (convolution) kernel of the paper,
        :math:`K(R, R') = \frac{1}{|R||R'|} \sum_{\sigma \in R} \sum_{\sigma' \in R'} k(\sigma, \sigma')`.
        Its diagonal is below ``k(σ, σ)`` for partial rankings: a ranking that says less is shorter as a vector.

        Parameters
        ----------
        X, Y : Rankings, Preferences or integer array
            The rows and the columns; ``Y`` is ``X`` if left out.
        method : {"auto", "exact", "enumeration", "mixed"} or a method object
            How to compute it. "auto" is the exact value, in closed form or by enumeration, unless there is none or it
            would take both some seconds and many times as long as the estimate; then it is Monte Carlo.
        normalize : bool
            Whether to divide by the lengths of the embeddings (cosine). A length is exact where that is at hand, and an
            unbiased estimate elsewhere, with a warning if the entries themselves are exact. A ranking with itself, or
            with an equal one, has 1; entries of a ranking of length 0 are 0.
        out : array, memory map or zarr array, optional
            What to fill.
        dtype : dtype
            float64 or float32.
        n_jobs : int, optional
            How many tiles to compute at once; one a core if left out.

        Examples
        --------
        >>> from rankernel import Mallows, Rankings
        >>> ballots = Rankings.from_orders([["a", "b", "c"], ["c"]])
        >>> Mallows(nu=math.log(2)).gram(ballots)
        array([[1.    , 0.1875],
               [0.1875, 0.75  ]])
        """
        return self.plan(X, Y, method).gram(out, dtype, normalize, n_jobs)

    def __call__(self, X: Any, Y: Any = None) -> NDArray[Any]:
        """Return :meth:`gram`, so that a kernel serves wherever a callable is wanted; its width must be a number."""
        if MEDIAN in self.params.values():
            raise ValueError(
                f"the width of {self} depends on the data, and a callable is shown training and test data apart; use "
                "kernel.resolve(X_train), or SklearnKernel.from_data(X_train, kernel)"
            )
        if Y is None or Y is X:
            return self.gram(X)
        return self.plan(Y).against(X).gram()  # the columns are training data: they decide, whatever the rows are

    def estimate(
        self,
        X: Any,
        Y: Any = None,
        method: MethodLike = "auto",
        normalize: bool = False,
        gradient: bool = False,
        tol: float | None = None,
        n_jobs: int | None = None,
    ) -> Estimate:
        """Return the Gram matrix with its standard error and with what was done: ``value``, ``stderr``, ``method``.

        Parameters
        ----------
        X, Y, method, normalize, n_jobs
            As in :meth:`gram`.
        gradient : bool
            Whether to add the derivative in each parameter.
        tol : float, optional
            The largest standard error that will do: draws are added until no entry has a larger one, by the coupling
            and the exact moments that get there soonest, where these are left open. Where a ranking meets itself, its
            bias counts, too: ``MonteCarlo(diagonal="unbiased")`` needs far fewer draws.
        """
        return self.plan(X, Y, method).estimate(tol, gradient, normalize, n_jobs)

    def log_gram(self, X: Any, Y: Any = None, n_jobs: int | None = None) -> FloatArray:
        """Return the logarithm of the exact Gram matrix, where its values may be too small for a float."""
        return self.plan(X, Y, "exact").log_gram(n_jobs)

    def resolve(self, X: Any) -> Kernel:
        """Return the kernel with every ``"median"`` replaced by one over the median distance within ``X``."""
        changes: dict[str, Any] = {}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, Kernel):
                changes[field.name] = value.resolve(X)
            elif isinstance(value, str) and value == MEDIAN:
                from rankernel.gram.bandwidth import median_width

                changes[field.name] = median_width(self, X)
        return dataclasses.replace(self, **changes) if changes else self  # type: ignore[type-var]

    # ------------------------------------------------------------------ parameters

    @property
    def params(self) -> dict[str, Any]:
        """The tunable parameters by name; those of a part are ``part__name``.

        Examples
        --------
        >>> from rankernel import Kendall, Mallows
        >>> (0.5 * Kendall() + Mallows(nu=0.1)).params
        {'left__scale': 0.5, 'right__nu': 0.1}
        """
        return self._of_parameters(lambda field: getattr(self, field.name), "params")

    @property
    def limits(self) -> dict[str, tuple[float, float]]:
        """Between which values each parameter may move, by the names of :attr:`params`."""
        return self._of_parameters(lambda field: field.metadata.get("limits", (0.0, math.inf)), "limits")

    def _of_parameters(self, one: Callable[[Any], Any], of_part: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, Kernel):
                found |= prefixed(field.name, getattr(value, of_part))
            elif field.metadata.get("tunable"):
                found[field.name] = one(field)
        return found

    def replace(self, **changes: Any) -> Kernel:
        """Return a kernel with other parameters, named as in :attr:`params`; this one stays as it is.

        Examples
        --------
        >>> from rankernel import Kendall, Mallows
        >>> (Kendall() + Mallows(nu=0.1)).replace(right__nu=0.2)
        Kendall() + Mallows(nu=0.2)
        """
        unknown = sorted(changes.keys() - self.params.keys())
        if unknown:
            there = ", ".join(self.params) or "none"
            raise ValueError(f"{self} has no parameter {unknown[0]!r}; it has: {there}")
        here: dict[str, Any] = {}
        inside: dict[str, dict[str, Any]] = {}
        for name, value in changes.items():
            part, separator, rest = name.partition("__")
            if separator:
                inside.setdefault(part, {})[rest] = value
            else:
                here[name] = value
        for part, its_changes in inside.items():
            here[part] = getattr(self, part).replace(**its_changes)
        return dataclasses.replace(self, **here)  # type: ignore[type-var]

    # ------------------------------------------------------------------ algebra, built in rankernel.kernels.algebra

    def __add__(self, other: Any) -> Kernel:
        return built("added", self, other)

    def __radd__(self, other: Any) -> Kernel:
        return built("added", other, self)

    def __mul__(self, other: Any) -> Kernel:
        return built("multiplied", self, other)

    def __rmul__(self, other: Any) -> Kernel:
        return built("multiplied", other, self)

    def __pow__(self, exponent: Any) -> Kernel:
        return built("Power", self, exponent)

    def exp(self) -> Kernel:
        """Return the exponential of the kernel, a kernel again."""
        return built("Exp", self)


def built(how: str, *parts: Any) -> Kernel:
    """Return a kernel made of others; the module that does it itself needs kernels to be defined."""
    from rankernel.kernels import algebra

    kernel: Kernel = getattr(algebra, how)(*parts)
    return kernel


def prefixed(part: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return a dictionary with ``part__`` before each key."""
    return {f"{part}__{name}": value for name, value in values.items()}


def check_width(name: str, value: Any) -> None:
    """Refuse a kernel width that is neither a finite number >= 0 nor "median"."""
    if (isinstance(value, str) and value == MEDIAN) or (isinstance(value, float) and 0 <= value < math.inf):
        return
    if not is_number(value):
        raise TypeError(f"{name}={short_repr(value)} is not a number; give a number >= 0 or 'median'")
    checks.check_number(name, value, 0)


def number(name: str, value: Any) -> float:
    """Return a parameter that must be a number by now."""
    if isinstance(value, str) and value == MEDIAN:
        raise ValueError(f"{name}='median' depends on the data; use kernel.gram(X), or kernel.resolve(X) first")
    return float(value)


class DistanceKernel(Kernel):
    """A kernel that is a function of one distance."""

    def matrix(self, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the kernel between the rows of two arrays of full rankings."""
        return self.at_distance(self.distances(X, Y), X.shape[1])

    def gradient(self, X: RankArray, Y: RankArray) -> dict[str, FloatArray]:
        """Return the derivative of :meth:`matrix` in each parameter."""
        return self.slopes_at_distance(self.distances(X, Y), X.shape[1])

    def distances(self, X: RankArray, Y: RankArray) -> NDArray[Any]:
        """Return the distances that the kernel is a function of."""
        assert self.argument is not None
        return self.argument.between(X, Y)

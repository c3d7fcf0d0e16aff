"""A kernel is a value with one abstract method; operators build trees.

Everything in this folder is mathematics on FULL rankings, given as integer arrays of ranks (item -> position). How a
kernel is averaged over the completions of partial rankings is the business of :mod:`rankernel.gram`, to which
:meth:`Kernel.gram` and :meth:`Kernel.estimate` hand over.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankernel.distances import Distance
from rankernel.encoding import RankArray

if TYPE_CHECKING:
    from rankernel.gram.estimate import Estimate
    from rankernel.gram.methods import MethodLike

__all__ = ["Constant", "DistanceKernel", "Exp", "Kernel", "Power", "Product", "Scaled", "Sum"]

FloatArray = NDArray[np.float64]

MEDIAN = "median"
TUNABLE = {"tunable": True}  # metadata of a dataclass field that is a parameter to tune


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

    @abstractmethod
    def matrix(self, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the kernel between the rows of two arrays of full rankings."""

    def gradient(self, X: RankArray, Y: RankArray) -> dict[str, FloatArray]:
        """Return the derivative of :meth:`matrix` in each parameter of :attr:`params`."""
        assert not self.params, "a kernel with parameters knows its derivatives"
        return {}

    def is_positive(self, n_items: int) -> bool:
        """Say whether the kernel is positive semi-definite on the rankings of n items."""
        return True

    @property
    def argument(self) -> Distance | None:
        """The distance that the kernel is a function of, if there is one."""
        return None

    def at_distance(self, d: NDArray[Any], n_items: int) -> FloatArray:
        """Return the kernel as a function of its :attr:`argument`."""
        raise TypeError(f"{self} is not a function of one distance")

    def slopes_at_distance(self, d: NDArray[Any], n_items: int) -> dict[str, FloatArray]:
        """Return the derivative of :meth:`at_distance` in each parameter."""
        assert not self.params, "a kernel with parameters knows its derivatives"
        return {}

    @property
    def best_coupling(self) -> str:
        """The coupling of draws that serves this kernel best: reversal where reversed rankings are far apart.

        Measured in ``benchmarks/``: reversal duplicates evaluations of kernels that only ask which items keep their
        places (Hamming) or how the places are permuted (Cayley).
        """
        return {"hamming": "latin", "cayley": "iid"}.get(self.argument.name if self.argument else "", "antithetic")

    # ------------------------------------------------------------------ partial rankings

    def gram(self, X: Any, Y: Any = None, method: MethodLike = "auto", **options: Any) -> NDArray[Any]:
        r"""Return the Gram matrix of partial rankings: the kernel averaged over the completions of both.

        The marginalised (convolution) kernel of the paper,
        :math:`K(R, R') = \frac{1}{|R||R'|} \sum_{\sigma \in R} \sum_{\sigma' \in R'} k(\sigma, \sigma')`.
        Its diagonal is below ``k(σ, σ)`` for partial rankings: a ranking that says less is shorter as a vector.

        Parameters
        ----------
        X, Y : Rankings or integer array
            The rows and the columns; ``Y`` is ``X`` if left out.
        method : {"auto", "exact", "enumeration", "mixed"} or a method object
            How to compute it. "auto" is the closed form where every pair has one at a bearable cost, enumeration
            where the completions are few, else Monte Carlo; one way for all entries.
        **options
            ``normalize=True`` divides by the square roots of the diagonal (cosine); ``out=`` an array to fill;
            ``dtype=`` float64 or float32; ``threads=`` how many tiles to compute at once.

        Examples
        --------
        >>> from rankernel import Mallows, Rankings
        >>> ballots = Rankings.from_orders([["a", "b", "c"], ["c"]])
        >>> Mallows(nu=math.log(2)).gram(ballots)
        array([[1.    , 0.1875],
               [0.1875, 0.75  ]])
        """
        from rankernel.gram import gram

        return gram(self, X, Y, method, **options)

    def __call__(self, X: Any, Y: Any = None) -> NDArray[Any]:
        """Return :meth:`gram`, so that a kernel serves wherever a callable is wanted."""
        return self.gram(X, Y)

    def estimate(self, X: Any, Y: Any = None, method: MethodLike = "auto", **options: Any) -> Estimate:
        """Return the Gram matrix with its standard error and with what was done: ``value``, ``stderr``, ``method``."""
        from rankernel.gram import estimate

        return estimate(self, X, Y, method, **options)

    def log_gram(self, X: Any, Y: Any = None, **options: Any) -> FloatArray:
        """Return the logarithm of the exact Gram matrix, where its values may be too small for a float."""
        from rankernel.gram import log_gram

        return log_gram(self, X, Y, **options)

    def resolve(self, X: Any) -> Kernel:
        """Return the kernel with every ``"median"`` replaced by one over the median distance within ``X``."""
        changes: dict[str, Any] = {}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, Kernel):
                changes[field.name] = value.resolve(X)
            elif value == MEDIAN:
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
        found: dict[str, Any] = {}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, Kernel):
                found |= prefixed(field.name, value.params)
            elif field.metadata.get("tunable"):
                found[field.name] = value
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
            known = ", ".join(self.params) or "none"
            raise ValueError(f"{self} has no parameter {unknown[0]!r}; it has: {known}")
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

    # ------------------------------------------------------------------ algebra

    def __add__(self, other: Any) -> Kernel:
        if isinstance(other, Kernel):
            return Sum(self, other)
        return Sum(self, Constant(float(other))) if is_number(other) else NotImplemented

    def __radd__(self, other: Any) -> Kernel:
        return Sum(Constant(float(other)), self) if is_number(other) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(float(other), self) if is_number(other) else NotImplemented

    def __rmul__(self, other: Any) -> Kernel:
        return Scaled(float(other), self) if is_number(other) else NotImplemented

    def __pow__(self, exponent: Any) -> Kernel:
        return Power(self, exponent)

    def exp(self) -> Kernel:
        """Return the exponential of the kernel, a kernel again."""
        return Exp(self)


def is_number(value: object) -> bool:
    """Say whether a value is a plain real number."""
    return isinstance(value, Real) and not isinstance(value, bool)


def prefixed(part: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return a dictionary with ``part__`` before each key."""
    return {f"{part}__{name}": value for name, value in values.items()}


def check_width(name: str, value: Any) -> None:
    """Refuse a kernel width that is neither a finite number >= 0 nor "median"."""
    if value == MEDIAN:
        return
    if not is_number(value):
        raise TypeError(f"{name}={value!r} is not a number; give a number >= 0 or 'median'")
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name}={value} is not possible; it must be a finite number >= 0")


def check_whole(name: str, value: Any) -> None:
    """Refuse a parameter that is not a whole number >= 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name}={value!r} is not possible; it must be a whole number >= 1")


def number(name: str, value: Any) -> float:
    """Return a parameter that must be a number by now."""
    if value == MEDIAN:
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


# ---------------------------------------------------------------------- trees


@dataclass(frozen=True, repr=False)
class Constant(Kernel):
    """The kernel that is the same for all rankings."""

    value: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and self.value >= 0):
            raise ValueError(f"a constant kernel is a finite number >= 0; got {self.value}")

    def matrix(self, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the constant for every pair."""
        return np.full((len(X), len(Y)), self.value)

    def at_distance(self, d: NDArray[Any], n_items: int) -> FloatArray:
        """Return the constant for every distance."""
        return np.full(np.shape(d), self.value)

    def __repr__(self) -> str:
        return f"{self.value:g}"


class Tree(Kernel):
    """A kernel made of other kernels, entry by entry."""

    @abstractmethod
    def combine(self, *values: FloatArray) -> FloatArray:
        """Return the value of the whole from those of the parts."""

    @abstractmethod
    def partials(self, *values: FloatArray) -> tuple[FloatArray | float, ...]:
        """Return the derivative of the whole in the value of each part."""

    def own_slopes(self, *values: FloatArray) -> dict[str, FloatArray]:
        """Return the derivative of the whole in parameters of its own."""
        return {}

    @property
    def parts(self) -> dict[str, Kernel]:
        """The kernels inside, by name."""
        inside = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {name: part for name, part in inside.items() if isinstance(part, Kernel)}

    def matrix(self, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the kernel between the rows of two arrays of full rankings."""
        return self.combine(*(part.matrix(X, Y) for part in self.parts.values()))

    def gradient(self, X: RankArray, Y: RankArray) -> dict[str, FloatArray]:
        """Return the derivatives by the chain rule."""
        values = [part.matrix(X, Y) for part in self.parts.values()]
        return self.chain(values, [part.gradient(X, Y) for part in self.parts.values()])

    def at_distance(self, d: NDArray[Any], n_items: int) -> FloatArray:
        """Return the kernel as a function of the distance that its parts share."""
        return self.combine(*(part.at_distance(d, n_items) for part in self.parts.values()))

    def slopes_at_distance(self, d: NDArray[Any], n_items: int) -> dict[str, FloatArray]:
        """Return the derivatives by the chain rule."""
        values = [part.at_distance(d, n_items) for part in self.parts.values()]
        return self.chain(values, [part.slopes_at_distance(d, n_items) for part in self.parts.values()])

    def chain(self, values: list[FloatArray], slopes: list[dict[str, FloatArray]]) -> dict[str, FloatArray]:
        """Return the derivatives of the whole from values and derivatives of the parts."""
        found = self.own_slopes(*values)
        for name, outer, inner in zip(self.parts, self.partials(*values), slopes, strict=True):
            found |= prefixed(name, {parameter: outer * slope for parameter, slope in inner.items()})
        return found

    def is_positive(self, n_items: int) -> bool:
        """Say whether all parts are: sums, products (Schur) and exponentials of kernels are kernels."""
        return all(part.is_positive(n_items) for part in self.parts.values())

    @property
    def best_coupling(self) -> str:
        """The coupling that serves all parts best, if they agree."""
        found = {part.best_coupling for part in self.parts.values() if not isinstance(part, Constant)}
        return found.pop() if len(found) == 1 else "iid"

    @property
    def argument(self) -> Distance | None:
        """The one distance that all parts but the constant ones are functions of, if there is one."""
        found = [part.argument for part in self.parts.values() if not isinstance(part, Constant)]
        return found[0] if found and all(distance == found[0] for distance in found) else None


@dataclass(frozen=True, repr=False)
class Sum(Tree):
    """The sum of two kernels."""

    left: Kernel
    right: Kernel

    def combine(self, *values: FloatArray) -> FloatArray:
        """Return left + right."""
        return values[0] + values[1]

    def partials(self, *values: FloatArray) -> tuple[FloatArray | float, ...]:
        """Return 1 and 1."""
        return 1.0, 1.0

    def __repr__(self) -> str:
        return f"{self.left} + {self.right}"


@dataclass(frozen=True, repr=False)
class Product(Tree):
    """The product of two kernels."""

    left: Kernel
    right: Kernel

    def combine(self, *values: FloatArray) -> FloatArray:
        """Return left times right."""
        return values[0] * values[1]

    def partials(self, *values: FloatArray) -> tuple[FloatArray | float, ...]:
        """Return right and left."""
        return values[1], values[0]

    def __repr__(self) -> str:
        return f"{factor_text(self.left)} * {factor_text(self.right)}"


@dataclass(frozen=True, repr=False)
class Scaled(Tree):
    """A kernel times a positive number."""

    scale: float = dataclasses.field(metadata=TUNABLE)
    kernel: Kernel

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f"a kernel can be scaled by a finite positive number only; got {self.scale}")

    def combine(self, *values: FloatArray) -> FloatArray:
        """Return scale times kernel."""
        return self.scale * values[0]

    def partials(self, *values: FloatArray) -> tuple[FloatArray | float, ...]:
        """Return the scale."""
        return (self.scale,)

    def own_slopes(self, *values: FloatArray) -> dict[str, FloatArray]:
        """Return the kernel, as the derivative in the scale."""
        return {"scale": values[0]}

    def __repr__(self) -> str:
        return f"{self.scale:g} * {factor_text(self.kernel)}"


@dataclass(frozen=True, repr=False)
class Power(Tree):
    """A kernel to a positive whole power."""

    kernel: Kernel
    exponent: int

    def __post_init__(self) -> None:
        check_whole("exponent", self.exponent)

    def combine(self, *values: FloatArray) -> FloatArray:
        """Return the kernel to that power."""
        return values[0] ** self.exponent

    def partials(self, *values: FloatArray) -> tuple[FloatArray | float, ...]:
        """Return the derivative of the power."""
        return (self.exponent * values[0] ** (self.exponent - 1),)

    def __repr__(self) -> str:
        return f"{atom_text(self.kernel)} ** {self.exponent}"


@dataclass(frozen=True, repr=False)
class Exp(Tree):
    """The exponential of a kernel."""

    kernel: Kernel

    def combine(self, *values: FloatArray) -> FloatArray:
        """Return the exponential."""
        return np.asarray(np.exp(values[0]))

    def partials(self, *values: FloatArray) -> tuple[FloatArray | float, ...]:
        """Return the exponential."""
        return (np.asarray(np.exp(values[0])),)

    def __repr__(self) -> str:
        return f"{atom_text(self.kernel)}.exp()"


def factor_text(kernel: Kernel) -> str:
    """Return a kernel as it is written inside a product."""
    return f"({kernel})" if isinstance(kernel, Sum) else str(kernel)


def atom_text(kernel: Kernel) -> str:
    """Return a kernel as it is written before a power or a dot."""
    return f"({kernel})" if isinstance(kernel, Sum | Product | Scaled | Power | Constant) else str(kernel)

"""New kernels from old ones: sums, multiples, products, powers and exponentials of kernels are kernels."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import FloatArray, RankArray
from rankernel._utils.checks import check_integer, is_number
from rankernel.distances import Distance
from rankernel.kernels.base import TUNABLE, Decay, Kernel, Term, prefixed


def added(left: Any, right: Any) -> Kernel:
    """Return the sum of two kernels, or of a kernel and a number."""
    parts = [Constant(float(part)) if is_number(part) else part for part in (left, right)]
    return Sum(*parts) if all(isinstance(part, Kernel) for part in parts) else NotImplemented


def multiplied(left: Any, right: Any) -> Kernel:
    """Return the product of two kernels, or a multiple of one."""
    if is_number(left):
        return Scaled(float(left), right)
    if is_number(right):
        return Scaled(float(right), left)
    return Product(left, right) if isinstance(left, Kernel) and isinstance(right, Kernel) else NotImplemented


@dataclass(frozen=True, repr=False)
class Constant(Kernel):
    """The kernel that is the same for all rankings."""

    value: float

    def __post_init__(self) -> None:
        if not 0 <= self.value < math.inf:
            raise ValueError(f"a constant kernel is a finite number >= 0; got {self.value}")

    def matrix(self, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the constant for every pair."""
        return np.full((len(X), len(Y)), self.value)

    def at_distance(self, d: NDArray[Any], n_items: int) -> FloatArray:
        """Return the constant for every distance."""
        return np.full(np.shape(d), self.value)

    positive = True

    def most_dimensions(self, n_items: int) -> float:
        """Return 1."""
        return 1

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

    @property
    def varying(self) -> list[Kernel]:
        """The parts that are not constant."""
        return [part for part in self.parts.values() if not isinstance(part, Constant)]

    def check_n_items(self, n_items: int) -> None:
        """Refuse rankings of more items than a part can take."""
        for part in self.parts.values():
            part.check_n_items(n_items)

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

    def is_positive(self, n_items: int) -> bool | None:
        """Say yes if all parts are: sums, products (Schur) and exponentials of kernels are kernels."""
        return True if all(part.is_positive(n_items) for part in self.parts.values()) else None

    @property
    def best_coupling(self) -> str:
        """The coupling that serves all parts best, if they agree."""
        found = {part.best_coupling for part in self.varying}
        return found.pop() if len(found) == 1 else "iid"

    @property
    def argument(self) -> Distance | None:
        """The one distance that all parts but the constant ones are functions of, if there is one."""
        found = [part.argument for part in self.varying]
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

    def most_dimensions(self, n_items: int) -> float:
        """Return those of both, the constants counted once."""
        return self.left.most_dimensions(n_items) + self.right.most_dimensions(n_items) - 1

    def terms(self) -> list[Term]:
        """Return the terms of both."""
        return [inside(name, term) for name, part in self.parts.items() for term in part.terms()]

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

    def most_dimensions(self, n_items: int) -> float:
        """Return how many products there are."""
        return self.left.most_dimensions(n_items) * self.right.most_dimensions(n_items)

    @property
    def decay(self) -> Decay | None:
        """Two rates add up, if the distance is the same."""
        left, right = self.left.decay, self.right.decay
        if left is None or right is None or self.argument is None:
            return None
        return Decay(left.rate + right.rate, prefixed("left", left.slopes) | prefixed("right", right.slopes))

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

    def is_positive(self, n_items: int) -> bool | None:
        """Say what the kernel inside says."""
        return self.kernel.is_positive(n_items)

    def most_dimensions(self, n_items: int) -> float:
        """Return those of the kernel inside."""
        return self.kernel.most_dimensions(n_items)

    def terms(self) -> list[Term]:
        """Return the terms of the kernel inside, their weights times the scale."""
        found = [inside("kernel", term) for term in self.kernel.terms()]
        scale = ("scale", self.scale)
        return [
            dataclasses.replace(term, weight=self.scale * term.weight, scales=(scale, *term.scales)) for term in found
        ]

    def __repr__(self) -> str:
        return f"{self.scale:g} * {factor_text(self.kernel)}"


@dataclass(frozen=True, repr=False)
class Power(Tree):
    """A kernel to a positive whole power."""

    kernel: Kernel
    exponent: int

    def __post_init__(self) -> None:
        check_integer("exponent", self.exponent)

    def combine(self, *values: FloatArray) -> FloatArray:
        """Return the kernel to that power."""
        return values[0] ** self.exponent

    def partials(self, *values: FloatArray) -> tuple[FloatArray | float, ...]:
        """Return the derivative of the power."""
        return (self.exponent * values[0] ** (self.exponent - 1),)

    def most_dimensions(self, n_items: int) -> float:
        """Return how many monomials of that degree there are."""
        inner = self.kernel.most_dimensions(n_items)
        return math.comb(int(inner) + self.exponent - 1, self.exponent) if math.isfinite(inner) else math.inf

    @property
    def decay(self) -> Decay | None:
        """So many times the rate."""
        found, n = self.kernel.decay, self.exponent
        return found and Decay(n * found.rate, prefixed("kernel", {name: n * s for name, s in found.slopes.items()}))

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


def inside(part: str, term: Term) -> Term:
    """Return a term of a part as one of the whole."""
    scales = tuple((f"{part}__{name}", value) for name, value in term.scales)
    return dataclasses.replace(term, prefix=f"{part}__{term.prefix}", scales=scales)


def factor_text(kernel: Kernel) -> str:
    """Return a kernel as it is written inside a product."""
    return f"({kernel})" if isinstance(kernel, Sum) else str(kernel)


def atom_text(kernel: Kernel) -> str:
    """Return a kernel as it is written before a power or a dot."""
    return f"({kernel})" if isinstance(kernel, Sum | Product | Scaled | Power | Constant) else str(kernel)

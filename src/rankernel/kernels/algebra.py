"""Sums, multiples, products, powers and exponentials of kernels, and the facts derived from those of their parts."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import FloatArray, RankArray
from rankernel._utils.checks import check_integer, is_number
from rankernel.kernels.base import (
    AffinePower,
    AnyFunction,
    Decay,
    DistanceFunction,
    Facts,
    Kernel,
    attributes,
    cached_facts,
    distance_derivatives,
    prefixed,
)


def add(left: Any, right: Any) -> Kernel:
    """Return the sum of two kernels, or of a kernel and a number."""
    parts = [Constant(float(part)) if is_number(part) else part for part in (left, right)]
    return Sum(*parts) if all(isinstance(part, Kernel) for part in parts) else NotImplemented


def multiply(left: Any, right: Any) -> Kernel:
    """Return the product of two kernels, or a multiple of one."""
    if is_number(left):
        return Scaled(float(left), right)
    if is_number(right):
        return Scaled(float(right), left)
    return Product(left, right) if isinstance(left, Kernel) and isinstance(right, Kernel) else NotImplemented


@dataclass(frozen=True, repr=False)
class Constant(Kernel):
    """The kernel with the same value for all rankings."""

    value: float
    parameter_bounds = {"value": "fixed"}  # noqa: RUF012

    def __post_init__(self) -> None:
        if not 0 <= self.value < math.inf:
            raise ValueError(f"a constant kernel is a finite number >= 0; got {self.value}")

    def matrix(self, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the constant for every pair."""
        return np.full((len(X), len(Y)), self.value)

    def facts(self, n_items: int) -> Facts:
        """Return that the kernel is positive semi-definite, and constant as a function of any distance."""
        return Facts(is_psd=True, max_dimension=1, function=AffinePower(self.value, 0.0))

    def __repr__(self) -> str:
        return f"{self.value:g}"


class Tree(Kernel):
    """A kernel computed from other kernels, entry by entry."""

    @abstractmethod
    def combine(self, *values: FloatArray) -> FloatArray:
        """Return the value of the kernel from those of the parts."""

    @abstractmethod
    def partials(self, *values: FloatArray) -> tuple[FloatArray | float, ...]:
        """Return the derivative of the kernel in the value of each part."""

    def max_dimension(self, *parts: float) -> float:
        """Return the bound on the dimension of the features, given those of the parts."""
        return math.inf

    def function(self, *parts: DistanceFunction) -> DistanceFunction | None:
        """Return the kernel as a decay or an affine power of the distance that its parts are functions of, if it is."""
        return None

    @property
    def parts(self) -> dict[str, Kernel]:
        """The kernels inside, by name."""
        return {name: part for name, part in attributes(self).items() if isinstance(part, Kernel)}

    def matrix(self, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the kernel between the rows of two arrays of full rankings."""
        return self.combine(*(part.matrix(X, Y) for part in self.parts.values()))

    def gradient(self, X: RankArray, Y: RankArray) -> dict[str, FloatArray]:
        """Return the derivatives by the chain rule."""
        values = [part.matrix(X, Y) for part in self.parts.values()]
        return self.chain_rule(values, [part.gradient(X, Y) for part in self.parts.values()])

    def chain_rule(self, values: list[FloatArray], gradients: list[dict[str, FloatArray]]) -> dict[str, FloatArray]:
        """Return the derivatives of the kernel from values and derivatives of the parts."""
        result: dict[str, FloatArray] = {}
        for name, outer, inner in zip(self.parts, self.partials(*values), gradients, strict=True):
            result |= prefixed(name, {parameter: outer * derivative for parameter, derivative in inner.items()})
        return result

    @cached_facts
    def facts(self, n_items: int) -> Facts:
        """Return the facts that follow from those of the parts.

        Sums, products (Schur) and exponentials of positive semi-definite kernels are positive semi-definite.
        """
        parts = [part.facts(n_items) for part in self.parts.values()]
        varying = [part.facts(n_items) for part in self.parts.values() if not isinstance(part, Constant)]
        limits = [facts.max_items for facts in parts if facts.max_items is not None]
        couplings = {facts.coupling for facts in varying}
        distance = varying[0].distance if varying else None
        of_one_distance = distance is not None and all(facts.distance == distance for facts in varying)
        return Facts(
            is_psd=True if all(facts.is_psd for facts in parts) else None,
            max_dimension=self.max_dimension(*(facts.max_dimension for facts in parts)),
            max_items=min(limits, default=None),
            distance=distance if of_one_distance else None,
            function=self.distance_function(n_items) if of_one_distance else None,
            coupling=couplings.pop() if len(couplings) == 1 else "iid",
        )

    def distance_function(self, n_items: int) -> DistanceFunction | None:
        """Return the kernel as a function of the distance that its parts share; None while that is unresolved."""
        known = [part.facts(n_items).function for part in self.parts.values()]
        functions = [function for function in known if function is not None]
        if len(functions) < len(known):
            return None

        def values(d: NDArray[Any]) -> list[FloatArray]:
            return [function.value(d) for function in functions]

        def derivatives(d: NDArray[Any]) -> dict[str, FloatArray]:
            inner = [distance_derivatives(part, n_items, d) for part in self.parts.values()]
            return self.chain_rule(values(d), inner)

        simple = self.function(*functions)
        if isinstance(simple, AffinePower):
            return dataclasses.replace(simple, derivatives_at=derivatives)
        return simple or AnyFunction(lambda d: self.combine(*values(d)), derivatives)


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

    def max_dimension(self, *parts: float) -> float:
        """Return the sum, with the constants counted once."""
        return sum(parts) - 1

    def function(self, *parts: DistanceFunction) -> DistanceFunction | None:
        """Return the sum of two affine functions."""
        linear = [part for part in parts if isinstance(part, AffinePower) and part.degree == 1]
        if len(linear) < 2:
            return None
        return AffinePower(sum(p.factor * p.intercept for p in linear), sum(p.factor * p.coefficient for p in linear))

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

    def max_dimension(self, *parts: float) -> float:
        """Return the number of products."""
        return parts[0] * parts[1]

    def function(self, *parts: DistanceFunction) -> DistanceFunction | None:
        """Return the decay with the sum of the rates, or the product of two powers of one affine function."""
        left, right = parts
        if isinstance(left, Decay) and isinstance(right, Decay):
            derivatives = prefixed("left", left.of_parameters) | prefixed("right", right.of_parameters)
            return Decay(left.rate + right.rate, derivatives)
        if not (isinstance(left, AffinePower) and isinstance(right, AffinePower)):
            return None
        if (left.intercept, left.coefficient) != (right.intercept, right.coefficient):
            return None
        return dataclasses.replace(left, degree=left.degree + right.degree, factor=left.factor * right.factor)

    def __repr__(self) -> str:
        return f"{factor_text(self.left)} * {factor_text(self.right)}"


@dataclass(frozen=True, repr=False)
class Scaled(Tree):
    """A kernel times a positive number."""

    scale: float
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

    def chain_rule(self, values: list[FloatArray], gradients: list[dict[str, FloatArray]]) -> dict[str, FloatArray]:
        """Return the derivatives in the scale, which is the kernel, and in the parameters of the kernel."""
        return {"scale": values[0]} | super().chain_rule(values, gradients)

    def facts(self, n_items: int) -> Facts:
        """Return the facts that follow from those of the kernel; a multiple of an indefinite kernel is indefinite."""
        return dataclasses.replace(super().facts(n_items), is_psd=self.kernel.facts(n_items).is_psd)

    def max_dimension(self, *parts: float) -> float:
        """Return that of the kernel."""
        return parts[0]

    def function(self, *parts: DistanceFunction) -> DistanceFunction | None:
        """Return the scaled power."""
        (part,) = parts
        return dataclasses.replace(part, factor=self.scale * part.factor) if isinstance(part, AffinePower) else None

    def __repr__(self) -> str:
        return f"{self.scale:g} * {factor_text(self.kernel)}"


@dataclass(frozen=True, repr=False)
class Power(Tree):
    """A positive integer power of a kernel."""

    kernel: Kernel
    exponent: int

    def __post_init__(self) -> None:
        check_integer("exponent", self.exponent)

    def combine(self, *values: FloatArray) -> FloatArray:
        """Return the power."""
        return values[0] ** self.exponent

    def partials(self, *values: FloatArray) -> tuple[FloatArray | float, ...]:
        """Return the derivative of the power."""
        return (self.exponent * values[0] ** (self.exponent - 1),)

    def max_dimension(self, *parts: float) -> float:
        """Return the number of monomials of that degree."""
        inner = parts[0]
        return math.comb(int(inner) + self.exponent - 1, self.exponent) if math.isfinite(inner) else math.inf

    def function(self, *parts: DistanceFunction) -> DistanceFunction | None:
        """Return the decay with a multiple of the rate, or the higher power of an affine function."""
        (part,), n = parts, self.exponent
        if isinstance(part, Decay):
            return Decay(n * part.rate, prefixed("kernel", {name: n * s for name, s in part.of_parameters.items()}))
        if isinstance(part, AffinePower):
            return dataclasses.replace(part, degree=n * part.degree, factor=part.factor**n)
        return None

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


# ---------------------------------------------------------------------- texts


def factor_text(kernel: Kernel) -> str:
    """Return the text of a kernel inside a product."""
    return f"({kernel})" if isinstance(kernel, Sum) else str(kernel)


def atom_text(kernel: Kernel) -> str:
    """Return the text of a kernel before a power or a dot."""
    return f"({kernel})" if isinstance(kernel, Sum | Product | Scaled | Power | Constant) else str(kernel)

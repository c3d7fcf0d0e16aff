"""Controls: functions of two draws whose means over completions are known exactly.

An exponential kernel is a power series, with coefficients >= 0, in an inner product of features whose first and second
moments over the completions of a ranking are known. Replacing these coordinates of the sampled embedding by their exact
values takes out most of the sampling error. What is left is still the Gram matrix of vectors, so it stays positive
semi-definite, and off the diagonal it stays unbiased.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import comb, exp, sqrt
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankernel import distances
from rankernel.distances import Distance
from rankernel.gram.evaluator import FloatArray
from rankernel.gram.mean_features import distance_features
from rankernel.gram.moments import pair_means, rank_means
from rankernel.gram.pair_moments import pair_product_features, rank_products
from rankernel.gram.partial_orders import Data
from rankernel.kernels.base import Kernel, Scaled, Sum, prefixed
from rankernel.kernels.exponential import ExponentialKernel
from rankernel.kernels.kendall import Kendall, Polynomial
from rankernel.kernels.linear import Hamming, Spearman

__all__ = ["Control", "controls", "highest_degree"]

Coefficient = Callable[[Kernel], tuple[float, dict[str, float]]]


@dataclass(frozen=True)
class Control:
    """A polynomial of a distance with a known mean: ``<features, features'> + offset``.

    ``coefficient`` gives its coefficient in the power series of a kernel, and the derivatives of the coefficient in
    the parameters of the kernel.
    """

    distance: Distance
    degree: int
    at_distance: Callable[[NDArray[Any]], FloatArray]
    features: Callable[[Data], FloatArray]
    offset: float
    coefficient: Coefficient


def controls(kernel: Kernel, n_items: int, degree: int) -> list[Control]:
    """Return the controls of a kernel up to a degree: those of its leaves, through sums and scalings."""
    match kernel:
        case Sum(left, right):
            return [
                *lifted(controls(left, n_items, degree), "left", lambda whole: cast(Sum, whole).left),
                *lifted(controls(right, n_items, degree), "right", lambda whole: cast(Sum, whole).right),
            ]
        case Scaled(kernel=inner):
            return [scaled(control) for control in controls(inner, n_items, degree)]
    return [control for control in leaf_controls(kernel, n_items) if control.degree <= degree]


def highest_degree(kernel: Kernel, n_items: int) -> int:
    """Return the highest degree that a kernel has controls of."""
    return max((control.degree for control in controls(kernel, n_items, 2)), default=0)


def lifted(inner: Iterable[Control], name: str, part: Callable[[Kernel], Kernel]) -> list[Control]:
    """Return the controls of a part as those of the whole."""

    def lift(coefficient: Coefficient) -> Coefficient:
        def of_whole(whole: Kernel) -> tuple[float, dict[str, float]]:
            value, slopes = coefficient(part(whole))
            return value, prefixed(name, slopes)

        return of_whole

    return [with_coefficient(control, lift(control.coefficient)) for control in inner]


def scaled(control: Control) -> Control:
    """Return a control of a kernel as one of the scaled kernel."""

    def coefficient(whole: Kernel) -> tuple[float, dict[str, float]]:
        outer = cast(Scaled, whole)
        value, slopes = control.coefficient(outer.kernel)
        inside = {name: outer.scale * slope for name, slope in slopes.items()}
        return outer.scale * value, {"scale": value} | prefixed("kernel", inside)

    return with_coefficient(control, coefficient)


def with_coefficient(control: Control, coefficient: Coefficient) -> Control:
    """Return a control with another coefficient."""
    return Control(control.distance, control.degree, control.at_distance, control.features, control.offset, coefficient)


def leaf_controls(kernel: Kernel, n_items: int) -> list[Control]:
    """Return the controls of a kernel that is no sum or multiple of others."""
    if n_items < 3:
        return []
    match kernel:
        case Kendall():
            return kendall_controls(n_items, lambda _: (1.0, {}), lambda _: (0.0, {}))[:1]
        case Polynomial(degree=m):
            return kendall_controls(n_items, lambda _: (float(m), {}), lambda _: (float(comb(m, 2)), {}))
        case Hamming():
            return hamming_controls(n_items, lambda _: (1.0, {}))
        case Spearman():
            squares = n_items * (n_items**2 - 1) / 12
            return spearman_controls(n_items, lambda _: (1 / squares, {}), lambda _: (0.0, {}))[:1]
        case ExponentialKernel():
            return exponential_controls(kernel, n_items)
    return []


def exponential_controls(kernel: ExponentialKernel, n: int) -> list[Control]:
    """Return the controls of exp(-nu d), for the four distances that are linear in features."""
    match kernel.argument:
        case distances.kendall:
            return mallows_controls(n)
        case distances.spearman:
            # d = n(n²-1)/6 - 2z with z the inner product of centred ranks
            peak = n * (n**2 - 1) / 6
            return spearman_controls(n, series_coefficient(peak, 2.0, 1), series_coefficient(peak, 2.0, 2))
        case distances.hamming:
            return hamming_controls(n, series_coefficient(n - 1.0, 1.0, 1))
        case distances.footrule:
            return footrule_controls(n)
    return []


def series_coefficient(peak: float, rate: float, degree: int) -> Coefficient:
    """Return the coefficient of ``z^degree / degree!`` in ``exp(-nu (peak - rate z))``."""

    def coefficient(kernel: Kernel) -> tuple[float, dict[str, float]]:
        nu = cast(ExponentialKernel, kernel).width
        outer = exp(-nu * peak)
        value = (rate * nu) ** degree * outer
        return value, {"nu": degree * rate**degree * nu ** (degree - 1) * outer - peak * value}

    return coefficient


def kendall_controls(n: int, first: Coefficient, second: Coefficient) -> list[Control]:
    """Return k_tau and its square."""
    pairs = comb(n, 2)
    return [
        Control(distances.kendall, 1, lambda d: 1 - 2 * d / pairs, lambda X: pair_means(X) / sqrt(pairs), 0.0, first),
        Control(
            distances.kendall,
            2,
            lambda d: (1 - 2 * d / pairs) ** 2,
            lambda X: pair_product_features(X) / pairs,
            0.0,
            second,
        ),
    ]


def mallows_controls(n: int) -> list[Control]:
    """Return the sums over one and over two different pairs of items of the products of their signs.

    ``q^d = sum over sets S of pairs of a^(P-|S|) b^|S| s_S s'_S`` with a = (1+q)/2, b = (1-q)/2 (Mania et al. 2018);
    the sum over sets of one is z = P - 2d, that over sets of two (z² - P)/2.
    """
    pairs = comb(n, 2)

    def coefficient(size: int) -> Coefficient:
        def of(kernel: Kernel) -> tuple[float, dict[str, float]]:
            q = exp(-cast(ExponentialKernel, kernel).width)
            a, b = (1 + q) / 2, (1 - q) / 2
            value = a ** (pairs - size) * b**size
            slope = size * b ** (size - 1) * a ** (pairs - size) - (pairs - size) * a ** (pairs - size - 1) * b**size
            return value, {"nu": q / 2 * slope}

        return of

    return [
        Control(distances.kendall, 1, lambda d: pairs - 2.0 * d, pair_means, 0.0, coefficient(1)),
        Control(
            distances.kendall,
            2,
            lambda d: ((pairs - 2.0 * d) ** 2 - pairs) / 2,
            lambda X: pair_product_features(X) / sqrt(2),
            -pairs / 2,
            coefficient(2),
        ),
    ]


def spearman_controls(n: int, first: Coefficient, second: Coefficient) -> list[Control]:
    """Return the inner product z of centred ranks, and half its square."""
    squares = n * (n**2 - 1) / 12
    return [
        Control(distances.spearman, 1, lambda d: squares - d / 2, rank_means, 0.0, first),
        Control(
            distances.spearman,
            2,
            lambda d: (squares - d / 2) ** 2 / 2,
            lambda X: rank_products(X).reshape(len(X), -1) / sqrt(2),
            0.0,
            second,
        ),
    ]


def hamming_controls(n: int, first: Coefficient) -> list[Control]:
    """Return the number of agreements less one: the inner product of centred permutation matrices."""

    def features(X: Data) -> FloatArray:
        parts = distance_features(distances.hamming, X)
        assert parts is not None
        return sqrt(2) * parts[1]

    return [Control(distances.hamming, 1, lambda d: n - 1.0 - d, features, -1.0, first)]


def footrule_controls(n: int) -> list[Control]:
    """Return the inner product of the centred indicators "at most at place t": ``(n²-1)/6 - d/2``."""
    mean = (n**2 - 1) / 6

    def features(X: Data) -> FloatArray:
        parts = distance_features(distances.footrule, X)
        assert parts is not None
        return np.asarray(parts[1] - np.tile(np.arange(1, n) / n, n))

    first = series_coefficient(2 * mean, 2.0, 1)
    return [Control(distances.footrule, 1, lambda d: mean - d / 2, features, 0.0, first)]

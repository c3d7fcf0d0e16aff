"""Which kernels certainly cannot tell all distributions of rankings apart: their features are too few."""

from __future__ import annotations

import math
import warnings

from rankernel import distances
from rankernel.distances import by_name
from rankernel.errors import NotCharacteristicWarning
from rankernel.kernels import (
    Constant,
    DistanceInduced,
    Hamming,
    Kendall,
    Kernel,
    Polynomial,
    Power,
    Product,
    Scaled,
    Spearman,
    Sum,
    WeightedKendall,
)
from rankernel.kernels.exponential import ExponentialKernel

__all__ = ["most_features", "warn_if_not_characteristic"]


def warn_if_not_characteristic(kernel: Kernel, n_items: int) -> None:
    """Warn where different distributions of full rankings certainly have the same mean embedding."""
    if most_features(kernel, n_items) < math.factorial(n_items):
        warnings.warn(
            f"{kernel} is not characteristic on {n_items} items: distributions that differ may look the same to it, "
            "however many rankings there are; Mallows(nu) sees every difference",
            NotCharacteristicWarning,
            stacklevel=4,
        )


def most_features(kernel: Kernel, n_items: int) -> float:
    """Return a bound on how many dimensions the features of a kernel and the constants span together.

    A kernel is characteristic on n items only if that number is n!, the dimension of all functions of a ranking. It
    is infinite here for kernels that have no such bound.

    Examples
    --------
    >>> most_features(Kendall(), n_items=4), most_features(Kendall() + Hamming(), n_items=4)
    (7, 16)
    """
    pairs, places = math.comb(n_items, 2), (n_items - 1) ** 2
    match kernel:
        case Constant():
            return 1
        case Kendall():
            return 1 + pairs
        case Hamming():
            return 1 + places
        case Spearman():
            return n_items
        case WeightedKendall():
            return 1 + 2 * pairs
        case Polynomial(degree):
            return sum(math.comb(pairs, size) for size in range(min(degree, pairs) + 1))
        case DistanceInduced(distance):
            return 1 + induced_features(by_name(distance), pairs, places)
        case Scaled(_, inner):
            return most_features(inner, n_items)
        case Sum(left, right):
            return most_features(left, n_items) + most_features(right, n_items) - 1
        case Product(left, right):
            return most_features(left, n_items) * most_features(right, n_items)
        case Power(inner, exponent):
            return most_monomials(most_features(inner, n_items), exponent)
        case ExponentialKernel(nu=0):
            return 1
    return math.inf


def induced_features(distance: distances.Distance, pairs: int, places: int) -> float:
    """Return how many features stand behind a distance that is a sum over pairs of items, or over items."""
    if distance == distances.kendall:
        return pairs
    # Each of these adds up a function of the two places of each item.
    return places if distance in (distances.hamming, distances.spearman, distances.footrule) else math.inf


def most_monomials(n_features: float, degree: int) -> float:
    """Return how many monomials of a degree there are in some number of features."""
    return math.comb(int(n_features) + degree - 1, degree) if math.isfinite(n_features) else math.inf

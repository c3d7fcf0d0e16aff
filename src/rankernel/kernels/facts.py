"""The known properties of a kernel, in one record.

:meth:`Kernel.facts` returns a :class:`Facts`. Every field is optional: a kernel without facts is averaged over
completions by enumeration or Monte Carlo. Each field that is set opens a faster or more accurate method.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import FloatArray, RankArray
from rankernel.distances import Distance
from rankernel.errors import ExactnessError
from rankernel.linear_features import LinearFeatures, PositionMatrix

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
    series: PowerSeries | None = None
    coupling: str = "iid"

    def __post_init__(self) -> None:
        if self.function is None and self.decay is not None:
            object.__setattr__(self, "function", exponential_function(self.decay))
        elif self.function is None and self.affine_power is not None:
            object.__setattr__(self, "function", DistanceFunction(self.affine_power, lambda _: {}))


def exponential_function(decay: DecayRate) -> DistanceFunction:
    """Return ``exp(-rate * d)`` as a function of the distance."""

    def value(d: Distances) -> FloatArray:
        return np.asarray(np.exp(-decay.rate * np.asarray(d)))

    def derivatives(d: Distances) -> dict[str, FloatArray]:
        derivative = -np.asarray(d) * value(d)
        return {name: factor * derivative for name, factor in decay.derivatives.items()}

    return DistanceFunction(value, derivatives, lambda d: np.asarray(-decay.rate * np.asarray(d)))


FactsMethod = TypeVar("FactsMethod", bound=Callable[[Any, int], Facts])


def cached_facts(method: FactsMethod) -> FactsMethod:
    """Decorate a ``facts`` method so that equal kernels share one record for each number of items."""
    return cast(FactsMethod, lru_cache(maxsize=64)(method))

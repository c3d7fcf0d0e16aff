"""Control variates: powers of an inner product of features whose means over completions are known exactly.

A kernel may be a power series, with coefficients >= 0, in the inner product z of centred features whose first and
second moments over the completions of a ranking are known. Replacing these coordinates of the sampled embedding by
their exact values removes most of the sampling error. The estimate is still a Gram matrix of vectors, so it stays
positive semi-definite, and between different rankings it stays unbiased.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import FloatArray, RankArray
from rankernel.distances import Distance
from rankernel.gram.evaluator import Block
from rankernel.gram.exact.features import FeatureEvaluator, centred_products
from rankernel.gram.rows import Rows
from rankernel.kernels.algebra import terms
from rankernel.kernels.base import Kernel

MAX_DEGREE = {"pairs": 2, "ranks": 2, "positions": 1}  # of the known moments of each kind of features
MAX_ITEMS_SQUARED = 24  # beyond, the products of all pairs of items cost far more than the draws (benchmarks/cost.py)


@dataclass(frozen=True)
class Power:
    """One control variate: a power of z, where the distance is ``d = 2 (L - z)``."""

    distance: Distance
    degree: int
    half_range: float  # L

    def at_distance(self, d: NDArray[np.generic]) -> FloatArray:
        """Return ``z^degree`` at given distances."""
        return np.asarray((self.half_range - np.asarray(d, dtype=np.float64) / 2) ** self.degree)

    def mean_features(self, X: Rows) -> FloatArray:
        """Return vectors whose inner products are the means of ``z^degree`` over completions."""
        return centred_products(self.distance, X, self.degree)

    def n_features(self, n_items: int) -> int:
        """Return the number of these features."""
        embedding = self.distance.embedding
        assert embedding is not None
        size = {"pairs": comb(n_items, 2), "ranks": n_items, "positions": n_items**2}[embedding.statistic]
        return size if self.degree == 1 else size * (size + 1) // 2


@dataclass(frozen=True)
class ControlVariates:
    """The control variates of a kernel, for each term of its sum."""

    n_items: int
    of_terms: tuple[tuple[Power, ...], ...]

    @classmethod
    def of(cls, kernel: Kernel, n_items: int, degree: int) -> ControlVariates:
        """Return the control variates of a kernel up to a degree."""
        return cls(n_items, tuple(powers_of(term.kernel, n_items, degree) for term in terms(kernel)))

    @property
    def powers(self) -> list[Power]:
        """All control variates in one list."""
        return [power for of_term in self.of_terms for power in of_term]

    def __len__(self) -> int:
        return sum(map(len, self.of_terms))

    def coefficients(self, kernel: Kernel) -> FloatArray:
        """Return the coefficient of each control variate in a kernel."""
        found: list[float] = []
        for term, powers in zip(terms(kernel), self.of_terms, strict=True):
            series = term.kernel.facts(self.n_items).series if powers else None
            found += [term.weight * series.coefficients[power.degree - 1] for power in powers if series]
        return np.array(found)

    def gradient_coefficients(self, kernel: Kernel) -> dict[str, FloatArray]:
        """Return the derivatives of the coefficients in each parameter of a kernel."""
        found = {name: np.zeros(len(self)) for name in kernel.params}
        index = 0
        for term, powers in zip(terms(kernel), self.of_terms, strict=True):
            series = term.kernel.facts(self.n_items).series if powers else None
            for power in powers:
                assert series is not None
                for name, derivatives in series.derivatives.items():
                    found[term.prefix + name][index] = term.weight * derivatives[power.degree - 1]
                for name, scale in term.scales:
                    found[name][index] = term.weight / scale * series.coefficients[power.degree - 1]
                index += 1
        return found

    def at_distance(self, coefficients: FloatArray, d: NDArray[np.generic]) -> FloatArray:
        """Return the weighted sum of the control variates at given distances."""
        return weighted_sum(coefficients, [power.at_distance(d) for power in self.powers])

    def between(self, coefficients: FloatArray, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the weighted sum of the control variates between full rankings."""
        distances = {power.distance: power.distance.between(X, Y) for power in self.powers}
        return weighted_sum(coefficients, [power.at_distance(distances[power.distance]) for power in self.powers])


class ControlMeans:
    """The exact means of control variates over the completions of rankings."""

    def __init__(self, controls: ControlVariates, X: Rows) -> None:
        self.parts = [FeatureEvaluator(X, X, power.mean_features) for power in controls.powers]

    def products(self, block: Block) -> list[FloatArray]:
        """Return the mean of each control variate for a block."""
        return [part.products(block) for part in self.parts]


def weighted_sum(coefficients: FloatArray, parts: list[FloatArray]) -> FloatArray:
    """Return the sum of arrays times their coefficients, added in a fixed order so that blocks have equal bits."""
    total = coefficients[0] * parts[0]
    for coefficient, part in zip(coefficients[1:], parts[1:], strict=True):
        total = total + coefficient * part
    return np.asarray(total)


def powers_of(kernel: Kernel, n_items: int, degree: int) -> tuple[Power, ...]:
    """Return the control variates of one term of a kernel."""
    facts = kernel.facts(n_items)
    series, distance = facts.series, facts.distance
    if series is None or distance is None or distance.embedding is None:
        return ()
    highest = min(degree, len(series.coefficients), MAX_DEGREE[distance.embedding.statistic])
    half_range = distance.embedding.centred_norm(n_items)
    return tuple(Power(distance, power, half_range) for power in range(1, highest + 1))


def highest_degree(kernel: Kernel, n_items: int) -> int:
    """Return the highest degree of control variates that is affordable for a number of items."""
    most = 2 if n_items <= MAX_ITEMS_SQUARED else 1
    return max((power.degree for power in ControlVariates.of(kernel, n_items, most).powers), default=0)

"""Control variates: powers of an inner product of features, whose means over completions are known exactly.

A kernel may be a power series, with coefficients >= 0, in the inner product z of centred features whose first and
second moments over the completions of a ranking are known. Replacing these coordinates of the sampled embedding by
their exact values takes out most of the sampling error. What is left is still the Gram matrix of vectors, so it stays
positive semi-definite, and between different rankings it stays unbiased.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import FloatArray, IntArray, RankArray
from rankernel.distances import Distance
from rankernel.gram.evaluator import Block
from rankernel.gram.exact.features import FeatureEvaluator, centred_products
from rankernel.gram.poset_rows import Rows
from rankernel.kernels.algebra import terms
from rankernel.kernels.base import Kernel

HIGHEST = {"pairs": 2, "ranks": 2, "positions": 1}  # of the moments that are known of what a distance sees
LARGEST_SQUARE = 24  # items: beyond, the products of all pairs cost far more than the draws


@dataclass(frozen=True)
class Control:
    """The power of z that belongs to one term of a kernel."""

    distance: Distance
    degree: int
    half_range: float
    n_items: int

    def features(self, X: Rows) -> FloatArray:
        """Return vectors whose inner products are the means of ``z^degree``."""
        return centred_products(self.distance, X, self.degree)

    def at_distance(self, d: NDArray[np.generic]) -> FloatArray:
        """Return ``z^degree`` where ``d = 2 (L - z)``."""
        return np.asarray((self.half_range - np.asarray(d, dtype=np.float64) / 2) ** self.degree)


@dataclass(frozen=True)
class Controls:
    """The control variates of a kernel, term by term."""

    of_terms: tuple[tuple[Control, ...], ...]

    @classmethod
    def of(cls, kernel: Kernel, n_items: int, degree: int) -> Controls:
        """Return the controls of a kernel up to a degree."""
        return cls(tuple(controls_of(term.kernel, n_items, degree) for term in terms(kernel)))

    @property
    def all(self) -> list[Control]:
        """The controls of all terms in one list."""
        return [control for of_term in self.of_terms for control in of_term]

    def __len__(self) -> int:
        return len(self.all)

    def are_functions_of(self, distance: Distance | None) -> bool:
        """Say whether all controls are functions of one distance."""
        return all(control.distance == distance for control in self.all)

    def n_features(self, n_items: int) -> int:
        """Return how many features the known means are made of."""
        seen = {"pairs": comb(n_items, 2), "ranks": n_items, "positions": n_items**2}
        total = 0
        for control in self.all:
            assert control.distance.embedding is not None
            size = seen[control.distance.embedding.statistic]
            total += size if control.degree == 1 else size * (size + 1) // 2
        return total

    def coefficients(self, kernel: Kernel) -> list[float]:
        """Return the coefficient of each control in a kernel."""
        found = []
        for term, own in zip(terms(kernel), self.of_terms, strict=True):
            series = term.kernel.facts(self.n_items).series if own else None
            found += [term.weight * series.coefficients[control.degree - 1] for control in own if series]
        return found

    def slopes(self, kernel: Kernel) -> dict[str, list[float]]:
        """Return the derivatives of the coefficients in each parameter of a kernel."""
        found = {name: [0.0] * len(self) for name in kernel.params}
        place = 0
        for term, own in zip(terms(kernel), self.of_terms, strict=True):
            series = term.kernel.facts(self.n_items).series if own else None
            for control in own:
                assert series is not None
                for name, slopes in series.derivatives.items():
                    found[term.prefix + name][place] = term.weight * slopes[control.degree - 1]
                for name, scale in term.scales:
                    found[name][place] = term.weight / scale * series.coefficients[control.degree - 1]
                place += 1
        return found

    @property
    def n_items(self) -> int:
        """The number of items that the controls were made for."""
        return self.all[0].n_items

    def at_distance(self, d: IntArray) -> FloatArray:
        """Return each control as a function of the distance."""
        return np.stack([control.at_distance(d) for control in self.all])

    def less_known(self, matrix: FloatArray, coefficients: FloatArray, X: RankArray, Y: RankArray) -> FloatArray:
        """Return a kernel between draws without the part that has a known mean."""
        known: dict[Distance, FloatArray] = {}
        for coefficient, control in zip(coefficients, self.all, strict=True):
            if control.distance not in known:
                known[control.distance] = control.distance.between(X, Y).astype(np.float64)
            matrix = matrix - coefficient * control.at_distance(known[control.distance])
        return matrix

    def exact_parts(self, X: Rows) -> ExactParts:
        """Return the known means of all controls."""
        return ExactParts([FeatureEvaluator(X, X, control.features) for control in self.all])


@dataclass(frozen=True)
class ExactParts:
    """The known means of all controls."""

    parts: list[FeatureEvaluator]

    def products(self, tile: Block) -> FloatArray:
        """Return the means for a tile: shape (n_controls, rows, columns)."""
        return np.stack([part.products(tile) for part in self.parts])


def combined(coefficients: FloatArray, parts: FloatArray) -> FloatArray:
    """Return the sum of parts times their coefficients, added in one order: a BLAS rounds as its blocks fall."""
    total = coefficients[0] * parts[0]
    for coefficient, part in zip(coefficients[1:], parts[1:], strict=True):
        total = total + coefficient * part
    return np.asarray(total)


def controls_of(kernel: Kernel, n_items: int, degree: int) -> tuple[Control, ...]:
    """Return the controls of a kernel that is no sum or multiple of others."""
    facts = kernel.facts(n_items)
    series, distance = facts.series, facts.distance
    if series is None or distance is None or distance.embedding is None:
        return ()
    embedding = distance.embedding
    most = min(degree, len(series.coefficients), HIGHEST[embedding.statistic])
    half = embedding.centred_norm(n_items)
    return tuple(Control(distance, power, half, n_items) for power in range(1, most + 1))


def highest_degree(kernel: Kernel, n_items: int) -> int:
    """Return the highest degree of the controls of a kernel that are worth their cost for so many items."""
    most = 2 if n_items <= LARGEST_SQUARE else 1
    return max((control.degree for control in Controls.of(kernel, n_items, most).all), default=0)

"""The Kendall kernel and what is built from it: polynomial and weighted Kendall kernels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops, distances
from rankernel._utils.arrays import FloatArray, RankArray
from rankernel._utils.checks import check_choice, check_integer
from rankernel.kernels.base import DistanceKernel, Kernel, Series
from rankernel.kernels.discounts import Discount, Weights, check_discount, place_discounts
from rankernel.linear_forms import ALIKE, LinearForm


@dataclass(frozen=True)
class Kendall(DistanceKernel):
    r"""Kendall kernel: concordant less discordant pairs, over all pairs (Jiao and Vert 2015).

    :math:`k_\tau(\sigma, \sigma') = \frac{n_c - n_d}{\binom{n}{2}}`; 1 where there is only one item. It is not
    characteristic: distributions with the same pairwise marginals look alike to it.

    Examples
    --------
    >>> Kendall().matrix(np.array([[0, 1, 2]]), np.array([[0, 2, 1]]))
    array([[0.33333333]])
    """

    argument = distances.kendall

    def at_distance(self, d: NDArray[Any], n_items: int) -> FloatArray:
        """Return ``1 - 2 d / (n choose 2)``."""
        return 1 - 2 * np.asarray(d, dtype=np.float64) / max(math.comb(n_items, 2), 1)

    positive = True

    def most_dimensions(self, n_items: int) -> float:
        """Return one for each pair of items, and one for the constants."""
        return 1 + math.comb(n_items, 2)

    def linear(self, n_items: int) -> LinearForm:
        """Return the signs of all pairs, scaled so that inner products give the kernel."""
        return LinearForm("pairs", lambda signs: signs / math.sqrt(signs.shape[1])) if n_items > 1 else ALIKE

    def series(self, n_items: int) -> Series | None:
        """Return the kernel itself: ``4z`` over the number of pairs."""
        return Series((4 / math.comb(n_items, 2),), constant=0.0) if n_items > 2 else None


@dataclass(frozen=True)
class Polynomial(DistanceKernel):
    r"""Polynomial kernel :math:`(1 + k_\tau(\sigma, \sigma'))^m` of degree m (Mania et al. 2018).

    Examples
    --------
    >>> Polynomial(degree=3).matrix(np.array([[0, 1, 2]]), np.array([[0, 1, 2], [2, 1, 0]]))
    array([[8., 0.]])
    """

    degree: int = 2

    def __post_init__(self) -> None:
        check_integer("degree", self.degree, 1, MOST_DEGREE)

    argument = distances.kendall

    def at_distance(self, d: NDArray[Any], n_items: int) -> FloatArray:
        """Return ``(2 - 2 d / (n choose 2)) ** degree``."""
        return np.asarray((1 + Kendall().at_distance(d, n_items)) ** self.degree)

    positive = True

    def most_dimensions(self, n_items: int) -> float:
        """Return one for each set of at most so many pairs."""
        pairs = math.comb(n_items, 2)
        return sum(math.comb(pairs, size) for size in range(min(self.degree, pairs) + 1))

    def series(self, n_items: int) -> Series | None:
        """Return the binomial coefficients, with k = 4z over the number of pairs."""
        if n_items < 3:
            return None
        unit = 4 / math.comb(n_items, 2)
        coefficients = self.degree * unit, math.comb(self.degree, 2) * unit**2
        return Series(coefficients[: self.degree], constant=1.0 if self.degree <= 2 else None)

    @property
    def n_moments(self) -> int | None:
        """The degree, unless it is very large."""
        return self.degree if self.degree <= MOST_MOMENTS else None

    def mean_from_moments(self, mean: FloatArray, central: FloatArray, n_items: int) -> FloatArray:
        """Return the binomial sum around the mean; odd moments are 0, so that all terms are positive."""
        unit, middle = 2 / max(math.comb(n_items, 2), 1), 1 + Kendall().at_distance(mean, n_items)
        powers = range(0, self.degree + 1, 2)
        terms = (math.comb(self.degree, j) * middle ** (self.degree - j) * unit**j * central[j] for j in powers)
        return np.asarray(sum(terms))


MOST_MOMENTS = 64
MOST_DEGREE = 1000  # from 1024 the kernel of a ranking with itself, 2 to that power, is no float


@dataclass(frozen=True)
class WeightedKendall(Kernel):
    r"""Weighted Kendall kernel: concordant pairs count by the places they hold (Jiao and Vert 2018).

    :math:`k_U(\sigma, \sigma') = \sum_{a \ne b} U_{\sigma(a) \sigma(b)} U_{\sigma'(a) \sigma'(b)}
    1\{\sigma(a) < \sigma(b)\} 1\{\sigma'(a) < \sigma'(b)\}` for a symmetric matrix U of weights of two places:
    ``U = 1`` if both are among the first k (:meth:`top_k`), :math:`u_p + u_q` (:meth:`additive`) or
    :math:`u_p u_q` (:meth:`multiplicative`). With U = 1 everywhere it is the number of concordant pairs.

    Parameters
    ----------
    combine : {"top-k", "additive", "multiplicative"}
        How two places are weighed.
    weights : int, sequence of numbers, "hyperbolic" or "logarithmic"
        The k of "top-k"; else the weight u of each place, first place first, or a rule that gives it for any number
        of places: 1/(p+1) or 1/log2(p+2), p = 0, 1, ...

    Examples
    --------
    >>> identity = np.array([[0, 1, 2]])
    >>> WeightedKendall.top_k(2).matrix(identity, np.array([[0, 1, 2], [1, 0, 2], [0, 2, 1]]))
    array([[1., 0., 0.]])
    >>> WeightedKendall.multiplicative([1, 2, 3]).matrix(identity, identity)
    array([[49.]])
    """

    combine: Literal["top-k", "additive", "multiplicative"]
    weights: int | Weights

    def __post_init__(self) -> None:
        check_choice("combine", self.combine, ("top-k", "additive", "multiplicative"))
        if self.combine == "top-k":
            check_integer("weights", self.weights)
        else:
            object.__setattr__(self, "weights", check_discount("weights", self.weights))  # type: ignore[arg-type]

    @classmethod
    def top_k(cls, k: int) -> WeightedKendall:
        """Count the pairs whose items are both among the first k places."""
        return cls("top-k", check_integer("k", k))

    @classmethod
    def additive(cls, weights: Iterable[float] | Discount = "hyperbolic") -> WeightedKendall:
        """Weigh two places by the sum of their weights."""
        return cls("additive", weights)  # type: ignore[arg-type]

    @classmethod
    def multiplicative(cls, weights: Iterable[float] | Discount = "hyperbolic") -> WeightedKendall:
        """Weigh two places by the product of their weights."""
        return cls("multiplicative", weights)  # type: ignore[arg-type]

    def place_weights(self, n_items: int) -> FloatArray:
        """Return the matrix U of weights of two places."""
        if self.combine == "top-k":
            inside = np.arange(n_items) < int(self.weights)  # type: ignore[arg-type]
            return np.asarray(np.outer(inside, inside), dtype=np.float64)
        u = place_discounts("weights", self.weights, n_items)  # type: ignore[arg-type]
        return np.asarray(np.add.outer(u, u) if self.combine == "additive" else np.outer(u, u))

    def features(self, X: RankArray) -> FloatArray:
        """Return one coordinate for each ordered pair of items: the weight of their places, 0 if not in that order."""
        n = X.shape[1]
        a, b = np.nonzero(~np.eye(n, dtype=bool))
        weights = np.triu(self.place_weights(n), 1)  # above the diagonal: the first item is before the second
        return weights[X[:, a], X[:, b]]

    def matrix(self, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the inner products of the features, each summed in one order whatever the other rows are."""
        out = np.empty((len(X), len(Y)))
        _loops.products.inner_products(self.features(X), np.ascontiguousarray(self.features(Y).T), out)
        return out

    positive = True

    def most_dimensions(self, n_items: int) -> float:
        """Return one for each ordered pair of items, and one for the constants."""
        return 1 + 2 * math.comb(n_items, 2)

    best_coupling = "antithetic"  # reversal turns every pair round

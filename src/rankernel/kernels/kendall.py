"""The Kendall kernel, its powers, and the weighted Kendall kernel."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankernel import _loops, distances
from rankernel._utils import FloatArray, RankArray
from rankernel._utils.checks import check_choice, check_integer
from rankernel.distances import scaled_form
from rankernel.kernels.base import AffinePower, Facts, Kernel, KnownKernel, cached_facts, inner_products
from rankernel.kernels.positional import Discount, Weights, check_discount, position_discounts
from rankernel.kernels.similarity import SimilarItemsKernel
from rankernel.rankings import ranks_for_loops

MAX_FEATURES = 2**21  # of full rankings at once: products of features are fast but take memory
MAX_DEGREE = 1000  # 2**1024, the kernel of a ranking with itself, overflows


@dataclass(frozen=True, repr=False)
class Kendall(SimilarItemsKernel):
    r"""Kendall kernel: the share of concordant pairs minus that of discordant pairs (Jiao and Vert 2015).

    :math:`k_\tau(\sigma, \sigma') = \frac{n_c - n_d}{\binom{n}{2}}`; 1 if there is only one item. Not characteristic:
    distributions with the same pairwise marginals have the same mean embedding.

    Parameters
    ----------
    similarity : Similarity, matrix or data frame, optional
        Similarity of the items (:class:`Similarity`, :func:`similarity_from_groups`). By default all are distinct.

    Examples
    --------
    >>> Kendall().matrix(np.array([[0, 1, 2]]), np.array([[0, 2, 1]]))
    array([[0.33333333]])
    """

    def facts_of_distinct_items(self, n_items: int) -> Facts:
        """Return the inner product of the signs of all pairs, and the affine function ``1 - 2 d / (n choose 2)``."""
        n_pairs = math.comb(n_items, 2)
        return Facts(
            is_psd=True,
            max_dimension=1 + n_pairs,
            distance=distances.kendall,
            function=AffinePower(1.0, -2 / max(n_pairs, 1)),
            form=scaled_form("pairs", 1 / n_pairs) if n_pairs else scaled_form("positions", 1.0),
        )


@dataclass(frozen=True)
class Polynomial(KnownKernel):
    r"""Polynomial kernel :math:`(1 + k_\tau(\sigma, \sigma'))^m` of degree m (Mania et al. 2018).

    Parameters
    ----------
    degree : int
        The degree m.

    Examples
    --------
    >>> Polynomial(degree=3).matrix(np.array([[0, 1, 2]]), np.array([[0, 1, 2], [2, 1, 0]]))
    array([[8., 0.]])
    """

    degree: int = 2

    def __post_init__(self) -> None:
        check_integer("degree", self.degree, 1, MAX_DEGREE)

    @cached_facts
    def facts(self, n_items: int) -> Facts:
        """Return the power ``(2 - 2 d / (n choose 2)) ** degree``; features are sets of at most ``degree`` pairs."""
        n_pairs = math.comb(n_items, 2)
        return Facts(
            is_psd=True,
            max_dimension=sum(math.comb(n_pairs, size) for size in range(min(self.degree, n_pairs) + 1)),
            distance=distances.kendall,
            function=AffinePower(2.0, -2 / max(n_pairs, 1), self.degree),
        )


@dataclass(frozen=True)
class WeightedKendall(Kernel):
    r"""Weighted Kendall kernel: concordant pairs weighted by the positions they take (Jiao and Vert 2018).

    :math:`k_U(\sigma, \sigma') = \sum_{a \ne b} U_{\sigma(a) \sigma(b)} U_{\sigma'(a) \sigma'(b)}
    1\{\sigma(a) < \sigma(b)\} 1\{\sigma'(a) < \sigma'(b)\}` for a symmetric matrix U of weights of two positions:
    ``U = 1`` if both are among the first k (:meth:`top_k`), :math:`u_p + u_q` (:meth:`additive`) or
    :math:`u_p u_q` (:meth:`multiplicative`). With U = 1 everywhere it is the number of concordant pairs.

    Parameters
    ----------
    combine : {"top-k", "additive", "multiplicative"}
        How the weights of two positions are combined.
    weights : int, sequence of numbers, "hyperbolic" or "logarithmic"
        The k of "top-k"; otherwise the weight u of each position, the first position first, or a rule for any number of
        positions: 1/(p+1) or 1/log2(p+2), p = 0, 1, ...

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
        """Return the kernel that counts the pairs whose items are both among the first k positions."""
        return cls("top-k", check_integer("k", k))

    @classmethod
    def additive(cls, weights: Iterable[float] | Discount = "hyperbolic") -> WeightedKendall:
        """Return the kernel that weights two positions by the sum of their weights."""
        return cls("additive", weights)  # type: ignore[arg-type]

    @classmethod
    def multiplicative(cls, weights: Iterable[float] | Discount = "hyperbolic") -> WeightedKendall:
        """Return the kernel that weights two positions by the product of their weights."""
        return cls("multiplicative", weights)  # type: ignore[arg-type]

    def position_weights(self, n_items: int) -> FloatArray:
        """Return the weight u of each position; 1 for the first k positions, and 0 for all others, with "top-k"."""
        if self.combine == "top-k":
            return np.asarray(np.arange(n_items) < int(self.weights), dtype=np.float64)  # type: ignore[arg-type]
        return position_discounts("weights", self.weights, n_items)  # type: ignore[arg-type]

    def _ordered_pair_features(self, X: RankArray) -> FloatArray:
        """Return for each ordered pair of items the weight of their positions, 0 if they are in the other order."""
        n, u = X.shape[1], self.position_weights(X.shape[1])
        a, b = np.nonzero(~np.eye(n, dtype=bool))
        both = np.add.outer(u, u) if self.combine == "additive" else np.outer(u, u)
        return np.asarray(np.triu(both, 1)[X[:, a], X[:, b]])  # above the diagonal the first item is before the second

    def matrix(self, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the kernel between the rows of two arrays of full rankings."""
        n = X.shape[1]
        if n * n * max(len(X), len(Y)) <= MAX_FEATURES:
            return inner_products(self._ordered_pair_features(X), self._ordered_pair_features(Y).T)
        out, weights = np.empty((len(X), len(Y))), self.position_weights(n)
        sides = np.argsort(X, axis=1), ranks_for_loops(X), ranks_for_loops(Y), np.ones(Y.shape, dtype=np.int64)
        left, right = (np.tile(weights, (len(side), 1)) for side in (X, Y))
        is_sum = self.combine == "additive"
        _loops.pairs.weighted_concordance(*sides, left, np.zeros(X.shape), right, np.zeros(Y.shape), is_sum, out)
        return out

    def facts(self, n_items: int) -> Facts:
        """Return one feature for each ordered pair of items."""
        return Facts(
            is_psd=True,
            max_dimension=1 + 2 * math.comb(n_items, 2),
            feature_map=self._ordered_pair_features,
            coupling="antithetic",
        )

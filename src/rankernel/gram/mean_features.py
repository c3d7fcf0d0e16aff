"""Kernels and distances that are inner products of features: averaging over completions averages the features.

For Kendall, Hamming, Spearman and footrule, and any two rankings, free items included,
``E d(R, R') = a(R) + a(R') - 2 <f(R), f(R')>``: one number and one vector for each ranking, one matrix product for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import comb, sqrt

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops, distances
from rankernel.distances import Distance
from rankernel.gram.evaluator import Evaluator, FloatArray, Tile
from rankernel.gram.moments import pair_means, position_marginals, rank_means
from rankernel.gram.pair_moments import pair_product_features
from rankernel.gram.partial_orders import Data
from rankernel.kernels.base import Kernel
from rankernel.kernels.linear import DistanceInduced
from rankernel.rankings import Rankings

__all__ = ["FeatureEvaluator", "distance_features", "expected_distances", "linear_features", "polynomial_features"]

KEPT = 2**27  # numbers; beyond, features are made anew for each tile
TILE = 2**25


class FeatureEvaluator(Evaluator):
    """The inner products of the mean features of two sets of rankings."""

    description = "closed form (inner product of mean features)"

    def __init__(self, X: Data, Y: Data, features: Callable[[Data], FloatArray]) -> None:
        self.X, self.Y, self.features = X, Y, features
        self.n_features = features(X[:1]).shape[1] if len(X) else 1
        self.kept = max(len(X), len(Y)) * self.n_features <= KEPT
        if not self.kept:
            self.tile_side = min(max(TILE // self.n_features, 1), self.tile_side)

    @cached_property
    def all_features(self) -> tuple[FloatArray, FloatArray]:
        """The features of both sides."""
        left = self.features(self.X)
        return left, left if self.Y is self.X else self.features(self.Y)

    def products(self, tile: Tile) -> FloatArray:
        """Return the inner products of a tile."""
        rows, columns = tile
        if self.kept:
            left, right = (side[part] for side, part in zip(self.all_features, tile, strict=True))
        else:
            left, right = self.features(self.X[rows]), self.features(self.Y[columns])
        out = np.empty((len(left), len(right)))
        _loops.products.inner_products(np.ascontiguousarray(left), np.ascontiguousarray(right.T), out)
        return out

    def values(self, kernels: Sequence[Kernel], tile: Tile) -> FloatArray:
        """Return the kernel, which has no parameters, once for each."""
        value = self.products(tile)
        return np.broadcast_to(value, (len(kernels), *value.shape))

    def gradients(self, kernel: Kernel, tile: Tile) -> dict[str, FloatArray]:
        """Return nothing: the kernel has no parameters."""
        return {}


def distance_features(distance: Distance, X: Data) -> tuple[FloatArray, FloatArray] | None:
    """Return a and f with ``E d(R, R') = a + a' - 2 <f, f'>``, for the four distances that have them."""
    n, ones = X.n_items, np.ones(len(X))
    if distance == distances.kendall:
        return comb(n, 2) / 4 * ones, pair_means(X) / 2
    if distance == distances.hamming:
        return n / 2 * ones, position_marginals(X).reshape(len(X), -1) / sqrt(2)
    if distance == distances.spearman:
        return n * (n * n - 1) / 12 * ones, rank_means(X)
    if distance == distances.footrule:
        reached = np.cumsum(position_marginals(X), axis=2)[:, :, :-1].reshape(len(X), -1)
        return reached.sum(axis=1), reached
    return None


def linear_features(kernel: Kernel, distance: Distance, scale: float) -> Callable[[Data], FloatArray]:
    """Return the mean features of a kernel that is ``scale`` times the inner product of distance features.

    The kernel that a distance induces around a center is the inner product of the features less the center's.
    """

    def features(X: Data) -> FloatArray:
        parts = distance_features(distance, X)
        assert parts is not None
        if not isinstance(kernel, DistanceInduced):
            return sqrt(scale) * parts[1]
        at_center = distance_features(distance, Rankings(kernel.center_ranks(X.n_items)))
        assert at_center is not None
        return sqrt(scale) * (parts[1] - at_center[1])

    return features


def polynomial_features(degree: int) -> Callable[[Data], FloatArray]:
    """Return the mean features of the polynomial kernel of degree 1 or 2: 1, pairs, and products of two pairs."""

    def features(X: Data) -> FloatArray:
        pairs = comb(X.n_items, 2)
        columns = [np.ones((len(X), 1)), sqrt(degree / pairs) * pair_means(X)]
        if degree == 2:
            columns.append(pair_product_features(X) / pairs)
        return np.hstack(columns)

    return features


def expected_distances(distance: Distance, X: Data, Y: Data) -> NDArray[np.float64] | None:
    """Return the mean distance between the completions of each pair, for the four distances that have it."""
    left, right = distance_features(distance, X), distance_features(distance, Y)
    if left is None or right is None:
        return None
    return left[0][:, None] + right[0][None, :] - 2 * left[1] @ right[1].T

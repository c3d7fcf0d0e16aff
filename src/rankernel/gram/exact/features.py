"""Kernels and distances that are inner products of features: averaging over completions averages the features.

For any two rankings, free items included, and for partial orders: one vector for each, one matrix product for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import comb, sqrt

import numpy as np

from rankernel import _loops
from rankernel._utils.arrays import FloatArray
from rankernel.completions.marginals import pair_product_features, rank_products, statistic_means
from rankernel.distances import Distance
from rankernel.gram.cost import STEP
from rankernel.gram.evaluator import Block, Evaluator
from rankernel.gram.poset_rows import PartialOrders, Rows
from rankernel.kernels.base import Kernel

KEPT = 2**27  # numbers; beyond, features are made anew for each tile
TILE = 2**25
MOST_PRODUCTS = 2**21  # of one ranking: about 50 items

Features = Callable[[Rows], FloatArray]
Weigh = Callable[[FloatArray], FloatArray]


class FeatureEvaluator(Evaluator):
    """The inner products of the mean features of two sets of rankings, plus a constant."""

    details = "closed form (inner product of mean features)"

    def __init__(self, X: Rows, Y: Rows, features: Features, constant: float = 0.0) -> None:
        self.X, self.Y, self.features, self.constant = X, Y, features, constant
        self.n_features = features(X[:1]).shape[1] if len(X) else 1
        self.kept = max(len(X), len(Y)) * self.n_features <= KEPT
        if not self.kept:
            self.block_side = min(max(TILE // self.n_features, 1), self.block_side)

    @cached_property
    def all_features(self) -> tuple[FloatArray, FloatArray]:
        """The features of both sides."""
        left = self.features(self.X)
        return left, left if self.Y is self.X else self.features(self.Y)

    def products(self, tile: Block, weigh: Weigh | None = None) -> FloatArray:
        """Return the inner products of a tile, those of the columns changed in a linear way first."""
        if self.kept:
            left, right = (side[part] for side, part in zip(self.all_features, tile, strict=True))
        else:
            left, right = self.features(self.X[tile[0]]), self.features(self.Y[tile[1]])
        right = right if weigh is None else weigh(right)
        out = np.empty((len(left), len(right)))
        _loops.products.inner_products(np.ascontiguousarray(left), np.ascontiguousarray(right.T), out)
        return out + self.constant if self.constant else out

    def values(self, kernels: Sequence[Kernel], tile: Block) -> FloatArray:
        """Return the kernel, which has no parameters, once for each."""
        value = self.products(tile)
        return np.broadcast_to(value, (len(kernels), *value.shape))

    def gradients(self, kernel: Kernel, tile: Block) -> dict[str, FloatArray]:
        """Return nothing: the kernel has no parameters."""
        return {}

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time to make the features, and to multiply them."""
        made = STEP["feature"] * (n_rows + n_columns) * self.n_features
        return made + n_rows * n_columns * (STEP["entry"] + STEP["product"] * self.n_features)


def mean_statistics(X: Rows, sees: str, n_draws: int = 0) -> FloatArray:
    """Return the mean over completions of what a linear kernel sees; of partial orders out of reach, over draws."""
    return X.seen_means(sees, n_draws) if isinstance(X, PartialOrders) else statistic_means(X, sees)


def mean_features(kernel: Kernel, n_items: int, rankings_only: bool) -> tuple[Features, float] | None:
    """Return the mean features of a kernel that is their inner product plus a constant, or None.

    Products of pairs are known of rankings only, and made only if they are not too many.
    """
    facts = kernel.facts(n_items)
    linear = facts.features
    if linear is not None:
        return lambda X: linear.transform(mean_statistics(X, linear.statistic)), 0.0
    series, distance = facts.series, facts.distance
    if series is None or series.constant is None or distance is None or distance.embedding is None:
        return None
    if len(series.coefficients) > 1 and (not rankings_only or comb(n_items, 2) ** 2 > MOST_PRODUCTS):
        return None

    def features(X: Rows) -> FloatArray:
        columns = [
            sqrt(coefficient) * centred_products(distance, X, degree)
            for degree, coefficient in enumerate(series.coefficients, 1)
            if coefficient
        ]
        return np.hstack(columns)

    return features, series.constant


def centred_products(distance: Distance, X: Rows, degree: int) -> FloatArray:
    """Return vectors whose inner product is the mean of ``z^degree``, z that of centred features: degree 1 or 2."""
    form, n_items = distance.embedding, X.n_items
    assert form is not None
    if degree == 1:
        means = mean_statistics(X, form.statistic)
        return form.scale * means if form.scale else form.transform(means) - form.mean(n_items)
    assert not isinstance(X, PartialOrders)
    assert form.scale is not None
    products = pair_product_features(X) if form.statistic == "pairs" else rank_products(X).reshape(len(X), -1)
    return form.scale**2 * products


def expected_distances(distance: Distance, X: Rows, Y: Rows) -> FloatArray | None:
    """Return the mean distance between the completions of each pair, where the distance is a square of features."""
    if distance.embedding is None:
        return None
    left, right = (mean_statistics(side, distance.embedding.statistic) for side in (X, Y))
    return distance.from_mean_statistics(left, right, X.n_items)

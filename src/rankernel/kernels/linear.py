"""Kernels that are inner products of simple features: Hamming, Spearman, and kernels induced by a distance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rankernel import distances
from rankernel._utils import FloatArray, RankArray
from rankernel.distances import CONSTANT_FEATURE, STATISTICS, Distance, LinearFeatures, as_distance
from rankernel.kernels.base import AffinePower, DistanceKernel, Facts, Kernel, PositionMatrix, PowerSeries
from rankernel.kernels.similarity import SimilarItemsKernel
from rankernel.rankings import as_full_ranking


@dataclass(frozen=True, repr=False)
class Hamming(SimilarItemsKernel, DistanceKernel):
    r"""Hamming kernel: the number of items with the same position in both rankings, :math:`n - d_H(\sigma, \sigma')`.

    The trace of the product of the two permutation matrices. Not characteristic: only the marginal distribution of the
    position of each item enters the mean embedding.

    Parameters
    ----------
    similarity : Similarity, matrix or data frame, optional
        Similarity of the items (:class:`Similarity`, :func:`similarity_from_groups`). By default all are distinct.

    Examples
    --------
    >>> Hamming().matrix(np.array([[0, 1, 2]]), np.array([[0, 1, 2], [1, 0, 2]]))
    array([[3., 1.]])
    """

    def facts_of_distinct_items(self, n_items: int) -> Facts:
        """Return the permutation matrices as features, and the identity as position matrix."""
        return Facts(
            is_psd=True,
            max_dimension=1 + (n_items - 1) ** 2,
            distance=distances.hamming,
            affine_power=AffinePower(float(n_items), -1.0),
            features=LinearFeatures("positions", lambda at: at.reshape(len(at), -1)),
            positions=identity_matrix(n_items),
            series=PowerSeries((2.0,), constant=1.0) if n_items > 2 else None,
            coupling=distances.hamming.coupling,
        )


@lru_cache(maxsize=8)
def identity_matrix(n_items: int) -> PositionMatrix:
    """Return the position matrix of the Hamming kernel."""
    return PositionMatrix(n_items, lambda rows: rows, lambda: np.eye(n_items))


@dataclass(frozen=True, repr=False)
class Spearman(SimilarItemsKernel, DistanceKernel):
    r"""Spearman kernel: Spearman's rank correlation :math:`\rho = 1 - \frac{6 d_2}{n (n^2 - 1)}`.

    The inner product of centred rank vectors, scaled to 1 for equal rankings; 1 if there is only one item.

    Parameters
    ----------
    similarity : Similarity, matrix or data frame, optional
        Similarity of the items (:class:`Similarity`, :func:`similarity_from_groups`). By default all are distinct.

    Examples
    --------
    >>> Spearman().matrix(np.array([[0, 1, 2]]), np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]]))
    array([[ 1. ,  0.5, -1. ]])
    """

    def facts_of_distinct_items(self, n_items: int) -> Facts:
        """Return the centred ranks as features."""
        cube = max(n_items * (n_items**2 - 1), 1)
        norm = math.sqrt(cube / 12)
        return Facts(
            is_psd=True,
            max_dimension=n_items,
            distance=distances.spearman,
            affine_power=AffinePower(1.0, -6 / cube),
            features=LinearFeatures("ranks", lambda ranks: ranks / norm) if n_items > 1 else CONSTANT_FEATURE,
            series=PowerSeries((12 / cube,), constant=0.0) if n_items > 2 else None,
            coupling=distances.spearman.coupling,
        )


@dataclass(frozen=True)
class DistanceInduced(Kernel):
    r"""Kernel induced by a distance around a center c.

    :math:`\frac12 [d(\sigma, c) + d(\sigma', c) - d(\sigma, \sigma')]`.

    Positive semi-definite if the distance is of negative type (Sejdinovic et al. 2013). It depends on the labels of the
    items only through the center.

    Parameters
    ----------
    distance : Distance, str or callable
        One of :mod:`rankernel.distances`, its name, or a function of two rank vectors.
    center : sequence of int
        A full ranking, as the rank of each item.

    Examples
    --------
    >>> k = DistanceInduced("kendall", center=[0, 1, 2])
    >>> k.matrix(np.array([[1, 0, 2]]), np.array([[1, 0, 2], [2, 1, 0]]))
    array([[1., 1.]])
    """

    distance: Distance | str | Callable[[RankArray, RankArray], float]
    center: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "distance", as_distance(self.distance))
        object.__setattr__(self, "center", tuple(as_full_ranking(self.center).ranks[0].tolist()))

    def matrix(self, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the kernel between the rows of two arrays of full rankings."""
        center = self.center_ranks(X.shape[1])
        d = as_distance(self.distance).between
        return np.asarray((d(X, center) + d(Y, center).T - d(X, Y)) / 2, dtype=np.float64)

    def gradient(self, X: RankArray, Y: RankArray) -> dict[str, FloatArray]:
        """Return an empty dictionary: the kernel has no parameters to tune."""
        return {}

    def center_ranks(self, n_items: int) -> RankArray:
        """Return the center as an array of one row."""
        if len(self.center) != n_items:
            raise ValueError(f"the center ranks {len(self.center)} items but the data has {n_items}")
        return np.array([self.center], dtype=np.int32)

    def facts(self, n_items: int) -> Facts:
        """Return the features of the distance minus those of the center, if the distance has an embedding."""
        distance, center = as_distance(self.distance), self.center_ranks(n_items)
        embedding = distance.embedding
        features, dimension = None, math.inf
        if embedding is not None:
            at_center = STATISTICS[embedding.statistic](center)

            def transform(means: FloatArray, part: slice = slice(None)) -> FloatArray:
                return np.asarray(embedding.transform(means) - embedding.transform(at_center[:, part]))

            features = LinearFeatures(embedding.statistic, transform, has_parts=True)
            dimension = 1 + (math.comb(n_items, 2) if embedding.statistic == "pairs" else (n_items - 1) ** 2)
        return Facts(
            is_psd=True if distance.negative_type or n_items <= distance.negative_type_up_to else None,
            max_dimension=dimension,
            features=features,
            coupling=distance.coupling,
        )

    def __repr__(self) -> str:
        distance = as_distance(self.distance)
        shown = distance.name if distance.function is not None else repr(distance.name)
        return f"DistanceInduced({shown}, center={list(self.center)})"

"""Kernels that are inner products of simple features: Hamming, Spearman, and kernels induced by a distance."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rankernel import distances
from rankernel._utils import FloatArray, RankArray
from rankernel.distances import STATISTICS, Distance, as_distance, scaled_form
from rankernel.kernels.base import AffinePower, Facts, Kernel, cached_facts
from rankernel.kernels.similarity import SimilarItemsKernel
from rankernel.rankings import as_full_ranking


@dataclass(frozen=True, repr=False)
class Hamming(SimilarItemsKernel):
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
        """Return the inner product of the permutation matrices, and the affine function ``n - d``."""
        return Facts(
            is_psd=True,
            max_dimension=1 + (n_items - 1) ** 2,
            distance=distances.hamming,
            function=AffinePower(float(n_items), -1.0),
            form=scaled_form("positions", 1.0),
        )


@dataclass(frozen=True, repr=False)
class Spearman(SimilarItemsKernel):
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
        """Return the inner product of the centred ranks, and the affine function of the distance."""
        cube = max(n_items * (n_items**2 - 1), 1)
        return Facts(
            is_psd=True,
            max_dimension=n_items,
            distance=distances.spearman,
            function=AffinePower(1.0, -6 / cube),
            form=scaled_form("ranks", 12 / cube) if n_items > 1 else scaled_form("positions", 1.0),
        )


@dataclass(frozen=True)
class DistanceInduced(Kernel):
    r"""Kernel induced by a distance around a center c.

    :math:`\frac12 [d(\sigma, c) + d(\sigma', c) - d(\sigma, \sigma')]`.

    Positive semi-definite if the distance is of negative type (Sejdinovic et al. 2013). Relabelling the items changes
    the kernel only if the center is not relabelled with them.

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

    def center_ranks(self, n_items: int) -> RankArray:
        """Return the center as an array of one row."""
        if len(self.center) != n_items:
            raise ValueError(f"the center ranks {len(self.center)} items but the data has {n_items}")
        return np.array([self.center], dtype=np.int32)

    @cached_facts
    def facts(self, n_items: int) -> Facts:
        """Return the form of the distance around the center, if the distance has one."""
        distance, center = as_distance(self.distance), self.center_ranks(n_items)
        form, dimension = distance.form, math.inf
        if form is not None:
            form = dataclasses.replace(form, center=STATISTICS[form.statistic](center)[0])
            dimension = 1 + (math.comb(n_items, 2) if form.statistic == "pairs" else (n_items - 1) ** 2)
        return Facts(
            is_psd=True if distance.negative_type or n_items <= distance.negative_type_up_to else None,
            max_dimension=dimension,
            form=form,
            coupling=distance.coupling,
        )

    def __repr__(self) -> str:
        distance = as_distance(self.distance)
        shown = distance.name if distance.function is not None else repr(distance.name)
        return f"DistanceInduced({shown}, center={list(self.center)})"

"""Kernels that are inner products of simple features: Hamming, Spearman, and those induced by a distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel import distances
from rankernel.distances import Distance, by_name, full_ranks
from rankernel.encoding import RankArray
from rankernel.kernels.base import DistanceKernel, FloatArray, Kernel

__all__ = ["DistanceInduced", "Hamming", "Spearman"]


@dataclass(frozen=True)
class Hamming(DistanceKernel):
    r"""Hamming kernel: the number of items that stand at the same place in both, :math:`n - d_H(\sigma, \sigma')`.

    It is the trace of the product of the two permutation matrices. Not characteristic: it sees only how often each
    item stands at each place.

    Examples
    --------
    >>> Hamming().matrix(np.array([[0, 1, 2]]), np.array([[0, 1, 2], [1, 0, 2]]))
    array([[3., 1.]])
    """

    @property
    def argument(self) -> Distance:
        """The Hamming distance."""
        return distances.hamming

    def at_distance(self, d: NDArray[Any], n_items: int) -> FloatArray:
        """Return ``n - d``."""
        return n_items - np.asarray(d, dtype=np.float64)

    def features(self, X: RankArray) -> FloatArray:
        """Return the permutation matrices, one row each."""
        n = X.shape[1]
        return np.asarray((X[:, :, None] == np.arange(n)).reshape(len(X), n * n), dtype=np.float64)


@dataclass(frozen=True)
class Spearman(DistanceKernel):
    r"""Spearman kernel: Spearman's rank correlation :math:`\rho = 1 - \frac{6 d_2}{n (n^2 - 1)}`.

    The inner product of centred rank vectors, scaled to 1 for equal rankings; 1 where there is only one item.

    Examples
    --------
    >>> Spearman().matrix(np.array([[0, 1, 2]]), np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]]))
    array([[ 1. ,  0.5, -1. ]])
    """

    @property
    def argument(self) -> Distance:
        """Spearman's sum of squares."""
        return distances.spearman

    def at_distance(self, d: NDArray[Any], n_items: int) -> FloatArray:
        """Return ``1 - 6 d / (n (n^2 - 1))``."""
        return 1 - 6 * np.asarray(d, dtype=np.float64) / max(n_items * (n_items**2 - 1), 1)

    def features(self, X: RankArray) -> FloatArray:
        """Return the centred ranks, scaled to length one."""
        n = X.shape[1]
        if n == 1:
            return np.ones((len(X), 1))
        return np.asarray((X - (n - 1) / 2) / np.sqrt(n * (n**2 - 1) / 12))


@dataclass(frozen=True)
class DistanceInduced(Kernel):
    r"""Kernel that a distance induces around a center c.

    :math:`\frac12 [d(\sigma, c) + d(\sigma', c) - d(\sigma, \sigma')]`.

    Positive semi-definite if the distance is of negative type (Sejdinovic et al. 2013). It depends on the names of
    the items through the center alone.

    Parameters
    ----------
    distance : Distance or str
        One of :mod:`rankernel.distances`, or its name.
    center : sequence of int
        A full ranking, as the rank of each item.

    Examples
    --------
    >>> k = DistanceInduced("kendall", center=[0, 1, 2])
    >>> k.matrix(np.array([[1, 0, 2]]), np.array([[1, 0, 2], [2, 1, 0]]))
    array([[1., 1.]])
    """

    distance: Distance | str
    center: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "distance", by_name(self.distance))
        ranks = np.asarray(self.center).reshape(1, -1)
        object.__setattr__(self, "center", tuple(full_ranks(ranks)[0].tolist()))

    def matrix(self, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the kernel between the rows of two arrays of full rankings."""
        center = self.center_ranks(X.shape[1])
        d = by_name(self.distance).between
        return np.asarray((d(X, center) + d(Y, center).T - d(X, Y)) / 2, dtype=np.float64)

    def center_ranks(self, n_items: int) -> RankArray:
        """Return the center as an array of one row."""
        if len(self.center) != n_items:
            raise ValueError(f"the center ranks {len(self.center)} items but the data has {n_items}")
        return np.array([self.center], dtype=np.int32)

    def is_positive(self, n_items: int) -> bool:
        """Say whether the distance is of negative type."""
        return by_name(self.distance).negative_type or n_items <= 2

    def __repr__(self) -> str:
        return f"DistanceInduced({by_name(self.distance).name!r}, center={list(self.center)})"

"""Kernels that are inner products of simple features: Hamming, Spearman, and those induced by a distance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel import distances
from rankernel._utils.arrays import FloatArray, RankArray
from rankernel.distances import Distance, by_name
from rankernel.kernels.base import DistanceKernel, Kernel, Series
from rankernel.linear_forms import ALIKE, LinearForm, PlaceForm
from rankernel.rankings import as_full_ranking


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

    argument = distances.hamming

    def at_distance(self, d: NDArray[Any], n_items: int) -> FloatArray:
        """Return ``n - d``."""
        return n_items - np.asarray(d, dtype=np.float64)

    positive = True

    def most_dimensions(self, n_items: int) -> float:
        """Return the dimension of all permutation matrices."""
        return 1 + (n_items - 1) ** 2

    def places(self, n_items: int) -> PlaceForm:
        """Return 1 for a place and itself."""
        return PlaceForm(np.eye(n_items), lambda: np.eye(n_items))

    def linear(self, n_items: int) -> LinearForm:
        """Return the permutation matrices, one row each."""
        return LinearForm("positions", lambda at: at.reshape(len(at), -1))

    def series(self, n_items: int) -> Series | None:
        """Return the kernel itself: ``1 + 2z``."""
        return Series((2.0,), constant=1.0) if n_items > 2 else None


@dataclass(frozen=True)
class Spearman(DistanceKernel):
    r"""Spearman kernel: Spearman's rank correlation :math:`\rho = 1 - \frac{6 d_2}{n (n^2 - 1)}`.

    The inner product of centred rank vectors, scaled to 1 for equal rankings; 1 where there is only one item.

    Examples
    --------
    >>> Spearman().matrix(np.array([[0, 1, 2]]), np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]]))
    array([[ 1. ,  0.5, -1. ]])
    """

    argument = distances.spearman

    def at_distance(self, d: NDArray[Any], n_items: int) -> FloatArray:
        """Return ``1 - 6 d / (n (n^2 - 1))``."""
        return 1 - 6 * np.asarray(d, dtype=np.float64) / max(n_items * (n_items**2 - 1), 1)

    positive = True

    def most_dimensions(self, n_items: int) -> float:
        """Return one for each item: centred ranks sum to 0, and the constants come on top."""
        return n_items

    def linear(self, n_items: int) -> LinearForm:
        """Return the centred ranks, scaled to length one."""
        length = math.sqrt(n_items * (n_items**2 - 1) / 12)
        return LinearForm("ranks", lambda ranks: ranks / length) if n_items > 1 else ALIKE

    def series(self, n_items: int) -> Series | None:
        """Return the kernel itself: z by the squared length of centred ranks."""
        return Series((12 / (n_items * (n_items**2 - 1)),), constant=0.0) if n_items > 2 else None


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
        object.__setattr__(self, "center", tuple(as_full_ranking(self.center).ranks[0].tolist()))

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

    def is_positive(self, n_items: int) -> bool | None:
        """Say yes where the distance is of negative type."""
        distance = by_name(self.distance)
        return True if distance.negative_type or n_items <= distance.negative_up_to else None

    def most_dimensions(self, n_items: int) -> float:
        """Return how many features stand behind a distance that adds up over pairs of items, or over items."""
        form = by_name(self.distance).square
        if form is None:
            return math.inf
        return 1 + (math.comb(n_items, 2) if form.sees == "pairs" else (n_items - 1) ** 2)

    def linear(self, n_items: int) -> LinearForm | None:
        """Return the features of the distance less those of the center, where it has any."""
        form = by_name(self.distance).square
        if form is None:
            return None
        at_center = form.of(self.center_ranks(n_items))
        return LinearForm(form.sees, lambda seen: form.features(seen) - at_center)

    @property
    def best_coupling(self) -> str:
        """That of the distance."""
        return by_name(self.distance).best_coupling

    def __repr__(self) -> str:
        return f"DistanceInduced({by_name(self.distance).name!r}, center={list(self.center)})"

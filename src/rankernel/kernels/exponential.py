"""Exponential kernels exp(-nu d) of a distance d; with the Kendall distance it is the Mallows kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankernel import distances
from rankernel._utils import FloatArray, RankArray
from rankernel.distances import Distance, as_distance, pair_signs
from rankernel.kernels.base import MEDIAN, Decay, Facts, KnownKernel, cached_facts, check_rate, number

MAX_FEATURES = 2**20


class ExponentialKernel(KnownKernel):
    """The common part of Mallows and the other exponential kernels."""

    distance: Any
    nu: Any

    @cached_facts
    def facts(self, n_items: int) -> Facts:
        """Return the distance and the decay rate; without the latter while nu is "median"."""
        distance = self.distance
        certain = distance.negative_type or n_items <= distance.negative_type_up_to
        if isinstance(self.nu, str):
            return Facts(is_psd=True if certain else None, distance=distance)
        nu = float(self.nu)
        return Facts(
            is_psd=True if certain or nu == 0 else is_psd_cayley(nu, n_items) if distance == distances.cayley else None,
            max_dimension=1 if nu == 0 else math.inf,
            distance=distance,
            function=Decay(nu, {"nu": 1.0}),
            feature_map=self._sign_features if distance == distances.kendall else None,
        )

    def _sign_features(self, X: RankArray) -> FloatArray:
        r"""Return the feature map of Mania et al.: one coordinate for each set S of pairs of items, small n only.

        :math:`\left(\tfrac{1+q}{2}\right)^{(P-|S|)/2} \left(\tfrac{1-q}{2}\right)^{|S|/2} \prod_{e \in S} s_e(\sigma)`,
        with s_e the sign of pair e, P the number of pairs and q = exp(-nu): 2^P coordinates.
        """
        pairs = math.comb(X.shape[1], 2)
        if 2**pairs * max(len(X), 1) > MAX_FEATURES * 64 or 2**pairs > MAX_FEATURES:
            raise ValueError(
                f"the feature map has 2^{pairs} coordinates for {X.shape[1]} items, more than {MAX_FEATURES:,}; use "
                "the kernel itself, or NystromFeatures"
            )
        q = math.exp(-float(self.nu))
        even, odd = math.sqrt((1 + q) / 2), math.sqrt((1 - q) / 2)
        columns = np.ones((len(X), 1))
        for sign in pair_signs(X).T:
            columns = np.hstack([even * columns, odd * sign[:, None] * columns])
        return columns


def is_psd_cayley(nu: float, n_items: int) -> bool:
    """Whether exp(-nu d) is positive semi-definite for the Cayley distance: exp(nu) an integer, or at least n - 1."""
    x = math.exp(min(nu, 700.0))
    return x >= (n_items - 1) * (1 - 1e-12) or math.isclose(x, round(x), rel_tol=1e-12)


@dataclass(frozen=True)
class Mallows(ExponentialKernel):
    r"""Mallows kernel :math:`\exp(-\nu n_d(\sigma, \sigma'))`, n_d the number of discordant pairs.

    Positive definite, characteristic and universal for every nu > 0 (Mania et al. 2018).

    Parameters
    ----------
    nu : float or "median"
        Decay rate (inverse bandwidth): the larger nu, the narrower the kernel. "median" is one over the median distance
        within the data.

    Examples
    --------
    >>> Mallows(nu=0.5).matrix(np.array([[0, 1, 2]]), np.array([[0, 1, 2], [1, 0, 2]]))
    array([[1.        , 0.60653066]])
    """

    nu: float | str = MEDIAN
    distance = distances.kendall

    def __post_init__(self) -> None:
        check_rate("nu", self.nu)


@dataclass(frozen=True)
class Exponential(ExponentialKernel):
    r"""Exponential kernel :math:`\exp(-\nu d(\sigma, \sigma'))` of a semimetric d.

    Positive semi-definite for every nu if d is of negative type (Schoenberg): Kendall, Spearman, Hamming, footrule,
    l_p with p <= 2. For the Cayley distance it is positive semi-definite only if exp(nu) is an integer or at least
    n - 1: see :meth:`nearest_valid_nu`.

    Parameters
    ----------
    distance : Distance, str or callable
        One of :mod:`rankernel.distances`, its name, or a function of two rank vectors (integer arrays with the position
        of each item, from 0) that returns one number >= 0.
    nu : float or "median"
        Decay rate, as for :class:`Mallows`.

    Examples
    --------
    >>> Exponential("hamming", nu=0.5).matrix(np.array([[0, 1, 2]]), np.array([[1, 0, 2]]))
    array([[0.36787944]])
    """

    distance: Distance | str | Callable[[RankArray, RankArray], float]
    nu: float | str = MEDIAN

    def __post_init__(self) -> None:
        object.__setattr__(self, "distance", as_distance(self.distance))
        check_rate("nu", self.nu)

    def nearest_valid_nu(self, n_items: int) -> float:
        """Return the nu nearest to this one for which the Cayley kernel on n items is positive semi-definite.

        Examples
        --------
        >>> round(Exponential("cayley", nu=0.14).nearest_valid_nu(10), 4)  # log 2
        0.6931
        """
        nu = number("nu", self.nu)
        if self.facts(n_items).is_psd:
            return nu
        if self.distance != distances.cayley:
            raise ValueError(f"no nu is known to make exp(-nu d) positive semi-definite for d = {self.distance}")
        x = math.exp(nu)
        return min((math.log(k) for k in (max(math.floor(x), 2), math.ceil(x))), key=lambda valid: abs(valid - nu))

    def __repr__(self) -> str:
        distance = as_distance(self.distance)
        shown = distance.name if distance.function is not None else repr(distance.name)
        return f"Exponential({shown}, nu={self.nu!r})"

"""Exponential kernels exp(-nu d) of a distance d; the Mallows kernel is the one of the Kendall distance."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel import distances
from rankernel._utils.arrays import FloatArray, RankArray
from rankernel.distances import Distance, by_name
from rankernel.kernels.base import TUNABLE, Decay, DistanceKernel, Series, check_width, number
from rankernel.linear_forms import pair_signs

FEATURE_LIMIT = 2**20


class ExponentialKernel(DistanceKernel):
    """exp(-nu d): what Mallows and the other exponential kernels share."""

    nu: Any

    @property
    def width(self) -> float:
        """Nu as a number."""
        return number("nu", self.nu)

    def at_distance(self, d: NDArray[Any], n_items: int) -> FloatArray:
        """Return ``exp(-nu d)``."""
        return np.asarray(np.exp(-self.width * np.asarray(d)))

    def slopes_at_distance(self, d: NDArray[Any], n_items: int) -> dict[str, FloatArray]:
        """Return ``-d exp(-nu d)``."""
        return {"nu": -np.asarray(d) * self.at_distance(d, n_items)}

    def log_at_distance(self, d: NDArray[Any], n_items: int) -> FloatArray:
        """Return ``-nu d``."""
        return np.asarray(-self.width * np.asarray(d))

    @property
    def decay(self) -> Decay:
        """Nu itself."""
        return Decay(self.width, {"nu": 1.0})

    def is_positive(self, n_items: int) -> bool | None:
        """Say yes where the distance is of negative type (Schoenberg)."""
        assert self.argument is not None
        certain = self.argument.negative_type or n_items <= self.argument.negative_up_to or self.width == 0
        return True if certain else None

    def most_dimensions(self, n_items: int) -> float:
        """Return 1 where the kernel is constant."""
        return 1 if self.width == 0 else math.inf

    def series(self, n_items: int) -> Series | None:
        r"""Return the first coefficients in z, where :math:`d = 2 (L - z)`.

        :math:`e^{-\nu d} = e^{-2 \nu L} \sum_j (2 \nu z)^j / j!`. For the Kendall distance products of different
        pairs make a sharper series (Mania et al. 2018): :math:`q^d = \sum_S a^{P - |S|} b^{|S|} s_S s'_S` over sets S
        of the P pairs, a = (1+q)/2, b = (1-q)/2, q = exp(-nu); sets of one make 4z, those of two 8z² less a constant.
        """
        form, nu = self.argument.square if self.argument else None, self.width
        if form is None or n_items < 3:
            return None
        if self.argument == distances.kendall:
            (one, one_slope), (two, two_slope) = (set_coefficient(nu, math.comb(n_items, 2), size) for size in (1, 2))
            return Series((4 * one, 8 * two), {"nu": (4 * one_slope, 8 * two_slope)})
        half = form.half_range(n_items)
        outer = math.exp(-2 * nu * half)
        first = 2 * nu * outer
        second = nu * first  # in this order: the square of a very large nu is no number
        return Series((first, second), {"nu": (2 * outer - 2 * half * first, 4 * nu * outer - 2 * half * second)})


def set_coefficient(nu: float, n_pairs: int, size: int) -> tuple[float, float]:
    """Return the coefficient of the sets of so many pairs in the Mallows kernel, and its derivative in nu."""
    q = math.exp(-nu)
    a, b, rest = (1 + q) / 2, (1 - q) / 2, n_pairs - size
    value = a**rest * b**size
    return value, q / 2 * (size * b ** (size - 1) * a**rest - rest * a ** (rest - 1) * b**size)


@dataclass(frozen=True)
class Mallows(ExponentialKernel):
    r"""Mallows kernel :math:`\exp(-\nu n_d(\sigma, \sigma'))`, n_d the number of discordant pairs.

    Positive definite, characteristic and universal for every nu > 0 (Mania et al. 2018).

    Parameters
    ----------
    nu : float or "median"
        Width: large nu sees only near neighbours. "median" is one over the median distance within the data.

    Examples
    --------
    >>> Mallows(nu=0.5).matrix(np.array([[0, 1, 2]]), np.array([[0, 1, 2], [1, 0, 2]]))
    array([[1.        , 0.60653066]])
    """

    nu: float | str = field(default="median", metadata=TUNABLE)

    def __post_init__(self) -> None:
        check_width("nu", self.nu)

    argument = distances.kendall

    def features(self, X: RankArray) -> FloatArray:
        r"""Return the feature map of Mania et al.: one coordinate for each set S of pairs of items, small n only.

        :math:`\left(\tfrac{1+q}{2}\right)^{(P-|S|)/2} \left(\tfrac{1-q}{2}\right)^{|S|/2} \prod_{e \in S} s_e(\sigma)`,
        with s_e the sign of pair e, P the number of pairs and q = exp(-nu): 2^P coordinates.
        """
        pairs = math.comb(X.shape[1], 2)
        if 2**pairs * max(len(X), 1) > FEATURE_LIMIT * 64 or 2**pairs > FEATURE_LIMIT:
            raise ValueError(
                f"the feature map has 2^{pairs} coordinates for {X.shape[1]} items, too many to write down; "
                "use the kernel itself, or NystromFeatures"
            )
        q = math.exp(-self.width)
        kept, flipped = math.sqrt((1 + q) / 2), math.sqrt((1 - q) / 2)
        columns = np.ones((len(X), 1))
        for sign in pair_signs(X).T:
            columns = np.hstack([kept * columns, flipped * sign[:, None] * columns])
        return columns


@dataclass(frozen=True)
class Exponential(ExponentialKernel):
    r"""Exponential kernel :math:`\exp(-\nu d(\sigma, \sigma'))` of a semimetric d.

    Positive semi-definite for every nu if d is of negative type (Schoenberg): Kendall, Spearman, Hamming, footrule,
    l_p with p <= 2. For the Cayley distance it is so only where exp(nu) is a whole number or at least n - 1:
    :meth:`nearest_valid_nu` gives a nu that is.

    Parameters
    ----------
    distance : Distance or str
        One of :mod:`rankernel.distances`, or its name.
    nu : float or "median"
        Width, as for :class:`Mallows`.

    Examples
    --------
    >>> Exponential("hamming", nu=0.5).matrix(np.array([[0, 1, 2]]), np.array([[1, 0, 2]]))
    array([[0.36787944]])
    """

    distance: Distance | str
    nu: float | str = field(default="median", metadata=TUNABLE)

    def __post_init__(self) -> None:
        object.__setattr__(self, "distance", by_name(self.distance))
        check_width("nu", self.nu)

    @property
    def argument(self) -> Distance:
        """The distance inside."""
        return by_name(self.distance)

    def is_positive(self, n_items: int) -> bool | None:
        """Say whether this kernel is positive semi-definite on n items, as far as is known."""
        if super().is_positive(n_items) or self.argument != distances.cayley:
            return super().is_positive(n_items)
        x = math.exp(min(self.width, 700.0))
        # A whole number to the rounding of exp(log(k)).
        return x >= (n_items - 1) * (1 - 1e-12) or math.isclose(x, round(x), rel_tol=1e-12)

    def nearest_valid_nu(self, n_items: int) -> float:
        """Return the nu nearest to this one for which the Cayley kernel on n items is positive semi-definite.

        Examples
        --------
        >>> round(Exponential("cayley", nu=0.14).nearest_valid_nu(10), 4)  # log 2
        0.6931
        """
        if self.is_positive(n_items):
            return self.width
        if self.argument != distances.cayley:
            raise ValueError(f"no nu is known to make exp(-nu d) positive semi-definite for d = {self.argument}")
        x = math.exp(self.width)
        return min((math.log(k) for k in (max(math.floor(x), 2), math.ceil(x))), key=lambda nu: abs(nu - self.width))

    def __repr__(self) -> str:
        return f"Exponential({self.argument.name!r}, nu={self.nu!r})"

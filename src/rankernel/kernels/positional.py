"""Kernels that add up over items by their places: rank-biased overlap, average overlap, discounted gain, and any other.

For a positive semi-definite matrix G on places, the sum over items of ``G[place, place']`` is a kernel. Its mean over
completions needs only how probable each place of each item is, so it is exact for every partial ranking.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, RankArray
from rankernel._utils.checks import check_integer, check_number, check_numbers
from rankernel.kernels.base import TUNABLE, Kernel
from rankernel.kernels.discounts import Weights, check_discount, place_discounts
from rankernel.linear_forms import LinearForm, PlaceForm

SHOWN = 6  # places of a matrix that is printed
ROUNDING = 1e-10  # of eigenvalues, against the largest


class PositionalKernel(Kernel):
    """A kernel that is a sum over items of what their two places have in common."""

    positive = True

    @abstractmethod
    def make_places(self, n_items: int) -> PlaceForm:
        """Return what two places have in common."""

    def places(self, n_items: int) -> PlaceForm:
        """Return what two places have in common, made once."""
        return places_of(self, n_items)

    def matrix(self, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the kernel between the rows of two arrays of full rankings."""
        return place_sums(X, Y, self.places(X.shape[1]).matrix)

    def gradient(self, X: RankArray, Y: RankArray) -> dict[str, FloatArray]:
        """Return the derivative of :meth:`matrix` in each parameter."""
        return {name: place_sums(X, Y, slope) for name, slope in self.places(X.shape[1]).slopes.items()}

    def linear(self, n_items: int) -> LinearForm:
        """Return the factors of the places of all items."""
        return self.places(n_items).features

    def most_dimensions(self, n_items: int) -> float:
        """Return the dimension of all permutation matrices."""
        return 1 + (n_items - 1) ** 2

    def __repr__(self) -> str:
        given = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        shown = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
        return f"{type(self).__name__}({shown})"


@lru_cache(maxsize=8)
def places_of(kernel: PositionalKernel, n_items: int) -> PlaceForm:
    """Return what two places have in common to a kernel."""
    return kernel.make_places(n_items)


def place_sums(X: RankArray, Y: RankArray, matrix: FloatArray) -> FloatArray:
    """Return the sums over items of what their places have in common, between the rows of two arrays."""
    out = np.empty((len(X), len(Y)))
    _loops.place_sums.of_full(X, Y, matrix, out)
    return out


@dataclass(frozen=True, eq=False, repr=False)
class Positional(PositionalKernel):
    r"""Positional kernel :math:`\sum_i G[\sigma(i), \sigma'(i)]` of a matrix G on places.

    A kernel for every positive semi-definite G, and exact for every partial ranking. Hamming is ``G = I``, Spearman the
    outer product of centred places, ``n (n - 1) / 2`` less half the footrule distance is ``G[p, q] = min(p, q)``. Not
    characteristic: it sees only how often each item stands at each place.

    Parameters
    ----------
    G : array of shape (n_items, n_items), or callable
        What two places have in common, the first place first. A callable makes it for any number of places.

    Examples
    --------
    The first place counts twice:

    >>> Positional(np.diag([2.0, 1.0, 1.0])).matrix(np.array([[0, 1, 2]]), np.array([[0, 2, 1], [1, 0, 2]]))
    array([[2., 1.]])
    """

    G: ArrayLike | Callable[[int], ArrayLike]

    def __post_init__(self) -> None:
        if not callable(self.G):
            matrix = symmetric(self.G)
            matrix.flags.writeable = False
            object.__setattr__(self, "G", matrix)
            self.places(len(matrix))  # refuses what is not positive semi-definite

    @cached_property
    def _key(self) -> Any:
        return self.G if callable(self.G) else (np.shape(self.G), np.asarray(self.G).tobytes())

    def make_places(self, n_items: int) -> PlaceForm:
        """Return G and its factor."""
        matrix = symmetric(self.G(n_items)) if callable(self.G) else np.asarray(self.G)
        if len(matrix) != n_items:
            raise ValueError(f"G has {len(matrix)} places but the data has {n_items} items; give one place an item")
        factor = root(matrix)
        return PlaceForm(matrix, lambda: factor)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Positional):
            return NotImplemented
        return bool(self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        if callable(self.G):
            return f"Positional({getattr(self.G, '__name__', repr(self.G))})"
        G = np.asarray(self.G)
        return f"Positional({G.tolist()})" if len(G) <= SHOWN else f"Positional(<{len(G)} x {len(G)} matrix>)"


def symmetric(G: ArrayLike) -> FloatArray:
    """Return a matrix on places, refusing what is none."""
    matrix = check_numbers("G", G, (None, None))
    if matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise ValueError(f"G has shape {matrix.shape}; it must be a square matrix, one row and column a place")
    if not np.allclose(matrix, matrix.T, rtol=0, atol=ROUNDING * np.abs(matrix).max()):
        p, q = np.unravel_index(np.argmax(np.abs(matrix - matrix.T)), matrix.shape)
        raise ValueError(f"G is not symmetric: G[{p}, {q}] = {matrix[p, q]:g} but G[{q}, {p}] = {matrix[q, p]:g}")
    return (matrix + matrix.T) / 2 + 0.0  # no -0: equal matrices are the same bytes


def root(matrix: FloatArray) -> FloatArray:
    """Return F with ``F @ F.T`` a symmetric matrix, refusing one that is not positive semi-definite."""
    values, vectors = np.linalg.eigh(matrix)
    largest = float(np.abs(values).max())
    if values[0] < -ROUNDING * largest:
        raise ValueError(
            f"G is not positive semi-definite, so the sum is no kernel: its eigenvalues go from {values[0]:.3g} to "
            f"{values[-1]:.3g}; add at least {-values[0]:.3g} to its diagonal, or give another matrix"
        )
    some = values > 1e-14 * largest
    return np.asarray(vectors[:, some] * np.sqrt(values[some]))


# ---------------------------------------------------------------------- overlaps of the first places


class OverlapKernel(PositionalKernel):
    """A weighted sum over depths d of how many items both rankings have among their first d places."""

    @abstractmethod
    def depth_weights(self, n_items: int) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Return how much an item among the first 1, 2, ..., n places of both counts, and the derivatives."""

    def make_places(self, n_items: int) -> PlaceForm:
        """Return the weights of all depths that reach both places."""
        weights, slopes = self.depth_weights(n_items)
        return PlaceForm(
            reached_by_both(weights),
            lambda: np.tril(np.ones((n_items, n_items))).T[:, weights > 0] * np.sqrt(weights[weights > 0]),
            {name: reached_by_both(slope) for name, slope in slopes.items()},
        )


def reached_by_both(weights: FloatArray) -> FloatArray:
    """Return for every two places the sum of the weights of the depths that reach both."""
    deeper = np.cumsum(weights[::-1])[::-1]  # the small ones first
    places = np.arange(len(weights))
    return deeper[np.maximum.outer(places, places)]


@dataclass(frozen=True, repr=False)
class RankBiasedOverlap(OverlapKernel):
    r"""Rank-biased overlap (Webber, Moffat and Zobel 2010): the similarity of search results.

    :math:`(1 - p) \sum_{d \ge 1} p^{d-1} A_d`, with :math:`A_d` the share of items that two rankings have in common
    among their first d; all of them from depth n on. 1 for equal rankings. A reader who goes on from one result to the
    next with probability p sees :math:`1/(1 - p)` of them on average.

    For ties and truncated lists it is the mean over all ways to complete them, which Corsi and Urbano (2024) call
    RBO\ :sup:`a`; nothing is extrapolated.

    Parameters
    ----------
    p : float
        How patient the reader is, from 0 (only the first place counts) to 1 (all rankings are alike).
    depth : int, optional
        The reader stops there: the sum has so many terms, and lists of that length are all that it needs. Equal lists
        then have :math:`1 - p^{depth}`. If left out, nobody stops.

    Examples
    --------
    >>> RankBiasedOverlap(p=0.5).matrix(np.array([[0, 1, 2]]), np.array([[0, 1, 2], [1, 0, 2], [0, 2, 1]]))
    array([[1.   , 0.5  , 0.875]])
    """

    p: float = field(default=0.9, metadata=TUNABLE | {"limits": (0.0, 1.0)})
    depth: int | None = None

    def __post_init__(self) -> None:
        check_number("p", self.p, 0, 1)
        if self.depth is not None:
            check_integer("depth", self.depth)

    def depth_weights(self, n_items: int) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Return ``(1 - p) p^(d - 1) / d``; the last stands for all depths behind it, where all rankings agree."""
        before = np.arange(n_items)
        powers, rising = float(self.p) ** before, before * float(self.p) ** np.maximum(before - 1, 0)
        weights, slopes = (1 - self.p) * powers, (1 - self.p) * rising - powers
        if self.depth is None:
            weights[-1], slopes[-1] = powers[-1], rising[-1]
        elif self.depth < n_items:
            weights[self.depth :] = slopes[self.depth :] = 0.0
        else:  # all terms from n to the depth
            weights[-1] = powers[-1] - self.p**self.depth
            slopes[-1] = rising[-1] - self.depth * self.p ** (self.depth - 1)
        return weights / (before + 1), {"p": slopes / (before + 1)}


@dataclass(frozen=True, repr=False)
class AverageOverlap(OverlapKernel):
    r"""Average overlap (Fagin, Kumar and Sivakumar 2003): the mean over depths of what two top lists share.

    :math:`\frac1D \sum_{d=1}^{D} A_d`, with :math:`A_d` the share of items that two rankings have in common among their
    first d. 1 for rankings that begin alike.

    Parameters
    ----------
    depth : int
        The depth D; all places where there are fewer.

    Examples
    --------
    >>> AverageOverlap(depth=2).matrix(np.array([[0, 1, 2]]), np.array([[0, 1, 2], [1, 0, 2], [0, 2, 1]]))
    array([[1.  , 0.5 , 0.75]])
    """

    depth: int = 10

    def __post_init__(self) -> None:
        check_integer("depth", self.depth)

    def depth_weights(self, n_items: int) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Return ``1 / (d D)`` down to the depth."""
        deepest, depths = min(self.depth, n_items), np.arange(1, n_items + 1)
        return np.where(depths <= deepest, 1 / (depths * deepest), 0.0), {}


# ---------------------------------------------------------------------- gains


@dataclass(frozen=True, repr=False)
class DCG(PositionalKernel):
    r"""Discounted-gain kernel :math:`\sum_i g(\sigma(i))\, g(\sigma'(i))`, g the discount of a place.

    The inner product of the vectors that discounted cumulative gain (Järvelin and Kekäläinen 2002) weighs items by: a
    ranking as the gain that it gives to each item.

    Parameters
    ----------
    discount : "logarithmic", "hyperbolic" or sequence of numbers
        What a place counts: 1/log2(p + 2), 1/(p + 1), p = 0, 1, ..., or one number a place, down to the depth if there
        is one.
    depth : int, optional
        Behind so many places nothing counts, as in DCG@10.

    Examples
    --------
    >>> DCG().matrix(np.array([[0, 1]]), np.array([[0, 1], [1, 0]]))
    array([[1.39807235, 1.26185951]])
    """

    discount: Weights = "logarithmic"
    depth: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "discount", check_discount("discount", self.discount))
        if self.depth is not None:
            check_integer("depth", self.depth)

    def gains(self, n_items: int) -> FloatArray:
        """Return the discount of each place."""
        if self.depth is None:
            return place_discounts("discount", self.discount, n_items)
        counted = min(self.depth, n_items)
        known = self.discount if isinstance(self.discount, str) else self.discount[:counted]
        return np.pad(place_discounts("discount", known, counted), (0, n_items - counted))

    def make_places(self, n_items: int) -> PlaceForm:
        """Return the product of the discounts of two places."""
        gains = self.gains(n_items)
        return PlaceForm(np.outer(gains, gains), lambda: gains[:, None])

"""Positional kernels: sums over items of a function of their two positions.

For a positive semi-definite matrix G on positions, the sum over items of ``G[position, position']`` is a kernel. Its
mean over completions depends only on the marginal distribution of the position of each item, so it is exact for every
partial ranking. Rank-biased overlap, average overlap and discounted gains are of this form.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from rankernel._utils import FloatArray
from rankernel._utils.checks import check_integer, check_number, check_numbers
from rankernel.distances import LinearForm, sum_over_depths
from rankernel.kernels.base import Facts, last_axis_product
from rankernel.kernels.similarity import SimilarItemsKernel, matrix_root, symmetric_matrix

MAX_SHOWN = 6  # positions of a matrix in a repr

Discount = Literal["hyperbolic", "logarithmic"]
Weights = tuple[float, ...] | Discount


class PositionalKernel(SimilarItemsKernel):
    """A kernel that is a sum over items of a function of their two positions."""

    @abstractmethod
    def form(self, n_items: int) -> LinearForm:
        """Return the matrix on positions and its derivatives."""

    def facts_of_distinct_items(self, n_items: int) -> Facts:
        """Return the form; its features span at most the dimension of all permutation matrices."""
        return Facts(is_psd=True, max_dimension=1 + (n_items - 1) ** 2, form=self.form(n_items))


@dataclass(frozen=True, repr=False)
class Positional(PositionalKernel):
    r"""Positional kernel :math:`\sum_i G[\sigma(i), \sigma'(i)]` of a matrix G on positions.

    Positive semi-definite if G is, and exact for every partial ranking. For Hamming G is the identity, and for Spearman
    the outer product of centred positions; ``G[p, q] = min(p, q)`` gives ``n (n - 1) / 2`` minus half the footrule
    distance. Not characteristic: only the marginal distribution of the position of each item enters the mean embedding.

    Parameters
    ----------
    G : array of shape (n_items, n_items), or callable
        The matrix, the first position first, or a function that returns it for a number of items.
    similarity : Similarity, matrix or data frame, optional
        Similarity of the items (:class:`Similarity`, :func:`similarity_from_groups`). By default all are distinct.

    Examples
    --------
    The first position has weight two:

    >>> Positional(np.diag([2.0, 1.0, 1.0])).matrix(np.array([[0, 1, 2]]), np.array([[0, 2, 1], [1, 0, 2]]))
    array([[2., 1.]])
    """

    G: ArrayLike | Callable[[int], ArrayLike]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.G):
            matrix = symmetric_matrix("G", self.G)
            matrix.flags.writeable = False
            object.__setattr__(self, "G", matrix)
            self.facts(len(matrix))  # raises an error if the matrix is not positive semi-definite

    def form(self, n_items: int) -> LinearForm:
        """Return G and its root."""
        matrix = symmetric_matrix("G", self.G(n_items)) if callable(self.G) else np.asarray(self.G)
        if len(matrix) != n_items:
            raise ValueError(
                f"G has {len(matrix)} positions but the data has {n_items} items; give one position for each item"
            )
        root = matrix_root("G", matrix)
        return LinearForm("positions", lambda rows: last_axis_product(rows, matrix), lambda rows: rows @ root)

    def __repr__(self) -> str:
        if callable(self.G):
            shown = getattr(self.G, "__name__", repr(self.G))
        else:
            G = np.asarray(self.G)
            shown = f"{G.tolist()}" if len(G) <= MAX_SHOWN else f"<{len(G)} x {len(G)} matrix>"
        return f"Positional({shown}{f', similarity={self.similarity}' if self.similarity is not None else ''})"


# ---------------------------------------------------------------------- overlaps of the first positions


class OverlapKernel(PositionalKernel):
    """A weighted sum over depths d of the number of items that both rankings have among their first d positions."""

    @abstractmethod
    @np.errstate(under="ignore")
    def depth_weights(self, n_items: int) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Return the weight of each depth 1, 2, ..., n, and its derivative in each parameter."""

    def form(self, n_items: int) -> LinearForm:
        """Return the sums of the weights of all depths that include both positions."""
        weights, derivatives = self.depth_weights(n_items)
        positive = weights > 0
        return LinearForm(
            "positions",
            partial(sum_over_depths, weights=weights),
            lambda rows: np.cumsum(rows, axis=-1)[..., positive] * np.sqrt(weights[positive]),
            {name: partial(sum_over_depths, weights=derivative) for name, derivative in derivatives.items()},
        )


@dataclass(frozen=True, repr=False)
class RankBiasedOverlap(OverlapKernel):
    r"""Rank-biased overlap (Webber, Moffat and Zobel 2010), a similarity of search results.

    :math:`(1 - p) \sum_{d \ge 1} p^{d-1} A_d`, where :math:`A_d` is the share of items that two rankings of n items
    have in common among their first d, which is 1 for d at least n. For equal rankings the value is 1. A reader who
    continues from one result to the next with probability p reads :math:`1/(1 - p)` results on average.

    For ties and truncated lists it is the mean over all completions, which Corsi and Urbano (2024) call
    RBO\ :sup:`a`; nothing is extrapolated.

    Parameters
    ----------
    p : float
        The persistence of the reader, from 0 (only the first position counts) to 1 (all rankings have the same value).
    depth : int, optional
        The number of terms of the sum; lists of that length are sufficient. Equal lists then have
        :math:`1 - p^{depth}`. By default the sum is infinite.
    similarity : Similarity, matrix or data frame, optional
        Similarity of the items (:class:`Similarity`, :func:`similarity_from_groups`). By default all are distinct.

    Examples
    --------
    >>> RankBiasedOverlap(p=0.5).matrix(np.array([[0, 1, 2]]), np.array([[0, 1, 2], [1, 0, 2], [0, 2, 1]]))
    array([[1.   , 0.5  , 0.875]])
    """

    p: float = 0.9
    depth: int | None = None
    parameter_bounds = {"p": (0.0, 1.0)}  # noqa: RUF012

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("p", self.p, 0, 1)
        if self.depth is not None:
            check_integer("depth", self.depth)

    def depth_weights(self, n_items: int) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Return ``(1 - p) p^(d - 1) / d``; the last one includes all depths beyond n, where all rankings agree."""
        before = np.arange(n_items)
        p = float(self.p)
        powers, d_powers = p**before, before * p ** np.maximum(before - 1, 0)
        weights, derivative = (1 - p) * powers, (1 - p) * d_powers - powers
        if self.depth is None:
            weights[-1], derivative[-1] = powers[-1], d_powers[-1]
        elif self.depth < n_items:
            weights[self.depth :] = derivative[self.depth :] = 0.0
        else:  # all terms from n to the depth
            weights[-1] = powers[-1] - p**self.depth
            derivative[-1] = d_powers[-1] - self.depth * p ** (self.depth - 1)
        return weights / (before + 1), {"p": derivative / (before + 1)}


@dataclass(frozen=True, repr=False)
class AverageOverlap(OverlapKernel):
    r"""Average overlap (Fagin, Kumar and Sivakumar 2003): the mean over depths of the overlap of two top lists.

    :math:`\frac1D \sum_{d=1}^{D} A_d`, with :math:`A_d` the share of items that two rankings have in common among their
    first d. 1 for rankings with the same first D positions.

    Parameters
    ----------
    depth : int
        The depth D; all positions if there are fewer.
    similarity : Similarity, matrix or data frame, optional
        Similarity of the items (:class:`Similarity`, :func:`similarity_from_groups`). By default all are distinct.

    Examples
    --------
    >>> AverageOverlap(depth=2).matrix(np.array([[0, 1, 2]]), np.array([[0, 1, 2], [1, 0, 2], [0, 2, 1]]))
    array([[1.  , 0.5 , 0.75]])
    """

    depth: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("depth", self.depth)

    def depth_weights(self, n_items: int) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Return ``1 / (d D)`` for each depth d up to D."""
        deepest, depths = min(self.depth, n_items), np.arange(1, n_items + 1)
        return np.where(depths <= deepest, 1 / (depths * deepest), 0.0), {}


# ---------------------------------------------------------------------- discounted gains


@dataclass(frozen=True, repr=False)
class DCG(PositionalKernel):
    r"""Discounted-gain kernel :math:`\sum_i g(\sigma(i))\, g(\sigma'(i))`, g the discount of a position.

    The inner product of the vectors of discounts that discounted cumulative gain (Järvelin and Kekäläinen 2002) assigns
    to the items.

    Parameters
    ----------
    discount : "logarithmic", "hyperbolic" or sequence of numbers
        The discount of a position: 1/log2(p + 2), 1/(p + 1), p = 0, 1, ..., or one number for each position, up to the
        depth if that is given.
    depth : int, optional
        Positions from this one on have discount 0, as in DCG@10.
    similarity : Similarity, matrix or data frame, optional
        Similarity of the items (:class:`Similarity`, :func:`similarity_from_groups`). By default all are distinct.

    Examples
    --------
    >>> DCG().matrix(np.array([[0, 1]]), np.array([[0, 1], [1, 0]]))
    array([[1.39807235, 1.26185951]])
    """

    discount: Weights = "logarithmic"
    depth: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "discount", check_discount("discount", self.discount))
        if self.depth is not None:
            check_integer("depth", self.depth)

    def gains(self, n_items: int) -> FloatArray:
        """Return the discount of each position."""
        if self.depth is None:
            return position_discounts("discount", self.discount, n_items)
        counted = min(self.depth, n_items)
        known = self.discount if isinstance(self.discount, str) else self.discount[:counted]
        return np.pad(position_discounts("discount", known, counted), (0, n_items - counted))

    def form(self, n_items: int) -> LinearForm:
        """Return the product of the discounts of two positions."""
        gains = self.gains(n_items)

        def root(rows: FloatArray) -> FloatArray:
            return (rows * gains).sum(axis=-1, keepdims=True)

        return LinearForm("positions", lambda rows: root(rows) * gains, root)


# ---------------------------------------------------------------------- weights of positions


def check_discount(name: str, given: Iterable[float] | Discount) -> Weights:
    """Return the weights of positions, as a rule or as numbers.

    Examples
    --------
    >>> check_discount("discount", "steep")
    Traceback (most recent call last):
    ValueError: discount='steep' is not known; give one number for each position, 'hyperbolic' or 'logarithmic'
    """
    if isinstance(given, str) and given in get_args(Discount):
        return given
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(
            f"{name}={given!r} is not known; give one number for each position, 'hyperbolic' or 'logarithmic'"
        )
    return tuple(check_numbers(name, given, (None,)).tolist())


def position_discounts(name: str, weights: Weights, n_items: int) -> FloatArray:
    """Return the weight of each of n positions, the first position first."""
    positions = np.arange(n_items)
    if weights == "hyperbolic":
        return 1 / (positions + 1)
    if weights == "logarithmic":
        return np.asarray(1 / np.log2(positions + 2))
    if len(weights) != n_items:
        raise ValueError(f"{name} has {len(weights)} numbers for {n_items} positions; give one for each position")
    return np.array(weights, dtype=np.float64)

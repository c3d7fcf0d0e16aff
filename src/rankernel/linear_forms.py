"""What linear kernels see of a full ranking: the signs of its pairs, its positions, or its centred ranks.

The mean of what is seen over the completions of a partial ranking is known exactly. Features that are an affine
function of it have a known mean, too, and that is all that a linear kernel needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np

from rankernel._utils.arrays import FloatArray, RankArray

Sight = Literal["pairs", "positions", "ranks"]


def pair_signs(X: RankArray) -> FloatArray:
    """Return +1 for each pair of items a < b (in the order of triu_indices) with a before b, else -1."""
    a, b = np.triu_indices(X.shape[1], 1)
    return np.asarray(np.sign(X[:, b] - X[:, a]), dtype=np.float64)


def positions(X: RankArray) -> FloatArray:
    """Return the permutation matrices: shape (n_rankings, n_items, n_positions)."""
    return np.asarray(X[:, :, None] == np.arange(X.shape[1]), dtype=np.float64)


def centred_ranks(X: RankArray) -> FloatArray:
    """Return the ranks less ``(n - 1) / 2``."""
    return np.asarray(X - (X.shape[1] - 1) / 2)


SEEN: dict[str, Callable[[RankArray], FloatArray]] = {
    "pairs": pair_signs,
    "positions": positions,
    "ranks": centred_ranks,
}


def seen_of_nothing(sees: Sight, n_items: int) -> FloatArray:
    """Return the mean over all rankings of what is seen, as one row."""
    if sees == "positions":
        return np.full((1, n_items, n_items), 1 / n_items)
    return np.zeros((1, n_items if sees == "ranks" else n_items * (n_items - 1) // 2))


@dataclass(frozen=True)
class LinearForm:
    """Features of a ranking: an affine function of what is seen of it, one row a ranking."""

    sees: Sight
    features: Callable[[FloatArray], FloatArray]

    def of(self, X: RankArray) -> FloatArray:
        """Return the features of full rankings."""
        return self.features(SEEN[self.sees](X))


@dataclass(frozen=True, eq=False)
class PlaceForm:
    """A kernel that adds up over items: the sum of ``matrix[p, q]`` over the places p and q of each item in both.

    Parameters
    ----------
    matrix : array of shape (n_items, n_items)
        What two places have in common: positive semi-definite.
    roots : callable
        Makes the :attr:`factor`.
    slopes : dict of arrays
        The derivative of the matrix in each parameter.
    """

    matrix: FloatArray
    roots: Callable[[], FloatArray]
    slopes: dict[str, FloatArray] = field(default_factory=dict)

    @cached_property
    def factor(self) -> FloatArray:
        """One row a place, with ``factor @ factor.T`` the matrix."""
        return self.roots()

    @property
    def features(self) -> LinearForm:
        """The factors of the places of all items, side by side."""
        return LinearForm("positions", lambda at: np.asarray((at @ self.factor).reshape(len(at), -1)))


ALIKE = LinearForm("ranks", lambda ranks: np.ones((len(ranks), 1)))  # one item: all rankings are the same


@dataclass(frozen=True)
class SquareForm(LinearForm):
    r"""Features f by which a distance is a square: :math:`d(\sigma, \sigma') = |f(\sigma) - f(\sigma')|^2`.

    Less their mean over all rankings they have one length for all rankings, so that :math:`d = 2 (L - z)` with
    :math:`z` the inner product of the centred features and :math:`L` their squared length.
    """

    scale: float | None = None  # the features are what is seen times this number, if they are no other function of it
    indicators: bool = False  # whether the features are 0 or 1

    def lengths(self, means: FloatArray, n_items: int) -> FloatArray:
        """Return the mean squared length of the features, given their means."""
        if self.indicators:
            return np.asarray(means.sum(axis=1))
        return np.full(len(means), float((self.of(np.arange(n_items, dtype=np.int32)[None]) ** 2).sum()))

    @lru_cache(maxsize=256)  # noqa: B019 - the forms are a few constants
    def centre(self, n_items: int) -> FloatArray:
        """Return the mean of the features over all rankings, as one row."""
        return self.features(seen_of_nothing(self.sees, n_items))

    @lru_cache(maxsize=256)  # noqa: B019
    def half_range(self, n_items: int) -> float:
        """Return L: the squared length of the centred features of any full ranking."""
        one = self.of(np.arange(n_items, dtype=np.int32)[None]) - self.centre(n_items)
        return float((one**2).sum())

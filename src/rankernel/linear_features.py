"""Features of full rankings that are linear in a simple statistic: signs of pairs, positions, or centred ranks.

The mean of each statistic over the completions of a partial ranking is known exactly. Features that are an affine
function of it then have a known mean, which is all that a linear kernel needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np

from rankernel._utils import FloatArray, RankArray

Statistic = Literal["pairs", "positions", "ranks"]


def pair_signs(X: RankArray) -> FloatArray:
    """Return +1 for each pair of items a < b (in the order of triu_indices) with a before b, else -1."""
    a, b = np.triu_indices(X.shape[1], 1)
    return np.asarray(np.sign(X[:, b] - X[:, a]), dtype=np.float64)


def positions(X: RankArray) -> FloatArray:
    """Return the permutation matrices: shape (n_rankings, n_items, n_positions)."""
    return np.asarray(X[:, :, None] == np.arange(X.shape[1]), dtype=np.float64)


def centred_ranks(X: RankArray) -> FloatArray:
    """Return the ranks minus ``(n - 1) / 2``."""
    return np.asarray(X - (X.shape[1] - 1) / 2)


STATISTICS: dict[str, Callable[[RankArray], FloatArray]] = {
    "pairs": pair_signs,
    "positions": positions,
    "ranks": centred_ranks,
}


def uniform_mean(statistic: Statistic, n_items: int) -> FloatArray:
    """Return the mean of a statistic over all rankings, as one row."""
    if statistic == "positions":
        return np.full((1, n_items, n_items), 1 / n_items)
    return np.zeros((1, n_items if statistic == "ranks" else n_items * (n_items - 1) // 2))


@dataclass(frozen=True)
class LinearFeatures:
    """Features of a ranking: an affine function of a statistic, one row for each ranking."""

    statistic: Statistic
    transform: Callable[[FloatArray], FloatArray]

    def of_rankings(self, X: RankArray) -> FloatArray:
        """Return the features of full rankings."""
        return self.transform(STATISTICS[self.statistic](X))


CONSTANT_FEATURE = LinearFeatures("ranks", lambda ranks: np.ones((len(ranks), 1)))


@dataclass(frozen=True, eq=False)
class PositionMatrix:
    """A kernel that is the sum over items of ``matrix[p, q]``, p and q the positions of the item in both rankings.

    Parameters
    ----------
    matrix : array of shape (n_items, n_items)
        A positive semi-definite matrix on positions.
    make_root : callable
        Returns the :attr:`root`, which is computed on first use.
    derivatives : dict of arrays
        The derivative of the matrix in each parameter.
    """

    matrix: FloatArray
    make_root: Callable[[], FloatArray]
    derivatives: Mapping[str, FloatArray] = field(default_factory=dict)

    @cached_property
    def root(self) -> FloatArray:
        """One row for each position, with ``root @ root.T`` the matrix."""
        return self.make_root()

    @property
    def features(self) -> LinearFeatures:
        """The rows of the root at the positions of all items, side by side."""
        return LinearFeatures("positions", lambda at: np.asarray((at @ self.root).reshape(len(at), -1)))


@dataclass(frozen=True)
class EmbeddingFeatures(LinearFeatures):
    r"""Features f with :math:`d(\sigma, \sigma') = |f(\sigma) - f(\sigma')|^2` for a distance d.

    Minus their mean over all rankings they have the same norm for every ranking, so that :math:`d = 2 (L - z)` with
    :math:`z` the inner product of the centred features and :math:`L` their squared norm.
    """

    scale: float | None = None  # set if the features are the statistic times this number
    are_indicators: bool = False  # whether the features are 0 or 1

    def squared_norms(self, means: FloatArray, n_items: int) -> FloatArray:
        """Return the mean squared norm of the features, given their means."""
        if self.are_indicators:
            return np.asarray(means.sum(axis=1))
        return np.full(len(means), float((self.of_rankings(np.arange(n_items, dtype=np.int32)[None]) ** 2).sum()))

    @lru_cache(maxsize=256)  # noqa: B019 - there are only a few embeddings, one for each distance
    def mean(self, n_items: int) -> FloatArray:
        """Return the mean of the features over all rankings, as one row."""
        return self.transform(uniform_mean(self.statistic, n_items))

    @lru_cache(maxsize=256)  # noqa: B019
    def centred_norm(self, n_items: int) -> float:
        """Return L: the squared norm of the centred features of any full ranking."""
        one = self.of_rankings(np.arange(n_items, dtype=np.int32)[None]) - self.mean(n_items)
        return float((one**2).sum())

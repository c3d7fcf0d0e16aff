"""Exact means of what linear kernels see of a random completion, for rankings and for partial orders."""

from __future__ import annotations

from rankernel.gram import pair_moments
from rankernel.gram.evaluator import FloatArray
from rankernel.gram.partial_orders import Data, PartialOrders

__all__ = ["pair_means", "position_marginals", "rank_means"]


def pair_means(X: Data) -> FloatArray:
    """Return the mean sign of every pair of items: see :func:`rankernel.gram.pair_moments.pair_means`."""
    return X.pair_means() if isinstance(X, PartialOrders) else pair_moments.pair_means(X)


def position_marginals(X: Data) -> FloatArray:
    """Return the probability of each item at each position."""
    return X.position_marginals() if isinstance(X, PartialOrders) else pair_moments.position_marginals(X)


def rank_means(X: Data) -> FloatArray:
    """Return the mean position of each item, less ``(n - 1) / 2``."""
    return X.rank_means() if isinstance(X, PartialOrders) else pair_moments.rank_means(X)

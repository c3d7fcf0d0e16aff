"""The exact law of the Cayley distance between random completions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankernel.gram.formulas.exp_cayley import Joins, joins_of, log_closed_law
from rankernel.gram.formulas.law import DistanceLaw
from rankernel.gram.overlap import Overlap, Shape

__all__ = ["CayleyLaw"]

MOST_ITEMS = 300


class CayleyLaw(DistanceLaw):
    """Law of n less the number of cycles, for at most one tied bucket on each side or one side that says nothing.

    A random permutation of r elements has ``r - cycles = sum_{i<r} X_i``, independent, X_i = 1 with chance i/(1+i):
    all probabilities are sums of positive terms.

    >>> from rankernel.gram.overlap import Overlap
    >>> CayleyLaw().pmf(Overlap.of(np.array([0, 0, 0]), np.array([0, 1, 2]))) * 6
    array([1., 3., 2.])
    """

    name = "Cayley law, at most one tied bucket each"
    distance = "cayley"

    def covers(self, left: Shape, right: Shape) -> bool:
        """At most one tied bucket on each side and none free, or at most one bucket on one side."""
        if left.n_items > MOST_ITEMS:
            return False
        says_nothing = min(len(left.sizes), len(right.sizes)) <= 1
        return says_nothing or (left.is_exhaustive and right.is_exhaustive and max(left.n_ties, right.n_ties) <= 1)

    def pmf(self, overlap: Overlap) -> NDArray[np.float64]:
        """Return the probabilities of the distances 0..n-1."""
        n_items = overlap.n_items
        if min(len(overlap.left_shape.sizes), len(overlap.right_shape.sizes)) <= 1:
            joins = Joins(n_left=n_items, n_right=0, n_returns=0, n_apart=0)
        else:
            joins = joins_of(overlap)
        inner = closed_distance_law(joins.n_right, joins.n_returns)
        law = np.convolve(inner, random_distance_laws(joins.n_left)[joins.n_left])
        out = np.zeros(n_items)
        out[joins.n_apart : joins.n_apart + len(law)] = law[: n_items - joins.n_apart]
        return out


def random_distance_laws(size: int) -> NDArray[np.float64]:
    """Return for each r = 0..size the law of r less the cycles of a random permutation of r elements."""
    laws = np.zeros((size + 1, size + 1))
    laws[0, 0] = 1.0
    for r in range(size):
        laws[r + 1] = laws[r] / (r + 1)
        laws[r + 1, 1:] += laws[r, :-1] * (r / (r + 1))
    return laws


def closed_distance_law(size: int, n_returns: int) -> NDArray[np.float64]:
    """Return the law of n_returns less the cycles that the returning paths of a bucket form among themselves."""
    chances = np.exp(log_closed_law(size, n_returns)) if size else np.ones(1)
    laws = random_distance_laws(n_returns)
    out = np.zeros(n_returns + 1)
    for r, chance in enumerate(chances):
        out[n_returns - r :] += chance * laws[r, : r + 1]
    return out

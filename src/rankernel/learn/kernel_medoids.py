"""k-medoids with kernel distances: clusters of rankings around rankings that people gave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices
from rankernel._utils.memory import check_task
from rankernel._utils.rng import as_seed
from rankernel.gram.plan import Plan
from rankernel.kernels import as_kernel
from rankernel.learn._partition import KernelPartition
from rankernel.learn._seeding import check_partition, spread_seeds
from rankernel.learn.kernel_distance import gram_distances

WORTHWHILE = 1e-12  # the least gain of a swap, relative to the cost, so that rounding cannot keep swaps going


class KernelKMedoids(KernelPartition):
    r"""k-medoids clustering of rankings by kernel distance.

    Minimises :math:`\sum_i c_i \min_l D(R_i, R_{m_l})` over the choice of k rows :math:`m_1, ..., m_k`, where
    :math:`c_i` voters gave ranking i, by swapping a medoid for another row while that helps.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    n_clusters : int
        How many clusters.
    method : "auto" or a method object
        How to compute Gram matrices.
    n_init : int
        How many starts, each from rows drawn far from each other; the best result is kept.
    max_iter : int
        The most passes over all rows of one start.
    random_state : int, Generator or None
        Decides the starts.
    unlisted : {"last", "free"}, optional
        What NaN or None in a plain array or frame means: the item is last, or free. Refused if left out.

    Attributes
    ----------
    labels_ : array of shape (n_rankings,)
        The cluster of each ranking.
    medoid_indices_ : array of shape (n_clusters,)
        The row that each cluster is around.
    medoids_ : Rankings or Preferences
        These rows.
    inertia_ : float
        The minimised sum.
    n_iter_ : int
        Passes of the best start.
    plan_ : Plan
        How kernel values are computed: of new rankings with the medoids.
    kernel_ : Kernel
        The kernel, its width a number.

    Examples
    --------
    The medoid is the ranking with the fewest distances to the others, voters counted:

    >>> from rankernel import Kendall, Rankings
    >>> ballots = Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"], ["c", "b", "a"]], counts=[1, 1, 5])
    >>> KernelKMedoids(Kendall(), n_clusters=1).fit(ballots).medoids_
    Rankings: 1 ranking from 5 voters of 3 items (1 full)
      5 × c > b > a
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster rankings; ``y`` is ignored."""
        rankings = self._learn_items(X)
        check_partition(self.n_clusters, self.n_init, self.max_iter, len(rankings))
        plan = as_kernel(self.kernel).plan(rankings, method=self.method)
        check_task("k-medoids", len(rankings))
        self.kernel_, gram = plan.kernel, plan.gram()
        lengths = np.diagonal(gram).copy()
        distances = gram_distances(gram, out=gram)
        weights = rankings.counts.astype(np.float64)
        rng = np.random.default_rng(as_seed(self.random_state, "random_state"))
        starts = (spread_seeds(distances.__getitem__, weights, self.n_clusters, rng) for _ in range(self.n_init))
        best = min((swapped(distances, weights, medoids, self.max_iter) for medoids in starts), key=lambda s: s.cost)
        self.medoid_indices_, self.inertia_, self.n_iter_ = np.sort(best.medoids), best.cost, best.n_iter
        self.labels_ = nearest_medoids(distances, self.medoid_indices_)
        self.medoids_, self.plan_ = rankings[self.medoid_indices_], plan.part(self.medoid_indices_)
        self._medoid_squares = lengths[self.medoid_indices_]
        self._n_features_out = self.n_clusters
        return self

    def _squares(self, new: Plan) -> FloatArray:
        """Return the squared distance of new rankings from each medoid, less their own squared length."""
        squares: FloatArray = self._medoid_squares - 2 * new.gram()
        return squares


def nearest_medoids(distances: FloatArray, medoids: Indices) -> Indices:
    """Return which medoid is nearest to each row; a medoid has itself, even if another one equals it."""
    labels: Indices = np.argmin(distances[:, medoids], axis=1)
    labels[medoids] = np.arange(len(medoids))
    return labels


@dataclass(frozen=True, eq=False)
class Swapped:
    """What one start led to."""

    medoids: Indices
    cost: float
    n_iter: int


class Neighbours:
    """For each row its nearest medoid, and the distances from that and from the second nearest."""

    def __init__(self, distances: FloatArray, medoids: Indices) -> None:
        to_medoids = distances[:, medoids]
        rows = np.arange(len(distances))
        self.nearest: Indices = np.argmin(to_medoids, axis=1)
        self.first = to_medoids[rows, self.nearest]
        to_medoids[rows, self.nearest] = np.inf
        self.second = to_medoids.min(axis=1)


def swapped(distances: FloatArray, weights: FloatArray, medoids: Indices, max_iter: int) -> Swapped:
    """Return the medoids after every swap that lowers the cost (the eager search of FasterPAM)."""
    medoids = medoids.copy()
    around = Neighbours(distances, medoids)
    n_iter, improved = 0, True
    while improved and n_iter < max_iter:
        n_iter, improved = n_iter + 1, False
        for row in range(len(distances)):
            changes = cost_changes(distances[row], weights, around, len(medoids))
            out = int(np.argmin(changes))
            if changes[out] < -WORTHWHILE * (weights @ around.first):
                medoids[out] = row
                around = Neighbours(distances, medoids)
                improved = True
    return Swapped(medoids, float(weights @ around.first), n_iter)


def cost_changes(to_row: FloatArray, weights: FloatArray, around: Neighbours, n_clusters: int) -> FloatArray:
    """Return by how much the cost changes if a row takes the place of each medoid."""
    kept = np.minimum(to_row, around.first)  # the cost of each row if its nearest medoid stays, and if it goes
    lost = np.minimum(to_row, around.second)
    of_cluster = np.bincount(around.nearest, weights * (lost - kept), n_clusters).astype(np.float64)
    return of_cluster + float(weights @ (kept - around.first))

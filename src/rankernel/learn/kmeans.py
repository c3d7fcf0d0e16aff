"""Kernel k-means and k-medoids clustering of rankings."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from operator import itemgetter
from typing import Any, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from rankernel._loops.compiled import compiled_strictly
from rankernel._utils import FloatArray, Indices
from rankernel._utils.checks import Seed, as_seed, check_integer
from rankernel._utils.resources import check_task, run_interruptibly
from rankernel.data import Data
from rankernel.gram.plan import MethodLike, Plan
from rankernel.kernels.base import Kernel, as_kernel
from rankernel.learn.hierarchy import gram_distances
from rankernel.models.estimators import KernelTransformer
from rankernel.rankings import Unlisted

Run = tuple[float, int, Indices]  # inertia, number of passes, labels or medoids

MIN_GAIN = 1e-12  # smallest relative gain of a step, so that rounding errors cannot cause endless steps


@dataclass(eq=False, repr=False)
class KernelClusterer(ClusterMixin, KernelTransformer):  # type: ignore[misc]
    """Base class: clusters of rankings around centers in the feature space of a kernel."""

    n_clusters: int = 8
    _: KW_ONLY
    kernel: Kernel | str = "mallows"
    method: MethodLike = "auto"
    n_init: int = 10
    max_iter: int = 300
    random_state: Seed = 0
    unlisted: Unlisted | None = None
    plan_: Plan = field(init=False)
    _weights: FloatArray = field(init=False)  # of the rankings of the plan in each center: (n_rankings, n_clusters)
    _norms: FloatArray = field(init=False)  # squared norms of the centers

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster rankings; ``y`` is ignored."""
        rankings = self._fit_items(X)
        for name in ("n_clusters", "n_init", "max_iter"):
            check_integer(name, getattr(self, name))
        if self.n_clusters > len(rankings):
            raise ValueError(f"n_clusters={self.n_clusters} but X has {len(rankings)} rankings; use fewer clusters")
        self.plan_ = as_kernel(self.kernel).plan(rankings, method=self.method)
        self.kernel_ = self.plan_.kernel
        rng = np.random.default_rng(as_seed(self.random_state, "random_state"))
        self._fit_plan(rankings, rankings.counts.astype(np.float64), rng)
        self._n_features_out = self.n_clusters
        return self

    def predict(self, X: Any) -> Indices:
        """Return the cluster with the nearest center for each ranking."""
        nearest: Indices = np.argmin(self._relative_squares(self._plan_against(X)), axis=1)
        return nearest

    def transform(self, X: Any) -> FloatArray:
        """Return the distance of each ranking from the center of each cluster."""
        plan = self._plan_against(X)
        return np.sqrt(np.maximum(plan.diagonal()[:, None] + self._relative_squares(plan), 0))

    def _plan_against(self, X: Any) -> Plan:
        """Return the plan between new rankings and the rankings that define the centers."""
        check_is_fitted(self)
        return self.plan_.against(self._match_items(X))

    def _relative_squares(self, plan: Plan) -> FloatArray:
        """Return the squared distances of new rankings from the centers, less the squared norms of the rankings."""
        squares: FloatArray = self._norms - 2 * plan.gram() @ self._weights
        return squares

    @abstractmethod
    def _fit_plan(self, rankings: Data, weights: FloatArray, rng: np.random.Generator) -> None:
        """Set the fitted attributes."""


class KernelKMeans(KernelClusterer):
    r"""k-means clustering of rankings in the feature space of a kernel.

    Minimizes :math:`\sum_i c_i \| \phi(R_i) - \mu_{l(i)} \|^2` over the labels l, where :math:`\phi(R_i)` is the mean
    embedding of ranking i, :math:`c_i` its multiplicity and :math:`\mu_l` the weighted mean of cluster l. Single rows
    are moved between clusters as long as the sum decreases (Hartigan's method; its local minima are a subset of those
    of Lloyd's algorithm).

    Parameters
    ----------
    n_clusters : int
        The number of clusters, none of which is empty.
    kernel : Kernel or str
        The kernel.
    method : as in :meth:`Kernel.gram`
        How to compute Gram matrices.
    n_init : int
        The number of initializations (k-means++); the result with the smallest inertia is used.
    max_iter : int
        The maximal number of passes over all rows for each initialization.
    random_state : int, Generator or None
        Seed of the initializations.
    unlisted : {"last", "free"}, optional
        Meaning of NaN or None in a plain array or data frame: the item is last, or free. By default an error.

    Attributes
    ----------
    labels_ : array of shape (n_rankings,)
        The cluster of each ranking.
    inertia_ : float
        The minimized sum.
    n_iter_ : int
        The number of passes of the best initialization.
    plan_ : Plan
        How kernel values are computed, for training data and new rankings.
    kernel_ : Kernel
        The kernel with numeric parameters.
    rankings_ : Rankings or Preferences
        The training data.

    Examples
    --------
    >>> from rankernel import Kendall, Rankings
    >>> ballots = Rankings.from_orders([["a", "b"], ["b", "a"]], items=["a", "b", "c"], counts=[5, 2])
    >>> model = KernelKMeans(1, kernel=Kendall()).fit(ballots)

    The two ballots have squared distance 4/3; the inertia of the seven voters is 5 · 2 / 7 of it:

    >>> round(model.inertia_ * 7 / 10, 9) == round(4 / 3, 9)
    True
    """

    @np.errstate(under="ignore")
    def _fit_plan(self, rankings: Data, weights: FloatArray, rng: np.random.Generator) -> None:
        """Set the fitted attributes."""
        gram = self.plan_.gram()
        starts = (initial_labels(gram, weights, self.n_clusters, rng) for _ in range(self.n_init))
        runs = (moved_rows(gram, weights, labels, self.n_clusters, self.max_iter) for labels in starts)
        self.inertia_, self.n_iter_, self.labels_ = min(runs, key=itemgetter(0))
        self.rankings_ = rankings
        self._weights = mean_weights(self.labels_, weights, self.n_clusters)
        self._norms = np.einsum("ic,ic->c", self._weights, gram @ self._weights)


class KernelKMedoids(KernelClusterer):
    r"""k-medoids clustering of rankings by kernel distance.

    Minimizes :math:`\sum_i c_i \min_l D(R_i, R_{m_l})` over the rows :math:`m_1, ..., m_k`, where :math:`c_i` is the
    multiplicity of ranking i. Medoids are swapped for other rows as long as the sum decreases (FasterPAM, Schubert and
    Rousseeuw 2021).

    Parameters
    ----------
    n_clusters, kernel, method, n_init, max_iter, random_state, unlisted
        As for :class:`KernelKMeans`.

    Attributes
    ----------
    labels_ : array of shape (n_rankings,)
        The cluster of each ranking.
    medoid_indices_ : array of shape (n_clusters,)
        The rows of the medoids, ascending.
    medoids_ : Rankings or Preferences
        The medoids.
    inertia_ : float
        The minimized sum.
    n_iter_ : int
        The number of passes of the best initialization.
    plan_ : Plan
        How kernel values with the medoids are computed.
    kernel_ : Kernel
        The kernel with numeric parameters.

    Examples
    --------
    The medoid minimizes the sum of distances to all voters:

    >>> from rankernel import Kendall, Rankings
    >>> ballots = Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"], ["c", "b", "a"]], counts=[1, 1, 5])
    >>> KernelKMedoids(1, kernel=Kendall()).fit(ballots).medoids_
    Rankings: 1 ranking from 5 voters of 3 items (1 full)
      5 × c > b > a
    """

    def _fit_plan(self, rankings: Data, weights: FloatArray, rng: np.random.Generator) -> None:
        """Set the fitted attributes."""
        check_task("k-medoids", len(rankings))
        gram = self.plan_.gram()
        norms = np.diagonal(gram).copy()
        distances = gram_distances(gram, out=gram)
        starts = (initial_rows(distances.__getitem__, weights, self.n_clusters, rng) for _ in range(self.n_init))
        runs = (swapped_medoids(distances, weights, medoids, self.max_iter) for medoids in starts)
        self.inertia_, self.n_iter_, medoids = min(runs, key=itemgetter(0))
        self.medoid_indices_ = np.sort(medoids)
        self.labels_ = np.argmin(distances[:, self.medoid_indices_], axis=1)
        self.labels_[self.medoid_indices_] = np.arange(self.n_clusters)  # also if two medoids are equal
        self.medoids_, self.plan_ = rankings[self.medoid_indices_], self.plan_._part(self.medoid_indices_)
        self._weights, self._norms = np.eye(self.n_clusters), norms[self.medoid_indices_]


def initial_rows(
    costs: Callable[[int], FloatArray], weights: FloatArray, n_clusters: int, rng: np.random.Generator
) -> Indices:
    """Return different rows drawn by k-means++ (Arthur and Vassilvitskii 2007).

    The first row is drawn with probability proportional to its weight, each further one proportional to its weight
    times the smallest of ``costs(row)`` over the rows drawn before.
    """
    chosen = [int(rng.choice(len(weights), p=weights / weights.sum()))]
    smallest = costs(chosen[0])
    while len(chosen) < n_clusters:
        probabilities = np.maximum(weights * smallest, 0)
        probabilities[chosen] = 0
        if not probabilities.any():  # all other rows are equal to chosen ones
            probabilities = weights.copy()
            probabilities[chosen] = 0
        chosen.append(int(rng.choice(len(weights), p=probabilities / probabilities.sum())))
        smallest = np.minimum(smallest, costs(chosen[-1]))
    return np.array(chosen, dtype=np.intp)


# ---------------------------------------------------------------------- k-means


def initial_labels(gram: FloatArray, weights: FloatArray, n_clusters: int, rng: np.random.Generator) -> Indices:
    """Return the labels of the nearest k-means++ rows, each of which is in its own cluster."""
    norms = np.diagonal(gram)
    rows = initial_rows(lambda row: norms + norms[row] - 2 * gram[:, row], weights, n_clusters, rng)
    labels: Indices = np.argmin(norms[rows] - 2 * gram[:, rows], axis=1)
    labels[rows] = np.arange(n_clusters)
    return labels


@np.errstate(under="ignore")
def moved_rows(gram: FloatArray, weights: FloatArray, labels: Indices, n_clusters: int, max_iter: int) -> Run:
    """Return the labels after moving single rows as long as the sum of squares decreases."""
    labels, n_iter, n_moved = labels.copy(), 0, 1
    min_gain = MIN_GAIN * float(weights @ np.abs(np.diagonal(gram)))
    while n_moved and n_iter < max_iter:
        n_iter += 1
        shares = mean_weights(labels, weights, n_clusters)
        # Recomputed in each pass, so that rounding errors do not accumulate.
        cluster_weights, sizes = np.bincount(labels, weights), np.bincount(labels)
        sums = gram @ shares * cluster_weights
        squares = np.einsum("ic,ic->c", shares, sums) * cluster_weights
        state = (gram, weights, labels, sizes, sums, squares, cluster_weights)
        n_moved = run_interruptibly(move_rows, *state, min_gain)
    shares = mean_weights(labels, weights, n_clusters)
    to_means = gram @ shares
    distances = np.diagonal(gram)[:, None] - 2 * to_means + np.einsum("ic,ic->c", shares, to_means)
    return float(weights @ distances[np.arange(len(labels)), labels]), n_iter, labels


def mean_weights(labels: Indices, weights: FloatArray, n_clusters: int) -> FloatArray:
    """Return the weight of each row in the mean of each cluster."""
    shares = np.zeros((len(labels), n_clusters))
    shares[np.arange(len(labels)), labels] = weights
    shares /= shares.sum(axis=0)
    return shares


# sums[i, c] is the weighted sum of kernel values between row i and cluster c, squares[c] that over all pairs of members
# of c. The squared distance between i and the mean of c is K[i, i] - 2 sums[i, c] / W[c] + squares[c] / W[c]^2.


@compiled_strictly
def move_rows(
    gram: FloatArray,
    weights: FloatArray,
    labels: Indices,
    sizes: Indices,
    sums: FloatArray,
    squares: FloatArray,
    cluster_weights: FloatArray,
    min_gain: float,
) -> int:
    """Move rows to better clusters in one pass, and return the number of moves; no cluster becomes empty."""
    n_moved = 0
    for i in range(len(gram)):
        origin, weight = labels[i], weights[i]
        if sizes[origin] == 1:
            continue
        distances = gram[i, i] - 2 * sums[i] / cluster_weights + squares / (cluster_weights * cluster_weights)
        # A move shifts both means, which changes the two sums of squares by these factors.
        costs = weight * cluster_weights / (cluster_weights + weight) * distances
        costs[origin] = weight * cluster_weights[origin] / (cluster_weights[origin] - weight) * distances[origin]
        costs[origin] -= min_gain
        target = np.argmin(costs)
        if costs[target] < costs[origin]:
            squares[origin] += weight * weight * gram[i, i] - 2 * weight * sums[i, origin]
            squares[target] += weight * weight * gram[i, i] + 2 * weight * sums[i, target]
            cluster_weights[origin] -= weight
            cluster_weights[target] += weight
            sums[:, origin] -= weight * gram[i]
            sums[:, target] += weight * gram[i]
            sizes[origin] -= 1
            sizes[target] += 1
            labels[i] = target
            n_moved += 1
    return n_moved


# ---------------------------------------------------------------------- k-medoids


def nearest_medoids(distances: FloatArray, medoids: Indices) -> tuple[Indices, FloatArray, FloatArray]:
    """Return the nearest medoid of each row, and the distances to the nearest and the second nearest medoid."""
    to_medoids, rows = distances[:, medoids], np.arange(len(distances))
    nearest: Indices = np.argmin(to_medoids, axis=1)
    first = to_medoids[rows, nearest]
    to_medoids[rows, nearest] = np.inf
    return nearest, first, to_medoids.min(axis=1)


def swapped_medoids(distances: FloatArray, weights: FloatArray, medoids: Indices, max_iter: int) -> Run:
    """Return the medoids after all swaps that decrease the cost, each made as soon as it is found."""
    medoids, (nearest, first, second) = medoids.copy(), nearest_medoids(distances, medoids)
    n_iter, improved = 0, True
    while improved and n_iter < max_iter:
        n_iter, improved = n_iter + 1, False
        for row in range(len(distances)):
            # The cost of each row if its nearest medoid remains, and if it is replaced by this row.
            remains = np.minimum(distances[row], first)
            replaced = np.minimum(distances[row], second)
            changes = np.bincount(nearest, weights * (replaced - remains), len(medoids)).astype(np.float64)
            changes += float(weights @ (remains - first))
            removed = int(np.argmin(changes))
            if changes[removed] < -MIN_GAIN * (weights @ first):
                medoids[removed] = row
                nearest, first, second = nearest_medoids(distances, medoids)
                improved = True
    return float(weights @ first), n_iter, medoids

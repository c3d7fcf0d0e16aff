"""k-means in the space of a kernel: clusters of rankings around mean embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, Indices
from rankernel._utils.interrupts import run_interruptibly
from rankernel._utils.rng import as_seed
from rankernel.gram.plan import Plan
from rankernel.kernels import as_kernel
from rankernel.learn._partition import KernelPartition
from rankernel.learn._seeding import check_partition, spread_seeds

WORTHWHILE = 1e-12  # the least gain of a move, relative to the sum of all squared lengths


class KernelKMeans(KernelPartition):
    r"""k-means clustering of rankings in the space of a kernel.

    Minimises :math:`\sum_i c_i \| \phi(R_i) - \mu_{l(i)} \|^2`, where :math:`\phi` is the mean embedding of a ranking,
    :math:`c_i` how many voters gave it and :math:`\mu_l` the weighted mean of cluster l. Single rows move from cluster
    to cluster while that lowers the sum (Hartigan's method, which ends no higher than the usual alternation).

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    n_clusters : int
        How many clusters; none of them is empty.
    method : "auto" or a method object
        How to compute Gram matrices.
    n_init : int
        How many starts, each from rows drawn far from each other (k-means++); the best result is kept.
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
    inertia_ : float
        The minimised sum.
    n_iter_ : int
        Passes of the best start.
    plan_ : Plan
        How kernel values are computed, here and for new rankings.
    kernel_ : Kernel
        The kernel, its width a number.
    rankings_ : Rankings or Preferences
        The rankings that were clustered.

    Examples
    --------
    >>> from rankernel import Kendall, Rankings
    >>> ballots = Rankings.from_orders([["a", "b"], ["b", "a"]], items=["a", "b", "c"], counts=[5, 2])
    >>> model = KernelKMeans(Kendall(), n_clusters=1).fit(ballots)

    The squared distance of the two is 4/3, and 5 · 2 / 7 of that is the spread of seven voters around their mean:

    >>> round(model.inertia_ * 7 / 10, 9) == round(4 / 3, 9)
    True
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster rankings; ``y`` is ignored."""
        rankings = self._learn_items(X)
        check_partition(self.n_clusters, self.n_init, self.max_iter, len(rankings))
        self.rankings_, self.plan_ = rankings, as_kernel(self.kernel).plan(rankings, method=self.method)
        self.kernel_, gram = self.plan_.kernel, self.plan_.gram()
        weights = rankings.counts.astype(np.float64)
        rng = np.random.default_rng(as_seed(self.random_state, "random_state"))
        starts = (start(gram, weights, self.n_clusters, rng) for _ in range(self.n_init))
        runs = (moved_points(gram, weights, labels, self.n_clusters, self.max_iter) for labels in starts)
        best = min(runs, key=lambda run: run.inertia)
        self.labels_, self.inertia_, self.n_iter_ = best.labels, best.inertia, best.n_iter
        self._shares = membership(self.labels_, weights, self.n_clusters)
        self._mean_squares = np.einsum("ic,ic->c", self._shares, gram @ self._shares)
        self._n_features_out = self.n_clusters
        return self

    def _squares(self, new: Plan) -> FloatArray:
        """Return the squared distance of new rankings from each mean, less their own squared length."""
        squares: FloatArray = self._mean_squares - 2 * new.gram() @ self._shares
        return squares


@dataclass(frozen=True, eq=False)
class Partition:
    """What one start led to."""

    labels: Indices
    inertia: float
    n_iter: int


def start(gram: FloatArray, weights: FloatArray, n_clusters: int, rng: np.random.Generator) -> Indices:
    """Return clusters around rows drawn far from each other."""
    lengths = np.diagonal(gram)

    def squares_to(row: int) -> FloatArray:
        return np.asarray(lengths + lengths[row] - 2 * gram[:, row])

    seeds = spread_seeds(squares_to, weights, n_clusters, rng)
    return assigned(np.stack([squares_to(row) for row in seeds], axis=1), weights)


def moved_points(gram: FloatArray, weights: FloatArray, labels: Indices, n_clusters: int, max_iter: int) -> Partition:
    """Return where labels come to rest when rows move one by one, each as soon as that lowers the sum of squares."""
    labels, n_iter, moved = labels.copy(), 0, 1
    while moved and n_iter < max_iter:
        n_iter += 1
        shares = membership(labels, weights, n_clusters)
        # Anew in each pass, so that rounding does not add up over many moves.
        cluster_weights, sizes = np.bincount(labels, weights), np.bincount(labels)
        sums = gram @ shares * cluster_weights
        squares = np.einsum("ic,ic->c", shares, sums) * cluster_weights
        least_gain = WORTHWHILE * float(weights @ np.abs(np.diagonal(gram)))
        state = (gram, weights, labels, sizes, sums, squares, cluster_weights)
        moved = run_interruptibly(_loops.cluster_moves.move_points, *state, least_gain)
    distances = squares_to_means(gram, membership(labels, weights, n_clusters))
    return Partition(labels, float(weights @ distances[np.arange(len(labels)), labels]), n_iter)


def membership(labels: Indices, weights: FloatArray, n_clusters: int) -> FloatArray:
    """Return which share each row has in the mean of each cluster."""
    shares = np.zeros((len(labels), n_clusters))
    shares[np.arange(len(labels)), labels] = weights
    shares /= shares.sum(axis=0)
    return shares


def squares_to_means(gram: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the squared distance of each row from each mean."""
    to_means = gram @ shares
    squares: FloatArray = np.diagonal(gram)[:, None] - 2 * to_means + np.einsum("ic,ic->c", shares, to_means)
    return squares


def assigned(squares: FloatArray, weights: FloatArray) -> Indices:
    """Return the nearest cluster of each row; a cluster left empty takes the row that suffers most from its own."""
    labels: Indices = np.argmin(squares, axis=1)
    rows = np.arange(len(labels))
    sizes = np.bincount(labels, minlength=squares.shape[1])
    for empty in np.flatnonzero(sizes == 0):
        losses = np.where(sizes[labels] > 1, weights * squares[rows, labels], -np.inf)
        row = int(np.argmax(losses))
        sizes[labels[row]] -= 1
        sizes[empty] = 1
        labels[row] = empty
    return labels

"""Hierarchical clustering of rankings by kernel distance."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rankernel._loops.compiled import compiled_strictly
from rankernel._utils import FloatArray, Indices, IntArray, Mask
from rankernel._utils.checks import check_choice, check_flag, check_integer, check_numbers
from rankernel._utils.resources import check_task, run_interruptibly, slices
from rankernel.data import as_data
from rankernel.errors import IndefiniteKernelWarning, RankingError, warn
from rankernel.gram.plan import MethodLike
from rankernel.kernels.base import Kernel, as_kernel

Linkage = Literal["average", "complete", "single", "ward"]

ROWS = 64  # rows processed at once, so that temporary arrays stay small
ROUNDING = 1e-12  # relative to the largest diagonal entry


# ---------------------------------------------------------------------- distances


def kernel_distances(X: Any, kernel: Kernel | str, *, squared: bool = False, method: MethodLike = "auto") -> FloatArray:
    r"""Return the distances between the mean embeddings of all pairs of rankings.

    :math:`D(R, R')^2 = K(R, R) + K(R', R') - 2 K(R, R')`, a metric on the mean embeddings. Two rankings with the same
    completions have distance 0.

    Parameters
    ----------
    X : Rankings, Preferences or array of ranks
        Rankings of any kind. Multiplicities do not matter.
    kernel : Kernel or str
        The kernel.
    squared : bool
        Whether to return :math:`D^2`.
    method : as in :meth:`Kernel.gram`
        How to compute the Gram matrix.

    Returns
    -------
    array of shape (n_rankings, n_rankings)

    Notes
    -----
    If the Gram matrix is estimated, its diagonal is biased upwards, and so are the distances. Equal rankings share
    their draws and have distance 0.

    Squared distances are negative beyond rounding error only if the Gram matrix is not positive semi-definite: for an
    indefinite kernel, for a mixture of exact and estimated entries, and for an unbiased estimate of the diagonal. These
    distances are set to 0 with an :class:`IndefiniteKernelWarning`.

    Examples
    --------
    Two opposite rankings of two items have Kendall kernel -1:

    >>> from rankernel import Kendall, Rankings
    >>> kernel_distances(Rankings.from_orders([["a", "b"], ["b", "a"]]), Kendall())
    array([[0., 2.],
           [2., 0.]])
    """
    check_flag("squared", squared)
    gram = as_kernel(kernel).gram(X, method=method)
    return gram_distances(gram, squared=squared, out=gram)


def gram_distances(gram: NDArray[Any], *, squared: bool = False, out: FloatArray | None = None) -> FloatArray:
    """Return the distances implied by a Gram matrix, computed in place if ``out`` is the Gram matrix itself."""
    norms = np.diagonal(gram).astype(np.float64)  # squared
    squares = np.empty(gram.shape) if out is None else out
    for rows in slices(len(gram), ROWS):
        # The two squared norms are added first: the result is symmetric to the bit and 0 between equal rankings.
        squares[rows] = np.add.outer(norms[rows], norms) - 2 * gram[rows]
    n_negative = np.count_nonzero(squares < -ROUNDING * float(np.abs(norms).max(initial=0.0))) // 2
    if n_negative:
        problem = (
            f"{n_negative:,} of {len(gram) * (len(gram) - 1) // 2:,} pairs of rankings have a negative squared "
            f"distance, the smallest {squares.min():.3g}: the Gram matrix is not positive semi-definite"
        )
        warn(f"{problem}; these distances were set to 0", IndefiniteKernelWarning)
    np.maximum(squares, 0, out=squares)
    return squares if squared else np.sqrt(squares, out=squares)


# ---------------------------------------------------------------------- dendrograms


def linkage(
    X: Any,
    kernel: Kernel | str,
    *,
    linkage: Linkage = "average",
    method: MethodLike = "auto",
    squared: bool = False,
) -> FloatArray:
    r"""Return the dendrogram of rankings as a SciPy linkage matrix, by agglomerative clustering of kernel distances.

    Average linkage merges the two clusters with the smallest mean distance between their members,
    :math:`\frac{1}{|A||B|} \sum_{R \in A, R' \in B} D(R, R')`. A ranking with multiplicity c has the weight of c equal
    rankings.

    Parameters
    ----------
    X : Rankings, Preferences or array of ranks
        At least two rankings of any kind: the leaves.
    kernel : Kernel or str
        The kernel.
    linkage : {"average", "complete", "single", "ward"}
        The linkage rule, named as in scikit-learn. SciPy calls this argument ``method``.
    method : as in :meth:`Kernel.gram`
        How to compute the Gram matrix; not the linkage rule.
    squared : bool
        Whether to cluster squared distances; refused for "ward", which squares the distances itself.

    Returns
    -------
    array of shape (n_rankings - 1, 4)
        One row for each merge: the two clusters, the height, and the number of leaves (rows of ``X``, not voters), for
        all functions of ``scipy.cluster.hierarchy``.

    Notes
    -----
    Ties between distances, common for full rankings of few items, are broken by the order of the rows.

    Examples
    --------
    Two voters say a > b > c, at Kendall kernel distance 2 from c > b > a, and 1.15... from a > c > b:

    >>> from rankernel import Kendall, Rankings
    >>> ballots = Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"], ["c", "b", "a"]], counts=[2, 1, 1])
    >>> Z = linkage(ballots, Kendall(), squared=True)
    >>> Z.round(3)
    array([[0.   , 1.   , 1.333, 2.   ],
           [2.   , 3.   , 3.556, 3.   ]])

    The last height counts the first ballot twice: (2 · 4 + 8/3) / 3.
    """
    data = as_data(X)
    check_choice("linkage", linkage, get_args(Linkage))
    if check_flag("squared", squared) and linkage == "ward":
        raise ValueError("linkage='ward' squares the distances itself; use squared=False")
    if len(data) < 2:
        raise RankingError(f"X: a dendrogram needs at least 2 rankings; got {len(data)}")
    check_task("a dendrogram", len(data))
    distances = kernel_distances(data, kernel, squared=squared, method=method)
    return weighted_linkage(distances, data.counts, linkage)


def weighted_linkage(distances: FloatArray, counts: IntArray, linkage: Linkage = "average") -> FloatArray:
    """Return the linkage matrix of points with multiplicities from their distance matrix, which is overwritten."""
    if linkage in ("complete", "single") or (counts == 1).all():  # which do not depend on multiplicities
        from scipy.cluster.hierarchy import linkage as scipy_linkage
        from scipy.spatial.distance import squareform

        Z: FloatArray = run_interruptibly(scipy_linkage, squareform(distances, checks=False), linkage)
        return Z
    weights = counts.astype(np.float64)
    if linkage == "ward":
        for rows in slices(len(distances), ROWS):
            # The Ward distance between c equal points and c' others.
            product, total = (outer(weights[rows], weights) for outer in (np.multiply.outer, np.add.outer))
            distances[rows] *= np.sqrt(2 * product / total)
    n = len(distances)
    active, chain, merges = np.ones(n, dtype=bool), np.empty(n + 1, dtype=np.intp), np.empty((n - 1, 3))
    run_interruptibly(find_merges, linkage == "ward", distances, weights, active, chain, merges)
    return linkage_matrix(merges[np.argsort(merges[:, 2], kind="stable")])


def flat_clusters(Z: NDArray[Any], n_clusters: int) -> Indices:
    """Return the clusters that remain when the last ``n_clusters - 1`` merges of a dendrogram are undone.

    The result has exactly ``n_clusters`` clusters, whereas ``scipy.cluster.hierarchy.fcluster`` may return fewer if
    several merges have the same height.

    Parameters
    ----------
    Z : array of shape (n_rankings - 1, 4)
        A linkage matrix.
    n_clusters : int
        The number of clusters.

    Returns
    -------
    array of shape (n_rankings,)
        The cluster of each leaf, numbered from 0 in the order of the first leaves.

    Examples
    --------
    >>> Z = np.array([[1, 2, 0.5, 2], [0, 3, 1.0, 3]])
    >>> flat_clusters(Z, 2)
    array([0, 1, 1])
    """
    from scipy.cluster.hierarchy import is_valid_linkage

    Z = check_numbers("Z", Z, (None, 4))
    if not len(Z) or not is_valid_linkage(Z):
        raise ValueError("Z is not a linkage matrix: every cluster must be merged once, after it was formed")
    n = len(Z) + 1
    check_integer("n_clusters", n_clusters, 1, n)
    cluster, children = np.arange(2 * n - 1), np.asarray(Z[:, :2], dtype=np.intp)
    for step in range(n - n_clusters - 1, -1, -1):  # from the highest remaining merge down to the leaves
        cluster[children[step]] = cluster[n + step]
    _, first, inverse = np.unique(cluster[:n], return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def node_summaries(tree: FloatArray, weights: NDArray[Any]) -> tuple[list[int], list[int], list[float]]:
    """Return the leaf with the largest weight, the number of leaves and the sum of weights below each node."""
    largest, sizes, sums = list(range(len(weights))), [1] * len(weights), weights.tolist()
    for left, right in tree[:, :2].astype(np.intp).tolist():
        largest.append(max(largest[left], largest[right], key=lambda leaf: (weights[leaf], -leaf)))
        sizes.append(sizes[left] + sizes[right])
        sums.append(sums[left] + sums[right])
    return largest, sizes, sums


def node_clusters(tree: FloatArray, groups: NDArray[Any]) -> list[int]:
    """Return the cluster of all leaves below each node, -1 if they are of several."""
    clusters: list[int] = groups.tolist()
    for left, right in tree[:, :2].astype(np.intp).tolist():
        clusters.append(clusters[left] if clusters[left] == clusters[right] else -1)
    return clusters


# ---------------------------------------------------------------------- nearest-neighbour chains


@compiled_strictly
def find_merges(
    ward: bool, distances: FloatArray, weights: FloatArray, active: Mask, chain: Indices, merges: FloatArray
) -> None:
    """Fill ``merges`` with rows (x, y, height) in the order of the chain; all other arrays are overwritten.

    A chain goes from each cluster to its nearest one until two clusters are nearest to each other; these are merged.
    For average and Ward linkage a merge never brings a cluster nearer to others, so the rest of the chain remains valid
    and the algorithm takes O(n^2) steps (Murtagh 1983).
    """
    n = len(distances)
    length, first = 0, 0
    for step in range(n - 1):
        if length == 0:
            while not active[first]:
                first += 1
            chain[0] = first
            length = 1
        while True:
            x = chain[length - 1]
            previous = chain[length - 2] if length > 1 else -1
            y, shortest = previous, distances[x, previous] if previous >= 0 else np.inf  # which wins ties: no cycles
            for i in range(n):
                if active[i] and i != x and distances[x, i] < shortest:
                    y, shortest = i, distances[x, i]
            if y == previous:
                break
            chain[length] = y
            length += 1
        length -= 2
        x, y = min(x, y), max(x, y)
        merges[step, 0], merges[step, 1], merges[step, 2] = x, y, shortest
        active[x] = False
        for i in range(n):  # the distance to the union of x and y, which replaces y (Lance and Williams)
            if active[i] and i != y:
                to_x, to_y = distances[i, x], distances[i, y]
                if ward:
                    share = 1.0 / (weights[x] + weights[y] + weights[i])  # in the order of SciPy's operations
                    square = (weights[i] + weights[x]) * share * to_x * to_x
                    square += (weights[i] + weights[y]) * share * to_y * to_y
                    distance = np.sqrt(max(square - weights[i] * share * shortest * shortest, 0.0))
                else:
                    distance = (weights[x] * to_x + weights[y] * to_y) / (weights[x] + weights[y])
                distances[i, y] = distance
                distances[y, i] = distance
        weights[y] += weights[x]


def linkage_matrix(merges: FloatArray) -> FloatArray:
    """Return the linkage matrix of rows (x, y, height) sorted by height, where x and y are leaves of the clusters."""
    n = len(merges) + 1
    parent, size, Z = list(range(2 * n - 1)), [1] * (2 * n - 1), np.empty((n - 1, 4))
    for step, (x, y, height) in enumerate(merges.tolist()):
        roots = [int(x), int(y)]
        for side, node in enumerate(roots):
            while parent[node] != node:
                parent[node] = parent[parent[node]]
                node = parent[node]
            roots[side] = node
            parent[node] = n + step
        size[n + step] = size[roots[0]] + size[roots[1]]
        Z[step] = min(roots), max(roots), height, size[n + step]
    return Z

"""Rankings to a tree of clusters, and the tree cut into clusters."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, Indices, IntArray
from rankernel._utils.checks import check_choice, check_flag, check_integer, check_numbers
from rankernel._utils.interrupts import run_interruptibly
from rankernel._utils.memory import check_task
from rankernel.data import as_data
from rankernel.errors import RankingError
from rankernel.gram.blocks import slices
from rankernel.gram.methods import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.learn.kernel_distance import STRIP, kernel_distances

Linkage = Literal["average", "complete", "single", "weighted", "ward", "centroid", "median"]

EUCLIDEAN = ("ward", "centroid", "median")
QUICK = 500  # points that are joined in no time to speak of
COUNTING = ("average", "ward", "centroid")  # where a point given twice pulls twice


def linkage(
    X: Any,
    kernel: Kernel,
    linkage: Linkage = "average",
    method: MethodLike = "auto",
    squared: bool = False,
) -> FloatArray:
    r"""Return the dendrogram of rankings as a SciPy linkage matrix, by agglomerative clustering of kernel distances.

    Average linkage joins the two clusters with the smallest mean distance between their members,
    :math:`\frac{1}{|A||B|} \sum_{R \in A, R' \in B} D(R, R')`. A ranking that c voters gave weighs as c equal
    rankings, which join at height 0 before anything else.

    Parameters
    ----------
    X : Rankings or array of ranks
        Rankings of any kind, at least two rows: the leaves.
    kernel : Kernel
        The kernel.
    linkage : {"average", "complete", "single", "weighted", "ward", "centroid", "median"}
        Which clusters are joined, as in SciPy.
    method : as in :meth:`Kernel.gram`
        How to compute the Gram matrix.
    squared : bool
        Whether clusters are compared by squared distances; not for "ward", "centroid" and "median", which square
        distances by themselves.

    Returns
    -------
    array of shape (n_rankings - 1, 4)
        One row a merger: the two clusters, the height, and how many leaves (rows of ``X``, not voters) are below it,
        as all of ``scipy.cluster.hierarchy`` expects.

    Notes
    -----
    Where several distances are equal, which is common for full rankings of few items, the order of the rows decides
    what is joined first.

    Examples
    --------
    Two voters say a > b > c, at Kendall kernel distance 2 from c > b > a, and 1.15... from a > c > b:

    >>> from rankernel import Kendall, Rankings
    >>> ballots = Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"], ["c", "b", "a"]], counts=[2, 1, 1])
    >>> Z = linkage(ballots, Kendall(), squared=True)
    >>> Z.round(3)
    array([[0.   , 1.   , 1.333, 2.   ],
           [2.   , 3.   , 3.556, 3.   ]])

    The height of the last merger counts the first ballot twice: (2 · 4 + 8/3) / 3.
    """
    data = as_data(X)
    check(linkage, squared, len(data))
    check_task("a dendrogram", len(data))
    return weighted_linkage(kernel_distances(data, kernel, squared, method), data.counts, linkage)


def weighted_linkage(distances: FloatArray, counts: IntArray, linkage: Linkage = "average") -> FloatArray:
    """Return the linkage matrix of points given several times each, from the square matrix of their distances.

    The matrix is used up: nothing of its size is made beside it.
    """
    if linkage in COUNTING and (counts != 1).any():
        return counted_linkage(distances, counts.astype(np.float64), linkage)
    from scipy.cluster.hierarchy import linkage as scipy_linkage
    from scipy.spatial.distance import squareform

    Z: FloatArray = run_interruptibly(scipy_linkage, squareform(distances, checks=False), linkage)
    return Z


def counted_linkage(distances: FloatArray, weights: FloatArray, linkage: Linkage) -> FloatArray:
    """Return the linkage matrix where weights count."""
    if linkage == "centroid":
        raise ValueError(
            "centroid linkage of rankings with multiplicities is not available; use 'average' or 'ward', or repeat "
            "each row as often as it counts"
        )
    left = distances
    if linkage == "ward":
        for rows in slices(len(left), STRIP):
            # c equal points and c' others are as far apart as Ward linkage of the single points has them.
            product, total = (outer(weights[rows], weights) for outer in (np.multiply.outer, np.add.outer))
            left[rows] *= np.sqrt(2 * product / total)
    merged, Z = np.empty((len(left) - 1, 3)), np.empty((len(left) - 1, 4))
    loops = _loops.agglomeration
    given = loops.WARD if linkage == "ward" else loops.AVERAGE, left, weights.copy(), merged
    loops.mergers(*given) if len(left) <= QUICK else run_interruptibly(loops.mergers, *given)
    loops.name_clusters(merged[np.argsort(merged[:, 2], kind="stable")], Z)
    return Z


def check(linkage: str, squared: bool, n_rankings: int) -> None:
    """Refuse what cannot be clustered."""
    check_choice("linkage", linkage, get_args(Linkage))
    if check_flag("squared", squared) and linkage in EUCLIDEAN:
        raise ValueError(f"{linkage} linkage squares the distances by itself; use squared=False")
    if n_rankings < 2:
        raise RankingError(f"X: a dendrogram needs at least 2 rankings; got {n_rankings}")


def n_leaves(Z: NDArray[Any]) -> int:
    """Return how many leaves a linkage matrix has, refusing what is none."""
    Z = check_numbers("Z", Z, (None, 4))
    if not len(Z):
        raise ValueError(f"Z has shape {Z.shape}; a linkage matrix has one row a merger and 4 columns")
    older = Z[:, :2] < np.arange(len(Z) + 1, 2 * len(Z) + 1)[:, None]
    if not older.all() or len(np.unique(Z[:, :2])) != 2 * len(Z):
        raise ValueError("Z is no linkage matrix: each cluster is merged once, and only after it was made")
    return len(Z) + 1


def flat_clusters(Z: NDArray[Any], n_clusters: int) -> Indices:
    """Return the clusters that are left when the last mergers of a dendrogram are undone.

    There are always exactly ``n_clusters`` of them, whereas a cut at a height may find none where mergers are equally
    high.

    Parameters
    ----------
    Z : array of shape (n_rankings - 1, 4)
        A linkage matrix.
    n_clusters : int
        How many clusters.

    Returns
    -------
    array of shape (n_rankings,)
        The cluster of each leaf: numbers from 0, in the order of their first leaves.

    Examples
    --------
    >>> Z = np.array([[1, 2, 0.5, 2], [0, 3, 1.0, 3]])
    >>> flat_clusters(Z, 2)
    array([0, 1, 1])
    """
    n, Z = n_leaves(Z), np.asarray(Z)
    check_integer("n_clusters", n_clusters, 1, n)
    top, joined = np.arange(2 * n - 1), np.asarray(Z[:, :2], dtype=np.intp)
    for step in range(n - n_clusters - 1, -1, -1):  # from the highest merger that stays down to the leaves
        top[joined[step]] = top[n + step]
    _, first, inverse = np.unique(top[:n], return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]

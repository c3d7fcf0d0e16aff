"""How well a dendrogram keeps known classes together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import FloatArray, Indices
from rankernel._utils.checks import check_labels
from rankernel.encoding import check_counts
from rankernel.learn.dendrogram import n_leaves


def dendrogram_purity(Z: NDArray[Any], labels: Any, counts: Any = None) -> float:
    r"""Return the expected purity of the smallest subtree that holds two leaves of one class.

    Two different leaves with the same label c are picked uniformly at random among all such pairs; the purity is the
    expected value of

    .. math:: \frac{\#\text{leaves with label } c \text{ in the smallest subtree of both}}
                   {\#\text{leaves in the subtree}}.

    It is 1 exactly if every class has a subtree of its own. The value is exact, not sampled, in one pass over the tree.

    Parameters
    ----------
    Z : array of shape (n_rankings - 1, 4)
        A linkage matrix.
    labels : array of shape (n_rankings,)
        The class of each leaf.
    counts : array of shape (n_rankings,), optional
        How many voters a leaf stands for (``ballots.counts``); they all have its label. The result is that of a tree
        in which each leaf is a pure subtree of so many leaves.

    Returns
    -------
    float
        A class with a single leaf has no pair: it counts as any other leaf in the subtrees of other classes, and has no
        part in the expectation.

    Examples
    --------
    The pair of "a" is joined at once, the pair of "b" only at the root, where half of the leaves are "b":

    >>> Z = np.array([[0, 1, 1.0, 2], [2, 4, 2.0, 3], [3, 5, 3.0, 4]])
    >>> dendrogram_purity(Z, ["a", "a", "b", "b"])
    0.75
    """
    _, pure, pairs = counted_pairs(Z, labels, counts)
    if not pairs.any():
        raise ValueError("no two leaves have the same label, so there is no pair to pick; check the labels")
    return float(pure.sum() / pairs.sum())


def class_purities(Z: NDArray[Any], labels: Any, counts: Any = None) -> dict[Any, float]:
    """Return the same expectation for each class, given that the pair is of this class.

    Parameters
    ----------
    Z, labels, counts
        As in :func:`dendrogram_purity`.

    Returns
    -------
    dict from label to float
        NaN for a class with a single leaf, which has no pair.

    Examples
    --------
    >>> Z = np.array([[0, 1, 1.0, 2], [2, 4, 2.0, 3], [3, 5, 3.0, 4]])
    >>> class_purities(Z, ["a", "a", "b", "b"])
    {'a': 1.0, 'b': 0.5}
    """
    names, pure, pairs = counted_pairs(Z, labels, counts)
    shares = np.divide(pure, pairs, out=np.full(len(names), np.nan), where=pairs > 0)
    return dict(zip(names.tolist(), shares.tolist(), strict=True))


def counted_pairs(Z: NDArray[Any], labels: Any, counts: Any) -> tuple[NDArray[Any], FloatArray, FloatArray]:
    """Return the classes, and for each the number of pairs, weighted by how pure their subtree is, and plainly."""
    n = n_leaves(Z)
    names, classes = np.unique(check_labels("labels", labels, n), return_inverse=True)
    return names, *pure_pairs(np.asarray(Z), classes, check_counts(counts, n).astype(np.float64))


def pure_pairs(Z: NDArray[Any], classes: Indices, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return for each class the number of pairs, each counted as much as its subtree is pure, and without that."""
    n = len(classes)
    members = np.zeros((2 * n - 1, int(classes.max()) + 1))  # of each class below each node
    members[np.arange(n), classes] = weights
    left, right = Z[:, :2].astype(np.intp).T
    for step in range(n - 1):
        members[n + step] = members[left[step]] + members[right[step]]
    split = members[left] * members[right]  # pairs whose smallest subtree this node is
    purity = members[n:] / members[n:].sum(axis=1, keepdims=True)
    within = np.bincount(classes, weights * (weights - 1) / 2)  # pairs inside one leaf
    return within + (split * purity).sum(axis=0), within + split.sum(axis=0)

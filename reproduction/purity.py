"""Dendrogram purity (Heller and Ghahramani 2005)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankernel._utils import FloatArray


def dendrogram_purity(Z: FloatArray, classes: Any) -> float:
    r"""Return the expected purity of the smallest subtree of two leaves of one class.

    For two different leaves of the same class c, drawn uniformly among all such pairs, it is the expectation of the
    share of class c among the leaves of the smallest subtree that contains both. It is 1 if and only if every class is
    a subtree.

    Examples
    --------
    The pair of "a" is merged first, the pair of "b" only at the root, where half of the leaves are "b":

    >>> Z = np.array([[0, 1, 1.0, 2], [2, 4, 2.0, 3], [3, 5, 3.0, 4]])
    >>> dendrogram_purity(Z, ["a", "a", "b", "b"])
    0.75
    """
    _, sums, n_pairs = pair_purities(Z, classes)
    return float(sums.sum() / n_pairs.sum()) if n_pairs.any() else float("nan")


def class_purities(Z: FloatArray, classes: Any) -> dict[Any, float]:
    """Return the expectation over the pairs of leaves of each class, nan for a class with a single leaf.

    Examples
    --------
    >>> Z = np.array([[0, 1, 1.0, 2], [2, 4, 2.0, 3], [3, 5, 3.0, 4]])
    >>> class_purities(Z, ["a", "a", "b", "b"])
    {'a': 1.0, 'b': 0.5}
    """
    names, sums, n_pairs = pair_purities(Z, classes)
    means = np.divide(sums, n_pairs, out=np.full(len(names), np.nan), where=n_pairs > 0)
    return dict(zip(names.tolist(), means.tolist(), strict=True))


def pair_purities(Z: FloatArray, classes: Any) -> tuple[Any, FloatArray, FloatArray]:
    """Return the classes and, for each class, the sum of purities over its pairs of leaves and the number of pairs."""
    n = len(Z) + 1
    names, numbers = np.unique(np.asarray(classes), return_inverse=True)
    members = np.zeros((2 * n - 1, len(names)))  # leaves of each class below each node
    members[np.arange(n), numbers] = 1
    left, right = Z[:, :2].astype(np.intp).T
    for step in range(n - 1):
        members[n + step] = members[left[step]] + members[right[step]]
    split = members[left] * members[right]  # pairs whose smallest subtree has its root at this node
    purity = members[n:] / members[n:].sum(axis=1, keepdims=True)
    return names, (split * purity).sum(axis=0), split.sum(axis=0)

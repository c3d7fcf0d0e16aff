"""What "tree purity" may mean: every reading of the paper's text that we could think of."""

from __future__ import annotations

import warnings

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices, IntArray
from rankernel.errors import IndefiniteKernelWarning
from rankernel.learn.hierarchy import flat_clusters, weighted_linkage
from rankernel.learn.hierarchy import gram_distances
from rankernel.learn.hierarchy import class_purities, dendrogram_purity

PURITIES = {
    "pairs": "two different leaves of one class, all such pairs equally likely",
    "classes": "the same, mean over classes (those with two leaves)",
    "classes, singletons 1": "mean over classes, a class of one leaf counts 1",
    "classes, repeated": "mean over classes, the two leaves may be the same",
    "cut, users": "cut into 10 clusters, share of users in their cluster's majority",
    "cut, clusters": "cut into 10 clusters, mean over clusters of the majority's share",
}


def tree(gram: FloatArray, squared: bool) -> FloatArray:
    """Return the dendrogram of average linkage."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IndefiniteKernelWarning)  # negative squares are set to 0
        distances = gram_distances(gram, squared)
    return weighted_linkage(distances, np.ones(len(gram), dtype=np.int64))


def purities(Z: FloatArray, labels: IntArray, n_clusters: int = 10) -> dict[str, float]:
    """Return the purity of a tree by every reading."""
    by_class = class_purities(Z, labels)
    _, sizes = np.unique(labels, return_counts=True)
    values = np.array(list(by_class.values()))
    filled = np.nan_to_num(values)
    return {
        "pairs": dendrogram_purity(Z, labels),
        "classes": float(np.nanmean(values)),
        "classes, singletons 1": float(np.where(sizes == 1, 1, filled).mean()),
        "classes, repeated": float(((1 + (sizes - 1) * filled) / sizes).mean()),
    } | flat_purities(flat_clusters(Z, n_clusters), labels)


def flat_purities(clusters: Indices, labels: IntArray) -> dict[str, float]:
    """Return how much of each cluster its most frequent label is: by users, and by clusters."""
    members = np.zeros((clusters.max() + 1, labels.max() + 1))
    np.add.at(members, (clusters, labels), 1)
    majority, size = members.max(axis=1), members.sum(axis=1)
    return {
        "cut, users": float(majority.sum() / size.sum()),
        "cut, clusters": float((majority / size).mean()),
    }

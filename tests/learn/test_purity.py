"""Dendrogram purity against all pairs of leaves, in exact fractions."""

from fractions import Fraction
from itertools import combinations
from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankernel.errors import RankingError
from rankernel.learn.purity import class_purities, dendrogram_purity

# ---------------------------------------------------------------------- oracles


def leaves_below(merges, n):
    below = [{leaf} for leaf in range(n)]
    for left, right in merges:
        below.append(below[left] | below[right])
    return below


def pair_purities(merges, labels):
    """The purity of the smallest subtree of every two leaves of one class, by class."""
    below = leaves_below(merges, len(labels))
    found = {label: [] for label in labels}
    for i, j in combinations(range(len(labels)), 2):
        if labels[i] == labels[j]:
            smallest = min((leaves for leaves in below if {i, j} <= leaves), key=len)
            found[labels[i]].append(Fraction(sum(labels[leaf] == labels[i] for leaf in smallest), len(smallest)))
    return found


def mean(values):
    return float(sum(values) / len(values)) if values else float("nan")


def expanded(merges, labels, weights):
    """The tree in which leaf i is a chain of as many equal leaves as it weighs."""
    start = np.cumsum([0, *weights]).tolist()
    n = start[-1]
    new, node = [], []
    for first, weight in zip(start, weights, strict=False):
        top = first
        for copy in range(first + 1, first + weight):
            new.append((top, copy))
            top = n + len(new) - 1
        node.append(top)
    for left, right in merges:
        new.append((node[left], node[right]))
        node.append(n + len(new) - 1)
    return new, [label for label, weight in zip(labels, weights, strict=True) for _ in range(weight)]


def as_linkage(merges, n):
    below = leaves_below(merges, n)
    return np.array([[*pair, height, len(below[n + height])] for height, pair in enumerate(merges)], dtype=float)


@st.composite
def trees(draw):
    """Random mergers of n leaves, and their labels."""
    n = draw(st.integers(2, 9))
    alive, merges = list(range(n)), []
    for step in range(n - 1):
        left = alive.pop(draw(st.integers(0, len(alive) - 1)))
        right = alive.pop(draw(st.integers(0, len(alive) - 1)))
        merges.append((left, right))
        alive.append(n + step)
    labels = draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n))
    return merges, labels


# ---------------------------------------------------------------------- tests


@given(trees())
def test_every_class_is_the_mean_over_its_pairs(tree):
    merges, labels = tree
    got = class_purities(as_linkage(merges, len(labels)), labels)
    expected = {label: mean(values) for label, values in pair_purities(merges, labels).items()}
    assert got == pytest.approx(expected, rel=1e-13, nan_ok=True)


@given(trees())
def test_overall_is_the_mean_over_all_pairs(tree):
    merges, labels = tree
    Z = as_linkage(merges, len(labels))
    pairs = [purity for values in pair_purities(merges, labels).values() for purity in values]
    if not pairs:
        with pytest.raises(ValueError, match="no two leaves have the same label"):
            dendrogram_purity(Z, labels)
    else:
        assert dendrogram_purity(Z, labels) == pytest.approx(mean(pairs), rel=1e-13)


@given(trees(), st.data())
def test_a_weight_is_so_many_leaves(tree, data):
    merges, labels = tree
    weights = data.draw(st.lists(st.integers(1, 3), min_size=len(labels), max_size=len(labels)))
    got = class_purities(as_linkage(merges, len(labels)), labels, counts=weights)
    by_class = pair_purities(*expanded(merges, labels, weights))
    expected = {label: mean(values) for label, values in by_class.items()}
    assert got == pytest.approx(expected, rel=1e-13, nan_ok=True)
    pairs = [purity for values in by_class.values() for purity in values]
    if pairs:
        overall = dendrogram_purity(as_linkage(merges, len(labels)), labels, weights)
        assert overall == pytest.approx(mean(pairs), rel=1e-13)


def test_classes_with_subtrees_of_their_own_are_pure():
    Z = as_linkage([(0, 1), (2, 3), (5, 4), (6, 7)], 5)
    assert dendrogram_purity(Z, ["x", "x", "y", "y", "x"]) == 1


def test_a_class_of_one_leaf_has_no_purity_but_spoils_that_of_others():
    Z = as_linkage([(0, 2), (3, 1)], 3)
    found = class_purities(Z, [7, 7, 8])
    assert found[7] == pytest.approx(2 / 3)
    assert isnan(found[8])
    assert dendrogram_purity(Z, [7, 7, 8]) == pytest.approx(2 / 3)


def test_what_is_refused():
    Z = as_linkage([(0, 1), (2, 3)], 3)
    with pytest.raises(ValueError, match=r"labels has shape \(2,\); it must be an array of 3 labels"):
        dendrogram_purity(Z, [0, 0])
    with pytest.raises(RankingError, match="row 1 has count 0"):
        dendrogram_purity(Z, [0, 0, 1], counts=[1, 0, 1])
    with pytest.raises(ValueError, match="Z has shape"):
        dendrogram_purity(Z[:, :3], [0, 0, 1])
    with pytest.raises(ValueError, match="each cluster is merged once"):
        dendrogram_purity(np.array([[0, 1, 0.0, 2], [2, 2, 1.0, 3]]), [0, 0, 1])
    with pytest.raises(ValueError, match="only after it was made"):
        dendrogram_purity(np.array([[0, 4, 0.0, 2], [1, 2, 1.0, 3]]), [0, 0, 1])

"""Dendrogram purity against brute force over pairs of leaves."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproduction.purity import class_purities, dendrogram_purity


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


@given(trees())
def test_class_purities_match_brute_force(tree):
    merges, labels = tree
    got = class_purities(as_linkage(merges, len(labels)), labels)
    expected = {label: mean(values) for label, values in pair_purities(merges, labels).items()}
    assert got == pytest.approx(expected, rel=1e-13, nan_ok=True)


@given(trees())
def test_dendrogram_purity_matches_brute_force(tree):
    merges, labels = tree
    Z = as_linkage(merges, len(labels))
    pairs = [purity for values in pair_purities(merges, labels).values() for purity in values]
    assert dendrogram_purity(Z, labels) == pytest.approx(mean(pairs), rel=1e-13, nan_ok=True)


def test_classes_that_are_subtrees_are_pure():
    Z = as_linkage([(0, 1), (2, 3), (5, 4), (6, 7)], 5)
    assert dendrogram_purity(Z, ["x", "x", "y", "y", "x"]) == 1


def test_class_with_one_leaf():
    Z = as_linkage([(0, 2), (3, 1)], 3)
    found = class_purities(Z, [7, 7, 8])
    assert found[7] == pytest.approx(2 / 3)
    assert math.isnan(found[8])
    assert dendrogram_purity(Z, [7, 7, 8]) == pytest.approx(2 / 3)

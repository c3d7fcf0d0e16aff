"""Kernel distances, dendrograms and their purity against brute force and SciPy."""

import math
import warnings
from itertools import combinations

import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from real_data import needs_data, sushi
from scipy.cluster.hierarchy import cophenet, fcluster, is_valid_linkage
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.spatial.distance import squareform
from seven_rankings import COUNTS, DATA, EXPANDED, KERNELS, ROWS, square_distances

import rankernel as rk
from rankernel import Kendall, Mallows, MonteCarlo, flat_clusters, kernel_distances, linkage
from rankernel.learn.hierarchy import gram_distances, weighted_linkage

# ---------------------------------------------------------------------- oracles


def merges_by(n, height):
    """Greedy merges of clusters, as sets of rows with their heights."""
    clusters, merges = [frozenset([i]) for i in range(n)], []
    while len(clusters) > 1:
        A, B = min(combinations(clusters, 2), key=lambda pair: height(*pair))
        merges.append((A | B, height(A, B)))
        clusters = [C for C in clusters if C not in (A, B)] + [A | B]
    return merges


def average_linkage(D, weights):
    def height(A, B):
        total = math.fsum(weights[i] * weights[j] * D[i][j] for i in A for j in B)
        return total / (sum(weights[i] for i in A) * sum(weights[j] for j in B))

    return merges_by(len(D), height)


def ward_linkage(points, weights):
    """Merges with the smallest increase of the sum of squares; the height is the root of twice the increase."""

    def scatter(A):
        total = sum(weights[i] for i in A)
        mean = [math.fsum(weights[i] * points[i][d] for i in A) / total for d in range(len(points[0]))]
        return math.fsum(weights[i] * (points[i][d] - m) ** 2 for i in A for d, m in enumerate(mean))

    def height(A, B):
        return math.sqrt(2 * max(scatter(A | B) - scatter(A) - scatter(B), 0))

    return merges_by(len(points), height)


def merges_of(Z):
    """The merges of a linkage matrix."""
    below, merges = [frozenset([i]) for i in range(len(Z) + 1)], []
    for left, right, height, size in Z.tolist():
        below.append(below[int(left)] | below[int(right)])
        assert len(below[-1]) == size
        merges.append((below[-1], height))
    return merges


def assert_same_merges(merges, expected, rel=1e-12):
    assert [rows for rows, _ in merges] == [rows for rows, _ in expected]
    assert [height for _, height in merges] == pytest.approx([height for _, height in expected], rel=rel)


def random_points(seed, n):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 3))
    return points, np.linalg.norm(points[:, None] - points[None], axis=2), rng.integers(1, 6, n)


# ---------------------------------------------------------------------- distances


@given(strategies.sized(strategies.any_ranking, low=2, high=4, length=3), st.sampled_from(KERNELS))
@settings(max_examples=50)
def test_distances_match_brute_force(rows, kernels):
    kernel, oracle = kernels
    expected = np.array(square_distances(oracle, rows))
    squared = kernel_distances(np.array(rows), kernel, squared=True)
    assert squared == pytest.approx(np.maximum(expected, 0), rel=1e-12, abs=1e-14)
    assert kernel_distances(np.array(rows), kernel).tolist() == np.sqrt(squared).tolist()


def test_distances_are_symmetric_and_zero_between_equal_rows():
    D = kernel_distances(EXPANDED, Mallows(nu=0.3))
    assert (D == D.T).all()
    same = (EXPANDED.ranks[:, None] == EXPANDED.ranks[None]).all(axis=2)
    assert ((D == 0) == same).all()
    estimated = kernel_distances(EXPANDED, Mallows(nu=0.3), method=MonteCarlo(n_draws=4))
    assert (estimated[same] == 0).all()


def test_negative_squares_are_counted():
    gram = np.array([[1.0, 2.0, 0.5], [2.0, 1.0, 0.5], [0.5, 0.5, 1.0]])
    with pytest.warns(rk.IndefiniteKernelWarning, match=r"1 of 3 pairs .* -2"):
        clipped = gram_distances(gram, squared=True)
    assert clipped.tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]


def test_rounding_errors_are_not_reported():
    gram = np.array([[1.0, 1 + 2e-16], [1 + 2e-16, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gram_distances(gram).tolist() == [[0, 0], [0, 0]]


def test_unbiased_diagonal_can_give_negative_squares():
    method = MonteCarlo(n_draws=2, coupling="iid", control_variates=0, diagonal="unbiased")
    X = np.array([[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1], [1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    with pytest.warns(rk.IndefiniteKernelWarning, match="of 6 pairs"):
        D = kernel_distances(X, Mallows(nu=1.0), method=method)
    assert (D >= 0).all()


# ---------------------------------------------------------------------- dendrograms


@given(st.integers(0, 10**6), st.integers(2, 9))
@settings(max_examples=60)
def test_average_linkage_matches_brute_force(seed, n):
    _, D, weights = random_points(seed, n)
    Z = weighted_linkage(D.copy(), weights, "average")
    assert is_valid_linkage(Z)
    assert_same_merges(merges_of(Z), average_linkage(D.tolist(), weights.tolist()))


@given(st.integers(0, 10**6), st.integers(2, 8))
@settings(max_examples=40)
def test_ward_linkage_matches_brute_force(seed, n):
    points, D, weights = random_points(seed, n)
    Z = weighted_linkage(D.copy(), weights, "ward")
    assert_same_merges(merges_of(Z), ward_linkage(points.tolist(), weights.tolist()), rel=1e-9)


@pytest.mark.parametrize("rule", ["average", "ward"])
@pytest.mark.parametrize("ties", [False, True])
def test_equal_weights_match_scipy(rule, ties):
    """Equal weights of 4 scale the heights of Ward linkage by 2, without rounding."""
    for seed in range(20):
        points, _, _ = random_points(seed, 30)
        points = points.round(0) if ties else points
        D = np.linalg.norm(points[:, None] - points[None], axis=2)
        expected = scipy_linkage(squareform(D, checks=False), rule)
        expected[:, 2] *= 2 if rule == "ward" else 1
        assert np.array_equal(weighted_linkage(D, np.full(30, 4), rule), expected)


@pytest.mark.parametrize("rule", ["average", "complete", "single", "ward"])
def test_counts_are_repeated_rows(rule):
    """The height at which two rankings are merged, against SciPy on all voters."""
    kernel, oracle = KERNELS[2]
    Z = linkage(DATA, kernel, linkage=rule)
    D = np.sqrt(np.maximum(square_distances(oracle, ROWS), 0))
    voter = np.repeat(np.arange(len(ROWS)), COUNTS)
    expanded = squareform(cophenet(scipy_linkage(squareform(D[np.ix_(voter, voter)], checks=False), rule)))
    first = np.searchsorted(voter, np.arange(len(ROWS)))
    assert squareform(cophenet(Z)) == pytest.approx(expanded[np.ix_(first, first)], rel=1e-9)
    assert Z[-1, 3] == len(ROWS)


@pytest.mark.parametrize("rule", ["average", "complete", "single", "ward"])
def test_without_counts_it_is_scipy(rule):
    X = DATA.ranks
    expected = scipy_linkage(squareform(kernel_distances(X, Mallows(nu=0.3)), checks=False), rule)
    assert np.array_equal(linkage(X, Mallows(nu=0.3), linkage=rule), expected)


def test_squared_and_estimated_distances():
    method = MonteCarlo(n_draws=8, rng=3)
    K = Mallows(nu=0.3).gram(DATA, method=method)
    squares = np.diagonal(K)[:, None] + np.diagonal(K)[None] - 2 * K
    Z = linkage(DATA, Mallows(nu=0.3), method=method, squared=True)
    assert_same_merges(merges_of(Z), average_linkage(squares.tolist(), COUNTS), rel=1e-10)


@pytest.mark.parametrize(
    ("X", "options", "error", "argument"),
    [
        ([[0, 1]], {}, rk.RankingError, "X"),
        (DATA, {"linkage": "upgma"}, ValueError, "linkage='upgma'"),
        (DATA, {"linkage": "ward", "squared": True}, ValueError, "squared=False"),
    ],
)
def test_linkage_errors(X, options, error, argument):
    with pytest.raises(error, match=argument):
        linkage(X, Kendall(), **options)


@given(st.integers(0, 10**6), st.integers(2, 12), st.data())
@settings(max_examples=40)
def test_flat_clusters_match_scipy(seed, n, data):
    k = data.draw(st.integers(1, n))
    _, D, _ = random_points(seed, n)
    Z = scipy_linkage(squareform(D, checks=False), "average")
    ours, theirs = flat_clusters(Z, k).tolist(), fcluster(Z, k, "maxclust").tolist()
    assert all((ours[i] == ours[j]) == (theirs[i] == theirs[j]) for i in range(n) for j in range(n))
    assert list(dict.fromkeys(ours)) == list(range(k))


def test_flat_clusters_with_equal_heights():
    Z = linkage(np.zeros((5, 3), dtype=int), Kendall())
    assert set(Z[:, 2]) == {0.0}
    assert [len(set(flat_clusters(Z, k).tolist())) for k in range(1, 6)] == [1, 2, 3, 4, 5]
    for wrong in (0, 6, True, 2.0):
        with pytest.raises(ValueError, match="n_clusters"):
            flat_clusters(Z, wrong)


@needs_data
def test_sushi():
    Z = linkage(sushi()[:200].top(4), Mallows(nu="median"))
    assert is_valid_linkage(Z)
    assert len(set(flat_clusters(Z, 10).tolist())) == 10


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros((2, 3)), "Z has shape"),
        (np.array([[0, 1, 0.0, 2], [2, 2, 1.0, 3]]), "Z is not a linkage matrix"),
        (np.array([[0, 4, 0.0, 2], [1, 2, 1.0, 3]]), "Z is not a linkage matrix"),
    ],
)
def test_no_linkage_matrix(wrong, message):
    with pytest.raises(ValueError, match=message):
        flat_clusters(wrong, 2)

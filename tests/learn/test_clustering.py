"""Kernel distances, dendrograms, k-means and k-medoids against brute force, SciPy and scikit-learn."""

import math
from itertools import combinations, product

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from real_data import needs_data, sushi
from scipy.cluster.hierarchy import cophenet, fcluster, is_valid_linkage
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.spatial.distance import squareform
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError

from rankernel import Hamming, Kendall, Mallows, MonteCarlo, Rankings, _loops
from rankernel.completions.marginals import pair_means
from rankernel.errors import IndefiniteKernelWarning, RankingError, SamplingWarning
from rankernel.io import load_sushi
from rankernel.learn.dendrogram import counted_linkage, flat_clusters, linkage, weighted_linkage
from rankernel.learn.kernel_distance import gram_distances, kernel_distances
from rankernel.learn.kernel_means import KernelKMeans
from rankernel.learn.kernel_medoids import KernelKMedoids
from rankernel.learn.purity import dendrogram_purity

KERNELS = [
    (Kendall(), naive.kendall_kernel),
    (Mallows(nu=0.3), naive.mallows(0.3)),
    (Hamming() + Mallows(nu=0.2), lambda x, y: naive.hamming_kernel(x, y) + naive.mallows(0.2)(x, y)),
]
ROWS = [
    (0, 1, 2, 3, 4),
    (1, 0, 2, 3, 3),
    (4, 3, 2, 1, 0),
    (2, 2, 1, 0, -1),
    (-1, 0, -1, 1, 2),
    (0, 3, 1, 2, 3),
    (1, 4, 0, 2, 3),
]
COUNTS = [3, 1, 2, 1, 4, 2, 1]
DATA = Rankings(np.array(ROWS), counts=COUNTS)
EXPANDED = Rankings(np.repeat(np.array(ROWS), COUNTS, axis=0))

# ---------------------------------------------------------------------- oracles


def square_distances(kernel, rows):
    K = naive.gram(kernel, rows, rows)
    return [[K[i][i] + K[j][j] - 2 * K[i][j] for j in range(len(rows))] for i in range(len(rows))]


def average_linkage(D, weights):
    """Mergers of clusters, as sets of rows with their heights, each row taken as often as it weighs."""
    clusters, found = [frozenset([i]) for i in range(len(D))], []

    def height(A, B):
        total = math.fsum(weights[i] * weights[j] * D[i][j] for i in A for j in B)
        return total / (sum(weights[i] for i in A) * sum(weights[j] for j in B))

    while len(clusters) > 1:
        A, B = min(combinations(clusters, 2), key=lambda pair: height(*pair))
        found.append((A | B, height(A, B)))
        clusters = [C for C in clusters if C not in (A, B)] + [A | B]
    return found


def ward_linkage(points, weights):
    """Mergers by the least growth of the sum of squares; the height is the root of twice the growth."""
    clusters, found = [frozenset([i]) for i in range(len(points))], []

    def spread(A):
        total = sum(weights[i] for i in A)
        middle = [math.fsum(weights[i] * points[i][d] for i in A) / total for d in range(len(points[0]))]
        return math.fsum(weights[i] * (points[i][d] - m) ** 2 for i in A for d, m in enumerate(middle))

    def height(A, B):
        return math.sqrt(2 * max(spread(A | B) - spread(A) - spread(B), 0))

    while len(clusters) > 1:
        A, B = min(combinations(clusters, 2), key=lambda pair: height(*pair))
        found.append((A | B, height(A, B)))
        clusters = [C for C in clusters if C not in (A, B)] + [A | B]
    return found


def mergers_of(Z):
    """The same list from a linkage matrix."""
    below, found = [frozenset([i]) for i in range(len(Z) + 1)], []
    for left, right, height, size in Z.tolist():
        below.append(below[int(left)] | below[int(right)])
        assert len(below[-1]) == size
        found.append((below[-1], height))
    return found


def agree(found, expected, rel=1e-12):
    assert [rows for rows, _ in found] == [rows for rows, _ in expected]
    assert [height for _, height in found] == pytest.approx([height for _, height in expected], rel=rel)


def inertia_of(labels, squares, weights):
    """Sum over clusters of weighted squared distances between members, over twice their weight."""
    total = 0.0
    for label in set(labels):
        rows = [i for i, own in enumerate(labels) if own == label]
        within = math.fsum(weights[i] * weights[j] * squares[i][j] for i in rows for j in rows)
        total += within / (2 * sum(weights[i] for i in rows))
    return total


def best_inertia(squares, weights, k):
    n = len(squares)
    return min(inertia_of(labels, squares, weights) for labels in product(range(k), repeat=n) if len(set(labels)) == k)


def medoid_cost(medoids, D, weights):
    return sum(weight * min(row[m] for m in medoids) for row, weight in zip(D, weights, strict=True))


def best_cost(D, weights, k):
    return min(medoid_cost(medoids, D, weights) for medoids in combinations(range(len(D)), k))


def random_points(seed, n):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 3))
    return points, np.linalg.norm(points[:, None] - points[None], axis=2), rng.integers(1, 6, n)


# ---------------------------------------------------------------------- distances


@given(strategies.sized(strategies.any_ranking, low=2, high=4, length=3), st.sampled_from(KERNELS))
@settings(max_examples=50)
def test_distances_are_those_of_mean_embeddings(rows, kernels):
    kernel, oracle = kernels
    expected = np.array(square_distances(oracle, rows))
    squared = kernel_distances(np.array(rows), kernel, squared=True)
    assert squared == pytest.approx(np.maximum(expected, 0), rel=1e-12, abs=1e-14)
    assert kernel_distances(np.array(rows), kernel).tolist() == np.sqrt(squared).tolist()


def test_distances_are_symmetric_to_the_bit_and_0_between_equal_rows():
    D = kernel_distances(EXPANDED, Mallows(nu=0.3))
    assert (D == D.T).all()
    same = (EXPANDED.ranks[:, None] == EXPANDED.ranks[None]).all(axis=2)
    assert ((D == 0) == same).all()
    estimated = kernel_distances(EXPANDED, Mallows(nu=0.3), method=MonteCarlo(n_draws=4))
    assert (estimated[same] == 0).all()


def test_negative_squares_are_counted():
    gram = np.array([[1.0, 2.0, 0.5], [2.0, 1.0, 0.5], [0.5, 0.5, 1.0]])
    with pytest.warns(IndefiniteKernelWarning, match="1 of 3 pairs of rankings have a negative squared distance, down"):
        clipped = gram_distances(gram, squared=True)
    assert clipped.tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    with pytest.raises(ValueError, match=r"1 of 3 pairs .* down to -2, because"):
        gram_distances(gram, negative="error")
    with pytest.raises(ValueError, match="negative='keep'"):
        gram_distances(gram, negative="keep")


def test_rounding_is_no_cause_for_a_warning():
    gram = np.array([[1.0, 1 + 2e-16], [1 + 2e-16, 1.0]])
    assert gram_distances(gram, negative="error").tolist() == [[0, 0], [0, 0]]


def test_an_unbiased_diagonal_can_make_squares_negative():
    method = MonteCarlo(n_draws=2, coupling="iid", control_variates=0, diagonal="unbiased")
    X = np.array([[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1], [1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    with pytest.warns(IndefiniteKernelWarning, match="of 6 pairs"):
        D = kernel_distances(X, Mallows(nu=1.0), method=method)
    assert (D >= 0).all()


# ---------------------------------------------------------------------- dendrograms


@given(st.integers(0, 10**6), st.integers(2, 9))
@settings(max_examples=60)
def test_average_linkage_counts_voters(seed, n):
    _, D, weights = random_points(seed, n)
    Z = counted_linkage(D.copy(), weights.astype(float), "average")
    assert is_valid_linkage(Z)
    agree(mergers_of(Z), average_linkage(D.tolist(), weights.tolist()))


@given(st.integers(0, 10**6), st.integers(2, 8))
@settings(max_examples=40)
def test_ward_linkage_counts_voters(seed, n):
    points, D, weights = random_points(seed, n)
    Z = weighted_linkage(D.copy(), weights, "ward")
    agree(mergers_of(Z), ward_linkage(points.tolist(), weights.tolist()), rel=1e-9)


@pytest.mark.parametrize("method", ["average", "ward"])
@pytest.mark.parametrize("ties", [False, True])
def test_with_one_voter_each_the_loops_are_scipy_to_the_bit(method, ties):
    for seed in range(20):
        points, _, _ = random_points(seed, 30)
        points = points.round(0) if ties else points
        D = np.linalg.norm(points[:, None] - points[None], axis=2)
        Z = counted_linkage(D.copy(), np.ones(30), method)
        assert np.array_equal(Z, scipy_linkage(squareform(D, checks=False), method))


@pytest.mark.parametrize("method", ["average", "complete", "single", "weighted", "ward", "median"])
def test_counts_are_repeated_rows(method):
    """Height at which any two rankings meet, against SciPy on all voters and the oracle's distances."""
    kernel, oracle = KERNELS[2]
    Z = linkage(DATA, kernel, method)
    D = np.sqrt(np.maximum(square_distances(oracle, ROWS), 0))
    voter = np.repeat(np.arange(len(ROWS)), COUNTS)
    expanded = squareform(cophenet(scipy_linkage(squareform(D[np.ix_(voter, voter)], checks=False), method)))
    first = np.searchsorted(voter, np.arange(len(ROWS)))
    assert squareform(cophenet(Z)) == pytest.approx(expanded[np.ix_(first, first)], rel=1e-9)
    assert Z[-1, 3] == len(ROWS)


@pytest.mark.parametrize("method", ["average", "complete", "single", "weighted", "ward", "centroid", "median"])
def test_without_counts_it_is_scipy(method):
    X = DATA.ranks
    expected = scipy_linkage(squareform(kernel_distances(X, Mallows(nu=0.3)), checks=False), method)
    assert np.array_equal(linkage(X, Mallows(nu=0.3), method), expected)


def test_squared_distances_and_estimated_ones():
    method = MonteCarlo(n_draws=8, rng=3)
    K = Mallows(nu=0.3).gram(DATA, method=method)
    squares = np.diagonal(K)[:, None] + np.diagonal(K)[None] - 2 * K
    Z = linkage(DATA, Mallows(nu=0.3), method=method, squared=True)
    agree(mergers_of(Z), average_linkage(squares.tolist(), COUNTS), rel=1e-10)


def test_what_linkage_refuses():
    with pytest.raises(RankingError, match="at least 2 rankings; got 1"):
        linkage([[0, 1]], Kendall())
    with pytest.raises(ValueError, match="linkage='upgma'"):
        linkage(DATA, Kendall(), "upgma")
    with pytest.raises(ValueError, match="ward linkage squares the distances by itself"):
        linkage(DATA, Kendall(), "ward", squared=True)
    with pytest.raises(ValueError, match="centroid linkage of rankings with multiplicities is not available"):
        linkage(DATA, Kendall(), "centroid")


@given(st.integers(0, 10**6), st.integers(2, 12), st.data())
@settings(max_examples=40)
def test_flat_clusters_are_those_of_scipy(seed, n, data):
    k = data.draw(st.integers(1, n))
    _, D, _ = random_points(seed, n)
    Z = scipy_linkage(squareform(D, checks=False), "average")
    mine, theirs = flat_clusters(Z, k).tolist(), fcluster(Z, k, "maxclust").tolist()
    assert all((mine[i] == mine[j]) == (theirs[i] == theirs[j]) for i in range(n) for j in range(n))
    assert list(dict.fromkeys(mine)) == list(range(k))


def test_flat_clusters_are_exactly_k_where_heights_are_equal():
    Z = linkage(np.zeros((5, 3), dtype=int), Kendall())
    assert set(Z[:, 2]) == {0.0}
    assert [len(set(flat_clusters(Z, k).tolist())) for k in range(1, 6)] == [1, 2, 3, 4, 5]
    for wrong in (0, 6, True, 2.0):
        with pytest.raises(ValueError, match="n_clusters="):
            flat_clusters(Z, wrong)


# ---------------------------------------------------------------------- k-means


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("kernels", KERNELS)
def test_kmeans_finds_the_best_partition(kernels, k):
    kernel, oracle = kernels
    squares = square_distances(oracle, ROWS)
    model = KernelKMeans(kernel, k, n_init=20).fit(DATA)
    assert model.inertia_ == pytest.approx(inertia_of(model.labels_.tolist(), squares, COUNTS), rel=1e-12)
    assert model.inertia_ == pytest.approx(best_inertia(squares, COUNTS, k), rel=1e-12)


def test_kmeans_counts_are_repeated_rows():
    counted = KernelKMeans(Mallows(nu=0.3), 3, n_init=20).fit(DATA)
    repeated = KernelKMeans(Mallows(nu=0.3), 3, n_init=20).fit(EXPANDED)
    assert repeated.inertia_ == pytest.approx(counted.inertia_, rel=1e-12)
    voter = np.repeat(np.arange(len(ROWS)), COUNTS)
    pairs = set(zip(repeated.labels_.tolist(), counted.labels_[voter].tolist(), strict=True))
    assert len(pairs) == 3


def test_kmeans_is_kmeans_of_the_features():
    rng = np.random.default_rng(5)
    X = np.argsort(rng.random((60, 6)), axis=1)
    features = pair_means(X) / math.sqrt(15)
    mine = KernelKMeans(Kendall(), 4, n_init=30).fit(X)
    theirs = KMeans(4, n_init=30, random_state=0).fit(features)
    centres = np.stack([features[mine.labels_ == label].mean(axis=0) for label in range(4)])
    assert mine.inertia_ <= theirs.inertia_ * (1 + 1e-12)
    assert mine.inertia_ == pytest.approx(((features - centres[mine.labels_]) ** 2).sum(), rel=1e-12)
    new = np.argsort(rng.random((40, 6)), axis=1)
    gaps = np.linalg.norm(pair_means(new)[:, None] / math.sqrt(15) - centres[None], axis=2)
    assert mine.transform(new) == pytest.approx(gaps, rel=1e-12)
    assert mine.predict(new).tolist() == gaps.argmin(axis=1).tolist()
    assert mine.get_feature_names_out().tolist() == [f"kernelkmeans{c}" for c in range(4)]


@pytest.mark.parametrize("seed", range(6))
def test_kmeans_ends_where_no_single_row_wants_to_move(seed):
    rng = np.random.default_rng(seed)
    X = Rankings(np.argsort(rng.random((14, 5)), axis=1), counts=rng.integers(1, 5, 14))
    model = KernelKMeans(Mallows(nu=0.4), 3, n_init=1, random_state=seed).fit(X)
    squares = kernel_distances(X, Mallows(nu=0.4), squared=True).tolist()
    labels, weights = model.labels_.tolist(), X.counts.tolist()
    assert model.inertia_ == pytest.approx(inertia_of(labels, squares, weights), rel=1e-12)
    for row, target in product(range(14), range(3)):
        moved = [*labels[:row], target, *labels[row + 1 :]]
        if len(set(moved)) == 3:
            assert inertia_of(moved, squares, weights) > model.inertia_ - 1e-9


def test_moves_keep_the_sums_of_their_clusters_right():
    points, _, counts = random_points(3, 30)
    gram, weights = points @ points.T, counts.astype(float)
    labels = np.arange(30) % 4

    def sums_of(labels):
        members = np.eye(4)[labels] * weights[:, None]
        return np.bincount(labels), gram @ members, np.diagonal(members.T @ gram @ members).copy(), members.sum(axis=0)

    state = sums_of(labels)
    assert _loops.cluster_moves.move_points(gram, weights, labels, *state, 1e-12) > 5
    for kept, fresh in zip(state, sums_of(labels), strict=True):
        assert kept == pytest.approx(fresh, rel=1e-11, abs=1e-11)


def test_no_cluster_is_empty_even_if_rankings_are_equal():
    X = np.array([[0, 1, 2]] * 4 + [[2, 1, 0]])
    for Model in (KernelKMeans, KernelKMedoids):
        model = Model(Kendall(), 3).fit(X)
        assert sorted(set(model.labels_.tolist())) == [0, 1, 2]
        assert model.inertia_ == pytest.approx(0, abs=1e-12)
        assert Model(Kendall(), 5).fit(X).inertia_ == pytest.approx(0, abs=1e-12)


# ---------------------------------------------------------------------- k-medoids


@pytest.mark.parametrize("k", [1, 2, 3, 6])
@pytest.mark.parametrize("kernels", KERNELS)
def test_kmedoids_finds_the_best_rows(kernels, k):
    kernel, oracle = kernels
    D = np.sqrt(np.maximum(square_distances(oracle, ROWS), 0)).tolist()
    model = KernelKMedoids(kernel, k).fit(DATA)
    medoids = model.medoid_indices_.tolist()
    assert model.inertia_ == pytest.approx(best_cost(D, COUNTS, k), rel=1e-12)
    assert model.inertia_ == pytest.approx(medoid_cost(medoids, D, COUNTS), rel=1e-12)
    assert model.medoids_ == DATA[model.medoid_indices_]
    for i, label in enumerate(model.labels_.tolist()):
        assert D[i][medoids[label]] == pytest.approx(min(D[i][m] for m in medoids), rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_kmedoids_ends_where_no_swap_helps(seed):
    rng = np.random.default_rng(seed)
    X = Rankings(np.argsort(rng.random((25, 5)), axis=1), counts=rng.integers(1, 5, 25))
    D = kernel_distances(X, Mallows(nu=0.4))
    model = KernelKMedoids(Mallows(nu=0.4), 4, n_init=1, random_state=seed).fit(X)
    medoids = model.medoid_indices_.tolist()
    for out, row in product(medoids, range(25)):
        others = [m for m in medoids if m != out] + [row]
        assert float(X.counts @ D[:, others].min(axis=1)) > model.inertia_ - 1e-9


# ---------------------------------------------------------------------- manners of both


@pytest.mark.parametrize("Model", [KernelKMeans, KernelKMedoids])
def test_prediction_of_the_training_data(Model):
    for method in ("auto", MonteCarlo(n_draws=6, rng=1)):
        model = Model(Mallows(nu="median"), 3, method=method, random_state=2)
        labels = model.fit_predict(DATA)
        assert model.predict(DATA).tolist() == labels.tolist()
        assert model.predict(DATA[2:3]).tolist() == [labels[2]]
        assert model.transform(DATA).argmin(axis=1).tolist() == labels.tolist()
        assert isinstance(model.kernel_.nu, float)
        assert model.kernel == Mallows(nu="median")


@pytest.mark.parametrize("Model", [KernelKMeans, KernelKMedoids])
def test_the_same_seed_gives_the_same_clusters(Model):
    X = np.argsort(np.random.default_rng(0).random((80, 6)), axis=1)
    runs = [Model(Kendall(), 5, n_init=1, random_state=4).fit(X).labels_.tolist() for _ in range(2)]
    assert runs[0] == runs[1]


@pytest.mark.parametrize("Model", [KernelKMeans, KernelKMedoids])
def test_scikit_learn_manners(Model):
    model = Model(Mallows(nu=0.3), 2)
    copy = clone(model).set_params(kernel__nu=0.7, n_clusters=3)
    assert (model.kernel, copy.kernel, copy.n_clusters) == (Mallows(nu=0.3), Mallows(nu=0.7), 3)
    with pytest.raises(NotFittedError):
        model.predict(DATA)
    with pytest.raises(ValueError, match="n_clusters=9 but X has 7 rankings"):
        Model(Kendall(), 9).fit(DATA)
    with pytest.raises(ValueError, match="n_init=0 is not possible"):
        Model(Kendall(), 2, n_init=0).fit(DATA)


@pytest.mark.parametrize("Model", [KernelKMeans, KernelKMedoids])
def test_new_rankings_are_brought_to_the_items_of_fit(Model):
    named = Rankings(DATA.ranks, items=list("abcde"))
    model = Model(Mallows(nu=0.3), 3).fit(named)
    turned = named.with_items(list("edcba"))
    assert model.predict(turned).tolist() == model.labels_.tolist()
    assert model.predict(named.ranks).tolist() == model.labels_.tolist()
    with pytest.raises(RankingError, match="some names differ"):
        model.predict(Rankings(DATA.ranks, items=list("abcdz")))
    with pytest.raises(RankingError, match=f"X has 3 features, but {Model.__name__} is expecting 5 features"):
        model.predict([[0, 1, 2]])


def test_new_rankings_may_be_estimated_where_training_was_exact():
    full = np.argsort(np.random.default_rng(1).random((12, 10)), axis=1)
    kernel = Mallows(nu=0.1) * Hamming()
    model = KernelKMeans(kernel, 2).fit(full)
    new = np.zeros((1, 10), dtype=int)  # 10! completions, and no closed form
    with pytest.warns(SamplingWarning, match="1 of 1 new rankings have no exact value with the old ones"):
        gaps = model.transform(new)
    assert gaps.shape == (1, 2)
    with pytest.warns(SamplingWarning, match="are estimated: Monte Carlo, 64 draws"):
        assert model.predict(new)[0] == gaps.argmin()
    with pytest.raises(ValueError, match="MonteCarlo"):
        KernelKMeans(kernel, 2, method="exact").fit(full).predict(new)


@needs_data
def test_sushi():
    data = load_sushi(sushi())
    X = data.rankings[:200].top(4)
    Z = linkage(X, Mallows(nu="median"))
    labels = data.users["region"][:200]
    assert is_valid_linkage(Z)
    assert len(set(flat_clusters(Z, 10).tolist())) == 10
    chance = sum((labels == c).mean() ** 2 for c in set(labels.tolist()))
    assert chance < dendrogram_purity(Z, labels) < 1
    model = KernelKMeans(Mallows(nu="median"), 4).fit(X)
    assert np.bincount(model.labels_).min() > 0

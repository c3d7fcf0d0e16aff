"""Kernel k-means and k-medoids against brute force and scikit-learn."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from real_data import needs_data, sushi
from seven_rankings import COUNTS, DATA, EXPANDED, KERNELS, ROWS, square_distances
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError

import rankernel as rk
from rankernel import Hamming, Kendall, KernelKMeans, KernelKMedoids, Mallows, MonteCarlo, Rankings, kernel_distances
from rankernel.learn.kmeans import move_rows

BOTH = pytest.mark.parametrize("Model", [KernelKMeans, KernelKMedoids])


# ---------------------------------------------------------------------- oracles


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


def pair_features(X):
    """The signs of all pairs, whose inner products are the Kendall kernel."""
    a, b = np.triu_indices(X.shape[1], 1)
    return np.sign(X[:, b] - X[:, a]) / math.sqrt(len(a))


# ---------------------------------------------------------------------- k-means


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("kernels", KERNELS)
def test_kmeans_finds_the_optimum(kernels, k):
    kernel, oracle = kernels
    squares = square_distances(oracle, ROWS)
    model = KernelKMeans(k, kernel=kernel, n_init=20).fit(DATA)
    assert model.inertia_ == pytest.approx(inertia_of(model.labels_.tolist(), squares, COUNTS), rel=1e-12)
    assert model.inertia_ == pytest.approx(best_inertia(squares, COUNTS, k), rel=1e-12)


def test_kmeans_counts_are_repeated_rows():
    counted = KernelKMeans(3, kernel=Mallows(nu=0.3), n_init=20).fit(DATA)
    repeated = KernelKMeans(3, kernel=Mallows(nu=0.3), n_init=20).fit(EXPANDED)
    assert repeated.inertia_ == pytest.approx(counted.inertia_, rel=1e-12)
    voter = np.repeat(np.arange(len(ROWS)), COUNTS)
    pairs = set(zip(repeated.labels_.tolist(), counted.labels_[voter].tolist(), strict=True))
    assert len(pairs) == 3


def test_kmeans_matches_scikit_learn():
    rng = np.random.default_rng(5)
    X = np.argsort(rng.random((60, 6)), axis=1)
    features = pair_features(X)
    mine = KernelKMeans(4, kernel=Kendall(), n_init=30).fit(X)
    theirs = KMeans(4, n_init=30, random_state=0).fit(features)
    centres = np.stack([features[mine.labels_ == label].mean(axis=0) for label in range(4)])
    assert mine.inertia_ <= theirs.inertia_ * (1 + 1e-12)
    assert mine.inertia_ == pytest.approx(((features - centres[mine.labels_]) ** 2).sum(), rel=1e-12)
    new = np.argsort(rng.random((40, 6)), axis=1)
    gaps = np.linalg.norm(pair_features(new)[:, None] - centres[None], axis=2)
    assert mine.transform(new) == pytest.approx(gaps, rel=1e-12)
    assert mine.predict(new).tolist() == gaps.argmin(axis=1).tolist()
    assert mine.get_feature_names_out().tolist() == [f"kernelkmeans{c}" for c in range(4)]


@pytest.mark.parametrize("seed", range(6))
def test_kmeans_is_locally_optimal(seed):
    rng = np.random.default_rng(seed)
    X = Rankings(np.argsort(rng.random((14, 5)), axis=1), counts=rng.integers(1, 5, 14))
    model = KernelKMeans(3, kernel=Mallows(nu=0.4), n_init=1, random_state=seed).fit(X)
    squares = kernel_distances(X, Mallows(nu=0.4), squared=True).tolist()
    labels, weights = model.labels_.tolist(), X.counts.tolist()
    assert model.inertia_ == pytest.approx(inertia_of(labels, squares, weights), rel=1e-12)
    for row, target in product(range(14), range(3)):
        moved = [*labels[:row], target, *labels[row + 1 :]]
        if len(set(moved)) == 3:
            assert inertia_of(moved, squares, weights) > model.inertia_ - 1e-9


def test_moves_update_the_sums():
    rng = np.random.default_rng(3)
    points, weights = rng.normal(size=(30, 3)), rng.integers(1, 6, 30).astype(float)
    gram = points @ points.T
    labels = np.arange(30) % 4

    def sums_of(labels):
        members = np.eye(4)[labels] * weights[:, None]
        return np.bincount(labels), gram @ members, np.diagonal(members.T @ gram @ members).copy(), members.sum(axis=0)

    state = sums_of(labels)
    assert move_rows(gram, weights, labels, *state, 1e-12) > 5
    for updated, fresh in zip(state, sums_of(labels), strict=True):
        assert updated == pytest.approx(fresh, rel=1e-11, abs=1e-11)


def test_no_cluster_is_empty():
    X = np.array([[0, 1, 2]] * 4 + [[2, 1, 0]])
    for Model in (KernelKMeans, KernelKMedoids):
        model = Model(3, kernel=Kendall()).fit(X)
        assert sorted(set(model.labels_.tolist())) == [0, 1, 2]
        assert model.inertia_ == pytest.approx(0, abs=1e-12)
        assert Model(5, kernel=Kendall()).fit(X).inertia_ == pytest.approx(0, abs=1e-12)


# ---------------------------------------------------------------------- k-medoids


@pytest.mark.parametrize("k", [1, 2, 3, 6])
@pytest.mark.parametrize("kernels", KERNELS)
def test_kmedoids_finds_the_optimum(kernels, k):
    kernel, oracle = kernels
    D = np.sqrt(np.maximum(square_distances(oracle, ROWS), 0)).tolist()
    model = KernelKMedoids(k, kernel=kernel).fit(DATA)
    medoids = model.medoid_indices_.tolist()
    assert model.inertia_ == pytest.approx(best_cost(D, COUNTS, k), rel=1e-12)
    assert model.inertia_ == pytest.approx(medoid_cost(medoids, D, COUNTS), rel=1e-12)
    assert model.medoids_ == DATA[model.medoid_indices_]
    for i, label in enumerate(model.labels_.tolist()):
        assert D[i][medoids[label]] == pytest.approx(min(D[i][m] for m in medoids), rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_kmedoids_is_locally_optimal(seed):
    rng = np.random.default_rng(seed)
    X = Rankings(np.argsort(rng.random((25, 5)), axis=1), counts=rng.integers(1, 5, 25))
    D = kernel_distances(X, Mallows(nu=0.4))
    model = KernelKMedoids(4, kernel=Mallows(nu=0.4), n_init=1, random_state=seed).fit(X)
    medoids = model.medoid_indices_.tolist()
    for out, row in product(medoids, range(25)):
        others = [m for m in medoids if m != out] + [row]
        assert float(X.counts @ D[:, others].min(axis=1)) > model.inertia_ - 1e-9


# ---------------------------------------------------------------------- both


@BOTH
def test_predict_on_training_data(Model):
    for method in ("auto", MonteCarlo(n_draws=6, rng=1)):
        model = Model(3, kernel=Mallows(nu="median"), method=method, random_state=2)
        labels = model.fit_predict(DATA)
        assert model.predict(DATA).tolist() == labels.tolist()
        assert model.predict(DATA[2:3]).tolist() == [labels[2]]
        assert model.transform(DATA).argmin(axis=1).tolist() == labels.tolist()
        assert isinstance(model.kernel_.nu, float)
        assert model.kernel == Mallows(nu="median")


@BOTH
def test_random_state(Model):
    X = np.argsort(np.random.default_rng(0).random((80, 6)), axis=1)
    runs = [Model(5, kernel=Kendall(), n_init=1, random_state=4).fit(X).labels_.tolist() for _ in range(2)]
    assert runs[0] == runs[1]


@BOTH
def test_parameters(Model):
    model = Model(2, kernel=Mallows(nu=0.3))
    copy = clone(model).set_params(kernel__nu=0.7, n_clusters=3)
    assert (model.kernel, copy.kernel, copy.n_clusters) == (Mallows(nu=0.3), Mallows(nu=0.7), 3)
    with pytest.raises(NotFittedError):
        model.predict(DATA)
    with pytest.raises(ValueError, match="n_clusters=9"):
        Model(9, kernel=Kendall()).fit(DATA)
    with pytest.raises(ValueError, match="n_init=0"):
        Model(2, kernel=Kendall(), n_init=0).fit(DATA)


@BOTH
def test_items_are_matched_by_name(Model):
    named = Rankings(DATA.ranks, items=list("abcde"))
    model = Model(3, kernel=Mallows(nu=0.3)).fit(named)
    permuted = named.with_items(list("edcba"))
    assert model.predict(permuted).tolist() == model.labels_.tolist()
    assert model.predict(named.ranks).tolist() == model.labels_.tolist()
    with pytest.raises(rk.RankingError, match="X has other items"):
        model.predict(Rankings(DATA.ranks, items=list("abcdz")))
    with pytest.raises(rk.RankingError, match="X has 3 features"):
        model.predict([[0, 1, 2]])


def test_new_rankings_may_be_estimated():
    full = np.argsort(np.random.default_rng(1).random((12, 10)), axis=1)
    kernel = Mallows(nu=0.1) * Hamming()
    model = KernelKMeans(2, kernel=kernel).fit(full)
    new = np.zeros((1, 10), dtype=int)  # 10! completions, and no closed form
    with pytest.warns(rk.SamplingWarning, match="1 of 1"):
        gaps = model.transform(new)
    assert gaps.shape == (1, 2)
    with pytest.warns(rk.SamplingWarning, match="64 draws"):
        assert model.predict(new)[0] == gaps.argmin()
    with pytest.raises(ValueError, match="MonteCarlo"):
        KernelKMeans(2, kernel=kernel, method="exact").fit(full).predict(new)


@needs_data
def test_sushi():
    model = KernelKMeans(4, kernel=Mallows(nu="median")).fit(sushi()[:200].top(4))
    assert np.bincount(model.labels_).min() > 0

"""Kernel principal components against scikit-learn on all voters."""

import tracemalloc

import naive
import numpy as np
import pytest
from real_data import needs_data, sushi
from seven_rankings import COUNTS, DATA, ROWS
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA, KernelPCA
from sklearn.exceptions import NotFittedError

from rankernel import Kendall, KernelMap, Mallows, MonteCarlo, NystromFeatures, RankingError, Rankings, kernel_distances
from rankernel.learn.components import fixed_signs

VOTER = np.repeat(np.arange(len(ROWS)), COUNTS)
NEW = [(4, 0, 1, 3, 2), (0, 0, 0, 1, 1), (-1, -1, 0, -1, 1)]
NU = 0.3


class PairFeatures(BaseEstimator):
    """Mean pair signs over the completions, whose inner products are the Kendall kernel."""

    def fit_transform(self, X, y=None):
        return self.transform(X)

    def transform(self, X):
        a, b = np.triu_indices(np.shape(X)[1], 1)
        completions = [np.array(naive.completions(tuple(row))) for row in np.asarray(X).tolist()]
        return np.array([np.sign(full[:, b] - full[:, a]).mean(axis=0) for full in completions]) / np.sqrt(len(a))


class Precomputed(BaseEstimator):
    """Features that are already computed, not copied by clone."""

    def __init__(self, features):
        self.features = features

    def __sklearn_clone__(self):
        return self

    def fit_transform(self, X):
        return self.features


def assert_equal_up_to_sign(found, expected, rel=1e-9):
    signs = np.sign((found * expected).sum(axis=0))
    assert (signs != 0).all()
    assert found == pytest.approx(expected * signs, rel=rel, abs=1e-12)


@pytest.fixture(scope="module")
def reference():
    """Kernel PCA of all voters, from the oracle's Gram matrix."""
    K = np.array(naive.gram(naive.mallows(NU), ROWS, ROWS))[np.ix_(VOTER, VOTER)]
    return KernelPCA(3, kernel="precomputed", eigen_solver="dense").fit(K), K


def test_matches_scikit_learn_on_all_voters(reference):
    theirs, K = reference
    mine = KernelMap(3, kernel=Mallows(nu=NU))
    coordinates = mine.fit_transform(DATA)
    assert_equal_up_to_sign(coordinates[VOTER], theirs.transform(K))
    assert mine.eigenvalues_ == pytest.approx(theirs.eigenvalues_, rel=1e-11)


def test_transform_of_new_rankings(reference):
    theirs, K = reference
    mine = KernelMap(3, kernel=Mallows(nu=NU)).fit(DATA)
    across = np.array(naive.gram(naive.mallows(NU), NEW, ROWS))[:, VOTER]
    both = np.vstack([mine.transform(DATA)[VOTER], mine.transform(np.array(NEW))])
    assert_equal_up_to_sign(both, np.vstack([theirs.transform(K), theirs.transform(across)]))


@pytest.mark.parametrize("method", ["auto", MonteCarlo(n_draws=6, rng=1)])
def test_transform_matches_fit_transform(method):
    mine = KernelMap(4, kernel=Mallows(nu="median"), method=method)
    coordinates = mine.fit_transform(DATA)
    assert mine.transform(DATA) == pytest.approx(coordinates, rel=1e-9, abs=1e-12)
    assert mine.fit(DATA).transform(DATA[1:3]) == pytest.approx(coordinates[1:3], rel=1e-9, abs=1e-12)


def test_explained_variance_matches_pca():
    theirs = PCA(3).fit(PairFeatures().transform(DATA)[VOTER])
    for mine in (KernelMap(3, kernel=Kendall()), KernelMap(n_components=3, features=PairFeatures())):
        mine.fit(DATA)
        assert mine.explained_variance_ == pytest.approx(theirs.explained_variance_, rel=1e-11)
        assert mine.explained_variance_ratio_ == pytest.approx(theirs.explained_variance_ratio_, rel=1e-11)


def test_features_match_their_kernel():
    by_gram = KernelMap(3, kernel=Kendall())
    by_features = KernelMap(n_components=3, features=PairFeatures())
    assert by_features.fit_transform(DATA) == pytest.approx(by_gram.fit_transform(DATA), rel=1e-9, abs=1e-12)
    assert by_features.transform(np.array(NEW)) == pytest.approx(by_gram.transform(np.array(NEW)), rel=1e-9, abs=1e-12)
    assert by_features.eigenvalues_ == pytest.approx(by_gram.eigenvalues_, rel=1e-11)


def test_nystrom_features_of_full_rank_are_exact():
    kernel = Mallows(nu=NU)
    exact = KernelMap(2, kernel=kernel).fit(DATA)
    features = KernelMap(n_components=2, features=NystromFeatures(7, kernel=kernel)).fit(DATA)
    assert features.transform(DATA) == pytest.approx(exact.transform(DATA), rel=1e-7, abs=1e-9)


def test_features_are_not_copied():
    features = np.random.default_rng(0).standard_normal((20000, 100))
    ranks = np.argsort(features[:, :4], axis=1)
    tracemalloc.start()
    KernelMap(n_components=2, features=Precomputed(features)).fit(ranks)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < features.nbytes / 2


def test_all_components_preserve_distances():
    coordinates = KernelMap(6, kernel=Mallows(nu=NU)).fit_transform(DATA)
    gaps = np.linalg.norm(coordinates[:, None] - coordinates[None], axis=2)
    assert gaps == pytest.approx(kernel_distances(DATA, Mallows(nu=NU)), rel=1e-7, abs=1e-7)
    assert np.array(COUNTS) @ coordinates == pytest.approx(np.zeros(6), abs=1e-12)


def test_iterative_eigensolver_matches_dense():
    rng = np.random.default_rng(2)
    X = Rankings(np.argsort(rng.random((260, 7)), axis=1), counts=rng.integers(1, 9, 260))
    K = np.repeat(np.repeat(Mallows(nu=NU).gram(X), X.counts, axis=0), X.counts, axis=1)
    mine = KernelMap(3, kernel=Mallows(nu=NU))
    coordinates = mine.fit_transform(X)
    theirs = KernelPCA(3, kernel="precomputed", eigen_solver="dense").fit(K)
    assert mine.eigenvalues_ == pytest.approx(theirs.eigenvalues_, rel=1e-10)
    assert_equal_up_to_sign(np.repeat(coordinates, X.counts, axis=0), theirs.transform(K), rel=1e-6)
    assert KernelMap(3, kernel=Mallows(nu=NU)).fit_transform(X).tolist() == coordinates.tolist()
    assert KernelMap(40, kernel=Mallows(nu=NU)).fit(X).eigenvalues_[:3] == pytest.approx(mine.eigenvalues_, rel=1e-10)


def test_largest_coordinate_is_positive():
    assert fixed_signs(np.array([[1.0, -3.0, 0.0], [-2.0, 2.0, 0.0]])).tolist() == [-1, -1, 1]
    assert fixed_signs(np.array([[1.0], [-1.0 - 1e-12]])).tolist() == [1]
    coordinates = KernelMap(4, kernel=Mallows(nu=NU)).fit_transform(DATA)
    assert (coordinates[np.abs(coordinates).argmax(axis=0), range(4)] > 0).all()


@pytest.mark.parametrize("n", [3, 230])
def test_equal_rankings_are_one_point(n):
    X = np.array([[0, 1, 2, -1]] * n)
    for mine in (KernelMap(kernel=Mallows(nu=NU)), KernelMap(features=PairFeatures())):
        assert mine.fit_transform(X).tolist() == [[0, 0]] * n
        assert mine.transform(X).tolist() == [[0, 0]] * n
        assert mine.explained_variance_ratio_.tolist() == [0, 0]


def test_parameters():
    mine = clone(KernelMap(3, kernel=Mallows(nu=0.1))).set_params(kernel__nu=0.5)
    assert mine.kernel == Mallows(nu=0.5)
    with pytest.raises(NotFittedError):
        mine.transform(DATA)
    assert mine.fit(DATA).get_feature_names_out().tolist() == ["kernelmap0", "kernelmap1", "kernelmap2"]
    assert mine.n_features_in_ == 5
    assert KernelMap().get_params()["kernel__nu"] == "median"
    template = PairFeatures()
    assert KernelMap(features=template).fit(DATA).features_ is not template


def test_items_are_matched_by_name():
    named = Rankings(DATA.ranks, items=list("abcde"))
    mine = KernelMap(kernel=Mallows(nu=NU)).fit(named)
    there = mine.transform(named)
    assert mine.transform(named.with_items(list("badce"))) == pytest.approx(there, rel=1e-12)
    assert mine.transform(named.ranks).tolist() == there.tolist()
    with pytest.raises(RankingError, match="X has 2 features"):
        mine.transform([[0, 1]])


@pytest.mark.parametrize("n_components", [0, 8])
def test_wrong_number_of_components(n_components):
    with pytest.raises(ValueError, match="n_components"):
        KernelMap(n_components, kernel=Kendall()).fit(DATA)


def test_features_must_be_a_transformer():
    with pytest.raises(TypeError, match="features"):
        KernelMap(features=3).fit(DATA)


@needs_data
def test_sushi():
    X = sushi()[:400]
    mine = KernelMap(kernel=Mallows(nu="median")).fit(X)
    assert mine.transform(X.top(4)).shape == (400, 2)
    assert 0 < mine.explained_variance_ratio_[1] <= mine.explained_variance_ratio_[0] < 1

import itertools
import math
import pickle

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

import rankernel as rk
from rankernel import NystromFeatures
from rankernel.learn.nystrom import randomly_pivoted_cholesky

# ---------------------------------------------------------------------- oracle


def residual(A, pivots):
    """The residual of a matrix after eliminating pivots one by one."""
    n = len(A)
    left = [list(map(float, row)) for row in A]
    for s in pivots:
        h = left[s][s]
        left = [[left[i][j] - left[i][s] * left[s][j] / h for j in range(n)] for i in range(n)]
    return left


def pivot_distribution(A, weights, k):
    """The probability of each sequence of k pivots, by the definition of randomly pivoted Cholesky."""
    distribution = {}
    for sequence in itertools.permutations(range(len(A)), k):
        p = 1.0
        for step, s in enumerate(sequence):
            left = residual(A, sequence[:step])
            masses = [w * max(left[i][i], 0.0) for i, w in enumerate(weights)]
            p *= masses[s] / sum(masses)
        distribution[sequence] = p
    return distribution


# ---------------------------------------------------------------------- the factorisation


def factorised(A, weights, k, seed, tol=0.0):
    return randomly_pivoted_cholesky(
        lambda i, j: A[i][:, j], A.diagonal().copy(), np.asarray(weights, float), k, tol, np.random.default_rng(seed)
    )


def test_distribution_of_the_pivots():
    rng = np.random.default_rng(0)
    B = rng.normal(size=(4, 4)) * [1.0, 0.7, 0.4, 0.2]
    A, weights, runs = B @ B.T, [3, 1, 2, 1], 1000
    distribution = pivot_distribution(A, weights, 3)
    assert sum(distribution.values()) == pytest.approx(1, rel=1e-12)
    expanded = np.repeat(np.arange(4), weights)
    for matrix, counts, row_of in ((A, weights, np.arange(4)), (A[expanded][:, expanded], np.ones(7), expanded)):
        counted = dict.fromkeys(distribution, 0)
        with threadpool_limits(1):  # tiny matrices
            found = [factorised(matrix, counts, 3, seed).pivots for seed in range(runs)]
        for pivots in found:
            counted[tuple(row_of[pivots].tolist())] += 1
        for sequence, p in distribution.items():
            assert abs(counted[sequence] / runs - p) < 5 * math.sqrt(p * (1 - p) / runs) + 1e-9


def test_factor_residual_and_errors():
    rng = np.random.default_rng(1)
    B = rng.normal(size=(30, 30)) * 0.8 ** np.arange(30)
    A, weights = B @ B.T, rng.integers(1, 5, 30)
    found = factorised(A, weights, 12, 0)
    assert len(set(found.pivots.tolist())) == 12
    left = np.array(residual(A, found.pivots))
    np.testing.assert_allclose(found.factor @ found.factor.T, A - left, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(found.residual, left.diagonal(), rtol=1e-9, atol=1e-11)
    assert (np.triu(found.factor[found.pivots], 1) == 0).all()
    for size, error in enumerate(found.error_path):
        expected = weights @ np.diagonal(residual(A, found.pivots[:size]))
        assert error == pytest.approx(expected, rel=1e-10)
    assert (np.diff(found.error_path) < 0).all()


def test_tolerance():
    A = np.diag([8.0, 4.0, 2.0, 1.0, 0.5])
    for seed in range(20):
        found = factorised(A, np.ones(5), 5, seed, tol=0.3)
        assert found.error_path[-1] <= 0.3 * 15.5 < found.error_path[-2]
        np.testing.assert_allclose(found.error_path[-1], found.residual.sum())


def test_low_rank_matrix():
    B = np.random.default_rng(2).normal(size=(50, 6))
    found = factorised(B @ B.T, np.ones(50), 40, 0)
    assert len(found.pivots) == 6
    np.testing.assert_allclose(found.factor @ found.factor.T, B @ B.T, atol=1e-11)
    assert len(factorised(np.zeros((3, 3)), np.ones(3), 2, 0).pivots) == 0


# ---------------------------------------------------------------------- the transformer


def ballots(n_rankings, n_items, seed, cut=None, unlisted="last"):
    rng = np.random.default_rng(seed)
    full = rk.Rankings(np.argsort(rng.random((n_rankings, n_items)), axis=1))
    cut = full if cut is None else full.top(cut, unlisted=unlisted)
    return rk.Rankings(cut.ranks, counts=rng.integers(1, 4, n_rankings))


def test_exact_at_the_rank_of_the_kernel():
    X = np.array(list(itertools.permutations(range(4))))
    rows = [tuple(row) for row in X.tolist()]
    for kernel, oracle, rank in (
        (rk.Kendall(), naive.kendall_kernel, 6),
        (rk.Hamming(), naive.hamming_kernel, 10),
        (rk.Mallows(0.5), naive.mallows(0.5), 24),
    ):
        features = NystromFeatures(n_components=24, kernel=kernel)
        Z = features.fit_transform(X)
        assert Z.shape == (24, rank)
        np.testing.assert_allclose(Z @ Z.T, naive.gram(oracle, rows, rows), rtol=1e-12, atol=1e-12)
        assert features.trace_error_ < 1e-12 * features.trace_


@settings(max_examples=12, deadline=None)
@given(strategies.sized(strategies.any_ranking, low=2, high=4, length=6))
def test_features_match_brute_force(rows):
    X = np.array(rows)
    K = np.array(naive.gram(naive.mallows(0.6), rows, rows))
    features = NystromFeatures(n_components=2, kernel=rk.Mallows(0.6), method="exact").fit(X[:4])
    Z, pivots = features.transform(X), features.pivots_
    np.testing.assert_allclose(Z @ Z[pivots].T, K[:, pivots], rtol=1e-11, atol=1e-13)
    K_pivots = K[np.ix_(pivots, pivots)]
    best = K[:, pivots] @ np.linalg.solve(K_pivots, K[pivots])
    np.testing.assert_allclose(Z @ Z.T, best, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("cut", [None, 2])
def test_trace_error(cut):
    X = ballots(60, 6, 0, cut)
    K = rk.Mallows(0.2).gram(X)
    errors = []
    for size in (1, 5, 15, 40):
        features = NystromFeatures(n_components=size, kernel=rk.Mallows(0.2), random_state=1)
        Z = features.fit_transform(X)
        left = K - Z @ Z.T
        assert np.linalg.eigvalsh(left).min() > -1e-12 * np.trace(K)
        np.testing.assert_allclose(features.residual_, left.diagonal(), atol=1e-12)
        np.testing.assert_allclose(features.trace_, X.counts @ K.diagonal(), rtol=1e-12)
        np.testing.assert_allclose(features.trace_error_, X.counts @ left.diagonal(), rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(features.transform(X), Z, rtol=1e-9, atol=1e-11)
        errors.append(features.trace_error_)
    assert errors == sorted(errors, reverse=True)


def test_counts_are_repeated_rows():
    X = ballots(25, 5, 1, cut=2)
    rows = np.repeat(np.arange(len(X)), X.counts)
    by_count = NystromFeatures(8, kernel=rk.Mallows(0.3)).fit(X)
    by_row = NystromFeatures(8, kernel=rk.Mallows(0.3)).fit(X.ranks[rows])
    np.testing.assert_array_equal(X.ranks[by_count.pivots_], X.ranks[rows][by_row.pivots_])
    np.testing.assert_array_equal(by_count.transform(X)[rows], by_row.transform(X.ranks[rows]))
    assert by_count.trace_error_ == by_row.trace_error_
    assert len(by_row.residual_) == X.n_voters


@pytest.mark.parametrize("kernel", [rk.Mallows(0.1) * rk.Kendall().exp(), rk.Exponential("footrule", 0.1)], ids=str)
def test_new_rankings_share_the_draws_of_training_rankings(kernel):
    X = ballots(40, 8, 2, cut=3, unlisted="free")
    features = NystromFeatures(10, kernel=kernel, method=rk.MonteCarlo(8, rng=5)).fit(X[:25])
    assert features.plan_.method.control_variates != "auto"
    K = kernel.gram(X, method=features.plan_.method)
    Z, pivots = features.transform(X), features.pivots_
    np.testing.assert_allclose(Z @ Z[pivots].T, K[:, pivots], rtol=1e-9, atol=1e-12)
    assert np.linalg.eigvalsh(K - Z @ Z.T).min() > -1e-11 * np.trace(K)


def test_auto_is_resolved_by_training_data():
    incomplete, full = ballots(30, 12, 3, cut=4, unlisted="free"), ballots(10, 12, 4)
    features = NystromFeatures(5, kernel=rk.Exponential("footrule", 0.05)).fit(incomplete)
    assert isinstance(features.plan_.method, rk.MonteCarlo)
    assert features.transform(full).shape == (10, 5)
    exact = NystromFeatures(5, kernel=rk.Exponential("footrule", 0.05)).fit(full)
    assert exact.plan_.method == rk.Exact()
    with pytest.warns(rk.SamplingWarning, match="30 of 30"):
        Z = exact.transform(incomplete)
    with pytest.warns(rk.SamplingWarning, match="1 of 1"):
        np.testing.assert_allclose(exact.transform(incomplete[7:8]), Z[7:8], rtol=1e-12)
    with pytest.raises(rk.ExactnessError, match="MonteCarlo"):
        NystromFeatures(5, kernel=rk.Exponential("footrule", 0.05), method="exact").fit(full).transform(incomplete)


def test_median_is_resolved_by_training_data():
    X = ballots(30, 6, 5)
    features = NystromFeatures(5, kernel=rk.Mallows()).fit(X)
    assert features.kernel_ == rk.Mallows().resolve(X)
    Z = features.transform(X[:3])
    # Zeros are rounding errors of other sizes where fewer rows are solved for at once.
    np.testing.assert_allclose(
        Z, NystromFeatures(5, kernel=features.kernel_).fit_transform(X)[:3], rtol=1e-10, atol=1e-14
    )


def test_items_are_matched_by_name():
    named = rk.Rankings([[0, 1, 2], [2, 1, 0], [1, 0, 2]], items=["a", "b", "c"])
    features = NystromFeatures(2, kernel=rk.Kendall()).fit(named)
    np.testing.assert_array_equal(features.transform(named.ranks), features.transform(named))
    np.testing.assert_array_equal(features.transform(named.with_items(["b", "a", "c"])), features.transform(named))
    with pytest.raises(rk.RankingError, match="X has other items"):
        features.transform(rk.Rankings(named.ranks, items=["b", "a", "d"]))
    with pytest.raises(ValueError, match="4 features"):
        features.transform([[0, 1, 2, 3]])


def test_frames_in_and_out():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"tea": [0, 1, 2], "milk": [1, 0, None], "juice": [2, 2, 0]})
    with pytest.raises(rk.RankingError, match=r"row 2, item 'milk' is missing \(NaN\).*unlisted='last'.*'free'"):
        NystromFeatures(2, kernel=rk.Kendall()).fit(frame)
    features = NystromFeatures(2, kernel=rk.Kendall(), unlisted="last").set_output(transform="pandas")
    out = features.fit_transform(frame)
    assert list(out.columns) == ["nystromfeatures0", "nystromfeatures1"]
    assert features.feature_names_in_.tolist() == ["tea", "milk", "juice"]
    with pytest.raises(ValueError, match="feature names"):
        features.transform(frame[["milk", "tea", "juice"]])


def test_grid_search_over_nu():
    X = ballots(60, 5, 6)
    y = X.ranks[:, 0] < X.ranks[:, 1]
    pipeline = make_pipeline(NystromFeatures(20, kernel=rk.Mallows(1.0)), LogisticRegression())
    grid = {"nystromfeatures__kernel__nu": [0.1, 1.0], "nystromfeatures__n_components": [5, 20]}
    with threadpool_limits(1):
        search = GridSearchCV(pipeline, grid, cv=2).fit(X.ranks, y)
    assert search.best_score_ > 0.8
    chosen = search.best_estimator_[0]
    assert chosen.kernel == rk.Mallows(search.best_params_["nystromfeatures__kernel__nu"])


def test_clone_pickle_and_parameters():
    features = NystromFeatures(4, kernel=2.0 * rk.Mallows(0.3), random_state=7)
    assert features.get_params()["kernel__kernel__nu"] == 0.3
    copy = clone(features).set_params(kernel__scale=3.0, n_components=5)
    assert (copy.kernel, copy.n_components) == (3.0 * rk.Mallows(0.3), 5)
    assert features.kernel == 2.0 * rk.Mallows(0.3)
    X = ballots(20, 5, 7)
    fitted = pickle.loads(pickle.dumps(features.fit(X)))
    np.testing.assert_array_equal(fitted.transform(X), features.transform(X))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_components": 0}, "n_components=0"),
        ({"tol": 1.5}, "tol=1.5"),
        ({"method": "fast"}, "method='fast'"),
    ],
)
def test_wrong_parameters(wrong, message):
    with pytest.raises(ValueError, match=message):
        NystromFeatures(**wrong).fit([[0, 1], [1, 0]])

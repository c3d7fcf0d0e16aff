"""Rankings as answers: by brute force over all rankings, by scikit-learn's ridge regression, by its conventions."""

import itertools
import pickle

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import rankernel as rk
from rankernel import KernelRankingRegressor, kernel_consensus


def rho(x, y):
    return naive.spearman_kernel(x, y) / naive.spearman_kernel(x, x) if len(x) > 1 else 1.0


OUTPUTS = [
    (rk.Kendall(), naive.kendall_kernel),
    (rk.Spearman(), rho),
    (rk.Hamming(), naive.hamming_kernel),
    (2.5 * rk.RankBiasedOverlap(0.7), lambda x, y: 2.5 * naive.rank_biased_overlap(0.7)(x, y)),
    (rk.DCG(depth=2), naive.positional(lambda p, q: (p < 2) * (q < 2) / np.log2(p + 2) / np.log2(q + 2))),
]
EVERY_OUTPUT = pytest.mark.parametrize(("kernel", "oracle"), OUTPUTS, ids=[str(kernel) for kernel, _ in OUTPUTS])
LABELS = [(0, 1, 2, 3), (1, 0, 1, 1), (-1, 1, 0, -1), (0, 0, 1, 1), (3, 2, 1, 0), (-1, -1, -1, 0), (2, 0, 1, 3)]


def covariates(n_rows, n_features=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features))


def linear_labels(n_rows, n_items, seed=0):
    """Covariates, and rankings by linear functions of them."""
    X = covariates(n_rows, seed=seed)
    return X, rk.Rankings.from_scores(X @ np.random.default_rng(seed + 1).normal(size=(3, n_items)))


def weights_on_labels(X, new, alpha, gamma, sample_weight=None):
    """How much each label counts in each prediction, by scikit-learn."""
    mass = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight)
    ridge = KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma)
    alphas = ridge.fit(X, np.eye(len(X)), sample_weight=sample_weight).predict(new)
    return alphas + (1 - alphas.sum(axis=1, keepdims=True)) * mass / mass.sum()


# ---------------------------------------------------------------------- by brute force


@EVERY_OUTPUT
@settings(max_examples=15)
@given(labels=strategies.sized(strategies.any_ranking, low=1, high=4, length=5), seed=st.integers(0, 99))
def test_predictions_are_the_nearest_of_all_rankings(kernel, oracle, labels, seed):
    X, new = covariates(5, seed=seed), covariates(2, seed=seed + 100)
    model = KernelRankingRegressor(kernel, gamma=0.3, alpha=0.1).fit(X, np.array(labels))
    found = model.decode(new)
    every = list(itertools.permutations(range(len(labels[0]))))
    means = naive.gram(oracle, every, labels)
    for row, weights in enumerate(weights_on_labels(X, new, 0.1, 0.3)):
        values = np.asarray(means) @ weights
        chosen = every.index(tuple(found.ranks[row].tolist()))
        assert values[chosen] == pytest.approx(values.max(), abs=1e-10)
        assert found.values[row] == pytest.approx(values[chosen], abs=1e-10)
    assert found.exact.all()


@EVERY_OUTPUT
def test_shares_are_those_of_the_weighted_labels(kernel, oracle):
    X, new = covariates(len(LABELS)), covariates(3, seed=5)
    model = KernelRankingRegressor(kernel, gamma=0.3, alpha=0.5).fit(X, np.array(LABELS))
    completions = [list(naive.completions(label)) for label in LABELS]
    before = [[[np.mean([c[a] < c[b] for c in own]) for b in range(4)] for a in range(4)] for own in completions]
    expected = np.einsum("ij,jab->iab", weights_on_labels(X, new, 0.5, 0.3), np.array(before))
    off = ~np.eye(4, dtype=bool)
    shares = model.predict_scores(new)
    np.testing.assert_allclose(shares[:, off], np.clip(expected, 0, 1)[:, off], atol=1e-10)
    np.testing.assert_array_equal(shares[:, ~off], 0.5)


@EVERY_OUTPUT
@settings(max_examples=20)
@given(rows=strategies.sized(strategies.any_ranking, low=1, high=4, length=4))
def test_the_consensus_is_nearest_to_the_mean_embedding(kernel, oracle, rows):
    counts = [3, 1, 2, 1]
    found = kernel_consensus(rk.Rankings(rows, counts=counts), kernel)
    every = list(itertools.permutations(range(len(rows[0]))))
    weights = np.array(counts) / 7
    squares = (
        np.array([oracle(x, x) for x in every])
        - 2 * np.asarray(naive.gram(oracle, every, rows)) @ weights
        + weights @ np.asarray(naive.gram(oracle, rows, rows)) @ weights
    )
    assert found.distance2 == pytest.approx(squares.min(), abs=1e-10)
    assert found.distance2 == pytest.approx(squares[every.index(tuple(found.ranking.ranks[0].tolist()))], abs=1e-10)
    assert found.exact
    assert found.gap == 0


def test_long_cycles_have_a_stated_gap():
    """Seven items in a circle, all pairs of neighbours 2 to 1: too long for a limit of 3."""
    circle = rk.Rankings([np.roll(range(7), shift).tolist() for shift in range(7)])
    exact, searched = (kernel_consensus(circle, rk.Kendall(), limit=limit, n_starts=1) for limit in (7, 3))
    assert exact.exact
    assert not searched.exact
    assert searched.gap > 0
    assert "NOT proven" in searched.details
    assert searched.distance2 - searched.gap <= exact.distance2 <= searched.distance2 + 1e-12
    model = KernelRankingRegressor(limit=3).fit(np.zeros((7, 1)), circle)
    assert model.decode([[0.0]]).gaps[0] == pytest.approx(searched.gap / 2)


# ---------------------------------------------------------------------- against what is known by other names


def test_consensus_by_other_names():
    ballots = rk.datasets.mallows(200, 7, 0.3, seed=0).top(4)
    kemeny, borda = rk.kemeny(ballots), rk.borda(ballots, ties="items")
    assert kernel_consensus(ballots, rk.Kendall()).ranking == kemeny.ranking
    assert kernel_consensus(ballots, rk.Spearman()).ranking == borda.ranking
    halves = np.arange(200) % 2
    found = rk.cluster_consensus(ballots, halves, rule=lambda own: kernel_consensus(own, rk.Hamming()))
    assert found[1].ranking == kernel_consensus(ballots[1::2], rk.Hamming()).ranking


def test_clusters_are_shown_by_the_kernel_they_were_found_with():
    from rankernel.analysis.clustering import consensus_rule

    ballots = rk.datasets.mallows(50, 5, 0.3, seed=2)
    kernel = 2 * rk.RankBiasedOverlap(0.6)
    words, consensus = consensus_rule(kernel, 5)
    assert words == "the ranking nearest to its mean"
    assert consensus(ballots) == kernel_consensus(ballots, kernel).ranking
    words, consensus = consensus_rule(rk.Mallows(0.1), 5)  # there is no way back from its features
    assert words == "the order of its mean places"
    assert consensus(ballots) == rk.borda(ballots).ranking


def test_consensus_of_partial_orders():
    users = rk.Preferences.from_pairs(
        [[("a", "b"), ("c", "d")], [("a", "d")], [("c", "b")]], items=["a", "b", "c", "d"]
    )
    assert kernel_consensus(users, rk.Kendall()).distance2 == pytest.approx(
        min(
            rk.Kendall().gram([x])[0, 0]
            - 2 * rk.Kendall().gram(rk.Rankings([x], items=["a", "b", "c", "d"]), users).mean()
            + rk.Kendall().gram(users).mean()
            for x in itertools.permutations(range(4))
        )
    )


def test_weights_counts_and_repeated_rows_are_the_same():
    X, y = linear_labels(30, 4)
    times = np.random.default_rng(3).integers(0, 4, 30)
    repeated = np.repeat(np.arange(30), times)
    models = [
        KernelRankingRegressor(alpha=0.2).fit(X[repeated], y[repeated]),
        KernelRankingRegressor(alpha=0.2).fit(X, y, sample_weight=times),
        KernelRankingRegressor(alpha=0.2).fit(X, rk.Rankings(y.ranks, counts=np.maximum(times, 1)), times > 0),
    ]
    expected = models[0].predict_scores(X)
    for model in models[1:]:
        np.testing.assert_allclose(model.predict_scores(X), expected, atol=1e-9)
    assert models[1].score(X, y, sample_weight=times) == pytest.approx(models[0].score(X[repeated], y[repeated]))


def test_skipped_pairs_are_learnt_from_the_rows_that_order_them():
    """One ridge regression a pair, by scikit-learn; the pair (2, 3) is ordered by nobody."""
    labels = np.array([[0, 1, 2, -1], [1, 0, -1, -1], [0, 0, 1, -1], [-1, 1, 0, -1], [-1, 0, -1, 1], [0, -1, -1, 1]])
    X, new = covariates(6), covariates(4, seed=9)
    model = KernelRankingRegressor(gamma=0.3, alpha=0.2, unknown="skip").fit(X, labels)
    shares = model.predict_scores(new)
    for a, b in itertools.combinations(range(4), 2):
        own = [i for i, row in enumerate(labels) if min(row[a], row[b]) >= 0 and row[a] != row[b]]
        expected = np.full(4, 0.5)
        if own:
            signs = np.sign(labels[own, b] - labels[own, a])
            ridge = KernelRidge(alpha=0.2, kernel="rbf", gamma=0.3).fit(X[own], signs - signs.mean())
            expected = np.clip((1 + signs.mean() + ridge.predict(new)) / 2, 0, 1)
        np.testing.assert_allclose(shares[:, a, b], expected, atol=1e-10)
    linear = KernelRankingRegressor(kernel="linear", unknown="skip").fit(X, labels).predict_scores(new)
    dual = KernelRankingRegressor(kernel="precomputed", unknown="skip").fit(X @ X.T, labels)
    np.testing.assert_allclose(linear, dual.predict_scores(new @ X.T), atol=1e-9)


def test_full_labels_know_every_pair():
    X, y = linear_labels(20, 4)
    mean, skip = (KernelRankingRegressor(unknown=unknown).fit(X, y).predict_scores(X) for unknown in ("mean", "skip"))
    np.testing.assert_allclose(skip, mean, atol=1e-10)


def test_both_sides_of_a_linear_model_agree():
    from scipy.sparse import csr_array

    X, y = linear_labels(40, 5)
    primal = KernelRankingRegressor(kernel="linear").fit(X, y.top(2))
    assert not hasattr(primal, "dual_coef_")
    dual = KernelRankingRegressor(kernel="precomputed").fit(X @ X.T, y.top(2))
    np.testing.assert_allclose(primal.predict_scores(X), dual.predict_scores(X @ X.T), atol=1e-9)
    sparse = KernelRankingRegressor(kernel="linear").fit(csr_array(X), y.top(2))
    np.testing.assert_allclose(sparse.predict_scores(csr_array(X)), primal.predict_scores(X), atol=1e-9)


def test_rankings_in_rankings_out():
    before = rk.datasets.mallows(80, 6, 0.1, seed=1)
    after = before.ranks[:, ::-1].copy()  # everything is turned around
    model = KernelRankingRegressor(kernel=rk.Mallows("median"), alpha=0.01).fit(before[:60], after[:60])
    assert model.score(before[60:], after[60:]) > 0.5
    by_matrix = KernelRankingRegressor(kernel="precomputed", alpha=0.01)
    plan = rk.Mallows("median").plan(before[:60])
    by_matrix.fit(plan.gram(), after[:60])
    new = before[60:]
    np.testing.assert_allclose(model.predict_scores(new), by_matrix.predict_scores(plan.against(new).gram()), atol=1e-9)


def test_a_callable_kernel_and_its_arguments():
    X, y = linear_labels(20, 3)
    model = KernelRankingRegressor(kernel=lambda a, b, power: (a @ b) ** power, kernel_params={"power": 2}).fit(X, y)
    other = KernelRankingRegressor(kernel="precomputed").fit((X @ X.T) ** 2, y)
    np.testing.assert_allclose(model.predict_scores(X), other.predict_scores((X @ X.T) ** 2), atol=1e-9)


def test_learning_from_the_tops_of_lists():
    X, y = linear_labels(400, 6)
    model = KernelRankingRegressor(kernel="rbf", gamma=0.2, alpha=0.1).fit(X[:300], y[:300].top(3))
    assert model.score(X[300:], y[300:]) > 0.8


# ---------------------------------------------------------------------- the score


def test_the_score_is_the_mean_of_tau():
    from scipy.stats import kendalltau

    X, y = linear_labels(50, 5)
    model = KernelRankingRegressor().fit(X[:25], y[:25])
    predicted = np.asarray(model.predict(X[25:]))
    expected = np.mean([kendalltau(a, b).statistic for a, b in zip(predicted, y.ranks[25:], strict=True)])
    assert model.score(X[25:], y[25:]) == pytest.approx(expected)


def test_the_score_of_partial_labels_is_that_of_the_pairs_they_order():
    X = np.zeros((2, 1))
    model = KernelRankingRegressor().fit(X, [[0, 1, 2, 3]] * 2)  # always predicts 0 > 1 > 2 > 3
    assert model.score(X[:1], [[0, 1, 1, -1]]) == 1.0
    assert model.score(X[:1], [[1, 0, 1, 1]]) == pytest.approx((2 - 1) / 3)
    assert model.score(X, [[1, 0, -1, -1], [0, 0, 0, 0]]) == -1.0
    with pytest.raises(rk.RankingError, match="nothing to score"):
        model.score(X[:1], [[0, 0, 0, 0]])


def test_names_of_items_are_kept_and_matched():
    X, y = linear_labels(20, 3)
    named = rk.Rankings(y.ranks, items=["x", "y", "z"])
    model = KernelRankingRegressor().fit(X, named)
    assert model.predict(X).items == ("x", "y", "z")
    assert model.score(X, named.with_items(["z", "x", "y"])) == model.score(X, named)
    with pytest.raises(rk.RankingError, match="give the same items"):
        model.score(X, rk.Rankings(y.ranks, items=["x", "y", "w"]))


# ---------------------------------------------------------------------- conventions of scikit-learn


def test_conventions():
    fractions = "feeds fractions, which are no ranks"
    failing = [
        "check_n_features_in",
        "check_n_features_in_after_fitting",
        "check_regressors_train",
        "check_regressor_data_not_an_array",
        "check_regressor_multioutput",
        "check_regressors_no_decision_function",
        "check_fit_idempotent",
        "check_fit_check_is_fitted",
    ]
    expected = dict.fromkeys(failing, fractions) | {"check_supervised_y_no_nan": "a missing rank is an item left open"}
    check_estimator(KernelRankingRegressor(), expected_failed_checks=expected, on_skip=None)


def test_grid_search_splits_rankings():
    X, y = linear_labels(60, 4)
    grid = {"alpha": [1e-3, 1e3], "output_kernel": [rk.Kendall(), rk.Spearman()]}
    search = GridSearchCV(KernelRankingRegressor(), grid, cv=3).fit(X, y)
    assert search.best_params_["alpha"] == 1e-3
    by_array = GridSearchCV(KernelRankingRegressor(), grid, cv=3).fit(X, y.ranks)
    np.testing.assert_array_equal(by_array.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"])
    predicted = cross_val_predict(KernelRankingRegressor(), X, y, cv=3)
    assert predicted.shape == (60, 4)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    assert isinstance(y_train, rk.Rankings)
    assert KernelRankingRegressor(alpha=0.01).fit(X_train, y_train).score(X_test, y_test) > 0.6


def test_pipelines_clones_and_pickles():
    X, y = linear_labels(100, 4)
    model = make_pipeline(Nystroem(n_components=30, random_state=0), KernelRankingRegressor(kernel="linear", alpha=0.1))
    fitted = clone(model).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.predict(X) == fitted.predict(X)
    of_rankings = make_pipeline(rk.NystromFeatures(rk.Mallows(0.1), 20), KernelRankingRegressor(kernel="linear"))
    assert of_rankings.fit(y, y.ranks).score(y, y.ranks) > 0.5
    on_rankings = KernelRankingRegressor(kernel=rk.Mallows(0.1)).fit(y, y)
    assert pickle.loads(pickle.dumps(on_rankings)).predict(y) == on_rankings.predict(y)


def test_a_singular_system_has_a_shortest_solution():
    X, y = np.ones((6, 1)), rk.Rankings([[0, 1]] * 4 + [[1, 0]] * 2)
    assert KernelRankingRegressor(alpha=0.0).fit(X, y).predict_scores([[1.0]])[0, 0, 1] == pytest.approx(4 / 6)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda X, y: KernelRankingRegressor(rk.Mallows(0.1)).fit(X, y),
            ValueError,
            r"Mallows\(nu=0.1\) has no decoder",
        ),
        (lambda X, y: KernelRankingRegressor(rk.Kendall() + rk.Hamming()).fit(X, y), ValueError, "has no decoder"),
        (lambda X, y: kernel_consensus(y, rk.DistanceInduced("kendall", [0, 1, 2])), ValueError, "has no decoder"),
        (lambda X, y: KernelRankingRegressor(alpha=-1).fit(X, y), ValueError, "alpha=-1 is not possible"),
        (lambda X, y: KernelRankingRegressor(unknown="drop").fit(X, y), ValueError, "unknown='drop' is not known"),
        (lambda X, y: KernelRankingRegressor(rk.Hamming(), unknown="skip").fit(X, y), ValueError, "skips pairs"),
        (lambda X, y: KernelRankingRegressor(limit=40).fit(X, y), ValueError, "limit=40 is not possible"),
        (lambda X, y: KernelRankingRegressor().fit(X, y[:3]), ValueError, "10 rows of covariates but 3 labels"),
        (lambda X, y: KernelRankingRegressor().fit(X, y, np.zeros(10)), ValueError, "weights|Sample weights"),
        (lambda X, y: KernelRankingRegressor().fit(X, y).predict(X[:, :2]), ValueError, "expecting 3 features"),
        (lambda X, y: KernelRankingRegressor().fit(X, y).score(X, [[0, 1]] * 10), ValueError, "give the same items"),
        (lambda X, y: KernelRankingRegressor().predict(X), Exception, "not fitted"),
        (lambda X, y: kernel_consensus(y[:0], rk.Kendall()), ValueError, "there are no rankings"),
    ],
)
def test_what_cannot_be_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make(*linear_labels(10, 3))

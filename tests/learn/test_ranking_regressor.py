"""Label ranking against brute force over all rankings and scikit-learn's ridge regression."""

import itertools
import pickle
from functools import cache

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
from rankernel.models.consensus import Decoder, best_assignment


def rho(x, y):
    return naive.spearman_kernel(x, y) / naive.spearman_kernel(x, x) if len(x) > 1 else 1.0


OUTPUTS = [
    (rk.Kendall(), naive.kendall_kernel),
    (rk.Spearman(), rho),
    (rk.Hamming(), naive.hamming_kernel),
    (2.5 * rk.RankBiasedOverlap(0.7), lambda x, y: 2.5 * naive.rank_biased_overlap(0.7)(x, y)),
    (rk.DCG(depth=2), naive.positional(lambda p, q: (p < 2) * (q < 2) / np.log2(p + 2) / np.log2(q + 2))),
    (
        rk.Hamming() + 5 * rk.Spearman() + 0.5 * rk.AverageOverlap(2) + 1,
        lambda x, y: naive.hamming_kernel(x, y) + 5 * rho(x, y) + 0.5 * naive.average_overlap(2)(x, y) + 1,
    ),
    (2 * rk.Kendall() + (rk.Kendall() + 3), lambda x, y: 3 * naive.kendall_kernel(x, y) + 3),
]
EVERY_OUTPUT = pytest.mark.parametrize(
    ("kernel", "oracle"),
    [pytest.param(kernel, cache(oracle), id=str(kernel)) for kernel, oracle in OUTPUTS],  # of few full rankings
)
LABELS = [(0, 1, 2, 3), (1, 0, 1, 1), (-1, 1, 0, -1), (0, 0, 1, 1), (3, 2, 1, 0), (-1, -1, -1, 0), (2, 0, 1, 3)]


def covariates(n_rows, n_features=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features))


def linear_labels(n_rows, n_items, seed=0):
    """Covariates, and rankings by linear functions of them."""
    X = covariates(n_rows, seed=seed)
    return X, rk.Rankings.from_scores(X @ np.random.default_rng(seed + 1).normal(size=(3, n_items)))


def weights_on_labels(X, new, alpha, gamma, sample_weight=None):
    """The weight of each label in each prediction, by scikit-learn."""
    mass = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight)
    ridge = KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma)
    alphas = ridge.fit(X, np.eye(len(X)), sample_weight=sample_weight).predict(new)
    return alphas + (1 - alphas.sum(axis=1, keepdims=True)) * mass / mass.sum()


# ---------------------------------------------------------------------- by brute force


@EVERY_OUTPUT
@settings(max_examples=15)
@given(labels=strategies.sized(strategies.any_ranking, low=1, high=4, length=5), seed=st.integers(0, 99))
def test_predictions_are_the_nearest_rankings(kernel, oracle, labels, seed):
    X, new = covariates(5, seed=seed), covariates(2, seed=seed + 100)
    model = KernelRankingRegressor(0.1, kernel="rbf", output_kernel=kernel, gamma=0.3, prior=np.inf)
    model.fit(X, np.array(labels))
    found = model.decode(new)
    every = list(itertools.permutations(range(len(labels[0]))))
    means = naive.gram(oracle, every, labels)
    for row, weights in enumerate(weights_on_labels(X, new, 0.1, 0.3)):
        values = np.asarray(means) @ weights
        chosen = every.index(tuple(found.ranks[row].tolist()))
        assert values[chosen] == pytest.approx(values.max(), abs=1e-10)
        assert found.values[row] == pytest.approx(values[chosen], abs=1e-10)
    assert (found.gaps == 0).all()


@EVERY_OUTPUT
def test_scores_match_brute_force(kernel, oracle):
    X, new = covariates(len(LABELS)), covariates(3, seed=5)
    model = KernelRankingRegressor(0.5, kernel="rbf", output_kernel=kernel, gamma=0.3, prior=np.inf)
    model.fit(X, np.array(LABELS))
    completions = [list(naive.completions(label)) for label in LABELS]
    before = [[[np.mean([c[a] < c[b] for c in own]) for b in range(4)] for a in range(4)] for own in completions]
    expected = np.einsum("ij,jab->iab", weights_on_labels(X, new, 0.5, 0.3), np.array(before))
    off = ~np.eye(4, dtype=bool)
    scores = model.predict_scores(new)
    np.testing.assert_allclose(scores[:, off], np.clip(expected, 0, 1)[:, off], atol=1e-10)
    np.testing.assert_array_equal(scores[:, ~off], 0.5)


@EVERY_OUTPUT
@settings(max_examples=20)
@given(rows=strategies.sized(strategies.any_ranking, low=1, high=4, length=4))
def test_consensus_is_nearest_to_the_mean_embedding(kernel, oracle, rows):
    counts = [3, 1, 2, 1]
    found = kernel_consensus(rk.Rankings(rows, counts=counts), kernel)
    every = list(itertools.permutations(range(len(rows[0]))))
    weights = np.array(counts) / 7
    squares = (
        np.array([oracle(x, x) for x in every])
        - 2 * np.asarray(naive.gram(oracle, every, rows)) @ weights
        + weights @ np.asarray(naive.gram(oracle, rows, rows)) @ weights
    )
    assert found.cost == pytest.approx(squares.min(), abs=1e-10)
    assert found.cost == pytest.approx(squares[every.index(tuple(found.ranking.ranks[0].tolist()))], abs=1e-10)
    assert found.exact
    assert found.gap == 0


def test_ties_are_broken_by_mean_rank():
    """The kernels ignore positions beyond their depth, and all labels are equal."""
    everybody = rk.Rankings([[6, 5, 4, 3, 2, 1, 0]] * 3)
    for kernel in (rk.AverageOverlap(2), rk.DCG(depth=1), rk.RankBiasedOverlap(0.5, 3), rk.Positional(in_threes)):
        found = kernel_consensus(everybody, kernel)
        assert found.ranking.ranks.tolist() == [[6, 5, 4, 3, 2, 1, 0]]
        assert found.exact
        model = KernelRankingRegressor(output_kernel=kernel).fit(np.zeros((3, 1)), everybody)
        assert model.predict([[1.0]]).ranks.tolist() == [[6, 5, 4, 3, 2, 1, 0]]


def test_tied_orders_are_broken_by_mean_rank():
    """The cycle a > b > c > a can be broken anywhere; c has the largest margin over d."""
    leads = {(0, 1): 0.2, (1, 2): 0.2, (0, 2): -0.2, (0, 3): 0.5, (1, 3): 0.1, (2, 3): 0.9}
    found = Decoder(rk.Kendall(), 4).decode(np.array([[leads[pair] for pair in itertools.combinations(range(4), 2)]]))
    assert (found.gaps == 0).all()
    assert found.ranks.tolist() == [[1, 2, 0, 3]]


def in_threes(n):
    """Three consecutive positions are equal."""
    return np.equal.outer(np.arange(n) // 3, np.arange(n) // 3).astype(float)


@given(st.integers(1, 5), st.integers(0, 10**6))
@settings(max_examples=60)
def test_tied_assignments_are_broken_by_mean_rank(n, seed):
    rng = np.random.default_rng(seed)
    worth, means = rng.integers(0, 3, (n, n)) * rng.choice([0.1, 1 / 3, 7.0]), rng.random(n)
    found = best_assignment(worth, means)
    totals = {places: sum(worth[range(n), places]) for places in itertools.permutations(range(n))}
    best = [places for places, total in totals.items() if total > max(totals.values()) - 1e-9]
    assert tuple(found.tolist()) == max(best, key=lambda places: sum(means * places))


def random_leads(n_items, seed=0):
    """Margins whose majority relation is one cycle."""
    margins = np.random.default_rng(seed).normal(size=(n_items, n_items))
    return margins - margins.T


def test_gap_bounds_the_loss_of_long_cycles():
    first, second = np.triu_indices(12, 1)
    seen = np.array([random_leads(12, seed)[first, second] for seed in range(30)])
    exact, searched = (Decoder(rk.Kendall(), 12, limit, n_starts=1).decode(seen) for limit in (12, 3))
    loss = exact.values - searched.values
    assert (exact.gaps == 0).all()
    assert (searched.gaps >= loss - 1e-12).all()
    assert (loss > 0.3 * searched.gaps)[searched.gaps > 0].any()  # the bound is not loose
    assert (loss[searched.gaps == 0] <= 1e-12).all()
    tied = 2 * Decoder(rk.Kendall(), 12, 3, n_starts=1).decode(seen).gaps
    np.testing.assert_allclose(Decoder(2 * rk.Kendall(), 12, 3, n_starts=1).decode(seen).gaps, tied, rtol=1e-12)


def test_gap_of_components():
    """A cycle of seven items before one of three: only the longer one is solved by local search."""
    leads = np.ones((10, 10))
    leads[:7, :7] = random_leads(7, seed=4) / 10
    leads[7:, 7:] = [[0, 1, -1], [-1, 0, 1], [1, -1, 0]]
    leads[7:, :7] = -1
    first, second = np.triu_indices(10, 1)
    whole = Decoder(rk.Kendall(), 10, limit=4, n_starts=1).decode(leads[None, first, second])
    first, second = np.triu_indices(7, 1)
    part = Decoder(rk.Kendall(), 7, limit=4, n_starts=1).decode(leads[None, first, second])
    assert part.gaps[0] > 0
    assert whole.gaps[0] * 45 == pytest.approx(part.gaps[0] * 21, rel=1e-12)  # over all pairs


def test_gap_of_a_consensus():
    circle = rk.Rankings([np.roll(range(7), shift).tolist() for shift in range(7)], counts=[9, 4, 6, 2, 7, 1, 3])
    exact, searched = (kernel_consensus(circle, rk.Kendall(), limit=limit, n_starts=1) for limit in (7, 3))
    assert exact.exact
    assert not searched.exact
    assert "NOT proven" in searched.details
    assert searched.cost - searched.gap <= exact.cost <= searched.cost + 1e-12


def test_cycles_of_sixteen_are_solved():
    first, second = np.triu_indices(16, 1)
    assert (Decoder(rk.Kendall(), 16).decode(random_leads(16)[None, first, second]).gaps == 0).all()


# ---------------------------------------------------------------------- equivalent methods


def test_consensus_matches_kemeny_and_borda():
    ballots = rk.datasets.mallows(200, 7, 0.3, rng=0).top(4)
    kemeny, borda = rk.kemeny(ballots), rk.borda(ballots, ties="items")
    assert kernel_consensus(ballots, rk.Kendall()).ranking == kemeny.ranking
    assert kernel_consensus(ballots, rk.Spearman()).ranking == borda.ranking
    halves = np.arange(200) % 2
    found = rk.cluster_consensus(ballots, halves, rule=lambda own: kernel_consensus(own, rk.Hamming()))
    assert found[1].ranking == kernel_consensus(ballots[1::2], rk.Hamming()).ranking


def test_report_uses_the_consensus_of_the_kernel():
    from rankernel.reports.ballots import Source, distinct_ballots
    from rankernel.reports.clusters import consensus_rule

    ballots = rk.datasets.mallows(50, 5, 0.3, rng=2)
    whole = distinct_ballots(Source(ballots))
    kernel = 2 * rk.RankBiasedOverlap(0.6)
    words, consensus = consensus_rule(kernel, whole)
    assert words == "consensus_kernel"
    assert consensus(ballots) == kernel_consensus(ballots, kernel).ranking
    words, consensus = consensus_rule(rk.Mallows(0.1), whole)  # there is no way back from its features
    assert words == "consensus_borda"
    assert consensus(ballots) == rk.borda(ballots).ranking


def test_consensus_of_partial_orders():
    users = rk.Preferences.from_pairs(
        [[("a", "b"), ("c", "d")], [("a", "d")], [("c", "b")]], items=["a", "b", "c", "d"]
    )
    assert kernel_consensus(users, rk.Kendall()).cost == pytest.approx(
        min(
            rk.Kendall().gram([x])[0, 0]
            - 2 * rk.Kendall().gram(rk.Rankings([x], items=["a", "b", "c", "d"]), users).mean()
            + rk.Kendall().gram(users).mean()
            for x in itertools.permutations(range(4))
        )
    )


def test_weights_and_counts_are_repeated_rows():
    X, y = linear_labels(30, 4)
    y = y.top(2)
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


PARTLY = np.array([[0, 1, 2, -1], [1, 0, -1, -1], [0, 0, 1, -1], [-1, 1, 0, -1], [-1, 0, -1, 1], [0, -1, -1, 1]])


@pytest.mark.parametrize("prior", [0.0, 2.0, np.inf])
@pytest.mark.parametrize("kernel", [rk.Kendall(), rk.Hamming()], ids=str)
def test_pairs_match_two_ridge_regressions(kernel, prior):
    """No label orders the pair (2, 3)."""
    X, new, times = covariates(6), covariates(4, seed=9), np.array([1, 2, 1, 3, 1, 1])
    model = KernelRankingRegressor(0.2, kernel="rbf", output_kernel=kernel, gamma=0.3, prior=prior)
    model.fit(X, PARTLY, sample_weight=times)
    shares = model.predict_scores(new)
    before = [[np.mean(np.array(list(naive.completions(row)))[:, [a]] < np.array(list(naive.completions(row))), axis=0)
               for a in range(4)] for row in PARTLY]  # fmt: skip
    for a, b in itertools.combinations(range(4), 2):
        knows = np.array([min(row[a], row[b]) >= 0 and row[a] != row[b] for row in PARTLY])
        found = []
        for rows in (knows, np.ones(6, dtype=bool)):
            if rows.any():
                lead, weights = 2 * np.array(before)[rows, a, b] - 1, times[rows]
                mean = np.average(lead, weights=weights)
                alpha = 0.2 * weights.sum() / times.sum()  # as much a row
                ridge = KernelRidge(alpha=alpha, kernel="rbf", gamma=0.3).fit(X[rows], lead - mean, weights)
                found.append(mean + ridge.predict(new))
        n = times[knows].sum()
        own = 0.0 if np.isinf(prior) or n == 0 else n / (n + prior)
        expected = np.clip((1 + own * found[0] + (1 - own) * found[-1]) / 2, 0, 1)
        np.testing.assert_allclose(shares[:, a, b], expected, atol=1e-10)


@pytest.mark.parametrize("n_rows", [6, 60])
def test_primal_and_dual_pairs_agree(n_rows):
    """With pairs that few rows order, and with pairs that most rows order."""
    labels = np.resize(PARTLY, (6, 4)) if n_rows == 6 else np.array([*PARTLY, *[[3, 1, 2, 0], [1, 3, 0, 2]] * 27])
    X, new = covariates(n_rows), covariates(4, seed=9)
    linear = KernelRankingRegressor(kernel="linear").fit(X, labels).predict_scores(new)
    dual = KernelRankingRegressor(kernel="precomputed").fit(X @ X.T, labels)
    np.testing.assert_allclose(linear, dual.predict_scores(new @ X.T), atol=1e-9)


# ---------------------------------------------------------------------- choice of kernels and parameters


def test_error_matches_leaving_out_rows():
    """Full labels with weights: one unit of weight is left out at a time, the row if it weighs less."""
    X, y = linear_labels(9, 4)
    weights = np.array([1, 2, 0.5, 1, 3, 1.5, 1, 1, 2])
    model = KernelRankingRegressor(kernel="laplacian", gamma=0.3).fit(X, y, weights)
    signs = np.array([[np.sign(row[b] - row[a]) for a, b in itertools.combinations(range(4), 2)] for row in y.ranks])

    def error(alpha):
        total = 0.0
        for row in range(9):
            left = weights - np.eye(9)[row] * min(weights[row], 1)
            rows = left > 0
            mean = left @ signs / left.sum()
            ridge = KernelRidge(alpha=alpha, kernel="laplacian", gamma=0.3).fit(X[rows], signs[rows] - mean, left[rows])
            total += weights[row] * np.mean((signs[row] - mean - ridge.predict(X[[row]])[0]) ** 2)
        return total / weights.sum()

    assert model.loo_error_ == pytest.approx(error(model.alpha_), rel=1e-9)
    assert error(model.alpha_) < min(error(model.alpha_ * factor) for factor in (0.1, 10**-0.5, 10**0.5, 10))


def test_error_of_partial_labels_is_over_stated_pairs():
    X = covariates(6)
    model = KernelRankingRegressor(kernel="rbf", gamma=0.3).fit(X, PARTLY)
    pairs = list(itertools.combinations(range(4), 2))
    completed = [np.array(list(naive.completions(row))) for row in PARTLY]
    signs = np.array([[2 * np.mean(own[:, a] < own[:, b]) - 1 for a, b in pairs] for own in completed])
    squares, stated = [], np.abs(signs) == 1
    for row in range(6):
        others = np.arange(6) != row
        mean = signs[others].mean(axis=0)
        ridge = KernelRidge(alpha=model.alpha_, kernel="rbf", gamma=0.3).fit(X[others], signs[others] - mean)
        squares.extend((signs[row] - mean - ridge.predict(X[[row]])[0])[stated[row]] ** 2)
    assert model.loo_error_ == pytest.approx(np.mean(squares), rel=1e-9)


def test_kernel_with_the_smallest_error_is_chosen():
    X, y = linear_labels(40, 4)
    names = ("rbf", "laplacian", "matern", "linear")
    single = {name: KernelRankingRegressor(kernel=name).fit(X, y).loo_error_ for name in names}
    model = KernelRankingRegressor(kernel=names).fit(X, y)
    assert model.kernel_ == min(single, key=single.get)
    assert model.loo_error_ == min(single.values())
    chosen = {"kernel": model.kernel_, "gamma": model.gamma_, "output_kernel": model.output_kernel_}
    fixed = KernelRankingRegressor(model.alpha_, **chosen).fit(X, y)
    assert np.isnan(fixed.loo_error_)
    np.testing.assert_array_equal(fixed.predict_scores(X), model.predict_scores(X))
    on_rankings = KernelRankingRegressor(kernel=[rk.Mallows(0.3), rk.Kendall()]).fit(y, y)
    assert on_rankings.kernel_ in (rk.Mallows(0.3), rk.Kendall())


def test_output_kernel_with_the_largest_tau_is_chosen():
    X, y = covariates(14), np.random.default_rng(0).permuted(np.tile(range(3), (14, 1)), axis=1)
    kernels = [rk.Hamming(), rk.AverageOverlap(1), rk.Kendall(), rk.Spearman()]
    model = KernelRankingRegressor(0.3, kernel="rbf", gamma=0.3, output_kernel=kernels).fit(X, y)
    taus = []
    for kernel in kernels:
        others = [np.arange(14) != row for row in range(14)]
        options = {"alpha": 0.3, "kernel": "rbf", "gamma": 0.3, "output_kernel": kernel}
        scores = [KernelRankingRegressor(**options).fit(X[rest], y[rest]).score(X[~rest], y[~rest]) for rest in others]
        taus.append(np.mean(scores))
    assert len(set(np.round(taus, 9))) > 1
    assert taus[kernels.index(model.output_kernel_)] == max(taus)


def test_matern_kernel():
    from sklearn.gaussian_process.kernels import Matern

    X, y = linear_labels(20, 3)
    new = covariates(5, seed=4)
    found = KernelRankingRegressor(0.5, kernel="matern", gamma=0.4).fit(X, y).predict_scores(new)
    gram = Matern(1 / 0.4, nu=1.5)
    expected = KernelRankingRegressor(0.5, kernel="precomputed").fit(gram(X), y).predict_scores(gram(new, X))
    np.testing.assert_allclose(found, expected, atol=1e-9)


# ---------------------------------------------------------------------- prediction sets


def noisy_labels(n_rows, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 2))
    return X, rk.Rankings.from_scores(X @ rng.normal(size=(2, 4)) + rng.normal(size=(n_rows, 4)))


def contradicted(certain, labels):
    """Which labels have a stated pair in the other order."""
    ranks = labels.ranks
    return (certain.before & (ranks[:, :, None] > ranks[:, None, :])).any(axis=(1, 2))


def test_coverage_of_prediction_sets():
    right, stated = [], []
    for seed in range(20):
        X, y = noisy_labels(660, seed)
        model = KernelRankingRegressor(1.0, kernel="rbf", gamma=0.3).fit(X[:180], y[:180])
        certain = model.predict_set(X[180:], confidence_level=0.8)
        right.append(1 - contradicted(certain, y[180:]).mean())
        stated.append(certain.before.sum(axis=(1, 2)).mean() / 6)
    assert np.mean(right) > 0.8 - 3 * np.std(right) / np.sqrt(20)
    assert np.mean(right) < 0.9  # not by stating too little
    assert np.mean(stated) > 0.2


def test_prediction_sets_are_nested():
    X, y = noisy_labels(120, 1)
    model = KernelRankingRegressor(1.0, kernel="rbf", gamma=0.3).fit(X, y)
    narrow, wide = (model.predict_set(X, confidence_level=level).before for level in (0.6, 0.9))
    assert (narrow >= wide).all()
    assert narrow.sum() > wide.sum() > 0
    assert not model.predict_set(X, confidence_level=1.0).before.any()  # 40 rows do not prove certainty
    assert model.predict_set(X, confidence_level=0.6).items == model.items_


def test_prediction_sets_of_matrices_counts_and_partial_labels():
    X, y = noisy_labels(90, 2)
    gram = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    by_matrix = KernelRankingRegressor(1.0, kernel="precomputed").fit(gram, y)
    model = KernelRankingRegressor(1.0, kernel="rbf", gamma=0.3).fit(X, y)
    np.testing.assert_array_equal(
        by_matrix.predict_set(gram, confidence_level=0.7).before, model.predict_set(X, confidence_level=0.7).before
    )
    counted = rk.Rankings(y.top(2).ranks, counts=np.arange(90) % 3 + 1)
    weighted = KernelRankingRegressor(1.0, kernel="rbf", gamma=0.3).fit(X, y.top(2), np.arange(90) % 3 + 1)
    counts = KernelRankingRegressor(1.0, kernel="rbf", gamma=0.3).fit(X, counted)
    np.testing.assert_array_equal(
        counts.predict_set(X, confidence_level=0.7).before, weighted.predict_set(X, confidence_level=0.7).before
    )
    with pytest.raises(ValueError, match="confidence_level"):
        model.predict_set(X, confidence_level=2)


@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_prediction_sets_do_not_depend_on_the_scale_of_weights(scale):
    X, y = noisy_labels(90, 2)
    plain = KernelRankingRegressor(1.0, kernel="rbf", gamma=0.3).fit(X, y)
    scaled = KernelRankingRegressor(scale, kernel="rbf", gamma=0.3).fit(X, y, np.full(90, scale))
    for level in (0.5, 0.9):
        np.testing.assert_array_equal(
            scaled.predict_set(X, confidence_level=level).before, plain.predict_set(X, confidence_level=level).before
        )


def test_prior_does_not_matter_for_full_labels():
    X, y = linear_labels(20, 4)
    one, other = (KernelRankingRegressor(prior=prior).fit(X, y).predict_scores(X) for prior in (0, np.inf))
    np.testing.assert_allclose(one, other, atol=1e-10)


def test_scores_do_not_depend_on_the_output_kernel():
    X, y = linear_labels(20, 4)
    options = {"alpha": 0.1, "kernel": "rbf", "gamma": 0.2}
    model = KernelRankingRegressor(output_kernel=rk.RankBiasedOverlap(0.5), **options).fit(X, y)
    scores = model.predict_scores(X)
    np.testing.assert_array_equal(scores, KernelRankingRegressor(**options).fit(X, y).predict_scores(X))
    np.testing.assert_array_equal(model.predict_scores(X), scores)


def test_second_fit():
    X, y = linear_labels(20, 4)
    model = KernelRankingRegressor(kernel="linear").fit(X, y).set_params(kernel="rbf").fit(X, y)
    assert not hasattr(model, "coef_")
    again = KernelRankingRegressor(kernel="rbf").fit(X, y)
    np.testing.assert_array_equal(model.predict_scores(X), again.predict_scores(X))


def test_primal_and_dual_agree():
    from scipy.sparse import csr_array

    X, y = linear_labels(40, 5)
    primal = KernelRankingRegressor(kernel="linear").fit(X, y.top(2))
    assert not hasattr(primal, "dual_coef_")
    dual = KernelRankingRegressor(kernel="precomputed").fit(X @ X.T, y.top(2))
    np.testing.assert_allclose(primal.predict_scores(X), dual.predict_scores(X @ X.T), atol=1e-9)
    sparse = KernelRankingRegressor(kernel="linear").fit(csr_array(X), y.top(2))
    np.testing.assert_allclose(sparse.predict_scores(csr_array(X)), primal.predict_scores(X), atol=1e-9)


def test_rankings_as_covariates():
    before = rk.datasets.mallows(80, 6, 0.1, rng=1)
    after = before.ranks[:, ::-1].copy()  # reversed items
    model = KernelRankingRegressor(kernel=rk.Mallows("median"), alpha=0.01).fit(before[:60], after[:60])
    assert model.score(before[60:], after[60:]) > 0.5
    by_matrix = KernelRankingRegressor(kernel="precomputed", alpha=0.01)
    plan = rk.Mallows("median").plan(before[:60])
    by_matrix.fit(plan.gram(), after[:60])
    new = before[60:]
    np.testing.assert_allclose(model.predict_scores(new), by_matrix.predict_scores(plan.against(new).gram()), atol=1e-9)


def test_callable_kernel():
    X, y = linear_labels(20, 3)
    model = KernelRankingRegressor(kernel=lambda a, b: (a @ b.T) ** 2).fit(X, y)
    other = KernelRankingRegressor(kernel="precomputed").fit((X @ X.T) ** 2, y)
    np.testing.assert_allclose(model.predict_scores(X), other.predict_scores((X @ X.T) ** 2), atol=1e-9)


def test_learning_from_top_k_labels():
    X, y = linear_labels(400, 6)
    by_pairs, by_means = (
        KernelRankingRegressor(kernel="rbf", gamma=0.2, alpha=0.1, prior=prior).fit(X[:300], y[:300].top(2))
        for prior in (30, np.inf)
    )
    assert by_pairs.score(X[300:], y[300:]) > by_means.score(X[300:], y[300:]) + 0.05 > 0.7


def test_defaults_of_scikit_learn_kernels():
    from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

    X, y = linear_labels(20, 3)
    for name in PAIRWISE_KERNEL_FUNCTIONS:
        found = KernelRankingRegressor(0.5, kernel=name, gamma=0.2).fit(abs(X), y).predict_scores(abs(X))
        gram = pairwise_kernels(abs(X), metric=name, filter_params=True, gamma=0.2)
        expected = KernelRankingRegressor(0.5, kernel="precomputed").fit(gram, y).predict_scores(gram)
        np.testing.assert_allclose(found, expected, atol=1e-6, err_msg=name)


def test_kernel_names():
    X, y = linear_labels(30, 5)
    named, given = (
        KernelRankingRegressor(output_kernel=kernel).fit(X, y) for kernel in ("rbo", rk.RankBiasedOverlap())
    )
    assert named.predict(X) == given.predict(X)
    named, given = (KernelRankingRegressor(kernel=kernel).fit(y, y) for kernel in ("mallows", rk.Mallows()))
    np.testing.assert_array_equal(named.predict_scores(y), given.predict_scores(y))
    assert kernel_consensus(y, "dcg").ranking == kernel_consensus(y, rk.DCG()).ranking


# ---------------------------------------------------------------------- the score


def test_score_is_mean_tau():
    from scipy.stats import kendalltau

    X, y = linear_labels(50, 5)
    model = KernelRankingRegressor().fit(X[:25], y[:25])
    predicted = np.asarray(model.predict(X[25:]))
    expected = np.mean([kendalltau(a, b).statistic for a, b in zip(predicted, y.ranks[25:], strict=True)])
    assert model.score(X[25:], y[25:]) == pytest.approx(expected)


def test_score_of_partial_labels():
    X = np.zeros((2, 1))
    model = KernelRankingRegressor().fit(X, [[0, 1, 2, 3]] * 2)  # always predicts 0 > 1 > 2 > 3
    assert model.score(X[:1], [[0, 1, 1, -1]]) == 1.0
    assert model.score(X[:1], [[1, 0, 1, 1]]) == pytest.approx((2 - 1) / 3)
    assert model.score(X, [[1, 0, -1, -1], [0, 0, 0, 0]]) == -1.0
    with pytest.raises(rk.RankingError, match="y: no label"):
        model.score(X[:1], [[0, 0, 0, 0]])


def test_items_are_matched_by_name():
    X, y = linear_labels(20, 3)
    named = rk.Rankings(y.ranks, items=["x", "y", "z"])
    model = KernelRankingRegressor().fit(X, named)
    assert model.predict(X).items == ("x", "y", "z")
    assert model.score(X, named.with_items(["z", "x", "y"])) == model.score(X, named)
    with pytest.raises(rk.RankingError, match="y ranks"):
        model.score(X, rk.Rankings(y.ranks, items=["x", "y", "w"]))


# ---------------------------------------------------------------------- conventions of scikit-learn


def test_check_estimator():
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
    check_estimator(KernelRankingRegressor(kernel="rbf"), expected_failed_checks=expected, on_skip=None)


def test_grid_search():
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


def test_parameters_of_both_kernels():
    from sklearn.gaussian_process.kernels import RBF

    _, y = linear_labels(40, 4)
    model = KernelRankingRegressor(output_kernel=rk.RankBiasedOverlap(0.1), kernel=rk.Mallows(0.1))
    assert {"output_kernel__p": 0.1, "kernel__nu": 0.1}.items() <= model.get_params().items()
    model.set_params(output_kernel__p=0.3, kernel__nu=0.2, alpha=2)
    assert (model.output_kernel, model.kernel, model.alpha) == (rk.RankBiasedOverlap(0.3), rk.Mallows(0.2), 2)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(output_kernel="rbo", output_kernel__p=0.2).output_kernel == rk.RankBiasedOverlap(0.2)
    grid = {"output_kernel__p": [0.3, 0.9], "kernel__nu": [0.01, 1.0]}
    search = GridSearchCV(
        KernelRankingRegressor(output_kernel=rk.RankBiasedOverlap(), kernel=rk.Mallows()), grid, cv=2
    ).fit(y, y)
    assert search.best_estimator_.output_kernel.p == search.best_params_["output_kernel__p"]
    assert KernelRankingRegressor(kernel=RBF()).set_params(kernel__length_scale=3.0).kernel.length_scale == 3.0
    with pytest.raises(ValueError, match="'q'"):
        model.set_params(output_kernel__q=1)


def test_pipeline_clone_and_pickle():
    X, y = linear_labels(100, 4)
    model = make_pipeline(Nystroem(n_components=30, random_state=0), KernelRankingRegressor(kernel="linear", alpha=0.1))
    fitted = clone(model).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.predict(X) == fitted.predict(X)
    of_rankings = make_pipeline(rk.NystromFeatures(20, kernel=rk.Mallows(0.1)), KernelRankingRegressor(kernel="linear"))
    assert of_rankings.fit(y, y.ranks).score(y, y.ranks) > 0.5
    on_rankings = KernelRankingRegressor(kernel=rk.Mallows(0.1)).fit(y, y)
    assert pickle.loads(pickle.dumps(on_rankings)).predict(y) == on_rankings.predict(y)


def test_singular_system():
    X, y = np.ones((6, 1)), rk.Rankings([[0, 1]] * 4 + [[1, 0]] * 2)
    assert KernelRankingRegressor(alpha=0.0).fit(X, y).predict_scores([[1.0]])[0, 0, 1] == pytest.approx(4 / 6)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda X, y: KernelRankingRegressor(output_kernel=rk.Mallows(0.1)).fit(X, y),
            ValueError,
            "kernel=",
        ),
        (
            lambda X, y: KernelRankingRegressor(output_kernel=rk.Kendall() + rk.Hamming()).fit(X, y),
            ValueError,
            "kernel=",
        ),
        (lambda X, y: kernel_consensus(y, rk.DistanceInduced("kendall", [0, 1, 2])), ValueError, "kernel="),
        (lambda X, y: KernelRankingRegressor(alpha=-1).fit(X, y), ValueError, "alpha=-1"),
        (lambda X, y: KernelRankingRegressor(prior=-1).fit(X, y), ValueError, "prior=-1"),
        (lambda X, y: KernelRankingRegressor(prior="skip").fit(X, y), TypeError, "prior='skip'"),
        (lambda X, y: KernelRankingRegressor(kernel="malows").fit(X, y), ValueError, "kernel='malows'"),
        (lambda X, y: KernelRankingRegressor(kernel=()).fit(X, y), ValueError, "kernel is empty"),
        (lambda X, y: KernelRankingRegressor(kernel=("rbf", rk.Kendall())).fit(X, y), ValueError, "mixes"),
        (lambda X, y: KernelRankingRegressor().fit(X, y[:3]), ValueError, "X has 10 rows but y has 3"),
        (lambda X, y: KernelRankingRegressor().fit(X, y, np.zeros(10)), ValueError, "sample_weight"),
        (lambda X, y: KernelRankingRegressor().fit(X, y).predict(X[:, :2]), ValueError, "X has 2 features"),
        (lambda X, y: KernelRankingRegressor().fit(X, y).score(X, [[0, 1]] * 10), ValueError, "y ranks"),
        (lambda X, y: KernelRankingRegressor().predict(X), Exception, "not fitted"),
        (lambda X, y: kernel_consensus(y[:0], rk.Kendall()), ValueError, "there are no rankings"),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        make(*linear_labels(10, 3))

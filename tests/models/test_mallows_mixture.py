"""Mixtures of Mallows models against sums over all completions."""

import itertools
import math

import naive
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import rankernel as rk
from rankernel import MallowsMixture, RankingError, Rankings
from rankernel.models.mallows import MallowsRows

CENTERS = [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [2, 3, 0, 1, 5, 4]]


def planted(n_voters=(300, 200, 150), theta=0.8, k=3):
    parts = [
        rk.datasets.mallows(n, c, theta, rng=i).ranks for i, (n, c) in enumerate(zip(n_voters, CENTERS, strict=True))
    ]
    return Rankings(np.minimum(np.concatenate(parts), k)), np.repeat(range(3), n_voters)


def naive_log_prob(ranks, centers, thetas, weights):
    """The log-probability of a partial ranking: the sum over its completions and the components."""
    n = len(ranks)
    total = 0.0
    for center, theta, weight in zip(centers, thetas, weights, strict=True):
        everything = list(itertools.permutations(range(n)))
        terms = {full: math.exp(-theta * naive.kendall(full, center)) for full in everything}
        inside = sum(terms[tuple(full)] for full in naive.completions(ranks))
        total += weight * inside / sum(terms.values())
    return math.log(total)


@pytest.mark.parametrize("free", [False, True])
def test_log_probabilities_by_enumeration(free):
    rng = np.random.default_rng(0)
    ranks = rng.integers(0, 3, (12, 4))
    if free:
        ranks[rng.random(ranks.shape) < 0.3] = -1
    data = Rankings.from_ranks(ranks, unlisted="free") if free else Rankings.from_ranks(ranks)
    model = MallowsMixture(2, n_init=2, max_iter=5).fit(data)
    parameters = model.centers_.ranks.tolist(), model.thetas_.tolist(), model.weights_.tolist()
    expected = [naive_log_prob(row, *parameters) for row in data.ranks.tolist()]
    np.testing.assert_allclose(model.score_samples(data), expected, rtol=1e-9, atol=1e-12)
    assert model.log_likelihood_ == pytest.approx(sum(expected), rel=1e-6)


def test_approximation_of_initializations():
    """The listed items alone follow a Mallows model around their order in the center."""
    data = Rankings([[0, -1, 1, 2], [-1, 1, 0, -1], [2, 1, 0, 3]])
    center, theta = np.array([1, 3, 0, 2], dtype=np.int32), 0.7
    found = MallowsRows(data, listed_only=True).log_prob(center, theta)
    for row, value in zip(data.ranks, found, strict=True):
        listed = row >= 0
        order = np.argsort(np.argsort(center[listed])).tolist()
        assert value == pytest.approx(naive_log_prob(row[listed].tolist(), [order], [theta], [1.0]), rel=1e-12)


@pytest.mark.parametrize("free", [False, True])
def test_likelihood_never_decreases(free):
    data, _ = planted((30, 20, 15))
    if free:
        data = Rankings(np.where(data.ranks == 3, -1, data.ranks))
    model = MallowsMixture(2, n_init=1, max_iter=9, tol=0).fit(data)
    values = model.log_likelihoods_
    assert len(values) == model.n_iter_ > 2
    assert (np.diff(values) >= -1e-9).all()
    assert model.log_likelihood_ == values[-1] > values[0] + 0.1


def em_step(rows, counts, centers, thetas, weights):
    """One step of the EM algorithm by sums over all full rankings, and over all centers."""
    n, every = len(rows[0]), list(itertools.permutations(range(len(rows[0]))))
    logs = np.array(
        [[naive_log_prob(row, [c], [t], [1.0]) for c, t in zip(centers, thetas, strict=True)] for row in rows]
    )
    joint = np.exp(logs) * weights
    posterior = joint / joint.sum(axis=1, keepdims=True) * np.array(counts)[:, None]
    new_centers, new_thetas = [], []
    for own in posterior.T:
        cost = {c: sum(w * stated_discordances(row, c) for w, row in zip(own, rows, strict=True)) for c in every}
        center = min(every, key=lambda c: round(cost[c], 9))

        def loss(theta, own=own, center=center):
            return -sum(w * naive_log_prob(row, [center], [theta], [1.0]) for w, row in zip(own, rows, strict=True))

        new_centers.append(list(center))
        new_thetas.append(minimize_scalar(loss, bounds=(0, 5), method="bounded", options={"xatol": 1e-10}).x)
    assert n == len(new_centers[0])
    return new_centers, new_thetas, posterior.sum(axis=0) / sum(counts)


def stated_discordances(row, center):
    pairs = itertools.permutations(range(len(row)), 2)
    return sum(row[a] >= 0 and row[b] >= 0 and row[a] < row[b] and center[a] > center[b] for a, b in pairs)


def test_fit_is_a_fixed_point_of_the_em_algorithm():
    """From the fitted parameters and from other ones, a step by enumeration gives the same centers and numbers."""
    rng = np.random.default_rng(3)
    full = np.vstack([rk.datasets.mallows(25, c, 1.2, rng=rng).ranks for c in ([0, 1, 2, 3], [3, 1, 0, 2])])
    data = Rankings(np.where(rng.random((50, 1)) < 0.5, np.minimum(full, 2), full)).unique()
    rows, counts = data.ranks.tolist(), data.counts.tolist()
    start = MallowsMixture(2, n_init=1, max_iter=2, tol=0).fit(data)
    model = MallowsMixture(2, n_init=1, max_iter=3, tol=0).fit(data)
    for before, after in ((start, model), *[(MallowsMixture(2, n_init=1, tol=1e-14).fit(data),) * 2]):
        centers, thetas, weights = em_step(
            rows, counts, before.centers_.ranks.tolist(), before.thetas_, before.weights_
        )
        order = np.argsort(-weights)
        assert [centers[g] for g in order] == after.centers_.ranks.tolist()
        np.testing.assert_allclose(np.array(thetas)[order], after.thetas_, rtol=1e-5)
        np.testing.assert_allclose(weights[order], after.weights_, rtol=1e-6)


def test_preferences():
    """Two groups with opposite orders of most pairs, against sums over all full rankings."""
    pairs = [[("a", "b"), ("c", "d")], [("a", "c"), ("b", "d")], [("a", "d")], [("d", "a"), ("c", "b")], [("d", "b")]]
    data = rk.Preferences.from_pairs(pairs, items=list("abcd"), counts=[9, 8, 7, 6, 5])
    model = MallowsMixture(2, tol=1e-10).fit(data)
    every = list(itertools.permutations(range(4)))

    def log_prob(before):
        total = 0.0
        for center, theta, weight in zip(model.centers_.ranks.tolist(), model.thetas_, model.weights_, strict=True):
            terms = {x: math.exp(-theta * naive.kendall(x, center)) for x in every}
            inside = [v for x, v in terms.items() if all(x[a] < x[b] for a, b in np.argwhere(before).tolist())]
            total += weight * sum(inside) / sum(terms.values())
        return math.log(total)

    expected = [log_prob(before) for before in data.before]
    np.testing.assert_allclose(model.score_samples(data), expected, rtol=1e-9, atol=1e-14)
    assert model.log_likelihood_ == pytest.approx(data.counts @ expected)
    assert model.labels_.tolist() == [0, 0, 0, 1, 1]


def test_planted_components_are_found():
    data, group = planted()
    model = MallowsMixture(3).fit(data)
    assert model.centers_.ranks.tolist() == CENTERS
    np.testing.assert_allclose(model.thetas_, 0.8, atol=0.12)
    np.testing.assert_allclose(model.weights_, [300 / 650, 200 / 650, 150 / 650], atol=0.04)
    assert model.is_optimal_.all()
    assert model.converged_
    assert (model.predict(data) == group).mean() > 0.8
    bic = [MallowsMixture(n, n_init=4).fit(data).bic(data) for n in (1, 2, 3, 4)]
    assert int(np.argmin(bic)) == 2


def test_one_component_is_the_mallows_fit():
    data, _ = planted((40, 30, 20))
    model, fit = MallowsMixture(1).fit(data), rk.MallowsModel.fit(data)
    assert model.centers_.ranks[0].tolist() == list(fit.center)
    assert model.thetas_[0] == pytest.approx(fit.theta, abs=1e-9)
    assert model.log_likelihood_ == pytest.approx(float(fit.log_prob(data).sum()))


def test_counts_are_voters():
    data, _ = planted((20, 15, 10))
    joined = data.unique()
    a, b = MallowsMixture(2).fit(data), MallowsMixture(2).fit(joined)
    assert a.log_likelihood_ == pytest.approx(b.log_likelihood_)
    assert a.bic(data) == pytest.approx(b.bic(joined))
    assert a.score(data) == pytest.approx(b.score(joined))


def test_probabilities_of_components():
    data, _ = planted((40, 30, 20))
    model = MallowsMixture(3).fit(data)
    proba = model.predict_proba(data)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert (proba.argmax(axis=1) == model.predict(data)).all()
    assert (model.labels_ == model.predict(data)).all()


def test_samples_follow_the_mixture():
    data, _ = planted((60, 40, 30))
    model = MallowsMixture(3).fit(data)
    sample, component = model.sample(4000, rng=1)
    shares = np.bincount(component) / 4000
    np.testing.assert_allclose(shares, model.weights_, atol=4 * np.sqrt(0.25 / 4000))
    pairs = sample.ranks[component == 0]
    fit = rk.MallowsModel.fit(Rankings(pairs))
    assert list(fit.center) == model.centers_.ranks[0].tolist()
    assert fit.theta == pytest.approx(model.thetas_[0], abs=0.1)


def test_scikit_learn_interface():
    data, _ = planted((40, 30, 20), k=6)
    assert clone(MallowsMixture(3, n_init=2)).get_params()["n_components"] == 3
    scores = [cross_val_score(MallowsMixture(n, n_init=2), data.ranks, cv=3).mean() for n in (1, 3)]
    assert scores[1] > scores[0]


def test_items_in_another_order():
    data, _ = planted((40, 30, 20))
    data = Rankings(data.ranks, items=list("abcdef"))
    model = MallowsMixture(2).fit(data)
    turned = data.with_items(list("fedcba"))
    np.testing.assert_allclose(model.score_samples(turned), model.score_samples(data))


def test_invalid_input():
    data, _ = planted((4, 3, 2))
    with pytest.raises(ValueError, match="n_components"):
        MallowsMixture(0).fit(data)
    with pytest.raises(ValueError, match="n_components"):
        MallowsMixture(100).fit(data)
    with pytest.raises(RankingError, match="items"):
        MallowsMixture(1).fit(data).predict([[0, 1]])

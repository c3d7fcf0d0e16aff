"""The number of clusters: null models fit the data, planted clusters are found, data of one model have none."""

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.metrics import adjusted_rand_score
from strategies import any_ranking, sized

from rankernel import Kendall, Mallows, Preferences, Rankings, report
from rankernel.datasets import mallows, mixture, plackett_luce, truncate
from rankernel.models.null_models import coarsen, fit_mallows, fit_plackett_luce, sample_like
from rankernel.reports.ballots import Source, distinct_ballots
from rankernel.reports.clusters import (
    ALPHA,
    SAMPLE_SIZE,
    Evidence,
    Settings,
    Step,
    adjusted_rand_index,
    dispersion,
    number_of_clusters,
    predictive_pvalue,
)
from rankernel.reports.page import render_page
from rankernel.reports.summary import summarize


def evidence(rankings, seed=0):
    ballots = distinct_ballots(Source(rankings))
    return number_of_clusters(ballots, Settings(Mallows("median").resolve(ballots.rankings), rng=seed))


def planted(n_groups, n_rankings=160, theta=1.0, seed=0, lengths=None):
    rng = np.random.default_rng(seed)
    parts = [partial(mallows, center=rng.permutation(8), theta=theta) for _ in range(n_groups)]
    drawn = mixture(n_rankings, parts, rng=seed)
    return (truncate(drawn.rankings, lengths, rng=seed) if lengths else drawn.rankings), drawn.components


# ---------------------------------------------------------------------- null models


@given(sized(any_ranking, length=4))
@settings(max_examples=40, deadline=None)
def test_null_ballots_have_the_shape_of_the_data(ballots):
    rows = Rankings(ballots)
    full = np.argsort(np.random.default_rng(0).random(rows.ranks.shape), axis=1).astype(np.int32)
    drawn = coarsen(full, rows)
    assert ((drawn.ranks == -1) == (rows.ranks == -1)).all()
    assert (np.sort(drawn.ranks, axis=1) == np.sort(rows.ranks, axis=1)).all()
    for ranks, order in zip(drawn.ranks, full, strict=True):  # consistent with the full ranking
        for a in range(len(ranks)):
            for b in range(len(ranks)):
                assert not (0 <= ranks[a] < ranks[b]) or order[a] < order[b]


def test_null_preferences_relate_the_same_pairs():
    data = Preferences.from_pairs([[("a", "b"), ("c", "d")], [("d", "c")]])
    drawn = coarsen(np.array([[3, 2, 1, 0], [0, 1, 2, 3]], dtype=np.int32), data)
    assert drawn.to_pairs() == [[("b", "a"), ("d", "c")], [("c", "d")]]


def test_null_ballots_follow_the_model_of_their_cluster():
    strong = plackett_luce(3000, [8, 4, 2, 1], rng=0)
    weak = plackett_luce(3000, [1, 2, 4, 8], rng=1)
    both = Rankings(np.concatenate([strong.ranks, weak.ranks]))
    labels = np.repeat([0, 1], 3000)
    models = [fit_plackett_luce(part) for part in (strong, weak)]
    drawn = sample_like(both, labels, models, np.random.default_rng(0))
    for number, source in enumerate((strong, weak)):
        share = (drawn.ranks[labels == number] == 0).mean(axis=0)
        expected = (source.ranks == 0).mean(axis=0)
        assert (np.abs(share - expected) < 5 * np.sqrt(2 * expected * (1 - expected) / 3000)).all()


def test_plackett_luce_of_pairs_is_bradley_terry():
    pairs = Preferences.from_pairs([[("a", "b"), ("c", "d")], [("b", "a"), ("c", "d")]], counts=[300, 100])
    weights = fit_plackett_luce(pairs).weights
    a, b = pairs.items.index("a"), pairs.items.index("b")
    assert weights[a] / weights[b] == pytest.approx(3, rel=0.01)


def maximum_likelihood_theta(rankings, center):
    """Return the maximum likelihood estimate of theta by brute force over all completions."""
    orders = list(itertools.permutations(range(rankings.n_items)))  # ranks
    pairs = list(itertools.combinations(range(rankings.n_items), 2))
    distances = np.array([sum((o[a] < o[b]) != (center[a] < center[b]) for a, b in pairs) for o in orders])
    consistent = np.array(
        [
            [all(o[a] < o[b] for a in range(len(o)) for b in range(len(o)) if r[a] < r[b]) for o in orders]
            for r in rankings.ranks.tolist()
        ]
    )
    grid = np.linspace(0, 4, 801)
    weights = np.exp(-np.outer(grid, distances))
    likelihood = np.log(weights @ consistent.T / weights.sum(axis=1, keepdims=True)) @ rankings.counts
    return grid[np.argmax(likelihood)]


@pytest.mark.parametrize("lengths", [None, {1: 0.3, 2: 0.4, 4: 0.3}])
def test_mallows_fit_is_maximum_likelihood(lengths):
    drawn = mallows(200, [2, 0, 3, 1], 0.8, rng=1)
    ballots = (truncate(drawn, lengths, rng=2) if lengths else drawn).unique()
    fitted = fit_mallows(ballots)
    assert fitted.center == (2, 0, 3, 1)
    assert fitted.theta == pytest.approx(maximum_likelihood_theta(ballots, fitted.center), abs=0.005)


def test_mallows_fit_with_free_items():
    full = mallows(4000, 5, 0.6, rng=0).ranks
    listed = np.random.default_rng(1).random(full.shape) < 0.7
    ranks = np.where(listed, np.argsort(np.argsort(np.where(listed, full, 9), axis=1), axis=1), -1)
    fitted = fit_mallows(Rankings(ranks))
    assert fitted.center == (0, 1, 2, 3, 4)
    assert fitted.theta == pytest.approx(0.6, abs=0.05)  # its standard error is about 0.01


# ---------------------------------------------------------------------- parts of the rule


def test_dispersion_matches_definition():
    data = mallows(9, 4, 0.5, rng=3).unique()
    gram, counts = np.asarray(Kendall().gram(data)), data.counts.astype(float)
    labels = np.arange(len(data)) % 2
    expected = 0.0
    for number in (0, 1):
        members = np.flatnonzero(labels == number)
        total = counts[members].sum()
        for i in members:
            for j in members:
                expected += counts[i] * counts[j] * (gram[i, i] + gram[j, j] - 2 * gram[i, j]) / (2 * total)
    assert dispersion(gram, counts, labels) == pytest.approx(expected)


def test_predictive_pvalue_is_uniform():
    """The share of further draws with a p-value of at most 5% or 30% is 5% or 30%, up to 5 standard errors."""
    draws = np.random.default_rng(0).normal(3.0, 2.0, (4000, 9))
    pvalues = np.array([predictive_pvalue(row[0], row[1:]) for row in draws])
    for level in (0.05, 0.3):
        assert abs((pvalues <= level).mean() - level) < 5 * np.sqrt(level * (1 - level) / len(draws))


# ---------------------------------------------------------------------- the number


ONE_MODEL = {
    "uniform": partial(mallows, center=8, theta=0.0),
    "Plackett-Luce": partial(plackett_luce, weights=[9, 7, 5, 3, 2, 1]),
    "strong Plackett-Luce": partial(plackett_luce, weights=np.exp(np.linspace(0, 6, 5))),
    "Mallows, theta 1": partial(mallows, center=6, theta=1.0),
    "Mallows, theta 1.5": partial(mallows, center=5, theta=1.5),
    "Mallows, theta 2": partial(mallows, center=6, theta=2.0),
}


@pytest.mark.parametrize("name", ONE_MODEL)
def test_one_model_has_no_clusters(name):
    """With a false positive rate of at most 5%, three or more of 8 data sets occur with probability below 0.6%."""
    found = [evidence(ONE_MODEL[name](200, rng=seed), seed).n_clusters for seed in range(8)]
    assert sum(number > 1 for number in found) <= 2


@pytest.mark.parametrize(("n_groups", "lengths"), [(2, None), (3, {2: 0.4, 3: 0.3, 8: 0.3}), (5, None)])
def test_planted_clusters_are_found(n_groups, lengths):
    rankings, labels = planted(n_groups, seed=1, lengths=lengths)
    summary = summarize(Source(rankings))
    found = summary.clustering.evidence
    assert found.n_clusters == len(summary.clustering.clusters) == n_groups
    assert all(step.pvalue <= ALPHA and step.gain > step.null_gain for step in found.steps[: n_groups - 1])
    label_of = dict(zip(map(bytes, summary.ballots.rankings.ranks), summary.labels, strict=True))
    assigned = np.array([label_of[bytes(row)] for row in rankings.ranks])
    assert adjusted_rand_score(labels, assigned) > (0.6 if lengths else 0.8)


def test_clusters_of_preferences():
    rng = np.random.default_rng(0)

    def users(flip):
        pairs = []
        for _ in range(24):
            order = rng.permutation(4) if flip is None else np.arange(4)[:: 1 if rng.random() < flip else -1]
            rank = np.argsort(order)
            compared = [rng.choice(4, 2, replace=False) for _ in range(4)]
            pairs.append([(f"i{a}", f"i{b}") if rank[a] < rank[b] else (f"i{b}", f"i{a}") for a, b in compared])
        return Preferences.from_pairs(pairs, items=[f"i{n}" for n in range(4)])

    assert evidence(users(0.5)).n_clusters == 2
    assert evidence(users(None)).n_clusters == 1


def test_large_data_are_sampled():
    """Two samples that agree are enough; each has the same size."""
    found = evidence(planted(2, 2000, seed=3)[0])
    assert found.numbers == (2, 2)
    assert found.sample_size == SAMPLE_SIZE


def test_small_data_are_one_sample():
    rankings, _ = planted(2, 60, seed=4)
    assert evidence(rankings).numbers == (2,)
    assert evidence(rankings).sample_size == 60


def test_same_seed_same_evidence():
    rankings, _ = planted(2, 60, seed=4)
    assert evidence(rankings, 7) == evidence(rankings, 7)


# ---------------------------------------------------------------------- sentences


def test_too_few_voters():
    four = report(Rankings.from_orders([["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"], ["a", "c", "b"]]))
    assert "among at least 12 voters; there are 4" in four.html


def test_too_few_ballots():
    two = report(Rankings.from_orders([["a", "b"], ["b", "a"]], counts=[60, 40])).html
    assert "among at least 3 different ballots; there are 2" in two


def test_page_without_clusters():
    page = report(mallows(100, 6, 0.0, rng=2)).html
    assert "There is no evidence of clusters" in page
    assert 'id="tree"' not in page
    assert 'id="gram"' not in page


def test_requested_number_is_not_tested():
    summary = summarize(Source(mallows(100, 5, 0.0, rng=0)), Settings(n_clusters=4))
    assert len(summary.clustering.clusters) == 4
    assert summary.clustering.evidence is None
    assert "4 clusters, as requested; their number was not tested" in render_page(summary)


@pytest.fixture(scope="module")
def two_clusters():
    return summarize(Source(mallows(60, 4, 0.5, rng=0)), Settings(n_clusters=2))


def page_with(summary, **fields):
    steps = (Step(0.2, 0.1, 0.001, "Mallows"),) * 3
    found = Evidence(**{"sample_size": 400, "steps": steps, "agreement": (0.7, 0.5, 0.5), **fields})
    clusters = summary.clustering.clusters[: found.n_clusters]
    return render_page(replace(summary, clustering=replace(summary.clustering, evidence=found, clusters=clusters)))


def test_samples_that_disagree_are_reported(two_clusters):
    page = page_with(two_clusters, n_clusters=2, numbers=(2, 4, 2))
    assert "random samples of 400 voters gave from 2 to 4. The page shows 2." in page
    assert "based on 3 random samples of 400 voters" in page
    assert "is uncertain" not in page_with(two_clusters, n_clusters=2, numbers=(2, 2))


def test_clusters_that_are_not_reproducible(two_clusters):
    page = page_with(two_clusters, n_clusters=1, numbers=(1,), agreement=(0.31,))
    assert "no reproducible clusters" in page
    assert "at most 0.31" in page


def test_agreement_of_halves_is_named_by_its_size(two_clusters):
    for agreement, expected in ((0.94, "nearly the same"), (0.58, "moderately similar")):
        page = page_with(two_clusters, n_clusters=2, agreement=(agreement,))
        assert f"give {expected} clusters (adjusted Rand index {agreement}" in page


def test_adjusted_rand_index_matches_scikit_learn():
    rng = np.random.default_rng(0)
    pairs = [(rng.integers(0, k, 30), rng.integers(0, 3, 30)) for k in (1, 2, 5)]
    for first, second in [*pairs, (pairs[1][0], pairs[1][0]), (np.zeros(5, int), np.zeros(5, int))]:
        assert adjusted_rand_index(first, second) == pytest.approx(adjusted_rand_score(first, second))

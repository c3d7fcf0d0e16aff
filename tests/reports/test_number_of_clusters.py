"""Clusters only where there are any: null ballots are of the right shape and model, groups are found, noise is not."""

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import any_ranking, sized

from rankernel import Kendall, Mallows, Preferences, Rankings, concat
from rankernel.datasets import mallows, mixture, plackett_luce, truncate
from rankernel.models.null_models import coarsen, fit_mallows, fit_plackett_luce, sample_like
from rankernel.reports.distinct_ballots import distinct_ballots
from rankernel.reports.number_of_clusters import (
    MOST_PANELS,
    NULL_SETS,
    SOME_VOTERS,
    SURE,
    Evidence,
    Step,
    adjusted_rand,
    number_of_clusters,
    panels_to_ask,
    reached,
    step_of,
    within,
)
from rankernel.reports.page import page
from rankernel.reports.source import Source
from rankernel.reports.summary import Settings, summarize


def said(rankings, seed=0):
    ballots = distinct_ballots(Source(rankings))
    return number_of_clusters(ballots, Mallows("median").resolve(ballots.rankings), "auto", "ward", seed)


def groups(n_groups, n_rankings=160, theta=1.0, seed=0, lengths=None):
    rng = np.random.default_rng(seed)
    parts = [partial(mallows, center=rng.permutation(8), theta=theta) for _ in range(n_groups)]
    drawn = mixture(n_rankings, parts, rng=seed)
    return (truncate(drawn.rankings, lengths, rng=seed) if lengths else drawn.rankings), drawn.components


# ---------------------------------------------------------------------- null ballots


@given(sized(any_ranking, length=4))
@settings(max_examples=40, deadline=None)
def test_null_ballots_have_the_shape_of_the_real_ones(ballots):
    rows = Rankings(ballots)
    full = np.argsort(np.random.default_rng(0).random(rows.ranks.shape), axis=1).astype(np.int32)
    told = coarsen(full, rows)
    assert ((told.ranks == -1) == (rows.ranks == -1)).all()
    assert (np.sort(told.ranks, axis=1) == np.sort(rows.ranks, axis=1)).all()
    for ranks, order in zip(told.ranks, full, strict=True):  # nothing is said against the full ranking
        for a in range(len(ranks)):
            for b in range(len(ranks)):
                assert not (0 <= ranks[a] < ranks[b]) or order[a] < order[b]


def test_null_preferences_relate_what_the_real_ones_do():
    data = Preferences.from_pairs([[("a", "b"), ("c", "d")], [("d", "c")]])
    told = coarsen(np.array([[3, 2, 1, 0], [0, 1, 2, 3]], dtype=np.int32), data)
    assert told.to_pairs() == [[("b", "a"), ("d", "c")], [("c", "d")]]


def test_null_ballots_come_from_the_model_of_their_cluster():
    strong = plackett_luce(3000, [8, 4, 2, 1], rng=0)
    weak = plackett_luce(3000, [1, 2, 4, 8], rng=1)
    both = Rankings(np.concatenate([strong.ranks, weak.ranks]))
    labels = np.repeat([0, 1], 3000)
    models = [fit_plackett_luce(part) for part in (strong, weak)]
    drawn = sample_like(both, labels, models, np.random.default_rng(0))
    for number, source in enumerate((strong, weak)):
        share = (drawn.ranks[labels == number] == 0).mean(axis=0)
        wanted = (source.ranks == 0).mean(axis=0)
        assert (np.abs(share - wanted) < 5 * np.sqrt(2 * wanted * (1 - wanted) / 3000)).all()


def test_the_model_of_pairs_is_that_of_races_of_two():
    pairs = Preferences.from_pairs([[("a", "b"), ("c", "d")], [("b", "a"), ("c", "d")]], counts=[300, 100])
    weights = fit_plackett_luce(pairs).weights
    a, b = pairs.items.index("a"), pairs.items.index("b")
    assert weights[a] / weights[b] == pytest.approx(3, rel=0.01)


def likeliest_theta(rankings, center):
    """Return by brute force the theta that makes ballots most likely, a ballot being one of all orders that fit it."""
    orders = list(itertools.permutations(range(rankings.n_items)))  # ranks
    pairs = list(itertools.combinations(range(rankings.n_items), 2))
    apart = np.array([sum((o[a] < o[b]) != (center[a] < center[b]) for a, b in pairs) for o in orders])
    fits = np.array(
        [
            [all(o[a] < o[b] for a in range(len(o)) for b in range(len(o)) if r[a] < r[b]) for o in orders]
            for r in rankings.ranks.tolist()
        ]
    )
    grid = np.linspace(0, 4, 801)
    weights = np.exp(-np.outer(grid, apart))
    likelihood = np.log(weights @ fits.T / weights.sum(axis=1, keepdims=True)) @ rankings.counts
    return grid[np.argmax(likelihood)]


@pytest.mark.parametrize("lengths", [None, {1: 0.3, 2: 0.4, 4: 0.3}])
def test_the_mallows_model_has_the_greatest_likelihood(lengths):
    drawn = mallows(200, [2, 0, 3, 1], 0.8, rng=1)
    ballots = (truncate(drawn, lengths, rng=2) if lengths else drawn).unique()
    fitted = fit_mallows(ballots)
    assert fitted.center == (2, 0, 3, 1)
    assert fitted.theta == pytest.approx(likeliest_theta(ballots, fitted.center), abs=0.005)


def test_the_mallows_model_of_ballots_that_leave_items_free_contradicts_its_center_as_often():
    full = mallows(4000, 5, 0.6, rng=0).ranks
    known = np.random.default_rng(1).random(full.shape) < 0.7
    ranks = np.where(known, np.argsort(np.argsort(np.where(known, full, 9), axis=1), axis=1), -1)
    fitted = fit_mallows(Rankings(ranks))
    assert fitted.center == (0, 1, 2, 3, 4)
    assert fitted.theta == pytest.approx(0.6, abs=0.05)  # its standard error is about 0.01


# ---------------------------------------------------------------------- the parts of the decision


def test_dispersion_within_clusters_against_its_definition():
    data = mallows(9, 4, 0.5, rng=3).unique()
    gram, counts = np.asarray(Kendall().gram(data)), data.counts.astype(float)
    labels = np.arange(len(data)) % 2
    slow = 0.0
    for number in (0, 1):
        own = np.flatnonzero(labels == number)
        total = counts[own].sum()
        for i in own:
            for j in own:
                slow += counts[i] * counts[j] * (gram[i, i] + gram[j, j] - 2 * gram[i, j]) / (2 * total)
    assert within(gram, counts, labels) == pytest.approx(slow)


def test_adjusted_rand_is_that_of_scikit_learn():
    from sklearn.metrics import adjusted_rand_score

    rng = np.random.default_rng(0)
    for _ in range(20):
        first, second, counts = rng.integers(0, 3, 12), rng.integers(0, 4, 12), rng.integers(1, 5, 12)
        wanted = adjusted_rand_score(np.repeat(first, counts), np.repeat(second, counts))
        assert adjusted_rand(first, second, counts.astype(float)) == pytest.approx(wanted)


# ---------------------------------------------------------------------- what is said


ONE_MODEL = {
    "uniform": partial(mallows, center=8, theta=0.0),
    "Plackett-Luce": partial(plackett_luce, weights=[9, 7, 5, 3, 2, 1]),
    "Mallows, theta 1": partial(mallows, center=6, theta=1.0),
    "Mallows, theta 1.5": partial(mallows, center=5, theta=1.5),
    "Mallows, theta 2": partial(mallows, center=6, theta=2.0),
}


@pytest.mark.parametrize("name", ONE_MODEL)
@pytest.mark.parametrize("seed", range(2))
def test_one_model_has_no_groups(name, seed):
    assert said(ONE_MODEL[name](200, rng=seed), seed).n_clusters == 1


def test_one_strong_plackett_luce_model_is_no_mallows_model_and_neither_the_reverse():
    """Each null alone takes ballots of the other kind for groups; a step has to be more than chance in both."""
    gains, nulls = np.array([0.2]), np.array([[[0.05, 0.06, 0.04], [0.19, 0.2, 0.21]]])
    assert step_of(2, gains, nulls[:, :1]).surprise > SURE
    both = step_of(2, gains, nulls)
    assert both.surprise < 1
    assert both.chance == pytest.approx(0.2)
    assert reached([both], SURE) == 1


def test_more_panels_make_a_gain_surer():
    nulls = np.array([[[0.1, 0.12, 0.08, 0.1]]])
    one, four = (step_of(2, np.full(n, 0.13), np.repeat(nulls, n, axis=0)) for n in (1, 4))
    assert four.surprise == pytest.approx(2 * one.surprise)


@pytest.mark.parametrize(("n_groups", "lengths"), [(2, None), (3, {2: 0.4, 3: 0.3, 8: 0.3}), (5, None)])
def test_known_groups_are_found(n_groups, lengths):
    rankings, labels = groups(n_groups, seed=1, lengths=lengths)
    study = summarize(Source(rankings))
    evidence = study.clustering.evidence
    assert evidence.n_clusters == len(study.clustering.clusters) == n_groups
    assert all(step.surprise > SURE and step.n_sets >= 2 * NULL_SETS for step in evidence.steps[: n_groups - 1])
    place = {
        row.tobytes(): label for row, label in zip(study.ballots.rankings.ranks, study.clustering.labels, strict=True)
    }
    found = np.array([place[row.tobytes()] for row in rankings.ranks])
    assert adjusted_rand(found, labels, np.ones(len(labels))) > (0.6 if lengths else 0.8)


def test_groups_in_preferences_are_found_and_noise_is_not():
    rng = np.random.default_rng(0)

    def users(flip):
        pairs = []
        for _ in range(16):
            order = rng.permutation(4) if flip is None else np.arange(4)[:: 1 if rng.random() < flip else -1]
            place = np.argsort(order)
            some = [rng.choice(4, 2, replace=False) for _ in range(4)]
            pairs.append([(f"i{a}", f"i{b}") if place[a] < place[b] else (f"i{b}", f"i{a}") for a, b in some])
        return Preferences.from_pairs(pairs, items=[f"i{n}" for n in range(4)])

    assert said(users(0.5)).n_clusters == 2
    assert said(users(None)).n_clusters == 1


def test_few_ballots_say_nothing():
    four = Rankings.from_orders([["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"], ["a", "c", "b"]])
    study = summarize(Source(four))
    assert len(study.clustering.clusters) == 1
    assert study.grouped is None
    assert "nothing can be said about groups" in page(study)


def test_a_page_without_groups_says_so_and_shows_fewer_pictures():
    written = page(summarize(Source(mallows(100, 6, 0.0, rng=2))))
    assert "There are no clear groups" in written
    assert 'id="tree"' not in written
    assert 'id="gram"' not in written


def test_an_asked_for_number_is_taken_and_not_tested():
    study = summarize(Source(mallows(100, 5, 0.0, rng=0)), Settings(n_clusters=4))
    assert len(study.clustering.clusters) == 4
    assert study.clustering.evidence is None
    assert "whether there are so many was not tested" in page(study)


def test_panels_share_no_voter_and_are_as_many_as_there_are_voters():
    rankings = Rankings(np.argsort(np.random.default_rng(0).random((1300, 6)), axis=1), counts=np.arange(1300) % 2 + 1)
    ballots = distinct_ballots(Source(rankings))
    panels = panels_to_ask(ballots, Mallows(0.1), "auto", 0)
    assert [len(panel) for panel in panels] == [488, 488, 487, 487]  # of 1,950 voters
    together = concat(panels).unique()
    asked = dict(zip(map(bytes, together.ranks), together.counts, strict=True))
    given = dict(zip(map(bytes, ballots.rankings.ranks), ballots.rankings.counts, strict=True))
    assert all(voters <= given[ballot] for ballot, voters in asked.items())
    assert len(panels_to_ask(distinct_ballots(Source(rankings[:300])), Mallows(0.1), "auto", 0)) == 1


def test_close_answers_are_asked_of_other_voters():
    """Three overlapping groups: whether three are stable is close, so that more than one panel is asked."""
    evidence = said(groups(3, 2000, 0.5, seed=3)[0])
    assert 1 < evidence.n_panels <= MOST_PANELS
    assert evidence.n_voters == SOME_VOTERS * evidence.n_panels


def test_where_panels_do_not_agree_the_page_says_between_what():
    study = summarize(Source(mallows(60, 4, 0.5, rng=0)), Settings(n_clusters=2))
    steps = tuple(Step(k, 0.2, 0.1, 9.0, 32) for k in (2, 3, 4))
    unsure = Evidence(2, 4, 6400, 16, {2: 0.7, 3: 0.5, 4: 0.5}, steps)
    written = page(replace(study, clustering=replace(study.clustering, evidence=unsure)))
    assert "How many there are is not sure, between 2 and 4" in written
    assert "the page shows 2" in written
    assert "judged on 6,400 voters, 400 at a time" in written


def test_few_voters_and_few_ballots_are_told_for_what_they_are():
    two = page(summarize(Source(Rankings.from_orders([["a", "b"], ["b", "a"]], counts=[60, 40]))))
    assert "With 2 different ballots there is nothing to divide into groups; that takes at least 3." in two


def test_the_same_seed_says_the_same():
    rankings, _ = groups(2, 60, seed=4)
    assert said(rankings, 7) == said(rankings, 7)

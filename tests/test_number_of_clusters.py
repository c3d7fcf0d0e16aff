"""Clusters only where there are any: null ballots are of the right shape and model, groups are found, noise is not."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import any_ranking, sized

from rankernel import Kendall, Mallows, Preferences, Rankings, concat
from rankernel.analysis.distinct_ballots import distinct_ballots
from rankernel.analysis.number_of_clusters import (
    NULL_SETS,
    SOME_VOTERS,
    adjusted_rand,
    doubt,
    margins,
    number_of_clusters,
    panels_to_ask,
    within,
)
from rankernel.analysis.source import Source
from rankernel.analysis.summary import Settings, summarize
from rankernel.completions.null_ballots import as_said, draw_ballots, fit_model, fit_models, one_by_one
from rankernel.datasets import mallows, mixture, plackett_luce, truncate
from rankernel.pages.page import page


def said(rankings, seed=0):
    ballots = distinct_ballots(Source(rankings))
    return number_of_clusters(ballots, Mallows("median").resolve(ballots.rankings), "auto", "ward", seed)


def groups(n_groups, n_rankings=400, theta=1.0, seed=0, lengths=None):
    rng = np.random.default_rng(seed)
    parts = [partial(mallows, center=rng.permutation(8), theta=theta) for _ in range(n_groups)]
    drawn = mixture(n_rankings, parts, seed=seed)
    return (truncate(drawn.rankings, lengths, seed=seed) if lengths else drawn.rankings), drawn.labels


# ---------------------------------------------------------------------- null ballots


@given(sized(any_ranking, length=4))
@settings(max_examples=40, deadline=None)
def test_null_ballots_have_the_shape_of_the_real_ones(ballots):
    rows = one_by_one(Rankings(ballots, counts=[1, 2, 1, 3]))
    full = np.argsort(np.random.default_rng(0).random(rows.ranks.shape), axis=1).astype(np.int32)
    told = as_said(full, rows)
    assert ((told.ranks == -1) == (rows.ranks == -1)).all()
    assert (np.sort(told.ranks, axis=1) == np.sort(rows.ranks, axis=1)).all()
    for ranks, order in zip(told.ranks, full, strict=True):  # nothing is said against the full ranking
        for a in range(len(ranks)):
            for b in range(len(ranks)):
                assert not (0 <= ranks[a] < ranks[b]) or order[a] < order[b]


def test_null_preferences_relate_what_the_real_ones_do():
    data = Preferences.from_pairs([[("a", "b"), ("c", "d")], [("d", "c")]])
    told = as_said(np.array([[3, 2, 1, 0], [0, 1, 2, 3]], dtype=np.int32), data)
    assert told.to_pairs() == [[("b", "a"), ("d", "c")], [("c", "d")]]


def test_null_ballots_come_from_the_model_of_their_cluster():
    strong = plackett_luce(3000, [8, 4, 2, 1], seed=0)
    weak = plackett_luce(3000, [1, 2, 4, 8], seed=1)
    both = Rankings(np.concatenate([strong.ranks, weak.ranks]))
    labels = np.repeat([0, 1], 3000)
    drawn = draw_ballots(both, labels, fit_models(both, labels), np.random.default_rng(0))
    for number, source in enumerate((strong, weak)):
        share = (drawn.ranks[labels == number] == 0).mean(axis=0)
        wanted = (source.ranks == 0).mean(axis=0)
        assert (np.abs(share - wanted) < 5 * np.sqrt(2 * wanted * (1 - wanted) / 3000)).all()


def test_the_model_of_pairs_is_that_of_races_of_two():
    pairs = Preferences.from_pairs([[("a", "b"), ("c", "d")], [("b", "a"), ("c", "d")]], counts=[300, 100])
    weights = fit_model(pairs).weights
    a, b = pairs.items.index("a"), pairs.items.index("b")
    assert weights[a] / weights[b] == pytest.approx(3, rel=0.01)


# ---------------------------------------------------------------------- the parts of the decision


def test_dispersion_within_clusters_against_its_definition():
    data = mallows(9, 4, 0.5, seed=3).unique()
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


@pytest.mark.parametrize("seed", range(3))
def test_uniform_ballots_have_no_groups(seed):
    found = said(mallows(600, 8, 0.0, seed=seed), seed)
    assert found.n_clusters == 1


@pytest.mark.parametrize(
    "draw", [partial(plackett_luce, weights=[9, 7, 5, 3, 2, 1]), partial(mallows, center=6, theta=1)]
)
def test_one_model_has_no_groups(draw):
    assert said(draw(400, seed=5)).n_clusters == 1


@pytest.mark.parametrize("n_groups", [2, 3, 5])
@pytest.mark.parametrize("lengths", [None, {2: 0.4, 3: 0.3, 8: 0.3}])
def test_known_groups_are_found(n_groups, lengths):
    rankings, labels = groups(n_groups, seed=1, lengths=lengths)
    study = summarize(Source(rankings))
    evidence = study.clustering.evidence
    assert evidence.n_clusters == len(study.clustering.clusters) == n_groups
    assert all(not step.reached and step.n_sets == NULL_SETS for step in evidence.steps[: n_groups - 1])
    place = {
        row.tobytes(): label for row, label in zip(study.ballots.rankings.ranks, study.clustering.labels, strict=True)
    }
    found = np.array([place[row.tobytes()] for row in rankings.ranks])
    assert adjusted_rand(found, labels, np.ones(len(labels))) > (0.6 if lengths else 0.8)


def test_groups_in_preferences_are_found_and_noise_is_not():
    rng = np.random.default_rng(0)

    def users(flip):
        pairs = []
        for _ in range(60):
            order = (
                rng.permutation(5) if flip is None else np.array([0, 1, 2, 3, 4])[:: 1 if rng.random() < flip else -1]
            )
            place = np.argsort(order)
            some = [rng.choice(5, 2, replace=False) for _ in range(4)]
            pairs.append([(f"i{a}", f"i{b}") if place[a] < place[b] else (f"i{b}", f"i{a}") for a, b in some])
        return Preferences.from_pairs(pairs, items=[f"i{n}" for n in range(5)])

    assert said(users(0.5)).n_clusters == 2
    assert said(users(None)).n_clusters == 1


def test_few_ballots_say_nothing():
    four = Rankings.from_orders([["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"], ["a", "c", "b"]])
    study = summarize(Source(four))
    assert len(study.clustering.clusters) == 1
    assert study.grouped is None
    assert "nothing can be said about groups" in page(study)


def test_a_page_without_groups_says_so_and_shows_fewer_pictures():
    written = page(summarize(Source(mallows(300, 6, 0.0, seed=2))))
    assert "There are no clear groups" in written
    assert 'id="tree"' not in written
    assert 'id="gram"' not in written


def test_an_asked_for_number_is_taken_and_not_tested():
    study = summarize(Source(mallows(100, 5, 0.0, seed=0)), Settings(n_clusters=4))
    assert len(study.clustering.clusters) == 4
    assert study.clustering.evidence is None
    assert "whether there are so many was not tested" in page(study)


def test_panels_share_no_voter_and_are_as_many_as_there_are_voters():
    rankings = Rankings(np.argsort(np.random.default_rng(0).random((1300, 6)), axis=1), counts=np.arange(1300) % 2 + 1)
    ballots = distinct_ballots(Source(rankings))
    panels = panels_to_ask(ballots, Mallows(0.1), "auto", 0)
    assert [len(panel) for panel in panels] == [SOME_VOTERS] * 4  # of 1,950 voters
    together = concat(panels).unique()
    asked = dict(zip(map(bytes, together.ranks), together.counts, strict=True))
    given = dict(zip(map(bytes, ballots.rankings.ranks), ballots.rankings.counts, strict=True))
    assert all(voters <= given[ballot] for ballot, voters in asked.items())
    assert len(panels_to_ask(distinct_ballots(Source(rankings[:300])), Mallows(0.1), "auto", 0)) == 1


def test_more_rounds_leave_less_doubt():
    rounds = [np.array([0.62, 0.55, 0.3])]
    assert (margins(rounds) >= doubt(rounds)).tolist() == [True, False, False]
    assert (margins(rounds * 16) >= doubt(rounds * 16)).tolist() == [True, True, False]


def test_close_answers_are_asked_of_other_voters():
    """Three overlapping groups: whether three are stable is close, so that more than one panel is asked."""
    evidence = said(groups(3, 2000, 0.5, seed=3)[0])
    assert 1 < evidence.n_panels <= 5
    assert evidence.n_voters == SOME_VOTERS * evidence.n_panels


def test_the_same_seed_says_the_same():
    rankings, _ = groups(2, seed=4)
    assert said(rankings, 7) == said(rankings, 7)

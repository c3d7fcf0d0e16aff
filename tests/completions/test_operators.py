"""The antithetic operator and the projection: lemmas, remarks and examples of the paper, by enumeration."""

import math
from collections import Counter

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import bucket_orders, permutations, top_k

from rankernel.completions import antithetic, draw, project
from rankernel.errors import RankingError
from rankernel.rankings import Rankings

exact = settings(max_examples=25, deadline=None)
sizes = st.integers(2, 6)


def rows(rankings):
    return [tuple(row) for row in rankings.ranks.tolist()]


def far(full, within):
    """A_R of one or more full rankings."""
    return rows(antithetic(full, [within]))


def near(full, onto):
    """Pi_R of one or more full rankings."""
    return rows(project(full, [onto]))


def tied_pairs(ranks):
    return sum(math.comb(ranks.count(bucket), 2) for bucket in set(ranks))


def pairs_of(make):
    return sizes.flatmap(lambda n: st.tuples(make(n), permutations(n)))


@st.composite
def nested_top_k(draw_from):
    """A top-l list, a top-m list that continues it, and n, l, m."""
    n = draw_from(sizes)
    full = draw_from(permutations(n))
    m = draw_from(st.integers(0, n))
    l = draw_from(st.integers(0, m))  # noqa: E741
    return tuple(min(r, l) for r in full), tuple(min(r, m) for r in full), n, l, m


# ---------------------------------------------------------------------- the antithetic operator


@exact
@given(st.integers(2, 5).flatmap(top_k))
def test_antithetic_of_top_k_is_the_unique_farthest(ranks):
    completions = naive.completions(ranks)
    for sigma, image in zip(completions, far(completions, ranks), strict=True):
        distances = Counter(naive.kendall(sigma, x) for x in completions)
        assert naive.kendall(sigma, image) == max(distances) == tied_pairs(ranks)
        assert distances[max(distances)] == 1


@exact
@given(sizes.flatmap(bucket_orders))
def test_antithetic_of_bucket_orders_is_the_unique_farthest(ranks):
    completions = naive.completions(ranks)
    sigma, (image,) = completions[0], far(completions[:1], ranks)
    distances = [naive.kendall(sigma, x) for x in completions]
    assert [x for x, d in zip(completions, distances, strict=True) if d == max(distances)] == [image]


@exact
@given(sizes.flatmap(bucket_orders))
def test_antithetic_preserves_uniformity(ranks):
    completions = naive.completions(ranks)
    assert sorted(far(completions, ranks)) == sorted(completions)


def test_farthest_completion_with_free_items():
    """n = 3 and 2 > 1 (items counted from 1): the farthest completion is never the middle one, or not unique."""
    completions = naive.completions((1, 0, -1))
    farthest = {}
    for x in completions:
        most = max(naive.kendall(x, y) for y in completions)
        farthest[x] = [y for y in completions if naive.kendall(x, y) == most]
    middle = (2, 0, 1)
    assert sorted(naive.kendall(x, y) for x in completions for y in completions if x < y) == [1, 1, 2]
    assert all(middle not in images for images in farthest.values())
    assert len(farthest[middle]) == 2
    with pytest.raises(RankingError, match="within: row 0 has free items"):
        antithetic([middle], [(1, 0, -1)])


@exact
@given(sizes.flatmap(lambda n: st.tuples(permutations(n), permutations(n))))
def test_distance_identity_of_full_rankings(pair):
    sigma, tau = pair
    n = len(sigma)
    (image,) = far([sigma], (0,) * n)
    assert naive.kendall(sigma, tau) == math.comb(n, 2) - naive.kendall(image, tau)


@exact
@given(sizes.flatmap(bucket_orders), st.randoms(use_true_random=False))
def test_distance_identity_of_bucket_orders(ranks, random):
    completions = naive.completions(ranks)
    sigma, tau = random.choice(completions), random.choice(completions)
    (image,) = far([sigma], ranks)
    assert naive.kendall(sigma, tau) == tied_pairs(ranks) - naive.kendall(image, tau)


# ---------------------------------------------------------------------- the projection


@exact
@given(pairs_of(bucket_orders))
def test_projection_is_the_unique_closest(case):
    ranks, tau = case
    completions = naive.completions(ranks)
    distances = [naive.kendall(x, tau) for x in completions]
    assert [x for x, d in zip(completions, distances, strict=True) if d == min(distances)] == near([tau], ranks)


def test_closest_completion_with_free_items():
    distances = sorted(naive.kendall(x, (2, 0, 1)) for x in naive.completions((0, 1, -1)))
    assert distances == [2, 2, 3]
    with pytest.raises(RankingError, match="onto: row 0 has free items"):
        project([(2, 0, 1)], [(0, 1, -1)])


@exact
@given(pairs_of(bucket_orders))
def test_decomposition_of_distances(case):
    ranks, tau = case
    (closest,) = near([tau], ranks)
    for sigma in naive.completions(ranks)[:50]:
        parts = naive.kendall(sigma, closest) + naive.kendall(closest, tau)
        assert naive.kendall(sigma, tau) == parts


@exact
@given(pairs_of(bucket_orders))
def test_antithetic_distance(case):
    ranks, tau = case
    (closest,) = near([tau], ranks)
    completions = naive.completions(ranks)[:50]
    for sigma, image in zip(completions, far(completions, ranks), strict=True):
        relation = naive.kendall(sigma, tau) + tied_pairs(ranks) - 2 * naive.kendall(sigma, closest)
        assert naive.kendall(image, tau) == relation


@exact
@given(sizes.flatmap(lambda n: st.tuples(top_k(n), top_k(n))))
def test_projection_is_uniform_on_the_refinement(pair):
    ranks, other = pair
    levels = sorted(set(zip(ranks, other, strict=True)))
    smaller = tuple(levels.index(level) for level in zip(ranks, other, strict=True))
    images = Counter(near(naive.completions(other), ranks))
    assert set(images) == set(naive.completions(smaller))
    assert len(set(images.values())) == 1


# ---------------------------------------------------------------------- both together


@exact
@given(nested_top_k())
def test_antithetic_and_projection_commute(case):
    outer, inner, *_ = case
    sigmas = naive.completions(outer)
    assert far(near(sigmas, inner), inner) == near(far(sigmas, outer), inner)


@exact
@given(nested_top_k())
def test_distance_to_projection_of_the_antithetic(case):
    outer, inner, n, l, m = case  # noqa: E741
    sigmas = naive.completions(outer)
    images = far(sigmas, outer)
    for sigma, near_sigma, image, near_image in zip(
        sigmas, near(sigmas, inner), images, near(images, inner), strict=True
    ):
        total = ((n - l) - (m - l)) * (m - l) + math.comb(m - l, 2)
        assert naive.kendall(sigma, near_sigma) == total - naive.kendall(image, near_image)


# ---------------------------------------------------------------------- covariance


def covariance(pairs):
    xs, ys = zip(*pairs, strict=True)
    return math.fsum(x * y for x, y in pairs) / len(pairs) - math.fsum(xs) * math.fsum(ys) / len(pairs) ** 2


@exact
@given(pairs_of(bucket_orders), st.sampled_from([0.05, 0.3, 1.0]))
def test_negative_covariance(case, nu):
    """For distances, and by the corollary for exp(-nu d), to any full ranking; zero only if nothing is tied."""
    ranks, tau = case
    completions = naive.completions(ranks)
    distances = [
        (naive.kendall(sigma, tau), naive.kendall(image, tau))
        for sigma, image in zip(completions, far(completions, ranks), strict=True)
    ]
    variance = covariance([(x, x) for x, _ in distances])
    assert covariance(distances) == pytest.approx(-variance, rel=1e-12, abs=1e-12)
    assert (variance > 0) == (tied_pairs(ranks) > 0)
    if variance > 0:
        assert covariance([(math.exp(-nu * x), math.exp(-nu * y)) for x, y in distances]) < 0


def test_positive_covariance_with_free_items():
    """0 > 1 with 2 free: both draws of a pair may lie on the same side of 0 > 2 > 1."""
    ranks, tau, nu = (0, 1, -1), (0, 2, 1), 0.2
    pairs = [
        tuple(map(tuple, pair)) for pair in draw([ranks], 60, coupling="antithetic").ranks[0].reshape(30, 2, 3).tolist()
    ]
    partner = dict(pairs) | {y: x for x, y in pairs}
    assert set(partner) == set(naive.completions(ranks))
    values = [
        (math.exp(-nu * naive.kendall(x, tau)), math.exp(-nu * naive.kendall(y, tau))) for x, y in partner.items()
    ]
    # One completion is its own reversal and equals tau; the other two are at distance 1.
    assert covariance(values) == pytest.approx(2 / 9 * (1 - math.exp(-nu)) ** 2, rel=1e-12)
    assert round(covariance(values), 4) == 0.0073


# ---------------------------------------------------------------------- rows, items and errors


def test_broadcasting_of_rows():
    fulls = Rankings([[0, 1, 2, 3], [0, 2, 1, 3]], items=["a", "b", "c", "d"], counts=[2, 5])
    lists = [[0, 1, 1, 1], [0, 1, 1, 2]]
    assert rows(antithetic(fulls.ranks, [lists[0]])) == [(0, 3, 2, 1), (0, 2, 3, 1)]
    assert rows(antithetic([[0, 1, 2, 3]], lists)) == [(0, 3, 2, 1), (0, 2, 1, 3)]
    assert rows(antithetic(fulls, Rankings(lists, fulls.items))) == [(0, 3, 2, 1), (0, 1, 2, 3)]
    assert rows(project([[3, 2, 1, 0]], lists)) == [(0, 3, 2, 1), (0, 2, 1, 3)]
    kept = antithetic(fulls, Rankings([lists[0]], fulls.items))
    assert (kept.items, kept.counts.tolist()) == (("a", "b", "c", "d"), [2, 5])


def test_items_are_matched_by_name():
    full = Rankings.from_orders([["a", "b", "c"]])
    within = Rankings.from_orders([["a"]], items=["c", "b", "a"])
    assert antithetic(full, within) == Rankings.from_orders([["a", "c", "b"]], items=["a", "b", "c"])
    with pytest.raises(RankingError, match="rankings and onto do not rank the same items"):
        project(full, Rankings.from_orders([["a", "b", "x"]]))


def test_invalid_rankings():
    with pytest.raises(RankingError, match="row 1 of rankings is not a completion"):
        antithetic([[0, 1, 2], [1, 0, 2]], [[0, 1, 1]])
    with pytest.raises(RankingError, match="rankings: row 0"):
        project([[0, 1, 1]], [[0, 1, 1]])
    with pytest.raises(RankingError, match="onto has 3 rows for 2 rankings"):
        project([[0, 1], [1, 0]], [[0, 0]] * 3)


def test_no_rankings():
    assert len(antithetic(np.empty((0, 3), dtype=int), [[0, 1, 1]])) == 0

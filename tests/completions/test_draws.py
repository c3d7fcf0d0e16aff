"""Enumeration of completions, draws, and completion models."""

import itertools
import math
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import any_ranking, sized

from rankernel.completions import Draws, LogDensity, Uniform, draw, enumerate_completions
from rankernel.completions.draws import COUPLINGS, complete
from rankernel.completions.linear_extensions import n_completions
from rankernel.errors import ExactnessError, RankingError, SamplingWarning
from rankernel.rankings import Rankings

KINDS = [(0, 1, 2, 3), (0, 1, 1, 1), (1, 0, 0, 1), (0, 1, -1, -1), (-1, 0, 0, 1), (-1, -1, -1, -1), (-1, 0, -1, -1)]


def tuples(array):
    return [tuple(row) for row in np.asarray(array).tolist()]


def completion_by_keys(ranks, keys):
    """Assign the sorted listed keys to the listed items by bucket and own key, then rank all keys."""
    listed = [a for a in range(len(ranks)) if ranks[a] >= 0]
    handed = list(keys)
    for item, key in zip(
        sorted(listed, key=lambda a: (ranks[a], keys[a])), sorted(keys[a] for a in listed), strict=True
    ):
        handed[item] = key
    position = {key: p for p, key in enumerate(sorted(handed))}
    return tuple(position[key] for key in handed)


# ---------------------------------------------------------------------- all completions


@settings(max_examples=40, deadline=None)
@given(sized(any_ranking))
def test_enumeration_is_complete_and_lexicographic(rankings):
    (ranks,) = rankings
    found = tuples(enumerate_completions(np.array(ranks)))
    orders = [tuple(sorted(range(len(ranks)), key=full.__getitem__)) for full in found]
    assert orders == sorted(orders)
    assert sorted(found) == sorted(naive.completions(ranks))
    assert n_completions(np.array(ranks)) == len(found)


def test_enumeration_limit():
    with pytest.raises(ExactnessError, match="3,628,800"):
        enumerate_completions(np.zeros(10, dtype=int), limit=1000)


# ---------------------------------------------------------------------- keys


@settings(max_examples=40, deadline=None)
@given(sized(any_ranking, high=8), st.integers(0, 2**32))
def test_completions_from_keys(rankings, seed):
    (ranks,) = rankings
    keys = np.random.default_rng(seed).random((5, len(ranks)))
    found = complete(np.array([ranks]), keys[None])
    assert tuples(found[0]) == [completion_by_keys(ranks, row) for row in keys.tolist()]


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("n_items", [200, 1600])
def test_completions_from_keys_of_many_items(n_items, free):
    """Small buckets are ranked by counting, large ones by sorting."""
    rng = np.random.default_rng(0)
    ranks = rng.integers(0, 3, n_items)
    ranks[rng.random(n_items) < 0.4 * free] = -1
    keys = rng.random((1, 3, n_items))
    found = complete(ranks[None, :], keys)
    assert tuples(found[0]) == [completion_by_keys(tuple(ranks), row) for row in keys[0].tolist()]


@pytest.mark.parametrize("ranks", KINDS)
def test_completions_from_keys_are_uniform(ranks):
    orders = list(itertools.permutations(range(4)))
    found = Counter(tuples(complete(np.array([ranks]), np.array([orders], dtype=float))[0]))
    everything = naive.completions(ranks)
    assert found == {full: len(orders) // len(everything) for full in everything}


def test_equal_keys_are_ordered_by_item():
    for n_items in (5, 60, 600):
        assert complete(np.zeros((1, n_items)), np.zeros((1, 1, n_items)))[0, 0].tolist() == list(range(n_items))


def test_too_many_items():
    with pytest.raises(RankingError, match="32,769 items"):
        draw(np.zeros((1, 2**15 + 1), dtype=int), 1)


# ---------------------------------------------------------------------- draws


@pytest.fixture(scope="module")
def ballots():
    rng = np.random.default_rng(5)
    ranks = rng.integers(-1, 4, (40, 6))
    ranks[:10] = np.minimum(np.argsort(rng.random((10, 6))), 3)
    return Rankings(ranks)


WITHOUT_KERNEL = [name for name in COUPLINGS if name != "herding"]  # which needs a kernel


@pytest.mark.parametrize("coupling", WITHOUT_KERNEL)
def test_draws_do_not_depend_on_blocks_or_threads(ballots, coupling):
    whole = draw(ballots, 12, coupling=coupling, rng=3).ranks
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda i: draw(ballots[i], 12, coupling=coupling, rng=3).ranks[0], range(len(ballots))))
    assert np.array_equal(whole, np.stack(parts))
    assert np.array_equal(draw(ballots[::-1], 12, coupling=coupling, rng=3).ranks, whole[::-1])
    assert not np.array_equal(draw(ballots, 12, coupling=coupling, rng=4).ranks, whole)


@pytest.mark.parametrize("coupling", WITHOUT_KERNEL)
def test_first_draws_of_many_are_those_of_few(ballots, coupling):
    many = draw(ballots, 23, coupling=coupling).ranks
    for few in (1, 2, 5, 11):
        assert np.array_equal(many[:, :few], draw(ballots, few, coupling=coupling).ranks)


def test_row_numbers_make_draws_independent():
    equal = np.zeros((50, 6), dtype=int)
    shared, apart = draw(equal, 4).ranks, draw(equal, 4, rows=range(50)).ranks
    assert (shared == shared[0]).all()
    assert len(set(map(bytes, apart))) == 50
    assert np.array_equal(draw(equal[20:], 4, rows=range(20, 50)).ranks, apart[20:])


@settings(max_examples=40, deadline=None)
@given(sized(any_ranking, length=3), st.sampled_from(WITHOUT_KERNEL))
def test_draws_are_completions(rankings, coupling):
    draws = draw(rankings, 5, coupling=coupling)
    for ranks, rows in zip(rankings, draws.ranks, strict=True):
        assert set(tuples(rows)) <= set(naive.completions(ranks))


def test_draws_record(ballots):
    draws = draw(ballots, 10, coupling="orthogonal")
    assert isinstance(draws, Draws)
    assert (draws.ranks.shape, draws.ranks.dtype, draws.n_draws) == ((40, 10, 6), np.int16, 10)
    assert (draws.weights, draws.block, draws.effective_size.tolist()) == (None, 10, [10.0] * 40)
    blocks = {"iid": 1, "antithetic": 2, "orthogonal": 10}
    assert {name: draw(ballots, 10, coupling=name).block for name in blocks} == blocks


@pytest.mark.parametrize("ranks", [(0,), (-1,), (0, 0), (-1, -1), (1, 0), (-1, 0)])
@pytest.mark.parametrize("coupling", WITHOUT_KERNEL)
def test_one_and_two_items(ranks, coupling):
    found = set(tuples(draw([ranks], 40, coupling=coupling).ranks[0]))
    assert found == set(naive.completions(ranks))


def test_zero_draws():
    with pytest.raises(ValueError, match="n_draws"):
        draw([[0, 1]], 0)


def test_invalid_completion_model():
    with pytest.raises(TypeError, match="completions"):
        draw([[0, 1]], 1, completions="uniform")


def test_no_rankings():
    assert draw(np.empty((0, 4), dtype=int), 3).ranks.shape == (0, 3, 4)


# ---------------------------------------------------------------------- completion models


def tilted(ranks):
    """A log-density that ranks item 0 late and item 1 early."""
    return 0.4 * ranks[:, 0] - 0.3 * ranks[:, 1] ** 2


def tilted_probabilities(ranks):
    full = naive.completions(ranks)
    density = [math.exp(0.4 * x[0] - 0.3 * x[1] ** 2) for x in full]
    return {x: d / math.fsum(density) for x, d in zip(full, density, strict=True)}


@pytest.mark.parametrize(("coupling", "ranks"), list(itertools.product(WITHOUT_KERNEL, KINDS)))
def test_weights_are_self_normalised_density_ratios(coupling, ranks):
    draws = draw([ranks], 30, coupling=coupling, completions=LogDensity(tilted))
    exact = tilted_probabilities(ranks)
    density = np.array([exact[x] for x in tuples(draws.ranks[0])])
    assert np.array_equal(draws.ranks, draw([ranks], 30, coupling=coupling).ranks)
    assert draws.weights[0] == pytest.approx(density / density.mean(), rel=1e-12)
    size = density.sum() ** 2 / (density**2).sum()
    assert draws.effective_size == pytest.approx([size], rel=1e-12)


def test_weighted_means_are_consistent():
    ranks = (-1, 0, 0, 1)
    exact = sum(p * x[0] for x, p in tilted_probabilities(ranks).items())
    runs = draw([ranks] * 400, 300, completions=LogDensity(tilted), rows=range(400))
    means = (runs.weights * runs.ranks[:, :, 0]).mean(axis=1)
    assert abs(means.mean() - exact) < 5 * means.std() / math.sqrt(len(means))


def test_constant_density_is_uniform():
    draws = draw([(0, 1, 1, -1)], 9, completions=LogDensity(lambda ranks: np.full(len(ranks), 1000.0)))
    assert np.array_equal(draws.weights, np.ones((1, 9)))
    assert draws.effective_size[0] == 9
    assert np.array_equal(draws.ranks, draw([(0, 1, 1, -1)], 9, completions=Uniform()).ranks)


def test_low_effective_sample_size_warns():
    steep = LogDensity(lambda ranks: -30.0 * ranks[:, 0])
    with pytest.warns(SamplingWarning, match="effective sample size is low for 1 of 2"):
        draw([[0] * 30, range(30)], 100, completions=steep)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw([range(30)], 100, completions=steep)


def test_invalid_log_densities():
    with pytest.raises(RankingError, match=r"function returned shape \(3, 1\)"):
        draw([[0, 0, 0]], 3, completions=LogDensity(lambda ranks: np.zeros((len(ranks), 1))))
    with pytest.raises(RankingError, match="function returned nan"):
        draw([[0, 0, 0]], 3, completions=LogDensity(lambda ranks: np.full(len(ranks), np.nan)))
    with pytest.raises(RankingError, match="density 0"):
        draw([[0, 0, 0]], 3, completions=LogDensity(lambda ranks: np.full(len(ranks), -np.inf)))

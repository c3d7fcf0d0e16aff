"""Listing completions, keys, streams, draws and completion models."""

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

from rankernel import _loops
from rankernel._utils.rng import as_seed, row_streams, stream_key
from rankernel.completions import Draws, LogDensity, Uniform, draw, enumerate_completions
from rankernel.completions.couplings import complete
from rankernel.completions.enumerate import n_completions
from rankernel.errors import ExactnessError, RankingError, SamplingWarning
from rankernel.rankings import Rankings

KINDS = [(0, 1, 2, 3), (0, 1, 1, 1), (1, 0, 0, 1), (0, 1, -1, -1), (-1, 0, 0, 1), (-1, -1, -1, -1), (-1, 0, -1, -1)]


def tuples(array):
    return [tuple(row) for row in np.asarray(array).tolist()]


def completion_by_keys(ranks, keys):
    """Hand the sorted keys of the listed items to them, by bucket and own key; rank all keys."""
    listed = [a for a in range(len(ranks)) if ranks[a] >= 0]
    handed = list(keys)
    for item, key in zip(
        sorted(listed, key=lambda a: (ranks[a], keys[a])), sorted(keys[a] for a in listed), strict=True
    ):
        handed[item] = key
    return tuple(sorted(handed).index(key) for key in handed)


# ---------------------------------------------------------------------- all completions


@settings(max_examples=40, deadline=None)
@given(sized(any_ranking))
def test_enumeration_lists_every_completion_once_in_dictionary_order(rankings):
    (ranks,) = rankings
    found = tuples(enumerate_completions(np.array(ranks)))
    orders = [tuple(sorted(range(len(ranks)), key=full.__getitem__)) for full in found]
    assert orders == sorted(orders)
    assert sorted(found) == sorted(naive.completions(ranks))
    assert n_completions(np.array(ranks)) == len(found)


def test_too_many_completions_are_refused():
    with pytest.raises(ExactnessError, match="3,628,800 completions; at most 1,000"):
        enumerate_completions(np.zeros(10, dtype=int), limit=1000)


# ---------------------------------------------------------------------- keys


@settings(max_examples=40, deadline=None)
@given(sized(any_ranking, high=8), st.integers(0, 2**32))
def test_keys_give_the_completion_of_the_one_fact(rankings, seed):
    (ranks,) = rankings
    keys = np.random.default_rng(seed).random((5, len(ranks)))
    found = complete(np.array([ranks]), keys[None])
    assert tuples(found[0]) == [completion_by_keys(ranks, row) for row in keys.tolist()]


@pytest.mark.parametrize("free", [False, True])
def test_keys_of_many_items(free):
    rng = np.random.default_rng(0)
    ranks = rng.integers(0, 3, 200)
    ranks[rng.random(200) < 0.4 * free] = -1
    keys = rng.random((1, 3, 200))
    found = complete(ranks[None, :], keys)
    assert tuples(found[0]) == [completion_by_keys(tuple(ranks), row) for row in keys[0].tolist()]


@pytest.mark.parametrize("ranks", KINDS)
def test_every_completion_has_equally_many_orders_of_keys(ranks):
    orders = list(itertools.permutations(range(4)))
    found = Counter(tuples(complete(np.array([ranks]), np.array([orders], dtype=float))[0]))
    everything = naive.completions(ranks)
    assert found == {full: len(orders) // len(everything) for full in everything}


def test_equal_keys_are_in_the_order_of_the_items():
    for n_items in (5, 60):
        assert complete(np.zeros((1, n_items)), np.zeros((1, 1, n_items)))[0, 0].tolist() == list(range(n_items))


def test_keys_of_another_shape_are_refused():
    with pytest.raises(RankingError, match=r"keys of shape \(1, 2, 4\) do not fit"):
        complete(np.zeros((1, 3)), np.zeros((1, 2, 4)))


def test_more_items_than_positions_are_refused():
    with pytest.raises(RankingError, match="32,769 items"):
        complete(np.zeros((1, 2**15 + 1)), np.zeros((1, 1, 2**15 + 1)))


# ---------------------------------------------------------------------- streams


def chi_square_excess(counts):
    """How many standard deviations the chi-square statistic of equally probable cells is above its mean."""
    counts = np.asarray(counts, dtype=float)
    statistic = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
    freedom = len(counts) - 1
    return (statistic - freedom) / math.sqrt(2 * freedom)


def first_numbers(streams, n_numbers):
    from rankernel import _loops

    return _loops.random_streams.uniforms(streams, n_numbers)


@pytest.fixture(scope="module")
def neighbours():
    """Numbers of streams that differ as little as possible: by seed, by row, by one rank."""
    ranks = np.array([[0, 1, 2, 3]])
    seeds = np.concatenate([row_streams(ranks, seed, "test") for seed in range(4000)])
    rows = row_streams(np.repeat(ranks, 4000, axis=0), 0, "test", np.arange(4000))
    codes = np.array(list(itertools.product(range(-1, 4), repeat=5)))
    return [first_numbers(streams, 50) for streams in (seeds, rows, row_streams(codes, 0, "test"))]


def test_streams_are_uniform(neighbours):
    for numbers in neighbours:
        assert numbers.min() >= 0
        assert numbers.max() < 1
        assert abs(chi_square_excess(np.bincount((numbers * 256).astype(int).ravel(), minlength=256))) < 5


def test_neighbouring_streams_are_uncorrelated(neighbours):
    for numbers in neighbours:
        centred = (numbers - 0.5) * math.sqrt(12)
        for lag in (1, 2, 5, 25):
            product = (centred[lag:] * centred[:-lag]).ravel()
            assert abs(product.mean()) < 5 / math.sqrt(product.size)


def test_pairs_inside_streams_are_uniform(neighbours):
    for numbers in neighbours:
        cells = (numbers * 16).astype(int)
        for one, two in ((cells[:, :-1], cells[:, 1:]), (cells[:-1], cells[1:])):
            assert abs(chi_square_excess(np.bincount((16 * one + two).ravel(), minlength=256))) < 5


def test_the_numbers_are_the_published_generators():
    """xoshiro256++ seeded by splitmix64, written out in Python integers."""
    mask = 2**64 - 1

    def rotate(x, k):
        return (x << k | x >> (64 - k)) & mask

    def splitmix(x):
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & mask
        x = (x ^ x >> 27) * 0x94D049BB133111EB & mask
        return x ^ x >> 31

    stream = 12345678901234567890
    s = [splitmix(stream + (i + 1) * 0x9E3779B97F4A7C15 & mask) for i in range(4)]
    expected = []
    for _ in range(10):
        expected.append(((rotate(s[0] + s[3] & mask, 23) + s[0] & mask) >> 11) * 2.0**-53)
        t = s[1] << 17 & mask
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotate(s[3], 45)
    assert first_numbers(np.array([stream], dtype=np.uint64), 10)[0].tolist() == expected


def test_streams_differ_by_seed_purpose_ranking_and_row():
    ranks = np.array(list(itertools.product(range(-1, 3), repeat=4)))
    streams = [row_streams(ranks, seed, purpose) for seed in (0, 1) for purpose in ("a", "b")]
    streams.append(row_streams(ranks, 0, "a", np.arange(len(ranks))))
    streams.append(row_streams(ranks[:1], 0, "a", np.array([7])))
    everything = np.concatenate(streams)
    assert len(set(everything.tolist())) == len(everything)


def test_seeds():
    assert as_seed(3) == as_seed(np.int64(3)) == 3
    assert as_seed(np.random.default_rng(0)) == int(np.random.default_rng(0).integers(2**63))
    assert as_seed(None) != as_seed(None)
    assert stream_key(2**80, "a") != stream_key(2**80 + 1, "a")
    for wrong in (-1, 1.5, "1", True):
        with pytest.raises(RankingError, match="is not a seed"):
            as_seed(wrong)


# ---------------------------------------------------------------------- draws


@pytest.fixture(scope="module")
def ballots():
    rng = np.random.default_rng(5)
    ranks = rng.integers(-1, 4, (40, 6))
    ranks[:10] = np.minimum(np.argsort(rng.random((10, 6))), 3)
    return Rankings(ranks)


COUPLINGS = ["iid", "antithetic", "orthogonal", "latin"]


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_draws_do_not_depend_on_chunks_order_or_threads(ballots, coupling):
    whole = draw(ballots, 12, coupling=coupling, rng=3).ranks
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda i: draw(ballots[i], 12, coupling=coupling, rng=3).ranks[0], range(len(ballots))))
    assert np.array_equal(whole, np.stack(parts))
    assert np.array_equal(draw(ballots[::-1], 12, coupling=coupling, rng=3).ranks, whole[::-1])
    assert not np.array_equal(draw(ballots, 12, coupling=coupling, rng=4).ranks, whole)


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_more_draws_begin_with_fewer(ballots, coupling):
    many = draw(ballots, 23, coupling=coupling).ranks
    for few in (1, 2, 5, 11):
        assert np.array_equal(many[:, :few], draw(ballots, few, coupling=coupling).ranks)


def test_equal_rows_share_their_draws_unless_told_apart():
    equal = np.zeros((50, 6), dtype=int)
    shared, apart = draw(equal, 4).ranks, draw(equal, 4, rows=range(50)).ranks
    assert (shared == shared[0]).all()
    assert len(set(map(bytes, apart))) == 50
    assert np.array_equal(draw(equal[20:], 4, rows=range(20, 50)).ranks, apart[20:])


@settings(max_examples=40, deadline=None)
@given(sized(any_ranking, length=3), st.sampled_from(COUPLINGS))
def test_draws_are_completions(rankings, coupling):
    draws = draw(rankings, 5, coupling=coupling)
    for ranks, rows in zip(rankings, draws.ranks, strict=True):
        assert set(tuples(rows)) <= set(naive.completions(ranks))


def test_what_a_draws_record_holds(ballots):
    draws = draw(ballots, 10, coupling="orthogonal")
    assert isinstance(draws, Draws)
    assert (draws.ranks.shape, draws.ranks.dtype, draws.n_draws) == ((40, 10, 6), np.int16, 10)
    assert (draws.weights, draws.block, draws.effective_size.tolist()) == (None, 10, [10.0] * 40)
    assert [draw(ballots, 10, coupling=coupling).block for coupling in COUPLINGS] == [1, 2, 10, 6]


@pytest.mark.parametrize("ranks", [(0,), (-1,), (0, 0), (-1, -1), (1, 0), (-1, 0)])
@pytest.mark.parametrize("coupling", COUPLINGS)
def test_one_and_two_items(ranks, coupling):
    found = set(tuples(draw([ranks], 40, coupling=coupling).ranks[0]))
    assert found == set(naive.completions(ranks))


def test_no_draws_are_refused():
    with pytest.raises(ValueError, match="n_draws=0"):
        draw([[0, 1]], 0)


def test_something_else_than_a_model_is_refused():
    with pytest.raises(RankingError, match="completions='uniform' is not a completion model"):
        draw([[0, 1]], 1, completions="uniform")


def test_no_rankings_give_no_draws():
    assert draw(np.empty((0, 4), dtype=int), 3).ranks.shape == (0, 3, 4)


# ---------------------------------------------------------------------- completion models


def tilted(ranks):
    """The logarithm of a density: item 0 wants to be late, item 1 early."""
    return 0.4 * ranks[:, 0] - 0.3 * ranks[:, 1] ** 2


def tilted_probabilities(ranks):
    full = naive.completions(ranks)
    density = [math.exp(0.4 * x[0] - 0.3 * x[1] ** 2) for x in full]
    return {x: d / math.fsum(density) for x, d in zip(full, density, strict=True)}


@pytest.mark.parametrize("ranks", KINDS)
def test_plain_weights_are_the_ratio_of_densities(ranks):
    draws = draw([ranks], 30, completions=LogDensity(tilted, self_normalized=False))
    exact = tilted_probabilities(ranks)
    expected = [exact[x] * len(exact) for x in tuples(draws.ranks[0])]
    assert draws.weights[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_self_normalised_weights_are_proportional_and_average_one(coupling):
    ranks = (-1, 0, 0, 1)
    draws = draw([ranks], 30, coupling=coupling, completions=LogDensity(tilted))
    exact = tilted_probabilities(ranks)
    density = np.array([exact[x] for x in tuples(draws.ranks[0])])
    assert np.array_equal(draws.ranks, draw([ranks], 30, coupling=coupling).ranks)
    assert draws.weights[0] == pytest.approx(density / density.mean(), rel=1e-12)
    size = density.sum() ** 2 / (density**2).sum()
    assert draws.effective_size == pytest.approx([size], rel=1e-12)


@pytest.mark.parametrize("self_normalized", [False, True])
def test_weighted_means_are_those_of_the_model(self_normalized):
    ranks = (-1, 0, 0, 1)
    exact = sum(p * x[0] for x, p in tilted_probabilities(ranks).items())
    model = LogDensity(tilted, self_normalized=self_normalized)
    runs = draw([ranks] * 400, 300, completions=model, rows=range(400))
    means = (runs.weights * runs.ranks[:, :, 0]).mean(axis=1)
    assert abs(means.mean() - exact) < 5 * means.std() / math.sqrt(len(means))


def test_a_constant_density_is_uniform():
    draws = draw([(0, 1, 1, -1)], 9, completions=LogDensity(lambda ranks: np.full(len(ranks), 1000.0)))
    assert np.array_equal(draws.weights, np.ones((1, 9)))
    assert draws.effective_size[0] == 9
    assert np.array_equal(draws.ranks, draw([(0, 1, 1, -1)], 9, completions=Uniform()).ranks)


def test_a_few_heavy_draws_warn():
    steep = LogDensity(lambda ranks: -30.0 * ranks[:, 0])
    with pytest.warns(SamplingWarning, match="the draws of 1 of 2 rankings are worth hardly any, or less than a tenth"):
        draw([[0] * 30, range(30)], 100, completions=steep)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw([range(30)], 100, completions=steep)


def test_plain_weights_need_few_completions():
    with pytest.raises(ExactnessError, match="3,628,800"):
        draw([[0] * 10], 5, completions=LogDensity(tilted, self_normalized=False))


def test_log_densities_are_checked():
    with pytest.raises(RankingError, match=r"returned shape \(3, 1\) for 3 full rankings"):
        draw([[0, 0, 0]], 3, completions=LogDensity(lambda ranks: np.zeros((len(ranks), 1))))
    with pytest.raises(RankingError, match="nan"):
        draw([[0, 0, 0]], 3, completions=LogDensity(lambda ranks: np.full(len(ranks), np.nan)))
    with pytest.raises(RankingError, match="density 0"):
        draw([[0, 0, 0]], 3, completions=LogDensity(lambda ranks: np.full(len(ranks), -np.inf)))


@pytest.mark.parametrize("size", [1, 2, 7, 40, 511, 512, 513, 1500])
def test_sorting_by_keys_with_ties(size):
    """Few are ranked by counting, many by a heap."""
    rng = np.random.default_rng(size)
    keys = rng.integers(0, max(size // 3, 1), size).astype(float)
    items = np.sort(rng.choice(5 * size, size, replace=False))
    expected = items[np.argsort(keys, kind="stable")]
    _loops.key_sorts.sort_by_keys(items, keys, np.empty(size, np.int64), np.empty(size, np.int64))
    assert (items == expected).all()

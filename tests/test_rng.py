"""Seeds, and the random streams of rankings."""

import itertools
import math

import numpy as np
import pytest

from rankernel._loops.random_streams import uniforms
from rankernel._utils.checks import as_seed, stream_key
from rankernel.completions.draws import row_streams
from rankernel.errors import RankingError


def chi_square_excess(counts):
    """Return the standardised chi-square statistic of equally probable cells."""
    counts = np.asarray(counts, dtype=float)
    statistic = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
    freedom = len(counts) - 1
    return (statistic - freedom) / math.sqrt(2 * freedom)


@pytest.fixture(scope="module")
def neighbours():
    """Numbers of streams of neighbouring seeds, neighbouring rows, and ranks that differ in one item."""
    ranks = np.array([[0, 1, 2, 3]])
    seeds = np.concatenate([row_streams(ranks, seed, "test") for seed in range(4000)])
    rows = row_streams(np.repeat(ranks, 4000, axis=0), 0, "test", np.arange(4000))
    codes = np.array(list(itertools.product(range(-1, 4), repeat=5)))
    return [uniforms(streams, 50) for streams in (seeds, rows, row_streams(codes, 0, "test"))]


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


def test_generator_is_xoshiro256():
    """Against xoshiro256++ seeded by splitmix64 in Python integers."""
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
    assert uniforms(np.array([stream], dtype=np.uint64), 10)[0].tolist() == expected


def test_streams_depend_on_seed_purpose_ranking_and_row():
    ranks = np.array(list(itertools.product(range(-1, 3), repeat=4)))
    streams = [row_streams(ranks, seed, purpose) for seed in (0, 1) for purpose in ("a", "b")]
    streams.append(row_streams(ranks, 0, "a", np.arange(len(ranks))))
    streams.append(row_streams(ranks[:1], 0, "a", np.array([7])))
    everything = np.concatenate(streams)
    assert len(set(everything.tolist())) == len(everything)


def test_as_seed():
    assert as_seed(3) == as_seed(np.int64(3)) == 3
    assert as_seed(np.random.default_rng(0)) == int(np.random.default_rng(0).integers(2**63))
    assert as_seed(None) != as_seed(None)
    assert stream_key(2**80, "a") != stream_key(2**80 + 1, "a")
    for wrong in (-1, 1.5, "1", True):
        with pytest.raises(RankingError, match="rng="):
            as_seed(wrong)

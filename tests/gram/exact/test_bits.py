"""Rankings as bits: the order of every pair of items, and the buckets with ties."""

import itertools

import numba
import numpy as np
import pytest

from rankernel import Rankings, _loops


def ranks_of(n_items, n_buckets, seed=0):
    scores = np.random.default_rng(seed).integers(0, n_buckets, (6, n_items))
    return np.array([[sorted(set(row)).index(score) for score in row] for row in scores.tolist()], dtype=np.int32)


@pytest.mark.parametrize("n_items", [1, 2, 10, 11, 12, 13, 24, 64, 65, 130])  # 12 items have 66 pairs
def test_pairs_in_order(n_items):
    ranks = ranks_of(n_items, 1 + n_items // 2)
    words = _loops.pairs.pairs_in_order(ranks)
    for row, found in zip(ranks.tolist(), words.tolist(), strict=True):
        pairs = [x < y for x, y in itertools.combinations(row, 2)]
        assert sum(word << (64 * w) for w, word in enumerate(found)) == sum(bit << p for p, bit in enumerate(pairs))


def test_trailing_zeros():
    intrinsic = _loops.pairs.trailing_zeros
    lowest = numba.njit(lambda word: intrinsic(word))
    words = {0: 64, 1: 0, 2: 1, 0b1010000: 4, 2**63: 63, 2**64 - 2**31: 31}
    assert {word: lowest(np.uint64(word)) for word in words} == words


@pytest.mark.parametrize("n_items", [1, 2, 10, 24])
def test_tied_sets(n_items):
    ranks = ranks_of(n_items, 1 + n_items // 2)
    sets = _loops.pairs.tied_sets(ranks, Rankings(ranks).bucket_sizes())
    for row, found in zip(ranks.tolist(), sets.tolist(), strict=True):
        buckets = [[a for a in range(n_items) if row[a] == rank] for rank in range(max(row) + 1)]
        expected = [sum(1 << a for a in bucket) for bucket in buckets if len(bucket) > 1]
        assert found == expected + [0] * (len(found) - len(expected))

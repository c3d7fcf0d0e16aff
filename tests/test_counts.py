"""Counts are never expanded: memory does not grow with the number of voters."""

import tracemalloc

import numpy as np
import pytest

import rankernel as rk
from rankernel.reports.ballots import sample_voters
from rankernel.stats.mmd import mmd2_streamed

MANY = 4_000_000
X = rk.Rankings([[0, 1, 2], [1, 0, 2], [2, 1, 0]], counts=[MANY, MANY, 2 * MANY])
Y = rk.Rankings([[0, 1, 2], [1, 2, 0], [2, 1, 0]], counts=[MANY, MANY, MANY])
MAX_BYTES = 2**23  # less than one byte per voter


def peak(function):
    function()
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


CALLS = {
    "mmd": lambda: rk.mmd_test(X, Y, rk.Mallows(0.3), n_permutations=9),
    "mmd within strata": lambda: rk.mmd_test(X, Y, rk.Mallows(0.3), n_permutations=9, strata=([0, 0, 1], [0, 0, 1])),
    "aggregated": lambda: rk.mmd_aggregated_test(X, Y, n_permutations=9),
    "streamed": lambda: mmd2_streamed(X, Y, rk.Mallows(0.3)),
    "linkage": lambda: rk.linkage(X, rk.Mallows(0.3)),
    "map": lambda: rk.KernelMap(kernel=rk.Mallows(0.3)).fit(X),
    "means": lambda: rk.KernelKMeans(2, kernel=rk.Mallows(0.3)).fit(X),
    "medoids": lambda: rk.KernelKMedoids(2, kernel=rk.Mallows(0.3)).fit(X),
    "features": lambda: rk.NystromFeatures(2, kernel=rk.Mallows(0.3)).fit(X),
    "consensus": lambda: (rk.borda(X), rk.kemeny(X)),
    "models": lambda: (rk.PlackettLuce.fit(X), rk.MallowsModel.fit(X)),
    "width": lambda: rk.median_distance(X, rk.distances.kendall),
    "report": lambda: rk.report(X, groups=["a", "b", "b"]),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore::rankernel.NotCharacteristicWarning")
def test_memory(name):
    assert peak(CALLS[name]) < MAX_BYTES


def test_sampled_voters_match_an_expanded_list():
    counts = np.array([3, 0, 5, 1, 7])
    for seed in range(20):
        rows, taken = sample_voters(counts, 6, np.random.default_rng(seed))
        written = np.random.default_rng(seed).choice(np.repeat(np.arange(5), counts), 6, replace=False)
        assert np.repeat(rows, taken).tolist() == sorted(written.tolist())


def test_test_of_counts_equals_that_of_voters():
    few = rk.Rankings(X.ranks, counts=[3, 2, 4])
    written = rk.Rankings(np.repeat(X.ranks, [3, 2, 4], axis=0))
    kernel, other = rk.Mallows(0.3), rk.Rankings(Y.ranks, counts=[2, 2, 1])
    strata = ([0, 1, 0], [0, 1, 0])
    long = (np.repeat([0, 1, 0], [3, 2, 4]), [0, 1, 0])
    one = rk.mmd_test(few, other, kernel, n_permutations=99, strata=strata)
    two = rk.mmd_test(written, other, kernel, n_permutations=99, strata=long)
    assert one.statistic == two.statistic
    np.testing.assert_array_equal(one.null_distribution, two.null_distribution)

"""Chance-corrected agreement between judges."""

import itertools
import math

import naive
import numpy as np
import pytest
import scipy.stats

import rankernel as rk

NU = 0.3


def test_mean_of_kendalls_tau():
    X = rk.datasets.mallows(8, 5, 0.5, rng=1)
    taus = [scipy.stats.kendalltau(a, b)[0] for a, b in itertools.combinations(X.ranks, 2)]
    assert rk.agreement(X).agreement == pytest.approx(np.mean(taus), abs=1e-12)


@pytest.mark.parametrize("tied", [False, True])
def test_kendalls_w(tied):
    """W with its correction for ties (Kendall 1945) is (1 + (m - 1) agreement) / m for the product of ranks."""
    X = rk.datasets.mallows(7, 5, 0.4, rng=2)
    X = X.top(2) if tied else X
    m, n = X.ranks.shape
    ranks = scipy.stats.rankdata(X.ranks, axis=1)
    corrections = sum((sizes**3 - sizes).sum() for row in X.ranks for sizes in [np.bincount(row)])
    W = (12 * (ranks.sum(axis=0) ** 2).sum() - 3 * m**2 * n * (n + 1) ** 2) / (m**2 * n * (n**2 - 1) - m * corrections)
    centred = np.arange(n) - (n - 1) / 2
    result = rk.agreement(X, rk.Positional(np.outer(centred, centred)))
    assert (1 + (m - 1) * result.agreement) / m == pytest.approx(W, abs=1e-12)


def test_partial_rankings_match_all_relabellings():
    """The expected distance is the mean over all orders of the items of one of two judges."""
    rows = [(0, 1, 1, -1), (0, 1, 2, 3), (1, 0, 1, 1), (0, 0, -1, 1)]
    kernel = naive.mallows(NU)
    K = np.array(naive.gram(kernel, rows, rows))
    pairs = list(itertools.permutations(range(4), 2))
    observed = np.mean([K[i, i] + K[j, j] - 2 * K[i, j] for i, j in pairs])
    moved = [[tuple(row[item] for item in order) for row in rows] for order in itertools.permutations(range(4))]
    across = np.mean([np.array(naive.gram(kernel, each, rows)) for each in moved], axis=0)
    expected = np.mean([K[i, i] + K[j, j] - 2 * across[i, j] for i, j in pairs])
    result = rk.agreement(np.array(rows), rk.Mallows(NU))
    assert result.observed == pytest.approx(observed, abs=1e-12)
    assert result.expected == pytest.approx(expected, abs=1e-12)
    assert result.agreement == pytest.approx(1 - observed / expected, abs=1e-12)


def test_jackknife():
    X = rk.Rankings(rk.datasets.mallows(6, 4, 0.5, rng=3).top(2).ranks, counts=[1, 2, 1, 3, 1, 1])
    judges = rk.Rankings(np.repeat(X.ranks, X.counts, axis=0))
    result, m = rk.agreement(X, rk.Mallows(NU), confidence_level=0.9), len(judges)
    without = [rk.agreement(judges[np.arange(m) != i], rk.Mallows(NU)).agreement for i in range(m)]
    error = math.sqrt((m - 1) / m * ((without - np.mean(without)) ** 2).sum())
    assert result.standard_error == pytest.approx(error, abs=1e-12)
    margin = scipy.stats.t.ppf(0.95, m - 1) * error
    assert result.interval == pytest.approx((result.agreement - margin, min(result.agreement + margin, 1)), abs=1e-10)
    assert result.agreement == pytest.approx(rk.agreement(judges, rk.Mallows(NU)).agreement, abs=1e-12)
    assert f"{result.agreement:.3g}, 90% interval" in str(result)


def test_random_judges_and_equal_judges():
    values = [rk.agreement(rk.datasets.uniform(6, 4, rng=run).top(2), rk.Mallows(NU)).agreement for run in range(60)]
    assert abs(np.mean(values)) < 5 * np.std(values) / math.sqrt(60)
    same = rk.agreement([[0, 1, 2]] * 4)
    assert (same.agreement, same.interval) == (1.0, (1.0, 1.0))
    assert math.isnan(rk.agreement([[0, 0, 0]] * 4).agreement)  # no judge states anything
    with pytest.raises(rk.RankingError, match="X has 2 judges"):
        rk.agreement([[0, 1], [1, 0]])

import math

import naive
import numpy as np
import pytest
import scipy.stats

import rankernel as rk
from rankernel.tasks.tests.corrections import benjamini_hochberg
from rankernel.tasks.tests.outliers import quantiles

NU = 0.2
CENTER = list(range(8))


def test_distances_are_those_from_the_mean_of_the_others():
    X = rk.Rankings([[0, 1, 2], [0, 2, 1], [2, 1, 0], [0, 1, 1]], counts=[9, 8, 1, 4])
    result = rk.outlier_test(X, kernel=rk.Mallows(NU))
    rows = [tuple(row) for row in X.ranks.tolist()]
    K = np.array(naive.gram(naive.mallows(NU), rows, rows))
    for row in range(4):
        others = X.counts.astype(float)
        others[row] -= 1
        others /= others.sum()
        expected = K[row, row] - 2 * K[row] @ others + others @ K @ others
        assert result.distances[row] == pytest.approx(expected, abs=1e-12)
    assert result.order[0] == 2


def contaminated(run, n_odd):
    usual = rk.datasets.mallows(150, CENTER, 1.2, seed=run)
    odd = rk.datasets.mallows(n_odd, CENTER[::-1], 1.2, seed=run + 500) if n_odd else None
    return rk.concat([usual, odd]) if n_odd else usual


@pytest.mark.parametrize("with_reference", [True, False])
def test_few_are_named_wrongly_and_most_are_found(with_reference):
    rates, found = [], []
    for run in range(40):
        X = contaminated(run, 10)
        reference = rk.datasets.mallows(600, CENTER, 1.2, seed=run + 9000) if with_reference else None
        named = rk.outlier_test(X, reference, rk.Mallows(NU), level=0.1, seed=run).outlying
        rates.append(named[:150].sum() / max(named.sum(), 1))
        found.append(named[150:].mean())
    assert np.mean(rates) <= 0.1 + 4 * np.std(rates) / math.sqrt(40)
    assert np.mean(found) > (0.8 if with_reference else 0.3)  # the approximation costs power


def test_hardly_any_where_there_are_none():
    wrong = [
        rk.outlier_test(
            contaminated(run, 0), rk.datasets.mallows(300, CENTER, 1.2, seed=run + 9000), rk.Mallows(NU)
        ).outlying.any()
        for run in range(60)
    ]
    assert np.mean(wrong) <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 60)


def test_counts_are_voters_and_few_are_refused():
    X = rk.Rankings([CENTER, [1, 0, *range(2, 8)], CENTER[::-1]], counts=[60, 30, 2])
    one_each = rk.Rankings(np.repeat(X.ranks, X.counts, axis=0))
    a, b = rk.outlier_test(X, kernel=rk.Mallows(NU)), rk.outlier_test(one_each, kernel=rk.Mallows(NU))
    np.testing.assert_allclose(np.repeat(a.corrected, X.counts), b.corrected, rtol=1e-12)
    assert "outlying" in str(a)
    with pytest.raises(rk.RankingError, match="X has 3 ballots; to say what is usual takes at least 20"):
        rk.outlier_test(rk.datasets.uniform(3, 3, seed=0))


@pytest.mark.parametrize("seed", range(5))
def test_counts_do_what_a_row_for_each_voter_would(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 6, 12)
    pvalues, values = rng.choice([0.01, 0.02, 0.2, 0.5, 0.7], 12), rng.normal(size=12)
    expected = scipy.stats.false_discovery_control(np.repeat(pvalues, counts))
    np.testing.assert_allclose(np.repeat(benjamini_hochberg(pvalues, counts), counts), expected, rtol=1e-12)
    shares = (0.0, 0.3, 0.5, 0.75, 1.0)
    np.testing.assert_allclose(quantiles(values, counts, shares), np.quantile(np.repeat(values, counts), shares))


def test_as_many_voters_as_can_be_counted():
    many = rk.Rankings([[0, 1, 2], [1, 0, 2], [2, 1, 0]], counts=[2**40, 2**39, 1])  # a row for each would not fit
    result = rk.outlier_test(many, kernel=rk.Mallows(NU))
    assert result.order[0] == 2

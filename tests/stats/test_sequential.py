"""The sequential test: an oracle, the martingale property by enumeration, resuming, and each null hypothesis."""

import itertools
import math
import pickle

import naive
import numpy as np
import pytest

import rankernel as rk

KERNEL = rk.Mallows(0.4)


def lists(n, center, seed, theta=1.0):
    return rk.datasets.mallows(n, center, theta, rng=seed).top(2)


X, Y = lists(12, [0, 1, 2, 3], 0), lists(12, [1, 0, 2, 3], 1)


def mean_kernel(x, y):
    return naive.marginal(naive.mallows(0.4), tuple(x), tuple(y))


def test_two_streams_match_oracle():
    rows = list(zip(X.ranks.tolist(), Y.ranks.tolist(), strict=True))
    products = [
        [mean_kernel(a, c) + mean_kernel(b, d) - mean_kernel(a, d) - mean_kernel(b, c) for c, d in rows]
        for a, b in rows
    ]
    test = rk.SequentialMMDTest(KERNEL).update(X, Y)
    expected = naive.log_wealth(products)
    np.testing.assert_allclose(test.log_evalues, expected, atol=1e-10)
    assert max(map(abs, expected)) > 0.1
    assert test.evalue == pytest.approx(math.exp(expected[-1]))
    assert test.pvalue == pytest.approx(min(1.0, math.exp(-max(expected))))


@pytest.mark.parametrize("kernel", ["delta", "gaussian"])
def test_independence_matches_oracle(kernel):
    z = np.random.default_rng(0).integers(0, 2, 48).astype(float)
    x = rk.concat([X, Y, Y, X])
    scale = np.median([abs(a - b) for a, b in itertools.combinations(z[:20], 2)]) or np.mean(
        [abs(a - b) for a, b in itertools.combinations(z[:20], 2)]
    )

    def covariate(a, b):
        return float(a == b) if kernel == "delta" else math.exp(-((a - b) ** 2) / (2 * scale**2))

    def difference(value, rows, s, t):
        a, b, c, d = rows[2 * s], rows[2 * s + 1], rows[2 * t], rows[2 * t + 1]
        return value(a, c) + value(b, d) - value(a, d) - value(b, c)

    rows = x.ranks.tolist()
    products = [
        [difference(mean_kernel, rows, s, t) * difference(covariate, z, s, t) for t in range(24)] for s in range(24)
    ]
    test = rk.SequentialMMDTest(KERNEL, covariate_kernel=kernel).update(x, covariate=z)
    expected = naive.log_wealth(products, 0 if kernel == "delta" else 10)
    np.testing.assert_allclose(test.log_evalues, expected, atol=1e-10)
    assert max(map(abs, expected)) > 0.01


@pytest.mark.parametrize("kernel", [KERNEL, rk.Hamming()], ids=str)
@pytest.mark.filterwarnings("ignore::rankernel.NotCharacteristicWarning")
def test_mean_wealth_over_all_swaps_is_one(kernel):
    """Exchanging x and y within pairs gives data of equal probability under the null hypothesis."""
    n, wealth = 6, []
    for swaps in itertools.product([False, True], repeat=n):
        first = rk.Rankings(np.where(np.array(swaps)[:, None], X.ranks[:n], Y.ranks[:n]))
        second = rk.Rankings(np.where(np.array(swaps)[:, None], Y.ranks[:n], X.ranks[:n]))
        wealth.append(rk.SequentialMMDTest(kernel).update(first, second).evalue)
    assert np.mean(wealth) == pytest.approx(1, abs=1e-10)
    assert np.std(wealth) > 0.01


def test_mean_wealth_over_all_swaps_of_covariates_is_one():
    n, wealth, z = 7, [], np.array([[0, 1], [0, 1], [1, 2], [0, 2], [1, 2], [0, 1], [2, 1]])
    x = rk.datasets.uniform(2 * n, 4, rng=0).top(2)
    for swaps in itertools.product([False, True], repeat=n):
        covariate = np.where(np.array(swaps)[:, None], z[:, ::-1], z).ravel()
        wealth.append(rk.SequentialMMDTest(KERNEL).update(x, covariate=covariate).evalue)
    assert np.mean(wealth) == pytest.approx(1, abs=1e-10)
    assert np.std(wealth) > 1e-3


@pytest.mark.parametrize("kernel", [KERNEL, None], ids=["fixed", "median"])
def test_portions_counts_and_resuming(kernel):
    x, y = lists(40, [0, 1, 2, 3], 2), lists(40, [2, 1, 0, 3], 3)
    whole = rk.SequentialMMDTest(kernel).update(x, y)
    parts = rk.SequentialMMDTest(kernel)
    for start, stop in itertools.pairwise([0, 1, 4, 20, 40]):
        parts = pickle.loads(pickle.dumps(parts)).update(x[start:stop], y[start:stop])
    np.testing.assert_allclose(parts.log_evalues, whole.log_evalues, atol=1e-12)
    reordered = rk.SequentialMMDTest(kernel).update(x, y.with_items(x.items[::-1]))
    np.testing.assert_allclose(reordered.log_evalues, whole.log_evalues, atol=1e-12)
    repeated = rk.Rankings(x[:2].ranks, counts=[12, 12])
    expanded = rk.Rankings(np.repeat(x[:2].ranks, 12, axis=0))
    found = [rk.SequentialMMDTest(kernel).update(each, y[:24]).log_evalues for each in (repeated, expanded)]
    assert found[0] == found[1]


def test_covariates_in_portions():
    z = np.arange(24) % 3
    whole = rk.SequentialMMDTest(KERNEL).update(rk.concat([X, Y]), covariate=z)
    parts = rk.SequentialMMDTest(KERNEL).update(X[:5], covariate=z[:5]).update(X[5:], covariate=z[5:12])
    parts.update(Y, covariate=z[12:])
    np.testing.assert_allclose(parts.log_evalues, whole.log_evalues, atol=1e-12)
    assert parts.n_observations == 12


@pytest.mark.parametrize("dtypes", [(int, float), (bool, int)])
def test_equal_numbers_of_any_type_are_equal_labels(dtypes):
    z = np.arange(24) % 2
    whole = rk.SequentialMMDTest(KERNEL).update(rk.concat([X, Y]), covariate=z)
    first, second = (z[:12].astype(dtype) for dtype in dtypes)
    parts = rk.SequentialMMDTest(KERNEL).update(X, covariate=first).update(Y, covariate=second)
    np.testing.assert_allclose(parts.log_evalues, whole.log_evalues, atol=1e-12)
    with pytest.raises(rk.RankingError, match="numbers before, and is text now"):
        parts.update(X, covariate=z[:12].astype(str))
    with pytest.raises(rk.RankingError, match="row 3 is None"):
        rk.SequentialMMDTest(KERNEL).update(X, covariate=["a", "b", "a", None] * 3)
    with pytest.raises(rk.RankingError, match="row 1 is nan"):
        rk.SequentialMMDTest(KERNEL, covariate_kernel="delta").update(X, covariate=[1.0, np.nan] * 6)


def test_refused_updates_change_nothing():
    other = rk.Rankings([[0, 1]] * 12, items=["a", "b"])
    test = rk.SequentialMMDTest(KERNEL)
    with pytest.raises(rk.RankingError, match="does not have the item '0'"):
        test.update(X, other)
    assert test.update(other, other).n_observations == 12
    with pytest.raises(rk.RankingError, match="Y has the new item 'c'"):
        test.update(other, rk.Rankings([[0, 1, 2]] * 12, items=["a", "b", "c"]))
    assert test.n_observations == 12


def test_shift_is_found_and_stays_found():
    test = rk.SequentialMMDTest(KERNEL).update(lists(300, [0, 1, 2, 3], 4), lists(300, [3, 2, 1, 0], 5))
    assert test.rejected
    assert test.stopped_at < 100
    assert test.pvalue <= 1 / test.evalue
    assert test.pvalue < 0.05 < rk.SequentialMMDTest(KERNEL).update(X[:1], Y[:1]).pvalue
    assert "rejected after" in str(test)


@pytest.mark.parametrize("reference", [rk.MallowsModel([0, 1, 2, 3], 1.0), lists(5000, [0, 1, 2, 3], 6).unique()])
def test_reference_distribution(reference):
    same, other = lists(300, [0, 1, 2, 3], 7), lists(300, [3, 1, 0, 2], 8)
    assert not rk.SequentialMMDTest(KERNEL, reference=reference).update(same).rejected
    assert rk.SequentialMMDTest(KERNEL, reference=reference).update(other).rejected


def test_dependence_is_found():
    x = rk.concat([lists(200, [0, 1, 2, 3], 9), lists(200, [3, 2, 1, 0], 10)])
    order = np.random.default_rng(0).permutation(400)
    labels = np.repeat(["u", "v"], 200)
    assert rk.SequentialMMDTest(KERNEL).update(x[order], covariate=labels[order]).rejected
    numbers = np.repeat([0.0, 1.0], 200) + np.random.default_rng(1).normal(size=400) / 4
    assert rk.SequentialMMDTest(KERNEL).update(x[order], covariate=numbers[order]).rejected
    shuffled = np.random.default_rng(2).permutation(labels)
    assert not rk.SequentialMMDTest(KERNEL).update(x[order], covariate=shuffled).rejected


def test_estimated_kernels():
    method = rk.MonteCarlo(16, rng=0)
    x, y = lists(60, [0, 1, 2, 3], 11), lists(60, [3, 2, 1, 0], 12)
    whole = rk.SequentialMMDTest(KERNEL, method=method).update(x, y)
    parts = rk.SequentialMMDTest(KERNEL, method=method).update(x[:20], y[:20]).update(x[20:], y[20:])
    np.testing.assert_allclose(parts.log_evalues, whole.log_evalues, atol=1e-10)
    assert whole.rejected


def test_history_has_distinct_rankings():
    test = rk.SequentialMMDTest(KERNEL).update(lists(200, [0, 1, 2, 3], 13), lists(200, [0, 1, 2, 3], 14))
    assert len(test._witness[0]) <= 12  # top-2 lists of four items


def test_plot():
    test = rk.SequentialMMDTest(KERNEL).update(X, Y)
    ax = test.plot()
    np.testing.assert_allclose(ax.lines[0].get_ydata(), np.exp([0.0, *test.log_evalues]))
    assert ax.lines[1].get_ydata()[0] == pytest.approx(20)


def test_wrong_updates():
    with pytest.raises(ValueError, match="give one of Y"):
        rk.SequentialMMDTest(KERNEL).update(X)
    with pytest.raises(rk.RankingError, match="12 voters and Y has 3"):
        rk.SequentialMMDTest(KERNEL).update(X, Y[:3])
    with pytest.raises(ValueError, match="use a new test"):
        rk.SequentialMMDTest(KERNEL).update(X, Y).update(X, covariate=np.arange(12))
    with pytest.raises(rk.RankingError, match="does not have the item '2'"):
        rk.SequentialMMDTest(KERNEL).update(X, Y).update([[0, 1]], [[1, 0]])
    with pytest.raises(rk.RankingError, match="partial orders"):
        rk.SequentialMMDTest(KERNEL).update(rk.Preferences.from_pairs([[("a", "b"), ("c", "d")]]), X[:1])
    with pytest.raises(ValueError, match="alpha"):
        rk.SequentialMMDTest(KERNEL, alpha=0)

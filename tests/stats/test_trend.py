import math
import re
import tracemalloc

import naive
import numpy as np
import pytest

import rankernel as rk

NU = 0.3


def test_statistic_matches_hsic():
    X, times = rk.datasets.uniform(9, 4, rng=1), np.array([1, 1, 2, 5, 5, 7, 8, 8, 9.0])
    rows = [tuple(row) for row in X.ranks.tolist()]
    K = np.array(naive.gram(naive.mallows(NU), rows, rows))
    z = (times - times.mean()) / times.std()
    L, n = np.outer(z, z), 9
    K, L = K - np.diag(np.diag(K)), L - np.diag(np.diag(L))
    total = (K * L).sum() + K.sum() * L.sum() / ((n - 1) * (n - 2)) - 2 * (K.sum(0) @ L.sum(0)) / (n - 2)
    result = rk.trend_test(X, times, rk.Mallows(NU), n_permutations=20)
    assert result.statistic == pytest.approx(total / (n * (n - 3)), abs=1e-12)
    same = rk.trend_test(X, 10 * times - 3, rk.Mallows(NU), n_permutations=20)
    assert same.statistic == pytest.approx(result.statistic, abs=1e-12)
    changes = np.polyfit(times, X.ranks + 1, 1)[0]
    assert list(result.rank_changes.values()) == pytest.approx(changes.tolist(), abs=1e-12)
    assert list(result.rank_changes) == list(X.items)


def test_effect_witness_and_moments_of_many_times_match_matrices():
    """The products of times are never a matrix in the package; here they are one."""
    rng = np.random.default_rng(3)
    X = rk.Rankings(rk.datasets.uniform(30, 4, rng=1).ranks, counts=rng.integers(1, 4, 30))
    times, voter = rng.integers(0, 12, 30).astype(float), np.repeat(np.arange(30), X.counts)
    rows = [tuple(row) for row in X.ranks[voter].tolist()]
    K, n = np.array(naive.gram(naive.mallows(NU), rows, rows)), len(voter)
    z = (times[voter] - times[voter].mean()) / times[voter].std()
    L, H = np.outer(z, z), np.eye(n) - 1 / n
    result = rk.trend_test(X, times, rk.Mallows(NU), n_permutations=20_000)
    assert result.witness[voter] == pytest.approx(((H @ K @ H) * (H @ L @ H)).mean(axis=1), abs=1e-12)

    def criterion(K, L):
        K, L = K - np.diag(np.diag(K)), L - np.diag(np.diag(L))
        total = (K * L).sum() + K.sum() * L.sum() / ((n - 1) * (n - 2)) - 2 * (K.sum(0) @ L.sum(0)) / (n - 2)
        return total / (n * (n - 3))

    assert result.effect == pytest.approx(criterion(K, L) / math.sqrt(criterion(K, K) * criterion(L, L)), abs=1e-12)
    assert result.n_moment_draws == 0
    tolerance = 5 * math.sqrt(result.pvalue * (1 - result.pvalue) / 20_000)
    assert abs(result.pvalue - result.moment_pvalue) < tolerance + 0.01


@pytest.mark.parametrize("strata", [None, [0, 1, 2] * 20])
@pytest.mark.parametrize("method", ["exact", rk.MonteCarlo(200)])
def test_two_times_match_two_labels(strata, method):
    """The product kernel of two times is a multiple of the delta kernel, up to terms that centring removes."""
    X = rk.Rankings(stream(5, 0.3).ranks, counts=np.arange(60) % 3 + 1)
    late = np.arange(60) >= 25
    options = {"n_permutations": 9, "strata": strata, "method": method}
    trend = rk.trend_test(X, 3.0 + 4 * late, rk.Mallows(NU), **options)
    labels = rk.hsic_test(X, late, rk.Mallows(NU), **options)
    factor = trend.statistic / labels.statistic
    assert trend.effect == pytest.approx(labels.effect, rel=1e-10)
    assert trend.witness == pytest.approx(factor * labels.witness, rel=1e-9, abs=1e-12)
    assert trend.statistic_mcse == pytest.approx(factor * labels.statistic_mcse, rel=1e-9)
    if strata is None:
        assert trend.moment_pvalue == pytest.approx(labels.moment_pvalue, rel=1e-8)
        assert trend.effect_interval == pytest.approx(labels.effect_interval, rel=1e-6)


def test_many_different_times_take_memory_in_proportion():
    """A matrix of 30,000 times would take 7 GB; the skewness is exact for any number of times."""
    X, times = rk.datasets.uniform(30_000, 4, rng=1), np.random.default_rng(2).permutation(30_000)
    X = rk.Rankings(np.repeat(X.ranks, X.counts, axis=0))
    tracemalloc.start()
    result = rk.trend_test(X, times, rk.Mallows(NU), n_permutations=9, strata=times % 3000)
    assert tracemalloc.get_traced_memory()[1] < 30_000 * 4000
    whole = rk.trend_test(X, times, rk.Mallows(NU), n_permutations=9)
    tracemalloc.stop()
    assert whole.n_moment_draws == 0
    assert result.statistic == pytest.approx(whole.statistic, rel=1e-9)


def stream(run, drift):
    rng = np.random.default_rng(run)
    scores = rng.normal(0, 1, (60, 5))
    scores[:, 0] += drift * np.linspace(-1, 1, 60)
    return rk.Rankings(np.argsort(np.argsort(-scores, axis=1), axis=1))


def test_level_and_power():
    times, kernel = np.arange(60), rk.Mallows(0.2)
    level = sum(
        rk.trend_test(stream(run, 0.0), times, kernel, n_permutations=99, rng=run).pvalue <= 0.1 for run in range(150)
    )
    assert level / 150 <= 0.1 + 4 * math.sqrt(0.09 / 150)
    steady = sum(
        rk.trend_test(stream(run, 0.6), times, kernel, n_permutations=99, rng=run).pvalue <= 0.05 for run in range(40)
    )
    grouped = sum(
        rk.k_sample_test(stream(run, 0.6), times // 10, kernel, n_permutations=99, rng=run).pvalue <= 0.05
        for run in range(40)
    )
    assert steady > grouped


def test_dates_and_invalid_times():
    X = rk.datasets.uniform(6, 3, rng=1)
    days = np.array(
        ["2024-01-01", "2024-01-02", "2024-02-01", "2024-03-01", "2024-04-01", "2024-05-01"], "datetime64[D]"
    )
    assert rk.trend_test(X, days, n_permutations=20).statistic == pytest.approx(
        rk.trend_test(X, [0, 1, 31, 60, 91, 121], n_permutations=20).statistic
    )
    with pytest.raises(rk.RankingError, match="time"):
        rk.trend_test(X, list("abcdef"))
    with pytest.raises(rk.RankingError, match="time of row 2"):
        rk.trend_test(X, [1, 2, np.nan, 4, 5, 6])
    with pytest.raises(rk.RankingError, match="time"):
        rk.trend_test(X, [3] * 6)
    with pytest.raises(ValueError, match="time"):
        rk.trend_test(X, [1, 2])


def test_dates_and_ordered_groups_of_all_types():
    """All are equivalent to days, or to 0, 1, 2."""
    import datetime as dt

    import pandas as pd

    X = rk.datasets.uniform(6, 3, rng=1)
    days = [0, 1, 31, 60, 91, 121]
    begin = dt.datetime(2024, 1, 1, 8, 30)
    moments = [begin + dt.timedelta(days=day) for day in days]
    index = pd.DatetimeIndex(moments)
    ways = {
        "list of datetime": moments,
        "list of date": [moment.date() for moment in moments],
        "DatetimeIndex": index,
        "Series": pd.Series(index),
        "list of Timestamp": list(index),
        "with a zone": index.tz_localize("Europe/Dublin"),
        "nullable integers": pd.Series(days, dtype="Int64"),
        "objects": np.array(days, dtype=object),
    }
    expected = rk.trend_test(X, days, n_permutations=20).statistic
    for name, times in ways.items():
        assert rk.trend_test(X, times, n_permutations=20).statistic == pytest.approx(expected, rel=1e-3), name
    months = rk.trend_test(X, pd.period_range("2024-01", periods=6, freq="M"), n_permutations=20).statistic
    assert months == pytest.approx(rk.trend_test(X, [0, 31, 60, 91, 121, 152], n_permutations=20).statistic)
    words = pd.Categorical(["low", "mid", "high"] * 2, categories=["low", "mid", "high"], ordered=True)
    codes = rk.trend_test(X, [0, 1, 2] * 2, n_permutations=20).statistic
    for groups in (words, pd.Series(words)):
        assert rk.trend_test(X, groups, n_permutations=20).statistic == pytest.approx(codes)
    with pytest.raises(rk.RankingError, match="time"):
        rk.trend_test(X, pd.Categorical(["low", "mid", "high"] * 2))
    for hole in (
        words.set_categories(["low", "mid"]),
        pd.Series([*index[:2], pd.NaT, *index[3:]]),
        [*days[:2], None, *days[3:]],
    ):
        with pytest.raises(rk.RankingError, match="time of row 2"):
            rk.trend_test(X, hole)


def test_printed_direction():
    result = rk.trend_test(stream(1, 2.0), np.arange(60), rk.Mallows(0.2), n_permutations=20)
    first = min(result.rank_changes, key=result.rank_changes.get)
    for text in (str(result), result._repr_html_()):
        assert f"{first} ({-result.rank_changes[first]:.2g} ranks per unit of time)" in text
        assert "rises" in text
        assert "falls" in text


def test_pvalues_that_underflow_are_written_as_bounds():
    first = np.sort(np.arange(2000) % 2)[:, None]
    many = np.repeat(first, 30, axis=0)  # more voters than splitting takes
    for signs, text in ((many, r"< 1e-300 \(moments"), (first, r"≤ 1e-06 \(moments")):
        X = rk.Rankings(np.where(signs, [[0, 1, 2]], [[2, 1, 0]]))
        result = rk.trend_test(X, np.arange(len(X)), rk.Mallows(0.5))
        assert re.search(text, str(result))

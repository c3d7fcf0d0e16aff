import itertools
import math

import numpy as np
import pytest

import rankernel as rk

NU = 0.4


def scatter(K, w, rows):
    rows = list(rows)
    total = sum(w[i] * w[j] * K[i, j] for i in rows for j in rows)
    return sum(w[i] * K[i, i] for i in rows) - total / sum(w[i] for i in rows)


@pytest.mark.parametrize("min_rows", [1, 2, 3])
@pytest.mark.parametrize("counts", [None, [1, 2, 1, 3, 1, 1, 2, 1, 1, 4]])
def test_segments_match_brute_force(min_rows, counts):
    X = rk.Rankings(rk.datasets.uniform(10, 4, rng=min_rows).ranks, counts=counts)
    K, w = rk.Mallows(NU).gram(X), X.counts.astype(float)
    options = {"min_rows": min_rows, "max_changes": 2, "n_permutations": 1}
    for n_changes in (0, 1, 2):
        best = min(
            (sum(scatter(K, w, range(a, b)) for a, b in itertools.pairwise((0, *cuts, 10))), cuts)
            for cuts in itertools.combinations(range(1, 10), n_changes)
            if all(b - a >= min_rows for a, b in itertools.pairwise((0, *cuts, 10)))
        )
        result = rk.change_point_test(X, rk.Mallows(NU), n_changes=n_changes, **options)
        assert result.costs[n_changes] == pytest.approx(best[0], abs=1e-10)
        assert result.changes == best[1]
    for order in (np.arange(10), np.random.default_rng(0).permutation(10)):
        total = scatter(K, w, range(10))
        splits = [(order[:t], order[t:]) for t in range(min_rows, 10 - min_rows + 1)]
        best = max(total - scatter(K, w, before) - scatter(K, w, after) for before, after in splits)
        result = rk.change_point_test(X[order], rk.Mallows(NU), **options)
        assert result.statistic == pytest.approx(best, abs=1e-10)


@pytest.mark.parametrize("min_rows", [1, 3])
def test_rows_of_equal_time_are_joined(min_rows):
    """Changes are between times only, and rows are in any order."""
    X = rk.Rankings(rk.datasets.uniform(12, 4, rng=min_rows).ranks, counts=[1, 2, 1, 3, 1, 1, 2, 1, 1, 4, 1, 1])
    times = np.array([3, 1, 1, 5, 3, 9, 9, 2, 3, 5, 1, 9])
    K, w, order = rk.Mallows(NU).gram(X), X.counts.astype(float), np.argsort(times, kind="stable")
    between = [t for t in range(1, 12) if times[order[t]] != times[order[t - 1]]]
    total = scatter(K, w, range(12))
    for n_changes in (1, 2):
        best = min(
            (sum(scatter(K, w, order[a:b]) for a, b in itertools.pairwise((0, *cuts, 12))), cuts)
            for cuts in itertools.combinations(between, n_changes)
            if all(b - a >= min_rows for a, b in itertools.pairwise((0, *cuts, 12)))
        )
        options = {"n_changes": n_changes, "min_rows": min_rows, "n_permutations": 9}
        result = rk.change_point_test(X, rk.Mallows(NU), time=times, **options)
        assert result.costs[n_changes] == pytest.approx(best[0], abs=1e-10)
        assert result.changes == best[1]
        assert result.change_times == tuple(times[order[list(best[1])]].tolist())
        assert f"at time{'s' * (n_changes > 1)} {result.change_times[0]}" in str(result)
        if n_changes == 1:
            assert result.statistic == pytest.approx(total - best[0], abs=1e-10)
    ordered = rk.change_point_test(X[order], rk.Mallows(NU), time=np.sort(times), **options)
    assert ordered.changes == result.changes


def test_products_match_sums_over_pairs_of_rows():
    """Few distinct rankings are counted before each split, many are summed in the order of rows."""
    few = rk.datasets.uniform(60, 3, rng=1)
    order = np.random.default_rng(1).permutation(60)
    counted = rk.change_point_test(few, rk.Mallows(NU), n_permutations=30)
    K, w = rk.Mallows(NU).gram(few), np.ones(60)
    total = scatter(K, w, range(60))
    best = max(total - scatter(K, w, range(t)) - scatter(K, w, range(t, 60)) for t in range(5, 56))
    assert counted.statistic == pytest.approx(best, abs=1e-10)
    assert len(set(counted.null_distribution.round(12))) > 20
    by_time = rk.change_point_test(few[order], rk.Mallows(NU), n_permutations=9, time=order)
    assert by_time.statistic == pytest.approx(best, abs=1e-10)


def test_times_are_checked():
    X = rk.datasets.uniform(12, 3, rng=0)
    with pytest.raises(rk.RankingError, match="time of row 1"):
        rk.change_point_test(X, time=[1, np.nan, *range(10)])
    with pytest.raises(rk.RankingError, match="min_rows=5"):
        rk.change_point_test(X, time=[1] * 11 + [2])


def test_changes_of_many_times_match_brute_force():
    """Of 12,000 times, blocks are searched first, and each change is moved to the best time."""
    n = 12_000
    ranks = rk.datasets.mallows(n, [0, 1, 2], 0.7, rng=1)
    ranks = np.repeat(ranks.ranks, ranks.counts, axis=0)
    ranks[7123:] = ranks[7123:, [0, 2, 1]]
    ranks = ranks[np.argsort(np.random.default_rng(2).random(n) + (np.arange(n) >= 7123))]
    distinct, index = np.unique(ranks, axis=0, return_inverse=True)
    K, before = rk.Mallows(NU).gram(distinct), np.cumsum(np.eye(len(distinct))[index.ravel()], axis=0)
    after = before[-1] - before
    sizes = np.arange(1.0, n)
    inside = np.einsum("tu,uv,tv->t", before[:-1], K, before[:-1]) / sizes
    inside += np.einsum("tu,uv,tv->t", after[:-1], K, after[:-1]) / (n - sizes)
    gains = (inside - before[-1] @ K @ before[-1] / n)[4 : n - 5]
    result = rk.change_point_test(rk.Rankings(ranks), rk.Mallows(NU), n_changes=1, n_permutations=9)
    assert result.statistic == pytest.approx(gains.max(), rel=1e-10)
    assert result.changes == (5 + int(np.argmax(gains)),)
    reversed_in_part = np.tile([0, 1, 2], (n, 1))
    reversed_in_part[5003:9004] = [2, 1, 0]
    sequence = rk.Rankings(reversed_in_part)
    for chosen in (2, "auto"):
        result = rk.change_point_test(sequence, rk.Mallows(NU), n_changes=chosen, max_changes=4, n_permutations=19)
        assert result.changes == (5003, 9004)


def test_null_distribution_matches_all_orders():
    X = rk.Rankings([[0, 1, 2], [0, 2, 1], [2, 1, 0], [0, 1, 2], [2, 0, 1]])
    K, w = rk.Mallows(NU).gram(X), np.ones(5)
    total = scatter(K, w, range(5))
    exact = []
    for order in itertools.permutations(range(5)):
        splits = [(order[:t], order[t:]) for t in range(1, 5)]
        exact.append(max(total - scatter(K, w, before) - scatter(K, w, after) for before, after in splits))
    result = rk.change_point_test(X, rk.Mallows(NU), min_rows=1, n_permutations=3000)
    assert abs(result.null_distribution.mean() - np.mean(exact)) < 5 * np.std(exact) / math.sqrt(3000)
    pvalue = np.mean(np.array(exact) >= result.statistic - 1e-12)
    assert abs(result.pvalue - pvalue) < 5 * math.sqrt(pvalue * (1 - pvalue) / 3000) + 1 / 3001


def test_changes_are_found_where_they_are():
    parts = [
        rk.datasets.mallows(40, center, 1.2, rng=k)
        for k, center in enumerate(([0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]))
    ]
    result = rk.change_point_test(rk.concat(parts), n_permutations=99)
    assert result.pvalue == 0.01
    assert len(result.changes) == 2
    assert np.abs(np.array(result.changes) - [40, 80]).max() <= 2
    assert len(result.groups) == 3
    assert result.effect > 0.1
    assert result.differences().pairs[0].contribution > 0
    two = rk.change_point_test(rk.concat(parts), n_changes=1, n_permutations=20)
    assert len(two.changes) == 1
    first, second = result.changes
    assert f"at rows {first}, {second}: 3 segments" in str(result)
    assert f"at row {two.changes[0]}: 2 segments" in two._repr_html_()


@pytest.mark.filterwarnings("ignore::rankernel.errors.NotCharacteristicWarning")
def test_statistic_is_the_sum_of_contributions():
    parts = [rk.datasets.mallows(20, center, 1.0, rng=k) for k, center in enumerate(([0, 1, 2, 3], [3, 1, 2, 0]))]
    result = rk.change_point_test(rk.concat(parts), rk.Kendall(), n_changes=1, n_permutations=20)
    assert result.differences().total == pytest.approx(result.statistic, abs=1e-10)
    assert len(result.null_distribution) == 20
    assert result.n_moment_draws == 1000
    assert "moments of 1,000 random orders" in str(result)


def test_level():
    result = [
        rk.change_point_test(rk.datasets.mallows(30, 4, 0.5, rng=run), rk.Mallows(NU), n_permutations=49, rng=run)
        for run in range(120)
    ]
    rate = sum(each.pvalue <= 0.1 for each in result) / 120
    assert rate <= 0.1 + 4 * math.sqrt(0.09 / 120)
    for each in result:
        assert bool(each.changes) == (each.pvalue <= 0.05)
    quiet = next(each for each in result if not each.changes)
    assert quiet.effect == 0.0
    assert quiet.effect_interval == (0.0, 0.0)
    assert "changes    none" in str(quiet)
    with pytest.raises(rk.RankingError, match="changes"):
        quiet.differences()


def test_rounding_errors_give_no_change():
    same, other = [0, 1, 2, 3], [3, 2, 1, 0]
    stream = rk.Rankings([same] * 12 + [other] * 9)
    assert rk.change_point_test(stream, rk.Mallows(0.2), n_permutations=20).changes == (12,)


def test_short_sequence():
    with pytest.raises(rk.RankingError, match="X has 6 rows"):
        rk.change_point_test(rk.datasets.uniform(6, 3, rng=0))

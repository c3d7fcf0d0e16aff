import itertools
import math

import numpy as np
import pytest

import rankernel as rk
from rankernel.stats.change_points import Stream, traced

NU = 0.4


def scatter(K, w, rows):
    rows = list(rows)
    total = sum(w[i] * w[j] * K[i, j] for i in rows for j in rows)
    return sum(w[i] * K[i, i] for i in rows) - total / sum(w[i] for i in rows)


@pytest.mark.parametrize("least", [1, 2, 3])
@pytest.mark.parametrize("counts", [None, [1, 2, 1, 3, 1, 1, 2, 1, 1, 4]])
def test_segments_are_the_best_of_all(least, counts):
    X = rk.datasets.uniform(10, 4, rng=least)
    K, w = rk.Mallows(NU).gram(X), np.array(counts or [1] * 10, dtype=float)
    stream = Stream(K, w, least)
    costs, starts = stream.segments(2)
    for n_changes in (0, 1, 2):
        best = min(
            (sum(scatter(K, w, range(a, b)) for a, b in itertools.pairwise((0, *cuts, 10))), cuts)
            for cuts in itertools.combinations(range(1, 10), n_changes)
            if all(b - a >= least for a, b in itertools.pairwise((0, *cuts, 10)))
        )
        assert costs[n_changes] == pytest.approx(best[0], abs=1e-10)
        assert tuple(traced(starts, n_changes, 10)) == best[1]
    order = np.random.default_rng(0).permutation(10)
    gains = stream.gains(np.stack([np.arange(10), order]))
    for rows, gain in zip((np.arange(10), order), gains, strict=True):
        whole = scatter(K, w, range(10))
        best = max(whole - scatter(K, w, rows[:t]) - scatter(K, w, rows[t:]) for t in range(least, 10 - least + 1))
        assert gain == pytest.approx(best, abs=1e-10)


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
    assert result.differences().pairs[0].part > 0
    two = rk.change_point_test(rk.concat(parts), n_changes=1, n_permutations=20)
    assert len(two.changes) == 1
    first, second = result.changes
    assert f"at rows {first}, {second}: 3 segments" in str(result)
    assert f"at row {two.changes[0]}: 2 segments" in two._repr_html_()


@pytest.mark.filterwarnings("ignore::rankernel.errors.NotCharacteristicWarning")
def test_one_change_splits_into_pairs_of_items():
    parts = [rk.datasets.mallows(20, center, 1.0, rng=k) for k, center in enumerate(([0, 1, 2, 3], [3, 1, 2, 0]))]
    result = rk.change_point_test(rk.concat(parts), rk.Kendall(), n_changes=1, n_permutations=20)
    assert result.differences().total == pytest.approx(result.statistic, abs=1e-10)
    assert len(result.null_distribution) == 20
    assert result.tail_draws == 1000
    assert "moments of 1,000 random orders" in str(result)


def test_level_and_no_changes_where_there_are_none():
    found = [
        rk.change_point_test(rk.datasets.mallows(30, 4, 0.5, rng=run), rk.Mallows(NU), n_permutations=49, rng=run)
        for run in range(120)
    ]
    rate = sum(each.pvalue <= 0.1 for each in found) / 120
    assert rate <= 0.1 + 4 * math.sqrt(0.09 / 120)
    for each in found:
        assert bool(each.changes) == (each.pvalue <= 0.05)
    quiet = next(each for each in found if not each.changes)
    assert quiet.effect == 0.0
    assert quiet.effect_interval == (0.0, 0.0)
    assert "changes    none" in str(quiet)
    with pytest.raises(rk.RankingError, match="no change was found"):
        quiet.differences()


def test_no_change_is_found_in_a_rounding():
    same, other = [0, 1, 2, 3], [3, 2, 1, 0]
    stream = rk.Rankings([same] * 12 + [other] * 9)
    assert rk.change_point_test(stream, rk.Mallows(0.2), n_permutations=20).changes == (12,)


def test_short_streams_are_refused():
    with pytest.raises(rk.RankingError, match="X has 6 rows; a change with at least 5 rows on either side needs 10"):
        rk.change_point_test(rk.datasets.uniform(6, 3, rng=0))

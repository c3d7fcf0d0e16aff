import itertools
import math

import naive
import numpy as np
import pytest

import rankernel as rk
from rankernel.data import drop_item
from rankernel.stats.paired import Influence, JudgePairs

NU = 0.4
TINY = np.array([1e-3, 0.0, 1e-3]), np.zeros(4)  # variances and third cumulants
BEFORE, AFTER, TIMES = [(0, 1, 2), (1, 0, 2), (0, 1, 1)], [(1, 0, 2), (2, 0, 1), (0, 1, 1)], [2, 1, 2]


def by_hand(before, after, biased):
    """The kernel between the differences of two judges, and the statistic for given signs."""
    n = len(before)
    K = naive.gram(naive.mallows(NU), before + after, before + after)
    H = [[K[i][j] + K[n + i][n + j] - K[i][n + j] - K[n + i][j] for j in range(n)] for i in range(n)]

    def statistic(signs):
        total = math.fsum(signs[i] * signs[j] * H[i][j] for i in range(n) for j in range(n) if biased or i != j)
        return total / (n * (n - (not biased)))

    return statistic


@pytest.mark.parametrize("biased", [False, True])
def test_statistic_null_distribution_and_moments_are_those_of_all_signs(biased):
    judges = [[row for row, c in zip(rows, TIMES, strict=True) for _ in range(c)] for rows in (BEFORE, AFTER)]
    statistic = by_hand(*judges, biased)
    law = np.array([statistic(signs) for signs in itertools.product([-1, 1], repeat=5)])
    result = rk.paired_test(
        rk.Rankings(BEFORE, counts=TIMES), rk.Rankings(AFTER, counts=TIMES), rk.Mallows(NU), 4000, biased=biased
    )
    assert result.statistic == pytest.approx(statistic([1] * 5), abs=1e-12)
    tail = (law >= result.statistic - 1e-12).mean()
    assert abs(result.pvalue - tail) < 5 * math.sqrt(tail * (1 - tail) / 4000) + 1 / 4001
    assert {round(v, 9) + 0.0 for v in result.null_distribution} <= {round(v, 9) + 0.0 for v in law}
    ballots = sorted(set(BEFORE) | set(AFTER))
    gram = np.array(naive.gram(naive.mallows(NU), ballots, ballots))
    rows = [np.array([ballots.index(row) for row in side]) for side in judges]
    moments = JudgePairs.of(gram, *rows, np.ones(len(rows[0]), dtype=np.int64), biased).moments(biased)
    spread = law - law.mean()
    assert moments.mean == pytest.approx(law.mean(), abs=1e-12)
    assert moments.variance == pytest.approx((spread**2).mean(), rel=1e-9)
    assert moments.skewness == pytest.approx((spread**3).mean() / (spread**2).mean() ** 1.5, rel=1e-9)


def judges(run, n, shift):
    """Judges with tastes of their own, who move one item up with some probability."""
    rng = np.random.default_rng(run)
    before = np.argsort(rng.random((n, 5)), axis=1)
    again = before + rng.normal(0, 0.8, before.shape)
    again[:, 0] -= shift
    return before, np.argsort(np.argsort(again, axis=1), axis=1)


def test_level_and_power_beside_the_test_of_independent_samples():
    kernel = rk.Mallows(NU)
    null = [rk.paired_test(*swapped(run), kernel, 99, run).pvalue <= 0.1 for run in range(200)]
    assert sum(null) / 200 <= 0.1 + 4 * math.sqrt(0.09 / 200)
    paired = sum(rk.paired_test(*judges(run, 25, 0.8), kernel, 99, run).pvalue <= 0.05 for run in range(40))
    apart = sum(rk.mmd_test(*judges(run, 25, 0.8), kernel, 99, run).pvalue <= 0.05 for run in range(40))
    assert paired > apart + 5


def swapped(run):
    """Before and after in random order: the null hypothesis holds exactly."""
    before, after = judges(run, 20, 0.0)
    turn = np.random.default_rng(run + 1000).random(20) < 0.5
    return np.where(turn[:, None], after, before), np.where(turn[:, None], before, after)


def test_effect_and_differences():
    before, after = judges(3, 60, 1.5)
    result = rk.paired_test(before, after, rk.Mallows(NU), 200)
    low, high = result.effect_interval
    assert low < result.effect < high
    assert result.effect == pytest.approx(rk.mmd_test(before, after, rk.Mallows(NU), 1).effect, abs=0.02)
    assert result.groups == ("before", "after")
    first = result.differences().items[0]
    assert first.item == "0"
    assert first.places[1] < first.places[0]


@pytest.mark.filterwarnings("ignore::rankernel.errors.NotCharacteristicWarning")
@pytest.mark.parametrize("biased", [False, True])
def test_the_kendall_statistic_of_judges_splits_into_pairs(biased):
    before, after = judges(5, 20, 1.0)
    counts = [1 + i % 3 for i in range(20)]
    sides = rk.Rankings(before, counts=counts), rk.Rankings(after, counts=counts)
    result = rk.paired_test(*sides, rk.Kendall(), 5, biased=biased)
    found = result.differences()
    assert found.total == pytest.approx(result.statistic, abs=1e-12)
    assert sum(pair.part for pair in found.pairs) == pytest.approx(result.statistic, abs=1e-12)
    assert sum(item.part for item in found.items) == pytest.approx(result.statistic, abs=1e-12)
    for pair in found.pairs:  # by hand: the change of each judge, and its standard error
        a, b = int(pair.first), int(pair.second)
        changes = np.repeat(
            [float(y[a] < y[b]) - float(x[a] < x[b]) for x, y in zip(before, after, strict=True)], counts
        )
        assert pair.change == pytest.approx(changes.mean(), abs=1e-12)
        error = 1.959964 * changes.std(ddof=1) / math.sqrt(len(changes))
        assert pair.change_interval == pytest.approx((changes.mean() - error, changes.mean() + error), abs=1e-6)


def test_items_of_judges_are_what_the_paired_statistic_loses_without_them():
    before, after = (rk.Rankings(side) for side in judges(7, 15, 1.0))
    result = rk.paired_test(before, after, rk.Mallows(NU), 5)
    for each in result.differences().items:
        item = before.items.index(each.item)
        rest = rk.paired_test(drop_item(before, item), drop_item(after, item), rk.Mallows(NU), 5)
        assert each.part == pytest.approx(result.statistic - rest.statistic, abs=1e-12)
    whole = rk.mmd_test(before, after, rk.Mallows(NU), 5).differences(by="pairs").pairs[0]
    paired = next(p for p in result.differences(by="pairs").pairs if {p.first, p.second} == {whole.first, whole.second})
    assert np.ptp(paired.change_interval) < np.ptp(whole.change_interval)  # judges agree with themselves


def test_judges_must_be_the_same():
    with pytest.raises(rk.RankingError, match="X has 2 rows and Y has 3"):
        rk.paired_test([[0, 1], [1, 0]], [[0, 1], [1, 0], [0, 1]])
    with pytest.raises(rk.RankingError, match=r"X has 1 judge\(s\)"):
        rk.paired_test([[0, 1]], [[0, 1]])


@pytest.mark.parametrize(("biased", "least"), [(False, 2), (True, 1)])
def test_as_few_judges_as_the_statistic_needs(biased, least):
    X, Y = rk.datasets.uniform(2, 4, rng=1), rk.datasets.uniform(2, 4, rng=2)
    assert np.isfinite(rk.paired_test(X[:least], Y[:least], rk.Mallows(NU), 5, biased=biased).statistic)
    with pytest.raises(rk.RankingError, match=f"at least {least}"):
        rk.paired_test(X[: least - 1], Y[: least - 1], rk.Mallows(NU), 5, biased=biased)


# ---------------------------------------------------------------------- by how much things change


def some_judges(biased=False):
    """Judges of five ballots, several alike, and a kernel between the ballots."""
    gram = rk.Mallows(NU).gram(rk.datasets.uniform(5, 4, rng=3))
    before, after = np.array([0, 1, 2, 2, 4]), np.array([1, 1, 3, 0, 2])
    return JudgePairs.of(gram, before, after, np.array([2, 1, 3, 1, 2]), biased)


@pytest.mark.parametrize(("biased", "effect"), [(False, 0.0), (True, 0.0), (False, 0.3)])
def test_slopes_are_how_much_a_change_of_the_kernel_changes(biased, effect):
    judges = some_judges(biased)
    slopes = judges.slopes(biased, effect)(np.arange(5))

    def looked_at(gram):
        moved = judges.on(gram, np.arange(5))
        return (1 - effect) * moved.statistic - 4 * effect * moved.dispersions()[1]

    for i, j in itertools.combinations_with_replacement(range(5), 2):
        step = np.zeros((5, 5))
        step[i, j] = step[j, i] = 1e-3
        change = (looked_at(judges.gram + step) - looked_at(judges.gram - step)) / 2
        assert change == pytest.approx((slopes * step).sum(), abs=1e-12)


def test_the_interval_knows_what_each_judge_adds_to_both_dispersions(monkeypatch):
    judges, told = some_judges(), []
    monkeypatch.setattr(Influence, "of", lambda effect, samples: told.extend(samples) or Influence(effect, *TINY))
    judges.effect_interval(0.0)
    (toward, away, shares, n_judges) = told[0]
    total, populations = sum(judges.dispersions()), np.split(shares, 2)
    assert n_judges == 9
    for place, added in enumerate(zip(toward, away, strict=True)):
        step = np.split(np.eye(len(shares))[place] * 1e-5, 2)
        ends = [
            judges.of_population(*(p + sign * s for p, s in zip(populations, step, strict=True))) for sign in (1, -1)
        ]
        np.testing.assert_allclose((np.array(ends[0]) - ends[1]) / 2e-5 / total, added, rtol=1e-6, atol=1e-9)

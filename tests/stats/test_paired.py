import itertools
import math

import naive
import numpy as np
import pytest
import scipy.stats

import rankernel as rk
from rankernel.stats.paired import PairedEffect

NU = 0.4
BEFORE, AFTER, COUNTS = [(0, 1, 2), (1, 0, 2), (0, 1, 1)], [(1, 0, 2), (2, 0, 1), (0, 1, 1)], [2, 1, 2]


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
def test_statistic_and_pvalues_match_all_signs(biased):
    judges = [[row for row, c in zip(rows, COUNTS, strict=True) for _ in range(c)] for rows in (BEFORE, AFTER)]
    statistic = by_hand(*judges, biased)
    exact = np.array([statistic(signs) for signs in itertools.product([-1, 1], repeat=5)])
    X, Y = rk.Rankings(BEFORE, counts=COUNTS), rk.Rankings(AFTER, counts=COUNTS)
    result = rk.paired_test(X, Y, rk.Mallows(NU), n_permutations=4000, biased=biased)
    assert result.statistic == pytest.approx(statistic([1] * 5), abs=1e-12)
    pvalue = (exact >= result.statistic - 1e-12).mean()
    assert abs(result.pvalue - pvalue) < 5 * math.sqrt(pvalue * (1 - pvalue) / 4000) + 1 / 4001
    assert {round(v, 9) + 0.0 for v in result.null_distribution} <= {round(v, 9) + 0.0 for v in exact}
    skewness, std = scipy.stats.skew(exact), exact.std()
    by_moments = scipy.stats.pearson3.sf(result.statistic, skewness, loc=exact.mean(), scale=std)
    assert result.n_moment_draws == 0
    assert result.moment_pvalue == pytest.approx(max(by_moments, 2 / 32), rel=1e-6)


def judges(run, n, shift):
    """Judges with different preferences, who move one item up with some probability."""
    rng = np.random.default_rng(run)
    before = np.argsort(rng.random((n, 5)), axis=1)
    again = before + rng.normal(0, 0.8, before.shape)
    again[:, 0] -= shift
    return before, np.argsort(np.argsort(again, axis=1), axis=1)


def test_signs_in_several_parts_extend_the_same_stream():
    """600 judges have 6,990 sign vectors at a time."""
    sides = [np.argsort(np.random.default_rng(seed).random((600, 8)), axis=1) for seed in (1, 2)]
    few, many = (rk.paired_test(*sides, rk.Mallows(NU), n_permutations=n).null_distribution for n in (100, 7001))
    assert len(many) == 7001
    np.testing.assert_allclose(many[:100], few, rtol=1e-9, atol=1e-12)


def test_level_and_power():
    kernel = rk.Mallows(NU)
    null = [rk.paired_test(*swapped(run), kernel, n_permutations=99, rng=run).pvalue <= 0.1 for run in range(200)]
    assert sum(null) / 200 <= 0.1 + 4 * math.sqrt(0.09 / 200)
    paired = sum(
        rk.paired_test(*judges(run, 25, 0.8), kernel, n_permutations=99, rng=run).pvalue <= 0.05 for run in range(40)
    )
    unpaired = sum(
        rk.mmd_test(*judges(run, 25, 0.8), kernel, n_permutations=99, rng=run).pvalue <= 0.05 for run in range(40)
    )
    assert paired > unpaired + 5


def swapped(run):
    """Before and after in random order: the null hypothesis holds exactly."""
    before, after = judges(run, 20, 0.0)
    turn = np.random.default_rng(run + 1000).random(20) < 0.5
    return np.where(turn[:, None], after, before), np.where(turn[:, None], before, after)


def test_effect_matches_brute_force():
    """B from pairs of different judges, W the dispersion before and after, both without bias."""
    before, after = (rk.datasets.mallows(7, center, 0.6, rng=4).top(2) for center in ([0, 1, 2, 3], [1, 0, 3, 2]))
    gram = rk.Mallows(0.4).gram(rk.concat([before, after]))
    change = gram[:7, :7] + gram[7:, 7:] - gram[:7, 7:] - gram[7:, :7]
    others = [(i, j) for i in range(7) for j in range(7) if i != j]
    between = np.mean([change[i, j] for i, j in others]) / 4
    sides = gram[:7, :7], gram[7:, 7:]
    within = np.mean([np.trace(side) / 7 - np.mean([side[i, j] for i, j in others]) for side in sides])
    result = rk.paired_test(before, after, rk.Mallows(0.4), n_permutations=9)
    assert result.effect == pytest.approx(between / (between + within), rel=1e-12)


def test_interval_is_independent_of_the_scale_of_the_kernel():
    sides, kernel = judges(3, 60, 1.5), rk.Mallows(NU)
    low, high = rk.paired_test(*sides, kernel, n_permutations=9).effect_interval
    for factor in (1e-3, 20.0):
        scaled = rk.paired_test(*sides, factor * kernel, n_permutations=9).effect_interval
        assert scaled == pytest.approx((low, high), rel=1e-6)
    assert 0 < low < high < 1


def test_explained_dispersion_matches_brute_force():
    """Random signs permute the squared changes of judges, and B is a quarter of a squared mean change."""
    before, after = ([row for row, c in zip(rows, COUNTS, strict=True) for _ in range(c)] for rows in (BEFORE, AFTER))
    K, n = np.array(naive.gram(naive.mallows(NU), before + after, before + after)), 5
    permuted = np.mean([K[i, i] + K[n + i, n + i] - 2 * K[i, n + i] for i in range(n)])
    X, Y = rk.Rankings(BEFORE, counts=COUNTS), rk.Rankings(AFTER, counts=COUNTS)
    effect = PairedEffect(rk.paired_test(X, Y, rk.Mallows(NU), n_permutations=9)._judges)
    total = sum(effect.parts())
    assert effect.explained(total) == pytest.approx(4 * total / permuted, rel=1e-12)


def test_influences_match_differences_of_populations():
    """B and W change with a small share of additional judges as the centred influences say."""
    X, Y = rk.Rankings(BEFORE, counts=COUNTS), rk.Rankings(AFTER, counts=COUNTS)
    judges = rk.paired_test(X, Y, rk.Mallows(NU), n_permutations=9)._judges
    effect, total, step = PairedEffect(judges), 0.7, 1e-3
    (influences,) = effect.influences(total)
    shares = np.concatenate(judges.mixture(judges.prior_weight))
    np.testing.assert_allclose(influences.shares, shares, rtol=1e-12)
    found = np.array([values - shares @ values for values in (influences.between, influences.within)]).T
    for added, slopes in zip(np.eye(len(shares)), found, strict=True):
        parts = [
            np.array(judges.population_parts(*np.split((1 - share) * shares + share * added, 2)))
            for share in (step, -step)
        ]  # quadratic in the share, so that central differences have rounding errors only
        np.testing.assert_allclose((parts[0] - parts[1]) / (2 * step * total), slopes, rtol=1e-9, atol=1e-11)


def test_effect_and_differences():
    before, after = judges(3, 60, 1.5)
    result = rk.paired_test(before, after, rk.Mallows(NU), n_permutations=200)
    low, high = result.effect_interval
    assert low < result.effect < high
    assert result.effect == pytest.approx(rk.mmd_test(before, after, rk.Mallows(NU), n_permutations=1).effect, abs=0.02)
    assert result.groups == ("before", "after")
    first = result.differences().items[0]
    assert first.item == "0"
    assert first.mean_ranks[1] < first.mean_ranks[0]


@pytest.mark.filterwarnings("ignore::rankernel.errors.NotCharacteristicWarning")
@pytest.mark.parametrize("biased", [False, True])
def test_kendall_statistic_is_the_sum_of_contributions(biased):
    before, after = judges(5, 20, 1.0)
    counts = [1 + i % 3 for i in range(20)]
    sides = rk.Rankings(before, counts=counts), rk.Rankings(after, counts=counts)
    result = rk.paired_test(*sides, rk.Kendall(), n_permutations=5, biased=biased)
    actual = result.differences()
    assert actual.total == pytest.approx(result.statistic, abs=1e-12)
    assert sum(pair.contribution for pair in actual.pairs) == pytest.approx(result.statistic, abs=1e-12)
    assert sum(item.contribution for item in actual.items) == pytest.approx(result.statistic, abs=1e-12)
    for pair in actual.pairs:  # by hand: the change of each judge, and its standard error
        a, b = int(pair.first), int(pair.second)
        changes = np.repeat(
            [float(y[a] < y[b]) - float(x[a] < x[b]) for x, y in zip(before, after, strict=True)], counts
        )
        assert pair.change == pytest.approx(changes.mean(), abs=1e-12)
        error = scipy.stats.t.ppf(0.975, len(changes) - 1) * changes.std(ddof=1) / math.sqrt(len(changes))
        low, high = pair.change_interval  # simultaneous intervals are wider, and not as wide as Bonferroni's
        assert low + high == pytest.approx(2 * changes.mean(), abs=1e-9)
        assert error * (1 - 1e-9) <= (high - low) / 2 < 1.8 * error + 1e-9


def test_pairing_reduces_the_variance_of_changes():
    before, after = (rk.Rankings(side) for side in judges(7, 15, 1.0))
    whole = rk.mmd_test(before, after, rk.Mallows(NU), n_permutations=5).differences().pairs[0]
    result = rk.paired_test(before, after, rk.Mallows(NU), n_permutations=5)
    paired = next(p for p in result.differences().pairs if {p.first, p.second} == {whole.first, whole.second})
    assert np.ptp(paired.change_interval) < np.ptp(whole.change_interval)


def test_invalid_judges():
    with pytest.raises(rk.RankingError, match="X has 2 rows and Y has 3"):
        rk.paired_test([[0, 1], [1, 0]], [[0, 1], [1, 0], [0, 1]])
    with pytest.raises(rk.RankingError, match=r"X has 1 judge\(s\)"):
        rk.paired_test([[0, 1]], [[0, 1]])


@pytest.mark.parametrize(("biased", "least"), [(False, 2), (True, 1)])
def test_smallest_sample(biased, least):
    X, Y = rk.datasets.uniform(2, 4, rng=1), rk.datasets.uniform(2, 4, rng=2)
    assert np.isfinite(rk.paired_test(X[:least], Y[:least], rk.Mallows(NU), n_permutations=5, biased=biased).statistic)
    with pytest.raises(rk.RankingError, match=f"at least {least}"):
        rk.paired_test(X[: least - 1], Y[: least - 1], rk.Mallows(NU), n_permutations=5, biased=biased)

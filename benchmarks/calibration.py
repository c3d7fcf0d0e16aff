"""Level and power of the tests by simulation, and p-values from moments: the page docs/benchmarks/calibration.md.

``python -m benchmarks.calibration``. Each row is one setting: how often a test of the null hypothesis has a p-value of
at most 0.05, by permutations and from moments (Pearson type III approximation), and how often a test of an alternative
has. P-values from moments are also compared with long permutation runs, at the quantiles 0.05, 0.01 and 1e-4. Coverage
of effect intervals is measured in `benchmarks/intervals.py`, false discovery rates in `benchmarks/outliers.py`.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

import rankernel as rk
from benchmarks.clock import save
from benchmarks.intervals import coverage
from benchmarks.outliers import with_null_models, with_reference
from rankernel.stats import KSampleResult
from rankernel.stats._permutations import Moments, PermutationStatistic
from rankernel.stats.base import Sample
from rankernel.stats.hsic import hsic_statistic, make_covariate, time_covariate
from rankernel.stats.paired import SignFlips
from rankernel.stats.pairwise import adjust_pvalues

KERNEL = rk.Mallows(0.2)
LEVELS = (0.05, 0.01, 1e-4)
CENTER, OTHER = [0, 1, 2, 3, 4], [1, 0, 2, 4, 3]

PValues = tuple[float, float]  # by permutations and from moments


def draw(n: int, theta: float, seed: int, top: int | None = None, center: Any = CENTER) -> rk.Rankings:
    """Return rankings around a centre, or their first positions."""
    drawn = rk.datasets.mallows(n, center, theta, rng=seed)
    return drawn if top is None else drawn.top(top)


# ---------------------------------------------------------------------- p-values from moments and long runs

SHAPES = {
    "balanced, 30 and 30": (30, 30, None),
    "unbalanced, 10 and 90": (10, 90, None),
    "heavy ties (top 1), 30 and 30": (30, 30, 1),
    "few ballots, 6 and 6": (6, 6, None),
}


def moments(n_permutations: int) -> Iterator[dict[str, Any]]:
    """Yield p-values from moments at the quantiles of a long permutation run."""
    for name, (m, n, top) in SHAPES.items():
        result = rk.mmd_test(draw(m, 0.3, 1, top), draw(n, 0.3, 2, top), KERNEL, n_permutations=1)
        statistic = result._voters.squared_mmd(biased=False, seed=1)
        null, exact = np.sort(statistic.draw(n_permutations)), statistic.moments()
        assert exact is not None
        row: dict[str, Any] = {"setting": name, "n_permutations": n_permutations}
        for level in LEVELS:
            value = float(null[int(np.ceil((1 - level) * n_permutations)) - 1]) - statistic.tolerance
            row[f"permutations, near {level:g}"] = round(float((null >= value).mean()), 6)
            row[f"moments, near {level:g}"] = round(exact.sf(value), 6)
        yield row


# ---------------------------------------------------------------------- small p-values of unbalanced designs


def of_groups(sizes: tuple[int, ...], theta: float, n_strata: int = 1) -> Callable[[int], PermutationStatistic]:
    """Return the statistic of groups of one distribution, as a function of the number of the pool."""

    def statistic(pool: int) -> PermutationStatistic:
        X = rk.concat([rk.datasets.mallows(n, 6, theta, rng=10 * pool + k) for k, n in enumerate(sizes)])
        groups = np.repeat(range(len(sizes)), sizes)
        strata = np.arange(len(X)) % n_strata
        return rk.k_sample_test(X, groups, KERNEL, strata=strata, n_permutations=1)._voters.statistic(False, 1)

    return statistic


def of_times(pool: int) -> PermutationStatistic:
    """Return the statistic of a trend over times with a skewed distribution."""
    X = rk.datasets.mallows(80, 6, 2.0, rng=pool)
    times = np.random.default_rng(pool).exponential(size=80) ** 2
    sample, cells = Sample.planned(X, KERNEL, "auto"), np.zeros(80, dtype=np.int64)
    return hsic_statistic(sample, X, time_covariate(times, X), cells, False, 1)


def of_numbers(pool: int) -> PermutationStatistic:
    """Return the statistic of a covariate with a skewed distribution."""
    X = rk.datasets.mallows(80, 6, 2.0, rng=pool)
    values = np.random.default_rng(pool).exponential(size=80) ** 2
    sample, cells = Sample.planned(X, KERNEL, "auto"), np.zeros(80, dtype=np.int64)
    return hsic_statistic(sample, X, make_covariate(values, X, "auto", "auto"), cells, False, 1)


def of_judges(n: int, theta: float) -> Callable[[int], PermutationStatistic]:
    """Return the statistic of judges who rank twice, as a function of the number of the pool."""

    def statistic(pool: int) -> PermutationStatistic:
        X, Y = (rk.datasets.mallows(n, 6, theta, rng=10 * pool + k) for k in (0, 1))
        judges = rk.paired_test(X, Y, KERNEL, n_permutations=1)._judges
        return SignFlips(judges, judges.counts, 1)

    return statistic


UNBALANCED: dict[str, Callable[[int], PermutationStatistic]] = {
    "20 and 180, concentration 3": of_groups((20, 180), 3.0),
    "20 and 180, concentration 2": of_groups((20, 180), 2.0),
    "20 and 180, concentration 0.5": of_groups((20, 180), 0.5),
    "10 and 90, concentration 3": of_groups((10, 90), 3.0),
    "5 and 100, concentration 1": of_groups((5, 100), 1.0),
    "30 and 30, concentration 3": of_groups((30, 30), 3.0),
    "100 and 100, concentration 3": of_groups((100, 100), 3.0),
    "20 and 6,000, concentration 3": of_groups((20, 6000), 3.0),
    "10, 20 and 170, concentration 3": of_groups((10, 20, 170), 3.0),
    "20 and 80 in 2 strata, concentration 2": of_groups((20, 80), 2.0, 2),
    "80 and a skewed number, concentration 2": of_numbers,
    "80 at skewed times, concentration 2": of_times,
    "20 judges twice, concentration 3": of_judges(20, 3.0),
    "60 judges twice, concentration 1": of_judges(60, 1.0),
}


def small_pvalues(n_permutations: int, n_pools: int = 3) -> Iterator[dict[str, Any]]:
    """Yield quoted p-values over those of a long permutation run: the smallest ratio over several pools of voters.

    Values that are rarer than the most extreme arrangement are left out.
    """
    for name, statistic_of in UNBALANCED.items():
        ratios: dict[str, list[float]] = {}
        for pool in range(n_pools):
            statistic = statistic_of(pool)
            null, tolerance = np.sort(statistic.draw(n_permutations)), statistic.tolerance
            exact = statistic.moments() or Moments.from_sample(statistic.draw(1000))
            for level in (1e-3, 1e-4, 1e-5):
                value = float(null[-max(int(level * n_permutations), 1)])
                true = float((null >= value - tolerance).mean())
                if true > 2 * level:
                    continue
                statistic.tolerance = statistic.value - value + tolerance  # moves the target of splitting to the value
                pearson, split = exact.sf(value - tolerance), statistic.splitting_pvalue()
                statistic.tolerance = tolerance
                ratios.setdefault(f"Pearson III, {level:g}", []).append(pearson / true)
                ratios.setdefault(f"quoted, {level:g}", []).append(max(pearson, split) / true)
        smallest = {column: round(min(values), 2) for column, values in ratios.items()}
        yield {"setting": name, "pools": n_pools, "n_permutations": n_permutations, **smallest}


# ---------------------------------------------------------------------- default seed, fitted models, reversals


def rate_row(name: str, runs: int, **rates: float) -> dict[str, Any]:
    """Return measured rates with their standard errors."""
    row: dict[str, Any] = {"setting": name, "runs": runs}
    for column, rate in rates.items():
        row[column.replace("_", " ")] = round(rate, 4)
        row[column.replace("_", " ") + ", standard error"] = round(float(np.sqrt(rate * (1 - rate) / runs)), 4)
    return row


def few_permutations(n_runs: int) -> Iterator[dict[str, Any]]:
    """Yield the level of tests with 49 permutations and the default seed, over data sets with many equal ballots."""
    for n_items, n in ((3, 12), (4, 20)):
        draws = ([rk.datasets.uniform(n, n_items, rng=2 * run + k) for k in (0, 1)] for run in range(n_runs))
        pvalues = np.array([rk.mmd_test(X, Y, KERNEL, n_permutations=49).pvalue for X, Y in draws])
        rates = {"p at most 0.02": float((pvalues <= 0.02).mean()), "p at most 0.1": float((pvalues <= 0.1).mean())}
        yield rate_row(f"mmd_test, {n} and {n} rankings of {n_items} items", n_runs, **rates)


def fitted_models(n_runs: int) -> Iterator[dict[str, Any]]:
    """Yield the level of goodness-of-fit tests of a model that was fitted to the same data."""
    sources: dict[str, tuple[Any, Callable[[int], rk.Rankings]]] = {
        "MallowsModel.fit": (rk.MallowsModel, lambda seed: draw(60, 0.6, seed)),
        "MallowsModel.fit, top 2 of 5": (rk.MallowsModel, lambda seed: draw(60, 0.6, seed, 2)),
        "PlackettLuce.fit": (rk.PlackettLuce, lambda seed: rk.datasets.plackett_luce(60, [5, 4, 3, 2, 1], rng=seed)),
    }
    for name, (model_class, source) in sources.items():
        for fitted in (True, False):
            pvalues = []
            for run in range(n_runs):
                X = source(run)
                options = {"n_simulations": 99, "rng": run, "fitted": fitted}
                pvalues.append(rk.goodness_of_fit_test(X, model_class.fit(X), KERNEL, **options).pvalue)
            rate = float((np.array(pvalues) <= 0.05).mean())
            setting = f"{name}, {'fitted again' if fitted else 'as if known'}"
            yield rate_row(setting, n_runs, **{"p at most 0.05": rate})


def reversals(n_runs: int) -> Iterator[dict[str, Any]]:
    """Yield how often a pair of items is marked as reversed between two groups of the same distribution."""
    for n_items, n in ((5, 60), (20, 60), (30, 60), (20, 200)):
        marked = []
        for run in range(n_runs):
            X, Y = (rk.datasets.uniform(n, n_items, rng=2 * run + k) for k in (0, 1))
            marked.append(any(pair.reverses for pair in rk.mmd_test(X, Y, n_permutations=1).differences().pairs))
        name = f"differences(), {n_items} items, {n} and {n} voters"
        yield rate_row(name, n_runs, some_pair_marked=float(np.mean(marked)))


def agreements(n_runs: int) -> Iterator[dict[str, Any]]:
    """Yield the coverage of the 95 % jackknife interval of the agreement between judges."""
    for n, theta, top in ((6, 0.5, None), (12, 0.5, None), (12, 0.5, 2), (12, 2.0, None), (50, 0.5, 2)):
        truth = rk.agreement(draw(40_000, theta, 10**6, top).unique()).agreement
        intervals = np.array([rk.agreement(draw(n, theta, run, top)).interval for run in range(n_runs)])
        covered = float(((intervals[:, 0] <= truth) & (truth <= intervals[:, 1])).mean())
        name = f"{n} judges, concentration {theta:g}{f', top {top} of 5' if top else ''}"
        yield rate_row(name, n_runs, covered=covered) | {"agreement": round(truth, 4)}


# ---------------------------------------------------------------------- level and power


def two_samples(
    run: int,
    different: bool,
    top: int | None = None,
    sizes: tuple[int, int] = (30, 30),
    theta: float = 0.5,
    method: Any = "auto",
) -> PValues:
    """Return the p-values of a two-sample test."""
    X = draw(sizes[0], theta, 2 * run, top)
    Y = draw(sizes[1], theta, 2 * run + 1, top, OTHER if different else CENTER)
    found = rk.mmd_test(X, Y, KERNEL, n_permutations=199, rng=run, method=method)
    return found.pvalue, found.moment_pvalue


def several_kernels(run: int, different: bool) -> PValues:
    """Return the p-values of a two-sample test by five kernels around the median heuristic."""
    X, Y = draw(30, 0.5, 2 * run), draw(30, 0.5, 2 * run + 1, None, OTHER if different else CENTER)
    found = rk.mmd_aggregated_test(X, Y, n_permutations=199, rng=run)
    return found.pvalue, found.moment_pvalue


def within_strata(run: int, different: bool) -> PValues:
    """Return the p-values of a test within strata that rank differently and have different shares in the samples."""
    sizes, strata = ((20, 10), (10, 20)), ([0] * 20 + [1] * 10, [0] * 10 + [1] * 20)
    centers = ((CENTER, OTHER), (CENTER[::-1] if different else CENTER, OTHER))
    X, Y = (
        rk.concat([draw(n, 0.5, 4 * run + 2 * side + k, None, centers[side][k]) for k, n in enumerate(sizes[side])])
        for side in (0, 1)
    )
    found = rk.mmd_test(X, Y, KERNEL, n_permutations=199, rng=run, strata=strata)
    return found.pvalue, found.moment_pvalue


def groups(
    run: int,
    different: bool,
    sizes: tuple[int, ...] = (20, 20, 20, 20),
    theta: float = 0.5,
    top: int | None = None,
    n_strata: int = 1,
    method: Any = "auto",
) -> KSampleResult:
    """Return the test of several groups, of which the last may differ."""
    centers = [CENTER] * (len(sizes) - 1) + [OTHER if different else CENTER]
    drawn = [draw(n, theta, len(sizes) * run + k, top, centers[k]) for k, n in enumerate(sizes)]
    X, labels = rk.concat(drawn), np.repeat(range(len(sizes)), sizes)
    strata = np.random.default_rng(run).integers(n_strata, size=len(X))
    return rk.k_sample_test(X, labels, KERNEL, strata=strata, n_permutations=199, rng=run, method=method)


def several_groups(run: int, different: bool, **design: Any) -> PValues:
    """Return the p-values of a test of several groups."""
    found = groups(run, different, **design)
    return found.pvalue, found.moment_pvalue


def every_pair(run: int, different: bool) -> PValues:
    """Return the smallest adjusted p-value: of all pairs of groups, or of those with the group that differs."""
    found = groups(run, different).pairwise()
    chosen = np.array([not different or "3" in pair for pair in zip(found.first, found.second, strict=True)])
    return float(found.adjusted_pvalues[chosen].min()), float(
        adjust_pvalues(found.moment_pvalues, "holm")[chosen].min()
    )


def two_halves(run: int, different: bool, n: int, theta: float, top: int | None) -> rk.Rankings:
    """Return rankings whose second half may differ from the first."""
    other = OTHER if different else CENTER
    return rk.concat([draw(n // 2, theta, 2 * run, top), draw(n - n // 2, theta, 2 * run + 1, top, other)])


def covariate(
    run: int,
    different: bool,
    n: int = 60,
    theta: float = 0.5,
    top: int | None = None,
    skewed: bool = False,
    n_strata: int = 1,
    method: Any = "auto",
) -> PValues:
    """Return the p-values of an independence test with a number."""
    rng = np.random.default_rng(run)
    value = np.repeat([0.0, 1.0], [n // 2, n - n // 2]) + rng.normal(0, 0.5, n)
    value, strata = np.exp(2 * value) if skewed else value, rng.integers(n_strata, size=n)
    X = two_halves(run, different, n, theta, top)
    found = rk.hsic_test(X, value, KERNEL, strata=strata, n_permutations=199, rng=run, method=method)
    return found.pvalue, found.moment_pvalue


def given_number(run: int, different: bool) -> PValues:
    """Return the p-values of a test of conditional independence: both variables depend on a third one."""
    rng = np.random.default_rng(run)
    third, noise, scores = rng.normal(size=100), rng.normal(size=100), rng.normal(size=(100, 5))
    scores[:, 0] += third + 0.5 * different * noise
    X = rk.Rankings.from_scores(scores)
    found = rk.hsic_test(X, third + noise, KERNEL, given=third, n_permutations=199, rng=run)
    return found.pvalue, found.moment_pvalue


def same_judges(
    run: int,
    different: bool,
    n: int = 30,
    noise: float = 0.7,
    shift: float = 0.5,
    top: int | None = None,
    method: Any = "auto",
) -> PValues:
    """Return the p-values of a paired test: judges who rank twice with some noise, one item moved up or not."""
    rng = np.random.default_rng(run)
    preference = rng.normal(0, 1, (n, 5))
    first, second = preference + rng.normal(0, noise, (n, 5)), preference + rng.normal(0, noise, (n, 5))
    second[:, 0] += shift * different
    X, Y = (rk.Rankings.from_scores(scores) for scores in (first, second))
    X, Y = (X, Y) if top is None else (X.top(top), Y.top(top))
    found = rk.paired_test(X, Y, KERNEL, n_permutations=199, rng=run, method=method)
    return found.pvalue, found.moment_pvalue


def drift(
    run: int,
    different: bool,
    top: int | None = None,
    skewed: bool = False,
    n_strata: int = 1,
    method: Any = "auto",
) -> PValues:
    """Return the p-values of a test of a trend: one item rises steadily, or not."""
    rng = np.random.default_rng(run)
    scores, times = rng.normal(0, 1, (60, 5)), np.linspace(-1, 1, 60)
    scores[:, 0] += 0.6 * different * times
    X, strata = rk.Rankings.from_scores(scores), rng.integers(n_strata, size=60)
    X, times = X if top is None else X.top(top), np.exp(2 * times) if skewed else times
    found = rk.trend_test(X, times, KERNEL, strata=strata, n_permutations=199, rng=run, method=method)
    return found.pvalue, found.moment_pvalue


def change(
    run: int,
    different: bool,
    time: Any = None,
    theta: float = 0.5,
    top: int | None = None,
    method: Any = "auto",
) -> PValues:
    """Return the p-values of a test of a change in the middle of 60 rows."""
    X = two_halves(run, different, 60, theta, top)
    found = rk.change_point_test(X, KERNEL, time=time, n_permutations=199, rng=run, method=method)
    return found.pvalue, found.moment_pvalue


def model(run: int, different: bool, theta: float = 0.0, top: int | None = None) -> PValues:
    """Return the p-values of a test of a Mallows model, or of the uniform one."""
    null = rk.MallowsModel(CENTER, theta) if theta else rk.Uniform()
    X = draw(30, theta + 0.35 * different, run, top)
    found = rk.goodness_of_fit_test(X, null, KERNEL, n_simulations=99, rng=run)
    return found.pvalue, found.moment_pvalue


FEW_DRAWS = {"top": 2, "method": rk.MonteCarlo(8, "iid", 0)}
TESTS: dict[str, Callable[[int, bool], PValues]] = {
    "mmd_test, 30 and 30": two_samples,
    "mmd_test, 10 and 90": partial(two_samples, sizes=(10, 90)),
    "mmd_test, 20 and 180, concentration 3": partial(two_samples, sizes=(20, 180), theta=3.0),
    "mmd_test, 6 and 6": partial(two_samples, sizes=(6, 6)),
    "mmd_test, top 1 of 5": partial(two_samples, top=1),
    "mmd_test, top 2 of 5, 8 draws": partial(two_samples, **FEW_DRAWS),
    "mmd_test, 30 and 30 in 2 strata": within_strata,
    "mmd_aggregated_test, 30 and 30": several_kernels,
    "k_sample_test, 4 groups of 20": several_groups,
    "k_sample_test, 10, 20 and 90, concentration 3": partial(several_groups, sizes=(10, 20, 90), theta=3.0),
    "k_sample_test, 4 groups of 5": partial(several_groups, sizes=(5, 5, 5, 5), theta=1.0),
    "k_sample_test, top 1 of 5": partial(several_groups, top=1),
    "k_sample_test, top 2 of 5, 8 draws": partial(several_groups, **FEW_DRAWS),
    "k_sample_test, 4 groups of 20 in 2 strata": partial(several_groups, n_strata=2),
    "k_sample_test, its .pairwise()": every_pair,
    "hsic_test, 60 and a number": covariate,
    "hsic_test, 60 and a skewed number, concentration 2": partial(covariate, skewed=True, theta=2.0),
    "hsic_test, 12 and a number, concentration 2": partial(covariate, n=12, theta=2.0),
    "hsic_test, top 1 of 5": partial(covariate, top=1),
    "hsic_test, top 2 of 5, 8 draws": partial(covariate, **FEW_DRAWS),
    "hsic_test, 60 in 2 strata": partial(covariate, n_strata=2),
    "hsic_test, 100 and a number, given a third": given_number,
    "goodness_of_fit_test, 30": model,
    "goodness_of_fit_test, 30, concentration 1": partial(model, theta=1.0),
    "goodness_of_fit_test, 30, top 2 of 5": partial(model, top=2),
    "paired_test, 30 judges": same_judges,
    "paired_test, 30 judges, little noise": partial(same_judges, noise=0.2),
    "paired_test, 8 judges": partial(same_judges, n=8, shift=1.5),
    "paired_test, top 1 of 5": partial(same_judges, top=1, shift=1.0),
    "paired_test, top 2 of 5, 8 draws": partial(same_judges, **FEW_DRAWS),
    "trend_test, 60": drift,
    "trend_test, 60 at skewed times": partial(drift, skewed=True),
    "trend_test, top 1 of 5": partial(drift, top=1),
    "trend_test, top 2 of 5, 8 draws": partial(drift, **FEW_DRAWS),
    "trend_test, 60 in 2 strata": partial(drift, n_strata=2),
    "change_point_test, 60": change,
    "change_point_test, 60 at 12 times": partial(change, time=np.arange(60) // 5),
    "change_point_test, concentration 3": partial(change, theta=3.0),
    "change_point_test, top 1 of 5": partial(change, top=1),
    "change_point_test, top 2 of 5, 8 draws": partial(change, **FEW_DRAWS),
}


def rates(n_runs: int, names: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield level and power of each test, with standard errors; power from a quarter of the runs."""
    for name, test in TESTS.items():
        if names is not None and name not in names:
            continue
        null = np.array([test(run, False) for run in range(n_runs)])
        other = np.array([test(run, True) for run in range(max(n_runs // 4, 1))])
        row: dict[str, Any] = {"test": name, "runs": n_runs}
        for level in LEVELS:
            if level >= 0.01:
                row[f"level at {level:g}"] = float((null[:, 0] <= level).mean())
            row[f"from moments at {level:g}"] = float((null[:, 1] <= level).mean())
            row[f"standard error at {level:g}"] = round(float(np.sqrt(level * (1 - level) / n_runs)), 4)
        yield row | {
            "power at 0.05": float((other[:, 0] <= 0.05).mean()),
            "power, from moments": float((other[:, 1] <= 0.05).mean()),
        }


LONGER = ["mmd_test, 30 and 30", "k_sample_test, 4 groups of 5", "trend_test, 60"]  # off in committed runs


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="simulations of each setting")
    parser.add_argument("--permutations", type=int, default=10_000_000, help="permutations of the long runs")
    parser.add_argument("--only", metavar="TEST", help="level and power of this test only, by its name in the table")
    names = (
        "moments",
        "small_pvalues",
        "levels",
        "longer",
        "seeds",
        "fitted",
        "reversals",
        "outliers",
        "effects",
        "agreement",
    )
    parser.add_argument("--table", choices=names, help="only this table")
    parser.add_argument("-o", "--output", type=Path, help="a folder for one JSON file of each table")
    given = parser.parse_args()
    warnings.simplefilter("ignore", rk.NotCharacteristicWarning)
    tables: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
        "moments": lambda: moments(given.permutations),
        "small_pvalues": lambda: small_pvalues(given.permutations),
        "seeds": lambda: few_permutations(2 * given.runs),
        "fitted": lambda: fitted_models(max(given.runs // 10, 1)),
        "reversals": lambda: reversals(max(given.runs // 5, 1)),
        "levels": lambda: rates(given.runs, None if given.only is None else [given.only]),
        "longer": lambda: rates(10 * given.runs, LONGER),
        "outliers": lambda: chain(with_null_models(max(given.runs // 16, 1)), with_reference(max(given.runs // 4, 1))),
        "effects": lambda: coverage(max(given.runs // 2, 1)),
        "agreement": lambda: agreements(given.runs),
    }
    wanted = given.table or ("levels" if given.only is not None else None)
    for name, table in tables.items():
        if wanted is not None and name != wanted:
            continue
        rows = []
        for row in table():
            rows.append(row)
            print(name, row, flush=True)
        if given.output is not None:
            given.output.mkdir(parents=True, exist_ok=True)
            save(given.output / f"{name}.json", rows)


if __name__ == "__main__":
    main()

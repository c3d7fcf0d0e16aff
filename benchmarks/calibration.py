"""Level and power of the tests by simulation, and what the tail is worth: ``python -m benchmarks.calibration``.

Each row is one setting: how often a test of the null hypothesis has a p-value of at most 0.05, by permutations and by
the Pearson III tail, and how often a test of an alternative has. The tail is also held against long permutation runs:
of statistics at the levels 0.05, 0.01 and 1e-4 of a long run, the p-values that the curve gives. How often intervals of
effects cover is measured in `benchmarks/intervals.py`, how many ballots are wrongly named in `benchmarks/outliers.py`.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

import rankernel as rk
from benchmarks.clock import save
from benchmarks.intervals import coverage
from benchmarks.outliers import outlying, with_reference
from rankernel.errors import NotCharacteristicWarning
from rankernel.stats._groups import GroupedVoters, TwoGroups
from rankernel.stats.corrections import holm
from rankernel.stats.mmd import Samples

KERNEL = rk.Mallows(0.2)
LEVELS = (0.05, 0.01, 1e-4)
CENTER, OTHER = [0, 1, 2, 3, 4], [1, 0, 2, 4, 3]

Answer = tuple[float, float]  # p-values by permutations and by the tail


def draw(n: int, theta: float, seed: int, top: int | None = None, center: Any = CENTER) -> rk.Rankings:
    """Return rankings around a centre, perhaps only their first places."""
    drawn = rk.datasets.mallows(n, center, theta, rng=seed)
    return drawn if top is None else drawn.top(top)


# ---------------------------------------------------------------------- the tail, beside long runs

SHAPES = {
    "balanced, 30 and 30": (30, 30, None),
    "unbalanced, 10 and 90": (10, 90, None),
    "heavy ties (top 1), 30 and 30": (30, 30, 1),
    "few ballots, 6 and 6": (6, 6, None),
}


def tails(n_permutations: int) -> Iterator[dict[str, Any]]:
    """Yield what the curve says where a long run has its levels."""
    for name, (m, n, top) in SHAPES.items():
        voters: GroupedVoters = Samples.checked(draw(m, 0.3, 1, top), draw(n, 0.3, 2, top), None, biased=False).planned(
            KERNEL, "auto", None
        )
        form = TwoGroups(voters, biased=False, rng=1)
        null = np.sort(form.draw(n_permutations))
        moments = voters.moments(biased=False)
        assert moments is not None
        scaled = moments.times(form.per_dispersion)
        row: dict[str, Any] = {"setting": name, "n_permutations": n_permutations}
        for level in LEVELS:
            value = float(null[int(np.ceil((1 - level) * n_permutations)) - 1])
            true = float((null >= value - form.tolerance).mean())
            row[f"true, near {level:g}"] = round(true, 6)
            row[f"tail, near {level:g}"] = round(scaled.tail(value - form.tolerance), 6)
        yield row


# ---------------------------------------------------------------------- level and power


def two_samples(run: int, different: bool, top: int | None = None, sizes: tuple[int, int] = (30, 30)) -> Answer:
    """Return the p-values of a two-sample test."""
    X = draw(sizes[0], 0.5, 2 * run, top)
    Y = draw(sizes[1], 0.5, 2 * run + 1, top, OTHER if different else CENTER)
    found = rk.mmd_test(X, Y, KERNEL, 199, run)
    return found.pvalue, found.tail_pvalue


def several_widths(run: int, different: bool) -> Answer:
    """Return the p-values of a two-sample test by five kernels around the median heuristic."""
    X, Y = draw(30, 0.5, 2 * run), draw(30, 0.5, 2 * run + 1, None, OTHER if different else CENTER)
    found = rk.mmd_aggregated_test(X, Y, n_permutations=199, rng=run)
    return found.pvalue, found.tail_pvalue


def within_strata(run: int, different: bool) -> Answer:
    """Return the p-values of a test within strata, which rank differently; the samples have other shares of them."""
    sizes, strata = ((20, 10), (10, 20)), ([0] * 20 + [1] * 10, [0] * 10 + [1] * 20)
    centers = ((CENTER, OTHER), (CENTER[::-1] if different else CENTER, OTHER))
    X, Y = (
        rk.concat([draw(n, 0.5, 4 * run + 2 * side + k, None, centers[side][k]) for k, n in enumerate(sizes[side])])
        for side in (0, 1)
    )
    found = rk.mmd_test(X, Y, KERNEL, 199, run, strata=strata)
    return found.pvalue, found.tail_pvalue


def four_groups(run: int, different: bool) -> rk.KSampleResult:
    """Return the test of four groups, of which the last may differ."""
    centers = [CENTER, CENTER, CENTER, OTHER if different else CENTER]
    X = rk.concat([draw(20, 0.5, 4 * run + k, None, center) for k, center in enumerate(centers)])
    return rk.k_sample_test(X, np.repeat(range(4), 20), KERNEL, 199, run)


def several_groups(run: int, different: bool) -> Answer:
    """Return the p-values of a test of four groups."""
    found = four_groups(run, different)
    return found.pvalue, found.tail_pvalue


def every_pair(run: int, different: bool) -> Answer:
    """Return the smallest corrected p-value: of all pairs of groups, or of those with the one that differs."""
    found = four_groups(run, different).pairwise()
    asked = np.array([not different or "3" in pair for pair in zip(found.first, found.second, strict=True)])
    return float(found.corrected[asked].min()), float(holm(found.tail_pvalues)[asked].min())


def covariate(run: int, different: bool) -> Answer:
    """Return the p-values of an independence test with a number."""
    X = rk.concat([draw(30, 0.5, 2 * run), draw(30, 0.5, 2 * run + 1, None, OTHER if different else CENTER)])
    value = np.repeat([0.0, 1.0], 30) + np.random.default_rng(run).normal(0, 0.5, 60)
    found = rk.hsic_test(X, value, KERNEL, 199, run)
    return found.pvalue, found.tail_pvalue


def same_judges(run: int, different: bool) -> Answer:
    """Return the p-values of a paired test: judges who rank twice with some noise, one item moved up or not."""
    rng = np.random.default_rng(run)
    taste = rng.normal(0, 1, (30, 5))
    first, second = taste + rng.normal(0, 0.7, (30, 5)), taste + rng.normal(0, 0.7, (30, 5))
    second[:, 0] += 0.5 * different
    found = rk.paired_test(rk.Rankings.from_scores(first), rk.Rankings.from_scores(second), KERNEL, 199, run)
    return found.pvalue, found.tail_pvalue


def drift(run: int, different: bool) -> Answer:
    """Return the p-values of a test of a trend: one item rises steadily, or not."""
    scores = np.random.default_rng(run).normal(0, 1, (60, 5))
    scores[:, 0] += 0.6 * different * np.linspace(-1, 1, 60)
    found = rk.trend_test(rk.Rankings.from_scores(scores), np.arange(60), KERNEL, 199, run)
    return found.pvalue, found.tail_pvalue


def change(run: int, different: bool) -> Answer:
    """Return the p-values of a test of a change after 25 of 60 rows."""
    X = rk.concat([draw(25, 0.5, 2 * run), draw(35, 0.5, 2 * run + 1, None, OTHER if different else CENTER)])
    found = rk.change_point_test(X, KERNEL, n_permutations=199, rng=run)
    return found.pvalue, found.tail_pvalue


def model(run: int, different: bool) -> Answer:
    """Return the p-values of a test of the uniform model."""
    found = rk.goodness_of_fit_test(draw(30, 0.35 * different, run), rk.Uniform(), KERNEL, 99, run)
    return found.pvalue, found.tail_pvalue


TESTS: dict[str, Callable[[int, bool], Answer]] = {
    "mmd_test, 30 and 30": two_samples,
    "mmd_test, 10 and 90": lambda run, different: two_samples(run, different, None, (10, 90)),
    "mmd_test, top 1 of 5": lambda run, different: two_samples(run, different, 1),
    "mmd_test, 30 and 30 in 2 strata": within_strata,
    "mmd_aggregated_test, 30 and 30": several_widths,
    "k_sample_test, 4 groups of 20": several_groups,
    "k_sample_test, its .pairwise()": every_pair,
    "hsic_test, 60 and a number": covariate,
    "goodness_of_fit_test, 30": model,
    "paired_test, 30 judges": same_judges,
    "trend_test, 60": drift,
    "change_point_test, 60": change,
}


def rates(n_runs: int, names: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield level and power of each test, with the standard error of a level."""
    for name, test in TESTS.items():
        if names is not None and name not in names:
            continue
        null, other = (np.array([test(run, different) for run in range(n_runs)]) for different in (False, True))
        yield {
            "test": name,
            "runs": n_runs,
            "level at 0.05": float((null[:, 0] <= 0.05).mean()),
            "by the tail": float((null[:, 1] <= 0.05).mean()),
            "level at 0.01, by the tail": float((null[:, 1] <= 0.01).mean()),
            "power at 0.05": float((other[:, 0] <= 0.05).mean()),
            "power, by the tail": float((other[:, 1] <= 0.05).mean()),
        }


LONGER = ("mmd_test, 10 and 90", "paired_test, 30 judges")


def longer(n_runs: int) -> Iterator[dict[str, Any]]:
    """Yield the levels of tests that a shorter run has two standard errors off, from more runs."""
    for name in LONGER:
        null = np.array([TESTS[name](10**5 + run, False) for run in range(n_runs)])
        yield {
            "test": name,
            "runs": n_runs,
            "level at 0.05": float((null[:, 0] <= 0.05).mean()),
            "by the tail": float((null[:, 1] <= 0.05).mean()),
            "level at 0.01, by the tail": float((null[:, 1] <= 0.01).mean()),
            "standard error at 0.05": round(float(np.sqrt(0.05 * 0.95 / n_runs)), 5),
        }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="simulations of each setting")
    parser.add_argument("--permutations", type=int, default=1_000_000, help="length of the long runs")
    parser.add_argument("--only", metavar="TEST", help="level and power of this test alone, by its name in the table")
    tables_there_are = ("tails", "levels", "longer", "outliers", "effects")
    parser.add_argument("--table", choices=tables_there_are, help="this table alone")
    parser.add_argument("-o", "--output", type=Path, help="a folder: one JSON file for each table")
    given = parser.parse_args()
    warnings.simplefilter("ignore", NotCharacteristicWarning)
    tables: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
        "tails": lambda: tails(given.permutations),
        "levels": lambda: rates(given.runs, None if given.only is None else [given.only]),
        "longer": lambda: longer(10 * given.runs),
        "outliers": lambda: chain(outlying(max(given.runs // 16, 1)), with_reference(max(given.runs // 8, 1))),
        "effects": lambda: coverage(max(given.runs // 2, 1)),
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

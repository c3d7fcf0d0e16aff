"""A short run of the calibration study, and the committed results of the long one."""

import json
import math
import re
from pathlib import Path

import pytest

import rankernel as rk
from benchmarks import calibration

COMMITTED = Path(__file__).parents[2] / "docs" / "benchmarks" / "tests"


def test_moments_in_a_short_run():
    for row in calibration.moments(20_000):
        for level in (0.05, 0.01):
            exact, approximate = row[f"permutations, near {level:g}"], row[f"moments, near {level:g}"]
            assert exact / 1.6 < approximate < 1.6 * exact, (row["setting"], level)


def test_level_and_power_in_a_few_runs():
    cases = ["mmd_test, 30 and 30", "k_sample_test, 4 groups of 20", "paired_test, 30 judges"]
    for row in calibration.rates(40, cases):
        for column in ("level at 0.05", "from moments at 0.05"):
            assert row[column] <= 0.05 + 4 * row["standard error at 0.05"], (row["test"], column)
        assert row["power at 0.05"] > row["level at 0.05"]


def rows_of(name):
    return json.loads((COMMITTED / f"{name}.json").read_text(encoding="utf-8"))["rows"]


@pytest.mark.parametrize("row", rows_of("levels"), ids=lambda row: row["test"])
def test_committed_levels(row):
    for level in ("0.05", "0.01", "0.0001"):
        for column in (f"level at {level}", f"from moments at {level}"):
            assert row.get(column, 0.0) <= float(level) + 4 * row[f"standard error at {level}"], column
    assert row["power at 0.05"] > row["level at 0.05"]


def test_all_tests_are_calibrated():
    page = (COMMITTED.parents[1] / "guide" / "tests.md").read_text(encoding="utf-8")
    questions = page[page.index("| question") : page.index("All tests accept")]
    named = set(re.findall(r"`(\w+_test) <", questions))
    measured = {row["test"].split(",")[0] for row in rows_of("levels")}
    assert named - measured == {"outlier_test"}  # which controls the false discovery rate
    assert {row["test"] for row in rows_of("levels")} == set(calibration.TESTS)


@pytest.mark.parametrize("row", rows_of("outliers"), ids=lambda row: f"{row['inliers']}, {row['concentration']}")
def test_committed_false_discovery_rates(row):
    assert row["rate, with outliers"] <= row["alpha"] + 2 * row["standard error"]
    groups = row["inliers"].endswith("at 0.3")  # where random voters hide outliers
    assert row["power"] >= (0.0 if groups else 0.25)


@pytest.mark.parametrize("row", rows_of("effects") + rows_of("agreement"), ids=lambda row: next(iter(row.values())))
def test_committed_coverage(row):
    assert row["covered"] >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / row["runs"])
    assert row.get("both agree", 1.0) >= 0.9


@pytest.mark.parametrize("row", rows_of("moments"), ids=lambda row: row["setting"])
def test_committed_moments(row):
    """Within a factor of 1.25 at 0.05, 1.3 at 0.01 and 2 at 1e-4 if there is such a small p-value."""
    for level, factor in ((0.05, 1.25), (0.01, 1.3), (1e-4, 2.0)):
        exact, approximate = row[f"permutations, near {level:g}"], row[f"moments, near {level:g}"]
        if exact < 2 * level:
            assert exact / factor < approximate < factor * exact, level


@pytest.mark.parametrize("row", rows_of("small_pvalues"), ids=lambda row: row["setting"])
def test_committed_small_pvalues(row):
    """Not less than half of the p-value of long permutation runs; at 1e-5 that has a relative error of 0.1."""
    assert row["quoted, 0.001"] > 0.5
    assert row.get("quoted, 0.0001", 1.0) > 0.5
    assert row.get("quoted, 1e-05", 1.0) > 0.4


@pytest.mark.parametrize("row", rows_of("seeds"), ids=lambda row: row["setting"])
def test_committed_levels_of_the_default_seed(row):
    for level in (0.02, 0.1):
        assert row[f"p at most {level:g}"] <= level + 4 * math.sqrt(level * (1 - level) / row["runs"])


def test_reversals_in_a_few_runs():
    """Of 190 pairs of items in two groups of one distribution, hardly ever one is marked."""
    marked = 0
    for run in range(10):
        X, Y = (rk.datasets.uniform(60, 20, rng=2 * run + k) for k in (0, 1))
        result = rk.mmd_test(X, Y, rk.Mallows(0.01), n_permutations=1).differences()
        marked += any(pair.reverses for pair in result.pairs)
    assert marked <= 2

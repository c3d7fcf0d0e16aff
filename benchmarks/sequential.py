"""Level, power and stopping time of the sequential test, with a look after every observation.

Top-3 lists of six items from Mallows models (theta = 0.5). A run rejects if the e-value ever exceeds 1/alpha. Beside
it, the fixed-size test (:func:`rankernel.mmd_test`, 199 permutations) at the largest number of pairs.

    python -m benchmarks.sequential -o docs/benchmarks/sequential.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rankernel as rk

N_PAIRS, ALPHA, N_PERMUTATIONS = 400, 0.05, 199
CENTER = [0, 1, 2, 3, 4, 5]
SWAPPED = [1, 0, 2, 3, 4, 5]
OTHER = [2, 0, 1, 3, 4, 5]
KERNEL = rk.Mallows(0.3)


def lists(center: list[int], seed: Any, n: int = N_PAIRS) -> rk.Rankings:
    """Return top-3 lists of a Mallows model."""
    return rk.datasets.mallows(n, center, 0.5, rng=np.random.default_rng(seed)).top(3)


def two_streams(center: list[int], kernel: rk.Kernel = KERNEL) -> Callable[[int], rk.SequentialMMDTest]:
    """Return a run of the test of two streams, the second with another center."""
    return lambda seed: rk.SequentialMMDTest(kernel, alpha=ALPHA).update(
        lists(CENTER, [seed, 0]), lists(center, [seed, 1])
    )


def reference(center: list[int]) -> Callable[[int], rk.SequentialMMDTest]:
    """Return a run of the test of one stream against the distribution of a large sample."""
    population = lists(CENTER, 0, 100_000).unique()
    return lambda seed: rk.SequentialMMDTest(KERNEL, alpha=ALPHA, reference=population, rng=seed).update(
        lists(center, [seed, 0])
    )


def independence(center: list[int]) -> Callable[[int], rk.SequentialMMDTest]:
    """Return a run of the test of independence of rankings and a group with another center."""

    def run(seed: int) -> rk.SequentialMMDTest:
        group = np.random.default_rng([seed, 2]).integers(0, 2, 2 * N_PAIRS)
        both = [lists(each, [seed, which], 2 * N_PAIRS).ranks for which, each in enumerate((CENTER, center))]
        ranks = np.where(group[:, None] == 0, *both)
        return rk.SequentialMMDTest(KERNEL, alpha=ALPHA).update(rk.Rankings(ranks), covariate=group)

    return run


def fixed_size(center: list[int]) -> Callable[[int], float]:
    """Return a run of the fixed-size test."""
    return lambda seed: (
        rk.mmd_test(lists(CENTER, [seed, 0]), lists(center, [seed, 1]), KERNEL, n_permutations=N_PERMUTATIONS).pvalue
    )


CASES: dict[str, tuple[Callable[[int], rk.SequentialMMDTest], bool]] = {  # whether the null hypothesis holds
    "two streams, equal": (two_streams(CENTER), True),
    "two streams, equal, median": (two_streams(CENTER, rk.Mallows("median")), True),
    "two streams, equal, Kendall": (two_streams(CENTER, rk.Kendall()), True),
    "reference, equal": (reference(CENTER), True),
    "independence, independent": (independence(CENTER), True),
    "two streams, first two swapped": (two_streams(SWAPPED), False),
    "two streams, third first": (two_streams(OTHER), False),
    "reference, third first": (reference(OTHER), False),
    "independence, third first": (independence(OTHER), False),
}


def row(name: str, n_runs: int) -> dict[str, Any]:
    """Return the share of rejections, with its standard error, and the quartiles of the stopping time."""
    run, _ = CASES[name]
    stops = [run(seed).stopped_at for seed in range(n_runs)]
    share = float(np.mean([stop is not None for stop in stops]))
    result: dict[str, Any] = {
        "case": name,
        "runs": n_runs,
        "observations": N_PAIRS,
        "rejected": round(share, 4),
        "standard_error": round(float(np.sqrt(share * (1 - share) / n_runs)), 4),
    }
    if not CASES[name][1]:
        quartiles = np.quantile([np.inf if stop is None else stop for stop in stops], [0.25, 0.5, 0.75], method="lower")
        result["stopped_after"] = ", ".join("never" if np.isinf(q) else f"{q:.0f}" for q in quartiles)
        if name.startswith("two streams"):
            test = fixed_size(SWAPPED if "swapped" in name else OTHER)
            result["rejected_fixed_size"] = round(float(np.mean([test(seed) <= ALPHA for seed in range(100)])), 3)
    return result


def main() -> None:
    """Run all cases and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--runs", type=int, default=1000, help="runs under the null hypothesis; a third for power")
    arguments = parser.parse_args()
    rows = []
    for name, (_, is_null) in CASES.items():
        rows.append(row(name, arguments.runs if is_null else arguments.runs // 3))
        print(rows[-1], flush=True)
        if arguments.output is not None:
            result = {"measured": f"share of runs that ever reject at alpha = {ALPHA}", "rows": rows}
            arguments.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

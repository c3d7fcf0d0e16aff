"""Do error bars hold? Estimates with many seeds against exact values: ``python -m benchmarks.coverage [-o FILE]``.

For every kernel, kind of rankings, coupling, number of draws and width: the root mean square of the error bars over
that of the true errors (wanted: 0.9 to 1.3), and how often two error bars reach the truth (wanted: at least 93 %), off
the diagonal, on it, and normalised. A cell that seems not to hold is measured again with more seeds, which then count.
A cell where the library often says that an estimate rests on a few draws warns: its bars are widened, but promise
nothing.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rankernel as rk
from benchmarks.clock import save

N_RUNS = 40
AGAIN = 5  # times as many for cells that seem not to hold
DRAWS = (8, 17, 64, 65)
WIDTHS = (0.3, 1.0, 10.0, 30.0)  # times one over the median distance
COUPLINGS = ("iid", "antithetic", "orthogonal", "latin")
KINDS = {
    "top-2 of 6": rk.datasets.uniform(5, 6, seed=1).top(2),
    "ties of 6": rk.Rankings(rk.datasets.uniform(5, 6, seed=2).ranks // 2),
    "3 of 6 listed, 3 free": rk.datasets.uniform(5, 6, seed=3).top(3, unlisted="free"),
    "top-4 of 12": rk.datasets.uniform(5, 12, seed=4).top(4),
}
KERNELS = {
    "Mallows": rk.Mallows(),
    "exp. Hamming": rk.Exponential("hamming"),
    "exp. footrule": rk.Exponential("footrule"),
    "exp. Cayley": rk.Exponential("cayley"),
    "Mallows * Hamming": rk.Mallows() * rk.Hamming(),
}
EXACT_BEYOND_ENUMERATION = ("Mallows", "exp. Hamming", "exp. footrule", "exp. Cayley")
ROUNDING = 1e-12
LEAST_RATIO, LARGEST_RATIO, LEAST_COVERAGE = 0.9, 1.3, 0.93
OFTEN = 0.1  # of all estimates of a cell


@dataclass(frozen=True)
class Score:
    """How error bars compare with true errors: ratio of their root mean squares, and coverage of two bars."""

    ratio: float
    coverage: float

    @classmethod
    def of(cls, bars: np.ndarray, errors: np.ndarray) -> Score | None:
        """Return the score of entries, from shape (n_runs, n_entries); None if there is nothing to estimate."""
        true = np.sqrt((errors**2).mean(axis=0))
        drawn = true > ROUNDING
        if not drawn.any():
            return None
        ratios = np.sqrt((bars**2).mean(axis=0))[drawn] / true[drawn]
        covered = np.abs(errors) <= 2 * bars + ROUNDING
        return cls(float(np.sqrt((ratios**2).mean())), float(covered[:, drawn].mean()))


def kernel_at(name: str, width: float, kind: str) -> rk.Kernel:
    """Return a kernel whose width is so many times one over the median distance of full rankings."""
    full = rk.datasets.uniform(200, KINDS[kind].n_items, seed=0)
    kernel = KERNELS[name].resolve(full)
    return kernel.replace(**{key: width * value for key, value in kernel.params.items() if key.endswith("nu")})


def cell(kernel: rk.Kernel, rows: rk.Rankings, n_runs: int, **options: Any) -> dict[str, Any]:
    """Return the scores of one estimator over many seeds, and how many entries are said to rest on a few draws."""
    exact = {normalize: kernel.gram(rows, method="exact", normalize=normalize) for normalize in (False, True)}
    off = ~np.eye(len(rows), dtype=bool)
    bars: dict[bool, list[np.ndarray]] = {False: [], True: []}
    errors: dict[bool, list[np.ndarray]] = {False: [], True: []}
    doubtful = []
    for seed in range(n_runs):
        for normalize in (False, True):
            estimate = kernel.estimate(rows, method=rk.MonteCarlo(seed=seed, **options), normalize=normalize)
            bars[normalize].append(estimate.stderr)
            errors[normalize].append(estimate.value - exact[normalize])
            if not normalize:
                doubtful.append(estimate.doubtful)
    found: dict[str, Any] = {}
    for name, normalize, where in (("off", False, off), ("diagonal", False, ~off), ("normalised", True, off)):
        score = Score.of(np.array(bars[normalize])[:, where], np.array(errors[normalize])[:, where])
        found[f"{name}: bar / error"] = score and score.ratio
        found[f"{name}: covered"] = score and score.coverage
    found["rest on few draws"] = float(np.mean(doubtful))
    return found


def cells() -> Iterator[dict[str, Any]]:
    """Return which cells there are."""
    for kind, name, width, coupling, n_draws in itertools.product(KINDS, KERNELS, WIDTHS, COUPLINGS, DRAWS):
        if KINDS[kind].n_items <= 6 or name in EXACT_BEYOND_ENUMERATION:
            yield {"rankings": kind, "kernel": name, "width": width, "coupling": coupling, "draws": n_draws}


def measured(row: dict[str, Any], n_runs: int, moments: int | str = "auto") -> dict[str, Any]:
    """Return a cell with its scores."""
    kernel = kernel_at(row["kernel"], row["width"], row["rankings"])
    options = {"n_draws": row["draws"], "coupling": row["coupling"], "moments": moments}
    return row | cell(kernel, KINDS[row["rankings"]], n_runs, **options)


def settled(row: dict[str, Any], n_runs: int, moments: int | str = "auto") -> dict[str, Any]:
    """Return a cell with its scores, those of more runs where the first ones seem not to hold."""
    found = measured(row, n_runs, moments)
    return found if holds(found) or warns(found) else measured(row, AGAIN * n_runs, moments)


def holds(row: dict[str, Any]) -> bool:
    """Say whether the error bars of a cell hold."""
    names = [name for name in ("off", "diagonal", "normalised") if row[f"{name}: covered"] is not None]
    return all(
        LEAST_RATIO <= row[f"{name}: bar / error"] <= LARGEST_RATIO and row[f"{name}: covered"] >= LEAST_COVERAGE
        for name in names
    )


def warns(row: dict[str, Any]) -> bool:
    """Say whether the library warned of a good part of the estimates of a cell."""
    return bool(row["rest on few draws"] >= OFTEN)


def summary(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return how many cells hold, by kernel, width and number of draws; worst numbers of the cells that do not warn."""
    rows = []
    for kernel, width, draws in itertools.product(KERNELS, WIDTHS, DRAWS):
        cells = [row for row in found if (row["kernel"], row["width"], row["draws"]) == (kernel, width, draws)]
        quiet = [row for row in cells if not warns(row)]
        ratios = [v for row in quiet for name, v in row.items() if name.endswith("bar / error") and v is not None]
        coverage = [v for row in quiet for name, v in row.items() if name.endswith("covered") and v is not None]
        rows.append(
            {
                "kernel": kernel,
                "width": f"{width:g} / median",
                "draws": draws,
                "cells": len(cells),
                "hold": sum(map(holds, cells)),
                "do not hold, and warn": sum(not holds(row) and warns(row) for row in cells),
                "bar / error, where nothing warns": f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else None,
                "least coverage there": min(coverage, default=None),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="save a summary here as JSON, and all numbers in full/")
    parser.add_argument("--runs", type=int, default=N_RUNS)
    parser.add_argument("--moments", default="auto")
    given = parser.parse_args()
    moments = given.moments if given.moments == "auto" else int(given.moments)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in cells():
            row = settled(row, given.runs, moments)
            found.append(row)
            flag = "" if holds(row) else "  warns" if warns(row) else "  <--"
            print(" ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()) + flag, flush=True)
    warned, failing = (sum(not holds(row) and warns(row) == told for row in found) for told in (True, False))
    print(f"{len(found)} cells; {warned} do not hold and warn, {failing} do not hold and do not warn")
    if given.output is not None:
        save(given.output, summary(found), n_runs=given.runs)
        (given.output.parent / "full").mkdir(exist_ok=True)
        save(given.output.parent / "full" / given.output.name, found, n_runs=given.runs)


if __name__ == "__main__":
    main()

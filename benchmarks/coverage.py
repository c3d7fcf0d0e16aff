"""Coverage of jackknife standard errors: ``python -m benchmarks.coverage [--quick] [-o FOLDER]``.

Estimates with many seeds are compared with exact values, for every kernel, kind of rankings, coupling, number of draws
and decay rate: the coverage of intervals of two standard errors (about 95 % wanted), and the root mean square of the
standard errors over that of the true errors. Entries off the diagonal, on the diagonal (biased and unbiased) and
normalised entries are scored separately. A cell in which at least a tenth of the estimates are marked as unreliable has
a warning. Cells with a coverage below 90 % and no warning are listed. All cells take about 8 minutes on one core.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import rankernel as rk
from benchmarks.clock import save
from rankernel import MallowsModel, PlackettLuce, Uniform

N_RUNS = 40
FIRST_SEED = 10_000  # other seeds than those with which the threshold of the warning was chosen
DRAWS = (8, 17, 64)
FACTORS = (1.0, 3.0, 10.0, 30.0)  # decay rates, in multiples of one over the median distance
COUPLINGS = ("iid", "antithetic", "orthogonal")
QUICK = {"draws": (17, 64), "factor": (1.0, 10.0), "coupling": ("iid", "antithetic")}
DATA: dict[str, rk.Rankings | rk.Preferences] = {
    "top-2 of 6": rk.datasets.uniform(5, 6, rng=1).top(2),
    "ties of 6": rk.Rankings(rk.datasets.uniform(5, 6, rng=2).ranks // 2),
    "3 of 6 listed, 3 free": rk.datasets.uniform(5, 6, rng=3).top(3, unlisted="free"),
    "top-4 of 12": rk.datasets.uniform(5, 12, rng=4).top(4),
    "4 of 8 listed, 4 free": rk.datasets.uniform(3, 8, rng=3).top(4, unlisted="free"),
    "partial orders of 6": rk.Preferences.from_pairs(
        [[(0, 1), (2, 3)], [(4, 1), (1, 2)], [(5, 0), (4, 3), (3, 2)], [(0, 5)], [(2, 0), (2, 1), (2, 4)]],
        items=range(6),
    ),
    "ties of 6, Plackett-Luce": rk.Rankings(rk.datasets.uniform(5, 6, rng=5).ranks // 2),
    "3 of 6 listed, 3 free, weights": rk.datasets.uniform(5, 6, rng=6).top(3, unlisted="free"),
}
# Completions that are not uniform are drawn independently; the second model needs importance weights.
MODELS: dict[str, PlackettLuce | MallowsModel] = {
    "ties of 6, Plackett-Luce": PlackettLuce([1.0, 2.0, 3.0, 1.0, 0.5, 4.0]),
    "3 of 6 listed, 3 free, weights": MallowsModel(tuple(range(6)), 0.7, max_down_sets=1),
}
UNCOUPLED = {"partial orders of 6", *MODELS}
KERNELS = {
    "Mallows": rk.Mallows(),
    "exp. Hamming": rk.Exponential("hamming"),
    "exp. footrule": rk.Exponential("footrule"),
    "exp. Cayley": rk.Exponential("cayley"),
    "Mallows * Hamming": rk.Mallows() * rk.Hamming(),
}
# Data with too many completions to enumerate, and the kernels that have a closed form for it.
SOME_KERNELS = {
    "top-4 of 12": ("Mallows", "exp. Hamming", "exp. footrule", "exp. Cayley"),
    "4 of 8 listed, 4 free": ("exp. footrule", "exp. Cayley", "Mallows * Hamming"),
}
EXACT = rk.Exact(limit=2**26)
QUANTITIES = ("off diagonal", "diagonal", "unbiased diagonal", "normalised")
ROUNDING = 1e-12
MIN_COVERAGE = 0.9
MIN_WARNED = 0.1  # share of unreliable estimates at which a cell has a warning


def kernel_at(name: str, factor: float, data: str) -> rk.Kernel:
    """Return a kernel with a multiple of the decay rate of the median heuristic for full rankings."""
    full = rk.datasets.uniform(200, DATA[data].n_items, rng=0)
    kernel = KERNELS[name].resolve(full)
    return kernel.replace(**{key: factor * value for key, value in kernel.params.items() if key.endswith("nu")})


def weighted_gram(kernel: rk.Kernel, rankings: rk.Rankings, model: PlackettLuce | MallowsModel) -> np.ndarray:
    """Return the kernel between rankings whose completions have the probabilities of a model, by enumeration."""
    full = rk.Rankings(list(itertools.permutations(range(rankings.n_items))))
    weights = np.tile(np.exp(model.log_prob(full)), (len(rankings), 1))
    for row, ranking in enumerate(rankings.ranks):
        for first, second in itertools.permutations(np.flatnonzero(ranking >= 0), 2):
            if ranking[first] < ranking[second]:
                weights[row, full.ranks[:, first] > full.ranks[:, second]] = 0.0
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(weights @ kernel.matrix(full.ranks, full.ranks) @ weights.T)


@lru_cache(maxsize=1)
def exact_grams(name: str, factor: float, data: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact matrix, and the normalised one."""
    kernel, rows = kernel_at(name, factor, data), DATA[data]
    if data in MODELS:
        assert isinstance(rows, rk.Rankings)
        exact = weighted_gram(kernel, rows, MODELS[data])
    else:
        exact = kernel.gram(rows, method=EXACT)
    roots = np.sqrt(exact.diagonal())
    return exact, exact / np.multiply.outer(roots, roots)


def cells(quick: bool = False) -> Iterator[dict[str, Any]]:
    """Return all cells, or a representative part."""
    for data, name, factor, coupling, n_draws in itertools.product(DATA, KERNELS, FACTORS, COUPLINGS, DRAWS):
        cell = {"rankings": data, "kernel": name, "factor": factor, "coupling": coupling, "draws": n_draws}
        if name not in SOME_KERNELS.get(data, KERNELS) or (coupling != "iid" and data in UNCOUPLED):
            continue
        if not quick or all(cell[key] in values for key, values in QUICK.items()):
            yield cell


def measure(cell: dict[str, Any], n_runs: int = N_RUNS, first_seed: int = FIRST_SEED) -> dict[str, Any]:
    """Return a cell with the coverage, the ratio of standard errors to errors, and the share of unreliable estimates.

    Quantities without a standard error, because draws form too few blocks, are None.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows, which = DATA[cell["rankings"]], (cell["kernel"], cell["factor"], cell["rankings"])
        kernel, (exact, cosines) = kernel_at(*which), exact_grams(*which)
        off = ~np.eye(len(rows), dtype=bool)
        found: dict[str, list[tuple[np.ndarray, ...]]] = {name: [] for name in QUANTITIES}
        for seed in range(first_seed, first_seed + n_runs):
            completions = MODELS.get(cell["rankings"], Uniform())
            method = rk.MonteCarlo(cell["draws"], cell["coupling"], completions=completions, rng=seed)
            plan = kernel.plan(rows, method=method)
            if plan._evaluator.n_blocks < 3:  # type: ignore[attr-defined]
                return cell | {f"{name}: {score}": None for name in QUANTITIES for score in ("coverage", "ratio")}
            unbiased = kernel.estimate(rows, method=replace(method, diagonal="unbiased"))
            for name, estimate, wanted, where in (
                ("off diagonal", unbiased, exact, off),
                ("diagonal", plan.estimate(), exact, ~off),
                ("unbiased diagonal", unbiased, exact, ~off),
                ("normalised", plan.estimate(normalize=True), cosines, off),
            ):
                parts = estimate.stderr, estimate.value - wanted, estimate.unreliable
                found[name].append(tuple(part[where] for part in parts))
    scores: dict[str, Any] = {}
    for name, runs in found.items():
        stderr, error, unreliable = (np.array(part) for part in zip(*runs, strict=True))
        estimated = np.sqrt((error**2).mean(axis=0)) > ROUNDING * np.abs(exact).max()
        covered = np.abs(error) <= 2 * stderr + ROUNDING * np.abs(exact).max()
        squares = (stderr**2).mean(axis=0)[estimated] / (error**2).mean(axis=0)[estimated]
        scores[f"{name}: coverage"] = round(float(covered[:, estimated].mean()), 3) if estimated.any() else None
        scores[f"{name}: ratio"] = round(float(np.sqrt(squares.mean())), 2) if estimated.any() else None
        scores[f"{name}: unreliable"] = round(float(unreliable.mean()), 3)
    return cell | scores


def has_warning(cell: dict[str, Any], name: str) -> bool:
    """Whether a good part of the estimates of a quantity are marked as unreliable."""
    return bool(cell.get(f"{name}: unreliable", 1.0) >= MIN_WARNED)


def low_coverage(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the quantities of cells with a coverage below 90 % and no warning."""
    keys = ("rankings", "kernel", "factor", "coupling", "draws")
    return [
        {key: cell[key] for key in keys} | {"quantity": name, "coverage": cell[f"{name}: coverage"]}
        for cell in found
        for name in QUANTITIES
        if (cell[f"{name}: coverage"] or 1.0) < MIN_COVERAGE and not has_warning(cell, name)
    ]


def summary(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the coverage by quantity, number of draws and decay rate, of cells with and without a warning."""
    rows = []
    for name, n_draws, factor in itertools.product(QUANTITIES, DRAWS, FACTORS):
        some = [cell for cell in found if (cell["draws"], cell["factor"]) == (n_draws, factor)]
        some = [cell for cell in some if cell[f"{name}: coverage"] is not None]
        if not some:
            continue
        quiet = [cell for cell in some if not has_warning(cell, name)]
        coverage, ratios = ([cell[f"{name}: {score}"] for cell in quiet] for score in ("coverage", "ratio"))
        rows.append(
            {
                "quantity": name,
                "draws": n_draws,
                "decay rate": f"{factor:g} / median",
                "cells": len(some),
                "with a warning": len(some) - len(quiet),
                "mean coverage without": round(float(np.mean(coverage)), 3) if quiet else None,
                "least coverage without": min(coverage, default=None),
                "below 90 % without": sum(c < MIN_COVERAGE for c in coverage),
                "standard error / error without": f"{min(ratios):.2f} to {max(ratios):.2f}" if quiet else None,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="save JSON files in this folder, all cells in full/")
    parser.add_argument("--quick", action="store_true", help="measure a representative part of the cells")
    parser.add_argument("--part", default="1/1", help="measure part i of n of the cells, as i/n")
    parser.add_argument("--runs", type=int, default=N_RUNS)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    given = parser.parse_args()
    part, n_parts = map(int, given.part.split("/"))
    some = list(itertools.islice(cells(given.quick), part - 1, None, n_parts))
    found = []
    with ProcessPoolExecutor(given.jobs) as pool:
        for cell in pool.map(measure, some, *map(itertools.repeat, (given.runs, given.first_seed))):
            found.append(cell)
            print(*cell.values(), *("<--" for _ in low_coverage([cell])), flush=True)
    low = low_coverage(found)
    for row in [*summary(found), *low]:
        print(*row.values())
    print(f"{len(found)} cells; {len(low)} quantities with a coverage below 90 % and no warning")
    if given.output is not None:
        setting = {"n_runs": given.runs, "first_seed": given.first_seed, "quick": given.quick, "part": given.part}
        (given.output / "full").mkdir(parents=True, exist_ok=True)
        save(given.output / "summary.json", summary(found), **setting)
        save(given.output / "below_90_percent.json", low, **setting)
        save(given.output / "full" / "cells.json", found, **setting)


if __name__ == "__main__":
    main()

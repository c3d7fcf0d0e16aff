"""Do error bars hold? Estimates with many seeds against exact values: ``python -m benchmarks.coverage [-o FILE]``.

For every kernel, kind of rankings, coupling, number of draws and width: the root mean square of the error bars over
that of the true errors (wanted: 0.9 to 1.3), and how often two error bars reach the truth (wanted: at least 93 %), off
the diagonal, on it (the squared length of the embedding, or without its bias), and normalised. A cell that seems not to
hold is measured again with more seeds, which then count. A cell where the library often says that an estimate rests on
a few draws warns: its bars are widened, but promise nothing. Elsewhere the few bars of which it says so count for
coverage, and not for how wide bars are.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import rankernel as rk
from benchmarks.clock import save
from rankernel import MallowsModel, PlackettLuce, Uniform

N_RUNS = 40
FIRST_SEED = 10_000  # how far error bars are widened was chosen with smaller ones in view: the study asks others
AGAIN = 5  # times as many for cells that seem not to hold
DRAWS = (8, 17, 64, 65)
WIDTHS = (0.3, 1.0, 10.0, 30.0)  # times one over the median distance
COUPLINGS = ("iid", "antithetic", "orthogonal", "latin")
KINDS: dict[str, rk.Rankings | rk.Preferences] = {
    "top-2 of 6": rk.datasets.uniform(5, 6, rng=1).top(2),
    "ties of 6": rk.Rankings(rk.datasets.uniform(5, 6, rng=2).ranks // 2),
    "3 of 6 listed, 3 free": rk.datasets.uniform(5, 6, rng=3).top(3, unlisted="free"),
    "top-4 of 12": rk.datasets.uniform(5, 12, rng=4).top(4),
    "4 of 8 listed, 4 free": rk.datasets.uniform(3, 8, rng=3).top(4, unlisted="free"),
    "some pairs of 6": rk.Preferences.from_pairs(
        [[(0, 1), (2, 3)], [(4, 1), (1, 2)], [(5, 0), (4, 3), (3, 2)], [(0, 5)], [(2, 0), (2, 1), (2, 4)]],
        items=range(6),
    ),
    "ties of 6, Plackett-Luce": rk.Rankings(rk.datasets.uniform(5, 6, rng=5).ranks // 2),
    "3 of 6 listed, 3 free, weights": rk.datasets.uniform(5, 6, rng=6).top(3, unlisted="free"),
}
# Completions that are not alike are drawn independently, and have no exact lengths; the last are weighted, too.
MODELS: dict[str, PlackettLuce | MallowsModel] = {
    "ties of 6, Plackett-Luce": PlackettLuce([1.0, 2.0, 3.0, 1.0, 0.5, 4.0]),
    "3 of 6 listed, 3 free, weights": MallowsModel(tuple(range(6)), 0.7, max_down_sets=1),
}
UNCOUPLED = {"some pairs of 6", *MODELS}
KERNELS = {
    "Mallows": rk.Mallows(),
    "exp. Hamming": rk.Exponential("hamming"),
    "exp. footrule": rk.Exponential("footrule"),
    "exp. Cayley": rk.Exponential("cayley"),
    "Mallows * Hamming": rk.Mallows() * rk.Hamming(),
}
# Where there are too many completions only kernels with a closed form; and those whose lengths have to be estimated.
SOME_KERNELS = {
    "top-4 of 12": ("Mallows", "exp. Hamming", "exp. footrule", "exp. Cayley"),
    "4 of 8 listed, 4 free": ("exp. footrule", "exp. Cayley", "Mallows * Hamming"),
}
TRUTH = rk.Exact(limit=2**26)
SCORED = ("off", "diagonal", "unbiased diagonal", "normalised")
ROUNDING = 1e-12
LEAST_RATIO, LARGEST_RATIO, LEAST_COVERAGE = 0.9, 1.3, 0.93
OFTEN = 0.1  # of all estimates of a cell


@dataclass(frozen=True)
class Score:
    """How error bars compare with true errors: ratio of their root mean squares, and coverage of two bars."""

    ratio: float
    coverage: float

    @classmethod
    def of(cls, bars: np.ndarray, errors: np.ndarray, unreliable: np.ndarray) -> Score | None:
        """Return the score of entries, from shape (n_runs, n_entries); None if there is nothing to estimate."""
        drawn = np.sqrt((errors**2).mean(axis=0)) > ROUNDING
        if not drawn.any():
            return None
        covered = np.abs(errors) <= 2 * bars + ROUNDING
        sure = ~unreliable & drawn if (~unreliable & drawn).any() else np.ones_like(unreliable) & drawn
        ratios = mean_squares(bars, sure) / mean_squares(errors, sure)
        return cls(*(round(float(number), 3) for number in (np.sqrt(np.nanmean(ratios)), covered[:, drawn].mean())))


def mean_squares(values: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Return the mean square of each entry over some of the runs; no number if there are none."""
    n_runs = where.sum(axis=0)
    return np.asarray((values**2).sum(axis=0, where=where) / np.where(n_runs, n_runs, np.nan))


def kernel_at(name: str, width: float, kind: str) -> rk.Kernel:
    """Return a kernel whose width is so many times one over the median distance of full rankings."""
    full = rk.datasets.uniform(200, KINDS[kind].n_items, rng=0)
    kernel = KERNELS[name].resolve(full)
    return kernel.replace(**{key: width * value for key, value in kernel.params.items() if key.endswith("nu")})


def weighted_sums(kernel: rk.Kernel, rankings: rk.Rankings, model: PlackettLuce | MallowsModel) -> np.ndarray:
    """Return the kernel between rankings whose completions have the probabilities of a model, by listing them all."""
    full = rk.Rankings(list(itertools.permutations(range(rankings.n_items))))
    chances = np.tile(np.exp(model.log_prob(full)), (len(rankings), 1))
    for row, ranking in enumerate(rankings.ranks):
        for first, second in itertools.permutations(np.flatnonzero(ranking >= 0), 2):
            if ranking[first] < ranking[second]:
                chances[row, full.ranks[:, first] > full.ranks[:, second]] = 0.0
    chances /= chances.sum(axis=1, keepdims=True)
    return np.asarray(chances @ kernel.matrix(full.ranks, full.ranks) @ chances.T)


@lru_cache(maxsize=1)
def truth(name: str, width: float, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact matrix, and the normalised one."""
    kernel, rows = kernel_at(name, width, kind), KINDS[kind]
    if kind in MODELS:
        assert isinstance(rows, rk.Rankings)
        exact = weighted_sums(kernel, rows, MODELS[kind])
    else:
        exact = kernel.gram(rows, method=TRUTH)
    roots = np.sqrt(exact.diagonal())
    return exact, exact / np.multiply.outer(roots, roots)


def cells() -> Iterator[dict[str, Any]]:
    """Return which cells there are."""
    for kind, name, width, coupling, n_draws in itertools.product(KINDS, KERNELS, WIDTHS, COUPLINGS, DRAWS):
        if name in SOME_KERNELS.get(kind, KERNELS) and (coupling == "iid" or kind not in UNCOUPLED):
            yield {"rankings": kind, "kernel": name, "width": width, "coupling": coupling, "draws": n_draws}


def measured(
    row: dict[str, Any], n_runs: int, moments: int | str = "auto", first_seed: int = FIRST_SEED
) -> dict[str, Any]:
    """Return a cell with its scores over many seeds, and how many entries are said to rest on a few draws."""
    rows, which = KINDS[row["rankings"]], (row["kernel"], row["width"], row["rankings"])
    kernel, (exact, cosines) = kernel_at(*which), truth(*which)
    found: dict[str, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {name: [] for name in SCORED}
    for seed in range(first_seed, first_seed + n_runs):
        completions = MODELS.get(row["rankings"], Uniform())
        method = rk.MonteCarlo(row["draws"], row["coupling"], moments, completions, rng=seed)
        off = ~np.eye(len(rows), dtype=bool)
        plan = kernel.plan(rows, method=method)
        unbiased = kernel.estimate(rows, method=replace(method, diagonal="unbiased"))
        for name, value, wanted, where in (
            ("off", unbiased, exact, off),
            ("diagonal", plan.estimate(), exact, ~off),
            ("unbiased diagonal", unbiased, exact, ~off),
            ("normalised", plan.estimate(normalize=True), cosines, off),
        ):
            parts = value.stderr, value.value - wanted, value.unreliable
            found[name].append(tuple(part[where] for part in parts))  # type: ignore[arg-type]
    scores: dict[str, Any] = {}
    for name, runs in found.items():
        bars, errors, unreliable = map(np.array, zip(*runs, strict=True))
        score = Score.of(bars, errors, unreliable)
        scores[f"{name}: bar / error"] = score and score.ratio
        scores[f"{name}: covered"] = score and score.coverage
        scores[f"{name}: rest on few draws"] = round(float(unreliable.mean()), 3)
    return row | scores


def settled(row: dict[str, Any], n_runs: int, moments: int | str, first_seed: int) -> dict[str, Any]:
    """Return a cell with its scores, those of more runs where the first ones seem not to hold."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = measured(row, n_runs, moments, first_seed)
        return found if holds(found) or warns(found) else measured(row, AGAIN * n_runs, moments, first_seed)


def holds(row: dict[str, Any], name: str = "") -> bool:
    """Say whether the error bars of a cell hold, all of them or those of one part."""
    if not name:
        return all(holds(row, part) for part in SCORED)
    ratio, covered = row[f"{name}: bar / error"], row[f"{name}: covered"]
    return ratio is None or (LEAST_RATIO <= ratio <= LARGEST_RATIO and covered >= LEAST_COVERAGE)


def is_quiet(row: dict[str, Any], name: str) -> bool:
    """Say whether the library warned of hardly any estimate of a part of a cell."""
    return bool(row[f"{name}: rest on few draws"] < OFTEN)


def warns(row: dict[str, Any]) -> bool:
    """Say whether the library warned of a good part of the estimates wherever error bars do not hold."""
    return not any(is_quiet(row, name) and not holds(row, name) for name in SCORED)


def summary(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return how many cells hold, by kernel, width and number of draws; worst numbers of what does not warn."""
    rows = []
    for kernel, width, draws in itertools.product(KERNELS, WIDTHS, DRAWS):
        cells = [row for row in found if (row["kernel"], row["width"], row["draws"]) == (kernel, width, draws)]
        quiet = [(row, name) for row, name in itertools.product(cells, SCORED) if is_quiet(row, name)]
        ratios, coverage = (
            [row[f"{name}: {number}"] for row, name in quiet if row[f"{name}: {number}"] is not None]
            for number in ("bar / error", "covered")
        )
        rows.append(
            {
                "kernel": kernel,
                "width": f"{width:g} / median",
                "draws": draws,
                "cells": len(cells),
                "hold": sum(map(holds, cells)),
                "do not hold, and warn": sum(not holds(row) and warns(row) for row in cells),
                "do not hold, quietly": sum(not warns(row) for row in cells),
                "bar / error, where nothing warns": f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else None,
                "least coverage there": min(coverage, default=None),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="save a summary here as JSON, and all numbers in full/")
    parser.add_argument("--runs", type=int, default=N_RUNS)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--moments", default="auto")
    parser.add_argument("--jobs", type=int, default=1, help="cells that are measured at once")
    parser.add_argument("--every", type=int, default=1, help="measure every so many-th cell only")
    given = parser.parse_args()
    moments = given.moments if given.moments == "auto" else int(given.moments)
    found = []
    with ProcessPoolExecutor(given.jobs) as pool:
        some = list(itertools.islice(cells(), 0, None, given.every))
        same = map(itertools.repeat, (given.runs, moments, given.first_seed))
        for row in pool.map(settled, some, *same):
            found.append(row)
            flag = "" if holds(row) else "  warns" if warns(row) else "  <--"
            print(" ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()) + flag, flush=True)
    warned, failing = (sum(not holds(row) and warns(row) == said for row in found) for said in (True, False))
    print(f"{len(found)} cells; {warned} do not hold and warn, {failing} do not hold and do not warn")
    if given.output is not None:
        setting = {"n_runs": given.runs, "first_seed": given.first_seed, "every": given.every}
        save(given.output, summary(found), **setting)
        (given.output.parent / "full").mkdir(exist_ok=True)
        save(given.output.parent / "full" / given.output.name, found, **setting)


if __name__ == "__main__":
    main()

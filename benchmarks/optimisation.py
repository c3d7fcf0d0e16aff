"""Bayesian optimisation over permutations beside random search and hill climbing by swaps.

``python -m benchmarks.optimisation [-o FILE]``: flow shops (15 jobs, 5 machines, makespan) and tours (15 cities in the
unit square, length), 50 evaluations, five random instances each; the same instance for all methods. A hill climber
evaluates random swaps of two positions and accepts those that are not worse.

Rows of FILE that were measured before are not measured again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import rankernel as rk
from benchmarks.clock import save

Array = np.ndarray
Objective = Callable[[Array], float]
N_ITEMS, N_MACHINES, N_EVALUATIONS, N_SEEDS = 15, 5, 50, 5


def flow_shop(seed: int) -> Objective:
    """The time at which the last job leaves the last machine; jobs pass all machines in the same order."""
    times = np.random.default_rng(seed).integers(1, 100, size=(N_ITEMS, N_MACHINES))

    def makespan(ranks: Array) -> float:
        done = np.zeros(N_MACHINES)
        for job in np.argsort(ranks):
            previous = 0.0
            for machine in range(N_MACHINES):
                done[machine] = previous = max(done[machine], previous) + times[job, machine]
        return float(done[-1])

    return makespan


def tour(seed: int) -> Objective:
    """The length of the round trip through random points."""
    cities = np.random.default_rng(seed).random((N_ITEMS, 2))

    def length(ranks: Array) -> float:
        visited = cities[np.argsort(ranks)]
        return float(np.linalg.norm(visited - np.roll(visited, 1, axis=0), axis=1).sum())

    return length


def random_search(objective: Objective, rng: np.random.Generator) -> float:
    """The smallest value of random permutations."""
    return min(objective(rng.permutation(N_ITEMS)) for _ in range(N_EVALUATIONS))


def hill_climbing(objective: Objective, rng: np.random.Generator) -> float:
    """The value that is reached by random swaps that do not increase it."""
    current = rng.permutation(N_ITEMS)
    value = objective(current)
    for _ in range(N_EVALUATIONS - 1):
        new = current.copy()
        a, b = rng.choice(N_ITEMS, 2, replace=False)
        new[[a, b]] = new[[b, a]]
        if (at_new := objective(new)) <= value:
            current, value = new, at_new
    return value


def bayesian(kernel: rk.Kernel) -> Callable[[Objective, np.random.Generator], float]:
    """Bayesian optimisation with a kernel."""

    def search(objective: Objective, rng: np.random.Generator) -> float:
        from rankernel.learn.botorch import optimize_permutations

        return optimize_permutations(objective, N_ITEMS, N_EVALUATIONS, kernel=kernel, rng=rng).value

    return search


PROBLEMS = {"flow shop": flow_shop, "tour": tour}
METHODS = {
    "random search": random_search,
    "hill climbing": hill_climbing,
    "Mallows": bayesian(rk.Mallows()),
    "exponential Hamming": bayesian(rk.Exponential("hamming")),
    "exponential Spearman": bayesian(rk.Exponential("spearman")),
}
REPEATS = 200  # of random search and hill climbing, whose means are then known precisely


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.optimisation", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="save the numbers here, as JSON")
    options = parser.parse_args()
    measured = f"smallest value after {N_EVALUATIONS} evaluations of permutations of {N_ITEMS} items"
    rows: list[dict[str, object]] = []
    if options.output is not None and options.output.exists():
        rows = json.loads(options.output.read_text(encoding="utf-8"))["rows"]
    for method, search in METHODS.items():
        for problem, make in PROBLEMS.items():
            if (problem, method) in [(row["problem"], row["method"]) for row in rows]:
                continue
            repeats = REPEATS if method in ("random search", "hill climbing") else 1
            start, values = time.process_time(), []
            for seed in range(N_SEEDS):
                objective = make(seed)
                runs = [search(objective, np.random.default_rng((seed, repeat))) for repeat in range(repeats)]
                values.append(float(np.mean(runs)))
            seconds = (time.process_time() - start) / N_SEEDS / repeats
            rows.append(
                {
                    "problem": problem,
                    "method": method,
                    "mean": round(float(np.mean(values)), 3),
                    **{f"instance {seed}": round(value, 3) for seed, value in enumerate(values)},
                    "processor seconds a run": round(seconds, 2),
                }
            )
            print(rows[-1], flush=True)
            if options.output is not None:
                save(options.output, rows, measured=measured)


if __name__ == "__main__":
    main()

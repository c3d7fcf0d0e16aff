"""Predicted beside measured seconds, over kernels, kinds of rankings and sizes: ``python -m benchmarks.cost``.

Each cell is sized so that it takes about half a second by its own prediction. Prediction and measurement are seconds of
processor time on one core. Every cell runs in a process of its own, with a limit on its memory and its time; the peak
of its memory beyond the matrix is recorded. Three kinds of rows:

- a kernel, kind of rankings, number of items and method: predicted and measured seconds, and their ratio;
- the same rankings by "auto": the measured time of its choice over that of the choice by measured times (*regret*);
- tests, clusters, maps, outliers and reports: measured seconds, and whether the cost was announced.

A row is *beyond* its bounds if a job of more than a second takes a third or three times the predicted time, if it holds
500 MB more than its matrix and the announced draws, if the regret is more than a factor of three and five seconds, or
if it was stopped.
Constants in ``rankernel/gram/evaluator.py`` were set from the ratios that this table shows.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import product
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

import rankernel as rk
from benchmarks.clock import save
from rankernel.gram.evaluator import Evaluator, SumEvaluator
from rankernel.gram.exact.formulas import FormulaEvaluator

N_ITEMS = (10, 20, 100, 300, 1000)
KINDS = ("full", "top-k", "ties", "free")
METHODS = ("exact", "estimated")
ALL_KINDS = (*KINDS, "mixed")
SMALL, LARGE = 40, 6_000  # rankings
AIM = 0.5  # second
MAX_MEMORY = 6 * 2**30  # bytes of address space of the process of a cell
MAX_SECONDS = 60  # of processor time of the process of a cell
SWEEP_ITEMS = (10, 100, 1000)
AUTO_ITEMS = (10, 100)  # numbers of items for which the choices of "auto" are measured
MAX_RATIO, MAX_MEGABYTES, MAX_REGRET_SECONDS = 3.0, 500.0, 5.0
N_TASK = 100  # rankings of a task
TASKS: dict[str, Callable[[rk.Rankings], object]] = {
    "mmd_test": lambda X: rk.mmd_test(X[::2], X[1::2], rk.Mallows("median")),
    "hsic_test": lambda X: rk.hsic_test(X, np.arange(len(X)), rk.Mallows("median")),
    "KernelKMeans": lambda X: rk.KernelKMeans(3, kernel=rk.Mallows("median")).fit(X),
    "KernelMap": lambda X: rk.KernelMap(kernel=rk.Mallows("median")).fit(X),
    "outlier_test": lambda X: rk.outlier_test(X),
    "report": lambda X: report(X),
}


def report(X: rk.Rankings) -> None:
    """Write the report of rankings."""
    with tempfile.TemporaryDirectory() as folder:
        rk.report(X, Path(folder, "report.html"))


@cache
def kernels(n_items: int) -> dict[str, rk.Kernel]:
    """Return the kernels by name, exponential ones at the decay rate of the median heuristic."""
    full = rk.datasets.uniform(200, n_items, rng=1)
    found = {
        "Kendall": rk.Kendall(),
        "Mallows": rk.Mallows("median"),
        "Polynomial(3)": rk.Polynomial(3),
        "Mallows * Kendall": rk.Mallows("median") * rk.Kendall(),
        "Hamming": rk.Hamming(),
        "Spearman": rk.Spearman(),
        "exp. Hamming": rk.Exponential("hamming", "median"),
        "exp. Cayley": rk.Exponential("cayley", math.log(2)),
        "exp. footrule": rk.Exponential("footrule", "median"),
        "exp. Spearman": rk.Exponential("spearman", "median"),
        "diffusion": rk.Diffusion(1 / n_items),
        "Mallows * Hamming": rk.Mallows("median") * rk.Hamming(),
        "weighted Kendall": rk.WeightedKendall("additive", "hyperbolic"),
        "rank-biased overlap": rk.RankBiasedOverlap(0.9),
    }
    return {name: kernel.resolve(full) for name, kernel in found.items()}


def rankings(kind: str, n_rankings: int, n_items: int) -> rk.Rankings:
    """Return random rankings of a kind: top-k lists are of 4 to 8 items, ties fall into about n/3 buckets."""
    full = rk.datasets.uniform(n_rankings, n_items, rng=0)
    k = {10: 4, 20: 8}.get(n_items, 8)
    if kind == "ties":
        return rk.Rankings(full.ranks // 3)
    if kind == "mixed":  # lists of different lengths, ties among them, with and without free items
        lengths = np.random.default_rng(1).integers(2, k + 1, n_rankings)[:, None]
        rest = np.where(np.arange(n_rankings)[:, None] % 2, lengths, -1)
        return rk.Rankings(np.where(full.ranks < lengths, full.ranks // 2, rest))
    lists = full.top(k, unlisted="last" if kind == "top-k" else "free")
    if kind == "some full":
        return rk.Rankings(np.where(np.arange(n_rankings)[:, None] % 2, lists.ranks, full.ranks))
    return full if kind == "full" else lists


def requested(method: str) -> rk.Exact | rk.MonteCarlo:
    """Return the method of a cell."""
    return rk.Exact() if method == "exact" else rk.MonteCarlo()


def models_of(evaluator: Evaluator) -> set[str]:
    """Return the names of the evaluators and formulas behind the prediction of a cell."""
    if isinstance(evaluator, SumEvaluator):
        return {name for part in evaluator.parts for name in models_of(part)}
    if isinstance(evaluator, FormulaEvaluator):
        return {type(formula).__name__ for formula in evaluator.formulas}
    return {type(evaluator).__name__}


def sized_plan(kernel: rk.Kernel, kind: str, n_items: int, method: str, aim: float = AIM) -> rk.Plan | None:
    """Return the plan of as many rankings as take about half a second, or None if there is no such value."""
    size = SMALL
    try:
        while True:
            plan = kernel.plan(rankings(kind, size, n_items), method=requested(method))
            seconds = one_core(plan)
            wanted = int(size * min(math.sqrt(aim / max(seconds, 1e-6)), 8.0))
            if wanted <= 1.1 * size or size >= LARGE or seconds > 10 * aim:
                return plan if seconds < 20 * AIM else None
            size = min(wanted, LARGE)
    except (rk.ExactnessError, ValueError):
        return None


def one_core(plan: rk.Plan) -> float:
    """Return the prediction for one core."""
    n_rows, n_columns = plan.shape
    evaluator = plan._evaluator
    return evaluator.preparation + evaluator.seconds(n_rows, n_columns) / (2 if plan._symmetric else 1)


def peak() -> float:
    """Return the largest memory that this process has held so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def processor_seconds(function: Callable[[], object]) -> float:
    """Return the processor time of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def matrix_cell(name: str, kind: str, n_items: int, method: str) -> dict[str, object] | None:
    """Return predicted and measured seconds of one cell; None if there is no such value."""
    kernel = kernels(n_items)[name]
    plan = sized_plan(kernel, kind, n_items, method)
    if plan is None:
        return None
    n_compile = plan.shape[0] if one_core(plan) < AIM / 2 else 3  # large matrices have loops of their own
    kernel.plan(rankings(kind, n_compile, n_items), method=plan.method).gram(n_jobs=1)  # compile
    fresh = kernel.plan(rankings(kind, plan.shape[0], n_items), method=plan.method)
    out = np.full(plan.shape, 0.0)  # memory that is there already
    before, predicted = peak(), one_core(plan)
    measured = processor_seconds(lambda: fresh.gram(out=out, n_jobs=1))
    found = {"N": plan.shape[0], "predicted": predicted, "measured": measured, "ratio": predicted / measured}
    return found | {
        "ns a pair": measured / np.prod(plan.shape) * 1e9,
        "announced MB": fresh._evaluator.held_bytes / 2**20,
        "peak MB": peak() - before,
        "evaluator": ", ".join(sorted(models_of(fresh._evaluator))),
    }


def auto_cell(name: str, kind: str, n_items: int, _: str) -> dict[str, object] | None:
    """Return how much longer the choice of "auto" takes than that by measured times; None if there is no choice."""
    kernel, auto = kernels(n_items)[name], rk.Auto()
    exact, estimated = (sized_plan(kernel, kind, n_items, each) for each in METHODS)
    if exact is None or estimated is None:
        return None
    X = rankings(kind, min(2 * exact.shape[0], 4 * estimated.shape[0], LARGE), n_items)
    plans = [kernel.plan(X, method="exact"), kernel.plan(X, method=rk.MonteCarlo())]
    times = [processor_seconds(lambda plan=plan: plan.gram(n_jobs=1)) for plan in plans]  # type: ignore[misc]
    takes_exact = isinstance(kernel.plan(X).method, rk.Exact)
    should = times[0] <= max(auto.max_seconds, auto.max_ratio * times[1])
    chosen, best = (times[0 if exact else 1] for exact in (takes_exact, should))
    return {"N": len(X), "measured": chosen, "regret": chosen / best, "regret, seconds": chosen - best}


def task_cell(name: str, kind: str, n_items: int, _: str) -> dict[str, object]:
    """Return the measured seconds of a task."""
    X = rankings(kind, N_TASK, n_items)
    TASKS[name](X[:20])  # compile
    before = peak()
    return {"N": N_TASK, "measured": processor_seconds(lambda: TASKS[name](X)), "peak MB": peak() - before}


def beyond(row: dict[str, Any]) -> str:
    """Return which bounds a row exceeds."""
    longest = max(row.get("measured", 0.0), row.get("predicted", 0.0))
    bounds = {
        "stopped": "error" in row,
        "time": longest > 1 and not 1 / MAX_RATIO <= row.get("ratio", 1.0) <= MAX_RATIO,
        "memory": row.get("peak MB", 0.0) > MAX_MEGABYTES + row.get("announced MB", 0.0),
        "regret": row.get("regret", 1.0) > MAX_RATIO and row["regret, seconds"] > MAX_REGRET_SECONDS,
    }
    return ", ".join(name for name, is_exceeded in bounds.items() if is_exceeded)


CELLS = {"exact": matrix_cell, "estimated": matrix_cell, "auto": auto_cell, "task": task_cell}


def serve(cell: tuple[str, str, int, str], answer: Connection) -> None:
    """Send the numbers of one cell; that its cost is announced is sent at once, because the process may be killed."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS + 5))
    warnings.simplefilter("ignore")
    warnings.simplefilter("always", rk.CostWarning)
    warnings.showwarning = lambda *_: answer.send({"announced": True})
    try:
        answer.send(CELLS[cell[3]](*cell))
    except (rk.ExactnessError, ValueError) as error:
        answer.send(None if cell[3] != "task" else {"error": f"{type(error).__name__}: {error}"[:200]})
    except MemoryError:
        answer.send({"error": "MemoryError"})


def cells() -> Iterator[tuple[str, str, int, str]]:
    """Go through all cells."""
    names = list(kernels(N_ITEMS[0]))
    for n_items in SWEEP_ITEMS:
        yield from ((name, kind, n_items, method) for name, kind, method in product(names, ALL_KINDS, METHODS))
        yield "exp. Hamming", "some full", n_items, "exact"  # has a formula of its own
        yield from ((task, kind, n_items, "task") for task, kind in product(TASKS, ALL_KINDS))
        if n_items in AUTO_ITEMS:
            yield from ((name, kind, n_items, "auto") for name, kind in product(names, ALL_KINDS[1:]))


def cell_of(row: dict[str, Any]) -> tuple[str, str, int, str]:
    """Return the cell of a row."""
    return row["kernel"], row["rankings"], row["n"], row["method"]


def measure(cell: tuple[str, str, int, str]) -> dict[str, Any] | None:
    """Return the row of one cell, measured in a new process; None if there is no such value."""
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=serve, args=(cell, sender))
    process.start()
    sender.close()
    found: list[dict[str, object] | None] = []
    with suppress(EOFError):
        while True:
            found.append(receiver.recv())
    process.join()
    if not found or found[-1] == {"announced": True}:
        is_limit = process.exitcode == -signal.SIGXCPU
        found.append({"error": f"more than {MAX_SECONDS} s" if is_limit else f"exit code {process.exitcode}"})
    if found[-1] is None:
        return None
    row: dict[str, Any] = {"kernel": cell[0], "rankings": cell[1], "n": cell[2], "method": cell[3]}
    for part in found:
        row |= part or {}
    return row | {"beyond": beyond(row)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost", description=__doc__)
    parser.add_argument(
        "-o", "--output", type=Path, help="write the rows into this JSON file, in place of older ones of the same cells"
    )
    parser.add_argument("--only", nargs="+", default=[], help="words that a cell must contain, such as: Mallows n=20")
    parser.add_argument("--jobs", type=int, default=1, help="cells that are measured at the same time")
    options = parser.parse_args()
    chosen = [
        cell for cell in cells() if all(word in f"{cell[0]} {cell[1]} n={cell[2]} {cell[3]} " for word in options.only)
    ]
    found = []
    with warnings.catch_warnings(), ThreadPoolExecutor(options.jobs) as pool:
        warnings.simplefilter("ignore")
        for n_items in SWEEP_ITEMS:
            kernels(n_items)  # before processes are forked
        for row in pool.map(measure, chosen):
            if row is None:
                continue
            found.append(row)
            numbers = (f"{key} {row[key]:.3g}" for key in row if isinstance(row[key], float | int) and key != "n")
            text = ", ".join([*numbers, *(str(row[key]) for key in ("error", "beyond") if row.get(key))])
            print(f"{row['kernel']:18} {row['rankings']:6} n={row['n']:<4} {row['method']:10} {text}", flush=True)
    exceeding = [row for row in found if row["beyond"]]
    print(f"{len(found)} cells; beyond the bounds: {len(exceeding)}")
    if options.output is not None:
        rows = json.loads(options.output.read_text(encoding="utf-8"))["rows"] if options.output.exists() else []
        by_cell = {cell_of(row): row for row in rows if cell_of(row) not in chosen} | {
            cell_of(row): row for row in found
        }
        save(options.output, [by_cell[cell] for cell in cells() if cell in by_cell])


if __name__ == "__main__":
    main()

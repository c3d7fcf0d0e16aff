"""Predicted beside measured seconds, over kernels, kinds of rankings and sizes: ``python -m benchmarks.cost``.

Each cell is sized so that it takes about half a second by its own prediction. The prediction is for one core, and so is
the measurement. Every cell runs in a process of its own, with a limit on its memory, and its peak is recorded.
Constants in ``rankernel/gram/evaluator.py`` were set from the ratios that this table shows.
"""

from __future__ import annotations

import argparse
import math
import resource
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import rankernel as rk
from benchmarks.clock import once, save

N_ITEMS = (10, 20, 100, 300, 1000)
KINDS = ("full", "top-k", "ties", "free")
METHODS = ("exact", "estimated")
SMALL, LARGE = 40, 6_000  # rankings
AIM = 0.5  # second
MAX_MEMORY = 6 * 2**30  # bytes of address space of the process of a cell


def kernels(n_items: int) -> dict[str, rk.Kernel]:
    """Return the kernels by name, exponential ones at the width of the median heuristic."""
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
    }
    return {name: kernel.resolve(full) for name, kernel in found.items()}


def rankings(kind: str, n_rankings: int, n_items: int) -> rk.Rankings:
    """Return random rankings of a kind: top-k lists are of 4 to 8 items, ties fall into about n/3 buckets."""
    full = rk.datasets.uniform(n_rankings, n_items, rng=0)
    k = {10: 4, 20: 8}.get(n_items, 8)
    if kind == "ties":
        return rk.Rankings(full.ranks // 3)
    return full if kind == "full" else full.top(k, unlisted="free" if kind == "free" else "last")


def sized_plan(kernel: rk.Kernel, kind: str, n_items: int, method: str, aim: float = AIM) -> rk.Plan | None:
    """Return the plan of as many rankings as take about half a second, or None if there is no such value."""
    how = "exact" if method == "exact" else rk.MonteCarlo()
    size = SMALL
    try:
        while True:
            plan = kernel.plan(rankings(kind, size, n_items), method=how)
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
    return plan._evaluator.seconds(n_rows, n_columns) / (2 if plan.symmetric else 1)


def peak() -> float:
    """Return the largest memory that this process has held so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured_cell(name: str, kind: str, n_items: int, method: str) -> dict[str, object] | None:
    """Return the numbers of one cell; None if there is no such value, or the memory does not suffice."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    warnings.simplefilter("ignore")
    try:
        kernel = kernels(n_items)[name]
        plan = sized_plan(kernel, kind, n_items, method)
        if plan is None:
            return None
        kernel.plan(rankings(kind, 3, n_items), method=plan.method).gram(n_jobs=1)  # compile
        fresh = kernel.plan(rankings(kind, plan.shape[0], n_items), method=plan.method)
        out = np.full(plan.shape, 0.0)  # memory that is there already
        before = peak()
        measured = once(lambda: fresh.gram(out=out, n_jobs=1))
    except (rk.ExactnessError, ValueError):
        return None
    except MemoryError:
        return {"kernel": name, "rankings": kind, "n": n_items, "method": method, "error": "MemoryError"}
    predicted = one_core(plan)
    return {
        "kernel": name,
        "rankings": kind,
        "n": n_items,
        "method": method,
        "N": plan.shape[0],
        "predicted": predicted,
        "measured": measured,
        "ratio": predicted / measured,
        "ns a pair": measured / np.prod(plan.shape) * 1e9,
        "peak MB": peak() - before,
    }


def rows() -> Iterator[dict[str, object]]:
    """Measure cell by cell, each in a new process."""
    for n_items, name, kind, method in product(N_ITEMS, kernels(N_ITEMS[0]), KINDS, METHODS):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            row = pool.submit(measured_cell, name, kind, n_items, method).result()
        if row is not None:
            yield row


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="save the numbers here, as JSON")
    output = parser.parse_args().output
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in rows():
            found.append(row)
            if "error" in row:
                print(f"{row['kernel']:18} {row['rankings']:6} n={row['n']:<4} {row['method']:10} {row['error']}")
                continue
            print(
                f"{row['kernel']:18} {row['rankings']:6} n={row['n']:<4} {row['method']:10} N={row['N']:<6} "
                f"{row['predicted']:8.3f} s predicted {row['measured']:8.3f} s measured {row['ratio']:6.2f} "
                f"{row['peak MB']:7.0f} MB",
                flush=True,
            )
    off = [row for row in found if "error" not in row and row["measured"] > 0.5 and not 1 / 3 <= row["ratio"] <= 3]
    print(f"{len(found)} cells; beyond a factor of 3 where it took more than half a second: {len(off)}")
    if output is not None:
        save(output, found)


if __name__ == "__main__":
    main()

"""One grid: kernels by kinds of rankings by sizes, exact and estimated, beside the filling of memory.

``python -m benchmarks.grid -o docs/benchmarks/grid.json`` measures, cell by cell, nanoseconds a pair of rankings (the
median of turns with a parallel fill of the same matrix, all in one process) and the seconds of processor time of the
first call with nothing compiled (a process and a cache of its own). Cells that the file already has are kept, so that
an interrupted run goes on where it stopped; ``--again`` measures all anew, ``--only`` some. At the end it says which of
the speeds that were aimed at are reached.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import rankernel as rk
from benchmarks.clock import medians, save
from benchmarks.cost import KINDS, METHODS, N_ITEMS, kernels, rankings, sized_plan

Cell = tuple[str, str, int, str]  # kernel, kind, number of items, method

FIRST = """
import sys, time, warnings
import rankernel as rk
from benchmarks.grid import first_call
warnings.simplefilter("ignore")
name, kind, n_items, method = sys.argv[1:]
print(first_call((name, kind, int(n_items), method)))
"""
FEW = 15  # rankings of a first call
FIRST_ITEMS = 20  # where it is measured: what is compiled hardly depends on the number of items


def cells() -> Iterator[Cell]:
    """Go through the grid."""
    for n_items in N_ITEMS:
        for name in kernels(n_items):
            for kind in KINDS:
                for method in METHODS:
                    yield name, kind, n_items, method


def first_call(cell: Cell) -> float:
    """Return the seconds of processor time of the first Gram matrix of a process."""
    name, kind, n_items, method = cell
    kernel, rows = kernels(n_items)[name], rankings(kind, FEW, n_items)
    start = time.process_time()
    if method == "exact":
        kernel.gram(rows, method="exact")
    else:
        kernel.estimate(rows, method=rk.MonteCarlo(16))
    return time.process_time() - start


def fresh_seconds(cell: Cell) -> float | None:
    """Return the same in a new process with nothing compiled; None if there is no such value."""
    with tempfile.TemporaryDirectory() as cache:
        run = subprocess.run(
            [sys.executable, "-c", FIRST, *map(str, cell)],
            env=os.environ | {"NUMBA_CACHE_DIR": cache},
            capture_output=True,
            text=True,
        )
    return float(run.stdout) if run.returncode == 0 else None


def speed(cell: Cell, repeats: int, aim: float) -> dict[str, float] | None:
    """Return nanoseconds a pair of a Gram matrix and of filling it; None if there is no such value."""
    from benchmarks.grams import fill

    name, kind, n_items, method = cell
    plan = sized_plan(kernels(n_items)[name], kind, n_items, method, aim)
    if plan is None:
        return None
    rows, out = rankings(kind, plan.shape[0], n_items), np.ones(plan.shape)
    ours, filling = medians(
        lambda: plan.kernel.gram(rows, method=plan.method, out=out), lambda: fill(out), repeats=repeats
    )
    draws = plan.method.n_draws if isinstance(plan.method, rk.MonteCarlo) else None
    return {
        "N": len(rows),
        "draws": draws if isinstance(draws, int) else None,
        "ns_a_pair": ours / out.size * 1e9,
        "ns_fill": filling / out.size * 1e9,
    }


def measured(cell: Cell, options: argparse.Namespace) -> dict[str, object]:
    """Return one row of the results; what has no exact value says so."""
    name, kind, n_items, method = cell
    row = {"kernel": name, "rankings": kind, "n": n_items, "method": method}
    try:
        found = speed(cell, options.repeats, options.aim)
    except (rk.ExactnessError, ValueError, MemoryError):
        found = None
    if found is None:
        return row
    return row | found | {"first_call": None if options.warm or n_items != FIRST_ITEMS else fresh_seconds(cell)}


# ---------------------------------------------------------------------- what was aimed at

MALLOWS = 3.0  # times the Mallows kernel: what every function of the Kendall distance may cost
AIMS: tuple[tuple[str, str, int, str, float], ...] = (
    ("Hamming", "top-k", 20, "exact", 25.0),
    ("exp. Hamming", "top-k", 20, "exact", 25.0),
    ("exp. Cayley", "full", 20, "exact", 40.0),
    ("exp. footrule", "top-k", 20, "exact", 10_000.0),
    ("diffusion", "top-k", 20, "exact", 5_000.0),
    ("diffusion", "full", 20, "exact", 60.0),
)
AN_EVALUATION = {"exp. footrule": 4.0, "exp. Spearman": 4.0, "exp. Cayley": 40.0, "diffusion": 40.0}  # ns, n = 10
OF_KENDALL = ("Kendall", "Polynomial(3)", "Mallows * Kendall")
FIRST_CALL = {"exact": 3.0, "estimated": 5.0}  # seconds


def verdicts(rows: list[dict[str, object]]) -> Iterator[tuple[str, float, float]]:
    """Return what was aimed at, what was measured, and the aim."""
    by_cell = {(row["kernel"], row["rankings"], row["n"], row["method"]): row for row in rows}
    for name, kind, n_items, method, aim in AIMS:
        row = by_cell.get((name, kind, n_items, method), {})
        if "ns_a_pair" in row:
            yield f"{name}, {kind}, n={n_items}, {method}: ns a pair", row["ns_a_pair"], aim
    for kind in ("full", "top-k"):
        base = by_cell.get(("Mallows", kind, 20, "exact"), {}).get("ns_a_pair")
        for name in OF_KENDALL:
            row = by_cell.get((name, kind, 20, "exact"), {})
            if base and "ns_a_pair" in row:
                yield f"{name}, {kind}, n=20, exact: times Mallows", row["ns_a_pair"] / base, MALLOWS
    for name, aim in AN_EVALUATION.items():
        row = by_cell.get((name, "top-k", 10, "estimated"), {})
        if row.get("draws"):  # a symmetric matrix has half as many pairs of rankings
            yield f"{name}, top-k, n=10: ns an evaluation", 2 * row["ns_a_pair"] / row["draws"] ** 2, aim
    for method, aim in FIRST_CALL.items():
        slowest = max(
            (row for row in rows if row.get("first_call") and row["method"] == method),
            key=lambda row: row["first_call"],
            default=None,
        )
        if slowest:
            where = f"{slowest['kernel']}, {slowest['rankings']}, n={slowest['n']}"
            yield f"slowest first {method} call ({where}): seconds", slowest["first_call"], aim


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grid", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True, help="save the numbers here, as JSON")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--aim", type=float, default=0.3, help="about how many seconds a matrix should take")
    parser.add_argument("--warm", action="store_true", help="leave out the first calls, which take longest to measure")
    parser.add_argument("--again", action="store_true", help="measure all cells anew")
    parser.add_argument(
        "--only", nargs="+", default=[], help="words that a cell must contain, such as: Mallows exact n=20"
    )
    options = parser.parse_args()
    rows = json.loads(options.output.read_text())["rows"] if options.output.exists() and not options.again else []
    done = {(row["kernel"], row["rankings"], row["n"], row["method"]) for row in rows}
    warnings.simplefilter("ignore")
    for cell in cells():
        words = f"{cell[0]} {cell[1]} n={cell[2]} {cell[3]}"
        if cell in done or not all(word in words for word in options.only):
            continue
        row = measured(cell, options)
        rows.append(row)
        save(options.output, rows, shown_as="heat map")
        shown = (
            "not possible, or much too long"
            if "N" not in row
            else (
                f"N={row['N']:<6} {row['ns_a_pair']:12.1f} ns a pair, fill {row['ns_fill']:6.2f} ns, first call "
                f"{row['first_call'] or float('nan'):6.2f} s"
            )
        )
        print(f"{words:50} {shown}", flush=True)
    for what, found, aim in verdicts(rows):
        print(f"{'reached' if found <= aim else 'NOT reached':12} {what}: {found:.3g}, wanted <= {aim:g}")


if __name__ == "__main__":
    main()

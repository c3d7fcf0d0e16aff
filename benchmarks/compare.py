"""Speed of two versions of the package, alternating: ``python benchmarks/compare.py OLD/src NEW/src``.

Both versions compute the Gram matrices of the cells of ``docs/benchmarks/grid.json`` in one thread, each version in a
process of its own, by turns. The ratio is that of the smallest processor times, which other processes hardly change.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

GRID = Path(__file__).parents[1] / "docs" / "benchmarks" / "grid.json"


# ---------------------------------------------------------------------- one version


def kernels(rk: Any, n_items: int) -> dict[str, Any]:
    """Return the kernels of the grid, with bandwidths of the order of the median heuristic."""
    nu = 4 / n_items**2
    return {
        "Kendall": rk.Kendall(),
        "Mallows": rk.Mallows(nu),
        "Polynomial(3)": rk.Polynomial(3),
        "Mallows * Kendall": rk.Mallows(nu) * rk.Kendall(),
        "Hamming": rk.Hamming(),
        "Spearman": rk.Spearman(),
        "exp. Hamming": rk.Exponential("hamming", 1 / n_items),
        "exp. Cayley": rk.Exponential("cayley", math.log(2)),
        "exp. footrule": rk.Exponential("footrule", 3 / n_items**2),
        "exp. Spearman": rk.Exponential("spearman", 6 / n_items**3),
        "diffusion": rk.Diffusion(1 / n_items),
        "Mallows * Hamming": rk.Mallows(nu) * rk.Hamming(),
    }


def rankings(rk: Any, kind: str, n_rankings: int, n_items: int) -> Any:
    """Return random rankings of a kind, as in the grid."""
    import numpy as np

    ranks = np.argsort(np.random.default_rng(0).random((n_rankings, n_items)), axis=1)
    k = 4 if n_items == 10 else 8
    if kind == "ties":
        ranks = ranks // 3
    elif kind == "top-k":
        ranks = np.minimum(ranks, k)
    elif kind == "free":
        ranks = np.where(ranks < k, ranks, -1)
    return rk.Rankings(ranks)


def serve() -> None:
    """Compute one Gram matrix for each line of standard input, and print the processor time."""
    import warnings

    import rankernel as rk

    warnings.simplefilter("ignore")
    sys.setswitchinterval(1)
    for line in sys.stdin:
        name, kind, n_items, method, n_rankings = json.loads(line)
        try:
            kernel, rows = kernels(rk, n_items)[name], rankings(rk, kind, n_rankings, n_items)
            how = "exact" if method == "exact" else rk.MonteCarlo(64)
            taken = inspect.signature(kernel.gram).parameters
            one_thread = {"n_jobs": 1} if "n_jobs" in taken else {"threads": 1}
            start = time.process_time()
            kernel.gram(rows, method=how, **one_thread)
            print(time.process_time() - start, flush=True)
        except (ValueError, MemoryError) as error:
            print(f'"{type(error).__name__}"', flush=True)


# ---------------------------------------------------------------------- both versions


class Version:
    """A version of the package in a process of its own."""

    def __init__(self, source: str) -> None:
        environment = os.environ | {"PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def seconds(self, cell: tuple[Any, ...]) -> float:
        """Return the processor time of a cell; nan if it has no value."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(cell) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return answer if isinstance(answer, float) else math.nan


def main() -> None:
    """Measure all cells and print the ratios."""
    parser = argparse.ArgumentParser(prog="python benchmarks/compare.py", description=__doc__)
    parser.add_argument("sources", nargs="*", help="the src folders of the old and the new version")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="approximate time of one Gram matrix")
    parser.add_argument("--only", nargs="+", default=[], help="words that a cell must contain, such as: Mallows n=20")
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    versions = [Version(source) for source in options.sources]
    ratios = []
    for row in json.loads(GRID.read_text(encoding="utf-8"))["rows"]:
        words = f"{row['kernel']} {row['rankings']} n={row['n']} {row['method']}"
        if "N" not in row or not all(word in words for word in options.only):
            continue
        n_rankings = min(max(int(math.sqrt(options.seconds / (row["ns_a_pair"] * 1e-9))), 12), row["N"])
        cell = (row["kernel"], row["rankings"], row["n"], row["method"], n_rankings)
        for version in versions:
            version.seconds(cell)  # compile
        times: list[list[float]] = [[] for _ in versions]
        for _ in range(options.repeats):
            for version, own in zip(versions, times, strict=True):
                own.append(version.seconds(cell))
        old, new = (min(own) for own in times)
        ratios.append(new / old)
        print(f"{words:46} N={n_rankings:<6} {old:9.4f} s {new:9.4f} s  ratio {new / old:6.2f}", flush=True)
    known = sorted(ratio for ratio in ratios if ratio == ratio)
    if known:
        slower = sum(ratio > 1.1 for ratio in known)
        print(f"{len(known)} cells, median ratio {known[len(known) // 2]:.3f}, {slower} cells more than 10 % slower")


if __name__ == "__main__":
    main()

"""Variance of the Monte Carlo estimators against independent draws, for each kernel, coupling and degree of moments.

``python -m benchmarks.couplings [-o FILE]``. Ratios above 1 say how many times more independent draws would be needed
for the same error; ``per_second`` weighs that with the time a Gram matrix took. The error is around the exact value
where there is one, else around the mean of all runs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from pathlib import Path

import numpy as np

import rankernel as rk
from rankernel.completions.draws import COUPLINGS
from rankernel.errors import ExactnessError

N_RANKINGS, N_DRAWS, N_RUNS = 6, 16, 40
CASES = {
    "n=10, top-4": (10, 4, "last"),
    "n=10, 3 listed, 7 free": (10, 3, "free"),
    "n=10, 6 listed, 4 free": (10, 6, "free"),
    "n=20, 6 listed, 14 free": (20, 6, "free"),
}
KERNELS = {
    "Mallows": rk.Mallows(),
    "exp. Spearman": rk.Exponential("spearman"),
    "exp. footrule": rk.Exponential("footrule"),
    "exp. Hamming": rk.Exponential("hamming"),
    "exp. Cayley": rk.Exponential("cayley"),
    "polynomial, degree 4": rk.Polynomial(4),
}


def rankings(n: int, k: int, unlisted: str) -> rk.Rankings:
    return rk.datasets.uniform(N_RANKINGS, n, rng=n + k).top(k, unlisted=unlisted)


def truth(kernel: rk.Kernel, rows: rk.Rankings) -> np.ndarray | None:
    try:
        return kernel.gram(rows, method=rk.Exact(limit=10**6))
    except ExactnessError:
        return None


def measured(kernel: rk.Kernel, rows: rk.Rankings, exact: np.ndarray | None, **options: object) -> tuple[float, float]:
    """Return the mean squared error over pairs, and the median seconds of a matrix."""
    runs, seconds = [], []
    for seed in range(N_RUNS):
        start = time.perf_counter()
        runs.append(kernel.gram(rows, method=rk.MonteCarlo(N_DRAWS, rng=seed, **options)))
        seconds.append(time.perf_counter() - start)
    off = ~np.eye(len(rows), dtype=bool)
    center = np.mean(runs, axis=0) if exact is None else exact
    return float(((np.array(runs) - center) ** 2)[:, off].mean()), float(np.median(seconds))


def table() -> list[dict[str, object]]:
    found = []
    for (case, shape), (name, kernel), widths in itertools.product(CASES.items(), KERNELS.items(), (1.0, 2.0)):
        rows = rankings(*shape)
        settled = kernel.resolve(rows)
        if "nu" in settled.params:
            settled = settled.replace(nu=widths * settled.params["nu"])
        elif widths != 1.0:
            continue
        exact = truth(settled, rows)
        plain, plain_seconds = measured(settled, rows, exact, coupling="iid", control_variates=0)
        for coupling, moments in itertools.product(COUPLINGS, (0, 1, 2)):
            if coupling == "herding" and not rows.is_exhaustive():
                continue
            error, seconds = measured(settled, rows, exact, coupling=coupling, control_variates=moments)
            found.append(
                {
                    "case": case,
                    "kernel": name,
                    "nu times median": widths,
                    "coupling": coupling,
                    "control variates": moments,
                    "gain": plain / error if error else None,
                    "gain per second": plain * plain_seconds / (error * seconds) if error else None,
                    "truth": "exact" if exact is not None else "mean of runs",
                }
            )
        best = max(found[-15:], key=lambda row: row["gain"] or 0)
        way = f"{best['coupling']}, control variates {best['control variates']}"
        print(f"{case:26} {name:22} {widths:.0f}/median  best: {way}, {best['gain']:.3g} times", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.couplings", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="save the numbers here, as JSON")
    output = parser.parse_args().output
    rows = table()
    if output is not None:
        protocol = {"n_rankings": N_RANKINGS, "n_draws": N_DRAWS, "n_runs": N_RUNS, "version": rk.__version__}
        output.write_text(json.dumps({"protocol": protocol, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore", rk.IndefiniteKernelWarning)
    main()

"""How soon an error is reached: the paper's estimators beside ours, at equal error: ``python -m benchmarks.tolerance``.

Each estimator draws until no entry is farther from the truth than the tolerance, by its own error bar. Draws count for
each ranking; seconds are of one run, compiled before.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rankernel as rk
from benchmarks.clock import once, save
from rankernel.gram import Estimate

N_RANKINGS = 40
TOLERANCES = (1e-2, 3e-3)
ESTIMATORS = {
    "paper, independent": rk.MonteCarlo(coupling="iid", control_variates=0),
    "paper, antithetic": rk.MonteCarlo(coupling="antithetic", control_variates=0),
    "rankernel": rk.MonteCarlo(),
}


def cases() -> Iterator[tuple[str, rk.Kernel, rk.Rankings]]:
    """Return kernels with rankings that have no exact value."""
    free = rk.datasets.uniform(N_RANKINGS, 20, rng=0).top(6, unlisted="free")
    ties = rk.Rankings(rk.datasets.uniform(N_RANKINGS, 12, rng=0).ranks // 3)
    yield "Mallows, 6 of 20 listed, 14 free", rk.Mallows("median").resolve(free), free
    yield "exp. footrule, 6 of 20 listed, 14 free", rk.Exponential("footrule").resolve(free), free
    yield "exp. Spearman, 12 items in ties of 3", rk.Exponential("spearman").resolve(ties), ties
    yield "exp. Cayley, 12 items in ties of 3", rk.Exponential("cayley", math.log(3)), ties


def measured(kernel: rk.Kernel, rows: rk.Rankings, method: rk.MonteCarlo, tol: float) -> dict[str, Any]:
    """Return what it took to reach a tolerance."""
    kernel.estimate(rows[:4], method=method)  # compile
    found: list[Estimate] = []
    seconds = once(lambda: found.append(kernel.estimate(rows, method=method, tol=tol)))
    used = found[0].method
    assert isinstance(used, rk.MonteCarlo)
    evaluations = used.replicates * used.n_draws**2
    return {"draws": used.replicates * used.n_draws, "evaluations of a pair": evaluations, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tolerance", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="save the numbers here, as JSON")
    given = parser.parse_args()
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case, kernel, rows in cases():
            for tol in TOLERANCES:
                for name, method in ESTIMATORS.items():
                    row = {"case": case, "error at most": tol, "estimator": name}
                    row |= measured(kernel, rows, method, tol)
                    found.append(row)
                    print(" ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()), flush=True)
    if given.output is not None:
        save(given.output, found, n_rankings=N_RANKINGS)


if __name__ == "__main__":
    main()

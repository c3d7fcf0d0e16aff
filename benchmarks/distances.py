"""Time of distance matrices between 10,000 rankings.

``python -m benchmarks.distances -o docs/benchmarks/distances/distances.json`` stores the table of the page.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import rankernel as rk
from benchmarks.clock import save

N_RANKINGS, N_ITEMS, LENGTH = 10_000, 20, 8


def fagin(X: rk.Rankings, p: float = 0.5) -> np.ndarray:
    """The distance K^(p) of rankings with ties, as on the page about distances."""
    a, b = np.triu_indices(X.n_items, 1)
    signs = np.sign(X.ranks[:, a] - X.ranks[:, b]).astype(np.float32)
    untied = np.abs(signs)
    both = untied @ untied.T  # pairs that neither ranking ties
    n_untied = untied.sum(axis=1)
    return (both - signs @ signs.T) / 2 + p * (n_untied[:, None] + n_untied - 2 * both)


def main() -> None:
    """Measure and store the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    full = rk.datasets.uniform(N_RANKINGS, N_ITEMS, rng=0)
    lists = full.top(LENGTH)
    cases = {
        "Kendall distance, full rankings": lambda: rk.distances.kendall(full),
        "mean Kendall distance, top-8 lists": lambda: rk.distances.kendall(lists),
        "tau-b, top-8 lists": lambda: rk.Kendall().gram(lists, normalize=True),
        "K^(1/2) of Fagin et al., top-8 lists": lambda: fagin(lists),
        "Mallows kernel distance, top-8 lists": lambda: rk.kernel_distances(lists, rk.Mallows(0.02)),
    }
    rows = []
    for name, case in cases.items():
        case()
        wall, processor = time.perf_counter(), time.process_time()
        case()
        seconds, both_cores = time.perf_counter() - wall, time.process_time() - processor
        rows.append({"matrix": name, "seconds": round(seconds, 2), "processor seconds": round(both_cores, 2)})
        print(rows[-1])
    output = parser.parse_args().output
    if output:
        save(output, rows, size=f"{N_RANKINGS:,} x {N_RANKINGS:,}, {N_ITEMS} items")


if __name__ == "__main__":
    main()

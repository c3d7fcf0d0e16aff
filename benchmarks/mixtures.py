"""Mixtures of Mallows models of the SUSHI data: ``RANKERNEL_DATA=... python -m benchmarks.mixtures -o FILE``."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import rankernel as rk
from benchmarks.clock import save
from reproduction.sushi import load_sushi

N_COMPONENTS = range(1, 7)


def main() -> None:
    """Fit all numbers of components."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    rankings = load_sushi(Path(os.environ["RANKERNEL_DATA"]) / "sushi3-2016", "a").rankings
    rows = []
    for n_components in N_COMPONENTS:
        mixture = rk.MallowsMixture(n_components, n_init=4, tol=1e-5).fit(rankings)
        rows.append(
            {
                "components": n_components,
                "bic": float(mixture.bic(rankings)),
                "weights": mixture.weights_.tolist(),
                "thetas": mixture.thetas_.tolist(),
                "centers": [list(order) for order in mixture.centers_.to_orders()],
                "proven optimal": bool(mixture.is_optimal_.all()),
            }
        )
        print(rows[-1], flush=True)
    if options.output is not None:
        save(options.output, rows, shown_as="table in appendix.md")


if __name__ == "__main__":
    main()

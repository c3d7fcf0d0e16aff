"""Random sign features against Nystrom features: error of the Gram matrix for the same number of features.

``python -m benchmarks.features``: relative Frobenius error against the exact Mallows Gram matrix.
"""

from __future__ import annotations

import time

import numpy as np

import rankernel as rk


def main() -> None:
    rows = rk.datasets.mallows(600, 10, 0.2, rng=0).top(5)
    kernel = rk.Mallows("median").resolve(rows)
    K = kernel.gram(rows)
    print(f"{'features':>9} {'Nystrom':>10} {'seconds':>9} {'signs':>10} {'seconds':>9}")
    for n_features in (50, 100, 200, 400):
        line = f"{n_features:9}"
        for make in (
            lambda m: rk.NystromFeatures(n_components=m, kernel=kernel, random_state=0),
            lambda m: rk.MallowsSignFeatures(nu=kernel.nu, n_features=m, n_draws=64, random_state=0),
        ):
            start = time.perf_counter()
            Z = make(n_features).fit_transform(rows)
            seconds = time.perf_counter() - start
            line += f" {np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K):10.2e} {seconds:8.2f}s"
        print(line, flush=True)


if __name__ == "__main__":
    main()

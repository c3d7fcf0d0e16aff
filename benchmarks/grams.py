"""Gram matrices: exact Mallows against the filling of memory, Monte Carlo against the NumPy and the sympy way."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from math import comb

import numpy as np
from numba import njit

import rankernel as rk
from benchmarks.clock import Row, medians, once
from rankernel.completions import draw


@njit(nogil=True)
def fill_rows(out, value):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = value


def fill(out: np.ndarray) -> None:
    """Write a constant into a matrix from two threads: the physical limit."""
    half = len(out) // 2
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda part: fill_rows(out[part], 1.5), (slice(0, half), slice(half, None))))


def exact_mallows() -> Iterator[Row]:
    kernel = rk.Mallows(0.05)
    top4 = rk.datasets.uniform(14000, 10, rng=0).top(4).unique()[:5000]
    like_dublin = rk.datasets.truncate(
        rk.datasets.mallows(60000, 12, 0.15, rng=0), {2: 0.1, 3: 0.25, 4: 0.2, 5: 0.15, 7: 0.1, 12: 0.2}, rng=1
    ).unique()
    for name, rows, wanted in (("top-4 of 10", top4, "<= 3"), ("Dublin-like, 12", like_dublin[:20000], "<= 4")):
        out = np.ones((len(rows), len(rows)))
        ours, theirs = medians(lambda: kernel.gram(rows, out=out), lambda: fill(out), repeats=5)  # noqa: B023
        size = f"N={len(rows)}, {name}, float64"
        yield Row("exact Mallows Gram, time over that of filling", size, "parallel fill", ours, theirs, wanted)


def signs(draws: np.ndarray) -> np.ndarray:
    """The order of every pair of items in every draw."""
    a, b = np.triu_indices(draws.shape[2], 1)
    flat = draws.reshape(-1, draws.shape[2])
    return np.sign(flat[:, b] - flat[:, a]).astype(np.float64)


def block_means(values: np.ndarray, draws: np.ndarray) -> np.ndarray:
    n_rankings, n_draws, _ = draws.shape
    return values.reshape(n_rankings, n_draws, n_rankings, n_draws).mean(axis=(1, 3))


def numpy_way(draws: np.ndarray, nu: float) -> np.ndarray:
    """The smart user's way: signs of all pairs, one matrix product, exp, means of blocks."""
    Z = signs(draws)
    d = (comb(draws.shape[2], 2) - Z @ Z.T) / 2
    return block_means(np.exp(-nu * d), draws)


def numpy_in_place(draws: np.ndarray, nu: float, held: np.ndarray) -> np.ndarray:
    """The same by a user who counts bytes, too: every step in one matrix, already touched."""
    Z = signs(draws)
    np.matmul(Z, Z.T, out=held)
    held -= comb(draws.shape[2], 2)
    held *= nu / 2
    return block_means(np.exp(held, out=held), draws)


def monte_carlo() -> Iterator[Row]:
    rows = rk.datasets.uniform(500, 10, rng=0).top(4)
    method = rk.MonteCarlo(20, coupling="antithetic", control_variates=0)
    kernel = rk.Mallows(0.05)
    draws = draw(rows, 20, coupling="antithetic").ranks.astype(np.int64)
    held = np.ones((500 * 20, 500 * 20))
    for way in (numpy_way(draws, 0.05), numpy_in_place(draws, 0.05, held)):
        np.testing.assert_allclose(kernel.gram(rows, method=method), way, rtol=1e-10)
    ours, plain, in_place = medians(
        lambda: kernel.gram(rows, method=method),
        lambda: numpy_way(draws, 0.05),
        lambda: numpy_in_place(draws, 0.05, held),
        repeats=9,
    )
    size = "N=500, 20 draws, n=10"
    yield Row("Monte Carlo Mallows Gram", size, "NumPy: sign-matrix GEMM, exp, mean", ours, plain, ">= 100")
    yield Row("Monte Carlo Mallows Gram", size, "the same in place, memory touched", ours, in_place, "")
    evaluations = 500 * 500 * 20 * 20
    try:
        from sympy.combinatorics import Permutation
    except ImportError:
        return
    pairs = draws[:20, :, :].reshape(-1, 10)

    def sympy_way() -> None:
        for x, y in itertools.pairwise(pairs):
            np.exp(-0.05 * (Permutation(list(y)) * ~Permutation(list(x))).inversions())

    seconds = once(sympy_way) / (len(pairs) - 1) * evaluations
    yield Row(
        "Monte Carlo Mallows Gram, per evaluation", size, "sympy inversions (extrapolated)", ours, seconds, ">= 30000"
    )


def full_rankings() -> Iterator[Row]:
    rows = rk.datasets.uniform(5000, 10, rng=0).unique()
    kernel = rk.Mallows(0.05)

    def numpy_full() -> np.ndarray:
        return numpy_way(rows.ranks[:, None, :].astype(np.int64), 0.05)

    ours, theirs = medians(lambda: kernel.gram(rows), numpy_full, repeats=5)
    yield Row("Gram of full rankings", f"N={len(rows)}, n=10", "NumPy: GEMM and exp", ours, theirs, ">= 1")
    few = rows.ranks[:60]
    from scipy.stats import kendalltau

    scipy_seconds = once(lambda: [[kendalltau(x, y).statistic for y in few] for x in few]) / 60**2
    own = medians(lambda: rk.Kendall().gram(rows), repeats=3)[0] / len(rows) ** 2
    yield Row("Kendall, one pair", "n=10", "scipy.stats.kendalltau", own, scipy_seconds, "")
    try:
        import pandas as pd
    except ImportError:
        return
    frame = pd.DataFrame(rows.ranks[:150].T)
    pandas_seconds = once(lambda: frame.corr(method="kendall")) / 150**2
    yield Row("Kendall, one pair", "n=10", "pandas corr(method='kendall')", own, pandas_seconds, "")


def regimes() -> Iterator[Row]:
    """The sizes that must be served well, against the signs of all pairs in NumPy."""
    cases = (
        ("N=5000, n=100, k=10", rk.datasets.uniform(5000, 100, rng=0).top(10)),
        ("N=200, n=3000", rk.datasets.uniform(200, 3000, rng=0)),
        ("N=4, n=2800", rk.datasets.uniform(4, 2800, rng=0).top(900)),
    )
    for size, rows in cases:
        kernel = rk.Mallows(1e-4)
        (ours,) = medians(lambda: kernel.gram(rows), repeats=3)  # noqa: B023
        yield Row("exact Mallows Gram", size, "(no peer)", ours, float("nan"), "")


ALL = (exact_mallows, monte_carlo, full_rankings, regimes)

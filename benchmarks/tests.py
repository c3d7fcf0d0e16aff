"""The two-sample test on a given Gram matrix."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

import rankernel as rk
from benchmarks.clock import Row, medians, once


def mmd() -> Iterator[Row]:
    n_each, n_permutations = 500, 1000
    X, Y = rk.datasets.uniform(n_each, 8, rng=0), rk.datasets.mallows(n_each, 8, 0.05, rng=1)
    kernel = rk.Mallows(0.1)
    pooled = rk.concat([X, Y])
    K = kernel.gram(pooled)
    first = np.arange(2 * n_each) < n_each

    def unbiased(member: np.ndarray) -> float:
        a, b = member, ~member
        same = [(K[np.ix_(s, s)].sum() - np.trace(K[np.ix_(s, s)])) / (n_each * (n_each - 1)) for s in (a, b)]
        return same[0] + same[1] - 2 * K[np.ix_(a, b)].mean()

    def gemm_way() -> np.ndarray:
        rng = np.random.default_rng(0)
        members = np.stack([rng.permutation(first) for _ in range(n_permutations)]).astype(np.float64)
        across = np.einsum("pi,pi->p", members @ K, 1 - members)
        within = np.einsum("pi,pi->p", members @ K, members) - members @ np.diag(K)
        rest = np.einsum("pi,pi->p", (1 - members) @ K, 1 - members) - (1 - members) @ np.diag(K)
        return (within + rest) / (n_each * (n_each - 1)) - 2 * across / n_each**2

    ours, theirs = medians(
        lambda: rk.mmd_test(X, Y, kernel, n_permutations=n_permutations, precomputed=K), gemm_way, repeats=5
    )
    size = f"N={2 * n_each}, {n_permutations} permutations, given Gram"
    yield Row("MMD test", size, "NumPy: GEMM", ours, theirs, ">= 1")
    from scipy.stats import permutation_test

    few = 25
    seconds = once(
        lambda: permutation_test(
            (np.flatnonzero(first), np.flatnonzero(~first)),
            lambda a, _: unbiased(np.isin(np.arange(2 * n_each), a)),
            n_resamples=few,
            vectorized=False,
            rng=0,
        )
    )
    yield Row("MMD test", size, "scipy permutation_test (extrapolated)", ours, seconds / few * n_permutations, ">= 20")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from hyppo.independence import Hsic
    except ImportError:
        return
    # The permutation test of Hsic against the labels is that of the MMD, and takes a given matrix.
    labels = np.equal.outer(first, first).astype(float)
    test = Hsic(compute_kernel=None).test
    some = slice(n_each - 5, n_each + 5)
    test(K[some, some], labels[some, some], reps=2, auto=False)  # compiles
    seconds = once(lambda: test(K, labels, reps=few, auto=False))
    yield Row("MMD test", size, "hyppo (extrapolated)", ours, seconds / few * n_permutations, "")


ALL = (mmd,)

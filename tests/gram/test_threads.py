"""Many callers at once: threads of one process, forked processes, and joblib's workers."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import rankernel as rk

RANKS = np.minimum(np.argsort(np.random.default_rng(0).random((200, 8)), axis=1), 3)
X = rk.Rankings(RANKS).unique()
FREE = rk.Rankings(np.where(RANKS[:60] == 3, -1, RANKS[:60])).unique()
CALLS = [
    (rk.Mallows(0.3), X, "exact"),
    (rk.Kendall(), X, "exact"),
    (rk.Exponential("cayley", 1.2), X, "exact"),
    (rk.Mallows(0.3), FREE, "exact"),
    (rk.Mallows("median"), X, rk.MonteCarlo(16)),
    (rk.Exponential("footrule", 0.1), FREE, rk.MonteCarlo(8, coupling="iid")),
]


@pytest.mark.filterwarnings("ignore::rankernel.IndefiniteKernelWarning")
def test_calls_from_many_threads():
    expected = [kernel.gram(data, method=method, n_jobs=1) for kernel, data, method in CALLS]

    def call(number):
        kernel, data, method = CALLS[number % len(CALLS)]
        return kernel.gram(data, method=method, n_jobs=1 + number % 3)

    with ThreadPoolExecutor(8) as pool:
        for number, found in enumerate(pool.map(call, range(4 * len(CALLS)))):
            np.testing.assert_array_equal(found, expected[number % len(CALLS)])


@pytest.mark.filterwarnings("ignore:.*rest on a few draws:rankernel.SamplingWarning")
def test_one_estimate_on_any_number_of_threads():
    kernel, method = rk.Mallows(0.3), rk.MonteCarlo(16)
    first = kernel.estimate(X, method=method, n_jobs=1)
    for n_jobs in (2, 5):
        again = kernel.estimate(X, method=method, n_jobs=n_jobs)
        np.testing.assert_array_equal(again.value, first.value)
        np.testing.assert_array_equal(again.stderr, first.stderr)


def test_kernels_of_one_plan_in_many_threads():
    """A plan keeps the tables of one kernel at a time."""
    kernels = [rk.RankBiasedOverlap(p) for p in (0.3, 0.5, 0.9)]
    rows, expected = (slice(0, 4), slice(0, 4)), [kernel.gram(X)[:4, :4] for kernel in kernels]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            for _ in range(100):
                evaluator = kernels[0].plan(X)._evaluator
                values = pool.map(evaluator.values, kernels * 8, [rows] * 24)
                for number, found in enumerate(values):
                    np.testing.assert_array_equal(found, expected[number % 3])
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")
def test_processes_forked_after_a_call(loaded):
    """In a process that has no threads of other tests."""
    code, out, said = loaded.run("""
        import multiprocessing
        import numpy as np
        import rankernel as rk

        X = rk.Rankings(np.minimum(np.argsort(np.random.default_rng(0).random((700, 8)), axis=1), 3))
        kernels = [rk.Mallows(0.3), rk.Kendall(), rk.Hamming()]

        def total(kernel):
            return kernel.gram(X, n_jobs=2).tobytes()

        here = [total(kernel) for kernel in kernels]
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(total, kernels, chunksize=1) == here
        print("same")
    """)
    assert (code, out) == (0, "same\n"), said


def test_under_joblib(loaded):
    pytest.importorskip("joblib")
    code, out, said = loaded.run("""
        import joblib
        import numpy as np
        import rankernel as rk

        ranks = np.minimum(np.argsort(np.random.default_rng(0).random((60, 8)), axis=1), 3)
        calls = [(rk.Mallows(0.3), "auto"), (rk.Kendall(), "auto"), (rk.Mallows("median"), rk.MonteCarlo(8))]
        jobs = (joblib.delayed(kernel.gram)(rk.Rankings(ranks), method=method) for kernel, method in calls)
        found = joblib.Parallel(n_jobs=2, backend="loky")(jobs)
        for (kernel, method), matrix in zip(calls, found, strict=True):
            assert np.array_equal(matrix, kernel.gram(ranks, method=method))
        print("same")
    """)
    assert (code, out) == (0, "same\n"), said

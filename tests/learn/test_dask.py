"""Results on two worker processes equal those of one process to the bit, also after a worker was killed."""

import logging
import os
import signal
import sys
import time
from dataclasses import dataclass

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import rankernel as rk
from rankernel.completions import LogDensity
from rankernel.errors import RankingError
from rankernel.kernels import Facts, Kernel
from rankernel.stats.mmd import mmd2_streamed

MISSING = "dask or distributed is not installed: pip install 'rankernel[dask]'"
dask = pytest.importorskip("dask", reason=MISSING)
pytest.importorskip("dask.callbacks", reason=MISSING)
distributed = pytest.importorskip("distributed", reason=MISSING)
cloudpickle = pytest.importorskip("cloudpickle", reason=MISSING)

from rankernel.learn import dask as on_dask  # noqa: E402  after it is known that dask is there


def rankings(n_rankings, seed=0, listed=4, n_items=9):
    ranks = np.argsort(np.random.default_rng(seed).random((n_rankings, n_items)), axis=1)
    return rk.Rankings(np.minimum(ranks, listed))


X = rankings(2000).unique()[:1100]  # three blocks of exact values, many of estimates
Y = rankings(300, seed=1)
REPEATED = rk.concat([X[:600], X[:600][::-1], X[100:300]])  # 600 distinct in 1,400 rows
FREE = rk.Rankings(np.where(Y.ranks == 4, -1, Y.ranks))[:110]
USERS = rk.Preferences.from_pairs(
    [[("a", "b"), ("c", "d")], [("a", "c")], [("d", "b"), ("c", "a")]], items=list("abcd")
)
CALLS = [
    pytest.param(rk.Mallows(0.3), X, None, "auto", id="mallows"),
    pytest.param(rk.Mallows("median"), X, None, "auto", id="median"),
    pytest.param(rk.Kendall(), X, None, "auto", id="kendall"),
    pytest.param(0.5 * rk.Kendall() + rk.Hamming(), REPEATED, None, "exact", id="repeated"),
    pytest.param(rk.Mallows(0.3), REPEATED, Y, "auto", id="repeated rows"),
    pytest.param(rk.Exponential("hamming", 0.4), X, Y, "auto", id="exp hamming"),
    pytest.param(rk.Mallows(0.3), X[:300], None, rk.MonteCarlo(8), id="draws"),
    pytest.param(
        rk.Exponential("footrule", 0.05), FREE, X[:200], rk.MonteCarlo(8, control_variates=0), id="draws of free items"
    ),
    pytest.param(rk.Mallows(0.2) * rk.Kendall(), X, None, "auto", id="product"),
    pytest.param(
        rk.Mallows(0.3),
        X[:120],
        None,
        rk.MonteCarlo(8, completions=LogDensity(lambda ranks: -0.1 * ranks[:, 0])),
        id="any density",
    ),
    pytest.param(rk.Mallows(0.3), USERS, None, "auto", id="partial orders"),
]


@pytest.fixture(scope="module")
def client():
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    start = "forkserver" if hasattr(os, "fork") else "spawn"  # the fastest start method
    with (
        dask.config.set(
            {"distributed.comm.timeouts.connect": "60s", "distributed.worker.multiprocessing-method": start}
        ),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        yield client
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


# ---------------------------------------------------------------------- Gram matrices


@pytest.mark.parametrize(("kernel", "rows", "columns", "method"), CALLS)
def test_gram_on_a_cluster(client, kernel, rows, columns, method):
    lazy = on_dask.gram(kernel.plan(rows, columns, method=method), chunks=1)
    found = client.compute(lazy).result()
    np.testing.assert_array_equal(found, kernel.gram(rows, columns, method=method))
    assert found.shape == lazy.shape


def test_new_rankings_against_training_rankings_on_a_cluster(client):
    for kernel, train, new in (
        (rk.Mallows("median"), X, Y),
        (rk.Exponential("footrule", 0.05), FREE[:20], REPEATED[-220:]),
    ):
        plan = kernel.plan(train).against(new)
        found = client.compute(on_dask.gram(plan, chunks=1)).result()
        np.testing.assert_array_equal(found, plan.gram())


def test_both_workers_compute(client):
    futures = client.compute(list(on_dask.gram(rk.Mallows(0.3).plan(X), chunks=16).blocks.ravel()))
    distributed.wait(futures)
    where = client.who_has(futures)
    assert len({worker for workers in where.values() for worker in workers}) == 2


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_gram_without_a_cluster(scheduler):
    for call in CALLS[:5]:
        kernel, rows, columns, method = call.values
        found = on_dask.gram(kernel.plan(rows, columns, method=method), chunks=1).compute(scheduler=scheduler)
        np.testing.assert_array_equal(found, kernel.gram(rows, columns, method=method))


def test_chunks_are_multiples_of_the_block_side():
    one, several = (on_dask.gram(rk.Mallows(0.3).plan(X), chunks=chunks).chunks[0] for chunks in (1, 600))
    assert sum(one) == sum(several) == len(X)
    assert several[0] >= 600
    assert several[0] % one[0] == 0
    assert on_dask.gram(rk.Kendall().plan(X[:0])).compute(scheduler="synchronous").shape == (0, 0)


def compute_and_count(lazy):
    """Return a result, and the number of kernel values that tasks computed: views, as transposes, have none."""
    results = []
    with dask.callbacks.Callback(posttask=lambda _, result, *others: results.append(result)):
        value = lazy.compute(scheduler="synchronous")
    return value, sum(each.size for each in results if isinstance(each, np.ndarray) and each.flags.owndata)


def test_symmetric_matrix_is_computed_by_halves():
    lazy = on_dask.gram(rk.Mallows(0.3).plan(X), chunks=1)
    sides = lazy.chunks[0]
    assert len(sides) > 1
    _, n_values = compute_and_count(lazy.sum())
    assert n_values < 1.1 * sum(side * sum(sides[i:]) for i, side in enumerate(sides))  # and the sums


def test_slice_computes_only_its_blocks():
    lazy = on_dask.gram(rk.Mallows(0.3).plan(X), chunks=1)
    corner, n_values = compute_and_count(lazy[:5, -5:])
    assert n_values <= lazy.chunks[0][0] * lazy.chunks[1][-1] + corner.size
    np.testing.assert_array_equal(corner, rk.Mallows(0.3).gram(X)[:5, -5:])


def test_blocks_share_one_copy_of_the_plan():
    graph = on_dask.gram(rk.Mallows(0.3).plan(X), chunks=1).dask
    assert sum(isinstance(key, str) for key in graph) == 1  # blocks are tuples


def test_names_are_unique():
    names = {
        on_dask.gram(kernel.plan(data, method=method)).name
        for kernel in (rk.Mallows(0.3), rk.Mallows(0.30000000000000004))
        for data in (X, X[::-1])
        for method in ("auto", rk.MonteCarlo(4), rk.MonteCarlo(4, rng=1))
    }
    assert len(names) == 12
    assert on_dask.gram(rk.Mallows(0.3).plan(X)).name == on_dask.gram(rk.Mallows(0.3).plan(X)).name


# ---------------------------------------------------------------------- killed worker


@dataclass(frozen=True)
class Slow(Kernel):
    """A slow Mallows kernel, so that a worker can be killed while it computes."""

    def matrix(self, left, right):
        time.sleep(0.2)
        return rk.Mallows(0.3).matrix(left, right)

    def facts(self, n_items):
        return Facts(is_psd=True)


def n_blocks_done(dask_scheduler):
    return sum(task.state == "memory" for task in dask_scheduler.tasks.values())


def test_killed_worker(client):
    full = rankings(1500, listed=9).unique()[:1300]
    expected = rk.Mallows(0.3).gram(full)
    future = client.compute(on_dask.gram(Slow().plan(full), chunks=1))
    while client.run_on_scheduler(n_blocks_done) < 2:  # the plan and a block
        time.sleep(0.01)
    pids = client.run(os.getpid)
    assert not future.done()
    os.kill(next(iter(pids.values())), signal.SIGKILL)
    np.testing.assert_array_equal(future.result(), expected)
    client.wait_for_workers(2)
    assert set(client.run(os.getpid).values()) != set(pids.values())


# ---------------------------------------------------------------------- features


def test_features_on_a_cluster(client):
    kernel, lists = rk.Mallows(0.3), X[:130]
    features = rk.NystromFeatures(n_components=12, kernel=kernel, random_state=3).fit(lists)
    lazy = on_dask.transform(lists, features, chunks=50)
    found = client.compute(lazy).result()
    assert lazy.shape == (130, 12)
    assert lazy.chunks == ((50, 50, 30), (12,))
    with threadpool_limits(1):  # as in the workers: triangular systems are rounded by the number of threads
        by_chunk = [features.transform(lists[start : start + 50]) for start in (0, 50, 100)]
    np.testing.assert_array_equal(found, np.concatenate(by_chunk))
    np.testing.assert_allclose(found, features.transform(lists), rtol=0, atol=1e-12)


def test_pivots_from_a_sample():
    kernel = rk.Mallows("median").resolve(X)
    features = rk.NystromFeatures(40, kernel=kernel).fit(X[::18])
    found = on_dask.transform(X, features, chunks=512).compute(scheduler="synchronous")
    missing = kernel.gram(X) - found @ found.T
    assert np.linalg.eigvalsh(missing).min() > -1e-10
    exact = np.isclose(np.diagonal(missing), 0, atol=1e-10)
    assert exact.sum() >= 40  # the pivots at least


# ---------------------------------------------------------------------- discrepancy


@pytest.mark.parametrize("method", ["auto", rk.MonteCarlo(8)], ids=["exact", "draws"])
def test_discrepancy_on_a_cluster(client, method):
    left, right = rk.Rankings(REPEATED.ranks[-300:], counts=np.arange(1, 301)), Y
    for kernel in (rk.Mallows("median"), rk.Kendall()):
        found = on_dask.mmd2(left, right, kernel, method=method, chunks=1)
        with dask.config.set(scheduler="synchronous"):
            assert on_dask.mmd2(left, right, kernel, method=method, chunks=1) == found
        # A difference of means of about 1.
        assert found == pytest.approx(mmd2_streamed(left, right, kernel, method=method), rel=0, abs=1e-13)


def test_discrepancy_of_small_samples():
    with dask.config.set(scheduler="synchronous"):
        assert on_dask.mmd2([[0, 1], [0, 1]], [[1, 0], [1, 0]], rk.Kendall()) == 4.0
        with pytest.raises(RankingError, match="Y holds 1"):
            on_dask.mmd2(X, Y[:1], rk.Kendall())

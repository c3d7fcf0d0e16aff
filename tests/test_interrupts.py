"""Ctrl-C stops computations within two seconds and leaves no thread running; warnings point at the caller."""

import os
import signal
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import rankernel as rk
from rankernel._utils.resources import (
    InterruptedWorkerError,
    check_interrupt,
    n_threads,
    run_in_threads,
    run_interruptibly,
)
from rankernel.completions import LogDensity
from rankernel.errors import warn

# Each would take hours. Some work is many blocks, some is one long call; a single thread is the hardest case.
LONG = {
    "gram": 'rk.Exponential("footrule", 0.1).gram(X, method=rk.MonteCarlo(20 * n, control_variates=0))',
    "one thread": 'rk.Exponential("footrule", 0.1).gram(X, method=rk.MonteCarlo(20 * n, control_variates=0), n_jobs=1)',
    "estimate": "rk.Mallows(0.1).estimate(X, method=rk.MonteCarlo(5 * n), gradient=True, n_jobs=1)",
    "paired": 'rk.Exponential("footrule", 0.1).paired(X, X[::-1], method=rk.MonteCarlo(20 * n, control_variates=0))',
    "draws": 'rk.Exponential("footrule", 0.1).plan(MANY, method=rk.MonteCarlo(8 * n, "iid", 0)).block([0], [1])',
    "linear extensions": "rk.Mallows(0.1).gram(ORDERS, method=rk.MonteCarlo(8 * n), n_jobs=1)",
    "formula": 'rk.Exponential("hamming", 0.1).paired(HALF, HALF[::-1], method="exact", n_jobs=1)',
    "hsic_test": "rk.hsic_test(FULL, rng.random(len(FULL)), n_permutations=1000 * n)",
    "waiting": "run_interruptibly(time.sleep, 3.6 * (n - 1))",
}
PROGRAM = """
import threading, time
import numpy as np
import rankernel as rk
from rankernel._utils.resources import run_interruptibly

rng = np.random.default_rng(0)
X = rk.Rankings(np.minimum(np.argsort(rng.random((300, 20)), axis=1), 6))
MANY = rk.Rankings(np.minimum(np.argsort(rng.random((2000, 20)), axis=1), 6))
PAIRS = np.sort([[rng.choice(60, 2, replace=False) for _ in range(70)] for _ in range(3)], axis=2).tolist()
HALF = np.argsort(rng.random((500, 40)), axis=1)
ORDERS = rk.Preferences.from_pairs(PAIRS, items=range(60))
FULL = rk.Rankings(np.argsort(rng.random((2000, 20)), axis=1))

HALF = rk.Rankings(np.where(HALF < 20, HALF, -1))

def call(X, FULL, MANY, HALF, n):
    {call}

call(X[:2], FULL[:4], MANY[:2], HALF[:2], 1)  # compiled and loaded
print("started", time.process_time(), flush=True)
try:
    call(X, FULL, MANY, HALF, 1000)
except KeyboardInterrupt:
    workers = [thread for thread in threading.enumerate() if type(thread).__name__ == "Worker"]
    running = [worker for worker in workers if not worker.finished.is_set()]
    print("interrupted", time.process_time(), len(running), flush=True)
"""
CPU_SECONDS = 2.0  # after a Ctrl-C, for each core
INSIDE = 0.2  # CPU seconds after which a call is inside its compiled loops
WAITING = 1.0  # seconds, for calls that use no CPU


def cpu_seconds(process):
    """CPU time of a process: on a busy machine wall-clock time says little."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # another system
        return float("inf")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(sys.platform == "win32", reason="signals cannot be sent to one process there")
@pytest.mark.parametrize("name", LONG)
def test_long_calls_are_interrupted(name, loaded):
    process = loaded.start(PROGRAM.format(call=LONG[name]))
    try:
        word, start = process.stdout.readline().split()
        assert word == "started"
        end = time.monotonic() + WAITING
        while not float(start) + INSIDE <= cpu_seconds(process) < float("inf") and time.monotonic() < end:
            time.sleep(0.01)
        before = cpu_seconds(process)
        process.send_signal(signal.SIGINT)
        word, after, n_running = process.communicate(timeout=300)[0].split()
        assert word == "interrupted"
        assert float(after) < before + CPU_SECONDS * n_threads(None)
        assert n_running == "0" or name in ("hsic_test", "waiting")  # a single call cannot be stopped
        assert process.returncode == 0
    finally:
        process.send_signal(signal.SIGKILL)


# ---------------------------------------------------------------------- worker threads


def test_values_and_errors():
    assert run_interruptibly(lambda: run_interruptibly(max, 3, 5)) == 5
    with pytest.raises(ZeroDivisionError):
        run_interruptibly(lambda: 1 / 0)


def test_numpy_settings_of_the_caller():
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        run_interruptibly(lambda: np.ones(2) / np.zeros(2))


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_every_piece_is_done_once(n_jobs):
    done = []
    run_in_threads(done.append, range(100), n_jobs)
    assert sorted(done) == list(range(100))


def test_an_error_stops_all_workers():
    done = []

    def work(piece):
        if piece == 5:
            raise ZeroDivisionError
        done.append(piece)
        time.sleep(0.001)

    with pytest.raises(ZeroDivisionError):
        run_in_threads(work, range(100_000), 3)
    n_done = len(done)
    time.sleep(0.02)
    assert len(done) == n_done < 1000


def test_nested_work_stops_with_its_caller():
    """An inner loop in a worker thread stops when the outer call fails."""
    inner, started = [], threading.Event()

    def work(piece):
        if piece:
            started.wait()
            raise ZeroDivisionError
        run_in_threads(lambda number: inner.append(number) or started.set() or time.sleep(0.001), range(100_000), 1)

    with pytest.raises(ZeroDivisionError):
        run_in_threads(work, range(2), 2)
    n_done = len(inner)
    time.sleep(0.02)
    assert len(inner) == n_done


def test_check_interrupt_in_a_stopped_worker():
    errors, started = [], threading.Event()

    def work(piece):
        if piece:
            started.wait()
            raise ZeroDivisionError
        started.set()
        try:
            while True:
                time.sleep(0.001)
                check_interrupt()
        except InterruptedWorkerError as error:
            errors.append(error)

    with pytest.raises(ZeroDivisionError):
        run_in_threads(work, range(2), 2)
    assert len(errors) == 1
    check_interrupt()  # outside of workers it does nothing


# ---------------------------------------------------------------------- numbers of threads


def test_numbers_of_threads(monkeypatch):
    monkeypatch.delenv("RANKERNEL_NUM_THREADS", raising=False)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert n_threads(None) == n_threads(-1) == cores
    assert n_threads(3) == n_threads(np.int64(3)) == 3
    monkeypatch.setenv("RANKERNEL_NUM_THREADS", "5")
    assert n_threads(None) == 5
    assert n_threads(-1) == cores


@pytest.mark.parametrize("n_jobs", [0, -2, 1.5, "two", True])
def test_invalid_numbers_of_threads(n_jobs):
    X = rk.datasets.uniform(600, 5, rng=0)
    for call in (rk.Kendall().plan(X).diagonal, rk.Hamming().plan(X).gram):
        with pytest.raises(ValueError, match="n_jobs"):
            call(n_jobs=n_jobs)


# ---------------------------------------------------------------------- warnings


def test_warnings_point_at_the_caller():
    module = textwrap.dedent("""
        from rankernel.errors import warn

        def work():
            inner()

        def inner():
            warn("careful", UserWarning)
    """)
    space = {"__name__": "rankernel.made_up"}
    exec(compile(module, "made_up.py", "exec"), space)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        space["work"]()
        warn("here", UserWarning)
    assert [one.filename for one in caught] == [__file__, __file__]


def test_warnings_about_draws_point_at_the_caller():
    density = LogDensity(lambda ranks: ranks @ [20.0, 8.0, 3.0, 0.0])
    with pytest.warns(rk.SamplingWarning) as caught:
        rk.Mallows(0.5).gram(rk.Rankings([(0, 0, 0, 0)]), method=rk.MonteCarlo(6, "iid", 0, density))
    assert caught[0].filename == __file__

"""Worker threads that stop at an interrupt.

Python handles signals in the main thread, between two bytecode instructions. A compiled loop in the main thread would
delay Ctrl-C until the loop ends, so compiled loops run in worker threads (they release the global interpreter lock)
while the main thread waits. After an interrupt, workers stop before their next piece of work.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextvars import ContextVar, copy_context
from functools import partial
from numbers import Integral
from threading import Event, Lock, Thread, current_thread, main_thread
from typing import Any, TypeVar

from rankernel.errors import ArgumentValueError

Value = TypeVar("Value")

POLL = 0.5  # seconds between two checks for signals where waiting cannot be interrupted (Windows)
GRACE = 1.5  # seconds to wait for the current pieces of work after an interrupt


class StopFlag:
    """Tells worker threads to stop; one that was created in a worker thread is also set by that thread's own flag."""

    def __init__(self) -> None:
        self.event, self.parent = Event(), _STOP.get()

    def is_set(self) -> bool:
        """Whether the workers should stop."""
        return self.event.is_set() or (self.parent is not None and self.parent.is_set())


_STOP: ContextVar[StopFlag | None] = ContextVar("_STOP", default=None)


class InterruptedWorkerError(Exception):
    """Raised in a worker thread whose caller was interrupted."""


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for an ``n_jobs`` argument.

    None is the environment variable ``RANKERNEL_NUM_THREADS`` if it is set, else one thread for each available core;
    -1 is one thread for each available core, as in scikit-learn.

    Examples
    --------
    >>> n_threads(0)
    Traceback (most recent call last):
    rankernel.errors.ArgumentValueError: n_jobs=0 is not possible; it must be an integer >= 1, -1 (all cores), or None
    """
    if n_jobs is None:
        variable = os.environ.get("RANKERNEL_NUM_THREADS", "")
        n_jobs = int(variable) if variable.isdigit() and int(variable) else -1
    given: Any = n_jobs
    if isinstance(given, bool) or not isinstance(given, Integral) or (given < 1 and given != -1):
        raise ArgumentValueError("n_jobs", n_jobs, "an integer >= 1, -1 (all cores), or None")
    if n_jobs == -1:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(n_jobs)


class Worker(Thread):
    """A daemon thread that calls a function in a copy of the caller's context, and keeps its result or exception."""

    def __init__(self, function: Callable[[], Any], stop: StopFlag) -> None:
        context = copy_context()
        context.run(_STOP.set, stop)
        super().__init__(target=context.run, args=(self._call, function), daemon=True)
        self.value: Any = None
        self.error: BaseException | None = None
        self.finished = Event()  # an interrupt while a thread is joined may mark it as ended
        self.start()

    def _call(self, function: Callable[[], Any]) -> None:
        try:
            self.value = function()
        except BaseException as error:
            self.error = error
        finally:
            self.finished.set()

    def wait(self) -> None:
        """Wait for the function, handling signals meanwhile."""
        while not self.finished.wait(POLL):
            pass


def run_interruptibly(function: Callable[..., Value], *arguments: Any) -> Value:
    """Return ``function(*arguments)``, computed in a worker thread so that signals are handled meanwhile.

    Examples
    --------
    >>> run_interruptibly(max, 3, 5)
    5
    """
    if current_thread() is not main_thread():
        return function(*arguments)
    stop = StopFlag()
    worker = Worker(lambda: function(*arguments), stop)
    wait_for([worker], stop)
    value: Value = worker.value
    return value


def run_in_threads(function: Callable[[Any], object], pieces: Iterable[Any], n_jobs: int | None = None) -> None:
    """Call a function for each piece of work, on several threads but not more than there are pieces.

    Pieces are taken one at a time from the iterable, so that a long list is never built. After an error or an
    interrupt no further piece is started.

    Examples
    --------
    >>> squares = {}
    >>> run_in_threads(lambda n: squares.update({n: n * n}), range(3))
    >>> sorted(squares.items())
    [(0, 0), (1, 1), (2, 4)]
    """
    lock, stop, remaining = Lock(), StopFlag(), iter(pieces)

    def next_piece() -> Any:
        with lock:
            return next(remaining, remaining)  # the iterator itself if it is exhausted

    def work(piece: Any) -> None:
        while piece is not remaining and not stop.is_set():
            try:
                function(piece)
            except BaseException:
                stop.event.set()
                raise
            piece = next_piece()

    in_main = current_thread() is main_thread()
    workers: list[Worker] = []
    n_workers = n_threads(n_jobs) - (not in_main)
    try:
        while len(workers) < n_workers and (first := next_piece()) is not remaining:
            workers.append(Worker(partial(work, first), stop))
        if not in_main:
            work(next_piece())
    except BaseException:
        stop.event.set()
        raise
    finally:
        wait_for(workers, stop)
    check_interrupt()  # pieces may be missing


def wait_for(workers: list[Worker], stop: StopFlag) -> None:
    """Wait for workers and raise their first error; after an interrupt, stop them."""
    try:
        for worker in workers:
            worker.wait()
    except BaseException:
        stop.event.set()
        deadline = time.monotonic() + GRACE
        for worker in workers:
            worker.finished.wait(max(deadline - time.monotonic(), 0.0))
        raise
    errors = [worker.error for worker in workers if worker.error is not None]
    if errors:
        raise next((error for error in errors if not isinstance(error, InterruptedWorkerError)), errors[0])


def check_interrupt() -> None:
    """Raise an exception in a worker thread whose caller was interrupted; long Python loops call this now and then."""
    stop = _STOP.get()
    if stop is not None and stop.is_set():
        raise InterruptedWorkerError("the calling thread was interrupted")

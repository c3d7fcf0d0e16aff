"""Worker threads that stop at an interrupt.

Python handles signals in the main thread, between two bytecode instructions. A compiled loop in the main thread would
delay Ctrl-C until the loop ends, so compiled loops run in worker threads (they release the global interpreter lock)
while the main thread waits. After an interrupt, workers stop before their next piece of work.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from numbers import Integral
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event, Lock, Thread, current_thread, main_thread
from typing import Any, TypeVar

import numpy as np
import psutil
from numpy.typing import DTypeLike

from rankernel.errors import Argument, ArgumentTypeError, ArgumentValueError, CostWarning, InsufficientMemoryError, warn

Value = TypeVar("Value")

MAX_THREADS = 64
POLL = 0.5  # seconds between two checks for signals where waiting cannot be interrupted (Windows)
GRACE = 1.5  # seconds to wait for the current pieces of work after an interrupt
ANNOUNCED_SECONDS, ANNOUNCED_BYTES = 10.0, 2 * 10**9
ALWAYS_FITS = 2**24  # bytes; asking for the free memory would take longer than computing so small a matrix
CGROUP = Path("/sys/fs/cgroup")  # control group of this process, as containers see it
#: The one list of how many matrices of the distinct rankings each task holds at once (strips of a matrix as fractions).
MATRICES_HELD = {
    "a map": 2.1,
    "k-medoids": 1.2,
    "a dendrogram": 2,
    "a test of groups": 1.4,
    "an independence test of labels": 2.2,
    "an independence test": 4,
    "a test of a trend": 2.2,
    "a test of pairs": 2.3,
    "a search for changes": 2.2,
    "a search for outliers": 2,
    "a test of fit": 2.1,
    "a label ranking": 3.1,
}
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
DISK_FULL_TEXT = "no space left on this disk"


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
    -1 is one thread for each available core, as in scikit-learn. Larger numbers are limited to 64, or to the cores.
    """
    if n_jobs is None:
        variable = os.environ.get("RANKERNEL_NUM_THREADS", "")
        n_jobs = int(variable) if variable.isdigit() and int(variable) else -1
    given: Any = n_jobs
    if isinstance(given, bool) or not isinstance(given, Integral) or (given < 1 and given != -1):
        raise ArgumentValueError("n_jobs", n_jobs, "an integer >= 1, -1 (all cores), or None")
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return n_cores if n_jobs == -1 else min(int(n_jobs), max(MAX_THREADS, n_cores))


class Worker(Thread):
    """A daemon thread that calls a function in a copy of the caller's context, and keeps its exception."""

    def __init__(self, function: Callable[[], object], stop: StopFlag) -> None:
        context = copy_context()
        context.run(_STOP.set, stop)
        super().__init__(target=context.run, args=(self._call, function), daemon=True)
        self.error: BaseException | None = None
        self.finished = Event()  # an interrupt while a thread is joined may mark it as ended
        self.start()

    def _call(self, function: Callable[[], object]) -> None:
        try:
            function()
        except BaseException as error:
            self.error = error
        finally:
            self.finished.set()

    def wait(self) -> None:
        """Wait for the function, handling signals meanwhile."""
        while not self.finished.wait(POLL):
            pass


def run_interruptibly(function: Callable[..., Value], *arguments: Any) -> Value:
    """Return ``function(*arguments)``, computed in a worker thread so that signals are handled meanwhile."""
    if current_thread() is not main_thread():
        return function(*arguments)
    values: list[Value] = []
    run_in_threads(lambda _: values.append(function(*arguments)), [None], 1)
    return values[0]


def run_in_threads(function: Callable[[Any], object], pieces: Iterable[Any], n_jobs: int | None = None) -> None:
    """Call a function for each piece of work, on several threads but not more than there are pieces.

    Pieces are taken one at a time from the iterable, so that a long list is never built. After an error or an
    interrupt no further piece is started; after an interrupt, the current pieces have 1.5 s to end.
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
    check_interrupt()  # pieces may be missing


def check_interrupt() -> None:
    """Raise an exception in a worker thread whose caller was interrupted; long Python loops call this now and then."""
    stop = _STOP.get()
    if stop is not None and stop.is_set():
        raise InterruptedWorkerError("the calling thread was interrupted")


# ---------------------------------------------------------------------- memory


def available_memory(cgroup: Path = CGROUP) -> int:
    """Return the number of bytes that can still be allocated, within the limit of a control group if it has one."""
    free = int(psutil.virtual_memory().available)
    limit = cgroup_memory(cgroup)
    return free if limit is None else min(free, limit)


def cgroup_memory(folder: Path) -> int | None:
    """Return the bytes left below the memory limit of a control group (version 2); None without a limit.

    Cached file pages that can be dropped count as free.
    """
    try:
        limit, used = ((folder / name).read_text().strip() for name in ("memory.max", "memory.current"))
        cached = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):  # no control groups here, or the root group
        return None
    return None if limit == "max" else max(int(limit) - int(used) + int(cached.get("inactive_file", 0)), 0)


def check_bytes(needed: int, what: str, *advice: object) -> None:
    """Raise a MemoryError if something takes more bytes than are free; advice may refer to arguments."""
    if needed <= ALWAYS_FITS:
        return
    free = available_memory()
    if needed > free:
        problem = f"{what} takes {size_text(needed)}; {size_text(free)} are free"
        raise InsufficientMemoryError(problem, *((": ", *advice) if advice else ()))


def check_memory(shape: tuple[int, int], dtype: DTypeLike, n_matrices: float = 1, task: str = "") -> None:
    """Raise a MemoryError if Gram matrices, of which a task holds several at once, do not fit into the free memory."""
    kind, (n_rows, n_columns) = np.dtype(dtype), shape
    matrix = f"{n_rows:,} x {n_columns:,} {kind}"
    advice: list[object]
    if task:
        what = f"{task} of {n_rows:,} rankings holds {n_matrices:g} matrices of {matrix} at once, which"
        advice = ["use a sample of the rankings, the distinct rankings with their counts, or Nyström features"]
    else:
        what = f"{n_matrices:g} Gram matrices of {matrix}" if n_matrices > 1 else f"the Gram matrix of {matrix}"
        smaller = [Argument("dtype", "float32"), ", "] if kind != np.float32 and n_matrices <= 1 else []
        advice = ["use ", *smaller, "a matrix on disk (Plan.store, rankernel gram -o K.zarr), or Nyström features"]
    check_bytes(int(kind.itemsize * n_matrices * n_rows * n_columns), what, *advice)


def check_float(name: str, dtype: DTypeLike) -> None:
    """Raise a TypeError unless a dtype is float64 or float32."""
    try:
        kind = None if dtype is None else np.dtype(dtype)
    except (TypeError, ValueError):
        kind = None
    if kind not in (np.float64, np.float32):
        raise ArgumentTypeError(name, dtype, "float64 or float32")


def output_matrix(out: Any, shape: tuple[int, int], dtype: DTypeLike) -> np.ndarray[Any, Any]:
    """Return the matrix to fill: a new one if it fits into memory, or the given one if it can be filled."""
    if out is None:
        check_float("dtype", dtype)
        check_memory(shape, dtype)
        return np.empty(shape, dtype=dtype)
    if not isinstance(out, np.ndarray):
        raise ArgumentTypeError("out", out, "an array or a memory map; Plan.store and Plan.blocks serve other storage")
    if out.shape != shape:
        raise ArgumentValueError("out", out, f"an array of shape {shape}", problem=f"has shape {out.shape}")
    check_float("out.dtype", out.dtype)
    if not out.flags.writeable:
        raise ArgumentValueError("out", out, "an array, or a memory map of mode 'r+' or 'w+'", problem="is read-only")
    return out


def announce_cost(what: str, seconds: float, n_bytes: int = 0) -> None:
    """Warn before a computation that takes more than ten seconds or 2 GB."""
    if seconds > ANNOUNCED_SECONDS or n_bytes > ANNOUNCED_BYTES:
        memory = f" and {size_text(n_bytes)} of memory" if n_bytes > ANNOUNCED_BYTES else ""
        warn(f"{what} takes approximately {seconds:.2g} s{memory}", CostWarning)


def check_task(task: str, n_rows: int) -> None:
    """Raise a MemoryError if the matrices that a task holds do not fit, before the first one is computed."""
    check_memory((n_rows, n_rows), np.float64, MATRICES_HELD[task], task)


def check_voters(n_voters: int, n_bytes: int, task: str) -> None:
    """Raise a MemoryError if a task that takes ``n_bytes`` for each voter does not fit."""
    check_bytes(n_voters * n_bytes, f"{task} of {n_voters:,} voters", "use a random sample of the voters")


def slices(length: int, step: int) -> Iterator[slice]:
    """Return consecutive slices of a length, of ``step`` rows each but of at least one."""
    step = max(step, 1)
    return (slice(start, min(start + step, length)) for start in range(0, length, step))


def size_text(n_bytes: int) -> str:
    """Return a number of bytes with a binary unit."""
    size, unit = float(n_bytes), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.1f} {unit}" if size < 10 and unit != "bytes" else f"{size:.0f} {unit}"


# ---------------------------------------------------------------------- files and disk space


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the name of a temporary file, which replaces ``path`` if the block succeeds and is removed otherwise.

    When the block has ended without an error, the file and its name are on disk.
    """
    target = Path(path).resolve()  # the target of a link, so that the link is not replaced
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp{target.suffix}")  # some writers look at the suffix
    try:
        with explain_full_disk(f"{path} was not written"):
            yield temporary
            sync(temporary)
            if target.exists():
                shutil.copymode(target, temporary)
            temporary.replace(target)
            sync(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def explain_full_disk(consequence: str) -> Iterator[None]:
    """Add a consequence to the message of an error that means a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_FULL or str(error.strerror).startswith(DISK_FULL_TEXT):
            raise
        raise OSError(error.errno, f"{DISK_FULL_TEXT}: {consequence}") from None


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise an OSError if a file cannot be written: missing folder, no permission, full or read-only disk."""
    target = Path(path).resolve()
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "is not writable", str(target))
    with TemporaryFile(dir=target.parent) as file:  # only writing detects a full disk
        file.write(bytes(2**16))
        file.flush()


def check_disk_space(path: Path, n_bytes: int) -> None:
    """Raise an OSError if the disk of a path has fewer free bytes."""
    free = shutil.disk_usage(path.resolve().parent).free
    if n_bytes > free:
        takes = f"{path} takes at least {size_text(n_bytes)}, and {size_text(free)} are free"
        raise OSError(errno.ENOSPC, f"{DISK_FULL_TEXT}: {takes}; use another disk")


def sync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on disk."""
    with suppress(PermissionError):  # some systems do not open folders
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

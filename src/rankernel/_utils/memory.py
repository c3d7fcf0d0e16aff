"""Memory checks: a matrix that does not fit is refused before it is allocated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import psutil
from numpy.typing import DTypeLike

from rankernel.errors import Argument, InsufficientMemoryError

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
    "a test of a trend": 4,
    "a test of pairs": 2.3,
    "a search for changes": 2,
    "a search for outliers": 2,
    "a test of fit": 2.1,
    "a label ranking": 3.1,
}


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
    """Raise a MemoryError if Gram matrices do not fit into the free memory.

    Parameters
    ----------
    shape : pair of int
        Shape of each matrix.
    dtype : dtype
        Type of the entries.
    n_matrices : float
        Number of matrices held at once.
    task : str, optional
        The computation that holds the matrices, for the message.

    Examples
    --------
    >>> check_memory((1000, 1000), np.float64)
    """
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


def check_task(task: str, n_rows: int) -> None:
    """Raise a MemoryError if the matrices that a task holds do not fit, before the first one is computed."""
    check_memory((n_rows, n_rows), np.float64, MATRICES_HELD[task], task)


def check_voters(n_voters: int, n_bytes: int, task: str) -> None:
    """Raise a MemoryError if a task that takes ``n_bytes`` for each voter does not fit."""
    check_bytes(n_voters * n_bytes, f"{task} of {n_voters:,} voters", "use a random sample of the voters")


def size_text(n_bytes: int) -> str:
    """Return a number of bytes with a binary unit.

    Examples
    --------
    >>> size_text(200_000**2 * 8), size_text(1536), size_text(10)
    ('298 GiB', '1.5 KiB', '10 bytes')
    """
    size, unit = float(n_bytes), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.1f} {unit}" if size < 10 and unit != "bytes" else f"{size:.0f} {unit}"

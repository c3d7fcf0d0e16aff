"""Memory: a matrix that cannot fit is refused before it is allocated.

How much is free is read from the files of Linux; where there are none, nothing is known and nothing is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

ALWAYS_FITS = 2**24  # bytes; looking how much is free would take longer than to compute so small a matrix
CGROUP_FILES = {  # where a control group says how much it may use, does use, and could give back
    "v2": ("memory.max", "memory.current", "inactive_file"),
    "v1": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


HELD = {  # matrices of different rankings that a task holds at once, parts of the last one in strips
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


class GramMemoryError(MemoryError):
    """A Gram matrix does not fit into memory; nothing was allocated."""


# ---------------------------------------------------------------------- how much there is


def available_memory(root: Path = Path("/")) -> int | None:
    """Return how many bytes this process can still use: of the machine and of its control groups; None if unknown."""
    known = [free for free in (machine_memory(root), *cgroup_memory(root)) if free is not None]
    return min(known, default=None)


def machine_memory(root: Path) -> int | None:
    """Return what the machine has left without swapping."""
    fields = named_numbers(root / "proc/meminfo")
    return 1024 * fields["MemAvailable:"] if "MemAvailable:" in fields else None


def cgroup_memory(root: Path) -> Iterator[int]:
    """Return what each control group with a limit has left, from the one of this process up to the root."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        mount, version = (root / "sys/fs/cgroup/memory", "v1") if controllers else (root / "sys/fs/cgroup", "v2")
        group = mount / path.lstrip("/")
        for folder in (group, *group.parents):
            free = group_memory(folder, version)
            if free is not None:
                yield free
            if folder == mount:
                break


def group_memory(folder: Path, version: str) -> int | None:
    """Return what one control group has left; files in its cache count as free. None if it has no limit."""
    limit_file, usage_file, cache = CGROUP_FILES[version]
    try:
        limit, usage = (folder / limit_file).read_text().strip(), int((folder / usage_file).read_text())
    except OSError:
        return None
    if limit == "max":
        return None
    return max(int(limit) - usage + named_numbers(folder / "memory.stat").get(cache, 0), 0)


def named_numbers(path: Path) -> dict[str, int]:
    """Return the numbers of a file with a name and a number on each line; nothing if there is no such file."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    return {words[0]: int(words[1]) for words in map(str.split, lines) if len(words) > 1}


# ---------------------------------------------------------------------- whether it is enough


def check_memory(shape: tuple[int, int], dtype: DTypeLike, n_matrices: float = 1, task: str = "") -> None:
    """Refuse Gram matrices that do not fit into the memory that is free, with what to do instead.

    A task that needs several at once, not all of them whole, says so before the first one is made.

    Examples
    --------
    >>> check_memory((1000, 1000), np.float64)
    """
    kind = np.dtype(dtype)
    needed = int(kind.itemsize * n_matrices * shape[0] * shape[1])
    if needed <= ALWAYS_FITS:
        return
    free = available_memory()
    if free is None or needed <= free:
        return
    if task:
        raise GramMemoryError(
            f"{task} of {shape[0]:,} rankings holds {n_matrices:g} matrices of {shape[0]:,} x {shape[1]:,} {kind} at "
            f"once, {size_text(needed)}; {size_text(free)} are free: take some of the rankings, or those that differ "
            "with their counts (.unique()), or features of them (NystromFeatures)"
        )
    several = f"{n_matrices:g} Gram matrices" if n_matrices > 1 else "the Gram matrix"
    advice = ["" if kind == np.float32 or n_matrices > 1 else "dtype=float32, ", "out= a memmap or a zarr array, "]
    raise GramMemoryError(
        f"{several} of {shape[0]:,} x {shape[1]:,} {kind} would take {size_text(needed)}; {size_text(free)} are free: "
        f"use {''.join(advice)}kernel.plan(X).store(path) or `rankernel gram -o K.zarr`, or NystromFeatures"
    )


def check_task(task: str, n_rows: int) -> None:
    """Refuse a task whose matrices of so many different rankings do not fit, before the first one is made."""
    check_memory((n_rows, n_rows), np.float64, HELD[task], task)


def check_voters(n_voters: int, n_bytes: int, task: str) -> None:
    """Refuse a task that needs so many bytes for each voter, where these do not fit."""
    check_bytes(
        n_voters * n_bytes, f"{task} of {n_voters:,} voters", "give fewer voters, such as a random part of them"
    )


def check_bytes(needed: int, what: str, advice: str = "") -> None:
    """Refuse what takes more bytes than are free."""
    if needed <= ALWAYS_FITS:
        return
    free = available_memory()
    if free is not None and needed > free:
        problem = f"{what} takes {size_text(needed)}; {size_text(free)} are free"
        raise GramMemoryError(f"{problem}: {advice}" if advice else problem)


def size_text(n_bytes: int) -> str:
    """Return a number of bytes as people read it.

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

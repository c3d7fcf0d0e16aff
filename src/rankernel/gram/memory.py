"""Memory: a matrix that cannot fit is refused before it is allocated, and one that lives elsewhere is filled in blocks.

How much is free is read from the files of Linux; where there are none, nothing is known and nothing is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankernel.gram.blocks import fill, stretches, tiles

__all__ = [
    "GramMemoryError",
    "available_memory",
    "check_memory",
    "computed_block",
    "fill_store",
    "spread_into",
    "strips",
]

FloatArray = NDArray[np.float64]
Compute = Callable[[tuple[slice, slice]], list[FloatArray]]

BLOCK = 2048  # rows and columns of a matrix outside of memory that are held at once: 32 MiB
STRIP = 1024
ALWAYS_FITS = 2**24  # bytes; looking how much is free would take longer than to compute so small a matrix
CGROUP_FILES = {  # where a control group says how much it may use, does use, and could give back
    "v2": ("memory.max", "memory.current", "inactive_file"),
    "v1": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


class GramMemoryError(MemoryError):
    """A Gram matrix does not fit into memory; nothing was allocated."""


# ---------------------------------------------------------------------- how much there is


def available_memory(root: Path = Path("/")) -> int | None:
    """Return how many bytes this process can still use: of the machine and of its control groups; None if unknown.

    Parameters
    ----------
    root : Path
        Where ``proc`` and ``sys`` are found.
    """
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


def check_memory(shape: tuple[int, int], dtype: DTypeLike, entries: int | None = None, n_matrices: int = 1) -> None:
    """Refuse a Gram matrix that does not fit into the memory that is free, with what to do instead.

    Parameters
    ----------
    shape : pair of int
        The shape of the matrix.
    dtype : dtype
        Its type.
    entries : int, optional
        How many numbers are to be held in all, where it is not these matrices alone.
    n_matrices : int
        How many matrices of this kind there are.

    Examples
    --------
    >>> check_memory((1000, 1000), np.float64)
    """
    kind = np.dtype(dtype)
    needed = kind.itemsize * (n_matrices * shape[0] * shape[1] if entries is None else entries)
    if needed <= ALWAYS_FITS:
        return
    free = available_memory()
    if free is None or needed <= free:
        return
    several = f"{n_matrices} Gram matrices" if n_matrices > 1 else "the Gram matrix"
    advice = ["" if kind == np.float32 or n_matrices > 1 else "dtype=float32, ", "out= a memmap or a zarr array, "]
    raise GramMemoryError(
        f"{several} of {shape[0]:,} x {shape[1]:,} {kind} would take {size_text(needed)}; {size_text(free)} are free: "
        f"use {''.join(advice)}rankernel.gram.store.store_gram or `rankernel gram -o K.zarr`, or NystromFeatures"
    )


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


# ---------------------------------------------------------------------- matrices elsewhere


def computed_block(
    block: tuple[slice, slice], compute: Compute, side: int, symmetric: bool, threads: int | None = None
) -> FloatArray:
    """Return one block of a matrix from the tiles inside it.

    Where the block starts at a multiple of ``side`` its tiles are those of the whole matrix, so that its values are
    the same to the bit: matrix products round differently in tiles of another shape.
    """
    rows, columns = block
    out = np.empty((rows.stop - rows.start, columns.stop - columns.start))

    def inside(tile: tuple[slice, slice]) -> list[FloatArray]:
        return compute((shifted(tile[0], rows.start), shifted(tile[1], columns.start)))

    fill([out], inside, side, symmetric and rows == columns, threads)
    return out


def shifted(part: slice, start: int) -> slice:
    """Return a slice that is moved on."""
    return slice(part.start + start, part.stop + start)


def fill_store(out: Any, compute: Compute, side: int, symmetric: bool, threads: int | None = None) -> None:
    """Fill a matrix that is no array in memory (zarr, h5py), from one thread, as few of its chunks apart as possible.

    Two threads that write into one chunk of such a matrix would overwrite each other's work.
    """
    n_rows, n_columns = out.shape
    for rows, columns in tiles(n_rows, n_columns, block_side(side, getattr(out, "chunks", None)), symmetric):
        value = computed_block((rows, columns), compute, side, symmetric, threads)
        out[rows, columns] = value.astype(out.dtype)
        if symmetric and rows != columns:
            out[columns, rows] = np.ascontiguousarray(value.T).astype(out.dtype)


def block_side(side: int, chunks: Any = None) -> int:
    """Return the side of blocks that hold whole tiles and, if they can, whole chunks."""
    wanted = int(max(chunks)) if chunks else BLOCK
    return side * max(-(-wanted // side), 1)


def spread_into(out: Any, matrix: NDArray[Any], rows: Any, columns: Any) -> None:
    """Fill ``out`` with ``matrix[rows][:, columns]``, a strip of rows at a time; None: all of them as they are."""
    for strip in strips(out):
        part = matrix[strip if rows is None else rows[strip]]
        out[strip] = part if columns is None else part[:, columns]


def strips(matrix: Any) -> Iterator[slice]:
    """Return a matrix as strips of rows, of whole chunks where it has any."""
    chunks = getattr(matrix, "chunks", None)
    return stretches(matrix.shape[0], int(chunks[0]) if chunks else STRIP)

"""Gram matrices larger than memory, stored as zarr arrays.

While a matrix is incomplete, its chunks stand in a folder beside the target (``K.zarr.partial``). Every chunk has a
CRC-32C checksum (zarr's codec), and a chunk that is there and passes its checksum is done: a killed process loses the
chunks that it was writing, and nothing else. A lock file (``K.zarr.lock``), created exclusively, admits one process at
a time. The complete matrix is renamed to the target, so that the target is complete whenever it exists.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import DTypeLike, NDArray

from rankernel._utils.checks import check_flag, check_path
from rankernel._utils.resources import (
    check_bytes,
    check_disk_space,
    check_float,
    explain_full_disk,
    slices,
    sync,
    whole_file,
)
from rankernel.distances import Distance
from rankernel.errors import Argument, ArgumentTypeError, ArgumentValueError, OutputExistsError, missing_extra, warn
from rankernel.gram.evaluator import Part, Slices, block_slices
from rankernel.gram.plan import Plan
from rankernel.gram.rows import PartialOrders

Header = dict[str, str]
Progress = Callable[[int, int], object]

ATTRIBUTE = "rankernel"  # of a zarr array: what it was computed from
CLOCK_TOLERANCE = 2.0  # seconds by which two readings of the start of a process may differ
EMPTY_LOCK_SECONDS = 1.0  # age of a lock without content at which its process is taken to be killed


def store_gram(
    plan: Plan,
    path: str | os.PathLike[str],
    dtype: DTypeLike = np.float64,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    side: int | None = None,
    n_jobs: int | None = None,
) -> Any:
    """Compute the Gram matrix of a plan to disk: see :meth:`Plan.store`."""
    check_float("dtype", dtype)
    check_flag("resume", resume)
    check_flag("overwrite", overwrite)
    if progress is not None and not callable(progress):
        raise ArgumentTypeError("progress", progress, "a function, or None")
    target = Target(path)
    header = fingerprint(plan, np.dtype(dtype), plan._side(side))
    with locked(target.lock):
        if target.is_complete(header, resume, overwrite):
            states = chunk_states(open_zarr(target.path), target.path, symmetric=False)
            n_wrong = sum(state != "done" for _, state in states)
            if n_wrong:
                raise OutputExistsError(
                    f"{n_wrong} of {len(states)} chunks of {target.path} are missing or damaged; ",
                    Argument("overwrite", True),
                    " computes it again",
                )
        else:
            with explain_full_disk("finished chunks remain and can be resumed"):
                write_chunks(plan, target, header, progress, n_jobs)
                target.finish()
        return target.open()


# ---------------------------------------------------------------------- files


class Target:
    """The files of a matrix: the target, and a folder beside it for chunks of the incomplete matrix."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        given = check_path("path", path)
        self.path = given.resolve() if given.is_symlink() else given  # so that a link is not replaced
        if self.path.suffix.lower() not in (".npy", ".zarr"):
            raise ArgumentValueError("path", self.path.name, "a name that ends in .npy or .zarr")
        self.is_npy = self.path.suffix.lower() == ".npy"
        if self.is_npy and self.path.is_dir():
            raise IsADirectoryError(errno.EISDIR, f"{self.path} is a folder; name a file", str(self.path))
        import_zarr()
        self.lock, self.work = (self.path.with_name(self.path.name + ending) for ending in (".lock", ".partial"))
        self.gram, self.distinct, self.replaced = (
            self.work / name for name in ("gram.zarr", "distinct.zarr", "replaced")
        )
        ours = {self.gram.name, self.distinct.name, self.replaced.name}
        if self.work.exists() and not (self.work.is_dir() and set(os.listdir(self.work)) <= ours):
            raise OutputExistsError(
                f"{self.work} exists and is not an unfinished matrix; move it, or choose another path"
            )

    def is_complete(self, header: Header, resume: bool, overwrite: bool) -> bool:
        """Return whether the target is the complete matrix; refuse another matrix, and prepare the working folder."""
        unfinished = self.gram.exists()
        found = None if self.is_npy and not unfinished else read_header(self.gram if unfinished else self.path)
        if resume and found == header:
            return not unfinished
        if overwrite:
            self.clear()
        elif resume and found is not None:
            raise OutputExistsError(
                f"{self.path} was computed with {differences(found, header)}; ",
                Argument("overwrite", True),
                " starts again",
            )
        elif unfinished:
            resumable = (Argument("resume", True), " continues, ") if found is not None else ()
            problem = f"{self.path} is unfinished{'' if resumable else ' and damaged'}; "
            raise OutputExistsError(problem, *resumable, Argument("overwrite", True), " starts again")
        elif self.path.exists():
            raise OutputExistsError(f"{self.path} exists; ", Argument("overwrite", True), " replaces it")
        return False

    def clear(self) -> None:
        """Remove the chunks of an incomplete matrix."""
        if self.replaced.exists() and not self.path.exists():  # a kill came before the new matrix was in place
            self.replaced.rename(self.path)
        shutil.rmtree(self.work, ignore_errors=True)

    def finish(self) -> None:
        """Put the complete matrix in place and remove the working folder."""
        if self.is_npy:
            write_npy(self.path, open_zarr(self.gram))
        else:
            for file in self.gram.rglob("*"):
                sync(file)
            if self.path.exists():  # a folder cannot replace another in one step
                shutil.rmtree(self.replaced, ignore_errors=True)
                self.path.rename(self.replaced)
            try:
                self.gram.rename(self.path)
            except OSError:
                if self.replaced.exists():
                    self.replaced.rename(self.path)
                raise
            sync(self.path.parent)
        self.clear()

    def open(self) -> Any:
        """Return the complete matrix, opened for reading."""
        return np.load(self.path, mmap_mode="r") if self.is_npy else open_zarr(self.path)


def write_npy(path: Path, matrix: Any) -> None:
    """Write a chunked matrix as a NumPy file, a strip of rows at a time."""
    with whole_file(path) as temporary, temporary.open("wb") as file:
        described = {"descr": np.lib.format.dtype_to_descr(matrix.dtype), "fortran_order": False, "shape": matrix.shape}
        np.lib.format.write_array_header_1_0(file, described)
        for rows in slices(matrix.shape[0], matrix.chunks[0]):
            file.write(np.ascontiguousarray(matrix[rows]).data)


def import_zarr() -> Any:
    """Return the module zarr, or raise an error that says how to install it."""
    try:
        import zarr
    except ImportError:
        raise missing_extra("zarr", "zarr") from None
    return zarr


def open_zarr(path: Path, mode: str = "r") -> Any:
    """Return a zarr array on disk."""
    return import_zarr().open_array(store=str(path), mode=mode)


# ---------------------------------------------------------------------- lock


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file, created exclusively, until the block ends; raise a BlockingIOError if another process does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    owner = {"host": platform.node(), "pid": os.getpid(), "started": psutil.Process().create_time()}
    if path.exists() and is_stale(path):
        remove_stale(path)
    try:
        with path.open("x") as file:
            file.write(json.dumps(owner))
    except FileExistsError:
        raise BlockingIOError(
            errno.EAGAIN,
            f"another process is writing this matrix; wait for it, or delete {path} if that process has ended",
            str(path),
        ) from None
    try:
        yield
    finally:
        try:
            path.unlink(missing_ok=True)
        except OSError:  # no right to remove it; without content it is stale after a second
            with suppress(OSError):
                path.write_text("")


def is_stale(path: Path) -> bool:
    """Return whether the process that created a lock on this machine has ended."""
    try:
        text, age = path.read_text(), time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return False
    try:
        owner = json.loads(text)
        if owner["host"] != platform.node():
            return False
        started = psutil.Process(owner["pid"]).create_time()
    except psutil.NoSuchProcess:
        return True
    except (ValueError, KeyError, TypeError):  # the process was killed before it wrote its name
        return age > EMPTY_LOCK_SECONDS
    return bool(abs(started - owner["started"]) > CLOCK_TOLERANCE)  # the number was given to another process


def remove_stale(path: Path) -> None:
    """Remove a stale lock; a second exclusive file keeps two processes from removing one after the other."""
    guard = path.with_name(path.name + ".stale")
    try:
        guard.touch(exist_ok=False)
    except FileExistsError:
        return
    try:
        if is_stale(path):
            path.unlink(missing_ok=True)
    finally:
        guard.unlink()


# ---------------------------------------------------------------------- chunks


def write_chunks(plan: Plan, target: Target, header: Header, progress: Progress | None, n_jobs: int | None) -> None:
    """Write all chunks that are not done: of the matrix, and before of the distinct rankings if some are equal."""
    distinct = plan._distinct
    repeated = distinct is not plan and not plan._evaluator.direct
    if target.is_npy:
        check_disk_space(target.path, plan.shape[0] * plan.shape[1] * np.dtype(header["dtype"]).itemsize)

    def compute(block: Slices) -> NDArray[Any]:
        return (distinct if repeated else plan).block(*block, n_jobs=n_jobs)

    sources: list[tuple[Path, tuple[int, int], Callable[[Slices], NDArray[Any]]]] = [(target.gram, plan.shape, compute)]
    if repeated:
        gather = Gather(target.distinct, plan._rows, plan._columns)
        sources = [(target.distinct, distinct.shape, compute), (target.gram, plan.shape, gather)]
    stages = []
    for path, shape, source in sources:
        array = ensure_array(path, shape, header)
        stages.append((array, source, chunk_states(array, path, plan._symmetric)))
        n_damaged = sum(state == "damaged" for _, state in stages[-1][2])
        if n_damaged:
            warn(f"{n_damaged} chunks of {path} fail their checksum and are computed again", UserWarning)
    states = [state for *_, found in stages for _, state in found]
    n_done = states.count("done")
    for array, source, found in stages:
        for rows, columns in (block for block, state in found if state != "done"):
            values = np.ascontiguousarray(source((rows, columns)), dtype=array.dtype)
            array[rows, columns] = values
            if plan._symmetric and rows != columns:
                array[columns, rows] = np.ascontiguousarray(values.T)
            n_done += 1
            if progress is not None:
                progress(n_done, len(states))


def ensure_array(path: Path, shape: tuple[int, int], header: Header) -> Any:
    """Return the zarr array of an unfinished matrix; create it if it is missing or belongs to another matrix."""
    if path.exists() and read_header(path) == header:
        return open_zarr(path, "r+")
    from zarr.codecs import Crc32cCodec, ZstdCodec

    shutil.rmtree(path, ignore_errors=True)
    side = int(header["side"])
    return import_zarr().create_array(
        store=str(path),
        shape=shape,
        dtype=header["dtype"],
        chunks=tuple(min(side, max(length, 1)) for length in shape),
        compressors=[ZstdCodec(), Crc32cCodec()],
        fill_value=np.nan,  # no chunk of a Gram matrix equals it, so that every chunk has a file
        attributes={ATTRIBUTE: header},
        zarr_format=3,
    )


class Gather:
    """Blocks of a matrix with equal rows, read from the matrix of the distinct rankings a strip of rows at a time."""

    def __init__(self, path: Path, rows: Part, columns: Part) -> None:
        self.path, self.rows, self.columns = path, rows, columns
        self.strip: tuple[slice, NDArray[Any]] | None = None

    def __call__(self, block: Slices) -> NDArray[Any]:
        """Return a block."""
        rows, columns = block
        if self.strip is None or self.strip[0] != rows:
            array = open_zarr(self.path)
            index = np.arange(array.shape[0])[self.rows][rows]
            check_bytes(
                2 * len(index) * array.shape[1] * array.dtype.itemsize, "a strip of the matrix", "use a smaller side"
            )
            unique, inverse = np.unique(index, return_inverse=True)
            self.strip = rows, array.oindex[unique, :][inverse.ravel()]
        return np.asarray(self.strip[1][:, np.arange(self.strip[1].shape[1])[self.columns][columns]])


def chunk_states(array: Any, path: Path, symmetric: bool) -> list[tuple[Slices, str]]:
    """Return the chunks of an array, and whether each is "missing", "damaged" or "done".

    If the matrix is symmetric, these are the chunks on and above the diagonal, each together with its transpose.
    """

    def state(rows: slice, columns: slice) -> str:
        numbers = [str(part.start // side) for part, side in zip((rows, columns), array.chunks, strict=True)]
        if not path.joinpath("c", *numbers).exists():
            return "missing"
        try:
            values = array[rows, columns]
        except Exception:  # whatever error a damaged chunk causes in its decoder
            return "damaged"
        return "damaged" if np.isnan(values).any() else "done"

    (n_rows, n_columns), states = array.shape, []
    for rows, columns in block_slices(n_rows, n_columns, int(array.attrs[ATTRIBUTE]["side"]), symmetric):
        both = [state(rows, columns), state(columns, rows) if symmetric and rows != columns else "done"]
        states.append(((rows, columns), min(both, key=["damaged", "missing", "done"].index)))
    return states


# ---------------------------------------------------------------------- fingerprints


def fingerprint(plan: Plan, dtype: np.dtype[Any], side: int) -> Header:
    """Return everything that the bits of a stored matrix depend on."""
    from rankernel import __version__

    return {
        "kernel": exact_text(plan.kernel),
        "method": exact_text(plan.method),
        "dtype": str(dtype),
        "shape": " x ".join(map(str, plan.shape)),
        "rankings": data_digest(plan),
        "side": str(side),
        "version": __version__,
    }


def read_header(path: Path) -> Header | None:
    """Return the attributes that describe a stored matrix; None if there is no readable array."""
    try:
        found = open_zarr(path).attrs.get(ATTRIBUTE)
    except Exception:  # whatever error a damaged file causes in its reader
        return None
    return found if isinstance(found, dict) else None


def differences(found: Header, wanted: Header) -> str:
    """Return in words how two headers differ."""
    names = [name for name in wanted if found.get(name) != wanted[name]]
    return " and ".join(
        "other rankings" if name == "rankings" else f"{name} {found.get(name)} instead of {wanted[name]}"
        for name in names
    )


def exact_text(value: Any) -> str:
    """Return a kernel or a method as text, with all digits; functions by their names."""
    if isinstance(value, Distance):
        return value.name
    if isinstance(value, np.ndarray):
        return f"array({value.dtype}, {value.tolist()})"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(exact_text, value))})"
    if isinstance(value, np.generic):
        return repr(value.item())
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    elif hasattr(value, "__dict__"):
        fields = vars(value)
    else:
        return repr(value)
    return f"{type(value).__name__}({', '.join(f'{name}={exact_text(each)}' for name, each in fields.items())})"


def data_digest(plan: Plan) -> str:
    """Return a digest of the rows and columns of a matrix; item names and counts do not matter."""
    digest = sha256()
    sides = [plan._X] if plan._symmetric else [plan._X, plan._Y]
    arrays: list[NDArray[Any]] = [side.ranks for side in sides]
    arrays += [side.packed for side in sides if isinstance(side, PartialOrders)]
    arrays += [index for index in (plan._rows, plan._columns) if not isinstance(index, slice)]
    for array in arrays:
        digest.update(f"{array.dtype.kind} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()

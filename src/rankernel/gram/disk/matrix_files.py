"""Matrices in files, written block by block: NumPy's own format, and zarr."""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.files import sync
from rankernel.errors import missing_extra
from rankernel.gram.disk.journal import Header, read_header, sealed, unsealed, write_header

ATTRIBUTE = "rankernel"  # where a zarr array keeps what it was computed from

Block = tuple[slice, slice]


class MatrixFile(ABC):
    """A matrix on disk that is being written."""

    array: Any  # the matrix as it can be read
    packed: bool = False  # whether it takes less space than its numbers, nobody knows how much less

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    @abstractmethod
    def created(cls, path: Path, shape: tuple[int, int], dtype: np.dtype[Any], side: int) -> Self:
        """Begin a matrix; space for it is reserved where its size is known."""

    @abstractmethod
    def write(self, block: Block, values: NDArray[Any]) -> None:
        """Write a block."""

    @abstractmethod
    def sync(self, blocks: list[Block]) -> None:
        """Wait until blocks are on disk."""

    @classmethod
    def reopened(cls, path: Path, shape: tuple[int, int], dtype: np.dtype[Any]) -> Self | None:
        """Return a matrix that was begun, to go on with it; None if it is not there or not that matrix."""
        try:
            found = cls(path)
        except Exception:  # whatever a damaged file makes its reader stumble over
            return None
        return found if found.array.shape == shape and found.array.dtype == dtype else None

    @staticmethod
    @abstractmethod
    def opened(path: Path) -> Any:
        """Open a finished matrix for reading."""

    @staticmethod  # noqa: B027
    def check(path: Path) -> None:
        """Refuse a place where something stands that is not ours to replace."""

    @staticmethod
    @abstractmethod
    def header_of(path: Path) -> Header | None:
        """Return what a finished matrix was computed from, if it says so."""

    @staticmethod
    @abstractmethod
    def sign(path: Path, header: Header) -> None:
        """Write down what a matrix is computed from, once it is in its place."""

    @staticmethod  # noqa: B027
    def unsign(path: Path) -> None:
        """Forget what the matrix at a path was computed from, where its own file does not say so."""

    def tidy(self) -> None:  # noqa: B027
        """Remove what interrupted writing has left behind."""


class NpyFile(MatrixFile):
    """A NumPy file; what it was computed from stands in a file beside it (``K.npy.json``).

    It is read as a memory map, but written by plain writes: where a disk is full or fails, these give an error, and a
    memory map would end the process.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.array = self.opened(path)

    @classmethod
    def created(cls, path: Path, shape: tuple[int, int], dtype: np.dtype[Any], *_: object) -> Self:
        """Begin a file of the full size, its space reserved."""
        with path.open("wb") as file:
            np.lib.format.write_array_header_1_0(
                file, {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
            )
            file.flush()
            reserve(file.fileno(), file.tell(), shape[0] * shape[1] * dtype.itemsize)
            os.fsync(file.fileno())
        sync(path.parent)
        return cls(path)

    def write(self, block: Block, values: NDArray[Any]) -> None:
        """Write a block, row by row."""
        rows, columns = block
        width, itemsize = self.array.shape[1], self.array.dtype.itemsize
        ready = np.ascontiguousarray(values, dtype=self.array.dtype)
        with self.path.open("r+b") as file:
            for row, line in zip(range(rows.start, rows.stop), ready, strict=True):
                file.seek(self.array.offset + (row * width + columns.start) * itemsize)
                file.write(line)

    def sync(self, blocks: list[Block]) -> None:
        """Wait until all that was written is on disk."""
        sync(self.path)

    @staticmethod
    def opened(path: Path) -> Any:
        """Open a finished matrix for reading."""
        return np.lib.format.open_memmap(path, mode="r")

    @staticmethod
    def check(path: Path) -> None:
        """Refuse a folder, and a file beside it that says something else."""
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, f"{path} is a folder; name a file", str(path))
        if not is_header(beside(path)):
            raise FileExistsError(
                f"{beside(path)} is in the way: what {path.name} is computed from is written there, and it holds "
                "something else, or is damaged; choose another name, or move the file"
            )

    @staticmethod
    def header_of(path: Path) -> Header | None:
        """Return what the file beside it says."""
        return read_header(beside(path))

    @staticmethod
    def sign(path: Path, header: Header) -> None:
        """Write the file beside it."""
        write_header(beside(path), header)

    @staticmethod
    def unsign(path: Path) -> None:
        """Remove the file beside it."""
        beside(path).unlink(missing_ok=True)
        sync(path.parent)


def beside(path: Path) -> Path:
    """Return the place of the header of a NumPy file."""
    return path.with_name(path.name + ".json")


def is_header(path: Path) -> bool:
    """Say whether a file is the header of a matrix, or not there."""
    try:
        header = read_header(path)
    except ValueError:
        return False
    return header is None or {"kernel", "rankings", "version"} <= header.keys()


def reserve(descriptor: int, start: int, size: int) -> None:
    """Make a file longer by a size, and see that the disk has room for it, on systems that can."""
    if size and hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, start, size)
    else:
        os.truncate(descriptor, start + size)


class ZarrFile(MatrixFile):
    """A zarr array on the local disk; its chunks are the blocks."""

    packed = True

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.array = imported_zarr().open_array(store=str(path), mode="r+")

    @classmethod
    def created(cls, path: Path, shape: tuple[int, int], dtype: np.dtype[Any], side: int) -> Self:
        """Begin an array without chunks, which does not say yet what it is."""
        imported_zarr().create_array(
            store=str(path),
            shape=shape,
            dtype=dtype,
            chunks=tuple(min(side, max(length, 1)) for length in shape),
            zarr_format=3,
        )
        sync(path / "zarr.json")
        sync(path)
        return cls(path)

    def write(self, block: Block, values: NDArray[Any]) -> None:
        """Write a block."""
        self.array[block] = np.ascontiguousarray(values, dtype=self.array.dtype)

    def sync(self, blocks: list[Block]) -> None:
        """Wait until the chunks of blocks are on disk; a chunk of zeros has no file."""
        for block in blocks:
            place = "/".join(str(part.start // chunk) for part, chunk in zip(block, self.array.chunks, strict=True))
            chunk = self.path / "c" / place
            if chunk.exists():
                sync(chunk)
                sync(chunk.parent)

    @staticmethod
    def opened(path: Path) -> Any:
        """Open a finished matrix for reading."""
        return imported_zarr().open_array(store=str(path), mode="r")

    @staticmethod
    def header_of(path: Path) -> Header | None:
        """Return what the array says that it was computed from; nothing where there is no array."""
        try:
            found = ZarrFile.opened(path).attrs.get(ATTRIBUTE)
        except Exception:  # as where a matrix is reopened
            return None
        return None if found is None else unsealed(found, path)

    @staticmethod
    def sign(path: Path, header: Header) -> None:
        """Write it into the attributes of the array."""
        signed = ZarrFile(path)
        signed.array.attrs.put({ATTRIBUTE: sealed(header)})
        signed.tidy()
        sync(path / "zarr.json")
        sync(path)

    def tidy(self) -> None:
        """Remove the drafts of chunks that were being written when a process was killed."""
        for draft in self.path.rglob("*.partial"):
            draft.unlink()


def imported_zarr() -> Any:
    """Return the module zarr, or say how to get it."""
    try:
        import zarr
    except ImportError:
        raise missing_extra("zarr", "zarr") from None
    return zarr


def file_format(path: Path) -> type[NpyFile] | type[ZarrFile]:
    """Return the format that a name asks for."""
    match path.suffix.lower():
        case ".npy":
            return NpyFile
        case ".zarr":
            imported_zarr()
            return ZarrFile
    raise ValueError(f"path={path.name!r} names no kind of matrix; end it in .npy or .zarr")

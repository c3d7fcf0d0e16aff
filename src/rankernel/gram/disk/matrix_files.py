"""Matrices in files, written block by block: NumPy's own format, and zarr."""

from __future__ import annotations

import errno
import shutil
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel.errors import missing_extra
from rankernel.gram.disk.journal import Header, Journal, write_header
from rankernel.memory import size_text
from rankernel.whole_files import sync

ATTRIBUTE = "rankernel"  # where a zarr array keeps what it was computed from

Block = tuple[slice, slice]


class MatrixFile(ABC):
    """A matrix on disk that is being written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    @abstractmethod
    def created(cls, path: Path, shape: tuple[int, int], dtype: np.dtype[Any], side: int, header: Header) -> MatrixFile:
        """Begin a matrix."""

    @abstractmethod
    def write(self, block: Block, values: NDArray[Any]) -> None:
        """Write a block."""

    @abstractmethod
    def sync(self, blocks: list[Block]) -> None:
        """Wait until blocks are on disk."""

    @staticmethod
    @abstractmethod
    def opened(path: Path) -> Any:
        """Open a finished matrix for reading."""

    @staticmethod
    @abstractmethod
    def header_of(path: Path) -> Header | None:
        """Return what a finished matrix was computed from, if it says so."""

    @staticmethod  # noqa: B027
    def sign(path: Path, header: Header) -> None:
        """Write down what a matrix is computed from, where its own file does not say so, just before it is moved in."""

    def tidy(self) -> None:  # noqa: B027
        """Remove what interrupted writing has left behind."""


class NpyFile(MatrixFile):
    """A NumPy file, mapped into memory; what it was computed from stands in a file beside it (``K.npy.json``)."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.array = np.lib.format.open_memmap(path, mode="r+")

    @classmethod
    def created(cls, path: Path, shape: tuple[int, int], dtype: np.dtype[Any], *_: object) -> NpyFile:
        """Begin a file of the full size, having looked whether there is room: a full disk would end the process."""
        needed, free = shape[0] * shape[1] * dtype.itemsize, shutil.disk_usage(path.parent).free
        if needed > free:
            raise OSError(
                errno.ENOSPC,
                f"a matrix of {shape[0]:,} x {shape[1]:,} {dtype} takes {size_text(needed)}, and {size_text(free)} are "
                "free on this disk; use dtype=float32, or another disk",
                str(path),
            )
        np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape).flush()
        sync(path.parent)
        return cls(path)

    def write(self, block: Block, values: NDArray[Any]) -> None:
        """Write a block."""
        self.array[block] = values

    def sync(self, blocks: list[Block]) -> None:
        """Wait until all that was written is on disk."""
        self.array.flush()

    @staticmethod
    def opened(path: Path) -> Any:
        """Open a finished matrix for reading."""
        return np.lib.format.open_memmap(path, mode="r")

    @staticmethod
    def header_of(path: Path) -> Header | None:
        """Return what the file beside it says."""
        return Journal.header_of(beside(path))

    @staticmethod
    def sign(path: Path, header: Header) -> None:
        """Write the file beside it."""
        write_header(beside(path), header)


def beside(path: Path) -> Path:
    """Return the place of the header of a NumPy file."""
    return path.with_name(path.name + ".json")


class ZarrFile(MatrixFile):
    """A zarr array on the local disk; its chunks are the blocks."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.array = imported_zarr().open_array(store=str(path), mode="r+")

    @classmethod
    def created(cls, path: Path, shape: tuple[int, int], dtype: np.dtype[Any], side: int, header: Header) -> ZarrFile:
        """Begin an array without chunks."""
        imported_zarr().create_array(
            store=str(path),
            shape=shape,
            dtype=dtype,
            chunks=tuple(min(side, max(length, 1)) for length in shape),
            attributes={ATTRIBUTE: header},
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
        """Return what the array says that it was computed from."""
        found: Header | None = ZarrFile.opened(path).attrs.get(ATTRIBUTE)
        return found

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
    match path.suffix:
        case ".npy":
            return NpyFile
        case ".zarr":
            imported_zarr()
            return ZarrFile
    raise ValueError(f"{path.name!r} names no kind of matrix; end it in .npy or .zarr")

"""Gram matrices on disk, written block by block: after a kill at any moment the rest is computed, and nothing twice.

While a matrix is unfinished, everything stands in a folder beside it (``K.zarr.partial``): the matrix, and a journal
with the number of each block that is safely on disk. The finished matrix is moved to its place in one step, so that a
matrix which is there is whole.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankernel.arrays import Indices
from rankernel.gram.disk.fingerprints import data_digest, exact_text
from rankernel.gram.disk.journal import Header, Journal
from rankernel.gram.disk.matrix_files import Block, MatrixFile, NpyFile, file_format
from rankernel.gram.estimate import check_float
from rankernel.gram.plan import Plan
from rankernel.gram.tiles import tiles
from rankernel.whole_files import sync

Progress = Callable[[int, int], object]


def store_gram(
    plan: Plan,
    path: str | os.PathLike[str],
    dtype: DTypeLike = np.float64,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    side: int | None = None,
    threads: int | None = None,
) -> Any:
    """Compute a Gram matrix straight to disk, whatever its size, and go on where an interrupted run stopped.

    The matrix is that of :meth:`Plan.gram`, to the bit.

    Parameters
    ----------
    plan : Plan
        The matrix: see :meth:`Kernel.plan`.
    path : path
        Where to: a zarr array if it ends in ``.zarr``, whose attributes say what it was computed from; a NumPy file
        if it ends in ``.npy``, with a small file beside it that says so.
    dtype : dtype
        float64 or float32.
    resume : bool
        Go on with an unfinished matrix, if there is one. It must have been begun with the same rankings, kernel,
        method, dtype, side and version; a matrix that is finished is checked in the same way.
    overwrite : bool
        Replace what is there.
    progress : function of (n_done, n_blocks), optional
        Called whenever a block is safely on disk.
    side : int, optional
        Rows and columns of a block, which is a chunk of the zarr array; rounded up to whole tiles.
    threads : int, optional
        How many tiles to compute at once.

    Returns
    -------
    zarr.Array or numpy.memmap
        The matrix, opened for reading.

    Examples
    --------
    >>> import tempfile
    >>> from rankernel import Kendall
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     K = Kendall().plan([[0, 1], [1, 0]]).store(f"{folder}/K.npy")
    ...     print(np.asarray(K))
    [[ 1. -1.]
     [-1.  1.]]
    """
    home, kind = Home(Path(path)), np.dtype(dtype)
    file_format(home.path)
    check_float("dtype", kind)
    work = Work.of(home, plan, kind, side)
    return home.opened() if home.holds(work.header, resume, overwrite) else work.carry_out(progress, threads)


# ---------------------------------------------------------------------- where


@dataclass(frozen=True)
class Home:
    """The place of a matrix, and the folder beside it where it stands until it is finished."""

    path: Path

    @property
    def work(self) -> Path:
        """The folder of the unfinished matrix."""
        return self.path.with_name(self.path.name + ".partial")

    @property
    def journal(self) -> Path:
        """The journal of the unfinished matrix."""
        return self.work / "journal"

    @property
    def unfinished(self) -> Path:
        """The unfinished matrix."""
        return self.work / f"gram{self.path.suffix}"

    @property
    def distinct(self) -> Path:
        """The matrix of the distinct rankings, where some are equal."""
        return self.work / "distinct.npy"

    def opened(self) -> Any:
        """Return the finished matrix."""
        return file_format(self.path).opened(self.path)

    def header(self) -> Header | None:
        """Return what the unfinished matrix was begun with, or the finished one computed from, if known."""
        begun = Journal.header_of(self.journal)
        return file_format(self.path).header_of(self.path) if begun is None and self.path.exists() else begun

    def holds(self, header: Header, resume: bool, overwrite: bool) -> bool:
        """Say whether the matrix is finished; refuse what is in the way, and clear what is to be replaced."""
        found = self.header()
        if resume and found == header:
            finished = self.path.exists() and not self.journal.exists()
            if finished:
                self.clear()
            return finished
        if overwrite:
            self.clear()
        elif resume and found is not None:
            raise ValueError(f"{self.path} was computed with {differences(found, header)}; overwrite=True starts again")
        elif self.journal.exists():
            raise FileExistsError(f"{self.path} is unfinished; resume=True goes on, overwrite=True starts again")
        elif self.path.exists():
            raise FileExistsError(f"{self.path} is there already; overwrite=True replaces it")
        return False

    def clear(self) -> None:
        """Remove whatever is unfinished, the journal first: without it the rest means nothing."""
        self.journal.unlink(missing_ok=True)
        remove(self.work)

    def move_in(self, header: Header) -> None:
        """Put the finished matrix in its place; one that is to be replaced goes at the last moment."""
        if self.unfinished.exists():
            file_format(self.path).sign(self.path, header)
            remove(self.path)
            os.replace(self.unfinished, self.path)
            sync(self.path.parent)
        self.clear()


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def differences(found: Header, wanted: Header) -> str:
    """Return in words what two headers differ in."""
    names = [name for name in wanted if found.get(name) != wanted[name]]
    return " and ".join(
        "other rankings" if name == "rankings" else f"{name} {found.get(name)} instead of {wanted[name]}"
        for name in names
    )


# ---------------------------------------------------------------------- what


@dataclass(frozen=True)
class Stage:
    """A part of the work: one matrix, where each of its blocks comes from, and which there are."""

    file: MatrixFile
    source: Callable[[Block], NDArray[Any]]
    symmetric: bool
    blocks: list[Block]

    def write(self, block: Block) -> None:
        """Write a block, and its mirror image where there is one; both are on disk in the end."""
        rows, columns = block
        values = self.source(block)
        written = [block]
        self.file.write(block, values)
        if self.symmetric and rows != columns:
            written.append((columns, rows))
            self.file.write((columns, rows), values.T)
        self.file.sync(written)


@dataclass(frozen=True)
class Work:
    """One matrix to be written."""

    home: Home
    plan: Plan
    dtype: np.dtype[Any]
    side: int
    header: Header

    @classmethod
    def of(cls, home: Home, plan: Plan, dtype: np.dtype[Any], side: int | None) -> Work:
        """Describe a matrix; its header says what it depends on, to the bit."""
        from rankernel import __version__

        whole = plan.side(side)
        header = {
            "kernel": exact_text(plan.kernel),
            "method": exact_text(plan.method),
            "dtype": str(dtype),
            "shape": " x ".join(map(str, plan.shape)),
            "rankings": data_digest(plan),
            "side": str(whole),
            "version": __version__,
        }
        return cls(home, plan, dtype, whole, header)

    def carry_out(self, progress: Progress | None, threads: int | None) -> Any:
        """Write what is missing, and return the matrix."""
        with Journal(self.home.journal, self.header) as journal:
            if self.home.unfinished.exists() or not (self.home.path.exists() and journal.done):
                self.write(journal, progress, threads)
        self.home.move_in(self.header)
        return self.home.opened()

    def write(self, journal: Journal, progress: Progress | None, threads: int | None) -> None:
        """Write all blocks that are not in the journal."""
        stages = self.stages(journal, threads)
        work = [(stage, block) for stage in stages for block in stage.blocks]
        for number, (stage, block) in enumerate(work):
            if number not in journal.done:
                stage.write(block)
                journal.add(number)
                if progress is not None:
                    progress(len(journal.done), len(work))
        stages[-1].file.tidy()

    def stages(self, journal: Journal, threads: int | None) -> list[Stage]:
        """Return the stages: the matrix; where rankings are equal, that of the distinct ones first."""
        plan, home, kind = self.plan, self.home, file_format(self.home.path)
        whole = self.file(kind, home.unfinished, plan.shape, journal)

        def computed(block: Block) -> NDArray[Any]:
            return plan.block(*block, threads) if plan.evaluator.direct else plan.distinct.block(*block, threads)

        rows, columns = plan.rows, plan.columns
        if plan.evaluator.direct or (rows is None and columns is None):
            return [self.stage(whole, plan.shape, computed)]
        shape = plan.distinct.shape
        distinct = self.file(NpyFile, home.distinct, shape, journal)
        assert isinstance(distinct, NpyFile)
        array = distinct.array

        def spread(block: Block) -> NDArray[Any]:
            return np.asarray(array[np.ix_(placed(rows, block[0]), placed(columns, block[1]))])

        return [self.stage(distinct, shape, computed), self.stage(whole, plan.shape, spread)]

    def stage(self, file: MatrixFile, shape: tuple[int, int], source: Callable[[Block], NDArray[Any]]) -> Stage:
        """Return the stage that writes one matrix."""
        blocks = list(tiles(*shape, self.side, self.plan.symmetric))
        return Stage(file, source, self.plan.symmetric, blocks)

    def file(self, kind: type[MatrixFile], path: Path, shape: tuple[int, int], journal: Journal) -> MatrixFile:
        """Return the file of a matrix; one that nothing is known to be in is begun anew."""
        if journal.done:
            return kind(path)
        remove(path)
        return kind.created(path, shape, self.dtype, self.side, self.header)


def placed(place: Indices | None, part: slice) -> Indices:
    """Return which distinct rankings stand in a part of the rows."""
    return np.arange(part.start, part.stop) if place is None else place[part]

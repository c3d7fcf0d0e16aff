"""Gram matrices on disk, written block by block: after a kill at any moment the rest is computed, and nothing twice.

While a matrix is unfinished, everything stands in a folder beside it (``K.zarr.partial``), which one process at a time
may use: the matrix, and a journal with the number and the checksum of each block that is safely on disk. The finished
matrix is moved to its place at the end, so that a matrix which is there is whole, and an old one stays until then.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankernel._utils.arrays import Indices
from rankernel._utils.checks import check_flag, check_path, short_repr
from rankernel._utils.files import room_for, sync
from rankernel._utils.memory import size_text
from rankernel.errors import warn
from rankernel.gram.blocks import tiles
from rankernel.gram.disk.claims import check_ours, claimed, empty, remove
from rankernel.gram.disk.exchange import exchanged
from rankernel.gram.disk.fingerprints import data_digest, exact_text
from rankernel.gram.disk.journal import Header, Journal, read_header
from rankernel.gram.disk.matrix_files import Block, MatrixFile, NpyFile, file_format
from rankernel.gram.estimate import check_float
from rankernel.gram.plan import Plan

Progress = Callable[[int, int], object]
BLOCKS = "blocks"  # in the header of a finished matrix: the checksum of each


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
        method, dtype, side and version. Blocks whose checksum is not that of the journal are computed again, with a
        warning. A matrix that is finished is checked in the same way, and refused where it is not as it was written.
    overwrite : bool
        Replace what is there, as soon as the new matrix is finished.
    progress : function of (n_done, n_blocks), optional
        Called whenever a block is safely on disk.
    side : int, optional
        Rows and columns of a block, which is a chunk of the zarr array; rounded up to whole tiles.
    n_jobs : int, optional
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
    check_float("dtype", dtype)
    check_flag("resume", resume)
    check_flag("overwrite", overwrite)
    if progress is not None and not callable(progress):
        raise TypeError(f"progress={short_repr(progress)} is not possible; it must be a function, or None")
    home, kind = Home.at(check_path("path", path)), np.dtype(dtype)
    work = Work.of(home, plan, kind, side)
    if resume and home.is_finished() and matches(home.header(), work.header):
        return work.checked()
    with home.claimed():
        if home.holds(work.header, resume, overwrite):
            return work.checked()
        work.carry_out(progress, n_jobs)
    return home.opened()


# ---------------------------------------------------------------------- where


@dataclass(frozen=True)
class Home:
    """The place of a matrix, and the folder beside it where it stands until it is finished."""

    path: Path

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> Home:
        """Return the place of a matrix, through links, so that a link stays one; refuse what is not ours to replace."""
        given = Path(path)
        home = cls(given.resolve() if given.is_symlink() else given)
        file_format(home.path).check(home.path)
        check_ours(home.work, home.names)
        return home

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

    @property
    def replaced(self) -> Path:
        """Where an old matrix goes when the new one takes its place, if that takes two steps."""
        return self.work / "replaced"

    @property
    def names(self) -> list[str]:
        """What the folder of the unfinished matrix may hold."""
        return [path.name for path in (self.journal, self.unfinished, self.distinct, self.replaced)]

    def claimed(self) -> Any:
        """Keep the place to this process."""
        return claimed(self.work, self.names)

    def opened(self) -> Any:
        """Return the finished matrix."""
        return file_format(self.path).opened(self.path)

    def is_finished(self) -> bool:
        """Say whether there is a matrix, and none that is to take its place."""
        return self.path.exists() and not self.work.exists()

    def header(self) -> Header | None:
        """Return what the unfinished matrix was begun with, or the finished one computed from, if known."""
        begun = read_header(self.journal)
        return file_format(self.path).header_of(self.path) if begun is None and self.path.exists() else begun

    def holds(self, header: Header, resume: bool, overwrite: bool) -> bool:
        """Say whether the matrix is finished; refuse what is in the way, and clear what is to be replaced."""
        found = self.header() if resume or not overwrite else None
        if resume and matches(found, header):
            return self.path.exists() and not self.journal.exists()
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
        if self.replaced.exists() and not self.path.exists():  # a kill came before the new matrix was moved in
            os.replace(self.replaced, self.path)
        self.journal.unlink(missing_ok=True)
        empty(self.work)

    def move_in(self) -> None:
        """Put the finished matrix in its place; one that is to be replaced goes at the last moment.

        Until the new one is signed nothing says what it was computed from, so that nobody takes one for the other.
        """
        file_format(self.path).unsign(self.path)
        if not (self.unfinished.is_dir() and self.path.exists()):
            os.replace(self.unfinished, self.path)
        elif not exchanged(self.unfinished, self.path):  # folders, which cannot replace one another in one step
            remove(self.replaced)
            os.replace(self.path, self.replaced)
            os.replace(self.unfinished, self.path)
        sync(self.path.parent)


def matches(found: Header | None, wanted: Header) -> bool:
    """Say whether a header is the one that is wanted, whatever more it says."""
    return found is not None and not differences(found, wanted)


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
    """A part of the work: one matrix, where each of its blocks comes from, and which there are.

    ``first`` is the number of its first block in the journal.
    """

    kind: type[MatrixFile]
    path: Path
    shape: tuple[int, int]
    source: Callable[[Block], NDArray[Any]]
    symmetric: bool
    blocks: list[Block]
    first: int

    def numbered(self) -> Iterator[tuple[int, Block]]:
        """Return the blocks with their numbers."""
        return enumerate(self.blocks, start=self.first)

    def places(self, block: Block) -> list[Block]:
        """Return where a block stands: there, and mirrored where the matrix is symmetric."""
        rows, columns = block
        return [block, (columns, rows)] if self.symmetric and rows != columns else [block]

    def write(self, file: MatrixFile, block: Block) -> int:
        """Write a block, and its mirror image where there is one; both are on disk in the end. Return its checksum."""
        values = np.ascontiguousarray(self.source(block), dtype=file.array.dtype)
        places = self.places(block)
        for place, oriented in zip(places, (values, values.T), strict=False):
            file.write(place, oriented)
        file.sync(places)
        return checksum_of(values)

    def is_sound(self, file: MatrixFile, block: Block, checksum: int | None) -> bool:
        """Say whether a block is on disk as it was written, and its mirror image, too."""
        try:
            found = [np.asarray(file.array[place]) for place in self.places(block)]
        except Exception:  # whatever a damaged chunk makes its reader stumble over
            return False
        oriented = [found[0], *(values.T for values in found[1:])]
        return all(checksum_of(values) == checksum for values in oriented)


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

    def carry_out(self, progress: Progress | None, n_jobs: int | None) -> None:
        """Write what is missing, and put the matrix in its place."""
        stages = self.stages(n_jobs)
        with Journal(self.home.journal, self.header) as journal:
            if not self.is_moved_in(stages[-1], journal):
                try:
                    self.write(stages, journal, progress)
                except BaseException:
                    if not journal.done:  # nothing to go on with
                        self.home.clear()
                    raise
                self.home.move_in()
        checksums = " ".join(f"{journal.done[number]:08x}" for number, _ in stages[-1].numbered())
        file_format(self.home.path).sign(self.home.path, self.header | {BLOCKS: checksums})
        self.home.clear()

    def checked(self) -> Any:
        """Return the finished matrix; refuse one that is not as it was written."""
        stage, path = self.stages(None)[-1], self.home.path
        checksums = [int(text, 16) for text in (self.home.header() or {}).get(BLOCKS, "").split()]
        file = stage.kind.reopened(path, stage.shape, self.dtype)
        if file is None:
            shape = " x ".join(f"{side:,}" for side in stage.shape)
            problem = f"it is no longer a matrix of {shape} {self.dtype}, or cannot be read"
        else:
            blocks = zip(stage.blocks, checksums, strict=False)
            n_lost = len(stage.blocks) - sum(stage.is_sound(file, *each) for each in blocks)
            if not n_lost:
                return self.home.opened()
            problem = f"{n_lost} of its {len(stage.blocks)} blocks are not as they were written"
        raise ValueError(f"{path} is damaged, or was changed: {problem}; overwrite=True computes it again")

    def is_moved_in(self, stage: Stage, journal: Journal) -> bool:
        """Say whether a kill came between moving the matrix in and signing it."""
        if not journal.done or not self.home.path.exists():
            return False
        file = stage.kind.reopened(self.home.path, stage.shape, self.dtype)
        return file is not None and all(stage.is_sound(file, each, journal.done.get(n)) for n, each in stage.numbered())

    def write(self, stages: list[Stage], journal: Journal, progress: Progress | None) -> None:
        """Write all blocks that are not in the journal."""
        files = self.ready_files(stages, journal)
        n_blocks = sum(len(stage.blocks) for stage in stages)
        for stage, file in zip(stages, files, strict=True):
            for number, block in stage.numbered():
                if number not in journal.done:
                    kept = "blocks that are finished are kept, and resume=True goes on"
                    with room_for(kept if journal.done else "no block was finished, and nothing is kept"):
                        journal.add(number, stage.write(file, block))
                    if progress is not None:
                        progress(len(journal.done), n_blocks)
        files[-1].tidy()

    def stages(self, n_jobs: int | None) -> list[Stage]:
        """Return the stages: the matrix; where rankings are equal, that of the distinct ones first."""
        plan, home, kind = self.plan, self.home, file_format(self.home.path)

        def computed(block: Block) -> NDArray[Any]:
            return plan.block(*block, n_jobs) if plan.evaluator.direct else plan.distinct.block(*block, n_jobs)

        rows, columns = plan.rows, plan.columns
        if plan.evaluator.direct or (rows is None and columns is None):
            return [self.stage(kind, home.unfinished, plan.shape, computed, 0)]
        first = self.stage(NpyFile, home.distinct, plan.distinct.shape, computed, 0)

        def spread(block: Block) -> NDArray[Any]:
            array = NpyFile.opened(home.distinct)
            return np.asarray(array[np.ix_(placed(rows, block[0]), placed(columns, block[1]))])

        return [first, self.stage(kind, home.unfinished, plan.shape, spread, len(first.blocks))]

    def stage(
        self,
        kind: type[MatrixFile],
        path: Path,
        shape: tuple[int, int],
        source: Callable[[Block], NDArray[Any]],
        first: int,
    ) -> Stage:
        """Return the stage that writes one matrix."""
        blocks = list(tiles(*shape, self.side, self.plan.symmetric))
        return Stage(kind, path, shape, source, self.plan.symmetric, blocks, first)

    def ready_files(self, stages: list[Stage], journal: Journal) -> list[MatrixFile]:
        """Return the file of each stage, begun where there is none, having forgotten all that is not on disk."""
        files: list[MatrixFile | None] = []
        lost: set[int] = set()
        for stage in stages:
            done = [(number, block) for number, block in stage.numbered() if number in journal.done]
            file = stage.kind.reopened(stage.path, stage.shape, self.dtype) if done else None
            files.append(file)
            lost |= {n for n, each in done if file is None or not stage.is_sound(file, each, journal.done[n])}
        if lost or journal.n_damaged:
            warn(damage_text(self.home.work, len(lost), len(journal.done), journal.n_damaged), UserWarning)
            journal.forget(lost)
        new = [stage for stage, file in zip(stages, files, strict=True) if file is None]
        begun = iter(self.begun_files(new))
        return [next(begun) if file is None else file for file in files]

    def begun_files(self, stages: list[Stage]) -> list[MatrixFile]:
        """Begin the files of some stages, all of them or none: there is room for them together."""
        sizes = [stage.shape[0] * stage.shape[1] * self.dtype.itemsize for stage in stages if not stage.kind.packed]
        for stage in stages:
            remove(stage.path)
        needed, free = sum(sizes), shutil.disk_usage(self.home.work).free
        shape = " x ".join(f"{side:,}" for side in self.plan.shape)
        spread = ", with that of the distinct rankings," if len(stages) > 1 else ""
        takes = f"a matrix of {shape} {self.dtype}{spread} takes {size_text(needed)}, and {size_text(free)} are free"
        try:
            with room_for(f"{takes}; use dtype=float32, or another disk"):
                if needed > free:
                    raise OSError(errno.ENOSPC, "")
                return [stage.kind.created(stage.path, stage.shape, self.dtype, self.side) for stage in stages]
        except OSError:
            for stage in stages:
                remove(stage.path)
            raise


def checksum_of(values: NDArray[Any]) -> int:
    """Return the checksum of a block as it stands in a file."""
    return crc32(np.ascontiguousarray(values).data)


def damage_text(folder: Path, n_lost: int, n_done: int, n_lines: int) -> str:
    """Return what is damaged, in words."""
    parts = [f"{n_lost} of {n_done} finished blocks are not as they were written"] if n_lost else []
    parts += [f"{n_lines} lines of the journal cannot be read"] if n_lines else []
    return f"{folder} is damaged: {' and '.join(parts)}; what they held is computed again"


def placed(place: Indices | None, part: slice) -> Indices:
    """Return which distinct rankings stand in a part of the rows."""
    return np.arange(part.start, part.stop) if place is None else place[part]

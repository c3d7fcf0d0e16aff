"""A folder that one process at a time may use, and that holds nothing but what this package put there."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

MARK = "rankernel.lock"
DRAFT = re.compile(r"\.[0-9a-f]{16}\.tmp.*")  # of a file that was being written when a process was killed


@contextmanager
def claimed(folder: Path, names: Collection[str]) -> Iterator[None]:
    """Keep a folder to this process until the block ends; it is made if it is not there, and goes if it stays empty.

    A folder that another process has claimed is refused, and so is one that holds anything but ``names``: it is not
    ours, and nothing in it is touched.
    """
    mark = claim(folder, names)
    try:
        yield
    finally:
        if os.listdir(folder) == [MARK]:
            (folder / MARK).unlink()
            with suppress(OSError):  # another process may have claimed it again already
                folder.rmdir()
        mark.close()


def claim(folder: Path, names: Collection[str]) -> IO[bytes]:
    """Return the open mark of a folder, which no other process has."""
    while True:
        check_ours(folder, names)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            mark = (folder / MARK).open("ab")
        except FileNotFoundError:  # whoever had the folder has just removed it
            continue
        try:
            lock(mark, folder)
        except BaseException:
            mark.close()
            raise
        if is_still(mark, folder / MARK):
            return mark
        mark.close()  # whoever had it has just removed it: what is locked is no longer there


def check_ours(folder: Path, names: Collection[str]) -> None:
    """Refuse a place that holds what this package would not put there."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FileExistsError(f"{folder} is in the way: unfinished work is kept there; choose another name")
    with suppress(FileNotFoundError):
        found = set(os.listdir(folder))
        foreign = sorted(name for name in found - {MARK, *names} if not DRAFT.fullmatch(name))
        if foreign or (found and MARK not in found):
            raise FileExistsError(
                f"{folder} is in the way: it holds {(foreign or sorted(found))[0]!r}, which is not of unfinished work, "
                "and is left as it is; choose another name, or move the folder"
            )


def lock(mark: IO[bytes], folder: Path) -> None:
    """Refuse a folder that another process has, on systems that can tell."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(mark.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BlockingIOError(f"another process is at work on {folder}; wait for it, or end it first") from None


def is_still(mark: IO[bytes], path: Path) -> bool:
    """Say whether an open file is the one that stands at a path now."""
    try:
        return os.path.samestat(os.fstat(mark.fileno()), path.stat())
    except FileNotFoundError:
        return False


def empty(folder: Path) -> None:
    """Remove all that is in a claimed folder but its mark."""
    for entry in folder.iterdir():
        if entry.name != MARK:
            remove(entry)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)

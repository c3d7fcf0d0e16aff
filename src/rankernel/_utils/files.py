"""Files that are there as a whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile

from rankernel._utils.memory import size_text

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
FULL = "there is no room on this disk"
TRIED = bytes(2**16)  # what is written to see whether a disk has any room


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the name of a temporary file beside the path, which takes its place if all goes well, else disappears.

    When the block has ended without an error, the file and its name are on disk.
    """
    target = Path(path).resolve()  # through links, so that a link stays one
    # With the same ending, by which some writers know the format.
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp{target.suffix}")
    try:
        with room_for(f"{path} was not written"):
            yield temporary
            sync(temporary)
            if target.exists():
                shutil.copymode(target, temporary)
            temporary.replace(target)
            sync(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def room_for(what: str) -> Iterator[None]:
    """Say what there was no room for, if a disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM or str(error.strerror).startswith(FULL):
            raise
        raise OSError(error.errno, f"{FULL}: {what}") from None


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse the name of a file that cannot be written: no folder, no permission, a disk that is read-only or full."""
    target = Path(path).resolve()
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "may not be written", str(target))
    with TemporaryFile(dir=target.parent) as file:  # asking would not find a full disk
        file.write(TRIED)
        file.flush()


def check_room(path: Path, n_bytes: int) -> None:
    """Refuse a file that takes at least so many bytes, where the disk has fewer."""
    free = shutil.disk_usage(path.resolve().parent).free
    if n_bytes > free:
        takes = f"{path} takes at least {size_text(n_bytes)}, and {size_text(free)} are free"
        raise OSError(errno.ENOSPC, f"{FULL}: {takes}; use another disk")


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    with suppress(PermissionError):  # not every system lets a folder be opened
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

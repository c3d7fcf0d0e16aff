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


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the name of a temporary file beside the path, which takes its place if all goes well, else disappears.

    When the block has ended without an error, the file and its name are on disk.
    """
    target = Path(path).resolve()  # through links, so that a link stays one
    # With the same ending, by which some writers know the format.
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp{target.suffix}")
    try:
        yield temporary
        sync(temporary)
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
        sync(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse the name of a file that cannot be written: no folder, no permission, a disk that is read-only or full."""
    target = Path(path).resolve()
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "may not be written", str(target))
    with TemporaryFile(dir=target.parent):  # asking would not find a full disk
        pass


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    with suppress(PermissionError):  # not every system lets a folder be opened
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

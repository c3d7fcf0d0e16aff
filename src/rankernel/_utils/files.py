"""Files that are written completely or not at all."""

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

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
DISK_FULL_TEXT = "no space left on this disk"


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the name of a temporary file, which replaces ``path`` if the block succeeds and is removed otherwise.

    When the block has ended without an error, the file and its name are on disk.
    """
    target = Path(path).resolve()  # the target of a link, so that the link is not replaced
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp{target.suffix}")  # some writers look at the suffix
    try:
        with explain_full_disk(f"{path} was not written"):
            yield temporary
            sync(temporary)
            if target.exists():
                shutil.copymode(target, temporary)
            temporary.replace(target)
            sync(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def explain_full_disk(consequence: str) -> Iterator[None]:
    """Add a consequence to the message of an error that means a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_FULL or str(error.strerror).startswith(DISK_FULL_TEXT):
            raise
        raise OSError(error.errno, f"{DISK_FULL_TEXT}: {consequence}") from None


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise an OSError if a file cannot be written: missing folder, no permission, full or read-only disk."""
    target = Path(path).resolve()
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "is not writable", str(target))
    with TemporaryFile(dir=target.parent) as file:  # only writing detects a full disk
        file.write(bytes(2**16))
        file.flush()


def check_disk_space(path: Path, n_bytes: int) -> None:
    """Raise an OSError if the disk of a path has fewer free bytes."""
    free = shutil.disk_usage(path.resolve().parent).free
    if n_bytes > free:
        takes = f"{path} takes at least {size_text(n_bytes)}, and {size_text(free)} are free"
        raise OSError(errno.ENOSPC, f"{DISK_FULL_TEXT}: {takes}; use another disk")


def sync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on disk."""
    with suppress(PermissionError):  # some systems do not open folders
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

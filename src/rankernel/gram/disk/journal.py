"""A journal of finished work: what it lists is safely on disk, whatever happens to the process."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from rankernel.whole_files import whole_file

Header = dict[str, str]


class Journal:
    """A file whose first line says what the work is, and each further line the number of a finished part.

    A part is added after its results are on disk, and the line is on disk when :meth:`add` returns. A line that a kill
    cut short has no end, and does not count. While the journal is open no other process can open it.

    Parameters
    ----------
    path : Path
        The file; it is begun if it is not there.
    header : dict of str
        What the work is, for a journal that is begun.
    """

    def __init__(self, path: Path, header: Header) -> None:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_header(path, header)
        self.file = path.open("r+b")
        try:
            lock(self.file.fileno(), path)
        except RuntimeError:
            self.file.close()
            raise
        text = self.file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self.file.truncate(len(whole))
        self.file.seek(len(whole))
        self.done = {int(line) for line in whole.splitlines()[1:]}

    def add(self, number: int) -> None:
        """Say that a part is finished."""
        self.file.write(b"%d\n" % number)
        self.file.flush()
        os.fsync(self.file.fileno())
        self.done.add(number)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.file.close()

    @staticmethod
    def header_of(path: Path) -> Header | None:
        """Return the header of a journal; None if there is no journal."""
        try:
            with path.open() as file:
                header: Header = json.loads(file.readline())
        except FileNotFoundError:
            return None
        return header


def write_header(path: Path, header: Header) -> None:
    """Write a file of nothing but a header, which is there as a whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(header) + "\n")


def lock(descriptor: int, path: Path) -> None:
    """Refuse a journal that another process has open, on systems that can tell."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RuntimeError(f"another process is at work on {path.parent}; wait for it, or end it first") from None

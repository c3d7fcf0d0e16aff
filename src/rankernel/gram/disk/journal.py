"""A journal of finished work: what it lists is safely on disk, whatever happens to the process."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self
from zlib import crc32

from rankernel._utils.files import whole_file

Header = dict[str, str]

LINE = re.compile(rb"([0-9]{1,18}) ([0-9a-f]{8})")
CHECKSUM = "checksum"  # of a header, among what it says


class Journal:
    """A file whose first line says what the work is, and each further line the number and checksum of a finished part.

    A part is added after its results are on disk, and the line is on disk when :meth:`add` returns. A line that a kill
    cut short has no end, and does not count. Only one process may have a journal open.

    Parameters
    ----------
    path : Path
        The file; it is begun if it is not there.
    header : dict of str
        What the work is, for a journal that is begun.

    Attributes
    ----------
    done : dict from int to int
        The checksum of each finished part.
    n_damaged : int
        How many lines cannot be read: which parts they were of is not known.
    """

    file: IO[bytes]

    def __init__(self, path: Path, header: Header) -> None:
        self.path, self.header = path, header
        if not path.exists():
            self.begin({})
            return
        self.file = path.open("r+b")
        text = self.file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self.file.truncate(len(whole))
        self.file.seek(len(whole))
        lines = whole.splitlines()[1:]
        found = [match for match in map(LINE.fullmatch, lines) if match]
        self.done = {int(match[1]): int(match[2], 16) for match in found}
        self.n_damaged = len(lines) - len(found)

    def begin(self, done: dict[int, int]) -> None:
        """Write the journal anew, with these parts finished."""
        with whole_file(self.path) as temporary:
            temporary.write_bytes(b"".join([header_line(self.header), *map(line, done.items())]))
        self.file = self.path.open("r+b")
        self.file.seek(0, os.SEEK_END)
        self.done, self.n_damaged = done, 0

    def add(self, number: int, checksum: int) -> None:
        """Say that a part is finished."""
        self.file.write(line((number, checksum)))
        self.file.flush()
        os.fsync(self.file.fileno())
        self.done[number] = checksum

    def forget(self, numbers: Collection[int]) -> None:
        """Say that parts are not finished after all."""
        self.file.close()
        self.begin({number: checksum for number, checksum in self.done.items() if number not in numbers})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.file.close()


def line(part: tuple[int, int]) -> bytes:
    """Return the line of a finished part."""
    return b"%d %08x\n" % part


def header_line(header: Header) -> bytes:
    """Return the line that says what work is."""
    return json.dumps(sealed(header)).encode() + b"\n"


def sealed(header: Header) -> Header:
    """Return a header with its own checksum, by which damage is found."""
    return {**header, CHECKSUM: f"{crc32(json.dumps(header, sort_keys=True).encode()):08x}"}


def unsealed(found: Any, path: Path) -> Header:
    """Return a header as it was before it was sealed; refuse one that is damaged."""
    if isinstance(found, dict):
        header = {name: value for name, value in found.items() if name != CHECKSUM}
        if sealed(header) == found:
            return header
    raise ValueError(f"{path} is damaged: it does not say what was computed; overwrite=True starts again")


def write_header(path: Path, header: Header) -> None:
    """Write a file of nothing but a header, which is there as a whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_bytes(header_line(header))


def read_header(path: Path) -> Header | None:
    """Return the header in the first line of a file; None if there is no file."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.readline())
    except FileNotFoundError:
        return None
    except ValueError:
        found = None
    return unsealed(found, path)

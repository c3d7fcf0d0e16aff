"""The records of a table of text: named columns, and cells as numbers of the different texts that occur.

A file of a million ballots has few different cells, so whatever is asked of a cell is asked once of each text.
"""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel._utils import checks
from rankernel._utils.arrays import IntArray
from rankernel._utils.checks import printable
from rankernel.errors import RankingError
from rankernel.io.files import MOST_BYTES, AnyPath, check_grown_size, fail, read_text
from rankernel.rankings import unique_rows

Codes = NDArray[np.int32]

DELIMITERS = (",", ";", "\t", "|")
LONE_RETURN = re.compile("\r(?!\n)")
LONG = 2**20  # signs of a text from which on the compiled loop is worth its start


@dataclass(frozen=True)
class Records:
    """A table of cells, blanks around them removed.

    Attributes
    ----------
    path : path
        The file.
    columns : tuple of str
        Names of the columns.
    texts : list of str
        The different texts of cells.
    codes : array of shape (n_rows, n_columns)
        Which text stands in each cell.
    lines : array of shape (n_rows,)
        The line of the file on which each row begins.
    head : int
        The line that names the columns.
    times : array of shape (n_rows,), optional
        How many rows of the file are such; one each if left out.
    """

    path: AnyPath
    columns: tuple[str, ...]
    texts: list[str]
    codes: Codes
    lines: IntArray
    head: int = 1
    times: IntArray | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def position(self, name: str, role: str) -> int:
        """Return where a column stands, naming what it was wanted for if there is none."""
        if name not in self.columns:
            known = ", ".join(printable(column) for column in self.columns[:40])
            raise fail(self.path, self.head, f"{role} names the column {printable(name)!r}; the columns are {known}")
        return self.columns.index(name)

    def column(self, name: str, role: str) -> NDArray[np.str_]:
        """Return the texts of one column."""
        present, which = np.unique(self.codes[:, self.position(name, role)], return_inverse=True)
        return np.array([self.texts[code] for code in present.tolist()], dtype=np.str_)[which]

    @property
    def n_rows(self) -> int:
        """Number of rows of the file."""
        return len(self) if self.times is None else int(self.times.sum())

    def distinct(self) -> tuple[Records, IntArray]:
        """Return each different row once, where it comes first, and for each row which of them it is."""
        first, which = unique_rows(self.codes)
        times = np.bincount(which, minlength=len(first))
        return replace(self, codes=self.codes[first], lines=self.lines[first], times=times), which

    def cells_of_text(self) -> IntArray:
        """Return in how many cells of the file each text stands."""
        times = np.ones(len(self)) if self.times is None else self.times
        weights = np.repeat(times, self.codes.shape[1])
        return np.bincount(self.codes.ravel(), weights, minlength=len(self.texts)).astype(np.int64)

    def row(self, number: int) -> list[str]:
        """Return the cells of one row."""
        return [self.texts[code] for code in self.codes[number].tolist()]

    def line(self, row: int) -> int:
        """Return the line of a row."""
        return int(self.lines[row])

    def with_columns(self, positions: Sequence[int]) -> Records:
        """Return some of the columns, in this order."""
        if list(positions) == list(range(len(self.columns))):
            return self
        names = tuple(self.columns[position] for position in positions)
        return replace(self, columns=names, codes=self.codes[:, list(positions)])

    def without(self, names: Collection[str]) -> Records:
        """Return the table without some of its columns."""
        dropped = frozenset(names)
        return self.with_columns([place for place, name in enumerate(self.columns) if name not in dropped])

    def first_rows(self) -> IntArray:
        """Return for each text a row in which it occurs first, -1 if it is in none."""
        first = np.full(len(self.texts), -1, dtype=np.int64)
        n_columns = max(self.codes.shape[1], 1)
        # Of several values for one place the last one stays: backwards, the first occurrence.
        flat = self.codes.ravel()[::-1]
        first[flat] = (np.arange(len(flat))[::-1]) // n_columns
        return first

    def used(self) -> list[int]:
        """Return the texts that occur, in order of first appearance, row by row."""
        first = np.full(len(self.texts), -1, dtype=np.int64)
        flat = self.codes.ravel()[::-1]
        first[flat] = np.arange(len(flat))[::-1]
        return [int(code) for code in np.argsort(first, kind="stable") if first[code] >= 0]


def read_records(path: AnyPath, delimiter: str, encoding: str, max_bytes: int = MOST_BYTES) -> Records:
    """Return the cells of a file; the first record names the columns, and every other one is as long.

    Lines with nothing on them at all are passed over.
    """
    return records_of_text(read_text(path, encoding, max_bytes), delimiter, path, max_bytes)


def records_of_text(text: str, delimiter: str, path: AnyPath, max_bytes: int = MOST_BYTES) -> Records:
    """Return the cells of a text."""
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise fail(path, line, "there is a zero byte; this is not a comma-separated text file")
    if isinstance(delimiter, str) and delimiter == "auto":
        delimiter = guessed_delimiter(text, path)
    elif len(checks.check_text("delimiter", delimiter)) != 1 or delimiter in '"\r\n ':
        raise RankingError(f"delimiter={delimiter!r} is not one character that can separate cells, or 'auto'")
    n_cells = text.count(delimiter) + text.count("\n")
    check_grown_size(4 * n_cells, f"{n_cells:,} cells", path, max_bytes)
    return coded_at_once(text, delimiter, path) or coded(parsed(text, delimiter, path), path)


def coded_at_once(text: str, delimiter: str, path: AnyPath) -> Records | None:
    """Return the cells of a long text, taken apart by a compiled loop.

    None where the text is short, so that the loop need not be loaded; where a quoted cell holds a quote or a line
    break; and where something is wrong, which the slower way will name.
    """
    if len(text) < LONG or not delimiter.isascii():
        return None
    raw = text.encode("utf-8", "surrogatepass")
    n_lines = raw.count(b"\n") + 1
    codes = np.empty(n_lines + raw.count(delimiter.encode()), dtype=np.int32)
    lines = np.empty(n_lines, dtype=np.int64)
    n_records, width, starts, stops = _loops.table_cells.number_cells(
        np.frombuffer(raw, dtype=np.uint8), np.uint8(ord(delimiter)), codes, lines
    )
    if not n_records:
        return None
    seen = [raw[start:stop].decode("utf-8", "surrogatepass") for start, stop in zip(starts, stops, strict=True)]
    texts, codes = stripped(seen, codes[: n_records * width])
    columns = tuple(texts[code] for code in codes[:width])
    head = int(lines[0]) + 1
    check_columns(columns, path, head)
    return Records(path, columns, texts, codes[width:].reshape(-1, width), lines[1:n_records] + 1, head)


def coded(records: Iterable[tuple[int, list[str]]], path: AnyPath) -> Records:
    """Return records as a table; the first names the columns."""
    records = iter(records)
    head, names = next(records, (1, None))
    if names is None:
        raise fail(path, 1, "the file is empty; its first line names the columns")
    columns = tuple(name.strip() for name in names)
    check_columns(columns, path, head)
    seen = Numbering()
    codes, lines, width = array("i"), array("q"), len(columns)
    for line, cells in records:
        if len(cells) != width:
            raise fail(path, line, f"the row has {len(cells)} cells but there are {width} columns")
        codes.extend(map(seen.__getitem__, cells))
        lines.append(line)
    texts, numbers = stripped(seen, np.array(codes, dtype=np.int32))
    return Records(path, columns, texts, numbers.reshape(len(lines), width), np.array(lines, dtype=np.int64), head)


def stripped(cells: Iterable[str], codes: Codes) -> tuple[list[str], Codes]:
    """Return the different texts without the blanks around them, and the numbers of these."""
    texts: dict[str, int] = {}
    renumbered = np.array([texts.setdefault(cell.strip(), len(texts)) for cell in cells], dtype=np.int32)
    return list(texts), codes if len(texts) == len(renumbered) else renumbered[codes]


class Numbering(dict[str, int]):
    """Numbers texts in the order in which they are first asked for."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


def parsed(text: str, delimiter: str, path: AnyPath) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of each record."""
    reader = csv.reader(text_lines(text), delimiter=delimiter, strict=True)
    line = 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise fail(path, line, f"the row cannot be taken apart into cells ({error})") from None


def text_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text one by one, so that no second copy of it is made."""
    if LONE_RETURN.search(text):  # line ends of old machines, alone or mixed with others
        yield from io.StringIO(text, newline="")
        return
    start = 0
    while end := text.find("\n", start) + 1:
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def guessed_delimiter(text: str, path: AnyPath) -> str:
    """Return the one sign that cuts every row into the same number of cells, more than one."""
    head = text.lstrip("\r\n").split("\n", 1)[0]
    present = [sign for sign in DELIMITERS if sign in head]
    if len(present) == 1:
        return present[0]
    fitting = [sign for sign in present if cuts_evenly(text, sign, path)]
    if len(fitting) > 1:
        signs = " and ".join(repr(sign) for sign in fitting)
        raise fail(path, 1, f"the cells may be separated by {signs}; choose one with delimiter=...")
    if fitting:
        return fitting[0]
    # None fits: the file has one column, or it is ragged, which reading it with its most frequent sign will show.
    return max(DELIMITERS, key=head.count)


def cuts_evenly(text: str, delimiter: str, path: AnyPath) -> bool:
    """Say whether a delimiter gives all records the same number of cells, more than one."""
    try:
        width = 0
        for _, cells in parsed(text, delimiter, path):
            width = width or len(cells)
            if len(cells) != width or width == 1:
                return False
    except RankingError:
        return False
    return width > 1


def check_columns(names: Sequence[str], path: AnyPath, line: int) -> None:
    """Refuse two columns of one name; a column without a name can still be ignored."""
    seen: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        if name in seen:
            raise fail(path, line, f"columns {seen[name]} and {number} are both named {printable(name)!r}")
        seen[name] = number

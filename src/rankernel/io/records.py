"""The records of a comma-separated file: named columns and rows of cells, each with the line it came from."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from rankernel.encoding import printable
from rankernel.errors import RankingError
from rankernel.io.files import AnyPath, fail, read_text

DELIMITERS = (",", ";", "\t", "|")


@dataclass(frozen=True)
class Records:
    """A table of cells, blanks around them removed: column names, rows, and the line on which each row begins."""

    path: AnyPath
    columns: tuple[str, ...]
    rows: list[list[str]]
    lines: list[int]

    def column(self, name: str, role: str) -> list[str]:
        """Return the cells of one column."""
        position = self.position(name, role)
        return [row[position] for row in self.rows]

    def position(self, name: str, role: str) -> int:
        """Return where a column stands, naming what it was wanted for if there is none."""
        if name not in self.columns:
            known = ", ".join(printable(column) for column in self.columns)
            raise fail(self.path, 1, f"{role} names the column {printable(name)!r}; the columns are {known}")
        return self.columns.index(name)

    def without(self, names: Collection[str]) -> Records:
        """Return the table without some of its columns."""
        kept = [position for position, name in enumerate(self.columns) if name not in names]
        rows = [[row[position] for position in kept] for row in self.rows]
        return Records(self.path, tuple(self.columns[position] for position in kept), rows, self.lines)


def read_records(path: AnyPath, delimiter: str, encoding: str) -> Records:
    """Return the cells of a file; the first record names the columns, and every other one is as long.

    Lines with nothing on them at all are passed over.
    """
    text = read_text(path, encoding)
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise fail(path, line, "there is a zero byte; this is not a comma-separated text file")
    if delimiter == "auto":
        delimiter = guessed_delimiter(text, path)
    elif len(delimiter) != 1 or delimiter in '"\r\n ':
        raise RankingError(f"delimiter={delimiter!r} is not one character that can separate cells, or 'auto'")
    records = list(parsed(text, delimiter, path))
    if not records:
        raise fail(path, 1, "the file is empty; its first line names the columns")
    first_line, names = records[0]
    check_columns(names, path, first_line)
    for line, cells in records[1:]:
        if len(cells) != len(names):
            raise fail(path, line, f"the row has {len(cells)} cells but there are {len(names)} columns")
    return Records(path, tuple(names), [cells for _, cells in records[1:]], [line for line, _ in records[1:]])


def parsed(text: str, delimiter: str, path: AnyPath) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of each record."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise fail(path, line, f"the row cannot be taken apart into cells ({error})") from None
        if cells:
            yield line, [cell.strip() for cell in cells]
        line = reader.line_num + 1


def guessed_delimiter(text: str, path: AnyPath) -> str:
    """Return the one sign that cuts every row into the same number of cells, more than one."""
    head = text.lstrip("\r\n").split("\n", 1)[0]
    fitting = [sign for sign in DELIMITERS if sign in head and cuts_evenly(text, sign, path)]
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
        widths = {len(cells) for _, cells in parsed(text, delimiter, path)}
    except RankingError:
        return False
    return len(widths) == 1 and widths != {1}


def check_columns(names: list[str], path: AnyPath, line: int) -> None:
    """Refuse two columns of one name; a column without a name can still be ignored."""
    seen: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        if name in seen:
            raise fail(path, line, f"columns {seen[name]} and {number} are both named {printable(name)!r}")
        seen[name] = number

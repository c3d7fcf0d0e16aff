"""Tables of text: named columns, and cells coded as indices of the distinct strings.

A file of a million ballots has few distinct cells, so that each distinct string is interpreted only once. Large tables
are split by pandas if it is installed, others by the csv module; the results are the same.
"""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import IntArray
from rankernel._utils.checks import printable
from rankernel.errors import Argument, RankingError
from rankernel.io.text_files import BYTE_ORDER_MARK, SourceFile
from rankernel.rankings import unique_rows

Codes = NDArray[np.int32]

DELIMITERS = (",", ";", "\t", "|")
LONE_RETURN = re.compile("\r(?!\n)")
LARGE = 2**23  # characters from which splitting by pandas, its import included, is faster (benchmarks/reading.py)
ROWS_AT_ONCE = 2**15  # of pandas, few enough for the processor cache
QUOTE, NEWLINE, RETURN = b'"\n\r'


@dataclass(frozen=True)
class TextTable:
    """A table of strings, stripped of surrounding spaces.

    Attributes
    ----------
    source : SourceFile
        The file.
    columns : tuple of str
        Names of the columns.
    texts : list of str
        The distinct strings.
    codes : array of shape (n_rows, n_columns)
        Index of the string of each cell.
    lines : array of shape (n_rows,)
        Line of the file on which each row begins.
    header_line : int
        Line of the file that names the columns.
    counts : array of shape (n_rows,), optional
        Number of rows of the file that equal each row; by default 1.
    """

    source: SourceFile
    columns: tuple[str, ...]
    texts: list[str]
    codes: Codes
    lines: IntArray
    header_line: int = 1
    counts: IntArray | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def n_rows(self) -> int:
        """Number of rows of the file."""
        return len(self) if self.counts is None else int(self.counts.sum())

    def error(self, row: int | None, *problem: object) -> RankingError:
        """Return the error for a problem in a row, or in the header if the row is None."""
        return self.source.error(self.header_line if row is None else int(self.lines[row]), *problem)

    def index(self, name: str, argument: str) -> int:
        """Return the index of a column; the error for a missing column names the argument that refers to it."""
        if name not in self.columns:
            known = ", ".join(printable(column) for column in self.columns[:40])
            problem = f" names the column {printable(name)!r}; the columns are {known}"
            raise self.error(None, Argument(argument), problem)
        return self.columns.index(name)

    def check_columns(self) -> None:
        """Raise an error if a column that the options name does not exist."""
        for name, argument in self.source.options.named_columns.items():
            self.index(name, argument)

    def column(self, name: str, argument: str) -> NDArray[np.str_]:
        """Return the strings of a column."""
        present, inverse = np.unique(self.codes[:, self.index(name, argument)], return_inverse=True)
        return np.array([self.texts[code] for code in present.tolist()], dtype=np.str_)[inverse]

    def select(self, indices: Sequence[int]) -> TextTable:
        """Return some of the columns, in the given order."""
        if list(indices) == list(range(len(self.columns))):
            return self
        names = tuple(self.columns[index] for index in indices)
        return replace(self, columns=names, codes=self.codes[:, list(indices)])

    def without(self, names: Collection[str]) -> TextTable:
        """Return the table without some of its columns."""
        dropped = frozenset(names)
        return self.select([index for index, name in enumerate(self.columns) if name not in dropped])

    def distinct(self) -> tuple[TextTable, IntArray]:
        """Return the distinct rows in order of first appearance, and for each row the index of its distinct one."""
        first, inverse = unique_rows(self.codes)
        counts = np.bincount(inverse, minlength=len(first))
        return replace(self, codes=self.codes[first], lines=self.lines[first], counts=counts), inverse

    def cell_counts(self) -> IntArray:
        """Return the number of cells of the file that hold each string."""
        counts = np.ones(len(self)) if self.counts is None else self.counts
        weights = np.repeat(counts, self.codes.shape[1])
        return np.bincount(self.codes.ravel(), weights, minlength=len(self.texts)).astype(np.int64)

    def first_rows(self) -> IntArray:
        """Return the first row that holds each string, -1 for strings that do not occur."""
        return np.asarray(self.first_cells() // max(self.codes.shape[1], 1))

    def used(self) -> list[int]:
        """Return the codes of the strings that occur, in order of first appearance, row by row."""
        first = self.first_cells()
        used = np.flatnonzero(first >= 0)
        return [int(code) for code in used[np.argsort(first[used])]]

    def first_cells(self) -> IntArray:
        """Return the first cell that holds each string, in row-major order, -1 for strings that do not occur."""
        first = np.full(len(self.texts), -1, dtype=np.int64)
        flat = self.codes.ravel()[::-1]
        first[flat] = np.arange(len(flat))[::-1]  # of repeated indices the last assignment stays
        return first

    def numbers(self, number: Callable[[str], float], dtype: type) -> NDArray[Any]:
        """Return a number for each cell, computed once for each distinct string."""
        values: NDArray[Any] = np.zeros(max(len(self.texts), 1), dtype=dtype)
        for code in self.used():
            values[code] = number(self.texts[code])
        return values[self.codes]


# ---------------------------------------------------------------------- splitting text into cells


def split_table(text: str, source: SourceFile) -> TextTable:
    """Return the table in a text whose first line names the columns."""
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise source.error(line, "there is a null byte; this is not a text table")
    delimiter = delimiter_of(text, source)
    n_cells = text.count(delimiter) + text.count("\n")
    source.check_size(4 * n_cells, f"{n_cells:,} cells")
    table = split_by_pandas(text, delimiter, source) if len(text) >= LARGE and find_spec("pandas") else None
    return table or table_of(split_rows(text, delimiter, source), source)


def table_of(rows: Iterable[tuple[int, list[str]]], source: SourceFile) -> TextTable:
    """Return rows, each with its line number, as a table; the first row names the columns."""
    rows = iter(rows)
    header_line, names = next(rows, (1, None))
    if names is None:
        raise source.error(1, "the file is empty; its first line must name the columns")
    columns = tuple(name.strip() for name in names)
    check_unique(columns, source, header_line)
    numbering = Numbering()
    codes, lines, n_columns = array("i"), array("q"), len(columns)
    for line, cells in rows:
        if len(cells) != n_columns:
            raise source.error(line, f"the row has {len(cells)} cells but there are {n_columns} columns")
        codes.extend(map(numbering.__getitem__, cells))
        lines.append(line)
    texts, stripped = strip_texts(numbering, np.array(codes, dtype=np.int32))
    line_numbers = np.array(lines, dtype=np.int64)
    return TextTable(source, columns, texts, stripped.reshape(len(lines), n_columns), line_numbers, header_line)


def split_by_pandas(text: str, delimiter: str, source: SourceFile) -> TextTable | None:
    """Return the table split by pandas, or None if the csv module may split it otherwise or must report an error."""
    import pandas as pd

    if text.startswith(BYTE_ORDER_MARK) or LONE_RETURN.search(text) or not delimiter.isascii():
        return None
    try:
        raw = text.encode("utf-8")
    except UnicodeEncodeError:  # half a surrogate pair
        return None
    content = np.frombuffer(raw, dtype=np.uint8)
    if not quotes_are_regular(content, ord(delimiter)):
        return None
    lines = nonempty_lines(content)
    numbering = Numbering()
    parts: list[Codes] = []
    options: dict[str, Any] = {"header": None, "dtype": object, "na_filter": False, "engine": "c"}
    try:
        with pd.read_csv(io.BytesIO(raw), sep=delimiter, chunksize=ROWS_AT_ONCE, **options) as chunks:
            for chunk in chunks:
                codes, texts = pd.factorize(chunk.to_numpy().ravel())
                renumbered = np.fromiter(map(numbering.__getitem__, texts), dtype=np.int32, count=len(texts))
                parts.append(renumbered[codes].reshape(chunk.shape))
    except ValueError:  # such as rows that are too long
        return None
    n_columns = parts[0].shape[1]
    if sum(map(len, parts)) != len(lines) or any(part.shape[1] != n_columns for part in parts):
        return None  # line breaks within cells, or lines of spaces
    flat = np.concatenate(parts).ravel()
    inside = sum(
        count * text.count(delimiter) for text, count in zip(numbering, np.bincount(flat).tolist(), strict=True)
    )
    if raw.count(delimiter.encode()) - inside != len(lines) * (n_columns - 1):
        return None  # pandas pads short rows
    texts, codes = strip_texts(numbering, flat)
    columns = tuple(texts[code] for code in codes[:n_columns])
    check_unique(columns, source, int(lines[0]))
    return TextTable(source, columns, texts, codes[n_columns:].reshape(-1, n_columns), lines[1:], int(lines[0]))


def quotes_are_regular(content: NDArray[np.uint8], delimiter: int) -> bool:
    """Whether every quotation mark opens or closes a cell, or is doubled within one."""
    marks = np.flatnonzero(content == QUOTE)
    if not len(marks):
        return True
    before = content[np.maximum(marks[::2] - 1, 0)]
    after = content[np.minimum(marks[1::2] + 1, len(content) - 1)]
    opens = np.isin(before, (delimiter, NEWLINE, QUOTE))
    closes = np.isin(after, (delimiter, NEWLINE, RETURN, QUOTE))
    return bool(len(marks) % 2 == 0 and opens.all() and closes.all())


def nonempty_lines(content: NDArray[np.uint8]) -> IntArray:
    """Return the numbers of the lines that are not empty, from 1."""
    starts = np.append(0, np.flatnonzero(content == NEWLINE) + 1)
    first = content[starts[starts < len(content)]]
    return np.asarray(np.flatnonzero((first != NEWLINE) & (first != RETURN)) + 1, dtype=np.int64)


def strip_texts(texts: Iterable[str], codes: Codes) -> tuple[list[str], Codes]:
    """Return the distinct strings without surrounding spaces, and the codes of these."""
    given = list(texts)
    stripped = [text.strip() for text in given]
    if stripped == given:
        return given, codes
    numbering = Numbering()
    renumbered = np.array([numbering[text] for text in stripped], dtype=np.int32)
    return list(numbering), renumbered[codes]


class Numbering(dict[str, int]):
    """Numbers of strings in the order of their first lookup."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


def split_rows(text: str, delimiter: str, source: SourceFile, strict: bool = True) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of each row; if not strict, quotation marks within cells are accepted."""
    reader = csv.reader(split_lines(text), delimiter=delimiter, strict=strict)
    line = 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise source.error(line, f"the row cannot be split into cells ({error})") from None


def split_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text one by one, without a second copy of the text."""
    if LONE_RETURN.search(text):  # line ends of old systems
        yield from io.StringIO(text, newline="")
        return
    start = 0
    while end := text.find("\n", start) + 1:
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def delimiter_of(text: str, source: SourceFile) -> str:
    """Return the delimiter of the options, or the only one that splits every row into the same number of cells."""
    if source.options.delimiter != "auto":
        return source.options.delimiter
    header = text.lstrip("\r\n").split("\n", 1)[0]
    present = [sign for sign in DELIMITERS if sign in header]
    if len(present) == 1:
        return present[0]
    fitting = [sign for sign in present if splits_evenly(text, sign, source)]
    if len(fitting) > 1:
        signs = " or ".join(repr(sign) for sign in fitting)
        raise source.error(1, f"the delimiter may be {signs}; choose one with ", Argument("delimiter", ...))
    if fitting:
        return fitting[0]
    # The file has one column, or it is ragged, which reading it with its most frequent delimiter will report.
    return max(DELIMITERS, key=header.count)


def splits_evenly(text: str, delimiter: str, source: SourceFile) -> bool:
    """Whether a delimiter splits all rows into the same number of cells, more than one."""
    try:
        rows = split_rows(text, delimiter, source)
        n_columns = len(next(rows, (1, []))[1])
        return n_columns > 1 and all(len(cells) == n_columns for _, cells in rows)
    except RankingError:
        return False


def check_unique(names: Sequence[str], source: SourceFile, line: int) -> None:
    """Raise an error if two columns have the same name; a column without a name can be ignored."""
    seen: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        if name in seen:
            raise source.error(line, f"columns {seen[name]} and {number} are both named {printable(name)!r}")
        seen[name] = number

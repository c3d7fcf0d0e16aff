"""Tables of text: named columns, and cells coded as indices of the distinct strings.

Delimited text, workbooks, Arrow files, JSON and data frames all become such a table. A file of a million ballots has
few distinct cells, so each distinct string is interpreted only once.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import IntArray
from rankernel._utils.checks import printable
from rankernel.errors import Argument, RankingError, missing_extra
from rankernel.io.source import SourceFile, quoted, unprefixed_cell
from rankernel.pair_tables import Column
from rankernel.rankings import is_frame, is_missing, unique_rows

Codes = NDArray[np.int32]
Row = tuple[int, list[str]]  # line number and cells

DELIMITERS = (",", ";", "\t", "|")
LONE_RETURN = re.compile("\r(?!\n)")
LARGE = 2**22  # characters from which splitting by pandas, its import included, is faster (benchmarks/reading.py)
SAMPLE = 200  # lines that decide about the delimiter
EXCEL, ARROW, JSON = (".xlsx", ".xlsm"), (".parquet", ".feather", ".arrow"), (".json", ".jsonl", ".ndjson")
MAX_LIST = 10_000  # entries of a list in a cell


@dataclass(frozen=True)
class Table:
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

    @cached_property
    def positions(self) -> dict[str, int]:
        """The index of each column; of equal names the first."""
        return {name: index for index, name in reversed(list(enumerate(self.columns)))}

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
            known = ", ".join(quoted(column)[1:-1] for column in self.columns[:40])
            raise self.error(None, Argument(argument), f" names the column {quoted(name)}; the columns are {known}")
        return self.positions[name]

    def check_columns(self) -> None:
        """Raise an error if a column that the options name does not exist."""
        for name, argument in self.source.options.named_columns.items():
            self.index(name, argument)

    def column(self, name: str, argument: str) -> NDArray[np.str_]:
        """Return the strings of a column."""
        column = self.coded(self.index(name, argument))
        return np.array([unprefixed_cell(text) for text in column.texts], dtype=np.str_)[column.codes]

    def texts_of(self, index: int) -> dict[str, int]:
        """Return the distinct strings of a column that are not empty, each with its number of cells."""
        if len(self) < len(self.texts):
            present, counts = np.unique(self.codes[:, index], return_counts=True)
            found = dict(zip(present.tolist(), counts.tolist(), strict=True))
        else:  # without sorting
            numbers = np.bincount(self.codes[:, index], minlength=len(self.texts))
            found = {code: int(numbers[code]) for code in np.flatnonzero(numbers).tolist()}
        return {self.texts[code]: number for code, number in found.items() if self.texts[code]}

    def coded(self, index: int) -> Column:
        """Return a column as indices of its own distinct strings."""
        codes = self.codes[:, index]
        present = np.flatnonzero(np.bincount(codes, minlength=len(self.texts)))
        number = np.zeros(len(self.texts), dtype=np.int64)
        number[present] = np.arange(len(present))
        return Column(number[codes], [self.texts[code] for code in present.tolist()])

    def select(self, indices: Sequence[int]) -> Table:
        """Return some of the columns, in the given order."""
        if list(indices) == list(range(len(self.columns))):
            return self
        names = tuple(self.columns[index] for index in indices)
        return replace(self, columns=names, codes=self.codes[:, list(indices)])

    def without(self, names: Collection[str]) -> Table:
        """Return the table without some of its columns."""
        dropped = frozenset(names)
        return self.select([index for index, name in enumerate(self.columns) if name not in dropped])

    def rows(self, chosen: Any) -> Table:
        """Return some of the rows."""
        return replace(self, codes=self.codes[chosen], lines=self.lines[chosen])

    def distinct(self) -> tuple[Table, IntArray]:
        """Return the distinct rows in order of first appearance, and for each row the index of its distinct one."""
        first, inverse = unique_rows(self.codes)
        return replace(self.rows(first), counts=np.bincount(inverse, minlength=len(first))), inverse

    def cell_counts(self) -> IntArray:
        """Return the number of cells of the file that hold each string."""
        counts = np.ones(len(self)) if self.counts is None else self.counts
        weights = np.repeat(counts, self.codes.shape[1])
        return np.bincount(self.codes.ravel(), weights, minlength=len(self.texts)).astype(np.int64)

    def first_cells(self) -> IntArray:
        """Return the first cell that holds each string, in row-major order, -1 for strings that do not occur."""
        first = np.full(len(self.texts), -1, dtype=np.int64)
        flat = self.codes.ravel()[::-1]
        first[flat] = np.arange(len(flat))[::-1]  # of repeated indices the last assignment stays
        return first

    def used(self) -> list[int]:
        """Return the codes of the strings that occur, in order of first appearance, row by row."""
        first = self.first_cells()
        used = np.flatnonzero(first >= 0)
        return [int(code) for code in used[np.argsort(first[used])]]

    def mapped(self, function: Callable[[str], Any], dtype: type) -> NDArray[Any]:
        """Return a value for each cell, computed once for each distinct string."""
        values: NDArray[Any] = np.zeros(max(len(self.texts), 1), dtype=dtype)
        for code in self.used():
            values[code] = function(self.texts[code])
        return values[self.codes]


def read_table(source: SourceFile) -> Table:
    """Return the table in a file, by its suffix, or in its text; it is cached."""
    if source.table is None:
        if source.suffix in EXCEL:
            source.table = table_of(excel_rows(source), source)
        elif source.suffix in ARROW:
            source.table = table_of_data(arrow_table(source), source)
        elif source.suffix in JSON:
            source.table = table_of_data(json_records(source), source)
        else:
            source.table = split_table(source.text, source)
    table: Table = source.table
    return table


# ---------------------------------------------------------------------- rows of text


def split_table(text: str, source: SourceFile) -> Table:
    """Return the table in a delimited text."""
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise source.error(line, "there is a null byte; this is not a text table")
    delimiter = delimiter_of(text, source)
    n_cells = text.count(delimiter) + text.count("\n") if 4 * len(text) > source.table_limit else 0
    source.check_size(4 * n_cells, f"{n_cells:,} cells")
    table = split_by_pandas(text, delimiter, source) if len(text) >= LARGE and find_spec("pandas") else None
    return table or table_of(split_rows(text, delimiter, source), source)


def table_of(rows: Iterable[Row], source: SourceFile) -> Table:
    """Return rows as a table; the first row, or the first rows of a survey, name the columns."""
    rows = iter(rows)
    header_line, columns, body = read_header(list(islice(rows, 3)), source)
    numbering = Numbering()
    codes, lines, n_columns = array("i"), array("q"), len(columns)
    for line, cells in chain(body, rows):
        if len(cells) > n_columns and not any(cells[n_columns:]):
            cells = cells[:n_columns]
        if len(cells) != n_columns:
            raise source.error(line, f"the row has {len(cells)} cells but there are {n_columns} columns")
        codes.extend(map(numbering.__getitem__, cells))
        lines.append(line)
    table = np.array(codes, dtype=np.int32).reshape(len(lines), n_columns)
    return finished(source, columns, numbering, table, np.array(lines, dtype=np.int64), header_line)


def finished(
    source: SourceFile, columns: Sequence[str], texts: Iterable[str], codes: Codes, lines: IntArray, header_line: int
) -> Table:
    """Return a table with stripped strings, different names, and without empty columns that have no name."""
    given = list(texts)
    stripped = [text.strip() for text in given]
    if stripped != given:
        numbering = Numbering()
        renumbered = np.array([numbering[text] for text in stripped], dtype=np.int32)
        stripped, codes = list(numbering), renumbered[codes]
    table = Table(source, tuple(columns), stripped, codes, lines, header_line)
    if columns.count("") > 1 or (len(columns) > 1 and not columns[-1]):
        empty = [i for i, name in enumerate(columns) if not name and not table.texts_of(i)]
        table = table.select([i for i in range(len(columns)) if i not in empty])
    first: dict[str, int] = {}
    for number, name in enumerate(table.columns, start=1):
        if first.setdefault(name, number) != number:
            problem = f"columns {first[name]} and {number} are both named {quoted(name)}"
            raise source.error(header_line, problem)
    return table


def read_header(rows: list[Row], source: SourceFile) -> tuple[int, list[str], list[Row]]:
    """Return line and names of the columns, and those of the first three rows that are data."""
    if not rows:
        raise source.error(1, "the file is empty; its first line must name the columns")
    (line, cells), *body = rows
    names = [cell.strip() for cell in cells]
    if source.options.header is False:
        return line, [str(number) for number in range(1, len(names) + 1)], rows
    if len(body) == 2 and any(
        '{"ImportId":' in cell for cell in body[1][1]
    ):  # Qualtrics: names, questions, identifiers
        items = [question.rpartition(" - ")[2].strip() for question in body[0][1]]
        names = [item if re.search("_[0-9]+$", name) else name for name, item in zip(names, items, strict=False)]
        return line, names, []
    if body and names.count("") > 1 and len(body[0][1]) == len(names):  # SurveyMonkey: questions, then their items
        below = [cell.strip() for cell in body[0][1]]
        grouped = [index > 0 and not name for index, name in enumerate(names)]
        starts = [not name for name in names[1:]] + [False]  # the first column of a group has the question
        pairs = zip(names, below, grouped, starts, strict=True)
        if all(item for name, item in zip(names, below, strict=True) if not name):
            names = [item if (member or first) and item else name for name, item, member, first in pairs]
            return line, names, body[1:]
    return line, names, body


def split_by_pandas(text: str, delimiter: str, source: SourceFile) -> Table | None:
    """Return the table split by pandas, or None if the csv module may split it otherwise or must report an error."""
    import pandas as pd

    end = text.find("\n") + 1
    rows = [] if text[:end].count('"') % 2 else list(split_rows(text[:end], delimiter, source))
    try:
        body = text[end:].encode("utf-8")
    except UnicodeEncodeError:  # half a surrogate pair
        return None
    if b"\r" in body or body.startswith(codecs.BOM_UTF8) or not delimiter.isascii():
        return None
    if not rows or "\r" in text[:end].rstrip("\r\n") or source.options.header is False:
        return None
    header_line, columns, _ = read_header(rows, source)
    if not any(columns):  # the header is a later line
        return None
    content = np.frombuffer(body, dtype=np.uint8)
    inside = inside_quotes(content, ord(delimiter)) if b'"' in body else None
    if inside is None and b'"' in body:
        return None
    quoting = csv.QUOTE_NONE if inside is None else csv.QUOTE_MINIMAL
    options: dict[str, Any] = {"header": None, "na_filter": False, "quoting": quoting, "sep": delimiter}
    try:
        frame = pd.read_csv(io.BytesIO(body), low_memory=False, **options)
        numeric = [index for index in frame if frame[index].dtype.kind not in "OUT"]
        if numeric:  # read as text, because 1.0 and 1 are different texts
            frame[numeric] = pd.read_csv(io.BytesIO(body), usecols=numeric, dtype=str, **options)
    except ValueError:  # such as rows that are too long
        return None
    n_rows, n_columns = frame.shape
    n_lines = int(np.count_nonzero(content == ord("\n"))) + (not body.endswith(b"\n"))
    delimiters = content == ord(delimiter)
    n_delimiters = int(np.count_nonzero(delimiters if inside is None else delimiters & ~inside))
    if n_lines != n_rows or n_columns != len(columns) or n_delimiters != n_rows * (n_columns - 1):
        return None  # lines of spaces, or short rows, which pandas pads
    of_columns, distinct = zip(*(frame[index].factorize() for index in range(n_columns)), strict=True)
    number, texts = pd.factorize(np.concatenate([np.asarray(each, dtype=object) for each in distinct]))
    codes = np.empty(frame.shape, dtype=np.int32, order="F")
    start = 0
    for index, (of_column, each) in enumerate(zip(of_columns, distinct, strict=True)):
        codes[:, index] = number[start : start + len(each)].astype(np.int32)[of_column]
        start += len(each)
    lines = np.arange(n_rows, dtype=np.int64) + header_line + 1
    return finished(source, columns, map(str, texts), codes, lines, header_line)


def inside_quotes(content: NDArray[np.uint8], delimiter: int) -> NDArray[np.bool_] | None:
    """Return which bytes are inside quotation marks, or None unless these enclose whole cells of one line."""
    quotes = np.flatnonzero(content == ord('"'))
    if len(quotes) % 2:
        return None
    ends = (content == delimiter) | (content == ord("\n"))
    before, after = quotes[::2] - 1, quotes[1::2] + 1
    opening = ends[before] | (before < 0)
    closing = (after == len(content)) | ends[np.minimum(after, len(content) - 1)]
    inside = np.bitwise_xor.accumulate(content == ord('"'))
    if not (opening.all() and closing.all()) or (inside & (content == ord("\n"))).any():
        return None
    return inside


class Numbering(dict[str, int]):
    """Numbers of strings in the order of their first lookup."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


def split_rows(text: str, delimiter: str, source: SourceFile, strict: bool = True) -> Iterator[Row]:
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
    """Return the delimiter of the options, or the only one that splits the first rows into equally many cells."""
    if source.options.delimiter != "auto":
        return source.options.delimiter
    start = "".join(islice(split_lines(text.lstrip("\r\n")), SAMPLE))
    header = start.split("\n", 1)[0]
    present = [sign for sign in DELIMITERS if sign in header]
    if len(present) < 2:
        return present[0] if present else ","
    fitting = [sign for sign in present if splits_evenly(start, sign, source)]
    if len(fitting) > 1:
        signs = " or ".join(repr(sign) for sign in fitting)
        raise source.error(1, f"the delimiter may be {signs}; choose one with ", Argument("delimiter", ...))
    # A ragged table is read with its most frequent delimiter, which reports the problem.
    return fitting[0] if fitting else max(DELIMITERS, key=header.count)


def splits_evenly(text: str, delimiter: str, source: SourceFile) -> bool:
    """Whether a delimiter splits all rows into the same number of cells, more than one."""
    try:
        sizes = {len(cells) for _, cells in split_rows(text, delimiter, source)}
    except RankingError:
        return False
    return len(sizes) == 1 and sizes.pop() > 1


# ---------------------------------------------------------------------- workbooks, Arrow, JSON, frames


def excel_rows(source: SourceFile) -> list[Row]:
    """Return the rows of the first sheet of a workbook that are not empty."""
    try:
        import openpyxl
    except ImportError:
        raise missing_extra("openpyxl", "excel") from None
    for _ in source.members(""):  # checks the size of all parts
        pass
    try:
        book = openpyxl.load_workbook(io.BytesIO(source.raw), read_only=True, data_only=True)
        sheet = book.worksheets[0].iter_rows(values_only=True)
        rows = [(line, [cell_text(cell) for cell in row]) for line, row in enumerate(sheet, start=1)]
    except Exception as error:  # openpyxl passes on errors of its XML parser and of wrong numbers
        raise source.error(None, f"the workbook cannot be read ({quoted(error)[1:-1]}); save it as .csv") from None
    n_columns = max((len(row) for _, row in rows), default=0)
    return [(line, row + [""] * (n_columns - len(row))) for line, row in rows if any(row)]


def arrow_table(source: SourceFile) -> Any:
    """Return the table in a Parquet or Feather file."""
    try:
        import pyarrow as pa
        from pyarrow import feather, parquet
    except ImportError:
        raise missing_extra("pyarrow", "arrow") from None
    buffer = io.BytesIO(source.raw)
    try:
        if source.suffix == ".parquet":
            facts = parquet.ParquetFile(buffer).metadata
            source.check_size(4 * facts.num_rows * facts.num_columns, f"{facts.num_rows * facts.num_columns:,} cells")
            return parquet.read_table(buffer)
        return feather.read_table(buffer)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, RankingError):
            raise
        raise source.error(None, f"the file cannot be read ({quoted(error)[1:-1]})") from None


def json_documents(source: SourceFile) -> list[Any]:
    """Return the JSON value of a file, or the values of its lines."""
    text = source.decoded(source.raw, "utf-8")
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError) as error:
        problem = error
    try:
        lines = [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        lines = []
    if len(lines) < 2:
        line = getattr(problem, "lineno", None)
        raise source.error(line, f"this is not JSON ({getattr(problem, 'msg', 'too deep or too long')})") from None
    return lines


def json_records(source: SourceFile) -> Any:
    """Return the rows of a JSON file: a list, an object of columns, or one value per line."""
    values = json_documents(source)
    if len(values) > 1 or not isinstance(values[0], list | dict):
        return values
    content = values[0]
    if isinstance(content, dict) and not all(isinstance(column, list) for column in content.values()):
        lists = [value for value in content.values() if isinstance(value, list) and value]
        if len(lists) != 1:
            raise source.error(1, "this JSON object is neither a table nor a cast vote record")
        return lists[0]
    return content


def table_of_data(data: Any, source: SourceFile) -> Table:
    """Return a frame, an Arrow table, a mapping of columns, a list of objects or a list of lists as a table."""
    if hasattr(data, "to_pylist") and hasattr(data, "column_names"):
        data = dict(zip(data.column_names, (column.to_pylist() for column in data.columns), strict=True))
    if is_frame(data) or isinstance(data, Mapping):
        names = data.columns if is_frame(data) else data
        columns = {str(name): list(data[name]) for name in names}
        records: Iterable[Any] = zip(*columns.values(), strict=False)
        if len({len(values) for values in columns.values()}) > 1:
            raise source.error(None, "the columns have different lengths")
        keys = list(columns)
    else:
        rows = list(data)
        if not rows or not all(isinstance(row, Mapping) for row in rows):
            if not all(isinstance(row, list | tuple) for row in rows) or not rows:
                raise source.error(None, "a table is a list of objects, or of lists of item names")
            rows = [{"choice": list(row)} for row in rows]
        keys = list(dict.fromkeys(key for row in rows for key in row))
        records = ([row.get(key) for key in keys] for row in rows)
    parts = [[entries(cell) for cell in record] for record in records]
    sizes = [max((len(row[index]) for row in parts), default=1) for index in range(len(keys))]
    lists = [any(isinstance(row[index], list) for row in parts) for index in range(len(keys))]
    if max(sizes, default=0) > MAX_LIST:
        raise source.error(None, f"a list has more than {MAX_LIST:,} entries")
    header = [
        name if not lists[index] else f"{name} choice {number}"
        for index, name in enumerate(map(printable, keys))
        for number in range(1, sizes[index] + 1)
    ]
    filled = (
        [cell for part, size in zip(row, sizes, strict=True) for cell in (*part, *[""] * (size - len(part)))]
        for row in parts
    )
    return table_of(chain([(1, header)], enumerate(filled, start=1)), source.with_options(header=True))


def entries(cell: Any) -> Sequence[str]:
    """Return the texts of a cell: a tuple of one, or the list of those that a list holds."""
    if isinstance(cell, list | np.ndarray):
        return [cell_text(each) for each in cell]
    return (cell_text(cell),)


def cell_text(value: object) -> str:
    """Return the content of a cell as text, integers without a decimal point."""
    if isinstance(value, str):
        return value
    if is_missing(value):
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)

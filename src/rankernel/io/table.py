"""Tables with named columns of text, from delimited text, workbooks, Arrow files, JSON and data frames."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import warnings
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import IntArray
from rankernel._utils.checks import printable
from rankernel.columns import Column, cell_text
from rankernel.errors import Argument, RankingError, require
from rankernel.io.source import HEAD, SourceFile, quoted, unprefixed_cell
from rankernel.rankings import is_frame

Row = tuple[int, list[str]]  # line number and cells

DELIMITERS = (",", ";", "\t", "|")
UTF8_MARK = b"\xef\xbb\xbf"
LONE_RETURN = re.compile(b"\r(?!\n)")
DOUBLE_COLONS = re.compile(r"[^\s:,;]+(?:::[^\s:,;]+)+\r?\n")
SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\r?\n')  # of Excel
LARGE = 2**22  # bytes from which splitting by pandas, its import included, is faster (benchmarks/reading.py)
SAMPLE = 200  # lines that decide about the delimiter
BLOCK = 4096  # rows that are coded at once
EXCEL, ARROW, JSON = (".xlsx", ".xlsm"), (".parquet", ".feather", ".arrow"), (".json", ".jsonl", ".ndjson")


@dataclass(frozen=True)
class Table:
    """A table of a file: columns by their names, the line of each row, and the line that names the columns."""

    source: SourceFile
    columns: Mapping[str, Column]
    lines: IntArray
    header_line: int = 1

    def __len__(self) -> int:
        return len(self.lines)

    def error(self, row: int | None, *problem: object) -> RankingError:
        """Return the error for a problem in a row, or in the header if the row is None."""
        return self.source.error(self.header_line if row is None else int(self.lines[row]), *problem)

    def row_name(self, row: int) -> str:
        """Return the line of a row, for messages."""
        return f"line {self.lines[row]}"

    @property
    def listing(self) -> str:
        """The first names of columns, for messages."""
        return f"the columns are {', '.join(quoted(name)[1:-1] for name in list(self.columns)[:40])}"

    def check_columns(self) -> None:
        """Raise an error if a column that the options name does not exist."""
        for name, argument in self.source.options.named_columns.items():
            if name not in self.columns:
                raise self.error(None, Argument(argument), f" names the column {quoted(name)}; {self.listing}")

    def labels(self, name: str) -> NDArray[np.str_]:
        """Return the texts of a column, without the apostrophes that protect them from spreadsheets."""
        column = self.columns[name]
        return np.array([unprefixed_cell(text) for text in column.texts], dtype=np.str_)[column.codes]


def read_table(source: SourceFile) -> Table:
    """Return the table in a file, by its suffix, or in its text; it is cached."""
    if source.table is None:
        if source.suffix in EXCEL:
            source.table = table_of_rows(excel_rows(source), source)
        elif source.suffix in ARROW:
            source.table = table_of_data(arrow_table(source), source)
        elif source.suffix in JSON:
            source.table = table_of_data(json_records(source), source)
        else:
            source.table = text_table(source)
    table: Table = source.table
    return table


# ---------------------------------------------------------------------- delimited text


def text_table(source: SourceFile) -> Table:
    """Return the table in a delimited text."""
    if source.options.delimiter == "auto" and DOUBLE_COLONS.match(source.head):  # of MovieLens
        source = source.with_options(delimiter="\t")
        source.raw = source.raw.replace(b"::", b"\t")
    delimiter = delimiter_of(source.head, source)
    if 4 * len(source.raw) > source.limit:
        n_cells = source.raw.count(delimiter.encode()) + source.raw.count(b"\n")
        source.check_size(4 * n_cells, f"{n_cells:,} cells")
    large = len(source.raw) >= LARGE and find_spec("pandas") is not None
    return (split_by_pandas(source, delimiter) if large else None) or table_of_rows(
        split_rows(source, delimiter), source
    )


def table_of_rows(rows: Iterable[Row], source: SourceFile) -> Table:
    """Return rows as a table; the first row, or the first rows of a survey, name the columns."""
    rows = iter(rows)
    header_line, names, body = read_header(list(islice(rows, 3)), source)
    # The number of each text, in the order of their first lookup.
    numbers: list[defaultdict[str, int]] = [defaultdict(itertools.count().__next__) for _ in names]
    codes, lines = [array("i") for _ in names], array("q")

    def checked() -> Iterator[list[str]]:
        for line, cells in chain(body, rows):
            if len(cells) > len(names) and not any(cells[len(names) :]):
                del cells[len(names) :]
            if len(cells) != len(names):
                advice = "; remove the lines before the names of the columns" if len(names) == 1 else ""
                raise source.error(line, f"the row has {len(cells)} cells but there are {len(names)} columns{advice}")
            lines.append(line)
            yield cells

    found = checked()
    while block := list(islice(found, BLOCK)):
        for cells, number, coded in zip(zip(*block, strict=True), numbers, codes, strict=True):
            coded.extend(map(number.__getitem__, cells))
    columns = [Column.of_codes(np.array(coded), number, True) for coded, number in zip(codes, numbers, strict=True)]
    return named_table(source, names, columns, np.array(lines, dtype=np.int64), header_line)


def named_table(
    source: SourceFile, names: Sequence[str], columns: Sequence[Column], lines: IntArray, header_line: int
) -> Table:
    """Return a table without empty columns that have no name; equal names are an error."""
    found: dict[str, tuple[int, Column]] = {}
    for number, (name, column) in enumerate(zip(names, columns, strict=True), start=1):
        if name in found:
            problem = f"columns {found[name][0]} and {number} are both named {quoted(name)}; if the first row is data, "
            raise source.error(header_line, problem, "give ", Argument("header", False))
        if name or any(column.texts) or len(names) == 1:
            found[name] = number, column
    return Table(source, {name: column for name, (_, column) in found.items()}, lines, header_line)


def read_header(rows: list[Row], source: SourceFile) -> tuple[int, list[str], list[Row]]:
    """Return line and names of the columns, and those of the first three rows that are data.

    Columns of a question of Qualtrics or SurveyMonkey are named like those of Google Forms: ``question [item]``.
    """
    if not rows:
        raise source.error(1, "the file is empty; its first line must name the columns")
    (line, cells), *body = rows
    names = [cell.strip() for cell in cells]
    if source.options.header is False:
        return line, [str(number) for number in range(1, len(names) + 1)], rows
    below = [cell.strip() for cell in body[0][1]] if body else []
    if len(body) == 2 and any(
        '{"ImportId":' in cell for cell in body[1][1]
    ):  # Qualtrics: names, questions, identifiers
        for index, (question, identifier) in enumerate(zip(below, body[1][1], strict=False)):
            if " - " in question and '"QID' in identifier and re.search("_[0-9]+$", names[index]):
                names[index] = "{} [{}]".format(*question.rsplit(" - ", 1))
        return line, names, []
    empty = [not name for name in names]
    if (
        sum(empty) > 1
        and len(below) == len(names)
        and all(name or item for name, item in zip(names, below, strict=True))
    ):
        question = ""  # SurveyMonkey: questions, each above its first item, then their items
        for index, item in enumerate(below):
            question = names[index] or question
            if empty[index] or empty[index + 1 : index + 2] == [True]:
                names[index] = f"{question} [{item}]" if question and item else item or names[index]
        return line, names, body[1:]
    return line, names, body


def split_by_pandas(source: SourceFile, delimiter: str) -> Table | None:
    """Return the table split by pandas, or None if the csv module may split it otherwise or must report an error."""
    import pandas as pd

    raw = source.raw if source.encoding.lower().replace("-", "") == "utf8" else source.text.encode("utf-8", "replace")
    if b"\0" in raw or not delimiter.isascii() or (b"\r" in raw and LONE_RETURN.search(raw)):
        return None
    raw = raw.removeprefix(UTF8_MARK)
    raw = raw.replace(b"\r\n", b"\n") if b"\r" in raw else raw
    rows = list(islice(split_rows(source, delimiter, source.head), 4))
    header_line, names, data = read_header(rows[:3], source)
    data += rows[3:]
    if not data:
        return None
    first_line, start = data[0][0], 0
    for _ in range(first_line - 1):
        start = raw.find(b"\n", start) + 1
    end, sign = len(raw) - len(raw[-HEAD:]) + len(raw[-HEAD:].rstrip(b"\n")), re.escape(delimiter.encode())
    has_quotes = raw.find(b'"', start) >= 0
    if raw.startswith(UTF8_MARK, start) or (  # which pandas would remove; or a quotation mark within a cell
        has_quotes and re.compile(rb'[^"\n%b]"[^"\n%b]' % (sign, sign)).search(raw, start)
    ):
        return None
    quoting = csv.QUOTE_MINIMAL if has_quotes else csv.QUOTE_NONE

    def split(**options: Any) -> Any:
        file = io.BytesIO(raw)
        file.seek(start)
        with warnings.catch_warnings(action="error", category=pd.errors.DtypeWarning):
            return pd.read_csv(file, header=None, na_filter=False, quoting=quoting, sep=delimiter, **options)

    texts = cache(lambda: split(dtype=str))
    try:
        frame = split()
    except pd.errors.DtypeWarning:  # numbers and texts in different parts of a column
        frame = texts()
    except ValueError:  # such as rows that are too long
        return None
    kinds = [frame[index].dtype.kind for index in frame]
    n_inside = sum(
        int(frame[index].str.count(sign.decode()).sum()) for index in frame if has_quotes and kinds[index] not in "iufb"
    )
    n_rows, n_columns = frame.shape
    blocks = [slice(first, min(first + HEAD, end)) for first in range(start, end, HEAD)]
    body = np.frombuffer(raw, dtype=np.uint8)
    n_lines, n_delimiters = (sum(np.count_nonzero(body[b] == ord(each)) for b in blocks) for each in ("\n", delimiter))
    if n_rows != n_lines + 1 or n_columns != len(names) or n_delimiters - n_inside != n_rows * (n_columns - 1):
        return None  # empty lines, line breaks in cells, or short rows, which pandas pads

    def column(index: int) -> Column:  # numbers such as 007 and 1.50 are read again if their texts are used
        return Column(frame[index], True, (lambda: texts()[index]) if kinds[index] in "iufb" else None)

    lines = np.arange(n_rows, dtype=np.int64) + first_line
    return named_table(source, names, list(map(column, frame)), lines, header_line)


def split_rows(source: SourceFile, delimiter: str, text: str | None = None, strict: bool = True) -> Iterator[Row]:
    """Yield the line number and the cells of each row; if not strict, quotation marks within cells are accepted."""
    text = source.text if text is None else text
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise source.error(line, "there is a null byte; this is not a text table")
    hint = SEPARATOR_LINE.match(text)
    reader = csv.reader(
        io.StringIO(text[hint.end() :] if hint else text, newline=""), delimiter=delimiter, strict=strict
    )
    line = first = 2 if hint else 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + first
    except csv.Error as error:
        raise source.error(line, f"the row cannot be split into cells ({error})") from None


def delimiter_of(text: str, source: SourceFile) -> str:
    """Return the delimiter of the options, or the only one that splits the first rows into equally many cells."""
    if source.options.delimiter != "auto":
        return source.options.delimiter
    hint = SEPARATOR_LINE.match(text)
    if hint:
        return hint[1]
    lines = list(islice(io.StringIO(text.lstrip("\r\n"), newline=""), SAMPLE))
    start, header = "".join(lines), lines[0] if lines else ""
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
        sizes = {len(cells) for _, cells in split_rows(source, delimiter, text)}
    except RankingError:
        return False
    return len(sizes) == 1 and sizes.pop() > 1


# ---------------------------------------------------------------------- workbooks, Arrow, JSON, frames


def excel_rows(source: SourceFile) -> list[Row]:
    """Return the rows of the first sheet of a workbook that are not empty."""
    require("openpyxl", "excel")
    import openpyxl

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
    require("pyarrow", "arrow")
    import pyarrow as pa
    from pyarrow import feather, parquet

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
    """Return the rows of a JSON file: a list, an object of columns, an object with one list, or one value per line."""
    values = json_documents(source)
    if len(values) > 1 or not isinstance(values[0], dict):
        return values[0] if len(values) == 1 and isinstance(values[0], list) else values
    found = values[0]
    if found.keys() == {"Version", "List"}:
        raise source.error(1, "this is a manifest of a cast vote record; read CvrExport.json, or the folder of both")
    if {"columns", "data"} <= found.keys() <= {"columns", "data", "index"}:  # of pandas, split
        return [dict(zip(map(str, found["columns"]), row, strict=False)) for row in found["data"]]
    lists = [value for value in found.values() if isinstance(value, list) and value]
    rows = [value for value in lists if isinstance(value[0], dict)]
    if len(rows) == 1 or (len(lists) == 1 and isinstance(lists[0][0], list)):
        return (rows or lists)[0]
    kinds = {type(value) for value in found.values()}
    if kinds == {dict}:  # of pandas, by the names of the columns or by the numbers of the rows
        if all(key.isdecimal() for key in found) and not all(map(str.isdecimal, next(iter(found.values())))):
            return list(found.values())
        return [{name: column.get(key) for name, column in found.items()} for key in next(iter(found.values()))]
    if kinds and not kinds & {dict, list}:
        return values
    if kinds != {list}:
        raise source.error(1, "this JSON object is neither a table nor a cast vote record")
    return found


def table_of_data(data: Any, source: SourceFile) -> Table:
    """Return a frame, an Arrow table, a mapping of columns, a list of objects or a list of lists as a table."""
    columns: dict[str, Column] = {}
    if hasattr(data, "column_names") or is_frame(data) or isinstance(data, Mapping):
        for name in getattr(data, "column_names", None) or (data.columns if is_frame(data) else data):
            columns[printable(name)] = Column(data[name], True)
    else:
        rows = list(data)
        if not all(isinstance(row, Mapping) for row in rows):
            if not all(isinstance(row, list | tuple) for row in rows):
                raise source.error(None, "a table is a list of objects, or of lists of item names")
            cells = [cell for row in rows for cell in row]
            if len({len(row) for row in rows}) == 1 and any(isinstance(cell, int | float) for cell in cells):
                rows = [{str(number): cell for number, cell in enumerate(row, start=1)} for row in rows]
            else:
                rows = [{"order": row} for row in rows]
        for key in dict.fromkeys(key for row in rows for key in row):
            columns[printable(key)] = Column([row.get(key) for row in rows], True)
    sizes = {len(column.values) for column in columns.values()}
    if len(sizes) != 1:
        problem = "the columns have different lengths" if sizes else "a table is a list of objects, not empty"
        raise source.error(None, problem)
    lines = np.arange(1, sizes.pop() + 1, dtype=np.int64)
    return Table(source, columns, lines)

"""Cast vote records of ranked elections: wide tables, exports of Dominion and NIST, files of Scottish councils."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from typing import Any

from rankernel._utils.checks import printable
from rankernel.errors import Argument, RankingError, missing_extra
from rankernel.io.ballots import Ballots, rankings_of, read_ballots
from rankernel.io.cvr_exports import is_dominion, json_contests, read_dominion
from rankernel.io.orders import Orders
from rankernel.io.read_options import accepts
from rankernel.io.tables import sorted_positions, table_rankings
from rankernel.io.text_files import AnyPath, FileSource, SourceFile
from rankernel.io.text_table import TextTable, split_rows, split_table, table_of
from rankernel.order_tables import column_position
from rankernel.rankings import Rankings

EXCEL = (".xlsx", ".xlsm")
JSON = (".json", ".zip")


@accepts(
    *("contest", "items", "count", "label_columns", "unlisted", "skipped", "repeated", "overvotes", "separator"),
    *("na_values", "fold_case", "blank", "delimiter", "encoding", "max_bytes"),
)
def read_cvr(path: AnyPath, **keywords: Any) -> Rankings:
    """Read one contest of the cast vote record of a ranked election.

    The formats are tables, as .csv or .xlsx, with a column for each choice (``City Council Choice 1 of 4``,
    ``candidate_rank1``) among others; the .csv of Dominion, with header lines of contests, choices and columns and a 0
    or 1 for every candidate and rank; the JSON of Dominion (``CvrExport.json`` with its manifests, in a folder or a
    .zip) and of the NIST common data format, with adjudicated ballots; and the .csv of Scottish councils. Columns that
    name no position are ignored, and ``source`` lists them.

    Parameters
    ----------
    path : path
        The file.
    {options}

    Returns
    -------
    Rankings
        The rankings with ``labels``; ``source`` describes how the file was read, and the repairs.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> text = '''Cast Vote Record,Precinct,Mayor Choice 1 of 2,Mayor Choice 2 of 2,Clerk Choice 1 of 1
    ... 1,North,Ann,Bob,Cy
    ... 2,North,undervote,undervote,Cy
    ... 3,South,overvote,Bob,Dee
    ... 4,South,Bob,undervote,Cy
    ... '''
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "cvr.csv")
    ...     _ = file.write_text(text)
    ...     read_cvr(file, contest="Mayor", overvotes="skip")
    Rankings: 3 rankings of 2 items (3 full)
      Ann > Bob
      Bob > Ann
      Bob > Ann
      read as a cast vote record; title 'Mayor'; ignored: Cast Vote Record, Precinct, Clerk Choice 1 of 1
      repaired: 1 overvoted cell, 1 blank ballot dropped, 'undervote' read as missing (3 cells)
    """
    source = SourceFile.of(path, read_cvr, keywords)
    named, items = list(source.options.named_columns), source.options.items
    ignored: tuple[str, ...] = ()
    if source.suffix in JSON or source.path.is_dir():
        contests = json_contests(source)
        title = chosen_contest(list(contests), source)
        table = contests[title]
    elif source.suffix in EXCEL:
        table, title, ignored = contest_columns(read_excel(source))
    elif is_scottish(source.text):
        return read_scottish(source)
    elif is_dominion(source.text):
        export = read_dominion(source)
        title = chosen_contest(list(export.contests), source)
        table, ignored = export.ballots(title), export.ignored(title, named)
        items = items or export.candidates(title)
    else:
        table, title, ignored = contest_columns(split_table(source.text, source))
    table.check_columns()
    votes, rows = sorted_positions(table.without(named)).distinct()
    ballots = read_ballots(votes, items)
    return table_rankings(table, ballots, FileSource("a cast vote record", title, ignored=ignored), rows)


# ---------------------------------------------------------------------- contests


def chosen_contest(names: Sequence[str], source: SourceFile) -> str:
    """Return the contest of the options: by its name, or by a part that only one name contains."""
    known, wanted = ", ".join(repr(printable(name)) for name in names[:20]), source.options.contest
    if not names:
        raise source.error(None, "there is no contest with ranked choices")
    if wanted is None:
        if len(names) > 1:
            raise source.error(
                None, "there are several contests; choose one with ", Argument("contest", ...), f": {known}"
            )
        return names[0]
    part = wanted.lower().strip()
    fitting = [name for name in names if name.lower() == part] or [name for name in names if part in name.lower()]
    if len(fitting) != 1:
        problem = "fits several contests" if fitting else "fits no contest"
        raise source.error(None, Argument("contest", wanted), f" {problem}; there are {known}")
    return fitting[0]


def contest_columns(table: TextTable) -> tuple[TextTable, str, tuple[str, ...]]:
    """Return the columns of one contest together with the named ones, its name, and the ignored columns."""
    named = table.source.options.named_columns
    table.check_columns()
    others = [name for name in table.columns if name not in named]
    positions = {name: position for name in others if (position := column_position(name)) is not None}
    contests = list(dict.fromkeys(position.contest for position in positions.values()))
    if not contests:
        columns = ", ".join(printable(name) for name in table.columns[:12])
        problem = f"no column names a position, such as 'Mayor Choice 1 of 4'; the columns are {columns}"
        raise table.error(None, problem)
    contest = chosen_contest(contests, table.source)
    used = {name for name, position in positions.items() if position.contest == contest} | set(named)
    ignored = tuple(name for name in table.columns if name not in used)
    return table.without(ignored), contest, ignored


# ---------------------------------------------------------------------- Excel


def read_excel(source: SourceFile) -> TextTable:
    """Return the first sheet of an Excel workbook."""
    try:
        import openpyxl
    except ImportError:
        raise missing_extra("openpyxl", "excel") from None
    try:
        with zipfile.ZipFile(source.path) as parts:
            n_bytes = sum(part.file_size for part in parts.infolist())
        source.check_expanded_size(n_bytes, source.path.stat().st_size)
        book = openpyxl.load_workbook(source.path, read_only=True, data_only=True)
        rows = [[cell_text(cell) for cell in row] for row in book.worksheets[0].iter_rows(values_only=True)]
        book.close()
    except (zipfile.BadZipFile, KeyError, IndexError, ValueError, TypeError, SyntaxError) as error:
        if isinstance(error, RankingError):
            raise
        raise source.error(None, f"the workbook cannot be read ({error}); save it as .csv") from None
    n_columns = max((len(row) for row in rows), default=0)
    padded = ((line, row + [""] * (n_columns - len(row))) for line, row in enumerate(rows, start=1) if any(row))
    return table_of(padded, source)


def cell_text(value: object) -> str:
    """Return the content of a cell as text, integers without a decimal point."""
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


# ---------------------------------------------------------------------- Scottish councils

SCOTTISH = re.compile(r"\s*(\"?)[0-9]{1,6}\1\s*,\s*(\"?)[0-9]{1,6}\2\s*,*\s*\r?\n")
CANDIDATE = re.compile(r"Candidate\s+([0-9]{1,6})", re.IGNORECASE)
INTEGER = re.compile("[0-9]{1,18}")


def is_scottish(text: str) -> bool:
    """Whether a text is a file of a Scottish council: it begins with two numbers and names numbered candidates."""
    return bool(SCOTTISH.match(text) and re.search(r"^\W*Candidate\s+1\b", text, re.IGNORECASE | re.MULTILINE))


def read_scottish(source: SourceFile) -> Rankings:
    """Return the ballots of a Scottish council: numbers of candidates and seats, counted ballots, then the names."""
    rows = [(line, trimmed(cells)) for line, cells in split_rows(source.text, ",", source, strict=False)]
    rows = [(line, cells) for line, cells in rows if cells]
    n_items, seats = map(int, rows[0][1])
    rest = rows[1:]
    first = next((index for index, (_, cells) in enumerate(rest) if CANDIDATE.fullmatch(cells[0])), len(rest))
    items, title = scottish_names(rest[first:], n_items, source)
    ballots = []
    for line, cells in rest[:first]:
        for cell in cells:
            if not INTEGER.fullmatch(cell):
                raise source.error(line, f"{printable(cell)!r} is not a number; a ballot is a count and candidates")
        count, *order = map(int, cells)
        if count < 1:
            raise source.error(line, "the count of the ballot is 0; it must be at least 1")
        ballots.append((line, count, [[number] for number in order]))
    orders = Orders.of(ballots)
    ranks = orders.ranks(n_items, source, "candidate")
    about = FileSource("a Scottish council election", title, seats)
    return rankings_of(Ballots(ranks, items), orders.counts, about, source)


def trimmed(cells: list[str]) -> list[str]:
    """Return the cells of a row without surrounding spaces and without empty cells at its end."""
    stripped = [cell.strip() for cell in cells]
    while stripped and not stripped[-1]:
        stripped.pop()
    return stripped


def scottish_names(rows: list[tuple[int, list[str]]], n_items: int, source: SourceFile) -> tuple[tuple[str, ...], str]:
    """Return the names of the candidates in the order of their numbers, and the ward."""
    names: dict[int, str] = {}
    title = ""
    for line, cells in rows:
        candidate = CANDIDATE.fullmatch(cells[0])
        if candidate and len(cells) > 1:
            number = int(candidate[1])
            if number in names or not 1 <= number <= n_items:
                raise source.error(
                    line, f"candidate {number} is named twice, or is not one of the {n_items} candidates"
                )
            names[number] = cells[1]
        elif candidate or title:
            raise source.error(line, "the lines after the ballots must be candidates with their names, then the ward")
        else:
            title = " ".join(cells).strip('" ')  # some files quote the ward twice
    if len(names) < n_items:
        raise source.error(None, f"the first line states {n_items} candidates, but {len(names)} are named")
    return source.item_names([names[number] for number in range(1, n_items + 1)]), title

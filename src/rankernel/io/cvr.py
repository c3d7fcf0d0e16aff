"""Cast vote records of ranked elections: wide tables, the exports of Dominion and NIST, Scottish council files."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rankernel._utils import checks
from rankernel._utils.checks import printable
from rankernel.encoding import Unlisted, check_items, check_unlisted
from rankernel.errors import RankingError, missing_extra
from rankernel.io.ballots import BallotRules, Overvotes, Repeated, Skipped, read_ballots
from rankernel.io.cvr_json import json_contests
from rankernel.io.dominion import looks_dominion, read_dominion
from rankernel.io.file_data import About, FileRankings
from rankernel.io.files import MOST_BYTES, AnyPath, check_unpacked_size, fail, read_text
from rankernel.io.records import Records, coded, records_of_text
from rankernel.io.scottish import looks_scottish, scottish_rankings
from rankernel.io.table import Blank, assembled, in_order_of_positions, read_counts
from rankernel.order_tables import column_position

SHEETS = (".xlsx", ".xlsm")
JSONS = (".json", ".zip")
SEPARATOR = "\x1f"  # between the names of an overvote where the file gives each by itself; not part of any


def read_cvr(
    path: AnyPath,
    contest: str | None = None,
    *,
    items: Iterable[object] | None = None,
    count: str | None = None,
    labels: Sequence[str] = (),
    unlisted: Unlisted = "last",
    skipped: Skipped = "close",
    repeated: Repeated = "first",
    overvotes: Overvotes = "stop",
    separator: str | None = None,
    nothing: Sequence[str] = (),
    fold_case: bool = False,
    blank: Blank = "drop",
    delimiter: str = "auto",
    encoding: str = "utf-8",
    max_bytes: int = MOST_BYTES,
) -> FileRankings:
    """Read one contest of the cast vote record of a ranked election.

    Known are tables, as .csv or .xlsx, with a column for each choice (``City Council Choice 1 of 4``,
    ``candidate_rank1``) among others; the .csv of Dominion, with lines of contests, choices and columns above a 0 or 1
    for every candidate and rank; the JSON of Dominion (``CvrExport.json`` beside its manifests, in a folder or a .zip)
    and of the NIST common data format, adjudicated ballots as adjudicated; and the .csv of Scottish councils. Columns
    that state no place are passed over, and ``about`` says so.

    Parameters
    ----------
    path : path
        The file.
    contest : str, optional
        The contest, or a part of its name that no other one has; needed where the file has several.
    items, count, labels, unlisted, skipped, repeated, overvotes, separator, nothing, fold_case, blank
        As in :func:`read_csv`. In what Dominion and NIST export, overvotes name their candidates.
    delimiter, encoding, max_bytes
        As in :func:`read_csv`.

    Returns
    -------
    FileRankings
        The rankings, with ``labels``, ``repairs`` and ``about``.

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
    ...     read_cvr(file, "Mayor", overvotes="skip")
    FileRankings: 3 rankings of 2 items (3 full)
      Ann > Bob
      Bob > Ann
      Bob > Ann
      read as a cast vote record; title 'Mayor'; passed over: Cast Vote Record, Precinct, Clerk Choice 1 of 1
      mended: 1 overvoted cell, 1 blank ballot left out, 'undervote' read as nothing (3 cells)
    """
    check_unlisted(unlisted)
    names = None if items is None else check_items(items)
    chosen, others = checks.check_names("labels", labels), [] if count is None else [checks.check_text("count", count)]
    words = tuple(checks.check_names("nothing", nothing))
    file = checks.check_path("path", path)
    passed: tuple[str, ...] = ()
    kind = Path(file.name.lower().removesuffix(".gz")).suffix
    if kind in JSONS or file.is_dir():
        table, title = one_contest(json_contests(path, max_bytes, SEPARATOR), contest, path)
        separator = SEPARATOR
    elif kind in SHEETS:
        table, title, passed = columns_of_contest(read_sheet(path, max_bytes), contest, [*chosen, *others])
    else:
        text = read_text(path, encoding, max_bytes)
        if looks_scottish(text):
            return scottish_rankings(text, path, unlisted, blank, max_bytes)
        if looks_dominion(text):
            export, kept, separator = read_dominion(text, delimiter, path, max_bytes), [*chosen, *others], SEPARATOR
            title = contest_named(list(export.contests), contest, path)
            table, passed = export.ballots(title, kept, SEPARATOR), export.passed_over(title, kept)
            names = names or export.candidates(title)
        else:
            records = records_of_text(text, delimiter, path, max_bytes)
            table, title, passed = columns_of_contest(records, contest, [*chosen, *others])
    rules = BallotRules(skipped, repeated, overvotes, separator, words, fold_case, max_bytes)
    columns = {name: table.column(name, "labels") for name in chosen}
    votes, rows = in_order_of_positions(table.without([*columns, *others])).distinct()
    ballots = read_ballots(votes, names, rules)
    about = About("a cast vote record", title, passed_over=passed)
    return assembled(ballots, rows, read_counts(table, count), columns, unlisted, blank, path, about)


# ---------------------------------------------------------------------- which contest


def one_contest(contests: Mapping[str, Records], wanted: str | None, path: AnyPath) -> tuple[Records, str]:
    """Return the records of a contest and its name."""
    name = contest_named(list(contests), wanted, path)
    return contests[name], name


def contest_named(names: Sequence[str], wanted: str | None, path: AnyPath) -> str:
    """Return the contest that is wanted: by its name, or by a part of it that only one has."""
    known = ", ".join(repr(printable(name)) for name in names[:20])
    if not names:
        raise fail(path, None, "there is no contest with ranked choices in it")
    if wanted is None:
        if len(names) > 1:
            raise fail(path, None, f"there are several contests; choose one with contest=: {known}")
        return names[0]
    small = checks.check_text("contest", wanted).lower().strip()
    fitting = [name for name in names if name.lower() == small] or [name for name in names if small in name.lower()]
    if len(fitting) != 1:
        problem = "is in the names of several contests" if fitting else "is in the name of no contest"
        raise fail(path, None, f"{printable(wanted)!r} {problem}; there are {known}")
    return fitting[0]


def columns_of_contest(
    table: Records, contest: str | None, kept: Sequence[str]
) -> tuple[Records, str, tuple[str, ...]]:
    """Return the columns of one contest with those to keep beside them, its name, and the columns passed over."""
    for name in kept:
        table.position(name, "labels or count")
    places = {
        name: place for name in table.columns if name not in kept and (place := column_position(name)) is not None
    }
    contests = list(dict.fromkeys(place.contest for place in places.values()))
    if not contests:
        columns = ", ".join(printable(name) for name in table.columns[:12])
        raise fail(
            table.path,
            table.head,
            f"no column states a place, such as 'Mayor Choice 1 of 4'; the columns are {columns}",
        )
    chosen = contest_named(contests, contest, table.path)
    used = {name for name, place in places.items() if place.contest == chosen}
    wanted = [place for place, name in enumerate(table.columns) if name in used or name in kept]
    passed = tuple(name for name in table.columns if name not in used and name not in kept)
    return table.with_columns(wanted), chosen, passed


# ---------------------------------------------------------------------- spreadsheets


def read_sheet(path: AnyPath, max_bytes: int) -> Records:
    """Return the first sheet of a workbook."""
    try:
        import openpyxl
    except ImportError:
        raise missing_extra("openpyxl", "excel") from None
    try:
        with zipfile.ZipFile(path) as parts:
            n_bytes = sum(part.file_size for part in parts.infolist())
            check_unpacked_size(n_bytes, Path(path).stat().st_size, path, max_bytes)
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        sheet = book.worksheets[0]
        rows = [[cell_text(cell) for cell in row] for row in sheet.iter_rows(values_only=True)]
        book.close()
    except (zipfile.BadZipFile, KeyError, IndexError, ValueError, TypeError, SyntaxError) as error:
        if isinstance(error, RankingError):
            raise
        raise fail(path, None, f"this is not a workbook that can be read ({error}); save it as .csv") from None
    width = max((len(row) for row in rows), default=0)
    padded = ((line, row + [""] * (width - len(row))) for line, row in enumerate(rows, start=1) if any(row))
    return coded(padded, path)


def cell_text(value: object) -> str:
    """Return the content of a cell as text; whole numbers without a point."""
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)

"""Delimited text tables of rankings: one row per ranking, one column per item or one column per position."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from rankernel._utils import FloatArray, IntArray, Mask, RankArray
from rankernel._utils.checks import check_instance, check_labels, check_path, printable
from rankernel.errors import Argument, RankingError
from rankernel.io.ballots import Ballots, Markers, rankings_of, read_ballots
from rankernel.io.read_options import Layout, accepts
from rankernel.io.text_files import AnyPath, FileSource, SourceFile, check_writable_name, warn_of_formulas, write_text
from rankernel.io.text_table import TextTable, split_table
from rankernel.order_tables import are_consecutive, column_position
from rankernel.rankings import FREE, MAX_VOTERS, Rankings, are_average_ranks, as_rankings, dense_ranks, row_slices

INTEGER = re.compile(r"([0-9]{1,30})(?:\.0*)?")
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
# Words in names of columns that are not items.
BOOKKEEPING_WORDS = """
age ballot ballotid batch box case count counts cvr cvrid date day district entry id ids index line n name no num number
precinct record region respondent response row session state station sum survey tabulator time timestamp total type
unnamed user userid users vote voter voterid voters votes ward weight weights year
"""
BOOKKEEPING = frozenset(BOOKKEEPING_WORDS.split())


@accepts(
    *("layout", "items", "count", "label_columns", "ignore", "unlisted", "ascending", "skipped", "repeated"),
    *("overvotes", "separator", "na_values", "fold_case", "blank", "delimiter", "encoding", "max_bytes"),
)
def read_csv(path: AnyPath, **keywords: Any) -> Rankings:
    """Read rankings from a delimited text table, plain or gzipped: one row per ranking, named columns.

    There are three layouts. With one column per item (``layout="ranks"``) a cell holds a rank: an integer, or the mean
    rank of tied items; smaller is better, equal ranks are tied, gaps are closed, and an empty cell or -1 is not ranked.
    With ``layout="scores"`` it holds a score, any number; larger is better. With one column per position
    (``layout="positions"``; columns such as ``rank 1``, ``choice_2``, ``3rd choice``) a cell names an item. This is the
    layout of cast vote records of ranked-choice elections, with their irregularities: an empty cell, or a missing-value
    marker such as *skipped* or *undervote*, is a skipped position if a marked one follows; a cell that says *overvote*,
    or names several items joined by ``separator``, is an overvote.

    Names that differ only in case or spaces give a :class:`ReadingWarning`.

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
    >>> text = '''ward,choice 1,choice 2,choice 3
    ... North,Ann,Bob,
    ... South,Bob,skipped,Cy
    ... South,Cy,Cy,Ann
    ... '''
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "votes.csv")
    ...     _ = file.write_text(text)
    ...     votes = read_csv(file, label_columns=["ward"])
    >>> votes
    Rankings: 3 rankings of 3 items (3 full)
      Ann > Bob > Cy
      Bob > Cy > Ann
      Cy > Ann > Bob
      read as a table with one column per position
      repaired: 1 skipped cell, 1 repeated name, 'skipped' read as missing (1 cell)
    >>> votes[votes.labels["ward"] == "South"]
    Rankings: 2 rankings of 3 items (2 full)
      Bob > Cy > Ann
      Cy > Ann > Bob
    """
    source = SourceFile.of(path, read_csv, keywords)
    options, table = source.options, split_table(source.text, source)
    table.check_columns()
    columns = table.without(options.named_columns)
    if not columns.columns:
        raise table.error(None, "no column is left for the votes besides those of ", *NOT_VOTES)
    votes, rows = columns.distinct()
    layout = detected_layout(votes) if options.layout == "auto" else options.layout
    if options.ascending and layout != "scores":
        raise RankingError(
            Argument("ascending", True), " requires ", Argument("layout", "scores"), "; smaller ranks are always better"
        )
    ballots, description = read_votes(votes, layout)
    return table_rankings(table, ballots, FileSource(description, ignored=options.ignore), rows)


def table_rankings(table: TextTable, ballots: Ballots, about: FileSource, rows: IntArray) -> Rankings:
    """Return ballots with the counts and label columns of their table; ``rows`` gives the ballot of each row."""
    labels = {name: table.column(name, "label_columns") for name in table.source.options.label_columns}
    return rankings_of(ballots, read_counts(table), about, table.source, rows, labels)


def read_votes(votes: TextTable, layout: Layout) -> tuple[Ballots, str]:
    """Return the ballots in the columns of votes, and a description of the layout."""
    options = votes.source.options
    if layout == "positions":
        return read_ballots(sorted_positions(votes), options.items), "a table with one column per position"
    if layout == "pairs":
        raise RankingError(Argument("layout", "pairs"), " is read by read_pairs, or by read")
    numbers, names = item_columns(votes, layout)
    if layout == "ranks":
        return Ballots(integer_ranks(numbers, votes, names), names), "a table of ranks, one column per item"
    listed = ~np.isnan(numbers)
    ranks = dense_ranks(np.where(listed, numbers if options.ascending else -numbers, 0.0), listed, "free")
    better = "smaller" if options.ascending else "larger"
    return Ballots(ranks, names), f"a table of scores, one column per item, {better} is better"


def read_counts(table: TextTable) -> IntArray:
    """Return the number of voters of each row."""
    name = table.source.options.count
    if name is None:
        return np.ones(len(table), dtype=np.int64)
    column = table.select([table.index(name, "count")])

    def number(cell: str) -> int:
        integer = INTEGER.fullmatch(cell)
        return min(int(integer.group(1)), MAX_VOTERS + 1) if integer else 0

    counts: IntArray = column.numbers(number, np.int64)[:, 0]
    if (counts < 1).any():
        row = int(np.argmax(counts < 1))
        cell = printable(column.texts[column.codes[row, 0]])
        raise table.error(row, f"the count {cell!r} is not a positive integer")
    return counts


# ---------------------------------------------------------------------- detection of the layout

NOT_VOTES = (Argument("label_columns"), ", ", Argument("ignore"), " and ", Argument("count"))


def detected_layout(votes: TextTable) -> Layout:
    """Return the only layout that is consistent with a table."""
    positions = [column_position(name) for name in votes.columns]
    other = first_nonnumeric_cell(votes)
    if None not in positions:
        if other is None:
            raise layout_error(votes, None, "the columns look like positions but hold only numbers or nothing")
        sorted_positions(votes)
        return "positions"
    sorted_positions(votes)  # an error if some columns look like positions
    if other is not None:
        row, column, cell = other
        raise layout_error(votes, row, f"column {printable(column)!r} holds {printable(cell)!r}, which is not a rank")
    check_plausible_ranks(votes)
    return "ranks"


def layout_error(votes: TextTable, row: int | None, problem: str) -> RankingError:
    """Return the error for a table whose layout is ambiguous."""
    return votes.error(
        row,
        f"{problem}; name columns without votes in ",
        *NOT_VOTES,
        ", or give ",
        Argument("layout", "ranks"),
        " (one column per item, cells are ranks), ",
        Argument("layout", "positions"),
        " (one column per position, cells are names) or ",
        Argument("layout", "scores"),
        " (one column per item, larger is better)",
    )


def first_nonnumeric_cell(votes: TextTable) -> tuple[int, str, str] | None:
    """Return row, column and content of the first cell that is neither a rank nor missing, if there is one."""
    markers = Markers.of(votes.source.options)
    other = np.zeros(max(len(votes.texts), 1), dtype=bool)
    for code in votes.used():
        cell = votes.texts[code]
        is_rank = NUMBER.fullmatch(cell) and (float(cell) >= 0 or float(cell) == FREE)
        other[code] = not is_rank and not markers.is_missing(cell) and not markers.is_ambiguous(cell)
    where = other[votes.codes]
    if not where.any():
        return None
    row, column = divmod(int(np.argmax(where)), where.shape[1])
    return row, votes.columns[column], votes.texts[votes.codes[row, column]]


def check_plausible_ranks(votes: TextTable) -> None:
    """Raise an error for numbers that may not be ranks: of a column of bookkeeping, or with gaps, as scores have."""
    for name in votes.columns:
        if set(re.findall(r"[^\W_]+", re.sub("[0-9]+", " ", name.lower()))) <= BOOKKEEPING:
            raise layout_error(votes, None, f"column {printable(name)!r} does not look like an item")
    numbers, _ = item_columns(votes, "ranks")
    best = np.nanmin(numbers, initial=1.0)  # ranks begin with 1 or 0
    ordered = np.sort(numbers, axis=1)  # NaN comes last
    # Competition and dense ranking (1 2 2 4, 1 2 2 3) never exceed the index of the sorted item, nor do mean ranks.
    beyond = ordered > best + np.arange(ordered.shape[1])
    integer = np.isnan(numbers) | (numbers == np.floor(numbers))
    rows = np.flatnonzero((beyond.any(axis=1) & integer.all(axis=1)) | (ordered[:, 0] > best))
    if len(rows):
        row = int(rows[0])
        listed = ", ".join(f"{value:g}" for value in ordered[row][~np.isnan(ordered[row])])
        raise layout_error(votes, row, f"the numbers {listed} leave out ranks, as scores do")


# ---------------------------------------------------------------------- one column per item


def item_columns(votes: TextTable, layout: Layout) -> tuple[FloatArray, tuple[str, ...]]:
    """Return the numbers in the cells, NaN where missing, and the items that the columns name."""
    if "" in votes.columns:
        nameless = votes.columns.index("") + 1
        raise votes.error(None, f"column {nameless} has no name; name the item, or give ", Argument("ignore", ""))
    items = votes.source.options.items
    names = votes.columns if items is None else items
    known = frozenset(names)
    for name in votes.columns:
        if name not in known:
            problem = f"column {printable(name)!r} is not one of the ", Argument("items"), "; name it in "
            raise votes.error(None, *problem, Argument("ignore", ...))
    votes.source.check_table_size(votes.n_rows, len(names))
    votes = votes if items is None else in_order(votes, names)
    markers, invalid = Markers.of(votes.source.options), set()

    def number(cell: str) -> float:
        if NUMBER.fullmatch(cell):
            value = float(cell)
            if layout == "ranks" and value == FREE:
                return np.nan
            if layout == "scores" or value >= 0:
                return value
        elif markers.is_missing(cell) or markers.is_ambiguous(cell):
            return np.nan
        invalid.add(cell)
        return np.nan

    numbers: FloatArray = votes.numbers(number, np.float64)
    if invalid:
        codes = [code for code, text in enumerate(votes.texts) if text in invalid]
        check_cells(votes, np.isin(votes.codes, codes), layout)
    check_cells(votes, np.isinf(numbers), layout)
    return numbers, names


def in_order(votes: TextTable, names: tuple[str, ...]) -> TextTable:
    """Return the columns of the given items."""
    index = {name: column for column, name in enumerate(votes.columns)}
    return votes.select([index[name] if name in index else votes.index(name, "items") for name in names])


def check_cells(votes: TextTable, invalid: Mask, layout: Layout) -> None:
    """Raise an error for the first invalid cell, if there is one."""
    if invalid.any():
        row, column = divmod(int(np.argmax(invalid)), invalid.shape[1])
        cell, name = printable(votes.texts[votes.codes[row, column]]), printable(votes.columns[column])
        expected = "a score is a number" if layout == "scores" else "a rank is an integer >= 0 or a mean rank of ties"
        problem = f"item {name!r} holds {cell!r}; {expected} (name a column that is not an item in "
        raise votes.error(row, problem, Argument("ignore", ...), ")")


def integer_ranks(numbers: FloatArray, votes: TextTable, names: tuple[str, ...]) -> RankArray:
    """Return bucket indices of ranks, -1 where missing."""
    listed = ~np.isnan(numbers)
    values = np.where(listed, numbers, 0.0)
    fractional = values != np.floor(values)
    rows = np.flatnonzero(fractional.any(axis=1))
    if len(rows):
        fractional[rows] &= ~are_average_ranks(values[rows], listed[rows])
        check_cells(in_order(votes, names), fractional, "ranks")
    elif values.size and values.max() < 2**53:
        values = values.astype(np.int64)
    return dense_ranks(values, listed, "free")


# ---------------------------------------------------------------------- one column per position


def sorted_positions(votes: TextTable) -> TextTable:
    """Return the table with its columns sorted by the positions that they name, if they name any."""
    positions = [column_position(name) for name in votes.columns]
    stated = [position for position in positions if position is not None]
    if not stated:
        return votes
    if len(stated) < len(positions):
        other = printable(votes.columns[positions.index(None)])
        raise layout_error(votes, None, f"some columns look like positions but {other!r} does not")
    contests = list(dict.fromkeys(position.contest for position in stated))
    if len(contests) > 1:
        names = ", ".join(repr(printable(contest)) for contest in contests[:8])
        raise votes.error(
            None, f"the columns belong to several contests ({names}); choose one with ", Argument("contest", ...)
        )
    numbers = [position.number for position in stated]
    if len(set(numbers)) < len(numbers):
        raise votes.error(None, f"two columns name the same position: {', '.join(map(printable, votes.columns))}")
    if not are_consecutive(numbers):
        listing = ", ".join(map(str, sorted(numbers)))
        raise layout_error(votes, None, f"the columns look like positions but are not consecutive: {listing}")
    return votes.select(sorted(range(len(numbers)), key=numbers.__getitem__))


# ---------------------------------------------------------------------- writing


def write_csv(
    rankings: Rankings,
    path: AnyPath,
    *,
    overwrite: bool = False,
    count: str | None = "count",
    labels: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write rankings as a comma-separated table, one column per item with ranks from 1, gzipped for ``.gz``.

    Cells of free items are empty, and the last column holds the counts. The table is read back by
    ``read_csv(path, layout="ranks", count="count", unlisted="free", blank="keep")``. Names are written unchanged; a
    warning lists those that a spreadsheet would evaluate as formulas, such as ``=1+1``.

    Parameters
    ----------
    rankings : Rankings
        Rankings to write.
    path : path
        The file. It is written atomically.
    overwrite : bool
        Whether an existing file is replaced.
    count : str or None
        Name of the column of counts; None omits it, which requires that all counts are 1.
    labels : mapping, optional
        Additional columns to write first: their names, and one string for each ranking.

    Raises
    ------
    RankingError
        If a name could not be read back: it is empty, begins or ends with a space or contains a control character.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> ballots = Rankings.from_orders([["tea", "milk"], ["milk"]], counts=[3, 1], unlisted="free")
    >>> with TemporaryDirectory() as folder:
    ...     write_csv(ballots, f"{folder}/drinks.csv")
    ...     print(Path(f"{folder}/drinks.csv").read_text())
    "tea","milk","count"
    1,2,3
    ,1,1
    """
    rankings = as_rankings(rankings)
    for name in rankings.items:
        check_writable_name(name)
    if count is not None:
        check_writable_name(count, "count")
    if count in rankings.items:
        raise RankingError(f"count: {printable(count)!r} is also the name of an item; give another name")
    if count is None and (rankings.counts != 1).any():
        raise RankingError("count=None would lose counts other than 1; name a column for them")
    given = check_instance("labels", {} if labels is None else labels, Mapping, "a mapping of names to strings")
    columns = {name: check_labels("labels", texts, len(rankings)).tolist() for name, texts in given.items()}
    for name in columns:
        check_writable_name(name, "labels")
        if name in (*rankings.items, count):
            raise RankingError(f"labels: {printable(name)!r} is also the name of an item or of the counts; rename it")
    write_text(path, csv_text(rankings, count, columns), overwrite)
    texts = (text for column in columns.values() for text in set(column))
    warn_of_formulas([*rankings.items, *columns, *texts], check_path("path", path))


def csv_text(rankings: Rankings, count: str | None, labels: Mapping[str, Sequence[str]]) -> str:
    """Return the table as text."""
    text = io.StringIO()
    # Quoted names make the delimiter unambiguous.
    names = [*labels, *rankings.items, *([] if count is None else [count])]
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(names)
    writer = csv.writer(text, lineterminator="\n")
    label_rows = zip(*labels.values(), strict=True) if labels else repeat(())
    rows = chain.from_iterable(rankings.ranks[block].tolist() for block in row_slices(rankings.ranks.shape))
    for row, n_voters, label_row in zip(rows, rankings.counts.tolist(), label_rows, strict=False):
        cells = [*label_row, *("" if rank == FREE else rank + 1 for rank in row)]
        writer.writerow(cells if count is None else [*cells, n_voters])
    return text.getvalue()

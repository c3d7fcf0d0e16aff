"""Comma-separated tables: one row a ranking, one column an item or one column a position."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rankernel.arrays import IntArray, RankArray
from rankernel.encoding import FREE, Unlisted, check_items, check_unlisted, dense, orders_to_ranks, printable
from rankernel.errors import RankingError
from rankernel.io.ballots import (
    SKIPPED_WORDS,
    BallotRules,
    Overvotes,
    Repairs,
    Repeated,
    Skipped,
    position_of,
    read_ballots,
)
from rankernel.io.files import AnyPath, check_writable_name, fail, write_text
from rankernel.io.records import Records, read_records
from rankernel.rankings import Rankings, as_rankings

Layout = Literal["auto", "ranks", "positions"]
Labels = dict[str, NDArray[np.str_]]

WHOLE = re.compile(r"([0-9]{1,9})(?:\.0*)?")
UNRANKED = SKIPPED_WORDS | {"-1", "-1.0"}
BOOKKEEPING_WORDS = """
age ballot ballotid batch box case count counts cvr cvrid date day district entry id ids index line n name no num number
precinct record region respondent response row session state station sum survey tabulator time timestamp total type
unnamed user userid users vote voter voterid voters votes ward weight weights year
"""
BOOKKEEPING = frozenset(BOOKKEEPING_WORDS.split())


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class CsvRankings(Rankings):
    """Rankings read from a table, with the labels of each row and a record of what was mended.

    They behave as :class:`Rankings` in everything and compare by the rankings alone; slices of them, and all that is
    made from them, are plain :class:`Rankings`.

    Parameters
    ----------
    ranks, items, counts
        As in :class:`Rankings`.
    labels : dict of arrays, optional
        For each label column the text in every row.
    repairs : Repairs
        How often a ballot had to be mended.
    """

    labels: Labels
    repairs: Repairs

    def __init__(
        self,
        ranks: Any,
        items: Iterable[object] | None = None,
        counts: Any = None,
        labels: Labels | None = None,
        repairs: Repairs | None = None,
    ) -> None:
        Rankings.__init__(self, ranks, items, counts)
        self._attach({} if labels is None else labels, Repairs() if repairs is None else repairs)

    def _attach(self, labels: Labels, repairs: Repairs) -> None:
        for values in labels.values():
            values.flags.writeable = False
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "repairs", repairs)

    def __reduce__(self) -> tuple[Any, ...]:
        return csv_rankings, (self.ranks, self.items, self.counts, self.labels, self.repairs)

    def __repr__(self) -> str:
        return Rankings.__repr__(self) + (f"\n  {self.repairs}" if self.repairs else "")


def csv_rankings(
    ranks: RankArray, items: tuple[str, ...], counts: IntArray, labels: Labels, repairs: Repairs
) -> CsvRankings:
    """Build from arrays that already satisfy every promise of the class."""
    new = object.__new__(CsvRankings)
    new._set(ranks, items, counts)
    new._attach(labels, repairs)
    return new


def read_csv(
    path: AnyPath,
    *,
    layout: Layout = "auto",
    items: Iterable[object] | None = None,
    count: str | None = None,
    labels: Sequence[str] = (),
    ignore: Sequence[str] = (),
    unlisted: Unlisted = "last",
    skipped: Skipped = "close",
    repeated: Repeated = "first",
    overvotes: Overvotes = "stop",
    separator: str | None = None,
    blank: Literal["keep", "drop"] = "keep",
    delimiter: str = "auto",
    encoding: str = "utf-8",
) -> CsvRankings:
    """Read rankings from a table of text, plain or gzipped: one row a ranking, the first row naming the columns.

    Two layouts are known. With one column an item (``layout="ranks"``) a cell holds a rank, a whole number: smaller
    is better, equal is tied, gaps are closed, and an empty cell or -1 is not ranked. With one column a position
    (``layout="positions"``; columns such as ``rank 1``, ``choice_2``, ``3rd choice``) a cell names an item; so come the
    cast vote records of ranked-choice elections, with the irregularities that voters leave on paper. An empty cell,
    or one that says *skipped* or *undervote*, is a gap if a marked one follows. A cell that says *overvote*, or names
    several items joined by ``separator``, is an overvote.

    ``layout="auto"`` decides only where there is no doubt, and otherwise says how to choose.

    Parameters
    ----------
    path : path
        The file.
    layout : {"auto", "ranks", "positions"}
        What the columns are.
    items : iterable of names, optional
        All items there are. In the layout of positions: other names are refused, items that no row names are added;
        if left out, the items are the names that occur, in order of first appearance. In the layout of ranks: the
        item columns, all others being refused.
    count : str, optional
        The column that says how many voters gave each ranking.
    labels : sequence of str
        Columns to keep beside the rankings, as text.
    ignore : sequence of str
        Columns to pass over, such as ids.
    unlisted : {"last", "free"}
        Items that a row does not list share one last bucket, or nothing is known of them.
    skipped : {"close", "stop"}
        At a gap: move what follows up, or end the ballot.
    repeated : {"first", "stop", "error"}
        Where an item is named again: its first mention counts, or the ballot ends there, or the file is refused.
    overvotes : {"stop", "skip", "tie", "error"}
        At an overvote: end the ballot, pass over the cell, tie the items that it names, or refuse the file.
    separator : str, optional
        What joins the names in an overvoted cell.
    blank : {"keep", "drop"}
        Rows that list nothing stay, as rankings of which nothing is listed, or are left out.
    delimiter : str
        The sign between cells; "auto" finds it among comma, semicolon, tab and bar.
    encoding : str
        How the file encodes its text.

    Returns
    -------
    CsvRankings
        The rankings, with ``labels`` and ``repairs``, the number of irregularities met.

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
    ...     votes = read_csv(file, labels=["ward"])
    >>> votes
    CsvRankings: 3 rankings of 3 items (3 full)
      Ann > Bob > Cy
      Bob > Cy > Ann
      Cy > Ann > Bob
      Repairs(skipped=1, repeated=1, overvoted=0, blank=0)
    >>> votes[votes.labels["ward"] == "South"]
    Rankings: 2 rankings of 3 items (2 full)
      Bob > Cy > Ann
      Cy > Ann > Bob
    """
    check_unlisted(unlisted)
    check_choice("layout", layout, get_args(Layout))
    check_choice("blank", blank, ("keep", "drop"))
    rules = BallotRules(skipped, repeated, overvotes, separator)
    names = None if items is None else check_items(items)
    table = read_records(path, delimiter, encoding)
    kept_labels = {name: np.array(table.column(name, "labels"), dtype=np.str_) for name in listed_names(labels)}
    counts = read_counts(table, count)
    votes = vote_columns(table, [*listed_names(labels), *listed_names(ignore), *listed_names(count or ())])
    if chosen_layout(votes, layout) == "ranks":
        free, names = ranks_from_columns(votes, names)
        repairs = Repairs()
    else:
        orders, repairs = read_ballots(in_order_of_positions(votes), names, rules)
        free, names = ranks_from_orders(orders, names, path)
    listed = free != FREE
    marked = listed.any(axis=1)
    kept = marked | (blank == "keep")
    return csv_rankings(
        dense(free, listed, unlisted)[kept],
        names,
        counts[kept],
        {name: values[kept] for name, values in kept_labels.items()},
        replace(repairs, blank=int(np.count_nonzero(~marked))),
    )


def check_choice(option: str, value: str, known: Sequence[str]) -> None:
    """Refuse a value that an option does not have."""
    if value not in known:
        raise RankingError(f"{option}={value!r} is none of {', '.join(repr(name) for name in known)}")


def listed_names(names: Sequence[str]) -> list[str]:
    """Return column names as a list; a single string is one name."""
    return [names] if isinstance(names, str) else list(names)


def read_counts(table: Records, count: str | None) -> IntArray:
    """Return how many voters each row stands for."""
    if count is None:
        return np.ones(len(table.rows), dtype=np.int64)
    counts = []
    for cell, line in zip(table.column(count, "count"), table.lines, strict=True):
        whole = WHOLE.fullmatch(cell)
        if not whole or int(whole.group(1)) < 1:
            raise fail(table.path, line, f"the count {printable(cell)!r} is not a positive number of voters")
        counts.append(int(whole.group(1)))
    return np.array(counts, dtype=np.int64)


def vote_columns(table: Records, others: Sequence[str]) -> Records:
    """Return the columns that hold the votes: all but those that were named for something else."""
    for name in others:
        table.position(name, "labels, ignore or count")
    votes = table.without(others)
    if not votes.columns:
        raise fail(table.path, 1, "no column is left for the votes beside those of labels, ignore and count")
    return votes


# ---------------------------------------------------------------------- which layout it is


def chosen_layout(votes: Records, layout: Layout) -> Layout:
    """Return the layout asked for or, if it is left open, the only one that makes sense of the table."""
    if layout != "auto":
        return layout
    positions = [position_of(name) for name in votes.columns]
    stray = first_unranked_cell(votes)
    if None not in positions:
        check_unambiguous(votes, sorted(p for p in positions if p is not None), stray is None)
        return "positions"
    if any(position is not None for position in positions):
        other = votes.columns[positions.index(None)]
        raise doubt(votes, f"some columns look like positions but {printable(other)!r} does not")
    if stray is not None:
        line, column, cell = stray
        raise doubt(votes, f"column {printable(column)!r} holds {printable(cell)!r}, which is no rank", line)
    check_plausible_ranks(votes)
    return "ranks"


def doubt(votes: Records, problem: str, line: int = 1) -> RankingError:
    """Return the error for a table whose layout is open to doubt."""
    return fail(
        votes.path,
        line,
        f"{problem}; name columns that hold no votes in labels=, ignore= or count=, or state the layout: "
        "layout='ranks' (one column an item, cells are ranks) or layout='positions' (one column a position, cells are "
        "item names)",
    )


def first_unranked_cell(votes: Records) -> tuple[int, str, str] | None:
    """Return line, column and content of the first cell that is neither a rank nor empty, if there is one."""
    for row, line in zip(votes.rows, votes.lines, strict=True):
        for column, cell in zip(votes.columns, row, strict=True):
            if not WHOLE.fullmatch(cell) and cell.lower() not in UNRANKED:
                return line, column, cell
    return None


def check_unambiguous(votes: Records, positions: list[int], numeric: bool) -> None:
    """Refuse columns named like positions if they could be items all the same, or if some are missing."""
    if numeric:
        raise doubt(votes, "the columns look like positions but hold no names, only numbers or nothing")
    if positions[0] > 1 or positions != list(range(positions[0], positions[0] + len(positions))):
        raise doubt(votes, f"the columns look like positions but do not count up: {', '.join(map(str, positions))}")


def check_plausible_ranks(votes: Records) -> None:
    """Refuse numbers that may be no ranks: of a column that looks like bookkeeping, or with gaps, as scores have."""
    for name in votes.columns:
        if set(re.findall(r"[^\W_]+", re.sub("[0-9]+", " ", name.lower()))) <= BOOKKEEPING:
            raise doubt(votes, f"column {printable(name)!r} does not look like an item")
    table, _ = ranks_from_columns(votes, None)
    best = int(table[table != FREE].min(initial=1))
    for row, line in zip(table.tolist(), votes.lines, strict=True):
        listed = sorted(rank for rank in row if rank != FREE)
        for place, rank in enumerate(listed):
            # With ties, 1 2 2 3 and 1 2 2 4 are both in use; neither goes beyond the place of the item.
            if rank > best + place or (place == 0 and rank != best):
                raise doubt(votes, f"the numbers {', '.join(map(str, listed))} leave out ranks, as scores do", line)


# ---------------------------------------------------------------------- one column an item


def ranks_from_columns(votes: Records, items: tuple[str, ...] | None) -> tuple[RankArray, tuple[str, ...]]:
    """Return the numbers in the cells, -1 where there is none, and the items that the columns name."""
    if "" in votes.columns:
        number = votes.columns.index("") + 1
        raise fail(votes.path, 1, f"column {number} has no name; name the item, or pass it over with ignore=['']")
    names = votes.columns if items is None else items
    for name in votes.columns:
        if name not in names:
            raise fail(votes.path, 1, f"column {printable(name)!r} is not among the items; pass it over with ignore=")
    order = [votes.position(name, "items") for name in names]
    ranks = np.empty((len(votes.rows), len(names)), dtype=np.int32)
    for number, (row, line) in enumerate(zip(votes.rows, votes.lines, strict=True)):
        ranks[number] = [rank_in(row[position], votes, line, position) for position in order]
    return ranks, names


def rank_in(cell: str, votes: Records, line: int, position: int) -> int:
    """Return the rank in a cell, -1 if there is none."""
    whole = WHOLE.fullmatch(cell)
    if whole:
        return int(whole.group(1))
    if cell.lower() in UNRANKED:
        return FREE
    column = printable(votes.columns[position])
    raise fail(votes.path, line, f"item {column!r} holds {printable(cell)!r}; a rank is a whole number, 0 or more")


# ---------------------------------------------------------------------- one column a position


def in_order_of_positions(votes: Records) -> Records:
    """Return the table with its columns in the order of the positions they state, or as it is if they state none."""
    positions = [p for name in votes.columns if (p := position_of(name)) is not None]
    if len(positions) < len(votes.columns):
        return votes
    if len(set(positions)) < len(positions):
        raise fail(votes.path, 1, f"two columns state one position: {', '.join(map(printable, votes.columns))}")
    order = np.argsort(positions).tolist()
    rows = [[row[column] for column in order] for row in votes.rows]
    return Records(votes.path, tuple(votes.columns[column] for column in order), rows, votes.lines)


def ranks_from_orders(
    orders: list[list[list[str]]], items: tuple[str, ...] | None, path: AnyPath
) -> tuple[RankArray, tuple[str, ...]]:
    """Return ranks, -1 where an item is not listed, and items from the buckets of each row."""
    if items is None and not any(orders):
        raise fail(path, None, "no row names an item; list the items there are in items=...")
    buckets = [[set(bucket) for bucket in order] for order in orders]
    return orders_to_ranks(buckets, items, "free")


# ---------------------------------------------------------------------- writing


def write_csv(rankings: Rankings, path: AnyPath, overwrite: bool = False, count: str | None = "count") -> None:
    """Write rankings as a comma-separated table, one column an item holding ranks from 1, gzipped for ``.gz``.

    Cells of free items are empty, and the last column holds the counts. The table gives the rankings back with
    ``read_csv(path, layout="ranks", count="count", unlisted="free")``. Names are written as they are: one that begins
    with ``=`` is a formula to a spreadsheet program that opens the file.

    Parameters
    ----------
    rankings : Rankings
        What to write.
    path : path
        The file. It is written whole or not at all.
    overwrite : bool
        Whether a file of that name may be replaced.
    count : str or None
        Name of the column of counts; None leaves it out, which only rankings of one voter each allow.

    Raises
    ------
    RankingError
        Where a name would not come back: an empty one, one with a blank at an end or a control character.

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
    if count in rankings.items:
        raise RankingError(f"an item is named {printable(count)!r}, too; choose another name: write_csv(count=...)")
    if count is None and (rankings.counts != 1).any():
        raise RankingError("count=None would lose how many voters gave each ranking; name a column for the counts")
    write_text(path, csv_text(rankings, count), overwrite)


def csv_text(rankings: Rankings, count: str | None) -> str:
    """Return the table as text."""
    text = io.StringIO()
    # Quoted names leave no doubt about the delimiter, whatever signs they hold.
    names = [*rankings.items, *listed_names(count or ())]
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(names)
    cells = csv.writer(text, lineterminator="\n")
    for row, voters in zip(rankings.ranks.tolist(), rankings.counts.tolist(), strict=True):
        ranks = ["" if rank == FREE else rank + 1 for rank in row]
        cells.writerow(ranks if count is None else [*ranks, voters])
    return text.getvalue()

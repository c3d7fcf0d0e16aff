"""Comma-separated tables: one row a ranking, one column an item or one column a position."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, repeat
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import checks
from rankernel._utils.arrays import FloatArray, IntArray, Mask, RankArray
from rankernel._utils.checks import printable
from rankernel.encoding import (
    FREE,
    MAX_VOTERS,
    Unlisted,
    are_average_ranks,
    check_items,
    check_total_count,
    check_unlisted,
    dense_ranks,
)
from rankernel.errors import RankingError, ReadingWarning, warn
from rankernel.io.ballots import BallotRules, Ballots, Overvotes, Repeated, Skipped, folded, read_ballots
from rankernel.io.file_data import About, FileRankings, Labels, Reading, file_rankings
from rankernel.io.files import MOST_BYTES, AnyPath, check_table_size, check_writable_name, fail, write_text
from rankernel.io.records import Records, read_records
from rankernel.io.repairs import Repairs
from rankernel.io.spreadsheets import point_out_formulas
from rankernel.io.words import Words
from rankernel.order_tables import are_consecutive, column_position
from rankernel.rankings import Rankings, as_rankings, row_slices

Layout = Literal["auto", "ranks", "positions", "scores"]
Blank = Literal["drop", "keep"]

WHOLE = re.compile(r"([0-9]{1,30})(?:\.0*)?")
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
BOOKKEEPING_WORDS = """
age ballot ballotid batch box case count counts cvr cvrid date day district entry id ids index line n name no num number
precinct record region respondent response row session state station sum survey tabulator time timestamp total type
unnamed user userid users vote voter voterid voters votes ward weight weights year
"""
BOOKKEEPING = frozenset(BOOKKEEPING_WORDS.split())
LAYOUTS = (
    "layout='ranks' (one column an item, cells are ranks), layout='positions' (one column a position, cells are item "
    "names) or layout='scores' (one column an item, larger is better)"
)


def read_csv(
    path: AnyPath,
    *,
    layout: Layout = "auto",
    items: Iterable[object] | None = None,
    count: str | None = None,
    labels: Sequence[str] = (),
    ignore: Sequence[str] = (),
    unlisted: Unlisted = "last",
    ascending: bool = False,
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
    """Read rankings from a table of text, plain or gzipped: one row a ranking, the first row naming the columns.

    Three layouts are known. With one column an item (``layout="ranks"``) a cell holds a rank: a whole number, or the
    mean of the places that tied items share; smaller is better, equal is tied, gaps are closed, and an empty cell or -1
    is not ranked. Or it holds a score (``layout="scores"``), any number, of which the larger is better. With one
    column a position (``layout="positions"``; columns such as ``rank 1``, ``choice_2``, ``3rd choice``) a cell names an
    item; so come the cast vote records of ranked-choice elections, with the irregularities that voters leave on paper.
    An empty cell, or one that says *skipped* or *undervote*, is a gap if a marked one follows. A cell that says
    *overvote*, or names several items joined by ``separator``, is an overvote.

    ``layout="auto"`` decides only where there is no doubt, and otherwise says how to choose. Names that differ only in
    case or blanks are pointed out by a :class:`ReadingWarning`.

    Parameters
    ----------
    path : path
        The file.
    layout : {"auto", "ranks", "positions", "scores"}
        What the columns are.
    items : iterable of names, optional
        All items there are. In the layout of positions: other names are refused, items that no row names are added;
        if left out, the items are the names that occur, in order of first appearance. In the other layouts: the
        item columns, all others being refused.
    count : str, optional
        The column that says how many voters gave each ranking.
    labels : sequence of str
        Columns to keep beside the rankings, as text.
    ignore : sequence of str
        Columns to pass over, such as ids.
    unlisted : {"last", "free"}
        Items that a row does not list share one last bucket, or nothing is known of them.
    ascending : bool
        Whether the smaller score is the better one, as with times and losses.
    skipped : {"close", "stop"}
        At a gap: move what follows up, or end the ballot.
    repeated : {"first", "stop", "error"}
        Where an item is named again: its first mention counts, or the ballot ends there, or the file is refused.
    overvotes : {"stop", "skip", "tie", "error"}
        At an overvote: end the ballot, pass over the cell, tie the items that it names, or refuse the file.
    separator : str, optional
        What joins the names in an overvoted cell.
    nothing : sequence of str
        More words in cells that mean that nothing was marked, beside those that are known: *skipped*, *undervote*,
        *exhausted*, *(blank)*, *n/a*, *NA*, *NaN*, *null* and the like. *Blank*, *Skip*, *Na* and *Null* may be names:
        they count as nothing unless some row ranks them.
    fold_case : bool
        Whether names that differ only in case or blanks are one item.
    blank : {"drop", "keep"}
        Rows that list nothing are left out, as they are no voters; or stay, as rankings of which nothing is listed.
    delimiter : str
        The sign between cells; "auto" finds it among comma, semicolon, tab and bar.
    encoding : str
        How the file encodes its text.
    max_bytes : int
        What a small file may grow to, unpacked or as a table of ranks.

    Returns
    -------
    FileRankings
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
    FileRankings: 3 rankings of 3 items (3 full)
      Ann > Bob > Cy
      Bob > Cy > Ann
      Cy > Ann > Bob
      read as a table with one column a position
      mended: 1 skipped cell, 1 repeated name, 'skipped' read as nothing (1 cell)
    >>> votes[votes.labels["ward"] == "South"]
    Rankings: 2 rankings of 3 items (2 full)
      Bob > Cy > Ann
      Cy > Ann > Bob
    """
    check_unlisted(unlisted)
    checks.check_choice("layout", layout, get_args(Layout))
    checks.check_flag("ascending", ascending)
    words = tuple(checks.check_names("nothing", nothing))
    rules = BallotRules(skipped, repeated, overvotes, separator, words, fold_case, max_bytes)
    beside, passed = checks.check_names("labels", labels), checks.check_names("ignore", ignore)
    names = None if items is None else check_items(items)
    table = read_records(path, delimiter, encoding, max_bytes)
    kept = {name: table.column(name, "labels") for name in beside}
    counts = read_counts(table, count)
    votes, rows = vote_columns(table, [*kept, *passed, *([] if count is None else [count])]).distinct()
    chosen = chosen_layout(votes, layout, rules)
    if ascending and chosen != "scores":
        raise RankingError("ascending=True is for layout='scores'; ranks are always better the smaller they are")
    ballots, read_as = taken(votes, chosen, names, rules, ascending)
    about = About(read_as, passed_over=tuple(passed))
    return assembled(ballots, rows, counts, kept, unlisted, blank, path, about)


def taken(
    votes: Records, layout: Layout, items: tuple[str, ...] | None, rules: BallotRules, ascending: bool
) -> tuple[Ballots, str]:
    """Return the ballots in the columns of votes, and in words how they were read."""
    if layout == "positions":
        return read_ballots(in_order_of_positions(votes), items, rules), "a table with one column a position"
    numbers, names = numbers_in_columns(votes, items, rules, layout)
    if layout == "ranks":
        return Ballots(ranks_of(numbers, votes, names), names, Repairs()), "a table of ranks, one column an item"
    listed = ~np.isnan(numbers)
    ranks = dense_ranks(np.where(listed, numbers if ascending else -numbers, 0.0), listed, "free")
    how = "smaller is better" if ascending else "larger is better"
    return Ballots(ranks, names, Repairs()), f"a table of scores, one column an item, {how}"


def assembled(
    ballots: Ballots,
    rows: IntArray,
    counts: IntArray,
    labels: Labels,
    unlisted: Unlisted,
    blank: Blank,
    path: AnyPath,
    about: About,
) -> FileRankings:
    """Return what was read, blank ballots left out or kept; ``rows`` says which ballot each row of the file is."""
    checks.check_choice("blank", blank, get_args(Blank))
    listed = ballots.ranks != FREE
    marked = listed.any(axis=1)
    if not ballots.items or (blank == "drop" and len(marked) and not marked.any()):
        raise fail(path, None, "no row names an item; list the items there are in items=..., and keep blank='keep'")
    point_out_alike(ballots.items, path)
    ranks = dense_ranks(ballots.ranks, listed, unlisted)
    marked = marked[rows]
    repairs = replace(ballots.repairs, blank=int(np.count_nonzero(~marked)), kept_blank=blank == "keep")
    if blank == "drop" and not marked.all():
        ranks, counts = ranks[rows[marked]], counts[marked]
        labels = {name: values[marked] for name, values in labels.items()}
    elif len(rows) > len(ranks):
        ranks = ranks[rows]
    return file_rankings(ranks, ballots.items, counts, Reading(labels, repairs, about))


def point_out_alike(items: tuple[str, ...], path: AnyPath) -> None:
    """Warn of names that differ only in case or blanks."""
    seen: dict[str, str] = {}
    alike = [(seen[folded(name)], name) for name in items if seen.setdefault(folded(name), name) != name]
    if alike:
        pairs = "; ".join(f"{printable(one)!r} and {printable(other)!r}" for one, other in alike[:5])
        warn(
            f"{fail(path, None, '')}{pairs}{' ...' * (len(alike) > 5)} differ only in case or blanks, and are read as "
            "different items; fold_case=True makes them one",
            ReadingWarning,
        )


def read_counts(table: Records, count: str | None) -> IntArray:
    """Return how many voters each row stands for."""
    if count is None:
        return np.ones(len(table), dtype=np.int64)
    column = table.with_columns([table.position(checks.check_text("count", count), "count")])

    def number(cell: str) -> int:
        whole = WHOLE.fullmatch(cell)
        return min(int(whole.group(1)), MAX_VOTERS + 1) if whole else 0

    counts = by_text(column, number, np.int64)[:, 0]
    if (counts < 1).any():
        row = int(np.argmax(counts < 1))
        cell = printable(column.row(row)[0])
        raise fail(table.path, table.line(row), f"the count {cell!r} is not a positive number of voters")
    try:
        check_total_count(counts)
    except RankingError as error:
        raise fail(table.path, None, str(error)) from None
    return counts


def by_text(table: Records, number: Callable[[str], float], dtype: type) -> NDArray[Any]:
    """Return a number for each cell, asked once of each text."""
    values: NDArray[Any] = np.zeros(max(len(table.texts), 1), dtype=dtype)
    for code in table.used():
        values[code] = number(table.texts[code])
    return values[table.codes]


def vote_columns(table: Records, others: Sequence[str]) -> Records:
    """Return the columns that hold the votes: all but those that were named for something else."""
    for name in others:
        table.position(name, "labels, ignore or count")
    votes = table.without(others)
    if not votes.columns:
        raise fail(table.path, table.head, "no column is left for the votes beside those of labels, ignore and count")
    return votes


# ---------------------------------------------------------------------- which layout it is


def chosen_layout(votes: Records, layout: Layout, rules: BallotRules) -> Layout:
    """Return the layout asked for or, if it is left open, the only one that makes sense of the table."""
    if layout != "auto":
        return layout
    places = [column_position(name) for name in votes.columns]
    stray = first_unranked_cell(votes, rules)
    if None not in places:
        check_unambiguous(votes, stray is None)
        return "positions"
    if any(place is not None for place in places):
        other = votes.columns[places.index(None)]
        raise doubt(votes, f"some columns look like positions but {printable(other)!r} does not")
    if stray is not None:
        line, column, cell = stray
        raise doubt(votes, f"column {printable(column)!r} holds {printable(cell)!r}, which is no rank", line)
    check_plausible_ranks(votes, rules)
    return "ranks"


def doubt(votes: Records, problem: str, line: int | None = None) -> RankingError:
    """Return the error for a table whose layout is open to doubt."""
    return fail(
        votes.path,
        votes.head if line is None else line,
        f"{problem}; name columns that hold no votes in labels=, ignore= or count=, or state the layout: {LAYOUTS}",
    )


def first_unranked_cell(votes: Records, rules: BallotRules) -> tuple[int, str, str] | None:
    """Return line, column and content of the first cell that is neither a rank nor empty, if there is one."""
    words = Words.given(None, rules.nothing)
    strange = np.zeros(max(len(votes.texts), 1), dtype=bool)
    for code in votes.used():
        cell = votes.texts[code]
        number = NUMBER.fullmatch(cell) and (float(cell) >= 0 or float(cell) == FREE)
        strange[code] = not number and not words.is_nothing(cell) and not words.is_doubtful(cell)
    where = strange[votes.codes]
    if not where.any():
        return None
    row, column = divmod(int(np.argmax(where)), where.shape[1])
    return votes.line(row), votes.columns[column], votes.texts[votes.codes[row, column]]


def check_unambiguous(votes: Records, numeric: bool) -> None:
    """Refuse columns named like positions if they could be items all the same, or if some are missing."""
    if numeric:
        raise doubt(votes, "the columns look like positions but hold no names, only numbers or nothing")
    in_order_of_positions(votes)


def check_plausible_ranks(votes: Records, rules: BallotRules) -> None:
    """Refuse numbers that may be no ranks: of a column that looks like bookkeeping, or with gaps, as scores have."""
    for name in votes.columns:
        if set(re.findall(r"[^\W_]+", re.sub("[0-9]+", " ", name.lower()))) <= BOOKKEEPING:
            raise doubt(votes, f"column {printable(name)!r} does not look like an item")
    numbers, _ = numbers_in_columns(votes, None, rules, "ranks")
    best = np.nanmin(numbers, initial=1.0)  # ranks begin with 1, or with 0
    ordered = np.sort(numbers, axis=1)  # what is not ranked comes last
    # With ties, 1 2 2 3 and 1 2 2 4 are both in use, and 1 2.5 2.5 4; none goes beyond the place of the item.
    beyond = ordered > best + np.arange(ordered.shape[1])
    shared = np.isnan(numbers) | (numbers == np.floor(numbers))
    strange = (beyond.any(axis=1) & shared.all(axis=1)) | (ordered[:, 0] > best)
    rows = np.flatnonzero(strange)
    if len(rows):
        row = int(rows[0])
        listed = ", ".join(f"{value:g}" for value in ordered[row][~np.isnan(ordered[row])])
        raise doubt(votes, f"the numbers {listed} leave out ranks, as scores do", votes.line(row))


# ---------------------------------------------------------------------- one column an item


def numbers_in_columns(
    votes: Records, items: tuple[str, ...] | None, rules: BallotRules, layout: Layout
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return the numbers in the cells, NaN where there is none, and the items that the columns name."""
    if "" in votes.columns:
        number = votes.columns.index("") + 1
        raise fail(
            votes.path, votes.head, f"column {number} has no name; name the item, or pass it over with ignore=['']"
        )
    names = votes.columns if items is None else items
    known = frozenset(names)
    for name in votes.columns:
        if name not in known:
            problem = f"column {printable(name)!r} is not among the items; pass it over with ignore="
            raise fail(votes.path, votes.head, problem)
    check_table_size(votes.n_rows, len(names), votes.path, rules.max_bytes)
    if items is not None:
        votes = in_order_of_items(votes, names)
    words, what = Words.given(None, rules.nothing), "score" if layout == "scores" else "rank"
    strange: set[str] = set()

    def number_in(cell: str) -> float:
        if NUMBER.fullmatch(cell):
            value = float(cell)
            if what == "rank" and value == FREE:
                return np.nan
            if what == "score" or value >= 0:
                return value
        elif words.is_nothing(cell) or words.is_doubtful(cell):
            return np.nan
        strange.add(cell)
        return np.nan

    numbers = by_text(votes, number_in, np.float64)
    if strange:
        codes = [code for code, text in enumerate(votes.texts) if text in strange]
        refuse_cell(votes, np.isin(votes.codes, codes), what)
    refuse_cell(votes, np.isinf(numbers), what)
    return numbers, names


def in_order_of_items(votes: Records, names: tuple[str, ...]) -> Records:
    """Return the columns of some items."""
    places = {name: place for place, name in enumerate(votes.columns)}
    return votes.with_columns([places[name] if name in places else votes.position(name, "items") for name in names])


def refuse_cell(votes: Records, wrong: Mask, what: str) -> None:
    """Raise for the first wrong cell, if there is one."""
    if wrong.any():
        row, column = divmod(int(np.argmax(wrong)), wrong.shape[1])
        cell, name = printable(votes.texts[votes.codes[row, column]]), printable(votes.columns[column])
        wanted = "a number" if what == "score" else "a whole number, 0 or more, or the mean place of tied items"
        problem = f"item {name!r} holds {cell!r}; a {what} is {wanted}"
        raise fail(votes.path, votes.line(row), f"{problem} (pass over a column that is no item with ignore=)")


def ranks_of(numbers: FloatArray, votes: Records, names: tuple[str, ...]) -> RankArray:
    """Return bucket indices of ranks, -1 where there is none."""
    listed = ~np.isnan(numbers)
    values = np.where(listed, numbers, 0.0)
    broken = values != np.floor(values)
    rows = np.flatnonzero(broken.any(axis=1))
    if len(rows):
        broken[rows] &= ~are_average_ranks(values[rows], listed[rows])
        refuse_cell(in_order_of_items(votes, names), broken, "rank")
    elif values.size and values.max() < 2**53:
        values = values.astype(np.int64)
    return dense_ranks(values, listed, "free")


# ---------------------------------------------------------------------- one column a position


def in_order_of_positions(votes: Records) -> Records:
    """Return the table with its columns in the order of the positions they state, or as it is if they state none."""
    places = [column_position(name) for name in votes.columns]
    stated = [place for place in places if place is not None]
    if not stated:
        return votes
    if len(stated) < len(places):
        other = printable(votes.columns[places.index(None)])
        raise doubt(votes, f"some columns look like positions but {other!r} does not")
    contests = list(dict.fromkeys(place.contest for place in stated))
    if len(contests) > 1:
        names = ", ".join(repr(printable(contest)) for contest in contests[:8])
        raise doubt(votes, f"the columns are of several contests ({names}): read_cvr(path, contest=...) takes one")
    numbers = [place.number for place in stated]
    if len(set(numbers)) < len(numbers):
        columns = ", ".join(map(printable, votes.columns))
        raise fail(votes.path, votes.head, f"two columns state one position: {columns}")
    if not are_consecutive(numbers):
        listing = ", ".join(map(str, sorted(numbers)))
        raise doubt(votes, f"the columns look like positions but do not count up: {listing}")
    return votes.with_columns(sorted(range(len(numbers)), key=numbers.__getitem__))


# ---------------------------------------------------------------------- writing


def write_csv(
    rankings: Rankings,
    path: AnyPath,
    overwrite: bool = False,
    count: str | None = "count",
    labels: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write rankings as a comma-separated table, one column an item holding ranks from 1, gzipped for ``.gz``.

    Cells of free items are empty, and the last column holds the counts. The table gives the rankings back with
    ``read_csv(path, layout="ranks", count="count", unlisted="free", blank="keep")``. Names are written as they are: one
    that begins with ``=`` is a formula to a spreadsheet program that opens the file, and is pointed out.

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
    labels : mapping, optional
        More columns, of text, to stand in front: their names, and what they say of each ranking.

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
    if count is not None:
        check_writable_name(count, "count")
    if count in rankings.items:
        raise RankingError(f"an item is named {printable(count)!r}, too; choose another name: write_csv(count=...)")
    if count is None and (rankings.counts != 1).any():
        raise RankingError("count=None would lose how many voters gave each ranking; name a column for the counts")
    checks.check_instance("labels", {} if labels is None else labels, Mapping, "a mapping of names to columns of text")
    beside = {
        name: checks.check_labels("labels", texts, len(rankings)).tolist() for name, texts in (labels or {}).items()
    }
    for name in beside:
        check_writable_name(name, "labels")
        if name in (*rankings.items, count):
            raise RankingError(f"labels: {printable(name)!r} is the name of an item or of the counts; rename it")
    write_text(path, csv_text(rankings, count, beside), overwrite)
    texts = (text for own in beside.values() for text in set(own))
    point_out_formulas([*rankings.items, *beside, *texts], checks.check_path("path", path))


def csv_text(rankings: Rankings, count: str | None, labels: Mapping[str, Sequence[str]]) -> str:
    """Return the table as text."""
    text = io.StringIO()
    # Quoted names leave no doubt about the delimiter, whatever signs they hold.
    names = [*labels, *rankings.items, *([] if count is None else [count])]
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(names)
    cells = csv.writer(text, lineterminator="\n")
    beside = zip(*labels.values(), strict=True) if labels else repeat(())
    rows = chain.from_iterable(rankings.ranks[part].tolist() for part in row_slices(rankings.ranks.shape))
    for row, voters, said in zip(rows, rankings.counts.tolist(), beside, strict=False):
        ranks = [*said, *("" if rank == FREE else rank + 1 for rank in row)]
        cells.writerow(ranks if count is None else [*ranks, voters])
    return text.getvalue()

"""Tables of rankings: what a table holds, and ranks, scores, positions, orders and long tables as rankings.

Tables come from delimited text, workbooks, Arrow files, JSON and frames; see ``cells``. A ballot has one cell per
position, with irregularities: skipped, repeated and overvoted positions. Regular ballots are converted all at once,
irregular ones one by one.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np

from rankernel._utils import FloatArray, IntArray, Mask, RankArray
from rankernel._utils.checks import check_flag, check_instance, check_labels, printable
from rankernel.errors import Argument, RankingError, ReadingWarning, warn
from rankernel.io.cells import Codes, Numbering, Table, read_table
from rankernel.io.source import (
    AnyPath,
    FileSource,
    Layout,
    ReadOptions,
    Repairs,
    SourceFile,
    accepts,
    check_writable_name,
    plain_cell,
    quoted,
    write_text,
)
from rankernel.order_tables import are_consecutive, column_position, long_ranks
from rankernel.pair_tables import has_pair_columns, normalized, stem
from rankernel.rankings import (
    FREE,
    MAX_VOTERS,
    Labels,
    Rankings,
    are_average_ranks,
    as_rankings,
    dense_ranks,
    row_slices,
)

INTEGER = re.compile(r"([0-9]{1,30})(?:\.0*)?")
NUMBER = re.compile(r"[+-]?(?:[0-9]{1,300}\.?[0-9]{0,300}|\.[0-9]{1,300})(?:[eE][+-]?[0-9]{1,3})?")
# Words in names of columns that are not items.
BOOKKEEPING_WORDS = """
age ballot ballotid batch box case collector count counts cvr cvrid date day district email end entry id ids index ip
address line n name no num number precinct record recorded region respondent response row session start state station
sum survey tabulator time timestamp total type unnamed user userid users vote voter voterid voters votes ward weight
weights year
"""
BOOKKEEPING = frozenset(BOOKKEEPING_WORDS.split())
COUNT_WORDS = "count counts n votes n_votes num_votes weight weights frequency freq multiplicity ballots"
COUNT = frozenset(COUNT_WORDS.split())
LONG_WORDS = {  # of the roles of the columns of long tables
    "user": "user voter judge rater annotator respondent participant worker reviewer query qid topic",
    "item": "item movie film product candidate alternative option doc docid song book joke model",
    "rank": "rank position",
    "score": "score rating stars grade points relevance value",
}
LONG = {role: frozenset(words.split()) for role, words in LONG_WORDS.items()}
MAX_PAIR_COLUMNS = 100
RANK_OF = "rank of "  # before the name of an item that would not be recognised as one
FREE_CELL = "free"
SEPARATOR = "\x1f"  # between the items of a tie or an overvote; part of no name
ORDINAL = re.compile(r"(?:rank|choice|#)?\s*([0-9]{1,4})\s*(?:st|nd|rd|th)?(?:\s*(?:choice|rank|preference))?", re.I)

# Missing-value markers in any case, with _ for a space.
NA_WORDS = """
- -- — . skip skipped undervote undervoted under_vote undervotes exhausted blank (blank) [blank] (none) (skipped)
(undervote) n/a #n/a <na> no_vote novote not_ranked unranked no_rank no_preference no_selection left_blank empty
"""
# Missing-value markers in exactly this case, as programs write them.
NA_PROGRAMS = frozenset(["NA", "NaN", "nan", "NULL", "null", "None", "none", "<NA>"])
OVERVOTE_WORDS = "overvote overvoted over_vote overvotes (overvote)"
NA_MARKERS, OVERVOTES = (
    frozenset(word.replace("_", " ") for word in words.split()) for words in (NA_WORDS, OVERVOTE_WORDS)
)
WRITE_IN = re.compile(
    r"\W*(?:(?:undeclared|unresolved|other)?[\s-]*(?:write[\s_-]*ins?|uwi)[\s:#-]*[0-9]*|undeclared)\W*", re.IGNORECASE
)
SEPARATORS = ("|", ";", "/", ",", "&", "+", "\n")  # that may join several names in a cell
MISSING, IRREGULAR = -1, -2  # among the indices of names
NOT_VOTES = (Argument("label_columns"), ", ", Argument("ignore"), " and ", Argument("count"))


@accepts(
    *("layout", "header", "items", "count", "label_columns", "ignore", "columns", "contest", "unlisted", "ascending"),
    *("skipped", "repeated", "overvotes", "write_ins", "aliases", "separator", "na_values", "fold_case", "blank"),
    *("delimiter", "encoding", "max_bytes"),
)
def read_csv(path: Any, **keywords: Any) -> Rankings:
    """Read rankings from a table: delimited text (plain or gzipped), a workbook, Parquet, Feather, JSON or JSON lines.

    With one column per item (``layout="ranks"``) a cell holds a rank: an integer, an ordinal such as *2nd choice*, or
    the mean rank of tied items; smaller is better, equal ranks are tied, gaps are closed, an empty cell or -1 is not
    ranked, and *free* is a free item. With ``layout="scores"`` it holds a score, any number; larger is better. With one
    column per position (``layout="positions"``; columns such as ``rank 1``, ``choice_2``, ``Mayor Choice 2 of 4``) a
    cell names an item; other columns are ignored, and of several contests one is chosen. This is the layout of cast
    vote records, with their irregularities: an empty cell, or a missing-value marker such as *skipped* or *undervote*,
    is a skipped position if a marked one follows; a cell that says *overvote*, or names several items joined by
    ``separator``, is an overvote. With ``layout="orders"`` one column holds orders such as ``tea > milk = juice`` or
    ``tea;milk;``. With ``layout="long"`` each row holds a user, an item, and its rank or score. A column of counts is
    recognised by its name and its integers.

    Names that differ only in case or spaces give a :class:`ReadingWarning`.

    Parameters
    ----------
    path : path or file object
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
    table = read_table(source)
    return table_rankings(table, detected_layout(table))


def table_rankings(table: Table, layout: Layout) -> Rankings:
    """Return the rankings of a table with a known layout."""
    options = table.source.options
    if options.ascending and layout not in ("scores", "long"):
        raise RankingError(
            Argument("ascending", True), " requires ", Argument("layout", "scores"), "; smaller ranks are always better"
        )
    if layout == "pairs":
        raise RankingError(Argument("layout", "pairs"), " is read by read_pairs, or by read")
    if layout == "long":
        return long_rankings(table)
    if layout == "orders":
        return orders_rankings(table)
    others = [name for name in table.columns if name not in options.named_columns]
    count = count_column(table, others)
    if layout == "positions":
        votes, title, ignored = contest_columns(table, [name for name in others if name != count])
        kind = "a cast vote record" if title or ignored else "a table with one column per position"
        return ballots_of_table(table, votes, FileSource(kind, title, ignored=ignored, count=count or ""))
    columns, labels, ignored = item_names_of(table, [name for name in others if name != count])
    votes, rows = table.without([name for name in table.columns if name not in columns]).distinct()
    named = tuple(columns[name] for name in votes.columns)
    numbers, free, items = item_numbers(replace(votes, columns=named), layout)
    if layout == "ranks":
        ranks = integer_ranks(numbers, replace(votes, columns=named), items)
        kind = "a table of ranks, one column per item"
    else:
        listed = ~np.isnan(numbers)
        ranks = dense_ranks(np.where(listed, numbers if options.ascending else -numbers, 0.0), listed, "free")
        better = "smaller" if options.ascending else "larger"
        kind = f"a table of scores, one column per item, {better} is better"
    about = FileSource(kind, ignored=(*options.ignore, *ignored), count=count or "")
    return with_columns(table, Ballots(ranks, items, free=free), about, rows, labels)


def with_columns(
    table: Table, ballots: Ballots, about: FileSource, rows: IntArray, labels: Sequence[str] = ()
) -> Rankings:
    """Return ballots with the counts and label columns of their table; ``rows`` gives the ballot of each row."""
    options = table.source.options
    columns = {name: table.column(name, "label_columns") for name in (*options.label_columns, *labels)}
    counts = np.ones(len(table), dtype=np.int64)
    if about.count:
        column = table.select([table.index(about.count, "count")])
        counts = column.mapped(lambda cell: count_of(cell) or 0, np.int64)[:, 0]
        if (counts < 1).any():
            row = int(np.argmax(counts < 1))
            cell = quoted(column.texts[column.codes[row, 0]])
            raise table.error(row, f"the count {cell} is not a positive integer")
    return rankings_of(
        ballots, counts, replace(about, ignored=tuple(dict.fromkeys(about.ignored))), table.source, rows, columns
    )


def ballots_of_table(
    table: Table,
    votes: Table,
    about: FileSource,
    items: tuple[str, ...] | None = None,
    labels: Sequence[str] = (),
) -> Rankings:
    """Return the rankings of a table whose columns of votes have one cell per position."""
    options = table.source.options
    candidates = tuple(dict.fromkeys(filter(None, (item_of(name, options) for name in items or ())))) or None
    distinct, rows = votes.distinct()
    return with_columns(table, read_ballots(distinct, options.items or candidates), about, rows, labels)


def count_of(cell: str) -> int | None:
    """Return a count, None for a cell that is not a positive integer."""
    integer = INTEGER.fullmatch(cell)
    return min(int(integer.group(1)), MAX_VOTERS + 1) or None if integer else None


def count_column(table: Table, others: Sequence[str]) -> str | None:
    """Return the column of counts of the options, or the only one that is recognised, if there is one."""
    if table.source.options.count is not None:
        return table.source.options.count
    letters = sum(len(name) == 1 for name in others)
    found = [name for name in others if normalized(name) in COUNT and not (len(name) == 1 and letters > 2)]
    for name in found:
        cells = table.texts_of(table.positions[name])
        if len(found) == 1 and cells and all(count_of(cell) for cell in cells):
            return name
        wrong = [cell for cell in cells if re.match("[+-]?[.]?[0-9]", cell) and not count_of(cell)]
        if wrong or (len(found) > 1 and all(map(count_of, cells))):
            problem = (
                f"column {quoted(name)} may hold counts{f', but {quoted(wrong[0])} is not one' if wrong else ''}; "
            )
            raise table.error(None, problem, "give ", Argument("count", ...), " or ", Argument("ignore", [name]))
    return None


# ---------------------------------------------------------------------- detection of the layout


def detected_layout(table: Table) -> Layout:
    """Return the layout of the options, or the only one that is consistent with the table."""
    options = table.source.options
    table.check_columns()
    if options.layout != "auto":
        return options.layout
    columns = [
        name for name in table.columns if name not in options.named_columns or name in (options.columns or {}).values()
    ]
    if options.columns is not None:
        return "long" if {"item", "rank", "score"} & options.columns.keys() else "pairs"
    if len(columns) <= MAX_PAIR_COLUMNS and has_pair_columns(columns):
        return "pairs"
    if all(roles_of_long(columns).get(role) for role in ("user", "item")):
        return "long"
    if not columns:
        raise table.error(None, "no column is left for the votes besides those of ", *NOT_VOTES)
    if not len(table):
        raise table.error(
            None,
            "the table has no rows, or its first row does not name the columns; in this case give ",
            Argument("header", False),
        )
    positions = [name for name in columns if column_position(name) is not None and not name.startswith(RANK_OF)]
    if positions or options.contest is not None:
        votes = table.without([name for name in table.columns if name not in positions])
        if options.contest is None and not holds_names(votes) and not holds_numbered_items(votes):
            check_header(table)
            raise layout_error(
                table,
                None,
                f"columns such as {quoted(positions[0])} look like positions but hold only numbers or nothing",
            )
        return "positions"
    if order_column(table, columns):
        return "orders"
    check_header(table)
    check_plausible_ranks(table, columns)
    return "ranks"


LAYOUTS = {
    "ranks": " (one column per item, cells are ranks)",
    "positions": " (one column per position, cells are names)",
    "scores": " (one column per item, larger is better)",
}


def layout_error(
    table: Table, row: int | None, problem: str, column: str = "", whole: Table | None = None
) -> RankingError:
    """Return the error for an ambiguous table, with those options with which the whole table can be read."""
    whole, options = whole or table, table.source.options
    others = [name for name in whole.columns if name not in options.named_columns]
    texts = [name for name in others if holds_names(whole.select([whole.positions[name]]))]
    layouts: list[dict[str, Any]] = [{"layout": name} for name in LAYOUTS]
    trials = [[{"ignore": [column]}]] if column else []
    trials += [[layout, {**layout, "label_columns": texts}] for layout in layouts]
    return table.error(
        row, problem, "; name columns without votes in ", *NOT_VOTES, *advice(whole, trials, ", or give ")
    )


def advice(table: Table, trials: Iterable[Sequence[dict[str, Any]]], start: str) -> Iterator[object]:
    """Yield parts of a message: of each group of options the first with which the table can be read."""
    for group in () if table.source.is_trial else trials:
        found = next((options for options in group if is_readable(table, options)), {})
        for name, value in found.items():
            yield from (start, Argument(name, value), LAYOUTS.get(value, "") if name == "layout" else "")
            start = " and "
        start = " or " if found else start


def is_readable(table: Table, options: Mapping[str, Any]) -> bool:
    """Whether a table can be read with some options."""
    given = table.source.options
    lists = {name: (*getattr(given, name), *options[name]) for name in ("ignore", "label_columns") if name in options}
    source = table.source.with_options(**{**options, **lists})
    source.is_trial = True  # or its own errors would try options again
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if "header" in options:
                source.table = None
                table = read_table(source)
            changed = replace(table, source=source)
            table_rankings(changed, detected_layout(changed))
    except RankingError:
        return False
    return True


def holds_names(votes: Table) -> bool:
    """Whether some cell is neither a number nor missing."""
    is_missing = missing_of(votes.source.options)
    return any(not NUMBER.fullmatch(votes.texts[code]) and not is_missing(votes.texts[code]) for code in votes.used())


def holds_numbered_items(votes: Table) -> bool:
    """Whether columns of positions hold numbers that can only be those of items.

    These are 1, 2, ... or 0, 1, ..., each at most once in a row and without gaps, and cannot be ranks, because some row
    leaves out smaller ones. Columns whose names are numbers may hold ratings.
    """
    numbers = votes.mapped(lambda cell: int(cell) if re.fullmatch("[0-9]{1,9}", cell) else MISSING, np.int64)
    listed = numbers[numbers >= 0]
    if not len(listed) or any(name.isdigit() for name in votes.columns):
        return False
    present, n_listed = np.unique(listed), (numbers >= 0).sum(axis=1)
    consecutive = present[0] <= 1 and len(present) == present[-1] - present[0] + 1
    return bool(consecutive and is_regular(numbers).all() and (numbers.max(axis=1) >= n_listed + present[0]).any())


def check_header(table: Table) -> None:
    """Raise an error if the first row looks like data: numbers, or names that other rows hold."""
    if table.source.options.header is not None or len(table.columns) < 2:
        return
    names, cells = table.columns, {table.texts[code] for code in table.used()}
    number = all(NUMBER.fullmatch(name) for name in names)
    in_order = (
        number and are_consecutive([int(float(name)) for name in names]) and list(names) == sorted(names, key=float)
    )
    repeated = not number and all(name in cells for name in names)
    if repeated or (number and not in_order):
        layouts: list[dict[str, Any]] = [{}, *({"layout": layout} for layout in LAYOUTS)]
        trials = [[{"header": value, **layout} for layout in layouts] for value in (False, True)]
        start = "; name the columns in a first row, or give "
        problem = "the first row looks like data and not like names of columns"
        raise table.error(None, problem, *advice(table, trials, start))


def check_plausible_ranks(table: Table, columns: Sequence[str]) -> None:
    """Raise an error for numbers that may not be ranks: of a column of bookkeeping, or with gaps, as scores have."""
    count = count_column(table, columns)
    items, _, _ = item_names_of(table, [name for name in columns if name != count])
    votes = table.without([name for name in table.columns if name not in items]).distinct()[0]
    numbers, _, _ = item_numbers(votes, "auto")
    best = np.nanmin(numbers, initial=1.0)  # ranks begin with 1 or 0
    ordered = np.sort(numbers, axis=1)  # NaN comes last
    # Competition and dense ranking (1 2 2 4, 1 2 2 3) never exceed the index of the sorted item, nor do mean ranks.
    beyond = ordered > best + np.arange(ordered.shape[1])
    integer = np.isnan(numbers) | (numbers == np.floor(numbers))
    rows = np.flatnonzero((beyond.any(axis=1) & integer.all(axis=1)) | (ordered[:, 0] > best))
    if len(rows):
        row = int(rows[0])
        listed = ", ".join(f"{value:g}" for value in ordered[row][~np.isnan(ordered[row])][:20])
        raise layout_error(votes, row, f"the numbers {listed} leave out ranks, as scores do", whole=table)


def item_names_of(table: Table, columns: Sequence[str]) -> tuple[dict[str, str], list[str], tuple[str, ...]]:
    """Return the columns of items with the names of the items, the label columns, and the ignored columns.

    If the layout is not given, columns of text are labels and columns of bookkeeping, such as identifiers, are ignored.
    """
    marked = [name for name in columns if name.lower().startswith(RANK_OF)]
    if marked:
        others = [name for name in columns if not name.lower().startswith(RANK_OF)]
        return {name: name[len(RANK_OF) :] for name in marked}, others, ()
    options = table.source.options
    labels: list[str] = []
    ignored: list[str] = []
    if options.layout == "auto":
        is_missing, given = missing_of(options), set(options.items or ())
        for name in columns:
            if name in given:
                continue
            cells = [cell for cell in table.texts_of(table.positions[name]) if not is_missing(cell)]
            if cells and all(rank_of(cell) is None for cell in cells):
                labels.append(name)
            elif is_bookkeeping(name) and any((rank_of(cell) or 0) > len(columns) for cell in cells):
                ignored.append(name)
        items = [name for name in columns if name not in labels and name not in ignored]
        ambiguous = [name for name in items if is_bookkeeping(name) and name not in given]
        if len(items) < 2 or (ambiguous and sum(len(name) == 1 for name in columns) < 3):
            name = (ambiguous or labels or ignored or items)[0]
            cell = table.texts[table.codes[0, table.positions[name]]]
            holds = f"holds {quoted(cell)}, which is not a rank" if name in labels else "does not look like an item"
            raise layout_error(table, 0 if name in labels else None, f"column {quoted(name)} {holds}", name)
    names = [name for name in columns if name not in labels and name not in ignored]
    bracketed = [re.fullmatch(r"(.*)\[(.+)\]\s*", name, re.DOTALL) for name in names]
    if all(bracketed) and len({match[1] for match in bracketed if match}) == 1 and len(names) > 1:  # Google Forms
        return (
            {name: match[2].strip() for name, match in zip(names, bracketed, strict=True) if match},
            labels,
            tuple(ignored),
        )
    return {name: name for name in names}, labels, tuple(ignored)


def is_bookkeeping(name: str) -> bool:
    """Whether all words in the name of a column are those of identifiers and the like."""
    words = re.findall(r"[^\W_]+", re.sub("[0-9]+|(?<=[a-z])(?=[A-Z])", " ", name).lower())
    return frozenset(words) <= BOOKKEEPING


def rank_of(cell: str) -> float | None:
    """Return the rank in a cell, a number from 0 or an ordinal; -1 for a free item, None for other cells."""
    if NUMBER.fullmatch(cell):
        return float(cell) if float(cell) >= 0 or float(cell) == FREE else None
    ordinal = ORDINAL.fullmatch(cell)
    return float(ordinal[1]) if ordinal else FREE if cell == FREE_CELL else None


# ---------------------------------------------------------------------- one column per item


def item_numbers(votes: Table, layout: Layout) -> tuple[FloatArray, Mask, tuple[str, ...]]:
    """Return the numbers in the cells, NaN where missing, which cells are free, and the items."""
    if "" in votes.columns:
        nameless = votes.columns.index("") + 1
        raise votes.error(None, f"column {nameless} has no name; name the item, or give ", Argument("ignore", ""))
    items = votes.source.options.items
    names = votes.columns if items is None else items
    known = frozenset(names)
    for name in votes.columns:
        if name not in known:
            problem = f"column {quoted(name)} is not one of the ", Argument("items"), "; name it in "
            raise votes.error(None, *problem, Argument("ignore", ...))
    votes.source.check_table_size(votes.n_rows, len(names))
    votes = votes if items is None else in_order(votes, names)
    is_missing, invalid = missing_of(votes.source.options), set()

    def number(cell: str) -> float:
        value = (float(cell) if NUMBER.fullmatch(cell) else None) if layout == "scores" else rank_of(cell)
        if value is None and not is_missing(cell):
            invalid.add(cell)
        return np.nan if value is None or (layout != "scores" and value == FREE) else value

    numbers: FloatArray = votes.mapped(number, np.float64)
    if invalid:
        codes = [code for code, text in enumerate(votes.texts) if text in invalid]
        check_cells(votes, np.isin(votes.codes, codes), layout)
    check_cells(votes, np.isinf(numbers), layout)
    return numbers, votes.mapped(lambda cell: cell == FREE_CELL, bool), names


def in_order(votes: Table, names: tuple[str, ...]) -> Table:
    """Return the columns of the given items."""
    index = {name: column for column, name in enumerate(votes.columns)}
    return votes.select([index[name] if name in index else votes.index(name, "items") for name in names])


def check_cells(votes: Table, invalid: Mask, layout: Layout) -> None:
    """Raise an error for the first invalid cell, if there is one."""
    if invalid.any():
        row, column = divmod(int(np.argmax(invalid)), invalid.shape[1])
        cell, name = quoted(votes.texts[votes.codes[row, column]]), quoted(votes.columns[column])
        expected = "a score is a number" if layout == "scores" else "a rank is an integer >= 0 or a mean rank of ties"
        problem = f"item {name} holds {cell}; {expected} (name a column that is not an item in "
        raise votes.error(row, problem, Argument("ignore", ...), ")")


def integer_ranks(numbers: FloatArray, votes: Table, names: tuple[str, ...]) -> RankArray:
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


def contest_columns(table: Table, others: Sequence[str]) -> tuple[Table, str, tuple[str, ...]]:
    """Return the columns of one contest sorted by position, its name, and the ignored columns.

    If no column names a position, the columns are positions in their order.
    """
    positions = {name: position for name in others if (position := column_position(name)) is not None}
    if not positions:
        if table.source.options.contest is not None:
            columns = ", ".join(quoted(name)[1:-1] for name in table.columns[:12])
            problem = f"no column names a position, such as 'Mayor Choice 1 of 4'; the columns are {columns}"
            raise table.error(None, problem)
        return table.without([name for name in table.columns if name not in others]), "", ()
    contest = chosen_contest(list(dict.fromkeys(each.contest for each in positions.values())), table.source)
    used = {name: each.number for name, each in positions.items() if each.contest == contest}
    numbers = list(used.values())
    if len(set(numbers)) < len(numbers):
        raise table.error(None, f"two columns name the same position: {', '.join(map(printable, list(used)[:12]))}")
    if not are_consecutive(numbers):
        listing = ", ".join(map(str, sorted(numbers)))
        raise layout_error(table, None, f"the columns look like positions but are not consecutive: {listing}")
    ignored = tuple(name for name in others if name not in used)
    return table.select([table.positions[name] for name in sorted(used, key=used.__getitem__)]), contest, ignored


def chosen_contest(names: Sequence[str], source: SourceFile) -> str:
    """Return the contest of the options: by its name, or by a part that only one name contains."""
    known, wanted = ", ".join(quoted(name) for name in names[:20]), source.options.contest
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


# ---------------------------------------------------------------------- orders in one column, and long tables


def order_column(table: Table, columns: Sequence[str]) -> str:
    """Return the only column whose cells are orders, such as ``tea > milk`` or ``tea;milk;``, or ""."""
    found = []
    for name in columns:
        cells = table.texts_of(table.positions[name])
        total = sum(cells.values())
        signs = (
            sum(n for cell, n in cells.items() if ">" in cell),
            sum(n for c, n in cells.items() if c.endswith(";")),
        )
        if total and (2 * signs[0] > total or signs[1] == total):
            found.append(name)
    return found[0] if len(found) == 1 else ""


def orders_rankings(table: Table) -> Rankings:
    """Return the rankings of a table with one column of orders; other columns are labels."""
    options = table.source.options
    others = [name for name in table.columns if name not in options.named_columns]
    count = count_column(table, others)
    name = order_column(table, others) or next((name for name in others if name != count), "")
    column = table.select([table.index(name, "columns")])
    buckets: dict[int, list[str]] = {}
    for code in column.used():
        parts = column.texts[code].split(">") if ">" in column.texts[code] else column.texts[code].split(";")
        ties = ([each.strip(" \t[]\"'") for each in re.split("[=~]", part)] for part in parts if part.strip())
        buckets[code] = [SEPARATOR.join(filter(None, tie)) for tie in ties]
    n_positions = max(map(len, buckets.values()), default=1) or 1
    table.source.check_table_size(len(table), n_positions)
    numbering = Numbering({"": 0})
    coded = np.zeros((len(column.texts), n_positions), dtype=np.int32)
    for code, cells in buckets.items():
        coded[code, : len(cells)] = [numbering[cell] for cell in cells]
    codes = coded[column.codes[:, 0]]
    source = table.source.with_options(separator=SEPARATOR, overvotes="tie")
    names = tuple(f"rank {position + 1}" for position in range(n_positions))
    votes = replace(column, source=source, columns=names, texts=list(numbering), codes=codes)
    ignored = tuple(each for each in others if each not in (name, count))
    return ballots_of_table(
        table, votes, FileSource(f"orders in column {quoted(name)}", ignored=ignored, count=count or "")
    )


def roles_of_long(columns: Sequence[str]) -> dict[str, str]:
    """Return the columns of user, item, and rank or score, as far as exactly one column has each role."""
    found = {}
    for role, words in LONG.items():
        fitting = [name for name in columns if stem(name) in words or normalized(name) in words]
        if len(fitting) == 1:
            found[role] = fitting[0]
    return found if {"user", "item"} <= found.keys() and {"rank", "score"} & found.keys() else {}


def long_rankings(table: Table) -> Rankings:
    """Return one ranking for each user of a table with one row per user and item."""
    source, options = table.source, table.source.options
    roles = {**roles_of_long(table.columns), **(options.columns or {})}
    value = "rank" if "rank" in roles and "score" not in (options.columns or {}) else "score"
    for role in ("user", "item", value):
        if role not in roles:
            problem = (
                f"no column holds the {role}; a long table has a user, an item, and a rank or a score: name it in "
            )
            raise table.error(None, problem, Argument("columns", ...))
    user, item = (table.select([table.index(roles[role], "columns")]) for role in ("user", "item"))
    cells = table.select([table.index(roles[value], "columns")])
    numbers = cells.mapped(lambda cell: float(cell) if NUMBER.fullmatch(cell) else np.nan, np.float64)[:, 0]
    wrong = ~np.isfinite(numbers)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise table.error(row, f"the {value} {quoted(cells.texts[cells.codes[row, 0]])} is not a number")
    ascending = value == "rank" or options.ascending
    try:
        ranks, users, items, first = long_ranks(
            [user.texts[code] for code in user.codes[:, 0].tolist()],
            [item.texts[code] for code in item.codes[:, 0].tolist()],
            numbers if ascending else -numbers,
            options.items,
            options.unlisted or "free",
            source.check_table_size,
        )
    except RankingError as error:
        raise source.restate(error) from None
    labels = {roles["user"]: np.array(users, dtype=np.str_)}
    labels |= {name: table.column(name, "label_columns")[first] for name in options.label_columns}
    better = "smaller" if ascending else "larger"
    used = {roles["user"], roles["item"], roles[value], *options.label_columns}
    ignored = tuple(name for name in table.columns if name not in used)
    described = ", ".join(f"{role} in {printable(roles[role])}" for role in ("user", "item", value))
    about = FileSource(f"a long table: {described}, {better} is better", ignored=ignored)
    return Rankings._trusted(ranks, items, None, labels, about)


# ---------------------------------------------------------------------- ballots


class Ballots(NamedTuple):
    """Ranks of ballots, -1 for items that are not listed, the items, the repairs, and which items are free."""

    ranks: RankArray
    items: tuple[str, ...]
    repairs: Repairs = Repairs()
    free: Mask | None = None


class Cell(NamedTuple):
    """The names in a cell, and whether the cell only states that it is overvoted."""

    names: tuple[str, ...]
    overvoted: bool = False


def missing_of(options: ReadOptions, items: Iterable[str] | None = None) -> Any:
    """Return the function that tells missing values; items are never missing values."""
    names, markers = frozenset(items or ()), frozenset(options.na_values)
    both = sorted(names & markers)
    if both:
        raise RankingError(f"{quoted(both[0])} is in both ", Argument("items"), " and ", Argument("na_values"))

    def is_missing(cell: str) -> bool:
        if cell in names:
            return False
        return not cell or cell in markers or cell in NA_PROGRAMS or lower(cell) in NA_MARKERS

    return is_missing


def lower(cell: str) -> str:
    """Return a cell in lower case with single spaces between its words."""
    return " ".join(cell.lower().replace("_", " ").split())


def folded(name: str) -> str:
    """Return a name without case and spaces."""
    return "".join(name.split()).casefold()


def read_ballots(table: Table, items: tuple[str, ...] | None) -> Ballots:
    """Return the ballots of a table of distinct rows with one column per position."""
    options = table.source.options
    if items is None and options.separator is None:
        check_joined_names(table)
    cells = interpreted_cells(table, items)
    merged: dict[str, str] = {}
    if options.fold_case:
        first = {folded(name): name for name in reversed(items or ())}
        for cell in cells.values():
            for name in cell.names if not cell.overvoted else ():
                if first.setdefault(folded(name), name) != name:
                    merged[name] = first[folded(name)]
        cells = {
            code: Cell(tuple(merged.get(n, n) for n in cell.names), cell.overvoted) for code, cell in cells.items()
        }
    names = items or tuple(dict.fromkeys(name for cell in cells.values() if not cell.overvoted for name in cell.names))
    table.source.check_table_size(table.n_rows, len(names))
    reader = BallotReader(cells, {name: number for number, name in enumerate(names)}, table)
    ranks = reader.ranks()
    counts = table.cell_counts()
    missing = [code for code, cell in cells.items() if not cell.names and table.texts[code]]
    repairs = Repairs(
        reader.skipped,
        reader.repeated,
        reader.overvoted,
        na_values=tuple((table.texts[code], int(counts[code])) for code in missing),
        merged=tuple(merged.items()),
    )
    return Ballots(ranks, names, repairs)


def interpreted_cells(table: Table, items: tuple[str, ...] | None) -> dict[int, Cell]:
    """Return the interpretation of each distinct cell, in order of first appearance."""
    options, names = table.source.options, frozenset(items or ())
    is_missing = missing_of(options, items)
    cells = {}
    for code in table.used():
        text = table.texts[code]
        if is_missing(text):
            cells[code] = Cell(())
        elif text not in names and lower(text) in OVERVOTES:
            cells[code] = Cell((text,), overvoted=True)
        else:
            parts = [text] if options.separator is None or text in names else text.split(options.separator)
            found = (item_of(part.strip(), options) for part in parts if not is_missing(part.strip()))
            cells[code] = Cell(tuple(filter(None, found)))
    return cells


def item_of(name: str, options: ReadOptions) -> str:
    """Return the item that a name stands for, "" for a write-in that is dropped."""
    name = (options.aliases or {}).get(name, name)
    if options.write_ins == "keep" or not WRITE_IN.fullmatch(name):
        return name
    return "write-in" if options.write_ins == "merge" else ""


def check_joined_names(table: Table) -> None:
    """Raise an error for a cell that looks like several candidates, instead of making a candidate of it."""
    used = table.used()
    present = {table.texts[code] for code in used}
    for code in used:
        cell = table.texts[code]
        for sign in SEPARATORS:
            parts = [part.strip() for part in cell.split(sign)] if sign in cell else []
            enough = any if sign in "|;" else all
            if len(parts) > 1 and all(parts) and enough(part in present for part in parts):
                raise table.error(
                    int(table.first_cells()[code] // max(table.codes.shape[1], 1)),
                    f"{quoted(cell)} looks like an overvote, {len(parts)} names joined by {sign!r}; give ",
                    Argument("separator", sign),
                    ", or if it is one name, list all items in ",
                    Argument("items", ...),
                )


class BallotReader:
    """Converts ballots to ranks and counts the repairs."""

    def __init__(self, cells: dict[int, Cell], index: dict[str, int], table: Table) -> None:
        self.options, self.cells, self.index, self.table = table.source.options, cells, index, table
        self.skipped = self.repeated = self.overvoted = 0

    def ranks(self) -> RankArray:
        """Return the position of each item in each row, -1 for items that are not listed."""
        single = np.full(max(len(self.table.texts), 1), IRREGULAR, dtype=np.int32)
        for code, cell in self.cells.items():
            if not cell.names:
                single[code] = MISSING
            elif len(cell.names) == 1 and not cell.overvoted:
                single[code] = self.index.get(cell.names[0], IRREGULAR)
        names = single[self.table.codes]
        ranks: RankArray = np.full((len(self.table), len(self.index)), FREE, dtype=np.int32)
        regular = is_regular(names)
        rows, positions = np.nonzero((names >= 0) & regular[:, None])
        ranks[rows, names[rows, positions]] = positions
        for row in np.flatnonzero(~regular).tolist():
            self.repair(row, ranks[row])
        return ranks

    def repair(self, row: int, ranks: RankArray) -> None:
        """Write the ranks of an irregular row."""
        before = self.skipped, self.repeated, self.overvoted
        for rank, bucket in enumerate(self.buckets(row)):
            ranks[[self.index[name] for name in bucket]] = rank
        n_more = 0 if self.table.counts is None else int(self.table.counts[row]) - 1
        self.skipped += n_more * (self.skipped - before[0])
        self.repeated += n_more * (self.repeated - before[1])
        self.overvoted += n_more * (self.overvoted - before[2])

    def buckets(self, row: int) -> list[list[str]]:
        """Return the buckets of one ballot, best first."""
        codes = self.table.codes[row].tolist()
        while codes and not self.cells[codes[-1]].names:  # missing values at the end are not skipped positions
            codes.pop()
        buckets: list[list[str]] = []
        seen: set[str] = set()
        limit = {"close": len(codes), "stop": 0}.get(str(self.options.skipped), self.options.skipped)
        n_skipped = 0
        for code in codes:
            n_skipped = 0 if self.cells[code].names else n_skipped + 1
            self.skipped += not self.cells[code].names
            if n_skipped > int(limit):
                break
            bucket = self.bucket(code, seen, row) if self.cells[code].names else []
            if bucket is None:
                break
            if bucket:
                buckets.append(bucket)
                seen.update(bucket)
        return buckets

    def bucket(self, code: int, seen: set[str], row: int) -> list[str] | None:
        """Return the names that a cell adds to the ballot, or None if the ballot ends there."""
        (names, overvoted), text = self.cells[code], quoted(self.table.texts[code])
        if len(names) > 1 or overvoted:
            self.overvoted += 1
            rule = self.options.overvotes
            if rule == "error":
                raise self.table.error(row, f"{text} is an overvote; choose another ", Argument("overvotes"))
            if rule != "tie":
                return None if rule == "stop" else []
            if overvoted:
                raise self.table.error(
                    row, f"{text} does not name the candidates, as ", Argument("overvotes", "tie"), " requires"
                )
        new = [name for name in dict.fromkeys(names) if name not in seen]
        if len(new) < len(names):
            self.repeated += len(names) - len(new)
            if self.options.repeated == "error":
                raise self.table.error(row, f"{text} is repeated; choose another ", Argument("repeated"))
            if self.options.repeated == "stop":
                return None
        for name in new:
            if name not in self.index:
                raise self.table.error(row, f"{quoted(name)} is not one of the ", Argument("items"))
        return new


def is_regular(names: Codes) -> Mask:
    """Return for each row whether it names different items, one per cell, without skipped positions."""
    listed = names >= 0
    gap = (listed[:, 1:] & ~listed[:, :-1]).any(axis=1)
    ordered = np.sort(names, axis=1)
    repeated = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    return np.asarray(~(gap | repeated | (names == IRREGULAR).any(axis=1)))


def rankings_of(
    ballots: Ballots,
    counts: IntArray,
    about: FileSource,
    source: SourceFile,
    rows: IntArray | None = None,
    labels: Labels | None = None,
) -> Rankings:
    """Return ballots as rankings, without blank ones unless the options keep them.

    ``rows`` gives the ballot of each row of the file.
    """
    options = source.options
    source.check_total(counts)
    listed = ballots.ranks != FREE
    marked = listed.any(axis=1)
    warn_of_similar_names(ballots.items, source)
    ranks = dense_ranks(ballots.ranks, listed, options.unlisted or "last")
    if ballots.free is not None:
        ranks[ballots.free] = FREE
        marked |= ballots.free.any(axis=1)
    if not ballots.items or (options.blank == "drop" and len(marked) and not marked.any()):
        raise source.error(
            None, "no row lists an item; give ", Argument("items", ...), " and ", Argument("blank", "keep")
        )
    labels = labels or {}
    if rows is not None:
        marked = marked[rows]
    repairs = replace(ballots.repairs, blank=int(np.count_nonzero(~marked)), blank_dropped=options.blank == "drop")
    if options.blank == "drop" and not marked.all():
        ranks = ranks[marked if rows is None else rows[marked]]
        blank = {name: values[~marked] for name, values in labels.items()}
        about = replace(about, blank_rows=tuple(np.flatnonzero(~marked).tolist()), blank_labels=blank)
        counts, labels = counts[marked], {name: values[marked] for name, values in labels.items()}
    elif rows is not None and len(rows) > len(ranks):
        ranks = ranks[rows]
    return Rankings._trusted(ranks, ballots.items, counts, labels, replace(about, repairs=repairs))


def warn_of_similar_names(items: tuple[str, ...], source: SourceFile) -> None:
    """Warn of names that differ only in case or spaces."""
    seen: dict[str, str] = {}
    similar = [(seen[folded(name)], name) for name in items if seen.setdefault(folded(name), name) != name]
    if similar:
        pairs = [f"{quoted(one)} and {quoted(other)}" for one, other in similar[:5]]
        shown = "; ".join([*pairs, *["..."] * (len(similar) > 5)])
        problem = f"{source.name}: {shown} differ only in case or spaces and are different items; "
        warn((problem, Argument("fold_case", True), " merges them"), ReadingWarning)


# ---------------------------------------------------------------------- writing


def write_csv(
    rankings: Rankings,
    path: AnyPath,
    *,
    overwrite: bool = False,
    count: str | None = "count",
    labels: Mapping[str, Sequence[str]] | None = None,
    raw: bool = False,
) -> None:
    """Write rankings as a comma-separated table, one column per item with ranks from 1, gzipped for ``.gz``.

    Cells of free items say *free*, and the last column holds the counts. The table is read back by ``read(path)``: if
    the names of the columns do not show that the cells are ranks, or if a spreadsheet would evaluate a name as a
    formula, such as ``=1+1``, those of the items begin with ``rank of``.

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
        Additional columns to write first: their names, and one string for each ranking. Strings that a spreadsheet
        would evaluate as formulas are prefixed with an apostrophe, which is removed when the table is read.
    raw : bool
        Whether names and labels are written unchanged, even if a spreadsheet would evaluate them as formulas.

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
    ...     print(Path(f"{folder}/drinks.csv").read_text().strip())
    "rank of tea","rank of milk","count"
    1,2,3
    free,1,1
    """
    rankings, raw = as_rankings(rankings), check_flag("raw", raw)
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
        if not raw:
            if plain_cell(name) != name:
                raise RankingError(
                    f"labels: {printable(name)!r} is a formula in a spreadsheet; rename it, or give raw=True"
                )
            columns[name] = [plain_cell(str(text)) for text in columns[name]]
    if count is not None and plain_cell(count) != count:
        raise RankingError(f"count: {printable(count)!r} is a formula in a spreadsheet; give another name")
    write_text(path, csv_text(rankings, count, columns, raw), overwrite)


def csv_text(rankings: Rankings, count: str | None, labels: Mapping[str, Sequence[str]], raw: bool) -> str:
    """Return the table as text."""
    text = io.StringIO()
    # Quoted names make the delimiter unambiguous.
    items = [*rankings.items]
    if not is_plain(rankings, count, labels) or not (raw or all(plain_cell(name) == name for name in items)):
        items = [f"{RANK_OF}{name}" for name in items]
    names = [*labels, *items, *([] if count is None else [count])]
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(names)
    writer = csv.writer(text, lineterminator="\n")
    label_rows = zip(*labels.values(), strict=True) if labels else repeat(())
    rows = chain.from_iterable(rankings.ranks[block].tolist() for block in row_slices(rankings.ranks.shape))
    for row, n_voters, label_row in zip(rows, rankings.counts.tolist(), label_rows, strict=False):
        cells = [*label_row, *(FREE_CELL if rank == FREE else rank + 1 for rank in row)]
        writer.writerow(cells if count is None else [*cells, n_voters])
    return text.getvalue()


def is_plain(rankings: Rankings, count: str | None, labels: Mapping[str, Sequence[str]]) -> bool:
    """Whether a table with these columns is recognised as one of ranks, with these items and counts."""
    if len(rankings) == 0 or rankings.n_items < 2:
        return False
    columns = (*labels, *rankings.items, *([] if count is None else [count]))
    numbering = Numbering()
    texts = [[numbering[str(text)] for text in column] for column in labels.values()]
    numbers = [[numbering[str(rank + 1)] for rank in column] for column in rankings.ranks.T.tolist()]
    counts = [] if count is None else [[numbering[str(each)] for each in rankings.counts.tolist()]]
    codes = np.array([*texts, *numbers, *counts], dtype=np.int32).T
    table = Table(SourceFile("table.csv"), columns, list(numbering), codes, np.arange(len(codes)))
    try:
        found = detected_layout(table) == "ranks" and count_column(table, columns) == count
        items, _, _ = item_names_of(table, [name for name in columns if name != count])
    except RankingError:
        return False
    return found and tuple(items.values()) == rankings.items

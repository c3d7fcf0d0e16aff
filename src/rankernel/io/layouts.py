"""Tables of rankings: which columns hold votes, what their cells mean, and the table that is written."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, repeat
from typing import Any

import numpy as np

from rankernel._utils import FloatArray, Mask, RankArray
from rankernel._utils.checks import check_flag, check_instance, check_labels, printable
from rankernel.columns import (
    NEXT,
    NUMBER,
    ORDINALS,
    TIED,
    TIME_WORDS,
    Column,
    ColumnPosition,
    are_consecutive,
    as_number,
    column_position,
    find_columns,
    long_ranks,
    normalized,
    stem,
)
from rankernel.errors import Argument, RankingError
from rankernel.io.ballots import missing_of, rankings_of, read_ballots
from rankernel.io.source import (
    AnyPath,
    FileSource,
    Layout,
    SourceFile,
    accepts,
    check_writable_name,
    plain_cell,
    quoted,
    write_text,
)
from rankernel.io.table import Table, read_table
from rankernel.rankings import FREE, MAX_VOTERS, Rankings, as_rankings, dense_ranks, fractional_ranks, row_slices

COUNT_CELL = re.compile(r"([0-9]{1,30}|[0-9]{1,3}(?:,[0-9]{3}){1,9})(?:\.0*)?")  # 1200 or 1,200
# Words in names of columns that are not items.
BOOKKEEPING_WORDS = """
age ballot ballotid batch box case collector count counts cvr cvrid date day district duration email end entry id ids in
index ip address line n name no num number precinct record recorded region respondent response row seconds session start
state station sum survey tabulator time timestamp total type unnamed user userid users vote voter voterid voters votes
ward weight weights year
"""
# Words in names of columns of counts: one of the first, and any of the second; and names of possible counts.
COUNT_WORDS = "count counts n votes weight weights weighting frequency freq multiplicity ballots voters respondents"
FILLING_WORDS = "number num no of the total vote ballot voter factor"
POSSIBLE_COUNT = ("number", "num", "total")
BOOKKEEPING, COUNT, FILLING = (frozenset(words.split()) for words in (BOOKKEEPING_WORDS, COUNT_WORDS, FILLING_WORDS))
LONG_WORDS = {  # of the roles of the columns of long tables
    "user": "user voter judge rater annotator respondent participant worker reviewer query qid topic",
    "item": "item movie film product candidate alternative option doc docid docno document corpus passage song book "
    "joke model",
    "rank": "rank position",
    "score": "score rating stars grade points relevance value",
}
LONG = {role: frozenset(words.split()) for role, words in LONG_WORDS.items()}
MAX_PAIR_COLUMNS = 100
MAX_TEXTS = 10_000  # distinct cells that decide whether a column holds orders
RANK_OF = "rank of "  # before the name of an item that would not be recognised as one
FREE_CELL = "free"
ORDINAL = re.compile(
    rf"(?:rank|choice|#)?\s*([0-9]{{1,4}}|{'|'.join(ORDINALS)})\s*(?:st|nd|rd|th)?(?:\s*(?:choice|rank|preference))?"
    r"(?:\s*\([^()]*\))?",  # 1st (best)
    re.I,
)
QUESTION = re.compile(r"(.*?)\s*\[(.+)\]\s*", re.DOTALL)  # of Google Forms: question [item]
NUMBERED = re.compile(r"(.*?)[\s_.-]*([0-9]{1,4})")
NOT_VOTES = (Argument("label_columns"), ", ", Argument("ignore"), " and ", Argument("count"))
LAYOUTS = {
    "ranks": " (one column per item, cells are ranks)",
    "positions": " (one column per position, cells are names)",
    "scores": " (one column per item, larger is better)",
}


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
    ``separator``, is an overvote. With ``layout="orders"`` one column holds orders such as ``tea > milk = juice``,
    ``tea;milk;`` or a JSON list. With ``layout="long"`` each row holds a user, an item, and its rank or score. A column
    of counts is recognised by its name and its integers.

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
    >>> from io import StringIO
    >>> text = '''ward,choice 1,choice 2,choice 3
    ... North,Ann,Bob,
    ... South,Bob,skipped,Cy
    ... South,Cy,Cy,Ann
    ... '''
    >>> votes = read_csv(StringIO(text), label_columns=["ward"])
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
    table = read_table(SourceFile.of(path, read_csv, keywords))
    return table_rankings(table, detected_layout(table))


def table_rankings(table: Table, layout: Layout) -> Rankings:
    """Return the rankings of a table with a known layout."""
    options = table.source.options
    if options.ascending and layout not in ("scores", "long"):
        advice = (Argument("layout", "scores"), "; smaller ranks are always better")
        raise RankingError(Argument("ascending", True), " requires ", *advice)
    if layout == "pairs":
        raise RankingError(Argument("layout", "pairs"), " is read by read_pairs, or by read")
    if layout == "long":
        return long_rankings(table)
    names = unnamed_columns(table)
    counts = count_column(table, names)
    names, count = [name for name in names if name != counts], counts or ""
    if layout == "orders":
        return orders_rankings(table, names, count)
    if layout == "positions":
        return position_rankings(table, names, count)
    items, labels, ignored = item_columns(table, names)
    numbers, free, known = item_numbers(table, items, layout)
    if layout == "ranks":
        if options.layout == "auto":
            check_plausible_ranks(table, numbers)
        ranks, kind = integer_ranks(table, numbers, known), "a table of ranks, one column per item"
    else:
        listed = ~np.isnan(numbers)
        ranks = dense_ranks(np.where(listed, numbers if options.ascending else -numbers, 0.0), listed, "free")
        better = "smaller" if options.ascending else "larger"
        kind = f"a table of scores, one column per item, {better} is better"
    about = FileSource(kind, ignored=(*options.ignore, *ignored), count=count)
    return finished(table, ranks, known, about, labels, free)


def unnamed_columns(table: Table) -> list[str]:
    """Return the columns to which the options give no purpose."""
    named = table.source.options.named_columns
    return [name for name in table.columns if name not in named]


def finished(
    table: Table,
    ranks: RankArray,
    items: tuple[str, ...],
    about: FileSource,
    labels: Iterable[str] = (),
    free: Mask | None = None,
    rows: Any = slice(None),
) -> Rankings:
    """Return ballots with the counts and labels of their table; ``rows`` are those of the ballots."""
    columns = {name: table.labels(name)[rows] for name in (*table.source.options.label_columns, *labels)}
    counts = None
    if about.count:
        column = table.columns[about.count]
        counts = column.mapped(lambda cell: count_of(cell) or 0)
        if (counts < 1).any():
            row = int(np.argmax(counts < 1))
            raise table.error(row, f"the count {quoted(column[row])} is not a positive integer")
        counts = counts[rows]
    about = replace(about, ignored=tuple(dict.fromkeys(about.ignored)))
    return rankings_of(table.source, ranks, items, about, counts, columns, free)


def count_of(cell: str) -> int | None:
    """Return a count, None for a cell that is not a positive integer."""
    integer = COUNT_CELL.fullmatch(cell)
    return min(int(integer[1].replace(",", "")), MAX_VOTERS + 1) or None if integer else None


def count_column(table: Table, names: Sequence[str]) -> str | None:
    """Return the column of counts of the options, or the only one that is recognised, if there is one.

    Columns named *number* or *total* hold identifiers if their integers increase; otherwise they are an error.
    """
    if table.source.options.count is not None:
        return table.source.options.count
    letters = sum(len(name) == 1 for name in names)
    found = []
    for name in names:
        words = frozenset(normalized(name).split("_"))
        if words & COUNT and words <= COUNT | FILLING and not (len(name) == 1 and letters > 2):
            found.append(name)
    for name in [name for name in names if normalized(name) in POSSIBLE_COUNT and not found]:
        column = table.columns[name]
        if column.is_numeric and all(map(count_of, column.texts)) and (np.diff(column.numbers) <= 0).any():
            options: list[list[dict[str, Any]]] = [[{"count": name}], [{"ignore": [name]}]]
            raise table.error(None, f"column {quoted(name)} may hold counts", *advice(table, options, "; give "))
    for name in found:
        cells = [cell for cell in table.columns[name].texts if cell]
        if len(found) == 1 and cells and all(map(count_of, cells)):
            return name
        wrong = [cell for cell in cells if re.match("[+-]?[.]?[0-9]", cell) and not count_of(cell)]
        if wrong or (len(found) > 1 and all(map(count_of, cells))):
            but = f", but {quoted(wrong[0])} is not one" if wrong else ""
            trials: list[dict[str, Any]] = [*([] if wrong else [{"count": name}]), {"ignore": [name]}]
            raise table.error(None, f"column {quoted(name)} may hold counts{but}", *advice(table, [trials], "; give "))
    return None


# ---------------------------------------------------------------------- detection of the layout


def detected_layout(table: Table) -> Layout:
    """Return the layout of the options, or the only one that is consistent with the table."""
    options = table.source.options
    table.check_columns()
    if options.layout != "auto":
        return options.layout
    if options.columns is not None:
        return "long" if {"item", "rank", "score"} & options.columns.keys() else "pairs"
    names = unnamed_columns(table)
    if len(names) <= MAX_PAIR_COLUMNS and has_pair_columns(names):
        return "pairs"
    if long_roles(table, names):
        return "long"
    if not names:
        raise table.error(None, "no column is left for the votes besides those of ", *NOT_VOTES)
    if not len(table):
        problem = "the table has no rows, or its first row does not name the columns; in this case give "
        raise table.error(None, problem, Argument("header", False))
    positions = position_columns(table, names)
    if positions:
        votes = [table.columns[name] for name in positions]
        if options.contest is not None or holds_names(table, positions) or holds_numbered_items(votes, list(positions)):
            return "positions"
        check_header(table)
        problem = "look like positions but hold only numbers or nothing"
        first = quoted(next(iter(positions)))
        raise layout_error(table, None, f"columns such as {first} {problem}", *chain.from_iterable(long_trials(table)))
    if order_columns(table, names):
        return "orders"
    if options.contest is not None and not question_columns(names):
        return "positions"  # which reports that there is no contest
    check_header(table)
    return "ranks"  # if they are plausible


def has_pair_columns(columns: Sequence[str]) -> bool:
    """Whether the columns of a table are those of comparisons."""
    try:
        find_columns(columns, {}, ())
    except RankingError:
        return False
    return True


def layout_error(table: Table, row: int | None, problem: str, *others: dict[str, Any]) -> RankingError:
    """Return the error for an ambiguous table, with those options with which it can be read."""
    trials = [[options] for options in (*others, *({"layout": name} for name in LAYOUTS))]
    parts = ("; name columns without votes in ", *NOT_VOTES)
    return table.error(row, problem, *parts, *advice(table, trials, ", or give "))


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
    lists = {name: (*getattr(given, name), *options[name]) for name in ("ignore", "na_values") if name in options}
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


def holds_names(table: Table, names: Iterable[str]) -> bool:
    """Whether some cell of columns is neither a number nor missing."""
    is_missing = missing_of(table.source.options)
    columns = (table.columns[name] for name in names)
    texts = chain.from_iterable(column.texts for column in columns if not column.is_numeric)
    return any(not NUMBER.fullmatch(text) and not is_missing(text) for text in texts)


def holds_numbered_items(votes: Sequence[Column], names: Sequence[str]) -> bool:
    """Whether columns of positions hold numbers that can only be those of items.

    These are 1, 2, ... or 0, 1, ..., each at most once in a row and without gaps, and cannot be ranks, because some row
    leaves out smaller ones. Columns whose names are numbers may hold ratings.
    """
    numbers = np.sort(np.stack([np.nan_to_num(column.numbers, nan=-1.0) for column in votes], axis=1), axis=1)
    listed = numbers >= 0
    present, n_listed = np.unique(numbers[listed]), listed.sum(axis=1)
    if not len(present) or any(name.isdigit() for name in names) or (present % 1).any():
        return False
    consecutive = present[0] <= 1 and len(present) == present[-1] - present[0] + 1
    repeated = ((np.diff(numbers, axis=1) == 0) & listed[:, 1:]).any()
    ended = np.stack([np.isnan(column.numbers) for column in votes], axis=1)
    skipped = (ended[:, :-1] & ~ended[:, 1:]).any()
    return bool(consecutive and not repeated and not skipped and (numbers[:, -1] >= n_listed + present[0]).any())


def check_header(table: Table) -> None:
    """Raise an error if the first row looks like data: numbers, or names that other rows hold."""
    names = list(table.columns)
    if table.source.options.header is not None or len(names) < 2:
        return
    are_numbers = all(NUMBER.fullmatch(name) for name in names)
    columns = [] if are_numbers else [column for column in table.columns.values() if not column.is_numeric]
    cells = frozenset(chain.from_iterable(column.texts for column in columns))
    if are_numbers or all(name in cells or NUMBER.fullmatch(name) for name in names):
        layouts: list[dict[str, Any]] = [{}, *({"layout": layout} for layout in LAYOUTS)]
        trials = [[{"header": value, **layout} for layout in layouts] for value in (False, True)]
        if are_numbers:  # each layout may be right
            trials = [[trial] for group in trials for trial in group]
        trials = [*long_trials(table, header=False), *trials]
        start = "; name the columns in a first row, or give "
        problem = "the first row looks like data and not like names of columns"
        raise table.error(None, problem, *advice(table, trials, start))


def long_trials(table: Table, **options: Any) -> list[list[dict[str, Any]]]:
    """Return the options for a table of a user, an item, a rating, and perhaps a time, without names of columns."""
    columns = list(table.columns.values())
    is_long = len(columns) in (3, 4) and all(column.has_repeats for column in columns[:2])
    return [[{**options, "columns": {"user": "1", "item": "2", "score": "3"}}]] if is_long else []


def check_plausible_ranks(table: Table, numbers: FloatArray) -> None:
    """Raise an error for numbers that may not be ranks: with gaps, as scores have, or zeros that may be anything."""
    best = min(1.0, np.fmin.reduce(numbers, axis=None, initial=1.0))  # ranks begin with 1 or 0
    if best == 0 and np.fmax.reduce(numbers, axis=None, initial=0.0) <= 1:
        row = int(np.argmax((numbers == 0).any(axis=1)))
        raise layout_error(table, row, "there are only zeros and ones, which may be ranks from 0, or mean no and yes")
    for block in row_slices(numbers.shape):
        ordered = np.sort(numbers[block], axis=1)  # NaN comes last
        # Competition and dense ranking (1 2 2 4, 1 2 2 3) never exceed the index of the sorted item, nor do mean ranks.
        wrong = ordered[:, 0] > best
        beyond = np.flatnonzero((ordered > best + np.arange(ordered.shape[1])).any(axis=1))
        wrong[beyond] |= (np.isnan(ordered[beyond]) | (ordered[beyond] % 1 == 0)).all(axis=1)
        zeros = (ordered[:, 1:2] == 0).any(axis=1) & (best == 0) & (ordered.shape[1] > 2)
        if wrong.any() or zeros.any():
            row = int(np.argmax(wrong if wrong.any() else zeros))
            listed = ", ".join(f"{value:g}" for value in ordered[row][~np.isnan(ordered[row])][:20])
            zero = f"0 occurs several times among {listed}; it may be the first rank, a score, or mean not ranked"
            problem = f"the numbers {listed} leave out ranks, as scores do" if wrong.any() else zero
            raise layout_error(table, row + block.start, problem, *[{"na_values": ["0"]}] * int(best == 0))


# ---------------------------------------------------------------------- one column per item


def item_columns(table: Table, names: Sequence[str]) -> tuple[dict[str, str], list[str], tuple[str, ...]]:
    """Return the columns of items with the names of the items, the label columns, and the ignored columns.

    Columns of text are labels, and columns of bookkeeping, such as identifiers, are ignored. If the layout is not
    given, a column of bookkeeping that may hold ranks is an error.
    """
    options = table.source.options
    marked = [name for name in names if name.lower().startswith(RANK_OF)]
    if marked:
        others = [name for name in names if not name.lower().startswith(RANK_OF)]
        return {name: name[len(RANK_OF) :] for name in marked}, others, ()
    questions = question_columns(names)
    if questions:
        chosen = questions[chosen_contest(list(questions), table.source)]
        return chosen, [], tuple(name for name in names if name not in chosen)
    is_missing, given = missing_of(options), frozenset(options.items or ())
    labels: list[str] = []
    ignored: list[str] = []
    ambiguous: list[str] = []
    for name in (name for name in names if name not in given):
        column = table.columns[name]
        ranks = [rank_of(cell) for cell in column.texts if not is_missing(cell)] if not column.is_numeric else [0.0]
        if is_index(name, column):
            ignored.append(name)
        elif ranks and np.isnan(ranks).all():
            labels.append(name)
        elif is_bookkeeping(name):
            is_certain = options.layout != "auto" or np.nanmax(column.numbers, initial=0.0) > len(names)
            (ignored if is_certain else ambiguous).append(name)
    not_items = frozenset((*labels, *ignored))
    items = {name: name for name in names if name not in not_items}
    if options.layout == "auto" and (len(items) < 2 or (ambiguous and sum(len(name) == 1 for name in names) < 3)):
        name = (ambiguous or labels or ignored or list(items))[0]
        text = f"holds {quoted(table.columns[name][0])}, which is not a rank"
        holds = text if name in labels else "does not look like an item"
        trials = {"ignore": [name]}, {"layout": "long", "columns": {"user": name}}
        raise layout_error(table, 0 if name in labels else None, f"column {quoted(name)} {holds}", *trials)
    return items, labels, tuple(ignored)


def is_bookkeeping(name: str) -> bool:
    """Whether all words in the name of a column are those of identifiers and the like."""
    words = re.findall(r"[^\W_]+", re.sub("[0-9]+|(?<=[a-z])(?=[A-Z])", " ", name).lower())
    return bool(name) and not name.isdigit() and frozenset(words) <= BOOKKEEPING


def is_index(name: str, column: Column) -> bool:
    """Whether a column without a name holds the numbers of the rows, as pandas and R write them."""
    if len(column) < 2 or not re.fullmatch(r"(?:Unnamed: [0-9]+)?", name) or not column.is_numeric:
        return False
    return bool((np.diff(column.numbers) == 1).all() and column.numbers[0] in (0, 1))


def question_columns(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the questions of a survey, each with its columns and their items."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        match = QUESTION.fullmatch(name)
        if match:
            found.setdefault(match[1], {})[name] = match[2].strip()
    return {question: columns for question, columns in found.items() if len(columns) > 1}


def rank_of(cell: str) -> float:
    """Return the rank in a cell, a number from 0 or an ordinal; -1 for an item without rank, nan for other cells."""
    number, ordinal = as_number(cell), ORDINAL.fullmatch(cell)
    if number >= 0 or number == FREE:
        return number
    if ordinal:
        return float(ORDINALS.get(ordinal[1].lower()) or ordinal[1])
    return FREE if cell == FREE_CELL else np.nan


def item_numbers(table: Table, columns: Mapping[str, str], layout: Layout) -> tuple[FloatArray, Mask, tuple[str, ...]]:
    """Return the numbers in the cells of columns of items, NaN where missing, which cells are free, and the items."""
    source, options = table.source, table.source.options
    if "" in columns:
        nameless = list(table.columns).index("") + 1
        raise table.error(None, f"column {nameless} has no name; name the item, or give ", Argument("ignore", [""]))
    by_item = {item: name for name, item in columns.items()}
    items = options.items or tuple(by_item)
    others = by_item.keys() - set(items)
    if others:
        name = next(name for item, name in by_item.items() if item in others)
        problem = (f"column {quoted(name)} is not one of the ", Argument("items"), "; give ")
        raise table.error(None, *problem, Argument("ignore", [name]))
    missing = [item for item in items if item not in by_item]
    if missing:
        raise table.error(None, Argument("items"), f" names {quoted(missing[0])}; {table.listing}")
    source.check_table_size(len(table), len(items))
    is_missing, is_score = missing_of(options), layout == "scores"
    numbers = np.empty((len(table), len(items)))
    free = np.zeros(numbers.shape, dtype=bool)
    for index, item in enumerate(items):
        column = table.columns[by_item[item]]
        if column.is_numeric and not options.na_values:
            values = column.numbers
        else:
            values = column.mapped(lambda cell: cell_number(cell, is_missing, is_score), np.float64)
            free[:, index] = column.mapped(lambda cell: cell == FREE_CELL, bool)
        is_unranked = (values == FREE) & (not is_score)
        wrong = np.isinf(values) | ((values < 0) & ~is_unranked & (not is_score))
        if wrong.any():
            raise cell_error(table, int(np.argmax(wrong)), by_item[item], is_score)
        numbers[:, index] = np.where(is_unranked, np.nan, values)
    return numbers, free, items


def cell_number(cell: str, is_missing: Any, is_score: bool) -> float:
    """Return the rank or score in a cell, nan if it is missing, infinity if it is neither."""
    value = as_number(with_point(cell)) if is_score else rank_of(with_point(cell))
    return np.nan if is_missing(cell) else np.inf if np.isnan(value) else value


def with_point(cell: str) -> str:
    """Return a cell with a decimal point instead of a decimal comma."""
    return re.sub("(?<=[0-9]),(?=[0-9]+$)", ".", cell)


def cell_error(table: Table, row: int, name: str, is_score: bool) -> RankingError:
    """Return the error for a cell that is no rank or score."""
    expected = "a score is a number" if is_score else "a rank is an integer >= 0 or a mean rank of ties"
    numbers = {each: np.nan_to_num(table.columns[each].numbers) for each in unnamed_columns(table)}
    wrong = [each for each, values in numbers.items() if (values % 1 != 0).any() or (values < FREE).any()]
    ignored = [{"ignore": [name]}, {"ignore": wrong}]
    trials: list[list[dict[str, Any]]] = [ignored, [{"layout": "scores"}], [{"layout": "positions"}]]
    problem = f"item {quoted(name)} holds {quoted(table.columns[name][row])}; {expected}"
    return table.error(row, problem, *advice(table, trials, "; give "))


def integer_ranks(table: Table, numbers: FloatArray, items: Sequence[str]) -> RankArray:
    """Return bucket indices of ranks, -1 where missing."""
    ranks = np.empty(numbers.shape, dtype=np.int32)
    for block in row_slices(numbers.shape):
        listed = ~np.isnan(numbers[block])
        values = np.where(listed, numbers[block], 0.0)
        fractional = fractional_ranks(values, listed)
        if fractional.any():
            row, column = divmod(int(np.argmax(fractional)), len(items))
            raise cell_error(table, row + block.start, items[column], is_score=False)
        if values.max(initial=0) < 2**53 and not (values % 1).any():
            values = values.astype(np.int64)
        ranks[block] = dense_ranks(values, listed, "free")
    return ranks


# ---------------------------------------------------------------------- one column per position


def position_columns(table: Table, names: Sequence[str]) -> dict[str, ColumnPosition]:
    """Return the columns that name a position, each with the position and the contest.

    If none does, these are numbered columns (``r1``, ``r2``) of names that occur in several of them.
    """
    found = {}
    for name in names:
        question = QUESTION.fullmatch(name)
        position = column_position(question[2] if question else name)
        if position is not None and not name.startswith(RANK_OF):
            found[name] = ColumnPosition(position.number, question[1] if question else position.contest)
    if found:
        return found
    groups: dict[str, dict[str, int]] = {}
    for name in names:
        numbered = NUMBERED.fullmatch(name)
        if numbered and not table.columns[name].is_numeric:
            groups.setdefault(numbered[1], {})[name] = int(numbered[2])
    is_missing = missing_of(table.source.options)
    for prefix, columns in groups.items():
        texts = [{text for text in table.columns[name].texts if not is_missing(text)} for name in columns]
        distinct = set().union(*texts)
        are_names = sum(map(len, texts)) > len(distinct) and not any(map(NUMBER.fullmatch, distinct))
        if are_names and are_consecutive(list(columns.values())):
            found |= {name: ColumnPosition(number, prefix) for name, number in columns.items()}
    return found


def position_rankings(table: Table, names: Sequence[str], count: str) -> Rankings:
    """Return the rankings of a table with one column per position.

    If no column names a position, the columns are positions in their order.
    """
    source = table.source
    positions = position_columns(table, names)
    votes = [name for name in names if not is_bookkeeping(name) and not is_index(name, table.columns[name])]
    contest = ""
    if positions:
        contest = chosen_contest(list(dict.fromkeys(each.contest for each in positions.values())), source)
        used = {name: each.number for name, each in positions.items() if each.contest == contest}
        if len(set(used.values())) < len(used):
            raise table.error(None, f"two columns name the same position: {', '.join(map(printable, list(used)[:12]))}")
        if not are_consecutive(list(used.values())):
            listing = ", ".join(map(str, sorted(used.values())))
            raise layout_error(table, None, f"the columns look like positions but are not consecutive: {listing}")
        votes = sorted(used, key=used.__getitem__)
    elif source.options.contest is not None:
        raise table.error(None, f"no column names a position, such as 'Mayor Choice 1 of 4'; {table.listing}")
    ignored = tuple(name for name in names if name not in votes)
    ranks, items, repairs = read_ballots([table.columns[name] for name in votes], source, None, table.error)
    kind = "a cast vote record" if contest or ignored else "a table with one column per position"
    return finished(table, ranks, items, FileSource(kind, contest, ignored=ignored, count=count, repairs=repairs))


def chosen_contest(names: Sequence[str], source: SourceFile) -> str:
    """Return the contest of the options: by its name, or by a part that only one name contains."""
    known, wanted = ", ".join(quoted(name) for name in names[:20]), source.options.contest
    if not names:
        raise source.error(None, "there is no contest with ranked choices")
    if wanted is None:
        if len(names) > 1:
            problem = "there are several contests; choose one with "
            raise source.error(None, problem, Argument("contest", ...), f": {known}")
        return names[0]
    part = wanted.lower().strip()
    fitting = [name for name in names if name.lower() == part] or [name for name in names if part in name.lower()]
    if len(fitting) != 1:
        problem = "fits several contests" if fitting else "fits no contest"
        raise source.error(None, Argument("contest", wanted), f" {problem}; there are {known}")
    return fitting[0]


# ---------------------------------------------------------------------- orders in one column, and long tables


def order_columns(table: Table, names: Sequence[str]) -> list[str]:
    """Return the columns whose cells are orders, such as ``tea > milk``, ``tea;milk;`` or lists."""
    found = []
    for name in names:
        column = table.columns[name]
        texts = [] if column.is_numeric else [text for text in column.texts[:MAX_TEXTS] if text]
        n_orders = sum(">" in text and NEXT not in text for text in texts)
        lists = all(text.endswith((";", NEXT)) and not text.startswith(TIED) for text in texts)
        if texts and (2 * n_orders > len(texts) or lists):
            found.append(name)
    return found


def orders_rankings(table: Table, names: Sequence[str], count: str) -> Rankings:
    """Return the rankings of a table with one column of orders."""
    found = order_columns(table, names) or list(names[:1])
    name = chosen_contest(found, table.source)
    column = table.columns[name]
    orders = [order_cells(text) for text in column.texts]
    n_positions = max(map(len, orders), default=1) or 1
    table.source.check_table_size(len(table), n_positions)
    columns = [
        Column.of_codes(column.codes, [order[position] if position < len(order) else "" for order in orders])
        for position in range(n_positions)
    ]
    ranks, items, repairs = read_ballots(columns, table.source, None, table.error, ties=True)
    ignored = tuple(each for each in names if each != name)
    about = FileSource(f"orders in column {quoted(name)}", ignored=ignored, count=count, repairs=repairs)
    return finished(table, ranks, items, about)


def order_cells(text: str) -> list[str]:
    """Return the positions of an order, tied items joined by ``TIED``."""
    if NEXT in text:
        return [part.strip() for part in text.split(NEXT) if part.strip()]
    parts = text.split(">") if ">" in text else text.split(";")
    ties = ([each.strip(" \t[]\"'") for each in re.split("[=~]", part)] for part in parts if part.strip())
    return [TIED.join(filter(None, tie)) for tie in ties]


def long_roles(table: Table, columns: Sequence[str]) -> dict[str, str]:
    """Return the columns of user, item, and rank or score, if exactly one column has each role that is not stated.

    Without a known name, the item is in the only other column that does not hold times, if users have several rows.
    """
    found = dict(table.source.options.columns or {})
    columns = [name for name in columns if name not in found.values()]
    for role, words in LONG.items():
        if role in found:
            continue
        fitting = [name for name in columns if stem(name) in words or normalized(name) in words]
        if not fitting and role == "score":
            fitting = [name for name in columns if words & frozenset(normalized(name).split("_"))]
        if len(fitting) == 1:
            found[role] = fitting[0]
    if not ("user" in found and {"rank", "score"} & found.keys()):
        return {}
    others = [name for name in columns if name not in found.values() and normalized(name) not in TIME_WORDS]
    if "item" not in found and len(others) == 1 and table.columns[found["user"]].has_repeats:
        found["item"] = others[0]
    return found if "item" in found else {}


def long_rankings(table: Table) -> Rankings:
    """Return one ranking for each user of a table with one row per user and item."""
    source, options = table.source, table.source.options
    roles = long_roles(table, list(table.columns)) or options.columns or {}
    value = "rank" if "rank" in roles and "score" not in (options.columns or {}) else "score"
    for role in ("user", "item", value):
        if role not in roles:
            problem = "a long table has a user, an item, and a rank or a score: name it in "
            raise table.error(None, f"no column holds the {role}; {problem}", Argument("columns", ...))
    user, item, cells = (table.columns[roles[role]] for role in ("user", "item", value))
    numbers = cells.numbers if cells.is_numeric else cells.mapped(lambda cell: as_number(with_point(cell)), np.float64)
    wrong = ~np.isfinite(numbers)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise table.error(row, f"the {value} {quoted(cells[row])} is not a number; remove rows without one")
    ascending = value == "rank" or options.ascending
    numbers = numbers if ascending else -numbers
    unlisted, check = options.unlisted or "free", source.check_table_size
    with source.named_in_errors():
        ranks, users, items, first = long_ranks(user, item, numbers, options.items, unlisted, table.row_name, check)
    labels = {roles["user"]: np.array(users, dtype=np.str_)}
    labels |= {name: table.labels(name)[first] for name in options.label_columns}
    used = {roles["user"], roles["item"], roles[value], *options.label_columns}
    ignored = tuple(name for name in table.columns if name not in used)
    described = ", ".join(f"{role} in {printable(roles[role])}" for role in ("user", "item", value))
    better = "smaller" if ascending else "larger"
    about = FileSource(f"a long table: {described}, {better} is better", ignored=ignored)
    return Rankings._trusted(ranks, items, None, labels, about)


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
    if count is None and (rankings.counts != 1).any():
        raise RankingError("count=None would lose counts other than 1; name a column for them")
    given = check_instance("labels", {} if labels is None else labels, Mapping, "a mapping of names to strings")
    columns = {name: check_labels("labels", texts, len(rankings)).astype(str).tolist() for name, texts in given.items()}
    named = [(name, "items") for name in rankings.items] + [(name, "labels") for name in columns]
    named += [] if count is None else [(count, "count")]
    seen: set[str] = set()
    for name, argument in named:
        check_writable_name(name, argument)
        if name in seen:
            raise RankingError(f"{argument}: {printable(name)!r} is also the name of another column; rename it")
        seen.add(name)
        if argument != "items" and not raw and plain_cell(name) != name:
            problem = f"{argument}: {printable(name)!r} is a formula in a spreadsheet; rename it"
            raise RankingError(problem, ", or give ", Argument("raw", True))
    if not raw:
        columns = {name: list(map(plain_cell, texts)) for name, texts in columns.items()}
    write_text(path, csv_text(rankings, count, columns, raw), overwrite)


def csv_text(rankings: Rankings, count: str | None, labels: Mapping[str, Sequence[str]], raw: bool) -> str:
    """Return the table as text."""
    text = io.StringIO()
    items = list(rankings.items)
    if not is_plain(rankings, count, labels) or not (raw or all(plain_cell(name) == name for name in items)):
        items = [f"{RANK_OF}{name}" for name in items]
    names = [*labels, *items, *([] if count is None else [count])]
    # Quoted names make the delimiter unambiguous.
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(names)
    writer = csv.writer(text, lineterminator="\n")
    label_rows = zip(*labels.values(), strict=True) if labels else repeat(())
    rows = chain.from_iterable(rankings.ranks[block].tolist() for block in row_slices(rankings.ranks.shape))
    for row, n_voters, label_row in zip(rows, rankings.counts.tolist(), label_rows, strict=False):
        cells = [*label_row, *(FREE_CELL if rank == FREE else rank + 1 for rank in row)]
        writer.writerow(cells if count is None else [*cells, n_voters])
    return text.getvalue()


def is_plain(rankings: Rankings, count: str | None, labels: Mapping[str, Collection[str]]) -> bool:
    """Whether a table with these columns is read back as these rankings, without a mark of the columns of ranks."""
    if len(rankings) == 0 or rankings.n_items < 2 or not rankings.is_exhaustive():
        return False
    columns = {name: Column(list(texts)) for name, texts in labels.items()}
    columns |= {name: Column(ranks + 1) for name, ranks in zip(rankings.items, rankings.ranks.T, strict=True)}
    columns |= {} if count is None else {count: Column(rankings.counts)}
    table = Table(SourceFile("table.csv"), columns, np.arange(len(rankings)))
    try:
        with warnings.catch_warnings(action="ignore"):
            found = table_rankings(table, detected_layout(table))
    except RankingError:
        return False
    return found == rankings and list(found.labels) == list(labels)

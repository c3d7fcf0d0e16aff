"""Ballots as ranks: cells with the names of items by position, with irregularities, and orders of numbered items."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rankernel._utils import IntArray, Mask, RankArray
from rankernel.columns import TIED, Column, first_cells
from rankernel.errors import Argument, RankingError, ReadingWarning, warn
from rankernel.io.source import FileSource, ReadOptions, Repairs, SourceFile, quoted
from rankernel.rankings import FREE, Labels, Rankings, check_total_count, unique_rows

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
    r"\W*(?:(?:un)?(?:declared|resolved|certified|qualified|other)?[\s-]*(?:write[\s_-]*ins?|uwi)"
    r"(?:[\s:#-]*[0-9]*|\s*[:(].*)|undeclared)\W*",
    re.IGNORECASE,
)
# Signs that may join several names in a cell, and which of these names must stand alone elsewhere.
JOINING_SIGNS: dict[str, Callable[[Iterable[bool]], bool]] = {"|": lambda _: True, ";": any}
JOINING_SIGNS |= dict.fromkeys(("/", ",", "&", "+", "\n"), all)
MISSING, IRREGULAR = -1, -2  # among the indices of items


class Cell(NamedTuple):
    """The items that a cell names, and whether the cell only states that it is overvoted."""

    names: tuple[str, ...] = ()
    overvoted: bool = False


def missing_of(options: ReadOptions, items: Iterable[str] | None = None) -> Callable[[str], bool]:
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


def item_of(name: str, options: ReadOptions) -> str:
    """Return the item that a name stands for, "" for a write-in that is dropped."""
    name = (options.aliases or {}).get(name, name)
    if options.write_ins == "keep" or not WRITE_IN.fullmatch(name):
        return name
    return "write-in" if options.write_ins == "merge" else ""


# ---------------------------------------------------------------------- names by position


def read_ballots(
    columns: Sequence[Column],
    source: SourceFile,
    items: Iterable[str] | None,
    error: Callable[..., RankingError],
    ties: bool = False,
) -> tuple[RankArray, tuple[str, ...], Repairs]:
    """Return the ranks of ballots with one column per position, -1 for items that are not listed; items and repairs.

    ``error(row, *problem)`` returns the error for a problem in a row. Names that ``TIED`` joins are an overvote or,
    with ``ties``, a tie.
    """
    options = source.options
    known = (item_of(name, options) for name in items or ())
    items = options.items or tuple(dict.fromkeys(filter(None, known))) or None
    first = first_cells(columns)
    if items is None and options.separator is None:
        check_joined_names(first, lambda text, *problem: error(first[text] // len(columns), *problem))
    cells, merged = interpreted_cells(first, items, options)
    names = items or tuple(dict.fromkeys(name for cell in cells.values() if not cell.overvoted for name in cell.names))
    index = {name: number for number, name in enumerate(names)}
    n_rows = len(columns[0]) if columns else 0
    source.check_table_size(n_rows, max(len(names), len(columns)))
    number = {}
    for text, cell in cells.items():
        alone = len(cell.names) == 1 and not cell.overvoted
        number[text] = index.get(cell.names[0], IRREGULAR) if alone else IRREGULAR if cell.names else MISSING
    ranks: RankArray = np.full((n_rows, len(names)), FREE, dtype=np.int32)
    irregular, ended, n_listed = (np.zeros(n_rows, dtype=kind) for kind in (bool, bool, np.int32))
    for position, column in enumerate(columns):
        named = column.mapped(lambda text: number.get(text, MISSING), np.int32)
        listed = named >= 0
        irregular |= (listed & ended) | (named == IRREGULAR)
        ended |= ~listed
        n_listed += listed
        ranks[np.flatnonzero(listed), named[listed]] = position
    irregular |= np.count_nonzero(ranks != FREE, axis=1) < n_listed  # an item is repeated
    rows = np.flatnonzero(irregular)
    counts = np.zeros(3, dtype=np.int64)
    if len(rows):
        found, inverse = unique_rows(np.stack([column.codes[rows] for column in columns], axis=1))
        times = np.bincount(inverse)
        fixed = np.full((len(found), len(names)), FREE, dtype=np.int32)
        overvotes = "tie" if ties else options.overvotes
        for number_, row in enumerate(rows[found].tolist()):
            ballot = [(column[row], cells[column[row]]) for column in columns]
            buckets, repairs = repaired(ballot, index, replace(options, overvotes=overvotes), row, error)
            for rank, bucket in enumerate(buckets):
                fixed[number_, [index[name] for name in bucket]] = rank
            counts += times[number_] * np.array(repairs)
        ranks[rows] = fixed[inverse]
    skipped, repeated, overvoted = counts.tolist()
    n_cells = dict.fromkeys((text for text, cell in cells.items() if text and not cell.names), 0)
    for column in columns if n_cells else ():
        for text, n in zip(column.texts, np.bincount(column.codes, minlength=len(column.texts)).tolist(), strict=True):
            if text in n_cells:
                n_cells[text] += n
    na_values = tuple(n_cells.items())
    found_repairs = Repairs(
        skipped, repeated, 0 if ties else overvoted, na_values=na_values, merged=tuple(merged.items())
    )
    return ranks, names, found_repairs


def interpreted_cells(
    texts: Iterable[str], items: Iterable[str] | None, options: ReadOptions
) -> tuple[dict[str, Cell], dict[str, str]]:
    """Return the interpretation of each distinct cell, and names that were read as another one."""
    known, is_missing = frozenset(items or ()), missing_of(options, items)
    cells, merged = {}, {}
    similar = {folded(name): name for name in reversed(tuple(items or ()))}
    separator = TIED if options.separator is None else options.separator
    for text in texts:
        if is_missing(text):
            cells[text] = Cell()
        elif text not in known and lower(text) in OVERVOTES:
            cells[text] = Cell((text,), overvoted=True)
        else:
            split = [part.strip() for part in re.split(f"{TIED}|{re.escape(separator)}", text)]
            parts = [text] if text in known else split
            names = [name for part in parts if not is_missing(part) and (name := item_of(part, options))]
            if options.fold_case:
                for name in names:
                    if similar.setdefault(folded(name), name) != name:
                        merged[name] = similar[folded(name)]
                names = [merged.get(name, name) for name in names]
            cells[text] = Cell(tuple(names))
    return cells, merged


def check_joined_names(texts: Iterable[str], error: Callable[..., RankingError]) -> None:
    """Raise an error for a cell that looks like several candidates, instead of making a candidate of it."""
    present = frozenset(texts)
    for text in texts:
        for sign, enough in JOINING_SIGNS.items():
            parts = [part.strip() for part in text.split(sign)] if sign in text else []
            if len(parts) > 1 and all(parts) and enough(part in present for part in parts):
                problem = f"{quoted(text)} looks like an overvote, {len(parts)} names joined by {sign!r}; give "
                advice = (Argument("separator", sign), ", or if it is one name, list all items in ")
                raise error(text, problem, *advice, Argument("items", ...))


def repaired(
    ballot: list[tuple[str, Cell]],
    index: dict[str, int],
    options: ReadOptions,
    row: int,
    error: Callable[..., RankingError],
) -> tuple[list[list[str]], tuple[int, int, int]]:
    """Return the buckets of one ballot, best first, and the numbers of skipped, repeated and overvoted cells."""
    while ballot and not ballot[-1][1].names:  # missing values at the end are not skipped positions
        ballot.pop()
    buckets: list[list[str]] = []
    seen: set[str] = set()
    limit = {"close": len(ballot), "stop": 0}.get(str(options.skipped), options.skipped)
    gap = skipped = repeated = overvoted = 0
    for text, (names, is_overvote) in ballot:
        if not names:
            gap, skipped = gap + 1, skipped + 1
            if gap > int(limit):
                break
            continue
        gap, shown = 0, text.replace(TIED, " and ")
        if len(names) > 1 or is_overvote:
            overvoted += 1
            if options.overvotes == "error":
                raise error(row, f"{quoted(shown)} is an overvote; choose another ", Argument("overvotes"))
            if options.overvotes == "stop":
                break
            if options.overvotes == "skip":
                continue
            if is_overvote:
                problem = f"{quoted(text)} does not name the candidates, as "
                raise error(row, problem, Argument("overvotes", "tie"), " requires")
        new = [name for name in dict.fromkeys(names) if name not in seen]
        if len(new) < len(names):
            repeated += len(names) - len(new)
            if options.repeated == "error":
                raise error(row, f"{quoted(shown)} is repeated; choose another ", Argument("repeated"))
            if options.repeated == "stop":
                break
        for name in new:
            if name not in index:
                raise error(row, f"{quoted(name)} is not one of the ", Argument("items"))
        buckets += [new] if new else []
        seen.update(new)
    return buckets, (skipped, repeated, overvoted)


def rankings_of(
    source: SourceFile,
    ranks: RankArray,
    items: tuple[str, ...],
    about: FileSource,
    counts: IntArray | None = None,
    labels: Labels | None = None,
    free: Mask | None = None,
) -> Rankings:
    """Return ballots as rankings, without blank ones unless the options keep them.

    The ranks have no gaps, are -1 for items that are not listed, and are changed. The cells of ``free`` are free,
    whatever the options say of unlisted items.
    """
    options, labels = source.options, labels or {}
    counts = np.ones(len(ranks), dtype=np.int64) if counts is None else counts
    with source.named_in_errors():
        check_total_count(counts)
    warn_of_similar_names(items, source)
    last = ranks.max(axis=1, initial=FREE)[:, None] + 1
    marked = last[:, 0] > 0
    if options.unlisted != "free":
        np.copyto(ranks, last, where=ranks == FREE)
    if free is not None:
        ranks[free] = FREE
        marked |= free.any(axis=1)
    is_dropped = options.blank == "drop"
    if not items or (is_dropped and len(marked) and not marked.any()):
        advice = (Argument("items", ...), " and ", Argument("blank", "keep"))
        raise source.error(None, "no row lists an item; give ", *advice)
    repairs = replace(about.repairs, blank=int(np.count_nonzero(~marked)), blank_dropped=is_dropped)
    if is_dropped and not marked.all():
        blank = {name: values[~marked] for name, values in labels.items()}
        about = replace(about, blank_rows=tuple(np.flatnonzero(~marked).tolist()), blank_labels=blank)
        ranks, counts = ranks[marked], counts[marked]
        labels = {name: values[marked] for name, values in labels.items()}
    return Rankings._trusted(ranks, items, counts, labels, replace(about, repairs=repairs))


def warn_of_similar_names(items: tuple[str, ...], source: SourceFile) -> None:
    """Warn of names that differ only in case or spaces."""
    seen: dict[str, str] = {}
    similar = [(seen[folded(name)], name) for name in items if seen.setdefault(folded(name), name) != name]
    if similar:
        pairs = [f"{quoted(one)} and {quoted(other)}" for one, other in similar[:5]]
        shown = "; ".join([*pairs, *["..."] * (len(similar) > 5)])
        problem = f"{source.name}: {shown} differ only in case or spaces and are different items; "
        warn((problem, Argument("fold_case", True), " merges them"), ReadingWarning)


# ---------------------------------------------------------------------- numbered items


@dataclass(frozen=True)
class Orders:
    """Orders of numbered items as flat arrays."""

    rows: IntArray  # of each entry
    items: IntArray  # number of the item of each entry, from 1
    buckets: IntArray  # of each entry
    counts: IntArray  # of each row
    n_buckets: IntArray  # of each row
    lines: IntArray  # of each row

    @classmethod
    def of(cls, ballots: Sequence[tuple[int, int, list[list[int]]]]) -> Orders:
        """Return the orders of ballots, each with its line, its count and its buckets of item numbers."""
        entries = [
            (row, item, rank)
            for row, (_, _, order) in enumerate(ballots)
            for rank, bucket in enumerate(order)
            for item in bucket
        ]
        of_entries = np.array(entries, dtype=np.int64).reshape(-1, 3).T
        of_rows = [(count, len(order), line) for line, count, order in ballots]
        return cls(*of_entries, *np.array(of_rows, dtype=np.int64).reshape(-1, 3).T)

    def ranks(self, n_items: int, source: SourceFile, noun: str) -> RankArray:
        """Return the bucket of each item in each row, -1 for items that are not listed; the noun is for errors."""
        source.check_table_size(len(self.lines), n_items)
        unknown = (self.items < 1) | (self.items > n_items)
        if unknown.any():
            entry = int(np.argmax(unknown))
            problem = f"{noun} {self.items[entry]} is unknown; {noun}s are numbered from 1 to {n_items}"
            raise source.error(int(self.lines[self.rows[entry]]), problem)
        ranks: RankArray = np.full((len(self.lines), n_items), FREE, dtype=np.int32)
        cells = self.rows * n_items + self.items - 1
        ranks.ravel()[cells] = self.buckets
        if np.count_nonzero(ranks != FREE) != len(cells):
            ordered = np.sort(cells)
            row, item = divmod(int(ordered[1:][ordered[1:] == ordered[:-1]][0]), n_items)
            problem = f"{noun} {item + 1} is listed twice; each may be listed once"
            raise source.error(int(self.lines[row]), problem)
        return ranks

"""Ballots with one cell per position, with their irregularities: skipped, repeated and overvoted positions.

Regular ballots are converted all at once, irregular ones one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rankernel._utils import IntArray, Mask, RankArray
from rankernel._utils.checks import printable
from rankernel.errors import Argument, RankingError, ReadingWarning, warn
from rankernel.io.read_options import ReadOptions
from rankernel.io.text_files import FileSource, Repairs, SourceFile
from rankernel.io.text_table import Codes, TextTable
from rankernel.rankings import FREE, Labels, Rankings, dense_ranks

# Missing-value markers in any case, with _ for a space.
NA_WORDS = """
- -- — . skipped undervote undervoted under_vote undervotes exhausted (blank) [blank] (none) (skipped) (undervote) n/a
#n/a <na> no_vote novote not_ranked unranked no_rank no_preference no_selection left_blank
"""
# Missing-value markers in exactly this case, as programs write them.
NA_PROGRAMS = frozenset(["NA", "NaN", "nan", "NULL", "null", "None", "none", "<NA>"])
# In any other case these may be names.
AMBIGUOUS = frozenset(["na", "nan", "null", "none", "nil", "blank", "skip", "empty"])
OVERVOTE_WORDS = "overvote overvoted over_vote overvotes (overvote)"
NA_MARKERS, OVERVOTES = (
    frozenset(word.replace("_", " ") for word in words.split()) for words in (NA_WORDS, OVERVOTE_WORDS)
)

SEPARATORS = ("|", ";", "/", ",", "&", "+", "\n")  # that may join several names in a cell
MISSING, IRREGULAR = -1, -2  # among the indices of names


@dataclass(frozen=True)
class Markers:
    """Interpretation of cells that are not names; items are always names."""

    items: frozenset[str]
    na_values: frozenset[str]

    @classmethod
    def of(cls, options: ReadOptions, items: Iterable[str] | None = None) -> Markers:
        """Return the markers of the options, for the given items if they are known."""
        names, markers = frozenset(items or ()), frozenset(options.na_values)
        both = sorted(names & markers)
        if both:
            raise RankingError(f"{printable(both[0])!r} is in both ", Argument("items"), " and ", Argument("na_values"))
        return cls(names, markers)

    def is_missing(self, cell: str) -> bool:
        """Whether a cell is certainly a missing value."""
        if cell in self.items:
            return False
        return not cell or cell in self.na_values or cell in NA_PROGRAMS or lower(cell) in NA_MARKERS

    def is_ambiguous(self, cell: str) -> bool:
        """Whether a cell may be a missing value or a name."""
        return cell not in self.items and not self.is_missing(cell) and cell.lower() in AMBIGUOUS

    def is_overvote(self, cell: str) -> bool:
        """Whether a cell states an overvote without naming the candidates."""
        return cell not in self.items and lower(cell) in OVERVOTES


def lower(cell: str) -> str:
    """Return a cell in lower case with single spaces between its words."""
    return " ".join(cell.lower().replace("_", " ").split())


class Ballots(NamedTuple):
    """Ranks of ballots, -1 for items that are not listed, the items, and the repairs."""

    ranks: RankArray
    items: tuple[str, ...]
    repairs: Repairs = Repairs()


class Cell(NamedTuple):
    """The names in a cell, and whether the cell only states that it is overvoted."""

    names: tuple[str, ...]
    overvoted: bool = False


def read_ballots(table: TextTable, items: tuple[str, ...] | None) -> Ballots:
    """Return the ballots of a table of distinct rows with one column per position."""
    options = table.source.options
    if items is None and options.separator is None:
        check_joined_names(table)
    cells = interpreted_cells(table, Markers.of(options, items))
    merged: dict[str, str] = {}
    if options.fold_case:
        merged = merged_names(cells.values(), items)
        cells = {
            code: Cell(tuple(merged.get(n, n) for n in cell.names), cell.overvoted) for code, cell in cells.items()
        }
    names = items or tuple(dict.fromkeys(name for cell in cells.values() if not cell.overvoted for name in cell.names))
    table.source.check_table_size(table.n_rows, len(names))
    reader = BallotReader(cells, {name: number for number, name in enumerate(names)}, table)
    ranks = reader.ranks()
    if items is None:
        listed = (ranks != FREE).any(axis=0)
        ranks, names = ranks[:, listed], tuple(name for name, used in zip(names, listed, strict=True) if used)
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


# ---------------------------------------------------------------------- interpretation of cells


def interpreted_cells(table: TextTable, markers: Markers) -> dict[int, Cell]:
    """Return the interpretation of each distinct cell, in order of first appearance."""
    options = table.source.options
    cells: dict[int, Cell] = {}
    ambiguous = []
    for code in table.used():
        text = table.texts[code]
        if markers.is_ambiguous(text):
            ambiguous.append(code)
            cells[code] = Cell(())
        else:
            cells[code] = interpreted(text, markers, options.separator)
    if not ambiguous:
        return cells
    is_name = np.zeros(len(table.texts), dtype=bool)
    is_name[[code for code, cell in cells.items() if cell.names]] = True
    for code, contradiction in ranked_codes(ambiguous, table.codes, is_name).items():
        cells[code] = Cell((table.texts[code],))
        if contradiction is not None:
            word = printable(table.texts[code])
            raise table.error(
                contradiction,
                f"{word!r} may be a name, which other rows rank, or a missing value; list it in ",
                Argument("items", ...),
                " if it is a name, or in ",
                Argument("na_values", ...),
                " if not",
            )
    if options.fold_case:  # a name in one case is a name in every case
        names = {folded(name) for cell in cells.values() for name in cell.names}
        cells |= {code: Cell((text,)) for code in ambiguous if folded(text := table.texts[code]) in names}
    return cells


def interpreted(text: str, markers: Markers, separator: str | None) -> Cell:
    """Return the interpretation of an unambiguous cell."""
    if markers.is_missing(text):
        return Cell(())
    if markers.is_overvote(text):
        return Cell((text,), overvoted=True)
    if separator is None or text in markers.items:
        return Cell((text,))
    return Cell(tuple(name for part in text.split(separator) if not markers.is_missing(name := part.strip())))


def ranked_codes(ambiguous: Sequence[int], codes: Codes, is_name: Mask) -> dict[int, int | None]:
    """Return the ambiguous codes that some row ranks, each with a row that contradicts this, if there is one.

    A cell that occurs once in its row and before a name is ranked; one that occurs twice in a row is a missing value.
    """
    found: dict[int, int | None] = {}
    last_name = np.where(is_name[codes], np.arange(codes.shape[1]), -1).max(axis=1, initial=-1)
    for code in ambiguous:
        here = codes == code
        n_here = here.sum(axis=1)
        if ((n_here == 1) & (here.argmax(axis=1) < last_name)).any():
            found[code] = int(np.argmax(n_here > 1)) if (n_here > 1).any() else None
    return found


def merged_names(cells: Iterable[Cell], items: tuple[str, ...] | None) -> dict[str, str]:
    """Return the names to replace, each with the first name that differs from it only in case or spaces."""
    first = {folded(name): name for name in reversed(items or ())}
    merged: dict[str, str] = {}
    for cell in cells:
        for name in cell.names if not cell.overvoted else ():
            other = first.setdefault(folded(name), name)
            if other != name:
                merged[name] = other
    return merged


def folded(name: str) -> str:
    """Return a name without case and spaces."""
    return "".join(name.split()).casefold()


def check_joined_names(table: TextTable) -> None:
    """Raise an error for a cell that looks like several candidates, instead of making a candidate of it."""
    used = table.used()
    present = {table.texts[code] for code in used}
    for code in used:
        cell = table.texts[code]
        for sign in SEPARATORS:
            parts = [part.strip() for part in cell.split(sign)] if sign in cell else []
            if len(parts) > 1 and all(part and part in present for part in parts):
                raise table.error(
                    int(table.first_rows()[code]),
                    f"{printable(cell)!r} looks like an overvote, {len(parts)} names joined by {sign!r}; give ",
                    Argument("separator", sign),
                    ", or if it is one name, list all items in ",
                    Argument("items", ...),
                )


# ---------------------------------------------------------------------- conversion of ballots


class BallotReader:
    """Converts ballots to ranks and counts the repairs."""

    def __init__(self, cells: dict[int, Cell], index: dict[str, int], table: TextTable) -> None:
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
        for code in codes:
            bucket = self.bucket(code, seen, row)
            if bucket is None:
                break
            if bucket:
                buckets.append(bucket)
                seen.update(bucket)
        return buckets

    def bucket(self, code: int, seen: set[str], row: int) -> list[str] | None:
        """Return the names that a cell adds to the ballot, or None if the ballot ends there."""
        (names, overvoted), text = self.cells[code], printable(self.table.texts[code])
        if not names:
            self.skipped += 1
            return None if self.options.skipped == "stop" else []
        if len(names) > 1 or overvoted:
            self.overvoted += 1
            rule = self.options.overvotes
            if rule == "error":
                raise self.table.error(row, f"{text!r} is an overvote; choose another ", Argument("overvotes"))
            if rule != "tie":
                return None if rule == "stop" else []
            if overvoted:
                raise self.table.error(
                    row, f"{text!r} does not name the candidates, as ", Argument("overvotes", "tie"), " requires"
                )
        new = [name for name in dict.fromkeys(names) if name not in seen]
        if len(new) < len(names):
            self.repeated += len(names) - len(new)
            if self.options.repeated == "error":
                raise self.table.error(row, f"{text!r} is repeated; choose another ", Argument("repeated"))
            if self.options.repeated == "stop":
                return None
        for name in new:
            if name not in self.index:
                raise self.table.error(row, f"{printable(name)!r} is not one of the ", Argument("items"))
        return new


def is_regular(names: Codes) -> Mask:
    """Return for each row whether it names different items, one per cell, without skipped positions."""
    listed = names >= 0
    gap = (listed[:, 1:] & ~listed[:, :-1]).any(axis=1)
    ordered = np.sort(names, axis=1)
    repeated = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    return np.asarray(~(gap | repeated | (names == IRREGULAR).any(axis=1)))


# ---------------------------------------------------------------------- rankings of ballots


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
    if not ballots.items or (options.blank == "drop" and len(marked) and not marked.any()):
        raise source.error(
            None, "no row lists an item; give ", Argument("items", ...), " and ", Argument("blank", "keep")
        )
    warn_of_similar_names(ballots.items, source)
    ranks = dense_ranks(ballots.ranks, listed, options.unlisted)
    labels = labels or {}
    if rows is not None:
        marked = marked[rows]
    repairs = replace(ballots.repairs, blank=int(np.count_nonzero(~marked)), blank_dropped=options.blank == "drop")
    if options.blank == "drop" and not marked.all():
        ranks = ranks[marked if rows is None else rows[marked]]
        counts, labels = counts[marked], {name: values[marked] for name, values in labels.items()}
    elif rows is not None and len(rows) > len(ranks):
        ranks = ranks[rows]
    return Rankings._trusted(ranks, ballots.items, counts, labels, replace(about, repairs=repairs))


def warn_of_similar_names(items: tuple[str, ...], source: SourceFile) -> None:
    """Warn of names that differ only in case or spaces."""
    seen: dict[str, str] = {}
    similar = [(seen[folded(name)], name) for name in items if seen.setdefault(folded(name), name) != name]
    if similar:
        pairs = [f"{printable(one)!r} and {printable(other)!r}" for one, other in similar[:5]]
        shown = "; ".join([*pairs, *["..."] * (len(similar) > 5)])
        problem = f"{source.name}: {shown} differ only in case or spaces and are different items; "
        warn((problem, Argument("fold_case", True), " merges them"), ReadingWarning)

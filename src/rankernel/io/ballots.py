"""Ballots as machines record them: one cell a position, with gaps, repeated candidates and overvoted positions.

Rows without any of these are read all at once; the others one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from rankernel._utils import checks
from rankernel._utils.arrays import IntArray, Mask, RankArray
from rankernel._utils.checks import printable
from rankernel.encoding import FREE
from rankernel.errors import RankingError
from rankernel.io.files import MOST_BYTES, AnyPath, check_table_size, fail
from rankernel.io.records import Codes, Records
from rankernel.io.repairs import Repairs
from rankernel.io.words import Words, names_among

Skipped = Literal["close", "stop"]
Repeated = Literal["first", "stop", "error"]
Overvotes = Literal["stop", "skip", "tie", "error"]

JOINING = ("|", ";", "/", ",", "&", "+", "\n")
NOTHING, IRREGULAR = -1, -2  # among the numbers of names


@dataclass(frozen=True)
class BallotRules:
    """What to do with a gap, with a candidate named again and with an overvoted position; which words are no names."""

    skipped: Skipped = "close"
    repeated: Repeated = "first"
    overvotes: Overvotes = "stop"
    separator: str | None = None
    nothing: tuple[str, ...] = ()
    fold_case: bool = False
    max_bytes: int = MOST_BYTES

    def __post_init__(self) -> None:
        for name, kinds in (("skipped", Skipped), ("repeated", Repeated), ("overvotes", Overvotes)):
            checks.check_choice(name, getattr(self, name), get_args(kinds))
        checks.check_flag("fold_case", self.fold_case)
        if self.separator is not None and not checks.check_text("separator", self.separator):
            raise RankingError("separator='' separates nothing; give the sign between the names in an overvoted cell")


class Ballots(NamedTuple):
    """Ranks, -1 where an item is not listed; the items; what was mended."""

    ranks: RankArray
    items: tuple[str, ...]
    repairs: Repairs


class Meaning(NamedTuple):
    """What a cell says: the names in it, none if nothing was marked; and whether it only says that it is overvoted."""

    names: tuple[str, ...]
    overvoted: bool = False


def read_ballots(table: Records, items: tuple[str, ...] | None, rules: BallotRules) -> Ballots:
    """Return the ballots of a table with one column a position, all of its rows different."""
    if items is None and rules.separator is None:
        check_joined(table)
    words = Words.given(items, rules.nothing)
    used = table.used()
    known = meanings(table, used, words, rules)
    folded, merged = fold_names(known.values(), items, rules.fold_case)
    known = {code: Meaning(tuple(folded.get(name, name) for name in m.names), m.overvoted) for code, m in known.items()}
    names = items or tuple(dict.fromkeys(name for m in known.values() if not m.overvoted for name in m.names))
    reader = Reader(rules, known, {name: number for number, name in enumerate(names)}, table)
    check_table_size(table.n_rows, len(names), table.path, rules.max_bytes)
    ranks = reader.ranks()
    if items is None:
        listed = (ranks != FREE).any(axis=0)
        ranks, names = ranks[:, listed], tuple(name for name, there in zip(names, listed, strict=True) if there)
    repairs = Repairs(
        reader.skipped, reader.repeated, reader.overvoted, words=read_as_nothing(table, known), merged=merged
    )
    return Ballots(ranks, names, repairs)


# ---------------------------------------------------------------------- what the cells mean


def meanings(table: Records, used: list[int], words: Words, rules: BallotRules) -> dict[int, Meaning]:
    """Return what each text of a cell says, in order of first appearance."""
    found: dict[int, Meaning] = {}
    unreliable = []
    for code in used:
        text = table.texts[code]
        found[code] = meaning_of(text, words, rules.separator)
        if words.is_doubtful(text):
            unreliable.append(code)
            found[code] = Meaning(())
    if unreliable:
        is_name = np.zeros(len(table.texts), dtype=bool)
        is_name[[code for code, meaning in found.items() if meaning.names]] = True
        for code, row in names_among(unreliable, table.codes, is_name).items():
            found[code] = Meaning((table.texts[code],))
            if row < 0:
                word = printable(table.texts[code])
                raise fail(
                    table.path,
                    table.line(~row),
                    f"{word!r} may be a name, which other rows rank, or mean that nothing was marked; list it in "
                    "items=... if it is a name, or in nothing=... if not",
                )
        if rules.fold_case:  # a word that is a name in one spelling is one in all
            names = {folded(name) for meaning in found.values() for name in meaning.names}
            found |= {code: Meaning((text,)) for code in unreliable if folded(text := table.texts[code]) in names}
    return found


def meaning_of(cell: str, words: Words, separator: str | None) -> Meaning:
    """Return what a cell says."""
    if words.is_nothing(cell):
        return Meaning(())
    if words.is_overvote(cell):
        return Meaning((cell,), overvoted=True)
    if separator is None or cell in words.items:
        return Meaning((cell,))
    return Meaning(tuple(name for part in cell.split(separator) if not words.is_nothing(name := part.strip())))


def read_as_nothing(table: Records, known: dict[int, Meaning]) -> tuple[tuple[str, int], ...]:
    """Return the words that were read as nothing, and how often they occur; an empty cell is no word."""
    silent = [code for code, meaning in known.items() if not meaning.names and table.texts[code]]
    if not silent:
        return ()
    times = table.cells_of_text()
    return tuple((table.texts[code], int(times[code])) for code in silent)


def fold_names(
    known: Iterable[Meaning], items: tuple[str, ...] | None, fold: bool
) -> tuple[dict[str, str], tuple[tuple[str, str], ...]]:
    """Return by which names to replace others that differ from them in case or blanks only, if that is wanted."""
    if not fold:
        return {}, ()
    first = {folded(name): name for name in reversed(items or ())}
    replaced: dict[str, str] = {}
    for meaning in known:
        for name in meaning.names if not meaning.overvoted else ():
            kept = first.setdefault(folded(name), name)
            if kept != name:
                replaced[name] = kept
    return replaced, tuple(replaced.items())


def folded(name: str) -> str:
    """Return a name without what case and blanks tell."""
    return "".join(name.split()).casefold()


def check_joined(table: Records) -> None:
    """Refuse a cell that looks like several candidates, instead of making one candidate of them."""
    used = table.used()
    present = {table.texts[code] for code in used}
    for code in used:
        cell = table.texts[code]
        for sign in JOINING:
            parts = [part.strip() for part in cell.split(sign)] if sign in cell else []
            if len(parts) > 1 and all(part and part in present for part in parts):
                raise fail(
                    table.path,
                    table.line(int(table.first_rows()[code])),
                    f"{printable(cell)!r} looks like an overvote, {len(parts)} names joined by {sign!r}; give "
                    f"separator={sign!r}, or list all items in items=... if it is one name",
                )


# ---------------------------------------------------------------------- ballots one by one, and all at once


class Reader:
    """Reads ballots by the rules and counts what it mends."""

    def __init__(self, rules: BallotRules, known: dict[int, Meaning], numbers: dict[str, int], table: Records) -> None:
        self.rules, self.known, self.numbers, self.table = rules, known, numbers, table
        self.skipped = self.repeated = self.overvoted = 0

    def ranks(self) -> RankArray:
        """Return the place of each item in each row, -1 where it is not listed."""
        single = np.full(max(len(self.table.texts), 1), IRREGULAR, dtype=np.int32)
        for code, meaning in self.known.items():
            if not meaning.names:
                single[code] = NOTHING
            elif len(meaning.names) == 1 and not meaning.overvoted:
                single[code] = self.numbers.get(meaning.names[0], IRREGULAR)
        names = single[self.table.codes]
        ranks: RankArray = np.full((len(self.table), len(self.numbers)), FREE, dtype=np.int32)
        regular = is_regular(names)
        rows, places = np.nonzero((names >= 0) & regular[:, None])
        ranks[rows, names[rows, places]] = places
        self.mend(np.flatnonzero(~regular), ranks)
        return ranks

    def mend(self, rows: IntArray, ranks: RankArray) -> None:
        """Read rows that are not regular."""
        times = np.ones(len(self.table), dtype=np.int64) if self.table.times is None else self.table.times
        for row, more in zip(rows.tolist(), (times[rows] - 1).tolist(), strict=True):
            before = self.skipped, self.repeated, self.overvoted
            for place, bucket in enumerate(self.order(self.table.codes[row].tolist(), self.table.line(row))):
                ranks[row, [self.numbers[name] for name in bucket]] = place
            self.skipped += more * (self.skipped - before[0])
            self.repeated += more * (self.repeated - before[1])
            self.overvoted += more * (self.overvoted - before[2])

    def order(self, cells: Sequence[int], line: int) -> list[list[str]]:
        """Return the buckets of one ballot, best first."""
        marked = [self.known[cell] for cell in cells]
        while marked and not marked[-1].names:  # blanks at the end are where the ballot ends, not gaps
            marked.pop()
        order: list[list[str]] = []
        seen: set[str] = set()
        for cell, meaning in zip(cells, marked, strict=False):
            bucket = self.bucket(self.table.texts[cell], meaning, seen, line)
            if bucket is None:
                break
            if bucket:
                order.append(bucket)
                seen.update(bucket)
        return order

    def bucket(self, cell: str, meaning: Meaning, seen: set[str], line: int) -> list[str] | None:
        """Return what a cell adds to the ballot, or None where the ballot ends."""
        names = meaning.names
        if not names:
            self.skipped += 1
            return None if self.rules.skipped == "stop" else []
        if len(names) > 1 or meaning.overvoted:
            self.overvoted += 1
            if self.rules.overvotes != "tie":
                return self.without_overvote(cell, line)
            if meaning.overvoted:
                raise self.fail(line, f"{printable(cell)!r} does not say which candidates; overvotes='tie' must")
        new = [name for name in dict.fromkeys(names) if name not in seen]
        if len(new) < len(names):
            self.repeated += len(names) - len(new)
            if self.rules.repeated == "error":
                raise self.fail(line, f"{printable(cell)!r} is named twice; choose repeated='first' or 'stop'")
            if self.rules.repeated == "stop":
                return None
        for name in new:
            if name not in self.numbers:
                raise self.fail(line, f"{printable(name)!r} is not among the items")
        return new

    def without_overvote(self, cell: str, line: int) -> list[str] | None:
        """Return what is left of an overvoted cell."""
        if self.rules.overvotes == "error":
            raise self.fail(line, f"{printable(cell)!r} is overvoted; choose overvotes='stop', 'skip' or 'tie'")
        return None if self.rules.overvotes == "stop" else []

    def fail(self, line: int, problem: str) -> RankingError:
        """Return the error for a row."""
        path: AnyPath = self.table.path
        return fail(path, line, problem)


def is_regular(names: Codes) -> Mask:
    """Say of each row whether it names different items, one a cell, and nothing behind the last."""
    listed = names >= 0
    gap = (listed[:, 1:] & ~listed[:, :-1]).any(axis=1)
    ordered = np.sort(names, axis=1)
    repeated = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    return np.asarray(~(gap | repeated | (names == IRREGULAR).any(axis=1)))

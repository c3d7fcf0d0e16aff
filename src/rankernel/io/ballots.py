"""Ballots as machines record them: one cell a position, with gaps, repeated candidates and overvoted positions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from rankernel.encoding import printable
from rankernel.errors import RankingError
from rankernel.io.files import AnyPath, fail
from rankernel.io.records import Records

Skipped = Literal["close", "stop"]
Repeated = Literal["first", "stop", "error"]
Overvotes = Literal["stop", "skip", "tie", "error"]

SKIPPED_WORDS = frozenset({"", "-", "skipped", "skip", "undervote", "undervoted", "blank", "n/a", "na", "nan", "null"})
OVERVOTE_WORDS = frozenset({"overvote", "overvoted", "over vote"})
JOINING = ("|", ";", "/", ",", "&", "+", "\n")

ORDINAL_WORDS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
ORDINALS = {word: number for number, word in enumerate(ORDINAL_WORDS.split(), start=1)}
PLACE = "(?:rank|ranking|choice|preference|pref|position|pos|place|vote|selection)"
POSITION_NAMES = (
    re.compile(rf"{PLACE}?[\s_.#-]*([0-9]{{1,6}})(?:st|nd|rd|th)?"),
    re.compile(rf"([0-9]{{1,6}})(?:st|nd|rd|th)?[\s_.-]*{PLACE}"),
    re.compile(rf"({'|'.join(ORDINALS)})[\s_.-]*{PLACE}?"),
)


@dataclass(frozen=True)
class Repairs:
    """How often ballots had to be mended: in cells and rows of the file, however many voters a row stands for.

    Attributes
    ----------
    skipped : int
        Skipped cells with a marked one behind them.
    repeated : int
        Candidates named again.
    overvoted : int
        Cells with more than one candidate.
    blank : int
        Rows in which nothing is listed, or nothing was left.

    Examples
    --------
    >>> bool(Repairs()), bool(Repairs(skipped=2))
    (False, True)
    """

    skipped: int = 0
    repeated: int = 0
    overvoted: int = 0
    blank: int = 0

    def __bool__(self) -> bool:
        return bool(self.skipped or self.repeated or self.overvoted or self.blank)


@dataclass(frozen=True)
class BallotRules:
    """What to do with a gap, with a candidate named again and with an overvoted position."""

    skipped: Skipped = "close"
    repeated: Repeated = "first"
    overvotes: Overvotes = "stop"
    separator: str | None = None

    def __post_init__(self) -> None:
        for name, kinds in (("skipped", Skipped), ("repeated", Repeated), ("overvotes", Overvotes)):
            if getattr(self, name) not in get_args(kinds):
                known = ", ".join(repr(kind) for kind in get_args(kinds))
                raise RankingError(f"{name}={getattr(self, name)!r} is none of {known}")
        if self.separator == "":
            raise RankingError("separator='' separates nothing; give the sign between the names in an overvoted cell")


def position_of(column: str) -> int | None:
    """Return the position that the name of a column states: 2 for ``rank 2``, ``choice_2`` and ``2nd choice``."""
    for pattern in POSITION_NAMES:
        match = pattern.fullmatch(column.lower())
        if match:
            number = match.group(1)
            return ORDINALS[number] if number in ORDINALS else int(number)
    return None


class Reader:
    """Reads ballots by the rules and counts what it mends."""

    def __init__(self, rules: BallotRules, items: Iterable[str], path: AnyPath) -> None:
        self.rules = rules
        self.items = frozenset(items)
        self.path = path
        self.skipped = self.repeated = self.overvoted = 0

    def order(self, cells: Sequence[str], line: int) -> list[list[str]]:
        """Return the buckets of one ballot, best first."""
        marked = [self.names(cell) for cell in cells]
        while marked and not marked[-1]:  # blanks at the end are where the ballot ends, not gaps
            marked.pop()
        order: list[list[str]] = []
        seen: set[str] = set()
        for cell, names in zip(cells, marked, strict=False):
            bucket = self.bucket(cell, names, seen, line)
            if bucket is None:
                break
            if bucket:
                order.append(bucket)
                seen.update(bucket)
        return order

    def names(self, cell: str) -> list[str]:
        """Return the names in a cell: none if it was skipped, the word itself if it says only that it is overvoted."""
        if cell in self.items:
            return [cell]
        if cell.lower() in SKIPPED_WORDS:
            return []
        if self.rules.separator is None:
            return [cell]
        return [name for part in cell.split(self.rules.separator) if (name := part.strip())]

    def bucket(self, cell: str, names: list[str], seen: set[str], line: int) -> list[str] | None:
        """Return what a cell adds to the ballot, or None where the ballot ends."""
        if not names:
            self.skipped += 1
            return None if self.rules.skipped == "stop" else []
        if len(names) > 1 or self.is_overvote_word(cell):
            self.overvoted += 1
            if self.rules.overvotes != "tie":
                return self.without_overvote(cell, line)
            if len(names) == 1:
                raise fail(self.path, line, f"{printable(cell)!r} does not say which candidates; overvotes='tie' must")
        new = [name for name in dict.fromkeys(names) if name not in seen]
        if len(new) < len(names):
            self.repeated += len(names) - len(new)
            if self.rules.repeated == "error":
                raise fail(self.path, line, f"{printable(cell)!r} is named twice; choose repeated='first' or 'stop'")
            if self.rules.repeated == "stop":
                return None
        self.check_names(new, line)
        return new

    def is_overvote_word(self, cell: str) -> bool:
        """Say whether a cell only states that it is overvoted."""
        return cell.lower() in OVERVOTE_WORDS and cell not in self.items

    def without_overvote(self, cell: str, line: int) -> list[str] | None:
        """Return what is left of an overvoted cell."""
        if self.rules.overvotes == "error":
            problem = f"{printable(cell)!r} is overvoted; choose overvotes='stop', 'skip' or 'tie'"
            raise fail(self.path, line, problem)
        return None if self.rules.overvotes == "stop" else []

    def check_names(self, names: Iterable[str], line: int) -> None:
        """Refuse a name outside the fixed list of items, if there is one."""
        for name in names:
            if self.items and name not in self.items:
                raise fail(self.path, line, f"{printable(name)!r} is not among the items")


def read_ballots(
    table: Records, items: tuple[str, ...] | None, rules: BallotRules
) -> tuple[list[list[list[str]]], Repairs]:
    """Return the buckets of each row of a table with one column a position, and what was mended."""
    if items is None and rules.separator is None:
        check_joined(table)
    reader = Reader(rules, items or (), table.path)
    orders = [reader.order(row, line) for row, line in zip(table.rows, table.lines, strict=True)]
    return orders, Repairs(reader.skipped, reader.repeated, reader.overvoted)


def check_joined(table: Records) -> None:
    """Refuse a cell that looks like several candidates, instead of making one candidate of them."""
    first: dict[str, int] = {}
    for row, line in zip(table.rows, table.lines, strict=True):
        for cell in row:
            first.setdefault(cell, line)
    for cell, line in first.items():
        for sign in JOINING:
            parts = [part.strip() for part in cell.split(sign)]
            if len(parts) > 1 and all(part and part in first for part in parts):
                raise fail(
                    table.path,
                    line,
                    f"{printable(cell)!r} looks like an overvote, {len(parts)} names joined by {sign!r}; give "
                    f"separator={sign!r}, or list all items in items=... if it is one name",
                )

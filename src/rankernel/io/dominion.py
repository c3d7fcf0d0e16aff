"""The .csv export of Dominion: four lines of headings, then a 0 or 1 for every candidate and every rank."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from rankernel._utils.arrays import Mask
from rankernel._utils.checks import printable
from rankernel.io.files import AnyPath, fail
from rankernel.io.records import Codes, Records, parsed, records_of_text

HEADINGS = re.compile(r'(?:[^\n]*\n){1,3}?(?:="|")*CvrNumber\b')  # the election, the contests, the choices, then this
NUMBERS_OF_CONTEST = re.compile(r"\s*\((?:Vote For|Number of (?:positions|ranks))\s*=[^()]*\)\s*$", re.IGNORECASE)
CHOICE = re.compile(r"(.*?)\s*\(([0-9]{1,4})\)", re.DOTALL)
AS_TEXT = re.compile(r'="(.*)"', re.DOTALL)  # so that no spreadsheet makes a number or a date of it
ABSENT, UNMARKED, MARKED, STRANGE = range(4)
SIGNS = {"": ABSENT, "0": UNMARKED, "1": MARKED}


class Choice(NamedTuple):
    """A column of the matrix: where it is, whom it is for, and at which rank."""

    column: int
    name: str
    rank: int


@dataclass(frozen=True)
class DominionTable:
    """An export: its records, and the columns of each ranked contest.

    Attributes
    ----------
    records : Records
        The cells; the columns of the matrix are named by their numbers.
    contests : dict
        For each ranked contest its columns.
    """

    records: Records
    contests: dict[str, list[Choice]]

    def candidates(self, contest: str) -> tuple[str, ...]:
        """Return the candidates of a contest, in the order of the columns."""
        return tuple(dict.fromkeys(choice.name for choice in self.contests[contest]))

    def passed_over(self, contest: str, kept: Sequence[str]) -> tuple[str, ...]:
        """Return which columns and ranked contests are not used."""
        beside = [name for name in self.records.columns if not name.isdigit() and name not in kept]
        return (*beside, *(name for name in self.contests if name != contest))

    def ballots(self, contest: str, kept: Sequence[str], separator: str) -> Records:
        """Return one contest with one column a place, and other columns; several marks at a place are joined.

        Ballots on which the contest does not stand, all of its cells being empty, are left out.
        """
        choices = self.contests[contest]
        cells = self.records.with_columns([choice.column for choice in choices])
        signs = np.array([SIGNS.get(text, STRANGE) for text in cells.texts], dtype=np.int8)[cells.codes]
        if (signs == STRANGE).any():
            row, place = divmod(int(np.argmax(signs == STRANGE)), len(choices))
            cell, choice = cells.texts[cells.codes[row, place]], choices[place]
            problem = f"{printable(choice.name)!r} at rank {choice.rank} holds {printable(cell)!r}; a mark is 0 or 1"
            raise fail(cells.path, cells.line(row), problem)
        held = (signs != ABSENT).any(axis=1)
        places, texts = places_of_marks(signs[held] == MARKED, choices, separator)
        beside = self.records.with_columns([self.records.position(name, "labels or count") for name in kept])
        return replace(
            self.records,
            columns=(*kept, *(f"rank {place + 1}" for place in range(places.shape[1]))),
            texts=[*beside.texts, *texts],
            codes=np.hstack([beside.codes[held], places + len(beside.texts)]).astype(np.int32),
            lines=self.records.lines[held],
        )


def looks_dominion(text: str) -> bool:
    """Say whether a text is such an export: below up to three lines, the columns are named, CvrNumber first."""
    return bool(HEADINGS.match(text))


def read_dominion(text: str, delimiter: str, path: AnyPath, max_bytes: int) -> DominionTable:
    """Return what such an export holds."""
    sign = "," if delimiter == "auto" else delimiter
    headings: list[tuple[int, list[str]]] = []
    for number, cells in islice(parsed(text, sign, path), 4):
        headings.append((number, [as_text(cell) for cell in cells]))
        if headings[-1][1][0] == "CvrNumber":
            break
    if len(headings) < 3 or headings[-1][1][0] != "CvrNumber":
        raise fail(path, 1, "above the line that begins with CvrNumber, one names contests and one their choices")
    (_, titles), (_, choices), (line, columns) = headings[-3:]
    if not len(titles) == len(choices) == len(columns):
        widths = ", ".join(str(len(row)) for row in (titles, choices, columns))
        raise fail(path, line, f"the lines of contests, choices and columns have {widths} cells; they must be as many")
    n_beside = next((place for place, title in enumerate(titles) if title), len(titles))
    names = [*columns[:n_beside], *(str(place) for place in range(n_beside, len(columns)))]
    # The headings give way to one line of names at the same place, so that lines keep their numbers.
    head = io.StringIO()
    csv.writer(head, delimiter=sign, lineterminator="\n").writerow(names)
    body = text[end_of_line(text, line) :]
    records = records_of_text("\n" * (line - 1) + head.getvalue() + body, sign, path, max_bytes)
    records = replace(records, texts=[as_text(cell) for cell in records.texts])
    return DominionTable(records, ranked_contests(titles, choices, n_beside))


def as_text(cell: str) -> str:
    """Return a cell without blanks around it and without the signs that keep a spreadsheet from changing it."""
    cell = cell.strip()
    quoted = AS_TEXT.fullmatch(cell)
    return quoted[1].strip() if quoted else cell


def end_of_line(text: str, number: int) -> int:
    """Return where the text behind a line begins."""
    end = 0
    for _ in range(number):
        end = text.find("\n", end) + 1 or len(text)
    return end


def ranked_contests(titles: Sequence[str], choices: Sequence[str], first: int) -> dict[str, list[Choice]]:
    """Return the columns of each contest in which every choice states a rank, and one of them a second or later."""
    found: dict[str, list[tuple[int, re.Match[str] | None]]] = {}
    for column in range(first, len(titles)):
        name = NUMBERS_OF_CONTEST.sub("", titles[column])
        found.setdefault(name, []).append((column, CHOICE.fullmatch(choices[column])))
    ranked: dict[str, list[Choice]] = {}
    for contest, columns in found.items():
        stated = [Choice(column, match[1], int(match[2])) for column, match in columns if match]
        if len(stated) == len(columns) and max(choice.rank for choice in stated) > 1:
            ranked[contest] = stated
    return ranked


def places_of_marks(marked: Mask, choices: Sequence[Choice], separator: str) -> tuple[Codes, list[str]]:
    """Return for each ballot and rank the number of a text, and the texts: a candidate, several joined, or none."""
    names = list(dict.fromkeys(choice.name for choice in choices))
    texts = {name: number for number, name in enumerate(["", *names])}
    ranks = sorted({choice.rank for choice in choices})
    places = np.zeros((len(marked), len(ranks)), dtype=np.int32)
    for place, rank in enumerate(ranks):
        columns = [column for column, choice in enumerate(choices) if choice.rank == rank]
        number = np.array([texts[choices[column].name] for column in columns])
        here = marked[:, columns]
        places[:, place] = np.where(here.any(axis=1), number[here.argmax(axis=1)], 0)
        for row in np.flatnonzero(here.sum(axis=1) > 1).tolist():
            joined = separator.join(names[each - 1] for each in number[here[row]].tolist())
            places[row, place] = texts.setdefault(joined, len(texts))
    return places, list(texts)

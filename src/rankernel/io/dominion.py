"""The .csv export of Dominion: up to four header lines, then a 0 or 1 for every candidate and every rank."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from rankernel._utils.arrays import Mask
from rankernel._utils.checks import printable
from rankernel.io.read_options import ReadOptions
from rankernel.io.text_files import SourceFile
from rankernel.io.text_table import Codes, TextTable, split_rows, split_table

HEADINGS = re.compile(r'(?:[^\n]*\n){1,3}?(?:="|")*CvrNumber\b')  # election, contests, choices, then the columns
CONTEST_NUMBERS = re.compile(r"\s*\((?:Vote For|Number of (?:positions|ranks))\s*=[^()]*\)\s*$", re.IGNORECASE)
CHOICE = re.compile(r"(.*?)\s*\(([0-9]{1,4})\)", re.DOTALL)
QUOTED_FORMULA = re.compile(r'="(.*)"', re.DOTALL)  # keeps a spreadsheet from converting a cell to a number or date
ABSENT, UNMARKED, MARKED, INVALID = range(4)
MARKS = {"": ABSENT, "0": UNMARKED, "1": MARKED}


class Choice(NamedTuple):
    """A column of marks: its index, the candidate and the rank."""

    column: int
    name: str
    rank: int


@dataclass(frozen=True)
class DominionTable:
    """An export.

    Attributes
    ----------
    table : TextTable
        The cells; the columns of marks are named by their indices.
    contests : dict
        The columns of each ranked contest.
    """

    table: TextTable
    contests: dict[str, list[Choice]]

    def candidates(self, contest: str) -> tuple[str, ...]:
        """Return the candidates of a contest, in the order of the columns."""
        return tuple(dict.fromkeys(choice.name for choice in self.contests[contest]))

    def ignored(self, contest: str, kept: Collection[str]) -> tuple[str, ...]:
        """Return the columns and ranked contests that are not used."""
        columns = [name for name in self.table.columns if not name.isdigit() and name not in kept]
        return (*columns, *(name for name in self.contests if name != contest))

    def ballots(self, contest: str, options: ReadOptions, separator: str) -> TextTable:
        """Return a contest with one column per position, and the named columns; several marks of a position are joined.

        Ballots without the contest, whose cells are all empty, are left out.
        """
        choices = self.contests[contest]
        cells = self.table.select([choice.column for choice in choices])
        marks = np.array([MARKS.get(text, INVALID) for text in cells.texts], dtype=np.int8)[cells.codes]
        if (marks == INVALID).any():
            row, column = divmod(int(np.argmax(marks == INVALID)), len(choices))
            cell, choice = cells.texts[cells.codes[row, column]], choices[column]
            problem = f"{printable(choice.name)!r} at rank {choice.rank} holds {printable(cell)!r}; a mark is 0 or 1"
            raise cells.error(row, problem)
        present = (marks != ABSENT).any(axis=1)
        codes, texts = position_codes(marks[present] == MARKED, choices, separator)
        named = options.named_columns
        others = self.table.select([self.table.index(name, argument) for name, argument in named.items()])
        return replace(
            self.table,
            columns=(*named, *(f"rank {position + 1}" for position in range(codes.shape[1]))),
            texts=[*others.texts, *texts],
            codes=np.hstack([others.codes[present], codes + len(others.texts)]).astype(np.int32),
            lines=self.table.lines[present],
        )


def is_dominion(text: str) -> bool:
    """Whether a text is such an export: after at most three lines, the columns are named, CvrNumber first."""
    return bool(HEADINGS.match(text))


def read_dominion(source: SourceFile, options: ReadOptions) -> DominionTable:
    """Return the content of an export."""
    text, delimiter = source.text(options), "," if options.delimiter == "auto" else options.delimiter
    headings: list[tuple[int, list[str]]] = []
    for number, cells in islice(split_rows(text, delimiter, source), 4):
        headings.append((number, [plain_text(cell) for cell in cells]))
        if headings[-1][1][0] == "CvrNumber":
            break
    if len(headings) < 3 or headings[-1][1][0] != "CvrNumber":
        raise source.error(1, "two lines, of contests and of choices, must precede the line that begins with CvrNumber")
    (_, titles), (_, choices), (line, columns) = headings[-3:]
    if not len(titles) == len(choices) == len(columns):
        widths = ", ".join(str(len(row)) for row in (titles, choices, columns))
        raise source.error(line, f"the lines of contests, choices and columns have {widths} cells; they must be equal")
    n_others = next((index for index, title in enumerate(titles) if title), len(titles))
    names = [*columns[:n_others], *(str(index) for index in range(n_others, len(columns)))]
    # The header lines are replaced by one line of names at the same position, so that line numbers stay right.
    header = io.StringIO()
    csv.writer(header, delimiter=delimiter, lineterminator="\n").writerow(names)
    body = text[end_of_line(text, line) :]
    plain = "\n" * (line - 1) + header.getvalue() + body
    table = split_table(plain, source, replace(options, delimiter=delimiter))
    table = replace(table, texts=[plain_text(cell) for cell in table.texts])
    return DominionTable(table, ranked_contests(titles, choices, n_others))


def plain_text(cell: str) -> str:
    """Return a cell without surrounding spaces and without the signs that protect it from a spreadsheet."""
    cell = cell.strip()
    quoted = QUOTED_FORMULA.fullmatch(cell)
    return quoted[1].strip() if quoted else cell


def end_of_line(text: str, number: int) -> int:
    """Return the index of the first character after a line."""
    end = 0
    for _ in range(number):
        end = text.find("\n", end) + 1 or len(text)
    return end


def ranked_contests(titles: Sequence[str], choices: Sequence[str], first: int) -> dict[str, list[Choice]]:
    """Return the columns of each contest in which every choice states a rank, and some a rank above 1."""
    found: dict[str, list[tuple[int, re.Match[str] | None]]] = {}
    for column in range(first, len(titles)):
        name = CONTEST_NUMBERS.sub("", titles[column])
        found.setdefault(name, []).append((column, CHOICE.fullmatch(choices[column])))
    ranked: dict[str, list[Choice]] = {}
    for contest, columns in found.items():
        stated = [Choice(column, match[1], int(match[2])) for column, match in columns if match]
        if len(stated) == len(columns) and max(choice.rank for choice in stated) > 1:
            ranked[contest] = stated
    return ranked


def position_codes(marked: Mask, choices: Sequence[Choice], separator: str) -> tuple[Codes, list[str]]:
    """Return the code of a text for each ballot and rank, and the texts: no, one or several joined candidates."""
    names = list(dict.fromkeys(choice.name for choice in choices))
    texts = {name: number for number, name in enumerate(["", *names])}
    ranks = sorted({choice.rank for choice in choices})
    codes = np.zeros((len(marked), len(ranks)), dtype=np.int32)
    for position, rank in enumerate(ranks):
        columns = [column for column, choice in enumerate(choices) if choice.rank == rank]
        number = np.array([texts[choices[column].name] for column in columns])
        here = marked[:, columns]
        codes[:, position] = np.where(here.any(axis=1), number[here.argmax(axis=1)], 0)
        for row in np.flatnonzero(here.sum(axis=1) > 1).tolist():
            joined = separator.join(names[each - 1] for each in number[here[row]].tolist())
            codes[row, position] = texts.setdefault(joined, len(texts))
    return codes, list(texts)

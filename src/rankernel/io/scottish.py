"""The files of Scottish council elections: numbers of candidates and seats, counted ballots, names and parties."""

from __future__ import annotations

import re

import numpy as np

from rankernel._utils.checks import printable
from rankernel.encoding import FREE, Unlisted, check_items, check_total_count
from rankernel.errors import RankingError
from rankernel.io.ballots import Ballots
from rankernel.io.file_data import About, FileRankings
from rankernel.io.files import AnyPath, check_table_size, fail
from rankernel.io.records import parsed
from rankernel.io.repairs import Repairs
from rankernel.io.table import Blank, assembled

HEAD = re.compile(r"\s*(\"?)[0-9]{1,6}\1\s*,\s*(\"?)[0-9]{1,6}\2\s*,*\s*\r?\n")
CANDIDATE = re.compile(r"Candidate\s+([0-9]{1,6})", re.IGNORECASE)
WHOLE = re.compile("[0-9]{1,18}")


def looks_scottish(text: str) -> bool:
    """Say whether a text is such a file: it begins with two numbers, and names candidates by theirs."""
    return bool(HEAD.match(text) and re.search(r"^\W*Candidate\s+1\b", text, re.IGNORECASE | re.MULTILINE))


def scottish_rankings(text: str, path: AnyPath, unlisted: Unlisted, blank: Blank, max_bytes: int) -> FileRankings:
    """Return the ballots of such a file."""
    rows = [(line, trimmed(cells)) for line, cells in parsed(text, ",", path)]
    rows = [(line, cells) for line, cells in rows if cells]
    (_, (n_items, seats)), rest = (rows[0][0], map(int, rows[0][1])), rows[1:]
    first = next((place for place, (_, cells) in enumerate(rest) if CANDIDATE.fullmatch(cells[0])), len(rest))
    items, title = names_of(rest[first:], n_items, path)
    ballots = rest[:first]
    check_table_size(len(ballots), n_items, path, max_bytes)
    ranks = np.full((len(ballots), n_items), FREE, dtype=np.int32)
    counts = np.empty(len(ballots), dtype=np.int64)
    for row, (line, cells) in enumerate(ballots):
        for cell in cells:
            if not WHOLE.fullmatch(cell):
                raise fail(path, line, f"{printable(cell)!r} is no number; a ballot is a count and candidates")
        counts[row], *order = map(int, cells)
        if counts[row] < 1:
            raise fail(path, line, "the ballot has no voters; a count is 1 or more")
        for place, number in enumerate(order):
            if not 1 <= number <= n_items:
                raise fail(path, line, f"candidate {number} is unknown; they are numbered from 1 to {n_items}")
            if ranks[row, number - 1] != FREE:
                raise fail(path, line, f"candidate {number} is listed twice; a ballot names each at most once")
            ranks[row, number - 1] = place
    try:
        check_total_count(counts)
    except RankingError as error:
        raise fail(path, None, str(error)) from None
    about = About("a Scottish council election", title, seats)
    return assembled(Ballots(ranks, items, Repairs()), np.arange(len(ranks)), counts, {}, unlisted, blank, path, about)


def trimmed(cells: list[str]) -> list[str]:
    """Return the cells of a row without blanks and without empty ones at its end."""
    kept = [cell.strip() for cell in cells]
    while kept and not kept[-1]:
        kept.pop()
    return kept


def names_of(rows: list[tuple[int, list[str]]], n_items: int, path: AnyPath) -> tuple[tuple[str, ...], str]:
    """Return the names of the candidates in the order of their numbers, and the ward behind them."""
    names: dict[int, str] = {}
    title = ""
    for line, cells in rows:
        candidate = CANDIDATE.fullmatch(cells[0])
        if candidate and len(cells) > 1:
            number = int(candidate[1])
            if number in names or not 1 <= number <= n_items:
                raise fail(path, line, f"there is no place for candidate {number} among {n_items}, each named once")
            names[number] = cells[1]
        elif candidate or title:
            raise fail(path, line, "behind the ballots stand candidates, each with a name, and then the ward")
        else:
            title = " ".join(cells)
    if len(names) < n_items:
        raise fail(path, None, f"the first line promises {n_items} candidates, but {len(names)} are named")
    try:
        return check_items([names[number] for number in range(1, n_items + 1)]), title
    except RankingError as error:
        raise fail(path, None, str(error)) from None

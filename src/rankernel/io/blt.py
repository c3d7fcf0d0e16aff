"""BLT files, the format of OpaVote, OpenSTV, the Electoral Reform Society and many councils."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rankernel._utils import checks
from rankernel._utils.arrays import RankArray
from rankernel._utils.checks import printable
from rankernel.encoding import FREE, MAX_VOTERS, Unlisted, check_items, check_total_count, check_unlisted, dense_ranks
from rankernel.errors import RankingError
from rankernel.io.ballots import Ballots
from rankernel.io.file_data import About, FileRankings
from rankernel.io.files import (
    MOST_BYTES,
    AnyPath,
    check_table_size,
    check_writable_name,
    fail,
    read_text,
    write_text,
)
from rankernel.io.repairs import Repairs
from rankernel.io.table import Blank, assembled
from rankernel.io.truncated import listed_buckets
from rankernel.rankings import Rankings, as_rankings

TOKEN = re.compile(
    r"""(?P<blank>[^\S\n]+|\#[^\n]*|//[^\n]*|/\*.*?\*/)   # comments, as some programs allow them
      | (?P<end>\n)
      | "(?P<quoted>(?:[^"\\]|\\.|"")*)"                   # a quote inside is doubled, or has a backslash before it
      | (?P<id>\([^()\n]*\))                               # the name of a ballot, as OpenSTV writes it
      | (?P<word>[^\s"#()]+)""",
    re.VERBOSE | re.DOTALL,
)
PREFERENCE = re.compile(r"-|[0-9]{1,9}(?:=[0-9]{1,9})*")
EXAMPLE = "'3 2 4 1=5 0' (3 voters: 2, then 4, then 1 and 5 tied)"


BallotLines = tuple[list[int], list[list[list[int]]], list[int]]  # counts, places and lines


class Token(NamedTuple):
    """A word of the file: its text, the line, and whether it stood in quotes."""

    text: str
    line: int
    quoted: bool


def read_blt(
    path: AnyPath,
    unlisted: Unlisted = "last",
    withdrawn: str = "keep",
    blank: Blank = "drop",
    encoding: str = "utf-8",
    max_bytes: int = MOST_BYTES,
) -> FileRankings:
    r"""Read a BLT file, plain or gzipped.

    The file gives the numbers of candidates and seats; candidates who withdrew, as negative numbers; ballots such as
    ``3 2 4 1=5 0`` (3 voters put 2 first, then 4, then 1 and 5 tied); a 0; the names of the candidates; and a title.
    Line breaks are optional, ``#``, ``//`` and ``/* */`` begin comments, and ``-`` is a skipped place.

    Parameters
    ----------
    path : path
        The file.
    unlisted : {"last", "free"}
        Candidates that a ballot does not list share one last bucket, or nothing is known of them.
    withdrawn : {"keep", "drop"}
        Candidates who withdrew stay, as the voters ranked them, or are taken out of all ballots.
    blank : {"drop", "keep"}
        Ballots that list nobody are left out, or stay.
    encoding : str
        How the file encodes its text.
    max_bytes : int
        What a small file may grow to, unpacked or as a table of ranks.

    Returns
    -------
    FileRankings
        One row for each ballot line, with its count; ``about`` has title, seats and who withdrew.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "council.blt")
    ...     _ = file.write_text('3 1  -3\n2 1 2=3 0\n1 2 0\n0 "Ann" "Bob" "Cy" "Ward 4"')
    ...     read_blt(file)
    FileRankings: 2 rankings from 3 voters of 3 items (2 top-k)
      2 × Ann > {Bob, Cy}
      1 × Bob > {Ann, Cy}
      read as BLT; title 'Ward 4'; 1 seat; withdrawn: Cy
    """
    check_unlisted(unlisted)
    checks.check_choice("withdrawn", withdrawn, ("keep", "drop"))
    tokens = Tokens(read_text(path, encoding, max_bytes), path)
    n_items, seats, gone = head_of(tokens)
    (counts, orders, lines), (items, title) = body_of(tokens, n_items)
    check_table_size(len(orders), n_items, path, max_bytes)
    ranks, skipped = places_of_candidates(orders, lines, n_items, path)
    left = [number for number in range(n_items) if number not in gone]
    about = About("BLT", title, seats, tuple(items[number] for number in sorted(gone)))
    if withdrawn == "drop" and gone:
        if not left:
            raise fail(path, None, "all candidates withdrew; nobody is left to be ranked")
        ranks, items = ranks[:, left], tuple(items[number] for number in left)
        ranks = dense_ranks(ranks, ranks != FREE, "free")
    numbers = np.array(counts, dtype=np.int64)
    try:
        check_total_count(numbers)
    except RankingError as error:
        raise fail(path, None, str(error)) from None
    ballots = Ballots(ranks, items, Repairs(skipped))
    return assembled(ballots, np.arange(len(numbers)), numbers, {}, unlisted, blank, path, about)


# ---------------------------------------------------------------------- the words of the file


class Tokens:
    """The words of a file, one after the other; each knows its line."""

    def __init__(self, text: str, path: AnyPath) -> None:
        self.path = path
        self.found = list(self.tokens(text))
        self.place = 0

    def tokens(self, text: str) -> Iterator[Token]:
        """Yield the words, comments left out."""
        place, line = 0, 1
        while place < len(text):
            match = TOKEN.match(text, place)
            if match is None:
                shown = printable(text[place : place + 20])
                raise fail(self.path, line, f"{shown!r} cannot be read; is a quotation mark or a bracket missing?")
            if match["quoted"] is not None:
                yield Token(re.sub(r'\\(.)|""', lambda m: m[1] or '"', match["quoted"]).strip(), line, True)
            elif match["word"] is not None:
                yield Token(match["word"], line, False)
            line += match[0].count("\n")
            place = match.end()

    @property
    def last_line(self) -> int:
        """The line of the last word."""
        return self.found[-1].line if self.found else 1

    def peek(self) -> Token | None:
        """Return the next word, None at the end."""
        return self.found[self.place] if self.place < len(self.found) else None

    def take(self, wanted: str) -> Token:
        """Return the next word and go on."""
        token = self.peek()
        if token is None:
            raise fail(self.path, self.last_line, f"the file ends where {wanted} is wanted; is it cut short?")
        self.place += 1
        return token

    def number(self, wanted: str) -> tuple[int, int]:
        """Return the next word as a whole number, and its line."""
        token = self.take(wanted)
        if token.quoted or not re.fullmatch("-?[0-9]{1,30}", token.text):
            raise fail(self.path, token.line, f"{printable(token.text)!r} stands where {wanted} is wanted")
        return int(token.text), token.line


# ---------------------------------------------------------------------- its parts


def head_of(tokens: Tokens) -> tuple[int, int, set[int]]:
    """Return how many candidates and seats there are, and who withdrew, numbered from 0."""
    n_items, line = tokens.number("the number of candidates")
    if not 1 <= n_items <= MOST_BYTES:
        raise fail(tokens.path, line, f"{n_items} is not a number of candidates")
    seats, line = tokens.number("the number of seats")
    if seats < 0:
        raise fail(tokens.path, line, f"{seats} is not a number of seats")
    gone: set[int] = set()
    while (token := tokens.peek()) and not token.quoted and re.fullmatch("-[0-9]{1,9}", token.text):
        number, line = tokens.number("a candidate who withdrew")
        if not 1 <= -number <= n_items:
            raise fail(tokens.path, line, f"candidate {-number} withdrew, but they are numbered from 1 to {n_items}")
        gone.add(-number - 1)
    return n_items, seats, gone


def body_of(tokens: Tokens, n_items: int) -> tuple[BallotLines, tuple[tuple[str, ...], str]]:
    """Return ballots, names and title: each ballot ends with a 0 or, in files that do not write it, with its line."""
    start = tokens.place
    failures: list[tuple[int, RankingError]] = []
    for by_line in (False, True):
        tokens.place = start
        try:
            return ballots_of(tokens, n_items, by_line), names_of(tokens, n_items)
        except RankingError as error:
            failures.append((tokens.place, error))
    raise max(failures, key=lambda each: each[0])[1]


def ballots_of(tokens: Tokens, n_items: int, by_line: bool) -> BallotLines:
    """Return the count, the places and the line of each ballot; candidates are numbered from 0."""
    counts: list[int] = []
    orders: list[list[list[int]]] = []
    lines: list[int] = []
    while True:
        count, line = tokens.number("a ballot, or the 0 behind the last one,")
        if count == 0:
            return counts, orders, lines
        if count < 0 or count > MAX_VOTERS:
            raise fail(tokens.path, line, f"{count} is not a number of voters")
        counts.append(count)
        lines.append(line)
        orders.append(order_of(tokens, n_items, line if by_line else None))


def order_of(tokens: Tokens, n_items: int, line: int | None) -> list[list[int]]:
    """Return the places of one ballot, which a 0 ends or, where its line is given, the end of the line."""
    order: list[list[int]] = []
    while True:
        following = tokens.peek()
        if line is not None and following is not None and following.line != line:
            return order
        token = tokens.take("the 0 at the end of a ballot")
        if token.quoted or not PREFERENCE.fullmatch(token.text):
            raise fail(
                tokens.path, token.line, f"{printable(token.text)!r} is no candidate; a ballot is such as {EXAMPLE}"
            )
        if token.text == "0":
            return order
        numbers = [] if token.text == "-" else [int(number) for number in token.text.split("=")]
        for number in numbers:
            if not 1 <= number <= n_items:
                problem = f"candidate {number} is unknown; they are numbered from 1 to {n_items}"
                raise fail(tokens.path, token.line, problem)
        order.append([number - 1 for number in numbers])


def names_of(tokens: Tokens, n_items: int) -> tuple[tuple[str, ...], str]:
    """Return the names of the candidates and the title, which may be left out."""
    names = [tokens.take(f"the name of candidate {number}").text for number in range(1, n_items + 1)]
    rest = []
    while tokens.peek():
        rest.append(tokens.take("the title"))
    if len(rest) > 1 and not all(token.quoted for token in rest):
        raise fail(
            tokens.path,
            rest[0].line,
            f"behind the names of {n_items} candidates stands {printable(rest[0].text)!r} and more; names and title of "
            "several words are in quotes",
        )
    try:
        return check_items(names), rest[0].text if rest else ""
    except RankingError as error:
        raise fail(tokens.path, tokens.last_line, str(error)) from None


def places_of_candidates(
    orders: list[list[list[int]]], lines: list[int], n_items: int, path: AnyPath
) -> tuple[RankArray, int]:
    """Return the ranks, -1 where a candidate is not listed, and how many places were skipped."""
    ranks = np.full((len(orders), n_items), FREE, dtype=np.int32)
    skipped = 0
    for row, order in enumerate(orders):
        while order and not order[-1]:
            order.pop()
        place = 0
        for bucket in order:
            new = [number for number in dict.fromkeys(bucket) if ranks[row, number] == FREE]
            if len(new) < len(bucket):
                twice = next(number for number in bucket if ranks[row, number] != FREE or bucket.count(number) > 1)
                problem = f"candidate {twice + 1} is listed twice; a ballot names each at most once"
                raise fail(path, lines[row], problem)
            skipped += not bucket
            ranks[row, new] = place
            place += bool(new)
    return ranks, skipped


# ---------------------------------------------------------------------- writing


def write_blt(
    rankings: Rankings, path: AnyPath, seats: int = 1, title: str = "rankings", overwrite: bool = False
) -> None:
    """Write rankings as a BLT file, gzipped if the name ends in ``.gz``.

    Where no ranking has free items, a last bucket of several items is where a ballot ends and is not written: the
    rankings come back with ``read_blt(path)``. Others come back with ``read_blt(path, unlisted="free")``.

    Parameters
    ----------
    rankings : Rankings
        What to write.
    path : path
        The file. It is written whole or not at all.
    seats : int
        How many are to be elected.
    title : str
        The title.
    overwrite : bool
        Whether a file of that name may be replaced.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     ballots = Rankings.from_orders([["tea", {"milk", "beer"}, "cola"], ["milk"]], counts=[3, 1])
    ...     write_blt(ballots, f"{folder}/drinks.blt")
    ...     print(Path(f"{folder}/drinks.blt").read_text())
    4 1
    3 1 2=3 4 0
    1 3 0
    0
    "tea"
    "beer"
    "milk"
    "cola"
    "rankings"
    """
    rankings = as_rankings(rankings)
    checks.check_integer("seats", seats)
    for name, what in [*((name, "item") for name in rankings.items), (title, "title")]:
        check_writable_name(name, what)
    lines = [f"{rankings.n_items} {seats}"]
    for buckets, count in zip(listed_buckets(rankings, "a BLT file"), rankings.counts.tolist(), strict=True):
        places = ["=".join(str(item + 1) for item in bucket) for bucket in buckets]
        lines.append(f"{count} {' '.join(places)} 0")
    quoted = [f'"{quote(name)}"' for name in (*rankings.items, title)]
    write_text(path, "\n".join([*lines, "0", *quoted, ""]), overwrite)


def quote(name: str) -> str:
    """Return a name as it stands between quotes."""
    return name.replace("\\", "\\\\").replace('"', '\\"')

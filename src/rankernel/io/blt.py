"""BLT files, the format of OpaVote, OpenSTV, the Electoral Reform Society and many councils."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from rankernel._utils.checks import check_integer, printable
from rankernel.errors import RankingError
from rankernel.io.ballots import Ballots, rankings_of
from rankernel.io.orders import Orders
from rankernel.io.read_options import accepts
from rankernel.io.text_files import MAX_BYTES, AnyPath, FileSource, Repairs, SourceFile, check_writable_name, write_text
from rankernel.rankings import FREE, MAX_VOTERS, Rankings, as_rankings, dense_ranks

TOKEN = re.compile(
    r"""(?P<blank>[^\S\n]+|\#[^\n]*|//[^\n]*|/\*.*?\*/)   # spaces, and comments as some programs write them
      | (?P<end>\n)
      | "(?P<quoted>(?:[^"\\]|\\.|"")*)"                   # a quotation mark inside is doubled or escaped
      | (?P<id>\([^()\n]*\))                               # identifier of a ballot, as OpenSTV writes it
      | (?P<word>[^\s"#()]+)""",
    re.VERBOSE | re.DOTALL,
)
PREFERENCE = re.compile(r"-|[0-9]{1,9}(?:=[0-9]{1,9})*")
EXAMPLE = "'3 2 4 1=5 0' (3 voters: 2, then 4, then 1 and 5 tied)"

Ballot = tuple[int, int, list[list[int]]]  # line, count and buckets


class Token(NamedTuple):
    """A word of the file: its text, its line, and whether it is quoted."""

    text: str
    line: int
    quoted: bool


@accepts("unlisted", "withdrawn", "blank", "encoding", "max_bytes")
def read_blt(path: AnyPath, **keywords: Any) -> Rankings:
    r"""Read a BLT file, plain or gzipped.

    The file gives the numbers of candidates and seats; candidates who withdrew, as negative numbers; ballots such as
    ``3 2 4 1=5 0`` (3 voters put 2 first, then 4, then 1 and 5 tied); a 0; the names of the candidates; and a title.
    Line breaks are optional, ``#``, ``//`` and ``/* */`` mark comments, and ``-`` is a skipped position.

    Parameters
    ----------
    path : path
        The file.
    {options}

    Returns
    -------
    Rankings
        One row for each ballot line, with its count; ``source`` has title, seats and withdrawn candidates.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "council.blt")
    ...     _ = file.write_text('3 1  -3\n2 1 2=3 0\n1 2 0\n0 "Ann" "Bob" "Cy" "Ward 4"')
    ...     read_blt(file)
    Rankings: 2 rankings from 3 voters of 3 items (2 top-k)
      2 × Ann > {Bob, Cy}
      1 × Bob > {Ann, Cy}
      read as BLT; title 'Ward 4'; 1 seat; withdrawn: Cy
    """
    source = SourceFile.of(path, read_blt, keywords)
    tokens = Tokens(source.text, source)
    n_items, seats, withdrawn = read_head(tokens)
    ballots, n_skipped, (items, title) = read_body(tokens, n_items)
    orders = Orders.of(ballots)
    ranks = orders.ranks(n_items, source, "candidate")
    about = FileSource("BLT", title, seats, tuple(items[number] for number in sorted(withdrawn)))
    if source.options.withdrawn == "drop" and withdrawn:
        remaining = [number for number in range(n_items) if number not in withdrawn]
        if not remaining:
            raise source.error(None, "all candidates withdrew")
        ranks, items = ranks[:, remaining], tuple(items[number] for number in remaining)
        ranks = dense_ranks(ranks, ranks != FREE, "free")
    return rankings_of(Ballots(ranks, items, Repairs(n_skipped)), orders.counts, about, source)


# ---------------------------------------------------------------------- tokens


class Tokens:
    """The words of a file in their order."""

    def __init__(self, text: str, source: SourceFile) -> None:
        self.source = source
        self.tokens = list(self.split(text))
        self.index = 0

    def split(self, text: str) -> Iterator[Token]:
        """Yield the words without comments."""
        start, line = 0, 1
        while start < len(text):
            match = TOKEN.match(text, start)
            if match is None:
                shown = printable(text[start : start + 20])
                problem = f"{shown!r} cannot be read; is a quotation mark or parenthesis missing?"
                raise self.source.error(line, problem)
            if match["quoted"] is not None:
                yield Token(re.sub(r'\\(.)|""', lambda m: m[1] or '"', match["quoted"]).strip(), line, True)
            elif match["word"] is not None:
                yield Token(match["word"], line, False)
            line += match[0].count("\n")
            start = match.end()

    @property
    def last_line(self) -> int:
        """Line of the last word."""
        return self.tokens[-1].line if self.tokens else 1

    def peek(self) -> Token | None:
        """Return the next word, None at the end."""
        return self.tokens[self.index] if self.index < len(self.tokens) else None

    def take(self, expected: str) -> Token:
        """Return the next word and advance."""
        token = self.peek()
        if token is None:
            raise self.source.error(self.last_line, f"the file ends before {expected}; is it truncated?")
        self.index += 1
        return token

    def rest(self) -> list[Token]:
        """Return all following words and advance to the end."""
        following = self.tokens[self.index :]
        self.index = len(self.tokens)
        return following

    def take_integer(self, expected: str) -> tuple[int, int]:
        """Return the next word as an integer, and its line."""
        token = self.take(expected)
        if token.quoted or not re.fullmatch("-?[0-9]{1,30}", token.text):
            raise self.source.error(token.line, f"expected {expected}; got {printable(token.text)!r}")
        return int(token.text), token.line


# ---------------------------------------------------------------------- parts of the file


def read_head(tokens: Tokens) -> tuple[int, int, set[int]]:
    """Return the numbers of candidates and seats, and the indices of the candidates who withdrew."""
    n_items, line = tokens.take_integer("the number of candidates")
    if not 1 <= n_items <= MAX_BYTES:
        raise tokens.source.error(line, f"{n_items} is not a number of candidates")
    seats, line = tokens.take_integer("the number of seats")
    if seats < 0:
        raise tokens.source.error(line, f"{seats} is not a number of seats")
    withdrawn: set[int] = set()
    while (token := tokens.peek()) and not token.quoted and re.fullmatch("-[0-9]{1,9}", token.text):
        number, line = tokens.take_integer("a candidate who withdrew")
        if not 1 <= -number <= n_items:
            problem = f"withdrawn candidate {-number} is unknown; candidates are numbered from 1 to {n_items}"
            raise tokens.source.error(line, problem)
        withdrawn.add(-number - 1)
    return n_items, seats, withdrawn


def read_body(tokens: Tokens, n_items: int) -> tuple[list[Ballot], int, tuple[tuple[str, ...], str]]:
    """Return the ballots, the number of skipped positions, and names and title.

    Each ballot ends with a 0 or, in files without these, with its line.
    """
    start = tokens.index
    failures: list[tuple[int, RankingError]] = []
    for by_line in (False, True):
        tokens.index = start
        try:
            return *read_ballot_lines(tokens, by_line), read_names(tokens, n_items)
        except RankingError as error:
            failures.append((tokens.index, error))
    raise max(failures, key=lambda each: each[0])[1]


def read_ballot_lines(tokens: Tokens, by_line: bool) -> tuple[list[Ballot], int]:
    """Return the ballots, and the number of skipped positions that a marked one follows."""
    ballots: list[Ballot] = []
    n_skipped = 0
    while True:
        count, line = tokens.take_integer("a ballot, or the 0 after the last one")
        if count == 0:
            return ballots, n_skipped
        if count < 0 or count > MAX_VOTERS:
            raise tokens.source.error(line, f"{count} is not a number of voters")
        order = read_order(tokens, line if by_line else None)
        while order and not order[-1]:
            order.pop()
        n_skipped += order.count([])
        ballots.append((line, count, [bucket for bucket in order if bucket]))


def read_order(tokens: Tokens, line: int | None) -> list[list[int]]:
    """Return the buckets of one ballot, which ends with a 0 or, if its line is given, with that line."""
    order: list[list[int]] = []
    while True:
        following = tokens.peek()
        if line is not None and following is not None and following.line != line:
            return order
        token = tokens.take("the 0 at the end of a ballot")
        if token.quoted or not PREFERENCE.fullmatch(token.text):
            problem = f"{printable(token.text)!r} is not a candidate; a ballot has the form {EXAMPLE}"
            raise tokens.source.error(token.line, problem)
        if token.text == "0":
            return order
        order.append([] if token.text == "-" else [int(number) for number in token.text.split("=")])


def read_names(tokens: Tokens, n_items: int) -> tuple[tuple[str, ...], str]:
    """Return the names of the candidates and the title, which is optional.

    Names without quotation marks, or followed by a party, stand one per line.
    """
    names = tokens.rest()
    by_line = {name.line: name for name in reversed(names)}  # the first of each line
    if len(names) > n_items + 1 and n_items <= len(by_line) <= n_items + 1:
        text = tokens.source.text.split("\n")
        names = [name if name.quoted else Token(text[line - 1].strip(), line, True) for line, name in by_line.items()]
        names.reverse()
    if len(names) < n_items:
        problem = f"the file ends before the name of candidate {len(names) + 1}; is it truncated?"
        raise tokens.source.error(tokens.last_line, problem)
    title = names[n_items:]
    if len(title) > 1 and not all(token.quoted for token in title):
        shown = printable(title[0].text)
        problem = f"{shown!r} and more follow the names of {n_items} candidates; quote names and title"
        raise tokens.source.error(title[0].line, problem)
    items = tokens.source.item_names((name.text for name in names[:n_items]), tokens.last_line)
    return items, title[0].text if title else ""


# ---------------------------------------------------------------------- writing


def write_blt(
    rankings: Rankings, path: AnyPath, *, seats: int = 1, title: str = "rankings", overwrite: bool = False
) -> None:
    """Write rankings as a BLT file, gzipped if the name ends in ``.gz``.

    If no ranking has free items, a last bucket of several items is the end of a ballot and is not written: the rankings
    are read back by ``read_blt(path)``. Others are read back by ``read_blt(path, unlisted="free")``.

    Parameters
    ----------
    rankings : Rankings
        Rankings to write.
    path : path
        The file. It is written atomically.
    seats : int
        Number of seats.
    title : str
        Title of the election.
    overwrite : bool
        Whether an existing file is replaced.

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
    check_integer("seats", seats)
    for name, argument in [*((name, "items") for name in rankings.items), (title, "title")]:
        check_writable_name(name, argument)
    lines = [f"{rankings.n_items} {seats}"]
    for buckets, count in zip(listed_buckets(rankings, "a BLT file"), rankings.counts.tolist(), strict=True):
        numbers = ["=".join(str(item + 1) for item in bucket) for bucket in buckets]
        lines.append(f"{count} {' '.join(numbers)} 0")
    quoted = [f'"{quote(name)}"' for name in (*rankings.items, title)]
    write_text(path, "\n".join([*lines, "0", *quoted, ""]), overwrite)


def quote(name: str) -> str:
    """Return a name with escaped quotation marks."""
    return name.replace("\\", "\\\\").replace('"', '\\"')


def listed_buckets(rankings: Rankings, target: str) -> list[list[list[int]]]:
    """Return the buckets of item indices that each ranking lists, best first.

    If no ranking has free items, a last bucket of several items is omitted: it is read back with ``unlisted="last"``.
    Otherwise all listed items are included, to be read back with ``unlisted="free"``. A ranking that lists no item is
    an error.
    """
    exhaustive = rankings.is_exhaustive()
    empty = (rankings.n_buckets < 2) & (rankings.n_items > 1) if exhaustive else rankings.n_buckets == 0
    if empty.any():
        row = int(np.argmax(empty))
        raise RankingError(f"row {row} of rankings lists no item, which {target} cannot represent; remove it first")
    index = {name: number for number, name in enumerate(rankings.items)}
    found = []
    for order in rankings.to_orders():
        buckets = [sorted(index[name] for name in ([b] if isinstance(b, str) else b)) for b in order]
        found.append(buckets[:-1] if exhaustive and len(buckets[-1]) > 1 else buckets)
    return found

"""BLT files, the format of OpaVote, OpenSTV, the Electoral Reform Society and many councils."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from rankernel._utils.checks import check_integer
from rankernel.errors import RankingError
from rankernel.io.ballots import Orders, rankings_of
from rankernel.io.source import (
    MAX_BYTES,
    AnyPath,
    FileSource,
    Repairs,
    SourceFile,
    accepts,
    check_writable_name,
    quoted,
    write_text,
)
from rankernel.rankings import FREE, MAX_VOTERS, Rankings, as_rankings, check_items, dense_ranks

TOKEN = re.compile(
    r"""[^\S\n]+|,|(?:\#|//)[^\n]*|/\*.*?\*/                  # spaces, commas, comments
      | (?P<end>\n)
      | \[(?P<option>[^\]]*)\]                               # options of droop, such as [withdrawn 4]
      | (?P<word>"[^\n]*|\([^()\n]*\)|[^\s\#()\[,]+|.)""",
    re.VERBOSE | re.DOTALL,
)
QUOTED = re.compile(r'"((?:[^"\\]|\\.|"")*)"')  # a quotation mark inside is doubled or escaped
COMMENT = re.compile(rf"^((?:{QUOTED.pattern}|[^\"])*?)\s(?:#|//)\s.*$")  # after a name, not within quotation marks
SEVERAL = re.compile(rf"(?:{QUOTED.pattern}[\s,]*)+")
BALLOT = re.compile(r"[0-9]+(?:\s+[0-9=-]+)*\s+0")
INTEGER = re.compile("-?[0-9]{1,30}")
EXAMPLE = "'3 2 4 1=5 0' (3 voters: 2, then 4, then 1 and 5 tied)"
FREE_NOTE = "# unlisted items are free"  # after the title, to be read back

Ballot = tuple[int, int, list[list[int]]]  # line, count and buckets


class Token(NamedTuple):
    """A word of the file: its text, its line, and the index of the text after it."""

    text: str
    line: int
    end: int


@accepts("unlisted", "withdrawn", "blank", "encoding", "max_bytes")
def read_blt(path: Any, **keywords: Any) -> Rankings:
    r"""Read a BLT file, plain or gzipped.

    The file gives the numbers of candidates and seats; candidates who withdrew, as negative numbers; ballots such as
    ``3 2 4 1=5 0`` (3 voters put 2 first, then 4, then 1 and 5 tied); a 0; the names of the candidates; and a title.
    Line breaks are optional, ``#``, ``//`` and ``/* */`` mark comments, and ``-`` is a skipped position. Names may be
    unquoted or followed by a party if each has its own line. The options ``[withdrawn ...]`` and ``[nick ...]`` of
    droop are used, other options are ignored.

    Parameters
    ----------
    path : path or file object
        The file.
    {options}

    Returns
    -------
    Rankings
        One row for each ballot line, with its count; ``source`` has title, seats and withdrawn candidates.

    Examples
    --------
    >>> from io import StringIO
    >>> read_blt(StringIO('3 1  -3\n2 1 2=3 0\n1 2 0\n0 "Ann" "Bob" "Cy" "Ward 4"'))
    Rankings: 2 rankings from 3 voters of 3 items (2 top-k)
      2 × Ann > {Bob, Cy}
      1 × Bob > {Ann, Cy}
      read as BLT; title 'Ward 4'; 1 seat; withdrawn: Cy
    """
    source = SourceFile.of(path, read_blt, keywords)
    tokens = Tokens(re.sub("\r\n?", "\n", source.text), source)
    n_items, line = tokens.take_integer("the number of candidates")
    if not 1 <= n_items <= MAX_BYTES:
        raise source.error(line, f"{n_items} is not a number of candidates")
    seats, line = tokens.take_integer("the number of seats")
    if seats < 0:
        raise source.error(line, f"{seats} is not a number of seats")
    withdrawn = read_withdrawn(tokens, n_items)
    ballots, n_skipped, (items, title) = read_body(tokens, n_items)
    orders = Orders.of(ballots)
    ranks = orders.ranks(n_items, source, "candidate")
    names, repairs = tuple(items[number] for number in sorted(withdrawn)), Repairs(n_skipped)
    about = FileSource("BLT", title, seats, names, repairs=repairs)
    if source.options.withdrawn == "drop" and withdrawn:
        remaining = [number for number in range(n_items) if number not in withdrawn]
        if not remaining:
            raise source.error(None, "all candidates withdrew")
        ranks, items = ranks[:, remaining], tuple(items[number] for number in remaining)
        ranks = dense_ranks(ranks, ranks != FREE, "free")
    if source.options.unlisted is None and source.text.rstrip().endswith(FREE_NOTE):
        source = source.with_options(unlisted="free")
    return rankings_of(source, ranks, items, about, orders.counts)


class Tokens:
    """The words of a file in their order, without comments, and its options."""

    def __init__(self, text: str, source: SourceFile) -> None:
        self.source, self.text, self.index, line = source, text, 0, 1
        self.tokens: list[Token] = []
        self.options: dict[str, list[str]] = {}
        for match in TOKEN.finditer(text):
            if match["word"]:
                self.tokens.append(Token(match["word"], line, match.end()))
            elif match["option"] is not None:
                key, *values = match["option"].split() or [""]
                self.options.setdefault(key, values)
            line += match[0].count("\n")
        self.nicks = {name: number for number, name in enumerate(self.options.get("nick", ()), start=1)}

    def peek(self) -> Token | None:
        """Return the next word, None at the end."""
        return self.tokens[self.index] if self.index < len(self.tokens) else None

    def take(self, expected: str) -> Token:
        """Return the next word and advance."""
        token = self.peek()
        if token is None:
            line = self.tokens[-1].line if self.tokens else 1
            raise self.source.error(line, f"the file ends before {expected}; is it truncated?")
        self.index += 1
        return token

    def take_integer(self, expected: str) -> tuple[int, int]:
        """Return the next word as an integer, and its line."""
        token = self.take(expected)
        if not INTEGER.fullmatch(token.text):
            raise self.source.error(token.line, f"expected {expected}; got {quoted(token.text)}")
        return int(token.text), token.line

    def candidate(self, text: str) -> int | None:
        """Return the number of a candidate, who may be named by a nickname; None for other words."""
        return int(text) if re.fullmatch("[0-9]{1,9}", text) else self.nicks.get(text)


def read_withdrawn(tokens: Tokens, n_items: int) -> set[int]:
    """Return the indices of the candidates who withdrew."""
    line = tokens.tokens[0].line
    numbers = [tokens.candidate(text) for text in tokens.options.get("withdrawn", ())]
    while (token := tokens.peek()) and re.fullmatch("-[0-9]{1,9}", token.text):
        negative, line = tokens.take_integer("a candidate who withdrew")
        numbers.append(-negative)
    for number in numbers:
        if number is None or not 1 <= number <= n_items:
            problem = f"withdrawn candidate {number} is unknown; candidates are numbered from 1 to {n_items}"
            raise tokens.source.error(line, problem)
    return {number - 1 for number in numbers if number is not None}


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
        token = tokens.peek()
        tokens.index += token is not None and token.text.startswith("(")  # the identifier of a ballot (OpenSTV)
        count, line = tokens.take_integer("a ballot, or the 0 after the last one")
        if count == 0:
            return ballots, n_skipped
        if count < 0 or count > MAX_VOTERS:
            raise tokens.source.error(line, f"{count} is not a number of voters")
        order: list[list[int]] = []
        while not (by_line and (following := tokens.peek()) is not None and following.line != line):
            token = tokens.take("the 0 at the end of a ballot")
            if token.text == "0":
                break
            tied = token.text[1:-1].split() if token.text.startswith("(") else token.text.split("=")
            bucket = [] if token.text == "-" else [tokens.candidate(part) for part in tied]
            if None in bucket:
                problem = f"{quoted(token.text)} is not a candidate; a ballot has the form {EXAMPLE}"
                raise tokens.source.error(token.line, problem)
            order.append([number for number in bucket if number is not None])
        while order and not order[-1]:
            order.pop()
        n_skipped += order.count([])
        ballots.append((line, count, [bucket for bucket in order if bucket]))


def read_names(tokens: Tokens, n_items: int) -> tuple[tuple[str, ...], str]:
    """Return the names of the candidates and the title, which is optional; more text may follow.

    With one line per name, names may be unquoted or followed by a party; otherwise they are quoted, or single words.
    """
    last = tokens.tokens[tokens.index - 1]
    lines = [
        (number, COMMENT.sub(r"\1", re.sub(r"^# *ALTERNATIVE NAME [0-9]+:", "", line)).rstrip(" ,").strip())
        for number, line in enumerate(tokens.text[last.end :].split("\n"), start=last.line)
        if line.strip(" ,") and not re.match(r"\s*(?:#(?! *ALTERNATIVE NAME)|//)", line)
    ]
    for number, line in lines[:n_items]:
        if re.sub(r"\\.", "", line).count('"') % 2:
            raise tokens.source.error(number, f"{quoted(line)} cannot be read; is a quotation mark missing?")
        if BALLOT.fullmatch(line):
            raise tokens.source.error(number, f"the ballot {quoted(line)} follows a 0, which ends the ballots")
    texts = [line for _, line in lines]
    n_quoted = [len(QUOTED.findall(line)) if SEVERAL.fullmatch(line) else 1 for line in texts[:n_items]]
    # Lines of one name each, some or all with a party; n names on the first line are not a name and a party.
    by_line = n_items <= len(texts) <= n_items + 1 and n_quoted[0] != n_items
    if by_line or (len(texts) >= n_items and len(set(n_quoted)) == 1):
        names = [line_name(line) for line in texts]
        if len(set(names[:n_items])) < n_items:  # of the same name, with different parties
            names = [
                line_name(line, None) if names.count(name) > 1 else name
                for name, line in zip(names, texts, strict=True)
            ]
    else:
        names = inline_names("\n".join(texts), n_items)
    if len(names) < n_items:
        found = f"{quoted(texts[-1])} does not name all" if texts else "the file ends before the names of all"
        problem = f"{found} {n_items} candidates; write each name on a line, or in quotation marks"
        raise tokens.source.error(lines[-1][0] if lines else last.line, problem)
    with tokens.source.named_in_errors(lines[-1][0]):
        return check_items(names[:n_items]), names[n_items] if len(names) > n_items else ""


def inline_names(text: str, n_items: int) -> list[str]:
    """Return names on common lines: quoted, with unquoted text only after the last one, or single words."""
    found = list(QUOTED.finditer(text))
    if not found:
        words = text.split()
        return words if len(words) <= n_items + 1 else []
    gaps = [text[one.end() : other.start()] for one, other in pairwise(found[:n_items])]
    return [unescaped(match[1]) for match in found] if not "".join([text[: found[0].start()], *gaps]).strip() else []


def line_name(line: str, n_parts: int | None = 1) -> str:
    """Return the name in a line: its first quoted strings, the line within quotation marks, or the line."""
    if SEVERAL.fullmatch(line):
        return " ".join(map(unescaped, QUOTED.findall(line)[:n_parts]))
    return line[1:-1].strip() if re.fullmatch('".*"', line) else line


def unescaped(text: str) -> str:
    """Return a quoted text without escapes and surrounding spaces."""
    return re.sub(r'\\(.)|""', lambda match: match[1] or '"', text).strip()


# ---------------------------------------------------------------------- writing


def write_blt(
    rankings: Rankings, path: AnyPath, *, seats: int = 1, title: str = "rankings", overwrite: bool = False
) -> None:
    """Write rankings as a BLT file, gzipped if the name ends in ``.gz``.

    If no ranking has free items, a last bucket of several items is the end of a ballot and is not written. Otherwise a
    comment after the title states that unlisted items are free. The rankings are read back by ``read_blt(path)``.

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
    escaped = [name.replace("\\", "\\\\").replace('"', '\\"') for name in (*rankings.items, title)]
    names = [f'"{name}"' for name in escaped]
    note = [] if rankings.is_exhaustive() else [FREE_NOTE]
    write_text(path, "\n".join([*lines, "0", *names, *note, ""]), overwrite)


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
    return numbered_buckets(rankings, truncated=exhaustive)


def numbered_buckets(rankings: Rankings, truncated: bool) -> list[list[list[int]]]:
    """Return the buckets of item indices of each ranking, truncated without a last bucket of several items."""
    index = {name: number for number, name in enumerate(rankings.items)}
    found = []
    for order in rankings.to_orders():
        buckets = [sorted(index[name] for name in ([b] if isinstance(b, str) else b)) for b in order]
        found.append(buckets[:-1] if truncated and len(buckets[-1]) > 1 else buckets)
    return found

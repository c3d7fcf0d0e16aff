"""Orders of numbered items, and the vectorised parsing of lines such as ``13: 1,{4,3},2``, the body of a PrefLib file.

A file may hold a million short lines, so Python loops over them only to report an error. The transitions between
characters, the braces and the colons decide whether every line is an order; the numbers are then summed from their
digits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import IntArray, RankArray
from rankernel._utils.checks import printable
from rankernel.errors import RankingError
from rankernel.io.text_files import SourceFile
from rankernel.rankings import FREE

DIGIT, COLON, COMMA, OPEN, CLOSE, END = range(6)
SIGNS = b"0123456789:,{}\n"
SPACES = b" \t\r"
FOLLOWERS = {
    DIGIT: (DIGIT, COLON, COMMA, CLOSE, END),
    COLON: (DIGIT, OPEN),
    COMMA: (DIGIT, OPEN),
    OPEN: (DIGIT, CLOSE),
    CLOSE: (COMMA, END),
    END: (DIGIT, END),
}
MAY_FOLLOW = np.array([sign in FOLLOWERS[before] for before in range(6) for sign in range(6)])
MAX_DIGITS = 18  # fit into 64 bits
POWERS = 10 ** np.arange(MAX_DIGITS, dtype=np.int64)
SPLIT_NUMBER = re.compile(rb"[ \t\r](?<=[0-9].)[ \t\r]*[0-9]")  # a number with a space inside
EXAMPLE = "'13: 1,{4,3},2'"


@dataclass(frozen=True)
class Orders:
    """Orders as flat arrays.

    Attributes
    ----------
    rows, items, buckets : arrays
        Row, number of the item (from 1) and bucket of each entry.
    counts, n_buckets, lines : arrays
        Count, number of buckets and line of each row.
    """

    rows: IntArray
    items: IntArray
    buckets: IntArray
    counts: IntArray
    n_buckets: IntArray
    lines: IntArray

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

    @property
    def n_listed(self) -> IntArray:
        """Number of items that each row lists."""
        return np.bincount(self.rows, minlength=len(self.lines))

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


def read_orders(body: str, first_line: int, source: SourceFile) -> Orders:
    """Return the orders of a text that begins on a given line of a file; empty lines are ignored."""
    raw = body.encode("utf-8", "replace")
    if raw.translate(None, SIGNS + SPACES) or SPLIT_NUMBER.search(raw):
        raise order_error(body, first_line, source)
    codes = np.frombuffer(b"\n" + raw.translate(None, SPACES) + b"\n", dtype=np.uint8)
    signs = sign_classes()[codes]
    depth = np.cumsum((signs == OPEN).astype(np.int8) - (signs == CLOSE), dtype=np.int32)
    if not is_well_formed(signs, depth):
        raise order_error(body, first_line, source)
    return parsed_orders(codes, signs, depth, first_line)


def sign_classes() -> NDArray[np.uint8]:
    """Return the class of each byte: a digit or one of five other characters."""
    table = np.full(256, DIGIT, dtype=np.uint8)
    for byte, sign in zip(b":,{}\n", (COLON, COMMA, OPEN, CLOSE, END), strict=True):
        table[byte] = sign
    return table


def is_well_formed(signs: NDArray[np.uint8], depth: NDArray[np.int32]) -> bool:
    """Whether every line that is not empty is a count, a colon and an order, with numbers of at most 18 digits."""
    if not MAY_FOLLOW[6 * signs[:-1] + signs[1:]].all() or depth.min() < 0 or depth.max() > 1:
        return False
    if depth[(signs == END) | (signs == COLON)].any():
        return False
    others = np.flatnonzero(signs != DIGIT)
    if np.diff(others).max(initial=0) > MAX_DIGITS + 1:
        return False
    # Without digits, a line is empty or has one colon, its first character.
    bare = signs[others]
    begins_line = bare[:-1] == END
    has_digits = np.diff(others) > 1
    colons = bare[1:] == COLON
    return bool((colons == (begins_line & ((bare[1:] != END) | has_digits))).all())


def parsed_orders(
    codes: NDArray[np.uint8], signs: NDArray[np.uint8], depth: NDArray[np.int32], first_line: int
) -> Orders:
    """Return the orders of well-formed lines."""
    digits = np.flatnonzero(signs == DIGIT)
    starts = np.flatnonzero(np.diff(digits, prepend=-1) > 1)
    ends = np.append(digits[starts[1:] - 1], digits[-1:]) + 1  # index after each number
    lengths = np.diff(np.append(starts, len(digits)))
    power = np.repeat(ends, lengths) - 1 - digits
    parts = (codes[digits].astype(np.int64) - ord("0")) * POWERS[power]
    values = np.add.reduceat(parts, starts) if len(starts) else np.empty(0, dtype=np.int64)
    is_count = signs[ends] == COLON
    colons = ends[is_count]
    line = np.cumsum(signs == END, dtype=np.int32)
    bucket = np.cumsum((signs == COMMA) & (depth == 0), dtype=np.int32)
    row = np.cumsum(is_count) - 1
    listed = ~is_count
    last = np.append(colons[1:], len(signs) - 1)  # there is no comma between the end of a line and the next colon
    return Orders(
        rows=row[listed],
        items=values[listed],
        buckets=(bucket[ends - 1] - bucket[colons][row])[listed],
        counts=values[is_count],
        n_buckets=bucket[last] - bucket[colons] + 1,
        lines=line[colons] + first_line - 1,
    )


def order_error(body: str, first_line: int, source: SourceFile) -> RankingError:
    """Return the error for the first line that is not an order."""
    for number, text in enumerate(body.split("\n"), start=first_line):
        problem = line_problem(text.strip(" \t\r"))
        if problem:
            return source.error(number, problem)
    return source.error(None, f"the lines after the header are not all orders such as {EXAMPLE}")


def line_problem(text: str) -> str | None:
    """Return the problem of a line that is not an order, None for an order."""
    count, colon, order = (part.strip(" \t\r") for part in text.partition(":"))
    if not text:
        return None
    if text.startswith("#"):
        return "a header line follows the first order; the header must come first"
    if not colon or not re.fullmatch("[0-9]+", count):
        return f"expected a count and an order, such as {EXAMPLE}; got {printable(text[:60])!r}"
    if not order:
        return "the order lists no alternative"
    if max(map(len, re.findall("[0-9]+", text))) > MAX_DIGITS:
        return f"a number has more than {MAX_DIGITS} digits"
    if order.count("{") != order.count("}"):
        return f"the order {printable(order[:60])!r} has unbalanced braces"
    bucket = r"[ \t\r]*(?:[0-9]+|\{[ \t\r]*(?:[0-9]+[ \t\r]*(?:,[ \t\r]*[0-9]+[ \t\r]*)*)?\})[ \t\r]*"
    if not re.fullmatch(f"{bucket}(?:,{bucket})*", order):
        return f"the order {printable(order[:60])!r} is not a comma-separated list of numbers and of ties in braces"
    return None

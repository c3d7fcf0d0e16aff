"""Lines such as ``13: 1,{4,3},2`` taken apart, all at once: the body of a PrefLib file as arrays.

A file may hold a million short lines, so nothing here loops over them in Python unless one is wrong. The signs that
can stand side by side, the braces and the colons decide whether every line is an order; the numbers are then summed
up from their digits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import IntArray
from rankernel._utils.checks import printable
from rankernel.io.files import AnyPath, fail

DIGIT, COLON, COMMA, OPEN, CLOSE, END = range(6)
SIGNS = b"0123456789:,{}\n"
BLANKS = b" \t\r"
FOLLOWERS = {
    DIGIT: (DIGIT, COLON, COMMA, CLOSE, END),
    COLON: (DIGIT, OPEN),
    COMMA: (DIGIT, OPEN),
    OPEN: (DIGIT, CLOSE),
    CLOSE: (COMMA, END),
    END: (DIGIT, END),
}
MAY_FOLLOW = np.array([sign in FOLLOWERS[before] for before in range(6) for sign in range(6)])
LONGEST_NUMBER = 18  # digits that surely fit into 64 bits
POWERS = 10 ** np.arange(LONGEST_NUMBER, dtype=np.int64)
TORN = re.compile(rb"[ \t\r](?<=[0-9].)[ \t\r]*[0-9]")  # a number with a blank inside; begins with what is rare
EXAMPLE = "'13: 1,{4,3},2'"


@dataclass(frozen=True)
class Orders:
    """Orders, flat: row, alternative (from 1) and place of each entry; count, number of places and line of each row."""

    rows: IntArray
    alternatives: IntArray
    places: IntArray
    counts: IntArray
    widths: IntArray
    lines: IntArray

    @property
    def lengths(self) -> IntArray:
        """Number of alternatives that each row lists."""
        return np.bincount(self.rows, minlength=len(self.lines))


def read_orders(body: str, first_line: int, path: AnyPath) -> Orders:
    """Return the orders of a text that begins on a given line of a file; lines with nothing on them are passed over."""
    raw = body.encode("utf-8", "replace")
    if raw.translate(None, SIGNS + BLANKS) or TORN.search(raw):
        raise complaint(body, first_line, path)
    codes = np.frombuffer(b"\n" + raw.translate(None, BLANKS) + b"\n", dtype=np.uint8)
    signs = classes()[codes]
    depth = np.cumsum((signs == OPEN).astype(np.int8) - (signs == CLOSE), dtype=np.int32)
    if not well_formed(signs, depth):
        raise complaint(body, first_line, path)
    return taken_apart(codes, signs, depth, first_line)


def classes() -> NDArray[np.uint8]:
    """Return the class of each byte: a digit or one of the five other signs."""
    table = np.full(256, DIGIT, dtype=np.uint8)
    for byte, sign in zip(b":,{}\n", (COLON, COMMA, OPEN, CLOSE, END), strict=True):
        table[byte] = sign
    return table


def well_formed(signs: NDArray[np.uint8], depth: NDArray[np.int32]) -> bool:
    """Say whether every line that is not empty is a count, a colon and an order, with numbers of a sane length."""
    if not MAY_FOLLOW[6 * signs[:-1] + signs[1:]].all() or depth.min() < 0 or depth.max() > 1:
        return False
    if depth[(signs == END) | (signs == COLON)].any():
        return False
    others = np.flatnonzero(signs != DIGIT)
    if np.diff(others).max(initial=0) > LONGEST_NUMBER + 1:
        return False
    # Without their digits, lines are empty or have one colon, the first of their signs.
    bare = signs[others]
    begins_line = bare[:-1] == END
    has_digits = np.diff(others) > 1
    colons = bare[1:] == COLON
    return bool((colons == (begins_line & ((bare[1:] != END) | has_digits))).all())


def taken_apart(
    codes: NDArray[np.uint8], signs: NDArray[np.uint8], depth: NDArray[np.int32], first_line: int
) -> Orders:
    """Return the orders of well-formed lines."""
    digits = np.flatnonzero(signs == DIGIT)
    starts = np.flatnonzero(np.diff(digits, prepend=-1) > 1)
    ends = np.append(digits[starts[1:] - 1], digits[-1:]) + 1  # where the sign behind each number is
    lengths = np.diff(np.append(starts, len(digits)))
    power = np.repeat(ends, lengths) - 1 - digits
    parts = (codes[digits].astype(np.int64) - ord("0")) * POWERS[power]
    values = np.add.reduceat(parts, starts) if len(starts) else np.empty(0, dtype=np.int64)
    is_count = signs[ends] == COLON
    colons = ends[is_count]
    line = np.cumsum(signs == END, dtype=np.int32)
    place = np.cumsum((signs == COMMA) & (depth == 0), dtype=np.int32)
    row = np.cumsum(is_count) - 1
    listed = ~is_count
    last = np.append(colons[1:], len(signs) - 1)  # no comma stands between the end of a line and the next colon
    return Orders(
        rows=row[listed],
        alternatives=values[listed],
        places=(place[ends - 1] - place[colons][row])[listed],
        counts=values[is_count],
        widths=place[last] - place[colons] + 1,
        lines=line[colons] + first_line - 1,
    )


def complaint(body: str, first_line: int, path: AnyPath) -> Exception:
    """Return the error for the first line that is no order."""
    for number, text in enumerate(body.split("\n"), start=first_line):
        problem = problem_of(text.strip(" \t\r"))
        if problem:
            return fail(path, number, problem)
    return fail(path, None, f"the lines behind the header are not all orders such as {EXAMPLE}")


def problem_of(text: str) -> str | None:
    """Say what is wrong with a line, if anything is."""
    count, colon, order = (part.strip(" \t\r") for part in text.partition(":"))
    if not text:
        return None
    if text.startswith("#"):
        return "a header line stands behind the first order; all of them come before"
    if not colon or not re.fullmatch("[0-9]+", count):
        return f"expected a count and an order, such as {EXAMPLE}; got {printable(text[:60])!r}"
    if not order:
        return "the order lists no alternative"
    if max(map(len, re.findall("[0-9]+", text))) > LONGEST_NUMBER:
        return f"a number of more than {LONGEST_NUMBER} digits is none that a PrefLib file has"
    if order.count("{") != order.count("}"):
        return f"the order {printable(order[:60])!r} opens a brace that it does not close, or the reverse"
    bucket = r"[ \t\r]*(?:[0-9]+|\{[ \t\r]*(?:[0-9]+[ \t\r]*(?:,[ \t\r]*[0-9]+[ \t\r]*)*)?\})[ \t\r]*"
    if not re.fullmatch(f"{bucket}(?:,{bucket})*", order):
        return f"the order {printable(order[:60])!r} is not a list of numbers, and of ties in braces, between commas"
    return None

"""PrefLib files: orders (soc, soi, toc, toi) and categories (cat), plain or gzipped."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from rankernel._utils import Mask, RankArray
from rankernel._utils.checks import check_choice, check_path, printable
from rankernel.errors import RankingError, ReadingWarning, warn
from rankernel.io.ballots import Orders
from rankernel.io.blt import numbered_buckets
from rankernel.io.source import AnyPath, FileSource, SourceFile, accepts, check_writable_name, quoted, write_text
from rankernel.rankings import FREE, Rankings, as_rankings, check_items, check_total_count, dense_ranks, unique_rows

Kind = Literal["soc", "soi", "toc", "toi", "cat"]
KINDS: tuple[Kind, ...] = get_args(Kind)
COMPLETE = ("soc", "toc")
STRICT = ("soc", "soi")
FREE_NOTE = "unlisted alternatives are free"  # in the description, to be read back
HEADER_LINES = re.compile(r"(?:[^\S\n]*(?:#[^\n]*)?(?:\n|\Z))*")
OLD_FORMAT = re.compile(r"\s*([0-9]{1,9})\s*\n((?:[0-9]+\s*,[^\n]*\n)+?)([0-9]+)\s*,\s*([0-9]+)\s*,\s*([0-9]+)\s*\n")


@accepts("unlisted", "encoding", "max_bytes")
def read_preflib(path: AnyPath, **keywords: Any) -> Rankings:
    """Read a PrefLib file: soc, soi, toc, toi or cat, plain or gzipped.

    A line ``13: 1,{4,3},2`` states that 13 voters put alternative 1 first, then 4 and 3 tied, then 2. In a cat file
    each category is a bucket, in the order of the file; empty categories are ignored. The kind is stated in the header
    as ``DATA TYPE``, or else by the suffix of the file.

    Parameters
    ----------
    path : path
        The file.
    {options}

    Returns
    -------
    Rankings
        One row for each line of the file, with its multiplicity, over the named alternatives.

    Raises
    ------
    RankingError
        If the file is damaged or inconsistent: the numbers of alternatives, voters and unique orders in the header must
        be those of the file, and each line must be of the stated kind.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> ballots = Rankings.from_orders([["tea", "milk"], ["milk"]], ["milk", "tea", "coffee"], counts=[5, 2])
    >>> with TemporaryDirectory() as folder:
    ...     write_preflib(ballots, f"{folder}/drinks.soi")
    ...     read_preflib(f"{folder}/drinks.soi")
    ...     read_preflib(f"{folder}/drinks.soi", unlisted="free")[1]
    Rankings: 2 rankings from 7 voters of 3 items (1 full, 1 top-k)
      5 × tea > milk > coffee
      2 × milk > {tea, coffee}
      read as PrefLib soi; title 'rankings'
    Rankings: 1 ranking from 2 voters of 3 items (1 incomplete)
      2 × milk, free: {tea, coffee}
    """
    source = SourceFile.of(path, read_preflib, keywords)
    text, options = source.text, source.options
    header, n_lines, end = read_header(text, source)
    if not header:
        header, n_lines, text, end = old_format(text, source)
    kind = stated_kind(header, source)
    first = 0 if "ALTERNATIVE NAME 0" in header else 1
    items = alternatives(header, source, first)
    orders = read_orders(text[end:], n_lines + 1, source)
    rows_key = "NUMBER UNIQUE PREFERENCES" if kind == "cat" else "NUMBER UNIQUE ORDERS"
    for key, found in ((rows_key, len(orders.counts)), ("NUMBER VOTERS", sum(orders.counts.tolist()))):
        stated = header_number(header, key, source)
        if stated != found:
            raise source.error(header[key][1], f"{key} is {stated} but the file has {found}; is it truncated?")
    with source.named_in_errors():
        check_total_count(orders.counts)
    if first == 0:
        warn(f"{source.name}: its alternatives are numbered from 0", ReadingWarning)
        orders = replace(orders, items=orders.items + 1)
    ranks = orders.ranks(len(items), source, "alternative")
    empty = orders.counts < 1
    check_kind(ranks, orders, kind, header, source)
    unlisted = options.unlisted or ("free" if FREE_NOTE in header.get("DESCRIPTION", ("", 0))[0] else "last")
    n_all_in_first = None
    if kind == "cat":
        n_all_in_first = int(orders.counts[(ranks == 0).all(axis=1)].sum())
        ranks = dense_ranks(ranks, ranks != FREE, unlisted)
    elif unlisted == "last":
        np.copyto(ranks, orders.n_buckets[:, None].astype(np.int32), where=ranks == FREE)
    if empty.any():
        number = int(np.count_nonzero(empty))
        warn(f"{source.name}: {number:,} order{'s' * (number > 1)} with a count of zero dropped", ReadingWarning)
        ranks = ranks[~empty]
    about = FileSource(f"PrefLib {kind}", header.get("TITLE", ("", 0))[0], n_all_in_first=n_all_in_first)
    return Rankings._trusted(ranks, items, orders.counts[~empty], source=about)


# ---------------------------------------------------------------------- the header

Header = dict[str, tuple[str, int]]


def read_header(text: str, source: SourceFile) -> tuple[Header, int, int]:
    """Return the header as key -> (value, line number), its number of lines, and the index of the text after it."""
    header: Header = {}
    lines = HEADER_LINES.match(text)[0]  # type: ignore[index]
    for number, line in enumerate(lines.split("\n"), start=1):
        key, colon, value = (part.strip() for part in line.strip()[1:].partition(":"))
        if colon and key in header:
            raise source.error(number, f"'{printable(key)}' is also in line {header[key][1]}")
        if colon:
            header[key] = (value, number)
    return header, lines.count("\n"), len(lines)


def old_format(text: str, source: SourceFile) -> tuple[Header, int, str, int]:
    """Return header, its number of lines, orders as text and 0, of a file from before September 2022.

    Such a file has the number of alternatives, their numbers and names, the numbers of voters and of different orders,
    and lines such as ``13,1,{4,3},2``.
    """
    match = OLD_FORMAT.match(text.replace("\r\n", "\n"))
    n_named = match[2].count("\n") if match else 0
    if match is None or n_named != int(match[1]):
        problem = "the file has no PrefLib header (lines such as '# NUMBER ALTERNATIVES: 12'), nor that of older files"
        raise source.error(1, problem)
    header: Header = {"NUMBER ALTERNATIVES": (match[1], 1)}
    for number, line in enumerate(match[2].splitlines(), start=2):
        key, _, name = line.partition(",")
        header[f"ALTERNATIVE NAME {int(key)}"] = (name.strip(), number)
    header["NUMBER VOTERS"] = (match[4], n_named + 2)
    for key in ("NUMBER UNIQUE ORDERS", "NUMBER UNIQUE PREFERENCES"):
        header[key] = (match[5], n_named + 2)
    body = text.replace("\r\n", "\n")[match.end() :]
    return header, n_named + 2, re.sub(r"^([^\S\n]*[0-9]+)[^\S\n]*,", r"\1: ", body, flags=re.MULTILINE), 0


def stated_kind(header: Header, source: SourceFile) -> Kind:
    """Return the kind of a file."""
    if "DATA TYPE" not in header:
        kind = suffix_kind(source.path)
        if kind is None:
            problem = f"neither '# DATA TYPE:' nor the suffix of the file is one of {', '.join(KINDS)}"
            raise source.error(None, problem)
        return kind
    text, line = header["DATA TYPE"]
    for kind in KINDS:
        if text.lower() == kind:
            return kind
    raise source.error(line, f"the data type {quoted(text)} is not one of {', '.join(KINDS)}")


def suffix_kind(path: AnyPath) -> Kind | None:
    """Return the kind that the suffix of a file states, None for other suffixes."""
    name = check_path("path", path).name.lower().removesuffix(".gz")
    return next((kind for kind in KINDS if name.endswith(f".{kind}")), None)


def header_number(header: Header, key: str, source: SourceFile) -> int:
    """Return a number that the header states."""
    if key not in header:
        raise source.error(None, f"the header has no line '# {key}: ...'")
    text, line = header[key]
    if not re.fullmatch("[0-9]{1,18}", text):
        raise source.error(line, f"{key} is {quoted(text)}; it must be an integer")
    return int(text)


def alternatives(header: Header, source: SourceFile, first: int) -> tuple[str, ...]:
    """Return the names of the alternatives in the order of their numbers."""
    n_items = header_number(header, "NUMBER ALTERNATIVES", source)
    n_named = sum(key.startswith("ALTERNATIVE NAME ") for key in header)
    if n_named != n_items:
        line = header["NUMBER ALTERNATIVES"][1]
        raise source.error(line, f"the header states {n_items} alternatives but names {n_named}")
    names = []
    for number in range(first, n_items + first):
        key = f"ALTERNATIVE NAME {number}"
        if key not in header:
            raise source.error(None, f"the header has no line '# {key}: ...'; alternatives are numbered from {first}")
        names.append(header[key][0])
    with source.named_in_errors():
        return check_items(names)


# ---------------------------------------------------------------------- the orders


def check_kind(ranks: RankArray, orders: Orders, kind: Kind, header: Header, source: SourceFile) -> None:
    """Raise an error for rows that the stated kind does not allow, and for repeated orders."""
    n_listed = np.count_nonzero(ranks != FREE, axis=1)
    if kind in COMPLETE:
        check_rows(n_listed < ranks.shape[1], orders, source, f"lacks alternatives, but {kind} orders are complete")
    if kind in STRICT:
        check_rows(n_listed > orders.n_buckets, orders, source, f"has a tie, but {kind} orders have none")
    if kind == "cat":
        n_categories = header_number(header, "NUMBER CATEGORIES", source)
        check_rows(orders.n_buckets != n_categories, orders, source, f"does not have {n_categories} categories")
    else:
        starts = np.logical_or(np.diff(orders.rows, prepend=-1), np.diff(orders.buckets, prepend=-1))
        n_filled = np.bincount(orders.rows[starts], minlength=len(orders.lines))
        check_rows(n_filled != orders.n_buckets, orders, source, "has an empty tie; only categories may be empty")
    first, which = unique_rows(ranks)
    if len(first) < len(ranks):
        row = int(np.argmax(first[which] < np.arange(len(ranks))))
        earlier = orders.lines[first[which[row]]]
        problem = f"the order is also in line {earlier}; PrefLib lists each once, with its count"
        raise source.error(int(orders.lines[row]), problem)


def check_rows(invalid: Mask, orders: Orders, source: SourceFile, *problem: object) -> None:
    """Raise an error for the first invalid row, if there is one."""
    if invalid.any():
        raise source.error(int(orders.lines[int(np.argmax(invalid))]), "the order ", *problem)


# ---------------------------------------------------------------------- lines of orders

# A file may hold a million short lines, so all lines are checked by one expression and parsed by array operations.
SPACES, MAX_DIGITS = b" \t\r", 18  # digits that fit into 64 bits
NUMBER = rf"[0-9]{{1,{MAX_DIGITS}}}"
BUCKET = rf"(?:{NUMBER}|\{{(?:{NUMBER}(?:,{NUMBER})*)?\}})"
ORDER = rf"{NUMBER}:{BUCKET}(?:,{BUCKET})*"
LINES = re.compile(rf"(?:(?:{ORDER})?\n)*+".encode())
SPLIT_NUMBER = re.compile(rb"[ \t\r](?<=[0-9].)[ \t\r]*[0-9]")  # a number with a space inside
SIGNS_TO_SPACES = bytes.maketrans(b":,{}\n", b"     ")
EXAMPLE = "'13: 1,{4,3},2'"


def read_orders(body: str, first_line: int, source: SourceFile) -> Orders:
    """Return the orders of a text that begins on a given line of a file; empty lines are ignored."""
    raw = body.encode("utf-8", "replace") + b"\n"
    packed = raw.translate(None, SPACES)
    split, match = SPLIT_NUMBER.search(raw), LINES.match(packed)
    valid = match.end() if match else 0
    if split or valid < len(packed):
        index = min(packed.count(b"\n", 0, valid), raw.count(b"\n", 0, split.start()) if split else len(raw))
        raise source.error(first_line + index, line_problem(body.split("\n")[index].strip(" \t\r")))
    values = np.fromstring(packed.translate(SIGNS_TO_SPACES).decode(), dtype=np.int64, sep=" ")
    signs = np.frombuffer(packed, dtype=np.uint8)
    is_digit = (signs >= ord("0")) & (signs <= ord("9"))
    ends = np.flatnonzero(is_digit[:-1] & ~is_digit[1:]) + 1  # index after each number
    colons = signs == ord(":")
    depth = np.cumsum((signs == ord("{")).astype(np.int8) - (signs == ord("}")), dtype=np.int8)
    bucket = np.cumsum((signs == ord(",")) & (depth == 0), dtype=np.int32)
    is_count = colons[ends]
    starts, row = np.flatnonzero(colons), np.cumsum(is_count) - 1
    stops = np.append(starts[1:], len(signs) - 1)  # there is no comma between the end of a line and the next colon
    return Orders(
        rows=row[~is_count],
        items=values[~is_count],
        buckets=(bucket[ends - 1] - bucket[starts][row])[~is_count],
        counts=values[is_count],
        n_buckets=bucket[stops] - bucket[starts] + 1,
        lines=np.cumsum(signs == ord("\n"), dtype=np.int64)[starts] + first_line,
    )


def line_problem(text: str) -> str:
    """Return the problem of a line that is not an order."""
    count, colon, order = (part.strip(" \t\r") for part in text.partition(":"))
    if text.startswith("#"):
        return "a header line follows the first order; the header must come first"
    if not colon or not re.fullmatch("[0-9]+", count):
        return f"expected a count and an order, such as {EXAMPLE}; got {quoted(text[:60])}"
    if not order:
        return "the order lists no alternative"
    if max(map(len, re.findall("[0-9]+", text))) > MAX_DIGITS:
        return f"a number has more than {MAX_DIGITS} digits"
    if order.count("{") != order.count("}"):
        return f"the order {quoted(order[:60])} has unbalanced braces"
    return f"the order {quoted(order[:60])} is not a comma-separated list of numbers and of ties in braces"


# ---------------------------------------------------------------------- writing


def write_preflib(
    rankings: Rankings, path: AnyPath, *, kind: Kind | None = None, title: str = "rankings", overwrite: bool = False
) -> None:
    """Write rankings as a PrefLib file, gzipped if the name ends in ``.gz``.

    The file is read back as ``rankings.unique()``, since PrefLib lists each order once with its count:

    ====  ==================================================================================
    kind  accepts
    ====  ==================================================================================
    soc   full rankings
    soi   top-k lists, written up to their last bucket; or chains of some items, the others free
    toc   anything without free items, all buckets written
    toi   anything that lists at least one item
    cat   anything; categories are the buckets
    ====  ==================================================================================

    If items are free, the description in the header states that, and the reader uses it.

    Parameters
    ----------
    rankings : Rankings
        Rankings to write.
    path : path
        The file. It is written atomically.
    kind : {"soc", "soi", "toc", "toi", "cat"}, optional
        By default the suffix of the file, or else the first of soc, soi, toc, toi that accepts the data.
    title : str
        The title in the header.
    overwrite : bool
        Whether an existing file is replaced.

    Raises
    ------
    RankingError
        If the kind does not accept the rankings, or a name could not be read back: it is empty, begins or ends with a
        space, or contains a line break or another control character.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> ballots = Rankings.from_orders([["tea", {"milk", "coffee"}, "beer"]], counts=[3])
    >>> with TemporaryDirectory() as folder:
    ...     write_preflib(ballots, f"{folder}/drinks.toc")
    ...     print(Path(f"{folder}/drinks.toc").read_text().splitlines()[-1])
    3: 1,{2,3},4
    """
    rankings, stated = as_rankings(rankings), suffix_kind(path)
    if kind is not None and check_choice("kind", kind, KINDS) != (stated or kind):
        raise RankingError(f"kind={kind!r} contradicts the suffix of {quoted(Path(path).name)}; change one of them")
    check_writable_name(title, "title")
    for name in rankings.items:
        check_writable_name(name)
    distinct = rankings.unique()
    restrictive: tuple[Kind, ...] = ("soc", "soi", "toc")
    fitting = (each for each in restrictive if first_misfit(distinct, each) is None)
    default: Kind = next(fitting, "toi")
    chosen: Kind = kind or stated or default
    row = first_misfit(distinct, chosen)
    if row is not None:
        if chosen in ("soi", "toi") and (distinct.ranks[row] == FREE).all():
            hint = "an order lists at least one item; remove the row, or write cat"
        else:
            hint = f"write {'toc' if distinct.is_exhaustive() else 'toi'}, by the suffix of the file or by the kind"
        problem = f"row {row} of rankings ({distinct[row].kinds()[0]}) cannot be represented as {chosen}"
        raise RankingError(f"{problem}; {hint}")
    text = "\n".join([*header_lines(distinct, Path(path).name, chosen, title), *body_lines(distinct, chosen), ""])
    write_text(path, text, overwrite)


def first_misfit(rankings: Rankings, kind: Kind) -> int | None:
    """Return the first ranking that a kind does not accept, None if it accepts all."""
    n_listed = rankings.n_items - rankings.n_free
    if kind == "soc":
        wrong = rankings.n_buckets != rankings.n_items
    elif kind == "toc":
        wrong = rankings.n_free > 0
    elif kind == "toi":
        wrong = n_listed == 0
    elif kind == "cat":
        return None
    elif rankings.is_exhaustive():
        wrong = ~np.isin(rankings.kinds(), ("full", "top-k")) | ((rankings.n_buckets == 1) & (rankings.n_items > 1))
    else:
        wrong = (rankings.n_buckets != n_listed) | (n_listed == 0)
    return int(np.argmax(wrong)) if wrong.any() else None


def header_lines(rankings: Rankings, name: str, kind: Kind, title: str) -> list[str]:
    """Return the header of a file."""
    check_writable_name(name, "path")
    unique = "PREFERENCES" if kind == "cat" else "ORDERS"
    lines = [
        f"# FILE NAME: {name}",
        f"# TITLE: {title}",
        f"# DESCRIPTION: {'' if rankings.is_exhaustive() else FREE_NOTE}",
        f"# DATA TYPE: {kind}",
        "# MODIFICATION TYPE: original",
        "# RELATES TO: ",
        "# RELATED FILES: ",
        "# PUBLICATION DATE: ",
        "# MODIFICATION DATE: ",
        f"# NUMBER ALTERNATIVES: {rankings.n_items}",
        f"# NUMBER VOTERS: {rankings.n_voters}",
        f"# NUMBER UNIQUE {unique}: {len(rankings)}",
    ]
    if kind == "cat":
        categories = range(1, n_categories(rankings) + 1)
        lines += [
            f"# NUMBER CATEGORIES: {len(categories)}",
            *(f"# CATEGORY NAME {c}: Category {c}" for c in categories),
        ]
    return lines + [f"# ALTERNATIVE NAME {number}: {item}" for number, item in enumerate(rankings.items, start=1)]


def n_categories(rankings: Rankings) -> int:
    """Return the number of categories: the largest number of buckets, at least one."""
    return int(rankings.n_buckets.max(initial=1))


def body_lines(rankings: Rankings, kind: Kind) -> list[str]:
    """Return the lines of the orders."""
    n_buckets = n_categories(rankings) if kind == "cat" else 0
    orders = numbered_buckets(rankings, truncated=kind == "soi" and rankings.is_exhaustive())
    lines = []
    for buckets, count in zip(orders, rankings.counts.tolist(), strict=True):
        texts = [",".join(str(item + 1) for item in bucket) for bucket in buckets] + [""] * (n_buckets - len(buckets))
        lines.append(f"{count}: {','.join(text if text.isdecimal() else f'{{{text}}}' for text in texts)}")
    return lines

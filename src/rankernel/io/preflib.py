"""PrefLib files: orders (soc, soi, toc, toi) and categories (cat), plain or gzipped."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from rankernel._utils import checks
from rankernel._utils.arrays import IntArray, Mask, RankArray
from rankernel._utils.checks import printable
from rankernel.encoding import FREE, Unlisted, check_items, check_total_count, check_unlisted, dense_ranks
from rankernel.errors import RankingError, ReadingWarning, warn
from rankernel.io.file_data import About, FileRankings, Reading, file_rankings
from rankernel.io.files import (
    MOST_BYTES,
    AnyPath,
    check_table_size,
    check_writable_name,
    fail,
    read_text,
    write_text,
)
from rankernel.io.orders import Orders, read_orders
from rankernel.rankings import Rankings, as_rankings, unique_rows

Kind = Literal["soc", "soi", "toc", "toi", "cat"]
KINDS: tuple[Kind, ...] = get_args(Kind)
COMPLETE = ("soc", "toc")
STRICT = ("soc", "soi")


OLD_FORMAT = (
    "the file has no PrefLib header (lines such as '# NUMBER ALTERNATIVES: 12'); files from before September 2022 "
    "have none and are to be had in today's format from preflib.org"
)


def read_preflib(
    path: AnyPath,
    unlisted: Unlisted = "last",
    encoding: str = "utf-8",
    lenient: bool = False,
    max_bytes: int = MOST_BYTES,
) -> FileRankings:
    """Read a PrefLib file: soc, soi, toc, toi or cat, plain or gzipped.

    A line ``13: 1,{4,3},2`` says that 13 voters put alternative 1 first, then 4 and 3 tied, then 2. In a cat file each
    category is a bucket, in the order in which the file lists them; empty ones leave no trace. The kind is what the
    header states under ``DATA TYPE``, or else how the name of the file ends.

    Parameters
    ----------
    path : path
        The file.
    unlisted : {"last", "free"}
        Alternatives that a line does not list share one last bucket, or nothing is known of them.
    encoding : str
        How the file encodes its text.
    lenient : bool
        Whether to read, with a :class:`ReadingWarning`, what some public files have and the format does not allow:
        orders with a count of zero, which are left out, and alternatives numbered from 0.
    max_bytes : int
        What a small file may grow to, unpacked or as a table of ranks.

    Returns
    -------
    FileRankings
        One row for each line of the file, with its multiplicity, over the named alternatives.

    Raises
    ------
    RankingError
        Where the file is damaged or says of itself what is not so: the numbers of alternatives, voters and unique
        orders in the header must be those of the file, and a line must be of the stated kind.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> ballots = Rankings.from_orders([["tea", "milk"], ["milk"]], ["milk", "tea", "coffee"], counts=[5, 2])
    >>> with TemporaryDirectory() as folder:
    ...     write_preflib(ballots, f"{folder}/drinks.soi")
    ...     read_preflib(f"{folder}/drinks.soi")
    ...     read_preflib(f"{folder}/drinks.soi", unlisted="free")[1]
    FileRankings: 2 rankings from 7 voters of 3 items (1 full, 1 top-k)
      5 × tea > milk > coffee
      2 × milk > {tea, coffee}
      read as PrefLib soi; title 'rankings'
    Rankings: 1 ranking from 2 voters of 3 items (1 incomplete)
      2 × milk, free: {tea, coffee}
    """
    check_unlisted(unlisted)
    text = read_text(path, encoding, max_bytes)
    header, n_lines, end = read_header(text, path)
    kind = kind_of(header, path)
    first = first_number(header) if checks.check_flag("lenient", lenient) else 1
    items = alternatives(header, path, first)
    orders = read_orders(text[end:], n_lines + 1, path)
    check_totals(header, kind, orders, path)
    check_total_count(orders.counts)
    check_table_size(len(orders.lines), len(items), path, max_bytes)
    if first == 0:
        warn(f"{printable(Path(path).name)}: its alternatives are numbered from 0", ReadingWarning)
        orders = replace(orders, alternatives=orders.alternatives + 1)
    ranks = raw_ranks(orders, len(items), path)
    empty = orders.counts < 1 if lenient else np.zeros(len(orders.counts), dtype=bool)
    check_kind(ranks, orders, kind, header, path, empty)
    all_in_first = None
    if kind == "cat":
        all_in_first = int(orders.counts[(ranks == 0).all(axis=1)].sum())
        ranks = dense_ranks(ranks, ranks != FREE, unlisted)
    elif unlisted == "last":
        np.copyto(ranks, orders.widths[:, None].astype(np.int32), where=ranks == FREE)
    if empty.any():
        number = int(np.count_nonzero(empty))
        orders_of = "1 order has" if number == 1 else f"{number:,} orders have"
        warn(f"{printable(Path(path).name)}: {orders_of} no voters, left out", ReadingWarning)
        ranks = ranks[~empty]
    about = About(f"PrefLib {kind}", header.get("TITLE", ("", 0))[0], all_in_first=all_in_first)
    return file_rankings(ranks, items, orders.counts[~empty], Reading(about=about))


# ---------------------------------------------------------------------- the header

Header = dict[str, tuple[str, int]]


def read_header(text: str, path: AnyPath) -> tuple[Header, int, int]:
    """Return the header as key -> (value, line number), its number of lines, and where the text behind it begins."""
    header: Header = {}
    number = end = 0
    while end < len(text):
        line_end = text.find("\n", end) + 1 or len(text)
        line = text[end:line_end].strip()
        if line and not line.startswith("#"):
            break
        number, end = number + 1, line_end
        key, colon, value = line[1:].partition(":")
        if colon:
            key = key.strip()
            if key in header:
                raise fail(path, number, f"'{printable(key)}' stands in line {header[key][1]} already")
            header[key] = (value.strip(), number)
    if not header:
        raise fail(path, 1, OLD_FORMAT)
    return header, number, end


def kind_of(header: Header, path: AnyPath) -> Kind:
    """Return which of the five kinds a file is."""
    if "DATA TYPE" not in header:
        kind = named_kind(path)
        if kind is None:
            raise fail(path, None, f"neither '# DATA TYPE:' nor the file name says which of {', '.join(KINDS)} it is")
        return kind
    text, line = header["DATA TYPE"]
    for kind in KINDS:
        if text.lower() == kind:
            return kind
    raise fail(path, line, f"data type {printable(text)!r} is none of {', '.join(KINDS)}")


def named_kind(path: AnyPath) -> Kind | None:
    """Return the kind that the name of a file states, if it does."""
    name = checks.check_path("path", path).name.lower().removesuffix(".gz")
    return next((kind for kind in KINDS if name.endswith(f".{kind}")), None)


def header_number(header: Header, key: str, path: AnyPath) -> int:
    """Return a number that the header states."""
    if key not in header:
        raise fail(path, None, f"the header has no line '# {key}: ...'")
    text, line = header[key]
    if not re.fullmatch("[0-9]{1,18}", text):
        raise fail(path, line, f"{key} is {printable(text)!r}; it must be a whole number")
    return int(text)


def first_number(header: Header) -> int:
    """Return the number of the first alternative: 1, or 0 in some files."""
    return 0 if "ALTERNATIVE NAME 0" in header else 1


def alternatives(header: Header, path: AnyPath, first: int) -> tuple[str, ...]:
    """Return the names of the alternatives in the order of their numbers."""
    n_items = header_number(header, "NUMBER ALTERNATIVES", path)
    n_named = sum(key.startswith("ALTERNATIVE NAME ") for key in header)
    if n_named != n_items:
        line = header["NUMBER ALTERNATIVES"][1]
        raise fail(path, line, f"the header promises {n_items} alternatives but names {n_named}")
    names = []
    for number in range(first, n_items + first):
        key = f"ALTERNATIVE NAME {number}"
        if key not in header:
            advice = "; lenient=True reads numbers from 0" if first_number(header) == 0 else ""
            raise fail(path, None, f"the header has no line '# {key}: ...'; alternatives are numbered from 1{advice}")
        names.append(header[key][0])
    try:
        return check_items(names)
    except RankingError as error:
        raise fail(path, None, str(error)) from None


def check_totals(header: Header, kind: Kind, orders: Orders, path: AnyPath) -> None:
    """Refuse a file whose numbers of voters and of unique orders are not those of its header."""
    rows_key = "NUMBER UNIQUE PREFERENCES" if kind == "cat" else "NUMBER UNIQUE ORDERS"
    for key, found in ((rows_key, len(orders.counts)), ("NUMBER VOTERS", sum(orders.counts.tolist()))):
        stated = header_number(header, key, path)
        if stated != found:
            raise fail(path, header[key][1], f"{key} is {stated} but the file holds {found}; is it cut short?")


# ---------------------------------------------------------------------- the orders


def raw_ranks(orders: Orders, n_items: int, path: AnyPath) -> RankArray:
    """Return the place of each item in each row, -1 where it is not listed."""
    unknown = (orders.alternatives < 1) | (orders.alternatives > n_items)
    if unknown.any():
        entry = int(np.argmax(unknown))
        problem = f"alternative {orders.alternatives[entry]} is unknown; they are numbered from 1 to {n_items}"
        raise fail(path, int(orders.lines[orders.rows[entry]]), problem)
    ranks: RankArray = np.full((len(orders.lines), n_items), FREE, dtype=np.int32)
    cells = orders.rows * n_items + orders.alternatives - 1
    ranks.ravel()[cells] = orders.places
    if np.count_nonzero(ranks != FREE) != len(cells):
        row, item = divmod(first_repeated(cells), n_items)
        problem = f"alternative {item + 1} is listed twice; an order names each at most once"
        raise fail(path, int(orders.lines[row]), problem)
    return ranks


def first_repeated(cells: IntArray) -> int:
    """Return the smallest value that occurs more than once."""
    ordered = np.sort(cells)
    return int(ordered[1:][ordered[1:] == ordered[:-1]][0])


def check_kind(ranks: RankArray, orders: Orders, kind: Kind, header: Header, path: AnyPath, empty: Mask) -> None:
    """Refuse rows that the stated kind does not allow, and orders given twice."""
    lengths = orders.lengths
    problem = "has no voters; a count is 1 or more (lenient=True leaves such orders out)"
    refuse((orders.counts < 1) & ~empty, orders, problem, path)
    if kind in COMPLETE:
        refuse(lengths < ranks.shape[1], orders, f"lacks alternatives, but {kind} orders are complete", path)
    if kind in STRICT:
        refuse(lengths > orders.widths, orders, f"has a tie, but {kind} orders have none", path)
    if kind == "cat":
        n_categories = header_number(header, "NUMBER CATEGORIES", path)
        refuse(orders.widths != n_categories, orders, f"does not give {n_categories} categories", path)
    else:
        # A place without an alternative; behind a tie in the row its length alone would not tell.
        filled = np.bincount(orders.rows[starts_place(orders)], minlength=len(orders.lines))
        refuse(filled != orders.widths, orders, "has an empty tie; only categories may be empty", path)
    check_distinct(ranks, orders, path)


def starts_place(orders: Orders) -> Mask:
    """Say of each entry whether it is the first of its place in its row."""
    step = np.diff(orders.rows, prepend=-1), np.diff(orders.places, prepend=-1)
    return np.logical_or(*step)


def check_distinct(ranks: RankArray, orders: Orders, path: AnyPath) -> None:
    """Refuse an order that is given twice."""
    first, which = unique_rows(ranks)
    if len(first) < len(ranks):
        row = int(np.argmax(first[which] < np.arange(len(ranks))))
        earlier = orders.lines[first[which[row]]]
        problem = f"the order stands in line {earlier} already; PrefLib gives each once, counted"
        raise fail(path, int(orders.lines[row]), problem)


def refuse(wrong: Mask, orders: Orders, problem: str, path: AnyPath) -> None:
    """Raise for the first wrong row, if there is one."""
    if wrong.any():
        raise fail(path, int(orders.lines[int(np.argmax(wrong))]), f"the order {problem}")


# ---------------------------------------------------------------------- writing


def write_preflib(
    rankings: Rankings, path: AnyPath, kind: Kind | None = None, title: str = "rankings", overwrite: bool = False
) -> None:
    """Write rankings as a PrefLib file, gzipped if the name ends in ``.gz``.

    The file reads back as ``rankings.unique()``: PrefLib gives each order once, with its count. What it takes for that:

    ====  =======================================================  ==========================
    kind  takes                                                    reads back equal with
    ====  =======================================================  ==========================
    soc   full rankings                                            either ``unlisted``
    soi   top-k lists, written up to their last bucket             ``unlisted="last"``
    soi   chains of some items, the others free                    ``unlisted="free"``
    toc   anything without free items, all buckets written         either ``unlisted``
    toi   anything that lists at least one item                    ``unlisted="free"``
    cat   anything; categories are the buckets                     ``unlisted="free"``
    ====  =======================================================  ==========================

    Parameters
    ----------
    rankings : Rankings
        What to write.
    path : path
        The file. It is written whole or not at all.
    kind : {"soc", "soi", "toc", "toi", "cat"}, optional
        If left out: what the name of the file ends in, or else the first of soc, soi, toc, toi that takes the data.
    title : str
        The title in the header.
    overwrite : bool
        Whether a file of that name may be replaced.

    Raises
    ------
    RankingError
        Where the kind cannot hold the rankings, or a name would break the file: an empty one, one with a blank at an
        end, a line break or another control character.

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
    rankings, stated = as_rankings(rankings), named_kind(path)
    if kind is not None and checks.check_choice("kind", kind, KINDS) != (stated or kind):
        raise RankingError(
            f"kind={kind!r} does not go with the name {printable(Path(path).name)!r}; change one of them"
        )
    check_writable_name(title, "title")
    for name in rankings.items:
        check_writable_name(name)
    distinct = rankings.unique()
    kind = kind or stated or natural_kind(distinct)
    check_fits(distinct, kind)
    text = "\n".join([*header_lines(distinct, Path(path).name, kind, title), *body_lines(distinct, kind), ""])
    write_text(path, text, overwrite)


def natural_kind(rankings: Rankings) -> Kind:
    """Return the most restrictive kind of file that gives the rankings back."""
    ordered: tuple[Kind, ...] = ("soc", "soi", "toc")
    return next((kind for kind in ordered if misfits(rankings, kind) is None), "toi")


def check_fits(rankings: Rankings, kind: Kind) -> None:
    """Refuse rankings that a kind of file cannot give back."""
    row = misfits(rankings, kind)
    if row is None:
        return
    if kind in ("soi", "toi") and (rankings.ranks[row] == FREE).all():
        wanted = "an order lists at least one; leave the row out, or write kind='cat'"
    else:
        wanted = f"write kind={'toc' if rankings.is_exhaustive() else 'toi'!r}"
    raise RankingError(f"ranking {row} ({rankings[row].kinds()[0]}) cannot be written as {kind} without loss; {wanted}")


def misfits(rankings: Rankings, kind: Kind) -> int | None:
    """Return the first ranking that a kind of file cannot give back, if there is one."""
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
    check_writable_name(name, "file name")
    unique = "PREFERENCES" if kind == "cat" else "ORDERS"
    lines = [
        f"# FILE NAME: {name}",
        f"# TITLE: {title}",
        "# DESCRIPTION: ",
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
    """Return how many categories hold every row: one a bucket, and at least one."""
    return int(rankings.n_buckets.max(initial=1))


def body_lines(rankings: Rankings, kind: Kind) -> list[str]:
    """Return one line for each ranking."""
    truncated = kind == "soi" and rankings.is_exhaustive()
    width = n_categories(rankings) if kind == "cat" else 0
    lines = []
    for row, count in zip(rankings.ranks.tolist(), rankings.counts.tolist(), strict=True):
        buckets: list[list[str]] = [[] for _ in range(max([width, *(rank + 1 for rank in row)]))]
        for number, rank in enumerate(row, start=1):
            if rank != FREE:
                buckets[rank].append(str(number))
        if truncated and len(buckets[-1]) > 1:
            buckets.pop()
        order = ",".join(bucket[0] if len(bucket) == 1 else f"{{{','.join(bucket)}}}" for bucket in buckets)
        lines.append(f"{count}: {order}")
    return lines

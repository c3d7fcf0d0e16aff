"""Orders of items: lists of names, best first, tables with one column per position, and long tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from rankernel._utils import FloatArray, IntArray, RankArray
from rankernel._utils.checks import printable, short_repr
from rankernel.errors import Argument, RankingError
from rankernel.rankings import FREE, Unlisted, check_items, check_unlisted, dense_ranks, is_frame, is_list, is_missing

Buckets = list[list[str]]

ORDINAL_WORDS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
ORDINALS = {word: number for number, word in enumerate(ORDINAL_WORDS.split(), start=1)}
WORD = "(?:ranking|rank|choice|preference|pref|position|pos|place|vote|selection)"
NUMBER, GAP = "([0-9]{1,6})(?:st|nd|rd|th)?", r"[\s_.:#-]*"
OF = r"(?:[\s_]*(?:of|/)[\s_]*[0-9]{1,6}(?![0-9]))?(?:\s*\([0-9]{1,9}\)$)?"  # choice 1 of 4, choice 1 (45)
WHOLE_NAME = (re.compile(rf"#?{NUMBER}"), re.compile(f"({'|'.join(ORDINALS)})"))
WITHIN_NAME = (
    re.compile(rf"(?<![a-z]){WORD}{GAP}{NUMBER}{OF}(?![0-9a-z])"),  # choice 2 of 4
    re.compile(rf"(?<![0-9a-z.])([0-9]{{1,6}})(?:st|nd|rd|th)[\s_.-]*{WORD}(?![a-z])"),  # 2nd choice
    re.compile(rf"(?<![a-z])({'|'.join(ORDINALS)})[\s_.-]*{WORD}(?![a-z])"),  # second choice
)
NUMBER_FIRST = re.compile(rf"(?<![0-9a-z.])([0-9]{{1,6}})[\s_.-]*{WORD}(?![a-z])")  # 2 choice; not "ward 2 choice 1"


# ---------------------------------------------------------------------- names of columns


class ColumnPosition(NamedTuple):
    """The position in a column name, and the rest of the name, such as a contest."""

    number: int
    contest: str


def column_position(column: str) -> ColumnPosition | None:
    """Return the position in a column name such as ``rank 2``, ``choice_2`` or ``2nd choice``, if there is one.

    Examples
    --------
    >>> column_position("City Council Choice 1 of 4")
    ColumnPosition(number=1, contest='City Council')
    >>> column_position("candidate_rank2").number, column_position("3rd choice").number
    (2, 3)
    >>> column_position("Ann"), column_position("System 2")
    (None, None)
    """
    spaced = re.sub("(?<=[a-z])(?=[A-Z])", " ", column.strip())  # candidateRank1
    name = spaced.lower()
    if len(name) != len(spaced):  # lowering some letters changes the length
        spaced = name
    whole = next((match for pattern in WHOLE_NAME if (match := pattern.fullmatch(name))), None)
    matches = [whole] if whole else [match for pattern in WITHIN_NAME for match in pattern.finditer(name)]
    matches = matches or list(NUMBER_FIRST.finditer(name))
    numbers = {ORDINALS.get(match.group(1)) or int(match.group(1)) for match in matches}
    if len(numbers) != 1:
        return None
    start, end = min(match.start() for match in matches), max(match.end() for match in matches)
    rest = re.sub(r"[\s_]+", " ", f"{spaced[:start]} {spaced[end:]}")
    return ColumnPosition(numbers.pop(), rest.strip(" -:,._"))


def are_consecutive(numbers: Sequence[int]) -> bool:
    """Return whether positions are 1, 2, 3 ... or 0, 1, 2 ..., in any order."""
    return sorted(numbers) in (list(range(1, len(numbers) + 1)), list(range(len(numbers))))


def columns_in_order(columns: list[str]) -> list[int]:
    """Return the indices of columns sorted by the positions in their names; unchanged if no name has a position."""
    positions = [column_position(column) for column in columns]
    numbers = [position.number for position in positions if position is not None]
    if not numbers:
        return list(range(len(columns)))
    if len(numbers) < len(columns):
        raise RankingError(
            f"some columns of the frame name positions, but {printable(columns[positions.index(None)])!r} does not; "
            "give only the columns of positions, and the name of the column of counts as ",
            Argument("counts", ...),
        )
    if not are_consecutive(numbers):
        raise RankingError(
            f"the columns of the frame name the positions {', '.join(map(str, numbers))}; each must occur once"
        )
    return sorted(range(len(columns)), key=numbers.__getitem__)


# ---------------------------------------------------------------------- orders


def orders_to_ranks(
    orders: Any, items: Iterable[object] | None, unlisted: Unlisted
) -> tuple[RankArray, tuple[str, ...]]:
    """Return ranks and item names of orders; without ``items`` those that occur, in order of first appearance."""
    check_unlisted(unlisted)
    fixed = items is not None
    index: dict[str, int] = {name: i for i, name in enumerate(check_items(items))} if items is not None else {}
    codes: list[list[list[int]]] = []
    for row, buckets in enumerate(read_orders(orders)):
        listed: set[str] = set()
        for name in (name for bucket in buckets for name in bucket):
            if name in listed:
                raise RankingError(f"row {row} lists item {printable(name)!r} twice; list each item at most once")
            listed.add(name)
            if name not in index:
                if fixed:
                    raise RankingError(f"row {row} lists {printable(name)!r}, which is not in items")
                index[name] = len(index)
        codes.append([[index[name] for name in bucket] for bucket in buckets])
    names = check_items(index)
    ranks = np.full((len(codes), len(names)), FREE, dtype=np.int32)
    for row, coded in enumerate(codes):
        for rank, columns in enumerate(coded):
            ranks[row, columns] = rank
        if unlisted == "last":
            ranks[row, ranks[row] == FREE] = len(coded)
    return ranks, names


def read_orders(orders: Any) -> Iterator[Buckets]:
    """Yield the buckets of each order of a list, array or frame."""
    if is_frame(orders):
        values = orders.to_numpy()[:, columns_in_order([str(name) for name in orders.columns])]
    elif isinstance(orders, np.ndarray) and orders.ndim == 2:
        values = orders
    elif isinstance(orders, np.ndarray) and orders.ndim != 1:
        raise RankingError(f"orders has {orders.ndim} dimensions; it must have rows, and one column per position")
    elif not is_list(orders):
        raise RankingError(f"orders={short_repr(orders)} is not possible; it must be a list of orders, each best first")
    else:
        yield from (read_order(order, row) for row, order in enumerate(orders))
        return
    masked = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else np.zeros(values.shape, dtype=bool)
    for row, (cells, hidden) in enumerate(zip(np.asarray(values).tolist(), masked.tolist(), strict=True)):
        yield read_order([None if gone or cell == "" else cell for cell, gone in zip(cells, hidden, strict=True)], row)


def read_order(order: Any, row: int) -> Buckets:
    """Return the buckets of one order as lists of names; missing values at the end are ignored."""
    if isinstance(order, (set, frozenset)):
        raise RankingError(f"row {row} is a set, which has no order; write a tie as a set inside the list")
    if not is_list(order):
        raise RankingError(f"row {row} is {printable(short_repr(order))}; an order is a list of items, best first")
    entries = list(order)
    while entries and is_missing(entries[-1]):
        entries.pop()
    tied = (tuple, set, frozenset) if all(isinstance(entry, tuple) for entry in entries) else (set, frozenset)
    buckets = []
    for entry in entries:
        members = sorted(entry, key=str) if isinstance(entry, tied) else [entry]  # the order of a set is random
        if not members:
            raise RankingError(f"row {row} has an empty tie; a tie has at least one item")
        buckets.append([item_name(member, row) for member in members])
    return buckets


def item_name(value: Any, row: int) -> str:
    """Return the name of an item in an order."""
    if is_missing(value):
        raise RankingError(
            f"row {row} lists a missing value ({value!r}) before other items; leave out items that are not ranked"
        )
    if isinstance(value, (list, tuple, dict, set, frozenset, np.ndarray)):
        raise RankingError(f"row {row} lists {short_repr(value)}; write a tie as a set, such as {{'a', 'b'}}")
    # A numeric column with missing cells contains 3.0 for the name 3.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


# ---------------------------------------------------------------------- long tables


def long_ranks(
    users: Sequence[object],
    items: Sequence[object],
    values: FloatArray,
    names: Iterable[object] | None,
    unlisted: Unlisted,
    check_size: Callable[[int, int], None] | None = None,
) -> tuple[RankArray, tuple[str, ...], tuple[str, ...], IntArray]:
    """Return ranks, users, items and the first row of each user, from rows of a user, an item and a number.

    Smaller numbers are better. Users and items are in order of first appearance, or the items are ``names``.
    """
    check_unlisted(unlisted)
    user_index: dict[str, int] = {}
    fixed = names is not None
    item_index: dict[str, int] = {} if names is None else {name: i for i, name in enumerate(check_items(names))}
    cells = np.empty((len(users), 2), dtype=np.int64)
    for row, (user, item) in enumerate(zip(users, items, strict=True)):
        if is_missing(user) or is_missing(item) or user == "" or item == "":
            raise RankingError(f"row {row} has no user or no item; remove incomplete rows")
        name = item_name(item, row)
        if fixed and name not in item_index:
            raise RankingError(f"row {row} names {printable(name)!r}, which is not one of the ", Argument("items"))
        cells[row] = (
            user_index.setdefault(item_name(user, row), len(user_index)),
            item_index.setdefault(name, len(item_index)),
        )
    known = check_items(item_index)
    if check_size is not None:
        check_size(len(user_index), len(known))
    flat = cells[:, 0] * len(known) + cells[:, 1]
    distinct, first = np.unique(flat, return_index=True)
    if len(distinct) < len(flat):
        row = int(np.setdiff1d(np.arange(len(flat)), first)[0])
        problem = f"{printable(users[row])!r} has item {printable(items[row])!r} twice (row {row})"
        raise RankingError(f"user {problem}; a user may rank each item once")
    table = np.zeros((len(user_index), len(known)))
    listed = np.zeros(table.shape, dtype=bool)
    table.ravel()[flat], listed.ravel()[flat] = values, True
    row_of_user = np.empty(len(user_index), dtype=np.int64)
    row_of_user[cells[::-1, 0]] = np.arange(len(cells))[::-1]
    return dense_ranks(table, listed, unlisted), tuple(user_index), known, row_of_user

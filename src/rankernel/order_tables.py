"""Orders of items, best first, as lists of names or as tables with one column per position."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from rankernel._utils.arrays import RankArray
from rankernel._utils.checks import printable, short_repr
from rankernel.encoding import FREE, Unlisted, check_items, check_unlisted, is_frame, is_list, is_missing
from rankernel.errors import RankingError

ORDINAL_WORDS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
ORDINALS = {word: number for number, word in enumerate(ORDINAL_WORDS.split(), start=1)}
WORD = "(?:ranking|rank|choice|preference|pref|position|pos|place|vote|selection)"
NUMBER, GAP, OF = "([0-9]{1,6})(?:st|nd|rd|th)?", r"[\s_.:#-]*", r"(?:[\s_]*(?:of|/)[\s_]*[0-9]{1,6}(?![0-9]))?"
INSIDE = (  # anywhere in a name: the word makes clear what the number is
    re.compile(rf"(?<![a-z]){WORD}{GAP}{NUMBER}{OF}(?![0-9a-z])"),
    re.compile(rf"(?<![0-9a-z.])([0-9]{{1,6}})(?:st|nd|rd|th)[\s_.-]*{WORD}(?![a-z])"),
    re.compile(rf"(?<![a-z])({'|'.join(ORDINALS)})[\s_.-]*{WORD}(?![a-z])"),
)
BARE = re.compile(rf"(?<![0-9a-z.])([0-9]{{1,6}})[\s_.-]*{WORD}(?![a-z])")  # 2 choice; but not in "ward 2 choice 1"
ALONE = (re.compile(rf"#?{NUMBER}"), re.compile(f"({'|'.join(ORDINALS)})"))  # nothing else in the name


class ColumnPosition(NamedTuple):
    """The place that the name of a column states, and what else is in the name, such as a contest."""

    number: int
    contest: str


def column_position(column: str) -> ColumnPosition | None:
    """Return the place that the name of a column states, if it states one.

    Examples
    --------
    >>> column_position("City Council Choice 1 of 4")
    ColumnPosition(number=1, contest='City Council')
    >>> column_position("candidate_rank2").number, column_position("3rd choice").number
    (2, 3)
    >>> column_position("Ann"), column_position("System 2")
    (None, None)
    """
    apart = re.sub("(?<=[a-z])(?=[A-Z])", " ", column.strip())  # candidateRank1
    name = apart.lower()
    if len(name) != len(apart):  # a letter that has no small form of one sign
        apart = name
    whole = next((match for pattern in ALONE if (match := pattern.fullmatch(name))), None)
    found = [whole] if whole else [match for pattern in INSIDE for match in pattern.finditer(name)]
    found = found or list(BARE.finditer(name))
    numbers = {ORDINALS.get(match.group(1)) or int(match.group(1)) for match in found}
    if len(numbers) != 1:
        return None
    start, end = min(match.start() for match in found), max(match.end() for match in found)
    rest = re.sub(r"[\s_]+", " ", f"{apart[:start]} {apart[end:]}")
    return ColumnPosition(numbers.pop(), rest.strip(" -:,._"))


def are_consecutive(numbers: Sequence[int]) -> bool:
    """Say whether places are 1, 2, 3 ... or 0, 1, 2 ..., in any order."""
    return sorted(numbers) in (list(range(1, len(numbers) + 1)), list(range(len(numbers))))


Buckets = list[list[str]]


def orders_to_ranks(
    orders: Any, items: Iterable[object] | None, unlisted: Unlisted
) -> tuple[RankArray, tuple[str, ...]]:
    """Return ranks and item names from orders.

    Without ``items`` the items are those that occur, in the order in which they first do.
    """
    check_unlisted(unlisted)
    rows = list(all_buckets(orders))
    fixed = items is not None
    index: dict[str, int] = {name: i for i, name in enumerate(check_items(items))} if items is not None else {}
    codes: list[list[list[int]]] = []
    for row, buckets in enumerate(rows):
        seen: set[str] = set()
        coded = []
        for bucket in buckets:
            for name in bucket:
                if name in seen:
                    raise RankingError(
                        f"row {row} lists item {printable(name)!r} twice; a ranking names each item at most once"
                    )
                seen.add(name)
                if name not in index:
                    if fixed:
                        raise RankingError(f"row {row} lists {printable(name)!r}, which is not among the items")
                    index[name] = len(index)
            coded.append([index[name] for name in bucket])
        codes.append(coded)
    names = check_items(index)
    ranks = np.full((len(rows), len(names)), FREE, dtype=np.int32)
    for row, coded in enumerate(codes):
        for rank, columns in enumerate(coded):
            ranks[row, columns] = rank
        if unlisted == "last":
            ranks[row, ranks[row] == FREE] = len(coded)
    return ranks, names


def all_buckets(orders: Any) -> Iterator[Buckets]:
    """Return the buckets of each order, however the orders are held."""
    if is_frame(orders):
        values = orders.to_numpy()[:, columns_in_order([str(name) for name in orders.columns])]
    elif isinstance(orders, np.ndarray) and orders.ndim == 2:
        values = orders
    elif isinstance(orders, np.ndarray) and orders.ndim != 1:
        raise RankingError(f"the array of orders has {orders.ndim} dimensions; wanted are rows, one column a place")
    elif not is_list(orders):
        raise RankingError(f"orders={short_repr(orders)} is not possible; give a list of orders, each best first")
    else:
        yield from (buckets_of(order, row) for row, order in enumerate(orders))
        return
    hidden = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else np.zeros(values.shape, dtype=bool)
    for row, (cells, masked) in enumerate(zip(np.asarray(values).tolist(), hidden.tolist(), strict=True)):
        marked = [None if gone or cell == "" else cell for cell, gone in zip(cells, masked, strict=True)]
        yield buckets_of(marked, row)


def columns_in_order(columns: list[str]) -> list[int]:
    """Return the columns of a frame by the places that their names state; as they stand if none states any."""
    places = [column_position(column) for column in columns]
    stated = [place.number for place in places if place is not None]
    if not stated:
        return list(range(len(columns)))
    if len(stated) < len(columns):
        other = printable(columns[places.index(None)])
        raise RankingError(
            f"some columns of the frame name places, but {other!r} does not; give only the columns of places, and the "
            "name of the column of counts as counts=..."
        )
    if not are_consecutive(stated):
        raise RankingError(
            f"the columns of the frame name the places {', '.join(map(str, stated))}; wanted is each once"
        )
    return sorted(range(len(columns)), key=stated.__getitem__)


def buckets_of(order: Any, row: int) -> Buckets:
    """Return the buckets of one order as lists of names; missing values at its end are where it ends."""
    if isinstance(order, (str, bytes)):
        raise RankingError(f"row {row} is the string {printable(order)!r}; an order is a list of items, best first")
    if isinstance(order, (set, frozenset)):
        raise RankingError(f"row {row} is a set, which has no order; write a tie as a set inside the list")
    if not is_list(order):
        raise RankingError(f"row {row} is {short_repr(order)}; an order is a list of items, best first")
    entries = list(order)
    while entries and is_missing(entries[-1]):
        entries.pop()
    tied = (tuple, set, frozenset) if all(isinstance(entry, tuple) for entry in entries) else (set, frozenset)
    buckets = []
    for entry in entries:
        # A set has no order of its own; sorting makes the result the same on every run.
        members = sorted(entry, key=str) if isinstance(entry, tied) else [entry]
        if not members:
            raise RankingError(f"row {row} has an empty tie; a tie has at least one item")
        buckets.append([name_of(member, row) for member in members])
    return buckets


def name_of(value: Any, row: int) -> str:
    """Return the name of an item in an order."""
    if is_missing(value):
        raise RankingError(
            f"row {row} lists a missing value ({value!r}) before other items; leave out items that are not ranked"
        )
    if isinstance(value, (list, tuple, dict, set, frozenset, np.ndarray)):
        raise RankingError(f"row {row} lists {value!r}; write a tie as a set, such as {{'a', 'b'}}")
    # A column of numbers with missing cells holds 3.0 where the file said 3.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)

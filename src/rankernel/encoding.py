"""The gate: whatever people hold their rankings in comes through here and leaves as one checked integer array.

Inside the package a ranking is a row of *ranks*: ``ranks[a]`` is the bucket of item ``a``, 0 the best, without
gaps, and -1 where nothing is known of the item.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rankernel.arrays import IntArray, Mask, RankArray
from rankernel.checks import shown
from rankernel.errors import RankingError

Unlisted = Literal["last", "free"]

FREE = -1
MOST_VOTERS = 2**53


def printable(name: object) -> str:
    """Return a name with control characters escaped, safe to show in a terminal or an error message."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(name))


def check_unlisted(unlisted: str) -> None:
    """Refuse a reading of unlisted items other than the two there are."""
    if not isinstance(unlisted, str) or unlisted not in get_args(Unlisted):
        raise RankingError(
            f"unlisted={shown(unlisted)} is not known; items that a row does not list are 'last' or 'free'"
        )


def check_items(items: Iterable[object]) -> tuple[str, ...]:
    """Return item names as strings, refusing none at all, missing names and repeated ones."""
    if isinstance(items, str):
        raise RankingError(f"items={printable(items)!r} is one string; give a list of item names")
    if isinstance(items, bytes) or not isinstance(items, Iterable) or getattr(items, "ndim", 1) == 0:
        raise RankingError(f"items={shown(items)} is not possible; give a list of item names")
    given = list(items)
    for position, name in enumerate(given):
        if is_missing(name):
            raise RankingError(f"items: the name of item {position} is missing ({name!r}); every item needs a name")
    names = tuple(str(name) for name in given)
    if not names:
        raise RankingError("there are no items; a ranking needs at least one")
    seen: dict[str, int] = {}
    for position, name in enumerate(names):
        if name in seen:
            raise RankingError(
                f"items {seen[name]} and {position} are both named {printable(name)!r}; item names must be unique"
            )
        seen[name] = position
    return names


def check_counts(counts: Any, n_rankings: int) -> IntArray:
    """Return multiplicities as a read-only integer array, one positive whole number for each ranking."""
    if counts is None:
        array = np.ones(n_rankings, dtype=np.int64)
    else:
        given = np.asarray(counts)
        if given.shape != (n_rankings,):
            raise RankingError(
                f"counts has shape {given.shape} but there are {n_rankings} rankings; give one count for each"
            )
        array = whole_numbers(given, "count")
        if array.size and array.min() < 1:
            row = int(np.argmax(array < 1))
            raise RankingError(f"row {row} has count {array[row]}; a count is a positive number of voters")
        check_total(array)
    array.flags.writeable = False
    return array


def check_total(counts: IntArray) -> None:
    """Refuse more voters in all than a float can tell apart: sums and shares of voters would be wrong."""
    total = float(counts.sum(dtype=np.float64))
    if total > 2 * MOST_VOTERS or int(counts.sum()) > MOST_VOTERS:  # the second sum is exact, and fits
        raise RankingError(f"counts add up to {total:.4g} voters; there can be at most 2^53, about 9e15")


def whole_numbers(values: NDArray[Any], what: str) -> IntArray:
    """Return a one-dimensional numeric array as integers, naming the row where it is not whole."""
    if values.dtype.kind in "iu":
        if values.size and int(values.max()) > MOST_VOTERS:
            row = int(np.argmax(values))
            raise RankingError(f"row {row} has {what} {values[row]}; a {what} is at most 2^53, about 9e15")
        return values.astype(np.int64)
    if values.dtype.kind == "O" or values.dtype.kind in "fU":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError):
            raise RankingError(f"{what}s must be whole numbers; got values such as {values.flat[0]!r}") from None
    elif values.size:
        raise RankingError(f"{what}s must be whole numbers; got an array of {values.dtype}")
    wrong = ~(np.abs(values) <= MOST_VOTERS) | (values != np.floor(values))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise RankingError(f"row {row} has {what} {values[row]}; a {what} is a whole number, at most 2^53")
    return values.astype(np.int64)


def is_missing(value: object) -> bool:
    """Say whether a value stands for nothing: None, NaN, or a frame library's missing value."""
    if value is None or (isinstance(value, numbers.Real) and math.isnan(value)):
        return True
    return type(value).__name__ in ("NAType", "NaTType")


def table(data: Any, what: str) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    """Return the values of an array, list of rows or data frame, and the names of its columns if it has any.

    A cell of a masked array that is masked is missing.
    """
    if hasattr(data, "columns") and hasattr(data, "to_numpy"):
        return np.asarray(data.to_numpy()), check_items(data.columns)
    if isinstance(data, np.ma.MaskedArray):
        values = np.ma.filled(data.astype(np.float64), np.nan) if np.ma.is_masked(data) else data.data
    elif isinstance(data, np.ndarray):
        values = data
    else:
        if not is_list(data):
            raise RankingError(
                f"{shown(data)} is not a table of {what}s; give Rankings, or an array with one row a ranking"
            )
        rows = []
        for number, row in enumerate(data):
            if not is_list(row):
                raise RankingError(f"row {number} is {shown(row)}; a row of a table of {what}s is a list of numbers")
            rows.append(list(row))
        for number, row in enumerate(rows):
            if len(row) != len(rows[0]):
                raise RankingError(
                    f"row {number} has {len(row)} entries but row 0 has {len(rows[0])}; a table of ranks is "
                    "rectangular (for lists of item names use Rankings.from_orders)"
                )
        values = array_of(rows) if rows else np.empty((0, 0))
    if values.ndim != 2:
        raise RankingError(
            f"expected a table of {what}s with one row a ranking and one column an item; got {values.ndim} dimension(s)"
        )
    return values, None


def is_list(data: Any) -> bool:
    """Say whether something can be gone through, and is no text and no single number."""
    return isinstance(data, Iterable) and not isinstance(data, str | bytes) and getattr(data, "ndim", 1) > 0


def array_of(rows: list[list[Any]]) -> NDArray[Any]:
    """Return rows of one length as an array, of objects where cells are no plain values."""
    try:
        return np.array(rows)
    except ValueError:  # lists of different lengths inside the cells
        out = np.empty((len(rows), len(rows[0])), dtype=object)
        for number, row in enumerate(rows):
            for column, cell in enumerate(row):
                out[number, column] = cell
        return out


def numeric(values: NDArray[Any], items: Sequence[str], what: str) -> NDArray[Any]:
    """Return a table as numbers (missing cells as NaN), naming the first cell that is not one."""
    if values.dtype.kind in "iuf":
        return values
    if values.dtype.kind == "b":
        raise RankingError(f"the table holds true/false values; {what}s are numbers")
    if values.dtype.kind in "mMc":
        raise RankingError(f"the table of {what}s holds {values.dtype} values; {what}s are numbers")
    out = np.empty(values.shape, dtype=np.float64)
    for (row, column), value in np.ndenumerate(values):
        try:
            out[row, column] = np.nan if is_missing(value) else float(value)
        except (TypeError, ValueError):
            raise RankingError(
                f"row {row}, item {printable(items[column])!r} holds {printable(value)!r}; a {what} is a number"
            ) from None
    return out


def rank_table(values: NDArray[Any], items: Sequence[str]) -> tuple[NDArray[Any], Mask]:
    """Return numbers that order each row, and which cells are listed, from a table of ranks (-1 or NaN: unlisted)."""
    values = numeric(values, items, "rank")
    listed = ~np.isnan(values) if values.dtype.kind == "f" else np.ones(values.shape, dtype=bool)
    if values.dtype.kind == "f":
        wrong = listed & ~(np.isfinite(values) & (np.floor(values) == values))
        complain(
            wrong,
            values,
            items,
            "a rank is a whole number (for other numbers use Rankings.from_scores, where larger is better)",
        )
    if values.dtype.kind != "u":
        complain(values < FREE, values, items, "a rank is 0 or more, and -1 means not ranked")
        listed &= values != FREE
    return values, listed


def score_table(values: NDArray[Any], items: Sequence[str]) -> tuple[NDArray[Any], Mask]:
    """Return numbers that order each row, and which cells are listed, from a table of scores (NaN: unlisted)."""
    scores = numeric(values, items, "score")
    if scores.dtype.kind == "f":
        return -scores, ~np.isnan(scores)
    # Negating the order, not the numbers: the smallest signed integer and all unsigned ones have no negative.
    order = np.unique(scores, return_inverse=True)[1].reshape(scores.shape)
    return -order, np.ones(scores.shape, dtype=bool)


def complain(wrong: Mask, values: NDArray[Any], items: Sequence[str], wanted: str) -> None:
    """Raise for the first wrong cell of a table, if there is one."""
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        raise RankingError(f"row {row}, item {printable(items[column])!r} holds {values[row, column]}; {wanted}")


def dense(values: NDArray[Any], listed: Mask, unlisted: Unlisted) -> RankArray:
    """Return bucket indices without gaps, row by row: smaller values are better, equal ones share a bucket."""
    check_unlisted(unlisted)
    n_rankings, n_items = values.shape
    ranks = np.empty((n_rankings, n_items), dtype=np.int32)
    if n_rankings and n_items:
        # Sorting by (unlisted, value) puts the unlisted items of each row behind the listed ones.
        order = np.lexsort((values, ~listed), axis=-1)
        ordered = np.take_along_axis(values, order, axis=1)
        shown = np.take_along_axis(listed, order, axis=1)
        step = np.zeros((n_rankings, n_items), dtype=np.int32)
        step[:, 1:] = (ordered[:, 1:] != ordered[:, :-1]) | (shown[:, 1:] != shown[:, :-1])
        step[:, 1:] &= shown[:, 1:] | shown[:, :-1]
        np.put_along_axis(ranks, order, np.cumsum(step, axis=1, dtype=np.int32), axis=1)
        if unlisted == "free":
            ranks[~listed] = FREE
    return ranks


def orders_to_ranks(
    orders: Iterable[Iterable[Any]], items: Iterable[object] | None, unlisted: Unlisted
) -> tuple[RankArray, tuple[str, ...]]:
    """Return ranks and item names from orders: best item first, a set for a tie.

    Without ``items`` the items are those that occur, in the order in which they first do.
    """
    check_unlisted(unlisted)
    rows = [buckets_of(order, row) for row, order in enumerate(orders)]
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


def buckets_of(order: Iterable[Any], row: int) -> list[list[str]]:
    """Return the buckets of one order as lists of names."""
    if isinstance(order, (str, bytes)):
        raise RankingError(f"row {row} is the string {printable(order)!r}; an order is a list of items, best first")
    if isinstance(order, (set, frozenset)):
        raise RankingError(f"row {row} is a set, which has no order; write a tie as a set inside the list")
    if not is_list(order):
        raise RankingError(f"row {row} is {shown(order)}; an order is a list of items, best first")
    buckets = []
    for entry in order:
        # A set has no order of its own; sorting makes the result the same on every run.
        members = sorted(entry, key=str) if isinstance(entry, (set, frozenset)) else [entry]
        if not members:
            raise RankingError(f"row {row} has an empty tie; a tie is a set of at least one item")
        for member in members:
            if is_missing(member):
                raise RankingError(f"row {row} lists a missing value ({member!r}); leave out items that are not ranked")
            if isinstance(member, (list, dict)):
                raise RankingError(f"row {row} lists {member!r}; write a tie as a set, such as {{'a', 'b'}}")
        buckets.append([str(member) for member in members])
    return buckets

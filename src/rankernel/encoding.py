"""Conversion of tables of ranks or scores, item names and counts to checked arrays.

Inside the package a ranking is a row of *ranks*: ``ranks[a]`` is the bucket index of item ``a``, 0 is the best bucket,
indices have no gaps, and -1 marks a free item: nothing is known about its position.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import FloatArray, IntArray, Mask, RankArray
from rankernel._utils.checks import check_array, printable, short_repr
from rankernel.errors import Argument, RankingError

Unlisted = Literal["last", "free"]

FREE = -1
MAX_VOTERS = 2**53  # integers up to this number are exact as floats
CHUNK_CELLS = 2**21
MAX_BITS = 63  # distinct integers of a row that fit into one word


def check_unlisted(unlisted: str) -> None:
    """Raise an error unless ``unlisted`` is "last" or "free"."""
    if not isinstance(unlisted, str) or unlisted not in get_args(Unlisted):
        raise RankingError(Argument("unlisted", unlisted), " is not possible; it must be 'last' or 'free'")


def check_items(items: Iterable[object]) -> tuple[str, ...]:
    """Return item names as strings; raise an error if there are none, or if names are missing or repeated."""
    if isinstance(items, str | bytes) or not isinstance(items, Iterable) or getattr(items, "ndim", 1) == 0:
        raise RankingError(f"items={short_repr(items)} is not possible; it must be a list of item names")
    given = list(items)
    for index, name in enumerate(given):
        if is_missing(name):
            raise RankingError(f"items: the name of item {index} is missing ({name!r}); every item needs a name")
    names = tuple(str(name) for name in given)
    if not names:
        raise RankingError("items: there are no items; give at least one")
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if name in first:
            raise RankingError(
                f"items {first[name]} and {index} are both named {printable(name)!r}; item names must be unique"
            )
        first[name] = index
    return names


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, a masked cell, or the missing value of a frame library."""
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, numbers.Real):
        interval: type = np.timedelta64  # registered as a number, but without a float value
        return not isinstance(value, interval) and math.isnan(value)
    return type(value).__name__ in ("NAType", "NaTType")


def is_list(data: Any) -> bool:
    """Return whether data is iterable, but neither a string nor a scalar."""
    return isinstance(data, Iterable) and not isinstance(data, str | bytes) and getattr(data, "ndim", 1) > 0


def is_frame(data: Any) -> bool:
    """Return whether data is a pandas or polars frame."""
    return hasattr(data, "columns") and hasattr(data, "to_numpy")


# ---------------------------------------------------------------------- tables of numbers


@dataclass(frozen=True)
class NumberTable:
    """Numbers that order the items of each row, smaller is better.

    Attributes
    ----------
    numbers : array of shape (n_rankings, n_items)
        The numbers.
    missing : mask
        Missing cells.
    free : mask
        Cells that contain -1.
    items : tuple of str
        Names of the items.
    """

    numbers: NDArray[Any]
    missing: Mask
    free: Mask
    items: tuple[str, ...]

    def ranks(self, unlisted: Unlisted) -> RankArray:
        """Return bucket indices, where missing cells and -1 are unlisted."""
        return dense_ranks(self.numbers, ~(self.missing | self.free), unlisted)

    def plain_ranks(self, unlisted: Unlisted | None) -> RankArray:
        """Return bucket indices, where -1 is free and missing cells are unlisted, or an error for None."""
        if unlisted is None:
            check_no_missing(self.missing, self.items)
        ranks = self.ranks(unlisted or "free")
        ranks[self.free] = FREE
        return ranks


def check_no_missing(missing: Mask, items: Sequence[object]) -> None:
    """Raise an error for the first missing cell."""
    if missing.any():
        row, column = (int(i) for i in np.argwhere(missing)[0])
        raise RankingError(
            f"row {row}, item {printable(items[column])!r} is missing (NaN), which is ambiguous in a plain array: use "
            "Rankings.from_ranks(data, unlisted='last') if missing items are ranked after the others, or "
            "unlisted='free' if nothing is known of them"
        )


def number_table(data: Any, items: Iterable[object] | None, scores: bool) -> NumberTable:
    """Return a checked table of ranks or scores from an array, a list of rows, or a frame."""
    what = "score" if scores else "rank"
    values, masked, columns = read_table(data, what)
    if values.shape == (0, 0) and items is not None:
        names = check_items(items)
        values = masked = np.empty((0, len(names)), dtype=bool)
    if items is None:
        names = columns if columns is not None else check_items(range(values.shape[1]))
    else:
        names = check_items(items)
        if len(names) != values.shape[1]:
            raise RankingError(f"items has {len(names)} names, but the table has {values.shape[1]} columns")
    if not values.size:
        return NumberTable(values.astype(np.int64), masked.astype(bool), masked.astype(bool), names)
    given, missing = as_numbers(values, masked, names, what)
    if scores:
        return NumberTable(negate(given), missing, np.zeros(given.shape, dtype=bool), names)
    return NumberTable(given, missing, check_ranks(given, missing, names), names)


def read_table(data: Any, what: str) -> tuple[NDArray[Any], Mask, tuple[str, ...] | None]:
    """Return the values of an array, list of rows or frame, the mask, and the names of the columns of a frame."""
    if is_frame(data):
        values = np.asarray(data.to_numpy())
        return values, np.zeros(values.shape, dtype=bool), check_items(data.columns)
    if isinstance(data, np.ndarray):
        values = data
    elif is_list(data):
        values = rows_to_array(data, what)
    else:
        raise RankingError(
            f"{short_repr(data)} is not a table of {what}s; give Rankings, or an array with one row per ranking"
        )
    if values.ndim != 2:
        raise RankingError(
            f"the table of {what}s has {values.ndim} dimension(s); it must have one row per ranking and one column per "
            "item"
        )
    masked = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else np.zeros(values.shape, dtype=bool)
    return np.asarray(values), masked, None


def rows_to_array(rows: Iterable[Any], what: str) -> NDArray[Any]:
    """Return a list of rows of equal lengths as an array, of objects if cells are not scalars."""
    lists: list[list[Any]] = []
    for number, row in enumerate(rows):
        if not is_list(row):
            raise RankingError(f"row {number} is {short_repr(row)}; a row of a table of {what}s is a list of numbers")
        lists.append(list(row))
        if len(lists[-1]) != len(lists[0]):
            raise RankingError(
                f"row {number} has {len(lists[-1])} entries but row 0 has {len(lists[0])}; all rows of a table need "
                "the same length (for lists of item names use Rankings.from_orders)"
            )
    if not lists:
        return np.empty((0, 0))
    try:
        return np.array(lists)
    except ValueError:  # lists of different lengths inside cells
        out = np.empty((len(lists), len(lists[0])), dtype=object)
        for number, row in enumerate(lists):
            for column, cell in enumerate(row):
                out[number, column] = cell
        return out


def as_numbers(values: NDArray[Any], masked: Mask, items: Sequence[str], what: str) -> tuple[NDArray[Any], Mask]:
    """Return a table as numbers, and the missing cells; raise an error for the first cell that is not a number."""
    if values.dtype.kind in "bmMc":
        raise RankingError(f"the table of {what}s holds {values.dtype} values; {what}s are numbers")
    if values.dtype.kind not in "iuf":
        out = np.empty(values.shape, dtype=np.float64)
        for (row, column), value in np.ndenumerate(values):
            try:
                out[row, column] = np.nan if masked[row, column] or is_missing(value) else float(value)
            except (TypeError, ValueError):
                raise RankingError(
                    f"row {row}, item {printable(items[column])!r} holds {printable(value)!r}; a {what} is a number"
                ) from None
        values = out
    return values, (masked | np.isnan(values)) if values.dtype.kind == "f" else masked


def negate(scores: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in reversed order."""
    if scores.dtype.kind == "f":
        return -scores
    # The smallest signed integer and unsigned integers have no negative, so their order is negated instead.
    return -np.unique(scores, return_inverse=True)[1].reshape(scores.shape)


def check_ranks(values: NDArray[Any], missing: Mask, items: Sequence[str]) -> Mask:
    """Return the cells of a table of ranks that contain -1; raise an error for numbers that are not ranks."""
    free = np.asarray((values == FREE) & ~missing)

    def check(wrong: Mask, expected: str) -> None:
        if wrong.any():
            row, column = (int(i) for i in np.argwhere(wrong)[0])
            raise RankingError(f"row {row}, item {printable(items[column])!r} holds {values[row, column]}; {expected}")

    if values.dtype.kind == "f":
        listed = np.asarray(~(missing | free))
        check(listed & ~np.isfinite(values), "a rank is a finite number")
        fractional: Mask = listed & (np.floor(values, where=listed, out=np.zeros(values.shape)) != values)
        rows = np.flatnonzero(fractional.any(axis=1))
        average = np.zeros(values.shape, dtype=bool)
        average[rows] = are_average_ranks(values[rows], listed[rows])
        check(
            fractional & ~average,
            "a rank is a whole number, or the average rank of tied items as given by df.rank() and rankdata (for other "
            "numbers use Rankings.from_scores, where larger is better)",
        )
    if values.dtype.kind != "u":
        check(~missing & (values < FREE), "a rank is 0 or more, and -1 means not ranked")
    return free


def are_average_ranks(values: NDArray[Any], listed: Mask) -> Mask:
    """Return for each cell whether the numbers of its row are average ranks of ties, counted from 1 or from 0."""
    difference = np.where(listed, values - average_ranks(values, listed), 0.0)
    from_one, from_zero = difference == 0, np.where(listed, difference == -1, True)
    fits = from_one.all(axis=1, keepdims=True) | from_zero.all(axis=1, keepdims=True)
    return np.asarray(np.broadcast_to(fits, values.shape))


def average_ranks(values: NDArray[Any], listed: Mask) -> FloatArray:
    """Return the average rank, from 1, of each listed item and those tied with it."""
    out = np.empty(values.shape)
    for row, ranks in enumerate(dense_ranks(values, listed, "free")):
        sizes = np.bincount(ranks[ranks != FREE], minlength=1)
        out[row] = (np.cumsum(sizes) - (sizes - 1) / 2)[ranks]
    return out


# ---------------------------------------------------------------------- ranks without gaps


def dense_ranks(values: NDArray[Any], listed: Mask, unlisted: Unlisted) -> RankArray:
    """Return bucket indices without gaps, row by row: smaller values are better, equal values share a bucket."""
    check_unlisted(unlisted)
    ranks = np.empty(values.shape, dtype=np.int32)
    encode = ranks_by_bits if have_few_values(values, listed) else ranks_by_sorting
    step = max(CHUNK_CELLS // max(values.shape[1], 1), 1)
    for start in range(0, len(values), step):
        rows = slice(start, start + step)
        ranks[rows] = encode(values[rows], listed[rows])
        if unlisted == "free":
            ranks[rows][~listed[rows]] = FREE
    return ranks


def have_few_values(values: NDArray[Any], listed: Mask) -> bool:
    """Return whether all listed values are integers from 0 to 62."""
    if values.dtype.kind not in "iu" or not values.size or not hasattr(np, "bitwise_count"):
        return False
    return bool(values.min(where=listed, initial=0) >= 0 and values.max(where=listed, initial=0) < MAX_BITS)


def ranks_by_bits(values: NDArray[Any], listed: Mask) -> RankArray:
    """Return the number of distinct smaller listed values of the row; for unlisted items that of all listed values."""
    bits = np.left_shift(np.uint64(1), np.where(listed, values, 0).astype(np.uint64))
    present = np.bitwise_or.reduce(np.where(listed, bits, np.uint64(0)), axis=1, keepdims=True)
    below = np.where(listed, bits - np.uint64(1), ~np.uint64(0))
    return np.bitwise_count(present & below).astype(np.int32)


def ranks_by_sorting(values: NDArray[Any], listed: Mask) -> RankArray:
    """Return the ranks as :func:`ranks_by_bits`, for arbitrary numbers."""
    order = np.lexsort((values, ~listed), axis=-1)  # unlisted items after the listed items of each row
    in_order = np.take_along_axis(values, order, axis=1)
    is_listed = np.take_along_axis(listed, order, axis=1)
    step = np.zeros(values.shape, dtype=np.int32)
    step[:, 1:] = (in_order[:, 1:] != in_order[:, :-1]) | (is_listed[:, 1:] != is_listed[:, :-1])
    step[:, 1:] &= is_listed[:, 1:] | is_listed[:, :-1]
    ranks = np.empty(values.shape, dtype=np.int32)
    np.put_along_axis(ranks, order, np.cumsum(step, axis=1, dtype=np.int32), axis=1)
    return ranks


# ---------------------------------------------------------------------- counts


def check_counts(counts: Any, n_rankings: int) -> IntArray:
    """Return counts as a read-only integer array, one positive integer per ranking."""
    if counts is None:
        checked = np.ones(n_rankings, dtype=np.int64)
    else:
        given = check_array("counts", counts, f"one whole number for each of {n_rankings} rankings")
        if given.shape != (n_rankings,):
            raise RankingError(f"counts has shape {given.shape}; it must have one count for each of {n_rankings} rows")
        checked = as_integers(given, "count")
        if checked.size and checked.min() < 1:
            row = int(np.argmax(checked < 1))
            raise RankingError(f"row {row} has count {checked[row]}; a count is a positive number of voters")
        check_total_count(checked)
    checked.flags.writeable = False
    return checked


def check_total_count(counts: IntArray) -> None:
    """Raise an error if the sum of the counts is not exact as a float."""
    total = float(counts.sum(dtype=np.float64))
    if total > 2 * MAX_VOTERS or int(counts.sum()) > MAX_VOTERS:  # the second sum is exact if the first is small
        raise RankingError(f"counts: the sum is {total:.4g} voters; it must be at most 2^53, about 9e15")


def sum_counts(counts: IntArray, groups: NDArray[Any], n_groups: int) -> IntArray:
    """Return the exact sum of the counts of each group."""
    sums = np.zeros(n_groups, dtype=np.int64)
    np.add.at(sums, groups, counts)
    return sums


def as_integers(values: NDArray[Any], what: str) -> IntArray:
    """Return a one-dimensional array as 64-bit integers; raise an error for the first value that is not an integer."""
    masked: Mask = np.asarray(np.ma.getmaskarray(values))
    values = np.asarray(values)
    if values.dtype.kind not in "iufOU" and values.size:
        raise RankingError(f"{what}s must be whole numbers; got an array of {values.dtype}")
    if values.dtype.kind in "iu" and not masked.any() and (not values.size or int(values.max()) <= MAX_VOTERS):
        return values.astype(np.int64)
    integers = [
        None if hidden else as_integer(value) for value, hidden in zip(values.tolist(), masked.tolist(), strict=True)
    ]
    for row, number in enumerate(integers):
        if number is None:
            raise RankingError(
                f"row {row} has {what} {'masked' if masked[row] else values[row]}; {what}s are whole numbers"
            )
        if abs(number) > MAX_VOTERS:
            raise RankingError(f"row {row} has {what} {number}; a {what} is at most 2^53, about 9e15")
    return np.array(integers, dtype=np.int64)


def as_integer(value: object) -> int | None:
    """Return an integer, or None for a value that is not one."""
    if isinstance(value, str):
        try:
            value = float(value) if "." in value else int(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    if isinstance(value, numbers.Integral):
        return int(value)
    number = float(value)
    return int(number) if number.is_integer() else None

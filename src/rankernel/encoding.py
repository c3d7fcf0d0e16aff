"""Conversion of tables of ranks or scores, item names and counts to checked arrays.

Inside the package a ranking is a row of *ranks*: ``ranks[a]`` is the bucket index of item ``a``, 0 is the best bucket,
indices have no gaps, and -1 marks a free item, of which nothing is known.
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
from rankernel.errors import RankingError

Unlisted = Literal["last", "free"]

FREE = -1
INTERVAL: type = np.timedelta64  # says that it is a number, and is none
BLOCK = 2**21  # cells made dense at once: what is made on the way stays small
MOST_BITS = 63  # values that a row may have to be made dense by the bits of one number


def check_unlisted(unlisted: str) -> None:
    """Refuse a reading of unlisted items other than the two there are."""
    if not isinstance(unlisted, str) or unlisted not in get_args(Unlisted):
        raise RankingError(
            f"unlisted={short_repr(unlisted)} is not known; items that a row does not list are 'last' or 'free'"
        )


def check_items(items: Iterable[object]) -> tuple[str, ...]:
    """Return item names as strings, refusing none at all, missing names and repeated ones."""
    if isinstance(items, str):
        raise RankingError(f"items={printable(items)!r} is one string; give a list of item names")
    if isinstance(items, bytes) or not isinstance(items, Iterable) or getattr(items, "ndim", 1) == 0:
        raise RankingError(f"items={short_repr(items)} is not possible; give a list of item names")
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


def is_missing(value: object) -> bool:
    """Say whether a value stands for nothing: None, NaN, a masked cell, or a frame library's missing value."""
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, numbers.Real):
        return not isinstance(value, INTERVAL) and math.isnan(value)
    return type(value).__name__ in ("NAType", "NaTType")


def is_list(data: Any) -> bool:
    """Say whether something can be gone through, and is no text and no single number."""
    return isinstance(data, Iterable) and not isinstance(data, str | bytes) and getattr(data, "ndim", 1) > 0


def is_frame(data: Any) -> bool:
    """Say whether data is a frame of pandas or polars."""
    return hasattr(data, "columns") and hasattr(data, "to_numpy")


# ---------------------------------------------------------------------- tables of numbers


@dataclass(frozen=True)
class NumberTable:
    """Numbers that order the items of each row, smaller is better; which cells are missing, and which say -1."""

    numbers: NDArray[Any]
    missing: Mask
    free: Mask
    items: tuple[str, ...]

    def ranks(self, unlisted: Unlisted) -> RankArray:
        """Return bucket indices; what is missing is last or free, and what says -1 is read in the same way."""
        return dense_ranks(self.numbers, ~(self.missing | self.free), unlisted)

    def plain_ranks(self, unlisted: Unlisted | None) -> RankArray:
        """Return bucket indices of a plain array: -1 is free, and what is missing must be said."""
        if unlisted is None:
            check_no_missing(self.missing, self.items)
        ranks = self.ranks(unlisted or "free")
        ranks[self.free] = FREE
        return ranks


def check_no_missing(missing: Mask, items: Sequence[object]) -> None:
    """Refuse missing cells of which nobody said what they mean."""
    if missing.any():
        row, column = (int(i) for i in np.argwhere(missing)[0])
        raise RankingError(
            f"row {row}, item {printable(items[column])!r} is missing (NaN), and a plain array does not say what that "
            "means: use Rankings.from_ranks(data, unlisted='last') if missing items stand behind the others, or "
            "unlisted='free' if nothing is known of them"
        )


def number_table(data: Any, items: Iterable[object] | None, scores: bool) -> NumberTable:
    """Return a table of ranks or scores, checked: an array, list of rows or frame, whose columns name the items."""
    what = "score" if scores else "rank"
    values, hidden, columns = table(data, what)
    if values.shape == (0, 0) and items is not None:
        names = check_items(items)
        values = hidden = np.empty((0, len(names)), dtype=bool)
    if items is None:
        names = columns if columns is not None else check_items(range(values.shape[1]))
    else:
        names = check_items(items)
        if len(names) != values.shape[1]:
            raise RankingError(f"items: there are {len(names)} names, but the table has {values.shape[1]} columns")
    if not values.size:
        return NumberTable(values.astype(np.int64), hidden.astype(bool), hidden.astype(bool), names)
    given, missing = numeric(values, hidden, names, what)
    if scores:
        return NumberTable(negated(given), missing, np.zeros(given.shape, dtype=bool), names)
    return NumberTable(given, missing, checked_ranks(given, missing, names), names)


def table(data: Any, what: str) -> tuple[NDArray[Any], Mask, tuple[str, ...] | None]:
    """Return the values of an array, list of rows or data frame, what is masked, and the names of its columns."""
    if is_frame(data):
        values = np.asarray(data.to_numpy())
        return values, np.zeros(values.shape, dtype=bool), check_items(data.columns)
    if isinstance(data, np.ndarray):
        values = data
    elif not is_list(data):
        raise RankingError(
            f"{short_repr(data)} is not a table of {what}s; give Rankings, or an array with one row a ranking"
        )
    else:
        values = rectangle(data, what)
    if values.ndim != 2:
        raise RankingError(
            f"expected a table of {what}s with one row a ranking and one column an item; got {values.ndim} dimension(s)"
        )
    hidden = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else np.zeros(values.shape, dtype=bool)
    return np.asarray(values), hidden, None


def rectangle(rows: Iterable[Any], what: str) -> NDArray[Any]:
    """Return a list of rows as an array, naming the first row of another length."""
    lists = []
    for number, row in enumerate(rows):
        if not is_list(row):
            raise RankingError(f"row {number} is {short_repr(row)}; a row of a table of {what}s is a list of numbers")
        lists.append(list(row))
        if len(lists[-1]) != len(lists[0]):
            raise RankingError(
                f"row {number} has {len(lists[-1])} entries but row 0 has {len(lists[0])}; a table of ranks is "
                "rectangular (for lists of item names use Rankings.from_orders)"
            )
    return array_of(lists) if lists else np.empty((0, 0))


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


def numeric(values: NDArray[Any], hidden: Mask, items: Sequence[str], what: str) -> tuple[NDArray[Any], Mask]:
    """Return a table as numbers and which are missing, naming the first cell that is no number."""
    if values.dtype.kind == "b":
        raise RankingError(f"the table holds true/false values; {what}s are numbers")
    if values.dtype.kind in "mMc":
        raise RankingError(f"the table of {what}s holds {values.dtype} values; {what}s are numbers")
    if values.dtype.kind not in "iuf":
        out = np.empty(values.shape, dtype=np.float64)
        for (row, column), value in np.ndenumerate(values):
            try:
                out[row, column] = np.nan if hidden[row, column] or is_missing(value) else float(value)
            except (TypeError, ValueError):
                raise RankingError(
                    f"row {row}, item {printable(items[column])!r} holds {printable(value)!r}; a {what} is a number"
                ) from None
        values = out
    return values, (hidden | np.isnan(values)) if values.dtype.kind == "f" else hidden


def negated(scores: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in the other order."""
    if scores.dtype.kind == "f":
        return -scores
    # Negating the order, not the numbers: the smallest signed integer and all unsigned ones have no negative.
    return -np.unique(scores, return_inverse=True)[1].reshape(scores.shape)


def checked_ranks(values: NDArray[Any], missing: Mask, items: Sequence[str]) -> Mask:
    """Return which cells of a table of ranks say -1, having refused numbers that are no ranks."""
    free = np.asarray((values == FREE) & ~missing)
    if values.dtype.kind == "f":
        listed = np.asarray(~(missing | free))
        complain(listed & ~np.isfinite(values), values, items, "a rank is a finite number")
        broken: Mask = listed & (np.floor(values, where=listed, out=np.zeros(values.shape)) != values)
        rows = np.flatnonzero(broken.any(axis=1))
        shared = np.zeros(values.shape, dtype=bool)
        shared[rows] = are_average_ranks(values[rows], listed[rows])
        complain(
            broken & ~shared,
            values,
            items,
            "a rank is a whole number, or the mean of the places that tied items share, as df.rank() and rankdata "
            "give it (for other numbers use Rankings.from_scores, where larger is better)",
        )
    if values.dtype.kind != "u":
        complain(~missing & (values < FREE), values, items, "a rank is 0 or more, and -1 means not ranked")
    return free


def are_average_ranks(values: NDArray[Any], listed: Mask) -> Mask:
    """Say of each row, in every cell, whether its numbers are the mean places of tied items, from 1 or from 0."""
    off = np.where(listed, values - mean_places_of_ties(values, listed), 0.0)
    fits = (off == 0).all(axis=1, keepdims=True) | np.where(listed, off == -1, True).all(axis=1, keepdims=True)
    return np.asarray(np.broadcast_to(fits, values.shape))


def mean_places_of_ties(values: NDArray[Any], listed: Mask) -> FloatArray:
    """Return the mean of the places, from 1, that each listed item shares with those tied with it."""
    buckets = dense_ranks(values, listed, "free")
    places = np.empty(values.shape)
    for row, ranks in enumerate(buckets):
        sizes = np.bincount(ranks[ranks != FREE], minlength=1)
        before = np.cumsum(sizes) - sizes
        places[row] = (before + (sizes + 1) / 2)[ranks]
    return places


def complain(wrong: Mask, values: NDArray[Any], items: Sequence[str], wanted: str) -> None:
    """Raise for the first wrong cell of a table, if there is one."""
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        raise RankingError(f"row {row}, item {printable(items[column])!r} holds {values[row, column]}; {wanted}")


# ---------------------------------------------------------------------- ranks without gaps


def dense_ranks(values: NDArray[Any], listed: Mask, unlisted: Unlisted) -> RankArray:
    """Return bucket indices without gaps, row by row: smaller values are better, equal ones share a bucket."""
    check_unlisted(unlisted)
    ranks = np.empty(values.shape, dtype=np.int32)
    few = few_values(values, listed)
    step = max(BLOCK // max(values.shape[1], 1), 1)
    for start in range(0, len(values), step):
        rows = slice(start, start + step)
        ranks[rows] = (dense_by_bits if few else dense_by_sorting)(values[rows], listed[rows])
        if unlisted == "free":
            ranks[rows][~listed[rows]] = FREE
    return ranks


def few_values(values: NDArray[Any], listed: Mask) -> bool:
    """Say whether all listed values are whole numbers from 0 to below the bits of one number."""
    if values.dtype.kind not in "iu" or not values.size or not hasattr(np, "bitwise_count"):
        return False
    return bool(values.min(where=listed, initial=0) >= 0 and values.max(where=listed, initial=0) < MOST_BITS)


def dense_by_bits(values: NDArray[Any], listed: Mask) -> RankArray:
    """Return how many different listed values of the row are smaller; for unlisted items, how many there are."""
    bits = np.left_shift(np.uint64(1), np.where(listed, values, 0).astype(np.uint64))
    seen = np.bitwise_or.reduce(np.where(listed, bits, np.uint64(0)), axis=1, keepdims=True)
    below = np.where(listed, bits - np.uint64(1), ~np.uint64(0))
    return np.bitwise_count(seen & below).astype(np.int32)


def dense_by_sorting(values: NDArray[Any], listed: Mask) -> RankArray:
    """Return the same for any numbers."""
    # Sorting by (unlisted, value) puts the unlisted items of each row behind the listed ones.
    order = np.lexsort((values, ~listed), axis=-1)
    ordered = np.take_along_axis(values, order, axis=1)
    shown = np.take_along_axis(listed, order, axis=1)
    step = np.zeros(values.shape, dtype=np.int32)
    step[:, 1:] = (ordered[:, 1:] != ordered[:, :-1]) | (shown[:, 1:] != shown[:, :-1])
    step[:, 1:] &= shown[:, 1:] | shown[:, :-1]
    ranks = np.empty(values.shape, dtype=np.int32)
    np.put_along_axis(ranks, order, np.cumsum(step, axis=1, dtype=np.int32), axis=1)
    return ranks


MAX_VOTERS = 2**53


def check_counts(counts: Any, n_rankings: int) -> IntArray:
    """Return multiplicities as a read-only integer array, one positive whole number for each ranking."""
    if counts is None:
        found = np.ones(n_rankings, dtype=np.int64)
    else:
        given = check_array("counts", counts, f"one whole number for each of {n_rankings} rankings")
        if given.shape != (n_rankings,):
            raise RankingError(
                f"counts has shape {given.shape} but there are {n_rankings} rankings; give one count for each"
            )
        found = as_integers(given, "count")
        if found.size and found.min() < 1:
            row = int(np.argmax(found < 1))
            raise RankingError(f"row {row} has count {found[row]}; a count is a positive number of voters")
        check_total_count(found)
    found.flags.writeable = False
    return found


def check_total_count(counts: IntArray) -> None:
    """Refuse more voters in all than a float can tell apart: sums and shares of voters would be wrong."""
    total = float(counts.sum(dtype=np.float64))
    if total > 2 * MAX_VOTERS or int(counts.sum()) > MAX_VOTERS:  # the second sum is exact, and fits
        raise RankingError(f"counts add up to {total:.4g} voters; there can be at most 2^53, about 9e15")


def sum_counts(counts: IntArray, groups: NDArray[Any], n_groups: int) -> IntArray:
    """Return the sum of the counts of each group, exactly."""
    sums = np.zeros(n_groups, dtype=np.int64)
    np.add.at(sums, groups, counts)
    return sums


def as_integers(values: NDArray[Any], what: str) -> IntArray:
    """Return a one-dimensional array as 64-bit integers, naming the row where it is none."""
    masked: Mask = np.asarray(np.ma.getmaskarray(values))
    values = np.asarray(values)
    if values.dtype.kind not in "iufOU" and values.size:
        raise RankingError(f"{what}s must be whole numbers; got an array of {values.dtype}")
    if values.dtype.kind in "iu" and not masked.any() and (not values.size or int(values.max()) <= MAX_VOTERS):
        return values.astype(np.int64)
    whole = [
        None if hidden else as_whole(value) for value, hidden in zip(values.tolist(), masked.tolist(), strict=True)
    ]
    for row, number in enumerate(whole):
        if number is None:
            raise RankingError(
                f"row {row} has {what} {'masked' if masked[row] else values[row]}; {what}s are whole numbers"
            )
        if abs(number) > MAX_VOTERS:
            raise RankingError(f"row {row} has {what} {number}; a {what} is at most 2^53, about 9e15")
    return np.array(whole, dtype=np.int64)


def as_whole(value: object) -> int | None:
    """Return a whole number as Python knows it, and None for anything else."""
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

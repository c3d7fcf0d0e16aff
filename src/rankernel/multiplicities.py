"""How many voters stand behind each row: positive whole numbers, in all no more than a float can tell apart."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import IntArray, Mask
from rankernel._utils.checks import check_array
from rankernel.errors import RankingError

MOST_VOTERS = 2**53


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
        found = whole_numbers(given, "count")
        if found.size and found.min() < 1:
            row = int(np.argmax(found < 1))
            raise RankingError(f"row {row} has count {found[row]}; a count is a positive number of voters")
        check_total(found)
    found.flags.writeable = False
    return found


def check_total(counts: IntArray) -> None:
    """Refuse more voters in all than a float can tell apart: sums and shares of voters would be wrong."""
    total = float(counts.sum(dtype=np.float64))
    if total > 2 * MOST_VOTERS or int(counts.sum()) > MOST_VOTERS:  # the second sum is exact, and fits
        raise RankingError(f"counts add up to {total:.4g} voters; there can be at most 2^53, about 9e15")


def added_up(counts: IntArray, groups: NDArray[Any], n_groups: int) -> IntArray:
    """Return the sum of the counts of each group, exactly."""
    sums = np.zeros(n_groups, dtype=np.int64)
    np.add.at(sums, groups, counts)
    return sums


def whole_numbers(values: NDArray[Any], what: str) -> IntArray:
    """Return a one-dimensional array as 64-bit integers, naming the row where it is none."""
    masked: Mask = np.asarray(np.ma.getmaskarray(values))
    values = np.asarray(values)
    if values.dtype.kind not in "iufOU" and values.size:
        raise RankingError(f"{what}s must be whole numbers; got an array of {values.dtype}")
    if values.dtype.kind in "iu" and not masked.any() and (not values.size or int(values.max()) <= MOST_VOTERS):
        return values.astype(np.int64)
    whole = [
        None if hidden else as_whole(value) for value, hidden in zip(values.tolist(), masked.tolist(), strict=True)
    ]
    for row, number in enumerate(whole):
        if number is None:
            raise RankingError(
                f"row {row} has {what} {'masked' if masked[row] else values[row]}; {what}s are whole numbers"
            )
        if abs(number) > MOST_VOTERS:
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

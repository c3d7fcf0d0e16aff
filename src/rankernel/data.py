"""Functions that accept rankings or preferences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import IntArray, Mask
from rankernel._utils.checks import check_list, printable
from rankernel.errors import RankingError
from rankernel.preferences import BEFORE, NOT_BEFORE, Preferences, pairs_text
from rankernel.rankings import (
    FREE,
    Rankings,
    Unlisted,
    check_no_comparisons,
    check_total_count,
    check_unlisted,
    dense_ranks,
    order_text,
    relations_of_ranks,
    table_ranks,
)

Data = Rankings | Preferences

CHUNK_PAIRS = 2**20


def as_data(data: Any, unlisted: Unlisted | None = None, name: str = "X") -> Data:
    """Return data as Rankings, or as Preferences if not all preferences are rankings.

    In a plain array -1 is free, and missing cells are an error unless ``unlisted`` is given.

    Examples
    --------
    >>> type(as_data(Preferences.from_pairs([[("a", "b"), ("a", "c")]]))).__name__
    'Rankings'
    >>> type(as_data(Preferences.from_pairs([[("a", "b"), ("c", "d")]]))).__name__
    'Preferences'
    >>> as_data([[0, np.nan, -1]], unlisted="last").ranks
    array([[ 0,  1, -1]], dtype=int32)
    """
    if unlisted is not None:
        check_unlisted(unlisted)
    if isinstance(data, Rankings):
        return data
    check_no_comparisons(data, name)
    is_array = isinstance(data, np.ndarray) and data.ndim == 2 and data.dtype.kind in "if" and data.size
    # Arrays of relations, as given by np.asarray(preferences), hold two numbers that are no ranks.
    if is_array and data.flat[0] in (BEFORE, NOT_BEFORE) and ((data == BEFORE) | (data == NOT_BEFORE)).all():
        data = Preferences._from_array(data)
    if isinstance(data, Preferences):
        return data.to_rankings() if data.is_ranking().all() else data
    try:
        return Rankings._trusted(*table_ranks(data, None, unlisted, plain=True))
    except RankingError as error:
        raise RankingError(f"{name}: ", *error.parts) from None


def as_nonempty_data(data: Any) -> Data:
    """Return data as Rankings or Preferences; raise an error if there are no rows."""
    given = as_data(data)
    if not len(given):
        raise RankingError("X: there are no rankings; give at least one")
    return given


def check_same_items(X: Any, Y: Any) -> None:
    """Raise an error if two data sets have different item names; plain arrays have none."""
    if not (isinstance(X, Data) and isinstance(Y, Data)) or X.items == Y.items:
        return
    advice = "X.with_items(Y.items)" if isinstance(X, Rankings) else "Y.with_items(X.items)"
    raise RankingError(f"X and Y have different item names; align them first: {advice}")


# ---------------------------------------------------------------------- new data from old


def concat(parts: Iterable[Any]) -> Any:
    """Return the concatenation of several data sets with the same items, in the item order of the first.

    If one of them is Preferences that are not all rankings, the result is Preferences.

    Parameters
    ----------
    parts : list of Rankings or Preferences
        The data sets.

    Returns
    -------
    Rankings or Preferences
        The rows of all parts, with their counts.

    Examples
    --------
    >>> a, b = Rankings.from_orders([["x", "y"]]), Rankings.from_orders([["y", "x"]])
    >>> concat([a, b])
    Rankings: 2 rankings of 2 items (2 full)
      x > y
      y > x
    """
    given = check_list("parts", parts, "a list of rankings")
    sets = [as_data(part, name=f"parts[{number}]") for number, part in enumerate(given)]
    if not sets:
        raise RankingError("parts is empty; give at least one set of rankings")
    items = sets[0].items
    for number, part in enumerate(sets):
        different = set(items) ^ set(part.items)
        if different:
            raise RankingError(
                f"parts[0] and parts[{number}] have different items ({printable(min(different))!r} is in one only); "
                "use .with_items(...) first"
            )
    aligned = [part if part.items == items else part.with_items(items) for part in sets]
    counts = np.concatenate([part.counts for part in aligned])
    check_total_count(counts)
    rankings = [part for part in aligned if isinstance(part, Rankings)]
    if len(rankings) == len(aligned):
        return Rankings._trusted(np.concatenate([part.ranks for part in rankings]), items, counts)
    orders = [Preferences.from_rankings(part) if isinstance(part, Rankings) else part for part in aligned]
    users = tuple(str(number) for number in range(len(counts)))  # names may occur in several sets
    contracted = tuple(groups for part in orders for groups in part.contracted)
    return Preferences._trusted(np.concatenate([part.packed for part in orders]), items, counts, users, contracted)


def with_counts(data: Data, counts: Any) -> Data:
    """Return the rows with other counts."""
    return data._replaced(counts=np.asarray(counts).astype(np.int64), labels={})


def select_items(data: Data, columns: list[int]) -> Data:
    """Return the rows restricted to some of the items, in the given order."""
    items = tuple(data.items[column] for column in columns)
    if isinstance(data, Rankings):
        ranks = data.ranks[:, columns]
        return Rankings._trusted(dense_ranks(ranks, ranks != FREE, "free"), items, data.counts)
    before = data.before[:, columns][:, :, columns]
    return Preferences._trusted(np.packbits(before, axis=2), items, data.counts, data.users, ((),) * len(data))


# ---------------------------------------------------------------------- properties of rows


def format_rows(data: Data) -> Iterator[str]:
    """Return each row as text: ``a > {b, c}``, or the pairs of a user, ``a > b, c > d``."""
    if isinstance(data, Preferences):
        return (pairs_text(pairs, ()) for pairs in data.to_pairs())
    return (order_text(order, data.items) for order in data.to_orders())


def has_ordered_pair(data: Data) -> Mask:
    """Return whether each row orders at least one pair of items."""
    if isinstance(data, Rankings):
        return np.asarray(data.n_buckets > 1)
    return np.asarray(data.before.any(axis=(1, 2)))


def pairwise_wins(data: Data) -> IntArray:
    """Return the number of voters who order item x before item y, shape (n_items, n_items)."""
    return sum_relations(data, relations_of_ranks)


def pairwise_ties(data: Rankings) -> IntArray:
    """Return the number of voters who tie items x and y, shape (n_items, n_items)."""
    return sum_relations(data, lambda ranks: (ranks[:, :, None] == ranks[:, None, :]) & (ranks != FREE)[:, :, None])


def sum_relations(data: Data, relation: Any) -> IntArray:
    """Return the sum over voters of the relations of rankings, or of the strict relations of preferences."""
    total = np.zeros((data.n_items, data.n_items), dtype=np.int64)
    step = max(CHUNK_PAIRS // max(data.n_items**2, 1), 1)
    for start in range(0, len(data), step):
        chunk = data[start : start + step]
        related = chunk.before if isinstance(chunk, Preferences) else relation(chunk.ranks)
        total += np.tensordot(chunk.counts, related, axes=1)
    return total


# ---------------------------------------------------------------------- groups


def group_codes(groups: NDArray[Any]) -> tuple[tuple[str, ...], IntArray]:
    """Return the distinct names of groups, and for each row the index of its group; texts are in natural order."""
    if groups.dtype.kind not in "OUS":
        names, codes = np.unique(groups, return_inverse=True)
        return tuple(map(str, names.tolist())), np.asarray(codes.ravel(), dtype=np.int64)
    texts = list(map(str, groups.tolist()))
    index = {name: number for number, name in enumerate(sorted(set(texts), key=lambda name: (natural_key(name), name)))}
    return tuple(index), np.fromiter(map(index.__getitem__, texts), np.int64, len(texts))


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Return a key that sorts names naturally, with numbers by their size."""
    parts = re.split(r"([0-9]+)", name.casefold())
    return [(0, int(part), "") if index % 2 else (1, 0, part) for index, part in enumerate(parts)]

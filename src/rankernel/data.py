"""Functions that accept rankings or preferences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import IntArray, Mask
from rankernel._utils.checks import check_list, printable
from rankernel.encoding import FREE, Unlisted, check_total_count, check_unlisted, dense_ranks, number_table
from rankernel.errors import RankingError
from rankernel.preferences import BEFORE, NOT_BEFORE, Preferences, pairs_text, relations_of_ranks
from rankernel.rankings import Rankings, order_text

Data = Rankings | Preferences

PAIRS_AT_ONCE = 2**20  # entries of relations in memory at once


def as_data(data: Any, unlisted: Unlisted | None = None, name: str = "X") -> Data:
    """Return preferences as rankings where every user has one, and anything else that is no Rankings as its ranks.

    In a plain array -1 is free. What is missing (NaN, None, a masked cell) is read as ``unlisted`` says, and refused
    where nothing is said.

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
    if is_relations(data):
        data = Preferences._from_array(np.asarray(data))
    if isinstance(data, Preferences):
        return data.to_rankings() if data.is_ranking().all() else data
    try:
        table = number_table(data, None, scores=False)
        return Rankings._trusted(table.plain_ranks(unlisted), table.items)
    except RankingError as error:
        raise RankingError(f"{name}: {error}") from None


def is_relations(data: Any) -> bool:
    """Say whether an array is one of relations, as ``np.asarray`` makes it of preferences."""
    if not isinstance(data, np.ndarray) or data.ndim != 2 or data.dtype.kind not in "if" or not data.size:
        return False
    return data.flat[0] in (BEFORE, NOT_BEFORE) and bool(((data == BEFORE) | (data == NOT_BEFORE)).all())


def with_counts(data: Data, counts: Any) -> Data:
    """Return the same rows with other numbers of voters."""
    numbers = np.asarray(counts).astype(np.int64)
    if isinstance(data, Rankings):
        return Rankings._trusted(data.ranks, data.items, numbers)
    return Preferences._trusted(data.packed, data.items, numbers, data.users, data.contracted)


def rename_items(data: Data, items: tuple[str, ...]) -> Data:
    """Return the same rows about items of other names."""
    if isinstance(data, Rankings):
        return Rankings._trusted(data.ranks, items, data.counts)
    return Preferences._trusted(data.packed, items, data.counts, data.users, data.contracted)


def format_rows(data: Data) -> Iterator[str]:
    """Return each row in words: ``a > {b, c}``, or the pairs of a user, ``a > b, c > d``.

    Examples
    --------
    >>> list(format_rows(Preferences.from_pairs([[("a", "b"), ("c", "d")]])))
    ['a > b, c > d']
    """
    if isinstance(data, Preferences):
        return (pairs_text(pairs, ()) for pairs in data.to_pairs())
    return (order_text(order, data.items) for order in data.to_orders())


def drop_item(data: Data, item: int) -> Data:
    """Return the same rows without one of the items: what they say of the others.

    Examples
    --------
    >>> drop_item(Rankings.from_orders([["a", "b", "c"]]), 1)
    Rankings: 1 ranking of 2 items (1 full)
      a > c
    """
    return select_items(data, [column for column in range(data.n_items) if column != item])


def select_items(data: Data, columns: list[int]) -> Data:
    """Return what the rows say of some of the items, in this order.

    Examples
    --------
    >>> select_items(Rankings.from_orders([["a", "b", "c"]]), [2, 0])
    Rankings: 1 ranking of 2 items (1 full)
      a > c
    """
    items = tuple(data.items[column] for column in columns)
    if isinstance(data, Rankings):
        ranks = data.ranks[:, columns]
        return Rankings._trusted(dense_ranks(ranks, ranks != FREE, "free"), items, data.counts)
    before = data.before[:, columns][:, :, columns]
    nothing = ((),) * len(data)
    return Preferences._trusted(np.packbits(before, axis=2), items, data.counts, data.users, nothing)


def has_ordered_pair(data: Data) -> Mask:
    """Say of each row whether it puts some item before another."""
    if isinstance(data, Rankings):
        return np.asarray(data.n_buckets > 1)
    return np.asarray(data.before.any(axis=(1, 2)))


def pairwise_wins(data: Data) -> IntArray:
    """Return the number of voters who order item x before item y, shape (n_items, n_items).

    Examples
    --------
    >>> pairwise_wins(Rankings.from_orders([["a", "b"], ["b", "a"], [{"a", "b"}]], counts=[3, 1, 5]))
    array([[0, 3],
           [1, 0]])
    """
    wins = np.zeros((data.n_items, data.n_items), dtype=np.int64)
    step = max(PAIRS_AT_ONCE // max(data.n_items**2, 1), 1)
    for start in range(0, len(data), step):
        block = data[start : start + step]
        before = block.before if isinstance(block, Preferences) else relations_of_ranks(block.ranks)
        wins += np.tensordot(block.counts, before, axes=1)
    return wins


def as_nonempty_data(data: Any) -> Data:
    """Return rankings or preferences, refusing none at all."""
    given = as_data(data)
    if not len(given):
        raise RankingError("X: there are no rankings; give at least one")
    return given


def concat(parts: Iterable[Any]) -> Any:
    """Return the rankings of several sets as one, over the items of the first; all must have the same items.

    Where one of them is preferences that are no rankings, all become preferences.

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
        raise RankingError("parts: there is nothing to concatenate; give at least one set of rankings")
    items = sets[0].items
    for number, part in enumerate(sets):
        different = set(items) ^ set(part.items)
        if different:
            name = printable(min(different))
            raise RankingError(
                f"sets 0 and {number} are not over the same items ({name!r} is in one only); bring them to a common "
                "item set first, with .with_items(...)"
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


def check_same_items(X: Any, Y: Any) -> None:
    """Refuse two sets that name their items differently; sets without names are taken as they are."""
    if not (isinstance(X, Data) and isinstance(Y, Data)) or X.items == Y.items:
        return
    advice = (
        "Y.with_items(X.items)"
        if isinstance(Y, Rankings)
        else "X.with_items(Y.items)"
        if isinstance(X, Rankings)
        else "Preferences.from_pairs(Y.to_pairs(), X.items, Y.counts, Y.users)"
    )
    raise RankingError(f"X and Y name their items differently; align them first: {advice}")


def group_codes(labels: NDArray[Any]) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of the groups, and for each label the number of its group: numbers by size, texts naturally.

    Examples
    --------
    >>> names, numbers = group_codes(np.array(["ward 10", "ward 2", "ward 10"]))
    >>> names, numbers.tolist()
    (('ward 2', 'ward 10'), [1, 0, 1])
    """
    labels = labels.astype(str) if labels.dtype == object else labels
    names, numbers = np.unique(labels, return_inverse=True)
    order = np.arange(len(names))
    if labels.dtype.kind in "US":
        order = np.array(sorted(order, key=lambda place: natural_key(str(names[place]))), dtype=np.intp)
    return tuple(map(str, names[order].tolist())), np.asarray(np.argsort(order)[numbers.ravel()], dtype=np.int64)


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Return what sorts names as people do.

    Examples
    --------
    >>> sorted(["ward 10", "ward 2", "Ward 1"], key=natural_key)
    ['Ward 1', 'ward 2', 'ward 10']
    """
    parts = re.split(r"([0-9]+)", name.casefold())
    return [(0, int(part), "") if place % 2 else (1, 0, part) for place, part in enumerate(parts)]

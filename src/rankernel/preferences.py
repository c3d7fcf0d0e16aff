"""Preferences: one immutable type for pairwise preferences of users, as partial orders of one set of items."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankernel._utils import Indices, IntArray, Mask, RankArray
from rankernel._utils.checks import check_instance, check_list, check_names, plural, printable, short_repr
from rankernel._utils.resources import check_bytes, slices
from rankernel.columns import Column, Roles, find_columns, frame_columns
from rankernel.errors import RankingError
from rankernel.rankings import (
    FREE,
    PARTIAL,
    Labels,
    Rankings,
    Rows,
    as_rankings,
    check_counts,
    check_items,
    is_frame,
    is_list,
    is_missing,
    relations_of_ranks,
    sum_counts,
    unique_rows,
)

Packed = NDArray[np.uint8]
Pair = tuple[str, str]
Groups = tuple[tuple[str, ...], ...]

MAX_SHOWN, MAX_SHOWN_PAIRS = 8, 6
NOT_BEFORE, BEFORE = -2, -3  # entries of an array of relations, which no array of ranks contains
CHUNK_BITS = 2**26


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Preferences(Rows):
    """Pairwise preferences: one partial order of the items per user.

    A partial order is transitive: it contains all pairs that follow from the stated ones. Items of a preference cycle
    of a user are *contracted* into a tie: their order is unknown, and an item that is better (or worse) than one of
    them is better (or worse) than all of them. Use :meth:`from_pairs` or :meth:`from_rankings`.

    Examples
    --------
    >>> prefs = Preferences.from_pairs([[("tea", "milk"), ("milk", "coffee")], [("coffee", "tea")]])
    >>> prefs
    Preferences: 2 users, 3 items
      0: tea > milk, milk > coffee
      1: coffee > tea
    >>> prefs.before[0].astype(int)
    array([[0, 1, 1],
           [0, 0, 1],
           [0, 0, 0]])
    >>> prefs.n_extensions()
    [1, 3]
    """

    #: The relations, one bit per pair: shape (n_users, n_items, n_items / 8 rounded up).
    packed: Packed
    #: Names of the items.
    items: tuple[str, ...]
    #: Number of voters with each partial order.
    counts: IntArray
    #: Names of the users.
    users: tuple[str, ...]
    #: For each user the groups of items that were contracted into ties because of a preference cycle.
    contracted: tuple[Groups, ...]
    #: Label columns of a file: for each, one string per user.
    labels: Labels
    #: How the file was read from which the preferences come; None for other preferences and for slices.
    source: Any
    _of_rows = ("packed", "counts", "users", "contracted")
    _compared = ("items", "users", "packed", "counts")
    _index_error = "preferences are indexed by user; use .before[users, x, y] for single pairs"

    @classmethod
    def from_pairs(
        cls,
        pairs: Any,
        items: Iterable[object] | None = None,
        *,
        counts: Any = None,
        users: Iterable[object] | None = None,
        columns: Mapping[str, str] | None = None,
        ignore: Sequence[str] = (),
    ) -> Preferences:
        """Build from pairs (better, worse).

        Columns of a table are recognised by their names: ``winner`` and ``loser`` (also better and worse, chosen and
        rejected) in any order; or ``model_a``, ``model_b`` and ``winner``, which contains ``model_a``, ``model_b``, the
        name of the winner, ``tie`` or ``tie (bothbad)``. Optional columns are a ``judge`` (user, annotator, rater, ...)
        and a ``count`` (n, weight, ...). Without a judge, every row is a separate voter. A tie states no order, and of
        repeated comparisons of two items the majority counts. An ambiguous table is an error.

        Parameters
        ----------
        pairs : list of lists of pairs, or a long table
            One list of pairs (better, worse) per user; or a table with one row per comparison: a frame or mapping with
            named columns; or, without names, user, better, worse: an array of shape (n_pairs, 3), a list of triples, or
            a tuple of three arrays.
        items : iterable of names, optional
            All items; by default those that occur, in order of first appearance.
        counts : array of shape (n_users,) or name of a column, optional
            Number of voters with the preferences of each user; 1 by default.
        users : iterable of names, optional
            Names of the users: with lists of pairs, one per list (numbers from 0 by default); with a long table, all
            users in order; users without rows are allowed.
        columns : mapping, optional
            Roles of columns whose names are not recognised: ``{"user": "expert"}``. The roles are user, better, worse;
            a, b, winner; count.
        ignore : names of columns
            Columns to ignore.

        Examples
        --------
        >>> cycle = [("bob", "a", "b"), ("bob", "b", "c"), ("bob", "c", "a")]
        >>> prefs = Preferences.from_pairs([("ann", "a", "b"), ("ann", "b", "c"), *cycle])
        >>> prefs
        Preferences: 2 users, 3 items (1 user with cycles)
          ann: a > b, b > c
          bob: no order (contracted: {a, b, c})
        >>> prefs.contracted
        ((), (('a', 'b', 'c'),))
        >>> arena = {"model_a": ["x", "y"], "model_b": ["y", "z"], "winner": ["model_b", "tie"]}
        >>> Preferences.from_pairs(arena)
        Preferences: 2 users, 3 items
          0: y > x
          1: no order
        """
        from rankernel.comparisons import Comparisons  # a later layer

        given = {} if columns is None else columns
        stated = dict(check_instance("columns", given, Mapping, "a mapping of roles to columns"))
        ignored = check_names("ignore", ignore)
        if isinstance(counts, str):
            counts, stated = None, {**stated, "count": counts}
        roles = Roles("user", "better", "worse")
        where: Callable[[int], str] = "row {}".format
        if isinstance(pairs, Mapping) or is_frame(pairs):
            names = [str(name) for name in (pairs if isinstance(pairs, Mapping) else pairs.columns)]
            roles = find_columns(names, stated, ignored)
            table = frame_columns(pairs, roles.columns(), "pairs")
        elif stated or ignored:
            raise RankingError("columns, ignore and the name of a column as counts require a table with named columns")
        else:
            rows, users, where = pair_rows(pairs, users)
            table = {name: Column(cells) for name, cells in zip(("user", "better", "worse"), rows, strict=True)}
        battles = Comparisons._from_columns(table, roles, items, where)
        return battles._of_users(roles, users, counts, where)[0]

    @classmethod
    def _from_strict(
        cls,
        user: IntArray,
        better: IntArray,
        worse: IntArray,
        users: tuple[str, ...],
        items: tuple[str, ...],
        counts: Any = None,
    ) -> Preferences:
        """Build from indices of users and of two items, each pair of a user at most once."""
        names, number = check_items(items), check_counts(counts, len(users))
        n_bytes = (len(names) + 7) // 8
        check_bytes(len(users) * len(names) * n_bytes, f"preferences of {len(users):,} users over {len(names):,} items")
        packed = np.zeros((len(users), len(names), n_bytes), dtype=np.uint8)
        np.bitwise_or.at(packed, (user, better, worse >> 3), (128 >> (worse & 7)).astype(np.uint8))
        contracted: list[Groups] = []
        for rows in slices(len(packed), CHUNK_BITS // len(names) ** 2):
            reach = unpacked(closure(packed[rows]), len(names))
            mutual = reach & reach.transpose(0, 2, 1)
            packed[rows] = np.packbits(reach & ~mutual, axis=2)
            contracted += [cycle_groups(pairs, names) if pairs.any() else () for pairs in mutual]
        return cls._trusted(packed, names, number, users, tuple(contracted))

    @classmethod
    def from_rankings(cls, rankings: Any, *, users: Iterable[object] | None = None) -> Preferences:
        """Build from rankings: an item is before the items of later buckets, and free items are unrelated.

        Examples
        --------
        >>> Preferences.from_rankings(Rankings.from_orders([["a", {"b", "c"}]]))
        Preferences: 1 user, 3 items
          0: a > b, a > c
        """
        ranked = as_rankings(rankings)
        names = tuple(map(str, range(len(ranked)))) if users is None else user_names(users)
        if len(names) != len(ranked):
            raise RankingError(f"users has {len(names)} names for {len(ranked)} rankings; give one each")
        packed = np.packbits(relations_of_ranks(ranked.ranks), axis=2)
        return cls._trusted(packed, ranked.items, ranked.counts, names, ((),) * len(ranked))

    # ------------------------------------------------------------------ shape

    @property
    def before(self) -> Mask:
        """The closed relations, shape (n_users, n_items, n_items): whether user u has item x before item y."""
        relations = unpacked(self.packed, self.n_items)
        relations.flags.writeable = False
        return relations

    def _each_before(self) -> Iterator[Mask]:
        return (unpacked(self.packed[row : row + 1], self.n_items)[0] for row in range(len(self)))

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.packed)

    @property
    def n_voters(self) -> int:
        """Number of voters: the sum of the counts."""
        return int(self.counts.sum())

    @property
    def n_contradicting(self) -> int:
        """Number of users with preference cycles."""
        return sum(bool(groups) for groups in self.contracted)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the relations as an array, (n_users, n_items²), which scikit-learn uses to split data."""
        return self.n_users, self.n_items**2

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the relations, one row per user: -3 if item x is before item y, else -2.

        No array of ranks contains these numbers, so functions that take ranks recognise them, and preferences pass
        through scikit-learn.
        """
        if copy is False:
            raise ValueError("relations are stored as bits; an array of them needs a copy")
        table = np.full(self.shape, NOT_BEFORE, dtype=dtype or np.int8)
        for row, before in enumerate(self._each_before()):
            table[row, before.ravel()] = BEFORE
        return table

    @classmethod
    def _from_array(cls, table: NDArray[Any]) -> Preferences:
        """Build from an array of relations as given by :meth:`__array__`."""
        n_items = math.isqrt(table.shape[1])
        before = (table == BEFORE).reshape(len(table), n_items, n_items)
        packed = np.packbits(before, axis=2)
        wrong = (closure(packed) != packed).any(axis=(1, 2)) | before.diagonal(axis1=1, axis2=2).any(axis=1)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise RankingError(f"row {row} is not a partial order: not transitive, or with an item before itself")
        users = tuple(map(str, range(len(table))))
        names = check_items(range(n_items))
        return cls._trusted(packed, names, check_counts(None, len(table)), users, ((),) * len(table))

    def _heading(self) -> str:
        voters = "" if self.n_voters == len(self) else f" from {self.n_voters:,} voters"
        cycles = f" ({plural(self.n_contradicting, 'user')} with cycles)" if self.n_contradicting else ""
        return f"{type(self).__name__}: {plural(len(self), 'user')}{voters}, {plural(self.n_items, 'item')}{cycles}"

    def _row_texts(self, shown: Self) -> Iterable[str]:
        rows = zip(shown.users, shown.counts.tolist(), shown.to_pairs(), shown.contracted, strict=True)
        for name, count, pairs, groups in rows:
            times = "" if self.n_voters == len(self) else f"{count:,} × "
            yield f"{printable(name)}: {times}{pairs_text(pairs, groups)}"

    # ------------------------------------------------------------------ properties of the partial orders

    def n_extensions(self, *, max_down_sets: int | None = None) -> list[int]:
        """Return the exact number of linear extensions (completions) of each user's partial order.

        Raises an :class:`ExactnessError` that names the user if a part of a partial order has more than
        ``max_down_sets`` down-sets (2,000,000 by default).

        Examples
        --------
        >>> Preferences.from_pairs([[("a", "b"), ("c", "d")]]).n_extensions()
        [6]
        """
        from rankernel.completions.linear_extensions import n_extensions  # a later layer

        return n_extensions(self, max_down_sets)

    def is_ranking(self) -> Mask:
        """Return whether each user's partial order is a ranking: ordered buckets, and free items.

        Examples
        --------
        >>> Preferences.from_pairs([[("a", "b"), ("c", "d")], [("a", "b"), ("a", "c")]]).is_ranking()
        array([False,  True])
        """
        agree = [not len(disagreements(before, bucket_ranks(before))) for before in self._each_before()]
        return np.array(agree, dtype=bool)

    def kinds(self) -> NDArray[np.str_]:
        """Return the kind of each user's partial order: that of the ranking, or "partial" if it is not a ranking.

        Examples
        --------
        >>> Preferences.from_pairs([[("a", "b"), ("c", "d")], [("a", "b")]]).kinds().tolist()
        ['partial', 'incomplete']
        """
        ranked = self.is_ranking()
        kinds = np.full(len(self), PARTIAL, dtype="<U10")
        kinds[ranked] = self[np.flatnonzero(ranked)].to_rankings().kinds()
        return kinds

    def unique_indices(self) -> tuple[Indices, Indices]:
        """Return the first row of each distinct partial order, and for each row the number of its partial order."""
        return unique_rows(self.packed.reshape(len(self), -1))

    def unique(self) -> Preferences:
        """Return the distinct partial orders in order of first appearance, with the sums of their counts.

        Examples
        --------
        >>> Preferences.from_pairs([[("a", "b")], [("b", "a")], [("a", "b")]]).unique().counts
        array([2, 1])
        """
        first, inverse = self.unique_indices()
        return self[first]._replaced(counts=sum_counts(self.counts, inverse, len(first)), labels={})

    # ------------------------------------------------------------------ conversion

    def with_items(self, items: Iterable[object]) -> Preferences:
        """Return the preferences with reordered or additional items; nothing is known of additional items."""
        return Preferences.from_pairs(self.to_pairs(), items, counts=self.counts, users=self.users)

    def to_rankings(self) -> Rankings:
        """Return the partial orders as rankings; raise an error for the first one that is not a ranking.

        Items without any relation are free. If no item has a relation, all items share one bucket.

        Examples
        --------
        >>> Preferences.from_pairs([[("a", "b"), ("a", "c")]], items=["a", "b", "c", "d"]).to_rankings()
        Rankings: 1 ranking of 4 items (1 incomplete)
          a > {b, c}, free: {d}
        """
        ranks = np.empty((len(self), self.n_items), dtype=np.int32)
        for row, before in enumerate(self._each_before()):
            ranks[row] = bucket_ranks(before)
            wrong = disagreements(before, ranks[row])
            if len(wrong):
                x, y = (printable(self.items[item]) for item in wrong[0])
                raise RankingError(
                    f"user {printable(self.users[row])!r} (row {row}) has a partial order that is not a ranking: "
                    f"{x!r} and {y!r} are unrelated, yet not interchangeable; is_ranking() returns which users have one"
                )
        return Rankings._trusted(ranks, self.items, self.counts)

    def to_pairs(self) -> list[list[Pair]]:
        """Return for each user the smallest set of pairs (better, worse) that implies the partial order.

        ``Preferences.from_pairs(p.to_pairs(), p.items, counts=p.counts, users=p.users)`` equals ``p``.
        """
        return [
            [(self.items[x], self.items[y]) for x, y in np.argwhere(covering(before)).tolist()]
            for before in self._each_before()
        ]


def user_names(users: Iterable[object]) -> tuple[str, ...]:
    """Return user names as strings; missing and repeated names are errors."""
    seen: dict[str, int] = {}
    for number, name in enumerate(check_list("users", users, "a list of user names")):
        if is_missing(name):
            raise RankingError(f"users: the name of user {number} is missing ({name!r})")
        if str(name) in seen:
            raise RankingError(f"two users are named {printable(name)!r}; user names must be unique")
        seen[str(name)] = number
    return tuple(seen)


def pair_rows(pairs: Any, users: Iterable[object] | None) -> tuple[Any, Iterable[object] | None, Callable[[int], str]]:
    """Return columns of users, better and worse items; the names of the users; and a function that names a row.

    The pairs are rows or arrays of users, better and worse items, or one list of pairs (better, worse) per user.
    """
    arrays = isinstance(pairs, tuple) and len(pairs) == 3 and all(getattr(each, "ndim", 0) == 1 for each in pairs)
    if arrays:
        return pairs, users, "row {}".format
    if isinstance(pairs, np.ndarray) and pairs.ndim == 2 and pairs.shape[1] != 3:
        problem = f"pairs: the table has shape {pairs.shape}; without names there are three columns"
        raise RankingError(f"{problem}: user, better and worse")
    if not is_list(pairs):
        expected = "give a list of pairs (better, worse) per user, or a long table"
        raise RankingError(f"pairs={short_repr(pairs)} is not possible; {expected}")
    rows = list(pairs)
    listed = (tuple, list, np.ndarray)
    if rows and all(isinstance(row, listed) and len(row) == 3 and not any(map(is_list, row)) for row in rows):
        return zip(*rows, strict=True), users, "row {}".format
    names = tuple(map(str, range(len(rows)))) if users is None else user_names(users)
    if len(names) != len(rows):
        raise RankingError(f"users has {len(names)} names for {len(rows)} lists of pairs; give one each")
    found, origin = [], []
    for name, own in zip(names, rows, strict=True):
        if not is_list(own):
            problem = f"user {printable(name)!r} has {short_repr(own)}"
            raise RankingError(f"{problem}; expected a list of pairs (better, worse)")
        for number, pair in enumerate(own):
            origin.append(f"user {printable(name)!r}, pair {number},")
            if not isinstance(pair, listed) or len(pair) != 2:
                raise RankingError(f"{origin[-1]} is {short_repr(pair)}; expected lists of pairs (better, worse)")
            found.append((name, *pair))
    return zip(*found, strict=True) if found else ((), (), ()), names, origin.__getitem__


def pairs_text(pairs: list[Pair], groups: Groups) -> str:
    """Return the preferences of one user as text: ``a > b, b > c (contracted: {d, e})``."""
    shown = [f"{printable(better)} > {printable(worse)}" for better, worse in pairs[:MAX_SHOWN_PAIRS]]
    if len(pairs) > MAX_SHOWN_PAIRS:
        shown.append(f"... {len(pairs) - MAX_SHOWN_PAIRS} more")
    text = ", ".join(shown) or "no order"
    ties = ", ".join("{" + ", ".join(printable(name) for name in group) + "}" for group in groups)
    return f"{text} (contracted: {ties})" if ties else text


# ---------------------------------------------------------------------- relations


def unpacked(packed: Packed, n_items: int) -> Mask:
    """Return relations as boolean matrices."""
    return np.unpackbits(packed, axis=2, count=n_items).astype(bool)


def closure(packed: Packed) -> Packed:
    """Return the transitive closure of each relation (Warshall), for all users at once."""
    closed = packed.copy()
    has_successor = np.asarray(packed.any(axis=2))  # no path leads through other items
    for middle in np.flatnonzero(has_successor.any(axis=0)).tolist():
        users = np.flatnonzero(has_successor[:, middle])
        index, starts = np.nonzero(closed[users, :, middle >> 3] & (128 >> (middle & 7)))
        closed[users[index], starts] |= closed[users[index], middle]
    return closed


def cycle_groups(mutual: Mask, items: tuple[str, ...]) -> Groups:
    """Return the groups of items that reach each other, in the order of the items."""
    groups = []
    for x in np.flatnonzero(mutual.any(axis=1)).tolist():
        members = np.flatnonzero(mutual[x])
        if members[0] == x:
            groups.append(tuple(items[member] for member in members))
    return tuple(groups)


def covering(before: Mask) -> Mask:
    """Return the covering relation: the pairs of a closed relation that do not follow from others."""
    number = before.astype(np.float32)
    return np.asarray(before & (number @ number == 0))


def bucket_ranks(before: Mask) -> RankArray:
    """Return the ranks of a partial order if it is a ranking: items with the same number of better items are tied."""
    n_better = before.sum(axis=0)
    related = before.any(axis=0) | before.any(axis=1)
    if not related.any():
        return np.zeros(len(before), dtype=np.int32)
    levels = np.unique(n_better[related])
    return np.where(related, np.searchsorted(levels, n_better), FREE).astype(np.int32)


def disagreements(before: Mask, ranks: RankArray) -> Indices:
    """Return the pairs of items in which a partial order and a ranking differ."""
    return np.argwhere(before != relations_of_ranks(ranks[None])[0])

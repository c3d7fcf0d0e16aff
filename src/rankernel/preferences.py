"""Preferences: one immutable type for what users say of pairs of items, as partial orders of one set of items."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankernel._utils import checks
from rankernel._utils.arrays import Indices, IntArray, Mask, RankArray
from rankernel._utils.checks import printable
from rankernel._utils.memory import check_bytes
from rankernel._utils.notebook import html_card
from rankernel.encoding import FREE, check_counts, check_items, sum_counts
from rankernel.errors import RankingError
from rankernel.pair_tables import Comparisons, is_long, long_table, user_lists, user_names
from rankernel.rankings import PARTIAL, Labels, Rankings, as_rankings, row_index

Packed = NDArray[np.uint8]
Pair = tuple[str, str]
Groups = tuple[tuple[str, ...], ...]

SHOWN = 8
SHOWN_PAIRS = 6
NOT_BEFORE, BEFORE = -2, -3  # in a plain array of relations, which no array of ranks holds
# Relations are unpacked and closed this many bits at a time.
CHUNK_BITS = 2**26


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Preferences:
    """Pairwise preferences: for each user a partial order of the items.

    A partial order says of some pairs of items which one is better; of the others nothing is known. It is transitive:
    what follows from the pairs is known, too. Where a user's pairs run in a circle, the items of the circle are
    *contracted* into a tie: nothing is known of their order, and what is better or worse than one of them is so for
    all. Build preferences with :meth:`from_pairs` or :meth:`from_rankings`.

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

    #: The relations, one bit a pair: shape (n_users, n_items, n_items / 8 rounded up).
    packed: Packed
    #: Names of the items.
    items: tuple[str, ...]
    #: How many voters have each partial order.
    counts: IntArray
    #: Names of the users.
    users: tuple[str, ...]
    #: For each user the groups of items that were contracted into ties, as the user's pairs run in a circle.
    contracted: tuple[Groups, ...]
    #: Label columns of a file: for each, one string per user.
    labels: Labels
    #: How the file was read from which the preferences come; None for other preferences and for slices.
    source: Any

    @classmethod
    def _trusted(
        cls,
        packed: Packed,
        items: tuple[str, ...],
        counts: IntArray,
        users: tuple[str, ...],
        contracted: tuple[Groups, ...],
        labels: Labels | None = None,
        source: Any = None,
    ) -> Preferences:
        """Build from parts that already satisfy every promise of the class."""
        new = object.__new__(Preferences)
        columns = dict(labels or {})
        packed.flags.writeable = False
        for array in (counts, *columns.values()):
            array.flags.writeable = False
        values = packed, items, counts, users, contracted, columns, source
        for name, value in zip(Preferences.__dataclass_fields__, values, strict=True):
            object.__setattr__(new, name, value)
        return new

    @classmethod
    def from_pairs(
        cls,
        pairs: Any,
        items: Iterable[object] | None = None,
        counts: Any = None,
        users: Iterable[object] | None = None,
        columns: Mapping[str, str] | None = None,
        ignore: Sequence[str] = (),
    ) -> Preferences:
        """Build from pairs (better, worse).

        The columns of a table with names are found by these: ``winner`` and ``loser`` (also better and worse, chosen
        and rejected) in any order; or an arena table ``model_a``, ``model_b`` and ``winner``, which says ``model_a``,
        ``model_b``, the name of the winner, ``tie`` or ``tie (bothbad)``. Beside them may stand a ``judge`` (user,
        annotator, rater, ...) and a ``count`` (n, weight, ...). Without a judge, every row is a voter of its own. A tie
        says that nothing tells the two apart. A table that leaves doubt is refused.

        Parameters
        ----------
        pairs : list of lists of pairs, or a long table
            Either one list of pairs (better, worse) a user; or a table with one row a comparison: a frame or mapping,
            by the names of its columns; or, without names, user, better, worse: an array of shape (n_pairs, 3), a list
            of triples, or a tuple of three arrays.
        items : iterable of names, optional
            All items there are; if left out, those that occur, in order of first appearance.
        counts : array of shape (n_users,) or name of a column, optional
            How many voters have the preferences of each user; 1 each if left out.
        users : iterable of names, optional
            Names of the users. With lists of pairs, one name a list (numbers from 0 if left out). With a long table,
            all users there are, in the order wanted; of a user without rows nothing is known.
        columns : mapping, optional
            Which column is what, where its name does not tell: ``{"user": "expert"}``. There are user, better, worse;
            a, b, winner; count.
        ignore : names of columns
            Columns that say nothing about the pairs.

        Examples
        --------
        >>> prefs = Preferences.from_pairs([("ann", "a", "b"), ("bob", "b", "c"), ("ann", "b", "c"), ("bob", "c", "b")])
        >>> prefs
        Preferences: 2 users, 3 items (1 user contradicts itself)
          ann: a > b, b > c
          bob: nothing known (contracted: {b, c})
        >>> prefs.contracted
        ((), (('b', 'c'),))
        >>> arena = {"model_a": ["x", "y"], "model_b": ["y", "z"], "winner": ["model_b", "tie"]}
        >>> Preferences.from_pairs(arena)
        Preferences: 2 users, 3 items
          0: y > x
          1: nothing known
        """
        roles = dict(
            checks.check_instance(
                "columns", {} if columns is None else columns, Mapping, "a mapping of roles to columns"
            )
        )
        passed_over = checks.check_names("ignore", ignore)
        if isinstance(counts, str):
            counts, roles = None, {**roles, "count": counts}
        if is_long(pairs):
            stated = long_table(pairs, users, items, roles, passed_over)
        elif roles or passed_over:
            raise RankingError(
                "columns, ignore, and counts as the name of a column are for a table with one row a comparison"
            )
        else:
            stated = user_lists(pairs, users, items)
        return cls._from_comparisons(stated, stated.counts if counts is None else counts)

    @classmethod
    def _from_comparisons(cls, stated: Comparisons, counts: Any) -> Preferences:
        names = check_items(stated.items)
        number = check_counts(counts, len(stated.users))
        n_bytes = len(stated.users) * len(names) * ((len(names) + 7) // 8)
        check_bytes(n_bytes, f"what {len(stated.users):,} users say of {len(names):,} items")
        packed, contracted = stated_relations(stated), []
        step = max(1, CHUNK_BITS // len(names) ** 2)
        for first in range(0, len(packed), step):
            users = slice(first, first + step)
            reach = unpacked(closure(packed[users]), len(names))
            circles = reach & reach.transpose(0, 2, 1)
            packed[users] = np.packbits(reach & ~circles, axis=2)
            contracted += [groups_of(circle, names) if circle.any() else () for circle in circles]
        return cls._trusted(packed, names, number, stated.users, contradictions(stated, contracted))

    @classmethod
    def from_rankings(cls, rankings: Any, users: Iterable[object] | None = None) -> Preferences:
        """Build from rankings: an item is before those of later buckets, and free items are unrelated.

        Examples
        --------
        >>> Preferences.from_rankings(Rankings.from_orders([["a", {"b", "c"}]]))
        Preferences: 1 user, 3 items
          0: a > b, a > c
        """
        ranked = as_rankings(rankings)
        names = tuple(map(str, range(len(ranked)))) if users is None else user_names(users)
        if len(names) != len(ranked):
            raise RankingError(f"there are {len(names)} user names for {len(ranked)} users; give one name each")
        packed = np.packbits(relations_of_ranks(ranked.ranks), axis=2)
        return cls._trusted(packed, ranked.items, ranked.counts, names, ((),) * len(ranked))

    # ------------------------------------------------------------------ shape

    @property
    def before(self) -> Mask:
        """The closed relations, shape (n_users, n_items, n_items): ``before[u, x, y]`` if user u has x before y."""
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
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    @property
    def n_voters(self) -> int:
        """Number of voters: the sum of the counts."""
        return int(self.counts.sum())

    @property
    def n_contradicting(self) -> int:
        """Number of users whose pairs run in a circle."""
        return sum(bool(groups) for groups in self.contracted)

    @property
    def shape(self) -> tuple[int, int]:
        """That of the relations as an array, (n_users, n_items²): scikit-learn splits by rows whatever has a shape."""
        return self.n_users, self.n_items**2

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the relations, a row a user: -3 where item x stands before item y, -2 where it does not.

        No array of ranks holds these numbers, so all functions that take an array of ranks take this one, too, and
        preferences pass through scikit-learn.
        """
        if copy is False:
            raise ValueError("relations are stored as bits; an array of them needs a copy")
        table = np.full(self.shape, NOT_BEFORE, dtype=dtype or np.int8)
        for row, before in enumerate(self._each_before()):
            table[row, before.ravel()] = BEFORE
        return table

    @classmethod
    def _from_array(cls, table: NDArray[Any]) -> Preferences:
        """Build from relations as an array of numbers gives them."""
        n_items = math.isqrt(table.shape[1])
        before = (table == BEFORE).reshape(len(table), n_items, n_items)
        packed = np.packbits(before, axis=2)
        wrong = (closure(packed) != packed).any(axis=(1, 2)) | before.diagonal(axis1=1, axis2=2).any(axis=1)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise RankingError(f"row {row} is no partial order: it is not transitive, or has an item before itself")
        users = tuple(map(str, range(len(table))))
        names = check_items(range(n_items))
        return cls._trusted(packed, names, check_counts(None, len(table)), users, ((),) * len(table))

    def __len__(self) -> int:
        return self.n_users

    def __iter__(self) -> Iterator[Preferences]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, rows: Any) -> Preferences:
        """Return the preferences of some users: an index, a slice, an index array or a mask."""
        rows = row_index(rows, "preferences are indexed by user only; use .before[users, x, y] for single pairs")
        if isinstance(rows, SupportsIndex) and not isinstance(rows, np.ndarray):
            row = range(len(self))[rows]
            rows = slice(row, row + 1)
        chosen = np.arange(len(self))[rows].tolist()
        return self._trusted(
            self.packed[rows],
            self.items,
            self.counts[rows],
            tuple(self.users[row] for row in chosen),
            tuple(self.contracted[row] for row in chosen),
            {name: values[rows] for name, values in self.labels.items()},
        )

    # ------------------------------------------------------------------ equality, pickling, looks

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Preferences):
            return NotImplemented
        return (
            self.items == other.items
            and self.users == other.users
            and np.array_equal(self.packed, other.packed)
            and np.array_equal(self.counts, other.counts)
        )

    def __hash__(self) -> int:
        return hash((self.packed.tobytes(), self.items, self.counts.tobytes(), self.users))

    def __reduce__(self) -> tuple[Any, ...]:
        fields = self.packed, self.items, self.counts, self.users, self.contracted, self.labels, self.source
        return Preferences._trusted, fields

    _repr_html_ = html_card

    def __repr__(self) -> str:
        n_users, n_items = len(self), self.n_items
        voters = "" if self.n_voters == n_users else f" from {self.n_voters:,} voters"
        head = f"{type(self).__name__}: {n_users:,} user{'s' * (n_users != 1)}{voters}"
        circles = self.n_contradicting
        tail = f" ({circles:,} user{'s contradict themselves' if circles > 1 else ' contradicts itself'})"
        lines = [f"{head}, {n_items:,} item{'s' * (n_items != 1)}{tail if circles else ''}"]
        shown = self[:SHOWN]
        for name, count, pairs, groups in zip(
            shown.users, shown.counts.tolist(), shown.to_pairs(), shown.contracted, strict=True
        ):
            times = f"{count:,} × " if voters else ""
            lines.append(f"  {printable(name)}: {times}{pairs_text(pairs, groups)}")
        if n_users > SHOWN:
            lines.append(f"  ... and {n_users - SHOWN:,} more")
        lines += [f"  {line}" for line in str(self.source or "").splitlines()]
        return "\n".join(lines)

    # ------------------------------------------------------------------ what is inside

    def n_extensions(self) -> list[int]:
        """Return how many full rankings agree with each user's preferences, exactly.

        Raises an :class:`ExactnessError` that names the user where that is out of reach.

        Examples
        --------
        >>> Preferences.from_pairs([[("a", "b"), ("c", "d")]]).n_extensions()
        [6]
        """
        # Handed over, as Kernel.gram is: counting completions belongs to a later layer.
        from rankernel.completions.linear_extensions import n_extensions

        return n_extensions(self)

    def is_ranking(self) -> Mask:
        """Say of each user whether the preferences are a ranking: ordered buckets, and free items.

        Examples
        --------
        >>> Preferences.from_pairs([[("a", "b"), ("c", "d")], [("a", "b"), ("a", "c")]]).is_ranking()
        array([False,  True])
        """
        agree = [not len(disagreements(before, bucket_ranks(before))) for before in self._each_before()]
        return np.array(agree, dtype=bool)

    def kinds(self) -> NDArray[np.str_]:
        """Return what each user's preferences are: those of rankings, or "partial" if they are none.

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
        """Return where each distinct partial order first occurs, and for each user which distinct one it is."""
        rows = np.ascontiguousarray(self.packed.reshape(len(self), -1))
        keys = rows.view(np.dtype((np.void, max(rows.shape[1], 1)))).ravel()
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return first[order], np.argsort(order)[inverse.ravel()]

    def unique(self) -> Preferences:
        """Return the distinct partial orders in order of first appearance, their counts added up.

        Examples
        --------
        >>> Preferences.from_pairs([[("a", "b")], [("b", "a")], [("a", "b")]]).unique().counts
        array([2, 1])
        """
        first, inverse = self.unique_indices()
        some = self[first]
        counts = sum_counts(self.counts, inverse, len(first))
        return self._trusted(some.packed, self.items, counts, some.users, some.contracted)

    def with_items(self, items: Iterable[object]) -> Preferences:
        """Return the same preferences over other items: reordered, or more of them, of which nothing is known."""
        return Preferences.from_pairs(self.to_pairs(), items, self.counts, self.users)

    def to_rankings(self) -> Rankings:
        """Return the same partial orders as rankings; raise for the first user whose partial order is none.

        Items without any relation are free. Where no item has one, all share one bucket, which says the same.

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
                    f"nothing is known of {x!r} and {y!r}, yet other items tell them apart; "
                    "is_ranking() says which users have rankings"
                )
        return Rankings._trusted(ranks, self.items, self.counts)

    def to_pairs(self) -> list[list[Pair]]:
        """Return the fewest pairs (better, worse) that imply each user's preferences.

        ``Preferences.from_pairs(p.to_pairs(), p.items, p.counts, p.users)`` gives ``p`` back.
        """
        return [
            [(self.items[x], self.items[y]) for x, y in np.argwhere(covering(before)).tolist()]
            for before in self._each_before()
        ]


# ---------------------------------------------------------------------- relations


def unpacked(packed: Packed, n_items: int) -> Mask:
    """Return relations as boolean matrices."""
    return np.unpackbits(packed, axis=2, count=n_items).astype(bool)


def closure(packed: Packed) -> Packed:
    """Return the transitive closure of each relation (Warshall), all users at once."""
    closed = packed.copy()
    leads = np.asarray(packed.any(axis=2))  # anywhere: nothing is reached through other items
    for middle in np.flatnonzero(leads.any(axis=0)).tolist():
        users = np.flatnonzero(leads[:, middle])
        own, starts = np.nonzero(closed[users, :, middle >> 3] & bit(middle))
        closed[users[own], starts] |= closed[users[own], middle]
    return closed


def bit(item: int) -> int:
    """Return the bit that an item has in its byte."""
    return 128 >> (item & 7)


def groups_of(mutual: Mask, items: tuple[str, ...]) -> Groups:
    """Return the groups of items that reach each other, in the order of the items."""
    groups = []
    for x in np.flatnonzero(mutual.any(axis=1)).tolist():
        members = np.flatnonzero(mutual[x])
        if members[0] == x:
            groups.append(tuple(items[member] for member in members))
    return tuple(groups)


def covering(before: Mask) -> Mask:
    """Return the pairs of a closed relation that do not follow from others."""
    number = before.astype(np.float32)
    return np.asarray(before & (number @ number == 0))


def bucket_ranks(before: Mask) -> RankArray:
    """Return the ranks that a partial order has if it is a ranking: items with equally many better ones tie."""
    n_better = before.sum(axis=0)
    related = before.any(axis=0) | before.any(axis=1)
    if not related.any():
        return np.zeros(len(before), dtype=np.int32)
    levels = np.unique(n_better[related])
    return np.where(related, np.searchsorted(levels, n_better), FREE).astype(np.int32)


def relations_of_ranks(ranks: RankArray) -> Mask:
    """Return which items stand before which in rankings."""
    return np.asarray((ranks[:, :, None] < ranks[:, None, :]) & (ranks != FREE)[:, :, None])


def disagreements(before: Mask, ranks: RankArray) -> Indices:
    """Return the pairs of items that a partial order and a ranking do not relate alike."""
    return np.argwhere(before != relations_of_ranks(ranks[None])[0])


def pairs_text(pairs: list[Pair], groups: Groups) -> str:
    """Return one user's preferences as text: ``a > b, b > c (contracted: {d, e})``."""
    shown = [f"{printable(better)} > {printable(worse)}" for better, worse in pairs[:SHOWN_PAIRS]]
    if len(pairs) > SHOWN_PAIRS:
        shown.append(f"... {len(pairs) - SHOWN_PAIRS} more")
    text = ", ".join(shown) or "nothing known"
    ties = ", ".join("{" + ", ".join(printable(name) for name in group) + "}" for group in groups)
    return f"{text} (contracted: {ties})" if ties else text


# ---------------------------------------------------------------------- what comparisons state


def stated_relations(stated: Comparisons) -> Packed:
    """Return the relations that comparisons state, not yet closed; a tie states both directions."""
    n_items = len(stated.items)
    relations = np.zeros((len(stated.users), n_items, (n_items + 7) // 8), dtype=np.uint8)
    for rows, first, second in (
        (slice(None), stated.better, stated.worse),
        (stated.tied, stated.worse, stated.better),
    ):
        bits = (128 >> (second[rows] & 7)).astype(np.uint8)
        np.bitwise_or.at(relations, (stated.user[rows], first[rows], second[rows] >> 3), bits)
    return relations


def contradictions(stated: Comparisons, contracted: list[Groups]) -> tuple[Groups, ...]:
    """Return the groups in which a user prefers one item to another all the same; a group of mere ties is none."""
    kept: list[Groups] = [()] * len(contracted)
    strict = np.flatnonzero(~stated.tied)
    strict = strict[np.argsort(stated.user[strict], kind="stable")]
    ends = np.searchsorted(stated.user[strict], np.arange(len(contracted) + 1))
    for user in (user for user, groups in enumerate(contracted) if groups):
        rows = strict[ends[user] : ends[user + 1]]
        better, worse = ([stated.items[item] for item in side[rows]] for side in (stated.better, stated.worse))
        pairs = list(zip(better, worse, strict=True))
        kept[user] = tuple(group for group in contracted[user] if any(x in group and y in group for x, y in pairs))
    return tuple(kept)

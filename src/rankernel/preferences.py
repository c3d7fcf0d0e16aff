"""Preferences: one immutable type for what users say of pairs of items, as partial orders of one set of items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from rankernel.arrays import Indices, IntArray, Mask, RankArray
from rankernel.checks import listed, shown
from rankernel.encoding import FREE, check_counts, check_items, is_missing, printable
from rankernel.errors import RankingError
from rankernel.rankings import Rankings, as_rankings

Packed = NDArray[np.uint8]
Pair = tuple[str, str]
Groups = tuple[tuple[str, ...], ...]

COLUMNS = ("user", "better", "worse")
SHOWN = 8
SHOWN_PAIRS = 6
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
    #: For each user the groups of items that were contracted into ties, as they were in a circle.
    contracted: tuple[Groups, ...]

    @classmethod
    def _trusted(
        cls,
        packed: Packed,
        items: tuple[str, ...],
        counts: IntArray,
        users: tuple[str, ...],
        contracted: tuple[Groups, ...],
    ) -> Preferences:
        """Build from parts that already satisfy every promise of the class."""
        new = object.__new__(Preferences)
        packed.flags.writeable = False
        counts.flags.writeable = False
        for name, value in zip(cls.__dataclass_fields__, (packed, items, counts, users, contracted), strict=True):
            object.__setattr__(new, name, value)
        return new

    @classmethod
    def from_pairs(
        cls,
        pairs: Any,
        items: Iterable[object] | None = None,
        counts: Any = None,
        users: Iterable[object] | None = None,
    ) -> Preferences:
        """Build from pairs (better, worse).

        Parameters
        ----------
        pairs : list of lists of pairs, or a long table
            Either one list of pairs (better, worse) a user; or a table with one row a pair and three columns user,
            better, worse: a frame or mapping (the columns of these names, else the first three), an array of shape
            (n_pairs, 3), a list of triples, or a tuple of three arrays.
        items : iterable of names, optional
            All items there are; if left out, those that occur, in order of first appearance.
        counts : array of shape (n_users,), optional
            How many voters have the preferences of each user; 1 each if left out.
        users : iterable of names, optional
            Names of the users. With lists of pairs, one name a list (numbers from 0 if left out). With a long table,
            all users there are, in the order wanted; of a user without rows nothing is known.

        Examples
        --------
        >>> prefs = Preferences.from_pairs([("ann", "a", "b"), ("bob", "b", "c"), ("ann", "b", "c"), ("bob", "c", "b")])
        >>> prefs
        Preferences: 2 users, 3 items
          ann: a > b, b > c
          bob: nothing known (contracted: {b, c})
        >>> prefs.contracted
        ((), (('b', 'c'),))
        """
        rows, names = long_table(pairs, users) if is_long(pairs) else user_lists(pairs, users)
        stated, item_names = stated_relations(rows, len(names), items)
        packed, contracted = [stated[:0]], []
        step = max(1, CHUNK_BITS // len(item_names) ** 2)
        for first in range(0, len(names), step):
            reach = unpacked(closure(stated[first : first + step]), len(item_names))
            back = reach.transpose(0, 2, 1)
            packed.append(np.packbits(reach & ~back, axis=2))
            contracted += [groups_of(mutual, item_names) for mutual in reach & back]
        number = check_counts(counts, len(names))
        return cls._trusted(np.concatenate(packed), item_names, number, names, tuple(contracted))

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
        names = check_users(users, len(ranked))
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

    def __len__(self) -> int:
        return self.n_users

    def __iter__(self) -> Iterator[Preferences]:
        return (self[row] for row in range(len(self)))

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and items: scikit-learn splits by rows whatever has a shape."""
        return len(self), self.n_items

    def __getitem__(self, rows: Any) -> Preferences:
        """Return the preferences of some users: an index, a slice, an index array or a mask."""
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:  # as scikit-learn takes rows
            rows = rows[0]
        if isinstance(rows, tuple):
            raise TypeError("preferences are indexed by user only; use .before[users, x, y] for single pairs")
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
        return Preferences._trusted, (self.packed, self.items, self.counts, self.users, self.contracted)

    def __repr__(self) -> str:
        n_users, n_items = len(self), self.n_items
        voters = "" if self.n_voters == n_users else f" from {self.n_voters:,} voters"
        head = f"{type(self).__name__}: {n_users:,} user{'s' * (n_users != 1)}{voters}"
        lines = [f"{head}, {n_items:,} item{'s' * (n_items != 1)}"]
        shown = self[:SHOWN]
        for name, count, pairs, groups in zip(
            shown.users, shown.counts.tolist(), shown.to_pairs(), shown.contracted, strict=True
        ):
            times = f"{count:,} × " if voters else ""
            lines.append(f"  {printable(name)}: {times}{pairs_text(pairs, groups)}")
        if n_users > SHOWN:
            lines.append(f"  ... and {n_users - SHOWN:,} more")
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

    def first_and_inverse(self) -> tuple[Indices, Indices]:
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
        first, inverse = self.first_and_inverse()
        some = self[first]
        counts = np.bincount(inverse, self.counts).astype(np.int64)
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
    for middle in range(packed.shape[1]):
        reaches = closed[:, :, middle >> 3] & bit(middle) != 0
        closed |= np.where(reaches[:, :, None], closed[:, middle, None, :], np.uint8(0))
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


# ---------------------------------------------------------------------- the gate

# One pair as it comes in: the number of the user, where it was found (for messages), better, worse.
Row = tuple[int, str, str, str]


def is_name(value: object) -> bool:
    """Say whether a value is a single name and not a collection of them."""
    return isinstance(value, (str, bytes)) or not isinstance(value, Iterable)


def is_long(pairs: Any) -> bool:
    """Say whether pairs come as a long table (user, better, worse) and not as one list of pairs a user."""
    if isinstance(pairs, Mapping) or hasattr(pairs, "columns"):
        return True
    if isinstance(pairs, np.ndarray):
        return pairs.ndim == 2
    if are_columns(pairs):
        return True
    return isinstance(pairs, Sequence) and len(pairs) > 0 and all(is_triple(row) for row in pairs)


def is_triple(row: Any) -> bool:
    """Say whether a row is (user, better, worse)."""
    return isinstance(row, (tuple, list, np.ndarray)) and len(row) == 3 and all(is_name(value) for value in row)


def are_columns(pairs: Any) -> bool:
    """Say whether this is a tuple of three arrays."""
    return isinstance(pairs, tuple) and len(pairs) == 3 and all(np.ndim(c) == 1 and hasattr(c, "dtype") for c in pairs)


def columns_of(pairs: Any) -> list[list[Any]]:
    """Return the three columns of a long table."""
    if isinstance(pairs, Mapping) or hasattr(pairs, "columns"):
        names = list(pairs if isinstance(pairs, Mapping) else pairs.columns)
        if len(names) < 3:
            raise RankingError(f"pairs: the table has the columns {names}; wanted are user, better and worse")
        wanted = COLUMNS if set(COLUMNS) <= set(names) else names[:3]
        columns = [list(pairs[name]) for name in wanted]
    elif are_columns(pairs):
        columns = [list(column) for column in pairs]
    else:
        if isinstance(pairs, np.ndarray) and pairs.shape[1] != 3:
            raise RankingError(
                f"pairs: the table has shape {pairs.shape}; a long table has three columns: user, better, worse"
            )
        columns = [[row[column] for row in pairs] for column in range(3)]
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        raise RankingError(f"the columns user, better and worse have lengths {lengths}; they must be equal")
    return columns


def long_table(pairs: Any, users: Iterable[object] | None) -> tuple[list[Row], tuple[str, ...]]:
    """Return checked pairs and user names from a long table."""
    columns = columns_of(pairs)
    index = {} if users is None else {name: number for number, name in enumerate(user_names(users))}
    rows = []
    for number, (user, better, worse) in enumerate(zip(*columns, strict=True)):
        if is_missing(user):
            raise RankingError(f"row {number} has no user ({user!r}); every pair belongs to one")
        name = str(user)
        if users is None:
            index.setdefault(name, len(index))
        elif name not in index:
            raise RankingError(f"row {number} is of user {printable(name)!r}, who is not among the users")
        rows.append(checked_pair(index[name], f"row {number} (user {printable(name)!r})", better, worse))
    return rows, tuple(index)


def user_lists(pairs: Any, users: Iterable[object] | None) -> tuple[list[Row], tuple[str, ...]]:
    """Return checked pairs and user names from one list of pairs a user."""
    if is_name(pairs):
        raise RankingError(
            f"pairs={shown(pairs)} is not possible; give one list of pairs (better, worse) a user, or a long table"
        )
    lists = list(pairs)
    names = check_users(users, len(lists))
    rows = []
    for user, own in enumerate(lists):
        where = f"user {printable(names[user])!r}"
        if is_name(own):
            raise RankingError(f"{where} has {shown(own)}; wanted is a list of pairs (better, worse)")
        for number, pair in enumerate(own):
            if not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2:
                raise RankingError(
                    f"{where}, pair {number}, is {pair!r}; a pair is (better, worse), and pairs are listed user by user"
                )
            rows.append(checked_pair(user, f"{where}, pair {number},", pair[0], pair[1]))
    return rows, names


def checked_pair(user: int, where: str, better: Any, worse: Any) -> Row:
    """Return one pair, refusing missing values, collections, and an item better than itself."""
    for value in (better, worse):
        if is_missing(value):
            raise RankingError(f"{where} has a missing item ({value!r}); leave out pairs that are not known")
        if not is_name(value):
            raise RankingError(f"{where} holds {value!r} in the place of an item; an item is one name")
    if str(better) == str(worse):
        raise RankingError(f"{where} prefers {printable(better)!r} to itself; a pair has two different items")
    return user, where, str(better), str(worse)


def user_names(users: Iterable[object]) -> tuple[str, ...]:
    """Return user names as strings, refusing missing and repeated ones."""
    if isinstance(users, str):
        raise RankingError(f"users={printable(users)!r} is one string; give a list of user names")
    given = listed("users", users, "a list of user names")
    names = tuple(str(name) for name in given)
    for number, name in enumerate(given):
        if is_missing(name):
            raise RankingError(f"users: the name of user {number} is missing ({name!r})")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise RankingError(f"two users are named {printable(twice)!r}; user names must be unique")
    return names


def check_users(users: Iterable[object] | None, n_users: int) -> tuple[str, ...]:
    """Return one name a user, numbers from 0 if none are given."""
    names = tuple(str(number) for number in range(n_users)) if users is None else user_names(users)
    if len(names) != n_users:
        raise RankingError(f"users holds {len(names)} names for {n_users} users; give one name each")
    return names


def stated_relations(rows: list[Row], n_users: int, items: Iterable[object] | None) -> tuple[Packed, tuple[str, ...]]:
    """Return the relations that pairs state, not yet closed, and the names of the items."""
    found = dict.fromkeys(name for _, _, *pair in rows for name in pair) if items is None else items
    names = check_items(found)
    index = {name: number for number, name in enumerate(names)}
    stated = np.zeros((n_users, len(names), (len(names) + 7) // 8), dtype=np.uint8)
    for user, where, *pair in rows:
        for name in pair:
            if name not in index:
                raise RankingError(f"{where} names {printable(name)!r}, which is not among the items")
        better, worse = (index[name] for name in pair)
        stated[user, better, worse >> 3] |= bit(worse)
    return stated, names

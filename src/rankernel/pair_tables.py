"""Comparisons as people hold them: long tables of pairs, arena tables with a winner, one list of pairs a user.

The columns of a table are found by their names. A table whose meaning is not clear is refused, with what to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankernel._utils.arrays import IntArray, Mask
from rankernel._utils.checks import check_list, printable, short_repr
from rankernel.encoding import as_integers, check_items, is_frame, is_missing
from rankernel.errors import RankingError

ROLES = ("user", "better", "worse", "a", "b", "winner", "count")
# What columns are called, in small letters with _ between the words; an "_id" and an "s" at the end of those of users
# and items make no difference.
USER_WORDS = "user judge annotator rater voter respondent participant worker evaluator person subject"
BETTER_WORDS = "better winner preferred chosen won win best superior"
WORSE_WORDS = "worse loser rejected lost loses worst inferior beaten"
WINNER_WORDS = "winner winning preferred preference result outcome verdict judgment judgement chosen"
COUNT_WORDS = "count counts n weight weights times votes n_votes frequency freq number num total"
PASSED_OVER_WORDS = """
id index row line tstamp timestamp time date question prompt turn language lang anony category session unnamed
conversation_a conversation_b response_a response_b
"""
TIE_WORDS = "tie ties tied draw equal same both neither bothbad both_bad tie_bothbad tie_both_bad"
USER, BETTER, WORSE, WINNER = (
    frozenset(words.split()) for words in (USER_WORDS, BETTER_WORDS, WORSE_WORDS, WINNER_WORDS)
)
COUNT, PASSED_OVER, TIES = (frozenset(words.split()) for words in (COUNT_WORDS, PASSED_OVER_WORDS, TIE_WORDS))
MAY_BE_USERS = ("id", "session")  # unless every row has another one
SIDES = (("a", "b"), ("1", "2"), ("left", "right"), ("first", "second"))
ONE_SIDE = frozenset(side for sides in SIDES for side in sides)
WANTED = (
    "a table of pairs has the columns winner and loser (or better and worse), or model_a, model_b and winner; beside "
    "them may stand a judge (or user) and a count"
)


@dataclass(frozen=True)
class Comparisons:
    """Comparisons of two items: who made each, which item is better, which worse, and whether they are tied.

    Attributes
    ----------
    users : tuple of str
        Names of the users.
    user, better, worse : arrays
        For each comparison its user and its two items, as numbers.
    tied : array
        Whether the comparison says that the two are equal.
    items : tuple of str
        All items there are; if they were not given, those that occur, in order of first appearance.
    row_of_user : array
        The row in which each user first occurs.
    counts : array, optional
        How many voters each user stands for, where the table says so.
    passed_over : tuple of str
        Columns of the table that say nothing about pairs.
    """

    users: tuple[str, ...]
    user: IntArray
    better: IntArray
    worse: IntArray
    tied: Mask
    items: tuple[str, ...]
    row_of_user: IntArray
    counts: IntArray | None = None
    passed_over: tuple[str, ...] = ()


class Collector:
    """Takes comparisons one by one, numbers users and items, and refuses what is no comparison."""

    def __init__(self, users: Iterable[object] | None, items: Iterable[object] | None) -> None:
        self.fixed, self.closed = users is not None, items is not None
        self.users: dict[str, int] = {} if users is None else {name: n for n, name in enumerate(user_names(users))}
        self.items: dict[str, int] = {} if items is None else {name: n for n, name in enumerate(check_items(items))}
        self.rows: list[tuple[int, int, int, bool]] = []

    def number(self, user: str, where: str) -> int:
        """Return the number of a user."""
        if user not in self.users and self.fixed:
            raise RankingError(f"{where} is of user {printable(user)!r}, who is not among the users")
        return self.users.setdefault(user, len(self.users))

    def add(self, user: int, better: Any, worse: Any, tied: bool, where: str) -> None:
        """Take one comparison."""
        for value in (better, worse):
            if is_missing(value) or value == "":
                raise RankingError(f"{where} has a missing item ({value!r}); leave out pairs that are not known")
            if not is_name(value):
                raise RankingError(f"{where} holds {value!r} in the place of an item; an item is one name")
        if str(better) == str(worse):
            raise RankingError(f"{where} compares {printable(better)!r} with itself; a pair has two different items")
        for name in (str(better), str(worse)):
            if name not in self.items and self.closed:
                raise RankingError(f"{where} names {printable(name)!r}, which is not among the items")
        first, second = (self.items.setdefault(str(name), len(self.items)) for name in (better, worse))
        self.rows.append((user, first, second, tied))

    def comparisons(self, row_of_user: IntArray, **more: Any) -> Comparisons:
        """Return what was taken."""
        table = np.array(self.rows, dtype=np.int64).reshape(-1, 4)
        user, better, worse, tied = table.T
        return Comparisons(
            tuple(self.users), user, better, worse, tied.astype(bool), tuple(self.items), row_of_user, **more
        )


def is_name(value: object) -> bool:
    """Say whether a value is a single name and not a collection of them."""
    return isinstance(value, (str, bytes)) or not isinstance(value, Iterable)


def user_names(users: Iterable[object]) -> tuple[str, ...]:
    """Return user names as strings, refusing missing and repeated ones."""
    if isinstance(users, str):
        raise RankingError(f"users={printable(users)!r} is one string; give a list of user names")
    given = check_list("users", users, "a list of user names")
    for number, name in enumerate(given):
        if is_missing(name):
            raise RankingError(f"users: the name of user {number} is missing ({name!r})")
    names = tuple(str(name) for name in given)
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise RankingError(f"two users are named {printable(name)!r}; user names must be unique")
        seen.add(name)
    return names


# ---------------------------------------------------------------------- one list of pairs a user


def user_lists(pairs: Any, users: Iterable[object] | None, items: Iterable[object] | None) -> Comparisons:
    """Return the comparisons of one list of pairs (better, worse) a user."""
    if is_name(pairs) or getattr(pairs, "ndim", 1) == 0:
        raise RankingError(
            f"pairs={short_repr(pairs)} is not possible; give one list of pairs (better, worse) a user, or a long table"
        )
    lists = list(pairs)
    names = tuple(map(str, range(len(lists)))) if users is None else user_names(users)
    if len(names) != len(lists):
        raise RankingError(f"users holds {len(names)} names for {len(lists)} users; give one name each")
    taken = Collector(names, items)
    for user, own in enumerate(lists):
        where = f"user {printable(names[user])!r}"
        if is_name(own):
            raise RankingError(f"{where} has {short_repr(own)}; wanted is a list of pairs (better, worse)")
        for number, pair in enumerate(own):
            if not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2:
                raise RankingError(
                    f"{where}, pair {number}, is {pair!r}; a pair is (better, worse), and pairs are listed user by user"
                )
            taken.add(user, pair[0], pair[1], False, f"{where}, pair {number},")
    return taken.comparisons(np.arange(len(lists)))


# ---------------------------------------------------------------------- long tables


def is_long(pairs: Any) -> bool:
    """Say whether pairs come as a long table and not as one list of pairs a user."""
    if isinstance(pairs, Mapping) or is_frame(pairs):
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


def long_table(
    pairs: Any,
    users: Iterable[object] | None,
    items: Iterable[object] | None,
    columns: Mapping[str, str],
    ignore: Sequence[str],
) -> Comparisons:
    """Return the comparisons of a long table: by the names of its columns, or without names user, better, worse."""
    if isinstance(pairs, Mapping) or is_frame(pairs):
        names = pairs if isinstance(pairs, Mapping) else pairs.columns
        named = {str(name): check_list(f"pairs[{name!r}]", pairs[name], "a column of a table") for name in names}
        return from_columns(named, users, items, find_columns(list(named), columns, ignore))
    if columns or ignore:
        raise RankingError("columns and ignore are for tables whose columns have names; the pairs have none")
    if are_columns(pairs):
        table = dict(zip(("user", "better", "worse"), map(list, pairs), strict=True))
    else:
        if isinstance(pairs, np.ndarray) and pairs.shape[1] != 3:
            raise RankingError(
                f"pairs: the table has shape {pairs.shape}; a long table without names has three columns: user, better "
                "and worse"
            )
        table = {name: [row[place] for row in pairs] for place, name in enumerate(("user", "better", "worse"))}
    return from_columns(table, users, items, Roles("user", "better", "worse"))


@dataclass(frozen=True)
class Roles:
    """Which columns of a table hold what: either better and worse, or a, b and winner."""

    user: str | None = None
    better: str | None = None
    worse: str | None = None
    a: str | None = None
    b: str | None = None
    winner: str | None = None
    count: str | None = None
    passed_over: tuple[str, ...] = field(default=())

    def columns(self) -> list[str]:
        """Return the columns that are looked at."""
        return [*self.held().values(), *self.passed_over]

    def held(self) -> dict[str, str]:
        """Return the column of each role that has one."""
        return {role: name for role in ROLES if (name := getattr(self, role)) is not None}

    def __str__(self) -> str:
        return ", ".join(f"{role} in {printable(name)}" for role, name in self.held().items())


def from_columns(
    table: Mapping[str, list[Any]],
    users: Iterable[object] | None,
    items: Iterable[object] | None,
    roles: Roles,
    lines: Sequence[int] | None = None,
) -> Comparisons:
    """Return the comparisons of a table whose columns are known; ``lines`` are those of a file."""
    used = list(roles.held().values())
    lengths = [len(table[name]) for name in used]
    if len(set(lengths)) > 1:
        raise RankingError(f"the columns {', '.join(used)} have lengths {lengths}; they must be equal")
    check_whose(table, roles)
    taken, rows = Collector(users, items), range(lengths[0])
    numbers = np.empty(len(rows), dtype=np.int64)
    for row in rows:
        place = f"row {row}" if lines is None else f"line {lines[row]}"
        where, name = place, str(row)
        if roles.user is not None:
            user = table[roles.user][row]
            if is_missing(user) or user == "":
                raise RankingError(f"{place} has no user ({user!r}); every pair belongs to one")
            name, where = str(user), f"{place} (user {printable(user)!r})"
        numbers[row] = taken.number(name, place)
        if roles.winner is None:
            taken.add(int(numbers[row]), table[str(roles.better)][row], table[str(roles.worse)][row], False, where)
        else:
            sides = table[str(roles.a)][row], table[str(roles.b)][row]
            side = winning_side(table[roles.winner][row], sides, (str(roles.a), str(roles.b)), where)
            better, worse = reversed(sides) if side == 1 else sides
            taken.add(int(numbers[row]), better, worse, side is None, where)
    first = np.full(len(taken.users), -1, dtype=np.int64)
    first[numbers[::-1]] = np.arange(len(rows))[::-1]
    counts = None if roles.count is None else counts_of_users(table[roles.count], numbers, taken.users, roles)
    return taken.comparisons(first, counts=counts, passed_over=roles.passed_over)


def check_whose(table: Mapping[str, list[Any]], roles: Roles) -> None:
    """Refuse a table without users in which a column that is passed over may be just that: its values occur again."""
    for name in roles.passed_over if roles.user is None else ():
        if normal(name) in MAY_BE_USERS and len(set(table[name])) < len(table[name]):
            raise RankingError(
                f"the values of column {printable(name)!r} occur again, as those of users do; say which it is: "
                f"columns={{'user': {name!r}}}, or ignore={[name]!r} where every row is a voter of its own"
            )


def counts_of_users(cells: list[Any], user_of_row: IntArray, users: Iterable[str], roles: Roles) -> IntArray:
    """Return the count of each user, which all rows of the user must agree on."""
    given = as_integers(np.array(cells, dtype=object), "count")
    names = list(users)
    counts = np.ones(len(names), dtype=np.int64)
    counts[user_of_row] = given
    wrong = np.flatnonzero(counts[user_of_row] != given)
    if len(wrong):
        row = int(wrong[0])
        name = printable(names[user_of_row[row]])
        raise RankingError(
            f"row {row} gives {roles.user} {name!r} another count ({given[row]}) than a later one; the rows of a user "
            "have one count; without a column of users every row is a voter of its own"
        )
    return counts


def winning_side(value: Any, sides: tuple[Any, Any], columns: tuple[str, str], where: str) -> int | None:
    """Return which of two items won: 0, 1, or None for a tie."""
    if is_missing(value) or value == "":
        raise RankingError(f"{where} has no winner ({value!r}); leave out comparisons that are not known")
    word = normal(value)
    by_column = [place for place, column in enumerate(columns) if word in words_for(column)]
    by_name = [place for place, item in enumerate(sides) if str(value).strip() == str(item).strip()]
    meant = {*by_column, *by_name}
    if len(meant) == 1:
        return meant.pop()
    if not meant and word in TIES:
        return None
    problem = "may mean either item" if meant else "is neither of the two nor a tie"
    a, b = (f"{printable(column)} ({printable(item)})" for column, item in zip(columns, sides, strict=True))
    raise RankingError(f"{where}: the winner {printable(value)!r} {problem}; wanted is {a}, {b}, or tie")


def words_for(column: str) -> set[str]:
    """Return the words by which a winner may be called that stands in a column: model_a, a."""
    name = normal(column)
    return {name, *re.findall("[12]$", name), *(part for part in name.split("_") if part in ONE_SIDE)}


# ---------------------------------------------------------------------- which column is what


def normal(name: Any) -> str:
    """Return a name in small letters with _ between its words.

    Examples
    --------
    >>> normal("Model A"), normal("tie (bothbad)"), normal("judgeId")
    ('model_a', 'tie_bothbad', 'judge_id')
    """
    apart = re.sub("(?<=[a-z])(?=[A-Z])", "_", str(name).strip())
    return re.sub(r"[\W_]+", "_", apart.lower()).strip("_")


def stem(name: str) -> str:
    """Return the normal name of a column without ``_id``, ``_name`` and the ``s`` of a plural."""
    short = re.sub(r"_?(?:id|ids|name|model|item)$", "", normal(name)) or normal(name)
    return short[:-1] if short.endswith("s") and len(short) > 3 else short


def has_pair_columns(columns: Sequence[str]) -> bool:
    """Say whether the columns of a table are those of comparisons."""
    try:
        find_columns(columns, {}, ())
    except RankingError:
        return False
    return True


def find_columns(columns: Sequence[str], stated: Mapping[str, str], ignore: Sequence[str]) -> Roles:
    """Return what each column holds, as stated or found by its name; refuse a table that leaves doubt."""
    listing = ", ".join(printable(name) for name in columns)
    for role, name in stated.items():
        if role not in ROLES:
            raise RankingError(f"columns names the role {printable(role)!r}; the roles are {', '.join(ROLES)}")
        if name not in columns:
            raise RankingError(f"there is no column {printable(name)!r} for {role}; the columns are {listing}")
    ignored = [ignore] if isinstance(ignore, str) else list(ignore)
    for name in ignored:
        if name not in columns:
            raise RankingError(f"ignore names the column {printable(name)!r}; the columns are {listing}")
    found = dict(stated)
    free = [name for name in columns if name not in ignored and name not in stated.values()]
    take(found, "user", [name for name in free if stem(name) in USER], free)
    take(found, "count", [name for name in free if normal(name) in COUNT], free)
    if not {"better", "worse", "a", "b"} & found.keys():
        find_pair(found, free)
    elif {"a", "b"} & found.keys():
        take(found, "winner", [name for name in free if stem(name) in WINNER], free)
    complete = {"a", "b", "winner"} <= found.keys() or {"better", "worse"} <= found.keys()
    if not complete or {"better", "a"} <= found.keys():
        raise RankingError(f"the columns are {listing}; {WANTED}: name them in columns=")
    over = [name for name in free if normal(name) in PASSED_OVER or stem(name) in PASSED_OVER]
    unknown = [name for name in free if name not in over]
    if unknown:
        raise RankingError(
            f"column {printable(unknown[0])!r} is not known ({WANTED}); if it says nothing about the pairs, pass it "
            "over with ignore=, else name it in columns="
        )
    return Roles(**found, passed_over=tuple(over))


def take(found: dict[str, str], role: str, candidates: list[str], free: list[str]) -> None:
    """Give a role to the only column that may have it; two that may have it are refused."""
    if role in found or not candidates:
        return
    if len(candidates) > 1:
        names = " and ".join(printable(name) for name in candidates)
        raise RankingError(f"the columns {names} may both be the {role}; name one in columns=, and ignore= the other")
    found[role] = candidates[0]
    free.remove(candidates[0])


def find_pair(found: dict[str, str], free: list[str]) -> None:
    """Find the columns of the two items, and of the winner where the items stand in two neutral columns."""
    sides = two_sides(free)
    if len(sides) > 1:
        names = "; ".join(f"{printable(a)} and {printable(b)}" for a, b in sides)
        raise RankingError(f"several pairs of columns may hold the two items: {names}; name one in columns=")
    worse = [name for name in free if stem(name) in WORSE]
    if sides and not worse:
        for role, name in zip(("a", "b"), sides[0], strict=True):
            take(found, role, [name], free)
        take(found, "winner", [name for name in free if stem(name) in WINNER], free)
    elif not sides:
        take(found, "better", [name for name in free if stem(name) in BETTER], free)
        take(found, "worse", worse, free)


def two_sides(columns: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of columns that differ only in a and b, 1 and 2, left and right: model_a and model_b."""
    by_name = {normal(name): name for name in columns if normal(name) not in PASSED_OVER}
    found = []
    for name, column in by_name.items():
        for one, other in SIDES:
            sign = rf"(?<![^_]){one}(?![^_])" + (rf"|(?<=[a-z]){one}$" if one.isdigit() else "")  # item_1, item1
            partner = re.sub(sign, other, name, count=1)
            if partner != name and partner in by_name:
                found.append((column, by_name[partner]))
    return list(dict.fromkeys(found))

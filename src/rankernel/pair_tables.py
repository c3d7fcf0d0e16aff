"""Pairwise comparisons from long tables, tables of two items and a winner, or one list of pairs per user.

The columns of a table are recognised by their names. An ambiguous table is an error that names the arguments to give.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankernel._utils import IntArray, Mask
from rankernel._utils.checks import check_list, printable, short_repr
from rankernel.errors import Argument, RankingError
from rankernel.rankings import as_integers, check_items, is_frame, is_missing

ROLES = ("user", "better", "worse", "a", "b", "winner", "count")
# Names of columns in lower case with _ between the words; a final "_id" or "s" of users and items is ignored.
USER_WORDS = "user judge annotator rater voter respondent participant worker evaluator person subject"
BETTER_WORDS = "better winner preferred chosen won win best superior"
WORSE_WORDS = "worse loser rejected lost loses worst inferior beaten"
WINNER_WORDS = "winner winning preferred preference result outcome verdict judgment judgement chosen"
COUNT_WORDS = "count counts n weight weights times votes n_votes frequency freq number num total"
IGNORED_WORDS = """
id index row line tstamp timestamp time date question prompt turn language lang anony category session unnamed
conversation_a conversation_b response_a response_b
"""
TIE_WORDS = "tie ties tied draw equal same both neither bothbad both_bad tie_bothbad tie_both_bad"
USER, BETTER, WORSE, WINNER = (
    frozenset(words.split()) for words in (USER_WORDS, BETTER_WORDS, WORSE_WORDS, WINNER_WORDS)
)
COUNT, IGNORED, TIES = (frozenset(words.split()) for words in (COUNT_WORDS, IGNORED_WORDS, TIE_WORDS))
POSSIBLE_USERS = ("id", "session")  # if their values are repeated
SIDES = (("a", "b"), ("1", "2"), ("left", "right"), ("first", "second"))
ONE_SIDE = frozenset(side for sides in SIDES for side in sides)
EXPECTED = (
    "a table of pairs has the columns winner and loser (or better and worse), or model_a, model_b and winner, and "
    "optionally a judge (or user) and a count"
)


@dataclass(frozen=True)
class Comparisons:
    """Pairwise comparisons: the user, the better and the worse item of each, and whether they are tied.

    Attributes
    ----------
    users : tuple of str
        Names of the users.
    user, better, worse : arrays
        Indices of the user and of the two items of each comparison.
    tied : array
        Whether each comparison is a tie.
    items : tuple of str
        The items; by default those that occur, in order of first appearance.
    row_of_user : array
        First row of each user.
    counts : array, optional
        Number of voters of each user, if the table has a column of counts.
    ignored : tuple of str
        Columns that were not used.
    """

    users: tuple[str, ...]
    user: IntArray
    better: IntArray
    worse: IntArray
    tied: Mask
    items: tuple[str, ...]
    row_of_user: IntArray
    counts: IntArray | None = None
    ignored: tuple[str, ...] = ()


class ComparisonBuilder:
    """Collects comparisons, numbers their users and items, and checks them."""

    def __init__(self, users: Iterable[object] | None, items: Iterable[object] | None) -> None:
        self.fixed, self.closed = users is not None, items is not None
        self.users: dict[str, int] = {} if users is None else {name: n for n, name in enumerate(user_names(users))}
        self.items: dict[str, int] = {} if items is None else {name: n for n, name in enumerate(check_items(items))}
        self.rows: list[tuple[int, int, int, bool]] = []

    def user_index(self, user: str, where: str) -> int:
        """Return the index of a user."""
        if user not in self.users and self.fixed:
            raise RankingError(f"{where} is of user {printable(user)!r}, who is not one of the ", Argument("users"))
        return self.users.setdefault(user, len(self.users))

    def add(self, user: int, better: Any, worse: Any, tied: bool, where: str) -> None:
        """Add one comparison."""
        for value in (better, worse):
            if is_missing(value) or value == "":
                raise RankingError(f"{where} has a missing item ({value!r}); remove incomplete pairs")
            if not is_name(value):
                raise RankingError(f"{where} holds {value!r}; an item is one name")
        if str(better) == str(worse):
            raise RankingError(f"{where} compares {printable(better)!r} with itself")
        for name in (str(better), str(worse)):
            if name not in self.items and self.closed:
                raise RankingError(f"{where} names {printable(name)!r}, which is not one of the ", Argument("items"))
        first, second = (self.items.setdefault(str(name), len(self.items)) for name in (better, worse))
        self.rows.append((user, first, second, tied))

    def comparisons(self, row_of_user: IntArray, **more: Any) -> Comparisons:
        """Return the comparisons."""
        table = np.array(self.rows, dtype=np.int64).reshape(-1, 4)
        user, better, worse, tied = table.T
        return Comparisons(
            tuple(self.users), user, better, worse, tied.astype(bool), tuple(self.items), row_of_user, **more
        )


def is_name(value: object) -> bool:
    """Whether a value is a single name, not a collection."""
    return isinstance(value, (str, bytes)) or not isinstance(value, Iterable)


def user_names(users: Iterable[object]) -> tuple[str, ...]:
    """Return user names as strings; missing and repeated names are errors."""
    if isinstance(users, str):
        raise RankingError(f"users={printable(users)!r} is one string; give a list of names")
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


# ---------------------------------------------------------------------- one list of pairs per user


def user_lists(pairs: Any, users: Iterable[object] | None, items: Iterable[object] | None) -> Comparisons:
    """Return the comparisons of one list of pairs (better, worse) per user."""
    if is_name(pairs) or getattr(pairs, "ndim", 1) == 0:
        raise RankingError(
            f"pairs={short_repr(pairs)} is not possible; give a list of pairs (better, worse) per user, or a long table"
        )
    lists = list(pairs)
    names = tuple(map(str, range(len(lists)))) if users is None else user_names(users)
    if len(names) != len(lists):
        raise RankingError(f"users has {len(names)} names for {len(lists)} lists of pairs; give one each")
    builder = ComparisonBuilder(names, items)
    for user, own in enumerate(lists):
        where = f"user {printable(names[user])!r}"
        if is_name(own):
            raise RankingError(f"{where} has {short_repr(own)}; expected a list of pairs (better, worse)")
        for number, pair in enumerate(own):
            if not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2:
                raise RankingError(f"{where}, pair {number}, is {pair!r}; expected lists of pairs (better, worse)")
            builder.add(user, pair[0], pair[1], False, f"{where}, pair {number},")
    return builder.comparisons(np.arange(len(lists)))


# ---------------------------------------------------------------------- long tables


def is_long(pairs: Any) -> bool:
    """Whether pairs are a long table and not one list of pairs per user."""
    if isinstance(pairs, Mapping) or is_frame(pairs):
        return True
    if isinstance(pairs, np.ndarray):
        return pairs.ndim == 2
    if are_columns(pairs):
        return True
    return isinstance(pairs, Sequence) and len(pairs) > 0 and all(is_triple(row) for row in pairs)


def is_triple(row: Any) -> bool:
    """Whether a row is (user, better, worse)."""
    return isinstance(row, (tuple, list, np.ndarray)) and len(row) == 3 and all(is_name(value) for value in row)


def are_columns(pairs: Any) -> bool:
    """Whether pairs are a tuple of three arrays."""
    return isinstance(pairs, tuple) and len(pairs) == 3 and all(np.ndim(c) == 1 and hasattr(c, "dtype") for c in pairs)


def long_table(
    pairs: Any,
    users: Iterable[object] | None,
    items: Iterable[object] | None,
    columns: Mapping[str, str],
    ignore: Sequence[str],
) -> Comparisons:
    """Return the comparisons of a long table with named columns, or with the columns user, better, worse."""
    if isinstance(pairs, Mapping) or is_frame(pairs):
        names = pairs if isinstance(pairs, Mapping) else pairs.columns
        named = {str(name): check_list(f"pairs[{name!r}]", pairs[name], "a column of a table") for name in names}
        return from_columns(named, users, items, find_columns(list(named), columns, ignore))
    if columns or ignore:
        raise RankingError("columns and ignore require a table with named columns")
    if are_columns(pairs):
        table = dict(zip(("user", "better", "worse"), map(list, pairs), strict=True))
    else:
        if isinstance(pairs, np.ndarray) and pairs.shape[1] != 3:
            raise RankingError(
                f"pairs: the table has shape {pairs.shape}; without names there are three columns: user, better and "
                "worse"
            )
        table = {name: [row[index] for row in pairs] for index, name in enumerate(("user", "better", "worse"))}
    return from_columns(table, users, items, Roles("user", "better", "worse"))


@dataclass(frozen=True)
class Roles:
    """Roles of the columns of a table: better and worse, or a, b and winner, and others."""

    user: str | None = None
    better: str | None = None
    worse: str | None = None
    a: str | None = None
    b: str | None = None
    winner: str | None = None
    count: str | None = None
    ignored: tuple[str, ...] = field(default=())

    def columns(self) -> list[str]:
        """Return the columns of roles and the ignored ones."""
        return [*self.assigned().values(), *self.ignored]

    def assigned(self) -> dict[str, str]:
        """Return the column of each assigned role."""
        return {role: name for role in ROLES if (name := getattr(self, role)) is not None}

    def __str__(self) -> str:
        return ", ".join(f"{role} in {printable(name)}" for role, name in self.assigned().items())


def from_columns(
    table: Mapping[str, list[Any]],
    users: Iterable[object] | None,
    items: Iterable[object] | None,
    roles: Roles,
    lines: Sequence[int] | None = None,
) -> Comparisons:
    """Return the comparisons of a table with known roles; ``lines`` are the lines of a file."""
    used = list(roles.assigned().values())
    lengths = [len(table[name]) for name in used]
    if len(set(lengths)) > 1:
        raise RankingError(f"pairs: the columns {', '.join(used)} have lengths {lengths}; they must be equal")
    check_user_column(table, roles)
    builder, rows = ComparisonBuilder(users, items), range(lengths[0])
    numbers = np.empty(len(rows), dtype=np.int64)
    for row in rows:
        position = f"row {row}" if lines is None else f"line {lines[row]}"
        where, name = position, str(row)
        if roles.user is not None:
            user = table[roles.user][row]
            if is_missing(user) or user == "":
                raise RankingError(f"{position} has no user ({user!r})")
            name, where = str(user), f"{position} (user {printable(user)!r})"
        numbers[row] = builder.user_index(name, position)
        if roles.winner is None:
            builder.add(int(numbers[row]), table[str(roles.better)][row], table[str(roles.worse)][row], False, where)
        else:
            sides = table[str(roles.a)][row], table[str(roles.b)][row]
            side = winner_index(table[roles.winner][row], sides, (str(roles.a), str(roles.b)), where)
            better, worse = reversed(sides) if side == 1 else sides
            builder.add(int(numbers[row]), better, worse, side is None, where)
    first = np.full(len(builder.users), -1, dtype=np.int64)
    first[numbers[::-1]] = np.arange(len(rows))[::-1]
    counts = None if roles.count is None else user_counts(table[roles.count], numbers, builder.users, roles)
    return builder.comparisons(first, counts=counts, ignored=roles.ignored)


def check_user_column(table: Mapping[str, list[Any]], roles: Roles) -> None:
    """Raise an error if a table without users has an ignored column that may identify them: its values are repeated."""
    for name in roles.ignored if roles.user is None else ():
        if normalized(name) in POSSIBLE_USERS and len(set(table[name])) < len(table[name]):
            raise RankingError(
                f"the values of column {printable(name)!r} are repeated, so it may identify users; give it the role of "
                "user in ",
                Argument("columns", ...),
                ", or if every row is a different user, name it in ",
                Argument("ignore", ...),
            )


def user_counts(cells: list[Any], user_of_row: IntArray, users: Iterable[str], roles: Roles) -> IntArray:
    """Return the count of each user, which must be the same in all rows of the user."""
    given = as_integers(np.array(cells, dtype=object), "count")
    names = list(users)
    counts = np.ones(len(names), dtype=np.int64)
    counts[user_of_row] = given
    wrong = np.flatnonzero(counts[user_of_row] != given)
    if len(wrong):
        row = int(wrong[0])
        name = printable(names[user_of_row[row]])
        raise RankingError(
            f"row {row} has another count ({given[row]}) of {roles.user} {name!r} than a later row; each has one count"
        )
    return counts


def winner_index(value: Any, sides: tuple[Any, Any], columns: tuple[str, str], where: str) -> int | None:
    """Return the index of the winner of two items, 0 or 1, or None for a tie."""
    if is_missing(value) or value == "":
        raise RankingError(f"{where} has no winner ({value!r}); remove incomplete comparisons")
    word = normalized(value)
    by_column = [index for index, column in enumerate(columns) if word in column_words(column)]
    by_name = [index for index, item in enumerate(sides) if str(value).strip() == str(item).strip()]
    matching = {*by_column, *by_name}
    if len(matching) == 1:
        return matching.pop()
    if not matching and word in TIES:
        return None
    problem = "may be either item" if matching else "is neither item nor a tie"
    a, b = (f"{printable(column)} ({printable(item)})" for column, item in zip(columns, sides, strict=True))
    raise RankingError(f"{where}: the winner {printable(value)!r} {problem}; expected {a}, {b}, or tie")


def column_words(column: str) -> set[str]:
    """Return the words for a winner that is in a column: model_a, a."""
    name = normalized(column)
    return {name, *re.findall("[12]$", name), *(part for part in name.split("_") if part in ONE_SIDE)}


# ---------------------------------------------------------------------- roles of columns


def normalized(name: Any) -> str:
    """Return a name in lower case with _ between its words.

    Examples
    --------
    >>> normalized("Model A"), normalized("tie (bothbad)"), normalized("judgeId")
    ('model_a', 'tie_bothbad', 'judge_id')
    """
    apart = re.sub("(?<=[a-z])(?=[A-Z])", "_", str(name).strip())
    return re.sub(r"[\W_]+", "_", apart.lower()).strip("_")


def stem(name: str) -> str:
    """Return the normalized name of a column without ``_id``, ``_name`` and a plural ``s``."""
    short = re.sub(r"_?(?:id|ids|name|model|item)$", "", normalized(name)) or normalized(name)
    return short[:-1] if short.endswith("s") and len(short) > 3 else short


def has_pair_columns(columns: Sequence[str]) -> bool:
    """Whether the columns of a table are those of comparisons."""
    try:
        find_columns(columns, {}, ())
    except RankingError:
        return False
    return True


def find_columns(columns: Sequence[str], stated: Mapping[str, str], ignore: Sequence[str]) -> Roles:
    """Return the roles of columns, as stated or by their names; an ambiguous table is an error."""
    listing = ", ".join(printable(name) for name in columns)
    for role, name in stated.items():
        if role not in ROLES:
            raise RankingError(
                Argument("columns"), f" names the role {printable(role)!r}; the roles are {', '.join(ROLES)}"
            )
        if name not in columns:
            raise RankingError(Argument("columns"), f" names the column {printable(name)!r}; the columns are {listing}")
    ignored = [ignore] if isinstance(ignore, str) else list(ignore)
    for name in ignored:
        if name not in columns:
            raise RankingError(Argument("ignore"), f" names the column {printable(name)!r}; the columns are {listing}")
    found = dict(stated)
    free = [name for name in columns if name not in ignored and name not in stated.values()]
    assign_role(found, "user", [name for name in free if stem(name) in USER], free)
    assign_role(found, "count", [name for name in free if normalized(name) in COUNT], free)
    if not {"better", "worse", "a", "b"} & found.keys():
        assign_items(found, free)
    elif {"a", "b"} & found.keys():
        assign_role(found, "winner", [name for name in free if stem(name) in WINNER], free)
    complete = {"a", "b", "winner"} <= found.keys() or {"better", "worse"} <= found.keys()
    if not complete or {"better", "a"} <= found.keys():
        raise RankingError(f"the columns are {listing}; {EXPECTED}: name them in ", Argument("columns", ...))
    unused = [name for name in free if normalized(name) in IGNORED or stem(name) in IGNORED]
    unknown = [name for name in free if name not in unused]
    if unknown:
        problem = f"column {printable(unknown[0])!r} has an unknown role ({EXPECTED}); name it in "
        raise RankingError(problem, Argument("columns", ...), " or ", Argument("ignore", ...))
    return Roles(**found, ignored=tuple(unused))


def assign_role(found: dict[str, str], role: str, candidates: list[str], free: list[str]) -> None:
    """Assign a role to the only candidate; two candidates are an error."""
    if role in found or not candidates:
        return
    if len(candidates) > 1:
        names = " and ".join(printable(name) for name in candidates)
        problem = f"the columns {names} may both be the {role}; name one in "
        raise RankingError(problem, Argument("columns", ...), " and the other in ", Argument("ignore", ...))
    found[role] = candidates[0]
    free.remove(candidates[0])


def assign_items(found: dict[str, str], free: list[str]) -> None:
    """Assign the roles of the two items, and of the winner if the columns of the items do not tell."""
    sides = two_sides(free)
    if len(sides) > 1:
        names = "; ".join(f"{printable(a)} and {printable(b)}" for a, b in sides)
        problem = f"several pairs of columns may hold the two items: {names}; name one in "
        raise RankingError(problem, Argument("columns", ...))
    worse = [name for name in free if stem(name) in WORSE]
    if sides and not worse:
        for role, name in zip(("a", "b"), sides[0], strict=True):
            assign_role(found, role, [name], free)
        assign_role(found, "winner", [name for name in free if stem(name) in WINNER], free)
    elif not sides:
        assign_role(found, "better", [name for name in free if stem(name) in BETTER], free)
        assign_role(found, "worse", worse, free)


def two_sides(columns: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of columns whose names differ only in a and b, 1 and 2, or left and right: model_a, model_b."""
    by_name = {normalized(name): name for name in columns if normalized(name) not in IGNORED}
    found = []
    for name, column in by_name.items():
        for one, other in SIDES:
            sign = rf"(?<![^_]){one}(?![^_])" + (rf"|(?<=[a-z]){one}$" if one.isdigit() else "")  # item_1, item1
            partner = re.sub(sign, other, name, count=1)
            if partner != name and partner in by_name:
                found.append((column, by_name[partner]))
    return list(dict.fromkeys(found))

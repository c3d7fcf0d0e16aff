"""Pairwise comparisons from long tables, tables of two items and a winner, or one list of pairs per user.

The columns of a table are recognised by their names. An ambiguous table is an error that names the arguments to give.
Cells are coded as indices of the distinct texts, so that a million comparisons are read without a loop over them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
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
WINNER_WORDS = "winner winning preferred preference result outcome verdict judgment judgement chosen label"
COUNT_WORDS = "count counts n weight weights times votes n_votes frequency freq number num total"
NOT_ITEMS_WORDS = "conversation response output prompt answer text message tokens"
TIE_WORDS = "tie ties tied draw equal same both neither bothbad both_bad tie_bothbad tie_both_bad 1_5 0_5"
USER, BETTER, WORSE, WINNER, NOT_ITEMS = (
    frozenset(words.split()) for words in (USER_WORDS, BETTER_WORDS, WORSE_WORDS, WINNER_WORDS, NOT_ITEMS_WORDS)
)
COUNT, TIES = (frozenset(words.split()) for words in (COUNT_WORDS, TIE_WORDS))
POSSIBLE_USERS = ("id", "session")  # if their values are repeated
SIDES = (("a", "b"), ("1", "2"), ("left", "right"), ("first", "second"))
ONE_SIDE = frozenset(side for sides in SIDES for side in sides)
EXPECTED = (
    "a table of pairs has the columns winner and loser (or better and worse), or model_a, model_b and winner, and "
    "optionally a judge (or user) and a count"
)


@dataclass(frozen=True)
class Column:
    """A column as indices of its distinct texts; the text of a missing value is empty."""

    codes: IntArray
    texts: list[str]

    @classmethod
    def of(cls, values: Iterable[Any], where: Callable[[int], str]) -> Column:
        """Return the values as a column; a collection is an error."""
        given = list(values)
        try:
            distinct = dict.fromkeys(given)
        except TypeError:  # not hashable
            distinct = {}
        if not all(map(is_name, distinct)) or (given and not distinct):
            row = next(row for row, value in enumerate(given) if not is_name(value))
            raise RankingError(f"{where(row)} holds {given[row]!r}; an item is one name")
        index: dict[str, int] = {}
        code = {each: index.setdefault("" if is_missing(each) else str(each), len(index)) for each in distinct}
        return cls(np.fromiter(map(code.__getitem__, given), np.int64, len(given)), list(index))

    def __getitem__(self, row: int) -> str:
        return self.texts[self.codes[row]]

    def mapped(self, function: Callable[[str], Any], dtype: type = np.int64) -> Any:
        """Return a value for each row, computed once for each distinct text."""
        return np.array([function(text) for text in self.texts] or [0], dtype=dtype)[self.codes]


@dataclass(frozen=True)
class PairTable:
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
        First row of each user, -1 without rows.
    counts : array, optional
        Number of voters of each user, if the table has a column of counts.
    """

    users: tuple[str, ...]
    user: IntArray
    better: IntArray
    worse: IntArray
    tied: Mask
    items: tuple[str, ...]
    row_of_user: IntArray
    counts: IntArray | None = None


def pair_table(
    sides: tuple[Column, Column],
    tied: Mask,
    user: IntArray,
    users: tuple[str, ...],
    items: Iterable[object] | None,
    where: Callable[[int], str],
    counts: IntArray | None = None,
) -> PairTable:
    """Return checked comparisons of the better and the worse item of each row."""
    index = {} if items is None else {name: number for number, name in enumerate(check_items(items))}
    known = frozenset(index) if items is not None else None
    if items is None:  # in order of first appearance, row by row
        found: dict[str, int] = {}
        for number, side in enumerate(sides):
            first = first_rows(side.codes, len(side.texts))
            for text, row in zip(side.texts, first.tolist(), strict=True):
                if row >= 0:
                    found[text] = min(found.get(text, 2 * row + number), 2 * row + number)
        index = {name: number for number, name in enumerate(sorted(found, key=found.__getitem__)) if name}
    better, worse = (side.mapped(lambda text: index.get(text, -1)) for side in sides)
    wrong = np.flatnonzero((better < 0) | (worse < 0) | (better == worse))
    if len(wrong):
        row = int(wrong[0])
        names = [side[row] for side in sides]
        if not all(names):
            raise RankingError(f"{where(row)} has a missing item; remove incomplete pairs")
        unknown = [name for name in names if known is not None and name not in known]
        if unknown:
            problem = f"{where(row)} names {printable(unknown[0])!r}, which is not one of the "
            raise RankingError(problem, Argument("items"))
        raise RankingError(f"{where(row)} compares {printable(names[0])!r} with itself")
    return PairTable(users, user, better, worse, tied, tuple(index), first_rows(user, len(users)), counts)


def first_rows(codes: IntArray, n_codes: int) -> IntArray:
    """Return the first row of each code, -1 for codes that do not occur."""
    first = np.full(n_codes, -1, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # of repeated indices the last assignment stays
    return first


def is_name(value: object) -> bool:
    """Whether a value is a single name, not a collection."""
    return isinstance(value, (str, bytes)) or not isinstance(value, Iterable)


def user_names(users: Iterable[object]) -> tuple[str, ...]:
    """Return user names as strings; missing and repeated names are errors."""
    if isinstance(users, str):
        raise RankingError(f"users={printable(users)!r} is one string; give a list of names")
    given = check_list("users", users, "a list of user names")
    seen: dict[str, int] = {}
    for number, name in enumerate(given):
        if is_missing(name):
            raise RankingError(f"users: the name of user {number} is missing ({name!r})")
        if str(name) in seen:
            raise RankingError(f"two users are named {printable(name)!r}; user names must be unique")
        seen[str(name)] = number
    return tuple(seen)


def user_lists(pairs: Any, users: Iterable[object] | None, items: Iterable[object] | None) -> PairTable:
    """Return the comparisons of one list of pairs (better, worse) per user."""
    if is_name(pairs) or getattr(pairs, "ndim", 1) == 0:
        raise RankingError(
            f"pairs={short_repr(pairs)} is not possible; give a list of pairs (better, worse) per user, or a long table"
        )
    lists = list(pairs)
    names = tuple(map(str, range(len(lists)))) if users is None else user_names(users)
    if len(names) != len(lists):
        raise RankingError(f"users has {len(names)} names for {len(lists)} lists of pairs; give one each")
    rows: list[tuple[Any, Any]] = []
    origin: list[tuple[int, int]] = []
    for user, own in enumerate(lists):
        name = printable(names[user])
        if is_name(own):
            raise RankingError(f"user {name!r} has {short_repr(own)}; expected a list of pairs (better, worse)")
        for number, pair in enumerate(own):
            if not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2:
                problem = f"user {name!r}, pair {number}, is {pair!r}; expected lists of pairs (better, worse)"
                raise RankingError(problem)
            rows.append((pair[0], pair[1]))
            origin.append((user, number))

    def where(row: int) -> str:
        user, number = origin[row]
        return f"user {printable(names[user])!r}, pair {number},"

    sides = Column.of([better for better, _ in rows], where), Column.of([worse for _, worse in rows], where)
    of_row = np.array([user for user, _ in origin], dtype=np.int64)
    return pair_table(sides, np.zeros(len(rows), dtype=bool), of_row, names, items, where)


# ---------------------------------------------------------------------- long tables


def is_long(pairs: Any) -> bool:
    """Whether pairs are a long table and not one list of pairs per user."""
    if isinstance(pairs, Mapping) or is_frame(pairs) or are_columns(pairs):
        return True
    if isinstance(pairs, np.ndarray):
        return pairs.ndim == 2
    return (
        isinstance(pairs, Sequence)
        and len(pairs) > 0
        and all(
            isinstance(row, (tuple, list, np.ndarray)) and len(row) == 3 and all(map(is_name, row)) for row in pairs
        )
    )


def are_columns(pairs: Any) -> bool:
    """Whether pairs are a tuple of three arrays."""
    return isinstance(pairs, tuple) and len(pairs) == 3 and all(np.ndim(c) == 1 and hasattr(c, "dtype") for c in pairs)


def long_table(
    pairs: Any,
    users: Iterable[object] | None,
    items: Iterable[object] | None,
    columns: Mapping[str, str],
    ignore: Sequence[str],
) -> PairTable:
    """Return the comparisons of a long table with named columns, or with the columns user, better, worse."""
    if isinstance(pairs, Mapping) or is_frame(pairs):
        names = pairs if isinstance(pairs, Mapping) else pairs.columns
        table = {str(name): check_list(f"pairs[{name!r}]", pairs[name], "a column of a table") for name in names}
        roles = find_columns(list(table), columns, ignore)
    else:
        if columns or ignore:
            raise RankingError("columns and ignore require a table with named columns")
        if isinstance(pairs, np.ndarray) and pairs.shape[1] != 3:
            raise RankingError(
                f"pairs: the table has shape {pairs.shape}; without names there are three columns: user, better and "
                "worse"
            )
        roles = Roles("user", "better", "worse")
        table = {
            name: list(pairs[index]) if are_columns(pairs) else [row[index] for row in pairs]
            for index, name in enumerate(("user", "better", "worse"))
        }
    used = {name: table[name] for name in roles.columns()}
    lengths = [len(values) for values in used.values()]
    if len(set(lengths)) > 1:
        raise RankingError(f"pairs: the columns {', '.join(used)} have lengths {lengths}; they must be equal")
    coded = {name: Column.of(values, lambda row: f"row {row}") for name, values in used.items()}
    return from_columns(coded, users, items, roles, lambda row: f"row {row}")


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
    #: Columns of 0 and 1 that state the winner instead: for a, for b and, if there is one, for a tie.
    indicators: tuple[str, ...] = ()
    ignored: tuple[str, ...] = field(default=())

    def assigned(self) -> dict[str, str]:
        """Return the column of each assigned role."""
        return {role: name for role in ROLES if (name := getattr(self, role)) is not None}

    def columns(self) -> list[str]:
        """Return the columns that are read: those of roles, and those that may identify users."""
        possible = [name for name in self.ignored if normalized(name) in POSSIBLE_USERS]
        return [*self.assigned().values(), *self.indicators, *(possible if self.user is None else [])]

    def __str__(self) -> str:
        parts = [f"{role} in {printable(name)}" for role, name in self.assigned().items()]
        if self.indicators:
            parts.append(f"winner in {', '.join(map(printable, self.indicators))}")
        return ", ".join(parts)


def from_columns(
    table: Mapping[str, Column],
    users: Iterable[object] | None,
    items: Iterable[object] | None,
    roles: Roles,
    position: Callable[[int], str],
) -> PairTable:
    """Return the comparisons of a table with known roles; ``position`` names a row in errors."""
    n_rows = len(next(iter(table.values())).codes)
    check_user_column(table, roles)
    names: tuple[str, ...]
    if roles.user is None:
        user, names = np.arange(n_rows), tuple(map(str, range(n_rows)))
        if users is not None and names != user_names(users):
            raise RankingError("row 0 has no user, but the names of ", Argument("users"), " are given")
    else:
        column = table[roles.user]
        order = np.argsort(first_rows(column.codes, len(column.texts)))
        given = user_names(users) if users is not None else [column.texts[code] for code in order.tolist()]
        index = {name: number for number, name in enumerate(given)}
        user, names = column.mapped(lambda text: index.get(text, -1) if text else -1), tuple(index)
        if (user < 0).any():
            row = int(np.argmax(user < 0))
            if not column[row]:
                raise RankingError(f"{position(row)} has no user")
            problem = f"{position(row)} is of user {printable(column[row])!r}, who is not one of the "
            raise RankingError(problem, Argument("users"))

    def where(row: int) -> str:
        of_user = "" if roles.user is None else f" (user {printable(names[user[row]])!r})"
        return f"{position(row)}{of_user}"

    tied: Mask = np.zeros(n_rows, dtype=bool)
    if roles.better is not None:
        sides = table[roles.better], table[str(roles.worse)]
    else:
        a, b = table[str(roles.a)], table[str(roles.b)]
        side = winner_sides(table, roles, where)
        tied, swapped = side == 2, side == 1
        texts = [*a.texts, *b.texts]
        both = a.codes, b.codes + len(a.texts)
        sides = Column(np.where(swapped, *both[::-1]), texts), Column(np.where(swapped, *both), texts)
    counts = None if roles.count is None else user_counts(table[roles.count], user, names, position)
    return pair_table(sides, tied, user, names, items, where, counts)


def check_user_column(table: Mapping[str, Column], roles: Roles) -> None:
    """Raise an error if a table without users has an ignored column that may identify them: its values are repeated."""
    for name in roles.ignored if roles.user is None else ():
        if name in table and len(table[name].texts) < len(table[name].codes):
            raise RankingError(
                f"the values of column {printable(name)!r} are repeated, so it may identify users; give it the role of "
                "user in ",
                Argument("columns", ...),
                ", or if every row is a different user, name it in ",
                Argument("ignore", ...),
            )


def user_counts(
    cells: Column, user_of_row: IntArray, users: tuple[str, ...], position: Callable[[int], str]
) -> IntArray:
    """Return the count of each user, which must be the same in all rows of the user."""
    given = as_integers(np.array(cells.texts, dtype=object), "count")[cells.codes]
    counts = np.ones(len(users), dtype=np.int64)
    counts[user_of_row] = given
    wrong = np.flatnonzero(counts[user_of_row] != given)
    if len(wrong):
        row = int(wrong[0])
        name = printable(users[user_of_row[row]])
        raise RankingError(
            f"{position(row)} has another count ({given[row]}) of user {name!r} than a later row; each has one count"
        )
    return counts


def winner_sides(table: Mapping[str, Column], roles: Roles, where: Callable[[int], str]) -> IntArray:
    """Return for each row the index of the winner of the two items, 0 or 1, or 2 for a tie."""
    columns = str(roles.a), str(roles.b)
    a, b = (table[name] for name in columns)
    if roles.indicators:
        yes = ("1", "1.0", "true", "yes")
        marks = np.array([table[name].mapped(lambda text: text.lower() in yes, bool) for name in roles.indicators])
        side = np.where(marks.any(axis=0), marks.argmax(axis=0), 2)
        wrong, problem = marks.sum(axis=0) != 1, "does not have a 1 in exactly one of the columns of winners"
        if len(roles.indicators) == 2:
            wrong = marks.all(axis=0)
        if wrong.any():
            raise RankingError(f"{where(int(np.argmax(wrong)))} {problem}")
        return np.asarray(side)
    winner = table[str(roles.winner)]
    number: dict[str, int] = {}  # of each name without surrounding spaces
    named = [each.mapped(lambda text: number.setdefault(text.strip(), len(number))) for each in (winner, a, b)]
    matches = []
    for column, item in zip(columns, named[1:], strict=True):
        words = column_words(column)
        by_column = np.array([normalized(text) in words for text in winner.texts])[winner.codes]
        matches.append(by_column | (named[0] == item))
    tie = winner.mapped(lambda text: normalized(text) in TIES, bool)
    side = np.where(matches[0], 0, np.where(matches[1], 1, 2))
    wrong = (matches[0] & matches[1]) | ((side == 2) & ~tie)
    if wrong.any():
        row = int(np.argmax(wrong))
        if not winner[row]:
            raise RankingError(f"{where(row)} has no winner; remove incomplete comparisons")
        problem = "may be either item" if matches[0][row] else "is neither item nor a tie"
        one, other = (f"{printable(name)} ({printable(table[name][row])})" for name in columns)
        raise RankingError(
            f"{where(row)}: the winner {printable(winner[row])!r} {problem}; expected {one}, {other}, or tie"
        )
    return np.asarray(side)


def column_words(column: str) -> set[str]:
    """Return the words for a winner that is in a column: model_a, a, 1."""
    name = normalized(column)
    sides = {part for part in [*name.split("_"), *re.findall("[12]$", name)] if part in ONE_SIDE}
    numbers = {str(side + 1) for side in (0, 1) if any(pair[side] in sides for pair in SIDES)}
    return {name, *sides, *numbers, *(f"{number}_0" for number in numbers)}


# ---------------------------------------------------------------------- roles of columns


@lru_cache(100_000)
def normalized(name: str) -> str:
    """Return a name in lower case with _ between its words.

    Examples
    --------
    >>> normalized("Model A"), normalized("tie (bothbad)"), normalized("judgeId")
    ('model_a', 'tie_bothbad', 'judge_id')
    """
    apart = re.sub("(?<=[a-z])(?=[A-Z])", "_", name.strip())
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
    indicators = winner_indicators(free)
    for name in indicators:
        free.remove(name)
    if not {"better", "worse", "a", "b"} & found.keys():
        assign_items(found, free)
    if {"a", "b"} & found.keys() and not indicators:
        assign_role(found, "winner", [name for name in free if stem(name) in WINNER], free)
    complete = {"better", "worse"} <= found.keys() or ({"a", "b"} <= found.keys() and (indicators or "winner" in found))
    if not complete or {"better", "a"} <= found.keys():
        raise RankingError(f"the columns are {listing}; {EXPECTED}: name them in ", Argument("columns", ...))
    return Roles(**found, indicators=indicators, ignored=(*ignored, *free))


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
    """Assign the roles of the two items."""
    sides = two_sides(free)
    if len(sides) > 1:
        names = "; ".join(f"{printable(a)} and {printable(b)}" for a, b in sides)
        problem = f"several pairs of columns may hold the two items: {names}; name one in "
        raise RankingError(problem, Argument("columns", ...))
    worse = [name for name in free if stem(name) in WORSE]
    if sides and not worse:
        for role, name in zip(("a", "b"), sides[0], strict=True):
            assign_role(found, role, [name], free)
    elif not sides:
        assign_role(found, "better", [name for name in free if stem(name) in BETTER], free)
        assign_role(found, "worse", worse, free)


def two_sides(columns: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of columns whose names differ only in a and b, 1 and 2, or left and right: model_a, model_b."""
    by_name = {normalized(name): name for name in columns if not NOT_ITEMS & set(normalized(name).split("_"))}
    found = []
    for name, column in by_name.items():
        for one, other in SIDES:
            sign = rf"(?<![^_]){one}(?![^_])" + (rf"|(?<=[a-z]){one}$" if one.isdigit() else "")  # item_1, item1
            partner = re.sub(sign, other, name, count=1)
            if partner != name and partner in by_name:
                found.append((column, by_name[partner]))
    return list(dict.fromkeys(found))


def winner_indicators(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of 0 and 1 that state the winner: winner_model_a, winner_model_b and winner_tie."""
    by_name = {normalized(name): name for name in columns}
    named = [name for name in columns if re.match("(?:winner|win)_", normalized(name))]
    sides = two_sides([name for name in named if normalized(name).split("_")[-1] not in TIES])
    ties = [by_name[name] for name in ("winner_tie", "win_tie", "tie") if name in by_name]
    return (*sides[0], *ties[:1]) if len(sides) == 1 else ()

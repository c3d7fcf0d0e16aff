"""Tables as columns of texts: their cells, what their names say, and the columns of comparisons and long tables."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, islice
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import FloatArray, IntArray, RankArray
from rankernel._utils.checks import check_list, printable, short_repr
from rankernel.errors import Argument, RankingError
from rankernel.rankings import FREE, Unlisted, check_items, check_unlisted, dense_ranks, is_frame, is_list, is_missing

Buckets = list[list[str]]

# Possessive quantifiers, without which a long hexadecimal number takes quadratic time.
NUMBER = re.compile(r"[+-]?(?:[0-9]{1,300}+\.?+[0-9]{0,300}+|\.[0-9]{1,300}+)(?:[eE][+-]?[0-9]{1,3})?")
HEAD = 100_000  # rows that tell identifiers from labels
# Between the positions, and between the tied items, of an order in one cell; part of no name.
NEXT, TIED = "\x02", "\x01"


# ---------------------------------------------------------------------- cells


class Column:
    """A column as indices (``codes``) of its distinct ``texts``, computed when they are used; "" is a missing value.

    ``reread`` returns the cells as texts, if ``values`` are numbers that may have been written in several ways.
    """

    def __init__(self, values: Any, strip: bool = False, reread: Callable[[], Any] | None = None) -> None:
        # Columns of polars and Arrow become arrays; those of pandas have faster methods.
        self.values = values.to_numpy() if hasattr(values, "to_numpy") and not hasattr(values, "factorize") else values
        self.strip, self.reread = strip, reread

    @classmethod
    def of_codes(cls, codes: NDArray[Any], cells: Iterable[object], strip: bool = False) -> Column:
        """Return the column with these codes of distinct cells; those with equal texts get the same code."""
        number: dict[str, int] = {}
        texts = (cell_text(cell).strip() if strip else cell_text(cell) for cell in cells)
        new = [number.setdefault(text, len(number)) for text in texts]
        column = cls(())
        column.coded = codes if len(number) == len(new) else np.array(new, dtype=np.int32)[codes], list(number)
        return column

    @cached_property
    def coded(self) -> tuple[NDArray[Any], list[str]]:
        """Codes and texts."""
        values = self.values if self.reread is None else self.reread()
        if hasattr(values, "factorize"):  # a pandas series
            with suppress(TypeError):  # lists in cells
                codes, distinct = values.factorize(use_na_sentinel=False)
                return self.of_codes(codes, distinct.tolist(), self.strip).coded
        cells = [cell if type(cell) is str else cell_text(cell) for cell in values]
        index = {text: code for code, text in enumerate(dict.fromkeys(cells))}
        codes = np.fromiter(map(index.__getitem__, cells), np.int32, len(cells))
        return self.of_codes(codes, index, self.strip).coded

    @property
    def codes(self) -> NDArray[Any]:
        """For each row the index of its text."""
        return self.coded[0]

    @property
    def texts(self) -> list[str]:
        """The distinct texts."""
        return self.coded[1]

    def __len__(self) -> int:
        return len(self.codes if "coded" in self.__dict__ else self.values)

    def __getitem__(self, row: int) -> str:
        return self.texts[self.codes[row]]

    def mapped(self, function: Callable[[str], Any], dtype: Any = np.int64) -> Any:
        """Return a value for each row, computed once for each distinct text."""
        return np.array([function(text) for text in self.texts] or [0], dtype=dtype)[self.codes]

    @property
    def kind(self) -> str:
        """The kind of the type of the values, as NumPy names it; empty if they are a list."""
        return str(getattr(getattr(self.values, "dtype", None), "kind", ""))

    @cached_property
    def numbers(self) -> FloatArray:
        """The numbers in the cells, nan for other cells."""
        if self.kind in ("i", "u", "f"):
            return np.asarray(self.values, dtype=np.float64)
        return np.asarray(self.mapped(as_number, np.float64))

    @cached_property
    def is_numeric(self) -> bool:
        """Whether all cells are numbers."""
        if not len(self):
            return False
        if self.kind in ("i", "u", "f"):
            return self.kind != "f" or not np.isnan(self.numbers).any()
        cells = self.texts if "coded" in self.__dict__ else map(cell_text, self.values)
        return all(NUMBER.fullmatch(text.strip()) for text in cells)  # most columns begin with a text

    @property
    def head(self) -> Any:
        """The first value, None if the column was built from codes or is empty."""
        return next(iter(self.values[:1]), None)

    @cached_property
    def has_repeats(self) -> bool:
        """Whether a text occurs in several of the first 100,000 rows; otherwise the column holds identifiers."""
        head = list(map(cell_text, islice(self.values, 1000)))
        if len(set(head)) < len(head):
            return True
        if hasattr(self.values, "factorize"):  # a pandas series, which is faster than comparing texts
            return not self.values[:HEAD].is_unique
        return len(np.unique(self.codes[:HEAD])) < len(self.codes[:HEAD])

    @property
    def first_rows(self) -> IntArray:
        """The first row of each text, -1 for texts that do not occur."""
        return first_rows(self.codes, len(self.texts))


def first_rows(codes: NDArray[Any], n_codes: int) -> IntArray:
    """Return the first row of each code, -1 for codes that do not occur."""
    first = np.full(n_codes, -1, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # of repeated indices the last assignment stays
    return first


def cell_text(value: object) -> str:
    """Return a cell as text: integers without a decimal point, lists as orders, nothing for a missing value."""
    if isinstance(value, str):
        return value
    if is_missing(value):
        return ""
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return "".join(f"{cell_text(each).replace(NEXT, TIED).rstrip(TIED)}{NEXT}" for each in value)
    if isinstance(value, Mapping):
        return f"{TIED}{value}"  # no name of an item
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    # A numeric column with missing cells contains 3.0 for the name 3.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def as_number(text: str) -> float:
    """Return a text as a number, nan if it is none."""
    return float(text) if NUMBER.fullmatch(text) else math.nan


def frame_columns(frame: Any, names: Iterable[str], argument: str) -> dict[str, Column]:
    """Return some columns of a frame or mapping; different lengths are an error."""
    table = {}
    for name in frame.columns if is_frame(frame) else frame:
        if str(name) in names:
            values = frame[name]
            expected = "a column of a table"
            given = values if hasattr(values, "factorize") else check_list(f"{argument}[{name!r}]", values, expected)
            table[str(name)] = Column(given)
    lengths = [len(column.values) for column in table.values()]
    if len(set(lengths)) > 1:
        raise RankingError(f"{argument}: the columns {', '.join(table)} have lengths {lengths}; they must be equal")
    return table


def first_cells(columns: Sequence[Column]) -> dict[str, int]:
    """Return the texts in columns in order of first appearance, row by row, each with the number of its first cell."""
    found: dict[str, int] = {}
    for number, column in enumerate(columns):
        for text, row in zip(column.texts, column.first_rows.tolist(), strict=True):
            if row >= 0:
                cell = len(columns) * row + number
                found[text] = min(found.get(text, cell), cell)
    return dict(sorted(found.items(), key=itemgetter(1)))


def encode_items(
    columns: Sequence[Column], items: Iterable[object] | None, where: Callable[[int], str]
) -> tuple[list[NDArray[Any]], tuple[str, ...]]:
    """Return the index of the item of each cell, and the items, by default in order of first appearance, row by row."""
    names = check_items(filter(None, first_cells(columns)) if items is None else items)
    index = {name: number for number, name in enumerate(names)}
    encoded = []
    for column in columns:
        encoded.append(column.mapped(lambda text: index.get(text, -1)))
        wrong = np.flatnonzero(encoded[-1] < 0)
        if len(wrong):
            row = int(wrong[0])
            if not column[row]:
                raise RankingError(f"{where(row)} has no item; remove incomplete rows")
            raise RankingError(f"{where(row)} names {printable(column[row])!r}, which is not one of the ", ITEMS)
        for code, text in enumerate(column.texts):
            if NEXT in text or TIED in text:
                row = int(np.argmax(column.codes == code))
                raise RankingError(f"{where(row)} names {printable(text)!r}; an item is one name")
    return encoded, names


ITEMS = Argument("items")


# ---------------------------------------------------------------------- names of columns


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


ORDINAL_WORDS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
ORDINALS = {word: number for number, word in enumerate(ORDINAL_WORDS.split(), start=1)}
WORD = "(?:ranking|rank|choice|preference|pref|position|pos|place|vote|selection)"
NUMBERED, GAP = "([0-9]{1,6})(?:st|nd|rd|th)?", r"[\s_.:#-]*"
OF = r"(?:[\s_]*(?:of|/)[\s_]*[0-9]{1,6}(?![0-9]))?"  # choice 1 of 4
WHOLE_NAME = (re.compile(rf"#?{NUMBERED}"), re.compile(f"({'|'.join(ORDINALS)})"))
WITHIN_NAME = (
    re.compile(rf"(?<![a-z]){WORD}{GAP}{NUMBERED}{OF}(?![0-9a-z])"),  # choice 2 of 4
    re.compile(rf"(?<![0-9a-z.])([0-9]{{1,6}})(?:st|nd|rd|th)[\s_.-]*{WORD}(?![a-z])"),  # 2nd choice
    re.compile(rf"(?<![a-z])({'|'.join(ORDINALS)})[\s_.-]*{WORD}(?![a-z])"),  # second choice
)
NUMBER_FIRST = re.compile(rf"(?<![0-9a-z.])([0-9]{{1,6}})[\s_.-]*{WORD}(?![a-z])")  # 2 choice; not "ward 2 choice 1"


class ColumnPosition(NamedTuple):
    """The position in a column name, and the rest of the name, such as a contest."""

    number: int
    contest: str


def column_position(column: str) -> ColumnPosition | None:
    """Return the position in a column name such as ``rank 2``, ``choice_2`` or ``2nd choice``, if there is one.

    Examples
    --------
    >>> column_position("City Council Choice 1 of 4")
    ColumnPosition(number=1, contest='City Council')
    >>> column_position("candidate_rank2").number, column_position("3rd choice").number
    (2, 3)
    >>> column_position("DEM Mayor Choice 2 of 5 Citywide (226916)")
    ColumnPosition(number=2, contest='DEM Mayor Citywide')
    >>> column_position("Ann"), column_position("System 2")
    (None, None)
    """
    column = re.sub(r"(?<=\S)\s*\([0-9]{1,9}\)\s*$", "", column)  # 1st choice (45), as ES&S numbers columns
    spaced = re.sub("(?<=[a-z])(?=[A-Z])", " ", column.strip())  # candidateRank1
    name = spaced.lower()
    if len(name) != len(spaced):  # lowering some letters changes the length
        spaced = name
    whole = next((match for pattern in WHOLE_NAME if (match := pattern.fullmatch(name))), None)
    matches = [whole] if whole else [match for pattern in WITHIN_NAME for match in pattern.finditer(name)]
    matches = matches or list(NUMBER_FIRST.finditer(name))
    numbers = {ORDINALS.get(match.group(1)) or int(match.group(1)) for match in matches}
    if len(numbers) != 1:
        return None
    start, end = min(match.start() for match in matches), max(match.end() for match in matches)
    rest = re.sub(r"[\s_]+", " ", f"{spaced[:start]} {spaced[end:]}")
    return ColumnPosition(numbers.pop(), rest.strip(" -:,._"))


def are_consecutive(numbers: Sequence[int]) -> bool:
    """Return whether positions are 1, 2, 3 ... or 0, 1, 2 ..., in any order."""
    return sorted(numbers) in (list(range(1, len(numbers) + 1)), list(range(len(numbers))))


def columns_in_order(columns: list[str]) -> list[int]:
    """Return the indices of columns sorted by the positions in their names; unchanged if no name has a position."""
    positions = [column_position(column) for column in columns]
    numbers = [position.number for position in positions if position is not None]
    if not numbers:
        return list(range(len(columns)))
    if len(numbers) < len(columns):
        raise RankingError(
            f"some columns of the frame name positions, but {printable(columns[positions.index(None)])!r} does not; "
            "give only the columns of positions, and the name of the column of counts as ",
            Argument("counts", ...),
        )
    if not are_consecutive(numbers):
        listing = ", ".join(map(str, numbers))
        raise RankingError(f"the columns of the frame name the positions {listing}; each must occur once")
    return sorted(range(len(columns)), key=numbers.__getitem__)


# ---------------------------------------------------------------------- orders


def orders_to_ranks(
    orders: Any, items: Iterable[object] | None, unlisted: Unlisted
) -> tuple[RankArray, tuple[str, ...]]:
    """Return ranks and item names of orders; without ``items`` those that occur, in order of first appearance."""
    check_unlisted(unlisted)
    index = {} if items is None else {name: number for number, name in enumerate(check_items(items))}
    cells, n_buckets = [], []
    for row, buckets in enumerate(read_orders(orders)):
        n_buckets.append(len(buckets))
        listed: set[str] = set()
        for rank, name in ((rank, name) for rank, bucket in enumerate(buckets) for name in bucket):
            if name in listed:
                raise RankingError(f"row {row} lists item {printable(name)!r} twice; list each item at most once")
            if items is not None and name not in index:
                raise RankingError(f"row {row} lists {printable(name)!r}, which is not in items")
            listed.add(name)
            cells.append((row, index.setdefault(name, len(index)), rank))
    names = check_items(index)
    rows, columns, ranks_of_cells = np.array(cells, dtype=np.int64).reshape(-1, 3).T
    rest = np.array(n_buckets, dtype=np.int32)[:, None] if unlisted == "last" else FREE
    ranks: RankArray = np.full((len(n_buckets), len(names)), rest, dtype=np.int32)
    ranks[rows, columns] = ranks_of_cells
    return ranks, names


def read_orders(orders: Any) -> Iterator[Buckets]:
    """Yield the buckets of each order of a list, array or frame."""
    if is_frame(orders):
        values = orders.to_numpy()[:, columns_in_order([str(name) for name in orders.columns])]
    elif isinstance(orders, np.ndarray) and orders.ndim == 2:
        values = orders
    elif isinstance(orders, np.ndarray) and orders.ndim != 1:
        raise RankingError(f"orders has {orders.ndim} dimensions; it must have rows, and one column per position")
    elif not is_list(orders):
        raise RankingError(f"orders={short_repr(orders)} is not possible; it must be a list of orders, each best first")
    else:
        yield from (read_order(order, row) for row, order in enumerate(orders))
        return
    masked = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else np.zeros(values.shape, dtype=bool)
    for row, (cells, hidden) in enumerate(zip(np.asarray(values).tolist(), masked.tolist(), strict=True)):
        yield read_order([None if gone or cell == "" else cell for cell, gone in zip(cells, hidden, strict=True)], row)


def read_order(order: Any, row: int) -> Buckets:
    """Return the buckets of one order as lists of names; missing values at the end are ignored."""
    if isinstance(order, (set, frozenset)):
        raise RankingError(f"row {row} is a set, which has no order; write a tie as a set inside the list")
    if not is_list(order):
        raise RankingError(f"row {row} is {printable(short_repr(order))}; an order is a list of items, best first")
    entries = list(order)
    while entries and is_missing(entries[-1]):
        entries.pop()
    tied = (tuple, set, frozenset) if all(isinstance(entry, tuple) for entry in entries) else (set, frozenset)
    buckets = []
    for entry in entries:
        members = sorted(entry, key=str) if isinstance(entry, tied) else [entry]  # the order of a set is random
        if not members:
            raise RankingError(f"row {row} has an empty tie; a tie has at least one item")
        buckets.append([item_name(member, row) for member in members])
    return buckets


def item_name(value: Any, row: int) -> str:
    """Return the name of an item in an order."""
    if is_missing(value):
        raise RankingError(
            f"row {row} lists a missing value ({value!r}) before other items; leave out items that are not ranked"
        )
    if isinstance(value, (list, tuple, dict, set, frozenset, np.ndarray)):
        raise RankingError(f"row {row} lists {short_repr(value)}; write a tie as a set, such as {{'a', 'b'}}")
    return cell_text(value)


# ---------------------------------------------------------------------- comparisons

ROLES = ("user", "better", "worse", "a", "b", "winner", "count")
# Names of columns in lower case with _ between the words; a final "_id" or "s" of users and items is ignored.
USER_WORDS = "user judge annotator rater voter respondent participant worker evaluator person subject"
BETTER_WORDS = "better winner preferred chosen won win best superior"
WORSE_WORDS = "worse loser rejected lost loses worst inferior beaten"
WINNER_WORDS = "winner winning preferred preference result outcome verdict judgment judgement chosen label"
COUNT_WORDS = "count counts n weight weights times votes n_votes frequency freq number num total"
NOT_ITEMS_WORDS = "conversation response output prompt answer text message tokens score"
TIE_WORDS = "tie ties tied draw equal same both neither bothbad both_bad tie_bothbad tie_both_bad"
USER, BETTER, WORSE, WINNER, NOT_ITEMS = (
    frozenset(words.split()) for words in (USER_WORDS, BETTER_WORDS, WORSE_WORDS, WINNER_WORDS, NOT_ITEMS_WORDS)
)
COUNT, TIES = (frozenset(words.split()) for words in (COUNT_WORDS, TIE_WORDS))
POSSIBLE_USERS = ("id", "session")  # if their values are repeated
SIDES = (("a", "b"), ("1", "2"), ("left", "right"), ("first", "second"))
EXPECTED = (
    "a table of pairs has the columns winner and loser (or better and worse), or model_a, model_b and winner, and "
    "optionally a judge (or user) and a count"
)


@dataclass(frozen=True)
class Roles:
    """Roles of the columns of a table of comparisons: better and worse, or a, b and winner, and others."""

    user: str | None = None
    better: str | None = None
    worse: str | None = None
    a: str | None = None
    b: str | None = None
    winner: str | None = None
    count: str | None = None
    #: Columns of 0 and 1 that state the winner instead: for a, for b and, if there is one, for a tie.
    indicators: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    def assigned(self) -> dict[str, str]:
        """Return the column of each assigned role."""
        return {role: name for role in ROLES if (name := getattr(self, role)) is not None}

    def columns(self) -> list[str]:
        """Return the columns that are read: those of roles, and those that may identify users."""
        possible = [name for name in self.ignored if normalized(name) in POSSIBLE_USERS] if self.user is None else []
        return [*self.assigned().values(), *self.indicators, *possible]

    def __str__(self) -> str:
        parts = [f"{role} in {printable(name)}" for role, name in self.assigned().items()]
        if self.indicators:
            parts.append(f"winner in {', '.join(map(printable, self.indicators))}")
        return ", ".join(parts)


def find_columns(columns: Sequence[str], stated: Mapping[str, str], ignore: Sequence[str]) -> Roles:
    """Return the roles of columns, as stated or by their names; an ambiguous table is an error."""
    listing = ", ".join(printable(name) for name in columns)
    for role in stated:
        if role not in ROLES:
            problem = f" names the role {printable(role)!r}; the roles are {', '.join(ROLES)}"
            raise RankingError(Argument("columns"), problem)
    for argument, names in (("columns", stated.values()), ("ignore", ignore)):
        for name in names:
            if name not in columns:
                problem = f" names the column {printable(name)!r}; the columns are {listing}"
                raise RankingError(Argument(argument), problem)
    found = dict(stated)
    free = [name for name in columns if name not in ignore and name not in stated.values()]

    def assign(role: str, candidates: list[str]) -> None:
        if role in found or not candidates:
            return
        if len(candidates) > 1:
            names = " and ".join(printable(name) for name in candidates)
            problem = f"the columns {names} may both be the {role}; name one in "
            raise RankingError(problem, Argument("columns", ...), " and the other in ", Argument("ignore", ...))
        found[role] = candidates[0]
        free.remove(candidates[0])

    assign("user", [name for name in free if stem(name) in USER])
    assign("count", [name for name in free if normalized(name) in COUNT])
    indicators = winner_indicators(free)
    for name in indicators:
        free.remove(name)
    if not {"better", "worse", "a", "b"} & found.keys():
        sides, worse = two_sides(free), [name for name in free if stem(name) in WORSE]
        if len(sides) > 1:
            names = "; ".join(f"{printable(a)} and {printable(b)}" for a, b in sides)
            problem = f"several pairs of columns may hold the two items: {names}; name one in "
            raise RankingError(problem, Argument("columns", ...))
        if sides and not worse:
            for role, name in zip(("a", "b"), sides[0], strict=True):
                assign(role, [name])
        elif not sides:
            assign("better", [name for name in free if stem(name) in BETTER])
            assign("worse", worse)
    if {"a", "b"} & found.keys() and not indicators:
        assign("winner", [name for name in free if stem(name) in WINNER])
    complete = {"better", "worse"} <= found.keys() or ({"a", "b"} <= found.keys() and (indicators or "winner" in found))
    if not complete or {"better", "a"} <= found.keys():
        raise RankingError(f"the columns are {listing}; {EXPECTED}: name them in ", Argument("columns", ...))
    return Roles(**found, indicators=indicators, ignored=(*ignore, *free))


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


def outcomes(table: Mapping[str, Column], roles: Roles, where: Callable[[int], str]) -> NDArray[np.int8]:
    """Return for each row 1 if the first of the two items won, -1 if the second one won, 0 for a tie."""
    if roles.better is not None:
        return np.ones(len(table[roles.better].codes), dtype=np.int8)
    signs = np.array([1, -1, 0], dtype=np.int8)
    if roles.indicators:
        yes = ("1", "1.0", "true", "yes")
        marks = np.array([table[name].mapped(lambda text: text.lower() in yes, bool) for name in roles.indicators])
        wrong = marks.all(axis=0) if len(roles.indicators) == 2 else marks.sum(axis=0) != 1
        if wrong.any():
            problem = "does not have a 1 in exactly one of the columns of winners"
            raise RankingError(f"{where(int(np.argmax(wrong)))} {problem}")
        return signs[np.where(marks.any(axis=0), marks.argmax(axis=0), 2)]
    names = str(roles.a), str(roles.b)
    winner, items = table[str(roles.winner)], [table[name] for name in names]
    matches = []
    for name in names:
        words = side_words(name)
        matches.append(winner.mapped(lambda text: normalized(text) in words, bool))  # noqa: B023
    if not frozenset(winner.texts).isdisjoint(chain(*(item.texts for item in items))):  # names of items
        number: dict[str, int] = {}
        named = [each.mapped(lambda text: number.setdefault(text, len(number))) for each in (winner, *items)]
        matches = [match | (named[0] == item) for match, item in zip(matches, named[1:], strict=True)]
    scores = [as_number(text) for text in winner.texts]
    if all(1 <= score <= 2 for score in scores):  # 1 and 2, or a preference between them
        matches = [winner.numbers < 1.5, winner.numbers > 1.5]
        tied = winner.numbers == 1.5
    elif {0.5} < set(scores) <= {0, 0.5, 1}:  # the score of the first item
        matches, tied = [winner.numbers == 1, winner.numbers == 0], winner.numbers == 0.5
    else:
        tied = winner.mapped(lambda text: normalized(text) in TIES, bool)
    wrong = (matches[0] & matches[1]) | ~(matches[0] | matches[1] | tied)
    if wrong.any():
        row = int(np.argmax(wrong))
        if not winner[row]:
            raise RankingError(f"{where(row)} has no winner; remove incomplete comparisons")
        problem = "may be either item" if matches[0][row] else "is neither item nor a tie"
        one, other = (f"{printable(name)} ({printable(table[name][row])})" for name in names)
        expected = f"expected {one}, {other}, or tie"
        raise RankingError(f"{where(row)}: the winner {printable(winner[row])!r} {problem}; {expected}")
    return signs[np.where(matches[0], 0, np.where(matches[1], 1, 2))]


def side_words(column: str) -> set[str]:
    """Return the words for a winner that is in a column: model_a, a, 1."""
    name = normalized(column)
    parts = [*name.split("_"), *re.findall("[12]$", name)]
    sides = {part for part in parts if any(part in pair for pair in SIDES)}
    numbers = {str(side + 1) for side in (0, 1) if any(pair[side] in sides for pair in SIDES)}
    return {name, *sides, *numbers}


# ---------------------------------------------------------------------- long tables

TIME_WORDS = ("time", "timestamp", "tstamp", "date", "datetime", "created_at", "day")


def long_ranks(
    user: Column,
    item: Column,
    values: FloatArray,
    items: Iterable[object] | None,
    unlisted: Unlisted,
    where: Callable[[int], str] = "row {}".format,
    check_size: Callable[[int, int], None] | None = None,
) -> tuple[RankArray, tuple[str, ...], tuple[str, ...], IntArray]:
    """Return ranks, users, items and the first row of each user, from rows of a user, an item and a number.

    Smaller numbers are better. Users and items are in order of first appearance, or the items are given.
    """
    check_unlisted(unlisted)
    if "" in user.texts:
        row = int(np.argmax(user.mapped(lambda text: not text, bool)))
        raise RankingError(f"{where(row)} has no user; remove incomplete rows")
    (columns,), names = encode_items([item], items, where)
    first = user.first_rows
    order = np.argsort(first)
    rows = np.argsort(order)[user.codes]
    if check_size is not None:
        check_size(len(order), len(names))
    flat = rows * len(names) + columns
    table = np.zeros((len(order), len(names)))
    listed = np.zeros(table.shape, dtype=bool)
    table.ravel()[flat], listed.ravel()[flat] = values, True
    if np.count_nonzero(listed) < len(flat):
        row = int(np.setdiff1d(np.arange(len(flat)), np.unique(flat, return_index=True)[1])[0])
        problem = f"{where(row)}: user {printable(user[row])!r} has item {printable(item[row])!r} twice"
        raise RankingError(f"{problem}; a user may rank each item once")
    users = tuple(user.texts[code] for code in order.tolist())
    return dense_ranks(table, listed, unlisted), users, names, first[order]

"""T. Kamishima's SUSHI preference data: 5,000 people, ten kinds of sushi each, and who they are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from rankernel._utils import checks
from rankernel._utils.arrays import IntArray, RankArray
from rankernel._utils.checks import printable
from rankernel.encoding import FREE, Unlisted, check_items, check_unlisted, dense_ranks
from rankernel.errors import RankingError
from rankernel.io.files import AnyPath, fail, read_text
from rankernel.rankings import Rankings

Which = Literal["a", "b"]

SUSHI_FOLDER = "sushi3-2016"
SUSHI_PAGE = "https://www.kamishima.net/sushi/"
ORDERS = {"a": "sushi3a.5000.10.order", "b": "sushi3b.5000.10.order"}
USERS, ITEMS = "sushi3.udata", "sushi3.idata"
SUSHI_FILES = (*ORDERS.values(), USERS, ITEMS)

# Set A numbers its ten items by itself; these are their numbers in the list of all hundred.
SET_A = (0, 1, 2, 3, 4, 6, 7, 8, 26, 29)
USER_COLUMNS = (
    "id",
    "gender",
    "age",
    "seconds",
    "prefecture_until_15",
    "region_until_15",
    "east_west_until_15",
    "prefecture",
    "region",
    "east_west",
    "moved",
)


@dataclass(frozen=True, eq=False)
class SushiData:
    """The SUSHI data: rankings, and one array for each thing known of the users, in the same order.

    Attributes
    ----------
    rankings : Rankings
        One row a user; the items are named as in the data.
    users : dict of arrays
        ``id``; ``gender`` (0 male, 1 female); ``age`` (group, 0: 15-19, 1: 20-29, ..., 5: 60 and older); ``seconds``
        (time taken); ``prefecture``, ``region`` (0-11) and ``east_west`` (0 east, 1 west) of where the user lives now,
        and the same three with ``_until_15`` for where the user lived longest until the age of 15; ``moved`` (0 or 1:
        the two prefectures differ).
    """

    rankings: Rankings
    users: dict[str, IntArray]

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the items."""
        return self.rankings.items


def load_sushi(path: AnyPath, which: Which = "a", unlisted: Unlisted | None = None) -> SushiData:
    """Read the SUSHI data from the folder that holds its files, or from the one above.

    The data must not be redistributed, so it does not come with this package: it is free for research from the
    author's page, https://www.kamishima.net/sushi/, and ``fetch_sushi`` gets it from there.

    Parameters
    ----------
    path : path
        The folder ``sushi3-2016``, or one that contains it.
    which : {"a", "b"}
        Set a: every user ranks the same 10 items. Set b: every user ranks 10 out of 100.
    unlisted : {"last", "free"}, optional
        What is known of the 90 items that a user of set b did not rank. The users were shown 10 items and asked to
        order these, so the default is "free": nothing. Set a lists all its items.

    Returns
    -------
    SushiData
        Rankings and users.

    Examples
    --------
    >>> load_sushi("no-such-folder")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    FileNotFoundError: no-such-folder does not hold the SUSHI data (missing: sushi3a.5000.10.order, ...
    """
    checks.check_choice("which", which, get_args(Which))
    unlisted = "free" if unlisted is None else unlisted
    check_unlisted(unlisted)
    folder = sushi_folder(checks.check_path("path", path), which)
    names = item_names(folder / ITEMS)
    items = tuple(names[number] for number in SET_A) if which == "a" else names
    ranks = read_orders(folder / ORDERS[which], len(items))
    users = read_users(folder / USERS)
    if len(users["id"]) != len(ranks):
        raise fail(folder / USERS, None, f"there are {len(users['id'])} users but {len(ranks)} orders")
    return SushiData(Rankings._trusted(dense_ranks(ranks, ranks != FREE, unlisted), items), users)


def sushi_folder(path: Path, which: Which) -> Path:
    """Return the folder that holds the files."""
    wanted = (ORDERS[which], USERS, ITEMS)
    for folder in (path, path / SUSHI_FOLDER):
        if all((folder / name).is_file() for name in wanted):
            return folder
    missing = ", ".join(name for name in wanted if not (path / name).is_file())
    raise FileNotFoundError(
        f"{printable(path)} does not hold the SUSHI data (missing: {missing}); its author, T. Kamishima, gives it out "
        f"for research at {SUSHI_PAGE}: unpack {SUSHI_FOLDER}.zip there, or use rankernel.fetch_sushi()"
    )


def read_orders(path: Path, n_items: int) -> RankArray:
    """Return ranks, -1 where an item is not listed; lines are ``0 10`` and then ten items, best first."""
    rows = read_numbers(path)
    first_line, head = rows[0]
    if head[:1] != [n_items]:
        raise fail(path, first_line, f"expected a line that begins with the number of items, {n_items}; got {head}")
    ranks = np.full((len(rows) - 1, n_items), FREE, dtype=np.int32)
    for row, (line, numbers) in enumerate(rows[1:]):
        listed = numbers[2:]
        if len(numbers) < 3 or numbers[1] != len(listed):
            raise fail(path, line, f"expected 0, the length of the order, and that many items; got {numbers}")
        if len(set(listed)) != len(listed) or not 0 <= min(listed) <= max(listed) < n_items:
            raise fail(path, line, f"an order names items from 0 to {n_items - 1}, each at most once; got {listed}")
        ranks[row, listed] = range(len(listed))
    return ranks


def read_users(path: Path) -> dict[str, IntArray]:
    """Return what is known of the users, column by column."""
    rows = read_numbers(path)
    for line, numbers in rows:
        if len(numbers) != len(USER_COLUMNS):
            raise fail(path, line, f"expected {len(USER_COLUMNS)} numbers about a user; got {len(numbers)}")
    table = np.array([numbers for _, numbers in rows], dtype=np.int64)
    table.flags.writeable = False
    return dict(zip(USER_COLUMNS, table.T, strict=True))


def item_names(path: Path) -> tuple[str, ...]:
    """Return the names of the hundred items in the order of their numbers."""
    rows = [line.split("\t") for line in read_text(path).splitlines() if line.strip()]
    for number, cells in enumerate(rows):
        if cells[0].strip() != str(number) or len(cells) < 2:
            raise fail(path, number + 1, f"expected item {number}, its name and more, between tabs")
    if len(rows) <= max(SET_A):
        raise fail(path, None, f"there are {len(rows)} items, where a hundred are expected")
    try:
        return check_items(cells[1].strip() for cells in rows)
    except RankingError as error:
        raise fail(path, None, str(error)) from None


def read_numbers(path: Path) -> list[tuple[int, list[int]]]:
    """Return the line number and the whole numbers of each line that holds any; there is at least one."""
    rows = []
    for line, text in enumerate(read_text(path).splitlines(), start=1):
        try:
            numbers = [int(word) for word in text.split()]
        except ValueError:
            raise fail(path, line, f"expected whole numbers; got {printable(text[:60])!r}") from None
        if numbers:
            rows.append((line, numbers))
    if not rows:
        raise fail(path, 1, "the file is empty")
    return rows

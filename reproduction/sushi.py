"""The SUSHI data of T. Kamishima: rankings of ten kinds of sushi by 5,000 people, and attributes of these people.

The data must not be redistributed. It is free for research from https://www.kamishima.net/sushi/ (sushi3-2016.zip).
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from rankernel import RankingError, Rankings, read
from rankernel._utils import IntArray
from rankernel.io.source import AnyPath

FOLDER = "sushi3-2016"
PAGE = "https://www.kamishima.net/sushi/"
ORDERS = {"a": "sushi3a.5000.10.order", "b": "sushi3b.5000.10.order"}
USERS, ITEMS = "sushi3.udata", "sushi3.idata"
SET_A = (0, 1, 2, 3, 4, 6, 7, 8, 26, 29)  # numbers of the ten items of set a in the list of all hundred items
HOME = ("prefecture_until_15", "region_until_15", "east_west_until_15", "prefecture", "region", "east_west")
USER_COLUMNS = ("id", "gender", "age", "seconds", *HOME, "moved")
SHA256 = {
    "sushi3.idata": "568d73580f82a9ffba7ee1a3750506a0517c9ce904eec41559fe4ab573911fde",
    "sushi3.udata": "592d345613b6fbc1d7d126775eb5fb5628619e855c292166250f09651716eca2",
    "sushi3a.5000.10.order": "c56da325c0f58f9a38bafc650ed699b48dd2fb9f6ad64ba61ffc288d1ae4cc24",
    "sushi3b.5000.10.order": "a241c87331e4eabea5841aae0c8a982453cccd01b0a0f3b6a4e9cfabcdab563b",
}


class SushiData(NamedTuple):
    """One ranking for each user, and attributes of the users.

    ``users`` has ``id``; ``gender`` (0 male, 1 female); ``age`` (group, 0: 15-19, 1: 20-29, ..., 5: 60 and older);
    ``seconds`` (time taken); ``prefecture``, ``region`` (0-11) and ``east_west`` (0 east, 1 west) of where the user
    lives now, and the same three with ``_until_15`` for where the user lived longest until the age of 15; ``moved`` (0
    or 1: the two prefectures differ).
    """

    rankings: Rankings
    users: dict[str, IntArray]


def load_sushi(path: AnyPath, which: Literal["a", "b"] = "a", unlisted: Literal["last", "free"] = "free") -> SushiData:
    """Return the data from the folder of its files or its parent; its files must be those of 2016.

    In set a every user ranks the same 10 items, in set b 10 of 100. The users of set b were shown only these ten, so
    the others are free by default.
    """
    folder = sushi_folder(Path(path), which)
    for name in (ORDERS[which], USERS, ITEMS):
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != SHA256[name]:
            raise RankingError(f"{folder / name} does not have the checksum of the file of 2016")
    names = [line.split("\t")[1].strip() for line in (folder / ITEMS).read_text(encoding="utf-8").splitlines()]
    items = [names[number] for number in SET_A] if which == "a" else names
    rankings = read(folder / ORDERS[which], items=items, unlisted=unlisted)
    table = np.loadtxt(folder / USERS, dtype=np.int64).T
    return SushiData(rankings[:], dict(zip(USER_COLUMNS, table, strict=True)))


def sushi_folder(path: Path, which: Literal["a", "b"] = "a") -> Path:
    """Return the folder of the files: the given one, or one in it."""
    needed = (ORDERS[which], USERS, ITEMS)
    for folder in (path, path / FOLDER):
        if all((folder / name).is_file() for name in needed):
            return folder
    missing = ", ".join(name for name in needed if not (path / name).is_file())
    raise FileNotFoundError(
        f"{path} does not hold the SUSHI data (missing: {missing}); it is free for research from {PAGE}"
    )

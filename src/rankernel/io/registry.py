"""All kinds of files, each with its reader: what a file is, is found from its ending and its content.

One more kind is one more module with a reader, and one more line in the list below.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankernel._utils import checks
from rankernel._utils.checks import printable
from rankernel.data import Data
from rankernel.errors import RankingError
from rankernel.io.blt import read_blt, write_blt
from rankernel.io.cvr import JSONS, SHEETS, read_cvr
from rankernel.io.dominion import looks_dominion
from rankernel.io.files import MOST_BYTES, AnyPath, read_text
from rankernel.io.pairs import read_pairs
from rankernel.io.preflib import KINDS, read_preflib, write_preflib
from rankernel.io.records import guessed_delimiter, records_of_text
from rankernel.io.scottish import looks_scottish
from rankernel.io.table import read_csv, write_csv
from rankernel.order_tables import column_position
from rankernel.pair_tables import has_pair_columns

HEAD = 20_000  # signs of a file that are looked at


@dataclass(frozen=True)
class Format:
    """A kind of file.

    Attributes
    ----------
    name : str
        What it is called.
    endings : tuple of str
        How names of such files end, apart from ``.gz``.
    read : callable
        The reader: a path and options by name, rankings or preferences out.
    write : callable, optional
        The writer: rankings and a path.
    """

    name: str
    endings: tuple[str, ...]
    read: Callable[..., Data]
    write: Callable[..., None] | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """What the reader can be told, by name."""
        return tuple(inspect.signature(self.read).parameters)[1:]


TABLES = (".csv", ".tsv", ".txt")
PREFLIB = Format("PrefLib", tuple(f".{kind}" for kind in KINDS), read_preflib, write_preflib)
BLT = Format("BLT", (".blt",), read_blt, write_blt)
CVR = Format("cast vote record", (*JSONS, *SHEETS), read_cvr)
PAIRS = Format("pairs", (), read_pairs)
TABLE = Format("table", TABLES, read_csv, write_csv)
FORMATS = {known.name: known for known in (PREFLIB, BLT, CVR, PAIRS, TABLE)}


def read(path: AnyPath, format: str = "auto", **options: Any) -> Data:  # noqa: A002
    r"""Read a file of any kind that is known: PrefLib, BLT, cast vote records, tables of rankings or of pairs.

    What the file is, is found from its ending and its content; ``about`` of what comes back, and its text, say what it
    was taken for.

    Parameters
    ----------
    path : path
        The file, plain or gzipped; for a cast vote record in JSON also a folder.
    format : str
        "auto", or one of "PrefLib", "BLT", "cast vote record", "pairs" and "table".
    **options
        What the reader takes: :func:`read_preflib`, :func:`read_blt`, :func:`read_cvr`, :func:`read_pairs` or
        :func:`read_csv`.

    Returns
    -------
    FileRankings or FilePreferences

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "votes.csv")
    ...     _ = file.write_text("winner,loser\ntea,milk\n")
    ...     read(file)
    FilePreferences: 1 user, 2 items
      0: tea > milk
      read as pairs: better in winner, worse in loser
    """
    chosen = format_of(path, options) if checks.check_text("format", format) == "auto" else named_format(format)
    for name in options:
        if name not in chosen.options:
            known = ", ".join(chosen.options)
            raise RankingError(
                f"{printable(Path(path).name)} is read as {chosen.name}, which has no option {name}; it has {known}"
            )
    return chosen.read(path, **options)


def named_format(name: str) -> Format:
    """Return a kind of file by its name."""
    for known in FORMATS.values():
        if known.name.lower() == name.lower():
            return known
    raise RankingError(f"format={name!r} is not known; there are {', '.join(map(repr, FORMATS))}, and 'auto'")


def format_of(path: AnyPath, options: dict[str, Any] | None = None) -> Format:
    """Return what a file is, from its ending and, for tables, its content."""
    given, file = options or {}, checks.check_path("path", path)
    ending = Path(file.name.lower().removesuffix(".gz")).suffix
    if file.is_dir():
        return CVR
    for known in FORMATS.values():
        if ending in known.endings and known is not TABLE:  # a table may hold anything
            return known
    text = read_text(path, given.get("encoding", "utf-8"), given.get("max_bytes", MOST_BYTES))
    if ending not in TABLES:
        found = format_of_text(text[:HEAD])
        if found is None:
            endings = ", ".join(end for known in FORMATS.values() for end in known.endings)
            raise RankingError(
                f"{printable(Path(path).name)} is no kind of file that is known; files end in {endings}, or .gz behind"
            )
        return found
    return CVR if looks_scottish(text) or looks_dominion(text) else format_of_table(text[:HEAD], path, given)


def format_of_text(text: str) -> Format | None:
    """Return what a text is whose file has an unknown ending, if that is certain."""
    if re.match(r"\s*#\s*FILE NAME:", text):
        return PREFLIB
    if re.match(r"\s*[0-9]+\s+[0-9]+\s*(?:\n|#|-?[0-9])", text):
        return BLT
    return None


def format_of_table(text: str, path: AnyPath, options: dict[str, Any]) -> Format:
    """Return what a table holds: pairs, a cast vote record among other columns, or rankings."""
    if checks.check_text("layout", options.get("layout", "auto")) != "auto":
        return TABLE
    head = text.lstrip("\r\n").split("\n", 1)[0] + "\n"
    delimiter = options.get("delimiter", "auto")
    try:
        sign = guessed_delimiter(head, path) if delimiter == "auto" else delimiter
        columns = records_of_text(head, sign, path).columns
    except RankingError:  # the reader will say what is wrong
        return TABLE
    named = {
        name for option in ("labels", "ignore", "count") for name in checks.check_names(option, options.get(option, ()))
    }
    rest = [name for name in columns if name not in named]
    if has_pair_columns(rest):
        return PAIRS
    places = [column_position(name) for name in rest]
    contests = {place.contest for place in places if place is not None}
    mixed = None in places or len(contests) > 1
    return CVR if "contest" in options or (contests and mixed and "ignore" not in options) else TABLE

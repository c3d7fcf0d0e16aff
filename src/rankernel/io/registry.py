"""The file formats: each with its reader, its writer, and how its files are recognised.

A new format is a module with a reader, and an entry in ``FORMATS``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rankernel._utils.checks import check_text
from rankernel.data import Data
from rankernel.errors import Argument, ArgumentValueError, RankingError
from rankernel.io.blt import read_blt, write_blt
from rankernel.io.cvr import EXCEL, JSON, is_scottish, read_cvr
from rankernel.io.cvr_exports import is_dominion
from rankernel.io.pairs import read_pairs
from rankernel.io.preflib import KINDS, read_preflib, write_preflib
from rankernel.io.read_options import ReadOptions, option_names
from rankernel.io.tables import read_csv, write_csv
from rankernel.io.text_files import AnyPath, SourceFile
from rankernel.io.text_table import delimiter_of, split_rows
from rankernel.order_tables import column_position
from rankernel.pair_tables import has_pair_columns

MAX_PAIR_COLUMNS = 100


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes
    ----------
    name : str
        Name of the format.
    suffixes : tuple of str
        Suffixes of its files, without ``.gz``.
    read : callable
        The reader: a path and keyword arguments, to rankings or preferences.
    write : callable, optional
        The writer: rankings and a path.
    matches_text : callable, optional
        Whether a text is certainly of this format, for files whose suffix does not decide.
    matches_columns : callable, optional
        Whether a table with these columns, read with these options, is of this format.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[..., Data]
    write: Callable[..., None] | None = None
    matches_text: Callable[[str], bool] | None = None
    matches_columns: Callable[[Sequence[str], ReadOptions], bool] | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options of the reader."""
        return option_names(self.read)


def is_preflib(text: str) -> bool:
    """Whether a text has the header of a PrefLib file."""
    return bool(re.match(r"\s*#\s*FILE NAME:", text))


def is_blt(text: str) -> bool:
    """Whether a text begins with two numbers, as a BLT file does."""
    return bool(re.match(r"\s*[0-9]+\s+[0-9]+\s*(?:\n|#|-?[0-9])", text))


def has_contest_columns(columns: Sequence[str], options: ReadOptions) -> bool:
    """Whether columns are positions of several contests, or of one among other columns."""
    positions = [column_position(name) for name in columns]
    contests = {position.contest for position in positions if position is not None}
    mixed = None in positions or len(contests) > 1
    return options.contest is not None or bool(contests and mixed and not options.ignore)


def is_pair_table(columns: Sequence[str], options: ReadOptions) -> bool:
    """Whether columns, at most 100, are those of pairwise comparisons."""
    return options.columns is not None or (len(columns) <= MAX_PAIR_COLUMNS and has_pair_columns(columns))


TABLE_SUFFIXES = (".csv", ".tsv", ".txt")
FORMATS = {
    known.name: known
    for known in (
        Format("PrefLib", tuple(f".{kind}" for kind in KINDS), read_preflib, write_preflib, is_preflib),
        Format("BLT", (".blt",), read_blt, write_blt, is_blt),
        Format("pairs", (), read_pairs, matches_columns=is_pair_table),
        Format("cast vote record", (*JSON, *EXCEL), read_cvr, matches_columns=has_contest_columns),
        Format("table", TABLE_SUFFIXES, read_csv, write_csv),
    )
}


def read(path: AnyPath, *, format: str = "auto", **options: Any) -> Data:  # noqa: A002
    r"""Read a file of any known format: PrefLib, BLT, cast vote records, tables of rankings or of comparisons.

    The format is recognised by the suffix and the content of the file; ``source`` of the result, and its text, describe
    it.

    Parameters
    ----------
    path : path
        The file, plain or gzipped; for a cast vote record in JSON also a folder.
    format : str
        "auto", or one of "PrefLib", "BLT", "cast vote record", "pairs" and "table".
    **options
        Options of the reader: :func:`read_preflib`, :func:`read_blt`, :func:`read_cvr`, :func:`read_pairs` or
        :func:`read_csv`; see :class:`ReadOptions`.

    Returns
    -------
    Rankings or Preferences

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "votes.csv")
    ...     _ = file.write_text("winner,loser\ntea,milk\n")
    ...     read(file)
    Preferences: 1 user, 2 items
      0: tea > milk
      read as pairs: better in winner, worse in loser
    """
    known = {field.name for field in dataclasses.fields(ReadOptions)}
    source = SourceFile(path, ReadOptions(**{name: value for name, value in options.items() if name in known}))
    chosen = detected_format(source) if check_text("format", format) == "auto" else named_format(format)
    for name in options:
        if name not in chosen.options:
            others = [part for option in chosen.options for part in (", ", Argument(option))][1:]
            problem = f"{source.name} is read as {chosen.name}, which has no option "
            raise RankingError(problem, Argument(name), "; its options are ", *others)
    return chosen.read(source, **options)


def named_format(name: str) -> Format:
    """Return a format by its name."""
    for known in FORMATS.values():
        if known.name.lower() == name.lower():
            return known
    raise ArgumentValueError("format", name, f"{', '.join(map(repr, FORMATS))} or 'auto'")


def detected_format(source: SourceFile) -> Format:
    """Return the format of a file, by its suffix or else by its content."""
    formats = list(FORMATS.values())
    if source.path.is_dir():
        return FORMATS["cast vote record"]
    for known in formats:
        if source.suffix in known.suffixes and source.suffix not in TABLE_SUFFIXES:
            return known
    if source.suffix in TABLE_SUFFIXES:
        return detected_table(source)
    for known in formats:
        if known.matches_text and known.matches_text(source.text[:20_000]):
            return known
    suffixes = ", ".join(suffix for known in formats for suffix in known.suffixes)
    raise RankingError(f"{source.name} has no known format; the suffixes are {suffixes}, each also with .gz")


def detected_table(source: SourceFile) -> Format:
    """Return the format of a table: rankings, comparisons, or a cast vote record."""
    options, text = source.options, source.text
    if options.layout != "auto":
        return FORMATS["pairs" if options.layout == "pairs" else "table"]
    if is_scottish(text) or is_dominion(text):
        return FORMATS["cast vote record"]
    header = text.lstrip("\r\n").split("\n", 1)[0] + "\n"
    try:
        _, cells = next(split_rows(header, delimiter_of(header, source), source), (1, []))
    except RankingError:  # the reader reports it
        return FORMATS["table"]
    named = options.named_columns
    columns = [name for cell in cells if (name := cell.strip()) not in named]
    for known in FORMATS.values():
        if known.matches_columns and known.matches_columns(columns, options):
            return known
    return FORMATS["table"]

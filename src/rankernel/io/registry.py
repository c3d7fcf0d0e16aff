"""The file formats: each with its reader, its writer, and how its files are recognised.

A new format is a module with a reader, and an entry in ``FORMATS``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from rankernel._utils.checks import check_text
from rankernel.errors import Argument, ArgumentTypeError, ArgumentValueError, RankingError
from rankernel.io.blt import read_blt, write_blt
from rankernel.io.cvr import is_export, read_cvr
from rankernel.io.layouts import detected_layout, read_csv, write_csv
from rankernel.io.pairs import read_comparisons, read_pairs
from rankernel.io.preflib import KINDS, read_preflib, write_preflib
from rankernel.io.source import ReadOptions, SourceFile, option_names
from rankernel.io.table import ARROW, EXCEL, JSON, json_documents, read_table, table_of_data
from rankernel.io.text_orders import is_orders, is_trec, read_text_orders, read_trec
from rankernel.rankings import is_frame


@dataclass(frozen=True)
class Format:
    """A file format with its reader and, if there is one, its writer."""

    name: str
    suffixes: tuple[str, ...]  # of its files, without .gz
    read: Callable[..., Any]  # of a path and keyword arguments, to rankings or preferences
    write: Callable[..., None] | None = None  # of rankings and a path
    matches_text: Callable[[str], object] | None = None  # certainly, for files whose suffix does not decide

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options of the reader."""
        return option_names(self.read)


PREFLIB = re.compile(r"\s*#\s*FILE NAME:")
# Perhaps comments; two numbers; options, comments or withdrawn candidates; and a ballot.
BLT = re.compile(
    r"(?:\s*(?:#|//)[^\n]*\n)*"
    r"\s*[0-9]+[ \t]+[0-9]+[ \t,]*\r?\n(?:\s*[\[#/-][^\n]*\n)*\s*(?:\([^)]*\)\s*)?[1-9][0-9]* [^\n]*\b0[ ,]*\r?\n"
)
FORMATS = {
    known.name: known
    for known in (
        Format("PrefLib", tuple(f".{kind}" for kind in KINDS), read_preflib, write_preflib, PREFLIB.match),
        Format("cast vote record", (".xml", ".zip"), read_cvr, matches_text=is_export),
        Format("BLT", (".blt",), read_blt, write_blt, BLT.match),
        Format("TREC", (".trec", ".run", ".qrels"), read_trec, matches_text=is_trec),
        Format("orders", (".abif", ".order"), read_text_orders, matches_text=is_orders),
        Format("pairs", (), read_pairs),
        Format("comparisons", (), read_comparisons),
        Format("table", (".csv", ".tsv", ".txt", *EXCEL, *ARROW, *JSON), read_csv, write_csv),
    )
}


def read(path: Any, *, format: str = "auto", **options: Any) -> Any:  # noqa: A002
    r"""Read a file of any known format: PrefLib, BLT, cast vote records, TREC, tables of rankings or of comparisons.

    The format is recognised by the suffix and the content of the file. The attribute ``source`` of the result, and the
    printed result, describe how the file was read.

    Parameters
    ----------
    path : path, list of paths of TREC runs, file object, or table
        The file, plain, gzipped or alone in a .zip; for a cast vote record also a folder; or a frame, an Arrow table,
        or a list of dictionaries.
    format : str
        "auto", or one of "PrefLib", "BLT", "cast vote record", "TREC", "orders", "pairs",
        "comparisons" (battles as :class:`Comparisons`) and "table".
    **options
        Options of the reader, such as :func:`read_preflib`, :func:`read_blt`, :func:`read_cvr`, :func:`read_pairs` or
        :func:`read_csv`; see :class:`ReadOptions`.

    Returns
    -------
    Rankings or Preferences; Comparisons with ``format="comparisons"``

    Examples
    --------
    >>> from io import StringIO
    >>> read(StringIO("winner,loser\ntea,milk\n"))
    Preferences: 1 user, 2 items
      0: tea > milk
      read as pairs: better in winner, worse in loser
    """
    if isinstance(path, list) and path and all(isinstance(each, str | PathLike) for each in path):
        return read_trec(path, **options)
    data = is_frame(path) or isinstance(path, list) or hasattr(path, "to_pylist")
    source = source_with("table", options) if data else source_with(path, options).unpacked()
    if isinstance(path, list) and not (path and all(isinstance(row, Mapping) for row in path)):
        raise ArgumentTypeError("path", path, "a file, a frame or a list of dictionaries")
    if data:
        source.table = table_of_data(path, source)
    names = {name.lower(): name for name in FORMATS}
    if check_text("format", format) != "auto" and format.lower() not in names:
        raise ArgumentValueError("format", format, f"{', '.join(map(repr, FORMATS))} or 'auto'")
    chosen = detected_format(source) if format == "auto" else FORMATS[names[format.lower()]]
    for name in options:
        if name not in chosen.options:
            others = [part for option in chosen.options for part in (", ", Argument(option))][1:]
            problem = f"{source.name} is read as {chosen.name}, which has no option "
            raise RankingError(problem, Argument(name), "; its options are ", *others)
    return chosen.read(source, **options)


def is_table_of_pairs(path: Any, options: Mapping[str, Any]) -> bool:
    """Whether a file is recognised as a table of comparisons."""
    return detected_format(source_with(path, options).unpacked()).name == "pairs"


def source_with(path: Any, options: Mapping[str, Any]) -> SourceFile:
    """Return the source with those options that some reader takes."""
    known = {field.name for field in dataclasses.fields(ReadOptions)}
    return SourceFile(path, ReadOptions(**{name: options[name] for name in options if name in known}))


def detected_format(source: SourceFile) -> Format:
    """Return the format of a file, by its suffix or else by its content."""
    formats = list(FORMATS.values())
    is_file = source.table is None and source.file is None
    if source.table is None:
        content = json_documents(source)[0] if source.suffix == ".json" else None
        if source.is_folder or (isinstance(content, dict) and {"Sessions", "CVR"} & content.keys()):
            return FORMATS["cast vote record"]
        for known in formats:
            if known.name != "table" and source.suffix in known.suffixes:
                return known
        if source.suffix not in (*EXCEL, *ARROW, *JSON):
            for known in formats:
                if known.matches_text and known.matches_text(source.head):
                    return known
    try:
        return FORMATS["pairs" if detected_layout(read_table(source)) == "pairs" else "table"]
    except RankingError as error:
        suffixes = [suffix for known in formats for suffix in known.suffixes]
        if not is_file or source.suffix in suffixes:
            raise
        problem = f"; the suffix is none of {', '.join(suffixes)}, so the file was read as a table; for another format "
        raise RankingError(*error.parts, problem, "give ", Argument("format", ...)) from None

"""Files of rankings: reading and writing of text, errors that name the line, and the record of how a file was read."""

from __future__ import annotations

import gzip
import io
import os
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from rankernel._utils import IntArray
from rankernel._utils.checks import check_flag, check_instance, check_path, printable
from rankernel._utils.resources import whole_file
from rankernel.errors import Argument, OutputExistsError, RankingError, warn
from rankernel.io.read_options import ReadOptions
from rankernel.rankings import check_items, check_total_count

AnyPath: TypeAlias = str | os.PathLike[str]

GZIP_MAGIC = b"\x1f\x8b"
MAX_BYTES = 2**30  # default limit of a table of ranks
# Default limit of a decompressed file: text rarely compresses to less than a twentieth of its size.
MAX_EXPANSION, MIN_EXPANDED = 100, 2**26
BYTE_ORDER_MARK = "\ufeff"
UNWRITABLE = {"Cc": "a control character", "Zl": "a line break", "Zp": "a line break", "Cs": "half a surrogate pair"}


# ---------------------------------------------------------------------- reading


class SourceFile:
    """A file to read with some options. Its text is cached, for the detection of its format and for the reader."""

    def __init__(self, path: AnyPath, options: ReadOptions | None = None) -> None:
        self.path, self.options = check_path("path", path), options or ReadOptions()

    @classmethod
    def of(cls, path: AnyPath | SourceFile, reader: Callable[..., Any], keywords: Mapping[str, Any]) -> SourceFile:
        """Return the source for a reader, which is called with a path or, by ``read``, with the source itself."""
        options = ReadOptions.of(reader, keywords)
        return path if isinstance(path, SourceFile) else cls(path, options)

    def with_options(self, **changes: Any) -> SourceFile:
        """Return the source, with its cached text, and other values of some options."""
        changed = copy(self)
        changed.options = replace(self.options, **changes)
        return changed

    @property
    def name(self) -> str:
        """Name of the file, safe to print."""
        return printable(self.path.name or self.path)

    @cached_property
    def suffix(self) -> str:
        """Lower-case suffix of the name without ``.gz``."""
        return Path(self.path.name.lower().removesuffix(".gz")).suffix

    @cached_property
    def text(self) -> str:
        """Decompressed and decoded text, without a byte order mark; line ends are unchanged."""
        return self.decoded(self.read_bytes(), self.options.encoding)

    def read_bytes(self) -> bytes:
        """Return the bytes of the file, decompressed if it is gzipped."""
        raw = self.path.read_bytes()
        if not raw.startswith(GZIP_MAGIC) and self.path.suffix.lower() != ".gz":
            return raw
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
                content = file.read(self.expanded_limit(len(raw)) + 1)
        except (EOFError, OSError, zlib.error) as error:
            problem = f"the gzip data is damaged or truncated ({error}); download the file again"
            raise self.error(None, problem) from None
        self.check_expanded_size(len(content), len(raw))
        return content

    def decoded(self, raw: bytes, encoding: str) -> str:
        """Return bytes of the file as text."""
        try:
            return raw.decode(encoding).removeprefix(BYTE_ORDER_MARK)
        except UnicodeDecodeError as error:
            byte = f"byte 0x{raw[error.start]:02x} (number {error.start + 1} of the file) is not {encoding} text"
            line = raw.count(b"\n", 0, error.start) + 1
            example = Argument("encoding", "latin-1")
            raise self.error(line, byte, "; give the encoding of the file, such as ", example) from None
        except UnicodeError as error:
            raise self.error(
                None, f"the file is not {encoding} text ({error}); give ", Argument("encoding", ...)
            ) from None

    def error(self, line: int | None, *problem: object) -> RankingError:
        """Return the error for a problem in the file: ``votes.soi, line 17: ...``."""
        where = "" if line is None else f", line {line}"
        return RankingError(f"{self.name}{where}: ", *problem)

    def restate(self, error: Exception, line: int | None = None) -> RankingError:
        """Return an error of the data with the name of the file."""
        return self.error(line, *(error.parts if isinstance(error, RankingError) else [str(error)]))

    def item_names(self, names: Iterable[str], line: int | None = None) -> tuple[str, ...]:
        """Return the names of items, with errors that name the file."""
        try:
            return check_items(names)
        except RankingError as error:
            raise self.restate(error, line) from None

    def check_total(self, counts: IntArray) -> None:
        """Raise an error if the total count is too large."""
        try:
            check_total_count(counts)
        except RankingError as error:
            raise self.restate(error) from None

    def check_table_size(self, n_rows: int, n_items: int) -> None:
        """Raise an error if a table of ranks would exceed the limit."""
        self.check_size(4 * n_rows * n_items, f"{n_rows:,} rankings of {n_items:,} items")

    def check_size(self, n_bytes: int, content: str) -> None:
        """Raise an error if a table would exceed the limit."""
        limit = MAX_BYTES if self.options.max_bytes is None else self.options.max_bytes
        if n_bytes > limit:
            problem = f"{content} make a table of {n_bytes:,} bytes, more than {limit:,}; to allow that, give "
            raise self.error(None, problem, Argument("max_bytes", n_bytes))

    def expanded_limit(self, n_packed: int) -> int:
        """Return the limit of the decompressed size of a number of bytes."""
        if self.options.max_bytes is not None:
            return self.options.max_bytes
        return min(MAX_BYTES, max(MAX_EXPANSION * n_packed, MIN_EXPANDED))

    def check_expanded_size(self, n_bytes: int, n_packed: int) -> None:
        """Raise an error if compressed content exceeds its limit."""
        limit = self.expanded_limit(n_packed)
        if n_bytes > limit:
            problem = f"its {n_packed:,} bytes expand to more than {limit:,}; to allow that, give a larger "
            raise self.error(None, problem, Argument("max_bytes"))


# ---------------------------------------------------------------------- the record of how a file was read


@dataclass(frozen=True)
class Repairs:
    """Number of repairs made while reading ballots, in cells and rows of the file.

    Attributes
    ----------
    skipped : int
        Skipped cells that are followed by a marked one.
    repeated : int
        Repeated names.
    overvoted : int
        Cells with more than one candidate.
    blank : int
        Rows that list no item, before or after repairs.
    blank_dropped : bool
        Whether these rows were dropped.
    na_values : tuple of (str, int)
        Missing-value markers, and the number of cells of each.
    merged : tuple of (str, str)
        Names that were read as another one, which differs only in case or spaces.

    Examples
    --------
    >>> bool(Repairs()), bool(Repairs(skipped=2))
    (False, True)
    >>> print(Repairs(skipped=2, blank=1, na_values=(("undervote", 3),)))
    2 skipped cells, 1 blank ballot dropped, 'undervote' read as missing (3 cells)
    """

    skipped: int = 0
    repeated: int = 0
    overvoted: int = 0
    blank: int = 0
    blank_dropped: bool = True
    na_values: tuple[tuple[str, int], ...] = ()
    merged: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.skipped or self.repeated or self.overvoted or self.blank or self.na_values or self.merged)

    def __str__(self) -> str:
        counted = [
            (self.skipped, "skipped cell", ""),
            (self.repeated, "repeated name", ""),
            (self.overvoted, "overvoted cell", ""),
            (self.blank, "blank ballot", " dropped" if self.blank_dropped else " retained"),
        ]
        parts = [f"{number:,} {noun}{'s' * (number != 1)}{verb}" for number, noun, verb in counted if number]
        parts += [f"'{printable(marker)}' read as missing ({n:,} cell{'s' * (n != 1)})" for marker, n in self.na_values]
        parts += [f"'{printable(name)}' read as '{printable(other)}'" for name, other in self.merged]
        return ", ".join(parts) or "none"


@dataclass(frozen=True)
class FileSource:
    """How a file was read, and what it states besides the rankings.

    Attributes
    ----------
    format : str
        The format that was detected or chosen.
    title : str
        The title stated by the file.
    seats : int, optional
        Number of seats of an election.
    withdrawn : tuple of str
        Candidates who withdrew.
    ignored : tuple of str
        Columns that were not used.
    n_all_in_first : int, optional
        Categories only: number of voters who put all items into the first category. As rankings, these ballots equal
        those with all items in any other category.
    repairs : Repairs
        Number of repairs.
    """

    format: str = ""
    title: str = ""
    seats: int | None = None
    withdrawn: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    n_all_in_first: int | None = None
    repairs: Repairs = field(default_factory=Repairs)

    @property
    def ignored_text(self) -> str:
        """The first columns that were not used, separated by commas."""
        return ", ".join(printable(name) or "a column without a name" for name in self.ignored[:12])

    def __str__(self) -> str:
        parts = [
            f"read as {self.format}" if self.format else "",
            f"title {printable(self.title)!r}" if self.title else "",
            "" if self.seats is None else f"{self.seats:,} seat{'s' * (self.seats != 1)}",
            f"withdrawn: {', '.join(map(printable, self.withdrawn))}" if self.withdrawn else "",
            f"ignored: {self.ignored_text}" if self.ignored else "",
        ]
        lines = ["; ".join(part for part in parts if part), f"repaired: {self.repairs}" if self.repairs else ""]
        return "\n".join(line for line in lines if line)


# ---------------------------------------------------------------------- writing


def write_text(path: AnyPath, text: str, overwrite: bool) -> None:
    """Write UTF-8 text to a file, gzipped if the name ends in ``.gz``; see :func:`write_bytes`."""
    raw = text.encode("utf-8")
    if check_path("path", path).suffix.lower() == ".gz":
        raw = gzip.compress(raw, mtime=0)  # without a time stamp, equal rankings give equal files
    write_bytes(path, raw, overwrite)


def write_bytes(path: AnyPath, raw: bytes, overwrite: bool) -> None:
    """Write a file atomically, through a temporary file in the same folder.

    An existing file is an error unless ``overwrite=True``.
    """
    if not check_flag("overwrite", overwrite) and check_path("path", path).exists():
        raise OutputExistsError(f"{printable(path)} exists; give another name, or ", Argument("overwrite", True))
    with whole_file(path) as temporary:
        temporary.write_bytes(raw)


def check_writable_name(name: str, argument: str = "items") -> None:
    """Raise an error if a name cannot be stored in a line of text: empty, padded with spaces, or with a line break."""
    check_instance(argument, name, str, "a string")
    shown = printable(name)
    if not name or name != name.strip():
        raise RankingError(
            f"{argument}: {shown!r} is empty or begins or ends with a space, which a file does not preserve"
        )
    for character in name:
        problem = UNWRITABLE.get(unicodedata.category(character))
        if problem:
            raise RankingError(f"{argument}: {shown!r} contains {problem}, which would break the file; rename it first")


def plain_cell(text: str) -> str:
    """Return a text that a spreadsheet does not evaluate: formulas are prefixed with an apostrophe.

    Examples
    --------
    >>> plain_cell("=1+1"), plain_cell("a > b")
    ("'=1+1", 'a > b')
    """
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def warn_of_formulas(texts: Iterable[str], target: Path) -> None:
    """Warn if a spreadsheet would evaluate some texts as formulas; they are written unchanged to be read back."""
    formulas = [repr(printable(text)) for text in dict.fromkeys(texts) if plain_cell(text) != text]
    if formulas:
        others = f" (and {len(formulas) - 1:,} more)" * (len(formulas) > 1)
        warn(f"{formulas[0]}{others} is a formula in a spreadsheet that opens {printable(target.name)}", UserWarning)

"""Files to read and to write: options of all readers, text with limits of its size, errors that name the line."""

from __future__ import annotations

import gzip
import inspect
import io
import os
import re
import stat
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from rankernel._utils.checks import (
    check_choice,
    check_flag,
    check_instance,
    check_integer,
    check_names,
    check_path,
    check_text,
    plural,
    printable,
)
from rankernel._utils.resources import whole_file
from rankernel.errors import Argument, ArgumentValueError, OutputExistsError, RankingError
from rankernel.rankings import Unlisted, check_items

AnyPath: TypeAlias = str | os.PathLike[str]
Reader = TypeVar("Reader", bound=Callable[..., Any])

GZIP_MAGIC = b"\x1f\x8b"
MAGIC = {b"PK\x03\x04": ".zip", b"PAR1": ".parquet", b"ARROW1": ".feather", b"FEA1": ".feather"}
TEXT_STARTS = {".json": re.compile(r'\s*(?:\{\s*"|\[\s*[\[{"0-9])'), ".xml": re.compile(r"\s*<")}
MAX_BYTES = 2**30  # default limit of a file and of a table of ranks
# Default limit of a decompressed file: text rarely compresses to less than a twentieth of its size.
MAX_EXPANSION, MIN_EXPANDED = 100, 2**24
CHUNK, HEAD = 2**18, 2**20  # bytes
MAX_SHOWN = 60  # characters of a name or cell in a message
BYTE_ORDER_MARK = "\ufeff"
UNWRITABLE = {"Cc": "a control character", "Zl": "a line break", "Zp": "a line break", "Cs": "half a surrogate pair"}


# ---------------------------------------------------------------------- options

Layout = Literal["auto", "ranks", "positions", "scores", "orders", "long", "pairs"]
COLUMN_ROLES = ("user", "item", "rank", "score", "better", "worse", "a", "b", "winner", "count")


@dataclass(frozen=True)
class ReadOptions:
    """How a file is read. Each reader takes some of these options as keyword arguments.

    The docstrings of the readers and the help pages of the command line show the descriptions below.

    Parameters
    ----------
    layout : {"auto", "ranks", "positions", "scores", "orders", "long", "pairs"}
        Content of the table: ranks or scores of items (one column per item), names of items (one column per position),
        orders such as ``tea > milk`` in one column, one row per user and item, or pairwise comparisons. The default is
        an error if the layout is ambiguous. Columns of text beside ranks and scores are labels, and identifiers are
        ignored unless they are ``items``.
    header : bool, optional
        Whether the first row names the columns. By default it does, and a first row that looks like data is an error.
    items : iterable of names, optional
        All items. Other names in the file are an error, and items that do not occur are added. By default the items are
        the names that occur, in order of first appearance.
    count : str, optional
        Column with the number of voters of each row.
    label_columns : sequence of str
        Columns to keep as ``labels`` of the rankings, such as identifiers.
    ignore : sequence of str
        Columns to ignore.
    columns : mapping, optional
        Roles of columns of comparisons (user, better, worse; a, b, winner; count) or of long tables (user, item, rank
        or score). By default the names of the columns decide; ``{"user": "expert"}`` states one role.
    contest : str, optional
        Contest of a cast vote record or question of a survey, or a part of its name. Required if there are several.
    unlisted : {"last", "free"}, optional
        Whether items that a row does not list share the last bucket, or are free (nothing is known about them). By
        default as the file states, otherwise "last"; for long tables "free".
    ascending : bool
        Whether smaller scores are better, as with times and losses.
    skipped : {"close", "stop"} or int
        At a skipped position: move the following items up, or end the ballot; an integer is the number of consecutive
        skipped positions after which the ballot ends only at the next one.
    repeated : {"first", "stop", "error"}
        At a repeated item: use its first occurrence, end the ballot, or raise an error.
    overvotes : {"stop", "skip", "tie", "error"}
        At several items in one position: end the ballot, skip the position, tie the items, or raise an error.
    write_ins : {"keep", "merge", "drop"}
        Whether items named write-in, UWI and the like remain, become one item, or are read as missing.
    aliases : mapping, optional
        Other names of items: ``{"A. Ash": "Ann Ash"}`` reads the first as the second.
    separator : str, optional
        Separator of several items in one cell.
    na_values : sequence of str
        Additional missing-value markers. The built-in ones are *skipped*, *undervote*, *exhausted*, *blank*, *n/a*,
        *NA*, *NaN*, *null* and the like. A name in ``items`` is never a marker.
    fold_case : bool
        Whether names that differ only in case or spaces are the same item.
    blank : {"drop", "keep"}
        Whether to drop or to keep rows that list no item.
    withdrawn : {"keep", "drop"}
        Whether to keep candidates who withdrew (BLT), or to remove them from all ballots.
    delimiter : str
        Delimiter of the cells. The default detects comma, semicolon, tab or ``|``.
    encoding : str
        Encoding of the text, such as "latin-1".
    max_bytes : int, optional
        Limit in bytes of the decompressed file and of the table of ranks. By default a compressed file may expand to
        100 times its size (or 16 MiB), and a file or a table may take 1 GiB.

    Examples
    --------
    >>> ReadOptions(unlisted="first")
    Traceback (most recent call last):
    rankernel.errors.ArgumentValueError: unlisted='first' is not possible; it must be 'last' or 'free'
    """

    layout: Layout = "auto"
    header: bool | None = None
    items: tuple[str, ...] | None = None
    count: str | None = None
    label_columns: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    columns: Mapping[str, str] | None = None
    contest: str | None = None
    unlisted: Unlisted | None = None
    ascending: bool = False
    skipped: Literal["close", "stop"] | int = "close"
    repeated: Literal["first", "stop", "error"] = "first"
    overvotes: Literal["stop", "skip", "tie", "error"] = "stop"
    write_ins: Literal["keep", "merge", "drop"] = "keep"
    aliases: Mapping[str, str] | None = None
    separator: str | None = None
    na_values: tuple[str, ...] = ()
    fold_case: bool = False
    blank: Literal["drop", "keep"] = "drop"
    withdrawn: Literal["keep", "drop"] = "keep"
    delimiter: str = "auto"
    encoding: str = "utf-8"
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        for name, choices in option_choices().items():
            value = getattr(self, name)
            if name == "skipped" and not isinstance(value, str):
                check_integer(name, value, least=0)
            elif name != "unlisted" or value is not None:
                check_choice(name, value, choices)
        checks: dict[Callable[[str, Any], Any], tuple[str, ...]] = {
            check_flag: ("ascending", "fold_case", "header"),
            check_text: ("count", "contest", "separator", "delimiter", "encoding"),
            lambda name, names: tuple(check_names(name, names)): ("label_columns", "ignore", "na_values"),
            lambda _, items: check_items(items): ("items",),
            lambda name, limit: check_integer(name, limit, most=2**63 - 1): ("max_bytes",),
        }
        for check, names in checks.items():
            for name in names:
                if getattr(self, name) is not None or getattr(ReadOptions, name) is not None:
                    object.__setattr__(self, name, check(name, getattr(self, name)))
        if self.separator == "":
            raise ArgumentValueError("separator", self.separator, "a string of at least one character")
        if self.delimiter != "auto" and not re.fullmatch(r'[^"\r\n \0]', self.delimiter):
            raise ArgumentValueError("delimiter", self.delimiter, "one character other than \" and space, or 'auto'")
        try:
            b" ".decode(self.encoding)
        except UnicodeDecodeError:  # of an encoding with several bytes per character
            pass
        except (LookupError, ValueError):  # a null character in the name is a ValueError
            expected = "a text encoding of Python, such as 'latin-1'"
            raise ArgumentValueError("encoding", self.encoding, expected) from None
        for name, what in (("columns", "a mapping of roles to columns"), ("aliases", "a mapping of names to names")):
            given = {} if getattr(self, name) is None else check_instance(name, getattr(self, name), Mapping, what)
            if not all(isinstance(text, str) for pair in given.items() for text in pair):
                raise ArgumentValueError(name, given, what)
            if name == "columns" and not given.keys() <= set(COLUMN_ROLES):
                raise ArgumentValueError(name, given, f"a mapping of {', '.join(COLUMN_ROLES)} to columns")

    @classmethod
    def of(cls, reader: Callable[..., Any], keywords: Mapping[str, Any]) -> ReadOptions:
        """Return the options given to a reader as keyword arguments."""
        for name in keywords:
            if name not in option_names(reader):
                options = ", ".join(option_names(reader))
                raise TypeError(f"{reader.__name__}() has no option {name}; its options are {options}")
        return cls(**keywords)

    @property
    def named_columns(self) -> dict[str, str]:
        """The columns with a stated purpose, each with the name of the option that states it."""
        named = dict.fromkeys((self.columns or {}).values(), "columns")
        named |= dict.fromkeys(self.label_columns, "label_columns")
        named |= dict.fromkeys(self.ignore, "ignore")
        return named | ({} if self.count is None else {self.count: "count"})


@cache
def option_choices() -> dict[str, tuple[str, ...]]:
    """Return the possible values of the options that have a fixed set of them."""
    found = {}
    for name, hint in get_type_hints(ReadOptions).items():
        literals = [part for part in (hint, *get_args(hint)) if get_origin(part) is Literal]
        if literals:
            found[name] = get_args(literals[0])
    return found


@cache
def option_texts() -> dict[str, str]:
    """Return the entry of each option in the docstring of the options."""
    section = (ReadOptions.__doc__ or "").partition("----------\n")[2].partition("\n    Examples\n")[0]
    entries = re.split(r"^(?=    \w+ : )", section.rstrip(), flags=re.MULTILINE)
    return {entry.split(" : ")[0].strip(): entry.rstrip() for entry in entries if entry.strip()}


def accepts(*names: str) -> Callable[[Reader], Reader]:
    """Return a decorator that declares the options of a reader.

    The signature of the reader lists the options instead of ``**keywords``, and its docstring documents them in place
    of the line ``{options}``.
    """

    def declare(reader: Reader) -> Reader:
        signature = inspect.signature(reader)
        keyword_only, default = inspect.Parameter.KEYWORD_ONLY, ReadOptions()
        options = [inspect.Parameter(name, keyword_only, default=getattr(default, name)) for name in names]
        given = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        declared: Any = reader
        declared.__signature__ = signature.replace(parameters=[*given, *options])
        declared.option_names = names
        texts = option_texts()
        declared.__doc__ = (reader.__doc__ or "").replace("    {options}", "\n".join(texts.get(n, n) for n in names))
        return reader

    return declare


def option_names(reader: Any) -> tuple[str, ...]:
    """Return the names of the options that a reader takes."""
    names: tuple[str, ...] = reader.option_names
    return names


# ---------------------------------------------------------------------- reading


def quoted(text: object) -> str:
    """Return a text for a message: printable, shortened, in quotation marks."""
    shown = printable(text)
    return repr(shown if len(shown) <= MAX_SHOWN else f"{shown[: MAX_SHOWN - 3]}...")


class SourceFile:
    """A file to read with some options. Its text is cached, for the detection of its format and for the reader.

    The file is a path or an object with a method ``read``.
    """

    def __init__(self, path: Any, options: ReadOptions | None = None) -> None:
        self.file = path if hasattr(path, "read") else None
        name = getattr(path, "name", None)
        self.path = check_path("path", (name if isinstance(name, str) else "file") if self.file else path)
        self.options = options or ReadOptions()
        self.table: Any = None  # cached by ``cells.read_table``
        self.is_trial = False  # whether options are tried for the message of an error

    @classmethod
    def of(cls, path: Any, reader: Callable[..., Any], keywords: Mapping[str, Any]) -> SourceFile:
        """Return the source for a reader, which is called with a path or, by ``read``, with the source itself."""
        options = ReadOptions.of(reader, keywords)
        return path if isinstance(path, SourceFile) else cls(path, options).unpacked()

    def unpacked(self) -> SourceFile:
        """Return the file in an archive of one file, otherwise the source itself."""
        if self.is_folder or self.suffix != ".zip":
            return self
        try:
            with zipfile.ZipFile(io.BytesIO(self.raw)) as archive:
                n_files = sum(not member.is_dir() for member in archive.infolist())
        except Exception:  # the reader reports damaged archives
            return self
        if n_files != 1:
            return self
        ((name, content),) = self.members("")
        file = io.BytesIO(content)
        file.name = Path(name).name
        return SourceFile(file, self.options)

    def with_options(self, **changes: Any) -> SourceFile:
        """Return the source, with its cached text, and other values of some options."""
        changed = copy(self)
        changed.options = replace(self.options, **changes)
        return changed

    @property
    def name(self) -> str:
        """Name of the file, safe to print."""
        return quoted(self.path.name or self.path)[1:-1]

    @property
    def is_folder(self) -> bool:
        """Whether the path is a folder."""
        return self.file is None and self.path.is_dir()

    @cached_property
    def suffix(self) -> str:
        """Suffix of the format: that of binary content, else of the name, without ``.gz``, else of JSON or XML."""
        stated = Path(self.path.name.lower().removesuffix(".gz")).suffix
        if self.is_folder:
            return stated
        found = next((suffix for magic, suffix in MAGIC.items() if self.raw.startswith(magic)), "")
        if found == ".zip" and b"xl/workbook" in self.raw:
            return ".xlsx"
        return found or stated or next((suffix for suffix, start in TEXT_STARTS.items() if start.match(self.head)), "")

    @cached_property
    def text(self) -> str:
        """Decompressed and decoded text, without a byte order mark; line ends are unchanged."""
        return self.decoded(self.raw, self.encoding)

    @property
    def encoding(self) -> str:
        """The encoding of the options, or UTF-16 if the file begins with its byte order mark."""
        return "utf-16" if self.raw[:2] in (b"\xff\xfe", b"\xfe\xff") else self.options.encoding

    @cached_property
    def head(self) -> str:
        """The beginning of the text, which decides about the format."""
        return self.raw[:HEAD].decode(self.encoding, "ignore").removeprefix(BYTE_ORDER_MARK)

    @cached_property
    def raw(self) -> bytes:
        """The bytes of the file, decompressed if it is gzipped."""
        limit = self.limit
        if self.file is not None:
            content = self.read_chunks(self.file, limit)
        else:
            with self.path.open("rb") as file:
                facts = os.fstat(file.fileno())
                if stat.S_ISCHR(facts.st_mode):
                    raise self.error(None, "this is a device; name a file")
                content = self.read_chunks(file, limit, min(facts.st_size, limit) + 1)
        raw = content.encode("utf-8") if isinstance(content, str) else content
        packed = raw.startswith(GZIP_MAGIC) or self.path.suffix.lower() == ".gz"
        if len(raw) > limit:
            raise self.error(None, f"the file has more than {limit:,} bytes; give a larger ", Argument("max_bytes"))
        if not packed:
            return raw
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
                return self.expanded(file, len(raw))
        except (EOFError, OSError, zlib.error) as error:
            problem = f"the gzip data is damaged or truncated ({error}); download the file again"
            raise self.error(None, problem) from None

    @staticmethod
    def read_chunks(file: Any, limit: int, first: int = CHUNK) -> Any:
        """Return the content of a file object, or the first bytes of one that is larger than the limit."""
        chunks = [file.read(first)]
        total = len(chunks[0])
        while chunks[-1] and total <= limit:
            chunks.append(file.read(CHUNK))
            total += len(chunks[-1])
        return chunks[0] if len(chunks) < 3 and not chunks[-1] else chunks[0][:0].join(chunks)

    def members(self, *suffixes: str) -> Iterator[tuple[str, bytes]]:
        """Yield name and content of the members of an archive, or of a folder and its folders, with some suffixes."""
        if self.is_folder:
            for path in sorted((*self.path.glob("*"), *self.path.glob("*/*"))):
                if path.suffix.lower() in suffixes and path.is_file():
                    yield path.name, SourceFile(path, self.options).raw
            return
        raw, total = self.raw, 0
        try:
            with zipfile.ZipFile(io.BytesIO(raw)) as archive:
                for member in archive.infolist():
                    if member.filename.lower().endswith(suffixes) and not member.is_dir():
                        with archive.open(member) as file:
                            content = self.expanded(file, len(raw), total)
                        total += len(content)
                        yield member.filename, content
        except RankingError:
            raise
        except Exception as error:  # of zipfile, zlib, bz2, lzma and unknown methods
            raise self.error(None, f"the archive or workbook is damaged ({error}); download the file again") from None

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
            problem = f"the file is not {encoding} text ({error}); give "
            raise self.error(None, problem, Argument("encoding", ...)) from None

    def error(self, line: int | None, *problem: object) -> RankingError:
        """Return the error for a problem in the file: ``votes.soi, line 17: ...``."""
        where = "" if line is None else f", line {line}"
        return RankingError(f"{self.name}{where}: ", *problem)

    @contextmanager
    def named_in_errors(self, line: int | None = None) -> Iterator[None]:
        """Return a context in which errors of the data name the file."""
        try:
            yield
        except RankingError as error:
            raise self.error(line, *error.parts) from None

    @property
    def limit(self) -> int:
        """Limit in bytes of the file and of a table."""
        return self.options.max_bytes or MAX_BYTES

    def check_table_size(self, n_rows: int, n_items: int) -> None:
        """Raise an error if a table of ranks would exceed the limit."""
        self.check_size(4 * n_rows * n_items, f"{n_rows:,} rankings of {n_items:,} items")

    def check_size(self, n_bytes: int, content: str) -> None:
        """Raise an error if a table would exceed the limit."""
        if n_bytes > self.limit:
            problem = f"{content} make a table of {n_bytes:,} bytes, more than {self.limit:,}; to allow that, give "
            raise self.error(None, problem, Argument("max_bytes", n_bytes))

    def expanded(self, file: Any, n_packed: int, n_before: int = 0) -> Any:
        """Return the content of a compressed file; an error if it and the bytes before it exceed the limit."""
        limit = self.options.max_bytes or min(MAX_BYTES, max(MAX_EXPANSION * n_packed, MIN_EXPANDED))
        content = self.read_chunks(file, limit - n_before)  # the size that an archive states may be wrong
        if n_before + len(content) > limit:
            problem = f"its {n_packed:,} bytes expand to more than {limit:,}; to allow that, give a larger "
            raise self.error(None, problem, Argument("max_bytes"))
        return content


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
        parts = [f"{plural(number, noun)}{verb}" for number, noun, verb in counted if number]
        parts += [f"'{printable(marker)}' read as missing ({plural(n, 'cell')})" for marker, n in self.na_values]
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
    count : str
        Column with the number of voters of each row.
    n_all_in_first : int, optional
        Categories only: number of voters who put all items into the first category. As rankings, these ballots equal
        those with all items in any other category.
    repairs : Repairs
        Number of repairs.
    blank_rows : tuple of int
        Indices of the rows that were dropped because they list no item.
    blank_labels : dict of arrays
        Labels of these rows.
    """

    format: str = ""
    title: str = ""
    seats: int | None = None
    withdrawn: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    count: str = ""
    n_all_in_first: int | None = None
    repairs: Repairs = field(default_factory=Repairs)
    blank_rows: tuple[int, ...] = field(default=(), repr=False)
    blank_labels: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def ignored_text(self) -> str:
        """The first columns that were not used, separated by commas."""
        return ", ".join(printable(name) or "a column without a name" for name in self.ignored[:12])

    def __str__(self) -> str:
        parts = [
            f"read as {self.format}" if self.format else "",
            f"title {printable(self.title)!r}" if self.title else "",
            "" if self.seats is None else plural(self.seats, "seat"),
            f"counts in {quoted(self.count)}" if self.count else "",
            f"withdrawn: {', '.join(map(printable, self.withdrawn))}" if self.withdrawn else "",
            f"ignored: {self.ignored_text}" if self.ignored else "",
        ]
        lines = ["; ".join(part for part in parts if part), f"repaired: {self.repairs}" if self.repairs else ""]
        return "\n".join(line for line in lines if line)


# ---------------------------------------------------------------------- writing


def write_text(path: AnyPath, text: str, overwrite: bool) -> None:
    """Write UTF-8 text to a file, gzipped if the name ends in ``.gz``, through a temporary file in the same folder.

    An existing file is an error unless ``overwrite=True``.
    """
    raw = text.encode("utf-8")
    if check_path("path", path).suffix.lower() == ".gz":
        raw = gzip.compress(raw, mtime=0)  # without a time stamp, equal rankings give equal files
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


FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")  # with which formulas of spreadsheets begin


def plain_cell(text: str) -> str:
    """Return a text that a spreadsheet does not evaluate: formulas other than numbers are prefixed with an apostrophe.

    Examples
    --------
    >>> plain_cell("=1+1"), plain_cell("-1"), plain_cell("a > b")
    ("'=1+1", '-1', 'a > b')
    """
    is_formula = text[:1] in FORMULA_SIGNS and not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", text)
    return f"'{text}" if is_formula else text


def unprefixed_cell(text: str) -> str:
    """Return the text of a cell without the apostrophe of :func:`plain_cell`.

    Examples
    --------
    >>> unprefixed_cell("'=1+1"), unprefixed_cell("'tis")
    ('=1+1', "'tis")
    """
    return text[1:] if text[:1] == "'" and text[1:2] in FORMULA_SIGNS else text

"""Options of the readers: one record that all readers and the command line share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_type_hints

from rankernel._utils.checks import check_choice, check_flag, check_instance, check_integer, check_names, check_text
from rankernel.errors import ArgumentValueError
from rankernel.rankings import Unlisted, check_items

Layout = Literal["auto", "ranks", "positions", "scores", "pairs"]
COLUMN_ROLES = ("user", "better", "worse", "a", "b", "winner", "count")

Reader = TypeVar("Reader", bound=Callable[..., Any])


@dataclass(frozen=True)
class ReadOptions:
    """How a file is read. Each reader takes some of these options as keyword arguments.

    The docstrings of the readers and the help pages of the command line show the descriptions below.

    Parameters
    ----------
    layout : {"auto", "ranks", "positions", "scores", "pairs"}
        Content of the columns: ranks or scores of items (one column per item), names of items (one column per
        position), or pairwise comparisons. The default is an error if the layout is ambiguous.
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
        Roles (user, better, worse; a, b, winner; count) of columns of comparisons. By default the names of the columns
        decide; ``{"user": "expert"}`` states one role.
    contest : str, optional
        Contest of a cast vote record, or a part of its name. Required if there are several contests.
    unlisted : {"last", "free"}
        Whether items that a row does not list share the last bucket, or are free (nothing is known about them).
    ascending : bool
        Whether smaller scores are better, as with times and losses.
    skipped : {"close", "stop"}
        At a skipped position: move the following items up, or end the ballot.
    repeated : {"first", "stop", "error"}
        At a repeated item: use its first occurrence, end the ballot, or raise an error.
    overvotes : {"stop", "skip", "tie", "error"}
        At several items in one position: end the ballot, skip the position, tie the items, or raise an error.
    separator : str, optional
        Separator of several items in one cell.
    na_values : sequence of str
        Additional missing-value markers. The built-in ones are *skipped*, *undervote*, *exhausted*, *(blank)*, *n/a*,
        *NA*, *NaN*, *null* and the like. *Blank*, *Skip*, *Na* and *Null* may be names: they are missing values unless
        some row ranks them.
    fold_case : bool
        Whether names that differ only in case or spaces are the same item.
    blank : {"drop", "keep"}
        Whether to drop or to keep rows that list no item.
    withdrawn : {"keep", "drop"}
        Whether to keep candidates who withdrew (BLT), or to remove them from all ballots.
    lenient : bool
        Whether to accept counts of zero and alternatives numbered from 0 (PrefLib). Some public files have them; they
        give a :class:`ReadingWarning`, and orders with a count of zero are dropped.
    delimiter : str
        Delimiter of the cells. The default detects comma, semicolon, tab or ``|``.
    encoding : str
        Encoding of the text, such as "latin-1".
    max_bytes : int, optional
        Limit in bytes of the decompressed file and of the table of ranks. By default a compressed file may expand to
        100 times its size (or 64 MiB), and a table may take 1 GiB.

    Examples
    --------
    >>> ReadOptions(unlisted="first")
    Traceback (most recent call last):
    rankernel.errors.ArgumentValueError: unlisted='first' is not possible; it must be 'last' or 'free'
    """

    layout: Layout = "auto"
    items: tuple[str, ...] | None = None
    count: str | None = None
    label_columns: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    columns: Mapping[str, str] | None = None
    contest: str | None = None
    unlisted: Unlisted = "last"
    ascending: bool = False
    skipped: Literal["close", "stop"] = "close"
    repeated: Literal["first", "stop", "error"] = "first"
    overvotes: Literal["stop", "skip", "tie", "error"] = "stop"
    separator: str | None = None
    na_values: tuple[str, ...] = ()
    fold_case: bool = False
    blank: Literal["drop", "keep"] = "drop"
    withdrawn: Literal["keep", "drop"] = "keep"
    lenient: bool = False
    delimiter: str = "auto"
    encoding: str = "utf-8"
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        for name, choices in option_choices().items():
            check_choice(name, getattr(self, name), choices)
        for name in ("ascending", "fold_case", "lenient"):
            check_flag(name, getattr(self, name))
        for name in ("count", "contest", "separator"):
            if getattr(self, name) is not None:
                check_text(name, getattr(self, name))
        for name in ("label_columns", "ignore", "na_values"):
            object.__setattr__(self, name, tuple(check_names(name, getattr(self, name))))
        if self.items is not None:
            object.__setattr__(self, "items", check_items(self.items))
        if self.separator == "":
            raise ArgumentValueError("separator", self.separator, "a string of at least one character")
        if self.max_bytes is not None:
            check_integer("max_bytes", self.max_bytes, most=2**63 - 1)
        if check_text("delimiter", self.delimiter) != "auto" and not re.fullmatch(r'[^"\r\n \0]', self.delimiter):
            raise ArgumentValueError("delimiter", self.delimiter, "one character other than \" and space, or 'auto'")
        check_encoding(self.encoding)
        if self.columns is not None:
            check_instance("columns", self.columns, Mapping, "a mapping of roles to columns")
            for role, column in self.columns.items():
                if role not in COLUMN_ROLES or not isinstance(column, str):
                    expected = f"a mapping of {', '.join(COLUMN_ROLES)} to columns"
                    raise ArgumentValueError("columns", self.columns, expected)

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


def check_encoding(encoding: Any) -> None:
    """Raise an error if an encoding is not a text encoding of Python."""
    check_text("encoding", encoding)
    try:
        b" ".decode(encoding)
    except UnicodeDecodeError:  # of an encoding with several bytes per character
        pass
    except (LookupError, ValueError):  # a null character in the name is a ValueError
        raise ArgumentValueError("encoding", encoding, "a text encoding of Python, such as 'latin-1'") from None


@cache
def option_choices() -> dict[str, tuple[str, ...]]:
    """Return the possible values of the options that have a fixed set of them."""
    return {name: values for name, hint in get_type_hints(ReadOptions).items() if (values := literal_values(hint))}


def literal_values(hint: Any) -> tuple[str, ...]:
    """Return the values of a Literal, none for other types."""
    return get_args(hint) if getattr(hint, "__origin__", None) is Literal else ()


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

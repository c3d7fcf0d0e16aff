"""Text files, plain or gzipped: read with errors that name the line, written whole or not at all."""

from __future__ import annotations

import gzip
import io
import os
import unicodedata
import zlib
from pathlib import Path
from typing import TypeAlias

from rankernel._utils import checks
from rankernel._utils.checks import printable
from rankernel._utils.files import whole_file
from rankernel.errors import RankingError

AnyPath: TypeAlias = str | os.PathLike[str]

GZIP_MAGIC = b"\x1f\x8b"
MOST_BYTES = 2**30  # that a small file may grow to: as text, and as a table of ranks
# Unless told otherwise, what was packed may grow to a hundred times its size: text seldom shrinks to a twentieth.
MOST_GROWTH, ALWAYS_UNPACKED = 100, 2**26
BYTE_ORDER_MARK = "\ufeff"
UNWRITABLE = {"Cc": "a control character", "Zl": "a line break", "Zp": "a line break", "Cs": "half a surrogate pair"}


def fail(path: AnyPath, line: int | None, problem: str) -> RankingError:
    """Return the error for something wrong in a file: ``votes.soi, line 17: ...``."""
    place = "" if line is None else f", line {line}"
    return RankingError(f"{printable(Path(path).name or path)}{place}: {problem}")


def read_text(path: AnyPath, encoding: str = "utf-8", max_bytes: int = MOST_BYTES) -> str:
    """Return the text of a file, unpacked if it is gzipped, without the byte order mark that some programs put first.

    Line ends are left as they are. What is not text in the given encoding is refused, naming line and byte.
    """
    return decoded(read_bytes(path, max_bytes), path, encoding)


def read_bytes(path: AnyPath, max_bytes: int = MOST_BYTES) -> bytes:
    """Return the bytes of a file, unpacked if it is gzipped."""
    checks.check_integer("max_bytes", max_bytes)
    file = checks.check_path("path", path)
    raw = file.read_bytes()
    if raw.startswith(GZIP_MAGIC) or file.suffix.lower() == ".gz":
        raw = unpacked(raw, path, max_bytes)
    return raw


def decoded(raw: bytes, path: AnyPath, encoding: str) -> str:
    """Return bytes of a file as text."""
    checks.check_instance("encoding", encoding, str, "the name of a text encoding, such as 'utf-8'")
    try:
        return raw.decode(encoding).removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise fail(
            path,
            line,
            f"byte 0x{raw[error.start]:02x} (number {error.start + 1} of the file) is not {encoding} text; "
            "name the encoding of the file, such as encoding='latin-1'",
        ) from None
    except (LookupError, UnicodeError, ValueError):  # a zero byte is the last one
        raise RankingError(f"encoding={encoding!r} is not a text encoding that Python knows") from None


def unpacked(raw: bytes, path: AnyPath, max_bytes: int) -> bytes:
    """Return gzipped bytes unpacked, if they are not too many."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            content = file.read(most_unpacked(len(raw), max_bytes) + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise fail(path, None, f"the gzip data is damaged or cut short ({error}); get the file again") from None
    check_unpacked_size(len(content), len(raw), path, max_bytes)
    return content


def most_unpacked(n_packed: int, max_bytes: int) -> int:
    """Return how many bytes a packed file may grow to."""
    return max_bytes if max_bytes != MOST_BYTES else min(max_bytes, max(MOST_GROWTH * n_packed, ALWAYS_UNPACKED))


def check_unpacked_size(n_bytes: int, n_packed: int, path: AnyPath, max_bytes: int) -> None:
    """Refuse a small file that grows too large."""
    most = most_unpacked(n_packed, max_bytes)
    if n_bytes > most:
        problem = f"its {n_packed:,} bytes unpack to more than {most:,}"
        raise fail(path, None, f"{problem}; if that is right, say how many may be with max_bytes=")


def check_table_size(n_rows: int, n_items: int, path: AnyPath, max_bytes: int) -> None:
    """Refuse rankings whose table of ranks would be too large."""
    check_grown_size(4 * n_rows * n_items, f"{n_rows:,} rankings of {n_items:,} items", path, max_bytes)


def check_grown_size(n_bytes: int, what: str, path: AnyPath, max_bytes: int) -> None:
    """Refuse what would make a table that is too large."""
    if n_bytes > max_bytes:
        problem = f"{what} make a table of {n_bytes:,} bytes, more than {max_bytes:,}"
        raise fail(path, None, f"{problem}; if that is right, raise max_bytes=")


def write_text(path: AnyPath, text: str, overwrite: bool) -> None:
    """Write UTF-8 text to a file, gzipped where the name ends in ``.gz``; see :func:`write_bytes`."""
    raw = text.encode("utf-8")
    if checks.check_path("path", path).suffix.lower() == ".gz":
        raw = gzip.compress(raw, mtime=0)  # no time stamp: equal rankings give equal files
    write_bytes(path, raw, overwrite)


def write_bytes(path: AnyPath, raw: bytes, overwrite: bool) -> None:
    """Write a file whole or not at all: into a temporary file beside it, which then takes its name.

    A file that is there already is left alone and the call refused, unless ``overwrite=True``.
    """
    if not checks.check_flag("overwrite", overwrite) and checks.check_path("path", path).exists():
        raise FileExistsError(f"{printable(path)} is there already; give another name, or overwrite=True")
    with whole_file(path) as temporary:
        temporary.write_bytes(raw)


def check_writable_name(name: str, what: str = "item") -> None:
    """Refuse a name that a line of text cannot hold: empty, blank at an end, or with a line break or control sign."""
    checks.check_instance(what, name, str, "a text")
    shown = printable(name)
    if not name or name != name.strip():
        raise RankingError(f"{what} {shown!r} is empty or begins or ends with a blank, which a file does not keep")
    for character in name:
        problem = UNWRITABLE.get(unicodedata.category(character))
        if problem:
            raise RankingError(f"{what} {shown!r} holds {problem}, which would break the file; rename it first")

"""Checks of arguments, and random seeds. A check raises an error that names the argument and what is expected."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable
from hashlib import blake2b
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from rankernel._utils import FloatArray
from rankernel.errors import ArgumentTypeError, ArgumentValueError, RankingError
from rankernel.errors import short_repr as short_repr

Seed = int | np.integer | np.random.Generator | None

MAX_INTEGER = 2**31 - 1  # default upper bound of integers
MAX_FILE_NAME = 255  # bytes, on all common file systems
SMALLEST_PVALUE = 1e-300  # smaller p-values from moments may underflow to zero


def printable(name: object) -> str:
    """Return a name with control characters escaped, safe to show in a terminal or an error message."""
    text = short_repr(name) if isinstance(name, list) else str(name)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def plural(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def is_number(value: object) -> bool:
    """Whether a value is a plain real number."""
    return isinstance(value, Real) and not isinstance(value, bool | np.timedelta64)


def check_integer(name: str, value: Any, least: int = 1, most: int = MAX_INTEGER) -> int:
    """Return an integer within bounds."""
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_integer or int(value) < least or int(value) > most:
        bounded = most < MAX_INTEGER or (is_integer and int(value) > most)
        bounds = f"from {least} to {most:,}" if bounded else f">= {least}"
        raise ArgumentValueError(name, value, f"an integer {bounds}")
    return int(value)


def check_number(name: str, value: Any, least: float = -math.inf, most: float = math.inf, above: bool = False) -> float:
    """Return a finite number within bounds; with ``above``, the lower bound itself is excluded."""
    if math.isfinite(most):
        expected = f"a number {'above' if above else 'from'} {least:g} {'and up ' * above}to {most:g}"
    else:
        expected = "a finite number" + (f" {'>' if above else '>='} {least:g}" if math.isfinite(least) else "")
    if not is_number(value):
        raise ArgumentTypeError(name, value, expected)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not (math.isfinite(number) and least <= number <= most) or (above and number == least):
        raise ArgumentValueError(name, value, expected)
    return number


def check_unmasked(name: str, values: Any) -> None:
    """Raise an error if a masked array has masked entries, which ``np.asarray`` would silently unmask."""
    if np.ma.is_masked(values):
        index = np.argwhere(np.ma.getmaskarray(values))[0].tolist()
        problem = f"is masked at {', '.join(map(str, index))}"
        raise ArgumentValueError(name, values, "without missing entries", problem=problem)


def check_numbers(name: str, values: Any, shape: tuple[int | None, ...], least: float = -math.inf) -> FloatArray:
    """Return finite numbers as an array of a given shape, in which None stands for any length."""
    check_unmasked(name, values)
    lengths = ["any number of" if length is None else str(length) for length in shape]
    expected = f"an array of {' x '.join(lengths)} numbers" + (f" >= {least:g}" if math.isfinite(least) else "")
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "iufO" or (array.dtype == object and not all(map(is_number, array.flat))):
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentTypeError(name, values, expected) from None
    if array.ndim != len(shape) or any(want not in (None, got) for want, got in zip(shape, array.shape, strict=True)):
        raise ArgumentValueError(name, values, expected, problem=f"has shape {array.shape}")
    if not np.isfinite(array).all() or (array < least).any():
        wrong = array[~np.isfinite(array) | (array < least)][0]
        raise ArgumentValueError(name, values, f"{expected}, all of them finite", problem=f"holds {wrong}")
    return array


def check_array(name: str, values: Any, expected: str) -> np.ndarray[Any, Any]:
    """Return values as an array of any type."""
    try:
        return np.asanyarray(values)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentTypeError(name, values, expected) from None


def check_flag(name: str, value: Any) -> bool:
    """Return a boolean."""
    if not isinstance(value, bool | np.bool_):
        raise ArgumentTypeError(name, value, "True or False")
    return bool(value)


def check_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """Return a string that is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        *others, last = map(repr, choices)
        raise ArgumentValueError(name, value, f"{', '.join(others)} or {last}" if others else last)
    return value


def check_instance(name: str, value: Any, kind: Any, expected: str) -> Any:
    """Return a value of a type."""
    if not isinstance(value, kind):
        raise ArgumentTypeError(name, value, expected)
    return value


def check_text(name: str, value: Any) -> str:
    """Return a string that can be written to a file or a page."""
    text = str(check_instance(name, value, str, "a string"))
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ArgumentValueError(name, value, "a string without lone surrogates")
    return text


def check_list(name: str, values: Any, expected: str) -> list[Any]:
    """Return the values of an iterable that is not a string."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        raise ArgumentTypeError(name, values, expected)
    if isinstance(values, np.ndarray) and values.dtype.kind in "US":
        return list(values.tolist())  # iterating over an array of strings swallows a KeyboardInterrupt in NumPy
    return list(values)


def check_names(name: str, values: Any) -> list[str]:
    """Return names as a list; a single string is one name."""
    given = [values] if isinstance(values, str) else check_list(name, values, "a list of names")
    if not all(isinstance(each, str) for each in given):
        raise ArgumentTypeError(name, values, "a list of names")
    return given


def check_path(name: str, value: Any) -> Path:
    """Return a path."""
    if not isinstance(value, str | os.PathLike) or not str(value) or "\0" in str(value):
        raise ArgumentTypeError(name, value, "the name of a file")
    path = Path(value)
    try:
        too_long = any(len(os.fsencode(part)) > MAX_FILE_NAME for part in path.parts)
    except UnicodeEncodeError:
        raise ArgumentValueError(name, value, "the name of a file without lone surrogates") from None
    if too_long:
        raise ArgumentValueError(name, value, f"the name of a file of at most {MAX_FILE_NAME} bytes")
    return path


def check_labels(name: str, values: Any, length: int) -> np.ndarray[Any, Any]:
    """Return one label for each row as an array."""
    check_unmasked(name, values)
    expected = f"an array of {length} labels, one for each row"
    given = check_array(name, check_list(name, values, expected), expected)
    if given.shape != (length,):
        raise ArgumentValueError(name, values, expected, problem=f"has shape {given.shape}")
    if given.dtype == object and any(isinstance(each, dict) or getattr(each, "ndim", 0) for each in given):
        raise ArgumentTypeError(name, values, f"{expected}, each a string or a number")
    return given


# ---------------------------------------------------------------------- seeds


def as_seed(rng: Seed, name: str = "rng") -> int:
    """Return an integer seed: a Generator is drawn from once, None uses fresh entropy from the operating system."""
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if rng is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or rng < 0:
        raise RankingError(
            f"{name}={short_repr(rng)} is not a seed; give a whole number >= 0, a numpy Generator or None"
        )
    return int(rng)


def as_generator(rng: Seed) -> np.random.Generator:
    """Return a Generator unchanged, or a new Generator for a seed."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(as_seed(rng))


def stream_key(seed: int, purpose: str) -> np.uint64:
    """Return 64 bits that depend on a seed and a purpose, so that different purposes use independent streams."""
    digest = blake2b(f"{purpose}\0{seed}".encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))

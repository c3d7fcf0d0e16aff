"""What arguments may be, checked in one place: each refusal says what came, what is wanted, and by which name."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from rankernel._utils.arrays import FloatArray

MOST = 2**31 - 1  # of anything that is counted, unless there can be more
SHOWN = 80  # characters of a value in a message


def short_repr(value: object) -> str:
    """Return a value as one short line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def printable(name: object) -> str:
    """Return a name with control characters escaped, safe to show in a terminal or an error message."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(name))


def is_number(value: object) -> bool:
    """Say whether a value is a plain real number."""
    return isinstance(value, Real) and not isinstance(value, bool | np.timedelta64)


def check_integer(name: str, value: Any, least: int = 1, most: int = MOST) -> int:
    """Return a whole number within its bounds.

    Examples
    --------
    >>> check_integer("n_draws", 2.5)
    Traceback (most recent call last):
    ValueError: n_draws=2.5 is not possible; it must be a whole number >= 1
    """
    fits = isinstance(value, Integral) and not isinstance(value, bool)
    if not fits or int(value) < least or int(value) > most:
        wanted = f">= {least}" if most >= MOST and not (fits and int(value) > most) else f"from {least} to {most:,}"
        raise ValueError(f"{name}={short_repr(value)} is not possible; it must be a whole number {wanted}")
    return int(value)


def check_number(name: str, value: Any, least: float = -math.inf, most: float = math.inf, above: bool = False) -> float:
    """Return a finite number within its bounds; with ``above``, not at the lower one.

    Examples
    --------
    >>> check_number("level", "high", 0, 1)
    Traceback (most recent call last):
    TypeError: level='high' is not a number; it must be a number from 0 to 1
    """
    if math.isfinite(most):
        wanted = f"a number {'above' if above else 'from'} {least:g} {'and up ' * above}to {most:g}"
    else:
        wanted = "a finite number" + (f" {'>' if above else '>='} {least:g}" if math.isfinite(least) else "")
    if not is_number(value):
        raise TypeError(f"{name}={short_repr(value)} is not a number; it must be {wanted}")
    try:
        given = float(value)
    except OverflowError:
        given = math.inf
    if not (math.isfinite(given) and least <= given <= most) or (above and given == least):
        raise ValueError(f"{name}={short_repr(value)} is not possible; it must be {wanted}")
    return given


def check_unmasked(name: str, values: Any) -> None:
    """Refuse values of which some are masked: whoever takes them as an array would see what is behind the mask.

    Examples
    --------
    >>> check_unmasked("covariate", np.ma.array([1, 2], mask=[False, True]))
    Traceback (most recent call last):
    ValueError: covariate is masked at 1; leave out what is missing
    """
    if np.ma.is_masked(values):
        places = np.argwhere(np.ma.getmaskarray(values))[0].tolist()
        raise ValueError(f"{name} is masked at {', '.join(map(str, places))}; leave out what is missing")


def check_numbers(name: str, values: Any, shape: tuple[int | None, ...], least: float = -math.inf) -> FloatArray:
    """Return finite numbers as an array of a shape, in which None stands for any length.

    Examples
    --------
    >>> check_numbers("weights", [1, "two"], (2,))
    Traceback (most recent call last):
    TypeError: weights=[1, 'two'] is not possible; it must be an array of 2 numbers
    """
    check_unmasked(name, values)
    lengths = ["any number of" if length is None else str(length) for length in shape]
    wanted = f"an array of {' x '.join(lengths)} numbers" + (f" >= {least:g}" if math.isfinite(least) else "")
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "iufO" or (array.dtype == object and not all(map(is_number, array.flat))):
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name}={short_repr(values)} is not possible; it must be {wanted}") from None
    if array.ndim != len(shape) or any(want not in (None, got) for want, got in zip(shape, array.shape, strict=True)):
        raise ValueError(f"{name} has shape {array.shape}; it must be {wanted}")
    if not np.isfinite(array).all() or (array < least).any():
        wrong = array[~np.isfinite(array) | (array < least)][0]
        raise ValueError(f"{name} holds {wrong}; it must be {wanted}, all of them finite")
    return array


def check_array(name: str, values: Any, wanted: str) -> np.ndarray[Any, Any]:
    """Return values as an array of any kind.

    Examples
    --------
    >>> check_array("lengths", [[1, 2], [3]], "one length for each ranking")
    Traceback (most recent call last):
    TypeError: lengths=[[1, 2], [3]] is not possible; it must be one length for each ranking
    """
    try:
        return np.asanyarray(values)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name}={short_repr(values)} is not possible; it must be {wanted}") from None


def check_flag(name: str, value: Any) -> bool:
    """Return a value that is true or false.

    Examples
    --------
    >>> check_flag("biased", "no")
    Traceback (most recent call last):
    TypeError: biased='no' is not possible; it must be True or False
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}={short_repr(value)} is not possible; it must be True or False")
    return bool(value)


def check_choice(name: str, value: Any, words: Collection[str]) -> str:
    """Return a word that is one of those there are.

    Examples
    --------
    >>> check_choice("ties", "break", ("keep", "items"))
    Traceback (most recent call last):
    ValueError: ties='break' is not known; there are 'keep' and 'items'
    """
    if not isinstance(value, str) or value not in words:
        *others, last = map(repr, words)
        there = f"there are {', '.join(others)} and {last}" if others else f"there is {last}"
        raise ValueError(f"{name}={short_repr(value)} is not known; {there}")
    return value


def check_instance(name: str, value: Any, kind: Any, wanted: str) -> Any:
    """Return a value of a kind.

    Examples
    --------
    >>> check_instance("columns", 5, dict, "a mapping of roles to columns")
    Traceback (most recent call last):
    TypeError: columns=5 is not possible; it must be a mapping of roles to columns
    """
    if not isinstance(value, kind):
        raise TypeError(f"{name}={short_repr(value)} is not possible; it must be {wanted}")
    return value


def text(name: str, value: Any) -> str:
    """Return a text.

    Examples
    --------
    >>> text("title", 5)
    Traceback (most recent call last):
    TypeError: title=5 is not possible; it must be a text
    """
    return str(check_instance(name, value, str, "a text"))


def listed(name: str, values: Any, wanted: str) -> list[Any]:
    """Return the values of something that can be gone through, and is no text.

    Examples
    --------
    >>> listed("kernels", 3, "a list of kernels")
    Traceback (most recent call last):
    TypeError: kernels=3 is not possible; it must be a list of kernels
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        raise TypeError(f"{name}={short_repr(values)} is not possible; it must be {wanted}")
    if isinstance(values, np.ndarray) and values.dtype.kind in "US":
        return list(values.tolist())  # NumPy loses a Ctrl-C while an array of texts is gone through
    return list(values)


def names(name: str, values: Any) -> list[str]:
    """Return names as a list; a single text is one name.

    Examples
    --------
    >>> names("labels", "district"), names("labels", ("district", "age"))
    (['district'], ['district', 'age'])
    >>> names("labels", [1, 2])
    Traceback (most recent call last):
    TypeError: labels=[1, 2] is not possible; it must be a list of names
    """
    given = [values] if isinstance(values, str) else listed(name, values, "a list of names")
    if not all(isinstance(each, str) for each in given):
        raise TypeError(f"{name}={short_repr(values)} is not possible; it must be a list of names")
    return given


def file_name(name: str, value: Any) -> Path:
    """Return the name of a file.

    Examples
    --------
    >>> file_name("path", 3)
    Traceback (most recent call last):
    TypeError: path=3 is not possible; it must be the name of a file
    """
    if not isinstance(value, str | os.PathLike) or not str(value) or "\0" in str(value):
        raise TypeError(f"{name}={short_repr(value)} is not possible; it must be the name of a file")
    return Path(value)


def labels(name: str, values: Any, length: int) -> np.ndarray[Any, Any]:
    """Return one label for each row as an array."""
    check_unmasked(name, values)
    wanted = f"an array of {length} labels, one for each row"
    given = check_array(name, listed(name, values, wanted), wanted)
    if given.shape != (length,):
        raise ValueError(f"{name} has shape {given.shape}; it must be {wanted}")
    return given

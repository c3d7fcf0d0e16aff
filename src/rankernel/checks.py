"""What arguments may be, checked in one place: each refusal says what came, what is wanted, and by which name."""

from __future__ import annotations

import math
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any


def is_number(value: object) -> bool:
    """Say whether a value is a plain real number."""
    return isinstance(value, Real) and not isinstance(value, bool)


def whole(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Return a whole number within its bounds.

    Examples
    --------
    >>> whole("n_draws", 2.5)
    Traceback (most recent call last):
    ValueError: n_draws=2.5 is not possible; it must be a whole number >= 1
    """
    fits = isinstance(value, Integral) and not isinstance(value, bool)
    if not fits or int(value) < least or (most is not None and int(value) > most):
        wanted = f">= {least}" if most is None else f"from {least} to {most:,}"
        raise ValueError(f"{name}={value!r} is not possible; it must be a whole number {wanted}")
    return int(value)


def number(name: str, value: Any, least: float = -math.inf, most: float = math.inf) -> float:
    """Return a finite number within its bounds.

    Examples
    --------
    >>> number("level", "high", 0, 1)
    Traceback (most recent call last):
    TypeError: level='high' is not a number; it must be a number from 0 to 1
    """
    if math.isfinite(most):
        wanted = f"a number from {least:g} to {most:g}"
    else:
        wanted = "a finite number" + (f" >= {least:g}" if math.isfinite(least) else "")
    if not is_number(value):
        raise TypeError(f"{name}={value!r} is not a number; it must be {wanted}")
    if not (math.isfinite(value) and least <= value <= most):
        raise ValueError(f"{name}={value} is not possible; it must be {wanted}")
    return float(value)


def known(name: str, value: Any, words: Collection[str]) -> str:
    """Return a word that is one of those there are.

    Examples
    --------
    >>> known("ties", "break", ("keep", "items"))
    Traceback (most recent call last):
    ValueError: ties='break' is not known; there are 'keep' and 'items'
    """
    if not isinstance(value, str) or value not in words:
        *others, last = map(repr, words)
        there = f"there are {', '.join(others)} and {last}" if others else f"there is {last}"
        raise ValueError(f"{name}={value!r} is not known; {there}")
    return value

"""Texts that a spreadsheet program takes for formulas when it opens a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rankernel._utils.checks import printable
from rankernel.errors import warn


def plain_cell(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula: an apostrophe goes before what looks like one.

    Examples
    --------
    >>> plain_cell("=1+1"), plain_cell("a > b")
    ("'=1+1", 'a > b')
    """
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def point_out_formulas(texts: Iterable[str], target: Path) -> None:
    """Say which texts a spreadsheet would take for a formula; they are written as they are, so that they come back."""
    formulas = [repr(printable(text)) for text in dict.fromkeys(texts) if plain_cell(text) != text]
    if formulas:
        others = f" (and {len(formulas) - 1:,} more)" * (len(formulas) > 1)
        warn(f"{formulas[0]}{others} is a formula to a spreadsheet that opens {printable(target.name)}", UserWarning)

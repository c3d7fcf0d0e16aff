"""How wide a text is in a picture, near enough and rather too wide, as the fonts of readers are not known."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache

from rankernel.reports.short_names import shortened, told_apart

NARROW, WIDE = set(" .,:;'|!ijlI()[]-/ftr"), set("mwMWOQGCDNHU@%>=<…—–&")


def text_width(text: str, size: float = 13.0) -> float:
    """Return the width of a text of a size.

    Examples
    --------
    >>> text_width("ill", 10.0) < text_width("amp", 10.0) < text_width("WWW", 10.0)
    True
    """
    return size * sum(map(character_width, text))


@cache
def character_width(character: str) -> float:
    """Return the width of a character in parts of the size."""
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    if character in NARROW:
        return 0.42
    if character in WIDE:
        return 1.0 if character in "mW@%…" else 0.88
    return 0.72 if character.isupper() else 0.65


def fitted(text: str, room: float, size: float = 13.0) -> str:
    """Return a text, shortened if it is wider than there is room.

    Examples
    --------
    >>> fitted("Amberlow", 1000), fitted("Amberlow", 45)
    ('Amberlow', 'Amb…')
    """
    return shortened(text, lambda shown: text_width(shown, size) <= room)


def fitted_names(names: Sequence[str], room: float, size: float = 13.0) -> tuple[str, ...]:
    """Return names, those wider than there is room shortened so that no two become equal."""
    return told_apart(names, lambda shown: text_width(shown, size) <= room)

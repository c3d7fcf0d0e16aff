"""Names that are too long for their place, shortened: no two that were different become equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

SHORT_WORD = 4

Fits = Callable[[str], bool]


def cut(name: str, length: int) -> str:
    """Return a name, shortened if it is long.

    Examples
    --------
    >>> cut("Featherstonehaugh", 8), cut("Featherstonehaugh 12", 12)
    ('Feather…', 'Feathers… 12')
    """
    return shortened(name, lambda text: len(text) <= length)


@lru_cache(maxsize=256)
def short_names(names: tuple[str, ...], length: int) -> tuple[str, ...]:
    """Return names of at most so many characters.

    Examples
    --------
    >>> short_names(("Candidate number 1 Beta", "Candidate number 2 Beta"), 12)
    ('… 1 Beta', '… 2 Beta')
    """
    return told_apart(names, lambda text: len(text) <= length)


def told_apart(names: Sequence[str], fits: Fits) -> tuple[str, ...]:
    """Return names that fit, those that would become equal cut elsewhere: in front, in the middle; else numbered."""
    shown = [shortened(name, fits) for name in names]
    for way in (ends_of, middles_left_out):
        for places in equal_ones(shown, names):
            other = [next((text for text in way(names[place]) if fits(text)), shown[place]) for place in places]
            taken = set(shown) - {shown[place] for place in places}
            if len(set(other)) == len({names[place] for place in places}) and not taken.intersection(other):
                for place, text in zip(places, other, strict=True):
                    shown[place] = text
    alike = [names[place] for places in equal_ones(shown, names) for place in places]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(alike), start=1)}
    return tuple(
        shortened(name, fits, f" {numbers[name]}") if name in numbers else text
        for name, text in zip(names, shown, strict=True)
    )


def equal_ones(shown: list[str], names: Sequence[str]) -> list[list[int]]:
    """Return the places of different names that are shown alike."""
    places: dict[str, list[int]] = {}
    for place, text in enumerate(shown):
        places.setdefault(text, []).append(place)
    return [alike for alike in places.values() if len({names[place] for place in alike}) > 1]


def shortened(name: str, fits: Fits, end: str | None = None) -> str:
    """Return the beginning of a name and what ends it, if the whole of it does not fit."""
    if end is None and fits(name):
        return name
    kept = short_ending(name) if end is None else end
    for length in range(len(name) - 1, 0, -1):
        text = name[:length].rstrip(" >…") + "…" + kept
        if fits(text):
            return text
    return "…"


def ends_of(name: str) -> Iterator[str]:
    """Yield the ends of a name, the longest first: whole words, then parts of the last one."""
    words = name.split(" ")
    for start in range(1, len(words)):
        yield "… " + " ".join(words[start:])
    for start in range(1, len(words[-1])):
        yield "…" + words[-1][start:]


def middles_left_out(name: str) -> Iterator[str]:
    """Yield a name without its middle, the longest first."""
    for left_out in range(1, len(name) - 1):
        half = (len(name) - left_out + 1) // 2
        yield f"{name[:half].rstrip()}…{name[half + left_out :].lstrip()}"


def short_ending(name: str) -> str:
    """Return the last word of a name, with the blank before it, if it is short: it may tell two long names apart.

    Of a ballot the end is the least.
    """
    start, blank, last = name.rpartition(" ")
    return blank + last if start and len(last) <= SHORT_WORD and " > " not in name else ""

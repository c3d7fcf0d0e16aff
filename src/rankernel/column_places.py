"""Names of columns that state a place: ``rank 2``, ``choice_2``, ``2nd choice``, ``City Council Choice 2 of 4``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

ORDINAL_WORDS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
ORDINALS = {word: number for number, word in enumerate(ORDINAL_WORDS.split(), start=1)}
WORD = "(?:ranking|rank|choice|preference|pref|position|pos|place|vote|selection)"
NUMBER, GAP, OF = "([0-9]{1,6})(?:st|nd|rd|th)?", r"[\s_.:#-]*", r"(?:[\s_]*(?:of|/)[\s_]*[0-9]{1,6}(?![0-9]))?"
INSIDE = (  # anywhere in a name: the word makes clear what the number is
    re.compile(rf"(?<![a-z]){WORD}{GAP}{NUMBER}{OF}(?![0-9a-z])"),
    re.compile(rf"(?<![0-9a-z.])([0-9]{{1,6}})(?:st|nd|rd|th)[\s_.-]*{WORD}(?![a-z])"),
    re.compile(rf"(?<![a-z])({'|'.join(ORDINALS)})[\s_.-]*{WORD}(?![a-z])"),
)
BARE = re.compile(rf"(?<![0-9a-z.])([0-9]{{1,6}})[\s_.-]*{WORD}(?![a-z])")  # 2 choice; but not in "ward 2 choice 1"
ALONE = (re.compile(rf"#?{NUMBER}"), re.compile(f"({'|'.join(ORDINALS)})"))  # nothing else in the name


class Place(NamedTuple):
    """The place that the name of a column states, and what else is in the name, such as a contest."""

    number: int
    contest: str


def place_of(column: str) -> Place | None:
    """Return the place that the name of a column states, if it states one.

    Examples
    --------
    >>> place_of("City Council Choice 1 of 4"), place_of("candidate_rank2"), place_of("3rd choice")
    (Place(number=1, contest='City Council'), Place(number=2, contest='candidate'), Place(number=3, contest=''))
    >>> place_of("Ann"), place_of("System 2")
    (None, None)
    """
    apart = re.sub("(?<=[a-z])(?=[A-Z])", " ", column.strip())  # candidateRank1
    name = apart.lower()
    if len(name) != len(apart):  # a letter that has no small form of one sign
        apart = name
    whole = next((match for pattern in ALONE if (match := pattern.fullmatch(name))), None)
    found = [whole] if whole else [match for pattern in INSIDE for match in pattern.finditer(name)]
    found = found or list(BARE.finditer(name))
    numbers = {ORDINALS.get(match.group(1)) or int(match.group(1)) for match in found}
    if len(numbers) != 1:
        return None
    start, end = min(match.start() for match in found), max(match.end() for match in found)
    rest = re.sub(r"[\s_]+", " ", f"{apart[:start]} {apart[end:]}")
    return Place(numbers.pop(), rest.strip(" -:,._"))


def places_of(columns: Sequence[str]) -> list[Place] | None:
    """Return the places of columns that all state one, of one contest; None if one of them does not."""
    places = [place_of(column) for column in columns]
    found = [place for place in places if place is not None]
    if len(found) < len(places) or len({place.contest for place in found}) > 1:
        return None
    return found


def count_up(numbers: Sequence[int]) -> bool:
    """Say whether places are 1, 2, 3 ... or 0, 1, 2 ..., in any order."""
    return sorted(numbers) in (list(range(1, len(numbers) + 1)), list(range(len(numbers))))

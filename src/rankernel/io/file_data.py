"""Rankings and preferences as they come from files: with labels of the rows, what was mended, and what the file is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import IntArray, RankArray
from rankernel._utils.checks import printable
from rankernel.io.repairs import Repairs
from rankernel.preferences import Preferences
from rankernel.rankings import Rankings

Labels = dict[str, NDArray[np.str_]]


@dataclass(frozen=True)
class About:
    """What a file says of itself.

    Attributes
    ----------
    format : str
        What it was taken for, in words.
    title : str
        What it calls itself.
    seats : int, optional
        How many are to be elected.
    withdrawn : tuple of str
        Candidates who withdrew.
    passed_over : tuple of str
        Columns that were not used.
    all_in_first : int, optional
        Of categories: how many voters put all items into the first one. As rankings they are equal to those who put
        all into another.
    """

    format: str = ""
    title: str = ""
    seats: int | None = None
    withdrawn: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()
    all_in_first: int | None = None

    def __str__(self) -> str:
        parts = [
            f"read as {self.format}" if self.format else "",
            f"title {printable(self.title)!r}" if self.title else "",
            "" if self.seats is None else f"{self.seats:,} seat{'s' * (self.seats != 1)}",
            f"withdrawn: {', '.join(map(printable, self.withdrawn))}" if self.withdrawn else "",
            f"passed over: {', '.join(map(printable, self.passed_over[:12]))}" if self.passed_over else "",
        ]
        return "; ".join(part for part in parts if part)


@dataclass(frozen=True, eq=False)
class Reading:
    """What is known beside the rankings of a file.

    Attributes
    ----------
    labels : dict of arrays
        For each label column the text in every row.
    repairs : Repairs
        How often a ballot had to be mended.
    about : About
        What the file says of itself.
    """

    labels: Labels = field(default_factory=dict)
    repairs: Repairs = field(default_factory=Repairs)
    about: About = field(default_factory=About)

    def __post_init__(self) -> None:
        for values in self.labels.values():
            values.flags.writeable = False

    def lines(self) -> str:
        """Return what there is to say, one line each."""
        said = [str(self.about), f"mended: {self.repairs}" if self.repairs else ""]
        return "".join(f"\n  {line}" for line in said if line)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class FileRankings(Rankings):
    """Rankings read from a file, with the labels of each row and a record of what was mended.

    They behave as :class:`Rankings` in everything and compare by the rankings alone; slices of them, and all that is
    made from them, are plain :class:`Rankings`.

    Parameters
    ----------
    ranks, items, counts
        As in :class:`Rankings`.
    reading : Reading
        Labels, repairs, and what the file says of itself.
    """

    #: For each label column the text in every row.
    labels: Labels
    #: How often a ballot had to be mended.
    repairs: Repairs
    #: What the file says of itself.
    about: About

    def __init__(
        self, ranks: Any, items: Iterable[object] | None = None, counts: Any = None, reading: Reading | None = None
    ) -> None:
        Rankings.__init__(self, ranks, items, counts)
        attach(self, reading or Reading())

    def __reduce__(self) -> tuple[Any, ...]:
        return file_rankings, (self.ranks, self.items, self.counts, reading_of(self))

    def __repr__(self) -> str:
        return Rankings.__repr__(self) + reading_of(self).lines()


def file_rankings(ranks: RankArray, items: tuple[str, ...], counts: IntArray, reading: Reading) -> FileRankings:
    """Build from arrays that already satisfy every promise of the class."""
    new = object.__new__(FileRankings)
    new._set(ranks, items, counts)
    attach(new, reading)
    return new


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class FilePreferences(Preferences):
    """Preferences read from a file, with the labels of each user; :class:`Preferences` in everything else."""

    #: For each label column the text of every user.
    labels: Labels
    #: How often something had to be mended.
    repairs: Repairs
    #: What the file says of itself.
    about: About

    def __reduce__(self) -> tuple[Any, ...]:
        plain = Preferences._trusted(self.packed, self.items, self.counts, self.users, self.contracted)
        return file_preferences, (plain, reading_of(self))

    def __repr__(self) -> str:
        return Preferences.__repr__(self) + reading_of(self).lines()


def file_preferences(data: Preferences, reading: Reading) -> FilePreferences:
    """Return preferences with what is known beside them."""
    new = object.__new__(FilePreferences)
    for name in Preferences.__dataclass_fields__:
        object.__setattr__(new, name, getattr(data, name))
    attach(new, reading)
    return new


def attach(data: FileRankings | FilePreferences, reading: Reading) -> None:
    """Put beside the data what is known of it."""
    for name in Reading.__dataclass_fields__:
        object.__setattr__(data, name, getattr(reading, name))


def reading_of(data: FileRankings | FilePreferences) -> Reading:
    """Return what is known beside the data."""
    return Reading(data.labels, data.repairs, data.about)

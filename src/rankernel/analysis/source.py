"""What a report is about: rankings, what they are called, and the group of each row if that is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankernel.arrays import IntArray
from rankernel.data import Data
from rankernel.encoding import printable
from rankernel.errors import RankingError
from rankernel.group_names import numbered_groups
from rankernel.preferences import Preferences

NO_NAME = "(none)"  # stands for a group whose name is empty
ELECTIONS = ("election", "mayor", "council", "ward", "senate", "leader", "supervisor", "cast vote", "blt", "seats")


@dataclass(frozen=True, eq=False)
class Source:
    """Rankings and what is known of them."""

    rankings: Data  # the data, at least one ranking
    title: str = "Rankings"  # what it is called
    origin: str = ""  # where it comes from, such as the name of a file
    description: str = ""  # a few sentences about it, if there are any
    by: str = ""  # what the groups are, such as "district"; empty if there are none
    groups: NDArray[np.str_] | None = None  # the group of each row
    unlisted: str = "last"  # how items that a row does not list were read
    columns: dict[str, NDArray[np.str_]] = field(default_factory=dict)  # more that is known of each row, such as ids
    noun: str = "item"  # what is ranked, one of it

    def __post_init__(self) -> None:
        if not len(self.rankings):
            raise RankingError(f"{printable(self.origin or self.title)} holds no rankings")
        if self.groups is not None and len(self.groups) != len(self.rankings):
            raise RankingError(
                f"there are {len(self.groups)} groups for {len(self.rankings)} rankings; give one for each"
            )

    @property
    def nouns(self) -> str:
        """What is ranked, several of it."""
        return several(self.noun)

    @cached_property
    def named_groups(self) -> tuple[tuple[str, ...], IntArray]:
        """The groups as they are shown, in natural order, and the number of the group of each row."""
        if self.groups is None:
            return (), np.zeros(len(self.rankings), dtype=np.int64)
        different, codes = np.unique(self.groups, return_inverse=True)
        names, numbers = numbered_groups(np.array([printable(name) or NO_NAME for name in different.tolist()]))
        return names, numbers[codes.ravel()]

    @cached_property
    def approvals(self) -> bool:
        """Whether the rankings are approvals."""
        return are_approvals(self.rankings)

    @property
    def reading(self) -> str:
        """How unlisted items were read, in words."""
        if isinstance(self.rankings, Preferences):
            return "of items that no pair relates, directly or through others, nothing is known"
        if self.rankings.is_full():
            return "every ranking is full"
        if self.unlisted == "free":
            return f"{self.nouns} that a row does not list may stand anywhere (--unlisted free)"
        return f"{self.nouns} that a row does not list share the last place (--unlisted last)"


def are_approvals(rankings: Data) -> bool:
    """Say whether voters only tell of which items they approve, some of several: all others share the last place."""
    if isinstance(rankings, Preferences) or rankings.n_items < 3:
        return False
    ranks = rankings.ranks
    known = (ranks.max(axis=1) <= 1) & (ranks.min(axis=1) == 0)
    divided = ranks.max(axis=1) == 1
    return bool(known.all() and ((ranks == 0).sum(axis=1) > 1)[divided].any())


def several(noun: str) -> str:
    """Return the plural of a noun.

    Examples
    --------
    >>> several("candidate"), several("city"), several("dish")
    ('candidates', 'cities', 'dishes')
    """
    if noun.endswith("y") and noun[-2:-1] not in set("aeiou"):
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "z", "ch", "sh")) else "s")


def guess_noun(title: str, file_format: str) -> str:
    """Return what is probably ranked, by what a file says of itself.

    Examples
    --------
    >>> guess_noun("2006 Burlington Mayoral Election", "PrefLib"), guess_noun("Sushi", "PrefLib")
    ('candidate', 'item')
    """
    said = f"{title} {file_format}".casefold()
    return "candidate" if any(word in said for word in ELECTIONS) else "item"

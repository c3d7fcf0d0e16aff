"""What a report is about: rankings, what they are called, and the group of each row if that is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import IntArray
from rankernel._utils.checks import printable
from rankernel.data import Data, group_codes
from rankernel.errors import RankingError
from rankernel.preferences import Preferences
from rankernel.reports.standing import are_approvals, says_which
from rankernel.reports.wording import Wording

NO_NAME = "(none)"  # stands for a group whose name is empty


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
    voter: str = "voter"  # who ranks, one of them
    approve_all: int | None = None  # of approvals: how many voters approve of all items, if that is known

    def __post_init__(self) -> None:
        if not len(self.rankings):
            raise RankingError(f"{printable(self.origin or self.title)} holds no rankings")
        if self.groups is not None and len(self.groups) != len(self.rankings):
            raise RankingError(
                f"there are {len(self.groups)} groups for {len(self.rankings)} rankings; give one for each"
            )

    @cached_property
    def named_groups(self) -> tuple[tuple[str, ...], IntArray]:
        """The groups as they are shown, in natural order, and the number of the group of each row."""
        if self.groups is None:
            return (), np.zeros(len(self.rankings), dtype=np.int64)
        different, codes = np.unique(self.groups, return_inverse=True)
        names, numbers = group_codes(np.array([printable(name) or NO_NAME for name in different.tolist()]))
        return names, numbers[codes.ravel()]

    @cached_property
    def words(self) -> Wording:
        """What things are called."""
        return Wording(self.noun, self.voter, are_approvals(self.rankings))

    @property
    def approving(self) -> float | None:
        """Of approvals, the share of those who approve of all among those who put no item before another; else None.

        Where it is not known they are taken to approve of none.
        """
        if not self.words.approvals:
            return None
        silent = int(self.rankings.counts[~says_which(self.rankings)].sum())
        return min((self.approve_all or 0) / max(silent, 1), 1.0)

    @property
    def reading(self) -> str:
        """How unlisted items were read, in words."""
        if isinstance(self.rankings, Preferences):
            return "of items that no pair relates, directly or through others, nothing is known"
        if self.rankings.is_full():
            return "every ranking is full"
        if self.unlisted == "free":
            return f"{self.words.items} that a row does not list may stand anywhere (--unlisted free)"
        return f"{self.words.items} that a row does not list share the last place (--unlisted last)"

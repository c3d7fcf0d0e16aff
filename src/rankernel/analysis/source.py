"""What a report is about: rankings, what they are called, and the group of each row if that is known."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rankernel.data import Data
from rankernel.encoding import printable
from rankernel.errors import RankingError
from rankernel.preferences import Preferences


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

    def __post_init__(self) -> None:
        if not len(self.rankings):
            raise RankingError(f"{printable(self.origin or self.title)} holds no rankings")
        if self.groups is not None and len(self.groups) != len(self.rankings):
            raise RankingError(
                f"there are {len(self.groups)} groups for {len(self.rankings)} rankings; give one for each"
            )

    @property
    def reading(self) -> str:
        """How unlisted items were read, in words."""
        if isinstance(self.rankings, Preferences):
            return "of items that no pair relates, directly or through others, nothing is known"
        if self.rankings.is_full():
            return "every ranking is full"
        if self.unlisted == "free":
            return "items that a row does not list may stand anywhere (--unlisted free)"
        return "items that a row does not list share the last place (--unlisted last)"

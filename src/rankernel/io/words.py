"""Words that stand in the place of a name and mean that nothing was marked, or too much: all of them, in this one list.

Some can be nothing else: *undervote*, *(blank)*, the *NA* and *NaN* of programs, spelt as these write them. Others may
be names as well (*Blank*, *Skip*, *Na*); these count as nothing only where no ballot ranks them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import IntArray
from rankernel._utils.checks import printable
from rankernel.errors import RankingError

# In any spelling.
NOTHING_WORDS = """
- -- — . skipped undervote undervoted under_vote undervotes exhausted (blank) [blank] (none) (skipped) (undervote) n/a
#n/a <na> no_vote novote not_ranked unranked no_rank no_preference no_selection left_blank
"""
# In exactly this spelling, which programs use for a missing value.
PROGRAM_WORDS = "NA NaN nan NULL null None none <NA>"
# In any other spelling these may be names.
DOUBTFUL_WORDS = "na nan null none nil blank skip empty"
OVERVOTE_WORDS = "overvote overvoted over_vote overvotes (overvote)"


def listed(words: str) -> frozenset[str]:
    """Return the words of a list, their blanks written as such."""
    return frozenset(word.replace("_", " ") for word in words.split())


NOTHING, PROGRAMS, DOUBTFUL, OVERVOTES = map(listed, (NOTHING_WORDS, PROGRAM_WORDS, DOUBTFUL_WORDS, OVERVOTE_WORDS))


@dataclass(frozen=True)
class Words:
    """What cells mean that are no names: what was said of them, and the items, which are never anything else."""

    items: frozenset[str] = frozenset()
    more: frozenset[str] = frozenset()

    @classmethod
    def given(cls, items: Iterable[str] | None, nothing: Iterable[str]) -> Words:
        """Build from the items, if they are known, and from more words that mean nothing."""
        more = frozenset([nothing] if isinstance(nothing, str) else nothing)
        both = sorted(more & frozenset(items or ()))
        if both:
            raise RankingError(f"{printable(both[0])!r} is among the items and among the words that mean nothing")
        return cls(frozenset(items or ()), more)

    def is_nothing(self, cell: str) -> bool:
        """Say whether a cell surely says that nothing was marked."""
        if cell in self.items:
            return False
        return not cell or cell in self.more or cell in PROGRAMS or spelt(cell) in NOTHING

    def is_doubtful(self, cell: str) -> bool:
        """Say whether a cell may say that nothing was marked, or be a name."""
        return cell not in self.items and not self.is_nothing(cell) and cell.lower() in DOUBTFUL

    def is_overvote(self, cell: str) -> bool:
        """Say whether a cell only states that it is overvoted."""
        return cell not in self.items and spelt(cell) in OVERVOTES


def spelt(cell: str) -> str:
    """Return a cell in small letters, with one blank between its words."""
    return " ".join(cell.lower().replace("_", " ").split())


def names_among(unreliable: Sequence[int], codes: NDArray[np.int32], is_name: NDArray[np.bool_]) -> dict[int, int]:
    """Return which unreliable cells are ranked as names, and a row that shows it.

    A cell that stands before a name, once in its row, ranks something; one that stands twice in a row marks nothing.
    What does both is left to the caller: it is in the answer with the complement of the row that shows the second.
    """
    found: dict[int, int] = {}
    last_name = last_true(is_name[codes])
    for cell in unreliable:
        here = codes == cell
        times = here.sum(axis=1)
        ranked = (times == 1) & (here.argmax(axis=1) < last_name)
        if ranked.any():
            found[cell] = ~int(np.argmax(times > 1)) if (times > 1).any() else int(np.argmax(ranked))
    return found


def last_true(mask: NDArray[np.bool_]) -> IntArray:
    """Return the last place in each row that is true, -1 where none is."""
    places = np.where(mask, np.arange(mask.shape[1]), -1)
    return np.asarray(places.max(axis=1, initial=-1), dtype=np.int64)

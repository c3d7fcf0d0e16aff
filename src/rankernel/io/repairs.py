"""How often ballots had to be mended while they were read, and how to say so."""

from __future__ import annotations

from dataclasses import dataclass

from rankernel._utils.checks import printable


@dataclass(frozen=True)
class Repairs:
    """How often ballots had to be mended: in cells and rows of the file, however many voters a row stands for.

    Attributes
    ----------
    skipped : int
        Skipped cells with a marked one behind them.
    repeated : int
        Candidates named again.
    overvoted : int
        Cells with more than one candidate.
    blank : int
        Rows in which nothing is listed, or nothing was left.
    kept_blank : bool
        Whether these rows stayed.
    words : tuple of (str, int)
        Words that were read as "nothing was marked", and in how many cells they stand.
    merged : tuple of (str, str)
        Names that were read as another one, from which they differ in case or blanks only.

    Examples
    --------
    >>> bool(Repairs()), bool(Repairs(skipped=2))
    (False, True)
    >>> print(Repairs(skipped=2, blank=1, words=(("undervote", 3),)))
    2 skipped cells, 1 blank ballot left out, 'undervote' read as nothing (3 cells)
    """

    skipped: int = 0
    repeated: int = 0
    overvoted: int = 0
    blank: int = 0
    kept_blank: bool = False
    words: tuple[tuple[str, int], ...] = ()
    merged: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.skipped or self.repeated or self.overvoted or self.blank or self.words or self.merged)

    def __str__(self) -> str:
        counted = [
            (self.skipped, "skipped cell", ""),
            (self.repeated, "repeated name", ""),
            (self.overvoted, "overvoted cell", ""),
            (self.blank, "blank ballot", " kept" if self.kept_blank else " left out"),
        ]
        parts = [f"{number:,} {what}{'s' * (number != 1)}{then}" for number, what, then in counted if number]
        parts += [f"'{printable(word)}' read as nothing ({n:,} cell{'s' * (n != 1)})" for word, n in self.words]
        parts += [f"'{printable(name)}' read as '{printable(other)}'" for name, other in self.merged]
        return ", ".join(parts) or "nothing"

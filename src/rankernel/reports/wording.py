"""What things are called: who ranks, what is ranked, and what it is to want one more than another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rankernel.reports.phrases import plural

ELECTIONS = ("election", "mayor", "council", "ward", "senate", "leader", "supervisor", "cast vote", "blt", "seats")


@dataclass(frozen=True)
class Wording:
    """The words of a page; approvals are not told as rankings."""

    item: str = "item"  # what is ranked, one of it
    voter: str = "voter"  # who ranks, one of them
    approvals: bool = False  # whether voters only tell of which items they approve

    @property
    def items(self) -> str:
        """What is ranked, several of it."""
        return several(self.item)

    @property
    def voters(self) -> str:
        """Who ranks, several of them."""
        return several(self.voter)

    @property
    def ballot(self) -> str:
        """What one of them says: who is no voter gives no ballot."""
        return "ballot" if self.voter == "voter" else "ranking"

    def count_items(self, number: int) -> str:
        """Return a number of items."""
        return plural(number, self.item, self.items)

    def count_voters(self, number: int) -> str:
        """Return a number of voters."""
        return plural(number, self.voter, self.voters)

    def count_ballots(self, number: int, kind: str = "") -> str:
        """Return a number of ballots, perhaps of a kind such as "different"."""
        return plural(number, f"{kind} {self.ballot}".strip())

    def wants(self, item: str, one: bool = False) -> str:
        """Return what those do who want an item most."""
        if self.approvals:
            return f"approve{'s' * one} of {item}"
        return f"put{'s' * one} {item} first"

    def prefer(self, first: str, second: str) -> str:
        """Return what those do who want one item more than another."""
        return f"approve of {first} and not of {second}" if self.approvals else f"put {first} before {second}"

    @property
    def neither(self) -> str:
        """What those do who are undecided between two items."""
        return "approve of both or of neither" if self.approvals else "put neither before the other"

    @property
    def unit(self) -> str:
        """In what items stand higher or lower."""
        return "percentage points" if self.approvals else "places"

    @property
    def least_shift(self) -> float:
        """What is too little to be shown of it."""
        return 0.5 if self.approvals else 0.05

    def shift(self, value: float) -> str:
        """Return by how much an item stands higher or lower, as a number; a smaller value is higher."""
        return f"{abs(value):.0f}" if self.approvals else f"{abs(value):.1f}"

    def signed_shift(self, value: float) -> str:
        """Return by how much an item stands higher (+) or lower (−)."""
        return f"{'+' if value < 0 else '−'}{self.shift(value)}"

    def shift_words(self, value: float) -> str:
        """Return by how much an item stands higher or lower, in words.

        Examples
        --------
        >>> Wording().shift_words(-1.0), Wording(approvals=True).shift_words(34.2)
        ('1.0 higher', '34 lower')
        """
        return f"{self.shift(value)} {'higher' if value < 0 else 'lower'}"


def with_article(noun: str) -> str:
    """Return a noun behind "a" or "an".

    Examples
    --------
    >>> with_article("item"), with_article("candidate")
    ('an item', 'a candidate')
    """
    return f"{'an' if noun[:1].casefold() in set('aeiou') else 'a'} {noun}"


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


def guess_noun(title: str, file_format: str, items: Iterable[str] = ()) -> str:
    """Return what is probably ranked, by what a file says of itself and of its items.

    Examples
    --------
    >>> guess_noun("2006 Burlington Mayoral Election", "PrefLib"), guess_noun("Sushi", "PrefLib")
    ('candidate', 'item')
    >>> guess_noun("APA", "PrefLib", ["Candidate 1", "Candidate 2"])
    'candidate'
    """
    said = f"{title} {file_format}".casefold()
    named = [item.casefold().startswith("candidate") for item in items]
    return "candidate" if any(word in said for word in ELECTIONS) or (named and all(named)) else "item"

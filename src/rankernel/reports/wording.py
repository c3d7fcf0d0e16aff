"""The nouns of a report, and the sentences of ``templates/sentences.toml`` filled with them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from rankernel.reports.text import plural


@cache
def sentences() -> dict[str, dict[str, str]]:
    """Return the sentence templates of the page: those for rankings, for approval ballots and for the script."""
    path = files("rankernel.reports").joinpath("templates", "sentences.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Wording:
    """The nouns of a report; approval ballots have some sentences of their own.

    Examples
    --------
    >>> Wording("film", "judge").say("data", n_voters="3 judges", n_items="2 films")
    '3 judges ranked 2 films.'
    """

    item: str = "item"  # what is ranked, in the singular
    voter: str = "voter"  # who ranks, in the singular
    approvals: bool = False  # whether the data are approval ballots

    def say(self, name: str, /, **fields: Any) -> str:
        """Return a sentence with its fields filled in."""
        templates = sentences()
        template = (templates["approvals"].get(name) if self.approvals else None) or templates["rankings"][name]
        return template.format_map({**self.nouns, **fields})

    @cached_property
    def nouns(self) -> dict[str, str]:
        """The fields that every sentence may use."""
        return {
            "item": self.item,
            "items": self.items,
            "an_item": with_article(self.item),
            "voter": self.voter,
            "voters": self.voters,
            "ballot": self.ballot,
            "ballots": self.ballots,
            "a_ballot": with_article(self.ballot),
            "Ballots": self.ballots.capitalize(),
            "unit": self.unit,
        }

    @property
    def items(self) -> str:
        """The plural of the items' noun."""
        return pluralized(self.item)

    @property
    def voters(self) -> str:
        """The plural of the voters' noun."""
        return pluralized(self.voter)

    @property
    def ballot(self) -> str:
        """The noun for one row of the data: "ballot" for voters, "ranking" otherwise."""
        return "ballot" if self.voter == "voter" else "ranking"

    @property
    def ballots(self) -> str:
        """The plural of the noun for one row."""
        return f"{self.ballot}s"

    @property
    def unit(self) -> str:
        """The unit of differences between groups of voters in where an item stands."""
        return "percentage points" if self.approvals else "positions"

    @property
    def min_shift(self) -> float:
        """The smallest difference that is shown, in :attr:`unit`."""
        return 0.5 if self.approvals else 0.05

    def count_items(self, number: int) -> str:
        """Return a number of items."""
        return plural(number, self.item, self.items)

    def count_voters(self, number: int) -> str:
        """Return a number of voters."""
        return plural(number, self.voter, self.voters)

    def count_ballots(self, number: int, kind: str = "") -> str:
        """Return a number of ballots, with an adjective such as "different"."""
        return plural(number, f"{kind} {self.ballot}".strip())

    def shift_size(self, shift: float) -> str:
        """Return the size of a difference in position or approval."""
        return f"{abs(shift):.0f}" if self.approvals else f"{abs(shift):.1f}"

    def signed_shift(self, shift: float) -> str:
        """Return a difference with its sign: + for a better (smaller) mean position or more approvals.

        Examples
        --------
        >>> Wording().signed_shift(-1.0), Wording(approvals=True).signed_shift(34.2)
        ('+1.0', '−34')
        """
        return f"{'+' if shift < 0 else '−'}{self.shift_size(shift)}"


def with_article(noun: str) -> str:
    """Return a noun with its indefinite article.

    Examples
    --------
    >>> with_article("item"), with_article("candidate")
    ('an item', 'a candidate')
    """
    return f"{'an' if noun[:1].casefold() in set('aeiou') else 'a'} {noun}"


def pluralized(noun: str) -> str:
    """Return the plural of a noun.

    Examples
    --------
    >>> pluralized("candidate"), pluralized("city"), pluralized("dish")
    ('candidates', 'cities', 'dishes')
    """
    if noun.endswith("y") and noun[-2:-1] not in set("aeiou"):
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "z", "ch", "sh")) else "s")

"""Sentences of the page, and numbers, ballots and names as short text for the page and the command line."""

from __future__ import annotations

import math
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any

from rankernel._utils.checks import SMALLEST_PVALUE
from rankernel._utils.checks import plural as plural
from rankernel.data import Data
from rankernel.preferences import Preferences
from rankernel.rankings import FREE

Fits = Callable[[str], bool]

MAX_TIED_NAMES = 4  # in the text of a ballot
SHORT_WORD = 4  # characters of a last word that is not cut when a name is shortened
NARROW_CHARACTERS = set(" .,:;'|!ijlI()[]-/ftr")
WIDE_CHARACTERS = set("mwMWOQGCDNHU@%>=<…—–&")


# ---------------------------------------------------------------------- numbers


def percent(share: float) -> str:
    """Return a share as a whole percentage."""
    if 0 < share < 0.01:
        return "<1%"
    return ">99%" if 0.99 < share < 1 else f"{share:.0%}"


def signed(number: float, digits: int) -> str:
    """Return a number with a minus sign instead of a hyphen."""
    return f"{number:.{digits}f}".replace("-", "−")


def pvalue_text(p: float, n_permutations: int, from_moments: bool = False, at_bound: bool | None = None) -> str:
    """Return a p-value; the lower bound 1 / (B + 1) of a permutation p-value, and an underflow, are written as bounds.

    ``at_bound`` states whether the p-value, or the one that was corrected, is as small as it can be; by default a
    permutation p-value is not corrected, and one from moments is not at its bound.
    """
    if from_moments:
        bound = f"p < {SMALLEST_PVALUE:g}" if p < SMALLEST_PVALUE else f"p {'≤' if at_bound else '='} {p:.2g}"
        return f"{bound} (Pearson type III)"
    if at_bound if at_bound is not None else p <= (1 + 1e-9) / (1 + n_permutations):
        return f"p ≤ {p:.2g} ({plural(n_permutations, 'permutation')})"
    return f"p = {p:.2g}"


def effect_text(effect: float, interval: Sequence[float] | None, words: str = "95% interval ") -> str:
    """Return an effect, the share of the dispersion between groups, with its 95% interval."""
    known = interval is not None and all(map(math.isfinite, interval))
    return f"{max(effect, 0.0):.1%}" + (" ({}{:.1%} to {:.1%})".format(words, *interval or ()) if known else "")


def round_numbers(text: str) -> str:
    """Return a text with its decimal numbers rounded to four digits."""
    return re.sub(r"\d+\.\d{5,}(?:e-?\d+)?", lambda match: f"{float(match[0]):.4g}", text)


# ---------------------------------------------------------------------- lists and ballots


def join_names(names: Sequence[str], limit: int) -> str:
    """Return at most ``limit`` names as an enumeration, with the number of omitted ones."""
    shown = list(names[:limit]) + ([f"{len(names) - limit:,} more"] if len(names) > limit else [])
    if len(shown) > 1 and any("," in name for name in shown):
        return "; ".join([*shown[:-1], f"and {shown[-1]}"])
    return " and ".join([*([", ".join(shown[:-1])] if shown[:-1] else []), *shown[-1:]])


def ballot_text(ballot: Data, limit: int = 4, length: int = 24, approvals: bool = False) -> str:
    """Return the first positions of a ballot, best first, or its first pairs; a shared last position is omitted."""
    names = short_names(ballot.items, length)
    if isinstance(ballot, Preferences):
        short = dict(zip(ballot.items, names, strict=True))
        pairs = ballot.to_pairs()[0]
        written = [f"{short[better]} > {short[worse]}" for better, worse in pairs[:limit]]
        return ", ".join(written + ["…"] * (len(pairs) > limit)) or "no preference"
    ranks = ballot.ranks[0].tolist()
    if approvals:
        approved = [name for name, rank in zip(names, ranks, strict=True) if rank == 0]
        return "no preference" if len(approved) in (0, len(ranks)) else f"approves {join_names(approved, limit)}"
    buckets: list[list[str]] = [[] for _ in range(max(ranks) + 1)]
    for name, rank in zip(names, ranks, strict=True):
        if rank != FREE:
            buckets[rank].append(name)
    if len(buckets) > 1 and len(buckets[-1]) > 1 and FREE not in ranks:
        buckets.pop()
    if not buckets or (len(buckets) == 1 and len(buckets[0]) == len(ranks) > 1):
        return "no preference"
    ties = [
        bucket[:MAX_TIED_NAMES] + [f"{len(bucket) - MAX_TIED_NAMES} more"] * (len(bucket) > MAX_TIED_NAMES)
        for bucket in buckets[:limit]
    ]
    return " > ".join([*map(" = ".join, ties), *["…"] * (len(buckets) > limit)])


# ---------------------------------------------------------------------- shortened names


@lru_cache(maxsize=256)
def short_names(names: tuple[str, ...], length: int) -> tuple[str, ...]:
    """Return names of at most ``length`` characters; names that differ stay different."""
    return distinct_names(names, lambda text: len(text) <= length)


def short_name(name: str, length: int) -> str:
    """Return a name of at most ``length`` characters."""
    return shortened(name, lambda text: len(text) <= length)


def distinct_names(names: Sequence[str], fits: Fits) -> tuple[str, ...]:
    """Return names that fit; those that would become equal keep their end or, if that is equal too, get a number."""
    shown = {name: shortened(name, fits) for name in names}
    for name in ambiguous(shown):
        shown[name] = next(filter(fits, endings(name)), shown[name])
    for number, name in enumerate(ambiguous(shown), start=1):
        shown[name] = shortened(name, fits, f" {number}")
    return tuple(shown[name] for name in names)


def ambiguous(shown: dict[str, str]) -> list[str]:
    """Return the names that are shown as the text of another name."""
    n_names = Counter(shown.values())
    return [name for name, text in shown.items() if n_names[text] > 1]


def shortened(name: str, fits: Fits, suffix: str | None = None) -> str:
    """Return the longest beginning of a name that fits with an ellipsis and the suffix (default: a short last word)."""
    if suffix is None:
        if fits(name):
            return name
        start, blank, last = name.rpartition(" ")
        suffix = blank + last if start and len(last) <= SHORT_WORD and " > " not in name else ""
    for length in range(len(name) - 1, 0, -1):
        text = name[:length].rstrip(" >…") + "…" + suffix
        if fits(text):
            return text
    return "…"


def endings(name: str) -> Iterator[str]:
    """Yield the ends of a name, the longest first: whole words, then parts of the last word."""
    words = name.split(" ")
    for start in range(1, len(words)):
        yield "… " + " ".join(words[start:])
    for start in range(1, len(words[-1])):
        yield "…" + words[-1][start:]


# ---------------------------------------------------------------------- widths in pictures


def text_width(text: str, size: float = 13.0) -> float:
    """Return an upper estimate of the width of a text, as the reader's font is not known."""
    return size * sum(map(character_width, text))


@cache
def character_width(character: str) -> float:
    """Return the width of a character as a fraction of the font size."""
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    if character in NARROW_CHARACTERS:
        return 0.42
    if character in WIDE_CHARACTERS:
        return 1.0 if character in "mW@%…" else 0.88
    return 0.72 if character.isupper() else 0.65


def fit_names(names: Sequence[str], width: float, size: float = 13.0) -> tuple[str, ...]:
    """Return names shortened to a width; names that differ stay different."""
    return distinct_names(names, lambda shown: text_width(shown, size) <= width)


def wrap_names(texts: list[str], width: float, n_lines: int) -> list[list[str]]:
    """Return texts in at most ``n_lines`` lines each, shortened so that texts that differ stay different."""
    shown = distinct_names(texts, lambda text: len(wrapped(text, width)) <= n_lines)
    return [wrapped(text, width) for text in shown]


def wrapped(text: str, width: float) -> list[str]:
    """Return a text divided at blanks into lines of at most a width."""
    lines: list[str] = []
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(shortened(word, lambda shown: text_width(shown) <= width))
    return lines


# ---------------------------------------------------------------------- sentences


@cache
def sentences() -> dict[str, dict[str, str]]:
    """Return the sentence templates of the page: those for rankings, for approval ballots and for the script."""
    path = files("rankernel.reports").joinpath("templates", "sentences.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Wording:
    """The nouns of a report; approval ballots have some sentences of their own."""

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
        ballot = "ballot" if self.voter == "voter" else "ranking"  # one row of the data
        return {
            "item": self.item,
            "items": pluralized(self.item),
            "an_item": with_article(self.item),
            "voter": self.voter,
            "voters": pluralized(self.voter),
            "ballot": ballot,
            "ballots": f"{ballot}s",
            "a_ballot": with_article(ballot),
            "Ballots": f"{ballot.capitalize()}s",
            "unit": "percentage points" if self.approvals else "positions",  # of differences in where an item stands
        }

    @property
    def min_shift(self) -> float:
        """The smallest difference in where an item stands that is shown."""
        return 0.5 if self.approvals else 0.05

    def count_items(self, number: int) -> str:
        """Return a number of items."""
        return plural(number, self.item, self.nouns["items"])

    def count_voters(self, number: int) -> str:
        """Return a number of voters."""
        return plural(number, self.voter, self.nouns["voters"])

    def count_ballots(self, number: int, kind: str = "") -> str:
        """Return a number of ballots, with an adjective such as "different"."""
        return plural(number, f"{kind} {self.nouns['ballot']}".strip())

    def signed_shift(self, shift: float) -> str:
        """Return a difference with its sign: + for a better (smaller) mean position or more approvals."""
        return f"{'+' if shift < 0 else '−'}{abs(shift):.{0 if self.approvals else 1}f}"


def with_article(noun: str) -> str:
    """Return a noun with its indefinite article."""
    return f"{'an' if noun[:1].casefold() in set('aeiou') else 'a'} {noun}"


def pluralized(noun: str) -> str:
    """Return the plural of a noun."""
    if noun.endswith("y") and noun[-2:-1] not in set("aeiou"):
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "z", "ch", "sh")) else "s")

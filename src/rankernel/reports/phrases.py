"""Numbers and rankings in words, for pages and screens."""

from __future__ import annotations

import re

from rankernel.data import Data
from rankernel.encoding import FREE
from rankernel.preferences import Preferences
from rankernel.reports.short_names import short_names


def percent(share: float) -> str:
    """Return a share as a whole number of percent.

    Examples
    --------
    >>> percent(0.256), percent(0.004), percent(0.9996), percent(0.0)
    ('26%', '<1%', '>99%', '0%')
    """
    if 0 < share < 0.01:
        return "<1%"
    return ">99%" if 0.99 < share < 1 else f"{share:.0%}"


def plural(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> plural(1, "voter"), plural(1234, "voter")
    ('1 voter', '1,234 voters')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def listing(names: list[str], most: int, between: str = ", ") -> str:
    """Return some names in a sentence, the last after "and" where commas are between them.

    Examples
    --------
    >>> listing(["a", "b", "c"], 6), listing(["a", "b", "c"], 2), listing(["a", "b"], 6, " > ")
    ('a, b and c', 'a, b and 1 more', 'a > b')
    """
    if between != ", ":
        return between.join(names[:most])
    shown = names[:most] + ([f"{len(names) - most:,} more"] if len(names) > most else [])
    return " and ".join([*([between.join(shown[:-1])] if shown[:-1] else []), *shown[-1:]])


def pvalue_text(p: float, n_permutations: int, by_tail: bool = False) -> str:
    """Return a p-value with the digits it has; the smallest that permutations can give is a bound.

    Examples
    --------
    >>> pvalue_text(0.001, 999), pvalue_text(0.0432, 9999), pvalue_text(0.00002, 999, by_tail=True)
    ('p ≤ 0.001', 'p = 0.043', 'p = 2e-05')
    """
    least = 1 / (1 + n_permutations)
    return f"p ≤ {least:.2g}" if p <= least * (1 + 1e-9) and not by_tail else f"p = {p:.2g}"


def ballot_text(ballot: Data, most: int = 4, length: int = 24, approvals: bool = False) -> str:
    """Return the first places of a ballot, best first, or its first pairs; a last place that several share is left out.

    Examples
    --------
    >>> from rankernel import Rankings
    >>> ballot_text(Rankings.from_orders([["a", {"b", "c"}, "d"]], items=list("abcdef")))
    'a > b = c > d'
    >>> ballot_text(Rankings.from_orders([[{"b", "c"}]], items=list("abcdef")), approvals=True)
    'approves b and c'
    """
    names = short_names(ballot.items, length)
    if isinstance(ballot, Preferences):
        short = dict(zip(ballot.items, names, strict=True))
        pairs = ballot.to_pairs()[0]
        said = [f"{short[better]} > {short[worse]}" for better, worse in pairs[:most]]
        return ", ".join(said + ["…"] * (len(pairs) > most)) or "no preference"
    ranks = ballot.ranks[0].tolist()
    if approvals:
        named = [name for name, rank in zip(names, ranks, strict=True) if rank == 0]
        return "no preference" if len(named) in (0, len(ranks)) else f"approves {listing(named, most)}"
    buckets: list[list[str]] = [[] for _ in range(max(ranks) + 1)]
    for name, rank in zip(names, ranks, strict=True):
        if rank != FREE:
            buckets[rank].append(name)
    if len(buckets) > 1 and len(buckets[-1]) > 1 and FREE not in ranks:
        buckets.pop()
    if not buckets or (len(buckets) == 1 and len(buckets[0]) == len(ranks) > 1):
        return "no preference"
    shown = [level(bucket) for bucket in buckets[:most]] + ["…"] * (len(buckets) > most)
    return " > ".join(shown)


def level(names: list[str]) -> str:
    """Return the names of tied items."""
    return " = ".join(names[:4]) + (f" = {len(names) - 4} more" if len(names) > 4 else "")


def short_numbers(words: str) -> str:
    """Return a text whose decimal numbers have four digits.

    Examples
    --------
    >>> short_numbers("Mallows(nu=0.06666666666666667)")
    'Mallows(nu=0.06667)'
    """
    return re.sub(r"\d+\.\d{5,}(?:e-?\d+)?", lambda found: f"{float(found[0]):.4g}", words)

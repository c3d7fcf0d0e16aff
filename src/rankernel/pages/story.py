"""Who is ahead, in words: what is so among those who say, both numbers and the undecided."""

from __future__ import annotations

import numpy as np

from rankernel.analysis.clustering import approved_counts
from rankernel.analysis.phrases import listing, percent, plural
from rankernel.analysis.summary import Summary

MOST_NAMED = 6  # items in a sentence


def lede(study: Summary) -> str:
    """Return who is ahead, in a few sentences."""
    rankings, source = study.ballots.rankings, study.source
    verb = "approved of some of" if source.approvals else "compared" if hasattr(rankings, "users") else "ranked"
    words = f"{plural(rankings.n_voters, 'voter')} {verb} {plural(rankings.n_items, source.noun, source.nouns)}. "
    if rankings.n_items < 2:
        return words
    return words + winner_text(study)


def winner_text(study: Summary) -> str:
    """Return who beats all others, or the circle, or who are level."""
    items, found, source = study.ballots.rankings.items, study.majorities, study.source
    if not found.ahead.any():
        return f"No voter puts one {source.noun} before another."
    if found.winner is not None:
        rivals = np.delete(np.arange(len(items)), found.winner)
        margins = found.ahead[found.winner, rivals] - found.ahead[rivals, found.winner]
        closest = int(rivals[np.argmin(margins)])
        each = "the other one" if len(items) == 2 else f"every other {source.noun}"
        closely = "" if len(items) == 2 else ", and that is its closest call"
        duel = duel_text(study, found.winner, closest)
        return f"Among those who say, {items[found.winner]} beats {each}: {duel}{closely}."
    circle = found.cycle()
    if circle:
        turns = [f"{items[a]} beats {items[b]}" for a, b in zip(circle, [*circle[1:], circle[0]], strict=True)]
        best = len(found.smith_set())
        of = f" Each of {best} {source.nouns} at the top loses to another one of them." if best > len(circle) else ""
        return f"No {source.noun} beats every other one: majorities run in a circle. {listing(turns, MOST_NAMED)}.{of}"
    level = [items[item] for item in found.smith_set().tolist()]
    return f"No {source.noun} beats every other one: {listing(level, MOST_NAMED)} are level."


def duel_text(study: Summary, first: int, second: int) -> str:
    """Return how two items stand to each other: both numbers, and the undecided."""
    items, found = study.ballots.rankings.items, study.majorities
    total = found.n_voters
    ahead, behind = int(found.ahead[first, second]), int(found.ahead[second, first])
    undecided = total - ahead - behind
    neither = f", {fine_percent(undecided / total)} put neither before the other" if undecided else ""
    return (
        f"{fine_percent(ahead / total)} put {items[first]} before {items[second]}, {fine_percent(behind / total)} the "
        f"reverse{neither}"
    )


def fine_percent(share: float) -> str:
    """Return a share with one decimal, as close calls need it."""
    return f"{100 * share:.1f}%"


def first_text(study: Summary) -> str | None:
    """Return who has most first choices, or most approvals, and who comes next."""
    items, shares = study.ballots.rankings.items, shown_shares(study)
    if not shares.any() or len(items) < 2:
        return None
    first, second = np.argsort(-shares, kind="stable")[:2].tolist()
    if not shares[second]:
        return f"Nobody {'approves of' if study.source.approvals else 'puts first'} any other than {items[first]}."
    if study.source.approvals:
        return (
            f"Most approved of: {items[first]} by {percent(float(shares[first]))} of the voters, then {items[second]} "
            f"by {percent(float(shares[second]))}."
        )
    return (
        f"Most first choices: {items[first]} with {percent(float(shares[first]))} of those who have one, then "
        f"{items[second]} with {percent(float(shares[second]))}."
    )


def shown_shares(study: Summary) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the share of voters who put each item first or, of approvals, who approve of it."""
    if not study.source.approvals:
        return study.firsts
    rankings = study.ballots.rankings
    return approved_counts(rankings) / max(int(rankings.counts[study.says].sum()), 1)


def order_text(study: Summary) -> str | None:
    """Return the order that contradicts voters least, and how close the next best comes."""
    items, best = study.ballots.rankings.items, study.best_order
    if best.next_order is None or not study.majorities.ahead.any():
        return None
    named = listing([items[item] for item in best.order[:MOST_NAMED].tolist()], MOST_NAMED, between=" > ")
    more = f" > {plural(len(items) - MOST_NAMED, 'more', 'more')}" if len(items) > MOST_NAMED else ""
    proven = "" if best.exact else " (a good one; that it is the best is not proven)"
    words = (
        f"The order that contradicts voters least is {named}{more}{proven}: of all that voters say of two "
        f"{study.source.nouns} it contradicts {percent(best.contradicted)}. "
    )
    if best.excess == 0:
        return f"{words}Another order does just as well: {difference_text(study)}."
    times = plural(best.excess, "more statement of a voter", "more statements of voters")
    return f"{words}The next best, {difference_text(study)}, contradicts {times}."


def difference_text(study: Summary) -> str:
    """Return how the next best order differs from the best."""
    best, items = study.best_order, study.ballots.rankings.items
    other = best.order if best.next_order is None else best.next_order
    places = np.flatnonzero(best.order != other)
    if len(places) == 2:
        return f"with {items[best.order[places[0]]]} and {items[best.order[places[1]]]} swapped"
    run = slice(int(places[0]), int(places[-1]) + 1)
    named = listing([items[item] for item in other[run].tolist()], MOST_NAMED, between=" > ")
    return f"with {named} from place {int(places[0]) + 1} on"

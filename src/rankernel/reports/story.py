"""Who is ahead, in words: what is so among those who say, both numbers and the undecided."""

from __future__ import annotations

import numpy as np

from rankernel._utils.arrays import Mask
from rankernel.reports.phrases import ballot_text, listing, percent, plural
from rankernel.reports.summary import Summary
from rankernel.reports.wording import with_article

MOST_NAMED = 6  # items in a sentence


def lede(study: Summary) -> str:
    """Return who is ahead, in a few sentences."""
    rankings, words = study.ballots.rankings, study.words
    verb = "approved of some of" if words.approvals else "compared" if hasattr(rankings, "users") else "ranked"
    who = f"{words.count_voters(rankings.n_voters)} {verb} {words.count_items(rankings.n_items)}"
    if rankings.n_items < 2:
        return f"{who}."
    if rankings.n_voters == 1:
        return f"{who}: {ballot_text(rankings, most=MOST_NAMED, length=60, approvals=words.approvals)}."
    return f"{who}. {winner_text(study)}"


def winner_text(study: Summary) -> str:
    """Return who beats all others, or who loses to none, or the circle."""
    items, found, words = study.ballots.rankings.items, study.majorities, study.words
    if not found.ahead.any():
        return f"No {words.voter} puts one {words.item} before another."
    if found.winner is not None:
        rivals = np.delete(np.arange(len(items)), found.winner)
        margins = found.ahead[found.winner, rivals] - found.ahead[rivals, found.winner]
        closest = int(rivals[np.argmin(margins)])
        each = "the other one" if len(items) == 2 else f"every other {words.item}"
        closely = "" if len(items) == 2 else ", and that is its closest call"
        duel = duel_text(study, found.winner, closest)
        return f"Among those who say, {items[found.winner]} beats {each}: {duel}{closely}."
    nobody = f"No {words.item} beats every other one"
    return f"{nobody}{unbeaten_text(study) if len(found.unbeaten) else circle_text(study)}"


def unbeaten_text(study: Summary) -> str:
    """Return which items lose to none, and with whom they are level."""
    items, found = study.ballots.rankings.items, study.majorities
    first, *others = found.unbeaten.tolist()
    if others:
        named = listing([items[item] for item in (first, *others)], MOST_NAMED)
        two = "Of the first two, " if len(others) > 1 else ""
        return f", but {named} lose to none and are level with each other. {two}{duel_text(study, first, others[0])}."
    level = found.level_with(first).tolist()
    named = listing([items[item] for item in level], MOST_NAMED)
    return f", but {items[first]} loses to none: it is level with {named}. {duel_text(study, first, level[0])}."


def circle_text(study: Summary) -> str:
    """Return a circle of majorities with its numbers, and how many items are in such circles."""
    items, found, words = study.ballots.rankings.items, study.majorities, study.words
    circle = found.cycle()
    turns = [
        f"{items[a]} beats {items[b]} ({duel_numbers(study, a, b)})"
        for a, b in zip(circle, [*circle[1:], circle[0]], strict=True)
    ]
    n_best = len(found.smith_set())
    each = f"Each of the {n_best:,} {words.items}{' at the top' * (n_best < len(items))} loses to another one of them."
    told = f": majorities run in a circle. {listing(turns, MOST_NAMED)}; in percent of all {words.voters}."
    return f"{told} {each}" if n_best > len(circle) else told


def duel_text(study: Summary, first: int, second: int) -> str:
    """Return how two items stand to each other: both numbers, and the undecided."""
    items, words = study.ballots.rankings.items, study.words
    ahead, behind, undecided = duel_shares(study, first, second)
    neither = f", {fine_percent(undecided)} {words.neither}" if undecided else ""
    prefer = words.prefer(items[first], items[second])
    return f"{fine_percent(ahead)} {prefer}, {fine_percent(behind)} the reverse{neither}"


def duel_numbers(study: Summary, first: int, second: int) -> str:
    """Return the same in numbers alone."""
    ahead, behind, undecided = map(fine_percent, duel_shares(study, first, second))
    return f"{ahead} to {behind}, {undecided} undecided"


def duel_shares(study: Summary, first: int, second: int) -> tuple[float, float, float]:
    """Return the shares of all voters who prefer the first of two items, the second, and neither."""
    found = study.majorities
    ahead, behind = int(found.ahead[first, second]), int(found.ahead[second, first])
    total = found.n_voters
    return ahead / total, behind / total, (total - ahead - behind) / total


def fine_percent(share: float) -> str:
    """Return a share with one decimal, as close calls need it."""
    return f"{100 * share:.1f}%"


def first_text(study: Summary) -> str | None:
    """Return who has most first choices, or most approvals, and who comes next; several where they are level."""
    shares, words = study.shares, study.words
    if not shares.any() or len(shares) < 2:
        return None
    best = np.isclose(shares, shares.max())
    rest = np.where(best, 0.0, shares)
    if best.sum() == 1 and not rest.any():
        nobody = "Nobody approves of any" if words.approvals else "Nobody puts first any"
        return f"{nobody} other than {shared_text(study, best, '')}."
    of = f" of the {words.voters}" if words.approvals else " of those who have one"
    head, by = ("Most approved of", "by") if words.approvals else ("Most first choices", "with")
    told = f"{head}: {shared_text(study, best, by)}{of}"
    return f"{told}, then {shared_text(study, np.isclose(rest, rest.max()), by)}." if rest.any() else f"{told}."


def shared_text(study: Summary, which: Mask, by: str) -> str:
    """Return the names of items, and the share that each of them has."""
    items, places = study.ballots.rankings.items, np.flatnonzero(which)
    named = listing([items[item] for item in places], MOST_NAMED)
    share = f" {by} {percent(float(study.shares[places[0]]))}" if by else ""
    return f"{named}{share}{' each' if share and len(places) > 1 else ''}"


def order_text(study: Summary) -> str | None:
    """Return the order that contradicts voters least, and how close the next best comes."""
    items, best = study.ballots.rankings.items, study.best_order
    if best.next_order is None or not study.majorities.ahead.any():
        return None
    named = listing([items[item] for item in best.order[:MOST_NAMED].tolist()], MOST_NAMED, between=" > ")
    more = f" > {plural(len(items) - MOST_NAMED, 'more', 'more')}" if len(items) > MOST_NAMED else ""
    proven = "" if best.exact else " (a good one; that it is the best is not proven)"
    words = study.words
    told = (
        f"The order that contradicts {words.voters} least is {named}{more}{proven}: of all that {words.voters} say of "
        f"two {words.items} it contradicts {percent(best.contradicted)}. "
    )
    if best.excess == 0:
        return f"{told}Another order does just as well: {difference_text(study)}."
    voter = with_article(words.voter)
    times = plural(best.excess, f"more statement of {voter}", f"more statements of {words.voters}")
    return f"{told}The next best, {difference_text(study)}, contradicts {times}."


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

"""The first section: who is ahead, by first choices, duels and the order that contradicts voters least."""

from __future__ import annotations

from rankernel.reports.draw_bars import MOST_ITEMS as MOST_BARS
from rankernel.reports.draw_bars import NARROW, TOGETHER, WIDE, first_choices
from rankernel.reports.draw_duels import MOST_ITEMS, duels_picture, preference_table
from rankernel.reports.layout import by_size, figure, section
from rankernel.reports.markup import Markup, tag
from rankernel.reports.phrases import percent
from rankernel.reports.short_names import cut
from rankernel.reports.story import first_text, order_text
from rankernel.reports.summary import Summary

KINDS = {
    "full": "full: every {noun} has its place",
    "top-k": "top-k: the first places, the rest tied last",
    "exhaustive": "with ties elsewhere",
    "incomplete": "incomplete: some {nouns} may stand anywhere",
    "partial": "pairs: some {nouns} are compared, of others nothing is known",
}


def ahead_section(study: Summary) -> Markup:
    """Return who is ahead."""
    said = [tag("p", words) for words in (first_text(study), order_text(study)) if words]
    return section("ahead", "Who is ahead", *said, bars_figure(study), kinds_list(study))


def bars_figure(study: Summary) -> Markup:
    """Return the bars of first choices or of approvals."""
    words, n_items = study.words, study.ballots.rankings.n_items
    if words.approvals:
        caption = [f"The share of all {words.voters} who approve of each {words.item}, the most approved first."]
    else:
        beside = f" Beside it the mean place, where tied {words.items} share the mean of theirs."
        told = (
            f"The share of the {words.voters} who put each {words.item} first, of those who put one before another; a "
            "tie for the first place is divided."
        )
        caption = [told, tag("span", beside, class_="wide-only")]
    if n_items > MOST_BARS:
        caption.append(f" Shown are {MOST_BARS} of {n_items:,} {words.items}.")
    silent = silent_text(study)
    bars = by_size(first_choices(study, WIDE)[0], first_choices(study, NARROW)[0], first_choices(study, WIDE, TOGETHER))
    name = "approvals" if words.approvals else "first-choices"
    return figure(name, bars, *caption, f" {silent}" if silent else None)


def silent_text(study: Summary) -> str:
    """Return how many voters put no item before another: of approvals, how many approve of all and of none."""
    rankings, words = study.ballots.rankings, study.words
    number = int(rankings.counts[~study.says].sum())
    if not number:
        return ""

    def share(some: int) -> str:
        return f"{words.count_voters(some)} ({percent(some / rankings.n_voters)})"

    if not words.approvals:
        return f"{share(number)} put no {words.item} before another."
    whole = study.source.approve_all
    if whole is None:
        return (
            f"{share(number)} approve of all {words.items} or of none, which these rankings do not tell; they are "
            "counted as approving of none."
        )
    parts = [f"{share(some)} approve of {what}" for some, what in ((number - whole, "none"), (whole, "all")) if some]
    return f"{', '.join(parts)}."


def kinds_list(study: Summary) -> Markup:
    """Return what the ballots are like, and how the file was read."""
    rankings, words = study.ballots.rankings, study.words
    kinds, total = rankings.kinds(), rankings.n_voters
    voters = {kind: int(rankings.counts[kinds == kind].sum()) for kind in KINDS}
    if words.approvals:
        told = f"Approvals: each {words.voter} names the {words.items} that are approved of, and says no more of them."
        return tag("p", told, class_="note")
    rows = [
        tag(
            "li",
            tag("strong", percent(number / total)),
            f" {KINDS[kind].format(noun=words.item, nouns=words.items)} ({words.count_voters(number)})",
        )
        for kind, number in voters.items()
        if number
    ]
    reading = f"How the file was read: {study.source.reading}."
    return tag("div", tag("ul", *rows, class_="kinds"), tag("p", reading, class_="note"))


def preference_section(study: Summary) -> Markup:
    """Return the matrix of duels."""
    words, n_items = study.words, study.ballots.rankings.n_items
    items, order = study.ballots.rankings.items, study.order
    above = f"those who {words.prefer(f'the {words.item} of the row', 'that of the column')}"
    cells = f"In each cell, in percent of all {words.voters}: {above}."
    if study.majorities.any_undecided:
        cells = (
            f"In each cell, in percent of all {words.voters}: above, {above}; below, those who {words.neither}. "
            "The rest prefer the column."
        )
    caption = (
        f"{cells} Blue: the row wins among those who say; orange: the column does. The {words.items} stand in the "
        f"order that contradicts {words.voters} least."
    )
    a, b = int(order[0]), int(order[1])
    found = study.majorities
    shares = [100 * int(n) / found.n_voters for n in (found.ahead[a, b], found.undecided[a, b], found.ahead[b, a])]
    caption += (
        f" So of {cut(items[a], 40)} and {cut(items[b], 40)}: {shares[0]:.0f} prefer the first, {shares[1]:.0f} "
        f"neither, {shares[2]:.0f} the second."
    )
    if n_items > MOST_ITEMS:
        caption += f" Shown are the first {MOST_ITEMS} of {n_items:,} {words.items}."
    saved = tag("div", duels_picture(study), class_="to-save", hidden="hidden")
    return section(
        "preferences", "Who beats whom", figure("duels", tag("div", preference_table(study), saved), caption)
    )

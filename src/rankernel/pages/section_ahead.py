"""The first section: who is ahead, by first choices, duels and the order that contradicts voters least."""

from __future__ import annotations

from rankernel.analysis.phrases import cut, percent, plural
from rankernel.analysis.summary import Summary
from rankernel.pages.draw_bars import MOST_ITEMS as MOST_BARS
from rankernel.pages.draw_bars import NARROW, WIDE, first_choices
from rankernel.pages.draw_heat import MOST_ITEMS, preference_table
from rankernel.pages.layout import figure, section, two_sizes
from rankernel.pages.markup import Markup, tag
from rankernel.pages.story import first_text, order_text

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
    source, n_items = study.source, study.ballots.rankings.n_items
    if source.approvals:
        caption = f"The share of the voters who approve of each {source.noun}, the most approved first."
    else:
        caption = (
            f"The share of the voters who put each {source.noun} first, of those who put one before another; a tie for "
            f"the first place is divided. Beside it the mean place, where tied {source.nouns} share the mean of theirs."
        )
    if n_items > MOST_BARS:
        caption += f" {MOST_BARS} of {n_items:,}."
    silent = silent_text(study)
    bars = two_sizes(first_choices(study, WIDE), first_choices(study, NARROW))
    return figure("approvals" if source.approvals else "first-choices", bars, caption, f" {silent}" if silent else None)


def silent_text(study: Summary) -> str:
    """Return how many voters put no item before another."""
    rankings = study.ballots.rankings
    number = int(rankings.counts[~study.says].sum())
    share = percent(number / rankings.n_voters)
    return f"{plural(number, 'voter')} ({share}) put no {study.source.noun} before another." if number else ""


def kinds_list(study: Summary) -> Markup:
    """Return what the ballots are like, and how the file was read."""
    rankings, source = study.ballots.rankings, study.source
    kinds, total = rankings.kinds(), rankings.n_voters
    voters = {kind: int(rankings.counts[kinds == kind].sum()) for kind in KINDS}
    if source.approvals:
        words = f"Approvals: each voter names the {source.nouns} that are approved of, all others share the last place."
        return tag("p", words, class_="note")
    rows = [
        tag(
            "li",
            tag("strong", percent(number / total)),
            f" {KINDS[kind].format(noun=source.noun, nouns=source.nouns)} ({plural(number, 'voter')})",
        )
        for kind, number in voters.items()
        if number
    ]
    return tag(
        "div", tag("ul", *rows, class_="kinds"), tag("p", f"How the file was read: {source.reading}.", class_="note")
    )


def preference_section(study: Summary) -> Markup:
    """Return the matrix of duels."""
    source, n_items = study.source, study.ballots.rankings.n_items
    items, order = study.ballots.rankings.items, study.order
    above = f"those who put the {source.noun} of the row before that of the column"
    cells = f"In each cell, in percent of all voters: {above}."
    if study.majorities.any_undecided:
        cells = (
            f"In each cell, in percent of all voters: above, {above}; below, those who put neither before the other. "
            "The rest put the column first."
        )
    caption = (
        f"{cells} Blue: the row wins among those who say; orange: the column does. The {source.nouns} stand in the "
        "order that contradicts voters least."
    )
    if n_items > 1:
        a, b = int(order[0]), int(order[1])
        found = study.majorities
        shares = [100 * int(n) / found.n_voters for n in (found.ahead[a, b], found.undecided[a, b], found.ahead[b, a])]
        caption += (
            f" So of {cut(items[a], 40)} and {cut(items[b], 40)}: {shares[0]:.0f} put the first before the second, "
            f"{shares[1]:.0f} neither, {shares[2]:.0f} the second before the first."
        )
    if n_items > MOST_ITEMS:
        caption += f" The first {MOST_ITEMS} of {n_items:,}."
    return section("preferences", "Who beats whom", figure("duels", preference_table(study), caption))

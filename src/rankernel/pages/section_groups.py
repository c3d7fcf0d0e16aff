"""How groups differ: all together, then two by two, and which cluster is common in which group."""

from __future__ import annotations

import numpy as np

from rankernel.analysis.clustering import Clustering
from rankernel.analysis.comparisons import LEVEL, Comparison, Comparisons
from rankernel.analysis.phrases import cut, percent, plural, pvalue_text, shift_text
from rankernel.analysis.summary import Summary
from rankernel.pages.draw_bars import null_picture, pairs_picture, striking
from rankernel.pages.layout import figure, section, table
from rankernel.pages.markup import Markup, tag

MOST_ROWS = 100  # of a table that are shown; all of them are in its CSV
CHANCE = "The line: how much the two groups differ. The bars: how much they do when voters are divided at random."


def group_section(study: Summary, found: Comparisons) -> Markup:
    """Return how the groups differ."""
    content = [tag("p", verdict(study, found), class_="verdict")]
    if study.grouped:
        content.append(cluster_table(study, study.grouped))
    content += [comparison_card(study, found, pair) for pair in found.details]
    if len(found.pairs) > 1:
        content.append(pair_table(study, found))
    content.append(tag("p", how_text(study, found), class_="note"))
    return section("groups", f"How the groups differ by {study.source.by or 'group'}", *content)


def verdict(study: Summary, found: Comparisons) -> str:
    """Return whether the groups differ, all together and two by two."""
    names, nouns = study.ballots.groups, study.source.nouns
    chance = chance_text(found.pvalue, study.settings.n_permutations)
    if found.n_groups == 2:
        both = f"{names[found.groups[0]]} and {names[found.groups[1]]}"
        if found.pairs[0].differs:
            return f"{both} see the {nouns} differently, by more than chance explains: {chance}."
        return f"{both} see the {nouns} so alike that chance may explain the difference: {chance}."
    different = sum(pair.differs for pair in found.pairs)
    largest = f" of the {len(found.groups)} largest groups" if len(found.groups) < found.n_groups else ""
    pairs = f"Two by two, {different:,} of {len(found.pairs):,} pairs{largest} differ by more than chance explains."
    if found.pvalue <= LEVEL:
        return f"The {found.n_groups:,} groups do not all see the {nouns} alike: {chance}. {pairs}"
    alike = f"Together, the {found.n_groups:,} groups see the {nouns} so alike that chance may explain it: {chance}."
    return f"{alike} {pairs}" if different else alike


def chance_text(pvalue: float, n_permutations: int) -> str:
    """Return a p-value in words and as a number."""
    number = pvalue_text(pvalue, n_permutations)
    if pvalue <= 1 / (1 + n_permutations) * (1 + 1e-9):
        return f"none of {n_permutations:,} random divisions of the voters differs as much ({number})"
    return f"{percent(pvalue)} of random divisions of the voters differ as much ({number})"


def cluster_table(study: Summary, clustering: Clustering) -> Markup:
    """Return what share of each group is in each cluster."""
    by_group, names = study.ballots.by_group, study.ballots.groups
    heads = [study.source.by or "group", "voters", *[f"{c.name} · {cut(str(c.mark), 30)}" for c in clustering.clusters]]
    sizes = by_group.sum(axis=0)
    inside = np.stack([by_group[clustering.labels == n].sum(axis=0) for n in range(len(clustering.clusters))], axis=1)
    rows = [
        tag(
            "tr",
            tag("th", cut(name, 40), scope="row"),
            tag("td", f"{int(sizes[g]):,}", class_="figure"),
            *[tag("td", percent(int(n) / max(int(sizes[g]), 1)), class_="figure") for n in inside[g]],
            hidden=hidden_from(g),
        )
        for g, name in enumerate(names)
    ]
    caption = f"What share of each group is in each cluster.{shown_of(len(names), 'groups')}"
    return figure("clusters-by-group", table("clusters-by-group", caption, heads, rows), caption)


def hidden_from(place: int) -> str | None:
    """Return whether a row of a table is only for its CSV."""
    return "hidden" if place >= MOST_ROWS else None


def shown_of(number: int, what: str) -> str:
    """Return how many rows of a table are shown, where not all are."""
    return f" {MOST_ROWS} of {number:,} {what} are shown; all are in the CSV." if number > MOST_ROWS else ""


def comparison_card(study: Summary, found: Comparisons, pair: Comparison) -> Markup:
    """Return all there is to say of two groups."""
    names, items = study.ballots.groups, study.ballots.rankings.items
    first, second = names[pair.first], names[pair.second]
    voters = dict(zip(found.groups, found.n_compared, strict=True))
    sizes = f"{voters[pair.first]:,} and {plural(voters[pair.second], 'voter')}"
    shift = pair.shift if pair.shift is not None else np.zeros(len(items))
    moved = [
        tag("li", f"{items[item]}: {shift_text(float(shift[item]))} in {first} than in {second}, in places")
        for item in striking(shift, most=4)
    ]
    share = f"{100 * max(pair.effect, 0.0):.1f}%"
    if pair.interval is not None:
        share += " (95% interval {:.1f}% to {:.1f}%)".format(*(100 * end for end in pair.interval))
    picture = pairs_picture(pair, (first, second))
    return tag(
        "article",
        tag("h3", f"{first} and {second}"),
        tag(
            "p",
            f"{sizes}; {pvalue_text(pair.pvalue, study.settings.n_permutations, found.by_tail)}"
            f"{' (corrected for the number of pairs)' if len(found.pairs) > 1 else ''}. Of how much these voters "
            f"differ from each other, {share} lies between the two groups.",
            class_="size",
        ),
        tag("ul", *moved) if moved else None,
        tag(
            "div",
            figure("pairs", picture, pair_caption(first, second)) if picture else None,
            figure("chance", null_picture(pair), CHANCE),
            class_="figures",
        ),
        class_="pair",
    )


def pair_caption(first: str, second: str) -> Markup:
    """Return what the picture of pairs shows."""
    return tag(
        "span",
        "Share of each group that puts one before the other, with 95% intervals; undecided voters count for neither. ",
        tag("span", tag("span", class_="dot a"), cut(first, 30), class_="together"),
        " ",
        tag("span", tag("span", class_="dot b"), cut(second, 30), class_="together"),
    )


def pair_table(study: Summary, found: Comparisons) -> Markup:
    """Return all pairs of groups, those that differ most clearly first."""
    names, n = study.ballots.groups, study.settings.n_permutations
    rows = [
        tag(
            "tr",
            tag("th", f"{names[pair.first]} – {names[pair.second]}", scope="row"),
            tag("td", pvalue_text(pair.pvalue, n, found.by_tail), class_="figure"),
            tag("td", f"{100 * max(pair.effect, 0.0):.1f}%", class_="figure"),
            tag("td", "differ" if pair.differs else "chance may explain it"),
            hidden=hidden_from(place),
        )
        for place, pair in enumerate(found.pairs)
    ]
    heads = ["groups", "p-value, corrected", "of the differences between voters", "verdict"]
    content = table("pairs-of-groups", "All pairs of groups, the clearest differences first", heads, rows)
    note = shown_of(len(rows), "pairs")
    return tag(
        "details",
        tag("summary", f"All {len(rows):,} pairs of groups"),
        tag("p", note, class_="note") if note else None,
        content,
    )


def how_text(study: Summary, found: Comparisons) -> str:
    """Return how groups were compared."""
    whole = study.ballots.by_group.sum(axis=0)
    words = f"Tests by maximum mean discrepancy, {study.settings.n_permutations:,} permutations of the voters"
    if len(found.pairs) > 1:
        words += "; first all groups together, then every two, p-values corrected by Holm’s method"
    if found.by_tail:
        words += " (from a curve with the exact moments, as permutations are too few for so many pairs)"
    if any(n < whole[g] for g, n in zip(found.groups, found.n_compared, strict=True)):
        words += f"; on {sum(found.n_compared):,} voters taken at random, as many of each group where it has them"
    if len(found.groups) < found.n_groups:
        words += f"; of {found.n_groups:,} groups, all in the first test, the {len(found.groups)} largest two by two"
    if found.n_groups < len(study.ballots.groups):
        words += f"; {left_out(study, found)}"
    return words + "."


def left_out(study: Summary, found: Comparisons) -> str:
    """Return which groups were not tested at all."""
    if study.settings.groups:
        return f"{found.n_groups} of {len(study.ballots.groups):,} groups, as asked for"
    return f"{plural(len(study.ballots.groups) - found.n_groups, 'group')} of a single voter left out"

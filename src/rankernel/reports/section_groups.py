"""How groups differ: all together, then two by two, and which cluster is common in which group."""

from __future__ import annotations

import numpy as np

from rankernel.reports.clustering import Clustering
from rankernel.reports.comparisons import LEVEL, Comparison, Comparisons
from rankernel.reports.draw_bars import striking
from rankernel.reports.draw_comparison import null_picture, pairs_picture
from rankernel.reports.draw_map import cluster_name
from rankernel.reports.layout import figure, heading, section, table
from rankernel.reports.markup import Markup, tag
from rankernel.reports.phrases import percent, plural, pvalue_text
from rankernel.reports.short_names import short_names
from rankernel.reports.summary import Summary

MOST_ROWS = 100  # of a table that are shown; all of them are in its CSV


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
    """Return whether the groups differ, all together and two by two, and by how many voters that was judged."""
    names, words = study.ballots.groups, study.words
    chance = chance_text(study, found.pvalue)
    some = sample_text(study, found)
    if found.n_groups == 2:
        both = f"{names[found.groups[0]]} and {names[found.groups[1]]}"
        if found.pairs[0].differs:
            return f"{both} see the {words.items} differently, by more than chance explains{some}: {chance}."
        return f"{both} see the {words.items} so alike that chance may explain the difference{some}: {chance}."
    different = sum(pair.differs for pair in found.pairs)
    largest = f" of the {len(found.groups)} largest groups" if len(found.groups) < found.n_groups else ""
    pairs = (
        f"Two by two, {different:,} of {len(found.pairs):,} pairs{largest} differ by more than chance explains{some}."
    )
    if found.pvalue <= LEVEL:
        return f"The {found.n_groups:,} groups do not all see the {words.items} alike: {chance}. {pairs}"
    alike = (
        f"Together, the {found.n_groups:,} groups see the {words.items} so alike that chance may explain it: {chance}."
    )
    return f"{alike} {pairs}" if different else alike


def sample_text(study: Summary, found: Comparisons) -> str:
    """Return on how many voters the verdict rests, where not on all."""
    whole = int(study.ballots.by_group[:, list(found.groups)].sum())
    taken = sum(found.n_compared)
    if taken == whole:
        return ""
    return f" (judged on {taken:,} of {study.words.count_voters(whole)}, taken at random: all of them may tell more)"


def chance_text(study: Summary, pvalue: float) -> str:
    """Return a p-value in words and as a number."""
    n_permutations, voters = study.settings.n_permutations, study.words.voters
    number = pvalue_text(pvalue, n_permutations)
    if pvalue <= 1 / (1 + n_permutations) * (1 + 1e-9):
        return f"none of {n_permutations:,} random divisions of the {voters} differs as much ({number})"
    return f"{percent(pvalue)} of random divisions of the {voters} differ as much ({number})"


def cluster_table(study: Summary, clustering: Clustering) -> Markup:
    """Return what share of each group is in each cluster."""
    by_group, names = study.ballots.by_group, study.ballots.groups
    clusters = tuple(cluster_name(cluster) for cluster in clustering.clusters)
    heads = [
        study.source.by or "group",
        study.words.voters,
        *[heading(shown, whole) for shown, whole in zip(short_names(clusters, 34), clusters, strict=True)],
    ]
    sizes = by_group.sum(axis=0)
    inside = np.stack([by_group[clustering.labels == n].sum(axis=0) for n in range(len(clusters))], axis=1)
    rows = [
        tag(
            "tr",
            heading(shown, whole, "row"),
            tag("td", f"{int(sizes[g]):,}", class_="figure"),
            *[tag("td", percent(int(n) / max(int(sizes[g]), 1)), class_="figure") for n in inside[g]],
            hidden=hidden_from(g),
        )
        for g, (shown, whole) in enumerate(zip(short_names(names, 40), names, strict=True))
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
    """Return all there is to say of two groups; where they do not differ, what chance makes of it."""
    names, items, words = study.ballots.groups, study.ballots.rankings.items, study.words
    first, second = names[pair.first], names[pair.second]
    shift = np.zeros(len(items)) if pair.shift is None else pair.shift
    moved = [(item, float(shift[item])) for item in striking(shift, words.least_shift, most=4)]
    told = [
        tag("li", f"{items[item]}: {words.shift_words(by)} in {first} than in {second}, in {words.unit}")
        for item, by in moved
    ]
    picture = pairs_picture(pair, (first, second), words)
    chance = (
        f"The line: how much the two groups differ. The bars: how much they do when {words.voters} are divided at "
        "random."
    )
    return tag(
        "article",
        tag("h3", f"{first} and {second}"),
        tag("p", size_text(study, found, pair), class_="size"),
        tag("ul", *told) if told else None,
        tag(
            "div",
            figure("pairs", picture, pair_caption(study)) if picture else None,
            figure("chance", null_picture(pair, words), chance),
            class_="figures",
        ),
        class_="pair",
    )


def size_text(study: Summary, found: Comparisons, pair: Comparison) -> str:
    """Return how many voters two groups have, how many of them were compared, and how clear the difference is."""
    words, taken = study.words, dict(zip(found.groups, found.n_compared, strict=True))
    sizes = [int(study.ballots.by_group[:, group].sum()) for group in (pair.first, pair.second)]
    compared = [taken[pair.first], taken[pair.second]]
    told = f"{sizes[0]:,} and {words.count_voters(sizes[1])}"
    if compared != sizes:
        told += f", of whom {compared[0]:,} and {compared[1]:,} were compared"
    corrected = " (corrected for the number of pairs)" if len(found.pairs) > 1 else ""
    share = f"{100 * max(pair.effect, 0.0):.1f}%"
    if pair.interval is not None:
        share += " (95% interval {:.1f}% to {:.1f}%)".format(*(100 * end for end in pair.interval))
    return (
        f"{told}; {pvalue_text(pair.pvalue, study.settings.n_permutations, found.by_tail)}{corrected}. Of how much "
        f"these {words.voters} differ from each other, {share} lies between the two groups."
    )


def pair_caption(study: Summary) -> str:
    """Return what the picture of pairs shows."""
    words = study.words
    does = "approves of one and not of the other" if words.approvals else "puts one before the other"
    return f"Share of each group that {does}, with 95% intervals; undecided {words.voters} count for neither."


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
    heads = ["groups", "p-value, corrected", f"of the differences between {study.words.voters}", "verdict"]
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
    voters = study.words.voters
    told = f"Tests by maximum mean discrepancy, {study.settings.n_permutations:,} permutations of the {voters}"
    if len(found.pairs) > 1:
        told += "; first all groups together, then every two, p-values corrected by Holm’s method"
    if found.by_tail:
        told += " (from a curve with the exact moments, as permutations are too few for so many pairs)"
    if sample_text(study, found):
        told += f"; on {sum(found.n_compared):,} {voters} taken at random, of each group its share"
    if len(found.groups) < found.n_groups:
        told += f"; of {found.n_groups:,} groups, all in the first test, the {len(found.groups)} largest two by two"
    if found.n_groups < len(study.ballots.groups):
        told += f"; {left_out(study, found)}"
    return told + "."


def left_out(study: Summary, found: Comparisons) -> str:
    """Return which groups were not tested at all."""
    if study.settings.groups:
        return f"{found.n_groups} of {len(study.ballots.groups):,} groups, as asked for"
    return f"{plural(len(study.ballots.groups) - found.n_groups, 'group')} of a single {study.words.voter} left out"

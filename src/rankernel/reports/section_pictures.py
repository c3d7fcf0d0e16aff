"""The map that can be explored, and every ballot against every other."""

from __future__ import annotations

import numpy as np

from rankernel.reports.clustering import Clustering
from rankernel.reports.draw_heat import NARROW, WIDE, gram_picture
from rankernel.reports.draw_map import cluster_name, coloured_groups, map_picture, strongest_group
from rankernel.reports.layout import COLOURS, by_size, figure, section, table
from rankernel.reports.markup import Markup, tag
from rankernel.reports.number_of_clusters import MOST_CLUSTERS
from rankernel.reports.phrases import ballot_text, percent
from rankernel.reports.short_names import short_names
from rankernel.reports.summary import Summary
from rankernel.reports.wording import with_article

TABLE_ROWS = 100


def map_section(study: Summary) -> Markup:
    """Return the map with what can be done on it, its key and its table."""
    view, words, (first, second) = study.view, study.words, study.placement.variance.tolist()
    caption = (
        f"Each point is {with_article(words.ballot)}, its area the number of {words.voters} who gave it. Near each "
        f"other are {words.ballot}s that the kernel sees as similar; of how much {words.ballot}s differ, the map shows "
        f"{percent(first)} from left to right and {percent(second)} upwards."
    )
    if view.sampled:
        caption += (
            f" Shown are {words.count_ballots(len(view.rows))} of {words.count_voters(view.n_voters)} taken at random "
            f"from {study.ballots.rankings.n_voters:,}; the axes come from all of them."
        )
    tip = tag("div", class_="tip", hidden="hidden", aria_hidden="true")
    picture = tag("div", map_picture(study), tip, class_="stage")
    keys = tag("div", cluster_key(study), group_key(study), class_="keys")
    drawn = figure("map", tag("div", controls(study), picture, keys, explored()), caption, *use_of_map(study))
    return section("map", f"A map of the {words.ballot}s", drawn, ballot_table(study))


def use_of_map(study: Summary) -> list[Markup]:
    """Return what can be done on the map: with a mouse and keys, and with a finger; nothing on paper."""
    one = with_article(study.words.ballot)
    by_hand = (
        f" Point at {one}, or move with Tab and the arrow keys, to read it; drag a frame around several, or press "
        "Space on each, to see what they have in common."
    )
    by_finger = f" Tap {one} to read it; tap several to see what they have in common."
    return [tag("span", by_hand, class_="by-hand"), tag("span", by_finger, class_="by-finger")]


def controls(study: Summary) -> Markup:
    """Return what can be chosen: colours, the number of clusters, an item to look for."""
    parts = [switch(study)]
    n_leaves = len(study.clustering.tree) + 1 if study.clustering else 1
    if n_leaves > 2:
        most = min(max(MOST_CLUSTERS, len(study.clustering.clusters) if study.clustering else 1), n_leaves)
        now = len(study.clustering.clusters) if study.clustering else 1
        box = tag("input", type="range", min=1, max=most, value=now, step=1, id="number", aria_describedby="number-now")
        parts.append(
            tag(
                "p",
                tag("label", "Cut the tree into ", for_="number"),
                box,
                " ",
                tag("output", f"{now}", id="number-now"),
            )
        )
    names = [tag("option", value=name) for name in study.ballots.rankings.items]
    search = tag("input", type="search", id="search", list="names", autocomplete="off", placeholder="name")
    looked = tag("label", f"Look for {with_article(study.words.item)} ", for_="search")
    parts.append(tag("p", looked, search, tag("datalist", *names, id="names")))
    return tag("div", *parts, class_="controls")


def explored() -> Markup:
    """Return where the script tells what was selected, cut or looked for."""
    return tag("div", id="explored", class_="explored", aria_live="polite", hidden="hidden")


def switch(study: Summary) -> Markup | None:
    """Return the choice of what colours stand for, if there is one."""
    if not study.ballots.groups:
        return None

    def choice(value: str, label: str, checked: bool) -> Markup:
        box = tag("input", type="radio", name="colour", value=value, checked="checked" if checked else None)
        return tag("label", box, f" {label}")

    return tag(
        "fieldset",
        tag("legend", "Colour by"),
        choice("cluster", "cluster", checked=study.grouped is not None),
        choice("group", study.source.by or "group", checked=study.grouped is None),
        class_="switch",
    )


def cluster_names(study: Summary) -> list[str]:
    """Return what each colour of the clusters stands for: one cluster, the last one for all that are left."""
    found = study.grouped.clusters if study.grouped else []
    names = list(short_names(tuple(cluster_name(cluster) for cluster in found), 60))
    if len(found) <= COLOURS:
        return names
    return [*names[:COLOURS], f"others: {', '.join(cluster.name for cluster in found[COLOURS:])}"]


def cluster_key(study: Summary) -> Markup | None:
    """Return what the colours of clusters stand for."""
    names = cluster_names(study)
    if not names:
        return None
    entries = [tag("li", tag("span", class_=f"dot k{number}"), name) for number, name in enumerate(names)]
    return tag("ul", *entries, class_="key by-cluster-key", aria_label="Colours of the clusters")


def group_key(study: Summary) -> Markup | None:
    """Return what the colours of groups stand for."""
    if not study.ballots.groups:
        return None
    coloured = coloured_groups(study)
    names = short_names(study.ballots.groups, 40)
    entries = [tag("li", tag("span", class_=f"dot g{number}"), names[group]) for number, group in enumerate(coloured)]
    others = len(study.ballots.groups) - len(coloured)
    if others:
        entries.append(tag("li", tag("span", class_=f"dot g{COLOURS}"), f"others ({others:,} groups)"))
    if (strongest_group(study)[study.view.rows] < 0).any():
        told = f"no group has more than 60% of the {study.words.voters}"
        entries.append(tag("li", tag("span", class_="dot gx"), told))
    hidden = "hidden" if study.grouped else None
    return tag("ul", *entries, class_="key by-group-only", hidden=hidden, aria_label="Colours of the groups")


def ballot_table(study: Summary) -> Markup:
    """Return the most common ballots as a table, which says what the map shows."""
    rankings, grouped, words = study.ballots.rankings, study.grouped, study.words
    common = np.argsort(-rankings.counts, kind="stable")[:TABLE_ROWS]
    names, by_group = study.ballots.groups, study.ballots.by_group
    own = coloured_groups(study)  # as on the map
    heads = [words.voters.capitalize(), words.ballot.capitalize(), *(["Cluster"] if grouped else [])]
    heads += [names[group] for group in own] + (["other groups"] if len(own) < len(names) else [])
    rows = []
    for row in common.tolist():
        cells = [tag("td", f"{int(rankings.counts[row]):,}", class_="figure")]
        cells.append(tag("td", ballot_text(rankings[row], most=12, length=40, approvals=words.approvals)))
        if grouped:
            cells.append(tag("td", grouped.clusters[int(grouped.labels[row])].name))
        of_groups = by_group[row, own].tolist()
        of_groups += [int(by_group[row].sum()) - sum(of_groups)] if len(own) < len(names) else []
        cells += [tag("td", f"{n:,}", class_="figure") for n in of_groups]
        rows.append(tag("tr", *cells))
    number = f"{len(common):,} most common {words.ballot}s" if len(common) > 1 else f"only {words.ballot}"
    title = f"The {number} as a table"
    return tag("details", tag("summary", title), table("common-ballots", title, heads, rows))


def gram_section(study: Summary, clustering: Clustering) -> Markup:
    """Return the Gram matrix."""
    words, n_shown = study.words, min(study.view.n_voters, WIDE.pixels)
    caption = f"Kernel values between {words.voters} "
    if n_shown < study.ballots.rankings.n_voters:
        caption += "evenly spaced along the tree, "
    caption += f"in the order of the tree below. Bright blocks are clusters of like {words.ballot}s."
    picture = by_size(gram_picture(study, clustering, WIDE), gram_picture(study, clustering, NARROW))
    return section("gram", f"Every {words.ballot} against every other", figure("gram", picture, caption))

"""What divides the voters: clusters where there are any, what speaks for them, and how they join."""

from __future__ import annotations

import numpy as np

from rankernel.reports.clustering import Cluster, Clustering
from rankernel.reports.draw_bars import shift_bars
from rankernel.reports.draw_tree import NARROW, PAPER, WIDE, tree_picture
from rankernel.reports.layout import by_size, figure, section, shade
from rankernel.reports.markup import Markup, tag
from rankernel.reports.number_of_clusters import LEAST_BALLOTS, LEAST_VOTERS, POSSIBLE, Evidence
from rankernel.reports.phrases import ballot_text, percent, plural
from rankernel.reports.short_names import cut
from rankernel.reports.summary import Summary

LISTED = 8


def cluster_section(study: Summary) -> Markup:
    """Return the clusters, or that there are none."""
    clustering, title = study.clustering, f"What divides the {study.words.voters}"
    if clustering is None or study.grouped is None:
        return section("clusters", title, tag("p", no_groups_text(study), class_="verdict"))
    found, words = clustering.clusters, study.words
    stand = "are approved of more (+) or less (−)" if words.approvals else "stand higher (+) or lower (−)"
    intro = (
        f"{plural(len(found), 'cluster')} of like {words.ballot}s, found without knowing anything of the "
        f"{words.voters} but what they say of the {words.items}. Each is named after what sets it apart, and shown "
        f"with {clustering.rule} and with the {words.items} that {stand} in it than among all {words.voters}, in "
        f"{words.unit}."
    )
    cards = [card(study, number, cluster) for number, cluster in enumerate(found)]
    return section(
        "clusters",
        title,
        tag("p", intro),
        tag("div", *cards, class_="cards"),
        tag("p", evidence_text(study, clustering), class_="note"),
    )


def no_groups_text(study: Summary) -> str:
    """Return that there are no groups, and why that is said."""
    clustering, words = study.clustering, study.words
    if clustering is None:
        if study.ballots.rankings.n_voters == 1:
            return f"There is a single {words.voter}."
        return f"All {words.voters} gave the same {words.ballot}."
    evidence = clustering.evidence
    if evidence is None:
        return "One cluster, as asked for."
    if not evidence.steps:
        few, different = (
            words.count_voters(evidence.n_voters),
            words.count_ballots(len(study.ballots.rankings), "different"),
        )
        if evidence.n_voters < LEAST_VOTERS:
            return f"Of {few} nothing can be said about groups; that takes at least {LEAST_VOTERS}."
        return f"With {different} there is nothing to divide into groups; that takes at least {LEAST_BALLOTS}."
    return f"There are no clear groups among these {words.ballot}s. {why_none(study, evidence)}"


def why_none(study: Summary, evidence: Evidence) -> str:
    """Return why there are no groups, and how many there might be."""
    words, step = study.words, evidence.steps[0]
    if step.surprise < POSSIBLE:
        return (
            f"The clearest division takes away {percent(step.gain)} of how much {words.ballot}s differ; among "
            f"{words.ballot}s made up without any groups it takes away {percent(step.chance)} as well."
        )
    agree = max(evidence.stability.values())
    told = (
        f"There are divisions, but {words.voters} divided in two at random make different clusters in either half: "
        f"they agree at best by {agree:.2f}, where 1 is the same clusters and 0 is chance."
    )
    return f"{told} {shading_text(study, evidence)}" if evidence.most_clusters > 1 else told


def shading_text(study: Summary, evidence: Evidence) -> str:
    """Return between how many clusters the answer lies."""
    words, shown = study.words, evidence.n_clusters
    shows = f"the page shows {shown}" if shown > 1 else "the page shows none"
    least = "none" if shown == 1 else f"{shown}"
    return (
        f"How many there are is not sure, between {least} and {evidence.most_clusters}: the {words.ballot}s shade into "
        f"each other, and other {words.voters} would give another number; {shows}."
    )


def evidence_text(study: Summary, clustering: Clustering) -> str:
    """Return what speaks for the number of clusters."""
    evidence, k, words = clustering.evidence, len(clustering.clusters), study.words
    if evidence is None:
        return f"{plural(k, 'cluster')}, as asked for; whether there are so many was not tested."
    step = next(step for step in evidence.steps if step.n_clusters == k)
    told = (
        f"Why {k}: the last division takes away {percent(step.gain)} of how much {words.ballot}s differ within "
        f"clusters. In {step.n_sets:,} sets of {words.ballot}s as long and as tied as these, made up without it, it "
        f"takes away {percent(step.chance)} on average, which is {step.surprise:.1f} standard errors less. And "
        f"{words.voters} divided in two at random make much the same {k} clusters in either half (agreement "
        f"{evidence.stability[k]:.2f}; 1 is the same, 0 is chance)."
    )
    return f"{told} {shading_text(study, evidence)}" if evidence.most_clusters > k else told


def card(study: Summary, number: int, cluster: Cluster) -> Markup:
    """Return what there is to say of one cluster."""
    colour, words = f"k{shade(number)}", study.words
    ranks, items = cluster.consensus.ranks[0], study.ballots.rankings.items
    order = np.argsort(ranks, kind="stable")
    # Tied items share the first of their places.
    listed = [tag("li", items[item], value=1 + int((ranks < ranks[item]).sum())) for item in order[:LISTED].tolist()]
    more = len(order) - LISTED
    bars = cluster_bars(study, number, cluster)
    size = f"{words.count_voters(cluster.n_voters)}, {percent(cluster.share)}. {mark_text(study, cluster)}"
    return tag(
        "article",
        tag("h3", tag("span", cluster.name, class_=f"badge {colour}"), f" {cut(str(cluster.mark), 60)}"),
        tag("p", size, class_="size"),
        tag("ol", *listed),
        tag("p", f"… and {more:,} more", class_="more") if more > 0 else None,
        figure(f"cluster-{cluster.name}", bars) if bars else None,
        tag("p", common_text(study, cluster), class_="note"),
        class_=colour,
    )


def cluster_bars(study: Summary, number: int, cluster: Cluster) -> Markup | None:
    """Return what stands higher or lower in a cluster; bars of all clusters can be compared."""
    largest = max(float(np.abs(each.shift).max()) for each in study.grouped.clusters) if study.grouped else 1.0
    title = f"Higher or lower in cluster {cluster.name} than among all {study.words.voters}"
    return shift_bars(study.ballots.rankings.items, cluster.shift, largest, f"k{shade(number)}", title, study.words)


def mark_text(study: Summary, cluster: Cluster) -> str:
    """Return what share of the cluster says what sets it apart, and what share of all others."""
    mark, words = cluster.mark, study.words
    if mark.whole:
        return f"{percent(mark.share)} gave this {words.ballot}, nobody else did."
    does = words.wants(mark.first) if mark.second is None else words.prefer(mark.first, mark.second)
    return f"{percent(mark.share)} {does}, of all others {percent(mark.others)}."


def common_text(study: Summary, cluster: Cluster) -> str:
    """Return the most common ballot of a cluster."""
    words = study.words
    said = ballot_text(cluster.ballot, most=5, length=24, approvals=words.approvals)
    number = words.count_voters(int(cluster.ballot.counts[0]))
    if said == "no preference":
        said = "approves all or none" if words.approvals else f"one that puts no {words.item} before another"
    return f"Most common {words.ballot}: {said} ({number})."


def tree_section(study: Summary, clustering: Clustering) -> Markup:
    """Return the dendrogram."""
    n_leaves, words = len(clustering.tree) + 1, study.words
    caption = (
        f"Branches join where their {words.ballot}s are alike ({study.settings.linkage} linkage of kernel distances)."
    )
    if n_leaves > PAPER.branches:
        caption += f" Of the tree of {words.count_ballots(n_leaves)}, a wedge stands for a whole branch."
    if study.view.sampled:
        caption += (
            f" The tree is that of the {words.ballot}s on the map; all others belong to the cluster with the nearest "
            "mean."
        )
    picture = by_size(
        tree_picture(study, clustering, WIDE),
        tree_picture(study, clustering, NARROW),
        [tree_picture(study, clustering, PAPER)],
    )
    return section("tree", "How the clusters join", figure("tree", picture, caption))

"""What divides the voters: clusters where there are any, what speaks for them, and how they join."""

from __future__ import annotations

import numpy as np

from rankernel.analysis.clustering import Cluster, Clustering
from rankernel.analysis.number_of_clusters import LEAST_VOTERS, NULL_SETS, Evidence
from rankernel.analysis.phrases import ballot_text, cut, percent, plural
from rankernel.analysis.summary import Summary
from rankernel.pages.draw_bars import shift_bars
from rankernel.pages.draw_tree import MOST_BRANCHES, NARROW, WIDE, tree_picture
from rankernel.pages.layout import figure, section, shade, two_sizes
from rankernel.pages.markup import Markup, tag

LISTED = 8


def cluster_section(study: Summary) -> Markup:
    """Return the clusters, or that there are none."""
    clustering = study.clustering
    if clustering is None or study.grouped is None:
        return section("clusters", "What divides the voters", tag("p", no_groups_text(study), class_="verdict"))
    found, source = clustering.clusters, study.source
    intro = (
        f"{plural(len(found), 'cluster')} of like ballots, found without knowing anything of the voters but what they "
        f"say of the {source.nouns}. Each is named after what sets it apart, and shown with {clustering.rule} and with "
        f"the {source.nouns} that stand higher (+) or lower (−) in it than among all voters, in places."
    )
    largest = max(float(np.abs(cluster.shift).max()) for cluster in found)
    cards = [card(study, number, cluster, largest) for number, cluster in enumerate(found)]
    return section(
        "clusters",
        "What divides the voters",
        tag("p", intro),
        tag("div", *cards, class_="cards"),
        tag("p", evidence_text(clustering), class_="note"),
    )


def no_groups_text(study: Summary) -> str:
    """Return that there are no groups, and why that is said."""
    clustering = study.clustering
    if clustering is None:
        return "All voters gave the same ballot."
    if clustering.evidence is None:
        return "One cluster, as asked for."
    evidence = clustering.evidence
    if not evidence.stability:
        return (
            f"Of {plural(evidence.n_voters, 'voter')} with {plural(len(study.view.rows), 'different ballot')} nothing "
            f"can be said about groups; that takes at least {LEAST_VOTERS}."
        )
    return f"There are no clear groups among these ballots. {why_none(evidence)}"


def why_none(evidence: Evidence) -> str:
    """Return why there are no groups."""
    best = max(evidence.stability.values())
    if not evidence.steps:
        return (
            "Voters divided in two at random make different clusters in either half: they agree at best by "
            f"{best:.2f}, where 1 is the same clusters and 0 is chance."
        )
    step = evidence.steps[0]
    if step.reached:
        return (
            f"The clearest division takes away {percent(step.gain)} of how much ballots differ; among ballots made up "
            f"without any groups it takes away {percent(step.chance)} as well."
        )
    return "There are divisions, but voters divided in two at random make different clusters in either half."


def evidence_text(clustering: Clustering) -> str:
    """Return what speaks for the number of clusters."""
    evidence, k = clustering.evidence, len(clustering.clusters)
    if evidence is None:
        return f"{plural(k, 'cluster')}, as asked for; whether there are so many was not tested."
    step = next(step for step in evidence.steps if step.n_clusters == k)
    return (
        f"Why {k}: the last division takes away {percent(step.gain)} of how much ballots differ within clusters. In "
        f"{NULL_SETS} sets of ballots as long and as tied as these, made up without it, it takes away "
        f"{percent(step.chance)} on average, and in none as much. And voters divided in two at random make much "
        f"the same {k} clusters in either half (agreement {evidence.stability[k]:.2f}; 1 is the same, 0 is chance)."
    )


def card(study: Summary, number: int, cluster: Cluster, largest: float) -> Markup:
    """Return what there is to say of one cluster."""
    colour = f"k{shade(number)}"
    ranks, items = cluster.consensus.ranks[0], study.ballots.rankings.items
    order = np.argsort(ranks, kind="stable")
    # Tied items share the first of their places.
    listed = [tag("li", items[item], value=1 + int((ranks < ranks[item]).sum())) for item in order[:LISTED].tolist()]
    more = len(order) - LISTED
    title = f"Ranked higher or lower by cluster {cluster.name} than by all voters"
    return tag(
        "article",
        tag("h3", tag("span", cluster.name, class_=f"badge {colour}"), f" {cut(str(cluster.mark), 60)}"),
        tag("p", f"{plural(cluster.n_voters, 'voter')}, {percent(cluster.share)}. {mark_text(cluster)}", class_="size"),
        tag("ol", *listed),
        tag("p", f"… and {more:,} more", class_="more") if more > 0 else None,
        shift_bars(items, cluster.shift, largest, colour, title),
        tag("p", common_text(study, cluster), class_="note"),
        class_=colour,
    )


def mark_text(cluster: Cluster) -> str:
    """Return what share of the cluster says what sets it apart, and what share of all others."""
    mark = cluster.mark
    does = f"put {mark.first} first" if mark.second is None else f"put {mark.first} before {mark.second}"
    if mark.approval and mark.second is None:
        does = f"approve of {mark.first}"
    return f"{percent(mark.share)} {does}, of all others {percent(mark.others)}."


def common_text(study: Summary, cluster: Cluster) -> str:
    """Return the most common ballot of a cluster."""
    words = ballot_text(cluster.ballot, most=5, length=24, approvals=study.source.approvals)
    number = plural(int(cluster.ballot.counts[0]), "voter")
    if words == "no preference":
        return f"Most common ballot: one that puts no {study.source.noun} before another ({number})."
    return f"Most common ballot: {words} ({number})"


def tree_section(study: Summary, clustering: Clustering) -> Markup:
    """Return the dendrogram."""
    n_leaves = len(clustering.tree) + 1
    caption = f"Branches join where their ballots are alike ({study.settings.linkage} linkage of kernel distances). "
    if n_leaves > MOST_BRANCHES:
        caption += f"The upper part of the tree of {plural(n_leaves, 'ballot')}: a wedge stands for a whole branch. "
    if study.view.sampled:
        caption += "The tree is that of the ballots on the map; all others belong to the cluster with the nearest mean."
    picture = two_sizes(tree_picture(study, clustering, WIDE), tree_picture(study, clustering, NARROW))
    return section("tree", "How the clusters join", figure("tree", picture, caption))

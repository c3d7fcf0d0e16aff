"""``rankernel cluster``: clusters of rankings, their sizes, what they want, and how they join."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankernel._utils.checks import printable
from rankernel.cli.job import Job, read_job, summary_of
from rankernel.cli.options import Clusters, Computing, File, Linkage, Reading, Writing
from rankernel.cli.output import (
    PICTURES,
    check_ending,
    check_free,
    console,
    print_json,
    show_facts,
    steps,
    whole_file,
)
from rankernel.errors import RankingError
from rankernel.io.spreadsheets import plain_cell

if TYPE_CHECKING:
    from rich.tree import Tree

    from rankernel.data import Data
    from rankernel.reports.clustering import Clustering
    from rankernel.reports.summary import Summary


def cluster(
    reading: Reading,
    computing: Computing,
    writing: Writing,
    file: File = None,
    k: Clusters = None,
    linkage: Linkage = "ward",
) -> None:
    """Cluster rankings: dendrogram, clusters, their consensus rankings.

    With -o NAME.csv the cluster of each row is written; with -o NAME.png, .svg or .pdf a picture of the dendrogram.
    """
    output = writing.output
    if output:
        check_ending(output, (".csv", *PICTURES))
        check_free(output, writing.force, file)
    job = read_job(file, reading, computing)
    found = summary_of(job, computing.seed, n_clusters=k, linkage=linkage, compare=False)
    clustering = found.clustering
    if clustering is None:
        raise RankingError("all rankings are equal; there is nothing to cluster")
    if output:
        with steps(None, "Drawing"), whole_file(output, writing.force) as temporary:
            write(temporary, found, clustering)
    facts = job.assumptions(found.placement.values)
    facts["clusters"] = clusters_text(found, clustering)
    if found.view.sampled:
        shown = found.words.count_voters(found.view.n_voters)
        facts["tree"] = f"of {shown} taken at random; the others join the nearest cluster"
    if output:
        facts["written"] = printable(output)
    if writing.json:
        print_json(facts | as_json(job, clustering))
    else:
        show(facts, found, clustering)


def clusters_text(found: Summary, clustering: Clustering) -> str:
    """Return how many clusters there are, and why."""
    from rankernel.reports.number_of_clusters import LEAST_BALLOTS, LEAST_VOTERS

    k, evidence, linkage, words = len(clustering.clusters), clustering.evidence, found.settings.linkage, found.words
    if evidence is None:
        return f"{k} by {linkage} linkage, as asked for"
    if not evidence.steps:
        least = f"{LEAST_VOTERS} {words.voters} and {LEAST_BALLOTS} different {words.ballot}s"
        return f"too few to say anything about groups, which takes {least}; choose a number with --k"
    doubt = f"; there may be up to {evidence.most_clusters}" if evidence.most_clusters > k else ""
    if k == 1:
        return (
            f"no groups that are more than chance and come back in halves of the {words.voters}{doubt}; choose a "
            "number with --k"
        )
    return f"{k} by {linkage} linkage, as many as are more than chance and stable{doubt}; choose with --k"


def rows_of(rankings: Data, clustering: Clustering) -> list[int]:
    """Return the cluster of each row of the data."""

    _, inverse = rankings.unique_indices()
    return [int(label) for label in clustering.labels[inverse]]


def write(path: Path, found: Summary, clustering: Clustering) -> None:
    """Write the cluster of each row, or a picture of the tree."""
    if path.suffix.lower() != ".csv":
        draw(path, found, clustering)
        return
    from rankernel.data import format_rows

    rankings, columns = found.source.rankings, found.source.columns
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*map(plain_cell, columns), "cluster", "count", "ranking"])
        rows = zip(rows_of(rankings, clustering), rankings.counts.tolist(), format_rows(rankings), strict=True)
        for row, (label, count, words) in enumerate(rows):
            kept = [plain_cell(str(values[row])) for values in columns.values()]
            writer.writerow([*kept, plain_cell(clustering.clusters[label].name), count, plain_cell(words)])


def draw(path: Path, found: Summary, clustering: Clustering) -> None:
    """Draw the tree; the colours have a key where there are clusters."""
    from rankernel import plots
    from rankernel.reports.draw_map import cluster_name
    from rankernel.reports.phrases import ballot_text, percent

    view, words, rankings = found.view, found.words, found.ballots.rankings
    leaves = [ballot_text(rankings[row], most=3, length=20, approvals=words.approvals) for row in view.rows.tolist()]
    names, labels = None, None
    if found.grouped:
        names = [f"{cluster_name(each)} ({percent(each.share)} of all)" for each in clustering.clusters]
        labels = clustering.shown
    ax = plots.dendrogram(clustering.tree, labels, leaves=leaves, counts=view.counts, names=names)
    title = f"{found.source.title}: the most common {words.ballot} of each branch, and its {words.voters}"
    ax.set_title(plots.plain(title), loc="left")
    plots.save(ax, path)


def as_json(job: Job, clustering: Clustering) -> dict[str, Any]:
    """Return the clusters for machines."""
    items = job.source.rankings.items
    clusters = [
        {
            "name": each.name,
            "mark": str(each.mark),
            "n_voters": each.n_voters,
            "share": each.share,
            "consensus": [
                sorted(bucket) if isinstance(bucket, set) else bucket for bucket in each.consensus.to_orders()[0]
            ],
            "shift": dict(zip(items, each.shift.round(4).tolist(), strict=True)),
        }
        for each in clustering.clusters
    ]
    return {"found": clusters, "labels": rows_of(job.source.rankings, clustering)}


def show(facts: dict[str, str], found: Summary, clustering: Clustering) -> None:
    """Print the clusters for people."""
    from rich.table import Table

    from rankernel.reports.draw_bars import striking
    from rankernel.reports.phrases import ballot_text, percent
    from rankernel.reports.short_names import short_names

    screen = console()
    show_facts(screen, facts)
    words, items = found.words, short_names(found.ballots.rankings.items, 20)
    marks = short_names(tuple(str(each.mark) for each in clustering.clusters), 40)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for name in (
        "",
        words.voters,
        "",
        "what sets it apart",
        "consensus",
        f"higher or lower than usual, in {words.unit}",
    ):
        table.add_column(name, justify="right" if name == words.voters else "left")
    for each, mark in zip(clustering.clusters, marks, strict=True):
        moved = striking(each.shift, words.least_shift, most=4)
        apart = ", ".join(f"{words.signed_shift(float(each.shift[item]))} {items[item]}" for item in moved)
        consensus = ballot_text(each.consensus, most=5, length=20)
        alone = mark if found.grouped else ""
        table.add_row(each.name, f"{each.n_voters:,}", percent(each.share), alone, consensus, apart)
    screen.print()
    screen.print(table)
    if found.grouped:
        screen.print()
        screen.print(text_tree(clustering))


def text_tree(clustering: Clustering) -> Tree:
    """Return how the clusters join, the highest merger first, as lines of text."""
    from rich.text import Text
    from rich.tree import Tree

    tree, n_leaves = clustering.tree, len(clustering.tree) + 1
    k = len(clustering.clusters)
    below: dict[int, int] = {}  # the cluster of each node under the cut

    def first_leaf(node: int) -> int:
        while node >= n_leaves:
            node = int(tree[node - n_leaves, 0])
        return node

    def branch(node: int) -> Tree:
        if node < 2 * n_leaves - k:
            return Tree(Text(f"cluster {clustering.clusters[below_label(node)].name}", style="bold"))
        merger = tree[node - n_leaves]
        made = Tree(Text(f"join at {merger[2]:.3g}", style="dim"))
        for child in merger[:2]:
            made.children.append(branch(int(child)))
        return made

    def below_label(node: int) -> int:
        return below.setdefault(node, int(clustering.shown[first_leaf(node)]))

    return branch(2 * n_leaves - 2)

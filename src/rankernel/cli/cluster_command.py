"""``rankernel cluster``: clusters of rankings, their sizes, what they want, and how they join."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankernel.cli.failures import usage
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
from rankernel.encoding import printable
from rankernel.errors import RankingError
from rankernel.io.spreadsheets import plain_cell

if TYPE_CHECKING:
    from rich.tree import Tree

    from rankernel.analysis.clustering import Clustering
    from rankernel.analysis.summary import Summary
    from rankernel.data import Data


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
    if k and k > len(found.view.rows):
        raise usage(f"--k {k} is more than there are different rankings ({len(found.view.rows):,})")
    if output:
        with steps(None, "Drawing"), whole_file(output, writing.force) as temporary:
            write(temporary, found, clustering)
    facts = job.assumptions(found.placement.values)
    facts["clusters"] = clusters_text(clustering, linkage)
    if found.view.sampled:
        facts["tree"] = f"of {found.view.n_voters:,} voters taken at random; the others join the nearest cluster"
    if output:
        facts["written"] = printable(output)
    if writing.json:
        print_json(facts | as_json(job, clustering))
    else:
        show(facts, job, clustering)


def clusters_text(clustering: Clustering, linkage: str) -> str:
    """Return how many clusters there are, and why."""
    k = len(clustering.clusters)
    if clustering.evidence is None:
        return f"{k} by {linkage} linkage, as asked for"
    if k == 1:
        return "no groups that are more than chance and come back in halves of the voters; choose a number with --k"
    return f"{k} by {linkage} linkage, as many as are more than chance and stable; choose with --k"


def rows_of(rankings: Data, clustering: Clustering) -> list[int]:
    """Return the cluster of each row of the data."""
    from rankernel.data import first_and_inverse

    _, inverse = first_and_inverse(rankings)
    return [int(label) for label in clustering.labels[inverse]]


def write(path: Path, found: Summary, clustering: Clustering) -> None:
    """Write the cluster of each row, or a picture of the tree."""
    if path.suffix.lower() != ".csv":
        from rankernel import plots
        from rankernel.analysis.phrases import ballot_text, percent
        from rankernel.pages.draw_map import cluster_name

        view = found.view
        leaves = [ballot_text(found.ballots.rankings[row], most=3, length=20) for row in view.rows.tolist()]
        names = [f"{cluster_name(each)} ({percent(each.share)})" for each in clustering.clusters]
        ax = plots.dendrogram(clustering.tree, clustering.shown, leaves=leaves, counts=view.counts, names=names)
        ax.set_title(plots.plain(f"{found.source.title}: ballots, and how many voters gave them"), loc="left")
        plots.save(ax, path)
        return
    from rankernel.data import row_texts

    rankings, columns = found.source.rankings, found.source.columns
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*map(plain_cell, columns), "cluster", "count", "ranking"])
        rows = zip(rows_of(rankings, clustering), rankings.counts.tolist(), row_texts(rankings), strict=True)
        for row, (label, count, words) in enumerate(rows):
            kept = [plain_cell(str(values[row])) for values in columns.values()]
            writer.writerow([*kept, plain_cell(clustering.clusters[label].name), count, plain_cell(words)])


def as_json(job: Job, clustering: Clustering) -> dict[str, Any]:
    """Return the clusters for machines."""
    items = job.source.rankings.items
    clusters = [
        {
            "name": each.name,
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


def show(facts: dict[str, str], job: Job, clustering: Clustering) -> None:
    """Print the clusters for people."""
    from rich.table import Table

    from rankernel.analysis.phrases import ballot_text, cut, percent
    from rankernel.pages.draw_bars import striking

    screen = console()
    show_facts(screen, facts)
    items = job.source.rankings.items
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for name in ("", "voters", "", "consensus", "higher (+) or lower (−) than usual, in places"):
        table.add_column(name, justify="right" if name == "voters" else "left")
    for each in clustering.clusters:
        apart = [
            f"{'+' if each.shift[i] < 0 else '−'}{abs(each.shift[i]):.1f} {cut(items[i], 20)}"
            for i in striking(each.shift, 4)
        ]
        consensus = ballot_text(each.consensus, most=5, length=20)
        table.add_row(each.name, f"{each.n_voters:,}", percent(each.share), consensus, ", ".join(map(printable, apart)))
    screen.print()
    screen.print(table)
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

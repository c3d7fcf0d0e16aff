"""``rankernel cluster``, ``rankernel map`` and ``rankernel report``: commands that summarise the rankings of a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankernel._utils.checks import printable
from rankernel.cli.failures import UsageError
from rankernel.cli.options import Clusters, Computing, File, Linkage, Permutations, Reading, Writing
from rankernel.cli.output import (
    PICTURES,
    atomic_file,
    check_suffix,
    check_target,
    console,
    print_facts,
    print_json,
    print_table,
    progress,
    write_rows,
)
from rankernel.cli.reading import read_job, summarize_job
from rankernel.errors import RankingError, require

if TYPE_CHECKING:
    from rich.tree import Tree

    from rankernel._utils import Indices
    from rankernel.data import Data
    from rankernel.reports.clusters import Clustering
    from rankernel.reports.summary import Summary

SUFFIXES = (".csv", *PICTURES)


# ---------------------------------------------------------------------- cluster


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
        check_suffix(output, SUFFIXES)
        check_target(output, writing.force, file)
    job = read_job(file, reading, computing)
    summary = summarize_job(job, computing.seed, n_clusters=k, linkage=linkage, compare=())
    clustering = summary.clustering
    if clustering is None:
        raise RankingError("all rankings are equal; there is nothing to cluster")
    if output:
        with progress(None, "Drawing"), atomic_file(output, writing.force) as temporary:
            write_clusters(temporary, summary, clustering)
    facts: dict[str, Any] = job.facts(summary.embedding.values)
    facts["clusters"] = cluster_count_text(summary, clustering)
    if summary.view.sampled:
        facts["tree"] = f"of {sample_text(summary)}; the others join the nearest cluster"
    if output:
        facts["written"] = printable(output)
    if writing.json:
        clusters = [cluster_json(each, summary.source.rankings.items) for each in clustering.clusters]
        print_json(facts | {"found": clusters, "labels": row_clusters(summary.source.rankings, clustering)})
    else:
        print_clusters(facts, summary, clustering)


def sample_text(summary: Summary) -> str:
    """Return a description of the sample of voters that is shown."""
    return f"a random sample of {summary.wording.count_voters(summary.view.n_voters)}"


def cluster_count_text(summary: Summary, clustering: Clustering) -> str:
    """Return the number of clusters and the reason for it."""
    from rankernel.reports.clusters import MIN_BALLOTS, MIN_VOTERS

    k, evidence, words = len(clustering.clusters), clustering.evidence, summary.wording
    linkage = summary.settings.linkage
    if evidence is None:
        return f"{k} by {linkage} linkage, as requested"
    if not evidence.steps:
        minimum = f"{MIN_VOTERS} {words.voters} and {MIN_BALLOTS} distinct {words.ballot}s"
        return f"too few data to detect clusters, which needs {minimum}; choose a number with --k"
    fewest, most = min(evidence.numbers), max(evidence.numbers)
    uncertain = f"; random samples gave {fewest} to {most}" if fewest < most else ""
    if k == 1:
        return f"no significant clusters that are stable in halves of the {words.voters}{uncertain}; choose with --k"
    return f"{k} by {linkage} linkage, which are significant and stable{uncertain}; choose with --k"


def row_clusters(rankings: Data, clustering: Clustering) -> list[int]:
    """Return the cluster of each row of the data."""
    _, inverse = rankings.unique_indices()
    return [int(label) for label in clustering.labels[inverse]]


def write_clusters(path: Path, summary: Summary, clustering: Clustering) -> None:
    """Write the cluster of each row, or a picture of the dendrogram."""
    if path.suffix.lower() == ".csv":
        rows = row_clusters(summary.source.rankings, clustering)
        write_rows(path, *labelled_rows(summary, ["cluster"], ([clustering.clusters[row].name] for row in rows)))
        return
    from rankernel import plots
    from rankernel.reports.text import ballot_text, percent

    view, words, rankings = summary.view, summary.wording, summary.ballots.rankings
    leaves = [ballot_text(rankings[row], limit=3, length=20, approvals=words.approvals) for row in view.rows.tolist()]
    names, labels = None, None
    if summary.grouped:
        names = [f"{each.title} ({percent(each.share)} of all)" for each in clustering.clusters]
        labels = clustering.shown
    ax = plots.dendrogram(clustering.tree, groups=labels, leaves=leaves, counts=view.counts, names=names)
    title = f"{summary.source.title}: the most common {words.ballot} of each branch, and its {words.voters}"
    ax.set_title(plots.escape_math(title), loc="left")
    plots.save(ax, path)


def labelled_rows(summary: Summary, header: list[str], cells: Any) -> tuple[list[str], Iterator[list[Any]]]:
    """Return header and rows of a .csv: label columns, the given cells, count and ranking of each row of the data."""
    from rankernel.data import format_rows

    rankings, columns = summary.source.rankings, summary.source.columns
    labels = zip(*columns.values(), strict=True) if columns else ((),) * len(rankings)
    rows = zip(labels, cells, rankings.counts.tolist(), format_rows(rankings), strict=True)
    return (
        [*columns, *header, "count", "ranking"],
        ([*map(str, label), *row, count, text] for label, row, count, text in rows),
    )


def cluster_json(cluster: Any, items: tuple[str, ...]) -> dict[str, Any]:
    """Return a cluster for JSON."""
    order = cluster.consensus.to_orders()[0]
    return {
        "name": cluster.name,
        "mark": cluster.distinction.label,
        "n_voters": cluster.n_voters,
        "share": cluster.share,
        "consensus": [sorted(bucket) if isinstance(bucket, set) else bucket for bucket in order],
        "shift": dict(zip(items, cluster.shift.round(4).tolist(), strict=True)),
    }


def print_clusters(facts: dict[str, str], summary: Summary, clustering: Clustering) -> None:
    """Print the clusters as text."""
    from rankernel.reports.clusters import largest_shifts
    from rankernel.reports.text import ballot_text, percent, short_names

    screen = console()
    print_facts(screen, facts)
    words, items = summary.wording, short_names(summary.ballots.rankings.items, 20)
    marks = short_names(tuple(each.distinction.label for each in clustering.clusters), 40)
    rows = [["", words.voters, "", "distinction", "consensus", f"higher or lower than overall, in {words.unit}"]]
    for each, mark in zip(clustering.clusters, marks, strict=True):
        largest = largest_shifts(each.shift, words.min_shift, limit=4)
        shifts = ", ".join(f"{words.signed_shift(float(each.shift[item]))} {items[item]}" for item in largest)
        consensus = ballot_text(each.consensus, limit=5, length=20)
        distinction = mark if summary.grouped else ""
        rows.append([each.name, f"{each.n_voters:,}", percent(each.share), distinction, consensus, shifts])
    screen.print()
    print_table(screen, rows)
    if summary.grouped:
        screen.print()
        screen.print(text_tree(clustering))


def text_tree(clustering: Clustering) -> Tree:
    """Return the dendrogram of the clusters as text, the last merge first."""
    from rich.text import Text
    from rich.tree import Tree

    tree, n_leaves, k = clustering.tree, len(clustering.tree) + 1, len(clustering.clusters)

    def first_leaf(node: int) -> int:
        while node >= n_leaves:
            node = int(tree[node - n_leaves, 0])
        return node

    def branch(node: int) -> Tree:
        if node < 2 * n_leaves - k:
            label = int(clustering.shown[first_leaf(node)])
            return Tree(Text(f"cluster {clustering.clusters[label].name}", style="bold"))
        merge = tree[node - n_leaves]
        joined = Tree(Text(f"join at {merge[2]:.3g}", style="dim"))
        joined.children.extend(branch(int(child)) for child in merge[:2])
        return joined

    return branch(2 * n_leaves - 2)


# ---------------------------------------------------------------------- map


def kernel_map(reading: Reading, computing: Computing, writing: Writing, file: File = None, k: Clusters = None) -> None:
    """Draw a map of the rankings by kernel principal components.

    The suffix of the output selects the format: a picture (.png, .svg, .pdf) or coordinates (.csv); by default map.png.
    Colours are groups with --by, else clusters.
    """
    target = writing.output or Path("map.png")
    check_suffix(target, SUFFIXES)
    check_target(target, writing.force, file)
    job = read_job(file, reading, computing)
    summary = summarize_job(job, computing.seed, n_clusters=k, compare=())
    with progress(None, "Drawing"), atomic_file(target, writing.force) as temporary:
        write_map(temporary, summary, by_group=reading.by is not None)
    facts: dict[str, Any] = job.facts(summary.embedding.values)
    facts["variance"] = " + ".join(f"{share:.0%}" for share in summary.embedding.variance)
    if summary.view.sampled and target.suffix.lower() != ".csv":
        facts["shown"] = f"{sample_text(summary)}; the axes are those of all, by Nyström features"
    facts["written"] = printable(target)
    if writing.json:
        print_json(facts)
    else:
        print_facts(console(), facts)


def write_map(path: Path, summary: Summary, by_group: bool) -> None:
    """Write a picture of the map, or its coordinates."""
    view, grouped, embedding = summary.view, summary.grouped, summary.embedding
    labels: Indices = summary.labels
    names = [each.title for each in grouped.clusters] if grouped else [""]
    if by_group:
        labels, names = summary.ballots.dominant_groups(), list(summary.ballots.groups)
    if path.suffix.lower() != ".csv":
        from rankernel import plots

        legend = names if any(names) else None
        points, shown = embedding.points[view.rows], labels[view.rows]
        ax = plots.kernel_map(points, counts=view.counts, groups=shown, names=legend, variance=embedding.variance)
        ax.set_title(plots.escape_math(summary.source.title), loc="left")
        plots.save(ax, path)
        return

    _, ballots = summary.source.rankings.unique_indices()
    cells = [
        [*embedding.points[ballot].tolist(), names[labels[ballot]] if labels[ballot] >= 0 else ""]
        for ballot in ballots.tolist()
    ]
    write_rows(path, *labelled_rows(summary, ["x", "y", "label"], cells))


# ---------------------------------------------------------------------- report

Noun = Annotated[
    str | None,
    typer.Option(
        "--noun",
        metavar="WORD",
        help="What is ranked, such as candidate or film; guessed from the file by default.",
        show_default=False,
    ),
]
Voter = Annotated[str, typer.Option("--voter", metavar="WORD", help="Who ranks, such as judge or search engine.")]
Groups = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="NAME", help="Group of --by to compare; may be repeated. By default all groups."),
]
Title = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Title of the page.", show_default=False)]


def report(
    reading: Reading,
    computing: Computing,
    writing: Writing,
    file: File = None,
    title: Title = None,
    noun: Noun = None,
    voter: Voter = "voter",
    group: Groups = None,
    k: Clusters = None,
    linkage: Linkage = "ward",
    permutations: Permutations = 999,
) -> None:
    """Write a page about rankings: map, clusters, dendrogram, preferences, tests between groups.

    The page is one HTML file without external resources; by default report.html.
    """
    require("jinja2", "report")
    target = writing.output or Path("report.html")
    if target.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"-o {printable(target.name)} does not end in .html")
    check_target(target, writing.force, file)
    job = read_job(file, reading, computing)
    if group and job.source.groups is None:
        raise UsageError("--group is for the groups of a file; give their column with --by")
    source = replace(
        job.source,
        title=printable(title or job.source.title),
        noun=printable(noun or job.source.noun),
        voter=printable(voter or job.source.voter),
    )
    job = replace(job, source=source)
    settings: dict[str, Any] = {"n_clusters": k, "linkage": linkage, "n_permutations": permutations}
    summary = summarize_job(job, computing.seed, **settings, compare=tuple(group) if group else None)

    from rankernel.reports.page import render_page

    with atomic_file(target, writing.force) as temporary:
        temporary.write_text(render_page(summary), encoding="utf-8")
    facts = job.facts(summary.embedding.values)
    if summary.view.sampled:
        facts["shown"] = f"{sample_text(summary)}; the map is of all, by Nyström features"
    facts["written"] = printable(target)
    if writing.json:
        print_json(facts | {"notes": summary.notes})
        return
    screen = console()
    print_facts(screen, facts)
    for note in summary.notes:
        screen.print(f"note: {note}", style="dim")

"""The commands of the command line; test has its own module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from rankernel import __version__
from rankernel._utils.checks import printable
from rankernel.cli.compare_command import compare
from rankernel.cli.options import (
    COMPUTING,
    OUTPUT,
    Clusters,
    Computing,
    File,
    Linkage,
    Permutations,
    Reading,
    Seed,
    Showing,
    Writing,
    choice,
    read_battles,
    read_job,
    read_source,
    summarize_job,
    with_options,
)
from rankernel.cli.terminal import (
    PICTURES,
    Command,
    CommandGroup,
    UsageError,
    atomic_file,
    check_suffix,
    check_target,
    console,
    listed,
    print_facts,
    print_json,
    print_table,
    progress,
    write_rows,
)
from rankernel.data import format_rows, with_counts
from rankernel.errors import RankingError, require
from rankernel.rankings import Rankings, sum_counts
from rankernel.reports.ballots import Source
from rankernel.reports.text import plural

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.tree import Tree

    from rankernel._utils import Indices
    from rankernel.data import Data
    from rankernel.gram.plan import Plan
    from rankernel.reports.clusters import Clustering
    from rankernel.reports.summary import Summary

# ---------------------------------------------------------------------- info and clean

N_MOST_COMMON = 5
SHOWN_ITEMS = 30
Merge = Annotated[
    bool, typer.Option("--merge", help="Write equal ballots once, with their count.", rich_help_panel=OUTPUT)
]
Raw = Annotated[
    bool,
    typer.Option("--raw", help="Write names unchanged that a spreadsheet evaluates, as =1+1.", rich_help_panel=OUTPUT),
]


def info(reading: Reading, showing: Showing, file: File = None) -> None:
    """Describe a file: rankings, items, kinds of rankings, most common ballots."""
    source = read_source(file, reading)
    with progress(None, "Counting"):
        facts = describe(source)
    if showing.json:
        print_json(facts)
    else:
        print_description(source, facts)


def describe(source: Source) -> dict[str, Any]:
    """Return the numbers that describe rankings."""
    rankings = source.rankings
    first, inverse = rankings.unique_indices()
    distinct = with_counts(rankings[first], sum_counts(rankings.counts, inverse, len(first)))
    kinds, kind_of_distinct = np.unique(distinct.kinds(), return_inverse=True)
    n_rows = np.bincount(kind_of_distinct[inverse], minlength=len(kinds))
    n_voters = sum_counts(distinct.counts, kind_of_distinct, len(kinds))
    common = distinct[(-distinct.counts).argsort(kind="stable")[:N_MOST_COMMON]]
    facts: dict[str, Any] = {
        "title": source.title,
        "origin": source.origin,
        "n_rankings": len(rankings),
        "n_distinct": len(distinct),
        "n_voters": rankings.n_voters,
        "n_items": rankings.n_items,
        "items": list(rankings.items),
        "kinds": dict(zip(kinds.tolist(), n_rows.tolist(), strict=True)),
        "voters_by_kind": dict(zip(kinds.tolist(), n_voters.tolist(), strict=True)),
        "largest_count": int(distinct.counts.max()),
        "most_common": [
            {"ballot": text, "voters": count}
            for text, count in zip(format_rows(common), common.counts.tolist(), strict=True)
        ],
        "unlisted": source.reading,
    }
    read_as = [f"Read as {source.about.format}."] if source.about else []
    description = source.description or " ".join(read_as + source.provenance)
    if description:
        facts["description"] = description
    if source.groups is not None:
        groups, of_row = source.named_groups
        sizes = sum_counts(rankings.counts, of_row, len(groups))
        facts["by"], facts["groups"] = source.group_name, dict(zip(groups, sizes.tolist(), strict=True))
    return facts


def print_description(source: Source, facts: dict[str, Any]) -> None:
    """Print the description of rankings as text."""
    screen = console()
    screen.print(source.title, style="bold")
    if "description" in facts:
        screen.print(facts["description"], style="dim")
    rows = {
        "rankings": f"{plural(facts['n_rankings'], 'row')}, {facts['n_distinct']:,} distinct, "
        f"{plural(facts['n_voters'], 'voter')}",
        "kinds": ", ".join(f"{number:,} {kind}" for kind, number in facts["kinds"].items()),
        "items": f"{facts['n_items']:,}: {listed(source.rankings.items, SHOWN_ITEMS)}",
        "read as": facts["unlisted"],
    }
    if "groups" in facts:
        groups = facts["groups"].items()
        rows[f"by {source.group_name}"] = ", ".join(f"{group} {plural(voters, 'voter')}" for group, voters in groups)
    print_facts(screen, rows)
    screen.print("most common:", style="dim")
    n_digits = len(f"{facts['largest_count']:,}")
    for each in facts["most_common"]:
        screen.print(f"  {each['voters']:>{n_digits},} × {each['ballot']}", no_wrap=True, overflow="ellipsis")


def clean(reading: Reading, writing: Writing, file: File = None, merge: Merge = False, raw: Raw = False) -> None:
    """Read ballots, repair them, drop blank ones, and write them with the number of repairs.

    The suffix of the output selects the format: .csv (one column per item with ranks, and all columns that are not
    ballots), PrefLib (.soc .soi .toc .toi .cat), or .blt.
    """
    from rankernel.io.registry import FORMATS
    from rankernel.io.source import Repairs

    target = writing.output
    if target is None:
        raise UsageError("give the file to write with -o, such as -o clean.csv")
    suffix = Path(target.name.lower().removesuffix(".gz")).suffix
    writers = {suffix: known for known in FORMATS.values() if known.write for suffix in known.suffixes}
    if suffix not in writers:
        raise UsageError(f"-o {printable(target.name)} does not end in {', '.join(writers)}")
    check_target(target, writing.force, file)
    chosen = writers[suffix]
    source = read_source(file, reading)
    unused = source.rankings.source.ignored if source.rankings.source is not None else ()
    unused = tuple(name for name in unused if name and name not in reading.options.get("ignore", ()))
    if unused and chosen.name == "table" and not merge:  # columns that are not ballots are retained
        labels = [*reading.options.get("label_columns", ()), *unused]
        source = read_source(file, replace(reading, options=reading.options | {"label_columns": labels}))
    rankings = source.rankings
    if not isinstance(rankings, Rankings):
        raise RankingError(f"{source.origin} holds comparisons, which need no repairs; clean is for ballots")
    columns: dict[str, Any] = {"raw": raw} if chosen.name == "table" else {}
    if chosen.name == "table" and not merge:
        columns["labels"] = rankings.labels
    elif (reading.by or "label_columns" in reading.options) and not merge:
        raise UsageError(
            f"{printable(target.name)} has no columns for --by and --labels; write a .csv, or give --merge"
        )
    assert chosen.write is not None
    with progress(None, "Writing"):
        chosen.write(rankings.unique() if merge else rankings, target, overwrite=writing.force, **columns)
    repairs = Repairs() if rankings.source is None else rankings.source.repairs
    words = source.wording
    facts: dict[str, Any] = {
        "data": f"{source.title}: {words.count_voters(rankings.n_voters)}, {words.count_items(rankings.n_items)}",
        "read as": source.reading,
        "repaired": asdict(repairs) if writing.json else str(repairs) if repairs else "nothing changed",
        "written": printable(target),
    }
    if writing.json:
        print_json(facts)
    else:
        print_facts(console(), facts)


# ---------------------------------------------------------------------- gram

CHUNKED = (".npy", ".zarr")  # written in chunks, never wholly in memory, and resumed after an interruption
MATRIX_SUFFIXES = (*CHUNKED, ".npz", ".csv")
SIDE = 1024  # of the blocks after which the progress bar advances
CORNER = 6

Distinct = Annotated[
    bool,
    typer.Option("--distinct", help="One row for each distinct ranking.", rich_help_panel=COMPUTING),
]
DType = Annotated[str, choice("--dtype", ("float64", "float32"), "Precision of the matrix.", OUTPUT)]
OnlyPlan = Annotated[
    bool, typer.Option("--plan", help="Only print the plan: the method and its time.", rich_help_panel=COMPUTING)
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue an interrupted .npy or .zarr.", rich_help_panel=OUTPUT)
]


def gram(
    reading: Reading,
    computing: Computing,
    writing: Writing,
    file: File = None,
    distinct: Distinct = False,
    plan: OnlyPlan = False,
    dtype: DType = "float64",
    resume: Resume = False,
) -> None:
    """Compute the Gram matrix of the rankings in a file.

    The suffix of the output selects the format: .npy; .zarr; .npz (with counts, ranks and items); .csv. Without -o, a
    corner of the matrix is printed. A matrix in .npy or .zarr may be larger than memory.
    """
    output, force, json = writing.output, writing.force, writing.json
    suffix = output.suffix.lower() if output else ""
    if output:
        check_suffix(output, MATRIX_SUFFIXES)
    if resume and suffix not in CHUNKED:
        raise UsageError("--resume is for -o NAME.npy and -o NAME.zarr, which are written in chunks")
    if output and not plan:
        check_target(output, force or resume, file, folder=suffix == ".zarr")
        if suffix in CHUNKED:
            from rankernel.gram.storage import Target

            Target(output)  # an error if other files have the names of an unfinished matrix
    job = read_job(file, reading, computing)
    with progress(None, "Planning"):
        X = job.source.rankings.unique() if distinct else job.source.rankings
        planned = job.kernel.plan(X, method=job.method)
    if plan:
        if json:
            names = ("details", "reason", "seconds", "bytes")
            plain = {"kernel": str(planned.kernel), "method": str(planned.method), "shape": list(planned.shape)}
            print_json(plain | {name: getattr(planned, name) for name in names})
        else:
            console().print(str(planned))
        return
    corner = errors = None
    if output and suffix in CHUNKED:
        store(output, planned, dtype, resume, force)
    else:
        corner = compute(output, planned, X, dtype, force)
        if corner is not None:
            estimated = planned._part(slice(0, CORNER)).estimate().stderr
            errors = estimated if estimated.any() else None
    facts: dict[str, Any] = job.facts(planned.details) | {"shape": list(planned.shape)}
    if output:
        facts["written"] = printable(output)
    if json:
        shown = {} if corner is None else {"corner": corner, "corner_standard_errors": errors}
        print_json(facts | job.sizes | shown)
        return
    facts["shape"] = " × ".join(f"{side:,}" for side in planned.shape)
    screen = console()
    print_facts(screen, facts)
    for name, block in (("", corner), ("standard errors", errors)):
        if block is not None:
            screen.print(name, style="dim", end="\n" if name else "")
            for row in block:
                screen.print("  " + "  ".join(f"{value:8.5f}" for value in row))


def store(output: Path, plan: Plan, dtype: str, resume: bool, force: bool) -> None:
    """Write the matrix in chunks; an interruption notes how to continue."""
    from rankernel.gram.storage import Target

    try:
        with progress(1, "Gram matrix", even=True) as step:

            def advance(done: int, total: int) -> None:
                step("Gram matrix", done, total)

            plan.store(output, dtype=dtype, resume=resume, overwrite=force, progress=advance)
    except (KeyboardInterrupt, SystemExit) as stop:
        work = Target(output).work
        if work.exists():
            stop.add_note(f"finished chunks are stored in {printable(work)}; the same command with --resume continues")
        raise


def compute(output: Path | None, plan: Plan, X: Data, dtype: str, force: bool) -> NDArray[Any] | None:
    """Compute the matrix in memory, and write it or return its corner."""
    import numpy as np

    from rankernel._utils.resources import check_disk_space, check_memory

    check_memory(plan.shape, dtype)
    if output is not None:
        bytes_per_value = {".csv": 2, ".npz": np.dtype(dtype).itemsize}[output.suffix.lower()]  # at least
        check_disk_space(output, bytes_per_value * plan.shape[0] * plan.shape[1])
    matrix = np.empty(plan.shape, dtype=dtype)
    n_rows = -(-plan.shape[0] // SIDE)
    with progress(n_rows * (n_rows + 1) // 2, "Gram matrix", even=True) as step:
        for rows, columns, values in plan.blocks(side=SIDE):
            matrix[rows, columns] = values
            matrix[columns, rows] = values.T
            step("Gram matrix")
    if output is None:
        return matrix[:CORNER, :CORNER]
    with progress(None, "Writing"), atomic_file(output, force) as temporary:
        write(temporary, matrix, X, str(plan.kernel))
    return None


def write(path: Path, matrix: NDArray[Any], X: Data, kernel: str) -> None:
    """Write a matrix with its data, or as text with all digits."""
    import numpy as np

    from rankernel.rankings import Rankings

    if path.suffix.lower() == ".csv":
        np.savetxt(path, matrix, delimiter=",", fmt="%.17g" if matrix.dtype == np.float64 else "%.9g")
        return
    with path.open("wb") as file:
        data = {"ranks": X.ranks} if isinstance(X, Rankings) else {"before": X.before}
        np.savez(file, gram=matrix, counts=X.counts, **data, items=np.array(X.items), kernel=np.array(kernel))


SUMMARY_SUFFIXES = (".csv", *PICTURES)


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
        check_suffix(output, SUMMARY_SUFFIXES)
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
        from rankernel.reports.findings import cluster_numbers

        clusters = [cluster_numbers(each) for each in clustering.clusters]
        labels = [clustering.clusters[row].name for row in row_clusters(summary.source.rankings, clustering)]
        reason = {"n_clusters": len(clusters), "reason": facts.pop("clusters")}
        print_json(facts | job.sizes | reason | {"clusters": clusters, "labels": labels})
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
    """Return header and rows of a .csv: label columns, the given cells, count and ranking of each row of the data.

    Rows of the file that list no item are among them, without cells, so that rows are those of the file.
    """
    from rankernel.data import format_rows

    rankings, columns, about = summary.source.rankings, summary.source.rankings.labels, summary.source.about
    labels = zip(*columns.values(), strict=True) if columns else ((),) * len(rankings)
    rows = zip(labels, cells, rankings.counts.tolist(), format_rows(rankings), strict=True)

    blank = dict(zip(about.blank_rows, range(len(about.blank_rows)), strict=True)) if about is not None else {}

    def all_rows() -> Iterator[list[Any]]:
        for index in range(len(rankings) + len(blank)):
            if index in blank and about is not None:
                yield [*(about.blank_labels[name][blank[index]] for name in columns), *[""] * len(header), "", ""]
                continue
            label, row, count, text = next(rows)
            yield [*map(str, label), *row, count, text]

    return [*columns, *header, "count", "ranking"], all_rows()


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
    check_suffix(target, SUMMARY_SUFFIXES)
    check_target(target, writing.force, file)
    job = read_job(file, reading, computing)
    summary = summarize_job(job, computing.seed, n_clusters=k, compare=())
    with progress(None, "Drawing"), atomic_file(target, writing.force) as temporary:
        write_map(temporary, summary, by_group=reading.by is not None)
    facts: dict[str, Any] = job.facts(summary.embedding.values)
    if summary.view.sampled and target.suffix.lower() != ".csv":
        facts["shown"] = f"{sample_text(summary)}; the axes are those of all, by Nyström features"
    facts["written"] = printable(target)
    if writing.json:
        header, rows = map_rows(summary, by_group=reading.by is not None)
        points = [dict(zip(header, row, strict=True)) for row in rows]
        print_json(facts | job.sizes | {"variance": summary.embedding.variance, "points": points})
    else:
        variance = " + ".join(f"{share:.0%}" for share in summary.embedding.variance)
        print_facts(console(), facts | {"variance": variance})


def map_labels(summary: Summary, by_group: bool) -> tuple[Indices, list[str]]:
    """Return the cluster or group of each ballot, -1 for none, and their names."""
    if by_group:
        return summary.ballots.dominant_groups(), list(summary.ballots.groups)
    return summary.labels, [each.title for each in summary.grouped.clusters] if summary.grouped else [""]


def map_rows(summary: Summary, by_group: bool) -> tuple[list[str], Iterator[list[Any]]]:
    """Return header and rows of the coordinates of the map."""
    labels, names = map_labels(summary, by_group)
    _, ballots = summary.source.rankings.unique_indices()
    cells = [
        [*summary.embedding.points[ballot].tolist(), names[labels[ballot]] if labels[ballot] >= 0 else ""]
        for ballot in ballots.tolist()
    ]
    return labelled_rows(summary, ["x", "y", "label"], cells)


def write_map(path: Path, summary: Summary, by_group: bool) -> None:
    """Write a picture of the map, or its coordinates."""
    view, embedding, (labels, names) = summary.view, summary.embedding, map_labels(summary, by_group)
    if path.suffix.lower() != ".csv":
        from rankernel import plots

        legend = names if any(names) else None
        points, shown = embedding.points[view.rows], labels[view.rows]
        ax = plots.kernel_map(points, counts=view.counts, groups=shown, names=legend, variance=embedding.variance)
        ax.set_title(plots.escape_math(summary.source.title), loc="left")
        plots.save(ax, path)
        return
    write_rows(path, *map_rows(summary, by_group))


# ---------------------------------------------------------------------- report

PAGE = "Page"
Noun = Annotated[
    str | None,
    typer.Option(
        "--noun",
        metavar="WORD",
        help="What is ranked, such as candidate or film; guessed from the file by default.",
        show_default=False,
        rich_help_panel=PAGE,
    ),
]
Voter = Annotated[
    str | None,
    typer.Option(
        "--voter",
        metavar="WORD",
        help="Who ranks, such as judge or search engine; voter by default.",
        show_default=False,
        rich_help_panel=PAGE,
    ),
]
Groups = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        metavar="NAME",
        help="Group of --by to compare; may be repeated. By default all groups.",
        rich_help_panel=COMPUTING,
    ),
]
Sample = Annotated[
    bool | None,
    typer.Option(
        "--sample/--census",
        help="Whether the voters are a sample, whose closest contest gets an interval, or a full count. By default "
        "rankings of candidates are a full count.",
        show_default=False,
        rich_help_panel=PAGE,
    ),
]
Title = Annotated[
    str | None,
    typer.Option("--title", metavar="TEXT", help="Title of the page.", show_default=False, rich_help_panel=PAGE),
]


def report(
    reading: Reading,
    computing: Computing,
    writing: Writing,
    file: File = None,
    title: Title = None,
    noun: Noun = None,
    voter: Voter = None,
    sample: Sample = None,
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
    job = read_job(file, reading, computing, battles=True)
    if group and not job.source.named_groups[0]:
        raise UsageError("--group is for the groups of a file; give their column with --by")
    source = replace(
        job.source,
        title=printable(title or job.source.title),
        noun=printable(noun or job.source.noun),
        voter=printable(voter or job.source.voter),
        sample=sample,
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
        from rankernel.reports.findings import findings_of

        print_json(facts | findings_of(summary))
        return
    screen = console()
    print_facts(screen, facts)
    for note in summary.notes:
        screen.print(f"note: {note}", style="dim")


# ---------------------------------------------------------------------- leaderboard

SCORES = ("bradley_terry", "borda", "copeland", "mean_rank")
ScoreName = Annotated[
    str | None, choice("--score", SCORES, "Score; by default bradley_terry for comparisons, else borda.", COMPUTING)
]
ConfidenceLevel = Annotated[
    float,
    typer.Option(
        "--confidence-level", min=0, max=1, metavar="P", help="Confidence of all intervals.", rich_help_panel=COMPUTING
    ),
]
Resamples = Annotated[
    int, typer.Option("--resamples", min=20, metavar="N", help="Number of resamples.", rich_help_panel=COMPUTING)
]


def leaderboard(
    reading: Reading,
    writing: Writing,
    file: File = None,
    score: ScoreName = None,
    confidence_level: ConfidenceLevel = 0.95,
    resamples: Resamples = 1000,
    seed: Seed = 0,
) -> None:
    """Rank the items by a score, with the ranks that the data supports.

    The file contains comparisons (model_a, model_b, winner), rankings, or scores of tasks. The suffix of the output
    selects the format: a table (.csv) or a picture (.png, .svg, .pdf). With --by there is one leaderboard per group.
    """
    from rankernel.models.leaderboard import leaderboard as compute_leaderboard

    if writing.output is not None:
        check_suffix(writing.output, SUMMARY_SUFFIXES)
        check_target(writing.output, writing.force, file)
        if reading.by is not None and writing.output.suffix.lower() != ".csv":
            raise UsageError("a picture shows one leaderboard: leave out --by, or write a .csv file")
    data, by, described = read_items(file, reading)
    options: dict[str, Any] = {"score": score, "confidence_level": confidence_level, "n_resamples": resamples}
    with progress(None, "Resampling"):
        found = compute_leaderboard(data, by=by, rng=seed, **options)
    boards = found if isinstance(found, dict) else {"": found}
    if writing.output is not None:
        with atomic_file(writing.output, writing.force) as temporary:
            write_leaderboards(temporary, boards, reading.by)
    written = {} if writing.output is None else {"written": printable(writing.output)}
    if writing.json:
        print_json({**described, "leaderboards": {name: board.rows() for name, board in boards.items()}, **written})
        return
    screen = console()
    print_facts(screen, described | written)
    for name, board in boards.items():
        head, *table = str(board).splitlines()
        screen.print(f"\n{printable(name)}" * bool(name) + f"\n{head}", markup=False, highlight=False)
        screen.print("\n".join(table), markup=False, highlight=False, soft_wrap=True)


def read_items(file: Path | None, reading: Reading) -> tuple[Any, Any, dict[str, str]]:
    """Return rankings or comparisons, the groups of --by, and a description."""
    with progress(None, "Reading"):
        data = None if file is None else read_battles(file, reading)
    if file is not None and data is not None:
        return data, reading.by, {"read": printable(file.name), "as": data.source.format}
    source = read_source(file, reading)
    return source.rankings, source.groups if reading.by else None, {"read": source.title}


def write_leaderboards(path: Path, boards: dict[str, Any], column: str | None) -> None:
    """Write leaderboards as a table, or a single one as a picture."""
    if path.suffix.lower() != ".csv":
        from rankernel import plots

        plots.save(boards[""].plot(), path)
        return
    rows = [([name] if column else []) + list(row.values()) for name, board in boards.items() for row in board.rows()]
    first = next(iter(boards.values())).rows()[0]
    write_rows(path, [*([column] if column else []), *first], rows)


# ---------------------------------------------------------------------- the commands

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        "Try **rankernel report** without a file: it writes a page about the bundled example. "
        "Files: PrefLib (.soc .soi .toc .toi .cat), .blt, .csv, cast vote records (.csv .xlsx .json .zip), plain or "
        "gzipped. "
        "Exit codes: 0 success, 1 invalid data, 2 invalid command line, 130 interrupted, 143 terminated."
    ),
)


def print_version(wanted: bool) -> None:
    """Print the version and exit."""
    if wanted:
        typer.echo(f"rankernel {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Kernel methods for full and partial rankings: Gram matrices, tests, clusters, maps, reports."""


COMMANDS: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
    "info": (info, ("votes.soi", "votes.csv --count n --json")),
    "clean": (clean, ("cvr.csv -o ballots.csv", "cvr.zip --contest Mayor -o mayor.blt")),
    "gram": (gram, ("votes.soi -o K.npy", "votes.soi --kernel kendall -o K.csv", "votes.soi -o K.zarr")),
    "test": (
        compare,
        ("north.soi south.soi", "votes.csv --by district --permutations 9999", "votes.csv --by district --sequential"),
    ),
    "cluster": (cluster, ("votes.soi --k 10", "votes.soi --k 4 -o labels.csv")),
    "map": (kernel_map, ("votes.soi", "votes.csv --by district -o map.png", "votes.soi -o map.csv")),
    "leaderboard": (
        leaderboard,
        ("battles.csv", "battles.csv --by language", "votes.soi --score copeland -o ranks.png"),
    ),
    "report": (report, ("", "votes.soi -o votes.html", "votes.csv --by district")),
}
for name, (command, examples) in COMMANDS.items():
    lines = "".join(f"\n\n- `{f'rankernel {name} {example}'.rstrip()}`" for example in examples)
    app.command(name, cls=Command, epilog=f"**Examples**{lines}")(with_options(command))

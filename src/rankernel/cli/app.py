"""The commands of the command line; test has its own module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from rankernel import __version__
from rankernel._utils.checks import printable
from rankernel._utils.resources import check_disk_space, check_memory
from rankernel.cli import terminal
from rankernel.cli.compare_command import compare
from rankernel.cli.options import (
    COMPUTING,
    OUTPUT,
    Computing,
    Cutting,
    File,
    Reading,
    Showing,
    Writing,
    option,
    read_battles,
    read_job,
    read_source,
    with_options,
)
from rankernel.cli.terminal import UsageError, console, print_facts, print_json, progress, show
from rankernel.data import format_rows, with_counts
from rankernel.errors import RankingError, require
from rankernel.rankings import EXHAUSTIVE, FULL, INCOMPLETE, PARTIAL, TOP_K, Rankings, sum_counts
from rankernel.reports.ballots import Source
from rankernel.reports.text import ballot_text, percent, plural, short_names

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


@dataclass(frozen=True)
class Cleaning:
    """How repaired ballots are written."""

    merge: bool = option("--merge", "Write equal ballots once, with their count.", OUTPUT, default=False)
    raw: bool = option("--raw", "Write names unchanged that a spreadsheet evaluates, as =1+1.", OUTPUT, default=False)


def info(reading: Reading, showing: Showing, file: File = None) -> None:
    """Describe a file: rankings, items, kinds of rankings, most common ballots."""
    source = read_source(file, reading)
    with progress("Counting"):
        facts = describe(source)
    if showing.json:
        print_json(facts)
    else:
        print_description(facts, source.group_name)


def describe(source: Source) -> dict[str, Any]:
    """Return the numbers that describe rankings."""
    rankings = source.rankings
    first, inverse = rankings.unique_indices()
    distinct = with_counts(rankings[first], sum_counts(rankings.counts, inverse, len(first)))
    kind, n_equal = distinct.kinds(), np.bincount(inverse)
    is_kind = {name: kind == name for name in (EXHAUSTIVE, FULL, INCOMPLETE, PARTIAL, TOP_K)}
    is_kind = {name: rows for name, rows in is_kind.items() if rows.any()}
    common = distinct[(-distinct.counts).argsort(kind="stable")[:N_MOST_COMMON]]
    facts: dict[str, Any] = {
        "title": source.title,
        "origin": source.origin,
        "n_rankings": len(rankings),
        "n_distinct": len(distinct),
        "n_voters": rankings.n_voters,
        "n_items": rankings.n_items,
        "items": list(rankings.items),
        "kinds": {name: int(n_equal[rows].sum()) for name, rows in is_kind.items()},
        "voters_by_kind": {name: int(distinct.counts[rows].sum()) for name, rows in is_kind.items()},
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


def print_description(facts: dict[str, Any], group_name: str) -> None:
    """Print the description of rankings as text."""
    screen = console()
    screen.print(facts["title"], style="bold")
    screen.print(facts.get("description", ""), style="dim", end="\n" * ("description" in facts))
    n_rows, n_voters = plural(facts["n_rankings"], "row"), plural(facts["n_voters"], "voter")
    rows = {
        "rankings": f"{n_rows}, {facts['n_distinct']:,} distinct, {n_voters}",
        "kinds": ", ".join(f"{number:,} {kind}" for kind, number in facts["kinds"].items()),
        "items": f"{facts['n_items']:,}: {terminal.listed(facts['items'], SHOWN_ITEMS)}",
        "read as": facts["unlisted"],
    }
    if "groups" in facts:
        rows[f"by {group_name}"] = ", ".join(f"{name} {plural(n, 'voter')}" for name, n in facts["groups"].items())
    print_facts(screen, rows)
    screen.print("most common:", style="dim")
    n_digits = len(f"{facts['largest_count']:,}")
    for each in facts["most_common"]:
        screen.print(f"  {each['voters']:>{n_digits},} × {each['ballot']}", no_wrap=True, overflow="ellipsis")


def clean(reading: Reading, writing: Writing, cleaning: Cleaning, file: File = None) -> None:
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
    terminal.check_target(target, writing.force, file)
    chosen = writers[suffix]
    source = read_source(file, reading)
    unused = source.rankings.source.ignored if source.rankings.source is not None else ()
    unused = tuple(name for name in unused if name and name not in reading.options.get("ignore", ()))
    if unused and chosen.name == "table" and not cleaning.merge:  # columns that are not ballots are retained
        labels = [*reading.options.get("label_columns", ()), *unused]
        source = read_source(file, replace(reading, options=reading.options | {"label_columns": labels}))
    rankings = source.rankings
    if not isinstance(rankings, Rankings):
        raise RankingError(f"{source.origin} holds comparisons, which need no repairs; clean is for ballots")
    columns: dict[str, Any] = {"raw": cleaning.raw} if chosen.name == "table" else {}
    if chosen.name == "table" and not cleaning.merge:
        columns["labels"] = rankings.labels
    elif (reading.by or "label_columns" in reading.options) and not cleaning.merge:
        name = printable(target.name)
        raise UsageError(f"{name} has no columns for --by and --labels; write a .csv, or give --merge")
    assert chosen.write is not None
    with progress("Writing"):
        chosen.write(rankings.unique() if cleaning.merge else rankings, target, overwrite=writing.force, **columns)
    repairs = Repairs() if rankings.source is None else rankings.source.repairs
    words = source.wording
    facts: dict[str, Any] = {
        "data": f"{source.title}: {words.count_voters(rankings.n_voters)}, {words.count_items(rankings.n_items)}",
        "read as": source.reading,
        "repaired": asdict(repairs) if writing.json else str(repairs) if repairs else "nothing changed",
        "written": printable(target),
    }
    show(writing.json, facts)


# ---------------------------------------------------------------------- gram

CHUNKED = (".npy", ".zarr")  # written in chunks, never wholly in memory, and resumed after an interruption
MATRIX_SUFFIXES = (*CHUNKED, ".npz", ".csv")
CORNER = 6


@dataclass(frozen=True)
class Matrix:
    """Which Gram matrix is computed, and how it is written."""

    distinct: bool = option("--distinct", "One row for each distinct ranking.", COMPUTING, default=False)
    plan: bool = option("--plan", "Only print the plan: the method and its time.", COMPUTING, default=False)
    dtype: str = option("--dtype NAME", "Precision of the matrix.", OUTPUT, "float64", choices=("float64", "float32"))
    resume: bool = option("--resume", "Continue an interrupted .npy or .zarr.", OUTPUT, default=False)


def gram(reading: Reading, computing: Computing, writing: Writing, matrix: Matrix, file: File = None) -> None:
    """Compute the Gram matrix of the rankings in a file.

    The suffix of the output selects the format: .npy; .zarr; .npz (with counts, ranks and items); .csv. Without -o, a
    corner of the matrix is printed. A matrix in .npy or .zarr may be larger than memory.
    """
    output, suffix = writing.output, writing.output.suffix.lower() if writing.output else ""
    if output:
        terminal.check_suffix(output, MATRIX_SUFFIXES)
    if matrix.resume and suffix not in CHUNKED:
        raise UsageError("--resume is for -o NAME.npy and -o NAME.zarr, which are written in chunks")
    if output and not matrix.plan:
        terminal.check_target(output, writing.force or matrix.resume, file, folder=suffix == ".zarr")
        if suffix in CHUNKED:
            from rankernel.gram.storage import Target

            Target(output)  # an error if other files have the names of an unfinished matrix
    job = read_job(file, reading, computing)
    with progress("Planning"):
        X = job.source.rankings.unique() if matrix.distinct else job.source.rankings
        plan = job.kernel.plan(X, method=job.method)
    if matrix.plan:
        if writing.json:
            names = ("details", "reason", "seconds", "bytes")
            plain = {"kernel": str(plan.kernel), "method": str(plan.method), "shape": list(plan.shape)}
            print_json(plain | {name: getattr(plan, name) for name in names})
        else:
            console().print(str(plan))
        return
    facts = job.facts(plan.details) | {"shape": " × ".join(f"{side:,}" for side in plan.shape)}
    numbers = job.sizes | {"shape": list(plan.shape)}
    if output:
        if suffix in CHUNKED:
            store(output, plan, matrix, writing.force)
        else:
            n_bytes = 2 if suffix == ".csv" else np.dtype(matrix.dtype).itemsize  # of a value, at least
            check_memory(plan.shape, matrix.dtype)
            check_disk_space(output, n_bytes * plan.shape[0] * plan.shape[1])
            with progress("Gram matrix"):
                values = plan.gram(dtype=matrix.dtype)
            with progress("Writing"), terminal.atomic_file(output, writing.force) as temporary:
                write(temporary, values, X, str(plan.kernel))
        show(writing.json, facts | {"written": printable(output)}, **numbers)
        return
    with progress("Gram matrix"):
        corner = plan._part(slice(0, CORNER)).estimate()
    errors = corner.stderr if corner.stderr.any() else None
    show(writing.json, facts, **numbers, corner=corner.value, corner_standard_errors=errors)
    for name, block in (("", corner.value), ("standard errors", errors)) if not writing.json else ():
        if block is not None:
            console().print(name, style="dim", end="\n" if name else "")
            console().print("\n".join("  " + "  ".join(f"{value:8.5f}" for value in row) for row in block))


def store(output: Path, plan: Plan, matrix: Matrix, force: bool) -> None:
    """Write the matrix in chunks; an interruption notes how to continue."""
    from rankernel.gram.storage import Target

    try:
        with progress("Gram matrix") as step:
            advance = partial(step, "Gram matrix")
            plan.store(output, dtype=matrix.dtype, resume=matrix.resume, overwrite=force, progress=advance)
    except (KeyboardInterrupt, SystemExit) as stop:
        work = Target(output).work
        if work.exists():
            stop.add_note(f"finished chunks are stored in {printable(work)}; the same command with --resume continues")
        raise


def write(path: Path, matrix: NDArray[Any], X: Data, kernel: str) -> None:
    """Write a matrix with its data, or as text with all digits."""
    if path.suffix.lower() == ".csv":
        np.savetxt(path, matrix, delimiter=",", fmt="%.17g" if matrix.dtype == np.float64 else "%.9g")
        return
    with path.open("wb") as file:
        data = {"ranks": X.ranks} if isinstance(X, Rankings) else {"before": X.before}
        np.savez(file, gram=matrix, counts=X.counts, **data, items=np.array(X.items), kernel=np.array(kernel))


# ---------------------------------------------------------------------- cluster

SUMMARY_SUFFIXES = (".csv", *terminal.PICTURES)


def cluster(reading: Reading, computing: Computing, writing: Writing, cutting: Cutting, file: File = None) -> None:
    """Cluster rankings: dendrogram, clusters, their consensus rankings.

    With -o NAME.csv the cluster of each row is written; with -o NAME.png, .svg or .pdf a picture of the dendrogram.
    """
    output = writing.output
    if output:
        terminal.check_suffix(output, SUMMARY_SUFFIXES)
        terminal.check_target(output, writing.force, file)
    job = read_job(file, reading, computing)
    summary = job.summarize(cutting, compare=())
    clustering = summary.clustering
    if clustering is None:
        raise RankingError("all rankings are equal; there is nothing to cluster")
    labels = np.array([each.name for each in clustering.clusters])[clustering.labels]
    if output:
        with progress("Drawing"), terminal.atomic_file(output, writing.force) as temporary:
            if output.suffix.lower() == ".csv":
                terminal.write_rows(temporary, *table_of_rows(summary, {"cluster": labels}))
            else:
                draw_dendrogram(temporary, summary, clustering)
    from rankernel.reports.summary import cluster_numbers, evidence_for_clusters

    facts, n_clusters = job.facts(summary.embedding.values), len(clustering.clusters)
    reason = evidence_for_clusters(summary)
    facts["clusters"] = f"{n_clusters} by {cutting.linkage} linkage; choose another number with --k"
    if summary.view.sampled:
        facts["tree"] = f"of {sample_text(summary)}; the others join the nearest cluster"
    if output:
        facts["written"] = printable(output)
    if writing.json:
        _, row_ballots = summary.source.rankings.unique_indices()
        numbers = {"n_clusters": n_clusters, "reason": reason, "labels": labels[row_ballots]}
        print_json(facts | job.sizes | numbers | {"clusters": [cluster_numbers(each) for each in clustering.clusters]})
    else:
        print_clusters(facts | {"reason": reason}, summary, clustering)


def sample_text(summary: Summary) -> str:
    """Return a description of the sample of voters that is shown."""
    return f"a random sample of {summary.wording.count_voters(summary.view.n_voters)}"


def draw_dendrogram(path: Path, summary: Summary, clustering: Clustering) -> None:
    """Write a picture of the dendrogram."""
    from rankernel import plots

    view, words, rankings = summary.view, summary.wording, summary.ballots.rankings
    leaves = [ballot_text(rankings[row], limit=3, length=20, approvals=words.approvals) for row in view.rows.tolist()]
    named: dict[str, Any] = {}
    if summary.grouped:
        names = [f"{each.title} ({percent(each.share)} of all)" for each in clustering.clusters]
        named = {"groups": clustering.shown, "names": names}
    ax = plots.dendrogram(clustering.tree, leaves=leaves, counts=view.counts, **named)
    nouns = words.nouns
    title = f"{summary.source.title}: the most common {nouns['ballot']} of each branch, and its {nouns['voters']}"
    ax.set_title(plots.escape_math(title), loc="left")
    plots.save(ax, path)


def table_of_rows(summary: Summary, columns: dict[str, NDArray[Any]]) -> tuple[list[str], Iterator[list[Any]]]:
    """Return header and rows of a .csv: labels, given values of each ballot, count and ranking of each row of the data.

    Rows of the file that list no item are among them, without values, so that rows are those of the file.
    """
    rankings, about = summary.source.rankings, summary.source.about
    _, row_ballots = rankings.unique_indices()
    labels: list[Iterable[Any]] = [values.astype(str) for values in rankings.labels.values()]
    values = [column[row_ballots].tolist() for column in columns.values()]
    stated = zip(*labels, *values, rankings.counts.tolist(), format_rows(rankings), strict=True)
    blank = {row: number for number, row in enumerate(about.blank_rows)} if about else {}

    def all_rows() -> Iterator[list[Any]]:
        for index in range(len(rankings) + len(blank)):
            if about and index in blank:
                blanks = [about.blank_labels[name][blank[index]] for name in rankings.labels]
                yield [*blanks, *[""] * (len(columns) + 2)]
            else:
                yield list(next(stated))

    return [*rankings.labels, *columns, "count", "ranking"], all_rows()


def print_clusters(facts: dict[str, str], summary: Summary, clustering: Clustering) -> None:
    """Print the clusters as text."""
    from rankernel.reports.clusters import largest_shifts

    screen = console()
    print_facts(screen, facts)
    words, items = summary.wording, short_names(summary.ballots.rankings.items, 20)
    marks = short_names(tuple(each.distinction.label for each in clustering.clusters), 40)
    shift_head = f"higher or lower than overall, in {words.nouns['unit']}"
    rows = [["", words.nouns["voters"], "", "distinction", "consensus", shift_head]]
    for each, mark in zip(clustering.clusters, marks, strict=True):
        largest = largest_shifts(each.shift, words.min_shift, limit=4)
        shifts = ", ".join(f"{words.signed_shift(float(each.shift[item]))} {items[item]}" for item in largest)
        consensus = ballot_text(each.consensus, limit=5, length=20)
        distinction = mark if summary.grouped else ""
        rows.append([each.name, f"{each.n_voters:,}", percent(each.share), distinction, consensus, shifts])
    screen.print()
    terminal.print_table(screen, rows)
    if summary.grouped:
        screen.print()
        screen.print(text_tree(clustering))


def text_tree(clustering: Clustering) -> Tree:
    """Return the dendrogram of the clusters as text, the last merge first."""
    from rich.text import Text
    from rich.tree import Tree

    from rankernel.learn.hierarchy import node_clusters

    tree, n_leaves, k = clustering.tree, len(clustering.tree) + 1, len(clustering.clusters)
    cluster_of = node_clusters(tree, clustering.shown)

    def branch(node: int) -> Tree:
        if node < 2 * n_leaves - k:
            return Tree(Text(f"cluster {clustering.clusters[cluster_of[node]].name}", style="bold"))
        merge = tree[node - n_leaves]
        joined = Tree(Text(f"join at {merge[2]:.3g}", style="dim"))
        joined.children.extend(branch(int(child)) for child in merge[:2])
        return joined

    return branch(2 * n_leaves - 2)


# ---------------------------------------------------------------------- map


def kernel_map(reading: Reading, computing: Computing, writing: Writing, cutting: Cutting, file: File = None) -> None:
    """Draw a map of the rankings by kernel principal components.

    The suffix of the output selects the format: a picture (.png, .svg, .pdf) or coordinates (.csv); by default map.png.
    Colours are groups with --by, else clusters.
    """
    target = writing.output or Path("map.png")
    terminal.check_suffix(target, SUMMARY_SUFFIXES)
    terminal.check_target(target, writing.force, file)
    job = read_job(file, reading, computing)
    summary = job.summarize(cutting, compare=())
    if reading.by is not None:
        labels, names = summary.ballots.dominant_groups(), list(summary.ballots.groups)
    else:
        labels, names = summary.labels, [each.title for each in summary.grouped.clusters] if summary.grouped else [""]
    x, y = summary.embedding.points.T
    header, rows = table_of_rows(summary, {"x": x, "y": y, "label": np.array([*names, ""])[labels]})
    points, is_table = list(rows), target.suffix.lower() == ".csv"
    with progress("Drawing"), terminal.atomic_file(target, writing.force) as temporary:
        if is_table:
            terminal.write_rows(temporary, header, points)
        else:
            draw_map(temporary, summary, labels, names)
    facts = job.facts(summary.embedding.values)
    if summary.view.sampled and not is_table:
        facts["shown"] = f"{sample_text(summary)}; the axes are those of all, by Nyström features"
    facts["written"] = printable(target)
    if writing.json:
        records = [dict(zip(header, point, strict=True)) for point in points]
        print_json(facts | job.sizes | {"variance": summary.embedding.variance, "points": records})
    else:
        print_facts(console(), facts | {"variance": " + ".join(f"{share:.0%}" for share in summary.embedding.variance)})


def draw_map(path: Path, summary: Summary, labels: Indices, names: list[str]) -> None:
    """Write a picture of the map; ``labels`` are the cluster or group of each ballot, -1 for none."""
    from rankernel import plots

    view, embedding = summary.view, summary.embedding
    legend = names if any(names) else None
    points, shown = embedding.points[view.rows], labels[view.rows]
    ax = plots.kernel_map(points, counts=view.counts, groups=shown, names=legend, variance=embedding.variance)
    ax.set_title(plots.escape_math(summary.source.title), loc="left")
    plots.save(ax, path)


# ---------------------------------------------------------------------- report

PAGE = "Page"
NOUN_HELP = "What is ranked, such as candidate or film; guessed from the file by default."
SAMPLE_HELP = (
    "Whether the voters are a sample, whose closest contest gets an interval, or a full count. By default rankings of "
    "candidates are a full count."
)


@dataclass(frozen=True)
class Page:
    """The words of the page, and which groups it compares."""

    title: str | None = option("--title TEXT", "Title of the page.", PAGE)
    noun: str | None = option("--noun WORD", NOUN_HELP, PAGE)
    voter: str | None = option("--voter WORD", "Who ranks, such as judge or search engine; voter by default.", PAGE)
    sample: bool | None = option("--sample/--census", SAMPLE_HELP, PAGE)
    group: list[str] | None = option(
        "--group NAME", "Group of --by to compare; may be repeated. By default all groups.", COMPUTING
    )
    permutations: int = option("--permutations N", "Number of permutations.", COMPUTING, 999, min=1)


def report(
    reading: Reading, computing: Computing, writing: Writing, cutting: Cutting, page: Page, file: File = None
) -> None:
    """Write a page about rankings: map, clusters, dendrogram, preferences, tests between groups.

    The page is one HTML file without external resources; by default report.html.
    """
    require("jinja2", "report")
    target = writing.output or Path("report.html")
    if target.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"-o {printable(target.name)} does not end in .html")
    terminal.check_target(target, writing.force, file)
    job = read_job(file, reading, computing, battles=True)
    if page.group and not job.source.named_groups[0]:
        raise UsageError("--group is for the groups of a file; give their column with --by")
    words = {name: getattr(page, name) or getattr(job.source, name) for name in ("title", "noun", "voter")}
    words = {name: printable(word) for name, word in words.items()}
    compared = tuple(page.group) if page.group else None
    job = replace(job, source=replace(job.source, **words, sample=page.sample))
    summary = job.summarize(cutting, n_permutations=page.permutations, compare=compared)

    from rankernel.reports.page import render_page

    with terminal.atomic_file(target, writing.force) as temporary:
        temporary.write_text(render_page(summary), encoding="utf-8")
    facts = job.facts(summary.embedding.values)
    if summary.view.sampled:
        facts["shown"] = f"{sample_text(summary)}; the map is of all, by Nyström features"
    facts["written"] = printable(target)
    if writing.json:
        from rankernel.reports.summary import findings_of

        print_json(facts | findings_of(summary))
        return
    screen = console()
    print_facts(screen, facts)
    for note in summary.notes:
        screen.print(f"note: {note}", style="dim")


# ---------------------------------------------------------------------- leaderboard

SCORES = ("bradley_terry", "borda", "copeland", "mean_rank")
SCORE_HELP = "Score; by default bradley_terry for comparisons, else borda."


@dataclass(frozen=True)
class Scoring:
    """The score of a leaderboard and its intervals."""

    score: str | None = option("--score NAME", SCORE_HELP, COMPUTING, choices=SCORES)
    confidence_level: float = option(
        "--confidence-level P", "Confidence of all intervals.", COMPUTING, 0.95, min=0, max=1
    )
    resamples: int = option("--resamples N", "Number of resamples.", COMPUTING, 1000, min=20)
    prior: float = option(
        "--prior N", "Wins added in each direction between each two items (bradley_terry).", COMPUTING, 0.0, min=0
    )
    seed: int = option("--seed N", "Seed of the random generator.", COMPUTING, 0, min=0)


def leaderboard(reading: Reading, writing: Writing, scoring: Scoring, file: File = None) -> None:
    """Rank the items by a score, with the ranks that the data supports.

    The file contains comparisons (model_a, model_b, winner), rankings, or scores of tasks. The suffix of the output
    selects the format: a table (.csv) or a picture (.png, .svg, .pdf). With --by there is one leaderboard per group.
    """
    from rankernel.models.leaderboard import leaderboard as compute_leaderboard

    if writing.output is not None:
        terminal.check_suffix(writing.output, SUMMARY_SUFFIXES)
        terminal.check_target(writing.output, writing.force, file)
        if reading.by is not None and writing.output.suffix.lower() != ".csv":
            raise UsageError("a picture shows one leaderboard: leave out --by, or write a .csv file")
    data, by, described = read_items(file, reading)
    options: dict[str, Any] = {"score": scoring.score, "confidence_level": scoring.confidence_level}
    options |= {"n_resamples": scoring.resamples, "prior": scoring.prior, "rng": scoring.seed}
    with progress("Resampling"):
        found = compute_leaderboard(data, by=by, **options)
    boards = found if isinstance(found, dict) else {"": found}
    if writing.output is not None:
        with terminal.atomic_file(writing.output, writing.force) as temporary:
            write_leaderboards(temporary, boards, reading.by)
    written = {} if writing.output is None else {"written": printable(writing.output)}
    if writing.json:
        rows = {name: board.rows() for name, board in boards.items()}
        print_json({**described, **({"leaderboards": rows} if reading.by else {"leaderboard": rows[""]}), **written})
        return
    screen = console()
    print_facts(screen, described | written)
    for name, board in boards.items():
        head, *table = str(board).splitlines()
        screen.print(f"\n{printable(name)}" * bool(name) + f"\n{head}", markup=False, highlight=False)
        screen.print("\n".join(table), markup=False, highlight=False, soft_wrap=True)


def read_items(file: Path | None, reading: Reading) -> tuple[Any, Any, dict[str, str]]:
    """Return rankings or comparisons, the groups of --by, and a description."""
    with progress("Reading"):
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
    terminal.write_rows(path, [*([column] if column else []), *first], rows)


# ---------------------------------------------------------------------- the commands

app = typer.Typer(
    cls=terminal.CommandGroup,
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
    app.command(name, cls=terminal.Command, epilog=f"**Examples**{lines}")(with_options(command))

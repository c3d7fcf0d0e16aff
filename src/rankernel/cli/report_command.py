"""``rankernel report``: one self-contained page about some rankings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from rankernel._utils.checks import printable
from rankernel.cli.failures import UsageError
from rankernel.cli.options import Clusters, Computing, File, Linkage, Permutations, Reading, Writing
from rankernel.cli.output import atomic_file, check_target, console, print_facts, print_json
from rankernel.cli.reading import read_job, summarize_job
from rankernel.errors import require

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
        shown = summary.wording.count_voters(summary.view.n_voters)
        facts["shown"] = f"a random sample of {shown}; the map is of all, by Nyström features"
    facts["written"] = printable(target)
    if writing.json:
        print_json(facts | {"notes": summary.notes})
        return
    screen = console()
    print_facts(screen, facts)
    for note in summary.notes:
        screen.print(f"note: {note}", style="dim")

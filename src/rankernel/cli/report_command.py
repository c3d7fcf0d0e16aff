"""``rankernel report``: one self-contained page about some rankings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from rankernel._utils.checks import printable
from rankernel.cli.failures import usage
from rankernel.cli.job import read_job, summary_of
from rankernel.cli.option_words import in_options
from rankernel.cli.options import Clusters, Computing, File, Linkage, Permutations, Reading, Writing
from rankernel.cli.output import check_free, console, print_json, show_facts, whole_file

Noun = Annotated[
    str | None,
    typer.Option(
        "--noun",
        metavar="WORD",
        help="What is ranked, such as candidate or film; guessed from the file if left out.",
        show_default=False,
    ),
]
Voter = Annotated[
    str,
    typer.Option("--voter", metavar="WORD", help="Who ranks, such as judge or search engine."),
]
Groups = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="NAME", help="With --by: a group to compare; may be repeated. Else all groups."),
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

    The page is one HTML file that needs no other and no network. Without -o it is called report.html.
    """
    target = writing.output or Path("report.html")
    if target.suffix.lower() not in (".html", ".htm"):
        raise usage(f"-o {printable(target.name)} does not end in .html; a report is a page")
    check_free(target, writing.force, file)
    job = read_job(file, reading, computing)
    if group and job.source.groups is None:
        raise usage("--group is for the groups of a file; say with --by which column they are in")
    source = replace(
        job.source,
        title=printable(title or job.source.title),
        noun=printable(noun or job.source.noun),
        voter=printable(voter or job.source.voter),
    )
    job = replace(job, source=source)
    chosen = {"n_clusters": k, "linkage": linkage, "n_permutations": permutations, "groups": tuple(group or ())}
    found = summary_of(job, computing.seed, **chosen)

    from rankernel.reports.page import page

    with whole_file(target, writing.force) as temporary:
        temporary.write_text(page(found), encoding="utf-8")
    facts = job.assumptions(found.placement.values)
    if found.view.sampled:
        shown = found.words.count_voters(found.view.n_voters)
        facts["shown"] = f"{shown} taken at random; the map is made of all, by Nyström features"
    facts["written"] = printable(target)
    if writing.json:
        print_json(facts | {"notes": found.notes})
        return
    screen = console()
    show_facts(screen, facts)
    for note in found.notes:
        screen.print(f"note: {in_options(note)}", style="dim")

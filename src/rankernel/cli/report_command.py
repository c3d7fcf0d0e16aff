"""``rankernel report``: one self-contained page about some rankings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankernel.cli.failures import usage
from rankernel.cli.job import read_job, summary_of
from rankernel.cli.options import Clusters, Computing, File, Linkage, Permutations, Reading, Writing
from rankernel.cli.output import check_free, console, print_json, show_facts, whole_file
from rankernel.encoding import printable

Title = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Title of the page.", show_default=False)]


def report(
    reading: Reading,
    computing: Computing,
    writing: Writing,
    file: File = None,
    title: Title = None,
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
    found = summary_of(job, computing.seed, n_clusters=k, linkage=linkage, n_permutations=permutations)

    from dataclasses import replace

    from rankernel.pages.page import page

    if title:
        found = replace(found, source=replace(found.source, title=printable(title)))
    with whole_file(target, writing.force) as temporary:
        temporary.write_text(page(found), encoding="utf-8")
    facts = job.assumptions(found.placement.values)
    if found.view.sampled:
        facts["shown"] = f"{found.view.n_voters:,} voters taken at random; the map is made of all, by Nyström features"
    facts["written"] = printable(target)
    if writing.json:
        print_json(facts | {"notes": found.notes})
        return
    screen = console()
    show_facts(screen, facts)
    for note in found.notes:
        screen.print(f"note: {note}", style="dim")

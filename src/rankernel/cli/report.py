"""``rankernel report``: one self-contained page about some rankings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankernel.cli.computing import pose, study
from rankernel.cli.guard import usage
from rankernel.cli.options import (
    By,
    Clusters,
    Count,
    Debug,
    File,
    Force,
    Ignore,
    Json,
    KernelText,
    Layout,
    Linkage,
    MethodText,
    Output,
    Permutations,
    SeedNumber,
    Separator,
    Threads,
    UnlistedText,
)
from rankernel.cli.output import check_free, console, print_json, show_facts, whole_file
from rankernel.encoding import printable

__all__ = ["report"]

Title = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Title of the page.", show_default=False)]


def report(
    file: File = None,
    output: Output = None,
    title: Title = None,
    k: Clusters = None,
    linkage: Linkage = "ward",
    kernel: KernelText = "mallows:nu=median",
    method: MethodText = "auto",
    permutations: Permutations = 999,
    seed: SeedNumber = 0,
    threads: Threads = None,
    unlisted: UnlistedText = "last",
    by: By = None,
    count: Count = None,
    ignore: Ignore = None,
    layout: Layout = "auto",
    separator: Separator = None,
    force: Force = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Write a page about rankings: map, clusters, dendrogram, preferences, tests between groups.

    The page is one HTML file that needs no other and no network. Without -o it is called report.html.
    """
    target = output or Path("report.html")
    if target.suffix.lower() not in (".html", ".htm"):
        raise usage(f"-o {printable(target.name)} does not end in .html; a report is a page")
    check_free(target, force)
    problem = pose(file, kernel, method, seed, unlisted, by, count, ignore, layout, separator)
    found = study(problem, seed, n_clusters=k, linkage=linkage, n_permutations=permutations)

    from dataclasses import replace

    from rankernel.report.page import page

    if title:
        found = replace(found, source=replace(found.source, title=printable(title)))
    with whole_file(target, force) as temporary:
        temporary.write_text(page(found), encoding="utf-8")
    facts = problem.assumptions(found.embedding.values)
    if found.view.sampled:
        facts["shown"] = f"{found.view.n_voters:,} voters taken at random; the map is made of all, by Nyström features"
    facts["written"] = printable(target)
    if json:
        print_json(facts | {"notes": found.notes})
        return
    screen = console()
    show_facts(screen, facts)
    for note in found.notes:
        screen.print(f"note: {note}", style="dim")

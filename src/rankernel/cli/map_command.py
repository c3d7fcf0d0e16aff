"""``rankernel map``: a picture of who is near whom, by kernel principal components."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from rankernel._utils.checks import printable
from rankernel.cli.job import read_job, summary_of
from rankernel.cli.options import Clusters, Computing, File, Reading, Writing
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
from rankernel.io.spreadsheets import plain_cell

if TYPE_CHECKING:
    from rankernel._utils.arrays import Indices
    from rankernel.reports.summary import Summary


def kernel_map(reading: Reading, computing: Computing, writing: Writing, file: File = None, k: Clusters = None) -> None:
    """Draw a map of the rankings by kernel principal components.

    The ending of the output says what is written: a picture (.png, .svg, .pdf) or coordinates (.csv). Without -o it is
    map.png. Colours are groups with --by, else clusters.
    """
    target = writing.output or Path("map.png")
    check_ending(target, (".csv", *PICTURES))
    check_free(target, writing.force, file)
    job = read_job(file, reading, computing)
    found = summary_of(job, computing.seed, n_clusters=k, compare=False)
    with steps(None, "Drawing"), whole_file(target, writing.force) as temporary:
        write(temporary, found, by_group=reading.by is not None)
    facts = job.assumptions(found.placement.values)
    facts["variance"] = " + ".join(f"{share:.0%}" for share in found.placement.variance)
    if found.view.sampled and target.suffix.lower() != ".csv":
        shown = found.words.count_voters(found.view.n_voters)
        facts["shown"] = f"{shown} taken at random; the axes are those of all, by Nyström features"
    facts["written"] = printable(target)
    if writing.json:
        print_json(facts)
    else:
        show_facts(console(), facts)


def write(path: Path, found: Summary, by_group: bool) -> None:
    """Write a picture of the map, or its coordinates."""
    from rankernel.reports.draw_map import all_labels, cluster_name, strongest_group

    view, grouped = found.view, found.grouped
    labels, names = all_labels(found), [cluster_name(each) for each in grouped.clusters] if grouped else [""]
    if by_group:
        labels, names = strongest_group(found), list(found.ballots.groups)
    if path.suffix.lower() != ".csv":
        from rankernel import plots

        legend = names if any(names) else None
        points = found.placement.points[view.rows]
        ax = plots.kernel_map(points, view.counts, labels[view.rows], legend, found.placement.variance)
        ax.set_title(plots.plain(found.source.title), loc="left")
        plots.save(ax, path)
        return
    from rankernel.data import format_rows

    if found.source.columns:
        write_rows(path, found, labels, names)
        return
    rankings = found.ballots.rankings
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["x", "y", "count", "label", "ranking"])
        rows = zip(
            found.placement.points.tolist(), rankings.counts.tolist(), labels, format_rows(rankings), strict=True
        )
        for (x, y), count, label, words in rows:
            name = names[label] if label >= 0 else ""
            writer.writerow([x, y, count, plain_cell(name), plain_cell(words)])


def write_rows(path: Path, found: Summary, labels: Indices, names: list[str]) -> None:
    """Write the coordinates of each row of the data, with the columns that are kept beside it."""
    from rankernel.data import format_rows

    source = found.source
    columns, (_, ballot_of_row) = source.columns, source.rankings.unique_indices()
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*map(plain_cell, columns), "x", "y", "count", "label", "ranking"])
        rows = zip(ballot_of_row.tolist(), source.rankings.counts.tolist(), format_rows(source.rankings), strict=True)
        for row, (ballot, count, words) in enumerate(rows):
            kept = [plain_cell(str(values[row])) for values in columns.values()]
            x, y = found.placement.points[ballot].tolist()
            label = names[labels[ballot]] if labels[ballot] >= 0 else ""
            writer.writerow([*kept, x, y, count, plain_cell(label), plain_cell(words)])

"""From the name of a file to rankings, with what is known of them beside."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from rankernel._utils.checks import printable
from rankernel.cli.failures import usage
from rankernel.cli.options import Reading
from rankernel.cli.output import SHOWN_GROUPS, listed, steps
from rankernel.data import Data
from rankernel.reports.phrases import plural
from rankernel.reports.source import Source
from rankernel.reports.wording import guess_noun

NAMES = {"by": "labels", "id": "labels"}  # of options whose name in the library is another
SHOWN = {"separator": "--tie", "fold_case": "--fold-case", "max_bytes": "--max-bytes", "columns": "--column"}


def read(file: Path | None, how: Reading, judge: str | None = None) -> Source:
    """Return the rankings in a file; without a file, the bundled example. ``judge`` is a column to keep, too."""
    if how.only and file is not None and how.by is None:
        raise usage("--only names groups of a column: give --by COLUMN, too")
    with steps(None, "Reading"):
        source = source_in(file, dataclasses.replace(how, only=None), judge)
        return of_groups(source, how.only) if how.only else source


def of_groups(source: Source, wanted: list[str]) -> Source:
    """Return the rows of some groups."""
    assert source.groups is not None
    groups, of_row = source.named_groups
    for name in wanted:
        if name not in groups:
            known = listed(groups, SHOWN_GROUPS)
            raise usage(f"--only: there is no group {printable(name)!r} in {source.by}; there are {known}")
    rows = np.isin(of_row, [groups.index(name) for name in wanted])
    columns = {name: values[rows] for name, values in source.columns.items()}
    return dataclasses.replace(source, rankings=source.rankings[rows], groups=source.groups[rows], columns=columns)


def source_in(file: Path | None, how: Reading, judge: str | None) -> Source:
    """Return the rankings of a file by what its name or its contents say that it is."""
    given = {
        field.name: value for field in dataclasses.fields(how) if (value := getattr(how, field.name)) != field.default
    }
    if file is None:
        return bundled(how, given)
    from rankernel.io.registry import PAIRS, format_of

    options = reader_options(given, how, judge)
    chosen = PAIRS if options.get("layout") == "pairs" else format_of(file, options)
    if chosen is PAIRS:
        options.pop("layout", None)
    for name in options:
        if name not in chosen.options:
            option = next((option_name(key) for key in given if NAMES.get(key, key) == name), "--paired")
            raise usage(f"{option} is not for {printable(file.name)}, which is read as {chosen.name}")
    return source_of(chosen.read(file, **options), file, how)


def option_name(field: str) -> str:
    """Return an option as it is written on the command line."""
    return SHOWN.get(field, f"--{field}")


def reader_options(given: dict[str, Any], how: Reading, judge: str | None) -> dict[str, Any]:
    """Return what was asked for on the command line as options of a reader."""
    options = {NAMES.get(name, name): value for name, value in given.items()}
    labels = [name for name in (how.by, *(how.id or []), judge) if name]
    if labels:
        options["labels"] = list(dict.fromkeys(labels))
    if how.items is not None:
        options["items"] = [name.strip() for name in next(csv.reader([how.items]), []) if name.strip()]
    if how.columns:
        options["columns"] = dict(role_and_name(text) for text in how.columns)
    if how.separator and how.overvotes == "auto":
        options["overvotes"] = "tie"
    return options


def role_and_name(text: str) -> tuple[str, str]:
    """Return what a column is and its name, from ``user=expert``."""
    role, sign, name = text.partition("=")
    if not sign or not name:
        raise usage(f"--column {printable(text)} is not such as user=expert")
    return role.strip(), name.strip()


def source_of(data: Data, file: Path, how: Reading) -> Source:
    """Return what was read with what is known beside it."""
    name, about, repairs = printable(file.name), data.about, data.repairs  # type: ignore[union-attr]
    labels: dict[str, Any] = data.labels  # type: ignore[union-attr]
    said = [f"Read as {about.format}."] if about.format else []
    if about.passed_over:
        said.append(f"Columns passed over: {', '.join(map(printable, about.passed_over[:12]))}.")
    if repairs:
        said.append(f"Mended while reading: {repairs}.")
    circles = getattr(data, "n_contradicting", 0)
    if circles:
        said.append(f"{plural(circles, 'user contradicts itself', 'users contradict themselves')}: circles are ties.")
    groups = labels[how.by] if how.by else None
    title = printable(about.title or file.name)
    return Source(
        data,
        title,
        name,
        " ".join(said),
        printable(how.by or ""),
        groups,
        how.unlisted,
        labels,
        guess_noun(title, about.format, data.items),
        approve_all=about.all_in_first,
    )


def bundled(how: Reading, given: dict[str, Any]) -> Source:
    """Return the bundled example, which has two kinds of groups."""
    from rankernel.datasets import load_example

    others = [option_name(name) for name in given if name != "by"]
    if others:
        raise usage(f"{others[0]} is for a file; the bundled example is read as it is")
    example = load_example()
    groups = {"district": example.districts, "group": example.groups}
    if how.by is not None and how.by not in groups:
        raise usage(f"the bundled example has no column {printable(how.by)!r}; its groups are {', '.join(groups)}")
    column = how.by or "district"
    return Source(
        example.rankings,
        "The council election of Nowhere Bay",
        "the bundled example",
        " ".join(example.description.split()),
        column,
        groups[column],
        noun="candidate",
    )

"""The directive ``heat-map``: committed measurements as coloured tables, one for each method.

The file contains rows with a kernel, a kind of rankings, a number of items, a method, and values; the option ``value``
selects the value to show. The colour scale is logarithmic: one shade for each ``factor`` above ``low``.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives

DOCS = Path(__file__).parents[1]
SHADES = 10


class HeatMap(Directive):
    """Coloured tables of one value."""

    required_arguments = 1
    option_spec: ClassVar = {"value": directives.unchanged_required, "low": float, "factor": float}

    def run(self) -> list[nodes.Node]:
        """Return one table for each method."""
        path = DOCS / self.arguments[0]
        if not path.exists():
            return [nodes.paragraph(text="No results are committed yet.")]
        self.state.document.settings.record_dependencies.add(str(path))
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        shown, low, factor = self.options["value"], self.options.get("low", 1.0), self.options.get("factor", 4.0)
        found: list[nodes.Node] = []
        for method in dict.fromkeys(row["method"] for row in rows):
            found.append(nodes.rubric(text=method))
            found.append(heat_table([row for row in rows if row["method"] == method], shown, low, factor))
        return found


def heat_table(rows: list[dict[str, Any]], shown: str, low: float, factor: float) -> nodes.table:
    """Return a table of kernels by kind of rankings and number of items, with coloured cells."""
    kernels = list(dict.fromkeys(row["kernel"] for row in rows))
    columns = list(dict.fromkeys((row["rankings"], row["n"]) for row in rows if row.get(shown) is not None))
    kinds = list(dict.fromkeys(kind for kind, _ in columns))
    columns.sort(key=lambda column: kinds.index(column[0]))
    values = {(row["kernel"], row["rankings"], row["n"]): row.get(shown) for row in rows}
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in range(len(columns) + 1)), cols=len(columns) + 1)
    head = [nodes.entry("", nodes.paragraph(text="kernel"))]
    head += [nodes.entry("", nodes.paragraph(text=f"{kind} {n}")) for kind, n in columns]
    group += nodes.thead("", nodes.row("", *head))
    body = nodes.tbody()
    for kernel in kernels:
        entries = [nodes.entry("", nodes.paragraph(text=kernel))]
        entries += [heat_cell(values.get((kernel, *column)), low, factor) for column in columns]
        body += nodes.row("", *entries)
    group += body
    return nodes.table("", group, classes=["heat-map"])


def heat_cell(value: float | None, low: float, factor: float) -> nodes.entry:
    """Return one cell: the value with two digits, coloured by size."""
    if value is None:
        return nodes.entry("", nodes.paragraph(text="-"))
    return nodes.entry("", nodes.paragraph(text=short(value)), classes=[f"heat-{shade(value, low, factor)}"])


def shade(value: float, low: float, factor: float) -> int:
    """Return the index of the shade of a value."""
    return min(max(int(math.log(max(value, 1e-12) / low, factor)) + 1, 0), SHADES - 1) if value > low else 0


def short(value: float) -> str:
    """Return a number with two digits, with k and M for thousands and millions."""
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if value >= 0.995 * unit:
            return f"{value / unit:.2g}{name}" if value < 99.5 * unit else f"{value / unit:.0f}{name}"
    return f"{value:.2g}" if value < 99.5 else f"{value:.0f}"


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    app.add_directive("heat-map", HeatMap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

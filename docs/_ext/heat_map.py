"""The directive ``heat-map``: a committed grid of measurements as coloured tables, one a method.

The file holds rows with a kernel, a kind of rankings, a number of items, a method, and numbers; the option ``value``
names the number to show. Colours go by powers of two, so that a step is a factor of two to the eye.
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
    """The tables of one number of a grid."""

    required_arguments = 1
    option_spec: ClassVar = {"value": directives.unchanged_required, "low": float, "factor": float}

    def run(self) -> list[nodes.Node]:
        """Return one table a method, or a sentence that there is none."""
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
    """Return kernels by kinds and numbers of items, each cell in its shade; empty where there is no number."""
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
    """Return one cell: the number to two digits, in the shade of its size."""
    if value is None:
        return nodes.entry("", nodes.paragraph(text="-"))
    return nodes.entry("", nodes.paragraph(text=short(value)), classes=[f"heat-{shade(value, low, factor)}"])


def shade(value: float, low: float, factor: float) -> int:
    """Return the shade of a number: one step darker for each factor above the lowest."""
    return min(max(int(math.log(max(value, 1e-12) / low, factor)) + 1, 0), SHADES - 1) if value > low else 0


def short(value: float) -> str:
    """Return a number to two digits, with k and M for thousands and millions."""
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if value >= 0.995 * unit:
            return f"{value / unit:.2g}{name}" if value < 99.5 * unit else f"{value / unit:.0f}{name}"
    return f"{value:.2g}" if value < 99.5 else f"{value:.0f}"


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.add_directive("heat-map", HeatMap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

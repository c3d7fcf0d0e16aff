"""Directives for committed measurements: ``committed-results`` and ``gain-table``.

``committed-results`` shows the JSON files of a folder as tables; long tables are collapsed. ``gain-table`` shows the
median variance reduction of each coupling. A file contains ``rows``, a list of records, and optional metadata. Nothing
is measured when the documentation is built.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

DOCS = Path(__file__).parents[1]
SHORT = 8  # rows of tables that are not collapsed
TITLES = {
    "claim": "benchmark",
    "peer_seconds": "seconds, peer",
    "ratio": "peer / rankernel",
    "seconds": "seconds, rankernel",
    "size": "size",
}


class CommittedResults(Directive):
    """Tables of all JSON files in a folder."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return one section for each file."""
        folder = DOCS / self.arguments[0]
        found: list[nodes.Node] = []
        for path in sorted(folder.glob("*.json")):
            content = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(content, dict) and "shown_as" in content:  # shown by another directive
                continue
            self.state.document.settings.record_dependencies.add(str(path))
            found += described(path, content)
        return found or [nodes.paragraph(text="No results are committed yet.")]


class GainTable(Directive):
    """Median variance reduction for each coupling and degree of control variates."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return a table with one row for each coupling."""
        path = DOCS / self.arguments[0]
        self.state.document.settings.record_dependencies.add(str(path))
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        gains: dict[str, dict[int, list[float]]] = {}
        for row in rows:
            gains.setdefault(row["coupling"], {}).setdefault(row["control variates"], []).append(row["gain"])
        degrees = sorted({row["control variates"] for row in rows})
        return [
            table(
                [
                    {"coupling": name}
                    | {f"control variates of degree {d}": median(found[d]) if d in found else None for d in degrees}
                    for name, found in gains.items()
                ]
            )
        ]


def described(path: Path, content: Any) -> list[nodes.Node]:
    """Return the title, the metadata and the table of one file."""
    rows = content["rows"] if isinstance(content, dict) else content
    facts = {} if not isinstance(content, dict) else {name: v for name, v in content.items() if name != "rows"}
    name = path.stem.replace("_", " ").replace("-", " ")
    parts = [f"{fact}: {one_line(value)}" for fact, value in facts.items()]
    about = [nodes.paragraph(text="; ".join(parts) + ".")] if parts else []
    if len(rows) <= SHORT:
        return [nodes.rubric(text=name), *about, table(rows)]
    return [raw(f"<details><summary>{name}: {len(rows)} rows</summary>"), *about, table(rows), raw("</details>")]


def raw(html: str) -> nodes.raw:
    """Return a node with raw HTML."""
    return nodes.raw("", html, format="html")


def one_line(value: Any) -> str:
    """Return a value as text."""
    return ", ".join(f"{key} {inner}" for key, inner in value.items()) if isinstance(value, dict) else str(value)


def table(rows: list[dict[str, Any]]) -> nodes.table:
    """Return a table of records with one column for each key."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in keys), cols=len(keys))
    group += nodes.thead("", table_row([TITLES.get(key, key.replace("_", " ")) for key in keys]))
    group += nodes.tbody("", *(table_row([cell(row.get(key)) for key in keys]) for row in rows))
    return nodes.table("", group)


def table_row(texts: list[str]) -> nodes.row:
    """Return a row of a table."""
    return nodes.row("", *(nodes.entry("", nodes.paragraph(text=text)) for text in texts))


def cell(value: Any) -> str:
    """Return a value as the text of a cell, numbers with three digits."""
    if isinstance(value, float):
        return f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"
    return "" if value is None else str(value)


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    app.add_directive("committed-results", CommittedResults)
    app.add_directive("gain-table", GainTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

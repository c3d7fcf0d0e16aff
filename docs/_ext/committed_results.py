"""The directive ``committed-results``: tables of the measurements that are committed as JSON, if there are any.

A file holds ``rows``, a list of records with the same keys, and says of itself what it likes beside them. Nothing is
measured when the documentation is built.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

DOCS = Path(__file__).parents[1]
TITLES = {
    "claim": "what",
    "peer_seconds": "seconds, peer",
    "ratio": "peer / rankernel",
    "seconds": "seconds, rankernel",
    "size": "size",
}


class CommittedResults(Directive):
    """Tables of all JSON files in a folder of the documentation."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return one section a file, or a sentence that there is none."""
        folder = DOCS / self.arguments[0]
        found: list[nodes.Node] = []
        for path in sorted(folder.glob("*.json")):
            content = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(content, dict) and "shown_as" in content:  # by another directive
                continue
            self.state.document.settings.record_dependencies.add(str(path))
            found += described(path, content)
        return found or [nodes.paragraph(text="No results are committed yet.")]


def described(path: Path, content: Any) -> list[nodes.Node]:
    """Return the title, the facts and the table of one file."""
    rows = content["rows"] if isinstance(content, dict) else content
    facts = {} if not isinstance(content, dict) else {name: v for name, v in content.items() if name != "rows"}
    title = nodes.rubric(text=path.stem.replace("_", " ").replace("-", " "))
    parts = [f"{name}: {one_line(value)}" for name, value in facts.items()]
    return [title, *([nodes.paragraph(text="; ".join(parts) + ".")] if parts else []), table(rows)]


def one_line(value: Any) -> str:
    """Return a value as a few words."""
    return ", ".join(f"{key} {inner}" for key, inner in value.items()) if isinstance(value, dict) else str(value)


def table(rows: list[dict[str, Any]]) -> nodes.table:
    """Return records as a table, one column a key."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in keys), cols=len(keys))
    group += nodes.thead("", table_row([TITLES.get(key, key.replace("_", " ")) for key in keys]))
    group += nodes.tbody("", *(table_row([cell(row.get(key)) for key in keys]) for row in rows))
    return nodes.table("", group)


def table_row(texts: list[str]) -> nodes.row:
    """Return one row."""
    return nodes.row("", *(nodes.entry("", nodes.paragraph(text=text)) for text in texts))


def cell(value: Any) -> str:
    """Return a value as it stands in a table: numbers to three digits."""
    if isinstance(value, float):
        return f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"
    return "" if value is None else str(value)


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.add_directive("committed-results", CommittedResults)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

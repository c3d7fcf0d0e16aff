"""Add examples, related names, cost and theory links to the reference, and resolve short names in docstrings.

``reference/notes.toml`` contains examples of results and warnings, names to see also, the cost, and sections of the
theory; a test checks the names and runs the examples.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from public_names import related_names
from sphinx.util.nodes import make_refnode

NOTES = Path(__file__).parents[1] / "reference" / "notes.toml"


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    notes = tomllib.loads(NOTES.read_text(encoding="utf-8"))
    app.connect("autodoc-process-docstring", lambda *event: append_note(notes, event[2], event[5]), priority=900)
    app.connect("missing-reference", by_short_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def append_note(notes: dict[str, dict[str, str]], name: str, lines: list[str]) -> None:
    """Append an example, related names, cost and theory links to the docstring of a public name."""
    package, _, public = name.partition(".")
    if package != "rankernel":
        return
    note = notes.get(public, {})
    if "example" in note:
        lines += ["", ".. rubric:: Examples", "", *note["example"].splitlines()]
    related = ", ".join(f":obj:`{other} <rankernel.{other}>`" for other in related_names(public, notes))
    if related:
        lines += ["", f".. seealso:: {related}"]
    if "cost" in note:
        lines += ["", f"**Cost.** {note['cost']}"]
    if "theory" in note:
        links = " · ".join(f":ref:`{label}`" for label in note["theory"].split())
        lines += ["", f"**Theory.** {links}"]
    lines.append("")


def by_short_name(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Resolve a reference to a documented object by its short name."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"].lstrip(".")
    objects = env.domains["py"].objects
    for name in (target, target.rpartition(".")[2]):
        found = [full for full in objects if full.startswith("rankernel.") and full.endswith(f".{name}")]
        if found:
            full = min(found, key=len)
            return make_refnode(
                app.builder, node["refdoc"], objects[full].docname, objects[full].node_id, content, full
            )
    return None

"""Complete the docstrings of the reference.

``reference/notes.toml`` contains examples of results and warnings, names to see also, the cost, and sections of the
theory; a test checks the names and runs the examples. Classes of results show the attributes of their base classes, and
no signature, because users do not construct them. Short names in docstrings are resolved.
"""

from __future__ import annotations

import dataclasses
import inspect
import tomllib
from pathlib import Path
from typing import Any

from public_names import related_names

NOTES = Path(__file__).parents[1] / "reference" / "notes.toml"


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    notes = tomllib.loads(NOTES.read_text(encoding="utf-8"))
    hidden = lambda *event: ("", "") if is_result(event[1], event[3]) else None  # noqa: E731
    app.connect("autodoc-process-signature", hidden, priority=100)
    app.connect(
        "autodoc-process-docstring", lambda *event: inherit_attributes(event[1], event[3], event[5]), priority=100
    )
    app.connect("autodoc-process-docstring", lambda *event: append_note(notes, event[2], event[5]), priority=900)
    app.connect("missing-reference", by_short_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def is_result(kind: str, thing: Any) -> bool:
    """Return whether an object is a class of results: a dataclass that documents attributes and no parameters."""
    text = (inspect.getdoc(thing) or "").splitlines()
    return kind == "class" and dataclasses.is_dataclass(thing) and "Attributes" in text and "Parameters" not in text


def attributes_of(text: str) -> tuple[dict[str, list[str]], int, int]:
    """Return the lines of each entry of the section *Attributes* by name, and where the entries begin and end."""
    lines = inspect.cleandoc(text).splitlines()
    start = end = lines.index("Attributes") + 2
    entries: dict[str, list[str]] = {}
    while end < len(lines) and not lines[min(end + 1, len(lines) - 1)].startswith("---"):
        if lines[end] and not lines[end].startswith(" "):
            name = lines[end].partition(" :")[0]
            entries[name] = []
        entries[name].append(lines[end])
        end += 1
    return entries, start, end


def inherit_attributes(kind: str, thing: Any, lines: list[str]) -> None:
    """Show in a class of results the attributes that its base classes document as well."""
    if not is_result(kind, thing):
        return
    entries: dict[str, list[str]] = {}
    for base in reversed(thing.__mro__):
        if is_result(kind, base):
            entries |= attributes_of(base.__doc__)[0]
    _, start, end = attributes_of("\n".join(lines))
    lines[start:end] = [line for entry in entries.values() for line in entry]


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
    from sphinx.util.nodes import make_refnode  # not needed by the tests

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

"""Lists of the public names for the reference pages, read from the groups of ``rankernel/__init__.pyi``.

The stub file has headings (``# ---- Data``) for the five groups and comments (``# Files``) for the sections of a group.
Each section becomes a file ``reference/names-<section>.rst`` with one ``autosummary``, which a page includes.
"""

from __future__ import annotations

import re
from pathlib import Path

import rankernel
from rankernel._lazy import listed_names

STUB = Path(rankernel.__file__).with_suffix(".pyi")
MODULES = ("datasets", "distances", "interop", "plots")  # documented by sections of their own


def sections() -> dict[str, dict[str, list[str]]]:
    """Return the public names: group, section, names."""
    groups: dict[str, dict[str, list[str]]] = {}
    for line in STUB.read_text(encoding="utf-8").splitlines():
        if heading := re.fullmatch(r"# -{10,} (.+)", line):
            group = groups.setdefault(heading[1], {})
        elif comment := re.fullmatch(r"# (.+)", line):
            names = group.setdefault(comment[1], [])
        elif imported := re.fullmatch(r"from ([\w.]+) import (\S+).*", line):
            module, name = imported.groups()
            home = STUB.parent.joinpath(*module.split(".")[1:], "__init__.py")
            names += listed_names(home) if name == "*" else [name]
    return groups


def related_names(name: str, notes: dict[str, dict[str, str]]) -> list[str]:
    """Return the names to see also: those of the notes, or else the first names of the same section."""
    given = notes.get(name, {}).get("see_also", "").split()
    for group in sections().values():
        for names in group.values():
            if name in names and not given:
                given = [other for other in names if other != name and other not in MODULES][:6]
    return given


def list_file(section: str) -> str:
    """Return the name of the file that lists a section."""
    return f"names-{section.lower().replace(' ', '-')}.rst"


def write_lists(folder: Path) -> list[str]:
    """Write one file for each section and return their names."""
    written = []
    for group in sections().values():
        for section, all_names in group.items():
            names = [name for name in all_names if name not in MODULES]
            if not names:
                continue
            lines = [
                ".. currentmodule:: rankernel",
                "",
                ".. autosummary::",
                "   :toctree: generated",
                "   :nosignatures:",
            ]
            text = "\n".join([*lines, "", *(f"   {name}" for name in names)]) + "\n"
            path = folder / list_file(section)
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
            written.append(path.name)
    return written

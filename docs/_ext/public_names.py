"""Lists of the public names for the reference pages, read from the groups of ``rankernel/__init__.pyi``.

The stub file has headings (``# ---- Data``) for the five groups and comments (``# Files``) for the sections of a group.
Each section becomes a file ``reference/names-<section>.rst`` with one ``autosummary``, which a page includes.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from pathlib import Path

import rankernel
from rankernel._lazy import listed_names

STUB = Path(rankernel.__file__).with_suffix(".pyi")
REFERENCE = Path(__file__).parents[1] / "reference"
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


@cache
def module_lists() -> list[list[str]]:
    """Return the names of modules, such as ``plots.kernel_map``, in each section of the reference pages."""
    lists: list[list[str]] = []
    for path in sorted(REFERENCE.glob("*.md")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("#"):
                lists.append([])
            elif current := re.fullmatch(r"\.\. currentmodule:: rankernel\.(\S+)", line):
                module = current[1]
            elif name := re.fullmatch(r"   (\w+)", line):
                lists[-1].append(f"{module}.{name[1]}")
    return lists


@cache
def functions_returning() -> dict[str, list[str]]:
    """Return the public functions whose result is an object of a class, by the name of the class."""
    functions: dict[str, list[str]] = {}
    for name in sorted(set(rankernel.__all__) - {"__version__"}):
        text = inspect.getdoc(getattr(rankernel, name)) or ""
        if returned := re.search(r"^Returns\n-+\n(\w+)$", text, re.MULTILINE):
            functions.setdefault(returned[1], []).append(name)
    return functions


def related_names(name: str, notes: dict[str, dict[str, str]]) -> list[str]:
    """Return the names to see also.

    These are the names of the notes; or else the functions that return an object of this class, if it is a class of a
    module; or else the first names of the same section.
    """
    if given := notes.get(name, {}).get("see_also", "").split():
        return given
    module, _, short = name.rpartition(".")
    if module and short in functions_returning():
        return functions_returning()[short]
    public = [names for group in sections().values() for names in group.values()]
    for names in (*public, *module_lists()):
        if name in names:
            return [other for other in names if other != name and other not in MODULES][:6]
    return []


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

"""Write the licences of all dependencies that are installed to DEPENDENCIES.md: ``python .ci/licenses.py``."""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError, distribution

from environments import ROOT
from packaging.requirements import Requirement

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOR_DEVELOPERS = {"test", "docs", "dev", "interop"}


def license_of(name: str) -> str:
    """Return the licence that a package declares: its expression, its classifiers, or the first line of its text."""
    about = distribution(name).metadata
    classifiers = [line.split(" :: ")[-1] for line in about.get_all("Classifier", []) if line.startswith("License ::")]
    text = about.get("License-Expression") or "; ".join(classifiers) or (about.get("License") or "not declared")
    return text.strip().splitlines()[0]


def requirements(name: str, extras: frozenset[str]) -> set[tuple[str, frozenset[str]]]:
    """Return the requirements of a package with its extras on this platform."""
    found = set()
    of_extras = [line for extra in sorted(extras) for line in PROJECT["optional-dependencies"].get(extra, [])]
    for line in of_extras if name == "rankernel" else distribution(name).requires or []:
        needed = Requirement(line)
        if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras or {""}):
            found.add((needed.name.lower().replace("_", "-"), frozenset(needed.extras)))
    return found


def closure(lines: list[str]) -> set[str]:
    """Return the names of the packages that requirements install, directly or indirectly."""
    waiting = [(each.name.lower().replace("_", "-"), frozenset(each.extras)) for each in map(Requirement, lines)]
    done: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        package = waiting.pop()
        if package not in done:
            done.add(package)
            try:
                waiting += requirements(*package)
            except PackageNotFoundError:
                continue
    return {name for name, _ in done if name != "rankernel"}


if __name__ == "__main__":
    parts = {"core": closure(PROJECT["dependencies"])}
    for extra in PROJECT["optional-dependencies"]:
        if extra not in FOR_DEVELOPERS:
            parts[extra] = closure([f"rankernel[{extra}]"]) - parts["core"]
    lines = [
        "# Licences of the dependencies\n",
        "Made by `.ci/licenses.py` from the metadata of the installed packages; extras include what they require.\n",
        "| package | licence | installed by |\n|---|---|---|",
    ]
    for name in sorted(set().union(*parts.values())):
        by = ", ".join(part for part, names in parts.items() if name in names)
        try:
            lines.append(f"| {name} | {license_of(name)} | {by} |")
        except PackageNotFoundError:
            lines.append(f"| {name} | not installed on this platform | {by} |")
    (ROOT / "DEPENDENCIES.md").write_text("\n".join(lines) + "\n", encoding="utf-8")

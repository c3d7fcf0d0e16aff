"""Public names from a stub file: one list that serves type checkers, editors and lazy loading alike."""

from __future__ import annotations

import ast
from pathlib import Path


def names_in_stub(init_file: str) -> dict[str, str]:
    """Return the module that each name comes from, read off the ``from ... import`` lines of ``__init__.pyi``."""
    stub = ast.parse(Path(init_file).with_suffix(".pyi").read_text(encoding="utf-8"))
    homes: dict[str, str] = {}
    for line in stub.body:
        if isinstance(line, ast.ImportFrom) and line.module:
            for alias in line.names:
                if alias.name == "*":
                    folder = Path(init_file).parent.joinpath(*line.module.split(".")[1:])
                    homes |= dict.fromkeys(listed_names(folder / "__init__.py"), line.module)
                else:
                    is_module = line.module == "rankernel"
                    homes[alias.name] = f"rankernel.{alias.name}" if is_module else line.module
    return homes


def listed_names(init_file: Path) -> list[str]:
    """Return the list ``__all__`` of a package without importing it."""
    for line in ast.parse(init_file.read_text(encoding="utf-8")).body:
        if isinstance(line, ast.Assign) and getattr(line.targets[0], "id", "") == "__all__":
            names: list[str] = ast.literal_eval(line.value)
            return names
    return []

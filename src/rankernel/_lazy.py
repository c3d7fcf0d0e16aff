"""Public names from a stub file: one list that serves type checkers, editors and lazy loading alike."""

from __future__ import annotations

import ast
from pathlib import Path

__all__ = ["names_in_stub"]


def names_in_stub(init_file: str) -> dict[str, str]:
    """Return the module that each name comes from, read off the ``from ... import`` lines of ``__init__.pyi``."""
    stub = ast.parse(Path(init_file).with_suffix(".pyi").read_text(encoding="utf-8"))
    homes: dict[str, str] = {}
    for line in stub.body:
        if isinstance(line, ast.ImportFrom) and line.module:
            for alias in line.names:
                is_module = line.module == "rankernel"
                homes[alias.name] = f"rankernel.{alias.name}" if is_module else line.module
    return homes

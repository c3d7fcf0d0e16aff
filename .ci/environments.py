"""Environments of their own for the scripts beside this file."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def environment(folder: Path, *requirements: object) -> Path:
    """Make an empty environment, install what is required, and return its Python."""
    venv.create(folder, clear=True, with_pip=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    install(python, *requirements)
    return python


def install(python: Path, *requirements: object) -> None:
    """Install something for a Python."""
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)


def run(*command: object, folder: Path = ROOT) -> str:
    """Run a command with nothing of this repository on its path; return what it prints, stop where it fails."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | {"PYTHONUTF8": "1"}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, env=clean, stdout=subprocess.PIPE, encoding="utf-8")
    if done.returncode:
        raise SystemExit(f"{done.stdout}\n{' '.join(words)}: failed")
    return done.stdout

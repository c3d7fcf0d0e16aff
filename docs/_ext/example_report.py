"""Sphinx extension that writes the report about the bundled example into the built documentation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    app.connect("build-finished", write_report)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_report(app: Any, error: Exception | None) -> None:
    """Write the report with the command line."""
    path = Path(app.outdir, "report.html")
    if error is None and app.builder.name == "html" and not path.exists():
        command = [sys.executable, "-m", "rankernel", "report", "-o", str(path)]
        subprocess.run(command, check=True, capture_output=True)

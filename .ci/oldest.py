"""Run tests with the oldest versions that pyproject.toml promises: ``python .ci/oldest.py [arguments of pytest]``."""

from __future__ import annotations

import sys
import tempfile
import tomllib
from pathlib import Path

from environments import ROOT, environment, run

FOR_DEVELOPERS = {"test", "docs", "dev"}  # tools, of which any version will do
NOT_TESTED = {"gpy", "gpytorch", "interop"}  # torch 2.2 is a download of 750 MB; VoteKit and pref_voting pin NumPy


def oldest() -> str:
    """Return the promises as constraints for pip."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    promised = list(project["dependencies"])
    for extra, lines in project["optional-dependencies"].items():
        promised += [] if extra in FOR_DEVELOPERS | NOT_TESTED else lines
    named = (line.split(">=") for line in promised if not line.startswith("rankernel["))
    return "".join(f"{name.split('[')[0]}=={version}\n" for name, version in named)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder, "oldest.txt")
        constraints.write_text(oldest(), encoding="utf-8")
        python = environment(Path(folder, "venv"), "-e", f"{ROOT}[test]", "-c", str(constraints))
        # What is new complains of how it is called by what is old; Dask of 2024 where a cluster is not used for all.
        quiet = ("-W", "ignore::DeprecationWarning", "-W", "ignore:Running on a single-machine scheduler:UserWarning")
        sys.stdout.write(run(python, "-m", "pytest", "-q", *quiet, *sys.argv[1:]))

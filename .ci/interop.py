"""Run the conversions to VoteKit and pref_voting, and their examples on the pages, where these can be installed."""

from __future__ import annotations

import tempfile
from pathlib import Path

from environments import ROOT, environment, run

TESTS = ("tests/test_interop.py", "tests/project/test_docs.py", "-k", "interop or (python_blocks and files)")

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        # They require older versions of NumPy and Numba than the other tests use.
        needed = (f"{ROOT}[cli,frames,interop]", "hypothesis", "preflibtools", "pytest-xdist")
        python = environment(Path(folder, "venv"), *needed)
        run(python, "-m", "pytest", "-q", *TESTS)

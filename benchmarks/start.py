"""What a fresh process waits for: imports, and the first Gram matrix with and without compiled code on disk."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from benchmarks.clock import Row, medians, once

IMPORT = "import rankernel"
FIRST_GRAM = "import rankernel as rk; rk.Mallows(0.1).gram(rk.datasets.uniform(100, 10, rng=0).top(4))"
FIRST_ESTIMATE = (
    "import rankernel as rk; rk.Exponential('footrule', 0.1).estimate(rk.datasets.uniform(100, 10, rng=0).top(4))"
)


def fresh(code: str, cache: str) -> None:
    """Run code in a new interpreter whose compiled functions are kept in a folder."""
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True)


def start() -> Iterator[Row]:
    for code, claim in ((IMPORT, "import"), (FIRST_GRAM, "first exact Gram"), (FIRST_ESTIMATE, "first estimated Gram")):
        with tempfile.TemporaryDirectory() as cache:
            compiling = once(lambda: fresh(code, cache))  # noqa: B023
            python, ours = medians(lambda: fresh("", cache), lambda: fresh(code, cache), repeats=5)  # noqa: B023
        if code != IMPORT:
            yield Row(f"{claim} in a new process", "nothing compiled yet", "python -c ''", compiling, python, "")
        yield Row(f"{claim} in a new process", "compiled code on disk", "python -c ''", ours, python, "")


ALL = (start,)

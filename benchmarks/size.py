"""Files and lines of the package, and the files that calls pass through: ``python benchmarks/size.py``.

A walk is the set of source files of the package in which a Python function was called during a call, after the same
call was made once before. Four walks are measured: an exact Gram matrix, a Monte Carlo Gram matrix, ``mmd_test`` (with
exact and with Monte Carlo values), and the command ``rankernel report``, each over all kernels and kinds of rankings.

``python benchmarks/size.py --name after -o docs/benchmarks/size.json`` measures the package that Python imports and
stores the numbers under this name; ``python -m benchmarks.pages`` writes them into ``docs/contributing.md``. Another
version of the package is measured with ``PYTHONPATH`` set to its ``src`` folder.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import rankernel as rk

PACKAGE = Path(rk.__file__).parent
FEW_ITEMS, MANY_ITEMS = 8, 20  # completions are enumerated, and are too many for that
KINDS = ("full", "top-k", "ties", "free")
COMMAND_KERNELS = ("mallows", "kendall", "hamming", "spearman", "polynomial", "rbo", "diffusion", "dcg")


class Walk:
    """The files and functions of the package that were passed during a call, and the number of changes of file."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.files: list[str] = []
        self.functions: set[tuple[str, str]] = set()
        self.changes = 0
        self._last = ""
        sys.setprofile(self._step)
        threading.setprofile(self._step)
        try:
            call()
        finally:
            threading.setprofile(None)
            sys.setprofile(None)

    def _step(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(PACKAGE)):
            return
        if code.co_filename not in self.files:
            self.files.append(code.co_filename)
        self.functions.add((code.co_filename, code.co_qualname))
        self.changes += code.co_filename != self._last
        self._last = code.co_filename

    def __str__(self) -> str:
        names = ", ".join(str(Path(file).relative_to(PACKAGE)) for file in self.files)
        return f"{len(self.files)} files, {len(self.functions)} functions, {self.changes} changes of file: {names}"


def warm_walk(call: Callable[[], object]) -> Walk:
    """Return the walk of a call that is not the first one: nothing is imported or compiled."""
    call()
    return Walk(call)


def kernels(n_items: int = FEW_ITEMS) -> list[rk.Kernel]:
    """Return one kernel of every class, and sums and products of kernels."""
    center = tuple(range(n_items))
    hilbert = [[1.0 / (1 + p + q) for q in range(n_items)] for p in range(n_items)]
    rates = {"kendall": 0.1, "hamming": 0.1, "cayley": math.log(2), "footrule": 0.1, "spearman": 0.1, "lp(1.5)": 0.1}
    exponential = [rk.Exponential(name, rate) for name, rate in rates.items()]
    induced = [rk.DistanceInduced(name, center) for name in ("kendall", "hamming", "spearman", "footrule")]
    return [
        rk.Mallows(0.1),
        rk.Kendall(),
        rk.Polynomial(3),
        rk.WeightedKendall.top_k(2),
        rk.Hamming(),
        rk.Spearman(),
        rk.Positional(hilbert),
        rk.RankBiasedOverlap(0.7),
        rk.AverageOverlap(3),
        rk.DCG(),
        rk.Diffusion(0.1),
        rk.Diffusion(0.1, "adjacent"),
        *exponential,
        *induced,
        0.5 * rk.Kendall() + rk.Mallows(0.3),
        rk.Mallows(0.3) * rk.Hamming(),
        (1 + rk.Kendall()) ** 3,
        (0.3 * rk.Hamming()).exp(),
    ]


def rankings(kind: str, seed: int = 0, n_items: int = FEW_ITEMS) -> rk.Rankings:
    """Return 20 random rankings: full, the first 3 items, buckets of 3 items, or 3 ranked and all others free."""
    ranks = np.argsort(np.random.default_rng(seed).random((20, n_items)), axis=1)
    if kind == "ties":
        ranks = ranks // 3
    elif kind == "top-k":
        ranks = np.minimum(ranks, 3)
    elif kind == "free":
        ranks = np.where(ranks < 3, ranks, -1)
    return rk.Rankings(ranks)


def exact_walks() -> Iterator[tuple[str, Walk]]:
    """Yield the walks of exact Gram matrices, where there is a closed form or an enumeration."""
    for kernel in kernels():
        for kind in KINDS:
            try:
                walk = warm_walk(lambda kernel=kernel, kind=kind: kernel.gram(rankings(kind), method="exact"))
            except rk.ExactnessError:
                continue
            yield f"{kernel}, {kind}", walk


def monte_carlo_walks() -> Iterator[tuple[str, Walk]]:
    """Yield the walks of estimated Gram matrices: with 16 draws, and where the default method is Monte Carlo."""
    for kernel in kernels():
        for kind in KINDS[1:]:
            rows = rankings(kind)
            walk = warm_walk(lambda kernel=kernel, rows=rows: kernel.gram(rows, method=rk.MonteCarlo(16)))
            yield f"{kernel}, {kind}, 16 draws", walk
    rows = rankings("free", n_items=MANY_ITEMS)
    for kernel in kernels(MANY_ITEMS):
        try:
            is_sampled = isinstance(kernel.plan(rows).method, rk.MonteCarlo)
        except rk.ExactnessError:  # the kernel is limited to few items
            continue
        if is_sampled:
            yield f"{kernel}, free, default", warm_walk(lambda kernel=kernel: kernel.gram(rows))


def test_walks() -> Iterator[tuple[str, Walk]]:
    """Yield the walks of two-sample tests, with the method of the default and with Monte Carlo."""
    for kernel in kernels():
        for method in ("auto", rk.MonteCarlo(16)):

            def call(kernel: rk.Kernel = kernel, method: Any = method) -> object:
                return rk.mmd_test(rankings("top-k", 0), rankings("top-k", 1), kernel, method=method)

            yield f"{kernel}, {method}", warm_walk(call)


def report_walks() -> Iterator[tuple[str, Walk]]:
    """Yield the walks of the command ``rankernel report`` on the bundled example."""
    from typer.testing import CliRunner

    from rankernel.cli.app import app

    with tempfile.TemporaryDirectory() as folder:
        for options in ([], *(["--kernel", name] for name in COMMAND_KERNELS)):
            path = str(Path(folder, "report.html"))
            arguments = ["report", "-o", path, "--force", *options]

            def call(arguments: list[str] = arguments) -> object:
                done = CliRunner().invoke(app, arguments)
                if done.exit_code:
                    raise ValueError(done.output)
                return done

            try:
                yield " ".join(options) or "default", warm_walk(call)
            except ValueError as error:
                print(f"left out: {' '.join(options)}: {str(error)[-200:]}", file=sys.stderr)


WALKS = {
    "exact Gram matrix": exact_walks,
    "Monte Carlo Gram matrix": monte_carlo_walks,
    "mmd_test": test_walks,
    "rankernel report": report_walks,
}


def size() -> dict[str, int]:
    """Return the number of files and lines of the package."""
    files = sorted(PACKAGE.rglob("*.py"))
    return {"files": len(files), "lines": sum(len(path.read_text("utf-8").splitlines()) for path in files)}


def measure(names: list[str]) -> dict[str, Any]:
    """Return the size and the walks: number of cases, median and maximum of the files, and the case of the maximum."""
    result: dict[str, Any] = size() | {"public names": len(rk.__all__) - 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            walks = {case: len(walk.files) for case, walk in WALKS[name]()}
            longest = max(walks, key=walks.__getitem__)
            result[name] = {
                "cases": len(walks),
                "median": statistics.median(walks.values()),
                "max": walks[longest],
                "longest": longest,
            }
    return result


def main() -> None:
    """Measure, store and show."""
    parser = argparse.ArgumentParser(prog="python benchmarks/size.py", description=__doc__)
    parser.add_argument("--name", default="now", help="name of the version, the title of its column")
    parser.add_argument("--walk", nargs="*", default=list(WALKS), choices=list(WALKS), help="walks to measure")
    parser.add_argument("-v", "--verbose", action="store_true", help="print all walks and store nothing")
    parser.add_argument("-o", "--output", type=Path, help="JSON file with the results of all versions")
    options = parser.parse_args()
    if options.verbose:
        for name in options.walk:
            for case, walk in WALKS[name]():
                print(f"{name}, {case}: {walk}")
        return
    result = measure(options.walk)
    print(json.dumps(result, indent=1))
    if options.output is None:
        return
    versions = json.loads(options.output.read_text("utf-8"))["versions"] if options.output.exists() else {}
    versions[options.name] = result
    rows = [
        {"version": version, "measure": name} | (value if isinstance(value, dict) else {"value": value})
        for version, numbers in versions.items()
        for name, value in numbers.items()
    ]
    content = {"shown_as": "table in contributing.md", "versions": versions, "rows": rows}
    options.output.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Ordinary data, with many equal ballots: exact Gram matrices beside the filling of memory, and the memory they take.

``python -m benchmarks.ordinary [-o FILE]``. Made-up lists with a given share of equal rows; with ``RANKERNEL_DATA`` set
also sushi users cut to their first four, and voters of Dublin North, each with a row of its own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from math import comb
from pathlib import Path

import numpy as np

import rankernel as rk
from benchmarks.clock import medians, save
from benchmarks.grams import fill
from reproduction.sushi import load_sushi

N_ROWS = 5000
WANTED = 4.0  # times a parallel fill, whatever share of rows is equal
SHARES = (0.0, 0.25, 0.5, 0.75, 0.95)
DUBLIN_NORTH = "00001-00000001.soi"
N_PERMUTATIONS = 5000
N_GROUPS = 60

WAYS = {  # each is run in a process of its own, so that its peak is its own
    "gram": "kernel.gram(rows)",
    "gram, float32": "kernel.gram(rows, dtype='float32')",
    "gram into a given matrix": "kernel.gram(rows, out=np.ones((len(rows), len(rows))))",
    "estimated gram": "kernel.gram(rows, method=rk.MonteCarlo(16))",
    "estimate, with errors": "kernel.estimate(rows, method=rk.MonteCarlo(16))",
    "normalised gram": "kernel.gram(rows, normalize=True)",
    "sums of the matrix": "kernel.plan(rows).times(rows.counts)",
}
PEAK = """
from pathlib import Path
import numpy as np
import rankernel as rk
from benchmarks.ordinary import kilobytes, with_equal_rows
kernel, every = rk.Mallows(0.1), with_equal_rows({share})
rows = every[:50]
{way}
rows, before = every, kilobytes("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # from here on the peak is that of the call
{way}
print(1024 * (kilobytes("VmHWM") - before))
"""


def kilobytes(name: str) -> int:
    """Return what the system says that this process holds, or held at its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def with_equal_rows(share: float) -> rk.Rankings:
    """Return top-4 lists of 10 items of which about this share repeat another one."""
    different = rk.datasets.uniform(4 * N_ROWS, 10, rng=0).top(4).unique()[: max(int(N_ROWS * (1 - share)), 1)]
    rng = np.random.default_rng(1)
    again = rng.integers(0, len(different), N_ROWS - len(different))
    return different[rng.permutation(np.concatenate([np.arange(len(different)), again]))]


def files() -> Iterator[tuple[str, rk.Rankings]]:
    """Yield real ballots, one row a voter, if they are there."""
    root = os.environ.get("RANKERNEL_DATA")
    if root is None:
        return
    yield "sushi users, top 4 of 10", load_sushi(Path(root, "sushi3-2016")).rankings[:N_ROWS].top(4)
    ballots = rk.read_preflib(Path(root, "preflib", DUBLIN_NORTH))
    voters = np.repeat(np.arange(len(ballots)), ballots.counts)
    some = np.random.default_rng(0).choice(voters, N_ROWS, replace=False)
    yield "Dublin North, voters at random", rk.Rankings(ballots.ranks[some], items=ballots.items)


def speeds() -> Iterator[dict[str, object]]:
    """Measure each kernel on each set of ballots."""
    data = [(f"top 4 of 10, {share:.0%} equal", with_equal_rows(share)) for share in SHARES]
    for name, rows in (*data, *files()):
        out = np.ones((len(rows), len(rows)))
        for kernel in (rk.Mallows(0.1), rk.Kendall()):
            ours, filling = medians(lambda k=kernel, r=rows, o=out: k.gram(r, out=o), lambda o=out: fill(o))
            yield {
                "what": f"exact {type(kernel).__name__} Gram, {name}",
                "size": f"N={len(rows)}, {len(rows.unique())} different",
                "seconds": ours,
                "fill": filling,
                "times_fill": ours / filling,
                "wanted": WANTED,
            }


def peaks() -> Iterator[dict[str, object]]:
    """Measure the memory that a call takes at its peak, in matrices of float64."""
    for share in (0.0, 0.75):
        for name, way in WAYS.items():
            code = PEAK.format(share=share, way=way)
            run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            yield {
                "what": f"peak memory: {name}, {share:.0%} equal",
                "size": f"N={N_ROWS}",
                "matrices": int(run.stdout) / (8 * N_ROWS**2),
            }


def permutations() -> Iterator[dict[str, object]]:
    """Measure a test with thousands of permutations of voters who share their ballots, beside one row a voter."""
    few = rk.datasets.uniform(400, 6, rng=0).top(3).unique()
    rng = np.random.default_rng(0)
    samples = [rk.Rankings(few.ranks, items=few.items, counts=rng.integers(1, 60, len(few))) for _ in range(2)]
    voters = [np.repeat(np.arange(len(few)), sample.counts) for sample in samples]
    kernel, everyone = rk.Mallows(0.1), np.concatenate(voters)
    K = kernel.gram(few)[np.ix_(everyone, everyone)] if len(everyone) <= 2 * N_ROWS else None

    def by_voter() -> None:
        """What one does with a Gram matrix of all voters: members of each permutation, one product."""
        assert K is not None
        first = np.arange(len(everyone)) < len(voters[0])
        for _ in range(N_PERMUTATIONS // 100):
            members = np.stack([rng.permutation(first) for _ in range(100)]).astype(np.float64)
            np.einsum("pi,pi->p", members @ K, members)

    ours = medians(lambda: rk.mmd_test(*samples, kernel, n_permutations=N_PERMUTATIONS), repeats=3)[0]
    peer = medians(by_voter, repeats=1)[0] if K is not None else None
    yield {
        "what": f"MMD test, {N_PERMUTATIONS:,} permutations",
        "size": f"{len(everyone):,} voters, {len(few)} different ballots",
        "seconds": ours,
        "peer_seconds": peer,
    }


def many_groups() -> Iterator[dict[str, object]]:
    """Measure the tests of all pairs of sixty groups."""
    rows, groups = with_equal_rows(0.5), np.arange(N_ROWS) % N_GROUPS
    found = rk.k_sample_test(rows, groups, rk.Mallows(0.1))
    seconds = medians(found.pairwise, repeats=1)[0]
    yield {
        "what": f"tests of every two of {N_GROUPS} groups ({comb(N_GROUPS, 2):,} pairs), 1,000 permutations each",
        "size": f"{N_ROWS:,} voters, {len(rows.unique()):,} different ballots",
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ordinary", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="save the numbers here, as JSON")
    output = parser.parse_args().output
    rows = []
    for part in (speeds, permutations, many_groups, peaks):
        for row in part():
            rows.append(row)
            print("  ".join(f"{value:.3g}" if isinstance(value, float) else str(value) for value in row.values()))
    if output is not None:
        save(output, rows)


if __name__ == "__main__":
    main()

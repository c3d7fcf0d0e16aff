"""Comparison of a TREC run with two changed versions: ``RANKERNEL_DATA=... python -m benchmarks.trec -o FILE``.

The run and the judgements of nine queries come with https://github.com/rankbiased/rbstar.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import rankernel as rk
from benchmarks.clock import save

CHANGES: dict[str, Callable[[list[list[str]]], list[list[str]]]] = {  # in the order of their names
    "exchanged": lambda lines: lines[10:20] + lines[:10] + lines[20:],
    "original": lambda lines: lines,
    "reversed": lambda lines: lines[:20][::-1] + lines[20:],
}


def main() -> None:
    """Compare the original run, its first 20 documents reversed, and documents 11 to 20 before the first ten."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    folder = Path(os.environ["RANKERNEL_DATA"]) / "trec"
    queries: dict[str, list[list[str]]] = {}
    for line in (folder / "test-one.trec").read_text(encoding="utf-8").splitlines():
        queries.setdefault(line.split()[0], []).append(line.split())
    with tempfile.TemporaryDirectory() as changed:
        for name, change in CHANGES.items():
            lines = [
                f"{query} Q0 {words[2]} {rank} {-rank} {name}"
                for query, run in queries.items()
                for rank, words in enumerate(change(run), start=1)
            ]
            Path(changed, f"{name}.run").write_text("\n".join(lines) + "\n", encoding="utf-8")
        lists = rk.read([Path(changed, f"{name}.run") for name in CHANGES])
    judgements = rk.read(folder / "1-9.qrels")
    comparison = rk.compare_systems(lists, judgements=judgements, n_permutations=9999)
    print(comparison)
    rows = [
        {
            "first": pair.first,
            "second": pair.second,
            "overlap": pair.overlap,
            "difference": pair.difference,
            "low": pair.difference_interval[0],
            "high": pair.difference_interval[1],
            "adjusted p": pair.adjusted_pvalue,
        }
        for pair in comparison.pairs
    ]
    means = comparison.agreements.mean(axis=0).tolist()
    if options.output is not None:
        save(options.output, rows, shown_as="table in systems.md", agreements=dict(zip(CHANGES, means, strict=True)))


if __name__ == "__main__":
    main()

"""Print one table of all comparisons, and save it as JSON: ``python -m benchmarks [-o FILE]``."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import grams, kernrank, overlap, reading, start, tests
from benchmarks.clock import save


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="save the numbers here, as JSON")
    output = parser.parse_args().output
    rows = []
    print(f"{'what':46} {'size':38} {'rankernel':>11} {'peer':>11} {'ratio':>10}  wanted   peer")
    for benchmark in (*grams.ALL, *kernrank.ALL, *overlap.ALL, *tests.ALL, *reading.ALL, *start.ALL):
        for row in benchmark():
            rows.append(row)
            ratio = row.seconds / row.peer_seconds if row.wanted.startswith("<=") else row.ratio
            print(
                f"{row.claim:46.46} {row.size:38.38} {row.seconds:10.3g}s {row.peer_seconds:10.3g}s {ratio:10.3g}  "
                f"{row.wanted:8} {row.peer}",
                flush=True,
            )
    if output is not None:
        save(output, [row.as_dict() for row in rows])


if __name__ == "__main__":
    main()

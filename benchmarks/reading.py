"""Reading a PrefLib file: a made-up election, and with ``RANKERNEL_DATA`` set the files in ``preflib`` under it."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import rankernel as rk
from benchmarks.clock import Row, medians
from rankernel.io import read_preflib, write_preflib

FILES = ("00001-00000001.soi", "00001-00000001.toc", "00011-00000004.soi")


def files(folder: str) -> Iterator[Path]:
    """Yield what is to be read, the made-up election first."""
    ballots = rk.datasets.truncate(rk.datasets.mallows(60000, 12, 0.15, rng=0), {3: 0.4, 5: 0.4, 12: 0.2}, rng=1)
    made_up = Path(folder, "made-up.soi")
    write_preflib(ballots.unique(), made_up)
    yield made_up
    root = os.environ.get("RANKERNEL_DATA")
    yield from (Path(root, "preflib", name) for name in FILES) if root else ()


def reading() -> Iterator[Row]:
    try:
        from preflibtools.instances import OrdinalInstance
    except ImportError:
        return

    with tempfile.TemporaryDirectory() as folder:
        for path in files(folder):
            ours, theirs = medians(
                lambda: read_preflib(path),  # noqa: B023
                lambda: OrdinalInstance().parse_file(str(path)),  # noqa: B023
                repeats=9,
            )
            size = f"{path.name}, {path.stat().st_size / 2**20:.2f} MB"
            yield Row("reading ballots", size, "preflibtools", ours, theirs, "")


ALL = (reading,)


def splitting(n_rows: int = 100_000) -> Iterator[Row]:
    """Compare splitting by pandas and by csv, which sets ``LARGE`` of ``rankernel.io.table``."""
    from rankernel.io.source import SourceFile
    from rankernel.io.table import split_by_pandas, split_rows, table_of_rows

    names = [f"candidate number {number}" for number in range(12)]
    orders = rk.datasets.uniform(n_rows, 12, rng=0).ranks[:, :6].tolist()
    lines = [",".join(f"rank {position}" for position in range(1, 7))]
    text = "\n".join([*lines, *(",".join(names[item] for item in order) for order in orders)])
    source = SourceFile(io.StringIO(text))
    ours, theirs = medians(
        lambda: split_by_pandas(source, ","),
        lambda: table_of_rows(split_rows(source, ","), source),
        repeats=5,
    )
    yield Row("splitting a table", f"{len(text) / 2**20:.1f} MB", "csv", ours, theirs, "")


if __name__ == "__main__":
    for row in splitting():
        print(row)

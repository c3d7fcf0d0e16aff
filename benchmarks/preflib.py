"""How long reading a PrefLib file takes, here and with preflibtools, in one process.

Run with ``RANKERNEL_DATA=... python -m benchmarks.preflib``; the folder ``preflib`` under it holds the files.
"""

import os
import statistics
import sys
import time
from pathlib import Path

from preflibtools.instances import OrdinalInstance

from rankernel.io import read_preflib

FILES = ("00001-00000001.soi", "00001-00000001.toc", "00011-00000004.soi")
REPEATS = 15


def with_preflibtools(path):
    instance = OrdinalInstance()
    instance.parse_file(str(path))
    return instance


def seconds(read, path):
    start = time.perf_counter()
    read(path)
    return time.perf_counter() - start


def main():
    root = os.environ.get("RANKERNEL_DATA")
    if not root:
        sys.exit("set RANKERNEL_DATA to the folder that holds preflib/")
    print(f"{'file':<20} {'rankernel':>10} {'preflibtools':>13} {'ratio':>6}   (median of {REPEATS}, milliseconds)")
    for name in FILES:
        path = Path(root, "preflib", name)
        # In turns, so that whatever else the machine does falls on both.
        pairs = [(seconds(read_preflib, path), seconds(with_preflibtools, path)) for _ in range(REPEATS)]
        ours, theirs = (1000 * statistics.median(times) for times in zip(*pairs, strict=True))
        print(f"{name:<20} {ours:>10.1f} {theirs:>13.1f} {theirs / ours:>5.1f}x")


if __name__ == "__main__":
    main()

"""How time and memory grow with the number of rankings: a Gram matrix as N², its sums too, Nyström features as N.

Run with ``python -m benchmarks.scaling`` (a minute), or ``--largest 100000`` on a quiet machine with the memory for it:
a Gram matrix that does not fit is written to disk block by block (``--folder``), and its time counts the writing. The
sums are those that a two-sample test needs, with no matrix held.
"""

import argparse
import math
import resource
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

import rankernel as rk
from benchmarks.clock import save

LINES = {  # what is drawn: label, power of N, colour
    "gram": ("Gram matrix", 2, "C0"),
    "sums": ("sums of the Gram matrix, not held", 2, "C2"),
    "nystrom": ("Nyström features", 1, "C1"),
}
KERNELS = {"Kendall": rk.Kendall(), "Mallows": rk.Mallows(0.1), "exp-Hamming": rk.Exponential("hamming", 0.2)}


def ballots(n_rankings, n_items, listed, seed=0):
    """Distinct top-k lists: equal ones would be computed once."""
    rng, found = np.random.default_rng(seed), np.empty((0, n_items), dtype=np.int32)
    while len(found) < n_rankings:
        fresh = np.argsort(rng.random((2 * n_rankings, n_items)), axis=1).astype(np.int32)
        found = rk.Rankings(np.concatenate([found, np.minimum(fresh, listed)])).unique().ranks
    return rk.Rankings(found[:n_rankings])


def sizes(largest):
    """1,000, 2,000, 5,000, 10,000 and so on."""
    steps = (round(lead * 10**power) for power in range(3, 9) for lead in (1, 2, 5))
    return [n for n in steps if n <= largest]


def seconds(call):
    start = time.perf_counter()
    where = call()
    return time.perf_counter() - start, where


def gram_or_store(kernel, options, X):
    """Compute a Gram matrix, in memory where it fits."""
    try:
        kernel.gram(X)
    except MemoryError:
        with tempfile.TemporaryDirectory(dir=options.folder) as place:
            kernel.plan(X).store(Path(place, "K.zarr"))
        return "disk"
    return "memory"


def sums(kernel, _, X):
    kernel.plan(X).times(X.counts)
    return "memory"


def features(kernel, options, X):
    rk.NystromFeatures(options.components, kernel=kernel).fit_transform(X)
    return "memory"


def growth(rows):
    """The exponent p of time ~ N^p between the two largest sizes."""
    if len(rows) < 2:
        return None
    (n, t), (m, s) = ((row["n_rankings"], row["seconds"]) for row in rows[-2:])
    return math.log(s / t) / math.log(m / n)


def measured(task, name, call, all_sizes, options):
    """Return one row a size; the first call of all is thrown away, as it compiles."""
    call(ballots(100, options.items, options.listed))
    rows = []
    for n in all_sizes:
        X = ballots(n, options.items, options.listed)
        took, where = min(seconds(lambda X=X: call(X)) for _ in range(options.repeats))
        rows.append({"task": task, "kernel": name, "n_rankings": n, "seconds": took, "where": where})
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        each = f"{took:>10.3f} s  {took / n * 1e6:>9.2f} µs/ranking"
        print(f"{task:<10} {name:<12} {n:>10,} {each}  {where}, {peak:,.0f} MiB")
    exponent = growth(rows)
    if exponent is not None:
        print(f"{task:<10} {name:<12} grows as N^{exponent:.2f}")
    return rows


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=5_000, help="the most rankings of a Gram matrix")
    parser.add_argument("--largest-sums", type=int, default=10_000, help="the most rankings whose matrix is summed")
    parser.add_argument("--largest-nystrom", type=int, default=20_000, help="the most rankings that get features")
    parser.add_argument("--components", type=int, default=100)
    parser.add_argument("--items", type=int, default=12)
    parser.add_argument("--listed", type=int, default=6, help="how many items each ballot lists")
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many counts")
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=list(KERNELS))
    parser.add_argument("--folder", help="where matrices go that do not fit into memory")
    parser.add_argument("--json", help="a file for the results")
    parser.add_argument("--figure", help="a file for the picture")
    return parser.parse_args()


def draw(rows, path):
    """Draw seconds against the number of rankings, both logarithmic, with the slopes that theory gives."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "rankernel", "svg.fonttype": "none"})
    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for task, (label, power, color) in LINES.items():
        points = np.array([(row["n_rankings"], row["seconds"]) for row in rows if row["task"] == task])
        if not len(points):
            continue
        axes.loglog(*points.T, "o-", color=color, label=label)
        n, last = points[-1]
        axes.loglog(points[:, 0], last * (points[:, 0] / n) ** power, ":", color=color, linewidth=1)
    axes.set(xlabel="rankings", ylabel="seconds", title="Dotted: growth as N² and as N")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


def main():
    options = arguments()
    tasks = (
        ("gram", gram_or_store, options.largest),
        ("sums", sums, options.largest_sums),
        ("nystrom", features, options.largest_nystrom),
    )
    rows = []
    for name in options.kernels:
        for task, call, largest in tasks:
            rows += measured(task, name, partial(call, KERNELS[name], options), sizes(largest), options)
    setting = {key: getattr(options, key) for key in ("items", "listed", "components", "repeats")}
    if options.json:
        save(options.json, rows, setting=setting)
    if options.figure:
        draw(rows, options.figure)


if __name__ == "__main__":
    main()

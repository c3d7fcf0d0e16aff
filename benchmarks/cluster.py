"""The same work on one process and on a cluster of worker processes, each with one thread.

Run with ``python -m benchmarks.cluster --workers 1 2 4``, with as many workers as the machine has cores.
"""

import argparse

import distributed
import numpy as np

import rankernel as rk
from benchmarks.clock import medians, save
from benchmarks.scaling import ballots
from rankernel.learn import dask as many

KERNEL = rk.Mallows(0.1)


def tasks(options):
    """Return for each piece of work its name, the call in this process, and the call on the cluster."""
    X = ballots(options.rankings, 20, 8)
    held = np.ones((len(X), len(X)))
    lazy = many.gram(KERNEL.plan(X), chunks=options.chunks).sum()
    Y = ballots(options.rankings_nystrom, 20, 8)
    features = rk.NystromFeatures(100, kernel=KERNEL).fit(Y[:10_000])
    lazy_features = many.transform(Y, features).sum()
    return (
        (
            f"sum of a Gram matrix, N={len(X):,}",
            lambda: KERNEL.gram(X, out=held).sum(),
            lazy.compute,
        ),
        (f"100 Nyström features, N={len(Y):,}", lambda: features.transform(Y).sum(), lazy_features.compute),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rankings", type=int, default=20_000)
    parser.add_argument("--rankings-nystrom", type=int, default=200_000)
    parser.add_argument("--chunks", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", help="a file for the results")
    options = parser.parse_args()
    rows = []

    def report(work, where, processes, seconds):
        rows.append({"work": work, "where": where, "processes": processes, "seconds": seconds})
        print(f"{work:<40} {where:<24} {processes:>3} {seconds:>8.2f} s", flush=True)

    all_tasks = tasks(options)
    for work, local, _ in all_tasks:
        report(work, "one process, all cores", 1, medians(local, repeats=options.repeats)[0])
    for workers in options.workers:
        with (
            distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
            distributed.Client(cluster) as client,
        ):
            client.wait_for_workers(workers)
            for work, _, remote in all_tasks:
                report(work, "cluster, one core each", workers, medians(remote, repeats=options.repeats)[0])
    if options.json:
        save(options.json, rows, chunks=options.chunks)


if __name__ == "__main__":
    main()

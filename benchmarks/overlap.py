"""Rank-biased overlap against the package rbo, where it is installed: top-10 lists of a thousand items.

``python -m benchmarks.overlap [-o FILE] [--lists N] [--features N]`` also times sparse features of many lists.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import rankernel as rk
from benchmarks.clock import Row, medians, once, save

N_ITEMS, LENGTH, P = 1000, 10, 0.9
BLOCK = 50_000  # lists
FEW = 100  # lists for the package: its time is the same for every pair
NOBODY = float("nan")


def top_lists(n_lists: int, seed: int = 0) -> rk.Rankings:
    """Return lists of popular items: item i is chosen with probability proportional to 1/i."""
    rng = np.random.default_rng(seed)
    ranks = np.full((n_lists, N_ITEMS), LENGTH, dtype=np.int32)
    popularity = -np.log(np.arange(1, N_ITEMS + 1, dtype=np.float32))
    for start in range(0, n_lists, 10_000):
        block = ranks[start : start + 10_000]
        heights = popularity + rng.gumbel(size=block.shape).astype(np.float32)
        top = np.argpartition(-heights, LENGTH, axis=1)[:, :LENGTH]
        order = np.argsort(-np.take_along_axis(heights, top, axis=1), axis=1)
        places = np.arange(LENGTH, dtype=np.int32)[None]
        np.put_along_axis(block, np.take_along_axis(top, order, axis=1), places, axis=1)
    return rk.Rankings(ranks)


def gram(n_lists: int = 10_000) -> Iterator[Row]:
    """The Gram matrix, checked against the package on some lists."""
    lists = top_lists(n_lists)
    kernel = rk.RankBiasedOverlap(P, depth=LENGTH)
    (seconds,) = medians(lambda: kernel.gram(lists), repeats=3)
    try:
        import rbo
    except ModuleNotFoundError:
        return
    orders = np.argsort(lists.ranks[:FEW], axis=1, kind="stable")[:, :LENGTH].tolist()
    found = np.empty((FEW, FEW))

    def by_package() -> None:
        for i, left in enumerate(orders):
            for j, right in enumerate(orders):
                found[i, j] = rbo.RankingSimilarity(left, right).rbo(p=P)

    peer = once(by_package) / FEW**2 * n_lists**2
    np.testing.assert_allclose(kernel.gram(lists[:FEW]), found, rtol=1e-12)
    size = f"N={n_lists:,}, top-{LENGTH} of {N_ITEMS:,}"
    yield Row("rank-biased overlap, Gram matrix", size, "rbo (from its time for 100 lists)", seconds, peer, ">= 100")


def features(n_lists: int) -> Iterator[Row]:
    """Sparse features, whose inner products are the mean over completions: block by block, as they come from a file."""
    lists = top_lists(min(n_lists, BLOCK))
    transformer = rk.MeanFeatures(rk.RankBiasedOverlap(P), sparse_output=True).fit(lists[:1000])
    transformer.transform(lists[:1000])
    rng, seconds = np.random.default_rng(0), 0.0
    for _ in range(0, n_lists, BLOCK):
        block = rk.Rankings(lists.ranks[:, rng.permutation(N_ITEMS)])
        seconds += once(lambda: transformer.transform(block))  # noqa: B023
    size = f"N={n_lists:,}, top-{LENGTH} of {N_ITEMS:,}"
    yield Row("rank-biased overlap, sparse features", size, "none", seconds, NOBODY, "")


ALL = (gram,)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overlap", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="save the numbers here, as JSON")
    parser.add_argument("--lists", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=1_000_000)
    options = parser.parse_args()
    rows = [*gram(options.lists), *features(options.features)]
    for row in rows:
        print(
            f"{row.claim:40} {row.size:30} {row.seconds:8.3g}s  {row.peer}: {row.peer_seconds:.3g}s ({row.ratio:.3g})"
        )
    if options.output is not None:
        save(options.output, [row.as_dict() for row in rows])


if __name__ == "__main__":
    main()

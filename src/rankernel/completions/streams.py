"""Reproducible randomness: each ranking has a random stream of its own.

A stream depends on the seed, on what it is used for and on the ranking, and where equal rankings must be independent
also on a row number. It does not depend on the other rankings, so blocks computed apart, in any order, on any number
of threads, see the same draws.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel._utils.arrays import RankArray

Streams = NDArray[np.uint64]

# A row number that no row has: streams of rankings that are not told apart by their rows.
NO_ROW = 2**64 - 1


def stream_key(seed: int, purpose: str) -> np.uint64:
    """Return 64 bits that belong to a seed and a purpose: what one purpose draws leaves the others alone."""
    digest = blake2b(f"{purpose}\0{seed}".encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def row_streams(ranks: RankArray, seed: int, purpose: str, rows: NDArray[np.integer] | None = None) -> Streams:
    """Return one stream a ranking; with ``rows``, equal rankings in different rows have independent ones."""
    numbers = np.full(len(ranks), NO_ROW, dtype=np.uint64) if rows is None else np.asarray(rows, dtype=np.uint64)
    streams: Streams = _loops.row_hashes.hash_rows(ranks, stream_key(seed, purpose), numbers)
    return streams

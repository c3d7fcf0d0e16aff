"""Seeds, and one reproducible random stream per ranking.

A stream is a 64-bit word that depends on the seed, on a purpose and on the ranking, and where equal rankings must have
independent draws also on a row number. It does not depend on the other rankings, so blocks computed separately, in any
order and on any number of threads, use the same draws.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import RankArray
from rankernel._utils.checks import short_repr
from rankernel.errors import RankingError

Seed = int | np.integer | np.random.Generator | None
Streams = NDArray[np.uint64]
Words = TypeVar("Words", np.uint64, Streams)

NO_ROW = 2**64 - 1  # row number of streams that do not depend on the row
# Constants of splitmix64 (Steele, Lea and Flood 2014).
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1, MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S_27, S_30, S_31 = np.uint64(27), np.uint64(30), np.uint64(31)


def as_seed(rng: Seed, name: str = "rng") -> int:
    """Return an integer seed: a Generator is drawn from once, None uses fresh entropy from the operating system."""
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if rng is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or rng < 0:
        raise RankingError(
            f"{name}={short_repr(rng)} is not a seed; give a whole number >= 0, a numpy Generator or None"
        )
    return int(rng)


def as_generator(rng: Seed) -> np.random.Generator:
    """Return a Generator unchanged, or a new Generator for a seed."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(as_seed(rng))


# ---------------------------------------------------------------------- streams


def stream_key(seed: int, purpose: str) -> np.uint64:
    """Return 64 bits that depend on a seed and a purpose, so that different purposes use independent streams."""
    digest = blake2b(f"{purpose}\0{seed}".encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def row_streams(ranks: RankArray, seed: int, purpose: str, rows: NDArray[np.integer] | None = None) -> Streams:
    """Return one stream per ranking; with row numbers ``rows``, equal rankings have independent streams."""
    n_rankings, n_items = ranks.shape
    streams = substreams(np.full(n_rankings, stream_key(seed, purpose)), np.full(n_rankings, n_items, np.uint64))
    for a in range(n_items):
        streams = substreams(streams, (ranks[:, a] + 1).astype(np.uint64))
    return substreams(streams, np.full(n_rankings, NO_ROW, np.uint64) if rows is None else np.asarray(rows, np.uint64))


def scramble(word: Words) -> Words:
    """Return words with their bits mixed, one to one: the finaliser of splitmix64."""
    word = (word ^ (word >> S_30)) * MIX_1
    word = (word ^ (word >> S_27)) * MIX_2
    return word ^ (word >> S_31)


def substreams(streams: Streams, numbers: Streams) -> Streams:
    """Return the substreams with the given numbers."""
    return scramble(scramble(streams + GOLDEN) + GOLDEN * (numbers + np.uint64(1)))

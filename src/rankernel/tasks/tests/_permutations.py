"""What permutation tests share: random divisions of voters, quadratic forms of many at once, p-values with ties."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rankernel import _loops
from rankernel.arrays import FloatArray, IntArray
from rankernel.completions.streams import stream_key
from rankernel.errors import RankingError
from rankernel.seeds import Seed, as_seed

SIDE = 256  # of a tile of the Gram matrix
ENTRIES = 2**22  # of an array that holds one row for each permutation
MOST_DENSE = 10**9  # voters that NumPy divides at random
DENSE = 32  # voters a ballot, from which drawing ballot by ballot is quicker than voter by voter
TIED = 1e-13  # of the mean size of a kernel value: closer statistics differ by rounding only


def generator(seed: Seed, purpose: str) -> np.random.Generator:
    """Return a generator for one purpose, which no other purpose disturbs."""
    return np.random.default_rng(int(stream_key(as_seed(seed), purpose)))


def divisions(first: IntArray, both: IntArray, n_divisions: int, seed: int) -> Iterator[FloatArray]:
    """Yield random divisions of all voters into two samples, many at a time: how many of each row go to the first.

    Permuting voters that share rows makes these numbers multivariate hypergeometric. ``first`` and ``both`` hold the
    voters of the first sample and of both, by stratum and row; each stratum keeps the size of its first sample.
    """
    strata = [
        DivisionStream(voters, int(chosen.sum()), generator(seed, f"divisions of stratum {number}"))
        for number, (chosen, voters) in enumerate(zip(first, both, strict=True))
    ]
    step = max(ENTRIES // both.shape[1], 1)
    for start in range(0, n_divisions, step):
        counts = np.zeros((min(step, n_divisions - start), both.shape[1]))
        for stratum in strata:
            stratum.add_to(counts)
        yield counts


class DivisionStream:
    """One division of the voters of a stratum after another: ``size`` of them go to the first sample."""

    def __init__(self, voters: IntArray, size: int, rng: np.random.Generator) -> None:
        self.size, self.rng = size, rng
        self.rows = np.flatnonzero(voters)
        self.present = voters[self.rows]
        self.dense = self.present.sum() >= DENSE * len(self.rows)
        if self.dense and self.present.sum() >= MOST_DENSE:
            raise RankingError(
                f"there are {int(self.present.sum()):,} voters, and at most {MOST_DENSE:,} can be permuted; divide all "
                "counts by the same number: with so many voters the p-value is next to 0 for any difference"
            )
        if not self.dense:
            self.row_of_voter = np.repeat(self.rows, self.present)
            self.state = rng.integers(2**64, size=4, dtype=np.uint64)

    def add_to(self, counts: FloatArray) -> None:
        """Add a division to each row of ``counts``, ballot by ballot where voters are many, else voter by voter."""
        if self.dense:
            drawn = self.rng.multivariate_hypergeometric(self.present, self.size, size=len(counts), method="marginals")
            counts[:, self.rows] += drawn.astype(np.float64)
        else:
            _loops.permuted_sums.choose_voters(self.row_of_voter, self.size, self.state, counts)


def permuted(values: IntArray, strata: IntArray, n_permutations: int, n_at_once: int, seed: int) -> Iterator[IntArray]:
    """Yield random permutations of one value a voter, each a row, within strata, ``n_at_once`` at a time."""
    streams = [generator(seed, f"permutations of stratum {stratum}") for stratum in range(int(strata.max()) + 1)]
    members = [np.flatnonzero(strata == stratum) for stratum in range(len(streams))]
    for start in range(0, n_permutations, n_at_once):
        shuffled = np.tile(values, (min(n_at_once, n_permutations - start), 1))
        for rng, inside in zip(streams, members, strict=True):
            shuffled[:, inside] = rng.permuted(shuffled[:, inside], axis=1)
        yield shuffled


def off_diagonal_forms(gram: FloatArray, vectors: FloatArray) -> FloatArray:
    r"""Return :math:`\sum_{u \ne v} c_u c_v K_{uv}` for each row c of ``vectors``.

    Matrix products over the lower triangle of K alone, tile by tile: half the work of one product with all of it, and
    no second matrix of its size. The diagonal never enters, so it cannot drown smaller entries by rounding.
    """
    total = np.zeros(len(vectors))
    for start in range(0, len(gram), SIDE):
        inside = slice(start, start + SIDE)
        tile = gram[inside, inside].copy()
        np.fill_diagonal(tile, 0.0)
        products = 2 * (vectors[:, :start] @ gram[inside, :start].T) if start else 0.0
        total += np.einsum("pu,pu->p", products + vectors[:, inside] @ tile, vectors[:, inside])
    return total


def count_at_least(null: FloatArray, values: FloatArray, tolerance: float) -> IntArray:
    """Return how many of a null distribution are at least as large as each value, equal ones included."""
    below = np.searchsorted(np.sort(null), values - tolerance, side="left")
    return np.asarray(len(null) - below, dtype=np.int64)


def pvalue(null: FloatArray, statistic: float, tolerance: float) -> float:
    """Return (1 + #{null >= statistic}) / (1 + #null): the test has its level exactly, ties count against it."""
    return float(1 + count_at_least(null, np.array([statistic]), tolerance)[0]) / (1 + len(null))


def check_divisible(first: IntArray, both: IntArray) -> None:
    """Refuse strata in which no voter can change sides."""
    sizes, voters = first.sum(axis=1), both.sum(axis=1)
    if not ((sizes > 0) & (sizes < voters)).any():
        raise RankingError(
            "no stratum has voters of both samples, so that there is nothing to permute; use coarser strata"
        )

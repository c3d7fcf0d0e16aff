"""Groups of voters compared two by two: maximum mean discrepancy, corrected for the number of tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

import numpy as np

from rankernel.gram import MonteCarlo
from rankernel.gram.choose import choose
from rankernel.gram.methods import MethodLike
from rankernel.kernels import Kernel
from rankernel.rankings import Rankings
from rankernel.report.ballots import Ballots, some_voters
from rankernel.report.clusters import mean_places
from rankernel.report.embedding import FloatArray

__all__ = ["Comparison", "all_compared", "holm", "testable"]

MOST_GROUPS = 6
MOST_VOTERS = 1500  # of a group, where ballots are many
MOST_DRAWN = 300  # of a group, where kernel values are estimated for each voter
MOST_DISTINCT = 3000


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two groups compared.

    Attributes
    ----------
    first, second : int
        The groups.
    n_first, n_second : int
        How many voters of each were compared.
    statistic, pvalue : float
        The squared discrepancy, and how often chance alone gives as much.
    corrected : float
        The p-value corrected for the number of tests (Holm).
    null : array
        The statistic for random divisions of the voters.
    shift : array of shape (n_items,)
        By how many places each item stands lower in the first group than in the second; negative if higher.
    """

    first: int
    second: int
    n_first: int
    n_second: int
    statistic: float
    pvalue: float
    corrected: float
    null: FloatArray
    shift: FloatArray


def testable(ballots: Ballots) -> list[int]:
    """Return the groups to compare: the largest ones, those of a single voter left out."""
    voters = ballots.by_group.sum(axis=0)
    largest = np.argsort(-voters, kind="stable")[:MOST_GROUPS]
    return sorted(int(group) for group in largest if voters[group] > 1)


class HowToTest(Protocol):
    """What a comparison needs to know of how a report is made."""

    @property
    def method(self) -> MethodLike: ...
    @property
    def n_permutations(self) -> int: ...
    @property
    def seed(self) -> int: ...


def all_compared(ballots: Ballots, kernel: Kernel, settings: HowToTest, step: Callable[[str], Any]) -> list[Comparison]:
    """Return all comparisons of two groups."""
    from rankernel.tasks.mmd import mmd_test

    method, seed, found = settings.method, settings.seed, []
    for first, second in combinations(testable(ballots), 2):
        pair = [ballots.of_group(first), ballots.of_group(second)]
        X, Y = (bearable(group, pair, kernel, method, seed + place) for place, group in enumerate(pair))
        result = mmd_test(X, Y, kernel, settings.n_permutations, seed, method=method)
        shift = mean_places(pair[0]) - mean_places(pair[1])
        found.append((first, second, X.n_voters, Y.n_voters, result, shift))
        step("Comparing groups")
    corrected = holm(np.array([result.pvalue for *_, result, _ in found]))
    return [
        Comparison(a, b, m, n, result.statistic, result.pvalue, p, result.null_distribution, shift)
        for (a, b, m, n, result, shift), p in zip(found, corrected.tolist(), strict=True)
    ]


def bearable(group: Rankings, pair: list[Rankings], kernel: Kernel, method: MethodLike, seed: int) -> Rankings:
    """Return a group, or some of its voters taken at random where all would take too long."""
    few = group[:50]
    most = MOST_DRAWN if isinstance(choose(kernel, few, few, method)[0], MonteCarlo) else MOST_VOTERS
    if most == MOST_VOTERS and sum(map(len, pair)) <= MOST_DISTINCT:
        return group
    rows, counts = some_voters(group.counts, most, seed)
    return Rankings(group.ranks[rows], group.items, counts)


def holm(pvalues: FloatArray) -> FloatArray:
    """Return p-values corrected for their number by Holm's method.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(pvalues, kind="stable")
    raised = pvalues[order] * np.arange(len(pvalues), 0, -1)
    corrected = np.empty(len(pvalues))
    corrected[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    return corrected

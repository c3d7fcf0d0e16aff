"""Groups of voters compared two by two: maximum mean discrepancy, corrected for the number of tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from rankernel.analysis.clustering import mean_places
from rankernel.analysis.distinct_ballots import Ballots, some_voters
from rankernel.arrays import FloatArray
from rankernel.data import Data, with_counts
from rankernel.kernels.base import Kernel

if TYPE_CHECKING:
    from rankernel.analysis.summary import Settings
    from rankernel.tasks.tests.differences import PairDifference

MOST_GROUPS = 6
MOST_VOTERS = 1500  # of a group, where ballots are many
MOST_DISTINCT = 3000
MOST_PAIRS = 4  # of items that make most of a difference


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two groups compared."""

    first: int  # the numbers of the groups
    second: int
    n_first: int  # how many voters of each were compared
    n_second: int
    statistic: float  # the squared discrepancy
    pvalue: float  # how often chance alone gives as much
    corrected: float  # the p-value corrected for the number of tests (Holm)
    null: FloatArray  # the statistic for random divisions of the voters
    shift: FloatArray  # (n_items,): places that each item stands lower in the first group; negative: higher
    effect: float  # the share of the dispersion of the voters that lies between the two groups
    pairs: tuple[PairDifference, ...]  # the pairs of items that make most of the difference


def groups_to_compare(ballots: Ballots) -> list[int]:
    """Return the groups to compare: the largest ones, those of a single voter left out."""
    voters = ballots.by_group.sum(axis=0)
    largest = np.argsort(-voters, kind="stable")[:MOST_GROUPS]
    return sorted(int(group) for group in largest if voters[group] > 1)


def compare_groups(
    ballots: Ballots, kernel: Kernel, settings: Settings, step: Callable[[str], Any]
) -> list[Comparison]:
    """Return all comparisons of two groups."""
    from rankernel.tasks.tests.corrections import holm
    from rankernel.tasks.tests.mmd import mmd_test

    method, seed, found = settings.method, settings.seed, []
    for first, second in combinations(groups_to_compare(ballots), 2):
        pair = [ballots.of_group(first), ballots.of_group(second)]
        X, Y = (some_of(group, pair, seed + place) for place, group in enumerate(pair))
        result = mmd_test(X, Y, kernel, settings.n_permutations, seed, method=method)
        shift = mean_places(pair[0]) - mean_places(pair[1])
        found.append((first, second, X.n_voters, Y.n_voters, result, shift))
        step("Comparing groups")
    corrected = holm(np.array([result.pvalue for *_, result, _ in found]))
    return [
        Comparison(
            a,
            b,
            m,
            n,
            result.statistic,
            result.pvalue,
            p,
            result.null_distribution,
            shift,
            result.effect,
            result.differences(by="pairs").pairs[:MOST_PAIRS] if len(shift) > 1 else (),
        )
        for (a, b, m, n, result, shift), p in zip(found, corrected.tolist(), strict=True)
    ]


def some_of(group: Data, pair: list[Data], seed: int) -> Data:
    """Return a group, or some of its voters taken at random where the ballots of both are very many."""
    if sum(map(len, pair)) <= MOST_DISTINCT:
        return group
    rows, counts = some_voters(group.counts, MOST_VOTERS, seed)
    return with_counts(group[rows], counts)

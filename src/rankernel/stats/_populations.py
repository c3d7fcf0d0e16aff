r"""Populations that differ by a given effect, and simulated data from them, tested as real data would be.

The population of a group is its pilot voters. As these differ by chance, too, groups are drawn towards each other: with
:math:`P_g` the ballots of group g and M those of all, group g of a simulation comes from
:math:`M + \lambda (P_g - M)`, and :math:`\lambda` is such that the effect is the one that is wanted. Within strata each
stratum has an M of its own. Of judges who rank twice a part :math:`\lambda` is as found, and the others have before and
after in any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankernel._utils.arrays import FloatArray, IntArray
from rankernel._utils.checks import check_integer
from rankernel.errors import RankingError
from rankernel.stats._effect_law import where_it_begins
from rankernel.stats._effects import equal_weights, own_size, parts_of_population, share_of
from rankernel.stats._groups import NO_MOMENTS, GroupedVoters, dispersion_of
from rankernel.stats._permutations import TIED, Null, is_divisible
from rankernel.stats.adaptive import Adaptive
from rankernel.stats.paired import JudgePairs, SignFlips


class Population(ABC):
    """What simulated voters come from."""

    effect: float

    @property
    @abstractmethod
    def least(self) -> int:
        """The smallest number of voters that can be tested."""

    @abstractmethod
    def sizes(self, n: int | Sequence[int]) -> IntArray:
        """Return how many voters each group has, from their number in all or that of each."""

    @abstractmethod
    def rejects(self, sizes: IntArray, rng: np.random.Generator, rule: Adaptive, seed: int) -> bool:
        """Say whether the test of newly simulated voters rejects."""


def drawn_together(effect_at: Callable[[float], float], wanted: float) -> float:
    """Return the lambda at which the effect is the one that is wanted."""
    largest = effect_at(1.0)
    if wanted > largest:
        raise RankingError(
            f"effect={wanted:g} is larger than the {largest:.3g} that the ballots of the pilot show; take pilot data, "
            "or models, that differ more"
        )
    return where_it_begins(lambda kept: not effect_at(kept) < wanted, 0.0, 1.0)


# ---------------------------------------------------------------------- groups


@dataclass(frozen=True, eq=False)
class GroupPopulation(Population):
    """Groups of different voters: the shares of the ballots in each stratum and group."""

    voters: GroupedVoters
    shares: FloatArray
    effect: float
    biased: bool

    @classmethod
    def of(cls, voters: GroupedVoters, effect: float, biased: bool) -> GroupPopulation:
        """Return groups like those of a pilot that differ by an effect."""
        table = voters.table.astype(np.float64)
        sizes = table.sum(axis=2, keepdims=True)
        middle = table.sum(axis=1, keepdims=True) / sizes.sum(axis=1, keepdims=True)
        own = np.where(sizes > 0, table / np.maximum(sizes, 1.0), middle)
        present = sizes[:, :, 0]

        def effect_at(kept: float) -> float:
            return population_effect(voters.gram, middle + kept * (own - middle), present)

        kept = drawn_together(effect_at, effect)
        return cls(voters, middle + kept * (own - middle), effect, biased)

    @property
    def least(self) -> int:
        """Two voters of each group, or one."""
        return len(self.voters.names) * (1 if self.biased else 2)

    def sizes(self, n: int | Sequence[int]) -> IntArray:
        """Return how many voters each group has; those of all are divided as in the pilot."""
        least, k = (1 if self.biased else 2), len(self.voters.names)
        if isinstance(n, Sequence | np.ndarray) and not isinstance(n, str | bytes) and getattr(n, "ndim", 1) != 0:
            if len(n) != k:
                raise ValueError(f"n has {len(n)} numbers, and there are {k} groups; give one for each")
            return np.array([check_integer("n", each, least) for each in n])
        total = check_integer("n", n, k * least)
        exact = self.voters.sizes / self.voters.sizes.sum() * total
        return np.asarray(np.maximum(np.round(exact).astype(np.int64), least))

    def rejects(self, sizes: IntArray, rng: np.random.Generator, rule: Adaptive, seed: int) -> bool:
        """Say whether the test of newly simulated voters rejects, within strata if those of the pilot were."""
        table = np.zeros(self.voters.table.shape, dtype=np.int64)
        in_strata = self.voters.table.sum(axis=2) / self.voters.sizes
        for group, size in enumerate(sizes.tolist()):
            for stratum, n_voters in enumerate(apportioned(in_strata[:, group], size).tolist()):
                table[stratum, group] = rng.multinomial(n_voters, self.shares[stratum, group])
        rows = np.flatnonzero(table.any(axis=(0, 1)))
        simulated = replace(
            self.voters,
            data=self.voters.data[rows],
            table=table[:, :, rows],
            given=self.voters.gram[np.ix_(rows, rows)],
        )
        if not is_divisible(simulated.table):
            return False
        return dispersion_of(simulated, self.biased, seed).pvalue(rule) <= rule.level


def population_effect(gram: FloatArray, shares: FloatArray, sizes: FloatArray) -> float:
    """Return the effect within strata, from the shares of the ballots and the voters of each stratum and group."""
    found = np.zeros(2)
    for stratum, own in zip(shares, sizes, strict=True):
        groups = np.flatnonzero(own)
        if len(groups) > 1:
            found += own.sum() * np.array(parts_of_population(gram, stratum[groups], *equal_weights(len(groups))))
    return share_of(float(found[0]), float(found[1]), float(own_size(gram) * sizes.sum()))


def apportioned(shares: FloatArray, size: int) -> IntArray:
    """Return whole numbers in given proportions that add up (largest remainders).

    Examples
    --------
    >>> apportioned(np.array([0.5, 0.3, 0.2]), 7)
    array([4, 2, 1])
    """
    exact = shares / shares.sum() * size
    found: IntArray = np.floor(exact).astype(np.int64)
    found[np.argsort(found - exact, kind="stable")[: size - int(found.sum())]] += 1
    return found


# ---------------------------------------------------------------------- judges


@dataclass(frozen=True, eq=False)
class JudgePopulation(Population):
    """Judges who rank twice: the shares of the pairs of ballots, and of the same turned round."""

    pairs: JudgePairs
    shares: FloatArray
    effect: float

    @classmethod
    def of(cls, pairs: JudgePairs, effect: float) -> JudgePopulation:
        """Return judges like those of a pilot who change by an effect."""

        def effect_at(kept: float) -> float:
            return share_of(*pairs.of_population(*pairs.shares(kept)), own_size(pairs.gram))

        return cls(pairs, np.concatenate(pairs.shares(drawn_together(effect_at, effect))), effect)

    @property
    def least(self) -> int:
        """Two judges, or one."""
        return 1 if self.pairs.biased else 2

    def sizes(self, n: int | Sequence[int]) -> IntArray:
        """Return how many judges there are."""
        if isinstance(n, Sequence | np.ndarray):
            raise ValueError("n is the number of judges, each of whom ranks twice; give one number")
        return np.array([check_integer("n", n, self.least)])

    def rejects(self, sizes: IntArray, rng: np.random.Generator, rule: Adaptive, seed: int) -> bool:
        """Say whether the test of newly simulated judges rejects."""
        kept, turned = np.split(rng.multinomial(int(sizes[0]), self.shares).astype(np.float64), 2)
        seen = np.flatnonzero(kept + turned)
        judges = replace(
            self.pairs,
            before=self.pairs.before[seen],
            after=self.pairs.after[seen],
            times=(kept + turned)[seen],
            changes=self.pairs.changes[np.ix_(seen, seen)],
        )
        statistic = float(judges.statistics((kept - turned)[None, seen])[0])
        flips = SignFlips(judges, seed)
        return Null.drawn(flips.draw, statistic, TIED * judges.scale, rule, NO_MOMENTS).pvalue <= rule.level

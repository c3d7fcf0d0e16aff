r"""Power: how likely a test finds a difference, and how many ballots it needs, by simulation from pilot data.

The population of a group is its pilot voters. As these differ by chance, too, groups of a pilot are drawn towards each
other: with :math:`P_g` the ballots of group g and M their mean, group g of a simulation comes from
:math:`M + \lambda (P_g - M)`, and :math:`\lambda` is such that the effect is that which was estimated without bias, or
any smaller one that was asked for. Each simulated set of data is tested as real data would be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rankernel.arrays import FloatArray, IntArray
from rankernel.checks import number, shown, whole
from rankernel.errors import RankingError
from rankernel.seeds import Seed, as_seed
from rankernel.tasks.tests._effects import Interval, plug_in_effect
from rankernel.tasks.tests._groups import GroupedVoters, dispersion_of
from rankernel.tasks.tests._permutations import Null, generator
from rankernel.tasks.tests.adaptive import Adaptive
from rankernel.tasks.tests.differences import normal_quantile, share_intervals
from rankernel.tasks.tests.results import Facts, GroupsResult, Told

MOST_PERMUTATIONS = 2000  # of one simulated test
ROUNDS = 8  # of a search for a number of ballots
Progress = Callable[[int, int], object]


@dataclass(frozen=True, eq=False)
class PowerResult(Told):
    """What :func:`power` found.

    Attributes
    ----------
    power : float
        The share of simulated tests that reject.
    power_interval : pair of float
        Its 95 % interval, from the number of simulations.
    n_voters : tuple of int
        How many voters each group has.
    level : float
        The level of the test.
    effect : float
        The effect of the population: as in the results of tests.
    n_simulations : int
        How many tests were simulated.
    """

    power: float
    power_interval: Interval
    n_voters: tuple[int, ...]
    level: float
    effect: float
    n_simulations: int

    def facts(self) -> Facts:
        """Return what there is to say, each with its name."""
        low, high = self.power_interval
        return [
            ("power", f"{self.power:.0%}, 95% interval {low:.0%} to {high:.0%} ({self.n_simulations:,} simulations)"),
            ("voters", " and ".join(f"{n:,}" for n in self.n_voters)),
            ("level", f"{self.level:g}"),
            ("effect", f"{self.effect:.3g}"),
        ]


@dataclass(frozen=True, eq=False)
class BallotsNeeded(Told):
    """What :func:`ballots_needed` found.

    Attributes
    ----------
    n_voters : tuple of int
        How many voters each group needs.
    power : float
        The power that was asked for.
    level, effect
        As in :class:`PowerResult`.
    tried : tuple of PowerResult
        What was simulated on the way.
    """

    n_voters: tuple[int, ...]
    power: float
    level: float
    effect: float
    tried: tuple[PowerResult, ...] = field(repr=False)

    def facts(self) -> Facts:
        """Return what there is to say, each with its name."""
        return [
            ("voters", " and ".join(f"{n:,}" for n in self.n_voters)),
            ("power", f"{self.power:.0%} at level {self.level:g}"),
            ("effect", f"{self.effect:.3g}"),
            ("simulated", f"{sum(each.n_simulations for each in self.tried):,} tests"),
        ]


def power(
    pilot: GroupsResult,
    n: int | Sequence[int],
    level: float = 0.05,
    effect: float | None = None,
    n_simulations: int = 400,
    seed: Seed = 0,
    progress: Progress | None = None,
) -> PowerResult:
    """Return how likely a test finds a difference like that of pilot data, by simulation.

    Parameters
    ----------
    pilot : MMDResult or KSampleResult
        The test of the pilot data: :func:`mmd_test` or :func:`k_sample_test`, with the kernel that will be used.
    n : int or sequence of int
        How many voters there will be: of all groups, in the proportions of the pilot, or of each.
    level : float
        The level of the test.
    effect : float, optional
        The effect of the population, between 0 and the plug-in effect of the pilot; if left out, that of the pilot as
        it was estimated without bias (0 if that was negative, and then the power is the level).
    n_simulations : int
        How many tests to simulate.
    seed : int or Generator
        Where the voters come from.
    progress : function of (n_done, n_simulations), optional
        Called after each simulation, to move a progress bar on.

    Examples
    --------
    >>> from rankernel import datasets, mmd_test, power
    >>> pilot = mmd_test(datasets.mallows(50, 5, 0.0, seed=1), datasets.mallows(50, 5, 0.5, seed=2))
    >>> found = power(pilot, 100, n_simulations=100)
    >>> found.n_voters, 0.5 < found.power <= 1
    ((50, 50), True)
    """
    number("level", level, 0, 1)
    n_runs, start = whole("n_simulations", n_simulations), as_seed(seed)
    check_progress(progress)
    population = Population.of(pilot, effect)
    return population.power(population.sizes(n), level, n_runs, start, progress)


def ballots_needed(
    pilot: GroupsResult,
    power: float = 0.8,
    level: float = 0.05,
    effect: float | None = None,
    n_simulations: int = 200,
    seed: Seed = 0,
    most: int = 100_000,
    progress: Progress | None = None,
) -> BallotsNeeded:
    """Return how many ballots a test needs to find a difference like that of pilot data, by simulation.

    Parameters
    ----------
    pilot, level, effect, seed
        As in :func:`power`.
    power : float
        How likely the test shall find it.
    n_simulations : int
        How many tests to simulate for each number that is tried.
    most : int
        The largest number of ballots to try.
    progress : function of (n_done, n_simulations), optional
        Called after each simulation of a number, to move a progress bar on.

    Notes
    -----
    Numbers are doubled until the power is reached, then halved into; the answer is that of a probit curve through all
    that were tried.

    Examples
    --------
    >>> from rankernel import ballots_needed, datasets, mmd_test
    >>> pilot = mmd_test(datasets.mallows(50, 5, 0.0, seed=1), datasets.mallows(50, 5, 0.5, seed=2))
    >>> sum(ballots_needed(pilot, n_simulations=50).n_voters) in range(30, 300)
    True
    """
    number("level", level, 0, 1)
    wanted = number("power", power, level, 1)
    n_runs, start = whole("n_simulations", n_simulations), as_seed(seed)
    whole("most", most)
    check_progress(progress)
    population = Population.of(pilot, effect)
    if population.effect <= 0:
        raise RankingError(
            "the pilot shows no difference beyond chance, so that no number of ballots would find it; give the "
            "smallest effect that would matter, as effect=0.02"
        )
    tried: list[PowerResult] = []
    low, high = 4 * len(population.voters.names), 8 * len(population.voters.names)
    while len(tried) < ROUNDS or not max(each.power for each in tried) >= wanted:
        searching = not tried or max(each.power for each in tried) < wanted
        n = high if searching else round((low * high) ** 0.5)
        if n > most:
            reached = f"{tried[-1].power:.0%} with {sum(tried[-1].n_voters):,}" if tried else "nothing was tried"
            raise RankingError(
                f"most={most:,} ballots do not reach a power of {wanted:.0%} ({reached}); ask for less power, or raise "
                "most"
            )
        run = len(tried)
        found = population.power(population.sizes(n), level, n_runs, start + run, progress)
        tried.append(found)
        if found.power >= wanted:
            high = n
        else:
            low, high = n, (2 * n if searching else high)
        if not searching and high - low <= max(1, high // 20):
            break
    return BallotsNeeded(
        tuple(population.sizes(interpolated(tried, wanted)).tolist()), wanted, level, population.effect, tuple(tried)
    )


def check_progress(progress: Any) -> None:
    """Refuse what cannot be called after each simulation."""
    if progress is not None and not callable(progress):
        raise TypeError(f"progress={shown(progress)} cannot be called; give a function of (n_done, n_simulations)")


def interpolated(tried: Sequence[PowerResult], wanted: float) -> int:
    """Return the number of voters with the power that is wanted, by a probit curve in the root of their number."""
    from scipy.optimize import minimize
    from scipy.special import log_ndtr, ndtri

    roots = np.sqrt([sum(each.n_voters) for each in tried])
    hits = np.array([each.power * each.n_simulations for each in tried])
    misses = np.array([each.n_simulations for each in tried]) - hits

    def surprise(curve: FloatArray) -> float:
        at = curve[0] + curve[1] * roots
        return -float(hits @ log_ndtr(at) + misses @ log_ndtr(-at))

    base, slope = minimize(surprise, np.array([-1.5, 2.5 / roots[-1]]), method="Nelder-Mead").x
    inside = np.clip((ndtri(min(wanted, 0.999)) - base) / slope if slope > 0 else roots.max(), roots.min(), roots.max())
    return int(np.ceil(inside**2))


# ---------------------------------------------------------------------- simulation


@dataclass(frozen=True, eq=False)
class Population:
    """What groups of simulated voters come from: the shares of ballots in each group."""

    voters: GroupedVoters
    shares: FloatArray
    effect: float
    biased: bool

    @classmethod
    def of(cls, pilot: Any, effect: float | None) -> Population:
        """Return the population of a pilot, its groups drawn together until the effect is right."""
        if not isinstance(pilot, GroupsResult):
            raise TypeError(f"pilot is {type(pilot).__name__}; give the result of mmd_test or k_sample_test")
        voters = pilot._voters
        own = voters.by_group / voters.sizes[:, None]
        middle, largest = own.mean(axis=0), plug_in_effect(voters.gram, own)
        wanted = max(pilot.effect, 0.0) if effect is None else number("effect", effect, 0, 1)
        if wanted > largest:
            raise RankingError(
                f"effect={wanted:g} is larger than the {largest:.3g} that the ballots of the pilot show; take pilot "
                "data that differ more"
            )
        low, high = 0.0, 1.0
        for _ in range(50):
            towards = (low + high) / 2
            if plug_in_effect(voters.gram, middle + towards * (own - middle)) < wanted:
                low = towards
            else:
                high = towards
        return cls(voters, middle + high * (own - middle), wanted, pilot._biased)

    def sizes(self, n: int | Sequence[int]) -> IntArray:
        """Return how many voters each group has."""
        least, k = (1 if self.biased else 2), len(self.voters.names)
        if isinstance(n, Sequence | np.ndarray) and not isinstance(n, str | bytes):
            if len(n) != k:
                raise ValueError(f"n has {len(n)} numbers, and there are {k} groups; give one for each")
            return np.array([whole("n", each, least) for each in n])
        total = whole("n", n, k * least)
        exact = self.voters.sizes / self.voters.sizes.sum() * total
        return np.asarray(np.maximum(np.round(exact).astype(np.int64), least))

    def power(
        self, sizes: IntArray, level: float, n_simulations: int, seed: int, progress: Progress | None
    ) -> PowerResult:
        """Return the share of simulated tests that reject."""
        rng, rejected = generator(seed, "simulated voters"), 0
        rule = Adaptive(level, max(MOST_PERMUTATIONS, int(np.ceil(4 / level)) if level > 0 else 1))
        for run in range(n_simulations):
            table = np.stack([rng.multinomial(int(size), own) for size, own in zip(sizes, self.shares, strict=True)])
            rejected += self.rejects(table, rule, seed + run)
            if progress is not None:
                progress(run + 1, n_simulations)
        share = rejected / n_simulations
        low, high = share_intervals(
            np.array([share]), np.array([share * (1 - share)]), np.array([float(n_simulations)]), normal_quantile(0.95)
        )
        return PowerResult(
            share, (float(low[0]), float(high[0])), tuple(sizes.tolist()), level, self.effect, n_simulations
        )

    def rejects(self, table: IntArray, rule: Adaptive, seed: int) -> bool:
        """Say whether the test of simulated voters rejects."""
        rows = np.flatnonzero(table.any(axis=0))
        simulated = replace(
            self.voters,
            data=self.voters.data[rows],
            table=table[None][:, :, rows],
            given=self.voters.gram[np.ix_(rows, rows)],
        )
        form = dispersion_of(simulated, self.biased, seed)
        return Null.drawn(form.draw, form.statistic, form.tolerance, rule).pvalue <= rule.level

r"""Power: how likely a test finds a difference, and how many ballots it needs, by simulation.

Simulated voters come from pilot data, or from models, drawn towards each other until they differ by the effect that was
estimated without bias, or by any smaller one that was asked for. Each simulated set of data is tested as real data
would be: within strata, judges by changing signs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankernel._utils.arrays import FloatArray, IntArray
from rankernel._utils.checks import check_integer, check_number
from rankernel._utils.rng import Seed, as_seed
from rankernel.errors import RankingError
from rankernel.kernels.base import Kernel
from rankernel.stats._effect_law import Interval
from rankernel.stats._permutations import generator
from rankernel.stats._pilots import population_of
from rankernel.stats._populations import Population
from rankernel.stats._progress import Progress, as_progress
from rankernel.stats.adaptive import Adaptive
from rankernel.stats.differences import normal_quantile, share_intervals
from rankernel.stats.results import Facts, Told

MOST_PERMUTATIONS = 2000  # of one simulated test
ROUNDS = 8  # of a search for a number of ballots


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
    pilot: Any,
    n: int | Sequence[int],
    level: float = 0.05,
    effect: float | None = None,
    n_simulations: int = 400,
    rng: Seed = 0,
    progress: Progress | bool | None = None,
    models: Any = None,
    kernel: Kernel | None = None,
) -> PowerResult:
    """Return how likely a test finds a difference like that of pilot data, or of a given size, by simulation.

    Parameters
    ----------
    pilot : MMDResult, KSampleResult or PairedResult, pair of data, or float
        What was found in pilot data: by :func:`mmd_test`, :func:`k_sample_test` or :func:`paired_test`, with the kernel
        that will be used. The test that is simulated is the same: within strata if that was, by the signs of judges if
        that was. Or the data themselves: two samples, or rankings and the group of each. Or an effect alone, with
        ``models``.
    n : int or sequence of int
        How many voters there will be: of all groups, in the proportions of the pilot, or of each. Of judges who rank
        twice, how many judges.
    level : float
        The level of the test.
    effect : float, optional
        The effect of the population, between 0 and the plug-in effect of the pilot; if left out, that of the pilot as
        it was estimated without bias (0 if that was negative, and then the power is the level).
    n_simulations : int
        How many tests to simulate.
    rng : int or Generator
        Where the voters come from.
    progress : bool or function of (n_done, n_simulations), optional
        True shows a bar on standard error; a function is called after each simulation.
    models : list of CompletionModel or of functions, optional
        One model for each group, of which 1,000 voters each are drawn together until they differ by the effect. An
        effect alone does not say what voters are like, and power depends on that, too: the more they are alike, the
        smaller it is for the same effect.
    kernel : Kernel, optional
        The kernel, where data or models are given; ``Mallows("median")`` if left out.

    Examples
    --------
    >>> from rankernel import MallowsModel, datasets, mmd_test, power
    >>> pilot = mmd_test(datasets.mallows(50, 5, 0.0, rng=1), datasets.mallows(50, 5, 0.5, rng=2))
    >>> found = power(pilot, 100, n_simulations=100)
    >>> found.n_voters, 0.5 < found.power <= 1
    ((50, 50), True)
    >>> apart = [MallowsModel([0, 1, 2, 3], 0.8), MallowsModel([1, 0, 3, 2], 0.8)]
    >>> small, large = (power(0.02, n, models=apart, n_simulations=60).power for n in (60, 240))
    >>> small < large
    True
    """
    level = check_number("level", level, 0, 1)
    n_runs, start = check_integer("n_simulations", n_simulations), as_seed(rng)
    population = population_of(pilot, effect, models, kernel, start)
    return simulated(population, population.sizes(n), level, n_runs, start, as_progress(progress))


def ballots_needed(
    pilot: Any,
    power: float = 0.8,
    level: float = 0.05,
    effect: float | None = None,
    n_simulations: int = 200,
    rng: Seed = 0,
    most: int = 100_000,
    progress: Progress | bool | None = None,
    models: Any = None,
    kernel: Kernel | None = None,
) -> BallotsNeeded:
    """Return how many ballots a test needs to find a difference like that of pilot data, by simulation.

    Parameters
    ----------
    pilot, level, effect, seed, models, kernel
        As in :func:`power`.
    power : float
        How likely the test shall find it.
    n_simulations : int
        How many tests to simulate for each number that is tried.
    most : int
        The largest number of ballots to try.
    progress : bool or function of (n_done, n_simulations), optional
        True shows a bar on standard error for each number that is tried; a function is called after each simulation.

    Notes
    -----
    Numbers are doubled until the power is reached, then halved into; the answer is that of a probit curve through all
    that were tried.

    Examples
    --------
    >>> from rankernel import ballots_needed, datasets, mmd_test
    >>> pilot = mmd_test(datasets.mallows(50, 5, 0.0, rng=1), datasets.mallows(50, 5, 0.5, rng=2))
    >>> sum(ballots_needed(pilot, n_simulations=50).n_voters) in range(30, 300)
    True
    """
    level = check_number("level", level, 0, 1)
    wanted = check_number("power", power, level, 1)
    n_runs, start = check_integer("n_simulations", n_simulations), as_seed(rng)
    check_integer("most", most)
    told = as_progress(progress)
    population = population_of(pilot, effect, models, kernel, start)
    if population.effect <= 0:
        raise RankingError(
            "the pilot shows no difference beyond chance, so that no number of ballots would find it; give the "
            "smallest effect that would matter, as effect=0.02"
        )
    tried: list[PowerResult] = []
    low, high = 2 * population.least, 4 * population.least
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
        found = simulated(population, population.sizes(n), level, n_runs, start + run, told)
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


def simulated(
    population: Population, sizes: IntArray, level: float, n_simulations: int, seed: int, progress: Progress | None
) -> PowerResult:
    """Return the share of simulated tests that reject."""
    rng, rejected = generator(seed, "simulated voters"), 0
    rule = Adaptive(level, max(MOST_PERMUTATIONS, int(np.ceil(4 / level)) if level > 0 else 1))
    for run in range(n_simulations):
        rejected += population.rejects(sizes, rng, rule, seed + run)
        if progress is not None:
            progress(run + 1, n_simulations)
    share = rejected / n_simulations
    low, high = share_intervals(
        np.array([share]), np.array([share * (1 - share)]), np.array([float(n_simulations)]), normal_quantile(0.95)
    )
    return PowerResult(
        share, (float(low[0]), float(high[0])), tuple(sizes.tolist()), level, population.effect, n_simulations
    )

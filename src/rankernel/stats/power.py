r"""Power and sample size of tests, by simulation.

Simulated voters come from pilot data, with the groups moved towards each other until they differ by the
unbiased estimate of the effect, or by a given smaller one: with :math:`P_g` the distribution of group g and M that of
all groups, group g of a simulation has the distribution :math:`M + \lambda (P_g - M)`. Within strata each stratum has
its own M. For judges who rank twice, a part :math:`\lambda` of the pairs is as observed, and the others have before and
after in random order. Each simulated data set is tested as the pilot was: within strata, or by random signs of judges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rankernel._utils import FloatArray, IntArray
from rankernel._utils.checks import Seed, as_seed, check_integer, check_number, short_repr
from rankernel.data import Data
from rankernel.errors import RankingError
from rankernel.kernels.base import Kernel
from rankernel.stats._permutations import PermutationStatistic, count_exceedances, named_generator
from rankernel.stats.base import (
    Interval,
    KernelTestResult,
    PrintedResult,
    SummaryLines,
    diagonal_scale,
    first_true,
    share,
)
from rankernel.stats.groups import (
    GroupedVoters,
    KSampleResult,
    MMDResult,
    dispersion_parts,
    equal_weights,
    k_sample_test,
    mmd_test,
)
from rankernel.stats.mmd import AggregatedMMDResult
from rankernel.stats.paired import Judges, PairedResult, SignFlips

N_PERMUTATIONS = 399  # of one simulated test at alpha = 0.05 or more; 20 / alpha at a smaller one
MIN_ALPHA = 1e-4  # smallest significance level whose power can be simulated
N_SIZES = 8  # sample sizes that are simulated before the power curve is fitted

Progress = Callable[[int, int], object]


@dataclass(frozen=True, eq=False, kw_only=True)
class PowerResult(PrintedResult):
    """Result of :func:`power`.

    Attributes
    ----------
    power : float
        The share of simulated tests that reject.
    power_interval : pair of float
        Its 95 % confidence interval, from the number of simulations (Wilson).
    n_voters : tuple of int
        The number of voters of each group.
    alpha : float
        The significance level.
    effect : float
        The effect of the population, as in the results of tests.
    n_simulations : int
        The number of simulated tests.
    """

    power: float
    power_interval: Interval
    n_voters: tuple[int, ...]
    alpha: float
    effect: float
    n_simulations: int

    def _summary(self) -> SummaryLines:
        low, high = self.power_interval
        return [
            ("power", f"{self.power:.0%}, 95% interval {low:.0%} to {high:.0%} ({self.n_simulations:,} simulations)"),
            ("voters", " and ".join(f"{n:,}" for n in self.n_voters)),
            ("alpha", f"{self.alpha:g}"),
            ("effect", f"{self.effect:.3g}"),
        ]


@dataclass(frozen=True, eq=False, kw_only=True)
class SampleSizeResult(PrintedResult):
    """Result of :func:`sample_size`.

    Attributes
    ----------
    n_voters : tuple of int
        The number of voters that each group needs.
    power : float
        The required power.
    alpha, effect
        As in :class:`PowerResult`.
    simulated : tuple of PowerResult
        The power of each simulated sample size.
    """

    n_voters: tuple[int, ...]
    power: float
    alpha: float
    effect: float
    simulated: tuple[PowerResult, ...] = field(repr=False)

    def _summary(self) -> SummaryLines:
        return [
            ("voters", " and ".join(f"{n:,}" for n in self.n_voters)),
            ("power", f"{self.power:.0%} at alpha = {self.alpha:g}"),
            ("effect", f"{self.effect:.3g}"),
            ("simulated", f"{sum(each.n_simulations for each in self.simulated):,} tests"),
        ]


@np.errstate(under="ignore")
def power(
    pilot: Any,
    n: int | Sequence[int],
    kernel: Kernel | str | None = None,
    *,
    effect: float | None = None,
    alpha: float = 0.05,
    n_simulations: int = 400,
    rng: Seed = 0,
    progress: Progress | None = None,
) -> PowerResult:
    """Return the power of a test against the difference of pilot data, or against a given effect, by simulation.

    Parameters
    ----------
    pilot : MMDResult, KSampleResult or PairedResult, or pair of data
        The result of :func:`mmd_test`, :func:`k_sample_test` or :func:`paired_test` on pilot data; the simulated test
        is the same, with its kernel and strata. Or the pilot data: two samples, or rankings and the group of each. For
        groups with known models, give samples of the models, such as 1,000 rankings each.
    n : int or sequence of int
        The number of voters: of all groups, in the proportions of the pilot, or of each group. For judges who rank
        twice, the number of judges.
    kernel : Kernel, optional
        The kernel if data are given, ``Mallows("median")`` by default.
    effect : float, optional
        The effect of the population, between 0 and the plug-in effect of the pilot; by default the unbiased estimate of
        the pilot (0 if that is negative). Power depends on the distribution of rankings, not on the effect only.
    alpha : float
        The significance level, at least 1e-4: each simulated test has 20 / alpha permutations.
    n_simulations : int
        The number of simulated tests.
    rng : int, Generator or None
        The source of the voters.
    progress : function of (n_done, n_simulations), optional
        Called after each simulation.

    Returns
    -------
    PowerResult

    Examples
    --------
    >>> from rankernel import MallowsModel, datasets, mmd_test, power
    >>> pilot = mmd_test(datasets.mallows(50, 5, 0.0, rng=1), datasets.mallows(50, 5, 0.5, rng=2))
    >>> result = power(pilot, 100, n_simulations=100)
    >>> result.n_voters, 0.5 < result.power <= 1
    ((50, 50), True)
    >>> samples = [MallowsModel(center, 0.8).sample(1000) for center in ([0, 1, 2, 3], [1, 0, 3, 2])]
    >>> small, large = (power(samples, n, effect=0.02, n_simulations=60).power for n in (60, 240))
    >>> small < large
    True
    """
    alpha = check_number("alpha", alpha, MIN_ALPHA, 1)
    n_simulations, seed = check_integer("n_simulations", n_simulations), as_seed(rng)
    population = make_population(pilot, effect, kernel)
    return simulate_power(population, population.sizes(n), alpha, n_simulations, seed, progress)


@np.errstate(under="ignore")
def sample_size(
    pilot: Any,
    kernel: Kernel | str | None = None,
    *,
    power: float = 0.8,
    effect: float | None = None,
    alpha: float = 0.05,
    n_simulations: int = 200,
    max_size: int = 100_000,
    rng: Seed = 0,
    progress: Progress | None = None,
) -> SampleSizeResult:
    """Return the sample size that a test needs for a given power, by simulation.

    Parameters
    ----------
    pilot, kernel, effect, alpha, rng, progress
        As in :func:`power`.
    power : float
        The required power.
    n_simulations : int
        The number of simulated tests for each sample size.
    max_size : int
        The largest sample size that is simulated.

    Returns
    -------
    SampleSizeResult

    Notes
    -----
    The sample size is doubled until the power is reached, then bisected; the result is interpolated by a probit curve
    through all simulated sizes.

    Examples
    --------
    >>> from rankernel import datasets, mmd_test, sample_size
    >>> pilot = mmd_test(datasets.mallows(50, 5, 0.0, rng=1), datasets.mallows(50, 5, 0.5, rng=2))
    >>> sum(sample_size(pilot, n_simulations=50).n_voters) in range(30, 300)
    True
    """
    alpha = check_number("alpha", alpha, MIN_ALPHA, 1)
    required = check_number("power", power, alpha, 1)
    n_simulations, seed = check_integer("n_simulations", n_simulations), as_seed(rng)
    check_integer("max_size", max_size)
    population = make_population(pilot, effect, kernel)
    if population.effect <= 0:
        raise RankingError(
            "the estimated effect of the pilot is not positive, so no sample size is enough; give the smallest effect "
            "of interest, such as effect=0.02"
        )
    simulated: list[PowerResult] = []
    low, high = 2 * population.min_size, 4 * population.min_size
    while len(simulated) < N_SIZES or max(each.power for each in simulated) < required:
        is_doubling = not simulated or max(each.power for each in simulated) < required
        n = high if is_doubling else round((low * high) ** 0.5)
        if n > max_size:
            last = f", {simulated[-1].power:.0%} with {sum(simulated[-1].n_voters):,}" if simulated else ""
            raise RankingError(
                f"max_size={max_size:,} voters do not reach a power of {required:.0%}{last}; require less power, or "
                "increase max_size"
            )
        seed_of_size = seed + len(simulated)
        result = simulate_power(population, population.sizes(n), alpha, n_simulations, seed_of_size, progress)
        simulated.append(result)
        if result.power >= required:
            high = n
        else:
            low, high = n, (2 * n if is_doubling else high)
        if not is_doubling and high - low <= max(1, high // 20):
            break
    sizes = population.sizes(interpolate_size(simulated, required))
    return SampleSizeResult(
        n_voters=tuple(sizes.tolist()),
        power=required,
        alpha=alpha,
        effect=population.effect,
        simulated=tuple(simulated),
    )


def interpolate_size(simulated: Sequence[PowerResult], required: float) -> int:
    """Return the sample size with the required power, by a probit curve in the root of the sample size."""
    from scipy.optimize import minimize
    from scipy.special import log_ndtr, ndtri

    roots = np.sqrt([sum(each.n_voters) for each in simulated])
    n_rejected = np.array([each.power * each.n_simulations for each in simulated])
    n_accepted = np.array([each.n_simulations for each in simulated]) - n_rejected

    def negative_log_likelihood(curve: FloatArray) -> float:
        z = curve[0] + curve[1] * roots
        return -float(n_rejected @ log_ndtr(z) + n_accepted @ log_ndtr(-z))

    start = np.array([-1.5, 2.5 / roots[-1]])
    intercept, gradient = minimize(negative_log_likelihood, start, method="Nelder-Mead").x
    root = (ndtri(min(required, 0.999)) - intercept) / gradient if gradient > 0 else roots.max()
    return int(np.ceil(np.clip(root, roots.min(), roots.max()) ** 2))


def simulate_power(
    population: GroupPopulation | JudgePopulation,
    sizes: IntArray,
    alpha: float,
    n_simulations: int,
    seed: int,
    progress: Progress | None,
) -> PowerResult:
    """Return the share of simulated tests that reject."""
    from scipy.stats import binomtest

    if not (progress is None or callable(progress)):
        raise TypeError(f"progress={short_repr(progress)} is not a function; give one of (n_done, n_simulations)")
    rng, n_rejected = named_generator(seed, "simulated voters"), 0
    n_permutations = max(N_PERMUTATIONS, int(np.ceil(20 / alpha)) - 1)
    for run in range(n_simulations):
        statistic = population.simulate(sizes, rng, seed + run)
        if statistic is not None:
            null, value = statistic.draw(n_permutations), np.array([statistic.value])
            n_exceedances = int(count_exceedances(null, value, statistic.tolerance)[0])
            n_rejected += 1 + n_exceedances <= alpha * (1 + n_permutations)
        if progress is not None:
            progress(run + 1, n_simulations)
    interval = binomtest(n_rejected, n_simulations).proportion_ci(0.95, method="wilson")
    return PowerResult(
        power=n_rejected / n_simulations,
        power_interval=(float(interval.low), float(interval.high)),
        n_voters=tuple(sizes.tolist()),
        alpha=alpha,
        effect=population.effect,
        n_simulations=n_simulations,
    )


# ---------------------------------------------------------------------- pilots


def make_population(pilot: Any, effect: float | None, kernel: Any) -> GroupPopulation | JudgePopulation:
    """Return the population of a pilot or of pilot data, with a given effect."""
    if not isinstance(pilot, KernelTestResult):
        pilot = pilot_from_data(pilot, kernel)
    elif kernel is not None:
        raise ValueError("pilot is a result with a kernel; leave out kernel, or give the pilot data instead")
    if isinstance(pilot, AggregatedMMDResult) or not isinstance(pilot, MMDResult | KSampleResult | PairedResult):
        raise TypeError(
            f"pilot is {type(pilot).__name__}, which has no fixed groups and kernel to simulate; give the result of "
            "mmd_test, k_sample_test or paired_test, two samples, or rankings and the group of each"
        )
    if np.isnan(pilot.effect):
        raise RankingError("the effect of the pilot is undefined; each group needs at least two voters")
    target = max(pilot.effect, 0.0) if effect is None else check_number("effect", effect, 0, 1)
    if pilot._judges is not None:
        return JudgePopulation(pilot._judges, target)
    return GroupPopulation(pilot._voters, target, pilot._biased)


def pilot_from_data(pilot: Any, kernel: Any) -> KernelTestResult:
    """Return the test of pilot data: two samples, or rankings and the group of each."""
    if not isinstance(pilot, tuple | list) or len(pilot) != 2:
        raise TypeError(
            f"pilot={short_repr(pilot)} is not possible; give a result such as that of mmd_test(X, Y), or a pair "
            "(X, Y) or (rankings, groups)"
        )
    first, second = pilot
    if isinstance(second, Data) or np.ndim(second) == 2:
        return mmd_test(first, second, kernel, n_permutations=1)
    return k_sample_test(first, second, kernel, n_permutations=1)


# ---------------------------------------------------------------------- populations


def mixing_weight(effect_at: Callable[[float], float], effect: float) -> float:
    """Return the lambda at which the population has the given effect."""
    largest = effect_at(1.0)
    if effect > largest:
        raise RankingError(
            f"effect={effect:g} is larger than that of the pilot, {largest:.3g}; give pilot data that differ more"
        )
    return first_true(lambda weight: not effect_at(weight) < effect, 0.0, 1.0)


class GroupPopulation:
    """Groups of different voters like those of a pilot, which differ by an effect.

    ``shares`` are those of the rankings in each stratum and group.
    """

    def __init__(self, voters: GroupedVoters, effect: float, biased: bool) -> None:
        self.voters, self.effect, self.biased = voters, effect, biased
        table = voters.table.astype(np.float64)
        sizes = table.sum(axis=2, keepdims=True)
        pooled = table.sum(axis=1, keepdims=True) / sizes.sum(axis=1, keepdims=True)
        observed = np.where(sizes > 0, table / np.maximum(sizes, 1.0), pooled)

        def shares_at(weight: float) -> FloatArray:
            return np.asarray(pooled + weight * (observed - pooled))

        def effect_at(weight: float) -> float:
            parts = np.zeros(2)
            for shares, of_groups in zip(shares_at(weight), sizes[:, :, 0], strict=True):
                groups = np.flatnonzero(of_groups)
                if len(groups) > 1:
                    of_stratum = dispersion_parts(voters.gram, shares[groups], *equal_weights(len(groups)))
                    parts += of_groups.sum() * np.array(of_stratum)
            return share(float(parts[0]), float(parts[1]), float(diagonal_scale(voters.gram) * sizes.sum()))

        self.shares = shares_at(mixing_weight(effect_at, effect))

    @property
    def min_size(self) -> int:
        """Two voters of each group, or one with the biased statistic."""
        return len(self.voters.names) * (1 if self.biased else 2)

    def sizes(self, n: int | Sequence[int]) -> IntArray:
        """Return the number of voters of each group; a total is divided as in the pilot."""
        n_groups = len(self.voters.names)
        least = self.min_size // n_groups
        if isinstance(n, Sequence | np.ndarray) and not isinstance(n, str | bytes) and getattr(n, "ndim", 1) != 0:
            if len(n) != n_groups:
                raise ValueError(f"n has {len(n)} numbers, and there are {n_groups} groups; give one for each")
            return np.array([check_integer("n", each, least) for each in n])
        total = check_integer("n", n, self.min_size)
        exact = self.voters.sizes / self.voters.sizes.sum() * total
        return np.asarray(np.maximum(np.round(exact).astype(np.int64), least))

    def simulate(self, sizes: IntArray, rng: np.random.Generator, seed: int) -> PermutationStatistic | None:
        """Return the statistic of newly simulated voters within strata; None if no stratum has voters of two groups."""
        table = np.zeros(self.voters.table.shape, dtype=np.int64)
        stratum_shares = self.voters.table.sum(axis=2) / self.voters.sizes
        for group, size in enumerate(sizes.tolist()):
            for stratum, n_voters in enumerate(apportion(stratum_shares[:, group], size).tolist()):
                table[stratum, group] = rng.multinomial(n_voters, self.shares[stratum, group])
        rows = np.flatnonzero(table.any(axis=(0, 1)))
        sample = self.voters.sample.subset(rows, table[:, :, rows].sum(axis=(0, 1)))
        voters = GroupedVoters(sample, self.voters.names, table[:, :, rows])
        return voters.statistic(self.biased, seed) if voters.is_exchangeable() else None


def apportion(shares: FloatArray, size: int) -> IntArray:
    """Return integers in given proportions that sum to ``size`` (largest remainders).

    Examples
    --------
    >>> apportion(np.array([0.5, 0.3, 0.2]), 7)
    array([4, 2, 1])
    """
    exact = shares / shares.sum() * size
    counts: IntArray = np.floor(exact).astype(np.int64)
    counts[np.argsort(counts - exact, kind="stable")[: size - int(counts.sum())]] += 1
    return counts


class JudgePopulation:
    """Judges who rank twice like those of a pilot, and change by an effect.

    ``shares`` are those of pairs of rankings, and of pairs with before and after exchanged.
    """

    def __init__(self, judges: Judges, effect: float) -> None:
        self.judges, self.effect = judges, effect

        def effect_at(weight: float) -> float:
            return share(*judges.population_parts(*judges.mixture(weight)), diagonal_scale(judges.gram))

        self.shares = np.concatenate(judges.mixture(mixing_weight(effect_at, effect)))

    @property
    def min_size(self) -> int:
        """Two judges, or one with the biased statistic."""
        return 1 if self.judges.biased else 2

    def sizes(self, n: int | Sequence[int]) -> IntArray:
        """Return the number of judges."""
        if isinstance(n, Sequence | np.ndarray):
            raise ValueError("n is the number of judges, each of whom ranks twice; give one number")
        return np.array([check_integer("n", n, self.min_size)])

    def simulate(self, sizes: IntArray, rng: np.random.Generator, seed: int) -> PermutationStatistic:
        """Return the statistic of newly simulated judges."""
        observed, exchanged = np.split(rng.multinomial(int(sizes[0]), self.shares).astype(np.float64), 2)
        pairs = np.flatnonzero(observed + exchanged)
        judges = replace(
            self.judges,
            before=self.judges.before[pairs],
            after=self.judges.after[pairs],
            counts=(observed + exchanged)[pairs],
            change_gram=self.judges.change_gram[np.ix_(pairs, pairs)],
        )
        return SignFlips(judges, (observed - exchanged)[pairs], seed)

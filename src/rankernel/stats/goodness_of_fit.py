"""The one-sample test: whether rankings come from a given model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rankernel._utils.arrays import FloatArray, RankArray
from rankernel._utils.checks import check_flag, check_integer, short_repr
from rankernel._utils.memory import check_task, check_voters
from rankernel._utils.rng import Seed, as_seed, stream_key
from rankernel.completions.draws import CompletionModel, Uniform, draw
from rankernel.data import as_data, concat
from rankernel.datasets.simulate import draw_permutations
from rankernel.errors import RankingError
from rankernel.gram.methods import Method, MethodLike, MonteCarlo, unbiased_method
from rankernel.kernels.base import Kernel
from rankernel.preferences import Preferences
from rankernel.rankings import Rankings, as_rankings, unique_rows
from rankernel.stats._effect_law import UNKNOWN, EstimatedEffect, Influence, Interval
from rankernel.stats._effects import own_size, share_of
from rankernel.stats._moments import Moments
from rankernel.stats._permutations import TIED, Null, generator, off_diagonal_forms, pvalue
from rankernel.stats._voters import plan_for_test, voter_gram, warn_if_noisy
from rankernel.stats.mmd import check_kernel
from rankernel.stats.results import FitResult

AT_ONCE = 64  # simulations
N_REDRAWN = 7  # times that estimated values of the data are drawn again, to see how sure they are
FEW = 1024  # distinct rankings: fewer than these in many simulations are compared only once

Sampler = Callable[[int, np.random.Generator], RankArray]


def goodness_of_fit_test(
    X: Any,
    model: Any,
    kernel: Kernel | None = None,
    n_simulations: int = 1000,
    rng: Seed = 0,
    biased: bool = False,
    method: MethodLike = "auto",
    n_reference: int = 1000,
) -> FitResult:
    r"""Test whether rankings come from a model of full rankings, each cut to the buckets of the one observed.

    The statistic is :math:`\frac{1}{N(N-1)} \sum_{i \ne j} K(X_i, X_j) - \frac{2}{N} \sum_i \mu(X_i) + \|\mu\|^2`,
    with :math:`\mu` the mean embedding of the model: exact for the uniform one, which is embedded as the ranking that
    says nothing, else from draws. Data simulated from the model have the same statistic, so that the test is exact
    whatever the draws. Nothing is taken from the data but the sizes of the buckets of each voter: these must not
    depend on the ranking behind them.

    Parameters
    ----------
    X : Rankings or integer array
        The rankings, none of them with free items.
    model : CompletionModel or function
        ``Uniform()``, ``MallowsModel(center, theta)``, ``PlackettLuce(weights)``, or a function
        ``f(n_rankings, rng)`` that draws full rankings.
    kernel : Kernel, optional
        The kernel; ``Mallows("median")`` if left out, its width taken from draws of the model.
    n_simulations : int
        How many sets of data simulated from the model make the null distribution.
    rng : int or Generator
        Where they come from.
    biased : bool
        Whether to add the pairs of each voter with itself, and divide by N².
    method : as in :meth:`Kernel.gram`
        How to compute kernel values.
    n_reference : int
        How many draws stand for a model whose mean embedding is not known.

    Returns
    -------
    FitResult
        ``statistic``, ``pvalue``, ``tail_pvalue``, ``null_distribution``, ``effect``, ``effect_interval``, ``method``,
        ``plan``, ``kernel``, ``rankings``, ``witness``. The tail is that of a curve with the moments of what was
        simulated.

    Examples
    --------
    >>> from rankernel import Rankings, Uniform
    >>> ballots = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], counts=[20, 2])
    >>> goodness_of_fit_test(ballots, Uniform(), n_simulations=99).pvalue
    0.01
    """
    n_needed, start = check_integer("n_simulations", n_simulations), as_seed(rng)
    data = as_data(X)
    if isinstance(data, Preferences):
        raise RankingError(
            "which pairs each user was asked about is not known, so that no draw of the model can be cut to such "
            "preferences; compare them with a sample: mmd_test(X, Y)"
        )
    check_data(data, check_flag("biased", biased))
    if not (isinstance(model, CompletionModel) or callable(model)):
        raise TypeError(f"model={short_repr(model)} is no model; give one such as PlackettLuce(weights), or a function")
    check_voters(data.n_voters, 4 * 8 * data.n_items, "a test of fit")
    sampler = sampler_of(model, data)
    places = buckets_of_places(data)
    n_repeats = -(-check_integer("n_reference", n_reference, 2) // data.n_voters)
    reference = cut(sampler, np.tile(places, (max(n_repeats, 1), 1)), data.items, generator(start, "reference"))
    # Widths come from the model, not from the data: a kernel that depends on the data would be another for simulations.
    check_task("a test of fit", max(len(data.unique()), len(reference) * (not isinstance(model, Uniform))))
    fit = Embedding.of(check_kernel(kernel).resolve(reference), model, reference, data, method)
    rng = generator(start, "simulations")
    null = []
    for first in range(0, n_needed, AT_ONCE):
        samples = [cut(sampler, places, data.items, rng) for _ in range(min(AT_ONCE, n_needed - first))]
        null.append(fit.statistics(samples, biased))
    return fit.result(data, np.concatenate(null), biased, model, start)


def check_data(data: Rankings, biased: bool) -> None:
    """Refuse data whose shape cannot be imposed on draws."""
    if data.n_voters < (1 if biased else 2):
        raise RankingError(f"X has {data.n_voters} voter(s); this statistic needs at least {1 if biased else 2}")
    if not data.is_exhaustive():
        row = int(np.argmax(data.n_free > 0))
        raise RankingError(
            f"row {row} has free items, and why these are not ranked is not known, so that no draw of the model can be "
            "cut likewise; read unlisted items as 'last', or compare with a sample: mmd_test(X, Y)"
        )


# ---------------------------------------------------------------------- draws


def sampler_of(model: Any, data: Rankings) -> Sampler:
    """Return the function that draws full rankings from a model, over the items of the data."""
    if isinstance(model, Uniform):
        return lambda n_rankings, rng: draw_permutations(n_rankings, data.n_items, rng)
    if isinstance(model, CompletionModel):
        return lambda n_rankings, rng: drawn_freely(model, n_rankings, data.n_items, rng)
    return lambda n_rankings, rng: drawn_by_function(model, n_rankings, data, rng)


def drawn_freely(model: CompletionModel, n_rankings: int, n_items: int, rng: np.random.Generator) -> RankArray:
    """Return completions of the ranking that says nothing: draws from the model itself."""
    draws = draw(np.zeros((1, n_items), dtype=np.int32), n_rankings, completions=model, rng=rng)
    if draws.weights is not None:
        raise RankingError(f"{model} cannot be drawn from without weights; give a function f(n_rankings, rng) instead")
    return np.asarray(draws.ranks[0], dtype=np.int32)


def drawn_by_function(model: Any, n_rankings: int, data: Rankings, rng: np.random.Generator) -> RankArray:
    """Return what a function draws, checked to be full rankings of the same items."""
    drawn = as_rankings(model(n_rankings, rng), "a draw of model")
    if drawn.n_voters != n_rankings or not drawn.is_full() or set(drawn.items) != set(data.items):
        raise RankingError(
            f"the model was asked for {n_rankings} full rankings of the items of X and gave {drawn!r}; a model is a "
            "function f(n_rankings, rng) such as lambda n, rng: datasets.mallows(n, center, theta, rng=rng, "
            "items=X.items)"
        )
    voters = drawn[np.repeat(np.arange(len(drawn)), drawn.counts)]
    return voters.with_items(data.items).ranks


def buckets_of_places(data: Rankings) -> RankArray:
    """Return for each voter the bucket of the item at each place, shape (n_voters, n_items)."""
    return np.repeat(np.sort(data.ranks, axis=1), data.counts, axis=0)


def cut(sampler: Sampler, places: RankArray, items: tuple[str, ...], rng: np.random.Generator) -> Rankings:
    """Return distinct draws, each with its items put into the buckets of one voter."""
    full = sampler(len(places), rng)
    return Rankings(np.take_along_axis(places, full.astype(np.intp), axis=1), items).unique()


# ---------------------------------------------------------------------- the statistic


@dataclass(frozen=True, eq=False)
class Embedding:
    """A kernel, and the mean embedding of a model as the mean of weighted rankings."""

    kernel: Kernel
    method: Method
    rankings: Rankings
    shares: FloatArray
    squared_norm: float
    own: float  # the mean kernel of a ranking of the model with itself

    @classmethod
    def of(cls, kernel: Kernel, model: Any, reference: Rankings, data: Rankings, method: MethodLike) -> Embedding:
        """Embed a model: exactly if it is uniform, else by draws from it.

        How values are computed is decided for all rankings that the test compares, so that they have one method.
        """
        nothing = Rankings(np.zeros((1, reference.n_items), dtype=np.int32), reference.items)
        rankings = nothing if isinstance(model, Uniform) else reference
        decision = plan_for_test(kernel, concat([reference, data, rankings]), method)
        unbiased = unbiased_method(decision.method)  # also between a ballot and an equal one among the draws
        plan = kernel.plan(rankings, method=unbiased)
        counts, n_draws = reference.counts.astype(np.float64), reference.n_voters
        own = float(counts @ kernel.plan(reference, method=unbiased).diagonal(unbiased=True)) / n_draws
        if isinstance(model, Uniform):
            return cls(kernel, unbiased, nothing, np.ones(1), float(plan.gram()[0, 0]), own)
        pairs = float(pair_sums(voter_gram(plan), counts[None], biased=False)[0])
        return cls(kernel, unbiased, reference, counts / n_draws, pairs / (n_draws * (n_draws - 1)), own)

    def statistics(self, samples: list[Rankings], biased: bool) -> FloatArray:
        """Return the squared discrepancy between each sample and the model."""
        ranks = np.concatenate([sample.ranks for sample in samples])
        first, inverse = unique_rows(ranks)
        if len(first) > FEW:
            return np.concatenate([self.parts(sample, sample.counts[None], biased)[0] for sample in samples])
        counts = np.zeros((len(samples), len(first)))
        counts[np.repeat(np.arange(len(samples)), [len(sample) for sample in samples]), inverse] = np.concatenate(
            [sample.counts for sample in samples]
        )
        return self.parts(Rankings(ranks[first], samples[0].items), counts, biased)[0]

    def parts(self, X: Rankings, counts: Any, biased: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the statistic for each row of counts of rankings, the Gram matrix, and the embedding at each."""
        K = voter_gram(self.kernel.plan(X, method=self.method))
        counts, n_voters = np.asarray(counts, dtype=np.float64), int(counts[0].sum())
        toward = self.kernel.gram(X, self.rankings, method=self.method) @ self.shares
        within = pair_sums(K, counts, biased) / (n_voters * (n_voters - (not biased)))
        return within - 2 * (counts @ toward) / n_voters + self.squared_norm, K, toward

    def result(self, data: Rankings, null: FloatArray, biased: bool, model: Any, seed: int) -> FitResult:
        """Return what the kernel says of the data."""
        ballots = data.unique()
        found, K, toward = self.parts(ballots, ballots.counts[None], biased)
        statistic, (error, effect_error) = float(found[0]), self.kernel_errors(ballots, biased)
        tolerance = TIED * float(np.abs(K).mean() + 2 * np.abs(toward).mean() + abs(self.squared_norm))
        warn_if_noisy(error, float(null.std()))
        drawn = Null.of(null, pvalue(null, statistic, tolerance), None)
        text = f"{'biased' if biased else 'unbiased'} squared MMD, {len(null):,} simulations from {model}"
        effect = self.effect(K, ballots, toward)
        return FitResult(
            statistic,
            drawn.pvalue,
            null,
            drawn.tail(statistic, tolerance, 0.0),
            drawn.n_for_moments,
            effect.estimate(),
            f"{text}, kernel values: {self.method}",
            self.kernel.plan(ballots, method=self.method),
            self.kernel,
            ballots,
            error,
            effect_error,
            partial(effect.interval, drawn.moments, effect_error),
            K @ ballots.counts / ballots.n_voters - toward,
        )

    def effect(self, gram: FloatArray, ballots: Rankings, toward: FloatArray) -> FitEffect:
        """Return how far data and model are apart."""
        return FitEffect(gram, ballots.counts.astype(np.float64), toward, self.squared_norm, self.own)

    def kernel_errors(self, ballots: Rankings, biased: bool) -> tuple[float, float]:
        """Return the standard errors of statistic and effect that come from estimated kernel values of the data."""
        if not isinstance(self.method, MonteCarlo):
            return 0.0, 0.0
        base, found = as_seed(self.method.rng), []
        for times in range(N_REDRAWN):
            seed = int(stream_key(base, f"drawn again {times}") >> np.uint64(1))
            other = replace(self, method=replace(self.method, rng=seed))
            statistic, K, toward = other.parts(ballots, ballots.counts[None], biased)
            found.append((float(statistic[0]), other.effect(K, ballots, toward).estimate()))
        statistic_error, effect_error = np.std(found, axis=0, ddof=1)
        return float(statistic_error), float(effect_error)


@dataclass(frozen=True, eq=False)
class FitEffect:
    """The share of the dispersion of data and model, of equal weight, that lies between the two."""

    gram: FloatArray
    counts: FloatArray
    toward: FloatArray
    squared_norm: float
    own: float

    def estimate(self) -> float:
        """Return the share without bias; nan for a single voter."""
        if self.counts.sum() < 2:
            return float("nan")
        return share_of(*self.dispersions(biased=False), own_size(self.gram))

    def dispersions(self, biased: bool) -> tuple[float, float]:
        """Return B and W: of a population that consists of the voters, if biased, or as estimated from a sample."""
        n = float(self.counts.sum())
        alike = float(pair_sums(self.gram, self.counts[None], biased)[0]) / (n * (n - (not biased)))
        apart = alike - 2 * float(self.counts @ self.toward) / n + self.squared_norm
        spread = float(self.counts @ np.diagonal(self.gram)) / n - alike + self.own - self.squared_norm
        return apart / 4, spread / 2

    def interval(self, null: Moments, error: float) -> Interval:
        """Return the interval of the share; the model is known, and simulations from it are the null distribution."""
        found = self.estimate()
        if np.isnan(found):
            return UNKNOWN
        total = sum(self.dispersions(biased=False))
        if not total > 0:
            return 0.0, 1.0
        n = float(self.counts.sum())
        shares = self.counts / n
        embedded = self.gram @ shares
        between, within = self.dispersions(biased=True)
        sample = (
            (embedded - self.toward) / (2 * total),
            (np.diagonal(self.gram) - 2 * embedded) / (2 * total),
            shares,
            n,
        )
        return EstimatedEffect(
            found,
            Moments(0.0, null.variance, null.skewness).times(1 / (4 * total)),
            Influence.of(between / (between + within), [sample]),
            error,
            explained=0.0,
        ).interval()


def pair_sums(gram: FloatArray, counts: FloatArray, biased: bool) -> FloatArray:
    """Return for each row of counts the sum over ordered pairs of voters, with or without those of one and itself."""
    own = counts * (counts - (not biased))
    return np.asarray(off_diagonal_forms(gram, counts) + own @ np.diagonal(gram))

"""The goodness-of-fit test: whether rankings come from a given model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from rankernel._utils import FloatArray, RankArray
from rankernel._utils.checks import Seed, as_seed, check_flag, check_integer, short_repr, stream_key
from rankernel._utils.resources import check_task, check_voters, slices
from rankernel.completions.draws import CompletionModel, Uniform, draw
from rankernel.data import as_data, concat
from rankernel.datasets import draw_permutations
from rankernel.errors import RankingError
from rankernel.gram.montecarlo import MonteCarlo, unbiased_method
from rankernel.gram.plan import Method, MethodLike
from rankernel.kernels.base import Kernel
from rankernel.models.mallows import MallowsModel
from rankernel.models.plackett_luce import PlackettLuce
from rankernel.preferences import Preferences
from rankernel.rankings import Rankings, as_rankings, unique_rows
from rankernel.stats._permutations import RELATIVE_TOLERANCE, Moments, PermutationStatistic, named_generator, pair_sums
from rankernel.stats.base import (
    Effect,
    InfluenceSample,
    KernelTestResult,
    Sample,
    check_kernel,
    check_voters_needed,
    diagonal_scale,
    evaluate,
    voter_gram,
)

SIMULATIONS_PER_GRAM = 64  # simulated samples that are evaluated by one Gram matrix
MAX_DISTINCT = 1024  # distinct rankings of these samples; of more, each sample has a separate Gram matrix
N_REDRAWS = 7  # replicates of estimated kernel values behind Monte Carlo errors

Sampler = Callable[[int, np.random.Generator], RankArray]


@dataclass(frozen=True, eq=False, kw_only=True)
class GoodnessOfFitResult(KernelTestResult):
    """Result of :func:`goodness_of_fit_test`.

    Attributes
    ----------
    statistic : float
        The estimate of the squared maximum mean discrepancy between data and model.
    null_distribution : array of shape (n_simulations,)
        The statistic of data simulated from the model.
    rankings : Rankings
        The distinct rankings, with their numbers of voters.
    witness : array of shape (n_rankings,)
        The witness function at each of them: the mean kernel with the data minus that with the model.
    """

    witness: FloatArray = field(repr=False)

    _effect_noun: ClassVar[str] = "of the dispersion lies between data and model"
    _draws_noun: ClassVar[str] = "simulations"


@np.errstate(under="ignore")
def goodness_of_fit_test(
    X: Any,
    model: Any,
    kernel: Kernel | str | None = None,
    *,
    n_simulations: int = 999,
    rng: Seed = 0,
    biased: bool = False,
    method: MethodLike = "auto",
    n_reference: int = 1000,
    fitted: bool | None = None,
) -> GoodnessOfFitResult:
    r"""Test whether rankings come from a model of full rankings, each coarsened to the buckets of the observed one.

    The statistic is :math:`\frac{1}{N(N-1)} \sum_{i \ne j} K(X_i, X_j) - \frac{2}{N} \sum_i \mu(X_i) + \|\mu\|^2`,
    with :math:`\mu` the mean embedding of the model: exact for the uniform model, which is the embedding of the ranking
    with all items tied, otherwise estimated from draws. Data simulated from the model have the same statistic, so the
    test is exact for any draws. It conditions on the bucket sizes of each voter, which must not depend on the
    underlying full ranking.

    Parameters
    ----------
    X : Rankings or integer array
        The rankings, without free items.
    model : CompletionModel or function
        ``Uniform()``, ``MallowsModel(center, theta)``, ``PlackettLuce(weights)``, or a function
        ``f(n_rankings, rng)`` that draws full rankings.
    kernel : Kernel, optional
        The kernel, ``Mallows("median")`` by default: the median heuristic uses draws of the model.
    n_simulations : int
        The number of simulated data sets of the null distribution.
    n_reference : int
        The number of draws that estimate the mean embedding of the model.
    fitted : bool, optional
        Whether the model was fitted to X. A fitted model is closer to the data than the true one, so it is fitted again
        to every simulated data set (parametric bootstrap); otherwise the test would hardly ever reject. By default,
        True if ``type(model).fit(X)`` gives the same model.
    rng, biased, method
        As in :func:`mmd_test`.

    Returns
    -------
    GoodnessOfFitResult
        ``statistic``, ``pvalue``, ``moment_pvalue``, ``null_distribution``, ``effect``, ``effect_interval``,
        ``witness``, ... The p-value from moments uses moments of the simulations.

    Examples
    --------
    >>> from rankernel import Rankings, Uniform
    >>> ballots = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], counts=[20, 2])
    >>> goodness_of_fit_test(ballots, Uniform(), n_simulations=99).pvalue
    0.01
    """
    n_simulations, seed = check_integer("n_simulations", n_simulations), as_seed(rng)
    data = as_data(X)
    if isinstance(data, Preferences):
        raise RankingError(
            "X is Preferences, and it is not known which pairs each user was shown, so draws of the model cannot "
            "be coarsened likewise; compare with a sample: mmd_test(X, Y)"
        )
    check_voters_needed(data, 1 if check_flag("biased", biased) else 2)
    if not data.is_exhaustive():
        row = int(np.argmax(data.n_free > 0))
        raise RankingError(
            f"row {row} of X has free items, and the reason is not known, so draws of the model cannot "
            "be coarsened likewise; read unlisted items as 'last', or compare with a sample: mmd_test(X, Y)"
        )
    if not (isinstance(model, CompletionModel) or callable(model)):
        raise TypeError(
            f"model={short_repr(model)} is not a model; give one such as PlackettLuce(weights), or a function"
        )
    can_fit = isinstance(model, MallowsModel | PlackettLuce)
    if fitted is not None and check_flag("fitted", fitted) and not can_fit:
        raise ValueError(
            f"fitted=True is for MallowsModel and PlackettLuce, which can be fitted again, not for {model}"
        )
    check_voters(data.n_voters, 4 * 8 * data.n_items, "a test of fit")
    if fitted is None:
        fitted = can_fit and type(model).fit(data) == model
    sampler, patterns = make_sampler(model, data), bucket_patterns(data)
    n_repeats = max(-(-check_integer("n_reference", n_reference, 2) // data.n_voters), 1)
    reference = simulate(sampler, np.tile(patterns, (n_repeats, 1)), data.items, named_generator(seed, "reference"))
    check_task("a test of fit", max(len(data.unique()), len(reference) * (not isinstance(model, Uniform))))
    # A kernel resolved on the data would be another one for each simulation.
    resolved = check_kernel(kernel).resolve(reference)
    embedding = Embedding.from_model(resolved, model, reference, data, method)
    rng = named_generator(seed, "simulations")
    draw_sample = lambda: simulate(sampler, patterns, data.items, rng)  # noqa: E731
    statistic = FitStatistic(embedding, data.unique(), biased, draw_sample, model if fitted else None)
    name = f"{'biased' if biased else 'unbiased'} squared MMD"
    scheme = f"simulations from {model}{', fitted again to each' * fitted}"
    fields = evaluate(
        statistic, FitEffect(statistic), statistic.null_distribution(n_simulations), statistic.sample, name, scheme
    )
    witness = statistic.gram @ statistic.counts / data.n_voters - statistic.model_means
    return GoodnessOfFitResult(**fields, witness=witness)


# ---------------------------------------------------------------------- simulations


def make_sampler(model: Any, data: Rankings) -> Sampler:
    """Return the function that draws full rankings of the items of the data from a model."""
    if isinstance(model, Uniform):
        return lambda n_rankings, rng: draw_permutations(n_rankings, data.n_items, rng)
    if isinstance(model, CompletionModel):
        return lambda n_rankings, rng: draw_from_model(model, n_rankings, data.n_items, rng)
    return lambda n_rankings, rng: draw_from_function(model, n_rankings, data, rng)


def draw_from_model(model: CompletionModel, n_rankings: int, n_items: int, rng: np.random.Generator) -> RankArray:
    """Return draws from a model: completions of the ranking with all items tied."""
    draws = draw(np.zeros((1, n_items), dtype=np.int32), n_rankings, completions=model, rng=rng)
    if draws.weights is not None:
        raise RankingError(f"model={model} has only weighted draws; give a function f(n_rankings, rng) instead")
    return np.asarray(draws.ranks[0], dtype=np.int32)


def draw_from_function(model: Any, n_rankings: int, data: Rankings, rng: np.random.Generator) -> RankArray:
    """Return draws from a function, checked to be full rankings of the same items."""
    drawn = as_rankings(model(n_rankings, rng), "a draw of model")
    if drawn.n_voters != n_rankings or not drawn.is_full() or set(drawn.items) != set(data.items):
        raise RankingError(
            f"model was called for {n_rankings} full rankings of the items of X and returned {drawn!r}; give a "
            "function f(n_rankings, rng) such as lambda n, rng: datasets.mallows(n, center, theta, rng=rng, "
            "items=X.items)"
        )
    voters = drawn[np.repeat(np.arange(len(drawn)), drawn.counts)]
    return voters.with_items(data.items).ranks


def bucket_patterns(data: Rankings) -> RankArray:
    """Return for each voter the bucket of the item at each position, of shape (n_voters, n_items)."""
    return np.repeat(np.sort(data.ranks, axis=1), data.counts, axis=0)


def simulate(sampler: Sampler, patterns: RankArray, items: tuple[str, ...], rng: np.random.Generator) -> Rankings:
    """Return the distinct rankings of a simulated sample, each draw coarsened to the buckets of one voter."""
    full = sampler(len(patterns), rng)
    return Rankings(np.take_along_axis(patterns, full.astype(np.intp), axis=1), items).unique()


# ---------------------------------------------------------------------- the statistic


@dataclass(frozen=True, eq=False)
class Embedding:
    """A kernel, and the mean embedding of a model as a weighted mean of embedded rankings."""

    kernel: Kernel
    method: Method
    rankings: Rankings
    shares: FloatArray
    squared_norm: float
    self_kernel: float  # the mean kernel of a ranking of the model with itself
    reference_gram: FloatArray | None = None  # between the rankings; None for the uniform model

    @classmethod
    def from_model(
        cls, kernel: Kernel, model: Any, reference: Rankings, data: Rankings, method: MethodLike
    ) -> Embedding:
        """Embed a model: exactly if it is uniform, otherwise by draws.

        The method is resolved for all rankings that the test compares, so that they share one.
        """
        tied = Rankings(np.zeros((1, reference.n_items), dtype=np.int32), reference.items)
        rankings = tied if isinstance(model, Uniform) else reference
        resolved = Sample.planned(concat([reference, data, rankings]), kernel, method).plan
        assert resolved is not None
        unbiased = unbiased_method(resolved.method)  # also between a ranking and an equal one among the draws
        plan = kernel.plan(rankings, method=unbiased)
        counts, n_draws = reference.counts.astype(np.float64), reference.n_voters
        self_kernel = float(counts @ kernel.plan(reference, method=unbiased).diagonal(unbiased=True)) / n_draws
        if isinstance(model, Uniform):
            return cls(kernel, unbiased, tied, np.ones(1), float(plan.gram()[0, 0]), self_kernel)
        reference_gram = voter_gram(plan)
        pairs = float(pair_sums(reference_gram, counts[None], biased=False)[0])
        squared_norm = pairs / (n_draws * (n_draws - 1))
        return cls(kernel, unbiased, reference, counts / n_draws, squared_norm, self_kernel, reference_gram)

    def of_another(self, model: Any, other: Any) -> tuple[FloatArray, float]:
        """Return the shares and the squared norm of a similar model, by importance weights of the same draws."""
        assert self.reference_gram is not None
        counts = self.rankings.counts
        ratios = np.exp(other.log_prob(self.rankings) - model.log_prob(self.rankings))
        weights, self_pairs = counts * ratios, counts * ratios**2
        pairs = pair_sums(self.reference_gram, weights[None], biased=True)[0]
        pairs -= self_pairs @ np.diagonal(self.reference_gram)
        return weights / weights.sum(), float(pairs / (weights.sum() ** 2 - self_pairs.sum()))

    def squared_mmd(
        self, X: Rankings, counts: FloatArray, biased: bool, models: list[tuple[FloatArray, float]] | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the statistic for each row of counts of rankings, the Gram matrix, and the embedding at each.

        ``models`` has the shares and the squared norm of a model for each row of counts.
        """
        gram = voter_gram(self.kernel.plan(X, method=self.method))
        n_voters = int(counts[0].sum())
        shares, squared_norms = zip(*(models or [(self.shares, self.squared_norm)]), strict=True)
        model_means = self.kernel.gram(X, self.rankings, method=self.method) @ np.stack(shares).T
        within = pair_sums(gram, counts, biased) / (n_voters * (n_voters - (not biased)))
        cross = np.einsum("su,us->s", counts, np.broadcast_to(model_means, (len(gram), len(counts))))
        return within - 2 * cross / n_voters + np.array(squared_norms), gram, model_means[:, 0]


class FitStatistic(PermutationStatistic):
    """The squared discrepancy between data and model, with data simulated from the model as null distribution.

    A ``fitted`` model is fitted again to each simulated sample.
    """

    min_moment_draws = 0  # moments come from the simulations that were requested

    def __init__(
        self,
        embedding: Embedding,
        data: Rankings,
        biased: bool,
        draw_sample: Callable[[], Rankings] | None = None,
        fitted: Any = None,
    ) -> None:
        self.embedding, self.data, self.biased = embedding, data, biased
        self.draw_sample, self.fitted = draw_sample, fitted
        self.counts = data.counts.astype(np.float64)
        values, self.gram, self.model_means = embedding.squared_mmd(data, self.counts[None], biased)
        self.value = float(values[0])
        size = np.abs(self.gram).mean() + 2 * np.abs(self.model_means).mean() + abs(embedding.squared_norm)
        self.tolerance = RELATIVE_TOLERANCE * float(size)

    @property
    def sample(self) -> Sample:
        """The distinct rankings, and the kernel between them."""
        kernel = self.embedding.kernel
        return Sample(self.data, kernel, kernel.plan(self.data, method=self.embedding.method))

    def draw(self, n_permutations: int) -> FloatArray:
        """Return the statistic of the next simulated samples."""
        assert self.draw_sample is not None
        chunks = slices(n_permutations, SIMULATIONS_PER_GRAM)
        return np.concatenate(
            [self.of_samples([self.draw_sample() for _ in range(n_permutations)[chunk]]) for chunk in chunks]
        )

    def of_samples(self, samples: list[Rankings]) -> FloatArray:
        """Return the statistic of each sample, from one Gram matrix if they have few distinct rankings."""
        ranks = np.concatenate([sample.ranks for sample in samples])
        first, inverse = unique_rows(ranks)
        if len(first) > MAX_DISTINCT and len(samples) > 1:
            return np.concatenate([self.of_samples([sample]) for sample in samples])
        models = None
        if self.fitted is not None:
            fits = (type(self.fitted).fit(sample) for sample in samples)
            models = [self.embedding.of_another(self.fitted, other) for other in fits]
        counts = np.zeros((len(samples), len(first)))
        row = np.repeat(np.arange(len(samples)), [len(sample) for sample in samples])
        counts[row, inverse] = np.concatenate([sample.counts for sample in samples])
        return self.embedding.squared_mmd(Rankings(ranks[first], samples[0].items), counts, self.biased, models)[0]

    def standard_error(self) -> float:
        """Return the Monte Carlo standard error of the statistic."""
        return self.errors[0]

    @cached_property
    def errors(self) -> tuple[float, float]:
        """The Monte Carlo standard errors of statistic and effect, from replicates of the kernel values."""
        method = self.embedding.method
        if not isinstance(method, MonteCarlo):
            return 0.0, 0.0
        base, replicates = as_seed(method.rng), []
        for number in range(N_REDRAWS):
            seed = int(stream_key(base, f"drawn again {number}") >> np.uint64(1))
            other = FitStatistic(replace(self.embedding, method=replace(method, rng=seed)), self.data, self.biased)
            replicates.append((other.value, FitEffect(other).value))
        statistic, effect = np.std(replicates, axis=0, ddof=1)
        return float(statistic), float(effect)


@dataclass(frozen=True, eq=False)
class FitEffect(Effect):
    """The share of the dispersion that lies between data and model, with equal weights for both."""

    fit: FitStatistic

    def mcse(self, error: float) -> float:
        """Return the Monte Carlo standard error."""
        return self.fit.errors[1]

    @property
    def scale(self) -> float:
        """The mean absolute kernel value of a ranking with itself."""
        return diagonal_scale(self.fit.gram)

    def parts(self) -> tuple[float, float]:
        """Return unbiased estimates of B and W; nan for a single voter."""
        return self._parts(biased=False) if self.fit.data.n_voters > 1 else (float("nan"), float("nan"))

    def population_parts(self) -> tuple[float, float]:
        """Return B and W if the voters are the population."""
        return self._parts(biased=True)

    def _parts(self, biased: bool) -> tuple[float, float]:
        fit, model, n = self.fit, self.fit.embedding, float(self.fit.data.n_voters)
        within = float(pair_sums(fit.gram, fit.counts[None], biased)[0]) / (n * (n - (not biased)))
        between = within - 2 * float(fit.counts @ fit.model_means) / n + model.squared_norm
        data_dispersion = float(fit.counts @ np.diagonal(fit.gram)) / n - within
        return between / 4, (data_dispersion + model.self_kernel - model.squared_norm) / 2

    def influences(self, total: float) -> list[InfluenceSample]:
        """Return the influences of voters; the model is known."""
        fit, n = self.fit, float(self.fit.data.n_voters)
        embedded = fit.gram @ fit.counts / n
        between = (embedded - fit.model_means) / (2 * total)
        within = (np.diagonal(fit.gram) - 2 * embedded) / (2 * total)
        return [InfluenceSample(between, within, fit.counts / n, n)]

    def null_moments(self, null: Moments) -> Moments:
        """Return the moments of B in simulations from the model."""
        return replace(null, mean=0.0).scaled(1 / 4)

    def explained(self, total: float) -> float:
        """Return 0: simulations from the model do not depend on the effect."""
        return 0.0

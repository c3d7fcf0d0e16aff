"""The one-sample test: whether rankings come from a given model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rankernel.completions.draws import draw
from rankernel.completions.models import CompletionModel, Uniform
from rankernel.datasets.arguments import draw_permutations, whole
from rankernel.encoding import RankArray
from rankernel.errors import RankingError
from rankernel.gram import Exact, MonteCarlo, gram
from rankernel.gram.methods import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.rankings import Rankings, as_rankings, first_and_inverse
from rankernel.tasks.aggregated import Evidence, concluded, kernels_of
from rankernel.tasks.characteristic import warn_if_not_characteristic
from rankernel.tasks.permutations import TIED, generator, off_diagonal_forms
from rankernel.tasks.records import AggregatedMMDResult, MMDResult
from rankernel.tasks.voters import FloatArray, rows_for

__all__ = ["goodness_of_fit"]

AT_ONCE = 64  # simulations
FEW = 1024  # distinct rankings: fewer than these in many simulations are compared only once

Sampler = Callable[[int, np.random.Generator], RankArray]


def goodness_of_fit(
    X: Any,
    model: Any,
    kernel: Any,
    n_simulations: int,
    seed: int,
    biased: bool,
    method: MethodLike,
    level: float,
    n_reference: int,
    threads: int | None,
) -> MMDResult | AggregatedMMDResult:
    r"""Test whether rankings come from a model of full rankings, each cut to the buckets of the one observed.

    The statistic is :math:`\frac{1}{N(N-1)} \sum_{i \ne j} K(X_i, X_j) - \frac{2}{N} \sum_i \mu(X_i) + \|\mu\|^2`,
    with :math:`\mu` the mean embedding of the model: exact for the uniform one, which is embedded as the ranking that
    says nothing, else from draws. Data simulated from the model have the same statistic, so that the test is exact
    whatever the draws. Nothing is taken from the data but the sizes of the buckets of each voter: these must not
    depend on the ranking behind them.
    """
    data = as_rankings(X)
    check_data(data, biased, method)
    sampler = sampler_of(model, data)
    places = buckets_of_places(data)
    n_repeats = -(-whole(n_reference, "n_reference", 2) // data.n_voters)
    reference = cut(sampler, np.tile(places, (max(n_repeats, 1), 1)), data.items, generator(seed, "reference"))
    several = not isinstance(kernel, Kernel)
    # Widths come from the model, not from the data: a kernel that depends on the data would be another for simulations.
    kernels = kernels_of(kernel, reference)
    embeddings = []
    for each in kernels:
        warn_if_not_characteristic(each, data.n_items)
        embeddings.append(embedding(each, model, reference, partial(gram, method=method_of(method), threads=threads)))
    rng = generator(seed, "simulations")
    null = []
    for start in range(0, n_needed := n_simulations * (1 + several), AT_ONCE):
        samples = [cut(sampler, places, data.items, rng) for _ in range(min(AT_ONCE, n_needed - start))]
        null.append([fit.statistics(samples, biased) for fit in embeddings])
    evidence = [fit.evidence(data, values, biased) for fit, values in zip(embeddings, np.hstack(null), strict=True)]
    text = f"{'biased' if biased else 'unbiased'} squared MMD, {n_simulations:,} simulations from {model}"
    return concluded(evidence, several, level, text, rows_for(data, Exact()))


def check_data(data: Rankings, biased: bool, method: MethodLike) -> None:
    """Refuse data whose shape cannot be imposed on draws, and values that are not exact."""
    if data.n_voters < (1 if biased else 2):
        raise RankingError(f"X has {data.n_voters} voter(s); this statistic needs at least {1 if biased else 2}")
    if not data.is_exhaustive():
        row = int(np.argmax(data.n_free > 0))
        raise RankingError(
            f"row {row} has free items, and why these are not ranked is not known, so that no draw of the model can be "
            "cut likewise; read unlisted items as 'last', or compare with a sample: mmd_test(X, Y)"
        )
    if isinstance(method, MonteCarlo):
        raise ValueError(
            "a test against a model needs exact kernel values; use method='auto' with a kernel that has them, or "
            "compare with a sample: mmd_test(X, Y)"
        )


def method_of(method: MethodLike) -> MethodLike:
    """Return the method for all values: "auto" is exact here."""
    return Exact() if method == "auto" else method


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
    draws = draw(np.zeros((1, n_items), dtype=np.int32), n_rankings, completions=model, seed=rng)
    if draws.weights is not None:
        raise RankingError(f"{model} cannot be drawn from without weights; give a function f(n_rankings, seed) instead")
    return np.asarray(draws.ranks[0], dtype=np.int32)


def drawn_by_function(model: Any, n_rankings: int, data: Rankings, rng: np.random.Generator) -> RankArray:
    """Return what a function draws, checked to be full rankings of the same items."""
    drawn = as_rankings(model(n_rankings, rng))
    if drawn.n_voters != n_rankings or not drawn.is_full() or set(drawn.items) != set(data.items):
        raise RankingError(
            f"the model was asked for {n_rankings} full rankings of the items of X and gave {drawn!r}; a model is a "
            "function f(n_rankings, seed) such as lambda n, seed: datasets.mallows(n, center, theta, seed=seed, "
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
    rankings: Rankings
    shares: FloatArray
    squared_norm: float
    gram: Callable[..., Any]

    def statistics(self, samples: list[Rankings], biased: bool) -> FloatArray:
        """Return the squared discrepancy between each sample and the model."""
        ranks = np.concatenate([sample.ranks for sample in samples])
        first, inverse = first_and_inverse(ranks)
        if len(first) > FEW:
            return np.concatenate([self.parts(sample, sample.counts[None], biased)[0] for sample in samples])
        counts = np.zeros((len(samples), len(first)))
        counts[np.repeat(np.arange(len(samples)), [len(sample) for sample in samples]), inverse] = np.concatenate(
            [sample.counts for sample in samples]
        )
        return self.parts(Rankings(ranks[first], samples[0].items), counts, biased)[0]

    def parts(self, X: Rankings, counts: Any, biased: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the statistic for each row of counts of rankings, the Gram matrix, and the embedding at each."""
        K, counts, n_voters = self.gram(self.kernel, X), np.asarray(counts, dtype=np.float64), int(counts[0].sum())
        toward = self.gram(self.kernel, X, self.rankings) @ self.shares
        within = pair_sums(K, counts, biased) / (n_voters * (n_voters - (not biased)))
        return within - 2 * (counts @ toward) / n_voters + self.squared_norm, K, toward

    def evidence(self, data: Rankings, null: FloatArray, biased: bool) -> Evidence:
        """Return what the kernel says of the data."""
        ballots = data.unique()
        statistic, K, toward = self.parts(ballots, ballots.counts[None], biased)
        size = float(np.abs(K).mean() + 2 * np.abs(toward).mean() + abs(self.squared_norm))
        witness = K @ ballots.counts / ballots.n_voters - toward
        return Evidence(self.kernel, float(statistic[0]), null, TIED * size, witness)


def embedding(kernel: Kernel, model: Any, reference: Rankings, exact_gram: Callable[..., Any]) -> Embedding:
    """Return the mean embedding of a model: exact for the uniform one, else of draws from it."""
    if isinstance(model, Uniform):
        nothing = Rankings(np.zeros((1, reference.n_items), dtype=np.int32), reference.items)
        return Embedding(kernel, nothing, np.ones(1), float(exact_gram(kernel, nothing)[0, 0]), exact_gram)
    counts, n_draws = reference.counts.astype(np.float64), reference.n_voters
    pairs = float(pair_sums(exact_gram(kernel, reference), counts[None], biased=False)[0])
    return Embedding(kernel, reference, counts / n_draws, pairs / (n_draws * (n_draws - 1)), exact_gram)


def pair_sums(gram: FloatArray, counts: FloatArray, biased: bool) -> FloatArray:
    """Return for each row of counts the sum over ordered pairs of voters, with or without those of one and itself."""
    own = counts * (counts - (not biased))
    return np.asarray(off_diagonal_forms(gram, counts) + own @ np.diagonal(gram))

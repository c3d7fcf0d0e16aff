"""Distributions of completions, and draws from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import FloatArray, FullRanks, Mask, RankArray
from rankernel._utils.checks import check_flag, check_integer, short_repr
from rankernel._utils.interrupts import run_interruptibly
from rankernel._utils.rng import NO_ROW, Seed, Streams, as_seed, row_streams, stream_key
from rankernel.completions.couplings import Coupling, coupling_named
from rankernel.completions.enumerate import check_n_items, enumerate_completions, n_completions
from rankernel.completions.herding import FullKernel
from rankernel.completions.linear_extensions import draw_extensions
from rankernel.errors import ExactnessError, RankingError, SamplingWarning, warn
from rankernel.rankings import as_rankings

MAX_SUMMED = 50_000


class CompletionModel(ABC):
    """A distribution p(.|R) on the completions of each ranking R."""

    self_normalized: bool = False  # whether the weights of a ranking are divided by their mean

    @abstractmethod
    def draw(
        self, ranks: RankArray, n_draws: int, streams: Streams, coupling: Coupling
    ) -> tuple[FullRanks, FloatArray | None]:
        """Return draws of each ranking, shape (n_rankings, n_draws, n_items), and their importance weights.

        The mean of ``weights * f(draws)`` estimates the expectation of f. Weights are None where all are 1. Draw i
        may depend on nothing but ``ranks[i]`` and the 64 random bits ``streams[i]``.
        """

    def draw_relation(
        self, before: Mask, n_draws: int, rng: np.random.Generator
    ) -> tuple[FullRanks, FloatArray | None]:
        """Return draws of the linear extensions of a partial order and their log-weights, None if they are equal.

        Parameters
        ----------
        before : array of shape (n_items, n_items)
            The transitively closed relation: whether item x is before item y.
        n_draws : int
            Number of draws.
        rng : Generator
            The source of randomness.
        """
        raise RankingError(
            f"completions={self} cannot be drawn given a partial order; use Uniform(), MallowsModel(center, theta) or "
            "LogDensity(function) with self-normalised weights"
        )

    def independent_only(self, coupling: Coupling) -> None:
        """Refuse couplings: they are made for uniform completions."""
        if coupling.name != "iid":
            raise RankingError(
                f"coupling={coupling.name!r} couples uniform completions, but these follow "
                f"{type(self).__name__}; use coupling='iid'"
            )


@dataclass(frozen=True)
class Uniform(CompletionModel):
    r"""All completions equally probable: :math:`p(\sigma | R) = 1 / |R|`.

    Examples
    --------
    >>> from rankernel.completions import draw
    >>> draws = draw([[0, 1, 1, 1]], n_draws=6000, completions=Uniform())
    >>> bool((draws.ranks[:, :, 0] == 0).all()), draws.ranks[0, :, 1:].mean(axis=0).round(1).tolist()
    (True, [2.0, 2.0, 2.0])
    """

    def draw(
        self, ranks: RankArray, n_draws: int, streams: Streams, coupling: Coupling
    ) -> tuple[FullRanks, FloatArray | None]:
        """Return coupled uniform completions, all of weight 1."""
        return coupling.draw(ranks, n_draws, streams), None

    def draw_relation(
        self, before: Mask, n_draws: int, rng: np.random.Generator
    ) -> tuple[FullRanks, FloatArray | None]:
        """Return uniform linear extensions."""
        return draw_extensions(before, n_draws, rng=rng), None


@dataclass(frozen=True)
class LogDensity(CompletionModel):
    r"""Any density on full rankings, known up to a factor: :math:`p(\sigma | R) \propto e^{f(\sigma)}` on R.

    Draws are uniform on R (any coupling) and carry importance weights. Self-normalised weights average 1 over the
    draws of each ranking; they need no normalisation and have a bias of order 1/n_draws. Plain weights
    :math:`|R|\, p(\sigma | R)` are unbiased, and sum the density over all completions, which must be few.

    Parameters
    ----------
    function : callable
        Takes full rank vectors, an integer array of shape (k, n_items), and returns k log-densities.
    self_normalized : bool
        Which of the two weights to use.

    Examples
    --------
    A density proportional to 3 where item 0 is first, else 1; here it is first in one completion of two:

    >>> import numpy as np
    >>> from rankernel.completions import draw
    >>> model = LogDensity(lambda ranks: np.log(np.where(ranks[:, 0] == 0, 3.0, 1.0)), self_normalized=False)
    >>> draws = draw([[0, 0]], n_draws=2, coupling="antithetic", completions=model)
    >>> draws.weights[draws.ranks[:, :, 0] == 0], draws.weights[draws.ranks[:, :, 0] == 1]
    (array([1.5]), array([0.5]))
    """

    function: Callable[[RankArray], Any]
    self_normalized: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(
                f"function={short_repr(self.function)} is not possible; it must be a function of full rankings"
            )
        check_flag("self_normalized", self.self_normalized)

    def draw(
        self, ranks: RankArray, n_draws: int, streams: Streams, coupling: Coupling
    ) -> tuple[FullRanks, FloatArray | None]:
        """Return coupled uniform completions and their importance weights."""
        draws = coupling.draw(ranks, n_draws, streams)
        logs = self.evaluate(draws.reshape(-1, draws.shape[2])).reshape(draws.shape[:2])
        if self.self_normalized:
            return draws, self_normalized_weights(logs)
        return draws, np.exp(logs - np.array([self.log_normalizer(row) for row in ranks])[:, None])

    def draw_relation(
        self, before: Mask, n_draws: int, rng: np.random.Generator
    ) -> tuple[FullRanks, FloatArray | None]:
        """Return uniform linear extensions and their log-densities."""
        if not self.self_normalized:
            return super().draw_relation(before, n_draws, rng)
        draws = draw_extensions(before, n_draws, rng=rng)
        return draws, self.evaluate(draws)

    def log_normalizer(self, ranks: RankArray) -> float:
        """Return the logarithm of the mean density over the completions of one ranking."""
        number = n_completions(ranks)
        if number > MAX_SUMMED:
            raise ExactnessError(
                f"plain importance weights sum the density over all completions, and a ranking has {number:,} "
                f"(at most {MAX_SUMMED:,} are summed); use LogDensity(function, self_normalized=True)"
            )
        return float(log_mean_exp(self.evaluate(enumerate_completions(ranks))[None, :])[0])

    def evaluate(self, full: FullRanks) -> FloatArray:
        """Return the log-densities of full rankings, refusing what cannot be one."""
        logs = np.asarray(self.function(full.astype(np.int32)), dtype=np.float64)
        if logs.shape != (len(full),):
            raise RankingError(
                f"the log-density returned shape {logs.shape} for {len(full)} full rankings; it returns one number each"
            )
        if np.isnan(logs).any() or (logs == np.inf).any():
            raise RankingError("the log-density returned nan or +inf; it returns finite numbers, or -inf for density 0")
        return logs


def log_mean_exp(logs: FloatArray) -> FloatArray:
    """Return the logarithm of the mean of exp(logs) of each row."""
    from scipy.special import logsumexp

    none = np.isneginf(logs).all(axis=1)
    if none.any():
        row = int(np.argmax(none))
        raise RankingError(f"every completion tried of ranking {row} has density 0; the density must be positive on R")
    return np.asarray(logsumexp(logs, axis=1) - np.log(logs.shape[1]))


def self_normalized_weights(logs: FloatArray) -> FloatArray:
    """Return weights proportional to exp(logs) whose mean is 1 in each row."""
    return np.exp(logs - log_mean_exp(logs)[:, None])


PURPOSE = "completions"
LOW, FEW = 0.1, 3.0  # of draws that are worth little: as a part of their number, and at all


@dataclass(frozen=True, eq=False)
class Draws:
    """Completions drawn for each of several rankings.

    Attributes
    ----------
    ranks : array of shape (n_rankings, n_draws, n_items)
        The draws, as rank vectors.
    weights : array of shape (n_rankings, n_draws), or None
        Importance weights: the mean of ``weights * f(draws)`` estimates the expectation of f. None: all are 1.
    block : int
        Draws are coupled in consecutive blocks of this size, the last of which may be cut; blocks are independent.
    """

    ranks: FullRanks
    weights: FloatArray | None
    block: int

    @property
    def n_draws(self) -> int:
        """Number of draws of each ranking."""
        return int(self.ranks.shape[1])

    @property
    def effective_size(self) -> FloatArray:
        """How many unweighted draws the weighted ones of each ranking are worth.

        The square of the sum of the weights by the sum of their squares.
        """
        return np.full(len(self.ranks), float(self.n_draws)) if self.weights is None else effective_size(self.weights)

    @cached_property
    def seen(self) -> tuple[FloatArray, FloatArray]:
        """How many different draws each ranking has, and about how likely a further draw is to be a new one.

        That is the share of draws that were seen once (Good 1953).
        """
        salt = np.random.default_rng(0).integers(2**64, size=self.ranks.shape[2], dtype=np.uint64) | np.uint64(1)
        keys = np.sort(self.ranks.astype(np.uint64) @ salt, axis=1)
        changes = np.pad(np.diff(keys, axis=1) != 0, ((0, 0), (1, 1)), constant_values=True)
        single = (changes[:, :-1] & changes[:, 1:]).mean(axis=1)
        return changes[:, 1:].sum(axis=1).astype(np.float64), single

    def warn_if_low(self) -> None:
        """Warn where a few draws carry nearly all the weight."""
        effective = self.effective_size
        low = effective < max(LOW * self.n_draws, min(FEW, self.n_draws / 2))
        if low.any():
            warn(
                f"the draws of {int(low.sum())} of {len(low)} rankings are worth hardly any, or less than a tenth of "
                f"their number (the worst: {effective.min():.1f} of {self.n_draws}), as few of them carry nearly all "
                "the weight; take more draws, or a model that can be drawn from directly",
                SamplingWarning,
            )


def effective_size(weights: FloatArray) -> FloatArray:
    """Return how many unweighted draws the weighted ones of each row are worth."""
    squares = (weights**2).sum(axis=1)
    # All weights 0 tell nothing.
    return np.asarray(weights.sum(axis=1) ** 2 / np.where(squares == 0, 1.0, squares))


def draw(
    X: Any,
    n_draws: int,
    *,
    coupling: str = "iid",
    completions: CompletionModel | None = None,
    rng: Seed = 0,
    rows: Any = None,
    kernel: FullKernel | None = None,
) -> Draws:
    """Draw completions of rankings.

    The draws of a ranking depend on the seed and the ranking alone, and the first draws of many are those of few
    (except by herding), so that any part can be drawn apart.

    Parameters
    ----------
    X : Rankings
        The rankings, or an array of their ranks.
    n_draws : int
        Number of draws of each ranking; those of an antithetic pair count two.
    coupling : {"iid", "antithetic", "orthogonal", "latin", "herding"}
        How draws of one ranking depend on each other.
    completions : CompletionModel, optional
        The distribution of the completions; uniform if left out.
    rng : int, Generator or None
        A generator is drawn from once.
    rows : array of shape (n_rankings,), optional
        Numbers of the rankings: then draws depend on them, too, so that equal rankings have independent draws.
    kernel : kernel on full rankings, optional
        The kernel to herd for.

    Examples
    --------
    >>> from rankernel.rankings import Rankings
    >>> ballots = Rankings.from_orders([["a"], ["b", "a"]], items=["a", "b", "c", "d"])
    >>> pairs = draw(ballots, n_draws=2, coupling="antithetic").ranks
    >>> pairs.sum(axis=1)
    array([[0, 4, 4, 4],
           [2, 0, 5, 5]])
    """
    ranks = as_rankings(X).ranks
    check_integer("n_draws", n_draws)
    model = Uniform() if completions is None else completions
    if not isinstance(model, CompletionModel):
        raise RankingError(f"completions={model!r} is not a completion model; give one such as Uniform()")
    rule = coupling_named(coupling, kernel)
    streams = row_streams(ranks, as_seed(rng), PURPOSE, None if rows is None else np.asarray(rows))
    full, weights = run_interruptibly(model.draw, ranks, n_draws, streams, rule)
    draws = Draws(full, weights, rule.block_size(ranks.shape[1], n_draws))
    draws.warn_if_low()
    return draws


def relation_streams(
    packed: NDArray[np.uint8], seed: int, purpose: str, rows: NDArray[np.integer] | None = None
) -> Streams:
    """Return one stream a partial order; with ``rows``, equal orders in different rows have independent ones."""
    numbers = np.full(len(packed), NO_ROW, dtype=np.uint64) if rows is None else np.asarray(rows, dtype=np.uint64)
    key = int(stream_key(seed, purpose)).to_bytes(8, "little")
    digests = [
        blake2b(relation.tobytes() + int(number).to_bytes(8, "little"), digest_size=8, key=key).digest()
        for relation, number in zip(packed, numbers, strict=True)
    ]
    return np.array([int.from_bytes(digest, "little") for digest in digests], dtype=np.uint64)


def draw_relations(
    relations: Mask, n_draws: int, streams: Streams, model: CompletionModel
) -> tuple[FullRanks, FloatArray | None]:
    """Return independent draws of each partial order, and importance weights if one of them needs some.

    Examples
    --------
    >>> before = np.zeros((1, 3, 3), dtype=bool)
    >>> before[0, 2, 0] = True
    >>> streams = relation_streams(np.packbits(before, axis=2), seed=0, purpose="completions")
    >>> draws, _ = draw_relations(before, 5, streams, Uniform())
    >>> draws.shape, bool((draws[0, :, 2] < draws[0, :, 0]).all())
    ((1, 5, 3), True)
    """
    check_integer("n_draws", n_draws)
    check_n_items(relations.shape[1])
    full = np.empty((len(relations), n_draws, relations.shape[1]), dtype=np.int16)
    weights = np.ones((len(relations), n_draws))
    weighted = False
    for row, (before, stream) in enumerate(zip(relations, streams, strict=True)):
        full[row], logs = model.draw_relation(before, n_draws, np.random.Generator(np.random.PCG64(int(stream))))
        if logs is not None:
            weights[row] = self_normalized_weights(logs[None, :])[0]
            weighted = True
    return full, weights if weighted else None

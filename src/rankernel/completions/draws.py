"""Distributions of completions p(.|R), and draws from them.

The marginalised kernel averages over p(.|R), a distribution on the completions of a ranking R. :class:`Uniform` gives
all completions the same probability; :class:`LogDensity` takes any density, by importance weights on uniform draws.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import FloatArray, FullRanks, Mask, RankArray
from rankernel._utils.checks import check_flag, check_instance, check_integer
from rankernel._utils.interrupts import run_interruptibly
from rankernel._utils.rng import NO_ROW, Seed, Streams, as_seed, row_streams, stream_key
from rankernel.completions.couplings import Coupling, FullKernel, coupling_named
from rankernel.completions.linear_extensions import check_n_items, draw_extensions, enumerate_completions, n_completions
from rankernel.errors import Argument, ArgumentTypeError, ExactnessError, RankingError, SamplingWarning, warn
from rankernel.rankings import as_rankings

Weighted = tuple[FullRanks, FloatArray | None]

PURPOSE = "completions"
MAX_SUMMED = 50_000
# A warning is given if the effective sample size is below this share of the draws, or below this number.
LOW_SHARE, LOW_NUMBER = 0.1, 3.0


class CompletionModel(ABC):
    """A distribution p(.|R) on the completions of each ranking R.

    A subclass defines :meth:`draw`, and :meth:`draw_relation` if it can be used with preferences.
    """

    self_normalized: bool = False  # whether the importance weights of a ranking are divided by their mean

    @abstractmethod
    def draw(self, ranks: RankArray, n_draws: int, streams: Streams, coupling: Coupling) -> Weighted:
        """Return draws of each ranking and their importance weights.

        The mean of ``weights * f(draws)`` estimates the expectation of f.

        Parameters
        ----------
        ranks : array of shape (n_rankings, n_items)
            The rankings.
        n_draws : int
            Number of draws of each ranking.
        streams : array of shape (n_rankings,)
            64 random bits per ranking: the draws of ranking i may depend on ``ranks[i]`` and ``streams[i]`` only.
        coupling : Coupling
            The joint distribution of the draws of one ranking.

        Returns
        -------
        draws : array of shape (n_rankings, n_draws, n_items)
            The position of each item.
        weights : array of shape (n_rankings, n_draws), or None
            Importance weights; None if all are 1.
        """

    def draw_relation(self, before: Mask, n_draws: int, rng: np.random.Generator) -> Weighted:
        """Return draws of the linear extensions of a partial order, and the logarithms of their weights.

        Parameters
        ----------
        before : array of shape (n_items, n_items)
            The transitively closed relation: whether item x is before item y.
        n_draws : int
            Number of draws.
        rng : Generator
            The source of randomness.

        Returns
        -------
        draws : array of shape (n_draws, n_items)
            The position of each item.
        log_weights : array of shape (n_draws,), or None
            Log-weights up to a common constant; None if the draws follow the model exactly.
        """
        raise RankingError(
            Argument("completions", self),
            " cannot be drawn given a partial order; use Uniform(), MallowsModel(center, theta) or "
            "LogDensity(function) with self-normalised weights",
        )

    def check_independent(self, coupling: Coupling) -> None:
        """Raise an error unless the coupling is "iid": the others are for uniform completions."""
        if coupling.name != "iid":
            raise RankingError(
                Argument("coupling", coupling.name),
                f" is for uniform completions, but these follow {type(self).__name__}; use ",
                Argument("coupling", "iid"),
            )


@dataclass(frozen=True)
class Uniform(CompletionModel):
    r"""The uniform distribution on the completions: :math:`p(\sigma | R) = 1 / |R|`.

    Examples
    --------
    >>> from rankernel.completions import draw
    >>> draws = draw([[0, 1, 1, 1]], n_draws=6000, completions=Uniform())
    >>> bool((draws.ranks[:, :, 0] == 0).all()), draws.ranks[0, :, 1:].mean(axis=0).round(1).tolist()
    (True, [2.0, 2.0, 2.0])
    """

    def draw(self, ranks: RankArray, n_draws: int, streams: Streams, coupling: Coupling) -> Weighted:
        """Return coupled uniform completions, all of weight 1."""
        return coupling.draw(ranks, n_draws, streams), None

    def draw_relation(self, before: Mask, n_draws: int, rng: np.random.Generator) -> Weighted:
        """Return uniform linear extensions."""
        return draw_extensions(before, n_draws, rng=rng), None


@dataclass(frozen=True)
class LogDensity(CompletionModel):
    r"""A density on full rankings, known up to a factor: :math:`p(\sigma | R) \propto e^{f(\sigma)}` on R.

    Draws are uniform on R (with any coupling) and have importance weights. Self-normalised weights have mean 1 over the
    draws of each ranking; they need no normalising constant and have a bias of order 1/n_draws. Plain weights
    :math:`|R|\, p(\sigma | R)` are unbiased, and need the sum of the density over all completions, which must be few.

    Parameters
    ----------
    function : callable
        Takes full rankings as positions of the items, an integer array of shape (k, n_items), and returns k
        log-densities.
    self_normalized : bool
        Whether to use self-normalised or plain weights.

    Examples
    --------
    A density proportional to 3 if item 0 is first, else 1; here it is first in one completion of two:

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
            raise ArgumentTypeError("function", self.function, "a function of full rankings")
        check_flag("self_normalized", self.self_normalized)

    def draw(self, ranks: RankArray, n_draws: int, streams: Streams, coupling: Coupling) -> Weighted:
        """Return coupled uniform completions and their importance weights."""
        draws = coupling.draw(ranks, n_draws, streams)
        logs = self.evaluate(draws.reshape(-1, draws.shape[2])).reshape(draws.shape[:2])
        if self.self_normalized:
            return draws, self_normalized_weights(logs)
        return draws, np.exp(logs - np.array([self.log_mean_density(row) for row in ranks])[:, None])

    def draw_relation(self, before: Mask, n_draws: int, rng: np.random.Generator) -> Weighted:
        """Return uniform linear extensions and their log-densities."""
        if not self.self_normalized:
            return super().draw_relation(before, n_draws, rng)
        draws = draw_extensions(before, n_draws, rng=rng)
        return draws, self.evaluate(draws)

    def log_mean_density(self, ranks: RankArray) -> float:
        """Return the logarithm of the mean density over the completions of one ranking."""
        number = n_completions(ranks)
        if number > MAX_SUMMED:
            raise ExactnessError(
                f"plain importance weights sum the density over all completions, and a ranking has {number:,} (at most "
                f"{MAX_SUMMED:,} are summed); use LogDensity(function, self_normalized=True)"
            )
        return float(log_mean_exp(self.evaluate(enumerate_completions(ranks))[None, :])[0])

    def evaluate(self, full: FullRanks) -> FloatArray:
        """Return the log-densities of full rankings, and raise an error if they are invalid."""
        logs = np.asarray(self.function(full.astype(np.int32)), dtype=np.float64)
        if logs.shape != (len(full),):
            raise RankingError(
                f"function returned shape {logs.shape} for {len(full)} full rankings; it must return one number each"
            )
        if np.isnan(logs).any() or (logs == np.inf).any():
            raise RankingError("function returned nan or +inf; it must return finite numbers, or -inf for density 0")
        return logs


def log_mean_exp(logs: FloatArray) -> FloatArray:
    """Return the logarithm of the mean of exp(logs) of each row."""
    from scipy.special import logsumexp

    is_zero = np.isneginf(logs).all(axis=1)
    if is_zero.any():
        raise RankingError(
            f"function: all completions evaluated of ranking {int(np.argmax(is_zero))} have density 0; the density "
            "must be positive"
        )
    return np.asarray(logsumexp(logs, axis=1) - np.log(logs.shape[1]))


def self_normalized_weights(logs: FloatArray) -> FloatArray:
    """Return weights proportional to exp(logs) with mean 1 in each row."""
    return np.exp(logs - log_mean_exp(logs)[:, None])


# ---------------------------------------------------------------------- draws


@dataclass(frozen=True, eq=False)
class Draws:
    """Completions drawn for each of several rankings.

    Attributes
    ----------
    ranks : array of shape (n_rankings, n_draws, n_items)
        The position of each item in each draw.
    weights : array of shape (n_rankings, n_draws), or None
        Importance weights: the mean of ``weights * f(draws)`` estimates the expectation of f. None if all are 1.
    block : int
        Size of the blocks of consecutive draws that are coupled; the last one may be incomplete. Blocks are
        independent.
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
        """Effective sample size of each ranking: the squared sum of the weights over the sum of their squares."""
        return np.full(len(self.ranks), float(self.n_draws)) if self.weights is None else effective_size(self.weights)

    def warn_if_low(self) -> None:
        """Warn if the effective sample size of a ranking is low."""
        effective = self.effective_size
        low = effective < max(LOW_SHARE * self.n_draws, min(LOW_NUMBER, self.n_draws / 2))
        if low.any():
            warn(
                f"the effective sample size is low for {int(low.sum())} of {len(low)} rankings (smallest: "
                f"{effective.min():.1f} of {self.n_draws} draws), because a few importance weights dominate; use more "
                "draws, or a model that is sampled without weights",
                SamplingWarning,
            )


def effective_size(weights: FloatArray) -> FloatArray:
    """Return the effective sample size of each row of weights."""
    squares = (weights**2).sum(axis=1)
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

    The draws of a ranking depend only on the seed and the ranking. The first draws of many are those of few, except for
    herding.

    Parameters
    ----------
    X : Rankings
        The rankings, or an array of their ranks.
    n_draws : int
        Number of draws of each ranking; an antithetic pair counts as two.
    coupling : str
        The joint distribution of the draws of one ranking, by its name: see :class:`rankernel.MonteCarlo`.
    completions : CompletionModel, optional
        The distribution of the completions; uniform by default.
    rng : int, Generator or None
        The seed; a Generator is drawn from once. The default 0 gives the same draws in every call.
    rows : array of shape (n_rankings,), optional
        Row numbers on which the draws depend in addition, so that equal rankings have independent draws.
    kernel : kernel on full rankings, optional
        The kernel for coupling="herding".

    Examples
    --------
    >>> from rankernel.rankings import Rankings
    >>> ballots = Rankings.from_orders([["a"], ["b", "a"]], items=["a", "b", "c", "d"])
    >>> pairs = draw(ballots, n_draws=2, coupling="antithetic").ranks
    >>> pairs.sum(axis=1)
    array([[0, 4, 4, 4],
           [2, 0, 5, 5]])
    """
    ranks = as_rankings(X, "X").ranks
    check_integer("n_draws", n_draws)
    model = Uniform() if completions is None else completions
    check_instance("completions", model, CompletionModel, "a completion model such as Uniform()")
    joint = coupling_named(coupling, kernel)
    streams = row_streams(ranks, as_seed(rng), PURPOSE, None if rows is None else np.asarray(rows))
    full, weights = run_interruptibly(model.draw, ranks, n_draws, streams, joint)
    draws = Draws(full, weights, joint.block_size(ranks.shape[1], n_draws))
    draws.warn_if_low()
    return draws


# ---------------------------------------------------------------------- draws row by row


def draw_each(
    draw_row: Callable[[Any, int, np.random.Generator], Weighted],
    rows: Iterable[Any],
    n_draws: int,
    n_items: int,
    streams: Streams,
) -> Weighted:
    """Return draws of rows made one by one, and self-normalised weights if a row has any."""
    check_n_items(n_items)
    full = np.empty((len(streams), n_draws, n_items), dtype=np.int16)
    weights = np.ones((len(streams), n_draws))
    weighted = False
    for number, (row, stream) in enumerate(zip(rows, streams, strict=True)):
        full[number], logs = draw_row(row, n_draws, np.random.Generator(np.random.PCG64(int(stream))))
        if logs is not None:
            weights[number] = self_normalized_weights(logs[None, :])[0]
            weighted = True
    return full, weights if weighted else None


def draw_relations(relations: Mask, n_draws: int, streams: Streams, model: CompletionModel) -> Weighted:
    """Return independent draws of partial orders, and importance weights if one of them has any.

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
    return draw_each(model.draw_relation, relations, n_draws, relations.shape[1], streams)


def relation_streams(
    packed: NDArray[np.uint8], seed: int, purpose: str, rows: NDArray[np.integer] | None = None
) -> Streams:
    """Return one stream per partial order; with row numbers ``rows``, equal orders have independent streams."""
    numbers = np.full(len(packed), NO_ROW, dtype=np.uint64) if rows is None else np.asarray(rows, dtype=np.uint64)
    key = int(stream_key(seed, purpose)).to_bytes(8, "little")
    digests = [
        blake2b(relation.tobytes() + int(number).to_bytes(8, "little"), digest_size=8, key=key).digest()
        for relation, number in zip(packed, numbers, strict=True)
    ]
    return np.array([int.from_bytes(digest, "little") for digest in digests], dtype=np.uint64)

"""Completion models: which full rankings stand behind a partial one, and how probable each is.

The marginalised kernel averages over p(.|R), a distribution on the completions of R. :class:`Uniform` makes all
completions equally probable; :class:`LogDensity` takes any density, by importance weights on uniform draws.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankernel._utils.arrays import FloatArray, RankArray
from rankernel._utils.checks import check_flag, short_repr
from rankernel.completions.couplings import Coupling
from rankernel.completions.enumerate import enumerate_completions, n_completions
from rankernel.completions.keys import FullRanks
from rankernel.completions.streams import Streams
from rankernel.errors import ExactnessError, RankingError

FEW = 50_000


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
    self_normalized: bool = True

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

    def log_normalizer(self, ranks: RankArray) -> float:
        """Return the logarithm of the mean density over the completions of one ranking."""
        number = n_completions(ranks)
        if number > FEW:
            raise ExactnessError(
                f"plain importance weights sum the density over all completions, and a ranking has {number:,} "
                f"(at most {FEW:,} are summed); use LogDensity(function, self_normalized=True)"
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

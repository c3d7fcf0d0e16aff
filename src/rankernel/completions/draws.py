"""Draws: several completions of each of many rankings."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel.completions.couplings import coupling_named
from rankernel.completions.herding import FullKernel
from rankernel.completions.keys import FullRanks, check_draws
from rankernel.completions.models import CompletionModel, Uniform, Weights
from rankernel.completions.streams import Seed, as_seed, row_streams
from rankernel.errors import RankingError, SamplingWarning
from rankernel.rankings import as_rankings

__all__ = ["Draws", "draw"]

PURPOSE = "completions"
LOW = 0.1


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
    effective_size : array of shape (n_rankings,)
        How many unweighted draws the weighted ones are worth: the square of the sum of the weights by the sum of
        their squares.
    """

    ranks: FullRanks
    weights: Weights | None
    block: int
    effective_size: NDArray[np.float64]

    @property
    def n_draws(self) -> int:
        """Number of draws of each ranking."""
        return int(self.ranks.shape[1])


def draw(
    X: Any,
    n_draws: int,
    coupling: str = "iid",
    completions: CompletionModel | None = None,
    seed: Seed = 0,
    distinct_rows: bool = False,
    kernel: FullKernel | None = None,
    first_row: int = 0,
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
    seed : int, Generator or None
        A generator is drawn from once.
    distinct_rows : bool
        Let draws depend on the number of the row, too, so that equal rankings have independent draws.
    kernel : kernel on full rankings, optional
        The kernel to herd for.
    first_row : int
        The number of the first row, where ``X`` is a part of something larger; only for ``distinct_rows``.

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
    check_draws(n_draws)
    model = Uniform() if completions is None else completions
    if not isinstance(model, CompletionModel):
        raise RankingError(f"completions={model!r} is not a completion model; give one such as Uniform()")
    rule = coupling_named(coupling, kernel)
    rows = np.arange(first_row, first_row + len(ranks)) if distinct_rows else None
    streams = row_streams(ranks, as_seed(seed), PURPOSE, rows)
    full, weights = model.draw(ranks, n_draws, streams, rule)
    effective = effective_sizes(weights, full.shape)
    warn_if_low(effective, n_draws)
    return Draws(full, weights, rule.block_size(ranks.shape[1], n_draws), effective)


def effective_sizes(weights: Weights | None, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return how many unweighted draws the draws of each ranking are worth."""
    if weights is None:
        return np.full(shape[0], float(shape[1]))
    squares = (weights**2).sum(axis=1)
    # All weights 0 tell nothing.
    sizes: NDArray[np.float64] = weights.sum(axis=1) ** 2 / np.where(squares == 0, 1.0, squares)
    return sizes


def warn_if_low(effective: NDArray[np.float64], n_draws: int) -> None:
    """Warn where a few draws carry nearly all the weight."""
    low = effective < LOW * n_draws
    if low.any():
        warnings.warn(
            f"the draws of {int(low.sum())} of {len(low)} rankings are worth less than a tenth of their number "
            f"(the worst: {effective.min():.1f} of {n_draws}), as few of them carry nearly all the weight; "
            "take more draws, or a model that can be drawn from directly",
            SamplingWarning,
            stacklevel=3,
        )

"""Draws: several completions of each of many rankings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rankernel._utils.arrays import FloatArray
from rankernel._utils.checks import check_integer
from rankernel._utils.interrupts import run_interruptibly
from rankernel._utils.rng import Seed, as_seed
from rankernel.completions.couplings import coupling_named
from rankernel.completions.herding import FullKernel
from rankernel.completions.keys import FullRanks
from rankernel.completions.models import CompletionModel, Uniform
from rankernel.completions.streams import row_streams
from rankernel.errors import RankingError, SamplingWarning, warn
from rankernel.rankings import as_rankings

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

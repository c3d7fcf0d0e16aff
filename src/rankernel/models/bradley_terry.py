"""How strong items are where what is observed is who beats whom: the model of Bradley and Terry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from rankernel._utils.arrays import FloatArray
from rankernel._utils.checks import check_choice, check_number, printable
from rankernel._utils.notebook import html_card
from rankernel.data import Data, as_nonempty_data
from rankernel.encoding import FREE
from rankernel.errors import RankingError
from rankernel.models.consensus import BLOCK, ranks_by_score
from rankernel.preferences import Preferences, relations_of_ranks
from rankernel.rankings import Rankings

TiedPairs = Literal["half", "skip"]

NEAR = 1e-6  # a step so small is the last one: what is left to do is its square
ROUNDING = 1e-9
MOST_STEPS = 200
SHOWN = 5


@dataclass(frozen=True, eq=False)
class BradleyTerryResult:
    r"""Strengths of items.

    Attributes
    ----------
    ranking : Rankings
        The items by their strengths: one row.
    strengths : array of shape (n_items,)
        The logarithms of the strengths; their mean is zero.
    log_likelihood : float
        The logarithm of the likelihood of all comparisons.
    """

    _repr_html_ = html_card

    ranking: Rankings
    strengths: FloatArray
    log_likelihood: float

    def probabilities(self) -> FloatArray:
        """Return for every two items the probability that the first is preferred; 1/2 on the diagonal."""
        return np.asarray(expit(self.strengths[:, None] - self.strengths[None, :]))


def bradley_terry(X: Any, *, prior: float = 0.0, ties: TiedPairs = "half") -> BradleyTerryResult:
    r"""Fit the strengths of the items to who is preferred to whom, by maximum likelihood.

    In the model of Bradley and Terry, a is preferred to b with probability
    :math:`e^{s_a} / (e^{s_a} + e^{s_b})`, every comparison by itself. Each voter gives one comparison for every two
    items that are ordered; of a free item nothing is known, and it is compared with none. Preferences give what they
    state and what follows from it. For the battles of an arena, let each battle be a user, that is, name no judge.

    The likelihood has a maximum only where no group of items wins or loses all of its comparisons with the others;
    otherwise strengths would be infinite, and an error says which group. ``prior`` makes every strength finite.

    Parameters
    ----------
    X : Rankings, Preferences or array of ranks
        Rankings of any kind, each counted as often as it was given.
    prior : float
        So many wins are added each way between every two items.
    ties : {"half", "skip"}
        Two tied items win one half each, or are not compared. Preferences keep no ties.

    Returns
    -------
    BradleyTerryResult

    Examples
    --------
    Of two items, the odds are those of the wins:

    >>> ballots = Rankings.from_orders([["a", "b"], ["b", "a"]], counts=[3, 1])
    >>> fit = bradley_terry(ballots)
    >>> fit.probabilities().round(6)
    array([[0.5 , 0.75],
           [0.25, 0.5 ]])
    >>> fit.ranking.to_orders()
    [['a', 'b']]
    """
    prior = check_number("prior", prior, 0)
    check_choice("ties", ties, get_args(TiedPairs))
    data = X if isinstance(X, Preferences) and len(X) else as_nonempty_data(X)
    wins = count_wins(data, ties) + prior * (1 - np.eye(data.n_items))
    check_maximum(wins, data.items)
    strengths = most_likely(wins)
    ranks = ranks_by_score(-strengths, ROUNDING)
    return BradleyTerryResult(Rankings._trusted(ranks[None, :], data.items), strengths, log_likelihood(wins, strengths))


def count_wins(X: Data, ties: TiedPairs) -> FloatArray:
    """Return how many voters prefer each item to each other one."""
    n_items = X.n_items
    wins = np.zeros((n_items, n_items))
    distinct = X.unique()
    step = max(BLOCK // max(n_items**2, 1), 1)
    for start in range(0, len(distinct), step):
        block = distinct[start : start + step]
        if isinstance(block, Preferences):
            wins += np.tensordot(block.counts, block.before, axes=1)
            continue
        wins += np.tensordot(block.counts, relations_of_ranks(block.ranks), axes=1)
        if ties == "half":
            tied = (block.ranks[:, :, None] == block.ranks[:, None, :]) & (block.ranks != FREE)[:, :, None]
            wins += np.tensordot(block.counts, tied, axes=1) / 2
    np.fill_diagonal(wins, 0.0)
    return wins


def check_maximum(wins: FloatArray, items: tuple[str, ...]) -> None:
    """Refuse comparisons whose likelihood has no maximum: not every item is linked to every other one by wins."""
    n_groups, group = connected_components(wins > 0, directed=True, connection="strong")
    if n_groups < 2:
        return
    unbeaten = next(g for g in range(n_groups) if not wins[np.ix_(group != g, group == g)].any())
    names = [printable(item) for item, own in zip(items, group == unbeaten, strict=True) if own]
    shown = ", ".join(names[:SHOWN]) + f" and {len(names) - SHOWN:,} more" * (len(names) > SHOWN)
    raise RankingError(
        f"the strengths have no maximum: no other item is ever preferred to {shown}; give prior=0.1, which adds so "
        "many wins each way between every two items"
    )


def most_likely(wins: FloatArray) -> FloatArray:
    """Return the strengths of highest likelihood, by Newton's method with steps cut while they lead down."""
    games, won = wins + wins.T, wins.sum(axis=1)
    strengths = np.zeros(len(wins))
    for _ in range(MOST_STEPS if len(wins) > 1 else 0):
        chance = expit(strengths[:, None] - strengths[None, :])
        spread = games * chance * (1 - chance)
        # One constant more for all strengths changes nothing; the mean keeps the equations regular.
        curvature = np.diag(spread.sum(axis=1)) - spread + spread.mean()
        step = np.linalg.solve(curvature, won - (games * chance).sum(axis=1))
        value = log_likelihood(wins, strengths)
        while log_likelihood(wins, strengths + step) < value and np.abs(step).max() > NEAR:
            step = step / 2
        strengths = strengths + step
        if np.abs(step).max() <= NEAR:
            break
    return np.asarray(strengths - strengths.mean())


def log_likelihood(wins: FloatArray, strengths: FloatArray) -> float:
    """Return the logarithm of the likelihood of wins."""
    return -float((wins * np.logaddexp(0.0, strengths[None, :] - strengths[:, None])).sum())

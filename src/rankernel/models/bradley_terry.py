"""The Bradley-Terry model: strengths of items from pairwise comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from rankernel._utils import FloatArray
from rankernel._utils.checks import check_choice, check_number, printable
from rankernel._utils.notebook import html_card
from rankernel.data import Data, as_nonempty_data, pairwise_ties, pairwise_wins
from rankernel.errors import Argument, RankingError
from rankernel.models.consensus import ranks_by_score
from rankernel.preferences import Preferences
from rankernel.rankings import Rankings, order_text

TiedPairs = Literal["half", "skip"]

LAST_STEP = 1e-6  # the error after such a Newton step is of the order of its square
ROUNDING = 1e-9
MAX_STEPS = 200
MAX_SHOWN = 5


@dataclass(frozen=True, eq=False)
class BradleyTerryResult:
    r"""Strengths of items.

    Attributes
    ----------
    ranking : Rankings
        The items by their strengths: one row.
    strengths : array of shape (n_items,)
        The log-strengths, of mean zero.
    log_likelihood : float
        The log-likelihood of all comparisons.
    """

    _repr_html_ = html_card

    ranking: Rankings
    strengths: FloatArray
    log_likelihood: float

    def __repr__(self) -> str:
        order = order_text(self.ranking.to_orders()[0], self.ranking.items)
        strengths = ", ".join(f"{value:.3g}" for value in np.sort(self.strengths)[::-1][:MAX_SHOWN])
        more = ", ..." * (len(self.strengths) > MAX_SHOWN)
        return f"Bradley-Terry: {order}\n  strengths: {strengths}{more}\n  log-likelihood: {self.log_likelihood:.6g}"

    def probabilities(self) -> FloatArray:
        """Return the probability that item a is preferred to item b, with 1/2 on the diagonal."""
        return np.asarray(expit(self.strengths[:, None] - self.strengths[None, :]))


def bradley_terry(X: Any, *, prior: float = 0.0, ties: TiedPairs = "half") -> BradleyTerryResult:
    r"""Fit the Bradley-Terry model by maximum likelihood.

    Item a is preferred to item b with probability :math:`e^{s_a} / (e^{s_a} + e^{s_b})`, independently in every
    comparison. Each voter contributes one comparison for each two items that are ordered; free items are not compared.
    Preferences contribute their transitive closure; for battles without transitivity, let each battle be a user.

    The likelihood has a maximum only if no group of items wins or loses all comparisons with the others; otherwise
    strengths would be infinite, and an error names the group. A positive ``prior`` makes all strengths finite.

    Parameters
    ----------
    X : Rankings, Preferences or array of ranks
        The data; each row counts as often as its count.
    prior : float
        Number of wins added in each direction between each two items.
    ties : {"half", "skip"}
        Two tied items get half a win each, or are not compared. Preferences have no ties.

    Returns
    -------
    BradleyTerryResult

    Examples
    --------
    The odds of two items are those of their wins:

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
    check_connected(wins, data.items)
    strengths = maximize_likelihood(wins)
    ranks = ranks_by_score(-strengths, ROUNDING)
    ranking = Rankings._trusted(ranks[None, :], data.items)
    return BradleyTerryResult(ranking, strengths, log_likelihood(wins, strengths))


def count_wins(X: Data, ties: TiedPairs) -> FloatArray:
    """Return the number of wins of each item over each other item."""
    wins = pairwise_wins(X).astype(np.float64)
    if ties == "half" and isinstance(X, Rankings):
        wins += pairwise_ties(X) / 2
    np.fill_diagonal(wins, 0.0)
    return wins


def check_connected(wins: FloatArray, items: tuple[str, ...]) -> None:
    """Raise an error if the likelihood has no maximum: the graph of wins is not strongly connected."""
    n_groups, group = connected_components(wins > 0, directed=True, connection="strong")
    if n_groups < 2:
        return
    unbeaten = next(g for g in range(n_groups) if not wins[np.ix_(group != g, group == g)].any())
    names = [printable(item) for item, member in zip(items, group == unbeaten, strict=True) if member]
    shown = ", ".join(names[:MAX_SHOWN]) + f" and {len(names) - MAX_SHOWN:,} more" * (len(names) > MAX_SHOWN)
    raise RankingError(
        f"the likelihood has no maximum: no other item is ever preferred to {shown}; give ",
        Argument("prior", 0.1),
        ", which adds 0.1 wins in each direction between each two items",
    )


def maximize_likelihood(wins: FloatArray) -> FloatArray:
    """Return the maximum likelihood strengths, by Newton's method with step halving."""
    games, won = wins + wins.T, wins.sum(axis=1)
    strengths = np.zeros(len(wins))
    for _ in range(MAX_STEPS if len(wins) > 1 else 0):
        probability = expit(strengths[:, None] - strengths[None, :])
        variance = games * probability * (1 - probability)
        # The likelihood is constant along the vector of ones; adding the mean makes the Hessian regular.
        hessian = np.diag(variance.sum(axis=1)) - variance + variance.mean()
        step = np.linalg.solve(hessian, won - (games * probability).sum(axis=1))
        value = log_likelihood(wins, strengths)
        while log_likelihood(wins, strengths + step) < value and np.abs(step).max() > LAST_STEP:
            step = step / 2
        strengths = strengths + step
        if np.abs(step).max() <= LAST_STEP:
            break
    return np.asarray(strengths - strengths.mean())


def log_likelihood(wins: FloatArray, strengths: FloatArray) -> float:
    """Return the log-likelihood of wins."""
    return -float((wins * np.logaddexp(0.0, strengths[None, :] - strengths[:, None])).sum())

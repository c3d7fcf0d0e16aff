"""The Plackett-Luce model given a partial ranking: exact draws, exact likelihood, and a fit."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, FullRanks, RankArray
from rankernel._utils.checks import check_number
from rankernel._utils.interrupts import run_interruptibly
from rankernel._utils.rng import Seed, Streams, as_seed
from rankernel.completions.couplings import Coupling
from rankernel.completions.draws import CompletionModel
from rankernel.completions.enumerate import check_n_items
from rankernel.datasets.simulate import plackett_luce, positive_weights
from rankernel.errors import RankingError
from rankernel.rankings import Rankings, as_rankings

MAX_STEPS = 10_000
QUICK = 2**14  # items in all rankings, whose probabilities take no time to speak of
# The gradient of the loss, by the number of voters, where the fit is done.
CONVERGED = 1e-6


@dataclass(frozen=True, eq=False)
class PlackettLuce(CompletionModel):
    r"""Items chosen one after another, each with probability proportional to its strength.

    A full ranking has probability :math:`p(\sigma) = \prod_i w_{x_i} / (w_{x_i} + ... + w_{x_n})`, where
    :math:`x_1, ..., x_n` are the items, best first, and :math:`p(\sigma | R) \propto p(\sigma)` on the completions of
    R. Draws are exact for any ranking: with ties, top-k, free items.

    Parameters
    ----------
    weights : array of shape (n_items,)
        Strengths, positive, in the order of the items; only their ratios matter.

    Examples
    --------
    Items 1 and 2 of a top-1 list of four: item 2 is before item 1 three times out of four.

    >>> from rankernel.completions import draw
    >>> model = PlackettLuce([1, 1, 3, 5])
    >>> drawn = draw([[0, 1, 1, 1]], n_draws=10_000, completions=model).ranks[0]
    >>> round(float((drawn[:, 2] < drawn[:, 1]).mean()), 2)
    0.75
    >>> round(float(np.exp(model.log_prob([[0, 1, 1, 1]])[0])), 12)
    0.1
    """

    weights: FloatArray

    def __init__(self, weights: ArrayLike) -> None:
        array = positive_weights(weights)
        if not (array / array.max() > 0).all():
            raise RankingError("weights: the strengths are too different: the smallest by the largest rounds to 0")
        array.flags.writeable = False
        object.__setattr__(self, "weights", array)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlackettLuce) and np.array_equal(self.weights, other.weights)

    def __hash__(self) -> int:
        return hash(self.weights.tobytes())

    def sample(self, n_rankings: int, *, rng: Seed = 0, items: Iterable[object] | None = None) -> Rankings:
        """Draw full rankings from the model itself: see :func:`rankernel.datasets.plackett_luce`.

        Examples
        --------
        >>> PlackettLuce([1, 1e9]).sample(2, items=["a", "b"]).to_orders()
        [['b', 'a'], ['b', 'a']]
        """
        return plackett_luce(n_rankings, self.weights, rng=np.random.default_rng(as_seed(rng)), items=items)

    def draw(
        self, ranks: RankArray, n_draws: int, streams: Streams, coupling: Coupling
    ) -> tuple[FullRanks, FloatArray | None]:
        """Return independent draws from p(.|R), all of weight 1."""
        self.independent_only(coupling)
        check_n_items(ranks.shape[1])
        rows = self.checked(ranks)
        draws: FullRanks = _loops.races.draw(rows, self.weights / self.weights.max(), n_draws, streams)
        return draws, None

    def log_prob(self, X: Any) -> FloatArray:
        """Return the log-probability of each ranking: that of a full ranking, or of all completions of a partial one.

        A free item changes nothing. A bucket of ties in front of other items takes an integral, to rounding error.
        """
        rows = self.checked(as_rankings(X, "X").ranks)
        weights = self.weights / self.weights.max()
        nowhere = np.ones(len(rows)), np.zeros(len(weights))
        logs: FloatArray = run_interruptibly(_loops.races.log_probabilities, rows, weights, *nowhere)
        return logs

    def checked(self, ranks: RankArray) -> RankArray:
        """Return ranks that fit the strengths."""
        if ranks.shape[1] != len(self.weights):
            raise RankingError(
                f"rankings have {ranks.shape[1]} items, but there are {len(self.weights)} strengths; give one for each"
            )
        return np.ascontiguousarray(ranks, dtype=np.int32)

    @classmethod
    def fit(cls, X: Any, *, penalty: float = 0.1) -> PlackettLuce:
        r"""Return the model that fits partial rankings best.

        It maximises :math:`\sum_i c_i \log p(R_i) - \frac{\lambda}{2} \sum_x (\log w_x)^2`, where :math:`c_i` are the
        counts and :math:`p(R)` is the exact probability of all completions of R: free items drop out, ties and top-k
        lists are sums over their orders. This is concave in the log-strengths, and the penalty
        :math:`\lambda > 0` keeps them finite where an item always wins or is never compared. The geometric mean of the
        strengths is 1.

        Parameters
        ----------
        X : Rankings
            Any rankings; their counts are respected.
        penalty : float
            How strongly log-strengths are drawn to 0: the prior is normal, of variance 1 / penalty.

        Examples
        --------
        Two items that win 30 and 10 times, almost without a penalty, are of strengths 3 to 1:

        >>> ballots = Rankings.from_orders([["a", "b"], ["b", "a"]], counts=[30, 10])
        >>> weights = PlackettLuce.fit(ballots, penalty=1e-9).weights
        >>> round(float(weights[0] / weights[1]), 6)
        3.0
        """
        from scipy.optimize import minimize
        from threadpoolctl import threadpool_limits

        penalty = check_number("penalty", penalty, 0, above=True)  # without one, strengths may become infinite
        data = as_rankings(X, "X").unique()
        if not len(data):
            raise RankingError("there are no rankings to fit a model to")
        start = np.zeros(data.n_items)
        options = {"maxiter": MAX_STEPS, "maxfun": 10 * MAX_STEPS, "ftol": 1e-15, "gtol": 1e-9 * data.n_voters}
        with threadpool_limits(1, "blas"):  # small systems: threads would only wait for each other
            found = minimize(loss, start, args=(data, penalty), jac=True, method="L-BFGS-B", options=options)
        if np.abs(found.jac).max() > CONVERGED * data.n_voters:
            warnings.warn(f"the fit stopped early: {found.message}", RuntimeWarning, stacklevel=2)
        return cls(np.exp(found.x - found.x.mean()))


def loss(logs: FloatArray, data: Rankings, penalty: float) -> tuple[float, FloatArray]:
    """Return the penalised negative log-likelihood and its gradient in the log-strengths."""
    gradient = np.zeros(len(logs))
    counts = data.counts.astype(np.float64)
    strong = np.exp(logs - logs.max())
    loop, given = _loops.races.log_probabilities, (data.ranks, strong, counts, gradient)
    values = loop(*given) if data.ranks.size <= QUICK else run_interruptibly(loop, *given)
    value = penalty / 2 * float(logs @ logs) - float(counts @ values)
    return value, penalty * logs - gradient

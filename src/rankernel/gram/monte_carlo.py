"""Monte Carlo as a method: how many draws, how coupled, from what distribution."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import comb
from typing import Literal

import numpy as np

from rankernel.completions.couplings import COUPLINGS
from rankernel.completions.models import CompletionModel, Uniform
from rankernel.completions.streams import Seed, as_seed
from rankernel.gram.controls import highest_degree
from rankernel.kernels.base import Kernel
from rankernel.rankings import Rankings

__all__ = ["MonteCarlo"]

SQUARE_FEATURES = 200_000  # for each ranking: about 35 items
FEATURE_ENTRIES = 2**26  # for all rankings


@dataclass(frozen=True)
class MonteCarlo:
    """Estimation from draws of the completions of each ranking.

    The paper's two estimators are ``MonteCarlo(m, coupling="iid", moments=0)`` and
    ``MonteCarlo(m, coupling="antithetic", moments=0)``. The Gram matrix is positive semi-definite whatever the draws.
    Its diagonal is biased upwards, by the variance of the embedding (for independent draws by (1 - K)/m, appendix B of
    the paper).

    Parameters
    ----------
    n_draws : int
        Full rankings for each partial one; an antithetic pair counts two.
    coupling : {"auto", "iid", "antithetic", "orthogonal", "latin", "herding"}
        How the draws of one ranking depend on each other; "auto" is what serves the kernel best.
    moments : {"auto", 0, 1, 2}
        Up to which degree the coordinates of the embedding are replaced by their exact values, where the kernel has
        such coordinates; "auto" is the highest degree that is not too large for the data.
    completions : CompletionModel
        The distribution p(.|R) of the completions of a ranking.
    seed : int or Generator
        The draws of a ranking depend on the seed and the ranking alone.
    distinct_rows : bool
        Whether equal rankings in different rows get draws of their own: then they depend on the row, too.
    diagonal : {"embedding", "unbiased"}
        The entry of a ranking with itself: the squared length of its embedding, which keeps the matrix positive
        semi-definite, or from pairs of independent draws only, which makes it unbiased.

    Examples
    --------
    The mean of two antithetic draws of two tied items is exact: one draw has them one way round, the other the other.

    >>> from rankernel import Mallows, MonteCarlo, Rankings
    >>> method = MonteCarlo(n_draws=2, coupling="antithetic", moments=0)
    >>> Mallows(nu=1.0).gram(Rankings([[0, 0], [0, 1]]), method=method).round(4)
    array([[0.6839, 0.6839],
           [0.6839, 1.    ]])
    """

    n_draws: int = 64
    coupling: str = "auto"
    moments: int | Literal["auto"] = "auto"
    completions: CompletionModel = field(default_factory=Uniform)
    seed: Seed = 0
    distinct_rows: bool = False
    diagonal: Literal["embedding", "unbiased"] = "embedding"

    def __post_init__(self) -> None:
        if isinstance(self.n_draws, bool) or not isinstance(self.n_draws, int | np.integer) or self.n_draws < 1:
            raise ValueError(f"n_draws={self.n_draws!r} is not possible; it must be a whole number >= 1")
        if self.coupling != "auto" and self.coupling not in COUPLINGS:
            raise ValueError(f"coupling={self.coupling!r} is not known; there are auto, {', '.join(COUPLINGS)}")
        if self.moments not in ("auto", 0, 1, 2):
            raise ValueError(f"moments={self.moments!r} is not possible; it is 0, 1, 2 or 'auto'")
        if self.moments not in ("auto", 0) and not isinstance(self.completions, Uniform):
            raise ValueError("exact moments are known for uniform completions only; use moments=0")
        if self.diagonal not in ("embedding", "unbiased"):
            raise ValueError(f"diagonal={self.diagonal!r} is not known; it is 'embedding' or 'unbiased'")
        object.__setattr__(self, "seed", as_seed(self.seed))

    def settled(self, kernel: Kernel, X: Rankings, Y: Rankings) -> MonteCarlo:
        """Return the method with every "auto" replaced, for one kernel and two sets of rankings."""
        coupling, moments = self.coupling, self.moments
        if coupling == "auto":
            coupling = kernel.best_coupling if isinstance(self.completions, Uniform) else "iid"
        if moments == "auto":
            moments = affordable_degree(kernel, X, Y) if isinstance(self.completions, Uniform) else 0
        return replace(self, coupling=coupling, moments=moments)

    def __str__(self) -> str:
        text = f"Monte Carlo, {self.n_draws} draws of each ranking, {self.coupling}"
        if self.moments:
            text += f", exact moments up to degree {self.moments}"
        if not isinstance(self.completions, Uniform):
            text += f", completions by {self.completions}"
        return f"{text}, seed {self.seed}"


def affordable_degree(kernel: Kernel, X: Rankings, Y: Rankings) -> int:
    """Return the highest degree of exact moments that a kernel has and that is not too large for the data."""
    pairs = comb(X.n_items, 2)
    products = pairs * (pairs + 1) // 2
    fits = products <= SQUARE_FEATURES and products * (len(X) + len(Y)) <= FEATURE_ENTRIES
    return min(highest_degree(kernel, X.n_items), 2 if fits else 1)

"""The exact variance of the Monte Carlo estimator for whole sets of rankings, so that estimators can be judged."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel import distances
from rankernel.completions.enumerate import enumerate_completions
from rankernel.completions.keys import complete
from rankernel.encoding import RankArray
from rankernel.errors import ExactnessError
from rankernel.gram.choose import about
from rankernel.gram.overlap import Overlap
from rankernel.gram.variance import Coupling, mallows_variance, variance_from_values
from rankernel.kernels.base import Kernel
from rankernel.kernels.exponential import ExponentialKernel
from rankernel.rankings import Rankings, as_rankings

__all__ = ["monte_carlo_variance"]

LIMIT = 2**24


def monte_carlo_variance(
    kernel: Kernel, X: Any, Y: Any, n_draws: int, coupling: Coupling = "iid", limit: int = LIMIT
) -> NDArray[np.float64]:
    r"""Return the exact variance of each entry of a Monte Carlo Gram matrix (without exact moments).

    All draws of one ranking meet all draws of the other, so that for m draws each
    :math:`\mathrm{Var} = (A - K^2)/m + (B - K^2)/m + (Q - A - B + K^2)/m^2`, with Q the mean of the squared kernel
    and A, B the mean squares of its means over one side. (Theorem 4 of the paper leaves out the terms in B, which is
    right only if every draw of the one meets fresh draws of the other.) In closed form for the Mallows kernel of
    rankings without free items, else by enumeration.

    Parameters
    ----------
    kernel : Kernel
        The kernel, its width a number.
    X, Y : Rankings
        Rows and columns; a ranking in both is treated as drawn twice, independently.
    n_draws : int
        Full rankings drawn for each partial one; an antithetic pair counts two.
    coupling : {"iid", "antithetic"}
        Independent draws, or pairs of a draw and its mirror image.
    limit : int
        The most kernel evaluations that enumeration may take for one entry.

    Examples
    --------
    >>> from rankernel import Mallows, Rankings
    >>> tied, full = Rankings([[0, 0]]), Rankings([[0, 1]])  # the kernel is 1 or q, each half of the time
    >>> print(monte_carlo_variance(Mallows(nu=np.log(2)), tied, full, n_draws=1).round(12))
    [[0.0625]]
    >>> print(monte_carlo_variance(Mallows(nu=np.log(2)), tied, full, 2, coupling="antithetic").round(12) + 0.0)
    [[0.]]
    """
    rows, columns = as_rankings(X), as_rankings(Y)
    closed = isinstance(kernel, ExponentialKernel) and kernel.argument == distances.kendall
    out = np.empty((len(rows), len(columns)))
    for i, left in enumerate(rows.ranks):
        for j, right in enumerate(columns.ranks):
            if closed and left.min() >= 0 and right.min() >= 0:
                assert isinstance(kernel, ExponentialKernel)
                out[i, j] = mallows_variance(Overlap.of(left, right), kernel.width, n_draws, n_draws, coupling)
            else:
                out[i, j] = by_enumeration(kernel, left, right, n_draws, coupling, limit)
    return out


def by_enumeration(
    kernel: Kernel, left: RankArray, right: RankArray, n_draws: int, coupling: Coupling, limit: int
) -> float:
    """Return the variance of one entry from the kernel between all completions of two rankings."""
    (n_left,), (n_right,) = Rankings(left[None]).n_completions(), Rankings(right[None]).n_completions()
    if n_left * n_right > limit:
        raise ExactnessError(
            f"two rankings have {about(n_left * n_right)} pairs of completions (the limit is {limit:,}); the variance "
            "has a closed form for the Mallows kernel of rankings without free items only"
        )
    X, Y = (enumerate_completions(row).astype(np.int32) for row in (left, right))
    values = kernel.matrix(X, Y)
    if coupling == "iid":
        return variance_from_values(values, n_draws, n_draws)
    return variance_from_values(values, n_draws, n_draws, mirror_images(left, X), mirror_images(right, Y))


def mirror_images(ranks: RankArray, full: RankArray) -> NDArray[np.intp]:
    """Return for each completion the number of its antithetic partner: all keys turned round."""
    keys = (full + 0.5) / full.shape[1]
    partners = complete(ranks[None], 1 - keys[None])[0]
    number = {row.tobytes(): place for place, row in enumerate(full.astype(np.int16))}
    return np.array([number[row.tobytes()] for row in np.ascontiguousarray(partners, dtype=np.int16)], dtype=np.intp)

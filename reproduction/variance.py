"""The exact variance of a Monte Carlo estimate of one entry of a Gram matrix.

The estimate is the mean of the kernel over all pairs of draws of the two rankings. Pairs that share a draw are
correlated, and

    Var = (A - K^2) / M + (B - K^2) / N + (Q - A - B + K^2) / (M N)

for M and N independent draws, where K is the mean of the kernel, Q the mean of its square, and A and B are the mean
squares of its conditional means given a left and given a right draw. For antithetic pairs the same holds with pairs
instead of draws, and the mean of the kernel over the pairs instead of the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1
from statistics import fmean
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from rankernel import distances
from rankernel._utils import FloatArray, Indices, RankArray
from rankernel._utils.checks import check_choice, check_integer
from rankernel._utils.combinatorics import tables
from rankernel.completions.draws import complete
from rankernel.completions.linear_extensions import enumerate_completions
from rankernel.errors import ArgumentValueError, ExactnessError
from rankernel.gram.exact.formulas import Overlap
from rankernel.gram.plan import MAX_EVALUATIONS
from rankernel.gram.rows import check_n_items
from rankernel.kernels import Mallows, as_kernel
from rankernel.kernels.base import Decay, Kernel
from rankernel.rankings import Rankings, as_rankings

Coupling = Literal["iid", "antithetic"]


@dataclass(frozen=True)
class Variance:
    """Components of the variance of a kernel: of its mean given a left draw, given a right draw, and the residual."""

    left: float
    right: float
    residual: float

    def of_mean(self, n_left: int, n_right: int) -> float:
        """Return the variance of the mean over all pairs of ``n_left`` and ``n_right`` independent draws."""
        return self.left / n_left + self.right / n_right + self.residual / (n_left * n_right)


def variance_from_values(
    values: ArrayLike,
    n_left: int,
    n_right: int,
    left_partner: ArrayLike | None = None,
    right_partner: ArrayLike | None = None,
) -> float:
    """Return the variance of the mean of a kernel over all pairs of draws, from its values on all completions.

    Partners are the antithetic completions of each completion, where draws are antithetic pairs.
    """
    kernel = np.asarray(values, dtype=np.float64)
    if left_partner is not None:
        n_left, kernel = n_pairs(n_left), (kernel + kernel[np.asarray(left_partner)]) / 2
    if right_partner is not None:
        n_right, kernel = n_pairs(n_right), (kernel + kernel[:, np.asarray(right_partner)]) / 2
    centred = kernel - kernel.mean()  # so that no large means cancel
    left, right = centred.mean(axis=1), centred.mean(axis=0)
    rest = centred - left[:, None] - right
    return Variance(*(float((each**2).mean()) for each in (left, right, rest))).of_mean(n_left, n_right)


def n_pairs(n_draws: int) -> int:
    """Return the number of antithetic pairs of an even number of draws."""
    if n_draws < 2 or n_draws % 2:
        raise ArgumentValueError("n_draws", n_draws, "an even number >= 2 for antithetic pairs")
    return n_draws // 2


def mallows_variance(overlap: Overlap, nu: float, n_left: int, n_right: int, coupling: Coupling = "iid") -> float:
    """Return the variance of a Monte Carlo estimate of the Mallows kernel of two rankings without free items.

    The mean of a product of two kernel values that share a draw, or whose draws are reversals of each other, is a
    product of q-factorials. The logarithms of these means are relative to ``K^2``, so that nothing cancels.
    """
    if not (overlap.left_shape.is_exhaustive and overlap.right_shape.is_exhaustive):
        raise ExactnessError("the variance of the Mallows kernel has a closed form without free items only")
    single, double = (tables(overlap.n_items, factor * nu)[0] for factor in (1, 2))
    sizes = np.arange(overlap.n_items + 1)
    same = double - 2 * single  # the same draw twice
    opposite = -2 * single - nu * sizes * (sizes - 1) / 2  # a draw and its reversal
    kinds: tuple[FloatArray, ...] = (same,)
    if coupling == "antithetic":
        kinds, n_left, n_right = (same, opposite), n_pairs(n_left), n_pairs(n_right)
    cells = overlap.counts[overlap.counts > 0]
    left = [table[list(overlap.left_shape.sizes)].sum() - table[cells].sum() for table in kinds]
    right = [table[list(overlap.right_shape.sizes)].sum() - table[cells].sum() for table in kinds]
    residual = [
        expm1(u) * expm1(v) + exp(u + v) * expm1(kinds[i != j][cells].sum())
        for i, u in enumerate(left)
        for j, v in enumerate(right)
    ]
    square = exp(2 * Mallows(nu).log_gram(overlap.left[None], overlap.right[None]).item())
    parts = (square * fmean(map(expm1, left)), square * fmean(map(expm1, right)), square * fmean(residual))
    return Variance(*parts).of_mean(n_left, n_right)


def monte_carlo_variance(
    X: Any,
    Y: Any,
    kernel: Kernel,
    *,
    n_draws: int,
    coupling: Coupling = "iid",
    limit: int = MAX_EVALUATIONS,
) -> FloatArray:
    r"""Return the exact variance of each entry of a Monte Carlo Gram matrix without control variates.

    For m draws of each ranking, :math:`\mathrm{Var} = (A - K^2)/m + (B - K^2)/m + (Q - A - B + K^2)/m^2`, with Q the
    mean of the squared kernel and A, B the mean squares of its means over one side. (Theorem 4 of the paper omits the
    terms in B; it holds if every draw of one ranking is compared with fresh draws of the other.) In closed form for the
    Mallows kernel of rankings without free items, else by enumeration.

    Parameters
    ----------
    X, Y : Rankings
        Rows and columns; a ranking in both is treated as drawn twice, independently.
    kernel : Kernel
        The kernel, its parameters numbers.
    n_draws : int
        Number of draws per ranking; an antithetic pair counts two.
    coupling : {"iid", "antithetic"}
        Independent draws, or antithetic pairs.
    limit : int
        The largest number of kernel evaluations that enumeration may take for one entry.

    Returns
    -------
    array of shape (n_rows, n_columns)
        The variance of each entry.

    Examples
    --------
    >>> from rankernel import Mallows, Rankings
    >>> tied, full = Rankings([[0, 0]]), Rankings([[0, 1]])  # the kernel is 1 or q, with probability 1/2 each
    >>> print(monte_carlo_variance(tied, full, Mallows(nu=np.log(2)), n_draws=1).round(12))
    [[0.0625]]
    >>> print(monte_carlo_variance(tied, full, Mallows(nu=np.log(2)), n_draws=2, coupling="antithetic").round(12) + 0.0)
    [[0.]]
    """
    check_integer("n_draws", n_draws)
    check_choice("coupling", coupling, get_args(Coupling))
    check_integer("limit", limit, 0, 2**63 - 1)
    rows, columns, kernel = as_rankings(X, "X"), as_rankings(Y, "Y"), as_kernel(kernel)
    check_n_items(columns, rows)
    facts = kernel.facts(rows.n_items)
    rate = facts.function.rate if isinstance(facts.function, Decay) and facts.distance == distances.kendall else None
    out = np.empty((len(rows), len(columns)))
    for i, left in enumerate(rows.ranks):
        for j, right in enumerate(columns.ranks):
            if rate is not None and left.min() >= 0 and right.min() >= 0:
                out[i, j] = mallows_variance(Overlap.of(left, right), rate, n_draws, n_draws, coupling)
            else:
                out[i, j] = enumerated_variance(kernel, left, right, n_draws, coupling, limit)
    return out


def enumerated_variance(
    kernel: Kernel, left: RankArray, right: RankArray, n_draws: int, coupling: Coupling, limit: int
) -> float:
    """Return the variance of one entry from the kernel between all completions of two rankings."""
    (n_left,), (n_right,) = Rankings(left[None]).n_completions(), Rankings(right[None]).n_completions()
    if n_left * n_right > limit:
        raise ExactnessError(
            f"two rankings have {n_left * n_right:.3g} pairs of completions, and the limit is {limit:,}; the "
            "variance has a closed form for the Mallows kernel of rankings without free items only"
        )
    X, Y = (enumerate_completions(row).astype(np.int32) for row in (left, right))
    partners = (None, None) if coupling == "iid" else (antithetic_partners(left, X), antithetic_partners(right, Y))
    return variance_from_values(kernel.matrix(X, Y), n_draws, n_draws, *partners)


def antithetic_partners(ranks: RankArray, full: RankArray) -> Indices:
    """Return for each completion the index of its antithetic completion: the one with the keys 1 - u."""
    keys = (full + 0.5) / full.shape[1]
    partners = complete(ranks[None], 1 - keys[None])[0]
    index = {row.tobytes(): number for number, row in enumerate(full.astype(np.int16))}
    return np.array([index[row.tobytes()] for row in np.ascontiguousarray(partners, dtype=np.int16)], dtype=np.intp)

"""The exact variance of a Monte Carlo estimate of one entry of a Gram matrix.

The estimate is the mean of the kernel over all pairs of draws of the two rankings, so that each draw of one ranking
meets every draw of the other. Sharing draws correlates the pairs, and

    Var = (A - K^2) / M + (B - K^2) / N + (Q - A - B + K^2) / (M N)

for M and N independent draws, where K is the kernel's mean, Q the mean of its square, and A and B the mean squares of
its means over the right and over the left draws. For antithetic pairs the same holds with pairs in place of draws and
the mean of the kernel over the pairs in place of the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1
from statistics import fmean
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankernel.errors import ExactnessError
from rankernel.gram.formulas.mallows import ExhaustiveMallows, cell_sizes, tables
from rankernel.gram.overlap import Overlap

__all__ = ["Coupling", "Variance", "mallows_variance", "variance_from_values"]

Coupling = Literal["iid", "antithetic"]


@dataclass(frozen=True)
class Variance:
    """The three parts of the variance of the mean of a kernel over all pairs of draws.

    ``left`` and ``right`` are the variances of the kernel's mean given one left draw, given one right draw, and
    ``both`` is what remains of the kernel's variance.
    """

    left: float
    right: float
    both: float

    def of(self, n_left: int, n_right: int) -> float:
        """Return the variance of the mean over all pairs of ``n_left`` and ``n_right`` independent draws."""
        return self.left / n_left + self.right / n_right + self.both / (n_left * n_right)


def variance_from_values(
    values: ArrayLike,
    n_left: int,
    n_right: int,
    left_partner: ArrayLike | None = None,
    right_partner: ArrayLike | None = None,
) -> float:
    """Return the variance of the mean of a kernel over all pairs of draws, from its values on all completions.

    Parameters
    ----------
    values : array of shape (n_left_completions, n_right_completions)
        The kernel between every completion of one ranking and every completion of the other.
    n_left, n_right : int
        Number of full rankings drawn on each side; an antithetic pair counts two.
    left_partner, right_partner : array of int, optional
        For draws in antithetic pairs, the partner of each completion; left out for independent draws.

    Returns
    -------
    float

    Examples
    --------
    One draw on each side has the variance of the kernel itself:

    >>> variance_from_values([[1.0, 0.0], [0.0, 1.0]], n_left=1, n_right=1)
    0.25
    """
    kernel = np.asarray(values, dtype=np.float64)
    units_left, units_right = n_left, n_right
    if left_partner is not None:
        units_left = pairs_of(n_left)
        kernel = (kernel + kernel[np.asarray(left_partner)]) / 2
    if right_partner is not None:
        units_right = pairs_of(n_right)
        kernel = (kernel + kernel[:, np.asarray(right_partner)]) / 2
    return parts_of(kernel).of(units_left, units_right)


def parts_of(kernel: NDArray[np.float64]) -> Variance:
    """Return the parts of the variance, from centred values, so that no large means cancel."""
    centred = kernel - kernel.mean()
    left, right = centred.mean(axis=1), centred.mean(axis=0)
    rest = centred - left[:, None] - right
    return Variance(float((left**2).mean()), float((right**2).mean()), float((rest**2).mean()))


def pairs_of(n_draws: int) -> int:
    """Return half the number of draws, refusing an odd one."""
    if n_draws < 2 or n_draws % 2:
        raise ValueError(f"n_draws={n_draws} does not make antithetic pairs; give an even number, at least 2")
    return n_draws // 2


def mallows_variance(overlap: Overlap, nu: float, n_left: int, n_right: int, coupling: Coupling = "iid") -> float:
    """Return the variance of a Monte Carlo estimate of the Mallows kernel of two rankings without free items.

    Parameters
    ----------
    overlap : Overlap
        Two rankings without free items.
    nu : float
        Bandwidth of the kernel ``exp(-nu d)``.
    n_left, n_right : int
        Number of full rankings drawn on each side; an antithetic pair counts two.
    coupling : {"iid", "antithetic"}
        Independent draws, or pairs of a draw and its reversal inside every bucket.

    Returns
    -------
    float

    Examples
    --------
    Two items, unordered on the left: the kernel is 1 or q, each half of the time.

    >>> overlap = Overlap.of(np.array([0, 0]), np.array([0, 1]))
    >>> q = np.exp(-0.5)
    >>> bool(np.isclose(mallows_variance(overlap, 0.5, n_left=3, n_right=5), (1 - q) ** 2 / 4 / 3))
    True
    """
    if not (overlap.left_shape.is_exhaustive and overlap.right_shape.is_exhaustive):
        raise ExactnessError(
            "the variance of the Mallows kernel has a closed form for rankings without free items only; enumerate the "
            "completions and use variance_from_values"
        )
    if coupling not in get_args(Coupling):
        raise ValueError(f"coupling={coupling!r} is not known; it is 'iid' or 'antithetic'")
    if coupling == "iid":
        return mallows_parts(overlap, nu, antithetic=False).of(n_left, n_right)
    return mallows_parts(overlap, nu, antithetic=True).of(pairs_of(n_left), pairs_of(n_right))


def mallows_parts(overlap: Overlap, nu: float, antithetic: bool) -> Variance:
    """Return the parts of the variance of the Mallows kernel, or of its mean over antithetic pairs.

    The mean of a product of two kernel values that share a draw, or have draws that are each other's reversal, is
    again a product of q-factorials. Its logarithm less that of ``K^2`` is written so that K cancels by itself.
    """
    single, double = (tables(overlap.n_items, factor * nu)[0] for factor in (1, 2))
    sizes = np.arange(overlap.n_items + 1)
    same = double - 2 * single  # the same draw twice
    reversed_ = -2 * single - nu * sizes * (sizes - 1) / 2  # a draw and its reversal
    kinds = (same, reversed_) if antithetic else (same,)
    cells = cell_sizes(overlap)
    left = [table[list(overlap.left_shape.sizes)].sum() - table[cells].sum() for table in kinds]
    right = [table[list(overlap.right_shape.sizes)].sum() - table[cells].sum() for table in kinds]
    both = [
        expm1(u) * expm1(v) + exp(u + v) * expm1(kinds[i != j][cells].sum())
        for i, u in enumerate(left)
        for j, v in enumerate(right)
    ]
    square = exp(2 * ExhaustiveMallows().log_value(overlap, nu)[0])
    return Variance(square * fmean(map(expm1, left)), square * fmean(map(expm1, right)), square * fmean(both))

"""The law of the Kendall distance between random completions of two rankings without free items."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from rankernel.errors import ExactnessError
from rankernel.gram.formulas.law import DistanceLaw
from rankernel.gram.formulas.mallows import cell_sizes, inversions
from rankernel.gram.overlap import Overlap, Shape

__all__ = ["MAX_LAW_ITEMS", "KendallLaw", "kendall_moments"]

MAX_LAW_ITEMS = 60


class KendallLaw(DistanceLaw):
    """Probability of each number of discordant pairs, by integer arithmetic.

    The numbers of pairs of completions at distance 0, 1, ... are the coefficients of the polynomial in q
    ``q^c prod_i [n_i]_q! prod_j [n'_j]_q! / prod_ij [C_ij]_q!`` (times a constant), with the sizes n_i, n'_j of the
    buckets, C_ij of what they share, and c pairs in opposite order.

    Examples
    --------
    >>> from rankernel.gram.overlap import Overlap
    >>> KendallLaw().pmf(Overlap.of(np.array([0, 0, 1]), np.array([0, 1, 2])))
    array([0.5, 0.5, 0. , 0. ])
    """

    name = "law of the Kendall distance (integer polynomials)"
    distance = "kendall"

    def covers(self, left: Shape, right: Shape) -> bool:
        """Say whether there are no free items, and not too many items."""
        return left.is_exhaustive and right.is_exhaustive and left.n_items <= MAX_LAW_ITEMS

    def pmf(self, overlap: Overlap) -> NDArray[np.float64]:
        """Return the probability of each distance from 0 to n (n - 1) / 2."""
        coefficients = [1]
        powers = bracket_powers(overlap)
        for size, power in powers.items():
            for _ in range(power):
                coefficients = times_bracket(coefficients, size)
        for size, power in powers.items():
            for _ in range(-power):
                coefficients = over_bracket(coefficients, size)
        total = sum(coefficients)
        shift = inversions(overlap.right.tolist())
        pmf = np.zeros(comb(overlap.n_items, 2) + 1)
        pmf[shift : shift + len(coefficients)] = [count / total for count in coefficients]
        return pmf


def bracket_powers(overlap: Overlap) -> Counter[int]:
    """Return how often each ``[i]_q`` occurs in the polynomial; a negative number where it divides."""
    powers: Counter[int] = Counter()
    for size in (*overlap.left_shape.sizes, *overlap.right_shape.sizes):
        powers.update(range(2, size + 1))
    for size in cell_sizes(overlap).tolist():
        powers.subtract(range(2, size + 1))
    return powers


def times_bracket(coefficients: list[int], size: int) -> list[int]:
    """Multiply a polynomial by ``1 + q + ... + q^(size-1)``."""
    product, window = [], 0
    for i in range(len(coefficients) + size - 1):
        window += coefficients[i] if i < len(coefficients) else 0
        window -= coefficients[i - size] if i >= size else 0
        product.append(window)
    return product


def over_bracket(coefficients: list[int], size: int) -> list[int]:
    """Divide a polynomial by ``1 + q + ... + q^(size-1)``, which has to divide it."""
    quotient: list[int] = []
    window = 0
    for i in range(len(coefficients) - size + 1):
        quotient.append(coefficients[i] - window)
        window += quotient[-1] - (quotient[i - size + 1] if i >= size - 1 else 0)
    return quotient


def kendall_moments(overlap: Overlap, degree: int, shift: int = 1) -> NDArray[np.float64]:
    """Return the means of ``(shift + k)^m`` for m = 0..degree, where ``k = 1 - 2 d / P`` is the Kendall kernel.

    d is the number of discordant pairs of random completions of two rankings without free items, among
    ``P = n (n - 1) / 2`` pairs. Its cumulants are known for any n and computed as exact fractions, so nothing cancels.

    Parameters
    ----------
    overlap : Overlap
        Two rankings without free items.
    degree : int
        Largest power.
    shift : int, default 1
        1 for the polynomial kernel ``(1 + k)^m``, 0 for the moments of k itself.

    Returns
    -------
    array of shape (degree + 1,)

    Examples
    --------
    Two unordered rankings of two items: k is 1 or -1, each half of the time.

    >>> from rankernel.gram.overlap import Overlap
    >>> kendall_moments(Overlap.of(np.array([0, 0]), np.array([0, 0])), 3)
    array([1., 1., 2., 4.])
    """
    if not (overlap.left_shape.is_exhaustive and overlap.right_shape.is_exhaustive):
        raise ExactnessError(
            "moments of the Kendall kernel of any degree are known for rankings without free items only; one of these "
            "has free items (degrees 1 and 2 have a closed form, see rankernel.gram.pair_moments)"
        )
    pairs = max(comb(overlap.n_items, 2), 1)
    cumulants = [Fraction(-2, pairs) ** r * kappa for r, kappa in enumerate(distance_cumulants(overlap, degree), 1)]
    if cumulants:
        cumulants[0] += 1 + shift
    return np.array([float(moment) for moment in moments_from(cumulants)])


def distance_cumulants(overlap: Overlap, degree: int) -> list[Fraction]:
    """Return the cumulants 1..degree of the number of discordant pairs."""
    counts = Counter((*overlap.left_shape.sizes, *overlap.right_shape.sizes))
    counts.subtract(cell_sizes(overlap).tolist())
    cumulants = [
        sum((count * inversion_cumulant(size, r) for size, count in counts.items()), Fraction(0))
        for r in range(1, degree + 1)
    ]
    if cumulants:
        cumulants[0] += inversions(overlap.right.tolist())
    return cumulants


@lru_cache(maxsize=4096)
def inversion_cumulant(size: int, r: int) -> Fraction:
    """Return the r-th cumulant of the number of inversions of a random order: ``B_r / r * sum_{i <= size} (i^r - 1)``.

    The number is a sum of independent uniform variables on 0..i-1, and B_r is a Bernoulli number, B_1 being 1/2.
    """
    total = sum(i**r - 1 for i in range(1, size + 1))
    return Fraction(bernoulli(r) * total, r)


@lru_cache(maxsize=256)
def bernoulli(r: int) -> Fraction:
    """Return the r-th Bernoulli number, B_1 = 1/2."""
    if r % 2 and r > 1:
        return Fraction(0)
    return 1 - sum((comb(r, k) * bernoulli(k) / (r - k + 1) for k in range(r)), Fraction(0))


def moments_from(cumulants: list[Fraction]) -> list[Fraction]:
    """Return the raw moments 0, 1, ... of a random variable with these cumulants 1, 2, ..."""
    moments = [Fraction(1)]
    for r in range(1, len(cumulants) + 1):
        moments.append(sum((comb(r - 1, j) * cumulants[j] * moments[r - 1 - j] for j in range(r)), Fraction(0)))
    return moments

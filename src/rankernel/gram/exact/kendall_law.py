"""The law of the Kendall distance between random completions of two rankings without free items.

The distance is d = c + X. The c pairs in opposite order are certain, and the law of X depends only on the sizes n_i,
n'_j of the buckets and C_ij of what they share: its generating function is, up to a constant, the polynomial
``prod_i [n_i]_q! prod_j [n'_j]_q! / prod_ij [C_ij]_q!``. So few laws serve a whole Gram matrix.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from math import comb

import numpy as np

from rankernel._utils.arrays import FloatArray
from rankernel.gram.exact.overlap import DistanceLaw, Overlap, Shape

MOST_ITEMS = 60  # whose polynomials are divided in whole numbers
MOST_SIMPLE_ITEMS = 200  # where nothing is divided

Brackets = tuple[tuple[int, int], ...]  # how often each [i]_q multiplies; a negative number where it divides


def brackets_of(buckets: Iterable[int], cells: Iterable[int]) -> Brackets:
    """Return the polynomial of bucket sizes on both sides and of the sizes of what they share.

    Examples
    --------
    >>> brackets_of([3, 2], [2])
    ((2, 1), (3, 1))
    """
    powers: Counter[int] = Counter()
    for size in buckets:
        powers.update(range(2, size + 1))
    for size in cells:
        powers.subtract(range(2, size + 1))
    return tuple(sorted((size, power) for size, power in powers.items() if power))


@lru_cache(maxsize=1024)
def tie_law(brackets: Brackets) -> FloatArray:
    """Return the probability of each number X = 0, 1, ... of discordant pairs that ties leave to chance.

    Examples
    --------
    Three items in any order have 0, 1, 1, 2, 2 or 3 inversions:

    >>> tie_law(brackets_of([3], [])) * 6
    array([1., 2., 2., 1.])
    """
    if all(power > 0 for _, power in brackets):
        law = np.ones(1)
        for size, power in brackets:
            for _ in range(power):
                law = np.convolve(law, np.full(size, 1 / size))  # a sum of independent uniform numbers
    else:
        coefficients = divided_polynomial(brackets)
        total = sum(coefficients)
        law = np.array([count / total for count in coefficients])
    law.flags.writeable = False
    return law


def divided_polynomial(brackets: Brackets) -> list[int]:
    """Return the coefficients of the polynomial, in whole numbers: nothing is rounded."""
    coefficients = [1]
    for size, power in brackets:
        for _ in range(power):
            coefficients = times_bracket(coefficients, size)
    for size, power in brackets:
        for _ in range(-power):
            coefficients = over_bracket(coefficients, size)
    return coefficients


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


class KendallLaw(DistanceLaw):
    """Probability of each number of discordant pairs.

    Examples
    --------
    >>> KendallLaw().pmf(Overlap.of(np.array([0, 0, 1]), np.array([0, 1, 2])))
    array([0.5, 0.5, 0. , 0. ])
    """

    name = "law of the Kendall distance"
    distance = "kendall"

    def covers(self, left: Shape, right: Shape) -> bool:
        """Say whether there are no free items, and not too many items."""
        if not (left.is_exhaustive and right.is_exhaustive):
            return False
        return left.n_items <= (MOST_SIMPLE_ITEMS if min(left.n_ties, right.n_ties) <= 1 else MOST_ITEMS)

    def pmf(self, overlap: Overlap) -> FloatArray:
        """Return the probability of each distance from 0 to n (n - 1) / 2."""
        law = tie_law(brackets_of((*overlap.left_shape.sizes, *overlap.right_shape.sizes), overlap.cell_sizes.tolist()))
        pmf = np.zeros(comb(overlap.n_items, 2) + 1)
        pmf[overlap.n_discordant : overlap.n_discordant + len(law)] = law
        return pmf


# ---------------------------------------------------------------------- moments


def mean_extra(brackets: Brackets) -> float:
    """Return the mean of X: half of all pairs that are tied on one side at least."""
    return float(sum(power * Fraction(size - 1, 2) for size, power in brackets))


@lru_cache(maxsize=1024)
def central_moments(brackets: Brackets, degree: int) -> FloatArray:
    """Return the means of ``(X - E X)^m`` for m = 0..degree, from cumulants that are exact fractions.

    X is symmetric about its mean, so the odd ones are 0.

    Examples
    --------
    >>> central_moments(brackets_of([2], []), 4)
    array([1.    , 0.    , 0.25  , 0.    , 0.0625])
    """
    cumulants = [Fraction(0), Fraction(0)]
    cumulants += [
        sum((power * bracket_cumulant(size, r) for size, power in brackets), Fraction(0)) for r in range(2, degree + 1)
    ]
    moments = [Fraction(1)]
    for r in range(1, degree + 1):
        moments.append(sum((comb(r - 1, j - 1) * cumulants[j] * moments[r - j] for j in range(1, r + 1)), Fraction(0)))
    found = np.array([float(moment) for moment in moments])
    found.flags.writeable = False
    return found


@lru_cache(maxsize=4096)
def bracket_cumulant(size: int, r: int) -> Fraction:
    """Return the r-th cumulant of a uniform number below ``size``: ``B_r / r (size^r - 1)``, B_r a Bernoulli number."""
    return Fraction(bernoulli(r) * (size**r - 1), r)


@lru_cache(maxsize=256)
def bernoulli(r: int) -> Fraction:
    """Return the r-th Bernoulli number, B_1 = 1/2."""
    if r % 2 and r > 1:
        return Fraction(0)
    return 1 - sum((comb(r, k) * bernoulli(k) / (r - k + 1) for k in range(r)), Fraction(0))

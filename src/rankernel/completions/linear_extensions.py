"""Linear extensions of a partial order: counted, enumerated, drawn exactly, and averaged over.

A partial order is its closed relation ``before``: ``before[x, y]`` says that item x is known to stand before item y.
Its completions are its linear extensions.

Draws are independent. For a bucket order with free items the reversal of every bucket, of the free items and of
their places maps completions to completions, so antithetic pairs exist there; a general partial order has no such map.
"""

from __future__ import annotations

from math import factorial, prod
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rankernel import _loops
from rankernel._utils.arrays import FloatArray
from rankernel.completions.decomposition import Antichain, Parallel, Part, Prime, Series, decompose
from rankernel.completions.down_sets import whole_lattice
from rankernel.completions.keys import FullRanks
from rankernel.completions.part_draws import draw_part
from rankernel.completions.part_marginals import part_marginals
from rankernel.completions.relations import check_relation
from rankernel.encoding import printable
from rankernel.errors import ExactnessError
from rankernel.preferences import Preferences

MAX_EXTENSIONS = 1_000_000


# ---------------------------------------------------------------------- counting and enumerating


def count(before: ArrayLike, limit: int | None = None) -> int:
    """Return the exact number of linear extensions.

    Examples
    --------
    Two chains of two, with the second item of the one above the first of the other ("N"):

    >>> before = np.zeros((4, 4), dtype=bool)
    >>> before[[0, 2, 2], [1, 3, 1]] = True
    >>> count(before)
    5
    """
    return count_part(decompose(check_relation(before)), limit)


def count_part(part: Part, limit: int | None = None) -> int:
    """Return the number of linear extensions of a part."""
    match part:
        case Antichain(items):
            return factorial(len(items))
        case Series(_, parts):
            return prod(count_part(inner, limit) for inner in parts)
        case Parallel(items, parts):
            # Whoever goes where: a multinomial coefficient, times the orders inside the parts.
            shuffles = factorial(len(items)) // prod(factorial(len(inner.items)) for inner in parts)
            return shuffles * prod(count_part(inner, limit) for inner in parts)
        case Prime(_, before):
            return whole_lattice(before, limit).n_paths()


def n_extensions(preferences: Preferences) -> list[int]:
    """Return how many full rankings agree with each user's preferences: see :meth:`Preferences.n_extensions`."""
    numbers = []
    for name, user in zip(preferences.users, preferences, strict=True):
        try:
            numbers.append(count(user.before[0]))
        except ExactnessError as error:
            raise ExactnessError(f"user {printable(name)!r}: {error}") from None
    return numbers


def enumerate_extensions(before: ArrayLike, limit: int = MAX_EXTENSIONS) -> FullRanks:
    """Return all linear extensions as rank vectors, shape (n_extensions, n_items), orders in lexicographic order.

    Examples
    --------
    >>> before = np.zeros((3, 3), dtype=bool)
    >>> before[0, [1, 2]] = True
    >>> enumerate_extensions(before)
    array([[0, 1, 2],
           [0, 2, 1]], dtype=int16)
    """
    relation = check_relation(before)
    n_extensions = count_part(decompose(relation))
    if n_extensions > limit:
        raise ExactnessError(f"there are {n_extensions:,} linear extensions, more than the limit of {limit:,}")
    extensions: FullRanks = _loops.extension_walks.all_extensions(relation, n_extensions)
    return extensions


# ---------------------------------------------------------------------- uniform draws


def draw_extensions(
    before: ArrayLike,
    n_draws: int,
    rng: int | np.random.Generator | None = None,
    method: Literal["auto", "down-sets", "coupling"] = "auto",
) -> FullRanks:
    """Return independent, exactly uniform linear extensions as rank vectors, shape (n_draws, n_items).

    Examples
    --------
    >>> before = np.zeros((3, 3), dtype=bool)
    >>> before[0, 2] = True
    >>> draws = draw_extensions(before, 3000, rng=0)
    >>> bool((draws[:, 0] < draws[:, 2]).all()), round(float((draws[:, 1] == 1).mean()), 1)
    (True, 0.3)
    """
    if method not in ("auto", "down-sets", "coupling"):
        raise ValueError(f"method={method!r} is not known; choose 'auto', 'down-sets' or 'coupling'")
    return draw_part(decompose(check_relation(before)), n_draws, np.random.default_rng(rng), method)


# ---------------------------------------------------------------------- marginal probabilities


def marginals(before: ArrayLike, limit: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Return P(item x at position p) and P(item x before item y) under a uniform linear extension, exactly.

    The Kendall kernel needs nothing but the second, P: it is the mean of ``(2 P - 1)(2 P' - 1)`` over all pairs of
    items. ``limit`` is that of :func:`count`.

    Examples
    --------
    >>> before = np.zeros((3, 3), dtype=bool)
    >>> before[0, 1] = True
    >>> position, pair = marginals(before)
    >>> position[0].round(3), pair.round(3)
    (array([0.667, 0.333, 0.   ]), array([[0.   , 1.   , 0.667],
           [0.   , 0.   , 0.333],
           [0.333, 0.667, 0.   ]]))
    """
    return part_marginals(decompose(check_relation(before)), limit)

"""Linear extensions of partial orders: counting, enumeration, exact uniform sampling and marginal probabilities."""

from __future__ import annotations

from math import comb, factorial, prod
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, FullRanks, Mask
from rankernel._utils.checks import printable
from rankernel.completions.partial_orders import (
    FEW_DOWN_SETS,
    Antichain,
    DownSets,
    Parallel,
    Part,
    Prime,
    Series,
    check_relation,
    decompose,
    places,
    whole_lattice,
)
from rankernel.errors import ExactnessError
from rankernel.preferences import Preferences


def draw_by_coupling_from_the_past(before: Mask, n_draws: int, rng: np.random.Generator) -> FullRanks:
    """Return uniform linear extensions by coupling from the past, about n^3 log n steps for each."""
    n_items = len(before)
    if n_items == 1:
        return np.zeros((n_draws, 1), dtype=np.int16)
    along = np.argsort(before.sum(axis=0), kind="stable")
    seeds = rng.integers(0, 2**64, size=n_draws, dtype=np.uint64)
    ranks = np.empty((n_draws, n_items), dtype=np.int16)
    ranks[:, along] = _loops.extension_walks.coupled_draws(before[np.ix_(along, along)], seeds, n_items**3)
    return ranks


def draw_part(part: Part, n_draws: int, rng: np.random.Generator, method: str) -> FullRanks:
    """Return draws of a part, as ranks among its own items."""
    match part:
        case Antichain(items):
            return random_permutations(n_draws, len(items), rng)
        case Series():
            return draw_series(part, n_draws, rng, method)
        case Parallel():
            return draw_parallel(part, n_draws, rng, method)
        case Prime(_, before):
            return draw_prime(before, n_draws, rng, method)


def draw_prime(before: Mask, n_draws: int, rng: np.random.Generator, method: str) -> FullRanks:
    """Return draws of a part that has to be walked: on its lattice, or by coupling from the past."""
    lattice = None
    if method == "down-sets":
        lattice = whole_lattice(before)
    elif method == "auto":
        lattice = DownSets.of(before, FEW_DOWN_SETS)
    if lattice is None:
        return draw_by_coupling_from_the_past(before, n_draws, rng)
    return lattice.draw(lattice.step_probabilities(), n_draws, rng)


def random_permutations(n_draws: int, n_items: int, rng: np.random.Generator) -> FullRanks:
    """Return uniform permutations, one a row."""
    return rng.permuted(np.tile(np.arange(n_items, dtype=np.int16), (n_draws, 1)), axis=1)


def draw_series(part: Series, n_draws: int, rng: np.random.Generator, method: str) -> FullRanks:
    """Return draws of the parts, one after the other."""
    ranks = np.empty((n_draws, len(part.items)), dtype=np.int16)
    n_before = 0
    for inner in part.parts:
        ranks[:, places(part, inner)] = n_before + draw_part(inner, n_draws, rng, method)
        n_before += len(inner.items)
    return ranks


def draw_parallel(part: Parallel, n_draws: int, rng: np.random.Generator, method: str) -> FullRanks:
    """Return draws of the parts, shuffled: every way to deal the positions to the parts is equally likely."""
    ranks = np.empty((n_draws, len(part.items)), dtype=np.int16)
    dealt = random_permutations(n_draws, len(part.items), rng)
    for inner in part.parts:
        hand, dealt = dealt[:, : len(inner.items)], dealt[:, len(inner.items) :]
        inside = draw_part(inner, n_draws, rng, method)
        ranks[:, places(part, inner)] = np.take_along_axis(np.sort(hand, axis=1), inside.astype(np.intp), axis=1)
    return ranks


def part_marginals(part: Part, limit: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Return the position and pair probabilities of a part, among its own items."""
    size = len(part.items)
    match part:
        case Antichain():
            return np.full((size, size), 1 / size), (1 - np.eye(size)) / 2
        case Prime(_, before):
            lattice = whole_lattice(before, limit)
            position, pair = lattice.marginals(lattice.step_probabilities())
            # What is known is certain, not certain up to rounding.
            pair[before] = 1.0
            return position, pair
        case Series(_, parts) | Parallel(_, parts):
            position, pair = part_marginals(parts[0], limit)
            items = parts[0].items
            join = concatenated if isinstance(part, Series) else shuffled
            for inner in parts[1:]:
                position, pair = join(position, pair, *part_marginals(inner, limit))
                items = np.concatenate([items, inner.items])
            into = np.argsort(items)
            return position[into], pair[np.ix_(into, into)]


def concatenated(
    position: FloatArray, pair: FloatArray, position_2: FloatArray, pair_2: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the marginals of one part followed by another."""
    n, m = len(position), len(position_2)
    return (
        np.block([[position, np.zeros((n, m))], [np.zeros((m, n)), position_2]]),
        np.block([[pair, np.ones((n, m))], [np.zeros((m, n)), pair_2]]),
    )


def shuffled(
    position: FloatArray, pair: FloatArray, position_2: FloatArray, pair_2: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the marginals of two parts shuffled into each other."""
    n, m = len(position), len(position_2)
    between = position @ first_precedes(n, m) @ position_2.T
    return (
        np.concatenate([position @ shuffled_places(n, m), position_2 @ shuffled_places(m, n)]),
        np.block([[pair, between], [1 - between.T, pair_2]]),
    )


def shuffled_places(n: int, m: int) -> FloatArray:
    """Return P(the i-th of n cards is at place p) after shuffling them into m others, shape (n, n + m)."""
    total = comb(n + m, n)
    return np.array(
        [
            [comb(p, i) * comb(n + m - 1 - p, n - 1 - i) / total if i <= p <= i + m else 0.0 for p in range(n + m)]
            for i in range(n)
        ]
    )


def first_precedes(n: int, m: int) -> FloatArray:
    """Return P(the i-th of n cards lies before the j-th of m others) after shuffling, shape (n, m)."""
    total = comb(n + m, n)
    # k of the n cards lie before the j-th other one; the i-th is among them exactly if k > i.
    exactly = np.array(
        [[comb(k + j, j) * comb(n - k + m - 1 - j, m - 1 - j) / total for j in range(m)] for k in range(n + 1)]
    )
    more = np.cumsum(exactly[::-1], axis=0)[::-1]
    return np.asarray(more[1:], dtype=np.float64)


MAX_EXTENSIONS = 1_000_000


# ---------------------------------------------------------------------- counting and enumerating


def count_extensions(before: ArrayLike, limit: int | None = None) -> int:
    """Return the exact number of linear extensions.

    Examples
    --------
    Two chains of two, with the second item of the one above the first of the other ("N"):

    >>> before = np.zeros((4, 4), dtype=bool)
    >>> before[[0, 2, 2], [1, 3, 1]] = True
    >>> count_extensions(before)
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
            numbers.append(count_extensions(user.before[0]))
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
    *,
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


def extension_marginals(before: ArrayLike, limit: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Return P(item x at position p) and P(item x before item y) under a uniform linear extension, exactly.

    The Kendall kernel needs nothing but the second, P: it is the mean of ``(2 P - 1)(2 P' - 1)`` over all pairs of
    items. ``limit`` is that of :func:`count`.

    Examples
    --------
    >>> before = np.zeros((3, 3), dtype=bool)
    >>> before[0, 1] = True
    >>> position, pair = extension_marginals(before)
    >>> position[0].round(3), pair.round(3)
    (array([0.667, 0.333, 0.   ]), array([[0.   , 1.   , 0.667],
           [0.   , 0.   , 0.333],
           [0.333, 0.667, 0.   ]]))
    """
    return part_marginals(decompose(check_relation(before)), limit)

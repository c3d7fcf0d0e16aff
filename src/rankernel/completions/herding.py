"""Kernel herding: completions chosen, not drawn, so that their mean embedding is near that of all completions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations_with_replacement, islice
from math import comb
from typing import Any, Protocol

import numpy as np

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, FullRanks, Indices, Mask, RankArray
from rankernel._utils.checks import check_integer, check_list
from rankernel._utils.memory import check_bytes
from rankernel._utils.rng import Seed, as_seed, row_streams
from rankernel.completions.enumerate import enumerate_completions, n_completions
from rankernel.completions.linear_extensions import count_extensions, draw_extensions, enumerate_extensions
from rankernel.data import Data, as_data
from rankernel.errors import ExactnessError, RankingError
from rankernel.kernels import as_kernel
from rankernel.preferences import Preferences
from rankernel.rankings import Rankings, as_rankings

FEW = 5040
POOL = 1000
CHUNK = 512
MAX_SEARCH = 5_000_000
AT_ONCE = 20_000  # choices that are compared at once
# Scores this close, relative to the largest, are equal but for rounding.
TIED = 1e-12


class FullKernel(Protocol):
    """Anything with a matrix of kernel values between full rankings, given as rank vectors."""

    def matrix(self, X: Any, Y: Any) -> Any:
        """Return the kernel of each row of X with each row of Y."""


def herd(ranking: Any, kernel: FullKernel, n_draws: int, *, candidates: Any = None, rng: Seed = 0) -> Rankings:
    r"""Return completions of one ranking chosen one by one by kernel herding.

    Step T takes the completion that minimises :math:`\| \mu - \frac1T \sum_{t \le T} \phi(\sigma_t) \|`, where
    :math:`\mu` is the mean embedding of the candidates; among equally good ones the seed decides. For a kernel
    :math:`e^{-\nu d}` and a ranking without free items, the second completion is the one farthest from the first.

    Parameters
    ----------
    ranking : Rankings or Preferences of length 1, or one row of ranks
        The ranking.
    kernel : kernel on full rankings
        Anything with ``.matrix(X, Y)`` on arrays of rank vectors.
    n_draws : int
        How many completions to choose; one may be chosen several times.
    candidates : int or full rankings, optional
        What to choose from: full rankings, or the size of a pool drawn uniformly. Left out, it is all completions up
        to 5040, and a pool of 1000 where there are more.
    rng : int, Generator or None
        Decides ties and draws the pool.

    Examples
    --------
    >>> import numpy as np
    >>> class Mallows:
    ...     def matrix(self, X, Y):
    ...         a, b = np.triu_indices(X.shape[1], 1)
    ...         return np.exp(-0.1 * ((X[:, a] < X[:, b])[:, None] != (Y[:, a] < Y[:, b])[None]).sum(axis=2))
    >>> chosen = herd([0, 1, 1, 1], Mallows(), n_draws=2)
    >>> chosen.ranks.sum(axis=0)
    array([0, 4, 4, 4])
    """
    one = single(ranking)
    kernel = full_kernel(kernel)
    check_integer("n_draws", n_draws)
    number = as_seed(rng)
    if isinstance(one, Preferences):
        pool = extensions_to_choose_from(one, candidates, number)
    else:
        pool = candidate_rows(one.ranks[0], candidates, number)
    return Rankings(chosen_rows(pool, kernel, n_draws, number), one.items)


def herd_rows(ranks: RankArray, kernel: FullKernel, n_draws: int) -> RankArray:
    """Do the work of :func:`herd` on one row of ranks."""
    check_integer("n_draws", n_draws)
    return chosen_rows(candidate_rows(ranks, None, 0), kernel, n_draws, 0)


def chosen_rows(pool: RankArray, kernel: FullKernel, n_draws: int, number: int) -> RankArray:
    """Return full rankings chosen one by one out of a pool."""
    # In a random order, taking the first of equally good candidates takes any of them.
    pool = pool[np.random.default_rng(number).permutation(len(pool))]
    mean, diagonal = mean_and_diagonal(kernel, pool)
    total = np.zeros(len(pool))
    check_bytes(4 * n_draws * pool.shape[1], f"n_draws={n_draws:,} rankings of {pool.shape[1]} items", "take fewer")
    chosen = np.empty((n_draws, pool.shape[1]), dtype=np.int32)
    for step in range(n_draws):
        best = first_smallest(diagonal + 2 * total - 2 * (step + 1) * mean)
        chosen[step] = pool[best]
        total += np.asarray(kernel.matrix(pool, pool[best : best + 1]))[:, 0]
    return chosen


def joint_herd(ranking: Any, kernel: FullKernel, n_draws: int) -> Rankings:
    r"""Return the completions that minimise :math:`\| \mu - \frac1M \sum_{t \le M} \phi(\sigma_t) \|` all at once.

    The search goes through all choices of M completions, which must be few. Choosing one by one, as :func:`herd`
    does, agrees for M = 2 and kernels :math:`e^{-\nu d}`, but in general not beyond.

    Examples
    --------
    Of three items, three rankings spread best if each pair of them differs by two swaps:

    >>> import numpy as np
    >>> class Mallows:
    ...     def matrix(self, X, Y):
    ...         s, t = (np.sign(Z[:, [0, 0, 1]] - Z[:, [1, 2, 2]]) for Z in (X, Y))
    ...         return np.exp(-0.5 * (3 - s @ t.T) / 2)
    >>> joint_herd([0, 0, 0], Mallows(), 3).ranks
    array([[0, 1, 2],
           [2, 0, 1],
           [1, 2, 0]], dtype=int32)
    """
    check_integer("n_draws", n_draws)
    one, kernel = single(ranking), full_kernel(kernel)
    number = count_extensions(one.before[0]) if isinstance(one, Preferences) else n_completions(one.ranks[0])
    n_choices = comb(number + n_draws - 1, n_draws)
    if n_choices > MAX_SEARCH:
        raise ExactnessError(
            f"there are {n_choices:,} choices of {n_draws} among {number:,} completions, and at most "
            f"{MAX_SEARCH:,} are tried; use herd, which chooses one by one"
        )
    needed = 8 * min(n_choices, AT_ONCE) * n_draws**2
    check_bytes(needed, f"n_draws={n_draws:,} together", "use herd, which chooses one by one")
    if isinstance(one, Preferences):
        full = enumerate_extensions(one.before[0]).astype(np.int32)
    else:
        full = enumerate_completions(one.ranks[0]).astype(np.int32)
    gram = np.asarray(kernel.matrix(full, full), dtype=np.float64)
    mean = gram.mean(axis=1)
    best_score, best = np.inf, np.zeros(n_draws, dtype=np.intp)
    tolerance = TIED * np.abs(gram).max()
    for choices in choices_in_chunks(len(full), n_draws):
        scores = gram[choices[:, :, None], choices[:, None, :]].mean(axis=(1, 2)) - 2 * mean[choices].mean(axis=1)
        place = first_smallest(scores)
        if scores[place] < best_score - tolerance:
            best_score, best = float(scores[place]), choices[place]
    return Rankings(full[best], one.items)


def choices_in_chunks(n_completions: int, n_draws: int) -> Iterator[Indices]:
    """Yield all multisets of completions, many at a time."""
    choices = combinations_with_replacement(range(n_completions), n_draws)
    while chunk := list(islice(choices, AT_ONCE)):
        yield np.array(chunk, dtype=np.intp)


def single(ranking: Any) -> Data:
    """Return one ranking as rankings of length 1, or the preferences of one user."""
    given = ranking
    if not isinstance(ranking, Data):
        rows = check_list("ranking", ranking, "one ranking, the rank of each item")
        given = rows if rows and isinstance(rows[0], Iterable) else [rows]
    one = as_data(given, name="ranking")
    if len(one) != 1:
        raise RankingError(f"ranking: herding is for one ranking at a time; got {len(one)}")
    return one


def full_kernel(kernel: Any) -> FullKernel:
    """Return a kernel: by its name, or anything that has a matrix."""
    has_matrix = callable(getattr(kernel, "matrix", None)) and not isinstance(kernel, type)
    found: FullKernel = kernel if has_matrix else as_kernel(kernel)
    return found


def extensions_to_choose_from(one: Preferences, candidates: Any, seed: int) -> RankArray:
    """Return full rankings that agree with the preferences of one user: those given, all of them, or a pool."""
    before = one.before[0]
    if candidates is None and 0 < count_up_to(before) <= FEW:
        return enumerate_extensions(before).astype(np.int32)
    if candidates is None or isinstance(candidates, int | np.integer):
        size = POOL if candidates is None else check_integer("candidates", candidates)
        return draw_extensions(before, size, rng=seed).astype(np.int32)
    given = as_rankings(candidates, "candidates")
    places = given.ranks
    agrees = given.is_full() and given.n_items == one.n_items and len(given) > 0
    if not agrees or (before & (places[:, :, None] > places[:, None, :])).any():
        raise RankingError("candidates are full rankings of the same items that agree with the preferences")
    return places


def count_up_to(before: Mask) -> int:
    """Return how many linear extensions there are, 0 where they are too many to be counted."""
    try:
        return count_extensions(before)
    except ExactnessError:
        return 0


def candidate_rows(ranks: RankArray, candidates: Any, seed: int) -> RankArray:
    """Return the completions to choose from: those given, all of them, or a pool."""
    if candidates is None and n_completions(ranks) <= FEW:
        return enumerate_completions(ranks).astype(np.int32)
    if candidates is None or isinstance(candidates, int | np.integer):
        size = POOL if candidates is None else check_integer("candidates", candidates)
        return uniform_pool(ranks, size, seed).astype(np.int32)
    given = as_rankings(candidates, "candidates")
    agrees = given.is_full() and given.n_items == len(ranks) and len(given) > 0
    if not agrees or not all_complete(given.ranks, ranks):
        raise RankingError("candidates are completions of the ranking: full rankings of its items that agree with it")
    return given.ranks


def all_complete(full: RankArray, ranks: RankArray) -> bool:
    """Say whether all full rankings agree with a partial one."""
    listed = np.flatnonzero(ranks >= 0)
    order = np.lexsort((ranks[listed],))
    buckets = ranks[listed][order]
    places = full[:, listed][:, order]
    latest = np.maximum.accumulate(places, axis=1)
    # Where a bucket begins, its items must stand behind everything before.
    starts = np.flatnonzero(np.diff(buckets))
    earliest = np.minimum.accumulate(places[:, ::-1], axis=1)[:, ::-1]
    return bool((latest[:, starts] < earliest[:, starts + 1]).all())


def uniform_pool(ranks: RankArray, size: int, seed: int) -> FullRanks:
    """Return uniform completions in antithetic pairs, so that the far side of each candidate is a candidate."""
    row = np.ascontiguousarray(ranks[None, :], dtype=np.int32)
    streams = row_streams(row, seed, "herding")
    pool: FullRanks = _loops.key_draws.draw(row, size, streams, _loops.key_draws.ANTITHETIC, 2)[0]
    return pool


def mean_and_diagonal(kernel: FullKernel, pool: RankArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean kernel of each candidate with all of them, and its kernel with itself."""
    mean, diagonal = np.empty(len(pool)), np.empty(len(pool))
    for start in range(0, len(pool), CHUNK):
        part = slice(start, start + CHUNK)
        values = np.asarray(kernel.matrix(pool[part], pool))
        mean[part] = values.mean(axis=1)
        diagonal[part] = np.diagonal(values, offset=start)
    return mean, diagonal


def first_smallest(scores: FloatArray) -> int:
    """Return where the first of the smallest scores is, rounding apart."""
    return int(np.argmax(scores <= scores.min() + TIED * max(1.0, float(np.abs(scores).max()))))

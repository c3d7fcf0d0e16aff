"""Kernel herding: completions chosen so that their mean embedding approximates that of all completions."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np

from rankernel._utils import FloatArray, Mask, RankArray
from rankernel._utils.checks import Seed, as_seed, check_integer, check_list
from rankernel._utils.resources import check_bytes, slices
from rankernel.completions.draws import Antithetic, FullKernel, row_streams
from rankernel.completions.linear_extensions import count_extensions, draw_extensions, enumerate_extensions
from rankernel.data import Data, as_data
from rankernel.errors import ExactnessError, RankingError
from rankernel.kernels.base import as_kernel
from rankernel.preferences import Preferences, covering
from rankernel.rankings import Rankings, as_rankings, relations_of_ranks

MAX_ENUMERATED = 5040  # candidates without `candidates=`: all completions up to this number,
POOL_SIZE = 1000  # otherwise this many draws
CHUNK_CANDIDATES = 512
ROUNDING = 1e-12  # relative to the largest score: smaller differences are ties


def herd(ranking: Any, kernel: FullKernel, n_draws: int, *, candidates: Any = None, rng: Seed = 0) -> Rankings:
    r"""Choose completions of one ranking one by one by kernel herding.

    Step T takes the completion that minimises :math:`\| \mu - \frac1T \sum_{t \le T} \phi(\sigma_t) \|`, where
    :math:`\mu` is the mean embedding of the candidates. For a kernel :math:`e^{-\nu d}` and a ranking without free
    items, the second completion is the one farthest from the first.

    Parameters
    ----------
    ranking : Rankings or Preferences of length 1, or one row of ranks
        The ranking.
    kernel : kernel on full rankings
        A kernel or its name, or any object with ``matrix(X, Y)`` on arrays of positions.
    n_draws : int
        Number of completions to choose; a completion may be chosen several times.
    candidates : int or full rankings, optional
        Full rankings to choose from, or the size of a pool drawn uniformly. By default all completions if there are at
        most 5040, otherwise a pool of 1000.
    rng : int, Generator or None
        Breaks ties and draws the pool; the default 0 gives the same result in every call.

    Returns
    -------
    Rankings
        The chosen full rankings.

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
    one, kernel = as_one_row(ranking), as_full_kernel(kernel)
    check_integer("n_draws", n_draws)
    seed = as_seed(rng)
    return Rankings(choose(candidate_pool(one, candidates, seed), kernel, n_draws, seed), one.items)


def herd_ranks(ranks: RankArray, kernel: FullKernel, n_draws: int) -> RankArray:
    """Return the herded completions of one row of ranks, as positions of the items."""
    check_integer("n_draws", n_draws)
    return choose(candidate_pool(Rankings(ranks[None]), None, 0), kernel, n_draws, 0)


def choose(pool: RankArray, kernel: FullKernel, n_draws: int, seed: int) -> RankArray:
    """Return full rankings chosen one by one out of a pool."""
    # The pool is permuted, so that taking the first of several equally good candidates is a random choice.
    pool = pool[np.random.default_rng(seed).permutation(len(pool))]
    mean, diagonal, total = np.empty(len(pool)), np.empty(len(pool)), np.zeros(len(pool))
    for rows in slices(len(pool), CHUNK_CANDIDATES):
        values = np.asarray(kernel.matrix(pool[rows], pool))
        mean[rows], diagonal[rows] = values.mean(axis=1), np.diagonal(values, offset=rows.start)
    check_bytes(4 * n_draws * pool.shape[1], f"n_draws={n_draws:,} rankings of {pool.shape[1]} items", "take fewer")
    chosen = np.empty((n_draws, pool.shape[1]), dtype=np.int32)
    for step in range(n_draws):
        best = first_minimum(diagonal + 2 * total - 2 * (step + 1) * mean)
        chosen[step] = pool[best]
        total += np.asarray(kernel.matrix(pool, pool[best : best + 1]))[:, 0]
    return chosen


def as_one_row(ranking: Any) -> Data:
    """Return one ranking, or the preferences of one user, as data of length 1."""
    rows = ranking
    if not isinstance(ranking, Data):
        rows = check_list("ranking", ranking, "one ranking, the rank of each item")
        rows = rows if rows and isinstance(rows[0], Iterable) else [rows]
    one = as_data(rows, name="ranking")
    if len(one) != 1:
        raise RankingError(f"ranking has {len(one)} rows; herding takes one ranking at a time")
    return one


def as_full_kernel(kernel: Any) -> FullKernel:
    """Return a kernel given by its name, or any object with a method ``matrix``."""
    has_matrix = callable(getattr(kernel, "matrix", None)) and not isinstance(kernel, type)
    return kernel if has_matrix else as_kernel(kernel)


def candidate_pool(one: Data, candidates: Any, seed: int) -> RankArray:
    """Return the full rankings to choose from: those given, all completions, or a random pool."""
    before = relation_of(one)
    if candidates is None:
        with suppress(ExactnessError):
            if count_extensions(before) <= MAX_ENUMERATED:
                return enumerate_extensions(before).astype(np.int32)
        candidates = POOL_SIZE
    if isinstance(candidates, int | np.integer):
        size = check_integer("candidates", candidates)
        if isinstance(one, Preferences):
            return draw_extensions(before, size, rng=seed).astype(np.int32)
        # Antithetic pairs contain the completion farthest from each candidate.
        return Antithetic().draw(one.ranks, size, row_streams(one.ranks, seed, "herding"))[0].astype(np.int32)
    given = as_rankings(candidates, "candidates")
    x, y = np.nonzero(covering(before))
    full = given.is_full() and given.n_items == one.n_items and len(given) > 0
    if not full or not (given.ranks[:, x] < given.ranks[:, y]).all():
        raise RankingError("candidates must be full rankings of the same items that are completions of the ranking")
    return given.ranks


def relation_of(one: Data) -> Mask:
    """Return which item is before which; the completions are the linear extensions of this relation."""
    return one.before[0] if isinstance(one, Preferences) else relations_of_ranks(one.ranks)[0]


def first_minimum(scores: FloatArray) -> int:
    """Return the index of the first smallest score, up to rounding."""
    return int(np.argmax(scores <= scores.min() + ROUNDING * max(1.0, float(np.abs(scores).max()))))

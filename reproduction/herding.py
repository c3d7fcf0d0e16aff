"""The jointly optimal choice of completions, with which the paper compares greedy herding."""

from __future__ import annotations

from itertools import combinations_with_replacement, islice
from math import comb
from typing import Any

import numpy as np

from rankernel._utils.checks import check_integer
from rankernel._utils.resources import check_bytes
from rankernel.completions.draws import FullKernel
from rankernel.completions.herding import ROUNDING, as_full_kernel, as_one_row, first_minimum, relation_of
from rankernel.completions.linear_extensions import count_extensions, enumerate_extensions
from rankernel.errors import ExactnessError
from rankernel.rankings import Rankings

MAX_CHOICES = 5_000_000
CHUNK_CHOICES = 20_000


def joint_herd(ranking: Any, kernel: FullKernel, n_draws: int) -> Rankings:
    r"""Choose the M completions that jointly minimise :math:`\| \mu - \frac1M \sum_{t \le M} \phi(\sigma_t) \|`.

    All multisets of M completions are compared, which must be few. The greedy choice of :func:`herd` agrees for M = 2
    and kernels :math:`e^{-\nu d}`, but in general not for larger M.

    Examples
    --------
    For three items, the best three rankings are pairwise two swaps apart:

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
    one, kernel = as_one_row(ranking), as_full_kernel(kernel)
    before = relation_of(one)
    number = count_extensions(before)
    n_choices = comb(number + n_draws - 1, n_draws)
    if n_choices > MAX_CHOICES:
        raise ExactnessError(
            f"there are {n_choices:,} choices of n_draws={n_draws} among {number:,} completions, more than "
            f"{MAX_CHOICES:,}; use herd, which chooses one by one"
        )
    n_bytes = 8 * min(n_choices, CHUNK_CHOICES) * n_draws**2
    check_bytes(n_bytes, f"n_draws={n_draws:,} together", "use herd, which chooses one by one")
    full = enumerate_extensions(before).astype(np.int32)
    gram = np.asarray(kernel.matrix(full, full), dtype=np.float64)
    mean = gram.mean(axis=1)
    best_score, best = np.inf, np.zeros(n_draws, dtype=np.intp)
    tolerance = ROUNDING * np.abs(gram).max()
    every = combinations_with_replacement(range(len(full)), n_draws)
    while chunk := list(islice(every, CHUNK_CHOICES)):
        choices = np.array(chunk, dtype=np.intp)
        scores = gram[choices[:, :, None], choices[:, None, :]].mean(axis=(1, 2)) - 2 * mean[choices].mean(axis=1)
        index = first_minimum(scores)
        if scores[index] < best_score - tolerance:
            best_score, best = float(scores[index]), choices[index]
    return Rankings(full[best], one.items)

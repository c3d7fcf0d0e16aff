"""The four ways to a Gram matrix that the paper's tables compare."""

from __future__ import annotations

import warnings
from typing import Any

from rankernel._utils.arrays import FloatArray
from rankernel.errors import IndefiniteKernelWarning
from rankernel.gram.methods import MonteCarlo
from rankernel.kernels.base import Kernel
from rankernel.rankings import Rankings

FULL, IID, ANTITHETIC, EXACT = "full", "Monte Carlo", "antithetic", "exact"
ROWS = (FULL, IID, ANTITHETIC, EXACT)
DRAWN = (IID, ANTITHETIC)


def method_of(row: str, n_draws: int, seed: int, distinct_rows: bool = False) -> Any:
    """Return the method behind a row of a table; the estimators are those of the paper."""
    if row not in DRAWN:
        return "exact"
    coupling = "iid" if row == IID else "antithetic"
    return MonteCarlo(n_draws, coupling, control_variates=0, rng=seed, distinct_rows=distinct_rows)


def gram_by(row: str, kernel: Kernel, full: Rankings, k: int, n_draws: int, seed: int) -> FloatArray:
    """Return the Gram matrix of full rankings, or of their top-k lists by one of the other methods.

    Every person has draws of their own, also where lists are equal, as in the paper. The exponential Cayley kernel is
    indefinite at the width of the median heuristic; the text of the results says so, once.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IndefiniteKernelWarning)
        if row == FULL:
            return kernel.gram(full)
        return kernel.gram(full.top(k), method=method_of(row, n_draws, seed, distinct_rows=True))

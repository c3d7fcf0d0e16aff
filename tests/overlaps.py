"""Helpers for tests of exact formulas: overlaps of two rankings, and values of formulas in one format."""

import numpy as np
import strategies
from hypothesis import strategies as st

from rankernel.gram.exact.formulas import Overlap


def overlap_of(left, right):
    """Return the overlap of two rankings, given as sequences of ranks."""
    return Overlap.of(np.array(left, dtype=np.int32), np.array(right, dtype=np.int32))


def top(order, k):
    """Return the top-k list of a full ranking."""
    return np.minimum(order, k).astype(np.int32)


def log_mean(formula, overlap, nu):
    """Return the logarithm of the mean of exp(-nu d), and its derivative in nu."""
    offset, value, derivative = formula.log_mean(overlap, nu)
    return value - nu * offset, derivative - offset


def full_pmf(formula, overlap, n_distances):
    """Return the probability of each distance 0, 1, ..., n_distances - 1."""
    offset, pmf = formula.pmf(overlap)
    out = np.zeros(max(n_distances, offset + len(pmf)))
    out[offset : offset + len(pmf)] = pmf
    assert not out[n_distances:].any()
    return out[:n_distances]


@st.composite
def one_tie(draw, n):
    """Draw a ranking of single items and one tie, anywhere."""
    full = draw(strategies.permutations(n))
    start = draw(st.integers(0, n - 1))
    stop = draw(st.integers(start, n - 1))
    return tuple(r if r < start else start if r <= stop else r - (stop - start) for r in full)

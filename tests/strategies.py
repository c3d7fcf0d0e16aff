"""hypothesis strategies: rankings of all kinds as rank tuples, and partial orders as pairs of items."""

import itertools

import numpy as np
from hypothesis import strategies as st


def permutations(n):
    return st.permutations(range(n)).map(tuple)


@st.composite
def bucket_orders(draw, n):
    """A ranking without free items: ties anywhere."""
    raw = draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n))
    levels = sorted(set(raw))
    return tuple(levels.index(r) for r in raw)


@st.composite
def top_k(draw, n):
    """A list of k distinct items and one last bucket with the others."""
    full = draw(permutations(n))
    k = draw(st.integers(0, n))
    return tuple(min(r, k) for r in full)


@st.composite
def incomplete(draw, n, ties=True):
    """A bucket order (or a chain) of some items; the others are free."""
    listed = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    inside = draw(bucket_orders(n) if ties else permutations(n))
    levels = sorted({r for r, shown in zip(inside, listed, strict=True) if shown})
    return tuple(levels.index(r) if shown else -1 for r, shown in zip(inside, listed, strict=True))


def any_ranking(n):
    return st.one_of(permutations(n), top_k(n), bucket_orders(n), incomplete(n), incomplete(n, ties=False))


def sized(make, low=1, high=6, length=1):
    """Lists of ``length`` rankings over the same n items, n from low to high."""
    return st.integers(low, high).flatmap(lambda n: st.lists(make(n), min_size=length, max_size=length))


# ---------------------------------------------------------------------- partial orders


@st.composite
def posets(draw, low=1, high=6):
    """The number of items, and pairs (x, y) with x before y."""
    n = draw(st.integers(low, high))
    names = draw(st.permutations(range(n)))
    pairs = [(names[a], names[b]) for a, b in itertools.combinations(range(n), 2)]
    return n, [pair for pair in pairs if draw(st.integers(0, 2)) == 0]


def closed_relation(n, pairs):
    """The transitive closure of pairs as a boolean matrix."""
    before = np.zeros((n, n), dtype=bool)
    for x, y in pairs:
        before[x, y] = True
    for middle in range(n):
        before |= np.outer(before[:, middle], before[middle])
    return before


def linear_extensions(n, pairs):
    """All linear extensions as rank tuples."""
    return [full for full in itertools.permutations(range(n)) if all(full[a] < full[b] for a, b in pairs)]

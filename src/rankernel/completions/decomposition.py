"""Two reductions of a partial order that cost nothing, and leave only what is really hard.

Parts that stand wholly one after the other are concatenated (*series*), parts that do not see each other are shuffled
(*parallel*: items of which nothing is known are the simplest case). Bucket orders with free items come apart entirely.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankernel._utils.arrays import Indices, Mask


@dataclass(frozen=True, eq=False)
class Antichain:
    """Items of which nothing is known."""

    items: Indices


@dataclass(frozen=True, eq=False)
class Prime:
    """Items whose partial order comes apart neither in series nor in parallel."""

    items: Indices
    before: Mask


@dataclass(frozen=True, eq=False)
class Series:
    """Parts of which each stands wholly before the next."""

    items: Indices
    parts: tuple[Part, ...]


@dataclass(frozen=True, eq=False)
class Parallel:
    """Parts without any relation between them."""

    items: Indices
    parts: tuple[Part, ...]


Part = Antichain | Prime | Series | Parallel


def connected(graph: Mask) -> list[Indices]:
    """Return the connected components of a symmetric relation, each as sorted indices."""
    left = np.ones(len(graph), dtype=bool)
    components = []
    while left.any():
        member = np.zeros(len(graph), dtype=bool)
        front = np.zeros(len(graph), dtype=bool)
        front[np.argmax(left)] = True
        while front.any():
            member |= front
            front = graph[front].any(axis=0) & ~member
        left &= ~member
        components.append(np.flatnonzero(member))
    return components


def in_series(before: Mask) -> list[Indices]:
    """Return the finest split into parts that stand one after the other, first part first."""
    components = connected(~(before | before.T))
    return sorted(components, key=lambda items: int(before[:, items[0]].sum()))


def decompose(before: Mask, items: Indices | None = None) -> Part:
    """Return a partial order as nested series and parallel parts."""
    items = np.arange(len(before)) if items is None else items
    if not before.any():
        return Antichain(items)

    def parts(groups: list[Indices]) -> tuple[Part, ...]:
        return tuple(decompose(before[np.ix_(group, group)], items[group]) for group in groups)

    groups = connected(before | before.T)
    if len(groups) > 1:
        alone = [group for group in groups if len(group) == 1]
        others = [group for group in groups if len(group) > 1]
        return Parallel(items, parts(others + ([np.concatenate(alone)] if alone else [])))
    groups = in_series(before)
    return Series(items, parts(groups)) if len(groups) > 1 else Prime(items, before)


def places(whole: Part, inner: Part) -> Indices:
    """Return where the items of an inner part are among those of the whole; both are sorted."""
    return np.searchsorted(whole.items, inner.items)

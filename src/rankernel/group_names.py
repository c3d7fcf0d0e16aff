"""The names of groups in the order in which people expect them: ward 2 before ward 10."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import IntArray


def numbered_groups(labels: NDArray[Any]) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of the groups, and for each label the number of its group: numbers by size, texts naturally.

    Examples
    --------
    >>> names, numbers = numbered_groups(np.array(["ward 10", "ward 2", "ward 10"]))
    >>> names, numbers.tolist()
    (('ward 2', 'ward 10'), [1, 0, 1])
    """
    labels = labels.astype(str) if labels.dtype == object else labels
    names, numbers = np.unique(labels, return_inverse=True)
    order = np.arange(len(names))
    if labels.dtype.kind in "US":
        order = np.array(sorted(order, key=lambda place: natural_key(str(names[place]))), dtype=np.intp)
    return tuple(map(str, names[order].tolist())), np.asarray(np.argsort(order)[numbers.ravel()], dtype=np.int64)


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Return what sorts names as people do.

    Examples
    --------
    >>> sorted(["ward 10", "ward 2", "Ward 1"], key=natural_key)
    ['Ward 1', 'ward 2', 'ward 10']
    """
    parts = re.split(r"([0-9]+)", name.casefold())
    return [(0, int(part), "") if place % 2 else (1, 0, part) for place, part in enumerate(parts)]

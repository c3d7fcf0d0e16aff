"""What a Gram matrix is computed from, as text that is the same for the same matrix and in every process."""

from __future__ import annotations

import dataclasses
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel.distances import Distance
from rankernel.gram.plan import Plan
from rankernel.gram.poset_rows import PartialOrders


def exact_text(value: Any) -> str:
    """Return a kernel, a method or anything they hold, to the last digit; functions by their names.

    Examples
    --------
    >>> from rankernel import Kendall
    >>> str(0.1 * Kendall()), exact_text((0.1 + 2**-50) * Kendall())
    ('0.1 * Kendall()', 'Scaled(scale=0.1000000000000009, kernel=Kendall())')
    """
    if isinstance(value, Distance):
        return value.name
    if dataclasses.is_dataclass(value):
        fields = [field.name for field in dataclasses.fields(value)]
        return f"{type(value).__name__}({', '.join(f'{name}={exact_text(getattr(value, name))}' for name in fields)})"
    if isinstance(value, np.ndarray):
        return f"array({value.dtype}, {value.tolist()})"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(exact_text, value))})"
    if isinstance(value, np.generic):
        return repr(value.item())
    return f"{value.__module__}.{value.__qualname__}" if callable(value) else repr(value)


def data_digest(plan: Plan) -> str:
    """Return a digest of the rows and columns of a Gram matrix: names of items and counts do not matter to it."""
    digest = sha256()
    sides = [plan.X] if plan.symmetric else [plan.X, plan.Y]
    arrays: list[NDArray[Any]] = [side.ranks for side in sides]
    arrays += [side.packed for side in sides if isinstance(side, PartialOrders)]
    arrays += [place for place in (plan.rows, plan.columns) if place is not None]
    for array in arrays:
        digest.update(f"{array.dtype.kind} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()

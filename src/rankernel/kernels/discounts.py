"""How much each place counts: by a rule for any number of places, or number by number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

import numpy as np

from rankernel._utils.arrays import FloatArray
from rankernel._utils.checks import check_numbers

Discount = Literal["hyperbolic", "logarithmic"]
Weights = tuple[float, ...] | Discount


def check_discount(name: str, given: Iterable[float] | Discount) -> Weights:
    """Return the weights of places as a rule or as numbers, refusing anything else.

    Examples
    --------
    >>> check_discount("discount", "steep")
    Traceback (most recent call last):
    ValueError: discount='steep' is not known; give one number a place, 'hyperbolic' or 'logarithmic'
    """
    if isinstance(given, str) and given in get_args(Discount):
        return given
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(f"{name}={given!r} is not known; give one number a place, 'hyperbolic' or 'logarithmic'")
    return tuple(check_numbers(name, given, (None,)).tolist())


def place_discounts(name: str, weights: Weights, n_items: int) -> FloatArray:
    """Return how much each of n places counts, the first place first."""
    places = np.arange(n_items)
    if weights == "hyperbolic":
        return 1 / (places + 1)
    if weights == "logarithmic":
        return np.asarray(1 / np.log2(places + 2))
    if len(weights) != n_items:
        raise ValueError(f"{name} has {len(weights)} numbers for {n_items} places; give one a place")
    return np.array(weights, dtype=np.float64)

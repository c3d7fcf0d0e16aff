"""Kernels by name: ``kernel="mallows"`` is a Mallows kernel whose width comes from the data."""

from __future__ import annotations

from typing import Any

from rankernel._utils.checks import short_repr
from rankernel.kernels.base import Kernel
from rankernel.kernels.diffusion import Diffusion
from rankernel.kernels.exponential import Mallows
from rankernel.kernels.kendall import Kendall, Polynomial
from rankernel.kernels.linear import Hamming, Spearman
from rankernel.kernels.positional import DCG, AverageOverlap, RankBiasedOverlap

#: What people call a kernel beside its own name.
SHORT_NAMES: dict[str, type[Kernel]] = {"rbo": RankBiasedOverlap}

WITH_DEFAULTS: tuple[type[Kernel], ...] = (
    Mallows,
    Kendall,
    Hamming,
    Spearman,
    Polynomial,
    Diffusion,
    RankBiasedOverlap,
    AverageOverlap,
    DCG,
)
NAMED: dict[str, Kernel] = {kind.__name__.lower(): kind() for kind in WITH_DEFAULTS}
NAMED |= {name: kind() for name, kind in SHORT_NAMES.items()}


def as_kernel(kernel: Any, name: str = "kernel") -> Kernel:
    """Return a kernel as it is, or the one that has a name, with its defaults.

    Examples
    --------
    >>> as_kernel("mallows")
    Mallows(nu='median')
    >>> as_kernel("rbo")
    RankBiasedOverlap(p=0.9)
    >>> as_kernel("malows")
    Traceback (most recent call last):
    ValueError: kernel='malows' is not known; there are mallows, kendall, hamming, spearman, polynomial, diffusion, \
rankbiasedoverlap, averageoverlap, dcg, rbo
    """
    if isinstance(kernel, Kernel):
        return kernel
    if not isinstance(kernel, str):
        raise TypeError(
            f"{name}={short_repr(kernel)} is no kernel; give one such as Mallows(0.1), or its name: 'mallows'"
        )
    if kernel not in NAMED:
        raise ValueError(f"{name}={short_repr(kernel)} is not known; there are {', '.join(NAMED)}")
    return NAMED[kernel]

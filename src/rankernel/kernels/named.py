"""Kernels by name: ``kernel="mallows"`` is a Mallows kernel whose width comes from the data."""

from __future__ import annotations

from typing import Any

from rankernel.checks import shown
from rankernel.kernels.base import Kernel
from rankernel.kernels.diffusion import Diffusion
from rankernel.kernels.exponential import Mallows
from rankernel.kernels.kendall import Kendall, Polynomial
from rankernel.kernels.linear import Hamming, Spearman

NAMED: dict[str, Kernel] = {
    type(kernel).__name__.lower(): kernel
    for kernel in (Mallows(), Kendall(), Hamming(), Spearman(), Polynomial(), Diffusion())
}


def as_kernel(kernel: Any, name: str = "kernel") -> Kernel:
    """Return a kernel as it is, or the one that has a name, with its defaults.

    Examples
    --------
    >>> as_kernel("mallows")
    Mallows(nu='median')
    >>> as_kernel("malows")
    Traceback (most recent call last):
    ValueError: kernel='malows' is not known; there are mallows, kendall, hamming, spearman, polynomial, diffusion
    """
    if isinstance(kernel, Kernel):
        return kernel
    if not isinstance(kernel, str):
        raise TypeError(f"{name}={shown(kernel)} is no kernel; give one such as Mallows(0.1), or its name: 'mallows'")
    if kernel not in NAMED:
        raise ValueError(f"{name}={shown(kernel)} is not known; there are {', '.join(NAMED)}")
    return NAMED[kernel]

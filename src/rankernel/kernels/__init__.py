"""Kernels on full rankings, and the operators that build new ones from them.

``__all__`` is the list of kernels that the public interface and the command line use.
"""

from typing import Any

from rankernel._utils.checks import short_repr
from rankernel.kernels.base import Facts as Facts
from rankernel.kernels.base import Kernel
from rankernel.kernels.diffusion import Diffusion
from rankernel.kernels.exponential import Exponential, Mallows
from rankernel.kernels.kendall import Kendall, Polynomial, WeightedKendall
from rankernel.kernels.linear import DistanceInduced, Hamming, Spearman
from rankernel.kernels.positional import DCG, AverageOverlap, Positional, RankBiasedOverlap

__all__ = [
    "DCG",
    "AverageOverlap",
    "Diffusion",
    "DistanceInduced",
    "Exponential",
    "Hamming",
    "Kendall",
    "Kernel",
    "Mallows",
    "Polynomial",
    "Positional",
    "RankBiasedOverlap",
    "Spearman",
    "WeightedKendall",
]

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
KERNELS_BY_NAME: dict[str, Kernel] = {kind.__name__.lower(): kind() for kind in WITH_DEFAULTS}
KERNELS_BY_NAME |= {name: kind() for name, kind in SHORT_NAMES.items()}


def as_kernel(kernel: Any, name: str = "kernel") -> Kernel:
    """Return a kernel unchanged, or the kernel of a given name with default parameters.

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
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise TypeError(f"{name}={kernel.__name__} is a class; give an instance, such as {kernel.__name__}(...)")
    if callable(getattr(kernel, "matrix", None)):
        raise TypeError(f"{name}: the class {type(kernel).__name__} must be derived from rankernel.Kernel")
    if not isinstance(kernel, str):
        raise TypeError(
            f"{name}={short_repr(kernel)} is not a kernel; give one such as Mallows(0.1), or its name: 'mallows'"
        )
    if kernel not in KERNELS_BY_NAME:
        raise ValueError(f"{name}={short_repr(kernel)} is not known; there are {', '.join(KERNELS_BY_NAME)}")
    return KERNELS_BY_NAME[kernel]

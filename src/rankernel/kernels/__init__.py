"""Kernels on full rankings, and the operators that build new ones from them.

``__all__`` is the list of kernels that the public interface and the command line use.
"""

from functools import lru_cache
from typing import Any

from rankernel._utils.checks import short_repr
from rankernel.kernels.base import Facts as Facts
from rankernel.kernels.base import Kernel
from rankernel.kernels.diffusion import Diffusion
from rankernel.kernels.exponential import Exponential, Mallows
from rankernel.kernels.kendall import Kendall, Polynomial, WeightedKendall
from rankernel.kernels.linear import DistanceInduced, Hamming, Spearman
from rankernel.kernels.positional import DCG, AverageOverlap, Positional, RankBiasedOverlap
from rankernel.kernels.similarity import Similarity as Similarity
from rankernel.kernels.similarity import similarity_from_groups as similarity_from_groups

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
    """Return a kernel unchanged, the kernel of a given name, or any object with a method ``matrix`` as a kernel.

    Parameters
    ----------
    kernel : Kernel, str or object with a method ``matrix``
        The kernel, its name ("mallows"), or an object of any class whose method ``matrix(X, Y)`` returns the kernel
        between the rows of two integer arrays of full rankings.
    name : str
        The name of the argument in error messages.

    Returns
    -------
    Kernel
        The kernel, with all methods of the base class.

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
    if isinstance(kernel, type) and hasattr(kernel, "matrix"):
        raise TypeError(f"{name}={kernel.__name__} is a class; give an instance, such as {kernel.__name__}(...)")
    if callable(getattr(kernel, "matrix", None)):
        return adopted(type(kernel), vars(kernel))
    if not isinstance(kernel, str):
        advice = "; of a distance function d, give Exponential(distance=d)" if callable(kernel) else ""
        raise TypeError(
            f"{name}={short_repr(kernel)} is not a kernel; give one such as Mallows(0.1), its name 'mallows', or an "
            f"object with a method matrix(X, Y){advice}"
        )
    if kernel not in KERNELS_BY_NAME:
        raise ValueError(f"{name}={short_repr(kernel)} is not known; there are {', '.join(KERNELS_BY_NAME)}")
    return KERNELS_BY_NAME[kernel]


def adopted(kind: type, attributes: dict[str, Any]) -> Kernel:
    """Return an object of a class that has a method ``matrix`` as a kernel."""
    kernel = Kernel.__new__(kernel_class(kind))
    vars(kernel).update(attributes)
    return kernel


@lru_cache(maxsize=256)
def kernel_class(kind: type) -> type[Kernel]:
    """Return a subclass of a class that is a kernel, too; its kernels are pickled as objects of that class."""
    members = {
        "__eq__": Kernel.__eq__,
        "__hash__": Kernel.__hash__,
        "__reduce__": lambda self: (adopted, (kind, vars(self))),
        "__module__": kind.__module__,
        "__doc__": kind.__doc__,
    }
    return type(kind.__name__, (kind, Kernel), members)

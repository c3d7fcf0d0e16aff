"""Kernels on full rankings, and the operators that build new ones from them.

``__all__`` is the list of kernels that the public interface and the command line use.
"""

from rankernel.kernels.base import Facts as Facts
from rankernel.kernels.base import Kernel
from rankernel.kernels.base import as_kernel as as_kernel
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

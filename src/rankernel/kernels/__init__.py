"""Kernels on full rankings, and the algebra that builds new ones from them.

``__all__`` is the one list of kernels: the public names and the command line read it.
"""

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

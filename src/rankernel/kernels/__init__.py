"""Kernels on full rankings, and the algebra that builds new ones from them."""

from rankernel.kernels.base import Constant, Exp, Kernel, Power, Product, Scaled, Sum
from rankernel.kernels.diffusion import Diffusion
from rankernel.kernels.exponential import Exponential, Mallows
from rankernel.kernels.kendall import Kendall, Polynomial, WeightedKendall
from rankernel.kernels.linear import DistanceInduced, Hamming, Spearman

__all__ = [
    "Constant",
    "Diffusion",
    "DistanceInduced",
    "Exp",
    "Exponential",
    "Hamming",
    "Kendall",
    "Kernel",
    "Mallows",
    "Polynomial",
    "Power",
    "Product",
    "Scaled",
    "Spearman",
    "Sum",
    "WeightedKendall",
]

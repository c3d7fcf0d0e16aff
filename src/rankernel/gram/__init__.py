"""Gram matrices of partial rankings: exact, by enumeration or by Monte Carlo, as decided in a plan."""

from rankernel.gram.bandwidth import median_distance
from rankernel.gram.estimate import Estimate, GramSums
from rankernel.gram.methods import Auto, Enumeration, Exact, MonteCarlo
from rankernel.gram.plan import Plan

__all__ = [
    "Auto",
    "Enumeration",
    "Estimate",
    "Exact",
    "GramSums",
    "MonteCarlo",
    "Plan",
    "median_distance",
]

"""Gram matrices of partial rankings: exact, by enumeration or by Monte Carlo, as decided in a plan."""

from rankernel.gram.bandwidth import median_distance
from rankernel.gram.estimate import Estimate
from rankernel.gram.montecarlo import MonteCarlo
from rankernel.gram.plan import Auto, Exact, Plan

__all__ = ["Auto", "Estimate", "Exact", "MonteCarlo", "Plan", "median_distance"]

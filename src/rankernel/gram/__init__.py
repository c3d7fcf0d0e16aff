"""Rankings and a kernel to a Gram matrix: exact, by enumeration, or estimated, as one plan decides."""

from rankernel.gram.bandwidth import median_distance
from rankernel.gram.estimate import Estimate
from rankernel.gram.methods import Auto, Enumeration, Exact, Mixed, MonteCarlo
from rankernel.gram.montecarlo.variance import monte_carlo_variance
from rankernel.gram.plan import Plan
from rankernel.gram.sums import GramSums

__all__ = [
    "Auto",
    "Enumeration",
    "Estimate",
    "Exact",
    "GramSums",
    "Mixed",
    "MonteCarlo",
    "Plan",
    "median_distance",
    "monte_carlo_variance",
]

"""Rankings and a kernel to a Gram matrix: exact, by enumeration, or estimated."""

from rankernel.gram.bandwidth import median_distance
from rankernel.gram.estimate import Estimate, diagonal, estimate, gram, gram_path, log_gram
from rankernel.gram.estimator_variance import monte_carlo_variance
from rankernel.gram.methods import Enumeration, Exact, Mixed
from rankernel.gram.monte_carlo import MonteCarlo

__all__ = [
    "Enumeration",
    "Estimate",
    "Exact",
    "Mixed",
    "MonteCarlo",
    "diagonal",
    "estimate",
    "gram",
    "gram_path",
    "log_gram",
    "median_distance",
    "monte_carlo_variance",
]

"""Rankings to try things on: models to draw from, the paper's synthetic data, and a bundled synthetic election.

Real data is not bundled: ``rankernel.fetch_sushi`` and ``fetch_preflib`` get it from where it is published.
"""

from rankernel.datasets.around_center import mallows
from rankernel.datasets.bundled import load_example
from rankernel.datasets.by_strength import plackett_luce
from rankernel.datasets.example import Example, make_example
from rankernel.datasets.mixtures import Mixture, mixture
from rankernel.datasets.paper_samples import TwoSample, paper_two_sample
from rankernel.datasets.truncation import truncate
from rankernel.datasets.uniform import uniform

__all__ = [
    "Example",
    "Mixture",
    "TwoSample",
    "load_example",
    "make_example",
    "mallows",
    "mixture",
    "paper_two_sample",
    "plackett_luce",
    "truncate",
    "uniform",
]

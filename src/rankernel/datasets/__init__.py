"""Simulated rankings: models to sample from, the paper's synthetic data, and a bundled synthetic election.

Real data is not bundled: :func:`rankernel.fetch_sushi` and :func:`rankernel.fetch_preflib` download it from its
publishers.
"""

from rankernel.datasets.example import Example, load_example, make_example
from rankernel.datasets.simulate import (
    Mixture,
    TwoSample,
    mallows,
    mixture,
    paper_two_sample,
    plackett_luce,
    truncate,
    uniform,
)

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

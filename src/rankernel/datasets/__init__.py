"""Simulated rankings: models to sample from, and a bundled synthetic election."""

from rankernel.datasets.example import Example, load_example
from rankernel.datasets.simulate import (
    Mixture,
    mallows,
    mixture,
    plackett_luce,
    truncate,
    uniform,
)

__all__ = [
    "Example",
    "Mixture",
    "load_example",
    "mallows",
    "mixture",
    "plackett_luce",
    "truncate",
    "uniform",
]

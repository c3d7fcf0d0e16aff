"""Full rankings given a partial one: enumerate them, sample them, couple the draws, herd them."""

from rankernel.completions.draws import CompletionModel, Draws, LogDensity, Uniform, draw
from rankernel.completions.herding import herd
from rankernel.completions.linear_extensions import enumerate_completions
from rankernel.completions.operators import antithetic, project

__all__ = [
    "CompletionModel",
    "Draws",
    "LogDensity",
    "Uniform",
    "antithetic",
    "draw",
    "enumerate_completions",
    "herd",
    "project",
]

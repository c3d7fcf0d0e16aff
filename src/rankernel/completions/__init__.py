"""From partial rankings to full ones: list all completions, draw some, couple the draws, choose them, weight them."""

from rankernel.completions.draws import Draws, draw
from rankernel.completions.enumerate import enumerate_completions
from rankernel.completions.herding import herd, joint_herd
from rankernel.completions.mallows_model import MallowsModel
from rankernel.completions.models import CompletionModel, LogDensity, Uniform
from rankernel.completions.operators import antithetic, project
from rankernel.completions.plackett_luce import PlackettLuce

__all__ = [
    "CompletionModel",
    "Draws",
    "LogDensity",
    "MallowsModel",
    "PlackettLuce",
    "Uniform",
    "antithetic",
    "draw",
    "enumerate_completions",
    "herd",
    "joint_herd",
    "project",
]

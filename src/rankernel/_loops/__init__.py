"""Compiled loops: arrays in, arrays out. Nothing else in the package touches numba.

Modules load on first use, so that importing rankernel neither imports numba nor compiles anything:
``_loops.distances.kendall(...)``.
"""

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    if name.startswith("__"):
        raise AttributeError(name)
    return import_module(f"rankernel._loops.{name}")

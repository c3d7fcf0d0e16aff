"""Compiled loops: arrays in, arrays out. Nothing else in the package touches numba.

Modules load on first use, so that importing rankernel neither imports numba nor compiles anything:
``_loops.rank_distances.kendall(...)``.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

before_compiling: list[Callable[[], object]] = []
"""What to call once, before the first loop that is not on disk already is compiled."""


def __getattr__(name: str) -> ModuleType:
    if name.startswith("__") or find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"there is no module of loops called {name!r}")
    return import_module(f"{__name__}.{name}")

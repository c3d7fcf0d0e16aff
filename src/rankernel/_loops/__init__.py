"""Compiled loops that several modules share: arrays in, arrays out.

Modules are imported on first use, as ``_loops.pairs.rankwise(...)``, so that importing rankernel neither
imports numba nor compiles anything. Loops of one family of formulas are in the module of that family.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

before_compiling: list[Callable[[], object]] = []
"""Functions to call once, before the first loop that is not stored on disk is compiled."""


def __getattr__(name: str) -> ModuleType:
    if name.startswith("__") or find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"rankernel._loops has no module {name!r}")
    return import_module(f"{__name__}.{name}")

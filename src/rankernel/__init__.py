"""Kernel methods for full and partial rankings.

Data flows one way::

    file ──io──▶ Rankings ──kernels, completions──▶ gram ──▶ tasks ──▶ answers

    read_preflib, read_csv      Kendall, Mallows ...    exact, enumerated
    Rankings.from_orders ...    draws of completions    or estimated

The public names stand in ``__init__.pyi``. They load on first use, so that importing the package is quick and compiles
nothing.
"""

from rankernel._lazy import names_in_stub

__version__ = "0.1.0"

_homes = names_in_stub(__file__)

__all__ = ["__version__", *_homes]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _homes:
        raise AttributeError(f"module 'rankernel' has no attribute {name!r}")
    home = import_module(_homes[name])
    globals()[name] = getattr(home, name, home)  # a name that is a module is its own home
    return globals()[name]


def __dir__() -> list[str]:
    return __all__

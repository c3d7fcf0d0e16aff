"""Kernels and methods as text: ``mallows:nu=median``, ``0.5*kendall+hamming``, ``montecarlo:draws=64``."""

from __future__ import annotations

import dataclasses
import re
from functools import lru_cache, reduce
from operator import add
from typing import TYPE_CHECKING, Any

from rankernel._utils.checks import printable
from rankernel.cli.failures import UsageError
from rankernel.errors import ArgumentError

if TYPE_CHECKING:
    from rankernel.gram.methods import MethodLike
    from rankernel.kernels.base import Kernel

METHODS = ("auto", "exact", "enumeration", "mixed", "montecarlo")
MONTE_CARLO_ARGUMENTS = {"draws": "n_draws", "coupling": "coupling", "control_variates": "control_variates"}

PLUS = re.compile(r"(?<![0-9.][eE])\+")  # not that of 1e+3
TERM = re.compile(r"(?:(?P<factor>[^*:=]+)\*)?(?P<name>[^*:=]+)(?::(?P<arguments>.*))?", re.DOTALL)


@lru_cache(maxsize=1)
def kernel_classes() -> dict[str, tuple[type[Kernel], tuple[str, ...]]]:
    """Return the kernels by their names in lower case, each with the names of its arguments."""
    from rankernel import kernels
    from rankernel.kernels import SHORT_NAMES

    classes = [getattr(kernels, name) for name in kernels.__all__ if name not in ("Kernel", "Positional")]
    named = {kind.__name__.lower(): kind for kind in classes} | SHORT_NAMES
    return {name: (kind, tuple(field.name for field in dataclasses.fields(kind))) for name, kind in named.items()}


def kernel_names() -> tuple[str, ...]:
    """Return the names of all kernels."""
    return tuple(kernel_classes())


def parse_kernel(text: str) -> Kernel:
    """Return the kernel that a text describes.

    Examples
    --------
    >>> parse_kernel("mallows:nu=0.1")
    Mallows(nu=0.1)
    >>> parse_kernel("0.5*kendall + exponential:distance=hamming,nu=median")
    0.5 * Kendall() + Exponential('hamming', nu='median')
    >>> parse_kernel("distanceinduced:distance=kendall,center=2/0/1")
    DistanceInduced('kendall', center=[2, 0, 1])
    >>> parse_kernel("rbo:p=0.8,depth=10")
    RankBiasedOverlap(p=0.8, depth=10)
    """
    return reduce(add, [parse_term(term.strip()) for term in PLUS.split(text)])


def parse_term(text: str) -> Kernel:
    """Return the kernel of one term of a sum."""
    parts, classes = TERM.fullmatch(text), kernel_classes()
    name = parts["name"].strip().lower() if parts else ""
    if parts is None or name not in classes:
        raise UsageError(f"--kernel {printable(text)!r} is unknown; the kernels are {', '.join(classes)}")
    kind, known = classes[name]
    arguments = parse_arguments(parts["arguments"], known, f"--kernel {name}")
    try:
        kernel = kind(**arguments)
        return kernel if parts["factor"] is None else float(parts["factor"]) * kernel
    except (TypeError, ValueError) as error:
        raise UsageError(f"--kernel {printable(text)!r}: {error}") from None


def parse_arguments(text: str | None, known: tuple[str, ...], where: str) -> dict[str, Any]:
    """Return the arguments in ``nu=0.1,distance=hamming``."""
    arguments: dict[str, Any] = {}
    for part in text.split(",") if text else []:
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in known or not equals or not value:
            takes = f"takes {', '.join(f'{each}=...' for each in known)}" if known else "takes no arguments"
            raise UsageError(f"{where} {takes}, not {printable(part)!r}")
        arguments[name] = parse_value(value)
    return arguments


def parse_value(text: str) -> Any:
    """Return a number if the text is one, a tuple if it contains slashes, else the text."""
    if "/" in text:
        return tuple(parse_value(part) for part in text.split("/"))
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def parse_method(text: str, seed: int) -> MethodLike:
    """Return the method that a text describes.

    Examples
    --------
    >>> print(parse_method("montecarlo:draws=20,coupling=iid,control_variates=0", seed=3))
    Monte Carlo, 20 draws per ranking, independent draws, seed 3
    """
    name, _, rest = text.partition(":")
    if name not in METHODS:
        raise UsageError(f"--method {printable(text)!r} is unknown; the methods are {', '.join(METHODS)}")
    if name != "montecarlo" and rest:
        raise UsageError(f"--method {name} takes no arguments, not {printable(rest)!r}")
    from rankernel.gram.methods import Auto, MonteCarlo

    if name == "auto":
        return Auto(fallback=MonteCarlo(rng=seed))
    if name != "montecarlo":
        return name  # type: ignore[return-value]
    arguments = parse_arguments(rest, tuple(MONTE_CARLO_ARGUMENTS), "--method montecarlo")
    try:
        return MonteCarlo(**{MONTE_CARLO_ARGUMENTS[key]: value for key, value in arguments.items()}, rng=seed)
    except (TypeError, ValueError) as error:
        problem = error.phrase(lambda each: str(each).removeprefix("n_")) if isinstance(error, ArgumentError) else error
        raise UsageError(f"--method {printable(text)!r}: {problem}") from None

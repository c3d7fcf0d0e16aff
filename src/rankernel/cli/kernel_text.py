"""Kernels and methods as people type them: ``mallows:nu=median``, ``0.5*kendall+hamming``, ``montecarlo:draws=64``."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from rankernel.cli.guard import usage
from rankernel.encoding import printable

if TYPE_CHECKING:
    from rankernel.gram.methods import MethodLike
    from rankernel.kernels import Kernel
    from rankernel.rankings import Rankings

__all__ = ["KERNELS", "METHODS", "parse_kernel", "parse_method", "settled_method"]

# Name, class, and which arguments it takes.
CLASSES: dict[str, tuple[str, tuple[str, ...]]] = {
    "kendall": ("Kendall", ()),
    "mallows": ("Mallows", ("nu",)),
    "hamming": ("Hamming", ()),
    "spearman": ("Spearman", ()),
    "polynomial": ("Polynomial", ("degree",)),
    "exponential": ("Exponential", ("distance", "nu")),
    "diffusion": ("Diffusion", ("beta", "graph")),
}
KERNELS = tuple(CLASSES)
METHODS = ("auto", "exact", "enumeration", "mixed", "montecarlo")
DRAWING = ("draws", "coupling", "moments")

PLUS = re.compile(r"(?<![0-9.][eE])\+")  # but not that of 1e+3
TERM = re.compile(r"(?:(?P<factor>[^*:=]+)\*)?(?P<name>[^*:=]+)(?::(?P<arguments>.*))?", re.DOTALL)


def parse_kernel(text: str) -> Kernel:
    """Return the kernel that a text describes.

    Examples
    --------
    >>> parse_kernel("mallows:nu=0.1")
    Mallows(nu=0.1)
    >>> parse_kernel("0.5*kendall + exponential:distance=hamming,nu=median")
    0.5 * Kendall() + Exponential('hamming', nu='median')
    """
    return reduce(add, [parse_term(term.strip()) for term in PLUS.split(text)])


def parse_term(text: str) -> Kernel:
    """Return the kernel of one term of a sum."""
    from rankernel import kernels

    parts = TERM.fullmatch(text)
    name = parts["name"].strip().lower() if parts else ""
    if parts is None or name not in CLASSES:
        raise usage(f"kernel {printable(text)!r} is not known; there are {', '.join(KERNELS)}")
    class_name, known = CLASSES[name]
    arguments = parse_arguments(parts["arguments"], known, f"kernel {name}")
    try:
        kernel: Kernel = getattr(kernels, class_name)(**arguments)
        return kernel if parts["factor"] is None else float(parts["factor"]) * kernel
    except (TypeError, ValueError) as error:
        raise usage(f"kernel {printable(text)!r}: {error}") from None


def parse_arguments(text: str | None, known: tuple[str, ...], where: str) -> dict[str, Any]:
    """Return the arguments in ``nu=0.1,distance=hamming``."""
    arguments: dict[str, Any] = {}
    for part in text.split(",") if text else []:
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in known or not equals or not value:
            takes = f"takes {', '.join(f'{each}=...' for each in known)}" if known else "takes no arguments"
            raise usage(f"{where} {takes}, not {printable(part)!r}")
        arguments[name] = number_or_word(value)
    return arguments


def number_or_word(text: str) -> int | float | str:
    """Return a number if the text is one."""
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
    >>> print(parse_method("montecarlo:draws=20,coupling=iid,moments=0", seed=3))
    Monte Carlo, 20 draws of each ranking, iid, seed 3
    """
    name, _, rest = text.partition(":")
    if name not in METHODS:
        raise usage(f"method {printable(text)!r} is not known; there are {', '.join(METHODS)}")
    if name != "montecarlo":
        if rest:
            raise usage(f"method {name} takes no arguments, not {printable(rest)!r}")
        return name  # type: ignore[return-value]
    from rankernel.gram import MonteCarlo

    arguments = parse_arguments(rest, DRAWING, "method montecarlo")
    if "draws" in arguments:
        arguments["n_draws"] = arguments.pop("draws")
    try:
        return MonteCarlo(**arguments, seed=seed)
    except (TypeError, ValueError) as error:
        raise usage(f"method {printable(text)!r}: {error}") from None


def settled_method(text: str, kernel: Kernel, X: Rankings, seed: int) -> MethodLike:
    """Return the method for some data: where "auto" has to draw, it draws with the seed of the command line."""
    from rankernel.gram import MonteCarlo
    from rankernel.gram.choose import choose

    method = parse_method(text, seed)
    if method != "auto" or not seed:
        return method
    chosen, _ = choose(kernel, X, X, "auto")
    return replace(chosen, seed=seed) if isinstance(chosen, MonteCarlo) else method

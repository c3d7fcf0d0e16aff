"""Exceptions and warnings of the package.

A message may refer to arguments of the call (:class:`Argument`). Python shows such a reference as ``name=value``; other
front ends, such as the command line, phrase it in their own terms with :meth:`PhrasedMessage.phrase`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from inspect import Parameter
from typing import Any, NamedTuple

MAX_REPR = 80  # characters of a value in a message


def short_repr(value: object) -> str:
    """Return the ``repr`` of a value on one line, shortened to 80 characters."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # of nested lists that are too deep, or of a class of the user
        text = f"<{type(value).__name__}>"
    return text if len(text) <= MAX_REPR else f"{text[: MAX_REPR - 3]}..."


class Argument(NamedTuple):
    """A reference to an argument within a message.

    Examples
    --------
    >>> str(Argument("n_draws", 20)), str(Argument("items", ...)), str(Argument("unlisted"))
    ('n_draws=20', 'items=...', 'unlisted')
    """

    name: str
    #: The value to show: the Ellipsis stands for any value; without a value only the name is shown.
    value: Any = Parameter.empty

    def __str__(self) -> str:
        if self.value is Parameter.empty:
            return self.name
        return f"{self.name}={'...' if self.value is ... else short_repr(self.value)}"


class PhrasedMessage(Exception):  # noqa: N818 - also a base of warnings
    """Base of exceptions and warnings whose messages, given in pieces, refer to arguments.

    Examples
    --------
    >>> error = RankingError("the file exists; give ", Argument("overwrite", True))
    >>> str(error)
    'the file exists; give overwrite=True'
    >>> error.phrase(lambda argument: "--force")
    'the file exists; give --force'
    """

    def __init__(self, *parts: object) -> None:
        super().__init__("".join(map(str, parts)))
        #: The message in pieces.
        self.parts = parts

    def phrase(self, argument: Callable[[Argument], str]) -> str:
        """Return the message with each reference to an argument phrased by a function."""
        return "".join(argument(part) if isinstance(part, Argument) else str(part) for part in self.parts)


class ArgumentError(PhrasedMessage):
    """An argument has a value that is not possible.

    Parameters
    ----------
    argument : str
        Name of the argument.
    value : object
        The value that was given.
    expected : str
        Description of the values that are possible.
    hint : str, Argument or tuple of both
        What to do.
    problem : str
        What is wrong, if the value itself is not to be shown, such as "has shape (2,)".
    """

    def __init__(self, argument: str, value: object, expected: str, hint: object = "", problem: str = "") -> None:
        self.argument, self.value, self.expected, self.hint, self.problem = argument, value, expected, hint, problem
        subject = (Argument(argument), " ", problem) if problem else (Argument(argument, value), " is not possible")
        advice = hint if type(hint) is tuple else (hint,)
        super().__init__(*subject, "; it must be ", expected, *(("; ", *advice) if hint else ()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.argument, self.value, self.expected, self.hint, self.problem)


class ArgumentValueError(ArgumentError, ValueError):
    """An argument has a value that is not possible."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument is of the wrong type."""


class RankingError(PhrasedMessage, ValueError):
    """The data is not a valid set of rankings or preferences, or a file cannot be read as such."""


class ExactnessError(PhrasedMessage, ValueError):
    """An exact value was requested but there is neither a closed form nor a feasible enumeration."""


class InsufficientMemoryError(PhrasedMessage, MemoryError):
    """An array does not fit into memory; nothing was allocated."""


class OutputExistsError(PhrasedMessage, FileExistsError):
    """A file to write exists already."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed."""


class IndefiniteKernelWarning(PhrasedMessage, UserWarning):
    """The kernel is not positive semi-definite, so a Gram matrix may have negative eigenvalues."""


class NotCharacteristicWarning(PhrasedMessage, UserWarning):
    """The kernel of a test is not characteristic: some differences cannot be detected at any sample size."""


class SamplingWarning(PhrasedMessage, UserWarning):
    """The error of a Monte Carlo estimate, or its standard error, may be larger than the number of draws suggests."""


class MisfitWarning(PhrasedMessage, UserWarning):
    """The data do not fit the models that a result assumes."""


class CostWarning(PhrasedMessage, UserWarning):
    """A computation that is about to start takes more than ten seconds or 2 GB."""


class ReadingWarning(PhrasedMessage, UserWarning):
    """A file was read, but some of its content may have another meaning than assumed."""


def missing_extra(package: str, extra: str) -> MissingExtraError:
    """Return the error for an optional dependency that is not installed."""
    return MissingExtraError(f"this needs {package}, which is not installed; do: pip install 'rankernel[{extra}]'")


def require(package: str, extra: str) -> None:
    """Raise an error if an optional dependency is not installed."""
    if find_spec(package) is None:
        raise missing_extra(package, extra)


# This package, and the decorators between two frames of this package.
INTERNAL = ("rankernel", "importlib", "functools", "contextlib", "numpy")


def warn(message: str | tuple[object, ...], category: type[Warning]) -> None:
    """Issue a warning, whose message may be in pieces, attributed to the first caller outside of this package."""
    parts = message if isinstance(message, tuple) else (message,)
    instance = category(*parts) if issubclass(category, PhrasedMessage) else category("".join(map(str, parts)))
    frame, stacklevel = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] in INTERNAL:
        frame, stacklevel = frame.f_back, stacklevel + 1
    warnings.warn(instance, stacklevel=stacklevel)

"""The errors and warnings of the package: each says what came, what was wanted, and what to do."""

from __future__ import annotations

import sys
import warnings
from contextvars import ContextVar
from importlib.util import find_spec
from types import FrameType


class RankingError(ValueError):
    """Data that is not a set of rankings."""


class ExactnessError(ValueError):
    """An exact value was asked for where there is neither a closed form nor a feasible enumeration."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed."""


class IndefiniteKernelWarning(UserWarning):
    """A Gram matrix may have negative eigenvalues: its kernel is not positive semi-definite."""


class NotCharacteristicWarning(UserWarning):
    """The kernel of a test is blind to some differences, whatever the number of rankings."""


class SamplingWarning(UserWarning):
    """A Monte Carlo estimate is less certain than its number of draws suggests."""


class MisfitWarning(UserWarning):
    """The data do not look like those of the models that an answer rests on."""


class ReadingWarning(UserWarning):
    """A file was read, but something in it may not be what was meant."""


def missing_extra(package: str, extra: str) -> MissingExtraError:
    """Return the error for a package that belongs to an extra of rankernel and is not installed."""
    return MissingExtraError(f"this needs {package}, which is not installed; do: pip install 'rankernel[{extra}]'")


def require(package: str, extra: str) -> None:
    """Refuse to begin what needs a package of an extra that is not installed."""
    if find_spec(package) is None:
        raise missing_extra(package, extra)


#: In a thread that works for another: where that one waits.
CALLER: ContextVar[FrameType | None] = ContextVar("CALLER", default=None)


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line outside of this package that led here, if need be in the thread that waits for this one."""
    frame, waiting = sys._getframe(1), CALLER.get()
    while is_ours(frame):
        if frame.f_back is None:
            break
        frame = frame.f_back
        if waiting is not None and not is_ours(frame):  # the start of a thread
            frame, waiting = waiting, None
    place = frame.f_globals
    registry = place.setdefault("__warningregistry__", {})
    name = place.get("__name__") or "<string>"
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, name, registry)


def is_ours(frame: FrameType) -> bool:
    """Say whether a frame is of this package, or of what Python puts between its parts."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in ("rankernel", "importlib", "functools")

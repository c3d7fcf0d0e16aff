"""The errors and warnings of the package: each says what came, what was wanted, and what to do."""

from __future__ import annotations

import sys
import warnings


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


def missing_extra(package: str, extra: str) -> MissingExtraError:
    """Return the error for a package that belongs to an extra of rankernel and is not installed."""
    return MissingExtraError(f"this needs {package}, which is not installed; do: pip install 'rankernel[{extra}]'")


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line outside of this package that led here."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "rankernel":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)

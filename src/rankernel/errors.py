"""The errors and warnings of the package: each says what came, what was wanted, and what to do."""

__all__ = [
    "ExactnessError",
    "IndefiniteKernelWarning",
    "MissingExtraError",
    "NotCharacteristicWarning",
    "RankingError",
    "SamplingWarning",
    "missing_extra",
]


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

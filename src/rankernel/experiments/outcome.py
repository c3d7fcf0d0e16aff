"""What an experiment hands back: tables, figures, and in words what was done and what holds."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite, isnan
from typing import Any


@dataclass(frozen=True)
class Spread:
    """A mean and the standard deviation of single results."""

    mean: float
    sd: float


@dataclass(frozen=True)
class Interval:
    """A value between the ends of a 95% confidence interval."""

    value: float
    low: float
    high: float


Entry = str | int | float | Spread | Interval | None


@dataclass(frozen=True)
class Table:
    """A table to print, to write and to read again."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Entry, ...]]
    note: str = ""

    def text(self) -> list[list[str]]:
        """Return all entries as they are shown."""
        return [[shown(entry) for entry in row] for row in self.rows]

    def csv(self) -> str:
        """Return the table as comma-separated values, as shown."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.columns, *self.text()])
        return out.getvalue()

    def record(self) -> dict[str, Any]:
        """Return the table with all digits, for JSON."""
        rows = [[machine_readable(entry) for entry in row] for row in self.rows]
        return {"title": self.title, "columns": list(self.columns), "rows": rows, "note": self.note}


@dataclass
class Outcome:
    """All that one experiment found."""

    name: str
    title: str
    protocol: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[tuple[str, str]] = field(default_factory=list)  # name and caption
    findings: list[str] = field(default_factory=list)


def shown(entry: Entry) -> str:
    """Return an entry as people read it: mean (standard deviation), value [95% interval].

    Examples
    --------
    >>> shown(Spread(0.4567, 0.0123)), shown(Interval(2.0, 1.5, 2.75)), shown(0.00012), shown(1814400), shown(None)
    ('0.457 (0.012)', '2.00 [1.50, 2.75]', '1.2e-04', '1,814,400', '-')
    """
    match entry:
        case None:
            return "-"
        case str():
            return entry
        case Spread(mean, sd):
            return f"{mean:.3f} ({sd:.3f})"
        case Interval(value, low, high):
            return "-" if isnan(value) else f"{short(value)} [{short(low)}, {short(high)}]"
        case int():
            return f"{entry:,}"
    return "-" if isnan(entry) else small_or_fixed(entry)


def small_or_fixed(value: float) -> str:
    """Return three decimals, or two digits of what is smaller or larger."""
    if value and (abs(value) < 0.001 or abs(value) >= 1e4):
        return f"{value:.1e}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3f}"


def short(value: float) -> str:
    """Return a ratio in about three digits."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def machine_readable(entry: Entry) -> Any:
    """Return an entry with all digits."""
    match entry:
        case Spread(mean, sd):
            return {"mean": finite(mean), "sd": finite(sd)}
        case Interval(value, low, high):
            return {"value": finite(value), "low": finite(low), "high": finite(high)}
        case float():
            return finite(entry)
    return entry


def finite(value: float) -> float | None:
    """Return a number that JSON can write."""
    return value if isfinite(value) else None

"""What an experiment hands back: tables, figures, and in words what was done and what holds."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, isnan
from typing import Any

SYNTHETIC = "†"  # stands behind each number of synthetic data


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


@dataclass(frozen=True)
class Synthetic:
    """A number that was measured on a stand-in for the data."""

    value: int | float | Spread | Interval


Entry = str | int | float | Spread | Interval | Synthetic | None


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

    def on_synthetic_data(self) -> Table:
        """Return the same table with all of its numbers marked but those of the paper."""
        rows = [
            row if {"paper", "the paper"} & set(row[:2]) else tuple(map(self.marked, row, self.columns))
            for row in self.rows
        ]
        note = f"{SYNTHETIC}: measured on synthetic data, not on SUSHI."
        return replace(self, title=f"{self.title} (synthetic data)", rows=rows, note=f"{note} {self.note}".strip())

    @staticmethod
    def marked(entry: Entry, column: str) -> Entry:
        """Return an entry of a column, marked as one of synthetic data if it is a number of ours."""
        ours = entry is not None and not isinstance(entry, str) and not column.endswith(", paper")
        return Synthetic(entry) if ours else entry  # type: ignore[arg-type]


@dataclass
class Outcome:
    """All that one experiment found."""

    name: str
    title: str
    protocol: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[tuple[str, str]] = field(default_factory=list)  # name and caption
    findings: list[str] = field(default_factory=list)
    left_out: str = ""  # what is missing, and why
    synthetic: bool = False  # whether it is of a stand-in for the data

    def on_synthetic_data(self) -> Outcome:
        """Return the same, saying everywhere that it is of synthetic data."""
        return replace(
            self,
            title=f"{self.title} (synthetic data)",
            tables=[table.on_synthetic_data() for table in self.tables],
            figures=[(name, f"Synthetic data: {caption}") for name, caption in self.figures],
            findings=[f"On synthetic data: {line}" for line in self.findings],
            synthetic=True,
        )


def shown(entry: Entry) -> str:
    """Return an entry as people read it: mean (standard deviation), value [95% interval].

    Examples
    --------
    >>> shown(Spread(0.4567, 0.0123)), shown(Interval(2.0, 1.5, 2.75)), shown(0.00012), shown(1814400), shown(None)
    ('0.457 (0.012)', '2.00 [1.50, 2.75]', '1.2e-04', '1,814,400', '-')
    >>> shown(Synthetic(0.5))
    '0.500†'
    """
    match entry:
        case None:
            return "-"
        case str():
            return entry
        case Synthetic(value):
            return f"{shown(value)}{SYNTHETIC}"
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
        case Synthetic(value):
            return {"synthetic": machine_readable(value)}
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

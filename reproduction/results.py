"""Results of the experiments: tables, bootstrap intervals, figures, and the page with everything."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from math import isfinite, isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankernel import __version__
from rankernel._utils import FloatArray

if TYPE_CHECKING:
    from reproduction.study import Study


@dataclass(frozen=True)
class MeanSD:
    """A mean, and the standard deviation of single results."""

    mean: float
    sd: float


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95% confidence interval."""

    value: float
    low: float
    high: float


Entry = str | int | float | MeanSD | Interval | None


@dataclass(frozen=True)
class Table:
    """A table of results."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Entry, ...]]
    note: str = ""

    def text(self) -> list[list[str]]:
        """Return all entries as text."""
        return [[shown(entry) for entry in row] for row in self.rows]

    def csv(self) -> str:
        """Return the table as comma-separated values."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.columns, *self.text()])
        return out.getvalue()

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [self.columns, tuple("---" for _ in self.columns), *self.text()]
        body = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
        return f"**{self.title}**\n\n{body}" + (f"\n\n{self.note}" if self.note else "")

    def record(self) -> dict[str, Any]:
        """Return the table with all digits for JSON."""
        rows = [[json_value(entry) for entry in row] for row in self.rows]
        return {"title": self.title, "columns": list(self.columns), "rows": rows, "note": self.note}

    def on_synthetic_data(self) -> Table:
        """Return the table marked as measured on synthetic data."""
        note = f"Except for those of the paper, the numbers are of synthetic data, not of SUSHI. {self.note}".strip()
        return replace(self, title=f"{self.title} (synthetic data)", note=note)


@dataclass
class Result:
    """The results of one experiment."""

    name: str
    title: str
    protocol: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[tuple[str, str]] = field(default_factory=list)  # name and caption
    findings: list[str] = field(default_factory=list)
    skipped: str = ""  # what was skipped, and why
    synthetic: bool = False  # whether it was measured on synthetic data

    def on_synthetic_data(self) -> Result:
        """Return the results marked as measured on synthetic data."""
        return replace(
            self,
            title=f"{self.title} (synthetic data)",
            tables=[table.on_synthetic_data() for table in self.tables],
            figures=[(name, f"Synthetic data: {caption}") for name, caption in self.figures],
            findings=[f"On synthetic data: {line}" for line in self.findings],
            synthetic=True,
        )


def shown(entry: Entry) -> str:
    """Return an entry as text: mean (standard deviation), value [95% interval].

    Examples
    --------
    >>> shown(MeanSD(0.4567, 0.0123)), shown(Interval(2.0, 1.5, 2.75)), shown(0.00012), shown(1814400), shown(None)
    ('0.457 (0.012)', '2.00 [1.50, 2.75]', '1.2e-04', '1,814,400', '-')
    """
    match entry:
        case None:
            return "-"
        case str():
            return entry
        case MeanSD(mean, sd):
            return f"{mean:.3f} ({sd:.3f})"
        case Interval(value, low, high):
            return "-" if isnan(value) else f"{three_digits(value)} [{three_digits(low)}, {three_digits(high)}]"
        case int():
            return f"{entry:,}"
    if isnan(entry):
        return "-"
    if entry and (abs(entry) < 0.001 or abs(entry) >= 1e4):
        return f"{entry:.1e}"
    return f"{entry:.0f}" if abs(entry) >= 100 else f"{entry:.3f}"


def three_digits(value: float) -> str:
    """Return a ratio with about three digits."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def json_value(entry: Entry) -> Any:
    """Return an entry with all digits; NaN is null in JSON."""
    match entry:
        case MeanSD() | Interval():
            return {name: json_value(value) for name, value in asdict(entry).items()}
        case float():
            return entry if isfinite(entry) else None
    return entry


# ---------------------------------------------------------------------- statistics

N_RESAMPLES = 2000


def mean_sd(values: FloatArray | list[float]) -> MeanSD:
    """Return the mean and the standard deviation of the values that are not NaN."""
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    return MeanSD(float(known.mean()), float(known.std(ddof=1)) if len(known) > 1 else nan)


def bootstrap(statistic: Callable[[FloatArray], FloatArray], samples: FloatArray, seed: int) -> Interval:
    """Return a statistic with its 95% percentile bootstrap interval over the rows of the samples.

    The statistic maps an array of shape (n_resamples, n_rows, ...) to one value for each resample.
    """
    rows = np.random.default_rng(seed).integers(len(samples), size=(N_RESAMPLES, len(samples)))
    with np.errstate(divide="ignore", invalid="ignore"):  # ratios of two zeros are ignored
        value, resampled = statistic(samples[None])[0], statistic(samples[rows])
        if np.isnan(resampled).all():
            return Interval(nan, nan, nan)
        low, high = np.nanquantile(resampled, [0.025, 0.975], method="nearest")
    return Interval(float(value), float(low), float(high))


def ratio_of_variances(paired: FloatArray, seed: int, power: float = 1.0) -> Interval:
    """Return the ratio of the variances of two columns; with ``power=0.5`` that of the standard deviations."""
    return bootstrap(lambda s: np.asarray(np.divide(*np.moveaxis(s.var(axis=1, ddof=1) ** power, -1, 0))), paired, seed)


# ---------------------------------------------------------------------- figures

# The colour-blind safe palette of Okabe and Ito.
COLOURS = {
    "exact": "#000000",
    "full": "#7a7a7a",
    "Monte Carlo": "#d55e00",
    "antithetic": "#0072b2",
    "best": "#009e73",
    "paper": "#cc79a7",
    "other": "#e69f00",
}
STYLE: Any = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "rankernel",
}


@contextmanager
def saved_axes(
    study: Study, name: str, rows: int = 1, columns: int = 1, size: tuple[float, float] = (7, 4)
) -> Iterator[Any]:
    """Yield an array of axes, and save the figure as PNG and SVG, with the same bytes in every run."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size)
        FigureCanvasAgg(figure)
        yield figure.subplots(rows, columns, squeeze=False)
        folder = study.folder / "figures"
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(folder / f"{name}.png", dpi=150, metadata={"Software": None})
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


# ---------------------------------------------------------------------- page

INTRODUCTION = (
    "Antithetic and Monte Carlo kernel estimators for partial rankings (Lomeli, Rowland, Gretton, Ghahramani): every "
    "table and figure of the paper beside the values measured with this package, with the protocol. Nothing was tuned "
    "to agree. If the text of the paper can be understood in several ways, the results of all of them are shown."
)
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "GPy")
CSS = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h2 { margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1rem; }
table { border-collapse: collapse; font-size: 0.85rem; display: block; overflow-x: auto; }
th, td { padding: 0.25rem 0.6rem; border-bottom: 1px solid #e5e5e5; text-align: right; }
th:first-child, td:first-child, td:nth-child(2) { text-align: left; }
img { max-width: 100%; }
"""


def write_results(study: Study, results: list[Result]) -> None:
    """Write README.md, index.html, results.json, and a CSV file for each table."""
    for result in results:
        for table in result.tables:
            write_text(study.folder / "tables" / f"{table.name}.csv", table.csv())
    page = markdown(study, results)
    write_text(study.folder / "README.md", page)
    write_text(study.folder / "index.html", html(study, page))
    records = {
        result.name: {
            "title": result.title,
            "synthetic": result.synthetic,
            "protocol": result.protocol,
            "tables": {table.name: table.record() for table in result.tables},
            "findings": result.findings,
        }
        for result in results
    }
    everything = {"seed": study.seed, "quick": study.quick, "version": __version__, "experiments": records}
    write_text(study.folder / "results.json", json.dumps(everything, indent=1, ensure_ascii=False) + "\n")


def markdown(study: Study, results: list[Result]) -> str:
    """Return the page as Markdown."""
    names = " ".join(result.name for result in results)
    remarks = "A quick run with few replicates, to test that everything works. " if study.quick else ""
    if any(result.synthetic for result in results):
        remarks += "Without the SUSHI data: results marked as synthetic were measured on synthetic data. "
    command = f"python -m reproduction {names}{' --quick' * study.quick} --seed {study.seed}"
    libraries = ", ".join(f"{name} {installed(name)}" for name in LIBRARIES)
    parts = [
        "# The paper's experiments, reproduced",
        INTRODUCTION,
        f"{remarks}Command: `{command}`. The same seed gives the same numbers to the last digit.",
        f"rankernel {__version__}, Python {platform.python_version()}, {libraries}.",
    ]
    for result in results:
        parts += [f"## {result.title}", *result.protocol, *(table.markdown() for table in result.tables)]
        parts += [f"![{caption}](figures/{name}.svg)\n\n*{caption}*" for name, caption in result.figures]
        if result.findings:
            parts += ["**Findings**", "\n".join(f"- {line}" for line in result.findings)]
    return "\n\n".join(parts) + "\n"


def html(study: Study, page: str) -> str:
    """Return a Markdown page as one HTML file with embedded figures."""
    from markdown_it import MarkdownIt  # a dependency of rich

    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(page)
    for path in sorted((study.folder / "figures").glob("*.svg")):
        picture = b64encode(path.read_bytes()).decode("ascii")
        body = body.replace(f'src="figures/{path.name}"', f'src="data:image/svg+xml;base64,{picture}"')
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    title = "<title>The paper's experiments, reproduced</title>"
    return (
        f"<!doctype html>\n<html lang=en><head>{head}{title}<style>{CSS}</style></head>\n<body>\n{body}</body></html>\n"
    )


def installed(name: str) -> str:
    """Return the installed version of a library."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def write_text(path: Path, text: str) -> None:
    """Write a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)

"""One look for all figures, and how they are saved: to the same bytes every time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from reproduction.study import Study

# Okabe and Ito's colours, which the colour-blind tell apart.
COLOURS = {
    "exact": "#000000",
    "full": "#7a7a7a",
    "Monte Carlo": "#d55e00",
    "antithetic": "#0072b2",
    "best": "#009e73",
    "paper": "#cc79a7",
    "other": "#e69f00",
}
LOOK: Any = {
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
def drawn_as(
    study: Study, name: str, rows: int = 1, columns: int = 1, size: tuple[float, float] = (7, 4)
) -> Iterator[Any]:
    """Give axes to draw on, in an array of rows and columns, and save them as PNG and SVG in the end."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(LOOK):
        figure = Figure(figsize=size)
        FigureCanvasAgg(figure)
        yield figure.subplots(rows, columns, squeeze=False)
        folder = study.folder / "figures"
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(folder / f"{name}.png", dpi=150, metadata={"Software": None})
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})

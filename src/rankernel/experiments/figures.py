"""The paper's figures, drawn from what the code computes."""

from __future__ import annotations

import numpy as np

from rankernel.experiments import cayley_graphs, embedding_figure, herding_figure
from rankernel.experiments.drawing import has_matplotlib
from rankernel.experiments.experiment import Study
from rankernel.experiments.outcome import Outcome, Table


def run(study: Study) -> Outcome:
    """Return the Cayley graphs, the embedding picture and the comparison of greedy with joint herding."""
    found = herding_figure.curves(study)
    numbers = tuple(map(str, range(1, len(found["joint"]) + 1)))
    rows = tuple((name, *found[name]) for name in ("Monte Carlo", "antithetic", "greedy", "joint"))
    outcome = Outcome("figures", "The paper's figures", protocol=PROTOCOL)
    outcome.tables = [Table("herding", "Distance to the mean embedding by completions", ("", *numbers), rows)]
    if has_matplotlib():
        outcome.figures = [cayley_graphs.draw(study), embedding_figure.draw(study), herding_figure.draw(study)]
    outcome.findings = findings(study, found)
    return outcome


PROTOCOL = [
    (
        "The embedding picture is a real kernel principal component analysis, not a sketch. Herding: Mallows kernel "
        f"with nu = {herding_figure.KERNEL.nu}, nothing known of three (hexagon) or four items."
    ),
]


def findings(study: Study, found: dict[str, list[float]]) -> list[str]:
    """Return what the figures show, in numbers."""
    points = embedding_figure.embedded(study)
    off = float(np.abs(points["completions"].mean(axis=0) - points["barycentre"][0]).max())
    spreads = {
        row: float(np.linalg.norm(points[row] - points["barycentre"], axis=1).mean())
        for row in ("Monte Carlo", "antithetic")
    }
    same = np.isclose(found["greedy"][1], found["joint"][1])
    return [
        (
            "The embedding of the partial ranking is the mean of its completions' "
            f"({'to rounding' if off < 1e-10 else f'off by {off:.1e}'})."
        ),
        (
            f"Two draws are on average {spreads['Monte Carlo']:.3f} away from it in this plane, an antithetic pair "
            f"{spreads['antithetic']:.3f}."
        ),
        (
            f"Two completions: herding one by one {'agrees' if same else 'does not agree'} with choosing both at once, "
            f"as the paper proves; three: {found['greedy'][2]:.3f} one by one, {found['joint'][2]:.3f} at once, as it "
            "says."
        ),
    ]

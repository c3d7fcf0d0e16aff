"""The paper's figures, drawn from what the code computes."""

from __future__ import annotations

import numpy as np

from reproduction import cayley_graphs, embedding_figure, herding_figure
from reproduction.experiment import Experiment
from reproduction.outcome import Table


class Figures(Experiment):
    """The Cayley graphs, the embedding picture and the comparison of greedy with joint herding."""

    name = "figures"
    title = "The paper's figures"

    def protocol(self) -> list[str]:
        """Return what was drawn."""
        embedding = "The embedding picture is a real kernel principal component analysis, not a sketch."
        kernel = f"Mallows kernel with nu = {herding_figure.KERNEL.nu}"
        return [f"{embedding} Herding: {kernel}, nothing known of three (hexagon) or four items."]

    def tables(self) -> list[Table]:
        """Return the numbers behind the curves of herding."""
        found = herding_figure.curves(self.study)
        numbers = map(str, range(1, len(found["joint"]) + 1))
        rows = [(name, *found[name]) for name in ("Monte Carlo", "antithetic", "greedy", "joint")]
        return [Table("herding", "Distance to the mean embedding by completions", ("", *numbers), rows)]

    def figures(self) -> list[tuple[str, str]]:
        """Draw all three."""
        return [figure.draw(self.study) for figure in (cayley_graphs, embedding_figure, herding_figure)]

    def findings(self) -> list[str]:
        """Return what the figures show, in numbers."""
        found, points = herding_figure.curves(self.study), embedding_figure.embedded(self.study)
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
                f"Two completions: herding one by one {'agrees' if same else 'does not agree'} with choosing both at "
                f"once, as the paper proves; three: {found['greedy'][2]:.3f} one by one, {found['joint'][2]:.3f} at "
                "once, as it says."
            ),
        ]

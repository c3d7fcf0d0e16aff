"""An experiment of a study: what was done, tables and figures of it, and what holds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from rankernel.experiments.drawing import has_matplotlib
from rankernel.experiments.outcome import Outcome, Table
from rankernel.experiments.study import Study


class Experiment(ABC):
    """One experiment. Its sizes, in a full study and in a quick one, are set where it is made."""

    name: ClassVar[str]
    title: ClassVar[str]

    def __init__(self, study: Study) -> None:
        self.study = study

    @abstractmethod
    def protocol(self) -> list[str]:
        """Return what was done, in paragraphs."""

    @abstractmethod
    def tables(self) -> list[Table]:
        """Return all tables."""

    def figures(self) -> list[tuple[str, str]]:
        """Draw all figures, and return their names and captions."""
        return []

    @abstractmethod
    def findings(self) -> list[str]:
        """Return what holds."""

    def outcome(self) -> Outcome:
        """Return everything; without Matplotlib there are no figures."""
        figures = self.figures() if has_matplotlib() else []
        return Outcome(self.name, self.title, self.protocol(), self.tables(), figures, self.findings())

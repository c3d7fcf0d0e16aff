"""An experiment of a study: what was done, tables and figures of it, and what holds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from reproduction.outcome import Outcome, Table
from reproduction.study import Study
from reproduction.sushi_users import people_of


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

    def left_out(self) -> str:
        """Return what is missing, and why, if anything is."""
        return ""

    def outcome(self) -> Outcome:
        """Return everything."""
        parts = self.protocol(), self.tables(), self.figures(), self.findings()
        return Outcome(self.name, self.title, *parts, self.left_out())


class ExperimentOnPeople(Experiment):
    """An experiment on the people of the SUSHI data, or on a stand-in for them, which is said everywhere."""

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self.people = people_of(study)

    def outcome(self) -> Outcome:
        """Return everything, marked where it is of synthetic data."""
        found = super().outcome()
        return found.on_synthetic_data() if self.people.synthetic else found

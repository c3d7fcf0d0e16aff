"""What commands that compute have in common: rankings, kernel and method from the words of the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rankernel.cli.kernel_text import parse_kernel, parse_method, settled_method
from rankernel.cli.output import steps
from rankernel.cli.read import read
from rankernel.report.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from rankernel.gram.methods import MethodLike
    from rankernel.kernels import Kernel
    from rankernel.report.study import Study

__all__ = ["Problem", "pose", "study"]


@dataclass(frozen=True, eq=False)
class Problem:
    """What to compute with: the rankings, the kernel with its width, the method."""

    source: Source
    kernel: Kernel
    method: MethodLike

    def assumptions(self, values: str) -> dict[str, str]:
        """Return what was assumed, in words."""
        from rankernel.report.words import short_numbers

        rankings = self.source.rankings
        return {
            "data": f"{self.source.title}: {rankings.n_voters:,} voters, {rankings.n_items:,} items",
            "read as": self.source.reading,
            "kernel": short_numbers(str(self.kernel)),
            "values": values,
        }


def pose(file: Path | None, kernel: str, method: str, seed: int, *reading: Any) -> Problem:
    """Return the problem; what is wrong with the command line is found before the file is read."""
    wanted, _ = parse_kernel(kernel), parse_method(method, seed)
    source = read(file, *reading)
    chosen = wanted.resolve(source.rankings)
    return Problem(source, chosen, settled_method(method, chosen, source.rankings, seed))


def study(problem: Problem, seed: int, **settings: Any) -> Study:
    """Return the study of a problem, with a progress bar."""
    from rankernel.report.study import Settings, n_steps, studied

    chosen = Settings(kernel=problem.kernel, method=problem.method, seed=seed, **settings)
    with steps(n_steps(problem.source, chosen), "Reading") as step:
        return studied(problem.source, chosen, step)

"""What commands that compute have in common: rankings, kernel and method from the words of the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rankernel.cli.kernel_text import parse_kernel, parse_method
from rankernel.cli.options import Computing, Reading
from rankernel.cli.output import steps
from rankernel.cli.reading import read
from rankernel.reports.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from rankernel.gram.methods import MethodLike
    from rankernel.kernels.base import Kernel
    from rankernel.reports.summary import Summary


@dataclass(frozen=True, eq=False)
class Job:
    """What to compute with: the rankings, the kernel with its width, the method."""

    source: Source
    kernel: Kernel
    method: MethodLike

    def assumptions(self, values: str) -> dict[str, str]:
        """Return what was assumed, in words."""
        from rankernel.reports.text import round_numbers

        rankings, words = self.source.rankings, self.source.wording
        return {
            "data": f"{self.source.title}: {words.count_voters(rankings.n_voters)}, "
            f"{words.count_items(rankings.n_items)}",
            "read as": self.source.reading,
            "kernel": round_numbers(str(self.kernel)),
            "values": values,
        }


def read_job(file: Path | None, reading: Reading, computing: Computing) -> Job:
    """Return the job; what is wrong with the command line is found before the file is read."""
    wanted, how = parse_kernel(computing.kernel), parse_method(computing.method, computing.seed)
    source = read(file, reading)
    with steps(None, "Kernel"):
        return Job(source, wanted.resolve(source.rankings), how)


def summary_of(job: Job, seed: int, **settings: Any) -> Summary:
    """Return the summary of a job, with a progress bar."""
    from rankernel.reports.summary import Settings, n_steps, summarize

    chosen = Settings(kernel=job.kernel, method=job.method, rng=seed, **settings)
    with steps(None, "Ballots"):
        total = n_steps(job.source, chosen)
    with steps(total, "Ballots") as step:
        return summarize(job.source, chosen, step)

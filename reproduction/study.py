"""A study: where results go, and what has been computed already."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from rankernel import __version__
from rankernel._utils.files import whole_file

T = TypeVar("T")


def silent(_: str) -> None:
    """Say nothing."""


@dataclass
class Study:
    """One run of the experiments: its folder, its seed, its size, and the cells that are known."""

    folder: Path  # where everything is written
    seed: int = 0  # where all randomness comes from; each purpose has a stream of its own
    quick: bool = False  # few repetitions, to see that everything works
    data: Path | None = None  # the folder with the SUSHI data, or the one above
    say: Callable[[str], None] = silent  # is told of progress
    known: dict[str, dict[str, Any]] = field(default_factory=dict, init=False, repr=False)

    def pick(self, full: T, quick: T) -> T:
        """Return the size of something in a full run, or in a quick one."""
        return quick if self.quick else full

    def stream(self, *purpose: Any) -> int:
        """Return the seed of one purpose: what others draw does not change it."""
        digest = blake2b(json.dumps([self.seed, *purpose]).encode(), digest_size=6).digest()
        return int.from_bytes(digest, "little")

    def generator(self, *purpose: Any) -> np.random.Generator:
        """Return random numbers for one purpose."""
        return np.random.default_rng(self.stream(*purpose))

    def cell(self, experiment: str, compute: Callable[[], Any], **parameters: Any) -> Any:
        """Return what a computation gives, from the folder if it was done there before with the same parameters.

        The computation returns numbers, lists and dictionaries of them. The parameters are all that it depends on; the
        seed, the version and whether the study is quick are added. The experiment names the file of the cell.
        """
        key = canonical({"seed": self.seed, "quick": self.quick, "version": __version__, **parameters})
        cells = self.cells(experiment)
        if key not in cells:
            self.say(f"{experiment}: {' '.join(str(value) for value in parameters.values())}")
            start = perf_counter()
            cells[key] = json.loads(canonical(compute()))  # so that a value is the same when read again
            self.time(f"{experiment} {canonical(parameters)}", perf_counter() - start)
            entries = [{"parameters": json.loads(each), "value": value} for each, value in cells.items()]
            write_text(self.folder / "cells" / f"{experiment}.json", listed(entries))
        return cells[key]

    def cells(self, experiment: str) -> dict[str, Any]:
        """Return all known cells of an experiment by their parameters."""
        if experiment not in self.known:
            path = self.folder / "cells" / f"{experiment}.json"
            entries = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
            self.known[experiment] = {canonical(entry["parameters"]): entry["value"] for entry in entries}
        return self.known[experiment]

    def time(self, what: str, seconds: float) -> None:
        """Note how long something took: apart from the results, which are the same every time."""
        self.timings[what] = round(seconds, 6)
        write_text(self.folder / "timings.json", json.dumps(self.timings, indent=1, sort_keys=True) + "\n")

    @property
    def timings(self) -> dict[str, float]:
        """Seconds that things took, by name."""
        if "timings" not in self.known:
            path = self.folder / "timings.json"
            self.known["timings"] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        return self.known["timings"]


def canonical(value: Any) -> str:
    """Return JSON in one form only."""
    return json.dumps(value, sort_keys=True, default=plain)


def plain(value: Any) -> Any:
    """Return NumPy numbers and arrays as Python's."""
    return value.tolist()


def listed(entries: list[dict[str, Any]]) -> str:
    """Return JSON with one entry a line, in an order that does not depend on when each was computed."""
    return "[\n" + ",\n".join(sorted(map(canonical, entries))) + "\n]\n"


def write_text(path: Path, text: str) -> None:
    """Write a file so that it is there in whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")

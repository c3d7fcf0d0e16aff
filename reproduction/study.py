"""A run of the experiments: output folder, seeds, cached computations, data, and the base classes of experiments."""

from __future__ import annotations

import json
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from rankernel import IndefiniteKernelWarning, Kernel, MonteCarlo, RankingError, Rankings, __version__
from rankernel._utils import FloatArray, IntArray
from rankernel.completions import draw
from rankernel.datasets import mallows, mixture, uniform
from reproduction.results import Result, Table, write_text
from reproduction.sushi import load_sushi

T = TypeVar("T")

N_SYNTHETIC = 2000  # users of the synthetic data


@dataclass
class Study:
    """One run of the experiments."""

    folder: Path  # where results are written
    seed: int = 0  # of all random numbers
    quick: bool = False  # few replicates, to test that everything works
    data: Path | None = None  # the folder with the SUSHI data, or its parent
    report: Callable[[str], object] = field(default=lambda _: None)  # receives progress messages
    cache: dict[str, dict[str, Any]] = field(default_factory=dict, init=False, repr=False)

    def pick(self, full: T, quick: T) -> T:
        """Return the first value in a full run, the second in a quick one."""
        return quick if self.quick else full

    def stream(self, *purpose: Any) -> int:
        """Return an independent seed for one purpose."""
        digest = blake2b(json.dumps([self.seed, *purpose]).encode(), digest_size=6).digest()
        return int.from_bytes(digest, "little")

    def generator(self, *purpose: Any) -> np.random.Generator:
        """Return an independent generator for one purpose."""
        return np.random.default_rng(self.stream(*purpose))

    def cell(self, experiment: str, compute: Callable[[], Any], **parameters: Any) -> Any:
        """Return the result of a computation, from the output folder if it was computed before.

        The result consists of numbers, lists and dictionaries. ``parameters`` is everything that it depends on beside
        the seed, the version and whether the run is quick.
        """
        key = canonical({"seed": self.seed, "quick": self.quick, "version": __version__, **parameters})
        path = self.folder / "cells" / f"{experiment}.json"
        if experiment not in self.cache:
            entries = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
            self.cache[experiment] = {canonical(entry["parameters"]): entry["value"] for entry in entries}
        cells = self.cache[experiment]
        if key not in cells:
            self.report(f"{experiment}: {' '.join(str(value) for value in parameters.values())}")
            cells[key] = json.loads(canonical(compute()))  # the same value as when it is read from the file
            entries = [{"parameters": json.loads(each), "value": value} for each, value in cells.items()]
            lines = sorted(map(canonical, entries))  # in an order that does not depend on the order of computation
            write_text(path, "[\n" + ",\n".join(lines) + "\n]\n")
        return cells[key]


def canonical(value: Any) -> str:
    """Return JSON in a unique form."""
    return json.dumps(value, sort_keys=True, default=lambda array: array.tolist())


# ---------------------------------------------------------------------- data


class MissingSushiError(RankingError):
    """The SUSHI data is not available."""


@dataclass(frozen=True, eq=False)
class Users:
    """Full rankings of ten items, and labels of the users: "region", "region_until_15" and "east_west"."""

    name: str
    rankings: Rankings
    labels: dict[str, IntArray]
    synthetic: bool = False

    def __len__(self) -> int:
        return len(self.rankings)


def sushi_users(study: Study) -> Users:
    """Return the users of the SUSHI data; a quick run without the data uses synthetic users."""
    folder = study.data or os.environ.get("RANKERNEL_DATA") or "."
    try:
        sushi = load_sushi(folder)
    except FileNotFoundError as error:
        if study.quick and study.data is None:
            return synthetic_users(study)
        raise MissingSushiError(
            f"{error}. The data may not be redistributed. Set the environment variable RANKERNEL_DATA to its folder, "
            "or use --data. The other experiments run without it"
        ) from None
    labels = {name: sushi.users[name] for name in ("region", "region_until_15", "east_west")}
    return Users("SUSHI, set A", sushi.rankings, labels)


def synthetic_users(study: Study) -> Users:
    """Return synthetic users: ten regions of unequal size with overlapping Mallows distributions."""
    centers = uniform(10, 10, rng=study.generator("stand-in centers")).ranks
    regions = [partial(mallows, center=center, theta=0.1) for center in centers]
    rankings, region = mixture(N_SYNTHETIC, regions, 0.6 ** np.arange(10), rng=study.generator("stand-in"))
    region = region.astype(np.int64)
    labels = {"region": region, "region_until_15": region, "east_west": (region % 3 == 1).astype(np.int64)}
    return Users("synthetic data instead of SUSHI", rankings, labels, synthetic=True)


# ---------------------------------------------------------------------- the four kinds of Gram matrices in the tables

FULL, IID, ANTITHETIC, EXACT = "full", "Monte Carlo", "antithetic", "exact"
ROWS = (FULL, IID, ANTITHETIC, EXACT)
DRAWN = (IID, ANTITHETIC)


def method_of(row: str, n_draws: int, seed: int) -> Any:
    """Return the method of a row of a table; the estimators are those of the paper."""
    if row not in DRAWN:
        return "exact"
    coupling = "iid" if row == IID else "antithetic"
    return MonteCarlo(n_draws, coupling, control_variates=0, rng=seed)


def gram_by(row: str, kernel: Kernel, full: Rankings, k: int, n_draws: int, seed: int) -> FloatArray:
    """Return the Gram matrix of full rankings, or of their top-k lists by another method.

    Every user has their own draws, also if lists are equal, as in the paper. The exponential Cayley kernel is
    indefinite at the median heuristic, which the results page mentions once.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IndefiniteKernelWarning)
        if row == FULL:
            return kernel.gram(full)
        method, n = method_of(row, n_draws, seed), len(full)
        if row not in DRAWN:
            return kernel.gram(full.top(k), method=method)
        drawn = draw(full.top(k), n_draws, coupling=method.coupling, rng=seed, rows=np.arange(n)).ranks.astype(np.int32)
        values = (kernel.matrix(own, drawn.reshape(n * n_draws, -1)).mean(axis=0) for own in drawn)
        gram = np.array([each.reshape(n, n_draws).mean(axis=1) for each in values])
        return np.asarray(gram + gram.T) / 2


# ---------------------------------------------------------------------- experiments


class Experiment(ABC):
    """One experiment; the constructor sets its sizes for full and quick runs."""

    name: ClassVar[str]
    title: ClassVar[str]

    def __init__(self, study: Study) -> None:
        self.study = study

    @abstractmethod
    def protocol(self) -> list[str]:
        """Return paragraphs that describe the protocol."""

    @abstractmethod
    def tables(self) -> list[Table]:
        """Return all tables."""

    def figures(self) -> list[tuple[str, str]]:
        """Draw all figures, and return their names and captions."""
        return []

    @abstractmethod
    def findings(self) -> list[str]:
        """Return the findings about the paper's claims."""

    def skipped(self) -> str:
        """Return the parts that were skipped and the reason, or an empty string."""
        return ""

    def result(self) -> Result:
        """Return the results."""
        parts = self.protocol(), self.tables(), self.figures(), self.findings()
        return Result(self.name, self.title, *parts, self.skipped())


class UserExperiment(Experiment):
    """An experiment on the users of the SUSHI data, or on synthetic users, whose results are marked."""

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self.users = sushi_users(study)

    def result(self) -> Result:
        """Return the results, marked if they are measured on synthetic data."""
        result = super().result()
        return result.on_synthetic_data() if self.users.synthetic else result

"""Timing side by side: the candidates take turns, so that a busy moment hits all of them; the median counts."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np

import rankernel


@dataclass(frozen=True)
class Row:
    """One comparison: how long rankernel and a peer took for the same work."""

    claim: str
    size: str
    peer: str
    seconds: float
    peer_seconds: float
    wanted: str

    @property
    def ratio(self) -> float:
        """How many times longer the peer took."""
        return self.peer_seconds / self.seconds

    def as_dict(self) -> dict[str, object]:
        """The numbers, with None where there is no peer."""
        found = asdict(self) | {"ratio": self.ratio}
        return {name: None if value != value else value for name, value in found.items()}


PAUSE = 0.1  # seconds: threads of linear algebra libraries go on spinning for a while when their work is done
TURN = 0.2  # seconds: what is over sooner is done several times in its turn, so that waking up counts little


def medians(*candidates: Callable[[], object], repeats: int = 5) -> list[float]:
    """Return the median seconds of each candidate over rounds in which they take turns, after one to warm up."""
    for candidate in candidates:
        candidate()
    times: list[list[float]] = [[] for _ in candidates]
    for _ in range(repeats):
        for candidate, own in zip(candidates, times, strict=True):
            time.sleep(PAUSE)
            own.append(turn(candidate))
    return [statistics.median(own) for own in times]


def turn(candidate: Callable[[], object]) -> float:
    """Return the mean seconds of a candidate in one turn."""
    start = time.perf_counter()
    calls = 0
    while calls == 0 or time.perf_counter() - start < TURN:
        candidate()
        calls += 1
    return (time.perf_counter() - start) / calls


def once(candidate: Callable[[], object]) -> float:
    """Return the seconds of one call, for peers too slow to repeat."""
    start = time.perf_counter()
    candidate()
    return time.perf_counter() - start


def save(path: str | Path, rows: list[dict[str, Any]], **setting: Any) -> None:
    """Write results as JSON, with what they were measured on."""
    versions = {"rankernel": rankernel.__version__, "numpy": np.__version__, "numba": numba.__version__}
    machine = {"cores": os.cpu_count(), "processor": platform.machine(), "python": platform.python_version()}
    content = {"versions": versions, "machine": machine, **setting, "rows": rows}
    Path(path).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

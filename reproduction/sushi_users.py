"""The people whose rankings are clustered and classified: those of the SUSHI data, or a stand-in for them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from rankernel._utils.arrays import IntArray
from rankernel.datasets import mallows, mixture, uniform
from rankernel.errors import RankingError
from rankernel.io.public_data import check_sushi, load_sushi, sushi_folder
from rankernel.rankings import Rankings
from reproduction.study import Study

N_STAND_INS = 2000


class MissingSushiError(RankingError):
    """The SUSHI data is not there."""


@dataclass(frozen=True, eq=False)
class People:
    """Full rankings of ten items, and labels of those who gave them: "region", "east_west" and more."""

    name: str
    rankings: Rankings
    labels: dict[str, IntArray]
    synthetic: bool = False

    def __len__(self) -> int:
        return len(self.rankings)


def people_of(study: Study) -> People:
    """Return the people of the SUSHI data; where none is found or named, a quick study takes a stand-in."""
    folder = study.data or os.environ.get("RANKERNEL_DATA") or "."
    try:
        sushi = load_sushi(folder)
        check_sushi(sushi_folder(Path(folder), "a"))  # results are compared with those of this very data
    except FileNotFoundError as error:
        if study.quick and study.data is None:
            return stand_in(study)
        raise MissingSushiError(
            f"{error}. The data may not be redistributed, so it does not come with this package. Set the environment "
            "variable RANKERNEL_DATA to its folder, or give --data. Everything else runs without it"
        ) from None
    labels = {name: sushi.users[name] for name in ("region", "region_until_15", "east_west")}
    return People("SUSHI, set A", sushi.rankings, labels)


def stand_in(study: Study) -> People:
    """Return synthetic people: ten regions of unequal size, whose tastes overlap."""
    centers = uniform(10, 10, rng=study.generator("stand-in centers")).ranks
    shares = 0.6 ** np.arange(10)
    regions = [partial(mallows, center=center, theta=0.1) for center in centers]
    rankings, region = mixture(N_STAND_INS, regions, shares, rng=study.generator("stand-in"))
    region = region.astype(np.int64)
    halves = (region % 3 == 1).astype(np.int64)
    labels = {"region": region, "region_until_15": region, "east_west": halves}
    return People("a synthetic stand-in for SUSHI", rankings, labels, synthetic=True)

"""What a simulation of tests begins with: the result of a test, the data of one, or models and an effect."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankernel._utils.checks import check_list, check_number, is_number, short_repr
from rankernel.data import Data, concat
from rankernel.errors import RankingError
from rankernel.kernels.base import Kernel
from rankernel.rankings import Rankings, as_rankings
from rankernel.stats._permutations import generator
from rankernel.stats._populations import GroupPopulation, JudgePopulation, Population
from rankernel.stats.k_sample import k_sample_test
from rankernel.stats.mmd import mmd_test
from rankernel.stats.pairwise import KSampleResult
from rankernel.stats.results import AggregatedMMDResult, ChangePointResult, MMDResult, PairedResult, Told

FROM_MODEL = 1000  # voters that stand for a model
WANTED = "a result such as that of mmd_test(X, Y), a pair (X, Y) or (rankings, groups), or an effect"
Pilot = MMDResult | KSampleResult | PairedResult


def population_of(pilot: Any, effect: float | None, models: Any, kernel: Kernel | None, seed: int) -> Population:
    """Return the population of a pilot, of data, or of models that differ by an effect."""
    if is_number(pilot):
        if effect is not None:
            raise ValueError(f"pilot={short_repr(pilot)} is an effect already; leave out effect={short_repr(effect)}")
        effect, pilot = check_number("pilot", pilot, 0, 1), of_models(models, kernel, seed)
    elif models is not None:
        raise ValueError("models are for an effect without pilot data, such as power(0.02, 200, models=[...])")
    elif not isinstance(pilot, Told):
        pilot = of_data(pilot, kernel)
    elif kernel is not None:
        raise ValueError("the pilot was tested with a kernel; leave out kernel, or give the pilot data themselves")
    found = as_pilot(pilot)
    wanted = max(found.effect, 0.0) if effect is None else check_number("effect", effect, 0, 1)
    if isinstance(found, PairedResult):
        return JudgePopulation.of(found._pairs, wanted)
    return GroupPopulation.of(found._voters, wanted, found._biased)


def as_pilot(pilot: Any) -> Pilot:
    """Return the result of a test that can be simulated, refusing any other."""
    why = {
        AggregatedMMDResult: "the kernel was chosen on the same data",
        ChangePointResult: "the groups were chosen on the same data",
    }.get(type(pilot), "it compares no groups")
    if isinstance(pilot, AggregatedMMDResult) or not isinstance(pilot, Pilot):
        raise TypeError(
            f"power from {type(pilot).__name__} is not possible, as {why}; give the result of mmd_test, k_sample_test "
            "or paired_test, two samples, or rankings and the group of each"
        )
    if np.isnan(pilot.effect):
        raise RankingError("the pilot has no effect that could be estimated; each group needs two voters")
    return pilot


def of_data(pilot: Any, kernel: Kernel | None) -> Pilot:
    """Return the test of pilot data: two samples, or rankings and the group of each."""
    if not isinstance(pilot, tuple | list) or len(pilot) != 2:
        raise TypeError(f"pilot={short_repr(pilot)} is not possible; give {WANTED}")
    first, second = pilot
    if isinstance(second, Data) or np.ndim(second) == 2:
        return mmd_test(first, second, kernel, 1)
    return k_sample_test(first, second, kernel, 1)


def of_models(models: Any, kernel: Kernel | None, seed: int) -> Pilot:
    """Return the test of voters drawn from models, one for each group."""
    if models is None:
        raise ValueError(
            "an effect alone does not say what voters are like; give models, such as models=[MallowsModel([0, 1, 2], "
            "1.0), MallowsModel([1, 0, 2], 1.0)], or pilot data"
        )
    given = check_list("models", models, "a list of models, one for each group")
    if len(given) < 2:
        raise ValueError(f"models has {len(given)} models; give one for each of two groups or more")
    drawn = [voters_of(model, generator(seed, f"voters of model {place}")) for place, model in enumerate(given)]
    if len({part.n_items for part in drawn}) > 1:
        raise RankingError(f"the models rank {', '.join(str(part.n_items) for part in drawn)} items; all must the same")
    labels = np.repeat(np.arange(len(drawn)), [len(part) for part in drawn])
    return k_sample_test(concat(drawn), labels, kernel, 1)


def voters_of(model: Any, rng: np.random.Generator) -> Rankings:
    """Return so many voters of a model that they stand for it."""
    if hasattr(model, "sample"):
        return as_rankings(model.sample(FROM_MODEL, rng=rng), "a draw of models")
    if callable(model):
        return as_rankings(model(FROM_MODEL, rng), "a draw of models")
    raise TypeError(
        f"models holds {short_repr(model)}; give models such as MallowsModel(center, theta), or functions of (n_rankings, "
        "seed)"
    )

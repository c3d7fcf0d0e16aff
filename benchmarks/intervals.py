"""Coverage of the 95 % confidence intervals of effects, and their agreement with p-values.

A row is one setting. The effect of a population of groups is known exactly, as all 120 rankings of five items can be
enumerated; that of judges, of covariates and of models is the estimate from many voters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import numpy as np

import rankernel as rk

KERNEL = rk.Mallows(0.2)
CENTER, NEAR, REVERSED = (0, 1, 2, 3, 4), (1, 0, 2, 4, 3), (4, 3, 2, 1, 0)
MANY = 4000  # voters that represent a population
N_PERMUTATIONS, N_BOOTSTRAP = 199, 299
Groups = tuple[tuple[tuple[int, ...], float, int], ...]  # the centre, the concentration and the voters of each

GROUPS: dict[str, Groups] = {
    "the same": ((CENTER, 0.5, 30), (CENTER, 0.5, 30)),
    "the same, few": ((CENTER, 0.5, 8), (CENTER, 0.5, 8)),
    "near, 30 and 30": ((CENTER, 0.5, 30), (NEAR, 0.5, 30)),
    "near, 10 and 90": ((CENTER, 0.5, 10), (NEAR, 0.5, 90)),
    "near, 5 and 100": ((CENTER, 0.5, 5), (NEAR, 0.5, 100)),
    "opposite, sharp, 3 and 3": ((CENTER, 3.0, 3), (REVERSED, 3.0, 3)),
    "near, 100 and 100": ((CENTER, 0.5, 100), (NEAR, 0.5, 100)),
    "near, 200 and 200": ((CENTER, 1.0, 200), (NEAR, 1.0, 200)),
    "near, sharp, 8 and 8": ((CENTER, 1.5, 8), (NEAR, 1.5, 8)),
    "one sharper, 40 and 40": ((CENTER, 0.5, 40), (CENTER, 2.0, 40)),
    "one sharper, 60 and 10": ((CENTER, 0.5, 60), (CENTER, 2.0, 10)),
    "opposite, 8 and 8": ((CENTER, 1.0, 8), (REVERSED, 1.0, 8)),
    "opposite, sharp, 10 and 10": ((CENTER, 3.0, 10), (REVERSED, 3.0, 10)),
    "opposite, sharp, 30 and 30": ((CENTER, 3.0, 30), (REVERSED, 3.0, 30)),
    "three groups of 20": ((CENTER, 1.0, 20), (NEAR, 1.0, 20), (REVERSED, 1.0, 20)),
    "one of three differs, 10, 30 and 80": ((CENTER, 0.5, 10), (NEAR, 0.5, 30), (CENTER, 0.5, 80)),
    "one of four differs, 20 each": ((CENTER, 0.5, 20), (NEAR, 0.5, 20), (CENTER, 0.5, 20), (CENTER, 0.5, 20)),
    "four groups of 8": ((CENTER, 1.0, 8), (NEAR, 1.0, 8), (REVERSED, 1.0, 8), (REVERSED, 2.0, 8)),
}


def probabilities(center: tuple[int, ...], theta: float) -> np.ndarray:
    """Return the probabilities of all rankings of five items by a Mallows model."""
    ranks = np.array(list(permutations(range(5))))
    first, second = np.triu_indices(5, 1)
    where = np.array(center)
    distances = ((ranks[:, first] - ranks[:, second]) * (where[first] - where[second]) < 0).sum(axis=1)
    weights = np.exp(-theta * distances)
    return np.asarray(weights / weights.sum())


def population_effect(gram: np.ndarray, shares: np.ndarray) -> float:
    """Return the effect of a population, from the share of each ranking in each group."""
    products = shares @ gram @ shares.T
    within = float((shares @ np.diagonal(gram) - np.diagonal(products)).mean())
    between = float(np.diagonal(products).mean() - products.mean())
    return between / (between + within)


def groups_of(groups: Groups) -> tuple[float, Callable[[int], Any]]:
    """Return the effect of a population of groups, and the function that tests a sample."""
    every = rk.Rankings(list(permutations(range(5))))
    truth = population_effect(
        KERNEL.gram(every), np.stack([probabilities(center, theta) for center, theta, _ in groups])
    )
    sizes = [size for *_, size in groups]

    def test(run: int) -> Any:
        drawn = [
            rk.datasets.mallows(size, list(center), theta, rng=10 * run + place)
            for place, (center, theta, size) in enumerate(groups)
        ]
        return rk.k_sample_test(
            rk.concat(drawn), np.repeat(range(len(sizes)), sizes), KERNEL, n_permutations=N_PERMUTATIONS, rng=run
        )

    return (0.0 if len({each[:2] for each in groups}) == 1 else truth), test


def judges(n: int, shift: float) -> tuple[float, Callable[[int], Any]]:
    """Return the effect of judges who rank twice and move one item up, and the test of a sample."""

    def test(run: int, n_judges: int = n, n_permutations: int = N_PERMUTATIONS) -> Any:
        rng = np.random.default_rng(run)
        preference = rng.normal(0, 1, (n_judges, 5))
        first, second = (preference + rng.normal(0, 0.7, preference.shape) for _ in range(2))
        second[:, 0] += shift
        sides = rk.Rankings.from_scores(first), rk.Rankings.from_scores(second)
        return rk.paired_test(*sides, KERNEL, n_permutations=n_permutations, rng=run)

    return (test(10**6, MANY, 1).effect if shift else 0.0), test


def trend(n: int, change: float) -> tuple[float, Callable[[int], Any]]:
    """Return the effect of a linear trend of one item, and the test of a sample."""

    def test(run: int, n_voters: int = n, n_permutations: int = N_PERMUTATIONS) -> Any:
        scores = np.random.default_rng(run).normal(0, 1, (n_voters, 5))
        times = np.arange(n_voters) * (n / n_voters)
        scores[:, 0] += change * (2 * times / n - 1)
        return rk.trend_test(rk.Rankings.from_scores(scores), times, KERNEL, n_permutations=n_permutations, rng=run)

    return (test(10**6, MANY, 1).effect if change else 0.0), test


def fit(n: int, theta: float) -> tuple[float, Callable[[int], Any]]:
    """Return the effect between voters and the uniform model, and the test of a sample."""
    shares = np.stack([probabilities(CENTER, theta), probabilities(CENTER, 0.0)])
    truth = population_effect(KERNEL.gram(rk.Rankings(list(permutations(range(5))))), shares)

    def test(run: int) -> Any:
        X = rk.datasets.mallows(n, list(CENTER), theta, rng=run)
        return rk.goodness_of_fit_test(X, rk.Uniform(), KERNEL, n_simulations=N_PERMUTATIONS, rng=run)

    return (truth if theta else 0.0), test


SETTINGS: dict[str, Callable[[], tuple[float, Callable[[int], Any]]]] = {
    **{f"groups: {name}": (lambda groups=groups: groups_of(groups)) for name, groups in GROUPS.items()},  # type: ignore[misc]
    "paired: 30 judges, no change": lambda: judges(30, 0.0),
    "paired: 30 judges": lambda: judges(30, 1.0),
    "trend: 60, none": lambda: trend(60, 0.0),
    "trend: 60": lambda: trend(60, 1.0),
    "trend: 200": lambda: trend(200, 1.0),
    "fit: 30": lambda: fit(30, 0.5),
}


def bootstrapped(voters: Any, seed: int) -> tuple[float, float]:
    """Return the interval by a reflected bootstrap of the voters of each group, for comparison."""
    gram, rng, sizes = voters.gram, np.random.default_rng(seed), voters.sizes
    drawn = np.stack(
        [
            rng.multinomial(int(n), own / n, size=N_BOOTSTRAP)
            for n, own in zip(sizes, voters.table.sum(axis=0), strict=True)
        ],
        axis=1,
    ).astype(float)

    def effects(tables: np.ndarray, biased: bool) -> np.ndarray:
        k, less = len(sizes), 0.0 if biased else 1.0
        selves = tables @ np.diagonal(gram)
        sums = np.einsum("bgr,bhr->bgh", tables @ gram, tables)
        alike = (np.einsum("bgg->bg", sums) - less * selves) / (sizes * (sizes - less))
        apart = (sums / np.outer(sizes, sizes)).sum(axis=(1, 2)) - np.einsum("bgg,g->b", sums, sizes**-2.0)
        between = ((k - 1) * alike.sum(axis=1) - apart) / k**2
        whole = between + (selves / sizes - alike).mean(axis=1)
        return np.asarray(np.where(whole > 0, between, 0.0) / np.where(whole > 0, whole, 1.0))

    found = voters.table.sum(axis=0, dtype=float)[None]
    errors = np.quantile(effects(drawn, False) - effects(found, True)[0], [0.975, 0.025])
    low, high = effects(found, False)[0] - errors
    return float(low), float(high)


def coverage(n_runs: int, names: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the coverage and the mean length of intervals, and their agreement with p-values of at most 0.025."""
    for name, setting in SETTINGS.items():
        if names is not None and name not in names:
            continue
        truth, test = setting()
        results = [test(run) for run in range(n_runs)]
        low, high = np.array([result.effect_interval for result in results]).T
        below, above = low > 0, np.array([result.pvalue for result in results]) <= 0.025
        by_bootstrap = {}
        if name.startswith("groups"):
            down, up = np.array([bootstrapped(result._voters, run) for run, result in enumerate(results)]).T
            by_bootstrap = {
                "covered by a bootstrap": round(float(((down <= truth) & (truth <= up)).mean()), 3),
                "bootstrap excludes 0": round(float((down > 0).mean()), 3),
            }
        yield {
            "effect of": name,
            "effect": round(truth, 4),
            "runs": n_runs,
            "covered": round(float(((low <= truth) & (truth <= high)).mean()), 3),
            "too high": round(float((low > truth).mean()), 3),
            "too low": round(float((high < truth).mean()), 3),
            "mean length": round(float((high - low).mean()), 4),
            "p at most 0.025": round(float(above.mean()), 3),
            "excludes 0": round(float(below.mean()), 3),
            "both agree": round(float((above == below).mean()), 3),
            **by_bootstrap,
        }

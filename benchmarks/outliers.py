"""How many ballots are wrongly said to be outlying, and how many of those that are get found.

Usual ballots come from one model: Mallows or Plackett-Luce, or one that is neither: normal utilities (Thurstone), or
Mallows with a concentration for every voter. Outlying ones are of the same kind with the order turned
round, one for every twelve usual ones. The rate is the mean over runs of the share of wrongly named ones among all that
are named.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import rankernel as rk

LEVEL = 0.1
EVERY = 12  # usual ballots for each outlying one
Source = Callable[[int, int, float, int, bool], rk.Rankings]


def mallows(n: int, n_items: int, theta: float, seed: int, turned: bool) -> rk.Rankings:
    """Return ballots around an order, or around the opposite one."""
    center = list(range(n_items))
    return rk.datasets.mallows(n, center[::-1] if turned else center, theta, rng=seed)


def plackett_luce(n: int, n_items: int, theta: float, seed: int, turned: bool) -> rk.Rankings:
    """Return ballots by strengths, each the same part of the one before."""
    strengths = np.exp(-theta * np.arange(n_items))
    return rk.datasets.plackett_luce(n, strengths[::-1] if turned else strengths, rng=seed)


def thurstone(n: int, n_items: int, theta: float, seed: int, turned: bool) -> rk.Rankings:
    """Return ballots by normal utilities, whose means are so far apart that neighbours are ordered as by Mallows."""
    from scipy.special import ndtri

    gap = np.sqrt(2) * float(ndtri(1 / (1 + np.exp(-theta))))
    means = -gap * np.arange(n_items)
    scores = (means[::-1] if turned else means) + np.random.default_rng(seed).normal(size=(n, n_items))
    return rk.Rankings.from_scores(scores)


def uneven(n: int, n_items: int, theta: float, seed: int, turned: bool) -> rk.Rankings:
    """Return ballots of voters with concentrations between half and one and a half times that of the others."""
    thetas = theta * np.random.default_rng(seed).uniform(0.5, 1.5, n)
    return rk.concat([mallows(1, n_items, each, 10**4 * seed + i, turned) for i, each in enumerate(thetas.tolist())])


SOURCES: dict[str, Source] = {
    "Mallows": mallows,
    "Plackett-Luce": plackett_luce,
    "Thurstone": thurstone,
    "uneven Mallows": uneven,
}
THETAS = (0.5, 1.0, 2.0, 3.0)
SETTINGS = [
    *[("Mallows", k, n, theta, None) for k, n in ((3, 100), (5, 100), (7, 300), (8, 50)) for theta in THETAS],
    *[("Plackett-Luce", k, n, theta, None) for k, n in ((4, 50), (7, 200)) for theta in THETAS],
    ("Mallows", 7, 200, 1.0, 3),
    ("Plackett-Luce", 7, 200, 1.0, 3),
    *[("Thurstone", 7, 200, theta, None) for theta in (0.5, 2.0)],
    *[("uneven Mallows", 7, 200, theta, None) for theta in (0.5, 1.0, 2.0)],
]  # fmt: skip


def named(source: Source, n: int, n_items: int, theta: float, top: int | None, run: int, odd: int) -> Any:
    """Return how many usual and how many outlying ballots are named, and whether a warning came."""
    X = source(n, n_items, theta, 2 * run, False)
    if odd:
        X = rk.concat([X, source(odd, n_items, theta, 2 * run + 1, True)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = rk.outlier_test(X if top is None else X.top(top), level=LEVEL, rng=run).outlying
    return found[:n].sum(), found[n:].sum(), any(each.category is rk.MisfitWarning for each in caught)


def outlying(n_runs: int, settings: list[Any] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the false discovery rate without a reference, with and without outlying ballots, and how many are found."""
    for kind, n_items, n, theta, top in SETTINGS if settings is None else settings:
        odd = n // EVERY
        none, some = (
            np.array([named(SOURCES[kind], n, n_items, theta, top, run, each) for run in range(n_runs)], dtype=float)
            for each in (0, odd)
        )
        yield {
            "usual ballots": kind,
            "items": n_items,
            "first places only": top,
            "voters": n,
            "concentration": theta,
            "runs": n_runs,
            "level": LEVEL,
            "rate, none outlying": round(float((none[:, 0] > 0).mean()), 4),
            "rate, some outlying": round(float((some[:, 0] / np.maximum(some[:, :2].sum(axis=1), 1)).mean()), 4),
            "found": round(float(some[:, 1].mean() / odd), 4),
            "warned": round(float(np.concatenate([none[:, 2], some[:, 2]]).mean()), 4),
        }


def with_reference(n_runs: int) -> Iterator[dict[str, Any]]:
    """Yield the same with a reference of usual ballots."""
    for theta in (0.5, 1.0, 2.0):
        wrong, found = [], []
        for run in range(n_runs):
            X = rk.concat([mallows(100, 7, theta, 2 * run, False), mallows(8, 7, theta, 2 * run + 1, True)])
            out = rk.outlier_test(X, mallows(300, 7, theta, 10**6 + run, False), level=LEVEL, rng=run).outlying
            wrong.append(out[:100].sum() / max(int(out.sum()), 1))
            found.append(out[100:].mean())
        yield {
            "usual ballots": "Mallows, beside 300 of reference",
            "items": 7,
            "voters": 100,
            "concentration": theta,
            "runs": n_runs,
            "level": LEVEL,
            "rate, some outlying": round(float(np.mean(wrong)), 4),
            "found": round(float(np.mean(found)), 4),
        }

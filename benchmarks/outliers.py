"""False discovery rate and power of outlier detection.

Inliers come from one model: Mallows or Plackett-Luce, or one that is neither: normal utilities (Thurstone), or Mallows
with a different concentration for every voter. Outliers come from the same model with the order reversed, one for every
twelve inliers. The rate is the mean over runs of the share of inliers among all ballots that are called outliers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import rankernel as rk

ALPHA = 0.1
INLIERS_PER_OUTLIER = 12
Source = Callable[[int, int, float, int, bool], rk.Rankings]


def mallows(n: int, n_items: int, theta: float, seed: int, is_reversed: bool) -> rk.Rankings:
    """Return ballots around an order, or around the opposite one."""
    center = list(range(n_items))
    return rk.datasets.mallows(n, center[::-1] if is_reversed else center, theta, rng=seed)


def plackett_luce(n: int, n_items: int, theta: float, seed: int, is_reversed: bool) -> rk.Rankings:
    """Return ballots by strengths in geometric progression."""
    strengths = np.exp(-theta * np.arange(n_items))
    return rk.datasets.plackett_luce(n, strengths[::-1] if is_reversed else strengths, rng=seed)


def thurstone(n: int, n_items: int, theta: float, seed: int, is_reversed: bool) -> rk.Rankings:
    """Return ballots by normal utilities, with the same probability of adjacent swaps as Mallows."""
    from scipy.special import ndtri

    gap = np.sqrt(2) * float(ndtri(1 / (1 + np.exp(-theta))))
    means = -gap * np.arange(n_items)
    scores = (means[::-1] if is_reversed else means) + np.random.default_rng(seed).normal(size=(n, n_items))
    return rk.Rankings.from_scores(scores)


def with_concentrations(draw: Callable[[np.random.Generator, int], Any]) -> Source:
    """Return the source of Mallows ballots of voters whose concentrations, over the given one, are drawn."""

    def source(n: int, n_items: int, theta: float, seed: int, is_reversed: bool) -> rk.Rankings:
        rng = np.random.default_rng(seed)
        thetas = np.full(n, 1.5 * theta) if is_reversed else theta * np.asarray(draw(rng, n))  # outliers do not vary
        ranks = np.zeros((n, n_items), dtype=np.int64)
        for item in range(1, n_items):  # repeated insertion, each item passing a truncated geometric number of others
            mass = rng.random(n) * -np.expm1(-thetas * (item + 1))
            position = item - np.minimum(np.floor(-np.log1p(-mass) / thetas), item).astype(np.int64)
            ranks[:, :item] += ranks[:, :item] >= position[:, None]
            ranks[:, item] = position
        return rk.Rankings(n_items - 1 - ranks if is_reversed else ranks)

    return source


SOURCES: dict[str, Source] = {
    "Mallows": mallows,
    "Plackett-Luce": plackett_luce,
    "Thurstone": thurstone,
    "uneven Mallows": with_concentrations(lambda rng, n: rng.uniform(0.5, 1.5, n)),
    "Mallows, gamma (shape 4)": with_concentrations(lambda rng, n: rng.gamma(4, 1 / 4, n)),
    "Mallows, gamma (shape 2)": with_concentrations(lambda rng, n: rng.gamma(2, 1 / 2, n)),
    "Mallows, exponential": with_concentrations(lambda rng, n: rng.exponential(1, n)),
    **{
        f"Mallows, {share:.0%} at 2 and {1 - share:.0%} at 0.3": with_concentrations(
            lambda rng, n, share=share: np.where(rng.random(n) < share, 2.0, 0.3)
        )
        for share in (0.9, 0.8, 0.6)
    },
}
SETTINGS = [
    *[("Mallows", *each, None) for each in ((3, 100, 3.0), (5, 100, 1.0), (5, 100, 3.0), (7, 300, 0.5), (8, 50, 2.0))],
    *[("Plackett-Luce", 7, 200, theta, None) for theta in (0.5, 2.0)],
    ("Mallows", 7, 200, 1.0, 3),
    ("Thurstone", 7, 200, 2.0, None),
    *[(kind, 7, 200, 1.0, None) for kind in SOURCES if kind.startswith(("Mallows, ", "uneven"))],
]  # fmt: skip


def count_detected(source: Source, n: int, n_items: int, theta: float, top: int | None, run: int, odd: int) -> Any:
    """Return how many inliers and how many outliers are called outliers, and whether there was a warning."""
    X = source(n, n_items, theta, 2 * run, False)
    if odd:
        X = rk.concat([X, source(odd, n_items, theta, 2 * run + 1, True)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = rk.outlier_test(X if top is None else X.top(top), alpha=ALPHA, rng=run).is_outlier
    return found[:n].sum(), found[n:].sum(), any(each.category is rk.MisfitWarning for each in caught)


def with_null_models(n_runs: int, settings: list[Any] | None = None) -> Iterator[dict[str, Any]]:
    """Yield false discovery rate and power without a reference, with and without outliers."""
    for kind, n_items, n, theta, top in SETTINGS if settings is None else settings:
        odd = n // INLIERS_PER_OUTLIER
        none, some = (
            np.array(
                [count_detected(SOURCES[kind], n, n_items, theta, top, run, each) for run in range(n_runs)], dtype=float
            )
            for each in (0, odd)
        )
        rates = some[:, 0] / np.maximum(some[:, :2].sum(axis=1), 1)
        yield {
            "inliers": kind,
            "items": n_items,
            "top": top,
            "voters": n,
            "concentration": theta,
            "runs": n_runs,
            "alpha": ALPHA,
            "rate, no outliers": round(float((none[:, 0] > 0).mean()), 4),
            "rate, with outliers": round(float(rates.mean()), 4),
            "standard error": round(float(rates.std() / np.sqrt(n_runs)), 4),
            "power": round(float(some[:, 1].mean() / odd), 4),
            "warned": round(float(np.concatenate([none[:, 2], some[:, 2]]).mean()), 4),
        }


def with_reference(n_runs: int) -> Iterator[dict[str, Any]]:
    """Yield false discovery rate and power with a reference of inliers."""
    for theta in (0.5, 1.0, 2.0):
        wrong, found = [], []
        for run in range(n_runs):
            X = rk.concat([mallows(100, 7, theta, 2 * run, False), mallows(8, 7, theta, 2 * run + 1, True)])
            out = rk.outlier_test(
                X, reference=mallows(300, 7, theta, 10**6 + run, False), alpha=ALPHA, rng=run
            ).is_outlier
            wrong.append(out[:100].sum() / max(int(out.sum()), 1))
            found.append(out[100:].mean())
        yield {
            "inliers": "Mallows, reference of 300",
            "items": 7,
            "voters": 100,
            "concentration": theta,
            "runs": n_runs,
            "alpha": ALPHA,
            "rate, with outliers": round(float(np.mean(wrong)), 4),
            "standard error": round(float(np.std(wrong) / np.sqrt(n_runs)), 4),
            "power": round(float(np.mean(found)), 4),
        }

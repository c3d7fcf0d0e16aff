"""Nonsense to the front ends of other libraries: refused by name, as everywhere."""

import warnings

import pytest
from nonsense import faults

import rankernel as rk

BALLOTS = rk.Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"], ["c", "b"], ["a", {"b", "c"}]])
RANKS = BALLOTS.ranks
KERNEL = rk.Mallows(0.5)


def dask_calls():
    from rankernel.learn import dask

    features = rk.NystromFeatures(KERNEL, 2).fit(BALLOTS)
    return {
        "gram": (dask.gram, {"plan": KERNEL.plan(BALLOTS), "chunks": 2}),
        "nystrom": (
            dask.nystrom,
            {
                "X": BALLOTS,
                "kernel": KERNEL,
                "n_components": 2,
                "method": "auto",
                "rng": 0,
                "tol": 0.1,
                "n_fit": 3,
                "chunks": 2,
            },
        ),
        "transform": (dask.transform, {"features": features, "X": BALLOTS, "chunks": 2}),
        "mmd2": (dask.mmd2, {"X": BALLOTS, "Y": BALLOTS, "kernel": KERNEL, "method": "auto", "chunks": 2}),
    }


def gpy_calls():
    from rankernel.learn import gpy

    options = {"variance": 1.0, "method": "antithetic", "n_draws": 4, "rng": 0, "data": RANKS, "name": "votes"}
    drawing = gpy.RankingKern(3, KERNEL, method="antithetic", n_draws=4)
    return {
        "RankingKern": (gpy.RankingKern, {"input_dim": 3, "kernel": KERNEL, "active_dims": [0, 1, 2], **options}),
        "Mallows": (gpy.Mallows, {"input_dim": 3, "nu": 0.5, **options}),
        "Gaussian": (gpy.Gaussian, {"input_dim": 3, "nu": 0.5, **options}),
        "Kendall": (gpy.Kendall, {"input_dim": 3, **options}),
        "RankingKern.draws": (drawing.draws, {"X": RANKS}),  # K and Kdiag: GPy itself cuts their arrays first
    }


def gpytorch_calls():
    import gpytorch

    from rankernel.learn.gpytorch import RankingKernel

    constraints = {"nu": gpytorch.constraints.Positive()}
    return {
        "RankingKernel": (
            RankingKernel,
            {"kernel": KERNEL, "method": "auto", "data": RANKS, "constraints": constraints},
        ),
    }


def search_calls():
    from rankernel.learn.botorch import optimize_permutations

    return {
        "optimize_permutations": (
            optimize_permutations,
            {
                "objective": lambda ranks: float(ranks[0]),
                "n_items": 3,
                "n_evaluations": 2,
                "kernel": KERNEL,
                "n_initial": 2,
                "n_starts": 1,
                "rng": 0,
            },
        ),
    }


CALLS = {"dask": dask_calls, "GPy": gpy_calls, "gpytorch": gpytorch_calls, "botorch": search_calls}


@pytest.mark.parametrize("library", CALLS)
def test_nonsense_is_refused_by_name(library):
    pytest.importorskip(library)
    found = [
        f"{name}: {fault}"
        for name, (function, good) in CALLS[library]().items()
        for argument in good
        if (fault := faults(function, good, argument, any_function=argument == "objective"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("library", CALLS)
def test_sense_is_taken(library):
    pytest.importorskip(library)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a process fitted to three values
        for function, good in CALLS[library]().values():
            function(**good)

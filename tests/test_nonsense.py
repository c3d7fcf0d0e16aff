"""Invalid values of every argument of every public function and class.

A call may succeed, as not every value is invalid everywhere; otherwise the error must be raised by this package, with a
message that names the argument or the row of the data.
"""

import atexit
import dataclasses
import inspect
import shutil
import tempfile
from functools import cache
from pathlib import Path

import all_kernels
import all_tests
import numpy as np
import pytest
from nonsense import faults
from sklearn.base import BaseEstimator
from sklearn.gaussian_process import kernels as sklearn_kernels

import rankernel as rk
from rankernel import completions, datasets, distances, io, plots, stats
from rankernel.reports import Picture
from rankernel.stats.mmd import mmd2_streamed

FOLDER = Path(tempfile.mkdtemp(prefix="rankernel-nonsense-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

BALLOTS = rk.Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"], ["c", "b"], ["a", {"b", "c"}]])
NUMBERS = np.arange(8.0).reshape(4, 2)


def regression(**arguments):
    """Fit a regression, unless its kernel is a function, which may raise any error."""
    model = rk.KernelRankingRegressor(**arguments)
    return model if callable(model.kernel) else model.fit(NUMBERS, BALLOTS)


FULL = rk.Rankings([[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1]], items=["a", "b", "c"])
KERNEL = rk.Mallows(0.5)
SIMILARITY = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]])
METHOD = rk.MonteCarlo(32)  # enough for reliable standard errors
LABELS = ["u", "v", "u", "v"]
GRADES = {"query": ["q", "q", "r"], "document": ["a", "b", "b"], "grade": [2, 1, 1]}
JUDGED = rk.Rankings.from_long(GRADES, user="query", item="document", score="grade")
TREE = rk.linkage(BALLOTS, KERNEL)
SAMPLES = [FULL[[0, 0, 0, 3]], FULL[[2, 2, 1, 2]]]
PILOT = rk.mmd_test(FULL[[0, 0, 0, 3]], FULL[[2, 2, 1, 2]], KERNEL, n_permutations=9)
BATTLES = rk.Comparisons.from_arrays(list("aba"), list("bcc"), [1, 0, -1], judge=list("stu"))
PREFERENCES = rk.Preferences.from_pairs([[("a", "b")], [("c", "d"), ("a", "d")]])


def fitted(estimator):
    return estimator.fit(BALLOTS)


def built(cls):
    """Return a function that creates and fits an estimator, since `fit` checks the parameters."""

    def build(**arguments):
        return cls(**arguments).fit(BALLOTS)

    build.of = cls
    return build


# Each public name with valid arguments, which are replaced by invalid values one at a time.
CALLS = {
    "Rankings": (rk.Rankings, {"ranks": [[0, 1], [1, 0]], "items": ["a", "b"], "counts": [1, 2]}),
    "Rankings.from_orders": (
        rk.Rankings.from_orders,
        {"orders": [["a", "b"], ["b"]], "items": ["a", "b"], "counts": [1, 2], "unlisted": "free"},
    ),
    "Rankings.from_ranks": (
        rk.Rankings.from_ranks,
        {"ranks": [[0, 1], [1, 0]], "items": ["a", "b"], "counts": [1, 2], "unlisted": "free"},
    ),
    "Rankings.from_scores": (
        rk.Rankings.from_scores,
        {"scores": [[0, 1], [1, 0]], "items": ["a", "b"], "counts": [1, 2], "unlisted": "free"},
    ),
    "Rankings.from_long": (
        rk.Rankings.from_long,
        {
            "frame": GRADES,
            "items": ["a", "b"],
            "user": "query",
            "item": "document",
            "rank": None,
            "score": "grade",
            "unlisted": "last",
        },
    ),
    "Rankings.top": (BALLOTS.top, {"k": 2, "unlisted": "free"}),
    "Rankings.with_items": (BALLOTS.with_items, {"items": ["a", "b", "c", "d"], "unlisted": "free"}),
    "Rankings.to_frame": (BALLOTS.to_frame, {"count": "n"}),
    "Preferences.from_pairs": (
        rk.Preferences.from_pairs,
        {"pairs": [[("a", "b")], [("b", "a")]], "items": ["a", "b"], "counts": [1, 2], "users": ["s", "t"]},
    ),
    "Preferences.from_pairs table": (
        rk.Preferences.from_pairs,
        {
            "pairs": {"expert": ["s", "t"], "winner": ["a", "b"], "loser": ["b", "a"], "mood": ["x", "y"]},
            "columns": {"user": "expert"},
            "ignore": ["mood"],
        },
    ),
    "Preferences.from_rankings": (rk.Preferences.from_rankings, {"rankings": BALLOTS, "users": list("stuv")}),
    "Preferences.n_extensions": (PREFERENCES.n_extensions, {"max_down_sets": 100}),
    "Preferences.with_items": (PREFERENCES.with_items, {"items": list("dcbae")}),
    "concat": (rk.concat, {"parts": [BALLOTS, BALLOTS]}),
    # ------------------------------------------------------------------ kernels and distances
    "Kendall": (rk.Kendall, {"similarity": SIMILARITY}),
    "Similarity": (rk.Similarity, {"matrix": SIMILARITY, "items": list("abc"), "scale": 0.5}),
    "similarity_from_groups": (rk.similarity_from_groups, {"groups": {"u": ["a"]}, "within": 0.5, "items": ["b"]}),
    "as_kernel": (rk.as_kernel, {"kernel": "kendall"}),
    "Hamming": (rk.Hamming, {"similarity": SIMILARITY}),
    "Spearman": (rk.Spearman, {"similarity": SIMILARITY}),
    "Mallows": (rk.Mallows, {"nu": 0.5}),
    "Polynomial": (rk.Polynomial, {"degree": 2}),
    "Positional": (rk.Positional, {"G": np.eye(3), "similarity": SIMILARITY}),
    "RankBiasedOverlap": (rk.RankBiasedOverlap, {"p": 0.9, "depth": 2, "similarity": SIMILARITY}),
    "AverageOverlap": (rk.AverageOverlap, {"depth": 2, "similarity": SIMILARITY}),
    "DCG": (
        lambda **arguments: rk.DCG(**arguments).matrix(FULL.ranks, FULL.ranks),
        {"discount": [3, 2, 1], "depth": 2, "similarity": SIMILARITY},
    ),
    "Exponential": (rk.Exponential, {"distance": "kendall", "nu": 0.5}),
    "DistanceInduced": (rk.DistanceInduced, {"distance": "kendall", "center": (0, 1, 2)}),
    "Diffusion": (rk.Diffusion, {"beta": 0.1, "graph": "adjacent"}),
    "WeightedKendall": (rk.WeightedKendall, {"combine": "top-k", "weights": 2}),
    "WeightedKendall.top_k": (rk.WeightedKendall.top_k, {"k": 2}),
    "WeightedKendall.additive": (rk.WeightedKendall.additive, {"weights": [1, 2, 3]}),
    "WeightedKendall.multiplicative": (rk.WeightedKendall.multiplicative, {"weights": [1, 2, 3]}),
    "Kernel.gram": (
        KERNEL.gram,
        {
            "X": BALLOTS,
            "Y": FULL,
            "method": METHOD,
            "normalize": False,
            "out": np.empty((4, 4)),
            "dtype": "float32",
            "n_jobs": 1,
        },
    ),
    "Kernel.estimate": (
        KERNEL.estimate,
        {"X": BALLOTS, "Y": FULL, "method": METHOD, "normalize": False, "gradient": False, "tol": 0.5, "n_jobs": 1},
    ),
    "Kernel.paired": (KERNEL.paired, {"X": BALLOTS, "Y": FULL, "method": METHOD, "n_jobs": 1}),
    "Kernel.log_gram": (KERNEL.log_gram, {"X": BALLOTS, "Y": FULL, "n_jobs": 1}),
    "Kernel.plan": (KERNEL.plan, {"X": BALLOTS, "Y": FULL, "method": METHOD}),
    "Kernel.resolve": (rk.Mallows().resolve, {"X": BALLOTS}),
    "Kernel.replace": (KERNEL.replace, {"nu": 0.2}),
    "Kernel.__call__": (KERNEL.__call__, {"X": FULL}),
    "Plan.gram": (
        KERNEL.plan(BALLOTS).gram,
        {"out": np.empty((4, 4)), "dtype": "float64", "normalize": False, "n_jobs": 1},
    ),
    "Plan.estimate": (
        KERNEL.plan(BALLOTS, method=METHOD).estimate,
        {"tol": 0.5, "gradient": False, "normalize": False, "n_jobs": 1},
    ),
    "Plan.block": (KERNEL.plan(BALLOTS).block, {"rows": slice(2), "columns": slice(2), "n_jobs": 1}),
    "Plan.blocks": (lambda **given: list(KERNEL.plan(BALLOTS).blocks(**given)), {"side": 2, "n_jobs": 1}),
    "Plan.diagonal": (KERNEL.plan(BALLOTS).diagonal, {"unbiased": False, "n_jobs": 1}),
    "Plan.store": (
        KERNEL.plan(BALLOTS).store,
        {
            "path": FOLDER / "K.npy",
            "dtype": "float32",
            "resume": False,
            "overwrite": True,
            "progress": None,
            "side": 2,
            "n_jobs": 1,
        },
    ),
    "Plan.times": (KERNEL.plan(BALLOTS).times, {"weights": [1, 2, 3, 4], "n_jobs": 1}),
    "Plan.against": (KERNEL.plan(BALLOTS).against, {"new": FULL}),
    "median_distance": (rk.median_distance, {"X": BALLOTS, "distance": distances.kendall}),
    **{
        f"distances.{name}": (getattr(distances, name), {"X": FULL, "Y": FULL})
        for name in ("kendall", "footrule", "spearman", "hamming", "cayley", "linf")
    },
    "distances.lp": (distances.lp, {"p": 2}),
    # ------------------------------------------------------------------ methods and models
    "Auto": (rk.Auto, {"max_seconds": 1, "max_ratio": 2, "fallback": METHOD}),
    "Exact": (rk.Exact, {"limit": 100, "closed_form": False}),
    "MonteCarlo": (
        rk.MonteCarlo,
        {
            "n_draws": 4,
            "coupling": "iid",
            "control_variates": 0,
            "completions": rk.Uniform(),
            "rng": 0,
            "diagonal": "unbiased",
            "replicates": 2,
        },
    ),
    "Uniform": (rk.Uniform, {}),
    "LogDensity": (completions.LogDensity, {"function": lambda ranks: np.zeros(len(ranks))}),
    "completions.draw": (
        completions.draw,
        {
            "X": BALLOTS,
            "n_draws": 4,
            "coupling": "antithetic",
            "completions": rk.Uniform(),
            "rng": 0,
            "rows": [0, 1, 2, 3],
            "kernel": KERNEL,
        },
    ),
    "completions.enumerate_completions": (
        completions.enumerate_completions,
        {"ranks": BALLOTS.ranks[2], "limit": 10},
    ),
    "MallowsModel": (rk.MallowsModel, {"center": (0, 1, 2), "theta": 0.5, "max_down_sets": 100, "summary": None}),
    "MallowsModel.fit": (rk.MallowsModel.fit, {"X": FULL, "center": (0, 1, 2), "max_down_sets": 100}),
    "MallowsModel.log_prob": (rk.MallowsModel((0, 1, 2), 0.5).log_prob, {"X": FULL}),
    "MallowsModel.sample": (
        rk.MallowsModel((0, 1, 2), 0.5).sample,
        {"n_rankings": 4, "rng": 0, "items": ["a", "b", "c"]},
    ),
    "PlackettLuce": (rk.PlackettLuce, {"weights": [1.0, 2.0, 3.0], "summary": None}),
    "PlackettLuce.fit": (rk.PlackettLuce.fit, {"X": FULL, "penalty": 0.1, "max_iter": 100}),
    "PlackettLuce.log_prob": (rk.PlackettLuce([1.0, 2.0, 3.0]).log_prob, {"X": FULL}),
    "PlackettLuce.sample": (
        rk.PlackettLuce([1.0, 2.0, 3.0]).sample,
        {"n_rankings": 4, "rng": 0, "items": ["a", "b", "c"]},
    ),
    "antithetic": (rk.antithetic, {"rankings": FULL[:1], "within": FULL[:1].top(1)}),
    "project": (rk.project, {"rankings": FULL, "onto": FULL[:1].top(1)}),
    "herd": (rk.herd, {"ranking": BALLOTS[2], "kernel": KERNEL, "n_draws": 2, "candidates": None, "rng": 0}),
    # ------------------------------------------------------------------ tasks
    "mmd_test": (
        rk.mmd_test,
        {
            "X": BALLOTS,
            "Y": FULL,
            "kernel": KERNEL,
            "n_permutations": 9,
            "rng": 0,
            "biased": False,
            "method": "auto",
            "strata": ([0, 0, 1, 1], [0, 0, 1, 1]),
            "n_jobs": 1,
        },
    ),
    "mmd_test precomputed": (rk.mmd_test, {"X": FULL, "Y": FULL, "precomputed": np.eye(8), "n_permutations": 9}),
    "mmd_aggregated_test": (
        rk.mmd_aggregated_test,
        {
            "X": BALLOTS,
            "Y": FULL,
            "kernels": [KERNEL],
            "n_permutations": 99,
            "rng": 0,
            "biased": False,
            "method": "auto",
            "strata": ([0, 0, 1, 1], [0, 0, 1, 1]),
            "alpha": 0.05,
            "n_jobs": 1,
        },
    ),
    "goodness_of_fit_test": (
        rk.goodness_of_fit_test,
        {
            "X": FULL,
            "model": rk.PlackettLuce([1.0, 2.0, 3.0]),
            "kernel": KERNEL,
            "n_simulations": 9,
            "rng": 0,
            "biased": False,
            "method": "auto",
            "n_reference": 20,
            "fitted": False,
        },
    ),
    "hsic_test": (
        rk.hsic_test,
        {
            "X": BALLOTS,
            "covariate": [1.0, 2.0, 3.0, 4.0],
            "kernel": KERNEL,
            "n_permutations": 9,
            "rng": 0,
            "biased": False,
            "method": "auto",
            "covariate_kernel": "auto",
            "strata": [0, 0, 1, 1],
            "n_jobs": 1,
        },
    ),
    "k_sample_test": (
        rk.k_sample_test,
        {
            "X": rk.concat([BALLOTS, FULL]),
            "groups": list("uuvvuwww"),
            "kernel": KERNEL,
            "n_permutations": 9,
            "rng": 0,
            "biased": False,
            "method": "auto",
            "strata": [0, 0, 1, 1, 0, 0, 1, 1],
            "n_jobs": 1,
        },
    ),
    "k_sample_test precomputed": (
        rk.k_sample_test,
        {"X": FULL, "groups": LABELS, "precomputed": np.eye(4), "n_permutations": 9},
    ),
    "KSampleResult.pairwise": (
        rk.k_sample_test(FULL, LABELS, KERNEL, n_permutations=9).pairwise,
        {"correction": "holm", "alpha": 0.05, "n_permutations": 9},
    ),
    "PairwiseResult.plot": (
        rk.k_sample_test(FULL, LABELS, KERNEL, n_permutations=9).pairwise().plot,
        {"limit": 2, "ax": None},
    ),
    "PairwiseResult.pair": (
        rk.k_sample_test(FULL, LABELS, KERNEL, n_permutations=9).pairwise().pair,
        {"first": "u", "second": "v"},
    ),
    "MMDResult.differences": (
        rk.mmd_test(FULL, FULL, KERNEL, n_permutations=9).differences,
        {"confidence_level": 0.9},
    ),
    **{
        f"{type(result).__name__}.differences": (result.differences, {"confidence_level": 0.9})
        for result in (
            rk.k_sample_test(FULL, LABELS, KERNEL, n_permutations=9),
            rk.mmd_aggregated_test(FULL, BALLOTS, [KERNEL], n_permutations=99),
            rk.paired_test(FULL, BALLOTS, KERNEL, n_permutations=9),
            rk.change_point_test(FULL, KERNEL, n_changes=1, n_permutations=9, min_rows=1),
        )
    },
    **{
        f"{type(result).__name__}.plot": (result.plot, {"ax": None})
        for result in (
            rk.k_sample_test(FULL, LABELS, KERNEL, n_permutations=9),
            rk.mmd_test(FULL, FULL, KERNEL, n_permutations=9),
            rk.mmd_aggregated_test(FULL, BALLOTS, [KERNEL], n_permutations=99),
            rk.paired_test(FULL, BALLOTS, KERNEL, n_permutations=9),
            rk.hsic_test(FULL, LABELS, KERNEL, n_permutations=9),
            rk.trend_test(FULL, [1, 2, 3, 4], KERNEL, n_permutations=9),
            rk.goodness_of_fit_test(FULL, rk.PlackettLuce([1.0, 2.0, 3.0]), KERNEL, n_simulations=9),
            rk.change_point_test(FULL, KERNEL, n_permutations=9, min_rows=1),
            rk.outlier_test(FULL, KERNEL, reference=rk.concat([FULL] * 41)),
            rk.SequentialMMDTest(KERNEL).update(FULL, FULL),
        )
    },
    "Differences.plot": (
        rk.mmd_test(FULL, FULL, KERNEL, n_permutations=9).differences().plot,
        {"names": ["u", "v"], "limit": 2, "ax": None},
    ),
    "hsic_test (given)": (rk.hsic_test, {"X": BALLOTS, "covariate": [1.0, 2.0, 3.0, 4.0], "given": [0, 0, 1, 1]}),
    "paired_test": (
        rk.paired_test,
        {
            "X": BALLOTS,
            "Y": FULL,
            "kernel": KERNEL,
            "n_permutations": 9,
            "rng": 0,
            "biased": False,
            "method": "auto",
            "n_jobs": 1,
        },
    ),
    "trend_test": (
        rk.trend_test,
        {
            "X": BALLOTS,
            "time": [1, 2, 3, 4],
            "kernel": KERNEL,
            "n_permutations": 9,
            "rng": 0,
            "method": "auto",
            "strata": [0, 0, 1, 1],
            "n_jobs": 1,
        },
    ),
    "change_point_test": (
        rk.change_point_test,
        {
            "X": BALLOTS,
            "kernel": KERNEL,
            "time": [1, 2, 3, 4],
            "n_changes": 1,
            "n_permutations": 9,
            "rng": 0,
            "alpha": 0.05,
            "max_changes": 2,
            "min_rows": 1,
            "method": "auto",
            "n_jobs": 1,
        },
    ),
    "agreement": (
        rk.agreement,
        {"X": BALLOTS, "kernel": KERNEL, "confidence_level": 0.9, "method": "auto", "n_jobs": 1},
    ),
    "compare_systems": (
        rk.compare_systems,
        {
            "X": BALLOTS,
            "kernel": KERNEL,
            "queries": ["q", "q", "r", "r"],
            "systems": list("stst"),
            "judgements": JUDGED,
            "n_permutations": 9,
            "n_bootstrap": 9,
            "confidence_level": 0.9,
            "correction": "holm",
            "rng": 0,
        },
    ),
    "SystemComparison.most_different": (
        rk.compare_systems(BALLOTS, queries=list("qqrr"), systems=list("stst"), n_permutations=9).most_different,
        {"first": "s", "second": "t", "limit": 1},
    ),
    "SequentialMMDTest": (
        rk.SequentialMMDTest,
        {
            "kernel": KERNEL,
            "alpha": 0.05,
            "reference": BALLOTS,
            "covariate_kernel": "delta",
            "method": METHOD,
            "rng": 0,
        },
    ),
    "SequentialMMDTest.update": (
        lambda **arguments: rk.SequentialMMDTest(KERNEL).update(**arguments),
        {"X": BALLOTS, "Y": FULL},
    ),
    "SequentialMMDTest.update covariate": (
        lambda **arguments: rk.SequentialMMDTest(KERNEL).update(BALLOTS, **arguments),
        {"covariate": LABELS},
    ),
    "outlier_test": (
        rk.outlier_test,
        {
            "X": BALLOTS,
            "reference": rk.concat([FULL] * 41),
            "kernel": KERNEL,
            "alpha": 0.05,
            "rng": 0,
            "method": "auto",
            "n_jobs": 1,
        },
    ),
    "power": (
        rk.power,
        {
            "pilot": PILOT,
            "n": 20,
            "alpha": 0.05,
            "effect": 0.3,
            "n_simulations": 3,
            "rng": 0,
            "progress": None,
        },
    ),
    "power of samples": (rk.power, {"pilot": SAMPLES, "n": 20, "effect": 0.01, "kernel": KERNEL, "n_simulations": 3}),
    "sample_size of samples": (
        rk.sample_size,
        {"pilot": SAMPLES, "power": 0.5, "effect": 0.2, "kernel": KERNEL, "n_simulations": 3},
    ),
    "sample_size": (
        rk.sample_size,
        {
            "pilot": PILOT,
            "power": 0.7,
            "alpha": 0.05,
            "effect": 0.3,
            "n_simulations": 3,
            "rng": 0,
            "max_size": 1000,
            "progress": None,
        },
    ),
    "mmd2_streamed": (mmd2_streamed, {"X": BALLOTS, "Y": FULL, "kernel": KERNEL, "method": "auto", "n_jobs": 1}),
    "linkage": (rk.linkage, {"X": BALLOTS, "kernel": KERNEL, "linkage": "average", "method": "auto", "squared": False}),
    "flat_clusters": (rk.flat_clusters, {"Z": TREE, "n_clusters": 2}),
    "kernel_distances": (
        rk.kernel_distances,
        {"X": BALLOTS, "kernel": KERNEL, "squared": False, "method": "auto"},
    ),
    "KernelKMeans": (
        built(rk.KernelKMeans),
        {
            "kernel": KERNEL,
            "n_clusters": 2,
            "method": "auto",
            "n_init": 1,
            "max_iter": 10,
            "random_state": 0,
            "unlisted": "free",
        },
    ),
    "KernelKMeans.fit": (rk.KernelKMeans(2, kernel=KERNEL).fit, {"X": BALLOTS}),
    "KernelKMeans.predict": (fitted(rk.KernelKMeans(2, kernel=KERNEL)).predict, {"X": BALLOTS}),
    "KernelKMeans.transform": (fitted(rk.KernelKMeans(2, kernel=KERNEL)).transform, {"X": BALLOTS}),
    "KernelKMedoids": (
        built(rk.KernelKMedoids),
        {
            "kernel": KERNEL,
            "n_clusters": 2,
            "method": "auto",
            "n_init": 1,
            "max_iter": 10,
            "random_state": 0,
            "unlisted": "free",
        },
    ),
    "KernelKMedoids.fit": (rk.KernelKMedoids(2, kernel=KERNEL).fit, {"X": BALLOTS}),
    "KernelKMedoids.predict": (fitted(rk.KernelKMedoids(2, kernel=KERNEL)).predict, {"X": BALLOTS}),
    "KernelKMedoids.transform": (fitted(rk.KernelKMedoids(2, kernel=KERNEL)).transform, {"X": BALLOTS}),
    "KernelMap": (
        built(rk.KernelMap),
        {"kernel": KERNEL, "n_components": 1, "method": "auto", "features": None, "unlisted": "free"},
    ),
    "KernelMap.fit": (rk.KernelMap(kernel=KERNEL).fit, {"X": BALLOTS}),
    "KernelMap.fit_transform": (rk.KernelMap(kernel=KERNEL).fit_transform, {"X": BALLOTS}),
    "KernelMap.transform": (fitted(rk.KernelMap(kernel=KERNEL)).transform, {"X": BALLOTS}),
    "NystromFeatures": (
        built(rk.NystromFeatures),
        {"kernel": KERNEL, "n_components": 2, "method": "auto", "random_state": 0, "tol": 0.1, "unlisted": "free"},
    ),
    "NystromFeatures.fit": (rk.NystromFeatures(2, kernel=KERNEL).fit, {"X": BALLOTS}),
    "NystromFeatures.fit_transform": (rk.NystromFeatures(2, kernel=KERNEL).fit_transform, {"X": BALLOTS}),
    "NystromFeatures.transform": (fitted(rk.NystromFeatures(2, kernel=KERNEL)).transform, {"X": BALLOTS}),
    "MeanFeatures": (
        built(rk.MeanFeatures),
        {"kernel": rk.AverageOverlap(2), "sparse_output": True, "unlisted": "free"},
    ),
    "MeanFeatures.fit": (rk.MeanFeatures(rk.Kendall()).fit, {"X": BALLOTS}),
    "MeanFeatures.transform": (fitted(rk.MeanFeatures(rk.Kendall())).transform, {"X": BALLOTS}),
    "borda": (rk.borda, {"X": BALLOTS, "ties": "keep"}),
    "kemeny": (rk.kemeny, {"X": BALLOTS, "limit": 10, "n_starts": 1, "n_bootstrap": 2, "rng": 0}),
    "bradley_terry": (rk.bradley_terry, {"X": BALLOTS, "prior": 0.5, "ties": "half", "anchor": "a", "cluster": True}),
    "bradley_terry comparisons": (
        rk.bradley_terry,
        {"X": BATTLES, "prior": 0.5, "covariates": [[1], [2], [3]], "cluster": False},
    ),
    "leaderboard": (
        rk.leaderboard,
        {
            "data": BALLOTS,
            "score": "borda",
            "confidence_level": 0.9,
            "resample": "auto",
            "by": LABELS,
            "n_resamples": 20,
            "prior": 0.0,
            "rng": 0,
        },
    ),
    "Comparisons.from_arrays": (
        rk.Comparisons.from_arrays,
        {
            "first": ["a", "b", "a"],
            "second": ["b", "c", "c"],
            "outcome": [1, 0, -1],
            "judge": ["s", "t", "s"],
            "weights": [1.0, 2.0, 1.0],
            "time": [1, 2, 3],
            "labels": {"language": ["en", "de", "en"]},
            "items": ["a", "b", "c"],
        },
    ),
    "Comparisons.from_frame": (
        rk.Comparisons.from_frame,
        {
            "frame": {"a": ["x", "y"], "b": ["y", "z"], "winner": ["x", "z"], "who": ["s", "t"], "mood": ["u", "v"]},
            "items": ["x", "y", "z"],
            "columns": {"user": "who"},
            "ignore": ["mood"],
        },
    ),
    "Comparisons.groups": (BATTLES.groups, {"by": "judge"}),
    "Comparisons.preferences": (BATTLES.preferences, {"by": "judge"}),
    "Comparisons.rankings": (BATTLES.rankings, {"by": "judge", "min_comparisons": 1, "prior": 0.5}),
    "MallowsMixture": (
        built(rk.MallowsMixture),
        {"n_components": 1, "n_init": 1, "max_iter": 2, "tol": 0.1, "random_state": 0, "unlisted": "free"},
    ),
    "MallowsMixture.fit": (rk.MallowsMixture(1, n_init=1).fit, {"X": FULL}),
    "MallowsMixture.predict": (fitted(rk.MallowsMixture(1, n_init=1)).predict, {"X": BALLOTS}),
    "MallowsMixture.predict_proba": (fitted(rk.MallowsMixture(1, n_init=1)).predict_proba, {"X": BALLOTS}),
    "MallowsMixture.score": (fitted(rk.MallowsMixture(1, n_init=1)).score, {"X": BALLOTS}),
    "MallowsMixture.score_samples": (fitted(rk.MallowsMixture(1, n_init=1)).score_samples, {"X": BALLOTS}),
    "MallowsMixture.aic": (fitted(rk.MallowsMixture(1, n_init=1)).aic, {"X": BALLOTS}),
    "MallowsMixture.bic": (fitted(rk.MallowsMixture(1, n_init=1)).bic, {"X": BALLOTS}),
    "MallowsMixture.sample": (fitted(rk.MallowsMixture(1, n_init=1)).sample, {"n_rankings": 2, "rng": 0}),
    "cluster_consensus": (rk.cluster_consensus, {"X": BALLOTS, "groups": LABELS, "rule": rk.borda}),
    "kernel_consensus": (
        rk.kernel_consensus,
        {"X": BALLOTS, "kernel": rk.Kendall(), "limit": 10, "n_starts": 1, "rng": 0},
    ),
    "KernelRankingRegressor": (
        regression,
        {
            "output_kernel": rk.Kendall(),
            "kernel": "rbf",
            "alpha": 0.5,
            "gamma": 0.5,
            "method": "auto",
            "prior": 30.0,
            "random_state": 0,
            "unlisted": "free",
        },
    ),
    "KernelRankingRegressor.fit": (
        rk.KernelRankingRegressor().fit,
        {"X": NUMBERS, "y": BALLOTS, "sample_weight": [1, 2, 3, 4]},
    ),
    "KernelRankingRegressor.predict": (regression().predict, {"X": NUMBERS}),
    "KernelRankingRegressor.predict_scores": (regression().predict_scores, {"X": NUMBERS}),
    "KernelRankingRegressor.decode": (regression().decode, {"X": NUMBERS}),
    "KernelRankingRegressor.predict_set": (regression().predict_set, {"X": NUMBERS, "confidence_level": 0.5}),
    "KernelRankingRegressor.score": (
        regression().score,
        {"X": NUMBERS, "y": BALLOTS, "sample_weight": [1, 2, 3, 4]},
    ),
    "pairwise_preferences": (rk.pairwise_preferences, {"X": BALLOTS}),
    # ------------------------------------------------------------------ front ends
    "SklearnKernel": (
        lambda **arguments: rk.SklearnKernel(**arguments)(FULL.ranks),
        {"kernel": KERNEL, "method": "auto", "parameter_bounds": (1e-3, 1e3), "unlisted": "free"},
    ),
    "SklearnKernel.__call__": (rk.SklearnKernel(KERNEL).__call__, {"X": FULL.ranks, "Y": FULL.ranks}),
    "SklearnKernel.diag": (rk.SklearnKernel(KERNEL).diag, {"X": FULL.ranks}),
    # ------------------------------------------------------------------ generators and pictures
    "datasets.load_example": (datasets.load_example, {}),
    "datasets.uniform": (datasets.uniform, {"n_rankings": 4, "n_items": 3, "rng": 0, "items": ["a", "b", "c"]}),
    "datasets.mallows": (
        datasets.mallows,
        {
            "n_rankings": 4,
            "center": (0, 1, 2),
            "theta": 0.5,
            "distance": "kendall",
            "rng": 0,
            "items": ["a", "b", "c"],
        },
    ),
    "datasets.plackett_luce": (
        datasets.plackett_luce,
        {"n_rankings": 4, "weights": [1.0, 2.0, 3.0], "rng": 0, "items": ["a", "b", "c"]},
    ),
    "datasets.mixture": (
        datasets.mixture,
        {"n_rankings": 4, "components": [rk.MallowsModel((0, 1, 2), 0.5).sample], "weights": [1.0], "rng": 0},
    ),
    "datasets.truncate": (datasets.truncate, {"rankings": FULL, "lengths": 2, "rng": 0, "unlisted": "free"}),
    "report": (
        rk.report,
        {
            "data": BALLOTS,
            "path": FOLDER / "report.html",
            "groups": LABELS,
            "compare": ["u", "v"],
            "kernel": KERNEL,
            "method": "auto",
            "n_clusters": 2,
            "linkage": "ward",
            "n_permutations": 9,
            "max_ballots": 100,
            "title": "votes",
            "sample": True,
            "group_name": "side",
            "noun": "candidate",
            "voter": "judge",
            "rng": 0,
        },
    ),
    "Report.save": (rk.report(BALLOTS).save, {"path": FOLDER / "saved.html"}),
    "Picture.save": (Picture("map", "<svg/>").save, {"path": FOLDER / "saved.svg"}),
    "plots.gram": (plots.gram, {"matrix": np.eye(4), "groups": LABELS}),
    "plots.dendrogram": (
        plots.dendrogram,
        {
            "Z": TREE,
            "groups": [0, 1, 0, 1],
            "n_branches": 3,
            "leaves": ["a", "b", "c", "d"],
            "counts": [1, 2, 3, 4],
            "names": ["u", "v"],
        },
    ),
    "plots.kernel_map": (
        plots.kernel_map,
        {
            "points": np.zeros((4, 2)),
            "counts": [1, 2, 3, 4],
            "groups": [0, 1, 0, 1],
            "names": ["u", "v"],
            "variance": [0.5, 0.2],
        },
    ),
    "plots.leaderboard": (plots.leaderboard, {"result": rk.leaderboard(BALLOTS, n_resamples=20)}),
    "plots.pairwise_preferences": (plots.pairwise_preferences, {"X": BALLOTS}),
    "plots.null_distribution": (
        plots.null_distribution,
        {"result": rk.mmd_test(FULL, FULL, KERNEL, n_permutations=9)},
    ),
    "plots.evalues": (
        plots.evalues,
        {"test": rk.SequentialMMDTest(KERNEL).update(FULL, FULL), "title": "e"},
    ),
    "plots.differences": (
        plots.differences,
        {
            "result": rk.mmd_test(FULL, FULL, KERNEL, n_permutations=9).differences(),
            "names": ["u", "v"],
            "limit": 2,
        },
    ),
    "plots.pairwise_effects": (
        plots.pairwise_effects,
        {"result": rk.k_sample_test(FULL, LABELS, KERNEL, n_permutations=9).pairwise(), "limit": 2},
    ),
    "plots.outliers": (
        plots.outliers,
        {"result": rk.outlier_test(FULL, KERNEL, reference=rk.concat([FULL] * 41))},
    ),
}

CALLS["plots.kernel_map labels"] = (plots.kernel_map, {"points": np.zeros((4, 2)), "labels": LABELS})
for name, (_, good) in CALLS.items():
    if name.startswith("plots."):
        good |= {"ax": None, "title": "votes"}
CALLS["plots.save"] = (plots.save, {"ax": plots.gram(np.eye(4)), "path": FOLDER / "saved.png"})

# Kernels and hypothesis tests without an entry: the arguments of the lists of kernels and tests.
for each, _ in all_kernels.on(3):
    name = type(each).__name__
    if name in rk.__all__ and name not in CALLS:
        CALLS[name] = (type(each), {field.name: getattr(each, field.name) for field in dataclasses.fields(each)})
for name in all_tests.TESTS:
    if name not in CALLS:
        CALLS[name] = (getattr(rk, name), all_tests.arguments(name, rk.concat([FULL] * 2), KERNEL))

# Results of functions, which users do not create.
RECORDS = {
    "CompletionModel",
    "Kernel",
    "Plan",
    "Picture",
    "Preferences",
    "Example",
    "Mixture",
}
FUNCTIONS = {
    "KernelRankingRegressor.kernel",
    "median_distance.distance",
    "components",
    "function",
    "model",
    "progress",
    "rule",
}  # any function is valid until it is called
LEFT_OUT = {"name", "self", "cls", "y"}


PICTURES = [name for name, each in vars(plots).items() if "ax" in getattr(each, "__annotations__", ())]
PICTURES = [name for name in PICTURES if name not in {"axes", "remove_frame", "add_legend", "name_rows"}]


def public_names():
    """Return every public function and class by its name."""
    for module, prefix, names in (
        (rk, "", dir(rk)),
        (datasets, "datasets.", datasets.__all__),
        (distances, "distances.", [*distances.ALL, "lp"]),
        (plots, "plots.", PICTURES),
    ):
        for name in names:
            thing = getattr(module, name)
            is_error = isinstance(thing, type) and issubclass(thing, Exception)
            if not name.startswith("_") and callable(thing) and not is_error:
                yield prefix + name, thing


@pytest.fixture(autouse=True, scope="module")
def shared_axes():
    """Reuse the axes of pictures, whose creation takes most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        make = plots.axes
        new = cache(lambda width, height: make(None, width, height))

        def reused(ax, width=7.0, height=4.5, title=None):
            return make(new(width, height) if ax is None else ax, width, height, title)

        patch.setattr(plots, "axes", reused)
        yield


@pytest.mark.parametrize(("name", "argument"), [(name, each) for name, (_, good) in CALLS.items() for each in good])
def test_invalid_arguments(name, argument, monkeypatch):
    monkeypatch.chdir(FOLDER)  # any string names a file
    function, good = CALLS[name]
    assert not faults(function, good, argument, bool(FUNCTIONS & {argument, f"{name}.{argument}"}))


@pytest.mark.parametrize("name", CALLS)
def test_valid_arguments(name):
    function, good = CALLS[name]
    function(**good)


def test_table_is_complete():
    tried = {name.partition(" ")[0] for name in CALLS}
    for name, thing in public_names():
        if name.removeprefix("datasets.") in {*RECORDS, *io.__all__} or (
            any(each.startswith(name + ".") for each in tried) and name not in tried
        ):
            continue
        assert name in tried, f"{name} is not in the table"
        check_arguments(name, thing)


def check_arguments(name, thing):
    given = {each for key, (_, good) in CALLS.items() if key.partition(" ")[0] == name for each in good}
    parameters = inspect.signature(thing).parameters.values()
    missing = {each.name for each in parameters if each.kind is not each.VAR_KEYWORD} - given - LEFT_OUT
    assert not missing, f"{name} has arguments that are not in the table: {missing}"


# What classes of kernels and completion models define, called by the package with arrays that it made; and the methods
# of scikit-learn.
CALLED_BY_THE_PACKAGE = {
    rk.Kernel: ("matrix", "gradient", "facts", "features"),
    rk.CompletionModel: ("draw", "draw_relation", "check_independent"),
    BaseEstimator: ("get_params",),
    sklearn_kernels.Kernel: ("get_params",),
}
EXTENSIONS = {"facts_of_distinct_items", "form", "gains", "depth_weights", "position_weights", "center_ranks"}
EXTENSIONS |= {"nearest_valid_nu", "check_items", "evaluate", "insert", "set_params"}


def public_methods():
    """Return every method with arguments of the public classes, by the class that defines it."""
    classes = [thing for _, thing in public_names() if isinstance(thing, type)]
    for cls in dict.fromkeys([*classes, *(getattr(stats, name) for name in stats.__all__), rk.gram.Plan]):
        left_out = {name for base, names in CALLED_BY_THE_PACKAGE.items() if issubclass(cls, base) for name in names}
        for name in sorted({each for each in dir(cls) if each[0] != "_"} - left_out - EXTENSIONS):
            method = inspect.getattr_static(cls, name)
            method = getattr(method, "__func__", method)
            if inspect.isfunction(method) and method.__module__.startswith("rankernel."):
                yield f"{cls.__name__}.{name}", method


def test_table_has_all_methods():
    tried = {name.partition(" ")[0] for name in CALLS}
    owners = {}  # the names under which an inherited method may be in the table
    for name, method in public_methods():
        owners.setdefault(method, [f"Kernel.{method.__name__}"]).append(name)
    for method, names in owners.items():
        if set(inspect.signature(method).parameters) - {"self", "cls"}:
            found = sorted(tried.intersection(names))
            assert found, f"{' and '.join(names[1:])}: not in the table"
            check_arguments(found[0], method)

"""Hypothesis tests on rankings: the classes of their results, which load on first use."""

from importlib import import_module

HOMES = {
    "AggregatedMMDResult": "mmd",
    "AgreementResult": "agreement",
    "ChangePointResult": "change_points",
    "Differences": "differences",
    "GoodnessOfFitResult": "goodness_of_fit",
    "HSICResult": "hsic",
    "ItemDifference": "differences",
    "KSampleResult": "groups",
    "MMDResult": "groups",
    "OutlierResult": "outliers",
    "PairDifference": "differences",
    "PairedResult": "paired",
    "PairwiseResult": "pairwise",
    "PowerResult": "power",
    "SampleSizeResult": "power",
    "SystemComparison": "systems",
    "SystemPair": "systems",
    "TrendResult": "hsic",
}
__all__ = list(HOMES)


def __getattr__(name: str) -> object:
    if name not in HOMES:
        raise AttributeError(f"module 'rankernel.stats' has no attribute {name!r}")
    return getattr(import_module(f"rankernel.stats.{HOMES[name]}"), name)

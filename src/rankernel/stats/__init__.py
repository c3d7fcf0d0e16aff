"""Hypothesis tests on rankings, and their results."""

from rankernel.stats.change_points import ChangePointResult
from rankernel.stats.differences import Differences, ItemDifference, PairDifference
from rankernel.stats.goodness_of_fit import GoodnessOfFitResult
from rankernel.stats.hsic import HSICResult, TrendResult
from rankernel.stats.k_sample import KSampleResult, PairwiseResult
from rankernel.stats.mmd import AggregatedMMDResult, MMDResult
from rankernel.stats.outliers import OutlierResult
from rankernel.stats.paired import PairedResult
from rankernel.stats.power import PowerResult, SampleSizeResult

__all__ = [
    "AggregatedMMDResult",
    "ChangePointResult",
    "Differences",
    "GoodnessOfFitResult",
    "HSICResult",
    "ItemDifference",
    "KSampleResult",
    "MMDResult",
    "OutlierResult",
    "PairDifference",
    "PairedResult",
    "PairwiseResult",
    "PowerResult",
    "SampleSizeResult",
    "TrendResult",
]

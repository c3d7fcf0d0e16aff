# ---------------------------------------------------------------------- Data

# Rankings and partial orders
from rankernel.rankings import Rankings as Rankings
from rankernel.preferences import Preferences as Preferences
from rankernel.comparisons import Comparisons as Comparisons
from rankernel.data import concat as concat

# Files
from rankernel.io import read as read
from rankernel.io import read_csv as read_csv
from rankernel.io import read_preflib as read_preflib
from rankernel.io import read_blt as read_blt
from rankernel.io import read_cvr as read_cvr
from rankernel.io import read_pairs as read_pairs
from rankernel.io import read_comparisons as read_comparisons
from rankernel.io import write_csv as write_csv
from rankernel.io import write_preflib as write_preflib
from rankernel.io import write_blt as write_blt

# Data sets
from rankernel import datasets as datasets

# Conversion to other packages
from rankernel import interop as interop

# Errors of data
from rankernel.errors import RankingError as RankingError
from rankernel.errors import ReadingWarning as ReadingWarning

# ---------------------------------------------------------------------- Kernels

# Kernels on rankings
from rankernel.kernels import *
from rankernel.kernels import as_kernel as as_kernel
from rankernel.kernels import Similarity as Similarity
from rankernel.kernels import similarity_from_groups as similarity_from_groups

# Distances
from rankernel import distances as distances
from rankernel.gram import median_distance as median_distance

# Gram matrices
from rankernel.gram import Plan as Plan
from rankernel.gram import Auto as Auto
from rankernel.gram import Exact as Exact
from rankernel.gram import MonteCarlo as MonteCarlo

# Completions
from rankernel.completions import CompletionModel as CompletionModel
from rankernel.completions import Uniform as Uniform
from rankernel.completions import antithetic as antithetic
from rankernel.completions import project as project
from rankernel.completions import herd as herd

# Errors of Gram matrices
from rankernel.errors import ExactnessError as ExactnessError
from rankernel.errors import InsufficientMemoryError as InsufficientMemoryError
from rankernel.errors import IndefiniteKernelWarning as IndefiniteKernelWarning
from rankernel.errors import SamplingWarning as SamplingWarning
from rankernel.errors import CostWarning as CostWarning

# ---------------------------------------------------------------------- Statistics

# Hypothesis tests
from rankernel.stats.groups import mmd_test as mmd_test
from rankernel.stats.mmd import mmd_aggregated_test as mmd_aggregated_test
from rankernel.stats.groups import k_sample_test as k_sample_test
from rankernel.stats.paired import paired_test as paired_test
from rankernel.stats.hsic import hsic_test as hsic_test
from rankernel.stats.hsic import trend_test as trend_test
from rankernel.stats.change_points import change_point_test as change_point_test
from rankernel.stats.goodness_of_fit import goodness_of_fit_test as goodness_of_fit_test
from rankernel.stats.outliers import outlier_test as outlier_test
from rankernel.stats.systems import compare_systems as compare_systems
from rankernel.stats.sequential import SequentialMMDTest as SequentialMMDTest

# Agreement
from rankernel.stats.agreement import agreement as agreement

# Power and precision
from rankernel.stats.power import power as power
from rankernel.stats.power import sample_size as sample_size

# Warnings of tests
from rankernel.errors import NotCharacteristicWarning as NotCharacteristicWarning

# ---------------------------------------------------------------------- Models and consensus

# Models
from rankernel.models.mallows import MallowsModel as MallowsModel
from rankernel.models.plackett_luce import PlackettLuce as PlackettLuce
from rankernel.models.mallows_mixture import MallowsMixture as MallowsMixture
from rankernel.models.bradley_terry import bradley_terry as bradley_terry

# Leaderboards
from rankernel.models.leaderboard import leaderboard as leaderboard

# Consensus rankings
from rankernel.models.consensus import kemeny as kemeny
from rankernel.models.consensus import borda as borda
from rankernel.models.consensus import kernel_consensus as kernel_consensus
from rankernel.models.consensus import cluster_consensus as cluster_consensus
from rankernel.models.consensus import pairwise_preferences as pairwise_preferences

# Warnings of models
from rankernel.errors import MisfitWarning as MisfitWarning

# ---------------------------------------------------------------------- Learning

# Estimators
from rankernel.learn.sklearn import SklearnKernel as SklearnKernel
from rankernel.learn.ranking_regressor import KernelRankingRegressor as KernelRankingRegressor
from rankernel.learn.nystrom import NystromFeatures as NystromFeatures
from rankernel.learn.features import MeanFeatures as MeanFeatures

# Clustering and maps
from rankernel.learn.kmeans import KernelKMeans as KernelKMeans
from rankernel.learn.kmeans import KernelKMedoids as KernelKMedoids
from rankernel.learn.maps import KernelMap as KernelMap
from rankernel.learn.hierarchy import linkage as linkage
from rankernel.learn.hierarchy import flat_clusters as flat_clusters
from rankernel.learn.hierarchy import kernel_distances as kernel_distances

# Figures and reports
from rankernel import plots as plots
from rankernel.reports import report as report

__version__: str

r"""Comparison of ranking systems, such as search engines, query by query on the documents of each query.

The overlap of the lists of two systems is a kernel on the documents of one query. Queries need not share documents, so
lists of different queries are never compared. Under the null hypothesis that systems A and B are exchangeable within
every query, the differences :math:`O_q(A, C) - O_q(B, C)` of their overlaps with a third list C of the query, another
system or the judgements, may have either sign, independently for each query. The statistic is the sum over C of their
squared means. (The overlap of A with B itself does not change if they are exchanged, so it cannot be tested.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import FloatArray
from rankernel._utils.checks import Seed, as_seed, check_choice, check_integer, check_labels, check_number, printable
from rankernel.data import group_codes
from rankernel.errors import RankingError, require
from rankernel.kernels.base import Kernel, as_kernel
from rankernel.kernels.positional import RankBiasedOverlap
from rankernel.rankings import FREE, Rankings, as_rankings, dense_ranks, is_missing
from rankernel.stats._permutations import PermutationStatistic, named_generator
from rankernel.stats.base import Interval, PrintedResult, SummaryLines
from rankernel.stats.pairwise import Correction, adjust_pvalues

if TYPE_CHECKING:
    import pandas as pd

ROUNDING = 1e-12  # statistics that differ by less are ties
PERSISTENCE = 0.9  # of the default kernel: a reader of ten results
NOT_TESTED = (
    "two lists per query can be exchanged without changing their overlap; give judgements, or a third list, such as a "
    "second run of one system"
)


@dataclass(frozen=True)
class SystemPair:
    """Two systems: the mean overlap of their lists, and the test whether they are exchangeable.

    Attributes
    ----------
    first, second : str
        The systems.
    overlap : float
        The mean over queries of the overlap of their lists, at most 1.
    overlap_interval : pair of float
        Its bootstrap interval over queries.
    difference : float
        The mean agreement of the first with the judgements minus that of the second; nan without judgements.
    difference_interval : pair of float
        Its bootstrap interval over queries.
    statistic, pvalue, adjusted_pvalue : float
        The test that the systems are exchangeable, and its p-value adjusted for all pairs; nan if it cannot be tested.
    """

    first: str
    second: str
    overlap: float
    overlap_interval: Interval
    difference: float
    difference_interval: Interval
    statistic: float
    pvalue: float
    adjusted_pvalue: float


@dataclass(frozen=True, eq=False, kw_only=True)
class SystemComparison(PrintedResult):
    """Result of :func:`compare_systems`.

    Attributes
    ----------
    systems, queries : tuples of str
        The systems, and the queries that all of them have.
    overlaps : array of shape (n_queries, n_systems, n_systems)
        The overlap of the lists of two systems for each query; 1 for equal lists.
    agreements : array of shape (n_queries, n_systems), or None
        The overlap of each list with the judgements.
    statistic, pvalue : float
        The test that all systems are exchangeable within queries; nan if it cannot be tested.
    null_distribution : array
        The statistic for random permutations of the systems within queries.
    pairs : tuple of SystemPair
        All pairs of systems.
    n_dropped : int
        The number of queries that were left out because a list or the judgements are missing.
    kernel : str
        The kernel of two lists.
    """

    systems: tuple[str, ...]
    queries: tuple[str, ...]
    overlaps: FloatArray = field(repr=False)
    agreements: FloatArray | None = field(repr=False)
    statistic: float
    pvalue: float
    null_distribution: FloatArray = field(repr=False)
    pairs: tuple[SystemPair, ...] = field(repr=False)
    n_dropped: int
    kernel: str

    def most_different(self, first: str, second: str, *, limit: int = 10) -> list[tuple[str, float]]:
        """Return the queries in which the lists of two systems overlap least, with their overlaps."""
        a, b = (
            self.systems.index(check_choice(argument, name, self.systems))
            for argument, name in (("first", first), ("second", second))
        )
        order = np.argsort(self.overlaps[:, a, b], kind="stable")[: check_integer("limit", limit)]
        return [(self.queries[q], float(self.overlaps[q, a, b])) for q in order]

    def to_frame(self) -> pd.DataFrame:
        """Return a table of the overlaps: one row for each query, one column for each pair of systems."""
        require("pandas", "frames")
        import pandas as pd

        columns = {
            f"{self.systems[a]} and {self.systems[b]}": self.overlaps[:, a, b]
            for a, b in combinations(range(len(self.systems)), 2)
        }
        return pd.DataFrame(columns, index=list(self.queries))

    def _heading(self) -> str:
        tested = NOT_TESTED if np.isnan(self.pvalue) else f"p = {self.pvalue:.3g} for all systems together"
        return f"SystemComparison: {len(self.systems)} systems, {len(self.queries):,} queries; {tested}"

    def _summary(self) -> SummaryLines:
        lines = []
        for pair in self.pairs:
            text = "overlap {:.3f} ({:.3f} to {:.3f})".format(pair.overlap, *pair.overlap_interval)
            if self.agreements is not None:
                text += ", difference {:.3f} ({:.3f} to {:.3f})".format(pair.difference, *pair.difference_interval)
            if np.isfinite(pair.pvalue):
                text += f", adjusted p = {pair.adjusted_pvalue:.2g}"
            lines.append((printable(f"{pair.first} and {pair.second}"), text))
        return lines


def compare_systems(
    X: Any,
    kernel: Kernel | str | None = None,
    *,
    queries: Any = None,
    systems: Any = None,
    judgements: Any = None,
    n_permutations: int = 999,
    n_bootstrap: int = 999,
    confidence_level: float = 0.95,
    correction: Correction = "holm",
    rng: Seed = 0,
) -> SystemComparison:
    """Compare search or recommender systems query by query: overlaps of their lists, and which systems differ.

    Lists are compared on the documents of their query only, so queries may have no document in common. Unlike
    :func:`paired_test` and ``k_sample_test(strata=queries)``, which look for one shift of the mean list that all
    queries share, the test finds differences of any direction in each query.

    Parameters
    ----------
    X : Rankings
        One list for each query and system, as read from TREC runs by :func:`read`.
    kernel : Kernel, optional
        The overlap of two lists, divided by their norms. By default rank-biased overlap with p = 0.9, up to the length
        of the shortest list of the query.
    queries, systems : arrays, optional
        The query and the system of each row. By default the labels "query" and "system" of X.
    judgements : Rankings, optional
        One ranking of the documents of each query by relevance, with the label "query", as read from TREC judgements
        or built by ``Rankings.from_long(frame, user="query", ...)``: a list that the systems are compared with.
    n_permutations : int
        The number of random exchanges of systems within queries.
    n_bootstrap : int
        The number of resamples of queries for the intervals.
    confidence_level : float
        Confidence level of the intervals.
    correction : {"holm", "benjamini-hochberg"}
        The correction of the p-values for the number of pairs of systems.
    rng : int, Generator or None
        The source of the permutations and resamples.

    Returns
    -------
    SystemComparison
        ``pairs`` with overlaps, intervals and p-values of all pairs of systems, ``pvalue`` for all systems together,
        ``overlaps`` of each query, ``most_different(first, second)``, ...

    Notes
    -----
    Exchanging two lists does not change their overlap, so the overlap itself cannot test whether two systems differ.
    Two systems are therefore tested by their overlaps with a third list: the judgements, or another system, which may
    be a second run of one of the two. With two systems and no judgements the result has overlaps with intervals, and no
    test.

    Examples
    --------
    Systems A and B differ by an exchange of neighbours, C returns the reverse list. A and B overlap equally with C, so
    they are not distinguished:

    >>> from rankernel import Rankings
    >>> orders = [[f"{query}{i}" for i in order] for query in "qrstuvw" for order in ((0, 1, 2), (0, 2, 1), (2, 1, 0))]
    >>> runs = Rankings.from_orders(orders, unlisted="free")
    >>> print(compare_systems(runs, queries=np.repeat(list("qrstuvw"), 3), systems=list("ABC") * 7))
    SystemComparison: 3 systems, 7 queries; p = 0.001 for all systems together
      A and B  overlap 0.834 (0.834 to 0.834), adjusted p = 1
      A and C  overlap 0.465 (0.465 to 0.465), adjusted p = 0.045
      B and C  overlap 0.465 (0.465 to 0.465), adjusted p = 0.045
    """
    check_integer("n_permutations", n_permutations)
    outside = (1 - check_number("confidence_level", confidence_level, 0, 1)) / 2
    check_choice("correction", correction, ("holm", "benjamini-hochberg"))
    given, seed = None if kernel is None else as_kernel(kernel), as_seed(rng)
    lists = as_rankings(X, "X")
    of_row = labels_of(lists, "queries", queries, "query")
    names, codes = group_codes(labels_of(lists, "systems", systems, "system"))
    if (lists.counts != 1).any():
        raise RankingError("X has rows that count several times; give one list for each query and system")
    if len(names) < 2:
        raise RankingError("systems has only one value; give the lists of at least two systems")
    by_query = rows_by_query(of_row, codes.tolist(), "two lists of one system")
    common = [query for query, rows in by_query.items() if len(rows) == len(names)]
    if len(common) < 2:
        raise RankingError(f"{len(common)} queries have a list of each system; a comparison needs at least two")
    judged: dict[str, dict[int, int]] | None = None
    if judgements is not None:
        relevance = as_rankings(judgements, "judgements")
        of_judged = labels_of(relevance, "judgements", None, "query")
        judged = rows_by_query(of_judged, [0] * len(relevance), "two rows of judgements")
        common = [query for query in common if query in judged]
        if len(common) < 2:
            raise RankingError(
                f"{len(common)} queries have judgements and a list of each system; a comparison needs at least two: "
                f"queries are {printable(next(iter(by_query)))!r}, ... in X and {printable(next(iter(judged)))!r}, ... "
                "in the judgements"
            )
    overlaps = np.empty((len(common), len(names) + (judged is not None), len(names) + (judged is not None)))
    for number, query in enumerate(common):
        retrieved = [documents_of(lists, row) for _, row in sorted(by_query[query].items())]
        if judged is not None:
            retrieved.append(documents_of(relevance, judged[query][0]))
        overlaps[number] = overlap_matrix(retrieved, given, len(names))
    pairs = list(combinations(range(len(names)), 2))
    tests = np.full((3, len(pairs)), np.nan)  # the statistic, the p-value and the adjusted p-value of each pair
    statistic, pvalue, null_values = float("nan"), float("nan"), np.empty(0)
    if overlaps.shape[1] > 2:
        for index, (a, b) in enumerate(pairs):
            exchanged = ExchangedPair(overlaps, a, b, seed)
            tests[:2, index] = exchanged.value, exchanged.null_distribution(n_permutations).pvalue
        tests[2] = adjust_pvalues(tests[1], correction)
        together = ExchangedSystems(overlaps, len(names), seed)
        null = together.null_distribution(n_permutations)
        statistic, pvalue, null_values = together.value, null.pvalue, null.values
    values = np.stack([overlaps[:, a, b] for a, b in pairs], axis=1)
    agreements = overlaps[:, : len(names), -1] if judged is not None else None
    gains = np.full_like(values, np.nan)
    if agreements is not None:
        gains = np.stack([agreements[:, a] - agreements[:, b] for a, b in pairs], axis=1)
    resampled = named_generator(seed, "queries").multinomial(
        len(common), np.full(len(common), 1 / len(common)), check_integer("n_bootstrap", n_bootstrap)
    ) / len(common)
    estimates = [
        (each.mean(axis=0).tolist(), np.quantile(resampled @ each, [outside, 1 - outside], axis=0).T.tolist())
        for each in (values, gains)
    ]
    (overlap, overlap_interval), (difference, difference_interval) = estimates
    return SystemComparison(
        systems=names,
        queries=tuple(common),
        overlaps=overlaps[:, : len(names), : len(names)],
        agreements=agreements,
        statistic=statistic,
        pvalue=pvalue,
        null_distribution=null_values,
        pairs=tuple(
            SystemPair(
                names[a],
                names[b],
                overlap[i],
                tuple(overlap_interval[i]),
                difference[i],
                tuple(difference_interval[i]),
                *tests[:, i].tolist(),
            )
            for i, (a, b) in enumerate(pairs)
        ),
        n_dropped=len(by_query) - len(common),
        kernel="rank-biased overlap up to the shortest list" if given is None else str(given),
    )


# ---------------------------------------------------------------------- lists


def labels_of(lists: Rankings, name: str, given: Any, label: str) -> NDArray[Any]:
    """Return the given labels of the rows, or those that the data has."""
    if given is None:
        given = (lists.labels or {}).get(label)
    if given is None:
        advice = (
            "give one value for each row"
            if name != "judgements"
            else "read a file of TREC judgements, or use from_long"
        )
        raise RankingError(f"{name}: the data has no label {label!r}; {advice}")
    labels = check_labels(name, given, len(lists))
    for row, each in enumerate(labels.tolist()):
        if is_missing(each):
            raise RankingError(f"{name}: the {label} of row {row} is missing; leave out rows without one")
    return labels


def rows_by_query(queries: NDArray[Any], codes: list[int], problem: str) -> dict[str, dict[int, int]]:
    """Return the row of each system for each query, in order of first appearance."""
    result: dict[str, dict[int, int]] = {}
    for row, (query, code) in enumerate(zip(queries.tolist(), codes, strict=True)):
        if code in result.setdefault(str(query), {}):
            raise RankingError(f"query {printable(str(query))!r} has {problem}; give one for each query")
        result[str(query)][code] = row
    return result


def documents_of(lists: Rankings, row: int) -> dict[str, int]:
    """Return the retrieved documents of a list with their ranks.

    Documents that are free, or tied in the last bucket of a list that ranks all documents, are not retrieved.
    """
    ranks = lists.ranks[row]
    is_retrieved = ranks != FREE
    is_last = ranks == ranks.max(initial=0)
    if is_retrieved.all() and 1 < is_last.sum() < len(ranks):
        is_retrieved = ~is_last
    return {lists.items[item]: int(ranks[item]) for item in np.flatnonzero(is_retrieved)}


def overlap_matrix(retrieved: list[dict[str, int]], kernel: Kernel | None, n_systems: int) -> FloatArray:
    """Return the kernel between the lists of one query, divided by their norms, on the documents of the query."""
    documents = tuple(dict.fromkeys(document for each in retrieved for document in each))
    ranks = np.array([[each.get(document, FREE) for document in documents] for each in retrieved], dtype=np.int32)
    completed = Rankings._trusted(dense_ranks(ranks, ranks != FREE, "last"), documents)
    if kernel is None:
        kernel = RankBiasedOverlap(PERSISTENCE, depth=max(min(map(len, retrieved[:n_systems])), 1))
    return kernel.gram(completed, normalize=True)


# ---------------------------------------------------------------------- tests


class ExchangedPair(PermutationStatistic):
    """The squared mean differences of the overlaps of two systems with all other lists, under random exchanges."""

    min_moment_draws = 0

    def __init__(self, overlaps: FloatArray, first: int, second: int, seed: int) -> None:
        others = [each for each in range(overlaps.shape[1]) if each not in (first, second)]
        self.differences = overlaps[:, first, others] - overlaps[:, second, others]
        self.rng = named_generator(seed, f"exchange {first} {second}")
        self.value = float((self.differences.mean(axis=0) ** 2).sum())
        self.tolerance = ROUNDING

    def draw(self, n_permutations: int) -> FloatArray:
        """Return the statistic for random exchanges of the two systems within queries."""
        signs = self.rng.choice([-1.0, 1.0], (n_permutations, len(self.differences)))
        return np.asarray(((signs @ self.differences / len(self.differences)) ** 2).sum(axis=1))


class ExchangedSystems(PermutationStatistic):
    """The variance of the mean overlaps of all systems with each other and with the judgements."""

    min_moment_draws = 0

    def __init__(self, overlaps: FloatArray, n_systems: int, seed: int) -> None:
        self.overlaps, self.n_systems = overlaps, n_systems
        self.rng = named_generator(seed, "exchange all")
        self.value, self.tolerance = self.dispersion(overlaps.mean(axis=0)), ROUNDING

    def dispersion(self, means: FloatArray) -> float:
        """Return the variance of mean overlaps between systems, plus that of those with the judgements."""
        between = means[np.triu_indices(self.n_systems, 1)]
        return float(between.var() + means[: self.n_systems, self.n_systems :].sum(axis=1).var())

    def draw(self, n_permutations: int) -> FloatArray:
        """Return the statistic for random permutations of the systems within queries."""
        n_queries, n_lists, _ = self.overlaps.shape
        order, rows = np.tile(np.arange(n_lists), (n_queries, 1)), np.arange(n_queries)[:, None, None]
        result = np.empty(n_permutations)
        for number in range(n_permutations):
            order[:, : self.n_systems] = self.rng.permuted(order[:, : self.n_systems], axis=1)
            result[number] = self.dispersion(self.overlaps[rows, order[:, :, None], order[:, None, :]].mean(axis=0))
        return result

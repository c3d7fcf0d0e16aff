"""The Bradley-Terry model and its extensions to ties: strengths of items from pairwise comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from scipy.sparse import csr_array, hstack
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, log_expit, ndtri

from rankernel._utils import FloatArray, IntArray
from rankernel._utils.checks import (
    check_choice,
    check_flag,
    check_integer,
    check_number,
    check_numbers,
    check_text,
    printable,
)
from rankernel._utils.notebook import html_card
from rankernel.comparisons import Comparisons
from rankernel.data import Data, as_nonempty_data, pairwise_ties, pairwise_wins
from rankernel.errors import Argument, ArgumentValueError, MisfitWarning, RankingError, ReadingWarning, warn
from rankernel.models.consensus import ranks_by_score
from rankernel.preferences import Preferences
from rankernel.rankings import FREE, Rankings, order_text, relations_of_ranks

TieModel = Literal["half", "davidson", "rao-kupper", "ignore"]

LAST_STEP = 1e-6  # the error after such a Newton step is of the order of its square
ROUNDING = 1e-9
MAX_STEPS = 200
MAX_SHOWN = 5
CHUNK_PAIRS = 2**20


@dataclass(frozen=True, eq=False)
class BradleyTerryResult:
    r"""Strengths of items.

    Attributes
    ----------
    ranking : Rankings
        The items by their strengths: one row.
    strengths : array of shape (n_items,)
        The log-strengths, of mean zero or relative to the anchor.
    standard_errors : array of shape (n_items,)
        The standard errors of the strengths.
    covariance : array of shape (n_items, n_items)
        The covariance matrix of the strengths.
    log_likelihood : float
        The log-likelihood of all comparisons.
    tie_parameter : float
        The parameter nu of Davidson's model or theta of Rao and Kupper's; nan if ties have no parameter.
    coefficients, coefficient_errors : arrays of shape (n_covariates,)
        Effects of the covariates on the log-odds of the first item, and their standard errors.
    n_comparisons : float
        The number of comparisons, weighted.
    n_clusters : int
        The number of judges or voters by whom standard errors are clustered; 0 if comparisons are independent.

    Examples
    --------
    >>> from rankernel import Comparisons
    >>> result = bradley_terry(Comparisons.from_arrays(["a"] * 4, ["b"] * 4, [1, 1, 1, -1]))  # odds of 3 to 1
    >>> bool(np.isclose(result.strengths[0] - result.strengths[1], np.log(3)))
    True
    """

    _repr_html_ = html_card

    ranking: Rankings
    strengths: FloatArray
    standard_errors: FloatArray
    covariance: FloatArray
    log_likelihood: float
    tie_parameter: float
    coefficients: FloatArray
    coefficient_errors: FloatArray
    n_comparisons: float
    n_clusters: int
    _ties: TieModel

    def __repr__(self) -> str:
        order = order_text(self.ranking.to_orders()[0], self.ranking.items)
        best = np.argsort(-self.strengths, kind="stable")[:MAX_SHOWN]
        shown = ", ".join(f"{self.strengths[item]:.3g} ± {self.standard_errors[item]:.2g}" for item in best)
        more = ", ..." * (len(self.strengths) > MAX_SHOWN)
        errors = f"clustered by {self.n_clusters:,} voters or judges" if self.n_clusters else "independent comparisons"
        lines = [f"Bradley-Terry: {order}", f"  strengths: {shown}{more} (standard errors: {errors})"]
        lines += [f"  tie parameter: {self.tie_parameter:.3g}"] * (not np.isnan(self.tie_parameter))
        return "\n".join([*lines, f"  log-likelihood: {self.log_likelihood:.6g}"])

    def intervals(self, *, confidence_level: float = 0.95) -> FloatArray:
        """Return the confidence interval of each strength, shape (n_items, 2)."""
        margin = normal_quantile(confidence_level) * self.standard_errors
        return np.stack([self.strengths - margin, self.strengths + margin], axis=1)

    def probabilities(self) -> FloatArray:
        """Return the probability that item a is preferred to item b, with 1/2 on the diagonal.

        With Davidson's and Rao and Kupper's models the probabilities of a pair sum to one minus that of a tie.
        """
        return self._probabilities(self.strengths[:, None] - self.strengths[None, :])

    def probability_intervals(self, *, confidence_level: float = 0.95) -> FloatArray:
        """Return confidence intervals of :meth:`probabilities` for a given tie parameter, (n_items, n_items, 2)."""
        variances = np.diag(self.covariance)
        errors = np.sqrt(np.maximum(variances[:, None] + variances - 2 * self.covariance, 0.0))
        difference, margin = self.strengths[:, None] - self.strengths, normal_quantile(confidence_level) * errors
        return np.stack([self._probabilities(difference + sign * margin) for sign in (-1, 1)], axis=2)

    def _probabilities(self, difference: FloatArray) -> FloatArray:
        shift, nu = 0.0, 0.0
        if self._ties == "rao-kupper" and not np.isnan(self.tie_parameter):
            shift = float(np.log(self.tie_parameter))
        elif self._ties == "davidson" and not np.isnan(self.tie_parameter):
            nu = self.tie_parameter
        result = np.asarray(1 / (1 + np.exp(shift - difference) + nu * np.exp(-difference / 2)))
        np.fill_diagonal(result, 0.5)
        return result


def bradley_terry(
    X: Any,
    *,
    ties: TieModel = "half",
    prior: float = 0.0,
    anchor: str | None = None,
    covariates: Any = None,
    cluster: bool = True,
) -> BradleyTerryResult:
    r"""Fit the Bradley-Terry model by maximum likelihood.

    Item a is preferred to item b with probability :math:`e^{s_a} / (e^{s_a} + e^{s_b})`, independently in every
    comparison. Each voter of rankings or preferences contributes one comparison for each two items that are ordered;
    free items are not compared, and preferences contribute their transitive closure.

    The likelihood has a maximum only if no group of items wins or loses all comparisons with the others; otherwise
    strengths would be infinite, and an error names the group. A positive ``prior`` makes all strengths finite.

    Parameters
    ----------
    X : Comparisons, Rankings, Preferences or array of ranks
        The data; each row counts as often as its count or weight.
    ties : {"half", "davidson", "rao-kupper", "ignore"}
        A tie is half a win for each item; or has a probability proportional to :math:`\nu e^{(s_a + s_b) / 2}`
        (Davidson); or occurs if the difference is below a threshold (Rao and Kupper); or is not a comparison.
        Preferences have no ties.
    prior : float
        Number of wins added in each direction between each two items.
    anchor : str, optional
        The item whose strength is 0; by default the strengths have mean 0.
    covariates : array of shape (n_comparisons, n_covariates) or names of columns, optional
        Properties of comparisons, such as the difference of the lengths of two answers, that add to the log-odds of the
        first item. Requires :class:`Comparisons`; names refer to their labels.
    cluster : bool
        Whether standard errors take into account that the comparisons of one voter or judge are dependent (sandwich
        estimator); those of items that only one of them compared are nan. Comparisons without judges are independent.

    Returns
    -------
    BradleyTerryResult

    Examples
    --------
    The odds of two items are those of their wins:

    >>> ballots = Rankings.from_orders([["a", "b"], ["b", "a"]], counts=[3, 1])
    >>> fit = bradley_terry(ballots)
    >>> fit.probabilities().round(6)
    array([[0.5 , 0.75],
           [0.25, 0.5 ]])
    >>> fit.ranking.to_orders()
    [['a', 'b']]
    """
    prior = check_number("prior", prior, 0)
    check_choice("ties", ties, get_args(TieModel))
    check_flag("cluster", cluster)
    data = X if isinstance(X, Comparisons) else as_nonempty_data(X)
    if anchor is not None and check_text("anchor", anchor) not in data.items:
        raise ArgumentValueError("anchor", anchor, "one of the items")
    pairs = count_pairs(data, covariates, ties)
    check_connected(pairs, prior, data.items)
    parameters, covariance = maximize_likelihood(pairs, prior)
    n, n_covariates = data.n_items, pairs.covariates.shape[1]
    n_clusters = (data.n_judges if isinstance(data, Comparisons) else data.n_voters) if cluster else 0
    single = np.zeros(len(parameters), dtype=bool)
    if n_clusters > 1:
        scores, n_judges = sum_of_scores(data, pairs, parameters)
        covariance = covariance @ scores @ covariance * (n_clusters / (n_clusters - 1))
        single[:n] = n_judges == 1
    contrast = np.eye(len(covariance))
    contrast[:n, :n] -= 1 / n if anchor is None else np.eye(n)[data.items.index(anchor)]
    covariance = contrast @ covariance @ contrast.T
    if single.any():
        names = ", ".join(printable(data.items[item]) for item in np.flatnonzero(single)[:MAX_SHOWN])
        warn(
            f"standard errors of items that a single judge or voter compared are nan: {names}; give "
            "cluster=False if comparisons are independent",
            MisfitWarning,
        )
        covariance[single] = covariance[:, single] = np.nan
    strengths = contrast[:n, :n] @ parameters[:n]
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return BradleyTerryResult(
        Rankings._trusted(ranks_by_score(-strengths, ROUNDING)[None, :], data.items),
        strengths,
        errors[:n],
        covariance[:n, :n],
        pairs.log_likelihood(parameters),
        float(np.exp(parameters[-1])) if pairs.has_tie_parameter else np.nan,
        parameters[n : n + n_covariates],
        errors[n : n + n_covariates],
        float((pairs.wins + pairs.losses + pairs.ties).sum()),
        n_clusters if n_clusters > 1 else 0,
        ties,
    )


def normal_quantile(confidence_level: float) -> float:
    """Return the two-sided quantile of the normal distribution."""
    confidence_level = check_number("confidence_level", confidence_level, 0, 1)
    return float(ndtri((1 + confidence_level) / 2))


# ---------------------------------------------------------------------- counts


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Numbers of wins of the first and of the second item and of ties: of each pair, or of each comparison."""

    n_items: int
    first: IntArray
    second: IntArray
    wins: FloatArray
    losses: FloatArray
    ties: FloatArray
    covariates: FloatArray  # shape (n_rows, n_covariates)
    model: TieModel

    @classmethod
    def of_matrices(cls, wins: FloatArray, ties: FloatArray, model: TieModel) -> PairCounts:
        """Return the counts of all compared pairs from matrices of wins and ties."""
        first, second = np.nonzero(np.triu(wins + wins.T + ties, 1))
        counts = wins[first, second], wins[second, first], ties[first, second]
        return cls(len(wins), first, second, *counts, np.zeros((len(first), 0)), model)

    @classmethod
    def of_comparisons(cls, data: Comparisons, covariates: FloatArray, model: TieModel) -> PairCounts:
        """Return one row for each comparison."""
        wins, losses, ties = (data.weights * (data.outcome == sign) for sign in (1, -1, 0))
        return cls(data.n_items, data.first, data.second, wins, losses, ties, covariates, model)

    def __post_init__(self) -> None:
        if self.model in ("half", "ignore"):
            share = self.ties / 2 if self.model == "half" else 0.0
            for name, value in (("wins", self.wins + share), ("losses", self.losses + share), ("ties", 0 * self.ties)):
                object.__setattr__(self, name, value)

    @property
    def has_tie_parameter(self) -> bool:
        """Whether the last parameter is the logarithm of the tie parameter."""
        return bool(self.ties.any())

    @cached_property
    def design(self) -> Any:
        """The sparse matrix whose product with strengths and coefficients is the difference of each row."""
        rows = np.arange(len(self.first))
        return self.sums(np.ones(len(rows)), rows, len(rows))

    def sums(self, factor: FloatArray, group: IntArray, n_groups: int) -> Any:
        """Return the sums over groups of rows of the design, times a factor for each row, as a sparse matrix."""
        n_covariates = self.covariates.shape[1]
        columns = [self.first, self.second, *(np.full(len(group), self.n_items + k) for k in range(n_covariates))]
        values = np.concatenate([factor, -factor, (factor[:, None] * self.covariates).T.ravel()])
        index = np.tile(group, len(columns)), np.concatenate(columns)
        return csr_array((values, index), shape=(n_groups, self.n_items + n_covariates))

    def terms(self, parameters: FloatArray, has_tie_parameter: bool) -> tuple[FloatArray, ...]:
        """Return the log-likelihood of each row and its derivatives.

        These are the first derivatives in the difference of strengths and in the tie parameter, log(nu) or log(theta),
        and minus the second derivatives in the difference, in both, and in the tie parameter.
        """
        wins, losses, ties = self.wins, self.losses, self.ties
        coefficients = parameters[self.n_items : self.n_items + self.covariates.shape[1]]
        difference = parameters[self.first] - parameters[self.second] + self.covariates @ coefficients
        if not has_tie_parameter:
            p = expit(difference)
            games = wins + losses
            value = wins * log_expit(difference) + losses * log_expit(-difference)
            zero = np.zeros_like(value)
            return value, wins - games * p, zero, games * p * (1 - p), zero, zero
        tie = float(parameters[-1])
        if self.model == "davidson":
            logs = np.stack([difference / 2, -difference / 2, np.full_like(difference, tie)])
            log_sum = np.logaddexp.reduce(logs, axis=0)
            win, loss, draw = np.exp(logs - log_sum)
            games, mean = wins + losses + ties, (win - loss) / 2
            value = (wins - losses) * difference / 2 + ties * tie - games * log_sum
            curvature = (win + loss) / 4 - mean**2
            return (
                value,
                (wins - losses) / 2 - games * mean,
                ties - games * draw,
                games * curvature,
                -games * mean * draw,
                games * draw * (1 - draw),
            )
        win, loss = expit(difference - tie), expit(-difference - tie)
        a, b = wins + ties, losses + ties
        odds = -np.expm1(-2 * tie)  # the logarithm of e^(2 tie) - 1 is 2 tie + log(odds)
        value = a * log_expit(difference - tie) + b * log_expit(-difference - tie) + ties * (2 * tie + np.log(odds))
        both = a * win * (1 - win) + b * loss * (1 - loss)
        return (
            value,
            a * (1 - win) - b * (1 - loss),
            -a * (1 - win) - b * (1 - loss) + 2 * ties / odds,
            both,
            -a * win * (1 - win) + b * loss * (1 - loss),
            both + 4 * ties * (1 - odds) / odds**2,
        )

    def log_likelihood(self, parameters: FloatArray) -> float:
        """Return the log-likelihood; minus infinity outside of the domain of the tie parameter."""
        if self.has_tie_parameter and self.model == "rao-kupper" and parameters[-1] <= 0:
            return -np.inf
        return float(self.terms(parameters, self.has_tie_parameter)[0].sum())

    def with_prior(self, prior: float) -> PairCounts:
        """Return the counts with additional wins in each direction between each two items."""
        first, second = np.triu_indices(self.n_items, 1)
        wins, none = np.full(len(first), prior), np.zeros((len(first), self.covariates.shape[1]))
        added = first, second, wins, wins, 0 * wins, none
        own = self.first, self.second, self.wins, self.losses, self.ties, self.covariates
        first, second, wins, losses, ties, covariates = map(np.concatenate, zip(own, added, strict=True))
        return PairCounts(self.n_items, first, second, wins, losses, ties, covariates, self.model)


def count_pairs(data: Comparisons | Data, covariates: Any, model: TieModel) -> PairCounts:
    """Return the counts of pairs, or of single comparisons if there are covariates."""
    if covariates is None:
        if isinstance(data, Comparisons):
            return PairCounts.of_matrices(data.wins, data.ties, model)
        wins = pairwise_wins(data).astype(np.float64)
        ties = pairwise_ties(data).astype(np.float64) if isinstance(data, Rankings) else np.zeros_like(wins)
        return PairCounts.of_matrices(wins, ties, model)
    if not isinstance(data, Comparisons):
        raise RankingError(Argument("covariates"), " require Comparisons: properties of single comparisons")
    names = [covariates] if isinstance(covariates, str) else covariates
    if isinstance(names, list | tuple) and names and all(isinstance(name, str) for name in names):
        unknown = [name for name in names if name not in data.labels]
        if unknown:
            raise ArgumentValueError("covariates", covariates, f"names of labels: {', '.join(data.labels)}")
        covariates = np.stack([data.labels[name].astype(np.float64) for name in names], axis=1)
    return PairCounts.of_comparisons(data, check_numbers("covariates", covariates, (len(data), None)), model)


def comparisons_of(rows: Data) -> Comparisons:
    """Return one comparison for each row, as its judge, and each two items that it orders or ties."""
    before = rows.before if isinstance(rows, Preferences) else relations_of_ranks(rows.ranks)
    pairs, outcomes = [np.nonzero(before)], [1]
    if isinstance(rows, Rankings):
        equal = (rows.ranks[:, :, None] == rows.ranks[:, None, :]) & (rows.ranks != FREE)[:, :, None]
        pairs, outcomes = [*pairs, np.nonzero(np.triu(equal, 1))], [1, 0]
    judge, first, second = map(np.concatenate, zip(*pairs, strict=True))
    outcome = np.repeat(np.array(outcomes, dtype=np.int8), [len(each[0]) for each in pairs])
    judges = tuple(map(str, range(len(rows))))
    return Comparisons._trusted(rows.items, first, second, outcome, np.ones(len(first)), judges, judge, None, {}, None)


def check_connected(pairs: PairCounts, prior: float, items: tuple[str, ...]) -> None:
    """Raise an error if the likelihood has no maximum: the graph of wins is not strongly connected."""
    if prior > 0 or pairs.n_items < 2:
        return
    n = pairs.n_items
    graph = np.zeros((n, n), dtype=bool)
    for winner, loser, number in ((pairs.first, pairs.second, pairs.wins), (pairs.second, pairs.first, pairs.losses)):
        happened = number + pairs.ties > 0
        graph[winner[happened], loser[happened]] = True
    for connection in ("weak", "strong"):
        n_groups, group = connected_components(graph, directed=True, connection=connection)
        if n_groups < 2:
            continue
        chosen = group == group[0]
        problem = "are never compared with the others"
        if connection == "strong":
            unbeaten = next(g for g in range(n_groups) if not graph[np.ix_(group != g, group == g)].any())
            chosen, problem = group == unbeaten, "never lose against the others"
        names = [printable(item) for item, member in zip(items, chosen, strict=True) if member]
        shown = ", ".join(names[:MAX_SHOWN]) + f" and {len(names) - MAX_SHOWN:,} more" * (len(names) > MAX_SHOWN)
        raise RankingError(
            f"the likelihood has no maximum: {n_groups:,} groups of items cannot be compared; {shown} {problem}; give ",
            Argument("prior", 0.1),
            ", which adds 0.1 wins in each direction between each two items",
        )


# ---------------------------------------------------------------------- likelihood


def maximize_likelihood(pairs: PairCounts, prior: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Return the maximum of the likelihood, by Newton's method with step halving, and its covariance matrix.

    The parameters are the strengths, of mean 0, the coefficients, and the logarithm of the tie parameter. The
    covariances are those of contrasts of the strengths: a constant may be added to all entries of strengths.
    """
    pairs, n = pairs.with_prior(prior) if prior else pairs, pairs.n_items
    design, size = pairs.design, pairs.design.shape[1]
    parameters = np.append(np.zeros(size), np.ones(int(pairs.has_tie_parameter)))
    for _ in range(MAX_STEPS):
        values, derivative, tie_derivative, curvature, mixed, tie_curvature = pairs.terms(
            parameters, pairs.has_tie_parameter
        )
        gradient = np.append(design.T @ derivative, tie_derivative.sum())[: len(parameters)]
        hessian = np.zeros((len(parameters), len(parameters)))
        hessian[:size, :size] = (design.T @ design.multiply(curvature[:, None])).toarray()
        if pairs.has_tie_parameter:
            hessian[:size, -1] = hessian[-1, :size] = design.T @ mixed
            hessian[-1, -1] = tie_curvature.sum()
        # The likelihood is constant along equal changes of all strengths, so that direction is made regular.
        hessian[:n, :n] += max(np.trace(hessian[:n, :n]) / n**2, np.finfo(float).tiny)
        try:
            step = np.linalg.solve(hessian, gradient)
        except np.linalg.LinAlgError:
            if size == n:
                raise RankingError("the strengths are not determined; give a larger ", Argument("prior")) from None
            problem = " are linearly dependent on each other or on the items"
            raise RankingError(Argument("covariates"), problem) from None
        value = values.sum()
        while np.abs(step).max() > LAST_STEP and not pairs.log_likelihood(parameters + step) >= value:
            step = step / 2
        parameters = parameters + step
        if np.abs(step).max() <= LAST_STEP:
            break
    parameters[:n] -= parameters[:n].mean()
    return parameters, np.asarray(np.linalg.inv(hessian), dtype=np.float64)


def sum_of_scores(data: Comparisons | Data, pairs: PairCounts, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the sum of the outer products of the gradients of judges or voters, and how many compared each item."""
    total, n_judges = np.zeros((len(parameters), len(parameters))), np.zeros(data.n_items)
    step = len(data) if isinstance(data, Comparisons) else max(CHUNK_PAIRS // data.n_items**2, 1)
    for start in range(0, len(data), step):
        rows = data[start : start + step]
        battles = rows if isinstance(rows, Comparisons) else comparisons_of(rows)
        counts = np.ones(rows.n_judges) if isinstance(rows, Comparisons) else rows.counts.astype(np.float64)
        covariates = pairs.covariates if pairs.covariates.size else np.zeros((len(battles), 0))
        single = PairCounts.of_comparisons(battles, covariates, pairs.model)
        _, derivative, tie_derivative, *_ = single.terms(parameters, pairs.has_tie_parameter)
        scores = single.sums(derivative, battles.judge, battles.n_judges)
        if pairs.has_tie_parameter:
            ties = np.bincount(battles.judge, tie_derivative, battles.n_judges)
            scores = hstack([scores, csr_array(ties[:, None])], format="csr")
        total += (scores.T @ scores.multiply(counts[:, None])).toarray()
        items = np.append(battles.first, battles.second)
        n_judges += units_of_items(np.tile(battles.judge, 2), items, counts, data.n_items)
    return total, n_judges


def units_of_items(unit: IntArray, item: IntArray, counts: FloatArray, n_items: int) -> FloatArray:
    """Return the number of units in which each item occurs, where ``counts`` are numbers of equal units."""
    occurs = np.zeros((len(counts), n_items))
    occurs[unit, item] = 1.0
    return np.asarray(counts @ occurs)


# ---------------------------------------------------------------------- one ranking per group


def rank_groups(data: Comparisons, by: Any, min_comparisons: int | None, prior: float) -> Rankings:
    """Return one Bradley-Terry ranking per group of comparisons: see :meth:`Comparisons.rankings`."""
    least = data.n_items - 1 if min_comparisons is None else check_integer("min_comparisons", min_comparisons)
    names, group = data.groups(by)
    sizes = np.bincount(group, minlength=len(names))
    chosen = np.flatnonzero(sizes >= least)
    if not len(chosen):
        raise RankingError(
            f"no group has {least:,} comparisons (the largest has {sizes.max():,}); give a smaller ",
            Argument("min_comparisons", ...),
        )
    if len(chosen) < len(names):
        warn(
            f"{len(names) - len(chosen):,} of {len(names):,} groups have fewer than {least:,} comparisons and are left "
            f"out, with {sizes.sum() - sizes[chosen].sum():,} of {len(data):,} comparisons",
            ReadingWarning,
        )
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(sizes)
    ranks = np.full((len(chosen), data.n_items), FREE, dtype=np.int32)
    for row, number in enumerate(chosen.tolist()):
        part = data[order[ends[number] - sizes[number] : ends[number]]]
        wins = part.wins + part.ties / 2
        compared = wins + wins.T > 0
        component = connected_components(compared, directed=False)[1]
        inside = np.flatnonzero(component == np.bincount(component).argmax())
        wins = (wins + prior * compared)[np.ix_(inside, inside)]
        strengths, _ = maximize_likelihood(PairCounts.of_matrices(wins, np.zeros_like(wins), "half"))
        ranks[row, inside] = ranks_by_score(-strengths, ROUNDING)
    labels = {"group": np.array([names[number] for number in chosen])}
    return Rankings._trusted(ranks, data.items, labels=labels)

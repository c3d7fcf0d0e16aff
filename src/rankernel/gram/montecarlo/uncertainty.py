"""How sure a sampled estimate is: how its draws spread, or repetitions where these are too few, and what both miss."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices, IntArray, Mask
from rankernel._utils.rng import stream_key
from rankernel.completions.couplings import complete
from rankernel.completions.draws import Draws, effective_size
from rankernel.gram.evaluator import Block, BlockEstimate
from rankernel.gram.methods import MonteCarlo
from rankernel.gram.montecarlo.error import (
    BLOCKS_FOR_EACH,
    FEWEST_OF_ONE,
    LEAST,
    LEAST_OF_OWN,
    Spread,
    between_variance,
    error_bars,
    few_carry,
    n_carrying,
    n_own_repetitions,
    n_repetitions,
    of_few_hits,
    own_spread,
    together,
    unseen,
    widened,
    widening,
)
from rankernel.gram.montecarlo.replicate import Function, Replicate
from rankernel.kernels.base import Kernel

if TYPE_CHECKING:
    from rankernel.gram.montecarlo.sampled import SampledEvaluator

SOME, STEPS = 4, 3  # draws, near which the largest value of a function is looked for, and steps towards each other


def times_compared(method: MonteCarlo, n_blocks: int, n_own: int, n_pairs: int) -> float:
    """Return how many times as many pairs of draws are compared for the errors of estimates as for these alone.

    ``n_own`` of ``n_pairs`` are rankings with themselves. Where draws are a few blocks, all repetitions of these are
    compared with each other.
    """
    times = 1 + n_repetitions(n_blocks, method.replicates) / method.replicates
    if n_blocks >= FEWEST_OF_ONE:
        return times
    n = n_own_repetitions(n_blocks, method.replicates, method.n_draws)
    return times + n**2 / 2 / method.replicates * n_own / max(n_pairs, 1)


class Uncertainty:
    """What an estimator says about itself."""

    def __init__(self, estimator: SampledEvaluator) -> None:
        self.estimator, self.method, self.fair = estimator, estimator.method, estimator.fair

    def barred(self, function: Function, coefficients: FloatArray, places: tuple[Indices, Indices]) -> BlockEstimate:
        """Return the mean of a function with its error; of a ranking with itself, the bias is inside or taken out."""
        found = self.spread(function, coefficients, places)
        left, right = np.ix_(*places)
        fair = (left == right) & self.fair
        if fair.any():
            found = self.without_bias(found, function, coefficients, places)
        value = found.value + self.estimator.known(coefficients[None], places)[0]
        n_more = np.full(fair.shape, len(self.repetitions))
        if fair.any() and self.n_blocks >= FEWEST_OF_ONE:
            n_more[fair] = len(self.own_repetitions)
        error, unreliable = self.errors(found, function, coefficients, left, right, fair, n_more)
        return BlockEstimate(value, error, unreliable)

    def without_bias(
        self, found: Spread, function: Function, coefficients: FloatArray, places: tuple[Indices, Indices]
    ) -> Spread:
        """Return the spread of a mean without the bias of a ranking with itself.

        Of one set of draws such a mean and its variance are small together: the variance comes from several sets.
        """
        fair = found.without_bias()
        r, c = np.nonzero(np.equal.outer(*places))
        if not len(r) or self.n_blocks < FEWEST_OF_ONE:
            return fair
        own = self.own_means(function, coefficients, places[0][r], self.own_repetitions)
        more = 1 + len(self.own_repetitions) / self.method.replicates
        fair.variance[r, c], fair.least_variance[r, c] = own.variance * more, own.least_variance * more
        for name in ("squares", "fourths", "sizes", "size_squares"):
            getattr(fair, name)[r, c] = getattr(own, name)
        return fair

    def errors(
        self,
        found: Spread,
        function: Function,
        coefficients: FloatArray,
        left: Indices,
        right: Indices,
        fair: Mask,
        n_more: IntArray,
    ) -> tuple[FloatArray, Mask]:
        """Return the errors of estimates for pairs of rankings, and which of them are in doubt.

        ``fair`` are those of rankings with themselves without their bias; ``n_more`` sets of draws were looked at
        besides those of the estimate.
        """
        n_runs = (n_more + self.method.replicates).astype(np.float64)
        n_seen = n_independent = np.full(fair.shape, float(len(self.repetitions)))  # as they are
        between = np.zeros(fair.shape, dtype=bool)  # means of these have a variance that is widened already
        if self.n_blocks < FEWEST_OF_ONE:
            between = (left == right) & (~fair | (self.n_blocks == 1))
            n_seen = np.where(between, len(self.own_repetitions) ** 2 / 2, n_seen)
        else:  # or pairs of their blocks
            n_seen, n_independent = n_runs * self.n_blocks**2, n_runs * self.n_blocks
            n_seen = np.where(left == right, n_seen / 2, n_seen)
            # However well it is known how they vary, means over pairs of few blocks are far from normal.
            most = self.n_blocks * self.method.replicates * BLOCKS_FOR_EACH
            n_independent = np.where(fair, np.minimum(n_independent, most), n_independent)
        carrying = n_carrying(found.squares, found.fourths)
        worth = np.minimum(self.worth[left], self.worth[right])
        few = few_carry(carrying, n_seen) | ((worth < 0.5) & (worth * self.method.n_draws < FEWEST_OF_ONE))
        n_pairs, n_different, new = self.n_pairs(left, right, n_runs)
        missed = unseen(found, few, n_pairs, n_different, new)
        missed *= self.largest(function, coefficients, left, right, missed > 0)
        least = np.where(fair, LEAST_OF_OWN, LEAST)
        factor = widened(carrying, n_seen) * np.where(between, 1.0, widening(worth * n_independent))
        hits = of_few_hits(found, n_pairs, n_runs, self.method.replicates)
        factor = factor * np.where(left == right, 1.0, hits)
        error = error_bars(found, least, factor, missed)
        return error, few | (missed > 0)

    def n_pairs(self, left: Indices, right: Indices, n_runs: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return how many pairs of draws were seen of each pair of rankings, how many different ones, and new chances.

        Pairs of coupled draws come together; and those of one set of draws are seen from both sides.
        """
        drawn, m, same = self.replicates[0].drawn, self.method.n_draws, left == right
        n_seen = n_runs * np.where(same, m**2 - (np.diff(np.append(0, self.replicates[0].ends)) ** 2).sum(), m**2)
        n_runs = np.where(same, n_runs / 2, n_runs)
        if self.n_blocks < FEWEST_OF_ONE:  # own pairs are those between repetitions
            n = len(self.own_repetitions) * (len(self.own_repetitions) - 1)
            n_seen, n_runs = np.where(same, n * m**2, n_seen), np.where(same, n / 2, n_runs)
        different, new = drawn.seen
        n_different = different[left] * different[right] / min(drawn.block, m)
        return n_seen, n_runs * n_different, 1 - (1 - new[left]) * (1 - new[right])

    def largest(
        self, function: Function, coefficients: FloatArray, left: Indices, right: Indices, wanted: Mask
    ) -> FloatArray:
        """Return about the largest value of a function between completions, less the part that has a known mean.

        It is looked for where it is wanted: at completions of the one that are near draws of the other, and the other
        way round. Of what is left of a function that is known nothing counts.
        """
        found = np.zeros(wanted.shape)
        rows, columns = (np.broadcast_to(side, wanted.shape)[wanted] for side in (left, right))
        if not len(rows):
            return found
        ranks = self.estimator.rows.ranks
        of_columns = self.replicates[0].drawn.ranks[columns, :SOME]
        for _ in range(STEPS):
            of_rows = complete(ranks[rows], (of_columns + 0.5) / self.estimator.n_items)
            of_columns = complete(ranks[columns], (of_rows + 0.5) / self.estimator.n_items)
        near = Replicate(self.estimator, Draws(np.concatenate([of_rows, of_columns]), None, 1))
        found[wanted] = near.largest(function, coefficients)
        return found

    # ------------------------------------------------------------------ spreads

    def spread(self, function: Function, coefficients: FloatArray, places: tuple[Indices, Indices]) -> Spread:
        """Return the mean of a function over all pairs of draws, with how it varies.

        Where blocks of draws are too few to tell, independent repetitions of all draws are looked at: their blocks, or
        the repetitions as they are if each is of very few blocks.
        """
        drawn = [one.spread(function, coefficients, *places) for one in self.replicates]
        found = together(drawn)
        if not self.repetitions:
            return found
        own, n = not self.fair, self.method.replicates
        runs = [one.spread(function, coefficients, *places) for one in self.repetitions]
        all_runs = together([*runs, *drawn])
        if self.n_blocks >= FEWEST_OF_ONE:
            more = len(runs) / n + 1
            return replace(
                all_runs,
                value=found.value,
                variance=all_runs.variance * more,
                bias=all_runs.bias if own else found.bias,
                unbiased_variance=all_runs.unbiased_variance * more,
                least_variance=all_runs.least_variance * more,
            )
        away = np.array([run.value if own else run.value - run.bias for run in runs])
        away -= away.mean(axis=0)
        squares, fourths = (away**2).sum(axis=0), (away**4).sum(axis=0)
        variance, bias = squares / (len(runs) - 1) / n, found.bias.copy()
        sizes = np.array([all_runs.sizes, all_runs.size_squares])
        for r, c in np.argwhere(np.equal.outer(*places)).tolist():
            fair = self.between_repetitions(function, coefficients, places[0][r])
            sizes[:, r, c] = fair.sizes.item(), fair.size_squares.item()
            # How far it is off is seen, as surely as the mean between repetitions is known.
            if own or self.n_blocks == 1:
                variance[r, c], bias[r, c] = fair.variance.item(), found.value[r, c] - fair.value.item()
                squares[r, c], fourths[r, c] = fair.squares.item(), fair.fourths.item()
        return Spread(found.value, variance, bias, variance, np.zeros_like(variance), squares, fourths, *sizes)

    def own_spreads(self, function: Function, coefficients: FloatArray, places: Indices) -> Spread:
        """Return the means of a function for rankings with themselves, with their biases."""
        found = together([one.own_spreads(function, coefficients, places) for one in self.replicates])
        if self.n_blocks > 1:
            return found
        # A single block of draws is not independent of itself: there, repetitions tell the bias.
        fair = [self.between_repetitions(function, coefficients, row).value.item() for row in places.tolist()]
        return replace(found, bias=found.value - np.array(fair))

    def own_means(self, function: Function, coefficients: FloatArray, places: Indices, more: list[Replicate]) -> Spread:
        """Return the unbiased means of a function for rankings with themselves, from the draws and from more."""
        if self.n_blocks < FEWEST_OF_ONE:
            rows = [self.between_repetitions(function, coefficients, row).numbers for row in places.tolist()]
            return Spread(*np.concatenate(rows, axis=1))
        runs = [one.own_spreads(function, coefficients, places) for one in (*self.replicates, *more)]
        return together(runs).without_bias()

    def between_repetitions(self, function: Function, coefficients: FloatArray, row: Any) -> Spread:
        """Return the mean between independent draws of one ranking, which is unbiased, and how it varies."""
        ranks = np.concatenate([one.drawn.ranks[row : row + 1] for one in self.own_repetitions])
        weights = None
        if self.own_repetitions[0].drawn.weights is not None:
            weights = np.concatenate([one.weights[row : row + 1] for one in self.own_repetitions])
        pooled = Replicate(self.estimator, replace(self.own_repetitions[0].drawn, ranks=ranks, weights=weights))
        every = np.arange(len(ranks))
        each = pooled.spread(function, coefficients, every, every)
        different = ~np.eye(len(every), dtype=bool)
        sizes = np.array([[each.sizes[different].sum()], [each.size_squares[different].sum()]])
        shares = np.full((1, len(every)), 1 / len(every))
        fair = own_spread(each.value[None] / each.value.size, shares, len(every), sizes).without_bias()
        return replace(fair, variance=between_variance(fair, len(every) * self.worth[row]), least_variance=np.zeros(1))

    # ------------------------------------------------------------------ lengths

    def lengths(self, kernel: Kernel, places: Indices) -> tuple[FloatArray, FloatArray, Mask]:
        """Return the squared lengths of some rankings, their errors, and which of them are in doubt.

        They come from all draws that are at hand, and are unbiased where that leaves something clearly positive; else
        the biased ones of the sampled embeddings stand in.
        """
        function, coefficients = self.estimator.averaged(kernel)
        fair = self.own_means(function, coefficients, places, self.repetitions)
        of_blocks = np.full(len(places), self.n_blocks >= FEWEST_OF_ONE)
        n_more = np.full(len(places), len(self.repetitions))
        error, _ = self.errors(fair, function, coefficients, places, places, of_blocks, n_more)
        known = self.estimator.own_known(coefficients, places)
        value = fair.value + known
        unreliable = ~(value > 2 * error)
        for k in np.flatnonzero(unreliable).tolist():
            own = places[k : k + 1]
            value[k] = self.estimator.mean([function], coefficients[None], (own, own)).item() + known[k]
        return value, error, unreliable

    def length_effects(self, kernel: Kernel, factors: FloatArray) -> list[FloatArray] | None:
        """Return by how much the blocks of each set of draws move the lengths of all rankings, times some factors.

        None if lengths come from other draws than entries do.
        """
        if self.n_blocks < FEWEST_OF_ONE:
            return None
        function, coefficients = self.estimator.averaged(kernel)
        places = np.flatnonzero(factors)
        found = []
        for one in self.runs:
            effects = np.zeros((len(factors), self.n_blocks))
            effects[places] = one.own_effects(function, coefficients, places) * factors[places, None]
            found.append(effects)
        return found

    def length_covariances(self, kernel: Kernel, effects: list[FloatArray], tile: Block) -> FloatArray:
        """Return how entries vary together with the lengths of both sides, from the effects of blocks on these."""
        function, coefficients = self.estimator.averaged(kernel)
        places, n_runs = self.estimator.placed(tile), len(self.runs)  # lengths are means over all, entries of the first
        pairs = zip(self.runs, effects, strict=True)
        each = [one.covariances(function, coefficients, moved, *places) for one, moved in pairs]
        worth = np.minimum.outer(*(self.worth[side] for side in places))
        return np.asarray(np.mean(each, axis=0) / n_runs * widening(worth * n_runs * self.n_blocks) ** 2)

    # ------------------------------------------------------------------ more draws

    @property
    def replicates(self) -> list[Replicate]:
        """The draws of the estimate."""
        return self.estimator.replicates

    @property
    def runs(self) -> list[Replicate]:
        """These, and what was drawn besides to tell how they vary."""
        return [*self.replicates, *self.repetitions]

    @property
    def n_blocks(self) -> int:
        """Into how many independent blocks the draws fall."""
        return len(self.replicates[0].ends)

    @cached_property
    def worth(self) -> FloatArray:
        """What part of the draws of each ranking would do if none had more weight than another."""
        if self.replicates[0].drawn.weights is None:
            return np.ones(len(self.replicates[0].drawn.ranks))
        weights = np.concatenate([run.weights for run in self.runs], axis=1)
        return np.asarray(effective_size(weights) / weights.shape[1])

    @cached_property
    def repetitions(self) -> list[Replicate]:
        """Independent draws of the same kind, where the blocks are too few to tell how the estimate varies."""
        return self.drawn_again(range(n_repetitions(self.n_blocks, self.method.replicates)))

    @cached_property
    def own_repetitions(self) -> list[Replicate]:
        """Independent draws of the same kind, for how the mean over pairs of one set of draws varies."""
        n = n_own_repetitions(self.n_blocks, self.method.replicates, self.method.n_draws)
        return [*self.repetitions, *self.drawn_again(range(len(self.repetitions), n))]

    def drawn_again(self, numbers: range) -> list[Replicate]:
        """Return independent draws of the same kind."""
        self.estimator.check_draws(len(numbers))
        seeds = [int(stream_key(cast(int, self.method.rng), f"repetition {number}")) for number in numbers]
        return [Replicate(self.estimator, self.estimator.draw(seed)) for seed in seeds]

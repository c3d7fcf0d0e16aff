"""Plackett-Luce as a race: item x arrives at an exponential time of rate w_x, and the order of arrival is the ranking.

A bucket with rates w comes before items of total rate W with probability

    I = integral over y > 0 of  W exp(-W y) prod (1 - exp(-w y)),

where y is the first arrival among the later items. In s = log y the integrand is smooth and falls off exponentially on
both sides, where the trapezoidal rule converges exponentially in the number of nodes across the peak: for a normal
peak of deviation d and steps h the error is near exp(-2 pi^2 d^2 / h^2). The peak of a large bucket is narrow, so the
step follows its width.
"""

import numpy as np

from rankernel._loops.compiled import compiled_strictly
from rankernel._loops.key_sorts import group_by_bucket, sort_by_keys
from rankernel._loops.random_streams import absorb, exponential, seed_state, uniform

LONGEST_STEP = 0.2
STEPS_PER_WIDTH = 2.0
DEPTH = 42.0


@compiled_strictly
def log_density(y, rates, later):
    """Return the logarithm of ``later exp(-later y) prod (1 - exp(-rates y))``."""
    total = np.log(later) - later * y
    for rate in rates:
        total += np.log(-np.expm1(-rate * y))
    return total


@compiled_strictly
def slope(y, rates, later):
    """Return the derivative of the log-density, a decreasing function of y."""
    total = -later
    for rate in rates:
        # Beyond 700 the exponential overflows and the term is 0.
        total += rate / np.expm1(rate * y) if rate * y < 700.0 else 0.0
    return total


@compiled_strictly
def mode(rates, later):
    """Return where the log-concave density is largest, by bisection on a logarithmic scale."""
    low = 1.0 / later
    while slope(low, rates, later) < 0.0:
        low *= 0.5
    high = low
    while slope(high, rates, later) > 0.0:
        high *= 2.0
    for _ in range(60):
        middle = np.sqrt(low * high)
        if slope(middle, rates, later) > 0.0:
            low = middle
        else:
            high = middle
    return np.sqrt(low * high)


@compiled_strictly
def step_at(peak, rates, later):
    """Return the step in log y that resolves the peak, from its curvature there."""
    curvature = later * peak
    for rate in rates:
        z = rate * peak
        share = z / np.expm1(z) if z < 700.0 else 0.0
        curvature += share * (share + z - 1.0)
    return min(LONGEST_STEP, 1.0 / (STEPS_PER_WIDTH * np.sqrt(curvature)))


@compiled_strictly
def integrate(rates, later, gradient):
    """Return log I; write its derivatives in the logarithms of the rates into ``gradient``, that in log W last."""
    size = len(rates)
    peak = mode(rates, later)
    step = step_at(peak, rates, later)
    log_peak = log_density(peak, rates, later) + np.log(peak)
    total = 0.0
    for j in range(size + 1):
        gradient[j] = 0.0
    for side in (-1, 1):
        node = 0 if side > 0 else 1
        while True:
            y = peak * np.exp(side * node * step)
            exponent = log_density(y, rates, later) + np.log(y) - log_peak
            if exponent < -DEPTH:
                break
            mass = np.exp(exponent)
            total += mass
            for j in range(size):
                z = rates[j] * y
                gradient[j] += mass * (z / np.expm1(z) if z < 700.0 else 0.0)
            gradient[size] += mass * (1.0 - later * y)
            node += 1
    for j in range(size + 1):
        gradient[j] /= total
    return log_peak + np.log(total * step)


@compiled_strictly
def log_probabilities(ranks, weights, counts, gradient):
    """Return the log-probability of each ranking, and add up count times its gradient in the log-weights."""
    n_rankings, n_items = ranks.shape
    out = np.zeros(n_rankings)
    members, ends = np.empty(n_items, dtype=np.int64), np.empty(n_items + 1, dtype=np.int64)
    parts, rates = np.empty(n_items + 1), np.empty(n_items)
    for i in range(n_rankings):
        n_buckets = group_by_bucket(ranks[i], members, ends)
        later = 0.0
        stop = ends[n_buckets - 1] if n_buckets else 0
        for b in range(n_buckets - 1, -1, -1):
            start = ends[b - 1] if b else 0
            size = stop - start
            for j in range(size):
                rates[j] = weights[members[start + j]]
            if later > 0.0:
                if size == 1:
                    share = rates[0] / (rates[0] + later)
                    out[i] += np.log(share)
                    parts[0], parts[1] = 1.0 - share, share - 1.0
                else:
                    out[i] += integrate(rates[:size], later, parts)
                for j in range(size):
                    gradient[members[start + j]] += counts[i] * parts[j]
                for j in range(stop, ends[n_buckets - 1]):
                    gradient[members[j]] += counts[i] * parts[size] * weights[members[j]] / later
            later += rates[:size].sum()
            stop = start
    return out


@compiled_strictly
def first_later_arrival(rates, later, peak, height, state):
    """Draw y from its log-concave density, of the given mode and density there (Devroye's rejection, 1 in 4 kept)."""
    log_peak = log_density(peak, rates, later)
    while True:
        x = 2.0 * uniform(state)
        level = -exponential(state)
        if x > 1.0:
            tail = exponential(state)
            x = 1.0 + tail
            level -= tail
        y = peak + x / height if uniform(state) < 0.5 else peak - x / height
        if y > 0.0 and level <= log_density(y, rates, later) - log_peak:
            return y


@compiled_strictly
def bucket_times(rates, later, peak, height, state, times):
    """Draw the arrivals of a bucket given that all come before any later item; return the first later arrival."""
    size = len(rates)
    if later == 0.0:
        for j in range(size):
            times[j] = exponential(state) / rates[j]
        return np.inf
    if size == 1:
        times[0] = exponential(state) / (rates[0] + later)
        return times[0] + exponential(state) / later
    y = first_later_arrival(rates, later, peak, height, state)
    for j in range(size):
        times[j] = -np.log1p(uniform(state) * np.expm1(-rates[j] * y)) / rates[j]
    return y


@compiled_strictly
def race(rates, ends, n_buckets, later, peaks, heights, state, times):
    """Draw arrival times of all items, in the order of ``rates``: bucket by bucket, the free items behind."""
    start, clock = 0, 0.0
    for b in range(n_buckets):
        own = times[start : ends[b]]
        next_arrival = bucket_times(rates[start : ends[b]], later[b], peaks[b], heights[b], state, own)
        # Behind another bucket, the first arrival of this one has been drawn already: it is on the clock.
        shift = clock - own.min() if b else 0.0
        for j in range(len(own)):
            own[j] += shift
        clock = next_arrival + shift
        start = ends[b]
    for j in range(start, len(rates)):
        times[j] = exponential(state) / rates[j]


@compiled_strictly
def prepare(rates, ends, n_buckets, later, peaks, heights):
    """Write the total rate behind each bucket, and the mode of its first later arrival and the density there."""
    behind = 0.0
    parts = np.empty(len(rates) + 1)
    for b in range(n_buckets - 1, -1, -1):
        start = ends[b - 1] if b else 0
        own = rates[start : ends[b]]
        later[b] = behind
        if behind > 0.0 and len(own) > 1:
            peaks[b] = mode(own, behind)
            heights[b] = np.exp(log_density(peaks[b], own, behind) - integrate(own, behind, parts))
        behind += own.sum()


@compiled_strictly
def draw(ranks, weights, n_draws, streams):
    """Return completions of each ranking from the model given the ranking."""
    n_rankings, n_items = ranks.shape
    out = np.empty((n_rankings, n_draws, n_items), dtype=np.int16)
    members, order = np.empty(n_items, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    ends, state = np.empty(n_items + 1, dtype=np.int64), np.empty(4, dtype=np.uint64)
    places, spare = np.empty(n_items, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    rates, times, later = np.empty(n_items), np.empty(n_items), np.zeros(n_items)
    peaks, heights = np.ones(n_items), np.ones(n_items)
    for i in range(n_rankings):
        n_buckets = group_by_bucket(ranks[i], members, ends)
        for j in range(n_items):
            rates[j] = weights[members[j]]
        prepare(rates, ends, n_buckets, later, peaks, heights)
        for d in range(n_draws):
            seed_state(state, absorb(streams[i], np.uint64(d)))
            race(rates, ends, n_buckets, later, peaks, heights, state, times)
            for j in range(n_items):
                order[j] = members[j]
            sort_by_keys(order, times, places, spare)
            for position in range(n_items):
                out[i, d, order[position]] = position
    return out

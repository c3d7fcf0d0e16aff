"""Linear extensions: all of them, perfect draws by coupling from the past, restricted insertion, cheapest orders."""

import numpy as np

from rankernel._loops.compiled import compiled, compiled_strictly

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1, MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
ONE, TOP_53 = np.uint64(1), np.uint64(11)
NOBODY = -1


@compiled
def all_extensions(before, n_extensions):
    """List every linear extension as a rank vector, orders in lexicographic order."""
    n_items = len(before)
    found = np.empty((n_extensions, n_items), dtype=np.int16)
    order = np.empty(n_items, dtype=np.int64)
    placed = np.zeros(n_items, dtype=np.bool_)
    number, depth, x = 0, 0, 0
    while number < n_extensions:
        while x < n_items and not can_follow(before, placed, x):
            x += 1
        if x < n_items:
            order[depth], placed[x] = x, True
            depth, x = depth + 1, 0
            if depth < n_items:
                continue
            for position in range(n_items):
                found[number, order[position]] = position
            number += 1
        # All that begins like this is done: take back the last item and try those after it.
        depth -= 1
        x = order[depth]
        placed[x] = False
        x += 1
    return found


@compiled
def can_follow(before, placed, x):
    if placed[x]:
        return False
    waiting = False
    for y in range(len(before)):
        waiting |= before[y, x] and not placed[y]
    return not waiting


# ---------------------------------------------------------------------- coupling from the past


@compiled_strictly
def random_word(rng, number):
    """Word ``number`` of the stream of a seed (SplitMix64): blocks of the past can be run again at will."""
    word = rng + np.uint64(number + 1) * GOLDEN
    word = (word ^ (word >> np.uint64(30))) * MIX_1
    word = (word ^ (word >> np.uint64(27))) * MIX_2
    return word ^ (word >> np.uint64(31))


@compiled_strictly
def run_block(before, rng, n_steps, order, follow):
    """Run one block of the bounding chain and, if ``follow``, one linear extension along with it.

    The linear extension walks by adjacent transpositions: a place, a fair coin, and the two neighbours change places
    on heads unless that breaks the partial order. Invariant of the bound: an item at place p of ``bound`` stands at
    place p or earlier in *every* linear extension that was started with the block. Items (numbered so that none comes
    before its predecessors) enter ``bound`` at the last place, where that is trivially true, one after another, and
    the coin of the bound is turned over for a linear extension exactly where keeping it would break the invariant.
    With all items in the bound, all linear extensions are equal to it.
    """
    n_items = len(before)
    bound = np.empty(n_items, dtype=np.int64)
    for place in range(n_items - 1):
        bound[place] = NOBODY
    bound[-1] = 0
    n_entered = 1
    for step in range(n_steps):
        word = random_word(rng, step)
        place = int((word >> TOP_53) * 2.0**-53 * (n_items - 1))
        heads = (word & ONE) == ONE
        upper, lower = bound[place], bound[place + 1]
        if follow:
            first, second = order[place], order[place + 1]
            if heads != (first == lower) and not before[first, second]:
                order[place], order[place + 1] = second, first
        if heads and (upper == NOBODY or lower == NOBODY or not before[upper, lower]):
            bound[place], bound[place + 1] = lower, upper
            if bound[-1] == NOBODY:
                bound[-1] = n_entered
                n_entered += 1
    if not follow:
        for place in range(n_items):
            order[place] = bound[place]
    return n_entered == n_items


@compiled_strictly
def coupled_draws(before, seeds, first_block):
    """Exactly uniform linear extensions, one a seed; items must be numbered along a linear extension.

    Blocks of doubled length reach back into the past until one makes all linear extensions equal; what it ends in is
    then led through the later blocks by the very randomness with which those were tried.
    """
    n_items = len(before)
    ranks = np.empty((len(seeds), n_items), dtype=np.int16)
    order = np.empty(n_items, dtype=np.int64)
    for d in range(len(seeds)):
        block = 0
        while not run_block(before, random_word(seeds[d], block), first_block << block, order, False):
            block += 1
        for later in range(block - 1, -1, -1):
            run_block(before, random_word(seeds[d], later), first_block << later, order, True)
        for position in range(n_items):
            ranks[d, order[position]] = position
    return ranks


# ---------------------------------------------------------------------- repeated insertion


@compiled_strictly
def log_geometric_sum(theta, n_terms):
    """Return the logarithm of 1 + q + ... + q^(n_terms - 1), q = exp(-theta)."""
    return np.log(n_terms) if theta == 0 else np.log(np.expm1(-theta * n_terms) / np.expm1(-theta))


@compiled_strictly
def truncated_geometric(theta, n_terms, uniform):
    """Return a number j below n_terms with probability proportional to q^j, by inversion."""
    if theta == 0:
        return min(int(uniform * n_terms), n_terms - 1)
    return min(int(-np.log1p(uniform * np.expm1(-theta * n_terms)) / theta), n_terms - 1)


@compiled_strictly
def insertions(before, order, theta, uniforms):
    """Draws by inserting the items in the order of the center, each into a slot that the partial order allows.

    A slot that lets j items stand behind the new one has probability proportional to exp(-theta j). Returned with
    each draw: the logarithm of exp(-theta d(draw, center)) over the probability of the draw.
    """
    n_draws, n_items = uniforms.shape
    ranks = np.empty((n_draws, n_items), dtype=np.int16)
    log_weights = np.zeros(n_draws)
    for d in range(n_draws):
        rank = ranks[d]
        for i in range(n_items):
            x = order[i]
            low, high = 0, i
            for y in order[:i]:
                if before[y, x]:
                    low = max(low, rank[y] + 1)
                elif before[x, y]:
                    high = min(high, rank[y])
            n_slots = high - low + 1
            slot = high - truncated_geometric(theta, n_slots, uniforms[d, i])
            log_weights[d] += log_geometric_sum(theta, n_slots) - theta * (i - high)
            for y in order[:i]:
                if rank[y] >= slot:
                    rank[y] += 1
            rank[x] = slot
    return ranks, log_weights

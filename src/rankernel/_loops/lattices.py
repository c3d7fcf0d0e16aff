"""The lattice of down-sets of a partial order: paths from the empty set to the full set are its linear extensions.

A down-set is a row of 64-bit words, one bit an item. The steps that leave down-set ``s`` are those numbered
``start[s]`` to ``start[s + 1]``; step ``e`` appends ``item[e]`` and arrives at down-set ``target[e]``, which always
has a higher number. A step weighs ``exp(-theta * cost[e])``, a path the product of its steps.
"""

import numpy as np

from rankernel._loops.compiled import compiled, compiled_strictly

ZERO, ONE = np.uint64(0), np.uint64(1)
MIX_1, MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
PAIRS, FOURS, BYTES = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
ONES_IN_BYTES = np.uint64(0x0101010101010101)


@compiled
def has(down_set, x):
    return (down_set[x >> 6] >> np.uint64(x & 63)) & ONE != ZERO


@compiled
def contains(down_set, part):
    outside = ZERO
    for w in range(len(part)):
        outside |= part[w] & ~down_set[w]
    return outside == ZERO


@compiled
def same(down_set, other):
    different = ZERO
    for w in range(len(other)):
        different |= down_set[w] ^ other[w]
    return different == ZERO


@compiled
def bit_count(word):
    word = word - ((word >> ONE) & PAIRS)
    word = (word & FOURS) + ((word >> np.uint64(2)) & FOURS)
    word = (word + (word >> np.uint64(4))) & BYTES
    return np.int64((word * ONES_IN_BYTES) >> np.uint64(56))


@compiled
def home(table, sets, key):
    """Where in the hash table this down-set is, or where it belongs."""
    code = ZERO
    for word in key:
        code = (code ^ word) * MIX_1
        code = (code ^ (code >> np.uint64(29))) * MIX_2
        code = code ^ (code >> np.uint64(32))
    slot = np.int64(code & np.uint64(len(table) - 1))
    while table[slot] >= 0 and not same(sets[table[slot]], key):
        slot = (slot + 1) & (len(table) - 1)
    return slot


@compiled
def lattice(predecessors, sets, start, target, item, table):
    """Fill in the lattice, layer by layer, and return how many down-sets and steps it has: -1 if they do not fit.

    ``sets`` must be zero and ``table`` -1 everywhere; the length of the table is a power of two.
    """
    n_items, n_words = predecessors.shape
    key = np.zeros(n_words, dtype=np.uint64)
    table[home(table, sets, key)] = 0
    n_sets, n_steps, s = 1, 0, 0
    while s < n_sets:
        start[s] = n_steps
        for x in range(n_items):
            if has(sets[s], x) or not contains(sets[s], predecessors[x]):
                continue
            for w in range(n_words):
                key[w] = sets[s, w]
            key[x >> 6] |= ONE << np.uint64(x & 63)
            slot = home(table, sets, key)
            if n_steps == len(target) or (table[slot] < 0 and n_sets == len(sets)):
                return -1, -1
            if table[slot] < 0:
                for w in range(n_words):
                    sets[n_sets, w] = key[w]
                table[slot] = n_sets
                n_sets += 1
            target[n_steps] = table[slot]
            item[n_steps] = x
            n_steps += 1
        s += 1
    start[n_sets] = n_steps
    return n_sets, n_steps


@compiled
def step_costs(sets, start, item, later):
    """How many items of the down-set stand after the appended item in the center: its share of the discordances."""
    cost = np.empty(len(item), dtype=np.int16)
    for s in range(len(sets)):
        for e in range(start[s], start[s + 1]):
            discordant = 0
            for w in range(sets.shape[1]):
                discordant += bit_count(sets[s, w] & later[item[e], w])
            cost[e] = discordant
    return cost


@compiled
def n_paths(start, target, modulus):
    """Count paths modulo an integer below 2^63."""
    paths = np.zeros(len(start) - 1, dtype=np.uint64)
    paths[-1] = ONE
    for s in range(len(paths) - 2, -1, -1):
        total = ZERO
        for e in range(start[s], start[s + 1]):
            total += paths[target[e]]
            if total >= modulus:
                total -= modulus
        paths[s] = total
    return paths[0]


@compiled_strictly
def log_weights_above(start, target, cost, theta):
    """For each down-set the logarithm of the total weight of the paths from it to the full set."""
    above = np.zeros(len(start) - 1)
    for s in range(len(above) - 2, -1, -1):
        largest = -np.inf
        for e in range(start[s], start[s + 1]):
            largest = max(largest, above[target[e]] - theta * cost[e])
        total = 0.0
        for e in range(start[s], start[s + 1]):
            total += np.exp(above[target[e]] - theta * cost[e] - largest)
        above[s] = largest + np.log(total)
    return above


@compiled_strictly
def step_probabilities(start, target, cost, theta, above):
    """Probability of each step, given the down-set that it leaves."""
    given = np.empty(len(target))
    for s in range(len(start) - 1):
        for e in range(start[s], start[s + 1]):
            given[e] = np.exp(above[target[e]] - theta * cost[e] - above[s])
    return given


@compiled_strictly
def mean_cost(start, target, cost, given):
    """Mean cost of a path."""
    mean = np.zeros(len(start) - 1)
    for s in range(len(mean) - 2, -1, -1):
        for e in range(start[s], start[s + 1]):
            mean[s] += given[e] * (cost[e] + mean[target[e]])
    return mean[0]


@compiled_strictly
def marginals(sets, start, target, item, given):
    """Probability of each position of each item, and of each item standing before each other one."""
    n_items = 0
    for word in sets[-1]:
        n_items += bit_count(word)
    position = np.zeros((n_items, n_items))
    pair = np.zeros((n_items, n_items))
    visited = np.zeros(len(sets))
    visited[0] = 1.0
    for s in range(len(sets)):
        size = 0
        for word in sets[s]:
            size += bit_count(word)
        for e in range(start[s], start[s + 1]):
            probability = visited[s] * given[e]
            visited[target[e]] += probability
            position[item[e], size] += probability
            for x in range(n_items):
                if has(sets[s], x):
                    pair[x, item[e]] += probability
    return position, pair


@compiled_strictly
def draws(start, target, item, given, uniforms):
    """One path for each row of uniforms, as a rank vector."""
    n_draws, n_items = uniforms.shape
    ranks = np.empty((n_draws, n_items), dtype=np.int16)
    for d in range(n_draws):
        s = 0
        for position in range(n_items):
            e, last = start[s], start[s + 1] - 1
            left = uniforms[d, position] - given[e]
            # The probabilities of a row sum to one only up to rounding: the last step takes what is left.
            while left >= 0 and e < last:
                e += 1
                left -= given[e]
            ranks[d, item[e]] = position
            s = target[e]
    return ranks

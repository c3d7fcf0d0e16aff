"""A random stream for each ranking: xoshiro256++ whose state is spread by splitmix64 from a 64-bit hash.

Constants are unsigned throughout: numba turns a mixture of signed and unsigned integers into floats. Nothing here may
be reordered by the compiler, so that the draws are the same on every machine.
"""

import numpy as np

from rankernel._loops.compiled import compiled_strictly

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
S_11, S_17, S_23, S_27, S_30, S_31, S_45 = (np.uint64(s) for s in (11, 17, 23, 27, 30, 31, 45))
S_19, S_41 = np.uint64(19), np.uint64(41)
UNIT = 2.0**-53


def scramble(x):
    """Scramble 64 bits, one to one: the finaliser of splitmix64; of a word in a loop or of many in an array."""
    x = (x ^ (x >> S_30)) * MIX_1
    x = (x ^ (x >> S_27)) * MIX_2
    return x ^ (x >> S_31)


mix = compiled_strictly(scramble)


@compiled_strictly
def absorb(stream, number):
    """Return the stream that belongs to a number inside a stream."""
    return mix(mix(stream + GOLDEN) + GOLDEN * (np.uint64(number) + np.uint64(1)))


def absorb_each(streams, numbers):
    """Return the same as :func:`absorb` for arrays."""
    return scramble(scramble(streams + GOLDEN) + GOLDEN * (numbers + np.uint64(1)))


def hash_rows(ranks, key, rows):
    """Return one stream a ranking, from the key, its ranks and the number that goes with it."""
    n_rankings, n_items = ranks.shape
    streams = absorb_each(np.full(n_rankings, key), np.full(n_rankings, n_items, np.uint64))
    for a in range(n_items):
        streams = absorb_each(streams, (ranks[:, a] + 1).astype(np.uint64))
    return absorb_each(streams, rows)


@compiled_strictly
def seed_state(state, stream):
    """Set the four words of a generator from one word."""
    for i in range(4):
        stream = stream + GOLDEN
        state[i] = mix(stream)


@compiled_strictly
def next_word(state):
    """Return 64 random bits and move the generator on."""
    total = state[0] + state[3]
    word = ((total << S_23) | (total >> S_41)) + state[0]
    shifted = state[1] << S_17
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = (state[3] << S_45) | (state[3] >> S_19)
    return word


@compiled_strictly
def uniform(state):
    """Return a number in [0, 1)."""
    return np.float64(next_word(state) >> S_11) * UNIT


@compiled_strictly
def exponential(state):
    """Return a number with density exp(-x)."""
    return -np.log1p(-uniform(state))


@compiled_strictly
def normal(state):
    """Return a standard normal number (Box and Muller)."""
    radius = np.sqrt(2.0 * exponential(state))
    return radius * np.cos(2.0 * np.pi * uniform(state))


@compiled_strictly
def uniforms(streams, n_numbers):
    """Return the first numbers of each stream."""
    numbers = np.empty((len(streams), n_numbers))
    state = np.empty(4, dtype=np.uint64)
    for i in range(len(streams)):
        seed_state(state, streams[i])
        for j in range(n_numbers):
            numbers[i, j] = uniform(state)
    return numbers

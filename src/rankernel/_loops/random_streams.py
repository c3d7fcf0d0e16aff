"""Random numbers in compiled loops.

Streams are 64-bit words, mixed as in splitmix64 (Steele, Lea and Flood 2014). Numbers are those of xoshiro256++
(Blackman and Vigna 2021), seeded from a stream.

Constants are unsigned, because numba converts mixtures of signed and unsigned integers to floats. The functions are
compiled without reordering, so that the draws are the same on every machine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankernel._loops.compiled import compiled_strictly
from rankernel._utils import FloatArray

State = NDArray[np.uint64]
Streams = NDArray[np.uint64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1, MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S_11, S_17, S_19, S_23, S_27, S_30, S_31, S_41, S_45 = map(np.uint64, (11, 17, 19, 23, 27, 30, 31, 41, 45))
UNIT = 2.0**-53


@compiled_strictly
def mix(word: np.uint64) -> np.uint64:
    """Return a word with its bits mixed, one to one: the finaliser of splitmix64."""
    word = (word ^ (word >> S_30)) * MIX_1
    word = (word ^ (word >> S_27)) * MIX_2
    return word ^ (word >> S_31)


@compiled_strictly
def substream(stream: np.uint64, number: int) -> np.uint64:
    """Return the substream with the given number."""
    return mix(mix(stream + GOLDEN) + GOLDEN * (np.uint64(number) + np.uint64(1)))


@compiled_strictly
def seed_state(state: State, stream: np.uint64) -> None:
    """Seed a generator from a stream."""
    for i in range(4):
        stream = stream + GOLDEN
        state[i] = mix(stream)


@compiled_strictly
def next_word(state: State) -> np.uint64:
    """Return 64 random bits and advance the generator."""
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
def uniform(state: State) -> float:
    """Return a uniform number in [0, 1)."""
    return np.float64(next_word(state) >> S_11) * UNIT


@compiled_strictly
def exponential(state: State) -> float:
    """Return a standard exponential number."""
    return -np.log1p(-uniform(state))


@compiled_strictly
def normal(state: State) -> float:
    """Return a standard normal number (Box-Muller)."""
    radius = np.sqrt(2.0 * exponential(state))
    return radius * np.cos(2.0 * np.pi * uniform(state))


@compiled_strictly
def uniforms(streams: Streams, n_numbers: int) -> FloatArray:
    """Return the first uniform numbers of each stream."""
    numbers = np.empty((len(streams), n_numbers))
    state = np.empty(4, dtype=np.uint64)
    for i in range(len(streams)):
        seed_state(state, streams[i])
        for j in range(n_numbers):
            numbers[i, j] = uniform(state)
    return numbers

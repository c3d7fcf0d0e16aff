"""Counting bits, and rankings as bits."""

from functools import lru_cache

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

WORD = 64
MAX_ITEMS = 256  # of rankings whose pairs are kept as bits: 4 KB each; beyond, inversions are counted
AT_ONCE = 2**22  # bits that are spread out at once


@intrinsic
def popcount(typing_context, word):
    """Count the bits that are set in a 64-bit word: one machine instruction."""

    def generate(context, builder, signature, arguments):
        count = builder.module.declare_intrinsic("llvm.ctpop", [ir.IntType(64)])
        return builder.call(count, arguments)

    return types.uint64(types.uint64), generate


@intrinsic
def trailing_zeros(typing_context, word):
    """Return the place of the lowest bit that is set in a 64-bit word; 64 if none is."""

    def generate(context, builder, signature, arguments):
        wide, flag = ir.IntType(64), ir.IntType(1)
        count = builder.module.declare_intrinsic("llvm.cttz", [wide], ir.FunctionType(wide, [wide, flag]))
        return builder.call(count, [*arguments, ir.Constant(flag, 0)])

    return types.int64(types.uint64), generate


@lru_cache(maxsize=8)
def pairs_of_items(n):
    """Return the items a and b of each pair, a < b: draws are packed a few at a time, over and over."""
    return np.triu_indices(n, 1)


def pairs_in_order(ranks):
    """Return for each ranking the bits of the pairs of items (a, b), a < b, that it orders a before b."""
    n_rankings, n = ranks.shape
    first, second = pairs_of_items(n)
    n_words = max(-(-len(first) // WORD), 1)
    out = np.zeros((n_rankings, n_words), np.uint64)
    step = max(AT_ONCE // (n_words * WORD), 1)
    for start in range(0, n_rankings, step):
        items = np.ascontiguousarray(ranks[start : start + step].T)
        bits = np.packbits(items[first] < items[second], axis=0, bitorder="little")
        out.view(np.uint8)[start : start + step, : len(bits)] = bits.T
    return out


def tied_sets(ranks, sizes):
    """Return the buckets of more than one item as sets of bits: one column a bucket, empty ones last, at least one.

    ``sizes[i]`` are the sizes of the buckets of ranking i, of at most 53 items: sums of their bits are exact as floats.
    """
    tied = sizes > 1
    width = max(int(tied.sum(axis=1).max(initial=0)), 1)
    column = np.where(tied, np.cumsum(tied, axis=1) - 1, -1)
    own = np.take_along_axis(column, ranks.astype(np.int64), axis=1)
    row, item = np.nonzero(own >= 0)
    sets = np.bincount(row * width + own[row, item], weights=2.0**item, minlength=len(ranks) * width)
    return sets.reshape(len(ranks), width).astype(np.uint64)

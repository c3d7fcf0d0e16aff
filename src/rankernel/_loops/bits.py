"""Counting bits, and rankings as bits."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from rankernel._loops.compiled import compiled


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


@compiled
def pairs_in_order(ranks):
    """Return for each ranking the bits of the pairs of items (a, b), a < b, that it orders a before b."""
    n_rankings, n = ranks.shape
    out = np.zeros((n_rankings, max((n * (n - 1) // 2 + 63) // 64, 1)), np.uint64)
    for i in range(n_rankings):
        place, word, w = 0, np.uint64(0), 0
        for a in range(n):
            for b in range(a + 1, n):
                word |= np.uint64(ranks[i, a] < ranks[i, b]) << np.uint64(place)
                place += 1
                if place == 64:
                    out[i, w] = word
                    place, word, w = 0, np.uint64(0), w + 1
        if place:
            out[i, w] = word
    return out


@compiled
def tied_sets(ranks, sizes):
    """Return the buckets of more than one item as sets of bits: one column a bucket, empty ones last, at least one.

    ``sizes[i]`` are the sizes of the buckets of ranking i.
    """
    most = 1
    for i in range(len(sizes)):
        most = max(most, (sizes[i] > 1).sum())
    out = np.zeros((len(sizes), most), np.uint64)
    column = np.empty(sizes.shape[1], np.int64)
    for i in range(len(sizes)):
        found = 0
        for bucket in range(sizes.shape[1]):
            column[bucket] = found if sizes[i, bucket] > 1 else -1
            found += sizes[i, bucket] > 1
        for a in range(ranks.shape[1]):
            if column[ranks[i, a]] >= 0:
                out[i, column[ranks[i, a]]] |= np.uint64(1) << np.uint64(a)
    return out

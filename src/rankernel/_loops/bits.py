"""Machine instructions on 64-bit words, and rankings as bits."""

from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj

WORD = 64
# The order of every pair of items is stored as one bit for rankings of at most this many items: 4 KB for each ranking.
# Beyond, inversions are counted, which takes longer but no memory (benchmarks/grams.py).
MAX_ITEMS = 256
BITS_AT_ONCE = 2**22  # bits that are packed at once


def generate_popcount(typing_context, word):
    """Count the bits that are set in a 64-bit word: one machine instruction."""

    def generate(context, builder, signature, arguments):
        count = builder.module.declare_intrinsic("llvm.ctpop", [ir.IntType(64)])
        return builder.call(count, arguments)

    return types.uint64(types.uint64), generate


def generate_trailing_zeros(typing_context, word):
    """Return the index of the lowest bit that is set in a 64-bit word; 64 if none is."""

    def generate(context, builder, signature, arguments):
        wide, flag = ir.IntType(64), ir.IntType(1)
        count = builder.module.declare_intrinsic("llvm.cttz", [wide], ir.FunctionType(wide, [wide, flag]))
        return builder.call(count, [*arguments, ir.Constant(flag, 0)])

    return types.int64(types.uint64), generate


def generate_stream(typing_context, array, i, j, value):
    """Set ``array[i, j] = value`` without reading the cache line first; indices must be in range."""

    def generate(context, builder, signature, arguments):
        target = arrayobj.make_array(array)(context, builder, arguments[0])
        pointer = cgutils.get_item_pointer(
            context, builder, array, target, arguments[1:3], wraparound=False, boundscheck=False
        )
        word = ir.IntType(array.dtype.bitwidth)
        store = builder.store(
            builder.bitcast(arguments[3], word),
            builder.bitcast(pointer, word.as_pointer()),
            align=array.dtype.bitwidth // 8,
        )
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, array.dtype), generate


# The type checker does not know that numba provides the first argument.
popcount: Any = intrinsic(generate_popcount)
trailing_zeros: Any = intrinsic(generate_trailing_zeros)
stream: Any = intrinsic(generate_stream)


@lru_cache(maxsize=8)
def pairs_of_items(n):
    """Return the items a and b of each pair, a < b."""
    return np.triu_indices(n, 1)


def pairs_in_order(ranks):
    """Return for each ranking the bits of the pairs of items (a, b), a < b, that it orders a before b."""
    n_rankings, n = ranks.shape
    first, second = pairs_of_items(n)
    n_words = max(-(-len(first) // WORD), 1)
    out = np.zeros((n_rankings, n_words), np.uint64)
    step = max(BITS_AT_ONCE // (n_words * WORD), 1)
    for start in range(0, n_rankings, step):
        items = np.ascontiguousarray(ranks[start : start + step].T)
        bits = np.packbits(items[first] < items[second], axis=0, bitorder="little")
        out.view(np.uint8)[start : start + step, : len(bits)] = bits.T
    return out


def tied_sets(ranks, sizes):
    """Return the buckets of more than one item as sets of bits: one column for each, at least one, empty ones last.

    ``sizes[i]`` are the sizes of the buckets of ranking i. With at most 53 items sums of their bits are exact as
    floats.
    """
    tied = sizes > 1
    n_columns = max(int(tied.sum(axis=1).max(initial=0)), 1)
    column = np.where(tied, np.cumsum(tied, axis=1) - 1, -1)
    column_of_item = np.take_along_axis(column, ranks.astype(np.int64), axis=1)
    row, item = np.nonzero(column_of_item >= 0)
    cells = row * n_columns + column_of_item[row, item]
    sets = np.bincount(cells, weights=2.0**item, minlength=len(ranks) * n_columns)
    return sets.reshape(len(ranks), n_columns).astype(np.uint64)

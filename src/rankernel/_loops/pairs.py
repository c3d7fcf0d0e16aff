"""Loops over pairs of rankings: bits, distances, inner products, and draws."""

from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj

from rankernel._loops.compiled import compiled, compiled_strictly

WORD = 64
# The order of every pair of items is stored as one bit for rankings of at most this many items: 4 KB for each ranking.
# Beyond, inversions are counted, which takes longer but no memory (benchmarks/grams.py).
MAX_BIT_ITEMS = 256
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


# ---------------------------------------------------------------------- distances between full rankings

# Sides have one row for each item, or for each word of bits, so that the innermost loop is over columns in memory.


@compiled
def differing_bits(left, right, out):
    """Count the bits in which the columns of words on the left differ from those on the right."""
    for i in range(left.shape[1]):
        for j in range(right.shape[1]):
            out[i, j] = popcount(left[0, i] ^ right[0, j])
        for w in range(1, len(left)):
            word = left[w, i]
            for j in range(right.shape[1]):
                out[i, j] += popcount(word ^ right[w, j])


ONE, SIX, LOW_BITS = np.uint64(1), np.uint64(6), np.uint64(63)


@compiled
def count_inversions(x, order, position, end, words):
    """Count the pairs of items in opposite strict order in two rankings.

    ``order`` lists the items by x, best first. ``position[a]`` is the position of item a in the other ranking, ties
    broken in any way, and ``end[a]`` that of the first item of later buckets. The positions of earlier items are
    bits of ``words``, a work array of n // 64 + 1 words.
    """
    n, count, start = len(order), 0, 0
    for w in range(len(words)):
        words[w] = 0
    while start < n:
        stop = start
        while stop < n and x[order[stop]] == x[order[start]]:
            later = np.uint64(end[order[stop]])
            first = later >> SIX
            count += popcount(words[first] >> (later & LOW_BITS))
            for w in range(first + ONE, len(words)):
                count += popcount(words[w])
            stop += 1
        for p in range(start, stop):
            bit = np.uint64(position[order[p]])
            words[bit >> SIX] |= ONE << (bit & LOW_BITS)
        start = stop
    return count


@compiled
def count_discordant(X, order, n_buckets, position, end, n_buckets_Y, max_cells, discordant):
    """Count the discordant pairs of many items where there are more than ``max_cells`` pairs of buckets.

    Arguments as in :func:`count_inversions`, for each ranking.
    """
    words = np.zeros((X.shape[1] >> 6) + 1, np.uint64)
    for i in range(X.shape[0]):
        for j in range(len(position)):
            if n_buckets[i] * n_buckets_Y[j] > max_cells:
                discordant[i, j] = count_inversions(X[i], order[i], position[j], end[j], words)


FOOTRULE, SPEARMAN, HAMMING, LINF = range(4)


@compiled
def rankwise(left, right, kind, sums, out):
    """Sums of absolute or squared differences of ranks, items whose ranks differ, or the largest difference.

    ``sums`` is a work array, at least as long as a row of the result, of integers that hold the largest sum.
    """
    for i in range(left.shape[1]):
        for j in range(right.shape[1]):
            sums[j] = 0
        for a in range(len(left)):
            x = np.int32(left[a, i])
            if kind == FOOTRULE:
                for j in range(right.shape[1]):
                    sums[j] += abs(x - np.int32(right[a, j]))
            elif kind == SPEARMAN:
                for j in range(right.shape[1]):
                    step = x - np.int32(right[a, j])
                    sums[j] += step * step
            elif kind == HAMMING:
                for j in range(right.shape[1]):
                    sums[j] += left[a, i] != right[a, j]
            else:
                for j in range(right.shape[1]):
                    sums[j] = max(sums[j], abs(x - np.int32(right[a, j])))
        for j in range(right.shape[1]):
            out[i, j] = sums[j]


# ---------------------------------------------------------------------- cycles


@compiled
def cycle_code(step, weights, visited):
    """Return ``weights[0]`` plus ``weights[length]`` for each cycle of a permutation, modulo ``weights[-1] + 1``.

    Positions are visited cycle by cycle; after the end of a cycle the first unvisited position is next. The loop has no
    branches, which a processor would mispredict.
    """
    n = len(step)
    code = weights[0]
    if n > WORD:
        return long_cycle_code(step, weights, visited)
    unvisited = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(WORD - n)
    position, length = 0, 1
    for _ in range(n):
        unvisited ^= ONE << np.uint64(position)
        following = step[position]
        is_open = (unvisited >> np.uint64(following)) & ONE
        code += 0 if is_open else weights[length]
        position = (following if is_open else trailing_zeros(unvisited)) & (WORD - 1)
        length = length + 1 if is_open else 1
    return code & weights[n + 1]


@compiled
def long_cycle_code(step, weights, visited):
    """Return :func:`cycle_code` for more than 64 positions; ``visited`` is a work array."""
    n = len(step)
    code = weights[0]
    for position in range(n):
        visited[position] = 0
    for start in range(n):
        position, length = start, 0
        while visited[position] == 0:
            visited[position] = 1
            position = step[position]
            length += 1
        if length:
            code += weights[length]
    return code & weights[n + 1]


@compiled
def cycle_codes(left, right, weights, out):
    """Write :func:`cycle_code` of the map from left positions to right positions, for all pairs of full rankings."""
    n = len(left)
    item_at, step, visited = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(left.shape[1]):
        for a in range(n):
            item_at[left[a, i]] = a
        for j in range(right.shape[1]):
            for position in range(n):
                step[position] = right[item_at[position], j]
            out[i, j] = cycle_code(step, weights, visited)


# ---------------------------------------------------------------------- sums in a fixed order

# An entry has the same bits in every block; the order of summation of a BLAS depends on the shape of the block.

ROWS = 4  # rows at once, so that each number of the right side is loaded once for four products


@compiled_strictly
def inner_products(left, right, out):
    """Add ``left @ right`` to an array, in the order of the coordinates."""
    n_grouped = left.shape[0] // ROWS * ROWS
    for i in range(0, n_grouped, ROWS):
        for d in range(left.shape[1]):
            a, b, c, e = left[i, d], left[i + 1, d], left[i + 2, d], left[i + 3, d]
            for j in range(right.shape[1]):
                value = right[d, j]
                out[i, j] += a * value
                out[i + 1, j] += b * value
                out[i + 2, j] += c * value
                out[i + 3, j] += e * value
    for i in range(n_grouped, left.shape[0]):
        for d in range(left.shape[1]):
            a = left[i, d]
            for j in range(right.shape[1]):
                out[i, j] += a * right[d, j]


@compiled_strictly
def position_sums(X, Y, matrix, out):
    """Write the sums over items a of ``matrix[X[i, a], Y[j, a]]``."""
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            total = 0.0
            for a in range(X.shape[1]):
                total += matrix[X[i, a], Y[j, a]]
            out[i, j] = total


@compiled
def weighted_concordance(order, X, Y, sizes, left, left_tied, right, right_tied, is_sum, out):
    """Write the sums over ordered pairs of items of the mean weight of their positions in X times that in Y.

    ``order[i]`` are the items of ranking i of X, best first. The weight of an item before another one is the sum, or
    the product, of ``left[i, bucket]`` of both; of two tied items it is ``left_tied[i, bucket]`` in either order.
    Items that share both buckets are counted together, and those of the largest bucket of X by the ``sizes[j]`` of the
    buckets of Y.
    """
    n = X.shape[1]
    count, others = np.zeros(n, np.int64), np.zeros(n, np.int64)
    rows, columns, size, u, v = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), np.empty(n), np.empty(n)
    for i in range(X.shape[0]):
        low, high, start = n, n, 0
        for p in range(n):
            if p + 1 == n or X[i, order[i, p]] != X[i, order[i, p + 1]]:
                if p + 1 - start > max(high - low, 1):
                    low, high = start, p + 1
                start = p + 1
        for j in range(Y.shape[0]):
            for p in range(low + n - high):
                others[Y[j, order[i, p if p < low else p + high - low]]] += 1
            m, start = 0, 0
            while start < n:
                x, end = X[i, order[i, start]], start
                while start != low and end < n and X[i, order[i, end]] == x:
                    count[Y[j, order[i, end]]] += 1
                    end += 1
                for p in range(sizes.shape[1] if start == low else end - start):
                    y = p if start == low else Y[j, order[i, start + p]]
                    shared = sizes[j, y] - others[y] if start == low else count[y]
                    count[y] = 0
                    no_left = left[i, x] == 0.0 and left_tied[i, x] == 0.0
                    if shared and (is_sum or not (no_left or (right[j, y] == 0.0 and right_tied[j, y] == 0.0))):
                        rows[m], columns[m], size[m], u[m], v[m] = x, y, shared, left[i, x], right[j, y]
                        m += 1
                start = high if start == low else end
            for p in range(low + n - high):
                others[Y[j, order[i, p if p < low else p + high - low]]] = 0
            total = 0.0
            for b in range(m):
                x, y, u_b, v_b = rows[b], columns[b], u[b], v[b]
                u_tied, v_tied, mean = left_tied[i, x], right_tied[j, y], 0.0
                for a in range(b):
                    first = u[a] + u_b if is_sum else u[a] * u_b
                    second = v[a] + v_b if is_sum else v[a] * v_b
                    is_tied = rows[a] == x
                    first = u_tied if is_tied else first
                    second = second if is_tied or columns[a] < y else v_tied if columns[a] == y else 0.0
                    mean += size[a] * first * second
                total += size[b] * (mean + (size[b] - 1.0) * u_tied * v_tied)
            out[i, j] = total


# ---------------------------------------------------------------------- draws

# ``draws[i]`` holds the draws of ranking i: as ``(word, draw)`` the order of every pair of items as bits, or as
# ``(item, draw)`` the position of every item. ``d[p, a, b]`` is the distance between draw ``first + a`` of the left
# ranking of pair p and draw b of the right one. Sums are taken in a fixed order: an entry has the same bits in any
# block and on any number of threads.


@compiled
def draw_bits(draws, left, right, first, d):
    """Write Kendall distances between draws."""
    for p in range(len(left)):
        differing_bits(draws[left[p], :, first : first + d.shape[1]], draws[right[p]], d[p])


@compiled
def draw_positions(draws, left, right, first, d, kind):
    """Write distances between draws that compare positions item by item: see :func:`rankwise`."""
    sums = np.empty(d.shape[2], np.int32)
    for p in range(len(left)):
        rankwise(draws[left[p], :, first : first + d.shape[1]], draws[right[p]], kind, sums, d[p])


@compiled
def draw_cycles(draws, left, right, first, d, weights):
    """Write sums over the cycles of the permutations between draws: see :func:`cycle_code`."""
    for p in range(len(left)):
        cycle_codes(draws[left[p], :, first : first + d.shape[1]], draws[right[p]], weights, d[p])


@compiled_strictly
def word_means(draws, left, right, tables, out):
    """Write the means of tables of the Kendall distance, for draws that are one word of bits each.

    Four sums are accumulated side by side: consecutive additions to a single sum would wait for each other.
    """
    m = draws.shape[2]
    for p in range(len(left)):
        i, j = left[p], right[p]
        for g in range(len(tables)):
            total = 0.0
            for a in range(0, m - 3, 4):
                s, t, u, v = 0.0, 0.0, 0.0, 0.0
                first, second = draws[i, 0, a], draws[i, 0, a + 1]
                third, fourth = draws[i, 0, a + 2], draws[i, 0, a + 3]
                for b in range(m):
                    word = draws[j, 0, b]
                    s += tables[g, popcount(first ^ word)]
                    t += tables[g, popcount(second ^ word)]
                    u += tables[g, popcount(third ^ word)]
                    v += tables[g, popcount(fourth ^ word)]
                total += (s + t) + (u + v)
            for a in range(m - m % 4, m):
                s = 0.0
                for b in range(m):
                    s += tables[g, popcount(draws[i, 0, a] ^ draws[j, 0, b])]
                total += s
            out[g, p] = total / (m * m)


@compiled_strictly
def add_sums(d, tables, out):
    """Add the sum of each table over the distances between draws."""
    m = d.shape[1]
    for p in range(len(d)):
        for g in range(len(tables)):
            total = 0.0
            for a in range(0, m - 3, 4):
                s, t, u, v = 0.0, 0.0, 0.0, 0.0
                for b in range(d.shape[2]):
                    s += tables[g, d[p, a, b]]
                    t += tables[g, d[p, a + 1, b]]
                    u += tables[g, d[p, a + 2, b]]
                    v += tables[g, d[p, a + 3, b]]
                total += (s + t) + (u + v)
            for a in range(m - m % 4, m):
                s = 0.0
                for b in range(d.shape[2]):
                    s += tables[g, d[p, a, b]]
                total += s
            out[g, p] += total


@compiled_strictly
def add_margins(d, first, table, weights, left, right, rows, columns):
    """Add the weighted sums of a table for each draw of the left and of the right ranking.

    ``weights`` has no columns where all draws weigh 1.
    """
    weighted = weights.shape[1] > 0
    for p in range(len(d)):
        i, j = left[p], right[p]
        for a in range(d.shape[1]):
            total = 0.0
            if weighted:
                for b in range(d.shape[2]):
                    value = table[d[p, a, b]]
                    total += weights[j, b] * value
                    columns[p, b] += weights[i, first + a] * value
            else:
                for b in range(d.shape[2]):
                    value = table[d[p, a, b]]
                    total += value
                    columns[p, b] += value
            rows[p, first + a] += total

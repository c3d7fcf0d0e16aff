"""Means of functions of a distance over all pairs of draws of two rankings, and how the draws spread around them.

An entry is the same to the bit wherever and in whatever block it is computed, and whichever ranking is on the left:
sums are taken in an order that depends on the draws alone.
"""

import numpy as np
from numba import types
from numba.extending import overload

from rankernel._loops.bits import popcount
from rankernel._loops.compiled import compiled, compiled_strictly
from rankernel._loops.cycles import cycle_code

HAMMING, FOOTRULE, SPEARMAN, LINF, KENDALL, CYCLES = range(6)
AT_ONCE = 4  # draws whose sums are taken side by side: adding to one sum twice in a row would have to wait


@compiled_strictly
def means(draws, weights, rows, columns, symmetric, kind, cycles, tables, out):
    """Write the mean of each table over the distances of all pairs of draws of two rankings.

    ``draws[i]`` holds the draws of ranking i, as ``(word, draw)`` the bits of the pairs of items that each orders one
    way, or as ``(item, draw)`` the place of each item. ``weights[i]`` are the weights of the draws, or nothing. A tile
    has the rankings ``rows`` against ``columns``; with ``symmetric`` both are the same, and one half of the tile is the
    mirror of the other. ``cycles`` are numbers for cycles of each length, for ``CYCLES``.
    """
    n_draws = draws.shape[2]
    total = np.float64(n_draws) ** 2
    d = np.empty((AT_ONCE, n_draws), np.int64)
    for r in range(len(rows)):
        for c in range(r if symmetric else 0, len(columns)):
            i, j = in_order(draws, rows[r], columns[c])
            for g in range(len(tables)):
                out[g, r, c] = 0.0
            for a in range(0, n_draws, AT_ONCE):
                size = min(AT_ONCE, n_draws - a)
                if is_one_word(draws) and size == AT_ONCE and weights.shape[1] == 0:
                    for g in range(len(tables)):
                        out[g, r, c] += sum_of_four(draws, i, a, j, tables, g)
                    continue
                distances(draws, i, a, size, j, kind, cycles, d)
                for g in range(len(tables)):
                    for k in range(size):
                        out[g, r, c] += row_sum(d, k, weights, i, a + k, j, tables, g)
            for g in range(len(tables)):
                out[g, r, c] /= total
                if symmetric:
                    out[g, c, r] = out[g, r, c]


@compiled_strictly
def spreads(draws, weights, shares, ends, rows, columns, symmetric, kind, cycles, table, out):
    """Write value, variance, bias and heaviest block of each entry: see :func:`spread_of`; the value as in ``means``.

    Draws fall into independent blocks that end at ``ends``; ``shares[i, g]`` is the part of block g in the draws of
    ranking i.
    """
    n_draws, n_blocks = draws.shape[2], len(ends)
    total = np.float64(n_draws) ** 2
    d = np.empty((AT_ONCE, n_draws), np.int64)
    blocks = np.empty((n_blocks, n_blocks))
    one = np.empty((1, table.shape[0]))
    one[0] = table
    for r in range(len(rows)):
        for c in range(r if symmetric else 0, len(columns)):
            i, j = in_order(draws, rows[r], columns[c])
            blocks[:] = 0.0
            value, g = 0.0, 0
            for a in range(0, n_draws, AT_ONCE):
                size = min(AT_ONCE, n_draws - a)
                distances(draws, i, a, size, j, kind, cycles, d)
                for k in range(size):
                    while a + k >= ends[g]:
                        g += 1
                    block_sums(d, k, weights, i, a + k, j, table, ends, blocks[g])
                if is_one_word(draws) and size == AT_ONCE and weights.shape[1] == 0:
                    value += sum_of_four(draws, i, a, j, one, 0)
                else:
                    for k in range(size):
                        value += row_sum(d, k, weights, i, a + k, j, one, 0)
            blocks /= total
            out[0, r, c] = value / total
            spread_of(blocks, shares[i], shares[j], rows[r] == columns[c], out[1:, r, c])
            if symmetric:
                for k in range(out.shape[0]):
                    out[k, c, r] = out[k, r, c]


@compiled_strictly
def in_order(draws, i, j):
    """Return the two rankings in an order that depends on their draws alone."""
    for a in range(draws.shape[1]):
        for w in range(draws.shape[2]):
            if draws[i, a, w] != draws[j, a, w]:
                after = draws[i, a, w] > draws[j, a, w]
                return (j if after else i), (i if after else j)
    return i, j


# These take whole arrays and the numbers of their rows: making a view of a row would take as long as ten distances.


def distances_of_bits(draws, i, a, size, j, kind, cycles, d):
    """Count the bits in which draws differ."""
    for k in range(size):
        for b in range(d.shape[1]):
            d[k, b] = popcount(draws[i, 0, a + k] ^ draws[j, 0, b])
        for w in range(1, draws.shape[1]):
            for b in range(d.shape[1]):
                d[k, b] += popcount(draws[i, w, a + k] ^ draws[j, w, b])


def distances_of_places(draws, i, a, size, j, kind, cycles, d):
    """Compare the places of all items."""
    for k in range(size):
        if kind == CYCLES:
            cycle_codes(draws, i, a + k, j, cycles, d[k])
        elif kind == KENDALL:
            discordant(draws, i, a + k, j, d[k])
        else:
            placewise(draws, i, a + k, j, kind, d[k])


def is_one_word(draws):  # what stands here is made of the two functions below it, by the type of the draws
    """Say whether the bits of a draw fit one word."""


@overload(is_one_word)
def one_word_by_type(draws):
    """Bits are words, places are not."""
    if draws.dtype == types.uint64:
        return lambda draws: draws.shape[1] == 1
    return lambda draws: False


def sum_of_four(draws, i, a, j, tables, g):
    """Return the sum of a table over the distances of four draws to all draws, whose bits fit one word."""


@overload(sum_of_four, strict=False)
def sum_of_four_by_type(draws, i, a, j, tables, g):
    """For bits only."""
    if draws.dtype != types.uint64:
        return lambda draws, i, a, j, tables, g: 0.0

    def of_bits(draws, i, a, j, tables, g):
        s, t, u, v = 0.0, 0.0, 0.0, 0.0
        first, second, third, fourth = draws[i, 0, a], draws[i, 0, a + 1], draws[i, 0, a + 2], draws[i, 0, a + 3]
        for b in range(draws.shape[2]):
            word = draws[j, 0, b]
            s += tables[g, popcount(first ^ word)]
            t += tables[g, popcount(second ^ word)]
            u += tables[g, popcount(third ^ word)]
            v += tables[g, popcount(fourth ^ word)]
        return (s + t) + (u + v)

    return of_bits


def distances(draws, i, a, size, j, kind, cycles, d):
    """Write the distances of some draws of one ranking to all draws of another."""


@overload(distances)
def distances_by_type(draws, i, a, size, j, kind, cycles, d):
    """Bits are counted, places compared."""
    if draws.dtype == types.uint64:
        return distances_of_bits
    return distances_of_places


@compiled_strictly
def row_sum(d, k, weights, i, a, j, tables, g):
    """Return the (weighted) sum of a table over the distances of one draw to all draws."""
    s = 0.0
    if weights.shape[1] == 0:
        for b in range(d.shape[1]):
            s += tables[g, d[k, b]]
        return s
    for b in range(d.shape[1]):
        s += weights[j, b] * tables[g, d[k, b]]
    return weights[i, a] * s


@compiled_strictly
def block_sums(d, k, weights, i, a, j, table, ends, sums):
    """Add the (weighted) sums of a table over the distances of one draw to each block of draws."""
    start = 0
    for h in range(len(ends)):
        s = 0.0
        if weights.shape[1] == 0:
            for b in range(start, ends[h]):
                s += table[d[k, b]]
        else:
            for b in range(start, ends[h]):
                s += weights[j, b] * table[d[k, b]]
            s *= weights[i, a]
        sums[h] += s
        start = ends[h]


@compiled
def placewise(draws, i, a, j, kind, d):
    """Write distances that compare the two places of each item, from one draw to all draws."""
    d[:] = 0
    for item in range(draws.shape[1]):
        x = np.int32(draws[i, item, a])
        if kind == FOOTRULE:
            for b in range(len(d)):
                d[b] += abs(x - np.int32(draws[j, item, b]))
        elif kind == SPEARMAN:
            for b in range(len(d)):
                step = x - np.int32(draws[j, item, b])
                d[b] += step * step
        elif kind == HAMMING:
            for b in range(len(d)):
                d[b] += x != draws[j, item, b]
        else:
            for b in range(len(d)):
                d[b] = max(d[b], abs(x - np.int32(draws[j, item, b])))


@compiled
def discordant(draws, i, a, j, d):
    """Write Kendall distances of many items, pair by pair, from one draw to all draws."""
    d[:] = 0
    for item in range(draws.shape[1]):
        for other in range(item):
            before = draws[i, item, a] < draws[i, other, a]
            for b in range(len(d)):
                d[b] += before != (draws[j, item, b] < draws[j, other, b])


@compiled
def cycle_codes(draws, i, a, j, cycles, d):
    """Write the sum of numbers for the cycles between one draw and each of all draws."""
    n = draws.shape[1]
    item_at, step = np.empty(n, np.int64), np.empty(n, np.int64)
    for item in range(n):
        item_at[draws[i, item, a]] = item
    for b in range(len(d)):
        for place in range(n):
            step[place] = draws[j, item_at[place], b]
        d[b] = cycle_code(step, cycles)


@compiled_strictly
def spread_of(blocks, left, right, same, out):
    """Write variance, bias and the heaviest block of a mean over pairs of blocks of draws.

    ``blocks[g, h]`` is what blocks g and h add to the mean, and ``left``, ``right`` are their shares in the draws. Rows
    of the table share draws, and so do columns: the variance is that of the rows, of the columns, less that of what is
    left (the random effects of a two-way table), each deviation divided by what it lacks of a whole for being measured
    from the mean of all. Where both sides have the same draws, rows and columns are one, and the blocks with themselves
    make the bias. The heaviest block is the largest part that one block has in the variance.
    """
    n = len(left)
    total = blocks.sum()
    row, column = np.zeros(n), np.zeros(n)
    for g in range(n):
        for h in range(n):
            row[g] += blocks[g, h]
            column[h] += blocks[g, h]
    by_row, by_column, rest, largest = 0.0, 0.0, 0.0, 0.0
    if same:
        own, pairs = 0.0, 0.0
        for g in range(n):
            own += blocks[g, g]
            pairs += left[g] * left[g]
        unbiased = (total - own) / (1.0 - pairs) if n > 1 else total
        for g in range(n):
            alone = 1.0 - left[g]
            away = (row[g] + column[g] - 2.0 * blocks[g, g]) / 2.0 / alone - left[g] * unbiased if n > 1 else 0.0
            part = 4.0 * away * away / alone if n > 1 else 0.0
            by_row += part
            largest = max(largest, part)
        out[0], out[1] = by_row, total - unbiased
        out[2] = largest / by_row if by_row > 0.0 else 0.0
        return
    for g in range(n):
        away, alone = row[g] - left[g] * total, 1.0 - left[g]
        part = away * away / alone if n > 1 else 0.0
        by_row += part
        largest = max(largest, part)
        away, alone = column[g] - right[g] * total, 1.0 - right[g]
        part = away * away / alone if n > 1 else 0.0
        by_column += part
        largest = max(largest, part)
        for h in range(n):
            away = blocks[g, h] - right[h] * row[g] - left[g] * column[h] + left[g] * right[h] * total
            rest += away * away / ((1.0 - left[g]) * (1.0 - right[h])) if n > 1 else 0.0
    out[0], out[1] = max(by_row + by_column - rest, 0.0), 0.0
    out[2] = largest / (by_row + by_column) if by_row + by_column > 0.0 else 0.0


@compiled_strictly
def spreads_of_blocks(blocks, left, right, same, out):
    """Write :func:`spread_of` for a tile of tables: ``blocks[r, g, c, h]``."""
    for r in range(blocks.shape[0]):
        for c in range(blocks.shape[2]):
            spread_of(blocks[r, :, c].copy(), left[r], right[c], same[r, c], out[:, r, c])

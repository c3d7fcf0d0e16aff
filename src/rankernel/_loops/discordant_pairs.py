"""What functions of the Kendall distance need of two rankings without free items: discordant pairs, shared buckets."""

import numpy as np

from rankernel._loops.bits import popcount
from rankernel._loops.compiled import compiled
from rankernel._loops.rank_distances import BLOCK, discordant_pairs
from rankernel._loops.stores import stream

SIDE = 64  # of the blocks that stay in the nearest cache
SIZES = np.uint64(5)  # bits for the size of a shared bucket: PACKED_ITEMS is below 2^5


def room(n_words, n_kinds=1):
    """Return room for :func:`write_packed` and :func:`write_balance` to work in."""
    return (
        np.empty((SIDE, SIDE + 8)),  # the margin keeps its columns out of one another's way in the cache
        np.empty(SIDE, np.uint64),
        np.zeros((n_words, SIDE), np.uint64),
        np.zeros((n_words, SIDE), np.uint64),
        np.zeros(SIDE, np.uint64),
        np.zeros((n_kinds, SIDE), np.uint64),
    )


@compiled
def write_packed(left, right, table, offsets, inverse, row, column, mirror, triangle, room, out, mirrored):
    """A function of the Kendall distance of few items, from bits, straight into the matrix.

    A side is ``(before, after, ties, kind)``: the bits of the pairs (a, b) of items that each ranking orders a before
    b, and b before a, word by word; the bit sets of its buckets with more than one item; and the number of the sizes
    of its buckets. For c discordant pairs and m items in the first such bucket of both,
    ``table[offsets[kind, kind'] + 32 c + m] * row * column`` is the value, times ``inverse`` of the items in all other
    shared buckets. With ``mirror`` the transposed tile is written, too; with ``triangle`` the tile lies on the
    diagonal, and its lower half is the mirror of the upper one.
    """
    before, after, ties, kind = left
    Before, After, Ties, Kind = right
    block, place, earlier, later, tied, start_of = room
    words, several = before.shape[1], ties.shape[1] > 1 or Ties.shape[1] > 1
    for start in range(0, len(column), SIDE):
        width = min(SIDE, len(column) - start)
        for j in range(width):
            tied[j] = Ties[start + j, 0]
            for w in range(words):
                earlier[w, j], later[w, j] = Before[start + j, w], After[start + j, w]
            for k in range(offsets.shape[0]):
                start_of[k, j] = offsets[k, Kind[start + j]]
        for top in range(0, start + 1 if triangle else len(row), SIDE):
            bottom = min(top + SIDE, len(row))
            for i in range(top, bottom):
                for j in range(SIDE):
                    place[j] = start_of[kind[i], j] + popcount(ties[i, 0] & tied[j])
                for w in range(words):
                    b, a = before[i, w], after[i, w]
                    for j in range(SIDE):
                        # No pair is in both terms, so one count serves.
                        place[j] += popcount((b & later[w, j]) | (a & earlier[w, j])) << SIZES
                for j in range(width):
                    block[i - top, j] = table[place[j]] * (row[i] * column[start + j])
                if several:
                    for j in range(width):
                        factor = 1.0
                        for s in range(ties.shape[1]):
                            for t in range(Ties.shape[1]):
                                shared: int = popcount(ties[i, s] & Ties[start + j, t])
                                if s + t > 0 and shared:
                                    factor *= inverse[shared]
                        block[i - top, j] *= factor
                for j in range(width):
                    stream(out, i, start + j, block[i - top, j])
            if mirror or triangle:
                for j in range(width):
                    for i in range(top, min(bottom, start + j) if triangle else bottom):
                        stream(mirrored, start + j, i, block[i - top, j])


@compiled
def write_balance(left, right, constant, unit, mirror, triangle, room, out, mirrored):
    """``constant + unit`` times the pairs that two rankings order alike less those that they order differently.

    The arguments are as in :func:`write_packed`.
    """
    before, after = left[0], left[1]
    Before, After = right[0], right[1]
    block, balance, earlier, later = room[0], room[1], room[2], room[3]
    words, n_rows, n_columns = before.shape[1], len(before), len(Before)
    for start in range(0, n_columns, SIDE):
        width = min(SIDE, n_columns - start)
        for j in range(width):
            for w in range(words):
                earlier[w, j], later[w, j] = Before[start + j, w], After[start + j, w]
        for top in range(0, start + 1 if triangle else n_rows, SIDE):
            bottom = min(top + SIDE, n_rows)
            for i in range(top, bottom):
                for j in range(SIDE):
                    balance[j] = 0
                for w in range(words):
                    b, a = before[i, w], after[i, w]
                    for j in range(SIDE):
                        balance[j] += popcount((b & earlier[w, j]) | (a & later[w, j]))
                        balance[j] -= popcount((b & later[w, j]) | (a & earlier[w, j]))
                for j in range(width):
                    block[i - top, j] = constant + unit * np.int64(balance[j])  # below zero, too
                    stream(out, i, start + j, block[i - top, j])
            if mirror or triangle:
                for j in range(width):
                    for i in range(top, min(bottom, start + j) if triangle else bottom):
                        stream(mirrored, start + j, i, block[i - top, j])


@compiled
def pair_sums(X, order, n_buckets, bits, Y, n_buckets_Y, bits_Y, tables, widest, discordant, sums):
    """Count strictly discordant pairs and sum each table over the sizes of the shared buckets.

    ``order[i]`` lists the items of ranking i, best first. ``sums[g, i, j]`` is the sum of ``tables[g, m]`` over all
    pairs of buckets that share m >= 2 items. ``bits`` are those of the pairs of items that each ranking orders one way
    and the other, word by word; without words, :func:`count_in_blocks` has counted the pairs of items of rankings with
    more than ``widest`` pairs of buckets.
    """
    n = X.shape[1]
    cells = np.zeros(widest, np.int64)
    column = np.zeros(n + 1, np.int64)
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            for g in range(tables.shape[0]):
                sums[g, i, j] = 0.0
            if n_buckets[i] * n_buckets_Y[j] <= widest:
                discordant[i, j] = from_cells(
                    X[i], n_buckets[i], Y[j], n_buckets_Y[j], tables, cells, column, sums[:, i, j]
                )
                continue
            if bits[0].shape[1]:
                discordant[i, j] = opposite(bits[0][i], bits[1][i], bits_Y[0][j], bits_Y[1][j])
            if n_buckets[i] < n and n_buckets_Y[j] < n:
                sum_shared(X[i], order[i], Y[j], tables, column, sums[:, i, j])


@compiled
def count_in_blocks(X, order, n_buckets, Y, n_buckets_Y, widest, discordant):
    """Count discordant pairs of very many items in blocks of places, where pairs of buckets are too many to count."""
    n = X.shape[1]
    seen, blocks = np.zeros(n, np.int32), np.zeros(n // BLOCK + 1, np.int32)
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            if n_buckets[i] * n_buckets_Y[j] > widest:
                discordant[i, j] = discordant_pairs(X[i], order[i], Y[j], seen, blocks)


@compiled
def from_cells(x, rows, y, columns, tables, cells, column, sums):
    """Few buckets: count the items of each pair of buckets, then pairs of cells that disagree, by running sums."""
    for c in range(rows * columns):
        cells[c] = 0
    for c in range(columns):
        column[c] = 0
    for a in range(x.shape[0]):
        cells[x[a] * columns + y[a]] += 1
    discordant = 0
    for r in range(rows):
        later = 0  # items in earlier rows and in columns behind the current one
        for c in range(columns - 1, -1, -1):
            size = cells[r * columns + c]
            discordant += size * later
            later += column[c]
            if size > 1:
                for g in range(tables.shape[0]):
                    sums[g] += tables[g, size]
        for c in range(columns):
            column[c] += cells[r * columns + c]
    return discordant


@compiled
def opposite(before, after, Before, After):
    """Count the pairs of items that two rankings order in opposite ways."""
    count = 0
    for w in range(before.shape[0]):
        count += popcount((before[w] & After[w]) | (after[w] & Before[w]))
    return count


@compiled
def sum_shared(x, order, y, tables, count, sums):
    """Many buckets: count the items of each bucket of one ranking in the buckets of the other; ``count`` is room."""
    n = x.shape[0]
    start = 0
    while start < n:
        end = start + 1
        while end < n and x[order[end]] == x[order[start]]:
            end += 1
        if end - start > 1:
            for p in range(start, end):
                count[y[order[p]]] = 0
            for p in range(start, end):
                count[y[order[p]]] += 1
            for p in range(start, end):
                shared = count[y[order[p]]]
                count[y[order[p]]] = 0  # seen
                if shared > 1:
                    for g in range(tables.shape[0]):
                        sums[g] += tables[g, shared]
        start = end


@compiled
def short_lists(items, listed, Y, listed_Y, discordant, shared):
    """Count discordant pairs and items that neither list has, for top-k lists that are short: listed items only.

    ``items[i]`` are the listed items of ranking i, best first. A pair is strictly discordant if both lists have both
    items and disagree; if one list has both and the other only the later one; or if each list has another one.
    """
    n = Y.shape[1]
    places = np.empty(items.shape[1], np.int64)
    for i in range(items.shape[0]):
        for j in range(Y.shape[0]):
            common, alone, count = 0, 0, 0
            for p in range(listed[i]):
                place = Y[j, items[i, p]]
                if place >= listed_Y[j]:
                    alone += 1
                    continue
                # Items that only the left list has, before this one; items that only the right list has, before it.
                count += alone + place
                q = common
                while q > 0 and places[q - 1] > place:
                    places[q] = places[q - 1]
                    q -= 1
                places[q] = place
                count += common - q
                common += 1
            count -= common * (common - 1) // 2  # places on the right were counted with the common items among them
            discordant[i, j] = count + alone * (listed_Y[j] - common)
            shared[i, j] = n - listed[i] - listed_Y[j] + common

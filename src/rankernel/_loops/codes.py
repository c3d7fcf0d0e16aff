"""Short codes for what a kernel sees of two rankings: equal codes, equal laws; and what is certain on top.

Codes are 64-bit sums of random numbers. For a million different ones the chance that any two are taken for one is
below 1e-7.
"""

import numpy as np

from rankernel._loops.compiled import compiled

MIX = np.uint64(0x9E3779B97F4A7C15)
EMPTY = np.int64(-1)


def number_codes(codes, ids, first):
    """Number the distinct codes in the order in which they come; return how many there are.

    ``ids[k]`` becomes the number of code k, and ``first`` the places where each number first occurs. A table of twice
    the size is searched from the place that a code hashes to.
    """
    bits = max((2 * len(codes) - 1).bit_length(), 1)
    return put_into_slots(codes, ids, first, np.full(1 << bits, EMPTY), np.uint64(64 - bits))


@compiled
def put_into_slots(codes, ids, first, slots, shift):
    """Number codes by a table of slots, a power of two in number, whose places are what is left of hashes shifted."""
    mask = len(slots) - 1
    n_distinct = 0
    for k in range(len(codes)):
        code = codes[k]
        slot = np.int64((code * MIX) >> shift)
        while True:
            number = slots[slot]
            if number == EMPTY:
                slots[slot] = n_distinct
                first[n_distinct] = k
                ids[k] = n_distinct
                n_distinct += 1
                break
            if codes[first[number]] == code:
                ids[k] = number
                break
            slot = (slot + 1) & mask
    return n_distinct


@compiled
def look_up(values, factors, ids, apart, out):
    """Write the value of each code times the factor of each certain distance."""
    for i in range(ids.shape[0]):
        for j in range(ids.shape[1]):
            out[i, j] = values[ids[i, j]] * factors[apart[i, j]]


@compiled
def overlaps(X, Y, salt, out):
    """Any two rankings: a number for each item's two buckets, ``salt[b + 1, c + 1]``; free items have bucket -1."""
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            total = np.uint64(0)
            for a in range(X.shape[1]):
                total += salt[X[i, a] + 1, Y[j, a] + 1]
            out[i, j] = total


@compiled
def agreements(items, listed, Y, listed_Y, out, apart):
    """What the Hamming distance sees of two top-k lists: places, items that neither list has; differences for certain.

    ``items[i]`` are the items of ranking i, best first. Only the first m places of both matter, m the length of the
    shorter list.
    """
    n = Y.shape[1]
    for i in range(items.shape[0]):
        for j in range(Y.shape[0]):
            m = min(listed[i], listed_Y[j])
            agreeing, inside = 0, 0
            for place in range(m):
                other = Y[j, items[i, place]]
                agreeing += other == place
                inside += other < m
            outside = n - 2 * m + inside
            out[i, j] = m * (n + 1) + outside
            apart[i, j] = n - agreeing - outside


@compiled
def closed_cycles(items, listed, Y, listed_Y, out, apart):
    """What the Cayley distance sees of two top-k lists: places; and those that close no cycle among themselves."""
    step = np.empty(Y.shape[1], np.int64)
    for i in range(items.shape[0]):
        for j in range(Y.shape[0]):
            m = min(listed[i], listed_Y[j])
            for place in range(m):
                target = Y[j, items[i, place]]
                step[place] = target if target < m else -1
            cycles = 0
            for start in range(m):
                place = start
                while step[place] >= 0:
                    following = step[place]
                    step[place] = -1
                    if following == start:
                        cycles += 1
                        break
                    place = following
            out[i, j] = m
            apart[i, j] = m - cycles


@compiled
def loose_places(X, Y, kind, kind_Y, salt, power, out, apart):
    """What a sum of costs of places sees of two rankings with one tie each: ties, and the places that meet a tie.

    ``X[i, a]`` is the place of item a, -1 if it is tied. Items that are tied on neither side cost ``|difference|`` to
    the given power, 1 or 2, for certain.
    """
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            total, cost = kind[i] + kind_Y[j], 0
            for a in range(X.shape[1]):
                x, y = X[i, a], Y[j, a]
                if x >= 0 and y >= 0:
                    step = abs(x - y)
                    cost += step if power == 1 else step * step
                elif x >= 0:
                    total += salt[0, x]
                elif y >= 0:
                    total += salt[1, y]
            out[i, j] = total
            apart[i, j] = cost


@compiled
def cycles_and_paths(X, Y, tie, tie_Y, salt, out):
    """What the walk of transpositions sees of two rankings of which one tie is inside the other.

    ``X[i, a]`` is the place of item a in some completion of ranking i, and ``tie[i]`` where its tie begins and ends.
    The places of the larger tie are handed out at random: what counts are the lengths of the paths between them, and
    of the cycles that avoid them.
    """
    n = Y.shape[1]
    step, seen = np.empty(n, np.int64), np.empty(n, np.bool_)
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            begin, end = tie[i, 0], tie[i, 1]
            if end - begin < tie_Y[j, 1] - tie_Y[j, 0]:
                begin, end = tie_Y[j, 0], tie_Y[j, 1]
            for a in range(n):
                step[X[i, a]] = Y[j, a]
                seen[a] = False
            total = np.uint64(0)
            for start in range(begin, end):
                length, place = 0, start
                while True:
                    seen[place] = True
                    place, length = step[place], length + 1
                    if begin <= place < end:
                        break
                total += salt[0, length]
            for start in range(n):
                if not seen[start]:
                    length, place = 0, start
                    while not seen[place]:
                        seen[place] = True
                        place, length = step[place], length + 1
                    total += salt[1, length]
            out[i, j] = total

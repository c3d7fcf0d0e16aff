"""The cells of a table of text, numbered in one pass over its bytes."""

import numpy as np

from rankernel._loops.compiled import compiled

NEWLINE, RETURN, QUOTE = (np.uint8(ord(sign)) for sign in '\n\r"')
OFFSET, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # the hash of Fowler, Noll and Vo
HALF = np.uint64(32)
NOBODY = np.int32(-1)


@compiled
def number_cells(raw, delimiter, codes, lines):
    """Number the different cells of a text, in the order in which they come.

    ``codes`` receives the number of each cell and ``lines`` the line of each record, the first being line 0; both have
    room for all. Lines with nothing on them are passed over. Returned are how many records there are, how many cells
    each has, and where each different cell begins and ends. No records at all are returned where these are not equally
    long, or where quotes or line ends are such that a more careful way must decide.
    """
    slots = np.full(1024, NOBODY, np.int32)
    hashes, starts, stops = np.empty(512, np.uint64), np.empty(512, np.int64), np.empty(512, np.int64)
    n_bytes, n_texts, n_cells, n_records, width, line, place = len(raw), 0, 0, 0, 0, 0, 0
    while place < n_bytes:
        blank = line_end(raw, place)
        if blank > 0:
            place += blank
            line += 1
            continue
        first = n_cells
        ended = False
        while not ended:
            quoted = place < n_bytes and raw[place] == QUOTE
            start = place + quoted
            stop, code_hash = end_of_cell(raw, start, quoted, delimiter)
            if quoted and (stop == n_bytes or raw[stop] != QUOTE):
                return 0, 0, starts[:0], stops[:0]
            place = stop + quoted
            ended = True
            if place < n_bytes:
                step = line_end(raw, place)
                if step == 0 and raw[place] == delimiter:
                    ended = False
                    step = 1
                if step == 0:
                    return 0, 0, starts[:0], stops[:0]
                place += step
            slot = find(raw, start, stop, code_hash, slots, hashes, starts, stops)
            if slots[slot] == NOBODY:
                hashes[n_texts], starts[n_texts], stops[n_texts] = code_hash, start, stop
                slots[slot] = n_texts
                n_texts += 1
            codes[n_cells] = slots[slot]
            n_cells += 1
            if n_texts == len(hashes):
                hashes, starts, stops = doubled(hashes), doubled(starts), doubled(stops)
                slots = spread(hashes[:n_texts], 2 * len(slots))
        width = n_cells if n_records == 0 else width
        if n_cells - first != width:
            return 0, 0, starts[:0], stops[:0]
        lines[n_records] = line
        n_records += 1
        line += 1
    return n_records, width, starts[:n_texts], stops[:n_texts]


@compiled
def line_end(raw, place):
    """Return how many bytes end a line here, 0 if it does not end."""
    if raw[place] == NEWLINE:
        return 1
    return 2 if raw[place] == RETURN and place + 1 < len(raw) and raw[place + 1] == NEWLINE else 0


@compiled
def end_of_cell(raw, start, quoted, delimiter):
    """Return where a cell ends and the hash of its bytes; a quoted one ends before its quote, or where a line ends."""
    code_hash, place, end = OFFSET, start, QUOTE if quoted else delimiter
    while place < len(raw):
        byte = raw[place]
        if byte == end or byte in (NEWLINE, RETURN):
            break
        code_hash = (code_hash ^ np.uint64(byte)) * PRIME
        place += 1
    return place, code_hash


@compiled
def find(raw, start, stop, code_hash, slots, hashes, starts, stops):
    """Return the slot in which a cell is, or in which it may be put."""
    mask = np.uint64(len(slots) - 1)
    slot = (code_hash ^ (code_hash >> HALF)) & mask
    while slots[slot] != NOBODY:
        known = slots[slot]
        if hashes[known] == code_hash and stops[known] - starts[known] == stop - start:
            shift = starts[known] - start
            same = True
            for place in range(start, stop):
                same &= raw[place] == raw[place + shift]
            if same:
                break
        slot = (slot + np.uint64(1)) & mask
    return slot


@compiled
def doubled(values):
    """Return an array with room for as many more."""
    wider = np.empty(2 * len(values), values.dtype)
    wider[: len(values)] = values
    return wider


@compiled
def spread(hashes, n_slots):
    """Return a table of more slots with the same texts in it."""
    slots = np.full(n_slots, NOBODY, np.int32)
    mask = np.uint64(n_slots - 1)
    for number in range(len(hashes)):
        slot = (hashes[number] ^ (hashes[number] >> HALF)) & mask
        while slots[slot] != NOBODY:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = number
    return slots

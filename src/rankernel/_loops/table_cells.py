"""The cells of a table of text, numbered in one pass over its bytes."""

import numpy as np

from rankernel._loops.compiled import compiled

NEWLINE, RETURN, QUOTE = (np.uint8(ord(sign)) for sign in '\n\r"')
OFFSET, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # the hash of Fowler, Noll and Vo
HALF = np.uint64(32)
NOBODY = np.int32(-1)


PLACE, LINE, CELLS, RECORDS, WIDTH, TEXTS, STATES = range(7)
DONE, FULL, REFUSED = range(3)


def number_cells(raw, delimiter, codes, lines):
    """Number the different cells of a text, in the order in which they come.

    ``codes`` receives the number of each cell and ``lines`` the line of each record, the first being line 0; both have
    room for all. Lines with nothing on them are passed over. Returned are how many records there are, how many cells
    each has, and where each different cell begins and ends. No records at all are returned where these are not equally
    long, or where quotes or line ends are such that a more careful way must decide.
    """
    slots, hashes = np.full(1024, NOBODY), np.empty(512, np.uint64)
    starts, stops = np.empty(512, np.int64), np.empty(512, np.int64)
    state = np.zeros(STATES, np.int64)
    while (outcome := number_records(raw, delimiter, state, codes, lines, slots, hashes, starts, stops)) == FULL:
        hashes, starts, stops = (np.concatenate([each, np.empty_like(each)]) for each in (hashes, starts, stops))
        slots = spread(hashes[: state[TEXTS]], 2 * len(slots))
    n_records, n_texts = (0, 0) if outcome == REFUSED else state[[RECORDS, TEXTS]].tolist()
    return n_records, int(state[WIDTH]), starts[:n_texts], stops[:n_texts]


@compiled
def number_records(raw, delimiter, state, codes, lines, slots, hashes, starts, stops):
    """Go on from record to record, to the end or until there is no room for one more text."""
    n_bytes, place, n_cells, n_texts = len(raw), state[PLACE], state[CELLS], state[TEXTS]
    empty = NOBODY
    while place < n_bytes:
        blank = line_end(raw, place)
        if blank > 0:
            place += blank
            state[LINE] += 1
            continue
        state[PLACE], state[CELLS] = place, n_cells  # where to begin again
        ended = False
        while not ended:
            quoted = place < n_bytes and raw[place] == QUOTE
            start = place + 1 if quoted else place
            stop, code_hash = end_of_cell(raw, start, QUOTE if quoted else delimiter)
            if quoted and (stop == n_bytes or raw[stop] != QUOTE):
                return REFUSED
            place = stop + 1 if quoted else stop
            ended = place == n_bytes or raw[place] != delimiter
            if place < n_bytes:
                step = line_end(raw, place) if ended else 1
                if step == 0:
                    return REFUSED
                place += step
            if start == stop and empty != NOBODY:  # of truncated ballots, most cells
                codes[n_cells] = empty
                n_cells += 1
                continue
            slot = find(raw, start, stop, code_hash, slots, hashes, starts, stops)
            if slots[slot] == NOBODY:
                if n_texts == len(hashes):
                    state[TEXTS] = n_texts
                    return FULL
                hashes[n_texts], starts[n_texts], stops[n_texts] = code_hash, start, stop
                slots[slot] = n_texts
                n_texts += 1
            codes[n_cells] = slots[slot]
            empty = slots[slot] if start == stop else empty
            n_cells += 1
        if state[RECORDS] == 0:
            state[WIDTH] = n_cells
        if n_cells - state[CELLS] != state[WIDTH]:
            return REFUSED
        lines[state[RECORDS]] = state[LINE]
        state[RECORDS] += 1
        state[LINE] += 1
    state[TEXTS] = n_texts
    return DONE


@compiled
def line_end(raw, place):
    """Return how many bytes end a line here, 0 if it does not end."""
    if raw[place] == NEWLINE:
        return 1
    return 2 if raw[place] == RETURN and place + 1 < len(raw) and raw[place + 1] == NEWLINE else 0


@compiled
def end_of_cell(raw, start, end):
    """Return where a cell ends, with a sign or with the line, and the hash of its bytes."""
    code_hash, place = OFFSET, start
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

"""Sum over all matchings of left with right positions of exp(-nu * total displacement), by a sweep over positions."""

import math

import numpy as np

from rankernel._loops.compiled import compiled
from rankernel._utils.arrays import FloatArray, IntArray

LEFT_OUTER, RIGHT_OUTER, LEFT, RIGHT = 0, 1, 2, 3
LOG_2 = math.log(2.0)


@compiled
def log_permanent(positions: IntArray, kinds: IntArray, nu: float) -> tuple[float, float]:
    """Return the logarithm of the sum and its derivative in nu.

    ``positions`` come in ascending order, each with its kind; outer positions are not matched with each other.
    A position that is still unmatched is open, and each step of the sweep costs as much as there are open positions.
    A state is the number of open positions of each kind: ``a`` left outer, ``b`` right outer, ``u`` left and ``v``
    right, of which the balance of positions seen so far determines ``v``.

    Every state has its own power of two: what is small now may be all that counts later.
    """
    total = np.bincount(kinds, minlength=4)
    shape = (total[LEFT_OUTER] + 1, total[RIGHT_OUTER] + 1, total[LEFT] + 1)
    # Value, derivative in nu and power of two of each state.
    value, slope, power = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.int64)
    next_value, next_slope, next_power = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.int64)
    value[0, 0, 0] = 1.0
    seen, rest = np.zeros(4, dtype=np.int64), total.copy()
    decay, decay_power, decay_gap = np.ones(len(kinds) + 1), np.zeros(len(kinds) + 1, dtype=np.int64), 0
    for step in range(len(kinds)):
        kind = kinds[step]
        seen[kind] += 1
        rest[kind] -= 1
        balance = seen[LEFT_OUTER] + seen[LEFT] - seen[RIGHT_OUTER] - seen[RIGHT]
        gap = positions[step + 1] - positions[step] if step + 1 < len(kinds) else 0
        if gap != decay_gap:
            fill_decay(nu * gap, decay, decay_power)
            decay_gap = gap
        next_value[:] = 0.0
        for a in range(min(seen[LEFT_OUTER], rest[RIGHT]) + 1):
            for b in range(min(seen[RIGHT_OUTER], rest[LEFT]) + 1):
                first, last = live_range(a, b, balance, seen, rest)
                for u in range(first, last + 1):
                    x, dx, e = arrivals(kind, a, b, u, a + u - b - balance, value, slope, power)
                    if x > 0.0:
                        n_open = 2 * (a + u) - balance
                        dx -= gap * n_open * x
                        shift = normal_power(x)
                        factor = decay[n_open] * math.ldexp(1.0, -shift)
                        next_value[a, b, u], next_slope[a, b, u] = factor * x, factor * dx
                        next_power[a, b, u] = e + decay_power[n_open] + shift
        value, next_value = next_value, value
        slope, next_slope = next_slope, slope
        power, next_power = next_power, power
    x = value[0, 0, 0]
    return math.log(x) + power[0, 0, 0] * LOG_2, slope[0, 0, 0] / x


@compiled
def log_permanents_of_few(positions, kinds, starts, totals, nu, value, slope, next_value, next_slope, decay, out):
    """Write the same as :func:`log_permanent` for each of many, where no number comes near the limits of a float.

    ``totals[k]`` are the numbers of positions of each kind, ``starts[k]`` is where those of k begin. Around the
    states in reach stand zeros, so that none needs to be told apart from one that does not exist. All is one loop that
    allocates nothing large: functions and new arrays would be compiled into it once more.
    """
    seen, rest = np.zeros(4, np.int64), np.zeros(4, np.int64)
    decay_gap = 0
    for k in range(len(totals)):
        for kind in range(4):
            seen[kind], rest[kind] = 0, totals[k, kind]
        n_u = rest[LEFT] + 2
        for a in range(2):
            for b in range(2):
                for u in range(n_u):
                    value[a, b, u], slope[a, b, u] = 0.0, 0.0
        value[0, 0, 0] = 1.0
        for step in range(starts[k], starts[k + 1]):
            kind = kinds[step]
            seen[kind] += 1
            rest[kind] -= 1
            balance = seen[LEFT_OUTER] + seen[LEFT] - seen[RIGHT_OUTER] - seen[RIGHT]
            gap = positions[step + 1] - positions[step] if step + 1 < starts[k + 1] else 0
            if gap > 0 and gap != decay_gap:
                for m in range(len(decay)):
                    decay[m] = math.exp(-nu * gap * m)
                decay_gap = gap
            most_a, most_b = min(seen[LEFT_OUTER], rest[RIGHT]), min(seen[RIGHT_OUTER], rest[LEFT])
            for a in range(most_a + 2):
                for b in range(most_b + 2):
                    for u in range(n_u):
                        next_value[a, b, u], next_slope[a, b, u] = 0.0, 0.0
                    if a > most_a or b > most_b:
                        continue
                    first, last = live_range(a, b, balance, seen, rest)
                    for u in range(first, last + 1):
                        v = a + u - b - balance
                        if kind == LEFT_OUTER:
                            x, dx = (v + 1) * value[a, b, u], (v + 1) * slope[a, b, u]
                            if a > 0:
                                x, dx = x + value[a - 1, b, u], dx + slope[a - 1, b, u]
                        elif kind == RIGHT_OUTER:
                            x, dx = (u + 1) * value[a, b, u + 1], (u + 1) * slope[a, b, u + 1]
                            if b > 0:
                                x, dx = x + value[a, b - 1, u], dx + slope[a, b - 1, u]
                        elif kind == LEFT:
                            x = (v + 1) * value[a, b, u] + (b + 1) * value[a, b + 1, u]
                            dx = (v + 1) * slope[a, b, u] + (b + 1) * slope[a, b + 1, u]
                            if u > 0:
                                x, dx = x + value[a, b, u - 1], dx + slope[a, b, u - 1]
                        else:
                            x = value[a, b, u] + (u + 1) * value[a, b, u + 1] + (a + 1) * value[a + 1, b, u]
                            dx = slope[a, b, u] + (u + 1) * slope[a, b, u + 1] + (a + 1) * slope[a + 1, b, u]
                        n_open = 2 * (a + u) - balance
                        factor = decay[n_open] if gap > 0 else 1.0
                        next_value[a, b, u] = factor * x
                        next_slope[a, b, u] = factor * (dx - gap * n_open * x)
            value, next_value = next_value, value
            slope, next_slope = next_slope, slope
        out[k, 0], out[k, 1] = math.log(value[0, 0, 0]), slope[0, 0, 0] / value[0, 0, 0]


@compiled
def live_range(a: int, b: int, balance: int, seen: IntArray, rest: IntArray) -> tuple[int, int]:
    """Return the least and the largest u from which every open position can still be matched."""
    known = seen[LEFT] - seen[RIGHT_OUTER] + b
    n_shared = seen[LEFT] + rest[LEFT] - seen[RIGHT_OUTER] - rest[RIGHT_OUTER]
    first = max(0, b + balance - a, known - n_shared)
    last = min(known, rest[RIGHT] + rest[RIGHT_OUTER], rest[LEFT] + rest[LEFT_OUTER] + b + balance - a)
    return first, last


@compiled
def arrivals(
    kind: int, a: int, b: int, u: int, v: int, value: FloatArray, slope: FloatArray, power: IntArray
) -> tuple[float, float, int]:
    """Return the sum, its derivative and power of two over the ways in which a position leads to a state.

    The position stays open, or closes one that is open on the other side; not two outer ones.
    """
    moves = (value, slope, power)
    none = (0.0, 0.0, 0)
    if kind == LEFT_OUTER:
        found = add(none, v + 1, a, b, u, moves)
        return add(found, 1, a - 1, b, u, moves) if a > 0 else found
    if kind == RIGHT_OUTER:
        found = add(none, u + 1, a, b, u + 1, moves) if u + 1 < value.shape[2] else none
        return add(found, 1, a, b - 1, u, moves) if b > 0 else found
    if kind == LEFT:
        found = add(none, v + 1, a, b, u, moves)
        found = add(found, 1, a, b, u - 1, moves) if u > 0 else found
        return add(found, b + 1, a, b + 1, u, moves) if b + 1 < value.shape[1] else found
    found = add(none, 1, a, b, u, moves)
    found = add(found, u + 1, a, b, u + 1, moves) if u + 1 < value.shape[2] else found
    return add(found, a + 1, a + 1, b, u, moves) if a + 1 < value.shape[0] else found


@compiled
def add(
    found: tuple[float, float, int],
    ways: int,
    a: int,
    b: int,
    u: int,
    states: tuple[FloatArray, FloatArray, IntArray],
) -> tuple[float, float, int]:
    """Add a state, as often as there are ways, to a scaled sum."""
    x, dx, e = found
    y, dy, f = ways * states[0][a, b, u], ways * states[1][a, b, u], states[2][a, b, u]
    if y == 0.0:
        return found
    if x == 0.0:
        return y, dy, f
    if f == e:
        return x + y, dx + dy, e
    if f < e:
        scale = math.ldexp(1.0, f - e)
        return x + scale * y, dx + scale * dy, e
    scale = math.ldexp(1.0, e - f)
    return scale * x + y, scale * dx + dy, f


@compiled
def normal_power(x: float) -> int:
    """Return the power of two to take out of a number: none while it is far from over- and underflow."""
    if 1e-30 < x < 1e30:
        return 0
    return math.frexp(x)[1]


@compiled
def fill_decay(rate: float, decay: FloatArray, decay_power: IntArray) -> None:
    """Write exp(-rate m) for each number m of open positions, as a factor and a power of two."""
    for m in range(len(decay)):
        decay_power[m] = math.floor(-rate * m / LOG_2) if abs(rate * m) > 20.0 else 0
        decay[m] = math.exp(-rate * m - decay_power[m] * LOG_2)

"""The seven semimetrics, and the facts that the registry claims of them."""

import itertools

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings

import rankernel as rk
from rankernel import RankingError, distances
from rankernel.completions import draw

ORACLES = {
    distances.kendall: naive.kendall,
    distances.footrule: naive.footrule,
    distances.spearman: naive.spearman,
    distances.hamming: naive.hamming,
    distances.cayley: naive.cayley,
    distances.linf: naive.linf,
    distances.lp(1): naive.lp(1),
    distances.lp(1.5): naive.lp(1.5),
    distances.lp(2): naive.lp(2),
    distances.lp(4): naive.lp(4),
}
EVERY = pytest.mark.parametrize("distance", ORACLES, ids=str)


@EVERY
@settings(max_examples=25)
@given(rows=strategies.sized(strategies.permutations, high=8, length=3))
def test_equals_the_oracle(distance, rows):
    expected = [[ORACLES[distance](x, y) for y in rows[1:]] for x in rows]
    np.testing.assert_allclose(distance(rows, rows[1:]), expected, rtol=1e-14)


@EVERY
@pytest.mark.parametrize("n", [13, 100, 301])
def test_equals_the_oracle_on_many_items(distance, n):
    rows = [np.random.default_rng(seed).permutation(n) for seed in range(3)]
    expected = [[ORACLES[distance](x.tolist(), y.tolist()) for y in rows] for x in rows]
    np.testing.assert_allclose(distance(rows), expected, rtol=1e-13)


def test_pairs_of_very_many_items_are_counted_without_bits():
    n = 300
    rows = [np.arange(n), np.random.default_rng(1).permutation(n)]
    assert distances.kendall(rows)[0, 1] == naive.kendall(*(row.tolist() for row in rows))


def test_pairs_of_many_rankings_are_counted_in_parts():
    rows = rk.datasets.uniform(540, 5, rng=1)
    known = {(x, y): naive.kendall(x, y) for x, y in itertools.product(itertools.permutations(range(5)), repeat=2)}
    keys = [tuple(row) for row in rows.ranks.tolist()]
    assert distances.kendall(rows, rows[2:]).tolist() == [[known[x, y] for y in keys[2:]] for x in keys]


@EVERY
def test_whole_numbers_are_integers(distance):
    d = distance([[0, 1, 2]], [[2, 0, 1]])
    assert d.dtype == (np.int64 if distance.integer else np.float64)


def all_of(n):
    return np.array(list(itertools.permutations(range(n))), dtype=np.int32)


def is_of_negative_type(d):
    """Exact criterion on a finite set: the doubly centred matrix -CDC has no negative eigenvalue."""
    center = np.eye(len(d)) - 1 / len(d)
    return np.linalg.eigvalsh(-center @ d @ center).min() > -1e-9 * d.max()


@EVERY
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_maximum(distance, n):
    assert distance(all_of(n)).max() == pytest.approx(distance.maximum(n), rel=1e-14)


@EVERY
def test_semimetric_and_triangle(distance):
    d = distance(all_of(4)).astype(float)
    assert (d == d.T).all()
    assert ((d == 0) == np.eye(24, dtype=bool)).all()
    triangle = (d[:, :, None] <= d[:, None, :] + d.T[None, :, :].transpose(0, 2, 1) + 1e-9).all()
    assert triangle == distance.metric


@EVERY
def test_invariance(distance):
    rows = all_of(4)
    d = distance(rows)
    renamed = [distance(rows[:, list(order)]) for order in itertools.permutations(range(4))]
    assert all(np.allclose(other, d) for other in renamed)
    moved = [distance(np.array(places)[rows]) for places in itertools.permutations(range(4))]
    assert all(np.allclose(other, d) for other in moved) == (distance.name in ("hamming", "cayley"))


@EVERY
def test_negative_type_where_claimed(distance):
    if distance.negative_type:
        assert all(is_of_negative_type(distance(all_of(n)).astype(float)) for n in (3, 4, 5))


def test_negative_type_where_denied():
    """Cayley fails from 3 items on, the maximum and l_4 from 5 on (not yet at 4)."""
    assert not is_of_negative_type(distances.cayley(all_of(3)).astype(float))
    for distance in (distances.linf, distances.lp(4)):
        assert is_of_negative_type(distance(all_of(4)).astype(float))
        assert not is_of_negative_type(distance(all_of(5)).astype(float))


PARTIAL = [(0, 1, 2, 3), (0, 1, 1, 2), (0, 0, 0, 0), (2, -1, 0, 1), (-1, 0, 0, -1), (1, 0, 1, 1)]


@EVERY
def test_mean_over_completions(distance):
    oracle = ORACLES[distance]
    expected = [[naive.marginal(oracle, r, s) for s in PARTIAL[1:]] for r in PARTIAL]
    found = distance(PARTIAL, PARTIAL[1:])
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(distance(PARTIAL)[:, 1:], expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["kendall", "spearman", "footrule", "hamming"])
def test_mean_of_many_items_is_in_closed_form(name):
    full = rk.datasets.uniform(4, 40, rng=0)
    d = distances.as_distance(name)
    lists = full.top(6, unlisted="free")
    drawn = np.stack([draw(lists, 400, rng=seed).ranks for seed in range(4)]).astype(np.int32)
    means = [d.between(some[0], some[1]).mean() for some in drawn]
    assert abs(np.mean(means) - d(lists)[0, 1]) < 5 * np.std(means, ddof=1) / 2 + 1e-9


def test_too_many_completions():
    lists = rk.datasets.uniform(4, 20, rng=0).top(3)
    with pytest.raises(rk.ExactnessError, match=r"cayley.*completions\.draw"):
        distances.cayley(lists)


def test_other_refusals():
    with pytest.raises(RankingError, match="3 items and Y ranks 2"):
        distances.kendall([[0, 1, 2]], [[0, 1]])
    with pytest.raises(ValueError, match=r"p=0\.5 is not possible; it must be a finite number >= 1"):
        distances.lp(0.5)
    with pytest.raises(ValueError, match="distance='manhattan' is not known"):
        distances.as_distance("manhattan")
    with pytest.raises(ValueError, match="is not known"):
        distances.as_distance("lp(x)")
    assert distances.as_distance("lp(3)") == distances.lp(3)


def test_rankings_are_taken_as_they_are():
    ballots = rk.Rankings.from_orders([["a", "b"], ["b", "a"]])
    assert distances.kendall(ballots).tolist() == [[0, 1], [1, 0]]

import math

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import heat_from
from test_exp_footrule import one_tie, overlap_of, top

import rankernel as rk
from rankernel.errors import ExactnessError
from rankernel.gram.exact.heat_means import CycleTypeDiffusion, WordDiffusion, cycle_type_weights
from rankernel.gram.exact.overlap import Overlap, Shape

BETAS = st.sampled_from([0.01, 0.3, 1.0])


def mean_heat(r, s, beta, graph):
    """The heat kernel and its derivative, averaged over all completions; only the map of positions counts."""
    table, derivative = heat_from(tuple(range(len(r))), beta, graph)
    maps = [
        tuple(after for _, after in sorted(zip(x, y, strict=True)))
        for x in naive.completions(r)
        for y in naive.completions(s)
    ]
    values, slopes = [table[m] for m in maps], [derivative[m] for m in maps]
    return math.fsum(values) / len(values), math.fsum(slopes) / len(values)


def check(formula, graph, r, s, beta):
    value, slope = mean_heat(r, s, beta, graph)
    found, found_slope = formula.log_value(overlap_of(r, s), beta)  # these formulas give the value itself
    assert not formula.logarithmic
    assert found == pytest.approx(value, rel=1e-12)
    # The derivative is a difference of terms of the size of the degree of the graph.
    assert found_slope / found == pytest.approx(slope / value, rel=1e-12, abs=1e-12)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 4).flatmap(lambda n: st.tuples(one_tie(n), one_tie(n))), BETAS)
def test_cycle_types_against_all_completions(pair, beta):
    formula, overlap = CycleTypeDiffusion(), overlap_of(*pair)
    if formula.covers(overlap.left_shape, overlap.right_shape):
        check(formula, "transpositions", *pair, beta)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 4).flatmap(lambda n: st.tuples(strategies.top_k(n), strategies.top_k(n))), BETAS)
def test_top_k_lists_are_covered_by_cycle_types(pair, beta):
    overlap = overlap_of(*pair)
    assert CycleTypeDiffusion().covers(overlap.left_shape, overlap.right_shape)
    check(CycleTypeDiffusion(), "transpositions", *pair, beta)


@pytest.mark.parametrize("graph", ["transpositions", "adjacent"])
@settings(deadline=None, max_examples=30)
@given(
    pair=st.integers(1, 4).flatmap(lambda n: st.tuples(strategies.bucket_orders(n), strategies.bucket_orders(n))),
    beta=BETAS,
)
def test_words_against_all_completions(graph, pair, beta):
    formula, overlap = WordDiffusion(graph), overlap_of(*pair)
    assert formula.covers(overlap.left_shape, overlap.right_shape)
    check(formula, graph, *pair, beta)


@pytest.mark.parametrize("graph", ["transpositions", "adjacent"])
def test_five_items(graph):
    for r, s in [((0, 1, 2, 2, 2), (3, 0, 1, 2, 3)), ((0, 0, 1, 1, 1), (0, 1, 0, 1, 2))]:
        check(WordDiffusion(graph), graph, r, s, 0.2)
    check(CycleTypeDiffusion(), "transpositions", (0, 1, 2, 2, 2), (3, 0, 1, 2, 3), 0.2)


@pytest.mark.parametrize(("n", "k", "m"), [(9, 3, 3), (12, 2, 7), (20, 3, 5), (36, 2, 4)])
def test_cycle_types_agree_with_words(n, k, m):
    rng = np.random.default_rng(n)
    for right in (rng.permutation(n), (np.arange(n) + 1) % n):
        overlap = Overlap.of(top(np.arange(n), k), top(right, m))
        by_types = CycleTypeDiffusion().log_value(overlap, 1.0 / n)
        assert WordDiffusion("transpositions").log_value(overlap, 1.0 / n) == pytest.approx(by_types, rel=1e-11)


def test_both_sides_are_alike():
    rng = np.random.default_rng(5)
    left, right = top(rng.permutation(20), 3), top(rng.permutation(20), 2)
    for formula in (CycleTypeDiffusion(), WordDiffusion("adjacent")):
        one, other = (formula.log_value(Overlap.of(*pair), 0.1) for pair in ((left, right), (right, left)))
        assert one == pytest.approx(other, rel=1e-13)


@pytest.mark.parametrize(
    ("cycles", "paths"), [((), (1,) * 30), ((4, 2), (5, 3, 3, 2, 2, 1, 1, 1)), ((1,), (2,) * 9), ((), ())]
)
def test_probabilities_of_cycle_types_sum_to_one(cycles, paths):
    weights = cycle_type_weights(sum(cycles) + sum(paths), cycles, paths)
    assert math.fsum(weights) == pytest.approx(1.0, rel=1e-13)


def test_nothing_known_on_one_side_is_uniform():
    n = 12
    tied, full = np.zeros(n, np.int32), np.random.default_rng(6).permutation(n).astype(np.int32)
    for formula in (CycleTypeDiffusion(), WordDiffusion("adjacent"), WordDiffusion("transpositions")):
        value, slope = formula.log_value(Overlap.of(full, tied), 0.4)
        assert math.log(value) == pytest.approx(-math.log(math.factorial(n)), rel=1e-13)
        assert slope / value == pytest.approx(0.0, abs=1e-12)


def test_what_is_covered():
    by_types, adjacent = CycleTypeDiffusion(), WordDiffusion("adjacent")
    assert by_types.covers(Shape((1, 1, 1, 33)), Shape((1, 35)))
    assert by_types.covers(Shape((1, 3, 1)), Shape((1, 1, 1, 1, 1)))
    assert not by_types.covers(Shape((1, 3, 1)), Shape((3, 1, 1)))  # neither tie is inside the other
    assert not by_types.covers(Shape((1,) * 10 + (26,)), Shape((1,) * 10 + (26,)))
    assert not by_types.covers(Shape((1, 36)), Shape((1, 36)))
    assert not by_types.covers(Shape((1, 1), free=1), Shape((1, 2)))
    assert adjacent.covers(Shape((1, 1, 18)), Shape((1,) * 20))
    assert adjacent.covers(Shape((1,) * 9), Shape((1,) * 9))
    assert not adjacent.covers(Shape((1,) * 10), Shape((1,) * 10))
    assert not adjacent.covers(Shape((1, 1), free=1), Shape((1, 2)))


def test_a_value_that_underflows_is_zero_and_has_no_logarithm():
    far = Overlap.of(np.arange(30, dtype=np.int32), np.roll(np.arange(30), 1).astype(np.int32))
    assert CycleTypeDiffusion().log_value(far, 1e-12) == (0.0, 0.0)
    rows = np.minimum([np.arange(30), np.roll(np.arange(30), 1)], 28)
    kernel = rk.Diffusion(1e-12)
    assert kernel.gram(rows)[0, 1] == 0.0
    with pytest.raises(ExactnessError, match="larger width"):
        kernel.log_gram(rows)

"""Diffusion kernels of partial rankings against all completions."""

import itertools
import math
from functools import partial

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import heat_from
from overlaps import one_tie, overlap_of, top

import rankernel as rk
from rankernel.errors import ExactnessError
from rankernel.gram.exact.diffusion import CycleTypes, Words, cycle_type_pmf
from rankernel.gram.exact.formulas import Overlap, Shape

BETAS = st.sampled_from([0.01, 0.3, 1.0])


def mean_heat(r, s, beta, graph):
    """Return the mean over all completions of the heat kernel and of its derivative."""
    table, derivative = heat_from(tuple(range(len(r))), beta, graph)
    maps = [
        tuple(after for _, after in sorted(zip(x, y, strict=True)))
        for x in naive.completions(r)
        for y in naive.completions(s)
    ]
    values, derivatives = [table[m] for m in maps], [derivative[m] for m in maps]
    return math.fsum(values) / len(values), math.fsum(derivatives) / len(values)


def check_mean(formula, graph, r, s, beta):
    value, derivative = mean_heat(r, s, beta, graph)
    found, found_derivative = formula.mean(rk.Diffusion(beta, graph), overlap_of(r, s))
    assert found == pytest.approx(value, rel=1e-12)
    # The derivative is a difference of terms of the size of the degree of the graph.
    assert found_derivative / found == pytest.approx(derivative / value, rel=1e-12, abs=1e-12)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 4).flatmap(lambda n: st.tuples(one_tie(n), one_tie(n))), BETAS)
def test_cycle_types_match_brute_force(pair, beta):
    formula, overlap = CycleTypes(), overlap_of(*pair)
    if formula.covers(rk.Diffusion(), overlap.left_shape, overlap.right_shape):
        check_mean(formula, "transpositions", *pair, beta)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 4).flatmap(lambda n: st.tuples(strategies.top_k(n), strategies.top_k(n))), BETAS)
def test_top_k_lists_are_covered_by_cycle_types(pair, beta):
    overlap = overlap_of(*pair)
    assert CycleTypes().covers(rk.Diffusion(), overlap.left_shape, overlap.right_shape)
    check_mean(CycleTypes(), "transpositions", *pair, beta)


@pytest.mark.parametrize("graph", ["transpositions", "adjacent"])
@settings(deadline=None, max_examples=30)
@given(
    pair=st.integers(1, 4).flatmap(lambda n: st.tuples(strategies.bucket_orders(n), strategies.bucket_orders(n))),
    beta=BETAS,
)
def test_words_match_brute_force(graph, pair, beta):
    formula, overlap = Words(), overlap_of(*pair)
    assert formula.covers(rk.Diffusion(0.1, graph), overlap.left_shape, overlap.right_shape)
    check_mean(formula, graph, *pair, beta)


@pytest.mark.parametrize("graph", ["transpositions", "adjacent"])
def test_five_items(graph):
    for r, s in [((0, 1, 2, 2, 2), (3, 0, 1, 2, 3)), ((0, 0, 1, 1, 1), (0, 1, 0, 1, 2))]:
        check_mean(Words(), graph, r, s, 0.2)
    check_mean(CycleTypes(), "transpositions", (0, 1, 2, 2, 2), (3, 0, 1, 2, 3), 0.2)


def test_paths_and_cycles_have_different_codes():
    """In one matrix, no two overlaps with other lengths of paths or cycles are taken for the same one."""
    kernel, rows = rk.Diffusion(0.2), np.unique(np.minimum(list(itertools.permutations(range(6))), 4), axis=0)
    table, _ = heat_from(tuple(range(6)), 0.2, "transpositions")
    expected = [math.fsum(table[y] for y in naive.completions(tuple(row))) / 2 for row in rows.tolist()]
    plan = kernel.plan(np.arange(6)[None], rows)
    assert isinstance(plan.method, rk.Exact)
    np.testing.assert_allclose(plan.gram()[0], expected, rtol=1e-12)


@pytest.mark.parametrize(("n", "k", "m"), [(9, 3, 3), (12, 2, 7), (20, 3, 5), (36, 2, 4)])
def test_cycle_types_match_words(n, k, m):
    rng = np.random.default_rng(n)
    for right in (rng.permutation(n), (np.arange(n) + 1) % n):
        overlap = Overlap.of(top(np.arange(n), k), top(right, m))
        by_types = CycleTypes().mean(rk.Diffusion(1.0 / n), overlap)
        assert Words().mean(rk.Diffusion(1.0 / n), overlap) == pytest.approx(by_types, rel=1e-11)


def test_mean_is_symmetric():
    rng = np.random.default_rng(5)
    left, right = top(rng.permutation(20), 3), top(rng.permutation(20), 2)
    for formula, graph in ((CycleTypes(), "transpositions"), (Words(), "adjacent")):
        one, other = (
            formula.mean(rk.Diffusion(0.1, graph), Overlap.of(*pair)) for pair in ((left, right), (right, left))
        )
        assert one == pytest.approx(other, rel=1e-13)


@pytest.mark.parametrize(
    ("cycles", "paths"), [((), (1,) * 30), ((4, 2), (5, 3, 3, 2, 2, 1, 1, 1)), ((1,), (2,) * 9), ((), ())]
)
def test_probabilities_of_cycle_types_sum_to_one(cycles, paths):
    pmf = cycle_type_pmf(sum(cycles) + sum(paths), cycles, paths)
    assert math.fsum(pmf) == pytest.approx(1.0, rel=1e-13)


def test_unordered_side_gives_the_uniform_value():
    n = 12
    tied, full = np.zeros(n, np.int32), np.random.default_rng(6).permutation(n).astype(np.int32)
    for formula, graph in ((CycleTypes(), "transpositions"), (Words(), "adjacent"), (Words(), "transpositions")):
        value, derivative = formula.mean(rk.Diffusion(0.4, graph), Overlap.of(full, tied))
        assert math.log(value) == pytest.approx(-math.log(math.factorial(n)), rel=1e-13)
        assert derivative / value == pytest.approx(0.0, abs=1e-12)


def test_covered_shapes():
    by_types, adjacent = (
        partial(CycleTypes().covers, rk.Diffusion()),
        partial(Words().covers, rk.Diffusion(0.1, "adjacent")),
    )
    assert by_types(Shape((1, 1, 1, 33)), Shape((1, 35)))
    assert by_types(Shape((1, 3, 1)), Shape((1, 1, 1, 1, 1)))
    assert not by_types(Shape((1, 3, 1)), Shape((3, 1, 1)))  # neither tie is inside the other
    assert not by_types(Shape((1,) * 10 + (26,)), Shape((1,) * 10 + (26,)))
    assert not by_types(Shape((1, 36)), Shape((1, 36)))
    assert not by_types(Shape((1, 1), free=1), Shape((1, 2)))
    assert adjacent(Shape((1, 1, 18)), Shape((1,) * 20))
    assert adjacent(Shape((1,) * 9), Shape((1,) * 9))
    assert not adjacent(Shape((1,) * 10), Shape((1,) * 10))
    assert not adjacent(Shape((1, 1), free=1), Shape((1, 2)))


def test_underflow_gives_zero_and_no_logarithm():
    far = Overlap.of(np.arange(30, dtype=np.int32), np.roll(np.arange(30), 1).astype(np.int32))
    assert CycleTypes().mean(rk.Diffusion(1e-12), far) == (0.0, 0.0)
    rows = np.minimum([np.arange(30), np.roll(np.arange(30), 1)], 28)
    kernel = rk.Diffusion(1e-12)
    assert kernel.gram(rows)[0, 1] == 0.0
    with pytest.raises(ExactnessError, match="use gram"):
        kernel.log_gram(rows)

"""q-factorials against exact rational arithmetic and fifty-digit decimals."""

import itertools
import math
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest

from rankernel._utils.combinatorics import inversion_probabilities, log_q_factorials, log_q_factorials_derivative

NUS = [0.0, 1e-300, 1e-12, 1e-5, 3e-3, 0.05, 0.31, 0.7, 1.0, 2.5, 13.0, 50.0, 300.0, 1e3]


def decimal_tables(n, nu):
    """Return log([m]_q!/m!) and its derivative for m = 0..n, by summing the terms of [i]_q in 60 digits."""
    getcontext().prec = 60 + (0 if nu == 0 else max(0, -math.floor(math.log10(nu))))
    nu = Decimal(nu)
    bracket, d_bracket = Decimal(0), Decimal(0)
    values, derivatives = [Decimal(0)], [Decimal(0)]
    for i in range(1, n + 1):
        power = (-nu * (i - 1)).exp()
        bracket += power
        d_bracket += (i - 1) * power
        values.append(values[-1] + (bracket / i).ln())
        derivatives.append(derivatives[-1] - d_bracket / bracket)
    return [float(v) for v in values], [float(v) for v in derivatives]


def inversions(order):
    return sum(a > b for a, b in itertools.combinations(order, 2))


@pytest.mark.parametrize("m", range(7))
def test_mean_over_all_orders(m):
    nu = 0.37
    weights = [math.exp(-nu * inversions(order)) for order in itertools.permutations(range(m))]
    derivatives = [-inversions(order) * math.exp(-nu * inversions(order)) for order in itertools.permutations(range(m))]
    assert log_q_factorials(6, nu)[m] == pytest.approx(math.log(math.fsum(weights) / len(weights)), rel=1e-13)
    assert log_q_factorials_derivative(6, nu)[m] == pytest.approx(
        math.fsum(derivatives) / math.fsum(weights), rel=1e-13
    )


@pytest.mark.parametrize("nu", NUS)
def test_full_precision_at_every_scale(nu):
    values, derivatives = decimal_tables(300, nu)
    np.testing.assert_allclose(log_q_factorials(300, nu), values, rtol=8e-16, atol=0)
    np.testing.assert_allclose(log_q_factorials_derivative(300, nu), derivatives, rtol=8e-16, atol=0)


@pytest.mark.parametrize("nu", [1e-9, 2e-4, 0.02, 1.3])
def test_full_precision_for_five_thousand_items(nu):
    getcontext().prec = 40
    q = (-Decimal(nu)).exp()
    power, bracket, d_bracket, product, total = Decimal(1), Decimal(0), Decimal(0), Decimal(1), Decimal(0)
    for i in range(1, 5001):
        bracket, d_bracket = bracket + power, d_bracket + (i - 1) * power
        power *= q
        product *= bracket / i
        total -= d_bracket / bracket
    assert log_q_factorials(5000, nu)[-1] == pytest.approx(float(product.ln()), rel=1e-15)
    assert log_q_factorials_derivative(5000, nu)[-1] == pytest.approx(float(total), rel=1e-15)


def test_zero_rate_is_exact():
    assert not log_q_factorials(5000, 0.0).any()
    pairs = [float(-Fraction(m * (m - 1), 4)) for m in range(5001)]
    assert log_q_factorials_derivative(5000, 0.0).tolist() == pairs


@pytest.mark.parametrize("table", [log_q_factorials, log_q_factorials_derivative])
def test_no_items(table):
    assert table(0, 0.4).tolist() == [0.0]
    assert table(1, 0.4).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("nu", [0.0, 1e-9, 0.3, 2.0])
def test_inversion_probabilities_by_all_orders(nu):
    orders = list(itertools.permutations(range(5)))
    inverted = np.array([[o[a] > o[b] for a, b in itertools.combinations(range(5), 2)] for o in orders])
    weights = np.exp(-nu * inverted.sum(axis=1))
    shares = weights @ inverted / weights.sum()
    differences = [b - a for a, b in itertools.combinations(range(5), 2)]
    assert inversion_probabilities(4, nu)[differences] == pytest.approx(shares, abs=1e-8)

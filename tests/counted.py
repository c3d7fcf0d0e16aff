"""An oracle for exponential kernels: the distances between all completions, counted, and their mean in many digits."""

from collections import Counter
from decimal import Decimal, localcontext

import naive
from hypothesis import assume


def distance_counts(distance, left, right):
    """How many pairs of completions are at each distance, by looking at all of them."""
    ours, theirs = naive.completions(left), naive.completions(right)
    assume(len(ours) * len(theirs) <= 4_000)
    return Counter(distance(x, y) for x in ours for y in theirs)


def from_counts(counts, nu):
    """Log of the mean of exp(-nu d) and its derivative, in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        terms = [(d, Decimal(c) * (-Decimal(nu) * d).exp()) for d, c in counts.items()]
        total = sum(term for _, term in terms)
        return float((total / sum(counts.values())).ln()), float(-sum(d * term for d, term in terms) / total)

"""A reader who follows one Gram matrix through the package passes few files."""

import walk


def test_a_gram_matrix_passes_few_files():
    assert len(walk.exact_walk().files) <= 9
    assert len(walk.monte_carlo_walk().files) <= 20

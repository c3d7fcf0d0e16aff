"""Gram matrices to answers: features, tests, clusterings, maps."""

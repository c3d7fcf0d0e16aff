"""Measurements: rankernel and its peers in one run, medians, ratios. ``python -m benchmarks`` prints the table."""

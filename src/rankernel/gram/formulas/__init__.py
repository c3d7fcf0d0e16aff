"""Exact marginalised kernels, one family a file."""

"""Estimates of marginalised kernels from draws of completions, with their errors."""

"""Exact values of marginalised kernels: which kernels have them for which rankings, and how they are computed."""

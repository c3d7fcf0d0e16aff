"""Clustering, maps, features and regression with kernels on rankings, and adapters to other libraries."""

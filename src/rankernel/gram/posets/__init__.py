"""Partial orders and preferences as rows and columns of a Gram matrix."""

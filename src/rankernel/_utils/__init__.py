"""Checks, errors and small tools that all layers use."""

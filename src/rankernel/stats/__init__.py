"""Hypothesis tests on rankings."""

"""The experiments of the paper, end to end: ``python -m reproduction`` from a clone of the repository."""

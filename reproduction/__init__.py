"""The experiments of the paper: ``python -m reproduction`` from a clone of the repository."""

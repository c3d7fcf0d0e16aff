"""Gram matrices on disk: whole or not there, and gone on with after any interruption."""
